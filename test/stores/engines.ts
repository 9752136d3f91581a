// Stores over the real drivers, for tests that run several processes. They import this file, so it cannot use vitest.
import { promisify } from 'node:util';
import { Cluster, Redis } from 'ioredis';
import { createPool } from 'mysql2';
import pg from 'pg';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import * as mysql from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';
import { RedisTokenStore } from '../../src/stores/redis/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';

export type StoreEngine = 'sqlite' | 'postgres' | 'mariadb' | 'redis' | 'redisCluster';

/** Where a store is: tables or a key prefix on a server, or a file. */
export interface StorePlace {
  readonly engine: StoreEngine;
  /** The URL of the server, or the path of the file. */
  readonly url: string;
  /** The beginning of the names of the tables, or a key prefix. */
  readonly name: string;
}

export interface OpenedStore {
  readonly store: EngineStore;
  close(): Promise<void>;
}

const CONNECTIONS = 5;
/** Long, for busy machines: a call that is given up may still have counted, which would spoil exact sums. */
const DEADLINE_MS = 20_000;
/** Long for the same reason: a replica that confirms late has not lost anything. */
export const WAIT_MS = 10_000;

/** Creates the tables; opening a file creates its own. */
export async function prepareStore({ engine, url, name: tables }: StorePlace): Promise<void> {
  if (engine === 'postgres') {
    const pool = new pg.Pool({ connectionString: url });
    await postgres.migrate(pool, { tables });
    await pool.end();
  }
  if (engine === 'mariadb') {
    const pool = createPool({ uri: url });
    await mysql.migrate(pool, { tables });
    await promisify(pool.end.bind(pool))();
  }
}

const OPEN: Readonly<Record<StoreEngine, (place: StorePlace) => OpenedStore>> = {
  sqlite({ url }) {
    const store = SqliteTokenStore.openFile(url);
    return { store, close: () => store.close() };
  },
  postgres({ url, name: tables }) {
    const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
    const store = new postgres.PostgresTokenStore(pool, { tables, deadlineMs: DEADLINE_MS });
    return {
      store,
      async close() {
        await store.close();
        await pool.end();
      },
    };
  },
  mariadb({ url, name: tables }) {
    const pool = createPool({ uri: url, connectionLimit: CONNECTIONS });
    const store = new mysql.MysqlTokenStore(pool, { tables, deadlineMs: DEADLINE_MS });
    return { store, close: () => promisify(pool.end.bind(pool))() };
  },
  redis: ({ url, name }) => overRedis(new Redis(url), name),
  redisCluster: ({ url, name }) => overRedis(new Cluster(nodesOf(url)), name),
};

export function openStore(place: StorePlace): OpenedStore {
  return OPEN[place.engine](place);
}

function overRedis(client: Redis | Cluster, keyPrefix: string): OpenedStore {
  client.on('error', () => {});
  const store = new RedisTokenStore(client, { keyPrefix, waitMs: WAIT_MS });
  return {
    store,
    async close() {
      await store.close();
      client.disconnect();
    },
  };
}

/** The addresses in the URL of a cluster. */
export function nodesOf(url = ''): { host: string; port: number }[] {
  const addresses = url.slice(url.indexOf('//') + 2).split(',');
  return addresses.map((address) => {
    const [host = '', port] = address.split(':');
    return { host, port: Number(port) };
  });
}
