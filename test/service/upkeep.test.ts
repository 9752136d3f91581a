import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { UPKEEP_BATCH, UPKEEP_PAUSE_MS } from '../../src/bounds.ts';
import type { TokenEvent } from '../../src/events.ts';
import type { UpkeepOptions } from '../../src/input.ts';
import { TokenService } from '../../src/service.ts';
import { allOf, K1, refusalOf, SCOPE, setUp } from '../support.ts';
import { turns } from '../usage/support.ts';

const DAY = 86_400;
const FIRST_MS = 300_000;
const EVERY_MS = 21_600_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets time pass for timers, and everything happen that they bring about. */
async function pass(ms: number): Promise<void> {
  await turns();
  vi.advanceTimersByTime(ms);
  await turns();
}

/** A service with so many tokens that have ended 91 days ago, and one that has not. */
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
  it('removes what ended long ago, soon after its start and then now and then', async () => {
    const { tokens, live, left, events, clock, purges } = await setUpEnded(3);
    tokens.upkeep();
    expect(purges()).toEqual([]);
    await pass(FIRST_MS);
    expect(await left()).toBe(1);
    expect(await tokens.get('acme', live.id)).toBeDefined();
    expect(events).toEqual([{ type: 'purged', count: 3, at: clock.now() }]);
    expect(purges().map(({ args }) => args)).toEqual([
      [new Date(clock.now().getTime() - 90 * DAY * 1000), UPKEEP_BATCH],
    ]);
    await pass(EVERY_MS * 0.8 - 1);
    expect(purges()).toHaveLength(1);
    await pass(EVERY_MS * 0.2 + 1);

    expect(purges()).toHaveLength(2);
  });

  it('leaves what ended less long ago than purgeAfterDays', async () => {
    const { tokens, left, clock } = await setUpEnded(2);
    tokens.upkeep({ purgeAfterDays: 91, everyMs: 1000 });
    await pass(1000);
    // They lived for a minute.
    expect(await left()).toBe(3);
    clock.advance(61);
    await pass(1000);

    expect(await left()).toBe(1);
  });

  it('works in small batches, with a pause after each', async () => {
    const { tokens, left, events, purges } = await setUpEnded(2 * UPKEEP_BATCH + 1);
    tokens.upkeep();
    await pass(FIRST_MS);
    expect(purges()).toHaveLength(1);
    await pass(UPKEEP_PAUSE_MS - 1);
    expect(purges()).toHaveLength(1);
    await pass(1);
    expect(purges()).toHaveLength(2);
    await pass(UPKEEP_PAUSE_MS);

    expect(await left()).toBe(1);
    expect(events).toMatchObject([{ type: 'purged', count: 2 * UPKEEP_BATCH + 1 }]);
    await pass(UPKEEP_PAUSE_MS);
    expect(purges()).toHaveLength(3);
  });

  it('is started anew by each process, and all of them may work at once', async () => {
    const { tokens, clock, store, left } = await setUpEnded(UPKEEP_BATCH + 1);
    const other = new TokenService({ store, clock, keys: [K1], prefix: 'acme' });
    for (const each of [tokens, other]) each.upkeep();
    await pass(FIRST_MS);
    await pass(UPKEEP_PAUSE_MS);

    expect(await left()).toBe(1);
  });

  it('outlives a failure of the store, which is an event', async () => {
    const { tokens, left, events, store } = await setUpEnded(2);
    tokens.upkeep({ everyMs: 60_000 });
    store.break('purge', () => Promise.reject(new Error('down')));
    await pass(60_000);
    expect(events).toMatchObject([{ type: 'store_trouble', code: 'store_unavailable' }]);
    store.mend();
    await pass(60_000);

    expect(await left()).toBe(1);
  });

  it('outlives a clock that fails', async () => {
    const { tokens, left, clock } = await setUpEnded(1);
    const now = vi.spyOn(clock, 'now').mockImplementation(() => {
      throw new Error('no time');
    });
    tokens.upkeep({ everyMs: 60_000 });
    await pass(60_000);
    now.mockRestore();
    expect(await left()).toBe(2);
    await pass(60_000);

    expect(await left()).toBe(1);
  });

  it('ends when it is stopped before its first round', async () => {
    const { tokens, purges } = await setUpEnded(1);
    await tokens.upkeep().stop();
    await pass(FIRST_MS + EVERY_MS);

    expect(purges()).toEqual([]);
  });

  it('ends between two batches when it is stopped, and does not wait for the pause', async () => {
    const { tokens, left, events } = await setUpEnded(2 * UPKEEP_BATCH + 1);
    const upkeep = tokens.upkeep();
    await pass(FIRST_MS);
    await upkeep.stop();
    await upkeep.stop();

    expect(await left()).toBe(UPKEEP_BATCH + 2);
    expect(events).toMatchObject([{ type: 'purged', count: UPKEEP_BATCH }]);
    await pass(EVERY_MS);
    expect(await left()).toBe(UPKEEP_BATCH + 2);
  });

  it('waits for a batch that is under way when it is stopped', async () => {
    const { tokens, store } = await setUpEnded(1);
    const { promise, resolve } = Promise.withResolvers<number>();
    store.break('purge', () => promise);
    const upkeep = tokens.upkeep();
    await pass(FIRST_MS);
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
    await pass(FIRST_MS + EVERY_MS);

    expect(purges()).toEqual([]);
  });

  it.each<[UpkeepOptions, string]>([
    [{ purgeAfterDays: 0 }, 'purgeAfterDays must be a whole number from 1 to 3650'],
    [{ purgeAfterDays: 3651 }, 'purgeAfterDays'],
    [{ everyMs: 999 }, 'everyMs must be a whole number from 1000 to 604800000'],
    [{ everyMs: 604_800_001 }, 'everyMs'],
    [{ every: 1 } as UpkeepOptions, 'every'],
  ])('refuses %j', async (options, message) => {
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
