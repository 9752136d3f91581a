import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import * as z from 'zod/mini';
import type { Need } from '../../access/need.ts';
import { isTokenError, TokenError } from '../../errors.ts';
import { notify } from '../../events.ts';
import { once } from '../../inputs/once.ts';
import { catalogMessage } from '../../inputs/options.ts';
import { callback, checkOptions, fields, gotKind, strict } from '../../inputs/schemas.ts';
import { isSegment } from '../../scope/grammar.ts';
import type {
  AskedScope,
  ReadRequest,
  Scope,
  ScopeCatalog,
  ScopeRequest,
} from '../../scope/index.ts';
import type { TokenService } from '../../service.ts';
import { kindOf } from '../../text/wording.ts';
import type { Explanation, RefusalReason, Token, Verdict } from '../../token/record.ts';
import { showBriefly } from '../address.ts';
import { bearerIn } from '../bearer.ts';
import { ErrorReporter, StacklessError } from '../error-reporter.ts';
import { addressDenied, HttpError, limitExceeded } from '../errors.ts';
import { isMethodOverridden } from '../method-override.ts';
import { metadataUrlOf, resourceField } from '../protected-resource.ts';
import type { SpentRate } from '../rate-limit-fields.ts';
import { type HeaderName, headerOf, innermost } from '../request.ts';
import { fail, toResponse } from '../responses.ts';

/** The member of a service from which the compiler learns the entries of its catalog. Never called. */
interface Knowing<Entry extends string> {
  readonly scopes?: TokenService<Entry>['scopes'];
}

/** The options of {@link bearerGuard}. */
export interface BearerGuardOptions<Entry extends string = string> {
  /** The service that verifies. One with `verifierKeys()` is enough. */
  readonly tokens: Pick<TokenService, 'verify' | 'verifySync'> & Knowing<Entry>;
  /** The domain of the guarded service, as in the scopes: `orders.acme.example`. Never a `Host` header. */
  readonly domain: string;
  /**
   * The endpoints of the guarded service. With them, `GET:shop.example/orders/{}$` does not allow
   * `/orders/export` if the catalog has that as an entry of its own. They also name the scope that a
   * refused request needs. @default the catalog of `tokens`, if all accounts share one
   */
  readonly catalog?: ScopeCatalog | undefined;
  /**
   * Reads the target `/` as this segment, so that `GET:shop.example/root` grants `GET /`, as some
   * providers publish it. @default none: `GET:shop.example/$` grants it
   */
  readonly rootName?: string | undefined;
  /** The realm of the challenge (RFC 7235 section 2.2). @default the domain */
  readonly realm?: string | undefined;
  /**
   * The public URL of the guarded service, as in {@link protectedResource}. With it, each challenge of a 401
   * and a 403 has the address of the metadata (RFC 9728 section 5.1), and that of a 401 also has the scope
   * that the request needs. @default none
   */
  readonly resource?: string | undefined;
  /**
   * Returns the IP address that a request comes from, for tokens that are restricted to certain addresses;
   * without a port, brackets or a zone. A `TokenService` calls it only for such tokens. There is no default,
   * because a wrong one lets strangers in: take `request.socket.remoteAddress` if clients connect to this
   * server, and `forwardedAddress` behind proxies. Never use a header that the client can write. If it
   * throws or returns anything else, the token is refused, and `onError` is called. @default none: such a
   * token is refused
   */
  clientAddress?(request: GuardedRequest): string | undefined;
  /** Called with each refusal, for the log; never with a value. What it throws is ignored. */
  readonly onRefusal?: ((refusal: GuardRefusal) => void) | undefined;
  /**
   * Called with the error of each token that cannot be checked (503), with its reason in `details`; and at
   * most once a minute if a token cannot be used because `clientAddress` is missing or gives no address.
   * Write it to your log. What it throws is ignored.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * The parts of a Node request that the guard reads, as frameworks on top of it pass it on. Behind a
 * router that changes `url` and sets no `originalUrl`, such as koa-mount, pass the whole target as
 * `target` of {@link GuardNeed}.
 */
export type GuardedNodeRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'> & {
  /** All headers as they came, by which one that was sent twice is noticed. */
  readonly rawHeaders?: readonly string[] | undefined;
  /** The target before a router removed the path it is mounted under. */
  readonly originalUrl?: string | undefined;
  /** The connection, for `forwardedAddress`. */
  readonly socket?: { readonly remoteAddress?: string | undefined } | undefined;
};

/** A request for the guard: of Fetch or of Node. */
export type GuardedRequest = Pick<Request, 'method' | 'url' | 'headers'> | GuardedNodeRequest;

/**
 * The need of a request, if it is not the request itself. A member that is `undefined` is refused: it
 * would silently mean something else than what was written.
 */
export interface GuardNeed<Asked extends string = string> {
  /** The scope that the token must cover, instead of the request. */
  readonly scope?: Scope | Asked;
  /** The raw target, behind a router that rewrites the one of the request. */
  readonly target?: string;
}

/** Why a request was refused. */
export type GuardReason =
  | RefusalReason
  /** There is no Bearer token. */
  | 'missing'
  /** There are two tokens, or a second one in the query: nobody knows which one is meant. */
  | 'ambiguous_credentials'
  /** The store does not answer. */
  | 'unavailable';

/** A refusal, for a log. */
export interface GuardRefusal {
  /**
   * The reason. Malformed, unknown, revoked, expired and suspended look alike to the bearer, and so do the
   * two reasons about addresses.
   */
  readonly reason: GuardReason;
  /**
   * With `malformed` and `ambiguous_request`: why. If each request says `unknown_key`, this process has other
   * keys than the one that issued the tokens.
   */
  readonly detail?: Verdict['detail'] | 'host_invalid' | 'method_overridden';
  /** With `insufficient_scope`: the scope that would be enough. */
  readonly needed?: string | undefined;
  /** With `insufficient_scope`: the details, computed when they are first read. */
  readonly explanation?: Explanation | undefined;
}

/** The result of the guard: the token and the scope that allows the call, or a response that refuses it. */
export type GuardOutcome =
  | {
      readonly ok: true;
      /** The token, without its value. */
      readonly token: Token;
      /** The scope of the token that allows the call. */
      readonly grantedBy: string;
      /** Only of a refusal. */
      readonly reason?: undefined;
      /** Only of a refusal. */
      readonly response?: undefined;
    }
  | {
      readonly ok: false;
      /** Only of an accepted request. */
      readonly token?: undefined;
      /** Only of an accepted request. */
      readonly grantedBy?: undefined;
      /** The reason, for you: the response tells the bearer less. */
      readonly reason: GuardReason;
      /** The response to send. */
      readonly response: Response;
    };

/** Accepts a request, or says how to refuse it. Returns a promise only if something has to be awaited. */
export type BearerGuard<out Entry extends string = string> = <const Asked extends string = never>(
  request: GuardedRequest,
  need?: GuardNeed<AskedScope<Entry, Asked>>,
) => GuardOutcome | Promise<GuardOutcome>;

/**
 * Guards a resource server: the Bearer token of a request (RFC 6750) must cover that request, or a scope
 * that you name.
 *
 * Reads only the `Authorization` header, never a cookie, a form or a query parameter. If the record is in
 * the cache of the service, returns the outcome without a promise; `await` accepts both.
 *
 * | case | answer |
 * | --- | --- |
 * | no Bearer token | 401, with a challenge that names no error |
 * | malformed, unknown, expired, revoked or suspended | 401 `invalid_token`, the same for all |
 * | two credentials, or a target or a method that can be read in two ways | 400 `invalid_request` |
 * | a `Host` header that is not one host with an optional port (on Node) | 400 `invalid_request` |
 * | not covered | 403 `insufficient_scope`, with the scope that would be enough |
 * | not allowed from this address, or from an unknown one | 403 `address_denied`, without a scope |
 * | no use left | 429 `limit_exceeded`; for a rate with `Retry-After`, `RateLimit` and `RateLimit-Policy` |
 * | the store does not answer | 503 with `Retry-After` |
 *
 * One request is one use and one count, however many guards of one service decide about it: those that get
 * the same request object, of your framework or of Node, with the same token. The first that accepts it
 * counts, with its scope. Each message of a WebSocket is not a request of its own: verify it with `verify`.
 *
 * The guard is a plain function. Call it from your middleware, then continue or send its response.
 *
 * @throws {TokenError} `invalid_options`; the guard itself throws `invalid_scope` if a named scope is not
 * one, and `invalid_request` for a need with other members or `undefined`
 * @example
 * const guard = bearerGuard({ tokens, domain: 'orders.acme.example' });
 * const outcome = await guard(request);
 * if (!outcome.ok) return outcome.response;
 * console.log(outcome.token.account);
 */
export function bearerGuard<Entry extends string = string>(
  options: BearerGuardOptions<Entry>,
): BearerGuard<Entry> {
  const guard = new Guard(options);
  return (request, need) => guard.decide(request, need);
}

/** What a request presents: one value, and nothing that contradicts it. */
export interface Presented {
  readonly request: GuardedRequest;
  readonly value: string;
  readonly target: string;
}

/** The guard itself, as {@link bearerGuard} and the guard for MCP use it. */
export class Guard {
  readonly #tokens: BearerGuardOptions['tokens'] &
    Partial<Pick<TokenService, 'decide' | 'neededFor'>>;
  readonly #domain: string;
  readonly #catalog: ScopeCatalog | undefined;
  readonly #root: string;
  readonly #realm: string;
  readonly #metadataUrl: string | undefined;
  readonly #clientAddress: BearerGuardOptions['clientAddress'];
  readonly #onRefusal: ((refusal: GuardRefusal) => void) | undefined;
  readonly #errors: ErrorReporter;

  constructor(options: BearerGuardOptions) {
    const read = checkOptions(guardOptions(), options);
    const { tokens, domain, catalog, rootName, realm, resource, clientAddress } = read;
    const { onRefusal, onError } = read;
    this.#tokens = tokens;
    this.#domain = domain;
    this.#catalog = catalog;
    this.#root = `/${rootName ?? ''}`;
    this.#realm = realm ?? domain;
    this.#metadataUrl = resource === undefined ? undefined : metadataUrlOf(resource);
    this.#clientAddress = clientAddress;
    this.#onRefusal = onRefusal;
    this.#errors = new ErrorReporter(onError ?? (() => {}));
  }

  decide(request: GuardedRequest, given?: GuardNeed): GuardOutcome | Promise<GuardOutcome> {
    const need = given === undefined ? NO_NEED : checkNeed(given);
    const presented = this.present(request, need.target);
    const { method = '' } = request;
    const { scope } = need;
    const askedOf = (target: string): Need =>
      scope === undefined ? this.#requestOf(method, target) : { scope };
    const outcomeOf = (decided: Decided): GuardOutcome => {
      if (decided.ok) return decided;
      const asked = () => askedOf(need.target ?? targetOf(request));
      const response = toResponse(fail(this.#failureOf(decided, asked)), method);
      return { ok: false, reason: decided.reason, response };
    };
    if ('reason' in presented) return outcomeOf(presented);
    const decided = this.decideOn(presented, askedOf(presented.target));
    return decided instanceof Promise ? decided.then(outcomeOf) : outcomeOf(decided);
  }

  /**
   * Reads the credentials of a request, or says how to refuse it.
   *
   * @param named the target, if it is not the one of the request
   */
  present(request: GuardedRequest, named?: string): Presented | Refused {
    if (typeof request?.headers !== 'object') throw requestRequired(request);
    const authorization = headerIn(request, AUTHORIZATION) ?? '';
    const sent = targetOf(request);
    const target = named ?? sent;
    if (isAmbiguous(authorization, target)) return { ok: false, reason: 'ambiguous_credentials' };
    if (!hasPlainHost(request)) return HOST_INVALID;
    const value = bearerIn(authorization);
    if (value === undefined) return { ok: false, reason: 'missing' };
    if (isOverridden(request, sent, target)) return METHOD_OVERRIDDEN;
    return { request, value, target };
  }

  /**
   * Decides whether a value allows what is needed; without a need, whether its token is live and may be
   * used from this address. Reports what the host must learn. A mistake of the caller is thrown.
   */
  decideOn(presented: Presented, need: Need | undefined): Decided | Promise<Decided> {
    const { request } = presented;
    const note = (verdict: Verdict): Verdict => {
      if (verdict.reason === 'address_unknown') this.#reportUnknownAddress(request);
      return verdict;
    };
    try {
      const verdict = this.#verdictOn(presented, need);
      if ('ok' in verdict) return note(verdict);
      return verdict.then(note, (error) => this.#unchecked(error));
    } catch (error) {
      return this.#unchecked(error);
    }
  }

  /** `tokens` may be a service, or an object of the host that verifies like one. */
  #verdictOn(
    { request, value, target }: Presented,
    need: Need | undefined,
  ): Verdict | Promise<Verdict> {
    const tokens = this.#tokens;
    const addressOf =
      this.#clientAddress === undefined ? undefined : () => this.#addressOf(request);
    // The guard for MCP, which has no need then, takes nothing but a service.
    if (need === undefined) return (tokens as TokenService).identify(value, addressOf);
    if (tokens.decide !== undefined) {
      const { method = '' } = request;
      const carrying = { object: innermost(request), value, method, target };
      return tokens.decide(value, need, addressOf, carrying);
    }
    const options = addressOf && { address: addressOf() };
    return tokens.verifySync(value, need, options) ?? tokens.verify(value, need, options);
  }

  #addressOf(request: GuardedRequest): string | undefined {
    try {
      const address: unknown = this.#clientAddress?.(request);
      return typeof address === 'string' ? address : undefined;
    } catch {
      return undefined;
    }
  }

  /** Rate-limited: any client can trigger it. */
  #reportUnknownAddress(request: GuardedRequest): void {
    const address = this.#addressOf(request);
    const fault =
      this.#clientAddress === undefined
        ? 'the guard needs the option clientAddress'
        : `clientAddress must return an IP address; got ${address === undefined ? 'none' : showBriefly(address)}`;
    const message = `refused a token that is restricted to certain addresses: ${fault}`;
    this.#errors.reportSeldom('clientAddress', new StacklessError(message));
  }

  /** Refuses a request whose token could not be checked. A mistake of the caller is thrown instead. */
  #unchecked(error: unknown): Refused {
    if (!isTokenError(error) || !UNAVAILABLE.includes(error.code)) throw error;
    this.#errors.report(error);
    return { ok: false, reason: 'unavailable', cause: error.details?.['reason'] };
  }

  #requestOf(method: string, target: string): ScopeRequest | ReadRequest {
    const isRoot = target === '/' || target.startsWith('/?');
    const raw = isRoot ? this.#root + target.slice(1) : target;
    const request = { method, domain: this.#domain, target: raw };
    const reading = this.#catalog?.readRequest(request);
    // An ambiguous request is passed on unread: the token is checked before it.
    return reading?.ok ? reading.request : request;
  }

  #failureOf(refused: Refused, asked: () => Need): HttpError {
    this.report(refused);
    const { needed } = refused;
    if (needed !== undefined || this.#metadataUrl === undefined)
      return this.failureOf(refused, needed);
    return this.failureOf(refused, this.#neededFor(asked()));
  }

  /** The scope that would allow this; `undefined` if the request is ambiguous. */
  #neededFor(asked: Need): string | undefined {
    const tokens = this.#tokens;
    if (tokens.neededFor !== undefined) return tokens.neededFor(asked);
    return 'scope' in asked ? String(asked.scope) : undefined;
  }

  /**
   * What the client is told about a refusal.
   *
   * @param scope for the challenge of a 401 or a 403
   */
  failureOf(refused: Refused, scope: string | undefined): HttpError {
    const { reason, needed, detail, rate, retryAfterSeconds, cause } = refused;
    switch (reason) {
      case 'missing':
        return this.#challenge('unauthenticated', 'a Bearer token is required', { scope });
      case 'ambiguous_credentials':
        return this.#challenge(
          'invalid_request',
          'credentials must be given once, in one Authorization header',
        );
      case 'ambiguous_request':
        return this.#challenge(
          'invalid_request',
          `the ${detail === METHOD_OVERRIDDEN.detail ? 'method' : 'address'} can be read in more than one way`,
          { details: { detail } },
        );
      case 'insufficient_scope':
      case 'ancestor_insufficient':
        return this.#challenge('insufficient_scope', `the token does not cover ${needed}`, {
          scope,
          details: { needed },
        });
      case 'address_unknown':
      case 'address_denied':
        return addressDenied();
      case 'limit_exceeded':
        return limitExceeded({ rate, retryAfterSeconds });
      case 'unavailable':
        return new HttpError('store_unavailable', 'the token cannot be checked at the moment', {
          reason: cause === undefined ? undefined : String(cause),
        });
      default:
        return this.#challenge('invalid_token', 'the token is not, or no longer, valid', { scope });
    }
  }

  /** RFC 6750 section 3: no error code if no token was presented. */
  #challenge(
    code: 'unauthenticated' | 'invalid_request' | 'invalid_token' | 'insufficient_scope',
    message: string,
    { scope, details }: { readonly scope?: string | undefined; readonly details?: object } = {},
  ): HttpError {
    const challenge = [`Bearer realm="${this.#realm}"`];
    if (code !== 'unauthenticated') challenge.push(`error="${code}"`);
    if (scope !== undefined) challenge.push(`scope="${scope}"`);
    if (this.#metadataUrl !== undefined && code !== 'invalid_request')
      challenge.push(`resource_metadata="${this.#metadataUrl}"`);
    return new HttpError(code, message, {
      details: details as HttpError['details'],
      headers: { 'www-authenticate': challenge.join(', ') },
    });
  }

  /** Tells the host of a refusal. */
  report(refused: Refused): void {
    if (this.#onRefusal === undefined) return;
    const { reason, needed, detail } = refused;
    const refusal = {
      reason,
      detail,
      needed,
      // With a large catalog it costs milliseconds, and most logs do not read it.
      get explanation() {
        return refused.explanation;
      },
    };
    notify(this.#onRefusal, refusal);
  }
}

/** A refusal by a verdict, or by the guard itself. */
export interface Refused<Reason extends string = GuardReason> extends Partial<SpentRate> {
  readonly ok: false;
  readonly reason: Reason;
  readonly needed?: string;
  readonly detail?: NonNullable<GuardRefusal['detail']>;
  readonly explanation?: Explanation;
  /** Why the store fails. */
  readonly cause?: unknown;
}

/** What was decided about a value. */
export type Decided = Extract<Verdict, { readonly ok: true }> | Refused;

const NO_NEED: GuardNeed = {};

/** A misspelled or undefined member must not fall back to the request's own scope. */
function checkNeed(need: GuardNeed): GuardNeed {
  const isObject = Object.prototype.toString.call(need) === '[object Object]';
  const isRight = ([name, value]: [string, unknown]) =>
    value !== undefined && (name === 'scope' || name === 'target');
  if (isObject && Object.entries(need).every(isRight)) return need;
  throw new TokenError(
    'invalid_request',
    "the guard's second argument must be { scope } or { target }, without undefined; the guard is not a middleware: await guard(request), then continue or send outcome.response",
  );
}

function requestRequired(request: unknown): TokenError {
  return new TokenError(
    'invalid_request',
    `the guard takes a request of Fetch or of Node, with its headers; got ${kindOf(request)}`,
  );
}

const METHOD_OVERRIDDEN = {
  ok: false,
  reason: 'ambiguous_request',
  detail: 'method_overridden',
} as const;
const HOST_INVALID = { ok: false, reason: 'ambiguous_request', detail: 'host_invalid' } as const;
const UNAVAILABLE: readonly string[] = ['store_unavailable', 'store_corrupt'];
const AUTHORIZATION = 'authorization';

function isFetch(request: GuardedRequest): request is Pick<Request, 'method' | 'url' | 'headers'> {
  return typeof (request.headers as Partial<Headers>).get === 'function';
}

/** A header of a request; `undefined` if there is none. */
export function headerIn(request: GuardedRequest, name: HeaderName): string | undefined {
  return (isFetch(request) ? request.headers.get(name) : headerOf(request, name)) ?? undefined;
}

/** Whether there is another credential beside a Bearer token (RFC 6750 section 2). */
function isAmbiguous(authorization: string, target: string): boolean {
  if (authorization.includes(',')) {
    return authorization.split(',').some((one) => bearerIn(one.trim()) !== undefined);
  }
  // Nearly all targets are plain and need no parsing.
  if (!target.includes('access_token') && !target.includes('%')) return false;
  const start = target.indexOf('?');
  if (start === -1 || bearerIn(authorization) === undefined) return false;
  return new URLSearchParams(target.slice(start)).has('access_token');
}

/** Whether a header, or the query of the target that was sent or named, says another method. */
function isOverridden(request: GuardedRequest, sent: string, target: string): boolean {
  const { method = '' } = request;
  const headers = request.headers as Headers | IncomingHttpHeaders;
  if (isMethodOverridden(method, headers, sent)) return true;
  return sent !== target && isMethodOverridden(method, {}, target);
}

/** A host and an optional port, of characters that no URL parser reads as anything else. */
const HOST = /^(?:[\w\-.]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/**
 * Whether the host of a request cannot change its path: some frameworks join `Host` and target to a URL.
 * The URL of a Fetch request is already such a one, and the guard reads the path that is in it.
 */
function hasPlainHost(request: GuardedRequest): boolean {
  if (isFetch(request)) return true;
  // Node refuses HTTP/1.1 without a host, and HTTP/2 may have one in another place.
  const host = headerOf(request, 'host') ?? request.headers[':authority'];
  return host === undefined || (typeof host === 'string' && HOST.test(host));
}

/** The raw target. A Fetch request has been parsed before, so its URL is normalized. */
function targetOf(request: GuardedRequest): string {
  if (!isFetch(request)) return request.originalUrl ?? request.url ?? '';
  const { url } = request;
  const start = url.indexOf('/', url.indexOf('//') + 2);
  const end = url.indexOf('#');
  return url.slice(start === -1 ? url.length : start, end === -1 ? url.length : end);
}

const guardOptions = once(() =>
  strict({
    tokens: z.custom<BearerGuardOptions['tokens']>(
      (value) => value instanceof Object && 'verify' in value && 'verifySync' in value,
      { error: gotKind('tokens must be a TokenService') },
    ),
    domain: fields.domain(),
    catalog: z.optional(
      z.custom<ScopeCatalog>((value) => value instanceof Object && 'readRequest' in value, {
        error: ({ input }) => catalogMessage(input),
      }),
    ),
    rootName: z.optional(
      z.custom<string>((value) => typeof value === 'string' && isSegment(value), {
        error: 'rootName must be one segment of a path, as "root"',
      }),
    ),
    realm: z.optional(
      z.string({ error: 'realm must be a text' }).check(
        z.regex(/^[ !#-[\]-~]*$/, {
          error: 'realm must be printable ASCII without quotes and backslashes',
        }),
      ),
    ),
    resource: z.optional(resourceField()),
    clientAddress: z.optional(
      callback<NonNullable<BearerGuardOptions['clientAddress']>>(
        'clientAddress must be a function that returns an IP address',
      ),
    ),
    onRefusal: z.optional(
      callback<(refusal: GuardRefusal) => void>('onRefusal must be a function'),
    ),
    onError: z.optional(callback<(error: unknown) => void>('onError must be a function')),
  }),
);
