import { subscribe } from 'node:diagnostics_channel';
import type { RequestListener } from 'node:http';
import {
  type Authenticate,
  type FixedAccount,
  type TokenHandlerOptions,
  tokenHandler,
  toNodeListener,
} from '../../http/index.ts';
import { originForm } from '../../http/node/listener.ts';
import { inTurn } from '../../http/node/turns.ts';
import { ownForms } from '../../http/request.ts';
import {
  type KeyOptions,
  type LeaseStore,
  type TokenEvent,
  type TokenRequests,
  TokenService,
  type TokenServiceOptions,
} from '../../index.ts';
import { count } from '../../text/wording.ts';
import { describeError } from '../terminal/error-message.ts';
import { type CallObserver, NO_ROUTE, observeCall } from './calls.ts';
import type { Reloaded } from './files/service-files.ts';
import { theLog, warn } from './logs/log.ts';
import { refusalWarnings } from './logs/refusals.ts';
import type { Stores } from './metrics/monitoring.ts';
import type { Page } from './pages.ts';
import type { ServedAccount, Sessions } from './sessions.ts';
import type { ServeSettings } from './settings.ts';

/** The parts of a service that stay when its keys, catalog and accounts are replaced. */
export interface LastingParts {
  readonly service: Omit<
    TokenServiceOptions,
    'keys' | 'catalog' | 'presets' | 'store' | 'limits' | 'usage'
  >;
  readonly stores: Stores;
  readonly handler: Omit<TokenHandlerOptions, 'tokens' | 'authenticate'>;
  readonly signIn: (accounts: readonly FixedAccount[]) => Authenticate;
  readonly pages: readonly Page[];
  /** Makes the pages that check tokens: the one for gateways, and the example. */
  readonly guardedPages: (tokens: TokenService) => readonly Page[];
  readonly observers: readonly CallObserver[];
  /** Makes the sessions of the console, if it is on. */
  readonly sessionsOn: (leases: LeaseStore) => Sessions | undefined;
  /** Does the work of one call, as the log of changes needs it. */
  readonly inCall: (work: () => void) => void;
  /** Called with each service before its first call. */
  readonly onService: (tokens: TokenService) => void;
  /** Makes the requests for tokens, if programs may ask for any. */
  readonly requestsFor: (tokens: TokenService) => TokenRequests | undefined;
  readonly purgeAfter: ServeSettings['purgeAfter'];
}

/** A service, the listener that answers its calls, and the number of its calls in progress. */
interface Running {
  readonly tokens: TokenService;
  readonly keys: readonly KeyOptions[];
  listener: RequestListener;
  calls: number;
}

/**
 * Answers calls with a service whose keys, catalog and accounts can be replaced. Each call ends with
 * the service it began with, and a replaced service is closed after its last call.
 */
export class ReloadableService {
  readonly #parts: LastingParts;
  readonly #sessions: Sessions | undefined;
  #current: Running;
  #isClosed = false;

  /** Makes the first service. Nobody can sign in before {@link admit}. */
  constructor(parts: LastingParts, files: Omit<Reloaded, 'accounts'>) {
    this.#parts = parts;
    this.#sessions = parts.sessionsOn(parts.stores.leases);
    this.#current = this.#serviceOf(files);
    if (parts.purgeAfter !== 'off') reportPurges(parts.purgeAfter);
    const warnOfRefusal = refusalWarnings();
    subscribe('tokenwright:refused', (event) => warnOfRefusal(event as TokenEvent));
  }

  /** Does nothing for a call before it is its turn. */
  readonly listener: RequestListener = (request, response) => {
    void inTurn(request, response, () => this.#answer(request, response));
  };

  /** The service that answers now. */
  get tokens(): TokenService {
    return this.#current.tokens;
  }

  /** Lets these accounts sign in, and starts the removal of old records. */
  admit(accounts: readonly ServedAccount[]): void {
    this.#admit(this.#current, accounts);
  }

  /** Replaces the service by one with other keys, catalog and accounts. */
  replace(files: Reloaded): void {
    const next = this.#serviceOf(files);
    this.#admit(next, files.accounts);
    const old = this.#current;
    if (!this.#isClosed) this.#current = next;
    closeIdle(this.#isClosed ? next : old);
  }

  /** Closes the service that answers now. Call it after the last call has ended. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.tokens.close();
  }

  #answer(...[request, response]: Parameters<RequestListener>): void {
    const running = this.#current;
    running.calls += 1;
    response.once('close', () => {
      running.calls -= 1;
      if (running !== this.#current) closeIdle(running);
    });
    running.listener(request, response);
  }

  #serviceOf({ keys, catalog, presets }: Omit<Reloaded, 'accounts'>): Running {
    const { store, leases, usage } = this.#parts.stores;
    const tokens = new TokenService({
      ...this.#parts.service,
      store: sharedStore(store),
      limits: { store: sharedStore(leases) },
      usage: usage && { store: sharedStore(usage) },
      keys,
      catalog,
      presets,
    });
    this.#parts.onService(tokens);
    // Also checks the options of the handler: if they failed only after the first account is made,
    // nobody would see its password.
    const listener = this.#listener(tokens, { authenticate: () => null });
    return { tokens, keys, listener, calls: 0 };
  }

  #admit(running: Running, accounts: readonly ServedAccount[]): void {
    const { signIn, purgeAfter } = this.#parts;
    const session = this.#sessions?.of(running.keys, accounts);
    running.listener = this.#listener(running.tokens, { authenticate: signIn(accounts), session });
    if (purgeAfter !== 'off') running.tokens.upkeep({ purgeAfterDays: purgeAfter });
  }

  /** Answers calls with the pages and the token handler. */
  #listener(
    tokens: TokenService,
    ways: Pick<TokenHandlerOptions, 'session'> & { readonly authenticate: Authenticate },
  ): RequestListener {
    const { guardedPages, observers, inCall, requestsFor } = this.#parts;
    const { oauth, ...options } = this.#parts.handler;
    const withRequests = oauth && { ...oauth, requests: requestsFor(tokens) };
    const handler = tokenHandler({ ...options, oauth: withRequests, tokens, ...ways });
    const handle = toNodeListener(handler);
    const routeOf = ownForms.get(handler)?.routeOf;
    const pages = [...this.#parts.pages, ...guardedPages(tokens)];
    return (request, response) => {
      const url = originForm(request.url ?? '');
      const page = pages.find(({ isAt }) => isAt(url));
      if (observers.length > 0) {
        const route = page?.route ?? routeOf?.(url.replace(/\?.*/s, '')) ?? NO_ROUTE;
        observeCall(observers, route, request, response);
      }
      if (page === undefined) inCall(() => void handle(request, response));
      else page.answer(request, response);
    };
  }
}

function closeIdle({ tokens, calls }: Running): void {
  if (calls > 0) return;
  tokens.close().catch((error: unknown) => {
    warn(`the service from before the reload cannot be closed: ${describeError(error)}`);
  });
}

/** Logs the number of removed records, each time that some were removed, and why none are. */
function reportPurges(days: number): void {
  subscribe('tokenwright:purged', (event) => {
    const { count: number, early } = event as Extract<TokenEvent, { type: 'purged' }>;
    if (early === true) return;
    theLog().info(
      `removed ${count(number, 'record')} of tokens that expired or were revoked more than ${days} days ago`,
    );
  });
  subscribe('tokenwright:clock_ahead', () => {
    warn(
      'no old records are removed: the clock of this process is more than a day ahead of all that the store knows. Set it; if it is right, the service goes on by itself',
    );
  });
}

/** Shares a store among several services: hides its `close`, so that none of them closes it. */
export function sharedStore<Store extends object>(store: Store): Store {
  return new Proxy(store, {
    get(_, name) {
      if (name === 'close') return undefined;
      const member: unknown = Reflect.get(store, name, store);
      return typeof member === 'function' ? member.bind(store) : member;
    },
  });
}
