import * as z from 'zod/mini';
import { MAX_TIMEOUT_MS } from '../bounds.ts';
import { once } from '../inputs/once.ts';
import { callback, flag, gotKind, strict, wholeNumber } from '../inputs/schemas.ts';
import type { TokenService } from '../service.ts';
import { oauthFields } from './oauth/metadata.ts';
import type { OAuthOptions } from './oauth/token-endpoint.ts';
import type { Authenticate } from './sign-in/basic-auth.ts';
import { type FailureLimiter, isFailureLimiter } from './sign-in/login-limiter.ts';
import type { SessionAccount, SignIn } from './sign-in/sign-in.ts';

/** The options of `tokenHandler`. */
export interface TokenHandlerOptions {
  /** The service to serve. */
  readonly tokens: TokenService;
  /**
   * Returns the account that a user name and a password open, or `null`. If it throws, returns
   * anything else, or takes longer than 10 seconds, the call fails with 503 and opens nothing. It must
   * not read the request's body. Give this or `session`, or both.
   */
  readonly authenticate?: Authenticate | undefined;
  /**
   * Returns the account of the person who is signed in to your application, or `null`. It is called for
   * requests without an `Authorization` header, and for all requests if there is no `authenticate`. If it
   * fails, the call fails with 503, as for `authenticate`.
   *
   * Browsers also add cookies to calls that a page of another site makes. So calls that change something
   * need a header `x-tokenwright` of any value, which the console sends, and are refused (403 `cross_site`)
   * if the browser says that they come from another origin. Never allow that header to other origins by
   * CORS.
   * @default none: sessions open nothing
   */
  readonly session?: SessionAccount | undefined;
  /** The path before `/token`, such as `/auth`. @default '' */
  readonly basePath?: string | undefined;
  /**
   * Also accepts the create bodies of some older clients: `expire` as a lifetime in seconds, and
   * `ttl: 0` for the default lifetime. @default false
   */
  readonly acceptLegacyBody?: boolean | undefined;
  /**
   * How a path may name a token: `id-only` refuses values there, since paths end up in access logs.
   * @default 'any'
   */
  readonly pathTokens?: 'any' | 'id-only' | undefined;
  /**
   * Lets resource servers ask about values, at `/introspect` (RFC 7662). They have their own
   * credentials: those of an account pass only if this `authenticate` accepts them. @default none: 404
   */
  readonly introspection?: { readonly authenticate: Authenticate } | undefined;
  /** Lets the bearer of a token revoke it, at `/revoke` (RFC 7009). @default false: 404 */
  readonly revocation?: boolean | undefined;
  /**
   * Lets the bearer of a token make narrower ones from it, at `/token/derive`, with the value as a Bearer
   * token: see {@link TokenService.derive}. @default false: 404
   */
  readonly derivation?: boolean | undefined;
  /**
   * Makes the service an authorization server. `oauthMetadata` publishes that it is one.
   * @default none: 404
   */
  readonly oauth?: OAuthOptions | undefined;
  /**
   * Shows a reference page at `/docs`, to everybody. Its script and style come from the package
   * `swagger-ui-dist`, which you need to install. @default false: 404
   */
  readonly docs?: boolean | undefined;
  /** The largest body, in bytes. @default 1 048 576 */
  readonly maxBodyBytes?: number | undefined;
  /** Milliseconds in which a whole body must arrive: from 1 to 600 000. @default 10 000 */
  readonly bodyTimeoutMs?: number | undefined;
  /**
   * Milliseconds for which a client may stop reading a response before its connection is closed: from
   * 1 to 600 000. @default 10 000
   */
  readonly sendTimeoutMs?: number | undefined;
  /**
   * The number of slots for calls in progress. Bodies and forms that are still being read have as many
   * slots of their own, and so have calls whose credentials are not checked yet. A call takes one slot; a
   * body or a list of tokens takes one for each 128 KiB. One account holds at most a quarter of the slots,
   * and so does one address if `clientAddress` is set; before credentials, a sixteenth. Calls beyond that
   * are refused (503 `overloaded`). @default 1000
   */
  readonly maxInFlight?: number | undefined;
  /**
   * Makes callers with too many wrong credentials wait (429 `rate_limited`), before a password is
   * checked; see `failureLimiter`. Needs `clientAddress`. @default none
   */
  readonly limiter?: FailureLimiter | undefined;
  /**
   * Returns the IP address that a request comes from, for the `limiter`, `fixedAccounts` and
   * `onSignIn`: `remoteAddress`, or behind proxies a function that `forwardedAddress` returns. Never use
   * a header that the client can write. The address may have a port, brackets or a zone.
   * `() => ''` takes all callers for one; then anybody can lock out any user. If it throws or returns
   * anything else, the call fails with 503, and `onError` is called at most once a minute.
   * @default none
   */
  readonly clientAddress?: ((request: Request) => string | undefined) | undefined;
  /**
   * Called after each check of credentials, for an audit log. Not called if a call has no readable
   * credentials. Its exceptions are ignored. @default none
   */
  readonly onSignIn?: ((signIn: SignIn) => void) | undefined;
  /**
   * Called with each error that callers see as 500 or 503, with the reason in `details` if a store failed,
   * and with errors of `authenticate` and the `limiter`: write them to your log. If one of the two does not
   * answer in time, it is called at most once a minute. Not called for `overloaded`, which callers cause.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** At least one of the two ways to sign in. */
export type SignInWay =
  | {
      /** See {@link TokenHandlerOptions.authenticate}. */
      readonly authenticate: Authenticate;
    }
  | {
      /** See {@link TokenHandlerOptions.session}. */
      readonly session: SessionAccount;
    };

function mountPath() {
  return z.string({ error: 'basePath must be a text such as "/auth"' }).check(
    z.regex(/^(?:\/[A-Za-z0-9\-._~]+)*$/, {
      error: 'basePath must begin with "/" and not end with one, such as "/auth"',
    }),
  );
}

export const handlerOptions = once(() =>
  strict({
    tokens: z.custom<TokenService>((value) => value instanceof Object && 'issue' in value, {
      error: gotKind('tokens must be a TokenService'),
    }),
    authenticate: z.optional(
      callback<Authenticate>(
        'authenticate must be a function, such as fixedAccounts([{ username, password }])',
      ),
    ),
    session: z.optional(
      callback<SessionAccount>(
        'session must be a function that returns the account of a request, or null',
      ),
    ),
    basePath: z.optional(mountPath()),
    acceptLegacyBody: flag('acceptLegacyBody'),
    pathTokens: z.optional(
      z.enum(['any', 'id-only'], { error: 'pathTokens must be "any" or "id-only"' }),
    ),
    introspection: z.optional(
      strict({
        authenticate: callback<Authenticate>(
          'introspection.authenticate must be a function, for credentials of resource servers',
        ),
      }),
    ),
    revocation: flag('revocation'),
    derivation: flag('derivation'),
    oauth: z.optional(strict(oauthFields('oauth.'))),
    docs: flag('docs'),
    maxBodyBytes: z.optional(wholeNumber(1, Number.MAX_SAFE_INTEGER, 'maxBodyBytes')),
    bodyTimeoutMs: z.optional(wholeNumber(1, MAX_TIMEOUT_MS, 'bodyTimeoutMs')),
    sendTimeoutMs: z.optional(wholeNumber(1, MAX_TIMEOUT_MS, 'sendTimeoutMs')),
    maxInFlight: z.optional(wholeNumber(1, Number.MAX_SAFE_INTEGER, 'maxInFlight')),
    limiter: z.optional(
      z.custom<FailureLimiter>(isFailureLimiter, {
        error: 'limiter must have waitSeconds, failed and succeeded, as failureLimiter(…) gives',
      }),
    ),
    clientAddress: z.optional(
      callback<(request: Request) => string | undefined>(
        'clientAddress must be a function, such as remoteAddress',
      ),
    ),
    onSignIn: z.optional(callback<(signIn: SignIn) => void>('onSignIn must be a function')),
    onError: z.optional(callback<(error: unknown) => void>('onError must be a function')),
  }),
);
