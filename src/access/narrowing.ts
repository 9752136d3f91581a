import { MAX_ANCESTORS } from '../bounds.ts';
import { TokenError } from '../errors.ts';
import { isScopeError, ofMember, toTokenError } from '../inputs/scope-refusals.ts';
import type { PatchInput, Read } from '../inputs/types.ts';
import { checkLimitsWithin } from '../limits/within.ts';
import { type Expansion, ScopeCatalog } from '../scope/catalog.ts';
import { describeRefused, type RefusedScope, ScopeError } from '../scope/errors.ts';
import { type Scope, ScopeSet } from '../scope/index.ts';
import { OverlapIndex, patternsOf } from '../scope/overlap.ts';
import { filterInSteps, type Steps } from '../scope/steps.ts';
import { shownDate } from '../text/wording.ts';
import { inTurns } from '../time/deadline.ts';
import type { TokenId, TokenLimits, TokenRecord } from '../token/record.ts';

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
export async function expandWithin(
  { held }: Bounds,
  asked: readonly Scope[],
  { granted, member = 'scopes' }: Granted = {},
): Promise<readonly string[]> {
  const within = await expanded(held, asked, member);
  if (granted === undefined) return within;
  const { common, unmatched } = await inTurns(inCommon(within, granted, asked));
  if (unmatched.length === 0) return Object.freeze(common);
  throw notHeld(unmatched.map(refusedOf), member);
}

/**
 * What is both within the parent and granted by the catalog, and the asked scopes that overlap nothing of
 * it. Most scopes are in both lists as they are, which a look at their texts tells.
 */
function* inCommon(
  within: readonly string[],
  granted: readonly string[],
  asked: readonly Scope[],
): Steps<{ readonly common: readonly string[]; readonly unmatched: readonly Scope[] }> {
  const texts = new Set(granted);
  const others = within.filter((scope) => !texts.has(scope));
  // Whatever was asked for overlaps a scope within the parent.
  if (others.length === 0) return { common: within, unmatched: [] };
  const allowed = ScopeSet.from(granted);
  const wider = new Set(yield* allowed.missingInSteps(others));
  // A wildcard that the parent got when there was no catalog covers more than the catalog grants.
  const meets = (yield* ScopeSet.from(wider).intersecting(allowed)).toArray();
  const common = new Set([...within.filter((scope) => !wider.has(scope)), ...meets]);
  const index = yield* OverlapIndex.inSteps([...ScopeSet.from(common)]);
  const isUnmatched = (scope: Scope) =>
    !common.has(scope.toString()) && index.find('overlapping', patternsOf(scope), 1).length === 0;
  return { common: [...common].sort(), unmatched: yield* filterInSteps(asked, isUnmatched) };
}

interface Granted {
  readonly granted?: readonly string[] | undefined;
  /** The member of the input that has the scopes. */
  readonly member?: 'scopes' | 'addScopes' | undefined;
}

async function expanded(
  held: ScopeSet,
  asked: readonly Scope[],
  member: string,
): Promise<readonly string[]> {
  try {
    const { granted } = await inTurns(expanding(held, asked));
    return Object.freeze(granted);
  } catch (error) {
    if (!isScopeError(error)) throw error;
    // The parent may hold no scope that its own ancestors still allow.
    if (error.code === 'catalog_empty') throw notHeld(asked.map(refusedOf), member);
    if (error.code === 'scope_unmatched') throw notHeld(error.refused ?? [], member);
    throw ofMember(toTokenError(error) as TokenError, member);
  }
}

function* expanding(held: ScopeSet, asked: readonly Scope[]): Steps<Expansion> {
  const catalog = ScopeCatalog.ofHeld(held);
  yield;
  return yield* catalog.expanding(asked);
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
export async function patchWithin<Known extends Granting>(
  bounds: Bounds,
  { scopes, addScopes, limits }: BoundedPatch,
  known: Known,
): Promise<Known> {
  const { granted, expiresAt } = known;
  const asked = scopes ?? addScopes;
  const member = scopes === undefined ? 'addScopes' : 'scopes';
  for (const outer of bounds.limits) checkLimitsWithin(limits, outer);
  return {
    ...known,
    ...(asked && { granted: await expandWithin(bounds, asked, { granted, member }) }),
    ...(expiresAt && { expiresAt: expiryWithin(bounds, expiresAt) }),
  };
}

type BoundedPatch = Pick<Read<PatchInput>, 'scopes' | 'addScopes' | 'limits'>;

interface Granting {
  readonly granted: readonly string[];
  readonly expiresAt: Date | undefined;
}

/**
 * Refuses a change by which an elevation would hold more than was approved, live longer, or lose a limit.
 *
 * @throws {TokenError} `invalid_request`
 */
export async function refuseBeyond(
  approved: TokenRecord,
  { scopes = [], expiresAt, ...next }: Partial<TokenRecord>,
): Promise<void> {
  const texts = new Set(approved.scopes);
  const others = scopes.filter((scope) => !texts.has(scope));
  const [missing] = await inTurns(ScopeSet.from(texts).missingInSteps(others));
  if (missing !== undefined) throw beyondApproval(`hold ${missing}`, 'scopes');
  if (expiresAt !== undefined && expiresAt > approved.expiresAt) {
    throw beyondApproval(`live longer than until ${shownDate(approved.expiresAt)}`, 'expiresAt');
  }
  if ('limits' in next && areFreed(approved.limits, next.limits)) {
    throw beyondApproval('lose a limit, or get a wider one', 'limits');
  }
}

/** Whether limits lack one of those before, or are wider. */
function areFreed(before: TokenLimits | undefined, after: TokenLimits | undefined): boolean {
  if (before === undefined) return false;
  const members = Object.keys(before) as readonly (keyof TokenLimits)[];
  if (members.some((member) => after?.[member] === undefined)) return true;
  try {
    checkLimitsWithin(after, before);
    return false;
  } catch {
    return true;
  }
}

function beyondApproval(what: string, member: string): TokenError {
  return new TokenError(
    'invalid_request',
    `an elevation cannot ${what}: that was not approved; ask for a new one`,
    { member },
  );
}
