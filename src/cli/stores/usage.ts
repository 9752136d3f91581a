import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TokenId } from '../../token.ts';
import type { UsageStore } from '../../usage-store.ts';
import { describeError } from '../error-message.ts';

/** How a {@link UsageTarget} is opened. */
export interface UsageTargetOptions {
  readonly name: string;
  readonly file?: string;
  migrate?(): Promise<void>;
  open(): UsageStore;
}

/** Where the uses of tokens are counted, beside the store of the tokens. */
export class UsageTarget {
  /** Names it for people. */
  readonly name: string;
  /** The path of an SQLite file. */
  readonly file: string | undefined;
  readonly #options: UsageTargetOptions;
  #opened: UsageStore | undefined;

  constructor(options: UsageTargetOptions) {
    this.name = options.name;
    this.file = options.file;
    this.#options = options;
  }

  /**
   * Brings the table up to date. Does nothing if there is none; a file gets its tables when it is opened.
   *
   * @throws {TokenError} `invalid_options`, `store_unavailable`
   */
  async migrate(): Promise<void> {
    await this.#options.migrate?.();
  }

  /**
   * Opens it once, and makes a file that is missing.
   *
   * @throws {TokenError} `invalid_options`, `store_unavailable`
   */
  open(): UsageStore {
    this.#opened ??= this.#options.open();
    return this.#opened;
  }

  /** Closes what was opened. */
  async close(): Promise<void> {
    await this.#opened?.close?.();
  }
}

const FILE_NAME = 'usage.db';
const NO_ID = '0'.repeat(22) as TokenId;

/** The file of usage beside a file of tokens. Several files of tokens in one folder share it. */
export function usageFile(tokens: string): string {
  return tokens === ':memory:' ? tokens : join(dirname(tokens), FILE_NAME);
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
    await usage.migrate();
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
