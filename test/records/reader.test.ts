import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type StoreFailure,
  type StoreReason,
  storeUnavailable,
  TokenError,
} from '../../src/errors.ts';
import type { TokenEvent } from '../../src/events.ts';
import type { StoreHealth } from '../../src/ports/store-health.ts';
import type { TokenStore, Unsubscribe } from '../../src/ports/token-store.ts';
import { CheckedStore } from '../../src/records/checked-store.ts';
import { CachedRecord, type CacheLimits, RecordReader } from '../../src/records/reader.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import type { IssuedToken, TokenId, TokenRecord } from '../../src/token/record.ts';
import { runs } from '../laws.ts';
import { newRecord } from '../stores/support.ts';
import {
  codeOf,
  forge,
  OTHER_SCOPE,
  QUIET,
  RecordingStore,
  recordOf,
  SCOPE,
  type Setting,
  setUp,
} from '../support.ts';

const need = { scope: SCOPE };
const STALE = { maxStaleMs: 1000 };

/** A service over a store that counts as remote, so that concurrent reads are batched. */
function setUpRemote(options: Parameters<typeof setUp>[0] = {}): Setting {
  const store = new RecordingStore(new MemoryTokenStore(), { local: false });
  const setting = setUp({ ...options, store });
  return { ...setting, store: setting.store };
}

async function issued({ tokens, store }: Setting, scopes = [SCOPE]): Promise<IssuedToken> {
  const token = await tokens.issue({ account: 'acme', scopes });
  store.takeCalls();
  return token;
}

const typesOf = (events: readonly TokenEvent[]) => events.map(({ type }) => type);
const LIMITS: CacheLimits = { maxStaleMs: 1000, maxEntries: 10, maxBytes: 1e6 };

/** A reader over a store that counts as remote, so that concurrent reads are batched. */
function readerOf(
  store: TokenStore,
  onFailure: (failure: StoreFailure) => void = () => {},
  watchHealth: StoreHealth = QUIET,
) {
  const checked = new CheckedStore(store, {
    isLocal: false,
    deadlineMs: 60_000,
    health: { ...QUIET, onFailure },
  });
  return new RecordReader(checked, LIMITS, watchHealth, () => performance.now());
}

describe('a cached record', () => {
  it('says how each value belongs to it, in any order and as often as it is asked', () => {
    const digestOf = (byte: number) => new Uint8Array(32).fill(byte);
    const pending = { prefix: 'acme', kid: 'k1', digest: digestOf(2), graceSeconds: 0 };
    const record = newRecord('a', { digest: digestOf(1), pending, previousDigest: digestOf(3) });
    const cached = new CachedRecord(record, { steady: 0, wall: 0 });
    const proofs = ['current', 'pending', 'previous', undefined] as const;
    const values = proofs.map((_, index) => ({ id: record.id, digest: digestOf(index + 1) }));

    for (const order of [
      [0, 0, 1, 2, 3],
      [3, 2, 1, 0],
      [0, 3, 0, 1, 0],
    ]) {
      const found = order.map((index) => cached.proofOf(values[index] as (typeof values)[0]));
      expect(found).toEqual(order.map((index) => proofs[index]));
    }
  });
});

describe('concurrent reads', () => {
  it('go to the store in one call', async () => {
    const setting = setUpRemote();
    const issues = Array.from({ length: 32 }, () => issued(setting));
    const values = (await Promise.all(issues)).map(({ value }) => value);

    const verdicts = await Promise.all(values.map((value) => setting.tokens.verify(value, need)));

    expect(verdicts.map(({ ok }) => ok)).toEqual(values.map(() => true));
    expect(setting.store.calls.map(({ method }) => method)).toEqual(['find']);
    expect(setting.store.calls[0]?.args[0]).toHaveLength(32);
  });

  it('of the same id read it once', async () => {
    const setting = setUpRemote();
    const { value } = await issued(setting);

    await Promise.all(Array.from({ length: 32 }, () => setting.tokens.verify(value, need)));

    expect(setting.store.calls.map(({ args }) => args[0])).toEqual([[expect.any(String)]]);
  });

  it('are sent together after a read that is running', async () => {
    const setting = setUpRemote();
    const { value } = await issued(setting);
    const store = holding(setting.store);
    const first = setting.tokens.verify(value, need);
    await turn();

    // Each starts in its own callback, like the requests of a server.
    const others = Array.from({ length: 8 }, () =>
      turn().then(() => setting.tokens.verify(value, need)),
    );
    for (let i = 0; i < 3; i++) await turn();
    store.release();
    await Promise.all([first, ...others]);

    expect(setting.store.takeCalls()).toEqual(['find', 'find']);
  });

  it('never join a read that was sent before they began', async () => {
    const setting = setUpRemote();
    const { id, value } = await issued(setting);
    const store = holding(setting.store);
    const early = setting.tokens.verify(value, need);
    await turn();
    await setting.tokens.revoke('acme', id);
    const late = setting.tokens.verify(value, need);
    await turn();
    store.release();

    expect((await early).ok).toBe(true);
    expect(await late).toMatchObject({ ok: false, reason: 'revoked' });
  });

  it('go to a local store immediately and one by one', async () => {
    const setting = setUp();
    const tokens = await Promise.all([issued(setting), issued(setting)]);

    const verdicts = tokens.map(({ value }) => setting.tokens.verify(value, need));

    expect(setting.store.takeCalls()).toEqual(['find', 'find']);
    await Promise.all(verdicts);
  });

  it('of more than 1000 ids take several calls', async () => {
    const setting = setUpRemote();
    const made = await Promise.all(Array.from({ length: 1001 }, () => issued(setting)));

    await Promise.all(made.map(({ value }) => setting.tokens.verify(value, need)));

    const sizes = setting.store.calls.map(({ args }) => (args[0] as unknown[]).length);
    expect(sizes).toEqual([1000, 1]);
  });

  it('fail together if the store fails, and later reads succeed', async () => {
    const setting = setUpRemote();
    const tokens = await Promise.all([issued(setting), issued(setting)]);
    setting.store.break('find', () => Promise.reject(new Error('down')));

    const codes = await Promise.all(
      tokens.map(({ value }) => codeOf(setting.tokens.verify(value, need))),
    );
    setting.store.mend();

    expect(codes).toEqual(['store_unavailable', 'store_unavailable']);
    expect((await setting.tokens.verify(tokens[0].value, need)).ok).toBe(true);
  });

  it('do not all fail if only a part of the store is down', async () => {
    const setting = setUpRemote();
    const [lost, there] = await Promise.all([issued(setting), issued(setting)]);
    const { inner } = setting.store;
    setting.store.break('find', (async (ids: readonly TokenId[]) => {
      if (ids.includes(lost.id)) throw new Error('this part is down');
      return inner.find(ids);
    }) as never);

    const failing = setting.tokens.verify(lost.value, need);
    const working = setting.tokens.verify(there.value, need);

    expect(await codeOf(failing)).toBe('store_unavailable');
    expect((await working).ok).toBe(true);
  });

  it.each([
    [49, ['find', 'find', 'find']],
    [50, ['find']],
    [1000, ['find']],
  ])(
    'that fail after %i ms make the calls %j: only early failures are retried',
    async (ms, calls) => {
      const setting = setUpRemote();
      const tokens = await Promise.all([issued(setting), issued(setting)]);
      const clock = vi.spyOn(performance, 'now').mockReturnValue(1000);
      setting.store.break('find', async () => {
        clock.mockReturnValue(1000 + ms);
        throw new Error('down');
      });

      const codes = tokens.map(({ value }) => codeOf(setting.tokens.verify(value, need)));

      expect(await Promise.all(codes)).toEqual(['store_unavailable', 'store_unavailable']);
      clock.mockRestore();
      expect(setting.store.takeCalls()).toEqual(calls);
    },
  );

  it.each<[string, (record: TokenRecord) => unknown]>([
    ['undefined', () => undefined],
    ['an object', (record) => ({ 0: record, length: 1 })],
    ['an empty list', () => []],
    ['a list of two', (record) => [record, record]],
  ])('fail with store_corrupt if the store returns %s', async (_, answerWith) => {
    const setting = setUpRemote();
    const { id, value } = await issued(setting);
    const record = await recordOf(setting.store.inner, id);

    setting.store.break('find', (async () => answerWith(record)) as never);
    expect(await codeOf(setting.tokens.verify(value, need))).toBe('store_corrupt');
    setting.store.break('find', (async () => [record]) as never);
    expect((await setting.tokens.verify(value, need)).ok).toBe(true);
  });

  it.each<[string, (broken: TokenId) => (ids: readonly TokenId[]) => Promise<unknown>]>([
    [
      'a store that returns it',
      (broken) => async (ids) => ids.map((id) => (id === broken ? { id } : undefined)),
    ],
    [
      'a store that rejects the whole call',
      (broken) => async (ids) => {
        if (ids.includes(broken)) throw new TokenError('store_corrupt', 'malformed');
        return ids.map(() => undefined);
      },
    ],
  ])('do not fail because of one malformed record: %s', async (_, answerWith) => {
    const setting = setUpRemote();
    const [broken, whole] = await Promise.all([issued(setting), issued(setting)]);
    setting.store.break('find', answerWith(broken.id));

    const reading = setting.tokens.verify(broken.value, need);
    const other = setting.tokens.verify(whole.value, need);

    expect(await codeOf(reading)).toBe('store_corrupt');
    expect(await other).toMatchObject({ ok: false, reason: 'unknown' });
  });
});

/** Lets the store read immediately, but answer only after `release`. */
function holding(store: RecordingStore): { release(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  store.break('find', (async (ids: readonly TokenId[]) => {
    const found = await store.inner.find(ids);
    await promise;
    return found;
  }) as never);
  return { release: resolve };
}

describe('the cache', () => {
  it('is off by default', async () => {
    const setting = setUpRemote();
    const { value } = await issued(setting);

    for (let i = 0; i < 3; i++) await setting.tokens.verify(value, need);

    expect(setting.store.takeCalls()).toEqual(['find', 'find', 'find']);
  });

  it('serves a record for less than maxStaleMs, however often it is used', async () => {
    const setting = setUpRemote({ cache: STALE });
    const { value } = await issued(setting);
    const calls: number[] = [];
    for (let i = 0; i < 5; i++) {
      await setting.tokens.verify(value, need);
      calls.push(setting.store.takeCalls().length);
      setting.clock.advance(0.3);
    }

    expect(calls).toEqual([1, 0, 0, 0, 1]);
  });

  it.each([
    [0.999, 0],
    [1, 1],
  ])('with a maxStaleMs of 1000 causes, after %s s, %s reads', async (seconds, reads) => {
    const setting = setUpRemote({ cache: STALE });
    const { value } = await issued(setting);
    await setting.tokens.verify(value, need);
    setting.store.takeCalls();
    setting.clock.advance(seconds);

    await setting.tokens.verify(value, need);

    expect(setting.store.takeCalls()).toHaveLength(reads);
  });

  it('also measures age by the clock of the machine if the given one stands still', async () => {
    const setting = setUpRemote({ cache: STALE });
    const { value } = await issued(setting);
    await setting.tokens.verify(value, need);
    setting.store.takeCalls();
    const now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now + 1001);

    await setting.tokens.verify(value, need);
    clock.mockRestore();

    expect(setting.store.takeCalls()).toEqual(['find']);
  });

  it('measures age from the start of the read, not from its answer', async () => {
    const setting = setUpRemote({ cache: STALE });
    const { value } = await issued(setting);
    const store = holding(setting.store);
    const slow = setting.tokens.verify(value, need);
    await turn();
    setting.clock.advance(1);
    store.release();
    await slow;
    setting.store.mend();
    setting.store.takeCalls();

    await setting.tokens.verify(value, need);

    expect(setting.store.takeCalls()).toEqual(['find']);
  });

  it('lets a cached token expire on time, without a read', async () => {
    const setting = setUpRemote({ cache: { maxStaleMs: 60_000 } });
    const { value } = await setting.tokens.issue({
      account: 'acme',
      scopes: [SCOPE],
      ttlSeconds: 1,
    });
    expect((await setting.tokens.verify(value, need)).ok).toBe(true);
    setting.store.takeCalls();
    setting.clock.advance(1);

    expect(await setting.tokens.verify(value, need)).toMatchObject({ reason: 'expired' });
    expect(setting.store.takeCalls()).toEqual([]);
  });

  it.each<[string, (setting: Setting, id: TokenId) => Promise<unknown>, object]>([
    ['revoke', ({ tokens }, id) => tokens.revoke('acme', id), { reason: 'revoked' }],
    ['revokeAll', ({ tokens }) => tokens.revokeAll('acme'), { reason: 'revoked' }],
    [
      'modify',
      ({ tokens }, id) => tokens.modify('acme', id, { scopes: [OTHER_SCOPE] }),
      { reason: 'insufficient_scope' },
    ],
    [
      'patch',
      ({ tokens }, id) => tokens.patch('acme', id, { scopes: [OTHER_SCOPE] }),
      { reason: 'insufficient_scope' },
    ],
    [
      'suspension',
      ({ tokens }, id) => tokens.patch('acme', id, { suspended: true }),
      { reason: 'suspended' },
    ],
    ['rotate', ({ tokens }, id) => tokens.rotate('acme', id), { reason: 'unknown' }],
  ])('shows a %s of the same service immediately', async (_, change, refusal) => {
    const setting = setUpRemote({ cache: STALE });
    const { id, value } = await issued(setting);
    await setting.tokens.verify(value, need);

    await change(setting, id);

    expect(await setting.tokens.verify(value, need)).toMatchObject({ ok: false, ...refusal });
  });

  it('shows a change of another process after maxStaleMs', async () => {
    const setting = setUpRemote({ cache: STALE });
    const { id, value } = await issued(setting);
    await setting.tokens.verify(value, need);
    await setting.store.inner.revoke(id, 'acme', setting.clock.now());

    expect((await setting.tokens.verify(value, need)).ok).toBe(true);
    setting.clock.advance(1);
    expect((await setting.tokens.verify(value, need)).ok).toBe(false);
  });

  it('is skipped with fresh: true, which also updates it', async () => {
    const setting = setUpRemote({ cache: STALE });
    const { id, value } = await issued(setting);
    await setting.tokens.verify(value, need);
    await setting.store.inner.revoke(id, 'acme', setting.clock.now());

    expect((await setting.tokens.verify(value, need)).ok).toBe(true);
    expect((await setting.tokens.verify(value, need, { fresh: true })).ok).toBe(false);
    expect((await setting.tokens.verify(value, need)).ok).toBe(false);
  });

  it('does not store a record that was read before a change and arrives after it', async () => {
    const setting = setUpRemote({ cache: STALE });
    const { id, value } = await issued(setting);
    const store = holding(setting.store);
    const early = setting.tokens.verify(value, need);
    await turn();
    setting.store.mend();
    await setting.tokens.revoke('acme', id);
    store.release();

    expect((await early).ok).toBe(true);
    expect((await setting.tokens.verify(value, need)).ok).toBe(false);
  });

  it('accepts the new value of a token that was rotated elsewhere immediately', async () => {
    const here = setUpRemote({ cache: STALE });
    const there = setUp({ store: here.store, clock: here.clock });
    const { id, value } = await issued(here);
    await here.tokens.verify(value, need);

    const rotated = await there.tokens.rotate('acme', id);

    expect((await here.tokens.verify(rotated.value, need)).ok).toBe(true);
  });

  it('serves both values of a token in its grace period, and reads the store for any other value', async () => {
    const setting = setUpRemote({ cache: STALE });
    const { id, value } = await issued(setting);
    const rotated = await setting.tokens.rotate('acme', id, { graceSeconds: 60 });
    await setting.tokens.verify(rotated.value, need);
    setting.store.takeCalls();

    for (const good of [value, rotated.value]) {
      expect((await setting.tokens.verify(good, need)).ok).toBe(true);
    }
    expect(setting.store.takeCalls()).toEqual([]);

    expect((await setting.tokens.verify(forge(id), need)).ok).toBe(false);
    expect(setting.store.takeCalls()).toEqual(['find']);
  });

  it('reads a token once for 32 callers that arrive during the read', async () => {
    const setting = setUpRemote({ cache: STALE });
    const { value } = await issued(setting);
    const store = holding(setting.store);
    const verdicts: Promise<{ ok: boolean }>[] = [];
    for (let i = 0; i < 32; i++) {
      verdicts.push(setting.tokens.verify(value, need));
      await turn();
    }
    store.release();

    expect((await Promise.all(verdicts)).every(({ ok }) => ok)).toBe(true);
    expect(setting.store.takeCalls()).toEqual(['find']);
  });

  it('does not use the answer of a running read that becomes too old meanwhile', async () => {
    const setting = setUpRemote({ cache: STALE });
    const { id, value } = await issued(setting);
    const store = holding(setting.store);
    const early = setting.tokens.verify(value, need);
    await turn();
    const joined = setting.tokens.verify(value, need);
    await setting.store.inner.revoke(id, 'acme', setting.clock.now());
    setting.store.mend();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 1001);
    store.release();

    expect((await early).ok).toBe(true);
    expect((await joined).ok).toBe(false);
    clock.mockRestore();
  });

  it('holds maxEntries tokens, and evicts the one that was read longest ago', async () => {
    const setting = setUpRemote({ cache: { maxStaleMs: 1000, maxEntries: 2 } });
    const values: string[] = [];
    for (let i = 0; i < 3; i++) values.push((await issued(setting)).value);
    for (const value of values) await setting.tokens.verify(value, need);
    setting.store.takeCalls();

    for (const value of values.slice(1)) await setting.tokens.verify(value, need);
    expect(setting.store.takeCalls()).toEqual([]);
    await setting.tokens.verify(values[0] as string, need);
    expect(setting.store.takeCalls()).toEqual(['find']);
  });

  it('holds maxBytes, and counts a list that tokens share once', async () => {
    const setting = setUpRemote({ cache: { maxStaleMs: 60_000, maxBytes: 1_048_576 } });
    const large = (token: number) =>
      Array.from({ length: 1000 }, (_, i) => `GET:shop.example/t${token}/${1000 + i}`);
    const issue = (scopes: readonly string[]) => setting.tokens.issue({ account: 'a', scopes });
    const heldOf = async (values: readonly string[]) => {
      for (const value of values) await setting.tokens.verify(value, need);
      setting.store.takeCalls();
      let held = 0;
      for (const value of [...values].reverse()) {
        if (setting.tokens.verifySync(value, need) !== undefined) held += 1;
      }
      return held;
    };
    const distinct: string[] = [];
    for (let i = 0; i < 10; i++) distinct.push((await issue(large(i))).value);
    const alike: string[] = [];
    for (let i = 0; i < 100; i++) alike.push((await issue(large(99))).value);

    const few = await heldOf(distinct);
    expect(few).toBeGreaterThanOrEqual(2);
    expect(few).toBeLessThan(5);
    expect(await heldOf(alike)).toBe(100);
  });

  it('evicts a token that was read again after the others', async () => {
    const setting = setUpRemote({ cache: { maxStaleMs: 1000, maxEntries: 2 } });
    const values: string[] = [];
    for (let i = 0; i < 3; i++) values.push((await issued(setting)).value);
    const [first, second, third] = values as [string, string, string];
    for (const value of [first, second]) await setting.tokens.verify(value, need);
    await setting.tokens.verify(first, need, { fresh: true });
    await setting.tokens.verify(third, need);
    setting.store.takeCalls();

    await setting.tokens.verify(first, need);
    expect(setting.store.takeCalls()).toEqual([]);
    await setting.tokens.verify(second, need);
    expect(setting.store.takeCalls()).toEqual(['find']);
  });

  it('also serves records of a local store', async () => {
    const setting = setUp({ cache: STALE });
    const { value } = await issued(setting);

    for (let i = 0; i < 3; i++) await setting.tokens.verify(value, need);

    expect(setting.store.takeCalls()).toEqual(['find']);
  });

  it('does not reuse a read that failed', async () => {
    const setting = setUpRemote({ cache: STALE });
    const { value } = await issued(setting);
    setting.store.break('find', () => Promise.reject(new Error('down')));
    expect(await codeOf(setting.tokens.verify(value, need))).toBe('store_unavailable');

    setting.store.mend();
    expect((await setting.tokens.verify(value, need)).ok).toBe(true);
  });

  it('does not reuse the running read of another token', async () => {
    const setting = setUpRemote({ cache: STALE });
    const [one, other] = [await issued(setting), await issued(setting)];
    const store = holding(setting.store);
    const first = setting.tokens.verify(one.value, need);
    await turn();
    const second = setting.tokens.verify(other.value, need);
    await turn();
    store.release();

    expect([(await first).ok, (await second).ok]).toEqual([true, true]);
    expect(setting.store.takeCalls()).toEqual(['find', 'find']);
  });

  it('does not cache that an id does not exist', async () => {
    const setting = setUpRemote({ cache: STALE });
    const { id, value } = await issued(setting);
    const record = await recordOf(setting.store.inner, id);
    setting.store.break('find', async () => [undefined]);
    expect((await setting.tokens.verify(value, need)).ok).toBe(false);
    setting.store.break('find', async () => [record]);

    expect((await setting.tokens.verify(value, need)).ok).toBe(true);
  });

  it('is not affected by a caller that changes a verdict', async () => {
    const setting = setUpRemote({ cache: STALE });
    const { value } = await setting.tokens.issue({
      account: 'acme',
      scopes: [SCOPE],
      metadata: { team: { name: 'a' } },
    });
    for (let i = 0; i < 2; i++) {
      const verdict = await setting.tokens.verify(value, need);
      if (!verdict.ok) throw new Error('refused');
      const { token } = verdict;
      expect(() => Object.assign(token.metadata?.['team'] as object, { name: 'b' })).toThrow();
      expect(() => (token.scopes as string[]).push(OTHER_SCOPE)).toThrow();
      token.expiresAt.setTime(0);
      token.createdAt.setTime(0);
    }
    const verdict = await setting.tokens.verify(value, need);
    expect(verdict).toMatchObject({ ok: true, token: { metadata: { team: { name: 'a' } } } });
  });

  it.each([
    ['maxStaleMs', -1],
    ['maxStaleMs', 60_001],
    ['maxStaleMs', 0.5],
    ['maxEntries', 0],
    ['maxAge', 5],
  ])('refuses %s of %s', async (option, value) => {
    expect(await codeOf(async () => setUp({ cache: { [option]: value } }))).toBe('invalid_options');
  });
});

/** A store whose hints are sent by the test. */
class HintingStore extends RecordingStore {
  listener: ((ids: readonly TokenId[] | 'all') => void) | undefined;
  failures = 0;
  unsubscribed = 0;

  async watch(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe> {
    if (this.failures > 0) {
      this.failures -= 1;
      throw new TokenError('store_unavailable', 'not yet');
    }
    this.listener = onChange;
    return async () => {
      this.unsubscribed += 1;
    };
  }
}

describe('hints of the store', () => {
  function setUpHinting(options: Parameters<typeof setUp>[0] = {}) {
    const store = new HintingStore(new MemoryTokenStore(), { local: false });
    const clock = manualClock();
    const setting = setUp({ clock, cache: STALE, ...options });
    const tokens = new (setting.tokens.constructor as new (options: object) => Setting['tokens'])({
      keys: [{ kid: 'k1', secret: new Uint8Array(32).map((_, i) => i), status: 'active' }],
      prefix: 'acme',
      clock,
      cache: STALE,
      ...options,
      store,
    });
    return { store, clock, tokens };
  }

  it('are subscribed to only if the cache is on', async () => {
    expect(setUpHinting({ cache: {} }).store.listener).toBeUndefined();
    expect(setUpHinting().store.listener).toBeDefined();
  });

  it.each<[string, (id: TokenId) => readonly TokenId[] | 'all', boolean]>([
    ['its id', (id) => [id], false],
    ['all ids', () => 'all', false],
    ['another id', () => ['NobodyHasThisId0000000' as TokenId], true],
  ])('about %s let the cache go on serving a token: $2', async (_, hint, isServed) => {
    const { store, clock, tokens } = setUpHinting();
    const { id, value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    await turn();
    await tokens.verify(value, need);
    await store.inner.revoke(id, 'acme', clock.now());

    store.listener?.(hint(id));

    expect((await tokens.verify(value, need)).ok).toBe(isServed);
  });

  it('never cause a read, and never fill the cache', async () => {
    const { store, tokens } = setUpHinting();
    const { id, value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    store.takeCalls();

    store.listener?.([id]);
    store.listener?.('all');

    expect(store.takeCalls()).toEqual([]);
    expect((await tokens.verify(value, need)).ok).toBe(true);
    expect(store.takeCalls()).toEqual(['find']);
  });

  it('are requested again each second until the store can send them, and canceled by close', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const { store, tokens } = setUpHinting();
    store.failures = 2;
    store.listener = undefined;
    const other = readerOf(store);
    await vi.advanceTimersByTimeAsync(999);
    expect(store.failures).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(store.failures).toBe(0);
    expect(store.listener).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1000);
    vi.useRealTimers();

    expect(store.listener).toBeDefined();
    await other.close();
    await tokens.close();
    expect(store.unsubscribed).toBe(2);
  });
});

const RECORD = newRecord('schedule');
const ID = RECORD.id;

describe('a reader', () => {
  const now = Date.UTC(2100, 0);
  const holdsNow = async (reader: RecordReader): Promise<boolean> => {
    await reader.read(ID, now);
    return reader.cached(ID, now) !== undefined;
  };
  const storeOf = (more: Partial<TokenStore> = {}): TokenStore =>
    ({
      find: async (ids: readonly TokenId[]) => ids.map((id) => ({ ...RECORD, id })),
      ...more,
    }) as unknown as TokenStore;

  it('caches nothing after close, neither old records nor those read later', async () => {
    const reader = readerOf(storeOf());
    expect(await holdsNow(reader)).toBe(true);

    await reader.close();
    expect(reader.cached(ID, now)).toBeUndefined();
    expect(await holdsNow(reader)).toBe(false);
  });

  it.each<[readonly TokenId[] | 'all', boolean]>([
    ['all', false],
    [[ID], false],
    [['NobodyHasThisId0000000' as TokenId], true],
    [[], true],
  ])('that evicts %j during a read caches the record: %s', async (ids, isKept) => {
    const reader = readerOf(storeOf());
    const reading = reader.read(ID, now);
    await new Promise((resolve) => process.nextTick(resolve));
    reader.evict(ids);

    await reading;
    expect(reader.cached(ID, now) !== undefined).toBe(isKept);
  });

  it('drops the records that it read before its subscription began', async () => {
    const { promise, resolve } = Promise.withResolvers<Unsubscribe>();
    const reader = readerOf(storeOf({ watch: () => promise }));
    expect(await holdsNow(reader)).toBe(true);

    resolve(async () => {});
    await turn();
    expect(reader.cached(ID, now)).toBeUndefined();
    expect(await holdsNow(reader)).toBe(true);
  });

  it.each<[StoreReason, number | undefined, boolean]>([
    ['unreachable', 1000, false],
    ['timeout', 1000, false],
    ['pooler', 60_000, true],
    ['unsupported', undefined, true],
  ])('watches again after %s in %s ms, and reports it: %s', async (reason, ms, isReported) => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const reports: unknown[] = [];
    const watch = vi
      .fn(async (): Promise<Unsubscribe> => async () => {})
      .mockRejectedValueOnce(storeUnavailable(reason));
    readerOf(storeOf({ watch }), undefined, {
      onFailure: ({ details }) => reports.push(details),
      onAnswer: () => reports.push('heard'),
    });
    await vi.advanceTimersByTimeAsync((ms ?? 3_600_000) - 1);
    expect(watch).toHaveBeenCalledTimes(1);
    expect(reports).toEqual(isReported ? [{ reason, store: 'watch' }] : []);

    await vi.advanceTimersByTimeAsync(1);
    expect(watch).toHaveBeenCalledTimes(ms === undefined ? 1 : 2);
    expect(reports.at(-1)).toEqual(ms === undefined ? { reason, store: 'watch' } : 'heard');
  });

  it('reports that the store no longer hears of changes, and that it hears again', async () => {
    const reports: unknown[] = [];
    let tell: (failure: TokenError | undefined) => void = () => {};
    const watch: TokenStore['watch'] = async (_, onTrouble = () => {}) => {
      tell = onTrouble;
      return async () => {};
    };
    const reader = readerOf(storeOf({ watch }), undefined, {
      onFailure: ({ details }) => reports.push(details),
      onAnswer: () => reports.push('heard'),
    });
    await turn();
    reports.length = 0;
    tell(storeUnavailable('pooler'));
    tell(undefined);
    expect(reports).toEqual([{ reason: 'pooler', store: 'watch' }, 'heard']);

    await reader.close();
    tell(storeUnavailable('pooler'));
    expect(reports).toHaveLength(2);
  });

  it('that is closed while it subscribes reports no failure of that', async () => {
    const { promise, reject } = Promise.withResolvers<Unsubscribe>();
    const reports: unknown[] = [];
    const reader = readerOf(storeOf({ watch: () => promise }), undefined, {
      onFailure: ({ details }) => reports.push(details),
      onAnswer: () => reports.push('heard'),
    });
    await reader.close();

    reject(storeUnavailable('pooler'));
    await turn();
    expect(reports).toEqual([]);
  });

  it('that is closed while it subscribes unsubscribes as soon as the store answers', async () => {
    const { promise, resolve } = Promise.withResolvers<Unsubscribe>();
    const unsubscribe = vi.fn(async () => {});
    const reader = readerOf(storeOf({ watch: () => promise }));
    await reader.close();

    resolve(unsubscribe);
    await turn();
    expect(unsubscribe).toHaveBeenCalledTimes(1);
  });

  it.each([
    [[], []],
    [['b'], ['store_corrupt']],
  ])('reports the malformed records of one read once: %j', async (bad, reports) => {
    const codes: unknown[] = [];
    const ids = ['a', 'b', 'c'].map((letter) => letter.repeat(22) as TokenId);
    const find = async (asked: readonly TokenId[]) =>
      asked.map((id) => ({
        ...RECORD,
        id,
        version: bad.includes(id[0] as never) ? 0 : 1,
      }));
    const reader = readerOf(storeOf({ find }), ({ code }) => codes.push(code));

    const read = await Promise.allSettled(ids.map((id) => reader.read(id, now)));
    expect(read.map(({ status }) => status === 'rejected')).toEqual(
      ids.map((id) => bad.includes(id[0] as never)),
    );
    expect(codes).toEqual(reports);
  });
});

describe('no interleaving of reads and revokes', () => {
  const schedules = fc.array(fc.nat(9), { minLength: 4, maxLength: 40 });

  it('lets a read outlive a revoke', async () => {
    await fc.assert(
      fc.asyncProperty(schedules, async (schedule) => {
        expect(await acceptedTooLate(schedule)).toBe(0);
      }),
      runs(2),
    );
  });

  it('the check finds a cache that evicts before a revoke and not after it (the control)', async () => {
    const found = await fc.check(
      fc.asyncProperty(schedules, async (schedule) => {
        expect(await acceptedTooLate(schedule, 'before')).toBe(0);
      }),
      { numRuns: 2000, endOnFailure: true },
    );
    expect(found.failed).toBe(true);
  });
});

/**
 * Runs a schedule of verifies, revokes (by this and by another process), hints and steps of time over a
 * store. The schedule decides when each call takes effect and when its answer arrives. Resolves to the
 * number of verifies that accepted the token too late: they began after a revoke of this process had
 * resolved, or at least `maxStaleMs` after a revoke of another process.
 */
async function acceptedTooLate(
  schedule: readonly number[],
  evicts: 'before' | 'after' = 'after',
): Promise<number> {
  const clock = manualClock();
  const pending: (() => void)[] = [];
  const phase = () => new Promise<void>((resolve) => pending.push(resolve));
  let record = RECORD;
  const store = {
    async find(ids: readonly TokenId[]) {
      await phase();
      const seen = record;
      await phase();
      return ids.map(() => seen);
    },
  } as unknown as TokenStore;
  const reader = readerOf(store);
  let isRevoked = false;
  let goneFrom = Number.POSITIVE_INFINITY;
  let tooLate = 0;

  const revokeHere = async () => {
    if (evicts === 'before') reader.evict([ID]);
    await phase();
    record = { ...record, revokedAt: clock.now() };
    await phase();
    if (evicts === 'after') reader.evict([ID]);
    isRevoked = true;
  };
  const verify = async () => {
    const began = { isRevoked, isGone: clock.now().getTime() >= goneFrom };
    const now = clock.now().getTime();
    const found = reader.cached(ID, now)?.record ?? (await reader.load(ID, now));
    if (found?.revokedAt === undefined && (began.isRevoked || began.isGone)) tooLate += 1;
  };
  const running: Promise<void>[] = [];
  for (const [index, choice] of schedule.entries()) {
    if (choice < 3) running.push(verify());
    else if (choice === 3 && index % 3 === 0) running.push(revokeHere());
    else if (choice === 4 && index % 3 === 0) {
      record = { ...record, revokedAt: clock.now() };
      goneFrom = Math.min(goneFrom, clock.now().getTime() + 1000);
    } else if (choice === 5) clock.advance(0.4);
    else if (choice === 6) reader.evict('all');
    else pending.splice((choice * 7 + index) % Math.max(1, pending.length), 1)[0]?.();
    await turn();
  }
  while (pending.length > 0) {
    pending.splice(0, 1)[0]?.();
    await turn();
  }
  await Promise.all(running);
  await verifyAll(verify, pending);
  return tooLate;
}

async function verifyAll(verify: () => Promise<void>, pending: (() => void)[]): Promise<void> {
  const last = verify();
  for (let i = 0; i < 3; i++) {
    await turn();
    for (const release of pending.splice(0)) release();
  }
  await last;
}

describe('a value that a rotation replaced', () => {
  it.each([
    [0, 0, false, ['reused']],
    [60, 0, true, []],
    [60, 59.999, true, []],
    [60, 60, false, ['reused']],
    [60, 3600, false, ['reused']],
  ])(
    'with a grace period of %s s, after %s s: accepted %s, events %j',
    async (graceSeconds, after, isAccepted, types) => {
      const events: TokenEvent[] = [];
      const setting = setUp({ onEvent: (event) => events.push(event) });
      const { id, value } = await issued(setting);
      const rotated = await setting.tokens.rotate('acme', id, { graceSeconds });
      setting.clock.advance(after);

      const verdict = await setting.tokens.verify(value, need);

      expect(verdict.ok).toBe(isAccepted);
      expect(typesOf(events).filter((type) => type === 'reused')).toEqual(types);
      expect((await setting.tokens.verify(rotated.value, need)).ok).toBe(true);
    },
  );

  it('emits reused with the id but not the value, and a listener that throws has no effect', async () => {
    const events: TokenEvent[] = [];
    const setting = setUp({
      onEvent: (event) => {
        events.push(event);
        throw new Error('listener');
      },
    });
    const { id, value } = await issued(setting);
    await setting.tokens.rotate('acme', id);

    expect(await setting.tokens.verify(value, need)).toEqual({ ok: false, reason: 'unknown' });
    expect(events).toContainEqual({ type: 'reused', id, account: 'acme', at: setting.clock.now() });
  });

  it('the value of another service emits no reused event', async () => {
    const events: TokenEvent[] = [];
    const setting = setUp({ onEvent: (event) => events.push(event) });
    const other = setUp();
    const { value } = await issued(other);

    expect((await setting.tokens.verify(value, need)).ok).toBe(false);
    expect(typesOf(events)).toEqual(['refused']);
  });
});
