import { corruptLeases } from '../errors.ts';
import type { LeaseStore } from '../lease-store.ts';
import { type StoreCallOptions, StoreCalls } from '../store-calls.ts';

type Wants = Parameters<LeaseStore['take']>[0];

/**
 * The lease store of the host: every call ends by its deadline, every answer is checked, and every failure
 * is a {@link StoreFailure}.
 */
export class CheckedLeaseStore {
  readonly #store: LeaseStore;
  readonly #calls: StoreCalls;

  constructor(store: LeaseStore, options: StoreCallOptions) {
    this.#store = store;
    this.#calls = new StoreCalls(options);
  }

  /** @throws {TokenError} `store_unavailable`, `store_corrupt` */
  async take(wants: Wants): Promise<readonly number[]> {
    const answer: unknown = await this.#calls.call(() => this.#store.take(wants));
    if (isGranted(answer, wants)) return answer;
    throw this.#calls.failure(corruptLeases());
  }

  /** Never rejects: if the call fails, the uses are lost, and no limit is exceeded. */
  async giveBack(leases: Parameters<LeaseStore['giveBack']>[0]): Promise<void> {
    await this.#calls.call(() => this.#store.giveBack(leases)).catch(() => {});
  }

  /** @throws {TokenError} `store_unavailable`, `store_corrupt` */
  async purge(before: Date, limit: number): Promise<number> {
    const count: unknown = await this.#calls.call(() => this.#store.purge(before, limit));
    if (Number.isSafeInteger(count)) return count as number;
    throw this.#calls.failure(corruptLeases());
  }

  /** @throws {TokenError} `store_unavailable` */
  async close(): Promise<void> {
    await this.#calls.call(async () => this.#store.close?.());
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
