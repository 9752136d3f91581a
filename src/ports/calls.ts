import { type StoreFailure, type StorePart, storeFailure } from '../errors.ts';
import { withDeadline } from '../time/deadline.ts';
import type { StoreHealth } from './store-health.ts';

/** How a store is called. */
export interface StoreCallOptions {
  readonly deadlineMs: number;
  readonly health: StoreHealth;
  readonly part: StorePart;
}

/**
 * Calls a usage store or a lease store of the host. Each call ends by its deadline, and every failure is a
 * {@link StoreFailure}, because errors of drivers may quote what was sent.
 */
export class StoreCalls {
  readonly #options: StoreCallOptions;

  constructor(options: StoreCallOptions) {
    this.#options = options;
  }

  /** @throws {TokenError} `store_unavailable`, `store_corrupt` */
  async call<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    try {
      const answer = await withDeadline(call(), this.#options.deadlineMs);
      this.#options.health.onAnswer();
      return answer;
    } catch (error) {
      throw this.failure(storeFailure(error, this.#options.part));
    }
  }

  /** Reports a failure, and returns it. */
  failure(failure: StoreFailure): StoreFailure {
    this.#options.health.onFailure(failure);
    return failure;
  }
}
