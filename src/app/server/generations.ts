import type { RequestListener } from 'node:http';
import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js';
import { FAILURES_SECONDS } from '../../bounds.ts';
import { isTokenError } from '../../errors.ts';
import { tokenHandler } from '../../http/handler.ts';
import type { TokenHandlerOptions } from '../../http/handler-options.ts';
import { originForm, toNodeListener } from '../../http/node/listener.ts';
import { ownForms } from '../../http/request.ts';
import {
  type Authenticate,
  type FixedAccount,
  type FixedAccountsOptions,
  fixedAccounts,
} from '../../http/sign-in/basic-auth.ts';
import { type FailureLimiter, failureLimiter } from '../../http/sign-in/login-limiter.ts';
import type { SignIn } from '../../http/sign-in/sign-in.ts';
import type { TokenServiceOptions } from '../../inputs/options.ts';
import type { LeaseStore } from '../../ports/lease-store.ts';
import type { TokenStore } from '../../ports/token-store.ts';
import type { UsageStore } from '../../ports/usage-store.ts';
import { TokenService } from '../../service.ts';
import { usageError } from '../terminal/errors.ts';
import { type CallObserver, NO_ROUTE, observeCall } from './calls.ts';
import { callerAddress } from './client-address.ts';
import { renewFirstAccount } from './files/account-files.ts';
import type { ServiceFiles } from './files/service-files.ts';
import { gatewayCheck } from './gateway-check.ts';
import { type Generation, sharedStore } from './live-service.ts';
import type { Audit } from './logs/audit.ts';
import { ErrorLog } from './logs/error-log.ts';
import { theLog } from './logs/log.ts';
import type { Metrics } from './metrics/metrics.ts';
import { CONSOLE, consolePage } from './pages/console-page.ts';
import { type Page, publicJsonPage } from './pages/pages.ts';
import type { ServeSettings, serviceOptions } from './settings.ts';
import { reportPurges, startUpkeep } from './upkeep.ts';

/** Wrong passwords from one address, within `FAILURES_SECONDS`. @bound */
export const MAX_FAILURES_OF_ADDRESS = 1000;

/** Wrong passwords for one user within `FAILURES_SECONDS`. @bound */
export const MAX_FAILURES_OF_USER = 100;

export interface GenerationsOptions {
  readonly settings: ServeSettings;
  readonly options: ReturnType<typeof serviceOptions>;
  readonly store: TokenStore;
  /** Counts the uses of limited tokens. */
  readonly leases: LeaseStore;
  /** Absent if uses are not recorded. */
  readonly usage: UsageStore | undefined;
  readonly audit: Audit | undefined;
  readonly metrics: Metrics | undefined;
  /** In addition to the front page and the console. */
  readonly pages: readonly Page[];
}

/** Makes services on one store, each with the listener that answers its calls. */
export class Generations {
  readonly #settings: ServeSettings;
  readonly #service: Omit<TokenServiceOptions, 'keys' | 'catalog'>;
  readonly #handler: Omit<TokenHandlerOptions, 'tokens' | 'authenticate'>;
  readonly #audit: Audit | undefined;
  readonly #metrics: Metrics | undefined;
  readonly #pages: readonly Page[];
  readonly #observers: readonly CallObserver[];

  constructor(given: GenerationsOptions) {
    const { settings, options, store, leases, usage, audit, metrics, pages } = given;
    this.#settings = settings;
    this.#audit = audit;
    this.#metrics = metrics;
    const console = settings.console === 'on' ? [consolePage()] : [];
    this.#pages = [frontPage(settings), ...console, ...pages];
    this.#observers = [metrics?.recordCall, theLog().recordCall].filter(
      (observer) => observer !== undefined,
    );
    this.#service = {
      ...options,
      store: sharedStore(store),
      limits: { store: sharedStore(leases) },
      usage: usage && { store: sharedStore(usage) },
      cache: { maxStaleMs: settings.maxStaleMs },
      onEvent: eachOf(audit && ((event) => audit.recordEvent(event)), metrics?.recordEvent),
    };
    const onSignIn = eachOf(
      audit && ((signIn: SignIn) => audit.recordSignIn(signIn)),
      metrics?.recordSignIn,
    );
    this.#handler = { ...handlerOptions(settings), onSignIn };
    audit?.addUsers(settings.introspection);
    reportPurges(settings);
  }

  /**
   * Makes a service. Also checks the options of the handler: if they failed only after the first
   * account is made, nobody would see its password.
   */
  newService({ keys, catalog }: Pick<ServiceFiles, 'keys' | 'catalog'>): TokenService {
    const tokens = new TokenService({ ...this.#service, keys, catalog });
    this.#metrics?.countIntrospections(tokens);
    this.#listener(tokens, () => null);
    return tokens;
  }

  /** Makes the listener of a service, and starts the upkeep of its store. */
  of(tokens: TokenService, accounts: readonly FixedAccount[]): Generation {
    const onRenew = this.#renewal(accounts);
    const authenticate = fixedAccounts(accounts, { onRenew });
    this.#audit?.addUsers(accounts);
    startUpkeep(tokens, this.#settings);
    return { listener: this.#listener(tokens, authenticate), tokens };
  }

  /** Answers calls with the pages, the check for gateways and the token handler. */
  #listener(tokens: TokenService, authenticate: Authenticate): RequestListener {
    const handler = tokenHandler({ ...this.#handler, tokens, authenticate });
    const handle = toNodeListener(handler);
    const routeOf = ownForms.get(handler)?.routeOf;
    const observers = this.#observers;
    const check = gatewayCheck({ ...this.#settings, tokens, onError: this.#handler.onError });
    const pages = check === undefined ? this.#pages : [...this.#pages, check];
    return (request, response) => {
      const url = originForm(request.url ?? '');
      const page = pages.find(({ isAt }) => isAt(url));
      if (observers.length > 0) {
        const route = page?.route ?? routeOf?.(url.replace(/\?.*/s, '')) ?? NO_ROUTE;
        observeCall(observers, route, request, response);
      }
      if (page === undefined) void handle(request, response);
      else page.answer(request, response);
    };
  }

  /** Stores new hashes only for the account that the service made: other files are not its own. */
  #renewal([account]: readonly FixedAccount[]): FixedAccountsOptions['onRenew'] {
    const { accounts, data } = this.#settings;
    if (accounts.length > 0 || account === undefined) return undefined;
    return (_, hash) => renewFirstAccount(data, account, hash);
  }
}

/** Combines the given listeners into one; `undefined` if there are none. */
function eachOf<Event>(
  ...listeners: readonly (((event: Event) => void) | undefined)[]
): ((event: Event) => void) | undefined {
  const all = listeners.filter((listener) => listener !== undefined);
  if (all.length === 0) return undefined;
  return (event) => {
    for (const listener of all) listener(event);
  };
}

function handlerOptions(
  settings: ServeSettings,
): Omit<TokenHandlerOptions, 'tokens' | 'authenticate'> {
  const { acceptLegacyBody, introspection, revocation, derivation, docs, pathTokens } = settings;
  const errors = new ErrorLog();
  return {
    acceptLegacyBody,
    ...(introspection.length > 0 && {
      introspection: { authenticate: resourceServers(introspection) },
    }),
    revocation,
    derivation,
    docs,
    pathTokens,
    limiter: newLimiter(),
    clientAddress: callerAddress(settings),
    onError: (error: unknown) => errors.report(error),
  };
}

/** Replaces the library's `accounts` in errors by the name of the setting. */
function resourceServers(accounts: readonly FixedAccount[]): Authenticate {
  try {
    return fixedAccounts(accounts);
  } catch (error) {
    if (!isTokenError(error)) throw error;
    throw usageError(error.message.replace(/^accounts/, 'introspection'));
  }
}

/** Counts in memory: each process counts on its own, and a restart begins at zero. */
export function newLimiter(): FailureLimiter {
  const limiter = (points: number) => new RateLimiterMemory({ points, duration: FAILURES_SECONDS });
  return failureLimiter({
    userAndAddress: limiter(MAX_FAILURES_OF_USER),
    address: limiter(MAX_FAILURES_OF_ADDRESS),
    user: limiter(MAX_FAILURES_OF_USER),
  });
}

/**
 * The page at `/`: the name of the service, and links to its other pages. Anyone may read it, so it
 * does not show the version. Links are relative, since a proxy may add a path.
 */
function frontPage({ console, docs }: Pick<ServeSettings, 'console' | 'docs'>): Page {
  const links = {
    openapi: './openapi.json',
    ...(console === 'on' && { console: `.${CONSOLE}` }),
    ...(docs && { docs: './docs' }),
    healthz: './healthz',
    readyz: './readyz',
  };
  const data = { name: 'tokenwright', ...links };
  return publicJsonPage('/', { data, success: true, message: '', error: null });
}
