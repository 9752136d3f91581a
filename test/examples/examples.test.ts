import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, inject, it } from 'vitest';
import { CHECKSUM_START, ID_START, SECRET_START } from '../../src/values/format.ts';
import { newFolder, runInShell } from '../app/cli/support.ts';
import { forge } from '../support.ts';

const folder = new URL('../../examples/', import.meta.url);
const examples = globSync('{agents,library,http,run}/**/*.{ts,cjs}', { cwd: folder.pathname });
const read = (name: string) => readFileSync(new URL(name, folder), 'utf8');

describe('the examples', () => {
  const { postgres, redis } = inject('servers');
  const urls = { DATABASE_URL: postgres, REDIS_URL: redis };

  const isRunnable = (name: string) =>
    Object.entries(urls).every(([key, url]) => url !== undefined || !read(name).includes(key));

  it.each(examples.filter(isRunnable))('%s prints the output that its comments promise', (name) => {
    const printed = execFileSync(process.execPath, [new URL(name, folder).pathname], {
      encoding: 'utf8',
      env: { ...process.env, ...urls },
    });

    expect(printed.trim().split('\n')).toEqual(promisedBy(read(name)));
  });

  it.each(examples)('%s says in its first line what it teaches', (name) => {
    expect(read(name)).toMatch(/^\/\/ [A-Z].{20,}\.\n/);
  });

  it.each(globSync('**/*.{ts,mjs,cjs}', { cwd: folder.pathname }))(
    '%s shows where the cause of a 503 goes',
    (name) => {
      // On one line, or up to the line that closes it with the same indentation.
      const call = /^( *).*(?:bearerGuard|mcpGuard|tokenHandler)\(\{(?:.*\}\)|[\s\S]*?^\1\}\))/gm;
      const calls = read(name).match(call) ?? [];

      expect(calls.filter((one) => !one.includes('onError'))).toEqual([]);
    },
  );

  // Slow, because each of its commands starts a process.
  it('cli-session.sh prints the output that its comments promise', {
    timeout: 120_000,
  }, async () => {
    const session = new URL('run/cli-session.sh', folder).pathname;
    const bin = newFolder();
    writeFileSync(`${bin}/tokenwright`, '#!/bin/sh\nexec "$NODE" "$MAIN" "$@"\n', { mode: 0o755 });

    const { code, stdout, stderr } = await runInShell('PATH="$2:$PATH" bash "$1"', session, bin);

    const promised = [...read('run/cli-session.sh').matchAll(/^#> (.*)$/gm)].map(
      ([, line]) => line,
    );
    expect(promised.length).toBeGreaterThan(5);
    expect({ code, stderr, printed: stdout.trim().split('\n') }).toEqual({
      code: 0,
      stderr: '',
      printed: promised,
    });
  });

  it('take the expected output from the comments (the control)', () => {
    expect(promisedBy("console.log('a'); // b\n")).toEqual(['b']);
  });
});

describe('the index of the examples', () => {
  const links = [...read('README.md').matchAll(/\]\(([^)]*)\)/g)].map(([, to = '']) => to);
  const files = globSync('*/**/*.*', {
    cwd: folder.pathname,
    exclude: ['node_modules', 'prisma/generated*', 'app/keys.json'],
  });

  it('links to each of them, and to nothing else', () => {
    // It has no ending; the schema is a part of the example for Prisma.
    const all = [...files, 'run/deploy/Dockerfile', 'run/deploy/Caddyfile'].filter(
      (file) => file !== 'prisma/schema.prisma' && !file.includes('node_modules'),
    );

    expect(all.length).toBeGreaterThan(40);
    expect([...links].sort()).toEqual([...new Set(all)].sort());
  });
});

describe('the README', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const programs = [...readme.matchAll(/^```[jt]s\n(.*?)^```$/gms)].map(([, code]) => code);

  it('starts with the quick start, word for word', () => {
    expect(programs[0]).toBe(read('library/quickstart.ts'));
  });

  it('shows only code of programs that run here', () => {
    const known = [...examples, 'first/express.mjs'].map(read);
    const strange = programs.filter((code = '') => !known.some((all) => holds(all, code)));
    expect(strange).toEqual([]);
  });

  it('has only absolute links, which also work on the npm page', () => {
    const links = [...readme.matchAll(/\]\(([^)]*)\)/g)].map(([, to = '']) => to);
    expect(links.filter((link) => !link.startsWith('https://'))).toEqual([]);
  });

  it('names only files that exist', () => {
    const named = [...readme.matchAll(/`((?:docs|examples)\/[^`]+|[A-Z]+\.md)`/g)];
    expect(named.length).toBeGreaterThan(5);
    for (const [, file = ''] of named) {
      expect(existsSync(new URL(`../../${file}`, import.meta.url)), file).toBe(true);
    }
  });

  it('draws a value with the real lengths of its parts', () => {
    const [, drawing = ''] = /^```text\n(.*)$/m.exec(readme) ?? [];
    const lengths = (parts: string[]) => parts.map(({ length }) => length);
    const value = forge();
    const [prefix = '', body = ''] = value.split('_');
    const bounds = [0, 1, ID_START, SECRET_START, CHECKSUM_START, body.length];
    const parts = bounds.slice(1).map((end, index) => body.slice(bounds[index], end));
    expect(lengths(drawing.split(' '))).toEqual(lengths([`${prefix}_`, ...parts]));
  });

  it('stays below 10 kB', () => {
    expect(Buffer.byteLength(readme)).toBeLessThan(10_000);
  });
});

/** Whether a program holds these lines in a row, at any depth. */
function holds(program: string, lines: string): boolean {
  return ['', '  ', '    '].some((indent) =>
    `\n${program}`.includes(`\n${lines.replace(/^(?=.)/gm, indent)}`),
  );
}

/** The output that the comments after `console.log` calls promise, in order. */
function promisedBy(code: string): string[] {
  return [...code.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(([, promise]) => promise ?? '');
}
