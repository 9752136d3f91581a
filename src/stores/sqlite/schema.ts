import { SQLITE_BUSY_MS, SQLITE_TRY_MS } from '../../bounds.ts';
import { TokenError } from '../../errors.ts';
import { COLUMNS } from '../shared/rows.ts';
import { cellsOf, retryWhileBusy, type SqliteHandle, withWriteLock } from './client.ts';

/** The content of a database, and how it is made. */
export interface Schema {
  /** Names the database in messages. */
  readonly database: string;
  /** What is wrong with a database of somebody else, and what to do. */
  readonly foreign: string;
  /** Its mark, in the field that the file header of SQLite has for it. */
  readonly applicationId: number;
  /** A table that it has in every version, and the columns that statements of this version name. */
  readonly table: string;
  readonly columns: readonly string[];
  /** Makes version 1 in an empty database. */
  readonly create: (handle: SqliteHandle) => void;
  /** The first step leads from version 1 to 2. */
  readonly steps: readonly Step[];
  /** Set at each opening. */
  readonly pragmas: readonly string[];
}

/** What leads from one version of a schema to the next one. */
interface Step {
  readonly sql: string;
  /**
   * The oldest version that code must know to use the database. A later version may add columns that an
   * insert can leave out, and indexes, and keep that number, so that versions work side by side during an
   * upgrade. One that changes more also renames a column that older statements name, so that running
   * processes fail.
   */
  readonly needs: number;
}

/** `user_version` is `version + needs * 65536`. */
const NEEDS_UNIT = 65_536;

/**
 * 8 MB. A checkpoint inside a commit holds the event loop, with 32 MB for 80 ms or more. With the default
 * of 1000, it comes too often.
 */
export const CHECKPOINT_PAGES = 2000;
/** 16 MiB. Cuts a log that has grown beyond this; otherwise SQLite would leave it long. */
const MAX_LOG_BYTES = 16_777_216;

/**
 * Made by statements that the store relies on. `tokens_revoked` and `tokens_suspended` are for lists of what
 * the default one leaves out, `tokens_by_parent` and `tokens_by_root` for derived tokens; each holds only
 * such tokens, so the others cost nothing more. Those that end with `expiry` are the same in the other order. `tokens_held_open` and `tokens_held_revoked` count for
 * quotas: of the revoked tokens, the imported ones are apart, so that a prune need not skip them.
 * `revoked_at` is always null in the former, but without that column SQLite would read the rows too.
 */
export const INDEXES = [
  'tokens_by_account',
  'tokens_by_end',
  'tokens_revoked',
  'tokens_suspended',
  'tokens_by_expiry',
  'tokens_revoked_by_expiry',
  'tokens_suspended_by_expiry',
  'tokens_by_parent',
  'tokens_by_root',
  'tokens_held_open',
  'tokens_held_revoked',
] as const;

/** The columns that can be long come last: SQLite reads through them to reach those behind them. */
const TABLE = `
  CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL,
    prefix TEXT NOT NULL,
    kid TEXT NOT NULL,
    digest BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    revoked_at INTEGER,
    previous_digest BLOB,
    previous_until INTEGER,
    suspended_at INTEGER,
    scopes_changed_at INTEGER,
    rotated_at INTEGER,
    parent TEXT,
    root TEXT,
    format TEXT,
    name TEXT,
    box BLOB,
    pending TEXT,
    limits TEXT,
    ancestors TEXT,
    origin TEXT,
    metadata TEXT,
    scopes TEXT NOT NULL,
    requested TEXT NOT NULL
  ) STRICT;
  CREATE INDEX tokens_by_account ON tokens (account, created_at DESC, id DESC)
    WHERE revoked_at IS NULL;
  CREATE INDEX tokens_by_end ON tokens (min(expires_at, coalesce(revoked_at, expires_at)));
  CREATE INDEX tokens_revoked ON tokens (account, created_at DESC, id DESC)
    WHERE revoked_at IS NOT NULL;
  CREATE INDEX tokens_suspended ON tokens (account, created_at DESC, id DESC)
    WHERE suspended_at IS NOT NULL;
  CREATE INDEX tokens_by_expiry ON tokens (account, expires_at, id)
    WHERE revoked_at IS NULL;
  CREATE INDEX tokens_revoked_by_expiry ON tokens (account, expires_at, id)
    WHERE revoked_at IS NOT NULL;
  CREATE INDEX tokens_suspended_by_expiry ON tokens (account, expires_at, id)
    WHERE suspended_at IS NOT NULL;
  CREATE INDEX tokens_by_parent ON tokens (parent, created_at DESC, id DESC)
    WHERE parent IS NOT NULL;
  CREATE INDEX tokens_by_root ON tokens (root, created_at DESC, id DESC)
    WHERE root IS NOT NULL;
  CREATE INDEX tokens_held_open ON tokens (account, root, revoked_at, expires_at)
    WHERE revoked_at IS NULL;
  CREATE INDEX tokens_held_revoked ON tokens (account, root, format, revoked_at)
    WHERE revoked_at IS NOT NULL;
`;

/** The database of the tokens. */
export const TOKENS: Schema = {
  database: 'the database',
  foreign: 'the table of tokenwright, and stays as it is: give tokenwright a file of its own',
  // `TWRT`
  applicationId: 0x54575254,
  table: 'tokens',
  columns: COLUMNS,
  create: (handle) => handle.exec(TABLE),
  steps: [],
  pragmas: [
    'synchronous = FULL',
    `wal_autocheckpoint = ${CHECKPOINT_PAGES}`,
    `journal_size_limit = ${MAX_LOG_BYTES}`,
  ],
};

/** The names of a database beside that of the tokens in messages. */
export function sideNames(holds: string): Pick<Schema, 'database' | 'foreign'> {
  return {
    database: `the ${holds} database`,
    foreign: `${holds}, and stays as it is: give ${holds} a file of its own, not the one of the tokens`,
  };
}

/**
 * Sets our pragmas and brings the schema up to date.
 *
 * @throws {TokenError} `invalid_options` if the database is not ours, of a development version, or of a
 * later version that this one cannot use
 */
export function prepareDatabase(handle: SqliteHandle, schema: Schema): void {
  handle.exec(`PRAGMA busy_timeout = ${SQLITE_BUSY_MS}`);
  // First, because WAL mode would already change the file.
  retryWhileBusy(() => versionOf(handle, schema));
  retryWhileBusy(() => handle.exec('PRAGMA journal_mode = WAL'));
  if (!isCurrent(handle, schema)) withWriteLock(handle, () => migrate(handle, schema));
  setPragmas(handle, schema);
}

/**
 * Sets our pragmas for a file that has replaced another one. Calls wait meanwhile, so this neither waits
 * for a lock nor changes the schema.
 *
 * @throws {TokenError} `invalid_options` if the schema is not the one of this version
 */
export function prepareAgain(handle: SqliteHandle, schema: Schema): void {
  handle.exec(`PRAGMA busy_timeout = ${SQLITE_TRY_MS}`);
  if (!isCurrent(handle, schema)) {
    throw new TokenError('invalid_options', 'the SQLite database has to be opened again');
  }
  handle.exec('PRAGMA journal_mode = WAL');
  // In WAL mode, the first read opens the log.
  versionOf(handle, schema);
  setPragmas(handle, schema);
}

function setPragmas(handle: SqliteHandle, { pragmas }: Schema): void {
  for (const pragma of pragmas) handle.exec(`PRAGMA ${pragma}`);
  handle.exec(`PRAGMA busy_timeout = ${SQLITE_TRY_MS}`);
}

function isCurrent(handle: SqliteHandle, schema: Schema): boolean {
  return versionOf(handle, schema) === latestOf(schema);
}

/** The version of the schema that this code writes. */
export function latestOf({ steps }: Schema): number {
  return 1 + steps.length;
}

/** Reads the version again: another process may have migrated while this one waited for the lock. */
function migrate(handle: SqliteHandle, schema: Schema): void {
  const { create, steps, applicationId } = schema;
  const version = versionOf(handle, schema);
  if (version === latestOf(schema)) return;
  if (version === 0) create(handle);
  for (const { sql } of steps.slice(Math.max(0, version - 1))) handle.exec(sql);
  const needs = steps.at(-1)?.needs ?? 1;
  handle.exec(`PRAGMA user_version = ${latestOf(schema) + needs * NEEDS_UNIT}`);
  handle.exec(`PRAGMA application_id = ${applicationId}`);
}

/**
 * The version of the schema; 0 for an empty database. A later one that this version can use counts as its
 * own latest one.
 */
function versionOf(handle: SqliteHandle, schema: Schema): number {
  const { database, foreign, applicationId, table, columns } = schema;
  const cells = cellsOf(handle.prepare(INSPECT).get(table));
  const [application, mark, objects] = cells.slice(0, 3).map(Number) as [number, number, number];
  if (application === 0 && mark === 0 && objects === 0) return 0;
  const found: readonly unknown[] = JSON.parse(String(cells[3]));
  const hasAll = columns.every((name) => found.includes(name));
  if (application !== applicationId)
    throw notUsable(`the SQLite database holds something else than ${foreign}`);
  const version = mark % NEEDS_UNIT;
  const needs = Math.floor(mark / NEEDS_UNIT);
  const latest = latestOf(schema);
  if (needs === 0) {
    throw notUsable(
      `${database} was made by a development version of tokenwright, and its schema is older than the first one that is supported: move the file away, and tokenwright makes a new one`,
      'schema_older',
    );
  }
  if (version < latest) return version;
  if (hasAll && needs <= latest) return latest;
  if (version === latest)
    throw notUsable(`the SQLite database holds something else than ${foreign}`);
  throw notUsable(
    `${database} has schema version ${version}, and this tokenwright can use ${latest} at most: upgrade tokenwright`,
    'schema_newer',
  );
}

function notUsable(message: string, reason?: string): TokenError {
  return new TokenError('invalid_options', message, reason === undefined ? undefined : { reason });
}

/** One statement, so that all answers are from the same moment. */
const INSPECT = `
  SELECT
    (SELECT application_id FROM pragma_application_id) AS application,
    (SELECT user_version FROM pragma_user_version) AS version,
    (SELECT count(*) FROM sqlite_schema) AS objects,
    (SELECT json_group_array(name) FROM pragma_table_info(?, 'main')) AS columns
`;
