// Pools of a host, for tests of the lease stores and the usage stores.
import { randomBytes } from 'node:crypto';
import { createPool, type Pool as MysqlDriverPool, type PoolOptions } from 'mysql2';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import * as mysql from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';

const urls = inject('servers');

export type Row = Readonly<Record<string, unknown>>;

/** A pool of a host that records the statements of a store. */
export interface DatabaseHost<Pool> {
  readonly pool: Pool;
  run(sql: string): Promise<readonly Row[]>;
  /** Begins a transaction. */
  begin(): Promise<HostTransaction>;
  /** Creates a table for tokens. */
  tokenTable(table: string): Promise<void>;
  /** The statements that were sent, and how many of them were aborted to end a deadlock. */
  readonly sent: string[];
  readonly deadlocks: () => number;
  /** Lets the store learn only then that one of them was aborted, so that it does not try again before. */
  delayDeadlocks(until: Promise<unknown>): void;
  /** A host whose user has only these privileges on the table. */
  restricted(table: string, rights: string): Promise<DatabaseHost<Pool>>;
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
}

/** The name of a new table, user or role. */
export function newName(): string {
  return `side_${randomBytes(8).toString('hex')}`;
}

/** Long, because 100 concurrent writes of one row are slow under a strict isolation. */
const CONNECT_MS = 20_000;

export function postgresHost(settings: HostSettings = {}): DatabaseHost<pg.Pool> {
  const { isolation, isReadOnly = false, isContrary = false } = settings;
  const parameters = [
    ...(isolation ? [`default_transaction_isolation=${isolation.replace(' ', '\\ ')}`] : []),
    ...(isReadOnly ? ['default_transaction_read_only=on'] : []),
    ...(isContrary ? ['synchronous_commit=off'] : []),
  ];
  const options = parameters.map((parameter) => `-c ${parameter}`).join(' ');
  return overPostgres({ options, ...(isContrary && { types: { getTypeParser: parserOf } }) });
}

/** A host that can read only texts: every other type is unreadable. */
function parserOf(type: number): (text: string) => string {
  return type === pg.types.builtins.TEXT ? (text) => text : () => 'unreadable';
}

function overPostgres(options: object): DatabaseHost<pg.Pool> {
  const pool = new pg.Pool({
    connectionString: urls.postgres,
    connectionTimeoutMillis: CONNECT_MS,
    ...options,
  });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  const sent: string[] = [];
  let deadlocks = 0;
  let told: Promise<unknown> = Promise.resolve();
  const query = pool.query.bind(pool) as (text: string) => Promise<pg.QueryResult>;
  const spy = async (statement: { text: string }) => {
    sent.push(statement.text);
    try {
      return await query(statement as never);
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
    pool,
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
    tokenTable: (table) => postgres.migrate(pool, { table }),
    sent,
    deadlocks: () => deadlocks,
    delayDeadlocks(until) {
      told = until;
    },
    async restricted(table, rights) {
      const role = newName();
      await query(`CREATE ROLE ${role}; GRANT ${rights} ON ${table} TO ${role}`);
      onTestFinished(async () => void (await query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)));
      return overPostgres({ options: `-c role=${role}` });
    },
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

export function mariadbHost(settings: HostSettings = {}): DatabaseHost<MysqlDriverPool> {
  const { isolation, isReadOnly = false, isContrary = false } = settings;
  const pool = createPool({ uri: urls.mariadb as string, ...(isContrary && CONTRARY_OPTIONS) });
  pool.on('connection', (connection) => {
    if (isolation) connection.query(`SET SESSION tx_isolation = '${isolation.replace(' ', '-')}'`);
    if (isReadOnly) connection.query('SET SESSION TRANSACTION READ ONLY');
    if (isContrary) {
      connection.query(`SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,SIMULTANEOUS_ASSIGNMENT',
        time_zone = '+05:45', innodb_lock_wait_timeout = 20`);
    }
  });
  return overMariadb(pool);
}

function overMariadb(pool: MysqlDriverPool): DatabaseHost<MysqlDriverPool> {
  onTestFinished(() => pool.promise().end());
  const sent: string[] = [];
  let deadlocks = 0;
  let told: Promise<unknown> = Promise.resolve();
  pool.on('connection', (connection) => {
    const own = connection as unknown as mysql.MysqlConnection;
    const execute = own.execute.bind(own);
    own.execute = (statement, callback) => {
      sent.push(statement.sql);
      return execute(statement, (error, answer) => {
        if ((error as { errno?: number } | null)?.errno !== 1213) return callback(error, answer);
        deadlocks += 1;
        void told.then(() => callback(error, answer));
      });
    };
  });
  const run = async (sql: string) => (await pool.promise().query(sql))[0] as unknown as Row[];
  return {
    pool,
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
    tokenTable: (table) => mysql.migrate(pool, { table }),
    sent,
    deadlocks: () => deadlocks,
    delayDeadlocks(until) {
      told = until;
    },
    async restricted(table, rights) {
      const user = newName();
      await run(`CREATE USER ${user}@'127.0.0.1'`);
      onTestFinished(async () => void (await run(`DROP USER ${user}@'127.0.0.1'`)));
      await run(`GRANT ${rights} ON ${table} TO ${user}@'127.0.0.1'`);
      const url = new URL(urls.mariadb as string);
      url.username = user;
      return overMariadb(createPool({ uri: url.href }));
    },
  };
}
