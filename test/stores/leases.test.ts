import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { LeaseStore, LeaseWant, UnspentLease } from '../../src/lease-store.ts';
import { MemoryLeaseStore } from '../../src/stores/memory-leases.ts';
import { leaseContract } from '../../src/testing/index.ts';

describe('memory lease store', () => {
  it.each(leaseContract)('$name', (promise) => promise.run(() => new MemoryLeaseStore()));
});

/** Reads what is granted, and writes it later: two callers may read the same. */
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
    const ended = [...this.counts].filter(([, { until }]) => until < before.getTime());
    for (const [name] of ended.slice(0, limit)) this.counts.delete(name);
    return Math.min(limit, ended.length);
  }
}

/** Stores that each break one promise, and the cases that have to notice. */
const BROKEN: [string, new () => LeaseStore, RegExp][] = [
  ['reads, and writes later', ReadsThenWrites, /to many at the same time$/],
  [
    'grants all or nothing',
    class extends MemoryLeaseStore {
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
    class extends MemoryLeaseStore {
      override take(wants: readonly LeaseWant[]) {
        return super.take(wants.map((want) => ({ ...want, window: 0 })));
      }
    },
    /counts each window apart/,
  ],
  [
    'folds case',
    class extends MemoryLeaseStore {
      override take(wants: readonly LeaseWant[]) {
        return super.take(wants.map((want) => ({ ...want, key: want.key.toLowerCase() })));
      }
    },
    /compares keys byte by byte/,
  ],
  [
    'grants what has ended',
    class extends MemoryLeaseStore {
      override take(wants: readonly LeaseWant[]) {
        return super.take(wants.map((want) => ({ ...want, until: new Date(8.64e15) })));
      }
    },
    /grants nothing of what has ended/,
  ],
  [
    'goes by the limit that it was given first',
    class extends MemoryLeaseStore {
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
    'lets nobody give back',
    class extends MemoryLeaseStore {
      override async giveBack() {}
    },
    /giveBack: makes what it is given available again/,
  ],
  [
    'gives back more than was taken',
    class extends MemoryLeaseStore {
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
    'forgets what goes on',
    class extends MemoryLeaseStore {
      override purge(_before: Date, limit: number) {
        return super.purge(new Date(8.64e15), limit);
      }
    },
    /forgets only what ended before/,
  ],
  [
    'keeps the first end',
    class extends MemoryLeaseStore {
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
    /keeps what a later call has put off/,
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

  it('has a name of its own for each case', () => {
    const names = leaseContract.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
