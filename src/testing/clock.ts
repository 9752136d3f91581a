import { TokenError } from '../errors.ts';

/** A clock that stands still until it is moved. */
export interface ManualClock {
  /** The current instant, as a new date each time. */
  now(): Date;
  /** Moves it, to the millisecond; backwards when negative. */
  advance(seconds: number): void;
}

const DEFAULT_START = '2100-01-01T00:00:00.000Z';

/**
 * Makes a clock for tests. By default it starts far in the future, so that tests fail if code reads
 * the real time instead.
 *
 * @throws {TokenError} `invalid_options` when `start` is an invalid date, or when the clock is moved by
 * something that is not a finite number, or beyond the range of dates
 * @example
 * const clock = manualClock();
 * clock.advance(60);
 * clock.now().toISOString(); // '2100-01-01T00:01:00.000Z'
 */
export function manualClock(start: Date = new Date(DEFAULT_START)): ManualClock {
  let instant = checked(start.getTime());
  return {
    now: () => new Date(instant),
    advance(seconds) {
      instant = checked(instant + Math.round(seconds * 1000));
    },
  };
}

function checked(instant: number): number {
  if (!Number.isNaN(new Date(instant).getTime())) return instant;
  throw new TokenError('invalid_options', 'a clock moves by a finite number of seconds, to a date');
}
