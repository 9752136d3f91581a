// Prints what each entry adds to a program that bundles all of it: `npm run size`. Minified and
// compressed by brotli, with the parts of the package that it pulls in, without its dependencies. Then the
// small files that only one other file imports: each should be difficult to do without.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FILES, IMPORTS, SRC } from '../imports.ts';
import { bundle } from './bundle.ts';
import { ENTRIES, type Entry, specifierOf } from './entries.ts';

/** In bytes, as they were when somebody last looked at them. */
const KNOWN: Readonly<Record<Entry, number>> = {
  scope: 11_407,
  index: 74_520,
  openapi: 20_716,
  http: 72_766,
  mcp: 31_639,
  console: 75_650,
  sqlite: 19_025,
  postgres: 22_685,
  mysql: 21_426,
  redis: 24_307,
  testing: 21_613,
};

/** How far an entry may grow until somebody has to look at it. */
const MAX_GROWTH = 1.05;
const SMALL_LINES = 60;

for (const entry of ENTRIES) {
  const { bytes } = await bundle(`export * from '${specifierOf(entry)}';`);
  const growth = bytes / KNOWN[entry];
  const isAlarming = growth > MAX_GROWTH;
  const change = `${growth < 1 ? '' : '+'}${((growth - 1) * 100).toFixed(1)} %`;
  const alarm = isAlarming ? ': look at what it buys, and set the size anew' : '';
  console.log(
    `${specifierOf(entry).padEnd(20)} ${`${bytes}`.padStart(6)} bytes ${change.padStart(7)}${alarm}`,
  );
  if (isAlarming) process.exitCode = 1;
}

for (const file of FILES) {
  const lines = readFileSync(join(SRC, file), 'utf8').split('\n').length - 1;
  const [importer, ...others] = new Set(
    IMPORTS.filter(({ to }) => to === file).map(({ from }) => from),
  );
  if (lines < SMALL_LINES && importer !== undefined && others.length === 0) {
    console.log(`${file}: ${lines} lines, only for ${importer}`);
  }
}
