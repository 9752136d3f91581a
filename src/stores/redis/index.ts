import { invalidOptions, TokenError } from '../../errors.ts';
import { notify } from '../../events.ts';
import type { EngineStore, Scratch } from '../../ports/engine-store.ts';
import type { LeaseStore } from '../../ports/lease-store.ts';
import type { RequestStore } from '../../ports/request-store.ts';
import type {
  CountQuery,
  DoctorOptions,
  PageQuery,
  PruneQuery,
  PurgedRecords,
  PurgeQuery,
  ScannedRecords,
  ScanQuery,
  StoreFinding,
  TokenCounts,
  Unsubscribe,
} from '../../ports/token-store.ts';
import type { UsageStore } from '../../ports/usage-store.ts';
import type { TokenId, TokenRecord } from '../../token/record.ts';
import { readWholeNumber } from '../shared/options.ts';
import { purgedOf } from '../shared/purged.ts';
import { RowReader } from '../shared/rows.ts';
import { driverOf, type RedisClient } from './client.ts';
import { examine } from './doctor.ts';
import { corruptRecord, type Driver, withDriver } from './driver.ts';
import { idIn, KeySpace, SHARDS } from './layout.ts';
import { RedisLeaseStore } from './leases.ts';
import { TokenReader } from './reader.ts';
import { RecentWrites } from './recent-writes.ts';
import { ReplicatedWrites } from './replicated-writes.ts';
import { RedisRequestStore } from './requests.ts';
import { scratchKeys } from './scratch.ts';
import { numbersIn, runScript, type ScriptCall, type WriteCall } from './scripts.ts';
import { RedisUsageStore } from './usage.ts';
import { ChangeListener } from './watch.ts';
import {
  childrenIn,
  type EndedToken,
  type ListedToken,
  type Removal,
  type Revocation,
  WriteCalls,
} from './write-calls.ts';

export type { RedisClient } from './client.ts';

const DEFAULT_WAIT_MS = 500;

/** How a {@link RedisTokenStore} works. */
export interface RedisStoreOptions {
  /**
   * The prefix of all keys: 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `_`, `-`, `.` and `:`.
   * @default 'tokenwright'
   */
  readonly keyPrefix?: string | undefined;
  /**
   * How many replicas must have a write, a lease or a request before its promise resolves, from 0 to 10. A failover
   * loses those that had not reached the replica that takes over. With 1 or more, writes use
   * connections of their own. Counts of usage wait for none. @default 1 for a cluster, 0 for a lone server
   */
  readonly replicas?: number | undefined;
  /**
   * How long a write waits for them, in milliseconds, from 1 to 10 000. Stay below half of the
   * service's deadline: a write may have to wait for the one before it. @default 500
   */
  readonly waitMs?: number | undefined;
  /**
   * The memory for parsed lists of scopes, in bytes, as an estimate: from 1 048 576 to
   * 17 179 869 184 (16 GiB). Equal lists count once. A token whose list does not fit is still found,
   * but more slowly. @default 33 554 432 (32 MiB)
   */
  readonly maxListBytes?: number | undefined;
  /** Receives what an operator should know. Errors that it throws are ignored. */
  readonly onEvent?: ((event: RedisStoreEvent) => void) | undefined;
}

/**
 * An event of a {@link RedisTokenStore}.
 *
 * `durability_unconfirmed`: a write was made, but fewer replicas than `needed` have confirmed it.
 * `writes_reasserted`: a server had lost acknowledged changes to `count` tokens, for example in
 * a failover, and the store has made them again.
 */
export type RedisStoreEvent =
  | {
      readonly type: 'durability_unconfirmed';
      /** How many replicas have confirmed the write. */
      readonly confirmations: number;
      /** How many were waited for. */
      readonly needed: number;
    }
  | {
      readonly type: 'writes_reasserted';
      /** How many tokens were changed again. */
      readonly count: number;
    };

/**
 * Stores tokens, how they are used, the leases of limited ones and requests for tokens in Redis or Redis
 * Cluster, version 6.2 or later: for very high read rates.
 *
 * Pass a client of ioredis or node-redis, connected or connecting. It is yours: closing the store
 * leaves it open. Each write of one token is one script, so it happens whole or not at all.
 * `revokeAll` and `purge` work in steps of 100 tokens, in a cluster also slot by slot. If `revokeAll`
 * rejects, some tokens may be revoked; call it again. It revokes every token that exists when it
 * starts; one that is issued meanwhile may be revoked or not. When the server's memory is full, tokens
 * can be revoked and purged, and scopes can be taken away.
 *
 * Redis is durable only with an append-only file, and a failover may undo acknowledged writes. To
 * prevent that, writes wait for replicas (see `replicas`), and a store repeats its changes of the
 * last minute when it finds them undone. `doctor` reports what is still weak. A replica may not know of
 * a revocation yet, so each call that reaches one rejects with `store_unavailable`: reads are sent as
 * commands that only a primary answers, which needs the right to `GETEX` and `ZREM`. A primary of a
 * cluster that was silent for its `cluster-node-timeout` may have been replaced: the store then waits
 * until it has been awake for half a second. For that, it asks each primary four times in that timeout,
 * from the first read until `close`. While a slot of a cluster moves to another server, writes to its
 * tokens reject with `store_unavailable`.
 *
 * `usage` adds counts in steps of 100 tokens, in a cluster also slot by slot. The counts of one token are
 * one step. If some steps fail, the error names the tokens of the others in `details.added` within 1.8
 * seconds: keep the `deadlineMs` of the service above that, so that it adds nothing again. Counts wait for
 * no replica, so a failover may lose the last ones. They have no expiry: `forget` removes them.
 *
 * `leases` rejects if one server of a cluster fails, and what the others have granted is lost. The clock of
 * the server decides whether a window has begun and whether it has ended. Its counts expire by themselves,
 * so that `purge` has nothing to do. Set `maxmemory-policy` to `noeviction`: with evicted counts, limits may
 * be exceeded, and used scopes look unused.
 *
 * `requests` are all in one slot of a cluster, and have no expiry: `purge` removes them.
 *
 * By default the drivers notice a dead connection late, and are slow to reconnect. {@link RedisClient} has
 * the options with which the store is back as soon as the server is.
 *
 * @example
 * const client = new Redis('redis://db.internal', { maxRetriesPerRequest: 1, socketTimeout: 1000 });
 * const store = new RedisTokenStore(client, { replicas: 1 });
 * await store.insert(record);
 * await store.close();
 * client.disconnect();
 */
export class RedisTokenStore implements EngineStore {
  /** How tokens are used, under the same key prefix. */
  readonly usage: Required<UsageStore>;
  /** The uses taken of limited tokens, under the same key prefix. */
  readonly leases: LeaseStore;
  /** Requests for tokens, under the same key prefix. */
  readonly requests: RequestStore;
  readonly #driver: Driver;
  readonly #keys: KeySpace;
  readonly #calls: WriteCalls;
  readonly #reader: TokenReader;
  readonly #replicas: number;
  /** Undefined if no replica is waited for. */
  readonly #replicated: ReplicatedWrites | undefined;
  readonly #recent: RecentWrites;
  readonly #onEvent: (event: RedisStoreEvent) => void;
  readonly #listeners = new Set<ChangeListener>();

  /**
   * Sends nothing; the first call does.
   *
   * @throws {TokenError} `invalid_options`, also for a client that reads from replicas
   */
  constructor(client: RedisClient, options: RedisStoreOptions = {}) {
    const driver = driverOf(client);
    const { onEvent = () => {} } = options;
    this.#keys = new KeySpace(options.keyPrefix, driver.isCluster ? 'cluster' : 'lone');
    const { replicas = driver.isCluster ? 1 : 0, waitMs = DEFAULT_WAIT_MS } = options;
    const replication = {
      replicas: readWholeNumber('replicas', replicas, [0, 10]),
      waitMs: readWholeNumber('waitMs', waitMs, [1, 10_000]),
    };
    this.#replicas = replicas;
    if (typeof onEvent !== 'function') throw invalidOptions('onEvent must be a function');
    this.#onEvent = onEvent;
    this.#driver = driver;
    this.#calls = new WriteCalls(this.#keys);
    this.#reader = new TokenReader(driver, this.#keys, new RowReader(options));
    if (replicas > 0) this.#replicated = new ReplicatedWrites(driver, replication);
    this.usage = new RedisUsageStore(driver, this.#keys);
    this.leases = new RedisLeaseStore(driver, this.#keys, replication);
    this.requests = new RedisRequestStore(driver, this.#keys, replication, (count) =>
      this.#unconfirmed(count),
    );
    this.#recent = new RecentWrites(
      async (call) => {
        const [changed, repeated] = numbersIn(await runScript(driver, call));
        return { changed, isIntact: changed === 0 && repeated > 0 };
      },
      (count) => this.#emit({ type: 'writes_reasserted', count }),
    );
  }

  async insert(record: TokenRecord): Promise<void> {
    const outcome = await this.#write(this.#calls.insert(record, this.#calls.newWriteId()));
    if (outcome.changed === 0) throw new TokenError('id_taken', 'this id is taken');
    this.#confirmed(outcome);
  }

  /** Takes one round trip, in a cluster one for each shard, concurrently, however many tokens there are. */
  count(query: CountQuery): Promise<TokenCounts> {
    return this.#reader.count(query);
  }

  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    return this.#reader.find(ids);
  }

  page(query: PageQuery): Promise<TokenRecord[]> {
    return this.#reader.page(query);
  }

  scan(query: ScanQuery): Promise<ScannedRecords> {
    return this.#reader.scan(query);
  }

  async replace(next: TokenRecord, version = next.version - 1): Promise<boolean> {
    const writeId = this.#calls.newWriteId();
    const outcome = await this.#write(this.#calls.replace(next, version, writeId));
    const [generation] = outcome.generations;
    // Without a new version, a repetition could not tell a later write from a lost one.
    if (generation !== undefined && next.version !== version) {
      this.#recent.add(this.#calls.replace(next, version, writeId, generation), next.account);
    }
    return this.#confirmed(outcome) > 0;
  }

  async revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    const revocation = { writeId: this.#calls.newWriteId(), account, at, version };
    return this.#confirmed(await this.#revoke([{ id, account }], revocation)) > 0;
  }

  async revokeAll(account: string, at: Date, limit: number): Promise<number> {
    const writeId = this.#calls.newWriteId();
    const revocation = { writeId, account, at, version: undefined };
    const outcomes: BatchOutcome[] = [];
    let left = limit;
    // Usually one step is enough, of an equal share from each list. Later ones are for uneven lists.
    for (
      let share = Math.ceil(limit / SHARDS.length);
      left > 0;
      share = Math.min(4 * share, limit)
    ) {
      const lists = await this.#reader.list(account, share);
      // Revoked tokens leave the list, so the next ones move up to its top.
      const entries = lists.flat();
      const tokens = entries.slice(0, left).map((entry) => ({ id: idIn(entry), account, entry }));
      const revocations = this.#keys
        .batched(tokens)
        .map((batch) => this.#revoke(batch, revocation));
      const done = await Promise.all(revocations);
      outcomes.push(...done);
      if (tokens.length === entries.length && lists.every((list) => list.length < share)) break;
      for (const { changed } of done) left -= changed;
    }
    return this.#confirmed(...outcomes);
  }

  async #revoke(tokens: readonly ListedToken[], revocation: Revocation): Promise<BatchOutcome> {
    const outcome = await this.#write(this.#calls.revoke(tokens, revocation));
    const revoked = tokens
      .map((token, index) => ({ ...token, generation: outcome.generations[index] }))
      .filter(({ generation }) => generation);
    // A failover may bring back any version of them.
    const again = { ...revocation, version: undefined };
    if (revoked.length > 0) {
      this.#recent.add(this.#calls.revoke(revoked, again), revocation.account);
    }
    return outcome;
  }

  /** Compares with the clock of each server that holds tokens to purge. */
  purge(query: PurgeQuery): Promise<PurgedRecords> {
    return this.#remove(query, (limit) => this.#reader.ended({ ...query, limit }), query.limit);
  }

  /** Compares with the clock of each server that holds tokens to prune. */
  prune(query: PruneQuery): Promise<PurgedRecords> {
    // The instant of the end is an end, unlike in a purge, which removes only what is older.
    const removal = { now: query.now, minAgeMs: -1 };
    const find = (limit: number) => this.#reader.prunable({ ...query, limit });
    return this.#remove(removal, find, query.limit);
  }

  async #remove(
    removal: Removal,
    find: (limit: number) => Promise<EndedToken[]>,
    limit: number,
  ): Promise<PurgedRecords> {
    const ids: TokenId[] = [];
    let count = 0;
    while (count < limit) {
      const ended = await find(limit - count);
      // Waits for no replica: a token that comes back is purged again.
      const answers = await this.#runBatched(ended, (batch) => this.#calls.remove(batch, removal));
      await this.#runBatched(answers.flatMap(childrenIn), (batch) => this.#calls.unlist(batch));
      let [removed, stale] = [0, 0];
      for (const answer of answers.map(numbersIn)) {
        removed += answer[0];
        stale += answer[1];
      }
      const found = ended.map(({ id }) => id as TokenId);
      ids.push(...(await purgedOf(found, removed, (left) => this.find(left))).ids);
      count += removed;
      // If others have removed all that was found, they go on with the rest.
      if (removed + stale === 0) break;
    }
    return { count, ids };
  }

  #runBatched<Item extends { readonly id: string }>(
    items: readonly Item[],
    callOf: (batch: readonly Item[]) => ScriptCall,
  ): Promise<unknown[]> {
    const batches = this.#keys.batched(items);
    return Promise.all(batches.map((batch) => runScript(this.#driver, callOf(batch))));
  }

  /** Asks the clock of the server that holds the first shard, which is a primary. */
  hasReached(instant: Date): Promise<boolean> {
    return this.#reader.hasReached(instant);
  }

  /**
   * Listens on a connection of its own, and opens another one when that is lost. The servers of
   * a cluster pass changes on to each other. Resolves once it has heard itself, and rejects with the
   * reason `pooler` if it has not after three seconds: something between may pass no messages on.
   */
  async watch(
    onChange: (ids: readonly TokenId[] | 'all') => void,
    onTrouble: (failure: TokenError | undefined) => void = () => {},
  ): Promise<Unsubscribe> {
    const reports = { onChange, onTrouble };
    const listener = new ChangeListener(this.#driver, this.#keys.channel, reports);
    this.#listeners.add(listener);
    const end = async () => {
      listener.stop();
      this.#listeners.delete(listener);
    };
    try {
      await withDriver(this.#driver, () => listener.start());
    } catch (error) {
      await end();
      throw error;
    }
    return end;
  }

  /**
   * Examines each primary: whether it writes and syncs an append-only file, evicts keys, has the
   * replicas that are waited for, and whether the cluster is whole. It needs the right to `INFO`,
   * `TIME`, `CLUSTER INFO` and `CONFIG GET`. Without the last one it reports which settings to check.
   * With `full`, it also says what a primary of a cluster that is paused and replaced can do.
   */
  doctor(options: DoctorOptions = {}): Promise<StoreFinding[]> {
    return withDriver(this.#driver, () => examine(this.#driver, this.#replicas, options));
  }

  /** Ends the connections that the store has opened. The client that you passed in stays open. */
  async close(): Promise<void> {
    for (const listener of this.#listeners) listener.stop();
    this.#recent.close();
    this.#reader.close();
    this.#replicated?.close();
    await Promise.all([this.usage.close(), this.leases.close?.(), this.requests.close?.()]);
  }

  async #write(call: WriteCall): Promise<BatchOutcome> {
    const { answer, confirmations } =
      this.#replicated === undefined
        ? { answer: await runScript(this.#driver, call), confirmations: 0 }
        : await this.#replicated.run(call);
    const [changed, repeated, malformed] = numbersIn(answer);
    const generations = (answer as readonly unknown[]).slice(3).map(String);
    return { changed: changed + repeated, malformed, generations, confirmations };
  }

  /** Counts changed tokens, or rejects if too few replicas have confirmed the changes. */
  #confirmed(...outcomes: readonly BatchOutcome[]): number {
    if (outcomes.some(({ malformed }) => malformed > 0)) throw corruptRecord();
    const changes = outcomes.filter(({ changed }) => changed > 0);
    const confirmations = Math.min(this.#replicas, ...changes.map((one) => one.confirmations));
    if (confirmations < this.#replicas) throw this.#unconfirmed(confirmations);
    return changes.reduce((sum, { changed }) => sum + changed, 0);
  }

  #unconfirmed(confirmations: number): TokenError {
    this.#emit({ type: 'durability_unconfirmed', confirmations, needed: this.#replicas });
    return new TokenError(
      'durability_unconfirmed',
      'the change is made, but too few replicas have confirmed it: a failover may undo it',
    );
  }

  #emit(event: RedisStoreEvent): void {
    notify(this.#onEvent, Object.freeze(event));
  }
}

/**
 * Claims keys of their own on a server, `tokenwright_contract_…`, to prove a store there: see `contractReport`
 * of `tokenwright/testing`. Other keys stay as they are. To remove its own, `drop` looks at the names of all
 * keys once, with `SCAN`.
 *
 * @throws {TokenError} `store_unavailable`, with the reason `forbidden` if the user may not write these keys;
 * `invalid_options`
 * @example
 * const client = new Redis('redis://db.internal');
 * const report = await contractReport(await scratch(client, { replicas: 1 }));
 */
export async function scratch(
  client: RedisClient,
  options: Omit<RedisStoreOptions, 'keyPrefix'> = {},
): Promise<Scratch> {
  const { name, nextPrefix, ...place } = await scratchKeys(client);
  return {
    ...place,
    open: async () => new RedisTokenStore(client, { ...options, keyPrefix: await nextPrefix() }),
  };
}

/** What a script has done, and how many replicas have confirmed it. */
interface BatchOutcome {
  readonly changed: number;
  readonly malformed: number;
  /** The generation of each token that was changed, at the index of that token. */
  readonly generations: readonly string[];
  readonly confirmations: number;
}
