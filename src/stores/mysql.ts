import { systemClock } from '../clock.ts';
import { isTokenError, TokenError } from '../errors.ts';
import type { PageQuery, StoreFinding, TokenStore, Unsubscribe } from '../store.ts';
import type { TokenId, TokenRecord } from '../token.ts';
import { COLUMNS, type Column, RowReader, type RowValue, toValues } from './rows.ts';

/**
 * What goes into a statement of a {@link MysqlConnection}.
 *
 * @example
 * const values: MysqlValue[] = [Buffer.from('text'), 1, null];
 */
export type MysqlValue = string | number | Buffer | null;

/**
 * A statement as a {@link MysqlConnection} takes it, with the form in which its rows are wanted.
 *
 * @example
 * const statement: MysqlStatement = { ...form, sql: 'SELECT ? AS answer', values: [42] };
 */
export interface MysqlStatement {
  sql: string;
  values: MysqlValue[];
  rowsAsArray: boolean;
  nestTables: boolean;
  typeCast: boolean | ((field: unknown, next: () => unknown) => unknown);
}

/**
 * How a driver answers: with an error, or with rows or counts.
 *
 * @example
 * const callback: MysqlCallback = (error, answer) => console.log(error ?? answer);
 */
export type MysqlCallback = (error: unknown, answer: unknown) => void;

/**
 * A connection of a {@link MysqlPool}, as far as the store uses one.
 *
 * @example
 * connection.query(statement, (error, rows) => connection.release());
 */
export interface MysqlConnection {
  /** Runs a statement that is prepared once for each connection. */
  execute(statement: MysqlStatement, callback: MysqlCallback): unknown;
  /** Runs a statement as it is. */
  query(statement: MysqlStatement, callback: MysqlCallback): unknown;
  release(): void;
  destroy(): void;
}

/**
 * A pool of connections, as far as the store uses one: what `createPool` of `mysql2` gives.
 *
 * @example
 * const pool: MysqlPool = createPool({ uri: 'mysql://acme@db.example/acme' });
 */
export interface MysqlPool {
  getConnection(callback: (error: unknown, connection: MysqlConnection) => void): void;
}

/**
 * A pool of `mysql2/promise`, which wraps a {@link MysqlPool}.
 *
 * @example
 * const pool: MysqlPromisePool = createPool({ uri: 'mysql://acme@db.example/acme' });
 */
export interface MysqlPromisePool {
  readonly pool: MysqlPool;
}

/** Where tokens are kept. */
export interface MysqlTableOptions {
  /**
   * The table, as `table` or `database.table`: each 1 to 64 of `A-Z a-z 0-9 _ $ -`.
   * @default 'tokenwright_tokens'
   */
  readonly table?: string | undefined;
}

/** How a {@link MysqlTokenStore} works. */
export interface MysqlStoreOptions extends MysqlTableOptions {
  /** How long the server may take to answer a call, from 1 to 60 000. @default 2000 */
  readonly deadlineMs?: number | undefined;
  /** How long `watch` waits between two looks at what has changed, from 1 to 60 000. @default 50 */
  readonly pollMs?: number | undefined;
}

/**
 * Keeps tokens in a MySQL or MariaDB database: a system of record for many nodes.
 *
 * The table must be there: see {@link migrate}. The pool stays the host's, and is to lead to the
 * primary. Its connections must commit by themselves (`autocommit`, the default) and come back to
 * the pool without an open transaction; `sql_mode`, charset, time zone and how the driver forms rows
 * do not matter.
 *
 * A call that is not answered within `deadlineMs` rejects with `store_unavailable`, and its
 * connection is destroyed. So that the pool does not fill with connections that do not come about,
 * its `connectTimeout` is lowered to three quarters of that, though not below 1.5 s.
 *
 * Durable as far as the server is; `doctor` looks for settings that say otherwise.
 *
 * @example
 * const pool = createPool({ uri: 'mysql://acme@db.example/acme' });
 * await migrate(pool);
 * const store = new MysqlTokenStore(pool);
 */
export class MysqlTokenStore implements TokenStore {
  readonly #session: Session;
  readonly #table: Table;
  readonly #sql: Statements;
  readonly #rows = new RowReader();
  readonly #deadlineMs: number;
  readonly #pollMs: number;

  /**
   * Connects to nothing; the first call does.
   *
   * @throws {TokenError} `invalid_options`
   */
  constructor(pool: MysqlPool | MysqlPromisePool, options: MysqlStoreOptions = {}) {
    this.#table = readTable(options);
    this.#sql = statementsFor(this.#table);
    this.#deadlineMs = readMilliseconds(options, 'deadlineMs', DEFAULT_DEADLINE_MS);
    this.#pollMs = readMilliseconds(options, 'pollMs', DEFAULT_POLL_MS);
    this.#session = new Session(readPool(pool), this.#deadlineMs);
  }

  async insert(record: TokenRecord): Promise<void> {
    await this.#session.execute(this.#sql.insert, parametersOf(record));
  }

  async find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    if (ids.length > MAX_FOUND) return this.#findInParts(ids);
    const [first] = ids;
    if (first === undefined) return [];
    const parameters = padded(ids);
    const rows = await this.#read(this.#sql.find(parameters.length), parameters);
    if (ids.length === 1) return [rows[0] && this.#rows.readCells(rows[0])];
    const byId = new Map(rows.map((row) => [String(row[0]), row]));
    return ids.map((id) => {
      const row = byId.get(id);
      // Read anew for each place: records of one answer share nothing.
      return row && this.#rows.readCells(row);
    });
  }

  async #findInParts(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    const rest = this.find(ids.slice(MAX_FOUND));
    return (await Promise.all([this.find(ids.slice(0, MAX_FOUND)), rest])).flat();
  }

  async page({ account, after, limit, liveAt }: PageQuery): Promise<TokenRecord[]> {
    const start = [Buffer.from(account), timeOf(liveAt)];
    // As a text: MySQL takes no floating-point number here, which is what drivers send.
    const end = String(limit);
    const rows = await (after === undefined
      ? this.#read(this.#sql.firstPage, [...start, end])
      : this.#read(this.#sql.nextPage, [...start, ...placeOf(after), end]));
    return rows.map((row) => this.#rows.readCells(row));
  }

  async replace(next: TokenRecord): Promise<boolean> {
    const [id, account, ...rest] = parametersOf(next);
    const condition = [id, account, next.version - 1] as MysqlValue[];
    return (await this.#write(this.#sql.replace, [...rest, ...condition])) > 0;
  }

  async revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    const condition = [Buffer.from(id), Buffer.from(account), version ?? null];
    return (await this.#write(this.#sql.revoke, [timeOf(at), ...condition])) > 0;
  }

  async revokeAll(account: string, at: Date): Promise<number> {
    return this.#write(this.#sql.revokeAll, [timeOf(at), Buffer.from(account)]);
  }

  async purge(before: Date, limit: number): Promise<number> {
    return this.#write(this.#sql.purge, [timeOf(before), String(limit)]);
  }

  async watch(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe> {
    const deadlineMs = Math.min(this.#deadlineMs, MAX_POLL_MS);
    const read = async (since: number) => {
      const values = [since, String(MAX_CHANGES + 1)];
      return (await this.#session.execute(this.#sql.changes, values, deadlineMs)) as Change[];
    };
    const watch = new Watch(read, onChange, {
      pollMs: this.#pollMs,
      overlapMs: this.#deadlineMs + CLOCK_SLACK_MS,
    });
    await watch.start();
    return async () => watch.end();
  }

  async doctor(): Promise<StoreFinding[]> {
    const facts = await factsOf(this.#session, this.#table);
    const found = CHECKS.filter((check) => check.isFound(facts));
    return found.map((check) => ({ code: check.code, message: check.message(facts) }));
  }

  #read(sql: string, values: MysqlValue[]): Promise<Cells[]> {
    return this.#session.execute(sql, values) as Promise<Cells[]>;
  }

  async #write(sql: string, values: MysqlValue[]): Promise<number> {
    const { affectedRows } = (await this.#session.execute(sql, values)) as Counts;
    return affectedRows;
  }
}

/**
 * Creates the table of tokens, or brings it up to date. May be called at every start, also by many
 * processes at once; where nothing is to be done it only reads. The user of the pool needs `CREATE`
 * for it; those who own their migrations take {@link migrationSql}.
 *
 * @throws {TokenError} `invalid_options` when there is another table with this name, or one that is
 * newer than this version knows; `store_unavailable`
 * @example
 * await migrate(pool);
 * await migrate(pool, { table: 'auth.tokens' });
 */
export async function migrate(
  pool: MysqlPool | MysqlPromisePool,
  options: MysqlTableOptions = {},
): Promise<void> {
  const table = readTable(options);
  const session = new Session(readPool(pool), MIGRATION_MS);
  const state = await stateOf(session, table);
  if (state === undefined) await session.query(migrationSql(options));
  // Read again: another process may have made it meanwhile, perhaps a newer one.
  checkVersion(state ?? (await stateOf(session, table)), table);
}

/**
 * What {@link migrate} does, as SQL.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * console.log(migrationSql({ table: 'auth.tokens' })); // CREATE TABLE IF NOT EXISTS `auth`.`tokens` …
 */
export function migrationSql(options: MysqlTableOptions = {}): string {
  return `CREATE TABLE IF NOT EXISTS ${readTable(options).quoted} (
  id VARBINARY(${BYTES.id}) NOT NULL PRIMARY KEY,
  account VARBINARY(${BYTES.account}) NOT NULL,
  prefix VARBINARY(${BYTES.prefix}) NOT NULL,
  kid VARBINARY(${BYTES.kid}) NOT NULL,
  digest VARBINARY(${BYTES.digest}) NOT NULL,
  box VARBINARY(${BYTES.box}),
  scopes MEDIUMBLOB NOT NULL,
  requested MEDIUMBLOB NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  name VARBINARY(${BYTES.name}),
  metadata BLOB,
  revoked_at BIGINT,
  previous_digest VARBINARY(${BYTES.previous_digest}),
  previous_until BIGINT,
  changed_at BIGINT,
  ends_at BIGINT AS (LEAST(expires_at, COALESCE(revoked_at, expires_at))) STORED,
  KEY by_account (account, revoked_at, created_at DESC, id DESC, expires_at),
  KEY by_end (ends_at),
  KEY by_change (changed_at)
) ENGINE=InnoDB COMMENT='${COMMENT} ${SCHEMA_VERSION}';
`;
}

/** What the comment of a table of ours says, before its version. */
const COMMENT = 'tokenwright schema';
const SCHEMA_VERSION = 1;

function checkVersion(state: TableState | undefined, { name }: Table): void {
  const version = state?.version;
  if (version === SCHEMA_VERSION) return;
  throw new TokenError(
    'invalid_options',
    version === undefined
      ? `the table ${name} is not one of tokenwright: its comment does not say "${COMMENT}"; choose another table`
      : `the table ${name} has schema version ${version}, this tokenwright knows ${SCHEMA_VERSION} at most: upgrade tokenwright`,
  );
}

/**
 * In `by_account`, what is revoked lies apart from what is not, and what has expired is passed over
 * without a look at its row; that takes the descending order, in which a page is read.
 */
const INDEXES = ['PRIMARY', 'by_account', 'by_end', 'by_change'];
const MIGRATION_MS = 60_000;

/** A longer list of ids is read in parts: a statement takes 65 535 parameters at most. */
const MAX_FOUND = 1024;

/**
 * How many bytes a column takes. All of them hold bytes, so that they compare byte by byte and no
 * charset has a say. Checked by us: a server that is not strict would cut off what is too long.
 */
const BYTES = {
  id: 22,
  account: 255,
  prefix: 64,
  kid: 16,
  digest: 32,
  box: 1024,
  scopes: 16_777_215,
  requested: 16_777_215,
  name: 800,
  metadata: 65_535,
  previous_digest: 32,
} as const satisfies { readonly [column in Column]?: number };

/** In the order of the columns. */
function parametersOf(record: TokenRecord): MysqlValue[] {
  return toValues(record).map((value, index) => parameterOf(value, COLUMNS[index] as Column));
}

function parameterOf(value: RowValue, column: Column): MysqlValue {
  if (value === null) return null;
  if (typeof value === 'number') return whole(value);
  const bytes = Buffer.from(value as string);
  const max: number = BYTES[column as keyof typeof BYTES];
  if (bytes.length <= max) return bytes;
  throw new TokenError('invalid_request', `${column} must have at most ${max} bytes`);
}

function timeOf(date: Date): number {
  return whole(date.getTime());
}

/** What is not a number would become 0 on a server that is not strict. */
function whole(value: number): number {
  if (Number.isSafeInteger(value)) return value;
  throw new TokenError('invalid_request', 'times and versions must be whole numbers');
}

function placeOf({ createdAt, id }: NonNullable<PageQuery['after']>): MysqlValue[] {
  return [timeOf(createdAt), timeOf(createdAt), Buffer.from(id)];
}

/** Ids as parameters, the first repeated up to a power of two: few statements serve all lengths. */
function padded(ids: readonly TokenId[]): Buffer[] {
  const parameters: Buffer[] = ids.map((id) => Buffer.from(id));
  const [first] = parameters;
  while (!isPowerOfTwo(parameters.length)) parameters.push(first as Buffer);
  return parameters;
}

function isPowerOfTwo(count: number): boolean {
  return (count & (count - 1)) === 0;
}

interface Table {
  /** Undefined: the database that the connection has chosen. */
  readonly database: string | undefined;
  readonly name: string;
  readonly quoted: string;
}

const TABLE = /^(?:([A-Za-z0-9_$-]{1,64})\.)?([A-Za-z0-9_$-]{1,64})$/;

function readTable({ table = 'tokenwright_tokens' }: MysqlTableOptions): Table {
  const [, database, name] = (typeof table === 'string' && TABLE.exec(table)) || [];
  if (name === undefined) {
    throw new TokenError(
      'invalid_options',
      'table must be "table" or "database.table", each of 1 to 64 of A-Z, a-z, 0-9, "_", "$" and "-"',
    );
  }
  const quoted = [database, name].filter((part) => part !== undefined).map((part) => `\`${part}\``);
  return { database, name, quoted: quoted.join('.') };
}

const DEFAULT_DEADLINE_MS = 2000;
const DEFAULT_POLL_MS = 50;
const MAX_OPTION_MS = 60_000;

function readMilliseconds(
  options: MysqlStoreOptions,
  name: 'deadlineMs' | 'pollMs',
  otherwise: number,
): number {
  const value = options[name] ?? otherwise;
  if (Number.isInteger(value) && value >= 1 && value <= MAX_OPTION_MS) return value;
  throw new TokenError(
    'invalid_options',
    `${name} must be a whole number from 1 to ${MAX_OPTION_MS}`,
  );
}

function readPool(given: MysqlPool | MysqlPromisePool): MysqlPool {
  const pool: unknown =
    given !== null && typeof given === 'object' && 'pool' in given ? given.pool : given;
  if (typeof (pool as MysqlPool | undefined)?.getConnection === 'function')
    return pool as MysqlPool;
  throw new TokenError('invalid_options', 'pool must be a pool of mysql2, as createPool makes it');
}

interface Statements {
  readonly insert: string;
  readonly firstPage: string;
  readonly nextPage: string;
  readonly replace: string;
  readonly revoke: string;
  readonly revokeAll: string;
  readonly purge: string;
  readonly changes: string;
  find(count: number): string;
}

/** Microseconds since 1970 when the statement began, by the server's clock, in any time zone. */
const SERVER_TIME = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

function statementsFor({ quoted }: Table): Statements {
  const columns = COLUMNS.join(', ');
  // The hint matters: without it MariaDB reads all of the account and sorts.
  const page = (place: string) => `SELECT ${columns} FROM ${quoted} FORCE INDEX (by_account)
    WHERE account = ? AND revoked_at IS NULL AND expires_at > ? ${place}
    ORDER BY created_at DESC, id DESC LIMIT ?`;
  const marks = (count: number) => Array(count).fill('?').join(', ');
  const finds = new Map<number, string>();
  return {
    insert: `INSERT INTO ${quoted} (${columns}) VALUES (${marks(COLUMNS.length)})`,
    firstPage: page(''),
    // Written out: (created_at, id) < (?, ?) does not use the index.
    nextPage: page('AND (created_at < ? OR (created_at = ? AND id < ?))'),
    replace: `UPDATE ${quoted} SET ${COLUMNS.slice(2)
      .map((column) => `${column} = ?`)
      .join(', ')}, changed_at = ${SERVER_TIME}
      WHERE id = ? AND account = ? AND version = ? AND revoked_at IS NULL`,
    revoke: `UPDATE ${quoted} SET revoked_at = ?, changed_at = ${SERVER_TIME}
      WHERE id = ? AND account = ? AND revoked_at IS NULL AND version = COALESCE(?, version)`,
    revokeAll: `UPDATE ${quoted} FORCE INDEX (by_account)
      SET revoked_at = ?, changed_at = ${SERVER_TIME} WHERE account = ? AND revoked_at IS NULL`,
    purge: `DELETE FROM ${quoted} WHERE ends_at < ? ORDER BY ends_at, id LIMIT ?`,
    // One row at least, for the time.
    changes: `SELECT clock.server_time, token.id, token.changed_at
      FROM (SELECT ${SERVER_TIME} AS server_time) AS clock
      LEFT JOIN ${quoted} AS token FORCE INDEX (by_change) ON token.changed_at > ? LIMIT ?`,
    find(count) {
      const known = finds.get(count);
      if (known !== undefined) return known;
      const sql = `SELECT ${columns} FROM ${quoted} FORCE INDEX (PRIMARY) WHERE id IN (${marks(count)})`;
      finds.set(count, sql);
      return sql;
    },
  };
}

/** A row, in the order of what was selected. */
type Cells = readonly unknown[];

/** What a connection answers to a write. */
interface Counts {
  readonly affectedRows: number;
  readonly serverStatus: number;
}

/** The form of rows that we read, whatever the host has set for its own. */
const FORM = { rowsAsArray: true, nestTables: false, typeCast: true };

/** Also for a host that casts in a function of its own: only a function replaces a function. */
const AS_IS = { ...FORM, typeCast: (_: unknown, next: () => unknown) => next() };

/** What mysql2 keeps in a pool, of which we look at as little as we can. */
interface PoolSettings {
  connectTimeout?: number;
  readonly typeCast?: unknown;
}

function settingsOf(pool: MysqlPool): PoolSettings {
  const { config } = pool as { readonly config?: { readonly connectionConfig?: PoolSettings } };
  return config?.connectionConfig ?? {};
}

type Send = (connection: MysqlConnection, callback: MysqlCallback) => unknown;

/** Runs statements on connections of a pool: each in time, and only on those that can be trusted. */
class Session {
  readonly #pool: MysqlPool;
  readonly #deadlineMs: number;
  readonly #form: Omit<MysqlStatement, 'sql' | 'values'>;
  /** How many calls had been given up when a connection was checked. */
  readonly #checks = new WeakMap<MysqlConnection, number>();
  #givenUp = 0;

  constructor(pool: MysqlPool, deadlineMs: number) {
    const settings = settingsOf(pool);
    this.#pool = pool;
    this.#deadlineMs = deadlineMs;
    this.#form = typeof settings.typeCast === 'function' ? AS_IS : FORM;
    boundConnecting(settings, deadlineMs);
  }

  /** Runs a prepared statement; rejects with a `TokenError`. */
  async execute(
    sql: string,
    values: MysqlValue[],
    deadlineMs = this.#deadlineMs,
  ): Promise<unknown> {
    const statement = { ...this.#form, sql, values };
    const send: Send = (connection, callback) =>
      this.#check(connection, (error) => {
        if (error) callback(error, undefined);
        else connection.execute(statement, callback);
      });
    const deadline = performance.now() + deadlineMs;
    for (;;) {
      try {
        return await this.#run(send, deadline - performance.now());
      } catch (error) {
        const isUndone = UNDONE.has(errorNumber(error));
        if (!isUndone || performance.now() > deadline) throw tokenErrorOf(error);
      }
    }
  }

  /** Runs a statement as it is, on any connection; rejects with a `TokenError`. */
  async query(sql: string): Promise<{ readonly [column: string]: unknown }[]> {
    const statement = { ...this.#form, rowsAsArray: false, sql, values: [] };
    const send: Send = (connection, callback) => connection.query(statement, callback);
    try {
      const answer = await this.#run(send, this.#deadlineMs);
      return answer as { readonly [column: string]: unknown }[];
    } catch (error) {
      throw tokenErrorOf(error);
    }
  }

  #run(send: Send, deadlineMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call = new Call(send, (error, answer) => {
        clearTimeout(timer);
        if (error) reject(error);
        else resolve(answer);
      });
      const timer = setTimeout(() => this.#giveUp(call), deadlineMs);
      this.#connect(call);
    });
  }

  #connect(call: Call): void {
    this.#pool.getConnection((error, connection) => {
      if (error) call.end(error);
      else if (call.isOver) connection.release();
      else if (!this.#isSuspect(connection)) call.use(connection);
      else {
        connection.destroy();
        this.#connect(call);
      }
    });
  }

  /** The driver would wait for ever, and keep a place in the pool for it. */
  #giveUp(call: Call): void {
    if (call.isSent) this.#givenUp += 1;
    call.end(new Error('too late'));
  }

  /** A call has hung since this connection was checked: it may be as dead as that one's. */
  #isSuspect(connection: MysqlConnection): boolean {
    return (this.#checks.get(connection) ?? this.#givenUp) !== this.#givenUp;
  }

  /** Once for each connection: without autocommit, reads would see the same for ever. */
  #check(connection: MysqlConnection, callback: (error?: unknown) => void): void {
    if (this.#checks.has(connection)) {
      callback();
      return;
    }
    const statement = { ...this.#form, sql: 'SELECT @@autocommit', values: [] };
    connection.query(statement, (error, rows) => {
      const refusal = error || autocommitRefusal(rows);
      if (!refusal) this.#checks.set(connection, this.#givenUp);
      callback(refusal);
    });
  }
}

function autocommitRefusal(rows: unknown): TokenError | undefined {
  const [[autocommit] = []] = rows as Cells[];
  if (Number(autocommit) === 1) return undefined;
  return new TokenError('invalid_options', AUTOCOMMIT_OFF);
}

/** A statement on its way on one connection. It ends once, and gives the connection back. */
class Call {
  readonly #send: Send;
  readonly #callback: MysqlCallback;
  #connection: MysqlConnection | undefined;
  #isOver = false;

  constructor(send: Send, callback: MysqlCallback) {
    this.#send = send;
    this.#callback = callback;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether it has a connection. */
  get isSent(): boolean {
    return this.#connection !== undefined;
  }

  use(connection: MysqlConnection): void {
    this.#connection = connection;
    this.#send(connection, (error, answer) => this.end(error ?? leftOpen(answer), answer));
  }

  end(error: unknown, answer?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (!error || isHarmless(error)) this.#connection?.release();
    else this.#connection?.destroy();
    this.#callback(error, answer);
  }
}

/** In a transaction that somebody left open, a write is not committed and perhaps never will be. */
function leftOpen(answer: unknown): Error | undefined {
  const { serverStatus = 0 } = (answer ?? {}) as Partial<Counts>;
  return (serverStatus & IN_TRANSACTION) === 0 ? undefined : new Error('left open');
}

const IN_TRANSACTION = 1;
const MIN_CONNECTING_MS = 1500;

/**
 * mysql2 lets connecting take ten seconds, with a place in the pool held: after an outage nothing
 * would get through for as long. Only the pool's own setting can bound it.
 */
function boundConnecting(settings: PoolSettings, deadlineMs: number): void {
  const maxMs = Math.max(MIN_CONNECTING_MS, Math.ceil(deadlineMs * 0.75));
  settings.connectTimeout = Math.min(settings.connectTimeout || maxMs, maxMs);
}

const NOT_USABLE =
  'the MySQL database cannot be used: it is away, closed, busy, full or only for reading; tokenwright doctor --store URL tells which';
const AUTOCOMMIT_OFF =
  'the connections of the pool do not commit by themselves: leave autocommit on, or give the store a pool of its own';

const DUPLICATE = 1062;
const LOCK_TIMEOUT = 1205;
/** A deadlock; and a row that changed meanwhile, with MariaDB's `innodb_snapshot_isolation`. */
const UNDONE = new Set<number | undefined>([1213, 1020]);
/** After these a connection is as good as before. */
const HARMLESS = new Set([...UNDONE, DUPLICATE, LOCK_TIMEOUT]);
/** No such table, column or index. */
const NO_SCHEMA = new Set<number | undefined>([1146, 1054, 1176]);
/** Access to a database, a command or a column denied; a privilege missing. */
const DENIED = new Set<number | undefined>([1044, 1142, 1143, 1227]);
/** No database chosen, or one that is not there. */
const NO_DATABASE = new Set<number | undefined>([1046, 1049]);

function errorNumber(error: unknown): number | undefined {
  return (error as { readonly errno?: number } | undefined)?.errno;
}

function isHarmless(error: unknown): boolean {
  return isTokenError(error) || HARMLESS.has(errorNumber(error));
}

function tokenErrorOf(error: unknown): TokenError {
  if (isTokenError(error)) return error;
  const number = errorNumber(error);
  if (number === DUPLICATE && isOfPrimaryKey(error)) {
    return new TokenError('id_taken', 'this id is taken');
  }
  return new TokenError('store_unavailable', messageFor(number));
}

/** An index of the host may be unique as well. The name of the key stands last, in any language. */
function isOfPrimaryKey(error: unknown): boolean {
  return /['.]PRIMARY'[^']*$/.test(String((error as { readonly sqlMessage?: unknown }).sqlMessage));
}

function messageFor(number: number | undefined): string {
  if (NO_SCHEMA.has(number)) {
    return 'the table of tokens is missing, or is not as migrate makes it: call migrate';
  }
  if (DENIED.has(number)) {
    return 'the user of the pool may not do this: it needs SELECT, INSERT, UPDATE and DELETE on the table of tokens, and CREATE to migrate';
  }
  if (NO_DATABASE.has(number)) {
    return 'the pool has chosen no database that is there: name one in its options or in table';
  }
  return NOT_USABLE;
}

/**
 * The server's time, in microseconds, and a token that has changed, with the time of that; or
 * without token when none has.
 */
type Change = readonly [serverTime: unknown, id: unknown, changedAt: unknown];

interface WatchOptions {
  readonly pollMs: number;
  /** How long before the last look the next one begins. */
  readonly overlapMs: number;
}

const MAX_POLL_MS = 1000;
const MAX_PAUSE_MS = 1000;
const MAX_CHANGES = 1000;
const CLOCK_SLACK_MS = 3000;
const MAX_STEP_MS = 2000;

/**
 * Looks again and again for rows with a new `changed_at`: the time by the server's clock at which
 * the write began that changed them, set by that write itself.
 *
 * A change can be seen only later than at its time: when it is committed, which for one that is
 * acknowledged is at most a deadline later. So each look goes back by that and some slack before
 * the last one, and what was told already is left out. The slack also covers clocks of servers that
 * differ when another one takes over. Where a clock was set by more, where looks fail, and where
 * there is too much to tell, the word is `'all'`.
 *
 * Counters would not need clocks, but a number is drawn before its commit as well, and a second
 * table or a trigger costs every write more than it is worth for hints.
 */
class Watch {
  readonly #read: (since: number) => Promise<Change[]>;
  readonly #onChange: (ids: readonly TokenId[] | 'all') => void;
  readonly #pollMs: number;
  readonly #overlap: number;
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;
  #failures = 0;
  /** When the last look was, by the server's clock and by ours. */
  #last = { server: 0, own: 0 };
  /** Nothing before this is looked at: all of it was told by an `'all'`. */
  #floor = 0;
  /** When to say `'all'` once more, for what was begun before the floor and committed after it. */
  #repeatAt = Number.POSITIVE_INFINITY;
  #told: ReadonlyMap<TokenId, number> = new Map();

  constructor(
    read: (since: number) => Promise<Change[]>,
    onChange: (ids: readonly TokenId[] | 'all') => void,
    { pollMs, overlapMs }: WatchOptions,
  ) {
    this.#read = read;
    this.#onChange = onChange;
    this.#pollMs = pollMs;
    this.#overlap = overlapMs * 1000;
  }

  async start(): Promise<void> {
    const own = performance.now();
    this.#last = { server: serverTimeOf(await this.#read(Number.MAX_SAFE_INTEGER)), own };
    this.#told = toldBy(await this.#read(this.#last.server - this.#overlap));
    this.#schedule(this.#pollMs);
  }

  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
  }

  #schedule(pauseMs: number): void {
    if (this.#isEnded) return;
    this.#timer = setTimeout(() => void this.#look(), pauseMs);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    const own = performance.now();
    const since = Math.max(this.#floor, this.#last.server - this.#overlap);
    const changes = await this.#read(since).catch(() => undefined);
    if (this.#isEnded) return;
    if (changes === undefined) this.#lose();
    else this.#take(changes, own);
    const pauseMs = Math.min(this.#pollMs * 2 ** this.#failures, MAX_PAUSE_MS);
    this.#schedule(Math.max(pauseMs, this.#pollMs));
  }

  #lose(): void {
    this.#failures += 1;
    if (this.#failures === 1) this.#onChange('all');
  }

  #take(changes: readonly Change[], own: number): void {
    const server = serverTimeOf(changes);
    const told = toldBy(changes);
    const news = [...told].filter(([id, time]) => this.#told.get(id) !== time).map(([id]) => id);
    const isRepeat = server >= this.#repeatAt;
    const isTooMuch = changes.length > MAX_CHANGES || this.#isStep(server, own);
    const isAll = isTooMuch || isRepeat || this.#failures > 0;

    if (isTooMuch) this.#floor = server;
    if (isTooMuch) this.#repeatAt = server + this.#overlap;
    else if (isRepeat) this.#repeatAt = Number.POSITIVE_INFINITY;
    this.#last = { server, own };
    this.#told = told;
    this.#failures = 0;
    if (isAll) this.#onChange('all');
    else if (news.length > 0) this.#onChange(news);
  }

  /** Whether the server's clock was set, or is another one. */
  #isStep(server: number, own: number): boolean {
    const step = server - this.#last.server - (own - this.#last.own) * 1000;
    return Math.abs(step) > MAX_STEP_MS * 1000;
  }
}

function serverTimeOf([first]: readonly Change[]): number {
  return Number(first?.[0]);
}

function toldBy(changes: readonly Change[]): Map<TokenId, number> {
  const rows = changes.filter(([, id]) => id !== null);
  return new Map(rows.map(([, id, time]) => [String(id) as TokenId, Number(time)]));
}

/** What the server says of itself. */
interface Facts {
  readonly settings: ReadonlyMap<string, string>;
  /** By how much its clock differs from ours, at least. */
  readonly skewMs: number;
  /** Undefined when there is no table. */
  readonly engine: string | undefined;
  readonly columns: ReadonlyMap<string, { readonly isText: boolean; readonly bytes: number }>;
  readonly indexes: ReadonlySet<string>;
}

interface Check {
  readonly code: string;
  isFound(facts: Facts): boolean;
  message(facts: Facts): string;
}

const MAX_SKEW_MS = 1000;
const MIN_PACKET = 16 * 1024 * 1024;

/** A setting that a server does not have is no finding. */
const CHECKS: readonly Check[] = [
  {
    code: 'schema_missing',
    isFound: ({ engine }) => engine === undefined,
    message: () => 'there is no table of tokens, so that every call fails: call migrate',
  },
  {
    code: 'schema_differs',
    isFound: (facts) => facts.engine !== undefined && lacking(facts).length > 0,
    message: (facts) =>
      `the table of tokens is not as migrate makes it; columns or indexes that are missing or too short: ${lacking(facts).join(', ')}`,
  },
  {
    code: 'column_not_binary',
    isFound: (facts) => texts(facts).length > 0,
    message: (facts) =>
      `ids, accounts or other texts that differ may be taken for the same: these columns have a collation and should hold bytes (VARBINARY or BLOB): ${texts(facts).join(', ')}`,
  },
  {
    code: 'engine_not_innodb',
    isFound: ({ engine }) => engine !== undefined && engine !== 'InnoDB',
    message: ({ engine }) =>
      `changes may be lost or be made by halves, since the table is kept by ${engine}: ALTER TABLE … ENGINE=InnoDB`,
  },
  {
    code: 'autocommit_off',
    isFound: ({ settings }) => settings.get('autocommit') === 'OFF',
    message: () => AUTOCOMMIT_OFF,
  },
  {
    code: 'log_not_flushed_at_commit',
    isFound: ({ settings }) =>
      ['0', '2'].includes(settings.get('innodb_flush_log_at_trx_commit') ?? '1'),
    message: () =>
      'a crash of the server can undo changes that were acknowledged: set innodb_flush_log_at_trx_commit = 1',
  },
  {
    code: 'binlog_not_synced',
    isFound: ({ settings }) =>
      settings.get('log_bin') === 'ON' && settings.get('sync_binlog') !== '1',
    message: () =>
      'a crash of the server can cut off its binary log, so that replicas lack changes that were acknowledged: set sync_binlog = 1',
  },
  {
    code: 'read_only',
    isFound: ({ settings }) =>
      ['read_only', 'super_read_only', 'innodb_read_only'].some(
        (name) => (settings.get(name) ?? 'OFF') !== 'OFF',
      ),
    message: () =>
      'the server is only for reading, as replicas are: writes fail, and it may go on accepting what was revoked; connect to the primary',
  },
  {
    code: 'isolation_read_uncommitted',
    isFound: ({ settings }) =>
      (settings.get('transaction_isolation') ?? settings.get('tx_isolation')) ===
      'READ-UNCOMMITTED',
    message: () =>
      'reads see changes that may yet be undone: have the isolation level of the pool at READ COMMITTED or above',
  },
  {
    code: 'cluster_reads_stale',
    isFound: ({ settings }) =>
      settings.get('wsrep_on') === 'ON' && Number(settings.get('wsrep_sync_wait')) % 2 === 0,
    message: () =>
      'the other nodes of the cluster may go on accepting for a moment what was revoked on one: set wsrep_sync_wait = 1',
  },
  {
    code: 'packets_too_small',
    isFound: ({ settings }) =>
      Number(settings.get('max_allowed_packet') ?? MIN_PACKET) < MIN_PACKET,
    message: () =>
      'tokens with thousands of long scopes cannot be kept: set max_allowed_packet = 16M or more',
  },
  {
    code: 'clock_skew',
    isFound: ({ skewMs }) => skewMs > MAX_SKEW_MS,
    message: ({ skewMs }) =>
      `the clocks of the server and of this machine differ by ${skewMs} ms, and tokens expire by the latter: keep the clocks of all machines in time (NTP)`,
  },
];

async function factsOf(session: Session, table: Table): Promise<Facts> {
  const variables = await session.query('SHOW VARIABLES');
  const columns = await session.query(
    `SELECT COLUMN_NAME AS name, COLLATION_NAME IS NOT NULL AS is_text,
       CHARACTER_MAXIMUM_LENGTH AS bytes
     FROM information_schema.COLUMNS WHERE ${isTable(table)}`,
  );
  const indexes = await session.query(
    `SELECT INDEX_NAME AS name FROM information_schema.STATISTICS WHERE ${isTable(table)}`,
  );
  return {
    settings: new Map(variables.map((row) => [String(row['Variable_name']), String(row['Value'])])),
    skewMs: await skewOf(session),
    engine: (await stateOf(session, table))?.engine,
    columns: new Map(
      columns.map(({ name, is_text, bytes }) => [
        String(name),
        { isText: Number(is_text) === 1, bytes: Number(bytes) },
      ]),
    ),
    indexes: new Set(indexes.map(({ name }) => String(name))),
  };
}

function lacking({ columns, indexes }: Facts): string[] {
  const bytes: ReadonlyMap<string, number> = new Map(Object.entries(BYTES));
  const names = [...COLUMNS, 'changed_at', 'ends_at'];
  return [
    ...names.filter((name) => (columns.get(name)?.bytes ?? -1) < (bytes.get(name) ?? 0)),
    ...INDEXES.filter((name) => !indexes.has(name)),
  ];
}

function texts({ columns }: Facts): string[] {
  return Object.keys(BYTES).filter((name) => columns.get(name)?.isText);
}

/** By how much the clocks differ at least, however long the answer took. */
async function skewOf(session: Session): Promise<number> {
  const before = systemClock.now().getTime();
  const [row] = await session.query(`SELECT ${SERVER_TIME} AS server_time`);
  const after = systemClock.now().getTime();
  const server = Number(row?.['server_time']) / 1000;
  return Math.round(Math.max(before - server, server - after, 0));
}

interface TableState {
  readonly engine: string;
  /** Undefined when the table is not ours. */
  readonly version: number | undefined;
}

async function stateOf(session: Session, table: Table): Promise<TableState | undefined> {
  const [row] = await session.query(
    `SELECT ENGINE AS engine, TABLE_COMMENT AS comment FROM information_schema.TABLES
     WHERE ${isTable(table)}`,
  );
  if (row === undefined) return undefined;
  const comment = String(row['comment']);
  const isOurs = comment.startsWith(`${COMMENT} `);
  return {
    engine: String(row['engine']),
    version: isOurs ? Number(comment.slice(COMMENT.length)) : undefined,
  };
}

/** Names hold no quotes. */
function isTable({ database, name }: Table): string {
  const schema = database === undefined ? 'DATABASE()' : `'${database}'`;
  return `TABLE_SCHEMA = ${schema} AND TABLE_NAME = '${name}'`;
}
