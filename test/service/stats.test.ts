import { afterEach, describe, expect, it, vi } from 'vitest';
import { SCOPE, setUp } from '../support.ts';
import { FLUSH_MS, setUpUsage, turns, verifyTimes } from '../usage/support.ts';

afterEach(() => void vi.useRealTimers());

describe('stats', () => {
  it('count cache hits and misses, but no fresh reads', async () => {
    const { tokens } = setUp({ cache: { maxStaleMs: 60_000 } });
    const { value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });

    expect(tokens.verifySync(value, { scope: SCOPE })).toBeUndefined();
    expect(tokens.stats()).toEqual({ cache: { hits: 0, misses: 0 } });
    await tokens.verify(value, { scope: SCOPE });
    expect(tokens.stats().cache).toEqual({ hits: 0, misses: 1 });
    await tokens.verify(value, { scope: SCOPE });
    tokens.verifySync(value, { scope: SCOPE });
    expect(tokens.stats().cache).toEqual({ hits: 2, misses: 1 });
    await tokens.verify(value, { scope: SCOPE }, { fresh: true });
    expect(tokens.stats().cache).toEqual({ hits: 2, misses: 1 });
  });

  it('count nothing without a cache, and omit usage if it is not recorded', async () => {
    const { tokens } = setUp();
    const { value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    await tokens.verify(value, { scope: SCOPE });

    expect(tokens.stats()).toEqual({ cache: { hits: 0, misses: 0 } });
    expect(Object.isFrozen(tokens.stats())).toBe(true);
  });

  it('report how many usage counts wait to be written, and for how long', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    const setting = await setUpUsage();
    const { tokens, usage } = setting;
    expect(tokens.stats().usage).toEqual({ waiting: 0, lagMs: 0 });

    usage.break(() => Promise.reject(new Error('down')));
    await verifyTimes(setting, 2);
    vi.advanceTimersByTime(FLUSH_MS);
    await turns();
    await verifyTimes(setting, 1);
    expect(tokens.stats().usage).toEqual({ waiting: 1, lagMs: FLUSH_MS });

    usage.mend();
    vi.advanceTimersByTime(FLUSH_MS);
    await turns();
    expect(tokens.stats().usage).toEqual({ waiting: 0, lagMs: 0 });
    await verifyTimes(setting, 1);
    vi.advanceTimersByTime(1000);
    expect(tokens.stats().usage).toEqual({ waiting: 1, lagMs: 1000 });
  });
});
