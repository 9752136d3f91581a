// The usage stores that several processes can share. Child processes import this file, so it cannot use vitest.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Cluster, Redis } from 'ioredis';
import { createPool } from 'mysql2';
import pg from 'pg';
import type { UsageStore } from '../../src/ports/usage-store.ts';
import * as mysql from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';
import { RedisTokenStore } from '../../src/stores/redis/index.ts';
import { SqliteUsage } from '../../src/stores/sqlite/usage.ts';
import type { Engine } from '../servers.ts';

/** A store over a connection of its own. */
export interface OpenedUsage {
  readonly store: UsageStore;
  /** Ends the connection of the host. Close the store first. */
  end(): Promise<void>;
}

export interface UsageEngine {
  readonly name: string;
  /** The server that it needs, if any. */
  readonly server?: Engine;
  /** Opens the store at a place: the path of a file, or a result of {@link placeOn}. */
  open(place: string): Promise<OpenedUsage>;
}

/** Long, for busy machines: a call that is given up can still be counted, which would spoil exact sums. */
const DEADLINE_MS = 20_000;

export const USAGE_ENGINES: readonly UsageEngine[] = [
  {
    name: 'SQLite',
    async open(place) {
      return { store: new SqliteUsage(place), end: async () => {} };
    },
  },
  {
    name: 'PostgreSQL',
    server: 'postgres',
    async open(place) {
      const [url, tables] = place.split('#');
      const pool = new pg.Pool({ connectionString: url });
      await postgres.migrate(pool, { tables });
      const store = new postgres.PostgresTokenStore(pool, { tables, deadlineMs: DEADLINE_MS });
      return { store: store.usage, end: () => pool.end() };
    },
  },
  {
    name: 'MariaDB',
    server: 'mariadb',
    async open(place) {
      const [uri = '', tables] = place.split('#');
      const pool = createPool({ uri });
      await mysql.migrate(pool, { tables });
      const store = new mysql.MysqlTokenStore(pool, { tables, deadlineMs: DEADLINE_MS });
      return { store: store.usage, end: () => pool.promise().end() };
    },
  },
  {
    name: 'Redis',
    server: 'redis',
    async open(place) {
      const [url = '', keyPrefix] = place.split('#');
      return overIoredis(new Redis(url), keyPrefix);
    },
  },
  {
    name: 'Redis Cluster',
    server: 'redisCluster',
    async open(place) {
      const [url = '', keyPrefix] = place.split('#');
      const addresses = url.slice(url.indexOf('//') + 2).split(',');
      return overIoredis(new Cluster(addresses.map((address) => `redis://${address}`)), keyPrefix);
    },
  },
];

async function overIoredis(
  client: Redis | Cluster,
  keyPrefix: string | undefined,
): Promise<OpenedUsage> {
  client.on('error', () => {});
  await once(client, 'ready');
  return {
    store: new RedisTokenStore(client, { keyPrefix }).usage,
    end: async () => client.disconnect(),
  };
}

/** A new key prefix, or beginning of the names of tables, on a shared server. */
export function placeOn(url: string): string {
  return `${url}#usage_${randomUUID().replaceAll('-', '')}`;
}
