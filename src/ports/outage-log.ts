import { type StorePart, sentenceOf } from '../errors.ts';
import { notify, type TokenEvent } from '../events.ts';
import { count } from '../text/wording.ts';
import { systemClock } from '../time/clock.ts';
import { setTimeout } from '../time/timers.ts';

/** Milliseconds without a failure after which an answer of the store ends its outage. @bound */
export const OUTAGE_QUIET_MS = 5000;

/** Milliseconds between two lines about failed calls of a store. @bound */
export const OUTAGE_REPORT_MS = 60_000;

/** Milliseconds between two looks at a store that no call has reached. */
const LOOK_MS = 1000;

export interface OutageLogOptions {
  /** Names the store for people. */
  readonly name: string;
  /** Takes each line. Errors that it throws are ignored. */
  readonly write: (line: string) => void;
  /**
   * Says what is wrong, in one sentence without credentials; `undefined` if nothing is. It must not
   * reject. @default the sentence of the reason
   */
  readonly diagnose?: (() => Promise<string | undefined>) | undefined;
  /** Says what still works, after the reason. @default none */
  readonly remark?: string | undefined;
}

/** What an outage log reads of an event. */
export type StoreEvent = Extract<TokenEvent, { type: 'store_trouble' | 'store_recovered' }>;

/** An outage in progress. */
interface Outage {
  readonly start: number;
  readonly fallback: string;
  /** An answer ends the outage if no call has failed for so long. */
  quietMs: number;
  lastFailure: number;
  /** When the store first answered since then. */
  answeredAt: number | undefined;
  /** The calls that have failed since its start. */
  failed: number;
  /** Those of them that the log has counted. */
  reported: number;
  reportedAt: number;
  /** Whether the line about its start is written. */
  isLogged: boolean;
}

/**
 * Logs the outages of one store: a line with the reason when one begins, the number of failed calls every
 * minute, and a line when it is over. Failures between answers are one outage.
 */
export class OutageLog {
  readonly #options: OutageLogOptions;
  #outage: Outage | undefined;

  constructor(options: OutageLogOptions) {
    this.#options = options;
  }

  /** Takes an event of this store. Not each failure is an outage. */
  record(event: StoreEvent): void {
    if (event.type === 'store_recovered') {
      if (this.#outage !== undefined) this.#outage.answeredAt ??= now();
      return;
    }
    const quietMs = QUIET_MS.get(event.code);
    if (quietMs === undefined) return;
    const outage = this.#outage ?? this.#begin(sentenceOf(event), quietMs);
    outage.failed += 1;
    outage.lastFailure = now();
    // Only a diagnosis can tell when a record that could not be read is whole again.
    const isLasting = event.code === 'store_corrupt' && this.#options.diagnose === undefined;
    outage.answeredAt = isLasting ? now() : undefined;
  }

  #begin(fallback: string, quietMs: number): Outage {
    const start = now();
    const outage: Outage = {
      start,
      fallback,
      quietMs,
      lastFailure: start,
      answeredAt: undefined,
      failed: 0,
      reported: 0,
      reportedAt: start,
      isLogged: false,
    };
    this.#outage = outage;
    void this.#logStart(outage);
    return outage;
  }

  async #logStart(outage: Outage): Promise<void> {
    const { name, remark, diagnose } = this.#options;
    const found = await diagnose?.();
    if (found !== undefined) outage.quietMs = OUTAGE_QUIET_MS;
    const more = remark === undefined ? '' : `; ${remark}`;
    this.#write(`${name} fails: ${found ?? outage.fallback}${more}`);
    outage.isLogged = true;
    this.#lookLater(outage);
  }

  #lookLater(outage: Outage): void {
    setTimeout(() => void this.#look(outage), LOOK_MS).unref();
  }

  /** Without a call, only this notices that the store works again. */
  async #look(outage: Outage): Promise<void> {
    const { name, diagnose } = this.#options;
    if (outage.answeredAt === undefined && diagnose !== undefined) {
      const failedBefore = outage.failed;
      const isFine = (await diagnose()) === undefined;
      if (isFine && outage.failed === failedBefore) outage.answeredAt ??= now();
    }
    const { answeredAt, failed, start } = outage;
    if (answeredAt !== undefined && now() - outage.lastFailure >= outage.quietMs) {
      this.#outage = undefined;
      const seconds = Math.round((answeredAt - start) / 1000);
      this.#write(`${name} works again after ${seconds} s; ${count(failed, 'call')} failed`);
      return;
    }
    if (now() - outage.reportedAt >= OUTAGE_REPORT_MS) this.#report(outage);
    this.#lookLater(outage);
  }

  /** Timers call it: what it throws would end the process. */
  #write(line: string): void {
    notify(this.#options.write, line);
  }

  #report(outage: Outage): void {
    const more = outage.failed - outage.reported;
    outage.reportedAt = now();
    outage.reported = outage.failed;
    if (more === 0) return;
    const { name } = this.#options;
    const all = outage.failed === more ? '' : `, ${outage.failed} in all`;
    this.#write(`${name} still fails: ${count(more, 'call')} failed in a minute${all}`);
  }
}

/**
 * Makes a listener that logs when a store of a service fails, once a minute how many calls have failed, and
 * when it works again. Give it as `onEvent`, or call it from yours.
 *
 * @param write takes each line, such as `console.error`; errors that it throws are ignored
 * @example
 * const tokens = new TokenService({ store, keys, prefix: 'acme', onEvent: outageLog(console.error) });
 */
export function outageLog(write: (line: string) => void): (event: TokenEvent) => void {
  const logs = new Map<StorePart | undefined, OutageLog>();
  return (event) => {
    if (event.type !== 'store_trouble' && event.type !== 'store_recovered') return;
    const { store } = event;
    const log = logs.get(store) ?? new OutageLog({ name: NAMES[store ?? 'tokens'], write });
    logs.set(store, log);
    log.record(event);
  };
}

const NAMES = {
  tokens: 'the token store',
  usage: 'the usage store',
  leases: 'the lease store',
  requests: 'the request store',
  watch: 'the watch for changes by other processes',
} as const;

/** By the code of the trouble. Other codes begin no outage. */
const QUIET_MS: ReadonlyMap<string, number> = new Map([
  ['store_unavailable', OUTAGE_QUIET_MS],
  // Other calls succeed meanwhile. With a short time, the outage would end between two reads of the record.
  ['store_corrupt', OUTAGE_REPORT_MS],
]);

function now(): number {
  return systemClock.now().getTime();
}
