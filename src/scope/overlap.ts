import { getOrMake } from './collections.ts';
import { type PathText, pathTextOf, type Scope } from './grammar.ts';
import { atOnce, inSteps, type Steps } from './steps.ts';

/** A pattern in one dimension. A segment `{}` matches any one; nothing may follow a closed pattern. */
interface Pattern {
  readonly segments: readonly string[];
  readonly isClosed: boolean;
}

/** The patterns of a method, of a domain (from its last label on) and of a path. */
export type Patterns = readonly [Pattern, Pattern, Pattern];

/** How the scopes that are searched for relate to a query. `crossing` ones overlap without covering. */
export type Relation = 'overlapping' | 'covering' | 'covered' | 'crossing';

export function patternsOf(scope: Scope): Patterns {
  return toPatterns(scope.method, scope.domain, pathTextOf(scope));
}

/** The patterns of a scope, or of a request. */
export function toPatterns(method: string, domain: string, path: PathText): Patterns {
  const { text, start, end, isClosed } = path;
  return [
    { segments: method === '*' ? [] : [method], isClosed: method !== '*' },
    // `*.p` is any one label after those of `p`, and anything after it.
    {
      segments: domain.replace('*', '{}').split('.').reverse(),
      isClosed: !domain.startsWith('*'),
    },
    { segments: start === end ? [] : text.slice(start, end).split('/'), isClosed },
  ];
}

/**
 * Finds the scopes that overlap another one, cover it or are covered by it. Holds a vector for each
 * segment at each position, with one bit for each scope, and joins the vectors of a query, 32 scopes
 * at a time (Lakshman and Stiliadis, SIGCOMM 1998). So the cost is bounded however the scopes cross.
 */
export class OverlapIndex {
  readonly #scopes: readonly Scope[];
  /** By dimension and position. */
  readonly #levels: readonly (readonly Level[])[];
  readonly #inverses = new Map<Bits, Bits>();

  constructor(scopes: readonly Scope[], levels = atOnce(levelsInSteps(scopes))) {
    this.#scopes = scopes;
    this.#levels = levels;
  }

  static *inSteps(scopes: readonly Scope[]): Steps<OverlapIndex> {
    return new OverlapIndex(scopes, yield* levelsInSteps(scopes));
  }

  /**
   * The first scopes in a relation to a query, in the order of the index.
   *
   * @param named the segments of paths, as bits, that `{}` does not match
   */
  find(relation: Relation, query: Patterns, limit = Infinity, named = 0): Scope[] {
    const isCrossing = relation === 'crossing';
    const { masks, candidates } = this.#select(isCrossing ? 'overlapping' : relation, query, named);
    let covered: readonly Bits[] | undefined;
    const found: Scope[] = [];
    // A few candidates are checked one by one, otherwise 32 scopes at a time.
    const count = candidates?.length ?? (this.#scopes.length + 31) >>> 5;
    for (let i = 0; i < count; i++) {
      const candidate = candidates?.[i];
      const word = candidate === undefined ? i : candidate >>> 5;
      let bits = inAll(masks, word);
      if (candidate !== undefined) bits &= 1 << candidate;
      if (isCrossing && bits !== 0) {
        covered ??= this.#select('covered', query, named).masks;
        bits &= ~inAll(covered, word);
      }
      for (; bits !== 0; bits &= bits - 1) {
        const scope = this.#scopes[32 * word + 31 - Math.clz32(bits & -bits)];
        if (scope !== undefined && found.push(scope) === limit) return found;
      }
    }
    return found;
  }

  #select(relation: Relation, query: Patterns, named: number): Selection {
    const masks: Bits[] = [];
    let candidates: readonly number[] | undefined;
    for (let dimension = 0; dimension < 3; dimension++) {
      const { segments, isClosed } = query[dimension] as Pattern;
      const levels = this.#levels[dimension] as readonly Level[];
      // Beyond the longest pattern all positions are alike, so only the first of them matters.
      const count = Math.min(segments.length, levels.length);
      for (let position = 0; position < count; position++) {
        const segment = segments[position] as string;
        const { literals, closed, ended, wide, isWide, templates } = levels[position] as Level;
        if (segment === '{}') {
          if (relation === 'covering') masks.push(wide);
          else masks.push(this.#inverse(relation === 'covered' ? ended : closed));
          continue;
        }
        const known = literals.get(segment) ?? (isWide ? wide : []);
        if (!Array.isArray(known)) masks.push(known);
        // Rare segments come first, because they leave the fewest bits to the others.
        else if (isWide) masks.unshift(withBits(wide, known));
        else candidates = candidates === undefined ? known : inBoth(candidates, known);
        if (relation === 'covered' && isWide) masks.push(this.#inverse(wide));
        if (dimension === 2 && named << position < 0) masks.push(this.#inverse(templates));
      }
      const { open, closed, ended } = levels[Math.min(count, levels.length - 1)] as Level;
      if (isClosed) masks.push(relation === 'covered' ? closed : ended);
      else if (relation === 'covering') masks.push(open);
    }
    return { masks, candidates };
  }

  #inverse(bits: Bits): Bits {
    return getOrMake(this.#inverses, bits, () => bits.map((word) => ~word));
  }
}

type Bits = Int32Array;

/** The scopes that are in all masks and, if there is a list, among its indexes. */
interface Selection {
  readonly masks: readonly Bits[];
  readonly candidates: readonly number[] | undefined;
}

/** The patterns of one dimension, by their segment at one position. */
interface Level {
  /** The patterns with a literal segment: their indexes or, if many, bits that include `wide`. */
  readonly literals: Map<string, number[] | Bits>;
  /** The patterns with `{}`. */
  readonly templates: Bits;
  /** The patterns that end before the position: open ones, closed ones, both. */
  readonly open: Bits;
  readonly closed: Bits;
  readonly ended: Bits;
  /** The patterns that match any segment here. */
  readonly wide: Bits;
  /** Whether there are any of those. */
  isWide: boolean;
}

/** Keeps no patterns: the segments of thousands of long paths would take the garbage collector long. */
function* levelsInSteps(scopes: readonly Scope[]): Steps<readonly (readonly Level[])[]> {
  const words = (scopes.length + 31) >>> 5;
  const dimensions = [0, 1, 2].map(() => [newLevel(words)]);
  yield* inSteps(scopes, (scope, index) => {
    for (const [dimension, pattern] of patternsOf(scope).entries()) {
      add(pattern, index, dimensions[dimension] as Level[]);
    }
  });
  for (const levels of dimensions) {
    for (const [position, level] of levels.entries()) {
      complete(level, levels[position - 1]);
      yield;
    }
  }
  return dimensions;
}

function newLevel(words: number): Level {
  const bits = () => new Int32Array(words);
  return {
    literals: new Map(),
    templates: bits(),
    open: bits(),
    closed: bits(),
    ended: bits(),
    wide: bits(),
    isWide: false,
  };
}

function add({ segments, isClosed }: Pattern, index: number, levels: Level[]): void {
  const words = (levels[0] as Level).open.length;
  while (levels.length <= segments.length) levels.push(newLevel(words));
  for (const [position, segment] of segments.entries()) {
    const { literals, templates } = levels[position] as Level;
    if (segment === '{}') setBit(templates, index);
    else (getOrMake(literals, segment, () => []) as number[]).push(index);
  }
  const { open, closed } = levels[segments.length] as Level;
  setBit(isClosed ? closed : open, index);
}

/** Adds the patterns that ended before an earlier position; turns long lists into bits. */
function complete(level: Level, before: Level | undefined): void {
  const { literals, templates, open, closed, ended, wide } = level;
  for (let i = 0; i < open.length; i++) {
    (open[i] as number) |= before?.open[i] ?? 0;
    (closed[i] as number) |= before?.closed[i] ?? 0;
    ended[i] = (open[i] as number) | (closed[i] as number);
    wide[i] = (open[i] as number) | (templates[i] as number);
    if (wide[i] !== 0) level.isWide = true;
  }
  for (const [segment, list] of literals) {
    if (list.length > open.length) literals.set(segment, withBits(wide, list as number[]));
  }
}

/** Both are in ascending order. */
function inBoth(list: readonly number[], other: readonly number[]): number[] {
  let at = 0;
  return list.filter((index) => {
    while ((other[at] as number) < index) at += 1;
    return other[at] === index;
  });
}

function inAll(masks: readonly Bits[], word: number): number {
  let bits = -1;
  for (let i = 0; i < masks.length && bits !== 0; i++) bits &= (masks[i] as Bits)[word] as number;
  return bits;
}

function withBits(bits: Bits, indexes: readonly number[]): Bits {
  const more = bits.slice();
  for (const index of indexes) setBit(more, index);
  return more;
}

function setBit(bits: Bits, index: number): void {
  (bits[index >>> 5] as number) |= 1 << (index & 31);
}
