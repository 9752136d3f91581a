import { closeSync, existsSync, linkSync, openSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { inputError } from '../errors.ts';
import { draftOf, fsyncPath, notWritten, OWNER_ONLY } from '../private-file.ts';

/**
 * Copies an SQLite file while others use it, as it was at one instant. The copy appears whole,
 * under a name that nothing had, for its owner only, and is on disk when this returns.
 *
 * @returns how many records it holds
 * @throws {CliError} if the name is taken, or the copy cannot be written or read
 */
export function backUp(sqlite: typeof import('node:sqlite'), file: string, backup: string): number {
  const draft = draftOf(backup);
  try {
    // Checked early, since a copy may take long. The link refuses a name that was taken since.
    if (existsSync(backup)) throw inputError(taken(backup));
    // SQLite accepts an empty file as the target. One that it makes itself could be read by others.
    closeSync(openSync(draft, 'wx', OWNER_ONLY));
    // Waits if a writer in another process has locked the file for a moment.
    const source = new sqlite.DatabaseSync(resolve(file), { readOnly: true, timeout: BUSY_MS });
    run(source, (database) => database.prepare('VACUUM INTO ?').run(resolve(draft)));
    fsyncPath(draft);
    const copy = new sqlite.DatabaseSync(resolve(draft), { readOnly: true });
    const count = run(copy, checkedCount);
    linkSync(draft, backup);
    fsyncPath(dirname(resolve(backup)));
    return count;
  } catch (error) {
    throw backupFailure(error, { file, backup });
  } finally {
    rmSync(draft, { force: true });
  }
}

const BUSY_MS = 5000;

function run<Answer>(database: DatabaseSync, work: (database: DatabaseSync) => Answer): Answer {
  try {
    return work(database);
  } finally {
    database.close();
  }
}

function checkedCount(database: DatabaseSync): number {
  const [first] = database.prepare('PRAGMA quick_check(1)').all();
  if (first?.['quick_check'] !== 'ok') throw inputError(DAMAGED);
  return Number(database.prepare('SELECT count(*) AS count FROM tokens').get()?.['count']);
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
