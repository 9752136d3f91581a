import { existsSync } from 'node:fs';
import { type FixedAccount, hashPassword } from '../../../http/sign-in/basic-auth.ts';
import type { TokenStore } from '../../../ports/token-store.ts';
import type { ScopeCatalog } from '../../../scope/index.ts';
import { nextTurn } from '../../../time/deadline.ts';
import type { KeyOptions } from '../../../values/keys.ts';
import { inputError } from '../../terminal/errors.ts';
import { refuseRepeated } from '../../terminal/kinds.ts';
import type { ServeSettings } from '../settings.ts';
import { refuseLostKeys, refuseOpenSecrets } from '../start-checks.ts';
import type { StoreTarget } from '../stores/open.ts';
import { firstAccountFile, loadFirstAccount, readAccountFile } from './account-files.ts';
import { loadCatalog } from './catalog-files.ts';
import { keyFile, keyFileOf, loadKeys, readUsableKeys, usableKeys } from './key-file.ts';

/** The parts of a service that come from files. A reload replaces all of them. */
export interface ServiceFiles {
  readonly keys: readonly KeyOptions[];
  readonly catalog: ScopeCatalog;
  /** The accounts of the settings and of the account file. */
  readonly accounts: readonly FixedAccount[];
}

/** Reads the keys, before the store is opened; `undefined` if the data folder has none yet. */
export function existingKeys({ data, keys }: ServeSettings): readonly KeyOptions[] | undefined {
  if (keys !== undefined) return readUsableKeys(keys);
  const path = keyFile(data);
  return existsSync(path) ? usableKeys(loadKeys(data), path) : undefined;
}

/** Makes the keys on the first start. */
export async function newKeys(
  { data }: ServeSettings,
  target: StoreTarget,
  store: TokenStore,
): Promise<readonly KeyOptions[]> {
  await refuseLostKeys(keyFile(data), target, store);
  return usableKeys(loadKeys(data), keyFile(data));
}

/** The accounts of the settings and of their file; none if the service makes one. */
export function accountsOf({ accounts, accountFile }: ServeSettings): readonly FixedAccount[] {
  if (accountFile === undefined) return accounts;
  const all = [...accounts, ...readAccountFile(accountFile)];
  refuseRepeated(all, '--account (TOKENWRIGHT_ACCOUNTS) and --account-file');
  return all;
}

/**
 * The accounts of the settings; if there are none, one that the service makes on its first start.
 */
export function accountsAtStart({ accounts, data }: ServeSettings): {
  readonly accounts: readonly FixedAccount[];
  /** The password of an account that was just made. */
  readonly password: string | undefined;
} {
  if (accounts.length > 0) return { accounts, password: undefined };
  const { account, password } = loadFirstAccount(data);
  return { accounts: [account], password };
}

/**
 * Reads everything again while the service runs. Makes nothing that is missing.
 *
 * @throws {CliError} naming the file and what is wrong with it
 */
export async function readAgain(
  settings: ServeSettings,
  hashes: PasswordHashes,
): Promise<ServiceFiles> {
  refuseOpenSecrets(settings);
  const given = accountsOf(settings);
  return {
    keys: readUsableKeys(keyFileOf(settings)),
    catalog: await loadCatalog(settings.catalog, settings.granularity),
    accounts: given.length > 0 ? await hashes.hashed(given) : [readFirstAccount(settings.data)],
  };
}

/** Reads the account that serve made. Never makes one here: nobody would see its password. */
function readFirstAccount(folder: string): FixedAccount {
  const path = firstAccountFile(folder);
  if (existsSync(path)) return loadFirstAccount(folder).account;
  throw inputError(`there is no ${path}; to get another account, stop the service and start it`);
}

/** Hashes each password only once, because hashing blocks all calls for a fraction of a second. */
export class PasswordHashes {
  readonly #hashes = new Map<string, string>();

  async hashed(accounts: readonly FixedAccount[]): Promise<readonly FixedAccount[]> {
    const hashed: FixedAccount[] = [];
    for (const { password, ...account } of accounts) {
      if (password === undefined) {
        hashed.push(account);
        continue;
      }
      const known = `${account.username}:${password}`;
      const passwordHash = this.#hashes.get(known) ?? hashPassword(password);
      this.#hashes.set(known, passwordHash);
      hashed.push({ ...account, passwordHash });
      await nextTurn();
    }
    return hashed;
  }
}
