import { RateLimiterMemory } from 'rate-limiter-flexible';
import { describe, expect, it, vi } from 'vitest';
import { failureLimiter, fixedAccounts, type SignIn } from '../../src/http/index.ts';
import { generateKey, TokenError } from '../../src/index.ts';
import { RecordingStore } from '../support.ts';
import { quickScrypt } from './sign-in/scrypt.ts';
import {
  asForm,
  basic,
  CANARY,
  type CallOptions,
  expectFailure,
  expectHeaders,
  expectOAuthFailure,
  ONE_YEAR,
  ORDERS,
  PASSWORD,
  type SetUpOptions,
  START,
  setUp,
} from './support.ts';

const SERVER_PASSWORD = 'battery staple';

const introspection: NonNullable<SetUpOptions['introspection']> = {
  authenticate: ({ username, password }) => (password === SERVER_PASSWORD ? username : null),
};

/** A service with introspection, and a call of the resource server `orders`. */
function setUpIntrospection(options: SetUpOptions = {}) {
  const store = new RecordingStore();
  const setup = setUp({ introspection, store, ...options });
  const ask = (form: Parameters<typeof asForm>[0], { headers, ...more }: CallOptions = {}) =>
    setup.call('POST', '/introspect', {
      ...asForm(form),
      ...more,
      headers: {
        ...asForm(form).headers,
        authorization: basic('orders', SERVER_PASSWORD),
        ...headers,
      },
    });
  return { ...setup, store, ask };
}

describe('POST /introspect', () => {
  it('describes an active token as RFC 7662 does, without an envelope', async () => {
    const { ask, issue } = setUpIntrospection();
    const token = await issue('ada', [ORDERS, 'POST:shop.example/orders']);

    const answer = await ask({ token: token.value, token_type_hint: 'access_token' });

    expect(answer.body).toEqual({
      active: true,
      scope: 'GET:shop.example/orders POST:shop.example/orders',
      sub: 'ada',
      jti: token.id,
      exp: START + ONE_YEAR,
      iat: START,
      token_type: 'Bearer',
    });
    expect(answer.status).toBe(200);
    expectHeaders(answer);
  });

  it('names the purpose, and who acts with the token and its ancestors, newest outermost', async () => {
    const { ask, issue, tokens, store } = setUpIntrospection();
    const [bot, agent] = [await issue('bot'), await issue('agent')];
    const parent = await issue();
    const scopes = [ORDERS];
    const first = await tokens.derive(parent.value, { scopes, actorToken: bot.value });
    const middle = await tokens.derive(first.value, { scopes, purpose: 'middle' });
    const last = await tokens.derive(middle.value, {
      scopes,
      actorToken: agent.value,
      purpose: 'last',
    });
    const below = await tokens.derive(last.value, { scopes, actorToken: bot.value });
    const claimsOf = async (token: string) => {
      const { purpose, act } = (await ask({ token })).body;
      return { purpose, act };
    };
    const byBot = { sub: 'bot', token: bot.id };

    expect(await claimsOf(parent.value)).toEqual({});
    expect(await claimsOf(first.value)).toEqual({ act: byBot });
    expect(await claimsOf(middle.value)).toEqual({ purpose: 'middle', act: byBot });
    store.takeCalls();
    const byAgent = { sub: 'agent', token: agent.id, act: byBot };
    expect(await claimsOf(last.value)).toEqual({ purpose: 'last', act: byAgent });
    expect(store.takeCalls()).toEqual(['find', 'find']);
    expect(await claimsOf(below.value)).toEqual({ act: { ...byBot, act: byAgent } });
  });

  it('never shows a token value, even when the service reveals values', async () => {
    const { ask, issue } = setUpIntrospection({ reveal: 'always' });
    const { value } = await issue();

    expect((await ask({ token: value })).text).not.toContain(value.slice(-32));
  });

  it('counts as the first use of a pending value', async () => {
    const { ask, issue, tokens } = setUpIntrospection();
    const { id } = await issue();
    const { value } = await tokens.rotate('ada', id, { activate: 'first-use' });
    expect((await tokens.get('ada', id))?.pending).toBe(true);

    expect((await ask({ token: value })).body).toMatchObject({ active: true });
    expect((await tokens.get('ada', id))?.pending).toBeUndefined();
  });

  it('gives the same answer after the same store calls for every inactive token', async () => {
    const { ask, issue, tokens, store, clock } = setUpIntrospection();
    const [revoked, rotated, forgotten] = [await issue(), await issue(), await issue()];
    const suspended = await issue();
    await tokens.patch('ada', suspended.id, { suspended: true });
    const expired = await tokens.issue({ account: 'ada', scopes: [ORDERS], ttlSeconds: 60 });
    await tokens.revoke('ada', revoked.id);
    await tokens.rotate('ada', rotated.id);
    store.break('find', async () => [undefined]);
    const unknown = await asked(forgotten.value);
    store.mend();
    clock.advance(60);

    const refused = [];
    for (const { value } of [revoked, rotated, expired, suspended])
      refused.push(await asked(value));

    expect(unknown.calls).toEqual(['find']);
    expect(unknown.text).toBe('{"active":false}');
    expect(refused).toEqual(refused.map(() => unknown));
    expect((await asked(forgotten.value)).text).toContain('"active":true');

    async function asked(token: string) {
      store.takeCalls();
      const { text, status, headers } = await ask({ token });
      return { text, status, headers: [...headers], calls: store.takeCalls() };
    }
  });

  it('answers inactive for a malformed value without calling the store', async () => {
    const { ask, issue, store } = setUpIntrospection();
    const { value, id } = await issue();
    const other = await setUp({ keys: [generateKey()] }).issue();
    store.takeCalls();

    for (const token of [
      id,
      'x',
      `${value}x`,
      value.slice(0, -1),
      ` ${value}`,
      other.value,
      'é\0',
    ]) {
      expect((await ask({ token })).text).toBe('{"active":false}');
    }

    expect(store.takeCalls()).toEqual([]);
  });

  it('ignores the token type hint', async () => {
    const { ask, issue } = setUpIntrospection();
    const { value } = await issue();

    const answer = await ask({ token: value, token_type_hint: 'refresh_token' });

    expect(answer.body).toMatchObject({ active: true });
  });

  it.each<[string, () => never, number, string]>([
    ['a store that is down', () => fail(new Error(CANARY)), 503, 'temporarily_unavailable'],
    [
      'a store that is corrupt',
      () => fail(new TokenError('store_corrupt', CANARY)),
      503,
      'temporarily_unavailable',
    ],
  ])('answers 503 with %s, never an inactive token', async (_, fault, status, error) => {
    const { ask, issue, store } = setUpIntrospection();
    const { value } = await issue();
    store.break('find', fault);

    expectOAuthFailure(await ask({ token: value }), status, error);

    store.mend();
    expect((await ask({ token: value })).body).toMatchObject({ active: true });
  });
});

describe('the credentials of introspection', () => {
  it.each<[string, string]>([
    ['those of an account', basic('ada', PASSWORD)],
    ['of a wrong password', basic('orders', PASSWORD)],
    ['a Bearer token', 'Bearer acme_1k1'],
    ['empty', ''],
    ['sent twice', `${basic('orders', SERVER_PASSWORD)}, ${basic('orders', SERVER_PASSWORD)}`],
  ])('are refused when they are %s', async (_, authorization) => {
    const { ask, issue, store } = setUpIntrospection();
    const { value } = await issue();
    store.takeCalls();

    const answer = await ask({ token: value }, { headers: { authorization } });

    expectOAuthFailure(answer, 401, 'invalid_client');
    expect(answer.headers.get('www-authenticate')).toBe(
      'Basic realm="tokenwright introspection", charset="UTF-8"',
    );
    expect(store.takeCalls()).toEqual([]);
  });

  it('do not give access to other calls', async () => {
    const { call } = setUpIntrospection();
    const headers = { authorization: basic('orders', SERVER_PASSWORD) };

    expectFailure(await call('GET', '/token', { headers }), 'unauthenticated');
    expect(await call('GET', '/token')).toMatchObject({ status: 200 });
  });

  it.each<[string, () => unknown]>([
    ['throws', () => fail(new Error(CANARY))],
    ['rejects', () => Promise.reject(new Error(CANARY))],
    ['returns true', () => true],
  ])('lead to 503 when authenticate %s', async (_, authenticate) => {
    const { ask, issue } = setUpIntrospection({
      introspection: { authenticate: authenticate as () => null },
    });
    const { value } = await issue();

    expectOAuthFailure(await ask({ token: value }), 503, 'temporarily_unavailable');
  });
});

describe('the request checks of /introspect', () => {
  const form = asForm('').headers as Record<string, string>;

  it.each<[string, CallOptions, number]>([
    ['no body', { headers: form }, 400],
    ['an empty body', { raw: '', headers: form }, 400],
    ['no token', { ...asForm({ token_type_hint: 'access_token' }) }, 400],
    ['an empty token', asForm('token='), 400],
    ['a repeated token', asForm(`token=${CANARY}&token=${CANARY}`), 400],
    ['a repeated hint', asForm('token=x&token_type_hint=a&token_type_hint=b'), 400],
    ['a repeated unknown parameter', asForm('token=x&a=1&a=1'), 400],
    ['invalid UTF-8', { raw: Buffer.from([0xff, 0x3d]), headers: form }, 400],
    ['JSON', { json: { token: CANARY } }, 415],
    ['JSON declared as a form', { ...asForm('{"token":"x"}') }, 400],
    ['another charset', { raw: 'token=x', headers: type('; charset=latin1') }, 415],
    [
      'a content encoding',
      { raw: 'token=x', headers: { ...form, 'content-encoding': 'gzip' } },
      415,
    ],
    ['no media type', { raw: 'token=x', headers: { 'content-type': '' } }, 415],
    ['a body that is too large', asForm(`token=x&more=${'x'.repeat(1000)}`), 413],
    ['a cross-site Sec-Fetch-Site', { ...asForm('token=x'), headers: crossSite() }, 403],
  ])('refuse a call with %s', async (_, options, status) => {
    const { call, store } = setUpIntrospection({ maxBodyBytes: 1000 });
    const authorization = basic('orders', SERVER_PASSWORD);

    const answer = await call('POST', '/introspect', {
      ...options,
      headers: { authorization, ...options.headers },
    });

    expectOAuthFailure(answer, status, 'invalid_request');
    expect(answer.headers.get('www-authenticate')).toBeNull();
    expect(store.takeCalls()).toEqual([]);
  });

  it.each([
    ['; charset=UTF-8', true],
    [';charset="utf-8"', true],
    ['; charset=utf-16', false],
  ])('accept the media type parameters "%s": %s', async (parameters, isAccepted) => {
    const { ask } = setUpIntrospection();

    const answer = await ask('token=x', { headers: type(parameters) });

    expect(answer.status).toBe(isAccepted ? 200 : 415);
  });

  it.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'refuse the method %s',
    async (method) => {
      const { handler } = setUpIntrospection();
      const headers = { authorization: basic('orders', SERVER_PASSWORD) };

      const response = await handler(
        new Request('http://localhost/introspect', { method, headers }),
      );

      expect(response.status).toBe(405);
      expect(response.headers.get('allow')).toBe('POST');
    },
  );

  it('refuse a token in the query', async () => {
    const { call, store } = setUpIntrospection();
    const headers = { ...form, authorization: basic('orders', SERVER_PASSWORD) };

    const answer = await call('POST', `/introspect?token=${CANARY}`, { raw: 'token=x', headers });

    expectOAuthFailure(answer, 400, 'invalid_request');
    expect(store.takeCalls()).toEqual([]);
  });

  it('require credentials before anything else', async () => {
    const { call } = setUpIntrospection();

    expectOAuthFailure(await call('GET', '/introspect', { as: null }), 401, 'invalid_client');
    expectOAuthFailure(
      await call('POST', '/introspect?token=x', { as: null, json: 1 }),
      401,
      'invalid_client',
    );
  });

  function type(parameters: string) {
    return { 'content-type': `application/x-www-form-urlencoded${parameters}` };
  }

  function crossSite() {
    return { ...form, 'sec-fetch-site': 'cross-site' };
  }
});

describe('the credentials of a resource server', () => {
  const RIGHT = 'p@ss:w%rd+/ é';
  const encoded = (text: string) => new URLSearchParams({ x: text }).toString().slice(2);
  const withPercent = (text: string) => encodeURIComponent(text);

  function serving(options: SetUpOptions = {}) {
    const authenticate = vi.fn(({ username, password }) =>
      username === 'my shop' && password === RIGHT ? 'shop' : null,
    );
    const signIns: SignIn[] = [];
    const setup = setUp({
      introspection: { authenticate },
      clientAddress: () => '192.0.2.1',
      onSignIn: (signIn) => signIns.push(signIn),
      ...options,
    });
    const ask = async (username: string, password: string) => {
      const form = asForm('token=x');
      const headers = { ...form.headers, authorization: basic(username, password) };
      return (await setup.call('POST', '/introspect', { ...form, headers })).status;
    };
    return { ...setup, authenticate, signIns, ask };
  }

  it.each<[string, string, string, number]>([
    ['as they are', 'my shop', RIGHT, 200],
    ['encoded as a form', encoded('my shop'), encoded(RIGHT), 200],
    ['percent-encoded', withPercent('my shop'), withPercent(RIGHT), 200],
    ['encoded in lower case', 'my%20shop', encoded(RIGHT).toLowerCase(), 200],
    ['encoded twice', encoded(encoded('my shop')), encoded(encoded(RIGHT)), 401],
    ['wrong, as they are', 'my shop', `${RIGHT}x`, 401],
    ['wrong, encoded', 'my+shop', encoded(`${RIGHT}x`), 401],
    ['malformed', 'my+shop', '%zz', 401],
    ['half a character', 'my+shop', '%C3', 401],
    ['with a control character', 'my+shop', `${encoded(RIGHT)}%00`, 401],
  ])('may be %s', async (_, username, password, status) => {
    const { ask } = serving();

    expect(await ask(username, password)).toBe(status);
  });

  it('are not decoded for an account', async () => {
    const authenticate = ({ password }: { password: string }) =>
      password === RIGHT ? 'ada' : null;
    const { call } = serving({ authenticate });
    const list = async (password: string) =>
      (await call('GET', '/token', { headers: { authorization: basic('ada', password) } })).status;

    expect([await list(RIGHT), await list(encoded(RIGHT))]).toEqual([200, 401]);
  });

  it('count once for each call, for the user in every spelling', async () => {
    const limiter = failureLimiter({
      userAndAddress: new RateLimiterMemory({ points: 3, duration: 900 }),
    });
    const { ask, signIns } = serving({ limiter });

    const statuses = [
      await ask('my shop', 'wrong'),
      await ask('my+shop', encoded('wrong+')),
      await ask('m%79+shop', 'wrong'),
      await ask('%6dy+shop', encoded(RIGHT)),
      await ask('my shop', RIGHT),
    ];

    expect(statuses).toEqual([401, 401, 401, 429, 429]);
    expect(signIns.map(({ outcome }) => outcome)).toEqual([
      ...['refused', 'refused', 'refused', 'limited', 'limited'],
    ]);
  });

  it('are reported as the user that they opened', async () => {
    const { ask, signIns } = serving();

    await ask('my+shop', encoded(RIGHT));

    expect(signIns).toMatchObject([{ outcome: 'accepted', username: 'my shop', account: 'shop' }]);
  });

  it('cost one hash when they are encoded and remembered, and as much for an unknown user', async () => {
    const scrypt = quickScrypt();
    const password = 'p@ss word';
    const { ask } = serving({
      introspection: { authenticate: fixedAccounts([{ username: 'shop', password }]) },
    });
    const hashesOf = async (username: string, sent: string) => {
      scrypt.mockClear();
      return [await ask(username, sent), scrypt.mock.calls.length];
    };

    expect(await hashesOf('shop', 'p%40ss+word')).toEqual([200, 2]);
    expect(await hashesOf('shop', 'p%40ss+word')).toEqual([200, 0]);
    expect(await hashesOf('shop', password)).toEqual([200, 0]);
    expect(await hashesOf('shop', 'p%40ss+wrong')).toEqual([401, 2]);
    expect(await hashesOf('nobody', 'p%40ss+wrong')).toEqual([401, 2]);
    expect(await hashesOf('nobody', 'wrong')).toEqual([401, 1]);
  });
});

describe('the option introspection', () => {
  it('makes /introspect answer like an unknown path when it is absent', async () => {
    const { call } = setUp();

    const answer = await call('POST', '/introspect', asForm('token=x'));

    expectFailure(answer, 'not_found');
    expect(answer.text).toBe((await call('POST', '/nowhere')).text);
  });

  it.each<[string, unknown]>([
    ['true', true],
    ['an object without authenticate', {}],
    ['an object whose authenticate is not a function', { authenticate: 'orders' }],
    ['an object with an unknown member', { authenticate: () => null, realm: 'x' }],
  ])('cannot be %s', (_, value) => {
    expect(() => setUp({ introspection: value as never })).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
  });
});

function fail(error: Error): never {
  throw error;
}
