import { DAY_MS } from '../time/duration.ts';
import { performance } from '../time/timers.ts';
import type { CheckedStore } from './checked-store.ts';

/** For so long a store may have been idle before this process began. */
const MAX_IDLE_MS = DAY_MS;
/** The longest lead of a clock that is measured: 2^12 days. */
const MAX_DOUBLINGS = 12;

/**
 * Whether the clock of a process may decide what is removed for good. A clock that is far ahead of all that
 * the store knows is not believed until the process itself has run for so long by its monotonic clock.
 */
export class ClockEvidence {
  readonly #store: CheckedStore;
  readonly #elapsedMs: () => number;
  /** When the clock was believed last, or this began, by the monotonic clock. */
  #sinceMs: number;
  /** What both clocks said when the store confirmed it last. */
  #anchor: { readonly now: number; readonly elapsedMs: number } | undefined;
  /** How far the clock was ahead at most, when it was contradicted first. */
  #leadMs: number | undefined;

  /** @param elapsedMs the monotonic clock, in milliseconds */
  constructor(store: CheckedStore, elapsedMs = () => performance.now()) {
    this.#store = store;
    this.#elapsedMs = elapsedMs;
    this.#sinceMs = elapsedMs();
  }

  /**
   * Whether nothing contradicts that it is `now`.
   *
   * @throws {TokenError} `store_unavailable`
   */
  async confirms(now: number): Promise<boolean> {
    const elapsedMs = this.#elapsedMs();
    const ranMs = elapsedMs - this.#sinceMs;
    if (!this.#isSteady(now, elapsedMs)) {
      const isOutlived = this.#leadMs !== undefined && ranMs >= this.#leadMs;
      if (!isOutlived && !(await this.#isReached(now, ranMs))) return this.#isAlone(now, ranMs);
      this.#anchor = { now, elapsedMs };
      this.#leadMs = undefined;
    }
    this.#sinceMs = elapsedMs;
    return true;
  }

  /** Whether both clocks have gone on alike since the store confirmed it. */
  #isSteady(now: number, elapsedMs: number): boolean {
    if (this.#anchor === undefined) return false;
    return now - this.#anchor.now <= elapsedMs - this.#anchor.elapsedMs + MAX_IDLE_MS;
  }

  async #isAlone(now: number, ranMs: number): Promise<boolean> {
    // Nothing in the store is older than this process: there is nothing that its clock could be ahead of.
    const start = now - ranMs;
    if (!(await this.#wasWritten(0, start))) return this.#leadMs === undefined;
    this.#leadMs ??= await this.#leadAt(start);
    return false;
  }

  /** What this process may have written itself proves nothing. */
  async #isReached(now: number, ranMs: number): Promise<boolean> {
    const start = now - ranMs;
    return this.#wasWritten(start - ranMs - MAX_IDLE_MS, start);
  }

  async #leadAt(start: number): Promise<number> {
    for (let doublings = 1; doublings < MAX_DOUBLINGS; doublings += 1) {
      const leadMs = DAY_MS * 2 ** doublings;
      if (await this.#wasWritten(start - leadMs, start)) return leadMs;
    }
    return DAY_MS * 2 ** MAX_DOUBLINGS;
  }

  /** Without an answer, the store leaves it to this process. */
  async #wasWritten(from: number, before: number): Promise<boolean> {
    const instant = new Date(Math.max(0, from));
    return (await this.#store.hasReached(instant, new Date(before))) ?? true;
  }
}
