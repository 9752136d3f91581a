// The test commands: `node test/run.ts LANE`, and what comes after the lane goes to vitest. A lane is `unit`,
// `engines` or `long`; `all` of them, each test once; `built`, the same on a `dist` that is there; `databases`, the
// stores on each database that docs/support.md lists; or `ci`, what one push needs: checks, documentation, unit,
// engines, two runtimes and a part of long. The last line counts.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { differencesOf, outcomesOf, type TestReport, writeTables } from './databases.ts';
import { ENGINES, isInstalled, LONG_SERVERS } from './servers.ts';

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
  /** Only tests whose full name matches, by whatever project. */
  readonly named?: string;
}
interface Lane {
  readonly before?: readonly Step[];
  /** What takes one core only. */
  readonly meanwhile?: readonly Step[];
  readonly runs: readonly Run[];
  /** Whether its last two runs cover each database that docs/support.md lists. */
  readonly isOnAllDatabases?: true;
}

const LONG = ['long', 'ways', 'faults', 'growth'];
const EVERYTHING: Run = {
  projects: ['unit', 'isolated', 'engines', ...LONG],
  env: { LAW_RUNS: process.env['LAW_RUNS'] ?? '1000' },
};
const servers: Step = ['servers of npm', 'node .dev/run.cjs servers -- true'];
/** The tests of PostgreSQL once more, on another version. */
const POSTGRES_FROM_NPM: Run = {
  projects: ['engines'],
  named: 'PostgreSQL',
  files: ['test/stores/'],
  env: { TEST_SERVERS: 'postgres', TEST_POSTGRES: 'npm' },
};
const UNIT: Run = { projects: ['unit', 'isolated'], env: { TEST_SERVERS: 'none' } };

const LANES: Readonly<Record<string, Lane>> = {
  unit: { meanwhile: [typesOfSources, page], runs: [UNIT] },
  engines: { runs: [{ projects: ['engines'] }] },
  long: { before: [servers, build], runs: [{ projects: [...LONG, 'laws'] }] },
  all: {
    before: [servers, build, typesOfBuilt, page],
    runs: [EVERYTHING, POSTGRES_FROM_NPM],
    isOnAllDatabases: true,
  },
  built: {
    before: [servers, typesOfBuilt, page],
    runs: [EVERYTHING, POSTGRES_FROM_NPM],
    isOnAllDatabases: true,
  },
  databases: {
    before: [servers],
    runs: [{ projects: ['engines', 'ways', 'long'], files: ['test/stores/'] }, POSTGRES_FROM_NPM],
    isOnAllDatabases: true,
  },
  ci: {
    before: [
      ['check', 'npm run check'],
      ['docs', 'npm run docs:build'],
      ['runtimes', 'npm run test:runtimes -- Node.js Bun'],
    ],
    runs: [UNIT, { projects: ['engines'] }, { projects: LONG, files: SMOKE }],
  },
};

const [name = '', ...words] = process.argv.slice(2);
/** Writes the tables of databases instead of comparing them. */
const isWriting = words.includes('--write');
const args = words.filter((word) => word !== '--write');
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

const reports: TestReport[] = [];

async function test({ projects, files = [], env, named }: Run): Promise<Counts> {
  rmSync(report, { force: true });
  const command = [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    ...['--config', join(root, 'test/vitest.config.ts')],
    ...['--reporter', 'default', '--reporter', 'json', '--outputFile.json', report],
    ...projects.flatMap((project) => ['--project', project]),
    ...(named === undefined ? [] : ['--testNamePattern', named]),
    ...files,
    ...args,
  ];
  const child = spawn(process.execPath, command, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: 'inherit',
  });
  const [code] = await once(child, 'close');
  const counts = existsSync(report)
    ? JSON.parse(readFileSync(report, 'utf8'))
    : { testResults: [] };
  reports.push(counts);
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
if (lane.isOnAllDatabases && args.length === 0) {
  const [everything, fromNpm] = reports.slice(-2) as [TestReport, TestReport];
  const outcomes = outcomesOf(everything, fromNpm);
  if (isWriting) writeTables(outcomes);
  const differences = differencesOf(outcomes);
  if (differences.length > 0) {
    console.log('docs/support.md says what did not run (-), or not what ran (+):');
    console.log(differences.join('\n'));
  }
  counts.push({ passed: 0, failed: differences.length });
}
const isLong = name === 'long' || lane.isOnAllDatabases;
const needed = [...ENGINES, 'pgbouncer' as const, ...(isLong ? LONG_SERVERS : [])];
const untested = needed.filter((server) => !isInstalled(server));
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
