import { TokenError } from '../../errors.ts';
import type { LeaseStore } from '../../ports/lease-store.ts';
import type { RequestStore } from '../../ports/request-store.ts';
import type { UsageStore } from '../../ports/usage-store.ts';
import { withDeadline } from '../../time/deadline.ts';
import { connectionMessage, poolGiven } from '../shared/orm.ts';
import type { RowReader } from '../shared/rows.ts';
import { failedTransaction } from '../shared/transaction.ts';
import {
  type Cells,
  type Counts,
  FORM,
  isStandby,
  type MysqlPool,
  SERVER_STATE,
  type Sender,
  type Session,
  type Standby,
  standbyError,
  toTokenError,
  UNCAST,
} from './client.ts';
import type { Tables } from './schema.ts';
import type { MysqlValue } from './statement.ts';
import type { Statements } from './statements.ts';

/** What a store on a pool shares with those in transactions. */
export interface StoreParts {
  /** On the pool. */
  readonly session: Session;
  readonly standby: Standby;
  readonly pollMs: number;
  readonly tables: Tables;
  readonly sql: Statements;
  readonly rows: RowReader;
  readonly usage: UsageStore;
  readonly leases: LeaseStore;
  readonly requests: RequestStore;
}

/** A connection of `mysql2` on which the host has begun a transaction. */
export type MysqlTransactionConnection = Sender;

/**
 * A connection of `mysql2/promise`, which wraps one of `mysql2`, or what {@link fromDrizzle} and
 * {@link fromKysely} make of the transaction of an ORM.
 */
export interface MysqlPromiseConnection {
  /** Any object, because the types of mysql2 are wrong: they say that it is a wrapped connection, too. */
  readonly connection: object;
}

/** A connection of mysql2, with the setting that the store reads and never writes. */
interface ConfiguredConnection extends MysqlTransactionConnection {
  readonly config?: { readonly typeCast?: unknown };
}

/** The connection of a transaction of the host. */
export class Transaction {
  readonly connection: ConfiguredConnection;
  /** Of the store that it belongs to. */
  readonly parts: StoreParts;

  /** @throws {TokenError} `invalid_options` */
  constructor(given: MysqlTransactionConnection | MysqlPromiseConnection, parts: StoreParts) {
    // A callback connection from a pool has a member `connection`, too.
    const isCallback = typeof (given as { promise?: unknown })?.promise === 'function';
    if (typeof (given as Partial<MysqlPool> | undefined)?.getConnection === 'function') {
      const promises = isCallback ? 'pool.promise()' : 'pool';
      throw poolGiven(`const connection = await ${promises}.getConnection()`);
    }
    const wrapped = (given as Partial<MysqlPromiseConnection> | undefined)?.connection as
      | MysqlTransactionConnection
      | undefined;
    const connection = isCallback ? (given as MysqlTransactionConnection) : wrapped;
    if (typeof connection?.execute !== 'function') {
      const expected = 'what getConnection() of mysql2 gives';
      throw new TokenError('invalid_options', connectionMessage(expected, given));
    }
    this.connection = connection;
    this.parts = parts;
  }
}

/**
 * Runs statements in a transaction of the host. Nothing is retried, and after a statement that failed
 * everything is refused: a deadlock ends the transaction, and later statements would commit alone.
 */
export class TransactionSession {
  readonly deadlineMs: number;
  readonly connectTimeoutMs = undefined;
  readonly #session: Session;
  readonly #connection: ConfiguredConnection;
  readonly #standby: Standby;
  #isPrimary = false;
  #hasFailed = false;

  constructor({ connection, parts: { session, standby } }: Transaction) {
    this.deadlineMs = session.deadlineMs;
    this.#session = session;
    this.#connection = connection;
    this.#standby = standby;
    this.#isPrimary = standby === 'allow';
  }

  /** Runs a read whose last row is {@link SERVER_STATE}; rejects with a `TokenError`. */
  async read(sql: string, values: MysqlValue[]): Promise<Cells[]> {
    const rows = (await this.#run(sql, values)) as Cells[];
    this.#checkState(rows.pop());
    return rows;
  }

  /** Runs a write; rejects with a `TokenError`. */
  async write(sql: string, values: MysqlValue[]): Promise<Counts> {
    if (!this.#isPrimary) this.#checkState(((await this.#run(STATE, [])) as Cells[])[0]);
    return (await this.#run(sql, values)) as Counts;
  }

  /** A transaction neither listens nor looks at the server. */
  async poll(): Promise<never> {
    throw failedTransaction();
  }

  /** Rejects, too. */
  async query(): Promise<never> {
    throw failedTransaction();
  }

  #checkState(state: Cells = []): void {
    if (this.#standby === 'refuse' && isStandby(state)) throw standbyError();
    this.#isPrimary = true;
  }

  async #run(sql: string, values: MysqlValue[]): Promise<unknown> {
    if (this.#hasFailed) throw failedTransaction();
    const { typeCast } = this.#connection.config ?? {};
    const form = typeof typeCast === 'function' ? UNCAST : FORM;
    const answer = new Promise((resolve, reject) => {
      this.#session.send(this.#connection, { ...form, sql, values }, (error, rows) =>
        error ? reject(error) : resolve(rows),
      );
    });
    try {
      return await withDeadline(answer, this.deadlineMs);
    } catch (error) {
      const failure = toTokenError(error);
      // A taken id neither ends the transaction nor undoes earlier statements.
      this.#hasFailed = failure.code !== 'id_taken';
      throw failure;
    }
  }
}

const STATE = `SELECT ${SERVER_STATE}`;
