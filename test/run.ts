// The test commands. `quick`: types, and all tests that need no servers and no processes. `all`: the
// build, types, and all tests. `built`: the same without the build. More arguments go to vitest. The last line counts.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ENGINES, isInstalled } from './servers.ts';

const root = new URL('..', import.meta.url).pathname;
const bin = join(root, 'node_modules/.bin');
const report = join(root, '.cache/tests.json');

const [mode, ...args] = process.argv.slice(2);
const isQuick = mode === 'quick';
type Step = readonly [name: string, command: string, ...args: string[]];
const tsc = join(bin, 'tsc');
const build: Step = ['build', 'npm', 'run', '--silent', 'build'];
const page: Step = [
  'types of the console',
  tsc,
  '--noEmit',
  '-p',
  join(root, 'src/app/console/page'),
];
const steps: readonly Step[] = isQuick
  ? // Where nothing is built, examples import the sources.
    [['types', tsc, '--noEmit', '-p', join(root, 'test/tsconfig.sources.json')], page]
  : [...(mode === 'built' ? [] : [build]), ['types', tsc, '--noEmit'], page];

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
  ...(isQuick ? ['--project', 'tests'] : []),
  ...args,
];
const env = isQuick ? { ...process.env, TEST_SERVERS: 'none' } : process.env;
const { status } = spawnSync(process.execPath, vitest, { cwd: root, env, stdio: 'inherit' });

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
