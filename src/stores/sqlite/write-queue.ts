import { SQLITE_BUSY_MS } from '../../bounds.ts';
import type { Checkpoints } from './checkpoints.ts';
import {
  changesIn,
  isBusy,
  pauseMs,
  type SqliteHandle,
  type SqliteValue,
  toTokenError,
} from './client.ts';
import type { Connection, Opened } from './connection.ts';
import type { WriteVerb } from './statements.ts';

interface Write {
  readonly verb: WriteVerb;
  readonly values: readonly SqliteValue[];
  /** When it gives up, on `performance.now()`. */
  readonly until: number;
  readonly resolve: (changes: number) => void;
  readonly reject: (error: unknown) => void;
}

/** Writes that could not be made because another connection holds the lock. */
interface Delayed {
  readonly writes: readonly Write[];
  readonly error: unknown;
}

/** A transaction of more would hold the event loop for long. */
const MAX_TOGETHER = 500;

/**
 * Writes of one turn of the event loop become one transaction. While another process holds the lock,
 * they are tried again by a timer, because SQLite itself would wait inside of the call.
 */
export class WriteQueue {
  readonly #connection: Connection;
  readonly #checkpoints: Checkpoints;
  #writes: Write[] = [];
  #isScheduled = false;
  #onIdle: (() => void)[] = [];

  constructor(connection: Connection, checkpoints: Checkpoints) {
    this.#connection = connection;
    this.#checkpoints = checkpoints;
  }

  /** Resolves to the number of changed records, once the change is on the disk. */
  run(verb: WriteVerb, values: readonly SqliteValue[]): Promise<number> {
    const until = performance.now() + SQLITE_BUSY_MS;
    return new Promise((resolve, reject) => {
      this.#writes.push({ verb, values, until, resolve, reject });
      if (!this.#isScheduled) this.#schedule();
    });
  }

  /** Resolves when no write waits any more; `undefined` if none does. */
  idle(): Promise<void> | undefined {
    if (this.#writes.length === 0) return undefined;
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  #schedule(): void {
    this.#isScheduled = true;
    setImmediate(() => this.#work());
  }

  #work(): void {
    this.#isScheduled = false;
    const writes = this.#writes.splice(0, MAX_TOGETHER);
    const delayed = this.#attempt(writes);
    if (delayed !== undefined) this.#delay(delayed);
    else if (this.#writes.length > 0) this.#schedule();
    if (this.#writes.length > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  #delay({ writes, error }: Delayed): void {
    const now = performance.now();
    const waiting = [...writes, ...this.#writes];
    rejectAll(
      waiting.filter(({ until }) => until <= now),
      error,
    );
    this.#writes = waiting.filter(({ until }) => until > now);
    if (this.#writes.length === 0) return;
    this.#isScheduled = true;
    setTimeout(() => this.#work(), pauseMs());
  }

  /** Returns those that the lock kept from being made; all others are settled. */
  #attempt(writes: readonly Write[]): Delayed | undefined {
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

  #runInTransaction(opened: Opened, writes: readonly Write[]): Delayed | undefined {
    const { handle, statements } = opened;
    try {
      handle.exec('BEGIN IMMEDIATE');
    } catch (error) {
      // They have waited for the lock together. Run one by one, each would wait again.
      if (isBusy(error)) return { writes, error };
      // A transaction of the host is open, and each write becomes part of it.
      return this.#runEach(opened, writes);
    }
    let changes: number[];
    try {
      changes = writes.map(({ verb, values }) => changesIn(statements[verb].run(...values)));
    } catch {
      // A write that fails must not take the others with it.
      rollBack(handle);
      return this.#runEach(opened, writes);
    }
    try {
      handle.exec('COMMIT');
    } catch (error) {
      rollBack(handle);
      if (isBusy(error)) return { writes, error };
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

  #runEach(opened: Opened, writes: readonly Write[]): Delayed | undefined {
    const delayed: Write[] = [];
    let reason: unknown;
    for (const write of writes) {
      const { verb, values, resolve, reject } = write;
      try {
        const changes = changesIn(opened.statements[verb].run(...values));
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
    return delayed.length > 0 ? { writes: delayed, error: reason } : undefined;
  }
}

function rollBack(handle: SqliteHandle): void {
  try {
    handle.exec('ROLLBACK');
  } catch {
    // Some errors have already rolled back.
  }
}

function rejectAll(writes: readonly Write[], error: unknown): void {
  for (const { reject } of writes) reject(toTokenError(error));
}
