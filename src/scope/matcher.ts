import { covers, domainCovers, methodCovers, overlaps, pathCovers } from './algebra.ts';
import { type Scope, ScopeError, toScope } from './grammar.ts';
import {
  isReadRequest,
  type ReadRequest,
  type RequestReason,
  readRequest,
  type ScopeRequest,
  scopeOfRequest,
} from './request.ts';

/** Whether a set allows a request: by which scope, or why not. */
export type Decision =
  | { readonly allowed: true; readonly by: Scope }
  | { readonly allowed: false; readonly reason: RequestReason | 'not_covered' };

/** The member that comes closest to allowing a request, and the component that fails. */
export interface NearMiss {
  readonly scope: Scope;
  readonly failed: 'method' | 'domain' | 'path';
}

/** What {@link ScopeSet.explain} answers. */
export type RequestExplanation =
  | { readonly allowed: true; readonly by: Scope }
  | {
      readonly allowed: false;
      readonly reason: RequestReason | 'not_covered';
      /** Absent when the set is empty or the request is ambiguous. */
      readonly nearest?: NearMiss;
      /** The narrowest scope that would have allowed it; absent when the request is ambiguous. */
      readonly smallest?: Scope;
    };

/** What a change gives and takes, each in canonical order. */
export interface ScopeDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

type Scopes = Iterable<Scope | string>;

/**
 * A set of scopes: what somebody may do. Immutable; its members are in canonical order and without
 * duplicates. The empty set covers nothing and allows nothing.
 *
 * @example
 * const held = ScopeSet.from(['GET:shop.example/orders', 'POST:*.shop.example/*']);
 * held.allows({ method: 'GET', domain: 'shop.example', target: '/orders/7' }).allowed; // true
 * held.allows({ method: 'GET', domain: 'shop.example', target: '/ordersx' }).allowed; // false
 */
export class ScopeSet implements Iterable<Scope> {
  readonly #members: readonly Scope[];
  #index: ScopeIndex | undefined;

  private constructor(members: readonly Scope[]) {
    this.#members = members;
  }

  /**
   * Makes a set of scopes or texts.
   *
   * @throws {ScopeError} with the code of the first member that is not a scope; `scopes_required`
   * when `scopes` is not a list
   */
  static from(scopes: Scopes): ScopeSet {
    if (scopes instanceof ScopeSet) return scopes;
    const byText = new Map<string, Scope>();
    for (const member of toList(scopes)) {
      const scope = toScope(member);
      byText.set(scope.toString(), scope);
    }
    return new ScopeSet([...byText.keys()].sort().map((text) => byText.get(text) as Scope));
  }

  /** How many scopes it holds. */
  get size(): number {
    return this.#members.length;
  }

  /** Whether one member covers the scope; a set covers a scope only so. */
  covers(scope: Scope | string): boolean {
    return this.coverOf(scope) !== undefined;
  }

  /** The most specific member that covers the scope, by the order of {@link ScopeSet.allows}. */
  coverOf(scope: Scope | string): Scope | undefined {
    const { method, domain, path } = toScope(scope);
    return this.#compiled().find(method, domain, path);
  }

  /** Whether some request is allowed by the set and by the scope. */
  overlaps(scope: Scope | string): boolean {
    const other = toScope(scope);
    return this.#members.some((member) => overlaps(member, other));
  }

  /**
   * Decides a request. Among several members that allow it, `by` is the most specific one: the
   * longest path, then the exact host, then the longest parent, then the exact method. Never throws;
   * the cost does not depend on how many scopes the set holds.
   */
  allows(request: ScopeRequest | ReadRequest): Decision {
    const reading = read(request);
    if (!reading.ok) return { allowed: false, reason: reading.reason };
    const { method, domain, path } = reading.request;
    const by = this.#compiled().find(method, domain, path);
    return by === undefined ? { allowed: false, reason: 'not_covered' } : { allowed: true, by };
  }

  /**
   * Decides a request and says why: what allows it, or which member comes nearest, which of its
   * components fails, and the narrowest scope that would have been enough.
   */
  explain(request: ScopeRequest | ReadRequest): RequestExplanation {
    const reading = read(request);
    if (!reading.ok) return { allowed: false, reason: reading.reason };
    const decision = this.allows(reading.request);
    if (decision.allowed) return decision;
    const smallest = scopeOfRequest(reading.request);
    const nearest = this.nearestTo(smallest);
    return { ...decision, smallest, ...(nearest !== undefined && { nearest }) };
  }

  /** The member that fails to cover a scope in the fewest components; `undefined` when one covers it. */
  nearestTo(scope: Scope | string): NearMiss | undefined {
    const needed = toScope(scope);
    let nearest: NearMiss | undefined;
    let fewest = 4;
    for (const member of this.#members) {
      const failed = failures(member, needed);
      const [first] = failed;
      if (first === undefined) return undefined;
      if (failed.length < fewest) {
        nearest = { scope: member, failed: first };
        fewest = failed.length;
      }
    }
    return nearest;
  }

  /** The same rights in the fewest scopes: the members that no other member covers. */
  minimize(): ScopeSet {
    const index = this.#compiled();
    return new ScopeSet(this.#members.filter((member) => !index.hasOther(member)));
  }

  /** What either set allows, minimized. */
  union(other: Scopes): ScopeSet {
    return ScopeSet.from([...this.#members, ...ScopeSet.from(other)]).minimize();
  }

  /** What both sets allow, minimized. */
  intersection(other: Scopes): ScopeSet {
    const others = ScopeSet.from(other);
    return ScopeSet.from(this.#members.flatMap((member) => others.#meets(member))).minimize();
  }

  /** The members of `required` that this set does not cover, in canonical order. */
  missing(required: Scopes): string[] {
    return [...ScopeSet.from(required)].filter((scope) => !this.covers(scope)).map(String);
  }

  /** What a change from this set to `after` gives and takes, both minimized. */
  diff(after: Scopes): ScopeDiff {
    const before = this.minimize();
    const next = ScopeSet.from(after).minimize();
    return { added: before.missing(next), removed: next.missing(before) };
  }

  /** Whether both sets allow the same requests. */
  equals(other: Scopes): boolean {
    const { added, removed } = this.diff(other);
    return added.length === 0 && removed.length === 0;
  }

  /** The members as texts, in canonical order. */
  toArray(): string[] {
    return this.#members.map(String);
  }

  [Symbol.iterator](): Iterator<Scope> {
    return this.#members[Symbol.iterator]();
  }

  #compiled(): ScopeIndex {
    this.#index ??= new ScopeIndex(this.#members);
    return this.#index;
  }

  #meets(scope: Scope): Scope[] {
    return this.#members.flatMap((member) => {
      if (covers(scope, member)) return [member];
      if (covers(member, scope)) return [scope];
      return [];
    });
  }
}

function toList(scopes: Scopes): Scopes {
  const isList =
    typeof scopes === 'object' && scopes !== null && typeof scopes[Symbol.iterator] === 'function';
  if (isList) return scopes;
  throw new ScopeError(
    'scopes_required',
    'a list of scopes is required, as ["GET:shop.example/orders"]',
  );
}

function read(request: ScopeRequest | ReadRequest): ReturnType<typeof readRequest> {
  return isReadRequest(request) ? { ok: true, request } : readRequest(request);
}

function failures(outer: Scope, inner: Scope): NearMiss['failed'][] {
  const failed: NearMiss['failed'][] = [];
  if (!domainCovers(outer.domain, inner.domain)) failed.push('domain');
  if (!pathCovers(outer.path, inner.path)) failed.push('path');
  if (!methodCovers(outer.method, inner.method)) failed.push('method');
  return failed;
}

/** A place in the tree of paths below one domain pattern and one method pattern. */
interface PathNode {
  /** The scope whose path ends here; at the root, the one with the path `*`. */
  scope?: Scope;
  children?: Map<string, PathNode>;
}

/**
 * Scopes compiled for looking up: domain pattern → method pattern → tree of path segments. A look-up
 * walks the few patterns that can cover a domain and at most the segments of one path, so its cost
 * does not grow with the number of scopes. `Map` only: no name means anything special.
 */
class ScopeIndex {
  readonly #domains = new Map<string, Map<string, PathNode>>();
  #hasWildcardDomain = false;

  constructor(scopes: Iterable<Scope>) {
    for (const scope of scopes) this.#add(scope);
  }

  /** The most specific scope that covers a request or another scope. */
  find(method: string, domain: string, path: string): Scope | undefined {
    let best: Scope | undefined;
    let bestDepth = -1;
    for (const root of this.#roots(method, domain)) {
      walk(root, path, (scope, depth) => {
        if (depth > bestDepth) {
          best = scope;
          bestDepth = depth;
        }
      });
    }
    return best;
  }

  /** Whether a scope other than this one covers it. */
  hasOther(scope: Scope): boolean {
    for (const root of this.#roots(scope.method, scope.domain)) {
      let found = false;
      walk(root, scope.path, (other) => {
        found ||= other !== scope;
      });
      if (found) return true;
    }
    return false;
  }

  #add(scope: Scope): void {
    this.#hasWildcardDomain ||= scope.domain.startsWith('*');
    const methods = getOrMake(this.#domains, scope.domain, () => new Map<string, PathNode>());
    let node = getOrMake(methods, scope.method, (): PathNode => ({}));
    for (const segment of scope.path === '*' ? [] : scope.path.split('/')) {
      node.children ??= new Map();
      node = getOrMake(node.children, segment, (): PathNode => ({}));
    }
    node.scope = scope;
  }

  /** The trees that can cover this method and domain, the most specific pattern first. */
  *#roots(method: string, domain: string): Generator<PathNode> {
    for (const pattern of this.#hasWildcardDomain ? patternsOf(domain) : [domain]) {
      const methods = this.#domains.get(pattern);
      if (methods === undefined) continue;
      const exact = methods.get(method);
      if (exact !== undefined) yield exact;
      const every = method === '*' ? undefined : methods.get('*');
      if (every !== undefined) yield every;
    }
  }
}

/** The domain patterns that cover a domain or a domain pattern, the narrowest first. */
function* patternsOf(domain: string): Generator<string> {
  yield domain;
  if (domain === '*') return;
  const first = domain.startsWith('*.') ? 2 : 0;
  for (let dot = domain.indexOf('.', first); dot !== -1; dot = domain.indexOf('.', dot + 1)) {
    yield `*${domain.slice(dot)}`;
  }
  yield '*';
}

/** Visits the scopes on the way down a path, the shortest first. The path `*` has no segments. */
function walk(root: PathNode, path: string, visit: (scope: Scope, depth: number) => void): void {
  if (root.scope !== undefined) visit(root.scope, 0);
  if (path === '*') return;
  let node: PathNode | undefined = root;
  let start = 0;
  for (let depth = 1; start < path.length; depth++) {
    const slash = path.indexOf('/', start);
    const end = slash === -1 ? path.length : slash;
    node = node.children?.get(path.slice(start, end));
    if (node === undefined) return;
    if (node.scope !== undefined) visit(node.scope, depth);
    start = end + 1;
  }
}

function getOrMake<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}
