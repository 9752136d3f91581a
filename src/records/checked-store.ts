import {
  corruptStore,
  isTokenError,
  noScan,
  type StoreFailure,
  storeFailure,
  storeUnavailable,
  TokenError,
} from '../errors.ts';
import type { EngineStore } from '../ports/engine-store.ts';
import type { StoreHealth } from '../ports/store-health.ts';
import type {
  CountQuery,
  PageQuery,
  PruneQuery,
  PurgedRecords,
  PurgeQuery,
  ScannedRecords,
  ScanQuery,
  TokenCounts,
  TokenStore,
  Unsubscribe,
} from '../ports/token-store.ts';
import { withDeadline } from '../time/deadline.ts';
import { performance } from '../time/timers.ts';
import { isCount } from '../token/answers.ts';
import { isRecord, type TokenId, type TokenRecord } from '../token/record.ts';
import { readId } from '../values/value.ts';

/** How a store is called and checked. */
export interface CheckOptions {
  /** Whether the store answers without I/O; its calls then need no deadline. */
  readonly isLocal: boolean;
  /** How long a method may wait for the store. */
  readonly deadlineMs: number;
  readonly health: StoreHealth;
}

/** Ids whose records may have changed. */
export type ChangedIds = readonly TokenId[] | 'all';

/** The answer for one of several ids: its record, none, or why it could not be read. */
export type Found = TokenRecord | undefined | StoreFailure;

/** The result of an insertion; every other failure is thrown. */
export type Insertion = 'inserted' | 'id_taken';

/** If a read of several ids fails this early, there is still time to read each of them alone. */
const EARLY_FAILURE_MS = 50;

/**
 * The store of the host: every call ends by its deadline, every answer is checked, and every failure
 * is a {@link StoreFailure}, because errors of drivers may quote what was sent.
 *
 * A call with `until` ends by that instant of `performance.now()`, for methods that make several calls.
 */
export class CheckedStore {
  readonly isLocal: boolean;
  readonly #store: TokenStore;
  readonly deadlineMs: number;
  readonly #health: StoreHealth;
  #onWrite: (changed: ChangedIds) => void = () => {};
  #isClosed = false;

  constructor(store: TokenStore, { isLocal, deadlineMs, health }: CheckOptions) {
    this.#store = store;
    this.isLocal = isLocal;
    this.deadlineMs = deadlineMs;
    this.#health = health;
  }

  /**
   * The store in a transaction of the host.
   *
   * @throws {TokenError} `invalid_options` if it knows none
   */
  in(connection: object, health: StoreHealth): CheckedStore {
    const { deadlineMs } = this;
    if (this.#store.in === undefined) {
      throw new TokenError(
        'invalid_options',
        'this store cannot work in a transaction: call in() of a service on PostgreSQL, MySQL or SQLite',
      );
    }
    const store = this.#store.in(connection);
    return new CheckedStore(store, { isLocal: store.local === true, deadlineMs, health });
  }

  /** Until when a method that begins now may wait, by `performance.now()`. */
  deadline(): number {
    return performance.now() + this.deadlineMs;
  }

  /** Waits for several calls together. `late` may return the error for calls that did not end in time. */
  inTime<Answer>(
    answer: Promise<Answer>,
    until: number,
    late: () => TokenError | undefined,
  ): Promise<Answer> {
    if (this.isLocal) return answer;
    return withDeadline(answer, msUntil(until), () => late() ?? storeUnavailable('timeout'));
  }

  /** Sets the listener for writes of this process, also failed ones: they may have gone through. */
  onWrite(listener: (changed: ChangedIds) => void): void {
    this.#onWrite = listener;
  }

  /**
   * Removes up to `limit` requests for tokens that ended before an instant, if the store keeps any, and returns
   * how many. Never rejects, and reports nothing: who has no requests need not have their table.
   */
  async purgeRequests(before: Date, limit: number): Promise<number> {
    try {
      const { requests }: Partial<EngineStore> = this.#store;
      if (requests === undefined) return 0;
      const count: unknown = await withDeadline(requests.purge(before, limit), this.deadlineMs);
      return isCount(count) ? count : 0;
    } catch {
      return 0;
    }
  }

  insert(record: TokenRecord): Promise<Insertion> {
    return this.#call(() => insertionOf(this.#store.insert(record)));
  }

  async count(query: CountQuery): Promise<TokenCounts> {
    const counts: unknown = await this.#call(() => this.#store.count(query));
    if (areCounts(counts, query)) return counts;
    throw this.#corrupt();
  }

  /** Reads one record. */
  findOne(id: TokenId): Promise<TokenRecord | undefined> {
    return this.#ask([id]).then(
      (answer) => {
        const found = this.#foundIn(answer, id);
        if (isTokenError(found)) throw this.failure(found);
        return found;
      },
      (error) => {
        throw this.failure(error);
      },
    );
  }

  /**
   * Reads records in one round trip. One malformed record, or one unavailable part of a store, does
   * not hide the others. The failure of a record is reported by each caller that waits for it, with
   * {@link failure}.
   */
  async find(ids: readonly TokenId[]): Promise<readonly Found[]> {
    if (ids.length === 1) return [await this.#find(ids[0] as TokenId)];
    const start = performance.now();
    try {
      const answer = await this.#ask(ids);
      if (Array.isArray(answer) && answer.length === ids.length) {
        this.#health.onAnswer();
        return ids.map((id, index) => checkedRecord(answer[index], id));
      }
      this.#corrupt();
    } catch (error) {
      const isEarly = performance.now() - start < EARLY_FAILURE_MS;
      const failure = storeFailure(error);
      if (!isEarly && failure.code !== 'store_corrupt') return ids.map(() => failure);
    }
    return Promise.all(ids.map((id) => this.#find(id)));
  }

  /** A failure is an answer as well. */
  #find(id: TokenId): Promise<Found> {
    return this.#ask([id]).then(
      (answer) => this.#foundIn(answer, id),
      (error) => storeFailure(error),
    );
  }

  /** Never throws: a store need not be async. */
  #ask(ids: readonly TokenId[]): Promise<unknown> {
    try {
      this.#requireOpen();
      const asked = Promise.resolve<unknown>(this.#store.find(ids));
      return this.isLocal ? asked : this.#inTime(asked);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #foundIn(answer: unknown, id: TokenId): Found {
    const found = onlyRecordIn(answer, id);
    if (!isTokenError(found)) this.#health.onAnswer();
    return found;
  }

  async page(query: PageQuery, until: number): Promise<readonly TokenRecord[]> {
    const { account, parent, root } = query;
    const page: unknown = await this.#call(() => this.#store.page(query), until);
    const isListed = (record: unknown) =>
      isOwnRecord(record) &&
      record.account === account &&
      (parent === undefined || record.ancestors?.at(-1) === parent) &&
      (root === undefined || record.ancestors?.[0] === root);
    if (Array.isArray(page) && page.every(isListed)) return page;
    throw this.#corrupt();
  }

  replace(next: TokenRecord, version: number, until: number): Promise<boolean> {
    return this.#write([next.id], isBoolean, () => this.#store.replace(next, version), until);
  }

  revoke(
    { id, account }: Pick<TokenRecord, 'id' | 'account'>,
    at: Date,
    version: number | undefined,
    until: number,
  ): Promise<boolean> {
    return this.#write([id], isBoolean, () => this.#store.revoke(id, account, at, version), until);
  }

  revokeAll(account: string, at: Date, limit: number): Promise<number> {
    return this.#write('all', isCount, () => this.#store.revokeAll(account, at, limit));
  }

  /** The ids are empty if the store does not return them. */
  purge(query: PurgeQuery): Promise<PurgedRecords> {
    return this.#remove(() => this.#store.purge(query));
  }

  /** The ids are empty if the store does not return them. */
  prune(query: PruneQuery): Promise<PurgedRecords> {
    return this.#remove(() => this.#store.prune(query));
  }

  /** `undefined` if the store does not know. */
  async hasReached(instant: Date, before: Date): Promise<boolean | undefined> {
    if (this.#store.hasReached === undefined) return undefined;
    const answer: unknown = await this.#call(async () => this.#store.hasReached?.(instant, before));
    if (isBoolean(answer)) return answer;
    throw this.#corrupt();
  }

  async #remove(call: () => Promise<unknown>): Promise<PurgedRecords> {
    const purged = await this.#call(call);
    if (isCount(purged)) return { count: purged, ids: [] };
    if (isPurged(purged)) {
      return { count: purged.count, ids: purged.ids.filter((id) => readId(id) !== undefined) };
    }
    throw this.#corrupt();
  }

  /** @throws {TokenError} `invalid_options` if the store has no `scan` */
  async scan(query: ScanQuery): Promise<ScannedRecords> {
    if (this.#store.scan === undefined) throw noScan();
    const answer: unknown = await this.#call(async () => this.#store.scan?.(query));
    if (isScanned(answer)) return answer;
    throw this.#corrupt();
  }

  /** Listens for changes made by any process; `undefined` if the store cannot report them. */
  async watch(
    onChange: (changed: ChangedIds) => void,
    onTrouble: (failure: unknown) => void,
  ): Promise<Unsubscribe | undefined> {
    return this.#store.watch?.(onChange, onTrouble);
  }

  /** Stops listening, with the function that {@link watch} resolved to. */
  async unwatch(unsubscribe: Unsubscribe): Promise<void> {
    await this.#call(unsubscribe);
  }

  /** Closes the store, once. Later calls fail, also those of a store that needs no closing. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    const closing = this.#call(async () => this.#store.close?.());
    this.#isClosed = true;
    await closing;
  }

  /** Turns any error into a failure that may be shown, and reports it. */
  failure(error: unknown): StoreFailure {
    const failure = storeFailure(error);
    this.#health.onFailure(failure);
    return failure;
  }

  #corrupt(): StoreFailure {
    return this.failure(corruptStore());
  }

  /** An answer of the wrong type must not pass for a yes or a no. */
  async #write<Answer>(
    changed: ChangedIds,
    isAnswer: (answer: unknown) => answer is Answer,
    call: () => Promise<unknown>,
    until?: number,
  ): Promise<Answer> {
    try {
      const answer = await this.#call(call, until);
      if (isAnswer(answer)) return answer;
      throw this.#corrupt();
    } finally {
      this.#onWrite(changed);
    }
  }

  async #call<Answer>(call: () => Promise<Answer>, until?: number): Promise<Answer> {
    try {
      this.#requireOpen();
      const asked = call();
      const answer = await (this.isLocal ? asked : this.#inTime(asked, until));
      this.#health.onAnswer();
      return answer;
    } catch (error) {
      throw this.failure(error);
    }
  }

  #requireOpen(): void {
    if (this.#isClosed) throw storeUnavailable('closed');
  }

  #inTime<Answer>(answer: Promise<Answer>, until?: number): Promise<Answer> {
    return withDeadline(answer, until === undefined ? this.deadlineMs : msUntil(until));
  }
}

function msUntil(instant: number): number {
  return Math.max(0, Math.ceil(instant - performance.now()));
}

function onlyRecordIn(answer: unknown, id: TokenId): Found {
  try {
    const isOne = Array.isArray(answer) && answer.length === 1;
    return isOne ? checkedRecord(answer[0], id) : corruptStore();
  } catch {
    // A proxy, or a getter that throws.
    return corruptStore();
  }
}

function checkedRecord(found: unknown, id: TokenId): Found {
  try {
    return found === undefined || isRecord(found, id) ? found : corruptStore();
  } catch {
    // The same, one of several.
    return corruptStore();
  }
}

function isOwnRecord(record: unknown): record is TokenRecord {
  const id = readId((record as TokenRecord | undefined)?.id);
  return id !== undefined && isRecord(record, id);
}

function isScanned(answer: unknown): answer is ScannedRecords {
  try {
    const { records, next } = answer as Partial<Record<keyof ScannedRecords, unknown>>;
    const isPosition = next === undefined || typeof next === 'string';
    return isPosition && Array.isArray(records) && records.every(isOwnRecord);
  } catch {
    // No object, a proxy, or a getter that throws.
    return false;
  }
}

async function insertionOf(insertion: Promise<void>): Promise<Insertion> {
  try {
    await insertion;
    return 'inserted';
  } catch (error) {
    if (isTokenError(error) && error.code === 'id_taken') return error.code;
    throw error;
  }
}

function isBoolean(answer: unknown): answer is boolean {
  return typeof answer === 'boolean';
}

function areCounts(answer: unknown, { most }: CountQuery): answer is TokenCounts {
  try {
    const { live, ended } = answer as Partial<Record<keyof TokenCounts, unknown>>;
    return isCount(live) && live <= most.live && isCount(ended) && ended <= most.ended;
  } catch {
    // No object, a proxy, or a getter that throws.
    return false;
  }
}

function isPurged(answer: unknown): answer is PurgedRecords {
  try {
    const { count, ids } = answer as Partial<Record<keyof PurgedRecords, unknown>>;
    return isCount(count) && Array.isArray(ids);
  } catch {
    // No object, a proxy, or a getter that throws.
    return false;
  }
}
