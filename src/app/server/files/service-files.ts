import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { SCANNED_BATCH } from '../../../bounds.ts';
import { type FixedAccount, hashPassword } from '../../../http/index.ts';
import type { KeyOptions, Preset, TokenStore } from '../../../index.ts';
import type { ScopeCatalog } from '../../../scope/index.ts';
import { nextTurn } from '../../../time/deadline.ts';
import { inputError } from '../../terminal/errors.ts';
import { refuseRepeated } from '../../terminal/kinds.ts';
import type { ServedAccount } from '../sessions.ts';
import type { ServeSettings } from '../settings.ts';
import type { StoreTarget } from '../stores/open.ts';
import {
  firstAccountFile,
  loadFirstAccount,
  readAccountFile,
  renewFirstAccount,
} from './account-files.ts';
import { loadCatalog } from './catalog-files.ts';
import { keyFile, keyFileOf, loadKeys, readUsableKeys, usableKeys } from './key-file.ts';
import { describeOpen, openToOthers } from './permissions.ts';
import { readPresets } from './preset-file.ts';

type FileSettings = Pick<
  ServeSettings,
  | 'data'
  | 'store'
  | 'keys'
  | 'catalog'
  | 'granularity'
  | 'presets'
  | 'maxTtl'
  | 'accounts'
  | 'accountFile'
>;

/** The parts of a service that a reload replaces. */
export interface Reloaded {
  readonly keys: readonly KeyOptions[];
  readonly catalog: ScopeCatalog;
  readonly presets: readonly Preset[];
  readonly accounts: readonly ServedAccount[];
}

/** Reads the keys, the catalog, the presets and the accounts of a service, at its start and on each reload. */
export class ServiceFiles {
  readonly #settings: FileSettings;
  /** By user and password. Hashing blocks all calls for a fraction of a second, so it is done once. */
  readonly #hashes = new Map<string, string>();
  readonly keyPath: string;

  constructor(settings: FileSettings) {
    this.#settings = settings;
    this.keyPath = keyFileOf(settings);
  }

  /**
   * Reads all that exists, before the store is opened.
   *
   * @param prepareFolder makes the data folder, or checks that it can be made; only called if something belongs there
   * @returns no keys, or no accounts, if the service makes them
   * @throws {CliError} naming the file and what is wrong with it
   */
  async read(
    prepareFolder: (folder: string) => void,
  ): Promise<Omit<Reloaded, 'keys'> & { readonly keys: Reloaded['keys'] | undefined }> {
    const accounts = await this.#givenAccounts();
    const catalog = await this.#catalog();
    const presets = this.#presets(catalog);
    if (this.#usesFolder()) prepareFolder(this.#settings.data);
    this.#refuseOpenSecrets();
    const isMadeHere = this.#settings.keys === undefined;
    const keys = isMadeHere ? this.#keptKeys() : readUsableKeys(this.keyPath);
    return { keys, catalog, presets, accounts };
  }

  /**
   * Makes the keys on the first start.
   *
   * @throws {CliError} as {@link refuseLostKeys}
   */
  async newKeys(target: StoreTarget, store: TokenStore): Promise<readonly KeyOptions[]> {
    await this.refuseLostKeys(target, store);
    return usableKeys(loadKeys(this.#settings.data), this.keyPath);
  }

  /**
   * Refuses to go on without keys while there are tokens: their values would stop working. If the old keys
   * were put back later, the values that were issued since would stop.
   *
   * @throws {CliError} that says where the keys belong
   */
  async refuseLostKeys({ file, name }: StoreTarget, store: TokenStore): Promise<void> {
    const path = this.keyPath;
    // The store first: another process in this folder makes its keys before its first token.
    const areLost = (await holdsTokens(store)) && !existsSync(path);
    if (!areLost) return;
    throw inputError(
      `there is no ${path}, but ${file ?? name} holds tokens, and only the keys they were issued with open them; put ${path} back from a backup, or give its place by --keys (TOKENWRIGHT_KEYS); if the keys are lost, tokenwright keys new makes others, with which all values are refused until their tokens are rotated`,
    );
  }

  /** Reads the account that the service made before, or makes it; then the password is known. */
  firstAccount(): FirstAccount {
    const { data } = this.#settings;
    return { ...loadFirstAccount(data), path: firstAccountFile(data) };
  }

  /** The account that the service made before; none if it is still to be made. */
  madeAccounts(): readonly FixedAccount[] {
    return existsSync(firstAccountFile(this.#settings.data)) ? [this.firstAccount().account] : [];
  }

  /**
   * Reads everything again while the service runs. Makes nothing that is missing.
   *
   * @throws {CliError} naming the file and what is wrong with it
   */
  async readAgain(): Promise<Reloaded> {
    this.#refuseOpenSecrets();
    const given = await this.#givenAccounts();
    const catalog = await this.#catalog();
    return {
      keys: readUsableKeys(this.keyPath),
      catalog,
      presets: this.#presets(catalog),
      accounts: given.length > 0 ? given : [this.#knownFirstAccount()],
    };
  }

  /** Stores a new hash only for the account that the service made: other files are not its own. */
  renewal([account]: readonly FixedAccount[]) {
    if (this.#hasAccounts() || account === undefined) return undefined;
    const { data } = this.#settings;
    return (_: string, hash: string) => renewFirstAccount(data, account, hash);
  }

  /**
   * Lists files that other users can read or change and that only cause a warning: the mode of a mounted
   * secret often cannot be chosen.
   */
  openFiles(files: readonly string[]): string[] {
    const { data, keys, accountFile } = this.#settings;
    return [...(this.#usesFolder() ? [data] : []), keys, accountFile, ...files]
      .flatMap((path) => (path === undefined ? [] : [openToOthers(path)]))
      .flatMap((open) => (open === undefined ? [] : [describeOpen(open)]));
  }

  /**
   * Refuses, as ssh does, while other users can read or change the keys or the account of the data folder.
   *
   * @throws {CliError} naming the file, its mode and the command that fixes it
   */
  #refuseOpenSecrets(): void {
    const { data, keys } = this.#settings;
    const secrets = [
      ...(keys === undefined ? [keyFile(data)] : []),
      ...(this.#hasAccounts() ? [] : [firstAccountFile(data)]),
    ];
    for (const secret of secrets) {
      const open = openToOthers(secret);
      if (open !== undefined) throw inputError(describeOpen(open));
    }
  }

  #keptKeys(): readonly KeyOptions[] | undefined {
    const path = this.keyPath;
    return existsSync(path) ? usableKeys(loadKeys(this.#settings.data), path) : undefined;
  }

  /** Whether the store, the keys or the first account are in the data folder. */
  #usesFolder(): boolean {
    const { store, keys } = this.#settings;
    return store === undefined || keys === undefined || !this.#hasAccounts();
  }

  #hasAccounts(): boolean {
    const { accounts, accountFile } = this.#settings;
    return accounts.length > 0 || accountFile !== undefined;
  }

  #catalog(): Promise<ScopeCatalog> {
    return loadCatalog(this.#settings.catalog, this.#settings.granularity);
  }

  #presets(catalog: ScopeCatalog): readonly Preset[] {
    const { presets, maxTtl } = this.#settings;
    return readPresets(presets, { maxTtl, catalog });
  }

  /** The accounts of the settings and of their file; none if the service makes one. */
  async #givenAccounts(): Promise<readonly ServedAccount[]> {
    const { accounts, accountFile } = this.#settings;
    if (accountFile === undefined) return this.#hashed(accounts);
    const all = [...accounts, ...readAccountFile(accountFile)];
    refuseRepeated(all, '--account (TOKENWRIGHT_ACCOUNTS) and --account-file');
    return this.#hashed(all);
  }

  async #hashed(accounts: readonly FixedAccount[]): Promise<readonly ServedAccount[]> {
    const hashed: ServedAccount[] = [];
    for (const { password, ...account } of accounts) {
      if (password === undefined) {
        hashed.push(account);
        continue;
      }
      const known = `${account.username}:${password}`;
      const passwordHash = this.#hashes.get(known) ?? hashPassword(password);
      this.#hashes.set(known, passwordHash);
      // The hash has a new salt in each process, and sessions must outlive a restart.
      const mark = createHash('sha256').update(known).digest('base64url');
      hashed.push({ ...account, passwordHash, mark });
      await nextTurn();
    }
    return hashed;
  }

  /** Never makes an account here: nobody would see its password. */
  #knownFirstAccount(): FixedAccount {
    const [account] = this.madeAccounts();
    if (account !== undefined) return account;
    const path = firstAccountFile(this.#settings.data);
    throw inputError(`there is no ${path}; to get another account, stop the service and start it`);
  }
}

/** The account that the service makes on its first start if none is given. */
export interface FirstAccount {
  readonly account: FixedAccount;
  /** Only when it was just made. */
  readonly password?: string;
  readonly path: string;
}

/** Whether any token is not revoked. */
async function holdsTokens(store: TokenStore): Promise<boolean> {
  for (let after: string | undefined; ; ) {
    const step = await store.scan?.({ after, limit: SCANNED_BATCH });
    if (step?.records.some(({ revokedAt }) => revokedAt === undefined)) return true;
    after = step?.next;
    if (after === undefined) return false;
  }
}
