import type { TokenError } from '../errors.ts';
import type { TokenService } from '../service.ts';
import { addressDenied, HttpError, limitExceeded } from './errors.ts';
import type { SpentRate } from './rate-limit-fields.ts';

/** A live Bearer token, and its account. */
export interface Bearer {
  readonly account: string;
  readonly value: string;
}

const BEARER = 'bearer';

/** The token after the scheme, which is of any case (RFC 9110 section 11.1); `undefined` for others. */
export function bearerIn(credentials: string): string | undefined {
  const { length } = BEARER;
  if (credentials.slice(0, length).toLowerCase() !== BEARER) return undefined;
  if (credentials.length === length) return '';
  if (credentials[length] !== ' ') return undefined;
  // Only spaces separate (RFC 9110 section 11.4). The rest is not trimmed: a value must match to its last
  // character, and consists of letters, digits and `_` of RFC 6750's b64token.
  let start = length + 1;
  while (credentials[start] === ' ') start += 1;
  return credentials.slice(start);
}

/**
 * The live Bearer token of an `Authorization` header.
 *
 * @throws {HttpError} `unauthenticated` without one; `invalid_token` for any other value
 */
export async function bearerOf(
  tokens: Pick<TokenService, 'introspect'>,
  header: string | undefined,
): Promise<Bearer> {
  const value = header === undefined ? undefined : bearerIn(header);
  if (value === undefined) {
    throw challenge('unauthenticated', 'a Bearer token is required', 'Bearer realm="tokenwright"');
  }
  // A live token whose ancestors leave it no scope is refused for that, like one that holds other scopes.
  const token = await tokens.introspect(value, { includeSuspended: true });
  if (token === undefined || token.state === 'suspended') throw invalidBearer();
  return { account: token.account, value };
}

/**
 * The failure for a value that `derive` refuses with `invalid_token`.
 *
 * @param invalid for all values that are not live
 */
export function refusedBearer({ details = {} }: TokenError, invalid: () => HttpError): HttpError {
  switch (details['reason']) {
    case 'address_unknown':
    case 'address_denied':
      return addressDenied();
    case 'limit_exceeded':
      return limitExceeded(details as Partial<SpentRate>);
    default:
      return invalid();
  }
}

/** One answer for all values that are refused: the bearer does not learn why. */
export function invalidBearer(): HttpError {
  const header = 'Bearer realm="tokenwright", error="invalid_token"';
  return challenge('invalid_token', 'the token is not, or no longer, valid', header);
}

function challenge(
  code: 'unauthenticated' | 'invalid_token',
  message: string,
  header: string,
): HttpError {
  return new HttpError(code, message, { headers: { 'www-authenticate': header } });
}
