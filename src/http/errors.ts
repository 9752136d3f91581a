import { MAX_SCOPES } from '../bounds.ts';
import { isTokenError, STATUS_OF, type TokenError, type TokenErrorCode } from '../errors.ts';
import { inWords } from '../text/wording.ts';
import { rateLimitHeaders, type SpentRate } from './rate-limit-fields.ts';

/** The codes of failures over HTTP, of the service and of the guard. */
export type HttpErrorCode =
  | TokenErrorCode
  | 'invalid_json'
  | 'unauthenticated'
  | 'insufficient_scope'
  | 'address_denied'
  | 'limit_exceeded'
  | 'cross_site'
  | 'method_not_allowed'
  | 'payload_too_large'
  | 'uri_too_long'
  | 'unsupported_media_type'
  | 'overloaded'
  | 'revocation_unconfirmed'
  | 'usage_not_recorded'
  | 'internal';

/** Each code with its HTTP status and its number in the envelope. */
export const STATUS: Readonly<Record<HttpErrorCode, readonly [status: number, error: number]>> = {
  invalid_json: [400, 10],
  invalid_request: [STATUS_OF.invalid_request, 20],
  unauthorized_client: [STATUS_OF.unauthorized_client, 21],
  scopes_required: [STATUS_OF.scopes_required, 70],
  invalid_scope: [STATUS_OF.invalid_scope, 80],
  scope_unmatched: [STATUS_OF.scope_unmatched, 90],
  too_many_scopes: [STATUS_OF.too_many_scopes, 91],
  quota_exceeded: [STATUS_OF.quota_exceeded, 92],
  invalid_ttl: [STATUS_OF.invalid_ttl, 100],
  invalid_expire: [STATUS_OF.invalid_expire, 101],
  invalid_limits: [STATUS_OF.invalid_limits, 102],
  not_found: [STATUS_OF.not_found, 120],
  usage_not_recorded: [404, 121],
  unauthenticated: [401, 130],
  invalid_token: [STATUS_OF.invalid_token, 132],
  insufficient_scope: [403, 133],
  address_denied: [403, 134],
  cross_site: [403, 131],
  token_expired: [STATUS_OF.token_expired, 140],
  request_decided: [STATUS_OF.request_decided, 141],
  method_not_allowed: [405, 150],
  version_conflict: [STATUS_OF.version_conflict, 160],
  payload_too_large: [413, 170],
  uri_too_long: [414, 171],
  unsupported_media_type: [415, 172],
  rate_limited: [STATUS_OF.rate_limited, 180],
  limit_exceeded: [429, 181],
  internal: [500, 900],
  invalid_options: [STATUS_OF.invalid_options, 900],
  id_taken: [STATUS_OF.id_taken, 900],
  code_taken: [STATUS_OF.code_taken, 900],
  catalog_empty: [STATUS_OF.catalog_empty, 910],
  store_unavailable: [STATUS_OF.store_unavailable, 920],
  store_corrupt: [STATUS_OF.store_corrupt, 921],
  overloaded: [503, 930],
  durability_unconfirmed: [STATUS_OF.durability_unconfirmed, 940],
  revocation_unconfirmed: [503, 941],
};

/** The codes of the service. Some of the others come from the guard. */
export type ServiceErrorCode = Exclude<
  HttpErrorCode,
  'insufficient_scope' | 'invalid_options' | 'id_taken' | 'code_taken' | 'unauthorized_client'
>;

/** The meaning of each code, for the OpenAPI document. */
export const DESCRIPTIONS: Readonly<Record<ServiceErrorCode, string>> = {
  invalid_json: 'the body is not JSON in UTF-8, is missing, or did not arrive completely in time',
  invalid_request: 'a field, a parameter or the address is not as described here',
  scopes_required:
    'scopes is missing, not an array, or empty, or the token would be left without any',
  invalid_scope: 'a scope does not parse; details name it',
  scope_unmatched:
    'a scope, requested or already in the token, is not in the catalog of this account; details name it',
  too_many_scopes: `there are more than ${MAX_SCOPES} scopes`,
  quota_exceeded: 'the account, or the token, would hold more than it may; details name the quota',
  invalid_ttl: 'ttl or expiresIn is not a lifetime that this service allows',
  invalid_expire: 'expire is not an expiry that this service allows',
  invalid_limits: 'limits is not what this service allows; the message names the part',
  not_found: 'this account has no such token: unknown, revoked or malformed',
  usage_not_recorded: 'this service does not record how tokens are used',
  unauthenticated: 'the credentials are missing, malformed or wrong',
  invalid_token: 'the Bearer value is not, or no longer, valid',
  address_denied:
    'the Bearer token may not be used from this address, or the address of the caller is not known',
  cross_site: 'a page of another site made the call',
  token_expired: 'the token has expired and cannot be changed',
  request_decided: 'somebody has approved or denied the request before',
  method_not_allowed: 'the address takes other methods',
  version_conflict: 'the token no longer has the version of If-Match',
  payload_too_large: 'the body is too large',
  uri_too_long: 'the address is too long',
  unsupported_media_type: 'the body has another media type, or an encoding',
  limit_exceeded: 'the Bearer token has no uses left, and a derivation is a use',
  rate_limited:
    'too many wrong credentials or codes were presented, or too many requests opened; wait as Retry-After says',
  overloaded:
    'too many calls are in progress, in total, of this account or from this address, or too many passwords wait to be checked; try again as Retry-After says',
  internal: 'something went wrong in the service',
  catalog_empty: 'there are no scopes that this account could ask for',
  store_unavailable: 'the store, or the check of accounts, does not answer',
  store_corrupt: 'the store answered with something that is not a token',
  durability_unconfirmed: 'the change was made, but not confirmed by as many replicas as required',
  revocation_unconfirmed: 'the token is revoked, but a failover may undo it',
};

/** A failure that the client gets as a response. */
export class HttpError extends Error {
  readonly code: HttpErrorCode;
  readonly details: TokenError['details'];
  readonly headers: Readonly<Record<string, string>>;
  /** Why a store fails, for logs of the host: it is not part of the answer. */
  readonly reason: string | undefined;
  /** The error of the service that the host has to learn, if this is another failure of it. */
  override readonly cause: TokenError | undefined;

  constructor(
    code: HttpErrorCode,
    message: string,
    {
      details,
      headers = {},
      reason,
      cause,
    }: Partial<Pick<HttpError, 'details' | 'headers' | 'reason' | 'cause'>> = {},
  ) {
    super(message);
    this.cause = cause;
    this.code = code;
    this.details = details;
    this.headers = headers;
    this.reason = reason;
  }
}

/** For faults that clients cannot fix. They learn nothing about them. */
export function internalError(): HttpError {
  return new HttpError('internal', 'something went wrong here; it is not the fault of the call');
}

/** The failure that the client gets for an error; {@link internalError} for one that it cannot cause. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  // A later copy of this package may have more codes.
  if (!isTokenError(error) || (STATUS_OF[error.code] ?? 500) === 500) return internalError();
  const { code, message } = error;
  const details = sentDetails(error);
  const bland = BLAND.get(code);
  const wait = details?.['retryAfterSeconds'];
  const headers = wait === undefined ? {} : { 'retry-after': String(wait) };
  if (bland === undefined) return new HttpError(code, message, { details, headers });
  const { reason, store: _, ...others } = details ?? {};
  const isMore = Object.keys(others).length > 0;
  return new HttpError(code, bland, {
    reason: reason === undefined ? undefined : String(reason),
    ...(isMore && { details: others }),
  });
}

/** Without what the message says about an unknown member, which only programs of the host need again. */
function sentDetails({ code, details }: TokenError): TokenError['details'] {
  if (details === undefined || code === 'invalid_scope') return details;
  const { unknown: _, suggestion: __, ...others } = details;
  return Object.keys(others).length > 0 ? others : undefined;
}

/** Why a store fails is told to the host alone. */
const BLAND: ReadonlyMap<HttpErrorCode, string> = new Map([
  ['store_unavailable', 'the store did not answer; try again later'],
  ['store_corrupt', 'the store answered with something that is not a token record'],
]);

/** For a token whose revocation a failover may undo. @param cause what the service threw */
export function revocationUnconfirmed(cause?: TokenError): HttpError {
  return new HttpError(
    'revocation_unconfirmed',
    'the token is revoked, but not confirmed by as many replicas as required: a failover may undo it',
    { cause },
  );
}

/** For a token that is limited to other addresses. */
export function addressDenied(): HttpError {
  return new HttpError('address_denied', 'the token may not be used from this address');
}

/**
 * For a token that has no use left, in all or in this window of its rate. Without a challenge, so that
 * clients do not ask for another token: this one is still valid.
 */
export function limitExceeded({
  rate,
  retryAfterSeconds,
}: { readonly [Member in keyof SpentRate]?: SpentRate[Member] | undefined } = {}): HttpError {
  if (rate === undefined || retryAfterSeconds === undefined) {
    return new HttpError('limit_exceeded', 'this token has no uses left');
  }
  return new HttpError(
    'limit_exceeded',
    `the token may be used ${rate.uses} times in ${inWords(rate.seconds)}; try again in ${inWords(retryAfterSeconds)}`,
    { details: { retryAfterSeconds }, headers: rateLimitHeaders({ rate, retryAfterSeconds }) },
  );
}

/** For calls that find no free slot. They are refused without waiting. */
export function overloaded(): HttpError {
  return new HttpError('overloaded', 'too many calls are in progress; try again later');
}
