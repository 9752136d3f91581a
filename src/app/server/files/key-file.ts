import {
  closeSync,
  existsSync,
  fchownSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { generateKey, isTokenError, type KeyOptions } from '../../../index.ts';
import { KeyRing } from '../../../values/keys.ts';
import { inputError, usageError } from '../../terminal/errors.ts';
import { quote, readJson } from '../../terminal/inputs.ts';
import type { ServeSettings } from '../settings.ts';
import { fsyncPath, OWNER_ONLY, readOrMake } from './private-file.ts';

/** The path of the keys in a data folder. */
export function keyFile(folder: string): string {
  return join(folder, 'keys.json');
}

/**
 * The path of the keys of the settings: the file that they name, else the one in the data folder.
 */
export function keyFileOf({ keys, data }: Pick<ServeSettings, 'keys' | 'data'>): string {
  return keys ?? keyFile(data);
}

/** Reads the keys of a data folder. Makes them if they are missing. */
export function loadKeys(folder: string): KeyOptions[] {
  const path = keyFile(folder);
  return asKeys(readOrMake(path, () => [generateKey()]).content, path, usageError);
}

/**
 * Reads the keys of an existing file. The keys themselves are not checked.
 *
 * @throws {CliError} when the file is missing or holds no list
 */
export function readKeys(path: string): KeyOptions[] {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) {
    const other = otherKeysHint(path);
    throw inputError(
      `the key file ${quote(path)} does not exist: serve and tokenwright keys new create it in the data folder; for another place, give --data or --keys (TOKENWRIGHT_KEYS)${other === undefined ? '' : `; ${other}`}`,
    );
  }
  return asKeys(readJson(path), path);
}

/** A hint at a keys.json in the current folder, which may be meant if other keys are used. */
export function otherKeysHint(used: string): string | undefined {
  const here = keyFile('');
  if (resolve(used) === resolve(here) || !existsSync(here)) return undefined;
  return `${here} exists in this folder: to use it, give --keys ${here}`;
}

/**
 * Reads the keys of an existing file, for a service.
 *
 * @throws {CliError} when the file is missing, or no service can use its keys
 */
export function readUsableKeys(path: string): KeyOptions[] {
  return usableKeys(readKeys(path), path);
}

/**
 * Returns the same keys if a service can use them.
 *
 * @throws {CliError} naming the file, if not
 */
export function usableKeys(keys: KeyOptions[], path: string): KeyOptions[] {
  try {
    new KeyRing(keys);
    return keys;
  } catch (error) {
    throw isTokenError(error) ? inputError(`${path}: ${error.message}`) : error;
  }
}

/**
 * Creates a key file that only its owner can read.
 *
 * @returns whether it was made; an existing file stays as it is
 */
export function makeKeys(path: string, keys: readonly KeyOptions[]): boolean {
  return readOrMake(path, () => keys, inputError).isNew;
}

function asKeys(content: unknown, path: string, toError = inputError): KeyOptions[] {
  if (Array.isArray(content)) return content;
  throw toError(`${path} must be a JSON array of keys`);
}

/**
 * Replaces a key file as a whole. The draft is also the lock: of two concurrent changes, one is
 * refused. A symbolic link keeps pointing to the file, and the file keeps its owner.
 */
export function replaceKeys(
  path: string,
  change: (keys: readonly KeyOptions[]) => KeyOptions[],
): readonly KeyOptions[] {
  new KeyRing(readKeys(path));
  const file = realpathSync(path);
  const draft = `${file}.new`;
  const handle = openDraft(draft);
  try {
    try {
      const keys = change(readKeys(file));
      new KeyRing(keys);
      const { uid, gid } = statSync(file);
      if (process.getuid?.() === 0) fchownSync(handle, uid, gid);
      writeFileSync(handle, `${JSON.stringify(keys, null, 2)}\n`);
      fsyncSync(handle);
      renameSync(draft, file);
      // So that the new name survives a power failure, too.
      fsyncPath(resolve(dirname(file)));
      return keys;
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

function openDraft(draft: string): number {
  try {
    return openSync(draft, 'wx', OWNER_ONLY);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw inputError(
      `${draft} exists: another command is changing the keys, or one was interrupted; in that case, remove it`,
    );
  }
}

/** Names the keys whose secrets do not look random, and the fix. Never shows a secret. */
export function weakKeys(keys: readonly KeyOptions[]): string[] {
  return keys
    .filter(({ secret }) => typeof secret !== 'string' || !looksRandom(secret))
    .map(
      ({ kid }) =>
        `the secret of ${kid} does not look like random bytes: add a key with keys rotate, then drop this one`,
    );
}

/**
 * Whether a secret could consist of random bytes. 32 random bytes practically never hold fewer than
 * 16 different ones, and their base64url practically always holds an upper-case letter. Hexadecimal
 * secrets have no such letter and are accepted.
 */
function looksRandom(secret: string): boolean {
  const text = secret.replace(/^tag\./, '');
  const bytes = Buffer.from(text, 'base64url');
  const isText = /^[\t\n\r -~]+$/.test(bytes.toString('latin1'));
  const isWords = !/[A-Z]/.test(text) && !/^[0-9a-f]+$/.test(text);
  const different = new Set(bytes).size;
  return different >= 16 && !isText && !isWords;
}
