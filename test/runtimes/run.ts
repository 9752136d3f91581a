// Tries the packed package on every runtime, and holds the table in docs/support.md against what ran.
//
//   npm run test:runtimes                  all of it
//   npm run test:runtimes -- Node.js Bun   the lanes of these
//   npm run test:runtimes -- --write       and writes the table
//   npm run test:runtimes -- --tarball=A   a package that is there, instead of packing one
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { allLanes, type Lane } from './lanes.ts';
import { installTools, newProject, type Project } from './project.ts';

const DOCUMENT = new URL('../../docs/support.md', import.meta.url);
const TABLE = /(?<=<!-- runtimes: begin -->\n).*(?=<!-- runtimes: end -->)/s;

interface Outcome {
  readonly lane: Lane;
  readonly version: string;
  /** In words; absent when it passed. */
  readonly failure?: string;
  readonly isMissing: boolean;
  readonly seconds: number;
}

const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const isWriting = process.argv.includes('--write');
const given = process.argv.find((word) => word.startsWith('--tarball='))?.replace(/^.*?=/, '');

const started = performance.now();
const [project] = await Promise.all([newProject(given), installTools()]);
console.log(`packed and installed in ${secondsSince(started).toFixed(1)} s`);
const lanes = allLanes().filter(({ runtime }) => words.length === 0 || words.includes(runtime));
let outcomes: Outcome[];
try {
  outcomes = await inTurn(lanes, (lane) => tried(lane, project));
} finally {
  project.remove();
}

const isPartial = words.length > 0;
const tableFailure = isPartial ? undefined : checkTable(outcomes);
const failures = outcomes.filter(({ failure, isMissing }) =>
  isMissing ? process.env['CI'] !== undefined : failure !== undefined,
);
console.log(`\n${overview(outcomes)}`);
for (const { lane, failure } of failures) {
  console.log(`\n${lane.runtime}, ${lane.format} failed\n${failure ?? 'it cannot be had here'}`);
}
if (tableFailure !== undefined) console.log(`\n${tableFailure}`);
const failed = failures.length + (tableFailure === undefined ? 0 : 1);
const passed =
  outcomes.filter(({ failure, isMissing }) => failure === undefined && !isMissing).length +
  (isPartial || tableFailure !== undefined ? 0 : 1);
console.log(`\n${secondsSince(started).toFixed(0)} s`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

async function tried(lane: Lane, project: Project): Promise<Outcome> {
  const start = performance.now();
  const ended = (version: string, rest: { failure?: string; isMissing?: boolean }): Outcome => ({
    lane,
    version,
    isMissing: false,
    seconds: secondsSince(start),
    ...rest,
  });
  if (lane.binary === undefined) return ended('', { isMissing: true });
  let version = '';
  try {
    version = (await lane.version?.(lane.binary)) ?? '';
    await lane.run(lane.binary, project);
    return ended(version, {});
  } catch (error) {
    return ended(version, { failure: error instanceof Error ? error.message : String(error) });
  }
}

/** As many at once as there are processors; the outcomes are in order. */
async function inTurn<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const rest = items.entries();
  const worker = async () => {
    for (const [place, item] of rest) results[place] = await work(item);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  return results;
}

function overview(all: readonly Outcome[]): string {
  return all
    .map(({ lane, version, failure, isMissing, seconds }) => {
      const outcome = isMissing ? 'not run here' : failure === undefined ? 'passed' : 'FAILED';
      const names = [lane.runtime.padEnd(11), version.padEnd(15), lane.format.padEnd(27)];
      return `${names.join('')}${outcome.padEnd(13)}${seconds.toFixed(1).padStart(5)} s`;
    })
    .join('\n');
}

/** What is wrong with the table of the document; nothing when it was to be written. */
function checkTable(all: readonly Outcome[]): string | undefined {
  const document = readFileSync(DOCUMENT, 'utf8');
  const written = TABLE.exec(document)?.[0];
  if (written === undefined) return 'docs/support.md has no place for the table';
  const ran = rowsOf(all.filter(({ failure, isMissing }) => failure === undefined && !isMissing));
  if (isWriting) {
    writeFileSync(
      DOCUMENT,
      document.replace(TABLE, () => tableOf(ran)),
    );
    return undefined;
  }
  // Where a runtime cannot be had, its rows cannot be held against anything.
  const unknown = new Set(all.filter(({ isMissing }) => isMissing).map(({ lane }) => lane.runtime));
  const known = (row: string) => ![...unknown].some((runtime) => row.startsWith(`| ${runtime} |`));
  const promised = written.split('\n').slice(2).filter(Boolean).filter(known);
  const kept = ran.filter(known);
  const wrong = [
    ...promised.filter((row) => !kept.includes(row)).map((row) => `- ${row}`),
    ...kept.filter((row) => !promised.includes(row)).map((row) => `+ ${row}`),
  ];
  if (wrong.length === 0) return undefined;
  return `docs/support.md says what did not run (-), or not what ran (+):\n${wrong.join('\n')}`;
}

/** One row for each runtime and version. */
function rowsOf(all: readonly Outcome[]): string[] {
  const formats = new Map<string, string[]>();
  for (const { lane, version } of all) {
    if (lane.version === undefined) continue;
    const line = `| ${lane.runtime} | ${version.split('.').slice(0, 2).join('.')} |`;
    formats.set(line, [...(formats.get(line) ?? []), lane.format]);
  }
  return [...formats].map(([line, names]) => `${line} ${names.join(', ')} |`);
}

function tableOf(rows: readonly string[]): string {
  return ['| runtime | version | tried as |', '| --- | --- | --- |', ...rows, ''].join('\n');
}

function secondsSince(start: number): number {
  return (performance.now() - start) / 1000;
}
