import { isTokenError, TokenError } from '../../errors.ts';
import { withDeadline } from '../../time/deadline.ts';
import { performance } from '../../time/timers.ts';
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
  if (typeof pool?.connect === 'function' && typeof pool.on === 'function') return pool;
  throw new TokenError('invalid_options', 'pool must be a Pool of pg, as new pg.Pool makes it');
}

/** Runs statements on a pool within a deadline, and translates the errors of the driver. */
export class Session {
  readonly pool: PostgresPool;
  readonly deadlineMs: number;

  constructor(pool: PostgresPool, deadlineMs: number) {
    this.pool = pool;
    this.deadlineMs = deadlineMs;
  }

  /** Rejects with a `TokenError`, which names the kind of table. */
  async run(
    statement: PostgresQuery,
    values: readonly unknown[],
    kind: TableKind = TOKENS,
  ): Promise<readonly unknown[]> {
    const query = { ...statement, values, query_timeout: this.deadlineMs };
    const deadline = performance.now() + this.deadlineMs;
    for (;;) {
      try {
        return (await this.pool.query(query)).rows;
      } catch (error) {
        if (!isConflict(error) || performance.now() > deadline)
          throw this.toTokenError(error, kind);
      }
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
    const state = sqlStateOf(error);
    if (state === undefined) this.#dropIdle();
    return unavailable(state, kind);
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

/** The SQLSTATE with which the server refused; undefined if the connection failed. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined;
  return String(error.code);
}

export function unavailable(sqlState: string | undefined, kind: TableKind = TOKENS): TokenError {
  const details = STANDBY.has(sqlState) ? { reason: 'standby' } : undefined;
  const message = reasonsFor(kind).get(sqlState) ?? NOT_USABLE;
  return new TokenError('store_unavailable', message, details);
}

/**
 * Whether a statement lost against another one and may succeed now: after a deadlock, or after a
 * serialization failure if the host has set a stricter isolation than "read committed".
 */
function isConflict(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === '40001' || state === '40P01';
}

const NOT_USABLE =
  'PostgreSQL cannot be used: it is down, refuses this, or did not answer in time; tokenwright doctor --store URL says which';
const NO_STATEMENTS =
  'PostgreSQL is behind a pooler that does not know prepared statements: set prepare: false';

/** By SQLSTATE: a write to a server that takes none, and a read that divides by "is the primary". */
const STANDBY = new Set<string | undefined>(['25006', '22012']);

/** By SQLSTATE: the failures that the host can fix. */
function reasonsFor({
  holds,
  standby: [risk, cure],
}: TableKind): ReadonlyMap<string | undefined, string> {
  const table = `the table of ${holds}`;
  return new Map([
    ['42P01', `${table} does not exist: call migrate(), or run the SQL of migrationSql()`],
    ['42703', `${table} is not up to date: call migrate()`],
    ['42501', `the role of the pool may not read and write ${table}`],
    ['26000', NO_STATEMENTS],
    ['42P05', NO_STATEMENTS],
    ['25006', 'PostgreSQL accepts no writes: it is a replica, or set to read-only'],
    ['22012', `PostgreSQL is a standby, which ${risk}: ${cure}`],
    ['42P10', `${table} has no primary key: create it as in the SQL of migrationSql()`],
  ]);
}
