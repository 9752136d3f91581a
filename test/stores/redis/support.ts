import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { expect, inject, onTestFinished, vi } from 'vitest';
import { type RedisClient, RedisTokenStore } from '../../../src/stores/redis/index.ts';
import { type Server, startServer } from '../../servers.ts';
import { nodesOf } from '../lease-engines.ts';

export { nodesOf };

export const WITHIN = { timeout: 10_000, interval: 20 };

/** A server for one test, which may break it. */
export async function ownServer(settings: Readonly<Record<string, string>> = {}): Promise<Server> {
  const server = await startServer('redis', { settings });
  onTestFinished(() => server.stop());
  return server;
}

/** A primary and a replica that follows it. */
export async function ownPair(): Promise<{ primary: Server; replica: Server }> {
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

export function ioredis(url: string, options: object = {}): Redis {
  const client = new Redis(url, { retryStrategy: () => 20, ...options });
  client.on('error', () => {});
  onTestFinished(() => client.disconnect());
  return client;
}

async function nodeRedis(url: string) {
  const client = createClient({ url, socket: { reconnectStrategy: () => 20 } });
  client.on('error', () => {});
  onTestFinished(() => client.destroy());
  return client.connect();
}

/** Without a cast, which proves that the clients of the drivers fit the type. */
export const CLIENTS: readonly (readonly [string, (url: string) => Promise<RedisClient>])[] = [
  ['ioredis', async (url) => ioredis(url)],
  ['node-redis', nodeRedis],
];

const { redis: loneUrl, redisCluster: clusterUrl } = inject('servers');

/** The start of all key prefixes of a test file. */
const RUN = `test:${randomUUID()}`;

let prefixes = 0;
export function newPrefix(): string {
  prefixes += 1;
  return `${RUN}:${prefixes}`;
}

/** Removes all keys with the prefixes of this test file from the shared servers. */
export async function removeKeys(): Promise<void> {
  const urls = loneUrl === undefined ? [] : [loneUrl];
  if (clusterUrl !== undefined) {
    urls.push(...nodesOf(clusterUrl).map(({ host, port }) => `redis://${host}:${port}`));
  }
  for (const url of urls) {
    const client = new Redis(url);
    // A replica refuses; its primary is one of the other servers.
    const keys = await keysIn(client, RUN);
    await Promise.all(keys.map((key) => client.unlink(key).catch(() => {})));
    client.disconnect();
  }
}

export async function keysIn(client: Redis, prefix: string): Promise<string[]> {
  const found: string[] = [];
  for await (const keys of client.scanStream({ match: `${prefix}:*`, count: 1000 })) {
    found.push(...keys);
  }
  return found;
}

/** How many connections a server has. */
export async function connectionsOf(admin: Redis): Promise<number> {
  return String(await admin.client('LIST'))
    .trim()
    .split('\n').length;
}

/** Clients of the servers that all tests share; the clients of the cluster come last. */
export const SHARED_CLIENTS: readonly {
  readonly name: string;
  readonly isMissing: boolean;
  /** Connects to the shared servers, or to the ones in `url`. */
  connect(url?: string): Promise<RedisClient>;
}[] = [
  ...CLIENTS.map(([name, connectTo]) => ({
    name,
    isMissing: loneUrl === undefined,
    connect: (url = loneUrl) => connectTo(url as string),
  })),
  {
    name: 'an ioredis cluster',
    isMissing: clusterUrl === undefined,
    async connect(url = clusterUrl) {
      const client = new Cluster(nodesOf(url));
      client.on('error', () => {});
      onTestFinished(() => client.disconnect());
      await once(client, 'ready');
      return client;
    },
  },
  {
    name: 'a node-redis cluster',
    isMissing: clusterUrl === undefined,
    async connect(url = clusterUrl) {
      const rootNodes = nodesOf(url).map((socket) => ({ socket }));
      const client = createCluster({ rootNodes });
      client.on('error', () => {});
      onTestFinished(() => client.destroy());
      return client.connect();
    },
  },
];

/** Lowers the memory limit of a server below what it already uses. */
export async function fill(admin: Redis): Promise<void> {
  await admin.config('SET', 'maxmemory-policy', 'noeviction');
  await admin.config('SET', 'maxmemory', 1);
  await expect(admin.set('more', 'x')).rejects.toThrow(/^OOM/);
}

export function openOver(client: RedisClient): RedisTokenStore {
  const store = new RedisTokenStore(client);
  onTestFinished(() => store.close());
  return store;
}

export type Intercept = (
  command: string,
  args: string[],
  /** Sends the command, with other arguments if some are given. */
  run: (args?: string[]) => Promise<unknown>,
) => Promise<unknown>;

/** A client whose commands can be changed or replaced. */
export function intercepted(client: Redis, intercept: Intercept): Redis {
  const call = (command: string, args: string[]) =>
    intercept(command, args, (changed = args) => client.call(command, changed));
  return new Proxy(client, {
    get(target, name) {
      const value = name === 'call' ? call : Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
