import { TokenError } from '../../errors.ts';
import {
  type CountQuery,
  type PageQuery,
  type PruneQuery,
  type PurgeQuery,
  positionOf,
  type ScannedRecords,
  type ScanQuery,
  type TokenCounts,
} from '../../ports/token-store.ts';
import { isListed, type ListedState, type TokenId, type TokenRecord } from '../../token/record.ts';
import { bytesOfLists } from '../../token/size.ts';
import { expiryRange } from '../shared/expiry-range.ts';
import type { RowReader } from '../shared/rows.ts';
import { corruptRecord, type Driver, isReply, throwTokenError } from './driver.ts';
import { FailoverGuard } from './failover-guard.ts';
import {
  childEntryOf,
  EXPIRING,
  endAndId,
  endIn,
  entryPrefixOf,
  holderText,
  idIn,
  idInCounted,
  type KeySpace,
  REVOKED,
  readName,
  SHARDS,
  type Shard,
  SUSPENDED,
  shardOf,
  sortable,
} from './layout.ts';
import { decodeRecord } from './record-codec.ts';
import {
  COUNT,
  DUE,
  LIST,
  LIST_EXPIRING,
  numbersIn,
  PRUNABLE,
  READ,
  runScript,
  SCAN,
  type Script,
  TIME,
} from './scripts.ts';
import type { EndedToken } from './write-calls.ts';

/** Entries of the index of an account that one Redis script reads for a page. @bound */
export const MAX_REDIS_SCAN = 1000;

/** Bounds a list from above, before its first entry. */
const FROM_THE_TOP = '+';

/** A record, the length of a long one that is not read yet, or nothing. */
type FoundRecord = TokenRecord | number | undefined;

/** Reads records by their ids, and the sorted sets that list them in each shard. */
export class TokenReader {
  readonly #driver: Driver;
  readonly #keys: KeySpace;
  readonly #rows: RowReader;
  /** Undefined without a cluster. */
  readonly #guard: FailoverGuard | undefined;

  constructor(driver: Driver, keys: KeySpace, rows: RowReader) {
    this.#driver = driver;
    this.#keys = keys;
    this.#rows = rows;
    if (driver.isCluster) this.#guard = new FailoverGuard(driver);
  }

  close(): void {
    this.#guard?.close();
  }

  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    const [id] = ids;
    if (id === undefined) return Promise.resolve([]);
    if (ids.length > 1 || this.#driver.state !== 'ready') return this.#findMany(ids);
    // Every verify comes here: no helper, not even an async function.
    const key = this.#keys.record(id);
    const reading = this.#guard?.read(shardOf(id).slot, () => this.#driver.get(key));
    return (reading ?? this.#driver.get(key)).then(
      (value) => [this.#decode(value)],
      (error) => (takesNoWrites(error) ? this.#findMany(ids) : throwTokenError(error)),
    );
  }

  async #findMany(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    return (await this.#read(ids)).map((value) => this.#decode(value));
  }

  /** Like `find`, but gives the length of each record that is longer than `maxLength` instead. */
  async #findShort(ids: readonly TokenId[], maxLength: number): Promise<FoundRecord[]> {
    const found = await this.#read(ids, maxLength);
    return found.map((value) => (Array.isArray(value) ? Number(value[0]) : this.#decode(value)));
  }

  /** Reads records of one shard, or of a lone server, together. Answers in the order of the ids. */
  async #read(ids: readonly TokenId[], maxLength?: number): Promise<unknown[]> {
    const values = maxLength === undefined ? [] : [String(maxLength)];
    const found = new Array<unknown>(ids.length);
    const groups = this.#keys.grouped(ids.map((id, index) => ({ id, index })));
    const reads = groups.map(async (group) => {
      const keys = group.map(({ id }) => this.#keys.record(id));
      const readGroup = () => runScript(this.#driver, { script: READ, keys, values });
      const reading = this.#guard?.read(this.#keys.slotOf(group), readGroup).catch(throwTokenError);
      const answers = (await (reading ?? readGroup())) as unknown[];
      for (const [position, { index }] of group.entries()) found[index] = answers[position];
    });
    await Promise.all(reads);
    return found;
  }

  #decode(value: unknown): TokenRecord | undefined {
    if (value === null || value === undefined) return undefined;
    return this.#rows.readCells(decodeRecord(String(value)));
  }

  async page(query: PageQuery): Promise<TokenRecord[]> {
    const { limit, maxBytes = Number.POSITIVE_INFINITY } = query;
    const found: TokenRecord[] = [];
    let left = maxBytes;
    let last: string | undefined;
    for (let size = limit; ; size = Math.min(4 * size, MAX_REDIS_SCAN)) {
      const { entries, isLast } = await (query.order === 'expire'
        ? this.#mergeByExpiry(query, last, size)
        : this.#merge(query, last, size));
      const listed = entries.filter((entry) => isEntryOf(query, entry));
      const wanted = listed.slice(0, limit - found.length);
      const records = await this.#findListed(wanted, query, left);
      found.push(...records);
      for (const record of records) left -= bytesOfLists(record);
      const wantsAll = wanted.length === listed.length;
      const isFull = found.length === limit || (left <= 0 && found.length > 0);
      if (isFull || (isLast && wantsAll)) return found;
      last = wantsAll ? entries.at(-1) : wanted.at(-1);
    }
  }

  /**
   * Reads those of an account's tokens that are still listed, in this order, until their lists of
   * scopes reach `left` bytes. Short records come in one round trip, long ones only if they fit.
   */
  async #findListed(
    entries: readonly string[],
    query: PageQuery,
    left: number,
  ): Promise<TokenRecord[]> {
    const { limit, maxBytes } = query;
    const ids = entries.map(idIn);
    const found: FoundRecord[] =
      maxBytes === undefined
        ? await this.find(ids)
        : await this.#findShort(ids, Math.ceil(maxBytes / limit));
    const listed: TokenRecord[] = [];
    let bytes = 0;
    for (const [index, entry] of entries.entries()) {
      if (typeof found[index] === 'number') await this.#readLong(found, ids, index, left - bytes);
      const record = found[index];
      // It may have changed since the list was read.
      if (typeof record !== 'object' || !isRecordOf(query, record, entry)) continue;
      listed.push(record);
      bytes += bytesOfLists(record);
      if (bytes >= left) break;
    }
    return listed;
  }

  /** Reads the long record at `first`, and the next ones for which there is room. */
  async #readLong(found: FoundRecord[], ids: readonly TokenId[], first: number, room: number) {
    const long: number[] = [];
    let bytes = 0;
    for (let index = first; index < ids.length && (bytes < room || index === first); index += 1) {
      const length = found[index];
      if (typeof length !== 'number') continue;
      long.push(index);
      bytes += length;
    }
    const records = await this.find(long.map((index) => ids[index] as TokenId));
    for (const [position, index] of long.entries()) found[index] = records[position];
  }

  /** The first entries of an account, newest first: at most `count` from each shard. */
  list(account: string, count: number): Promise<string[][]> {
    return this.#list((shard) => [this.#keys.list(shard, 'account', account)], FROM_THE_TOP, count);
  }

  /** The entries of lists, of which there are as many in each shard. */
  async #list(
    keysOf: (shard: Shard) => readonly string[],
    bound: string,
    count: number,
  ): Promise<string[][]> {
    return this.#runOnLists(LIST, keysOf, [bound, String(count)], 1);
  }

  /** Runs a script that answers with so many lists for each key. */
  async #runOnLists(
    script: Script,
    keysOf: (shard: Shard) => readonly string[],
    values: readonly string[],
    each: number,
  ): Promise<string[][]> {
    const answers = await this.#runOnAll(script, keysOf, values);
    return answers.flatMap((lists, index) => {
      // A missing list would hide tokens, also from revokeAll.
      const keys = this.#keys.groups[index]?.flatMap(keysOf) ?? [];
      if (Array.isArray(lists) && lists.length === each * keys.length) return lists;
      throw corruptRecord();
    });
  }

  /**
   * Merges the lists that have tokens of a state, of all shards: at most `size` entries after the last one,
   * newest first.
   */
  async #merge(
    { account, parent, root, state = 'active', after }: PageQuery,
    last: string | undefined,
    size: number,
  ) {
    const start = last ?? (after && entryPrefixOf(after));
    const bound = start === undefined ? FROM_THE_TOP : `(${start}`;
    const keysOf = (shard: Shard) => {
      if (parent !== undefined) return [this.#keys.list(shard, 'children', parent)];
      if (root !== undefined) return [this.#keys.list(shard, 'tree', root)];
      return [
        ...(IN_ACCOUNT.has(state) ? [this.#keys.list(shard, 'account', account)] : []),
        ...(IN_ASIDE.has(state) ? [this.#keys.list(shard, 'aside', account)] : []),
      ];
    };
    const count = shareOf(size);
    const lists = await this.#list(keysOf, bound, count);
    // A list that goes on says nothing about what is below its last entry here.
    const ends = lists.filter((list) => list.length === count).map((list) => list.at(-1) ?? '');
    const floor = ends.sort().at(-1) ?? '';
    const entries = lists.flat().filter((entry) => entry >= floor);
    entries.sort((a, b) => (a < b ? 1 : -1));
    return { entries: entries.slice(0, size), isLast: floor === '' && entries.length <= size };
  }

  /** Likewise by expiry, soonest first. Entries are as those of children. */
  async #mergeByExpiry(query: PageQuery, last: string | undefined, size: number) {
    const { after, until } = expiryRange(query);
    const start = last?.slice(0, -1) ?? `${sortable(after.at)}${after.id}`;
    const count = shareOf(size);
    const states = EXPIRING[query.state ?? 'active'].map((state) => state + holderText({}));
    const keysOf = (shard: Shard) => [this.#keys.list(shard, 'counted', query.account)];
    const values = [start, sortable(until + 1), String(count), ...states];
    const lists = await this.#runOnLists(LIST_EXPIRING, keysOf, values, states.length);
    // A list that goes on says nothing about what comes after its last entry here.
    const full = lists.filter((list) => list.length === count);
    const ceiling = full.map((list) => endAndId(list.at(-1) ?? '')).sort()[0];
    const places = lists.flat().map(endAndId);
    const entries = places.filter((place) => ceiling === undefined || place <= ceiling).sort();
    const isLast = ceiling === undefined && entries.length <= size;
    return { entries: entries.slice(0, size).map((place) => `${place} `), isLast };
  }

  async count({ account, root, liveAt, most }: CountQuery): Promise<TokenCounts> {
    const keysOf = (shard: Shard) => [this.#keys.list(shard, 'counted', account)];
    const values = [holderText({ root }), sortable(liveAt.getTime() + 1)];
    let [live, ended] = [0, 0];
    for (const counts of (await this.#runOnAll(COUNT, keysOf, values)).map(numbersIn)) {
      live += counts[0];
      ended += counts[1];
    }
    return { live: Math.min(live, most.live), ended: Math.min(ended, most.ended) };
  }

  /** Tokens of the holder of a quota that may be pruned, those that ended first: at most `limit`. */
  async prunable({ account, root, now, limit }: PruneQuery): Promise<EndedToken[]> {
    const count = shareOf(limit);
    const values = [holderText({ root }), String(now.getTime()), String(count)];
    const keysOf = (shard: Shard) => [this.#keys.list(shard, 'counted', account)];
    const lists = (await this.#runOnAll(PRUNABLE, keysOf, values)).flat() as string[][];
    // A list that goes on says nothing about what ended after its last entry here.
    const full = lists.filter((list) => list.length === count);
    const ceiling = full.map((list) => endAndId(list.at(-1) ?? '')).sort()[0];
    const entries = lists
      .flat()
      .filter((entry) => ceiling === undefined || endAndId(entry) <= ceiling);
    entries.sort((one, other) => (endAndId(one) < endAndId(other) ? -1 : 1));
    return entries
      .slice(0, limit)
      .map((counted) => ({ id: idInCounted(counted), account, counted }));
  }

  /**
   * Goes through the ends of one shard after the other. A server may answer with more names than were
   * asked for: the ones that do not fit wait in the position, since they would not come again.
   */
  async scan({ after, limit }: ScanQuery): Promise<ScannedRecords> {
    let { shard, cursor, waiting } = readScan(after);
    while (waiting.length < limit && shard < SHARDS.length) {
      const keys = [this.#keys.ends(SHARDS[shard] as Shard)];
      const values = [cursor, String(limit)];
      const answer = await runScript(this.#driver, { script: SCAN, keys, values });
      const [next, names] = answer as [string, string[]];
      waiting.push(...names.map((name) => readName(name).id as TokenId));
      cursor = String(next);
      if (cursor === FIRST_CURSOR) shard += 1;
    }
    const found = await this.find(waiting.slice(0, limit));
    waiting = waiting.slice(limit);
    const records = found.filter((record) => record !== undefined);
    if (waiting.length === 0 && shard >= SHARDS.length) return { records };
    return { records, next: [shard, cursor, ...waiting].join(' ') };
  }

  /** Tokens to purge, at most `limit`. */
  async ended({ now, minAgeMs, limit }: PurgeQuery): Promise<EndedToken[]> {
    const values = [now.getTime(), minAgeMs, Math.ceil(limit / SHARDS.length)].map(String);
    const answers = await this.#runOnAll(DUE, (shard) => [this.#keys.ends(shard)], values);
    return (answers.flat(2) as string[]).slice(0, limit).map(readName);
  }

  /** Asks the server that holds the first shard. */
  async hasReached(instant: Date): Promise<boolean> {
    const keys = [this.#keys.ends(SHARDS[0] as Shard)];
    const time = await runScript(this.#driver, { script: TIME, keys, values: [] });
    return Number(time) >= instant.getTime();
  }

  /** Runs a script on keys of each shard, and answers for each group of shards. */
  #runOnAll(
    script: Script,
    keysOf: (shard: Shard) => readonly string[],
    values: readonly string[],
  ) {
    return Promise.all(
      this.#keys.groups.map((shards) =>
        runScript(this.#driver, { script, keys: shards.flatMap(keysOf), values }),
      ),
    );
  }
}

/** How many entries of each shard to read for a number of them: usually one round trip is enough. */
function shareOf(size: number): number {
  const share = size / SHARDS.length;
  return Math.max(2, Math.ceil(share + 4 * Math.sqrt(share)));
}

const FIRST_CURSOR = '0';

/** Reads where a scan has stopped: the shard, the server's cursor in it, and ids that are still to read. */
function readScan(after = `0 ${FIRST_CURSOR}`) {
  const [shard = '', cursor = '', ...waiting] = after.split(' ');
  if (/^\d{1,2}$/.test(shard) && /^\d{1,20}$/.test(cursor)) {
    return { shard: Number(shard), cursor, waiting: waiting as TokenId[] };
  }
  throw new TokenError('invalid_request', 'after must be the next of the step before');
}

/** A primary without enough disk space or replicas: to it, `GETEX` is a write. */
function takesNoWrites(error: unknown): boolean {
  return isReply(error, 'MISCONF') || isReply(error, 'NOREPLICAS');
}

/** The states whose tokens are in the list of an account, and those in the list of what is set aside. */
const IN_ACCOUNT = new Set<ListedState>(['active', 'live', 'expired', 'all']);
const IN_ASIDE = new Set<ListedState>(['suspended', 'revoked', 'all']);

/** Whether an entry may be of a token of the state. One that is not suspended does not say so. */
function isEntryOf(query: PageQuery, entry: string): boolean {
  const { state = 'active', liveAt, parent, root, order } = query;
  // Entries of derived tokens in their own lists say nothing of their state, and those by expiry need not.
  if (order === 'expire' || parent !== undefined || root !== undefined) return true;
  const { mark, expiresAt } = endIn(entry);
  // In the list of all, a suspended token has an entry without a mark as well.
  if (state === 'all') return mark !== SUSPENDED;
  if (state === 'revoked') return mark === REVOKED;
  const isExpired = expiresAt <= liveAt.getTime();
  return isExpired === (state === 'expired') && mark === (state === 'suspended' ? SUSPENDED : '');
}

function isRecordOf(
  { account, state, liveAt, parent, root, order }: PageQuery,
  record: TokenRecord,
  entry: string,
): boolean {
  const { ancestors } = record;
  // An entry of a former place, or of a former ancestor, may have stayed.
  if (parent !== undefined && ancestors?.at(-1) !== parent) return false;
  if (root !== undefined && ancestors?.[0] !== root) return false;
  const hasPlaces = order === 'expire' || (parent ?? root) !== undefined;
  if (hasPlaces && childEntryOf(positionOf(record, order)) !== entry) return false;
  return record.account === account && isListed(record, state, liveAt.getTime());
}
