import { channel } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { storeUnavailable } from '../src/errors.ts';
import type { TokenEvent, TokenEventType } from '../src/events.ts';
import { bearerGuard } from '../src/http/index.ts';
import type { TokenServiceOptions } from '../src/inputs/options.ts';
import { ScopeCatalog } from '../src/scope/index.ts';
import type { TokenService } from '../src/service.ts';
import { MemoryTokenStore } from '../src/stores/memory/index.ts';
import { forge, NO_ID, OTHER_SCOPE, RecordingStore, SCOPE, setUp } from './support.ts';

const account = 'ada';
const need = { scope: SCOPE };

function setUpEvents(options: Partial<TokenServiceOptions> = {}) {
  const events: TokenEvent[] = [];
  const setting = setUp({ onEvent: (event) => events.push(event), ...options });
  const issue = () => setting.tokens.issue({ account, scopes: [SCOPE] });
  /** The events that are emitted during `work`. */
  const emittedBy = async (work: () => Promise<unknown>) => {
    events.length = 0;
    await work().catch(() => {});
    return [...events];
  };
  return { ...setting, issue, emittedBy, at: setting.clock.now() };
}

describe('events', () => {
  it('report each change with id, account and time', async () => {
    const { tokens, issue, emittedBy, at } = setUpEvents();
    const { id } = await issue();

    expect(await emittedBy(issue)).toEqual([
      { type: 'issued', id: expect.any(String), account, at },
    ]);
    expect(await emittedBy(() => tokens.modify(account, id, { scopes: [SCOPE] }))).toEqual([
      { type: 'modified', id, account, at },
    ]);
    expect(await emittedBy(() => tokens.patch(account, id, { name: 'deploy' }))).toEqual([
      { type: 'modified', id, account, at },
    ]);
    expect(await emittedBy(() => tokens.rotate(account, id))).toEqual([
      { type: 'rotated', id, account, at },
    ]);
    const onFirstUse = { activate: 'first-use' } as const;
    expect(await emittedBy(() => tokens.rotate(account, id, onFirstUse))).toEqual([
      { type: 'rotated', pending: true, id, account, at },
    ]);
    expect(await emittedBy(() => tokens.rotate(account, id, { cancel: true }))).toEqual([
      { type: 'modified', id, account, at },
    ]);
    expect(await emittedBy(() => tokens.revoke(account, id))).toEqual([
      { type: 'revoked', id, account, at },
    ]);
    expect(await emittedBy(() => tokens.revokeAll(account))).toEqual([
      { type: 'revoked_all', account, count: 1, at },
    ]);
    expect(await emittedBy(() => tokens.purge({ before: at }))).toEqual([
      { type: 'purged', count: 0, at },
    ]);
  });

  it.each<[string, (tokens: TokenService, id: string) => Promise<unknown>]>([
    ['a change as a dry run', (t, id) => t.patch(account, id, { name: 'x' }, { dryRun: true })],
    [
      'a change with a stale version',
      (t, id) => t.patch(account, id, { name: 'x' }, { ifVersion: 7 }),
    ],
    ['a revocation by another account', (t, id) => t.revoke('eve', id)],
    ['the revocation of an unknown token', (t) => t.revoke(account, NO_ID)],
    ['reading', (t, id) => t.get(account, id)],
    ['listing', (t) => t.list({ account })],
    [
      'canceling a rotation that is not pending',
      (t, id) => t.rotate(account, id, { cancel: true }),
    ],
    ['explaining', (t, id) => t.explain(account, id, need)],
    ['bad input', (t) => t.issue({ account, scopes: [] })],
  ])('are not emitted for %s', async (_, work) => {
    const { tokens, issue, emittedBy } = setUpEvents();
    const { id } = await issue();

    expect(await emittedBy(() => work(tokens, id))).toEqual([]);
  });

  it.each<[string, (tokens: TokenService, id: string) => Promise<unknown>, number]>([
    ['reading a token', (t, id) => t.get(account, id), 1],
    ['listing', (t) => t.list({ account }), 3],
    ['a page', (t) => t.list({ account, limit: 2 }), 2],
    ['a change', (t, id) => t.patch(account, id, { name: 'x' }), 1],
    ['a replacement', (t, id) => t.modify(account, id, { scopes: [SCOPE] }), 1],
    ['a dry run', (t, id) => t.patch(account, id, { name: 'x' }, { dryRun: true }), 1],
    ['a rotation, whose value is new', (t, id) => t.rotate(account, id), 0],
    ['reading an unknown token', (t) => t.get(account, NO_ID), 0],
    ['an empty list', (t) => t.list({ account: 'eve' }), 0],
    ['verifying', async (t, id) => t.verify((await t.get(account, id))?.value ?? '', need), 1],
    ['introspecting', (t) => t.introspect('x'), 0],
  ])('report how many values %s reveals, if values can be revealed', async (_, work, count) => {
    for (const reveal of ['always', 'once'] as const) {
      const { tokens, issue, emittedBy, at } = setUpEvents({ reveal });
      const [{ id }] = [await issue(), await issue(), await issue()];
      const emitted = await emittedBy(() => work(tokens, id));

      const shown = emitted.filter(({ type }) => type === 'revealed');
      const isShown = reveal === 'always' && count > 0;
      expect(shown).toEqual(isShown ? [{ type: 'revealed', account, count, at }] : []);
    }
  });

  it('report an accepted value with the scope that granted access', async () => {
    const { tokens, issue, emittedBy, at } = setUpEvents();
    const { id, value } = await issue();

    expect(await emittedBy(() => tokens.verify(value, need))).toEqual([
      { type: 'verified', id, account, grantedBy: SCOPE, at },
    ]);
  });

  it('report an introspected value only if it is malformed', async () => {
    const { tokens, emittedBy, at } = setUpEvents();
    const foreign = await setUp().tokens.issue({ account, scopes: [SCOPE] });

    expect(await emittedBy(() => tokens.introspect(foreign.value))).toEqual([]);
    expect(await emittedBy(() => tokens.introspect('nonsense'))).toStrictEqual([
      { type: 'refused', reason: 'malformed', detail: 'other_form', at },
    ]);
  });

  it('report each refusal with what is known about the token', async () => {
    const { tokens, issue, emittedBy, clock, at } = setUpEvents();
    const [live, revoked] = [await issue(), await issue()];
    await tokens.revoke(account, revoked.id);
    const foreign = await setUp().tokens.issue({ account, scopes: [SCOPE] });
    const known = { id: live.id, account };
    const refused = (value: string, asked: Parameters<TokenService['verify']>[1] = need) =>
      emittedBy(() => tokens.verify(value, asked));

    expect(await refused('nonsense')).toStrictEqual([
      { type: 'refused', reason: 'malformed', detail: 'other_form', at },
    ]);
    expect(await refused(foreign.value)).toStrictEqual([
      { type: 'refused', reason: 'unknown', id: foreign.id, at },
    ]);
    expect(await refused(forge(live.id))).toStrictEqual([
      { type: 'refused', reason: 'unknown', ...known, at },
    ]);
    expect(await refused(revoked.value)).toStrictEqual([
      { type: 'refused', reason: 'revoked', id: revoked.id, account, at },
    ]);
    expect(await refused(live.value, { scope: OTHER_SCOPE })).toEqual([
      { type: 'refused', reason: 'insufficient_scope', ...known, needed: OTHER_SCOPE, at },
    ]);
    const ambiguous = { method: 'GET', domain: 'shop.example', target: '/a/../b' };
    expect(await refused(live.value, ambiguous)).toEqual([
      { type: 'refused', reason: 'ambiguous_request', detail: 'path_dot_segment', ...known, at },
    ]);
    const withValue = { method: 'PUT', domain: 'shop.example', target: `/a/${live.value}` };
    expect(await refused(live.value, withValue)).toEqual([
      {
        type: 'refused',
        reason: 'insufficient_scope',
        ...known,
        needed: 'PUT:shop.example/a/{}$',
        at,
      },
    ]);
    clock.advance(31_536_000);
    expect(await refused(live.value)).toEqual([
      { type: 'refused', reason: 'expired', ...known, at: clock.now() },
    ]);
  });

  it('report a failing store with its error code and reason', async () => {
    const { store, tokens, issue, emittedBy, at } = setUpEvents();
    const { id, value } = await issue();
    const trouble = (code: string) => [{ type: 'store_trouble', code, at }];

    store.break('find', async () => [{ id }]);
    expect(await emittedBy(() => tokens.verify(value, need))).toEqual(trouble('store_corrupt'));
    store.break('revoke', async () => 'yes');
    expect(await emittedBy(() => tokens.revoke(account, id))).toEqual(trouble('store_corrupt'));
    store.break('page', async () => [undefined]);
    expect(await emittedBy(() => tokens.list({ account }))).toEqual(trouble('store_corrupt'));
    store.break('find', () => Promise.reject(storeUnavailable('schema_missing')));
    expect(await emittedBy(() => tokens.verify(value, need))).toEqual([
      { type: 'store_trouble', code: 'store_unavailable', reason: 'schema_missing', at },
    ]);
  });

  it('report the first answer of a store that had failed', async () => {
    const { store, tokens, issue, emittedBy, clock } = setUpEvents();
    const { id } = await issue();
    const get = () => tokens.get(account, id);
    store.break('find', () => Promise.reject(storeUnavailable('schema_missing')));
    await emittedBy(get);
    store.break('find', () => Promise.reject(new Error('down')));
    clock.advance(2);
    expect(await emittedBy(get)).toMatchObject([{ type: 'store_trouble', reason: 'unknown' }]);

    store.mend();
    expect(await emittedBy(get)).toEqual([
      {
        type: 'store_recovered',
        reason: 'schema_missing',
        durationMs: 2000,
        failed: 2,
        at: clock.now(),
      },
    ]);
    expect(await emittedBy(get)).toEqual([]);
  });

  it('report a corrupt record only once if there is a cache', async () => {
    const { store, tokens, issue, emittedBy } = setUpEvents({ cache: { maxStaleMs: 1000 } });
    const { id, value } = await issue();
    store.break('find', async () => [{ id }]);

    const emitted = await emittedBy(() => tokens.verify(value, need));

    expect(emitted.map((event) => ('code' in event ? event.code : event.type))).toEqual([
      'store_corrupt',
    ]);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('listener');
      },
    ],
    ['rejects', () => Promise.reject(new Error('listener'))],
    ['hangs', () => new Promise(() => {})],
  ])('do not break a call if the listener %s', async (_, listener) => {
    const { tokens } = setUp({ onEvent: listener as () => void });

    const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });
    expect((await tokens.verify(value, need)).ok).toBe(true);
    expect((await tokens.verify('nonsense', need)).ok).toBe(false);
    expect(await tokens.revoke(account, id)).toBe(true);
  });

  it('give each listener its own date, which it can change without effect on others', async () => {
    const received: unknown[] = [];
    const listen = (message: unknown) => received.push(message);
    channel('tokenwright:issued').subscribe(listen);
    onTestFinished(() => void channel('tokenwright:issued').unsubscribe(listen));
    const { tokens, clock } = setUp({ onEvent: ({ at }) => at.setTime(0) });

    const { id, createdAt } = await tokens.issue({ account, scopes: [SCOPE] });

    expect(createdAt).toEqual(clock.now());
    expect(received).toEqual([{ type: 'issued', id, account, at: clock.now() }]);
  });

  it('are frozen, and hold no value', async () => {
    const events: TokenEvent[] = [];
    const { tokens } = setUp({ onEvent: (event) => events.push(event), reveal: 'always' });
    const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });
    const rotated = await tokens.rotate(account, id);
    await tokens.verify(value, need);
    await tokens.verify(rotated.value, need);
    await tokens.verify(`${rotated.value}x`, need);

    expect(events.map(({ type }) => type)).toEqual([
      'issued',
      'rotated',
      'reused',
      'refused',
      'verified',
      'refused',
    ]);
    expect(events.every(Object.isFrozen)).toBe(true);
    const text = inspect(events, { depth: null });
    expect(text).not.toContain(value.slice(-33));
    expect(text).not.toContain(rotated.value.slice(-33));
  });
});

describe('channels of node:diagnostics_channel', () => {
  const cleanups: (() => void)[] = [];
  afterEach(() => {
    for (const clean of cleanups.splice(0)) clean();
  });

  it('carry the same events, with one channel per type', async () => {
    const received: unknown[] = [];
    const types: TokenEventType[] = ['issued', 'verified', 'refused', 'revoked'];
    for (const type of types) {
      const listen = (message: unknown) => received.push(message);
      channel(`tokenwright:${type}`).subscribe(listen);
      cleanups.push(() => channel(`tokenwright:${type}`).unsubscribe(listen));
    }
    const events: TokenEvent[] = [];
    const { tokens } = setUp({ onEvent: (event) => events.push(event) });

    const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });
    await tokens.verify(value, need);
    await tokens.verify(value, { scope: OTHER_SCOPE });
    await tokens.revoke(account, id);

    expect(received).toEqual(events);
    expect(events.map(({ type }) => type)).toEqual(types);
  });

  it('carry events even without an onEvent listener', async () => {
    const received: unknown[] = [];
    const listen = (message: unknown) => received.push(message);
    channel('tokenwright:issued').subscribe(listen);
    cleanups.push(() => channel('tokenwright:issued').unsubscribe(listen));
    const { tokens, clock } = setUp();

    const { id } = await tokens.issue({ account, scopes: [SCOPE] });

    expect(received).toEqual([{ type: 'issued', id, account, at: clock.now() }]);
  });
});

describe('verifySync', () => {
  const cache = { maxStaleMs: 1000 };
  const listed = [SCOPE, OTHER_SCOPE];

  it('returns the verdict of verify if the record is cached', async () => {
    const { tokens, store } = setUp({ cache, catalog: ScopeCatalog.from(listed) });
    const { value } = await tokens.issue({ account, scopes: [SCOPE] });
    expect(tokens.verifySync(value, need)).toBeUndefined();
    const verdict = await tokens.verify(value, need);
    const refusal = await tokens.verify(value, { scope: OTHER_SCOPE });
    store.takeCalls();

    expect(tokens.verifySync(value, need)).toEqual(verdict);
    expect(tokens.verifySync(value, { scope: OTHER_SCOPE })).toEqual(refusal);
    expect(verdict.ok).toBe(true);
    expect(refusal).toMatchObject({ ok: false, reason: 'insufficient_scope', needed: OTHER_SCOPE });
    expect(store.takeCalls()).toEqual([]);
  });

  it('refuses a malformed value, and returns undefined if it would have to read the store', async () => {
    const { tokens } = setUp();
    const { value } = await tokens.issue({ account, scopes: [SCOPE] });
    await tokens.verify(value, need);

    expect(tokens.verifySync('nonsense', need)).toEqual({
      ok: false,
      reason: 'malformed',
      detail: 'other_form',
    });
    expect(tokens.verifySync(value, need)).toBeUndefined();
  });

  it('returns undefined if the catalog is a function', async () => {
    const { tokens } = setUp({ cache, catalog: () => ScopeCatalog.from(listed) });
    const { value } = await tokens.issue({ account, scopes: [SCOPE] });
    await tokens.verify(value, need);

    expect(tokens.verifySync(value, need)).toBeUndefined();
  });

  it('serves no record that is older than maxStaleMs or that this process has changed', async () => {
    const { tokens, clock } = setUp({ cache });
    const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });

    await tokens.verify(value, need);
    clock.advance(0.999);
    expect(tokens.verifySync(value, need)?.ok).toBe(true);
    clock.advance(0.001);
    expect(tokens.verifySync(value, need)).toBeUndefined();
    await tokens.verify(value, need);
    await tokens.revoke(account, id);
    expect(tokens.verifySync(value, need)).toBeUndefined();
  });

  it('throws for an invalid need', () => {
    const { tokens } = setUp();

    expect(() => tokens.verifySync('nonsense', { scope: 'get' })).toThrow(
      expect.objectContaining({ code: 'invalid_scope' }),
    );
  });
});

describe('an outage of 100 requests', () => {
  const oneByOne = async (call: (n: number) => Promise<unknown>) => {
    for (let n = 0; n < 100; n++) await call(n);
  };
  const together = (call: (n: number) => Promise<unknown>) =>
    Promise.all(Array.from({ length: 100 }, (_, n) => call(n)));

  it.each([
    ['one by one', oneByOne, true],
    ['one by one, to a remote store', oneByOne, false],
    ['together', together, true],
    ['together, to a remote store', together, false],
  ])('is 100 errors, 100 events, and one recovery: %s', async (_, callAll, local) => {
    const store = new RecordingStore(new MemoryTokenStore(), { local });
    const { tokens, emittedBy, clock } = setUpEvents({ store });
    const issued = await tokens.issue({ account, scopes: [SCOPE] });
    const other = await tokens.issue({ account, scopes: [SCOPE] });
    const errors: unknown[] = [];
    const guard = bearerGuard({
      tokens,
      domain: 'shop.example',
      onError: (error) => errors.push(error),
    });
    const call = async (n: number) => {
      const { value } = n % 3 === 0 ? other : issued;
      const headers = { authorization: `Bearer ${value}` };
      return guard(new Request('https://shop.example/orders', { headers }));
    };
    store.break('find', () => Promise.reject(storeUnavailable('unreachable')));
    const trouble = await emittedBy(() => callAll(call));
    store.mend();
    clock.advance(7);

    expect(errors).toHaveLength(100);
    expect(trouble.map(({ type }) => type)).toEqual(Array(100).fill('store_trouble'));
    const later = await emittedBy(() => callAll(call));
    expect(later.filter(({ type }) => type !== 'verified')).toEqual([
      expect.objectContaining({ type: 'store_recovered', durationMs: 7000, failed: 100 }),
    ]);
    expect(errors).toHaveLength(100);
  });
});
