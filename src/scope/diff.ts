import { covers, meet, pathCovers } from './algebra.ts';
import { ScopeCatalog } from './catalog.ts';
import { getOrMake } from './collections.ts';
import { parseScope, type Scope } from './grammar.ts';
import { ScopeLookup } from './lookup.ts';
import { OverlapIndex, patternsOf } from './overlap.ts';
import { segmentBits } from './request.ts';
import type { ScopeDiff } from './set.ts';

// Not exported by index.ts, whose bundle stays small: tokenwright/openapi exports it.

/** The part of a token that `catalogDiff` compares. The tokens of the service have it. */
export interface TokenScopes {
  /** Identifies the token in the result. */
  readonly id: string;
  /** The scopes it holds. */
  readonly scopes: readonly string[];
  /** The scopes that were requested when it was issued or last changed. */
  readonly requested: readonly string[];
}

/** The effect of a change of the catalog on one token. All lists are in canonical order. */
export interface TokenChange {
  /** Which token. */
  readonly id: string;
  /** The scopes of the old catalog that it holds and that are not, or not entirely, in the new one. */
  readonly lost: readonly string[];
  /** The parts of `lost` that the new catalog has: give these to the token instead. */
  readonly kept: readonly string[];
  /** The scopes it would get in addition if it were issued again as it was requested. */
  readonly gained: readonly string[];
}

/** The result of `catalogDiff`. */
export interface CatalogDiff extends ScopeDiff {
  /** The entries that no entry of the old catalog stands for. */
  readonly added: readonly string[];
  /** The entries that no entry of the new catalog stands for, or not entirely. */
  readonly removed: readonly string[];
  /** The parts of `removed` that the new catalog has, in canonical order. */
  readonly kept: readonly string[];
  /** The tokens that lose or gain something, in the given order. */
  readonly tokens: readonly TokenChange[];
  /** Whether a token loses something; if no tokens are given, whether an entry vanishes. */
  readonly isBreaking: boolean;
}

/** Compares two catalogs, and what tokens hold of them; see `catalogDiff` of `tokenwright/openapi`. */
export function diffCatalogs(
  before: Iterable<Scope | string>,
  after: Iterable<Scope | string>,
  given: Iterable<TokenScopes> | undefined,
): CatalogDiff {
  const known = new Endpoints(ScopeCatalog.from(before));
  const catalog = ScopeCatalog.from(after);
  const next = new Endpoints(catalog);
  const removed = next.missing(known);
  const impact = new TokenImpact(known, next, removed, catalog);
  const tokens: TokenChange[] = [];
  for (const token of given ?? []) {
    const change = impact.changeOf(token);
    if (change.lost.length > 0 || change.gained.length > 0) tokens.push(change);
  }
  const isBreaking =
    given === undefined ? removed.length > 0 : tokens.some(({ lost }) => lost.length > 0);
  return {
    added: known.missing(next).map(String),
    removed: removed.map(String),
    kept: sorted(removed.flatMap((entry) => next.inCommon(entry, entry))),
    tokens,
    isBreaking,
  };
}

/**
 * Scopes as the endpoints of a service. A `{}` does not match a segment that the endpoint in question
 * names, like in {@link ScopeCatalog.readRequest}.
 */
class Endpoints {
  readonly #scopes: readonly Scope[];
  readonly #lookup: ScopeLookup;
  #index: OverlapIndex | undefined;

  constructor(scopes: Iterable<Scope>) {
    this.#scopes = [...scopes];
    this.#lookup = new ScopeLookup(this.#scopes);
  }

  /** The others that none of these stands for. */
  missing(others: Endpoints): Scope[] {
    return others.#scopes.filter((scope) => this.coverOf(scope, scope) === undefined);
  }

  /** The most specific one that covers a scope, which is a part of an endpoint. */
  coverOf(scope: Scope, endpoint?: Scope, except?: number): Scope | undefined {
    return this.#lookup.coverOf(scope, namedBy(endpoint), except);
  }

  /** The parts of a scope that belong to each of these and to no other endpoint of a service. */
  partsOf(scope: Scope, service: Endpoints): Part[] {
    return this.#meets(scope).filter(({ part, endpoint }) => service.coverOf(part) === endpoint);
  }

  /** The parts of a scope by these. Where none of several is the most specific one, each has the part. */
  ownParts(scope: Scope): Part[] {
    if (scope.path.endsWith('$')) return this.#owned(scope);
    const parts = new Map(this.#meets(scope).map(({ part }) => [part.toString(), part]));
    return [...parts.values()].flatMap((part) => this.#owned(part));
  }

  /** What a scope has in common with each of these, but for those that name a segment where it has `{}`. */
  #meets(scope: Scope): Part[] {
    const templates = segmentBits(scope.path, true);
    return this.#overlapping(scope)
      .filter((endpoint) => (templates & namedBy(endpoint)) === 0)
      .map((endpoint) => ({ part: meet(scope, endpoint) as Scope, endpoint }));
  }

  /** A part, once for each of the most specific ones that cover it. */
  #owned(part: Scope): Part[] {
    const all = this.#overlapping(part).filter((one) => covers(one, part));
    const isNarrowest = (one: Scope) =>
      !all.some((other) => other !== one && pathCovers(one.path, other.path));
    return all.filter(isNarrowest).map((endpoint) => ({ part, endpoint }));
  }

  /** The meets with a scope, which is a part of an endpoint. */
  inCommon(scope: Scope, endpoint?: Scope): string[] {
    return this.#overlapping(scope, endpoint).map((one) => String(meet(one, scope)));
  }

  #overlapping(scope: Scope, endpoint?: Scope): Scope[] {
    this.#index ??= new OverlapIndex(this.#scopes);
    return this.#index.find('overlapping', patternsOf(scope), Infinity, namedBy(endpoint));
  }
}

/** A scope, and the endpoint that it is a part of. */
interface Part {
  readonly part: Scope;
  readonly endpoint: Scope;
}

/** The literal segments of an endpoint, as bits. */
function namedBy(endpoint: Scope | undefined): number {
  return endpoint === undefined ? 0 : segmentBits(endpoint.path, false);
}

type Change = Omit<TokenChange, 'id'>;
type Loss = Omit<Change, 'gained'>;

/** Enough for the scopes of a few tokens, and for the distinct lists of tokens made alike. */
const MAX_CACHED_SCOPES = 20_000;
const MAX_CACHED_CHANGES = 64;
const NO_LOSS: Loss = { lost: [], kept: [] };

/** Like {@link getOrMake}, for a cache that is emptied when it is full. */
function recall<Value>(
  cache: Map<string, Value>,
  most: number,
  key: string,
  make: () => Value,
): Value {
  if (cache.size >= most) cache.clear();
  return getOrMake(cache, key, make);
}

/** The effect of a change of the catalog on tokens. Caches, because tokens share most of their scopes. */
class TokenImpact {
  readonly #before: Endpoints;
  readonly #after: Endpoints;
  readonly #removed: Endpoints;
  readonly #catalog: ScopeCatalog;
  readonly #scopes = new Map<string, Scope>();
  readonly #losses = new WeakMap<Scope, Loss>();
  readonly #changes = new Map<string, Change>();

  constructor(
    before: Endpoints,
    after: Endpoints,
    removed: Iterable<Scope>,
    catalog: ScopeCatalog,
  ) {
    this.#before = before;
    this.#after = after;
    this.#removed = new Endpoints(removed);
    this.#catalog = catalog;
  }

  changeOf({ id, scopes, requested }: TokenScopes): TokenChange {
    const key = JSON.stringify([scopes, requested]);
    const change = recall(this.#changes, MAX_CACHED_CHANGES, key, () => {
      const held = scopes.map((text) => this.#parse(text));
      const losses = held.map((scope) => getOrMake(this.#losses, scope, () => this.#lossOf(scope)));
      const endpoints = new Endpoints(held);
      const isNew = ({ part, endpoint }: Part) => endpoints.coverOf(part, endpoint) === undefined;
      return {
        lost: sorted(losses.flatMap(({ lost }) => lost)),
        kept: sorted(losses.flatMap(({ kept }) => kept)),
        gained: this.#granted(requested).filter((text) =>
          this.#after.ownParts(this.#parse(text)).some(isNew),
        ),
      };
    });
    return { id, ...change };
  }

  #parse(text: string): Scope {
    return recall(this.#scopes, MAX_CACHED_SCOPES, text, () => parseScope(text));
  }

  #lossOf(scope: Scope): Loss {
    const parts = this.#removed
      .partsOf(scope, this.#before)
      .filter(({ part, endpoint }) => this.#after.coverOf(part, endpoint) === undefined);
    if (parts.length === 0) return NO_LOSS;
    const all = new Endpoints(parts.map(({ part }) => part));
    const isOuter = ({ part, endpoint }: Part, i: number) =>
      all.coverOf(part, endpoint, i) === undefined;
    return {
      lost: parts.filter(isOuter).map(({ part }) => part.toString()),
      kept: parts.flatMap(({ part, endpoint }) => this.#after.inCommon(part, endpoint)),
    };
  }

  /** Empty if `expand` refuses. Checks that scopes are known first: a refusal searches similar ones. */
  #granted(requested: readonly string[]): readonly string[] {
    const scopes = requested.map((text) => this.#parse(text));
    try {
      const isKnown = scopes.every((scope) => this.#catalog.knows(scope));
      return isKnown ? this.#catalog.expand(scopes).granted : [];
    } catch {
      return [];
    }
  }
}

function sorted(scopes: readonly string[]): string[] {
  return [...new Set(scopes)].sort();
}
