import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type SqliteHandle, SqliteTokenStore } from '../../../src/stores/sqlite/index.ts';
import { nextTurn } from '../../../src/time/deadline.ts';
import { CREATED, newRecord } from '../support.ts';
import { DRIVERS, type Handle, newFile, opened } from './handles.ts';

const GIVE_UP_MS = 1500;
const LONGEST_PAUSE_MS = 15;
/** A call of the driver takes about 2 ms, and more on a busy machine. */
const HELD_MS = 500;

const record = newRecord('one');
const two = newRecord('two');

const WRITES: [string, (store: SqliteTokenStore) => Promise<unknown>, unknown][] = [
  ['insert', (store) => store.insert(newRecord('three')), undefined],
  ['replace', (store) => store.replace({ ...record, version: 2 }), true],
  ['revoke', (store) => store.revoke(record.id, 'acme', CREATED), true],
  ['revokeAll', (store) => store.revokeAll('acme', CREATED, 1000), 2],
  [
    'purge',
    async (store) =>
      (await store.purge({ now: new Date('2200-01-01T00:00:00Z'), minAgeMs: 0, limit: 1000 }))
        .count,
    2,
  ],
];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
  return () => vi.useRealTimers();
});

/** A store, a second connection that can lock the database, and the longest driver call of the store. */
async function setUp(connect: (path: string) => Handle) {
  const path = newFile();
  const [handle, other] = [opened(connect(path)), opened(connect(path))];
  const { timed, longestMs } = timing(handle);
  const store = SqliteTokenStore.open(timed);
  await Promise.all([store.insert(record), store.insert(two)]);
  return {
    store,
    handle,
    longestMs,
    lock: () => other.exec('BEGIN IMMEDIATE'),
    unlock: () => other.exec('ROLLBACK'),
  };
}

function timing(handle: SqliteHandle): { timed: SqliteHandle; longestMs: () => number } {
  let longest = 0n;
  const measure = <Result>(work: () => Result): Result => {
    const start = process.hrtime.bigint();
    try {
      return work();
    } finally {
      const taken = process.hrtime.bigint() - start;
      if (taken > longest) longest = taken;
    }
  };
  const timed: SqliteHandle = {
    exec: (sql) => measure(() => handle.exec(sql)),
    prepare(sql) {
      const statement = handle.prepare(sql);
      const run = statement.run.bind(statement);
      statement.run = (...values) => measure(() => run(...values));
      return statement;
    },
    get isTransaction() {
      return handle.isTransaction ?? handle.inTransaction ?? false;
    },
  };
  return { timed, longestMs: () => Number(longest / 1_000_000n) };
}

/** The outcome of a call so far. */
function watched(call: Promise<unknown>): { outcome: unknown } {
  const seen: { outcome: unknown } = { outcome: 'waits' };
  call.then(
    (answer) => {
      seen.outcome = answer;
    },
    ({ code }) => {
      seen.outcome = code;
    },
  );
  return seen;
}

async function pass(ms: number): Promise<void> {
  await nextTurn();
  await vi.advanceTimersByTimeAsync(ms);
  await nextTurn();
}

describe.each(DRIVERS)(
  'a SQLite store while another connection holds the lock, over %s',
  (_, connect) => {
    it.each(WRITES)(
      'makes %s wait without blocking the event loop, and succeed once the lock is free',
      async (_verb, call, answer) => {
        const { store, longestMs, lock, unlock } = await setUp(connect);
        lock();
        const seen = watched(call(store));
        await pass(GIVE_UP_MS - LONGEST_PAUSE_MS);
        expect(seen.outcome).toBe('waits');
        expect(longestMs()).toBeLessThan(HELD_MS);

        unlock();
        await pass(LONGEST_PAUSE_MS);
        expect(seen.outcome).toBe(answer);
      },
    );

    it.each(WRITES)('makes %s reject in time, and does not carry it out later', async (_, call) => {
      const { store, lock, unlock } = await setUp(connect);
      lock();
      const seen = watched(call(store));
      await pass(GIVE_UP_MS + LONGEST_PAUSE_MS);
      expect(seen.outcome).toBe('store_unavailable');

      unlock();
      await pass(GIVE_UP_MS);
      expect(await store.find([record.id, two.id, newRecord('three').id])).toEqual([
        record,
        two,
        undefined,
      ]);
    });

    it('reads immediately between attempts to write', async () => {
      const { store, lock, unlock } = await setUp(connect);
      lock();
      const writes = Promise.allSettled(WRITES.map(([, call]) => call(store)));
      for (let times = 0; times < 10; times += 1) {
        await pass(LONGEST_PAUSE_MS);
        expect(await store.find([record.id])).toEqual([record]);
        const page = { account: 'acme', limit: 10, liveAt: CREATED };
        expect(await store.page(page)).toHaveLength(2);
      }

      unlock();
      await pass(LONGEST_PAUSE_MS);
      await writes;
      expect(await store.find([record.id])).toEqual([undefined]);
    });

    it('carries out writes in the order of the calls', async () => {
      const { store, lock, unlock } = await setUp(connect);
      lock();
      const first = watched(store.replace({ ...record, version: 2 }));
      await pass(LONGEST_PAUSE_MS);
      const second = watched(store.replace({ ...record, version: 3 }));
      const third = watched(store.revoke(record.id, 'acme', CREATED, 2));
      await pass(LONGEST_PAUSE_MS);
      unlock();
      await pass(LONGEST_PAUSE_MS);

      expect([first, second, third].map(({ outcome }) => outcome)).toEqual([true, true, false]);
    });

    it('does not give up a later write together with an earlier one', async () => {
      const { store, lock, unlock } = await setUp(connect);
      lock();
      const first = watched(store.revoke(record.id, 'acme', CREATED));
      await pass(GIVE_UP_MS / 2);
      const second = watched(store.revoke(two.id, 'acme', CREATED));
      await pass(GIVE_UP_MS / 2 + LONGEST_PAUSE_MS);
      expect([first.outcome, second.outcome]).toEqual(['store_unavailable', 'waits']);
      unlock();
      await pass(LONGEST_PAUSE_MS);

      expect(second.outcome).toBe(true);
    });

    it('pauses after a write that had to wait, to let other connections write', async () => {
      const { store, lock, unlock } = await setUp(connect);
      lock();
      const first = watched(store.revoke(record.id, 'acme', CREATED));
      await pass(0);
      unlock();
      while (first.outcome === 'waits') await pass(1);
      const second = watched(store.revoke(two.id, 'acme', CREATED));
      await nextTurn();
      expect([first.outcome, second.outcome]).toEqual([true, 'waits']);
      await pass(LONGEST_PAUSE_MS);
      expect(second.outcome).toBe(true);

      // The write before did not have to wait.
      const third = watched(store.insert(newRecord('three')));
      await nextTurn();
      expect(third.outcome).toBe(undefined);
    });

    it('waits for pending writes on close', async () => {
      const { store, lock, unlock } = await setUp(connect);
      lock();
      const write = watched(store.revoke(record.id, 'acme', CREATED));
      const close = watched(store.close());
      await pass(100);
      expect([write.outcome, close.outcome]).toEqual(['waits', 'waits']);
      unlock();
      await pass(LONGEST_PAUSE_MS);

      expect([write.outcome, close.outcome]).toEqual([true, undefined]);
    });

    it('would block the process if the driver waited (the control)', async () => {
      const { store, handle, longestMs, lock, unlock } = await setUp(connect);
      handle.exec(`PRAGMA busy_timeout = ${HELD_MS + 100}`);
      lock();
      const seen = watched(store.revoke(record.id, 'acme', CREATED));
      await nextTurn();

      expect(longestMs()).toBeGreaterThan(HELD_MS);
      unlock();
      await pass(LONGEST_PAUSE_MS);
      expect(seen.outcome).toBe(true);
    });
  },
);

describe.each(DRIVERS)(
  'a SQLite store while another process recovers the log, over %s',
  (_, connect) => {
    it('makes reads wait without blocking the event loop, and succeed afterwards', async () => {
      const { handle } = await setUp(connect);
      const failing = failingReads(handle, busyError(connect));
      const store = SqliteTokenStore.open(failing.handle);
      failing.fail(true);
      const seen = watched(store.find([record.id]));
      await pass(GIVE_UP_MS - LONGEST_PAUSE_MS);
      expect(seen.outcome).toBe('waits');
      failing.fail(false);
      await pass(LONGEST_PAUSE_MS);
      expect(seen.outcome).toEqual([record]);

      failing.fail(true);
      const refused = watched(store.find([record.id]));
      await pass(GIVE_UP_MS + LONGEST_PAUSE_MS);
      expect(refused.outcome).toBe('store_unavailable');
    });
  },
);

/** A handle whose reads can fail as if another process recovered the log. */
function failingReads(inner: SqliteHandle, error: Error) {
  let isFailing = false;
  const handle: SqliteHandle = {
    exec: (sql) => inner.exec(sql),
    prepare(sql) {
      const statement = inner.prepare(sql);
      const get = statement.get.bind(statement);
      statement.get = (...values) => {
        if (isFailing) throw error;
        return get(...values);
      };
      return statement;
    },
    isTransaction: false,
  };
  return {
    handle,
    fail(failing: boolean) {
      isFailing = failing;
    },
  };
}

function busyError(connect: (path: string) => Handle): Error {
  const path = newFile();
  const [holder, second] = [connect(path), connect(path)];
  holder.exec('BEGIN EXCLUSIVE');
  second.exec('PRAGMA busy_timeout = 0');
  try {
    second.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    return error as Error;
  } finally {
    holder.close();
    second.close();
  }
  throw new Error('was not locked');
}
