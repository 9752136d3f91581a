import { closeSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { isTokenError, TokenError } from '../errors.ts';
import type { PageQuery, StoreFinding, TokenStore, Unsubscribe } from '../store.ts';
import type { TokenId, TokenRecord } from '../token.ts';
import { COLUMNS, type Column, RowReader, toValues } from './rows.ts';

/**
 * What goes into a statement of a {@link SqliteHandle}.
 *
 * @example
 * const values: SqliteValue[] = ['text', 1, new Uint8Array(32), null];
 */
export type SqliteValue = string | number | Uint8Array | null;

/**
 * A prepared statement, as far as the store uses one.
 *
 * @example
 * const statement: SqliteStatement = handle.prepare('SELECT ? AS answer');
 * statement.get(42); // { answer: 42 }
 */
export interface SqliteStatement {
  get(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
  run(...values: SqliteValue[]): { readonly changes: number | bigint };
  /** Rows as arrays, which are read faster: by `node:sqlite`, and by better-sqlite3. */
  setReturnArrays?(enabled: boolean): unknown;
  raw?(enabled: boolean): unknown;
}

/**
 * An open database, as far as the store uses one: a `DatabaseSync` of `node:sqlite`, or a
 * better-sqlite3 database.
 *
 * Use one driver for a file within a process: two copies of SQLite in one process do not see each
 * other's locks and can damage the file.
 *
 * @example
 * const handle: SqliteHandle = new DatabaseSync('tokens.db');
 */
export interface SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
}

/**
 * Keeps tokens in an SQLite database: durable, for one machine, also for several processes on one
 * file.
 *
 * Writes reach the disk before their promise resolves (`synchronous=FULL`); those of one turn of the
 * event loop wait for it together. A writer waits up to 1.5 s for another process and then rejects
 * with `store_unavailable`. The database belongs to the store, so give it a file of its own: its
 * `application_id` is 1415008852 (`TWRT`), and its `user_version` counts our schema. A database that
 * holds something else is refused, and stays as it is.
 *
 * @example
 * const store = SqliteTokenStore.open('tokens.db');
 * await store.insert(record);
 * await store.close();
 */
export class SqliteTokenStore implements TokenStore {
  readonly local = true;
  readonly #statements: Statements;
  readonly #rows = new RowReader();
  readonly #handle: SqliteHandle;
  readonly #writes: Writes;
  readonly #watches = new Set<() => void>();
  #release: (() => void) | undefined;

  private constructor(handle: SqliteHandle, release?: () => void) {
    this.#handle = handle;
    this.#statements = prepared(handle);
    this.#writes = new Writes(handle);
    this.#release = release;
  }

  /**
   * Opens a database and brings its schema up to date.
   *
   * A path is opened with `node:sqlite`; a file that does not exist is created for its owner alone
   * (mode 0600). `':memory:'` is a database that ends with the store. A handle passed in gets our
   * pragmas and stays open when the store is closed.
   *
   * @throws {TokenError} `invalid_options` when this Node.js has no `node:sqlite`, the database
   * belongs to something else, or its schema is newer than this version knows; `store_unavailable`
   * when it does not open
   * @example
   * SqliteTokenStore.open('/var/lib/acme/tokens.db');
   * SqliteTokenStore.open(new Database('tokens.db')); // better-sqlite3
   */
  static open(pathOrHandle: string | SqliteHandle): SqliteTokenStore {
    if (typeof pathOrHandle !== 'string' && typeof pathOrHandle?.prepare !== 'function') {
      throw new TokenError(
        'invalid_options',
        "what is opened must be the path of a file, ':memory:', or a database of node:sqlite or better-sqlite3",
      );
    }
    return guarded(() => {
      if (typeof pathOrHandle !== 'string') return new SqliteTokenStore(pathOrHandle);
      const handle = openFile(pathOrHandle);
      const release = () => handle.close();
      try {
        return new SqliteTokenStore(handle, release);
      } catch (error) {
        release();
        throw error;
      }
    }, NOT_OPENED);
  }

  async insert(record: TokenRecord): Promise<void> {
    const inserted = await this.#writes.run(this.#statements.insert, toValues(record));
    if (inserted === 0) throw new TokenError('id_taken', 'this id is taken');
  }

  async find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    const [id] = ids;
    if (id === undefined) return [];
    if (ids.length > 1) return this.#findMany(ids);
    const row = guarded(() => this.#statements.find.get(id));
    return [row === undefined ? undefined : this.#rows.readCells(cellsOf(row))];
  }

  #findMany(ids: readonly TokenId[]): (TokenRecord | undefined)[] {
    const rows = guarded(() => this.#statements.findMany.all(JSON.stringify(ids)));
    const found = new Array<TokenRecord | undefined>(ids.length).fill(undefined);
    for (const row of rows) {
      const cells = cellsOf(row);
      found[Number(cells[COLUMNS.length])] = this.#rows.readCells(cells);
    }
    return found;
  }

  async page({ account, after, limit, liveAt }: PageQuery): Promise<TokenRecord[]> {
    const start = [after?.createdAt.getTime() ?? BEFORE_ALL, after?.id ?? ''] as const;
    const rows = guarded(() =>
      this.#statements.page.all(account, liveAt.getTime(), ...start, limit),
    );
    // The driver's own array may be of another realm, as under Jest, and a map of it would be, too.
    return Array.from(rows, (row) => this.#rows.readCells(cellsOf(row)));
  }

  async replace(next: TokenRecord): Promise<boolean> {
    const values = [...toValues(next).slice(2), next.id, next.account, next.version - 1];
    return (await this.#writes.run(this.#statements.replace, values)) > 0;
  }

  async revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    const values = [at.getTime(), id, account, version ?? null];
    return (await this.#writes.run(this.#statements.revoke, values)) > 0;
  }

  async revokeAll(account: string, at: Date): Promise<number> {
    return guarded(() => changed(this.#statements.revokeAll.run(at.getTime(), account)));
  }

  async purge(before: Date, limit: number): Promise<number> {
    return guarded(() => changed(this.#statements.purge.run(before.getTime(), limit)));
  }

  /**
   * Tells of commits of other connections, also of other processes: SQLite counts them, and the
   * count is looked at every 25 ms. It does not say what changed, so each hint is `'all'`.
   */
  async watch(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe> {
    let seen = this.#dataVersion();
    const timer = setInterval(() => {
      const version = this.#dataVersion();
      if (version === undefined || version !== seen) onChange('all');
      seen = version;
    }, WATCH_MS);
    timer.unref();
    const end = () => {
      clearInterval(timer);
      this.#watches.delete(end);
    };
    this.#watches.add(end);
    return async () => end();
  }

  #dataVersion(): unknown {
    try {
      return (this.#statements.dataVersion.get() as { data_version: unknown }).data_version;
    } catch {
      return undefined;
    }
  }

  /**
   * Looks for a disk that is not waited for, and for a file that is not in WAL mode or is damaged.
   * It reads the whole file.
   */
  async doctor(): Promise<StoreFinding[]> {
    return guarded(() => {
      const ask = (pragma: string) => Object.values(this.#pragma(pragma) as object)[0];
      const findings: StoreFinding[] = [];
      if (Number(ask('synchronous')) < 2) {
        findings.push({
          code: 'synchronous_off',
          message:
            'synchronous is below FULL on this connection: after a loss of power, tokens that were acknowledged may be missing and revoked ones be back; let the store set its pragmas after yours',
        });
      }
      const mode = ask('journal_mode');
      if (mode !== 'wal' && mode !== 'memory') {
        findings.push({
          code: 'journal_not_wal',
          message: `journal_mode is ${mode}: readers wait for writers; put the file on a local disk, where WAL works`,
        });
      }
      const state = ask('quick_check');
      if (state !== 'ok') {
        findings.push({
          code: 'database_damaged',
          message: 'quick_check finds the file damaged: restore it from a backup',
        });
      }
      return findings;
    });
  }

  #pragma(name: string): unknown {
    return this.#handle.prepare(`PRAGMA ${name}`).get();
  }

  async close(): Promise<void> {
    for (const end of this.#watches) end();
    this.#writes.flush();
    const release = this.#release;
    this.#release = undefined;
    if (release !== undefined) guarded(release);
  }
}

interface Write {
  readonly statement: SqliteStatement;
  readonly values: readonly SqliteValue[];
  readonly resolve: (changes: number) => void;
  readonly reject: (error: unknown) => void;
}

/** Writes of single records: those of one turn of the event loop are one transaction. */
class Writes {
  readonly #handle: SqliteHandle;
  #gathered: Write[] = [];

  constructor(handle: SqliteHandle) {
    this.#handle = handle;
  }

  /** Resolves to how many records were changed, once that is on the disk. */
  run(statement: SqliteStatement, values: readonly SqliteValue[]): Promise<number> {
    return new Promise((resolve, reject) => {
      const count = this.#gathered.push({ statement, values, resolve, reject });
      if (count === 1) setImmediate(() => this.flush());
    });
  }

  flush(): void {
    const writes = this.#gathered;
    this.#gathered = [];
    if (writes.length > 1) this.#together(writes);
    else alone(writes);
  }

  #together(writes: readonly Write[]): void {
    try {
      this.#handle.exec('BEGIN IMMEDIATE');
    } catch (error) {
      // All have waited for the lock; each for itself, they would do so one after the other.
      if (isBusy(error)) refuse(writes, error);
      // The host has begun a transaction, and each takes part in that.
      else alone(writes);
      return;
    }
    let changes: number[];
    try {
      changes = writes.map(({ statement, values }) => changed(statement.run(...values)));
    } catch {
      // One that cannot be made must not take the others with it.
      this.#rollBack();
      alone(writes);
      return;
    }
    try {
      this.#handle.exec('COMMIT');
    } catch (error) {
      this.#rollBack();
      refuse(writes, error);
      return;
    }
    for (const [place, { resolve }] of writes.entries()) resolve(changes[place] as number);
  }

  #rollBack(): void {
    try {
      this.#handle.exec('ROLLBACK');
    } catch {
      // Some errors have done so already.
    }
  }
}

function alone(writes: readonly Write[]): void {
  for (const { statement, values, resolve, reject } of writes) {
    try {
      resolve(changed(statement.run(...values)));
    } catch (error) {
      reject(refusalOf(error));
    }
  }
}

function refuse(writes: readonly Write[], error: unknown): void {
  for (const { reject } of writes) reject(refusalOf(error));
}

const BUSY_TIMEOUT_MS = 1500;
/** 32 MB. With the default of 1000, a busy service stands still for a checkpoint some times a second. */
const CHECKPOINT_PAGES = 8000;
const RETRY_MS = 2000;
const PAUSE_MS = 20;
const WATCH_MS = 25;
const SCHEMA_VERSION = 1;
/** In the header of the file, where SQLite has a place for it: `TWRT`. */
const APPLICATION_ID = 0x54575254;

const NOT_USABLE = 'the SQLite database cannot be used: it is locked, closed, full or damaged';
const NOT_OPENED =
  'the SQLite database does not open: it has to be a file of its own, in a directory this process may write to';

const NOT_OURS =
  'the SQLite database holds something else than the table of tokenwright, and stays as it is: give tokenwright a file of its own';

const SCHEMA = `
  CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL,
    prefix TEXT NOT NULL,
    kid TEXT NOT NULL,
    digest BLOB NOT NULL,
    box BLOB,
    scopes TEXT NOT NULL,
    requested TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT,
    metadata TEXT,
    revoked_at INTEGER,
    previous_digest BLOB,
    previous_until INTEGER
  ) STRICT;
  CREATE INDEX tokens_by_account ON tokens (account, created_at DESC, id DESC)
    WHERE revoked_at IS NULL;
  CREATE INDEX tokens_by_end ON tokens (min(expires_at, coalesce(revoked_at, expires_at)));
  PRAGMA user_version = ${SCHEMA_VERSION};
  PRAGMA application_id = ${APPLICATION_ID};
`;

/** In one statement, so that all of it is of the same moment. */
const LOOK = `
  SELECT
    (SELECT application_id FROM pragma_application_id) AS application,
    (SELECT user_version FROM pragma_user_version) AS version,
    (SELECT count(*) FROM sqlite_schema) AS objects,
    (SELECT json_group_array(name) FROM pragma_table_info('tokens', 'main')) AS columns
`;

/** Later than any date: the place before the first record of a page. */
const BEFORE_ALL = Number.MAX_SAFE_INTEGER;

interface Statements {
  readonly insert: SqliteStatement;
  readonly find: SqliteStatement;
  readonly findMany: SqliteStatement;
  readonly page: SqliteStatement;
  readonly replace: SqliteStatement;
  readonly revoke: SqliteStatement;
  readonly revokeAll: SqliteStatement;
  readonly purge: SqliteStatement;
  readonly dataVersion: SqliteStatement;
}

function prepared(handle: SqliteHandle): Statements {
  handle.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  // First, since what belongs to something else stays as it is.
  patiently(() => contentOf(handle));
  patiently(() => handle.exec('PRAGMA journal_mode = WAL'));
  handle.exec('PRAGMA synchronous = FULL');
  handle.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  migrate(handle);
  const columns = COLUMNS.join(', ');
  const cells = COLUMNS.map(cellOf).join(', ');
  return {
    insert: handle.prepare(
      `INSERT INTO tokens (${columns}) VALUES (${COLUMNS.map(() => '?').join(', ')})
       ON CONFLICT (id) DO NOTHING`,
    ),
    find: inArrays(handle.prepare(`SELECT ${cells} FROM tokens WHERE id = ?`)),
    // CROSS JOIN fixes the order of the loops: one index lookup for each place that was asked.
    findMany: inArrays(
      handle.prepare(
        `SELECT ${cells}, asked.key
       FROM json_each(?) AS asked CROSS JOIN tokens ON tokens.id = asked.value`,
      ),
    ),
    // A bare parameter as the limit would make SQLite plan the query anew each time.
    page: inArrays(
      handle.prepare(
        `SELECT ${cells} FROM tokens
       WHERE account = ? AND revoked_at IS NULL AND expires_at > ? AND (created_at, id) < (?, ?)
       ORDER BY created_at DESC, id DESC LIMIT ? + 0`,
      ),
    ),
    replace: handle.prepare(
      `UPDATE tokens SET ${COLUMNS.slice(2)
        .map((column) => `${column} = ?`)
        .join(', ')}
       WHERE id = ? AND account = ? AND version = ? AND revoked_at IS NULL`,
    ),
    revoke: handle.prepare(
      `UPDATE tokens SET revoked_at = ?
       WHERE id = ? AND account = ? AND revoked_at IS NULL AND version = coalesce(?, version)`,
    ),
    revokeAll: handle.prepare(
      'UPDATE tokens SET revoked_at = ? WHERE account = ? AND revoked_at IS NULL',
    ),
    purge: handle.prepare(
      `DELETE FROM tokens WHERE rowid IN (
         SELECT rowid FROM tokens WHERE min(expires_at, coalesce(revoked_at, expires_at)) < ?
         LIMIT ? + 0)`,
    ),
    dataVersion: handle.prepare('PRAGMA data_version'),
  };
}

/** Short bytes cost less to read as a text, and a list that is the same as another is not read. */
function cellOf(column: Column): string {
  if (column === 'digest') return 'hex(tokens.digest)';
  if (column === 'requested') return 'nullif(tokens.requested, tokens.scopes)';
  return `tokens.${column}`;
}

function inArrays(statement: SqliteStatement): SqliteStatement {
  if (statement.setReturnArrays !== undefined) statement.setReturnArrays(true);
  else statement.raw?.(true);
  return statement;
}

/** The cells of a row in the order of its columns. */
function cellsOf(row: unknown): readonly unknown[] {
  return Array.isArray(row) ? row : Object.values(row as object);
}

function openFile(path: string): SqliteHandle & { close(): void } {
  const sqlite = process.getBuiltinModule('node:sqlite');
  if (sqlite === undefined) {
    throw new TokenError(
      'invalid_options',
      'this Node.js has no node:sqlite: use Node.js 22.13 or later, or pass a better-sqlite3 handle',
    );
  }
  if (path === ':memory:') return new sqlite.DatabaseSync(path);
  // An absolute path is never read as a `file:` URI.
  const file = resolve(path);
  createPrivately(file);
  return new sqlite.DatabaseSync(file);
}

function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}

/** SQLite does not always honour busy_timeout here when several processes start at once. */
function patiently(work: () => unknown): void {
  const deadline = performance.now() + RETRY_MS;
  while (!triedWhileBusy(work, deadline)) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
}

function triedWhileBusy(work: () => unknown, deadline: number): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (isBusy(error) && performance.now() < deadline) return false;
    throw error;
  }
}

/** `node:sqlite` gives the number of SQLite, better-sqlite3 its name; both may be extended ones. */
function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { errcode, code } = error as { readonly errcode?: unknown; readonly code?: unknown };
  return (Number(errcode) & 0xff) === 5 || String(code).startsWith('SQLITE_BUSY');
}

function migrate(handle: SqliteHandle): void {
  if (contentOf(handle) === 'current') return;
  handle.exec('BEGIN IMMEDIATE');
  try {
    // Looked at again: another process may have migrated while this one waited for the lock.
    const content = contentOf(handle);
    if (content === 'nothing') handle.exec(SCHEMA);
    if (content === 'unmarked') handle.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    handle.exec('COMMIT');
  } catch (error) {
    handle.exec('ROLLBACK');
    throw error;
  }
}

/**
 * What a database holds; `unmarked` is our table, made before there was an `application_id`.
 *
 * @throws {TokenError} `invalid_options` when that is of something else, or newer than we know
 */
function contentOf(handle: SqliteHandle): 'nothing' | 'unmarked' | 'current' {
  const seen = cellsOf(handle.prepare(LOOK).get());
  const [application, version, objects] = seen.slice(0, 3).map(Number) as [number, number, number];
  const columns: readonly unknown[] = JSON.parse(String(seen[3]));
  const isWhole = COLUMNS.every((column) => columns.includes(column));
  if (application === APPLICATION_ID) {
    if (version > SCHEMA_VERSION) throw tooNew(version);
    if (version === SCHEMA_VERSION && isWhole) return 'current';
  }
  if (application === 0) {
    if (version === 0 && objects === 0) return 'nothing';
    if (version === SCHEMA_VERSION && isWhole) return 'unmarked';
  }
  throw new TokenError('invalid_options', NOT_OURS);
}

function tooNew(version: number): TokenError {
  return new TokenError(
    'invalid_options',
    `the database has schema version ${version}, this tokenwright knows ${SCHEMA_VERSION} at most: upgrade tokenwright`,
  );
}

function guarded<Result>(work: () => Result, message = NOT_USABLE): Result {
  try {
    return work();
  } catch (error) {
    throw refusalOf(error, message);
  }
}

function refusalOf(error: unknown, message = NOT_USABLE): TokenError {
  if (isTokenError(error)) return error;
  // `node:sqlite` refuses to read an integer that a number cannot hold; we write none.
  if (error instanceof Error && 'code' in error && error.code === 'ERR_OUT_OF_RANGE') {
    return new TokenError(
      'store_corrupt',
      'a token record in the database has an integer too large',
    );
  }
  return new TokenError('store_unavailable', message);
}

function changed({ changes }: { readonly changes: number | bigint }): number {
  return Number(changes);
}
