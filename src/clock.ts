import { TokenError } from './errors.ts';

/** Where the time comes from. Its zone does not matter; a service asks it once for each call. */
export interface Clock {
  /** This instant, as a valid date. */
  now(): Date;
}

/** The time of the machine. */
export const systemClock: Clock = { now: () => new Date() };

const MAX_STEP_BACK_MS = 2 * 60 * 60 * 1000;

/**
 * A clock that does not revive what has expired: when the given one steps back by up to two hours,
 * time stands still until it has caught up. A larger step is taken for a correction and believed.
 *
 * @returns what tells this instant, in milliseconds since 1970; it throws `invalid_options` when the given
 * clock has no valid time to tell
 */
export function steadyClock(clock: Clock): () => number {
  let latest = Number.NEGATIVE_INFINITY;
  return () => {
    const time = timeOf(clock);
    if (time > latest || latest - time > MAX_STEP_BACK_MS) latest = time;
    return latest;
  };
}

function timeOf(clock: Clock): number {
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

/** Waits for a promise at most so long; then rejects, whatever becomes of it later. */
export function withDeadline<Result>(
  promise: PromiseLike<Result>,
  deadlineMs: number,
): Promise<Result> {
  // Each read goes through here: one promise, and none to race.
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('deadline')), deadlineMs);
    Promise.resolve(promise).then(
      (result) => {
        clearTimeout(timer);
        resolve(result);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
