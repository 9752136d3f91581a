import type { KnownScopes } from '../scope/explain.ts';
import { nameNeed } from '../scope/explain.ts';
import type { ReadRequest, RequestReason, Scope, ScopeSet } from '../scope/index.ts';
import type { Explanation } from '../token/record.ts';
import { safeTextOf, type ValueCheck } from './need.ts';

/** Explains why a set of scopes does or does not allow something. */
export function explainNeed(
  set: ScopeSet,
  need: ReadRequest | Scope,
  catalog: KnownScopes | undefined,
  holdsValue: ValueCheck,
): Explanation {
  const answer = set.explain(need, catalog);
  if (!('needed' in answer)) return explainAmbiguous(answer.reason);
  const { known } = answer;
  const summary = catalog?.words?.(answer.needed)?.summary;
  const about = {
    needed: safeTextOf(answer.needed, holdsValue),
    ...(summary !== undefined && { summary }),
  };
  if (answer.allowed) {
    const grantedBy = answer.by.toString();
    return Object.freeze({ allowed: true, grantedBy, ...about, known, suggestions: [] });
  }
  const { nearest, smallest, suggestions } = answer;
  return Object.freeze({
    allowed: false,
    reason: 'insufficient_scope',
    ...about,
    ...(nearest && { nearest: { scope: nearest.scope.toString(), failed: nearest.failed } }),
    smallest: safeTextOf(smallest, holdsValue),
    known,
    suggestions,
  });
}

/** Explains why a request that is ambiguous or invalid is refused. */
export function explainAmbiguous(reason: RequestReason): Explanation {
  return Object.freeze({ allowed: false, reason, needed: '', known: false, suggestions: [] });
}

/** The scope that would be enough: the entry of the catalog, or else the scope for only this request. */
export function neededFor(
  need: ReadRequest | Scope,
  catalog: KnownScopes | undefined,
  holdsValue: ValueCheck,
): string {
  return safeTextOf(nameNeed(need, catalog).needed, holdsValue);
}
