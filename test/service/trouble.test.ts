import { inspect } from 'node:util';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { TokenError } from '../../src/errors.ts';
import type { TokenServiceOptions } from '../../src/inputs/options.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import type { IssuedToken, TokenId, TokenRecord } from '../../src/token/record.ts';
import { KeyRing } from '../../src/values/keys.ts';
import { unseen } from '../canary.ts';
import {
  ALL_METHODS,
  codeOf,
  expectNoSecret,
  forge,
  K1,
  K2,
  partsOf,
  RecordingStore,
  recordOf,
  refusalOf,
  SCOPE,
  type Setting,
  setUp,
  YEAR,
} from '../support.ts';

const NEED = { scope: SCOPE };

afterEach(() => {
  vi.useRealTimers();
});

/** A service over a store that counts as remote, so that the service enforces the deadline. */
async function setUpRemote(): Promise<Setting & { token: IssuedToken }> {
  const setting = setUp({ store: new RecordingStore(new MemoryTokenStore(), { local: false }) });
  const token = await setting.tokens.issue({ account: 'acme', scopes: [SCOPE] });
  return { ...setting, token };
}

type Verb = (setting: Setting & { token: IssuedToken }) => Promise<unknown>;

const VERBS: [string, Verb][] = [
  ['issue', ({ tokens }) => tokens.issue({ account: 'acme', scopes: [SCOPE] })],
  ['list', ({ tokens }) => tokens.list({ account: 'acme' })],
  ['list by scope', ({ tokens }) => tokens.list({ account: 'acme', scope: SCOPE })],
  ['get', ({ tokens, token }) => tokens.get('acme', token.id)],
  ['modify', ({ tokens, token }) => tokens.modify('acme', token.id, { scopes: [SCOPE] })],
  ['patch', ({ tokens, token }) => tokens.patch('acme', token.id, { name: 'x' })],
  ['rotate', ({ tokens, token }) => tokens.rotate('acme', token.id)],
  ['verify', ({ tokens, token }) => tokens.verify(token.value, NEED)],
  ['verify of an unknown value', ({ tokens }) => tokens.verify(forge(), NEED)],
  ['explain', ({ tokens, token }) => tokens.explain('acme', token.id, NEED)],
  ['purge', ({ tokens, clock }) => tokens.purge({ before: clock.now() })],
  ['revoke', ({ tokens, token }) => tokens.revoke('acme', token.id)],
  ['revokeAll', ({ tokens }) => tokens.revokeAll('acme')],
];

describe('a broken store', () => {
  const message = `connect postgres://user:${K1.secret}@db failed`;
  const FAULTS: [string, () => unknown][] = [
    [
      'rejects',
      async () => {
        throw Object.assign(new Error(message), { code: 'ECONNREFUSED' });
      },
    ],
    [
      'throws synchronously',
      () => {
        throw new Error(message);
      },
    ],
    ['rejects with a string', () => Promise.reject(message)],
    ['rejects with undefined', () => Promise.reject(undefined)],
    [
      'rejects with another TokenError',
      () => Promise.reject(unseen(() => new TokenError('not_found', message))),
    ],
    [
      'rejects with version_conflict',
      () => Promise.reject(unseen(() => new TokenError('version_conflict', message))),
    ],
    [
      'returns a thenable that throws',
      () => ({
        // biome-ignore lint/suspicious/noThenProperty: a host can return a thenable
        get then() {
          throw new Error(message);
        },
      }),
    ],
  ];

  for (const [fault, work] of FAULTS) {
    it.each(VERBS)(
      `that ${fault} makes %s fail with store_unavailable until it recovers`,
      async (_, verb) => {
        const setting = await setUpRemote();
        const before = await recordOf(setting.store, setting.token.id);
        setting.store.break(ALL_METHODS, work);
        const error = await refusalOf(verb(setting));

        expect(error.code).toBe('store_unavailable');
        expect(error.message).not.toMatch(/postgres|connect/);
        expectNoSecret(error, setting.token.value);
        setting.store.mend();
        expect(await recordOf(setting.store, setting.token.id)).toEqual(before);
        await expect(verb(setting)).resolves.toBeDefined();
      },
    );
  }

  it.each(VERBS)(
    'that hangs makes %s fail with store_unavailable after 2 seconds',
    async (_, verb) => {
      const setting = await setUpRemote();
      setting.store.break(ALL_METHODS, () => new Promise(() => {}));
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
      const outcome = vi.fn();
      verb(setting).then(outcome, ({ code }) => outcome(code));
      await vi.advanceTimersByTimeAsync(1999);
      expect(outcome).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(1);
      expect(outcome.mock.calls).toEqual([['store_unavailable']]);

      setting.store.mend();
      await expect(verb(setting)).resolves.toBeDefined();
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  it.each([
    [
      'modify',
      'replace',
      (t: TokenService, id: string) => t.modify('acme', id, { scopes: [SCOPE] }),
    ],
    ['patch', 'replace', (t: TokenService, id: string) => t.patch('acme', id, { name: 'x' })],
    ['rotate', 'replace', (t: TokenService, id: string) => t.rotate('acme', id)],
    ['revoke by value', 'revoke', (t: TokenService, _: string, v: string) => t.revoke('acme', v)],
  ] as const)(
    'that is slow and then hangs makes %s fail at one deadline for all its store calls',
    async (_, last, verb) => {
      const { store, tokens, token } = await setUpRemote();
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
      store.break('find', async (ids: readonly TokenId[]) => {
        await new Promise((resolve) => setTimeout(resolve, 1500));
        return store.inner.find(ids);
      });
      store.break(last, () => new Promise(() => {}));
      const outcome = vi.fn();

      verb(tokens, token.id, token.value).catch(outcome);
      await vi.advanceTimersByTimeAsync(1999);
      expect(outcome).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(1);
      expect(outcome).toHaveBeenCalledWith(expect.objectContaining({ code: 'store_unavailable' }));
    },
  );

  it('that reports conflict after conflict makes a change fail at its deadline, without later retries', async () => {
    const { store, tokens, token } = await setUpRemote();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    store.break('replace', async () => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      return false;
    });
    const outcome = vi.fn();

    for (let i = 0; i < 3; i++) tokens.patch('acme', token.id, { name: `${i}` }).catch(outcome);
    await vi.advanceTimersByTimeAsync(1999);
    expect(outcome).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    const codes = outcome.mock.calls.map(([{ code }]) => code);
    expect(codes).toEqual(['version_conflict', 'version_conflict', 'version_conflict']);

    await vi.advanceTimersByTimeAsync(300);
    store.takeCalls();
    await vi.advanceTimersByTimeAsync(3000);
    expect(store.takeCalls()).toEqual([]);
  });

  it('that hangs makes a call fail after deadlineMs', async () => {
    const store = new RecordingStore(new MemoryTokenStore(), { local: false });
    const { store: outer, tokens } = setUp({ store, deadlineMs: 50 });
    outer.break('find', () => new Promise(() => {}));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const outcome = vi.fn();
    tokens.verify(forge(), NEED).catch(outcome);
    await vi.advanceTimersByTimeAsync(49);
    expect(outcome).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(outcome).toHaveBeenCalledOnce();
  });

  it('that answers after the deadline does not change the outcome', async () => {
    const { store, tokens, token } = await setUpRemote();
    const late = Promise.withResolvers<unknown>();
    store.break('find', () => late.promise);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const outcome = tokens.verify(token.value, NEED).catch(({ code }) => code);
    await vi.advanceTimersByTimeAsync(2000);
    late.reject(new Error('too late'));

    expect(await outcome).toBe('store_unavailable');
  });

  it('is the only cause: over a healthy store every verb succeeds (the control)', async () => {
    for (const [, verb] of VERBS) await expect(verb(await setUpRemote())).resolves.toBeDefined();
  });
});

describe('a store that returns garbage', () => {
  const READERS = VERBS.filter(([name]) =>
    ['get', 'modify', 'patch', 'rotate', 'verify', 'explain'].includes(name),
  );
  const other = partsOf(forge('0123456789ABCDEFGHIJKL')).id;
  const SPOILT: [string, (record: TokenRecord) => unknown][] = [
    ['undefined', () => undefined],
    ['null', () => null],
    ['an object', () => ({})],
    ['the record itself', (record) => record],
    ['an empty list', () => []],
    ['a list of two', (record) => [record, record]],
    ['null for a record', () => [null]],
    ['false for a record', () => [false]],
    ['another id', (record) => [{ ...record, id: other }]],
    ['no id', (record) => [{ ...record, id: undefined }]],
    ...(
      [
        ['account', 7],
        ['prefix', null],
        ['kid', undefined],
        ['digest', undefined],
        ['digest', new Uint8Array(31)],
        ['digest', 'x'.repeat(32)],
        ['digest', new Uint8Array(0)],
        ['box', null],
        ['box', 'box'],
        ['scopes', undefined],
        ['scopes', []],
        ['scopes', SCOPE],
        ['scopes', [7]],
        ['scopes', ['*:*/*', null]],
        ['requested', undefined],
        ['requested', [7]],
        ['createdAt', 0],
        ['createdAt', new Date(Number.NaN)],
        ['expiresAt', undefined],
        ['expiresAt', new Date(Number.NaN)],
        ['expiresAt', 8e15],
        ['expiresAt', '9999-01-01'],
        ['version', 0],
        ['version', '1'],
        ['version', Number.NaN],
        ['name', 7],
        ['metadata', 'x'],
        ['metadata', null],
        ['revokedAt', null],
        ['revokedAt', new Date(Number.NaN)],
        ['revokedAt', false],
        ['previousDigest', new Uint8Array(31)],
        ['previousUntil', 8e15],
        ['previousUntil', new Date(Number.NaN)],
        ['suspendedAt', false],
        ['pending', {}],
      ] as const
    ).map(([field, value]): [string, (record: TokenRecord) => unknown] => [
      `${field} as ${inspect(value)}`,
      (record) => [{ ...record, [field]: value }],
    ]),
  ];

  it.each(SPOILT)('makes every verb that reads fail with store_corrupt: %s', async (_, spoil) => {
    const setting = setUp({ reveal: 'always' });
    const token = await setting.tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const record = await recordOf(setting.store, token.id);
    for (const [, verb] of READERS) {
      setting.store.break('find', async () => spoil(record));
      expect(await codeOf(verb({ ...setting, token }))).toBe('store_corrupt');
    }
    const calls = setting.store.takeCalls();

    expect(calls.includes('replace')).toBe(false);
    setting.store.mend();
    expect((await setting.tokens.verify(token.value, NEED)).ok).toBe(true);
  });

  it('is the only cause: with an intact record every verb succeeds (the control)', async () => {
    for (const [, verb] of READERS) {
      const setting = setUp();
      const token = await setting.tokens.issue({ account: 'acme', scopes: [SCOPE] });
      const record = await recordOf(setting.store, token.id);
      setting.store.break('find', async () => [{ ...record }]);
      await expect(verb({ ...setting, token })).resolves.toBeDefined();
    }
  });

  it.each(VERBS)(
    'and reports store_corrupt itself makes %s fail with store_corrupt',
    async (_, verb) => {
      const setting = await setUpRemote();
      setting.store.break(ALL_METHODS, async () => {
        throw new TokenError('store_corrupt', 'a column');
      });
      expect(await codeOf(verb(setting))).toBe('store_corrupt');
    },
  );

  it('makes verify and explain fail with store_corrupt if a stored scope is malformed', async () => {
    const { store, tokens, token } = await setUpRemote();
    const record = await recordOf(store, token.id);
    store.break('find', async () => [{ ...record, scopes: ['*:*/*', 'nonsense'] }]);

    expect(await codeOf(tokens.verify(token.value, NEED))).toBe('store_corrupt');
    expect(await codeOf(tokens.explain('acme', token.id, NEED))).toBe('store_corrupt');
  });

  it.each<[unknown]>([[undefined], [null], ['true'], [1], [{}]])(
    'makes a change fail with store_corrupt if the answer is %o instead of a boolean',
    async (answer) => {
      const { store, tokens, token } = await setUpRemote();
      store.break(['replace', 'revoke'], async () => answer);
      store.takeCalls();

      expect(await codeOf(tokens.revoke('acme', token.id))).toBe('store_corrupt');
      expect(await codeOf(tokens.patch('acme', token.id, { name: 'x' }))).toBe('store_corrupt');
      expect(await codeOf(tokens.rotate('acme', token.id))).toBe('store_corrupt');
      expect(store.takeCalls()).toHaveLength(5);
    },
  );

  it.each<[unknown]>([
    [undefined],
    [null],
    ['5'],
    [-1],
    [0.5],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
  ])('makes revokeAll and purge fail with store_corrupt if the count is %o', async (answer) => {
    const { clock, store, tokens } = await setUpRemote();
    store.break(['revokeAll', 'purge'], async () => answer);

    expect(await codeOf(tokens.revokeAll('acme'))).toBe('store_corrupt');
    expect(await codeOf(tokens.purge({ before: clock.now() }))).toBe('store_corrupt');
  });

  it('does not show an account the record of another account', async () => {
    const { store, tokens, token } = await setUpRemote();
    const record = await recordOf(store, token.id);
    store.break('find', async () => [{ ...record, account: 'other' }]);

    expect(await tokens.get('acme', token.id)).toBeUndefined();
  });

  it('costs only the shown value, not the token, if a sealed value cannot be opened', async () => {
    const { store, tokens } = setUp({ reveal: 'always' });
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const record = await recordOf(store, token.id);
    for (const box of [new Uint8Array(0), new Uint8Array(28), new Uint8Array(55)]) {
      store.break('find', async () => [{ ...record, box }]);
      expect(await tokens.get('acme', token.id)).not.toHaveProperty('value');
      expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
    }
  });
});

describe('TokenService', () => {
  const good = { store: new MemoryTokenStore(), keys: [K1], prefix: 'acme' };

  it.each<[string, unknown, RegExp]>([
    ['undefined', undefined, /./],
    ['null', null, /./],
    ['no store', { ...good, store: undefined }, /store/],
    ['an incomplete store', { ...good, store: { find() {} } }, /store/],
    ['no keys', { ...good, keys: undefined }, /keys/],
    ['a key instead of a list', { ...good, keys: K1 }, /keys/],
    ['two active keys', { ...good, keys: [K1, K2] }, /keys/],
    ['no prefix', { ...good, prefix: undefined }, /prefix/],
    ["another vendor's prefix", { ...good, prefix: 'ghp' }, /prefix/],
    ['a catalog that is a list', { ...good, catalog: [SCOPE] }, /catalog/],
    ['a catalog of null', { ...good, catalog: null }, /catalog/],
    ['a clock that is a function', { ...good, clock: () => new Date() }, /clock/],
    ['a clock that is a date', { ...good, clock: new Date() }, /clock/],
    ['an unknown way to reveal', { ...good, reveal: 'never' }, /reveal/],
    ['a deadline of 0', { ...good, deadlineMs: 0 }, /deadlineMs/],
    ['a deadline of 60 001', { ...good, deadlineMs: 60_001 }, /deadlineMs/],
    ['a deadline of half a millisecond', { ...good, deadlineMs: 0.5 }, /deadlineMs/],
    ['an infinite deadline', { ...good, deadlineMs: Number.POSITIVE_INFINITY }, /deadlineMs/],
    ['a listener that is not a function', { ...good, onEvent: {} }, /onEvent/],
    [
      'a default lifetime above the maximum',
      { ...good, lifetime: { defaultSeconds: 61, maxSeconds: 60 } },
      /lifetime\.defaultSeconds/,
    ],
    ['an unknown option', { ...good, [String(K1.secret)]: 1 }, /unknown/],
    ['a misspelled option', { ...good, revael: 'once' }, /did you mean reveal/],
  ])('refuses options: %s', async (_, options, message) => {
    const error = await refusalOf(() => new TokenService(options as TokenServiceOptions));

    expect(error.code).toBe('invalid_options');
    expect(error.message).toMatch(message);
    expectNoSecret(error);
  });

  it.each<[string, object]>([
    ['only the required options', {}],
    ['a deadline of 1', { deadlineMs: 1 }],
    ['a deadline of 60 000', { deadlineMs: 60_000 }],
    [
      'all undefined',
      { catalog: undefined, clock: undefined, reveal: undefined, lifetime: undefined },
    ],
    [
      'a default lifetime equal to the maximum',
      { lifetime: { defaultSeconds: 60, maxSeconds: 60 } },
    ],
    ['keys that only verify', { keys: new KeyRing([K1]).verifierKeys() }],
  ])('accepts options: %s', (_, options) => {
    expect(() => new TokenService({ ...good, ...options })).not.toThrow();
  });
});

describe('lifetime', () => {
  it.each<[TokenServiceOptions['lifetime'], object]>([
    [undefined, { defaultSeconds: YEAR, maxSeconds: YEAR }],
    [{ maxSeconds: 60 }, { defaultSeconds: 60, maxSeconds: 60 }],
    [{ defaultSeconds: 60 }, { defaultSeconds: 60, maxSeconds: YEAR }],
  ])('of the options %o is %o', (lifetime, expected) => {
    expect(setUp({ lifetime }).tokens.lifetime).toEqual(expected);
  });
});

describe('secrets', () => {
  it('do not appear when the service is printed', async () => {
    const { tokens } = setUp({ reveal: 'always' });
    const { value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const [verifier] = tokens.verifierKeys();

    expectNoSecret(tokens, value, String(verifier?.secret).slice(4));
    expect(JSON.stringify(tokens)).toBe('{}');
  });

  it.each(['once', 'always'] as const)(
    'never reach the store, whatever the verb (reveal: %s)',
    async (reveal) => {
      const { clock, store, tokens } = setUp({ reveal });
      const token = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
      const setting = { clock, store, tokens, token };
      const values = [token.value];
      await tokens.get('acme', token.value);
      await tokens.modify('acme', token.value, { scopes: [SCOPE] });
      await tokens.patch('acme', token.value, { name: 'x' });
      const rotated = await tokens.rotate('acme', token.value, { graceSeconds: 60 });
      values.push(rotated.value);
      await tokens.explain('acme', rotated.value, NEED);
      for (const [, verb] of VERBS) await verb(setting).catch(() => {});
      await tokens.revoke('acme', rotated.value);

      expect(store.calls.length).toBeGreaterThan(15);
      expectNoSecret(store.calls, ...values);
    },
  );

  it('are found by expectNoSecret in every form (the control)', () => {
    const value = forge();
    for (const thing of [
      value,
      { deep: [value] },
      new Error(value),
      new Error('x', { cause: value }),
      Object.assign(new Error('x'), { details: { value } }),
      partsOf(value).secret,
      K1.secret,
      Buffer.from(String(K1.secret), 'base64url').toString('hex'),
    ]) {
      expect(() => expectNoSecret(thing, value)).toThrow();
    }
    expect(() => expectNoSecret({ id: partsOf(value).id }, value)).not.toThrow();
  });
});

describe('close', () => {
  it('closes the store if it has a close method, and reports its failure as store_unavailable', async () => {
    const closable = Object.assign(new MemoryTokenStore(), { close: vi.fn(async () => {}) });
    const service = (store: MemoryTokenStore) =>
      new TokenService({ store, keys: [K1], prefix: 'acme' });
    await service(closable).close();
    expect(closable.close).toHaveBeenCalledOnce();
    await expect(service(new MemoryTokenStore()).close()).resolves.toBeUndefined();

    closable.close.mockRejectedValue(new Error('driver'));
    expect(await codeOf(service(closable).close())).toBe('store_unavailable');
  });

  it('writes the usage and closes the store although the lease store does not close', async () => {
    const store = Object.assign(new MemoryTokenStore(), { close: vi.fn(async () => {}) });
    const usage = new MemoryTokenStore().usage;
    const leases = Object.assign(new MemoryTokenStore().leases, {
      close: () => Promise.reject(new Error('driver')),
    });
    const service = new TokenService({
      ...{ store, keys: [K1], prefix: 'acme' },
      ...{ usage: { store: usage }, limits: { store: leases } },
    });
    const { id, value } = await service.issue({ account: 'acme', scopes: [NEED.scope] });
    await service.verify(value, NEED);

    expect(await codeOf(service.close())).toBe('store_unavailable');
    expect(store.close).toHaveBeenCalledOnce();
    expect((await usage.read([id]))[0]?.scopes).toMatchObject([{ scope: NEED.scope, uses: 1 }]);
  });

  it('unsubscribes from the changes of the store, and reports a failure as store_unavailable', async () => {
    const unsubscribe = vi.fn(async () => {});
    const store = Object.assign(new MemoryTokenStore(), { watch: async () => unsubscribe });
    const cache = { maxStaleMs: 1000 };
    const service = new TokenService({ store, keys: [K1], prefix: 'acme', cache });
    expect(await service.verify(forge(), NEED)).toMatchObject({ reason: 'unknown' });
    expect(unsubscribe).not.toHaveBeenCalled();
    await service.close();
    expect(unsubscribe).toHaveBeenCalledOnce();

    unsubscribe.mockRejectedValue(new Error('driver'));
    expect(await codeOf(service.close())).toBe('store_unavailable');
  });
});
