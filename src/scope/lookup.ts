import { MAX_HOST_LENGTH, MAX_PATH_SEGMENTS, MAX_PROBES } from './bounds.ts';
import { OPENING_BRACE, SLASH } from './characters.ts';
import { getOrMake } from './collections.ts';
import { FIRST_SEGMENT, type PathText, pathTextOf, type Scope } from './grammar.ts';
import { OverlapIndex, type Patterns, toPatterns } from './overlap.ts';
import { pathTextOfRequest, type ReadRequest } from './request.ts';

/** Random, so that nobody can choose paths that collide. */
const SEED = /* @__PURE__ */ randomBits();
const FACTOR = /* @__PURE__ */ randomBits() | 1;
/** The hash of `{}`, and the difference between a closed path and an open one. */
const TEMPLATE = /* @__PURE__ */ randomBits();
const CLOSED = /* @__PURE__ */ randomBits();
const ALL_BITS = -1;
/** 2^32 divided by the golden ratio: spreads values that are close (Knuth, TAOCP 6.4). */
const SPREAD = 0x9e3779b1;

// The state of the current look-up. Shared by all instances, which is safe because none awaits.
/** The hash and the length of the first segments of the path, by their number. */
const sums = /* @__PURE__ */ new Int32Array(33);
const lengths = /* @__PURE__ */ new Int32Array(33);
/** The change of the hash when a segment is replaced with `{}`. */
const changes = /* @__PURE__ */ new Int32Array(32);
/** The segments of the path that are `{}`, as bits. */
let pathTemplates = 0;
/** One bit for the first segment of the path, by its hash. */
let firstSegment = 0;
/** The groups that can cover the domain and the method, the narrowest first. */
const groups: number[] = [];

/** The structure of a path: how many segments it has, which of them are `{}`, and its end. */
interface Shape {
  readonly depth: number;
  readonly isClosed: boolean;
  /** The segments that are `{}`, as bits. */
  readonly templates: number;
  /** Lower for more specific ones: first the depth, then the end, then the first literal. */
  readonly rank: number;
  /** The bits of the first segments of its scopes; all bits where that is `{}`, or there is none. */
  firstSegments: number;
}

/** The groups of one domain pattern, by method. */
type Methods = Map<string, number>;

/**
 * Finds the scope that covers a request or another scope, in one flat hash table. The key of a scope
 * is its path and its group: all scopes with its domain pattern and its method. Few groups can cover
 * one domain and method, and paths have few shapes, however many there are. So a look-up is a few
 * probes, one for each shape and group, and slices no text (a tuple space search; Srinivasan, Suri,
 * Varghese, SIGCOMM 1999). If shapes and groups are many, it uses an {@link OverlapIndex} instead.
 */
export class ScopeLookup {
  readonly #scopes: readonly Scope[];
  /** Their paths without the `$`, cut at each `{}`. */
  readonly #pieces: readonly (readonly string[])[];
  readonly #groupAt: number[] = [];
  readonly #shapeAt: Shape[] = [];
  /** By the end of the hosts they match: `*.p` by `.p`, `*` by `''`, a host by itself. */
  readonly #domains = new Map<string, Methods>();
  /** The lengths of the keys of wildcards, modulo 32, as bits. */
  #wildcardLengths = 0;
  #groupCount = 0;
  /** Pairs: the hash of an entry, and the index of its scope plus 1; 0 in an empty slot. */
  readonly #table: Int32Array;
  readonly #shift: number;
  readonly #shapes = new Map<number, Shape>();
  #maxDepth = MAX_PATH_SEGMENTS;
  /** The shapes that can cover a path, by the number of its segments; the most specific first. */
  readonly #shapesFor: readonly (readonly Shape[])[];
  /** The most specific first; built when it is first needed. */
  #index: OverlapIndex | undefined;

  constructor(scopes: readonly Scope[]) {
    this.#scopes = scopes;
    this.#pieces = scopes.map((scope) => scope.path.slice(0, pathTextOf(scope).end).split('{}'));
    // At most half full.
    const bits = Math.max(3, 33 - Math.clz32(scopes.length));
    this.#table = new Int32Array(2 << bits);
    this.#shift = 32 - bits;
    for (const [index, scope] of scopes.entries()) this.#add(scope, index);
    const shapes = [...this.#shapes.values()].sort((a, b) => a.rank - b.rank);
    this.#maxDepth = shapes[0]?.depth ?? 0;
    this.#shapesFor = Array.from({ length: this.#maxDepth + 2 }, (_, depth) =>
      shapes.filter((shape) => (shape.isClosed ? shape.depth === depth : shape.depth <= depth)),
    );
  }

  grantOf(request: ReadRequest, named?: number): Scope | undefined {
    return this.find(request.method, request.domain, pathTextOfRequest(request), named);
  }

  /** The most specific scope that covers a scope; see {@link ScopeLookup.find}. */
  coverOf(scope: Scope, named?: number, except?: number): Scope | undefined {
    return this.find(scope.method, scope.domain, pathTextOf(scope), named, except);
  }

  /**
   * The most specific scope that covers a method, a domain and a path: the longest path, then a closed
   * one, then the first literal where another has `{}`; then the narrowest domain, then the exact
   * method.
   *
   * @param named the segments, as bits, that `{}` does not match
   * @param except the index of a scope to skip
   */
  find(method: string, domain: string, path: PathText, named = 0, except = -1): Scope | undefined {
    const barred = named | path.severed;
    const groupCount = this.#findGroups(method, domain);
    if (groupCount === 0) return undefined;
    const shapes = this.#shapesFor[this.#hashPrefixes(path)] as readonly Shape[];
    if (shapes.length * groupCount > MAX_PROBES) {
      return this.#findInIndex(toPatterns(method, domain, path), barred, except);
    }
    for (let i = 0; i < shapes.length; i++) {
      const shape = shapes[i] as Shape;
      if ((shape.firstSegments & firstSegment) === 0) continue;
      if ((shape.templates & barred) !== 0 || (shape.isClosed && !path.isClosed)) continue;
      const hash = hashAs(shape);
      for (let group = 0; group < groupCount; group++) {
        const index = this.#lookUp(hash, groups[group] as number, path, shape);
        if (index !== -1 && index !== except) return this.#scopes[index];
      }
    }
    return undefined;
  }

  /** Like {@link ScopeLookup.find}, but all of them up to a limit, the most specific first. */
  findAll(method: string, domain: string, path: PathText, limit: number): Scope[] {
    const groupCount = this.#findGroups(method, domain);
    if (groupCount === 0) return [];
    const shapes = this.#shapesFor[this.#hashPrefixes(path)] as readonly Shape[];
    if (shapes.length * groupCount > MAX_PROBES) {
      return this.#bySpecificityIndex().find('covering', toPatterns(method, domain, path), limit);
    }
    const found: Scope[] = [];
    for (const shape of shapes) {
      if ((shape.firstSegments & firstSegment) === 0) continue;
      if (shape.isClosed && !path.isClosed) continue;
      const hash = hashAs(shape);
      for (let group = 0; group < groupCount; group++) {
        const index = this.#lookUp(hash, groups[group] as number, path, shape);
        if (index !== -1 && found.push(this.#scopes[index] as Scope) === limit) return found;
      }
    }
    return found;
  }

  #findGroups(method: string, domain: string): number {
    let count = this.#addGroups(domain, method, 0);
    if (this.#wildcardLengths === 0) return count;
    for (let dot = domain.indexOf('.'); dot !== -1; dot = domain.indexOf('.', dot + 1)) {
      const isKnown = (this.#wildcardLengths >>> ((domain.length - dot) & 31)) & 1;
      if (isKnown === 1) count = this.#addGroups(domain.slice(dot), method, count);
    }
    return this.#addGroups('', method, count);
  }

  #addGroups(key: string, method: string, before: number): number {
    const methods = this.#domains.get(key);
    if (methods === undefined) return before;
    let count = before;
    const exact = methods.get(method);
    if (exact !== undefined) groups[count++] = exact;
    const every = method === '*' ? undefined : methods.get('*');
    if (every !== undefined) groups[count++] = every;
    return count;
  }

  /** Hashes the first segments of a path, up to one more than the deepest scope has. */
  #hashPrefixes({ text, start, end }: PathText): number {
    const maxDepth = this.#maxDepth;
    let depth = 0;
    let sum = SEED;
    sums[0] = sum;
    lengths[0] = 0;
    pathTemplates = 0;
    firstSegment = ALL_BITS;
    for (let at = start; at < end; at++) {
      if (depth === maxDepth) return maxDepth + 1;
      const isTemplate = text.charCodeAt(at) === OPENING_BRACE;
      let hash = SEED;
      for (; at < end; at++) {
        const unit = text.charCodeAt(at);
        if (unit === SLASH) break;
        hash = Math.imul(hash ^ unit, FACTOR);
      }
      if (depth === 0) firstSegment = 1 << (hash >>> 27);
      // One factor for each position, so that the order of the segments counts.
      const factor = FACTOR + 2 * depth;
      const template = Math.imul(TEMPLATE, factor);
      if (isTemplate) pathTemplates |= FIRST_SEGMENT >>> depth;
      const own = isTemplate ? template : Math.imul(hash, factor);
      changes[depth] = template - own;
      sum = (sum + own) | 0;
      depth += 1;
      sums[depth] = sum;
      lengths[depth] = at - start;
    }
    return depth;
  }

  #lookUp(hash: number, group: number, path: PathText, shape: Shape): number {
    const table = this.#table;
    const mask = table.length - 1;
    const entry = Math.imul(hash ^ group, SPREAD);
    for (let slot = (entry >>> this.#shift) << 1; ; slot = (slot + 2) & mask) {
      const index = (table[slot + 1] as number) - 1;
      if (index < 0) return -1;
      if (table[slot] !== entry || this.#groupAt[index] !== group) continue;
      if (this.#shapeAt[index] !== shape) continue;
      if (hasPieces(path, this.#pieces[index] as readonly string[], shape)) return index;
    }
  }

  #findInIndex(query: Patterns, named: number, except: number): Scope | undefined {
    const found = this.#bySpecificityIndex().find('covering', query, 2, named);
    return found.find((scope) => scope !== this.#scopes[except]);
  }

  #add(scope: Scope, index: number): void {
    const methods = this.#methodsOf(scope.domain);
    let group = methods.get(scope.method);
    if (group === undefined) {
      this.#groupCount += 1;
      group = Math.imul(this.#groupCount, SPREAD);
      methods.set(scope.method, group);
    }
    const shape = this.#shapeOf(pathTextOf(scope));
    const table = this.#table;
    const entry = Math.imul(hashAs(shape) ^ group, SPREAD);
    let slot = (entry >>> this.#shift) << 1;
    while (table[slot + 1] !== 0) slot = (slot + 2) & (table.length - 1);
    table[slot] = entry;
    table[slot + 1] = index + 1;
    this.#groupAt.push(group);
    this.#shapeAt.push(shape);
  }

  #bySpecificityIndex(): OverlapIndex {
    this.#index ??= new OverlapIndex(this.#bySpecificity());
    return this.#index;
  }

  #bySpecificity(): Scope[] {
    const all = this.#scopes.map((scope, index) => [scope, this.#shapeAt[index] as Shape] as const);
    all.sort(([a, left], [b, right]) => left.rank - right.rank || reachOf(a) - reachOf(b));
    return all.map(([scope]) => scope);
  }

  #methodsOf(domain: string): Methods {
    const key = domain.startsWith('*') ? domain.slice(1) : domain;
    if (key !== domain) this.#wildcardLengths |= 1 << (key.length & 31);
    return getOrMake(this.#domains, key, () => new Map());
  }

  /** The shape of the path of a scope; hashes it on the way. */
  #shapeOf(path: PathText): Shape {
    const depth = this.#hashPrefixes(path);
    const { isClosed } = path;
    const templates = pathTemplates;
    const rank = (templates >>> 0) - 2 ** 32 * (2 * depth + (isClosed ? 1 : 0));
    const shape = getOrMake(this.#shapes, rank, () => {
      return { depth, isClosed, templates, rank, firstSegments: 0 };
    });
    shape.firstSegments |= templates < 0 ? ALL_BITS : firstSegment;
    return shape;
  }
}

/** Whether the path that was hashed last has the literal pieces of a scope with this shape. */
function hasPieces({ text, start }: PathText, pieces: readonly string[], shape: Shape): boolean {
  let at = start;
  let left = shape.templates;
  for (let i = 0; ; i++) {
    const piece = pieces[i] as string;
    if (!text.startsWith(piece, at)) return false;
    if (left === 0) return at + piece.length === start + (lengths[shape.depth] as number);
    const position = Math.clz32(left);
    left ^= FIRST_SEGMENT >>> position;
    at = start + (lengths[position + 1] as number);
  }
}

/** The hash of the path that was hashed last, with `{}` wherever the shape has it. */
function hashAs({ depth, isClosed, templates }: Shape): number {
  let hash = (sums[depth] as number) + (isClosed ? CLOSED : 0);
  for (let left = templates; left !== 0; ) {
    const position = Math.clz32(left);
    hash += changes[position] as number;
    left ^= FIRST_SEGMENT >>> position;
  }
  return hash | 0;
}

/** Orders scopes that cover one host: the narrower domain first, then the exact method. */
function reachOf({ method, domain }: Scope): number {
  const length = domain.startsWith('*') ? domain.length : MAX_HOST_LENGTH + 1;
  return -2 * length + (method === '*' ? 1 : 0);
}

function randomBits(): number {
  return Math.floor(Math.random() * 2 ** 32) | 0;
}
