import { existsSync } from 'node:fs';
import type { UsageStore } from '../../../ports/usage-store.ts';
import type { TokenId } from '../../../token/record.ts';
import { describeError } from '../../terminal/error-message.ts';

/** How an engine opens a {@link UsageTarget}. */
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
   * Brings the table up to date, if there is one. A file gets its tables when it is opened.
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

const NO_ID = '0'.repeat(22) as TokenId;

/**
 * Opens the usage store of a service, and makes it if it is missing. If that fails, calls
 * `onTrouble` and returns nothing: a service that cannot count uses still verifies.
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

/** Opens the usage store if a service has made one. Makes nothing. */
export async function usageToRead(
  usage: UsageTarget,
  onTrouble: (message: string) => void,
): Promise<UsageStore | undefined> {
  if (usage.file !== undefined && !existsSync(usage.file)) return undefined;
  const fault = await usageFault(usage);
  if (fault === undefined) return usage.open();
  // No trouble in a database: the tables of usage may never have been made.
  if (usage.file !== undefined) onTrouble(`the uses of tokens cannot be read: ${fault}`);
  return undefined;
}

/** Says why counts cannot be read, in one sentence; `undefined` if they can. Never rejects. */
export async function usageFault(usage: UsageTarget): Promise<string | undefined> {
  try {
    await probeUsage(usage.open());
    return undefined;
  } catch (error) {
    return `${usage.name}: ${describeError(error)}`;
  }
}

/**
 * Checks whether counts can be read: reads those of a token that does not exist.
 *
 * @throws {TokenError} if not
 */
export async function probeUsage(usage: UsageStore): Promise<void> {
  await usage.read([NO_ID]);
}
