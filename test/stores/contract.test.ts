import { describe, expect, it } from 'vitest';
import type {
  CountQuery,
  PageQuery,
  PruneQuery,
  PurgedRecords,
  PurgeQuery,
  ScannedRecords,
  ScanQuery,
  TokenCounts,
  TokenStore,
} from '../../src/ports/token-store.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { storeContract } from '../../src/testing/index.ts';
import { isListed, type TokenId, type TokenRecord } from '../../src/token/record.ts';

type Found = (TokenRecord | undefined)[];

/** Lets subclasses return other records than the stored ones. */
class Overlaid extends MemoryTokenStore {
  protected readonly overlay = new Map<TokenId, TokenRecord>();

  override async find(ids: readonly TokenId[]): Promise<Found> {
    const found = await super.find(ids);
    return found.map((record) => record && structuredClone(this.overlay.get(record.id) ?? record));
  }
}

class ReturnsSharedRecords extends MemoryTokenStore {
  readonly #shared = new Map<string, TokenRecord>();

  override async find(ids: readonly TokenId[]): Promise<Found> {
    return (await super.find(ids)).map((record) => record && this.#share(record));
  }

  #share(record: TokenRecord): TokenRecord {
    const key = `${record.id} ${record.version} ${record.revokedAt === undefined}`;
    const shared = this.#shared.get(key) ?? record;
    this.#shared.set(key, shared);
    return shared;
  }
}

class KeepsGivenObjects extends MemoryTokenStore {
  readonly #given = new Map<string, TokenRecord>();

  override async insert(record: TokenRecord): Promise<void> {
    await super.insert(record);
    this.#given.set(`${record.id} ${record.version}`, record);
  }

  override async find(ids: readonly TokenId[]): Promise<Found> {
    return (await super.find(ids)).map((record) => {
      const given = this.#given.get(`${record?.id} ${record?.version}`);
      return given && record && { ...record, digest: given.digest.slice() };
    });
  }
}

class ChangesArguments extends MemoryTokenStore {
  override async replace(next: TokenRecord): Promise<boolean> {
    const done = await super.replace(next);
    Reflect.set(next, 'version', next.version + 1);
    return done;
  }
}

class DropsMilliseconds extends MemoryTokenStore {
  override insert(record: TokenRecord): Promise<void> {
    const seconds = Math.floor(record.createdAt.getTime() / 1000);
    return super.insert({ ...record, createdAt: new Date(seconds * 1000) });
  }
}

class OverwritesOnInsert extends Overlaid {
  override async insert(record: TokenRecord): Promise<void> {
    await super.insert(record).catch(() => this.overlay.set(record.id, structuredClone(record)));
  }
}

class CountsExpiredAsLive extends MemoryTokenStore {
  override count(query: CountQuery): Promise<TokenCounts> {
    return super.count({ ...query, liveAt: new Date(0) });
  }
}

class CountsDerived extends MemoryTokenStore {
  override async count(query: CountQuery): Promise<TokenCounts> {
    if (query.root !== undefined) return super.count(query);
    const { account, liveAt, most } = query;
    const all = await super.page({ account, liveAt, state: 'all', limit: 1000 });
    const ended = all.filter((record) => isListed(record, 'expired', +liveAt) || record.revokedAt);
    const live = all.length - ended.length;
    return {
      live: Math.min(live, most.live),
      ended: Math.min(ended.length, most.ended),
    };
  }
}

class CountsChildrenOnly extends MemoryTokenStore {
  override async count(query: CountQuery): Promise<TokenCounts> {
    if (query.root === undefined) return super.count(query);
    const { account, liveAt, root } = query;
    const live = await super.page({ account, liveAt, parent: root, limit: query.most.live });
    return { ...(await super.count(query)), live: live.length };
  }
}

class CountsWithoutEnd extends MemoryTokenStore {
  override count(query: CountQuery): Promise<TokenCounts> {
    return super.count({ ...query, most: { live: 1e9, ended: 1e9 } });
  }
}

class PrunesImported extends MemoryTokenStore {
  override async prune(query: PruneQuery): Promise<PurgedRecords> {
    const { count, ids } = await super.prune(query);
    const rest = await super.page({
      account: query.account,
      liveAt: query.now,
      state: 'revoked',
      limit: 1,
    });
    if (rest[0]?.format === undefined || rest[0].ancestors !== undefined) return { count, ids };
    const { id } = rest[0];
    await super.purge({ now: new Date(8e15), minAgeMs: 0, limit: 1 });
    return { count: count + 1, ids: [...ids, id] };
  }
}

class PrunesWithoutLimit extends MemoryTokenStore {
  override prune(query: PruneQuery): Promise<PurgedRecords> {
    return super.prune({ ...query, limit: 1e9 });
  }
}

class PrunesDerived extends MemoryTokenStore {
  override async prune({ root, ...query }: PruneQuery): Promise<PurgedRecords> {
    return super.prune(query);
  }
}

class PrunesOneMillisecondLate extends MemoryTokenStore {
  override async prune(query: PruneQuery): Promise<PurgedRecords> {
    return super.prune({ ...query, now: new Date(+query.now - 1) });
  }
}

/** Keeps a record as it was, as versions before did. */
class KeepsScopesOfRevoked extends Overlaid {
  override async revoke(id: TokenId, account: string, at: Date, version?: number) {
    const [record] = await super.find([id]);
    const done = await super.revoke(id, account, at, version);
    if (done && record !== undefined) this.overlay.set(id, { ...record, revokedAt: at });
    return done;
  }
}

class EmptiesRequested extends Overlaid {
  override async revoke(id: TokenId, account: string, at: Date, version?: number) {
    const done = await super.revoke(id, account, at, version);
    const [record] = await super.find([id]);
    if (done && record !== undefined) this.overlay.set(id, { ...record, requested: [] });
    return done;
  }
}

class IgnoresRoot extends MemoryTokenStore {
  override page({ root, ...query }: PageQuery): Promise<TokenRecord[]> {
    return super.page(query);
  }
}

class IgnoresAge extends MemoryTokenStore {
  override purge(query: PurgeQuery): Promise<PurgedRecords> {
    return super.purge({ ...query, minAgeMs: 0 });
  }
}

/** Has a clock of its own, but purges by that of the caller. */
class BelievesTheCaller extends MemoryTokenStore {
  async hasReached(instant: Date): Promise<boolean> {
    return instant.getTime() < Date.parse('2100-01-01');
  }
}

/** Takes a record from the future for a proof of it. */
class BelievesRecords extends MemoryTokenStore {
  async hasReached(instant: Date): Promise<boolean> {
    const { records } = await this.scan({ limit: 1000 });
    return records.some(({ createdAt }) => createdAt >= instant);
  }
}

class EndsPagesEarly extends MemoryTokenStore {
  override page({ maxBytes = 1e9, ...query }: PageQuery): Promise<TokenRecord[]> {
    return super.page({ ...query, maxBytes: maxBytes / 2 });
  }
}

class FillsPagesToTheBound extends MemoryTokenStore {
  override async page({ maxBytes = 1e9, ...query }: PageQuery): Promise<TokenRecord[]> {
    const records = await super.page({ ...query, maxBytes });
    return JSON.stringify(records).length > maxBytes ? records.slice(0, -1) : records;
  }
}

class IgnoresMaxBytes extends MemoryTokenStore {
  override page({ maxBytes, ...query }: PageQuery): Promise<TokenRecord[]> {
    return super.page(query);
  }
}

class RemembersListsOfIds extends MemoryTokenStore {
  readonly #lists = new Map<string, Pick<TokenRecord, 'scopes' | 'requested'>>();

  override async find(ids: readonly TokenId[]): Promise<Found> {
    return (await super.find(ids)).map(
      (record) => record && { ...record, ...this.#listsOf(record) },
    );
  }

  protected keyOf({ id }: TokenRecord): string {
    return id;
  }

  #listsOf(record: TokenRecord): Pick<TokenRecord, 'scopes' | 'requested'> {
    const { scopes, requested } = record;
    const lists = this.#lists.get(this.keyOf(record)) ?? { scopes, requested };
    this.#lists.set(this.keyOf(record), lists);
    return lists;
  }
}

class RemembersListsOfVersions extends RemembersListsOfIds {
  protected override keyOf({ id, version }: TokenRecord): string {
    return `${id} ${version}`;
  }
}

class LosesOrder extends MemoryTokenStore {
  override find(ids: readonly TokenId[]): Promise<Found> {
    return super.find(ids.toSorted());
  }
}

class LosesDuplicates extends MemoryTokenStore {
  override find(ids: readonly TokenId[]): Promise<Found> {
    return super.find([...new Set(ids)]);
  }
}

class LosesHoles extends MemoryTokenStore {
  override async find(ids: readonly TokenId[]): Promise<Found> {
    return (await super.find(ids)).filter((record) => record !== undefined);
  }
}

class IgnoresCaseOfIds extends MemoryTokenStore {
  readonly #spelled = new Map<string, TokenId>();

  override insert(record: TokenRecord): Promise<void> {
    this.#spelled.set(record.id.toLowerCase(), record.id);
    return super.insert(record);
  }

  override find(ids: readonly TokenId[]): Promise<Found> {
    return super.find(ids.map((id) => this.#spelled.get(id.toLowerCase()) ?? id));
  }
}

class IgnoresCaseOfAccounts extends MemoryTokenStore {
  override async page(query: PageQuery): Promise<TokenRecord[]> {
    const { account } = query;
    const pages = [account, account.toLowerCase()].map((one) =>
      super.page({ ...query, account: one }),
    );
    return [...new Map((await Promise.all(pages)).flat().map((one) => [one.id, one])).values()];
  }
}

class TrimsAccounts extends MemoryTokenStore {
  override revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    return super.revoke(id, account.trim(), at, version);
  }
}

class IgnoresAccountInRevoke extends MemoryTokenStore {
  override async revoke(id: TokenId, _: string, at: Date, version?: number): Promise<boolean> {
    const [record] = await super.find([id]);
    return record !== undefined && super.revoke(id, record.account, at, version);
  }
}

class IgnoresVersionInRevoke extends MemoryTokenStore {
  override revoke(id: TokenId, account: string, at: Date): Promise<boolean> {
    return super.revoke(id, account, at);
  }
}

class RevokesAgain extends Overlaid {
  override async revoke(id: TokenId, account: string, at: Date, version?: number) {
    const done = await super.revoke(id, account, at, version);
    const [record] = await super.find([id]);
    if (!done && record?.revokedAt !== undefined && record.account === account) {
      this.overlay.set(id, { ...record, revokedAt: at });
    }
    return done;
  }
}

class IgnoresVersionInReplace extends MemoryTokenStore {
  override async replace(next: TokenRecord): Promise<boolean> {
    const [record] = await super.find([next.id]);
    return record !== undefined && super.replace({ ...next, version: record.version + 1 });
  }
}

class ReadsThenReplaces extends Overlaid {
  override async replace(next: TokenRecord): Promise<boolean> {
    const [record] = await this.find([next.id]);
    if (record?.version !== next.version - 1 || record.account !== next.account) return false;
    if (record.revokedAt !== undefined) return false;
    await super.replace(next);
    this.overlay.set(next.id, structuredClone(next));
    return true;
  }
}

class RevivesRevoked extends Overlaid {
  override async replace(next: TokenRecord): Promise<boolean> {
    if (await super.replace(next)) return true;
    const [record] = await this.find([next.id]);
    if (record?.revokedAt === undefined || record.version !== next.version - 1) return false;
    this.overlay.set(next.id, structuredClone(next));
    return true;
  }
}

class InsertsOnReplace extends MemoryTokenStore {
  override async replace(next: TokenRecord): Promise<boolean> {
    const [record] = await super.find([next.id]);
    if (record !== undefined) return super.replace(next);
    await super.insert(next);
    return true;
  }
}

class IgnoresGivenVersion extends MemoryTokenStore {
  override replace(next: TokenRecord): Promise<boolean> {
    return super.replace(next);
  }
}

class CountsRevokedAgain extends MemoryTokenStore {
  #count = 0;

  override async revokeAll(account: string, at: Date, limit: number): Promise<number> {
    this.#count += await super.revokeAll(account, at, limit);
    return this.#count;
  }
}

class RevokesWithoutLimit extends MemoryTokenStore {
  override revokeAll(account: string, at: Date): Promise<number> {
    return super.revokeAll(account, at, Number.POSITIVE_INFINITY);
  }
}

class PagesByOffset extends MemoryTokenStore {
  readonly #offsets = new Map<TokenId, number>();

  override async page({ after, limit, ...query }: PageQuery): Promise<TokenRecord[]> {
    const offset = after === undefined ? 0 : (this.#offsets.get(after.id) ?? 0);
    const all = await super.page({ ...query, limit: 1000 });
    const page = all.slice(offset, offset + limit);
    for (const [index, { id }] of page.entries()) this.#offsets.set(id, offset + index + 1);
    return page;
  }
}

class SortsTiesAscending extends MemoryTokenStore {
  override async page({ after, limit, ...query }: PageQuery): Promise<TokenRecord[]> {
    const all = await super.page({ ...query, limit: 1000 });
    all.sort((a, b) => Number(b.createdAt) - Number(a.createdAt) || (a.id < b.id ? -1 : 1));
    const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after.id) + 1;
    return all.slice(start, start + limit);
  }
}

class SortsTiesByLocale extends MemoryTokenStore {
  override async page({ after, limit, ...query }: PageQuery): Promise<TokenRecord[]> {
    const all = await super.page({ ...query, limit: 1000 });
    all.sort((a, b) => Number(b.createdAt) - Number(a.createdAt) || b.id.localeCompare(a.id));
    const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after.id) + 1;
    return all.slice(start, start + limit);
  }
}

class FiltersAfterLimit extends MemoryTokenStore {
  override async page(query: PageQuery): Promise<TokenRecord[]> {
    const page = await super.page({ ...query, liveAt: new Date(0) });
    return page.filter(({ expiresAt }) => expiresAt > query.liveAt);
  }
}

class ListsUntilOneMillisecondLater extends MemoryTokenStore {
  override page(query: PageQuery): Promise<TokenRecord[]> {
    return super.page({ ...query, liveAt: new Date(query.liveAt.getTime() - 1) });
  }
}

class IgnoresStates extends MemoryTokenStore {
  override page({ state, ...query }: PageQuery): Promise<TokenRecord[]> {
    return super.page(query);
  }
}

class ListsSuspendedAsActive extends MemoryTokenStore {
  override async page(query: PageQuery): Promise<TokenRecord[]> {
    const page = await super.page({ ...query, state: 'all', limit: 1000 });
    const { state = 'active', liveAt, limit } = query;
    return page
      .filter((record) => isListed({ ...record, suspendedAt: undefined }, state, +liveAt))
      .slice(0, limit);
  }
}

class CountsSuspendedAsEnded extends MemoryTokenStore {
  override async count(query: CountQuery): Promise<TokenCounts> {
    const { account, liveAt } = query;
    const { live, ended } = await super.count(query);
    const suspended = await super.page({ account, state: 'suspended', liveAt, limit: 1000 });
    return { live: live - suspended.length, ended: ended + suspended.length };
  }
}

class ForgetsPending extends MemoryTokenStore {
  override insert(record: TokenRecord): Promise<void> {
    return super.insert({ ...record, pending: undefined });
  }
}

class ForgetsLimits extends MemoryTokenStore {
  override insert(record: TokenRecord): Promise<void> {
    return super.insert({ ...record, limits: undefined });
  }
}

class IgnoresParent extends MemoryTokenStore {
  override page({ parent, ...query }: PageQuery): Promise<TokenRecord[]> {
    return super.page(query);
  }
}

/** Lists all descendants of a token instead of its children. */
class ListsDescendants extends MemoryTokenStore {
  override async page({ parent, ...query }: PageQuery): Promise<TokenRecord[]> {
    if (parent === undefined) return super.page(query);
    const page = await super.page({ ...query, limit: 1000, maxBytes: undefined });
    return page.filter(({ ancestors }) => ancestors?.includes(parent)).slice(0, query.limit);
  }
}

class FiltersChildrenAfterLimit extends MemoryTokenStore {
  override async page({ parent, ...query }: PageQuery): Promise<TokenRecord[]> {
    const page = await super.page(query);
    return page.filter(({ ancestors }) => parent === undefined || ancestors?.at(-1) === parent);
  }
}

class PurgesAtTheInstant extends MemoryTokenStore {
  override purge(query: PurgeQuery): Promise<PurgedRecords> {
    return super.purge({ ...query, now: new Date(+query.now + 1) });
  }
}

class ReturnsOnlyOnePurgedId extends MemoryTokenStore {
  override async purge(query: PurgeQuery): Promise<PurgedRecords> {
    const { count, ids } = await super.purge(query);
    return { count, ids: ids.slice(0, 1) };
  }
}

class PurgesWithoutLimit extends MemoryTokenStore {
  override purge(query: PurgeQuery): Promise<PurgedRecords> {
    return super.purge({ ...query, limit: Number.POSITIVE_INFINITY });
  }
}

class PollutesMetadata extends MemoryTokenStore {
  override async find(ids: readonly TokenId[]): Promise<Found> {
    return (await super.find(ids)).map(
      (record) => record?.metadata && { ...record, metadata: assigned(record.metadata) },
    );
  }
}

/** Copies by assignment, which loses a member named `__proto__`. */
function assigned<Value extends object>(value: Value): Value {
  const copy = {};
  for (const [name, member] of Object.entries(value)) Reflect.set(copy, name, member);
  return copy as Value;
}

class ScansLiveOnly extends MemoryTokenStore {
  override async scan(query: ScanQuery): Promise<ScannedRecords> {
    const { records, ...rest } = await super.scan(query);
    return { ...rest, records: records.filter(({ revokedAt }) => revokedAt === undefined) };
  }
}

class ScansWithoutLimit extends MemoryTokenStore {
  override scan(): Promise<ScannedRecords> {
    return super.scan({ limit: Number.POSITIVE_INFINITY });
  }
}

class ScansForever extends MemoryTokenStore {
  override async scan(query: ScanQuery): Promise<ScannedRecords> {
    const { records, next } = await super.scan(query);
    return { records, next: next ?? 'zzz' };
  }
}

class ScansOneStep extends MemoryTokenStore {
  override async scan({ limit }: ScanQuery): Promise<ScannedRecords> {
    const { records } = await super.scan({ limit: Math.min(limit, 100) });
    return { records };
  }
}

class ScansByOffset extends MemoryTokenStore {
  override async scan({ after = '0', limit }: ScanQuery): Promise<ScannedRecords> {
    const { records } = await super.scan({ limit: 1e6 });
    const end = Number(after) + limit;
    const page = records.slice(Number(after), end);
    return { records: page, next: end < records.length ? String(end) : undefined };
  }
}

class ScansSharedRecords extends MemoryTokenStore {
  readonly #shared = new Map<TokenId, TokenRecord>();

  override async scan(query: ScanQuery): Promise<ScannedRecords> {
    const { records, ...rest } = await super.scan(query);
    for (const record of records) {
      if (!this.#shared.has(record.id)) this.#shared.set(record.id, record);
    }
    return { ...rest, records: records.map(({ id }) => this.#shared.get(id) as TokenRecord) };
  }
}

/** A custom store that was written before `scan` existed. */
class ScansNothing extends MemoryTokenStore {
  constructor() {
    super();
    Object.assign(this, { scan: undefined });
  }
}

async function failures(open: () => TokenStore): Promise<string[]> {
  const failed: string[] = [];
  for (const promise of storeContract) {
    await promise.run(open).catch(() => failed.push(promise.name));
  }
  return failed;
}

describe('storeContract', () => {
  it('passes for a correct store', async () => {
    expect(await failures(() => new MemoryTokenStore())).toEqual([]);
  });

  it('passes for a store that ignores maxBytes', async () => {
    expect(await failures(() => new IgnoresMaxBytes())).toEqual([]);
  });

  it('passes for a store without scan', async () => {
    expect(await failures(() => new ScansNothing())).toEqual([]);
  });

  it.each<[new () => TokenStore, string]>([
    [CountsExpiredAsLive, 'count: counts live and ended records, and suspended ones as live'],
    [CountsSuspendedAsEnded, 'count: counts live and ended records, and suspended ones as live'],
    [CountsDerived, 'count: leaves derived records to their root, at any depth'],
    [CountsChildrenOnly, 'count: leaves derived records to their root, at any depth'],
    [CountsWithoutEnd, 'count: ends each count at most'],
    [PrunesImported, 'prune: keeps a revoked record that was imported, and finds those after it'],
    [PrunesWithoutLimit, 'prune: removes at most limit records, the oldest first'],
    [PrunesDerived, 'prune: with a root, removes its ended descendants alone'],
    [
      PrunesOneMillisecondLate,
      'prune: removes the ended records of one account, but no derived ones',
    ],
    [KeepsScopesOfRevoked, 'revoke: marks the record, empties it and changes nothing else'],
    [EmptiesRequested, 'revoke: keeps of the requested scopes what fits into 1024 bytes'],
    [IgnoresRoot, 'page: with a root, lists its descendants at any depth, in each state'],
    [IgnoresAge, 'purge: removes only what ended longer ago than the age'],
    [BelievesTheCaller, 'purge: with a clock of its own, removes nothing that is live by it'],
    [BelievesTheCaller, 'prune: with a clock of its own, removes nothing that is live by it'],
    [BelievesRecords, 'hasReached: knows the past, and not a far future'],
    [BelievesRecords, 'hasReached: without a clock of its own, knows what its records tell'],
    [EndsPagesEarly, 'page: with maxBytes, does not end before these are reached'],
    [FillsPagesToTheBound, 'page: with maxBytes, has at least one record if there is any'],
    [ReturnsSharedRecords, 'copies: a change of an answer of find changes nothing'],
    [KeepsGivenObjects, 'copies: a later change of an inserted record changes nothing'],
    [ChangesArguments, 'arguments: no method changes its arguments'],
    [DropsMilliseconds, 'insert: stores times to the millisecond'],
    [OverwritesOnInsert, 'insert: rejects a taken id and leaves the first record untouched'],
    [RemembersListsOfIds, 'scopes: a long list that was read before is read again after a change'],
    [
      RemembersListsOfVersions,
      'scopes: a long list is removed with its record, also if the id is used again',
    ],
    [LosesOrder, 'find: answers in the order of the ids, with duplicates and gaps'],
    [LosesDuplicates, 'find: answers in the order of the ids, with duplicates and gaps'],
    [LosesHoles, 'find: answers in the order of the ids, with duplicates and gaps'],
    [IgnoresCaseOfIds, 'find: compares the case of ids'],
    [IgnoresCaseOfAccounts, 'accounts: those that only resemble each other are different'],
    [TrimsAccounts, 'accounts: no method confuses one with another that resembles it'],
    [IgnoresAccountInRevoke, 'revoke: revokes only a record of the same account'],
    [IgnoresVersionInRevoke, 'revoke: revokes only the version that is given'],
    [RevokesAgain, 'revoke: revokes once, and keeps the first time'],
    [IgnoresVersionInReplace, 'replace: replaces only the version before'],
    [ReadsThenReplaces, 'replace: lets exactly one of 100 concurrent calls win'],
    [RevivesRevoked, 'revoke: is never undone'],
    [InsertsOnReplace, 'replace: never creates a record'],
    [IgnoresGivenVersion, 'replace: replaces only the version that is given'],
    [CountsRevokedAgain, 'revokeAll: marks and counts what is not revoked, of one account only'],
    [RevokesWithoutLimit, 'revokeAll: marks at most limit records, and says when none are left'],
    [PagesByOffset, 'page: neither repeats nor skips records while others come and go'],
    [SortsTiesAscending, 'page: lists records of one instant by id, descending by code unit'],
    [SortsTiesByLocale, 'page: lists records of one instant by id, descending by code unit'],
    [FiltersAfterLimit, 'page: is full although records are left out'],
    [
      ListsUntilOneMillisecondLater,
      'page: counts a record as expired from the instant of its expiry, not a millisecond before',
    ],
    [IgnoresStates, 'page: lists each state alone, and all of them together'],
    [ListsSuspendedAsActive, 'page: lists a record in the state that it has now'],
    [ForgetsPending, 'insert: stores each optional field without the others'],
    [ForgetsLimits, 'insert: stores each optional field without the others'],
    [IgnoresParent, 'page: with a parent, lists the tokens that were derived from it'],
    [ListsDescendants, 'page: with a parent, lists the tokens that were derived from it'],
    [FiltersChildrenAfterLimit, 'page: with a parent, lists the tokens that were derived from it'],
    [PurgesAtTheInstant, 'purge: removes what ended strictly before the instant'],
    [
      ReturnsOnlyOnePurgedId,
      'purge: returns the ids of what it removed and no others, if it returns ids',
    ],
    [PurgesWithoutLimit, 'purge: removes at most limit records at a time, of all accounts'],
    [
      ScansLiveOnly,
      'scan: returns all records of all accounts as they are, also revoked and expired ones',
    ],
    [ScansWithoutLimit, 'scan: returns at most limit records at a time, and ends'],
    [ScansForever, 'scan: returns at most limit records at a time, and ends'],
    [ScansOneStep, 'scan: returns hundreds of records'],
    [ScansByOffset, 'scan: misses no record while others come and go'],
    [ScansSharedRecords, 'scan: a change of an answer changes nothing'],
    [PollutesMetadata, 'metadata: a member named __proto__ is a member like any other'],
  ])('fails for %o', async (Broken, caught) => {
    expect(await failures(() => new Broken())).toContain(caught);
  });

  it('has a unique name for each case', () => {
    const names = storeContract.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it.each([
    ['passes', MemoryTokenStore],
    ['fails', LosesOrder],
  ])('closes the store when a case %s', async (_, Store) => {
    let open = 0;
    class Counted extends Store {
      async close(): Promise<void> {
        open -= 1;
      }
    }
    await failures(() => {
      open += 1;
      return new Counted();
    });
    expect(open).toBe(0);
  });
});
