import { SCANNED_BATCH } from '../bounds.ts';
import { TokenError } from '../errors.ts';
import { positionOf } from '../ports/token-store.ts';
import { nextTurn } from '../time/deadline.ts';
import { recordBytes, type TokenRecord } from '../token/record.ts';
import type { CheckedStore } from './checked-store.ts';
import type { Place } from './cursor.ts';
import { isLast, Page, type Scan } from './scan.ts';

/** Tokens that match the filter of a list by name or last use. @bound */
export const MAX_SORTED_TOKENS = 10_000;

/** Tokens that a list by name or last use looks at for its filter. @bound */
export const MAX_SORTED_FROM = 100_000;

/** Bytes of scopes, metadata and limits that a list by name or last use looks at for its filter. @bound */
export const MAX_SORTED_BYTES = 67_108_864;

/** A page of records in an order that no store has. */
export interface Sorting extends Scan {
  /** What each record is ordered by, ascending; those with an empty key come last. */
  readonly keysOf: (records: readonly TokenRecord[]) => Promise<readonly string[]>;
  readonly after: Place | undefined;
}

/** The records of a sorted page, and the place at which the next one goes on, if there is more. */
export interface Sorted {
  readonly records: readonly TokenRecord[];
  readonly last: Place | undefined;
}

/**
 * Reads all records of a filter in batches, and keeps those of one page. Leaves turns to others between batches.
 *
 * @throws {TokenError} `invalid_request` for a filter with too many tokens
 */
export async function sorted(
  store: CheckedStore,
  { query, limit, select, keysOf, after }: Sorting,
): Promise<Sorted> {
  const kept = new FirstPlaces(limit, query.maxBytes);
  let { after: position } = query;
  let [looked, bytes, matched] = [0, 0, 0];
  for (;;) {
    const pageQuery = { ...query, after: position, limit: SCANNED_BATCH };
    const batch = await store.page(pageQuery, store.deadline());
    looked += batch.length;
    for (const record of batch) bytes += recordBytes(record);
    const isWanted = await select?.(batch);
    const records = batch.filter((_, at) => isWanted?.[at] !== false);
    matched += records.length;
    const isOver = looked > MAX_SORTED_FROM || bytes > MAX_SORTED_BYTES;
    if (isOver || matched > MAX_SORTED_TOKENS) throw tooMany();
    const keys = await keysOf(records);
    for (const [at, record] of records.entries()) {
      const placed = { key: keys[at] ?? '', id: record.id, record };
      if (after === undefined || compare(placed, after) > 0) kept.add(placed);
    }
    const last = batch.at(-1);
    if (last === undefined || isLast(batch, pageQuery)) return kept.page();
    position = positionOf(last);
    if (store.isLocal) await nextTurn();
  }
}

interface Placed extends Place {
  readonly record: TokenRecord;
}

/** The first places of a list that is not known as a whole yet: those of a page, and one more. */
class FirstPlaces {
  readonly #limit: number;
  readonly #maxBytes: number;
  readonly #places: Placed[] = [];
  #bytes = 0;

  constructor(limit: number, maxBytes: number) {
    this.#limit = limit;
    this.#maxBytes = maxBytes;
  }

  add(placed: Placed): void {
    const places = this.#places;
    let [low, high] = [0, places.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(places[middle] as Placed, placed) < 0) low = middle + 1;
      else high = middle;
    }
    places.splice(low, 0, placed);
    this.#bytes += recordBytes(placed.record);
    while (this.#isBeyond()) this.#bytes -= recordBytes((places.pop() as Placed).record);
  }

  /** Whether all places but the last one have more than a page. */
  #isBeyond(): boolean {
    const last = this.#places.at(-1);
    const others = this.#places.length - 1;
    if (last === undefined || others < 2) return others > this.#limit;
    return others > this.#limit || this.#bytes - recordBytes(last.record) > this.#maxBytes;
  }

  page(): Sorted {
    const page = new Page(this.#limit, this.#maxBytes);
    let last: Place | undefined;
    for (const placed of this.#places) {
      if (!page.add(placed.record)) return { records: page.records, last };
      last = placed;
    }
    return { records: page.records, last: undefined };
  }
}

/** By key, with empty ones last, and then by id. */
function compare(one: Place, other: Place): number {
  if (one.key === other.key) return one.id < other.id ? -1 : Number(one.id > other.id);
  if (one.key === '' || other.key === '') return one.key === '' ? 1 : -1;
  return one.key < other.key ? -1 : 1;
}

function tooMany(): TokenError {
  return new TokenError(
    'invalid_request',
    `sort orders at most ${MAX_SORTED_TOKENS} tokens in this way; here are more, or large ones: narrow the list by scope, domain, name, state or parent, or sort by created or expire`,
    { member: 'sort', limit: MAX_SORTED_TOKENS },
  );
}
