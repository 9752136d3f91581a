// Mutation tests, all parts or some by name: `npm run mutation -- [scope | part …]`. Each part is
// measured by the tests that are meant for it, one after the other, and only what has changed since the
// last time. Ends with a table, and with 1 where a part is below its goal.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GOALS, PARTS, type PartName, partsNamed } from './parts.ts';

const root = join(import.meta.dirname, '../..');
const results = join(root, '.cache/mutation');
const stryker = join(root, 'node_modules/@stryker-mutator/core/bin/stryker.js');

interface Score {
  readonly part: PartName;
  readonly detected: number;
  readonly survived: number;
  /** At load time, and what is for people: not tried. */
  readonly ignored: number;
  /** What cannot even be loaded, or compiled: neither killed nor survived. */
  readonly broken: number;
}

mkdirSync(results, { recursive: true });
const scores = partsNamed(process.argv.slice(2)).map((part) => {
  run(part);
  return scoreOf(part);
});
say(
  '\n| part | killed | survived | not tried | score | goal |\n| --- | --- | --- | --- | --- | --- |',
);
for (const score of scores) {
  const { part, detected, survived, ignored, broken } = score;
  const goal = GOALS[part];
  say(
    `| ${part} | ${detected} | ${survived} | ${ignored + broken} | ${percent(score)} % | ${goal} % |`,
  );
}
const sum = (of: (score: Score) => number): number => scores.reduce((all, one) => all + of(one), 0);
const detected = sum((score) => score.detected);
const survived = sum((score) => score.survived);
say(`| all of these | ${detected} | ${survived} | | ${percent({ detected, survived })} % | 80 % |`);
process.exitCode = scores.every((score) => Number(percent(score)) >= GOALS[score.part]) ? 0 : 1;

function run(part: PartName): void {
  const { mutate } = PARTS[part];
  const args = [
    ...[stryker, 'run', join(root, 'test/mutation/stryker.config.json')],
    ...['--mutate', mutate.join(','), '--incrementalFile', fileOf(part)],
  ];
  // Few runs of each law: a mutant that a law would show is shown soon or by another test.
  const env = { MUTATION_PART: part, TEST_SERVERS: 'none', LAW_RUNS: '30', SCHEDULES: '100' };
  say(`${part}: ${mutate.join(', ')}`);
  const { status } = spawnSync(process.execPath, args, {
    cwd: root,
    env: { ...process.env, FUZZ_RUNS: '30', ...env },
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error(`the mutation tests of ${part} did not run`);
}

interface Mutant {
  readonly status: string;
}

function scoreOf(part: PartName): Score {
  const { files } = JSON.parse(readFileSync(fileOf(part), 'utf8')) as {
    readonly files: Readonly<Record<string, { readonly mutants: readonly Mutant[] }>>;
  };
  const all = Object.values(files).flatMap(({ mutants }) => mutants);
  const count = (...statuses: readonly string[]): number =>
    all.filter(({ status }) => statuses.includes(status)).length;
  return {
    part,
    detected: count('Killed', 'Timeout'),
    survived: count('Survived', 'NoCoverage'),
    ignored: count('Ignored'),
    broken: count('RuntimeError', 'CompileError'),
  };
}

function percent({ detected, survived }: Pick<Score, 'detected' | 'survived'>): string {
  return ((100 * detected) / Math.max(1, detected + survived)).toFixed(1);
}

function fileOf(part: PartName): string {
  return join(results, `${part}.incremental.json`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
