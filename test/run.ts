// The test command: builds the package (examples and the command line are tested as built), checks
// types and style, runs the tests, and ends with one line that counts.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ENGINES, isInstalled } from './servers.ts';

const root = new URL('..', import.meta.url).pathname;
const bin = join(root, 'node_modules/.bin');
const report = join(root, '.cache/tests.json');

const steps: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ['build', 'npm', 'run', '--silent', 'build'],
  ['types', join(bin, 'tsc'), '--noEmit'],
  ['style', join(bin, 'biome'), 'check', '.'],
];

const failedSteps = steps.filter(([name, command, ...args]) => {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) console.log(`${name} failed\n${stdout}${stderr}`);
  return status !== 0;
});

mkdirSync(join(root, '.cache'), { recursive: true });
rmSync(report, { force: true });
const vitest = [
  join(root, 'node_modules/vitest/vitest.mjs'),
  'run',
  ...['--config', join(root, 'test/vitest.config.ts')],
  ...['--reporter', 'default', '--reporter', 'json', '--outputFile.json', report],
  ...process.argv.slice(2),
];
const { status } = spawnSync(process.execPath, vitest, { cwd: root, stdio: 'inherit' });

if (!existsSync(join(root, '../shared/vectors'))) {
  console.log('not tested here: the shared examples and documents, which lie beside the project');
}
const untested = ENGINES.filter((engine) => !isInstalled(engine));
if (untested.length > 0) {
  console.log(`not tested here, as their servers are not installed: ${untested.join(', ')}`);
}
const isComplete = untested.length === 0 || process.env['CI'] === undefined;
const counts = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : {};
const passed = (counts.numPassedTests ?? 0) + steps.length - failedSteps.length;
// A run that ends badly without a failed test (a file that does not load, a stray rejection) counts.
const failed =
  Math.max(counts.numFailedTests ?? 0, status === 0 ? 0 : 1) +
  failedSteps.length +
  (isComplete ? 0 : untested.length);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
