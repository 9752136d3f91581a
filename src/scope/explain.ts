import { domainCovers, methodCovers, pathCovers } from './algebra.ts';
import { ScopeError } from './errors.ts';
import { isScope, type Scope, toScope } from './grammar.ts';
import {
  isReadRequest,
  type ReadRequest,
  type RequestReason,
  readOnce,
  routesOfRequest,
  type ScopeRequest,
  scopeOfRequest,
  type Unambiguous,
} from './request.ts';

/** The member that comes closest to allowing a request, and the component that fails. */
export interface NearMiss {
  /** The member. */
  readonly scope: Scope;
  /** The first component that fails: the domain, then the path, then the method. */
  readonly failed: 'method' | 'domain' | 'path';
}

/** The part of a catalog that `ScopeSet.explain` uses. */
export interface KnownScopes {
  /** The entry of a request; `undefined` when there is none. */
  attribute(request: ReadRequest): Scope | undefined;
  /** Whether an entry covers the scope, or the scope an entry. */
  knows(scope: Scope): boolean;
  /** The entries most like a text, the best first. */
  suggest(text: string): string[];
  /** What people call an entry. */
  words?(scope: Scope): { readonly summary?: string | undefined } | undefined;
}

/** The result of `ScopeSet.explain`. */
export type ScopeExplanation =
  | {
      readonly allowed: true;
      /** The member that allows it. */
      readonly by: Scope;
      /** The needed scope: the catalog's entry for a request, else the narrowest scope for it. */
      readonly needed: Scope;
      /** Whether the catalog knows it; true without a catalog. */
      readonly known: boolean;
    }
  | {
      readonly allowed: false;
      readonly reason: 'not_covered';
      /** The needed scope: the catalog's entry for a request, else the narrowest scope for it. */
      readonly needed: Scope;
      /** The narrowest scope that would have allowed it. */
      readonly smallest: Scope;
      /** Absent when the set is empty. */
      readonly nearest?: NearMiss;
      /** Whether the catalog knows it; true without a catalog. */
      readonly known: boolean;
      /** The known scopes most like it, if it is unknown. */
      readonly suggestions: readonly string[];
    }
  | {
      readonly allowed: false;
      /** Why the request is ambiguous or invalid. */
      readonly reason: RequestReason;
    };

/** A request that was read, a scope, or the reason why a request is refused. */
export function readScopeOrRequest(
  need: ScopeRequest | Unambiguous | Scope | string,
): ReadRequest | Scope | RequestReason {
  if (typeof need === 'string' || isScope(need)) return toScope(need);
  const reading = readOnce(need);
  return reading.ok ? reading.request : reading.reason;
}

/**
 * The scope that a need is reported by, and whether a catalog knows it: for a request its entry of the
 * catalog, else the narrowest scope for it; for a scope the scope itself.
 */
export function nameNeed(
  need: ReadRequest | Scope,
  catalog?: KnownScopes,
): { readonly needed: Scope; readonly known: boolean } {
  if (!isReadRequest(need)) return { needed: need, known: catalog?.knows(need) ?? true };
  const entry = (catalog ?? routesOfRequest(need))?.attribute(need);
  return {
    needed: entry ?? scopeOfRequest(need),
    known: catalog === undefined || entry !== undefined,
  };
}

/** Asks a catalog of the caller, which may be something else. */
export function ask<Answer>(question: () => Answer): Answer {
  try {
    return question();
  } catch {
    throw new ScopeError('scopes_required', 'the catalog must be a ScopeCatalog');
  }
}

/** The components in which a scope fails to cover another one. */
export function failures(outer: Scope, inner: Scope): NearMiss['failed'][] {
  const failed: NearMiss['failed'][] = [];
  if (!domainCovers(outer.domain, inner.domain)) failed.push('domain');
  if (!pathCovers(outer.path, inner.path)) failed.push('path');
  if (!methodCovers(outer.method, inner.method)) failed.push('method');
  return failed;
}
