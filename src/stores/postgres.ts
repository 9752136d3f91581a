import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock, withDeadline } from '../clock.ts';
import { isTokenError, TokenError } from '../errors.ts';
import type { PageQuery, StoreFinding, TokenStore, Unsubscribe } from '../store.ts';
import type { TokenId, TokenRecord } from '../token.ts';
import { COLUMNS, type Column, RowReader, toValues } from './rows.ts';

/** A statement, as the store gives it to a {@link PostgresPool}: a part of pg's `QueryConfig`. */
export interface PostgresQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly name?: string;
  /** After so many milliseconds the driver gives up the query. */
  readonly query_timeout?: number;
}

/** A connection that was checked out of a {@link PostgresPool}. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<{ readonly rows: readonly unknown[] }>;
  on(event: 'error' | 'end', listener: () => void): unknown;
  on(event: 'notification', listener: (message: PostgresNotification) => void): unknown;
  /** Gives the connection back, or ends it. */
  release(destroy?: boolean): void;
}

/** What `NOTIFY` sends. */
export interface PostgresNotification {
  readonly channel: string;
  readonly payload?: string | undefined;
}

/**
 * A pool of connections, as far as the store uses one: a `Pool` of `pg`.
 *
 * @example
 * const pool: PostgresPool = new Pool({
 *   connectionString: 'postgres://acme@db.internal/acme',
 *   connectionTimeoutMillis: 2000, // waits for ever by default
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

/** Which table holds the tokens. */
export interface PostgresTableOptions {
  /**
   * Its name, with or without a schema (`auth.tokens`): letters, digits and underscores, at most 48
   * for the table. Upper case counts. @default 'tokenwright_tokens'
   */
  readonly table?: string | undefined;
}

/** How a {@link PostgresTokenStore} works. */
export interface PostgresStoreOptions extends PostgresTableOptions {
  /** How long a statement may take, in milliseconds, from 1 to 60 000. @default 2000 */
  readonly deadlineMs?: number | undefined;
  /**
   * Lets the server keep prepared statements for each connection. `false` costs speed; a pooler in
   * transaction mode that does not know them (PgBouncer before 1.21, or with
   * `max_prepared_statements = 0`) needs it. @default true
   */
  readonly prepare?: boolean | undefined;
}

/**
 * Keeps tokens in PostgreSQL: durable, the system of record for many processes.
 *
 * - **The pool** is the host's, and has to lead to the primary: a replica would still show what was
 *   revoked. Give it `connectionTimeoutMillis` and `statement_timeout`, which are unbounded by
 *   default: without the one, calls pile up while the server is away; without the other, statements
 *   that were given up go on in the server and fill its connections. A connection of the pool that
 *   breaks while idle is no error here: where the host does not listen to the pool's `error`
 *   event, which would end the process, the store does.
 * - **Writes** are on disk before their promise resolves, also where the host has set
 *   `synchronous_commit = off`.
 * - **A call that takes longer** than `deadlineMs` rejects with `store_unavailable` and its
 *   connection is closed; a write may still be carried out. `revokeAll` is one step, and takes some
 *   ten seconds for a million tokens: an account with as many needs longer deadlines, also the
 *   service's and the server's.
 * - **`watch`** takes one connection of the pool for as long as it listens. It does not work through
 *   a pooler in transaction mode, where hints get lost.
 *
 * The table is made by {@link migrate}, or by the text of {@link migrationSql}.
 *
 * @example
 * const pool = new Pool({ connectionTimeoutMillis: 2000, statement_timeout: 2000 });
 * await migrate(pool);
 * const tokens = new TokenService({ store: new PostgresTokenStore(pool), keys, prefix: 'acme' });
 */
export class PostgresTokenStore implements TokenStore {
  readonly #pool: PostgresPool;
  readonly #table: Table;
  readonly #deadlineMs: number;
  readonly #statements: Statements;
  readonly #rows = new RowReader();
  readonly #listeners = new Set<Listener>();

  /**
   * Connects to nothing; the first call does.
   *
   * @throws {TokenError} `invalid_options`
   */
  constructor(pool: PostgresPool, options: PostgresStoreOptions = {}) {
    this.#pool = readPool(pool);
    this.#table = readTable(options);
    this.#deadlineMs = readDeadline(options.deadlineMs ?? DEFAULT_DEADLINE_MS);
    this.#statements = statementsOf(this.#table, options.prepare ?? true);
    if (pool.listenerCount('error') === 0) pool.on('error', () => {});
  }

  async insert(record: TokenRecord): Promise<void> {
    const inserted = await this.#write(this.#statements.insert, toValues(record));
    if (inserted === 0) throw new TokenError('id_taken', 'this id is taken');
  }

  async find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    if (ids.length === 0) return [];
    if (ids.length > 1) return this.#findMany(ids);
    const [cells] = await this.#read(this.#statements.find, ids);
    return [cells && this.#rows.readCells(cells)];
  }

  async #findMany(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    const rows = await this.#read(this.#statements.findMany, [ids]);
    const byId = new Map(rows.map((cells) => [cells[0], cells]));
    return ids.map((id) => {
      const cells = byId.get(id);
      return cells && this.#rows.readCells(cells);
    });
  }

  async page({ account, after, limit, liveAt }: PageQuery): Promise<TokenRecord[]> {
    const start = [after?.createdAt.getTime() ?? BEFORE_ALL, after?.id ?? ''];
    const values = [account, liveAt.getTime(), ...start, limit];
    const rows = await this.#read(this.#statements.page, values);
    return rows.map((cells) => this.#rows.readCells(cells));
  }

  async replace(next: TokenRecord): Promise<boolean> {
    const values = [...toValues(next).slice(2), next.id, next.account, next.version - 1];
    return (await this.#write(this.#statements.replace, values)) > 0;
  }

  async revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    const values = [at.getTime(), id, account, version ?? null];
    return (await this.#write(this.#statements.revoke, values)) > 0;
  }

  async revokeAll(account: string, at: Date): Promise<number> {
    return this.#write(this.#statements.revokeAll, [at.getTime(), account]);
  }

  async purge(before: Date, limit: number): Promise<number> {
    return this.#write(this.#statements.purge, [before.getTime(), limit]);
  }

  /**
   * Listens on a connection of its own, which it takes from the pool and keeps until it is ended,
   * until `close`, or until the pool is ended.
   *
   * @throws {TokenError} `store_unavailable`; `invalid_options` for a pool with one connection only
   */
  async watch(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe> {
    if (this.#pool.options.max < 2) throw new TokenError('invalid_options', POOL_TOO_SMALL);
    const listener = new Listener(this.#pool, this.#table.channel, this.#deadlineMs, onChange);
    const end = (): void => {
      this.#listeners.delete(listener);
      listener.end();
    };
    this.#listeners.add(listener);
    try {
      await listener.start();
    } catch (error) {
      end();
      throw this.#refusal(error);
    }
    return async () => end();
  }

  async doctor(): Promise<StoreFinding[]> {
    const askedAt = systemClock.now().getTime();
    const asking = this.#run(this.#statements.inspect, [this.#table.name]);
    const [row] = await withDeadline(asking, this.#deadlineMs).catch((error) => {
      throw this.#refusal(error);
    });
    const answeredAt = systemClock.now().getTime();
    const seen = row as Inspection;
    const time = Number(seen.now);
    const facts: Facts = {
      ...seen,
      schema: schemaVersion(seen.comment),
      // What the way there and back may have taken is no skew.
      skewMs: Math.max(0, askedAt - time, time - answeredAt),
      deadlineMs: this.#deadlineMs,
      connectionTimeoutMillis: this.#pool.options.connectionTimeoutMillis ?? 0,
    };
    return CHECKS.filter(({ isFound }) => isFound(facts)).map(({ code, message }) => ({
      code,
      message: message(facts),
    }));
  }

  async close(): Promise<void> {
    for (const listener of this.#listeners) listener.end();
    this.#listeners.clear();
  }

  async #read(statement: Statement, values: readonly unknown[]): Promise<readonly unknown[][]> {
    const rows = (await this.#run(statement, values)) as readonly { readonly cells: string }[];
    return rows.map(({ cells }) => JSON.parse(cells));
  }

  async #write(statement: Statement, values: readonly unknown[]): Promise<number> {
    const [row] = (await this.#run(statement, values)) as readonly { readonly changed: unknown }[];
    // Without a count nothing is known, least of all that there was no such record.
    if (typeof row?.changed !== 'number') throw new TokenError('store_unavailable', NOT_USABLE);
    return row.changed;
  }

  async #run(statement: Statement, values: readonly unknown[]): Promise<readonly unknown[]> {
    const query = { ...statement, values, query_timeout: this.#deadlineMs };
    const deadline = performance.now() + this.#deadlineMs;
    for (;;) {
      try {
        return (await this.#pool.query(query)).rows;
      } catch (error) {
        if (!isConflict(error) || performance.now() > deadline) throw this.#refusal(error);
      }
    }
  }

  #refusal(error: unknown): TokenError {
    if (isTokenError(error)) return error;
    const state = stateOf(error);
    if (state === undefined) this.#dropIdle();
    return new TokenError('store_unavailable', REASONS.get(state) ?? NOT_USABLE);
  }

  /**
   * A connection that broke without a word from the server makes those suspect that lie idle: one
   * after the other, each would cost a call its deadline.
   */
  #dropIdle(): void {
    for (let left = this.#pool.idleCount; left > 0; left -= 1) {
      this.#pool.connect().then(
        (client) => client.release(true),
        () => {},
      );
    }
  }
}

/**
 * Creates the table, or brings it up to date. It may be called by many processes at once and as
 * often as one likes: where nothing is to be done, nothing is, and no right to create is needed.
 *
 * @throws {TokenError} `store_unavailable`; `invalid_options` when the role may not create it, when
 * another table has its name, or when it was made by a newer version
 * @example
 * await migrate(pool, { table: 'auth.tokens' });
 */
export async function migrate(
  pool: PostgresPool,
  options: PostgresTableOptions = {},
): Promise<void> {
  const table = readTable(options);
  const client = await checkedOut(readPool(pool), MIGRATION_DEADLINE_MS).catch((error) => {
    throw migrationRefusal(error, table);
  });
  let isDone = false;
  try {
    await migrateOver(client, table);
    isDone = true;
  } catch (error) {
    throw migrationRefusal(error, table);
  } finally {
    // Its end takes an open transaction with it.
    client.release(!isDone);
  }
}

/**
 * The SQL that makes the table, for those who own their migrations.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * console.log(migrationSql({ table: 'auth.tokens' })); // CREATE TABLE "auth"."tokens" (…
 */
export function migrationSql(options: PostgresTableOptions = {}): string {
  return schemaSql(readTable(options));
}

const DEFAULT_TABLE = 'tokenwright_tokens';
const DEFAULT_DEADLINE_MS = 2000;
const MAX_DEADLINE_MS = 60_000;
const MIGRATION_DEADLINE_MS = 30_000;
const SCHEMA_VERSION = 1;
/** Any number, as long as it stays the same: migrations take turns by it. */
const MIGRATION_LOCK = 8_370_511_261;

/** Later than any date: the place before the first record of a page. */
const BEFORE_ALL = Number.MAX_SAFE_INTEGER;
/** Ids in one hint, whose text is limited to 8000 bytes. */
const MAX_HINTED = 200;
const ALL = '*';

const PING_PAUSE_MS = 1000;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1000;
const MAX_SKEW_MS = 1000;

const NOT_USABLE =
  'PostgreSQL cannot be used: it is away, refuses this, or did not answer in time; tokenwright doctor --store URL tells which';
const NO_STATEMENTS =
  'PostgreSQL is behind a pooler that does not know prepared statements: set prepare: false';
const POOL_TOO_SMALL =
  'the pool has one connection only, and watch needs one for itself: its max must be 2 or more';

/** By SQLSTATE: what the host can do something about. */
const REASONS: ReadonlyMap<string | undefined, string> = new Map([
  ['42P01', 'the table of the tokens is not there: call migrate(), or run migrationSql()'],
  ['42703', 'the table of the tokens is not up to date: call migrate()'],
  ['42501', 'the role of the pool may not read and write the table of the tokens'],
  ['26000', NO_STATEMENTS],
  ['42P05', NO_STATEMENTS],
  ['25006', 'PostgreSQL takes no writes: it is a replica, or set to be read-only'],
]);

interface Table {
  /** Quoted, with its schema where one is given. */
  readonly name: string;
  /** Quoted. The indexes live in the schema of the table. */
  readonly byAccount: string;
  readonly byEnd: string;
  readonly channel: string;
}

function readTable({ table = DEFAULT_TABLE }: PostgresTableOptions): Table {
  const parts = /^(?:([a-z_]\w{0,62})\.)?([a-z_]\w{0,47})$/i.exec(table);
  if (typeof table !== 'string' || parts === null) {
    throw new TokenError(
      'invalid_options',
      'table must be a name such as "tokens" or "auth.tokens": letters, digits and underscores, at most 48 of them for the table',
    );
  }
  const [, schema, name] = parts;
  return {
    name: schema === undefined ? `"${name}"` : `"${schema}"."${name}"`,
    byAccount: `"${name}_by_account"`,
    byEnd: `"${name}_by_end"`,
    // Without the schema, so that those who name it and those who do not hear each other.
    channel: name as string,
  };
}

function readDeadline(deadlineMs: number): number {
  const isInRange = deadlineMs >= 1 && deadlineMs <= MAX_DEADLINE_MS;
  if (Number.isInteger(deadlineMs) && isInRange) return deadlineMs;
  throw new TokenError(
    'invalid_options',
    `deadlineMs must be a whole number from 1 to ${MAX_DEADLINE_MS}`,
  );
}

function schemaSql({ name, byAccount, byEnd }: Table): string {
  return `CREATE TABLE ${name} (
  id text COLLATE "C" PRIMARY KEY,
  account text COLLATE "C" NOT NULL,
  prefix text COLLATE "C" NOT NULL,
  kid text COLLATE "C" NOT NULL,
  digest bytea NOT NULL,
  box bytea,
  scopes text COLLATE "C" NOT NULL,
  requested text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  version bigint NOT NULL,
  name text COLLATE "C",
  metadata text COLLATE "C",
  revoked_at bigint,
  previous_digest bytea,
  previous_until bigint
);
CREATE INDEX ${byAccount} ON ${name} (account, created_at DESC, id DESC)
  WHERE revoked_at IS NULL;
CREATE INDEX ${byEnd} ON ${name} (least(expires_at, revoked_at));
COMMENT ON TABLE ${name} IS 'tokenwright schema ${SCHEMA_VERSION}';
`;
}

function schemaVersion(comment: string | null): number {
  return Number(/^tokenwright schema (\d+)$/.exec(comment ?? '')?.[1] ?? 0);
}

interface Statement {
  readonly text: string;
  readonly name?: string;
}

interface Statements {
  readonly insert: Statement;
  readonly find: Statement;
  readonly findMany: Statement;
  readonly page: Statement;
  readonly replace: Statement;
  readonly revoke: Statement;
  readonly revokeAll: Statement;
  readonly purge: Statement;
  readonly inspect: Statement;
}

const BYTES: readonly Column[] = ['digest', 'box', 'previous_digest'];

/** A row as one text: the driver takes its time over each column. */
const CELLS = `json_build_array(${COLUMNS.map((column) =>
  BYTES.includes(column) ? `encode(${column}, 'hex')` : column,
).join(', ')})::text`;

function statementsOf({ name, channel }: Table, isPrepared: boolean): Statements {
  const columns = COLUMNS.join(', ');
  const read = `SELECT ${CELLS} AS cells FROM ${name}`;
  const changeable = COLUMNS.slice(2);
  const count = changeable.length;
  const statement = (text: string): Statement =>
    isPrepared ? { name: nameOf(text), text } : { text };
  return {
    insert: statement(
      durable(`INSERT INTO ${name} (${columns})
         VALUES (${COLUMNS.map((_, index) => `$${index + 1}`).join(', ')})
         ON CONFLICT (id) DO NOTHING`),
    ),
    find: statement(`${read} WHERE id = $1`),
    findMany: statement(`${read} WHERE id = ANY($1)`),
    page: statement(
      `${read}
       WHERE account = $1 AND revoked_at IS NULL AND expires_at > $2 AND (created_at, id) < ($3, $4)
       ORDER BY created_at DESC, id DESC LIMIT $5`,
    ),
    replace: statement(
      durable(
        `UPDATE ${name} SET ${changeable.map((column, index) => `${column} = $${index + 1}`).join(', ')}
         WHERE id = $${count + 1} AND account = $${count + 2} AND version = $${count + 3}
           AND revoked_at IS NULL`,
        channel,
      ),
    ),
    revoke: statement(
      durable(
        `UPDATE ${name} SET revoked_at = $1
         WHERE id = $2 AND account = $3 AND revoked_at IS NULL AND version = coalesce($4, version)`,
        channel,
      ),
    ),
    revokeAll: statement(
      durable(
        `UPDATE ${name} SET revoked_at = $1 WHERE account = $2 AND revoked_at IS NULL`,
        channel,
      ),
    ),
    // An array, so that the plan is always by the primary key. Not SKIP LOCKED: what another call
    // holds it may yet leave, and fewer than asked for has to mean that none are left.
    purge: statement(
      durable(
        `DELETE FROM ${name} WHERE id = ANY(ARRAY(
           SELECT id FROM ${name} WHERE least(expires_at, revoked_at) < $1
           ORDER BY least(expires_at, revoked_at) LIMIT $2 FOR UPDATE))`,
      ),
    ),
    inspect: statement(INSPECT),
  };
}

/** Statements of two tables, or of two versions of this library, may meet on one connection. */
function nameOf(text: string): string {
  return `tokenwright_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
}

/**
 * A write in one round trip, which commits as `synchronous_commit` says when it ends: on, unless the
 * host asks for even more. Where something was changed and there is a channel, its ids are sent.
 */
function durable(write: string, channel?: string): string {
  return `WITH changed AS (${write} RETURNING id)
    SELECT count(*)::integer AS changed,
      set_config('synchronous_commit', CASE current_setting('synchronous_commit')
        WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)
      ${channel === undefined ? '' : `, ${hint(channel)}`}
    FROM changed`;
}

function hint(channel: string): string {
  return `CASE WHEN count(*) > 0 THEN pg_notify('${channel}',
    CASE WHEN count(*) > ${MAX_HINTED} THEN '${ALL}'
      ELSE (SELECT string_agg(id, ',') FROM changed) END) END`;
}

function idsOf(payload: string): readonly TokenId[] | 'all' {
  return payload === ALL ? 'all' : (payload.split(',') as TokenId[]);
}

/** Hears of changes on one connection, and takes another one when it is lost. */
class Listener {
  readonly #pool: PostgresPool;
  readonly #channel: string;
  readonly #deadlineMs: number;
  readonly #onChange: (ids: readonly TokenId[] | 'all') => void;
  #client: PostgresClient | undefined;
  #isEnded = false;

  constructor(
    pool: PostgresPool,
    channel: string,
    deadlineMs: number,
    onChange: (ids: readonly TokenId[] | 'all') => void,
  ) {
    this.#pool = pool;
    this.#channel = channel;
    this.#deadlineMs = deadlineMs;
    this.#onChange = onChange;
  }

  async start(): Promise<void> {
    await this.#listen(await checkedOut(this.#pool, this.#deadlineMs));
  }

  end(): void {
    this.#isEnded = true;
    this.#client?.release(true);
    this.#client = undefined;
  }

  async #listen(client: PostgresClient): Promise<void> {
    client.on('error', () => this.#lose(client));
    client.on('end', () => this.#lose(client));
    client.on('notification', (message) => this.#hear(message));
    try {
      await client.query({ text: `LISTEN "${this.#channel}"`, query_timeout: this.#deadlineMs });
    } catch (error) {
      client.release(true);
      throw error;
    }
    if (this.#isEnded) return client.release(true);
    this.#client = client;
    this.#keepAlive(client);
  }

  #hear({ channel, payload = '' }: PostgresNotification): void {
    if (channel === this.#channel && !this.#isEnded) this.#onChange(idsOf(payload));
  }

  /** Asks now and then: the other side may have gone without a word. */
  async #keepAlive(client: PostgresClient): Promise<void> {
    for (;;) {
      await delay(PING_PAUSE_MS, undefined, { ref: false });
      if (client !== this.#client) return;
      // The end of a pool waits for all that was checked out.
      if (this.#pool.ending) return this.end();
      try {
        await client.query({ text: 'SELECT 1', query_timeout: this.#deadlineMs });
      } catch {
        return this.#lose(client);
      }
    }
  }

  #lose(client: PostgresClient): void {
    if (client !== this.#client) return;
    this.#client = undefined;
    client.release(true);
    this.#restore();
    this.#onChange('all');
  }

  /** One attempt after the other, since one that hangs holds a place in the pool. */
  async #restore(): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (!this.#isEnded && !this.#pool.ending) {
      try {
        await this.#listen(await this.#pool.connect());
        break;
      } catch {
        await delay(pauseMs, undefined, { ref: false });
        pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
      }
    }
    if (this.#client !== undefined) this.#onChange('all');
  }
}

/** A connection of the pool. One that comes too late goes back. */
async function checkedOut(pool: PostgresPool, deadlineMs: number): Promise<PostgresClient> {
  const client = pool.connect();
  try {
    return await withDeadline(client, deadlineMs);
  } catch (error) {
    client.then(
      (late) => late.release(),
      () => {},
    );
    throw error;
  }
}

async function migrateOver(client: PostgresClient, table: Table): Promise<void> {
  const run = async (text: string, values?: readonly unknown[]): Promise<readonly unknown[]> => {
    const query = { text, query_timeout: MIGRATION_DEADLINE_MS };
    return (await client.query(values === undefined ? query : { ...query, values })).rows;
  };
  // Whatever the host has set: what is read after the lock has to be of after the lock.
  await run('BEGIN ISOLATION LEVEL READ COMMITTED');
  // The pool's own bound is made for single statements, not for waiting one's turn.
  await run(`SET LOCAL statement_timeout = ${MIGRATION_DEADLINE_MS}`);
  await run('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
  const [row] = (await run("SELECT obj_description(to_regclass($1), 'pg_class') AS comment", [
    table.name,
  ])) as readonly [Pick<Inspection, 'comment'>];
  const version = schemaVersion(row.comment);
  if (version > SCHEMA_VERSION) throw tooNew(table, version);
  if (version < SCHEMA_VERSION) await run(schemaSql(table));
  await run('COMMIT');
}

function tooNew({ name }: Table, version: number): TokenError {
  return new TokenError(
    'invalid_options',
    `the table ${name} has schema version ${version}; this version of the library knows ${SCHEMA_VERSION}: use a newer one`,
  );
}

function readPool(pool: PostgresPool): PostgresPool {
  if (typeof pool?.connect === 'function' && typeof pool.on === 'function') return pool;
  throw new TokenError('invalid_options', 'pool must be a Pool of pg, as new pg.Pool makes it');
}

function migrationRefusal(error: unknown, { name }: Table): TokenError {
  if (isTokenError(error)) return error;
  const state = stateOf(error);
  if (state === '42501' || state === '3F000') {
    return new TokenError(
      'invalid_options',
      `the table ${name} cannot be created: its schema is not there, or the role may not create in it; have an administrator run migrationSql()`,
    );
  }
  if (state === '42P07') {
    return new TokenError(
      'invalid_options',
      `there is something named ${name}, or as one of its indexes, that is not of this library, whose tables have the comment 'tokenwright schema ${SCHEMA_VERSION}': choose another name`,
    );
  }
  return new TokenError('store_unavailable', REASONS.get(state) ?? NOT_USABLE);
}

/** The SQLSTATE with which the server refused; none when the connection is what failed. */
function stateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined;
  return String(error.code);
}

/**
 * Whether a statement lost against another one, and may go otherwise now: a serialization failure,
 * where the host has set a stricter isolation than "read committed", or a deadlock.
 */
function isConflict(error: unknown): boolean {
  const state = stateOf(error);
  return state === '40001' || state === '40P01';
}

const INSPECT = `
  SELECT to_regclass($1) IS NOT NULL AS "isThere",
    obj_description(to_regclass($1), 'pg_class') AS comment,
    (SELECT string_agg(attname, ', ') FROM pg_attribute
      JOIN pg_collation ON pg_collation.oid = attcollation
      WHERE attrelid = to_regclass($1) AND attname IN ('id', 'account')
        AND collname NOT IN ('C', 'POSIX')) AS collated,
    pg_is_in_recovery() AS "isReplica",
    current_setting('synchronous_commit') AS "synchronousCommit",
    current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS "fullPageWrites",
    current_setting('default_transaction_isolation') AS isolation,
    (SELECT setting::integer FROM pg_settings WHERE name = 'statement_timeout')
      AS "statementTimeoutMs",
    floor(extract(epoch FROM clock_timestamp()) * 1000)::text AS now`;

interface Inspection {
  readonly isThere: boolean;
  readonly comment: string | null;
  readonly collated: string | null;
  readonly isReplica: boolean;
  readonly synchronousCommit: string;
  readonly fsync: string;
  readonly fullPageWrites: string;
  readonly isolation: string;
  readonly statementTimeoutMs: number;
  readonly now: string;
}

interface Facts extends Inspection {
  readonly schema: number;
  readonly skewMs: number;
  readonly deadlineMs: number;
  readonly connectionTimeoutMillis: number;
}

interface Check {
  readonly code: string;
  isFound(facts: Facts): boolean;
  message(facts: Facts): string;
}

const CHECKS: readonly Check[] = [
  {
    code: 'schema_missing',
    isFound: ({ schema }) => schema < SCHEMA_VERSION,
    message: ({ isThere }) =>
      `no token can be read or written: the table is ${isThere ? 'not up to date, or not of this library' : 'not there'}; call migrate(), or run migrationSql()`,
  },
  {
    code: 'collation_not_c',
    isFound: ({ collated }) => collated !== null,
    message: ({ collated }) =>
      `text may be compared otherwise than byte by byte, so that pages may skip tokens: the collation of ${collated} must be "C"`,
  },
  {
    code: 'replica',
    isFound: ({ isReplica }) => isReplica,
    message: () =>
      'what was revoked may still be accepted, and nothing can be written: the pool is connected to a replica; connect it to the primary',
  },
  {
    code: 'synchronous_commit_off',
    isFound: ({ synchronousCommit }) => synchronousCommit === 'off',
    message: () =>
      'other writes than those of the token store may be lost in a crash after they were acknowledged: synchronous_commit is off; the store turns it on for each of its own writes, so that tokens are safe',
  },
  {
    code: 'fsync_off',
    isFound: ({ fsync }) => fsync === 'off',
    message: () =>
      'acknowledged writes may be lost, and the database damaged, when the machine goes down: fsync is off; turn it on',
  },
  {
    code: 'full_page_writes_off',
    isFound: ({ fullPageWrites }) => fullPageWrites === 'off',
    message: () =>
      'tokens may be damaged when the machine goes down in the middle of a write: full_page_writes is off; turn it on, unless the file system writes whole pages',
  },
  {
    code: 'isolation_not_read_committed',
    isFound: ({ isolation }) => isolation !== 'read committed',
    message: ({ isolation }) =>
      `writes that meet are repeated until one wins, each time on a new connection, and may end as store_unavailable under load: default_transaction_isolation is "${isolation}"; set "read committed" for the role of the pool`,
  },
  {
    code: 'clock_skew',
    isFound: ({ skewMs }) => skewMs > MAX_SKEW_MS,
    message: ({ skewMs }) =>
      `tokens may be accepted after their expiry, or refused before: the clocks of this process and of the server differ by ${skewMs} ms; synchronize them`,
  },
  {
    code: 'no_statement_timeout',
    isFound: ({ statementTimeoutMs }) => statementTimeoutMs === 0,
    message: ({ deadlineMs }) =>
      `statements that were given up go on in the server and may fill its connections: there is no statement_timeout; set it, in the options of the pool or for its role, to ${deadlineMs} ms`,
  },
  {
    code: 'no_connection_timeout',
    isFound: ({ connectionTimeoutMillis }) => connectionTimeoutMillis === 0,
    message: ({ deadlineMs }) =>
      `calls pile up while the server is away, and may hold the pool long after: set connectionTimeoutMillis in the options of the pool, to ${deadlineMs} or less`,
  },
];
