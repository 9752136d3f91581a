import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HEADERS_TIMEOUT_MS, REQUEST_TIMEOUT_MS } from '../../../bounds.ts';
import { HttpError } from '../../../http/errors.ts';
import { originForm } from '../../../http/node/listener.ts';
import { sendByNode } from '../../../http/node/sending.ts';
import { inTurn } from '../../../http/node/turns.ts';
import { COMMON_HEADERS, fail } from '../../../http/responses.ts';
import type { LeaseStore, TokenStore, UsageStore } from '../../../index.ts';
import { addressOf, type ListenPlace, listenOn, urlOf } from '../listen.ts';
import { madeOnceATurn, type Page, publicPage } from '../pages.ts';
import type { ServeSettings } from '../settings.ts';
import { Metrics } from './metrics.ts';

type MonitoringSettings = Pick<ServeSettings, 'metrics' | 'metricsPort' | 'host'>;

/** The stores of a service. */
export interface Stores {
  readonly store: TokenStore;
  /** Counts the uses of limited tokens. */
  readonly leases: LeaseStore;
  /** Absent if uses are not recorded. */
  readonly usage: UsageStore | undefined;
}

/** The metrics of a service: on its address, on a port of their own, or off. */
export class Monitoring {
  /** Absent if they are off. */
  readonly metrics: Metrics | undefined;
  /** The pages for the address of the service. */
  readonly pages: readonly Page[];
  readonly #server: Server | undefined;
  readonly #place: ListenPlace | undefined;

  /** @throws {TokenError} `invalid_options` if `prom-client` is not installed */
  static async open(settings: MonitoringSettings): Promise<Monitoring> {
    const isOn = settings.metrics || settings.metricsPort !== undefined;
    return new Monitoring(settings, isOn ? await Metrics.open() : undefined);
  }

  private constructor({ metricsPort, host }: MonitoringSettings, metrics: Metrics | undefined) {
    const page = metrics && metricsPage(metrics);
    const isApart = page !== undefined && metricsPort !== undefined;
    this.metrics = metrics;
    this.pages = page === undefined || isApart ? [] : [page];
    this.#server = isApart ? pageServer(page) : undefined;
    this.#place = metricsPort && { host, ...metricsPort };
  }

  /** Wraps the stores, to time their calls, if metrics are on. */
  observed(stores: Stores): Stores {
    const { metrics } = this;
    if (metrics === undefined) return stores;
    const { store, leases, usage } = stores;
    return {
      store: metrics.observed(store),
      leases: metrics.observedLeases(leases),
      usage: usage && metrics.observedUsage(usage),
    };
  }

  /**
   * Listens on the port of the metrics, if they have one. Returns their URL, or only their path if
   * they are at the address of the service; `undefined` if they are off.
   *
   * @throws {CliError} if the port cannot be used
   */
  async listen(): Promise<string | undefined> {
    if (this.#server === undefined || this.#place === undefined) return this.pages[0]?.route;
    await listenOn(this.#server, { ...this.#place, ...PORT_FLAGS });
    return `${urlOf(this.#server.address() as AddressInfo)}/metrics`;
  }

  /**
   * Refuses a host on which {@link listen} could not listen. Opens no port.
   *
   * @throws {CliError}
   */
  async check(): Promise<void> {
    if (this.#place !== undefined) await addressOf({ ...this.#place, ...PORT_FLAGS });
  }

  /**
   * Closes the port of the metrics. Call it last, so that somebody can watch how the service stops.
   */
  async close(): Promise<void> {
    this.#server?.close();
    this.#server?.closeAllConnections();
  }
}

const PORT_FLAGS = { hostFlag: 'the host of --metrics-port', portFlag: '--metrics-port' };

const TEXT = 'text/plain; version=0.0.4; charset=utf-8';
/** In OpenMetrics, samples of counters end in this, and their families do not. */
const TOTAL = '_total';
const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** The page that Prometheus reads: in OpenMetrics if it asks for that, else in the text format. */
function metricsPage(metrics: Metrics): Page {
  const text = madeOnceATurn(() => metrics.text());
  const openText = madeOnceATurn(async () => toOpenMetrics(await metrics.text()));
  return publicPage('/metrics', async ({ headers: { accept = '' } }) => {
    const isOpen = accept.includes('application/openmetrics-text');
    return {
      status: 200,
      headers: { 'content-type': isOpen ? OPEN_METRICS : TEXT, ...COMMON_HEADERS },
      body: await (isOpen ? openText() : text()),
    };
  });
}

/**
 * Converts the text format to OpenMetrics. prom-client can write OpenMetrics itself, but changes
 * the names of its counters when it does: the next answer in the text format would be wrong.
 */
function toOpenMetrics(text: string): string {
  const lines = text.split('\n').filter((line) => line !== '');
  const counters = new Set(
    lines.filter((line) => line.endsWith(`${TOTAL} counter`)).map((line) => line.split(' ')[2]),
  );
  const written = lines.map((line) => {
    const [mark, , name = ''] = line.split(' ', 3);
    const isAbout = mark === '#' && counters.has(name);
    return isAbout ? line.replace(name, name.slice(0, -TOTAL.length)) : line;
  });
  return `${written.join('\n')}\n# EOF\n`;
}

/** A server of this page alone. */
function pageServer(page: Page): Server {
  const options = { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: HEADERS_TIMEOUT_MS };
  const nothing = fail(new HttpError('not_found', 'there is nothing at this address'));
  return createServer(options, (request, response) => {
    const { url = '', method = '' } = request;
    if (page.isAt(originForm(url)))
      void inTurn(request, response, () => page.answer(request, response));
    else void sendByNode(nothing, method, response, REQUEST_TIMEOUT_MS);
  });
}
