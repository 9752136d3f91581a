import { DEFAULT_DEADLINE_MS, MAX_DEADLINE_MS } from '../../bounds.ts';
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
  ScannedRecords,
  ScanQuery,
  StoreFinding,
  TokenCounts,
  Unsubscribe,
} from '../../ports/token-store.ts';
import type { UsageStore } from '../../ports/usage-store.ts';
import type { TokenId, TokenRecord } from '../../token/record.ts';
import { readPrepare, readStandby, readWholeNumber } from '../shared/options.ts';
import { Positions } from '../shared/positions.ts';
import { purgedOf } from '../shared/purged.ts';
import { digestsOf, type KnownListsById, RowReader, SCOPES, scanned } from '../shared/rows.ts';
import { storeInTransaction } from '../shared/transaction.ts';
import { type Cells, type MysqlPool, type MysqlPromisePool, readPool, Session } from './client.ts';
import { examine } from './doctor.ts';
import { MysqlLeases } from './leases.ts';
import { MysqlRequests } from './requests.ts';
import { type MigrationOptions, readTables, type Tables } from './schema.ts';
import { scratchTables } from './scratch.ts';
import type { MysqlValue } from './statement.ts';
import {
  countValues,
  padToPowerOfTwo,
  pageValues,
  parametersOf,
  placeOf,
  pruneValues,
  type Statements,
  statementsFor,
  timeOf,
  withoutKnown,
} from './statements.ts';
import {
  type MysqlPromiseConnection,
  type MysqlTransactionConnection,
  type StoreParts,
  Transaction,
  TransactionSession,
} from './transaction.ts';
import { MysqlUsage } from './usage.ts';
import { type ChangedRow, MAX_CHANGES, Watch } from './watch.ts';

export { fromDrizzle, fromKysely } from './orm.ts';
export { type MigrationOptions, migrate, migrationSql } from './schema.ts';
export type { MysqlPromiseConnection } from './transaction.ts';

/** How a {@link MysqlTokenStore} works. */
export interface MysqlStoreOptions extends MigrationOptions {
  /** How long the server may take to answer a call, in milliseconds, from 1 to 60 000. @default 2000 */
  readonly deadlineMs?: number | undefined;
  /**
   * Lets the server keep prepared statements for each connection. `false` costs speed. Set it for a server or
   * a proxy that keeps none, or no more (`max_prepared_stmt_count`). @default true
   */
  readonly prepare?: boolean | undefined;
  /** How long `watch` waits between two polls, in milliseconds, from 1 to 60 000. @default 50 */
  readonly pollMs?: number | undefined;
  /**
   * Whether reads may come from a read-only server (`read_only` or `innodb_read_only`), such as a
   * replica. It still accepts what was revoked on the primary, for as long as it lags behind, also with
   * `fresh`. `'refuse'` fails each call there with `store_unavailable`. Set `'allow'` only if a token may
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
 * Stores tokens in a MySQL or MariaDB database: a system of record for many nodes. {@link usage} counts how they are
 * used, {@link leases} the uses of limited ones, and {@link requests} keeps requests for tokens, each in a table of
 * its own.
 *
 * The tables must exist: see {@link migrate}. The pool belongs to the host and must lead to the
 * primary: calls on a read-only server fail with `store_unavailable`. A replica is only recognized if it
 * is `read_only`. The connections of the pool must commit by themselves (`autocommit`, the default) and
 * come back to the pool without an open transaction; `sql_mode`, charset, time zone and how the driver
 * forms rows do not matter.
 *
 * A call that is not answered within `deadlineMs` rejects with `store_unavailable`, and its
 * connection is destroyed. Only the pool can end an attempt to connect: set its `connectTimeout`
 * (10 seconds by default) to `deadlineMs` or less. Otherwise attempts that hang hold the pool, and
 * calls fail for up to that long after the server is back. `doctor` warns about a longer one.
 *
 * The store is as durable as the server; `doctor` looks for settings that weaken it.
 *
 * @example
 * const pool = createPool({ uri: 'mysql://acme@db.example/acme', connectTimeout: 2000 });
 * await migrate(pool);
 * const store = new MysqlTokenStore(pool);
 */
export class MysqlTokenStore implements EngineStore {
  /**
   * Counts how tokens are used. A batch is one statement. If it has scopes of tokens that this store has not
   * written before, it first reads which of the tokens have nearly as many scopes as are counted apart. If the
   * server does not answer within `deadlineMs`, the counts may still be added.
   */
  readonly usage: UsageStore;
  /**
   * Counts the uses of limited tokens. Each want is one statement, and those of one call are sent concurrently,
   * over as many connections of the pool as are free. The clock of the server decides whether a window has begun
   * and whether it has ended. Grants are as durable as the server: with `innodb_flush_log_at_trx_commit` other
   * than 1, a crash may forget some, and limits may be exceeded by that much. If the server does not answer
   * within `deadlineMs`, what it may have granted is lost.
   */
  readonly leases: LeaseStore;
  /** Keeps requests for tokens. One is made in a transaction; any other change is one statement. */
  readonly requests: RequestStore;
  readonly #session: Session | TransactionSession;
  readonly #parts: StoreParts;
  readonly #tables: Tables;
  readonly #sql: Statements;
  readonly #rows: RowReader;
  readonly #positions = new Positions();
  readonly #pollMs: number;

  /**
   * Does not connect; the first call does.
   *
   * @throws {TokenError} `invalid_options`
   */
  constructor(pool: MysqlPool | MysqlPromisePool, options: MysqlStoreOptions = {}) {
    const transaction = pool instanceof Transaction ? pool : undefined;
    this.#parts = transaction?.parts ?? partsOn(pool, options);
    const { session, tables, sql, rows, pollMs, usage, leases, requests } = this.#parts;
    this.#session = transaction ? new TransactionSession(transaction) : session;
    this.#tables = tables;
    this.#sql = sql;
    this.#rows = rows;
    this.#pollMs = pollMs;
    this.usage = usage;
    this.leases = leases;
    this.requests = requests;
  }

  /**
   * Returns a store whose calls run in your own transaction, on its connection. What it changes is
   * committed or rolled back with everything else. Make a service on it with your own options, and
   * use it until the transaction ends.
   *
   * It neither begins nor ends anything, has no `watch` and no `close`, and never retries: if a call
   * rejects with `store_unavailable`, roll back, and destroy the connection if the call took too long.
   * Other calls are refused until then, because after a deadlock the server would commit each of them
   * alone. Caches evict if the commit comes within `deadlineMs` and three seconds of a change. Its `usage`,
   * `leases` and `requests` stay outside of the transaction, so that a rollback gives no use back.
   *
   * @throws {TokenError} `invalid_options`
   * @example
   * const connection = await pool.promise().getConnection();
   * await connection.beginTransaction();
   * const store = new MysqlTokenStore(pool).in(connection);
   * const tokens = new TokenService({ store, keys, prefix: 'acme' });
   * await tokens.issue({ account: 'acme', scopes: ['GET:shop.example/orders'] });
   * await connection.commit();
   */
  in(connection: MysqlTransactionConnection | MysqlPromiseConnection): EngineStore {
    const transaction = new Transaction(connection, this.#parts);
    return storeInTransaction(new MysqlTokenStore(transaction as never));
  }

  async insert(record: TokenRecord): Promise<void> {
    await this.#session.write(this.#sql.insert, parametersOf(record));
  }

  /** Reads an index only, and of that no more entries than `most`. */
  async count(query: CountQuery): Promise<TokenCounts> {
    const { roots, derived } = this.#sql.count;
    const sql = query.root === undefined ? roots : derived;
    const [[live, ended] = []] = await this.#read(sql, countValues(query));
    return { live: Number(live), ended: Math.min(Number(ended), query.most.ended) };
  }

  async find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    if (ids.length > MAX_FOUND) return this.#findInParts(ids);
    const [first] = ids;
    if (first === undefined) return [];
    const known = this.#rows.knownOf(ids);
    const rows = await (known === undefined ? this.#findAll(ids) : this.#findKnown(ids, known));
    if (ids.length === 1) return [rows[0] && this.#rows.readCells(rows[0], known?.get(first))];
    const byId = new Map(rows.map((row) => [String(row[0]), row]));
    return ids.map((id) => {
      const row = byId.get(id);
      // Reads a row again for a repeated id: records of one answer must share nothing.
      return row && this.#rows.readCells(row, known?.get(id));
    });
  }

  #findAll(ids: readonly TokenId[]): Promise<Cells[]> {
    const parameters = padToPowerOfTwo(ids);
    return this.#read(this.#sql.find(parameters.length), parameters);
  }

  async #findKnown(ids: readonly TokenId[], known: KnownListsById): Promise<Cells[]> {
    const parameters = padToPowerOfTwo(ids);
    const digests = (['scopes', 'requested'] as const).map((list) =>
      Buffer.from(digestsOf(known, list).join()),
    );
    const sql = this.#sql.findKnown(parameters.length);
    return (await this.#read(sql, [...digests, ...parameters])).map(withoutKnown);
  }

  async #findInParts(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    const rest = this.find(ids.slice(MAX_FOUND));
    return (await Promise.all([this.find(ids.slice(0, MAX_FOUND)), rest])).flat();
  }

  async page(query: PageQuery): Promise<TokenRecord[]> {
    const { after, limit, state = 'active', maxBytes, parent, root } = query;
    const pages = after === undefined ? this.#sql.first : this.#sql.next;
    const derived = root === undefined ? pages : pages.root;
    const listed = parent === undefined ? derived : pages.parent;
    const { page, pageUpTo } = query.order === 'expire' ? this.#sql.expiring : listed;
    // Lists that are no longer than their share always fit.
    const share = maxBytes === undefined ? Number.MAX_SAFE_INTEGER : Math.floor(maxBytes / limit);
    const values = pageValues(query);
    const rows = await this.#read(page[state], [share, share, ...values]);
    const hasAll = maxBytes === undefined || rows.every((row) => row[SCOPES] !== null);
    const whole = hasAll
      ? rows
      : await this.#read(pageUpTo[state], [...values, maxBytes, String(limit)]);
    const records = whole.map((row) => this.#rows.readCells(row));
    if (parent === undefined || root === undefined) return records;
    // The children of a token have the same root.
    return records.filter(({ ancestors }) => ancestors?.[0] === root);
  }

  async scan(query: ScanQuery): Promise<ScannedRecords> {
    const values = [Buffer.from(query.after ?? ''), String(query.limit)];
    const rows = await this.#read(this.#sql.scan, values);
    return scanned(
      rows.map((row) => this.#rows.readCells(row)),
      query,
    );
  }

  async replace(next: TokenRecord, version = next.version - 1): Promise<boolean> {
    const [id, account, ...rest] = parametersOf(next);
    const condition = [id, account, version] as MysqlValue[];
    return (await this.#write(this.#sql.replace, [...rest, ...condition])) > 0;
  }

  async revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    const condition = [Buffer.from(id), Buffer.from(account), version ?? null];
    return (await this.#write(this.#sql.revoke, [timeOf(at), ...condition])) > 0;
  }

  /**
   * First looks in the index, without locks, and then updates by the primary key. An update by the index
   * itself would lock the gaps in it, so that neither this account nor its neighbors could get new tokens
   * meanwhile.
   */
  async revokeAll(account: string, at: Date, limit: number): Promise<number> {
    let after = this.#positions.take(account);
    for (let count = 0; ; ) {
      const asked = Math.min(limit - count, MAX_FOUND);
      const found = await this.#unrevoked(account, after, asked);
      count += await this.#revokeMany(found, account, at);
      const isEnd = found.length < asked;
      // Records may have been added before the position, so the end counts only from the front.
      if (isEnd && after === undefined) return count;
      after = isEnd ? undefined : found.at(-1);
      if (count < limit) continue;
      if (after !== undefined) this.#positions.keep(account, after);
      return count;
    }
  }

  /** The positions of an account's tokens that are not revoked. */
  async #unrevoked(
    account: string,
    after: Position | undefined,
    limit: number,
  ): Promise<Position[]> {
    const { unrevoked } = after === undefined ? this.#sql.first : this.#sql.next;
    const position = after === undefined ? [] : placeOf(after);
    const rows = await this.#read(unrevoked, [Buffer.from(account), ...position, String(limit)]);
    return rows.map(([id, createdAt]) => ({
      id: String(id) as TokenId,
      at: new Date(Number(createdAt)),
    }));
  }

  async #revokeMany(found: readonly Position[], account: string, at: Date): Promise<number> {
    const time = timeOf(at);
    if (found.length === 0) return 0;
    const ids = padToPowerOfTwo(found.map(({ id }) => id));
    return this.#write(this.#sql.revokeMany(ids.length), [time, Buffer.from(account), ...ids]);
  }

  async purge({ now, minAgeMs, limit }: PurgeQuery): Promise<PurgedRecords> {
    const { purgeable, purge } = this.#sql;
    const before = [timeOf(now), minAgeMs];
    return this.#remove(limit, {
      read: (asked) => this.#read(purgeable, [...before, String(asked)]),
      remove: (ids) => this.#write(purge(ids.length), [...before, ...ids]),
    });
  }

  async prune(query: PruneQuery): Promise<PurgedRecords> {
    const { prunable, prune } = this.#sql;
    const sql = query.root === undefined ? prunable.roots : prunable.derived;
    return this.#remove(query.limit, {
      read: (asked) => this.#read(sql, pruneValues({ ...query, limit: asked })),
      remove: (ids) => this.#write(prune(ids.length), [timeOf(query.now), ...ids]),
    });
  }

  /** Removes what it reads, if that is still to be removed. */
  async #remove(
    limit: number,
    {
      read,
      remove,
    }: {
      readonly read: (limit: number) => Promise<Cells[]>;
      readonly remove: (ids: MysqlValue[]) => Promise<number>;
    },
  ): Promise<PurgedRecords> {
    const ids: TokenId[] = [];
    for (let count = 0; ; ) {
      const asked = Math.min(limit - count, MAX_FOUND);
      const rows = await read(asked);
      const found = rows.map(([id]) => String(id) as TokenId);
      const removed = found.length === 0 ? 0 : await remove(padToPowerOfTwo(found));
      ids.push(...(await purgedOf(found, removed, (left) => this.find(left))).ids);
      count += removed;
      // A transaction of the host may go on seeing what others have removed.
      if (found.length < asked || removed === 0 || count >= limit) return { count, ids };
    }
  }

  async hasReached(instant: Date): Promise<boolean> {
    const [[hasReached] = []] = await this.#read(this.#sql.hasReached, [timeOf(instant)]);
    return Number(hasReached) === 1;
  }

  async watch(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe> {
    const { deadlineMs } = this.#session;
    const read = async (since: number) => {
      const values = [since, String(MAX_CHANGES + 1)];
      const pollDeadlineMs = Math.min(deadlineMs, MAX_POLL_MS);
      const rows = await this.#session.poll(this.#sql.changes, values, pollDeadlineMs);
      return rows as unknown as ChangedRow[];
    };
    const watch = new Watch({
      read,
      onChange: (ids) => notify(onChange, ids),
      pollMs: this.#pollMs,
      commitMs: deadlineMs,
    });
    await watch.start();
    return async () => watch.end();
  }

  async doctor(): Promise<StoreFinding[]> {
    return this.#session instanceof Session ? examine(this.#session, this.#tables) : [];
  }

  #read(sql: string, values: MysqlValue[]): Promise<Cells[]> {
    return this.#session.read(sql, values);
  }

  async #write(sql: string, values: MysqlValue[]): Promise<number> {
    return (await this.#session.write(sql, values)).affectedRows;
  }
}

const DEFAULT_POLL_MS = 50;
/** Longer lists of ids are read in parts: a statement takes at most 65 535 parameters. */
const MAX_FOUND = 1024;
/** A poll that hangs is given up after this, so that an outage is reported soon. */
const MAX_POLL_MS = 1000;

/**
 * Creates tables of their own in the database of a pool, `tokenwright_contract_…`, to prove a store there:
 * see `contractReport` of `tokenwright/testing`. Tables that exist stay as they are. To remove them again, the
 * user needs `DROP`.
 *
 * Over a slow network, pass a longer `deadlineMs`: a call that is given up breaks a promise.
 *
 * @throws {TokenError} `store_unavailable`, with the reason `forbidden` if the user may not create tables;
 * `invalid_options`
 * @example
 * const report = await contractReport(await scratch(pool));
 */
export async function scratch(
  pool: MysqlPool | MysqlPromisePool,
  options: Omit<MysqlStoreOptions, 'tables'> = {},
): Promise<Scratch> {
  const { name: tables, empty, ...place } = await scratchTables(pool);
  return {
    ...place,
    async open() {
      await empty();
      return new MysqlTokenStore(pool, { ...options, tables });
    },
  };
}

/** @throws {TokenError} `invalid_options` */
function partsOn(pool: MysqlPool | MysqlPromisePool, options: MysqlStoreOptions): StoreParts {
  const tables = readTables(options);
  const deadlineMs = readMilliseconds('deadlineMs', options.deadlineMs ?? DEFAULT_DEADLINE_MS);
  const standby = readStandby(options);
  const form = { standby, prepare: readPrepare(options) };
  const session = new Session(readPool(pool), deadlineMs, form);
  return {
    session,
    standby,
    pollMs: readMilliseconds('pollMs', options.pollMs ?? DEFAULT_POLL_MS),
    tables,
    sql: statementsFor(tables.tokens),
    rows: new RowReader(options),
    usage: new MysqlUsage(session, tables.usage),
    leases: new MysqlLeases(session, tables.leases),
    requests: new MysqlRequests(session, tables.requests),
  };
}

function readMilliseconds(name: string, value: number): number {
  return readWholeNumber(name, value, [1, MAX_DEADLINE_MS]);
}
