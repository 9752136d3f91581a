import { subscribe } from 'node:diagnostics_channel';
import type { EngineStore, LeaseStore } from '../../../index.ts';
import { OutageLog, type OutageLogOptions, type StoreEvent } from '../../../ports/outage-log.ts';
import type { UsageStore } from '../../../ports/usage-store.ts';
import { count } from '../../../text/wording.ts';
import { theLog, warn } from '../logs/log.ts';
import type { ServeSettings } from '../settings.ts';
import { leasesWarning, usageWarning } from './counts.ts';
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
  logOutages(undefined, { name: target.name, diagnose: () => diagnose(target, store) });
  logOutages('watch', {
    name: `watch for changes by other processes (${target.name})`,
    remark: 'such changes take effect after --max-stale-ms at the latest',
  });
  logOutages('leases', {
    name: `limits (${leases.name})`,
    diagnose: () => diagnosePart('leases', target, opened),
    remark: 'tokens whose uses are limited are refused, and all others are verified',
  });
  const warning = await leasesWarning(opened);
  if (warning !== undefined) warn(warning);
  if (!(await isRecorded(settings, opened)))
    return { store, leases: store.leases, usage: undefined };
  reportDropped(usage.name);
  logOutages('usage', {
    name: `usage (${usage.name})`,
    diagnose: () => diagnosePart('usage', target, opened),
    remark:
      'tokens are verified and shown as before, without their uses, which are counted in memory',
  });
  return { store, leases: store.leases, usage: store.usage };
}

async function isRecorded(
  settings: Pick<ServeSettings, 'usage'>,
  opened: OpenStore,
): Promise<boolean> {
  if (settings.usage !== 'on') return false;
  const warning = await usageWarning(opened);
  if (warning !== undefined) warn(warning);
  return warning === undefined;
}

function reportDropped(place: string): void {
  subscribe('tokenwright:usage_dropped', (event) => {
    const lost = count((event as { readonly count: number }).count, 'count');
    write(`usage (${place}): ${lost} of uses could not be written and will be missing`);
  });
}

/** Logs the outages of a store. The channel, since a listener of all events would slow down each call. */
function logOutages(part: StoreEvent['store'], options: Omit<OutageLogOptions, 'write'>): void {
  const log = new OutageLog({ ...options, write });
  const record = (message: unknown) => {
    const event = message as StoreEvent;
    if (event.store === part) log.record(event);
  };
  subscribe('tokenwright:store_trouble', record);
  subscribe('tokenwright:store_recovered', record);
}

function write(message: string): void {
  theLog().error(message);
}
