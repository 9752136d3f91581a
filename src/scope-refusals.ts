import { MAX_DETAILS_LENGTH } from './bounds.ts';
import { TokenError, type TokenErrorCode } from './errors.ts';
import type { RefusedScope, ScopeError } from './scope/index.ts';
import { redact } from './values/redact.ts';

/** Turns an error of the scope module into a `TokenError`; returns any other error as it is. */
export function toTokenError(error: unknown): unknown {
  if (!isScopeError(error)) return error;
  const { code, message, refused, suggestion } = error;
  const listed = refused === undefined ? undefined : listedIn(refused);
  const repaired = suggestion === undefined ? undefined : { suggestion };
  return scopeRefusal(isListCode(code) ? code : 'invalid_scope', message, listed ?? repaired);
}

/** The error for refused scopes; `details` lists as many of them as fit. */
export function refuseScopes(
  code: TokenErrorCode,
  message: string,
  scopes: readonly string[],
): TokenError {
  const { listed, more } = fitting(scopes, (scope) => scope);
  return scopeRefusal(code, message, { scopes: listed, ...more });
}

function listedIn(refused: readonly RefusedScope[]): object {
  const { listed, more } = fitting(refused, ({ scope }) => scope);
  return { scopes: listed.map(({ scope }) => scope), refused: listed, ...more };
}

/** The first items that fit into the details of an error, and how many were omitted. */
function fitting<Item>(
  items: readonly Item[],
  textOf: (item: Item) => string,
): { readonly listed: readonly Item[]; readonly more: { readonly omitted?: number } } {
  let left = MAX_DETAILS_LENGTH;
  const end = items.findIndex((item, index) => {
    left -= textOf(item).length;
    return left < 0 && index > 0;
  });
  if (end === -1) return { listed: items, more: {} };
  return { listed: items.slice(0, end), more: { omitted: items.length - end } };
}

/** Errors quote what was sent as a scope, which may be a token value by mistake. */
function scopeRefusal(code: TokenErrorCode, message: string, details?: object): TokenError {
  return new TokenError(
    code,
    redact(message),
    details && JSON.parse(redact(JSON.stringify(details))),
  );
}

/** By name: the ESM and the CommonJS build may both be loaded. */
export function isScopeError(error: unknown): error is ScopeError {
  return error instanceof Error && error.name === 'ScopeError';
}

const LIST_CODES = [
  'scopes_required',
  'too_many_scopes',
  'scope_unmatched',
  'catalog_empty',
] as const;

function isListCode(code: string): code is (typeof LIST_CODES)[number] {
  return (LIST_CODES as readonly string[]).includes(code);
}
