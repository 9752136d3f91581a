import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, inject, it } from 'vitest';
import { newFolder, runInShell } from '../cli/support.ts';

const folder = new URL('../../examples/', import.meta.url);
const examples = readdirSync(folder).filter((name) => name.endsWith('.ts'));
const read = (name: string) => readFileSync(new URL(name, folder), 'utf8');

describe('the examples', () => {
  const { postgres, redis } = inject('servers');
  const urls = { DATABASE_URL: postgres, REDIS_URL: redis };

  const isRunnable = (name: string) =>
    Object.entries(urls).every(([key, url]) => url !== undefined || !read(name).includes(key));

  it.each(examples.filter(isRunnable))('%s prints what its comments say', (name) => {
    const printed = execFileSync(process.execPath, [new URL(name, folder).pathname], {
      encoding: 'utf8',
      env: { ...process.env, ...urls },
    });

    expect(printed.trim().split('\n')).toEqual(promisedBy(read(name)));
  });

  it.each(examples)('%s says in its first line what it teaches', (name) => {
    expect(read(name)).toMatch(/^\/\/ [A-Z].{20,}\.\n/);
  });

  // Each of its commands is a process of its own.
  it('cli-session.sh prints what its comments say', { timeout: 120_000 }, async () => {
    const session = new URL('cli-session.sh', folder).pathname;
    const bin = newFolder();
    writeFileSync(`${bin}/tokenwright`, '#!/bin/sh\nexec "$NODE" "$MAIN" "$@"\n', { mode: 0o755 });

    const { code, stdout, stderr } = await runInShell('PATH="$2:$PATH" bash "$1"', session, bin);

    const promised = [...read('cli-session.sh').matchAll(/^#> (.*)$/gm)].map(([, line]) => line);
    expect(promised.length).toBeGreaterThan(5);
    expect({ code, stderr, printed: stdout.trim().split('\n') }).toEqual({
      code: 0,
      stderr: '',
      printed: promised,
    });
  });

  it('notices a program that prints something else', () => {
    expect(promisedBy("console.log('a'); // b\n")).toEqual(['b']);
  });
});

describe('the README', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const programs = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code);

  it('begins with the quick start, word for word', () => {
    expect(programs[0]).toBe(read('quickstart.ts'));
  });

  it('holds no program that does not run here', () => {
    const known = examples.map(read);
    expect(programs.filter((code) => !known.includes(code ?? ''))).toEqual([]);
  });
});

/** What the comments behind `console.log` calls promise, in order. */
function promisedBy(code: string): string[] {
  return [...code.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(([, promise]) => promise ?? '');
}
