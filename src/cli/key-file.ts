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
import { isTokenError } from '../errors.ts';
import { generateKey, type KeyOptions, KeyRing } from '../values/keys.ts';
import { inputError, usageError } from './errors.ts';
import { quote, readJson } from './inputs.ts';
import { OWNER_ONLY, readOrMake } from './private-file.ts';

/** The path of the keys in a data folder. */
export function keyFile(folder: string): string {
  return join(folder, 'keys.json');
}

/** Reads the keys of a data folder, which are made on the first start. */
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
    const other = otherKeys(path);
    throw inputError(
      `there is no file of keys ${quote(path)}: serve makes it in its data, and so does tokenwright keys new; for another place give --data, or --keys (TOKENWRIGHT_KEYS)${other === undefined ? '' : `; ${other}`}`,
    );
  }
  return asKeys(readJson(path), path);
}

/** Points out a keys.json in the current folder if other keys are used: it may be meant. */
export function otherKeys(used: string): string | undefined {
  const here = keyFile('');
  if (resolve(used) === resolve(here) || !existsSync(here)) return undefined;
  return `there is ${here} in this folder: give --keys ${here}`;
}

/**
 * The same keys.
 *
 * @throws {CliError} naming the file, if no service can use them
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
 * Makes a file of keys for its owner only.
 *
 * @returns whether it was made; an existing file stays as it is
 */
export function makeKeys(path: string, keys: readonly KeyOptions[]): boolean {
  return readOrMake(path, () => keys).isNew;
}

function asKeys(content: unknown, path: string, toError = inputError): KeyOptions[] {
  if (Array.isArray(content)) return content;
  throw toError(`${path} must be a JSON array of keys`);
}

/**
 * Changes a file of keys as a whole. The draft is also the lock: of two concurrent changes one is
 * refused. Links and the owner stay.
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
      syncFolder(dirname(file));
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
      `${draft} is there: the keys are being changed, or that was interrupted and it can be removed`,
    );
  }
}

/** Makes the new name survive a power failure, too. Windows has no such call. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(resolve(folder), 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
