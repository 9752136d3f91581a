import { randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { type CliError, inputError, usageError } from './errors.ts';
import { readJson } from './inputs.ts';

/** The mode of a file that only its owner may read. */
export const OWNER_ONLY = 0o600;

/** Makes the data folder, for its owner only. */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const reason = FOLDER_FAULTS.get((error as NodeJS.ErrnoException).code ?? '');
    if (reason === undefined) throw error;
    throw inputError(`--data (TOKENWRIGHT_DATA) ${folder}: ${reason}`);
  }
}

const NO_RIGHT = 'this user may not write there';
const NO_FOLDER = 'this, or something above it, is a file and not a folder';

const FOLDER_FAULTS: ReadonlyMap<string, string> = new Map([
  ['EACCES', NO_RIGHT],
  ['EPERM', NO_RIGHT],
  ['EROFS', NO_RIGHT],
  ['EEXIST', NO_FOLDER],
  ['ENOTDIR', NO_FOLDER],
]);

/** The path of a temporary file, beside the file that it is to become. */
export function draftOf(path: string): string {
  return `${path}.${randomBytes(6).toString('hex')}`;
}

/**
 * Reads a JSON file. If it is missing, makes it for its owner only. Nobody sees it half written,
 * and of several processes that make it, one succeeds and the others read its file.
 *
 * @param toError makes the error of a damaged file: to serve, it is a wrong setting
 */
export function readOrMake(
  path: string,
  make: () => unknown,
  toError = usageError,
): { readonly content: unknown; readonly isNew: boolean } {
  const found = statSync(path, { throwIfNoEntry: false });
  const readFound = () => ({ content: readJson(path, toError), isNew: false });
  if (found !== undefined) return readFound();
  const draft = draftOf(path);
  const content = make();
  const text = `${JSON.stringify(content, null, 2)}\n`;
  try {
    writeFileSync(draft, text, { mode: OWNER_ONLY, flush: true });
    linkSync(draft, path);
    return { content, isNew: true };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return readFound();
    // Others name the draft.
    throw notWritten(path, code);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** The error for a file that the system refused to write, with the code of its reason. */
export function notWritten(path: string, code = ''): CliError {
  return inputError(
    `${path} cannot be written (${code}): its folder must exist, and this user must be able to write there`,
  );
}

/**
 * Waits until a file, or the names in a folder, are on disk. Does nothing on Windows, which has no such call
 * for a folder or for a file that is open to be read.
 */
export function fsyncPath(path: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
