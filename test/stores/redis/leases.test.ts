import { describe, expect, it } from 'vitest';
import type { LeaseStore, LeaseWant } from '../../../src/ports/lease-store.ts';
import type { RedisClient, RedisStoreOptions } from '../../../src/stores/redis/index.ts';
import { isInstalled } from '../../servers.ts';
import { refusalOf } from '../../support.ts';
import {
  fill,
  ioredis,
  newPrefix,
  openOver,
  ownPair,
  ownServer,
  SHARED_CLIENTS,
} from './support.ts';

const FAR = new Date('2100-01-01T00:00:00.000Z');

function openLeases(client: RedisClient, options?: RedisStoreOptions): LeaseStore {
  return openOver(client, options).leases;
}

function want(fields: Partial<LeaseWant> = {}): LeaseWant {
  return { key: 'one/uses', window: 0, limit: 10, want: 1, until: FAR, ...fields };
}

describe.each(SHARED_CLIENTS)('leases of a Redis store over $name', ({ isMissing, connect }) => {
  it.skipIf(isMissing)('never grants more than the limit across several stores', async () => {
    const keyPrefix = newPrefix();
    const stores = await Promise.all(
      Array.from({ length: 4 }, async () => openLeases(await connect(), { keyPrefix })),
    );
    const takes = Array.from({ length: 200 }, (_, index) =>
      stores[index % 4]?.take([want({ want: 3, limit: 100 }), want({ key: `own/${index}` })]),
    );
    const granted = await Promise.all(takes);

    expect(granted.reduce((sum, answer) => sum + (answer?.[0] ?? 0), 0)).toBe(100);
    expect(granted.map((answer) => answer?.[1])).toEqual(granted.map(() => 1));
  });
});

describe.skipIf(!isInstalled('redis'))('leases of a Redis store', () => {
  it('lets counts expire a minute after their window', async () => {
    const client = ioredis((await ownServer()).url);
    const store = openLeases(client, { keyPrefix: 'acme' });
    const until = Date.now() + 30_000;
    await store.take([want({ window: 7, until: new Date(until) }), want({ key: 'two' })]);
    const [short, long] = await Promise.all(
      ['lease:7:one/uses', 'lease:0:two'].map(async (name) => {
        const [key = ''] = await client.keys(`acme:*${name}`);
        return client.call('PEXPIRETIME', key);
      }),
    );
    expect([short, long]).toEqual([until + 60_000, FAR.getTime() + 60_000]);

    await store.giveBack([{ key: 'one/uses', window: 7, amount: 1 }]);
    const [key = ''] = await client.keys('acme:*lease:7:one/uses');
    expect(await client.call('PEXPIRETIME', key)).toBe(until + 60_000);
    expect(await store.purge(FAR, 10)).toBe(0);
  });

  it('uses the clock of the server', async () => {
    const store = openLeases(ioredis((await ownServer()).url));
    const at = (ms: number) => want({ key: `at${ms}`, until: new Date(Date.now() + ms) });
    expect(await store.take([at(-2000), at(-60_000), at(30_000)])).toEqual([0, 0, 1]);
  });

  it('rejects with store_corrupt if a count is malformed', async () => {
    const client = ioredis((await ownServer()).url);
    const store = openLeases(client, { keyPrefix: 'acme' });
    await store.take([want()]);
    const [key = ''] = await client.keys('acme:*');
    for (const garbage of ['many', '']) {
      await client.set(key, garbage);
      expect((await refusalOf(store.take([want()]))).code).toBe('store_corrupt');
    }
  });

  it('grants nothing while the server has no free memory', async () => {
    const client = ioredis((await ownServer()).url);
    const store = openLeases(client);
    expect(await store.take([want()])).toEqual([1]);
    await fill(client);
    expect((await refusalOf(store.take([want()]))).code).toBe('store_unavailable');
  });

  it('waits for replicas, and rejects without them', async () => {
    const { primary, replica } = await ownPair();
    const store = openLeases(ioredis(primary.url), { replicas: 1, keyPrefix: 'acme' });
    expect(await store.take([want({ want: 4 })])).toEqual([4]);
    const [key = ''] = await ioredis(replica.url).keys('acme:*');
    expect(await ioredis(replica.url).get(key)).toBe('4');

    await replica.stop();
    const { code, details } = await refusalOf(store.take([want()]));
    expect(code).toBe('store_unavailable');
    expect(details).toEqual({ reason: 'unreachable', store: 'leases' });
  });
});
