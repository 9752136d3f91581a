import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { HEADERS_TIMEOUT_MS, REQUEST_TIMEOUT_MS, SHUTDOWN_MS } from '../../bounds.ts';
import { gracefulStop } from '../../http/node/graceful-stop.ts';
import { doctor, type StoreFinding } from '../../ports/token-store.ts';
import type { TokenService } from '../../service.ts';
import { setTimeout } from '../../time/timers.ts';
import type { KeyOptions } from '../../values/keys.ts';
import { describeError } from '../terminal/error-message.ts';
import { maskAlso } from '../terminal/masking.ts';
import { loadCatalog } from './files/catalog-files.ts';
import { makeFolder } from './files/private-file.ts';
import {
  accountsAtStart,
  accountsOf,
  existingKeys,
  newKeys,
  PasswordHashes,
  readAgain,
} from './files/service-files.ts';
import { Generations } from './generations.ts';
import { type GreetingFacts, greeting } from './greeting.ts';
import { Health } from './health.ts';
import { listenOn } from './listen.ts';
import { LiveService } from './live-service.ts';
import { type Audit, openAudit } from './logs/audit.ts';
import { openJsonLog } from './logs/json-log.ts';
import { type Log, SILENT_LOG, TEXT_LOG, theLog, useLog } from './logs/log.ts';
import { Monitoring } from './metrics/monitoring.ts';
import { type ServeSettings, serviceOptions } from './settings.ts';
import { listenForSignals } from './signals.ts';
import { refuseOpenSecrets, startWarnings, warn, warnOfProxy } from './start-checks.ts';
import {
  messageOf,
  openWithRetry,
  requireSqlite,
  type StoreTarget,
  storeTarget,
} from './stores/open.ts';
import { serviceStores } from './stores/service-stores.ts';
import type { UsageTarget } from './stores/usage.ts';

/** Open connections to `tokenwright serve`. @bound */
export const MAX_CONNECTIONS = 10_000;

/** Bytes of the headers of a request to `tokenwright serve`. @bound */
export const MAX_HEADER_BYTES = 16_384;

/** Milliseconds for the store of `tokenwright serve` to close after the last answer. @bound */
export const CLOSE_MS = 2000;

/** Milliseconds between two looks for requests that are late. @bound */
export const CONNECTION_CHECK_MS = 5000;

/**
 * Runs the token service until SIGTERM or SIGINT, then answers the open requests and closes the
 * store. Reads keys, catalog and accounts again on SIGHUP. Resolves when the service is ready.
 */
export async function serve(given: ServeSettings): Promise<void> {
  maskAlso(given.foreign);
  useLog(await logOf(given));
  const signals = listenForSignals();
  const prepared = await prepare(given);
  const { hashes, settings, target, catalog, monitoring } = prepared;
  const server = newServer();
  const stop = gracefulStop(server);
  const opened = await openWithRetry(target, { waitSeconds: settings.storeWait, onWait: warn });
  const closers: Closer[] = [() => opened.close()];
  try {
    await opened.migrate?.();
    const keys = prepared.keys ?? (await newKeys(settings, target, opened.store));
    const findings = await doctor(opened.store);
    const { usageTarget, ...stores } = await serviceStores(settings, target, opened);
    const audit = await auditOf(settings);
    closers.unshift(
      () => monitoring.close(),
      async () => audit?.close(),
    );
    const health = new Health((): TokenService => live.tokens);
    const pages = [...health.pages, ...monitoring.pages];
    const { metrics } = monitoring;
    const observed = monitoring.observed(stores);
    const generations = new Generations({ ...prepared, ...observed, audit, metrics, pages });
    const tokens = generations.newService({ keys, catalog });
    let closeService = () => tokens.close();
    closers.push(() => closeService());
    const metricsAt = await monitoring.listen();
    await listenOn(server, { ...settings, hostFlag: '--host', portFlag: '--port' });
    // Last: if the start failed after this, nobody would see the password that was made.
    const { accounts, password } = accountsAtStart(settings);
    const live = new LiveService(generations.of(tokens, accounts), warnOfOld);
    closeService = () => live.close();
    monitoring.metrics?.watch(() => live.tokens.stats());
    server.on('request', live.listener);
    signals.onEnd(() => end({ health, stop, closers }));
    signals.onHangup(async () => {
      const files = await readAgain(given, hashes);
      live.replace(generations.of(generations.newService(files), files.accounts));
      return files;
    });
    const started = { settings, catalog, keys, target, usageTarget, metricsAt, findings };
    announce(server, { ...started, accounts, password });
  } catch (error) {
    server.close();
    await closeAll(closers);
    throw error;
  }
}

/** Reads all settings and files before the store is opened, which may take long. */
async function prepare(given: ServeSettings) {
  const hashes = new PasswordHashes();
  const settings = { ...given, accounts: await hashes.hashed(accountsOf(given)) };
  const options = serviceOptions(settings);
  const target = usableTarget(settings);
  const catalog = await loadCatalog(settings.catalog, settings.granularity);
  makeFolder(settings.data);
  refuseOpenSecrets(settings);
  const keys = existingKeys(settings);
  const monitoring = await Monitoring.open(settings);
  return { hashes, settings, options, target, catalog, keys, monitoring };
}

type Closer = () => Promise<void>;

/** Closes everything in reverse order. A failure does not stop the rest. */
async function closeAll([first, ...later]: readonly Closer[]): Promise<void> {
  if (first === undefined) return;
  try {
    await closeAll(later);
  } finally {
    await first();
  }
}

/** The store of the settings. Refuses SQLite before any file is made if Node.js has none. */
function usableTarget(settings: ServeSettings): StoreTarget {
  const target = storeTarget(settings);
  if (target.file !== undefined) requireSqlite();
  return target;
}

async function logOf({ log }: ServeSettings): Promise<Log> {
  if (log === 'json') return openJsonLog();
  return log === 'off' ? SILENT_LOG : TEXT_LOG;
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
  theLog().started(greeting({ ...facts, ...names, address }));
  warnOfProxy(server, settings);
  const files = [target.file, usageTarget?.file].filter((file) => file !== undefined);
  const warnings = startWarnings({ settings, keys, files, address: address.address });
  for (const message of [...warnings, ...findings.map(messageOf)]) warn(message);
}

function warnOfOld(error: unknown): void {
  warn(`the service from before the reload cannot be closed: ${describeError(error)}`);
}

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

/** The parts of a running service that its end stops or closes. */
interface Running {
  readonly health: Health;
  readonly stop: () => Promise<number>;
  readonly closers: readonly Closer[];
}

async function end({ health, stop, closers }: Running): Promise<void> {
  health.stop();
  const cut = await stop();
  const calls = cut === 1 ? '1 call was cut off: it' : `${cut} calls were cut off: they`;
  if (cut > 0) warn(`${calls} took longer than ${SHUTDOWN_MS} ms`);
  // Something may never close, such as a connection to a server that has stopped answering.
  setTimeout(() => process.exit(), CLOSE_MS).unref();
  try {
    await closeAll(closers);
  } catch (error) {
    theLog().error(`the store cannot be closed: ${inspect(error)}`);
    process.exitCode = 1;
  } finally {
    await theLog().close();
  }
}
