import { randomBytes } from 'node:crypto';
import { isTokenError, TokenError } from '../errors.ts';
import { notify } from '../events.ts';
import type { PageQuery, StoreFinding, TokenStore, Unsubscribe } from '../store.ts';
import type { TokenId, TokenRecord } from '../token.ts';
import { type Driver, driverOf, type RedisClient, whenReady } from './redis/clients.ts';
import { examine } from './redis/doctor.ts';
import {
  beginningOf,
  decodeRecord,
  encodeRecord,
  endOf,
  expiryIn,
  idIn,
  KeySpace,
  nameOf,
  placeOf,
  readName,
  SHARDS,
  type Shard,
  shardOf,
  type TokenName,
} from './redis/layout.ts';
import { DirectWrites, RecentWrites, ReplicatedWrites, type Writes } from './redis/replication.ts';
import {
  DUE,
  INSERT,
  isReply,
  LIST,
  REMOVE,
  REPLACE,
  REVOKE,
  type Script,
  type ScriptCall,
} from './redis/scripts.ts';
import { Watch } from './redis/watch.ts';
import { RowReader } from './rows.ts';

export type {
  IoredisClient,
  IoredisCluster,
  NodeRedisClient,
  NodeRedisCluster,
  NodeRedisNode,
  RedisClient,
} from './redis/clients.ts';

/** How a {@link RedisTokenStore} works. */
export interface RedisStoreOptions {
  /**
   * What all keys begin with: 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `_`, `-`, `.` and `:`.
   * @default 'tokenwright'
   */
  readonly keyPrefix?: string | undefined;
  /**
   * How many replicas must have a write before its promise resolves, from 0 to 10; what a failover
   * may lose is what had not reached the replica that takes over. With 1 or more, writes go over
   * connections of their own. @default 1 for a cluster, 0 for a lone server
   */
  readonly replicas?: number | undefined;
  /**
   * How long a write waits for them, in milliseconds, from 1 to 10 000. Stay below half of the
   * service's deadline: a write may have to wait for the one before it. @default 500
   */
  readonly waitMs?: number | undefined;
  /** Is told what an operator wants to know. What it throws is ignored. */
  readonly onEvent?: ((event: RedisStoreEvent) => void) | undefined;
}

/**
 * What a {@link RedisTokenStore} tells of.
 *
 * `durability_unconfirmed`: a write was made, but fewer replicas than `needed` have confirmed it.
 * `writes_reasserted`: a server had lost changes that were acknowledged, as by a failover, and they
 * were made again, to `count` tokens.
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
      /** To how many tokens. */
      readonly count: number;
    };

/**
 * Keeps tokens in Redis or Redis Cluster, from 6.2 on: for very high read rates.
 *
 * The client is the host's, connected or connecting, of ioredis or node-redis; it stays open when
 * the store is closed. Each write of one token is one script, so that it happens whole or not at
 * all. `revokeAll` and `purge` go in steps of 500 tokens, in a cluster also slot by slot: when
 * `revokeAll` rejects, a part may be revoked, and it can be called again. A token that is issued
 * while it runs is revoked or not; one that was there before is.
 *
 * Redis is durable only with an append-only file, and a failover may undo what was acknowledged.
 * Against the latter writes wait for replicas (see `replicas`), and a store makes its changes of
 * the last minute again when it finds them undone. `doctor` tells what is still weak. While a slot
 * of a cluster moves to another server, writes to the tokens in it reject with `store_unavailable`.
 *
 * The drivers notice late that a connection is dead, and take their time to connect again: see
 * {@link IoredisClient}, {@link IoredisCluster}, {@link NodeRedisClient} and
 * {@link NodeRedisCluster} for options with which the store is back as soon as the server is.
 *
 * @example
 * const client = new Redis('redis://db.internal', { maxRetriesPerRequest: 1, socketTimeout: 1000 });
 * const store = new RedisTokenStore(client, { replicas: 1 });
 * await store.insert(record);
 * await store.close();
 * client.disconnect();
 */
export class RedisTokenStore implements TokenStore {
  readonly #driver: Driver;
  readonly #keys: KeySpace;
  readonly #replicas: number;
  readonly #onEvent: (event: RedisStoreEvent) => void;
  readonly #direct: DirectWrites;
  readonly #writes: Writes;
  readonly #recent: RecentWrites;
  readonly #watches = new Set<Watch>();
  readonly #rows = new RowReader();
  /** The shards that one command can reach together. */
  readonly #groups: readonly (readonly Shard[])[];
  readonly #stampBase = randomBytes(9).toString('base64url');
  #stampCount = 0;

  /**
   * Sends nothing; the first call does.
   *
   * @throws {TokenError} `invalid_options`, also for a client that reads from replicas
   */
  constructor(client: RedisClient, options: RedisStoreOptions = {}) {
    this.#driver = driverOf(client);
    const { isCluster } = this.#driver;
    const { keyPrefix = DEFAULT_KEY_PREFIX, replicas = isCluster ? 1 : 0 } = options;
    const { waitMs = DEFAULT_WAIT_MS, onEvent = () => {} } = options;
    if (typeof keyPrefix !== 'string' || !KEY_PREFIX.test(keyPrefix)) {
      throw invalid('keyPrefix must have 1 to 64 characters of A-Z, a-z, 0-9, _, -, . and :');
    }
    if (!isWithin(replicas, 0, 10)) throw invalid('replicas must be a whole number from 0 to 10');
    if (!isWithin(waitMs, 1, 10_000)) {
      throw invalid('waitMs must be a whole number from 1 to 10000');
    }
    if (typeof onEvent !== 'function') throw invalid('onEvent must be a function');
    this.#keys = new KeySpace(keyPrefix);
    this.#replicas = replicas;
    this.#onEvent = onEvent;
    this.#groups = isCluster ? SHARDS.map((shard) => [shard]) : [SHARDS];
    this.#direct = new DirectWrites(this.#driver);
    this.#writes =
      replicas === 0 ? this.#direct : new ReplicatedWrites(this.#driver, replicas, waitMs);
    this.#recent = new RecentWrites(
      async (call) => repetitionIn(await this.#run(call)),
      (count) => this.#tell({ type: 'writes_reasserted', count }),
    );
  }

  async insert(record: TokenRecord): Promise<void> {
    const stamp = this.#newStamp();
    const value = encodeRecord(record, stamp).join(stamp);
    const values = [stamp, value, listedPlaceOf(record), String(endOf(record)), nameOf(record)];
    const outcome = await this.#write(this.#callOf(INSERT, [record], values));
    if (outcome.changed === 0) throw new TokenError('id_taken', 'this id is taken');
    this.#settled(outcome);
  }

  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    const [id] = ids;
    if (id === undefined) return Promise.resolve([]);
    if (ids.length > 1 || this.#driver.state !== 'ready') return this.#findMany(ids);
    // Each verify goes through here: no helpers, and not even an async function.
    return this.#driver.get(this.#keys.record(id)).then((value) => [this.#read(value)], refuse);
  }

  async #findMany(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    const found = new Array<TokenRecord | undefined>(ids.length).fill(undefined);
    const asked = ids.map((id, place) => ({ id, place, key: this.#keys.record(id) }));
    const reads = this.#grouped(asked).map(async (group) => {
      const values = await this.#ask(() => this.#getAll(group.map(({ key }) => key)));
      for (const [index, { place }] of group.entries()) found[place] = this.#read(values[index]);
    });
    await Promise.all(reads);
    return found;
  }

  async #getAll(keys: readonly string[]): Promise<readonly unknown[]> {
    const [key = ''] = keys;
    if (keys.length === 1) return [await this.#driver.get(key)];
    return (await this.#driver.send(['mget', ...keys], key)) as readonly unknown[];
  }

  async page({ account, after, limit, liveAt }: PageQuery): Promise<TokenRecord[]> {
    const found: TokenRecord[] = [];
    let bound = after === undefined ? FROM_THE_TOP : `(${beginningOf(after)}`;
    for (let size = limit; ; size = Math.min(4 * size, MAX_SCAN)) {
      const { places, isLast } = await this.#scan(account, bound, size);
      const live = places.filter((place) => expiryIn(place) > liveAt.getTime());
      const wanted = live.slice(0, limit - found.length);
      for (const record of await this.find(wanted.map(idIn))) {
        // It may have changed since the list was read.
        if (record !== undefined && isListed(record, account, liveAt)) found.push(record);
      }
      const isThrough = wanted.length === live.length;
      if (found.length === limit || (isLast && isThrough)) return found;
      bound = `(${isThrough ? places.at(-1) : wanted.at(-1)}`;
    }
  }

  /** Merges the lists of all shards: at most `size` places below a bound, newest first. */
  async #scan(
    account: string,
    bound: string,
    size: number,
  ): Promise<{ places: string[]; isLast: boolean }> {
    // More of each than its share, so that once is enough as a rule.
    const share = size / SHARDS.length;
    const count = Math.max(2, Math.ceil(share + 4 * Math.sqrt(share)));
    const lists = await this.#list(account, bound, count);
    // Below the end of a list that goes on there may be more than what is known.
    const ends = lists.filter((list) => list.length === count).map((list) => list.at(-1) ?? '');
    const floor = ends.sort().at(-1) ?? '';
    const places = lists.flat().filter((place) => place >= floor);
    places.sort((a, b) => (a < b ? 1 : -1));
    return { places: places.slice(0, size), isLast: floor === '' && places.length <= size };
  }

  /** The places of an account below a bound, newest first: at most `count` of each shard. */
  async #list(account: string, bound: string, count: number): Promise<string[][]> {
    const lists = this.#groups.map(async (shards) => {
      const keys = shards.map((shard) => this.#keys.account(shard, account));
      const values = [bound, String(count)];
      const answer = await this.#run({ slot: this.#slotOf(shards[0]), script: LIST, keys, values });
      // A list that is missing would hide tokens, from a revocation of all as well.
      if (Array.isArray(answer) && answer.length === keys.length) return answer as string[][];
      throw corrupt();
    });
    return (await Promise.all(lists)).flat();
  }

  async replace(next: TokenRecord): Promise<boolean> {
    const stamp = this.#newStamp();
    const outcome = await this.#write(this.#callToReplace(next, stamp));
    const [birth] = outcome.births;
    if (birth !== undefined) this.#recent.add(this.#callToReplace(next, stamp, birth));
    return this.#settled(outcome) > 0;
  }

  #callToReplace(next: TokenRecord, stamp: string, birth = ''): ScriptCall {
    const values = [
      ...[stamp, ...encodeRecord(next, stamp)],
      ...[listedPlaceOf(next), String(endOf(next)), nameOf(next)],
      ...[String(next.version - 1), JSON.stringify(next.account), birth],
      ...[this.#keys.channel, next.id],
    ];
    return this.#callOf(REPLACE, [next], values);
  }

  async revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    const revocation = { account, at, stamp: this.#newStamp(), version };
    return this.#settled(await this.#revoke([{ id, account }], revocation)) > 0;
  }

  async revokeAll(account: string, at: Date): Promise<number> {
    const revocation = { account, at, stamp: this.#newStamp(), version: undefined };
    const outcomes: Outcome[] = [];
    for (;;) {
      const lists = await this.#list(account, FROM_THE_TOP, BATCH);
      // What is listed leaves the list, so that the rest comes to its top.
      const tokens = lists.flat().map((place) => ({ id: idIn(place), account, place }));
      const revocations = this.#batched(tokens).map((batch) => this.#revoke(batch, revocation));
      outcomes.push(...(await Promise.all(revocations)));
      if (lists.every((list) => list.length < BATCH)) return this.#settled(...outcomes);
    }
  }

  async #revoke(tokens: readonly MetToken[], revocation: Revocation): Promise<Outcome> {
    const outcome = await this.#write(this.#callToRevoke(tokens, revocation));
    const revoked = tokens
      .map((token, index) => ({ ...token, birth: outcome.births[index] }))
      .filter(({ birth }) => birth);
    // Whatever version of them comes back, it is revoked.
    const again = { ...revocation, version: undefined };
    if (revoked.length > 0) this.#recent.add(this.#callToRevoke(revoked, again));
    return outcome;
  }

  #callToRevoke(tokens: readonly MetToken[], revocation: Revocation): ScriptCall {
    const { account, at, stamp, version = '' } = revocation;
    return this.#callOf(REVOKE, tokens, [
      ...[stamp, String(at.getTime()), String(version), JSON.stringify(account)],
      ...[this.#keys.channel, tokens.map(({ id }) => id).join(' ')],
      ...tokens.flatMap((token) => [nameOf(token), token.birth ?? '', token.place ?? '']),
    ]);
  }

  async purge(before: Date, limit: number): Promise<number> {
    let removed = 0;
    while (removed < limit) {
      const due = await this.#due(before, limit - removed);
      if (due.length === 0) break;
      // No replica is waited for: what comes back is purged again.
      const removals = this.#batched(due).map((batch) => {
        const values = batch.flatMap((token) => [nameOf(token), JSON.stringify(token.account)]);
        return this.#run(this.#callOf(REMOVE, batch, [String(before.getTime()), ...values]));
      });
      for (const answer of await Promise.all(removals)) removed += numbersIn(answer)[0];
    }
    return removed;
  }

  async #due(before: Date, limit: number): Promise<TokenName[]> {
    const values = [String(before.getTime()), String(Math.ceil(limit / SHARDS.length))];
    const lists = this.#groups.map((shards) => {
      const keys = shards.map((shard) => this.#keys.ends(shard));
      return this.#run({ slot: this.#slotOf(shards[0]), script: DUE, keys, values });
    });
    const names = (await Promise.all(lists)).flat(2) as string[];
    return names.slice(0, limit).map(readName);
  }

  /**
   * Listens on a connection of its own, which it replaces when it is lost. In a cluster, servers
   * tell each other.
   */
  async watch(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe> {
    const watch = new Watch(this.#driver, this.#keys.channel, onChange);
    this.#watches.add(watch);
    const end = async () => {
      watch.stop();
      this.#watches.delete(watch);
    };
    try {
      await this.#ask(() => watch.start());
    } catch (error) {
      await end();
      throw error;
    }
    return end;
  }

  /**
   * Looks at each primary: whether it keeps and syncs an append-only file, throws keys away, has
   * the replicas that are waited for, and whether the cluster is whole. Needs the right to `INFO`,
   * `TIME`, `CLUSTER INFO` and `CONFIG GET`; without the last one it says what to look at.
   */
  doctor(): Promise<StoreFinding[]> {
    return this.#ask(() => examine(this.#driver, this.#replicas));
  }

  /** Ends the connections that the store has opened; the client of the host stays open. */
  async close(): Promise<void> {
    for (const watch of this.#watches) watch.stop();
    this.#recent.close();
    this.#writes.close();
  }

  #read(value: unknown): TokenRecord | undefined {
    if (value === null || value === undefined) return undefined;
    return this.#rows.readCells(decodeRecord(String(value)));
  }

  /** Unique for each write: a script that meets it again knows that it has been run before. */
  #newStamp(): string {
    this.#stampCount += 1;
    return `${this.#stampBase}${this.#stampCount.toString(36)}`;
  }

  #callOf(script: Script, tokens: readonly TokenName[], values: readonly string[]): ScriptCall {
    const keys = tokens.flatMap((token) => this.#keys.ofToken(token));
    const [shard] = tokens.slice(0, 1).map(({ id }) => shardOf(id));
    return { slot: this.#slotOf(shard), script, keys, values };
  }

  /** A lone server is like a cluster of one slot. */
  #slotOf(shard: Shard | undefined): number {
    return this.#driver.isCluster ? (shard?.slot ?? 0) : 0;
  }

  /** In lists that one command can reach. */
  #grouped<Item extends { readonly id: string }>(items: readonly Item[]): Item[][] {
    if (!this.#driver.isCluster) return [[...items]];
    const groups = new Map<Shard, Item[]>();
    for (const item of items) {
      const shard = shardOf(item.id);
      const group = groups.get(shard);
      if (group === undefined) groups.set(shard, [item]);
      else group.push(item);
    }
    return [...groups.values()];
  }

  /** In lists that one script can take. */
  #batched<Item extends { readonly id: string }>(items: readonly Item[]): Item[][] {
    return this.#grouped(items).flatMap((group) =>
      Array.from({ length: Math.ceil(group.length / BATCH) }, (_, index) =>
        group.slice(index * BATCH, (index + 1) * BATCH),
      ),
    );
  }

  async #run(call: ScriptCall): Promise<unknown> {
    return (await guarded(() => this.#direct.run(call))).answer;
  }

  async #write(call: ScriptCall): Promise<Outcome> {
    const { answer, confirmations } = await guarded(() => this.#writes.run(call));
    const [changed, repeated, malformed] = numbersIn(answer);
    const births = (answer as readonly unknown[]).slice(3).map(String);
    return { changed: changed + repeated, malformed, births, confirmations };
  }

  /** How many tokens were changed, once that is safe. */
  #settled(...outcomes: readonly Outcome[]): number {
    if (outcomes.some(({ malformed }) => malformed > 0)) throw corrupt();
    const changes = outcomes.filter(({ changed }) => changed > 0);
    const confirmations = Math.min(this.#replicas, ...changes.map((one) => one.confirmations));
    if (confirmations < this.#replicas) {
      this.#tell({ type: 'durability_unconfirmed', confirmations, needed: this.#replicas });
      throw new TokenError(
        'durability_unconfirmed',
        'the change is made, but too few replicas have confirmed it: a failover may undo it',
      );
    }
    return changes.reduce((sum, { changed }) => sum + changed, 0);
  }

  #ask<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    return guarded(async () => {
      if (this.#driver.state !== 'ready') await whenReady(this.#driver);
      return work();
    });
  }

  #tell(event: RedisStoreEvent): void {
    notify(this.#onEvent, Object.freeze(event));
  }
}

const DEFAULT_KEY_PREFIX = 'tokenwright';
const KEY_PREFIX = /^[A-Za-z0-9_.:-]{1,64}$/;
const DEFAULT_WAIT_MS = 500;
/** How many tokens one script changes: some milliseconds in which the server does nothing else. */
const BATCH = 500;
const MAX_SCAN = 1000;
const FROM_THE_TOP = '+';

/** What a script has done, and how many replicas know of it. */
interface Outcome {
  readonly changed: number;
  readonly malformed: number;
  /** The births of the tokens that were changed, each in the place of its token. */
  readonly births: readonly string[];
  readonly confirmations: number;
}

interface Revocation {
  readonly account: string;
  readonly at: Date;
  readonly stamp: string;
  readonly version: number | undefined;
}

interface MetToken extends TokenName {
  /** By which it is told from another one with its id; any one where it is absent. */
  readonly birth?: string | undefined;
  /** Where it was met in its account's list. */
  readonly place?: string;
}

/** Where it stands in its account's list; nowhere when it is revoked. */
function listedPlaceOf(record: TokenRecord): string {
  return record.revokedAt === undefined ? placeOf(record) : '';
}

function isListed(record: TokenRecord, account: string, liveAt: Date): boolean {
  return record.account === account && record.revokedAt === undefined && record.expiresAt > liveAt;
}

function numbersIn(answer: unknown): [number, number, number] {
  const [changed, repeated, malformed] = answer as readonly unknown[];
  return [Number(changed), Number(repeated), Number(malformed)];
}

function repetitionIn(answer: unknown): { changed: number; isIntact: boolean } {
  const [changed, repeated] = numbersIn(answer);
  return { changed, isIntact: changed === 0 && repeated > 0 };
}

function isWithin(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}

async function guarded<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    throw refusal(error);
  }
}

function refuse(error: unknown): never {
  throw refusal(error);
}

function refusal(error: unknown): TokenError {
  if (isTokenError(error)) return error;
  if (isReply(error, 'WRONGTYPE')) return corrupt();
  return new TokenError(
    'store_unavailable',
    'Redis cannot be used: it is away, starting, full, no primary, or does not let this user in; tokenwright doctor --store URL tells which',
  );
}

function corrupt(): TokenError {
  return new TokenError('store_corrupt', 'a token record in Redis is malformed');
}

function invalid(message: string): TokenError {
  return new TokenError('invalid_options', message);
}
