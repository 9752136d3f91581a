import { type Clock, systemClock } from '../clock.ts';

export interface AllowanceOptions {
  /** The number of lines in a span of time. */
  readonly limit: number;
  readonly spanMs: number;
  /** Is called at the end of a span with the number of dropped lines. */
  readonly reportDropped: (count: number) => void;
  /** @default the system clock */
  readonly clock?: Clock | undefined;
  /** Runs something later. @default a timer that does not keep the process alive */
  readonly schedule?: ((work: () => void, ms: number) => unknown) | undefined;
}

/** Allows a number of log lines in a span of time, and counts the dropped ones. */
export class Allowance {
  readonly #options: AllowanceOptions;
  readonly #clock: Clock;
  readonly #schedule: (work: () => void, ms: number) => unknown;
  #start = Number.NEGATIVE_INFINITY;
  #taken = 0;
  #dropped = 0;

  constructor(options: AllowanceOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#schedule = options.schedule ?? ((work, ms) => setTimeout(work, ms).unref());
  }

  /** Returns whether one more line is allowed. */
  take(): boolean {
    const { limit, spanMs } = this.#options;
    const now = this.#clock.now().getTime();
    const isOver = now - this.#start >= spanMs || now < this.#start;
    if (isOver) this.#begin(now);
    if (this.#taken < limit) {
      this.#taken += 1;
      return true;
    }
    // Without a timer, nothing would report them if no further call came.
    if (this.#dropped === 0) this.#schedule(() => this.flush(), this.#start + spanMs - now);
    this.#dropped += 1;
    return false;
  }

  /** Reports the lines that were dropped so far. */
  flush(): void {
    const count = this.#dropped;
    this.#dropped = 0;
    if (count > 0) this.#options.reportDropped(count);
  }

  #begin(now: number): void {
    this.flush();
    this.#start = now;
    this.#taken = 0;
  }
}
