import { closeSync, existsSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { SQLITE_BUSY_MS } from '../../bounds.ts';
import { isTokenError, type StoreReason, storeUnavailable, TokenError } from '../../errors.ts';
import { delay, performance } from '../../time/timers.ts';

/**
 * A parameter of a statement of a {@link SqliteHandle}.
 *
 * @example
 * const values: SqliteValue[] = ['text', 1, new Uint8Array(32), null];
 */
export type SqliteValue = string | number | Uint8Array | null;

/**
 * The part of a prepared statement that the store uses.
 *
 * @example
 * const statement: SqliteStatement = handle.prepare('SELECT ? AS answer');
 * statement.get(42); // { answer: 42 }
 */
export interface SqliteStatement {
  get(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
  run(...values: SqliteValue[]): { readonly changes: number | bigint };
  /** Rows one by one. Without it, a page reads all its rows, even if few of them fit. */
  iterate?(...values: SqliteValue[]): Iterable<unknown>;
  /** Rows as arrays, which are faster to read: in `node:sqlite`, and in better-sqlite3. */
  setReturnArrays?(enabled: boolean): unknown;
  raw?(enabled: boolean): unknown;
}

/**
 * The part of an open database that the store uses: a `DatabaseSync` of `node:sqlite`, or
 * a better-sqlite3 database.
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
  /** Whether a transaction is open: in `node:sqlite`, and in better-sqlite3. */
  readonly isTransaction?: boolean;
  readonly inTransaction?: boolean;
}

/** A database that the store itself has opened. */
export type OwnHandle = SqliteHandle & { close(): void };

/** Opens a file, or a database in memory. Creates a missing file. */
export function openFile(path: string): OwnHandle {
  if (path === ':memory:') return connect(path);
  // SQLite never reads an absolute path as a `file:` URI.
  const file = resolve(path);
  requireSqlite();
  createPrivately(file);
  return connect(file);
}

/** Opens an absolute path. */
export function connect(file: string): OwnHandle {
  const { DatabaseSync } = requireSqlite();
  return new DatabaseSync(file);
}

export function requireSqlite(): typeof import('node:sqlite') {
  const sqlite = process.getBuiltinModule('node:sqlite');
  if (sqlite === undefined) {
    throw new TokenError(
      'invalid_options',
      'this Node.js has no node:sqlite: use Node.js 22.13 or later, or pass a better-sqlite3 handle',
    );
  }
  return sqlite;
}

function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    // SQLite would let others read the target that it makes for a dangling link.
    if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600));
  }
}

export function returnArrays(statement: SqliteStatement): SqliteStatement {
  if (statement.setReturnArrays !== undefined) statement.setReturnArrays(true);
  else statement.raw?.(true);
  return statement;
}

/** The cells of a row in the order of its columns. */
export function cellsOf(row: unknown): readonly unknown[] {
  return Array.isArray(row) ? row : Object.values(row as object);
}

export function changesIn({ changes }: { readonly changes: number | bigint }): number {
  return Number(changes);
}

const RETRY_MS = 2000;
const PAUSE_MS = 20;
const MIN_PAUSE_MS = 5;
const MAX_PAUSE_MS = 15;

/** The pause between two attempts to get a lock. It is random, so that processes do not stay in step. */
export function pauseMs(): number {
  return MIN_PAUSE_MS + Math.random() * (MAX_PAUSE_MS - MIN_PAUSE_MS);
}

/** SQLite does not always honor busy_timeout when several processes open a file concurrently. */
export function retryWhileBusy(work: () => unknown): void {
  const deadline = performance.now() + RETRY_MS;
  for (;;) {
    try {
      work();
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw error;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
}

/** Reads immediately. If a lock is in the way, which is rare in WAL mode, retries by a timer. */
export function readNow<Result>(read: () => Result): Result | Promise<Result> {
  try {
    return read();
  } catch (error) {
    if (!isBusy(error)) throw toTokenError(error);
    return retryLater(read);
  }
}

/** Retries by a timer, which leaves turns to others, until the lock is free or the time is up. */
async function retryLater<Result>(work: () => Result): Promise<Result> {
  const until = performance.now() + SQLITE_BUSY_MS;
  for (;;) {
    await delay(pauseMs());
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= until) throw toTokenError(error);
    }
  }
}

/** Runs work in a transaction that takes the write lock first. Rolls back if the work throws. */
export function withWriteLock(handle: SqliteHandle, work: () => void): void {
  handle.exec('BEGIN IMMEDIATE');
  try {
    work();
    handle.exec('COMMIT');
  } catch (error) {
    handle.exec('ROLLBACK');
    throw error;
  }
}

/** `node:sqlite` has SQLite's number, better-sqlite3 its name. Both may be extended codes. */
export function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { errcode, code } = error as { readonly errcode?: unknown; readonly code?: unknown };
  return (Number(errcode) & 0xff) === 5 || String(code).startsWith('SQLITE_BUSY');
}

/** Runs work, and turns errors of the driver into ours. */
export function guarded<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw toTokenError(error);
  }
}

export function toTokenError(error: unknown): TokenError {
  if (isTokenError(error)) return error;
  // `node:sqlite` rejects integers beyond the safe range, which we never write.
  if (error instanceof Error && 'code' in error && error.code === 'ERR_OUT_OF_RANGE') {
    return new TokenError(
      'store_corrupt',
      'a token record in the database has an integer too large',
    );
  }
  return storeUnavailable(reasonOf(error));
}

/** By SQLite's primary result code, which `node:sqlite` gives as a number and better-sqlite3 by name. */
const REASONS: readonly (readonly [code: number, name: string, reason: StoreReason])[] = [
  [5, 'SQLITE_BUSY', 'busy'],
  [6, 'SQLITE_LOCKED', 'busy'],
  [13, 'SQLITE_FULL', 'full'],
  [3, 'SQLITE_PERM', 'not_opened'],
  [8, 'SQLITE_READONLY', 'not_opened'],
  [14, 'SQLITE_CANTOPEN', 'not_opened'],
  [26, 'SQLITE_NOTADB', 'not_opened'],
];

const OF_FILES = new Set<unknown>([
  'EACCES',
  'EEXIST',
  'EISDIR',
  'ELOOP',
  'ENAMETOOLONG',
  'ENOENT',
  'ENOTDIR',
  'EPERM',
  'EROFS',
]);

function reasonOf(error: unknown): StoreReason {
  if (!(error instanceof Error)) return 'unknown';
  const { errcode, code, message } = error as Error & {
    readonly errcode?: unknown;
    readonly code?: unknown;
  };
  const primary = Number(errcode) & 0xff;
  const known = REASONS.find(([number, name]) => number === primary || `${code}`.startsWith(name));
  if (known !== undefined) return known[2];
  if (OF_FILES.has(code)) return 'not_opened';
  if (/no such table/.test(message)) return 'schema_missing';
  if (/no such column|has no column/.test(message)) return 'schema_older';
  return /not open|finalized/.test(message) ? 'closed' : 'unknown';
}
