import { subscribe } from 'node:diagnostics_channel';
import type { EngineStore, LeaseStore } from '../../../index.ts';
import type { UsageStore } from '../../../ports/usage-store.ts';
import { count } from '../../terminal/layout.ts';
import { theLog, warn } from '../logs/log.ts';
import { OutageLog, type OutageLogOptions } from '../logs/outage.ts';
import type { ServeSettings } from '../settings.ts';
import { usageFault } from './counts.ts';
import { diagnose, diagnosePart } from './diagnosis.ts';
import type { OpenStore, StoreTarget } from './open.ts';

/** The stores of a service, which are parts of one. */
interface ServiceStores {
  readonly store: EngineStore;
  /** Counts the uses of limited tokens. */
  readonly leases: LeaseStore;
  /** Absent if uses are not recorded. */
  readonly usage: UsageStore | undefined;
}

/** Logs the outages of the parts of a store, and checks whether uses can be counted. */
export async function serviceStores(
  settings: Pick<ServeSettings, 'usage'>,
  target: StoreTarget,
  opened: OpenStore,
): Promise<ServiceStores> {
  const { store, usage, leases } = opened;
  return {
    store: withOutageLog(store, {
      name: target.name,
      diagnose: () => diagnose(target, store),
    }),
    leases: withOutageLog(store.leases, {
      label: 'leases',
      name: `limits (${leases.name})`,
      diagnose: () => diagnosePart('leases', target, opened),
      remark: 'tokens whose uses are limited are refused, and all others are verified',
    }),
    usage: (await isRecorded(settings, opened))
      ? withOutageLog(reportDropped(store.usage, usage.name), {
          label: 'usage',
          name: `usage (${usage.name})`,
          diagnose: () => diagnosePart('usage', target, opened),
          remark:
            'tokens are verified and shown as before, without their uses, which are counted in memory',
        })
      : undefined,
  };
}

/** Only warns if uses cannot be counted: a service without counts still verifies. */
async function isRecorded(
  settings: Pick<ServeSettings, 'usage'>,
  opened: OpenStore,
): Promise<boolean> {
  if (settings.usage !== 'on') return false;
  const fault = await usageFault(opened);
  if (fault !== undefined) warn(`uses of tokens are not recorded: ${fault}`);
  return fault === undefined;
}

function reportDropped(usage: UsageStore, place: string): UsageStore {
  subscribe('tokenwright:usage_dropped', (event) => {
    const lost = count((event as { readonly count: number }).count, 'count');
    write(`usage (${place}): ${lost} of uses could not be written and will be missing`);
  });
  return usage;
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

/** The event `store_trouble`. */
interface Trouble {
  readonly code: string;
  readonly store?: 'usage' | 'leases';
}

function write(message: string): void {
  theLog().error(message);
}
