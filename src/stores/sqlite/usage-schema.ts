import { SQLITE_BUSY_MS, SQLITE_TRY_MS } from '../../bounds.ts';
import { TokenError } from '../../errors.ts';
import { cellsOf, retryWhileBusy, type SqliteHandle } from './client.ts';

/** `TWUS`. The tokens have a file of their own, and another mark. */
const APPLICATION_ID = 0x54575553;
/** In `user_version`. */
const SCHEMA_VERSION = 1;

const SCHEMA = `
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
  PRAGMA user_version = ${SCHEMA_VERSION};
  PRAGMA application_id = ${APPLICATION_ID};
`;

const INSPECT = `
  SELECT
    (SELECT application_id FROM pragma_application_id) AS application,
    (SELECT user_version FROM pragma_user_version) AS version,
    (SELECT count(*) FROM sqlite_schema) AS objects
`;

/**
 * Makes the tables in an empty database, and sets the pragmas.
 *
 * @throws {TokenError} `invalid_options` if the database holds something else, or is of a later version
 */
export function prepareUsageDatabase(handle: SqliteHandle): void {
  handle.exec(`PRAGMA busy_timeout = ${SQLITE_BUSY_MS}`);
  // First, because WAL mode would already change the file.
  retryWhileBusy(() => isEmpty(handle));
  retryWhileBusy(() => handle.exec('PRAGMA journal_mode = WAL'));
  if (isEmpty(handle)) create(handle);
  // A loss of power may cost the last counts, never the file. A killed process loses nothing.
  handle.exec('PRAGMA synchronous = NORMAL');
  handle.exec(`PRAGMA busy_timeout = ${SQLITE_TRY_MS}`);
}

function create(handle: SqliteHandle): void {
  handle.exec('BEGIN IMMEDIATE');
  try {
    // Another process may have made them while this one waited for the lock.
    if (isEmpty(handle)) handle.exec(SCHEMA);
    handle.exec('COMMIT');
  } catch (error) {
    handle.exec('ROLLBACK');
    throw error;
  }
}

function isEmpty(handle: SqliteHandle): boolean {
  const cells = cellsOf(handle.prepare(INSPECT).get()).map(Number);
  const [application = 0, version = 0, objects = 0] = cells;
  if (application === APPLICATION_ID && version === SCHEMA_VERSION) return false;
  if (application === APPLICATION_ID) {
    throw new TokenError(
      'invalid_options',
      `the usage database has schema version ${version}, and this tokenwright can use ${SCHEMA_VERSION} at most: upgrade tokenwright`,
      { reason: 'later_layout' },
    );
  }
  if (application === 0 && version === 0 && objects === 0) return true;
  throw new TokenError(
    'invalid_options',
    'the SQLite database holds something else than usage, and stays as it is: give usage a file of its own, not the one of the tokens',
  );
}
