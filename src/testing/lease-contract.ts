import assert from 'node:assert/strict';
import type { LeaseStore, LeaseWant, UnspentLease } from '../ports/lease-store.ts';
import { delay } from '../time/timers.ts';
import { contractCase } from './contract-case.ts';
import { DAY, idOf, farLater as later, range } from './records.ts';

/** One promise of a {@link LeaseStore}, for any test runner. */
export interface LeaseContractCase {
  /** The method and its promise: `take: never grants more than the limit`. */
  readonly name: string;
  /** Opens a store, checks the promise and closes the store. Rejects if the promise is broken. */
  run(open: () => LeaseStore | Promise<LeaseStore>): Promise<void>;
}

const KEY = `${idOf('one')}/uses`;
const OTHER = `${idOf('two')}/uses`;
const ALIKE_KEYS = [
  'one/uses',
  'One/uses',
  'ONE/uses',
  'one/use',
  'one/uses ',
  'one/uses/',
  'one_uses',
];
/** In the past by any clock. */
const ENDED = new Date('2001-02-03T04:05:06.789Z');

const test = contractCase<LeaseStore>;

/**
 * All promises of a lease store, as a list of cases for any test runner.
 *
 * A store passes when no case rejects and none is skipped. `open` must return an empty store each
 * time. The cases of `purge` wait for a moment until something has ended, and need a store whose clock is
 * not seconds ahead of the one of this machine. To see that several processes never get more than the
 * limit together, run some of your own.
 *
 * @example
 * describe('my lease store', () => {
 *   it.each(leaseContract)('$name', (promise) => promise.run(() => new MyLeaseStore()));
 * });
 */
export const leaseContract: readonly LeaseContractCase[] = [
  test('take: grants what is asked for while it is left, then the rest, then nothing', async (store) => {
    assert.deepEqual(await takeOf(store, [4, 4, 4, 4, 1]), [4, 4, 2, 0, 0]);
  }),

  test('take: grants at most the limit to a caller who asks for more', async (store) => {
    assert.deepEqual(await takeOf(store, [1000, 1]), [10, 0]);
  }),

  test('take: never grants more than the limit to many at the same time', async (store) => {
    const calls = range(64).flatMap(() =>
      [1, 2, 3].map((want) => store.take([wantOf({ want, limit: 100 })])),
    );
    const granted = (await Promise.all(calls)).flat();
    assert.equal(sumOf(granted), 100);
    assert.ok(granted.every((amount) => amount >= 0 && amount <= 3));
    assert.deepEqual(await store.take([wantOf({ limit: 100 })]), [0]);
  }),

  test('take: never grants more than the limit to many who ask for several things', async (store) => {
    const wants = range(8).map((index) => wantOf({ key: `${KEY}${index}`, want: 3, limit: 50 }));
    const calls = range(32).map((index) =>
      // In different orders, as different processes would.
      store.take(index % 2 === 0 ? wants : [...wants].reverse()),
    );
    const answers = await Promise.all(calls);
    for (const index of wants.keys()) {
      const granted = answers.map((answer, call) =>
        call % 2 === 0 ? answer[index] : answer[wants.length - 1 - index],
      );
      assert.equal(sumOf(granted), 50);
    }
  }),

  test('take: answers many wants in their order', async (store) => {
    const wants = range(100).map((index) =>
      wantOf({ key: `many/${index}`, limit: 1 + (index % 7), want: 5 }),
    );
    const expected = wants.map(({ limit, want }) => Math.min(limit, want));
    assert.deepEqual([...(await store.take(wants))], expected);
    const rest = wants.map(({ limit }) => Math.max(0, limit - 5));
    assert.deepEqual([...(await store.take(wants))], rest);
  }),

  test('take: answers no wants with nothing', async (store) => {
    assert.deepEqual([...(await store.take([]))], []);
  }),

  test('take: counts a key and window that comes twice in one call twice', async (store) => {
    const wants = [
      wantOf({ want: 7 }),
      wantOf({ key: OTHER }),
      wantOf({ want: 7 }),
      wantOf({ want: 7 }),
    ];
    assert.deepEqual([...(await store.take(wants))], [7, 1, 3, 0]);
  }),

  test('take: compares keys byte by byte', async (store) => {
    for (const [index, key] of ALIKE_KEYS.entries()) {
      await store.take([wantOf({ key, want: index + 1 })]);
    }
    for (const [index, key] of ALIKE_KEYS.entries()) {
      assert.deepEqual([...(await store.take([wantOf({ key, want: 10 })]))], [9 - index]);
    }
  }),

  test('take: accepts keys of 64 bytes, and compares all of them', async (store) => {
    const [one, other] = ['x'.repeat(64), `${'x'.repeat(63)}y`];
    assert.deepEqual([...(await store.take([wantOf({ key: one, want: 9 })]))], [9]);
    assert.deepEqual([...(await store.take([wantOf({ key: other, want: 9 })]))], [9]);
    assert.deepEqual([...(await store.take([wantOf({ key: one, want: 9 })]))], [1]);
  }),

  test('take: counts each window separately', async (store) => {
    const windows = [41_000_000_007, 41_000_000_008];
    for (const window of windows) {
      assert.deepEqual([...(await store.take([wantOf({ window, want: 8 })]))], [8]);
    }
    for (const window of windows) {
      assert.deepEqual([...(await store.take([wantOf({ window, want: 8 })]))], [2]);
    }
  }),

  test('take: counts a total separately from the windows of a rate', async (store) => {
    for (const window of [0, 2, 3]) {
      assert.deepEqual([...(await store.take([wantOf({ window, want: 8 })]))], [8]);
    }
    assert.deepEqual([...(await store.take([wantOf({ want: 8 })]))], [2]);
  }),

  test('take: neither grants nor counts uses after the end', async (store) => {
    const wants = [wantOf({ until: ENDED, want: 8 }), wantOf({ window: 7, until: ENDED, want: 8 })];
    assert.deepEqual([...(await store.take(wants))], [0, 0]);
    assert.deepEqual(await takeOf(store, [10]), [10]);
    assert.deepEqual([...(await store.take(wants))], [0, 0]);
  }),

  test('take: neither grants nor counts uses of a window that has not begun', async (store) => {
    const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000);
    const [begun, start, until] = [inSeconds(-60), inSeconds(60), inSeconds(120)];
    const next = wantOf({ window: 8, start, until, want: 8 });
    const current = wantOf({ window: 7, start: begun, until: start, want: 8 });
    assert.deepEqual([...(await store.take([next, current, next]))], [0, 8, 0]);
    // The same window, which has begun.
    assert.deepEqual([...(await store.take([{ ...next, start: begun, want: 10 }]))], [10]);
    assert.deepEqual([...(await store.take([next, current]))], [0, 2]);
  }),

  test('take: a higher limit adds to what is left, a lower one takes away from it', async (store) => {
    const take = async (want: number, limit: number) =>
      (await store.take([wantOf({ want, limit })]))[0];
    assert.equal(await take(10, 10), 10);
    assert.equal(await take(10, 15), 5);
    assert.equal(await take(1, 15), 0);
    assert.equal(await take(1, 7), 0);
    assert.equal(await take(2, 18), 2);
    await store.giveBack([{ key: KEY, window: 0, amount: 8 }]);
    // Nine are granted.
    assert.equal(await take(5, 9), 0);
    assert.equal(await take(5, 10), 1);
  }),

  test('take: counts to the largest whole number', async (store) => {
    const limit = Number.MAX_SAFE_INTEGER;
    const take = async (want: number) => (await store.take([wantOf({ want, limit })]))[0];
    assert.equal(await take(limit - 3), limit - 3);
    assert.equal(await take(2), 2);
    assert.equal(await take(limit), 1);
    await store.giveBack([{ key: KEY, window: 0, amount: limit - 1 }]);
    assert.equal(await take(limit), limit - 1);
  }),

  test('take: with a want of 0, grants nothing', async (store) => {
    assert.deepEqual(await takeOf(store, [0, 9, 0, 9, 0]), [0, 9, 0, 1, 0]);
  }),

  test('take: changes nothing of what it is given, and keeps copies', async (store) => {
    const until = later(DAY);
    const want = Object.freeze(wantOf({ want: 9, until }));
    const lease = Object.freeze({ key: KEY, window: 0, amount: 4 });
    await store.take(Object.freeze([want]));
    await store.giveBack(Object.freeze([lease]));
    assert.deepEqual(until, later(DAY));
    until.setTime(0);
    await store.purge(later(0), 10);
    assert.deepEqual(await takeOf(store, [10]), [5]);
  }),

  test('giveBack: makes exactly the given uses available again', async (store) => {
    assert.deepEqual(await takeOf(store, [6, 4]), [6, 4]);
    await store.giveBack([{ key: KEY, window: 0, amount: 3 }]);
    assert.deepEqual(await takeOf(store, [10, 1]), [3, 0]);
    const lease = { key: KEY, window: 0, amount: 1 };
    await store.giveBack([lease, lease]);
    assert.deepEqual(await takeOf(store, [10, 1]), [2, 0]);
  }),

  test('giveBack: never makes more than the limit available', async (store) => {
    assert.deepEqual(await takeOf(store, [6]), [6]);
    await store.giveBack([{ key: KEY, window: 0, amount: 1000 }]);
    assert.deepEqual(await takeOf(store, [1000, 1]), [10, 0]);
  }),

  test('giveBack: does nothing for another key, another window, or one that never was', async (store) => {
    assert.deepEqual(await takeOf(store, [10]), [10]);
    await store.take([wantOf({ window: 7, want: 10 })]);
    const leases: UnspentLease[] = [
      { key: OTHER, window: 0, amount: 5 },
      { key: KEY.toUpperCase(), window: 0, amount: 5 },
      { key: KEY, window: 9, amount: 5 },
      { key: KEY, window: 7, amount: 5 },
    ];
    await store.giveBack(leases);
    await store.giveBack([]);
    assert.deepEqual(await takeOf(store, [1]), [0]);
    assert.deepEqual([...(await store.take([wantOf({ window: 7, want: 10 })]))], [5]);
    assert.deepEqual([...(await store.take([wantOf({ key: OTHER, want: 20 })]))], [10]);
  }),

  test('giveBack: many at the same time never make more available than they took', async (store) => {
    const limit = 40;
    const spend = async (): Promise<number> => {
      let spent = 0;
      for (let misses = 0; misses < 3 && spent <= limit; ) {
        const [granted = 0] = await store.take([wantOf({ want: 4, limit })]);
        if (granted === 0) misses += 1;
        else spent += 1;
        // Spends one of each lease, and gives the rest back.
        if (granted > 1) await store.giveBack([{ key: KEY, window: 0, amount: granted - 1 }]);
      }
      return spent;
    };
    const spent = sumOf(await Promise.all(range(16).map(spend)));
    assert.ok(spent <= limit, `${spent} were spent of ${limit}`);
    // The uses that others held at the time are available again.
    const [rest = 0] = await store.take([wantOf({ want: limit, limit })]);
    assert.equal(spent + rest, limit);
  }),

  test('purge: forgets only what ended before the instant', async (store) => {
    const { wants, end } = await takeEnded(store, 3);
    const forgotten = await store.purge(new Date(end + 1), 10);
    // A store that forgets by itself need not do it here.
    assert.ok(forgotten === 0 || forgotten === 1, `${forgotten} were forgotten`);
    assert.deepEqual([...(await store.take(putOff(wants)))], [10 * forgotten, 0, 0]);
  }),

  test('purge: forgets at most limit counts at a time', async (store) => {
    const { end } = await takeEnded(store, 5);
    const steps: number[] = [];
    for (let step = 0; step < 4; step++) steps.push(await store.purge(new Date(end + 9), 2));
    const isByItself = steps.every((count) => count === 0);
    assert.deepEqual(steps, isByItself ? [0, 0, 0, 0] : [2, 2, 1, 0]);
  }),

  test('purge: keeps a count whose end a later call has postponed', async (store) => {
    const { wants, end } = await takeEnded(store, 1, async ([want]) => {
      await store.take([{ ...(want as LeaseWant), want: 0, until: later(DAY) }]);
      await store.take([{ ...(want as LeaseWant), want: 1 }]);
    });
    assert.equal(await store.purge(new Date(end + 1), 10), 0);
    assert.deepEqual([...(await store.take(putOff(wants)))], [0]);
  }),

  test('purge: keeps what has not ended by the clock of the store', async (store) => {
    assert.deepEqual(await takeOf(store, [10]), [10]);
    assert.equal(await store.purge(later(2 * DAY), 10), 0);
    assert.deepEqual(await takeOf(store, [10]), [0]);
  }),
];

function wantOf(fields: Partial<LeaseWant>): LeaseWant {
  return { key: KEY, window: 0, limit: 10, want: 1, until: later(DAY), ...fields };
}

/** Takes from a limit of 10, one call after the other. */
async function takeOf(store: LeaseStore, wants: readonly number[]): Promise<number[]> {
  const granted: number[] = [];
  for (const want of wants) granted.push(...(await store.take([wantOf({ want })])));
  return granted;
}

/**
 * Takes all uses of some limits, each of which ends a millisecond after the one before, and waits until all
 * have ended. If the store is too slow to grant them before, tries again with more time.
 */
async function takeEnded(
  store: LeaseStore,
  count: number,
  andThen: (wants: readonly LeaseWant[]) => Promise<void> = async () => {},
): Promise<{ wants: readonly LeaseWant[]; end: number }> {
  for (let ms = 50; ; ms *= 2) {
    const end = Date.now() + ms;
    const wants = range(count).map((index) =>
      wantOf({ key: `${KEY}/${ms}/${index}`, want: 10, until: new Date(end + index) }),
    );
    const granted = await store.take(wants);
    await andThen(wants);
    await delay(Math.max(0, end + count + 50 - Date.now()));
    if (granted.every((amount) => amount === 10)) return { wants, end };
    assert.ok(ms < 5000, 'the clock of the store is ahead of the one of this machine');
    // What it has granted late would be counted as forgotten below.
    await store.purge(new Date(), 100);
  }
}

function putOff(wants: readonly LeaseWant[]): LeaseWant[] {
  return wants.map((want) => ({ ...want, until: later(DAY) }));
}

function sumOf(amounts: readonly (number | undefined)[]): number {
  return amounts.reduce<number>((sum, amount) => sum + (amount ?? Number.NaN), 0);
}
