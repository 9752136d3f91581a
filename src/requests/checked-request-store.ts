import { corruptRequest, isTokenError } from '../errors.ts';
import { type StoreCallOptions, StoreCalls } from '../ports/calls.ts';
import {
  isRequestRecord,
  type RequestBounds,
  type RequestKey,
  type RequestRecord,
  type RequestStore,
} from '../ports/request-store.ts';

/** What a store may refuse without being in trouble. */
const REFUSALS: ReadonlySet<string> = new Set(['code_taken', 'quota_exceeded']);

/**
 * The store of requests of the host: every call ends by its deadline, every answer is checked, and every
 * failure is a {@link StoreFailure}.
 */
export class CheckedRequestStore {
  readonly #store: RequestStore;
  readonly #calls: StoreCalls;

  constructor(store: RequestStore, options: StoreCallOptions) {
    this.#store = store;
    this.#calls = new StoreCalls(options);
  }

  /**
   * Stores a request.
   *
   * @returns whether it did: false if its code is taken
   * @throws {TokenError} `quota_exceeded`, `store_unavailable`
   */
  async insert(record: RequestRecord, bounds: RequestBounds): Promise<boolean> {
    const refused = await this.#calls.call(async () => {
      try {
        await this.#store.insert(record, bounds);
        return undefined;
      } catch (error) {
        if (isTokenError(error) && REFUSALS.has(error.code)) return error;
        throw error;
      }
    });
    if (refused === undefined) return true;
    if (refused.code === 'code_taken') return false;
    throw refused;
  }

  /** @throws {TokenError} `store_unavailable`, `store_corrupt` */
  async find(key: RequestKey): Promise<RequestRecord | undefined> {
    const found: unknown = await this.#calls.call(() => this.#store.find(key));
    if (found === undefined) return undefined;
    if (isRequestRecord(found) && isOf(found, key)) return found;
    throw this.#calls.failure(corruptRequest());
  }

  /** @throws {TokenError} `store_unavailable`, `store_corrupt`, `durability_unconfirmed` */
  async replace(next: RequestRecord): Promise<boolean> {
    const isReplaced: unknown = await this.#calls.call(() => this.#store.replace(next));
    if (typeof isReplaced === 'boolean') return isReplaced;
    throw this.#calls.failure(corruptRequest());
  }
}

function isOf({ id, userCode }: RequestRecord, key: RequestKey): boolean {
  return 'id' in key ? key.id === id : key.userCode === userCode;
}
