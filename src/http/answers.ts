import type { TokenError, TokenErrorCode } from '../errors.ts';

/** What the service and the guard refuse with. */
export type HttpErrorCode =
  | TokenErrorCode
  | 'invalid_json'
  | 'unauthenticated'
  | 'invalid_token'
  | 'insufficient_scope'
  | 'cross_site'
  | 'method_not_allowed'
  | 'payload_too_large'
  | 'uri_too_long'
  | 'unsupported_media_type'
  | 'rate_limited'
  | 'overloaded'
  | 'revocation_unconfirmed'
  | 'internal';

/** Each code with its HTTP status and the number that clients know it by. */
const STATUS: Readonly<Record<HttpErrorCode, readonly [status: number, error: number]>> = {
  invalid_json: [400, 10],
  invalid_request: [400, 20],
  scopes_required: [422, 70],
  invalid_scope: [422, 80],
  scope_unmatched: [422, 90],
  too_many_scopes: [422, 91],
  invalid_ttl: [422, 100],
  invalid_expire: [422, 101],
  not_found: [404, 120],
  unauthenticated: [401, 130],
  invalid_token: [401, 132],
  insufficient_scope: [403, 133],
  cross_site: [403, 131],
  token_expired: [409, 140],
  method_not_allowed: [405, 150],
  version_conflict: [412, 160],
  payload_too_large: [413, 170],
  uri_too_long: [414, 171],
  unsupported_media_type: [415, 172],
  rate_limited: [429, 180],
  internal: [500, 900],
  invalid_options: [500, 900],
  id_taken: [500, 900],
  catalog_empty: [503, 910],
  store_unavailable: [503, 920],
  store_corrupt: [503, 921],
  overloaded: [503, 930],
  durability_unconfirmed: [503, 940],
  revocation_unconfirmed: [503, 941],
};

const RETRY_AFTER_SECONDS = '1';

/** What every answer has, whatever is in it. */
export const COMMON_HEADERS = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

/** An answer other than success, on its way out of a handler. */
export class Refusal extends Error {
  readonly code: HttpErrorCode;
  readonly details: TokenError['details'];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: HttpErrorCode,
    message: string,
    more: {
      readonly details?: TokenError['details'];
      readonly headers?: Readonly<Record<string, string>>;
    } = {},
  ) {
    super(message);
    this.code = code;
    this.details = more.details;
    this.headers = more.headers ?? {};
  }
}

/** For what callers cannot mend, and are told nothing about. */
export function internalFault(): Refusal {
  return new Refusal('internal', 'something went wrong here; it is not the fault of the call');
}

/** What is answered: of what it consists, until it is sent. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | null;
}

/** A success: 200, whatever was done. */
export function succeed(
  members: Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return answer(200, { ...members, success: true, message: '', error: null }, headers);
}

/** A failure in the envelope of the service. */
export function fail({ code, message, details, headers }: Refusal): Answer {
  const [status, error] = STATUS[code];
  const body = { success: false, message, error, code, data: null, details };
  return answer(status, body, headers);
}

/** JSON in no envelope, with the headers that every answer has. */
export function answer(
  status: number,
  body: Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return {
    status,
    headers: {
      'content-type': 'application/json',
      ...(status === 503 && { 'retry-after': RETRY_AFTER_SECONDS }),
      ...COMMON_HEADERS,
      ...headers,
    },
    body: JSON.stringify(body),
  };
}

/** An answer in terms of Fetch; one to `HEAD` goes without its body. */
export function toResponse({ status, headers, body }: Answer, method: string): Response {
  return new Response(method === 'HEAD' ? null : body, { status, headers });
}

/** The HTTP status and the number of a failure. */
export function numbersOf(code: HttpErrorCode): {
  readonly status: number;
  readonly error: number;
} {
  const [status, error] = STATUS[code];
  return { status, error };
}

/** As times stand in answers. A list has two for each token. */
export function toUnixSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}
