import { existsSync } from 'node:fs';
import { TokenError } from '../../../errors.ts';
import type { LeaseStore, LeaseWant, UnspentLease } from '../../../ports/lease-store.ts';
import { doctor, type StoreFinding } from '../../../ports/token-store.ts';
import { describeError } from '../../terminal/error-message.ts';

/** How an engine opens its {@link TokenLeases}. */
export interface TokenLeasesOptions {
  readonly name: string;
  readonly file?: string;
  migrate?(): Promise<void>;
  open(): LeaseStore;
}

/**
 * Where the uses of limited tokens are counted, beside the store of the tokens. A file is made by
 * the first use of such a token, since most services have no such tokens.
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
   * Brings the table up to date, if there is one. A file gets its tables when it is opened.
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
    const exists = file === undefined || existsSync(file);
    return this.#opened !== undefined || exists ? this.#open().purge(before, limit) : 0;
  }

  /** The path of an SQLite file. */
  get file(): string | undefined {
    return this.#options.file;
  }

  /**
   * Checks whether uses can be counted. Makes no file.
   *
   * @throws {TokenError} if not
   */
  async probe(): Promise<void> {
    const isUnused =
      this.#opened === undefined && this.file !== undefined && !existsSync(this.file);
    const found = isUnused ? [] : await doctor(this.#open());
    const missing = found.find(({ code }) => code === 'leases_missing');
    if (missing !== undefined) throw new TokenError('store_unavailable', missing.message);
  }

  /**
   * Says why uses cannot be counted, or soon could not be. A missing file is fine: nothing was
   * counted yet. Never rejects.
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
