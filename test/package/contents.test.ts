import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { ENTRIES } from './entries.ts';

const root = new URL('../..', import.meta.url).pathname;
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

describe('the package', () => {
  const options = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const [packed] = JSON.parse(execFileSync('npm', options, { cwd: root, encoding: 'utf8' }));
  const files: string[] = packed.files.map(({ path }: { readonly path: string }) => path);

  it('contains the code, its documentation and nothing else', () => {
    const parts = ENTRIES.flatMap((entry) => [
      `${entry}.js`,
      `${entry}.cjs`,
      `${entry}.d.ts`,
      `${entry}.d.cts`,
    ]);
    const named = ['cli.js', 'THIRD-PARTY-NOTICES.md', ...parts].map((name) => `dist/${name}`);
    const isCode = (file: string) => /^dist\/[\w-]+\.(?:c?js|d\.c?ts)$/.test(file);
    const isPage = (file: string) => /^docs\/(?!evidence|reference)[\w/-]+\.md$/.test(file);

    expect(files).toEqual(
      expect.arrayContaining([...named, 'README.md', 'LICENSE', 'package.json']),
    );
    expect(files.filter(isPage)).toEqual(
      expect.arrayContaining(['docs/errors.md', 'docs/guides/express.md', 'docs/service/http.md']),
    );
    expect(files.filter((file) => !isCode(file) && !isPage(file)).sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'dist/THIRD-PARTY-NOTICES.md',
      'llms.txt',
      'package.json',
    ]);
  });

  it('is at most 4.3 MB', () => {
    expect(packed.unpackedSize).toBeLessThan(4_300_000);
  });

  it('names no path of the build machine', () => {
    expect(files.filter((file) => read(file).includes(root))).toEqual([]);
  });

  it('runs no script on installation, and depends on nothing', () => {
    const scripts = Object.keys(packageJson.scripts);

    expect(scripts.filter((name) => /^(?:pre|post)?(?:install|prepare|pack)$/.test(name))).toEqual(
      [],
    );
    expect(packageJson).not.toHaveProperty('dependencies');
  });

  it('does not embed the devDependencies of package.json', () => {
    const code = files.filter((file) => /\.c?js$/.test(file));

    expect(code.filter((file) => read(file).includes('devDependencies'))).toEqual([]);
    expect(code.some((file) => read(file).includes(`version: "${packageJson.version}"`))).toBe(
      true,
    );
  });
});

describe('the third-party notices', () => {
  // Taken from the names that the bundler writes above each file, so independent of the build.
  const bundled = new Set([
    // Part of the console page, which is built apart.
    'preact',
    ...globSync('dist/*.{js,cjs}', { cwd: root }).flatMap((file) =>
      [...read(file).matchAll(/^\/\/ node_modules\/((?:@[^/\n]+\/)?[^/\n]+)/gm)].map(
        ([, name = '']) => name,
      ),
    ),
  ]);
  const notices = read('dist/THIRD-PARTY-NOTICES.md');

  it('name each bundled package, and no other', () => {
    const named = [...notices.matchAll(/^## (\S+) \d/gm)].map(([, name]) => name);

    expect([...bundled]).toContain('nanoid');
    expect(named).toEqual([...bundled].sort());
  });

  it('contain the license of each, word for word', () => {
    for (const name of bundled) {
      const [license = ''] = globSync('LICEN[CS]E*', { cwd: join(root, 'node_modules', name) });

      expect(notices).toContain(read(`node_modules/${name}/${license}`).trim());
    }
  });
});
