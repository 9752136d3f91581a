import { DEFAULT_DEADLINE_MS, MAX_COUNTED_SCOPES, MAX_DEADLINE_MS } from '../../bounds.ts';
import type { ScanQuery } from '../../ports/token-store.ts';
import {
  type CountedTokens,
  OTHER_SCOPES,
  type UsageDelta,
  type UsageRecord,
  type UsageStore,
  type UsageTotals,
} from '../../ports/usage-store.ts';
import type { TokenId } from '../../token/record.ts';
import { KnownRows } from '../shared/known-rows.ts';
import { readWholeNumber } from '../shared/options.ts';
import { USAGE } from '../shared/schema-mark.ts';
import {
  REFUSALS,
  rowsOf,
  stepOf,
  type TotalsRow,
  totalsOf,
  type UsageRow,
  usagesOf,
} from '../shared/usage-rows.ts';
import { type PostgresPool, type PostgresQuery, readPool, Session } from './client.ts';
import { ON_PRIMARY, statementsOf } from './statements.ts';
import { type PostgresUsageTableOptions, readUsageTable, sinceSql } from './usage-schema.ts';

/** How a {@link PostgresUsageStore} works. */
export interface PostgresUsageOptions extends PostgresUsageTableOptions {
  /** How long a statement may take, in milliseconds, from 1 to 60 000. @default 2000 */
  readonly deadlineMs?: number | undefined;
  /**
   * Lets the server keep prepared statements for each connection, as `prepare` of the token store.
   * @default true
   */
  readonly prepare?: boolean | undefined;
}

/**
 * Stores how tokens are used in PostgreSQL, for many processes, in a table of its own: to count a use
 * never changes the row of a token.
 *
 * {@link migrateUsage} creates the table, or run the text of {@link usageMigrationSql}. The pool belongs
 * to the host and stays open. It must lead to the primary: calls on a standby fail with
 * `store_unavailable`. It may be the pool of the token store, whose advice on timeouts holds here, too.
 *
 * A batch is one statement. It commits as the host has set `synchronous_commit`: with `off`, a crash of
 * the server may cost the last counts. If a statement takes longer than `deadlineMs`, the call rejects
 * with `store_unavailable`, and the counts may still be added.
 *
 * @example
 * await migrateUsage(pool);
 * const usage = { store: new PostgresUsageStore(pool) };
 * const tokens = new TokenService({ store: new PostgresTokenStore(pool), keys, prefix: 'acme', usage });
 */
export class PostgresUsageStore implements UsageStore {
  readonly #session: Session;
  readonly #known = new KnownRows();
  readonly #statements: Readonly<Record<keyof ReturnType<typeof textsFor>, PostgresQuery>>;

  /**
   * Does not connect; the first call does.
   *
   * @throws {TokenError} `invalid_options`
   */
  constructor(pool: PostgresPool, options: PostgresUsageOptions = {}) {
    const checked = readPool(pool);
    const { deadlineMs = DEFAULT_DEADLINE_MS, prepare = true } = options;
    readWholeNumber('deadlineMs', deadlineMs, [1, MAX_DEADLINE_MS]);
    this.#session = new Session(checked, deadlineMs, USAGE);
    this.#statements = statementsOf(textsFor(readUsageTable(options)), { prepare });
    if (pool.listenerCount('error') === 0) pool.on('error', () => {});
  }

  async add(batch: readonly UsageDelta[]): Promise<void> {
    const rows = rowsOf(batch);
    if (rows.length === 0) return;
    const isKnown = this.#known.missing(rows).length === 0;
    const moved = await this.#session.run(this.#statements[isKnown ? 'addKnown' : 'add'], [
      arrayText(rows, ({ id }) => quoted(id)),
      arrayText(rows, ({ scope }) => quoted(scope)),
      arrayText(rows, ({ uses }) => uses),
      arrayText(rows, ({ lastUsedAt }) => lastUsedAt),
    ]);
    if (isKnown) return;
    this.#known.add(rows);
    // Some of their scopes had no room.
    this.#known.remove(moved.map((row) => (row as { readonly id: TokenId }).id));
  }

  async read(ids: readonly TokenId[]): Promise<(UsageRecord | undefined)[]> {
    if (ids.length === 0) return [];
    const rows = await this.#session.run(this.#statements.read, [arrayText(ids, quoted)]);
    return usagesOf(ids, rows.map(rowIn));
  }

  async totals(ids: readonly TokenId[]): Promise<(UsageTotals | undefined)[]> {
    if (ids.length === 0) return [];
    const rows = await this.#session.run(this.#statements.totals, [arrayText(ids, quoted)]);
    return totalsOf(ids, rows.flatMap(totalsIn));
  }

  async forget(ids: readonly TokenId[]): Promise<void> {
    this.#known.remove(ids);
    if (ids.length > 0) await this.#session.run(this.#statements.forget, [ids]);
  }

  async scan({ after = '', limit }: ScanQuery): Promise<CountedTokens> {
    const rows = await this.#session.run(this.#statements.scan, [after, limit]);
    return stepOf(
      rows.map((row) => (row as { readonly id: string }).id),
      limit,
    );
  }

  /**
   * The time from which the counts are complete: when the table was created.
   *
   * @throws {TokenError} `store_unavailable`
   */
  async since(): Promise<Date> {
    const [row] = await this.#session.run(this.#statements.since, []);
    if (row !== undefined) return new Date(rowIn(row).lastUsedAt);
    // Somebody has emptied the table: counts begin now.
    await this.#session.run(this.#statements.begin, []);
    return this.since();
  }
}

/** An array as a parameter. The driver would spend four times as long on a thousand rows. */
function arrayText<Item>(
  items: readonly Item[],
  elementOf: (item: Item) => string | number,
): string {
  return `{${items.map(elementOf).join(',')}}`;
}

function quoted(text: string): string {
  return /["\\]/.test(text) ? `"${text.replace(/["\\]/g, '\\$&')}"` : `"${text}"`;
}

/** A row comes as one text, because the host may have changed how the driver reads other types. */
function rowIn(row: unknown): UsageRow {
  const [id, scope, uses, lastUsedAt] = JSON.parse((row as { readonly cells: string }).cells);
  return { id, scope, uses, lastUsedAt };
}

/** All of a page come as one text: reading a hundred small rows would cost more than the query. */
function totalsIn(row: unknown): TotalsRow[] {
  const cells = JSON.parse((row as { readonly cells: string }).cells) as
    | [id: TokenId, uses: number, refusals: number, lastUsedAt: number | null][]
    | null;
  return (cells ?? []).map(([id, uses, refusals, lastUsedAt]) => {
    return { id, uses, refusals, lastUsedAt };
  });
}

/**
 * Always true. A scan would compare each row with every id, of which the planner expects ten. The price of
 * the second part, which is never evaluated, keeps it on the primary key of a small table as well.
 */
const BY_INDEX = `(uses >= 0 OR uses${' + 0'.repeat(100)} < 0)`;

function textsFor(name: string) {
  const read = `SELECT json_build_array(id, scope, uses, last_used_at)::text AS cells FROM ${name}
     WHERE ${ON_PRIMARY}`;
  return {
    add: addTo(name),
    addKnown: addKnownTo(name),
    read: `${read} AND id = ANY($1) AND ${BY_INDEX}`,
    totals: `SELECT json_agg(json_build_array(id, uses, refusals, last_used_at))::text AS cells
       FROM (
         SELECT id, sum(CASE scope WHEN '${REFUSALS}' THEN 0 ELSE uses END) AS uses,
           sum(CASE scope WHEN '${REFUSALS}' THEN uses ELSE 0 END) AS refusals,
           max(CASE scope WHEN '${REFUSALS}' THEN NULL ELSE last_used_at END) AS last_used_at
         FROM ${name} WHERE ${ON_PRIMARY} AND id = ANY($1) AND ${BY_INDEX} GROUP BY id
       ) AS totals`,
    // Locks rows in the same order as `add`, so that the two cannot deadlock.
    forget: `WITH locked AS (
         SELECT id, scope FROM ${name} WHERE id = ANY($1) ORDER BY id, scope FOR UPDATE
       )
       DELETE FROM ${name} AS counted USING locked
       WHERE counted.id = locked.id AND counted.scope = locked.scope`,
    scan: `SELECT DISTINCT id FROM ${name} WHERE ${ON_PRIMARY} AND id > $1 ORDER BY id LIMIT $2`,
    since: `${read} AND id = '' AND scope = ''`,
    begin: sinceSql(name),
  };
}

const GIVEN = 'unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])';
const SUMS = `ON CONFLICT (id, scope) DO UPDATE SET
      uses = counted.uses + excluded.uses,
      last_used_at = greatest(counted.last_used_at, excluded.last_used_at)`;

/** Adds to rows that exist, or that need no place, in the order of {@link addTo}. */
function addKnownTo(name: string): string {
  return `INSERT INTO ${name} AS counted (id, scope, uses, last_used_at)
    SELECT id COLLATE "C", scope COLLATE "C", uses, last_used_at
    FROM ${GIVEN} AS given (id, scope, uses, last_used_at) ORDER BY 1, 2
    ${SUMS}`;
}

/**
 * Finds out which scopes are stored, in one scan for the whole batch, then adds to the rows in their order,
 * so that overlapping batches cannot deadlock. A new scope takes one of the places that its token has
 * left, in the order of the batch. Answers with the tokens that had none left.
 */
function addTo(name: string): string {
  return `WITH given AS (
      SELECT id COLLATE "C" AS id, scope COLLATE "C" AS scope, uses, last_used_at, place
      FROM ${GIVEN} WITH ORDINALITY AS given (id, scope, uses, last_used_at, place)
    ), stored AS MATERIALIZED (
      SELECT id, scope FROM ${name} WHERE id = ANY($1)
    ), apart AS (
      SELECT id, count(*) AS scopes FROM stored
      WHERE scope NOT IN ('${REFUSALS}', '${OTHER_SCOPES}') GROUP BY id
    ), placed AS (
      SELECT given.id, given.scope AS asked, uses, last_used_at,
        CASE WHEN given.scope = '${REFUSALS}' OR stored.scope IS NOT NULL
          OR coalesce(apart.scopes, 0) + row_number() OVER (
            PARTITION BY given.id, stored.scope IS NULL AND given.scope <> '${REFUSALS}'
            ORDER BY place
          ) <= ${MAX_COUNTED_SCOPES}
        THEN given.scope ELSE '${OTHER_SCOPES}' END AS scope
      FROM given
        LEFT JOIN stored ON stored.id = given.id AND stored.scope = given.scope
        LEFT JOIN apart ON apart.id = given.id
    ), added AS (
      INSERT INTO ${name} AS counted (id, scope, uses, last_used_at)
      SELECT id, scope, sum(uses), max(last_used_at) FROM placed
      GROUP BY id, scope ORDER BY id, scope
      ${SUMS}
    )
    SELECT DISTINCT id FROM placed WHERE scope <> asked`;
}
