import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type FixedAccount, fixedAccounts } from '../http/accounts.ts';
import { tokenHandler } from '../http/handler.ts';
import { toNodeListener } from '../http/node.ts';
import type { ScopeCatalog } from '../scope/index.ts';
import { TokenService } from '../service.ts';
import { SqliteTokenStore } from '../stores/sqlite.ts';
import { loadCatalog, loadFirstAccount, loadKeys, makeFolder } from './files.ts';
import type { ServeSettings } from './settings.ts';

const REQUEST_TIMEOUT_MS = 30_000;
const HEADERS_TIMEOUT_MS = 15_000;
const SHUTDOWN_MS = 10_000;

/**
 * Runs the token service until SIGTERM or SIGINT; then answers what is in flight and closes the
 * store. Resolves when it is ready.
 */
export async function serve(settings: ServeSettings): Promise<void> {
  const { data, prefix, reveal } = settings;
  const catalog = await loadCatalog(settings.catalog);
  makeFolder(data);
  const keys = loadKeys(data);
  const store = SqliteTokenStore.open(join(data, 'tokens.db'));
  const tokens = new TokenService({ store, keys, prefix, catalog, reveal });
  const server = createServer({
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
  });
  server.listen(settings.port, settings.host);
  await once(server, 'listening');
  try {
    // Last, since a password that was made is lost when the start fails before it is printed.
    answerCalls(server, tokens, settings, catalog);
  } catch (error) {
    server.close();
    throw error;
  }
}

function answerCalls(
  server: Server,
  tokens: TokenService,
  settings: ServeSettings,
  catalog: ScopeCatalog,
): void {
  const { data, acceptLegacyBody } = settings;
  const first = settings.accounts.length === 0 ? loadFirstAccount(data) : undefined;
  const accounts = first === undefined ? settings.accounts : [first.account];
  const authenticate = fixedAccounts(accounts);
  const onError = (error: unknown) => console.error('tokenwright: a call failed:', error);
  const handler = tokenHandler({ tokens, authenticate, acceptLegacyBody, onError });
  server.on('request', toNodeListener(handler));
  stopOnSignals(server, tokens);
  console.log(welcome(server, settings, catalog, accounts, first?.password));
}

function stopOnSignals(server: Server, tokens: TokenService): void {
  const stop = () => {
    process.off('SIGTERM', stop).off('SIGINT', stop);
    server.close(() => void tokens.close());
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), SHUTDOWN_MS).unref();
  };
  process.on('SIGTERM', stop).on('SIGINT', stop);
}

function welcome(
  server: Server,
  settings: ServeSettings,
  catalog: ScopeCatalog,
  accounts: readonly FixedAccount[],
  password: string | undefined,
): string {
  const { address, family, port } = server.address() as AddressInfo;
  const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  const scopes = catalog.toArray();
  const first = scopes.find((scope) => scope.startsWith('GET:')) ?? scopes[0];
  const user = accounts[0]?.username ?? '';
  const credentials = password === undefined ? user : `${user}:${password}`;
  const source = settings.catalog.length === 0 ? ' of an example; give yours with --catalog' : '';
  return `tokenwright listens on ${url}

  data      ${settings.data}
  catalog   ${catalog.size} scopes${source}
  accounts  ${accounts.map(({ username }) => username).join(', ')}${passwordNote(settings, password)}

A first call:

  curl -u '${credentials}' -H 'Content-Type: application/json' \\
    -d '{"scopes":["${first}"],"ttl":3600}' ${url}/token
`;
}

function passwordNote({ accounts, data }: ServeSettings, password: string | undefined): string {
  if (accounts.length > 0) return '';
  return password === undefined
    ? ` (its password was shown on the first start; for a new one delete ${join(data, 'account.json')})`
    : `, password ${password} (made now, not shown again)`;
}
