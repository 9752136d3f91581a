import { TokenError } from '../../errors.ts';
import type { EngineStore } from '../../ports/engine-store.ts';
import type {
  CountQuery,
  PageQuery,
  PruneQuery,
  PurgedRecords,
  PurgeQuery,
  QuotaHolder,
  ScannedRecords,
  ScanQuery,
  TokenCounts,
} from '../../ports/token-store.ts';
import type { Clock } from '../../time/clock.ts';
import { copyMetadata } from '../../token/metadata.ts';
import {
  copyLimits,
  type JsonObject,
  type ListedState,
  type TokenId,
  type TokenLimits,
  type TokenRecord,
} from '../../token/record.ts';
import { revocation } from '../../token/revoked.ts';
import { bytesOfLists } from '../../token/size.ts';
import { expiryRange } from '../shared/expiry-range.ts';
import { originText, readOrigin } from '../shared/origin.ts';
import { pendingText, readPending } from '../shared/pending.ts';
import { scanned } from '../shared/rows.ts';
import { MemoryLeases } from './leases.ts';
import { MemoryRequests } from './requests.ts';
import { MemoryUsage } from './usage.ts';

/**
 * Stores tokens, and how they are used, in this process: for tests, and for a single process that may
 * lose everything when it ends.
 *
 * Records with equal scopes share one frozen list, and every read returns that same list.
 *
 * @example
 * const store = new MemoryTokenStore();
 * await store.insert(record);
 * const [found] = await store.find([record.id]);
 * found === record; // false: a copy
 */
export class MemoryTokenStore implements EngineStore {
  readonly local = true;
  readonly usage: EngineStore['usage'];
  readonly leases: EngineStore['leases'];
  readonly requests: EngineStore['requests'];
  readonly #records = new Map<TokenId, StoredRecord>();
  readonly #accounts = new RecordLists<string>();
  readonly #expiring = new RecordLists<string>(expiryOf);
  /** Derived tokens, by the id of their parent. */
  readonly #children = new RecordLists<TokenId>();
  /** Tokens that were not derived, by their account. */
  readonly #originals = new RecordLists<string>();
  /** Derived tokens, by the id of their root. */
  readonly #families = new RecordLists<TokenId>();
  readonly #lists = new SharedLists();
  /** The position of the next purge. The iterator of a map also returns later inserts. */
  #sweep = this.#records.values();
  /** All ids in order, while a scan is under way. */
  #scanned: readonly TokenId[] | undefined;

  /**
   * If you pass a clock to the service, pass the same one here: `usage` is complete from the time that it
   * tells now, `leases` grant nothing in windows that have ended by it, and `requests` are purged only after it.
   *
   * @throws {TokenError} `invalid_options` if the clock does not return a valid time
   */
  constructor({ clock }: { readonly clock?: Clock | undefined } = {}) {
    this.usage = new MemoryUsage(clock);
    this.leases = new MemoryLeases(clock);
    this.requests = new MemoryRequests(clock);
  }

  async insert(record: TokenRecord): Promise<void> {
    if (this.#records.has(record.id)) throw new TokenError('id_taken', 'this id is taken');
    const stored = this.#pack(record);
    this.#records.set(stored.id, stored);
    this.#addToLists(stored);
  }

  /** Reads the records of the holder, the newest first, until it has counted enough. */
  async count({ liveAt, most, ...holder }: CountQuery): Promise<TokenCounts> {
    const now = liveAt.getTime();
    const records = this.#recordsOf(holder);
    const counts = { live: 0, ended: 0 };
    for (let index = records.length - 1; index >= 0; index -= 1) {
      const stored = records[index] as StoredRecord;
      if (stored.account !== holder.account) continue;
      const counted = isLive(stored, now) ? 'live' : 'ended';
      counts[counted] = Math.min(counts[counted] + 1, most[counted]);
      if (counts.live === most.live && counts.ended === most.ended) break;
    }
    return counts;
  }

  async find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    return ids.map((id) => {
      const stored = this.#records.get(id);
      return stored === undefined ? undefined : toRecord(stored);
    });
  }

  async page(query: PageQuery): Promise<TokenRecord[]> {
    const { account, limit, liveAt, root, state = 'active' } = query;
    const { maxBytes = Number.POSITIVE_INFINITY } = query;
    const found: TokenRecord[] = [];
    let bytes = 0;
    for (const stored of query.order === 'expire' ? this.#byExpiry(query) : this.#listed(query)) {
      if (stored.account !== account) continue;
      if (root !== undefined && rootOf(stored) !== root) continue;
      if (!isStateOf(stored, state, liveAt.getTime())) continue;
      const record = toRecord(stored);
      found.push(record);
      bytes += bytesOfLists(record);
      if (found.length === limit || bytes >= maxBytes) break;
    }
    return found;
  }

  async replace(next: TokenRecord, version = next.version - 1): Promise<boolean> {
    const stored = this.#unrevoked(next.id, next.account);
    if (stored?.version !== version) return false;
    const replacement = this.#pack(next);
    this.#release(stored);
    const moves =
      replacement.createdAt !== stored.createdAt ||
      replacement.expiresAt !== stored.expiresAt ||
      parentOf(replacement) !== parentOf(stored) ||
      rootOf(replacement) !== rootOf(stored);
    if (moves) this.#removeFromLists(stored);
    Object.assign(stored, replacement);
    if (moves) this.#addToLists(stored);
    return true;
  }

  async revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    const stored = this.#unrevoked(id, account);
    if (stored === undefined || (version !== undefined && version !== stored.version)) return false;
    this.#revoke(stored, at);
    return true;
  }

  async revokeAll(account: string, at: Date, limit: number): Promise<number> {
    let count = 0;
    for (const stored of this.#accounts.get(account) ?? []) {
      if (count === limit) break;
      if (stored.revokedAt !== undefined) continue;
      this.#revoke(stored, at);
      count += 1;
    }
    return count;
  }

  async purge({ now, minAgeMs, limit }: PurgeQuery): Promise<PurgedRecords> {
    return this.#drop(new Set(this.#collect(now.getTime() - minAgeMs, limit)));
  }

  async prune({ now, limit, ...holder }: PruneQuery): Promise<PurgedRecords> {
    const pruned = new Set<StoredRecord>();
    for (const stored of this.#recordsOf(holder)) {
      if (pruned.size === limit) break;
      if (stored.account === holder.account && isPrunable(stored, now.getTime())) {
        pruned.add(stored);
      }
    }
    return this.#drop(pruned);
  }

  /** Records that are inserted after the first step are left out. */
  async scan(query: ScanQuery): Promise<ScannedRecords> {
    const { after, limit } = query;
    if (after === undefined) this.#scanned = undefined;
    this.#scanned ??= [...this.#records.keys()].sort();
    const records: TokenRecord[] = [];
    let index = after === undefined ? 0 : countUpTo(this.#scanned, after);
    for (; index < this.#scanned.length && records.length < limit; index += 1) {
      const stored = this.#records.get(this.#scanned[index] as TokenId);
      if (stored !== undefined) records.push(toRecord(stored));
    }
    const answer = scanned(records, query);
    if (answer.next === undefined) this.#scanned = undefined;
    return answer;
  }

  #recordsOf({ account, root }: QuotaHolder): readonly StoredRecord[] {
    return (root === undefined ? this.#originals.get(account) : this.#families.get(root)) ?? [];
  }

  /** The newest first. */
  *#listed({ account, parent, root, after }: PageQuery): Iterable<StoredRecord> {
    const originals = root === undefined ? this.#accounts.get(account) : this.#families.get(root);
    const list = (parent === undefined ? originals : this.#children.get(parent)) ?? [];
    let index =
      after === undefined
        ? list.length
        : countBefore(list, after.at.getTime(), after.id, creationOf);
    while (index > 0) {
      index -= 1;
      yield list[index] as StoredRecord;
    }
  }

  *#byExpiry(query: PageQuery): Iterable<StoredRecord> {
    const { after, until } = expiryRange(query);
    const list = this.#expiring.get(query.account) ?? [];
    // The id with a character more is the next one.
    const start = countBefore(list, after.at, `${after.id}\0`, expiryOf);
    for (let index = start; index < list.length; index += 1) {
      const stored = list[index] as StoredRecord;
      if (stored.expiresAt > until) return;
      yield stored;
    }
  }

  #revoke(stored: StoredRecord, at: Date): void {
    const { list } = stored.requested;
    const pending = stored.pending === undefined ? undefined : readPending(stored.pending);
    const kept = revocation({ requested: list, pending }, at);
    const scopes = this.#lists.take(kept.scopes);
    const requested = this.#lists.take(kept.requested, stored.requested);
    this.#release(stored);
    Object.assign(stored, {
      ...kept,
      scopes,
      requested,
      pending: pendingText(kept.pending),
      revokedAt: at.getTime(),
    });
  }

  #drop(dropped: ReadonlySet<StoredRecord>): PurgedRecords {
    for (const stored of dropped) {
      this.#records.delete(stored.id);
      this.#release(stored);
    }
    this.#accounts.drop(dropped, ({ account }) => account);
    this.#expiring.drop(dropped, ({ account }) => account);
    this.#originals.drop(dropped, originOf);
    this.#children.drop(dropped, parentOf);
    this.#families.drop(dropped, rootOf);
    return { count: dropped.size, ids: Array.from(dropped, ({ id }) => id) };
  }

  /** Looks at each record at most once, from where the last purge stopped, and wraps around. */
  #collect(before: number, limit: number): StoredRecord[] {
    const ended: StoredRecord[] = [];
    for (let left = this.#records.size; left > 0 && ended.length < limit; left -= 1) {
      const stored = this.#nextInSweep();
      if (stored.expiresAt < before || (stored.revokedAt ?? before) < before) ended.push(stored);
    }
    return ended;
  }

  #nextInSweep(): StoredRecord {
    const { value } = this.#sweep.next();
    if (value !== undefined) return value;
    this.#sweep = this.#records.values();
    return this.#sweep.next().value as StoredRecord;
  }

  #unrevoked(id: TokenId, account: string): StoredRecord | undefined {
    const stored = this.#records.get(id);
    return stored?.account === account && stored.revokedAt === undefined ? stored : undefined;
  }

  #addToLists(stored: StoredRecord): void {
    this.#accounts.add(stored.account, stored);
    this.#expiring.add(stored.account, stored);
    this.#originals.add(originOf(stored), stored);
    this.#children.add(parentOf(stored), stored);
    this.#families.add(rootOf(stored), stored);
  }

  #removeFromLists(stored: StoredRecord): void {
    this.#accounts.remove(stored.account, stored);
    this.#expiring.remove(stored.account, stored);
    this.#originals.remove(originOf(stored), stored);
    this.#children.remove(parentOf(stored), stored);
    this.#families.remove(rootOf(stored), stored);
  }

  #pack(record: TokenRecord): StoredRecord {
    // All tokens of an account share one string, and often a list.
    const latest = this.#accounts.get(record.account)?.at(-1);
    const scopes = this.#lists.take(record.scopes, latest?.scopes);
    return {
      id: record.id,
      account: latest?.account ?? record.account,
      prefix: record.prefix,
      kid: record.kid,
      digest: packed(record.digest),
      box: record.box && packed(record.box),
      scopes,
      requested: this.#lists.take(record.requested, scopes),
      createdAt: record.createdAt.getTime(),
      expiresAt: record.expiresAt.getTime(),
      version: record.version,
      name: record.name,
      metadata: record.metadata && copyMetadata(record.metadata),
      revokedAt: record.revokedAt?.getTime(),
      previousDigest: record.previousDigest && packed(record.previousDigest),
      previousUntil: record.previousUntil?.getTime(),
      suspendedAt: record.suspendedAt?.getTime(),
      scopesChangedAt: record.scopesChangedAt?.getTime(),
      rotatedAt: record.rotatedAt?.getTime(),
      pending: pendingText(record.pending),
      limits: record.limits && copyLimits(record.limits),
      ancestors: record.ancestors && Object.freeze([...record.ancestors]),
      format: record.format,
      origin: originText(record.origin),
    };
  }

  #release(stored: StoredRecord): void {
    this.#lists.release(stored.scopes);
    this.#lists.release(stored.requested);
  }
}

/** Immutable values, which can be shared, and small ones: a typed array costs 200 bytes. */
interface StoredRecord {
  readonly id: TokenId;
  readonly account: string;
  readonly prefix: string;
  readonly kid: string;
  readonly digest: string;
  readonly box: string | undefined;
  readonly scopes: SharedList;
  readonly requested: SharedList;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly version: number;
  readonly name: string | undefined;
  readonly metadata: JsonObject | undefined;
  readonly revokedAt: number | undefined;
  readonly previousDigest: string | undefined;
  readonly previousUntil: number | undefined;
  readonly suspendedAt: number | undefined;
  readonly scopesChangedAt: number | undefined;
  readonly rotatedAt: number | undefined;
  /** As text: few records have one. */
  readonly pending: string | undefined;
  readonly limits: TokenLimits | undefined;
  readonly ancestors: readonly TokenId[] | undefined;
  readonly format: string | undefined;
  /** As text, too. */
  readonly origin: string | undefined;
}

/** Lists of records, ascending by a time, then id. */
class RecordLists<Key> {
  readonly #lists = new Map<Key, StoredRecord[]>();
  readonly #timeOf: TimeOf;

  constructor(timeOf: TimeOf = creationOf) {
    this.#timeOf = timeOf;
  }

  get(key: Key): readonly StoredRecord[] | undefined {
    return this.#lists.get(key);
  }

  add(key: Key | undefined, stored: StoredRecord): void {
    if (key === undefined) return;
    const list = this.#lists.get(key);
    if (list === undefined) {
      this.#lists.set(key, [stored]);
      return;
    }
    // Nearly always the last one: no search through records that are not at hand.
    const last = list.at(-1);
    if (last === undefined || this.#timeOf(last) < this.#timeOf(stored)) list.push(stored);
    else list.splice(this.#placeIn(list, stored), 0, stored);
  }

  remove(key: Key | undefined, stored: StoredRecord): void {
    const list = key === undefined ? undefined : this.#lists.get(key);
    list?.splice(this.#placeIn(list, stored), 1);
  }

  #placeIn(list: readonly StoredRecord[], stored: StoredRecord): number {
    return countBefore(list, this.#timeOf(stored), stored.id, this.#timeOf);
  }

  /** One pass for each list: each splice would move the rest of a long one. */
  drop(dropped: ReadonlySet<StoredRecord>, keyOf: (stored: StoredRecord) => Key | undefined): void {
    for (const key of new Set(Array.from(dropped, keyOf))) {
      if (key === undefined) continue;
      const rest = this.#lists.get(key)?.filter((stored) => !dropped.has(stored)) ?? [];
      if (rest.length === 0) this.#lists.delete(key);
      else this.#lists.set(key, rest);
    }
  }
}

/** A time by which a list is ordered. */
type TimeOf = (stored: StoredRecord) => number;

function creationOf({ createdAt }: StoredRecord): number {
  return createdAt;
}

function expiryOf({ expiresAt }: StoredRecord): number {
  return expiresAt;
}

function parentOf({ ancestors }: StoredRecord): TokenId | undefined {
  return ancestors?.at(-1);
}

function rootOf({ ancestors }: StoredRecord): TokenId | undefined {
  return ancestors?.[0];
}

/** The account that has the place of a token; none for a derived one, which takes one of its root. */
function originOf({ account, ancestors }: StoredRecord): string | undefined {
  return ancestors === undefined ? account : undefined;
}

/** A revoked token that was imported stays: a repeated import must not revive it. */
function isPrunable(stored: StoredRecord, now: number): boolean {
  return !isLive(stored, now) && (stored.revokedAt === undefined || stored.format === undefined);
}

function isLive({ revokedAt, expiresAt }: StoredRecord, now: number): boolean {
  return revokedAt === undefined && expiresAt > now;
}

function isStateOf(stored: StoredRecord, state: ListedState, now: number): boolean {
  if (state === 'all') return true;
  if (state === 'revoked') return stored.revokedAt !== undefined;
  if (state === 'expired') return stored.revokedAt === undefined && stored.expiresAt <= now;
  if (!isLive(stored, now)) return false;
  return state === 'live' || (state === 'suspended') === (stored.suspendedAt !== undefined);
}

interface SharedList {
  readonly key: string;
  readonly list: readonly string[];
  uses: number;
}

/** Interns lists: equal ones are one frozen list, as long as a record uses it. */
class SharedLists {
  readonly #byKey = new Map<string, SharedList>();

  /** @param likely a list that may be equal, such as the granted scopes for the requested ones */
  take(list: readonly string[], likely?: SharedList): SharedList {
    if (likely !== undefined && isSameList(list, likely.list)) {
      likely.uses += 1;
      return likely;
    }
    const key = JSON.stringify(list);
    const shared = this.#byKey.get(key) ?? { key, list: Object.freeze([...list]), uses: 0 };
    if (shared.uses === 0) this.#byKey.set(key, shared);
    shared.uses += 1;
    return shared;
  }

  release(shared: SharedList): void {
    shared.uses -= 1;
    if (shared.uses === 0) this.#byKey.delete(shared.key);
  }
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  if (one === other) return true;
  return one.length === other.length && one.every((text, index) => text === other[index]);
}

function toRecord(stored: StoredRecord): TokenRecord {
  // Always the same fields in the same order: one hidden class for all code that reads records.
  return {
    id: stored.id,
    account: stored.account,
    prefix: stored.prefix,
    kid: stored.kid,
    digest: unpacked(stored.digest),
    box: stored.box === undefined ? undefined : unpacked(stored.box),
    scopes: stored.scopes.list,
    requested: stored.requested.list,
    createdAt: new Date(stored.createdAt),
    expiresAt: new Date(stored.expiresAt),
    version: stored.version,
    name: stored.name,
    metadata: stored.metadata,
    revokedAt: dateOf(stored.revokedAt),
    previousDigest:
      stored.previousDigest === undefined ? undefined : unpacked(stored.previousDigest),
    previousUntil: dateOf(stored.previousUntil),
    suspendedAt: dateOf(stored.suspendedAt),
    scopesChangedAt: dateOf(stored.scopesChangedAt),
    rotatedAt: dateOf(stored.rotatedAt),
    pending: stored.pending === undefined ? undefined : readPending(stored.pending),
    limits: stored.limits,
    ancestors: stored.ancestors,
    format: stored.format,
    origin: stored.origin === undefined ? undefined : readOrigin(stored.origin),
  };
}

function dateOf(time: number | undefined): Date | undefined {
  return time === undefined ? undefined : new Date(time);
}

/** How many of the sorted ids are not after a given one. */
function countUpTo(ids: readonly string[], id: string): number {
  let low = 0;
  let high = ids.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ids[middle] as string) <= id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How many of the tokens come before a position in ascending order. */
function countBefore(
  tokens: readonly StoredRecord[],
  time: number,
  id: string,
  timeOf: TimeOf,
): number {
  let low = 0;
  let high = tokens.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const stored = tokens[middle] as StoredRecord;
    const its = timeOf(stored);
    if (its < time || (its === time && stored.id < id)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function packed(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

function unpacked(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  return bytes;
}
