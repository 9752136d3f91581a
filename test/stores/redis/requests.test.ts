import { describe, expect, it } from 'vitest';
import type { RedisStoreEvent } from '../../../src/stores/redis/index.ts';
import { isInstalled } from '../../servers.ts';
import { codeOf, refusalOf } from '../../support.ts';
import { newRequest, REQUEST_BOUNDS } from '../support.ts';
import { fill, ioredis, openOver, ownPair, ownServer } from './support.ts';

const { id, userCode } = newRequest(1);

describe.skipIf(!isInstalled('redis'))('requests in a Redis store', () => {
  it('waits for replicas, and rejects without them', async () => {
    const { primary, replica } = await ownPair();
    const events: RedisStoreEvent[] = [];
    const onEvent = (event: RedisStoreEvent) => events.push(event);
    const options = { replicas: 1, keyPrefix: 'acme', onEvent };
    const { requests } = openOver(ioredis(primary.url), options);
    await requests.insert(newRequest(1), REQUEST_BOUNDS);
    expect(await requests.replace(newRequest(1, { version: 2 }))).toBe(true);
    const [key = ''] = await ioredis(replica.url).keys('acme:*requests');
    expect(await ioredis(replica.url).hget(key, id)).toMatch(/^1 2 /);
    expect(events).toEqual([]);

    await replica.stop();
    const replacing = requests.replace(newRequest(1, { version: 3 }));
    expect(await codeOf(replacing)).toBe('durability_unconfirmed');
    expect(await codeOf(requests.insert(newRequest(2), REQUEST_BOUNDS))).toBe(
      'durability_unconfirmed',
    );
    expect(events).toMatchObject(Array(2).fill({ type: 'durability_unconfirmed', needed: 1 }));
    // They are made.
    expect(await requests.find({ id })).toMatchObject({ version: 3 });
    // One that changes nothing need not wait.
    expect(await requests.replace(newRequest(1, { version: 3 }))).toBe(false);
    expect(await codeOf(requests.insert(newRequest(1), REQUEST_BOUNDS))).toBe('code_taken');
  });

  it('reads nothing from a replica', async () => {
    const { primary, replica } = await ownPair();
    const { requests } = openOver(ioredis(primary.url), { replicas: 1, keyPrefix: 'acme' });
    await requests.insert(newRequest(1), REQUEST_BOUNDS);
    const late = openOver(ioredis(replica.url), { keyPrefix: 'acme' }).requests;

    for (const key of [{ id }, { userCode }]) {
      expect(await refusalOf(late.find(key))).toMatchObject({
        code: 'store_unavailable',
        details: { reason: 'standby' },
      });
    }
  });

  it.each([
    ['has another form', (text: string) => `x${text}`],
    ['has the layout of a later version', (text: string) => text.replace(/^1/, '2')],
    ['has a member that is not known', (text: string) => text.replace('{', '{"later":1,')],
    ['has no body', (text: string) => text.replace(/\n.*/, '')],
  ])('rejects with store_corrupt if a request %s', async (_, change) => {
    const client = ioredis((await ownServer()).url);
    const { requests } = openOver(client, { keyPrefix: 'acme' });
    await requests.insert(newRequest(1), REQUEST_BOUNDS);
    const [key = ''] = await client.keys('acme:*requests');
    await client.hset(key, id, change(String(await client.hget(key, id))));

    for (const each of [{ id }, { userCode }]) {
      expect(await codeOf(requests.find(each))).toBe('store_corrupt');
    }
  });

  it('replaces no request that it cannot read', async () => {
    const client = ioredis((await ownServer()).url);
    const { requests } = openOver(client, { keyPrefix: 'acme' });
    await requests.insert(newRequest(1), REQUEST_BOUNDS);
    const [key = ''] = await client.keys('acme:*requests');
    await client.hset(key, id, 'garbage');

    const replacing = requests.replace(newRequest(1, { version: 2 }));
    expect(await codeOf(replacing)).toBe('store_corrupt');
  });

  it('leaves no key behind after a purge', async () => {
    const client = ioredis((await ownServer()).url);
    const { requests } = openOver(client, { keyPrefix: 'acme' });
    const expiresAt = new Date('2001-01-01');
    for (const seed of [1, 2, 3]) {
      const elevates = seed === 3 ? undefined : [{ id: newRequest(9).id as never, version: 1 }];
      await requests.insert(newRequest(seed, { elevates }), REQUEST_BOUNDS);
      await requests.replace(newRequest(seed, { elevates, version: 2, expiresAt }));
    }
    expect(await client.keys('acme:*')).toHaveLength(4);
    expect(await requests.purge(new Date(), 10)).toBe(3);
    expect(await client.keys('acme:*')).toEqual([]);
  });

  it('purges more than one script may remove', async () => {
    const client = ioredis((await ownServer()).url);
    const { requests } = openOver(client, { keyPrefix: 'acme' });
    await requests.insert(newRequest(1), REQUEST_BOUNDS);
    const [key = ''] = await client.keys('acme:*request-ends');
    const ends = Array.from({ length: 2500 }, (_, index) => [index, `x${index}`]).flat();
    await client.zadd(key, ...ends);

    expect(await requests.purge(new Date(), 2200)).toBe(2200);
    expect(await requests.purge(new Date(), 2200)).toBe(300);
  });

  it('opens none while the server has no free memory, and still purges', async () => {
    const client = ioredis((await ownServer()).url);
    const { requests } = openOver(client);
    const expiresAt = new Date('2001-01-01');
    await requests.insert(newRequest(1, { expiresAt }), REQUEST_BOUNDS);
    await fill(client);
    expect(await refusalOf(requests.insert(newRequest(2), REQUEST_BOUNDS))).toMatchObject({
      code: 'store_unavailable',
      details: { reason: 'full' },
    });
    expect(await requests.purge(new Date(), 10)).toBe(1);
  });
});
