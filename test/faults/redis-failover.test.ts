import { Cluster as IoredisCluster, Redis } from 'ioredis';
import { createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { isTokenError } from '../../src/errors.ts';
import {
  type RedisClient,
  type RedisStoreEvent,
  RedisTokenStore,
} from '../../src/stores/redis/index.ts';
import { shardOf } from '../../src/stores/redis/layout.ts';
import type { TokenRecord } from '../../src/token/record.ts';
import { type Cluster, isInstalled, type Server, startCluster } from '../servers.ts';
import { CREATED as NOW, newRecord } from '../stores/support.ts';

const WITHIN = { timeout: 20_000, interval: 50 };
const COUNT = 5;

const cleanups: (() => unknown)[] = [];

/** A process that changes tokens before the failover. */
interface Revoker {
  readonly name: string;
  readonly store: RedisTokenStore;
  readonly events: RedisStoreEvent[];
  readonly confirmed: readonly TokenRecord[];
  readonly unconfirmed: readonly TokenRecord[];
  readonly replaced: TokenRecord;
}

describe.skipIf(!isInstalled('redis'))(
  'failover of a Redis cluster to a replica that is behind',
  () => {
    let cluster: Cluster;
    let primary: Server;
    let replica: Server;
    let observer: RedisTokenStore;
    let revokers: Revoker[];

    const revokerOf = (name: string): Revoker =>
      revokers.find((one) => one.name === name) as Revoker;

    beforeAll(async () => {
      cluster = await startCluster();
      cleanups.push(() => cluster.stop());
      ({ primary, replica } = await pairOf(cluster));
      observer = openOver(ioredis(cluster));
      const clients: [string, RedisClient][] = [
        ['ioredis', ioredis(cluster)],
        ['node-redis', await nodeRedis(cluster)],
        ['a process that has ended', ioredis(cluster)],
      ];
      const held = await slotsOf(primary);
      revokers = clients.map(([name, client], index) => {
        const events: RedisStoreEvent[] = [];
        const records = recordsIn(held, index, 2 * COUNT + 1);
        return {
          ...{ name, events },
          store: openOver(client, (event) => events.push(event)),
          confirmed: records.slice(0, COUNT),
          unconfirmed: records.slice(COUNT, 2 * COUNT),
          replaced: records[2 * COUNT] as TokenRecord,
        };
      });
      await Promise.all(revokers.map(actBeforeFailover));
      await failOver();
      await revokerOf('a process that has ended').store.close();
    });

    afterAll(async () => {
      for (const clean of cleanups.reverse()) await clean();
    });

    /** Makes changes that the replica confirms. */
    async function actBeforeFailover({ store, confirmed, unconfirmed, replaced }: Revoker) {
      for (const record of [...confirmed, ...unconfirmed, replaced]) await store.insert(record);
      for (const { id } of confirmed) expect(await store.revoke(id, 'acme', NOW)).toBe(true);
    }

    /** Makes changes that reach only the primary, and kills it. */
    async function failOver(): Promise<void> {
      await replica.signal('SIGSTOP');
      const admin = new Redis(primary.url);
      await admin.call('client', 'kill', 'type', 'replica');
      admin.disconnect();
      const refused: unknown[] = [];
      const refuse = (error: unknown) => refused.push(isTokenError(error) && error.code);
      await Promise.all(
        revokers.flatMap(({ store, unconfirmed, replaced }) => [
          ...unconfirmed.map(({ id }) => store.revoke(id, 'acme', NOW).catch(refuse)),
          store
            .replace({ ...replaced, version: 2, scopes: ['GET:shop.example/less'] })
            .catch(refuse),
        ]),
      );
      expect(new Set(refused)).toEqual(new Set(['durability_unconfirmed']));
      expect(refused).toHaveLength(3 * (COUNT + 1));
      await revokerOf('a process that has ended').store.close();
      await primary.signal('SIGKILL');
      await replica.signal('SIGCONT');
      const successor = new Redis(replica.url);
      await vi.waitFor(async () => {
        expect(await successor.info('replication')).toContain('role:master');
        expect(await successor.cluster('INFO')).toContain('cluster_state:ok');
      }, WITHIN);
      successor.disconnect();
    }

    async function revokedOf(records: readonly TokenRecord[]): Promise<number> {
      const found = await observer.find(records.map(({ id }) => id));
      expect(found).not.toContain(undefined);
      return found.filter((record) => record?.revokedAt !== undefined).length;
    }

    it('undoes no confirmed revocation, whether or not its process has ended', async () => {
      for (const { confirmed } of revokers) {
        await vi.waitFor(async () => expect(await revokedOf(confirmed)).toBe(COUNT), WITHIN);
      }
    });

    it('undoes unconfirmed changes of a process that has ended', async () => {
      const { unconfirmed, replaced, events } = revokerOf('a process that has ended');

      expect(await revokedOf(unconfirmed)).toBe(0);
      expect((await observer.find([replaced.id]))[0]?.version).toBe(1);
      expect(events.filter(({ type }) => type === 'writes_reasserted')).toEqual([]);
    });

    it.each(['ioredis', 'node-redis'])(
      'undoes no change of a running process, which writes it again, over %s',
      async (name) => {
        const { unconfirmed, replaced, events } = revokerOf(name);

        await vi.waitFor(async () => expect(await revokedOf(unconfirmed)).toBe(COUNT), WITHIN);
        await vi.waitFor(async () => {
          const [record] = await observer.find([replaced.id]);
          expect(record).toMatchObject({ version: 2, scopes: ['GET:shop.example/less'] });
        }, WITHIN);
        await vi.waitFor(() => {
          const reasserted = events.filter((event) => event.type === 'writes_reasserted');
          expect(reasserted.reduce((sum, { count }) => sum + count, 0)).toBe(COUNT + 1);
        }, WITHIN);
        const listed = await observer.page({ account: 'acme', limit: 1000, liveAt: NOW });
        expect(listed.map(({ id }) => id)).not.toContain(unconfirmed[0]?.id);
      },
    );

    it.each(['ioredis', 'node-redis'])(
      'leaves the process able to write, over %s',
      async (name) => {
        const { store } = revokerOf(name);
        const [record] = recordsIn(await slotsOf(replica), name.length + 10, 1) as [TokenRecord];
        const hasty = openOver(ioredis(cluster), undefined, 0);

        // The old primary is dead, so no replica can confirm a write.
        await vi.waitFor(async () => {
          const code = await store
            .insert(record)
            .catch((error) => isTokenError(error) && error.code);
          expect(['durability_unconfirmed', 'id_taken']).toContain(code);
        }, WITHIN);
        expect(await hasty.revoke(record.id, 'acme', NOW)).toBe(true);
        expect((await store.find([record.id]))[0]?.revokedAt).toEqual(NOW);
      },
    );

    it.each(['ioredis', 'node-redis'])(
      'leaves the process able to follow a moved slot, over %s',
      async (name) => {
        const { store } = revokerOf(name);
        const others = await healthyPrimaries();
        const [source, target] = name === 'ioredis' ? others : others.toReversed();
        const [before, after] = recordsOfOneSlot(await slotsOf(source as Server), name.length);
        await store.insert(before);
        await moveSlot(shardOf(before.id).slot, source as Server, target as Server);

        await store.insert(after);
        expect(await store.find([before.id, after.id])).toEqual([before, after]);
        expect(await store.revoke(before.id, 'acme', NOW)).toBe(true);
      },
    );

    async function healthyPrimaries(): Promise<Server[]> {
      const ports = (await rangesOf(replica)).map(([, , owner]) => owner?.[1]);
      return cluster.nodes.filter(({ port }) => ports.includes(port) && port !== replica.port);
    }
  },
);

const RETRY = (attempt: number) => Math.min(attempt * 50, 500);

function ioredis({ nodes }: Cluster): IoredisCluster {
  const addresses = nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  const client = new IoredisCluster(addresses, { clusterRetryStrategy: RETRY });
  client.on('error', () => {});
  cleanups.push(() => client.disconnect());
  return client;
}

async function nodeRedis({ nodes }: Cluster) {
  const client = createCluster({
    rootNodes: nodes.map(({ url }) => ({ url })),
    defaults: { socket: { reconnectStrategy: RETRY } },
    // The default is 5 seconds.
    topologyRefreshOnReconnectionAttemptStrategy: 500,
  });
  client.on('error', () => {});
  cleanups.push(() => client.destroy());
  return client.connect();
}

function openOver(
  client: RedisClient,
  onEvent?: (event: RedisStoreEvent) => void,
  replicas = 1,
): RedisTokenStore {
  const store = new RedisTokenStore(client, { onEvent, replicas });
  cleanups.push(() => store.close());
  return store;
}

type SlotRange = Awaited<ReturnType<typeof rangesOf>>[number];

/** The first slot, the last slot, and the nodes that hold them, the primary first. */
async function rangesOf({ url }: Server) {
  const admin = new Redis(url);
  const ranges = await admin.cluster('SLOTS');
  admin.disconnect();
  return ranges;
}

/** A primary of the cluster, and its replica. */
async function pairOf({ nodes }: Cluster): Promise<{ primary: Server; replica: Server }> {
  return vi.waitFor(async () => {
    const [[, , ...nodesOfRange]] = (await rangesOf(nodes[0] as Server)) as [SlotRange];
    const [primary, replica] = nodesOfRange.map(([, port]) =>
      nodes.find((node) => node.port === port),
    );
    if (primary === undefined || replica === undefined) throw new Error('not known yet');
    return { primary, replica };
  }, WITHIN);
}

async function slotsOf(server: Server): Promise<(slot: number) => boolean> {
  const ranges = await rangesOf(server);
  const own = ranges.filter(([, , owner]) => owner?.[1] === server.port);
  return (slot) => own.some(([from, to]) => from <= slot && slot <= to);
}

/** Two tokens in the same slot. */
function recordsOfOneSlot(
  isHeld: (slot: number) => boolean,
  group: number,
): [TokenRecord, TokenRecord] {
  const records = recordsIn(isHeld, group, 200);
  const [first] = records as [TokenRecord];
  const second = records.find(({ id }) => id !== first.id && shardOf(id) === shardOf(first.id));
  return [first, second as TokenRecord];
}

async function moveSlot(slot: number, source: Server, target: Server): Promise<void> {
  const [from, to] = [new Redis(source.url), new Redis(target.url)];
  const targetId = await to.cluster('MYID');
  await to.cluster('SETSLOT', slot, 'IMPORTING', await from.cluster('MYID'));
  await from.cluster('SETSLOT', slot, 'MIGRATING', targetId);
  for (const key of await from.cluster('GETKEYSINSLOT', slot, 1000)) {
    await from.migrate('127.0.0.1', target.port, key, 0, 5000);
  }
  for (const node of [to, from]) await node.cluster('SETSLOT', slot, 'NODE', targetId);
  from.disconnect();
  to.disconnect();
}

/** Tokens in slots that a server holds. */
function recordsIn(isHeld: (slot: number) => boolean, group: number, count: number): TokenRecord[] {
  const records: TokenRecord[] = [];
  for (let number = 0; records.length < count; number += 1) {
    const record = newRecord(`g${group}n${number}`);
    if (isHeld(shardOf(record.id).slot)) records.push(record);
  }
  return records;
}
