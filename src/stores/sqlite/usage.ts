import { MAX_COUNTED_SCOPES, SQLITE_STEP } from '../../bounds.ts';
import type { ScanQuery } from '../../ports/token-store.ts';
import {
  type CountedTokens,
  OTHER_SCOPES,
  type UsageDelta,
  type UsageRecord,
  type UsageStore,
  type UsageTotals,
  type UsedScope,
} from '../../ports/usage-store.ts';
import type { TokenId } from '../../token/record.ts';
import { stepOf, totalsIn } from '../shared/usage-rows.ts';
import { cellsOf, changesIn, returnArrays, type SqliteHandle } from './client.ts';
import { SideDatabase } from './side-database.ts';
import { USAGE } from './usage-schema.ts';

type Statements = ReturnType<typeof prepare>;

/**
 * Stores how tokens are used in an SQLite database of its own: a write to the file of the tokens would
 * make every process evict its cached tokens.
 *
 * A write waits up to 1.5 s for another process, by a timer, and then rejects with `store_unavailable`.
 * Counts survive the end of the process, but a loss of power may cost the last of them
 * (`synchronous=NORMAL`). If the file is removed or replaced while it is open, calls reject with
 * `store_corrupt` until it is opened again.
 *
 * @example
 * const store = SqliteUsageStore.open('usage.db');
 * await store.add([{ id: token.id, refusals: 1 }]);
 * await store.close();
 */
export class SqliteUsageStore implements UsageStore {
  readonly #database: SideDatabase;
  readonly #statements: Statements;

  private constructor(database: SideDatabase) {
    this.#database = database;
    this.#statements = prepare(database.handle);
  }

  /**
   * Opens a database and makes its tables if it is empty.
   *
   * A path is opened with `node:sqlite`; a missing file is created for its owner alone (mode 0600).
   * `':memory:'` is a database that ends with the store. A handle that you pass in gets our pragmas and
   * stays open when the store is closed.
   *
   * @throws {TokenError} `invalid_options` if this Node.js has no `node:sqlite`, or the database holds
   * something else, such as tokens; `store_unavailable` if it does not open
   * @example
   * SqliteUsageStore.open('/var/lib/acme/usage.db');
   */
  static open(pathOrHandle: string | SqliteHandle): SqliteUsageStore {
    return new SqliteUsageStore(SideDatabase.open(pathOrHandle, USAGE));
  }

  async add(batch: readonly UsageDelta[]): Promise<void> {
    if (batch.length > 0) await this.#database.write(() => batch.forEach(this.#addOne));
  }

  readonly #addOne = (delta: UsageDelta): void => {
    const { addUses, insertUses, addRefusals } = this.#statements;
    const { id, scope } = delta;
    if (scope === undefined) {
      addRefusals.run(id, delta.refusals);
      return;
    }
    const { uses } = delta;
    const lastUsedAt = delta.lastUsedAt.getTime();
    const changes = changesIn(addUses.run(uses, lastUsedAt, id, scope));
    if (changes === 0) insertUses.run(id, id, scope, uses, lastUsedAt);
  };

  async read(ids: readonly TokenId[]): Promise<(UsageRecord | undefined)[]> {
    const asked = JSON.stringify(ids);
    const rows = await this.#database.read(() => this.#statements.read.all(asked, asked));
    const found = new Map<number, { refusals: number; scopes: UsedScope[] }>();
    for (const row of rows) {
      const [index, scope, count, lastUsedAt] = cellsOf(row);
      const usage = found.get(Number(index)) ?? { refusals: 0, scopes: [] };
      found.set(Number(index), usage);
      if (scope === null) usage.refusals = Number(count);
      else usage.scopes.push(usedScope(scope, count, lastUsedAt));
    }
    return Array.from(ids, (_, index) => found.get(index));
  }

  async totals(ids: readonly TokenId[]): Promise<(UsageTotals | undefined)[]> {
    const asked = JSON.stringify(ids);
    const rows = await this.#database.read(() => this.#statements.totals.all(asked));
    const found = new Map<number, UsageTotals>();
    for (const row of rows) {
      const [index, uses, lastUsedAt, refusals] = cellsOf(row).map(numberOrNull);
      if (uses === null && refusals === null) continue;
      const counts = { uses: uses ?? 0, refusals: refusals ?? 0, lastUsedAt: lastUsedAt ?? null };
      found.set(Number(index), totalsIn(counts));
    }
    return Array.from(ids, (_, index) => found.get(index));
  }

  async forget(ids: readonly TokenId[]): Promise<void> {
    for (let start = 0; start < ids.length; start += SQLITE_STEP) {
      const asked = JSON.stringify(ids.slice(start, start + SQLITE_STEP));
      await this.#database.write(() => {
        this.#statements.forgetUses.run(asked);
        this.#statements.forgetRefusals.run(asked);
      });
    }
  }

  async scan({ after = '', limit }: ScanQuery): Promise<CountedTokens> {
    const rows = await this.#database.read(() =>
      this.#statements.scan.all(after, limit, after, limit, limit),
    );
    return stepOf(
      rows.map((row) => String(cellsOf(row)[0])),
      limit,
    );
  }

  async since(): Promise<Date> {
    return new Date(
      await this.#database.read(() => Number(cellsOf(this.#statements.since.get())[0])),
    );
  }

  async close(): Promise<void> {
    await this.#database.close();
  }
}

function usedScope(scope: unknown, uses: unknown, lastUsedAt: unknown): UsedScope {
  return { scope: String(scope), uses: Number(uses), lastUsedAt: new Date(Number(lastUsedAt)) };
}

function numberOrNull(cell: unknown): number | null {
  return cell === null ? null : Number(cell);
}

function prepare(handle: SqliteHandle) {
  return {
    addUses: handle.prepare(
      `UPDATE uses SET uses = uses + ?, last_used_at = max(last_used_at, ?)
       WHERE id = ? AND scope = ?`,
    ),
    insertUses: handle.prepare(
      `INSERT INTO uses (id, scope, uses, last_used_at) VALUES (?, iif(
         (SELECT count(*) FROM uses WHERE id = ? AND scope <> '${OTHER_SCOPES}')
           < ${MAX_COUNTED_SCOPES}, ?, '${OTHER_SCOPES}'), ?, ?)
       ON CONFLICT (id, scope) DO UPDATE SET uses = uses + excluded.uses,
         last_used_at = max(last_used_at, excluded.last_used_at)`,
    ),
    addRefusals: handle.prepare(
      `INSERT INTO refusals (id, refusals) VALUES (?, ?)
       ON CONFLICT (id) DO UPDATE SET refusals = refusals + excluded.refusals`,
    ),
    // CROSS JOIN fixes the order of the loops: one index lookup for each id.
    read: returnArrays(
      handle.prepare(
        `SELECT asked.key, uses.scope, uses.uses, uses.last_used_at
         FROM json_each(?) AS asked CROSS JOIN uses ON uses.id = asked.value
         UNION ALL SELECT asked.key, NULL, refusals.refusals, NULL
         FROM json_each(?) AS asked CROSS JOIN refusals ON refusals.id = asked.value`,
      ),
    ),
    totals: returnArrays(
      handle.prepare(
        `SELECT asked.key, sum(uses.uses), max(uses.last_used_at),
           (SELECT refusals FROM refusals WHERE refusals.id = asked.value)
         FROM json_each(?) AS asked LEFT JOIN uses ON uses.id = asked.value
         GROUP BY asked.key`,
      ),
    ),
    scan: returnArrays(
      handle.prepare(
        `SELECT id FROM (SELECT DISTINCT id FROM uses WHERE id > ? ORDER BY id LIMIT ?)
         UNION SELECT id FROM (SELECT id FROM refusals WHERE id > ? ORDER BY id LIMIT ?)
         ORDER BY id LIMIT ?`,
      ),
    ),
    since: handle.prepare('SELECT since FROM counted_since'),
    forgetUses: handle.prepare('DELETE FROM uses WHERE id IN (SELECT value FROM json_each(?))'),
    forgetRefusals: handle.prepare(
      'DELETE FROM refusals WHERE id IN (SELECT value FROM json_each(?))',
    ),
  };
}
