import { describe, expect, it } from 'vitest';
import { generateKey, TokenError } from '../../src/index.ts';
import { RecordingStore } from '../support.ts';
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

/** A service with introspection, and a resource server `orders` that asks it. */
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
  it('tells of a live token in the words of the RFC, and in no envelope', async () => {
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

  it('never shows a value, whatever the service reveals', async () => {
    const { ask, issue } = setUpIntrospection({ reveal: 'always' });
    const { value } = await issue();

    expect((await ask({ token: value })).text).not.toContain(value.slice(-32));
  });

  it('counts as the first use of a new value', async () => {
    const { ask, issue, tokens } = setUpIntrospection();
    const { id } = await issue();
    const { value } = await tokens.rotate('ada', id, { activate: 'first-use' });
    expect((await tokens.get('ada', id))?.pending).toBe(true);

    expect((await ask({ token: value })).body).toMatchObject({ active: true });
    expect((await tokens.get('ada', id))?.pending).toBeUndefined();
  });

  it('says the same of all that is not live, after as many calls of the store', async () => {
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

  it('says the same of what is no value, without a call of the store', async () => {
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

  it('is not led astray by a hint', async () => {
    const { ask, issue } = setUpIntrospection();
    const { value } = await issue();

    const answer = await ask({ token: value, token_type_hint: 'refresh_token' });

    expect(answer.body).toMatchObject({ active: true });
  });

  it.each<[string, () => never, number, string]>([
    ['a store that is away', () => fail(new Error(CANARY)), 503, 'temporarily_unavailable'],
    [
      'a store that is corrupt',
      () => fail(new TokenError('store_corrupt', CANARY)),
      503,
      'temporarily_unavailable',
    ],
  ])('is an outage with %s, never an inactive token', async (_, fault, status, error) => {
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
    ['an account of the service', basic('ada', PASSWORD)],
    ['a wrong password', basic('orders', PASSWORD)],
    ['a token', 'Bearer acme_1k1'],
    ['nothing', ''],
    ['two at once', `${basic('orders', SERVER_PASSWORD)}, ${basic('orders', SERVER_PASSWORD)}`],
  ])('are not those of %s', async (_, authorization) => {
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

  it('do not open the service', async () => {
    const { call } = setUpIntrospection();
    const headers = { authorization: basic('orders', SERVER_PASSWORD) };

    expectFailure(await call('GET', '/token', { headers }), 'unauthenticated');
    expect(await call('GET', '/token')).toMatchObject({ status: 200 });
  });

  it.each<[string, () => unknown]>([
    ['throws', () => fail(new Error(CANARY))],
    ['rejects', () => Promise.reject(new Error(CANARY))],
    ['says yes in no words of ours', () => true],
  ])('are an outage where authenticate %s', async (_, authenticate) => {
    const { ask, issue } = setUpIntrospection({
      introspection: { authenticate: authenticate as () => null },
    });
    const { value } = await issue();

    expectOAuthFailure(await ask({ token: value }), 503, 'temporarily_unavailable');
  });
});

describe('a bad call of /introspect', () => {
  const form = asForm('').headers as Record<string, string>;

  it.each<[string, CallOptions, number]>([
    ['no body', { headers: form }, 400],
    ['an empty body', { raw: '', headers: form }, 400],
    ['no token', { ...asForm({ token_type_hint: 'access_token' }) }, 400],
    ['an empty token', asForm('token='), 400],
    ['a token twice', asForm(`token=${CANARY}&token=${CANARY}`), 400],
    ['a hint twice', asForm('token=x&token_type_hint=a&token_type_hint=b'), 400],
    ['an unknown parameter twice', asForm('token=x&a=1&a=1'), 400],
    ['bytes that are no UTF-8', { raw: Buffer.from([0xff, 0x3d]), headers: form }, 400],
    ['JSON', { json: { token: CANARY } }, 415],
    ['JSON that is called a form', { ...asForm('{"token":"x"}') }, 400],
    ['another charset', { raw: 'token=x', headers: type('; charset=latin1') }, 415],
    ['an encoding', { raw: 'token=x', headers: { ...form, 'content-encoding': 'gzip' } }, 415],
    ['no media type', { raw: 'token=x', headers: { 'content-type': '' } }, 415],
    ['a body that is too large', asForm(`token=x&more=${'x'.repeat(1000)}`), 413],
    ['a page of another site', { ...asForm('token=x'), headers: crossSite() }, 403],
  ])('is refused with %s', async (_, options, status) => {
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
  ])('does not depend on a media type with "%s": %s', async (parameters, isTaken) => {
    const { ask } = setUpIntrospection();

    const answer = await ask('token=x', { headers: type(parameters) });

    expect(answer.status).toBe(isTaken ? 200 : 415);
  });

  it.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'has the method %s',
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

  it('has a token in the query', async () => {
    const { call, store } = setUpIntrospection();
    const headers = { ...form, authorization: basic('orders', SERVER_PASSWORD) };

    const answer = await call('POST', `/introspect?token=${CANARY}`, { raw: 'token=x', headers });

    expectOAuthFailure(answer, 400, 'invalid_request');
    expect(store.takeCalls()).toEqual([]);
  });

  it('asks for credentials before anything else is looked at', async () => {
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

describe('introspection that was not asked for', () => {
  it('is nowhere, as any other address', async () => {
    const { call } = setUp();

    const answer = await call('POST', '/introspect', asForm('token=x'));

    expectFailure(answer, 'not_found');
    expect(answer.text).toBe((await call('POST', '/nowhere')).text);
  });

  it.each<[string, unknown]>([
    ['true', true],
    ['no authenticate', {}],
    ['an authenticate that is no function', { authenticate: 'orders' }],
    ['an unknown member', { authenticate: () => null, realm: 'x' }],
  ])('refuses an option that is %s', (_, value) => {
    expect(() => setUp({ introspection: value as never })).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
  });
});

function fail(error: Error): never {
  throw error;
}
