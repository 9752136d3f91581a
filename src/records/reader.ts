import { DEAF_RETRY_MS } from '../bounds.ts';
import { isTokenError, type StoreFailure, storeFailure } from '../errors.ts';
import type { StoreHealth } from '../ports/store-health.ts';
import type { Unsubscribe } from '../ports/token-store.ts';
import { idleDelay, nextTick, performance, queueMicrotask, setImmediate } from '../time/timers.ts';
import { copyMetadata } from '../token/metadata.ts';
import {
  copyLimits,
  copyOrigin,
  frozenList,
  type Proof,
  type Token,
  type TokenId,
  type TokenRecord,
} from '../token/record.ts';
import { listWeight } from '../token/size.ts';
import { type PresentedValue, proofOf } from '../values/value.ts';
import type { ChangedIds, CheckedStore, Found } from './checked-store.ts';
import { copyOfToken, tokenOf } from './token-view.ts';

/** Ids that one call of `find` asks a store for. @bound */
export const MAX_FOUND_TOGETHER = 1000;

/** How long records may be served from the cache, and how many of them, and of what size. */
export interface CacheLimits {
  /** From the start of the read, in milliseconds; 0 turns the cache off. */
  readonly maxStaleMs: number;
  readonly maxEntries: number;
  /** In bytes, as {@link RecordWeights} counts them. */
  readonly maxBytes: number;
}

const WATCH_RETRY_MS = 1000;

/**
 * Reads records by id. Reads in one turn of the event loop go to the store as one batch, and an id
 * that is asked for twice is read once. A read never joins a batch that was sent before it began,
 * unless staleness is allowed; then records are cached for that long, too.
 *
 * No entry is staler than allowed: its age counts from the start of its read, by the clock of the machine
 * or by the injected one, whichever says more, and no use renews it. A record that is invalidated while it
 * is being read is not cached. Change hints of the store can only evict.
 */
export class RecordReader {
  readonly #store: CheckedStore;
  readonly #limits: CacheLimits;
  readonly #watchHealth: StoreHealth;
  readonly #elapsedMs: () => number;
  readonly #isCaching: boolean;
  readonly #entries = new Map<TokenId, CachedRecord>();
  readonly #weights = new RecordWeights();
  /** Batches that were sent and not yet answered. */
  readonly #inFlight = new Set<Batch>();
  /** The batch that still collects ids. */
  #open: Batch | undefined;
  #unsubscribe: Unsubscribe | undefined;
  #isClosed = false;
  readonly #reads = { hits: 0, misses: 0 };

  /**
   * @param watchHealth notes whether the store reports changes
   * @param elapsedMs the monotonic time of the machine, up to a millisecond late
   */
  constructor(
    store: CheckedStore,
    limits: CacheLimits,
    watchHealth: StoreHealth,
    elapsedMs: () => number,
  ) {
    this.#store = store;
    this.#elapsedMs = elapsedMs;
    this.#watchHealth = watchHealth;
    this.#limits = limits;
    this.#isCaching = limits.maxStaleMs > 0;
    if (!this.#isCaching) return;
    store.onWrite((changed) => this.evict(changed));
    void this.#watch();
  }

  /** How many records `verify` got from the cache, and how many it had to read although there is one. */
  get cacheReads(): { readonly hits: number; readonly misses: number } {
    return { ...this.#reads };
  }

  /** The cached record of a token, if it is fresh enough. */
  cached(id: TokenId, now: number): CachedRecord | undefined {
    const entry = this.#fresh(id, now);
    if (entry !== undefined) this.#reads.hits += 1;
    return entry;
  }

  /**
   * The cached records of the ancestors of a token; `undefined` unless all of them are fresh enough. If the
   * token is cached itself, the same list while none of them has changed.
   */
  cachedAbove(
    ids: readonly TokenId[],
    now: number,
    below: CachedRecord | undefined,
  ): readonly TokenRecord[] | undefined {
    if (below?.above !== undefined && this.#areUsable(below.above.entries, now))
      return below.above.records;
    const entries: CachedRecord[] = [];
    for (const id of ids) {
      const entry = this.#fresh(id, now);
      if (entry === undefined) return undefined;
      entries.push(entry);
    }
    const records = entries.map(({ record }) => record);
    if (below !== undefined) below.above = { entries, records };
    return records;
  }

  #areUsable(entries: readonly CachedRecord[], now: number): boolean {
    for (const entry of entries) {
      if (entry.isDropped || !this.#isFresh(entry, now)) return false;
    }
    return true;
  }

  /**
   * Reads a record, from the store or, if staleness is allowed, from a batch in flight.
   *
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   */
  load(id: TokenId, now: number): Promise<TokenRecord | undefined> {
    if (this.#isCaching) this.#reads.misses += 1;
    const batch = this.#joinable(id, now);
    return batch === undefined ? this.read(id, now) : this.#join(batch, id, now);
  }

  async #join(batch: Batch, id: TokenId, now: number): Promise<TokenRecord | undefined> {
    const record = await batch.recordOf(id);
    return this.#isFresh(batch, now) ? record : this.read(id, now);
  }

  /**
   * Reads a record from the store, by a read that begins after this call.
   *
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   */
  read(id: TokenId, now: number): Promise<TokenRecord | undefined> {
    const { isLocal } = this.#store;
    if (isLocal && !this.#isCaching) return this.#store.findOne(id);
    const batch = this.#open ?? this.#openBatch(now);
    batch.add(id);
    if (isLocal || batch.size === MAX_FOUND_TOGETHER) this.#send(batch);
    return batch.recordOf(id);
  }

  /**
   * Reads records from the store in one round trip, by a read that begins after this call.
   *
   * @throws {TokenError} `store_unavailable`, `store_corrupt`, if one of them cannot be read
   */
  readAll(ids: readonly TokenId[], now: number): Promise<readonly (TokenRecord | undefined)[]> {
    if (this.#open !== undefined && this.#open.size + ids.length > MAX_FOUND_TOGETHER) {
      this.#send(this.#open);
    }
    const batch = this.#open ?? this.#openBatch(now);
    for (const id of ids) batch.add(id);
    if (this.#store.isLocal || batch.size === MAX_FOUND_TOGETHER) this.#send(batch);
    return batch.recordsOf(ids);
  }

  /** Evicts records, and does not cache those that are being read. */
  evict(changed: ChangedIds): void {
    if (changed === 'all') this.#dropAll();
    else for (const id of changed) this.#drop(id);
    for (const batch of this.#inFlight) batch.invalidate(changed);
  }

  /**
   * Stops listening to the store, and caches nothing from now on.
   *
   * @throws {TokenError} `store_unavailable`
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#dropAll();
    if (this.#unsubscribe !== undefined) await this.#store.unwatch(this.#unsubscribe);
  }

  #fresh(id: TokenId, now: number): CachedRecord | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    if (this.#isFresh(entry, now)) return entry;
    this.#drop(id);
    return undefined;
  }

  #joinable(id: TokenId, now: number): Batch | undefined {
    if (!this.#isCaching) return undefined;
    for (const batch of this.#inFlight) {
      if (batch.isValid(id) && this.#isFresh(batch, now)) return batch;
    }
    return undefined;
  }

  /**
   * A lone caller hardly waits: if nothing is in flight, the batch is sent when this callback of the event
   * loop and its promises are done. Under load it is sent in the check phase, to collect the ids of
   * callers that come in other callbacks.
   */
  #openBatch(now: number): Batch {
    const batch = new Batch(now, (failure) => this.#store.failure(failure));
    this.#open = batch;
    const send = () => this.#send(batch);
    if (this.#store.isLocal) return batch;
    if (this.#inFlight.size > 0) setImmediate(send);
    else queueMicrotask(() => nextTick(send));
    return batch;
  }

  #send(batch: Batch): void {
    if (this.#open === batch) this.#open = undefined;
    if (batch.isSent) return;
    this.#inFlight.add(batch);
    batch.send(
      (ids) => this.#store.find(ids),
      () => {
        this.#inFlight.delete(batch);
        this.#cache(batch);
      },
    );
  }

  #cache(batch: Batch): void {
    if (!this.#isCaching || this.#isClosed) return;
    for (const [id, found] of batch.validRecords()) {
      const record = deepFrozen(found);
      // Inserted at the end: the entry with the oldest read is evicted first.
      this.#drop(id);
      this.#entries.set(id, new CachedRecord(record, batch));
      this.#weights.add(record);
      this.#dropOldest();
    }
  }

  #dropOldest(): void {
    const { maxEntries, maxBytes } = this.#limits;
    while (this.#entries.size > maxEntries || this.#weights.bytes > maxBytes) {
      const [oldest] = this.#entries.keys();
      this.#drop(oldest as TokenId);
    }
  }

  #drop(id: TokenId): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    entry.isDropped = true;
    this.#weights.remove(entry.record);
  }

  #dropAll(): void {
    for (const entry of this.#entries.values()) entry.isDropped = true;
    this.#entries.clear();
    this.#weights.clear();
  }

  #isFresh({ steady, wall }: ReadStart, now: number): boolean {
    const { maxStaleMs } = this.#limits;
    return this.#elapsedMs() - steady < maxStaleMs && now - wall < maxStaleMs;
  }

  async #watch(): Promise<void> {
    while (!this.#isClosed) {
      try {
        const unsubscribe = await this.#store.watch(
          (changed) => this.evict(changed),
          (failure) => this.#onTrouble(failure),
        );
        if (unsubscribe === undefined) return;
        // Changes before this instant were not reported.
        this.evict('all');
        this.#unsubscribe = unsubscribe;
        this.#watchHealth.onAnswer();
        if (this.#isClosed) await unsubscribe();
        return;
      } catch (error) {
        if (this.#isClosed) return;
        const failure = storeFailure(error, 'watch');
        const reason = failure.details?.reason;
        // The calls of a store that is down say so themselves.
        if (reason === 'pooler' || reason === 'unsupported') this.#watchHealth.onFailure(failure);
        if (reason === 'unsupported') return;
        await idleDelay(reason === 'pooler' ? DEAF_RETRY_MS : WATCH_RETRY_MS);
      }
    }
  }

  /** What the store has found out since it began to report changes. */
  #onTrouble(failure: unknown): void {
    if (this.#isClosed) return;
    if (failure === undefined) this.#watchHealth.onAnswer();
    else this.#watchHealth.onFailure(storeFailure(failure, 'watch'));
  }
}

/** When a read began, by the monotonic clock of the machine and by the injected one. */
interface ReadStart {
  readonly steady: number;
  readonly wall: number;
}

/** A record in the cache. It never changes: a newer one takes its place. */
export class CachedRecord implements ReadStart {
  readonly record: TokenRecord;
  readonly steady: number;
  readonly wall: number;
  /** The value that was compared last, if it is the current one. */
  #current: PresentedValue | undefined;
  #active: Token | undefined;
  /** Whether another one has taken its place, or none. */
  isDropped = false;
  /** The ancestors, as they were found last. */
  above:
    | { readonly entries: readonly CachedRecord[]; readonly records: readonly TokenRecord[] }
    | undefined;
  /** A place for who decides about the token, to keep what holds for this record. */
  decided: unknown;

  constructor(record: TokenRecord, { steady, wall }: ReadStart) {
    this.record = record;
    this.steady = steady;
    this.wall = wall;
  }

  /** The token as its account sees it while it is active, for one caller. */
  activeToken(now: number): Token {
    this.#active ??= tokenOf(this.record, now);
    return copyOfToken(this.#active);
  }

  /** How a value belongs to the record; see {@link proofOf}. A value that comes again is compared once. */
  proofOf(presented: PresentedValue): Proof | undefined {
    if (presented === this.#current) return 'current';
    const proof = proofOf(presented, this.record);
    if (proof === 'current') this.#current = presented;
    return proof;
  }
}

/**
 * One read of several records: collects ids, is sent, is answered. Most batches hold one id, for which
 * no map is made.
 */
class Batch implements ReadStart {
  readonly wall: number;
  steady = Number.NEGATIVE_INFINITY;
  readonly #ids: TokenId[] = [];
  #indexes: Map<TokenId, number> | undefined;
  #invalid: Set<TokenId> | undefined;
  readonly #answer: Promise<readonly Found[]>;
  #resolve: (found: readonly Found[]) => void = () => {};
  #found: readonly Found[] = [];
  readonly #failure: (found: StoreFailure) => StoreFailure;

  /** @param failure reports the failure of one caller */
  constructor(now: number, failure: (found: StoreFailure) => StoreFailure) {
    this.wall = now;
    this.#failure = failure;
    this.#answer = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get size(): number {
    return this.#ids.length;
  }

  get isSent(): boolean {
    return this.steady !== Number.NEGATIVE_INFINITY;
  }

  add(id: TokenId): void {
    if (this.#indexOf(id) !== undefined) return;
    const index = this.#ids.push(id) - 1;
    if (index === 1) this.#indexes = new Map([[this.#ids[0] as TokenId, 0]]);
    this.#indexes?.set(id, index);
  }

  #indexOf(id: TokenId): number | undefined {
    if (this.#indexes !== undefined) return this.#indexes.get(id);
    return this.#ids[0] === id ? 0 : undefined;
  }

  /** Calls `onSettled` before any caller gets the answer. */
  send(find: (ids: readonly TokenId[]) => Promise<readonly Found[]>, onSettled: () => void): void {
    // Earlier than the read, by as much as the time that its age is measured by may be late.
    this.steady = performance.now() - 1;
    void find([...this.#ids]).then((found) => {
      this.#found = found;
      onSettled();
      this.#resolve(found);
    });
  }

  async recordOf(id: TokenId): Promise<TokenRecord | undefined> {
    const found = (await this.#answer)[this.#indexOf(id) as number];
    if (isTokenError(found)) throw this.#failure(found);
    return found;
  }

  async recordsOf(ids: readonly TokenId[]): Promise<readonly (TokenRecord | undefined)[]> {
    const answer = await this.#answer;
    return ids.map((id) => {
      const found = answer[this.#indexOf(id) as number];
      if (isTokenError(found)) throw this.#failure(found);
      return found;
    });
  }

  invalidate(changed: ChangedIds): void {
    this.#invalid ??= new Set();
    for (const id of changed === 'all' ? this.#ids : changed) this.#invalid.add(id);
  }

  isValid(id: TokenId): boolean {
    return this.#indexOf(id) !== undefined && this.#invalid?.has(id) !== true;
  }

  *validRecords(): Generator<readonly [TokenId, TokenRecord]> {
    for (const [index, id] of this.#ids.entries()) {
      const found = this.#found[index];
      if (found !== undefined && !isTokenError(found) && this.isValid(id)) yield [id, found];
    }
  }
}

/** Cached records are handed out many times: nobody may change the lists in them. */
function deepFrozen(record: TokenRecord): TokenRecord {
  return Object.freeze({
    ...record,
    scopes: frozenList(record.scopes),
    requested: frozenList(record.requested),
    metadata: record.metadata && copyMetadata(record.metadata),
    limits: record.limits && copyLimits(record.limits),
    ancestors: record.ancestors && frozenList(record.ancestors),
    origin: record.origin && copyOrigin(record.origin),
  });
}

/** Measured: a record without its lists, with an empty compiled set. */
const RECORD_BYTES = 1536;

/**
 * Estimates how many bytes records take in memory. A list that several records share counts once: ten
 * thousand tokens with the same thousand scopes take little more than their own fields.
 */
export class RecordWeights {
  readonly #uses = new Map<readonly string[], number>();
  #bytes = 0;

  /** The sum. */
  get bytes(): number {
    return this.#bytes;
  }

  add(record: TokenRecord): void {
    this.#bytes += ownBytes(record);
    for (const list of listsOf(record)) {
      const uses = this.#uses.get(list) ?? 0;
      if (uses === 0) this.#bytes += listWeight(list);
      this.#uses.set(list, uses + 1);
    }
  }

  /** Removes a record that was added before. */
  remove(record: TokenRecord): void {
    this.#bytes -= ownBytes(record);
    for (const list of listsOf(record)) {
      const uses = this.#uses.get(list) as number;
      if (uses > 1) this.#uses.set(list, uses - 1);
      else {
        this.#uses.delete(list);
        this.#bytes -= listWeight(list);
      }
    }
  }

  clear(): void {
    this.#uses.clear();
    this.#bytes = 0;
  }
}

function listsOf({ scopes, requested }: TokenRecord): readonly (readonly string[])[] {
  return scopes === requested ? [scopes] : [scopes, requested];
}

function ownBytes({ metadata, limits, ancestors, origin }: TokenRecord): number {
  const parts = [metadata, limits, ancestors, origin];
  return RECORD_BYTES + parts.reduce((sum, part) => sum + bytesOf(part), 0);
}

function bytesOf(part: object | undefined): number {
  return part === undefined ? 0 : 2 * JSON.stringify(part).length;
}
