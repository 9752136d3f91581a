import type { RequestListener } from 'node:http';
import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js';
import { FAILURES_SECONDS, MAX_FAILURES_OF_ADDRESS, MAX_FAILURES_OF_USER } from '../bounds.ts';
import { isTokenError } from '../errors.ts';
import {
  type Authenticate,
  type FixedAccount,
  type FixedAccountsOptions,
  fixedAccounts,
} from '../http/basic-auth.ts';
import { tokenHandler } from '../http/handler.ts';
import type { TokenHandlerOptions } from '../http/handler-options.ts';
import { type FailureLimiter, failureLimiter, remoteAddress } from '../http/login-limiter.ts';
import { toNodeListener } from '../http/node.ts';
import type { SignIn } from '../http/sign-in.ts';
import type { TokenServiceOptions } from '../options.ts';
import { TokenService } from '../service.ts';
import type { TokenStore } from '../store.ts';
import type { UsageStore } from '../usage-store.ts';
import { renewFirstAccount } from './account-files.ts';
import type { Audit } from './audit.ts';
import { ErrorLog } from './error-log.ts';
import { usageError } from './errors.ts';
import { frontPage, isFrontPage } from './front-page.ts';
import { gatewayCheck, isCheck } from './gateway-check.ts';
import { type Generation, sharedStore } from './live-service.ts';
import type { ServiceFiles } from './service-files.ts';
import type { ServeSettings, serviceOptions } from './settings.ts';

export interface GenerationsOptions {
  readonly settings: ServeSettings;
  readonly options: ReturnType<typeof serviceOptions>;
  readonly store: TokenStore;
  /** Absent if uses are not recorded. */
  readonly usage: UsageStore | undefined;
  readonly audit: Audit | undefined;
}

/** Makes services on one store, with what answers their calls. */
export class Generations {
  readonly #settings: ServeSettings;
  readonly #service: Omit<TokenServiceOptions, 'keys' | 'catalog'>;
  readonly #handler: Omit<TokenHandlerOptions, 'tokens' | 'authenticate'>;
  readonly #audit: Audit | undefined;

  constructor({ settings, options, store, usage, audit }: GenerationsOptions) {
    this.#settings = settings;
    this.#audit = audit;
    this.#service = {
      ...options,
      store: sharedStore(store),
      usage: usage && { store: sharedStore(usage) },
      cache: { maxStaleMs: settings.maxStaleMs },
      onEvent: audit && ((event) => audit.recordEvent(event)),
    };
    this.#handler = handlerOptions(settings, audit);
    audit?.addUsers(settings.introspection);
  }

  /** Also checks the options of the handler, before an account is made whose password is shown once. */
  newService({ keys, catalog }: Pick<ServiceFiles, 'keys' | 'catalog'>): TokenService {
    const tokens = new TokenService({ ...this.#service, keys, catalog });
    this.#listener(tokens, () => null);
    return tokens;
  }

  of(tokens: TokenService, accounts: readonly FixedAccount[]): Generation {
    const onRenew = this.#renewal(accounts);
    const authenticate = fixedAccounts(accounts, { onRenew });
    this.#audit?.addUsers(accounts);
    return { listener: this.#listener(tokens, authenticate), close: () => tokens.close() };
  }

  /** The handler of tokens, with the front page and the check for gateways. */
  #listener(tokens: TokenService, authenticate: Authenticate): RequestListener {
    const handle = toNodeListener(tokenHandler({ ...this.#handler, tokens, authenticate }));
    const front = frontPage(this.#settings);
    const check = gatewayCheck({ ...this.#settings, tokens, onError: this.#handler.onError });
    return (request, response) => {
      if (isFrontPage(request)) front(request, response);
      else if (check !== undefined && isCheck(request)) check(request, response);
      else void handle(request, response);
    };
  }

  /** Only the account that the service made is in a file that it may change. */
  #renewal([account]: readonly FixedAccount[]): FixedAccountsOptions['onRenew'] {
    const { accounts, data } = this.#settings;
    if (accounts.length > 0 || account === undefined) return undefined;
    return (_, hash) => renewFirstAccount(data, account, hash);
  }
}

function handlerOptions(
  settings: ServeSettings,
  audit: Audit | undefined,
): Omit<TokenHandlerOptions, 'tokens' | 'authenticate'> {
  const { acceptLegacyBody, introspection, revocation, docs, pathTokens } = settings;
  const errors = new ErrorLog();
  return {
    acceptLegacyBody,
    ...(introspection.length > 0 && {
      introspection: { authenticate: resourceServers(introspection) },
    }),
    revocation,
    docs,
    pathTokens,
    limiter: newLimiter(),
    clientAddress: addressFrom(settings.clientHeader),
    onError: (error: unknown) => errors.report(error),
    onSignIn: audit && ((signIn: SignIn) => audit.recordSignIn(signIn)),
  };
}

/** Names `introspection` in errors, where the library says `accounts`. */
function resourceServers(accounts: readonly FixedAccount[]): Authenticate {
  try {
    return fixedAccounts(accounts);
  } catch (error) {
    if (!isTokenError(error)) throw error;
    throw usageError(error.message.replace(/^accounts/, 'introspection'));
  }
}

/** Counts in memory: each process for itself, until it ends. */
function newLimiter(): FailureLimiter {
  const limiter = (points: number) => new RateLimiterMemory({ points, duration: FAILURES_SECONDS });
  return failureLimiter({
    userAndAddress: limiter(MAX_FAILURES_OF_USER),
    address: limiter(MAX_FAILURES_OF_ADDRESS),
  });
}

/** Takes the last of several addresses: only this one was written by the proxy itself. */
function addressFrom(header: string | undefined): (request: Request) => string {
  // The function itself: the handler knows it, and builds no request for it.
  if (header === undefined) return remoteAddress;
  return (request) => {
    const named = request.headers.get(header)?.split(',').at(-1);
    return named?.trim() || remoteAddress(request);
  };
}
