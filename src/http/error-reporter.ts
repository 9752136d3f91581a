import { notify } from '../events.ts';
import { performance } from '../time/timers.ts';

/** Milliseconds between two reports to `onError` of a kind that callers can cause at will. @bound */
export const REPORT_PAUSE_MS = 60_000;

/** An error whose cause lies outside this code: a stack would only show where it was noticed. */
export class StacklessError extends Error {
  constructor(message: string) {
    super(message);
    this.stack = `Error: ${message}`;
  }
}

/** Reports errors to the `onError` of the host. */
export class ErrorReporter {
  readonly #onError: (error: unknown) => void;
  readonly #now: () => number;
  readonly #reportedAt = new Map<string, number>();

  constructor(onError: (error: unknown) => void, now: () => number = () => performance.now()) {
    this.#onError = onError;
    this.#now = now;
  }

  /** Reports an error. A {@link StacklessError} fails many calls alike, so it is reported once a minute. */
  report(error: unknown): void {
    if (error instanceof StacklessError) this.reportSeldom(error.message, error);
    else notify(this.#onError, error);
  }

  /**
   * Reports one error of each kind a minute, so that errors which clients can cause at will do not flood
   * the log. There must be few kinds, since each of them is stored.
   */
  reportSeldom(kind: string, error: unknown): void {
    const now = this.#now();
    const last = this.#reportedAt.get(kind);
    if (last !== undefined && now - last < REPORT_PAUSE_MS) return;
    this.#reportedAt.set(kind, now);
    notify(this.#onError, error);
  }
}
