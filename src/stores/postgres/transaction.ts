import { TokenError } from '../../errors.ts';
import type { LeaseStore } from '../../ports/lease-store.ts';
import type { RequestStore } from '../../ports/request-store.ts';
import type { UsageStore } from '../../ports/usage-store.ts';
import { withDeadline } from '../../time/deadline.ts';
import { connectionMessage, poolGiven } from '../shared/orm.ts';
import type { RowReader } from '../shared/rows.ts';
import { failedTransaction } from '../shared/transaction.ts';
import { type PostgresPool, type PostgresQuery, type Session, unavailable } from './client.ts';
import { payloadsOf } from './hints.ts';
import type { Tables } from './schema.ts';
import { dialectOf } from './shape.ts';
import type { Statements } from './statements.ts';

/**
 * A connection of the host in a transaction: a `Client` or `PoolClient` of `pg`, or what {@link fromDrizzle},
 * {@link fromKysely}, {@link fromPostgresJs} and {@link fromPrisma} make of the transaction of an ORM. For another
 * library, write an object whose `query` passes the text and the values on.
 */
export interface PostgresConnection {
  /** Runs a statement. Only its `text` and `values` matter to the result. */
  query(query: PostgresQuery): Promise<{ readonly rows: readonly unknown[] }>;
}

/** What a store on a pool shares with those in transactions. */
export interface StoreParts {
  /** On the pool. */
  readonly session: Session;
  readonly tables: Tables;
  readonly statements: Statements;
  readonly rows: RowReader;
  readonly usage: UsageStore;
  readonly leases: LeaseStore;
  readonly requests: RequestStore;
  /** Whether the server knows notifications; undefined until a transaction has asked. */
  canNotify?: boolean;
}

/** One connection in the shape of a pool. Refuses everything after a statement that failed. */
export class Transaction implements PostgresPool {
  readonly idleCount = 0;
  readonly ending = false;
  readonly options = { max: 1 };
  /** Of the store that it belongs to. */
  readonly parts: StoreParts;
  readonly #connection: PostgresConnection;
  #hasFailed = false;

  /** @throws {TokenError} `invalid_options` */
  constructor(connection: PostgresConnection, parts: StoreParts) {
    if (typeof connection?.query !== 'function') {
      const expected = 'a client of pg, or an object with query()';
      throw new TokenError('invalid_options', connectionMessage(expected, connection));
    }
    if (typeof (connection as Partial<PostgresPool>).idleCount === 'number') {
      throw poolGiven('const client = await pool.connect()');
    }
    this.#connection = connection;
    this.parts = parts;
  }

  async query(query: PostgresQuery): Promise<{ readonly rows: readonly unknown[] }> {
    if (this.#hasFailed) throw failedTransaction();
    try {
      return await withDeadline(this.#connection.query(query), this.parts.session.deadlineMs);
    } catch (error) {
      this.#hasFailed = true;
      // Translated here, so that nothing repeats the statement.
      throw unavailable(error);
    }
  }

  async connect(): Promise<never> {
    throw failedTransaction();
  }

  on(): void {}

  listenerCount(): number {
    return 1;
  }

  /**
   * Notifies in the transaction, so that listeners are notified after the commit, and not after a
   * rollback. {@link Hints} turns off the wait for the disk, which here would concern the whole
   * transaction. A refused statement would end it, so others than PostgreSQL are not asked to notify.
   */
  async notify(channel: string, ids: readonly string[]): Promise<void> {
    this.parts.canNotify ??= await this.#isPostgres();
    if (!this.parts.canNotify) return;
    for (const payload of payloadsOf(ids)) {
      await this.query({ text: 'SELECT pg_notify($1, $2)::text', values: [channel, payload] });
    }
  }

  async #isPostgres(): Promise<boolean> {
    const [row] = (await this.query({ text: 'SELECT version() AS version' })).rows;
    return dialectOf((row as { readonly version: string }).version) === 'postgres';
  }
}
