import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { LeaseStore } from '../../../ports/lease-store.ts';
import type { TokenStore } from '../../../ports/token-store.ts';
import type { UsageStore } from '../../../ports/usage-store.ts';
import { type ListenPlace, listenOn, urlOf } from '../listen.ts';
import type { Page } from '../pages/pages.ts';
import type { ServeSettings } from '../settings.ts';
import { Metrics } from './metrics.ts';
import { metricsPage, pageServer } from './page.ts';

type MonitoringSettings = Pick<ServeSettings, 'metrics' | 'metricsPort' | 'host'>;

interface Stores {
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
    const flags = { hostFlag: 'the host of --metrics-port', portFlag: '--metrics-port' };
    await listenOn(this.#server, { ...this.#place, ...flags });
    return `${urlOf(this.#server.address() as AddressInfo)}/metrics`;
  }

  /**
   * Closes the port of the metrics. Call it last, so that somebody can watch how the service stops.
   */
  async close(): Promise<void> {
    this.#server?.close();
    this.#server?.closeAllConnections();
  }
}
