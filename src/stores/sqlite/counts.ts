import type { CountQuery, TokenCounts } from '../../ports/token-store.ts';
import { nextTurn } from '../../time/deadline.ts';
import { cellsOf, type SqliteValue } from './client.ts';
import type { Held, HeldStatements, Statements } from './statements.ts';

/** Reads with the statements of the open database. */
export type ReadWith = <Result>(
  work: (statements: Statements) => Result,
) => Result | Promise<Result>;

/** Index entries that a count reads in one turn of the event loop: about a millisecond. */
const COUNT_STEP = 20_000;
/** Earlier and later than any date. */
const [EARLIEST, LATEST] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];

/** Counts the tokens of a holder of a quota, in steps. */
export async function countHeld(query: CountQuery, read: ReadWith): Promise<TokenCounts> {
  const { account, root, liveAt, most } = query;
  const now = liveAt.getTime();
  const countOf = (held: Held, limit: number, { after = [EARLIEST], until = LATEST }: Span = {}) =>
    count({ within: [account, root ?? null, until], after, limit }, (work) =>
      read((statements) => work(statements.held[held])),
    );
  const live = await countOf('open', most.live, { after: [now] });
  let ended = await countOf('open', most.ended, { until: now });
  ended += await countOf('revoked', most.ended - ended);
  ended += await countOf('imported', most.ended - ended, { after: ['', EARLIEST] });
  return { live, ended };
}

interface Span {
  /** The position before the first entry. */
  readonly after?: readonly SqliteValue[];
  /** The last instant. */
  readonly until?: number;
}

interface Count {
  /** The account, the root and the last instant. */
  readonly within: readonly SqliteValue[];
  readonly after: readonly SqliteValue[];
  readonly limit: number;
}

async function count(
  { within, after, limit }: Count,
  read: <Result>(work: (statements: HeldStatements) => Result) => Result | Promise<Result>,
): Promise<number> {
  let counted = 0;
  let position = after;
  while (counted < limit) {
    const step = Math.min(COUNT_STEP, limit - counted);
    const list = position.length === after.length ? 'later' : 'same';
    const values = [...within, ...position];
    const entry = await read(({ [list]: { skip } }) => skip.get(...values, step));
    if (entry !== undefined) {
      counted += step;
      position = cellsOf(entry) as readonly SqliteValue[];
      if (counted < limit) await nextTurn();
      continue;
    }
    counted += await read(({ [list]: { rest } }) => Number(cellsOf(rest.get(...values))[0]));
    if (list === 'later') break;
    // All entries of that instant are counted.
    position = position.slice(0, after.length);
  }
  return counted;
}

/** How many records are looked at, and how many of them in one turn of the event loop. */
const [LATEST_RECORDS, RECORDS_A_TURN] = [1000, 100];

/** Whether one of the records that were inserted last was created or rotated in a span of time. */
export async function hasInstant(
  [from, before]: readonly [from: number, before: number],
  read: ReadWith,
): Promise<boolean> {
  const isWithin = (time: unknown) =>
    time !== null && Number(time) >= from && Number(time) < before;
  let position: unknown = LATEST;
  for (let seen = 0; seen < LATEST_RECORDS; seen += RECORDS_A_TURN) {
    const rows = await read(({ instants }) => instants.all(Number(position), RECORDS_A_TURN));
    const cells = Array.from(rows, cellsOf);
    if (cells.some(([created, rotated]) => isWithin(created) || isWithin(rotated))) return true;
    if (cells.length < RECORDS_A_TURN) return false;
    position = cells.at(-1)?.[2];
    await nextTurn();
  }
  return false;
}
