// Prints what each entry adds to a program that bundles all of it: `npm run size`. Minified and
// compressed by brotli, with the parts of the package that it pulls in, without its dependencies.
import { bundle } from './bundle.ts';
import { ENTRIES, type Entry, specifierOf } from './entries.ts';

/** In bytes, a little above the current size. A change that raises a budget says what it buys. */
const BUDGETS: Readonly<Record<Entry, number>> = {
  scope: 8_650,
  index: 47_900,
  openapi: 15_000,
  http: 40_150,
  console: 57_700,
  sqlite: 12_900,
  postgres: 15_200,
  mysql: 14_350,
  redis: 17_750,
  testing: 13_800,
};

for (const entry of ENTRIES) {
  const { bytes } = await bundle(`export * from '${specifierOf(entry)}';`);
  const most = BUDGETS[entry];
  const isWithin = bytes <= most;
  console.log(
    `${specifierOf(entry).padEnd(20)} ${`${bytes}`.padStart(6)} of ${most} bytes${isWithin ? '' : ': too much'}`,
  );
  if (!isWithin) process.exitCode = 1;
}
