import { domainCovers, meet, methodCovers, overlaps, pathCovers } from './algebra.ts';
import { type CompiledScopes, compile, getOrMake, pathTextOf, patternsOf } from './compiled.ts';
import { isScope, type Scope, ScopeError, toScope } from './grammar.ts';
import {
  isReadRequest,
  pathTextOfRequest,
  type ReadRequest,
  type RequestReason,
  readRequest,
  type ScopeRequest,
  scopeOfRequest,
} from './request.ts';

/** Whether a set allows a request: by which scope, or why not. */
export type Decision =
  | {
      readonly allowed: true;
      /** The member that allows it. */
      readonly by: Scope;
    }
  | {
      readonly allowed: false;
      /** Why not: no member covers it, or the request is ambiguous. */
      readonly reason: RequestReason | 'not_covered';
    };

/** The member that comes closest to allowing a request, and the component that fails. */
export interface NearMiss {
  /** The member. */
  readonly scope: Scope;
  /** The first component that fails, in the order in which a scope is written. */
  readonly failed: 'method' | 'domain' | 'path';
}

/** What {@link ScopeSet.explain} asks a catalog. */
export interface KnownScopes {
  /** The entry that names a request; `undefined` when none does. */
  attribute(request: ReadRequest): Scope | undefined;
  /** Whether an entry covers the scope, or the scope an entry. */
  knows(scope: Scope): boolean;
  /** The entries most like a text, the best first. */
  suggest(text: string): string[];
}

/** What {@link ScopeSet.explain} answers. */
export type ScopeExplanation =
  | {
      readonly allowed: true;
      /** The member that allows it. */
      readonly by: Scope;
      /** What it is called: the catalog's entry for a request, else the narrowest scope for it. */
      readonly needed: Scope;
      /** Whether the catalog knows it; true without a catalog. */
      readonly known: boolean;
    }
  | {
      readonly allowed: false;
      readonly reason: 'not_covered';
      /** What it is called: the catalog's entry for a request, else the narrowest scope for it. */
      readonly needed: Scope;
      /** The narrowest scope that would have allowed it. */
      readonly smallest: Scope;
      /** Absent when the set is empty. */
      readonly nearest?: NearMiss;
      /** Whether the catalog knows it; true without a catalog. */
      readonly known: boolean;
      /** The known scopes most like it, where it is not known. */
      readonly suggestions: readonly string[];
    }
  | {
      readonly allowed: false;
      /** Why the request is ambiguous, or none. */
      readonly reason: RequestReason;
    };

/** What a change gives and takes, each in canonical order. */
export interface ScopeDiff {
  /** What was not covered before. */
  readonly added: readonly string[];
  /** What is not covered any more. */
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
  #compiled: CompiledScopes | undefined;

  private constructor(members: readonly Scope[]) {
    this.#members = members;
  }

  /**
   * Makes a set of scopes or texts.
   *
   * @throws {ScopeError} with the code of the first member that is not a scope; `scopes_required`
   * when `scopes` is not a list
   * @example
   * ScopeSet.from(['GET:shop.example/orders', 'GET:shop.example/orders']).size; // 1
   */
  static from(scopes: Scopes): ScopeSet {
    if (ScopeSet.#is(scopes)) return scopes;
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

  /**
   * Whether one member covers the scope; a set covers a scope only so.
   *
   * @throws {ScopeError} when a text is not a scope
   * @example
   * ScopeSet.from(['GET:shop.example/*']).covers('GET:shop.example/orders'); // true
   */
  covers(scope: Scope | string): boolean {
    return this.coverOf(scope) !== undefined;
  }

  /**
   * The most specific member that covers the scope, by the order of {@link ScopeSet.allows};
   * `undefined` when none does.
   *
   * @throws {ScopeError} when a text is not a scope
   * @example
   * const held = ScopeSet.from(['GET:shop.example/*', 'GET:shop.example/orders']);
   * String(held.coverOf('GET:shop.example/orders/7')); // 'GET:shop.example/orders'
   */
  coverOf(scope: Scope | string): Scope | undefined {
    const found = toScope(scope);
    return this.#lookUp().find(found.method, found.domain, pathTextOf(found));
  }

  /**
   * Whether some request is allowed by the set and by the scope.
   *
   * @throws {ScopeError} when a text is not a scope
   * @example
   * ScopeSet.from(['GET:shop.example/orders']).overlaps('*:shop.example/orders/7'); // true
   */
  overlaps(scope: Scope | string): boolean {
    const other = toScope(scope);
    return this.#members.some((member) => overlaps(member, other));
  }

  /**
   * Decides a request. Among several members that allow it, `by` is the most specific one: the
   * longest path, then the exact host, then the longest parent, then the exact method. Never throws;
   * the cost does not depend on how many scopes the set holds.
   *
   * @example
   * const held = ScopeSet.from(['GET:shop.example/orders']);
   * const decision = held.allows({ method: 'GET', domain: 'shop.example', target: '/orders/7?x=1' });
   * if (!decision.allowed) console.log(decision.reason); // 'not_covered'
   */
  allows(request: ScopeRequest | ReadRequest): Decision {
    const reading = read(request);
    if (!reading.ok) return { allowed: false, reason: reading.reason };
    const by = this.grantOf(reading.request);
    return by === undefined ? { allowed: false, reason: 'not_covered' } : { allowed: true, by };
  }

  /**
   * Decides a request, or a scope as `covers` does, and says why: what allows it, or
   * which member comes nearest, which of its components fails, and the narrowest scope that would
   * have been enough. With a catalog, also whether that knows what is asked, and what is like it.
   *
   * @throws {ScopeError} when a text is not a scope; `scopes_required` for what is no catalog
   * @example
   * const request = { method: 'GET', domain: 'shop.example', target: '/orders/7' };
   * const answer = ScopeSet.from(['POST:shop.example/orders']).explain(request);
   * // { allowed: false, nearest: { failed: 'method', … }, smallest: GET:shop.example/orders/7, … }
   */
  explain(
    need: ScopeRequest | ReadRequest | Scope | string,
    catalog?: KnownScopes,
  ): ScopeExplanation {
    const reading = readNeed(need);
    if (!reading.ok) return { allowed: false, reason: reading.reason };
    const asked = reading.need;
    const by = this.grantOf(asked);
    const { needed, known } = ask(() => nameNeed(asked, catalog));
    if (by !== undefined) return { allowed: true, by, needed, known };
    const smallest = isReadRequest(asked) ? scopeOfRequest(asked) : asked;
    const nearest = this.nearestTo(smallest);
    return {
      allowed: false,
      reason: 'not_covered',
      needed,
      smallest,
      ...(nearest !== undefined && { nearest }),
      known,
      suggestions: known ? [] : ask(() => catalog?.suggest(smallest.toString()) ?? []),
    };
  }

  /**
   * The most specific member that allows a request that was read, or covers a scope; `undefined` when
   * none does.
   *
   * @throws {ScopeError} when what is asked for is neither
   * @example
   * const reading = readRequest({ method: 'GET', domain: 'shop.example', target: '/orders/7' });
   * if (reading.ok) console.log(String(held.grantOf(reading.request))); // 'GET:shop.example/orders'
   */
  grantOf(need: ReadRequest | Scope): Scope | undefined {
    if (!isReadRequest(need)) return this.coverOf(need);
    return this.#lookUp().find(need.method, need.domain, pathTextOfRequest(need));
  }

  /**
   * The member that fails to cover a scope in the fewest components; `undefined` when one covers it,
   * and when there is none.
   *
   * @throws {ScopeError} when a text is not a scope
   * @example
   * held.nearestTo('POST:shop.example/orders')?.failed; // 'method'
   */
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

  /**
   * The same rights in the fewest scopes: the members that no other member covers.
   *
   * @example
   * const held = ScopeSet.from(['GET:shop.example/*', 'GET:shop.example/orders']);
   * held.minimize().toArray(); // ['GET:shop.example/*']
   */
  minimize(): ScopeSet {
    const compiled = this.#lookUp();
    const isCovered = (member: Scope, place: number) =>
      compiled.find(member.method, member.domain, pathTextOf(member), place) !== undefined;
    return new ScopeSet(this.#members.filter((member, place) => !isCovered(member, place)));
  }

  /**
   * What either set allows, minimized.
   *
   * @throws {ScopeError} as {@link ScopeSet.from}
   * @example
   * const both = ScopeSet.from(['GET:shop.example/orders']).union(['GET:shop.example/bills']);
   * both.size; // 2
   */
  union(other: Scopes): ScopeSet {
    return ScopeSet.from([...this.#members, ...ScopeSet.from(other)]).minimize();
  }

  /**
   * What both sets allow, minimized. Costs what they hold and what they share, which may be as many
   * scopes as there are pairs: ten methods on every host with every method on ten hosts.
   *
   * @throws {ScopeError} as {@link ScopeSet.from}
   * @example
   * const shared = ScopeSet.from(['*:shop.example/orders']).intersection(['GET:shop.example/*']);
   * shared.toArray(); // ['GET:shop.example/orders']
   */
  intersection(other: Scopes): ScopeSet {
    const shared = new Map<string, Scope>();
    for (const [ours, others] of overlapping(this.#members, ScopeSet.from(other).#members)) {
      for (const a of ours) {
        for (const b of others) {
          const common = meet(a, b) as Scope;
          shared.set(common.toString(), common);
        }
      }
    }
    return ScopeSet.from(shared.values()).minimize();
  }

  /**
   * The members of `required` that this set does not cover, in canonical order.
   *
   * @throws {ScopeError} as {@link ScopeSet.from}
   * @example
   * ScopeSet.from(['GET:shop.example/*']).missing(['POST:shop.example/orders']);
   * // ['POST:shop.example/orders']
   */
  missing(required: Scopes): string[] {
    return [...ScopeSet.from(required)].filter((scope) => !this.covers(scope)).map(String);
  }

  /**
   * What a change from this set to `after` gives and takes, both minimized.
   *
   * @throws {ScopeError} as {@link ScopeSet.from}
   * @example
   * const { added } = ScopeSet.from(['GET:shop.example/orders']).diff(['GET:shop.example/*']);
   * console.log(added); // ['GET:shop.example/*']
   */
  diff(after: Scopes): ScopeDiff {
    const before = this.minimize();
    const next = ScopeSet.from(after).minimize();
    return { added: before.missing(next), removed: next.missing(before) };
  }

  /**
   * Whether both sets allow the same requests.
   *
   * @throws {ScopeError} as {@link ScopeSet.from}
   * @example
   * const wide = ScopeSet.from(['GET:shop.example/*']);
   * wide.equals(['GET:shop.example/*', 'GET:shop.example/orders']); // true
   */
  equals(other: Scopes): boolean {
    const { added, removed } = this.diff(other);
    return added.length === 0 && removed.length === 0;
  }

  /**
   * The members as texts, in canonical order.
   *
   * @example
   * ScopeSet.from(['GET:b.example/a', 'GET:a.example/a']).toArray();
   * // ['GET:a.example/a', 'GET:b.example/a']
   */
  toArray(): string[] {
    return this.#members.map(String);
  }

  /** The members, in canonical order. */
  [Symbol.iterator](): Iterator<Scope> {
    return this.#members[Symbol.iterator]();
  }

  static #is(value: Scopes): value is ScopeSet {
    return typeof value === 'object' && value !== null && #members in value;
  }

  #lookUp(): CompiledScopes {
    this.#compiled ??= compile(this.#members);
    return this.#compiled;
  }
}

/**
 * The pairs that overlap, in blocks of which each on the left overlaps each on the right; each pair
 * lies in one block. Near linear: in each component one of the two covers the other, so grouping by
 * the outer pattern, component by component and either way round, leaves no other pairs.
 */
export function* overlapping(
  left: readonly Scope[],
  right: readonly Scope[],
  [patterns, ...rest] = PATTERNS,
): Generator<readonly [left: readonly Scope[], right: readonly Scope[]]> {
  if (patterns === undefined) yield [left, right];
  else if (Math.min(left.length, right.length) <= FEW) {
    for (const a of left) {
      const others = right.filter((b) => overlaps(a, b));
      if (others.length > 0) yield [[a], others];
    }
  } else {
    for (const [inner, outer] of nested(left, right, patterns, 0)) {
      yield* overlapping(inner, outer, rest);
    }
    for (const [inner, outer] of nested(right, left, patterns, 1)) {
      yield* overlapping(outer, inner, rest);
    }
  }
}

/** So few that each is compared with each. */
const FEW = 4;

/** For each component of a scope, the patterns that cover it: itself, then the wider ones. */
const PATTERNS: readonly ((scope: Scope) => readonly string[])[] = [
  ({ method }) => (method === '*' ? [method] : [method, '*']),
  ({ domain }) => patternsOf(domain),
  ({ path }) => prefixesOf(path),
];

/** Under each pattern of the outer ones, the inner ones it covers; with `from` 1 itself not counted. */
function nested(
  inner: readonly Scope[],
  outer: readonly Scope[],
  patterns: (scope: Scope) => readonly string[],
  from: 0 | 1,
): (readonly [inner: Scope[], outer: Scope[]])[] {
  const groups = new Map<string, readonly [Scope[], Scope[]]>();
  const none = (): readonly [Scope[], Scope[]] => [[], []];
  for (const scope of outer) getOrMake(groups, patterns(scope)[0] as string, none)[1].push(scope);
  for (const scope of inner) {
    for (const pattern of patterns(scope).slice(from)) groups.get(pattern)?.[0].push(scope);
  }
  return [...groups.values()].filter(([covered]) => covered.length > 0);
}

/**
 * The members of a list, whatever they are.
 *
 * @throws {ScopeError} `scopes_required` for what is no list, or does not let itself be read
 */
export function toList<Member>(scopes: Iterable<Member>): readonly Member[] {
  try {
    if (typeof scopes === 'object' && scopes !== null) return [...scopes];
  } catch {
    // As good as none.
  }
  throw new ScopeError(
    'scopes_required',
    'a list of scopes is required, as ["GET:shop.example/orders"]',
  );
}

/**
 * What to call what is needed, and whether a catalog knows it: its entry for a request, else the
 * narrowest scope for it; a scope is its own name.
 */
export function nameNeed(
  need: ReadRequest | Scope,
  catalog?: KnownScopes,
): { readonly needed: Scope; readonly known: boolean } {
  if (!isReadRequest(need)) return { needed: need, known: catalog?.knows(need) ?? true };
  const entry = catalog?.attribute(need);
  return {
    needed: entry ?? scopeOfRequest(need),
    known: catalog === undefined || entry !== undefined,
  };
}

/** The answer of a catalog, which may be one of the caller's own. */
function ask<Answer>(question: () => Answer): Answer {
  try {
    return question();
  } catch {
    throw new ScopeError('scopes_required', 'the catalog must be a ScopeCatalog');
  }
}

function readNeed(
  need: ScopeRequest | ReadRequest | Scope | string,
):
  | { readonly ok: true; readonly need: ReadRequest | Scope }
  | { readonly ok: false; readonly reason: RequestReason } {
  if (typeof need === 'string' || isScope(need)) return { ok: true, need: toScope(need) };
  const reading = read(need);
  return reading.ok ? { ok: true, need: reading.request } : reading;
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

/** The paths that cover a path, the longest first. */
function prefixesOf(path: string): string[] {
  if (path === '*') return [path];
  const prefixes = [path];
  for (let slash = path.lastIndexOf('/'); slash !== -1; slash = path.lastIndexOf('/', slash - 1)) {
    prefixes.push(path.slice(0, slash));
  }
  prefixes.push('*');
  return prefixes;
}
