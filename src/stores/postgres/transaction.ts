import { TokenError } from '../../errors.ts';
import type { LeaseStore } from '../../ports/lease-store.ts';
import type { UsageStore } from '../../ports/usage-store.ts';
import type { RowReader } from '../shared/rows.ts';
import { failedTransaction } from '../shared/transaction.ts';
import type { PostgresPool, PostgresQuery, Session } from './client.ts';
import { payloadsOf } from './hints.ts';
import type { Tables } from './schema.ts';
import type { Statements } from './statements.ts';

/**
 * A connection of the host in a transaction: a `Client` or `PoolClient` of `pg`, or an object that
 * passes the statement to another library, such as
 * `{ query: async ({ text, values = [] }) => ({ rows: await sql.unsafe(text, values) }) }` for postgres.js.
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
      throw new TokenError(
        'invalid_options',
        'in() takes a connection with an open transaction: a client of pg, or an object with query()',
      );
    }
    this.#connection = connection;
    this.parts = parts;
  }

  async query(query: PostgresQuery): Promise<{ readonly rows: readonly unknown[] }> {
    if (this.#hasFailed) throw failedTransaction();
    try {
      return await this.#connection.query(query);
    } catch (error) {
      this.#hasFailed = true;
      throw error;
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
   * transaction.
   */
  async notify(channel: string, ids: readonly string[]): Promise<void> {
    for (const payload of payloadsOf(ids)) {
      await this.query({ text: 'SELECT pg_notify($1, $2)::text', values: [channel, payload] });
    }
  }
}
