import type { TokenService } from '../service.ts';
import {
  type Answer,
  answer,
  COMMON_HEADERS,
  type HttpErrorCode,
  numbersOf,
  Refusal,
  toUnixSeconds,
} from './answers.ts';
import { type BodyLimits, readBytes } from './body.ts';
import type { Incoming } from './incoming.ts';

/** The parameters of a form, each of them once. */
type Form = ReadonlyMap<string, string>;

/** The errors of RFC 6749 that fit here, and of section 4.1.2.1 for what is not the caller's fault. */
export type OAuthError =
  | 'invalid_request'
  | 'invalid_client'
  | 'temporarily_unavailable'
  | 'server_error';

export const FORM_TYPE = 'application/x-www-form-urlencoded';

/** Nobody's credentials for the service are asked for here, so a client must not offer them. */
const CHALLENGE = 'Basic realm="tokenwright introspection", charset="UTF-8"';

/**
 * Says what there is to know of a value, as RFC 7662 has it: of one that is malformed, unknown,
 * revoked or expired nothing but that it is not active. A store that cannot be asked is an outage,
 * never an inactive token.
 *
 * `token_type_hint` is read and does not matter: there is one type of token here.
 */
export async function introspect(
  tokens: Pick<TokenService, 'introspect'>,
  body: unknown,
): Promise<Answer> {
  const token = await tokens.introspect(tokenIn(body));
  if (token === undefined) return answer(200, { active: false });
  return answer(200, {
    active: true,
    scope: token.scopes.join(' '),
    sub: token.account,
    jti: token.id,
    exp: toUnixSeconds(token.expiresAt),
    iat: toUnixSeconds(token.createdAt),
    token_type: 'Bearer',
  });
}

/**
 * Revokes the token of a value, as RFC 7009 has it: 200 without a body, also where there was nothing
 * to revoke (section 2.2).
 *
 * No credentials are asked for. The RFC has clients prove that a token was issued to them; tokens
 * here are issued to accounts, not to clients, and the value itself proves more than a client's name
 * could. Whoever found a value somewhere can put an end to it, which is all that he should do with
 * it. Nothing can be guessed: a value holds 160 secret bits.
 *
 * `token_type_hint` does not matter, as in `introspect`; `unsupported_token_type` is never answered,
 * since every value of ours can be revoked, and what is no value of ours is an invalid token.
 */
export async function revoke(
  tokens: Pick<TokenService, 'introspect' | 'revoke'>,
  body: unknown,
): Promise<Answer> {
  const token = await tokens.introspect(tokenIn(body));
  if (token !== undefined) await tokens.revoke(token.account, token.id);
  return { status: 200, headers: COMMON_HEADERS, body: null };
}

/** Reads a form body strictly: UTF-8, and no parameter twice (RFC 6749 section 3.2). */
export async function readForm(incoming: Incoming, limits: BodyLimits): Promise<Form> {
  const bytes = await readBytes(incoming, FORM_TYPE, limits);
  const form = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(utf8(bytes))) {
    if (form.has(name)) throw new Refusal('invalid_request', 'a parameter may be given once');
    form.set(name, value);
  }
  return form;
}

/**
 * A failure in the shape of RFC 6749 section 5.2, which has no double quotes in a description, with
 * the status that it has everywhere here.
 */
export function failInOAuth({ code, message, headers }: Refusal): Answer {
  return answer(
    numbersOf(code).status,
    { error: oauthError(code), error_description: message.replace(/[^ !#-[\]-~]/g, "'") },
    { ...headers, ...(code === 'unauthenticated' && { 'www-authenticate': CHALLENGE }) },
  );
}

/** How RFC 6749 calls a failure. */
export function oauthError(code: HttpErrorCode): OAuthError {
  if (code === 'unauthenticated') return 'invalid_client';
  const { status } = numbersOf(code);
  if (status === 503 || status === 429) return 'temporarily_unavailable';
  return status === 500 ? 'server_error' : 'invalid_request';
}

/** A parameter without a value is as good as absent (RFC 6749 section 3.2). */
function tokenIn(body: unknown): string {
  const token = body instanceof Map ? body.get('token') : undefined;
  if (typeof token === 'string' && token !== '') return token;
  throw new Refusal('invalid_request', 'the parameter token is required');
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Refusal('invalid_request', 'the body must be a form in UTF-8');
  }
}
