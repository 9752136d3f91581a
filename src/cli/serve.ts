import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js';
import { isTokenError } from '../errors.ts';
import { type Authenticate, type FixedAccount, fixedAccounts } from '../http/accounts.ts';
import { tokenHandler } from '../http/handler.ts';
import { type FailureLimiter, failureLimiter, remoteAddress } from '../http/limits.ts';
import { toNodeListener } from '../http/node.ts';
import type { ScopeCatalog } from '../scope/index.ts';
import { TokenService } from '../service.ts';
import { doctor } from '../store.ts';
import { endSoon } from './command.ts';
import {
  InputError,
  keyFile,
  loadCatalog,
  loadFirstAccount,
  loadKeys,
  makeFolder,
  otherKeys,
  readKeys,
} from './files.ts';
import { type ServeSettings, UsageError } from './settings.ts';
import { forTerminal, type StorePlace, storePlace } from './stores.ts';

const REQUEST_TIMEOUT_MS = 30_000;
const HEADERS_TIMEOUT_MS = 15_000;
/** Twice the longest target that is taken: above the headers of any client that means well. */
const MAX_HEADER_BYTES = 16_384;
/** Node's own, half a minute, would let a slow sender have three times its time. */
const CHECK_INTERVAL_MS = 5000;
/** Connections that send their headers slowly are no calls yet, and are not counted as such. */
const MAX_CONNECTIONS = 10_000;
const SHUTDOWN_MS = 10_000;
/**
 * So many wrong passwords are answered in so many seconds. NIST SP 800-63B section 5.2.2 has at most
 * 100 for an account; fewer would soon lock out programs that share an address and a stale password.
 */
const FAILURES_OF_USER = 100;
const FAILURES_OF_ADDRESS = 1000;
const FAILURES_SECONDS = 900;

/**
 * Runs the token service until SIGTERM or SIGINT; then answers what is in flight and closes the
 * store. Resolves when it is ready.
 */
export async function serve(settings: ServeSettings): Promise<void> {
  const { data, prefix, reveal, maxStaleMs } = settings;
  const place = storePlace(settings);
  const catalog = await loadCatalog(settings.catalog);
  makeFolder(data);
  const keys = settings.keys === undefined ? loadKeys(data) : readKeys(settings.keys);
  const server = createServer({
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
  });
  server.maxConnections = MAX_CONNECTIONS;
  const opened = await place.open();
  let tokens: TokenService | undefined;
  const close = async () => {
    await tokens?.close();
    await opened.close();
  };
  try {
    await opened.migrate?.();
    const { store } = opened;
    // Of a file that only we have opened little is to be found, and all of it would be read.
    const findings = place.file === undefined ? await doctor(store) : [];
    tokens = new TokenService({ store, keys, prefix, catalog, reveal, cache: { maxStaleMs } });
    await listen(server, settings);
    stopOnSignals(server, close);
    // Last, since a password that was made is lost when the start fails before it is printed.
    answerCalls(server, tokens, settings, { place, catalog });
    for (const { message } of findings) {
      console.error(`tokenwright: warning: ${forTerminal(message)}`);
    }
  } catch (error) {
    server.close();
    await close();
    throw error;
  }
}

async function listen(server: Server, { port, host }: ServeSettings): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const reason = LISTEN_FAULTS.get((error as NodeJS.ErrnoException).code ?? '');
    if (reason === undefined) throw error;
    throw new InputError(`port ${port} of ${host} ${reason}`);
  }
}

const LISTEN_FAULTS: ReadonlyMap<string, string> = new Map([
  ['EADDRINUSE', 'is taken; give another --port'],
  ['EACCES', 'is not for this user; give another --port, such as one from 1024 on'],
]);

interface Sources {
  readonly place: StorePlace;
  readonly catalog: ScopeCatalog;
}

function answerCalls(
  server: Server,
  tokens: TokenService,
  settings: ServeSettings,
  sources: Sources,
): void {
  const { data, acceptLegacyBody, introspection, revocation, docs, pathTokens } = settings;
  let authenticate: Authenticate = () => null;
  const onError = (error: unknown) => console.error('tokenwright: a call failed:', error);
  const handler = tokenHandler({
    tokens,
    authenticate: (credentials, request) => authenticate(credentials, request),
    acceptLegacyBody,
    ...(introspection.length > 0 && {
      introspection: { authenticate: resourceServers(introspection) },
    }),
    revocation,
    docs,
    pathTokens,
    limiter: newLimiter(),
    clientAddress: addressOf(settings.clientHeader),
    onError,
  });
  // After whatever may be refused: the password of an account that is made is shown this once.
  const first = settings.accounts.length === 0 ? loadFirstAccount(data) : undefined;
  const accounts = first === undefined ? settings.accounts : [first.account];
  authenticate = fixedAccounts(accounts);
  server.on('request', toNodeListener(handler));
  console.log(welcome(server, settings, sources, accounts, first?.password));
}

/** What is wrong with them is told by the name of their own setting. */
function resourceServers(accounts: readonly FixedAccount[]): Authenticate {
  try {
    return fixedAccounts(accounts);
  } catch (error) {
    if (!isTokenError(error)) throw error;
    throw new UsageError(error.message.replace(/^accounts/, 'introspection'));
  }
}

/** In memory: each process counts for itself, and forgets when it ends. */
function newLimiter(): FailureLimiter {
  const limiter = (points: number) => new RateLimiterMemory({ points, duration: FAILURES_SECONDS });
  return failureLimiter({
    userAndAddress: limiter(FAILURES_OF_USER),
    address: limiter(FAILURES_OF_ADDRESS),
  });
}

/** Of several addresses the last one is what the proxy itself has seen; the others anyone can write. */
function addressOf(header: string | undefined): (request: Request) => string {
  return (request) => {
    const named = header === undefined ? undefined : request.headers.get(header)?.split(',').at(-1);
    return named?.trim() || remoteAddress(request);
  };
}

function stopOnSignals(server: Server, close: () => Promise<void>): void {
  const stop = () => {
    process.off('SIGTERM', stop).off('SIGINT', stop);
    server.close(() => {
      endSoon();
      close().catch(notClosed);
    });
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), SHUTDOWN_MS).unref();
  };
  process.on('SIGTERM', stop).on('SIGINT', stop);
}

function notClosed(error: unknown): void {
  console.error('tokenwright: the store cannot be closed:', error);
  process.exitCode = 1;
}

function welcome(
  server: Server,
  settings: ServeSettings,
  { place, catalog }: Sources,
  accounts: readonly FixedAccount[],
  password: string | undefined,
): string {
  const { address, family, port } = server.address() as AddressInfo;
  const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  const scopes = catalog.toArray();
  const first = scopes.find((scope) => scope.startsWith('GET:')) ?? scopes[0];
  const user = accounts[0]?.username ?? '';
  const credentials = password === undefined ? user : `${user}:${password}`;
  const keys = settings.keys ?? keyFile(settings.data);
  const other = otherKeys(keys);
  const source = settings.catalog.length === 0 ? ' of an example; give yours with --catalog' : '';
  return `tokenwright listens on ${url}

  data      ${settings.data}
  keys      ${keys}${other === undefined ? '' : `; ${other}`}
  store     ${place.name}
  catalog   ${catalog.size} scopes${source}
  accounts  ${accounts.map(({ username }) => username).join(', ')}${passwordNote(settings, password)}${extraNote(settings)}

A first call:

  curl -u '${credentials}' -H 'Content-Type: application/json' \\
    -d '{"scopes":["${first}"],"ttl":3600}' ${url}/token
`;
}

function extraNote({ introspection, revocation, docs }: ServeSettings): string {
  const paths = [
    ...(introspection.length > 0 ? ['/introspect'] : []),
    ...(revocation ? ['/revoke'] : []),
    ...(docs ? ['/docs'] : []),
  ];
  return paths.length === 0 ? '' : `\n  also      ${paths.join(', ')}`;
}

function passwordNote({ accounts, data }: ServeSettings, password: string | undefined): string {
  if (accounts.length > 0) return '';
  return password === undefined
    ? ` (its password was shown on the first start; for a new one delete ${join(data, 'account.json')})`
    : `, password ${password} (made now, not shown again)`;
}
