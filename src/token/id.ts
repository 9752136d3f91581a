import { MAX_ANCESTORS } from '../bounds.ts';

declare const tokenId: unique symbol;

/**
 * The public handle of a token: 22 characters of `0-9A-Za-z`. It may be logged, shown and put into
 * a path; it opens nothing.
 */
export type TokenId = string & { readonly [tokenId]: true };

/** In characters. */
export const ID_LENGTH = 22;

/** Whether a text has the form of an id. */
export function isId(value: unknown): value is TokenId {
  return typeof value === 'string' && /^[0-9A-Za-z]{22}$/.test(value);
}

/** Whether a store returned the ids of ancestors. */
export function isAncestors(value: unknown): value is readonly TokenId[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_ANCESTORS) return false;
  // Each once: a use is spent once of each.
  return value.every(isId) && new Set(value).size === value.length;
}
