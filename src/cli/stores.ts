import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { withDeadline } from '../clock.ts';
import { isTokenError, TokenError } from '../errors.ts';
import { doctor, type TokenStore } from '../store.ts';
import { InputError } from './files.ts';
import { type StoreSettings, UsageError } from './settings.ts';

/** Where tokens are kept. Nothing is open yet, and no driver is needed. */
export interface StorePlace {
  /** As people may see it: without the user and the password of a URL. */
  readonly name: string;
  /** Its file, where it is one. */
  readonly file?: string;
  /**
   * The SQL of its schema; `undefined` where nobody has to run any.
   *
   * @throws {TokenError} `invalid_options` for a table that cannot be
   */
  migrationSql(): Promise<string | undefined>;
  /**
   * Connects.
   *
   * @throws {TokenError} `invalid_options` when the driver is not installed or an option is wrong;
   * `store_unavailable`, saying why, when there is no connection
   */
  open(): Promise<OpenStore>;
}

/** A store that answers. */
export interface OpenStore {
  readonly store: TokenStore;
  /** Brings the schema up to date; absent where there is nothing to do. */
  migrate?(): Promise<void>;
  /** Closes the store and its connections; the store may have been closed before. */
  close(): Promise<void>;
}

/**
 * Reads where tokens are to be kept: in the database of a URL, else in an SQLite file.
 *
 * @throws {UsageError} saying what the URL must be, never what it is: there is a password in it
 * @example
 * const { store, close } = await storePlace({ store: 'redis://db.internal', data }).open();
 */
export function storePlace({ store: url, table, data }: StoreSettings): StorePlace {
  const file =
    url === undefined ? join(data, 'tokens.db') : /^sqlite:(?:\/\/)?(.+)$/.exec(url)?.[1];
  if (url !== undefined && file === undefined) return databasePlace(url, table);
  if (table === undefined) return sqlitePlace(file ?? '');
  throw new UsageError(
    '--table (TOKENWRIGHT_TABLE) needs --store with a database: an SQLite file has one table',
  );
}

/**
 * Uses a store that is there already, and closes it: unlike the service, a command makes no file.
 *
 * @throws {InputError} when it is a file that is not there
 * @throws {TokenError} `store_unavailable` that says so where only the table is missing
 */
export async function withStore<Result>(
  place: StorePlace,
  use: (opened: OpenStore) => Promise<Result>,
): Promise<Result> {
  if (place.file !== undefined && !existsSync(place.file)) {
    throw new InputError(
      `there is no file ${place.file}: tokenwright migrate makes it, and so does serve; or give --data or --store`,
    );
  }
  const opened = await place.open();
  try {
    return await use(opened);
  } catch (error) {
    if (!isTokenError(error) || error.code !== 'store_unavailable') throw error;
    const findings = await doctor(opened.store).catch(() => []);
    const schema = findings.find(({ code }) => code.startsWith('schema_'));
    const reason = schema === undefined ? error.message : forTerminal(schema.message);
    throw new TokenError('store_unavailable', `${place.name}: ${reason}`);
  } finally {
    await opened.close();
  }
}

/**
 * Makes an SQLite file, or brings it up to date; opening does both.
 *
 * @returns whether there was no file, or an older one
 */
export async function migrateFile(
  file: string,
  place: StorePlace,
): Promise<'made' | 'updated' | 'current'> {
  const isThere = existsSync(file);
  const before = isThere ? fileVersion(file) : undefined;
  await (await place.open()).close();
  if (!isThere) return 'made';
  return before === fileVersion(file) ? 'current' : 'updated';
}

/** What the schema of an SQLite file is counted by; `undefined` where that cannot be read. */
function fileVersion(file: string): unknown {
  const sqlite = process.getBuiltinModule('node:sqlite');
  try {
    const database = new sqlite.DatabaseSync(resolve(file), { readOnly: true });
    try {
      return database.prepare('PRAGMA user_version').get()?.['user_version'];
    } finally {
      database.close();
    }
  } catch {
    return undefined;
  }
}

/** What a store says to programmers, for people at a terminal. */
export function forTerminal(message: string): string {
  return message.replace(
    /call migrate(?:\(\))?(?:, or run migrationSql\(\))?/,
    'run tokenwright migrate with the same --store and --table',
  );
}

/** The store itself advises to pass it a handle, which nobody can do from here. */
const NO_SQLITE =
  'this Node.js has no node:sqlite, which keeps tokens in a file: use Node.js 22.13 or later, or give a database by --store (TOKENWRIGHT_STORE)';

function sqlitePlace(file: string): StorePlace {
  return {
    name: `SQLite in ${file}`,
    file,
    migrationSql: async () => undefined,
    async open() {
      if (process.getBuiltinModule('node:sqlite') === undefined) {
        throw new TokenError('invalid_options', NO_SQLITE);
      }
      const { SqliteTokenStore } = await import('../stores/sqlite.ts');
      const store = SqliteTokenStore.open(file);
      return { store, close: () => store.close() };
    },
  };
}

function databasePlace(url: string, table: string | undefined): StorePlace {
  const { engine, address } = readUrl(url);
  const { hosts, database } = address;
  const at = hosts.map(({ host, port }) => (port === undefined ? host : `${host}:${port}`));
  const name = `${engine.title} at ${at.join(',')}${database === '' ? '' : `/${database}`}`;
  return {
    name,
    migrationSql: async () => engine.sql?.(table),
    async open() {
      const { connect, end, ...opened } = await engine.open(address, table);
      const close = async () => {
        await opened.store.close?.();
        // What is broken cannot be closed in order, and nothing is lost by that.
        await end().catch(() => {});
      };
      try {
        await withDeadline(connect(), ANSWER_MS);
      } catch (error) {
        await close();
        throw new TokenError('store_unavailable', `${name} cannot be used: ${reasonOf(error)}`);
      }
      return { ...opened, close };
    },
  };
}

/** So long a server may take to let us in, and so long a statement may run on it. */
const CONNECT_MS = 2000;
const STATEMENT_MS = 2000;
/** For drivers that do not count all of it. */
const ANSWER_MS = CONNECT_MS + 1000;
/** Reads of one tick share a round trip, so that few connections carry many calls. */
const POOL_SIZE = 10;
const QUEUE_SIZE = 1000;
const MAX_PAUSE_MS = 500;

interface Engine {
  readonly title: string;
  /** The form of its URL. */
  readonly form: string;
  /** What the path of its URL may be. */
  readonly database: RegExp;
  readonly hasManyHosts?: boolean;
  sql?(table: string | undefined): Promise<string>;
  open(address: Address, table: string | undefined): Promise<Opened>;
}

/** A store whose server was not talked to yet. */
interface Opened {
  readonly store: TokenStore;
  connect(): Promise<unknown>;
  migrate?(): Promise<void>;
  end(): Promise<unknown>;
}

const POSTGRES: Engine = {
  title: 'PostgreSQL',
  form: 'postgres://user:password@host:5432/database',
  database: /./,
  async sql(table) {
    const { migrationSql } = await import('../stores/postgres.ts');
    return migrationSql({ table });
  },
  async open({ url }, table) {
    const { default: pg } = await driver('pg', () => import('pg'));
    const { migrate, PostgresTokenStore } = await import('../stores/postgres.ts');
    const pool = new pg.Pool({
      connectionString: url,
      application_name: 'tokenwright',
      max: POOL_SIZE,
      connectionTimeoutMillis: CONNECT_MS,
      statement_timeout: STATEMENT_MS,
      keepAlive: true,
    });
    return {
      store: new PostgresTokenStore(pool, { table }),
      connect: async () => (await pool.connect()).release(),
      migrate: () => migrate(pool, { table }),
      end: () => pool.end(),
    };
  },
};

const MYSQL: Engine = {
  title: 'MySQL',
  form: 'mysql://user:password@host:3306/database',
  database: /./,
  async sql(table) {
    const { migrationSql } = await import('../stores/mysql.ts');
    return migrationSql({ table });
  },
  async open({ url }, table) {
    const { createPool } = await driver('mysql2', () => import('mysql2'));
    const { migrate, MysqlTokenStore } = await import('../stores/mysql.ts');
    const pool = createPool({
      uri: url,
      connectionLimit: POOL_SIZE,
      queueLimit: QUEUE_SIZE,
      connectTimeout: CONNECT_MS,
      enableKeepAlive: true,
    });
    return {
      store: new MysqlTokenStore(pool, { table }),
      async connect() {
        const connection = await pool.promise().getConnection();
        connection.release();
      },
      migrate: () => migrate(pool, { table }),
      end: () => pool.promise().end(),
    };
  },
};

/** Commands fail at once while the server is away. */
const REDIS_OPTIONS = {
  lazyConnect: true,
  connectTimeout: CONNECT_MS,
  // Above the time that a write waits for replicas.
  socketTimeout: 600,
  maxRetriesPerRequest: 1,
  keepAlive: 1000,
} as const;

/** How many replicas are waited for depends on how a server is run, and is a part of its URL. */
function redisStoreOptions(table: string | undefined, parameters: URLSearchParams) {
  const replicas = parameters.get('replicas');
  return {
    keyPrefix: table,
    replicas: replicas === null ? undefined : Number.parseInt(replicas, 10),
  };
}

const REDIS: Engine = {
  title: 'Redis',
  form: 'redis://user:password@host:6379/0',
  database: /^\d*$/,
  async open({ url, database, parameters }, table) {
    const { Redis } = await driver('ioredis', () => import('ioredis'));
    const { RedisTokenStore } = await import('../stores/redis.ts');
    const client = new Redis(url, {
      ...REDIS_OPTIONS,
      enableOfflineQueue: false,
      retryStrategy: pauseMs,
    });
    return {
      store: new RedisTokenStore(client, redisStoreOptions(table, parameters)),
      async connect() {
        await connected(client);
        // Where there is no such database, ioredis goes on with the first one.
        if (database !== '') await client.select(database);
      },
      end: async () => client.disconnect(),
    };
  },
};

const REDIS_CLUSTER: Engine = {
  title: 'Redis Cluster',
  form: 'redis+cluster://user:password@host:6379,host:6379',
  database: /^$/,
  hasManyHosts: true,
  async open({ hosts, user, password, parameters }, table) {
    const { Cluster } = await driver('ioredis', () => import('ioredis'));
    const { RedisTokenStore } = await import('../stores/redis.ts');
    const client = new Cluster(
      hosts.map(({ host, port = 6379 }) => ({ host: host.replace(/^\[|\]$/g, ''), port })),
      {
        lazyConnect: true,
        enableOfflineQueue: false,
        clusterRetryStrategy: pauseMs,
        slotsRefreshTimeout: 500,
        redisOptions: {
          ...REDIS_OPTIONS,
          ...(user !== '' && { username: user }),
          ...(password !== '' && { password }),
        },
      },
    );
    return {
      store: new RedisTokenStore(client, redisStoreOptions(table, parameters)),
      connect: () => connected(client),
      end: async () => client.disconnect(),
    };
  },
};

const ENGINES: ReadonlyMap<string | undefined, Engine> = new Map([
  ['postgres', POSTGRES],
  ['postgresql', POSTGRES],
  ['mysql', MYSQL],
  ['mariadb', { ...MYSQL, title: 'MariaDB' }],
  ['redis', REDIS],
  ['rediss', REDIS],
  ['redis+cluster', REDIS_CLUSTER],
]);

interface Address {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly hosts: readonly { readonly host: string; readonly port?: number }[];
  readonly database: string;
  readonly parameters: URLSearchParams;
}

const SETTING = '--store (TOKENWRIGHT_STORE)';
const PARTS = /^[^:]+:\/\/(?:([^/?#]*)@)?([^/?#@]*)(?:\/([^/?#@]*))?(?:\?([^#@]*))?$/;
const HOST = /^(\[[\da-f:.]+\]|[^\s:[\]]+)(?::(\d{1,5}))?$/i;

/** What could be taken for another part is refused, so that no part of a password is ever shown. */
function readUrl(url: string): { readonly engine: Engine; readonly address: Address } {
  const engine = ENGINES.get(/^([a-z+]+):\/\//.exec(url)?.[1]);
  if (engine === undefined) {
    const schemes = [...ENGINES.keys()].map((scheme) => `${scheme}://`).join(', ');
    throw new UsageError(
      `${SETTING} must begin with one of ${schemes}, sqlite:; as ${POSTGRES.form}`,
    );
  }
  const fault = (text: string) =>
    new UsageError(`${SETTING} ${text}; it must be like ${engine.form}`);
  const [, credentials = '', places, database = '', query] = PARTS.exec(url) ?? [];
  if (places === undefined || !isDecodable(url)) {
    throw fault(
      'has a character such as / ? # % in its user or password that is not percent-encoded',
    );
  }
  if (places === '') throw fault('names no host');
  const hosts = places.split(',').map(readHost);
  if (!hosts.every((host) => host !== undefined)) throw fault('names a host that cannot be');
  if (hosts.length > 1 && engine.hasManyHosts !== true) throw fault('names several hosts');
  if (!engine.database.test(database)) {
    throw fault(database === '' ? 'names no database' : 'names a database that cannot be');
  }
  const [user = '', ...password] = credentials.split(':');
  return {
    engine,
    address: {
      url,
      user: decodeURIComponent(user),
      password: decodeURIComponent(password.join(':')),
      hosts,
      database,
      parameters: new URLSearchParams(query),
    },
  };
}

function readHost(place: string): Address['hosts'][number] | undefined {
  const [, host, port] = HOST.exec(place) ?? [];
  if (host === undefined) return undefined;
  if (port === undefined) return { host };
  return Number(port) >= 1 && Number(port) <= 65_535 ? { host, port: Number(port) } : undefined;
}

function isDecodable(url: string): boolean {
  try {
    decodeURIComponent(url);
    return true;
  } catch {
    return false;
  }
}

/** Drivers are optional: only the one that a URL asks for is looked for. */
async function driver<Module>(name: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    if (!isAbsent(error, name)) throw error;
    throw new TokenError(
      'invalid_options',
      `a store of this kind needs the package ${name} beside tokenwright: npm install ${name}`,
    );
  }
}

function isAbsent(error: unknown, name: string): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false;
  return error.code === 'ERR_MODULE_NOT_FOUND' && error.message.includes(`'${name}'`);
}

function pauseMs(attempt: number): number {
  return Math.min(50 * attempt, MAX_PAUSE_MS);
}

interface RedisConnection {
  connect(): Promise<unknown>;
  on(event: 'error', listener: (error: RedisFault) => void): unknown;
}

interface RedisFault extends Error {
  /** In a cluster, what is wrong with the node that was tried last. */
  readonly lastNodeError?: Error;
}

const CLOSED = 'Connection is closed.';

/** What is wrong ioredis tells by an event; without a listener it prints it. */
async function connected(client: RedisConnection): Promise<void> {
  let reason: Error | undefined;
  client.on('error', (error) => {
    const { lastNodeError = error } = error;
    // Of a node to which there never was a connection, a cluster says no more than that.
    reason = lastNodeError.message === CLOSED ? error : lastNodeError;
  });
  try {
    await client.connect();
  } catch (error) {
    throw reason ?? error;
  }
}

const WRONG_PASSWORD =
  'the user or the password is wrong: correct them in the URL, with / ? # % in them percent-encoded';
const NO_PASSWORD = 'it wants a password: write it into the URL, user:password@ before the host';
const NO_DATABASE = 'there is no such database: create it, or correct its name in the URL';
const NO_RIGHT =
  'this user may not use the database, if there is one of that name: grant it, or correct the URL';
const NOT_FROM_HERE =
  'it lets nobody in from this machine: allow it there, or give it a password where it has none';
const TOO_MANY =
  'it has too many clients: end some, or let it have more; each service takes up to ten';
const SILENT =
  'it does not answer: a firewall may be between, another kind of server may listen there, or it is too busy';
const HUNG_UP = 'it hangs up: another kind of server may listen there, or it wants TLS';
const NO_ROUTE = 'no way leads to this host: look at the network, and at the host in the URL';
const NO_TLS = 'it speaks no TLS: correct the URL, or turn TLS on in the server';

/** What is wrong, and what to do, by the code of a driver, or by how its message begins. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'nothing listens there: start the server, or correct host and port in the URL'],
  ['ENOTFOUND', 'there is no host of that name: correct it in the URL'],
  ['EAI_AGAIN', 'the name of the host cannot be looked up now: look at the network, or try again'],
  ['EHOSTUNREACH', NO_ROUTE],
  ['ENETUNREACH', NO_ROUTE],
  ['ETIMEDOUT', SILENT],
  ['ECONNRESET', HUNG_UP],
  ['28P01', WRONG_PASSWORD],
  ['SASL: SCRAM-SERVER-FIRST-MESSAGE: client password', NO_PASSWORD],
  [
    '28000',
    'it does not let this user in: create the role, or allow it in pg_hba.conf; it may want TLS',
  ],
  ['3D000', NO_DATABASE],
  ['42501', NO_RIGHT],
  ['53300', TOO_MANY],
  ['57P03', 'it is starting or stopping: try again'],
  ['timeout', SILENT],
  ['Connection terminated due to connection timeout', SILENT],
  ['Connection terminated unexpectedly', HUNG_UP],
  ['The server does not support SSL connections', NO_TLS],
  ['ER_ACCESS_DENIED_ERROR', WRONG_PASSWORD],
  ['ER_DBACCESS_DENIED_ERROR', NO_RIGHT],
  ['ER_BAD_DB_ERROR', NO_DATABASE],
  ['ER_HOST_NOT_PRIVILEGED', NOT_FROM_HERE],
  ['ER_CON_COUNT_ERROR', TOO_MANY],
  ['PROTOCOL_CONNECTION_LOST', HUNG_UP],
  ['HANDSHAKE_NO_SSL_SUPPORT', NO_TLS],
  ['WRONGPASS', WRONG_PASSWORD],
  ['NOAUTH', NO_PASSWORD],
  ['NOPERM', 'this user may not do what is needed: allow it all keys, channels and commands'],
  ['DENIED', NOT_FROM_HERE],
  [CLOSED, HUNG_UP],
  ['Socket timeout', SILENT],
  [
    'Failed to refresh slots cache',
    'nothing listens there, or it hangs up: start the servers, or correct hosts and ports in the URL',
  ],
  [
    'ERR DB',
    'there is no database of that number: correct it at the end of the URL, 0 to 15 unless the server has more',
  ],
  ['ERR max', TOO_MANY],
  ['ERR This', 'it is not a cluster: begin the URL with redis://'],
]);

const UNKNOWN_REASON = 'it is away, does not answer, or wants TLS otherwise than the URL says';

/** Never in the words of the driver. */
function reasonOf(error: unknown): string {
  const code = codeOf(error);
  return REASONS.get(code) ?? (code === '' ? UNKNOWN_REASON : `it says ${code}`);
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error) return String(error.code);
  const known = [...REASONS.keys()].find((beginning) => error.message.startsWith(beginning));
  // Redis has its codes in front of the message.
  return known ?? /^(?:ERR \w+|[A-Z]{4,})\b/.exec(error.message)?.[0] ?? '';
}
