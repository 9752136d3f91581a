import { subscribe } from 'node:diagnostics_channel';
import type { LeaseStore } from '../../../ports/lease-store.ts';
import type { TokenStore } from '../../../ports/token-store.ts';
import type { UsageStore } from '../../../ports/usage-store.ts';
import { describeError } from '../../terminal/error-message.ts';
import { count } from '../../terminal/layout.ts';
import { theLog, warn } from '../logs/log.ts';
import { OutageLog, type OutageLogOptions } from '../logs/outage.ts';
import type { ServeSettings } from '../settings.ts';
import { diagnose, diagnoseLeases, diagnoseUsage } from './diagnosis.ts';
import type { TokenLeases } from './leases.ts';
import type { OpenStore, StoreTarget } from './open.ts';
import { type UsageTarget, usageToRecord } from './usage.ts';

/** The stores of a service. */
interface ServiceStores {
  readonly store: TokenStore;
  /** Counts the uses of limited tokens. */
  readonly leases: LeaseStore;
  /** Absent if uses are not recorded. */
  readonly usage: UsageStore | undefined;
  /** Absent if uses are not recorded. */
  readonly usageTarget: UsageTarget | undefined;
}

const USAGE_REMARK =
  'tokens are verified and shown as before, without their uses, which are counted in memory';

/** Opens the stores beside that of the tokens, and logs the outages of all of them. */
export async function serviceStores(
  settings: Pick<ServeSettings, 'usage'>,
  target: StoreTarget,
  opened: OpenStore,
): Promise<ServiceStores> {
  const store = withOutageLog(opened.store, {
    name: target.name,
    diagnose: () => diagnose(target, opened.store),
  });
  await migrateLeases(opened.leases);
  const leases = loggedLeases(target, opened);
  const usageTarget = opened.usage;
  const usage = settings.usage === 'on' ? await usageToRecord(usageTarget, warn) : undefined;
  if (usage === undefined) return { store, leases, usage, usageTarget: undefined };
  return { store, leases, usage: loggedUsage(target, opened, usage), usageTarget };
}

interface OutageOptions extends Pick<OutageLogOptions, 'name' | 'diagnose' | 'remark'> {
  /** The store as events name it; absent for that of the tokens. */
  readonly label?: Trouble['store'];
}

/** Wraps a store, to log its outages. */
function withOutageLog<Store extends object>(
  store: Store,
  { label, ...options }: OutageOptions,
): Store {
  const log = new OutageLog({ ...options, write });
  // The channel, since a listener of all events would slow down each call.
  subscribe('tokenwright:store_trouble', (event) => {
    const trouble = event as Trouble;
    if (trouble.store === label) log.recordTrouble(trouble);
  });
  return log.observed(store);
}

function loggedUsage(
  target: StoreTarget,
  { store, usage: { name: place, file } }: OpenStore,
  usage: UsageStore,
): UsageStore {
  const name = `usage (${place})`;
  subscribe('tokenwright:usage_dropped', (event) => {
    const lost = count((event as { readonly count: number }).count, 'count');
    write(`${name}: ${lost} of uses could not be written and will be missing`);
  });
  return withOutageLog(usage, {
    label: 'usage',
    name,
    diagnose: () => diagnoseUsage(target, store, { usage, file }),
    remark: USAGE_REMARK,
  });
}

/** Only warns if it fails: a service without leases still verifies tokens without limited uses. */
async function migrateLeases(leases: TokenLeases): Promise<void> {
  try {
    await leases.migrate();
  } catch (error) {
    warn(`tokens whose uses are limited are refused: ${leases.name}: ${describeError(error)}`);
  }
}

const LEASES_REMARK = 'tokens whose uses are limited are refused, and all others are verified';

function loggedLeases(target: StoreTarget, { store, leases }: OpenStore): LeaseStore {
  return withOutageLog<LeaseStore>(leases, {
    label: 'leases',
    name: `limits (${leases.name})`,
    diagnose: () => diagnoseLeases(target, store, leases),
    remark: LEASES_REMARK,
  });
}

/** The event `store_trouble`. */
interface Trouble {
  readonly code: string;
  readonly store?: 'usage' | 'leases';
}

function write(message: string): void {
  theLog().error(message);
}
