import { corruptUsage, isTokenError } from '../errors.ts';
import { type StoreCallOptions, StoreCalls } from '../ports/calls.ts';
import type {
  CountedTokens,
  UsageDelta,
  UsageRecord,
  UsageStore,
  UsageTotals,
  UsedScope,
} from '../ports/usage-store.ts';
import { isCount, isTime } from '../token/answers.ts';
import type { TokenId } from '../token/record.ts';
import { totalsOf } from './counts.ts';

/**
 * The usage store of the host: every call ends by its deadline, every answer is checked, and every
 * failure is a {@link StoreFailure}.
 */
export class CheckedUsageStore {
  readonly #store: UsageStore;
  readonly #calls: StoreCalls;

  constructor(store: UsageStore, options: StoreCallOptions) {
    this.#store = store;
    this.#calls = new StoreCalls(options);
  }

  /** Resolves to the tokens whose counts may be missing; none if all is well. Never rejects. */
  async add(batch: readonly UsageDelta[]): Promise<ReadonlySet<TokenId>> {
    let fault: unknown;
    const add = async () => {
      try {
        await this.#store.add(batch);
      } catch (error) {
        fault = error;
        throw error;
      }
    };
    const missing = new Set<TokenId>();
    try {
      await this.#calls.call(add);
    } catch {
      for (const { id } of batch) missing.add(id);
      for (const id of addedBy(fault)) missing.delete(id);
    }
    return missing;
  }

  async read(ids: readonly TokenId[]): Promise<readonly (UsageRecord | undefined)[]> {
    if (ids.length === 0) return [];
    const answer: unknown = await this.#calls.call(() => this.#store.read(ids));
    if (isListOf(answer, ids.length, isUsage)) return answer;
    throw this.#calls.failure(corruptUsage());
  }

  /** The counts of tokens, summed up by the store if it can. */
  async totals(ids: readonly TokenId[]): Promise<readonly (UsageTotals | undefined)[]> {
    if (ids.length === 0) return [];
    if (this.#store.totals === undefined) {
      return (await this.read(ids)).map((usage) => usage && totalsOf(usage));
    }
    const answer: unknown = await this.#calls.call(async () => this.#store.totals?.(ids));
    if (isListOf(answer, ids.length, isTotals)) return answer;
    throw this.#calls.failure(corruptUsage());
  }

  async forget(ids: readonly TokenId[]): Promise<void> {
    await this.#calls.call(() => this.#store.forget(ids));
  }

  /** One step of a pass over all counts; `undefined` if the store has none. */
  async scan(
    query: Parameters<NonNullable<UsageStore['scan']>>[0],
  ): Promise<CountedTokens | undefined> {
    if (this.#store.scan === undefined) return undefined;
    const answer: unknown = await this.#calls.call(async () => this.#store.scan?.(query));
    if (isCountedTokens(answer)) return answer;
    throw this.#calls.failure(corruptUsage());
  }

  /** Since when the counts are complete; `undefined` if the store cannot tell. */
  async since(): Promise<Date | undefined> {
    const answer: unknown = await this.#calls.call(async () => this.#store.since?.());
    if (answer === undefined || isTime(answer)) return answer;
    throw this.#calls.failure(corruptUsage());
  }

  async close(): Promise<void> {
    await this.#calls.call(async () => this.#store.close?.());
  }
}

/** The tokens that a failed call names as counted. */
function addedBy(error: unknown): readonly TokenId[] {
  const added = isTokenError(error) ? error.details?.['added'] : undefined;
  return Array.isArray(added) ? added : [];
}

function isListOf<Item>(
  answer: unknown,
  count: number,
  isItem: (item: unknown) => item is Item,
): answer is readonly (Item | undefined)[] {
  try {
    const isKnown = (item: unknown) => item === undefined || isItem(item);
    return Array.isArray(answer) && answer.length === count && answer.every(isKnown);
  } catch {
    // No object, a proxy, or a getter that throws.
    return false;
  }
}

function isCountedTokens(answer: unknown): answer is CountedTokens {
  try {
    const { ids, next } = answer as Partial<Record<keyof CountedTokens, unknown>>;
    const isPosition = next === undefined || typeof next === 'string';
    return isPosition && Array.isArray(ids) && ids.every((id) => typeof id === 'string');
  } catch {
    // No object, a proxy, or a getter that throws.
    return false;
  }
}

function isTotals(answer: unknown): answer is UsageTotals {
  const { uses, refusals, lastUsedAt } = answer as Partial<Record<keyof UsageTotals, unknown>>;
  return isCount(uses) && isCount(refusals) && (lastUsedAt === undefined || isTime(lastUsedAt));
}

function isUsage(answer: unknown): answer is UsageRecord {
  const { refusals, scopes } = answer as Partial<Record<keyof UsageRecord, unknown>>;
  return isCount(refusals) && Array.isArray(scopes) && scopes.every(isUsedScope);
}

function isUsedScope(entry: unknown): entry is UsedScope {
  const { scope, uses, lastUsedAt } = entry as Partial<Record<keyof UsedScope, unknown>>;
  return typeof scope === 'string' && isCount(uses) && isTime(lastUsedAt);
}
