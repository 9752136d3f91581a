import { isTokenError, storeUnavailable, TokenError } from '../../errors.ts';
import { unsupported } from '../shared/reasons.ts';
import { nextUpgrade, readMark, type TableKind } from '../shared/schema-mark.ts';
import { type PostgresPool, readPool, Session, sqlStateOf, unavailable } from './client.ts';
import {
  type Dialect,
  dialectOf,
  hasColumns,
  isWholeEncoding,
  missingIn,
  SHAPE,
  type Shape,
  type Table,
} from './shape.ts';

const MIGRATION_DEADLINE_MS = 30_000;
/** Less than the deadline of the calls that wait behind it, and more than autovacuum needs to give way. */
const TABLE_LOCK_MS = 1500;
/** An arbitrary number that must never change: migrations take turns by it. */
const MIGRATION_LOCK = 8_370_511_261;
/** What a migration meets if another one was faster: the table, a column or a row of the catalog is there. */
const LOST_RACES: ReadonlySet<string | undefined> = new Set(['42P07', '42701', '23505', '40001']);
const MAX_LOOKS = 3;

type Client = Pick<PostgresPool, 'query'>;

/**
 * Creates tables or brings them up to date, one after the other, by steps that are transactions of their own.
 * Concurrent calls take turns.
 *
 * @param tablesFor the tables in the DDL of a database
 * @throws {TokenError} `store_unavailable`, `invalid_options`
 */
export async function migrateTables(
  pool: PostgresPool,
  tablesFor: (dialect: Dialect) => readonly Table[],
): Promise<void> {
  const client = await new Session(readPool(pool), MIGRATION_DEADLINE_MS)
    .checkOut()
    .catch((error) => {
      throw isTokenError(error) ? error : unavailable(error);
    });
  let isDone = false;
  try {
    const server = await lookAt(client);
    for (const table of tablesFor(server.dialect)) await migrateTable(client, table, server);
    isDone = true;
  } finally {
    // Closing the connection rolls an open transaction back.
    client.release(!isDone);
  }
}

interface ServerFacts {
  readonly dialect: Dialect;
  readonly isCitus: boolean;
}

/** Aurora DSQL calls itself PostgreSQL, so that a view which only it has must tell. */
const SERVER = `SELECT version() AS version, current_setting('server_encoding', true) AS encoding,
    to_regclass('sys.iam_pg_role_mappings') IS NOT NULL AS "isDsql",
    to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL AS "isCitus"`;

/** Refuses a database that cannot hold the tables. */
async function lookAt(client: Client): Promise<ServerFacts> {
  const [row] = await run(client, SERVER).catch((error) => {
    throw unavailable(error);
  });
  const { version, encoding, isDsql, isCitus } = row as {
    readonly version: string;
    readonly encoding: string | null;
    readonly isDsql: boolean;
    readonly isCitus: boolean;
  };
  if (isDsql) throw unsupported('Aurora DSQL');
  if (!isWholeEncoding(encoding)) throw storeUnavailable('encoding');
  return { dialect: dialectOf(version), isCitus };
}

async function run(
  client: Client,
  text: string,
  values?: readonly unknown[],
): Promise<readonly unknown[]> {
  const query = { text, query_timeout: MIGRATION_DEADLINE_MS, ...(values && { values }) };
  return (await client.query(query)).rows;
}

async function migrateTable(client: Client, table: Table, server: ServerFacts): Promise<void> {
  let looks = 0;
  const lookAgain = async (error: unknown): Promise<boolean> => {
    looks += 1;
    if (looks > MAX_LOOKS || !LOST_RACES.has(sqlStateOf(error))) throw error;
    await run(client, 'ROLLBACK');
    return false;
  };
  try {
    if (server.isCitus) await refuseDistributed(client, table);
    for (let isDone = false; !isDone; )
      isDone = await stepOver(client, table, server).catch(lookAgain);
  } catch (error) {
    throw migrationError(error, table);
  }
}

/** Refuses a table that Citus has spread over several servers. */
async function refuseDistributed(client: Client, { name }: Table): Promise<void> {
  const rows = await run(
    client,
    `SELECT partmethod FROM pg_dist_partition
     WHERE logicalrelid = to_regclass($1) AND partmethod <> 'n'`,
    [name],
  );
  if (rows.length > 0) throw unsupported('tables that Citus has distributed');
}

/** Resolves to whether the table was up to date. */
async function stepOver(client: Client, table: Table, { dialect }: ServerFacts): Promise<boolean> {
  // A stricter default of the host would read a snapshot from before the lock.
  await run(client, 'BEGIN ISOLATION LEVEL READ COMMITTED');
  // The pool's own limit is meant for single statements, not for waiting for a lock.
  await run(client, `SET LOCAL statement_timeout = ${MIGRATION_DEADLINE_MS}`);
  // Others refuse the lock or ignore it, so that the slower one has to look again.
  if (dialect === 'postgres')
    await run(client, 'SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
  const [row] = await run(client, SHAPE, [table.name]);
  const sql = nextStep(row as Shape, table);
  if (sql !== undefined) {
    // While this waits for its lock, such as behind a dump, all calls of running processes wait behind it.
    await run(client, `SET LOCAL lock_timeout = ${TABLE_LOCK_MS}`);
    await run(client, sql);
  }
  await run(client, 'COMMIT');
  return sql === undefined;
}

/**
 * The SQL of the next step; undefined if the table is up to date.
 *
 * @throws {TokenError} `invalid_options`
 */
function nextStep(shape: Shape, table: Table): string | undefined {
  if (shape.kind === null) return table.create;
  const mark = readMark(shape.comment, table.kind);
  if (mark !== undefined) return nextUpgrade(mark, table);
  if (!hasColumns(shape, table)) throw foreignTable(table);
  return missingIn(shape, table).length > 0 ? table.adopt : undefined;
}

/** The error for something else that has the name of a table. */
function foreignTable({ name, kind }: { readonly name: string; readonly kind: TableKind }) {
  return new TokenError(
    'invalid_options',
    `there is something named ${name}, or as one of its indexes, that is not of this library: it has other columns than a table of ${kind.holds}; choose another name`,
  );
}

function migrationError(error: unknown, { name, kind }: Table): TokenError {
  if (isTokenError(error)) return error;
  const state = sqlStateOf(error);
  if (state === '3F000') {
    return new TokenError(
      'invalid_options',
      `the table ${name} cannot be created, because its schema does not exist: create the schema, or choose another`,
    );
  }
  if (state === '55P03') {
    return new TokenError(
      'store_unavailable',
      `the table ${name} cannot be brought up to date now, because another session has locked it, such as a dump or a transaction that stays open: try again when it has ended`,
      { reason: 'busy' },
    );
  }
  return state === '42P07' ? foreignTable({ name, kind }) : unavailable(error, kind);
}
