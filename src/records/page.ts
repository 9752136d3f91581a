import type { PageQuery } from '../ports/token-store.ts';
import { performance } from '../time/timers.ts';
import { recordBytes, type TokenRecord } from '../token/record.ts';
import { bytesOfLists } from '../token/size.ts';

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
export class TimeBudget {
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
