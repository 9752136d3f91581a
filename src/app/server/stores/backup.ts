import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { inputError } from '../../terminal/errors.ts';
import { ENDINGS, endBy } from '../../terminal/signals.ts';
import { draftOf, fsyncPath, notWritten, OWNER_ONLY } from '../files/private-file.ts';

/** A file of a store, and its name in a backup. */
export interface BackedUp {
  readonly file: string;
  readonly name: 'tokens.db' | 'usage.db' | 'leases.db' | 'requests.db';
}

/**
 * Copies SQLite files into a new folder while others use them, each as it was at one instant. The folder
 * appears whole, under a name that nothing had, for its owner only, and is on disk when this resolves. If the
 * process is interrupted, nothing is left of it; after a `kill -9`, the next backup of that name removes the rest.
 *
 * @returns how many records of tokens it holds
 * @throws {CliError} if the name is taken, or a copy cannot be written or read
 */
export async function backUp(files: readonly BackedUp[], backup: string): Promise<number> {
  const folder = resolve(backup);
  const draft = draftOf(folder);
  const finish = removeWhenEnded(draft);
  try {
    // Checked early, since a copy may take long. Renaming refuses a folder that was made since.
    if (existsSync(folder)) throw inputError(taken(backup));
    mkdirSync(draft, { mode: 0o700 });
    let records = 0;
    for (const { file, name } of files) records += await copyTo(join(draft, name), file, backup);
    fsyncPath(draft);
    renameSync(draft, folder);
    fsyncPath(dirname(folder));
    return records;
  } catch (error) {
    throw backupFailure(error, backup);
  } finally {
    finish();
  }
}

/** Returns how many records of tokens the copy holds. */
async function copyTo(copy: string, file: string, backup: string): Promise<number> {
  // SQLite accepts an empty file as the target. One that it makes itself could be read by others.
  closeSync(openSync(copy, 'wx', OWNER_ONLY));
  const { check, count } = await copied(resolve(file), copy).catch((error: unknown) => {
    throw isOfSqlite(error) ? inputError(notCopied(file, backup)) : error;
  });
  if (check !== 'ok') throw inputError(damaged(file));
  fsyncPath(copy);
  return count;
}

const BUSY_MS = 5000;

/** What is known of a copy. */
interface Copied {
  /** The answer of `quick_check`. */
  readonly check: string;
  /** How many records of tokens it holds. */
  readonly count: number;
}

/**
 * Copies in a thread: SQLite holds the one that calls it for as long as that takes, and no signal would
 * be heard.
 */
async function copied(file: string, draft: string): Promise<Copied> {
  const workerData = { file, draft, timeout: BUSY_MS };
  // Node.js 22 would warn again that its SQLite is experimental.
  const execArgv = ['--no-warnings'];
  const thread = new Worker(COPY, { eval: true, workerData, execArgv });
  const [answer] = await once(thread, 'message');
  return answer;
}

/** Waits if a writer in another process has locked the file for a moment. */
const COPY = `
const { parentPort, workerData } = require('node:worker_threads');
const { DatabaseSync } = require('node:sqlite');
const { file, draft, timeout } = workerData;
const source = new DatabaseSync(file, { readOnly: true, timeout });
source.prepare('VACUUM INTO ?').run(draft);
source.close();
const copy = new DatabaseSync(draft, { readOnly: true });
const check = copy.prepare('PRAGMA quick_check(1)').get().quick_check;
const isOfTokens = copy.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'tokens'").get() !== undefined;
const count = isOfTokens ? copy.prepare('SELECT count(*) AS count FROM tokens').get().count : 0;
copy.close();
parentPort.postMessage({ check, count });
`;

/** Removes a draft before a signal ends the process. Returns what removes it now. */
function removeWhenEnded(draft: string): () => void {
  const finish = () => {
    for (const signal of ENDINGS) process.off(signal, end);
    rmSync(draft, { recursive: true, force: true });
  };
  const end = (signal: NodeJS.Signals, number: number) => {
    finish();
    endBy(signal, number);
  };
  for (const signal of ENDINGS) process.on(signal, end);
  return finish;
}

function taken(backup: string): string {
  return `${backup} already exists, and a backup overwrites nothing: choose another name`;
}

function damaged(file: string): string {
  return `${file} is damaged, and no backup was made: tokenwright store doctor --full tells more`;
}

function notCopied(file: string, backup: string): string {
  return `${file} cannot be copied to ${backup}: it is not an SQLite file of tokenwright, is damaged or locked, or the disk is full`;
}

function isOfSqlite(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_SQLITE_ERROR';
}

const TAKEN = new Set<string | undefined>(['EEXIST', 'ENOTEMPTY', 'ENOTDIR']);

/** Turns errors of the system into messages for people. */
function backupFailure(error: unknown, backup: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === 'rename' && TAKEN.has(code)) return inputError(taken(backup));
  return syscall === undefined ? error : notWritten(backup, code);
}
