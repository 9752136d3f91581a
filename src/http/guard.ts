import type { IncomingMessage } from 'node:http';
import * as z from 'zod';
import { isTokenError, TokenError } from '../errors.ts';
import { notify } from '../events.ts';
import { checkOptions, strict } from '../input.ts';
import { isSegment } from '../scope/grammar.ts';
import { readRequest, type Scope, type ScopeRequest } from '../scope/index.ts';
import type { Need, TokenService } from '../service.ts';
import type { Explanation, RefusalReason, Token } from '../token.ts';
import { fail, Refusal, toResponse } from './answers.ts';
import { headerOf } from './incoming.ts';

/** How a {@link bearerGuard} works. */
export interface BearerGuardOptions {
  /** The service that verifies; one with `verifierKeys()` is enough. */
  readonly tokens: Pick<TokenService, 'verify' | 'verifySync'>;
  /** The name of what is guarded, as in the scopes: `orders.acme.example`. Never a `Host` header. */
  readonly domain: string;
  /**
   * Reads the target `/` as this one segment, so that `GET:shop.example/root` grants `GET /`; a
   * scope's path is never empty. @default none: only the path `*` covers the root
   */
  readonly rootName?: string | undefined;
  /** What the challenge names as the protected space (RFC 7235 section 2.2). @default the domain */
  readonly realm?: string | undefined;
  /** Is told of each refusal, for the log: never with a value. What it throws is lost. */
  readonly onRefusal?: ((refusal: GuardRefusal) => void) | undefined;
}

/**
 * What the guard reads of a request of Node's own, as frameworks on top of it pass it on. A router
 * that cuts `url` and keeps no `originalUrl` on the request, as koa-mount does, needs the whole target
 * as `target` of {@link GuardNeed}.
 */
export type GuardedNodeRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'> & {
  /** All headers as they came, by which one that was sent twice is noticed. */
  readonly rawHeaders?: readonly string[] | undefined;
  /** The target before a router cut off what it is mounted under. */
  readonly originalUrl?: string | undefined;
};

/** What the guard takes: a Fetch `Request`, or a request of Node's own. */
export type GuardedRequest = Pick<Request, 'method' | 'url' | 'headers'> | GuardedNodeRequest;

/**
 * What a request needs, where it is not the scope of the request itself. A member that is `undefined`
 * is refused: it would silently mean something else than was written.
 */
export interface GuardNeed {
  /** A scope that the token must cover, instead of the request's own. */
  readonly scope?: Scope | string;
  /** The raw target, where it is not the request's: behind a router that rewrites it. */
  readonly target?: string;
}

/** Why a request was not let through. */
export type GuardReason =
  | RefusalReason
  /** There is no Bearer token. */
  | 'missing'
  /** There are two, or one in the query as well: which one is meant is not known. */
  | 'ambiguous_credentials'
  /** The store cannot say. */
  | 'unavailable';

/** What a log wants to know of a refusal. */
export interface GuardRefusal {
  /** Why. Towards the bearer four of them look alike: malformed, unknown, revoked and expired. */
  readonly reason: GuardReason;
  /** With `insufficient_scope`: the scope that would have been enough. */
  readonly needed?: string | undefined;
  /** With `insufficient_scope`: why those of the token are not. */
  readonly explanation?: Explanation | undefined;
}

/** What the guard says: the token (without its value) and the scope that grants the call, or an answer. */
export type GuardOutcome =
  | {
      readonly ok: true;
      /** The token, without its value. */
      readonly token: Token;
      /** The scope of the token that allows the call. */
      readonly grantedBy: string;
    }
  | {
      readonly ok: false;
      /** Why, for you: the answer tells the bearer less. */
      readonly reason: GuardReason;
      /** What to answer with. */
      readonly response: Response;
    };

/** Lets a request through, or says what to answer it with. Waits only where the store is asked. */
export type BearerGuard = (
  request: GuardedRequest,
  need?: GuardNeed,
) => GuardOutcome | Promise<GuardOutcome>;

/**
 * Guards a resource server: the Bearer token of a request (RFC 6750) must cover the scope of that
 * very request, or a named one.
 *
 * Only the `Authorization` header is read: never a cookie, a form or a query parameter. On a hit of
 * the service's `cache` the outcome is there at once, without a promise; `await` takes both.
 *
 * | case | answer |
 * | --- | --- |
 * | no Bearer token | 401, with a challenge that names no error |
 * | malformed, unknown, expired or revoked | 401 `invalid_token`, one and the same |
 * | two credentials, or a target that can be read in two ways | 400 `invalid_request` |
 * | not covered | 403 `insufficient_scope`, with the scope that would have been enough |
 * | the store cannot say | 503 with `Retry-After` |
 *
 * It is no middleware by itself: a middleware awaits it, and goes on or answers with its response.
 *
 * @throws {TokenError} `invalid_options` here; from the guard `invalid_scope` when a named scope is
 * none, and `invalid_request` for a need that holds anything else or `undefined`
 * @example
 * const guard = bearerGuard({ tokens, domain: 'orders.acme.example' });
 * const outcome = await guard(request);
 * if (!outcome.ok) return outcome.response;
 * console.log(outcome.token.account);
 */
export function bearerGuard(options: BearerGuardOptions): BearerGuard {
  const guard = new Guard(options);
  return (request, need) => guard.decide(request, need);
}

class Guard {
  readonly #tokens: BearerGuardOptions['tokens'];
  readonly #domain: string;
  readonly #root: string;
  readonly #realm: string;
  readonly #onRefusal: ((refusal: GuardRefusal) => void) | undefined;

  constructor(options: BearerGuardOptions) {
    const { tokens, domain, rootName, realm, onRefusal } = checkOptions(guardOptions, options);
    this.#tokens = tokens;
    this.#domain = domain;
    this.#root = `/${rootName ?? ''}`;
    this.#realm = realm ?? domain;
    this.#onRefusal = onRefusal;
  }

  decide(request: GuardedRequest, given?: GuardNeed): GuardOutcome | Promise<GuardOutcome> {
    const need = given === undefined ? NO_NEED : checkNeed(given);
    const { method = '' } = request;
    const authorization = authorizationOf(request);
    const target = need.target ?? targetOf(request);
    if (isAmbiguous(authorization, target)) {
      return this.#refuse(method, { reason: 'ambiguous_credentials' });
    }
    const value = bearerIn(authorization);
    if (value === undefined) return this.#refuse(method, { reason: 'missing' });
    const { scope } = need;
    const asked = scope === undefined ? this.#requestOf(method, target) : { scope };
    try {
      const verdict = this.#tokens.verifySync(value, asked);
      if (verdict === undefined) return this.#decideLater(method, value, asked);
      return verdict.ok ? verdict : this.#refuse(method, verdict);
    } catch (error) {
      return this.#refuseUnknown(method, error);
    }
  }

  async #decideLater(method: string, value: string, need: Need): Promise<GuardOutcome> {
    try {
      const verdict = await this.#tokens.verify(value, need);
      return verdict.ok ? verdict : this.#refuse(method, verdict);
    } catch (error) {
      return this.#refuseUnknown(method, error);
    }
  }

  /** What the store cannot say is refused; what the caller did wrong is thrown on. */
  #refuseUnknown(method: string, error: unknown): GuardOutcome {
    if (!isTokenError(error) || !UNAVAILABLE.includes(error.code)) throw error;
    return this.#refuse(method, { reason: 'unavailable' });
  }

  #requestOf(method: string, target: string): ScopeRequest {
    const isRoot = target === '/' || target.startsWith('/?');
    return { method, domain: this.#domain, target: isRoot ? this.#root + target.slice(1) : target };
  }

  #refuse(method: string, refused: Refused): GuardOutcome {
    this.#tell(refused);
    const response = toResponse(fail(this.#refusalFor(refused)), method);
    return { ok: false, reason: refused.reason, response };
  }

  #refusalFor({ reason, needed, detail }: Refused): Refusal {
    switch (reason) {
      case 'missing':
        return this.#challenge('unauthenticated', 'a Bearer token is required');
      case 'ambiguous_credentials':
        return this.#challenge(
          'invalid_request',
          'credentials must be given once, in one Authorization header',
        );
      case 'ambiguous_request':
        return this.#challenge('invalid_request', 'the address can be read in more than one way', {
          detail,
        });
      case 'insufficient_scope':
        return this.#challenge('insufficient_scope', `the token does not cover ${needed}`, {
          needed,
        });
      case 'unavailable':
        return new Refusal('store_unavailable', 'the token cannot be checked at the moment');
      default:
        return this.#challenge('invalid_token', 'the token is not, or no longer, valid');
    }
  }

  /** RFC 6750 section 3: without an error code where nothing was presented. */
  #challenge(
    code: 'unauthenticated' | 'invalid_request' | 'invalid_token' | 'insufficient_scope',
    message: string,
    details?: { readonly needed?: string | undefined; readonly detail?: string | undefined },
  ): Refusal {
    const challenge = [`Bearer realm="${this.#realm}"`];
    if (code !== 'unauthenticated') challenge.push(`error="${code}"`);
    if (details?.needed !== undefined) challenge.push(`scope="${details.needed}"`);
    return new Refusal(code, message, {
      details,
      headers: { 'www-authenticate': challenge.join(', ') },
    });
  }

  #tell(refused: Refused): void {
    if (this.#onRefusal === undefined) return;
    // Only here, since an explanation is worked out when it is read.
    const { reason, needed, explanation } = refused;
    notify(this.#onRefusal, { reason, needed, explanation });
  }
}

/** A verdict, or a refusal of the guard's own. */
interface Refused {
  readonly reason: GuardReason;
  readonly needed?: string;
  readonly detail?: string;
  readonly explanation?: Explanation;
}

const NO_NEED: GuardNeed = {};

/** What is misspelt, or looked up where it is not, must not leave the request's own scope as enough. */
function checkNeed(need: GuardNeed): GuardNeed {
  const isObject = Object.prototype.toString.call(need) === '[object Object]';
  const isRight = ([name, value]: [string, unknown]) =>
    value !== undefined && (name === 'scope' || name === 'target');
  if (isObject && Object.entries(need).every(isRight)) return need;
  throw new TokenError(
    'invalid_request',
    'what the guard takes besides the request is { scope } or { target }, neither of them undefined; it is no middleware: await guard(request), then go on or answer with its response',
  );
}

const UNAVAILABLE: readonly string[] = ['store_unavailable', 'store_corrupt'];
const AUTHORIZATION = 'authorization';
const BEARER = 'bearer';

function isFetch(request: GuardedRequest): request is Pick<Request, 'method' | 'url' | 'headers'> {
  return typeof (request.headers as Partial<Headers>).get === 'function';
}

function authorizationOf(request: GuardedRequest): string {
  const isOfFetch = isFetch(request);
  return (isOfFetch ? request.headers.get(AUTHORIZATION) : headerOf(request, AUTHORIZATION)) ?? '';
}

/** What stands behind the scheme, of any case (RFC 9110 section 11.1); `undefined` for another scheme. */
function bearerIn(credentials: string): string | undefined {
  const { length } = BEARER;
  if (credentials.slice(0, length).toLowerCase() !== BEARER) return undefined;
  if (credentials.length === length) return '';
  return credentials[length] === ' ' ? credentials.slice(length).trim() : undefined;
}

/** Whether a Bearer token is not the only credential (RFC 6750 section 2). */
function isAmbiguous(authorization: string, target: string): boolean {
  if (authorization.includes(',')) {
    return authorization.split(',').some((one) => bearerIn(one.trim()) !== undefined);
  }
  // Nearly all targets are plain, and need not be taken apart.
  if (!target.includes('access_token') && !target.includes('%')) return false;
  const start = target.indexOf('?');
  if (start === -1 || bearerIn(authorization) === undefined) return false;
  return new URLSearchParams(target.slice(start)).has('access_token');
}

/** As it arrived. Of a Fetch request, a parser has read it before. */
function targetOf(request: GuardedRequest): string {
  if (!isFetch(request)) return request.originalUrl ?? request.url ?? '';
  const { url } = request;
  const start = url.indexOf('/', url.indexOf('//') + 2);
  const end = url.indexOf('#');
  return url.slice(start === -1 ? url.length : start, end === -1 ? url.length : end);
}

const guardOptions = strict({
  tokens: z.custom<BearerGuardOptions['tokens']>(
    (value) => value instanceof Object && 'verify' in value && 'verifySync' in value,
    { error: 'tokens must be a TokenService' },
  ),
  domain: z.custom<string>(
    (value) => readRequest({ method: 'GET', domain: value as string, target: '/a' }).ok,
    { error: 'domain must be one host, as in the scopes: "orders.acme.example"' },
  ),
  rootName: z
    .custom<string>((value) => typeof value === 'string' && isSegment(value), {
      error: 'rootName must be one segment of a path, as "root"',
    })
    .optional(),
  realm: z
    .string({ error: 'realm must be a text' })
    .regex(/^[ !#-[\]-~]*$/, {
      error: 'realm must be printable ASCII without quotes and backslashes',
    })
    .optional(),
  onRefusal: z
    .custom<(refusal: GuardRefusal) => void>((value) => typeof value === 'function', {
      error: 'onRefusal must be a function',
    })
    .optional(),
});
