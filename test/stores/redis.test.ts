import { randomUUID } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster, RESP_TYPES } from 'redis';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import type { StoreFinding } from '../../src/store.ts';
import {
  type RedisClient,
  type RedisStoreEvent,
  type RedisStoreOptions,
  RedisTokenStore,
} from '../../src/stores/redis/index.ts';
import { KeySpace, SHARDS, shardOf } from '../../src/stores/redis/layout.ts';
import { storeContract } from '../../src/testing/index.ts';
import type { TokenId, TokenRecord } from '../../src/token.ts';
import { startProxy, type TcpProxy } from '../faults/proxy.ts';
import { isInstalled, type Server, startServer } from '../servers.ts';
import { refusalOf } from '../support.ts';
import { nodesOf } from './redis/support.ts';
import { newRecord } from './support.ts';

const { redis: loneUrl, redisCluster: clusterUrl } = inject('servers');
const RUN = `test:${randomUUID()}`;
const NOW = new Date('2100-01-01T00:00:00.000Z');
const LATER = new Date('2100-06-01T00:00:00.000Z');
const WITHIN = { timeout: 5000, interval: 20 };

const cleanups: (() => unknown)[] = [];
const lastCleanups: (() => unknown)[] = [];
afterEach(() => clean(cleanups));
afterAll(() => clean(lastCleanups));

async function clean(tasks: (() => unknown)[]): Promise<void> {
  for (const task of tasks.splice(0).reverse()) await task();
}

function ioredis(url = loneUrl, options: object = {}, tasks = cleanups): Redis {
  const client = new Redis(url as string, { retryStrategy: () => 20, ...options });
  client.on('error', () => {});
  tasks.push(() => client.disconnect());
  return client;
}

async function nodeRedis(url = loneUrl, tasks = cleanups) {
  const socket = { reconnectStrategy: () => 20 };
  const client = createClient({ url: url as string, socket });
  client.on('error', () => {});
  tasks.push(() => client.destroy());
  return client.connect();
}

function ioredisCluster(tasks = cleanups): Cluster {
  const client = new Cluster(nodesOf(clusterUrl));
  tasks.push(() => client.disconnect());
  return client;
}

async function nodeRedisCluster(tasks = cleanups) {
  const rootNodes = nodesOf(clusterUrl).map((socket) => ({ socket }));
  const client = createCluster({ rootNodes });
  client.on('error', () => {});
  tasks.push(() => client.destroy());
  return client.connect();
}

/** Without a cast: the clients of the drivers are what the store asks for. */
const CLIENTS: readonly {
  readonly name: string;
  readonly isMissing: boolean;
  connect(tasks?: (() => unknown)[]): Promise<RedisClient>;
}[] = [
  {
    name: 'ioredis',
    isMissing: loneUrl === undefined,
    connect: async (tasks) => ioredis(loneUrl, {}, tasks),
  },
  {
    name: 'node-redis',
    isMissing: loneUrl === undefined,
    connect: (tasks) => nodeRedis(loneUrl, tasks),
  },
  {
    name: 'a cluster by ioredis',
    isMissing: clusterUrl === undefined,
    connect: async (tasks) => ioredisCluster(tasks),
  },
  {
    name: 'a cluster by node-redis',
    isMissing: clusterUrl === undefined,
    connect: (tasks) => nodeRedisCluster(tasks),
  },
];

let prefixes = 0;
function newPrefix(): string {
  prefixes += 1;
  return `${RUN}:${prefixes}`;
}

function openOver(client: RedisClient, options: RedisStoreOptions = {}): RedisTokenStore {
  const store = new RedisTokenStore(client, { keyPrefix: newPrefix(), ...options });
  cleanups.push(() => store.close());
  return store;
}

function newRecords(count: number, fields: Partial<TokenRecord> = {}): TokenRecord[] {
  return Array.from({ length: count }, (_, index) =>
    newRecord(`n${index}`, { createdAt: new Date(NOW.getTime() + index), ...fields }),
  );
}

async function insertAll(store: RedisTokenStore, records: readonly TokenRecord[]): Promise<void> {
  await Promise.all(records.map((record) => store.insert(record)));
}

function idsOf(records: readonly (TokenRecord | undefined)[]): (TokenId | undefined)[] {
  return records.map((record) => record?.id);
}

function pageOf(account = 'acme', limit = 1000) {
  return { account, limit, liveAt: NOW };
}

type Call = (store: RedisTokenStore) => Promise<unknown>;

const one = newRecord('one');
const two = newRecord('two');
/** Each verb, in a form that touches the token `one`. */
const VERBS: readonly (readonly [string, Call])[] = [
  ['insert', (store) => store.insert(two)],
  ['find', (store) => store.find([one.id])],
  ['find of several', (store) => store.find([one.id, two.id])],
  ['page', (store) => store.page(pageOf())],
  ['replace', (store) => store.replace({ ...one, version: 2 })],
  ['revoke', (store) => store.revoke(one.id, 'acme', NOW)],
  ['revokeAll', (store) => store.revokeAll('acme', NOW, 1000)],
  ['purge', (store) => store.purge(NOW, 10)],
];
const WRITES = VERBS.filter(([verb]) =>
  ['insert', 'replace', 'revoke', 'revokeAll'].includes(verb),
);

/** The ids of records that all have their names in one shard. */
function idsInOneShard(count: number): TokenId[] {
  const ids: TokenId[] = [];
  for (let index = 0; ids.length < count; index += 1) {
    const id = String(index).padEnd(22, 'x') as TokenId;
    if (shardOf(id) === SHARDS[5]) ids.push(id);
  }
  return ids;
}

/** A client before which something stands, that may do anything with a command. */
function intercepted(
  client: Redis,
  intercept: (command: string, args: string[], run: () => Promise<unknown>) => Promise<unknown>,
): Redis {
  const call = (command: string, args: string[]) =>
    intercept(command, args, () => client.call(command, args));
  const replaced: Record<string, unknown> = { call };
  return new Proxy(client, {
    get(target, name) {
      const value = replaced[String(name)] ?? Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Writes down which commands go through a client. */
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

describe.each(CLIENTS)('Redis store over $name', ({ isMissing, connect: connectTo }) => {
  let client: RedisClient;
  beforeAll(async () => {
    if (!isMissing) client = await connectTo(lastCleanups);
  });

  it.skipIf(isMissing).each(storeContract)('$name', (promise) =>
    promise.run(() => new RedisTokenStore(client, { keyPrefix: newPrefix() })),
  );
});

afterAll(async () => {
  const urls = loneUrl === undefined ? [] : [loneUrl];
  if (clusterUrl !== undefined) {
    urls.push(...nodesOf(clusterUrl).map(({ host, port }) => `redis://${host}:${port}`));
  }
  for (const url of urls) {
    const client = new Redis(url);
    for await (const keys of client.scanStream({ match: `${RUN}:*`, count: 1000 })) {
      // A replica refuses; its primary is among these.
      await Promise.all(keys.map((key: string) => client.unlink(key).catch(() => {})));
    }
    client.disconnect();
  }
});

describe('options', () => {
  const idle = () => ioredis('redis://127.0.0.1:1', { lazyConnect: true });

  it.each([
    ['keyPrefix', ['a', 'acme:tokens_2.x-y', 'x'.repeat(64)], ['', '{a}', 'a b', 'x'.repeat(65)]],
    ['replicas', [0, 1, 10], [-1, 11, 0.5, Number.NaN]],
    ['waitMs', [1, 500, 10_000], [0, 10_001, 1.5, Number.POSITIVE_INFINITY]],
    ['onEvent', [() => {}, undefined], ['text', {}, null]],
  ])('%s is checked', (name, good, bad) => {
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
    'refuses what is no client: %s',
    (client) => {
      expect(() => new RedisTokenStore(client as never)).toThrow(
        expect.objectContaining({ code: 'invalid_options' }),
      );
    },
  );

  it.each(['slave', 'all', () => undefined] as const)(
    'refuses to read from replicas: %s',
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

describe.skipIf(loneUrl === undefined)('clients with settings of the host', () => {
  it.each<[string, () => RedisClient | Promise<RedisClient>]>([
    ['keyPrefix', () => ioredis(loneUrl, { keyPrefix: `${RUN}:` })],
    ['enableAutoPipelining', () => ioredis(loneUrl, { enableAutoPipelining: true })],
    ['stringNumbers', () => ioredis(loneUrl, { stringNumbers: true })],
    ['RESP 2', () => ioredis(loneUrl, { protocol: 2 })],
    ['maps of RESP 3', () => ioredis(loneUrl, { replyMapping: 'resp3' })],
    ['lazyConnect', () => ioredis(loneUrl, { lazyConnect: true })],
    [
      'replies as buffers',
      async () => (await nodeRedis()).withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }),
    ],
  ])('are good enough: %s', async (_, connectTo) => {
    const store = openOver(await connectTo());
    const hints: unknown[] = [];
    await store.watch((ids) => hints.push(ids));
    await insertAll(store, [one, two]);

    expect(await store.find([one.id])).toEqual([one]);
    expect(await store.find([two.id, one.id])).toEqual([two, one]);
    expect(idsOf(await store.page(pageOf()))).toEqual([two.id, one.id]);
    expect(new Set((await store.scan({ limit: 9 })).records)).toEqual(new Set([one, two]));
    expect(await store.replace({ ...one, version: 2 })).toBe(true);
    expect(await store.revoke(one.id, 'acme', NOW)).toBe(true);
    expect(await store.revokeAll('acme', NOW, 1000)).toBe(1);
    expect((await store.purge(LATER, 10)).count).toBe(2);
    expect(await store.doctor()).toEqual([]);
    await vi.waitFor(() => expect(hints).toEqual([[one.id], [one.id], [two.id]]), WITHIN);
  });

  it('shows the same tokens to both drivers', async () => {
    const keyPrefix = newPrefix();
    const first = openOver(ioredis(), { keyPrefix });
    const second = openOver(await nodeRedis(), { keyPrefix });
    const elsewhere = openOver(ioredis());
    await first.insert(one);

    expect(await second.find([one.id])).toEqual([one]);
    await second.revoke(one.id, 'acme', LATER);
    expect(await first.find([one.id])).toEqual([{ ...one, revokedAt: LATER }]);
    expect(await elsewhere.find([one.id])).toEqual([undefined]);
  });

  it('may be connecting still', async () => {
    const client = createClient({ url: loneUrl as string });
    cleanups.push(() => client.destroy());
    const connecting = client.connect();

    expect(await openOver(client).find([one.id])).toEqual([undefined]);
    await connecting;
  });
});

describe.skipIf(loneUrl === undefined)('scan', () => {
  // Redis answers for a short set with all of it, and goes through a longer one by a cursor.
  it.each([
    [100, 7],
    [300, 40],
  ])('gives each of %i tokens of one shard, %i in a step', async (count, limit) => {
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

  it.each(['x', '1', '1 x', '-1 0', '100 0'])('refuses a position of others: %s', async (after) => {
    expect(await refusalOf(openOver(ioredis()).scan({ after, limit: 1 }))).toMatchObject({
      code: 'invalid_request',
    });
  });
});

describe.skipIf(loneUrl === undefined)('round trips', () => {
  it('are one for each verb that needs no read before it, whole or not at all', async () => {
    const { client, takeCommands } = recorded(ioredis());
    const store = openOver(client);
    // Afterwards the server knows the scripts.
    for (const [, call] of VERBS) await call(store);
    await store.purge(LATER, 10);
    await store.insert(one);
    takeCommands();

    const commandsOf = async (call: Call) => {
      await call(store);
      return takeCommands();
    };
    const counts: Record<string, string[]> = {};
    for (const [verb, call] of VERBS) counts[verb] = await commandsOf(call);
    expect(counts).toEqual({
      insert: ['evalsha'],
      find: ['getex'],
      'find of several': ['evalsha'],
      page: ['evalsha', 'evalsha'],
      replace: ['evalsha'],
      revoke: ['evalsha'],
      // What is there, and what becomes of it.
      revokeAll: ['evalsha', 'evalsha'],
      purge: ['evalsha'],
    });
  });

  it('sends a script in full to a server that has forgotten it', async () => {
    const plain = ioredis();
    const { client, takeCommands } = recorded(plain);
    const store = openOver(client);
    await plain.script('FLUSH');

    await store.insert(one);
    expect(takeCommands()).toEqual(['evalsha', 'eval']);
    await store.insert(two);
    expect(takeCommands()).toEqual(['evalsha']);
  });

  it('are two for a page, however many were revoked above it', async () => {
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

  it('are a few for a page, however many have expired above it', async () => {
    const { client, takeCommands } = recorded(ioredis());
    const store = openOver(client);
    const old = newRecord('old', { createdAt: new Date(0) });
    await insertAll(store, [old, ...newRecords(1500, { expiresAt: NOW })]);
    takeCommands();

    expect(await store.page(pageOf('acme', 2))).toEqual([old]);
    expect(takeCommands().length).toBeLessThan(10);
  });
});

describe.skipIf(loneUrl === undefined)('a quota', () => {
  const quotaOf = (tokens: number) => ({ tokens, liveAt: NOW });

  /** A store with so many tokens, and how many round trips an insert takes. */
  async function setUp(records: readonly TokenRecord[]) {
    const { client, takeCommands } = recorded(ioredis());
    const store = openOver(client);
    await insertAll(store, records);
    // Afterwards the server knows the script.
    await store.insert(newRecord('warm', { account: 'other' }), quotaOf(1));
    const insert = async (label: string, tokens: number) => {
      takeCommands();
      const code = await store.insert(newRecord(label), quotaOf(tokens)).then(
        () => 'kept',
        (error) => error.code,
      );
      return [code, takeCommands().length];
    };
    return { store, insert };
  }

  it('takes one round trip far below it, and counts first where it is small', async () => {
    const { insert } = await setUp(newRecords(10));

    expect(await insert('one', 10_000)).toEqual(['kept', 1]);
    expect(await insert('one', 10_000)).toEqual(['id_taken', 1]);
    expect(await insert('two', 100)).toEqual(['kept', 2]);
    expect(await insert('two', 100)).toEqual(['id_taken', 2]);
    expect(await insert('three', 12)).toEqual(['quota_exceeded', 2]);
  });

  it('counts where a list is not far below its share', async () => {
    // A share of 100 on average, without six deviations of 10 is 40.
    const { store, insert } = await setUp(newRecords(64 * 70));
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        store.insert(newRecord(`more${index}`), quotaOf(64 * 70 + 1)).then(
          () => 'kept',
          (error) => error.code,
        ),
      ),
    );

    expect(outcomes).toContain('kept');
    expect(await insert('last', 6400)).toEqual(['kept', 3]);
    expect(await insert('over', 64 * 70 + 1)).toEqual(['quota_exceeded', 3]);
  });

  it('passes over what has expired and is not purged', async () => {
    const expired = newRecords(1000, { expiresAt: NOW });
    const live = Array.from({ length: 20 }, (_, index) => newRecord(`live${index}`));
    const { insert } = await setUp([...expired, ...live]);

    expect(await insert('one', 20)).toEqual(['quota_exceeded', 2]);
    expect(await insert('one', 21)).toEqual(['kept', 3]);
  });

  it('takes an insert that the driver sends twice for one', async () => {
    const client = intercepted(ioredis(), async (command, _, run) => {
      if (command.startsWith('eval')) await run();
      return run();
    });
    const store = openOver(client);
    await insertAll(store, newRecords(64 * 40));
    const quota = quotaOf(64 * 100);

    const outcomes = await Promise.allSettled(
      Array.from({ length: 100 }, (_, index) => store.insert(newRecord(`more${index}`), quota)),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(outcomes.map(() => 'fulfilled'));
  });
});

describe.skipIf(loneUrl === undefined)('a page with maxBytes', () => {
  const longList = (label: string) => [`GET:shop.example/${label}/${'x'.repeat(100_000)}`];

  it('takes as many round trips as one without, unless records are long', async () => {
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

  it('reads little more than it hands out', async () => {
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
    expect(await store.page({ ...query, after: page.at(-1) })).toEqual(records.slice(7, 14));
    expect(await store.page({ ...query, maxBytes: 1 })).toEqual(records.slice(0, 1));
  });
});

describe.skipIf(loneUrl === undefined)('a driver that sends each script twice', () => {
  function setUp() {
    let answers: 'first' | 'second' = 'second';
    const client = intercepted(ioredis(), async (command, _, run) => {
      if (!command.startsWith('eval')) return run();
      const first = await run();
      const second = await run();
      return answers === 'first' ? first : second;
    });
    return { store: openOver(client), trust: (which: 'first' | 'second') => (answers = which) };
  }

  it('gets the same answer the second time', async () => {
    const { store } = setUp();
    await insertAll(store, [one, two]);

    expect(await store.replace({ ...one, version: 2 })).toBe(true);
    expect(await store.revoke(one.id, 'acme', NOW, 2)).toBe(true);
    expect(await store.revokeAll('acme', LATER, 1000)).toBe(1);
    expect(await store.find([one.id, two.id])).toEqual([
      { ...one, version: 2, revokedAt: NOW },
      { ...two, revokedAt: LATER },
    ]);
  });

  it('does not make two calls of the store one', async () => {
    const { store } = setUp();
    await store.insert(one);

    await expect(store.insert(one)).rejects.toMatchObject({ code: 'id_taken' });
    expect(await store.replace({ ...one, version: 2 })).toBe(true);
    expect(await store.replace({ ...one, version: 2 })).toBe(false);
    expect(await store.revoke(one.id, 'acme', NOW)).toBe(true);
    expect(await store.revoke(one.id, 'acme', NOW)).toBe(false);
    expect(await store.revokeAll('acme', NOW, 1000)).toBe(0);
  });
});

describe.skipIf(loneUrl === undefined)('many at once', () => {
  it('have one winner for each version, also over both drivers', async () => {
    const keyPrefix = newPrefix();
    const stores = [
      openOver(ioredis(), { keyPrefix }),
      openOver(ioredis(loneUrl, { enableAutoPipelining: true }), { keyPrefix }),
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

  it('leave each token that is issued beside a revokeAll revoked or not, and listed or not', async () => {
    const store = openOver(ioredis());
    const before = newRecords(50);
    const beside = newRecords(50).map((record) => ({
      ...record,
      id: record.id.replace('n', 'm') as TokenId,
    }));
    await insertAll(store, before);

    const inserts = beside.map((record) => store.insert(record));
    const count = await store.revokeAll('acme', LATER, 1000);
    await Promise.all(inserts);

    const revoked = (await store.find(idsOf([...before, ...beside]) as TokenId[])).filter(
      (record) => record?.revokedAt !== undefined,
    );
    expect(revoked).toHaveLength(count);
    expect(idsOf(revoked)).toEqual(expect.arrayContaining(idsOf(before)));
    const listed = await store.page(pageOf());
    expect(listed).toHaveLength(100 - count);
    expect(listed.filter(({ revokedAt }) => revokedAt !== undefined)).toEqual([]);
  });

  it('fill a page although what was listed is revoked before it is read', async () => {
    const plain = ioredis();
    const keyPrefix = newPrefix();
    const other = openOver(plain, { keyPrefix });
    const records = newRecords(20);
    await insertAll(other, records);
    let commands = 0;
    const client = intercepted(plain, async (_, __, run) => {
      commands += 1;
      // After the list.
      if (commands === 2) {
        await Promise.all(records.slice(17).map((record) => other.revoke(record.id, 'acme', NOW)));
      }
      return run();
    });

    const page = await openOver(client, { keyPrefix }).page(pageOf('acme', 5));
    expect(page).toEqual(records.slice(12, 17).reverse());
  });
});

describe.skipIf(loneUrl === undefined)('revokeAll', () => {
  it('revokes more than one script takes', async () => {
    const store = openOver(ioredis());
    await insertAll(store, newRecords(1200));
    await store.insert(newRecord('other', { account: 'other' }));

    expect(await store.revokeAll('acme', NOW, 2000)).toBe(1200);
    expect(await store.page(pageOf())).toEqual([]);
    expect(await store.page(pageOf('other'))).toHaveLength(1);
  });

  it('that breaks in the middle rejects, and can be called again', async () => {
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

  it('marks as many as it may, in few steps, also if all are in one shard', async () => {
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

  it('reads and changes little at once, whatever the account holds', async () => {
    const sizes: number[] = [];
    const client = intercepted(ioredis(), async (_, args, run) => {
      const answer = (await run()) as unknown[];
      // Of the script that lists, all keys are lists of the account; others have four for each token.
      const isList = Array.isArray(answer[0]);
      sizes.push(isList ? answer.flat().length : Number(args[1]) / 4);
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

  it('marks as many as it may while another process revokes the same', async () => {
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

describe.skipIf(loneUrl === undefined)('a record that is not as it was written', () => {
  async function setUp() {
    const client = ioredis();
    const keyPrefix = newPrefix();
    const store = openOver(client, { keyPrefix });
    await insertAll(store, [one, two]);
    const key = new KeySpace(keyPrefix).record(one.id);
    const lines = ((await client.get(key)) as string).split('\n');
    return { client, store, key, lines };
  }

  it.each<[string, number, string]>([
    ['a time of revocation', 0, 'x'],
    ['a version', 1, ''],
    ['a version', 1, 'x'],
    ['a version', 1, '9007199254740993'],
    ['a place', 4, ''],
    ['a place', 4, `1${'x'.repeat(16)}${one.id} 4133980799999`],
    ['a place', 4, `10004102444800000${one.id} `],
    ['a place', 4, `10004102444800000${one.id} 9000000000000000`],
    ['an account', 5, ''],
    ['an account', 5, '"a\\"'],
    ['a prefix', 6, ''],
    ['a key id', 7, ''],
    ['a digest', 8, ''],
    ['a digest', 8, Buffer.alloc(31).toString('base64')],
    ['a digest', 8, Buffer.alloc(33).toString('base64')],
    ['a digest', 8, '!'.repeat(44)],
    ['a box', 9, 'AAA!'],
    ['scopes', 10, ''],
    ['scopes', 10, 'garbage'],
    ['scopes', 10, '{"a":"secret"}'],
    ['scopes', 10, '["a",1]'],
    ['what was asked for', 11, 'null'],
    ['a name', 12, '"\\x"'],
    ['metadata', 13, '[1]'],
    ['metadata', 13, 'garbage'],
    ['a digest of before', 14, 'AAAA'],
    ['a time until', 15, 'x'],
  ])('is store_corrupt: %s (line %i: %j)', async (_, index, line) => {
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

  it.each(['', 'garbage', 'a\nb'])('is not written over, but can be purged: %j', async (value) => {
    const { client, store, key } = await setUp();
    await client.set(key, value);

    await expect(store.insert(one)).rejects.toMatchObject({ code: 'id_taken' });
    for (const call of [
      () => store.replace({ ...one, version: 2 }),
      () => store.revoke(one.id, 'acme', NOW),
      // The rest is revoked all the same.
      () => store.revokeAll('acme', NOW, 1000),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'store_corrupt' });
      expect(await client.get(key)).toBe(value);
    }
    expect(await store.find([two.id])).toEqual([{ ...two, revokedAt: NOW }]);
    expect((await store.purge(new Date(8.64e15), 10)).count).toBe(2);
    expect(await client.exists(key)).toBe(0);
  });

  it.each([[], [[]], ['OK']])('is store_corrupt where lists are missing: %j', async (...lists) => {
    const client = intercepted(ioredis(), async (name, _, run) =>
      name.startsWith('eval') ? lists : run(),
    );

    const refusal = await refusalOf(openOver(client).revokeAll('acme', NOW, 1000));
    expect(refusal.code).toBe('store_corrupt');
  });

  it('is store_corrupt where a key of another kind stands', async () => {
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

  it('that is gone leaves nothing behind in lists', async () => {
    const { client, store, key } = await setUp();
    await client.del(key);

    expect(idsOf(await store.page(pageOf('acme', 1)))).toEqual([two.id]);
    expect(await store.revokeAll('acme', NOW, 1000)).toBe(1);
    expect((await store.purge(new Date(8.64e15), 10)).count).toBe(2);
    await store.insert({ ...one, account: 'other' });
    expect(await store.page(pageOf())).toEqual([]);
    expect((await store.purge(NOW, 10)).count).toBe(0);
  });
});

describe('a server that refuses', () => {
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
  ])('is away, for each verb: %s', async (message) => {
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

/** Those that a test may do anything to. */
const OWN_CLIENTS: readonly (readonly [string, (url: string) => Promise<RedisClient>])[] = [
  ['ioredis', async (url) => ioredis(url, { maxRetriesPerRequest: 0 })],
  ['node-redis', (url) => nodeRedis(url)],
];

async function ownServer(settings: Readonly<Record<string, string>> = {}): Promise<Server> {
  const server = await startServer('redis', { settings });
  cleanups.push(() => server.stop());
  return server;
}

/** Of a server of one's own, with the addresses of its clients. */
async function connectionsOf(admin: Redis): Promise<number> {
  return String(await admin.client('LIST'))
    .trim()
    .split('\n').length;
}

describe.skipIf(!isInstalled('redis')).each(OWN_CLIENTS)(
  'a server that goes, %s',
  (_, connectTo) => {
    it('is away at once, and back when it comes again', async () => {
      const server = await ownServer();
      const store = openOver(await connectTo(server.url));
      await store.insert(one);
      await server.signal('SIGKILL');

      // Once the driver knows it: a command on its way may be lost.
      await vi.waitFor(() => refusalOf(store.insert(two)), WITHIN);
      const start = performance.now();
      const refusals = await Promise.all(VERBS.map(([, call]) => refusalOf(call(store))));
      expect(performance.now() - start).toBeLessThan(1000);
      expect(refusals.map(({ code }) => code)).toEqual(VERBS.map(() => 'store_unavailable'));

      await server.restart();
      const back = performance.now();
      await vi.waitFor(async () => expect(await store.find([one.id])).toEqual([one]), WITHIN);
      expect(performance.now() - back).toBeLessThan(2000);
      expect(await store.revoke(one.id, 'acme', NOW)).toBe(true);
    });

    it('does not get later what was given up', async () => {
      const server = await ownServer();
      const store = openOver(await connectTo(server.url));
      await store.insert(one);
      await server.signal('SIGKILL');
      expect((await refusalOf(store.revoke(one.id, 'acme', NOW))).code).toBe('store_unavailable');
      await server.restart();

      await vi.waitFor(() => store.insert(two), WITHIN);
      expect(await store.find([one.id])).toEqual([one]);
    });
  },
);

it.skipIf(loneUrl === undefined)(
  'is away at once when the host has closed its client',
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

describe.each(CLIENTS)('watch, over $name', ({ isMissing, connect: connectTo }) => {
  async function setUp() {
    const keyPrefix = newPrefix();
    const store = openOver(await connectTo(), { keyPrefix });
    const other = openOver(await connectTo(), { keyPrefix });
    const hints: unknown[] = [];
    const end = await other.watch((ids) => hints.push(ids));
    await insertAll(store, [one, two]);
    return { store, other, hints, end };
  }

  it.skipIf(isMissing)('tells of what others replace and revoke, and only of that', async () => {
    const { store, hints } = await setUp();
    expect(await store.replace({ ...one, version: 3 })).toBe(false);
    expect(await store.revoke(one.id, 'other', NOW)).toBe(false);

    await store.replace({ ...one, version: 2 });
    await vi.waitFor(() => expect(hints).toEqual([[one.id]]), WITHIN);
    await store.revoke(two.id, 'acme', NOW);
    await vi.waitFor(() => expect(hints).toEqual([[one.id], [two.id]]), WITHIN);
    await store.revokeAll('acme', NOW, 1000);
    await vi.waitFor(() => expect(hints).toEqual([[one.id], [two.id], [one.id]]), WITHIN);
  });

  it.skipIf(isMissing)('tells all ids of a revokeAll', async () => {
    const { store, hints } = await setUp();
    await store.revokeAll('acme', NOW, 1000);

    await vi.waitFor(() => expect(hints.flat().sort()).toEqual([one.id, two.id]), WITHIN);
  });

  it.skipIf(isMissing)('ends when it is told to, and with the store', async () => {
    const { store, other, hints, end } = await setUp();
    const late: unknown[] = [];
    await other.watch((ids) => late.push(ids));
    await end();
    await end();
    await store.revoke(one.id, 'acme', NOW);
    await vi.waitFor(() => expect(late).toEqual([[one.id]]), WITHIN);
    expect(hints).toEqual([]);

    await other.close();
    const witness: unknown[] = [];
    await store.watch((ids) => witness.push(ids));
    await store.revoke(two.id, 'acme', NOW);
    await vi.waitFor(() => expect(witness).toEqual([[two.id]]), WITHIN);
    expect(late).toEqual([[one.id]]);
    expect(await other.find([one.id])).toEqual([{ ...one, revokedAt: NOW }]);
  });

  it.skipIf(isMissing)('goes on when a listener throws', async () => {
    const { store, other } = await setUp();
    let calls = 0;
    await other.watch(() => {
      calls += 1;
      throw new Error('of the listener');
    });
    await store.revoke(one.id, 'acme', NOW);
    await vi.waitFor(() => expect(calls).toBe(1), WITHIN);
    await store.revoke(two.id, 'acme', NOW);
    await vi.waitFor(() => expect(calls).toBe(2), WITHIN);
  });
});

describe.skipIf(!isInstalled('redis')).each(OWN_CLIENTS)(
  'watch that is lost, %s',
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

    it('tells all when its connection is killed, and again when it has another', async () => {
      const { store, hints, admin } = await setUp();
      await admin.call('client', 'kill', 'type', 'pubsub');

      await vi.waitFor(() => expect(hints[0]).toBe('all'), WITHIN);
      await listensAgain(store, hints);
    });

    it('comes back with the server, again and again', async () => {
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

    it('notices a connection that is open on this side only', async () => {
      let proxy: TcpProxy | undefined;
      const { store, hints } = await setUp(async (port) => {
        proxy = await startProxy(port);
        cleanups.push(() => proxy?.close());
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

    it('rejects when it cannot listen yet', async () => {
      const { server, other } = await setUp();
      await server.signal('SIGKILL');

      expect((await refusalOf(other.watch(() => {}))).code).toBe('store_unavailable');
    });
  },
);

/** A primary and a replica that follows it. */
async function ownPair(): Promise<{ primary: Server; replica: Server }> {
  const primary = await ownServer({ 'repl-diskless-sync-delay': '0' });
  const replica = await ownServer();
  await ioredis(replica.url).replicaof('127.0.0.1', primary.port);
  const admin = ioredis(primary.url);
  await vi.waitFor(async () => {
    await admin.set('written', 'to be confirmed');
    expect(await admin.wait(1, 1000)).toBe(1);
  }, WITHIN);
  return { primary, replica };
}

describe.skipIf(!isInstalled('redis')).each(OWN_CLIENTS)('replicas, %s', (_, connectTo) => {
  const waiting = { replicas: 1, waitMs: 1000 };

  it.each(WRITES)('that are missing: %s is made, and durability_unconfirmed', async (_, call) => {
    const server = await ownServer();
    const client = await connectTo(server.url);
    const keyPrefix = newPrefix();
    const plain = openOver(client, { keyPrefix });
    const events: RedisStoreEvent[] = [];
    const store = openOver(client, {
      ...{ keyPrefix, ...waiting, waitMs: 10 },
      onEvent(event) {
        events.push(event);
        throw new Error('of the listener');
      },
    });
    await plain.insert(one);

    const { code } = await refusalOf(call(store));
    expect(code).toBe('durability_unconfirmed');
    expect(events).toEqual([{ type: 'durability_unconfirmed', confirmations: 0, needed: 1 }]);
    const [kept, inserted] = await plain.find([one.id, two.id]);
    expect([kept?.version, kept?.revokedAt, inserted?.id]).not.toEqual([1, undefined, undefined]);
  });

  it('are not waited for where nothing was changed', async () => {
    const server = await ownServer();
    const client = await connectTo(server.url);
    const keyPrefix = newPrefix();
    const store = openOver(client, { keyPrefix, ...waiting, waitMs: 10 });
    await openOver(client, { keyPrefix }).insert(one);

    await expect(store.insert(one)).rejects.toMatchObject({ code: 'id_taken' });
    expect(await store.replace({ ...one, version: 3 })).toBe(false);
    expect(await store.revoke(one.id, 'other', NOW)).toBe(false);
    expect(await store.revokeAll('other', NOW, 1000)).toBe(0);
    expect((await store.purge(LATER, 10)).count).toBe(0);
  });

  it('confirm what they have, and hold up no reads when they do not answer', async () => {
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

  it('are waited for again after the server was away', async () => {
    const { primary } = await ownPair();
    const store = openOver(await connectTo(primary.url), waiting);
    await store.insert(one);
    await primary.signal('SIGKILL');
    expect((await refusalOf(store.insert(two))).code).toBe('store_unavailable');
    await primary.restart();

    // The replica has to come back as well.
    const insert = () => store.insert(newRecord(`n${Math.round(performance.now())}`));
    await vi.waitFor(insert, WITHIN);
    expect(await store.find([one.id, two.id])).toEqual([one, undefined]);
  });

  it('leave no connection behind', async () => {
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
});

describe.skipIf(loneUrl === undefined)('changes that a server has lost', () => {
  /** What `lose` takes all tokens back to is what they are now. */
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

  /** As long as a store needs that has lost something at the same time. */
  async function passes(): Promise<void> {
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
  ])('are made again: %s', async (_, call, expected) => {
    const { store, witness, events, lose } = await setUp();
    await call(store);
    await lose();

    await vi.waitFor(() => expect(events).toHaveLength(1), WITHIN);
    expect(events[0]?.type).toBe('writes_reasserted');
    const kept = await witness.find([one.id, two.id]);
    expect(kept.map((record) => [record?.version, record?.revokedAt])).toEqual(expected);
    const live = kept.filter((record) => record?.revokedAt === undefined);
    expect(await witness.page(pageOf())).toEqual(live.reverse());
  });

  it('stay lost when the store is closed', async () => {
    const { store, witness, events, lose } = await setUp();
    await store.revoke(one.id, 'acme', NOW);
    await store.close();
    await lose();

    await passes();
    expect(await witness.find([one.id, two.id])).toEqual([one, two]);
    expect(events).toEqual([]);
  });

  it('are not made to another token that has the id of one that was purged', async () => {
    const { store, witness, events } = await setUp();
    await store.replace({ ...two, version: 2 });
    await store.revoke(two.id, 'acme', NOW);
    await store.revoke(one.id, 'acme', NOW);
    await witness.purge(LATER, 10);
    await insertAll(witness, [one, two]);

    await passes();
    expect(await witness.find([one.id, two.id])).toEqual([one, two]);
    expect(events).toEqual([]);
  });

  it('are not sought in what others have changed since', async () => {
    const { store, witness, events } = await setUp();
    await store.replace({ ...one, version: 2 });
    await witness.replace({ ...one, version: 3 });
    await witness.revoke(one.id, 'acme', NOW);

    await passes();
    expect(await witness.find([one.id])).toEqual([{ ...one, version: 3, revokedAt: NOW }]);
    expect(events).toEqual([]);
  });
});

describe.skipIf(!isInstalled('redis'))('doctor', () => {
  async function codesOf(store: RedisTokenStore): Promise<string[]> {
    return (await store.doctor()).map(({ code }) => code);
  }

  it.each(OWN_CLIENTS)('tells what settings weaken, and no more, over %s', async (_, connectTo) => {
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
  });

  it('tells of replicas that are missing, not waited for, or not needed', async () => {
    const { primary, replica } = await ownPair();
    const admin = ioredis(primary.url);
    const client = ioredis(primary.url);
    const patient = openOver(client, { replicas: 1 });
    expect(await codesOf(patient)).toEqual(['min_replicas_not_set']);
    expect(await codesOf(openOver(ioredis(replica.url)))).toEqual(['connected_to_replica']);

    await admin.config('SET', 'min-replicas-to-write', '1');
    expect(await codesOf(patient)).toEqual([]);
    // Without a cluster, nobody replaces a primary by itself.
    expect(await patient.doctor({ full: true })).toEqual([]);
    expect(await codesOf(openOver(client, { replicas: 2 }))).toEqual(['replicas_missing']);
    expect(await codesOf(openOver(client))).toEqual(['replicas_not_awaited']);
  });

  it.each<[string, string, unknown]>([
    ['redis_too_old', 'info', 'redis_version:6.0.16\r\nrole:master\r\n'],
    ['cluster_not_ok', 'info', 'redis_version:7.0.15\r\ncluster_state:fail\r\n'],
    ['clock_skew', 'time', ['1', '0']],
  ])('tells of %s', async (code, command, answer) => {
    const client = intercepted(ioredis((await ownServer()).url), async (name, _, run) =>
      name === command ? answer : run(),
    );

    expect(await codesOf(openOver(client))).toEqual([code]);
  });

  it('says what to look at where it may not read settings', async () => {
    const server = await ownServer();
    const rights = ['on', 'nopass', '~*', '&*', '+@all', '-config'];
    await ioredis(server.url).acl('SETUSER', 'app', ...rights);
    const client = ioredis(server.url, { username: 'app', password: 'any' });
    const findings: StoreFinding[] = await openOver(client).doctor();

    expect(findings).toEqual([
      { code: 'settings_unreadable', message: expect.stringContaining('appendfsync') },
    ]);
  });

  it('rejects when a server does not answer', async () => {
    const server = await ownServer();
    const store = openOver(ioredis(server.url));
    await store.find([one.id]);
    await server.signal('SIGKILL');

    expect((await refusalOf(store.doctor())).code).toBe('store_unavailable');
  });
});

describe.each(CLIENTS.slice(2))('doctor, over $name', ({ isMissing, connect: connectTo }) => {
  it.skipIf(isMissing)('looks at each primary, and names them', async () => {
    const findings = await openOver(await connectTo()).doctor();

    expect(findings.map(({ code }) => code)).toEqual(['min_replicas_not_set']);
    expect(findings[0]?.message.match(/127\.0\.0\.1:\d+/g)).toHaveLength(3);
  });

  it.skipIf(isMissing)('says with full what a replaced primary can do, and when', async () => {
    const store = openOver(await connectTo());
    const findings: StoreFinding[] = await store.doctor({ full: true });
    const message = findings.find(({ code }) => code === 'primary_replaceable')?.message;

    expect(message?.match(/127\.0\.0\.1:\d+/g)).toHaveLength(3);
    expect(message).toContain('cluster-node-timeout (2000 ms)');
    expect(message).toContain('half a second');
  });

  it.skipIf(isMissing)('tells a client that knows of one server only', async () => {
    const [address] = (clusterUrl ?? '').slice('redis+cluster://'.length).split(',');
    const findings = await openOver(ioredis(`redis://${address}`), { replicas: 1 }).doctor();

    expect(findings.map(({ code }) => code)).toContain('client_knows_no_cluster');
  });
});

describe('layout', () => {
  it('puts a token into a shard by its id, for ever', () => {
    expect(SHARDS.map(({ tag }) => tag).join()).toBe(
      '10,18,113,342,29,21,3,122,69,61,72,162,50,58,153,43,11,19,112,343,28,20,2,123,68,60,73,163,51,59,152,42,12,102,111,119,133,23,1,9,173,63,70,78,52,142,49,41,13,103,110,118,132,22,0,8,172,62,71,79,53,143,48,40',
    );
    expect(['one', 'two', 'three'].map((id) => shardOf(id).tag)).toEqual(['53', '43', '23']);
  });

  it('spreads shards over the slots, and tokens over the shards', () => {
    expect(SHARDS.map(({ slot }) => Math.floor(slot / 256))).toEqual([...SHARDS.keys()]);
    const counts = new Map<string, number>();
    for (let number = 0; number < 6400; number += 1) {
      const { tag } = shardOf(`token${number}`.padStart(22, '0'));
      counts.set(tag, (counts.get(tag) ?? 0) + 1);
    }
    expect(counts.size).toBe(64);
    expect(Math.max(...counts.values())).toBeLessThan(150);
  });

  it.skipIf(clusterUrl === undefined)('knows the slots as the servers do', async () => {
    const [{ host, port } = { host: '', port: 0 }] = nodesOf(clusterUrl);
    const admin = ioredis(`redis://${host}:${port}`);
    const keys = new KeySpace('any');
    const slots = SHARDS.map((shard) => admin.cluster('KEYSLOT', keys.account(shard, 'a{b}c')));

    expect(await Promise.all(slots)).toEqual(SHARDS.map(({ slot }) => slot));
  });

  it.skipIf(loneUrl === undefined)('is read as it was first written', async () => {
    const client = ioredis();
    const keyPrefix = newPrefix();
    const lines = [
      ...['4102444800001', '7', 'stamp2', 'stamp1', `10004102444800000${one.id} 4133980800000`],
      ...['"ac\\"me"', '"acme"', '"k1"', Buffer.alloc(32, 3).toString('base64'), 'AAEC/w=='],
      ...['["GET:shop.example/orders"]', '["GET:shop.example/*"]', '"de\\nploy"', '{"a":[1]}'],
      ...[Buffer.alloc(32, 9).toString('base64'), '4102444800002'],
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
      },
    ]);
  });

  it.skipIf(loneUrl === undefined)('sorts the times of all ages', async () => {
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
