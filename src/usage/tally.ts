import type { TokenId } from '../token.ts';
import type { UsageDelta, UsageRecord } from '../usage-store.ts';

/** A count that is not written yet. */
export interface Entry {
  readonly id: TokenId;
  /** `undefined` for refusals. */
  readonly scope: string | undefined;
  count: number;
  lastAt: number;
}

/**
 * Counts that wait to be written, up to a number of them: then the oldest are dropped. An entry stays
 * until its count is known to be stored, so that a failed write has nothing to put back.
 */
export class Tally {
  readonly #maxEntries: number;
  /** In the order in which the tokens were first counted. */
  readonly #tokens = new Map<TokenId, Map<string | undefined, Entry>>();
  #size = 0;
  #dropped = 0;
  /**
   * While entries are dropped, goes on from the last token that lost one: a new iterator would first pass
   * over all the places that were freed before it, tens of thousands for each drop.
   */
  #oldest: Iterator<Map<string | undefined, Entry>> | undefined;
  /** What is left of that token. */
  #dropping: Map<string | undefined, Entry> | undefined;
  #completeSince = Number.NEGATIVE_INFINITY;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  /** The number of pairs of a token and a scope, and of tokens with refusals. */
  get size(): number {
    return this.#size;
  }

  /** The instant after the latest use that was dropped. Those since then are here, or were stored. */
  get completeSince(): number {
    return this.#completeSince;
  }

  /** Counts one use by a scope, or without a scope one refusal. */
  add(id: TokenId, scope: string | undefined, now: number): void {
    let entries = this.#tokens.get(id);
    if (entries === undefined) {
      entries = new Map();
      this.#tokens.set(id, entries);
    }
    const entry = entries.get(scope);
    if (entry === undefined) {
      entries.set(scope, { id, scope, count: 1, lastAt: now });
      this.#size += 1;
      if (this.#size > this.#maxEntries) this.#dropOldest();
      return;
    }
    entry.count += 1;
    if (now > entry.lastAt) entry.lastAt = now;
  }

  /** All entries as they are now, the oldest token first. */
  entries(): Entry[] {
    return [...this.#tokens.values()].flatMap((entries) => [...entries.values()]);
  }

  /** Takes a count that was stored off its entry, which may have grown since. */
  settle(entry: Entry, count: number): void {
    entry.count -= count;
    if (entry.count > 0) return;
    this.#remove(entry);
    // V8 keeps every former table of the map for an iterator that waits.
    this.#oldest = undefined;
  }

  /** The counts of a token; `undefined` if none waits. */
  of(id: TokenId): UsageRecord | undefined {
    const entries = this.#tokens.get(id);
    if (entries === undefined) return undefined;
    return {
      refusals: entries.get(undefined)?.count ?? 0,
      scopes: [...entries.values()].flatMap(({ scope, count, lastAt }) =>
        scope === undefined ? [] : { scope, uses: count, lastUsedAt: new Date(lastAt) },
      ),
    };
  }

  /** Takes out what was counted of tokens. */
  forget(ids: readonly TokenId[]): void {
    for (const id of ids) {
      for (const entry of [...(this.#tokens.get(id)?.values() ?? [])]) {
        this.#remove(entry);
        entry.count = 0;
      }
    }
    this.#oldest = undefined;
  }

  /** Drops everything. Returns the number of entries that were dropped since {@link takeDropped}. */
  dropAll(): number {
    this.#dropped += this.#size;
    this.#tokens.clear();
    this.#size = 0;
    return this.takeDropped();
  }

  /** The number of entries that were dropped since the last call. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  #dropOldest(): void {
    if (this.#oldest === undefined || !this.#dropping?.size) {
      this.#oldest ??= this.#tokens.values();
      this.#dropping = this.#oldest.next().value;
    }
    const [entry] = this.#dropping?.values() ?? [];
    if (entry === undefined) return;
    this.#remove(entry);
    entry.count = 0;
    this.#dropped += 1;
    this.#completeSince = Math.max(this.#completeSince, entry.lastAt + 1);
  }

  #remove(entry: Entry): void {
    const entries = this.#tokens.get(entry.id);
    // It may have been dropped, and another one may have come in its place.
    if (entries?.get(entry.scope) !== entry) return;
    entries.delete(entry.scope);
    this.#size -= 1;
    if (entries.size === 0) this.#tokens.delete(entry.id);
  }
}

/** What is written of an entry. */
export function deltaOf({ id, scope, count, lastAt }: Entry): UsageDelta {
  if (scope === undefined) return { id, refusals: count };
  return { id, scope, uses: count, lastUsedAt: new Date(lastAt) };
}
