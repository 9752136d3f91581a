import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { UPKEEP_BATCH, UPKEEP_PAUSE_MS } from '../../src/bounds.ts';
import type { TokenEvent } from '../../src/events.ts';
import type { UpkeepOptions } from '../../src/input.ts';
import { TokenService } from '../../src/service.ts';
import { RecordingLeases } from '../limits/support.ts';
import { allOf, K1, refusalOf, SCOPE, setUp } from '../support.ts';
import { passTime, turns } from '../usage/support.ts';

const DAY = 86_400;
const HOUR_MS = 3_600_000;
const FIRST_MS = 300_000;
const EVERY_MS = 21_600_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A service with `count` tokens that ended a minute less than 91 days ago, and one live token. */
async function setUpEnded(count: number) {
  const events: TokenEvent[] = [];
  const setting = setUp({ onEvent: (event) => events.push(event) });
  const { tokens, clock, store } = setting;
  for (let index = 0; index < count; index += 1) {
    await tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: 60 });
  }
  const live = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
  clock.advance(91 * DAY);
  store.takeCalls();
  events.length = 0;
  const left = async () => (await allOf(tokens.scan())).length;
  const purges = () => store.calls.filter(({ method }) => method === 'purge');
  return { ...setting, events, live, left, purges };
}

describe('upkeep', () => {
  it('removes tokens that ended long ago, shortly after its start and then at intervals', async () => {
    const { tokens, live, left, events, clock, purges } = await setUpEnded(3);
    tokens.upkeep();
    expect(purges()).toEqual([]);
    await passTime(FIRST_MS);
    expect(await left()).toBe(1);
    expect(await tokens.get('acme', live.id)).toBeDefined();
    expect(events).toEqual([{ type: 'purged', count: 3, at: clock.now() }]);
    expect(purges().map(({ args }) => args)).toEqual([
      [{ now: clock.now(), minAgeMs: 90 * DAY * 1000, limit: UPKEEP_BATCH }],
    ]);
    await passTime(EVERY_MS * 0.8 - 1);
    expect(purges()).toHaveLength(1);
    await passTime(EVERY_MS * 0.2 + 1);

    expect(purges()).toHaveLength(2);
  });

  it('removes all counts of uses that ended an hour ago, in small batches', async () => {
    const leases = new RecordingLeases();
    let ended = 2 * UPKEEP_BATCH + 1;
    const purge = vi.spyOn(leases, 'purge').mockImplementation(async (_, limit) => {
      const count = Math.min(ended, limit);
      ended -= count;
      return count;
    });
    const { tokens, clock } = setUp({ limits: { store: leases } });
    tokens.upkeep();
    await passTime(FIRST_MS);
    expect(purge.mock.calls).toEqual([[new Date(clock.now().getTime() - HOUR_MS), UPKEEP_BATCH]]);
    await passTime(UPKEEP_PAUSE_MS);
    await passTime(UPKEEP_PAUSE_MS);

    expect(ended).toBe(0);
    expect(purge).toHaveBeenCalledTimes(3);
    await tokens.close();
  });

  it.each([
    ['cannot remove them', () => Promise.reject(new Error('down'))],
    ['answers with no count', async () => 'many' as never],
  ])('ends its round if the lease store %s', async (_, answer) => {
    const leases = new RecordingLeases();
    const purge = vi.spyOn(leases, 'purge').mockImplementation(answer);
    const events: TokenEvent[] = [];
    const { tokens } = setUp({
      limits: { store: leases },
      onEvent: (event) => events.push(event),
    });
    tokens.upkeep();
    await passTime(FIRST_MS);

    expect(purge).toHaveBeenCalledTimes(1);
    expect(events).toMatchObject([{ type: 'store_trouble', store: 'leases' }]);
    await tokens.close();
  });

  it('leaves tokens that ended less than purgeAfterDays ago', async () => {
    const { tokens, left, clock } = await setUpEnded(2);
    tokens.upkeep({ purgeAfterDays: 91, everyMs: 1000 });
    await passTime(1000);
    // The tokens lived for a minute, so they ended less than 91 days ago.
    expect(await left()).toBe(3);
    clock.advance(61);
    await passTime(1000);

    expect(await left()).toBe(1);
  });

  it('works in small batches, with a pause after each', async () => {
    const { tokens, left, events, purges } = await setUpEnded(2 * UPKEEP_BATCH + 1);
    tokens.upkeep();
    await passTime(FIRST_MS);
    expect(purges()).toHaveLength(1);
    await passTime(UPKEEP_PAUSE_MS - 1);
    expect(purges()).toHaveLength(1);
    await passTime(1);
    expect(purges()).toHaveLength(2);
    await passTime(UPKEEP_PAUSE_MS);

    expect(await left()).toBe(1);
    expect(events).toMatchObject([{ type: 'purged', count: 2 * UPKEEP_BATCH + 1 }]);
    await passTime(UPKEEP_PAUSE_MS);
    expect(purges()).toHaveLength(3);
  });

  it('can run in several services concurrently', async () => {
    const { tokens, clock, store, left } = await setUpEnded(UPKEEP_BATCH + 1);
    const other = new TokenService({ store, clock, keys: [K1], prefix: 'acme' });
    for (const each of [tokens, other]) each.upkeep();
    await passTime(FIRST_MS);
    await passTime(UPKEEP_PAUSE_MS);

    expect(await left()).toBe(1);
  });

  it('continues after a failure of the store, and emits store_trouble', async () => {
    const { tokens, left, events, store } = await setUpEnded(2);
    tokens.upkeep({ everyMs: 60_000 });
    store.break('purge', () => Promise.reject(new Error('down')));
    await passTime(60_000);
    expect(events).toMatchObject([{ type: 'store_trouble', code: 'store_unavailable' }]);
    store.mend();
    await passTime(60_000);

    expect(await left()).toBe(1);
  });

  it('continues after a failure of the clock', async () => {
    const { tokens, left, clock } = await setUpEnded(1);
    const now = vi.spyOn(clock, 'now').mockImplementation(() => {
      throw new Error('no time');
    });
    tokens.upkeep({ everyMs: 60_000 });
    await passTime(60_000);
    now.mockRestore();
    expect(await left()).toBe(2);
    await passTime(60_000);

    expect(await left()).toBe(1);
  });

  it('does nothing if it is stopped before its first round', async () => {
    const { tokens, purges } = await setUpEnded(1);
    await tokens.upkeep().stop();
    await passTime(FIRST_MS + EVERY_MS);

    expect(purges()).toEqual([]);
  });

  it('ends between two batches when it is stopped, without waiting for the pause', async () => {
    const { tokens, left, events } = await setUpEnded(2 * UPKEEP_BATCH + 1);
    const upkeep = tokens.upkeep();
    await passTime(FIRST_MS);
    await upkeep.stop();
    await upkeep.stop();

    expect(await left()).toBe(UPKEEP_BATCH + 2);
    expect(events).toMatchObject([{ type: 'purged', count: UPKEEP_BATCH }]);
    await passTime(EVERY_MS);
    expect(await left()).toBe(UPKEEP_BATCH + 2);
  });

  it('waits for a running batch when it is stopped', async () => {
    const { tokens, store } = await setUpEnded(1);
    const { promise, resolve } = Promise.withResolvers<number>();
    store.break('purge', () => promise);
    const upkeep = tokens.upkeep();
    await passTime(FIRST_MS);
    let isStopped = false;
    const stopping = upkeep.stop().then(() => {
      isStopped = true;
    });
    await turns();
    expect(isStopped).toBe(false);
    resolve(0);
    await stopping;

    expect(isStopped).toBe(true);
  });

  it('ends when the service is closed', async () => {
    const { tokens, purges } = await setUpEnded(1);
    tokens.upkeep();
    await tokens.close();
    await passTime(FIRST_MS + EVERY_MS);

    expect(purges()).toEqual([]);
  });

  it.each<[UpkeepOptions, string]>([
    [{ purgeAfterDays: 0 }, 'purgeAfterDays must be a whole number from 1 to 3650'],
    [{ purgeAfterDays: 3651 }, 'purgeAfterDays'],
    [{ everyMs: 999 }, 'everyMs must be a whole number from 1000 to 604800000'],
    [{ everyMs: 604_800_001 }, 'everyMs'],
    [{ every: 1 } as UpkeepOptions, 'every'],
  ])('refuses the options %j', async (options, message) => {
    const { code, message: said } = await refusalOf(() => setUp().tokens.upkeep(options));

    expect(code).toBe('invalid_request');
    expect(said).toContain(message);
  });

  it('does not keep a process alive', () => {
    const program = `
      import { generateKey, MemoryTokenStore, TokenService } from './src/index.ts';
      const store = new MemoryTokenStore();
      new TokenService({ store, keys: [generateKey()], prefix: 'acme' }).upkeep();
      console.log('started');
    `;
    const args = ['--input-type=module-typescript', '-e', program];
    const options = { cwd: join(import.meta.dirname, '../..'), encoding: 'utf8' as const };
    const { status, stdout } = spawnSync(process.execPath, args, { ...options, timeout: 60_000 });

    expect([status, stdout]).toEqual([0, 'started\n']);
  });
});
