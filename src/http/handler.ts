import {
  DEFAULT_BODY_BYTES,
  DEFAULT_BODY_TIMEOUT_MS,
  DEFAULT_IN_FLIGHT,
  DEFAULT_SEND_TIMEOUT_MS,
  MAX_ADDRESS_LENGTH,
  STRANGER_SHARE,
} from '../bounds.ts';
import { invalidOptions, isTokenError, type TokenError } from '../errors.ts';
import { notify } from '../events.ts';
import { once } from '../inputs/once.ts';
import { checkOptions } from '../inputs/schemas.ts';
import { SpacedTurns } from '../time/deadline.ts';
import { ID_LENGTH, isId } from '../token/id.ts';
import { bearerOf } from './bearer.ts';
import { type BodySchemas, bodySchemas, toWireError } from './bodies.ts';
import { type BodyLimits, parseJson, readBytes } from './body.ts';
import {
  accountHeader,
  checkFetchSite,
  checkSite,
  type SignedIn,
  type SignInWays,
  signIn,
} from './callers.ts';
import { docsPage } from './description/page.ts';
import { Entrance } from './entrance.ts';
import { HttpError, internalError, overloaded, STATUS } from './errors.ts';
import { handlerOptions, type SignInWay, type TokenHandlerOptions } from './handler-options.ts';
import { failAsOAuth } from './introspection.ts';
import { type Send, toFetchResponse } from './node/sending.ts';
import { failAsGrant } from './oauth/failure.ts';
import { FORM_TYPE, Form, readGrantForm } from './oauth/form.ts';
import { grantTypesOf } from './oauth/token-endpoint.ts';
import { type CookieSessions, fromFetch, type HttpRequest, ownForms } from './request.ts';
import { requestVerbs } from './requests.ts';
import { notFound, TokenResources, type Verb } from './resources.ts';
import { fail, type HttpResponse, type WholeResponse } from './responses.ts';
import { allRoutes, type Route } from './routes.ts';
import { sessionVerbs, withoutCookie } from './sessions.ts';
import { type Caller, SignIns } from './sign-in/sign-in.ts';
import { type Party, Reservation, Slots } from './slots.ts';

/** Milliseconds for a whole form. @bound */
export const FORM_TIMEOUT_MS = 2000;

/** Bytes of a form for `/introspect` and `/revoke`. @bound */
export const MAX_FORM_BYTES = 4096;

/** Bytes of a form for `/oauth/token`. @bound */
export const MAX_GRANT_FORM_BYTES = 65_536;

/** The token service on the Fetch standard: a `Request` in, a `Response` out, never a rejection. */
export interface TokenHandler {
  /** Answers any request; errors become responses too. */
  (request: Request): Promise<Response>;
  /** The path before `/token`. */
  readonly basePath: string;
}

/**
 * Serves a token service over HTTP, to accounts with Basic credentials or with your own sessions:
 *
 * | call | does |
 * | --- | --- |
 * | `POST /token` | issues |
 * | `GET /token` | lists |
 * | `GET /token/{id}` | shows one |
 * | `PUT /token/{id}` | replaces scopes and expiry |
 * | `PATCH /token/{id}` | updates the members that are sent |
 * | `DELETE /token/{id}` | revokes |
 * | `POST /token/{id}/rotate` | gives a new value |
 * | `GET /token/{id}/usage` | shows how often, when last and by which scopes it is used |
 * | `GET /token/{id}/advice` | names the scopes that it does not use |
 * | `POST /token/{id}/explain` | says whether it would be allowed something, and why |
 * | `GET /review` | finds tokens that somebody should look at |
 * | `POST /token/derive` | makes a narrower token from the one of a Bearer value, with `derivation: true` |
 * | `POST /oauth/token` | exchanges a token for a narrower one, with `oauth: { issuer, exchange: true }` |
 * | `POST /oauth/device` | opens a request for a token, with `oauth: { issuer, requests }` |
 * | `GET /request/{code}` | shows it to the person who decides |
 * | `POST /request/{code}/approve`, `…/deny` | decides about it |
 * | `GET /scopes` | lists the scopes that tokens may have |
 * | `GET /openapi.json` | describes all this, to everybody |
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * const handler = tokenHandler({ tokens, authenticate: fixedAccounts([{ username, password }]) });
 * createServer(toNodeListener(handler)).listen(8787, '127.0.0.1');
 */
export function tokenHandler(options: TokenHandlerOptions & SignInWay): TokenHandler {
  const http = new HttpHandler(options);
  const handle = (request: Request) =>
    new Promise<Response>((resolve) => {
      void http.answer(
        () => fromFetch(request),
        (whole, timeoutMs) => {
          const { response, sent } = toFetchResponse(request.method, whole, timeoutMs);
          resolve(response);
          return sent;
        },
      );
    });
  const handler = Object.assign(handle, { basePath: http.basePath });
  ownForms.set(handler, {
    answer: (request, send) => http.answer(() => request, send),
    routeOf: (path) => http.routeOf(path),
  });
  return handler;
}

type Verbs = Readonly<Partial<Record<'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', Verb>>>;

/** How the service answers at one address. */
interface Resource {
  readonly verbs: Verbs;
  readonly entrance: Entrance;
  /** Absent if everybody may call. */
  readonly check?: CredentialCheck;
  /** Whether callers are resource servers, which send forms. */
  readonly isOAuth?: boolean;
  readonly bodies: Bodies;
  readonly fail: (error: HttpError) => HttpResponse;
}

/** Finds out who calls. Rejects with an `HttpError`, or with an outage. */
type CredentialCheck = (signIns: SignIns, caller: Caller) => Promise<Admitted>;

/** A caller whose credentials are right. */
interface Admitted {
  readonly account: string;
  /** The holder of slots. Bearers are not their account, whose slots they must not take. */
  readonly party: string;
  /** Absent for a bearer. */
  readonly signedIn?: SignedIn;
  /** Of a bearer. */
  readonly value?: string;
}

/** How bodies of one media type are read. */
interface Bodies {
  readonly type: string;
  readonly parse: (bytes: Uint8Array) => unknown;
  readonly limits: BodyLimits;
  readonly slots: Slots;
}

class HttpHandler {
  readonly basePath: string;
  readonly #acceptValues: boolean;
  readonly #resources: ReadonlyMap<string, Resource>;
  readonly #files: ReadonlyMap<string, OpenFile>;
  readonly #slots: Slots;
  readonly #sendTimeoutMs: number;
  readonly #signIns: SignIns;
  readonly #onError: (error: unknown) => void;

  constructor(options: TokenHandlerOptions) {
    const read = checkOptions(handlerOptions(), options);
    if (read.authenticate === undefined && read.session === undefined) throw missingSignIn();
    this.basePath = read.basePath ?? '';
    this.#acceptValues = read.pathTokens !== 'id-only';
    this.#slots = new Slots(read.maxInFlight ?? DEFAULT_IN_FLIGHT);
    this.#sendTimeoutMs = read.sendTimeoutMs ?? DEFAULT_SEND_TIMEOUT_MS;
    this.#signIns = new SignIns(read);
    this.#onError = read.onError ?? (() => {});
    const schemas = bodySchemas(read.tokens.lifetime);
    this.#resources = resourcesOf(read, schemas);
    this.#files = filesOf(read, schemas);
  }

  /** Never rejects: errors become responses too. */
  async answer(read: () => HttpRequest, send: Send): Promise<void> {
    const slots = new Reservation();
    const response = await this.#respond(read, slots);
    // The call holds slots until the client has read the response, which stays in memory until then.
    let sent: ReturnType<Send>;
    try {
      sent = send(response, this.#sendTimeoutMs);
    } finally {
      if (sent === undefined) slots.release();
    }
    const release = () => slots.release();
    sent?.then(release, release);
  }

  /** The order of the checks is a promise: route, credentials, method, media type, size, JSON, body. */
  async #respond(read: () => HttpRequest, slots: Reservation): Promise<HttpResponse> {
    let toFailure: Resource['fail'] = fail;
    try {
      const request = read();
      const { route, ...named } = this.#parse(request.url.pathname);
      const file = this.#files.get(route);
      if (file !== undefined) return await fileFor(request, file);
      const resource = this.#resources.get(route);
      if (resource === undefined) throw nothingHere();
      toFailure = resource.fail;
      return await this.#call(resource, named, request, slots);
    } catch (error) {
      return toFailure(this.#toHttpError(error));
    }
  }

  async #call(
    { verbs, entrance, check, isOAuth, bodies }: Resource,
    { token, code }: Omit<ParsedPath, 'route'>,
    request: HttpRequest,
    slots: Reservation,
  ): Promise<HttpResponse> {
    checkAddress(request.url);
    const caller = this.#signIns.callerOf(request);
    // If the host takes all callers for one, they share no limit.
    const address = caller.client?.network || undefined;
    if (check === undefined && !slots.take(entrance.strangers, [address])) throw overloaded();
    const admitted = check && (await this.#admit({ entrance, check }, caller, slots));
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const verb = Object.hasOwn(verbs, method) ? verbs[method as keyof Verbs] : undefined;
    if (verb === undefined) throw methodNotAllowed(verbs);
    const signedIn = admitted?.signedIn;
    if (method !== 'GET' && signedIn) {
      if (isOAuth === true) checkFetchSite(request);
      else checkSite(this.#signIns, request, signedIn);
    }
    const takesBody = method !== 'GET' && method !== 'DELETE';
    const parties = [address, admitted?.party];
    const calls = admitted === undefined ? entrance.strangers : this.#slots;
    const body = takesBody ? await readBody(request, bodies, slots, [calls, parties]) : undefined;
    const { searchParams: query } = request.url;
    checkQuery(query);
    if (!this.#acceptValues && token !== '' && !isId(token)) refuseValue(token);
    const answer = await verb({
      account: admitted?.account ?? '',
      user: signedIn?.user,
      token: admitted?.value ?? token,
      code,
      body,
      query,
      request,
      address: caller.client?.host || undefined,
      slots,
    });
    if (signedIn?.isBySession !== true) return answer;
    return { ...answer, headers: { ...answer.headers, ...accountHeader(signedIn) } };
  }

  /**
   * Checks credentials. Until then the call holds a slot of strangers, unless the credentials were right
   * before. Afterwards it holds one of the caller.
   */
  async #admit(
    { entrance, check }: Required<Pick<Resource, 'entrance' | 'check'>>,
    caller: Caller,
    slots: Reservation,
  ): Promise<Admitted> {
    const address = caller.client?.network || undefined;
    const mark = entrance.markOf(caller.request);
    const known = entrance.knownParty(mark);
    const entered =
      known === undefined
        ? entrance.enter(slots, address)
        : slots.take(this.#slots, [address, known]);
    if (entered !== true && !(await entered)) throw overloaded();
    try {
      const admitted = await check(this.#signIns, caller);
      if (!slots.take(this.#slots, [address, admitted.party])) throw overloaded();
      entrance.remember(mark, admitted.party);
      return admitted;
    } catch (error) {
      // The answer is short, and may never be read. Others wait to be checked.
      slots.release();
      const isRefused = error instanceof HttpError && STATUS[error.code][0] === 401;
      if (isRefused) entrance.forget(mark);
      throw error;
    } finally {
      entrance.admitNext();
    }
  }

  /** The route of a path, such as `/token/{token}`, for logs and metrics; `undefined` if it has none. */
  routeOf(path: string): string | undefined {
    const { route } = this.#parse(path);
    return this.#resources.has(route) || this.#files.has(route) ? route : undefined;
  }

  #parse(path: string): ParsedPath {
    const rest = path.startsWith(this.basePath) ? path.slice(this.basePath.length) : '';
    // `/token/derive` looks like the path of a token, but no token has this id.
    if (this.#resources.has(rest)) return { route: rest, token: '', code: '' };
    const [, kind, named = '', tail = ''] =
      /^\/(token|request)\/([^/]+)(\/[^/]+)?$/.exec(rest) ?? [];
    if (kind === 'token') return { route: `/token/{token}${tail}`, token: named, code: '' };
    if (kind === undefined) return { route: rest, token: '', code: '' };
    return { route: `/request/{code}${tail}`, token: '', code: decoded(named) };
  }

  #toHttpError(error: unknown): HttpError {
    if (error instanceof HttpError) {
      if (error.cause !== undefined) notify(this.#onError, error.cause);
      return error;
    }
    const failure = isTokenError(error) ? toWireError(error) : internalError();
    if (STATUS[failure.code][0] >= 500) notify(this.#onError, error);
    return failure;
  }
}

/** What the path of a call names. */
interface ParsedPath {
  readonly route: string;
  /** The value or id of a token; empty without one. */
  readonly token: string;
  /** The user code of a request; empty without one. */
  readonly code: string;
}

/** People type spaces, which arrive encoded. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function missingSignIn(): TokenError {
  return invalidOptions(
    'authenticate must be a function, such as fixedAccounts([{ username, password }]); or give session, for people who are signed in to your application',
  );
}

/** Accounts and resource servers may have the same names. */
type PartyKind = 'account' | 'server' | 'bearer';

function bySignIn(kind: PartyKind, ways: SignInWays): CredentialCheck {
  return async (signIns, caller) => {
    const signedIn = await signIn(signIns, caller, ways);
    const { account } = signedIn;
    return { account, party: `${kind} ${account}`, signedIn };
  };
}

/**
 * For calls about the session itself, whose cookie may be due for renewal. They count as those of a session
 * even with a password: signing in needs the header of a script, too.
 */
function byCookie(ways: SignInWays, sessions: CookieSessions): CredentialCheck {
  const check = bySignIn('account', { ...ways, session: (request) => sessions.accountOf(request) });
  return async (signIns, caller) => {
    try {
      const admitted = await check(signIns, caller);
      return {
        ...admitted,
        signedIn: { ...admitted.signedIn, account: admitted.account, isBySession: true },
      };
    } catch (error) {
      throw withoutCookie(error, sessions.cleared(caller.request));
    }
  };
}

function byBearer(tokens: TokenHandlerOptions['tokens']): CredentialCheck {
  return async (_, { request }) => {
    const bearer = await bearerOf(tokens, request.header('authorization'));
    return { ...bearer, party: `bearer ${bearer.account}` };
  };
}

/**
 * All resources, by their paths. Each kind of caller has an entrance of its own, and forms of strangers
 * have slots of their own, so that no kind waits for callers who need less to get as far.
 */
function resourcesOf(
  options: TokenHandlerOptions,
  schemas: BodySchemas,
): ReadonlyMap<string, Resource> {
  const { tokens, authenticate, session, introspection } = options;
  const sessions = cookiesOf(options);
  const { maxInFlight = DEFAULT_IN_FLIGHT } = options;
  const verbs = {
    ...new TokenResources(tokens, schemas, options),
    ...sessionVerbs(sessions),
    ...requestVerbs(options.oauth?.requests, schemas),
  };
  const { json, form, grant } = bodiesOf(options);
  const entrance = () => new Entrance(maxInFlight);
  const oauth = { bodies: form, fail: failAsOAuth };
  const strangers = { ...form, slots: new Slots(maxInFlight, STRANGER_SHARE) };
  const server = bySignIn('server', { ...introspection, isOAuth: true });
  const ways = { authenticate, session };
  const account = { bodies: json, fail, entrance: entrance(), check: bySignIn('account', ways) };
  const cookie = sessions === undefined ? account : { ...account, check: byCookie(ways, sessions) };
  const kinds: Readonly<Record<NonNullable<Route['by']>, Omit<Resource, 'verbs'>>> = {
    account,
    password: cookie,
    session: cookie,
    bearer: { bodies: json, fail, entrance: entrance(), check: byBearer(tokens) },
    server: { ...oauth, entrance: entrance(), check: server, isOAuth: true },
    anybody: { ...oauth, bodies: strangers, entrance: entrance() },
    client: { bodies: grant, fail: failAsGrant, entrance: entrance() },
  };
  const given = { ...options, ...derivedOf(options) };
  const resources = new Map<string, Resource>();
  for (const { method, path, verb, by = 'account', option } of allRoutes()) {
    if (verb === undefined || (option !== undefined && !given[option])) continue;
    const before = resources.get(path)?.verbs;
    resources.set(path, { ...kinds[by], verbs: { ...before, [method]: verbs[verb] } });
  }
  return resources;
}

/** Facts that turn calls on and are not options themselves. */
function derivedOf(options: TokenHandlerOptions) {
  const { oauth } = options;
  return {
    sessions: cookiesOf(options),
    grants: grantTypesOf(oauth).length > 0,
    requests: oauth?.requests,
  };
}

/** The sessions that the service itself keeps. Those of a host are its own matter. */
function cookiesOf({ session }: TokenHandlerOptions): CookieSessions | undefined {
  return session && ownForms.get(session)?.cookies;
}

/** A file that everybody may read. */
type OpenFile = (request: HttpRequest) => WholeResponse | Promise<WholeResponse>;

/** What everybody may read, by its path. It takes no slots, since nothing has to be done for it. */
function filesOf(options: TokenHandlerOptions, bodies: BodySchemas): ReadonlyMap<string, OpenFile> {
  // Most programs never ask for it, so it is loaded and made on its first request.
  const document = once(async () => {
    const { openApiDocument } = await import('./description/document.ts');
    return openApiDocument({ ...options, ...derivedOf(options), bodies });
  });
  return new Map<string, OpenFile>([
    ['/openapi.json', async (request) => (await document())(request)],
    ...(options.docs === true ? docsPage() : []),
  ]);
}

async function fileFor(request: HttpRequest, file: OpenFile): Promise<HttpResponse> {
  checkAddress(request.url);
  if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed({ GET: file });
  checkQuery(request.url.searchParams);
  return file(request);
}

function bodiesOf({
  maxInFlight = DEFAULT_IN_FLIGHT,
  maxBodyBytes: maxBytes = DEFAULT_BODY_BYTES,
  bodyTimeoutMs: timeoutMs = DEFAULT_BODY_TIMEOUT_MS,
}: TokenHandlerOptions): Readonly<Record<'json' | 'form' | 'grant', Bodies>> {
  const formTimeoutMs = Math.min(timeoutMs, FORM_TIMEOUT_MS);
  return {
    json: {
      type: 'application/json',
      parse: jsonParser(),
      limits: { maxBytes, timeoutMs },
      slots: new Slots(maxInFlight),
    },
    form: {
      type: FORM_TYPE,
      parse: (bytes) => new Form(bytes),
      // A form holds a value and little more.
      limits: { maxBytes: Math.min(maxBytes, MAX_FORM_BYTES), timeoutMs: formTimeoutMs },
      slots: new Slots(maxInFlight),
    },
    grant: {
      type: FORM_TYPE,
      parse: readGrantForm,
      limits: { maxBytes: Math.min(maxBytes, MAX_GRANT_FORM_BYTES), timeoutMs: formTimeoutMs },
      slots: new Slots(maxInFlight, STRANGER_SHARE),
    },
  };
}

/** Beyond this, in bytes, parsing a body, or refusing it, takes the event loop for milliseconds. */
const LARGE_BODY_BYTES = 65_536;

/** Parses bodies of JSON; large ones take turns. */
function jsonParser(): Bodies['parse'] {
  const turns = new SpacedTurns();
  return (bytes) =>
    bytes.length > LARGE_BODY_BYTES ? turns.wait().then(() => parseJson(bytes)) : parseJson(bytes);
}

/** Reads a body. Meanwhile the call holds slots for bodies instead, so that slow senders block no work. */
async function readBody(
  request: HttpRequest,
  { type, parse, limits, slots: bodySlots }: Bodies,
  slots: Reservation,
  [calls, parties]: readonly [Slots, readonly Party[]],
): Promise<unknown> {
  if (!slots.take(bodySlots, parties)) throw overloaded();
  try {
    const bytes = await readBytes(request, type, limits, slots);
    if (!slots.take(calls, parties)) throw overloaded();
    return await parse(bytes);
  } catch (error) {
    slots.release();
    throw error;
  }
}

/** Addresses end up in logs, and the credentials alone name the account. */
const FORBIDDEN = ['access_token', 'token', 'account', 'accountId', 'user', 'userId', 'owner'];

/** Refuses what is not an id. Our values have an underscore; those of other systems are mostly longer than ids. */
function refuseValue(text: string): never {
  if (!text.includes('_') && text.length <= ID_LENGTH) throw notFound();
  throw new HttpError(
    'invalid_request',
    'the path must name a token by its id: a value there would end up in logs',
  );
}

function checkQuery(query: URLSearchParams): void {
  const refused = FORBIDDEN.find((name) => query.has(name));
  if (refused === undefined) return;
  throw new HttpError(
    'invalid_request',
    `the query must hold no ${refused}: an account comes from the credentials, a token from the path`,
    { details: { member: refused } },
  );
}

function checkAddress({ pathname, search }: URL): void {
  if (pathname.length + search.length <= MAX_ADDRESS_LENGTH) return;
  throw new HttpError('uri_too_long', `the address must be at most ${MAX_ADDRESS_LENGTH} long`);
}

function nothingHere(): HttpError {
  return new HttpError('not_found', 'there is nothing at this address');
}

function methodNotAllowed(verbs: Readonly<Record<string, unknown>>): HttpError {
  const allow = METHODS.filter((method) =>
    Object.hasOwn(verbs, method === 'HEAD' ? 'GET' : method),
  );
  return new HttpError('method_not_allowed', `this address takes ${allow.join(', ')}`, {
    headers: { allow: allow.join(', ') },
  });
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
