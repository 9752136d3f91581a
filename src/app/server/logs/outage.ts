import { systemClock } from '../../../index.ts';
import { setTimeout } from '../../../time/timers.ts';
import { count } from '../../terminal/layout.ts';

/** Milliseconds without a failure after which an answer of the store ends its outage. @bound */
export const OUTAGE_QUIET_MS = 5000;

/** Milliseconds between two lines of `tokenwright serve` that count failed calls of its store. @bound */
export const OUTAGE_REPORT_MS = 60_000;

export interface OutageLogOptions {
  /** Names the store for people. */
  readonly name: string;
  /**
   * Says what is wrong, in one sentence without credentials; `undefined` if nothing is.
   * It must not reject.
   */
  readonly diagnose: () => Promise<string | undefined>;
  /** Says what still works, after the reason. @default none */
  readonly remark?: string | undefined;
  readonly write: (message: string) => void;
}

/** An outage in progress. */
interface Outage {
  readonly start: number;
  /** An answer ends the outage if no call has failed for so long. */
  quietMs: number;
  lastFailure: number;
  /** The calls that have failed since its start. */
  failed: number;
  /** Those of them that the log has counted. */
  reported: number;
  /** Whether the line about its start is written. */
  isLogged: boolean;
}

/**
 * Logs when a store fails: a line with the reason when that begins, the number of failed calls
 * every minute, and a line when it ends.
 */
export class OutageLog {
  readonly #options: OutageLogOptions;
  #outage: Outage | undefined;

  constructor(options: OutageLogOptions) {
    this.#options = options;
  }

  /** Counts an event `store_trouble`. */
  recordTrouble({ code }: { readonly code: string }): void {
    const fallback = FALLBACKS.get(code);
    if (fallback === undefined) return;
    const outage = this.#outage ?? this.#begin(fallback);
    outage.failed += 1;
    outage.lastFailure = now();
  }

  /** Wraps a store, so that its answers can end an outage. */
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

  #begin({ reason, quietMs }: Fallback): Outage {
    const start = now();
    const outage = { start, quietMs, lastFailure: start, failed: 0, reported: 0, isLogged: false };
    this.#outage = outage;
    this.#reportLater(outage);
    void this.#logStart(outage, reason);
    return outage;
  }

  async #logStart(outage: Outage, fallback: string): Promise<void> {
    const { name, remark, write, diagnose } = this.#options;
    const reason = await diagnose();
    if (reason !== undefined) outage.quietMs = OUTAGE_QUIET_MS;
    write(`${name} fails: ${reason ?? fallback}${remark === undefined ? '' : `; ${remark}`}`);
    outage.isLogged = true;
  }

  /** Ends the outage after some seconds without a failure: single failures are one outage. */
  #recordAnswer(): void {
    const outage = this.#outage;
    // While the diagnosis is under way, its line is not written yet: it comes first.
    if (outage?.isLogged !== true || now() - outage.lastFailure < outage.quietMs) return;
    this.#outage = undefined;
    const seconds = Math.round((now() - outage.start) / 1000);
    this.#options.write(
      `${this.#options.name} works again after ${seconds} s; ${count(outage.failed, 'call')} failed`,
    );
  }

  #reportLater(outage: Outage): void {
    setTimeout(() => void this.#report(outage), OUTAGE_REPORT_MS).unref();
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
    // No call came in the meantime, so only this can notice the end.
    if ((await this.#options.diagnose()) === undefined) this.#recordAnswer();
  }
}

function now(): number {
  return systemClock.now().getTime();
}

/** Describes an outage if the diagnosis finds no reason. */
interface Fallback {
  readonly reason: string;
  readonly quietMs: number;
}

/** By the code of the trouble. Other codes begin no outage. */
const FALLBACKS: ReadonlyMap<string, Fallback> = new Map([
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
      // Other calls succeed meanwhile. With a short time, the outage would end between two reads of
      // the record.
      quietMs: OUTAGE_REPORT_MS,
    },
  ],
]);
