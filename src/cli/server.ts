import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  CLOSE_MS,
  CONNECTION_CHECK_MS,
  HEADERS_TIMEOUT_MS,
  MAX_CONNECTIONS,
  MAX_HEADER_BYTES,
  REQUEST_TIMEOUT_MS,
  SHUTDOWN_MS,
} from '../bounds.ts';
import { gracefulStop } from '../http/graceful-stop.ts';
import { doctor, type StoreFinding } from '../store.ts';
import type { KeyOptions } from '../values/keys.ts';
import { type Audit, openAudit } from './audit.ts';
import { loadCatalog } from './catalog-files.ts';
import { describeError } from './error-message.ts';
import { inputError } from './errors.ts';
import { Generations } from './generations.ts';
import { type GreetingFacts, greeting } from './greeting.ts';
import { LiveService } from './live-service.ts';
import { makeFolder } from './private-file.ts';
import {
  accountsAtStart,
  accountsOf,
  knownKeys,
  newKeys,
  PasswordHashes,
  readAgain,
} from './service-files.ts';
import { serviceStores } from './service-stores.ts';
import { type ServeSettings, serviceOptions } from './settings.ts';
import { listenForSignals } from './signals.ts';
import { refuseOpenSecrets, startWarnings, warn, warnOfProxy } from './start-checks.ts';
import {
  messageOf,
  openPatiently,
  requireSqlite,
  type StoreTarget,
  storeTarget,
} from './stores/open.ts';
import type { UsageTarget } from './stores/usage.ts';

/**
 * Runs the token service until SIGTERM or SIGINT, then answers the open requests and closes the store.
 * Reads keys, catalog and accounts again on SIGHUP. Resolves when the service is ready.
 */
export async function serve(given: ServeSettings): Promise<void> {
  const signals = listenForSignals();
  const hashes = new PasswordHashes();
  const settings = { ...given, accounts: await hashes.hashed(accountsOf(given)) };
  const options = serviceOptions(settings);
  const target = usableTarget(settings);
  const catalog = await loadCatalog(settings.catalog, settings.granularity);
  makeFolder(settings.data);
  refuseOpenSecrets(settings);
  const known = knownKeys(settings);
  const server = newServer();
  const stop = gracefulStop(server);
  const opened = await openPatiently(target, { waitSeconds: settings.storeWait, onWait: warn });
  let audit: Audit | undefined;
  let closeService = async () => {};
  const close = async () => {
    try {
      await closeService();
      await opened.close();
    } finally {
      await audit?.close();
    }
  };
  try {
    await opened.migrate?.();
    const keys = known ?? (await newKeys(settings, target, opened.store));
    const findings = await doctor(opened.store);
    const stores = await serviceStores(settings, target, opened);
    audit = await auditOf(settings);
    const generations = new Generations({ settings, options, ...stores, audit });
    const tokens = generations.newService({ keys, catalog });
    closeService = () => tokens.close();
    await listen(server, settings);
    // Last: if the start failed after this, nobody would see the password that was made.
    const { accounts, password } = accountsAtStart(settings);
    const live = new LiveService(generations.of(tokens, accounts), warnOfOld);
    closeService = () => live.close();
    server.on('request', live.listener);
    signals.onEnd(() => end(stop, close));
    signals.onHangup(async () => {
      const files = await readAgain(given, hashes);
      live.replace(generations.of(generations.newService(files), files.accounts));
      return files;
    });
    const { usageTarget } = stores;
    const facts = { settings, catalog, keys, target, usageTarget, accounts, password, findings };
    announce(server, facts);
  } catch (error) {
    server.close();
    await close();
    throw error;
  }
}

/** The store of the settings. Refuses SQLite before anything is made where Node.js has none. */
function usableTarget(settings: ServeSettings): StoreTarget {
  const target = storeTarget(settings);
  if (target.file !== undefined) requireSqlite();
  return target;
}

async function auditOf({ audit }: ServeSettings): Promise<Audit | undefined> {
  return audit === undefined ? undefined : openAudit(audit, warn);
}

/** Prints what it serves, and warns of what is unsafe. */
function announce(
  server: Server,
  facts: Omit<GreetingFacts, 'address' | 'storeName' | 'usageName'> & {
    readonly keys: readonly KeyOptions[];
    readonly target: StoreTarget;
    /** Absent if uses are not recorded. */
    readonly usageTarget: UsageTarget | undefined;
    readonly findings: readonly StoreFinding[];
  },
): void {
  const { settings, keys, target, usageTarget, findings } = facts;
  const address = server.address() as AddressInfo;
  const names = { storeName: target.name, usageName: usageTarget?.name };
  console.log(greeting({ ...facts, ...names, address }));
  warnOfProxy(server, settings);
  const files = [target.file, usageTarget?.file].filter((file) => file !== undefined);
  const warnings = startWarnings({ settings, keys, files, address: address.address });
  for (const message of [...warnings, ...findings.map(messageOf)]) warn(message);
}

function warnOfOld(error: unknown): void {
  warn(`the service from before the reload cannot be closed: ${describeError(error)}`);
}

async function listen(server: Server, { port, host }: ServeSettings): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const reason = LISTEN_FAULTS.get((error as NodeJS.ErrnoException).code ?? '');
    if (reason === undefined) throw error;
    throw inputError(`port ${port} of ${host} ${reason}`);
  }
}

const FOREIGN_HOST =
  'cannot be used: --host must be a name or an address of this machine, without a port';

const LISTEN_FAULTS: ReadonlyMap<string, string> = new Map([
  ['ENOTFOUND', FOREIGN_HOST],
  ['EAI_AGAIN', FOREIGN_HOST],
  ['EADDRNOTAVAIL', FOREIGN_HOST],
  ['EINVAL', FOREIGN_HOST],
  ['EADDRINUSE', 'is taken; give another --port'],
  ['EACCES', 'is not for this user; give another --port, such as one from 1024 on'],
]);

function newServer(): Server {
  const server = createServer({
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    connectionsCheckingInterval: CONNECTION_CHECK_MS,
  });
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

async function end(stop: () => Promise<number>, close: () => Promise<void>): Promise<void> {
  const cut = await stop();
  const calls = cut === 1 ? '1 call was cut off: it' : `${cut} calls were cut off: they`;
  if (cut > 0) warn(`${calls} took longer than ${SHUTDOWN_MS} ms`);
  // Something may never close, such as a connection to a server that has stopped answering.
  setTimeout(() => process.exit(), CLOSE_MS).unref();
  try {
    await close();
  } catch (error) {
    console.error('tokenwright: the store cannot be closed:', error);
    process.exitCode = 1;
  }
}
