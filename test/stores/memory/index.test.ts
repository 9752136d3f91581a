import { describe, expect, it } from 'vitest';
import { MemoryTokenStore } from '../../../src/stores/memory/index.ts';
import { storeContract } from '../../../src/testing/index.ts';
import type { TokenId, TokenRecord } from '../../../src/token/record.ts';
import { bytesOfLists } from '../../../src/token/size.ts';
import { newRecord } from '../support.ts';

async function setUp(...records: TokenRecord[]): Promise<{
  store: MemoryTokenStore;
  find: (record: TokenRecord) => Promise<TokenRecord>;
}> {
  const store = new MemoryTokenStore();
  for (const record of records) await store.insert(record);
  const find = async ({ id }: TokenRecord) => (await store.find([id]))[0] as TokenRecord;
  return { store, find };
}

describe('memory store', () => {
  it.each(storeContract)('$name', (promise) => promise.run(() => new MemoryTokenStore()));

  it('is local', () => {
    expect(new MemoryTokenStore().local).toBe(true);
  });
});

describe('scope lists in a memory store', () => {
  it('are one shared frozen array for all records with equal lists', async () => {
    const [one, two] = [newRecord('one'), newRecord('two', { account: 'other' })];
    const { store, find } = await setUp(one, two);
    const { scopes } = await find(one);

    expect(scopes).not.toBe(one.scopes);
    expect(Object.isFrozen(scopes)).toBe(true);
    expect((await find(one)).scopes).toBe(scopes);
    expect((await find(two)).scopes).toBe(scopes);
    const [paged] = await store.page({ account: 'other', limit: 1, liveAt: one.createdAt });
    expect(paged?.scopes).toBe(scopes);
  });

  it.each([
    ['the same scopes in a different order', ['POST:shop.example/a', 'GET:shop.example/a']],
    ['a shorter list', ['GET:shop.example/a']],
    ['one joined scope', ['GET:shop.example/a","POST:shop.example/a']],
  ])('are not shared with %s', async (_, scopes) => {
    const one = newRecord('one', { scopes: ['GET:shop.example/a', 'POST:shop.example/a'] });
    const two = newRecord('two', { scopes });
    const { find } = await setUp(one, two);

    expect((await find(two)).scopes).not.toBe((await find(one)).scopes);
    expect((await find(two)).scopes).toEqual(scopes);
  });

  it('are one array if a record was granted what it requested', async () => {
    const one = newRecord('one', { requested: [...newRecord('one').scopes] });
    const { scopes, requested } = await (await setUp(one)).find(one);

    expect(requested).toBe(scopes);
  });

  it.each([
    ['the first of them', ['GET:shop.example/a']],
    ['more than them', ['GET:shop.example/a', 'GET:shop.example/b', 'GET:shop.example/c']],
    ['another one', ['GET:shop.example/a', 'GET:shop.example/c']],
  ])('are two if it requested %s', async (_, requested) => {
    const scopes = ['GET:shop.example/a', 'GET:shop.example/b'];
    const one = newRecord('one', { scopes, requested });
    const { find } = await setUp(one);

    expect(await find(one)).toMatchObject({ scopes, requested });
  });

  it('end a page that has grown to maxBytes', async () => {
    const records = Array.from({ length: 9 }, (_, index) => newRecord(`n${index}`));
    const { store } = await setUp(...records);
    const bytes = bytesOfLists(records[0] as TokenRecord);
    const page = async (maxBytes: number) => {
      const liveAt = (records[0] as TokenRecord).createdAt;
      return (await store.page({ account: 'acme', limit: 9, liveAt, maxBytes })).length;
    };

    expect(await page(1)).toBe(1);
    expect(await page(2 * bytes)).toBe(2);
    expect(await page(2 * bytes + 1)).toBe(3);
    expect(await page(9 * bytes)).toBe(9);
  });

  it('stay cached while another record uses them', async () => {
    const [one, two] = [newRecord('one'), newRecord('two')];
    const { store, find } = await setUp(one, two);
    const { scopes } = await find(two);

    await store.replace({ ...one, version: 2, scopes: ['GET:shop.example/b'] });
    await store.replace({ ...one, version: 3 });

    expect((await find(one)).scopes).toBe(scopes);
  });

  it.each<[string, (store: MemoryTokenStore, record: TokenRecord) => Promise<unknown>]>([
    [
      'replaced',
      (store, one) => store.replace({ ...one, version: 2, scopes: ['a'], requested: ['b'] }),
    ],
    [
      'replaced by one that still has the scopes that it had requested, too',
      async (store, one) => {
        await store.replace({ ...one, version: 2, requested: one.scopes });
        await store.replace({ ...one, version: 3, scopes: ['a'], requested: ['b'] });
      },
    ],
    [
      'purged',
      (store) => store.purge({ now: new Date('2102-01-01T00:00:00.000Z'), minAgeMs: 0, limit: 10 }),
    ],
  ])('are evicted when the last record that used them is %s', async (_, leave) => {
    const one = newRecord('one');
    const { store, find } = await setUp(one);
    const { scopes } = await find(one);

    await leave(store, one);
    const two = newRecord('two');
    await store.insert(two);

    // A new array proves that the store had evicted the old one.
    expect((await find(two)).scopes).not.toBe(scopes);
    expect((await find(two)).scopes).toEqual(scopes);
  });
});

describe('metadata in a memory store', () => {
  it('is one deeply frozen copy, the same on every read', async () => {
    const one = newRecord('one', { metadata: { team: { tags: ['a'] } } });
    const { find } = await setUp(one);
    const metadata = (await find(one)).metadata as { team: { tags: string[] } };

    expect(metadata).not.toBe(one.metadata);
    expect((await find(one)).metadata).toBe(metadata);
    for (const part of [metadata, metadata.team, metadata.team.tags]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
    expect(Object.isFrozen(one.metadata)).toBe(false);
  });
});

describe('purge of a memory store', () => {
  it('finds every ended record, wherever the last step stopped', async () => {
    const ended = new Date('2100-06-01T00:00:00.000Z');
    const records = Array.from({ length: 50 }, (_, index) => newRecord(`n${index}`));
    const { store } = await setUp(...records);
    const isDead = (index: number) => index % 3 === 0;
    for (const [index, { id }] of records.entries()) {
      if (isDead(index)) await store.revoke(id, 'acme', ended);
    }
    const purge = (limit: number) =>
      store.purge({ now: new Date(ended.getTime() + 1), minAgeMs: 0, limit });
    await purge(9);
    // The first step has already passed this record.
    await store.revoke(records[1]?.id as TokenId, 'acme', ended);

    expect((await purge(100)).count).toBe(17 - 9 + 1);
    const left = await store.find(records.map(({ id }) => id));
    expect(left.filter(Boolean)).toHaveLength(50 - 18);
  });
});
