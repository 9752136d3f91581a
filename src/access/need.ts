import { isTokenError, TokenError } from '../errors.ts';
import { describeUnknown } from '../inputs/names.ts';
import { toTokenError } from '../inputs/scope-refusals.ts';
import { recallScope, toScope } from '../scope/grammar.ts';
import type { ReadRequest, RequestReason, Scope, ScopeRequest } from '../scope/index.ts';
import {
  isReadRequest,
  type Routes,
  readRoutedRequest,
  routed,
  type Unambiguous,
} from '../scope/request.ts';
import { kindOf } from '../text/wording.ts';

/** What a bearer wants to do: a scope, or the request itself. */
export type Need<Asked extends string = string> =
  | {
      /** What the token must cover. */
      readonly scope: Scope | Asked;
    }
  | ScopeRequest
  /** A `ReadRequest`. */
  | Unambiguous;

/** A need that was read; not ok if it is a request that is ambiguous or invalid. */
export type NeedReading =
  | { readonly ok: true; readonly need: ReadRequest | Scope }
  | { readonly ok: false; readonly reason: RequestReason };

/**
 * Reads what is needed: a scope, or a request, with the routes of the service if they are known.
 *
 * @throws {TokenError} `invalid_scope`; `invalid_request` for anything else, or for two needs in one
 */
export function readNeed(need: Need, routes: Routes | undefined): NeedReading {
  if (typeof need !== 'object' || need === null) throw needRequired(need);
  try {
    return readNeedOf(need, routes);
  } catch (error) {
    // Any other error comes from a getter or a proxy of the caller.
    const refusal = toTokenError(error);
    throw isTokenError(refusal) ? refusal : needRequired(undefined);
  }
}

function readNeedOf(need: Need, routes: Routes | undefined): NeedReading {
  if ('scope' in need) {
    // Together with a part of a request, one of the two would be ignored.
    if ('method' in need || 'domain' in need || 'target' in need) throw needRequired(need);
    return { ok: true, need: readScope(need.scope) };
  }
  // Before the check for a request that was read, because nearly all requests are not.
  if ('method' in need && 'domain' in need && 'target' in need) {
    const reading = readRoutedRequest(need, routes);
    return reading.ok ? { ok: true, need: reading.request } : reading;
  }
  if (!isReadRequest(need)) throw needRequired(need);
  return { ok: true, need: routed(need, routes) };
}

function readScope(value: Scope | string): Scope {
  const reading = typeof value === 'string' ? recallScope(value) : undefined;
  if (reading?.ok) return reading.scope;
  try {
    return toScope(value);
  } catch (error) {
    throw toTokenError(error, value);
  }
}

const NEED_RULE = 'what is needed must be { scope } or { method, domain, target }';
const REQUEST_MEMBERS = ['method', 'domain', 'target'] as const;

/** Says why something is not a need: it has the wrong type, a member of another name, or lacks one. */
function needRequired(need: unknown): TokenError {
  if (typeof need !== 'object' || need === null) {
    const hint = typeof need === 'string' ? ': give { scope: text }' : '';
    return new TokenError('invalid_request', `${NEED_RULE}; got ${kindOf(need)}${hint}`);
  }
  const names = Object.keys(need);
  if (names.includes('scope')) {
    return new TokenError('invalid_request', `${NEED_RULE}, not a part of each`);
  }
  const known = ['scope', ...REQUEST_MEMBERS];
  const unknown = names.filter((name) => !known.includes(name));
  // Of a request of Fetch, the members are not its own.
  if (unknown.length === 0 && 'url' in need) unknown.push('url');
  const missing = REQUEST_MEMBERS.find((name) => !(name in need));
  if (unknown.length > 0) {
    const { message, details } = describeUnknown(unknown, known, '');
    return new TokenError('invalid_request', `${NEED_RULE}; ${message}`, details);
  }
  return new TokenError('invalid_request', `${NEED_RULE}; ${missing} is missing`, {
    member: missing,
  });
}

/** Whether a text holds what looks like the value of a token. */
export type ValueCheck = (text: string) => boolean;

/** The text of a scope for answers, events and logs: a segment that holds a token value becomes `{}`. */
export function safeTextOf({ method, domain, path }: Scope, holdsValue: ValueCheck): string {
  const [, open = path, end = ''] = /^(.*)(\$)$/.exec(path) ?? [];
  const segments = open.split('/').map((segment) => (holdsValue(segment) ? '{}' : segment));
  return `${method}:${domain}/${segments.join('/')}${end}`;
}
