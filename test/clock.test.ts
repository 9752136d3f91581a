import { describe, expect, it } from 'vitest';
import { type Clock, steadyClock, systemClock } from '../src/clock.ts';
import { manualClock } from '../src/testing/index.ts';

const HOUR = 3600;

describe('systemClock', () => {
  it('tells the time of the machine', () => {
    const before = Date.now();
    const told = systemClock.now().getTime();

    expect(told).toBeGreaterThanOrEqual(before);
    expect(told).toBeLessThanOrEqual(Date.now());
  });
});

describe('steadyClock', () => {
  it.each([
    ['by a millisecond', -0.001, 0],
    ['by an hour', -HOUR, 0],
    ['by two hours', -2 * HOUR, 0],
    ['by two hours and a millisecond', -2 * HOUR - 0.001, -2 * HOUR - 0.001],
    ['by a year', -365 * 24 * HOUR, -365 * 24 * HOUR],
    ['forward by a second', 1, 1],
    ['forward by a year', 365 * 24 * HOUR, 365 * 24 * HOUR],
  ])('after a step %s', (_, step, seen) => {
    const clock = manualClock();
    const steady = steadyClock(clock);
    const start = steady();
    clock.advance(step);

    expect(steady() - start).toBe(Math.round(seen * 1000));
  });

  it('stands still until the clock has caught up, then goes on', () => {
    const clock = manualClock();
    const steady = steadyClock(clock);
    const start = steady();
    const seen = [-HOUR, HOUR / 2, HOUR / 2, 1].map((step) => {
      clock.advance(step);
      return steady() - start;
    });

    expect(seen).toEqual([0, 0, 0, 1000]);
  });

  it('adds up steps: many small ones go no further than one large one', () => {
    const clock = manualClock();
    const steady = steadyClock(clock);
    const start = steady();
    clock.advance(-HOUR);
    expect(steady()).toBe(start);
    clock.advance(-HOUR);
    expect(steady()).toBe(start);
    clock.advance(-0.001);

    expect(steady()).toBe(clock.now().getTime());
  });

  describe('of a clock with a monotonic time', () => {
    function setUp() {
      const clock = manualClock();
      let elapsedMs = 0;
      const steady = steadyClock(clock, () => elapsedMs);
      const start = steady();
      return {
        clock,
        sinceStart: () => steady() - start,
        pass(seconds: number) {
          clock.advance(seconds);
          elapsedMs += seconds * 1000;
        },
      };
    }

    it('goes on after a step back, at nine tenths of its speed', () => {
      const { clock, sinceStart, pass } = setUp();
      clock.advance(-110 * 60);
      const seen = [60, 1, 0.5, 3600].map((seconds) => {
        pass(seconds);
        return sinceStart();
      });

      expect(seen).toEqual([54_000, 54_900, 55_350, 3_295_350]);
    });

    it('counts the time since the last question, also when the step comes later', () => {
      const { clock, sinceStart, pass } = setUp();
      pass(40);
      clock.advance(-110 * 60);
      pass(20);

      expect(sinceStart()).toBe(54_000);
    });

    it('takes the time of the clock again when it has caught up', () => {
      const { clock, sinceStart, pass } = setUp();
      clock.advance(-10);
      // Without a question in between, so the last time that was seen was before the step.
      pass(99);
      expect(sinceStart()).toBe(89_100);
      pass(2);
      expect(sinceStart()).toBe(91_000);
      pass(60);
      expect(sinceStart()).toBe(151_000);
    });

    it('follows immediately a clock that is put right again', () => {
      const { clock, sinceStart, pass } = setUp();
      clock.advance(-HOUR);
      pass(10);
      expect(sinceStart()).toBe(9000);
      clock.advance(HOUR);

      expect(sinceStart()).toBe(10_000);
    });

    it('is not moved by it while the clock does not step back', () => {
      const { clock, sinceStart, pass } = setUp();
      const seen = [0, 0.0004, 5].map((seconds) => {
        pass(seconds);
        return sinceStart();
      });
      clock.advance(1);

      expect([...seen, sinceStart()]).toEqual([0, 0, 5000, 6000]);
    });
  });

  it('is not moved by a date that the clock goes on using', () => {
    const shared = new Date(0);
    const steady = steadyClock({ now: () => shared });
    const start = steady();
    shared.setTime(1000);

    expect([start, steady()]).toEqual([0, 1000]);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('secret of the host');
      },
    ],
    ['has an invalid date', () => new Date(Number.NaN)],
    ['has nothing', () => undefined],
    ['rejects', () => Promise.reject(new Error('secret of the host'))],
    ['has a number', () => 4_102_444_800_000],
    ['has an infinite time', () => ({ getTime: () => Number.POSITIVE_INFINITY })],
  ])('refuses a clock that %s', (_, now) => {
    const steady = steadyClock({ now } as Clock);

    expect(() => steady()).toThrow(
      expect.objectContaining({
        code: 'invalid_options',
        message: expect.not.stringContaining('secret'),
      }),
    );
  });
});

describe('manualClock', () => {
  it('starts far in the future and moves to the millisecond', () => {
    const clock = manualClock();
    expect(clock.now().toISOString()).toBe('2100-01-01T00:00:00.000Z');
    clock.advance(60.001);
    expect(clock.now().toISOString()).toBe('2100-01-01T00:01:00.001Z');
    clock.advance(-60);
    expect(clock.now().toISOString()).toBe('2100-01-01T00:00:00.001Z');
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, 1e13])('does not move by %d', (seconds) => {
    const clock = manualClock();
    expect(() => clock.advance(seconds)).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
    expect(clock.now().toISOString()).toBe('2100-01-01T00:00:00.000Z');
  });
});
