import { SQLITE_BUSY_MS, SQLITE_TRY_MS } from '../../bounds.ts';
import { systemClock } from '../../clock.ts';
import { TokenError } from '../../errors.ts';
import { cellsOf, retryWhileBusy, type SqliteHandle } from './client.ts';

/** `TWUS`. The tokens have a file of their own, and another mark. */
const APPLICATION_ID = 0x54575553;
/** In `user_version`. */
const SCHEMA_VERSION = 2;

/** Makes the tables, or those that version 1 did not have: its counts are known to be complete from now on. */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS uses (
    id TEXT NOT NULL,
    scope TEXT NOT NULL,
    uses INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    PRIMARY KEY (id, scope)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS refusals (
    id TEXT NOT NULL PRIMARY KEY,
    refusals INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE counted_since (
    since INTEGER NOT NULL
  ) STRICT;
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
 * Makes the tables that are missing in an empty database or in one of version 1, and sets the pragmas.
 *
 * @throws {TokenError} `invalid_options` if the database holds something else, or is of a later version
 */
export function prepareUsageDatabase(handle: SqliteHandle): void {
  handle.exec(`PRAGMA busy_timeout = ${SQLITE_BUSY_MS}`);
  // First, because WAL mode would already change the file.
  retryWhileBusy(() => isCurrent(handle));
  retryWhileBusy(() => handle.exec('PRAGMA journal_mode = WAL'));
  if (!isCurrent(handle)) create(handle);
  // A loss of power may cost the last counts, never the file. A killed process loses nothing.
  handle.exec('PRAGMA synchronous = NORMAL');
  handle.exec(`PRAGMA busy_timeout = ${SQLITE_TRY_MS}`);
}

function create(handle: SqliteHandle): void {
  handle.exec('BEGIN IMMEDIATE');
  try {
    // Another process may have made them while this one waited for the lock.
    if (!isCurrent(handle)) {
      handle.exec(SCHEMA);
      handle.exec(`INSERT INTO counted_since VALUES (${systemClock.now().getTime()})`);
    }
    handle.exec('COMMIT');
  } catch (error) {
    handle.exec('ROLLBACK');
    throw error;
  }
}

function isCurrent(handle: SqliteHandle): boolean {
  const cells = cellsOf(handle.prepare(INSPECT).get()).map(Number);
  const [application = 0, version = 0, objects = 0] = cells;
  const isOurs = application === APPLICATION_ID;
  if (isOurs && version <= SCHEMA_VERSION) return version === SCHEMA_VERSION;
  if (isOurs) {
    throw new TokenError(
      'invalid_options',
      `the usage database has schema version ${version}, and this tokenwright can use ${SCHEMA_VERSION} at most: upgrade tokenwright`,
      { reason: 'later_layout' },
    );
  }
  if (application === 0 && version === 0 && objects === 0) return false;
  throw new TokenError(
    'invalid_options',
    'the SQLite database holds something else than usage, and stays as it is: give usage a file of its own, not the one of the tokens',
  );
}
