import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js';
import { FAILURES_SECONDS } from '../../bounds.ts';
import {
  type Authenticate,
  type FailureLimiter,
  type FixedAccount,
  failureLimiter,
  fixedAccounts,
  type OAuthOptions,
  oauthMetadata,
  type TokenHandlerOptions,
} from '../../http/index.ts';
import { allRoutes } from '../../http/routes.ts';
import { isTokenError, TokenRequests, type TokenService } from '../../index.ts';
import { usageError } from '../terminal/errors.ts';
import { callerAddress } from './client-address.ts';
import { answersExample, examplePage } from './example.ts';
import { checkFolder, makeFolder } from './files/private-file.ts';
import { ServiceFiles } from './files/service-files.ts';
import { CHECK, gatewayCheck } from './gateway-check.ts';
import type { GreetingFacts } from './greeting.ts';
import type { ListenPlace } from './listen.ts';
import { type Audit, checkAudit, openAudit } from './logs/audit.ts';
import { ErrorLog } from './logs/errors.ts';
import { theLog, warn } from './logs/log.ts';
import type { Metrics } from './metrics/metrics.ts';
import { Monitoring } from './metrics/monitoring.ts';
import {
  APPROVAL,
  approvalPage,
  consolePage,
  EXAMPLE,
  frontPage,
  metadataPage,
  metadataPathOf,
} from './pages.ts';
import type { LastingParts } from './reload.ts';
import { Sessions } from './sessions.ts';
import { type ServeSettings, secretFiles, serviceOptions } from './settings.ts';
import { requireSqlite, type StoreTarget, storeTarget } from './stores/open.ts';

/** Wrong passwords from one address, within `FAILURES_SECONDS`. @bound */
export const MAX_FAILURES_OF_ADDRESS = 1000;

/** Wrong passwords for one user within `FAILURES_SECONDS`. @bound */
export const MAX_FAILURES_OF_USER = 100;

/** The parts of `serve`, but for those that need its store. */
export interface Parts {
  readonly place: ListenPlace;
  readonly files: ServiceFiles;
  /** The files of settings that hold secrets. */
  readonly secretFiles: readonly string[];
  /** What the files hold. */
  readonly read: Awaited<ReturnType<ServiceFiles['read']>>;
  readonly store: {
    readonly target: StoreTarget;
    /** How long to try to open it. */
    readonly waitSeconds: number;
    readonly usage: ServeSettings['usage'];
  };
  readonly monitoring: Monitoring;
  /** Absent if it is off. */
  readonly audit: Audit | undefined;
  readonly lasting: Omit<LastingParts, 'stores'>;
  /** Whether it is set how proxies name their clients. */
  readonly isProxyKnown: boolean;
  /** Whether it looks like a first look, but for its address. */
  readonly isTrial: boolean;
  readonly shown: Pick<
    GreetingFacts,
    'data' | 'isExample' | 'isExampleOn' | 'hasConsole' | 'paths'
  >;
}

/** What the making of the parts does to the disk, beside reading. */
interface Preparation {
  folder(path: string): void;
  audit(path: string): Promise<Audit | undefined>;
}

/** Makes what a service needs. */
const MAKING: Preparation = { folder: makeFolder, audit: (path) => openAudit(path, warn) };

/** Makes nothing, and refuses what could not be made. */
export const CHECKING: Preparation = {
  folder: checkFolder,
  async audit(path) {
    checkAudit(path);
    return undefined;
  },
};

/**
 * Turns the settings into parts; nothing after this reads settings. Reads all files before the store is
 * opened, which may take long.
 *
 * @throws {CliError} naming the setting or the file, and what is wrong with it
 */
export async function partsOf(
  settings: ServeSettings,
  prepare: Preparation = MAKING,
): Promise<Parts> {
  const { audit: auditPath, catalog, console, host, maxStaleMs, port, store, usage } = settings;
  const options = serviceOptions(settings);
  const target = usableTarget(settings);
  const files = new ServiceFiles(settings);
  const read = await files.read(prepare.folder);
  const monitoring = await Monitoring.open(settings);
  const audit = auditPath === undefined ? undefined : await prepare.audit(auditPath);
  const { metrics } = monitoring;
  const onEvent = eachOf(audit?.recordEvent, metrics?.recordEvent);
  return {
    place: { host, port },
    store: { target, waitSeconds: settings.storeWait, usage },
    files,
    secretFiles: secretFiles(settings.config),
    read,
    monitoring,
    audit,
    lasting: {
      ...callParts(settings, audit, metrics),
      service: { ...options, cache: { maxStaleMs }, onEvent },
      signIn(accounts) {
        audit?.addUsers(accounts);
        return fixedAccounts(accounts, { onRenew: files.renewal(accounts) });
      },
      purgeAfter: settings.purgeAfter,
    },
    isProxyKnown: settings.trustProxy.length > 0 || settings.clientHeader !== undefined,
    isTrial: store === undefined,
    shown: {
      data: settings.data,
      isExample: catalog.length === 0,
      isExampleOn: answersExample(settings),
      hasConsole: console === 'on',
      paths: pathsOf(settings),
    },
  };
}

/** The parts that answer calls. */
function callParts(
  settings: ServeSettings,
  audit: Audit | undefined,
  metrics: Metrics | undefined,
): Omit<LastingParts, 'stores' | 'service' | 'signIn' | 'purgeAfter'> {
  const onSignIn = eachOf(audit?.recordSignIn, metrics?.recordSignIn);
  const handler = { ...handlerOptions(settings), onSignIn };
  audit?.addUsers(settings.introspection);
  const hasConsole = settings.console === 'on';
  const isExampleOn = answersExample(settings);
  const { clientAddress, oauth } = handler;
  return {
    handler,
    pages: [
      frontPage(settings),
      ...(hasConsole ? [consolePage({ isExampleOn })] : []),
      ...(oauth
        ? [
            metadataPage({
              ...oauth,
              requests: settings.requests !== 'off',
              introspection: settings.introspection.length > 0,
            }),
          ]
        : []),
      ...(settings.requests === 'off' ? [] : [approvalPage()]),
    ],
    sessionsOn: (leases) =>
      hasConsole ? new Sessions({ leases, audit, clientAddress }) : undefined,
    inCall: (work) => (audit === undefined ? work() : audit.inCall(work)),
    guardedPages: (tokens) => {
      const options = { ...settings, tokens, onError: handler.onError };
      const pages = [gatewayCheck(options), isExampleOn ? examplePage(options) : undefined];
      return pages.filter((page) => page !== undefined);
    },
    observers: [metrics?.recordCall, theLog().recordCall].filter(
      (observer) => observer !== undefined,
    ),
    onService: (tokens) => metrics?.countIntrospections(tokens),
    requestsFor: (tokens) => requestsFor(tokens, settings, audit),
  };
}

/** The store of the settings. Refuses SQLite before any file is made if Node.js has none. */
function usableTarget(settings: ServeSettings): StoreTarget {
  const target = storeTarget(settings);
  if (target.file !== undefined) requireSqlite();
  return target;
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
    oauth: oauthOptions(settings),
    docs,
    pathTokens,
    limiter: newLimiter(),
    clientAddress: callerAddress(settings),
    onError: (error: unknown) => errors.report(error),
  };
}

/** @throws {CliError} naming the setting */
function oauthOptions(settings: ServeSettings): OAuthOptions | undefined {
  const { issuer, exchange, requests } = settings;
  if (issuer === undefined) {
    const needing = exchange ? '--exchange' : requests !== 'off' && '--requests';
    if (needing) throw usageError(`${needing} needs --issuer, such as https://auth.example`);
    return undefined;
  }
  if (requests !== 'off' && settings.console === 'off') {
    throw usageError('--requests needs the console, where people approve: leave out --console off');
  }
  const oauth = { issuer, exchange };
  try {
    oauthMetadata(oauth);
  } catch (error) {
    if (!isTokenError(error)) throw error;
    throw usageError(error.message.replace(/^issuer/, '--issuer (TOKENWRIGHT_ISSUER)'));
  }
  return oauth;
}

/** The requests for tokens of a service, if programs may ask for any. */
function requestsFor(
  tokens: TokenService,
  { issuer = '', requests }: ServeSettings,
  audit: Audit | undefined,
): TokenRequests | undefined {
  if (requests === 'off') return undefined;
  return new TokenRequests({
    tokens,
    verificationUri: issuer.replace(/\/$/, '') + APPROVAL,
    anonymous: requests === 'anyone',
    onEvent: audit?.recordRequest,
  });
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

/** The paths of optional routes. */
function pathsOf(settings: ServeSettings): string[] {
  const { introspection, revocation, derivation, exchange, requests } = settings;
  const { docs, gateway, issuer } = settings;
  // Sessions are part of the console.
  const on = {
    introspection: introspection.length > 0,
    revocation,
    derivation,
    grants: exchange || requests !== 'off',
    requests: requests !== 'off',
    sessions: false,
  };
  return [
    ...allRoutes().flatMap(({ path, option }) => (option && on[option] ? [path] : [])),
    ...(issuer === undefined ? [] : [metadataPathOf(issuer)]),
    ...(requests === 'off' ? [] : [APPROVAL]),
    ...(gateway === undefined ? [] : [CHECK]),
    ...(docs ? ['/docs'] : []),
    ...(answersExample(settings) ? [`${EXAMPLE}/orders`] : []),
  ];
}
