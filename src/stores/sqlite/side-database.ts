import { existsSync } from 'node:fs';
import { isTokenError, storeUnavailable, TokenError } from '../../errors.ts';
import { guarded, isBusy, type OwnHandle, openFile, readNow, type SqliteHandle } from './client.ts';
import { type Delayed, LockQueue, type QueuedTask, rejectAll } from './lock-queue.ts';
import { areReplaced, filesBehind, filesReplaced, type OpenFiles } from './open-files.ts';
import { prepareDatabase, type Schema } from './schema.ts';

type Work = QueuedTask<() => unknown, unknown>;

/** A database beside the one of the tokens that is open. */
interface OpenedSide<Statements> {
  readonly handle: SqliteHandle;
  readonly statements: Statements;
  /** Absent for a database in memory. */
  readonly files: OpenFiles | undefined;
  /** Absent for a handle of the host. */
  readonly own: OwnHandle | undefined;
}

/**
 * A database beside the one of the tokens: a write to their file would make every process evict its
 * cached tokens. A file is opened on its first use. If that fails, the next call tries again.
 */
export class SideDatabase<Statements> {
  readonly #place: string | SqliteHandle;
  readonly #schema: Schema;
  readonly #prepare: (handle: SqliteHandle) => Statements;
  readonly #queue = new LockQueue<() => unknown, unknown>((works) => this.#attempt(works));
  #opened: OpenedSide<Statements> | undefined;
  #isClosed = false;

  /**
   * A handle of the host is checked immediately, and stays open.
   *
   * @throws {TokenError} `invalid_options` if the handle is one of a database that holds something else
   */
  constructor(
    place: string | SqliteHandle,
    schema: Schema,
    prepare: (handle: SqliteHandle) => Statements,
  ) {
    this.#place = place;
    this.#schema = schema;
    this.#prepare = prepare;
    if (typeof place !== 'string') guarded(() => this.#open());
  }

  /** Whether it has been made: a file that nobody has used is missing. */
  get exists(): boolean {
    return this.#opened !== undefined || existsSync(String(this.#place));
  }

  /**
   * Reads immediately. If a lock is in the way, retries by a timer.
   *
   * @throws {TokenError} `store_unavailable`, also if the file holds something else; `store_corrupt` if the
   * files were removed or replaced
   */
  async read<Result>(
    work: (statements: Statements, handle: SqliteHandle) => Result,
  ): Promise<Result> {
    const { statements, handle } = guarded(() => this.#open());
    return readNow(() => {
      this.#checkFiles();
      return work(statements, handle);
    });
  }

  /**
   * Writes at the end of this turn, in one transaction with all other work of the turn. Writes all or
   * nothing, and resolves after the commit. If the host has a transaction open on the handle, the write
   * becomes part of that one, and resolves before its commit.
   *
   * @throws {TokenError} `store_unavailable`, also if the file holds something else; `store_corrupt` if the
   * files were removed or replaced, so that nobody else sees the write
   */
  async write<Result>(work: (statements: Statements) => Result): Promise<Result> {
    const { statements } = guarded(() => this.#open());
    return this.#queue.run(() => work(statements)) as Promise<Result>;
  }

  /** Waits for all writes, and closes the file if it has opened one. You may call it twice. */
  async close(): Promise<void> {
    const idle = this.#queue.idle();
    // Without writes that wait, the file is closed when this returns.
    if (idle !== undefined) await idle;
    const own = this.#isClosed ? undefined : this.#opened?.own;
    this.#isClosed = true;
    guarded(() => own?.close());
  }

  #open(): OpenedSide<Statements> {
    if (this.#opened !== undefined) return this.#opened;
    if (this.#isClosed) throw storeUnavailable('closed');
    this.#opened =
      typeof this.#place === 'string' ? this.#openFile(this.#place) : this.#over(this.#place);
    return this.#opened;
  }

  #openFile(path: string): OpenedSide<Statements> {
    const own = openFile(path);
    try {
      return { ...this.#over(own, path), own };
    } catch (error) {
      own.close();
      throw unusableFile(error);
    }
  }

  #over(handle: SqliteHandle, path?: string): OpenedSide<Statements> {
    prepareDatabase(handle, this.#schema);
    const statements = this.#prepare(handle);
    return { handle, statements, files: filesBehind(handle, path), own: undefined };
  }

  #attempt(works: readonly Work[]): Delayed<Work> | undefined {
    let answers: readonly unknown[];
    try {
      this.#open().handle.exec('SAVEPOINT tokenwright');
      answers = works.map(({ task }) => task());
    } catch (error) {
      this.#undo();
      if (isBusy(error)) return { entries: works, error };
      if (works.length > 1) return this.#attemptEach(works);
      rejectAll(works, error);
      return undefined;
    }
    try {
      this.#open().handle.exec('RELEASE tokenwright');
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
    const { handle, files } = this.#open();
    if (areReplaced(handle, files)) throw filesReplaced();
  }

  #undo(): void {
    try {
      this.#open().handle.exec('ROLLBACK TO tokenwright; RELEASE tokenwright');
    } catch {
      // Some errors have already rolled back.
    }
  }
}

/**
 * A file is opened by the first call that needs it, which cannot refuse an option: a database of something
 * else, or of another version, is an outage of that call. The message still says what the file holds.
 */
function unusableFile(error: unknown): unknown {
  if (!isTokenError(error) || error.code !== 'invalid_options') return error;
  const { reason = 'not_opened' } = error.details ?? {};
  return new TokenError('store_unavailable', error.message, { reason });
}
