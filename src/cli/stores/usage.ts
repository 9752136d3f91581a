import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TokenId } from '../../token.ts';
import type { UsageStore } from '../../usage-store.ts';
import { describeError } from '../error-message.ts';

/** Where the uses of tokens are counted, beside the store of the tokens. */
export interface UsageTarget {
  /** Names it for people. */
  readonly name: string;
  /** The path of an SQLite file. */
  readonly file?: string;
  /** Brings the schema up to date; absent if opening does that, or if there is none. */
  migrate?(): Promise<void>;
  /**
   * Opens it, and makes a file that is missing.
   *
   * @throws {TokenError} `invalid_options`, `store_unavailable`
   */
  open(): UsageStore;
}

const FILE_NAME = 'usage.db';
const NO_ID = '0'.repeat(22) as TokenId;

/** One that is closed with its last user. */
export type OwnUsageTarget = UsageTarget & { close(): Promise<void> };

/** The file of usage beside a file of tokens. Several files of tokens in one folder share it. */
export function usageFile(
  tokens: string,
  open: (file: string) => UsageStore,
): OwnUsageTarget & { readonly file: string } {
  const file = tokens === ':memory:' ? tokens : join(dirname(tokens), FILE_NAME);
  return { ...openedOnce({ name: `SQLite in ${file}`, open: () => open(file) }), file };
}

/** Opens it for the first who asks, and gives the others the same. */
export function openedOnce({ open, ...target }: UsageTarget): OwnUsageTarget {
  let opened: UsageStore | undefined;
  return {
    ...target,
    open() {
      opened ??= open();
      return opened;
    },
    async close() {
      await opened?.close?.();
    },
  };
}

/**
 * Opens what a service counts uses in, and makes it if it is missing. A service that cannot count still
 * verifies: if this fails, it calls `onTrouble` and returns nothing.
 */
export async function usageToRecord(
  usage: UsageTarget,
  onTrouble: (message: string) => void,
): Promise<UsageStore | undefined> {
  try {
    await usage.migrate?.();
    return usage.open();
  } catch (error) {
    onTrouble(`uses of tokens are not recorded: ${usage.name}: ${describeError(error)}`);
    return undefined;
  }
}

/** Opens what a service has counted uses in, if it has. Makes nothing. */
export async function usageToRead(
  usage: UsageTarget,
  onTrouble: (message: string) => void,
): Promise<UsageStore | undefined> {
  if (usage.file !== undefined && !existsSync(usage.file)) return undefined;
  const fault = await usageFault(usage);
  if (fault === undefined) return usage.open();
  // A database may never have had its tables.
  if (usage.file !== undefined) onTrouble(`the uses of tokens cannot be read: ${fault}`);
  return undefined;
}

/** Says why counts cannot be read, in one sentence; `undefined` if they can. Never rejects. */
export async function usageFault(usage: UsageTarget): Promise<string | undefined> {
  try {
    await readNothing(usage.open());
    return undefined;
  } catch (error) {
    return `${usage.name}: ${describeError(error)}`;
  }
}

/**
 * Reads the counts of a token that does not exist.
 *
 * @throws {TokenError} if no counts can be read
 */
export async function readNothing(usage: UsageStore): Promise<void> {
  await usage.read([NO_ID]);
}
