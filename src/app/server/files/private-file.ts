import { createHash, randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { systemClock } from '../../../index.ts';
import { makeWithParents } from '../../../stores/sqlite/folder.ts';
import { performance } from '../../../time/timers.ts';
import { type CliError, inputError, usageError } from '../../terminal/errors.ts';
import { readJson } from '../../terminal/inputs.ts';

/** The mode of a file that only its owner may read. */
export const OWNER_ONLY = 0o600;

/** Makes the data folder, for its owner only. */
export function makeFolder(folder: string): void {
  usingFolder(folder, () => {
    makeWithParents(folder);
    accessSync(folder, constants.W_OK | constants.X_OK);
  });
}

/** Refuses a data folder that {@link makeFolder} would refuse. Makes nothing. */
export function checkFolder(folder: string): void {
  usingFolder(folder, () => {
    let existing = resolve(folder);
    while (!existsSync(existing)) existing = dirname(existing);
    if (!statSync(existing).isDirectory()) {
      throw Object.assign(new Error(existing), { code: 'ENOTDIR' });
    }
    accessSync(existing, constants.W_OK | constants.X_OK);
  });
}

function usingFolder(folder: string, use: () => void): void {
  try {
    use();
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
  ['ENOENT', 'no folder can be created there'],
]);

/**
 * The path of a temporary file or folder, beside what it is to become. The name tells which process
 * writes it, so that drafts of a process that was killed can be removed: this does it.
 */
export function draftOf(path: string): string {
  removeLeftDrafts(path);
  return `${path}.${MACHINE}-${process.pid}-${randomBytes(4).toString('hex')}`;
}

/** Each container has a name and process ids of its own. */
const MACHINE = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);
const DRAFT_END = /^\.([0-9a-f]{8})-(\d{1,10})-[0-9a-f]{8}$/;
/** For drafts of other machines, of whose processes nothing is known: longer than any write takes. */
const LEFT_MS = 12 * 3_600_000;

function removeLeftDrafts(path: string): void {
  const folder = dirname(path);
  const start = basename(path);
  for (const name of namesIn(folder)) {
    const [, machine, pid] = DRAFT_END.exec(name.slice(start.length)) ?? [];
    if (machine === undefined || !name.startsWith(start)) continue;
    const draft = join(folder, name);
    if (isLeft(draft, { machine, pid: Number(pid) }))
      rmSync(draft, { recursive: true, force: true });
  }
}

/** None if the folder cannot be read: to write there fails as well, with a message. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isLeft(
  draft: string,
  { machine, pid }: { readonly machine: string; readonly pid: number },
): boolean {
  const found = lstatSync(draft, { throwIfNoEntry: false });
  if (found === undefined || !(found.isFile() || found.isDirectory())) return false;
  if (machine !== MACHINE) return systemClock.now().getTime() - found.mtimeMs > LEFT_MS;
  // Of an earlier process with the same id: in a container, many have the id 1.
  if (pid === process.pid) return found.mtimeMs < performance.timeOrigin;
  return !isAlive(pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
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
