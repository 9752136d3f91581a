// Pools of a host on PostgreSQL and MariaDB, for tests of what both stores promise.
import { randomBytes } from 'node:crypto';
import { createPool, type Pool as MysqlDriverPool, type PoolOptions } from 'mysql2';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import type { TokenStore } from '../../src/ports/token-store.ts';
import type { MysqlConnection } from '../../src/stores/mysql/client.ts';
import * as mysql from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';

const urls = inject('servers');

export type Row = Readonly<Record<string, unknown>>;

/** A pool of a host that records the statements of a store. */
export interface DatabaseHost {
  run(sql: string): Promise<readonly Row[]>;
  /** Begins a transaction. */
  begin(): Promise<HostTransaction>;
  /** How many bytes of rows a store has received so far. */
  bytesRead(): number;
  /** The statements that were sent, and how many of them were aborted to end a deadlock. */
  readonly sent: string[];
  readonly deadlocks: () => number;
  /** Lets the store learn only then that one of them was aborted, so that it does not try again before. */
  delayDeadlocks(until: Promise<unknown>): void;
  /** A host whose user has only these privileges on the tables. */
  restricted(rights: string, ...tables: readonly string[]): Promise<DatabaseHost>;
  store(tables: string, options?: StoreOptions): SqlStore;
  migrate(tables?: string): Promise<void>;
  migrationSql(tables: string): string;
  end(): Promise<unknown>;
  /** How a driver logs in as the same user. */
  readonly login: { readonly url: string; readonly options?: string };
}

interface StoreOptions {
  readonly deadlineMs?: number;
  /** Only of PostgreSQL. */
  readonly prepare?: boolean;
}

/** A store of PostgreSQL or MySQL. */
export type SqlStore = EngineStore &
  Required<Pick<TokenStore, 'scan' | 'watch' | 'doctor' | 'hasReached'>>;

/** A database and its hosts. */
export interface SqlEngine {
  readonly name: 'PostgreSQL' | 'MariaDB';
  readonly url: string | undefined;
  host(settings?: HostSettings): DatabaseHost;
  /** The SQL that sets the comment of a table. */
  comment(table: string, text: string | null): string;
  quoted(name: string): string;
  /** What the name of a schema belongs to. */
  readonly schema: 'SCHEMA' | 'DATABASE';
}

export const SQL_ENGINES: readonly SqlEngine[] = [
  {
    name: 'PostgreSQL',
    url: urls.postgres,
    host: postgresHost,
    comment: (table, text) =>
      `COMMENT ON TABLE ${table} IS ${text === null ? 'NULL' : `'${text}'`}`,
    quoted: (name) => `"${name}"`,
    schema: 'SCHEMA',
  },
  {
    name: 'MariaDB',
    url: urls.mariadb,
    host: mariadbHost,
    comment: (table, text) => `ALTER TABLE ${table} COMMENT = '${text ?? ''}'`,
    quoted: (name) => `\`${name}\``,
    schema: 'DATABASE',
  },
];

export const PARTS = ['tokens', 'usage', 'leases', 'requests'] as const;

/** The beginning of the names of tables that are dropped at the end of the test. */
export function newTables(host: DatabaseHost): string {
  const tables = newName();
  onTestFinished(async () => {
    for (const part of PARTS) await host.run(`DROP TABLE IF EXISTS ${tables}_${part}`);
  });
  return tables;
}

export interface HostTransaction {
  run(sql: string): Promise<unknown>;
  /** Commits, or rolls back if a statement has failed. */
  end(): Promise<void>;
}

/** Settings of each connection. */
export interface HostSettings {
  readonly isolation?: string;
  readonly isReadOnly?: boolean;
  /** Whether it has unusual settings that must not affect a store. */
  readonly isContrary?: boolean;
  /** The URL of another server, or of none. */
  readonly url?: string;
  /** How many connections it has at most. */
  readonly connections?: number;
  /** The schema, or the database of MariaDB, whose tables need no qualified name. */
  readonly schema?: string;
}

/** The name of a new table, user or role. */
export function newName(): string {
  return `side_${randomBytes(8).toString('hex')}`;
}

/** Long, because 100 concurrent writes of one row are slow under a strict isolation. */
const CONNECT_MS = 20_000;

function postgresHost(settings: HostSettings = {}): DatabaseHost {
  const { isolation, isReadOnly = false, isContrary = false, url, connections, schema } = settings;
  const parameters = [
    ...(isolation ? [`default_transaction_isolation=${isolation.replace(' ', '\\ ')}`] : []),
    ...(isReadOnly ? ['default_transaction_read_only=on'] : []),
    ...(isContrary ? ['synchronous_commit=off'] : []),
    ...(schema ? [`search_path="${schema}"`] : []),
  ];
  const options = parameters.map((parameter) => `-c ${parameter}`).join(' ');
  return overPostgres(
    {
      options,
      ...(url !== undefined && { connectionString: url }),
      ...(connections !== undefined && { max: connections }),
      ...(isContrary && { types: { getTypeParser: parserOf } }),
    },
    !isContrary,
  );
}

/** A host that can read only texts: every other type is unreadable. */
function parserOf(type: number): (text: string) => string {
  return type === pg.types.builtins.TEXT ? (text) => text : () => 'unreadable';
}

function overPostgres(config: pg.PoolConfig, prepare = true): DatabaseHost {
  const pool = new pg.Pool({
    connectionString: urls.postgres,
    connectionTimeoutMillis: CONNECT_MS,
    ...config,
  });
  pool.on('error', () => {});
  const end = async () => pool.ended || pool.end();
  onTestFinished(async () => void (await end()));
  const sent: string[] = [];
  let deadlocks = 0;
  let bytes = 0;
  let told: Promise<unknown> = Promise.resolve();
  const query = pool.query.bind(pool) as (text: string) => Promise<pg.QueryResult>;
  const spy = async (statement: { text: string }) => {
    sent.push(statement.text);
    try {
      const answer = await query(statement as never);
      bytes += JSON.stringify(answer.rows).length;
      return answer;
    } catch (error) {
      if ((error as { code?: string }).code === '40P01') {
        deadlocks += 1;
        await told;
      }
      throw error;
    }
  };
  Object.assign(pool, { query: spy });
  return {
    run: async (sql) => (await query(sql)).rows,
    async begin() {
      const client = await pool.connect();
      await client.query('BEGIN');
      return {
        run: (sql) => client.query(sql),
        async end() {
          await client.query('COMMIT');
          client.release();
        },
      };
    },
    bytesRead: () => bytes,
    sent,
    deadlocks: () => deadlocks,
    delayDeadlocks(until) {
      told = until;
    },
    async restricted(rights, ...tables) {
      const role = newName();
      await query(`CREATE ROLE ${role}`);
      for (const table of tables) await query(`GRANT ${rights} ON ${table} TO ${role}`);
      onTestFinished(async () => void (await query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)));
      return overPostgres({ options: `-c role=${role}` });
    },
    store: (tables, options = {}) =>
      new postgres.PostgresTokenStore(pool, { tables, prepare, ...options }),
    migrate: (tables) => postgres.migrate(pool, { tables }),
    migrationSql: (tables) => postgres.migrationSql({ tables }),
    end,
    login: { url: urls.postgres as string, options: config.options ?? '' },
  };
}

/** Settings that a host may have chosen for its own queries and that must not affect a store. */
export const CONTRARY_OPTIONS: PoolOptions = {
  charset: 'latin1_swedish_ci',
  flags: ['-FOUND_ROWS'],
  rowsAsArray: true,
  nestTables: '_',
  supportBigNumbers: true,
  bigNumberStrings: true,
  dateStrings: true,
  namedPlaceholders: true,
  typeCast: (field) => field.string('latin1'),
  timezone: '-03:00',
};

function mariadbHost(settings: HostSettings = {}): DatabaseHost {
  const { isolation, isReadOnly = false, isContrary = false, url, connections, schema } = settings;
  const pool = createPool({
    uri: url ?? (urls.mariadb as string),
    ...(connections !== undefined && { connectionLimit: connections }),
    ...(schema !== undefined && { database: schema }),
    ...(isContrary && CONTRARY_OPTIONS),
  });
  pool.on('connection', (connection) => {
    if (isolation) connection.query(`SET SESSION tx_isolation = '${isolation.replace(' ', '-')}'`);
    if (isReadOnly) connection.query('SET SESSION TRANSACTION READ ONLY');
    if (isContrary) {
      connection.query(`SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE,SIMULTANEOUS_ASSIGNMENT',
        time_zone = '+05:45', group_concat_max_len = 4, innodb_lock_wait_timeout = 20`);
    }
  });
  return overMariadb(pool);
}

function overMariadb(pool: MysqlDriverPool, url = urls.mariadb as string): DatabaseHost {
  const end = () => pool.promise().end();
  onTestFinished(end);
  const sent: string[] = [];
  let deadlocks = 0;
  let bytes = 0;
  let told: Promise<unknown> = Promise.resolve();
  pool.on('connection', (connection) => {
    const own = connection as unknown as MysqlConnection;
    const execute = own.execute.bind(own);
    own.execute = (statement, callback) => {
      sent.push(statement.sql);
      return execute(statement, (error, answer) => {
        bytes += String(answer).length;
        if ((error as { errno?: number } | null)?.errno !== 1213) return callback(error, answer);
        deadlocks += 1;
        void told.then(() => callback(error, answer));
      });
    };
  });
  const run = async (sql: string) => (await pool.promise().query(sql))[0] as unknown as Row[];
  return {
    run,
    async begin() {
      const connection = await pool.promise().getConnection();
      await connection.beginTransaction();
      return {
        run: (sql) => connection.query(sql),
        async end() {
          await connection.commit();
          connection.release();
        },
      };
    },
    bytesRead: () => bytes,
    sent,
    deadlocks: () => deadlocks,
    delayDeadlocks(until) {
      told = until;
    },
    async restricted(rights, ...tables) {
      const user = newName().slice(0, 30);
      await run(`CREATE USER ${user}@'127.0.0.1'`);
      onTestFinished(async () => void (await run(`DROP USER ${user}@'127.0.0.1'`)));
      for (const table of tables) await run(`GRANT ${rights} ON ${table} TO ${user}@'127.0.0.1'`);
      const own = new URL(url);
      own.username = user;
      return overMariadb(createPool({ uri: own.href }), own.href);
    },
    store: (tables, options = {}) => new mysql.MysqlTokenStore(pool, { tables, ...options }),
    migrate: (tables) => mysql.migrate(pool, { tables }),
    migrationSql: (tables) => mysql.migrationSql({ tables }),
    end,
    login: { url },
  };
}
