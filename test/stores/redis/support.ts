import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { expect, inject, onTestFinished, vi } from 'vitest';
import type { CountQuery } from '../../../src/ports/token-store.ts';
import {
  type RedisClient,
  type RedisStoreOptions,
  RedisTokenStore,
} from '../../../src/stores/redis/index.ts';
import { type Server, startServer } from '../../servers.ts';
import { nodesOf, WAIT_MS } from '../engines.ts';
import { newRecord } from '../support.ts';

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

const { redis: loneUrl, redisCluster: clusterUrl } = inject('servers');

/** Registers what ends a client: with its test, unless a hook connects it. */
type AtEnd = (end: () => void) => unknown;

export function ioredis(
  url = loneUrl as string,
  options: object = {},
  atEnd: AtEnd = onTestFinished,
): Redis {
  const client = new Redis(url, { retryStrategy: () => 20, ...options });
  client.on('error', () => {});
  atEnd(() => client.disconnect());
  return client;
}

export async function nodeRedis(url = loneUrl as string, atEnd: AtEnd = onTestFinished) {
  const client = createClient({ url, socket: { reconnectStrategy: () => 20 } });
  client.on('error', () => {});
  atEnd(() => client.destroy());
  return client.connect();
}

/** Without a cast, which proves that the clients of the drivers fit the type. */
export const CLIENTS: readonly (readonly [
  string,
  (url?: string, atEnd?: AtEnd) => Promise<RedisClient>,
])[] = [
  ['ioredis', async (url, atEnd) => ioredis(url, { maxRetriesPerRequest: 0 }, atEnd)],
  ['node-redis', nodeRedis],
];

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
  connect(url?: string, atEnd?: AtEnd): Promise<RedisClient>;
}[] = [
  ...CLIENTS.map(([name, connect]) => ({ name, isMissing: loneUrl === undefined, connect })),
  {
    name: 'an ioredis cluster',
    isMissing: clusterUrl === undefined,
    async connect(url = clusterUrl, atEnd: AtEnd = onTestFinished) {
      const client = new Cluster(nodesOf(url));
      client.on('error', () => {});
      atEnd(() => client.disconnect());
      await once(client, 'ready');
      return client;
    },
  },
  {
    name: 'a node-redis cluster',
    isMissing: clusterUrl === undefined,
    async connect(url = clusterUrl, atEnd: AtEnd = onTestFinished) {
      const rootNodes = nodesOf(url).map((socket) => ({ socket }));
      const client = createCluster({ rootNodes });
      client.on('error', () => {});
      atEnd(() => client.destroy());
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

/** Opens a store with a key prefix of its own, which ends with the test. */
export function openOver(client: RedisClient, options: RedisStoreOptions = {}): RedisTokenStore {
  const store = new RedisTokenStore(client, {
    keyPrefix: newPrefix(),
    waitMs: WAIT_MS,
    ...options,
  });
  onTestFinished(() => store.close());
  return store;
}

/** The same with the default key prefix, for a server of one test. */
export function openPlain(client: RedisClient): RedisTokenStore {
  return openOver(client, { keyPrefix: undefined });
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

// Past for the server, too, which decides what is purged.
export const NOW = new Date('2020-01-01T00:00:00.000Z');

export function pageOf(account = 'acme', limit = 1000) {
  return { account, limit, liveAt: NOW };
}

export function countOf(fields: Partial<CountQuery> = {}): CountQuery {
  return { account: 'acme', liveAt: NOW, most: { live: 10_000, ended: 10_000 }, ...fields };
}

export type Call = (store: RedisTokenStore) => Promise<unknown>;

export const one = newRecord('one');
export const two = newRecord('two');
/** Each verb, in a form that touches the token `one`. */
export const VERBS: readonly (readonly [string, Call])[] = [
  ['insert', (store) => store.insert(two)],
  ['find', (store) => store.find([one.id])],
  ['find of several', (store) => store.find([one.id, two.id])],
  ['page', (store) => store.page(pageOf())],
  ['page by expiry', (store) => store.page({ ...pageOf(), order: 'expire' })],
  ['replace', (store) => store.replace({ ...one, version: 2 })],
  ['revoke', (store) => store.revoke(one.id, 'acme', NOW)],
  ['revokeAll', (store) => store.revokeAll('acme', NOW, 1000)],
  ['purge', (store) => store.purge({ now: NOW, minAgeMs: 0, limit: 10 })],
  ['prune', (store) => store.prune({ account: 'acme', now: NOW, limit: 10 })],
  ['count', (store) => store.count(countOf())],
  ['hasReached', (store) => store.hasReached(NOW)],
];
