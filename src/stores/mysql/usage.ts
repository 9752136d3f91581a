import { MAX_COUNTED_SCOPES } from '../../bounds.ts';
import { TokenError } from '../../errors.ts';
import type { ScanQuery } from '../../ports/token-store.ts';
import type {
  CountedTokens,
  UsageDelta,
  UsageRecord,
  UsageStore,
  UsageTotals,
} from '../../ports/usage-store.ts';
import type { TokenId } from '../../token/record.ts';
import { KnownRows } from '../shared/known-rows.ts';
import { USAGE } from '../shared/schema-mark.ts';
import {
  isApart,
  REFUSALS,
  rowsOf,
  stepOf,
  type TotalsRow,
  totalsOf,
  type UsageRow,
  usagesOf,
  withinBound,
} from '../shared/usage-rows.ts';
import type { Cells, Session } from './client.ts';
import type { Table } from './migration.ts';
import { MAX_ID_BYTES, MAX_SCOPE_BYTES, sinceSql } from './schema.ts';
import type { MysqlValue } from './statement.ts';
import { marks, padToPowerOfTwo, perCount, withState } from './statements.ts';

/**
 * Counts how tokens are used in a table of its own: to count a use never changes the row of a token. A batch is
 * one statement. If it has scopes of tokens that this store has not written before, it first reads which of the
 * tokens have nearly as many scopes as are counted apart.
 */
export class MysqlUsage implements UsageStore {
  readonly #session: Session;
  readonly #sql: ReturnType<typeof statementsFor>;
  readonly #known = new KnownRows();

  constructor(session: Session, table: Table) {
    this.#session = session;
    this.#sql = statementsFor(table);
  }

  async add(batch: readonly UsageDelta[]): Promise<void> {
    const rows = rowsOf(batch);
    if (rows.length === 0) return;
    const bounded = await this.#bounded(rows);
    const parameters = inOrderOfKey(bounded.map(parametersOf));
    await this.#write(this.#sql.add(parameters.length), parameters.flat());
    this.#known.add(bounded);
  }

  /** Only scopes that this store has not written yet may have no room. */
  async #bounded(rows: readonly UsageRow[]): Promise<readonly UsageRow[]> {
    const fresh = new Set(this.#known.missing(rows));
    if (fresh.size === 0) return rows;
    // Reads first: a statement that also reads the table locks what it reads, so that concurrent ones
    // end in deadlocks.
    const bounded = withinBound([...fresh], await this.#crowded([...fresh]));
    return [...rows.filter((row) => !fresh.has(row)), ...bounded];
  }

  /** The stored scopes of the tokens that may have no room for all new ones. */
  async #crowded(rows: readonly UsageRow[]): Promise<Map<TokenId, Set<string>>> {
    const counts = new Map<TokenId, number>();
    for (const { id } of rows) counts.set(id, (counts.get(id) ?? 0) + 1);
    const ids = padToPowerOfTwo([...counts.keys()]);
    const room = Math.max(0, MAX_COUNTED_SCOPES - Math.max(...counts.values()));
    const found = await this.#read(this.#sql.crowded(ids.length), [...ids, room]);
    const crowded = new Map<TokenId, Set<string>>();
    for (const row of found.map(rowIn)) {
      const scopes = crowded.get(row.id) ?? new Set();
      crowded.set(row.id, isApart(row) ? scopes.add(row.scope) : scopes);
    }
    return crowded;
  }

  async read(ids: readonly TokenId[]): Promise<(UsageRecord | undefined)[]> {
    return usagesOf(ids, (await this.#rowsOf(this.#sql.read, ids)).map(rowIn));
  }

  async totals(ids: readonly TokenId[]): Promise<(UsageTotals | undefined)[]> {
    return totalsOf(ids, (await this.#rowsOf(this.#sql.totals, ids)).map(totalsIn));
  }

  /** The rows of a statement about ids, in parts if there are too many. */
  async #rowsOf(sqlFor: (count: number) => string, ids: readonly TokenId[]): Promise<Cells[]> {
    const parts = Array.from({ length: Math.ceil(ids.length / MAX_READ) }, (_, part) =>
      padToPowerOfTwo(ids.slice(part * MAX_READ, (part + 1) * MAX_READ)),
    );
    const rows = parts.map((part) => this.#read(sqlFor(part.length), part));
    return (await Promise.all(rows)).flat();
  }

  async forget(ids: readonly TokenId[]): Promise<void> {
    this.#known.remove(ids);
    if (ids.length > MAX_READ) await this.forget(ids.slice(MAX_READ));
    const [first, ...rest] = ids.slice(0, MAX_READ);
    if (first === undefined) return;
    const parameters = padToPowerOfTwo([first, ...rest]);
    await this.#write(this.#sql.forget(parameters.length), parameters);
  }

  async scan({ after = '', limit }: ScanQuery): Promise<CountedTokens> {
    const values = [Buffer.from(after), String(limit)];
    const rows = await this.#read(this.#sql.scan, values);
    return stepOf(
      rows.map(([id]) => String(id)),
      limit,
    );
  }

  /**
   * The time from which the counts are complete: when the table was created.
   *
   * @throws {TokenError} `store_unavailable`
   */
  async since(): Promise<Date> {
    const [row] = await this.#read(this.#sql.since, []);
    if (row !== undefined) return new Date(rowIn(row).lastUsedAt);
    // Somebody has emptied the table: counts begin now.
    await this.#write(this.#sql.begin, []);
    return this.since();
  }

  #read(sql: string, values: MysqlValue[]): Promise<Cells[]> {
    return this.#session.read(sql, values, USAGE);
  }

  async #write(sql: string, values: MysqlValue[]): Promise<void> {
    await this.#session.write(sql, values, USAGE);
  }
}

/** Longer lists of ids are read in parts: a statement takes at most 65 535 parameters. */
const MAX_READ = 1024;

function statementsFor(table: Table) {
  const { quoted } = table;
  const counted = `FROM ${quoted} AS counted FORCE INDEX (PRIMARY)`;
  const cells = 'counted.id, counted.scope, counted.uses, counted.last_used_at';
  return {
    /** The rows of tokens that have more rows than the last value. */
    crowded: perCount((count) =>
      withState(
        `SELECT ${cells} FROM (
          SELECT id FROM ${quoted} FORCE INDEX (PRIMARY) WHERE id IN (${marks(count)})
          GROUP BY id HAVING COUNT(*) > ?
        ) AS crowded JOIN ${quoted} AS counted FORCE INDEX (PRIMARY) ON counted.id = crowded.id`,
        4,
      ),
    ),
    add: perCount(
      (count) => `INSERT INTO ${quoted} (id, scope, uses, last_used_at)
      VALUES ${Array(count).fill('(?, ?, ?, ?)').join(', ')}
      ON DUPLICATE KEY UPDATE uses = uses + VALUES(uses),
        last_used_at = GREATEST(last_used_at, VALUES(last_used_at))`,
    ),
    read: perCount((count) =>
      withState(`SELECT ${cells} ${counted} WHERE counted.id IN (${marks(count)})`, 4),
    ),
    totals: perCount((count) =>
      withState(
        `SELECT counted.id, SUM(IF(counted.scope = '${REFUSALS}', 0, counted.uses)),
          SUM(IF(counted.scope = '${REFUSALS}', counted.uses, 0)),
          MAX(IF(counted.scope = '${REFUSALS}', NULL, counted.last_used_at))
        ${counted} WHERE counted.id IN (${marks(count)}) GROUP BY counted.id`,
        4,
      ),
    ),
    scan: withState(
      `SELECT DISTINCT counted.id, NULL ${counted} WHERE counted.id > ? ORDER BY counted.id LIMIT ?`,
      2,
    ),
    forget: perCount((count) => `DELETE FROM ${quoted} WHERE id IN (${marks(count)})`),
    since: withState(`SELECT ${cells} ${counted} WHERE counted.id = '' AND counted.scope = ''`, 4),
    begin: sinceSql(table),
  };
}

function rowIn([id, scope, uses, lastUsedAt]: Cells): UsageRow {
  return {
    id: String(id) as TokenId,
    scope: String(scope),
    uses: Number(uses),
    lastUsedAt: Number(lastUsedAt),
  };
}

function totalsIn([id, uses, refusals, lastUsedAt]: Cells): TotalsRow {
  return {
    id: String(id) as TokenId,
    uses: Number(uses),
    refusals: Number(refusals),
    lastUsedAt: lastUsedAt === null ? null : Number(lastUsedAt),
  };
}

type Parameters = readonly [id: Buffer, scope: Buffer, uses: number, lastUsedAt: number];

function parametersOf({ id, scope, uses, lastUsedAt }: UsageRow): Parameters {
  return [
    bytesOf('id', id, MAX_ID_BYTES),
    bytesOf('scope', scope, MAX_SCOPE_BYTES),
    uses,
    lastUsedAt,
  ];
}

/** A server that is not strict would cut off the rest. */
function bytesOf(name: string, text: string, max: number): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return bytes;
  throw new TokenError('invalid_request', `${name} must have at most ${max} bytes`);
}

/**
 * Sorts by the primary key, so that overlapping batches cannot deadlock. Fills up to a power of two with
 * rows that add nothing to the first one, so that few statements serve all lengths.
 */
function inOrderOfKey(rows: readonly Parameters[]): readonly Parameters[] {
  const sorted = [...rows].sort(
    ([id, scope], [otherId, otherScope]) =>
      Buffer.compare(id, otherId) || Buffer.compare(scope, otherScope),
  );
  const [first, ...rest] = sorted;
  if (first === undefined) return [];
  const [id, scope, , lastUsedAt] = first;
  const missing = 2 ** Math.ceil(Math.log2(rows.length)) - rows.length;
  const nothing: Parameters = [id, scope, 0, lastUsedAt];
  return [first, ...Array<Parameters>(missing).fill(nothing), ...rest];
}
