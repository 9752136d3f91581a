import { afterEach, describe, expect, it, vi } from 'vitest';
import { DeadlineError } from '../../src/errors.ts';
import { withDeadline } from '../../src/time/deadline.ts';

afterEach(() => {
  vi.useRealTimers();
});

describe('withDeadline', () => {
  it('settles like a promise that settles in time', async () => {
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
    expect(outcome.mock.calls).toEqual([[expect.any(DeadlineError)]]);
  });

  it('leaves no timer and no unhandled rejection behind', async () => {
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
