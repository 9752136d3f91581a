import {
  type DrizzleTransaction,
  type KyselyTransaction,
  runOnDrizzle,
  runOnKysely,
} from '../shared/orm.ts';
import type { MysqlCallback } from './client.ts';
import { type MysqlStatement, withLiterals } from './statement.ts';
import type { MysqlPromiseConnection } from './transaction.ts';

/**
 * A connection for `in` from a transaction of Drizzle on `drizzle-orm/mysql2`.
 *
 * @throws {TokenError} `invalid_options` if it is not a transaction
 * @example
 * await db.transaction(async (tx) => {
 *   await tx.insert(users).values({ name: 'ada' });
 *   await tokens.in(fromDrizzle(tx)).issue({ account: 'ada', scopes });
 * });
 */
export function fromDrizzle(tx: DrizzleTransaction): MysqlPromiseConnection {
  const run = runOnDrizzle(tx);
  // mysql2 answers with the rows or counts, and with what it knows of the columns.
  return connectionOf(async (sql) => ((await run(sql, [])) as readonly unknown[])[0]);
}

/**
 * A connection for `in` from a transaction of Kysely on `mysql2`. The plugins of Kysely do not see what the store
 * reads.
 *
 * @throws {TokenError} `invalid_options` if it is not a transaction
 * @example
 * await db.transaction().execute(async (trx) => {
 *   await trx.insertInto('users').values({ name: 'ada' }).execute();
 *   await tokens.in(fromKysely(trx)).issue({ account: 'ada', scopes });
 * });
 */
export function fromKysely(trx: KyselyTransaction): MysqlPromiseConnection {
  const run = runOnKysely(trx);
  return connectionOf(async (sql) => {
    const { rows, numAffectedRows } = await run(sql, []);
    return numAffectedRows === undefined ? rows : { affectedRows: Number(numAffectedRows) };
  });
}

/**
 * A connection as mysql2 has it, of which the store in a transaction uses two methods. Here they are the same, and
 * an ORM gets no values: each would write them into the text in its own way.
 */
function connectionOf(run: (sql: string) => Promise<unknown>): MysqlPromiseConnection {
  const send = (statement: MysqlStatement, callback: MysqlCallback): void => {
    run(withLiterals(statement).sql).then(
      (answer) => callback(undefined, Array.isArray(answer) ? answer.map(cellsOf) : answer),
      (error) => callback(driverError(error), undefined),
    );
  };
  return { connection: { execute: send, query: send } };
}

/** ORMs ask for rows as objects, unless the host has set arrays. */
function cellsOf(row: object): readonly unknown[] {
  return Array.isArray(row) ? row : Object.values(row);
}

/** Drizzle has the error of the driver as the cause. */
function driverError(error: unknown): unknown {
  const { cause } = (error ?? {}) as { readonly cause?: unknown };
  return cause instanceof Error ? cause : error;
}
