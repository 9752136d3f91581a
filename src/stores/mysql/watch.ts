import { clearTimeout, performance, setTimeout } from '../../time/timers.ts';
import type { TokenId } from '../../token/record.ts';

/**
 * The server's time, in microseconds, and a changed token with the time of the change. If nothing has
 * changed, the token is null.
 */
export type ChangedRow = readonly [serverTime: unknown, id: unknown, changedAt: unknown];

interface WatchOptions {
  /** Reads the changes after a time, in microseconds. */
  readonly read: (since: number) => Promise<ChangedRow[]>;
  readonly onChange: (ids: readonly TokenId[] | 'all') => void;
  readonly pollMs: number;
  /** How long a change may take from its time to its commit. */
  readonly commitMs: number;
}

const MAX_PAUSE_MS = 1000;
/** A poll that reads more changes than this reports `'all'`. */
export const MAX_CHANGES = 1000;
/** Covers differences between the clocks of servers, for when another one takes over. */
const CLOCK_SLACK_MS = 3000;
const MAX_STEP_MS = 2000;

/**
 * Polls for rows with a new `changed_at`: the server's time when the write began, set by the write.
 *
 * A change becomes visible after that time, when it is committed; an acknowledged change took at most
 * a deadline. Therefore each poll starts before the previous one, by a deadline and some slack, and
 * leaves out changes that were reported. It reports `'all'` if the clock of the server was set by
 * more, if a poll failed, and if there are too many changes.
 *
 * Counters would need no clock, but a number is also drawn before its commit. A second table or a
 * trigger would cost every write more than hints are worth.
 */
export class Watch {
  readonly #options: WatchOptions;
  readonly #overlap: number;
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;
  #failures = 0;
  /** The time of the last poll, by the server's clock and by ours. */
  #last = { server: 0, own: 0 };
  /** Polls start here at the earliest: an `'all'` has reported everything before. */
  #floor = 0;
  /** When to repeat an `'all'`, for changes that began before the floor and were committed after it. */
  #repeatAt = Number.POSITIVE_INFINITY;
  #reported: ReadonlyMap<TokenId, number> = new Map();

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#overlap = (options.commitMs + CLOCK_SLACK_MS) * 1000;
  }

  async start(): Promise<void> {
    const { read, pollMs } = this.#options;
    const own = performance.now();
    this.#last = { server: serverTimeOf(await read(Number.MAX_SAFE_INTEGER)), own };
    this.#reported = timesById(await read(this.#last.server - this.#overlap));
    this.#schedule(pollMs);
  }

  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
  }

  #schedule(pauseMs: number): void {
    if (this.#isEnded) return;
    this.#timer = setTimeout(() => void this.#poll(), pauseMs);
    this.#timer.unref();
  }

  async #poll(): Promise<void> {
    const { read, pollMs } = this.#options;
    const own = performance.now();
    const since = Math.max(this.#floor, this.#last.server - this.#overlap);
    const changes = await read(since).catch(() => undefined);
    if (this.#isEnded) return;
    if (changes === undefined) this.#fail();
    else this.#report(changes, own);
    this.#schedule(Math.max(Math.min(pollMs * 2 ** this.#failures, MAX_PAUSE_MS), pollMs));
  }

  #fail(): void {
    this.#failures += 1;
    if (this.#failures === 1) this.#options.onChange('all');
  }

  #report(changes: readonly ChangedRow[], own: number): void {
    const server = serverTimeOf(changes);
    const times = timesById(changes);
    const news = [...times].filter(([id, time]) => this.#reported.get(id) !== time);
    const isRepeat = server >= this.#repeatAt;
    const isTooMuch = changes.length > MAX_CHANGES || this.#isStep(server, own);
    const isAll = isTooMuch || isRepeat || this.#failures > 0;

    if (isTooMuch) this.#floor = server;
    if (isTooMuch) this.#repeatAt = server + this.#overlap;
    else if (isRepeat) this.#repeatAt = Number.POSITIVE_INFINITY;
    this.#last = { server, own };
    this.#reported = times;
    this.#failures = 0;
    if (isAll) this.#options.onChange('all');
    else if (news.length > 0) this.#options.onChange(news.map(([id]) => id));
  }

  /** Whether the server's clock was set, or another server has taken over. */
  #isStep(server: number, own: number): boolean {
    const step = server - this.#last.server - (own - this.#last.own) * 1000;
    return Math.abs(step) > MAX_STEP_MS * 1000;
  }
}

function serverTimeOf([first]: readonly ChangedRow[]): number {
  return Number(first?.[0]);
}

function timesById(changes: readonly ChangedRow[]): Map<TokenId, number> {
  const rows = changes.filter(([, id]) => id !== null);
  return new Map(rows.map(([, id, time]) => [String(id) as TokenId, Number(time)]));
}
