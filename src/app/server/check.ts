import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { storeUnavailable } from '../../errors.ts';
import {
  doctor,
  generateKey,
  type KeyOptions,
  MemoryTokenStore,
  type StoreFinding,
} from '../../index.ts';
import { count } from '../../text/wording.ts';
import { maskAlso } from '../terminal/masking.ts';
import { addressOf } from './listen.ts';
import { warn } from './logs/log.ts';
import { CHECKING, type Parts, partsOf } from './parts.ts';
import { ReloadableService } from './reload.ts';
import type { ServeSettings } from './settings.ts';
import { leasesWarning, usageWarning } from './stores/counts.ts';
import {
  messageOf,
  type OpenStore,
  openWithRetry,
  StoreOutage,
  type StoreTarget,
  useStore,
} from './stores/open.ts';
import { startWarnings } from './warnings.ts';

/**
 * Checks whether `serve` would start with these settings: reads keys, catalog and accounts, connects to the
 * store and examines it. It listens nowhere, and makes no file and no table. Logs what `serve` would warn of.
 *
 * @returns what it would serve, in one line
 * @throws {CliError} as `serve` does. Whether the port is free is not checked
 * @throws {TokenError} also if the tables of a database are not up to date: whether this user may create
 * them shows only when it does
 */
export async function checkStart(settings: ServeSettings): Promise<string> {
  maskAlso(settings.foreign);
  const parts = await partsOf(settings, CHECKING);
  const address = await addressOf({ ...parts.place, hostFlag: '--host', portFlag: '--port' });
  await parts.monitoring.check();
  const examined = await examine(parts);
  const accounts =
    parts.read.accounts.length > 0 ? parts.read.accounts : parts.files.madeAccounts();
  await checkService(parts, examined, accounts);
  for (const message of startWarnings(parts, { ...examined, address })) warn(message);
  const { catalog } = parts.read;
  const users = accounts.length > 0 ? count(accounts.length, 'account') : 'a new account';
  return `serve can start: ${parts.store.target.name}, ${count(catalog.size, 'scope')}, ${users}`;
}

/** What the store says. */
interface Examined {
  readonly keys: readonly KeyOptions[];
  readonly findings: readonly StoreFinding[];
  readonly usagePlace: OpenStore['usage'] | undefined;
}

async function examine(parts: Parts): Promise<Examined> {
  const { files, read, store } = parts;
  const { target, usage, waitSeconds } = store;
  const keys = read.keys ?? [generateKey()];
  if (!isThere(target.file)) {
    if (!parts.isTrial) checkFolderOf(target);
    return { keys, findings: [], usagePlace: undefined };
  }
  const opened = await openWithRetry(target, { waitSeconds, onWait: warn });
  return useStore(target, opened, async () => {
    const all = await doctor(opened.store);
    const old = opened.migrate && all.find(({ code }) => NEEDS_MIGRATION.has(code));
    if (old !== undefined) throw new StoreOutage(`${target.name}: ${messageOf(old)}`);
    if (read.keys === undefined) await files.refuseLostKeys(target, opened.store);
    const warnings = [
      isThere(opened.leases.file) ? await leasesWarning(opened) : undefined,
      usage === 'on' && isThere(opened.usage.file) ? await usageWarning(opened) : undefined,
    ];
    for (const message of warnings) if (message !== undefined) warn(message);
    const findings = all.filter(({ part }) => part === undefined);
    return { keys, findings, usagePlace: opened.usage };
  }).finally(() => opened.close());
}

/** Refuses options that a service refuses, on a store that is thrown away. */
async function checkService(
  { lasting, read }: Parts,
  { keys }: Examined,
  accounts: Parts['read']['accounts'],
): Promise<void> {
  const store = new MemoryTokenStore();
  const stores = { store, leases: store.leases, usage: undefined };
  const service = new ReloadableService(
    { ...lasting, purgeAfter: 'off', stores },
    { keys, catalog: read.catalog, presets: read.presets },
  );
  if (accounts.length > 0) service.admit(accounts);
  await service.close();
}

/** Findings about tables that `serve` would have to make or change. */
const NEEDS_MIGRATION: ReadonlySet<string> = new Set([
  'schema_missing',
  'schema_older',
  'schema_newer',
  'leases_missing',
  'requests_missing',
  'usage_unusable',
]);

/** Refuses a folder in which no SQLite file can be made. The data folder has been checked before. */
function checkFolderOf({ file = '', name }: StoreTarget): void {
  try {
    if (file !== ':memory:') accessSync(dirname(file), constants.W_OK | constants.X_OK);
  } catch {
    throw new StoreOutage(`${name}: ${storeUnavailable('not_opened').message}`);
  }
}

/** Whether there is something to open: SQLite takes an empty file for a new database. */
function isThere(file: string | undefined): boolean {
  return file === undefined || (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}
