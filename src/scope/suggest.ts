import { domainCovers, methodCovers, pathCovers } from './algebra.ts';
import { MAX_SUGGESTIONS, SUGGESTION_BUDGET } from './bounds.ts';
import { getOrMake, lowerBound } from './collections.ts';
import { editDistance, type StepBudget } from './distance.ts';
import type { Scope } from './grammar.ts';
import type { Steps } from './steps.ts';

/** The cost of loading an entry from memory, in cells of the edit distance matrix. */
const READ_COST = 16;
/** The work of one step, in the same cells. */
const CELLS_A_STEP = 16_384;
/** From this many edits on, a scope is another one, not a misspelling. */
const MAX_DISTANCE = 64;
const WRONG_METHOD = 2;

interface Ranked {
  readonly text: string;
  readonly distance: number;
}

/**
 * Finds the entries of a catalog that are most like the requested scopes of one refusal, in steps. When
 * the budget runs out, returns the nearest found so far.
 *
 * @param entries in canonical order
 * @returns the nearest to a scope or to the parts of a text, the best first; the budget is shared
 * equally with the scopes that are still to come
 */
export function suggestions(
  entries: readonly Scope[],
): (asked: Pick<Scope, 'method' | 'domain' | 'path'>, toCome?: number) => Steps<string[]> {
  let left = SUGGESTION_BUDGET;
  return function* ({ method, domain, path }, toCome = 0) {
    const budget: StepBudget = { left: left / (toCome + 1) };
    left -= budget.left;
    let pauseAt = budget.left - CELLS_A_STEP;
    const domains = new Map<string, number>();
    const ranked: Ranked[] = [];
    let worst = MAX_DISTANCE;
    const host = domain.replace(/^\*\./, '');

    const consider = (entry: Scope | undefined): void => {
      if (entry === undefined) return;
      budget.left -= READ_COST;
      let distance = methodCovers(method, entry.method) ? 0 : WRONG_METHOD;
      distance += getOrMake(domains, entry.domain, () =>
        domainCovers(domain, entry.domain)
          ? 0
          : editDistance(host, entry.domain, MAX_DISTANCE, budget),
      );
      if (distance >= worst) return;
      budget.left -= path.length;
      if (!pathCovers(path, entry.path)) {
        distance += editDistance(path, entry.path, worst - distance, budget);
      }
      if (distance >= worst || budget.left < 0) return;
      const text = entry.toString();
      if (ranked.some((other) => other.text === text)) return;
      ranked.push({ text, distance });
      ranked.sort((a, b) => a.distance - b.distance || (a.text < b.text ? -1 : 1));
      ranked.length = Math.min(ranked.length, MAX_SUGGESTIONS);
      worst = ranked[MAX_SUGGESTIONS - 1]?.distance ?? worst;
    };

    const isStepOver = (): boolean => {
      if (budget.left > pauseAt) return false;
      pauseAt = budget.left - CELLS_A_STEP;
      return true;
    };

    // First the same scope with each other method, of which there are few. `;` follows `:` in ASCII.
    for (let at = 0; at < entries.length && budget.left > 0; ) {
      const other = (entries[at] as Scope).method;
      consider(entries[lowerBound(entries, `${other}:${domain}/${path}`)]);
      at = lowerBound(entries, `${other};`);
      if (isStepOver()) yield;
    }
    // Then outward from its position: neighbors share a prefix, and good matches tighten the limit.
    let above = lowerBound(entries, `${method}:${domain}/${path}`);
    let below = above - 1;
    while (budget.left > 0 && (below >= 0 || above < entries.length)) {
      consider(entries[above++]);
      consider(entries[below--]);
      if (isStepOver()) yield;
    }
    left += Math.max(0, budget.left);
    return ranked.map(({ text }) => text);
  };
}
