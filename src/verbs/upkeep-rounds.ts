import { clearTimeout, setTimeout } from '../time/timers.ts';

/** Milliseconds from the start of the upkeep to its first round, at most. @bound */
export const UPKEEP_START_MS = 300_000;

/** Upkeep that runs in the background. */
export interface Upkeep {
  /** Ends it: resolves when the round that is under way has stopped. Never rejects. */
  stop(): Promise<void>;
}

/**
 * The work of one round. The signal aborts when the round should end soon. Resolves to the milliseconds to
 * the next round if that should come earlier than usual.
 */
export type Round = (signal: AbortSignal) => Promise<number | undefined>;

/** So that processes that started together do not stay in step. */
const JITTER = 0.2;

/**
 * Runs a round at intervals, never two at a time. Its timer does not keep the process alive. If a round
 * throws, the next one tries again.
 */
export class UpkeepRounds implements Upkeep {
  readonly #round: Round;
  readonly #everyMs: number;
  readonly #end = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(round: Round, everyMs: number) {
    this.#round = round;
    this.#everyMs = everyMs;
    this.#wait(Math.min(everyMs, UPKEEP_START_MS) * Math.random());
  }

  async stop(): Promise<void> {
    this.#end.abort();
    clearTimeout(this.#timer);
    await this.#running;
  }

  #wait(ms: number): void {
    if (this.#end.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#running = this.#run();
    }, ms);
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    // The failure of a store was emitted as an event.
    const soonMs = await this.#round(this.#end.signal).catch(() => undefined);
    const everyMs = Math.min(this.#everyMs, soonMs ?? this.#everyMs);
    this.#wait(everyMs * (1 - JITTER * Math.random()));
  }
}

/** Waits until the time is over or the signal aborts. Does not keep the process alive. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    timer.unref();
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}
