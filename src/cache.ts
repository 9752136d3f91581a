import { corruptStore, isTokenError, storeFailure, type TokenError } from './errors.ts';
import type { TokenStore, Unsubscribe } from './store.ts';
import { copyMetadata, frozenList, isRecord, type TokenId, type TokenRecord } from './token.ts';
import { isCurrentValue, isPreviousValue, type PresentedValue } from './value.ts';

/** How long records may be served from memory, and how many. */
export interface CacheLimits {
  /** Since the start of the read, in milliseconds; 0 for never. */
  readonly maxStaleMs: number;
  readonly maxEntries: number;
}

/** How the store is called. */
export interface StoreCalls {
  /** In time; what it fails with becomes our own error. */
  ask<Answer>(call: () => Promise<Answer>): Promise<Answer>;
  /** The error that a failure of the store becomes. */
  failure(error: unknown): TokenError;
}

const MAX_BATCH = 1000;
const WATCH_RETRY_MS = 1000;
/** So soon after its start there is still time to ask for each id alone. */
const SOON_MS = 50;

/**
 * Reads records by id. Reads of one turn of the event loop go to the store together, and one id
 * asked for twice is read once; a read never joins one that was sent before it began. Where
 * staleness is allowed, what was read is kept for so long, and served without a read.
 *
 * What keeps that bound: the age of an entry counts from the start of its read, by the clock of the
 * machine and by the given one, whichever is older, and no use renews it. What is forgotten while it
 * is being read is spoilt: it is not kept. Hints of the store can only make it forget.
 */
export class RecordReader {
  readonly #store: TokenStore;
  readonly #calls: StoreCalls;
  readonly #limits: CacheLimits;
  /** Where nothing is kept and nothing is gathered, there is nothing to count. */
  readonly #readsAlone: boolean;
  readonly #entries = new Map<TokenId, Entry>();
  /** The loads that were sent and not yet answered. */
  readonly #flying = new Set<Load>();
  #gathering: Load | undefined;
  #unsubscribe: Unsubscribe | undefined;
  #isClosed = false;

  constructor(store: TokenStore, limits: CacheLimits, calls: StoreCalls) {
    this.#store = store;
    this.#limits = limits;
    this.#calls = calls;
    this.#readsAlone = store.local === true && limits.maxStaleMs === 0;
    if (limits.maxStaleMs > 0 && store.watch !== undefined) void this.#watch();
  }

  /** The record that a presented value belongs to, if it is in memory and young enough. */
  kept(presented: PresentedValue, now: number): TokenRecord | undefined {
    const entry = this.#entries.get(presented.id);
    if (entry === undefined) return undefined;
    if (!this.#isYoung(entry, now)) {
      this.#entries.delete(presented.id);
      return undefined;
    }
    // A value that is not the record's may be a newer one.
    const { record } = entry;
    if (isCurrentValue(presented, record)) {
      // An entry never changes: what comes instead of it is another one.
      presented.proven = record;
      return record;
    }
    return isPreviousValue(presented, record) ? record : undefined;
  }

  /**
   * Reads a record, from now on or, where staleness is allowed, with a read that is under way.
   *
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   */
  load(id: TokenId, now: number): Promise<TokenRecord | undefined> {
    const load = this.#joinable(id, now);
    return load === undefined ? this.read(id, now) : this.#join(load, id, now);
  }

  async #join(load: Load, id: TokenId, now: number): Promise<TokenRecord | undefined> {
    const record = await load.recordOf(id);
    return this.#isYoung(load, now) ? record : this.read(id, now);
  }

  /**
   * Reads a record with a read that begins now.
   *
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   */
  read(id: TokenId, now: number): Promise<TokenRecord | undefined> {
    if (this.#readsAlone) return this.#readAlone(id);
    const load = this.#gathering ?? this.#gather(now);
    load.add(id);
    if (load.size === MAX_BATCH || this.#store.local === true) this.#send(load);
    return load.recordOf(id);
  }

  /** Forgets records, also those that are being read. */
  forget(ids: readonly TokenId[] | 'all'): void {
    if (ids === 'all') this.#entries.clear();
    else for (const id of ids) this.#entries.delete(id);
    this.spoil(ids);
  }

  /** Stops listening to the store. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#entries.clear();
    await this.#unsubscribe?.();
  }

  /** What is being read now must not be kept. */
  protected spoil(ids: readonly TokenId[] | 'all'): void {
    for (const load of this.#flying) load.spoil(ids);
  }

  #joinable(id: TokenId, now: number): Load | undefined {
    if (this.#limits.maxStaleMs === 0) return undefined;
    for (const load of this.#flying) {
      if (load.isGood(id) && this.#isYoung(load, now)) return load;
    }
    return undefined;
  }

  /**
   * A lone caller is not kept waiting: with nothing under way the load is sent when this callback of
   * the event loop and its promises are through, else in the check phase, since under load the
   * callers come in callbacks of their own.
   */
  #gather(now: number): Load {
    const load = new Load(now);
    this.#gathering = load;
    const send = () => this.#send(load);
    if (this.#store.local === true) return load;
    if (this.#flying.size > 0) setImmediate(send);
    else queueMicrotask(() => process.nextTick(send));
    return load;
  }

  #send(load: Load): void {
    if (this.#gathering === load) this.#gathering = undefined;
    if (load.isSent) return;
    this.#flying.add(load);
    load.send(
      (ids) => this.#find(ids),
      () => {
        this.#flying.delete(load);
        this.#keep(load);
      },
    );
  }

  async #readAlone(id: TokenId): Promise<TokenRecord | undefined> {
    let found: unknown;
    try {
      found = await this.#store.find([id]);
    } catch (error) {
      throw this.#calls.failure(error);
    }
    const record = Array.isArray(found) && found.length === 1 ? checked(found[0], id) : CORRUPT;
    if (record === CORRUPT) throw this.#calls.failure(corruptStore());
    return record;
  }

  async #find(ids: readonly TokenId[]): Promise<Found[]> {
    const start = performance.now();
    try {
      const answer: unknown = await this.#calls.ask(() => this.#store.find(ids));
      if (!Array.isArray(answer) || answer.length !== ids.length) {
        throw this.#calls.failure(corruptStore());
      }
      const found = ids.map((id, place) => checked(answer[place], id));
      if (found.includes(CORRUPT)) this.#calls.failure(corruptStore());
      return found;
    } catch (error) {
      // One broken record, or one part of a store that is away, must not hide the others.
      const isSoon = performance.now() - start < SOON_MS;
      if (ids.length > 1 && (isSoon || isCorrupt(error))) return this.#findEach(ids);
      if (!isCorrupt(error)) throw error;
      return ids.map(() => CORRUPT);
    }
  }

  async #findEach(ids: readonly TokenId[]): Promise<Found[]> {
    const alone = await Promise.allSettled(ids.map((id) => this.#find([id])));
    return alone.map((one) => (one.status === 'fulfilled' ? one.value[0] : AWAY));
  }

  #keep(load: Load): void {
    const { maxStaleMs, maxEntries } = this.#limits;
    if (maxStaleMs === 0 || this.#isClosed) return;
    for (const [id, record] of load.goodRecords()) {
      // Anew at the end, as the oldest read leaves first.
      this.#entries.delete(id);
      this.#entries.set(id, { record: deepFrozen(record), steady: load.steady, wall: load.wall });
      if (this.#entries.size > maxEntries) {
        const [oldest] = this.#entries.keys();
        this.#entries.delete(oldest as TokenId);
      }
    }
  }

  #isYoung({ steady, wall }: Started, now: number): boolean {
    const age = Math.max(performance.now() - steady, now - wall);
    return age < this.#limits.maxStaleMs;
  }

  async #watch(): Promise<void> {
    while (!this.#isClosed) {
      try {
        const unsubscribe = await this.#store.watch?.((ids) => this.forget(ids));
        // Changes before now were not told of.
        this.forget('all');
        this.#unsubscribe = unsubscribe;
        if (this.#isClosed) await unsubscribe?.();
        return;
      } catch {
        await new Promise<void>((resolve) => setTimeout(resolve, WATCH_RETRY_MS).unref());
      }
    }
  }
}

/** When a read began, by the machine's monotonic clock and by the given one. */
interface Started {
  readonly steady: number;
  readonly wall: number;
}

interface Entry extends Started {
  readonly record: TokenRecord;
}

/** What the store has for an id; what is no record, or not known, is kept apart from nothing at all. */
type Found = TokenRecord | undefined | typeof CORRUPT | typeof AWAY;

const CORRUPT = Symbol('corrupt');
const AWAY = Symbol('away');

/**
 * A read of several records: first it gathers ids, then it is sent, then it is answered. Most are of
 * one record, for which no map is made.
 */
class Load implements Started {
  readonly wall: number;
  steady = Number.NEGATIVE_INFINITY;
  readonly #ids: TokenId[] = [];
  #places: Map<TokenId, number> | undefined;
  #spoilt: Set<TokenId> | undefined;
  readonly #answer: Promise<readonly Found[]>;
  #resolve: (found: readonly Found[]) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #found: readonly Found[] = [];

  constructor(now: number) {
    this.wall = now;
    this.#answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get size(): number {
    return this.#ids.length;
  }

  get isSent(): boolean {
    return this.steady !== Number.NEGATIVE_INFINITY;
  }

  add(id: TokenId): void {
    if (this.#placeOf(id) !== undefined) return;
    const place = this.#ids.push(id) - 1;
    if (place === 1) this.#places = new Map([[this.#ids[0] as TokenId, 0]]);
    this.#places?.set(id, place);
  }

  #placeOf(id: TokenId): number | undefined {
    if (this.#places !== undefined) return this.#places.get(id);
    return this.#ids[0] === id ? 0 : undefined;
  }

  /** `onSettled` is called first, before any of those who wait. */
  send(find: (ids: readonly TokenId[]) => Promise<readonly Found[]>, onSettled: () => void): void {
    this.steady = performance.now();
    find([...this.#ids]).then(
      (found) => {
        this.#found = found;
        onSettled();
        this.#resolve(found);
      },
      (error) => {
        onSettled();
        this.#reject(error);
      },
    );
  }

  async recordOf(id: TokenId): Promise<TokenRecord | undefined> {
    return recordOf((await this.#answer)[this.#placeOf(id) as number]);
  }

  spoil(ids: readonly TokenId[] | 'all'): void {
    this.#spoilt ??= new Set();
    for (const id of ids === 'all' ? this.#ids : ids) this.#spoilt.add(id);
  }

  isGood(id: TokenId): boolean {
    return this.#placeOf(id) !== undefined && this.#spoilt?.has(id) !== true;
  }

  *goodRecords(): Generator<readonly [TokenId, TokenRecord]> {
    for (const [place, id] of this.#ids.entries()) {
      const found = this.#found[place];
      if (typeof found === 'object' && this.isGood(id)) yield [id, found];
    }
  }
}

function recordOf(found: Found): TokenRecord | undefined {
  if (found === CORRUPT) throw corruptStore();
  if (found === AWAY) throw storeFailure(undefined);
  return found;
}

function checked(found: unknown, id: TokenId): TokenRecord | undefined | typeof CORRUPT {
  return found === undefined || isRecord(found, id) ? found : CORRUPT;
}

function isCorrupt(error: unknown): boolean {
  return isTokenError(error) && error.code === 'store_corrupt';
}

/** What is kept is handed out again and again. Nobody gets the times and bytes in it to change. */
function deepFrozen(record: TokenRecord): TokenRecord {
  return Object.freeze({
    ...record,
    scopes: frozenList(record.scopes),
    requested: frozenList(record.requested),
    metadata: record.metadata && copyMetadata(record.metadata),
  });
}
