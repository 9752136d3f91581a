import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import {
  doctor,
  type EngineStore,
  isTokenError,
  type StoreFinding,
  TokenError,
  type TokenStore,
} from '../../../index.ts';
import type { Scratch } from '../../../testing/index.ts';
import { withDeadline } from '../../../time/deadline.ts';
import { delay, performance } from '../../../time/timers.ts';
import { inputError, usageError } from '../../terminal/errors.ts';
import type { StoreSettings } from '../settings.ts';
import { connectReason, isPermanent } from './connect-errors.ts';
import { ENGINES, MAX_CONNECT_MS, PATIENCE_MS, type SqlDialect } from './engines.ts';
import { parseStoreUrl } from './url.ts';

/** The store of the settings, before it is opened. Needs no driver yet. */
export interface StoreTarget {
  /** Names the store for people, without the user and the password of a URL. */
  readonly name: string;
  /** The path of an SQLite file. */
  readonly file?: string;
  /**
   * Returns the SQL of the schema, if there is one that people may run.
   *
   * @throws {TokenError} `invalid_options` for an impossible table name
   * @throws {CliError} for a dialect of another database than PostgreSQL
   */
  migrationSql(dialect?: SqlDialect): Promise<string | undefined>;
  /**
   * Connects.
   *
   * @throws {TokenError} `invalid_options` when the driver is not installed or an option is wrong;
   * `store_unavailable`, with the reason, when there is no connection
   */
  open(): Promise<OpenStore>;
  /**
   * Connects, and makes a place of its own, in which the promises of a store can be checked.
   *
   * @throws {TokenError} as `open`
   */
  scratch(): Promise<OpenScratch>;
}

/** A scratch with a connection. */
export interface OpenScratch {
  readonly scratch: Scratch;
  /** Closes the connections. */
  close(): Promise<void>;
}

/** A store with a connection. */
export interface OpenStore {
  readonly store: EngineStore;
  /** The version of the schema that this tokenwright writes. */
  readonly schema: number;
  /** Where the uses of its tokens are counted. */
  readonly usage: Place;
  /** Where the uses of limited tokens are counted. */
  readonly leases: Place;
  /** Where requests for tokens are. */
  readonly requests: Place;
  /** Brings the schema up to date; absent if there is none. */
  migrate?(): Promise<void>;
  /** Closes the store and the connections. The store may be closed already. */
  close(): Promise<void>;
}

/** Where a part beside the tokens is. */
interface Place {
  /** Names it for people. */
  readonly name: string;
  /** The path of an SQLite file. It is made by its first use. */
  readonly file?: string;
}

/**
 * Finds the store of the settings: the database of a URL, else an SQLite file.
 *
 * @throws {CliError} that never repeats the URL, which holds a password
 * @example
 * const { store, close } = await storeTarget({ store: 'redis://db.internal', data }).open();
 */
export function storeTarget({ store: url, tables, data }: StoreSettings): StoreTarget {
  const file =
    url === undefined ? join(data, 'tokens.db') : /^sqlite:(?:\/\/)?(.+)$/.exec(url)?.[1];
  if (url !== undefined && file === undefined) return databaseTarget(url, tables);
  if (tables === undefined) return fileTarget(file ?? '');
  throw usageError(
    '--tables (TOKENWRIGHT_TABLES) needs --store with a database: an SQLite file has one table',
  );
}

/** An outage whose message names the store. */
export class StoreOutage extends TokenError {
  /** Whether it may be over a moment later. */
  readonly isTransient: boolean;

  constructor(message: string, { isTransient = false } = {}) {
    super('store_unavailable', message);
    this.isTransient = isTransient;
  }
}

export interface RetryOptions {
  /** How long to retry. */
  readonly waitSeconds: number;
  /** Called once, before the first pause. */
  readonly onWait: (message: string) => void;
}

/**
 * Opens a store, and retries for some time while its database is down: services often start
 * together with their database. Does not retry if somebody has to correct something, such as a
 * wrong password.
 *
 * @throws {TokenError} like `open`
 */
export async function openWithRetry(
  { open }: StoreTarget,
  { waitSeconds, onWait }: RetryOptions,
): Promise<OpenStore> {
  const until = performance.now() + waitSeconds * 1000;
  for (let tries = 1; ; tries++) {
    const pauseMs = Math.min(FIRST_PAUSE_MS * tries, MAX_PAUSE_MS);
    try {
      return await open();
    } catch (error) {
      const isTransient = error instanceof StoreOutage && error.isTransient;
      if (!isTransient || performance.now() + pauseMs > until) throw error;
      if (tries === 1) onWait(`${error.message}; trying again for ${waitSeconds} s`);
    }
    await delay(pauseMs);
  }
}

const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 1000;

/**
 * Uses an existing store, then closes it. Unlike the service, it makes no file.
 *
 * @throws {CliError} when the SQLite file is missing
 * @throws {TokenError} `store_unavailable` that names a missing table
 */
export async function withStore<Result>(
  target: StoreTarget,
  use: (opened: OpenStore) => Promise<Result>,
): Promise<Result> {
  if (target.file !== undefined) checkExists(target.file);
  const opened = await target.open();
  return useStore(target, opened, () => use(opened)).finally(() => opened.close());
}

/**
 * Uses an open store. Its outages name it, and a missing table.
 *
 * @throws {TokenError} `store_unavailable`
 */
export async function useStore<Result>(
  target: StoreTarget,
  { store }: OpenStore,
  use: () => Promise<Result>,
): Promise<Result> {
  try {
    return await use();
  } catch (error) {
    if (!isUnnamedOutage(error)) throw error;
    throw named(error, target, (await findingsIn(store)) ?? []);
  }
}

function checkExists(file: string): void {
  try {
    statSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw inputError(
      code === 'EACCES' || code === 'EPERM'
        ? `this user may not read ${file}: run this command as the user of the service`
        : `${file} does not exist: tokenwright store migrate and serve make it; for another store, give --data or --store`,
    );
  }
}

function isUnnamedOutage(error: unknown): error is TokenError {
  const isOutage = isTokenError(error) && error.code === 'store_unavailable';
  return isOutage && !(error instanceof StoreOutage);
}

/** What the doctor of a store finds; `undefined` if the store does not answer. */
function findingsIn(store: TokenStore): Promise<readonly StoreFinding[] | undefined> {
  return doctor(store).catch(() => undefined);
}

/** Adds the name of a store to an outage, and what is wrong with its table. */
function named(
  { message, details }: TokenError,
  { name }: StoreTarget,
  findings: readonly StoreFinding[],
): StoreOutage {
  // Where the tables cannot be made they are missing, too, which would send people back to migrate.
  const isRefused = ['unsupported', 'forbidden'].includes(String(details?.['reason']));
  const schema = isRefused ? undefined : findings.find(({ code }) => code.startsWith('schema_'));
  return new StoreOutage(`${name}: ${schema === undefined ? message : messageOf(schema)}`);
}

/**
 * Opens the store that another one is copied to, makes its table, and closes it after use. Its outages
 * name it, unlike those of the other store.
 *
 * @throws {TokenError} `store_unavailable`
 */
export async function withCopyTarget<Result>(
  target: StoreTarget,
  use: (store: TokenStore) => Promise<Result>,
): Promise<Result> {
  const opened = await target.open();
  const { store } = opened;
  try {
    await opened.migrate?.();
    return await use(store);
  } catch (error) {
    if (!isUnnamedOutage(error)) throw error;
    // If this store answers, it is the other one that failed.
    throw (await findingsIn(store)) === undefined ? named(error, target, []) : error;
  } finally {
    await opened.close();
  }
}

/** The message of a finding. It names a command if the store names a function of the library. */
export function messageOf({ code, message }: StoreFinding): string {
  return code === 'schema_missing' ? NO_SCHEMA : message;
}

const NO_SCHEMA =
  'no token can be read or written: the table does not exist or is not up to date; run tokenwright store migrate with the same --store and --tables';

/**
 * Makes an SQLite file, or brings it up to date; opening does both.
 *
 * @param open opens and closes it
 * @returns whether there was no file, or an older one
 */
export async function migrateFile(
  file: string,
  open: () => Promise<void>,
): Promise<'made' | 'updated' | 'current'> {
  const exists = existsSync(file);
  const before = exists ? fileVersion(file) : undefined;
  await open();
  if (!exists) return 'made';
  return before === fileVersion(file) ? 'current' : 'updated';
}

/** Reads the schema version of an SQLite file, or `undefined` if that fails. */
function fileVersion(file: string): unknown {
  try {
    return readFile(file, 'SELECT user_version AS answer FROM pragma_user_version');
  } catch {
    return undefined;
  }
}

function readFile(file: string, sql: string): unknown {
  const sqlite = process.getBuiltinModule('node:sqlite');
  const database = new sqlite.DatabaseSync(resolve(file), { readOnly: true });
  try {
    return database.prepare(sql).get()?.['answer'];
  } finally {
    database.close();
  }
}

/** Replaces the message of the store, which advises to pass a handle: a command cannot do that. */
const NO_SQLITE =
  'this Node.js has no node:sqlite, which keeps tokens in a file: use Node.js 22.13 or later, or give a database by --store (TOKENWRIGHT_STORE)';

/** @throws {TokenError} `invalid_options` if this Node.js has no SQLite */
export function requireSqlite(): typeof import('node:sqlite') {
  const sqlite = process.getBuiltinModule('node:sqlite');
  if (sqlite !== undefined) return sqlite;
  throw new TokenError('invalid_options', NO_SQLITE);
}

function fileTarget(file: string): StoreTarget {
  const name = `SQLite in ${file}`;
  return {
    name,
    file,
    migrationSql: async () => undefined,
    async open() {
      requireSqlite();
      const { SqliteTokenStore } = await import('../../../stores/sqlite/index.ts');
      const { latestOf, TOKENS } = await import('../../../stores/sqlite/schema.ts');
      try {
        const store = SqliteTokenStore.openFile(file);
        const places = {
          usage: placeBeside(file, 'usage.db'),
          leases: placeBeside(file, 'leases.db'),
          requests: placeBeside(file, 'requests.db'),
        };
        return { store, schema: latestOf(TOKENS), ...places, close: () => store.close() };
      } catch (error) {
        if (!isTokenError(error)) throw error;
        if (!isSqlite(file)) throw inputError(`${noSqlite(file)}: give another --data or --store`);
        if (isLocked(file)) throw new StoreOutage(`${name}: ${LOCKED}`, { isTransient: true });
        throw isUnnamedOutage(error) ? new StoreOutage(`${name}: ${error.message}`) : error;
      }
    },
    async scratch() {
      requireSqlite();
      const { scratch } = await import('../../../stores/sqlite/index.ts');
      return { scratch: await scratch(dirname(file)), close: async () => {} };
    },
  };
}

/** A file of a part. Several files of tokens in one folder share it. */
function placeBeside(tokens: string, name: string): Place {
  const file = tokens === ':memory:' ? tokens : join(dirname(tokens), name);
  return { name: `SQLite in ${file}`, file };
}

/** What to do about a file that should hold counts and is something else. */
export const COUNTS_LOST = 'stop the service and move it away; counts begin again without it';

/** Why an SQLite file cannot be used, as far as the file itself shows it. Makes nothing. */
export function fileReason(file: string, cure: string): string | undefined {
  if (!isSqlite(file)) return `${noSqlite(file)}: ${cure}`;
  return isLocked(file) ? LOCKED : undefined;
}

const LOCKED = 'another process has locked the file';
const SQLITE_BUSY = 5;

/** Whether another process keeps a lock on an SQLite file, so that nobody else can write. */
function isLocked(file: string): boolean {
  if (!existsSync(file)) return false;
  try {
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
    const database = new DatabaseSync(resolve(file));
    try {
      database.exec('BEGIN IMMEDIATE; ROLLBACK');
    } finally {
      database.close();
    }
    return false;
  } catch (error) {
    return (Number((error as { readonly errcode?: unknown }).errcode) & 0xff) === SQLITE_BUSY;
  }
}

/** Whether SQLite may use a file: it begins like its own, or is empty, missing or not plain. */
function isSqlite(file: string): boolean {
  if (!existsSync(file) || !lstatSync(realpathSync(file)).isFile()) return true;
  const handle = openSync(file, 'r');
  try {
    const start = Buffer.alloc(SQLITE_START.length);
    const length = readSync(handle, start);
    return length === 0 || start.toString('latin1') === SQLITE_START;
  } finally {
    closeSync(handle);
  }
}

const SQLITE_START = 'SQLite format 3\0';

function noSqlite(file: string): string {
  return `${file} is not an SQLite database`;
}

const NO_DIALECT =
  '--dialect is for a database that speaks as PostgreSQL does: leave it out, or give --store postgres://…';

function databaseTarget(url: string, tables: string | undefined): StoreTarget {
  const address = parseStoreUrl(url);
  const { name } = address;
  const engine = ENGINES[address.engine];
  const connect = async (deadlineMs?: number) => {
    const client = await engine.open(address, tables, deadlineMs);
    const close = async () => {
      await client.store.close?.();
      // A broken connection cannot be closed in order, and nothing is lost.
      await client.end().catch(() => {});
    };
    try {
      await withDeadline(client.connect(), MAX_CONNECT_MS);
    } catch (error) {
      await close();
      const reason = connectReason(error);
      const isTransient = !isPermanent(reason);
      throw new StoreOutage(`${name} cannot be used: ${reason}`, { isTransient });
    }
    return { ...client, close };
  };
  return {
    name,
    async migrationSql(dialect) {
      if (dialect !== undefined && address.engine !== 'postgres') throw usageError(NO_DIALECT);
      return engine.migrationSql?.(tables, dialect);
    },
    async open() {
      const { store, schema, migrate, close } = await connect();
      const places = { usage: { name }, leases: { name }, requests: { name } };
      return { store, schema, ...places, ...(migrate !== undefined && { migrate }), close };
    },
    async scratch() {
      const { scratch, close } = await connect(PATIENCE_MS);
      try {
        return { scratch: await scratch(), close };
      } catch (error) {
        await close();
        throw error;
      }
    },
  };
}
