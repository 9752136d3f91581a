// The test commands: `node test/run.ts LANE`, and what comes after the lane goes to vitest. A lane is `unit`,
// `engines` or `long`; `all` of them, each test once; `built`, the same on a `dist` that is there; or `ci`, what one
// push needs: checks, documentation, unit, engines, two runtimes and a part of long. The last line counts.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ENGINES, isInstalled } from './servers.ts';

const root = new URL('..', import.meta.url).pathname;
const report = join(root, '.cache/tests.json');

/** One test or more of each kind that the long lane holds. */
const SMOKE = [
  'test/app/console/browser/sign-in.test.ts', // a browser
  'test/app/server/health.test.ts', // the service as a process
  'test/examples/examples.test.ts', // programs of the documentation
  'test/faults/kill.test.ts', // kill -9
  'test/http/hostile.test.ts', // hostile clients
  'test/package/contents.test.ts', // the built package
  'test/scope/growth.test.ts', // what must not grow
  'test/stores/rotation.test.ts', // random schedules on each engine
];

type Step = readonly [name: string, command: string];
const page: Step = ['types of the console', 'tsc --noEmit -p src/app/console/page'];
const typesOfBuilt: Step = ['types', 'tsc --noEmit'];
// Where nothing is built, examples import the sources.
const typesOfSources: Step = [
  'types',
  'tsc --noEmit --incremental --tsBuildInfoFile .cache/types.tsbuildinfo -p test/tsconfig.sources.json',
];
const build: Step = ['build', 'npm run --silent build'];

/** A call of vitest, with the projects of test/vitest.config.ts. */
interface Run {
  readonly projects: readonly string[];
  readonly files?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}
interface Lane {
  readonly before?: readonly Step[];
  /** What takes one core only. */
  readonly meanwhile?: readonly Step[];
  readonly runs: readonly Run[];
}

const LONG = ['long', 'ways', 'faults', 'growth'];
const EVERYTHING: Run = {
  projects: ['unit', 'isolated', 'engines', ...LONG],
  env: { LAW_RUNS: process.env['LAW_RUNS'] ?? '1000' },
};
const UNIT: Run = { projects: ['unit', 'isolated'], env: { TEST_SERVERS: 'none' } };

const LANES: Readonly<Record<string, Lane>> = {
  unit: { meanwhile: [typesOfSources, page], runs: [UNIT] },
  engines: { runs: [{ projects: ['engines'] }] },
  long: { before: [build], runs: [{ projects: [...LONG, 'laws'] }] },
  all: { before: [build, typesOfBuilt, page], runs: [EVERYTHING] },
  built: { before: [typesOfBuilt, page], runs: [EVERYTHING] },
  ci: {
    before: [
      ['check', 'npm run check'],
      ['docs', 'npm run docs:build'],
      ['runtimes', 'npm run test:runtimes -- Node.js Bun'],
    ],
    runs: [UNIT, { projects: ['engines'] }, { projects: LONG, files: SMOKE }],
  },
};

const [name = '', ...args] = process.argv.slice(2);
const lane = LANES[name];
if (lane === undefined) throw new Error(`name a lane: ${Object.keys(LANES).join(', ')}`);

interface Counts {
  readonly passed: number;
  readonly failed: number;
}

async function take([name, command]: Step): Promise<Counts> {
  const start = performance.now();
  const child = spawn(command, { cwd: root, shell: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => output.push(text));
  }
  const [code] = await once(child, 'close');
  const isPassed = code === 0;
  if (!isPassed) console.log(output.join(''));
  const seconds = ((performance.now() - start) / 1000).toFixed(0);
  console.log(`${name} ${isPassed ? 'passed' : 'failed'} in ${seconds} s`);
  return { passed: Number(isPassed), failed: Number(!isPassed) };
}

async function test({ projects, files = [], env }: Run): Promise<Counts> {
  rmSync(report, { force: true });
  const command = [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    ...['--config', join(root, 'test/vitest.config.ts')],
    ...['--reporter', 'default', '--reporter', 'json', '--outputFile.json', report],
    ...projects.flatMap((project) => ['--project', project]),
    ...files,
    ...args,
  ];
  const child = spawn(process.execPath, command, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: 'inherit',
  });
  const [code] = await once(child, 'close');
  const counts = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : {};
  return {
    passed: counts.numPassedTests ?? 0,
    // A run that ends badly without a failed test (a file that does not load, a stray rejection) counts.
    failed: Math.max(counts.numFailedTests ?? 0, code === 0 ? 0 : 1),
  };
}

async function inTurn<Work>(works: readonly Work[], doOne: (work: Work) => Promise<Counts>) {
  const counts: Counts[] = [];
  for (const work of works) counts.push(await doOne(work));
  return counts;
}

mkdirSync(join(root, '.cache'), { recursive: true });
const meanwhile = inTurn(lane.meanwhile ?? [], take);
const counts = [
  ...(await inTurn(lane.before ?? [], take)),
  ...(await inTurn(lane.runs, test)),
  ...(await meanwhile),
];

if (!existsSync(join(root, '../shared/vectors'))) {
  console.log('not tested here: the shared examples and documents, which lie beside the project');
}
const untested = ENGINES.filter((engine) => !isInstalled(engine));
if (untested.length > 0) {
  console.log(`not tested here, as their servers are not installed: ${untested.join(', ')}`);
}
const isRequired =
  process.env['CI'] !== undefined && lane.runs.some(({ env }) => !env?.['TEST_SERVERS']);
if (isRequired) counts.push({ passed: 0, failed: untested.length });
const sum = (of: (one: Counts) => number) => counts.reduce((all, one) => all + of(one), 0);
const failed = sum((one) => one.failed);
console.log(`${sum((one) => one.passed)} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
