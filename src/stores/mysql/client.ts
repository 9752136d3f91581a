import {
  DeadlineError,
  isTokenError,
  type StoreReason,
  storeUnavailable,
  TokenError,
} from '../../errors.ts';
import { clearTimeout, performance, setTimeout } from '../../time/timers.ts';
import { partOf, reasonOfConnection } from '../shared/reasons.ts';
import { type TableKind, TOKENS } from '../shared/schema-mark.ts';
import { type MysqlStatement, type MysqlValue, withLiterals } from './statement.ts';

/** Receives the answer of the driver: an error, or rows or counts. */
export type MysqlCallback = (error: unknown, answer: unknown) => void;

/** The part of a connection of a {@link MysqlPool} that the store uses. */
export interface MysqlConnection {
  /** Runs a statement that is prepared once for each connection. Unused with `prepare: false`. */
  execute(statement: MysqlStatement, callback: MysqlCallback): unknown;
  /** Runs a statement without preparing it. */
  query(statement: MysqlStatement, callback: MysqlCallback): unknown;
  release(): void;
  destroy(): void;
}

/**
 * The part of a connection pool that the store uses: the answer of `createPool` of `mysql2`.
 *
 * @example
 * const pool: MysqlPool = createPool({ uri: 'mysql://acme@db.example/acme', connectTimeout: 2000 });
 */
export interface MysqlPool {
  getConnection(callback: (error: unknown, connection: MysqlConnection) => void): void;
}

/** What sends statements over one connection. */
export type Sender = Pick<MysqlConnection, 'execute' | 'query'>;

/** A pool of `mysql2/promise`, which wraps a {@link MysqlPool}. */
export interface MysqlPromisePool {
  readonly pool: MysqlPool;
}

/** @throws {TokenError} `invalid_options` */
export function readPool(given: MysqlPool | MysqlPromisePool): MysqlPool {
  const pool: unknown =
    given !== null && typeof given === 'object' && 'pool' in given ? given.pool : given;
  if (typeof (pool as MysqlPool | undefined)?.getConnection === 'function')
    return pool as MysqlPool;
  throw new TokenError('invalid_options', 'pool must be a pool of mysql2, as createPool makes it');
}

/** A pool of mysql2, with the settings that the store reads and never writes. */
interface ConfiguredPool extends MysqlPool {
  readonly config?: {
    readonly connectionConfig?: { readonly connectTimeout?: number; readonly typeCast?: unknown };
  };
}

/** The form of rows that the store reads, whatever the host has set for its own statements. */
export const FORM = { rowsAsArray: true, nestTables: false, typeCast: true };

/** Overrides a host's `typeCast` function; mysql2 merges anything else. */
export const UNCAST = { ...FORM, typeCast: (_: unknown, next: () => unknown) => next() };

/** A row, in the order of the selected columns. */
export type Cells = readonly unknown[];

/** The answer to a write. */
export interface Counts {
  readonly affectedRows: number;
  /** The argument of `LAST_INSERT_ID`, if the statement has called it. */
  readonly insertId: number | string;
  readonly serverStatus: number;
}

/** Whether reads may come from a server that takes no writes. */
export type Standby = 'refuse' | 'allow';

/** How a session works. */
interface SessionForm {
  /** @default 'refuse' */
  readonly standby?: Standby;
  /** Whether the server keeps prepared statements. @default true */
  readonly prepare?: boolean;
}

/** Runs a statement of a transaction. */
type RunStatement = (sql: string, values: MysqlValue[]) => Promise<unknown>;

type SendStatement = (connection: MysqlConnection, callback: MysqlCallback) => unknown;

/** When a connection was checked last, and how many connections had been found dead by then. */
interface Checked {
  at: number;
  readonly deadConnections: number;
}

interface Execution {
  /** The kind of table, for messages of errors. */
  readonly kind: TableKind;
  readonly deadlineMs: number;
  /** Checks a connection again whose last check is older. @default no limit */
  readonly maxAgeMs?: number;
  /** Takes the last row of the answer, which says what the server is: see {@link SERVER_STATE}. */
  readonly hasState?: boolean;
  /** It changes nothing, so it may be repeated when its connection is lost. */
  readonly isRead?: boolean;
}

/**
 * Two settings that tell a standby, as cells or columns: a primary has both off. Some servers answer with
 * a number and some with a word. Each read asks for them, because a server can become a standby without
 * closing its connections. They are not a condition of writes: a replica that repeats a write would skip it.
 */
export const SERVER_STATE = '@@global.read_only, @@global.innodb_read_only';

/** Some users may write to a standby. So a write checks the state again if the last check is older. */
const MAX_STATE_AGE_MS = 1000;

/** Runs statements on connections of a pool: within a deadline, and only on connections it trusts. */
export class Session {
  readonly deadlineMs: number;
  /** How long the pool waits for a connection to open. 0: without a limit. `undefined`: unknown. */
  readonly connectTimeoutMs: number | undefined;
  readonly #pool: MysqlPool;
  readonly #form: Omit<MysqlStatement, 'sql' | 'values'>;
  readonly #standby: Standby;
  readonly #prepare: boolean;
  readonly #checks = new WeakMap<MysqlConnection, Checked>();
  /** Calls that hung, and connections that were lost during a call. */
  #deadConnections = 0;

  constructor(
    pool: ConfiguredPool,
    deadlineMs: number,
    { standby = 'refuse', prepare = true }: SessionForm = {},
  ) {
    const { connectTimeout, typeCast } = pool.config?.connectionConfig ?? {};
    this.deadlineMs = deadlineMs;
    this.connectTimeoutMs = connectTimeout;
    this.#pool = pool;
    this.#standby = standby;
    this.#prepare = prepare;
    this.#form = typeof typeCast === 'function' ? UNCAST : FORM;
  }

  /**
   * Runs a read whose last row is {@link SERVER_STATE}; rejects with a `TokenError`, which names the kind of
   * table. Repeats it once if its connection is lost.
   */
  async read(sql: string, values: MysqlValue[], kind: TableKind = TOKENS): Promise<Cells[]> {
    const { deadlineMs } = this;
    const execution = { kind, deadlineMs, isRead: true, hasState: true };
    return (await this.#execute(sql, values, execution)) as Cells[];
  }

  /** Runs a write; rejects with a `TokenError`. */
  async write(sql: string, values: MysqlValue[], kind: TableKind = TOKENS): Promise<Counts> {
    const { deadlineMs } = this;
    const execution = { kind, deadlineMs, maxAgeMs: MAX_STATE_AGE_MS };
    return (await this.#execute(sql, values, execution)) as Counts;
  }

  /**
   * Runs statements in a transaction, and repeats it all if it lost against another one. Rejects with a
   * `TokenError`, or with the one of `work`; then nothing is changed.
   */
  async transaction(work: (run: RunStatement) => Promise<void>, kind: TableKind): Promise<void> {
    const execution = { kind, deadlineMs: this.deadlineMs, maxAgeMs: MAX_STATE_AGE_MS };
    const send: SendStatement = (connection, callback) =>
      this.#check(connection, execution, (error) => {
        if (error) return callback(error, undefined);
        this.#inTransaction(connection, work).then(
          () => callback(undefined, undefined),
          (failure) => callback(failure, undefined),
        );
      });
    await this.#retried(send, execution);
  }

  /** After an error, the connection has no open transaction, or it is a failure that closes it. */
  async #inTransaction(
    connection: MysqlConnection,
    work: (run: RunStatement) => Promise<void>,
  ): Promise<void> {
    const answerTo = (send: (callback: MysqlCallback) => void) =>
      new Promise<unknown>((resolve, reject) => {
        send((error, answer) => (error ? reject(error) : resolve(answer)));
      });
    const run: RunStatement = (sql, values) =>
      answerTo((callback) => this.send(connection, { ...this.#form, sql, values }, callback));
    // Not each server can prepare these.
    const control = (sql: string) =>
      answerTo((callback) => connection.query({ ...this.#form, sql, values: [] }, callback));
    await control('START TRANSACTION');
    try {
      await work(run);
      await control('COMMIT');
    } catch (error) {
      await control('ROLLBACK');
      throw error;
    }
  }

  /** Runs a read on which nothing depends; rejects with a `TokenError`. */
  async poll(sql: string, values: MysqlValue[], deadlineMs: number): Promise<Cells[]> {
    const execution = { kind: TOKENS, deadlineMs, isRead: true };
    return (await this.#execute(sql, values, execution)) as Cells[];
  }

  /** Sends a statement over a connection in the way that was chosen. */
  send(connection: Sender, statement: MysqlStatement, callback: MysqlCallback): void {
    if (this.#prepare) connection.execute(statement, callback);
    else connection.query(withLiterals(statement), callback);
  }

  async #execute(sql: string, values: MysqlValue[], execution: Execution): Promise<unknown> {
    const statement = { ...this.#form, sql, values };
    const send: SendStatement = (connection, callback) =>
      this.#check(connection, execution, (error) => {
        if (error) return callback(error, undefined);
        this.send(connection, statement, (failure, answer) =>
          callback(failure ?? this.#refusal(connection, execution, answer), answer),
        );
      });
    return this.#retried(send, execution);
  }

  /** Sends again what was rolled back, and once what only reads if its connection was lost. */
  async #retried(send: SendStatement, execution: Execution): Promise<unknown> {
    const deadline = performance.now() + execution.deadlineMs;
    let repeatsLeft = execution.isRead === true ? 1 : 0;
    for (;;) {
      try {
        return await this.#run(send, deadline - performance.now());
      } catch (error) {
        const isLost = error instanceof LostConnection;
        const isRepeatable = isLost ? repeatsLeft-- > 0 : ROLLED_BACK.has(errorNumber(error));
        if (!isRepeatable || performance.now() > deadline)
          throw toTokenError(error, execution.kind);
      }
    }
  }

  /** Takes the state of the server from an answer; an error if it is a standby. */
  #refusal(
    connection: MysqlConnection,
    { kind, hasState = false }: Execution,
    answer: unknown,
  ): TokenError | undefined {
    if (!hasState) return undefined;
    const state = (answer as Cells[]).pop() ?? [];
    if (this.#standby === 'refuse' && isStandby(state)) return standbyError(kind);
    const checked = this.#checks.get(connection);
    if (checked !== undefined) checked.at = performance.now();
    return undefined;
  }

  /** Runs a statement without preparing it, on any connection; rejects with a `TokenError`. */
  async query(
    sql: string,
    kind: TableKind = TOKENS,
  ): Promise<{ readonly [column: string]: unknown }[]> {
    try {
      return (await this.#query(sql)) as { readonly [column: string]: unknown }[];
    } catch (error) {
      throw toTokenError(error, kind);
    }
  }

  #query(sql: string): Promise<unknown> {
    const statement = { ...this.#form, rowsAsArray: false, sql, values: [] };
    return this.#run(
      (connection, callback) => connection.query(statement, callback),
      this.deadlineMs,
    );
  }

  /**
   * Runs a statement that changes the schema. Resolves to its failure, and whether the schema may be different
   * now because another process changes it as well.
   */
  async change(
    sql: string,
    kind: TableKind,
  ): Promise<{ readonly error: TokenError; readonly isRace: boolean } | undefined> {
    try {
      await this.#query(sql);
      return undefined;
    } catch (error) {
      return { error: toTokenError(error, kind), isRace: RACES.has(errorNumber(error)) };
    }
  }

  /** Settles once: with the answer, with an error, or at the deadline. */
  #run(send: SendStatement, deadlineMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let connection: MysqlConnection | undefined;
      let isOver = false;
      const end = (error: unknown, answer?: unknown): void => {
        if (isOver) return;
        isOver = true;
        const isLost = connection !== undefined && isLostConnection(error);
        if (isLost) this.#deadConnections += 1;
        if (!error || leavesUsable(error)) connection?.release();
        else connection?.destroy();
        clearTimeout(timer);
        if (error) reject(isLost ? new LostConnection() : error);
        else resolve(answer);
      };
      const connect = (): void =>
        this.#pool.getConnection((refusal, given) => {
          if (refusal) return end(refusal);
          if (isOver) return given.release();
          if (this.#isSuspect(given)) {
            given.destroy();
            return connect();
          }
          connection = given;
          send(given, (error, answer) => end(error ?? openTransaction(answer), answer));
        });
      // Without a deadline, the driver would wait forever and occupy a connection of the pool.
      const timer = setTimeout(() => {
        if (connection !== undefined) this.#deadConnections += 1;
        end(new DeadlineError());
      }, deadlineMs);
      connect();
    });
  }

  /** Another one was found dead since this connection was checked, so this one may be dead as well. */
  #isSuspect(connection: MysqlConnection): boolean {
    const { deadConnections = this.#deadConnections } = this.#checks.get(connection) ?? {};
    return deadConnections !== this.#deadConnections;
  }

  /** Once for each connection: without autocommit, reads would return the same snapshot forever. */
  #check(
    connection: MysqlConnection,
    { kind, maxAgeMs = Number.POSITIVE_INFINITY }: Execution,
    callback: (error?: unknown) => void,
  ): void {
    const { at = Number.NEGATIVE_INFINITY } = this.#checks.get(connection) ?? {};
    const isNew = at === Number.NEGATIVE_INFINITY;
    if (!isNew && (this.#standby === 'allow' || performance.now() - at <= maxAgeMs)) {
      callback();
      return;
    }
    const sql = `SELECT @@autocommit, ${SERVER_STATE}`;
    connection.query({ ...this.#form, sql, values: [] }, (error, rows) => {
      const refusal = error || this.#hostError(rows, kind);
      if (!refusal) {
        this.#checks.set(connection, {
          at: performance.now(),
          deadConnections: this.#deadConnections,
        });
      }
      callback(refusal);
    });
  }

  #hostError(rows: unknown, kind: TableKind): TokenError | undefined {
    const [[autocommit, ...state] = []] = rows as Cells[];
    if (Number(autocommit) !== 1) return new TokenError('invalid_options', AUTOCOMMIT_OFF);
    return this.#standby === 'refuse' && isStandby(state) ? standbyError(kind) : undefined;
  }
}

/** A state that cannot be read counts as one of a standby. */
export function isStandby([readOnly, innodbReadOnly]: Cells): boolean {
  return ![readOnly, innodbReadOnly].every((cell) => ['0', 'OFF'].includes(String(cell)));
}

export function standbyError(kind: TableKind = TOKENS): TokenError {
  return storeUnavailable('standby', partOf(kind));
}

/**
 * Whether a connection can be used after an error. One that leads to a standby is closed, because a new
 * one may lead to the primary.
 */
function leavesUsable(error: unknown): boolean {
  if (isTokenError(error)) return error.code !== 'store_unavailable';
  return HARMLESS.has(errorNumber(error));
}

const IN_TRANSACTION = 1;

/** An error if the host left a transaction open: the write may never be committed. */
function openTransaction(answer: unknown): Error | undefined {
  const { serverStatus = 0 } = (answer ?? {}) as Partial<Counts>;
  return (serverStatus & IN_TRANSACTION) === 0 ? undefined : new Error('open transaction');
}

export const AUTOCOMMIT_OFF =
  'the connections of the pool do not commit automatically: turn autocommit on, or give the store a pool of its own';

const DUPLICATE = 1062;
const LOCK_TIMEOUT = 1205;
/**
 * A deadlock; or a row that changed meanwhile, with MariaDB's `innodb_snapshot_isolation`; or in TiDB a conflict
 * of writes, and a change of the schema.
 */
const ROLLED_BACK = new Set<number | undefined>([1213, 1020, 9007, 8028]);
/** A table, a column or an index that exists already, and what a concurrent change of the schema ends with. */
const RACES = new Set<number | undefined>([1050, 1060, 1061, 1205, ...ROLLED_BACK]);
/** Errors that leave the connection usable. */
const HARMLESS = new Set([...ROLLED_BACK, DUPLICATE, LOCK_TIMEOUT]);

/** By error number. 1290, 1792 and 1836: the server is read-only, by an option, in this session or as a whole. */
const REASONS: ReadonlyMap<number | undefined, StoreReason> = new Map(
  (
    [
      ['schema_missing', [1146]],
      ['schema_older', [1054, 1176]],
      ['forbidden', [1044, 1142, 1143, 1227, 1370]],
      ['credentials', [1045, 1251, 1698, 1820, 4151]],
      ['no_database', [1046, 1049]],
      ['standby', [1290, 1792, 1836]],
      ['prepared_full', [1461]],
      ['busy', [1040, 1203, 1226, 1205, 1213, 1020, 9007, 8028]],
      ['timeout', [1317, 1969, 3024]],
      // 1047: a node of Galera that is not, or no longer, in the cluster.
      [
        'unreachable',
        [1047, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1927, 2006, 2013, 3169, 4031],
      ],
      ['full', [1021, 1114, 1041]],
      ['encoding', [1300, 1366, 3988]],
      ['unsupported', [1064, 1128, 1193, 1235, 1295, 1305]],
    ] as const
  ).flatMap(([reason, numbers]) => numbers.map((number) => [number, reason] as const)),
);

function reasonOf(error: unknown): StoreReason {
  if (error instanceof LostConnection) return 'unreachable';
  const known = REASONS.get(errorNumber(error)) ?? reasonOfConnection(error);
  if (known !== undefined) return known;
  const text = error instanceof Error ? error.message : '';
  return DRIVER_TEXTS.find(([pattern]) => pattern.test(text))?.[1] ?? 'unknown';
}

/** What mysql2 says without a number. Its texts are read, and never shown. */
const DRIVER_TEXTS: readonly (readonly [RegExp, StoreReason])[] = [
  [/Pool is closed|pool was closed/i, 'closed'],
  [/No connections available|Queue limit/i, 'busy'],
  [/closed state|connection lost|fatal error/i, 'unreachable'],
];

/** A connection of the pool that ended during a call: closed by the server, such as for a restart, or cut. */
class LostConnection extends Error {}

function isLostConnection(error: unknown): boolean {
  return !isTokenError(error) && reasonOf(error) === 'unreachable';
}

function errorNumber(error: unknown): number | undefined {
  return (error as { readonly errno?: number } | undefined)?.errno;
}

export function toTokenError(error: unknown, kind: TableKind = TOKENS): TokenError {
  if (isTokenError(error)) return error;
  const number = errorNumber(error);
  if (number === DUPLICATE && isOfPrimaryKey(error)) {
    return new TokenError('id_taken', 'this id is taken');
  }
  return storeUnavailable(reasonOf(error), partOf(kind));
}

/** Another index may be unique as well. In each language the message ends with the name of the key. */
function isOfPrimaryKey(error: unknown): boolean {
  return /['.]PRIMARY'[^']*$/.test(String((error as { readonly sqlMessage?: unknown }).sqlMessage));
}
