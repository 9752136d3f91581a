import { SQLITE_STEP } from '../../bounds.ts';
import { TokenError } from '../../errors.ts';
import { notify } from '../../events.ts';
import type { EngineStore, Scratch } from '../../ports/engine-store.ts';
import type {
  CountQuery,
  DoctorOptions,
  PageQuery,
  PruneQuery,
  PurgedRecords,
  PurgeQuery,
  ScannedRecords,
  ScanQuery,
  StoreFinding,
  TokenCounts,
  Unsubscribe,
} from '../../ports/token-store.ts';
import { systemClock } from '../../time/clock.ts';
import { delay, idleDelay } from '../../time/timers.ts';
import type { ListedState, TokenId, TokenRecord } from '../../token/record.ts';
import { bytesOfLists } from '../../token/size.ts';
import { expiryRange } from '../shared/expiry-range.ts';
import type { KnownLists } from '../shared/list-memory.ts';
import { purgedOf } from '../shared/purged.ts';
import { COLUMNS, RowReader, scanned, toValues } from '../shared/rows.ts';
import { storeInTransaction } from '../shared/transaction.ts';
import { Checkpoints } from './checkpoints.ts';
import { cellsOf, guarded, readNow, type SqliteHandle, type SqliteValue } from './client.ts';
import { Connection, type Opened } from './connection.ts';
import { countHeld, hasInstant } from './counts.ts';
import { examine, examinePart } from './doctor.ts';
import { SqliteLeases } from './leases.ts';
import { type Places, placesBeside, placesOf, withoutHandle } from './places.ts';
import { SqliteRequests } from './requests.ts';
import { scratchFolder } from './scratch.ts';
import type { Statements } from './statements.ts';
import { Transaction } from './transaction.ts';
import { SqliteUsage } from './usage.ts';
import { watchCommits } from './watch.ts';
import { WriteQueue } from './write-queue.ts';

export type { SqliteHandle } from './client.ts';

/** How a {@link SqliteTokenStore} works. */
export interface SqliteStoreOptions {
  /**
   * The memory for parsed lists of scopes, in bytes, as an estimate: from 1 048 576 to
   * 17 179 869 184 (16 GiB). Equal lists count once. A token whose list does not fit is still found,
   * but more slowly. @default 33 554 432 (32 MiB)
   */
  readonly maxListBytes?: number | undefined;
}

/**
 * Stores tokens in an SQLite database, and how they are used and requests for them in others beside it:
 * durable, on one machine, also with several processes.
 *
 * Writes reach the disk before their promise resolves (`synchronous=FULL`). Those of one turn of the
 * event loop share one transaction. A write waits up to 1.5 s for another process and then rejects with
 * `store_unavailable`; neither the event loop nor reads wait with it. In Node.js, a store that was opened
 * by path moves a long log to the file in a thread of its own, which starts with the first 4 MB and ends
 * with the store.
 *
 * If the file, or the `-wal` or `-shm` file beside it, is removed or replaced while it is open, the next
 * call rejects with `store_corrupt`, and no write is acknowledged. A store that was opened by path then
 * opens the file again once it is whole. Over a handle that you passed in, it rejects until the file is
 * put back.
 *
 * The databases belong to the store: the `application_id` of that of the tokens is 1415008852 (`TWRT`), and
 * its `user_version` holds the version of our schema. A database with anything else in it is refused and
 * left unchanged.
 *
 * `usage`, `leases` and `requests` have databases of their own, because a write to that of the tokens would
 * make every process evict its cached tokens. A loss of power may cost the last counts of `usage`
 * (`synchronous=NORMAL`); what `leases` granted stays granted, and what `requests` changed stays changed. The time of the machine decides whether a
 * window has ended. If their file is removed or replaced while it is open, their calls reject with
 * `store_corrupt` until the store is opened again.
 *
 * @example
 * const store = SqliteTokenStore.open('data');
 * await store.insert(record);
 * await store.close();
 */
export class SqliteTokenStore implements EngineStore {
  readonly local = true;
  readonly #rows: RowReader;
  readonly #parts: Parts;
  readonly #watches = new Set<() => void>();

  private constructor(parts: Parts) {
    this.#rows = parts.rows;
    this.#parts = parts;
  }

  /**
   * Opens the database of the tokens and brings its schema up to date.
   *
   * A folder holds `tokens.db`, `usage.db`, `leases.db` and `requests.db`, which are opened with
   * `node:sqlite`; what is missing is created for its owner alone (modes 0700 and 0600), the last three on
   * their first use.
   * `':memory:'` is a store that ends with the process. Handles that you pass in get our pragmas, among them
   * a `busy_timeout` of 2 ms, and stay open when the store is closed. Each needs a database of its own; one
   * handle alone is for the tokens.
   *
   * @throws {TokenError} `invalid_options` if this Node.js has no `node:sqlite`, the path is a file, a
   * database belongs to something else, a later version has changed its schema in a way that this one cannot
   * use (added columns and indexes are fine), or an option is invalid; `store_unavailable` if it does not
   * open
   * @example
   * SqliteTokenStore.open('/var/lib/acme');
   * SqliteTokenStore.open(new Database('tokens.db')); // better-sqlite3
   * SqliteTokenStore.open({ tokens: new Database('tokens.db'), usage: new Database('usage.db') });
   */
  static open(
    place:
      | string
      | SqliteHandle
      | {
          readonly tokens: SqliteHandle;
          readonly usage?: SqliteHandle | undefined;
          readonly leases?: SqliteHandle | undefined;
          readonly requests?: SqliteHandle | undefined;
        },
    options: SqliteStoreOptions = {},
  ): SqliteTokenStore {
    const rows = new RowReader(options);
    return guarded(() => new SqliteTokenStore(partsOf(placesOf(place), rows)));
  }

  /**
   * Opens a file of tokens of any name, such as a backup. The other parts are in the folder beside it.
   *
   * @internal
   */
  static openFile(tokens: string): SqliteTokenStore {
    const rows = new RowReader({});
    return guarded(() => new SqliteTokenStore(partsOf(placesBeside(tokens), rows)));
  }

  /**
   * Counts how tokens are used.
   *
   * @throws {TokenError} `invalid_options` if the store was opened over handles, and none is for it
   */
  get usage(): EngineStore['usage'] {
    if (this.#parts.usage === undefined) throw withoutHandle('usage');
    return this.#parts.usage;
  }

  /**
   * Counts the uses of limited tokens.
   *
   * @throws {TokenError} `invalid_options` if the store was opened over handles, and none is for it
   */
  get leases(): EngineStore['leases'] {
    if (this.#parts.leases === undefined) throw withoutHandle('leases');
    return this.#parts.leases;
  }

  /**
   * Keeps requests for tokens.
   *
   * @throws {TokenError} `invalid_options` if the store was opened over handles, and none is for it
   */
  get requests(): EngineStore['requests'] {
    if (this.#parts.requests === undefined) throw withoutHandle('requests');
    return this.#parts.requests;
  }

  /**
   * Returns the tokens in a transaction that you have begun on a handle: the one that the store was opened
   * with, or another connection to the same file. Writes nothing in the background, and retries nothing.
   * After a write that failed, it refuses all calls: roll back then.
   *
   * @throws {TokenError} `invalid_options` if it is not a handle
   * @example
   * handle.exec('BEGIN IMMEDIATE');
   * await tokens.in(handle).revokeAll('acme');
   * handle.exec('COMMIT');
   */
  in(handle: SqliteHandle): EngineStore {
    const inside = new SqliteTokenStore({ ...this.#parts, writes: new Transaction(handle) });
    return storeInTransaction(inside);
  }

  async insert(record: TokenRecord): Promise<void> {
    const inserted = await this.#parts.writes.run('insert', toValues(record));
    if (inserted === 0) throw new TokenError('id_taken', 'this id is taken');
  }

  /** Counts in steps, so that a large count leaves turns to others. */
  async count(query: CountQuery): Promise<TokenCounts> {
    return countHeld(query, (work) => this.#read(({ statements }) => work(statements)));
  }

  async find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    const [id] = ids;
    if (id === undefined) return [];
    if (ids.length > 1) return this.#read((opened) => this.#findMany(opened, ids));
    return this.#read((opened) => [this.#findOne(opened, id)]);
  }

  #findOne(opened: Opened, id: TokenId): TokenRecord | undefined {
    const known = this.#rows.known(id);
    if (known !== undefined) return this.#findAgain(opened, id, known);
    const row = opened.statements.find.get(id);
    return row === undefined ? undefined : this.#rows.readCells(cellsOf(row));
  }

  /**
   * Reads a row with long lists only if the database has changed since. The version of the record
   * does not show that: a restored database may have the same version with other scopes.
   */
  #findAgain(opened: Opened, id: TokenId, known: KnownLists): TokenRecord | undefined {
    const { row } = known;
    const { state, findWithState } = opened.statements;
    if (row !== undefined) {
      const now = this.#stateIn(opened, cellsOf(state.get()));
      if (now === row.state) return this.#rows.readCells(row.cells, known);
    }
    const found = findWithState.get(id);
    if (found === undefined) return undefined;
    const cells = cellsOf(found);
    return this.#rows.readCells(cells, known, this.#stateIn(opened, cells.slice(COLUMNS.length)));
  }

  /**
   * Names the state of the database: by the number that changes with each commit of another
   * connection, and the count of changes on this one, without those whose record was forgotten.
   * Within a transaction there is no name, because nothing would show that it was rolled back.
   */
  #stateIn({ handle, serial }: Opened, [version, changes]: readonly unknown[]): string | undefined {
    const { isTransaction, inTransaction } = handle;
    const { connection } = this.#parts;
    // A store leaves no transaction open on a handle of its own.
    const isOpen = isTransaction ?? inTransaction ?? connection.isShared;
    if (isOpen || serial === undefined) return undefined;
    return `${serial} ${version} ${Number(changes) - connection.forgotten}`;
  }

  #findMany({ statements }: Opened, ids: readonly TokenId[]): (TokenRecord | undefined)[] {
    const rows = statements.findMany.all(JSON.stringify(ids));
    const found = new Array<TokenRecord | undefined>(ids.length).fill(undefined);
    for (const row of rows) {
      const cells = cellsOf(row);
      found[Number(cells[COLUMNS.length])] = this.#rows.readCells(cells);
    }
    return found;
  }

  #read<Result>(work: (opened: Opened) => Result): Result | Promise<Result> {
    return readNow(() => work(this.#parts.writes.checkedQuickly()));
  }

  async page(query: PageQuery): Promise<TokenRecord[]> {
    const { state = 'active', maxBytes } = query;
    const values = pageValues(query, state);
    return this.#read(({ statements }) => {
      const page = statements[listOf(query)][state];
      if (maxBytes !== undefined) {
        return this.#readUpTo(maxBytes, page.iterate?.(...values) ?? page.all(...values));
      }
      // Under Jest the driver's array is of another realm, and its map() would return one like it.
      return Array.from(page.all(...values), (row) => this.#rows.readCells(cellsOf(row)));
    });
  }

  async scan(query: ScanQuery): Promise<ScannedRecords> {
    const { after = '', limit } = query;
    return this.#read(({ statements }) => {
      const rows = statements.scan.all(after, limit);
      const records = Array.from(rows, (row) => this.#rows.readCells(cellsOf(row)));
      return scanned(records, query);
    });
  }

  /** Leaving the loop closes the statement: an open one would block checkpoints and writes. */
  #readUpTo(maxBytes: number, rows: Iterable<unknown>): TokenRecord[] {
    const records: TokenRecord[] = [];
    let bytes = 0;
    for (const row of rows) {
      const record = this.#rows.readCells(cellsOf(row));
      records.push(record);
      bytes += bytesOfLists(record);
      if (bytes >= maxBytes) break;
    }
    return records;
  }

  async replace(next: TokenRecord, version = next.version - 1): Promise<boolean> {
    const values = [...toValues(next).slice(2), next.id, next.account, version];
    return (await this.#parts.writes.run('replace', values)) > 0;
  }

  async revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    const values = [at.getTime(), id, account, version ?? null];
    return (await this.#parts.writes.run('revoke', values)) > 0;
  }

  async revokeAll(account: string, at: Date, limit: number): Promise<number> {
    let count = 0;
    await this.#inSteps(limit, async (most) => {
      const changed = await this.#parts.writes.run('revokeAll', [at.getTime(), account, most]);
      count += changed;
      return { changed, isLast: changed < most };
    });
    return count;
  }

  async purge({ now, minAgeMs, limit }: PurgeQuery): Promise<PurgedRecords> {
    const before = now.getTime() - minAgeMs;
    return this.#remove(limit, {
      find: ({ ended }, most) => ended.all(before, most),
      remove: (ids) => this.#parts.writes.run('purge', [ids, before]),
    });
  }

  async prune({ account, root, now, limit }: PruneQuery): Promise<PurgedRecords> {
    const time = now.getTime();
    const holder = [account, root ?? null];
    return this.#remove(limit, {
      find: ({ prunable }, most) => prunable.all(...holder, time, ...holder, most),
      remove: (ids) => this.#parts.writes.run('prune', [ids, time]),
    });
  }

  /** Removes up to `limit` records, a few in each turn of the event loop. */
  async #remove(limit: number, { find, remove }: Removal): Promise<PurgedRecords> {
    const purged: PurgedRecords[] = [];
    await this.#inSteps(limit, async (most) => {
      const found = await this.#read(({ statements }) =>
        Array.from(find(statements, most), (row) => String(cellsOf(row)[0]) as TokenId),
      );
      const isLast = found.length < most;
      if (found.length === 0) return { changed: 0, isLast };
      const changed = await remove(JSON.stringify(found));
      purged.push(await purgedOf(found, changed, (ids) => this.find(ids)));
      return { changed, isLast };
    });
    return {
      count: purged.reduce((sum, { count }) => sum + count, 0),
      ids: purged.flatMap(({ ids }) => ids),
    };
  }

  /**
   * SQLite has no clock of its own: this looks at the thousand tokens that were inserted last, and at the
   * clock of the machine.
   */
  async hasReached(instant: Date, before?: Date): Promise<boolean> {
    if (systemClock.now().getTime() < instant.getTime()) return false;
    const span = [instant.getTime(), before?.getTime() ?? BEFORE_ALL] as const;
    return hasInstant(span, (work) => this.#read(({ statements }) => work(statements)));
  }

  /** Changes up to `limit` records, a few in each turn of the event loop. */
  async #inSteps(
    limit: number,
    step: (most: number) => Promise<{ readonly changed: number; readonly isLast: boolean }>,
  ): Promise<void> {
    for (let left = limit; left > 0; ) {
      const { changed, isLast } = await step(Math.min(SQLITE_STEP, left));
      left -= changed;
      if (isLast || left <= 0) return;
      await this.#pause();
    }
  }

  /** Without pauses, others would hardly ever find the lock free, and the log would not get shorter. */
  async #pause(): Promise<void> {
    const run = this.#parts.checkpoints.running();
    if (run === undefined) return delay(STEP_PAUSE_MS);
    return Promise.race([run, idleDelay(MAX_PAUSE_MS)]);
  }

  /**
   * Reports commits of other connections, also of other processes: SQLite counts them, and the store
   * reads that count every 25 ms. It does not say what changed, so each hint is `'all'`.
   */
  async watch(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe> {
    const stop = watchCommits(this.#parts.connection, () => notify(onChange, 'all'));
    const end = () => {
      stop();
      this.#watches.delete(end);
    };
    this.#watches.add(end);
    return async () => end();
  }

  /**
   * Looks for writes that do not wait for the disk, for a file that is not in WAL mode, and for one that
   * was removed or replaced; in the databases of `usage`, `leases` and `requests`, if they have been made, for what
   * keeps them from being used. With `full` also for damage: that reads the whole file of the tokens, some seconds
   * for a gigabyte, in which this process does nothing else.
   */
  async doctor(options: DoctorOptions = {}): Promise<StoreFinding[]> {
    const { connection, usage, leases, requests } = this.#parts;
    const found = guarded(() => examine(connection, options));
    return [
      ...found,
      ...(await examinePart('usage', async () => usage?.doctor() ?? [])),
      ...(await examinePart('leases', async () => leases?.doctor() ?? [])),
      ...(await examinePart('requests', async () => requests?.doctor() ?? [])),
    ];
  }

  async close(): Promise<void> {
    const { usage, leases, requests } = this.#parts;
    const closing = [this.#closeTokens(), usage?.close(), leases?.close(), requests?.close()];
    for (const each of await Promise.allSettled(closing)) {
      if (each.status === 'rejected') throw each.reason;
    }
  }

  async #closeTokens(): Promise<void> {
    const { connection, checkpoints, writes } = this.#parts;
    for (const end of this.#watches) end();
    const idle = writes.idle();
    // Without writes that wait or a checkpoint, the file is closed when this returns.
    if (idle !== undefined) await idle;
    const run = checkpoints.running();
    if (run !== undefined) await run;
    checkpoints.close();
    guarded(() => connection.close());
  }
}

/**
 * Makes a folder `tokenwright_contract_…` in the folder of a store, and so on the same disk, to prove a store
 * there: see `contractReport` of `tokenwright/testing`. It needs `node:sqlite`. Other files stay as they are.
 *
 * @throws {TokenError} `store_unavailable` if the folder does not exist or may not be written to;
 * `invalid_options` if this Node.js has no `node:sqlite`
 * @example
 * const report = await contractReport(await scratch('/var/lib/acme'));
 */
export async function scratch(folder: string): Promise<Scratch> {
  const { name, nextFolder, ...place } = await scratchFolder(folder);
  return { ...place, open: async () => SqliteTokenStore.open(nextFolder()) };
}

/** What a store is made of. */
interface Parts {
  readonly rows: RowReader;
  readonly connection: Connection;
  readonly checkpoints: Checkpoints;
  /** Makes the calls about records: in a transaction of the host, on its handle. */
  readonly writes: Pick<WriteQueue, 'checkedQuickly' | 'run' | 'idle'>;
  /** Absent if the host gave no handle for it. */
  readonly usage: SqliteUsage | undefined;
  readonly leases: SqliteLeases | undefined;
  readonly requests: SqliteRequests | undefined;
}

function partsOf({ tokens, usage, leases, requests }: Places, rows: RowReader): Parts {
  const connection = new Connection(tokens, (id) => rows.forget(id));
  const checkpoints = new Checkpoints(connection);
  return {
    rows,
    connection,
    checkpoints,
    writes: new WriteQueue(connection, checkpoints),
    usage: usage === undefined ? undefined : new SqliteUsage(usage),
    leases: leases === undefined ? undefined : new SqliteLeases(leases),
    requests: requests === undefined ? undefined : new SqliteRequests(requests),
  };
}

const STEP_PAUSE_MS = 1;
/** For a slow disk: even with this pause, a call makes ten steps within the deadline of the service. */
const MAX_PAUSE_MS = 100;

/** Later than any date: before the first record of a list. */
const BEFORE_ALL = Number.MAX_SAFE_INTEGER;

/** How {@link SqliteTokenStore} finds and removes records. */
interface Removal {
  readonly find: (statements: Statements, most: number) => readonly unknown[];
  /** Takes the ids as JSON. Resolves to how many were removed. */
  readonly remove: (ids: string) => Promise<number>;
}

function listOf({
  order,
  parent,
  root,
}: PageQuery): 'pages' | 'expiring' | 'children' | 'descendants' {
  if (order === 'expire') return 'expiring';
  if (parent !== undefined) return 'children';
  return root === undefined ? 'pages' : 'descendants';
}

function pageValues(query: PageQuery, state: ListedState): SqliteValue[] {
  const { account, after, limit, liveAt, parent, root } = query;
  if (query.order === 'expire') {
    const range = expiryRange(query);
    const part = [account, range.after.at, range.after.id, range.until];
    return [...part, ...(state === 'all' ? part : []), limit];
  }
  const start = [after?.at.getTime() ?? BEFORE_ALL, after?.id ?? ''];
  const time = state === 'revoked' || state === 'all' ? [] : [liveAt.getTime()];
  const ancestor = parent ?? root;
  if (ancestor !== undefined) return [ancestor, account, ...time, ...start, limit];
  if (state === 'all') return [account, ...start, account, ...start, limit];
  return [account, ...time, ...start, limit];
}
