import { TokenError } from '../errors.ts';
import { performance } from './timers.ts';

/** The source of the time. A service asks it once for each call. */
export interface Clock {
  /** This instant, as a valid date. */
  now(): Date;
}

/** The time of the machine. */
export const systemClock: Clock = { now: () => new Date() };

/** A clock that was made steady; see {@link steadyClock}. */
export interface SteadyClock {
  /** This instant, in milliseconds since 1970. */
  (): number;
  /** The monotonic time of the machine, in milliseconds: at this instant, or up to one before. */
  readonly elapsedMs: () => number;
}

const MAX_STEP_BACK_MS = 2 * 60 * 60 * 1000;
/** Slower than time, so that the clock catches up; a token lives a ninth longer at most. */
const CATCH_UP_RATE = 0.9;

/**
 * A clock that never goes back, so that it does not revive expired tokens. If the given clock steps back
 * by up to two hours, time goes on at nine tenths of its speed until the clock has caught up. A larger
 * step is believed, as a correction.
 *
 * @param elapsedMs the monotonic time that belongs to the clock; without it, time stands still until the
 * clock has caught up
 * @returns a function for this instant; it throws `invalid_options` if the given clock does not return a
 * valid time
 */
export function steadyClock(clock: Clock, elapsedMs = elapsedOf(clock)): SteadyClock {
  const isSystem = clock === systemClock;
  const read = isSystem ? () => Date.now() : () => timeOf(clock);
  let given = Number.NaN;
  let latest = Number.NEGATIVE_INFINITY;
  let latestElapsedMs = 0;
  const now = () => {
    const time = read();
    // Under load, most calls come within the millisecond of the one before.
    if (time === given) return Math.floor(latest);
    given = time;
    const elapsed = elapsedMs();
    const least = latest + (elapsed - latestElapsedMs) * CATCH_UP_RATE;
    latest = time >= least || least - time > MAX_STEP_BACK_MS ? time : least;
    latestElapsedMs = elapsed;
    return Math.floor(latest);
  };
  // The clock of the machine moves with its monotonic one; an injected one need not.
  return Object.assign(now, {
    elapsedMs: isSystem ? () => latestElapsedMs : () => performance.now(),
  });
}

/** The monotonic clock of the machine measures nothing for an injected clock, such as that of a test. */
function elapsedOf(clock: Clock): () => number {
  return clock === systemClock ? () => performance.now() : () => 0;
}

/**
 * The time of a clock of the host, in milliseconds since 1970.
 *
 * @throws {TokenError} `invalid_options` if it is not a valid time
 */
export function timeOf(clock: Clock): number {
  let now: Date | undefined;
  let time: number;
  try {
    now = clock.now();
    time = now.getTime();
  } catch {
    time = Number.NaN;
  }
  if (Number.isFinite(time)) return time;
  // A clock that is async by mistake may reject, too.
  Promise.resolve(now).catch(() => {});
  throw new TokenError('invalid_options', 'clock.now() must return a valid Date');
}
