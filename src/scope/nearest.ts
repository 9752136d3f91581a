import { domainCovers, methodCovers, pathCovers } from './algebra.ts';
import { MAX_SUGGESTIONS, SUGGESTION_BUDGET } from './bounds.ts';
import { getOrMake, lowerBound } from './collections.ts';
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

/** The characters of a name that are compared. */
const COMPARED_LENGTH = 64;
/** With one more edit, most names are others: a transposition counts as two. */
const MAX_NAME_EDITS = 2;
/** From this length on, a part of a name stands for it. */
const MIN_PART_LENGTH = 3;

/**
 * Finds the known name that an unknown one probably means, for a hint. Ignores case, hyphens and
 * underscores. Prefers a name that begins with the other one, such as `ttl` and `ttlSeconds`, then
 * the one with the fewest edits, then one that contains the unknown name, or is half of it or more.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const word = folded(name);
  const maxEdits = Math.min(MAX_NAME_EDITS, Math.floor(word.length / 2));
  return closest(known, (other) => {
    const [short, long] = word.length < other.length ? [word, other] : [other, word];
    const isPart = short.length >= MIN_PART_LENGTH && long.includes(short);
    if (isPart && long.startsWith(short)) return (long.length - short.length) / COMPARED_LENGTH;
    const edits = editDistance(word, other, maxEdits + 1);
    if (edits <= maxEdits) return edits;
    const standsForIt = isPart && (short === word || 2 * short.length >= long.length);
    return standsForIt ? maxEdits + long.length - short.length : Infinity;
  });
}

/**
 * Finds the known name of which an unknown one is a misspelling. Stricter than {@link nearestName}, for
 * callers that refuse such a name and ignore others: `page` is not a misspelled `name`.
 */
export function misspelledName(name: string, known: readonly string[]): string | undefined {
  const word = folded(name);
  return closest(known, (other) => {
    const limit = (other.length > 4 ? MAX_NAME_EDITS : 1) + 1;
    const edits = editDistance(word, other, limit);
    return edits < limit ? edits : Infinity;
  });
}

function folded(name: string): string {
  return name.slice(0, COMPARED_LENGTH).replaceAll(/[_-]/g, '').toLowerCase();
}

/** The first of the names with the least distance, unless none has a finite one. */
function closest(
  known: readonly string[],
  distanceTo: (other: string) => number,
): string | undefined {
  const distances = known.map((name) => distanceTo(folded(name)));
  const least = Math.min(...distances);
  return least === Infinity ? undefined : known[distances.indexOf(least)];
}

/** The work left for a search, in cells of the matrix: comparisons of two characters. */
export interface StepBudget {
  left: number;
}

/** One row of the matrix. Shared between calls, which is safe because none of them awaits. */
const row: number[] = [];

/**
 * Levenshtein distance, or `limit` if it is not less. Looks only at the cells that a path of this
 * length can reach (Ukkonen, 1985): fewer than `2 * limit` for each character. Returns `limit` when
 * the budget runs out.
 */
export function editDistance(
  a: string,
  b: string,
  limit: number,
  budget: StepBudget = { left: Infinity },
): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  // A common prefix costs no edits.
  let start = 0;
  while (start < a.length && a.charCodeAt(start) === b.charCodeAt(start)) start += 1;
  budget.left -= start;
  const rows = a.length - start;
  const columns = b.length - start;

  for (let column = 0; column <= columns; column++) row[column] = Math.min(column, limit);
  for (let i = 1; i <= rows; i++) {
    const first = Math.max(1, i - limit);
    const last = Math.min(columns, i + limit);
    budget.left -= last - first + 1;
    if (budget.left < 0) return limit;
    let diagonal = row[first - 1] as number;
    let left = Math.min(i, limit);
    row[first - 1] = left;
    let least = left;
    const unit = a.charCodeAt(start + i - 1);
    for (let column = first; column <= last; column++) {
      const above = row[column] as number;
      const isSame = unit === b.charCodeAt(start + column - 1);
      left = isSame ? diagonal : Math.min(limit, 1 + Math.min(diagonal, above, left));
      diagonal = above;
      row[column] = left;
      least = Math.min(least, left);
    }
    if (least === limit) return limit;
  }
  return row[columns] as number;
}
