import { SQLITE_BUSY_MS, SQLITE_TRY_MS } from '../../bounds.ts';
import { TokenError } from '../../errors.ts';
import { ADDED_COLUMNS, COLUMNS, type Column, FIRST_COLUMNS } from '../shared/rows.ts';
import { cellsOf, retryWhileBusy, type SqliteHandle, withWriteLock } from './client.ts';

/**
 * In `user_version`, as `version + needs * 65536`: `needs` is the oldest schema version that code must
 * know to use the file, or zero for all. A later version may add columns that an insert can leave out,
 * and indexes, without a new `needs`, so that versions work side by side during an upgrade. One that
 * changes more also renames a column that older statements name, so that running processes fail.
 */
const SCHEMA_VERSION = 5;
const NEEDS_UNIT = 65_536;
/** `TWRT`, in the field that the file header of SQLite has for it. */
const APPLICATION_ID = 0x54575254;
/**
 * 8 MB. A checkpoint inside a commit holds the event loop, with 32 MB for 80 ms or more. With the default
 * of 1000, it comes too often.
 */
export const CHECKPOINT_PAGES = 2000;
/** 16 MiB. Cuts a log that has grown beyond this; otherwise SQLite would leave it long. */
const MAX_LOG_BYTES = 16_777_216;

/**
 * Added in schema version 3, for lists of what the default one leaves out. Each holds only such tokens,
 * so the others cost nothing more.
 */
const STATE_INDEXES = `
  CREATE INDEX IF NOT EXISTS tokens_revoked ON tokens (account, created_at DESC, id DESC)
    WHERE revoked_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS tokens_suspended ON tokens (account, created_at DESC, id DESC)
    WHERE suspended_at IS NOT NULL;
`;

/** Added in schema version 4, for the children of a token. It holds derived tokens only. */
const PARENT_INDEX = `
  CREATE INDEX IF NOT EXISTS tokens_by_parent ON tokens (parent, created_at DESC, id DESC)
    WHERE parent IS NOT NULL;
`;

/**
 * Added in schema version 5: the descendants of a root, and for each quota its tokens that are not revoked
 * and those that are. Of the latter, the imported ones are apart, so that a prune need not skip them.
 * `revoked_at` is always null in the second, but without that column SQLite would read the rows too.
 * Before, `tokens_live` counted.
 */
const ROOT_INDEXES = `
  CREATE INDEX IF NOT EXISTS tokens_by_root ON tokens (root, created_at DESC, id DESC)
    WHERE root IS NOT NULL;
  CREATE INDEX IF NOT EXISTS tokens_held_open ON tokens (account, root, revoked_at, expires_at)
    WHERE revoked_at IS NULL;
  CREATE INDEX IF NOT EXISTS tokens_held_revoked ON tokens (account, root, format, revoked_at)
    WHERE revoked_at IS NOT NULL;
  DROP INDEX IF EXISTS tokens_live;
`;

/** The indexes that the statements of the store rely on. */
export const INDEXES = [
  'tokens_by_account',
  'tokens_by_end',
  'tokens_revoked',
  'tokens_suspended',
  'tokens_by_parent',
  'tokens_by_root',
  'tokens_held_open',
  'tokens_held_revoked',
] as const;

const MARKS = `
  PRAGMA user_version = ${SCHEMA_VERSION};
  PRAGMA application_id = ${APPLICATION_ID};
`;

/** The columns that can be long come last: SQLite reads through them to reach those behind them. */
const SCHEMA = `
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
    metadata TEXT,
    scopes TEXT NOT NULL,
    requested TEXT NOT NULL
  ) STRICT;
  CREATE INDEX tokens_by_account ON tokens (account, created_at DESC, id DESC)
    WHERE revoked_at IS NULL;
  CREATE INDEX tokens_by_end ON tokens (min(expires_at, coalesce(revoked_at, expires_at)));
  ${STATE_INDEXES}
  ${PARENT_INDEX}
  ${ROOT_INDEXES}
  ${MARKS}
`;

/** Adds what an older table lacks, given the columns that it has. */
function upgradeSql(columns: readonly unknown[]): string {
  const missing = ADDED_COLUMNS.filter((column) => !columns.includes(column));
  const added = missing.map((column) => {
    const type = ADDED_TIMES.includes(column) ? 'INTEGER' : 'TEXT';
    return `ALTER TABLE tokens ADD COLUMN ${column} ${type};`;
  });
  const filled = columns.includes('root') ? [] : [FILL_ROOTS];
  return [...added, STATE_INDEXES, PARENT_INDEX, ...filled, ROOT_INDEXES, MARKS].join('\n');
}

/** By the index of derived tokens. A text that is not JSON stays for the reader to refuse. */
const FILL_ROOTS = `
  UPDATE tokens SET root = json_extract(ancestors, '$[0]')
    WHERE parent IS NOT NULL AND json_valid(ancestors);
`;

const ADDED_TIMES: readonly Column[] = ['suspended_at', 'scopes_changed_at', 'rotated_at'];

/** One statement, so that all answers are from the same moment. */
const INSPECT = `
  SELECT
    (SELECT application_id FROM pragma_application_id) AS application,
    (SELECT user_version FROM pragma_user_version) AS version,
    (SELECT count(*) FROM sqlite_schema) AS objects,
    (SELECT json_group_array(name) FROM pragma_table_info('tokens', 'main')) AS columns
`;

/**
 * Sets our pragmas and brings the schema up to date.
 *
 * @throws {TokenError} `invalid_options` if the database is not ours, or of a later version that this
 * one cannot use
 */
export function prepareDatabase(handle: SqliteHandle): void {
  handle.exec(`PRAGMA busy_timeout = ${SQLITE_BUSY_MS}`);
  // First, because WAL mode would already change the file.
  retryWhileBusy(() => contentOf(handle));
  retryWhileBusy(() => handle.exec('PRAGMA journal_mode = WAL'));
  migrate(handle);
  setPragmas(handle);
}

/**
 * Sets our pragmas for a file that has replaced another one. Calls wait meanwhile, so this neither waits
 * for a lock nor changes the schema.
 *
 * @throws {TokenError} `invalid_options` if the schema is not the one of this version
 */
export function prepareAgain(handle: SqliteHandle): void {
  handle.exec(`PRAGMA busy_timeout = ${SQLITE_TRY_MS}`);
  if (contentOf(handle).state !== 'current') {
    throw new TokenError('invalid_options', 'the SQLite database has to be opened again');
  }
  handle.exec('PRAGMA journal_mode = WAL');
  // In WAL mode, the first read opens the log.
  contentOf(handle);
  setPragmas(handle);
}

function setPragmas(handle: SqliteHandle): void {
  handle.exec('PRAGMA synchronous = FULL');
  handle.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  handle.exec(`PRAGMA journal_size_limit = ${MAX_LOG_BYTES}`);
  handle.exec(`PRAGMA busy_timeout = ${SQLITE_TRY_MS}`);
}

function migrate(handle: SqliteHandle): void {
  if (contentOf(handle).state === 'current') return;
  withWriteLock(handle, () => {
    // Another process may have migrated while this one waited for the lock.
    const { state, columns } = contentOf(handle);
    if (state === 'nothing') handle.exec(SCHEMA);
    if (state === 'older') handle.exec(upgradeSql(columns));
  });
}

interface Content {
  /** `older`: our table of an earlier version, or from before we set an `application_id`. */
  readonly state: 'nothing' | 'older' | 'current';
  /** Of a table named `tokens`. */
  readonly columns: readonly unknown[];
}

function contentOf(handle: SqliteHandle): Content {
  const cells = cellsOf(handle.prepare(INSPECT).get());
  const [application, mark, objects] = cells.slice(0, 3).map(Number) as [number, number, number];
  const version = mark % NEEDS_UNIT;
  const needs = Math.floor(mark / NEEDS_UNIT);
  const columns: readonly unknown[] = JSON.parse(String(cells[3]));
  const isMarked = application === APPLICATION_ID;
  const hasAll = (needed: readonly string[]) => needed.every((name) => columns.includes(name));
  if (isMarked && version > SCHEMA_VERSION) {
    if (needs <= SCHEMA_VERSION && hasAll(COLUMNS)) return { state: 'current', columns };
    throw new TokenError(
      'invalid_options',
      `the database has schema version ${version}, and this tokenwright can use ${SCHEMA_VERSION} at most: upgrade tokenwright`,
      { reason: 'later_layout' },
    );
  }
  if (application === 0 && mark === 0 && objects === 0) return { state: 'nothing', columns };
  const isKnown = mark >= 1 && mark <= SCHEMA_VERSION;
  const expected = mark === SCHEMA_VERSION ? COLUMNS : FIRST_COLUMNS;
  if (isKnown && hasAll(expected) && (isMarked || application === 0)) {
    return { state: isMarked && mark === SCHEMA_VERSION ? 'current' : 'older', columns };
  }
  throw new TokenError(
    'invalid_options',
    'the SQLite database holds something else than the table of tokenwright, and stays as it is: give tokenwright a file of its own',
  );
}
