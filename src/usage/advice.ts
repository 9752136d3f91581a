import type { UsageRecord } from '../ports/usage-store.ts';
import { removable } from '../scope/removal.ts';
import type { ScopeSet } from '../scope/set.ts';
import type { TokenRecord } from '../token/record.ts';

/** The scopes of a token that it does not use, and all its other scopes. */
export interface TokenAdvice {
  /**
   * The scopes that were not used in that time, in canonical order. Pass them to `patch` as
   * `removeScopes`: nothing that was used is refused after that. Empty if the counts do not go back
   * that far.
   */
  readonly unused: readonly string[];
  /**
   * All other scopes of the token: those that were used, and those that overlap one of
   * them. All, if uses in that time were counted as `other`, or by a scope that was taken away: nobody
   * knows which of these they need.
   */
  readonly kept: readonly string[];
  /**
   * Since when the counts are about these scopes: when the token was issued, when its scopes last
   * changed, or when counting began, whichever was last.
   */
  readonly since: Date;
}

/** The facts for advice about a token. */
export interface AdviceFacts {
  /** The scopes of the token. */
  readonly held: ScopeSet;
  readonly usage: UsageRecord | undefined;
  /** Since when the counts are complete, in milliseconds since 1970. */
  readonly countedSince: number;
  /** A scope that was not used at this instant or later is unused. */
  readonly from: number;
}

/** Advises on the scopes of a token. */
export function adviceOn(
  { createdAt, scopesChangedAt = createdAt }: Pick<TokenRecord, 'createdAt' | 'scopesChangedAt'>,
  { held, usage, countedSince, from }: AdviceFacts,
): TokenAdvice {
  const since = Math.max(createdAt.getTime(), scopesChangedAt.getTime(), countedSince);
  const scopes = held.toArray();
  const unused =
    since > from ? new Set<string>() : removable(held, new Set(unusedOf(scopes, usage, from)));
  return Object.freeze({
    unused: Object.freeze(scopes.filter((scope) => unused.has(scope))),
    kept: Object.freeze(scopes.filter((scope) => !unused.has(scope))),
    since: new Date(since),
  });
}

/** The scopes that were certainly not used since an instant. */
function unusedOf(
  scopes: readonly string[],
  usage: UsageRecord | undefined,
  from: number,
): readonly string[] {
  const used = new Set<string>();
  for (const { scope, lastUsedAt } of usage?.scopes ?? []) {
    if (lastUsedAt !== undefined && lastUsedAt.getTime() >= from) used.add(scope);
  }
  const held = new Set(scopes);
  // Any scope may now be needed for a use by `other`, or by a scope that was taken away.
  if ([...used].some((scope) => !held.has(scope))) return [];
  return scopes.filter((scope) => !used.has(scope));
}
