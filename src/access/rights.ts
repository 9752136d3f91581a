import { MAX_NAMED_SCOPES } from '../bounds.ts';
import { isTokenError } from '../errors.ts';
import { isScopeError, ofMember, refuseScopes, toTokenError } from '../inputs/scope-refusals.ts';
import type { PatchInput, Read } from '../inputs/types.ts';
import { type Expansion, type Scope, ScopeCatalog } from '../scope/index.ts';
import { inTurns, nextTurn } from '../time/deadline.ts';
import { isLong } from '../token/size.ts';
import { type AccountCatalogs, catalogUnavailable } from './catalogs.ts';

/**
 * The scopes that an account gets for requested ones: entries of its catalog, or without a catalog the
 * requested scopes themselves.
 *
 * @throws {TokenError} as {@link ScopeCatalog.expand} refuses; `store_unavailable` if a catalog of the
 * host fails in another way
 */
async function expand(
  catalog: ScopeCatalog | undefined,
  scopes: readonly Scope[],
  member: 'scopes' | 'addScopes' = 'scopes',
): Promise<readonly string[]> {
  if (catalog === undefined) return sorted(scopes);
  try {
    return Object.freeze((await expansionBy(catalog, scopes)).granted);
  } catch (error) {
    const refusal = toTokenError(error);
    if (!isTokenError(refusal)) throw catalogUnavailable();
    // An empty catalog is a fault of the host, whatever is asked for.
    throw refusal.code === 'catalog_empty' ? refusal : ofMember(refusal, member);
  }
}

function sorted(scopes: readonly Scope[]): readonly string[] {
  return Object.freeze(scopes.map((scope) => scope.toString()).sort());
}

/** In turns of the event loop, unless the host has replaced our method by its own. */
function expansionBy(
  catalog: ScopeCatalog,
  scopes: readonly (Scope | string)[],
): Expansion | Promise<Expansion> {
  return catalog.expand === ScopeCatalog.prototype.expand
    ? inTurns(catalog.expanding(scopes))
    : catalog.expand(scopes);
}

/**
 * Expands scopes with the catalog of an account, immediately if there is none. Yields to the event loop before
 * and after a long list.
 */
export function expandFor(
  catalogs: AccountCatalogs,
  account: string,
  scopes: readonly Scope[],
): readonly string[] | Promise<readonly string[]> {
  const catalog = catalogs.of(account);
  if (catalog === undefined && !isLong(scopes)) return sorted(scopes);
  return expandInTurns(catalog, scopes);
}

async function expandInTurns(
  asked: ReturnType<AccountCatalogs['of']>,
  scopes: readonly Scope[],
): Promise<readonly string[]> {
  const catalog = await asked;
  if (isLong(scopes)) await nextTurn();
  const granted = await expand(catalog, scopes);
  if (isLong(granted)) await nextTurn();
  return granted;
}

/** The scopes that a patch gives a token. The catalog only if it also adds scopes or sets an expiry. */
export interface PatchRights {
  readonly catalog: ScopeCatalog | undefined;
  readonly granted: readonly string[];
}

/** Expands the scopes of a patch, as {@link expandFor}. */
export async function rightsOf(
  catalogs: AccountCatalogs,
  account: string,
  { scopes, addScopes, removeScopes }: Read<PatchInput>,
  expiresAt: Date | undefined,
): Promise<PatchRights> {
  const asked = scopes ?? addScopes ?? [];
  const isRenewing = asked.length > 0 || expiresAt !== undefined;
  const catalog = isRenewing ? await catalogs.of(account) : undefined;
  if (isLong(removeScopes ?? asked)) await nextTurn();
  const member = scopes === undefined ? 'addScopes' : 'scopes';
  const granted = asked.length > 0 ? await expand(catalog, asked, member) : [];
  if (isLong(granted)) await nextTurn();
  return { catalog, granted };
}

/**
 * Checks that an account may still have the scopes that a token holds. The catalog may have shrunk
 * since the token was issued. A right that was taken away must end with the token, so such a token cannot
 * be renewed.
 *
 * @throws {TokenError} `scope_unmatched`, naming the scopes; `store_unavailable` as {@link expand}
 */
export async function checkRights(
  catalog: ScopeCatalog | undefined,
  held: readonly string[],
): Promise<void> {
  if (catalog === undefined) return;
  const lost = await lostScopes(catalog, held);
  if (lost.length === 0) return;
  const named = lost.slice(0, MAX_NAMED_SCOPES).join(', ');
  const rest = lost.length > MAX_NAMED_SCOPES ? ` and ${lost.length - MAX_NAMED_SCOPES} more` : '';
  throw refuseScopes(
    'scope_unmatched',
    `the token holds ${named}${rest}, which its account may no longer have; drop it with removeScopes, in this call or before`,
    lost,
  );
}

/** The held scopes that an expansion would not return unchanged. */
export async function lostScopes(
  catalog: ScopeCatalog,
  held: readonly string[],
): Promise<readonly string[]> {
  const unmatched = await notGranted(catalog, held);
  if (unmatched.size === 0 || unmatched.size === held.length) return [...unmatched];
  // An expansion is all or nothing: a refusal says nothing about the other scopes.
  const others = held.filter((scope) => !unmatched.has(scope));
  return [...unmatched, ...(await notGranted(catalog, others))].sort();
}

async function notGranted(
  catalog: ScopeCatalog,
  asked: readonly string[],
): Promise<ReadonlySet<string>> {
  try {
    const granted = new Set((await expansionBy(catalog, asked)).granted);
    return new Set(asked.filter((scope) => !granted.has(scope)));
  } catch (error) {
    if (!isScopeError(error) || !LOSS_CODES.has(error.code)) throw catalogUnavailable();
    // An empty catalog, or one that a wildcard overflows, names no scopes: all may be lost.
    return new Set(error.scopes ?? asked);
  }
}

const LOSS_CODES: ReadonlySet<string> = new Set([
  'scope_unmatched',
  'scope_invalid',
  'catalog_empty',
  'too_many_scopes',
]);
