import { isTokenError, TokenError } from '../../errors.ts';
import { nextUpgrade, readMark, type TableKind } from '../shared/schema-mark.ts';
import { type PostgresPool, readPool, Session, sqlStateOf, unavailable } from './client.ts';
import { hasColumns, missingIn, SHAPE, type Shape, type Table } from './shape.ts';

const MIGRATION_DEADLINE_MS = 30_000;
/** Less than the deadline of the calls that wait behind it, and more than autovacuum needs to give way. */
const TABLE_LOCK_MS = 1500;
/** An arbitrary number that must never change: migrations take turns by it. */
const MIGRATION_LOCK = 8_370_511_261;

type Client = Pick<PostgresPool, 'query'>;

/**
 * Creates tables or brings them up to date, one after the other, by steps that are transactions of their own.
 * Concurrent calls take turns.
 *
 * @throws {TokenError} `store_unavailable`, `invalid_options`
 */
export async function migrateTables(pool: PostgresPool, tables: readonly Table[]): Promise<void> {
  const client = await new Session(readPool(pool), MIGRATION_DEADLINE_MS)
    .checkOut()
    .catch((error) => {
      throw isTokenError(error) ? error : unavailable(error);
    });
  let isDone = false;
  try {
    for (const table of tables) await migrateTable(client, table);
    isDone = true;
  } finally {
    // Closing the connection rolls an open transaction back.
    client.release(!isDone);
  }
}

async function migrateTable(client: Client, table: Table): Promise<void> {
  try {
    for (let isDone = false; !isDone; ) isDone = await stepOver(client, table);
  } catch (error) {
    throw migrationError(error, table);
  }
}

/** Resolves to whether the table was up to date. */
async function stepOver(client: Client, table: Table): Promise<boolean> {
  const run = async (text: string, values?: readonly unknown[]): Promise<readonly unknown[]> => {
    const query = { text, query_timeout: MIGRATION_DEADLINE_MS, ...(values && { values }) };
    return (await client.query(query)).rows;
  };
  // A stricter default of the host would read a snapshot from before the lock.
  await run('BEGIN ISOLATION LEVEL READ COMMITTED');
  // The pool's own limit is meant for single statements, not for waiting for a lock.
  await run(`SET LOCAL statement_timeout = ${MIGRATION_DEADLINE_MS}`);
  await run('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
  const [row] = await run(SHAPE, [table.name]);
  const sql = nextStep(row as Shape, table);
  if (sql !== undefined) {
    // While this waits for its lock, such as behind a dump, all calls of running processes wait behind it.
    await run(`SET LOCAL lock_timeout = ${TABLE_LOCK_MS}`);
    await run(sql);
  }
  await run('COMMIT');
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
  if (state === '42501' || state === '3F000') {
    return new TokenError(
      'invalid_options',
      `the table ${name} cannot be created or brought up to date: its schema is not there, or the role may not create in it or does not own the table; have an administrator run the statements of migrationSql(), which tokenwright migrate --print shows, or give the role these rights`,
    );
  }
  if (state === '55P03') {
    return new TokenError(
      'store_unavailable',
      `the table ${name} cannot be brought up to date now, because another session has locked it, such as a dump or a transaction that stays open: try again when it has ended`,
    );
  }
  return state === '42P07' ? foreignTable({ name, kind }) : unavailable(error, kind);
}
