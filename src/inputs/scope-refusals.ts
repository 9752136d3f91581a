import { TokenError, type TokenErrorCode } from '../errors.ts';
import type { RefusedScope, ScopeError } from '../scope/index.ts';
import { kindOf, renameIn } from '../text/wording.ts';
import { redact } from '../values/redact.ts';
import { likeness } from './scope-hints.ts';

/** Characters of the refused scopes that the details of an error list; the first is always there. @bound */
export const MAX_DETAILS_LENGTH = 131_072;

/**
 * Turns an error of the scope module into a `TokenError`; returns any other error as it is.
 *
 * @param sent what was parsed, if it was one scope
 */
export function toTokenError(error: unknown, sent?: unknown): unknown {
  if (!isScopeError(error)) return error;
  const { code, refused, suggestion } = error;
  const message = error.message + hintOf(error, sent);
  const listed = refused === undefined ? undefined : listedIn(refused);
  const repaired = suggestion === undefined ? undefined : { suggestion };
  return scopeRefusal(isListCode(code) ? code : 'invalid_scope', message, listed ?? repaired);
}

/** A hint that the scope module does not give, because it has to stay small. */
function hintOf({ code, refused, suggestion }: ScopeError, sent: unknown): string {
  if (code === 'scope_unmatched') return '';
  if (code === 'not_a_string' && refused === undefined) return `; got ${kindOf(sent)}`;
  // Of several, the message is about the first one.
  const text = refused === undefined ? sent : refused[0]?.scope;
  return (suggestion ?? refused?.[0]?.suggestion) === undefined ? likeness(text) : '';
}

/** Names the member in an error of the scope module, which knows only `scopes`. */
export function ofMember({ code, message, details }: TokenError, member: string): TokenError {
  if (member === 'scopes') return new TokenError(code, message, { ...details, member });
  const text = message.startsWith('scopes ')
    ? renameIn(message, 'scopes', member)
    : `${member}: ${message}`;
  return new TokenError(code, text, { ...details, member });
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
