import type { Redis } from 'ioredis';
import { describe, expect, inject, it, vi } from 'vitest';
import { KeySpace, shardOf } from '../../../src/stores/redis/layout.ts';
import { READ } from '../../../src/stores/redis/scripts.ts';
import { isInstalled } from '../../servers.ts';
import { codeOf, K1, refusalOf, SCOPE, setUp } from '../../support.ts';
import {
  type Call,
  CLIENTS,
  intercepted,
  ioredis,
  NOW,
  one,
  openPlain,
  ownPair,
  ownServer,
  pageOf,
  two,
  VERBS,
  WITHIN,
} from './support.ts';

const { redisCluster: clusterUrl } = inject('servers');

const READS: readonly (readonly [string, Call])[] = [
  ['find', (store) => store.find([one.id])],
  ['find of several', (store) => store.find([one.id, two.id])],
  ['find of an unknown id', (store) => store.find([two.id])],
  ['page', (store) => store.page(pageOf())],
  ['page with maxBytes', (store) => store.page({ ...pageOf(), maxBytes: 1000 })],
  ['scan', async (store) => (await store.scan({ limit: 10 })).records],
];

const revokeTwo: Call = (store) => store.revoke(two.id, 'acme', NOW);

async function replicated(client: Redis): Promise<void> {
  await vi.waitFor(async () => expect(await client.wait(1, 1000)).toBe(1), WITHIN);
}

describe.skipIf(!isInstalled('redis')).each(CLIENTS)(
  'a store on a Redis replica, over %s',
  (_, connectTo) => {
    it('rejects every call', async () => {
      const { primary, replica } = await ownPair();
      const admin = ioredis(primary.url);
      await openPlain(admin).insert(one);
      await replicated(admin);
      const store = openPlain(await connectTo(replica.url));

      const unknown: [string, Call] = ['revoke of an unknown id', revokeTwo];
      for (const [verb, call] of [...READS, ...VERBS, unknown]) {
        expect([verb, (await refusalOf(call(store))).code]).toEqual([verb, 'store_unavailable']);
      }
    });

    it('rejects once its server has become a replica, even on an open connection', async () => {
      const server = await ownServer();
      const admin = ioredis(server.url);
      const { tokens } = setUp({ store: openPlain(await connectTo(server.url)) });
      const { value } = await tokens.issue({ account: 'ada', scopes: [SCOPE] });
      const verify = () => tokens.verify(value, { scope: SCOPE });
      expect((await verify()).ok).toBe(true);

      await admin.replicaof('127.0.0.1', 1);
      expect(await codeOf(verify)).toBe('store_unavailable');
      await admin.replicaof('NO', 'ONE');
      expect((await verify()).ok).toBe(true);
    });
  },
);

describe.skipIf(!isInstalled('redis'))('a Redis replica that has not received a revocation', () => {
  /** A token that was revoked while the replica was disconnected, and a service on that replica. */
  async function setUpBehind(overReplica: (url: string) => Redis) {
    const { primary, replica } = await ownPair();
    const admin = ioredis(primary.url);
    const { tokens, clock } = setUp({ store: openPlain(admin) });
    const { id, value } = await tokens.issue({ account: 'ada', scopes: [SCOPE] });
    await replicated(admin);
    await ioredis(replica.url).replicaof('127.0.0.1', 1);
    await tokens.revoke('ada', id);
    const behind = setUp({ store: openPlain(overReplica(replica.url)), clock, keys: [K1] });
    return () => behind.tokens.verify(value, { scope: SCOPE }, { fresh: true });
  }

  it('makes verify reject instead of accepting the token', async () => {
    const { code, details } = await refusalOf(await setUpBehind(ioredis));
    expect([code, details]).toEqual(['store_unavailable', { reason: 'standby' }]);
  });

  it('shows the token as active to a store without the check (the control)', async () => {
    const verify = await setUpBehind((url) => {
      const client = ioredis(url);
      const { sha } = READ;
      return intercepted(client, async (_, [name = '', , key = '']) =>
        name === sha ? [await client.get(key)] : client.get(name),
      );
    });

    expect((await verify()).ok).toBe(true);
  });
});

describe.skipIf(clusterUrl === undefined)('a replica in a Redis Cluster', () => {
  it('is refused even over a client that reads from replicas', async () => {
    const [first = ''] = clusterUrl?.slice('redis+cluster://'.length).split(',') ?? [];
    const { slot } = shardOf(one.id);
    const admin = ioredis(`redis://${first}`);
    const [host, port] = await vi.waitFor(async () => {
      const ranges = await admin.cluster('SLOTS');
      const [, , , replica] = ranges.find(([from, to]) => from <= slot && slot <= to) ?? [];
      if (replica === undefined) throw new Error('no replica is known yet');
      return replica;
    }, WITHIN);
    const client = ioredis(`redis://${host}:${port}`, { readOnly: true });

    expect(await client.get(new KeySpace('tokenwright').record(one.id))).toBeNull();
    expect(await codeOf(openPlain(client).find([one.id]))).toBe('store_unavailable');
  });
});

describe.skipIf(!isInstalled('redis')).each(CLIENTS)(
  'a Redis primary that refuses writes, over %s',
  (_, connectTo) => {
    it.each<[string, (admin: Redis) => Promise<unknown>]>([
      ['NOREPLICAS', (admin) => admin.config('SET', 'min-replicas-to-write', 1)],
      ['MISCONF', failToSave],
    ])('still answers reads: %s', async (error, stopWrites) => {
      const server = await ownServer({ 'enable-protected-configs': 'yes' });
      const admin = ioredis(server.url);
      const store = openPlain(await connectTo(server.url));
      await store.insert(one);
      await stopWrites(admin);
      await expect(admin.set('more', 'x')).rejects.toThrow(error);

      for (const [verb, call] of READS) {
        const found = ((await call(store)) as unknown[]).filter(Boolean);
        expect([verb, found]).toEqual([verb, verb.endsWith('unknown id') ? [] : [one]]);
      }
      expect(await codeOf(store.insert(two))).toBe('store_unavailable');
    });
  },
);

/** Gives a server a folder to which it cannot write. */
async function failToSave(admin: Redis): Promise<void> {
  await admin.config('SET', 'dir', '/proc');
  await admin.config('SET', 'save', '100000 100000');
  await admin.bgsave().catch(() => {});
  await vi.waitFor(async () => {
    expect(await admin.info('persistence')).toContain('rdb_last_bgsave_status:err');
  }, WITHIN);
}
