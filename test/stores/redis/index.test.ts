import { Cluster, type Redis } from 'ioredis';
import { createClient, RESP_TYPES } from 'redis';
import { afterAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { type PurgeQuery, positionOf, type StoreFinding } from '../../../src/ports/token-store.ts';
import {
  type RedisClient,
  type RedisStoreEvent,
  RedisTokenStore,
} from '../../../src/stores/redis/index.ts';
import { KeySpace, SHARDS, shardOf } from '../../../src/stores/redis/layout.ts';
import { COUNT, DUE, REMOVE, type Script } from '../../../src/stores/redis/scripts.ts';
import type { TokenId, TokenRecord } from '../../../src/token/record.ts';
import { revoked } from '../../../src/token/revoked.ts';
import { startProxy, type TcpProxy } from '../../faults/proxy.ts';
import { isInstalled } from '../../servers.ts';
import { refusalOf } from '../../support.ts';
import { purgeByFastClock, TOKENS } from '../fast-clock.ts';
import { newRecord } from '../support.ts';
import {
  type Call,
  CLIENTS,
  connectionsOf,
  countOf,
  intercepted,
  ioredis,
  NOW,
  newPrefix,
  nodeRedis,
  nodesOf,
  one,
  openOver,
  ownPair,
  ownServer,
  pageOf,
  removeKeys,
  SHARED_CLIENTS,
  two,
  VERBS,
  WITHIN,
} from './support.ts';

const { redis: loneUrl, redisCluster: clusterUrl } = inject('servers');
const LATER = new Date('2020-06-01T00:00:00.000Z');

afterAll(removeKeys);

function newRecords(count: number, fields: Partial<TokenRecord> = {}): TokenRecord[] {
  return Array.from({ length: count }, (_, index) =>
    newRecord(`n${index}`, { createdAt: new Date(NOW.getTime() + index), ...fields }),
  );
}

/** The first one alone: while a client connects, thousands of calls that wait for it would slow it down. */
async function insertAll(
  store: RedisTokenStore,
  [first, ...others]: readonly TokenRecord[],
): Promise<void> {
  if (first !== undefined) await store.insert(first);
  await Promise.all(others.map((record) => store.insert(record)));
}

function idsOf(records: readonly (TokenRecord | undefined)[]): (TokenId | undefined)[] {
  return records.map((record) => record?.id);
}

function purgeOf(limit = 1000, now = LATER): PurgeQuery {
  return { now, minAgeMs: 0, limit };
}

const WRITES = VERBS.filter(([verb]) =>
  ['insert', 'replace', 'revoke', 'revokeAll'].includes(verb),
);

/** Ids that all belong to one shard. */
function idsInOneShard(count: number): TokenId[] {
  const ids: TokenId[] = [];
  for (let index = 0; ids.length < count; index += 1) {
    const id = String(index).padEnd(22, 'x') as TokenId;
    if (shardOf(id) === SHARDS[5]) ids.push(id);
  }
  return ids;
}

/** Records the commands that go through a client. */
function recorded(client: Redis): { client: Redis; takeCommands(): string[] } {
  const commands: string[] = [];
  return {
    client: intercepted(client, (command, _, run) => {
      commands.push(command);
      return run();
    }),
    takeCommands: () => commands.splice(0),
  };
}

describe('options of a Redis store', () => {
  const idle = () => ioredis('redis://127.0.0.1:1', { lazyConnect: true });

  it.each([
    ['keyPrefix', ['a', 'acme:tokens_2.x-y', 'x'.repeat(64)], ['', '{a}', 'a b', 'x'.repeat(65)]],
    ['replicas', [0, 1, 10], [-1, 11, 0.5, Number.NaN]],
    ['waitMs', [1, 500, 10_000], [0, 10_001, 1.5, Number.POSITIVE_INFINITY]],
    ['onEvent', [() => {}, undefined], ['text', {}, null]],
  ])('check %s', (name, good, bad) => {
    const client = idle();
    for (const value of good) {
      expect(() => new RedisTokenStore(client, { [name]: value })).not.toThrow();
    }
    for (const value of bad) {
      expect(() => new RedisTokenStore(client, { [name]: value })).toThrow(
        expect.objectContaining({
          code: 'invalid_options',
          message: expect.stringContaining(name),
        }),
      );
    }
  });

  it.each([undefined, null, {}, 'redis://127.0.0.1', { call() {} }])(
    'refuse %s as a client',
    (client) => {
      expect(() => new RedisTokenStore(client as never)).toThrow(
        expect.objectContaining({ code: 'invalid_options' }),
      );
    },
  );

  it.each(['slave', 'all', () => undefined] as const)(
    'refuse a cluster client with scaleReads: %s',
    (scaleReads) => {
      const nodes = [{ host: '127.0.0.1', port: 1 }];
      const replicated = new Cluster(nodes, { lazyConnect: true, scaleReads });
      const plain = new Cluster(nodes, { lazyConnect: true });

      expect(() => new RedisTokenStore(replicated)).toThrow(
        expect.objectContaining({ code: 'invalid_options' }),
      );
      expect(() => new RedisTokenStore(plain)).not.toThrow();
    },
  );
});

describe.skipIf(loneUrl === undefined)('a Redis client of the host', () => {
  it.each<[string, () => RedisClient | Promise<RedisClient>]>([
    ['keyPrefix', () => ioredis(undefined, { keyPrefix: newPrefix() })],
    ['enableAutoPipelining', () => ioredis(undefined, { enableAutoPipelining: true })],
    ['stringNumbers', () => ioredis(undefined, { stringNumbers: true })],
    ['RESP 2', () => ioredis(undefined, { protocol: 2 })],
    ['maps of RESP 3', () => ioredis(undefined, { replyMapping: 'resp3' })],
    ['lazyConnect', () => ioredis(undefined, { lazyConnect: true })],
    [
      'replies as buffers',
      async () => (await nodeRedis()).withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }),
    ],
  ])('can have the setting %s', async (_, connectTo) => {
    const store = openOver(await connectTo());
    const hints: unknown[] = [];
    await store.watch((ids) => hints.push(ids));
    await insertAll(store, [one, two]);

    expect(await store.find([one.id])).toEqual([one]);
    expect(await store.find([two.id, one.id])).toEqual([two, one]);
    for (const maxBytes of [undefined, 1, 10_000]) {
      const page = idsOf(await store.page({ ...pageOf(), maxBytes }));
      expect(page).toEqual(maxBytes === 1 ? [two.id] : [two.id, one.id]);
    }
    expect(new Set((await store.scan({ limit: 9 })).records)).toEqual(new Set([one, two]));
    expect(await store.replace({ ...one, version: 2 })).toBe(true);
    expect(await store.revoke(one.id, 'acme', NOW)).toBe(true);
    expect(await store.count(countOf())).toEqual({ live: 1, ended: 1 });
    expect(await store.revokeAll('acme', NOW, 1000)).toBe(1);
    expect((await store.prune({ account: 'acme', now: NOW, limit: 1 })).count).toBe(1);
    expect((await store.purge(purgeOf())).count).toBe(1);
    expect(await store.hasReached(NOW)).toBe(true);
    expect(await store.doctor()).toEqual([]);
    await vi.waitFor(() => expect(hints).toEqual([[one.id], [one.id], [two.id]]), WITHIN);
  });

  it('can be of either driver: both show the same tokens', async () => {
    const keyPrefix = newPrefix();
    const first = openOver(ioredis(), { keyPrefix });
    const second = openOver(await nodeRedis(), { keyPrefix });
    const elsewhere = openOver(ioredis());
    await first.insert(one);

    expect(await second.find([one.id])).toEqual([one]);
    await second.revoke(one.id, 'acme', LATER);
    expect(await first.find([one.id])).toEqual([revoked(one, LATER)]);
    expect(await elsewhere.find([one.id])).toEqual([undefined]);
  });

  it('can still be connecting', async () => {
    const client = createClient({ url: loneUrl as string });
    onTestFinished(() => client.destroy());
    const connecting = client.connect();

    expect(await openOver(client).find([one.id])).toEqual([undefined]);
    await connecting;
  });
});

describe.skipIf(loneUrl === undefined)('scan of a Redis store', () => {
  // Redis returns a short set as a whole, and a longer one by a cursor.
  it.each([
    [100, 7],
    [300, 40],
  ])('returns each of %i tokens of one shard, %i in a step', async (count, limit) => {
    const store = openOver(ioredis());
    const ids = idsInOneShard(count);
    await insertAll(
      store,
      ids.map((id) => newRecord(id)),
    );

    const found: (TokenId | undefined)[] = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const step = await store.scan({ after: after || undefined, limit });
      expect(step.records.length).toBeLessThanOrEqual(limit);
      found.push(...idsOf(step.records));
      after = step.next;
    }
    expect(new Set(found)).toEqual(new Set(ids));
  });

  it.each(['x', '1', '1 x', '-1 0', '100 0'])('refuses an invalid position: %s', async (after) => {
    expect(await refusalOf(openOver(ioredis()).scan({ after, limit: 1 }))).toMatchObject({
      code: 'invalid_request',
    });
  });
});

describe.skipIf(loneUrl === undefined)('round trips of a Redis store', () => {
  it('are one for each verb, except page and revokeAll', async () => {
    const { client, takeCommands } = recorded(ioredis());
    const keyPrefix = newPrefix();
    const store = openOver(ioredis(), { keyPrefix });
    // After this, the server knows the scripts.
    for (const [, call] of VERBS) await call(store);
    await store.purge(purgeOf());
    await store.insert(one);
    takeCommands();

    const commandsOf = async (call: Call) => {
      // A store looks each second whether its own changes are still there.
      const fresh = openOver(client, { keyPrefix });
      await call(fresh);
      await fresh.close();
      return takeCommands();
    };
    const counts: Record<string, string[]> = {};
    for (const [verb, call] of VERBS) counts[verb] = await commandsOf(call);
    expect(counts).toEqual({
      insert: ['evalsha'],
      find: ['getex'],
      'find of several': ['evalsha'],
      page: ['evalsha', 'evalsha'],
      'page by expiry': ['evalsha', 'evalsha'],
      replace: ['evalsha'],
      revoke: ['evalsha'],
      // One command lists the tokens, the other one revokes them.
      revokeAll: ['evalsha', 'evalsha'],
      // It prunes what the verbs before it have revoked, and looks for more.
      purge: ['evalsha'],
      prune: ['evalsha', 'evalsha', 'evalsha'],
      count: ['evalsha'],
      hasReached: ['evalsha'],
    });
  });

  it('send a script in full if the server has forgotten it', async () => {
    const plain = ioredis();
    const { client, takeCommands } = recorded(plain);
    const store = openOver(client);
    await plain.script('FLUSH');

    await store.insert(one);
    expect(takeCommands()).toEqual(['evalsha', 'eval']);
    await store.insert(two);
    expect(takeCommands()).toEqual(['evalsha']);
  });

  it('are two for a page, however many newer tokens were revoked', async () => {
    const { client, takeCommands } = recorded(ioredis());
    const store = openOver(client);
    const revoked = newRecords(1500);
    const old = newRecord('old', { createdAt: new Date(0) });
    await insertAll(store, revoked);
    await store.revokeAll('acme', NOW, 2000);
    await store.insert(old);
    takeCommands();

    expect(await store.page(pageOf('acme', 2))).toEqual([old]);
    expect(takeCommands()).toEqual(['evalsha', 'getex']);
  });

  it('are fewer than ten for a page, however many newer tokens have expired', async () => {
    const { client, takeCommands } = recorded(ioredis());
    const store = openOver(client);
    const old = newRecord('old', { createdAt: new Date(0) });
    await insertAll(store, [old, ...newRecords(1500, { expiresAt: NOW })]);
    takeCommands();

    expect(await store.page(pageOf('acme', 2))).toEqual([old]);
    expect(takeCommands().length).toBeLessThan(10);
  });
});

describe.skipIf(loneUrl === undefined)('count and prune of a Redis store', () => {
  async function setUp() {
    const { client, takeCommands } = recorded(ioredis());
    const keyPrefix = newPrefix();
    const store = openOver(client, { keyPrefix });
    // After this, the server knows the scripts.
    await store.insert(newRecord('warm', { account: 'warm', expiresAt: NOW }));
    await store.count(countOf());
    await store.prune({ account: 'warm', now: NOW, limit: 1 });
    // A store looks each second whether its own changes are still there.
    const writer = openOver(ioredis(), { keyPrefix });
    return { store, writer, client, keys: new KeySpace(keyPrefix), takeCommands };
  }

  it('count in one round trip, without reading entries', async () => {
    const { store, takeCommands } = await setUp();
    await insertAll(store, newRecords(1500, { expiresAt: NOW }));
    await insertAll(store, [one, two]);
    takeCommands();

    expect(await store.count(countOf())).toEqual({ live: 2, ended: 1500 });
    expect(takeCommands()).toEqual(['evalsha']);
    // Redis knows the length of a range of an index without going through it.
    expect(new Set(COUNT.source.match(/Z[A-Z]{3,}/g))).toEqual(
      new Set(['ZREM', 'ZLEXCOUNT', 'ZCARD']),
    );
    expect(await store.count(countOf({ most: { live: 1, ended: 7 } }))).toEqual({
      live: 1,
      ended: 7,
    });
  });

  it('prune in few commands, however many tombstones and live tokens there are', async () => {
    const { store, takeCommands, writer } = await setUp();
    await insertAll(writer, newRecords(1000, { format: 'sanctum' }));
    await writer.revokeAll('acme', NOW, 1000);
    const live = Array.from({ length: 1000 }, (_, n) => newRecord(`live${n}`));
    const gone = Array.from({ length: 5 }, (_, n) =>
      newRecord(`gone${n}`, { expiresAt: new Date(+NOW + n) }),
    );
    await insertAll(writer, [...live, ...gone]);
    takeCommands();

    const prune = (limit: number) => store.prune({ account: 'acme', now: LATER, limit });
    expect((await prune(3)).ids).toEqual(idsOf(gone.slice(0, 3)));
    expect(takeCommands()).toEqual(['evalsha', 'evalsha']);
    expect((await prune(1000)).ids).toEqual(idsOf(gone.slice(3)));
    expect(takeCommands()).toEqual(['evalsha', 'evalsha', 'evalsha']);
    expect(await store.count(countOf())).toEqual({ live: 1000, ended: 1000 });
  });

  it('leave no key behind when all tokens are gone', async () => {
    const { store, client, keys } = await setUp();
    const root = newRecord('root');
    const child = newRecord('child', { ancestors: [root.id] });
    const grandchild = newRecord('grand', { ancestors: [root.id, child.id], suspendedAt: NOW });
    const marked = newRecord('marked', { format: 'sanctum' });
    await insertAll(store, [root, child, grandchild, marked]);
    await store.replace({ ...child, version: 2, expiresAt: LATER });
    await store.revokeAll('acme', NOW, 10);
    await store.prune({ account: 'acme', root: root.id, now: LATER, limit: 1 });
    expect((await store.purge(purgeOf())).count).toBe(3);

    expect(await client.keys(`${keys.channel.replace(':changes', '')}:*`)).toEqual([]);
  });

  it('prune an entry of which there is no token, without an end', async () => {
    const { store, client, keys } = await setUp();
    const ended = { ...one, expiresAt: NOW };
    await insertAll(store, [ended, { ...two, expiresAt: NOW }]);
    await client.del(keys.record(one.id));
    const pruned = await store.prune({ account: 'acme', now: LATER, limit: 10 });

    expect(pruned.count).toBe(1);
    expect(await store.count(countOf())).toEqual({ live: 0, ended: 0 });
  });
});

describe.skipIf(loneUrl === undefined)('page of a Redis store with maxBytes', () => {
  const longList = (label: string) => [`GET:shop.example/${label}/${'x'.repeat(100_000)}`];

  it('takes no additional round trips unless records are long', async () => {
    const { client, takeCommands } = recorded(ioredis());
    const store = openOver(client);
    const records = newRecords(30).reverse();
    await insertAll(store, records);
    const query = { ...pageOf('acme', 20), maxBytes: 20_000 };
    await store.page(query);
    takeCommands();

    expect(await store.page(query)).toEqual(records.slice(0, 20));
    expect(takeCommands()).toEqual(['evalsha', 'evalsha']);
  });

  it('reads little more than it returns', async () => {
    let bytes = 0;
    const client = intercepted(ioredis(), async (_, __, run) => {
      const answer = await run();
      bytes += JSON.stringify(answer).length;
      return answer;
    });
    const store = openOver(client);
    const records = newRecords(60).map((record, index) =>
      index % 3 === 0 ? record : { ...record, scopes: longList(`${index}`) },
    );
    await insertAll(store, records);
    records.reverse();
    const query = { ...pageOf('acme', 100), maxBytes: 500_000 };
    bytes = 0;

    const page = await store.page(query);
    expect(page).toEqual(records.slice(0, 7));
    expect(bytes).toBeLessThan(700_000);
    expect(await store.page({ ...query, after: positionOf(page.at(-1) as TokenRecord) })).toEqual(
      records.slice(7, 14),
    );
    expect(await store.page({ ...query, maxBytes: 1 })).toEqual(records.slice(0, 1));
  });
});

describe.skipIf(loneUrl === undefined)('a Redis store whose driver sends each script twice', () => {
  function setUp() {
    const client = intercepted(ioredis(), async (command, _, run) => {
      if (command.startsWith('eval')) await run();
      return run();
    });
    return { store: openOver(client) };
  }

  it('returns the same answer as for one script', async () => {
    const { store } = setUp();
    await insertAll(store, [one, two]);

    expect(await store.replace({ ...one, version: 2 })).toBe(true);
    expect(await store.revoke(one.id, 'acme', NOW, 2)).toBe(true);
    expect(await store.revokeAll('acme', LATER, 1000)).toBe(1);
    expect(await store.find([one.id, two.id])).toEqual([
      revoked({ ...one, version: 2 }, NOW),
      revoked(two, LATER),
    ]);
  });

  it('still carries out two calls as two', async () => {
    const { store } = setUp();
    await store.insert(one);

    await expect(store.insert(one)).rejects.toMatchObject({ code: 'id_taken' });
    expect(await store.replace({ ...one, version: 2 })).toBe(true);
    expect(await store.replace({ ...one, version: 2 })).toBe(false);
    expect(await store.revoke(one.id, 'acme', NOW)).toBe(true);
    expect(await store.revoke(one.id, 'acme', NOW)).toBe(false);
    expect(await store.revokeAll('acme', NOW, 1000)).toBe(0);
  });

  it('counts each token once', async () => {
    const { store } = setUp();
    await insertAll(store, newRecords(20));
    await store.revoke(newRecord('n3').id, 'acme', NOW);
    await store.replace({ ...newRecord('n4'), expiresAt: NOW, version: 2 });

    expect(await store.count(countOf())).toEqual({ live: 18, ended: 2 });
  });
});

describe.skipIf(loneUrl === undefined)('concurrent calls of Redis stores', () => {
  it('have one winner for each version, even over different drivers', async () => {
    const keyPrefix = newPrefix();
    const stores = [
      openOver(ioredis(), { keyPrefix }),
      openOver(ioredis(undefined, { enableAutoPipelining: true }), { keyPrefix }),
      openOver(await nodeRedis(), { keyPrefix }),
    ];
    const [store] = stores as [RedisTokenStore];
    await store.insert(one);

    for (let version = 2; version < 10; version += 1) {
      const rivals = Array.from({ length: 64 }, (_, rival) =>
        stores[rival % 3]?.replace({ ...one, version, name: `rival ${rival}` }),
      );
      const outcomes = await Promise.all(rivals);
      expect(outcomes.filter(Boolean)).toHaveLength(1);
      const [kept] = await store.find([one.id]);
      expect(kept).toMatchObject({ version, name: `rival ${outcomes.indexOf(true)}` });
    }
  });

  it('leave tokens that are inserted during revokeAll either revoked or listed', async () => {
    const store = openOver(ioredis());
    const before = newRecords(50);
    const during = newRecords(50).map((record) => ({
      ...record,
      id: record.id.replace('n', 'm') as TokenId,
    }));
    await insertAll(store, before);

    const inserts = during.map((record) => store.insert(record));
    const count = await store.revokeAll('acme', LATER, 1000);
    await Promise.all(inserts);

    const revoked = (await store.find(idsOf([...before, ...during]) as TokenId[])).filter(
      (record) => record?.revokedAt !== undefined,
    );
    expect(revoked).toHaveLength(count);
    expect(idsOf(revoked)).toEqual(expect.arrayContaining(idsOf(before)));
    const listed = await store.page(pageOf());
    expect(listed).toHaveLength(100 - count);
    expect(listed.filter(({ revokedAt }) => revokedAt !== undefined)).toEqual([]);
  });

  it('fill a page even if listed tokens are revoked before they are read', async () => {
    const plain = ioredis();
    const keyPrefix = newPrefix();
    const other = openOver(plain, { keyPrefix });
    const records = newRecords(20);
    await insertAll(other, records);
    let commands = 0;
    const client = intercepted(plain, async (_, __, run) => {
      commands += 1;
      // Revokes between the command that lists and the one that reads.
      if (commands === 2) {
        await Promise.all(records.slice(17).map((record) => other.revoke(record.id, 'acme', NOW)));
      }
      return run();
    });

    const page = await openOver(client, { keyPrefix }).page(pageOf('acme', 5));
    expect(page).toEqual(records.slice(12, 17).reverse());
  });
});

describe.skipIf(loneUrl === undefined)('revokeAll of a Redis store', () => {
  it('revokes more tokens than one script can', async () => {
    const store = openOver(ioredis());
    await insertAll(store, newRecords(1200));
    await store.insert(newRecord('other', { account: 'other' }));

    expect(await store.revokeAll('acme', NOW, 2000)).toBe(1200);
    expect(await store.page(pageOf())).toEqual([]);
    expect(await store.page(pageOf('other'))).toHaveLength(1);
  });

  it('rejects if a command fails halfway, and can be called again', async () => {
    let batches = 0;
    const client = intercepted(ioredis(), (_, args, run) => {
      if (Number(args[1]) <= 64) return run();
      batches += 1;
      return batches === 2 ? Promise.reject(new Error('Connection is closed.')) : run();
    });
    const store = openOver(client);
    const records = newRecords(1200);
    await insertAll(store, records);

    await expect(store.revokeAll('acme', NOW, 2000)).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    const left = await store.page(pageOf('acme', 2000));
    expect(left.length).toBeGreaterThanOrEqual(100);
    expect(left.length).toBeLessThan(1200);
    expect(await store.revokeAll('acme', LATER, 2000)).toBe(left.length);
    expect(await store.page(pageOf())).toEqual([]);
  });

  it('revokes up to limit tokens in few commands, even if all are in one shard', async () => {
    const { client, takeCommands } = recorded(ioredis());
    const store = openOver(client);
    const { tag } = shardOf(one.id);
    const records = newRecords(64 * 200).filter(({ id }) => shardOf(id).tag === tag);
    const more = newRecords(500).filter(({ id }) => shardOf(id).tag !== tag);
    await insertAll(store, [...records, ...more]);
    await store.revokeAll('acme', NOW, 1);
    takeCommands();

    expect(await store.revokeAll('acme', NOW, 200)).toBe(200);
    expect(takeCommands().length).toBeLessThanOrEqual(8);
    const left = records.length + more.length - 201;
    expect(await store.revokeAll('acme', NOW, left)).toBe(left);
    expect(takeCommands().length).toBeLessThanOrEqual(16);
    expect(await store.revokeAll('acme', NOW, 1)).toBe(0);
  });

  it('reads and changes few tokens per command, however many the account has', async () => {
    const sizes: number[] = [];
    const client = intercepted(ioredis(), async (_, args, run) => {
      const answer = (await run()) as unknown[];
      // The script that lists returns arrays; the other scripts have five keys for each token.
      const isList = Array.isArray(answer[0]);
      sizes.push(isList ? answer.flat().length : Number(args[1]) / 5);
      return answer;
    });
    const store = openOver(client);
    await insertAll(store, newRecords(3000));
    sizes.length = 0;

    expect(await store.revokeAll('acme', NOW, 200)).toBe(200);
    const [listed, ...changed] = sizes;
    expect(listed).toBeLessThan(300);
    expect(changed).toEqual([100, 100]);
  });

  it('revokes up to limit tokens while another store revokes the same ones', async () => {
    const plain = ioredis();
    const keyPrefix = newPrefix();
    const other = openOver(plain, { keyPrefix });
    await insertAll(other, newRecords(300));
    let steps = 0;
    const rivals: number[] = [];
    const client = intercepted(plain, async (_, __, run) => {
      steps += 1;
      if (steps === 2) rivals.push(await other.revokeAll('acme', NOW, 50));
      return run();
    });

    expect(await openOver(client, { keyPrefix }).revokeAll('acme', NOW, 100)).toBe(100);
    expect(rivals).toEqual([50]);
    expect(await other.revokeAll('acme', NOW, 1000)).toBe(150);
  });
});

describe.skipIf(loneUrl === undefined)('a corrupt record in Redis', () => {
  async function setUp(fields: Partial<TokenRecord> = {}) {
    const client = ioredis();
    const keyPrefix = newPrefix();
    const store = openOver(client, { keyPrefix });
    await insertAll(store, [{ ...one, ...fields }, two]);
    const key = new KeySpace(keyPrefix).record(one.id);
    const lines = ((await client.get(key)) as string).split('\n');
    return { client, store, key, lines };
  }

  it.each<[string, number, string]>([
    ['a time of revocation', 0, '1 x'],
    ['a version', 1, ''],
    ['a version', 1, 'x'],
    ['a version', 1, '9007199254740993'],
    ['an index entry', 4, ''],
    ['an index entry', 4, `1${'x'.repeat(16)}${one.id} 4133980799999`],
    ['an index entry', 4, `10004102444800000${one.id} `],
    ['an index entry', 4, `10004102444800000${one.id} 9000000000000000`],
    ['an account', 5, ''],
    ['an account', 5, '"a\\"'],
    ['a suspension', 6, 'x'],
    ['ancestors', 7, '["x"]'],
    ['a prefix', 9, ''],
    ['a key id', 10, ''],
    ['a digest', 11, ''],
    ['a digest', 11, Buffer.alloc(31).toString('base64')],
    ['a digest', 11, Buffer.alloc(33).toString('base64')],
    ['a digest', 11, '!'.repeat(44)],
    ['a box', 12, 'AAA!'],
    ['scopes', 13, ''],
    ['scopes', 13, 'garbage'],
    ['scopes', 13, '{"a":"secret"}'],
    ['scopes', 13, '["a",1]'],
    ['requested scopes', 14, 'null'],
    ['a name', 15, '"\\x"'],
    ['metadata', 16, '[1]'],
    ['metadata', 16, 'garbage'],
    ['a previous digest', 17, 'AAAA'],
    ['a grace period', 18, 'x'],
    ['a pending value', 21, '{}'],
    ['limits', 22, 'garbage'],
  ])('makes find and page reject with store_corrupt: %s (line %i: %j)', async (_, index, line) => {
    const { client, store, key, lines } = await setUp();
    await client.set(key, lines.with(index, line).join('\n'));

    for (const ids of [[one.id], [two.id, one.id]]) {
      const { code, message } = await refusalOf(store.find(ids));
      expect(code).toBe('store_corrupt');
      expect(message).not.toMatch(/garbage|secret|JSON/);
    }
    expect(await store.find([two.id])).toEqual([two]);
    await expect(store.page(pageOf())).rejects.toMatchObject({ code: 'store_corrupt' });
  });

  it.each(['', 'garbage', 'a\nb'])('is not overwritten, but can be purged: %j', async (value) => {
    const { client, store, key } = await setUp({ expiresAt: LATER });
    await client.set(key, value);

    await expect(store.insert(one)).rejects.toMatchObject({ code: 'id_taken' });
    for (const call of [
      () => store.replace({ ...one, version: 2 }),
      () => store.revoke(one.id, 'acme', NOW),
      // This still revokes the other token.
      () => store.revokeAll('acme', NOW, 1000),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'store_corrupt' });
      expect(await client.get(key)).toBe(value);
    }
    expect(await store.find([two.id])).toEqual([revoked(two, NOW)]);
    expect((await store.purge(purgeOf(10, new Date(8.64e15)))).count).toBe(2);
    expect(await client.exists(key)).toBe(0);
  });

  it.each([[], [[]], ['OK']])(
    'makes revokeAll reject with store_corrupt if lists are missing: %j',
    async (...lists) => {
      const client = intercepted(ioredis(), async (name, _, run) =>
        name.startsWith('eval') ? lists : run(),
      );

      const refusal = await refusalOf(openOver(client).revokeAll('acme', NOW, 1000));
      expect(refusal.code).toBe('store_corrupt');
    },
  );

  it('makes calls reject with store_corrupt if its key has another type', async () => {
    const { client, store, key } = await setUp();
    await client.del(key);
    await client.rpush(key, 'x');

    for (const call of [
      () => store.find([one.id]),
      () => store.revoke(one.id, 'acme', NOW),
      () => store.replace({ ...one, version: 2 }),
    ]) {
      expect((await refusalOf(call)).code).toBe('store_corrupt');
    }
  });

  it('leaves nothing behind in lists after its key was deleted', async () => {
    const { client, store, key } = await setUp({ expiresAt: LATER });
    await client.del(key);

    expect(idsOf(await store.page(pageOf('acme', 1)))).toEqual([two.id]);
    expect(await store.revokeAll('acme', NOW, 1000)).toBe(1);
    expect((await store.purge(purgeOf(10, new Date(8.64e15)))).count).toBe(2);
    await store.insert({ ...one, account: 'other' });
    expect(await store.page(pageOf())).toEqual([]);
    expect((await store.purge(purgeOf(10, NOW))).count).toBe(0);
  });
});

describe('a Redis server that answers with an error', () => {
  it.each([
    `READONLY You can't write against a read only replica.`,
    'LOADING Redis is loading the dataset in memory',
    'CLUSTERDOWN The cluster is down',
    'MOVED 3999 127.0.0.1:6381',
    'ASK 3999 127.0.0.1:6381',
    'TRYAGAIN Multiple keys request during rehashing of slot',
    'MASTERDOWN Link with MASTER is down',
    `OOM command not allowed when used memory > 'maxmemory'.`,
    'NOREPLICAS Not enough good replicas to write.',
    'NOAUTH Authentication required.',
    'NOPERM this user has no permissions to run the command',
    'NOSCRIPT No matching script.',
    'MISCONF Redis is configured to save RDB snapshots',
    'ERR max number of clients reached',
    'Connection is closed.',
  ])('makes every verb reject with store_unavailable: %s', async (message) => {
    const refusing = async () => Promise.reject(new Error(message));
    const idle = ioredis('redis://127.0.0.1:1', { lazyConnect: true });
    const store = openOver(intercepted(idle, refusing));

    for (const [, call] of VERBS) {
      const refusal = await refusalOf(call(store));
      expect(refusal.code).toBe('store_unavailable');
      expect(refusal.message).not.toContain(message);
    }
  });
});

describe.skipIf(!isInstalled('redis')).each(CLIENTS)(
  'a Redis server that is killed, over %s',
  (_, connectTo) => {
    it('makes calls reject immediately, and is used again after a restart', async () => {
      const server = await ownServer();
      const store = openOver(await connectTo(server.url));
      await store.insert(one);
      await server.signal('SIGKILL');

      // Wait until the driver knows it: a command on its way may be lost.
      await vi.waitFor(() => refusalOf(store.insert(two)), WITHIN);
      const start = performance.now();
      const refusals = await Promise.all(VERBS.map(([, call]) => refusalOf(call(store))));
      expect(performance.now() - start).toBeLessThan(1000);
      expect(refusals.map(({ code }) => code)).toEqual(VERBS.map(() => 'store_unavailable'));

      await server.restart();
      const back = performance.now();
      await vi.waitFor(async () => expect(await store.find([one.id])).toEqual([one]), WITHIN);
      expect(performance.now() - back).toBeLessThan(2000);
      // Writes have another connection.
      expect(await vi.waitFor(() => store.revoke(one.id, 'acme', NOW), WITHIN)).toBe(true);
    });

    it('does not receive abandoned commands after a restart', async () => {
      const server = await ownServer();
      const store = openOver(await connectTo(server.url));
      await store.insert(one);
      await server.signal('SIGKILL');
      expect((await refusalOf(store.revoke(one.id, 'acme', NOW))).code).toBe('store_unavailable');
      await server.restart();

      await vi.waitFor(() => store.insert(two), WITHIN);
      // Reads have another connection.
      expect(await vi.waitFor(() => store.find([one.id]), WITHIN)).toEqual([one]);
    });
  },
);

it.skipIf(loneUrl === undefined)(
  'a Redis store rejects immediately if the host has closed its client',
  async () => {
    for (const client of [ioredis(), await nodeRedis()]) {
      const store = openOver(client);
      await store.find([one.id]);
      if ('disconnect' in client && 'call' in client) client.disconnect();
      else client.destroy();
      await vi.waitFor(async () => {
        const start = performance.now();
        expect((await refusalOf(store.find([one.id]))).code).toBe('store_unavailable');
        expect(performance.now() - start).toBeLessThan(100);
      }, WITHIN);
    }
  },
);

describe.each(SHARED_CLIENTS)(
  'watch of a Redis store, over $name',
  ({ isMissing, connect: connectTo }) => {
    async function setUp() {
      const keyPrefix = newPrefix();
      const store = openOver(await connectTo(), { keyPrefix });
      const other = openOver(await connectTo(), { keyPrefix });
      const hints: unknown[] = [];
      const end = await other.watch((ids) => hints.push(ids));
      await insertAll(store, [one, two]);
      return { store, other, hints, end };
    }

    it.skipIf(isMissing)(
      'reports tokens that another store replaces or revokes, and nothing else',
      async () => {
        const { store, hints } = await setUp();
        expect(await store.replace({ ...one, version: 3 })).toBe(false);
        expect(await store.revoke(one.id, 'other', NOW)).toBe(false);

        await store.replace({ ...one, version: 2 });
        await vi.waitFor(() => expect(hints).toEqual([[one.id]]), WITHIN);
        await store.revoke(two.id, 'acme', NOW);
        await vi.waitFor(() => expect(hints).toEqual([[one.id], [two.id]]), WITHIN);
        await store.revokeAll('acme', NOW, 1000);
        await vi.waitFor(() => expect(hints).toEqual([[one.id], [two.id], [one.id]]), WITHIN);
      },
    );

    it.skipIf(isMissing)('reports all ids of a revokeAll', async () => {
      const { store, hints } = await setUp();
      await store.revokeAll('acme', NOW, 1000);

      await vi.waitFor(() => expect(hints.flat().sort()).toEqual([one.id, two.id]), WITHIN);
    });

    it.skipIf(isMissing)('ends on unsubscribe and when the store is closed', async () => {
      const { store, other, hints, end } = await setUp();
      const late: unknown[] = [];
      await other.watch((ids) => late.push(ids));
      const witness: unknown[] = [];
      await store.watch((ids) => witness.push(ids));
      await end();
      await end();
      await store.revoke(one.id, 'acme', NOW);
      // The servers of a cluster hear a message at different times.
      await vi.waitFor(() => expect([late, witness]).toEqual([[[one.id]], [[one.id]]]), WITHIN);
      expect(hints).toEqual([]);

      await other.close();
      await store.revoke(two.id, 'acme', NOW);
      await vi.waitFor(() => expect(witness).toEqual([[one.id], [two.id]]), WITHIN);
      expect(late).toEqual([[one.id]]);
      expect(await other.find([one.id])).toEqual([revoked(one, NOW)]);
    });

    it.skipIf(isMissing)('continues if a listener throws', async () => {
      const { store, other } = await setUp();
      let calls = 0;
      await other.watch(() => {
        calls += 1;
        throw new Error('thrown by the listener');
      });
      await store.revoke(one.id, 'acme', NOW);
      await vi.waitFor(() => expect(calls).toBe(1), WITHIN);
      await store.revoke(two.id, 'acme', NOW);
      await vi.waitFor(() => expect(calls).toBe(2), WITHIN);
    });
  },
);

describe.skipIf(!isInstalled('redis')).each(CLIENTS)(
  'watch of a Redis store that loses its connection, over %s',
  (_, connectTo) => {
    async function setUp(port?: (port: number) => Promise<number>) {
      const server = await ownServer();
      const url = `redis://127.0.0.1:${(await port?.(server.port)) ?? server.port}`;
      const keyPrefix = newPrefix();
      const store = openOver(await connectTo(server.url), { keyPrefix });
      const other = openOver(await connectTo(url), { keyPrefix });
      const hints: unknown[] = [];
      const end = await other.watch((ids) => hints.push(ids));
      await insertAll(store, [one, two]);
      return { server, store, other, hints, end, admin: ioredis(server.url) };
    }

    async function listensAgain(store: RedisTokenStore, hints: unknown[]): Promise<void> {
      await vi.waitFor(() => expect(hints).toEqual(['all', 'all']), WITHIN);
      await store.revoke(one.id, 'acme', NOW);
      await vi.waitFor(() => expect(hints).toEqual(['all', 'all', [one.id]]), WITHIN);
    }

    it('reports "all" when its connection is killed and again when it is restored', async () => {
      const { store, hints, admin } = await setUp();
      await admin.call('client', 'kill', 'type', 'pubsub');

      await vi.waitFor(() => expect(hints[0]).toBe('all'), WITHIN);
      await listensAgain(store, hints);
    });

    it('recovers each time the server restarts', async () => {
      const { server, store, hints } = await setUp();
      for (let round = 0; round < 2; round += 1) {
        hints.length = 0;
        await server.signal('SIGKILL');
        await vi.waitFor(() => expect(hints).toEqual(['all']), WITHIN);
        await server.restart();
        await vi.waitFor(() => expect(hints).toEqual(['all', 'all']), WITHIN);
      }
      await vi.waitFor(() => store.revoke(two.id, 'acme', NOW), WITHIN);
      await vi.waitFor(() => expect(hints).toContainEqual([two.id]), WITHIN);
    });

    it('detects a half-open connection', async () => {
      let proxy: TcpProxy | undefined;
      const { store, hints } = await setUp(async (port) => {
        proxy = await startProxy(port);
        onTestFinished(() => proxy?.close());
        return proxy.port;
      });
      await proxy?.set('halfOpen');
      await vi.waitFor(() => expect(hints).toEqual(['all']), WITHIN);
      await proxy?.set('pass');
      await listensAgain(store, hints);
    });

    it('leaves no connection open', async () => {
      const { other, store, hints, end, admin } = await setUp();
      const before = await connectionsOf(admin);
      await admin.call('client', 'kill', 'type', 'pubsub');
      await listensAgain(store, hints);
      expect(await connectionsOf(admin)).toBe(before);

      await other.watch(() => {});
      expect(await connectionsOf(admin)).toBe(before + 1);
      await end();
      await other.close();
      await vi.waitFor(async () => expect(await connectionsOf(admin)).toBe(before - 1), WITHIN);
    });

    it('rejects if it does not hear itself, and leaves no connection open', async () => {
      const { server } = await setUp();
      const deaf = await ownServer();
      const witness = ioredis(deaf.url);
      const client = await connectTo(server.url);
      // What it says is said elsewhere, as behind a proxy that passes no messages on.
      const elsewhere = await connectTo(deaf.url);
      Object.assign(client, { duplicate: elsewhere.duplicate.bind(elsewhere) });
      const before = await connectionsOf(witness);

      await expect(openOver(client, {}).watch(() => {})).rejects.toMatchObject({
        code: 'store_unavailable',
        details: { reason: 'pooler' },
      });
      await vi.waitFor(async () => expect(await connectionsOf(witness)).toBe(before), WITHIN);
    });

    it('rejects if its user may not publish', async () => {
      const { server, admin } = await setUp();
      await admin.call('acl', 'setuser', 'mute', 'on', 'nopass', '~*', '&*', '+@all', '-publish');
      const url = server.url.replace('//', '//mute:any@');

      await expect(openOver(await connectTo(url), {}).watch(() => {})).rejects.toMatchObject({
        details: { reason: 'forbidden' },
      });
    });

    it('rejects if the server is down when it starts', async () => {
      const { server, other } = await setUp();
      await server.signal('SIGKILL');

      expect((await refusalOf(other.watch(() => {}))).code).toBe('store_unavailable');
    });
  },
);

describe.skipIf(!isInstalled('redis')).each(CLIENTS)(
  'replicas of a Redis server, over %s',
  (_, connectTo) => {
    const waiting = { replicas: 1, waitMs: 1000 };

    it.each(WRITES)(
      'that are missing make %s reject with durability_unconfirmed, but it is carried out',
      async (_, call) => {
        const server = await ownServer();
        const client = await connectTo(server.url);
        const keyPrefix = newPrefix();
        const plain = openOver(client, { keyPrefix });
        const events: RedisStoreEvent[] = [];
        const store = openOver(client, {
          ...{ keyPrefix, ...waiting, waitMs: 10 },
          onEvent(event) {
            events.push(event);
            throw new Error('thrown by the listener');
          },
        });
        await plain.insert(one);

        const { code } = await refusalOf(call(store));
        expect(code).toBe('durability_unconfirmed');
        expect(events).toEqual([{ type: 'durability_unconfirmed', confirmations: 0, needed: 1 }]);
        const [kept, inserted] = await plain.find([one.id, two.id]);
        expect([kept?.version, kept?.revokedAt, inserted?.id]).not.toEqual([
          1,
          undefined,
          undefined,
        ]);
      },
    );

    it('are not waited for if nothing was changed', async () => {
      const server = await ownServer();
      const client = await connectTo(server.url);
      const keyPrefix = newPrefix();
      const store = openOver(client, { keyPrefix, ...waiting, waitMs: 10 });
      await openOver(client, { keyPrefix }).insert(one);

      await expect(store.insert(one)).rejects.toMatchObject({ code: 'id_taken' });
      expect(await store.replace({ ...one, version: 3 })).toBe(false);
      expect(await store.revoke(one.id, 'other', NOW)).toBe(false);
      expect(await store.revokeAll('other', NOW, 1000)).toBe(0);
      expect((await store.purge(purgeOf())).count).toBe(0);
    });

    it('that do not answer delay no reads, and concurrent writes only once', async () => {
      const { primary, replica } = await ownPair();
      const store = openOver(await connectTo(primary.url), waiting);
      await store.insert(one);
      await replica.signal('SIGSTOP');

      const start = performance.now();
      const writes = [
        refusalOf(store.insert(two)),
        refusalOf(store.replace({ ...one, version: 2 })),
        ...newRecords(20).map((record) => refusalOf(store.insert(record))),
      ];
      for (let round = 0; round < 10; round += 1) await store.find([one.id]);
      expect(performance.now() - start).toBeLessThan(500);
      for (const { code } of await Promise.all(writes)) expect(code).toBe('durability_unconfirmed');
      // One after the other they would take 22 seconds.
      expect(performance.now() - start).toBeLessThan(3000);

      await replica.signal('SIGCONT');
      await vi.waitFor(() => store.revoke(one.id, 'acme', NOW), WITHIN);
      expect(await store.page(pageOf())).toHaveLength(21);
    });

    it('are waited for again after an outage of the primary', async () => {
      const { primary } = await ownPair();
      const store = openOver(await connectTo(primary.url), waiting);
      await store.insert(one);
      await primary.signal('SIGKILL');
      expect((await refusalOf(store.insert(two))).code).toBe('store_unavailable');
      await primary.restart();

      // The replica has to reconnect as well.
      const insert = () => store.insert(newRecord(`n${Math.round(performance.now())}`));
      await vi.waitFor(insert, WITHIN);
      // Reads take the client of this test, which reconnects by itself.
      const found = await vi.waitFor(() => store.find([one.id, two.id]), WITHIN);
      expect(found).toEqual([one, undefined]);
    });

    it('leave no connection open after close', async () => {
      const { primary } = await ownPair();
      const admin = ioredis(primary.url);
      const client = await connectTo(primary.url);
      const before = await connectionsOf(admin);
      const store = openOver(client, waiting);
      await store.insert(one);
      expect(await connectionsOf(admin)).toBe(before + 1);
      await store.close();
      await store.close();

      await vi.waitFor(async () => expect(await connectionsOf(admin)).toBe(before), WITHIN);
      expect((await refusalOf(store.insert(two))).code).toBe('store_unavailable');
      expect(await store.find([one.id])).toEqual([one]);
    });
  },
);

describe.skipIf(loneUrl === undefined)('changes that a Redis server has lost', () => {
  /** `lose` resets all tokens to their current state. */
  async function setUp() {
    const client = ioredis();
    const keyPrefix = newPrefix();
    const events: RedisStoreEvent[] = [];
    const store = openOver(client, { keyPrefix, onEvent: (event) => events.push(event) });
    const witness = openOver(client, { keyPrefix });
    await insertAll(store, [one, two]);
    const keys = await client.keys(`${keyPrefix}:*`);
    const dumps = await Promise.all(keys.map((key) => client.dumpBuffer(key)));
    const lose = async () => {
      for (const [index, key] of keys.entries()) {
        await client.restore(key, 0, dumps[index] as Buffer, 'REPLACE');
      }
      expect(await witness.find([one.id, two.id])).toEqual([one, two]);
    };
    return { store, witness, events, lose };
  }

  /** Waits for as long as another store needs to write a lost change again. */
  async function checkPasses(): Promise<void> {
    const { store, events, lose } = await setUp();
    await store.revoke(one.id, 'acme', NOW);
    await lose();
    await vi.waitFor(() => expect(events).toHaveLength(1), WITHIN);
  }

  it.each<[string, Call, readonly (readonly [number, Date | undefined])[]]>([
    [
      'a revocation',
      (store) => store.revoke(one.id, 'acme', NOW),
      [
        [1, NOW],
        [1, undefined],
      ],
    ],
    [
      'a guarded revocation after a change',
      async (store) => {
        await store.replace({ ...one, version: 2 });
        await store.revoke(one.id, 'acme', NOW, 2);
      },
      [
        [1, NOW],
        [1, undefined],
      ],
    ],
    [
      'a revokeAll',
      (store) => store.revokeAll('acme', NOW, 1000),
      [
        [1, NOW],
        [1, NOW],
      ],
    ],
    [
      'two changes of one token, and one of another',
      async (store) => {
        await store.replace({ ...one, version: 2 });
        await store.replace({ ...two, version: 2 });
        await store.replace({ ...one, version: 3 });
      },
      [
        [3, undefined],
        [2, undefined],
      ],
    ],
  ])('are written again: %s', async (_, call, expected) => {
    const { store, witness, events, lose } = await setUp();
    await call(store);
    await lose();

    await vi.waitFor(() => expect(events).toHaveLength(1), WITHIN);
    expect(events[0]?.type).toBe('writes_reasserted');
    const kept = await witness.find([one.id, two.id]);
    expect(kept.map((record) => [record?.version, record?.revokedAt])).toEqual(expected);
    // A revocation that is made again also removes what a revoked record does not keep.
    for (const record of kept) expect(record?.scopes.length).toBe(record?.revokedAt ? 0 : 1);
    const ended = kept.filter((record) => record?.revokedAt).length;
    expect(await witness.count(countOf())).toEqual({ live: 2 - ended, ended });
    const live = kept.filter((record) => record?.revokedAt === undefined);
    expect(await witness.page(pageOf())).toEqual(live.reverse());
  });

  it('do not take a later token with the same id from its list', async () => {
    const { store, witness, events } = await setUp();
    await store.revokeAll('acme', NOW, 1000);
    expect((await store.purge(purgeOf())).count).toBe(2);
    await store.insert(one);

    await checkPasses();
    expect(await witness.page(pageOf())).toEqual([one]);
    expect(await witness.revokeAll('acme', NOW, 1000)).toBe(1);
    expect(events).toEqual([]);
  });

  it('do not undo a change by another process that kept the version', async () => {
    const { store, witness, events } = await setUp();
    const second = { ...one, name: 'second' };
    await store.replace({ ...one, name: 'first' }, one.version);
    await witness.replace(second, one.version);

    await checkPasses();
    expect(await witness.find([one.id])).toEqual([second]);
    expect(events).toEqual([]);
  });

  it('stay lost if the store was closed', async () => {
    const { store, witness, events, lose } = await setUp();
    await store.revoke(one.id, 'acme', NOW);
    await store.close();
    await lose();

    await checkPasses();
    expect(await witness.find([one.id, two.id])).toEqual([one, two]);
    expect(events).toEqual([]);
  });

  it('are not applied to a new token with the id of a purged one', async () => {
    const { store, witness, events } = await setUp();
    await store.replace({ ...two, version: 2 });
    await store.revoke(two.id, 'acme', NOW);
    await store.revoke(one.id, 'acme', NOW);
    expect((await witness.purge(purgeOf())).count).toBe(2);
    await insertAll(witness, [one, two]);

    await checkPasses();
    expect(await witness.find([one.id, two.id])).toEqual([one, two]);
    expect(events).toEqual([]);
  });

  it('are not written over later changes of another store', async () => {
    const { store, witness, events } = await setUp();
    await store.replace({ ...one, version: 2 });
    await witness.replace({ ...one, version: 3 });
    await witness.revoke(one.id, 'acme', NOW);

    await checkPasses();
    expect(await witness.find([one.id])).toEqual([revoked({ ...one, version: 3 }, NOW)]);
    expect(events).toEqual([]);
  });
});

describe.skipIf(!isInstalled('redis'))('doctor of a Redis store', () => {
  async function codesOf(store: RedisTokenStore): Promise<string[]> {
    return (await store.doctor()).map(({ code }) => code);
  }

  it.each(CLIENTS)(
    'reports each setting that weakens durability, and nothing else, over %s',
    async (_, connectTo) => {
      const server = await ownServer();
      const admin = ioredis(server.url);
      const store = openOver(await connectTo(server.url));
      expect(await codesOf(store)).toEqual([]);

      for (const [code, name, worse, better] of [
        ['append_only_off', 'appendonly', 'no', 'yes'],
        ['append_fsync_not_always', 'appendfsync', 'everysec', 'always'],
        ['append_fsync_not_always', 'appendfsync', 'no', 'always'],
        ['eviction_possible', 'maxmemory-policy', 'allkeys-lru', 'noeviction'],
      ] as const) {
        await admin.config('SET', 'maxmemory', '100mb');
        await admin.config('SET', name, worse);
        expect(await codesOf(store)).toEqual([code]);
        await admin.config('SET', name, better);
        expect(await codesOf(store)).toEqual([]);
      }
      await admin.config('SET', 'maxmemory', '0');
      await admin.config('SET', 'maxmemory-policy', 'allkeys-lru');
      expect(await codesOf(store)).toEqual([]);
    },
  );

  it('reports replicas that are missing, not required or not awaited', async () => {
    const { primary, replica } = await ownPair();
    const admin = ioredis(primary.url);
    const client = ioredis(primary.url);
    const patient = openOver(client, { replicas: 1 });
    expect(await codesOf(patient)).toEqual(['min_replicas_not_set']);
    expect(await codesOf(openOver(ioredis(replica.url)))).toEqual(['connected_to_replica']);

    await admin.config('SET', 'min-replicas-to-write', '1');
    expect(await codesOf(patient)).toEqual([]);
    // Outside of a cluster, no primary is replaced automatically.
    expect(await patient.doctor({ full: true })).toEqual([]);
    expect(await codesOf(openOver(client, { replicas: 2 }))).toEqual(['replicas_missing']);
    expect(await codesOf(openOver(client))).toEqual(['replicas_not_awaited']);
  });

  it.each<[string, string, unknown]>([
    ['redis_too_old', 'info', 'redis_version:6.0.16\r\nrole:master\r\n'],
    ['cluster_not_ok', 'info', 'redis_version:7.0.15\r\ncluster_state:fail\r\n'],
    ['clock_skew', 'time', ['1', '0']],
  ])('reports %s', async (code, command, answer) => {
    const client = intercepted(ioredis((await ownServer()).url), async (name, _, run) =>
      name === command ? answer : run(),
    );

    expect(await codesOf(openOver(client))).toEqual([code]);
  });

  it('names the settings to check if it cannot read them', async () => {
    const server = await ownServer();
    const rights = ['on', 'nopass', '~*', '&*', '+@all', '-config'];
    await ioredis(server.url).acl('SETUSER', 'app', ...rights);
    const client = ioredis(server.url, { username: 'app', password: 'any' });
    const findings: StoreFinding[] = await openOver(client).doctor();

    expect(findings).toEqual([
      { code: 'settings_unreadable', message: expect.stringContaining('appendfsync') },
    ]);
  });

  it('rejects if the server is down', async () => {
    const server = await ownServer();
    const store = openOver(ioredis(server.url));
    await store.find([one.id]);
    await server.signal('SIGKILL');

    expect((await refusalOf(store.doctor())).code).toBe('store_unavailable');
  });
});

describe.each(SHARED_CLIENTS.slice(2))(
  'doctor of a Redis store, over $name',
  ({ isMissing, connect: connectTo }) => {
    it.skipIf(isMissing)('checks each primary and names it', async () => {
      const findings = await openOver(await connectTo()).doctor();

      expect(findings.map(({ code }) => code)).toEqual(['min_replicas_not_set']);
      expect(findings[0]?.message.match(/127\.0\.0\.1:\d+/g)).toHaveLength(3);
    });

    it.skipIf(isMissing)('reports primary_replaceable with full: true', async () => {
      const store = openOver(await connectTo());
      const findings: StoreFinding[] = await store.doctor({ full: true });
      const message = findings.find(({ code }) => code === 'primary_replaceable')?.message;

      expect(message?.match(/127\.0\.0\.1:\d+/g)).toHaveLength(3);
      expect(message).toContain('cluster-node-timeout (60000 ms)');
      expect(message).toContain('half a second');
    });

    it.skipIf(isMissing)('reports a client that knows only one server of the cluster', async () => {
      const [address] = (clusterUrl ?? '').slice('redis+cluster://'.length).split(',');
      const findings = await openOver(ioredis(`redis://${address}`), { replicas: 1 }).doctor();

      expect(findings.map(({ code }) => code)).toContain('client_knows_no_cluster');
    });
  },
);

describe('key layout in Redis', () => {
  it('never changes the shard of an id', () => {
    expect(SHARDS.map(({ tag }) => tag).join()).toBe(
      '10,18,113,342,29,21,3,122,69,61,72,162,50,58,153,43,11,19,112,343,28,20,2,123,68,60,73,163,51,59,152,42,12,102,111,119,133,23,1,9,173,63,70,78,52,142,49,41,13,103,110,118,132,22,0,8,172,62,71,79,53,143,48,40',
    );
    expect(['one', 'two', 'three'].map((id) => shardOf(id).tag)).toEqual(['53', '43', '23']);
  });

  it('spreads shards evenly over the slots, and tokens over the shards', () => {
    expect(SHARDS.map(({ slot }) => Math.floor(slot / 256))).toEqual([...SHARDS.keys()]);
    const counts = new Map<string, number>();
    for (let number = 0; number < 6400; number += 1) {
      const { tag } = shardOf(`token${number}`.padStart(22, '0'));
      counts.set(tag, (counts.get(tag) ?? 0) + 1);
    }
    expect(counts.size).toBe(64);
    expect(Math.max(...counts.values())).toBeLessThan(150);
  });

  it.skipIf(clusterUrl === undefined)('computes the same slots as the server', async () => {
    const [{ host, port } = { host: '', port: 0 }] = nodesOf(clusterUrl);
    const admin = ioredis(`redis://${host}:${port}`);
    const keys = new KeySpace('any');
    const slots = SHARDS.map((shard) =>
      admin.cluster('KEYSLOT', keys.list(shard, 'account', 'a{b}c')),
    );

    expect(await Promise.all(slots)).toEqual(SHARDS.map(({ slot }) => slot));
  });

  it.skipIf(loneUrl === undefined)('still reads records in the first layout', async () => {
    const client = ioredis();
    const keyPrefix = newPrefix();
    const lines = [
      ...['1 4102444800001', '7', 'stamp2', 'stamp1', `10004102444800000${one.id} 4133980800000`],
      ...['"ac\\"me"', '4102444800003', `["${two.id}","${one.id}"]`, 'sanctum', '"acme"', '"k1"'],
      ...[Buffer.alloc(32, 3).toString('base64'), 'AAEC/w==', '["GET:shop.example/orders"]'],
      ...['["GET:shop.example/*"]', '"de\\nploy"', '{"a":[1]}'],
      ...[
        Buffer.alloc(32, 9).toString('base64'),
        '4102444800002',
        '4102444800004',
        '4102444800005',
      ],
      ...[
        `{"prefix":"acme","kid":"k2","digest":"${'A'.repeat(43)}","graceSeconds":60}`,
        '{"uses":5}',
      ],
    ];
    await client.set(`${keyPrefix}:{${shardOf(one.id).tag}}:token:${one.id}`, lines.join('\n'));

    expect(await openOver(client, { keyPrefix }).find([one.id])).toEqual([
      {
        ...one,
        account: 'ac"me',
        version: 7,
        box: Uint8Array.of(0, 1, 2, 255),
        name: 'de\nploy',
        metadata: { a: [1] },
        revokedAt: new Date(4102444800001),
        previousDigest: new Uint8Array(32).fill(9),
        previousUntil: new Date(4102444800002),
        suspendedAt: new Date(4102444800003),
        scopesChangedAt: new Date(4102444800004),
        rotatedAt: new Date(4102444800005),
        pending: { prefix: 'acme', kid: 'k2', digest: new Uint8Array(32), graceSeconds: 60 },
        limits: { uses: 5 },
        ancestors: [two.id, one.id],
        format: 'sanctum',
      },
    ]);
  });

  it.skipIf(loneUrl === undefined)('sorts all possible dates', async () => {
    const store = openOver(ioredis());
    const times = [-8.64e15, -8.64e15 + 1, -1000, -1, 0, 1, 999, 1e12, 8.64e15 - 1, 8.64e15];
    const records = times.map((ms, index) =>
      newRecord(`n${index}`, { createdAt: new Date(ms), expiresAt: new Date(8.64e15) }),
    );
    await insertAll(store, records);

    const page = await store.page({ account: 'acme', limit: 100, liveAt: new Date(-8.64e15) });
    expect(page.map(({ createdAt }) => createdAt.getTime())).toEqual(times.toReversed());
  });
});

describe.skipIf(loneUrl === undefined)('the clock of a Redis server', () => {
  it('would lose live tokens if that of the caller decided alone (the control)', async () => {
    const believe = ({ source }: Script) =>
      source.replace(/math\.min\((tonumber\(ARGV\[\d\]\)), clock\(\)\)/, '$1');
    const believers = new Map([DUE, REMOVE].map((script) => [script.sha, believe(script)]));
    const plain = ioredis();
    const client = intercepted(plain, (_, args, run) => {
      const source = believers.get(args[0] as string);
      return source === undefined ? run() : plain.call('eval', source, ...args.slice(1));
    });

    expect(await purgeByFastClock(openOver(client))).toEqual({ removed: TOKENS, left: 0 });
  });
});

describe.skipIf(!isInstalled('redis'))('idle connections to Redis that are killed', () => {
  const CAREFUL: readonly (readonly [string, (url: string) => Promise<RedisClient>])[] = [
    ['ioredis', async (url) => ioredis(url, { maxRetriesPerRequest: 1 })],
    ['node-redis', (url) => nodeRedis(url)],
  ];

  async function setUp(connectTo: (url: string) => Promise<RedisClient>) {
    const server = await ownServer();
    const store = openOver(await connectTo(server.url), {});
    await store.insert(one);
    const admin = ioredis(server.url);
    const killAll = () => admin.call('client', 'kill', 'type', 'normal', 'skipme', 'yes');
    return { store, killAll };
  }

  it.each(CAREFUL)('make no read fail: %s', async (_, connectTo) => {
    const { store, killAll } = await setUp(connectTo);
    for (let round = 0; round < 5; round += 1) {
      expect(await killAll()).toBeGreaterThan(0);
      const reads = Array.from({ length: 40 }, () => store.find([one.id]));
      const answers = await Promise.allSettled(reads);
      expect(answers.filter(({ status }) => status === 'rejected')).toEqual([]);
    }
  });

  it('make a read fail if the driver may not repeat it (the control)', async () => {
    const server = await ownServer();
    const client = ioredis(server.url, { maxRetriesPerRequest: 0 });
    const store = openOver(client, {});
    await store.insert(one);
    const reading = store.find([one.id]);
    client.stream.destroy();

    await expect(reading).rejects.toMatchObject({ details: { reason: 'unreachable' } });
  });
});
