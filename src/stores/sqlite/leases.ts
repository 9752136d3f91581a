import type { LeaseStore, LeaseWant, UnspentLease } from '../../ports/lease-store.ts';
import type { StoreFinding } from '../../ports/token-store.ts';
import { systemClock } from '../../time/clock.ts';
import { type LeaseRow, leaseRow, slotOf, summedLeases } from '../shared/lease-rows.ts';
import { cellsOf, changesIn, returnArrays, type SqliteHandle } from './client.ts';
import { examineLeases } from './lease-doctor.ts';
import { SideDatabase, type SideSchema } from './side-database.ts';

/**
 * Counts the uses of limited tokens in an SQLite database of its own, for all processes on one machine: a
 * write to the file of the tokens would make every process evict its cached tokens.
 *
 * What was granted stays granted: each call is on disk before its promise resolves (`synchronous=FULL`).
 * Calls of one turn of the event loop share one transaction. A write waits up to 1.5 s for another process,
 * by a timer, and then rejects with `store_unavailable`. If the file is removed or replaced while it is
 * open, calls reject with `store_corrupt` until it is opened again: others may count in a new file. The
 * time of the machine decides whether a window has ended.
 *
 * @example
 * const limits = { store: SqliteLeaseStore.open('leases.db') };
 * const store = SqliteTokenStore.open('tokens.db');
 * const tokens = new TokenService({ store, keys, prefix: 'acme', limits });
 */
export class SqliteLeaseStore implements LeaseStore {
  readonly #database: SideDatabase;
  readonly #statements: ReturnType<typeof prepare>;

  private constructor(database: SideDatabase) {
    this.#database = database;
    this.#statements = prepare(database.handle);
  }

  /**
   * Opens a database and makes its table if it is empty.
   *
   * A path is opened with `node:sqlite`; a missing file is created for its owner alone (mode 0600).
   * `':memory:'` is a database that ends with the store. A handle that you pass in gets our pragmas and
   * stays open when the store is closed.
   *
   * @throws {TokenError} `invalid_options` if this Node.js has no `node:sqlite`, or the database holds
   * something else, such as tokens; `store_unavailable` if it does not open
   * @example
   * SqliteLeaseStore.open('/var/lib/acme/leases.db');
   */
  static open(pathOrHandle: string | SqliteHandle): SqliteLeaseStore {
    return new SqliteLeaseStore(SideDatabase.open(pathOrHandle, LEASES));
  }

  async take(wants: readonly LeaseWant[]): Promise<number[]> {
    const rows = wants.map(leaseRow);
    if (rows.length === 0) return [];
    return this.#database.write(() => {
      const now = systemClock.now().getTime();
      return rows.map((row) => this.#takeOne(row, now));
    });
  }

  #takeOne({ key, slot, window, wanted, limit, from, until }: LeaseRow, now: number): number {
    if (now < from || until <= now) return 0;
    const values = [key, slot, window, wanted, wanted, limit, until];
    const row = this.#statements.take.get(...values, ...Array<number>(TIME_PARAMETERS).fill(now));
    return Number(cellsOf(row)[0]);
  }

  async giveBack(leases: readonly UnspentLease[]): Promise<void> {
    const given = summedLeases(leases);
    if (given.length === 0) return;
    await this.#database.write(() => {
      for (const { key, window, amount } of given) {
        this.#statements.giveBack.run(amount, key, slotOf(window), window);
      }
    });
  }

  async purge(before: Date, limit: number): Promise<number> {
    return this.#database.write(() => {
      const ended = Math.min(before.getTime(), systemClock.now().getTime());
      return changesIn(this.#statements.purge.run(ended, limit));
    });
  }

  async doctor(): Promise<StoreFinding[]> {
    return this.#database.read(() => examineLeases(this.#database.handle, BY_END));
  }

  async close(): Promise<void> {
    await this.#database.close();
  }
}

const BY_END = 'leases_by_end';

const LEASES: SideSchema = {
  holds: 'leases',
  // `TWLS`
  applicationId: 0x54574c53,
  version: 1,
  synchronous: 'FULL',
  create: (handle) =>
    handle.exec(`
      CREATE TABLE leases (
        lease_key TEXT NOT NULL,
        slot INTEGER NOT NULL,
        period INTEGER NOT NULL,
        granted INTEGER NOT NULL,
        latest INTEGER NOT NULL,
        most INTEGER NOT NULL,
        ends_at INTEGER NOT NULL,
        PRIMARY KEY (lease_key, slot)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX ${BY_END} ON leases (ends_at);
    `),
};

/** How many parameters of `take` are the time. */
const TIME_PARAMETERS = 4;

function prepare(handle: SqliteHandle) {
  const isSame = 'period = excluded.period';
  const isOver = 'period < excluded.period AND ends_at <= ?';
  return {
    // Each expression sees the row as it was before the update.
    take: returnArrays(
      handle.prepare(`
        INSERT INTO leases (lease_key, slot, period, granted, latest, most, ends_at)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (lease_key, slot) DO UPDATE SET
          latest = CASE
            WHEN ${isSame} THEN max(0, min(excluded.granted, excluded.most - granted))
            WHEN ${isOver} THEN excluded.granted
            ELSE 0 END,
          granted = CASE
            WHEN ${isSame} THEN granted + max(0, min(excluded.granted, excluded.most - granted))
            WHEN ${isOver} THEN excluded.granted
            ELSE granted END,
          period = iif(${isOver}, excluded.period, period),
          ends_at = CASE
            WHEN ${isSame} OR ${isOver} THEN max(ends_at, excluded.ends_at)
            ELSE ends_at END,
          most = excluded.most
        RETURNING latest`),
    ),
    giveBack: handle.prepare(
      `UPDATE leases SET granted = max(0, granted - ?)
       WHERE lease_key = ? AND slot = ? AND period = ?`,
    ),
    purge: handle.prepare(
      `DELETE FROM leases WHERE (lease_key, slot) IN (
         SELECT lease_key, slot FROM leases WHERE ends_at < ? ORDER BY ends_at LIMIT ? + 0)`,
    ),
  };
}
