import { MAX_COUNTED_SCOPES } from '../../bounds.ts';
import {
  type CountedTokens,
  OTHER_SCOPES,
  type UsageDelta,
  type UsageRecord,
  type UsageStore,
  type UsageTotals,
  type UseDelta,
} from '../../ports/usage-store.ts';
import { type Clock, systemClock, timeOf } from '../../time/clock.ts';
import type { TokenId } from '../../token/record.ts';

interface Counts {
  refusals: number;
  readonly scopes: Map<string, { uses: number; lastUsedAt: number }>;
}

/** Counts how tokens are used in memory. */
export class MemoryUsage implements UsageStore {
  readonly #tokens = new Map<TokenId, Counts>();
  readonly #since: number;

  /** @throws {TokenError} `invalid_options` if the clock does not return a valid time */
  constructor(clock: Clock = systemClock) {
    this.#since = timeOf(clock);
  }

  async add(batch: readonly UsageDelta[]): Promise<void> {
    for (const delta of batch) {
      const counts = this.#tokens.get(delta.id) ?? { refusals: 0, scopes: new Map() };
      this.#tokens.set(delta.id, counts);
      if (delta.scope === undefined) counts.refusals += delta.refusals;
      else addUses(counts, delta);
    }
  }

  async read(ids: readonly TokenId[]): Promise<(UsageRecord | undefined)[]> {
    return ids.map((id) => {
      const counts = this.#tokens.get(id);
      if (counts === undefined) return undefined;
      const scopes = Array.from(counts.scopes, ([scope, { uses, lastUsedAt }]) => {
        return { scope, uses, lastUsedAt: new Date(lastUsedAt) };
      });
      return { refusals: counts.refusals, scopes };
    });
  }

  async totals(ids: readonly TokenId[]): Promise<(UsageTotals | undefined)[]> {
    return ids.map((id) => {
      const counts = this.#tokens.get(id);
      return counts && totalsIn(counts);
    });
  }

  async forget(ids: readonly TokenId[]): Promise<void> {
    for (const id of ids) this.#tokens.delete(id);
  }

  async scan(): Promise<CountedTokens> {
    return { ids: [...this.#tokens.keys()] };
  }

  async since(): Promise<Date> {
    return new Date(this.#since);
  }
}

function totalsIn({ refusals, scopes }: Counts): UsageTotals {
  if (scopes.size === 0) return { uses: 0, refusals };
  let [sum, last] = [0, Number.NEGATIVE_INFINITY];
  for (const { uses, lastUsedAt } of scopes.values()) {
    sum += uses;
    last = Math.max(last, lastUsedAt);
  }
  return { uses: sum, refusals, lastUsedAt: new Date(last) };
}

function addUses({ scopes }: Counts, { scope, uses, lastUsedAt }: UseDelta): void {
  const isApart = scopes.has(scope) || countedApart(scopes) < MAX_COUNTED_SCOPES;
  const name = isApart ? scope : OTHER_SCOPES;
  const counted = scopes.get(name) ?? { uses: 0, lastUsedAt: lastUsedAt.getTime() };
  counted.uses += uses;
  counted.lastUsedAt = Math.max(counted.lastUsedAt, lastUsedAt.getTime());
  scopes.set(name, counted);
}

function countedApart(scopes: ReadonlyMap<string, unknown>): number {
  return scopes.size - (scopes.has(OTHER_SCOPES) ? 1 : 0);
}
