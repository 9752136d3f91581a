import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { ENTRIES } from './entries.ts';

const root = new URL('../..', import.meta.url).pathname;
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

interface SourceMap {
  readonly file?: string;
  readonly sources: readonly string[];
  readonly sourcesContent?: readonly (string | null)[];
  readonly ignoreList?: readonly number[];
}

const MAPS = globSync('dist/*.map', { cwd: root }).map((file): readonly [string, SourceMap] => [
  file,
  JSON.parse(read(file)),
]);

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
    const isCode = (file: string) => /^dist\/[\w-]+\.(?:c?js(?:\.map)?|d\.c?ts)$/.test(file);

    expect(files).toEqual(
      expect.arrayContaining([...named, 'README.md', 'LICENSE', 'package.json']),
    );
    const pages = ['docs/errors.md'];

    expect(files).toEqual(expect.arrayContaining(pages));
    expect(files.filter((file) => !isCode(file) && !pages.includes(file)).sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'dist/THIRD-PARTY-NOTICES.md',
      'package.json',
    ]);
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

describe('the source maps', () => {
  it('contain the sources, so that a stack trace can be read without the repository', () => {
    const bare = MAPS.filter(([, { sources, sourcesContent = [], ignoreList = [] }]) =>
      sources.some((_, index) => !ignoreList.includes(index) && !sourcesContent[index]),
    );

    expect(MAPS.length).toBeGreaterThan(ENTRIES.length);
    expect(bare.map(([file]) => file)).toEqual([]);
    expect(MAPS.every(([, { ignoreList = [] }]) => ignoreList.length <= 1)).toBe(true);
  });

  it('contain no absolute path of the build machine', () => {
    const named = MAPS.flatMap(([, { file, sources }]) => [file ?? '', ...sources]);

    expect(named.filter(isAbsolute)).toEqual([]);
    expect(named.some((source) => source === '../src/service.ts')).toBe(true);
  });
});

describe('the third-party notices', () => {
  // Taken from the source maps, so independent of the build, which asks the bundler.
  const bundled = new Set([
    // Part of the console page, which its entry embeds as a text without a source map.
    'preact',
    ...MAPS.flatMap(([, { sources }]) => sources).flatMap(
      (source) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1] ?? [],
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
