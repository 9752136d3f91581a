import { getOrMake } from './collections.ts';
import { parseScope, type Scope } from './grammar.ts';
import { OverlapIndex, patternsOf, type Relation } from './overlap.ts';
import { ScopeSet } from './set.ts';

/** The result of {@link removeScopes}. */
export interface Removal {
  /** The held scopes that no removed scope covers, in the given order. */
  readonly kept: string[];
  /** The requested scopes that no removed scope covers and that overlap a kept one. */
  readonly requested: string[];
  /** The scopes that cannot be removed: they cover no held scope, or overlap one without covering it. */
  readonly unmatched: Scope[];
}

/**
 * Removes scopes from the held and from the requested ones of a token.
 *
 * @throws {ScopeError} when a held or requested text is not a scope
 */
export function removeScopes(
  held: readonly string[],
  requested: readonly string[],
  removed: readonly Scope[],
): Removal {
  // Many texts are in several of the lists; each is parsed once.
  const known = new Map(removed.map((scope) => [scope.toString(), scope]));
  const parse = (text: string): Scope => getOrMake(known, text, () => parseScope(text));
  const heldTexts = new Set(held);
  const index = new OverlapIndex(held.map(parse));
  const unmatched = removed.filter((scope) => {
    const patterns = patternsOf(scope);
    const finds = (relation: Relation): boolean => index.find(relation, patterns, 1).length > 0;
    const isCovering = heldTexts.has(scope.toString()) || finds('covered');
    return !isCovering || finds('crossing');
  });
  const gone = ScopeSet.from(removed);
  const isKept = (text: string): boolean => !gone.covers(parse(text));
  const kept = held.filter(isKept);
  // If all requested scopes are kept ones, no index is needed.
  const keptTexts = new Set(kept);
  let keptIndex: OverlapIndex | undefined;
  const isUsed = (text: string): boolean => {
    if (keptTexts.has(text)) return true;
    keptIndex ??= new OverlapIndex(kept.map(parse));
    return keptIndex.find('overlapping', patternsOf(parse(text)), 1).length > 0;
  };
  return {
    kept,
    requested: requested.filter((text) => isKept(text) && isUsed(text)),
    unmatched,
  };
}
