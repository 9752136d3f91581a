import type { StoreFailure, StorePart, StoreReason } from '../errors.ts';
import type { Events } from '../events.ts';

/** Notes what the calls of a store came to. */
export interface StoreHealth {
  /** Takes each failure, before it is thrown or ignored. */
  onFailure(failure: StoreFailure): void;
  /** Notes that the store has answered. */
  onAnswer(): void;
}

/** Emits each failure of a store, and its first answer after failures. */
export class ReportedHealth implements StoreHealth {
  readonly #events: Events;
  readonly #now: () => number;
  readonly #store: StorePart | undefined;
  #outage: { readonly since: number; readonly reason: StoreReason; failed: number } | undefined;

  constructor(events: Events, now: () => number, store?: StorePart) {
    this.#events = events;
    this.#now = now;
    this.#store = store;
  }

  readonly onFailure = (failure: StoreFailure): void => {
    this.#events.storeTrouble(failure, this.#store);
    // One unreadable record does not make an outage: others can be read.
    if (failure.code !== 'store_unavailable') return;
    const reason = failure.details?.reason ?? 'unknown';
    this.#outage ??= { since: this.#now(), reason, failed: 0 };
    this.#outage.failed += 1;
  };

  readonly onAnswer = (): void => {
    if (this.#outage === undefined) return;
    const { since, reason, failed } = this.#outage;
    this.#outage = undefined;
    const durationMs = Math.max(0, this.#now() - since);
    this.#events.storeRecovered({ reason, durationMs, failed }, this.#store);
  };
}
