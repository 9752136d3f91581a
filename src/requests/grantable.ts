import { expandFor } from '../access/rights.ts';
import { isTokenError } from '../errors.ts';
import { parseScope, type Scope } from '../scope/index.ts';
import type { ServiceParts } from '../verbs/parts.ts';

/**
 * What an account may have of the scopes that were asked for, expanded by its catalog: nothing if it may have
 * none of them.
 *
 * @throws {TokenError} as an expansion, but not for scopes that the account may not have
 */
export async function grantable(
  { catalogs }: Pick<ServiceParts, 'catalogs'>,
  account: string,
  asked: readonly string[],
): Promise<readonly string[]> {
  const scopes = scopesOf(asked);
  try {
    return await expandFor(catalogs, account, scopes);
  } catch (error) {
    const refused = refusedBy(error);
    const others = scopes.filter((scope) => !refused.has(scope.toString()));
    if (others.length === scopes.length) throw error;
    return others.length === 0 ? [] : expandFor(catalogs, account, others);
  }
}

/** Reads scopes of a request, which were parsed before. */
export function scopesOf(texts: readonly string[]): Scope[] {
  return texts.map((text) => parseScope(text));
}

/** The scopes that an expansion has refused. */
function refusedBy(error: unknown): ReadonlySet<string> {
  if (!isTokenError(error) || error.code !== 'scope_unmatched') throw error;
  return new Set(error.details?.['scopes'] as readonly string[]);
}
