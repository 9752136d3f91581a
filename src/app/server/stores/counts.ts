import { existsSync } from 'node:fs';
import { doctor } from '../../../index.ts';
import type { UsageStore } from '../../../ports/usage-store.ts';
import type { TokenId } from '../../../token/record.ts';
import { describeError } from '../../terminal/error-message.ts';
import { COUNTS_LOST, fileReason, type OpenStore, StoreOutage } from './open.ts';

const NO_ID = '0'.repeat(22) as TokenId;

/**
 * Checks whether uses can be counted: reads the counts of a token that does not exist. Makes a file that is
 * missing.
 *
 * @throws {TokenError} that says why not
 */
export async function probeUsage({ store, usage: { file } }: OpenStore): Promise<void> {
  await withReasonOf(file, () => store.usage.read([NO_ID]));
}

/** An outage of counts in a file says what the file itself shows. */
async function withReasonOf<Answer>(
  file: string | undefined,
  probe: () => Promise<Answer>,
): Promise<Answer> {
  try {
    return await probe();
  } catch (error) {
    const reason = file && fileReason(file, COUNTS_LOST);
    throw reason === undefined ? error : new StoreOutage(reason);
  }
}

/** Says why counts of uses cannot be read, in one sentence; `undefined` if they can. Never rejects. */
export function usageFault(opened: OpenStore): Promise<string | undefined> {
  return faultOf(opened.usage.name, () => probeUsage(opened));
}

/** The same for the uses of limited tokens, if they are in a file of their own. */
export async function leasesFault(opened: OpenStore): Promise<string | undefined> {
  const { name, file } = opened.leases;
  return file === undefined ? undefined : faultOf(name, () => probeLeases(opened));
}

/** What to warn of if uses cannot be recorded: a service without counts still verifies. */
export async function usageWarning(opened: OpenStore): Promise<string | undefined> {
  const fault = await usageFault(opened);
  return fault && `uses of tokens are not recorded: ${fault}`;
}

/** The same for limited tokens: a service without their counts still verifies all others. */
export async function leasesWarning(opened: OpenStore): Promise<string | undefined> {
  const fault = await leasesFault(opened);
  return fault && `tokens whose uses are limited are refused: ${fault}`;
}

async function faultOf(name: string, probe: () => Promise<void>): Promise<string | undefined> {
  try {
    await probe();
    return undefined;
  } catch (error) {
    return `${name}: ${describeError(error)}`;
  }
}

/** The counts of uses, if a service has made them. Makes nothing. */
export async function usageToRead(
  opened: OpenStore,
  onTrouble: (message: string) => void,
): Promise<UsageStore | undefined> {
  const { file } = opened.usage;
  if (file !== undefined && !existsSync(file)) return undefined;
  const fault = await usageFault(opened);
  if (fault === undefined) return opened.store.usage;
  // No trouble in a database: the tables of usage may never have been made.
  if (file !== undefined) onTrouble(`the uses of tokens cannot be read: ${fault}`);
  return undefined;
}

/**
 * Checks whether the uses of limited tokens can be counted. Makes no file.
 *
 * @throws {TokenError} that says why not
 */
export async function probeLeases({ store, leases: { file } }: OpenStore): Promise<void> {
  const found = await withReasonOf(file, async () => store.leases.doctor?.() ?? doctor(store));
  const missing = found.find(({ code }) => code === 'leases_missing');
  if (missing !== undefined) throw new StoreOutage(missing.message);
}
