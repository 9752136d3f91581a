import { Cluster as IoredisCluster, Redis } from 'ioredis';
import { createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RedisClient, RedisTokenStore } from '../../src/stores/redis/index.ts';
import { KeySpace, shardOf } from '../../src/stores/redis/layout.ts';
import type { TokenId, TokenRecord } from '../../src/token/record.ts';
import { type Cluster, isInstalled, type Server, startCluster } from '../servers.ts';
import { newRecord } from '../stores/support.ts';

const NOW = new Date('2100-01-01T00:00:00.000Z');
const WITHIN = { timeout: 20_000, interval: 50 };
const COUNT = 90;
const AFTER_WAKE_MS = 1500;

const cleanups: (() => unknown)[] = [];

/** Counts answers to reads of revoked tokens, and those that show a token as active. */
class Reader {
  accepted = 0;
  answered = 0;

  async read(reading: Promise<readonly (TokenRecord | undefined)[]>): Promise<void> {
    const found = await reading.catch(() => undefined);
    if (found === undefined) return;
    this.answered += 1;
    if (found.some((record) => record !== undefined && record.revokedAt === undefined)) {
      this.accepted += 1;
    }
  }
}

describe.skipIf(!isInstalled('redis'))(
  'a Redis primary that was paused and replaced, and resumes',
  () => {
    const readers = {
      ioredis: new Reader(),
      'node-redis': new Reader(),
      'plain client': new Reader(),
    };

    beforeAll(async () => {
      const cluster = await startCluster();
      cleanups.push(() => cluster.stop());
      const { primary, replica, isHeld } = await pairOf(cluster);
      const idle = {
        ioredis: openOver(ioredis(cluster)),
        'node-redis': openOver(await nodeRedis(cluster)),
      };
      const records = recordsIn(isHeld);
      const issuer = openOver(ioredis(cluster));
      for (const record of records) await issuer.insert(record);
      const raw = connectTo(primary);
      for (const store of Object.values(idle)) await store.find([records[0]?.id as TokenId]);
      await raw.ping();

      await primary.signal('SIGSTOP');
      const others = cluster.nodes.filter((node) => node !== primary);
      // A client that got the old slot map from one of them would wait for the paused primary.
      for (const node of others) await vi.waitFor(() => expectPrimary(node, replica), WITHIN);
      const revoker = openOver(ioredis({ ...cluster, nodes: others }));
      for (const { id } of records) {
        await vi.waitFor(() => revoker.revoke(id, 'acme', NOW), WITHIN);
      }

      const keys = new KeySpace('tokenwright');
      const readAll = () => {
        const stores = (['ioredis', 'node-redis'] as const).flatMap((name) =>
          records.map(({ id }) => readers[name].read(idle[name].find([id]))),
        );
        // The control: a client that trusts the server.
        const trusting = records.map((record) =>
          readers['plain client'].read(
            raw
              .call('getex', [keys.record(record.id)])
              .then((value) => [
                { ...record, revokedAt: String(value).startsWith('1 \n') ? undefined : NOW },
              ]),
          ),
        );
        return Promise.all([...stores, ...trusting]);
      };
      const first = readAll();
      await primary.signal('SIGCONT');
      await first;
      const start = performance.now();
      while (performance.now() - start < AFTER_WAKE_MS) await readAll();
    });

    afterAll(async () => {
      for (const clean of cleanups.reverse()) await clean();
    });

    it.each(['ioredis', 'node-redis'] as const)(
      'makes no store accept a revoked token, over %s',
      async (name) => {
        expect(readers[name].accepted).toBe(0);
        expect(readers[name].answered).toBeGreaterThan(0);
      },
    );

    it('shows revoked tokens as active to a plain client (the control)', async ({ annotate }) => {
      const { accepted, answered } = readers['plain client'];
      await annotate(`${accepted} of ${answered} answers, for ${COUNT} revoked tokens`);
      expect(accepted).toBeGreaterThan(0);
    });
  },
);

function ioredis({ nodes }: Cluster): IoredisCluster {
  const client = new IoredisCluster(
    nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
    { clusterRetryStrategy: (attempt) => Math.min(attempt * 50, 500) },
  );
  client.on('error', () => {});
  cleanups.push(() => client.disconnect());
  return client;
}

async function nodeRedis({ nodes }: Cluster) {
  const client = createCluster({ rootNodes: nodes.map(({ url }) => ({ url })) });
  client.on('error', () => {});
  cleanups.push(() => client.destroy());
  return client.connect();
}

/** Does not wait for replicas: after the failover, the new primary has none. */
function openOver(client: RedisClient): RedisTokenStore {
  const store = new RedisTokenStore(client, { replicas: 0 });
  cleanups.push(() => store.close());
  return store;
}

function connectTo({ url }: Server): Redis {
  const client = new Redis(url);
  cleanups.push(() => client.disconnect());
  return client;
}

/** A primary of the cluster, its replica, and the slots they hold. */
async function pairOf({ nodes }: Cluster) {
  const admin = connectTo(nodes[0] as Server);
  return vi.waitFor(async () => {
    const [[from, to, ...ports] = []] = await admin.cluster('SLOTS');
    const [primary, replica] = ports.map((node) => nodes.find(({ port }) => port === node?.[1]));
    if (primary === undefined || replica === undefined) throw new Error('not known yet');
    const isHeld = (slot: number) => Number(from) <= slot && slot <= Number(to);
    return { primary, replica, isHeld };
  }, WITHIN);
}

/** Expects that `node` knows `primary` as a primary. */
async function expectPrimary(node: Server, primary: Server): Promise<void> {
  const client = connectTo(node);
  const ports = (await client.cluster('SLOTS')).map(([, , holder]) => holder?.[1]);
  client.disconnect();
  expect(ports).toContain(primary.port);
}

function recordsIn(isHeld: (slot: number) => boolean): TokenRecord[] {
  return Array.from({ length: 20 * COUNT }, (_, number) => newRecord(`n${number}`))
    .filter(({ id }) => isHeld(shardOf(id).slot))
    .slice(0, COUNT);
}
