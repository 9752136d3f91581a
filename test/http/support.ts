import { expect } from 'vitest';
import {
  type Authenticate,
  type SignInWay,
  type TokenHandlerOptions,
  tokenHandler,
} from '../../src/http/index.ts';
import {
  generateKey,
  MemoryTokenStore,
  TokenRequests,
  type TokenRequestsOptions,
  TokenService,
  type TokenServiceOptions,
} from '../../src/index.ts';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import { keepInspected, keepPassword } from '../canary.ts';

/** The start of the manual clock, in UNIX seconds. */
export const START = Date.UTC(2100, 0, 1) / 1000;
export const ONE_YEAR = 31_536_000;
export const PASSWORD = 'correct horse';
export const ORDERS = 'GET:shop.example/orders';

export const CATALOG = [
  'GET:shop.example/orders',
  'POST:shop.example/orders',
  'GET:shop.example/items',
  'GET:billing.example/invoices',
];

/** Put into invalid input; no answer may contain it. */
export const CANARY = 'CaNaRy7';

/** The code table of the specification: HTTP status and number. */
export const CODES = {
  invalid_json: [400, 10],
  invalid_request: [400, 20],
  scopes_required: [422, 70],
  invalid_scope: [422, 80],
  scope_unmatched: [422, 90],
  too_many_scopes: [422, 91],
  quota_exceeded: [422, 92],
  invalid_ttl: [422, 100],
  invalid_expire: [422, 101],
  invalid_limits: [422, 102],
  not_found: [404, 120],
  usage_not_recorded: [404, 121],
  unauthenticated: [401, 130],
  invalid_token: [401, 132],
  cross_site: [403, 131],
  token_expired: [409, 140],
  request_decided: [409, 141],
  method_not_allowed: [405, 150],
  version_conflict: [412, 160],
  payload_too_large: [413, 170],
  uri_too_long: [414, 171],
  unsupported_media_type: [415, 172],
  rate_limited: [429, 180],
  internal: [500, 900],
  catalog_empty: [503, 910],
  store_unavailable: [503, 920],
  store_corrupt: [503, 921],
  overloaded: [503, 930],
  durability_unconfirmed: [503, 940],
  revocation_unconfirmed: [503, 941],
} as const;

export type Code = keyof typeof CODES;

/** An answer, read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The JSON of the body. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface CallOptions {
  /** Whose credentials; `null` for none. @default 'ada' */
  readonly as?: string | null;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent unchanged, with the content type of JSON. */
  readonly raw?: NonNullable<RequestInit['body']>;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Setup = ReturnType<typeof setUp>;

export interface SetUpOptions
  extends Partial<Omit<TokenServiceOptions, 'catalog' | 'store'>>,
    Partial<Omit<TokenHandlerOptions, 'tokens'>> {
  /** By default, if there is no `session`, every user name with `PASSWORD` is an account. */
  readonly authenticate?: Authenticate | undefined;
  readonly store?: EngineStore;
  /** `null` for a service without a catalog. @default CATALOG */
  readonly catalog?: readonly string[] | null;
  /** Lets programs ask for tokens. */
  readonly requests?: Omit<TokenRequestsOptions, 'tokens'>;
}

/** Turns on every feature. */
export const EVERYTHING: SetUpOptions = {
  introspection: { authenticate: ({ username }) => username },
  revocation: true,
  derivation: true,
  oauth: { issuer: 'https://auth.example', exchange: true },
  requests: { verificationUri: 'https://auth.example/approve', anonymous: true },
  limiter: { waitSeconds: async () => 0, failed: async () => 0, succeeded: () => {} },
  clientAddress: () => '192.0.2.1',
  usage: true,
};

/** A service with a catalog, a manual clock, and accounts such as `ada` and `bob`. */
export function setUp({
  store: given,
  catalog = CATALOG,
  reveal,
  lifetime,
  deadlineMs,
  quotas,
  usage,
  limits,
  foreign,
  keys = [generateKey()],
  prefix = 'acme',
  session,
  authenticate = session === undefined ? checkPassword : undefined,
  requests: asking,
  oauth = asking && { issuer: 'https://auth.example' },
  ...handlerOptions
}: SetUpOptions = {}) {
  const clock = manualClock();
  const store = given ?? new MemoryTokenStore({ clock });
  const tokens = new TokenService({
    store,
    keys,
    prefix,
    clock,
    reveal,
    lifetime,
    deadlineMs,
    quotas,
    usage,
    limits,
    foreign,
    catalog: catalog === null ? undefined : ScopeCatalog.from(catalog),
  });
  const ways = { authenticate, session } as SignInWay;
  const requests = asking && new TokenRequests({ tokens, ...asking });
  const grants = oauth && { ...oauth, ...(requests && { requests }) };
  const handler = tokenHandler({ tokens, ...ways, oauth: grants, ...handlerOptions });
  for (const thing of [tokens, handler]) keepInspected(thing);
  keepPassword(PASSWORD);
  const send = async (request: Request) => readAnswer(await handler(request));
  const call = (method: string, path: string, options?: CallOptions) =>
    send(toRequest(method, path, options));
  const issue = (account = 'ada', scopes: readonly string[] = [ORDERS]) =>
    tokens.issue({ account, scopes });
  return { clock, store, tokens, handler, send, call, issue };
}

const checkPassword: Authenticate = ({ username, password }) =>
  password === PASSWORD ? username : null;

export function basic(username: string, password: string = PASSWORD): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

export function toRequest(
  method: string,
  path: string,
  { as = 'ada', json, raw, headers }: CallOptions = {},
): Request {
  const body = raw ?? (json === undefined ? undefined : JSON.stringify(json));
  const all = new Headers(headers);
  if (as !== null && !all.has('authorization')) all.set('authorization', basic(as));
  if (body !== undefined && !all.has('content-type')) all.set('content-type', 'application/json');
  const init = { method, headers: all, duplex: 'half', ...(body !== undefined && { body }) };
  return new Request(`http://localhost${path}`, init as RequestInit);
}

/** A form that exchanges a value, with more parameters or, if they are `undefined`, without them. */
export function exchangeForm(
  value: string,
  more: Readonly<Record<string, string | undefined>> = {},
): Readonly<Record<string, string>> {
  const all = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: value,
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    scope: ORDERS,
    ...more,
  };
  const sent = Object.entries(all).filter(([, text]) => text !== undefined);
  return Object.fromEntries(sent) as Record<string, string>;
}

/** A form for `call`, from text or parameters. */
export function asForm(
  form: string | Readonly<Record<string, string>>,
): Pick<CallOptions, 'raw' | 'headers'> {
  const raw = typeof form === 'string' ? form : new URLSearchParams(form).toString();
  return { raw, headers: { 'content-type': 'application/x-www-form-urlencoded' } };
}

/** Expects a failure in the format of RFC 6749 section 5.2. */
export function expectOAuthFailure(answer: Answer, status: number, error: string): void {
  expect(answer.body).toEqual({
    error,
    error_description: expect.stringMatching(/^[ !#-[\]-~]+$/),
  });
  expect(answer.status).toBe(status);
  expectHeaders(answer);
}

export async function readAnswer(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const text = await response.text();
  return { status, headers, text, body: text === '' ? {} : JSON.parse(text) };
}

/** Expects exactly this failure: status, number, code, envelope and headers. */
export function expectFailure(answer: Answer, code: Code): void {
  const [status, error] = CODES[code];
  const { message, details: _, ...envelope } = answer.body;
  expect(envelope).toEqual({ success: false, error, code, data: null });
  expect(message).toEqual(expect.stringMatching(/\S/));
  expect(answer.status).toBe(status);
  expectHeaders(answer);
}

/** Expects a success with these members beside the envelope, and no others. */
export function expectSuccess(
  answer: Answer,
  members: Readonly<Record<string, unknown>>,
  cacheControl?: string,
): void {
  expect(answer.body).toEqual({ ...members, success: true, message: '', error: null });
  expect(answer.status).toBe(200);
  expectHeaders(answer, cacheControl);
}

/** Expects the headers that every answer has, and the canary nowhere. */
export function expectHeaders({ headers, status, text }: Answer, cacheControl = 'no-store'): void {
  expect(headers.get('content-type')).toBe('application/json');
  expect(headers.get('cache-control')).toBe(cacheControl);
  expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
  expect(headers.get('referrer-policy')).toBe('no-referrer');
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  expect(headers.has('www-authenticate')).toBe(status === 401);
  expect(headers.has('allow')).toBe(status === 405);
  expect(headers.has('retry-after')).toBe(status === 503 || status === 429);
  const shown = `${text} ${JSON.stringify([...headers])}`.toLowerCase();
  expect(shown).not.toContain(CANARY.toLowerCase());
}

/** Everything that a caller can see of an answer, starting with its status. */
export function bytesOf({ status, headers, text }: Answer): string {
  return `${status} ${JSON.stringify([...headers])} ${text}`;
}

/** A create body that starts with `text` and ends when the test calls `end`. */
export function slowBody(text = '{"scopes":["GET:shop') {
  let end: (rest: string) => void = () => {};
  const encoder = new TextEncoder();
  const raw = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(encoder.encode(text));
      end = (rest) => {
        controller.enqueue(encoder.encode(rest));
        controller.close();
      };
    },
  });
  return { raw, end: (rest = '.example/orders"]}') => end(rest) };
}
