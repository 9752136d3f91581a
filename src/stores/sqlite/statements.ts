import type { ListedState, TokenId } from '../../token.ts';
import { COLUMNS, type Column } from '../rows.ts';
import { changesIn, returnArrays, type SqliteHandle, type SqliteStatement } from './client.ts';

export type WriteStatement = Pick<SqliteStatement, 'run'>;

type Writes = ReturnType<typeof prepareWrites>;

/** The name of a statement that writes. */
export type WriteVerb = keyof Writes;

export type Statements = ReturnType<typeof prepareReads> & Writes;

/** `onWrite` is called after each write to one record. */
export function prepareStatements(
  handle: SqliteHandle,
  onWrite: (id: TokenId, changes: number) => void,
): Statements {
  const write = (sql: string, idIndex: number): WriteStatement => {
    const statement = handle.prepare(sql);
    const run: SqliteStatement['run'] = (...values) => {
      const result = statement.run(...values);
      onWrite(values[idIndex] as TokenId, changesIn(result));
      return result;
    };
    return { run };
  };
  return { ...prepareReads(handle), ...prepareWrites(handle, write) };
}

/** One row if the account has as many live records as its quota. Skipping is cheaper than counting. */
const LAST_OF_QUOTA = `
  SELECT 1 FROM tokens
  WHERE account = ? AND revoked_at IS NULL AND expires_at > ? LIMIT 1 OFFSET ? - 1
`;

/** Selected together with a row, so that it is the state in which the row was read. */
const STATE = '(SELECT data_version FROM pragma_data_version), total_changes()';

function prepareReads(handle: SqliteHandle) {
  const cells = COLUMNS.map(cellOf).join(', ');
  const read = (sql: string) => returnArrays(handle.prepare(sql));
  return {
    lastOfQuota: handle.prepare(LAST_OF_QUOTA),
    find: read(`SELECT ${cells} FROM tokens WHERE id = ?`),
    /** The state comes after the columns. */
    findWithState: read(`SELECT ${cells}, ${STATE} FROM tokens WHERE id = ?`),
    state: read(`SELECT ${STATE}`),
    // CROSS JOIN fixes the order of the loops: one index lookup for each id.
    findMany: read(
      `SELECT ${cells}, asked.key
       FROM json_each(?) AS asked CROSS JOIN tokens ON tokens.id = asked.value`,
    ),
    pages: preparePages(read, cells),
    children: prepareChildren(read, cells),
    scan: read(`SELECT ${cells} FROM tokens WHERE id > ? ORDER BY id LIMIT ? + 0`),
    ended: read(
      `SELECT id FROM tokens WHERE min(expires_at, coalesce(revoked_at, expires_at)) < ?
       LIMIT ? + 0`,
    ),
    dataVersion: handle.prepare('PRAGMA data_version'),
  };
}

/** For each state, the parameters are the account, the time if there is one, the position and the limit. */
function preparePages(
  read: (sql: string) => SqliteStatement,
  cells: string,
): Readonly<Record<ListedState, SqliteStatement>> {
  const where = (state: string) =>
    `SELECT ${cells} FROM tokens WHERE account = ? AND ${state} AND (created_at, id) < (?, ?)`;
  // With a bare parameter as the limit, SQLite would plan the query on every call.
  const page = (selection: string) =>
    read(`${selection} ORDER BY ${CREATED_AT} DESC, ${ID} DESC LIMIT ? + 0`);
  return {
    active: page(where('revoked_at IS NULL AND expires_at > ? AND suspended_at IS NULL')),
    // The plus keeps these off the index of all that is not revoked, and off the one by expiry.
    suspended: page(where('+revoked_at IS NULL AND expires_at > ? AND suspended_at IS NOT NULL')),
    expired: page(where('revoked_at IS NULL AND +expires_at <= ?')),
    revoked: page(where('revoked_at IS NOT NULL')),
    // SQLite merges both, row by row.
    all: page(`${where('revoked_at IS NULL')} UNION ALL ${where('revoked_at IS NOT NULL')}`),
  };
}

/** The parameters are the parent, and then those of a page. */
function prepareChildren(
  read: (sql: string) => SqliteStatement,
  cells: string,
): Readonly<Record<ListedState, SqliteStatement>> {
  // The plus keeps the plan on the index by parent.
  const page = (state: string) =>
    read(
      `SELECT ${cells} FROM tokens WHERE parent = ? AND +account = ? ${state}
       AND (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ? + 0`,
    );
  return {
    active: page('AND +revoked_at IS NULL AND +expires_at > ? AND +suspended_at IS NULL'),
    suspended: page('AND +revoked_at IS NULL AND +expires_at > ? AND +suspended_at IS NOT NULL'),
    expired: page('AND +revoked_at IS NULL AND +expires_at <= ?'),
    revoked: page('AND +revoked_at IS NOT NULL'),
    all: page(''),
  };
}

/** A union is sorted by the places of its columns. */
const CREATED_AT = COLUMNS.indexOf('created_at') + 1;
const ID = COLUMNS.indexOf('id') + 1;

/** Short bytes are faster to read as text. A list that equals another one is not read. */
function cellOf(column: Column): string {
  if (column === 'digest') return 'hex(tokens.digest)';
  if (column === 'requested') return 'nullif(tokens.requested, tokens.scopes)';
  return `tokens.${column}`;
}

function prepareWrites(
  handle: SqliteHandle,
  write: (sql: string, idIndex: number) => WriteStatement,
) {
  const columns = COLUMNS.join(', ');
  const parameters = COLUMNS.map(() => '?').join(', ');
  const assignments = COLUMNS.slice(2).map((column) => `${column} = ?`);
  return {
    insert: write(
      `INSERT INTO tokens (${columns}) VALUES (${parameters})
       ON CONFLICT (id) DO NOTHING`,
      COLUMNS.indexOf('id'),
    ),
    insertWithin: write(
      `INSERT INTO tokens (${columns}) SELECT ${parameters}
       WHERE NOT EXISTS (${LAST_OF_QUOTA}) ON CONFLICT (id) DO NOTHING`,
      COLUMNS.indexOf('id'),
    ),
    replace: write(
      `UPDATE tokens SET ${assignments.join(', ')}
       WHERE id = ? AND account = ? AND version = ? AND revoked_at IS NULL`,
      assignments.length,
    ),
    revoke: write(
      `UPDATE tokens SET revoked_at = ?
       WHERE id = ? AND account = ? AND revoked_at IS NULL AND version = coalesce(?, version)`,
      1,
    ),
    revokeAll: handle.prepare(
      `UPDATE tokens SET revoked_at = ? WHERE rowid IN (
         SELECT rowid FROM tokens WHERE account = ? AND revoked_at IS NULL LIMIT ? + 0)`,
    ),
    // The plus keeps the plan on the primary key.
    purge: handle.prepare(
      `DELETE FROM tokens WHERE id IN (SELECT value FROM json_each(?) AS asked)
         AND +min(expires_at, coalesce(revoked_at, expires_at)) < ?`,
    ),
  };
}
