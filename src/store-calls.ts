import { withDeadline } from './deadline.ts';
import { type StoreFailure, storeFailure } from './errors.ts';

/** How the calls of a store are made. */
export interface StoreCallOptions {
  readonly deadlineMs: number;
  /** Called with every failure, before it is thrown or passed over. */
  readonly onFailure: (failure: StoreFailure) => void;
}

/**
 * Makes the calls of a store of the host that counts something: each ends by its deadline, and every
 * failure is a {@link StoreFailure}, because errors of drivers may quote what was sent.
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

  /** Reports a failure, to be thrown or passed over. */
  failure(failure: StoreFailure): StoreFailure {
    this.#options.onFailure(failure);
    return failure;
  }
}
