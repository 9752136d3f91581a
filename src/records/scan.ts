import { SCANNED_BATCH } from '../bounds.ts';
import { type PageQuery, type Position, positionOf } from '../ports/token-store.ts';
import { nextTurn } from '../time/deadline.ts';
import { performance } from '../time/timers.ts';
import { recordBytes, type TokenRecord } from '../token/record.ts';
import { bytesOfLists } from '../token/size.ts';
import type { CheckedStore } from './checked-store.ts';

/** Tokens that `list` looks at for one page when it filters by a scope. @bound */
export const MAX_SCANNED_TOKENS = 10_000;

/** Milliseconds of the event loop that one page of `list` takes before it ends early. @bound */
export const SCAN_BUDGET_MS = 50;

/** Which records to collect. */
export interface Scan {
  readonly query: Omit<PageQuery, 'limit'> & { readonly maxBytes: number };
  /** The most records. */
  readonly limit: number;
  /** Selects records; without it, all are wanted. */
  readonly select: Select | undefined;
}

/** Says of each record whether it is wanted. */
export type Select = (
  records: readonly TokenRecord[],
) => readonly boolean[] | Promise<readonly boolean[]>;

/** The records that a scan found, and the position at which the next one goes on, if there is more. */
export interface Scanned {
  readonly records: readonly TokenRecord[];
  readonly last: Position | undefined;
}

/**
 * Collects records page by page until there are enough, or too many bytes. A scan with a filter also
 * ends after a bounded number of records and of milliseconds of work in this process.
 */
export async function scan(store: CheckedStore, { query, limit, select }: Scan): Promise<Scanned> {
  const page = new Page(limit, query.maxBytes);
  const time = new TimeBudget(SCAN_BUDGET_MS);
  const until = store.deadline();
  const size = select === undefined ? limit + 1 : SCANNED_BATCH;
  const end = (last?: Position): Scanned => ({ records: page.records, last });
  let { after } = query;
  for (let pages = 1; ; pages++) {
    const pageQuery = { ...query, after, limit: size };
    const asked = store.page(pageQuery, until);
    // A local store has done its work in the call, which counts as time of this process.
    const records = await (store.isLocal ? asked : time.waitFor(asked));
    const selected = select?.(records);
    const isWanted = selected instanceof Promise ? await time.waitFor(selected) : selected;
    for (const [at, record] of records.entries()) {
      if (isWanted?.[at] !== false && !page.add(record)) return end(after);
      after = positionOf(record, query.order);
    }
    if (isLast(records, pageQuery)) return end();
    const isEnough = page.isFull || pages * SCANNED_BATCH >= MAX_SCANNED_TOKENS || time.isOver;
    if (isEnough) return end(after);
    if (store.isLocal) await time.waitFor(nextTurn());
  }
}

/** Collects records up to a number and a sum of bytes. */
export class Page {
  readonly records: TokenRecord[] = [];
  readonly #limit: number;
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(limit: number, maxBytes: number) {
    this.#limit = limit;
    this.#maxBytes = maxBytes;
  }

  /** Whether the record fitted. The first one always does, or a list would never get past it. */
  add(record: TokenRecord): boolean {
    if (this.records.length === this.#limit) return false;
    const bytes = this.#bytes + recordBytes(record);
    if (bytes > this.#maxBytes && this.records.length > 0) return false;
    this.#bytes = bytes;
    this.records.push(record);
    return true;
  }

  /** Whether no further record can fit. */
  get isFull(): boolean {
    return this.#bytes >= this.#maxBytes;
  }
}

/** Whether a store's answer is its last page. A store may end a page early only because of its bytes. */
export function isLast(
  records: readonly TokenRecord[],
  { limit, maxBytes = Number.POSITIVE_INFINITY }: PageQuery,
): boolean {
  if (records.length >= limit) return false;
  let bytes = 0;
  for (const record of records) bytes += bytesOfLists(record);
  return bytes < maxBytes;
}

/** A time budget for the work of this process. The time that it waits for a promise does not count. */
class TimeBudget {
  readonly #budgetMs: number;
  #spentMs = 0;
  #since = performance.now();

  constructor(budgetMs: number) {
    this.#budgetMs = budgetMs;
  }

  async waitFor<Answer>(answer: Promise<Answer>): Promise<Answer> {
    this.#spentMs += performance.now() - this.#since;
    try {
      return await answer;
    } finally {
      this.#since = performance.now();
    }
  }

  get isOver(): boolean {
    return this.#spentMs + performance.now() - this.#since >= this.#budgetMs;
  }
}
