import type { LeaseStore, LeaseWant, UnspentLease } from '../../ports/lease-store.ts';
import { type Clock, systemClock, timeOf } from '../../time/clock.ts';

/** How many uses of one key and window are granted. */
interface Granted {
  readonly window: number;
  amount: number;
  until: number;
}

/** Counts the uses of limited tokens in memory. When the process ends, all limits start again. */
export class MemoryLeases implements LeaseStore {
  /** By key, and then by window. */
  readonly #counts = new Map<string, Map<number, Granted>>();
  readonly #clock: Clock;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  async take(wants: readonly LeaseWant[]): Promise<number[]> {
    const now = timeOf(this.#clock);
    return wants.map((want) => (isCurrent(want, now) ? this.#takeOne(want, now) : 0));
  }

  #takeOne({ key, window, limit, want, until }: LeaseWant, now: number): number {
    const windows = this.#counts.get(key) ?? new Map<number, Granted>();
    this.#counts.set(key, windows);
    let granted = windows.get(window);
    if (granted === undefined) {
      forgetEnded(windows, now);
      granted = { window, amount: 0, until: 0 };
      windows.set(window, granted);
    }
    const amount = Math.max(0, Math.min(want, limit - granted.amount));
    granted.amount += amount;
    granted.until = Math.max(granted.until, until.getTime());
    return amount;
  }

  async giveBack(leases: readonly UnspentLease[]): Promise<void> {
    for (const { key, window, amount } of leases) {
      const granted = this.#counts.get(key)?.get(window);
      if (granted !== undefined) granted.amount = Math.max(0, granted.amount - amount);
    }
  }

  async purge(before: Date, limit: number): Promise<number> {
    const ended = Math.min(before.getTime(), timeOf(this.#clock));
    let left = limit;
    for (const [key, windows] of this.#counts) {
      for (const { window, until } of windows.values()) {
        if (left === 0) return limit;
        if (until >= ended) continue;
        windows.delete(window);
        left -= 1;
      }
      if (windows.size === 0) this.#counts.delete(key);
    }
    return limit - left;
  }
}

function isCurrent({ start, until }: LeaseWant, now: number): boolean {
  return (start === undefined || start.getTime() <= now) && now < until.getTime();
}

/** How long a window is counted after its end, in case the clock steps back. */
const KEPT_MS = 60_000;

/** Drops the windows that ended a minute ago, because a rate adds new ones all the time. */
function forgetEnded(windows: Map<number, Granted>, now: number): void {
  for (const { window, until } of windows.values()) {
    if (until + KEPT_MS <= now) windows.delete(window);
  }
}
