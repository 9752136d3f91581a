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
  /** The scopes that cannot be removed: they cover no held scope, or overlap a kept one. */
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
  const gone = ScopeSet.from(removed);
  const isKept = (text: string): boolean => !gone.covers(parse(text));
  const kept = held.filter(isKept);
  const overlapsKept = finder('overlapping', kept, parse);
  const coversHeld = finder('covered', held, parse);
  const heldTexts = new Set(held);
  const unmatched = removed.filter((scope) => {
    const isCovering = heldTexts.has(scope.toString()) || coversHeld(scope);
    return !isCovering || overlapsKept(scope);
  });
  // If all requested scopes are kept ones, no index is needed.
  const keptTexts = new Set(kept);
  const isUsed = (text: string): boolean => keptTexts.has(text) || overlapsKept(parse(text));
  return {
    kept,
    requested: requested.filter((text) => isKept(text) && isUsed(text)),
    unmatched,
  };
}

/**
 * The unwanted scopes of a set that {@link removeScopes} can remove without a wanted one. An unwanted
 * scope has to stay if it overlaps a wanted one, or another one that has to stay.
 */
export function removable(held: ScopeSet, unwanted: ReadonlySet<string>): ReadonlySet<string> {
  const index = new OverlapIndex([...held]);
  const going = new Set(unwanted);
  const staying = [...held].filter((scope) => !going.has(scope.toString()));
  // Grows while it is walked.
  for (const scope of staying) {
    if (going.size === 0) break;
    for (const other of index.find('overlapping', patternsOf(scope))) {
      if (going.delete(other.toString())) staying.push(other);
    }
  }
  return going;
}

/** Whether a scope is in a relation to one of a list, which is indexed when it is first asked. */
function finder(
  relation: Relation,
  texts: readonly string[],
  parse: (text: string) => Scope,
): (scope: Scope) => boolean {
  let index: OverlapIndex | undefined;
  return (scope) => {
    index ??= new OverlapIndex(texts.map(parse));
    return index.find(relation, patternsOf(scope), 1).length > 0;
  };
}
