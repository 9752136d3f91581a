import type { TokenService } from '../service.ts';
import type { HttpError } from './errors.ts';
import { oauthFailure } from './oauth/failure.ts';
import type { Form } from './oauth/form.ts';
import { COMMON_HEADERS, type HttpResponse, jsonResponse } from './responses.ts';
import { toIntrospection } from './wire.ts';

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
  form: Form,
): Promise<HttpResponse> {
  const address = form.get('client_address');
  const token = await tokens.introspect(form.require('token'), { countsAsUse: true, address });
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
  form: Form,
): Promise<HttpResponse> {
  // Also one that can do nothing now: it could be resumed later, or its parent widened.
  const token = await tokens.introspect(form.require('token'), { includeSuspended: true });
  if (token !== undefined) await tokens.revoke(token.account, token.id);
  return { status: 200, headers: COMMON_HEADERS, body: null };
}

/** A failure in the form of OAuth. */
export function failAsOAuth(failure: HttpError): HttpResponse {
  if (failure.code !== 'unauthenticated') return oauthFailure(failure);
  const { headers, ...answer } = oauthFailure(failure);
  return { ...answer, headers: { ...headers, 'www-authenticate': CHALLENGE } };
}
