import { type StoreFailure, storeFailure } from '../errors.ts';
import { withDeadline } from '../time/deadline.ts';

/** How a store is called. */
export interface StoreCallOptions {
  readonly deadlineMs: number;
  /** Called with every failure, before it is thrown or ignored. */
  readonly onFailure: (failure: StoreFailure) => void;
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
      return await withDeadline(call(), this.#options.deadlineMs);
    } catch (error) {
      throw this.failure(storeFailure(error));
    }
  }

  /** Reports a failure, and returns it. */
  failure(failure: StoreFailure): StoreFailure {
    this.#options.onFailure(failure);
    return failure;
  }
}
