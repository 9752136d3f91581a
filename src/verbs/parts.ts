import type * as z from 'zod/mini';
import { AccountCatalogs } from '../access/catalogs.ts';
import { CompiledScopes } from '../access/compiled-scopes.ts';
import { Decider } from '../access/decision.ts';
import { Lineages } from '../access/lineage.ts';
import { corruptStore } from '../errors.ts';
import { Events } from '../events.ts';
import { type Quotas, readOptions } from '../inputs/options.ts';
import { deriveInput, importInput, issueInput, readOption } from '../inputs/schemas.ts';
import type { DeriveInput, ImportInput, IssueInput, Preset, Read } from '../inputs/types.ts';
import { Limits } from '../limits/limits.ts';
import { ReportedHealth } from '../ports/store-health.ts';
import { AccountRecords } from '../records/account-records.ts';
import { CheckedStore } from '../records/checked-store.ts';
import { ClockEvidence } from '../records/clock-evidence.ts';
import { type CacheLimits, RecordReader } from '../records/reader.ts';
import { Rotations } from '../records/rotation.ts';
import { TokenView } from '../records/token-view.ts';
import { type SteadyClock, steadyClock } from '../time/clock.ts';
import type { Lifetime } from '../token/record.ts';
import { UsageRecorder } from '../usage/recorder.ts';
import { KeyRing } from '../values/keys.ts';
import { checkPrefix } from '../values/prefix.ts';
import { Values } from '../values/value.ts';
import { QuotaKeeper } from './quotas.ts';

/** The parts that the methods of a service work with. */
export interface ServiceParts {
  readonly rules: {
    readonly lifetime: Lifetime;
    readonly presets: readonly Preset[];
    readonly quotas: Quotas;
    readonly issueInput: () => z.ZodMiniType<Read<IssueInput>>;
    readonly deriveInput: () => z.ZodMiniType<Read<DeriveInput>>;
    readonly importInput: () => z.ZodMiniType<Read<ImportInput>>;
  };
  /** What the store can keep beside tokens. */
  readonly beside: ReturnType<typeof readOptions>['beside'];
  readonly ring: KeyRing;
  readonly now: SteadyClock;
  readonly events: Events;
  readonly catalogs: AccountCatalogs;
  readonly reader: RecordReader;
  readonly store: CheckedStore;
  readonly compiled: CompiledScopes;
  readonly values: Values;
  readonly records: AccountRecords;
  readonly quotas: QuotaKeeper;
  readonly evidence: ClockEvidence;
  readonly rotations: Rotations;
  readonly limits: Limits;
  readonly view: TokenView;
  readonly lineages: Lineages;
  readonly decider: Decider;
  /** Work in the background that ends with the service. */
  readonly upkeeps: Set<{ readonly stop: () => Promise<unknown> }>;
  /** Whether the store works in a transaction of the host, so that most parts belong to another service. */
  readonly isInside: boolean;
}

/** The parts that a service shares with those in transactions of the host. */
type SharedParts = Pick<
  ServiceParts,
  'rules' | 'beside' | 'ring' | 'now' | 'catalogs' | 'compiled' | 'values' | 'limits'
> & { readonly usage: UsageRecorder | undefined };

/** The parts of one service alone, from which the others are made. */
interface OwnParts extends Pick<ServiceParts, 'events' | 'store' | 'isInside'> {
  readonly cache: CacheLimits;
  /** Whether the store may be written to after the call that asked for it has returned. */
  readonly canWriteLater: boolean;
}

/**
 * Reads the options of a service and builds its parts. Opens nothing and does not call the store.
 *
 * @throws {TokenError} `invalid_options`, naming the option and what it should be, never its value
 */
export function partsOf(options: unknown): ServiceParts {
  const inside = PartsInside.in(options);
  if (inside !== undefined) return inside;
  const read = readOptions(options);
  const { isLocal, deadlineMs } = read;
  const ring = readOption('keys', () => new KeyRing(read.keys));
  const now = steadyClock(read.clock);
  const events = new Events(read.onEvent, now);
  const prefix = checkPrefix(read.prefix);
  const { reveal, foreign } = read;
  const values = readOption('foreign', () => new Values(ring, prefix, { reveal, foreign }));
  const catalogs = new AccountCatalogs(read.catalog, deadlineMs);
  const store = new CheckedStore(read.store, {
    isLocal,
    deadlineMs,
    health: new ReportedHealth(events, now),
  });
  const shared = {
    rules: rulesOf(read),
    beside: read.beside,
    ring,
    now,
    catalogs,
    values,
    compiled: new CompiledScopes(() => store.failure(corruptStore())),
    usage: read.usage && new UsageRecorder({ ...read.usage, deadlineMs, events, now }),
    limits: limitsOf(read, { now, events, store }),
  };
  const { cache, canWriteLater } = read;
  return assembled(shared, { events, store, cache, canWriteLater, isInside: false });
}

/** The parts of a service in a transaction. Hands them to the constructor in the place of options. */
export class PartsInside {
  readonly #parts: ServiceParts;

  /** @throws {TokenError} `invalid_options` if the store knows no transactions of the host */
  constructor(outside: ServiceParts, connection: object) {
    const events = outside.events.inTransaction();
    this.#parts = assembled(
      { ...outside, usage: outside.view.usage },
      {
        events,
        store: outside.store.in(connection, new ReportedHealth(events, outside.now)),
        cache: NO_CACHE,
        canWriteLater: false,
        isInside: true,
      },
    );
  }

  /** Asks no proxy and no getter. */
  static in(options: unknown): ServiceParts | undefined {
    const isOurs = typeof options === 'object' && options !== null && #parts in options;
    return isOurs ? options.#parts : undefined;
  }
}

const NO_CACHE: CacheLimits = { maxStaleMs: 0, maxEntries: 1, maxBytes: 1 };

function assembled(shared: SharedParts, own: OwnParts): ServiceParts {
  const { rules, beside, ring, now, catalogs, values, compiled, usage, limits } = shared;
  const { events, store, canWriteLater, isInside } = own;
  const watchHealth = new ReportedHealth(events, now, 'watch');
  const reader = new RecordReader(store, own.cache, watchHealth, now.elapsedMs);
  const records = new AccountRecords(store, reader, values);
  const evidence = new ClockEvidence(store);
  const quotas = new QuotaKeeper({
    store,
    quotas: rules.quotas,
    evidence,
    canWriteLater,
    // A failure was emitted as an event. The records are gone, so usage that is left is never read.
    forget: async (ids) => usage?.forget(ids).catch(() => {}),
    onPruned: (count, at) => events.purged(count, at, true),
  });
  const lineages = new Lineages(reader, compiled);
  const rotations = new Rotations({ records, values, events, canWriteLater });
  const parts = { events, catalogs, reader, compiled, lineages, rotations, limits, values };
  return {
    ...parts,
    rules,
    beside,
    ring,
    now,
    store,
    records,
    quotas,
    evidence,
    view: new TokenView(values, events, (...all) => lineages.areEnded(...all), usage),
    decider: new Decider({ ...parts, usage }),
    upkeeps: new Set(),
    isInside,
  };
}

function limitsOf(
  { limits, deadlineMs }: ReturnType<typeof readOptions>,
  { now, events, store }: Pick<ServiceParts, 'now' | 'events' | 'store'>,
): Limits {
  return new Limits({
    store: limits?.store,
    isPart: limits?.isPart,
    deadlineMs,
    now,
    health: new ReportedHealth(events, now, 'leases'),
    onCorrupt: () => store.failure(corruptStore()),
  });
}

function rulesOf({
  lifetime,
  quotas,
  presets,
}: Pick<ServiceParts['rules'], 'lifetime' | 'quotas' | 'presets'>) {
  const schemas = { issueInput: issueInput(lifetime), deriveInput: deriveInput(lifetime) };
  return { lifetime, quotas, presets, ...schemas, importInput };
}
