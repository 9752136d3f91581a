// Mutation tests, all parts or some by name: `npm run mutation -- [--share N] [scope | part …]`. Each part
// is measured by the tests that are meant for it, one after the other, and only what has changed since
// the last time. `--share 4` tries a fourth of the lines, in blocks that are spread evenly: an estimate
// in a fourth of the time. Ends with a table, and with 1 if a part is below its goal.
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CORE_GOAL, GOAL, goalOf, PARTS, type PartName, partsNamed, SCOPE } from './parts.ts';

const root = join(import.meta.dirname, '../..');
const results = join(root, '.cache/mutation');
const BLOCK_LINES = 12;
const stryker = join(root, 'test/mutation/node_modules/@stryker-mutator/core/bin/stryker.js');

interface Score {
  readonly name: string;
  readonly detected: number;
  readonly survived: number;
  /** What runs at load time, what is for people, and what cannot even be loaded. */
  readonly untried: number;
  readonly goal: number;
}

const { values, positionals } = parseArgs({
  options: { share: { type: 'string', default: '1' } },
  allowPositionals: true,
});
const share = Number(values.share);
if (!Number.isInteger(share) || share < 1) throw new Error('--share must be a whole number from 1');

mkdirSync(results, { recursive: true });
const scores = partsNamed(positionals).map((part) => {
  run(part);
  return scoreOf(part);
});
const ofScope = scores.filter(({ name }) => SCOPE.includes(name as PartName));
const isWholeScope = ofScope.length === SCOPE.length;
const rows = [
  ...scores,
  ...(isWholeScope ? [together('all of src/scope', ofScope, CORE_GOAL)] : []),
  ...(scores.length === Object.keys(PARTS).length ? [together('all', scores, GOAL)] : []),
];
say('\n| part | mutants | killed | survived | not tried | score | goal |');
say('| --- | --- | --- | --- | --- | --- | --- |');
for (const row of rows) {
  const { name, detected, survived, untried, goal } = row;
  const counts = [detected + survived + untried, detected, survived, untried].join(' | ');
  say(`| ${name} | ${counts} | ${percent(row)} % | ${goal} % |`);
}
process.exitCode = rows.every((row) => Number(percent(row)) >= row.goal) ? 0 : 1;

function run(part: PartName): void {
  const { mutate } = PARTS[part];
  const args = [
    ...[stryker, 'run', join(root, 'test/mutation/stryker.config.json')],
    // Names, because a comma in braces would end a pattern.
    ...[
      '--mutate',
      globSync([...mutate], { cwd: root })
        .flatMap(chosenIn)
        .join(','),
      '--incrementalFile',
      fileOf(part),
    ],
  ];
  say(`${part}: ${mutate.join(', ')}`);
  const { status } = spawnSync(process.execPath, args, {
    cwd: root,
    env: { ...process.env, MUTATION_PART: part, TEST_SERVERS: 'none' },
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error(`the mutation tests of ${part} did not run`);
}

/** A file, or with `--share` the blocks of its lines that are tried. */
function chosenIn(file: string): string[] {
  if (share === 1) return [file];
  const lines = readFileSync(join(root, file), 'utf8').split('\n').length;
  const blocks = Array.from({ length: Math.ceil(lines / BLOCK_LINES) }, (_, index) => index);
  // Not the same block of each file: the first ones hold imports.
  return blocks
    .filter((index) => (index + file.length) % share === 0)
    .map((index) => `${file}:${index * BLOCK_LINES + 1}-${(index + 1) * BLOCK_LINES}`);
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
    name: part,
    detected: count('Killed', 'Timeout'),
    survived: count('Survived', 'NoCoverage'),
    untried: count('Ignored', 'RuntimeError', 'CompileError'),
    goal: goalOf(part),
  };
}

function together(name: string, parts: readonly Score[], goal: number): Score {
  const sum = (of: (score: Score) => number): number =>
    parts.reduce((all, one) => all + of(one), 0);
  return {
    name,
    detected: sum((score) => score.detected),
    survived: sum((score) => score.survived),
    untried: sum((score) => score.untried),
    goal,
  };
}

function percent({ detected, survived }: Pick<Score, 'detected' | 'survived'>): string {
  return ((100 * detected) / Math.max(1, detected + survived)).toFixed(1);
}

function fileOf(part: PartName): string {
  return join(results, `${part}${share === 1 ? '' : `.${share}`}.incremental.json`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
