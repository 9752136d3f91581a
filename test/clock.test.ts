import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Clock, steadyClock, systemClock, withDeadline } from '../src/clock.ts';
import { manualClock } from '../src/testing/index.ts';

const HOUR = 3600;

afterEach(() => {
  vi.useRealTimers();
});

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

describe('withDeadline', () => {
  it('gives what comes in time', async () => {
    await expect(withDeadline(Promise.resolve('answer'), 10)).resolves.toBe('answer');
    await expect(withDeadline(Promise.reject(new Error('own')), 10)).rejects.toThrow('own');
  });

  it('rejects at the deadline, and not a millisecond before', async () => {
    vi.useFakeTimers();
    const outcome = vi.fn();
    withDeadline(new Promise(() => {}), 2000).catch(outcome);
    await vi.advanceTimersByTimeAsync(1999);
    expect(outcome).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(outcome.mock.calls).toEqual([[new Error('deadline')]]);
  });

  it('leaves no timer behind, and no rejection that nobody handles', async () => {
    vi.useFakeTimers();
    await withDeadline(Promise.resolve(), 2000);
    expect(vi.getTimerCount()).toBe(0);
    await withDeadline(Promise.reject(new Error('own')), 2000).catch(() => {});
    expect(vi.getTimerCount()).toBe(0);

    const late = Promise.withResolvers<never>();
    const outcome = withDeadline(late.promise, 10).catch(() => 'refused');
    await vi.advanceTimersByTimeAsync(10);
    late.reject(new Error('too late'));
    await expect(outcome).resolves.toBe('refused');
  });
});
