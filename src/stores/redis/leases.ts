import { TokenError } from '../../errors.ts';
import type { LeaseStore, LeaseWant, UnspentLease } from '../../ports/lease-store.ts';
import { leaseRow, summedLeases } from '../shared/lease-rows.ts';
import { driverOf, type RedisClient } from './client.ts';
import { type KeySpace, keySpaceOf } from './layout.ts';
import { GIVE_BACK_LEASES, TAKE_LEASES } from './lease-scripts.ts';
import { ReplicatedWrites, readReplication } from './replicated-writes.ts';

/** How a {@link RedisLeaseStore} works. */
export interface RedisLeaseStoreOptions {
  /**
   * The prefix of all keys: 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `_`, `-`, `.` and `:`. It may be
   * the one of the token store: their keys differ. @default 'tokenwright'
   */
  readonly keyPrefix?: string | undefined;
  /**
   * How many replicas must have a grant before its promise resolves, from 0 to 10. A failover loses the
   * grants that had not reached the replica that takes over, and limits may be exceeded by that much.
   * @default 1 for a cluster, 0 for a lone server
   */
  readonly replicas?: number | undefined;
  /** How long a call waits for them, in milliseconds, from 1 to 10 000. @default 500 */
  readonly waitMs?: number | undefined;
}

/** One count in Redis. */
interface Count {
  /** The key of the lease, which decides the shard. */
  readonly id: string;
  readonly name: string;
  readonly values: readonly string[];
  /** Its index in the call. */
  readonly index: number;
}

/**
 * Counts the uses of limited tokens in Redis or Redis Cluster, version 6.2 or later.
 *
 * Pass a client of ioredis or node-redis, such as the one of the token store. It is yours: closing the
 * store leaves it open. Calls go over connections of their own, which never send a command twice. A call
 * takes one round trip, in a cluster one to each server, concurrently. It rejects if one of them fails,
 * and what the others have granted is lost.
 *
 * The clock of the server decides whether a window has begun and whether it has ended. Counts expire by themselves, so
 * `purge` has nothing to do. Redis is durable only with an append-only file, and forgets counts when it
 * evicts keys: set `maxmemory-policy` to `noeviction`, or limits may be exceeded.
 *
 * @example
 * const client = new Redis('redis://db.internal', { maxRetriesPerRequest: 1, socketTimeout: 1000 });
 * const limits = { store: new RedisLeaseStore(client) };
 * const tokens = new TokenService({ store: new RedisTokenStore(client), keys, prefix: 'acme', limits });
 */
export class RedisLeaseStore implements LeaseStore {
  readonly #keys: KeySpace;
  readonly #replicas: number;
  readonly #writes: ReplicatedWrites;

  /**
   * Sends nothing; the first call does.
   *
   * @throws {TokenError} `invalid_options`, also for a client that reads from replicas
   */
  constructor(client: RedisClient, options: RedisLeaseStoreOptions = {}) {
    const driver = driverOf(client);
    const { replicas, waitMs } = readReplication(options, driver);
    this.#replicas = replicas;
    this.#keys = keySpaceOf(driver, options.keyPrefix);
    this.#writes = new ReplicatedWrites(driver, replicas, waitMs);
  }

  async take(wants: readonly LeaseWant[]): Promise<number[]> {
    const granted = new Array<number>(wants.length).fill(0);
    const counts = wants
      .map(leaseRow)
      .map(({ key, window, wanted, limit, from, until }, index) => ({
        id: key,
        name: this.#keys.lease(key, window),
        values: [limit, wanted, from, until].map(String),
        index,
      }));
    const parts = this.#keys.batched<Count>(counts).map(async (part) => {
      const { answer, confirmations } = await this.#run(part, TAKE_LEASES);
      if (confirmations < this.#replicas) throw unconfirmed();
      for (const [place, { index }] of part.entries()) {
        granted[index] = Number((answer as readonly unknown[])[place]);
      }
    });
    await Promise.all(parts);
    return granted;
  }

  async giveBack(leases: readonly UnspentLease[]): Promise<void> {
    const counts = summedLeases(leases).map(({ key, window, amount }, index) => ({
      id: key,
      name: this.#keys.lease(key, window),
      values: [String(amount)],
      index,
    }));
    const parts = this.#keys.batched<Count>(counts);
    await Promise.all(parts.map((part) => this.#run(part, GIVE_BACK_LEASES)));
  }

  /** Always resolves to 0: counts expire by themselves. */
  async purge(): Promise<number> {
    return 0;
  }

  /** Ends the connections that the store has opened. The client that you passed in stays open. */
  async close(): Promise<void> {
    this.#writes.close();
  }

  #run(counts: readonly Count[], script: typeof TAKE_LEASES) {
    return this.#writes.run({
      slot: this.#keys.slotOf(counts),
      script,
      keys: counts.map(({ name }) => name),
      values: counts.flatMap(({ values }) => values),
    });
  }
}

function unconfirmed(): TokenError {
  return new TokenError(
    'store_unavailable',
    'uses were granted, but too few replicas have confirmed it: a failover might grant them again',
  );
}
