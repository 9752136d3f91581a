import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { TokenEvent } from '../../src/events.ts';
import type { UpkeepOptions } from '../../src/inputs/types.ts';
import type { TokenStore } from '../../src/ports/token-store.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import type { TokenId } from '../../src/token/record.ts';
import { UPKEEP_BATCH, UPKEEP_PAUSE_MS } from '../../src/verbs/upkeep.ts';
import { RecordingLeases } from '../limits/support.ts';
import { newRecord, newRequest, REQUEST_BOUNDS } from '../stores/support.ts';
import { allOf, DatedStore, K1, refusalOf, SCOPE, setUp } from '../support.ts';
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

  it('removes all requests that ended an hour ago, in small batches', async () => {
    const store = new MemoryTokenStore({ clock: { now: () => new Date(8.64e15) } });
    const { tokens, clock } = setUp({ store });
    const now = clock.now().getTime();
    const ends = [HOUR_MS + 1, HOUR_MS].map((ms) => new Date(now - ms));
    for (const [kept, expiresAt] of ends.entries()) {
      for (let seed = 0; seed < 2 * UPKEEP_BATCH; seed += 1) {
        const request = newRequest(2 * UPKEEP_BATCH * kept + seed, { expiresAt });
        await store.requests.insert(request, REQUEST_BOUNDS);
      }
    }
    const purge = vi.spyOn(store.requests, 'purge');
    tokens.upkeep();
    await passTime(FIRST_MS);
    expect(purge.mock.calls[0]).toEqual([new Date(clock.now().getTime() - HOUR_MS), UPKEEP_BATCH]);
    for (let batch = 0; batch < 3; batch += 1) await passTime(UPKEEP_PAUSE_MS);

    const left = Array.from({ length: 4 * UPKEEP_BATCH }, (_, seed) => newRequest(seed));
    const found = await Promise.all(left.map(({ id }) => store.requests.find({ id })));
    expect(found.map((request) => request !== undefined)).toEqual(
      left.map((_, seed) => seed >= 2 * UPKEEP_BATCH),
    );
    await tokens.close();
  });

  it.each([
    ['cannot remove requests', () => Promise.reject(new Error('no table'))],
    ['answers with no count', async () => 'many' as never],
  ])('goes on, and reports nothing, if the store %s', async (_, answer) => {
    const store = new MemoryTokenStore();
    const purge = vi.spyOn(store.requests, 'purge').mockImplementation(answer);
    const events: TokenEvent[] = [];
    const { tokens } = setUp({ store, onEvent: (event) => events.push(event) });
    tokens.upkeep();
    await passTime(FIRST_MS);

    expect(purge).toHaveBeenCalledTimes(1);
    expect(events).toEqual([]);
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

  describe.each([1, 2])('of a process whose clock is a year fast, with %i tokens', (count) => {
    const keys = [K1];
    const YEAR_MS = 365 * DAY * 1000;

    async function setUpFast(store: TokenStore = new DatedStore(), start?: Date) {
      const right = setUp({ store, ...(start && { clock: manualClock(start) }) });
      const ids: string[] = [];
      for (let index = 0; index < count; index += 1) {
        ids.push(
          (await right.tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: 10 * DAY })).id,
        );
      }
      const events: TokenEvent[] = [];
      let leadMs = YEAR_MS;
      const clock = { now: () => new Date(right.clock.now().getTime() + leadMs) };
      const onEvent = (event: TokenEvent) => void events.push(event);
      const usage = new MemoryTokenStore().usage;
      const leases = new RecordingLeases();
      await usage.add([{ id: ids[0] as TokenId, refusals: 1 }]);
      const fast = new TokenService({
        store: right.store,
        usage: { store: usage },
        limits: { store: leases },
        clock,
        keys,
        prefix: 'acme',
        onEvent,
      });
      /** Of the first token. */
      const uses = async () => (await usage.read(ids.slice(0, 1) as TokenId[]))[0]?.refusals;
      const left = async () => {
        const found = await Promise.all(ids.map((id) => right.tokens.get('acme', id)));
        return found.filter(Boolean).length;
      };
      const mend = () => {
        leadMs = 0;
      };
      return { right, fast, left, uses, leases, events, mend };
    }

    it('destroys no token, says so once, and looks again each hour', async () => {
      const { fast, right, left, events } = await setUpFast();
      fast.upkeep({ purgeAfterDays: 1 });
      await passTime(FIRST_MS);
      await passTime(5 * HOUR_MS);
      await fast.close();

      expect(await left()).toBe(count);
      expect(events).toEqual([{ type: 'clock_ahead', at: expect.any(Date) }]);
      expect(right.store.takeCalls()).not.toContain('purge');
    });

    it('destroys no token of an SQLite file', async () => {
      // The store also asks the clock of the machine.
      const store = SqliteTokenStore.open(':memory:');
      const { fast, left, events } = await setUpFast(store, new Date());
      fast.upkeep({ purgeAfterDays: 1 });
      await passTime(FIRST_MS);
      await passTime(5 * HOUR_MS);

      expect(await left()).toBe(count);
      expect(events).toMatchObject([{ type: 'clock_ahead' }]);
      await fast.close();
    });

    it('forgets no count of what was used, in total or for a limit', async () => {
      const { fast, uses, leases } = await setUpFast();
      const purge = vi.spyOn(leases, 'purge');
      fast.upkeep({ purgeAfterDays: 1 });
      await passTime(FIRST_MS);
      await passTime(9 * DAY * 1000);
      await fast.close();

      expect(await uses()).toBe(1);
      expect(purge).not.toHaveBeenCalled();
    });

    it('also if it has issued tokens itself', async () => {
      const { fast, left, events } = await setUpFast();
      fast.upkeep({ purgeAfterDays: 1 });
      await fast.issue({ account: 'acme', scopes: [SCOPE] });
      await passTime(FIRST_MS);
      await passTime(HOUR_MS);
      await fast.close();

      expect(await left()).toBe(count);
      expect(events.map(({ type }) => type)).toEqual(['issued', 'clock_ahead']);
    });

    it('goes on by itself when the clock is right', async () => {
      const { fast, right, left, mend, events } = await setUpFast();
      fast.upkeep({ purgeAfterDays: 1 });
      await passTime(FIRST_MS);
      mend();
      const dead = await right.tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: 1 });
      right.clock.advance(DAY + 2);
      await right.tokens.issue({ account: 'acme', scopes: [SCOPE] });
      right.clock.advance(1);
      await passTime(HOUR_MS);
      await fast.close();

      expect(await left()).toBe(count);
      expect(await right.tokens.get('acme', dead.id)).toBeUndefined();
      expect(events.map(({ type }) => type)).toEqual(['clock_ahead', 'purged']);
    });

    it('prunes nothing of an account either', async () => {
      const { right, left, mend: _ } = await setUpFast();
      const clock = { now: () => new Date(right.clock.now().getTime() + YEAR_MS) };
      const quotas = { endedPerAccount: 1 };
      const { store } = right;
      const fast = new TokenService({ store, clock, keys, prefix: 'acme', quotas });
      for (let index = 0; index < 3; index += 1) {
        await fast.issue({ account: 'acme', scopes: [SCOPE] });
      }
      await fast.close();

      expect(await left()).toBe(count);
      expect(store.takeCalls()).not.toContain('prune');
    });

    it('would lose all of them in a store that knows nothing of the time (the control)', async () => {
      const { fast, left, uses, leases, events } = await setUpFast(new MemoryTokenStore());
      const purge = vi.spyOn(leases, 'purge');
      fast.upkeep({ purgeAfterDays: 1 });
      await passTime(FIRST_MS);
      await fast.close();

      expect(await left()).toBe(0);
      expect(await uses()).toBeUndefined();
      expect(purge).toHaveBeenCalled();
      expect(events).toMatchObject([{ type: 'purged', count }]);
    });
  });

  describe('of counts of usage whose tokens are gone', () => {
    const WEEK_MS = 7 * DAY * 1000;
    const ids = Array.from({ length: 250 }, (_, index) => newRecord(`gone${index}`).id);
    const count = (id: TokenId) => ({ id, refusals: 1 });

    /** A usage store with counts of tokens that are gone and of one that lives, and the upkeep. */
    async function setUpGone() {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
      const usage = new MemoryTokenStore().usage;
      const scan = vi.spyOn(usage, 'scan');
      const setting = setUp({ usage: { store: usage } });
      const live = await setting.tokens.issue({ account: 'acme', scopes: [SCOPE] });
      await usage.add([live.id, ...ids].map(count));
      const left = async () => (await usage.read([live.id, ...ids])).filter(Boolean).length;
      setting.tokens.upkeep();
      return { ...setting, usage, left, live, scan };
    }

    it('removes them within a day, and looks again after a week', async () => {
      const { tokens, usage, left, live, scan } = await setUpGone();
      await passTime(DAY * 1000 + EVERY_MS);
      await passTime(1000);
      expect(await left()).toBe(1);
      expect(await usage.read([live.id])).not.toEqual([undefined]);
      const steps = scan.mock.calls.length;
      await usage.add(ids.slice(0, 3).map(count));
      await passTime(WEEK_MS - DAY * 1000 - 2 * EVERY_MS);
      expect(scan.mock.calls.length).toBe(steps);
      await passTime(DAY * 1000 + 3 * EVERY_MS);

      expect(await left()).toBe(1);
      await tokens.close();
    });

    it('removes none while the token store does not answer, and goes on later', async () => {
      const { tokens, store, left } = await setUpGone();
      store.break('find', () => Promise.reject(new Error('down')));
      await passTime(DAY * 1000 + EVERY_MS);
      expect(await left()).toBe(251);
      store.mend();
      await passTime(EVERY_MS);
      await passTime(1000);

      expect(await left()).toBe(1);
      await tokens.close();
    });
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
