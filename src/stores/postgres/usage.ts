import { MAX_COUNTED_SCOPES } from '../../bounds.ts';
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
import type { PostgresQuery, Session } from './client.ts';
import { sinceSql } from './schema.ts';
import { guardOf, type StatementForm, statementsOf } from './statements.ts';

/**
 * Counts how tokens are used in a table of its own: to count a use never changes the row of a token. A batch is
 * one statement, which commits as the host has set `synchronous_commit`.
 */
export class PostgresUsage implements UsageStore {
  readonly #session: Session;
  readonly #known = new KnownRows();
  readonly #statements: Readonly<Record<keyof ReturnType<typeof textsFor>, PostgresQuery>>;

  constructor(session: Session, table: string, form: StatementForm) {
    this.#session = session;
    this.#statements = statementsOf(textsFor(table, guardOf(form)), form);
  }

  async add(batch: readonly UsageDelta[]): Promise<void> {
    const rows = rowsOf(batch).sort(byKey);
    if (rows.length === 0) return;
    const isKnown = this.#known.missing(rows).length === 0;
    const moved = await this.#run(this.#statements[isKnown ? 'addKnown' : 'add'], [
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
    const rows = await this.#read(this.#statements.read, [arrayText(ids, quoted)]);
    return usagesOf(ids, rows.map(rowIn));
  }

  async totals(ids: readonly TokenId[]): Promise<(UsageTotals | undefined)[]> {
    if (ids.length === 0) return [];
    const rows = await this.#read(this.#statements.totals, [arrayText(ids, quoted)]);
    return totalsOf(ids, rows.flatMap(totalsIn));
  }

  async forget(ids: readonly TokenId[]): Promise<void> {
    this.#known.remove(ids);
    if (ids.length > 0) await this.#run(this.#statements.forget, [ids]);
  }

  async scan({ after = '', limit }: ScanQuery): Promise<CountedTokens> {
    const rows = await this.#read(this.#statements.scan, [after, limit]);
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
    const [row] = await this.#read(this.#statements.since, []);
    if (row !== undefined) return new Date(rowIn(row).lastUsedAt);
    // Somebody has emptied the table: counts begin now.
    await this.#run(this.#statements.begin, []);
    return this.since();
  }

  #run(query: PostgresQuery, values: readonly unknown[]): Promise<readonly unknown[]> {
    return this.#session.run(query, values, USAGE);
  }

  #read(query: PostgresQuery, values: readonly unknown[]): Promise<readonly unknown[]> {
    return this.#session.read(query, values, USAGE);
  }
}

/** The order in which all statements lock rows, so that no two can deadlock: that of bytes, as both are ASCII. */
function byKey(one: UsageRow, other: UsageRow): number {
  if (one.id !== other.id) return one.id < other.id ? -1 : 1;
  return one.scope < other.scope ? -1 : 1;
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

function textsFor(name: string, guard: string) {
  const read = `SELECT json_build_array(id, scope, uses, last_used_at)::text AS cells FROM ${name}
     WHERE ${guard}`;
  return {
    add: addTo(name),
    addKnown: addKnownTo(name),
    read: `${read} AND id = ANY($1) AND ${BY_INDEX}`,
    totals: `SELECT json_agg(json_build_array(id, uses, refusals, last_used_at))::text AS cells
       FROM (
         SELECT id, sum(CASE scope WHEN '${REFUSALS}' THEN 0 ELSE uses END) AS uses,
           sum(CASE scope WHEN '${REFUSALS}' THEN uses ELSE 0 END) AS refusals,
           max(CASE scope WHEN '${REFUSALS}' THEN NULL ELSE last_used_at END) AS last_used_at
         FROM ${name} WHERE ${guard} AND id = ANY($1) AND ${BY_INDEX} GROUP BY id
       ) AS totals`,
    // Locks rows in the same order as `add`, so that the two cannot deadlock.
    forget: `WITH locked AS (
         SELECT id, scope FROM ${name} WHERE id = ANY($1) ORDER BY id, scope FOR UPDATE
       )
       DELETE FROM ${name} AS counted USING locked
       WHERE counted.id = locked.id AND counted.scope = locked.scope`,
    scan: `SELECT DISTINCT id FROM ${name} WHERE ${guard} AND id > $1 ORDER BY id LIMIT $2`,
    since: `${read} AND id = '' AND scope = ''`,
    begin: sinceSql(name),
  };
}

/** A batch, numbered in its order. */
const GIVEN = `unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY
      AS given (id, scope, uses, last_used_at, place)`;
const SUMS = `ON CONFLICT (id, scope) DO UPDATE SET
      uses = counted.uses + excluded.uses,
      last_used_at = greatest(counted.last_used_at, excluded.last_used_at)`;

/** Adds to rows that exist, or that need no place, in the order of the batch. */
function addKnownTo(name: string): string {
  return `INSERT INTO ${name} AS counted (id, scope, uses, last_used_at)
    SELECT id, scope, uses, last_used_at FROM ${GIVEN} ORDER BY place
    ${SUMS}`;
}

/**
 * Finds out which scopes are stored, in one scan for the whole batch, then adds to the rows in their order,
 * so that overlapping batches cannot deadlock. A new scope takes one of the places that its token has
 * left, in the order of the batch. Answers with the tokens that had none left.
 *
 * A text that may come from the table has the collation of its column, which is the order of bytes. Only the
 * statements that make tables name a collation: not all databases have one.
 */
function addTo(name: string): string {
  return `WITH given AS (
      SELECT * FROM ${GIVEN}
    ), stored AS MATERIALIZED (
      SELECT id, scope FROM ${name} WHERE id = ANY($1)
    ), apart AS (
      SELECT id, count(*) AS scopes FROM stored
      WHERE scope NOT IN ('${REFUSALS}', '${OTHER_SCOPES}') GROUP BY id
    ), placed AS (
      SELECT coalesce(stored.id, given.id) AS id, given.scope AS asked, uses, last_used_at,
        CASE WHEN given.scope = '${REFUSALS}' OR stored.scope IS NOT NULL
          OR coalesce(apart.scopes, 0) + row_number() OVER (
            PARTITION BY given.id, stored.scope IS NULL AND given.scope <> '${REFUSALS}'
            ORDER BY place
          ) <= ${MAX_COUNTED_SCOPES}
        THEN coalesce(stored.scope, given.scope) ELSE '${OTHER_SCOPES}' END AS scope
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
