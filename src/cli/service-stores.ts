import { subscribe } from 'node:diagnostics_channel';
import type { TokenStore } from '../store.ts';
import type { UsageStore } from '../usage-store.ts';
import { count } from './layout.ts';
import { theLog } from './log.ts';
import { OutageLog } from './outage-log.ts';
import type { ServeSettings } from './settings.ts';
import { warn } from './start-checks.ts';
import { diagnose, diagnoseUsage } from './stores/diagnosis.ts';
import type { OpenStore, StoreTarget } from './stores/open.ts';
import { type UsageTarget, usageToRecord } from './stores/usage.ts';

/** What a service stores in. */
interface ServiceStores {
  readonly store: TokenStore;
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
  const usageTarget = opened.usage;
  const usage = settings.usage === 'on' ? await usageToRecord(usageTarget, warn) : undefined;
  if (usage === undefined) return { store, usage, usageTarget: undefined };
  return { store, usage: loggedUsage(target, opened, usage), usageTarget };
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

interface Trouble {
  readonly code: string;
  readonly store?: 'usage';
}

function write(message: string): void {
  theLog().error(message);
}
