import type { Checkpoints } from './checkpoints.ts';
import { changesIn, isBusy, type SqliteHandle, type SqliteValue, toTokenError } from './client.ts';
import type { Connection, Opened } from './connection.ts';
import { type Delayed, LockQueue, type QueuedTask, rejectAll } from './lock-queue.ts';
import type { WriteVerb } from './statements.ts';

interface Statement {
  readonly verb: WriteVerb;
  readonly values: readonly SqliteValue[];
}

type Write = QueuedTask<Statement, number>;

/** Writes of one turn of the event loop become one transaction. */
export class WriteQueue {
  readonly #connection: Connection;
  readonly #checkpoints: Checkpoints;
  readonly #queue = new LockQueue<Statement, number>((writes) => this.#attempt(writes));

  constructor(connection: Connection, checkpoints: Checkpoints) {
    this.#connection = connection;
    this.#checkpoints = checkpoints;
  }

  /** The open database, for a call that only reads. */
  checkedQuickly(): Opened {
    return this.#connection.checkedQuickly();
  }

  /** Resolves to the number of changed records, once the change is on the disk. */
  run(verb: WriteVerb, values: readonly SqliteValue[]): Promise<number> {
    return this.#queue.run({ verb, values });
  }

  /** Resolves when no write waits any more; `undefined` if none does. */
  idle(): Promise<void> | undefined {
    return this.#queue.idle();
  }

  /** Returns the writes that have to wait for the lock, and settles all others. */
  #attempt(writes: readonly Write[]): Delayed<Write> | undefined {
    try {
      const opened = this.#connection.checked();
      return writes.length > 1
        ? this.#runInTransaction(opened, writes)
        : this.#runEach(opened, writes);
    } catch (error) {
      rejectAll(writes, error);
      return undefined;
    }
  }

  #runInTransaction(opened: Opened, writes: readonly Write[]): Delayed<Write> | undefined {
    const { handle, statements } = opened;
    try {
      handle.exec('BEGIN IMMEDIATE');
    } catch (error) {
      // They have waited for the lock together. One by one, each would wait again.
      if (isBusy(error)) return { entries: writes, error };
      // A transaction of the host is open, and each write becomes part of it.
      return this.#runEach(opened, writes);
    }
    let changes: number[];
    try {
      changes = writes.map(({ task: { verb, values } }) =>
        changesIn(statements[verb].run(...values)),
      );
    } catch {
      // A write that fails must not fail the others.
      rollBack(handle);
      return this.#runEach(opened, writes);
    }
    try {
      handle.exec('COMMIT');
    } catch (error) {
      rollBack(handle);
      if (isBusy(error)) return { entries: writes, error };
      rejectAll(writes, error);
      return undefined;
    }
    this.#confirm(
      opened,
      changes.reduce((sum, count) => sum + count, 0),
    );
    for (const [index, { resolve }] of writes.entries()) resolve(changes[index] as number);
    return undefined;
  }

  #confirm(opened: Opened, changes: number): void {
    this.#connection.confirm(opened);
    this.#checkpoints.note(opened, changes);
  }

  #runEach(opened: Opened, writes: readonly Write[]): Delayed<Write> | undefined {
    const delayed: Write[] = [];
    let reason: unknown;
    for (const write of writes) {
      const { task, resolve, reject } = write;
      try {
        const changes = changesIn(opened.statements[task.verb].run(...task.values));
        this.#confirm(opened, changes);
        resolve(changes);
      } catch (error) {
        if (isBusy(error)) {
          delayed.push(write);
          reason = error;
        } else {
          reject(toTokenError(error));
        }
      }
    }
    return delayed.length > 0 ? { entries: delayed, error: reason } : undefined;
  }
}

function rollBack(handle: SqliteHandle): void {
  try {
    handle.exec('ROLLBACK');
  } catch {
    // Some errors have already rolled back.
  }
}
