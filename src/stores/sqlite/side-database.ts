import { resolve } from 'node:path';
import { SQLITE_BUSY_MS, SQLITE_TRY_MS } from '../../bounds.ts';
import { TokenError } from '../../errors.ts';
import {
  cellsOf,
  checkOpenable,
  guarded,
  isBusy,
  NOT_OPENED,
  type OwnHandle,
  openFile,
  readNow,
  retryWhileBusy,
  type SqliteHandle,
  withWriteLock,
} from './client.ts';
import { type Delayed, LockQueue, type QueuedTask, rejectAll } from './lock-queue.ts';
import { areReplaced, filesBehind, filesReplaced, type OpenFiles } from './open-files.ts';

/** The content of a database beside the one of the tokens. */
export interface SideSchema {
  /** The name of the content in messages. */
  readonly holds: string;
  /** Its mark in the header of the file. The tokens have another one. */
  readonly applicationId: number;
  /** In `user_version`. */
  readonly version: number;
  /** Makes the tables of an empty database, or those that an earlier version did not have. */
  readonly create: (handle: SqliteHandle) => void;
  /** Whether a loss of power may cost the last commits (`NORMAL`). The file survives in any case. */
  readonly synchronous: 'FULL' | 'NORMAL';
}

type Work = QueuedTask<() => unknown, unknown>;

/**
 * A database beside the one of the tokens: a write to their file would make every process evict its
 * cached tokens.
 */
export class SideDatabase {
  readonly handle: SqliteHandle;
  readonly #queue = new LockQueue<() => unknown, unknown>((works) => this.#attempt(works));
  /** Absent for a database in memory. */
  readonly #files: OpenFiles | undefined;
  #own: OwnHandle | undefined;

  private constructor(handle: SqliteHandle, own?: OwnHandle, path?: string) {
    this.handle = handle;
    this.#own = own;
    this.#files = filesBehind(handle, path);
  }

  /**
   * Opens a path with `node:sqlite`, or takes the handle of a host, which stays open.
   *
   * @throws {TokenError} `invalid_options` if this Node.js has no `node:sqlite`, or the database holds
   * something else; `store_unavailable` if it does not open
   */
  static open(pathOrHandle: string | SqliteHandle, schema: SideSchema): SideDatabase {
    checkOpenable(pathOrHandle);
    return guarded(() => {
      if (typeof pathOrHandle !== 'string') {
        prepareDatabase(pathOrHandle, schema);
        return new SideDatabase(pathOrHandle);
      }
      const own = openFile(pathOrHandle);
      try {
        prepareDatabase(own, schema);
        return new SideDatabase(own, own, resolve(pathOrHandle));
      } catch (error) {
        own.close();
        throw error;
      }
    }, NOT_OPENED);
  }

  /**
   * Reads immediately. If a lock is in the way, retries by a timer.
   *
   * @throws {TokenError} `store_unavailable`; `store_corrupt` if the files were removed or replaced
   */
  async read<Result>(work: () => Result): Promise<Result> {
    return readNow(() => {
      this.#checkFiles();
      return work();
    });
  }

  /**
   * Writes at the end of this turn, in one transaction with all other work of the turn. Writes all or
   * nothing, and resolves after the commit. If the host has a transaction open on the handle, the write
   * becomes part of that one, and resolves before its commit.
   *
   * @throws {TokenError} `store_unavailable`; `store_corrupt` if the files were removed or replaced, so that
   * nobody else sees the write
   */
  write<Result>(work: () => Result): Promise<Result> {
    return this.#queue.run(work) as Promise<Result>;
  }

  /** Waits for all writes, and closes the file if it has opened one. You may call it twice. */
  async close(): Promise<void> {
    const idle = this.#queue.idle();
    // Without writes that wait, the file is closed when this returns.
    if (idle !== undefined) await idle;
    const own = this.#own;
    this.#own = undefined;
    guarded(() => own?.close());
  }

  #attempt(works: readonly Work[]): Delayed<Work> | undefined {
    let answers: readonly unknown[];
    try {
      this.handle.exec('SAVEPOINT tokenwright');
      answers = works.map(({ task }) => task());
    } catch (error) {
      this.#undo();
      if (isBusy(error)) return { entries: works, error };
      if (works.length > 1) return this.#attemptEach(works);
      rejectAll(works, error);
      return undefined;
    }
    try {
      this.handle.exec('RELEASE tokenwright');
      this.#checkFiles();
    } catch (error) {
      this.#undo();
      if (isBusy(error)) return { entries: works, error };
      rejectAll(works, error);
      return undefined;
    }
    for (const [index, { resolve }] of works.entries()) resolve(answers[index]);
    return undefined;
  }

  /** Runs each work alone: one that fails must not fail the others. */
  #attemptEach(works: readonly Work[]): Delayed<Work> | undefined {
    const delayed = works.map((work) => this.#attempt([work])).filter((each) => each !== undefined);
    const entries = delayed.flatMap((each) => each.entries);
    return entries.length > 0 ? { entries, error: delayed[0]?.error } : undefined;
  }

  /** @throws {TokenError} `store_corrupt` */
  #checkFiles(): void {
    if (areReplaced(this.handle, this.#files)) throw filesReplaced();
  }

  #undo(): void {
    try {
      this.handle.exec('ROLLBACK TO tokenwright; RELEASE tokenwright');
    } catch {
      // Some errors have already rolled back.
    }
  }
}

const INSPECT = `
  SELECT
    (SELECT application_id FROM pragma_application_id) AS application,
    (SELECT user_version FROM pragma_user_version) AS version,
    (SELECT count(*) FROM sqlite_schema) AS objects
`;

function prepareDatabase(handle: SqliteHandle, schema: SideSchema): void {
  handle.exec(`PRAGMA busy_timeout = ${SQLITE_BUSY_MS}`);
  // First, because WAL mode would already change the file.
  retryWhileBusy(() => isCurrent(handle, schema));
  retryWhileBusy(() => handle.exec('PRAGMA journal_mode = WAL'));
  if (!isCurrent(handle, schema)) create(handle, schema);
  handle.exec(`PRAGMA synchronous = ${schema.synchronous}`);
  handle.exec(`PRAGMA busy_timeout = ${SQLITE_TRY_MS}`);
}

function create(handle: SqliteHandle, schema: SideSchema): void {
  withWriteLock(handle, () => {
    // Another process may have created the tables while this one waited for the lock.
    if (isCurrent(handle, schema)) return;
    schema.create(handle);
    handle.exec(`PRAGMA user_version = ${schema.version}`);
    handle.exec(`PRAGMA application_id = ${schema.applicationId}`);
  });
}

function isCurrent(handle: SqliteHandle, schema: SideSchema): boolean {
  const cells = cellsOf(handle.prepare(INSPECT).get()).map(Number);
  const [application = 0, version = 0, objects = 0] = cells;
  const isOurs = application === schema.applicationId;
  if (isOurs && version <= schema.version) return version === schema.version;
  if (isOurs) {
    throw new TokenError(
      'invalid_options',
      `the ${schema.holds} database has schema version ${version}, and this tokenwright can use ${schema.version} at most: upgrade tokenwright`,
      { reason: 'later_layout' },
    );
  }
  if (application === 0 && version === 0 && objects === 0) return false;
  throw new TokenError(
    'invalid_options',
    `the SQLite database holds something else than ${schema.holds}, and stays as it is: give ${schema.holds} a file of its own, not the one of the tokens`,
  );
}
