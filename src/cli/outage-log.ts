import { OUTAGE_QUIET_MS, OUTAGE_REPORT_MS } from '../bounds.ts';
import { type Clock, systemClock } from '../clock.ts';
import { count } from './layout.ts';

export interface OutageLogOptions {
  /** Names the store for people. */
  readonly name: string;
  /**
   * Says what is wrong, in one sentence without credentials; `undefined` if nothing is.
   * It must not reject.
   */
  readonly diagnose: () => Promise<string | undefined>;
  /** What still works, after the reason. @default nothing is said */
  readonly remark?: string | undefined;
  readonly write: (message: string) => void;
  /** @default the system clock */
  readonly clock?: Clock | undefined;
  /** Runs something later. @default a timer that does not keep the process alive */
  readonly schedule?: ((work: () => void, ms: number) => unknown) | undefined;
}

/** Calls of the store that failed since the first one, without a success that ended the outage. */
interface Outage {
  readonly start: number;
  /** How long no call may fail before an answer ends it. */
  quietMs: number;
  lastFailure: number;
  failed: number;
  /** Those that the last line counted. */
  reported: number;
}

/**
 * Logs when a store fails: a line with the reason when that begins, the number of failed calls every
 * minute, and a line when it ends.
 */
export class OutageLog {
  readonly #options: OutageLogOptions;
  readonly #clock: Clock;
  readonly #schedule: (work: () => void, ms: number) => unknown;
  #outage: Outage | undefined;

  constructor(options: OutageLogOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#schedule = options.schedule ?? ((work, ms) => setTimeout(work, ms).unref());
  }

  /** Counts an event `store_trouble`. */
  recordTrouble({ code }: { readonly code: string }): void {
    const unclear = UNCLEAR.get(code);
    if (unclear === undefined) return;
    const now = this.#now();
    if (this.#outage === undefined) void this.#begin(now, unclear);
    if (this.#outage === undefined) return;
    this.#outage.failed += 1;
    this.#outage.lastFailure = now;
  }

  /** The same store, whose answers end an outage. */
  observed<Store extends object>(store: Store): Store {
    return new Proxy(store, {
      get: (_, name) => {
        const member: unknown = Reflect.get(store, name, store);
        if (typeof member !== 'function') return member;
        return (...call: unknown[]) => {
          const answer: unknown = Reflect.apply(member, store, call);
          if (this.#outage !== undefined && answer instanceof Promise) {
            answer.then(() => this.#recordAnswer()).catch(() => {});
          }
          return answer;
        };
      },
    });
  }

  async #begin(now: number, unclear: Unclear): Promise<void> {
    const { quietMs } = unclear;
    const outage = { start: now, quietMs, lastFailure: now, failed: 0, reported: 0 };
    this.#outage = outage;
    this.#reportLater(outage);
    const reason = await this.#options.diagnose();
    if (reason !== undefined) outage.quietMs = OUTAGE_QUIET_MS;
    const { name, remark, write } = this.#options;
    const more = remark === undefined ? '' : `; ${remark}`;
    write(`${name} fails: ${reason ?? unclear.reason}${more}`);
  }

  /** Single failures among answers are one outage: it ends after some seconds without another. */
  #recordAnswer(): void {
    const outage = this.#outage;
    if (outage === undefined || this.#now() - outage.lastFailure < outage.quietMs) return;
    this.#outage = undefined;
    const seconds = Math.round((this.#now() - outage.start) / 1000);
    this.#options.write(
      `${this.#options.name} works again after ${seconds} s; ${count(outage.failed, 'call')} failed`,
    );
  }

  #reportLater(outage: Outage): void {
    this.#schedule(() => void this.#report(outage), OUTAGE_REPORT_MS);
  }

  async #report(outage: Outage): Promise<void> {
    if (outage !== this.#outage) return;
    const more = outage.failed - outage.reported;
    outage.reported = outage.failed;
    this.#reportLater(outage);
    if (more > 0) {
      const calls = count(more, 'call');
      const all = outage.failed === more ? '' : `, ${outage.failed} in all`;
      this.#options.write(`${this.#options.name} still fails: ${calls} failed in a minute${all}`);
      return;
    }
    // Nobody calls, so nothing else would notice the end.
    if ((await this.#options.diagnose()) === undefined) this.#recordAnswer();
  }

  #now(): number {
    return this.#clock.now().getTime();
  }
}

/** What is known of an outage whose reason the diagnosis does not find. */
interface Unclear {
  readonly reason: string;
  readonly quietMs: number;
}

/** By the code of the trouble. Other codes begin no outage. */
const UNCLEAR: ReadonlyMap<string, Unclear> = new Map([
  [
    'store_unavailable',
    {
      reason:
        'a new connection can be made, but calls fail or are not answered in time; it may be too busy',
      quietMs: OUTAGE_QUIET_MS,
    },
  ],
  [
    'store_corrupt',
    {
      reason:
        'it returns something that is not a record; other records can still be read and written',
      // All other calls are answered, so a short pause between reads of the record would be an end.
      quietMs: OUTAGE_REPORT_MS,
    },
  ],
]);
