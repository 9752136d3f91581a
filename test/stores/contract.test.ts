import { describe, expect, it } from 'vitest';
import type { PageQuery, TokenStore } from '../../src/store.ts';
import { MemoryTokenStore } from '../../src/stores/memory.ts';
import { storeContract } from '../../src/testing/index.ts';
import type { TokenId, TokenRecord } from '../../src/token.ts';

type Found = (TokenRecord | undefined)[];

/** Shows other records than those kept. */
class Overlaid extends MemoryTokenStore {
  protected readonly overlay = new Map<TokenId, TokenRecord>();

  override async find(ids: readonly TokenId[]): Promise<Found> {
    const found = await super.find(ids);
    return found.map((record) => record && structuredClone(this.overlay.get(record.id) ?? record));
  }
}

class HandsOutShared extends MemoryTokenStore {
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

class KeepsWhatCameIn extends MemoryTokenStore {
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

class CountsRevokedAgain extends MemoryTokenStore {
  #count = 0;

  override async revokeAll(account: string, at: Date): Promise<number> {
    this.#count += await super.revokeAll(account, at);
    return this.#count;
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

class TiesUpwards extends MemoryTokenStore {
  override async page({ after, limit, ...query }: PageQuery): Promise<TokenRecord[]> {
    const all = await super.page({ ...query, limit: 1000 });
    all.sort((a, b) => Number(b.createdAt) - Number(a.createdAt) || (a.id < b.id ? -1 : 1));
    const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after.id) + 1;
    return all.slice(start, start + limit);
  }
}

class TiesByLocale extends MemoryTokenStore {
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

class LivesOneInstantLonger extends MemoryTokenStore {
  override page(query: PageQuery): Promise<TokenRecord[]> {
    return super.page({ ...query, liveAt: new Date(query.liveAt.getTime() - 1) });
  }
}

class PurgesTheInstantToo extends MemoryTokenStore {
  override purge(before: Date, limit: number): Promise<number> {
    return super.purge(new Date(before.getTime() + 1), limit);
  }
}

class PurgesWithoutLimit extends MemoryTokenStore {
  override purge(before: Date): Promise<number> {
    return super.purge(before, Number.POSITIVE_INFINITY);
  }
}

class PollutesMetadata extends MemoryTokenStore {
  override async find(ids: readonly TokenId[]): Promise<Found> {
    return (await super.find(ids)).map(
      (record) => record?.metadata && { ...record, metadata: assigned(record.metadata) },
    );
  }
}

/** What a copy by assignment makes of a member named `__proto__`. */
function assigned<Value extends object>(value: Value): Value {
  const copy = {};
  for (const [name, member] of Object.entries(value)) Reflect.set(copy, name, member);
  return copy as Value;
}

async function failures(open: () => TokenStore): Promise<string[]> {
  const failed: string[] = [];
  for (const promise of storeContract) {
    await promise.run(open).catch(() => failed.push(promise.name));
  }
  return failed;
}

describe('store contract', () => {
  it('passes a store that keeps it', async () => {
    expect(await failures(() => new MemoryTokenStore())).toEqual([]);
  });

  it.each<[new () => TokenStore, string]>([
    [HandsOutShared, 'copies: what a caller does to an answer of find does not matter'],
    [KeepsWhatCameIn, 'copies: what a caller does to an inserted record later does not matter'],
    [ChangesArguments, 'arguments: no verb changes what it is given'],
    [DropsMilliseconds, 'insert: keeps milliseconds'],
    [OverwritesOnInsert, 'insert: rejects a taken id and leaves the first record untouched'],
    [LosesOrder, 'find: keeps order, duplicates and holes'],
    [LosesDuplicates, 'find: keeps order, duplicates and holes'],
    [LosesHoles, 'find: keeps order, duplicates and holes'],
    [IgnoresCaseOfIds, 'find: tells ids apart that differ in case only'],
    [IgnoresCaseOfAccounts, 'accounts: those that only resemble each other stay apart'],
    [TrimsAccounts, 'accounts: no verb takes one for another that resembles it'],
    [IgnoresAccountInRevoke, 'revoke: only for the same account'],
    [IgnoresVersionInRevoke, 'revoke: only over the version that is given'],
    [RevokesAgain, 'revoke: only once, and the first time stays'],
    [IgnoresVersionInReplace, 'replace: only over the version before'],
    [ReadsThenReplaces, 'replace: of 100 at once exactly one wins'],
    [RevivesRevoked, 'revoke: is never undone'],
    [InsertsOnReplace, 'replace: never makes a record that is not there'],
    [CountsRevokedAgain, 'revokeAll: marks and counts what is not revoked, and nothing of others'],
    [PagesByOffset, 'page: neither repeats nor skips when records come and go between pages'],
    [TiesUpwards, 'page: puts records of one instant in descending order of id by code unit'],
    [TiesByLocale, 'page: puts records of one instant in descending order of id by code unit'],
    [FiltersAfterLimit, 'page: fills itself past records that are left out'],
    [
      LivesOneInstantLonger,
      'page: the instant of expiry is already too late, one millisecond before is not',
    ],
    [PurgesTheInstantToo, 'purge: removes what ended strictly before the instant'],
    [PurgesWithoutLimit, 'purge: goes in steps of at most so many, over all accounts'],
    [PollutesMetadata, 'metadata: a member named __proto__ is a member like any other'],
  ])('catches %o', async (Broken, caught) => {
    expect(await failures(() => new Broken())).toContain(caught);
  });

  it('has a name of its own for each case', () => {
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
