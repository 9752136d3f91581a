import { withDeadline } from '../deadline.ts';
import { corruptLeases, type StoreFailure, storeFailure } from '../errors.ts';
import type { LeaseStore } from '../lease-store.ts';

/** How the calls of a lease store are checked. */
export interface LeaseCheckOptions {
  readonly deadlineMs: number;
  /** Called with every failure, before it is thrown or passed over. */
  readonly onFailure: (failure: StoreFailure) => void;
}

type Wants = Parameters<LeaseStore['take']>[0];

/**
 * The lease store of the host: every call ends by its deadline, every answer is checked, and every failure
 * is a {@link StoreFailure}.
 */
export class CheckedLeaseStore {
  readonly #store: LeaseStore;
  readonly #options: LeaseCheckOptions;

  constructor(store: LeaseStore, options: LeaseCheckOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** @throws {TokenError} `store_unavailable`, `store_corrupt` */
  async take(wants: Wants): Promise<readonly number[]> {
    const answer: unknown = await this.#call(() => this.#store.take(wants));
    if (isGranted(answer, wants)) return answer;
    throw this.#failure(corruptLeases());
  }

  /** Never rejects: what could not be given back is lost, and nobody can use too much for that. */
  async giveBack(leases: Parameters<LeaseStore['giveBack']>[0]): Promise<void> {
    await this.#call(() => this.#store.giveBack(leases)).catch(() => {});
  }

  /** @throws {TokenError} `store_unavailable` */
  purge(before: Date, limit: number): Promise<number> {
    return this.#call(() => this.#store.purge(before, limit));
  }

  /** @throws {TokenError} `store_unavailable` */
  async close(): Promise<void> {
    await this.#call(async () => this.#store.close?.());
  }

  async #call<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    try {
      return await withDeadline(call(), this.#options.deadlineMs);
    } catch (error) {
      throw this.#failure(storeFailure(error));
    }
  }

  #failure(failure: StoreFailure): StoreFailure {
    this.#options.onFailure(failure);
    return failure;
  }
}

/** A store that grants more than it was asked for must not make a token unlimited. */
function isGranted(answer: unknown, wants: Wants): answer is readonly number[] {
  if (!Array.isArray(answer) || answer.length !== wants.length) return false;
  return wants.every(({ want }, index) => {
    const granted: unknown = answer[index];
    return Number.isSafeInteger(granted) && (granted as number) >= 0 && (granted as number) <= want;
  });
}
