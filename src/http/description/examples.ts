import { DEFAULT_BODY_BYTES, MAX_ADDRESS_LENGTH, MAX_LIFETIME_SECONDS } from '../../bounds.ts';
import { corruptStore, storeFailure, storeUnavailable, TokenError } from '../../errors.ts';
import {
  addressDenied,
  HttpError,
  internalError,
  limitExceeded,
  overloaded,
  revocationUnconfirmed,
  type ServiceErrorCode,
  toHttpError,
} from '../errors.ts';
import { fail } from '../responses.ts';
import type { Json } from '../wire.ts';

type Example = readonly [message: string, details?: Json];

const NOT_A_SCOPE = 'get:orders.acme.example/orders';
const SCOPE = 'GET:orders.acme.example/orders';
const UNKNOWN = 'GET:orders.acme.example/ordres';

/** For each code, the message and the details of a real case. */
const EXAMPLES: Readonly<Record<ServiceErrorCode, Example>> = {
  invalid_json: ['the body must be JSON in UTF-8'],
  invalid_request: [
    'the query must hold no account: an account comes from the credentials, a token from the path',
    { member: 'account' },
  ],
  scopes_required: [
    'a list of scopes is required, as ["GET:shop.example/orders"]',
    { member: 'scopes' },
  ],
  invalid_scope: [
    `scopes cannot be read: "${NOT_A_SCOPE}" is not a scope: the method must be "*" or a name in upper case; did you mean "${SCOPE}"?`,
    {
      scopes: [NOT_A_SCOPE],
      refused: [{ scope: NOT_A_SCOPE, code: 'method_invalid', suggestion: SCOPE }],
      member: 'scopes',
    },
  ],
  scope_unmatched: [
    `the catalog does not know ${UNKNOWN} (nearest known: ${SCOPE})`,
    {
      scopes: [UNKNOWN],
      refused: [{ scope: UNKNOWN, nearest: [SCOPE] }],
      member: 'scopes',
    },
  ],
  too_many_scopes: ['a token holds at most 4096 scopes, and these are more', { member: 'scopes' }],
  quota_exceeded: [
    'the account has 10000 active or suspended tokens, and may have no more; revoke one, or let one expire',
    { quota: 'tokensPerAccount', max: 10_000 },
  ],
  invalid_ttl: [
    'expiresIn may be at most 365 days (31536000 s); you asked for 900 days',
    { member: 'expiresIn', min: 1, max: MAX_LIFETIME_SECONDS },
  ],
  invalid_expire: [
    'expire must be later than now, and at most 365 days from now; got 1970-01-01T01:00:00Z (3600 in UNIX seconds)',
    { member: 'expire', max: 1_767_225_600 },
  ],
  invalid_limits: [
    'limits.addresses[0] must be an IP address or a CIDR block, such as "203.0.113.7" or "2001:db8::/32"; "10.0.0.1/8" has bits after its prefix: give 10.0.0.0/8 for the network, or 10.0.0.1 for one address',
    { member: 'limits.addresses' },
  ],
  not_found: ['this account has no such token'],
  usage_not_recorded: ['this service does not record how tokens are used'],
  invalid_token: ['the value is not, or no longer, valid'],
  unauthenticated: ['the user name or the password is wrong'],
  address_denied: [addressDenied().message],
  cross_site: ['a page of another site may not make this call'],
  token_expired: ['the token has expired; issue a new one'],
  method_not_allowed: ['this address takes GET, HEAD, POST'],
  request_decided: ['this request was decided before'],
  version_conflict: ['the token has version 3 now; read it again', { version: 3 }],
  payload_too_large: [`the body must be at most ${DEFAULT_BODY_BYTES} bytes`],
  uri_too_long: [`the address must be at most ${MAX_ADDRESS_LENGTH} long`],
  unsupported_media_type: [
    'the body must be sent as "Content-Type: application/json", without a Content-Encoding',
  ],
  limit_exceeded: [limitExceeded().message],
  rate_limited: ['there were too many wrong credentials; wait for as long as Retry-After says'],
  overloaded: [overloaded().message],
  internal: [internalError().message],
  catalog_empty: ['the catalog is empty'],
  store_unavailable: [toHttpError(storeUnavailable('unreachable')).message],
  store_corrupt: [toHttpError(corruptStore()).message],
  durability_unconfirmed: [storeFailure(new TokenError('durability_unconfirmed', '')).message],
  revocation_unconfirmed: [revocationUnconfirmed().message],
};

/** The body of a failure, as the OpenAPI document shows it. */
export function exampleOf(code: ServiceErrorCode): Json {
  const [message, details] = EXAMPLES[code];
  return JSON.parse(String(fail(new HttpError(code, message, { details })).body));
}
