import { once } from 'node:events';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { expect, inject, onTestFinished, vi } from 'vitest';
import { type RedisClient, RedisTokenStore } from '../../../src/stores/redis/index.ts';
import { type Server, startServer } from '../../servers.ts';

export const WITHIN = { timeout: 10_000, interval: 20 };

/** The addresses in the URL of the cluster of the tests. */
export function nodesOf(url = ''): { host: string; port: number }[] {
  const addresses = url.slice(url.indexOf('//') + 2).split(',');
  return addresses.map((address) => {
    const [host = '', port] = address.split(':');
    return { host, port: Number(port) };
  });
}

/** A server for one test, which may do anything to it. */
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

/** Without a cast: the clients of the drivers are what the store asks for. */
export const CLIENTS: readonly (readonly [string, (url: string) => Promise<RedisClient>])[] = [
  ['ioredis', async (url) => ioredis(url)],
  ['node-redis', nodeRedis],
];

const { redis: loneUrl, redisCluster: clusterUrl } = inject('servers');

/** Of the servers of all tests; those of the cluster come last. */
export const SHARED_CLIENTS: readonly {
  readonly name: string;
  readonly isMissing: boolean;
  /** To the servers of all tests, unless others are named. */
  connect(url?: string): Promise<RedisClient>;
}[] = [
  ...CLIENTS.map(([name, connectTo]) => ({
    name,
    isMissing: loneUrl === undefined,
    connect: (url = loneUrl) => connectTo(url as string),
  })),
  {
    name: 'a cluster by ioredis',
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
    name: 'a cluster by node-redis',
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

/** Lowers the memory limit of a server below what it uses already. */
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
  run: (args: string[]) => Promise<unknown>,
) => Promise<unknown>;

/** A client whose commands can be changed on their way. */
export function intercepted(client: Redis, intercept: Intercept): Redis {
  const call = (command: string, args: string[]) =>
    intercept(command, args, (changed) => client.call(command, changed));
  return new Proxy(client, {
    get(target, name) {
      const value = name === 'call' ? call : Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
