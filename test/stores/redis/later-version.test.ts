import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { RedisTokenStore } from '../../../src/stores/redis/index.ts';
import { KeySpace } from '../../../src/stores/redis/layout.ts';
import { INSERT, REPLACE } from '../../../src/stores/redis/scripts.ts';
import type { ListedState, TokenId, TokenRecord } from '../../../src/token/record.ts';
import { revoked } from '../../../src/token/revoked.ts';
import { isInstalled } from '../../servers.ts';
import { refusalOf } from '../../support.ts';
import { EARLIER_RECORDS, LATER_FIELDS } from '../earlier.ts';
import { newRecord } from '../support.ts';
import { ofEarlierVersion } from './earlier-scripts.ts';
import { intercepted, ioredis, openOver, ownServer } from './support.ts';

// Past for the server, too, which decides what is purged.
const NOW = new Date('2020-01-01T00:00:00.000Z');
const NEW_FIELD = '{"of":"a later version"}';
const keys = new KeySpace('tokenwright');
const one = newRecord('one');
const two = newRecord('two');

/** Writes records with one more line at their end. */
function ofLaterVersion(client: Redis): Redis {
  const lastLineOf: Readonly<Record<string, number>> = {
    [INSERT.sha]: 8,
    [REPLACE.sha]: 9,
  };
  return intercepted(client, (_, args, run) => {
    const index = lastLineOf[args[0] as string];
    return run(index === undefined ? args : args.with(index, `${args[index]}\n${NEW_FIELD}`));
  });
}

/** Stores of three versions on one server that knows all scripts. */
async function setUp() {
  const { url } = await ownServer();
  const client = ioredis(url);
  for (const { source } of [INSERT, REPLACE]) await client.script('LOAD', source);
  const linesOf = async (id: TokenId) => (await client.get(keys.record(id)))?.split('\n') ?? [];
  const today = openOver(client);
  const later = openOver(ofLaterVersion(client));
  const earlier = openOver(ofEarlierVersion(client));
  return { client, earlier, today, later, linesOf };
}

describe.skipIf(!isInstalled('redis'))('a Redis record of an earlier version', () => {
  it('can be read, listed and changed', async () => {
    const { earlier, today, linesOf } = await setUp();
    for (const record of EARLIER_RECORDS) await earlier.insert(record);
    const [first] = EARLIER_RECORDS as [TokenRecord];
    expect(await linesOf(first.id)).toHaveLength(16);

    expect(await today.find(EARLIER_RECORDS.map(({ id }) => id))).toEqual(EARLIER_RECORDS);
    expect(await today.page({ account: 'Acme ', limit: 10, liveAt: NOW })).toHaveLength(1);
    const changed = { ...first, ...LATER_FIELDS, version: 2 };
    expect(await today.replace(changed)).toBe(true);
    expect(await today.find([first.id])).toEqual([changed]);
    expect(await today.revoke(first.id, 'acme', NOW)).toBe(true);
    expect(await today.find([first.id])).toEqual([revoked(changed, NOW)]);
  });

  it('keeps later fields when the earlier version changes it', async () => {
    const { earlier, today } = await setUp();
    await today.insert({ ...one, ...LATER_FIELDS });
    const renamed = { ...one, version: 2, name: 'renamed' };
    expect(await earlier.replace(renamed)).toBe(true);

    expect(await today.find([one.id])).toEqual([{ ...renamed, ...LATER_FIELDS }]);
  });

  it('is listed by its state, even if the earlier version does not know the list', async () => {
    const { earlier, today } = await setUp();
    const listed = async (state: ListedState) => {
      const page = await today.page({ account: 'acme', limit: 10, liveAt: NOW, state });
      return page.map(({ id }) => id);
    };
    const three = newRecord('three', LATER_FIELDS);
    await today.insert({ ...one, ...LATER_FIELDS });
    await today.insert({ ...two, ...LATER_FIELDS });
    await today.insert(three);
    await earlier.insert(newRecord('four'));
    expect(await earlier.revoke(one.id, 'acme', NOW)).toBe(true);
    expect(await listed('suspended')).toEqual([two.id, three.id]);
    // A version that does not know the list of revoked tokens cannot add to it.
    expect(await listed('revoked')).toEqual([]);
    expect(await listed('active')).toEqual([newRecord('four').id]);
    expect(await earlier.replace({ ...two, version: 2, expiresAt: NOW })).toBe(true);
    expect(await listed('expired')).toEqual([two.id]);
    expect(await listed('suspended')).toEqual([three.id]);
    expect(await today.replace({ ...two, version: 3 })).toBe(true);
    expect(await listed('active')).toEqual([two.id, newRecord('four').id]);
    expect(await today.revoke(two.id, 'acme', NOW)).toBe(true);
    expect(await listed('revoked')).toEqual([two.id]);
    await earlier.purge({ now: new Date(NOW.getTime() + 1), minAgeMs: 0, limit: 10 });
    expect(await listed('all')).toEqual([three.id, newRecord('four').id]);
    expect(await listed('revoked')).toEqual([]);
  });

  it('loses a later field that this version removes', async () => {
    const { earlier, today } = await setUp();
    await today.insert({ ...one, ...LATER_FIELDS });
    expect(await today.replace({ ...one, version: 2 })).toBe(true);
    expect(await earlier.replace({ ...one, version: 3 })).toBe(true);

    expect(await today.find([one.id])).toEqual([{ ...one, version: 3 }]);
  });
});

describe.skipIf(!isInstalled('redis'))(
  'Redis records that an earlier version has not counted',
  () => {
    const root = newRecord('root');
    const child = newRecord('child', { ancestors: [root.id] });
    const grandchild = newRecord('grand', { ancestors: [root.id, child.id], createdAt: NOW });
    const ended = newRecord('ended', { expiresAt: NOW });
    const holder = { account: 'acme', liveAt: NOW, most: { live: 1000, ended: 1000 } };

    /** Records without the lists of this version, and an entry of a token that is gone. */
    async function setUpUncounted() {
      const setting = await setUp();
      const { client, today } = setting;
      const many = Array.from({ length: 300 }, (_, n) => newRecord(`n${n}`, { createdAt: NOW }));
      for (const record of [root, child, grandchild, ended, two, ...many])
        await today.insert(record);
      await client.del(keys.record(two.id));
      const lists = [...(await client.keys('*:counted:*')), ...(await client.keys('*:tree:*'))];
      await client.del(lists);
      return { ...setting, lists };
    }

    it('are counted from then on, and not twice', async () => {
      const { client, today, lists } = await setUpUncounted();
      for (let n = 0; n < 3; n += 1) {
        expect(await today.count(holder)).toEqual({ live: 301, ended: 1 });
        expect(await today.count({ ...holder, root: root.id })).toEqual({ live: 2, ended: 0 });
      }
      const counted = lists.filter((key) => !key.includes(`:tree:`));
      expect((await client.exists(counted)) > 0).toBe(true);
      expect((await today.prune({ account: 'acme', now: NOW, limit: 10 })).ids).toEqual([ended.id]);
    });

    it('are found by their root', async () => {
      const { today } = await setUpUncounted();
      const page = { account: 'acme', limit: 10, liveAt: NOW, root: root.id };
      expect(await today.page(page)).toEqual([child, grandchild]);
      expect(await today.page({ ...page, root: child.id })).toEqual([]);
    });
  },
);

describe.skipIf(!isInstalled('redis'))('a Redis record of a later version', () => {
  it('is read and listed without its new field', async () => {
    const { today, later } = await setUp();
    await later.insert(one);
    await later.insert(two);

    expect(await today.find([one.id])).toEqual([one]);
    expect(await today.find([two.id, one.id])).toEqual([two, one]);
    expect(await today.page({ account: 'acme', limit: 10, liveAt: NOW })).toEqual([two, one]);
  });

  it.each<[string, (store: RedisTokenStore) => Promise<unknown>, Partial<TokenRecord>]>([
    ['replace', (store) => store.replace({ ...one, version: 2, name: 'new' }), { version: 2 }],
    ['revoke', (store) => store.revoke(one.id, 'acme', NOW, 1), { revokedAt: NOW }],
    ['revokeAll', (store) => store.revokeAll('acme', NOW, 10), { revokedAt: NOW }],
  ])('keeps its new field on %s', async (_, change, changed) => {
    const { today, later, linesOf } = await setUp();
    await later.insert(one);
    const before = await linesOf(one.id);

    expect(Number(await change(today))).toBe(1);
    expect((await today.find([one.id]))[0]).toMatchObject(changed);
    const after = await linesOf(one.id);
    expect(after).toHaveLength(before.length);
    expect(after.at(-1)).toBe(NEW_FIELD);
  });

  it('has its new field only once, whichever version changes it', async () => {
    const { today, later, linesOf } = await setUp();
    await today.insert(one);
    for (const [index, store] of [later, today, later, later, today].entries()) {
      expect(await store.replace({ ...one, version: index + 2 })).toBe(true);
    }

    const lines = await linesOf(one.id);
    expect(lines.filter((line) => line === NEW_FIELD)).toHaveLength(1);
    expect(lines.at(-1)).toBe(NEW_FIELD);
  });

  it.each([
    ['ends early', (lines: string[]) => lines.slice(0, -2)],
    ['has a malformed time', (lines: string[]) => lines.with(15, 'x')],
    ['has a malformed last field', (lines: string[]) => lines.with(19, 'x')],
    ['has an empty digest', (lines: string[]) => lines.with(8, '')],
  ])('is still reported as store_corrupt if it %s', async (_, spoil) => {
    const { client, today, later, linesOf } = await setUp();
    await later.insert(one);
    await client.set(keys.record(one.id), spoil(await linesOf(one.id)).join('\n'));

    expect((await refusalOf(today.find([one.id]))).code).toBe('store_corrupt');
  });

  it('is refused and left unchanged if its layout is later', async () => {
    const { client, today, linesOf } = await setUp();
    await today.insert(one);
    await today.insert(two);
    const record = ['layout 2', ...(await linesOf(one.id))].join('\n');
    await client.set(keys.record(one.id), record);

    for (const call of [
      () => today.find([one.id]),
      () => today.find([two.id, one.id]),
      () => today.page({ account: 'acme', limit: 10, liveAt: NOW }),
      () => today.replace({ ...one, version: 2 }),
      () => today.revoke(one.id, 'acme', NOW),
      () => today.revokeAll('acme', NOW, 10),
    ]) {
      const { code, message } = await refusalOf(call);
      expect([code, message]).toEqual(['store_corrupt', expect.stringContaining('later version')]);
    }
    expect(await client.get(keys.record(one.id))).toBe(record);
  });
});

/** A random generator that is the same in each run. */
function randomly(seed = 1): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

const ROUNDS = 100;
const CONCURRENT = 10;

/**
 * Makes a thousand changes, each by one of two stores, ten of them concurrently. Returns the expected
 * records, and the ids of those that the later version wrote.
 */
async function workSideBySide(today: RedisTokenStore, later: RedisTokenStore) {
  const random = randomly();
  const expected = new Map<TokenId, TokenRecord>();
  const extended = new Set<TokenId>();
  const work = async (lane: number) => {
    const known = [...expected.values()].filter(
      ({ id, revokedAt }) => Number(id.slice(0, 2)) === lane && revokedAt === undefined,
    );
    const record = known[random(known.length || 1)];
    const store = random(2) === 0 ? today : later;
    if (record === undefined || random(3) === 0) {
      const label = `${String(lane).padStart(2, '0')}n${expected.size}`;
      const inserted = newRecord(label);
      expected.set(inserted.id, inserted);
      if (store === later) extended.add(inserted.id);
      return store.insert(inserted);
    }
    if (random(3) === 0) {
      expected.set(record.id, revoked(record, NOW));
      return expect(await store.revoke(record.id, 'acme', NOW, record.version)).toBe(true);
    }
    const next = { ...record, version: record.version + 1, name: `name ${random(1000)}` };
    expected.set(record.id, next);
    if (store === later) extended.add(record.id);
    expect(await store.find([record.id])).toEqual([record]);
    return expect(await store.replace(next)).toBe(true);
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    await Promise.all(Array.from({ length: CONCURRENT }, (_, lane) => work(lane)));
  }
  return { expected, extended };
}

/** How many of these records lost the field of the later version. */
async function countLost(
  { linesOf }: Awaited<ReturnType<typeof setUp>>,
  extended: ReadonlySet<TokenId>,
): Promise<number> {
  const kept = await Promise.all([...extended].map(linesOf));
  return kept.filter((lines) => lines.at(-1) !== NEW_FIELD).length;
}

describe.skipIf(!isInstalled('redis'))('a thousand Redis operations of two versions', () => {
  it('lose no change and no field', async () => {
    const setting = await setUp();
    const { today, later } = setting;
    const { expected, extended } = await workSideBySide(today, later);

    expect(extended.size).toBeGreaterThan(100);
    for (const store of [today, later]) {
      expect(await store.find([...expected.keys()])).toEqual([...expected.values()]);
    }
    expect(await countLost(setting, extended)).toBe(0);
  });

  it('lose fields if one version drops those it does not know (the control)', async () => {
    const setting = await setUp();
    const { client, later } = setting;
    const source = REPLACE.source.replace(/^changed = changed \.\..*\n/m, '');
    expect(source).not.toBe(REPLACE.source);
    const forgetful = intercepted(client, (_, args, run) =>
      args[0] === REPLACE.sha ? client.call('eval', source, ...args.slice(1)) : run(args),
    );
    const { extended } = await workSideBySide(openOver(forgetful), later);

    expect(await countLost(setting, extended)).toBeGreaterThan(0);
  });
});
