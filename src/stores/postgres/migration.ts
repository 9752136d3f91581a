import { isTokenError, TokenError } from '../../errors.ts';
import { readMark, type TableKind } from '../shared/schema-mark.ts';
import { type PostgresPool, readPool, Session, sqlStateOf, unavailable } from './client.ts';
import { hasColumns, SHAPE, type Shape } from './shape.ts';

/** How a table is brought up to date. */
export interface Migration {
  /** Quoted, with its schema if one is given. */
  readonly name: string;
  readonly kind: TableKind;
  /** The SQL of the next step; `undefined` if the table is up to date. May throw a `TokenError`. */
  readonly nextStep: (shape: Shape) => string | undefined;
}

const MIGRATION_DEADLINE_MS = 30_000;
/** Less than the deadline of the calls that wait behind it, and more than autovacuum needs to give way. */
const TABLE_LOCK_MS = 1500;
/** An arbitrary number that must never change: migrations take turns by it. */
const MIGRATION_LOCK = 8_370_511_261;

/**
 * Takes the steps of a migration, each in a transaction of its own. Concurrent ones take turns.
 *
 * @throws {TokenError} `store_unavailable`, `invalid_options`
 */
export async function migrateTable(pool: PostgresPool, migration: Migration): Promise<void> {
  const session = new Session(readPool(pool), MIGRATION_DEADLINE_MS);
  const client = await session.checkOut().catch((error) => {
    throw migrationError(error, migration);
  });
  let isDone = false;
  try {
    await migrateOver(client, migration);
    isDone = true;
  } catch (error) {
    throw migrationError(error, migration);
  } finally {
    // Closing the connection rolls an open transaction back.
    client.release(!isDone);
  }
}

async function migrateOver(
  client: Pick<PostgresPool, 'query'>,
  migration: Migration,
): Promise<void> {
  for (let isDone = false; !isDone; ) isDone = await stepOver(client, migration);
}

/** Resolves to whether the table was up to date. */
async function stepOver(
  client: Pick<PostgresPool, 'query'>,
  { name, nextStep }: Migration,
): Promise<boolean> {
  const run = async (text: string, values?: readonly unknown[]): Promise<readonly unknown[]> => {
    const query = { text, query_timeout: MIGRATION_DEADLINE_MS, ...(values && { values }) };
    return (await client.query(query)).rows;
  };
  // A stricter default of the host would read a snapshot from before the lock.
  await run('BEGIN ISOLATION LEVEL READ COMMITTED');
  // The pool's own limit is meant for single statements, not for waiting for a lock.
  await run(`SET LOCAL statement_timeout = ${MIGRATION_DEADLINE_MS}`);
  await run('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
  const [row] = await run(SHAPE, [name]);
  const sql = nextStep(row as Shape);
  if (sql !== undefined) {
    // While this waits for its lock, such as behind a dump, all calls of running processes wait behind it.
    await run(`SET LOCAL lock_timeout = ${TABLE_LOCK_MS}`);
    await run(sql);
  }
  await run('COMMIT');
  return sql === undefined;
}

/** A table beside the one of the tokens, and how it is made. */
export interface SideTable {
  /** Quoted, with its schema if one is given. */
  readonly name: string;
  readonly kind: TableKind;
  readonly version: number;
  readonly columns: Parameters<typeof hasColumns>[1];
  readonly create: string;
}

/**
 * Creates a table if it is missing. Concurrent calls take turns.
 *
 * @throws {TokenError} `store_unavailable`, `invalid_options`
 */
export async function migrateSideTable(pool: PostgresPool, table: SideTable): Promise<void> {
  const { name, kind, version, columns, create } = table;
  const nextStep = (shape: Shape) => {
    if (shape.kind === null) return create;
    const mark = readMark(shape.comment, kind);
    if (mark === undefined && !hasColumns(shape, columns)) throw foreignTable(name, kind);
    if (mark !== undefined && mark.needs > version) throw laterSchema(name, version);
    return undefined;
  };
  await migrateTable(pool, { name, kind, nextStep });
}

/** The error for something else that has the name of a table. */
export function foreignTable(name: string, { holds }: TableKind): TokenError {
  return new TokenError(
    'invalid_options',
    `there is something named ${name}, or as one of its indexes, that is not of this library: it has other columns than a table of ${holds}; choose another name`,
  );
}

/** The error for a table that a later version of the library has made. */
export function laterSchema(name: string, version: number): TokenError {
  return new TokenError(
    'invalid_options',
    `the table ${name} has a schema that this version of the library does not know, later than version ${version}: use a newer one`,
  );
}

function migrationError(error: unknown, { name, kind }: Migration): TokenError {
  if (isTokenError(error)) return error;
  const state = sqlStateOf(error);
  if (state === '42501' || state === '3F000') {
    return new TokenError(
      'invalid_options',
      `the table ${name} cannot be created or brought up to date: its schema is not there, or the role may not create in it or does not own the table; have an administrator run the statements of ${kind.migrationSql}(), which tokenwright migrate --print shows, or give the role these rights`,
    );
  }
  if (state === '55P03') {
    return new TokenError(
      'store_unavailable',
      `the table ${name} cannot be brought up to date now, because another session has locked it, such as a dump or a transaction that stays open: try again when it has ended`,
    );
  }
  return state === '42P07' ? foreignTable(name, kind) : unavailable(state, kind);
}
