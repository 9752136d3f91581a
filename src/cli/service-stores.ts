import { subscribe } from 'node:diagnostics_channel';
import type { LeaseStore } from '../lease-store.ts';
import type { TokenStore } from '../store.ts';
import type { UsageStore } from '../usage-store.ts';
import { describeError } from './error-message.ts';
import { count } from './layout.ts';
import { theLog } from './log.ts';
import { OutageLog } from './outage-log.ts';
import type { ServeSettings } from './settings.ts';
import { warn } from './start-checks.ts';
import { diagnose, diagnoseUsage } from './stores/diagnosis.ts';
import type { TokenLeases } from './stores/leases.ts';
import type { OpenStore, StoreTarget } from './stores/open.ts';
import { type UsageTarget, usageToRecord } from './stores/usage.ts';

/** What a service stores in. */
interface ServiceStores {
  readonly store: TokenStore;
  /** Counts the uses of limited tokens. */
  readonly leases: LeaseStore;
  /** Absent if uses are not recorded, as is the next one. */
  readonly usage: UsageStore | undefined;
  readonly usageTarget: UsageTarget | undefined;
}

const USAGE_REMARK =
  'tokens are verified and shown as before, without their uses, which are counted in memory';

/** The stores of a service, with what counts uses. Their outages are logged. */
export async function serviceStores(
  settings: Pick<ServeSettings, 'usage'>,
  target: StoreTarget,
  opened: OpenStore,
): Promise<ServiceStores> {
  const store = logged(target, opened);
  await migrateLeases(opened.leases);
  const leases = loggedLeases(target, opened);
  const usageTarget = opened.usage;
  const usage = settings.usage === 'on' ? await usageToRecord(usageTarget, warn) : undefined;
  if (usage === undefined) return { store, leases, usage, usageTarget: undefined };
  return { store, leases, usage: loggedUsage(target, opened, usage), usageTarget };
}

function logged(target: StoreTarget, { store }: OpenStore): TokenStore {
  const log = new OutageLog({ name: target.name, diagnose: () => diagnose(target, store), write });
  // The channel, since a listener of all events would slow down each call.
  subscribe('tokenwright:store_trouble', (event) => {
    const trouble = event as Trouble;
    if (trouble.store === undefined) log.recordTrouble(trouble);
  });
  return log.observed(store);
}

function loggedUsage(
  target: StoreTarget,
  { store, usage: { name: place } }: OpenStore,
  usage: UsageStore,
): UsageStore {
  const name = `usage (${place})`;
  const log = new OutageLog({
    name,
    diagnose: () => diagnoseUsage(target, store, usage),
    remark: USAGE_REMARK,
    write,
  });
  subscribe('tokenwright:store_trouble', (event) => {
    const trouble = event as Trouble;
    if (trouble.store === 'usage') log.recordTrouble(trouble);
  });
  subscribe('tokenwright:usage_dropped', (event) => {
    const lost = count((event as { readonly count: number }).count, 'count');
    write(`${name}: ${lost} of uses could not be written and will be missing`);
  });
  return log.observed(usage);
}

/** A service that cannot count them still verifies the tokens whose uses are not limited. */
async function migrateLeases(leases: TokenLeases): Promise<void> {
  try {
    await leases.migrate();
  } catch (error) {
    warn(`tokens whose uses are limited are refused: ${leases.name}: ${describeError(error)}`);
  }
}

const LEASES_REMARK = 'tokens whose uses are limited are refused, and all others are verified';

function loggedLeases(target: StoreTarget, { store, leases }: OpenStore): LeaseStore {
  const log = new OutageLog({
    name: `limits (${leases.name})`,
    // A file of its own says nothing about the file of the tokens.
    diagnose: async () => (target.file === undefined ? diagnose(target, store) : undefined),
    remark: LEASES_REMARK,
    write,
  });
  subscribe('tokenwright:store_trouble', (event) => {
    const trouble = event as Trouble;
    if (trouble.store === 'leases') log.recordTrouble(trouble);
  });
  return log.observed<LeaseStore>(leases);
}

interface Trouble {
  readonly code: string;
  readonly store?: 'usage' | 'leases';
}

function write(message: string): void {
  theLog().error(message);
}
