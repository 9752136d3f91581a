// Lease stores over the real drivers, for tests that run several processes.
import { promisify } from 'node:util';
import { Cluster, Redis } from 'ioredis';
import { createPool } from 'mysql2';
import pg from 'pg';
import type { LeaseStore } from '../../src/ports/lease-store.ts';
import * as mysql from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';
import { RedisTokenStore } from '../../src/stores/redis/index.ts';
import { SqliteLeases } from '../../src/stores/sqlite/leases.ts';

export type LeaseEngine = 'sqlite' | 'postgres' | 'mariadb' | 'redis' | 'redisCluster';

export interface OpenedLeases {
  readonly store: LeaseStore;
  close(): Promise<void>;
}

/** Where leases are stored: tables or a key prefix on a server, or a file. */
export interface LeasePlace {
  readonly engine: LeaseEngine;
  /** The URL of the server, or the path of the file. */
  readonly url: string;
  /** The beginning of the names of the tables, or a key prefix. */
  readonly name: string;
}

/** Creates the tables; opening a file creates its own. */
export async function prepareLeases({ engine, url, name: tables }: LeasePlace): Promise<void> {
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

const DEADLINE_MS = 20_000;

const OPEN: Readonly<Record<LeaseEngine, (place: LeasePlace) => OpenedLeases>> = {
  sqlite({ url }) {
    const store = new SqliteLeases(url);
    return { store, close: () => store.close() };
  },
  postgres({ url, name: tables }) {
    const pool = new pg.Pool({ connectionString: url, max: 4 });
    const store = new postgres.PostgresTokenStore(pool, { tables, deadlineMs: DEADLINE_MS });
    return { store: store.leases, close: () => pool.end() };
  },
  mariadb({ url, name: tables }) {
    const pool = createPool({ uri: url, connectionLimit: 4 });
    const store = new mysql.MysqlTokenStore(pool, { tables, deadlineMs: DEADLINE_MS });
    return { store: store.leases, close: () => promisify(pool.end.bind(pool))() };
  },
  redis: ({ url, name }) => overRedis(new Redis(url), name),
  redisCluster: ({ url, name }) => overRedis(new Cluster(nodesOf(url)), name),
};

export function openLeases(place: LeasePlace): OpenedLeases {
  return OPEN[place.engine](place);
}

function overRedis(client: Redis | Cluster, keyPrefix: string): OpenedLeases {
  client.on('error', () => {});
  const store = new RedisTokenStore(client, { keyPrefix });
  return {
    store: store.leases,
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
