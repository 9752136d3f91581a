import { fromUnixTime } from 'date-fns/fromUnixTime';
import * as z from 'zod';
import { withDeadline } from '../clock.ts';
import { isTokenError, TokenError } from '../errors.ts';
import { notify } from '../events.ts';
import { checkOptions, fields, readInput, strict, toTokenError, ttlField } from '../input.ts';
import { parseScope } from '../scope/index.ts';
import type { TokenPage, TokenService } from '../service.ts';
import { isAccount, type Lifetime, type Token } from '../token.ts';
import { type Authenticate, needsRequest, readBasic } from './accounts.ts';
import {
  type Answer,
  fail,
  internalFault,
  Refusal,
  succeed,
  toResponse,
  toUnixSeconds,
} from './answers.ts';
import { type BodyLimits, readJson } from './body.ts';
import { descriptionOf } from './description.ts';
import { type Incoming, ofFetch } from './incoming.ts';
import { Attempts, type FailureLimiter, isFailureLimiter, overloaded } from './limits.ts';
import { failInOAuth, introspect, readForm, revoke } from './oauth.ts';
import { referencePage } from './reference.ts';

/** How a `tokenHandler` works. */
export interface TokenHandlerOptions {
  /** The service that is served. */
  readonly tokens: TokenService;
  /**
   * Turns a user name and a password into the account that they open, or `null`. What it throws, and
   * any other answer, is an outage (503), never an open door. It must not read the request's body.
   */
  readonly authenticate: Authenticate;
  /** What stands before `/token`, like `/auth`. @default '' */
  readonly basePath?: string | undefined;
  /**
   * Also takes `expire` in a create body as a lifetime in seconds, and `ttl: 0` as absent, as some
   * older clients send them. @default false
   */
  readonly acceptLegacyBody?: boolean | undefined;
  /**
   * What may stand for a token in a path: `id-only` refuses values there, since paths end up in
   * access logs. @default 'any'
   */
  readonly pathTokens?: 'any' | 'id-only' | undefined;
  /**
   * Lets resource servers ask about values, at `/introspect` (RFC 7662), with credentials of their
   * own kind: those of an account pass only if this `authenticate` says so. @default none: 404
   */
  readonly introspection?: { readonly authenticate: Authenticate } | undefined;
  /** Lets the bearer of a token revoke it, at `/revoke` (RFC 7009). @default false: 404 */
  readonly revocation?: boolean | undefined;
  /**
   * Shows a reference page at `/docs`, to everybody. Its script and style are those of the package
   * `swagger-ui-dist`, which has to be installed. @default false: 404
   */
  readonly docs?: boolean | undefined;
  /** The largest body that is read. @default 1 048 576 */
  readonly maxBodyBytes?: number | undefined;
  /** How long a whole body may take to come, from 1 to 600 000. @default 10 000 */
  readonly bodyTimeoutMs?: number | undefined;
  /**
   * So many calls are worked on at once; any more are refused at once (503 `overloaded`), before a
   * password is checked. Their bodies may be in memory together. @default 1000
   */
  readonly maxInFlight?: number | undefined;
  /**
   * Lets whoever presents too many wrong credentials wait (429 `rate_limited`), before a password is
   * checked; see `failureLimiter`. Needs `clientAddress`. @default none
   */
  readonly limiter?: FailureLimiter | undefined;
  /**
   * Whom a request comes from, for the `limiter`: `remoteAddress`, or behind a proxy what that says.
   * Never what the client itself can write. `() => ''` takes all for one; then anybody can lock out
   * any user. What it throws is an outage (503).
   */
  readonly clientAddress?: ((request: Request) => string) | undefined;
  /** Is told of what `authenticate` throws and of faults that callers see as 500: for the log. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** The token service on the Fetch standard: a `Request` in, a `Response` out, never a rejection. */
export interface TokenHandler {
  /** Answers a request, whatever it holds; what goes wrong is an answer too. */
  (request: Request): Promise<Response>;
  /** What stands before `/token`. */
  readonly basePath: string;
}

const MAX_TARGET_LENGTH = 8192;
const DEFAULT_MAX_BODY_BYTES = 1_048_576;
const DEFAULT_BODY_TIMEOUT_MS = 10_000;
const MAX_BODY_TIMEOUT_MS = 600_000;
const DEFAULT_MAX_IN_FLIGHT = 1000;
const AUTHENTICATE_DEADLINE_MS = 10_000;
/** The last instant that a Date can hold. */
const LAST_UNIX_SECOND = 8_640_000_000_000;
const LISTED_AT_ONCE = 1000;
const LISTED_AT_MOST = 10_000;
const MAX_LISTING_ROUNDS = 10;
/** More than an entity tag of ours can name. */
const NO_VERSION = Number.MAX_SAFE_INTEGER;

/**
 * Makes the token service as an HTTP handler, for accounts with Basic credentials:
 *
 * | call | does |
 * | --- | --- |
 * | `POST /token` | issues |
 * | `GET /token` | lists |
 * | `GET /token/{id}` | shows one |
 * | `PUT /token/{id}` | replaces scopes and expiry |
 * | `PATCH /token/{id}` | changes what is named |
 * | `DELETE /token/{id}` | revokes |
 * | `POST /token/{id}/rotate` | gives a new value |
 * | `GET /scopes` | says what may be asked for |
 * | `GET /openapi.json` | describes all this, to everybody |
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * const handler = tokenHandler({ tokens, authenticate: fixedAccounts([{ username, password }]) });
 * createServer(toNodeListener(handler)).listen(8787, '127.0.0.1');
 */
export function tokenHandler(options: TokenHandlerOptions): TokenHandler {
  const service = new Service(options);
  const handler = Object.assign(
    async (request: Request) =>
      toResponse(await service.answer(() => ofFetch(request)), request.method),
    { basePath: service.basePath },
  );
  answerers.set(handler, (incoming) => service.answer(() => incoming));
  return handler;
}

/** Answers without the detour by Fetch, which costs as much again as the call itself. */
export type Answerer = (incoming: Incoming) => Promise<Answer>;

const answerers = new WeakMap<TokenHandler, Answerer>();

/** What a handler is made of, if it is one of ours. */
export function answererOf(handler: TokenHandler): Answerer | undefined {
  return answerers.get(handler);
}

/** One call, with its body read. */
interface Call {
  /** Empty where nobody has to say who he is. */
  readonly account: string;
  /** The value or id in the path; empty where there is none. */
  readonly token: string;
  /** JSON, or the parameters of a form. */
  readonly body: unknown;
  readonly query: URLSearchParams;
  readonly incoming: Incoming;
}

type Verb = (call: Call) => Promise<Answer>;

type Verbs = Readonly<Partial<Record<'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', Verb>>>;

/** What is at an address. */
interface Resource {
  readonly verbs: Verbs;
  /** Who may call; absent where everybody may. */
  readonly authenticate?: Authenticate;
  readonly readBody: (incoming: Incoming, limits: BodyLimits) => Promise<unknown>;
  readonly fail: (refusal: Refusal) => Answer;
}

const IN_ENVELOPE = { readBody: readJson, fail };
const IN_OAUTH = { readBody: readForm, fail: failInOAuth };

class Service {
  readonly basePath: string;
  readonly #tokens: TokenService;
  readonly #takesValues: boolean;
  readonly #resources: ReadonlyMap<string, Resource>;
  readonly #acceptLegacyBody: boolean;
  readonly #bodyLimits: BodyLimits;
  readonly #maxInFlight: number;
  #inFlight = 0;
  readonly #attempts: Attempts | undefined;
  readonly #onError: (error: unknown) => void;
  readonly #bodies: ReturnType<typeof bodiesOf>;

  constructor(options: TokenHandlerOptions) {
    const read = checkOptions(handlerOptions, options);
    this.basePath = read.basePath ?? '';
    this.#tokens = read.tokens;
    this.#takesValues = read.pathTokens !== 'id-only';
    this.#acceptLegacyBody = read.acceptLegacyBody ?? false;
    this.#bodyLimits = {
      maxBytes: read.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES,
      timeoutMs: read.bodyTimeoutMs ?? DEFAULT_BODY_TIMEOUT_MS,
    };
    this.#maxInFlight = read.maxInFlight ?? DEFAULT_MAX_IN_FLIGHT;
    this.#attempts = attemptsOf(read);
    this.#onError = read.onError ?? (() => {});
    this.#bodies = bodiesOf(read.tokens.lifetime);
    this.#resources = this.#resourcesOf(read);
  }

  /** Never rejects: what goes wrong is an answer too. */
  async answer(read: () => Incoming): Promise<Answer> {
    try {
      return await this.#answer(read());
    } catch (error) {
      return fail(this.#toRefusal(error));
    }
  }

  /** The order of the checks is a promise: route, credentials, method, media type, size, JSON, body. */
  async #answer(incoming: Incoming): Promise<Answer> {
    const { resource, token } = this.#route(incoming.url.pathname);
    if (this.#inFlight >= this.#maxInFlight) return resource.fail(overloaded());
    this.#inFlight += 1;
    try {
      return await this.#call(resource, token, incoming);
    } catch (error) {
      return resource.fail(this.#toRefusal(error));
    } finally {
      this.#inFlight -= 1;
    }
  }

  async #call(
    { verbs, authenticate, readBody }: Resource,
    token: string,
    incoming: Incoming,
  ): Promise<Answer> {
    const { pathname, search, searchParams: query } = incoming.url;
    if (pathname.length + search.length > MAX_TARGET_LENGTH) {
      throw new Refusal('uri_too_long', `the address must be at most ${MAX_TARGET_LENGTH} long`);
    }
    const account = authenticate ? await this.#account(incoming, authenticate) : '';
    const method = incoming.method === 'HEAD' ? 'GET' : incoming.method;
    const verb = Object.hasOwn(verbs, method) ? verbs[method as keyof Verbs] : undefined;
    if (verb === undefined) throw methodNotAllowed(verbs);
    if (method !== 'GET' && authenticate) checkSite(incoming);
    const takesBody = method !== 'GET' && method !== 'DELETE';
    const body = takesBody ? await readBody(incoming, this.#bodyLimits) : undefined;
    checkQuery(query);
    if (!this.#takesValues) refuseValue(token);
    return verb({ account, token, body, query, incoming });
  }

  #route(path: string): { readonly resource: Resource; readonly token: string } {
    const rest = path.startsWith(this.basePath) ? path.slice(this.basePath.length) : '';
    const [, token, isRotation] = /^\/token\/([^/]+)(\/rotate)?$/.exec(rest) ?? [];
    const place = token === undefined ? rest : `/token/{token}${isRotation ?? ''}`;
    const resource = this.#resources.get(place);
    if (resource === undefined) throw new Refusal('not_found', 'there is nothing at this address');
    return { resource, token: token ?? '' };
  }

  #resourcesOf(options: TokenHandlerOptions): ReadonlyMap<string, Resource> {
    const { authenticate, introspection, revocation, docs, limiter } = options;
    const byAccount = { ...IN_ENVELOPE, authenticate };
    const describe = descriptionOf({
      basePath: this.basePath,
      bodies: this.#bodies,
      filter: filterSchema,
      acceptLegacyBody: this.#acceptLegacyBody,
      takesValues: this.#takesValues,
      hasIntrospection: introspection !== undefined,
      hasRevocation: revocation === true,
      limitsFailures: limiter !== undefined,
    });
    const resources = new Map<string, Resource>([
      ['/token', { ...byAccount, verbs: this.#all }],
      ['/token/{token}', { ...byAccount, verbs: this.#one }],
      ['/token/{token}/rotate', { ...byAccount, verbs: this.#rotation }],
      ['/scopes', { ...byAccount, verbs: this.#scopes }],
      ['/openapi.json', { ...IN_ENVELOPE, verbs: { GET: async () => describe() } }],
    ]);
    if (introspection !== undefined) {
      const verbs: Verbs = { POST: ({ body }) => introspect(this.#tokens, body) };
      resources.set('/introspect', { ...IN_OAUTH, ...introspection, verbs });
    }
    if (revocation === true) {
      const verbs: Verbs = { POST: ({ body }) => revoke(this.#tokens, body) };
      resources.set('/revoke', { ...IN_OAUTH, verbs });
    }
    for (const [path, page] of docs === true ? referencePage() : []) {
      resources.set(path, { ...IN_ENVELOPE, verbs: { GET: async () => page() } });
    }
    return resources;
  }

  async #account(incoming: Incoming, authenticate: Authenticate): Promise<string> {
    const credentials = readBasic(incoming.header('authorization'));
    if (credentials === undefined) throw unauthenticated();
    let account: unknown;
    try {
      const check = () => {
        // The one who takes none is never given one, whatever the type says.
        const request = needsRequest(authenticate) ? incoming.request() : (undefined as never);
        const answer = Promise.resolve(authenticate(credentials, request));
        return withDeadline(answer, AUTHENTICATE_DEADLINE_MS);
      };
      account = this.#attempts
        ? await this.#attempts.run(credentials.username, incoming, check)
        : await check();
    } catch (error) {
      if (error instanceof Refusal) throw error;
      notify(this.#onError, error);
      throw accountsUnavailable();
    }
    if (account === null) throw unauthenticated();
    if (!isAccount(account)) throw accountsUnavailable();
    return account;
  }

  readonly #all: Verbs = {
    GET: async ({ account, query }) => {
      const filter = readFilter(query);
      const page = await this.#list(account, filter);
      const data = page.tokens.map(toWire);
      if (page.cursor === undefined) return succeed({ data });
      const link = `<?${nextQuery(filter, page.cursor)}>; rel="next"`;
      return succeed({ data, cursor: page.cursor }, { link });
    },
    POST: async ({ account, body }) => {
      const read = this.#acceptLegacyBody ? fromLegacy(body) : body;
      refuseMember(read, 'expire', 'the lifetime of a new token is ttl, in seconds');
      const { ttl, scopes, ...rest } = readInput(this.#bodies.create, required(read));
      const input = { ...rest, account, scopes: scopes.map(String), ttlSeconds: ttl };
      const token = await this.#tokens.issue(input);
      return succeed(toWire(token), etag(token));
    },
  };

  readonly #one: Verbs = {
    GET: async ({ account, token }) => {
      const found = await this.#tokens.get(account, token);
      if (found === undefined) throw notFound();
      return succeed({ data: [toWire(found)] }, etag(found));
    },
    PUT: async ({ account, token, body, incoming }) => {
      refuseTtl(body);
      const { scopes, expire } = readInput(this.#bodies.replace, required(body));
      const change = { scopes: scopes.map(String), expiresAt: toDate(expire) };
      const conditions = await this.#conditions(incoming, account, token);
      const changed = await this.#tokens.modify(account, token, change, conditions);
      return succeed({ data: [toWire(changed)] }, etag(changed));
    },
    PATCH: async ({ account, token, body, incoming }) => {
      refuseTtl(body);
      const { expire, scopes, addScopes, removeScopes, ...rest } = readInput(
        this.#bodies.patch,
        required(body),
      );
      const change = {
        ...rest,
        scopes: scopes?.map(String),
        addScopes: addScopes?.map(String),
        removeScopes: removeScopes?.map(String),
        expiresAt: toDate(expire),
      };
      const conditions = await this.#conditions(incoming, account, token);
      const changed = await this.#tokens.patch(account, token, change, conditions);
      return succeed({ data: [toWire(changed)] }, etag(changed));
    },
    DELETE: async ({ account, token, incoming }) => {
      const conditions = await this.#conditions(incoming, account, token);
      const revocation = this.#tokens.revoke(account, token, conditions).catch(ofRevocation);
      if (!(await revocation)) throw notFound();
      return succeed({ data: null });
    },
  };

  readonly #rotation: Verbs = {
    POST: async ({ account, token, body, incoming }) => {
      const options = readInput(this.#bodies.rotate, body === undefined ? {} : body);
      const conditions = await this.#conditions(incoming, account, token);
      const rotated = await this.#tokens.rotate(account, token, { ...options, ...conditions });
      return succeed(toWire(rotated), etag(rotated));
    },
  };

  readonly #scopes: Verbs = {
    GET: async ({ account }) => succeed({ data: await this.#tokens.scopes(account) }),
  };

  /** A page where one is asked for, else all of them, up to a bound. */
  async #list(account: string, { limit, cursor, ...filter }: Filter): Promise<TokenPage> {
    if (limit !== undefined || cursor !== undefined) {
      return this.#tokens.list({ account, ...filter, limit, cursor });
    }
    const tokens: Token[] = [];
    let next: string | undefined;
    for (let round = 0; round < MAX_LISTING_ROUNDS; round++) {
      const input = { account, ...filter, limit: LISTED_AT_ONCE, cursor: next };
      const page = await this.#tokens.list(input);
      tokens.push(...page.tokens);
      next = page.cursor;
      if (next === undefined || tokens.length + LISTED_AT_ONCE > LISTED_AT_MOST) break;
    }
    return next === undefined ? { tokens } : { tokens, cursor: next };
  }

  /**
   * What `If-Match` asks for (RFC 9110 section 13.1.1), by strong comparison. Of several tags the one
   * counts that the token has now. That none can match is found out when its turn has come.
   */
  async #conditions(
    incoming: Incoming,
    account: string,
    token: string,
  ): Promise<{ readonly ifVersion?: number }> {
    const header = incoming.header('if-match')?.trim();
    if (header === undefined || header === '*') return {};
    const versions = header.split(',').map(versionOf);
    if (versions.length === 1) return { ifVersion: versions[0] ?? NO_VERSION };
    const found = await this.#tokens.get(account, token);
    const isNamed = found !== undefined && versions.includes(found.version);
    return { ifVersion: isNamed ? found.version : NO_VERSION };
  }

  #toRefusal(error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    const isTokenFault = isTokenError(error);
    if (isTokenFault && error.code !== 'invalid_options' && error.code !== 'id_taken') {
      return new Refusal(error.code, error.message, { details: error.details });
    }
    notify(this.#onError, error);
    return internalFault();
  }
}

/** The bodies that are taken, with the lifetimes of a service. */
function bodiesOf(lifetime: Lifetime) {
  const error = 'expire must be a whole number of UNIX seconds';
  const expire = z.int({ error }).max(LAST_UNIX_SECOND, { error });
  return {
    create: strict({
      scopes: fields.scopes,
      ttl: ttlField(lifetime).optional(),
      name: fields.name.optional(),
      metadata: fields.metadata.optional(),
    }),
    replace: strict({ scopes: fields.scopes, expire: expire.optional() }),
    patch: strict({
      scopes: fields.scopes.optional(),
      addScopes: fields.scopes.optional(),
      removeScopes: fields.scopes.optional(),
      expire: expire.optional(),
      name: fields.name.nullable().optional(),
      metadata: fields.metadata.nullable().optional(),
    }),
    rotate: strict({ graceSeconds: fields.graceSeconds.optional() }),
  };
}

function toWire(token: Token): Record<string, unknown> {
  const { scopes, expiresAt, value, id, state, createdAt, version, name, metadata } = token;
  return {
    scopes,
    expire: toUnixSeconds(expiresAt),
    token: value ?? id,
    id,
    state,
    createdAt: toUnixSeconds(createdAt),
    version,
    ...(name !== undefined && { name }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** The version that an entity tag names; `undefined` for a weak one, and for one that is not ours. */
function versionOf(tag: string): number | undefined {
  const version = /^"([1-9]\d{0,14})"$/.exec(tag.trim())?.[1];
  return version === undefined ? undefined : Number(version);
}

function etag({ version }: Token): Record<string, string> {
  return { etag: `"${version}"` };
}

function toDate(expire: number | undefined): Date | undefined {
  return expire === undefined ? undefined : fromUnixTime(expire);
}

interface Filter {
  readonly scope?: string | undefined;
  readonly match?: 'overlaps' | 'covers' | 'exact' | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

const MAX_PAGE = 100;

const filterSchema = z.object({
  scope: z.string().optional(),
  match: fields.match.optional(),
  limit: z
    .string()
    .regex(/^(?:[1-9]\d?|100)$/, { error: `limit must be a whole number from 1 to ${MAX_PAGE}` })
    .transform(Number)
    .optional(),
  cursor: fields.cursor.optional(),
});

function readFilter(query: URLSearchParams): Filter {
  const known = Object.keys(filterSchema.shape);
  const repeated = known.find((name) => query.getAll(name).length > 1);
  if (repeated !== undefined) {
    throw new Refusal('invalid_request', `the query parameter ${repeated} may be given once`);
  }
  const { scope, ...filter } = readInput(filterSchema, Object.fromEntries(query));
  return { ...filter, ...(scope && { scope: canonical(scope) }) };
}

function canonical(scope: string): string {
  try {
    return parseScope(scope).toString();
  } catch (error) {
    throw toTokenError(error);
  }
}

function nextQuery({ scope, match, limit }: Filter, cursor: string): URLSearchParams {
  return new URLSearchParams({
    ...(scope !== undefined && { scope }),
    ...(match !== undefined && { match }),
    ...(limit !== undefined && { limit: String(limit) }),
    cursor,
  });
}

/** Addresses end up in logs, and an account comes from the credentials alone. */
const REFUSED_PARAMETERS = [
  'access_token',
  'token',
  'account',
  'accountId',
  'user',
  'userId',
  'owner',
];

/** No id has an underscore, and no value is without one. */
function refuseValue(token: string): void {
  if (!token.includes('_')) return;
  throw new Refusal(
    'invalid_request',
    'the path must name a token by its id: a value there would end up in logs',
  );
}

function checkQuery(query: URLSearchParams): void {
  const refused = REFUSED_PARAMETERS.find((name) => query.has(name));
  if (refused === undefined) return;
  throw new Refusal(
    'invalid_request',
    `the query must hold no ${refused}: an account comes from the credentials, a token from the path`,
  );
}

/** RFC 7617: browsers add credentials that they know by themselves, also to a foreign page's calls. */
function checkSite(incoming: Incoming): void {
  const site = incoming.header('sec-fetch-site');
  if (site === undefined || site === 'same-origin' || site === 'none') return;
  throw new Refusal('cross_site', 'a page of another site may not make this call');
}

/** Older clients say `expire` for a lifetime in seconds, and `ttl: 0` for none. */
function fromLegacy(body: unknown): unknown {
  if (!isObject(body)) return body;
  const { ttl, expire, ...rest } = body;
  if (ttl !== undefined && expire !== undefined) {
    throw new Refusal('invalid_request', 'ttl and expire mean the same here: give one of them');
  }
  const lifetime = expire === undefined && ttl !== 0 ? ttl : expire;
  return lifetime === undefined ? rest : { ...rest, ttl: lifetime };
}

function refuseTtl(body: unknown): void {
  refuseMember(body, 'ttl', 'the expiry of an existing token is expire, in UNIX seconds');
}

function refuseMember(body: unknown, member: string, message: string): void {
  if (isObject(body) && Object.hasOwn(body, member)) throw new Refusal('invalid_request', message);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function required(body: unknown): unknown {
  if (body !== undefined) return body;
  throw new Refusal('invalid_json', 'a JSON body is required, as {"scopes": ["…"]}');
}

function notFound(): Refusal {
  return new Refusal('not_found', 'this account has no such token');
}

function unauthenticated(): Refusal {
  return new Refusal('unauthenticated', 'valid Basic credentials are required', {
    headers: { 'www-authenticate': 'Basic realm="tokenwright", charset="UTF-8"' },
  });
}

/** A limiter that takes all callers for one locks everybody out: that has to be said, not left open. */
function attemptsOf({ limiter, clientAddress }: TokenHandlerOptions): Attempts | undefined {
  if (limiter === undefined) return undefined;
  if (clientAddress !== undefined) return new Attempts(limiter, clientAddress);
  throw new TokenError(
    'invalid_options',
    'limiter needs clientAddress, such as remoteAddress; "() => \'\'" takes all callers for one',
  );
}

function accountsUnavailable(): Refusal {
  return new Refusal('store_unavailable', 'accounts cannot be checked at the moment');
}

/** A revocation that may yet be undone has a code of its own: whoever asked has to know. */
function ofRevocation(error: unknown): never {
  if (!isTokenError(error) || error.code !== 'durability_unconfirmed') throw error;
  throw new Refusal(
    'revocation_unconfirmed',
    'the token is revoked, but not confirmed by as many replicas as was asked for: a failover may undo it',
  );
}

function methodNotAllowed(verbs: Verbs): Refusal {
  const allow = Object.keys(verbs).flatMap((verb) => (verb === 'GET' ? ['GET', 'HEAD'] : [verb]));
  return new Refusal('method_not_allowed', `this address takes ${allow.join(', ')}`, {
    headers: { allow: allow.join(', ') },
  });
}

const handlerOptions = strict({
  tokens: z.custom<TokenService>((value) => value instanceof Object && 'issue' in value, {
    error: 'tokens must be a TokenService',
  }),
  authenticate: z.custom<Authenticate>((value) => typeof value === 'function', {
    error: 'authenticate must be a function, such as fixedAccounts([{ username, password }])',
  }),
  basePath: z
    .string({ error: 'basePath must be a text such as "/auth"' })
    .regex(/^(?:\/[A-Za-z0-9\-._~]+)*$/, {
      error: 'basePath must begin with "/" and not end with one, such as "/auth"',
    })
    .optional(),
  acceptLegacyBody: z.boolean({ error: 'acceptLegacyBody must be true or false' }).optional(),
  pathTokens: z
    .enum(['any', 'id-only'], { error: 'pathTokens must be "any" or "id-only"' })
    .optional(),
  introspection: strict({
    authenticate: z.custom<Authenticate>((value) => typeof value === 'function', {
      error: 'introspection.authenticate must be a function, for credentials of resource servers',
    }),
  }).optional(),
  revocation: z.boolean({ error: 'revocation must be true or false' }).optional(),
  docs: z.boolean({ error: 'docs must be true or false' }).optional(),
  maxBodyBytes: z
    .int({ error: 'maxBodyBytes must be a whole number from 1' })
    .min(1, { error: 'maxBodyBytes must be a whole number from 1' })
    .optional(),
  bodyTimeoutMs: z
    .int({ error: 'bodyTimeoutMs must be a whole number from 1 to 600 000' })
    .min(1, { error: 'bodyTimeoutMs must be a whole number from 1 to 600 000' })
    .max(MAX_BODY_TIMEOUT_MS, { error: 'bodyTimeoutMs must be a whole number from 1 to 600 000' })
    .optional(),
  maxInFlight: z
    .int({ error: 'maxInFlight must be a whole number from 1' })
    .min(1, { error: 'maxInFlight must be a whole number from 1' })
    .optional(),
  limiter: z
    .custom<FailureLimiter>(isFailureLimiter, {
      error: 'limiter must have waitSeconds and failed, as failureLimiter(…) gives',
    })
    .optional(),
  clientAddress: z
    .custom<(request: Request) => string>((value) => typeof value === 'function', {
      error: 'clientAddress must be a function, such as remoteAddress',
    })
    .optional(),
  onError: z
    .custom<(error: unknown) => void>((value) => typeof value === 'function', {
      error: 'onError must be a function',
    })
    .optional(),
});
