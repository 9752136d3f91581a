import { type Clock, systemClock } from '../../../time/clock.ts';
import { type Schedule, unrefTimer } from './schedule.ts';

export interface AllowanceOptions {
  /** How many lines a span allows. */
  readonly limit: number;
  readonly spanMs: number;
  /** Called at the end of a span, if lines were dropped in it. */
  readonly reportDropped: (count: number) => void;
  /** @default the system clock */
  readonly clock?: Clock | undefined;
  /** @default {@link unrefTimer} */
  readonly schedule?: Schedule | undefined;
}

/** A rate limit for log lines: allows some in each span of time, and counts the dropped ones. */
export class Allowance {
  readonly #options: AllowanceOptions;
  readonly #clock: Clock;
  readonly #schedule: Schedule;
  #start = Number.NEGATIVE_INFINITY;
  #taken = 0;
  #dropped = 0;

  constructor(options: AllowanceOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#schedule = options.schedule ?? unrefTimer;
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
    // Reports them at the end of the span even if no further line comes.
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
