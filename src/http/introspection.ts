import type { TokenService } from '../service.ts';
import { HttpError, type HttpErrorCode, STATUS } from './errors.ts';
import { COMMON_HEADERS, type HttpResponse, jsonResponse } from './responses.ts';
import { toIntrospection } from './wire.ts';

/** The parameters of a form, each of them once. */
type Form = ReadonlyMap<string, string>;

/** The errors of RFC 6749 that the service answers with; the last two are of section 4.1.2.1. */
export type OAuthError =
  | 'invalid_request'
  | 'invalid_client'
  | 'temporarily_unavailable'
  | 'server_error';

export const FORM_TYPE = 'application/x-www-form-urlencoded';

/** A realm of its own, so that clients do not send the credentials of an account here. */
const CHALLENGE = 'Basic realm="tokenwright introspection", charset="UTF-8"';

/**
 * Describes the token of a value, following RFC 7662. A malformed, unknown, revoked, expired or
 * suspended value is just not active. If the store is down, this rejects: an outage never makes a token
 * inactive.
 *
 * The optional parameter `client_address` says where the bearer's request comes from, as section 2.1 lets
 * servers ask for: without it, a token that is restricted to certain addresses is not active.
 *
 * `token_type_hint` has no effect: there is one type of token.
 */
export async function introspect(
  tokens: Pick<TokenService, 'introspect'>,
  body: unknown,
): Promise<HttpResponse> {
  const address = body instanceof Map ? body.get('client_address') : undefined;
  const token = await tokens.introspect(tokenIn(body), { countsAsUse: true, address });
  return jsonResponse(200, toIntrospection(token));
}

/**
 * Revokes the token of a value, following RFC 7009: 200 without a body, also if there was nothing to
 * revoke (section 2.2).
 *
 * No credentials are needed. The RFC lets clients prove that a token was issued to them, but these
 * tokens are issued to accounts, and the value proves more than the name of a client. Somebody who
 * found a value can only end it. Guessing does not help: a value holds 160 secret bits.
 *
 * `token_type_hint` has no effect, and `unsupported_token_type` is never answered: every value can be
 * revoked, and any other text is an invalid token.
 */
export async function revoke(
  tokens: Pick<TokenService, 'introspect' | 'revoke'>,
  body: unknown,
): Promise<HttpResponse> {
  // Also one that can do nothing now: it could be resumed later, or its parent widened.
  const token = await tokens.introspect(tokenIn(body), { includeSuspended: true });
  if (token !== undefined) await tokens.revoke(token.account, token.id);
  return { status: 200, headers: COMMON_HEADERS, body: null };
}

/** Reads a form body strictly: UTF-8, and no parameter twice (RFC 6749 section 3.2). */
export function parseForm(bytes: Uint8Array): Form {
  const form = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(utf8(bytes))) {
    if (form.has(name)) throw new HttpError('invalid_request', 'a parameter may be given once');
    form.set(name, value);
  }
  return form;
}

/** A failure in the form of RFC 6749 section 5.2, whose descriptions have no double quotes. */
export function failAsOAuth(failure: HttpError): HttpResponse {
  const { code, message, headers } = failure;
  const [status] = STATUS[code];
  const answer = jsonResponse(
    status,
    { error: oauthError(code), error_description: message.replace(/[^ !#-[\]-~]/g, "'") },
    { ...headers, ...(code === 'unauthenticated' && { 'www-authenticate': CHALLENGE }) },
  );
  return { ...answer, failure };
}

/** The error code of RFC 6749 for a failure. */
export function oauthError(code: HttpErrorCode): OAuthError {
  if (code === 'unauthenticated') return 'invalid_client';
  const [status] = STATUS[code];
  if (status === 503 || status === 429) return 'temporarily_unavailable';
  return status === 500 ? 'server_error' : 'invalid_request';
}

/** A parameter without a value counts as absent (RFC 6749 section 3.2). */
function tokenIn(body: unknown): string {
  const token = body instanceof Map ? body.get('token') : undefined;
  if (typeof token === 'string' && token !== '') return token;
  throw new HttpError('invalid_request', 'the parameter token is required');
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new HttpError('invalid_request', 'the body must be a form in UTF-8');
  }
}
