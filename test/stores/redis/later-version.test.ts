import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { RedisTokenStore } from '../../../src/stores/redis/index.ts';
import { KeySpace } from '../../../src/stores/redis/layout.ts';
import { INSERT, REPLACE } from '../../../src/stores/redis/scripts.ts';
import type { TokenId, TokenRecord } from '../../../src/token/record.ts';
import { revoked } from '../../../src/token/revoked.ts';
import { isInstalled } from '../../servers.ts';
import { refusalOf } from '../../support.ts';
import { newRecord } from '../support.ts';
import { intercepted, ioredis, NOW, one, openPlain, ownServer, pageOf, two } from './support.ts';

const NEW_FIELD = '{"of":"a later version"}';
const keys = new KeySpace('tokenwright');

/** Writes records with one more line at their end, after that of the origin, which they do not have. */
function ofLaterVersion(client: Redis): Redis {
  const lastLineOf: Readonly<Record<string, number>> = {
    [INSERT.sha]: 8,
    [REPLACE.sha]: 9,
  };
  return intercepted(client, (_, args, run) => {
    const index = lastLineOf[args[0] as string];
    return run(index === undefined ? args : args.with(index, `${args[index]}\n\n${NEW_FIELD}`));
  });
}

/** Stores of two versions on one server that knows all scripts. */
async function setUp() {
  const { url } = await ownServer();
  const client = ioredis(url);
  for (const { source } of [INSERT, REPLACE]) await client.script('LOAD', source);
  const linesOf = async (id: TokenId) => (await client.get(keys.record(id)))?.split('\n') ?? [];
  const today = openPlain(client);
  const later = openPlain(ofLaterVersion(client));
  return { client, today, later, linesOf };
}

describe.skipIf(!isInstalled('redis'))('a Redis record of a later version', () => {
  it('is read and listed without its new field', async () => {
    const { today, later } = await setUp();
    await later.insert(one);
    await later.insert(two);

    expect(await today.find([one.id])).toEqual([one]);
    expect(await today.find([two.id, one.id])).toEqual([two, one]);
    expect(await today.page(pageOf())).toEqual([two, one]);
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
    ['ends early', (lines: string[]) => lines.slice(0, -3)],
    ['has a malformed time', (lines: string[]) => lines.with(18, 'x')],
    ['has a malformed last field', (lines: string[]) => lines.with(22, 'x')],
    ['has an empty digest', (lines: string[]) => lines.with(11, '')],
  ])('is still reported as store_corrupt if it %s', async (_, spoil) => {
    const { client, today, later, linesOf } = await setUp();
    await later.insert(one);
    await client.set(keys.record(one.id), spoil(await linesOf(one.id)).join('\n'));

    expect((await refusalOf(today.find([one.id]))).code).toBe('store_corrupt');
  });
});

/** The lines that development versions wrote, from the account on in another order. */
function ofDevelopment(count: number) {
  return ([, version = '', stamp = '', generation = '', entry = '', account = '']: string[]) =>
    ['', version, stamp, generation, entry, account, ...new Array<string>(count).fill('')].slice(
      0,
      count,
    );
}

describe.skipIf(!isInstalled('redis'))('a Redis record of another layout', () => {
  it.each<[string, (lines: string[]) => string[], string]>([
    ['later', (lines) => ['2 of a later version', ...lines.slice(1)], 'schema_newer'],
    ['later by far', (lines) => ['12 ', ...lines.slice(1)], 'schema_newer'],
    ['that of development', ofDevelopment(23), 'schema_older'],
    ['that of early development', ofDevelopment(16), 'schema_older'],
  ])('is refused and left unchanged if it is %s', async (_, rewritten, reason) => {
    const { client, today, linesOf } = await setUp();
    await today.insert(one);
    await today.insert(two);
    const record = rewritten(await linesOf(one.id)).join('\n');
    await client.set(keys.record(one.id), record);

    for (const read of [
      () => today.find([one.id]),
      () => today.find([two.id, one.id]),
      () => today.page(pageOf()),
      () => today.scan({ limit: 10 }),
    ]) {
      const { code, details } = await refusalOf(read);
      expect([code, details]).toEqual(['store_corrupt', { reason }]);
    }
    expect(await today.find([two.id])).toEqual([two]);
    for (const write of [
      () => today.replace({ ...one, version: 2 }),
      () => today.revoke(one.id, 'acme', NOW),
      () => today.revokeAll('acme', NOW, 10),
    ]) {
      const { code, message } = await refusalOf(write);
      expect([code, message]).toEqual([
        'store_corrupt',
        expect.stringContaining('another version'),
      ]);
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
    const { extended } = await workSideBySide(openPlain(forgetful), later);

    expect(await countLost(setting, extended)).toBeGreaterThan(0);
  });
});
