import {
  OTHER_SCOPES,
  type UsageRecord,
  type UsageTotals,
  type UsedScope,
} from '../ports/usage-store.ts';
import type { TokenId, TokenRecord } from '../token/record.ts';

/** How often, and when last, a scope of a token allowed something. */
export interface ScopeUsage {
  /** The scope, or `other`. */
  readonly scope: string;
  /** 0 for a scope that was never used. */
  readonly uses: number;
  /** Absent if it was never used. */
  readonly lastUsedAt?: Date;
}

/** How a token is used. */
export interface TokenUsage {
  /** How often `verify` accepted it, also by scopes that it does not hold any more. */
  readonly uses: number;
  /** How often `verify` refused it. */
  readonly refusals: number;
  /** When `verify` last accepted it; absent if it never did. */
  readonly lastUsedAt?: Date;
  /**
   * The uses of all tokens that were derived from it, at any depth, also of those that are gone; absent if
   * there were none. They do not count as its own.
   */
  readonly derived?: Pick<TokenUsage, 'uses' | 'lastUsedAt'>;
  /**
   * All scopes that the token holds, in canonical order, also unused ones. 256 scopes of a token are
   * counted apart. If more were used, one more entry, `other`, has the uses of all the rest.
   */
  readonly scopes: readonly ScopeUsage[];
}

/** The counts of one token. */
export interface UsageCounts {
  /** Of the token itself. */
  readonly own: UsageRecord | undefined;
  /** Of the tokens that were derived from it, by the scopes of this one that allowed their uses. */
  readonly derived: UsageRecord | undefined;
}

/** The id under which a store counts the uses of what was derived from a token. No token has it. */
export function derivedId(id: TokenId): TokenId {
  return `${id}${DERIVED}` as TokenId;
}

/** The token that the counts under an id are about. */
export function countedToken(id: TokenId): TokenId {
  return (id.endsWith(DERIVED) ? id.slice(0, -DERIVED.length) : id) as TokenId;
}

const DERIVED = '+';

/** The uses of a token and of what was derived from it: whoever takes a scope away takes it from both. */
export function allUses({ own, derived }: UsageCounts): UsageRecord | undefined {
  return combined(own, derived);
}

/** Adds up the counts of one token, such as those in the store and those that are not written yet. */
export function combined(
  one: UsageRecord | undefined,
  other: UsageRecord | undefined,
): UsageRecord | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const scopes = new Map<string, UsedScope>();
  for (const used of [...one.scopes, ...other.scopes]) {
    scopes.set(used.scope, sum(scopes.get(used.scope), used));
  }
  return { refusals: one.refusals + other.refusals, scopes: [...scopes.values()] };
}

/** The counts of a token, those by scope summed up. */
export function totalsOf(usage: UsageRecord | undefined): UsageTotals {
  let total: UsedScope | undefined;
  for (const used of usage?.scopes ?? []) total = sum(total, used);
  const refusals = usage?.refusals ?? 0;
  if (total === undefined) return { uses: 0, refusals };
  return { uses: total.uses, refusals, lastUsedAt: total.lastUsedAt };
}

/** Adds up totals of one token. */
export function combinedTotals(one: UsageTotals | undefined, other: UsageTotals): UsageTotals {
  if (one === undefined) return other;
  const last = latest(one.lastUsedAt, other.lastUsedAt);
  return {
    uses: one.uses + other.uses,
    refusals: one.refusals + other.refusals,
    ...(last && { lastUsedAt: last }),
  };
}

/** The usage of a token as its account sees it. */
export function usageOf(
  { scopes }: Pick<TokenRecord, 'scopes'>,
  { own, derived }: UsageCounts,
): TokenUsage {
  const used = new Map(own?.scopes.map((entry) => [entry.scope, entry]));
  const listed = used.has(OTHER_SCOPES) ? [...scopes, OTHER_SCOPES] : scopes;
  return Object.freeze({
    ...totalsOf(own),
    ...(derived !== undefined && { derived: derivedUsage(derived) }),
    scopes: Object.freeze(
      listed.map((scope) => Object.freeze({ ...(used.get(scope) ?? { scope, uses: 0 }) })),
    ),
  });
}

function derivedUsage(derived: UsageRecord): NonNullable<TokenUsage['derived']> {
  const { refusals: _, ...uses } = totalsOf(derived);
  return Object.freeze(uses);
}

function sum(one: UsedScope | undefined, other: UsedScope): UsedScope {
  if (one === undefined) return other;
  const lastUsedAt = latest(one.lastUsedAt, other.lastUsedAt);
  return { scope: one.scope, uses: one.uses + other.uses, lastUsedAt };
}

function latest(one: Date, other: Date): Date;
function latest(one: Date | undefined, other: Date | undefined): Date | undefined;
function latest(one: Date | undefined, other: Date | undefined): Date | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return one > other ? one : other;
}
