import { type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { TokenError } from '../../errors.ts';
import { systemClock } from '../../time/clock.ts';
import { cellsOf, type SqliteHandle } from './client.ts';

/** What became of a file since the connection opened it. */
export type Fate = 'same' | 'gone' | 'other';

/** The fates of the database file, its log and the index of its log. */
export interface Fates {
  readonly file: Fate;
  readonly log: Fate;
  readonly index: Fate;
}

/** A file, by its path and by its device and inode. */
export interface FileIdentity {
  readonly path: string;
  readonly dev: number | undefined;
  readonly ino: number | undefined;
}

/**
 * File systems round the time of a change, some to two seconds. A change that comes this long after the
 * last one cannot carry the same time.
 */
const SETTLED_MS = 3000;

/**
 * The files behind a connection, by device and inode. A file that is removed or replaced stays open
 * without a name: own writes to it are lost, and writes of others do not arrive.
 */
export class OpenFiles {
  readonly file: string;
  readonly log: string;
  readonly index: string;
  readonly #opened: Stats | undefined;
  #openedLog: Stats | undefined;
  #openedIndex: Stats | undefined;
  /** Undefined if the path is a link: the folder would not show changes of its target. */
  readonly #folder: string | undefined;
  /** The folder at the last look, if it had not changed for a while. */
  #settled: Stats | undefined;

  /** `path` may be a link to `realPath`, beside which SQLite keeps its log. */
  constructor(path: string, realPath: string) {
    this.file = path;
    this.log = `${realPath}-wal`;
    this.index = `${realPath}-shm`;
    this.#folder = path === realPath ? dirname(path) : undefined;
    this.#opened = look(path);
    this.#openedLog = look(this.log);
    this.#openedIndex = look(this.index);
  }

  /** Looks at each file. */
  fates(): Fates {
    return {
      file: fateOf(this.#opened, look(this.file)),
      log: fateOf(this.#openedLog, look(this.log)),
      index: fateOf(this.#openedIndex, look(this.index)),
    };
  }

  areSame(): boolean {
    const { file, log, index } = this.fates();
    return file === 'same' && log === 'same' && index === 'same';
  }

  /** The same, by one look at the folder while nothing comes or goes in it. */
  areSameQuickly(): boolean {
    const folder = this.#folder === undefined ? undefined : look(this.#folder);
    if (folder !== undefined && isUnchanged(this.#settled, folder)) return true;
    const areSame = this.areSame();
    const isSettled = folder && systemClock.now().getTime() - folder.mtimeMs > SETTLED_MS;
    this.#settled = areSame && isSettled ? folder : undefined;
    return areSame;
  }

  /** The database file, its log and the index of its log, as the connection opened them. */
  identities(): FileIdentity[] {
    return [
      identityOf(this.file, this.#opened),
      identityOf(this.log, this.#openedLog),
      identityOf(this.index, this.#openedIndex),
    ];
  }

  /** For a database that was taken out of WAL mode over its own connection, which removes the log. */
  dropLog(): void {
    this.#openedLog = look(this.log);
    this.#openedIndex = look(this.index);
  }
}

/**
 * The files behind a connection; `undefined` for a database in memory. `path` is the name under which it
 * was opened, where that is known: it may be a link.
 */
export function filesBehind(handle: SqliteHandle, path?: string): OpenFiles | undefined {
  const databases = handle.prepare('PRAGMA database_list').all();
  const [, , file] = databases.map(cellsOf).find(([, name]) => name === 'main') ?? [];
  return typeof file === 'string' && file !== '' ? new OpenFiles(path ?? file, file) : undefined;
}

/** Whether the files are not those that the connection opened, so that a write to them may be lost. */
export function areReplaced(handle: SqliteHandle, files: OpenFiles | undefined): boolean {
  return files !== undefined && !files.areSame() && !isWithoutLog(handle, files);
}

/**
 * Whether the log is gone because the host left WAL mode, which SQLite allows only while no other
 * connection has the file open.
 */
export function isWithoutLog(handle: SqliteHandle, files: OpenFiles): boolean {
  const { file, log } = files.fates();
  if (file !== 'same' || log !== 'gone') return false;
  const [mode] = cellsOf(handle.prepare('PRAGMA journal_mode').get());
  if (mode === 'wal') return false;
  files.dropLog();
  return true;
}

export function filesReplaced(): TokenError {
  return new TokenError(
    'store_corrupt',
    'the database file, or the -wal or -shm file beside it, was removed or replaced while it was open: put it back, or restart this process',
    { reason: 'file_replaced' },
  );
}

function look(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function identityOf(path: string, opened: Stats | undefined): FileIdentity {
  return { path, dev: opened?.dev, ino: opened?.ino };
}

function fateOf(opened: Stats | undefined, now: Stats | undefined): Fate {
  if (opened === undefined && now === undefined) return 'same';
  if (now === undefined) return 'gone';
  return isSameFile(opened, now) ? 'same' : 'other';
}

function isSameFile(opened: Stats | undefined, now: Stats): boolean {
  return opened?.ino === now.ino && opened.dev === now.dev;
}

function isUnchanged(before: Stats | undefined, now: Stats): boolean {
  return isSameFile(before, now) && before?.mtimeMs === now.mtimeMs;
}
