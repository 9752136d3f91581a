import fc from 'fast-check';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { CheckedLeaseStore } from '../../src/limits/checked-lease-store.ts';
import { LEASE_IDLE_MS, Leases } from '../../src/limits/leases.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import type { TokenLimits, TokenRecord } from '../../src/token/record.ts';
import { runs } from '../laws.ts';
import { CREATED, newRecord } from '../stores/support.ts';
import { QUIET } from '../support.ts';
import { RecordingLeases } from './support.ts';

const START = CREATED.getTime();

function recordWith(limits: TokenLimits, version = 1): TokenRecord {
  return newRecord('lease', { limits, version });
}

/** One process, on a store and a clock that several can share. */
function nodeOn(inner: RecordingLeases, time: { now: number }, deadlineMs = 1000): Leases {
  const store = new CheckedLeaseStore(inner, { deadlineMs, health: QUIET, part: 'leases' });
  return new Leases({ store, deadlineMs, now: () => time.now });
}

function setUp() {
  const store = new RecordingLeases();
  const time = { now: START };
  return { store, time, leases: nodeOn(store, time) };
}

/** Tries to spend uses one after the other, `everyMs` apart. Resolves to how many it got. */
async function spend(
  { leases, time }: Pick<ReturnType<typeof setUp>, 'leases' | 'time'>,
  record: TokenRecord,
  { tries, everyMs = 0 }: { readonly tries: number; readonly everyMs?: number },
): Promise<number> {
  let spent = 0;
  for (let i = 0; i < tries; i++) {
    const now = leases.spend([record], time.now) ?? (await leases.spendLater([record]));
    spent += Number(now === true);
    time.now += everyMs;
    // Lets leases arrive that are fetched in the background.
    await new Promise(setImmediate);
  }
  return spent;
}

function wantsOf({ takes }: RecordingLeases): number[] {
  return takes.flat().map(({ want }) => want);
}

describe('a lease', () => {
  it('starts at one use and doubles while it is used up quickly, up to a sixteenth of the limit', async () => {
    const setting = setUp();
    await spend(setting, recordWith({ uses: 320 }), { tries: 100 });

    expect(wantsOf(setting.store).slice(0, 7)).toEqual([1, 2, 4, 8, 16, 20, 20]);
  });

  it('is at most 1000 uses', async () => {
    const setting = setUp();
    await spend(setting, recordWith({ uses: 1_000_000 }), { tries: 5000 });

    expect(Math.max(...wantsOf(setting.store))).toBe(1000);
  });

  it('stays at one use for a token that is used rarely, without fetching ahead', async () => {
    const setting = setUp();
    await spend(setting, recordWith({ uses: 1000 }), { tries: 10, everyMs: 60_000 });

    expect(wantsOf(setting.store)).toEqual(Array(10).fill(1));
    expect(setting.store.taken).toBe(10);
  });

  it('shrinks to one use again when it lasts long', async () => {
    const setting = setUp();
    const record = recordWith({ uses: 1000 });
    await spend(setting, record, { tries: 30 });
    const inHand = setting.store.taken - 30;
    setting.time.now += 60_000;

    await spend(setting, record, { tries: inHand + 1, everyMs: 60_000 });

    expect(wantsOf(setting.store).at(-1)).toBe(1);
  });

  it('is fetched before the last one is used up, so that no caller waits', async () => {
    const setting = setUp();
    const record = recordWith({ uses: 100_000 });
    await spend(setting, record, { tries: 20 });

    for (let i = 0; i < 1000; i++) {
      expect(setting.leases.spend([record], setting.time.now)).toBe(true);
      await new Promise(setImmediate);
    }
  });

  it.each([1, 4, 8])(
    'costs at most one store call per 100 uses, at 10 000 uses a second in %i processes',
    async (count) => {
      const { store, time } = setUp();
      let calls = 0;
      store.fault = () => {
        calls += 1;
      };
      const nodes = Array.from({ length: count }, () => nodeOn(store, time));
      const record = recordWith({ rate: { uses: 100_000, seconds: 1 } });
      let spent = 0;
      for (let i = 0; i < 20_000; i++) {
        const leases = nodes[i % count] as Leases;
        spent += await spend({ leases, time }, record, { tries: 1, everyMs: 0.1 });
      }
      await Promise.all(nodes.map((node) => node.close()));

      expect(spent).toBe(20_000);
      expect(calls).toBeLessThanOrEqual(200);
    },
  );

  it('is fetched in one call for all callers that wait', async () => {
    const { store, leases } = setUp();
    const record = recordWith({ uses: 10_000 });

    const spent = await Promise.all(Array.from({ length: 64 }, () => leases.spendLater([record])));

    expect(spent.every((one) => one === true)).toBe(true);
    expect(wantsOf(store)[0]).toBe(64);
  });

  it('is fetched in one call for several limits', async () => {
    const { store, leases } = setUp();
    await leases.spendLater([recordWith({ uses: 9, rate: { uses: 9, seconds: 60 } })]);

    expect(store.takes).toHaveLength(1);
    expect(store.takes[0]).toHaveLength(2);
  });

  it('is fetched only for the limits of which nothing is left', async () => {
    const setting = setUp();
    const { leases, store, time } = setting;
    const record = recordWith({ uses: 6400, rate: { uses: 6400, seconds: 60 } });
    await spend(setting, record, { tries: 8 });
    const { length } = store.takes;
    time.now += 60_000;

    expect(await leases.spendLater([record])).toBe(true);
    expect(store.takes[length]).toMatchObject([{ key: `${record.id}/rate/60` }]);
  });

  it('is given back when it is idle, but not while it is in use', async () => {
    const setting = setUp();
    const { leases, store } = setting;
    const record = recordWith({ uses: 1000 });
    await spend(setting, record, { tries: 20 });
    const before = store.taken;

    leases.giveBackIdle();
    expect(store.taken).toBe(before);
    await spend(setting, record, { tries: 1 });
    leases.giveBackIdle();
    await new Promise(setImmediate);
    expect(store.taken).toBeGreaterThan(21);
    leases.giveBackIdle();
    await new Promise(setImmediate);
    expect(store.taken).toBe(21);
  });

  it('is given back on close, even while it is fetched, and no use is spent after that', async () => {
    const setting = setUp();
    const { leases, store } = setting;
    const record = recordWith({ uses: 1000 });
    await spend(setting, record, { tries: 20 });
    const waiting = leases.spendLater([
      recordWith({ uses: 1000, rate: { uses: 5, seconds: 1 } }, 2),
    ]);
    const outcome = waiting.then(
      () => 1,
      () => 0,
    );
    await leases.close();

    expect(store.taken).toBe(20 + 2 * (await outcome));
    const { length } = store.takes;
    await expect(leases.spendLater([record])).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(store.takes).toHaveLength(length);
  });

  it('is lost if its answer is lost, and never spent twice', async () => {
    const setting = setUp();
    const { store, leases } = setting;
    const record = recordWith({ uses: 3 });
    const take = store.take.bind(store);
    store.take = async (wants) => {
      await take(wants);
      throw new Error('lost');
    };
    await expect(leases.spendLater([record])).rejects.toMatchObject({ code: 'store_unavailable' });
    store.take = take;

    expect(await spend(setting, record, { tries: 10 })).toBe(2);
  });

  it('is not requested again within a second if the limit has no uses left', async () => {
    const setting = setUp();
    const { store, time } = setting;
    const record = recordWith({ uses: 2 });
    await spend(setting, record, { tries: 10 });
    const { length } = store.takes;

    await spend(setting, record, { tries: 100 });
    expect(store.takes).toHaveLength(length);
    await store.giveBack([{ key: `${record.id}/uses`, window: 0, amount: 1 }]);
    time.now += 1000;
    expect(await spend(setting, record, { tries: 10 })).toBe(1);
  });

  it('follows the limit of the newest version that was seen', async () => {
    const setting = setUp();
    const [old, next] = [recordWith({ uses: 1000 }), recordWith({ uses: 5 }, 2)];
    await spend(setting, old, { tries: 3 });
    await spend(setting, next, { tries: 1 });

    // A record that was read before the change still has the old limit.
    expect(await spend(setting, old, { tries: 10 })).toBe(1);
  });

  it('is kept for a year after the expiry of the token, or until the end of its window', async () => {
    const setting = setUp();
    const record = recordWith({ uses: 5, rate: { uses: 5, seconds: 60 } });
    await spend(setting, record, { tries: 1 });

    const [total, rate] = setting.store.takes[0] ?? [];
    expect(total?.until).toEqual(new Date(record.expiresAt.getTime() + 31_536_000_000));
    expect(rate?.until).toEqual(new Date(START + 60_000));
  });
});

/** Lets everything arrive that the store has answered. */
const settled = () => new Promise<void>(setImmediate);

/** Holds the answers of a store until they are released. */
function held(store: RecordingLeases, call: keyof RecordingLeases): () => Promise<void> {
  const released = Promise.withResolvers<void>();
  store.fault = (name) => (name === call ? released.promise : undefined);
  return async () => {
    store.fault = () => undefined;
    released.resolve();
    await settled();
  };
}

describe('the next lease', () => {
  it.each([
    ['doubles if the last one was asked for less than a second ago', 999, 2],
    ['stays as large after a second', 1000, 1],
  ])('%s', async (_, everyMs, want) => {
    const setting = setUp();
    await spend(setting, recordWith({ uses: 1000 }), { tries: 2, everyMs });

    expect(wantsOf(setting.store).slice(0, 2)).toEqual([1, want]);
  });

  it.each([
    ['keeps its size if the last one lasted ten seconds', 10_000, 4],
    ['starts at one use again if the last one lasted longer', 10_001, 1],
  ])('%s', async (_, lastedMs, want) => {
    const setting = setUp();
    const record = recordWith({ uses: 1000 });
    const release = await startedAtFour(setting, record);
    setting.time.now += lastedMs;
    await release();

    expect(wantsOf(setting.store).at(-1)).toBe(want);
  });

  /** Spends until leases have four uses each and all are spent; the result asks for the next one. */
  async function startedAtFour(
    setting: ReturnType<typeof setUp>,
    record: TokenRecord,
  ): Promise<() => Promise<void>> {
    await spend(setting, record, { tries: 3 });
    const inHand = setting.store.taken - 3;
    const before = wantsOf(setting.store).at(-1);
    expect([before, inHand]).toEqual([4, 4]);
    return async () => {
      await spend(setting, record, { tries: 2 });
    };
  }

  it('is fetched when half of the last one is spent, once, and not before', async () => {
    const setting = setUp();
    const { leases, store, time } = setting;
    const record = recordWith({ uses: 10_000 });
    await Promise.all(Array.from({ length: 8 }, () => leases.spendLater([record])));
    await spend(setting, record, { tries: 1 });
    const { length } = store.takes;
    const full = store.taken - 9;
    const release = held(store, 'take');

    for (let left = full; left * 2 > full + 2; left -= 1) leases.spend([record], time.now);
    await settled();
    expect(store.takes).toHaveLength(length);
    leases.spend([record], time.now);
    leases.spend([record], time.now);
    leases.spend([record], time.now);
    await settled();
    expect(store.takes).toHaveLength(length + 1);
    await release();
  });

  it('is of one use if the store granted less than was asked for', async () => {
    const setting = setUp();
    const { store } = setting;
    const record = recordWith({ uses: 320 });
    await spend(setting, record, { tries: 64 });
    const { length } = wantsOf(store);
    store.take = async (wants) => {
      store.takes.push(wants);
      return wants.map(({ want }) => Math.min(want, 3));
    };
    await spend(setting, record, { tries: 40 });

    expect(wantsOf(store).slice(length, length + 3)).toEqual([20, 1, 2]);
  });

  it('is not fetched ahead while the limit is known to have no use left', async () => {
    const setting = setUp();
    const { leases, store, time } = setting;
    const record = recordWith({ uses: 64 });
    // Four in hand, and nothing left in the store.
    await Promise.all(Array.from({ length: 4 }, () => leases.spendLater([record])));
    await spend(setting, record, { tries: 60 });
    const { length } = store.takes;
    await store.giveBack([{ key: `${record.id}/uses`, window: 0, amount: 4 }]);
    await spend(setting, record, { tries: 1 });
    expect(store.takes).toHaveLength(length);
    time.now += 1000;
    expect(await spend(setting, record, { tries: 10 })).toBe(4);
  });

  it('is dropped if its window has ended before it arrives', async () => {
    const { leases, store, time } = setUp();
    const record = recordWith({ rate: { uses: 320, seconds: 1 } });
    const release = held(store, 'take');
    const waiting = Array.from({ length: 8 }, () => leases.spendLater([record]));
    await settled();
    time.now += 1000;
    // A verification of the new window.
    expect(leases.spend([record], time.now)).toBeUndefined();
    await release();
    await Promise.all(waiting);

    // All eight were leased again, from the new window.
    const [first, second] = store.takes.flat();
    expect(second?.window).toBe((first?.window ?? 0) + 1);
    expect(second?.want).toBe(8);
  });
});

describe('a verification that began in an earlier window', () => {
  it('spends a use of the current window, and leaves its lease in hand', async () => {
    const setting = setUp();
    const { leases, store, time } = setting;
    const record = recordWith({ rate: { uses: 320, seconds: 1 } });
    const began = time.now;
    time.now += 1000;
    await spend(setting, record, { tries: 20 });

    expect(leases.spend([record], began)).toBeUndefined();
    expect(await leases.spendLater([record])).toBe(true);
    expect(leases.spend([record], time.now)).toBe(true);
    await leases.close();
    expect(store.taken).toBe(22);
  });

  it('may follow a clock that was set back', async () => {
    const setting = setUp();
    const { leases, store, time } = setting;
    const record = recordWith({ rate: { uses: 320, seconds: 1 } });
    await spend(setting, record, { tries: 20 });
    time.now -= 5000;

    expect(leases.spend([record], time.now)).toBeUndefined();
    expect(await leases.spendLater([record])).toBe(true);
    expect(store.takes.at(-1)?.[0]?.window).toBe(START / 1000 - 5);
  });
});

describe('a process whose clock is fast', () => {
  const SECONDS = 60;
  const record = recordWith({ rate: { uses: 20, seconds: SECONDS } });

  /** Two processes, one of them fast, on a store with a clock of its own. */
  function setUpFast({ aheadMs = 0 }: { readonly aheadMs?: number } = {}) {
    const time = { now: START };
    const store = new MemoryTokenStore({ clock: { now: () => new Date(time.now) } }).leases;
    const asked: number[] = [];
    const take = store.take.bind(store);
    store.take = (wants) => {
      asked.push(time.now);
      return take(wants);
    };
    const checked = () =>
      new CheckedLeaseStore(store, { deadlineMs: 2000, health: QUIET, part: 'leases' });
    const node = (now: () => number) => new Leases({ store: checked(), deadlineMs: 2000, now });
    return {
      time,
      asked,
      right: node(() => time.now),
      fast: node(() => time.now + aheadMs),
    };
  }

  const accept = async (leases: Leases, tries: number): Promise<number> => {
    let accepted = 0;
    for (let i = 0; i < tries; i++) {
      accepted += Number((await leases.spendLater([record])) === true);
    }
    return accepted;
  };

  it('spends nothing of a window that has not begun by the clock of the store', async () => {
    const { fast, right, time } = setUpFast({ aheadMs: SECONDS * 1000 });

    expect(await accept(right, 20)).toBe(20);
    expect(await accept(fast, 1)).toBe(0);
    time.now += SECONDS * 1000;
    expect((await accept(right, 21)) + (await accept(fast, 1))).toBe(20);
  });

  it('waits if the window begins within a moment, and refuses nothing', async () => {
    const { fast, time, asked } = setUpFast({ aheadMs: 30 });
    time.now = START + SECONDS * 1000 - 30;
    const verifying = fast.spendLater([record]);
    await vi.waitFor(() => expect(asked.length).toBeGreaterThan(1));
    time.now += 30;

    expect(await verifying).toBe(true);
  });

  it('is refused without a wait if the store has granted uses of the window', async () => {
    const { right, asked } = setUpFast();
    expect(await accept(right, 20)).toBe(20);
    const before = asked.length;

    expect(await accept(right, 3)).toBe(0);
    expect(asked.length).toBe(before + 1);
  });

  it('asks a few times if another process has spent the window, and is then refused', async () => {
    const { right, fast, asked } = setUpFast();
    expect(await accept(right, 20)).toBe(20);
    const before = asked.length;

    expect(await fast.spendLater([record])).toMatchObject({ retryAt: START + SECONDS * 1000 });
    expect(asked.length).toBe(before + 7);
    expect(await fast.spendLater([record])).toMatchObject({ retryAt: START + SECONDS * 1000 });
    expect(asked.length).toBe(before + 7);
  });
});

describe('a lease store that answers late', () => {
  it('gets back what it grants after the deadline', async () => {
    const { store } = setUp();
    const failed = Promise.withResolvers<unknown>();
    const checked = new CheckedLeaseStore(store, {
      deadlineMs: 1,
      health: { ...QUIET, onFailure: failed.resolve },
      part: 'leases',
    });
    const want = { key: 'a', window: 0, limit: 1000, want: 8, until: CREATED };
    const take = store.take.bind(store);
    const late = Promise.withResolvers<void>();
    store.take = async (wants) => {
      const granted = await take(wants);
      await late.promise;
      return granted;
    };
    await expect(checked.take([want])).rejects.toMatchObject({ code: 'store_unavailable' });
    await failed.promise;
    expect(store.taken).toBe(8);
    late.resolve();
    await settled();

    expect(store.taken).toBe(0);
  });

  it('is not asked for more each time', async () => {
    const setting = setUp();
    const { leases, store } = setting;
    const record = recordWith({ uses: 1000 });
    store.fault = () => Promise.reject(new Error('down'));
    for (let tries = 0; tries < 5; tries += 1) {
      await expect(leases.spendLater([record])).rejects.toThrow();
    }

    expect(wantsOf(store)).toEqual([1, 1, 1, 1, 1]);
  });
});

it('a verification ends at its deadline if each lease arrives after its window', async () => {
  const store = new RecordingLeases();
  const time = { now: START };
  const checked = new CheckedLeaseStore(store, { deadlineMs: 1000, health: QUIET, part: 'leases' });
  const now = () => {
    time.now += 1000;
    return time.now;
  };
  const leases = new Leases({ store: checked, deadlineMs: 1000, now });
  let elapsedMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
    elapsedMs += 100;
    return elapsedMs;
  });
  onTestFinished(() => clock.mockRestore());
  const record = recordWith({ rate: { uses: 5, seconds: 1 } });

  await expect(leases.spendLater([record])).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(store.takes.length).toBeGreaterThan(2);
  expect(store.takes.length).toBeLessThan(11);
});

it('a clock that fails when a lease arrives refuses those that wait', async () => {
  const { store, time } = setUp();
  let reads = 0;
  const parts = { deadlineMs: 1000, health: QUIET, part: 'leases' } as const;
  const leases = new Leases({
    store: new CheckedLeaseStore(store, parts),
    deadlineMs: 1000,
    now: () => {
      reads += 1;
      if (reads === 2) throw new Error('no time');
      return time.now;
    },
  });

  await expect(leases.spendLater([recordWith({ uses: 5 })])).rejects.toThrow('no time');
});

describe('the limit that is named, of several tokens', () => {
  /** The hit of tokens that have all used up their limits. */
  async function hitOf(...limits: readonly TokenLimits[]) {
    const setting = setUp();
    const records = limits.map((each, index) => newRecord(`token${index}`, { limits: each }));
    for (const record of records) await spend(setting, record, { tries: 3 });
    return setting.leases.spend(records, setting.time.now);
  }
  const minute = { rate: { uses: 1, seconds: 60 } };
  const day = { rate: { uses: 1, seconds: 86_400 } };

  it.each([
    ['a total, which no waiting brings back', [minute, { uses: 1 }], {}],
    ['the longest wait, if it is the last', [minute, day], { retryAfterSeconds: 86_400 }],
    ['the longest wait, if it is the first', [day, minute], { retryAfterSeconds: 86_400 }],
  ])('is %s', async (_, limits, hit) => {
    const found = await hitOf(...limits);

    expect(found).toMatchObject(hit);
    if (!('retryAfterSeconds' in hit)) expect(found).toEqual({});
  });
});

describe('a change of the limits', () => {
  it('gives back what was leased of a rate with other windows', async () => {
    const setting = setUp();
    const { leases, store, time } = setting;
    const old = recordWith({ rate: { uses: 320, seconds: 60 } });
    await spend(setting, old, { tries: 10 });
    expect(store.taken).toBeGreaterThan(10);

    leases.spend([recordWith({ rate: { uses: 320, seconds: 10 } }, 2)], time.now);
    await settled();

    expect(store.taken).toBe(10);
  });

  it('keeps what was leased of a rate with the same windows and more uses', async () => {
    const setting = setUp();
    const { leases, store, time } = setting;
    await spend(setting, recordWith({ rate: { uses: 320, seconds: 60 } }), { tries: 10 });
    const { taken } = store;
    const { length } = store.takes;

    const next = recordWith({ rate: { uses: 640, seconds: 60 } }, 2);
    expect(leases.spend([next], time.now)).toBe(true);
    expect([store.taken, store.takes.length]).toEqual([taken, length]);
  });

  it('asks the store again if it raises a limit that had no use left, and only then', async () => {
    const setting = setUp();
    const { store } = setting;
    await spend(setting, recordWith({ uses: 2 }), { tries: 5 });
    const { length } = store.takes;

    expect(await spend(setting, recordWith({ uses: 2 }, 2), { tries: 5 })).toBe(0);
    expect(store.takes).toHaveLength(length);
    expect(await spend(setting, recordWith({ uses: 4 }, 3), { tries: 5 })).toBe(2);
  });

  it.each([
    ['that is removed', {}],
    ['whose windows change', { rate: { uses: 320, seconds: 10 } }],
  ])('gives back what was still being fetched for a limit %s', async (_, limits) => {
    const { leases, store, time } = setUp();
    const old = recordWith({ rate: { uses: 320, seconds: 60 } });
    const release = held(store, 'take');
    const waiting = leases.spendLater([old]);
    await settled();
    leases.spend([recordWith(limits, 2)], time.now);
    await release();
    await waiting;
    await leases.close();

    const [first] = store.takes.flat();
    expect(store.takenOf(first?.key ?? '', first?.window ?? 0)).toBe(0);
  });

  it('lowers a limit of which nothing is in hand without a call of the store', async () => {
    const setting = setUp();
    const { store } = setting;
    const giveBack = vi.spyOn(store, 'giveBack');
    await spend(setting, recordWith({ uses: 100 }), { tries: 1 });

    expect(await spend(setting, recordWith({ uses: 2 }, 2), { tries: 3 })).toBe(1);
    expect(giveBack).not.toHaveBeenCalled();
  });

  it('waits for what goes back before it leases by the lower limit', async () => {
    const setting = setUp();
    const { leases, store, time } = setting;
    await spend(setting, recordWith({ uses: 1000 }), { tries: 20 });
    const release = held(store, 'giveBack');
    const { length } = store.takes;
    const next = recordWith({ uses: 30 }, 2);

    expect(leases.spend([next], time.now)).toBeUndefined();
    const waiting = leases.spendLater([next]);
    await settled();
    expect(store.takes).toHaveLength(length);
    await release();
    expect(await waiting).toBe(true);
    expect(store.taken).toBeGreaterThan(20);
    expect(store.taken).toBeLessThanOrEqual(30);
  });
});

describe('idle leases', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  /** A process with some uses in hand; `tick` lets the time pass that its timer waits. */
  async function setUpIdle() {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const setting = setUp();
    const record = recordWith({ uses: 1000 });
    await spend(setting, record, { tries: 20 });
    const tick = async () => {
      vi.advanceTimersByTime(LEASE_IDLE_MS);
      await settled();
    };
    return { ...setting, setting, record, tick };
  }

  it('are given back by a timer, which ends with the last of them', async () => {
    const { store, tick } = await setUpIdle();
    await tick();
    expect(store.taken).toBeGreaterThan(20);
    await tick();
    expect(store.taken).toBe(20);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('are looked for again when there are new ones', async () => {
    const { setting, store, record, tick } = await setUpIdle();
    await tick();
    await tick();
    await spend(setting, record, { tries: 5 });
    expect(vi.getTimerCount()).toBe(1);
    await tick();
    await tick();
    expect(store.taken).toBe(25);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('are looked for by one timer, and by none after close', async () => {
    const { setting, leases } = await setUpIdle();
    const other = newRecord('other', { limits: { uses: 1000 } });
    await spend(setting, other, { tries: 20 });
    expect(vi.getTimerCount()).toBe(1);
    await leases.close();
    expect(vi.getTimerCount()).toBe(0);
    await expect(leases.spendLater([other])).rejects.toThrow();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('stay while the next one is being fetched, so that nothing of it is lost', async () => {
    const { setting, leases, store } = await setUpIdle();
    const rare = newRecord('rare', { limits: { uses: 1000 } });
    await spend(setting, rare, { tries: 3 });
    const release = held(store, 'take');
    const waiting = leases.spendLater([newRecord('rarer', { limits: { uses: 1000 } })]);
    await settled();
    leases.giveBackIdle();
    leases.giveBackIdle();
    leases.giveBackIdle();
    await release();
    expect(await waiting).toBe(true);
    leases.giveBackIdle();
    leases.giveBackIdle();
    await settled();

    expect(store.taken).toBe(20 + 3 + 1);
  });

  it('are back in the store before it is asked for the next one', async () => {
    const { setting, leases, store, record } = await setUpIdle();
    const release = held(store, 'giveBack');
    const { length } = store.takes;
    leases.giveBackIdle();
    leases.giveBackIdle();
    const waiting = leases.spendLater([record]);
    await settled();
    expect(store.takes).toHaveLength(length);
    await release();

    expect(await waiting).toBe(true);
    expect(store.takes).toHaveLength(length + 1);
    expect(setting.store.taken).toBe(21);
  });

  it('cost no call of the store if nothing is left of them', async () => {
    const { setting, leases, store } = await setUpIdle();
    await leases.close();
    const giveBack = vi.spyOn(store, 'giveBack');
    const other = nodeOn(store, setting.time);
    await other.spendLater([recordWith({ uses: 1000 })]);
    other.giveBackIdle();
    other.giveBackIdle();
    await other.close();

    expect(giveBack).not.toHaveBeenCalled();
  });
});

describe('several processes', () => {
  /** A node spends, is killed, closes or gives back idle leases; or time passes; or the store goes down or up. */
  const step = fc.oneof(
    {
      weight: 20,
      arbitrary: fc.record({ node: fc.nat(3), spends: fc.integer({ min: 1, max: 30 }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ node: fc.nat(3), ends: fc.constantFrom('kill', 'close') }),
    },
    { weight: 1, arbitrary: fc.record({ node: fc.nat(3), idle: fc.constant(true) }) },
    { weight: 2, arbitrary: fc.record({ ms: fc.integer({ min: 1, max: 1500 }) }) },
    { weight: 1, arbitrary: fc.record({ lost: fc.boolean() }) },
  );
  it('never use more than a limit, in random schedules', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 40 }),
        async (steps, uses, perSecond) => {
          const store = new RecordingLeases();
          const time = { now: START };
          const record = recordWith({ uses, rate: { uses: perSecond, seconds: 1 } });
          const nodes = [0, 1, 2, 3].map(() => nodeOn(store, time));
          const byWindow = new Map<number, number>();
          for (const one of steps) {
            if ('ms' in one) time.now += one.ms;
            if ('lost' in one)
              store.fault = one.lost ? () => Promise.reject(new Error()) : () => {};
            if (!('node' in one)) continue;
            const node = nodes[one.node] as Leases;
            if ('idle' in one) node.giveBackIdle();
            if ('ends' in one) {
              if (one.ends === 'close') await node.close();
              nodes[one.node] = nodeOn(store, time);
            }
            if (!('spends' in one)) continue;
            const tries = Array.from({ length: one.spends }, () => node.spendLater([record]));
            const spent = (await Promise.allSettled(tries)).filter(
              (outcome) => outcome.status === 'fulfilled' && outcome.value === true,
            );
            const window = Math.floor(time.now / 1000);
            byWindow.set(window, (byWindow.get(window) ?? 0) + spent.length);
          }
          const spent = [...byWindow.values()];
          expect(Math.max(0, ...spent)).toBeLessThanOrEqual(perSecond);
          expect(spent.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(uses);
        },
      ),
      runs(0.2),
    );
  });

  it('use exactly the limit if they close properly', async () => {
    const store = new RecordingLeases();
    const time = { now: START };
    const record = recordWith({ uses: 10_000 });
    let spent = 0;
    for (let node = 0; node < 8; node++) {
      const leases = nodeOn(store, time);
      const tries = Array.from({ length: 1500 }, () => leases.spendLater([record]));
      spent += (await Promise.all(tries)).filter((one) => one === true).length;
      await leases.close();
      time.now += 1000;
    }

    expect(spent).toBe(10_000);
    expect(store.taken).toBe(10_000);
  });
});
