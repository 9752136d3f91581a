import { Cluster, Redis } from 'ioredis5';
import { Redis as Valkey, Cluster as ValkeyCluster } from 'iovalkey';
import { createCluster, createClient as createNewClient, createSentinel } from 'redis';
import { createClient, createCluster as createOldCluster } from 'redis5';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { type RedisClient, RedisTokenStore } from '../../../src/stores/redis/index.ts';
import { testContracts } from '../contracts.ts';
import { WAIT_MS } from '../engines.ts';
import { purgeByFastClock, TOKENS } from '../fast-clock.ts';
import { newPrefix, nodesOf, openOver, removeKeys, SHARED_CLIENTS } from './support.ts';

const { redis: loneUrl, redisCluster: clusterUrl } = inject('servers');

/** Earlier major versions of the drivers, which many projects still use, and the fork of ioredis for Valkey. */
const OTHER_CLIENTS: typeof SHARED_CLIENTS = [
  {
    name: 'ioredis 5',
    isMissing: loneUrl === undefined,
    async connect(url = loneUrl as string, atEnd = onTestFinished) {
      const client = new Redis(url);
      atEnd(() => client.disconnect());
      return client;
    },
  },
  {
    name: 'an ioredis 5 cluster',
    isMissing: clusterUrl === undefined,
    async connect(url = clusterUrl, atEnd = onTestFinished) {
      const client = new Cluster(nodesOf(url));
      atEnd(() => client.disconnect());
      return client;
    },
  },
  {
    name: 'node-redis 5',
    isMissing: loneUrl === undefined,
    async connect(url = loneUrl as string, atEnd = onTestFinished) {
      const client = createClient({ url });
      atEnd(() => client.destroy());
      await client.connect();
      return client;
    },
  },
  {
    name: 'iovalkey',
    isMissing: loneUrl === undefined,
    async connect(url = loneUrl as string, atEnd = onTestFinished) {
      const client = new Valkey(url);
      atEnd(() => client.disconnect());
      return client;
    },
  },
  {
    name: 'an iovalkey cluster',
    isMissing: clusterUrl === undefined,
    async connect(url = clusterUrl, atEnd = onTestFinished) {
      const client = new ValkeyCluster(nodesOf(url));
      atEnd(() => client.disconnect());
      return client;
    },
  },
];

afterAll(removeKeys);

const FURTHER: readonly string[] = [
  'node-redis',
  'an ioredis cluster',
  'iovalkey',
  'an iovalkey cluster',
];
const WAYS = [...SHARED_CLIENTS, ...OTHER_CLIENTS].map((client) => ({
  ...client,
  name: FURTHER.includes(client.name) ? `${client.name} (further)` : client.name,
}));

describe.each(WAYS)('Redis store over $name', ({ isMissing, connect: connectTo }) => {
  let client: RedisClient;
  beforeAll(async () => {
    const ends: (() => void)[] = [];
    if (!isMissing) client = await connectTo(undefined, (end) => ends.push(end));
    return () => {
      for (const end of ends) end();
    };
  });
  const open = () => new RedisTokenStore(client, { keyPrefix: newPrefix(), waitMs: WAIT_MS });

  describe.skipIf(isMissing)('keeps the contracts', () => testContracts(open));

  it.skipIf(isMissing)('keeps live tokens from a process whose clock is a year fast', async () => {
    expect(await purgeByFastClock(openOver(client))).toEqual({ removed: 0, left: TOKENS });
  });

  it.skipIf(isMissing)('says by the clock of the server which instants have come', async () => {
    const store = openOver(client);
    const now = Date.now();
    expect(await store.hasReached(new Date(now - 60_000))).toBe(true);
    expect(await store.hasReached(new Date(now + 60_000))).toBe(false);
    expect(await store.hasReached(new Date(now + 365 * 86_400_000))).toBe(false);
  });
});

describe('a client of node-redis', () => {
  // Nothing connects.
  const url = 'redis://127.0.0.1:1';
  const rootNodes = [{ url }];
  const sentinel = { name: 'acme', sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }] };
  const version4 = { isReady: true, sendCommand() {}, duplicate() {}, subscribe() {} };

  it.each<[string, () => object]>([
    ['createCluster() of version 5', () => createOldCluster({ rootNodes })],
    ['createSentinel()', () => createSentinel(sentinel)],
    ['createClient() of version 4', () => version4],
  ])('of %s is refused, and the clients that work are named', (_, create) => {
    expect(() => new RedisTokenStore(create() as never)).toThrow(
      expect.objectContaining({
        code: 'invalid_options',
        message: expect.stringMatching(/Cluster of ioredis.*createCluster\(\) of redis 6/),
      }),
    );
  });

  it.each<[string, () => RedisClient]>([
    ['createCluster() of version 6', () => createCluster({ rootNodes })],
    ['createClient() of version 5', () => createClient({ url })],
    ['createClient() of version 6', () => createNewClient({ url })],
  ])('of %s is taken', (_, create) => {
    expect(() => new RedisTokenStore(create())).not.toThrow();
  });
});
