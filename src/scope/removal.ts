import { getOrMake } from './collections.ts';
import { parseScope, type Scope } from './grammar.ts';
import { OverlapIndex, patternsOf, type Relation } from './overlap.ts';
import { ScopeSet } from './set.ts';
import { filterInSteps, inSteps, type Steps } from './steps.ts';

/** The result of {@link removingScopes}. */
export interface Removal {
  /** The held scopes that no removed scope covers, in the given order. */
  readonly kept: string[];
  /** The requested scopes that no removed scope covers and that overlap a kept one. */
  readonly requested: string[];
  /** The scopes that cannot be removed: they cover no held scope, or overlap a kept one. */
  readonly unmatched: Scope[];
}

/**
 * Removes scopes from the held and from the requested ones of a token, in steps.
 *
 * @throws {ScopeError} when a held or requested text is not a scope
 */
export function* removingScopes(
  held: readonly string[],
  requested: readonly string[],
  removed: readonly Scope[],
): Steps<Removal> {
  // Many texts are in several of the lists; each is parsed once.
  const known = new Map(removed.map((scope) => [scope.toString(), scope]));
  const parse = (text: string): Scope => getOrMake(known, text, () => parseScope(text));
  yield;
  const gone = ScopeSet.from(removed);
  yield;
  const isKept = (text: string): boolean => !gone.covers(parse(text));
  const kept = yield* filterInSteps(held, isKept);
  const keptIndex = yield* indexOf(kept, parse);
  const heldTexts = new Set(held);
  const areHeld = removed.every((scope) => heldTexts.has(scope.toString()));
  // If all removed scopes are held ones, no second index is needed.
  const heldIndex = areHeld ? undefined : yield* indexOf(held, parse);
  const isCovering = (scope: Scope) =>
    heldTexts.has(scope.toString()) ||
    (heldIndex !== undefined && has(heldIndex, 'covered', scope));
  const isUnmatched = (scope: Scope) => !isCovering(scope) || has(keptIndex, 'overlapping', scope);
  const unmatched = yield* filterInSteps(removed, isUnmatched);
  const keptTexts = new Set(kept);
  const isUsed = (text: string): boolean =>
    keptTexts.has(text) || has(keptIndex, 'overlapping', parse(text));
  const isWanted = (text: string): boolean => isKept(text) && isUsed(text);
  return { kept, requested: yield* filterInSteps(requested, isWanted), unmatched };
}

/**
 * The unwanted scopes of a set that {@link removingScopes} can remove without a wanted one. An unwanted
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

function* indexOf(texts: readonly string[], parse: (text: string) => Scope): Steps<OverlapIndex> {
  const scopes: Scope[] = [];
  yield* inSteps(texts, (text) => scopes.push(parse(text)));
  return yield* OverlapIndex.inSteps(scopes);
}

/** Whether a scope is in a relation to one of an index. */
function has(index: OverlapIndex, relation: Relation, scope: Scope): boolean {
  return index.find(relation, patternsOf(scope), 1).length > 0;
}
