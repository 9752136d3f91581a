import { describe, expect, it, vi } from 'vitest';
import { manualClock } from '../../src/testing/index.ts';
import { type Clock, steadyClock, systemClock } from '../../src/time/clock.ts';

const HOUR = 3600;

describe('systemClock', () => {
  it('returns the time of the machine', () => {
    const before = Date.now();
    const now = systemClock.now().getTime();

    expect(now).toBeGreaterThanOrEqual(before);
    expect(now).toBeLessThanOrEqual(Date.now());
  });
});

describe('steadyClock', () => {
  it.each([
    ['back by a millisecond', -0.001, 0],
    ['back by an hour', -HOUR, 0],
    ['back by two hours', -2 * HOUR, 0],
    ['back by two hours and a millisecond', -2 * HOUR - 0.001, -2 * HOUR - 0.001],
    ['back by a year', -365 * 24 * HOUR, -365 * 24 * HOUR],
    ['forward by a second', 1, 1],
    ['forward by a year', 365 * 24 * HOUR, 365 * 24 * HOUR],
  ])('ignores steps back of up to two hours and follows all others: %s', (_, step, seen) => {
    const clock = manualClock();
    const steady = steadyClock(clock);
    const start = steady();
    clock.advance(step);

    expect(steady() - start).toBe(Math.round(seen * 1000));
  });

  it('stands still after a step back until the clock has caught up', () => {
    const clock = manualClock();
    const steady = steadyClock(clock);
    const start = steady();
    const seen = [-HOUR, HOUR / 2, HOUR / 2, 1].map((step) => {
      clock.advance(step);
      return steady() - start;
    });

    expect(seen).toEqual([0, 0, 0, 1000]);
  });

  it('adds up small steps back, and follows the clock once they exceed two hours', () => {
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

  describe('with a monotonic time', () => {
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

    it('runs at nine tenths of the speed after a step back', () => {
      const { clock, sinceStart, pass } = setUp();
      clock.advance(-110 * 60);
      const seen = [60, 1, 0.5, 3600].map((seconds) => {
        pass(seconds);
        return sinceStart();
      });

      expect(seen).toEqual([54_000, 54_900, 55_350, 3_295_350]);
    });

    it('counts the time since the last reading, even if the step comes later', () => {
      const { clock, sinceStart, pass } = setUp();
      pass(40);
      clock.advance(-110 * 60);
      pass(20);

      expect(sinceStart()).toBe(54_000);
    });

    it('follows the clock again after it has caught up', () => {
      const { clock, sinceStart, pass } = setUp();
      clock.advance(-10);
      // There is no reading in between, so the last one was before the step.
      pass(99);
      expect(sinceStart()).toBe(89_100);
      pass(2);
      expect(sinceStart()).toBe(91_000);
      pass(60);
      expect(sinceStart()).toBe(151_000);
    });

    it('follows the clock immediately when it is corrected', () => {
      const { clock, sinceStart, pass } = setUp();
      clock.advance(-HOUR);
      pass(10);
      expect(sinceStart()).toBe(9000);
      clock.advance(HOUR);

      expect(sinceStart()).toBe(10_000);
    });

    it('ignores the monotonic time while the clock does not step back', () => {
      const { clock, sinceStart, pass } = setUp();
      const seen = [0, 0.0004, 5].map((seconds) => {
        pass(seconds);
        return sinceStart();
      });
      clock.advance(1);

      expect([...seen, sinceStart()]).toEqual([0, 0, 5000, 6000]);
    });
  });

  it('follows a clock that reuses one Date object', () => {
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
    ['returns an invalid date', () => new Date(Number.NaN)],
    ['returns undefined', () => undefined],
    ['rejects', () => Promise.reject(new Error('secret of the host'))],
    ['returns a number', () => 4_102_444_800_000],
    ['returns an infinite time', () => ({ getTime: () => Number.POSITIVE_INFINITY })],
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
  it('starts in the year 2100 and moves with millisecond precision', () => {
    const clock = manualClock();
    expect(clock.now().toISOString()).toBe('2100-01-01T00:00:00.000Z');
    clock.advance(60.001);
    expect(clock.now().toISOString()).toBe('2100-01-01T00:01:00.001Z');
    clock.advance(-60);
    expect(clock.now().toISOString()).toBe('2100-01-01T00:00:00.001Z');
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, 1e13])('refuses to move by %d', (seconds) => {
    const clock = manualClock();
    expect(() => clock.advance(seconds)).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
    expect(clock.now().toISOString()).toBe('2100-01-01T00:00:00.000Z');
  });
});

describe('the monotonic time of a steady clock', () => {
  it('is read again when the clock of the machine has moved by a millisecond', () => {
    const system = vi.spyOn(Date, 'now').mockReturnValue(1000);
    let elapsedMs = 5;
    const steady = steadyClock(systemClock, () => elapsedMs);
    const seen = [1000, 1000, 1001].map((time) => {
      system.mockReturnValue(time);
      steady();
      elapsedMs += 0.5;
      return steady.elapsedMs();
    });
    system.mockRestore();

    expect(seen).toEqual([5, 5, 6]);
  });

  it('is that of the machine, whatever an injected clock says', () => {
    const steady = steadyClock(manualClock());
    const before = performance.now();
    const elapsedMs = steady.elapsedMs();

    expect(elapsedMs).toBeGreaterThanOrEqual(before);
    expect(elapsedMs).toBeLessThanOrEqual(performance.now());
  });
});
