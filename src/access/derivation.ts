import { MAX_ANCESTORS } from '../bounds.ts';
import { TokenError } from '../errors.ts';
import type { PatchInput, Read } from '../input.ts';
import { checkLimitsWithin } from '../limits/within.ts';
import { ScopeCatalog } from '../scope/catalog.ts';
import { describeRefused, type RefusedScope, ScopeError } from '../scope/errors.ts';
import { type Scope, ScopeSet } from '../scope/index.ts';
import { isScopeError, ofMember, toTokenError } from '../scope-refusals.ts';
import type { TokenId, TokenLimits, TokenRecord } from '../token.ts';

/** The bounds of a derived token: what its parent holds, narrowed to what the parent's ancestors allow. */
export interface Bounds {
  readonly held: ScopeSet;
  readonly expiresAt: Date;
  /** Of the parent and its ancestors, as far as they are limited. */
  readonly limits: readonly TokenLimits[];
}

/**
 * The `ancestors` of a token that is derived from this one.
 *
 * @throws {TokenError} `quota_exceeded` beyond the eighth generation
 */
export function ancestryOf({ id, ancestors = [] }: TokenRecord): readonly TokenId[] {
  if (ancestors.length < MAX_ANCESTORS) return [...ancestors, id];
  const max = MAX_ANCESTORS + 1;
  throw new TokenError(
    'quota_exceeded',
    `a token of generation ${max} cannot be derived from; derive from one of its ancestors`,
    { quota: 'generations', max },
  );
}

/**
 * Expands the requested scopes of a derived token: requested ∩ held by the parent, by the rules of a
 * catalog.
 *
 * @param granted the scopes that the catalog of the account grants for them; if omitted, only the parent
 * limits them
 * @throws {TokenError} as the expansion by a catalog; `scope_unmatched` names the scopes that the parent
 * does not hold
 */
export function expandWithin(
  { held }: Bounds,
  asked: readonly Scope[],
  { granted, member = 'scopes' }: Granted = {},
): readonly string[] {
  const within = expanded(held, asked, member);
  if (granted === undefined) return within;
  const allowed = ScopeSet.from(granted);
  const covered = within.filter((scope) => allowed.covers(scope));
  const others = within.filter((scope) => !allowed.covers(scope));
  // A wildcard that the parent got when there was no catalog covers more than the catalog grants.
  const meets = ScopeSet.from(others).intersection(allowed).toArray();
  const common = meets.length === 0 ? covered : [...new Set([...covered, ...meets])].sort();
  const commonSet = ScopeSet.from(common);
  const unmatched = asked.filter((scope) => !commonSet.overlaps(scope));
  if (unmatched.length === 0) return Object.freeze(common);
  throw notHeld(unmatched.map(refusedOf), member);
}

interface Granted {
  readonly granted?: readonly string[] | undefined;
  /** The member of the input that has the scopes. */
  readonly member?: 'scopes' | 'addScopes' | undefined;
}

function expanded(held: ScopeSet, asked: readonly Scope[], member: string): readonly string[] {
  try {
    return Object.freeze(ScopeCatalog.ofHeld(held).expand(asked).granted);
  } catch (error) {
    if (!isScopeError(error)) throw error;
    // The parent may hold no scope that its own ancestors still allow.
    if (error.code === 'catalog_empty') throw notHeld(asked.map(refusedOf), member);
    if (error.code === 'scope_unmatched') throw notHeld(error.refused ?? [], member);
    throw ofMember(toTokenError(error) as TokenError, member);
  }
}

function refusedOf(scope: Scope): RefusedScope {
  return { scope: scope.toString() };
}

function notHeld(refused: readonly RefusedScope[], member: string): TokenError {
  const message = `the parent token does not hold ${describeRefused(refused)}`;
  const refusal = new ScopeError('scope_unmatched', message, { refused });
  return ofMember(toTokenError(refusal) as TokenError, member);
}

/** The requested expiry, or that of the parent if it is earlier. */
export function expiryWithin({ expiresAt: latest }: Bounds, expiresAt: Date): Date {
  return latest < expiresAt ? new Date(latest) : expiresAt;
}

/** Whether a patch could give the token more than its parent has, so that it must be bounded. */
export function isWidening(
  { scopes, addScopes, limits }: BoundedPatch,
  { expiresAt }: Pick<Granting, 'expiresAt'>,
): boolean {
  return (scopes ?? addScopes ?? expiresAt ?? limits ?? undefined) !== undefined;
}

/**
 * Bounds what a patch gives to a token by what the parent of the token has.
 *
 * @throws {TokenError} as {@link expandWithin} and {@link checkLimitsWithin}
 */
export function patchWithin<Known extends Granting>(
  bounds: Bounds,
  { scopes, addScopes, limits }: BoundedPatch,
  known: Known,
): Known {
  const { granted, expiresAt } = known;
  const asked = scopes ?? addScopes;
  const member = scopes === undefined ? 'addScopes' : 'scopes';
  for (const outer of bounds.limits) checkLimitsWithin(limits, outer);
  return {
    ...known,
    ...(asked && { granted: expandWithin(bounds, asked, { granted, member }) }),
    ...(expiresAt && { expiresAt: expiryWithin(bounds, expiresAt) }),
  };
}

type BoundedPatch = Pick<Read<PatchInput>, 'scopes' | 'addScopes' | 'limits'>;

interface Granting {
  readonly granted: readonly string[];
  readonly expiresAt: Date | undefined;
}
