import { TokenError } from '../../errors.ts';
import { failedTransaction } from '../shared/transaction.ts';
import { changesIn, type SqliteHandle, type SqliteValue, toTokenError } from './client.ts';
import type { Opened } from './connection.ts';
import { prepareStatements, type Statements, type WriteVerb } from './statements.ts';

/** Preparing them takes longer than most calls, and a handle may serve many transactions. */
const prepared = new WeakMap<SqliteHandle, Statements>();

/**
 * A handle on which the host has begun a transaction. Writes immediately, without a transaction of its own.
 * Refuses everything after a write that failed: SQLite may have ended the transaction, and later writes
 * would commit alone.
 */
export class Transaction {
  readonly #handle: SqliteHandle;
  #hasFailed = false;

  /** @throws {TokenError} `invalid_options` */
  constructor(handle: SqliteHandle) {
    if (typeof handle?.prepare !== 'function') {
      throw new TokenError(
        'invalid_options',
        'in() takes a handle with an open transaction: a database of node:sqlite or better-sqlite3',
      );
    }
    this.#handle = handle;
  }

  /** @throws {TokenError} `store_unavailable` after a write that failed */
  checkedQuickly(): Opened {
    if (this.#hasFailed) throw failedTransaction();
    const handle = this.#handle;
    const statements = prepared.get(handle) ?? prepareStatements(handle, () => {});
    prepared.set(handle, statements);
    // Nothing would show that what was read in the transaction is rolled back, so no state has a name.
    return { handle, statements, files: undefined, serial: undefined };
  }

  /** Nothing waits. */
  idle(): undefined {}

  async run(verb: WriteVerb, values: readonly SqliteValue[]): Promise<number> {
    const { statements } = this.checkedQuickly();
    try {
      return changesIn(statements[verb].run(...values));
    } catch (error) {
      this.#hasFailed = true;
      throw toTokenError(error);
    }
  }
}
