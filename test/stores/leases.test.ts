import { copyFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { windowOf, windowStart } from '../../src/limits/windows.ts';
import type { LeaseStore, LeaseWant, UnspentLease } from '../../src/ports/lease-store.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { MemoryLeases } from '../../src/stores/memory/leases.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { SqliteLeases } from '../../src/stores/sqlite/leases.ts';
import { SqliteUsage } from '../../src/stores/sqlite/usage.ts';
import { leaseContract, manualClock } from '../../src/testing/index.ts';
import type { Clock } from '../../src/time/clock.ts';
import { codeOf, refusalOf, SCOPE, setUp } from '../support.ts';
import { newFile, opened, PLACES } from './sqlite/handles.ts';

/** In seconds. */
const DAY = 86_400;
const FAR = new Date('2100-01-01T00:00:00.000Z');

function want(fields: Partial<LeaseWant> = {}): LeaseWant {
  return { key: 'one/uses', window: 0, limit: 10, want: 1, until: FAR, ...fields };
}

describe('memory lease store', () => {
  it.each(leaseContract)('$name', (promise) => promise.run(() => new MemoryTokenStore().leases));

  it('uses the clock it is given', async () => {
    const clock = manualClock(new Date('2001-01-01T00:00:00.000Z'));
    const store = new MemoryTokenStore({ clock }).leases;
    const ended = want({ until: new Date('2001-01-01T00:00:10.000Z') });
    expect(await store.take([ended])).toEqual([1]);
    clock.advance(9.999);
    expect(await store.take([ended])).toEqual([1]);
    clock.advance(0.001);
    expect(await store.take([ended])).toEqual([0]);

    const next = want({ start: new Date('2001-01-01T00:00:10.001Z') });
    expect(await store.take([next])).toEqual([0]);
    clock.advance(0.001);
    expect(await store.take([next])).toEqual([1]);

    // By the clock of the machine, that window ended long ago.
    expect(await new MemoryTokenStore().leases.take([ended])).toEqual([0]);
  });

  it('enforces the rate of a service with the same clock, even in the past', async () => {
    const clock = manualClock(new Date('2001-01-01T00:00:00.000Z'));
    const { tokens } = setUp({ clock, limits: true });
    const limits = { uses: 3, rate: { uses: 2, seconds: 60 } };
    const { value } = await tokens.issue({ account: 'ada', scopes: [SCOPE], limits });
    const verify = async () => (await tokens.verify(value, { scope: SCOPE })).ok;

    expect([await verify(), await verify(), await verify()]).toEqual([true, true, false]);
    clock.advance(60);
    expect([await verify(), await verify()]).toEqual([true, false]);
  });

  it('grants nothing again if its clock steps back over the end of a window', async () => {
    const start = new Date('2001-01-01T00:00:01.000Z');
    let now = start;
    const store = new MemoryTokenStore({ clock: { now: () => now } }).leases;
    const before = want({ window: 1, until: start, limit: 1 });
    const after = want({ window: 2, until: new Date(start.getTime() + 1000), limit: 1 });
    now = new Date(start.getTime() - 1);
    expect(await store.take([before])).toEqual([1]);
    now = start;
    expect(await store.take([after])).toEqual([1]);
    now = new Date(start.getTime() - 1);

    expect(await store.take([before])).toEqual([0]);
  });

  it.each([
    ['is not a clock', 7],
    ['returns an invalid date', { now: () => new Date(Number.NaN) }],
  ])('refuses a clock that %s', (_, clock) => {
    expect(() => new MemoryTokenStore({ clock: clock as Clock })).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
  });
});

describe.each(PLACES)('leases in SQLite %s', (_, make) => {
  it.each(leaseContract)('$name', (promise) => promise.run(() => new SqliteLeases(make())));
});

describe('leases in SQLite', () => {
  it('still counts granted leases when the file is opened again', async () => {
    const file = newFile();
    const first = new SqliteLeases(file);
    expect(await first.take([want({ want: 7 })])).toEqual([7]);
    await first.close();

    await first.close();

    const second = opened(new SqliteLeases(file));
    expect(await second.take([want({ want: 7 })])).toEqual([3]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('uses one row for a total, and two rows for all windows of a rate', async () => {
    const handle = opened(new DatabaseSync(newFile()));
    const store = new SqliteLeases(handle);
    await store.take([want()]);
    for (let window = 1000; window <= 1005; window += 1) {
      expect(await store.take([want({ key: 'rate', window, want: 7 })])).toEqual([7]);
      expect(await store.take([want({ key: 'rate', window: window + 2 })])).toEqual([0]);
      // Ends the window.
      handle.exec("UPDATE leases SET ends_at = 1000 WHERE lease_key = 'rate'");
    }
    expect(await store.take([want({ key: 'rate', window: 1003 })])).toEqual([0]);

    const rows = handle.prepare('SELECT period FROM leases ORDER BY period').all();
    expect(rows).toEqual([{ period: 0 }, { period: 1004 }, { period: 1005 }]);
  });

  it('keeps the row of the current window for it, and grants nothing of a later one', async () => {
    const store = opened(new SqliteLeases(newFile()));
    const today = windowOf(Date.now(), DAY);
    const take = async (window: number) => {
      const [start, until] = [windowStart(window, DAY), windowStart(window + 1, DAY)];
      const dates = { start: new Date(start), until: new Date(until) };
      return (await store.take([want({ window, ...dates, want: 7 })]))[0];
    };

    expect(await take(today + 2)).toBe(0);
    expect(await take(today + 1)).toBe(0);
    expect(await take(today)).toBe(7);
  });

  it('grants nothing in a call if one of its wants is refused', async () => {
    const store = opened(new SqliteLeases(newFile()));
    const taking = store.take([want({ want: 10 }), want({ key: 'x'.repeat(65) })]);

    expect(await codeOf(taking)).toBe('invalid_request');
    expect(await store.take([want({ want: 10 })])).toEqual([10]);
  });

  it('takes part in a transaction of the host', async () => {
    const handle = opened(new DatabaseSync(newFile()));
    const store = new SqliteLeases(handle);
    handle.exec('BEGIN');
    await store.take([want({ want: 10 })]);
    handle.exec('ROLLBACK');

    expect(await store.take([want({ want: 10 })])).toEqual([10]);
  });

  it.each([
    ['removed', (file: string) => rmSync(file)],
    ['renamed', (file: string) => renameSync(file, `${file}.old`)],
    [
      'replaced by a copy',
      (file: string) => {
        copyFileSync(file, `${file}.new`);
        renameSync(`${file}.new`, file);
      },
    ],
    ['left without its log', (file: string) => rmSync(`${file}-wal`)],
  ])('grants nothing from a file that was %s', async (_, change) => {
    const file = newFile();
    const store = opened(new SqliteLeases(file));
    expect(await store.take([want({ want: 4 })])).toEqual([4]);
    change(file);

    expect(await codeOf(store.take([want()]))).toBe('store_corrupt');
    expect(await codeOf(store.giveBack([{ key: 'one/uses', window: 0, amount: 1 }]))).toBe(
      'store_corrupt',
    );
    expect(await codeOf(store.doctor())).toBe('store_corrupt');
  });

  it('goes on when its host leaves WAL mode', async () => {
    const handle = opened(new DatabaseSync(newFile()));
    const store = new SqliteLeases(handle);
    await store.take([want({ want: 4 })]);
    handle.exec('PRAGMA journal_mode = DELETE');

    expect(await store.take([want({ want: 9 })])).toEqual([6]);
  });

  it('waits for the lock of another connection, and rejects if it is held too long', async () => {
    const file = newFile();
    const store = opened(new SqliteLeases(file));
    await store.giveBack([{ key: 'other', window: 0, amount: 1 }]);
    const other = opened(new DatabaseSync(file));
    other.exec('BEGIN IMMEDIATE');
    const taking = store.take([want()]);
    await turn();
    other.exec('COMMIT');
    expect(await taking).toEqual([1]);

    other.exec('BEGIN IMMEDIATE');
    expect(await codeOf(store.take([want()]))).toBe('store_unavailable');
    other.exec('COMMIT');
    expect(await store.take([want({ want: 10 })])).toEqual([9]);
  });

  it('writes concurrent calls in one transaction', async () => {
    const handle = opened(new DatabaseSync(newFile()));
    const sent: string[] = [];
    const exec = handle.exec.bind(handle);
    handle.exec = (sql) => {
      sent.push(sql);
      exec(sql);
    };
    const store = new SqliteLeases(handle);
    sent.length = 0;
    const lease = { key: 'one/uses', window: 0, amount: 2 };
    const calls = [store.take([want({ want: 6 })]), store.giveBack([lease])];

    expect(await Promise.all([...calls, store.take([want({ want: 9 })])])).toEqual([
      [6],
      undefined,
      [6],
    ]);
    expect(sent).toEqual(['SAVEPOINT tokenwright', 'RELEASE tokenwright']);
  });

  it('does not fail concurrent calls when one of them fails', async () => {
    const handle = opened(new DatabaseSync(newFile()));
    const store = new SqliteLeases(handle);
    handle.exec(`CREATE TRIGGER refused BEFORE INSERT ON leases WHEN NEW.lease_key = 'bad'
      BEGIN SELECT RAISE(ABORT, 'refused'); END`);
    const bad = [want({ want: 4 }), want({ key: 'bad' })];
    const calls = [[want({ want: 7 })], bad, [want({ want: 7 })]].map((each) => store.take(each));

    expect(await Promise.allSettled(calls)).toEqual([
      { status: 'fulfilled', value: [7] },
      { status: 'rejected', reason: expect.objectContaining({ code: 'store_unavailable' }) },
      { status: 'fulfilled', value: [3] },
    ]);
  });

  it('carries out pending calls before it closes', async () => {
    const file = newFile();
    const store = new SqliteLeases(file);
    await store.giveBack([{ key: 'other', window: 0, amount: 1 }]);
    const other = opened(new DatabaseSync(file));
    other.exec('BEGIN IMMEDIATE');
    const taking = store.take([want({ want: 10 })]);
    await turn();
    const closing = store.close();
    other.exec('COMMIT');
    await closing;

    expect(await taking).toEqual([10]);
    expect(await codeOf(store.take([want()]))).toBe('store_unavailable');
  });

  it.each([
    ['tokens', (file: string) => SqliteTokenStore.openFile(file).close()],
    ['usage', (file: string) => opened(new SqliteUsage(file)).since()],
  ])('refuses a database with %s', async (_, open) => {
    const file = newFile();
    await open(file);
    expect(await refusalOf(opened(new SqliteLeases(file)).take([want()]))).toMatchObject({
      code: 'store_unavailable',
      details: { reason: 'not_opened' },
    });
  });

  it('refuses a database of a later schema version', () => {
    const handle = opened(new DatabaseSync(newFile()));
    new SqliteLeases(handle);
    handle.exec(`PRAGMA user_version = ${2 * 65_536 + 2}`);
    expect(() => new SqliteLeases(handle)).toThrow(
      expect.objectContaining({ code: 'invalid_options', details: { reason: 'schema_newer' } }),
    );
  });

  it('sets synchronous = FULL', () => {
    const handle = opened(new DatabaseSync(newFile()));
    new SqliteLeases(handle);
    expect(handle.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: 2 });
  });
});

/** Is not atomic: two callers may read the same count before one of them writes. */
class ReadsThenWrites implements LeaseStore {
  protected readonly counts = new Map<string, { amount: number; until: number }>();

  async take(wants: readonly LeaseWant[]): Promise<number[]> {
    const granted: number[] = [];
    for (const { key, window, limit, want, until } of wants) {
      const name = `${key} ${window}`;
      const count = this.counts.get(name) ?? { amount: 0, until: 0 };
      await turn();
      const amount =
        until.getTime() <= Date.now() ? 0 : Math.max(0, Math.min(want, limit - count.amount));
      const latest = Math.max(count.until, until.getTime());
      if (amount > 0 || this.counts.has(name)) {
        this.counts.set(name, { amount: count.amount + amount, until: latest });
      }
      granted.push(amount);
    }
    return granted;
  }

  async giveBack(leases: readonly UnspentLease[]): Promise<void> {
    for (const { key, window, amount } of leases) {
      const count = this.counts.get(`${key} ${window}`);
      if (count !== undefined) count.amount = Math.max(0, count.amount - amount);
    }
  }

  async purge(before: Date, limit: number): Promise<number> {
    const end = Math.min(before.getTime(), Date.now());
    const ended = [...this.counts].filter(([, { until }]) => until < end);
    for (const [name] of ended.slice(0, limit)) this.counts.delete(name);
    return Math.min(limit, ended.length);
  }
}

/** Stores that each break one promise, and the cases that must fail. */
const BROKEN: [string, new () => LeaseStore, RegExp][] = [
  ['reads first and writes later', ReadsThenWrites, /to many at the same time$/],
  [
    'grants all or nothing',
    class extends MemoryLeases {
      override async take(wants: readonly LeaseWant[]) {
        const granted = await super.take(wants);
        const missed = wants.filter((want, index) => granted[index] !== want.want);
        await this.giveBack(
          missed.map(({ key, window }) => ({
            key,
            window,
            amount: granted[wants.findIndex((want) => want.key === key)] as number,
          })),
        );
        return granted.map((amount, index) => (amount === wants[index]?.want ? amount : 0));
      }
    },
    /then the rest, then nothing/,
  ],
  [
    'counts all windows together',
    class extends MemoryLeases {
      override take(wants: readonly LeaseWant[]) {
        return super.take(wants.map((want) => ({ ...want, window: 0 })));
      }
    },
    /counts each window separately/,
  ],
  [
    'ignores the case of keys',
    class extends MemoryLeases {
      override take(wants: readonly LeaseWant[]) {
        return super.take(wants.map((want) => ({ ...want, key: want.key.toLowerCase() })));
      }
    },
    /compares keys byte by byte/,
  ],
  [
    'grants leases in ended windows',
    class extends MemoryLeases {
      override take(wants: readonly LeaseWant[]) {
        return super.take(wants.map((want) => ({ ...want, until: new Date(8.64e15) })));
      }
    },
    /neither grants nor counts uses after the end/,
  ],
  [
    'keeps the first limit it was given',
    class extends MemoryLeases {
      readonly #limits = new Map<string, number>();
      override take(wants: readonly LeaseWant[]) {
        return super.take(
          wants.map((want) => {
            const limit = this.#limits.get(want.key) ?? want.limit;
            this.#limits.set(want.key, limit);
            return { ...want, limit };
          }),
        );
      }
    },
    /a higher limit adds/,
  ],
  [
    'ignores giveBack',
    class extends MemoryLeases {
      override async giveBack() {}
    },
    /giveBack: makes exactly the given uses available again/,
  ],
  [
    'adds more than was taken on giveBack',
    class extends MemoryLeases {
      readonly #spare = new Map<string, number>();
      override async giveBack(leases: readonly UnspentLease[]) {
        for (const { key, amount } of leases) {
          this.#spare.set(key, (this.#spare.get(key) ?? 0) + amount);
        }
      }
      override async take(wants: readonly LeaseWant[]) {
        return super.take(
          wants.map((want) => {
            const limit = want.limit + (this.#spare.get(want.key) ?? 0);
            return { ...want, limit };
          }),
        );
      }
    },
    /never makes more than the limit available/,
  ],
  [
    'purges windows that have not ended',
    class extends MemoryLeases {
      override purge(_before: Date, limit: number) {
        return super.purge(new Date(8.64e15), limit);
      }
    },
    /forgets only what ended before/,
  ],
  [
    'purges by the clock of the caller',
    class extends MemoryLeases {
      readonly #clock: { isFast: boolean };
      constructor() {
        const clock = { isFast: false };
        super({ now: () => (clock.isFast ? new Date(8.64e15) : new Date()) });
        this.#clock = clock;
      }
      override async purge(before: Date, limit: number) {
        this.#clock.isFast = true;
        const count = await super.purge(before, limit);
        this.#clock.isFast = false;
        return count;
      }
    },
    /keeps what has not ended/,
  ],
  [
    'keeps the first end of a window',
    class extends MemoryLeases {
      readonly #ends = new Map<string, Date>();
      override take(wants: readonly LeaseWant[]) {
        return super.take(
          wants.map((want) => {
            const until = this.#ends.get(want.key) ?? new Date(want.until);
            this.#ends.set(want.key, until);
            return { ...want, until };
          }),
        );
      }
    },
    /keeps a count whose end a later call has postponed/,
  ],
];

describe('leaseContract', () => {
  it.each(BROKEN)('fails a store that %s', async (_, Broken, expected) => {
    const failed: string[] = [];
    for (const { name, run } of leaseContract) {
      await run(() => new Broken()).catch(() => failed.push(name));
    }

    expect(failed.some((name) => expected.test(name))).toBe(true);
    expect(failed.length).toBeLessThan(leaseContract.length);
  });

  it('has a unique name for each case', () => {
    const names = leaseContract.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
