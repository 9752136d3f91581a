import { corruptLeases } from '../errors.ts';
import { type StoreCallOptions, StoreCalls } from '../ports/calls.ts';
import type { LeaseStore } from '../ports/lease-store.ts';
import { isCount } from '../token/answers.ts';

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

  /**
   * Takes uses. What is granted after the deadline goes back.
   *
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   */
  async take(wants: Wants): Promise<readonly number[]> {
    let taking: Promise<readonly number[]> | undefined;
    const take = () => {
      taking = this.#store.take(wants);
      return taking;
    };
    let answer: unknown;
    try {
      answer = await this.#calls.call(take);
    } catch (error) {
      void this.#giveBackLate(wants, taking);
      throw error;
    }
    if (isGranted(answer, wants)) return answer;
    throw this.#calls.failure(corruptLeases());
  }

  async #giveBackLate(wants: Wants, taking: Promise<readonly number[]> | undefined): Promise<void> {
    const granted: unknown = await taking?.catch(() => undefined);
    if (!isGranted(granted, wants)) return;
    const leases = wants.map(({ key, window }, index) => {
      return { key, window, amount: granted[index] as number };
    });
    await this.giveBack(leases.filter(({ amount }) => amount > 0));
  }

  /** Never rejects: if the call fails, the uses are lost, and no limit is exceeded. */
  async giveBack(leases: Parameters<LeaseStore['giveBack']>[0]): Promise<void> {
    await this.#calls.call(() => this.#store.giveBack(leases)).catch(() => {});
  }

  /** @throws {TokenError} `store_unavailable`, `store_corrupt` */
  async purge(before: Date, limit: number): Promise<number> {
    const count: unknown = await this.#calls.call(() => this.#store.purge(before, limit));
    if (isCount(count)) return count;
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
