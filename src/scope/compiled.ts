import type { PathText, Scope } from './grammar.ts';

const SLASH = 0x2f;

/** Not known beforehand, so that nobody can choose paths that fall together. */
const SEED = /* @__PURE__ */ randomBits();
const FACTOR = /* @__PURE__ */ randomBits() | 1;
/** 2^32 divided by the golden ratio: spreads what is close together (Knuth, TAOCP 6.4). */
const SPREAD = 0x9e3779b1;

const MAX_KNOWN = 256;

/** Of the path that is being looked up, by the number of segments; nothing awaits meanwhile. */
const hashes: number[] = [SEED];
const lengths: number[] = [0];

/**
 * Scopes compiled for looking up, in one flat hash table. A scope stands in it under its path and
 * its group, which all scopes of one domain pattern and method share. What is asked about can be
 * covered by a few groups, and its path has at most 32 prefixes that a scope can have; so a look-up
 * is a few probes however many scopes there are, and no piece of the path is cut out.
 */
export class CompiledScopes {
  readonly #scopes: readonly Scope[];
  readonly #groups = new Map<string, Map<string, number>>();
  #groupCount = 0;
  readonly #groupOf: readonly number[];
  /** Pairs: the hash of an entry, and the place of its scope plus 1; 0 where there is none. */
  readonly #table: Int32Array;
  readonly #shift: number;
  /** How many segments the paths have: a bit for each number, the last one for 31 and 32. */
  #depths = 0;
  #maxDepth = 0;
  /** The groups that can cover a domain and a method, the narrowest first; of those asked for. */
  #known = new Map<string, Map<string, readonly number[]>>();
  #knownCount = 0;

  constructor(scopes: readonly Scope[]) {
    this.#scopes = scopes;
    // At most half full.
    const bits = Math.max(3, 33 - Math.clz32(scopes.length));
    this.#table = new Int32Array(2 << bits);
    this.#shift = 32 - bits;
    this.#groupOf = scopes.map((scope, place) => this.#add(scope, place));
  }

  /**
   * The most specific scope that covers a method, a domain and a path, other than the one in the
   * place `except`: the longest path, then the narrowest domain, then the exact method.
   */
  find(method: string, domain: string, path: PathText, except = -1): Scope | undefined {
    const groups = this.#known.get(domain)?.get(method) ?? this.#learn(domain, method);
    if (groups.length === 0) return undefined;
    for (let depth = this.#hashPrefixes(path); depth >= 0; depth--) {
      if (((this.#depths >>> Math.min(depth, 31)) & 1) === 0) continue;
      const hash = hashes[depth] as number;
      const length = lengths[depth] as number;
      for (let i = 0; i < groups.length; i++) {
        const place = this.#lookUp(hash, groups[i] as number, path, length);
        if (place !== undefined && place !== except) return this.#scopes[place];
      }
    }
    return undefined;
  }

  /** Hashes the prefixes of a path that are as long as a path of the set can be; how many there are. */
  #hashPrefixes({ text, start, end }: PathText): number {
    const maxDepth = this.#maxDepth;
    let hash = SEED;
    let depth = 0;
    for (let i = start; depth < maxDepth && i < end; i++) {
      const unit = text.charCodeAt(i);
      if (unit === SLASH) {
        depth += 1;
        hashes[depth] = hash;
        lengths[depth] = i - start;
      }
      hash = Math.imul(hash ^ unit, FACTOR);
    }
    if (depth < maxDepth && start < end) {
      depth += 1;
      hashes[depth] = hash;
      lengths[depth] = end - start;
    }
    return depth;
  }

  #lookUp(
    hash: number,
    group: number,
    { text, start }: PathText,
    length: number,
  ): number | undefined {
    const table = this.#table;
    const mask = table.length - 1;
    const entry = Math.imul(hash ^ group, SPREAD);
    for (let slot = (entry >>> this.#shift) << 1; ; slot = (slot + 2) & mask) {
      const place = (table[slot + 1] as number) - 1;
      if (place < 0) return undefined;
      if (table[slot] === entry && this.#groupOf[place] === group) {
        const known = pathOf(this.#scopes[place] as Scope);
        if (known.length === length && text.startsWith(known, start)) return place;
      }
    }
  }

  #add(scope: Scope, place: number): number {
    const byMethod = getOrMake(this.#groups, scope.domain, () => new Map<string, number>());
    const group = getOrMake(byMethod, scope.method, () => {
      this.#groupCount += 1;
      return Math.imul(this.#groupCount, SPREAD);
    });
    const path = pathOf(scope);
    const depth = depthOf(path);
    this.#depths |= 1 << Math.min(depth, 31);
    this.#maxDepth = Math.max(this.#maxDepth, depth);

    const table = this.#table;
    const entry = Math.imul(hashOf(path, SEED) ^ group, SPREAD);
    let slot = (entry >>> this.#shift) << 1;
    while (table[slot + 1] !== 0) slot = (slot + 2) & (table.length - 1);
    table[slot] = entry;
    table[slot + 1] = place + 1;
    return group;
  }

  /** Whether these are the scopes that were compiled, by their texts. */
  isOf(scopes: readonly Scope[]): boolean {
    return (
      scopes.length === this.#scopes.length &&
      scopes.every((scope, place) => scope.toString() === this.#scopes[place]?.toString())
    );
  }

  #learn(domain: string, method: string): readonly number[] {
    const groups: number[] = [];
    for (const pattern of patternsOf(domain)) {
      const byMethod = this.#groups.get(pattern);
      for (const name of method === '*' ? [method] : [method, '*']) {
        const group = byMethod?.get(name);
        if (group !== undefined) groups.push(group);
      }
    }
    // Bounded, since whoever asks may choose the names.
    if (this.#knownCount >= MAX_KNOWN) {
      this.#known.clear();
      this.#knownCount = 0;
    }
    this.#knownCount += 1;
    getOrMake(this.#known, domain, () => new Map<string, readonly number[]>()).set(method, groups);
    return groups;
  }
}

/** What is in use, by a hash of its texts. */
const shared = new Map<number, WeakRef<CompiledScopes>>();
const unused = /* @__PURE__ */ new FinalizationRegistry<number>((key) => {
  if (shared.get(key)?.deref() === undefined) shared.delete(key);
});

/**
 * Weak references hold what they refer to until the end of the turn, so a turn that compiles very
 * many sets shares only the first of them.
 */
const MAX_SHARED_A_TURN = 1000;
let sharedThisTurn = 0;

function mayShare(): boolean {
  if (sharedThisTurn === 0) {
    void Promise.resolve().then(() => {
      sharedThisTurn = 0;
    });
  }
  sharedThisTurn += 1;
  return sharedThisTurn <= MAX_SHARED_A_TURN;
}

/** Compiles scopes in canonical order. Equal sets share what is compiled while one of them uses it. */
export function compile(scopes: readonly Scope[]): CompiledScopes {
  const key = scopes.reduce((hash, scope) => hashOf(scope.toString(), hash), SEED);
  const found = shared.get(key)?.deref();
  if (found?.isOf(scopes)) return found;
  const made = new CompiledScopes(scopes);
  if (!mayShare()) return made;
  shared.set(key, new WeakRef(made));
  unused.register(made, key);
  return made;
}

/** The domain patterns that cover a domain or a domain pattern, the narrowest first. */
export function patternsOf(domain: string): string[] {
  if (domain === '*') return [domain];
  const patterns = [domain];
  const first = domain.startsWith('*.') ? 2 : 0;
  for (let dot = domain.indexOf('.', first); dot !== -1; dot = domain.indexOf('.', dot + 1)) {
    patterns.push(`*${domain.slice(dot)}`);
  }
  patterns.push('*');
  return patterns;
}

/** What a scope's path must be a prefix of, for {@link CompiledScopes.find}. */
export function pathTextOf(scope: Scope): PathText {
  const text = pathOf(scope);
  return { text, start: 0, end: text.length };
}

/** The path `*` is the prefix without any segment. */
function pathOf({ path }: Scope): string {
  return path === '*' ? '' : path;
}

function depthOf(prefix: string): number {
  if (prefix === '') return 0;
  let depth = 1;
  for (let at = prefix.indexOf('/'); at !== -1; at = prefix.indexOf('/', at + 1)) depth += 1;
  return depth;
}

/** As {@link CompiledScopes} hashes the prefixes of a path. */
function hashOf(text: string, seed: number): number {
  let hash = seed;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), FACTOR);
  return hash;
}

function randomBits(): number {
  return Math.floor(Math.random() * 2 ** 32) | 0;
}

export function getOrMake<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}
