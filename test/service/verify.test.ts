import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Need } from '../../src/access/need.ts';
import type { VerifyOptions } from '../../src/inputs/types.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import type { TokenService } from '../../src/service.ts';
import { runs } from '../laws.ts';
import {
  codeOf,
  expectNoSecret,
  forge,
  K2,
  OTHER_SCOPE,
  recordOf,
  refusalOf,
  SCOPE,
  type Setting,
  setUp,
  spoiled,
  YEAR,
} from '../support.ts';

const NEED = { scope: SCOPE };
const DOT: Need = { method: 'GET', domain: 'shop.example', target: '/orders/../admin' };
const MISSING = { scope: 'DELETE:shop.example/orders' };

async function issued(options: Parameters<typeof setUp>[0] = {}) {
  const setting = setUp(options);
  const token = await setting.tokens.issue({ account: 'acme', scopes: [SCOPE, '*:api.example/*'] });
  setting.store.takeCalls();
  return { ...setting, token };
}

describe('allows', () => {
  it('is true for requests that the token allows, and false for others', async () => {
    const { tokens, token } = await issued();

    expect(await tokens.allows(token.value, NEED)).toBe(true);
    expect(await tokens.allows(token.value, MISSING)).toBe(false);
    expect(await tokens.allows(token.value, DOT)).toBe(false);
  });

  it('is false for a value that is unknown, malformed, expired or revoked', async () => {
    const { tokens, token, clock } = await issued();
    const revoked = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    await tokens.revoke('acme', revoked.id);

    expect(await tokens.allows(revoked.value, NEED)).toBe(false);
    expect(await tokens.allows(`${token.value}x`, NEED)).toBe(false);
    expect(await tokens.allows('x', NEED)).toBe(false);
    expect(await tokens.allows(undefined as unknown as string, NEED)).toBe(false);
    clock.advance(YEAR);
    expect(await tokens.allows(token.value, NEED)).toBe(false);
  });

  it('throws when the store is down or the need is not a scope', async () => {
    const { tokens, store, token } = await issued();

    store.break('find', () => Promise.reject(new Error('down')));
    expect(await codeOf(tokens.allows(token.value, NEED))).toBe('store_unavailable');
    store.mend();
    expect(await codeOf(tokens.allows(token.value, { scope: 'orders' }))).toBe('invalid_scope');
    expect(await tokens.allows(token.value, NEED)).toBe(true);
  });

  it('reads the store with fresh: true, whatever the cache holds', async () => {
    const { tokens, store, token } = await issued({ cache: { maxStaleMs: 60_000 } });
    await tokens.allows(token.value, NEED);
    store.takeCalls();

    await tokens.allows(token.value, NEED);
    expect(store.takeCalls()).toEqual([]);
    await tokens.allows(token.value, NEED, { fresh: true });
    expect(store.takeCalls()).toEqual(['find']);
  });

  it('calls an overridden verify', async () => {
    const { tokens, token } = await issued();

    Object.assign(tokens, { verify: async () => ({ ok: false, reason: 'revoked' }) });

    expect(await tokens.allows(token.value, NEED)).toBe(false);
  });
});

describe('verify', () => {
  it.each<[string, string | undefined]>([
    ['/repos/7', 'GET:shop.example/repos/7$'],
    ['/repos/7/x', undefined],
    ['/orders/9', 'GET:shop.example/orders/{}$'],
    ['/orders/export', undefined],
    ['/', undefined],
  ])(
    'finds the scope that grants %s among 601 scopes every time: %s',
    async (target, grantedBy) => {
      const many = Array.from({ length: 600 }, (_, i) => `GET:shop.example/repos/${i}$`);
      const entries = [...many, 'GET:shop.example/orders/{}$', 'GET:shop.example/orders/export$'];
      const { tokens } = setUp({ catalog: ScopeCatalog.from(entries) });
      const held = entries.filter((entry) => !entry.includes('export'));
      const { value } = await tokens.issue({ account: 'acme', scopes: held });

      for (let time = 0; time < 3; time++) {
        const verdict = await tokens.verify(value, {
          method: 'GET',
          domain: 'shop.example',
          target,
        });
        expect(verdict.ok ? verdict.grantedBy : undefined).toBe(grantedBy);
        if (!verdict.ok) expect(verdict.explanation?.nearest).toBeDefined();
      }
    },
  );

  it.each<[string, Need, boolean]>([
    ['a held scope', { scope: SCOPE }, true],
    ['a scope below a held one', { scope: 'GET:shop.example/orders/7' }, true],
    ['a scope beside a held one', { scope: 'GET:shop.example/ordersx' }, false],
    ['a scope above a held one', { scope: 'GET:shop.example/*' }, false],
    ['another method', { scope: 'HEAD:shop.example/orders' }, false],
    ['a subdomain', { scope: 'GET:a.shop.example/orders' }, false],
    [
      'a request below a held scope',
      { method: 'GET', domain: 'shop.example', target: '/orders/7?x=/../' },
      true,
    ],
    [
      'a request beside a held scope',
      { method: 'GET', domain: 'shop.example', target: '/ordersx' },
      false,
    ],
    [
      'a request for a root that is not held',
      { method: 'GET', domain: 'shop.example', target: '/' },
      false,
    ],
    [
      'a request for a root that is held',
      { method: 'PUT', domain: 'api.example', target: '/' },
      true,
    ],
    ['a domain in upper case', { method: 'GET', domain: 'SHOP.EXAMPLE', target: '/orders' }, true],
    ['the scope of everything', { scope: '*:*/*' }, false],
  ])('allows %s: $2', async (_, need, isAllowed) => {
    const { tokens, token } = await issued();
    expect((await tokens.verify(token.value, need)).ok).toBe(isAllowed);
  });

  it('returns the token without its value, and the scope that grants the request', async () => {
    const { tokens, token } = await issued({ reveal: 'always' });
    const { value, ...shown } = token;
    const verdict = await tokens.verify(value, { scope: 'GET:shop.example/orders/7' });

    expect(verdict).toEqual({ ok: true, token: shown, grantedBy: SCOPE });
    expectNoSecret(verdict, value);
    expect(Object.isFrozen(verdict)).toBe(true);
  });

  it('reads the store once, by id only, and writes nothing', async () => {
    const { store, tokens, token } = await issued();
    for (const need of [NEED, MISSING, DOT]) await tokens.verify(token.value, need);
    await tokens.verify(forge(token.id), NEED);
    await tokens.verify(forge(), NEED);

    expect(new Set(store.calls.map(({ method }) => method))).toEqual(new Set(['find']));
    expect(store.calls).toHaveLength(5);
    expect(store.calls[0]?.args).toEqual([[token.id]]);
  });

  it.each<[string, (value: string, id: string) => unknown, string]>([
    ['a header', (value) => `Bearer ${value}`, 'begins_with_bearer'],
    ['an id', (_, id) => id, 'is_id'],
    ['nothing', () => undefined, 'not_a_string'],
    ['an empty text', () => '', 'empty'],
    ['a value of another key', (_, id) => forge(id, { key: K2 }), 'unknown_key'],
    ['a value of another prefix', (_, id) => forge(id, { prefix: 'other' }), 'other_prefix'],
    [
      'a mistyped value',
      (value) => `${value.slice(0, -1)}${value.endsWith('0') ? 1 : 0}`,
      'bad_tag',
    ],
    ['a value with a line break', (value) => `${value}\n`, 'other_form'],
  ])(
    'tells the host why %s is malformed, by the verdict, the event and the error',
    async (_, make, detail) => {
      const events: unknown[] = [];
      const { tokens, token } = await issued({ onEvent: (event) => events.push(event) });
      const bad = make(token.value, token.id) as string;
      events.length = 0;

      const refused = { reason: 'malformed', detail };
      expect(await tokens.verify(bad, NEED)).toEqual({ ok: false, ...refused });
      expect(tokens.verifySync(bad, NEED)).toEqual({ ok: false, ...refused });
      expect(await refusalOf(tokens.derive(bad, { scopes: [SCOPE] }))).toMatchObject({
        code: 'invalid_token',
        message: 'the value is not, or no longer, valid',
        details: refused,
      });
      expect(await tokens.introspect(bad)).toBeUndefined();
      const event = { type: 'refused', ...refused, at: expect.any(Date) };
      expect(events).toEqual([event, event, event, event]);
      expect(await tokens.verify(token.value, NEED)).toMatchObject({ ok: true });
    },
  );

  it('refuses a malformed value without a store call', async () => {
    const { store, tokens, token } = await issued();
    const bad = [...spoiled(token.value), '', token.id, forge(token.id, { key: K2 })];

    for (const value of bad) {
      expect((await tokens.verify(value, NEED)) as object).toStrictEqual({
        ok: false,
        reason: 'malformed',
        detail: expect.any(String),
      });
    }
    expect(store.calls).toEqual([]);
    expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
  });

  it('refuses any other JavaScript value as malformed, and never throws', async () => {
    const { store, tokens } = await issued();
    await fc.assert(
      fc.asyncProperty(
        fc.anything({ withBigInt: true, withNullPrototype: true }),
        async (value) => {
          expect(await tokens.verify(value as string, NEED)).toEqual({
            ok: false,
            reason: 'malformed',
            detail: expect.any(String),
          });
        },
      ),
      runs(),
    );
    expect(store.calls).toEqual([]);
  });

  it('checks in order: malformed, unknown, revoked, expired, ambiguous_request, insufficient_scope', async () => {
    const { clock, tokens } = setUp();
    const issue = (ttlSeconds: number) =>
      tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds });
    const [living, expired, revoked, both] = await Promise.all([
      issue(YEAR),
      issue(1),
      issue(YEAR),
      issue(1),
    ]);
    await tokens.revoke('acme', revoked.id);
    await tokens.revoke('acme', both.id);
    clock.advance(1);
    const reasonOf = async (value: string, need: Need) => {
      const verdict = await tokens.verify(value, need);
      return verdict.ok ? 'ok' : verdict.reason;
    };

    const spoiltRevoked = `${both.value.slice(0, -1)}${both.value.endsWith('0') ? '1' : '0'}`;
    expect(await reasonOf(spoiltRevoked, DOT)).toBe('malformed');
    expect(await reasonOf(forge(both.id), DOT)).toBe('unknown');
    expect(await reasonOf(forge(expired.id), NEED)).toBe('unknown');
    expect(await reasonOf(both.value, DOT)).toBe('revoked');
    expect(await reasonOf(revoked.value, MISSING)).toBe('revoked');
    expect(await reasonOf(expired.value, DOT)).toBe('expired');
    expect(await reasonOf(expired.value, MISSING)).toBe('expired');
    expect(await reasonOf(living.value, DOT)).toBe('ambiguous_request');
    expect(await reasonOf(living.value, MISSING)).toBe('insufficient_scope');
    expect(await reasonOf(living.value, NEED)).toBe('ok');
  });

  it('refuses an ambiguous request with its detail, even for a token that allows everything', async () => {
    const { tokens } = setUp();
    const token = await tokens.issue({ account: 'acme', scopes: ['*:*/*'] });

    expect(await tokens.verify(token.value, DOT)).toEqual({
      ok: false,
      reason: 'ambiguous_request',
      detail: 'path_dot_segment',
    });
    expect(await tokens.verify(token.value, { ...DOT, method: 'get' })).toMatchObject({
      detail: 'method_invalid',
    });
    expect(await tokens.verify(token.value, { ...DOT, domain: '*' })).toMatchObject({
      detail: 'domain_invalid',
    });
    expect((await tokens.verify(token.value, { ...DOT, target: '/orders' })).ok).toBe(true);
  });

  it.each<[string, Need, string]>([
    ['a refused scope', MISSING, 'DELETE:shop.example/orders'],
    [
      'a refused request',
      { method: 'DELETE', domain: 'shop.example', target: '/orders/7/lines?x' },
      'DELETE:shop.example/orders',
    ],
    [
      'a request with an escaped first segment and no catalog entry',
      { method: 'PUT', domain: 'shop.example', target: '/a%20b/c' },
      'PUT:shop.example/{}/c$',
    ],
    [
      'a request with an escaped last segment and no catalog entry',
      { method: 'PUT', domain: 'shop.example', target: '/a/b%20c' },
      'PUT:shop.example/a/{}$',
    ],
  ])('names the scope that is missing for %s', async (_, need, needed) => {
    const { tokens } = setUp({ catalog: ScopeCatalog.from([SCOPE, 'DELETE:shop.example/orders']) });
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const verdict = await tokens.verify(token.value, need);

    expect(verdict).toMatchObject({ ok: false, reason: 'insufficient_scope', needed });
    expect(!verdict.ok && verdict.explanation).toMatchObject({
      allowed: false,
      reason: 'insufficient_scope',
      needed,
      nearest: { scope: SCOPE },
    });
  });

  it.each<[string, (value: string) => Need, string]>([
    [
      'a request',
      (value) => ({ method: 'PUT', domain: 'shop.example', target: `/a/b/${value}/c` }),
      'PUT:shop.example/a/b/{}/c$',
    ],
    [
      'the first segment of a request',
      (value) => ({ method: 'PUT', domain: 'shop.example', target: `/${value}/a` }),
      'PUT:shop.example/{}/a$',
    ],
    ['a scope', (value) => ({ scope: `PUT:shop.example/a/b/${value}` }), 'PUT:shop.example/a/b/{}'],
    [
      'a scope that ends with $',
      (value) => ({ scope: `PUT:shop.example/${value}$` }),
      'PUT:shop.example/{}$',
    ],
  ])('replaces a token value in %s by {} in the scope that it names', async (_, needOf, needed) => {
    const { tokens, token } = await issued();
    const other = forge();
    const verdict = await tokens.verify(token.value, needOf(other));
    const explanation = await tokens.explain('acme', token.id, needOf(other));

    expect(verdict).toMatchObject({ reason: 'insufficient_scope', needed });
    expect(explanation).toMatchObject({ needed, smallest: needed });
    expectNoSecret([verdict, explanation, !verdict.ok && verdict.explanation], other);
    // The control: a token with the needed scope is accepted.
    const { value } = await tokens.issue({ account: 'acme', scopes: [needed] });
    expect((await tokens.verify(value, needOf(other))).ok).toBe(true);
  });

  it('uses the current scopes if the store changes a list that it has returned', async () => {
    const { store, tokens, token } = await issued();
    const record = { ...(await recordOf(store, token.id)), scopes: [SCOPE] };
    store.break('find', async () => [record]);

    expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
    record.scopes[0] = OTHER_SCOPE;
    expect(await tokens.verify(token.value, NEED)).toMatchObject({ reason: 'insufficient_scope' });
  });

  it('still decides when the catalog is not available', async () => {
    let isBroken = false;
    const catalog = () => {
      if (isBroken) throw new Error('no catalog');
      return ScopeCatalog.from([SCOPE]);
    };
    const { tokens } = setUp({ catalog });
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    isBroken = true;

    expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
    expect(await tokens.verify(token.value, MISSING)).toMatchObject({
      reason: 'insufficient_scope',
      needed: MISSING.scope,
    });
  });

  it.each<[string, unknown, string]>([
    ['a bad scope', { scope: 'nonsense' }, 'invalid_scope'],
    ['an empty scope', { scope: '' }, 'invalid_scope'],
    ['a scope of undefined', { scope: undefined }, 'invalid_scope'],
    ['a scope that is a list', { scope: [SCOPE] }, 'invalid_scope'],
    ['a scope that is an object', { scope: {} }, 'invalid_scope'],
    ['a scope that is a symbol', { scope: Symbol('x') }, 'invalid_scope'],
    ['a scope that is an object without toString', { scope: Object.create(null) }, 'invalid_scope'],
    ['undefined', undefined, 'invalid_request'],
    ['null', null, 'invalid_request'],
    ['a string', SCOPE, 'invalid_request'],
    ['an empty object', {}, 'invalid_request'],
    ['a request without a target', { method: 'GET', domain: 'shop.example' }, 'invalid_request'],
    ['a request without a domain', { method: 'GET', target: '/orders' }, 'invalid_request'],
    ['a request without a method', { domain: 'shop.example', target: '/' }, 'invalid_request'],
    ['a target alone', { target: '/orders' }, 'invalid_request'],
    ['a scope and a whole request', { scope: SCOPE, ...DOT }, 'invalid_request'],
    ['a scope and a method', { scope: SCOPE, method: 'DELETE' }, 'invalid_request'],
    ['a scope and a domain', { scope: SCOPE, domain: 'shop.example' }, 'invalid_request'],
    ['a scope and a target', { scope: SCOPE, target: '/orders' }, 'invalid_request'],
  ])('throws if the need is %s, whatever the value', async (_, need, code) => {
    const { store, tokens, token } = await issued();
    for (const value of [token.value, 'malformed']) {
      expect(await codeOf(tokens.verify(value, need as Need))).toBe(code);
    }
    expect(store.calls).toEqual([]);
  });

  it.each<[unknown]>([[undefined], [null], [42], [{}], [['/orders']], [Symbol('x')]])(
    'refuses a target of %o as ambiguous',
    async (target) => {
      const { tokens, token } = await issued();
      const verdict = await tokens.verify(token.value, { ...DOT, target: target as string });
      expect(verdict).toMatchObject({ ok: false, reason: 'ambiguous_request' });
    },
  );
});

describe('a custom catalog that throws', () => {
  const own = ScopeCatalog.from([SCOPE, OTHER_SCOPE]);
  const REQUEST = { method: 'DELETE', domain: 'shop.example', target: '/orders' };

  /** A service with a token that was issued before the method `broken` began to throw. */
  async function setUpBroken(broken: string) {
    let isBroken = false;
    const catalog = new Proxy(own, {
      get(_, name) {
        const member: unknown = Reflect.get(own, name, own);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          if (isBroken && name === broken) throw new Error('text of the host');
          return member.apply(own, args);
        };
      },
    });
    const setting = setUp({ catalog, cache: { maxStaleMs: 60_000 } });
    const token = await setting.tokens.issue({ account: 'acme', scopes: [SCOPE] });
    isBroken = true;
    return { ...setting, token };
  }

  it.each<[string, Need]>([
    ['attribute', REQUEST],
    ['attribute', MISSING],
    ['knows', REQUEST],
    ['knows', MISSING],
    ['suggest', MISSING],
  ])('in %s does not stop verify from refusing and explaining: %o', async (broken, need) => {
    const { tokens, token } = await setUpBroken(broken);
    // The scope that a request needs ends with `$`.
    const needed = 'scope' in need ? MISSING.scope : `${MISSING.scope}$`;
    const refusal = { ok: false, reason: 'insufficient_scope', needed };

    const verdict = await tokens.verify(token.value, need);
    expect(verdict).toMatchObject(refusal);
    expect(!verdict.ok && verdict.explanation).toMatchObject({ allowed: false, needed });
    const cached = tokens.verifySync(token.value, need);
    expect(cached).toMatchObject(refusal);
    expect(cached?.ok === false && cached.explanation).toMatchObject({ allowed: false });
    expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
  });

  it.each<[string, string, (tokens: TokenService, id: string) => Promise<unknown>]>([
    ['attribute', 'explain', (tokens, id) => tokens.explain('acme', id, REQUEST)],
    ['knows', 'explain', (tokens, id) => tokens.explain('acme', id, MISSING)],
    [
      'suggest',
      'explain',
      (tokens, id) => tokens.explain('acme', id, { scope: 'GET:a.example/b' }),
    ],
    ['toArray', 'scopes', (tokens) => tokens.scopes('acme')],
  ])(
    'in %s makes %s fail with store_unavailable, without the text of the host',
    async (broken, _, call) => {
      const { tokens, token } = await setUpBroken(broken);

      const refusal = await refusalOf(call(tokens, token.id));
      expect(refusal.code).toBe('store_unavailable');
      expect(refusal.message).not.toContain('host');
    },
  );
});

describe('a catalog that the host implements', () => {
  const ANY = 'GET:shop.example/orders/{}$';
  const own = ScopeCatalog.from([ANY, 'GET:shop.example/orders/export$']);

  function hostCatalog(methods: Partial<ScopeCatalog> = {}): ScopeCatalog {
    const all: Partial<ScopeCatalog> = {
      expand: (requested) => own.expand(requested),
      attribute: (request) => own.attribute(request),
      suggest: (text) => own.suggest(text),
      toArray: () => own.toArray(),
      knows: (scope) => own.knows(scope),
    };
    return { ...all, ...methods } as ScopeCatalog;
  }

  const request = (target: string) => ({ method: 'GET', domain: 'shop.example', target });

  it.each([
    ['/orders/7', true],
    // An endpoint of its own, which the token does not hold.
    ['/orders/export', false],
    ['/orders', false],
  ])('reads a request to %s by its entries', async (target, isAllowed) => {
    const { tokens } = setUp({ catalog: hostCatalog() });
    const { value } = await tokens.issue({ account: 'acme', scopes: [ANY] });

    expect((await tokens.verify(value, request(target))).ok).toBe(isAllowed);
  });

  it('grants nothing to a request that it fails to read', async () => {
    const attribute = () => {
      throw new Error('text of the host');
    };
    const { tokens } = setUp({ catalog: hostCatalog({ attribute }) });
    const { value } = await tokens.issue({ account: 'acme', scopes: [ANY] });

    const error = await refusalOf(tokens.verify(value, request('/orders/7')));
    expect(error.code).toBe('store_unavailable');
    expect(error.message).not.toContain('host');
  });
});

describe('verify with a cache', () => {
  it.each<[VerifyOptions | undefined, boolean]>([
    [undefined, true],
    [{}, true],
    [{ fresh: undefined }, true],
    [{ fresh: false }, true],
    [{ fresh: true }, false],
  ])('and options %o answers from memory: %s', async (options, isKept) => {
    const { clock, store, tokens, token } = await issued({ cache: { maxStaleMs: 60_000 } });
    expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
    await setUp({ store: store.inner, clock }).tokens.revoke('acme', token.id);
    store.takeCalls();

    expect((await tokens.verify(token.value, NEED, options)).ok).toBe(isKept);
    expect(store.takeCalls()).toEqual(isKept ? [] : ['find']);
  });

  it.each<[unknown]>([[{ fresh: 1 }], [{ fresh: null }], [{ frsh: true }], [null], [true]])(
    'refuses the options %o',
    async (options) => {
      const { store, tokens, token } = await issued({ cache: { maxStaleMs: 60_000 } });
      const verdict = tokens.verify(token.value, NEED, options as VerifyOptions);

      expect(await codeOf(verdict)).toBe('invalid_request');
      expect(store.calls).toEqual([]);
    },
  );

  it.each([
    [1, ['find', 'find', 'find']],
    [2, ['find', 'find']],
  ])('caches at most maxEntries tokens: %d', async (maxEntries, calls) => {
    const { store, tokens, token } = await issued({ cache: { maxStaleMs: 60_000, maxEntries } });
    const other = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    store.takeCalls();
    for (const { value } of [token, other, token]) await tokens.verify(value, NEED);

    expect(store.takeCalls()).toEqual(calls);
  });
});

describe('explain', () => {
  const NEEDS: [string, Need][] = [
    ['a held scope', NEED],
    ['a scope below a held one', { scope: 'GET:shop.example/orders/7' }],
    ['a missing scope', MISSING],
    ['a pattern', { scope: 'GET:*.example/*' }],
    ['the scope of everything', { scope: '*:*/*' }],
    ['a request', { method: 'GET', domain: 'shop.example', target: '/orders/7' }],
    ['a missing request', { method: 'PUT', domain: 'shop.example', target: '/orders' }],
    ['an ambiguous request', DOT],
    ['a request with a malformed method', { ...DOT, method: 'get' }],
  ];

  for (const catalog of [undefined, ScopeCatalog.from([SCOPE, OTHER_SCOPE, 'GET:api.example/a'])]) {
    it.each(NEEDS)(
      `agrees with verify on %s (catalog: ${catalog !== undefined})`,
      async (_, need) => {
        const { clock, store, tokens } = setUp({ catalog });
        const token = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
        const agree = async () => {
          const verdict = await tokens.verify(token.value, need);
          store.takeCalls();
          const byId = await tokens.explain('acme', token.id, need);
          expect(store.takeCalls()).toEqual(['find']);
          expect(await tokens.explain('acme', token.value, need)).toEqual(byId);
          expect(byId.allowed).toBe(verdict.ok);
          expect(byId.grantedBy).toBe(verdict.ok ? verdict.grantedBy : undefined);
          if (!verdict.ok && verdict.reason === 'insufficient_scope') {
            expect(byId).toEqual(verdict.explanation);
            expect(byId.needed).toBe(verdict.needed);
          }
          if (!verdict.ok && verdict.reason === 'expired') expect(byId.reason).toBe('expired');
          if (!verdict.ok && verdict.detail !== undefined) expect(byId.reason).toBe(verdict.detail);
        };

        await agree();
        clock.advance(YEAR);
        await agree();
      },
    );
  }

  it('names no needed scope for an ambiguous request', async () => {
    const { tokens, token } = await issued({
      catalog: ScopeCatalog.from([SCOPE, 'GET:api.example/a']),
    });

    expect(await tokens.explain('acme', token.id, DOT)).toEqual({
      allowed: false,
      reason: 'path_dot_segment',
      needed: '',
      known: false,
      suggestions: [],
    });
  });

  it('reports the token of another account as unknown, and shows none of its scopes', async () => {
    const { tokens } = setUp();
    const token = await tokens.issue({ account: 'other', scopes: ['*:*/*'] });

    for (const valueOrId of [token.id, token.value, forge(), 'malformed']) {
      const explanation = await tokens.explain('acme', valueOrId, NEED);
      expect(explanation).toMatchObject({ allowed: false, reason: 'unknown' });
      expect(explanation.grantedBy).toBeUndefined();
      expect(JSON.stringify(explanation)).not.toContain('*:*/*');
    }
  });

  it('suggests scopes of the catalog', async () => {
    const { tokens } = setUp({ catalog: ScopeCatalog.from([SCOPE, OTHER_SCOPE]) });
    const { id } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });

    expect(await tokens.explain('acme', id, { scope: 'GET:shop.example/order' })).toMatchObject({
      known: false,
      suggestions: expect.arrayContaining([SCOPE]),
    });
    expect(await tokens.explain('acme', id, NEED)).toMatchObject({ known: true, suggestions: [] });
  });

  it('throws for an invalid need or account', async () => {
    const { tokens, token } = await issued();
    expect(await codeOf(tokens.explain('acme', token.id, { scope: 'x' }))).toBe('invalid_scope');
    expect(await codeOf(tokens.explain('acme', token.id, null as never))).toBe('invalid_request');
    expect(await codeOf(tokens.explain('', token.id, NEED))).toBe('invalid_request');
  });
});

describe('a token value in the wrong argument', () => {
  it('does not appear in the error', async () => {
    const { tokens, token } = await issued({
      catalog: ScopeCatalog.from([SCOPE, 'GET:api.example/a']),
    });
    const { value } = token;
    const inPath = `GET:shop.example/tokens/${value}`;
    const errors = await Promise.all([
      refusalOf(tokens.verify(value, { scope: value })),
      refusalOf(tokens.explain('acme', value, { scope: value })),
      refusalOf(tokens.issue({ account: 'acme', scopes: [value] })),
      refusalOf(tokens.issue({ account: 'acme', scopes: [inPath] })),
      refusalOf(tokens.modify('acme', value, { scopes: [`${value}:x`] })),
      refusalOf(tokens.patch('acme', value, { removeScopes: [inPath] })),
      refusalOf(tokens.patch('acme', value, { addScopes: [inPath] })),
      refusalOf(tokens.list({ account: 'acme', scope: value })),
      refusalOf(tokens.list({ account: 'acme', cursor: value })),
      refusalOf(tokens.list({ account: 'acme', [value]: 1 } as never)),
      refusalOf(tokens.list({ account: 'acme', match: value } as never)),
      refusalOf(tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: value } as never)),
      refusalOf(tokens.rotate('acme', value, { graceSeconds: value } as never)),
    ]);

    for (const error of errors) expectNoSecret(error, value);
    // The control: errors do name scopes.
    const control = await refusalOf(tokens.issue({ account: 'acme', scopes: ['GET:a.example/a'] }));
    expect(control.message).toContain('GET:a.example/a');
  });
});

describe('introspect', () => {
  it('returns a live token without its value', async () => {
    const { tokens } = setUp({ reveal: 'always' });
    const issued = await tokens.issue({ account: 'acme', scopes: [SCOPE], name: 'deploy' });

    const { value: _, ...token } = issued;
    expect(await tokens.introspect(issued.value)).toEqual(token);
  });

  it.each([
    ['a malformed value', async () => 'nonsense'],
    ['an id', async ({ tokens }) => (await tokens.issue({ account: 'acme', scopes: [SCOPE] })).id],
    [
      'an unknown value',
      async () => (await setUp().tokens.issue({ account: 'acme', scopes: [SCOPE] })).value,
    ],
    [
      'a revoked token',
      async ({ tokens }) => {
        const { id, value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
        await tokens.revoke('acme', id);
        return value;
      },
    ],
    [
      'a replaced value',
      async ({ tokens }) => {
        const { id, value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
        await tokens.rotate('acme', id);
        return value;
      },
    ],
    [
      'an expired token',
      async ({ tokens, clock }) => {
        const { value } = await tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: 60 });
        clock.advance(60);
        return value;
      },
    ],
  ] satisfies [string, (setting: Setting) => Promise<string>][])(
    'returns undefined for %s',
    async (_, prepare) => {
      const setting = setUp();
      const value = await prepare(setting);

      expect(await setting.tokens.introspect(value)).toBeUndefined();
    },
  );

  it('fails with store_unavailable if the store is down', async () => {
    const { tokens, store } = setUp();
    const { value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    store.break('find', () => Promise.reject(new Error('down')));

    await expect(tokens.introspect(value)).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});
