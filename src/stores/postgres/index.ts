import { DEFAULT_DEADLINE_MS, MAX_DEADLINE_MS } from '../../bounds.ts';
import { isTokenError, storeUnavailable, TokenError } from '../../errors.ts';
import { notify } from '../../events.ts';
import type { EngineStore, Scratch } from '../../ports/engine-store.ts';
import type { LeaseStore } from '../../ports/lease-store.ts';
import type { RequestStore } from '../../ports/request-store.ts';
import type {
  CountQuery,
  PageQuery,
  Position,
  PruneQuery,
  PurgedRecords,
  PurgeQuery,
  QuotaHolder,
  ScannedRecords,
  ScanQuery,
  StoreFinding,
  TokenCounts,
  Unsubscribe,
} from '../../ports/token-store.ts';
import type { UsageStore } from '../../ports/usage-store.ts';
import type { TokenId, TokenRecord } from '../../token/record.ts';
import { expiryRange } from '../shared/expiry-range.ts';
import { readPrepare, readStandby, readWholeNumber } from '../shared/options.ts';
import { Positions } from '../shared/positions.ts';
import { digestsOf, type KnownListsById, RowReader, scanned, toValues } from '../shared/rows.ts';
import { storeInTransaction } from '../shared/transaction.ts';
import { type PostgresPool, type PostgresQuery, readPool, Session } from './client.ts';
import { examine } from './doctor.ts';
import { Hints } from './hints.ts';
import { PostgresLeases } from './leases.ts';
import { PostgresRequests } from './requests.ts';
import { type MigrationOptions, readTables, type Tables } from './schema.ts';
import { scratchTables } from './scratch.ts';
import { type ChangeCount, cellsIn, type Statements, statementsFor } from './statements.ts';
import { type PostgresConnection, type StoreParts, Transaction } from './transaction.ts';
import { PostgresUsage } from './usage.ts';
import { Listener } from './watch.ts';

export { fromDrizzle, fromKysely, fromPostgresJs, fromPrisma } from './orm.ts';
export {
  type MigrationOptions,
  type MigrationSqlOptions,
  migrate,
  migrationSql,
} from './schema.ts';
export type { PostgresConnection } from './transaction.ts';

/** How a {@link PostgresTokenStore} works. */
export interface PostgresStoreOptions extends MigrationOptions {
  /** How long a statement may take, in milliseconds, from 1 to 60 000. @default 2000 */
  readonly deadlineMs?: number | undefined;
  /**
   * Lets the server keep prepared statements for each connection. `false` costs speed. Set it for a
   * pooler in transaction mode that does not know prepared statements (PgBouncer before 1.21, or with
   * `max_prepared_statements = 0`). @default true
   */
  readonly prepare?: boolean | undefined;
  /**
   * Whether reads may come from a standby (a server in recovery, such as a read replica). A standby
   * still accepts what was revoked on the primary, for as long as it lags behind, also with `fresh`.
   * `'refuse'` fails each call on a standby with `store_unavailable`. Set `'allow'` only if a token may
   * be accepted for that long after it was revoked; no setting of the cache bounds that time.
   * @default 'refuse'
   */
  readonly standby?: 'refuse' | 'allow' | undefined;
  /**
   * The memory for parsed lists of scopes, in bytes, as an estimate: from 1 048 576 to
   * 17 179 869 184 (16 GiB). Equal lists count once. A token whose list does not fit is still found,
   * but more slowly. @default 33 554 432 (32 MiB)
   */
  readonly maxListBytes?: number | undefined;
}

/**
 * Stores tokens in PostgreSQL: durable, the system of record for many processes. {@link usage} counts how they are
 * used, {@link leases} the uses of limited ones, and {@link requests} keeps requests for tokens, each in a table of
 * its own.
 *
 * - **The pool** belongs to the host and must lead to the primary: calls on a standby, which may still
 *   accept a revoked token, fail with `store_unavailable`. Set `connectionTimeoutMillis` and
 *   `statement_timeout`, which have no limit by default. Without the first, calls pile up while the server
 *   is down. Without the second, statements that the store has given up fill the connections of the
 *   server. If the host does not listen to the pool's `error` event, the store does: otherwise, an idle
 *   connection that breaks ends the process.
 * - **Writes** are on disk before their promise resolves, even if the host has set
 *   `synchronous_commit = off`.
 * - **Reads** whose connection was lost, such as by a restart of the server, are sent once more. Writes are
 *   not, because they may have been carried out.
 * - **A call that takes longer** than `deadlineMs` rejects with `store_unavailable` and its
 *   connection is closed; a write may still be carried out.
 * - **`watch`** takes one connection of the pool for as long as it listens. It does not work through
 *   a pooler in transaction mode, which loses notifications.
 *
 * {@link migrate} creates the tables, or run the text of {@link migrationSql}.
 *
 * @example
 * const pool = new Pool({ connectionTimeoutMillis: 2000, statement_timeout: 2000 });
 * await migrate(pool);
 * const tokens = new TokenService({ store: new PostgresTokenStore(pool), keys, prefix: 'acme' });
 */
export class PostgresTokenStore implements EngineStore {
  /**
   * Counts how tokens are used. A batch is one statement. It commits as the host has set `synchronous_commit`:
   * with `off`, a crash of the server may cost the last counts. If a statement takes longer than `deadlineMs`,
   * the counts may still be added.
   */
  readonly usage: UsageStore;
  /**
   * Counts the uses of limited tokens. A call is one statement. What it grants is on disk before its promise
   * resolves. The clock of the server decides whether a window has ended. If a statement takes longer than
   * `deadlineMs`, what it may have granted is lost.
   */
  readonly leases: LeaseStore;
  /** Keeps requests for tokens. What changes is on disk before its promise resolves. */
  readonly requests: RequestStore;
  readonly #session: Session;
  readonly #tables: Tables;
  readonly #statements: Statements;
  readonly #rows: RowReader;
  readonly #hints: Hints;
  readonly #positions = new Positions();
  readonly #listeners = new Set<Listener>();
  readonly #parts: StoreParts;
  /** Undefined for a store on a pool. */
  readonly #transaction: Transaction | undefined;
  /** Whether the server leaves out lists that are known here. A refusal would end a transaction. */
  #canLeaveOut: boolean;

  /**
   * Does not connect; the first call does.
   *
   * @throws {TokenError} `invalid_options`
   */
  constructor(pool: PostgresPool, options: PostgresStoreOptions = {}) {
    this.#transaction = pool instanceof Transaction ? pool : undefined;
    this.#canLeaveOut = this.#transaction === undefined;
    this.#parts = this.#transaction?.parts ?? partsOn(readPool(pool), options);
    const { session, tables, statements, rows, usage, leases, requests } = this.#parts;
    this.#session = this.#transaction
      ? new Session(this.#transaction, session.deadlineMs)
      : session;
    this.#tables = tables;
    this.#statements = statements;
    this.#rows = rows;
    this.usage = usage;
    this.leases = leases;
    this.requests = requests;
    this.#hints = new Hints(this.#session, tables.channel);
  }

  /**
   * Returns a store whose calls run in your own transaction, on its connection. What it changes is
   * committed or rolled back with everything else. Make a service on it with your own options, and
   * use it until the transaction ends.
   *
   * It neither begins nor ends anything, has no `watch` and no `close`, and never retries: if a call
   * rejects with `store_unavailable`, roll back, and close the connection if the call took too long. Other
   * calls are refused until then. Caches evict after the commit. The commit waits for the disk. Its `usage`,
   * `leases` and `requests` stay outside of the transaction, so that a rollback gives no use back.
   *
   * @throws {TokenError} `invalid_options`
   * @example
   * const client = await pool.connect();
   * await client.query('BEGIN');
   * const store = new PostgresTokenStore(pool).in(client);
   * const tokens = new TokenService({ store, keys, prefix: 'acme' });
   * await tokens.issue({ account: 'acme', scopes: ['GET:shop.example/orders'] });
   * await client.query('COMMIT');
   */
  in(connection: PostgresConnection): EngineStore {
    return storeInTransaction(new PostgresTokenStore(new Transaction(connection, this.#parts)));
  }

  async insert(record: TokenRecord): Promise<void> {
    const { changed } = await this.#change(this.#statements.insert, toValues(record));
    if (changed === 0) throw new TokenError('id_taken', 'this id is taken');
  }

  async count({ liveAt, most, ...holder }: CountQuery): Promise<TokenCounts> {
    const { count, countDerived } = this.#statements;
    const query = holder.root === undefined ? count : countDerived;
    const values = valuesOf(holder, [liveAt.getTime(), most.live, most.ended]);
    const [row] = (await this.#ask(query, values)) as readonly Partial<TokenCounts>[];
    const [live, ended] = [row?.live, row?.ended].map(Number);
    if (live === undefined || ended === undefined || Number.isNaN(live + ended)) {
      throw storeUnavailable('unknown');
    }
    return { live, ended };
  }

  async find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    if (ids.length === 0) return [];
    const known = this.#canLeaveOut ? this.#rows.knownOf(ids) : undefined;
    if (ids.length > 1 || known !== undefined) return this.#findMany(ids, known);
    const [cells] = await this.#read(this.#statements.find, ids);
    return [cells && this.#rows.readCells(cells)];
  }

  async #findMany(
    ids: readonly TokenId[],
    known: KnownListsById | undefined,
  ): Promise<(TokenRecord | undefined)[]> {
    const rows =
      (known && (await this.#readKnown(ids, known))) ??
      (await this.#read(this.#statements.findMany, [ids]));
    const byId = new Map(rows.map((cells) => [cells[0], cells]));
    return ids.map((id) => {
      const cells = byId.get(id);
      return cells && this.#rows.readCells(cells, known?.get(id));
    });
  }

  /** Undefined if the server cannot compare digests. */
  async #readKnown(
    ids: readonly TokenId[],
    known: KnownListsById,
  ): Promise<readonly unknown[][] | undefined> {
    const digests = [digestsOf(known, 'scopes'), digestsOf(known, 'requested')];
    try {
      return await this.#read(this.#statements.findKnown, [ids, ...digests]);
    } catch (error) {
      if (!isTokenError(error) || error.details?.['reason'] !== 'unsupported') throw error;
      this.#canLeaveOut = false;
      return undefined;
    }
  }

  async page(query: PageQuery): Promise<TokenRecord[]> {
    const rows = await this.#read(...pageCall(this.#statements, query));
    return rows.map((cells) => this.#rows.readCells(cells));
  }

  async scan(query: ScanQuery): Promise<ScannedRecords> {
    const rows = await this.#read(this.#statements.scan, [query.after ?? '', query.limit]);
    return scanned(
      rows.map((cells) => this.#rows.readCells(cells)),
      query,
    );
  }

  async replace(next: TokenRecord, version = next.version - 1): Promise<boolean> {
    const values = [...toValues(next).slice(2), next.id, next.account, version];
    return this.#changeOne(next.id, this.#statements.replace, values);
  }

  async revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    const values = [at.getTime(), id, account, version ?? null];
    return this.#changeOne(id, this.#statements.revoke, values);
  }

  async revokeAll(account: string, at: Date, limit: number): Promise<number> {
    const after = this.#positions.take(account);
    const count = await this.#revokeAfter(after, { account, at, limit });
    if (after === undefined || count === limit) return count;
    // Records may have been added before that position.
    return count + (await this.#revokeAfter(undefined, { account, at, limit: limit - count }));
  }

  async #revokeAfter(
    after: Position | undefined,
    { account, at, limit }: ChangeBatch,
  ): Promise<number> {
    const values = [at.getTime(), account, ...placeOf(after), limit];
    const { changed, ids, oldest } = await this.#change(this.#statements.revokeAll, values);
    if (ids) await this.#hint(ids);
    if (changed === limit && ids?.[0] !== undefined) {
      const position = { at: new Date(Number(oldest)), id: ids[0] as TokenId };
      this.#positions.keep(account, position);
    }
    return changed;
  }

  async purge({ now, minAgeMs, limit }: PurgeQuery): Promise<PurgedRecords> {
    return this.#remove(this.#statements.purge, [now.getTime(), minAgeMs, limit]);
  }

  async prune({ now, limit, ...holder }: PruneQuery): Promise<PurgedRecords> {
    const { prune, pruneDerived } = this.#statements;
    const query = holder.root === undefined ? prune : pruneDerived;
    return this.#remove(query, valuesOf(holder, [now.getTime(), limit]));
  }

  async #remove(query: PostgresQuery, values: readonly unknown[]): Promise<PurgedRecords> {
    const { changed, ids } = await this.#change(query, values);
    return { count: changed, ids: (ids ?? []) as TokenId[] };
  }

  /** By the clock of the server. */
  async hasReached(instant: Date): Promise<boolean> {
    const [row] = await this.#ask(this.#statements.reached, [instant.getTime()]);
    return (row as { readonly reached?: unknown } | undefined)?.reached === true;
  }

  /**
   * Listens on a connection of its own. It takes the connection from the pool and holds it until you
   * unsubscribe, until `close`, or until the pool ends. Every 30 seconds, it finds out whether it still hears.
   *
   * @throws {TokenError} `store_unavailable`; `invalid_options` for a pool with one connection only
   */
  async watch(
    onChange: (ids: readonly TokenId[] | 'all') => void,
    onTrouble: (failure: TokenError | undefined) => void = () => {},
  ): Promise<Unsubscribe> {
    const reports = {
      onChange: (ids: readonly TokenId[] | 'all') => notify(onChange, ids),
      onTrouble: (failure: TokenError | undefined) => notify(onTrouble, failure),
    };
    const listener = new Listener(this.#session, this.#tables.channel, reports);
    const end = (): void => {
      this.#listeners.delete(listener);
      listener.end();
    };
    this.#listeners.add(listener);
    try {
      await listener.start();
    } catch (error) {
      end();
      throw this.#session.toTokenError(error);
    }
    return async () => end();
  }

  async doctor(): Promise<StoreFinding[]> {
    return examine(this.#session, this.#tables, this.#statements);
  }

  async close(): Promise<void> {
    for (const listener of this.#listeners) listener.end();
    this.#listeners.clear();
    await this.#hints.flush();
  }

  async #read(query: PostgresQuery, values: readonly unknown[]): Promise<readonly unknown[][]> {
    const rows = await this.#ask(query, values);
    return (rows as readonly { readonly cells: string }[]).map(({ cells }) => cellsIn(cells));
  }

  /** A transaction ends with its connection: nothing is read again. */
  #ask(query: PostgresQuery, values: readonly unknown[]): Promise<readonly unknown[]> {
    if (this.#transaction !== undefined) return this.#session.run(query, values);
    return this.#session.read(query, values);
  }

  /** Sends a hint even if the write failed: it may have gone through. */
  async #changeOne(
    id: TokenId,
    query: PostgresQuery,
    values: readonly unknown[],
  ): Promise<boolean> {
    let isChanged = true;
    try {
      isChanged = (await this.#change(query, values)).changed > 0;
      return isChanged;
    } finally {
      if (isChanged) await this.#hint([id]);
    }
  }

  /** Waits only in a transaction, where a hint is one more statement. A hint never fails a write. */
  async #hint(ids: readonly string[]): Promise<void> {
    if (this.#transaction === undefined) this.#hints.add(ids);
    else await this.#transaction.notify(this.#tables.channel, ids).catch(() => {});
  }

  async #change(query: PostgresQuery, values: readonly unknown[]): Promise<ChangeCount> {
    const [row] = (await this.#session.run(query, values)) as readonly Partial<ChangeCount>[];
    // Without a count the outcome is unknown; it does not mean that there is no such record.
    if (typeof row?.changed !== 'number') throw storeUnavailable('unknown');
    return { ...row, changed: row.changed };
  }
}

/**
 * Creates tables of their own in the database of a pool, `tokenwright_contract_…`, to prove a store there:
 * see `contractReport` of `tokenwright/testing`. Tables that exist stay as they are.
 *
 * Over a slow network, pass a longer `deadlineMs`: a call that is given up breaks a promise.
 *
 * @throws {TokenError} `store_unavailable`, with the reason `forbidden` if the role may not create tables;
 * `invalid_options`
 * @example
 * const report = await contractReport(await scratch(pool));
 */
export async function scratch(
  pool: PostgresPool,
  options: Omit<PostgresStoreOptions, 'tables'> = {},
): Promise<Scratch> {
  const { name: tables, empty, ...place } = await scratchTables(pool);
  return {
    ...place,
    async open() {
      await empty();
      return new PostgresTokenStore(pool, { ...options, tables });
    },
  };
}

/** @throws {TokenError} `invalid_options` */
function partsOn(pool: PostgresPool, options: PostgresStoreOptions): StoreParts {
  const tables = readTables(options);
  const deadlineMs = options.deadlineMs ?? DEFAULT_DEADLINE_MS;
  readWholeNumber('deadlineMs', deadlineMs, [1, MAX_DEADLINE_MS]);
  const form = { prepare: readPrepare(options), standby: readStandby(options) };
  const session = new Session(pool, deadlineMs);
  const parts = {
    session,
    tables,
    statements: statementsFor(tables, form),
    rows: new RowReader(options),
    usage: new PostgresUsage(session, tables.usage.name, form),
    leases: new PostgresLeases(session, tables.leases.name, form),
    requests: new PostgresRequests(session, tables.requests.name, form),
  };
  if (pool.listenerCount('error') === 0) pool.on('error', () => {});
  return parts;
}

/** The arguments of {@link PostgresTokenStore.revokeAll}. */
interface ChangeBatch {
  readonly account: string;
  readonly at: Date;
  readonly limit: number;
}

/** The parameters of a statement about a holder of a quota. */
function valuesOf({ account, root }: QuotaHolder, others: readonly unknown[]): unknown[] {
  return [account, ...others, ...(root === undefined ? [] : [root])];
}

/** The statement of a page, and its values. */
function pageCall(
  statements: Statements,
  query: PageQuery,
): readonly [query: PostgresQuery, values: readonly unknown[]] {
  const { account, after, limit, liveAt, state = 'active', maxBytes, parent, root } = query;
  if (query.order === 'expire') {
    const { after: start, until } = expiryRange(query);
    const values = [account, until + 1, start.at, start.id, limit, maxBytes ?? NO_BOUND];
    return [statements[`expiring_${state}`], values];
  }
  const values = [account, liveAt.getTime(), ...placeOf(after), limit];
  if ((parent ?? root) !== undefined) {
    const list = parent === undefined ? 'root' : 'parent';
    return [statements[`${list}_${state}`], [...values, maxBytes ?? NO_BOUND, parent ?? root]];
  }
  if (maxBytes === undefined) return [statements[`page_${state}`], values];
  return [statements[`pageUpTo_${state}`], [...values, maxBytes]];
}

function placeOf(after: Position | undefined): readonly unknown[] {
  return [after?.at.getTime() ?? NEWEST, after?.id ?? ''];
}

/** More bytes than any page has. */
const NO_BOUND = Number.MAX_SAFE_INTEGER;

/** Later than any date: a page from here on starts with the newest record. */
const NEWEST = Number.MAX_SAFE_INTEGER;
