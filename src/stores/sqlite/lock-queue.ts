import { SQLITE_BUSY_MS } from '../../bounds.ts';
import { performance, setImmediate, setTimeout } from '../../time/timers.ts';
import { pauseMs, toTokenError } from './client.ts';

/** A task that needs the lock of a file. */
export interface QueuedTask<Task, Answer> {
  readonly task: Task;
  /** The deadline, on `performance.now()`. */
  readonly until: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** The tasks that could not run because another connection holds the lock. */
export interface Delayed<Entry> {
  readonly entries: readonly Entry[];
  readonly error: unknown;
}

/** Runs tasks, and settles all of them except those that it returns. */
type Attempt<Task, Answer> = (
  entries: readonly QueuedTask<Task, Answer>[],
) => Delayed<QueuedTask<Task, Answer>> | undefined;

/** The most tasks of one transaction: more would hold the event loop for long. */
const MAX_TOGETHER = 500;

/**
 * Collects the tasks of one turn of the event loop, to run them in one transaction. While another process
 * holds the lock, it retries by a timer, because SQLite itself would wait inside the call.
 *
 * SQLite gives the lock to the first process that asks, and has no queue. So a process that had to wait
 * pauses after its transaction. Otherwise a process that writes all the time would hardly ever let others
 * in.
 */
export class LockQueue<Task, Answer> {
  readonly #attempt: Attempt<Task, Answer>;
  #entries: QueuedTask<Task, Answer>[] = [];
  #isScheduled = false;
  /** Whether the last attempt found the lock taken. */
  #isDelayed = false;
  /** Until then, it leaves the lock to others; on `performance.now()`. */
  #pausesUntil = 0;
  #onIdle: (() => void)[] = [];

  constructor(attempt: Attempt<Task, Answer>) {
    this.#attempt = attempt;
  }

  /** Rejects if the lock does not become free in time. */
  run(task: Task): Promise<Answer> {
    const until = performance.now() + SQLITE_BUSY_MS;
    return new Promise((resolve, reject) => {
      this.#entries.push({ task, until, resolve, reject });
      if (!this.#isScheduled) this.#schedule();
    });
  }

  /** Resolves when nothing waits any more; `undefined` if nothing does. */
  idle(): Promise<void> | undefined {
    if (this.#entries.length === 0) return undefined;
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  #schedule(): void {
    this.#isScheduled = true;
    const pause = this.#pausesUntil - performance.now();
    if (pause > 0) setTimeout(() => this.#work(), pause);
    else setImmediate(() => this.#work());
  }

  #work(): void {
    this.#isScheduled = false;
    const entries = this.#entries.splice(0, MAX_TOGETHER);
    const delayed = this.#attempt(entries);
    if (delayed === undefined && this.#isDelayed) this.#pausesUntil = performance.now() + pauseMs();
    this.#isDelayed = delayed !== undefined;
    if (delayed !== undefined) this.#delay(delayed);
    else if (this.#entries.length > 0) this.#schedule();
    if (this.#entries.length > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  #delay({ entries, error }: Delayed<QueuedTask<Task, Answer>>): void {
    const now = performance.now();
    const waiting = [...entries, ...this.#entries];
    rejectAll(
      waiting.filter(({ until }) => until <= now),
      error,
    );
    this.#entries = waiting.filter(({ until }) => until > now);
    if (this.#entries.length === 0) return;
    this.#isScheduled = true;
    setTimeout(() => this.#work(), pauseMs());
  }
}

export function rejectAll(
  entries: readonly Pick<QueuedTask<unknown, unknown>, 'reject'>[],
  error: unknown,
): void {
  for (const { reject } of entries) reject(toTokenError(error));
}
