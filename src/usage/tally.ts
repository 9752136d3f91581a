import type { UsageDelta, UsageRecord } from '../ports/usage-store.ts';
import type { TokenId } from '../token/record.ts';

/** A count that is not written yet. */
export interface Entry {
  readonly id: TokenId;
  /** `undefined` for refusals. */
  readonly scope: string | undefined;
  count: number;
  lastAt: number;
}

/**
 * Counts that wait to be written. If there are too many, the oldest are dropped. An entry stays until its
 * count is known to be stored, so that a failed write has nothing to put back.
 */
export class Tally {
  readonly #maxEntries: number;
  /** In the order in which the tokens were first counted. */
  readonly #tokens = new Map<TokenId, Map<string | undefined, Entry>>();
  #size = 0;
  #dropped = 0;
  /**
   * The position of the dropping in the map, kept from one drop to the next: a new iterator would first
   * skip the slots of all tokens that were dropped before, tens of thousands for each drop.
   */
  #oldest: Iterator<Map<string | undefined, Entry>> | undefined;
  /** The entries that are left of the token at this position. */
  #dropping: Map<string | undefined, Entry> | undefined;
  #completeSince = Number.NEGATIVE_INFINITY;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  /** The number of pairs of a token and a scope, and of tokens with refusals. */
  get size(): number {
    return this.#size;
  }

  /** The instant after the latest use that was dropped. All uses since then are here, or were stored. */
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

  /** Subtracts a count that was stored from its entry, which may have grown since. */
  settle(entry: Entry, count: number): void {
    entry.count -= count;
    if (entry.count > 0) return;
    this.#remove(entry);
    // V8 keeps every former table of the map alive for an iterator that is not finished.
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

  /** Removes the counts of tokens. */
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
    // It may have been dropped, and replaced by a new entry.
    if (entries?.get(entry.scope) !== entry) return;
    entries.delete(entry.scope);
    this.#size -= 1;
    if (entries.size === 0) this.#tokens.delete(entry.id);
  }
}

/** The delta to write for an entry. */
export function deltaOf({ id, scope, count, lastAt }: Entry): UsageDelta {
  if (scope === undefined) return { id, refusals: count };
  return { id, scope, uses: count, lastUsedAt: new Date(lastAt) };
}
