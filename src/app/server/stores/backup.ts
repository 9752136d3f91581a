import { once } from 'node:events';
import { closeSync, existsSync, linkSync, openSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { inputError } from '../../terminal/errors.ts';
import { draftOf, fsyncPath, notWritten, OWNER_ONLY } from '../files/private-file.ts';

/**
 * Copies an SQLite file while others use it, as it was at one instant. The copy appears whole,
 * under a name that nothing had, for its owner only, and is on disk when this resolves. If the process is
 * interrupted, nothing is left of it; after a `kill -9`, the next backup of that name removes the rest.
 *
 * @returns how many records it holds
 * @throws {CliError} if the name is taken, or the copy cannot be written or read
 */
export async function backUp(file: string, backup: string): Promise<number> {
  const draft = draftOf(backup);
  const finish = removeWhenEnded(draft);
  try {
    // Checked early, since a copy may take long. The link refuses a name that was taken since.
    if (existsSync(backup)) throw inputError(taken(backup));
    // SQLite accepts an empty file as the target. One that it makes itself could be read by others.
    closeSync(openSync(draft, 'wx', OWNER_ONLY));
    const { check, count } = await copied(resolve(file), resolve(draft));
    if (check !== 'ok') throw inputError(DAMAGED);
    fsyncPath(draft);
    linkSync(draft, backup);
    fsyncPath(dirname(resolve(backup)));
    return count;
  } catch (error) {
    throw backupFailure(error, { file, backup });
  } finally {
    finish();
  }
}

const BUSY_MS = 5000;

/** What is known of a copy. */
interface Copied {
  /** The answer of `quick_check`. */
  readonly check: string;
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
const count = copy.prepare('SELECT count(*) AS count FROM tokens').get().count;
copy.close();
parentPort.postMessage({ check, count });
`;

const ENDINGS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Removes a draft before a signal ends the process. Returns what removes it now. */
function removeWhenEnded(draft: string): () => void {
  const finish = () => {
    for (const signal of ENDINGS) process.off(signal, end);
    for (const path of [draft, `${draft}-journal`]) rmSync(path, { force: true });
  };
  const end = (signal: NodeJS.Signals, number: number) => {
    finish();
    // Not by exit alone, which would wait for the thread.
    process.kill(process.pid, signal);
    // The first process of a container ignores it.
    if (process.pid === 1) process.exit(128 + number);
  };
  for (const signal of ENDINGS) process.on(signal, end);
  return finish;
}

function taken(backup: string): string {
  return `${backup} already exists, and a backup overwrites nothing: choose another name`;
}

const DAMAGED =
  'the file of the tokens is damaged, and no backup was made: tokenwright doctor --full tells more';

/** Turns errors of the system and of SQLite into messages for people. */
function backupFailure(
  error: unknown,
  { file, backup }: { readonly file: string; readonly backup: string },
): unknown {
  const { code = '', syscall } = error as NodeJS.ErrnoException;
  if (code === 'EEXIST') {
    return inputError(taken(backup));
  }
  if (syscall !== undefined) return notWritten(backup, code);
  if (code !== 'ERR_SQLITE_ERROR') return error;
  return inputError(
    `${file} cannot be copied to ${backup}: it is not an SQLite file of tokens, is damaged or locked, or the disk is full`,
  );
}
