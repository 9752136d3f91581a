// Measures what typed catalogs cost the compiler: node test/types/measure.ts
// For 10 to 1500 entries and 50 uses each: the catalog alone, the uses as calls of `expand`, and as
// annotations with `CatalogPattern`. All rows include the check of src/scope, shown in the first row.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');
const FOLDER = join(ROOT, '.cache/types');
const SIZES = [0, 10, 100, 500, 1500];
const USES = 50;
const RUNS = 3;

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const WORDS = ['orders', 'open', 'archive', 'fields', 'country', 'layout', 'users', 'items'];

const WAYS: Readonly<Record<string, (asked: readonly string[]) => string[]>> = {
  'catalog alone': () => [],
  'expand, 1 call': (asked) => [`catalog.expand([${asked.map(quoted).join(', ')}]);`],
  'expand, 50 calls': (asked) => asked.map((text) => `catalog.expand([${quoted(text)}]);`),
  'CatalogPattern, 50': (asked) =>
    asked.map(
      (text, index) =>
        `export const asked${index}: CatalogPattern<typeof catalog> = ${quoted(text)};`,
    ),
};

const row = (cells: readonly unknown[]) => console.log(`| ${cells.join(' | ')} |`);
row(['entries', 'uses', 'check time, s', 'instantiations', 'types', 'memory, MB', 'errors']);
row(Array.from({ length: 7 }, () => '---'));
for (const size of SIZES) {
  const entries = makeEntries(size);
  for (const [way, write] of Object.entries(WAYS).slice(0, size === 0 ? 1 : undefined)) {
    row([
      size,
      way,
      ...measure(join(FOLDER, `${size}-${way.replace(/\W+/g, '-')}`), entries, write),
    ]);
  }
}

/** The best of several runs, because the machine can be busy. */
function measure(
  folder: string,
  entries: readonly string[],
  write: (asked: readonly string[]) => string[],
): (number | string)[] {
  writeProgram(folder, [
    "import { type CatalogPattern, defineCatalog } from '../../../src/scope/index.ts';",
    'export const catalog = defineCatalog([',
    ...entries.map((entry) => `  ${quoted(entry)},`),
    ']);',
    ...write(makeUses(entries)),
  ]);
  const outputs = Array.from({ length: RUNS }, () => {
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    return spawnSync(process.execPath, [tsc, '-p', folder, '--extendedDiagnostics'], {
      encoding: 'utf8',
    }).stdout;
  });
  const least = (name: string) =>
    Math.min(
      ...outputs.map((text) => Number(new RegExp(`^${name}: +([\\d.]+)`, 'm').exec(text)?.[1])),
    );
  const errors = outputs[0]?.match(/error TS\d+/g) ?? [];
  return [
    least('Check time').toFixed(2),
    least('Instantiations'),
    least('Types'),
    Math.round(least('Memory used') / 1024),
    errors.length === 0 ? 'none' : [...new Set(errors)].join(', '),
  ];
}

function writeProgram(folder: string, lines: readonly string[]): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'program.ts'), `${lines.join('\n')}\n`);
  const config = {
    extends: '../../../tsconfig.json',
    compilerOptions: { types: [], noUnusedLocals: false },
    include: [],
    files: ['program.ts'],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
}

/**
 * Entries like those of a large API: five methods, up to 60 domains of two to five labels, of which
 * the first has every other entry, and closed paths of one to seven segments.
 */
function makeEntries(count: number): string[] {
  const entries = new Set<string>();
  for (let i = 0; entries.size < count; i++) {
    const host = i % 2 === 0 ? 0 : (i >> 1) % Math.min(60, Math.ceil(count / 4));
    const domain = [
      `shop${host}.example`,
      `api${host}.team${host % 7}.example`,
      `a${host}.eu.team${host % 5}.corp.example`,
    ][host % 3];
    const segments = [
      word(i),
      '{}',
      `${word(i * 7 + 3)}${i % 11}`,
      `${word(i * 3)}${i % 13}`,
      '{}',
    ];
    const path = ['repos', '{}', ...segments].slice(i % 3, 2 + (i % 7)).join('/');
    if (path === '') continue;
    entries.add(`${METHODS[(i * 3 + (i >> 3)) % METHODS.length]}:${domain}/${path}$`);
  }
  return [...entries];
}

function word(index: number): string {
  return WORDS[index % WORDS.length] ?? '';
}

/** Entries, scopes that they cover, and wildcards of every kind. */
function makeUses(entries: readonly string[]): string[] {
  return Array.from({ length: USES }, (_, index) => {
    const entry = entries[(index * 37) % entries.length] ?? '';
    const [, method, domain = '', path = ''] = /^([^:]+):([^/]+)\/(.*)$/.exec(entry) ?? [];
    const labels = domain.split('.');
    const parent = `*.${labels.slice(1 + (index % (labels.length - 1))).join('.')}`;
    const filled = path.replaceAll('{}', `x${index}`);
    const kinds = [
      entry,
      `${method}:${domain}/${filled}`,
      `*:${domain}/${path}`,
      `${method}:*/${path.split('/')[0]?.replace('$', '')}`,
      `*:${parent}/*`,
      '*:*/*',
      `*:${parent}/${path}`,
      `${method}:${domain}/*`,
    ];
    return kinds[index % kinds.length] ?? '';
  });
}

function quoted(text: string): string {
  return `'${text}'`;
}
