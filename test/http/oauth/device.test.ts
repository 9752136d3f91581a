import { describe, expect, it } from 'vitest';
import {
  asForm,
  basic,
  bytesOf,
  expectFailure,
  expectHeaders,
  expectOAuthFailure,
  expectSuccess,
  ORDERS,
  type SetUpOptions,
  START,
  setUp,
} from '../support.ts';

const OTHER_ORDERS = 'POST:shop.example/orders';
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const CLIENT = 'deploy bot';
const ASKED = { client_id: CLIENT, scope: `${ORDERS} ${OTHER_ORDERS}` };
const verificationUri = 'https://auth.example/approve';

type Form = Readonly<Record<string, string>>;

/** A service at which programs ask for tokens, from one address. */
function setUpAsking({ requests, ...options }: SetUpOptions = {}) {
  const setting = setUp({
    requests: { verificationUri, anonymous: true, ...requests },
    clientAddress: () => '192.0.2.7',
    ...options,
  });
  const send = (path: string, form: Form | string, headers: Form = {}) => {
    const { raw, headers: type } = asForm(form);
    const body = raw === undefined ? {} : { raw };
    return setting.call('POST', path, { as: null, headers: { ...type, ...headers }, ...body });
  };
  const open = (more: Form = {}) => send('/oauth/device', { ...ASKED, ...more });
  const poll = (device_code: unknown, more: Form = {}) =>
    send('/oauth/token', {
      grant_type: DEVICE_CODE,
      device_code: String(device_code),
      client_id: CLIENT,
      ...more,
    });
  const decide = (code: unknown, verb: 'approve' | 'deny', json: object = {}, as = 'ada') =>
    setting.call('POST', `/request/${code}/${verb}`, { json, as });
  return { ...setting, send, open, poll, decide };
}

describe('POST /oauth/device', () => {
  it('answers as RFC 8628 section 3.2 says', async () => {
    const answer = await setUpAsking().open();

    expect(answer.status).toBe(200);
    expectHeaders(answer);
    expect(answer.body).toEqual({
      device_code: expect.stringMatching(/^acme_d/),
      user_code: expect.stringMatching(/^[A-Z]{4}-[A-Z]{4}$/),
      verification_uri: verificationUri,
      expires_in: 600,
      interval: 5,
    });
  });

  it.each<[string, Form | string, number, string]>([
    ['without a client', { scope: ORDERS }, 400, 'invalid_request'],
    ['without a scope', { client_id: CLIENT }, 400, 'invalid_scope'],
    ['with a bad scope', { ...ASKED, scope: 'orders' }, 400, 'invalid_scope'],
    ['with an empty purpose', { ...ASKED, purpose: '' }, 400, 'invalid_request'],
    ['with a long client', { ...ASKED, client_id: 'x'.repeat(101) }, 400, 'invalid_request'],
    ['with a bad lifetime', { ...ASKED, ttl: '1h' }, 400, 'invalid_request'],
    ['for too long', { ...ASKED, ttl: '99999999' }, 400, 'invalid_request'],
    ['for a bad resource', { ...ASKED, resource: 'urn:x' }, 400, 'invalid_target'],
    ['with a secret', { ...ASKED, client_secret: 'x' }, 401, 'invalid_client'],
    ['with a type alone', { ...ASKED, subject_token_type: ACCESS_TOKEN }, 400, 'invalid_request'],
    [
      'for a token that is not live',
      { ...ASKED, subject_token: 'x', subject_token_type: ACCESS_TOKEN },
      400,
      'invalid_request',
    ],
    ['twice', 'client_id=a&client_id=b&scope=GET:shop.example/orders', 400, 'invalid_request'],
  ])('is refused %s', async (_, form, status, error) => {
    const { send } = setUpAsking();

    expectOAuthFailure(await send('/oauth/device', form), status, error);
  });

  it('refuses credentials, and JSON', async () => {
    const { send, call } = setUpAsking();

    const answer = await send('/oauth/device', ASKED, { authorization: basic('ada') });
    expectOAuthFailure(answer, 401, 'invalid_client');
    const json = await call('POST', '/oauth/device', { json: ASKED, as: null });
    expectOAuthFailure(json, 415, 'invalid_request');
  });

  it('is for bearers only unless requests are anonymous', async () => {
    const { open, tokens } = setUpAsking({ requests: { verificationUri, anonymous: false } });
    const { value } = await tokens.issue({ account: 'ada', scopes: [ORDERS] });

    expectOAuthFailure(await open(), 400, 'unauthorized_client');
    const elevation = await open({ subject_token: value, subject_token_type: ACCESS_TOKEN });
    expect(elevation.status).toBe(200);
  });

  it('takes the part of the scopes on the hosts that it names', async () => {
    const { open, call } = setUpAsking();
    const scope = `${ORDERS} GET:billing.example/invoices`;
    const { body } = await open({ scope, resource: 'https://shop.example/mcp' });

    const answer = await call('GET', `/request/${body['user_code']}`);

    expect(answer.body).toMatchObject({ data: { scopes: [ORDERS] } });
  });

  it('is limited by address, and in all', async () => {
    const { open } = setUpAsking();
    for (let opened = 0; opened < 20; opened += 1) await open();
    const limited = await open();
    expectOAuthFailure(limited, 429, 'temporarily_unavailable');
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);

    const small = setUpAsking({ requests: { verificationUri, anonymous: true, maxPending: 2 } });
    await small.open();
    expectOAuthFailure(await small.open(), 503, 'temporarily_unavailable');
  });
});

describe('the device grant at POST /oauth/token', () => {
  it('gives the token once, with what was approved', async () => {
    const { open, poll, decide, clock, tokens } = setUpAsking();
    const { body } = await open({ purpose: 'Tuesday release' });
    expectOAuthFailure(await poll(body['device_code']), 400, 'authorization_pending');
    expectOAuthFailure(await poll(body['device_code']), 400, 'slow_down');

    const approval = await decide(body['user_code'], 'approve', { scopes: [ORDERS], ttl: 900 });
    expect(approval.body).toMatchObject({ data: { state: 'approved', scopes: [ORDERS] } });
    clock.advance(10);

    const { status, body: given } = await poll(body['device_code']);
    expect(status).toBe(200);
    const { access_token: value, ...others } = given;
    expect(others).toEqual({
      issued_token_type: ACCESS_TOKEN,
      token_type: 'Bearer',
      expires_in: 900,
      scope: ORDERS,
    });
    expect(await tokens.introspect(String(value))).toMatchObject({
      account: 'ada',
      name: CLIENT,
      purpose: 'Tuesday release',
    });
    expectOAuthFailure(await poll(body['device_code']), 400, 'invalid_grant');
  });

  it('says that the request was denied, has expired, or is not known', async () => {
    const { open, poll, decide, clock } = setUpAsking();
    const denied = (await open()).body;
    const late = (await open()).body;
    await decide(denied['user_code'], 'deny');

    expectOAuthFailure(await poll(denied['device_code']), 400, 'access_denied');
    expectOAuthFailure(await poll('acme_dx'), 400, 'invalid_grant');
    const other = { client_id: 'other' };
    expectOAuthFailure(await poll(late['device_code'], other), 400, 'invalid_grant');
    clock.advance(600);
    expectOAuthFailure(await poll(late['device_code']), 400, 'expired_token');
  });

  it('does not offer an exchange that is off', async () => {
    const { send } = setUpAsking();
    const form = { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange' };

    expectOAuthFailure(await send('/oauth/token', form), 400, 'unsupported_grant_type');
  });
});

describe('/request/{code}', () => {
  it('shows the request to whoever has the code and an account', async () => {
    const { open, call } = setUpAsking();
    const { body } = await open({ ttl: '120' });
    const code = String(body['user_code']);

    const answer = await call('GET', `/request/${code}`);

    expectSuccess(answer, {
      data: {
        id: expect.stringMatching(/^[0-9A-Za-z]{22}$/),
        state: 'pending',
        client: CLIENT,
        address: '192.0.2.7',
        scopes: [ORDERS, OTHER_ORDERS],
        ttl: 120,
        createdAt: START,
        expire: START + 600,
      },
    });
    const typed = encodeURIComponent(` ${code.toLowerCase().replace('-', ' ')} `);
    expect((await call('GET', `/request/${typed}`)).status).toBe(200);
    expectFailure(await call('GET', `/request/${code}`, { as: null }), 'unauthenticated');
  });

  it('approves for the person who signed in', async () => {
    const { open, poll, decide, tokens } = setUpAsking({
      authenticate: ({ username }) => ({ account: 'acme', user: username }),
    });
    const { body } = await open();

    await decide(body['user_code'], 'approve', {}, 'grace');

    const { access_token: value } = (await poll(body['device_code'])).body;
    expect(await tokens.introspect(String(value))).toMatchObject({
      account: 'acme',
      createdBy: 'grace',
    });
  });

  it('shows what an elevation elevates, and what lies beyond it', async () => {
    const { open, call, tokens, poll, decide } = setUpAsking();
    const first = await tokens.issue({ account: 'ada', scopes: [ORDERS] });
    const { body } = await open({ subject_token: first.value, subject_token_type: ACCESS_TOKEN });
    const path = `/request/${body['user_code']}`;

    expect((await call('GET', path)).body).toMatchObject({
      data: { elevates: first.id, beyond: [OTHER_ORDERS], ttl: 900 },
    });
    expectFailure(await call('GET', path, { as: 'bob' }), 'not_found');
    await decide(body['user_code'], 'approve');
    const { access_token: value } = (await poll(body['device_code'])).body;
    const shown = await tokens.introspect(String(value));
    expect((await call('GET', `/token/${shown?.id}`)).body).toMatchObject({
      data: [{ elevates: first.id, parent: first.id }],
    });
  });

  it('is decided once', async () => {
    const { open, decide } = setUpAsking();
    const { body } = await open();
    expectSuccess(await decide(body['user_code'], 'deny'), { data: null });

    expectFailure(await decide(body['user_code'], 'deny'), 'request_decided');
    expectFailure(await decide(body['user_code'], 'approve'), 'request_decided');
  });

  it.each<
    [string, object, 'scope_unmatched' | 'invalid_ttl' | 'scopes_required' | 'invalid_request']
  >([
    ['more scopes', { scopes: ['GET:shop.example/items'] }, 'scope_unmatched'],
    ['a longer life', { ttl: 3601 }, 'invalid_ttl'],
    ['no scopes', { scopes: [] }, 'scopes_required'],
    ['a creator', { createdBy: 'grace' }, 'invalid_request'],
    ['another account', { account: 'bob' }, 'invalid_request'],
  ])('is not approved with %s', async (_, json, code) => {
    const { open, decide } = setUpAsking();
    const { body } = await open();

    expectFailure(await decide(body['user_code'], 'approve', json), code);
  });

  it('takes no form, and no other members', async () => {
    const { open, call, decide } = setUpAsking();
    const { body } = await open();
    const path = `/request/${body['user_code']}/approve`;

    expectFailure(await call('POST', path, asForm('scopes=')), 'cross_site');
    expectFailure(await call('POST', path), 'unsupported_media_type');
    const xml = { raw: '{}', headers: { 'content-type': 'application/xml' } };
    expectFailure(await call('POST', path, xml), 'unsupported_media_type');
    expectFailure(await decide(body['user_code'], 'deny', { x: 1 }), 'invalid_request');
  });

  it.each(['GET', 'POST'])(
    'does not say whether a code is wrong, expired or another account’s: %s',
    async (method) => {
      const { call, open, decide, clock } = setUpAsking();
      const old = (await open()).body['user_code'];
      clock.advance(600);
      const others = (await open()).body['user_code'];
      await decide(others, 'approve', {}, 'bob');
      const tail = method === 'GET' ? '' : '/approve';
      const json = method === 'GET' ? {} : { json: {} };

      const answers = [];
      for (const code of ['BBBB-BBBB', '%FF', old, others]) {
        answers.push(bytesOf(await call(method, `/request/${code}${tail}`, json)));
      }
      expect(new Set(answers).size).toBe(1);
      expect(answers[0]).toMatch(/^404 /);
    },
  );

  it('refuses the right code after ten wrong ones, with the time to wait', async () => {
    const { call, open } = setUpAsking({ clientAddress: undefined });
    const { body } = await open();
    for (let tries = 0; tries < 10; tries += 1) await call('GET', '/request/BBBB-BBBB');

    const answer = await call('GET', `/request/${body['user_code']}`);

    expectFailure(answer, 'rate_limited');
    expect(answer.headers.get('retry-after')).toBe('600');
    expect((await call('GET', `/request/${body['user_code']}`, { as: 'bob' })).status).toBe(200);
  });

  it('is no path of a service without requests', async () => {
    const { call } = setUp({ oauth: { issuer: 'https://auth.example', exchange: true } });

    for (const path of ['/request/BBBB-BBBB', '/request/BBBB-BBBB/approve', '/oauth/device']) {
      expectFailure(await call('POST', path, { json: {} }), 'not_found');
    }
  });
});
