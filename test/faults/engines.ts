// The servers that the fault tests break, and stores over the real drivers.
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Cluster, Redis } from 'ioredis';
import { createPool } from 'mysql2';
import pg from 'pg';
import { createClient, createCluster } from 'redis';
import type { TokenStore } from '../../src/index.ts';
import * as mysql from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';
import { RedisTokenStore } from '../../src/stores/redis/index.ts';
import { withDeadline } from '../../src/time/deadline.ts';
import { type Engine, isInstalled, type Server, startCluster, startServer } from '../servers.ts';

/** One server, or those of a cluster. */
export interface Servers {
  readonly url: string;
  readonly nodes: readonly Server[];
  stop(): Promise<void>;
}

/** A store over a driver, as a host opens it. */
export interface Opened {
  readonly store: TokenStore;
  /** Takes all connections of the pool, like other code of the host; resolves to a function that returns them. */
  exhaust?(): Promise<() => void>;
  close(): Promise<void>;
}

export interface OpenOptions {
  /** The deadline of the store, and the timeouts of the driver. */
  readonly deadlineMs: number;
  /** The size of the pool, if there is one. @default 4 */
  readonly connections?: number;
  /** Maps the ports of the servers to those of proxies. */
  readonly ports?: ReadonlyMap<number, number>;
}

/** A driver and its store. */
export interface Driver {
  readonly name: string;
  readonly engine: Engine;
  readonly hasPool: boolean;
  prepare(url: string): Promise<void>;
  open(url: string, options: OpenOptions): Opened;
}

const CONNECTIONS = 4;
const POOL_MS = 1000;

export const overPg: Driver = {
  name: 'pg',
  engine: 'postgres',
  hasPool: true,
  async prepare(url) {
    const pool = new pg.Pool({ connectionString: url });
    await postgres.migrate(pool);
    await pool.end();
  },
  open(url, { deadlineMs, connections = CONNECTIONS, ports }) {
    const pool = new pg.Pool({
      connectionString: through(url, ports),
      max: connections,
      connectionTimeoutMillis: deadlineMs,
      statement_timeout: deadlineMs,
    });
    const store = new postgres.PostgresTokenStore(pool, { deadlineMs });
    return {
      store,
      exhaust: () => taken(connections, () => pool.connect()),
      async close() {
        await store.close();
        await pool.end();
      },
    };
  },
};

export const overMysql2: Driver = {
  name: 'mysql2',
  engine: 'mariadb',
  hasPool: true,
  async prepare(url) {
    const pool = createPool({ uri: url });
    await mysql.migrate(pool);
    await promisify(pool.end.bind(pool))();
  },
  open(url, { deadlineMs, connections = CONNECTIONS, ports }) {
    const pool = createPool({
      uri: through(url, ports),
      connectionLimit: connections,
      connectTimeout: deadlineMs,
    });
    return {
      store: new mysql.MysqlTokenStore(pool, { deadlineMs }),
      exhaust: () => taken(connections, promisify(pool.getConnection.bind(pool))),
      close: () => promisify(pool.end.bind(pool))(),
    };
  },
};

const retryDelay = (attempt: number) => Math.min(attempt * 50, 500);

export const overIoredis: Driver = {
  name: 'ioredis',
  engine: 'redis',
  hasPool: false,
  prepare: async () => {},
  open(url, { deadlineMs, ports }) {
    const client = new Redis(through(url, ports), {
      ...ioredisOptions(deadlineMs),
      retryStrategy: retryDelay,
    });
    return openedRedis(client, () => client.disconnect());
  },
};

const overNodeRedis: Driver = {
  name: 'node-redis',
  engine: 'redis',
  hasPool: false,
  prepare: async () => {},
  open(url, { deadlineMs, ports }) {
    const client = createClient({ url: through(url, ports), ...nodeRedisOptions(deadlineMs) });
    client.connect().catch(() => {});
    return openedRedis(client, () => client.destroy());
  },
};

const overIoredisCluster: Driver = {
  name: 'an ioredis cluster',
  engine: 'redisCluster',
  hasPool: false,
  prepare: async () => {},
  open(url, { deadlineMs, ports }) {
    const client = new Cluster([...nodesOf(url, ports).values()], {
      natMap: Object.fromEntries(nodesOf(url, ports)),
      redisOptions: ioredisOptions(deadlineMs),
      slotsRefreshTimeout: deadlineMs,
      clusterRetryStrategy: retryDelay,
    });
    return openedRedis(client, () => client.disconnect(), deadlineMs);
  },
};

const overNodeRedisCluster: Driver = {
  name: 'a node-redis cluster',
  engine: 'redisCluster',
  hasPool: false,
  prepare: async () => {},
  open(url, { deadlineMs, ports }) {
    const client = createCluster({
      rootNodes: [...nodesOf(url, ports).values()].map((socket) => ({ socket })),
      nodeAddressMap: Object.fromEntries(nodesOf(url, ports)),
      defaults: nodeRedisOptions(deadlineMs),
    });
    client.connect().catch(() => {});
    return openedRedis(client, () => client.destroy(), deadlineMs);
  },
};

/** The drivers for a single server. */
export const DRIVERS: readonly Driver[] = [overPg, overMysql2, overIoredis, overNodeRedis];
export const CLUSTER_DRIVERS: readonly Driver[] = [overIoredisCluster, overNodeRedisCluster];

export function isMissing({ engine }: Driver): boolean {
  return !isInstalled(engine);
}

export async function start(
  { engine }: Driver,
  settings: Readonly<Record<string, string>> = {},
): Promise<Servers> {
  if (engine === 'redisCluster') return startCluster({ settings });
  const server = await startServer(engine, { settings });
  return { url: server.url, nodes: [server], stop: () => server.stop() };
}

/** Stops a server with all its processes: PostgreSQL has one for each client, which would go on. */
export async function freeze(server: Server): Promise<void> {
  await server.signal('SIGSTOP');
  for (const pid of childrenOf(server.pid)) process.kill(pid, 'SIGSTOP');
}

export async function thaw(server: Server): Promise<void> {
  for (const pid of childrenOf(server.pid)) process.kill(pid, 'SIGCONT');
  await server.signal('SIGCONT');
}

/** `kill -9` of a server with all its processes, so that none can write anything after that. */
export async function kill(server: Server): Promise<void> {
  await freeze(server);
  for (const pid of childrenOf(server.pid)) process.kill(pid, 'SIGKILL');
  await server.signal('SIGKILL');
}

/** Shuts a server down as an administrator does, while clients use it. */
export async function shutDown(server: Server): Promise<void> {
  // On SIGTERM, PostgreSQL would wait for its clients.
  if (server.url.startsWith('postgres')) process.kill(server.pid, 'SIGINT');
  else await server.signal('SIGTERM');
  while (!hasEnded(server)) await delay(10);
}

export function hasEnded({ pid }: Server): boolean {
  return !existsSync(`/proc/${pid}`);
}

function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return children.split(' ').filter(Boolean).map(Number);
}

function through(url: string, ports: ReadonlyMap<number, number> = new Map()): string {
  const target = new URL(url);
  target.port = String(ports.get(Number(target.port)) ?? target.port);
  return target.href;
}

/** The servers of a cluster by address, each with the host and port to connect to. */
function nodesOf(url: string, ports: ReadonlyMap<number, number> = new Map()) {
  const addresses = url.slice(url.indexOf('//') + 2).split(',');
  return new Map(
    addresses.map((address) => {
      const [host = '', port] = address.split(':');
      return [address, { host, port: ports.get(Number(port)) ?? Number(port) }];
    }),
  );
}

function ioredisOptions(deadlineMs: number) {
  return { maxRetriesPerRequest: 1, connectTimeout: deadlineMs, socketTimeout: deadlineMs };
}

/** `socketTimeout` of node-redis applies to idle connections, so it needs regular pings. */
function nodeRedisOptions(deadlineMs: number) {
  return {
    pingInterval: deadlineMs / 4,
    socket: {
      connectTimeout: deadlineMs,
      socketTimeout: deadlineMs / 2,
      reconnectStrategy: retryDelay,
    },
  };
}

function openedRedis(
  client: ConstructorParameters<typeof RedisTokenStore>[0],
  disconnect: () => void,
  deadlineMs?: number,
): Opened {
  client.on('error', () => {});
  const store = new RedisTokenStore(
    client,
    deadlineMs === undefined ? {} : { waitMs: Math.floor(deadlineMs / 3) },
  );
  return {
    store,
    async close() {
      await store.close();
      disconnect();
    },
  };
}

async function taken(
  count: number,
  connect: () => Promise<{ release(): void }>,
): Promise<() => void> {
  const connections = Array.from({ length: count }, () => connect());
  const giveBack = () => {
    for (const connection of connections) connection.then((one) => one.release()).catch(() => {});
  };
  try {
    await withDeadline(Promise.all(connections), POOL_MS);
    return giveBack;
  } catch {
    giveBack();
    throw new Error('not all connections of the pool are available');
  }
}
