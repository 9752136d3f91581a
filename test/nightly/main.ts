// Runs the long forms of the tests, two at a time: all of them, or the parts you name.
// `npm run test:nightly -- [part …] [--share 0.1] [--seed 7]`. Prints a table at the end and exits with 1 if
// anything failed. The output of each part is in `.cache/nightly`.
import { spawn } from 'node:child_process';
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SURFACES } from '../fuzz/surfaces.ts';

const root = join(import.meta.dirname, '../..');
const logs = join(root, '.cache/nightly');
const INPUTS = 10_000_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { share: { type: 'string' }, seed: { type: 'string' } },
});
const share = Number(values.share ?? 1);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));

interface Job {
  readonly part: string;
  readonly name: string;
  /** The number of cases, as the table shows it. */
  readonly cases: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the job runs alone, because it measures times or kills servers. */
  readonly isAlone?: boolean;
}

/** A small share must not round down to nothing. */
const LEAST = 10;
const sized = (cases: number): number => Math.max(LEAST, Math.round(cases * share));

/** Test files, with the environment variable that sets how many cases they run. */
function tests(
  part: string,
  files: readonly string[],
  [variable, cases]: readonly [variable: string, cases: number],
  more: { project?: string; isAlone?: boolean; servers?: boolean; only?: string } = {},
): Job {
  const { project = '!laws', isAlone = false, servers = false, only } = more;
  const name = files.length === 1 ? (files[0] as string).replace('.test.ts', '') : part;
  const args = [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    ...['--config', join(root, 'test/vitest.config.ts'), '--project', project],
    ...(isAlone ? [] : ['--maxWorkers', '1']),
    ...['--reporter', 'default', '--reporter', 'json'],
    ...['--outputFile.json', join(logs, `${fileName(part, name)}.json`)],
    ...(only === undefined ? [] : ['-t', only]),
    ...files.map((file) => `test/${file}`),
  ];
  const env = { [variable]: String(sized(cases)), ...(!servers && { TEST_SERVERS: 'none' }) };
  return { part, name, cases: `${variable} ${count(sized(cases))}`, args, env, isAlone };
}

const fuzzers = Object.keys(SURFACES).map((name): Job => {
  const cases = sized(INPUTS);
  const args = [join(root, 'test/fuzz/main.ts'), name, String(cases), String(seed)];
  return { part: 'fuzz', name, cases: `${count(cases)} inputs`, args };
});

/** Starts the longest jobs first, so that no core is idle at the end. */
const LONGEST: readonly string[] = ['http', 'forms', 'cursors'];
const faults = { project: 'faults', isAlone: true };

const JOBS: readonly Job[] = [
  tests('laws', ['scope'], ['LAW_RUNS', 100_000], { project: 'laws' }),
  ...fuzzers.toSorted((a, b) => LONGEST.indexOf(b.name) - LONGEST.indexOf(a.name)),
  tests('properties', ['http/fuzz.test.ts'], ['LAW_RUNS', 50_000]),
  tests('schedules', ['records/reader.test.ts'], ['LAW_RUNS', 50_000], {
    only: 'no interleaving',
  }),
  tests('rotations', ['service/rotation.test.ts'], ['LAW_RUNS', 200_000], { only: 'no schedule' }),
  tests('rotations', ['stores/rotation.test.ts'], ['ENGINE_SCHEDULES', 500], {
    only: 'no schedule',
    servers: true,
  }),
  tests('lineages', ['service/lineage.test.ts'], ['LAW_RUNS', 500_000], {
    only: 'never outlive',
  }),
  tests('lineages', ['service/lineage-scopes.test.ts'], ['LAW_RUNS', 500_000]),
  tests('lineages', ['stores/lineage.test.ts'], ['ENGINE_SCHEDULES', 200], { servers: true }),
  tests('lineages', ['service/lineage-revocation.test.ts'], ['DESCENDANTS', 10_000]),
  tests('lineages', ['stores/lineage-revocation.test.ts'], ['DESCENDANTS', 10_000], {
    servers: true,
  }),
  {
    part: 'soak',
    name: 'soak',
    cases: `${count(sized(400_000))} calls`,
    args: [join(root, 'test/nightly/soak.ts'), String(sized(400_000))],
  },
  tests('kill', ['faults/kill.test.ts'], ['KILL_CYCLES', 500], faults),
  tests('kill', ['faults/rotation.test.ts'], ['KILL_CYCLES', 500], faults),
  tests('kill', ['faults/kill-server.test.ts'], ['KILL_CYCLES', 20], { ...faults, servers: true }),
  tests('limits', ['limits/addresses.test.ts'], ['LAW_RUNS', 30_000], { only: 'arithmetic' }),
  tests('limits', ['limits/leases.test.ts'], ['LAW_RUNS', 50_000], { only: 'never use more' }),
  tests('limits', ['faults/limits.test.ts'], ['LIMIT_SCHEDULES', 200], {
    ...faults,
    servers: true,
    only: 'is killed',
  }),
  tests('limits', ['faults/limits.test.ts'], ['LIMIT_WINDOWS', 200], {
    ...faults,
    servers: true,
    only: '4 processes',
  }),
  tests('outages', ['faults/stopped.test.ts'], ['STOPPED_SECONDS', 120], faults),
  tests('console', ['app/console/browser/scale.test.ts'], ['CONSOLE_TOKENS', 10_000], {
    project: 'long',
    isAlone: true,
  }),
  tests('growth', [], ['BODIES', 100_000], { project: 'growth', isAlone: true }),
  tests('growth', ['usage/growth.test.ts'], ['OUTAGE_SECONDS', 3600], {
    project: 'growth',
    isAlone: true,
    only: 'minutes without',
  }),
];

interface Row {
  readonly job: Job;
  readonly tests: number | undefined;
  readonly failures: number;
  readonly minutes: number;
}

const parts = [...new Set(JOBS.map(({ part }) => part))];
const unknown = positionals.find((name) => !parts.includes(name));
if (unknown !== undefined || !(share > 0)) {
  const reason =
    unknown === undefined ? '--share must be above 0' : `there is no part "${unknown}"`;
  say(`${reason}; name no part to run all, or some of ${parts.join(', ')}`);
  process.exit(2);
}
const wanted = JOBS.filter(({ part }) => positionals.length === 0 || positionals.includes(part));
mkdirSync(logs, { recursive: true });
say(`seed ${seed}`);

const rows = [
  ...(await runAll(
    wanted.filter(({ isAlone }) => isAlone !== true),
    Math.min(2, availableParallelism()),
  )),
  ...(await runAll(
    wanted.filter(({ isAlone }) => isAlone === true),
    1,
  )),
];
report(rows);
process.exitCode = rows.some(({ failures }) => failures > 0) ? 1 : 0;

async function runAll(jobs: readonly Job[], concurrency: number): Promise<Row[]> {
  const waiting = [...jobs];
  const done: Row[] = [];
  const lane = async () => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      const row = await run(job);
      say(`${job.part} ${job.name}: ${row.failures === 0 ? 'passed' : 'FAILED'}`);
      done.push(row);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  return done.toSorted((a, b) => JOBS.indexOf(a.job) - JOBS.indexOf(b.job));
}

async function run(job: Job): Promise<Row> {
  const start = performance.now();
  const log = createWriteStream(logOf(job));
  const child = spawn(process.execPath, job.args, {
    cwd: root,
    env: { ...process.env, ...job.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  await new Promise<void>((resolve) => log.end(resolve));
  const counts = code === null ? undefined : countsOf(job);
  return {
    job,
    tests: counts && counts.numPassedTests + counts.numFailedTests,
    failures: Math.max(counts?.numFailedTests ?? 0, code === 0 ? 0 : 1),
    minutes: (performance.now() - start) / 60_000,
  };
}

interface Counts {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
}

function countsOf({ part, name, args }: Job): Counts | undefined {
  if (!args.includes('--outputFile.json')) return undefined;
  try {
    return JSON.parse(readFileSync(join(logs, `${fileName(part, name)}.json`), 'utf8'));
  } catch {
    return undefined;
  }
}

function report(all: readonly Row[]): void {
  say('\n| part | what | cases | failures | minutes |\n| --- | --- | --- | --- | --- |');
  for (const { job, tests: many, failures, minutes } of all) {
    const cases = many === undefined ? job.cases : `${many} tests, ${job.cases}`;
    say(`| ${job.part} | ${job.name} | ${cases} | ${failures} | ${minutes.toFixed(1)} |`);
  }
  for (const { job, failures } of all) {
    if (failures === 0) continue;
    say(`\n${job.part} ${job.name} failed:\n${readFileSync(logOf(job), 'utf8').slice(-3000)}`);
  }
}

function fileName(part: string, name: string): string {
  return `${part}-${name.replaceAll('/', '-')}`;
}

function logOf({ part, name }: Job): string {
  return join(logs, `${fileName(part, name)}.log`);
}

function count(cases: number): string {
  return cases.toLocaleString('en-US');
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
