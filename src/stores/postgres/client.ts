import {
  isTokenError,
  type StoreFailure,
  type StoreReason,
  storeUnavailable,
  TokenError,
} from '../../errors.ts';
import { hasMethods } from '../../ports/has-methods.ts';
import { withDeadline } from '../../time/deadline.ts';
import { performance } from '../../time/timers.ts';
import { isOfOtherRequest, partOf, reasonOfConnection } from '../shared/reasons.ts';
import { type TableKind, TOKENS } from '../shared/schema-mark.ts';

/** A statement that the store sends to a {@link PostgresPool}: a part of pg's `QueryConfig`. */
export interface PostgresQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly name?: string;
  /** The driver gives up the query after this many milliseconds. */
  readonly query_timeout?: number;
}

/** A connection that was checked out of a {@link PostgresPool}. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<{ readonly rows: readonly unknown[] }>;
  on(event: 'error' | 'end', listener: () => void): unknown;
  on(event: 'notification', listener: (message: PostgresNotification) => void): unknown;
  /** Returns the connection to the pool, or closes it. */
  release(destroy?: boolean): void;
}

/** A message that `NOTIFY` sends. */
export interface PostgresNotification {
  readonly channel: string;
  readonly payload?: string | undefined;
}

/**
 * The part of a connection pool that the store uses: a `Pool` of `pg`.
 *
 * @example
 * const pool: PostgresPool = new Pool({
 *   connectionString: 'postgres://acme@db.internal/acme',
 *   connectionTimeoutMillis: 2000, // no limit by default
 *   statement_timeout: 2000, // likewise
 * });
 */
export interface PostgresPool {
  query(query: PostgresQuery): Promise<{ readonly rows: readonly unknown[] }>;
  connect(): Promise<PostgresClient>;
  on(event: 'error', listener: () => void): unknown;
  listenerCount(event: 'error'): number;
  readonly idleCount: number;
  readonly ending: boolean;
  readonly options: {
    readonly max: number;
    readonly connectionTimeoutMillis?: number | undefined;
  };
}

/** @throws {TokenError} `invalid_options` */
export function readPool(pool: PostgresPool): PostgresPool {
  const methods = ['query', 'connect', 'on', 'listenerCount'] as const;
  if (hasMethods<PostgresPool>(pool, ...methods)) return pool;
  throw new TokenError('invalid_options', 'pool must be a Pool of pg, as new pg.Pool makes it');
}

/** Runs statements on a pool within a deadline, and translates the errors of the driver. */
export class Session {
  readonly pool: PostgresPool;
  readonly deadlineMs: number;
  /** Clients that have a listener for errors. */
  readonly #heard = new WeakSet<PostgresClient>();

  constructor(pool: PostgresPool, deadlineMs: number) {
    this.pool = pool;
    this.deadlineMs = deadlineMs;
  }

  /** Runs a write; rejects with a `TokenError`, which names the kind of table. */
  async run(
    statement: PostgresQuery,
    values: readonly unknown[],
    kind: TableKind = TOKENS,
  ): Promise<readonly unknown[]> {
    try {
      return await this.#send({ ...statement, values }, this.deadlineMs);
    } catch (error) {
      throw this.toTokenError(error, kind);
    }
  }

  /**
   * Runs a read as {@link run} does, and once more if its connection was lost: a server that restarts, or a
   * firewall, ends all idle ones, and the pool may not know it yet. A write may have been carried out.
   */
  async read(
    statement: PostgresQuery,
    values: readonly unknown[],
    kind: TableKind = TOKENS,
  ): Promise<readonly unknown[]> {
    const query = { ...statement, values };
    const deadline = performance.now() + this.deadlineMs;
    try {
      return await this.#send(query, this.deadlineMs);
    } catch (error) {
      const leftMs = Math.floor(deadline - performance.now());
      if (reasonOf(error) !== 'unreachable' || leftMs < 1) throw this.toTokenError(error, kind);
      this.#dropIdle();
      try {
        return await withDeadline(this.#send(query, leftMs), leftMs);
      } catch (again) {
        throw this.toTokenError(again, kind);
      }
    }
  }

  async #send(query: PostgresQuery, deadlineMs: number): Promise<readonly unknown[]> {
    if (isOfOtherRequest(this.pool)) {
      this.#dropIdle();
      throw storeUnavailable('foreign_request');
    }
    const deadline = performance.now() + deadlineMs;
    for (;;) {
      try {
        return (await this.pool.query({ ...query, query_timeout: deadlineMs })).rows;
      } catch (error) {
        if (!isConflict(error) || performance.now() > deadline) throw error;
      }
    }
  }

  /**
   * Runs statements in a transaction, and repeats it all if it lost against another one. Rejects with a
   * `TokenError`, which names the kind of table, or with the one of `work`; then nothing is changed.
   */
  async transaction(work: (run: RunStatement) => Promise<void>, kind: TableKind): Promise<void> {
    if (isOfOtherRequest(this.pool)) {
      this.#dropIdle();
      throw storeUnavailable('foreign_request', partOf(kind));
    }
    const deadline = performance.now() + this.deadlineMs;
    for (;;) {
      try {
        return await this.#attempt(work, deadline);
      } catch (error) {
        if (!isConflict(error) || performance.now() > deadline)
          throw this.toTokenError(error, kind);
      }
    }
  }

  async #attempt(work: (run: RunStatement) => Promise<void>, deadline: number): Promise<void> {
    const client = await this.checkOut();
    // Without a listener, a connection that breaks while it is checked out ends the process.
    if (!this.#heard.has(client)) client.on('error', () => {});
    this.#heard.add(client);
    const run: RunStatement = async (query, values) => {
      const leftMs = Math.max(1, Math.ceil(deadline - performance.now()));
      const sending = client.query({ ...query, values, query_timeout: leftMs });
      return (await withDeadline(sending, leftMs)).rows;
    };
    const end = async (text: 'COMMIT' | 'ROLLBACK') => void (await run({ text }, []));
    let isOver = false;
    try {
      await run({ text: 'BEGIN ISOLATION LEVEL READ COMMITTED' }, []);
      await work(run);
      await end('COMMIT');
      isOver = true;
    } catch (error) {
      const hasAnswered = isTokenError(error) || sqlStateOf(error) !== undefined;
      if (hasAnswered) isOver = await end('ROLLBACK').then(...SETTLED);
      throw error;
    } finally {
      // Closing the connection ends its transaction.
      client.release(!isOver);
    }
  }

  /** Takes a connection from the pool. If it comes after the deadline, it goes back to the pool. */
  async checkOut(): Promise<PostgresClient> {
    const client = this.pool.connect();
    try {
      return await withDeadline(client, this.deadlineMs);
    } catch (error) {
      client.then(
        (late) => late.release(),
        () => {},
      );
      throw error;
    }
  }

  toTokenError(error: unknown, kind?: TableKind): TokenError {
    if (isTokenError(error)) return error;
    if (sqlStateOf(error) === undefined) this.#dropIdle();
    return unavailable(error, kind);
  }

  /**
   * If one connection dropped silently, the idle ones probably did too. Each of them would cost a
   * later call its deadline.
   */
  #dropIdle(): void {
    for (let left = this.pool.idleCount; left > 0; left -= 1) {
      this.pool.connect().then(
        (client) => client.release(true),
        () => {},
      );
    }
  }
}

/** Whether it was fulfilled. */
const SETTLED = [() => true, () => false] as const;

/** Runs a statement of a transaction. */
type RunStatement = (
  query: PostgresQuery,
  values: readonly unknown[],
) => Promise<readonly unknown[]>;

/** The SQLSTATE with which the server refused; undefined if the connection failed. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined;
  return String(error.code);
}

export function unavailable(error: unknown, kind: TableKind = TOKENS): StoreFailure {
  return storeUnavailable(reasonOf(error), partOf(kind));
}

function reasonOf(error: unknown): StoreReason {
  const state = sqlStateOf(error);
  const text = error instanceof Error ? error.message : '';
  if (state === undefined)
    return reasonOfConnection(error) ?? reasonIn(text, DRIVER_TEXTS) ?? 'unknown';
  if (state === '08P01') return reasonIn(text, POOLER_TEXTS) ?? 'pooler';
  return REASONS.get(state) ?? REASONS.get(state.slice(0, 2)) ?? 'unknown';
}

type Texts = readonly (readonly [pattern: RegExp, reason: StoreReason])[];

/** Where there is no code of its own, the text says why. It is read, and never shown. */
function reasonIn(text: string, texts: Texts): StoreReason | undefined {
  return texts.find(([pattern]) => pattern.test(text))?.[1];
}

/** What `pg` says without a code. */
const DRIVER_TEXTS: Texts = [
  [/timeout/i, 'timeout'],
  [/after calling end on the pool|client was closed/i, 'closed'],
  [/^SASL:/, 'credentials'],
  [/terminated|not queryable|connection error|does not support SSL/i, 'unreachable'],
];

/** What PgBouncer says: it has one code for all of its own errors. */
const POOLER_TEXTS: Texts = [
  [/no such database/, 'no_database'],
  [/authentication failed|no such user/, 'credentials'],
  [/no more connections|query_wait_timeout/, 'busy'],
  [/shutting down|crashed|login|cannot connect|connection/, 'unreachable'],
];

/**
 * Whether a statement lost against another one and may succeed now: after a deadlock, or after a
 * serialization failure if the host has set a stricter isolation than "read committed".
 */
function isConflict(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === '40001' || state === '40P01';
}

/** By SQLSTATE, or by its class. A read that divides by "is the primary" gives 22012. */
const REASONS: ReadonlyMap<string, StoreReason> = new Map([
  ['08', 'unreachable'],
  ['57P01', 'unreachable'],
  ['57P02', 'unreachable'],
  ['57P03', 'unreachable'],
  ['57P05', 'unreachable'],
  ['57014', 'timeout'],
  ['53', 'busy'],
  ['40', 'busy'],
  ['55P03', 'busy'],
  ['53100', 'full'],
  ['28', 'credentials'],
  ['3D000', 'no_database'],
  ['42P01', 'schema_missing'],
  ['3F000', 'schema_missing'],
  ['42703', 'schema_older'],
  ['42P10', 'schema_older'],
  ['42501', 'forbidden'],
  ['26000', 'pooler'],
  ['42P05', 'pooler'],
  ['22021', 'encoding'],
  ['22P05', 'encoding'],
  ['25006', 'standby'],
  ['22012', 'standby'],
  ['0A000', 'unsupported'],
  ['42', 'unsupported'],
]);
