// Earlier major versions of the drivers, which many projects still use.
import { randomUUID } from 'node:crypto';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5';
import { createClient as createClient5 } from 'redis5';
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { type RedisClient, RedisTokenStore } from '../../../src/stores/redis/index.ts';
import { storeContract } from '../../../src/testing/index.ts';
import { nodesOf } from './support.ts';

const { redis: loneUrl, redisCluster: clusterUrl } = inject('servers');

interface Opened {
  readonly client: RedisClient;
  readonly end: () => unknown;
}

const GENERATIONS: readonly [string, string | undefined, () => Promise<Opened>][] = [
  [
    'ioredis 5',
    loneUrl,
    async () => {
      const client = new Redis5(loneUrl as string);
      return { client, end: () => client.disconnect() };
    },
  ],
  [
    'an ioredis 5 cluster',
    clusterUrl,
    async () => {
      const client = new Cluster5(nodesOf(clusterUrl));
      return { client, end: () => client.disconnect() };
    },
  ],
  [
    'node-redis 5',
    loneUrl,
    async () => {
      const client = createClient5({ url: loneUrl as string });
      await client.connect();
      return { client, end: () => client.destroy() };
    },
  ],
];

describe.each(GENERATIONS)('Redis store over %s', (_, url, open) => {
  let opened: Opened | undefined;
  beforeAll(async () => {
    if (url !== undefined) opened = await open();
  });
  afterAll(() => opened?.end());

  it.skipIf(url === undefined).each(storeContract)('$name', (promise) => {
    const { client } = opened as Opened;
    return promise.run(() => new RedisTokenStore(client, { keyPrefix: `test:${randomUUID()}` }));
  });
});
