import { MAX_COUNTED_SCOPES, SQLITE_STEP } from '../../bounds.ts';
import type { ScanQuery, StoreFinding } from '../../ports/token-store.ts';
import {
  type CountedTokens,
  OTHER_SCOPES,
  type UsageDelta,
  type UsageRecord,
  type UsageStore,
  type UsageTotals,
  type UsedScope,
} from '../../ports/usage-store.ts';
import { systemClock } from '../../time/clock.ts';
import type { TokenId } from '../../token/record.ts';
import { stepOf, totalsIn } from '../shared/usage-rows.ts';
import { cellsOf, changesIn, returnArrays, type SqliteHandle } from './client.ts';
import { type Schema, sideNames } from './schema.ts';
import { SideDatabase } from './side-database.ts';

type Statements = ReturnType<typeof prepare>;

/**
 * Counts how tokens are used, in a database of its own. Counts survive the end of the process, but a loss of
 * power may cost the last of them (`synchronous=NORMAL`).
 */
export class SqliteUsage implements UsageStore {
  readonly #database: SideDatabase<Statements>;

  /** @throws {TokenError} `invalid_options` if a handle is one of a database that holds something else */
  constructor(place: string | SqliteHandle) {
    this.#database = new SideDatabase(place, USAGE, prepare);
  }

  async add(batch: readonly UsageDelta[]): Promise<void> {
    if (batch.length === 0) return;
    await this.#database.write((statements) => {
      for (const delta of batch) addOne(statements, delta);
    });
  }

  async read(ids: readonly TokenId[]): Promise<(UsageRecord | undefined)[]> {
    const asked = JSON.stringify(ids);
    const rows = await this.#database.read(({ read }) => read.all(asked, asked));
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
    const rows = await this.#database.read(({ totals }) => totals.all(asked));
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
      await this.#database.write(({ forgetUses, forgetRefusals }) => {
        forgetUses.run(asked);
        forgetRefusals.run(asked);
      });
    }
  }

  async scan({ after = '', limit }: ScanQuery): Promise<CountedTokens> {
    const rows = await this.#database.read(({ scan }) =>
      scan.all(after, limit, after, limit, limit),
    );
    return stepOf(
      rows.map((row) => String(cellsOf(row)[0])),
      limit,
    );
  }

  async since(): Promise<Date> {
    return new Date(await this.#database.read(({ since }) => Number(cellsOf(since.get())[0])));
  }

  /** Rejects if the file cannot be read. Makes none. */
  async doctor(): Promise<StoreFinding[]> {
    if (this.#database.exists) await this.since();
    return [];
  }

  async close(): Promise<void> {
    await this.#database.close();
  }
}

const USAGE: Schema = {
  ...sideNames('usage'),
  // `TWUS`
  applicationId: 0x54575553,
  table: 'uses',
  columns: ['id', 'scope', 'uses', 'last_used_at'],
  create(handle) {
    handle.exec(`
      CREATE TABLE uses (
        id TEXT NOT NULL,
        scope TEXT NOT NULL,
        uses INTEGER NOT NULL,
        last_used_at INTEGER NOT NULL,
        PRIMARY KEY (id, scope)
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE refusals (
        id TEXT NOT NULL PRIMARY KEY,
        refusals INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE counted_since (
        since INTEGER NOT NULL
      ) STRICT;
      INSERT INTO counted_since VALUES (${systemClock.now().getTime()});
    `);
  },
  steps: [],
  pragmas: ['synchronous = NORMAL'],
};

function addOne({ addUses, insertUses, addRefusals }: Statements, delta: UsageDelta): void {
  const { id, scope } = delta;
  if (scope === undefined) {
    addRefusals.run(id, delta.refusals);
    return;
  }
  const { uses } = delta;
  const lastUsedAt = delta.lastUsedAt.getTime();
  const changes = changesIn(addUses.run(uses, lastUsedAt, id, scope));
  if (changes === 0) insertUses.run(id, id, scope, uses, lastUsedAt);
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
