// Prints what each entry adds to a program that bundles all of it: `npm run size`. Minified and
// compressed by brotli, with the parts of the package that it pulls in, without its dependencies.
import { bundle } from './bundle.ts';
import { ENTRIES, type Entry, specifierOf } from './entries.ts';

/** In bytes, a little above the current size. A change that raises a budget says what it buys. */
const BUDGETS: Readonly<Record<Entry, number>> = {
  scope: 10_700,
  index: 55_250,
  openapi: 18_700,
  http: 45_700,
  console: 61_700,
  sqlite: 14_050,
  postgres: 16_050,
  mysql: 15_450,
  redis: 19_450,
  testing: 16_100,
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
