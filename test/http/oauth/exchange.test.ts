import { describe, expect, it, vi } from 'vitest';
import { MemoryTokenStore, type TokenLimits } from '../../../src/index.ts';
import { RecordingStore } from '../../support.ts';
import {
  type Answer,
  asForm,
  bytesOf,
  CANARY,
  exchangeForm,
  expectFailure,
  expectHeaders,
  expectOAuthFailure,
  ORDERS,
  type SetUpOptions,
  START,
  setUp,
} from '../support.ts';

const OTHER_ORDERS = 'POST:shop.example/orders';
const INVOICES = 'GET:billing.example/invoices';
const SHOP = 'https://shop.example/mcp';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const oauth = { issuer: 'https://auth.example', exchange: true };

type Form = Parameters<typeof asForm>[0];
type More = Parameters<typeof exchangeForm>[1];

/** A service with exchange, a token of three scopes on two hosts, and a call that exchanges a value. */
async function setUpExchange({ lifetimeSeconds = 7200, ...options }: Options = {}) {
  const setting = setUp({ oauth, ...options });
  const parent = await setting.tokens.issue({
    account: 'ada',
    scopes: [ORDERS, OTHER_ORDERS, INVOICES],
    ttlSeconds: lifetimeSeconds,
  });
  const send = (form: Form, headers: Readonly<Record<string, string>> = {}) => {
    const { raw, headers: type } = asForm(form);
    const sent = { as: null, headers: { ...type, ...headers }, ...(raw !== undefined && { raw }) };
    return setting.call('POST', '/oauth/token', sent);
  };
  const exchange = (more?: More, value = parent.value) => send(exchangeForm(value, more));
  return { ...setting, parent, send, exchange };
}

interface Options extends SetUpOptions {
  readonly lifetimeSeconds?: number;
}

describe('POST /oauth/token', () => {
  it('answers as RFC 8693 section 2.2.1 says, and in no envelope', async () => {
    const { exchange, parent, tokens } = await setUpExchange();

    const answer = await exchange({ client_id: 'agent', purpose: 'one task' });

    expect(answer.status).toBe(200);
    expectHeaders(answer);
    const { access_token: value, ...others } = answer.body;
    expect(others).toEqual({
      issued_token_type: ACCESS_TOKEN,
      token_type: 'Bearer',
      expires_in: 3600,
      scope: ORDERS,
    });
    const token = await tokens.introspect(String(value));
    expect(token).toMatchObject({ account: 'ada', parent: parent.id, purpose: 'one task' });
    expect(token?.expiresAt).toEqual(new Date((START + 3600) * 1000));
    expect(await tokens.allows(String(value), { scope: OTHER_ORDERS })).toBe(false);
  });

  it.each<[what: string, more: More, scope: string]>([
    ['a scope', { scope: OTHER_ORDERS }, OTHER_ORDERS],
    [
      'scopes with spaces between them',
      { scope: `${ORDERS}  ${INVOICES} ` },
      `${INVOICES} ${ORDERS}`,
    ],
    ['a wildcard', { scope: 'GET:*/*' }, `${INVOICES} ${ORDERS}`],
    ['a resource alone', { scope: undefined, resource: SHOP }, `${ORDERS} ${OTHER_ORDERS}`],
    ['an audience alone', { scope: undefined, audience: 'Billing.example' }, INVOICES],
    [
      'a resource with port and query',
      { scope: undefined, resource: 'HTTP://shop.example:81?x=@' },
      `${ORDERS} ${OTHER_ORDERS}`,
    ],
    ['a wildcard and a resource', { scope: 'GET:*/*', resource: SHOP }, ORDERS],
    ['scopes on and off the resource', { scope: `${ORDERS} ${INVOICES}`, resource: SHOP }, ORDERS],
    [
      'a host in both parameters',
      { scope: undefined, resource: SHOP, audience: 'shop.example' },
      `${ORDERS} ${OTHER_ORDERS}`,
    ],
    [
      'a resource and an audience',
      { scope: 'GET:*/*', resource: SHOP, audience: 'billing.example' },
      `${INVOICES} ${ORDERS}`,
    ],
    ['the only type that can be requested', { requested_token_type: ACCESS_TOKEN }, ORDERS],
    ['an unknown parameter', { nonce: 'x' }, ORDERS],
  ])('grants, for %s, what is held of it', async (_, more, scope) => {
    const { exchange } = await setUpExchange();

    expect(await exchange(more)).toMatchObject({ status: 200, body: { scope } });
  });

  it('grants the parts on several resources', async () => {
    const { send, parent } = await setUpExchange();
    const form = new URLSearchParams(exchangeForm(parent.value, { scope: undefined }));
    for (const resource of [SHOP, 'https://billing.example']) form.append('resource', resource);

    const { body } = await send(String(form));

    expect(body['scope']).toBe(`${INVOICES} ${ORDERS} ${OTHER_ORDERS}`);
  });

  it.each<[what: string, more: More, error: string]>([
    ['no grant_type', { grant_type: undefined }, 'invalid_request'],
    ['another grant', { grant_type: 'client_credentials' }, 'unsupported_grant_type'],
    [
      'the grant of a device, which is off',
      { grant_type: 'urn:ietf:params:oauth:grant-type:device_code' },
      'unsupported_grant_type',
    ],
    [
      'a member of every object as the grant',
      { grant_type: '__proto__' },
      'unsupported_grant_type',
    ],
    ['no subject_token', { subject_token: undefined }, 'invalid_request'],
    ['a value that is not one', { subject_token: `acme_${CANARY}` }, 'invalid_request'],
    ['a value and a NUL', { subject_token: `acme_\0${CANARY}` }, 'invalid_request'],
    ['no subject_token_type', { subject_token_type: undefined }, 'invalid_request'],
    ['another subject_token_type', { subject_token_type: `${ACCESS_TOKEN}x` }, 'invalid_request'],
    [
      'a refresh token as the type',
      { subject_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' },
      'invalid_request',
    ],
    [
      'another requested_token_type',
      { requested_token_type: 'urn:ietf:params:oauth:token-type:jwt' },
      'invalid_request',
    ],
    ['an actor_token without its type', { actor_token: 'x' }, 'invalid_request'],
    ['an actor_token_type alone', { actor_token_type: ACCESS_TOKEN }, 'invalid_request'],
    [
      'an actor_token that is not a value',
      { actor_token: CANARY, actor_token_type: ACCESS_TOKEN },
      'invalid_request',
    ],
    ['no scope and no target', { scope: undefined }, 'invalid_scope'],
    ['only spaces as scope', { scope: '  ' }, 'invalid_scope'],
    ['a text that is not a scope', { scope: 'orders' }, 'invalid_scope'],
    ['a scope with a NUL', { scope: `${ORDERS}\0` }, 'invalid_scope'],
    [
      'scopes with a line break between them',
      { scope: `${ORDERS}\n${OTHER_ORDERS}` },
      'invalid_scope',
    ],
    ['a bad scope and a resource', { scope: `${ORDERS} orders`, resource: SHOP }, 'invalid_scope'],
    ['a scope that is not held', { scope: 'GET:shop.example/items' }, 'invalid_scope'],
    [
      'a scope that is not held beside one that is',
      { scope: `${ORDERS} GET:shop.example/items` },
      'invalid_scope',
    ],
    [
      'more scopes than a token holds',
      { scope: Array.from({ length: 4097 }, (_, i) => `*:*/${i.toString(36)}`).join(' ') },
      'invalid_scope',
    ],
    [
      'a scope on another host than the resource',
      { scope: INVOICES, resource: SHOP },
      'invalid_scope',
    ],
    [
      'a resource on which nothing is held',
      { scope: undefined, resource: 'https://other.example' },
      'invalid_scope',
    ],
    [
      'a host whose name only ends the same',
      { scope: undefined, audience: 'evilshop.example' },
      'invalid_scope',
    ],
    ['ttl 0', { ttl: '0' }, 'invalid_request'],
    ['a negative ttl', { ttl: '-1' }, 'invalid_request'],
    ['a ttl with a fraction', { ttl: '1.5' }, 'invalid_request'],
    ['a ttl with a unit', { ttl: '15m' }, 'invalid_request'],
    ['a ttl in hex', { ttl: '0x10' }, 'invalid_request'],
    ['a ttl beyond the longest', { ttl: '31536001' }, 'invalid_request'],
    ['a ttl of 400 digits', { ttl: '9'.repeat(400) }, 'invalid_request'],
    ['a purpose of 201 characters', { purpose: 'x'.repeat(201) }, 'invalid_request'],
    ['a purpose with a NUL', { purpose: `${CANARY}\0` }, 'invalid_request'],
  ])('refuses %s', async (_, more, error) => {
    const { exchange, tokens } = await setUpExchange();

    expectOAuthFailure(await exchange(more), 400, error);
    expect((await tokens.list({ account: 'ada' })).tokens).toHaveLength(1);
  });

  it.each([
    'shop.example',
    '/mcp',
    'urn:shop.example',
    'ftp://shop.example',
    'javascript:alert(1)',
    'https://',
    'https:///shop.example',
    'https://ada@shop.example/',
    'https://ada:secret@shop.example/',
    'https://@shop.example/',
    'https://shop.example/#x',
    'https://shop.example/#',
    'https:\\\\shop.example\\mcp',
    'https://shop.example\\@other.example/',
    ' https://shop.example',
    'https://shop.example/a b',
    'https://shop.example/\t',
    'https://sh\0op.example/',
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://0x7f.1/',
    'https://*.example/',
    'https://shop.example:99999/',
    `https://${'a'.repeat(300)}.example/`,
  ])('refuses the resource %j as invalid_target', async (resource) => {
    const { exchange } = await setUpExchange();

    expectOAuthFailure(await exchange({ resource }), 400, 'invalid_target');
    expectOAuthFailure(await exchange({ resource, scope: undefined }), 400, 'invalid_target');
  });

  it.each([
    '*',
    '*.example',
    'shop.example:443',
    'shop.example/',
    'https://shop.example',
    'shop.example/*',
    'ada@shop.example',
    ' shop.example',
    'shop..example',
    '127.0.0.1',
    'sh\0op.example',
    'shöp.example',
  ])('refuses the audience %j as invalid_target', async (audience) => {
    const { exchange } = await setUpExchange();

    expectOAuthFailure(await exchange({ audience }), 400, 'invalid_target');
  });

  it('takes 16 hosts, however often each is named, and no more', async () => {
    const { send, parent } = await setUpExchange();
    const form = new URLSearchParams(exchangeForm(parent.value));
    for (let i = 0; i < 15; i++) form.append('audience', `a${i}.example`);
    for (let i = 0; i < 100; i++) form.append('audience', 'shop.example');

    expect((await send(String(form))).status).toBe(200);
    form.append('audience', 'b.example');
    expectOAuthFailure(await send(String(form)), 400, 'invalid_target');
  });

  it.each([
    'grant_type',
    'subject_token',
    'subject_token_type',
    'actor_token',
    'actor_token_type',
    'requested_token_type',
    'scope',
    'ttl',
    'purpose',
    'client_id',
    'something_else',
  ])('refuses %s twice, and without a value', async (name) => {
    const { send, parent } = await setUpExchange();
    const form = new URLSearchParams(exchangeForm(parent.value));
    if (!form.has(name)) form.set(name, '900');
    const twice = new URLSearchParams(form);
    twice.append(name, form.get(name) ?? '');
    form.set(name, '');

    expectOAuthFailure(await send(String(twice)), 400, 'invalid_request');
    expectOAuthFailure(await send(String(form)), 400, 'invalid_request');
  });

  it.each(['resource', 'audience'])('refuses %s without a value', async (name) => {
    const { exchange } = await setUpExchange();

    expectOAuthFailure(await exchange({ [name]: '' }), 400, 'invalid_request');
  });

  it.each<[what: string, more: More, headers: Readonly<Record<string, string>>]>([
    ['Basic credentials', {}, { authorization: 'Basic YTpi' }],
    ['a Bearer token', {}, { authorization: 'Bearer x' }],
    ['an empty Authorization', {}, { authorization: '' }],
    ['client_secret', { client_secret: CANARY }, {}],
    ['client_assertion', { client_assertion: CANARY }, {}],
  ])('refuses %s with 401 invalid_client, even if the rest is right', async (_, more, headers) => {
    const { send, parent, tokens } = await setUpExchange();

    const answer = await send(exchangeForm(parent.value, more), headers);

    expectOAuthFailure(answer, 401, 'invalid_client');
    expect((await tokens.list({ account: 'ada' })).tokens).toHaveLength(1);
  });

  it('answers alike for every value that is not live, and does not say why', async () => {
    const { exchange, parent, tokens, clock } = await setUpExchange();
    const dead = [];
    for (const end of [
      (id: string) => tokens.revoke('ada', id),
      (id: string) => tokens.patch('ada', id, { suspended: true }),
      (id: string) => tokens.rotate('ada', id),
    ]) {
      const token = await tokens.issue({ account: 'ada', scopes: [ORDERS] });
      await end(token.id);
      dead.push(token.value);
    }
    const orphan = await tokens.derive(parent.value, { scopes: [ORDERS] });
    const answers = [];
    for (const value of ['acme_nonsense', parent.id, ...dead]) {
      answers.push(await exchange({}, value));
    }
    clock.advance(7200);
    answers.push(await exchange({}, parent.value), await exchange({}, orphan.value));

    for (const answer of answers) {
      expectOAuthFailure(answer, 400, 'invalid_request');
      expect(bytesOf(answer)).toBe(bytesOf(answers[0] as Answer));
    }
  });

  it.each([
    [undefined, 3600, 7200],
    ['900', 900, 7200],
    ['7200', 7200, 7200],
    ['31536000', 60, 60],
    [undefined, 60, 60],
  ])(
    'with ttl %s lives %i seconds of the %i that the parent has',
    async (ttl, seconds, lifetimeSeconds) => {
      const { exchange } = await setUpExchange({ lifetimeSeconds });

      expect((await exchange({ ttl })).body['expires_in']).toBe(seconds);
    },
  );

  it('lives no longer by default than a service allows', async () => {
    const lifetime = { defaultSeconds: 60, maxSeconds: 900 };
    const { exchange } = await setUpExchange({ lifetime, lifetimeSeconds: 900 });

    expect((await exchange()).body['expires_in']).toBe(900);
    expectOAuthFailure(await exchange({ ttl: '901' }), 400, 'invalid_request');
  });

  it('keeps who acts, by a live value of any account', async () => {
    const { exchange, issue, tokens } = await setUpExchange();
    const bot = await issue('bot');
    const actor = { actor_token: bot.value, actor_token_type: ACCESS_TOKEN };

    const { body } = await exchange(actor);

    const token = await tokens.introspect(String(body['access_token']));
    expect(token?.actor).toEqual({ sub: 'bot', token: bot.id });
    await tokens.revoke('bot', bot.id);
    const refused = await exchange(actor);
    expectOAuthFailure(refused, 400, 'invalid_request');
    expect(refused.body['error_description']).toContain('actor_token');
  });
});

describe('what holds for derive holds for an exchange', () => {
  const withLimits = async (limits: TokenLimits, options: SetUpOptions = {}) => {
    const setting = await setUpExchange(options);
    const { value } = await setting.tokens.issue({ account: 'ada', scopes: [ORDERS], limits });
    return { ...setting, exchange: () => setting.exchange({}, value) };
  };

  it.each([
    ['10.9.9.9', 200],
    ['127.0.0.1', 400],
    [undefined, 400],
  ])('the address: %s', async (address, status) => {
    const clientAddress = address === undefined ? {} : { clientAddress: () => address };
    const { exchange } = await withLimits({ addresses: ['10.9.9.9'] }, clientAddress);

    const answer = await exchange();

    expect(answer.status).toBe(status);
    if (status === 400) expectOAuthFailure(answer, 400, 'invalid_request');
  });

  it('uses: each exchange spends one', async () => {
    const { exchange } = await withLimits({ uses: 1 }, { limits: true });

    expect((await exchange()).status).toBe(200);
    const refused = await exchange();
    expect(refused).toMatchObject({ status: 429, body: { error: 'temporarily_unavailable' } });
  });

  it('rates: the answer says when the next use is allowed', async () => {
    const { leases } = new MemoryTokenStore({ clock: { now: () => new Date(START * 1000) } });
    const rate = { uses: 1, seconds: 60 };
    const { exchange } = await withLimits({ rate }, { limits: { store: leases } });

    expect((await exchange()).status).toBe(200);
    const refused = await exchange();
    expectOAuthFailure(refused, 429, 'temporarily_unavailable');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  it('the quota of the root, also for tokens of later generations', async () => {
    const { exchange } = await setUpExchange({ quotas: { derivedPerRoot: 2 } });
    const { body } = await exchange();
    const child = String(body['access_token']);

    expect((await exchange({}, child)).status).toBe(200);
    expectOAuthFailure(await exchange(), 400, 'invalid_request');
    expectOAuthFailure(await exchange({}, child), 400, 'invalid_request');
  });

  it('generations: the ninth is refused', async () => {
    const { exchange, parent } = await setUpExchange();
    let { value } = parent;
    for (let generation = 2; generation <= 8; generation++) {
      const { status, body } = await exchange({}, value);
      expect([generation, status]).toEqual([generation, 200]);
      value = String(body['access_token']);
    }

    expectOAuthFailure(await exchange({}, value), 400, 'invalid_request');
  });

  it('the grace of a value that was rotated', async () => {
    const { exchange, parent, tokens } = await setUpExchange();
    await tokens.rotate('ada', parent.id, { graceSeconds: 60 });

    expect((await exchange()).body['expires_in']).toBe(60);
  });

  it('ancestors: what they lose, the exchanged token loses', async () => {
    const { exchange, parent, tokens } = await setUpExchange();
    const { body } = await exchange({ scope: `${ORDERS} ${INVOICES}` });
    const value = String(body['access_token']);
    await tokens.patch('ada', parent.id, { removeScopes: [ORDERS] });

    expectOAuthFailure(await exchange({}, value), 400, 'invalid_scope');
    expect((await exchange({ scope: INVOICES }, value)).status).toBe(200);
    await tokens.revoke('ada', parent.id);
    expectOAuthFailure(await exchange({ scope: INVOICES }, value), 400, 'invalid_request');
  });
});

describe('hostile calls of /oauth/token', () => {
  it.each([
    ['application/json', 415],
    ['text/plain', 415],
    ['multipart/form-data; boundary=x', 415],
    ['application/x-www-form-urlencoded; charset=utf-16', 415],
    ['application/x-www-form-urlencoded; charset=UTF-8', 200],
  ])('with the type %s are answered with %i', async (type, status) => {
    const { send, parent } = await setUpExchange();

    const answer = await send(exchangeForm(parent.value), { 'content-type': type });

    if (status === 200) expect(answer.status).toBe(200);
    else expectOAuthFailure(answer, status, 'invalid_request');
  });

  it('take a form of 64 kB, and no larger one', async () => {
    const { send, parent } = await setUpExchange();
    const form = String(new URLSearchParams(exchangeForm(parent.value)));
    const padded = (length: number) => `${form}&x=`.padEnd(length, 'x');

    expect((await send(padded(65_536))).status).toBe(200);
    expectOAuthFailure(await send(padded(65_537)), 413, 'invalid_request');
  });

  it.each([
    ['no body', ''],
    ['bytes that are not UTF-8', Buffer.from([0x61, 0x3d, 0xff])],
    ['twenty thousand repeated parameters', 'a&'.repeat(20_000)],
    ['thousands of targets', 'resource=x&'.repeat(5000)],
  ])('with %s are refused', async (_, raw) => {
    const { call } = await setUpExchange();
    const { headers = {} } = asForm('');

    const { status, body } = await call('POST', '/oauth/token', { as: null, raw, headers });

    expect([status, body['error']]).toEqual([400, 'invalid_request']);
  });

  it.each(['GET', 'PUT', 'DELETE', 'OPTIONS'])('by %s are 405', async (method) => {
    const { call } = await setUpExchange();

    const answer = await call(method, '/oauth/token', { as: null });

    expectOAuthFailure(answer, 405, 'invalid_request');
    expect(answer.headers.get('allow')).toBe('POST');
  });

  it('with a token in the address are refused', async () => {
    const { call, parent } = await setUpExchange();
    const form = asForm(exchangeForm(parent.value));

    const answer = await call('POST', '/oauth/token?access_token=x', { as: null, ...form });

    expectOAuthFailure(answer, 400, 'invalid_request');
  });

  it('with a forged value read nothing, however many scopes they ask for', async () => {
    const store = new RecordingStore();
    const { exchange, parent } = await setUpExchange({ store });
    store.takeCalls();
    const forged = `${parent.value.slice(0, -1)}${parent.value.endsWith('0') ? '1' : '0'}`;
    const scope = Array.from({ length: 4000 }, (_, i) => `*:*/${i}`).join(' ');

    expectOAuthFailure(await exchange({ scope, resource: SHOP }, forged), 400, 'invalid_request');
    expect(store.takeCalls()).toEqual([]);
  });

  it('are 503 while the store is down, and the host learns why', async () => {
    const store = new RecordingStore();
    const onError = vi.fn();
    const { exchange } = await setUpExchange({ store, onError });
    store.break('find', () => Promise.reject(new Error('down')));

    expectOAuthFailure(await exchange(), 503, 'temporarily_unavailable');
    expect(onError).toHaveBeenCalledOnce();
    store.mend();
    expect((await exchange()).status).toBe(200);
  });

  it('are 500 for a fault of the service, which they learn nothing about', async () => {
    const { exchange, tokens } = await setUpExchange();
    Object.assign(tokens, { derive: () => Promise.reject(new Error(CANARY)) });

    expectOAuthFailure(await exchange(), 500, 'server_error');
  });

  it('may come from a page of another site, as those with a Bearer token may', async () => {
    const { send, parent } = await setUpExchange();

    const { status, headers } = await send(exchangeForm(parent.value), {
      origin: 'https://evil.example',
      'sec-fetch-site': 'cross-site',
    });

    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, null]);
  });
});

describe('a service without exchange', () => {
  it.each<[string, SetUpOptions]>([
    ['no oauth', {}],
    ['an issuer alone', { oauth: { issuer: 'https://auth.example' } }],
    ['exchange: false', { oauth: { ...oauth, exchange: false } }],
  ])(
    'answers the path as any unknown one, and its document as before, with %s',
    async (_, options) => {
      const { send, parent, call } = await setUpExchange({ oauth: undefined, ...options });
      const plain = setUp();

      const answer = await send(exchangeForm(parent.value));
      const unknown = await call('POST', '/oauth/tokens', { as: null });

      expectFailure(answer, 'not_found');
      expect(bytesOf(answer)).toBe(bytesOf(unknown));
      for (const all of [{}, { introspection: { authenticate: () => null }, revocation: true }]) {
        const [before, after] = [setUp(all), setUp({ ...all, ...options })];
        const document = (setting: typeof before) =>
          setting.call('GET', '/openapi.json', { as: null });
        expect(bytesOf(await document(after))).toBe(bytesOf(await document(before)));
      }
      expect(await plain.call('POST', '/oauth/token', { as: null })).toMatchObject({ status: 404 });
    },
  );

  it.each([
    ['no issuer', { exchange: true }],
    ['http', { issuer: 'http://auth.example' }],
    ['a query', { issuer: 'https://auth.example?x' }],
    ['a fragment', { issuer: 'https://auth.example#x' }],
    ['a text for exchange', { issuer: 'https://auth.example', exchange: 'yes' }],
    ['an unknown member', { issuer: 'https://auth.example', requires: true }],
    ['a text', 'https://auth.example'],
  ])('cannot be made with oauth that has %s', (_, given) => {
    expect(() => setUp({ oauth: given as never })).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
  });
});
