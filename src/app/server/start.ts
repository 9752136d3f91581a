import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { HEADERS_TIMEOUT_MS, REQUEST_TIMEOUT_MS, SHUTDOWN_MS } from '../../bounds.ts';
import { gracefulStop } from '../../http/index.ts';
import { doctor, type KeyOptions, type StoreFinding, type TokenService } from '../../index.ts';
import { setTimeout } from '../../time/timers.ts';
import { maskAlso } from '../terminal/masking.ts';
import { type GreetingFacts, greeting } from './greeting.ts';
import { Health } from './health.ts';
import { listenOn } from './listen.ts';
import { jsonLog, SILENT_LOG, TEXT_LOG, theLog, useLog, warn } from './logs/log.ts';
import { type Parts, partsOf } from './parts.ts';
import { ReloadableService } from './reload.ts';
import type { ServeSettings } from './settings.ts';
import { listenForSignals, type Signals } from './signals.ts';
import { type OpenStore, openWithRetry, useStore } from './stores/open.ts';
import { serviceStores } from './stores/service-stores.ts';
import { startWarnings } from './warnings.ts';

const LOGS = { text: () => TEXT_LOG, json: () => jsonLog(), off: () => SILENT_LOG };

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
export async function serve(settings: ServeSettings): Promise<void> {
  maskAlso(settings.foreign);
  useLog(LOGS[settings.log]());
  const signals = listenForSignals();
  const parts = await partsOf(settings);
  const server = newServer();
  const { monitoring, audit } = parts;
  const closers: Closer[] = [() => monitoring.close(), async () => audit?.close()];
  try {
    await run(parts, { server, closers, signals });
  } catch (error) {
    server.close();
    await closeAll(closers);
    throw error;
  }
}

/** What a running service needs to stop. */
interface Process {
  readonly server: Server;
  /** Closes what was opened. Each part that is opened adds its own. */
  readonly closers: Closer[];
  readonly signals: Signals;
}

async function run(parts: Parts, { server, closers, signals }: Process): Promise<void> {
  const { files, lasting, monitoring, place, read, store } = parts;
  const { target, waitSeconds } = store;
  const stop = gracefulStop(server);
  const opened = await openWithRetry(target, { waitSeconds, onWait: warn });
  closers.push(() => opened.close());
  const { keys, findings, stores } = await useStore(target, opened, () => begin(parts, opened));
  const health = new Health((): TokenService => service.tokens);
  const pages = [...lasting.pages, ...health.pages, ...monitoring.pages];
  const service = new ReloadableService(
    { ...lasting, pages, stores: monitoring.observed(stores) },
    { keys, catalog: read.catalog, presets: read.presets },
  );
  closers.push(() => service.close());
  const metricsAt = await monitoring.listen();
  await listenOn(server, { ...place, hostFlag: '--host', portFlag: '--port' });
  // Last: if the start failed after this, nobody would see the password that was made.
  const firstAccount = read.accounts.length > 0 ? undefined : files.firstAccount();
  const accounts = firstAccount === undefined ? read.accounts : [firstAccount.account];
  service.admit(accounts);
  const { metrics } = monitoring;
  metrics?.watch(() => service.tokens.stats());
  metrics?.recordBuild(opened.schema);
  metrics?.recordFiles({ keys, catalog: read.catalog });
  server.on('request', service.listener);
  signals.onEnd(() => end({ health, stop, closers }));
  const reload = async () => {
    const reloaded = await files.readAgain();
    service.replace(reloaded);
    return reloaded;
  };
  signals.onHangup(metrics === undefined ? reload : () => metrics.observedReload(reload));
  announce(parts, server, {
    keys,
    findings,
    users: accounts.map(({ username }) => username),
    firstAccount,
    usagePlace: stores.usage && opened.usage,
    metricsAt,
  });
}

/** Brings the schema up to date, and makes the keys on the first start. */
async function begin({ files, read, store }: Parts, opened: OpenStore) {
  await opened.migrate?.();
  const keys = read.keys ?? (await files.newKeys(store.target, opened.store));
  // What is wrong with the counts is said where they are opened.
  const findings = (await doctor(opened.store)).filter(({ part }) => part === undefined);
  return { keys, findings, stores: await serviceStores(store, store.target, opened) };
}

/** What is known only once the service runs. */
interface Started extends Pick<GreetingFacts, 'users' | 'firstAccount'> {
  readonly keys: readonly KeyOptions[];
  readonly findings: readonly StoreFinding[];
  /** Absent if uses are not recorded. */
  readonly usagePlace: OpenStore['usage'] | undefined;
  readonly metricsAt: string | undefined;
}

/** Prints what it serves, and warns of what is unsafe. */
function announce(
  parts: Parts,
  server: Server,
  { keys, findings, users, firstAccount, usagePlace, metricsAt }: Started,
): void {
  const { files, read, store, shown, isProxyKnown } = parts;
  const address = server.address() as AddressInfo;
  const metricsPaths = metricsAt === undefined ? [] : [metricsAt];
  theLog().started(
    greeting({
      ...shown,
      address,
      keyPath: files.keyPath,
      storeName: store.target.name,
      usageName: usagePlace?.name,
      catalog: read.catalog,
      users,
      firstAccount,
      paths: ['/healthz', '/readyz', ...metricsPaths, ...shown.paths],
    }),
  );
  if (!isProxyKnown) warnOfProxy(server);
  const warnings = startWarnings(parts, { address, keys, findings, usagePlace });
  for (const message of warnings) warn(message);
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

/**
 * Warns once of a request through a proxy if no setting says how it names its clients: all of them
 * then count as one. Stops listening after that.
 */
function warnOfProxy(server: Server): void {
  const look = ({ headers }: IncomingMessage) => {
    const name = FORWARDED.find((header) => headers[header.toLowerCase()] !== undefined);
    if (name === undefined) return;
    server.off('request', look);
    warn(
      `a request came with the header ${name}, as behind a proxy; give --trust-proxy or --client-header, or wrong passwords of all its clients count as those of one`,
    );
  };
  server.on('request', look);
}

const FORWARDED = ['X-Forwarded-For', 'Forwarded'];

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
