// Transactions of ORMs, begun and ended from outside of their callbacks.
import { drizzle as drizzleOnMysql } from 'drizzle-orm/mysql2';
import { drizzle as drizzleOnPg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzleOnPostgresJs } from 'drizzle-orm/postgres-js';
import {
  CamelCasePlugin,
  Kysely,
  MysqlDialect,
  ParseJSONResultsPlugin,
  PostgresDialect,
} from 'kysely';
import mysqlCallback from 'mysql2';
import mysql from 'mysql2/promise';
import pg from 'pg';
import postgresJs from 'postgres';
import * as onMysql from '../../src/stores/mysql/index.ts';
import * as onPostgres from '../../src/stores/postgres/index.ts';

/** A transaction of an ORM, and the connection that a helper makes of it. */
export interface Begun<Connection> {
  readonly tx: object;
  readonly connection: Connection;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** An ORM with connections of its own. */
export interface Orm<Connection> {
  readonly helper: string;
  begin(): Promise<Begun<Connection>>;
  /** Calls the helper with what is not a transaction. */
  misuse(): unknown;
  end(): Promise<unknown>;
}

/** Begins a transaction of a library that takes a callback. */
export async function begun<Tx extends object, Connection>(
  transact: (work: (tx: Tx) => Promise<void>) => Promise<unknown>,
  connect: (tx: Tx) => Connection,
): Promise<Begun<Connection>> {
  const opened = Promise.withResolvers<Tx>();
  const ended = Promise.withResolvers<void>();
  const done = transact((tx) => {
    opened.resolve(tx);
    return ended.promise;
  });
  done.catch(opened.reject);
  const tx = await opened.promise;
  return {
    tx,
    connection: connect(tx),
    async commit() {
      ended.resolve();
      await done;
    },
    async rollback() {
      ended.reject(new Error('rolled back'));
      await done.catch(() => {});
    },
  };
}

/** Plugins that would change what the store reads. */
const PLUGINS = [new CamelCasePlugin(), new ParseJSONResultsPlugin()];

export type PostgresOrm = Orm<onPostgres.PostgresConnection>;

export const POSTGRES_ORMS: Readonly<Record<string, (url: string) => PostgresOrm>> = {
  Drizzle(url) {
    const pool = new pg.Pool({ connectionString: url });
    const db = drizzleOnPg(pool);
    // It reports a connection that was cut to whoever listens.
    pool.on('error', () => {}).on('connect', (client) => client.on('error', () => {}));
    return {
      helper: 'fromDrizzle',
      begin: () => begun((work) => db.transaction(work), onPostgres.fromDrizzle),
      // @ts-expect-error: not a transaction
      misuse: () => onPostgres.fromDrizzle(db),
      end: () => pool.end(),
    };
  },
  'Drizzle on postgres.js'(url) {
    const sql = postgresJs(url);
    const db = drizzleOnPostgresJs(sql);
    return {
      helper: 'fromDrizzle',
      begin: () => begun((work) => db.transaction(work), onPostgres.fromDrizzle),
      // @ts-expect-error: not a transaction
      misuse: () => onPostgres.fromDrizzle(db),
      end: () => sql.end(),
    };
  },
  Kysely(url) {
    const pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => {}).on('connect', (client) => client.on('error', () => {}));
    const db = new Kysely<object>({ dialect: new PostgresDialect({ pool }), plugins: PLUGINS });
    return {
      helper: 'fromKysely',
      begin: () => begun((work) => db.transaction().execute(work), onPostgres.fromKysely),
      // @ts-expect-error: not a transaction
      misuse: () => onPostgres.fromKysely(db),
      end: () => db.destroy(),
    };
  },
  'postgres.js'(url) {
    const sql = postgresJs(url, { transform: postgresJs.camel });
    return {
      helper: 'fromPostgresJs',
      begin: () => begun((work) => sql.begin(work), onPostgres.fromPostgresJs),
      // @ts-expect-error: not a transaction
      misuse: () => onPostgres.fromPostgresJs(sql),
      end: () => sql.end(),
    };
  },
};

export type MysqlOrm = Orm<ReturnType<typeof onMysql.fromDrizzle>>;

export const MYSQL_ORMS: Readonly<Record<string, (url: string) => MysqlOrm>> = {
  Drizzle(url) {
    const pool = mysql.createPool(url);
    const db = drizzleOnMysql(pool);
    return {
      helper: 'fromDrizzle',
      begin: () => begun((work) => db.transaction(work), onMysql.fromDrizzle),
      // @ts-expect-error: not a transaction
      misuse: () => onMysql.fromDrizzle(db),
      end: () => pool.end(),
    };
  },
  Kysely(url) {
    const pool = mysqlCallback.createPool(url);
    const db = new Kysely<object>({ dialect: new MysqlDialect({ pool }), plugins: PLUGINS });
    return {
      helper: 'fromKysely',
      begin: () => begun((work) => db.transaction().execute(work), onMysql.fromKysely),
      // @ts-expect-error: not a transaction
      misuse: () => onMysql.fromKysely(db),
      end: () => db.destroy(),
    };
  },
};
