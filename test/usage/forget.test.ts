import { describe, expect, it } from 'vitest';
import type { PurgeQuery } from '../../src/ports/token-store.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { codeOf, OTHER_SCOPE, SCOPE } from '../support.ts';
import { setUpUsage, type UsageSetting, verifyTimes } from './support.ts';

const DAY = 86_400;

/** A token that ended 91 days ago and a live one, both with counts in the usage store. */
async function setUpEnded(options: Parameters<typeof setUpUsage>[0] = {}) {
  const setting = await setUpUsage(options);
  const { tokens, clock, usage, token } = setting;
  const ended = await tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: DAY });
  await verifyTimes({ tokens, token: ended }, 1);
  const lastUsedAt = clock.now();
  for (const { id } of [ended, token]) {
    await usage.inner.add([
      { id, scope: SCOPE, uses: 1, lastUsedAt },
      { id, refusals: 1 },
    ]);
  }
  clock.advance(92 * DAY);
  return { ...setting, ended };
}

async function purge({ tokens, clock }: UsageSetting): Promise<number> {
  return tokens.purge({ before: new Date(clock.now().getTime() - 90 * DAY * 1000) });
}

describe('purge', () => {
  it('removes the usage of the tokens that it removes, and of no other token', async () => {
    const setting = await setUpEnded();
    const { usage, ended, token } = setting;
    expect(await purge(setting)).toBe(1);
    const [gone, kept] = await usage.inner.read([ended.id, token.id]);

    expect(gone).toBeUndefined();
    expect(kept).toMatchObject({ refusals: 1 });
    expect(usage.calls.filter(({ method }) => method === 'forget')).toEqual([
      { method: 'forget', args: [[ended.id, `${ended.id}+`]] },
    ]);
  });

  it('also removes counts that are not written yet', async () => {
    const setting = await setUpEnded();
    const { tokens, usage, ended } = setting;
    await tokens.verify(ended.value, { scope: OTHER_SCOPE });
    await purge(setting);
    await tokens.close();

    expect(await usage.inner.read([ended.id])).toEqual([undefined]);
  });

  it('would leave the usage in place if it did not call forget (the control)', async () => {
    const { usage, ended, store, clock } = await setUpEnded();
    await store.purge({ now: clock.now(), minAgeMs: 0, limit: 10 });

    expect(await usage.inner.read([ended.id])).toMatchObject([{ refusals: 1 }]);
  });

  it('still removes records while the usage store is down', async () => {
    const setting = await setUpEnded();
    const { usage, events } = setting;
    events.length = 0;
    usage.break(() => Promise.reject(new Error('down')));

    expect(await purge(setting)).toBe(1);
    expect(events).toMatchObject([
      { type: 'store_trouble', store: 'usage' },
      { type: 'purged', count: 1 },
    ]);
  });

  it('accepts a store that returns only a count, and leaves the usage in place', async () => {
    class Counting extends MemoryTokenStore {
      override async purge(query: PurgeQuery): Promise<never> {
        return (await super.purge(query)).count as never;
      }
    }
    const setting = await setUpEnded({ store: new Counting() });
    const { usage, ended } = setting;

    expect(await purge(setting)).toBe(1);
    expect(usage.count('forget')).toBe(0);
    expect(await usage.inner.read([ended.id])).not.toEqual([undefined]);
  });

  it.each<[string, unknown]>([
    ['no ids', { count: 1 }],
    ['no count', { ids: [] }],
    ['a count below 0', { count: -1, ids: [] }],
    ['a string', '1'],
    ['null', null],
  ])('fails with store_corrupt if the store returns %s', async (_, answer) => {
    const setting = await setUpEnded();
    setting.store.break('purge', async () => answer);

    expect(await codeOf(purge(setting))).toBe('store_corrupt');
  });

  it('passes only valid ids on to the usage store', async () => {
    const setting = await setUpEnded();
    const { usage, ended, store } = setting;
    store.break('purge', async () => ({ count: 2, ids: ['garbage', ended.id] }));
    await purge(setting);

    expect(usage.calls.at(-1)).toEqual({ method: 'forget', args: [[ended.id, `${ended.id}+`]] });
  });
});
