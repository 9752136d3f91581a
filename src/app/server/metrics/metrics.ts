import type { Histogram, Registry } from 'prom-client';
import packageJson from '../../../../package.json' with { type: 'json' };
import type { SignIn } from '../../../http/index.ts';
import {
  isTokenError,
  type LeaseStore,
  type RefusalReason,
  type ServiceStats,
  systemClock,
  type TokenEvent,
  type TokenService,
  type TokenStore,
  type UsageStore,
} from '../../../index.ts';
import { performance } from '../../../time/timers.ts';
import type { CallObserver } from '../calls.ts';
import type { Reloaded } from '../files/service-files.ts';
import { optionalPackage } from '../optional-package.ts';

type Client = typeof import('prom-client');

/** In seconds: from a call of SQLite to the longest time that a store may take. */
const STORE_BUCKETS = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2];
/** In seconds: from a page to the longest time that a call may take. */
const CALL_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30];

/** The calls of each store that are timed. Other members of it pass through. */
const OPERATIONS = {
  tokens: [
    'insert',
    'count',
    'find',
    'page',
    'replace',
    'revoke',
    'revokeAll',
    'purge',
    'prune',
    'scan',
    'hasReached',
  ],
  usage: ['add', 'read', 'totals', 'forget'],
  leases: ['take', 'giveBack', 'purge'],
} as const satisfies {
  readonly tokens: readonly (keyof TokenStore)[];
  readonly usage: readonly (keyof UsageStore)[];
  readonly leases: readonly (keyof LeaseStore)[];
};

/** The values of the label `store`. */
type StoreLabel = keyof typeof OPERATIONS;

/** Codes with which a store that works refuses a call. */
const REFUSALS: ReadonlySet<string> = new Set(['id_taken', 'code_taken', 'quota_exceeded']);

/**
 * Default metrics that are removed: the version of Node.js, which the service does not tell
 * everybody, and gauges with names that end in `_total`, as only those of counters should.
 */
const REMOVED = [
  'nodejs_version_info',
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

// A counter that is missing has no rate, so the counters that alerts use begin with 0.
const REASONS: readonly RefusalReason[] = [
  'malformed',
  'unknown',
  'revoked',
  'expired',
  'suspended',
  'ancestor_revoked',
  'ancestor_expired',
  'ancestor_changed',
  'ancestor_suspended',
  'address_unknown',
  'address_denied',
  'ambiguous_request',
  'insufficient_scope',
  'ancestor_insufficient',
  'limit_exceeded',
];
const EVENTS: readonly TokenEvent['type'][] = [
  'reused',
  'store_trouble',
  'usage_dropped',
  'clock_ahead',
];
const FAILURES = ['store_unavailable', 'store_corrupt', 'durability_unconfirmed'] as const;
const SIGN_INS: readonly SignIn['outcome'][] = ['accepted', 'refused', 'limited', 'unavailable'];

/**
 * Counts and times of the service for Prometheus. Labels come from short lists: never an id, an
 * account, a scope, or anything else that a caller chose.
 */
export class Metrics {
  readonly #client: Client;
  readonly #registry: Registry;
  readonly #counters: ReturnType<typeof countersIn>;
  readonly #state: ReturnType<typeof gaugesIn>;
  readonly #storeSeconds: Histogram<'store' | 'operation' | 'result'>;
  readonly #callSeconds: Histogram<'route'>;
  /** The text in progress. Concurrent readers share it. */
  #text: Promise<string> | undefined;

  /** @throws {TokenError} `invalid_options` if `prom-client` is not installed */
  static async open(): Promise<Metrics> {
    return new Metrics(
      await optionalPackage('prom-client', '--metrics', () => import('prom-client')),
    );
  }

  private constructor(client: Client) {
    this.#client = client;
    const registry = new client.Registry();
    const registers = [registry];
    client.collectDefaultMetrics({ register: registry });
    for (const name of REMOVED) registry.removeSingleMetric(name);
    this.#registry = registry;
    this.#counters = countersIn(client, registry);
    this.#state = gaugesIn(client, registry);
    this.#storeSeconds = new client.Histogram({
      name: 'tokenwright_store_call_duration_seconds',
      help: 'Time that calls of a store (tokens, usage) took, by operation and result (ok, error).',
      labelNames: ['store', 'operation', 'result'],
      buckets: STORE_BUCKETS,
      registers,
    });
    this.#callSeconds = new client.Histogram({
      name: 'tokenwright_http_request_duration_seconds',
      help: 'Time from the headers of a request to the end of its answer, by route.',
      labelNames: ['route'],
      buckets: CALL_BUCKETS,
      registers,
    });
  }

  /** Counts an event of the service. */
  readonly recordEvent = (event: TokenEvent): void => {
    const { events, verifications, failures, dropped } = this.#counters;
    events.inc({ type: event.type });
    if (event.type === 'verified') verifications.inc({ outcome: 'ok' });
    if (event.type === 'refused') verifications.inc({ outcome: event.reason });
    if (event.type === 'store_trouble') {
      failures.inc({ code: event.code, store: event.store ?? 'tokens' });
    }
    if (event.type === 'usage_dropped') dropped.inc(event.count);
  };

  /** Counts a sign-in or its failure. */
  readonly recordSignIn = ({ outcome }: SignIn): void => {
    this.#counters.signIns.inc({ outcome });
  };

  /** Counts and times a call. */
  readonly recordCall: CallObserver = () => {
    const { inProgress, calls } = this.#counters;
    inProgress.inc();
    return ({ route, method, status, seconds }) => {
      inProgress.dec();
      calls.inc({ route, method, status: classOf(status) });
      this.#callSeconds.observe({ route }, seconds);
    };
  };

  /** Counts the introspections of a service, which emits no event for them. */
  countIntrospections(tokens: TokenService): void {
    const { introspections } = this.#counters;
    const introspect = tokens.introspect.bind(tokens);
    tokens.introspect = async (value, options) => {
      const token = await introspect(value, options);
      // A revocation by the bearer introspects, too, but does not count as a use.
      if (options?.countsAsUse === true)
        introspections.inc({ active: String(token !== undefined) });
      return token;
    };
  }

  /** Tells which version runs, and which version of the schema it writes. */
  recordBuild(schema: number): void {
    this.#state.build.set({ version: packageJson.version, schema: String(schema) }, 1);
  }

  /** Tells which keys and which catalog are in use from now on. */
  recordFiles({ keys, catalog }: Pick<Reloaded, 'keys' | 'catalog'>): void {
    const { activeKey, scopes, loaded } = this.#state;
    const kid = keys.find(({ status }) => status === 'active')?.kid;
    activeKey.reset();
    if (kid !== undefined) activeKey.set({ kid }, 1);
    scopes.set(catalog.size);
    loaded.set(systemClock.now().getTime() / 1000);
  }

  /** Counts a reload of keys, catalog and accounts, and passes its outcome on. */
  async observedReload(reload: () => Promise<Reloaded>): Promise<Reloaded> {
    const { reloads } = this.#counters;
    try {
      const files = await reload();
      reloads.inc({ result: 'ok' });
      this.recordFiles(files);
      return files;
    } catch (error) {
      reloads.inc({ result: 'error' });
      throw error;
    }
  }

  /** Adds the counts that a service keeps itself. */
  watch(stats: () => ServiceStats): void {
    const registers = [this.#registry];
    const { Counter, Gauge } = this.#client;
    const reads = new Counter({
      name: 'tokenwright_cache_reads_total',
      help: 'Verifications by where the record came from: memory (hit) or the store (miss).',
      labelNames: ['result'],
      registers,
      collect() {
        const { hits, misses } = stats().cache;
        reads.reset();
        reads.inc({ result: 'hit' }, hits);
        reads.inc({ result: 'miss' }, misses);
      },
    });
    const waiting = new Gauge({
      name: 'tokenwright_usage_waiting',
      help: 'Counts of usage that are not written yet.',
      registers,
      collect() {
        waiting.set(stats().usage?.waiting ?? 0);
      },
    });
    const lag = new Gauge({
      name: 'tokenwright_usage_lag_seconds',
      help: 'Age of the oldest count of usage that is not written yet.',
      registers,
      collect() {
        lag.set((stats().usage?.lagMs ?? 0) / 1000);
      },
    });
  }

  /** Wraps a store of tokens, to time its calls. */
  observed(store: TokenStore): TokenStore {
    return this.#observed('tokens', store);
  }

  /** Wraps a store of usage, to time its calls. */
  observedUsage(store: UsageStore): UsageStore {
    return this.#observed('usage', store);
  }

  /** Wraps a store of leases, to time its calls. */
  observedLeases(store: LeaseStore): LeaseStore {
    return this.#observed('leases', store);
  }

  /** All metrics, in the text format of Prometheus. */
  text(): Promise<string> {
    this.#text ??= this.#registry.metrics().finally(() => {
      this.#text = undefined;
    });
    return this.#text;
  }

  #observed<Store extends object>(label: StoreLabel, store: Store): Store {
    const operations: ReadonlySet<PropertyKey> = new Set(OPERATIONS[label]);
    return new Proxy(store, {
      get: (_, name) => {
        const member: unknown = Reflect.get(store, name, store);
        if (typeof member !== 'function') return member;
        if (!operations.has(name)) return member.bind(store);
        const labels = { store: label, operation: String(name) };
        return (...call: unknown[]) => this.#timed(labels, () => member.apply(store, call));
      },
    });
  }

  async #timed(
    labels: { readonly store: StoreLabel; readonly operation: string },
    call: () => Promise<unknown>,
  ): Promise<unknown> {
    const start = performance.now();
    const observe = (result: 'ok' | 'error') =>
      this.#storeSeconds.observe({ ...labels, result }, (performance.now() - start) / 1000);
    try {
      const answer = await call();
      observe('ok');
      return answer;
    } catch (error) {
      observe(isTokenError(error) && REFUSALS.has(error.code) ? 'ok' : 'error');
      throw error;
    }
  }
}

/** The class of a status, such as `4xx`. */
function classOf(status: number | undefined): string {
  return status === undefined ? 'aborted' : `${Math.floor(status / 100)}xx`;
}

/** What the service runs with now. */
function gaugesIn({ Gauge }: Client, registry: Registry) {
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name: `tokenwright_${name}`, help, labelNames, registers: [registry] });
  return {
    build: gauge(
      'build_info',
      'Always 1: the version of tokenwright, and of the schema of its store, are labels.',
      'version',
      'schema',
    ),
    activeKey: gauge(
      'active_key_info',
      'Always 1: the id of the key that makes new values is a label.',
      'kid',
    ),
    scopes: gauge('catalog_scopes', 'Scopes in the catalog.'),
    loaded: gauge(
      'last_reload_success_timestamp_seconds',
      'When keys, catalog and accounts were last read, at the start or by a reload.',
    ),
  };
}

function countersIn({ Counter, Gauge }: Client, registry: Registry) {
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name: `tokenwright_${name}_total`, help, labelNames, registers });
  const counters = {
    verifications: counter(
      'verifications',
      'Values that were verified, by outcome: ok, or the reason of the refusal.',
      'outcome',
    ),
    introspections: counter(
      'introspections',
      'Answers to resource servers, by whether the token is active.',
      'active',
    ),
    events: counter('events', 'What happened to tokens and to the store, by type.', 'type'),
    signIns: counter('sign_ins', 'Passwords that were checked, by outcome.', 'outcome'),
    failures: counter(
      'store_failures',
      'Calls of a store (tokens, usage, leases) that failed or took too long, by code.',
      'code',
      'store',
    ),
    reloads: counter(
      'reloads',
      'Reloads of keys, catalog and accounts, by result: ok, or error if all stay as they were.',
      'result',
    ),
    dropped: counter('usage_dropped', 'Counts of usage that were never written.'),
    calls: counter(
      'http_requests',
      'Requests that ended, by route, method and class of the status.',
      'route',
      'method',
      'status',
    ),
    inProgress: new Gauge({
      name: 'tokenwright_http_requests_in_progress',
      help: 'Requests that are being answered.',
      registers,
    }),
  };
  for (const outcome of ['ok', ...REASONS]) counters.verifications.inc({ outcome }, 0);
  for (const active of ['true', 'false']) counters.introspections.inc({ active }, 0);
  for (const type of EVENTS) counters.events.inc({ type }, 0);
  for (const outcome of SIGN_INS) counters.signIns.inc({ outcome }, 0);
  for (const result of ['ok', 'error']) counters.reloads.inc({ result }, 0);
  for (const code of FAILURES) counters.failures.inc({ code, store: 'tokens' }, 0);
  return counters;
}
