// The usage stores that several processes can share. Without vitest: processes of their own import it.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Cluster, Redis } from 'ioredis';
import { RedisUsageStore } from '../../src/stores/redis/index.ts';
import { SqliteUsageStore } from '../../src/stores/sqlite/index.ts';
import type { UsageStore } from '../../src/usage-store.ts';
import type { Engine } from '../servers.ts';

/** A store over a connection of its own. */
export interface OpenedUsage {
  readonly store: UsageStore;
  /** Ends the connection of the host; the store is to be closed before. */
  end(): Promise<void>;
}

export interface UsageEngine {
  readonly name: string;
  /** Absent without a server. */
  readonly server?: Engine;
  /** Opens what is at a place, which {@link placeOn} makes. */
  open(place: string): Promise<OpenedUsage>;
}

export const USAGE_ENGINES: readonly UsageEngine[] = [
  {
    name: 'SQLite',
    async open(place) {
      return { store: SqliteUsageStore.open(place), end: async () => {} };
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
    store: new RedisUsageStore(client, { keyPrefix }),
    end: async () => client.disconnect(),
  };
}

/** A new place on a server that others use, too. */
export function placeOn(url: string): string {
  return `${url}#${randomUUID()}`;
}
