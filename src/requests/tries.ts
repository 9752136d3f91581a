import { createHash } from 'node:crypto';
import { TokenError } from '../errors.ts';
import type { CheckedLeaseStore } from '../limits/checked-lease-store.ts';
import type { LeaseStore, LeaseWant, UnspentLease } from '../ports/lease-store.ts';

/** Milliseconds in which tries are counted together, from each multiple of them since 1970. @bound */
export const TRY_WINDOW_MS = 600_000;

/** Wrong user codes of an account or from an address, in one window. @bound */
export const MAX_WRONG_CODES = 10;

/** Requests from an address, in one window. @bound */
export const MAX_OPENED_BY_ADDRESS = 20;

/** Requests to elevate tokens of one root, in one window. @bound */
export const MAX_OPENED_BY_ROOT = 10;

/** What is counted, and up to how many. */
const BOUNDS = {
  code: MAX_WRONG_CODES,
  open: MAX_OPENED_BY_ADDRESS,
  root: MAX_OPENED_BY_ROOT,
} as const;

/** Somebody whose tries are counted. */
export interface Trier {
  readonly what: keyof typeof BOUNDS;
  readonly who: string;
}

/** Tries that were taken. Those that turn out to be right are given back. */
export interface TakenTries {
  giveBack(): Promise<void>;
}

/**
 * Counts tries in the lease store, so exactly over all processes: each is taken before it is made. Without a
 * lease store, each process counts its own.
 */
export class Tries {
  readonly #store: CheckedLeaseStore;

  constructor(store: CheckedLeaseStore) {
    this.#store = store;
  }

  /**
   * Takes a try of each of these.
   *
   * @throws {TokenError} `rate_limited` if one of them has none left; `store_unavailable`
   */
  async take(triers: readonly Trier[], now: number): Promise<TakenTries> {
    const window = Math.floor(now / TRY_WINDOW_MS);
    const end = (window + 1) * TRY_WINDOW_MS;
    // Neither a clock that is late nor one that is fast may refuse everybody.
    const until = new Date(end + TRY_WINDOW_MS);
    const wants = triers.map((trier) => {
      return { key: keyOf(trier, window), window: 0, limit: BOUNDS[trier.what], want: 1, until };
    });
    if (wants.length === 0) return { giveBack: async () => {} };
    const granted = await this.#store.take(wants);
    const taken = wants
      .filter((_, at) => granted[at] === 1)
      .map(({ key }) => ({ key, window: 0, amount: 1 }));
    if (taken.length === wants.length) return { giveBack: () => this.#store.giveBack(taken) };
    await this.#store.giveBack(taken);
    throw new TokenError(
      'rate_limited',
      'there were too many wrong codes, or too many requests; try again later',
      { retryAfterSeconds: Math.ceil((end - now) / 1000) },
    );
  }
}

/** A name of at most 64 bytes, whatever the account and the address are. */
function keyOf({ what, who }: Trier, window: number): string {
  return `${what}:${createHash('sha256').update(who).digest('base64url')}:${window}`;
}

/** Counts the tries of one process. */
export class LocalLeases implements LeaseStore {
  readonly #counts = new Map<string, { amount: number; readonly until: number }>();

  async take(wants: readonly LeaseWant[]): Promise<number[]> {
    return wants.map(({ key, limit, want, until }) => {
      const count = this.#counts.get(key) ?? { amount: 0, until: until.getTime() };
      this.#counts.set(key, count);
      const granted = Math.min(want, limit - count.amount);
      count.amount += granted;
      return granted;
    });
  }

  async giveBack(leases: readonly UnspentLease[]): Promise<void> {
    for (const { key, amount } of leases) {
      const count = this.#counts.get(key);
      if (count !== undefined) count.amount -= amount;
    }
  }

  async purge(before: Date): Promise<number> {
    for (const [key, { until }] of this.#counts) {
      if (until < before.getTime()) this.#counts.delete(key);
    }
    return 0;
  }
}
