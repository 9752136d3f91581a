import { MAX_REVOKED_REQUESTED_BYTES } from '../../bounds.ts';
import type { ListedState, TokenId } from '../../token/record.ts';
import { COLUMNS, type Column } from '../shared/rows.ts';
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

/** Selected together with a row, so that it is the state in which the row was read. */
const STATE = '(SELECT data_version FROM pragma_data_version), total_changes()';

function prepareReads(handle: SqliteHandle) {
  const cells = COLUMNS.map(cellOf).join(', ');
  const read = (sql: string) => returnArrays(handle.prepare(sql));
  return {
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
    expiring: prepareExpiring(read, cells),
    children: prepareDerived(read, cells, 'parent'),
    descendants: prepareDerived(read, cells, 'root'),
    held: prepareCounts(read),
    scan: read(`SELECT ${cells} FROM tokens WHERE id > ? ORDER BY id LIMIT ? + 0`),
    ended: read(
      `SELECT id FROM tokens WHERE min(expires_at, coalesce(revoked_at, expires_at)) < ?
       LIMIT ? + 0`,
    ),
    prunable: read(
      `SELECT id, expires_at FROM tokens
       WHERE account = ? AND root IS ? AND revoked_at IS NULL AND expires_at <= ?
       UNION ALL SELECT id, revoked_at FROM tokens
       WHERE account = ? AND root IS ? AND ${REVOKED}
       ORDER BY 2 LIMIT ? + 0`,
    ),
    /** From the record that was inserted last on. */
    instants: read(
      `SELECT created_at, rotated_at, rowid FROM tokens
       WHERE rowid < ? ORDER BY rowid DESC LIMIT ? + 0`,
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
    // The plus keeps these off the indexes by expiry, and off that of all that is not revoked.
    active: page(where('revoked_at IS NULL AND +expires_at > ? AND suspended_at IS NULL')),
    live: page(where('revoked_at IS NULL AND +expires_at > ?')),
    suspended: page(where('+revoked_at IS NULL AND +expires_at > ? AND suspended_at IS NOT NULL')),
    expired: page(where('revoked_at IS NULL AND +expires_at <= ?')),
    revoked: page(where('revoked_at IS NOT NULL')),
    // SQLite merges both, row by row.
    all: page(`${where('revoked_at IS NULL')} UNION ALL ${where('revoked_at IS NOT NULL')}`),
  };
}

/** For each state, the parameters are the account, the position, the last instant and the limit. */
function prepareExpiring(
  read: (sql: string) => SqliteStatement,
  cells: string,
): Readonly<Record<ListedState, SqliteStatement>> {
  const where = (state: string) =>
    `SELECT ${cells} FROM tokens
     WHERE account = ? AND ${state} AND (expires_at, id) > (?, ?) AND expires_at <= ?`;
  const page = (selection: string) =>
    read(`${selection} ORDER BY ${EXPIRES_AT}, ${ID} LIMIT ? + 0`);
  const unrevoked = page(where('revoked_at IS NULL'));
  return {
    active: page(where('revoked_at IS NULL AND suspended_at IS NULL')),
    live: unrevoked,
    suspended: page(where('+revoked_at IS NULL AND suspended_at IS NOT NULL')),
    expired: unrevoked,
    revoked: page(where('revoked_at IS NOT NULL')),
    all: page(`${where('revoked_at IS NULL')} UNION ALL ${where('revoked_at IS NOT NULL')}`),
  };
}

/** The parameters are the parent or the root, and then those of a page. */
function prepareDerived(
  read: (sql: string) => SqliteStatement,
  cells: string,
  ancestor: 'parent' | 'root',
): Readonly<Record<ListedState, SqliteStatement>> {
  // The plus keeps the plan on the index by that ancestor.
  const page = (state: string) =>
    read(
      `SELECT ${cells} FROM tokens WHERE ${ancestor} = ? AND +account = ? ${state}
       AND (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ? + 0`,
    );
  return {
    active: page('AND +revoked_at IS NULL AND +expires_at > ? AND +suspended_at IS NULL'),
    live: page('AND +revoked_at IS NULL AND +expires_at > ?'),
    suspended: page('AND +revoked_at IS NULL AND +expires_at > ? AND +suspended_at IS NOT NULL'),
    expired: page('AND +revoked_at IS NULL AND +expires_at <= ?'),
    revoked: page('AND +revoked_at IS NOT NULL'),
    all: page(''),
  };
}

/** Revoked tokens that a prune may remove: the others stop a repeated import. */
const REVOKED = 'revoked_at IS NOT NULL AND format IS NULL';

/** What is counted for a quota, each by an index. */
export type Held = 'open' | 'revoked' | 'imported';

/** Statements that count the entries of an index from a position on, step by step. */
interface CountStatements {
  /** The position of the entry that comes a number of entries later. */
  readonly skip: SqliteStatement;
  /** How many entries there are. */
  readonly rest: SqliteStatement;
}

/** What counts the entries of an index that come after a position. */
export interface HeldStatements {
  /** The entries of later instants; the position is that of an instant. */
  readonly later: CountStatements;
  /** The entries of the same instant; the position is that of a row. */
  readonly same: CountStatements;
}

/**
 * The parameters are the account, the root, the last instant and the position; for `skip` also the number of
 * entries.
 */
function prepareCounts(
  read: (sql: string) => SqliteStatement,
): Readonly<Record<Held, HeldStatements>> {
  const count = (columns: readonly string[], condition: string): HeldStatements => {
    const order = columns.join(', ');
    const after = (position: string): CountStatements => {
      const entries = `FROM tokens WHERE account = ? AND root IS ? AND ${condition}
        AND ${columns.at(-1)} <= ? AND ${position}`;
      return {
        skip: read(
          `SELECT ${order}, rowid ${entries} ORDER BY ${order}, rowid LIMIT 1 OFFSET ? - 1`,
        ),
        rest: read(`SELECT count(*) ${entries}`),
      };
    };
    // SQLite does not compare a row with more than the columns of the index.
    return {
      later: after(`(${order}) > (${columns.map(() => '?').join(', ')})`),
      same: after(`${columns.map((column) => `${column} = ? AND`).join(' ')} rowid > ?`),
    };
  };
  return {
    open: count(['expires_at'], 'revoked_at IS NULL'),
    revoked: count(['revoked_at'], REVOKED),
    imported: count(['format', 'revoked_at'], 'revoked_at IS NOT NULL'),
  };
}

/** A union is sorted by the places of its columns. */
const CREATED_AT = COLUMNS.indexOf('created_at') + 1;
const EXPIRES_AT = COLUMNS.indexOf('expires_at') + 1;
const ID = COLUMNS.indexOf('id') + 1;

/** Short bytes are faster to read as text. */
function cellOf(column: Column): string {
  return column === 'digest' ? 'hex(tokens.digest)' : `tokens.${column}`;
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
    replace: write(
      `UPDATE tokens SET ${assignments.join(', ')}
       WHERE id = ? AND account = ? AND version = ? AND revoked_at IS NULL`,
      assignments.length,
    ),
    revoke: write(
      `UPDATE tokens SET revoked_at = ?, ${SHORTENED}
       WHERE id = ? AND account = ? AND revoked_at IS NULL AND version = coalesce(?, version)`,
      1,
    ),
    revokeAll: handle.prepare(
      `UPDATE tokens SET revoked_at = ?, ${SHORTENED} WHERE rowid IN (
         SELECT rowid FROM tokens WHERE account = ? AND revoked_at IS NULL LIMIT ? + 0)`,
    ),
    // The plus keeps the plan on the primary key.
    purge: handle.prepare(
      `DELETE FROM tokens WHERE id IN (SELECT value FROM json_each(?) AS asked)
         AND +min(expires_at, coalesce(revoked_at, expires_at)) < ?`,
    ),
    // A token that was revoked meanwhile may be one of those that stop a repeated import.
    prune: handle.prepare(
      `DELETE FROM tokens WHERE id IN (SELECT value FROM json_each(?) AS asked)
         AND iif(revoked_at IS NULL, +expires_at <= ?, format IS NULL)`,
    ),
  };
}

/** The longest beginning of \`requested\` that ends with a quote and leaves room for the bracket. */
const HEAD = `substr(requested, 1, ${MAX_REVOKED_REQUESTED_BYTES - 1})`;
const QUOTED = `rtrim(${HEAD}, replace(${HEAD}, '"', ''))`;

/**
 * What a revoked record loses. Scopes are ASCII and hold no quote. If the last quote of the beginning
 * opens a member, that member is cut off with its comma.
 */
const SHORTENED = `
  scopes = '[]', metadata = NULL, box = NULL,
  pending = iif(json_valid(pending), json_remove(pending, '$.box'), pending),
  requested = CASE
    WHEN length(requested) <= ${MAX_REVOKED_REQUESTED_BYTES} THEN requested
    WHEN ${QUOTED} = '["' THEN '[]'
    WHEN ${QUOTED} LIKE '%","' THEN substr(${QUOTED}, 1, length(${QUOTED}) - 2) || ']'
    ELSE ${QUOTED} || ']' END`;
