import { HttpError, type HttpErrorCode, STATUS } from '../errors.ts';
import { jsonResponse, type WholeResponse } from '../responses.ts';

/**
 * The errors of OAuth that the service answers with: of RFC 6749, of section 2.2.2 of RFC 8693, and
 * `temporarily_unavailable` and `server_error` of section 4.1.2.1 of RFC 6749.
 */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_scope'
  | 'temporarily_unavailable'
  | 'server_error'
  | OAuthRefusalCode;

/** Those for which the service has no code of its own. */
export type OAuthRefusalCode = keyof typeof REFUSALS;

/** What they mean, for the OpenAPI document. */
export const REFUSALS = {
  unsupported_grant_type: 'the service does not offer this grant',
  invalid_target: 'a resource or an audience does not name a host',
  unauthorized_client: 'only the bearer of a token may ask for one here',
  authorization_pending: 'nobody has decided yet; poll again',
  slow_down: 'the poll came early; wait five seconds longer from now on',
  access_denied: 'somebody has denied the request',
  expired_token: 'the request has expired',
  invalid_grant:
    'the device code is unknown or of another client, or its token was issued before or can no longer be',
};

/** A refusal with a code of OAuth. */
export class OAuthRefusal extends HttpError {
  readonly error: OAuthRefusalCode;

  constructor(error: OAuthRefusalCode, message: string) {
    super('invalid_request', message);
    this.error = error;
  }
}

/** How an endpoint answers a failure. */
interface Answered {
  readonly status: number;
  readonly error: string;
}

/** A failure in the form of RFC 6749 section 5.2, whose descriptions have no double quotes. */
export function oauthFailure(failure: HttpError, answered: Partial<Answered> = {}): WholeResponse {
  const { code, message, headers } = failure;
  const { status = STATUS[code][0], error = oauthError(code) } = answered;
  const description = message.replace(/[^ !#-[\]-~]/g, "'");
  return { ...jsonResponse(status, { error, error_description: description }, headers), failure };
}

/** The error code of an endpoint for resource servers and bearers. */
export function oauthError(code: HttpErrorCode): OAuthErrorCode {
  if (code === 'unauthenticated') return 'invalid_client';
  const [status] = STATUS[code];
  if (status === 503 || status === 429) return 'temporarily_unavailable';
  return status === 500 ? 'server_error' : 'invalid_request';
}

/** A failure of the token endpoint. The host learns a code of OAuth as it is. */
export function failAsGrant(failure: HttpError): WholeResponse {
  const { code } = failure;
  const answered = { status: grantStatus(code), error: grantError(code) };
  if (!(failure instanceof OAuthRefusal)) return oauthFailure(failure, answered);
  const { error } = failure;
  return { ...oauthFailure(failure, { ...answered, error }), failure: { code: error } };
}

const SCOPE_CODES: readonly HttpErrorCode[] = [
  'scopes_required',
  'invalid_scope',
  'scope_unmatched',
  'too_many_scopes',
];

/** The error code of the token endpoint. */
export function grantError(code: HttpErrorCode): OAuthErrorCode {
  return SCOPE_CODES.includes(code) ? 'invalid_scope' : oauthError(code);
}

/** Its status: of a grant that is refused 400, whatever the reason is (RFC 6749 section 5.2). */
export function grantStatus(code: HttpErrorCode): number {
  const [status] = STATUS[code];
  return GRANT_CODES.includes(code) ? 400 : status;
}

/** The codes of a grant that have another status elsewhere. */
const GRANT_CODES: readonly HttpErrorCode[] = [
  ...SCOPE_CODES,
  'quota_exceeded',
  'invalid_ttl',
  'invalid_token',
  'address_denied',
];
