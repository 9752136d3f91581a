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

/** What was asked for: a scope, or the parts of a text. */
type Asked = Pick<Scope, 'method' | 'domain' | 'path'>;

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
): (asked: Asked, toCome?: number) => Steps<string[]> {
  let left = SUGGESTION_BUDGET;
  return function* (asked, toCome = 0) {
    const budget: StepBudget = { left: left / (toCome + 1) };
    left -= budget.left;
    const nearest = new Nearest(asked, budget);
    let pauseAt = budget.left - CELLS_A_STEP;
    for (const entry of inOrder(entries, asked)) {
      if (budget.left <= 0) break;
      nearest.consider(entry);
      if (budget.left > pauseAt) continue;
      pauseAt = budget.left - CELLS_A_STEP;
      yield;
    }
    left += Math.max(0, budget.left);
    return nearest.texts();
  };
}

/** The entries, those first that are likely to be near. */
function* inOrder(entries: readonly Scope[], { method, domain, path }: Asked): Iterable<Scope> {
  // First the same scope with each other method, of which there are few. `;` follows `:` in ASCII.
  for (let at = 0; at < entries.length; ) {
    const other = (entries[at] as Scope).method;
    const same = entries[lowerBound(entries, `${other}:${domain}/${path}`)];
    if (same !== undefined) yield same;
    at = lowerBound(entries, `${other};`);
  }
  // Then outward from its position: neighbors share a prefix, and good matches tighten the limit.
  let above = lowerBound(entries, `${method}:${domain}/${path}`);
  let below = above - 1;
  while (below >= 0 || above < entries.length) {
    if (above < entries.length) yield entries[above++] as Scope;
    if (below >= 0) yield entries[below--] as Scope;
  }
}

/** The nearest of the entries that were considered. */
class Nearest {
  readonly #asked: Asked;
  readonly #host: string;
  readonly #budget: StepBudget;
  readonly #domains = new Map<string, number>();
  readonly #ranked: Ranked[] = [];
  #worst = MAX_DISTANCE;

  constructor(asked: Asked, budget: StepBudget) {
    this.#asked = asked;
    this.#host = asked.domain.replace(/^\*\./, '');
    this.#budget = budget;
  }

  consider(entry: Scope): void {
    const { method, path } = this.#asked;
    const budget = this.#budget;
    budget.left -= READ_COST;
    let distance = methodCovers(method, entry.method) ? 0 : WRONG_METHOD;
    distance += getOrMake(this.#domains, entry.domain, () => this.#distanceOf(entry.domain));
    if (distance >= this.#worst) return;
    budget.left -= path.length;
    if (!pathCovers(path, entry.path)) {
      distance += editDistance(path, entry.path, this.#worst - distance, budget);
    }
    if (distance >= this.#worst || budget.left < 0) return;
    const ranked = this.#ranked;
    const text = entry.toString();
    if (ranked.some((other) => other.text === text)) return;
    ranked.push({ text, distance });
    ranked.sort((a, b) => a.distance - b.distance || (a.text < b.text ? -1 : 1));
    ranked.length = Math.min(ranked.length, MAX_SUGGESTIONS);
    this.#worst = ranked[MAX_SUGGESTIONS - 1]?.distance ?? this.#worst;
  }

  #distanceOf(domain: string): number {
    if (domainCovers(this.#asked.domain, domain)) return 0;
    return editDistance(this.#host, domain, MAX_DISTANCE, this.#budget);
  }

  texts(): string[] {
    return this.#ranked.map(({ text }) => text);
  }
}
