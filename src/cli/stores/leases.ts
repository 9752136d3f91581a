import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { LeaseStore, LeaseWant, UnspentLease } from '../../lease-store.ts';
import { doctor, type StoreFinding } from '../../store.ts';
import { describeError } from '../error-message.ts';

/** How the {@link TokenLeases} of an engine are opened. */
export interface TokenLeasesOptions {
  readonly name: string;
  readonly file?: string;
  migrate?(): Promise<void>;
  open(): LeaseStore;
}

const FILE_NAME = 'leases.db';

/** The file of leases beside a file of tokens. Several files of tokens in one folder share it. */
export function leaseFile(tokens: string): string {
  return tokens === ':memory:' ? tokens : join(dirname(tokens), FILE_NAME);
}

/**
 * Where the uses of limited tokens are counted, beside the store of the tokens. A file is made by the first
 * use of such a token: most services have none.
 */
export class TokenLeases implements LeaseStore {
  /** Names it for people. */
  readonly name: string;
  readonly #options: TokenLeasesOptions;
  #opened: LeaseStore | undefined;

  constructor(options: TokenLeasesOptions) {
    this.name = options.name;
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

  async take(wants: readonly LeaseWant[]): Promise<readonly number[]> {
    return this.#open().take(wants);
  }

  async giveBack(leases: readonly UnspentLease[]): Promise<void> {
    await this.#open().giveBack(leases);
  }

  async purge(before: Date, limit: number): Promise<number> {
    const { file } = this.#options;
    const isThere = file === undefined || existsSync(file);
    return this.#opened !== undefined || isThere ? this.#open().purge(before, limit) : 0;
  }

  /**
   * Says why uses cannot be counted, or will not be for long. A file that is missing is one that nobody has
   * counted in. Never rejects.
   */
  async doctor(): Promise<StoreFinding[]> {
    const { file } = this.#options;
    if (file !== undefined && !existsSync(file)) return [];
    try {
      return await doctor(this.#open());
    } catch (error) {
      const cure =
        file === undefined
          ? ''
          : '. Stop the service and restore the file; without it, counts begin again';
      const message = `tokens with limited uses are refused: ${this.name}: ${describeError(error)}${cure}`;
      return [{ code: 'leases_unusable', message }];
    }
  }

  async close(): Promise<void> {
    await this.#opened?.close?.();
    this.#opened = undefined;
  }

  #open(): LeaseStore {
    this.#opened ??= this.#options.open();
    return this.#opened;
  }
}
