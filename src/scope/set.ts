import { meet, overlaps } from './algebra.ts';
import {
  ask,
  failures,
  type KnownScopes,
  type NearMiss,
  nameNeed,
  readScopeOrRequest,
  type ScopeExplanation,
} from './explain.ts';
import { type Scope, toScope } from './grammar.ts';
import { toList } from './list.ts';
import { ScopeLookup } from './lookup.ts';
import { OverlapIndex, patternsOf } from './overlap.ts';
import {
  candidatesOf,
  isReadRequest,
  type ReadRequest,
  type RequestReason,
  readOnce,
  routesOfRequest,
  type ScopeRequest,
  scopeOfRequest,
  type Unambiguous,
} from './request.ts';
import { atOnce, filterInSteps, inSteps, type Steps } from './steps.ts';

/** Whether a set allows a request, and why. */
export type Decision =
  | {
      readonly allowed: true;
      /** The member that allows it. */
      readonly by: Scope;
    }
  | {
      readonly allowed: false;
      /** No member covers the request, or it is ambiguous or invalid. */
      readonly reason: RequestReason | 'not_covered';
    };

/** The scopes that a change adds and removes, each in canonical order. */
export interface ScopeDiff {
  /** The scopes that were not covered before. */
  readonly added: readonly string[];
  /** The scopes that are no longer covered. */
  readonly removed: readonly string[];
}

type Scopes = Iterable<Scope | string>;

/** The reason if a set covers some of the entries that servers may take a request to. */
export const SEVERAL_ROUTES = 'path_several_routes';

/**
 * A set of scopes, such as the scopes of a token. Immutable; its members are in canonical order and
 * without duplicates. The empty set covers nothing and allows nothing.
 *
 * @example
 * const held = ScopeSet.from(['GET:shop.example/orders', 'POST:*.shop.example/*']);
 * held.allows({ method: 'GET', domain: 'shop.example', target: '/orders/7' }).allowed; // true
 * held.allows({ method: 'GET', domain: 'shop.example', target: '/ordersx' }).allowed; // false
 */
export class ScopeSet implements Iterable<Scope> {
  readonly #members: readonly Scope[];
  #compiled: ScopeLookup | undefined;

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

  /** The number of members. */
  get size(): number {
    return this.#members.length;
  }

  /**
   * Whether one member covers the scope. Several members never cover a scope together.
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
    return this.#lookUp().coverOf(toScope(scope));
  }

  /**
   * Whether the set and the scope both allow some request.
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
   * Decides a request. If several members allow it, `by` is the most specific one: the longest path,
   * then a closed one, then the first from the left with a literal where another has `{}`; then the
   * exact host, then the longest parent, then the exact method. Never throws. The cost does not depend
   * on the size of the set.
   *
   * @example
   * const held = ScopeSet.from(['GET:shop.example/orders']);
   * const decision = held.allows({ method: 'GET', domain: 'shop.example', target: '/orders/7?x=1' });
   * if (!decision.allowed) console.log(decision.reason); // 'not_covered'
   */
  allows(request: ScopeRequest | Unambiguous): Decision {
    const reading = readOnce(request);
    if (!reading.ok) return { allowed: false, reason: reading.reason };
    const by = this.grantOf(reading.request);
    if (by !== undefined) return { allowed: true, by };
    const isSplit = this.isSplitBy(reading.request);
    return { allowed: false, reason: isSplit ? SEVERAL_ROUTES : 'not_covered' };
  }

  /**
   * Decides a request, or a scope like `covers`, and explains the decision: the member that allows it,
   * or the nearest member, its component that fails, and the narrowest scope that would be enough.
   * With a catalog, also reports whether the catalog knows the need, and similar entries if not. The
   * catalog does not change the decision; to decide by its routes, pass a request that
   * `catalog.readRequest` has read.
   *
   * @throws {ScopeError} when a text is not a scope; `scopes_required` when `catalog` is not a catalog
   * @example
   * const request = { method: 'GET', domain: 'shop.example', target: '/orders/7' };
   * const answer = ScopeSet.from(['POST:shop.example/orders']).explain(request);
   * // { allowed: false, nearest: { failed: 'method', … }, smallest: GET:shop.example/orders/7$, … }
   */
  explain(
    need: ScopeRequest | Unambiguous | Scope | string,
    catalog?: KnownScopes,
  ): ScopeExplanation {
    const asked = readScopeOrRequest(need);
    if (typeof asked === 'string') return { allowed: false, reason: asked };
    const by = this.grantOf(asked);
    const { needed, known } = ask(() => nameNeed(asked, catalog));
    if (by !== undefined) return { allowed: true, by, needed, known };
    if (this.isSplitBy(asked)) return { allowed: false, reason: SEVERAL_ROUTES };
    const smallest = isReadRequest(asked) ? scopeOfRequest(asked) : asked;
    const nearest = this.nearestTo(smallest) ?? this.#namedMiss(smallest);
    return {
      allowed: false,
      reason: 'not_covered',
      needed,
      smallest,
      ...(nearest && { nearest }),
      known,
      suggestions: known ? [] : ask(() => catalog?.suggest(smallest.toString()) ?? []),
    };
  }

  /**
   * The most specific member that allows a request that was read, or that covers a scope; `undefined`
   * when there is none.
   *
   * @throws {ScopeError} when `need` is neither
   * @example
   * const reading = readRequest({ method: 'GET', domain: 'shop.example', target: '/orders/7' });
   * if (reading.ok) console.log(String(held.grantOf(reading.request))); // 'GET:shop.example/orders'
   */
  grantOf(need: ReadRequest | Scope): Scope | undefined {
    if (!isReadRequest(need)) return this.coverOf(need);
    const lookup = this.#lookUp();
    const by = lookup.grantOf(need);
    const routes = routesOfRequest(need);
    if (routes === undefined || (by !== undefined && routes.isSettled(need, by))) return by;
    const { method, domain } = need;
    let first: Scope | undefined;
    for (const { path, named } of candidatesOf(need)) {
      const grant = lookup.find(method, domain, path, named);
      if (grant === undefined) return undefined;
      first ??= grant;
    }
    return first;
  }

  /**
   * Whether members cover some but not all of the entries that servers may take a request to.
   *
   * @internal
   */
  isSplitBy(need: ReadRequest | Scope): boolean {
    if (!isReadRequest(need)) return false;
    const { method, domain } = need;
    const candidates = candidatesOf(need);
    const isCovered = candidates.map(
      ({ path, named }) => this.#lookUp().find(method, domain, path, named) !== undefined,
    );
    return isCovered.includes(true) && isCovered.includes(false);
  }

  /**
   * The member that fails to cover a scope in the fewest components; `undefined` when a member covers
   * it, or when the set is empty.
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
    return atOnce(this.#minimizing());
  }

  *#minimizing(): Steps<ScopeSet> {
    const compiled = this.#lookUp();
    yield;
    const isOuter = (member: Scope, index: number) =>
      compiled.coverOf(member, 0, index) === undefined;
    return new ScopeSet(yield* filterInSteps(this.#members, isOuter));
  }

  /**
   * The scopes that either set allows, minimized.
   *
   * @throws {ScopeError} as {@link ScopeSet.from}
   * @example
   * const both = ScopeSet.from(['GET:shop.example/orders']).union(['GET:shop.example/bills']);
   * both.size; // 2
   */
  union(other: Scopes): ScopeSet {
    return ScopeSet.from([...this.#members, ...toList(other)]).minimize();
  }

  /**
   * The scopes that both sets allow, minimized. Costs as much as the members and the result. The
   * result may be as large as the number of pairs: ten methods on every host with every method on ten
   * hosts.
   *
   * @throws {ScopeError} as {@link ScopeSet.from}
   * @example
   * const shared = ScopeSet.from(['*:shop.example/orders']).intersection(['GET:shop.example/*']);
   * shared.toArray(); // ['GET:shop.example/orders']
   */
  intersection(other: Scopes): ScopeSet {
    return atOnce(this.intersecting(other));
  }

  /**
   * As {@link ScopeSet.intersection}, in steps.
   *
   * @internal
   */
  *intersecting(other: Scopes): Steps<ScopeSet> {
    const shared = new Map<string, Scope>();
    // Minimized, because covered members would only add pairs.
    const index = yield* OverlapIndex.inSteps((yield* this.#minimizing()).#members);
    yield* inSteps(yield* ScopeSet.from(other).#minimizing(), (theirs) => {
      for (const ours of index.find('overlapping', patternsOf(theirs))) {
        const common = meet(ours, theirs) as Scope;
        shared.set(common.toString(), common);
      }
    });
    return yield* ScopeSet.from(shared.values()).#minimizing();
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
    return atOnce(this.missingInSteps(required));
  }

  /**
   * As {@link ScopeSet.missing}, in steps.
   *
   * @internal
   */
  *missingInSteps(required: Scopes): Steps<string[]> {
    const compiled = this.#lookUp();
    yield;
    const isMissing = (scope: Scope) => compiled.coverOf(scope) === undefined;
    return (yield* filterInSteps(ScopeSet.from(required), isMissing)).map(String);
  }

  /**
   * The scopes that a change from this set to `after` adds and removes, both minimized.
   *
   * @throws {ScopeError} as {@link ScopeSet.from}
   * @example
   * const { added } = ScopeSet.from(['GET:shop.example/orders']).diff(['GET:shop.example/*']);
   * console.log(added); // ['GET:shop.example/*']
   */
  diff(after: Scopes): ScopeDiff {
    return atOnce(this.diffInSteps(after));
  }

  /**
   * As {@link ScopeSet.diff}, in steps.
   *
   * @internal
   */
  *diffInSteps(after: Scopes): Steps<ScopeDiff> {
    const before = yield* this.#minimizing();
    const next = yield* ScopeSet.from(after).#minimizing();
    const added = yield* before.missingInSteps(next);
    return { added, removed: yield* next.missingInSteps(before) };
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

  /** A member that covers a refused request, but with a `{}` where its entry has a literal. */
  #namedMiss(needed: Scope): NearMiss | undefined {
    const scope = this.coverOf(needed);
    return scope && { scope, failed: 'path' };
  }

  #lookUp(): ScopeLookup {
    this.#compiled ??= new ScopeLookup(this.#members);
    return this.#compiled;
  }
}
