import type { LeaseStore, LeaseWant, UnspentLease } from '../../ports/lease-store.ts';
import type { StoreFinding } from '../../ports/token-store.ts';
import { systemClock } from '../../time/clock.ts';
import { type LeaseRow, leaseRow, slotOf, summedLeases } from '../shared/lease-rows.ts';
import { cellsOf, changesIn, returnArrays, type SqliteHandle } from './client.ts';
import { examineRows } from './doctor.ts';
import { type Schema, sideNames } from './schema.ts';
import { SideDatabase } from './side-database.ts';

type Statements = ReturnType<typeof prepare>;

/**
 * Counts the uses of limited tokens, in a database of its own. What was granted stays granted: each call is on
 * disk before its promise resolves (`synchronous=FULL`). The time of the machine decides whether a window
 * has ended.
 */
export class SqliteLeases implements LeaseStore {
  readonly #database: SideDatabase<Statements>;

  /** @throws {TokenError} `invalid_options` if a handle is one of a database that holds something else */
  constructor(place: string | SqliteHandle) {
    this.#database = new SideDatabase(place, LEASES, prepare);
  }

  async take(wants: readonly LeaseWant[]): Promise<number[]> {
    const rows = wants.map(leaseRow);
    if (rows.length === 0) return [];
    return this.#database.write((statements) => {
      const now = systemClock.now().getTime();
      return rows.map((row) => takeOne(statements, row, now));
    });
  }

  async giveBack(leases: readonly UnspentLease[]): Promise<void> {
    const given = summedLeases(leases);
    if (given.length === 0) return;
    await this.#database.write(({ giveBack }) => {
      for (const { key, window, amount } of given) {
        giveBack.run(amount, key, slotOf(window), window);
      }
    });
  }

  async purge(before: Date, limit: number): Promise<number> {
    if (!this.#database.exists) return 0;
    return this.#database.write(({ purge }) => {
      const ended = Math.min(before.getTime(), systemClock.now().getTime());
      return changesIn(purge.run(ended, limit));
    });
  }

  /** Looks for what slows the file down, and rejects if it cannot be read. Makes none. */
  async doctor(): Promise<StoreFinding[]> {
    if (!this.#database.exists) return [];
    return this.#database.read((_, handle) => examineRows(handle, PLACE));
  }

  async close(): Promise<void> {
    await this.#database.close();
  }
}

const BY_END = 'leases_by_end';

const PLACE = { part: 'leases', table: 'leases', end: 'ends_at', indexes: [BY_END] } as const;

const LEASES: Schema = {
  ...sideNames('leases'),
  // `TWLS`
  applicationId: 0x54574c53,
  table: 'leases',
  columns: ['lease_key', 'slot', 'period', 'granted', 'latest', 'most', 'ends_at'],
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
  steps: [],
  pragmas: ['synchronous = FULL'],
};

function takeOne(
  { take }: Statements,
  { key, slot, window, wanted, limit, from, until }: LeaseRow,
  now: number,
): number {
  if (now < from || until <= now) return 0;
  const values = [key, slot, window, wanted, wanted, limit, until];
  const row = take.get(...values, ...Array<number>(TIME_PARAMETERS).fill(now));
  return Number(cellsOf(row)[0]);
}

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
