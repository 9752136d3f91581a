// Token stores over the real drivers, for tests that run several processes.
import { promisify } from 'node:util';
import { Cluster, Redis } from 'ioredis';
import { createPool } from 'mysql2';
import pg from 'pg';
import type { TokenStore } from '../../src/ports/token-store.ts';
import * as mysql from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';
import { RedisTokenStore } from '../../src/stores/redis/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { type LeaseEngine, nodesOf } from './lease-engines.ts';

export type StoreEngine = LeaseEngine;

/** Where tokens are stored: tables or a key prefix on a server, or a file. */
export interface StorePlace {
  readonly engine: StoreEngine;
  /** The URL of the server, or the path of the file. */
  readonly url: string;
  /** The beginning of the names of the tables, or a key prefix. */
  readonly name: string;
}

export interface OpenedStore {
  readonly store: TokenStore;
  close(): Promise<void>;
}

const CONNECTIONS = 5;
/** The machine may be busy with other tests. */
const DEADLINE_MS = 20_000;

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
  const store = new RedisTokenStore(client, { keyPrefix });
  return {
    store,
    async close() {
      await store.close();
      client.disconnect();
    },
  };
}
