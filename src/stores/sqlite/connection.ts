import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { performance } from '../../time/timers.ts';
import type { TokenId } from '../../token/record.ts';
import { cellsOf, connect, type OwnHandle, openFile, type SqliteHandle } from './client.ts';
import {
  areReplaced,
  type Fates,
  filesBehind,
  filesReplaced,
  isWithoutLog,
  type OpenFiles,
} from './open-files.ts';
import { prepareAgain, prepareDatabase, TOKENS } from './schema.ts';
import { prepareStatements, type Statements } from './statements.ts';

/** An open database. */
export interface Opened {
  readonly handle: SqliteHandle;
  readonly statements: Statements;
  /** Absent for a database in memory. */
  readonly files: OpenFiles | undefined;
  /** Differs for each time that the database was opened; absent in a transaction of the host. */
  readonly serial: number | undefined;
}

const REOPEN_PAUSE_MS = 100;

/**
 * A connection that knows its files. It refuses to go on with files that were removed or replaced, and
 * opens them again if it opened them itself.
 */
export class Connection {
  /** Whether the host has the handle, too. */
  readonly isShared: boolean;
  /** Whether another thread has the files open. Until it is done, they are not opened again. */
  isCheckpointing = false;
  /** Changes on this connection after which the changed record was forgotten. */
  forgotten = 0;
  readonly #forget: (id: TokenId) => void;
  /** Absent for a handle of the host, and for a database in memory. */
  readonly #path: string | undefined;
  #own: OwnHandle | undefined;
  #opened: Opened;
  /** Whether a call has failed because the files are not the same. */
  #isLost = false;
  #triedAt = Number.NEGATIVE_INFINITY;

  /** `forget` is called after each write to one record. */
  constructor(pathOrHandle: string | SqliteHandle, forget: (id: TokenId) => void) {
    this.#forget = forget;
    this.isShared = typeof pathOrHandle !== 'string';
    if (typeof pathOrHandle !== 'string') {
      prepareDatabase(pathOrHandle, TOKENS);
      this.#opened = this.#openedOver(pathOrHandle, 0);
      return;
    }
    this.#path = pathOrHandle === ':memory:' ? undefined : resolve(pathOrHandle);
    this.#own = openFile(pathOrHandle);
    try {
      prepareDatabase(this.#own, TOKENS);
      this.#opened = this.#openedOver(this.#own, 0);
    } catch (error) {
      this.#own.close();
      throw error;
    }
  }

  /**
   * The open database, after a look at its files.
   *
   * @throws {TokenError} `store_corrupt` if they were removed or replaced
   */
  checked(): Opened {
    const { files } = this.#opened;
    return this.#checked(files === undefined || files.areSame());
  }

  /** The same for a call that only reads, at less cost. */
  checkedQuickly(): Opened {
    const { files } = this.#opened;
    return this.#checked(files === undefined || files.areSameQuickly());
  }

  /**
   * Makes sure that a write did not end up in a file that nobody else can open.
   *
   * @throws {TokenError} `store_corrupt`
   */
  confirm({ handle, files }: Opened): void {
    if (!areReplaced(handle, files)) return;
    this.#isLost = true;
    throw filesReplaced();
  }

  /** The open database; `undefined` if its files are not the same, which the next call reports. */
  peek(): Opened | undefined {
    const { files } = this.#opened;
    const areSame = files === undefined || files.areSameQuickly() || this.#isWithoutLog();
    return areSame ? this.#opened : undefined;
  }

  /** Lets commits copy the log to the database file from this length on. */
  checkpointAt(pages: number): void {
    try {
      this.#own?.exec(`PRAGMA wal_autocheckpoint = ${pages}`);
    } catch {
      // The next call tells what is wrong with the database.
    }
  }

  close(): void {
    const own = this.#own;
    this.#own = undefined;
    this.#opened = { ...this.#opened, files: undefined };
    own?.close();
  }

  #checked(areSame: boolean): Opened {
    if (!areSame && !this.#isWithoutLog()) {
      const isNoticed = this.#isLost;
      this.#isLost = true;
      // The call that notices it fails in any case, so that the host learns of it.
      if (!isNoticed || !this.#reopen()) throw filesReplaced();
    }
    this.#isLost = false;
    return this.#opened;
  }

  #isWithoutLog(): boolean {
    const { handle, files } = this.#opened;
    const isOpen = this.isShared || this.#own !== undefined;
    return isOpen && files !== undefined && isWithoutLog(handle, files);
  }

  /** Opens the file that has the path now, if it is one of our databases. Returns whether it did. */
  #reopen(): boolean {
    const { files, serial = 0 } = this.#opened;
    const path = this.#path;
    if (path === undefined || files === undefined || this.isCheckpointing) return false;
    const now = performance.now();
    if (now - this.#triedAt < REOPEN_PAUSE_MS) return false;
    this.#triedAt = now;
    const fates = files.fates();
    if (!isReplaceable(fates)) return false;
    let handle: OwnHandle | undefined;
    try {
      this.#closeReplaced(fates, files);
      handle = connect(path);
      prepareAgain(handle, TOKENS);
      this.#opened = this.#openedOver(handle, serial + 1);
      this.#own = handle;
      return true;
    } catch {
      handle?.close();
      return false;
    }
  }

  /** Closes the connection to the replaced files, without harm to those that have their names now. */
  #closeReplaced(fates: Fates, { log, index }: OpenFiles): void {
    const own = this.#own;
    if (own === undefined) return;
    const isLogElsewhere = fates.file === 'other' && fates.log === 'same';
    if (fates.log === 'gone' || isLogElsewhere) emptyLog(own);
    this.#own = undefined;
    own.close();
    if (fates.file === 'same') return;
    // They belong to the old file. SQLite would replay its log over the new one.
    if (fates.log === 'same') rmSync(log, { force: true });
    if (fates.index === 'same') rmSync(index, { force: true });
  }

  #openedOver(handle: SqliteHandle, serial: number): Opened {
    return {
      handle,
      statements: prepareStatements(handle, (id, changes) => {
        this.#forget(id);
        this.forgotten += changes;
      }),
      files: filesBehind(handle, this.#path),
      serial,
    };
  }
}

/** If others write to a new log, their changes would be lost when the connection to ours is closed. */
function isReplaceable({ file, log, index }: Fates): boolean {
  if (file === 'gone') return false;
  return file === 'other' || (log !== 'other' && index !== 'other');
}

/** Moves all that the log holds to the database file it belongs to. */
function emptyLog(handle: SqliteHandle): void {
  const [busy] = cellsOf(handle.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get());
  if (Number(busy) !== 0) throw filesReplaced();
}
