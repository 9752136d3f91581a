import * as fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { tokenHandler } from '../../src/http/index.ts';
import { isTokenError, MemoryTokenStore, TokenError, TokenService } from '../../src/index.ts';
import { withFaults } from '../../src/testing/index.ts';
import { runs } from '../laws.ts';
import { ALL_METHODS, RecordingStore } from '../support.ts';
import {
  basic,
  CANARY,
  CATALOG,
  type CallOptions,
  CODES,
  type Code,
  expectFailure,
  expectHeaders,
  expectSuccess,
  ONE_YEAR,
  ORDERS,
  PASSWORD,
  type Setup,
  START,
  setUp,
  toRequest,
} from './support.ts';

const UNKNOWN_ID = '0'.repeat(22);
const VALUE = /^acme_1k1[0-9A-Za-z]{55}$/;
const MASKED = /^acme_1k1[0-9A-Za-z]{6}…$/;
const ID = /^[0-9A-Za-z]{22}$/;
/** How the answer to `GET /scopes` may be cached. */
const PRIVATE = 'private, no-cache';

/** Every call of the service, with a valid body. */
const CALLS: [method: string, path: string, json?: unknown][] = [
  ['POST', '/token', { scopes: [ORDERS] }],
  ['GET', '/token'],
  ['GET', '/token/ID'],
  ['PUT', '/token/ID', { scopes: [ORDERS] }],
  ['PATCH', '/token/ID', { name: 'ci' }],
  ['DELETE', '/token/ID'],
  ['POST', '/token/ID/rotate'],
  ['GET', '/scopes'],
];

const CHANGES = CALLS.filter(([, path]) => path.startsWith('/token/ID'));

describe('POST /token', () => {
  it('returns the token beside the envelope', async () => {
    const { call } = setUp();

    const answer = await call('POST', '/token', { json: { scopes: ['*:shop.example/*'] } });

    expectSuccess(answer, {
      scopes: ['GET:shop.example/items', 'GET:shop.example/orders', 'POST:shop.example/orders'],
      expire: START + ONE_YEAR,
      token: expect.stringMatching(VALUE),
      masked: expect.stringMatching(MASKED),
      id: expect.stringMatching(ID),
      state: 'active',
      createdAt: START,
      version: 1,
    });
    expect(answer.headers.get('etag')).toBe('"1"');
  });

  it('accepts a lifetime, a name and metadata', async () => {
    const { call } = setUp();
    const json = { scopes: [ORDERS], ttl: 60, name: 'ci', metadata: { team: ['a', null, 1.5] } };

    const answer = await call('POST', '/token', { json });

    expectSuccess(answer, {
      scopes: [ORDERS],
      expire: START + 60,
      token: expect.stringMatching(VALUE),
      masked: expect.stringMatching(MASKED),
      id: expect.stringMatching(ID),
      state: 'active',
      createdAt: START,
      version: 1,
      name: 'ci',
      metadata: { team: ['a', null, 1.5] },
    });
  });

  it('returns a value that verifies', async () => {
    const { call, tokens } = setUp();

    const { body } = await call('POST', '/token', { json: { scopes: [ORDERS] } });

    const verdict = await tokens.verify(String(body['token']), { scope: ORDERS });
    expect(verdict).toMatchObject({ ok: true, token: { account: 'ada', id: body['id'] } });
  });

  it('rounds createdAt and expire down to whole seconds', async () => {
    const { call, clock } = setUp();
    clock.advance(0.999);

    const { body } = await call('POST', '/token', { json: { scopes: [ORDERS], ttl: 1 } });

    expect(body).toMatchObject({ createdAt: START, expire: START + 1 });
  });
});

describe('GET /token', () => {
  it('lists only the tokens of the account, newest first', async () => {
    const { call, issue, clock } = setUp();
    const first = await issue();
    clock.advance(1);
    const second = await issue();
    await issue('bob');

    const answer = await call('GET', '/token');

    const shared = { scopes: [ORDERS], state: 'active', version: 1 };
    expectSuccess(answer, {
      data: [
        {
          ...shared,
          id: second.id,
          token: second.id,
          masked: second.masked,
          createdAt: START + 1,
          expire: START + 1 + ONE_YEAR,
        },
        {
          ...shared,
          id: first.id,
          token: first.id,
          masked: first.masked,
          createdAt: START,
          expire: START + ONE_YEAR,
        },
      ],
    });
    expect(answer.headers.has('link')).toBe(false);
    expect(answer.headers.has('etag')).toBe(false);
    expectSuccess(await call('GET', '/token', { as: 'eve' }), { data: [] });
  });

  it('omits a token from the instant of its expiry', async () => {
    const { call, clock } = setUp();
    await call('POST', '/token', { json: { scopes: [ORDERS], ttl: 60 } });

    clock.advance(59.999);
    expect((await call('GET', '/token')).body['data']).toHaveLength(1);
    clock.advance(0.001);
    expectSuccess(await call('GET', '/token'), { data: [] });
  });
});

describe('GET /token/{token}', () => {
  it('returns a list of one token, by id and by value', async () => {
    const { call, issue } = setUp();
    const { id, masked, value } = await issue();
    const token = {
      scopes: [ORDERS],
      expire: START + ONE_YEAR,
      token: id,
      masked,
      id,
      state: 'active',
      createdAt: START,
      version: 1,
    };

    for (const path of [`/token/${id}`, `/token/${value}`]) {
      const answer = await call('GET', path);
      expectSuccess(answer, { data: [token] });
      expect(answer.headers.get('etag')).toBe('"1"');
    }
  });

  it('shows the value when the service reveals it', async () => {
    const { call, issue } = setUp({ reveal: 'always' });
    const { id, value } = await issue();

    const one = await call('GET', `/token/${id}`);
    const all = await call('GET', '/token');

    expect(one.body['data']).toMatchObject([{ id, token: value }]);
    expect(all.body['data']).toMatchObject([{ id, token: value }]);
  });

  it('still shows an expired token with its state', async () => {
    const { call, issue, clock } = setUp();
    const { id } = await issue();
    clock.advance(ONE_YEAR);

    expect((await call('GET', `/token/${id}`)).body['data']).toMatchObject([{ state: 'expired' }]);
  });
});

describe('PUT /token/{token}', () => {
  it('replaces scopes and expiry and keeps value, name and metadata', async () => {
    const { call, tokens, clock } = setUp();
    const more = { name: 'ci', metadata: { a: 1 } };
    const { id, masked, value } = await tokens.issue({
      account: 'ada',
      scopes: [ORDERS],
      ...more,
    });
    clock.advance(10);
    const json = { scopes: ['GET:*/*'], expire: START + 3600 };

    const answer = await call('PUT', `/token/${id}`, { json });

    const scopes = ['GET:billing.example/invoices', 'GET:shop.example/items', ORDERS];
    expectSuccess(answer, {
      data: [
        {
          scopes,
          expire: START + 3600,
          token: id,
          masked,
          id,
          state: 'active',
          createdAt: START,
          version: 2,
          ...more,
        },
      ],
    });
    expect(answer.headers.get('etag')).toBe('"2"');
    expect(await tokens.verify(value, { scope: 'GET:shop.example/items' })).toMatchObject({
      ok: true,
    });
  });

  it('starts the default lifetime over when no expiry is given', async () => {
    const { call, clock } = setUp({ lifetime: { defaultSeconds: 600 } });
    const { body } = await call('POST', '/token', { json: { scopes: [ORDERS], ttl: 3600 } });
    clock.advance(100);

    const answer = await call('PUT', `/token/${body['id']}`, { json: { scopes: [ORDERS] } });

    expect(answer.body['data']).toMatchObject([{ expire: START + 700 }]);
  });

  it.each([
    ['now', 0, false],
    ['one second from now', 1, true],
    ['one second ago', -1, false],
    ['a year from now', ONE_YEAR, true],
    ['a year and a second from now', ONE_YEAR + 1, false],
  ])('accepts an expiry of %s (%i s from now): %s', async (_, seconds, isAccepted) => {
    const { call, issue } = setUp();
    const { id } = await issue();
    const json = { scopes: [ORDERS], expire: START + seconds };

    const answer = await call('PUT', `/token/${id}`, { json });

    if (isAccepted) expect(answer.body['data']).toMatchObject([{ expire: START + seconds }]);
    else expectFailure(answer, 'invalid_expire');
  });
});

describe('PATCH /token/{token}', () => {
  const held = [ORDERS, 'GET:shop.example/items'].sort();

  it.each<[object, object]>([
    [{ scopes: ['POST:shop.example/orders'] }, { scopes: ['POST:shop.example/orders'] }],
    [
      { addScopes: ['GET:billing.example/*'] },
      { scopes: ['GET:billing.example/invoices', ...held] },
    ],
    [{ removeScopes: ['GET:shop.example/items'] }, { scopes: [ORDERS] }],
    [
      {
        addScopes: ['POST:shop.example/orders'],
        removeScopes: ['GET:shop.example/*'],
      },
      { scopes: ['POST:shop.example/orders'] },
    ],
    [{ expire: START + 5 }, { expire: START + 5 }],
    [{ name: 'deploy' }, { name: 'deploy' }],
    [{ metadata: { b: 2 } }, { metadata: { b: 2 } }],
  ])('changes only the fields of %j', async (json, changed) => {
    const { call, tokens } = setUp();
    const more = { name: 'ci', metadata: { a: 1 } };
    const { id, masked } = await tokens.issue({ account: 'ada', scopes: held, ...more });
    const token = { scopes: held, expire: START + ONE_YEAR, token: id, masked, id };
    const before = { ...token, state: 'active', createdAt: START, version: 1, ...more };

    const answer = await call('PATCH', `/token/${id}`, { json });

    expectSuccess(answer, { data: [{ ...before, version: 2, ...changed }] });
    expect(answer.headers.get('etag')).toBe('"2"');
  });

  it('removes name and metadata when they are null', async () => {
    const { call, tokens } = setUp();
    const more = { name: 'ci', metadata: { a: 1 } };
    const { id } = await tokens.issue({ account: 'ada', scopes: [ORDERS], ...more });

    const { body } = await call('PATCH', `/token/${id}`, { json: { name: null, metadata: null } });

    const [token] = body['data'] as object[];
    expect(token).not.toHaveProperty('name');
    expect(token).not.toHaveProperty('metadata');
  });

  it.each<[string, object, Code]>([
    ['empty change', {}, 'invalid_request'],
    ['combination of scopes and addScopes', { scopes: held, addScopes: held }, 'invalid_request'],
    [
      'combination of scopes and removeScopes',
      { scopes: held, removeScopes: held },
      'invalid_request',
    ],
    ['removal of the last scopes', { removeScopes: ['*:*/*'] }, 'scopes_required'],
    ['removal of a scope that is not held', { removeScopes: ['POST:*/*'] }, 'scope_unmatched'],
    [
      'removal of a part of a held scope',
      { removeScopes: ['GET:shop.example/items/7'] },
      'scope_unmatched',
    ],
    ['addition of an unknown scope', { addScopes: ['GET:shop.example/x'] }, 'scope_unmatched'],
  ])('refuses the %s', async (_, json, code) => {
    const { call, tokens } = setUp();
    const { id } = await tokens.issue({ account: 'ada', scopes: held });

    expectFailure(await call('PATCH', `/token/${id}`, { json }), code);

    expect(await tokens.get('ada', id)).toMatchObject({ scopes: held, version: 1 });
  });
});

describe('DELETE /token/{token}', () => {
  it.each(['id', 'value'] as const)('revokes by %s, then answers not_found', async (handle) => {
    const { call, issue, tokens } = setUp();
    const token = await issue();

    const first = await call('DELETE', `/token/${token[handle]}`);
    const second = await call('DELETE', `/token/${token[handle]}`);

    expectSuccess(first, { data: null });
    expectFailure(second, 'not_found');
    expect(await tokens.verify(token.value, { scope: ORDERS })).toMatchObject({
      reason: 'revoked',
    });
  });

  it('ignores the body', async () => {
    const { call, issue } = setUp();
    const { id } = await issue();
    const headers = { 'content-type': 'text/csv' };

    expectSuccess(await call('DELETE', `/token/${id}`, { raw: '{', headers }), { data: null });
  });
});

describe('POST /token/{token}/rotate', () => {
  it('answers like POST /token, with a new value', async () => {
    const { call, issue, tokens } = setUp();
    const { id, value } = await issue();

    const answer = await call('POST', `/token/${id}/rotate`);

    expectSuccess(answer, {
      scopes: [ORDERS],
      expire: START + ONE_YEAR,
      token: expect.stringMatching(VALUE),
      masked: expect.stringMatching(MASKED),
      id,
      state: 'active',
      createdAt: START,
      version: 2,
      descendants: 0,
    });
    expect(answer.headers.get('etag')).toBe('"2"');
    expect(await tokens.verify(value, { scope: ORDERS })).toMatchObject({ reason: 'unknown' });
    const renewed = String(answer.body['token']);
    expect(await tokens.verify(renewed, { scope: ORDERS })).toMatchObject({ ok: true });
  });

  it('accepts the old value until the grace period ends', async () => {
    const { call, issue, tokens, clock } = setUp();
    const { value } = await issue();

    expect(
      await call('POST', `/token/${value}/rotate`, { json: { graceSeconds: 60 } }),
    ).toMatchObject({ status: 200 });

    clock.advance(59.999);
    expect(await tokens.verify(value, { scope: ORDERS })).toMatchObject({ ok: true });
    clock.advance(0.001);
    expect(await tokens.verify(value, { scope: ORDERS })).toMatchObject({ reason: 'unknown' });
  });

  it('keeps a pending value for the first use, replaces it and cancels it', async () => {
    const { call, issue, tokens } = setUp();
    const { id, value } = await issue();
    const path = `/token/${id}/rotate`;
    const json = { activate: 'first-use', graceSeconds: 60 };
    const works = async (text: unknown) => (await tokens.verify(`${text}`, { scope: ORDERS })).ok;

    const [first, second] = [
      await call('POST', path, { json }),
      await call('POST', path, { json }),
    ];
    expectSuccess(second, {
      scopes: [ORDERS],
      expire: START + ONE_YEAR,
      token: expect.stringMatching(VALUE),
      masked: expect.stringMatching(MASKED),
      id,
      state: 'active',
      createdAt: START,
      version: 3,
      pending: true,
      descendants: 0,
    });
    expect(await works(first.body['token'])).toBe(false);
    expect((await call('GET', `/token/${id}`)).body['data']).toMatchObject([{ pending: true }]);

    const canceled = await call('POST', path, { json: { cancel: true } });
    expect(canceled).toMatchObject({ status: 200, body: { token: id, version: 4 } });
    expect(canceled.body).not.toHaveProperty('pending');
    expect(await works(second.body['token'])).toBe(false);
    expect(await works(value)).toBe(true);
  });

  it.each([
    { activate: 'now' },
    { cancel: false },
    { cancel: true, graceSeconds: 1 },
    { cancel: true, activate: 'first-use' },
  ])('refuses %j', async (json) => {
    const { call, issue } = setUp();
    const { id } = await issue();

    expectFailure(await call('POST', `/token/${id}/rotate`, { json }), 'invalid_request');
  });

  it.each<[string, CallOptions]>([
    ['no body', {}],
    ['an empty text', { raw: '', headers: { 'content-type': 'application/json' } }],
    ['an empty body without a type', { raw: '' }],
    ['an empty stream without a type', { raw: streamOf() }],
    ['a stream of empty chunks', { raw: streamOf(new Uint8Array(), new Uint8Array()) }],
    ['an empty object', { json: {} }],
  ])('accepts %s', async (_, options) => {
    const { send, issue } = setUp();
    const { id } = await issue();
    const request = toRequest('POST', `/token/${id}/rotate`, options);
    if (options.headers === undefined && options.json === undefined) {
      request.headers.delete('content-type');
    }

    expect(await send(request)).toMatchObject({ status: 200 });
  });
});

describe('GET /scopes', () => {
  it('lists the catalog', async () => {
    const { call } = setUp();

    expectSuccess(await call('GET', '/scopes'), { data: CATALOG.toSorted() }, PRIVATE);
  });

  it('lists only *:*/* when there is no catalog', async () => {
    const { call } = setUp({ catalog: null });

    expectSuccess(await call('GET', '/scopes'), { data: ['*:*/*'] }, PRIVATE);
  });
});

describe('every call', () => {
  it.each(CALLS)('%s %s requires credentials', async (method, path, json) => {
    const { call, issue } = setUp();
    const { id } = await issue();
    const target = path.replace('ID', id);

    expectFailure(await call(method, target, { json, as: null }), 'unauthenticated');
    expect(await call(method, target, { json })).toMatchObject({ status: 200 });
  });

  it.each(CALLS)('%s %s reports a store outage and recovers', async (method, path, json) => {
    const store = new RecordingStore();
    const { call, issue } = setUp({ store });
    const { id } = await issue();
    const target = path.replace('ID', id);

    store.break(ALL_METHODS, () => Promise.reject(new Error(CANARY)));
    const during = await call(method, target, { json });
    store.mend();
    const after = await call(method, target, { json });

    if (path === '/scopes') expect(during.status).toBe(200);
    else expectFailure(during, 'store_unavailable');
    expect(after).toMatchObject({ status: 200 });
  });

  it.each(CALLS)('%s %s reports an unconfirmed write', async (method, path, json) => {
    const writes = ['insert', 'replace', 'revoke'];
    let isLagging = false;
    const store = withFaults(new MemoryTokenStore(), async (asked, run) => {
      const answer = await run();
      if (!isLagging || !writes.includes(asked.method)) return answer;
      throw new TokenError('durability_unconfirmed', 'text of the store');
    });
    const onError = vi.fn();
    const { call, issue } = setUp({ store, onError });
    const { id } = await issue();

    isLagging = true;
    const answer = await call(method, path.replace('ID', id), { json });

    const reported = onError.mock.calls.map(([{ code }]) => code);
    expect(reported).toEqual(method === 'GET' ? [] : ['durability_unconfirmed']);
    if (method === 'GET') expect(answer).toMatchObject({ status: 200 });
    else if (method === 'DELETE') expectFailure(answer, 'revocation_unconfirmed');
    else expectFailure(answer, 'durability_unconfirmed');
  });

  it.each(CHANGES)(
    '%s %s gives the same not_found answer for every token that the account does not own',
    async (method, path, json) => {
      const { call, issue, tokens } = setUp();
      const foreign = await issue('bob');
      const revoked = await issue('ada');
      await tokens.revoke('ada', revoked.id);
      const own = await issue('ada');
      const handles = [
        UNKNOWN_ID,
        foreign.id,
        foreign.value,
        revoked.id,
        revoked.value,
        `${own.id}0`,
        own.id.slice(1),
        own.value.slice(0, -1),
        `${own.value.slice(0, -1)}${own.value.endsWith('0') ? '1' : '0'}`,
        own.value.toUpperCase(),
        `%${own.id.charCodeAt(0).toString(16)}${own.id.slice(1)}`,
        'x',
        '%00',
        '%',
        'constructor',
        '__proto__',
      ];

      const answers: object[] = [];
      for (const handle of handles) {
        const answer = await call(method, path.replace('ID', handle), { json });
        expectFailure(answer, 'not_found');
        answers.push({ text: answer.text, headers: [...answer.headers] });
      }

      for (const answer of answers) expect(answer).toEqual(answers[0]);
      expect(await tokens.get('bob', foreign.id)).toMatchObject({ version: 1 });
      expect(await tokens.verify(foreign.value, { scope: ORDERS })).toMatchObject({ ok: true });
      expect(await call(method, path.replace('ID', own.id), { json })).toMatchObject({
        status: 200,
      });
    },
  );

  it('does not change or rotate an expired token', async () => {
    const { call, issue, clock } = setUp();
    const { id } = await issue();
    clock.advance(ONE_YEAR);

    for (const [method, path, json] of CHANGES) {
      const answer = await call(method, path.replace('ID', id), { json });
      if (method === 'GET' || method === 'DELETE') expect(answer.status).toBe(200);
      else expectFailure(answer, 'token_expired');
      if (method === 'DELETE') break;
    }
    const last = await issue();
    clock.advance(ONE_YEAR);
    expectFailure(await call('POST', `/token/${last.id}/rotate`), 'token_expired');
  });

  it.each(CALLS)('%s %s is served below the base path and only there', async (...args) => {
    const [method, path, json] = args;
    const { call, issue } = setUp({ basePath: '/auth/v1' });
    const { id } = await issue();
    const target = path.replace('ID', id);

    for (const wrong of [target, `/auth${target}`, `/auth/v1x${target}`, `//auth/v1${target}`]) {
      expectFailure(await call(method, wrong, { json }), 'not_found');
    }
    expect(await call(method, `/auth/v1${target}`, { json })).toMatchObject({ status: 200 });
  });

  it('takes the account only from the Authorization header', async () => {
    const { call, issue } = setUp();
    const { id } = await issue('bob');
    const headers = {
      'x-account': 'bob',
      'x-forwarded-user': 'bob',
      'x-user': 'bob',
      'x-http-method-override': 'DELETE',
      'x-original-url': '/scopes',
      'x-forwarded-prefix': '/auth',
      cookie: 'account=bob; access_token=x',
    };

    expectFailure(await call('GET', `/token/${id}`, { headers }), 'not_found');
    expect(await call('GET', `/token/${id}`, { headers, as: 'bob' })).toMatchObject({
      status: 200,
    });
  });
});

describe('the order of checks', () => {
  const headers = { authorization: 'Basic !' };
  const plain = { 'content-type': 'text/csv' };
  const huge = 'x'.repeat(65);
  const options = { maxBodyBytes: 64 };

  it.each<[first: string, second: string, method: string, path: string, CallOptions, Code]>([
    ['route', 'credentials', 'GET', '/nowhere', { headers }, 'not_found'],
    ['route', 'method', 'BREW', '/nowhere', {}, 'not_found'],
    ['route', 'JSON', 'POST', '/token/', { raw: '{' }, 'not_found'],
    ['credentials', 'method', 'BREW', '/token', { headers }, 'unauthenticated'],
    [
      'credentials',
      'media type',
      'POST',
      '/token',
      { as: null, raw: '{}', headers: plain },
      'unauthenticated',
    ],
    [
      'credentials',
      'site',
      'POST',
      '/token',
      { as: null, headers: { 'sec-fetch-site': 'cross-site' } },
      'unauthenticated',
    ],
    ['credentials', 'size', 'POST', '/token', { as: null, raw: huge }, 'unauthenticated'],
    ['credentials', 'body', 'POST', '/token', { as: null, json: {} }, 'unauthenticated'],
    ['credentials', 'token', 'GET', `/token/${UNKNOWN_ID}`, { as: null }, 'unauthenticated'],
    [
      'method',
      'site',
      'BREW',
      '/token',
      { headers: { 'sec-fetch-site': 'cross-site' } },
      'method_not_allowed',
    ],
    ['method', 'media type', 'PUT', '/token', { raw: '{}', headers: plain }, 'method_not_allowed'],
    ['method', 'size', 'PUT', '/token', { raw: huge }, 'method_not_allowed'],
    ['method', 'JSON', 'PUT', '/token', { raw: '{' }, 'method_not_allowed'],
    ['method', 'token', 'POST', `/token/${UNKNOWN_ID}`, { json: {} }, 'method_not_allowed'],
    ['method', 'query', 'PUT', '/token?token=x', { json: {} }, 'method_not_allowed'],
    [
      'media type',
      'size',
      'POST',
      '/token',
      { raw: huge, headers: plain },
      'unsupported_media_type',
    ],
    [
      'media type',
      'JSON',
      'POST',
      '/token',
      { raw: '{', headers: plain },
      'unsupported_media_type',
    ],
    [
      'media type',
      'token',
      'PUT',
      `/token/${UNKNOWN_ID}`,
      { raw: '{}', headers: plain },
      'unsupported_media_type',
    ],
    ['size', 'JSON', 'POST', '/token', { raw: huge }, 'payload_too_large'],
    ['size', 'token', 'PUT', `/token/${UNKNOWN_ID}`, { raw: huge }, 'payload_too_large'],
    ['JSON', 'token', 'PUT', `/token/${UNKNOWN_ID}`, { raw: '{' }, 'invalid_json'],
    ['a missing body', 'token', 'PUT', `/token/${UNKNOWN_ID}`, {}, 'invalid_json'],
    ['body', 'token', 'PUT', `/token/${UNKNOWN_ID}`, { json: {} }, 'scopes_required'],
    [
      'an unknown member',
      'a bad scope',
      'PUT',
      `/token/${UNKNOWN_ID}`,
      { json: { scopes: [1], x: 1 } },
      'invalid_request',
    ],
    [
      'a bad scope',
      'a bad ttl',
      'POST',
      '/token',
      { json: { scopes: [1], ttl: 0 } },
      'invalid_scope',
    ],
    [
      'a bad ttl',
      'an unmatched scope',
      'POST',
      '/token',
      { json: { scopes: ['GET:x.example/x'], ttl: 0 } },
      'invalid_ttl',
    ],
    [
      'an unmatched scope',
      'token',
      'PUT',
      `/token/${UNKNOWN_ID}`,
      { json: { scopes: ['GET:x.example/x'] } },
      'scope_unmatched',
    ],
    [
      'expiry',
      'token',
      'PUT',
      `/token/${UNKNOWN_ID}`,
      { json: { scopes: [ORDERS], expire: 1 } },
      'invalid_expire',
    ],
    ['an empty change', 'token', 'PATCH', `/token/${UNKNOWN_ID}`, { json: {} }, 'invalid_request'],
    [
      'grace',
      'token',
      'POST',
      `/token/${UNKNOWN_ID}/rotate`,
      { json: { graceSeconds: -1 } },
      'invalid_request',
    ],
    [
      'token',
      'version',
      'DELETE',
      `/token/${UNKNOWN_ID}`,
      { headers: { 'if-match': '"9"' } },
      'not_found',
    ],
    [
      'a malformed condition',
      'token',
      'DELETE',
      `/token/${UNKNOWN_ID}`,
      { headers: { 'if-match': 'x' } },
      'invalid_request',
    ],
    [
      'body',
      'a malformed condition',
      'PUT',
      `/token/${UNKNOWN_ID}`,
      { json: { scopes: [1] }, headers: { 'if-match': 'x' } },
      'invalid_scope',
    ],
  ])('checks %s before %s: %s %s', async (...args) => {
    const [, , method, path, call, code] = args;

    expectFailure(await setUp(options).call(method, path, call), code);
  });

  it.each([
    ['a stale tag', '"9"'],
    ['a weak tag', 'W/"9"'],
    ['stale tags', '"8", "9"'],
    ['a bare number', '9'],
  ])('checks the body and the expiry before %s', async (_, tag) => {
    const { call, issue, clock } = setUp();
    const { id } = await issue();
    const headers = { 'if-match': tag };
    const unmatched = { scopes: ['GET:x.example/x'] };
    const unknown = `/token/${UNKNOWN_ID}`;

    expectFailure(await call('PATCH', unknown, { headers, json: {} }), 'invalid_request');
    expectFailure(await call('PUT', unknown, { headers, json: unmatched }), 'scope_unmatched');
    expectFailure(
      await call('PUT', `/token/${id}`, { headers, json: unmatched }),
      'scope_unmatched',
    );
    expectFailure(await call('PATCH', `/token/${id}`, { headers, json: {} }), 'invalid_request');

    expectFailure(await call('POST', `/token/${id}/rotate`, { headers }), 'version_conflict');
    clock.advance(ONE_YEAR);
    expectFailure(await call('POST', `/token/${id}/rotate`, { headers }), 'token_expired');
    const json = { scopes: [ORDERS] };
    expectFailure(await call('PUT', `/token/${id}`, { headers, json }), 'token_expired');
    expectFailure(await call('PATCH', `/token/${id}`, { headers, json }), 'token_expired');
  });
});

describe('the routes', () => {
  it.each([
    '/',
    '//',
    '/token/',
    '/token//',
    '//token',
    '/Token',
    '/TOKEN',
    '/tokens',
    '/toke',
    '/token/x/',
    '/token/x/y',
    '/token/x/rotate/',
    '/token/x/Rotate',
    '/token//rotate',
    '/token/x/rotate/y',
    '/token%2Fx',
    '/%74oken',
    '/token;x',
    '/scopes/',
    '/scopes/x',
    '/scope',
    '/auth/token',
    '/constructor',
    '/__proto__',
    `/${CANARY}`,
    `/token/x/${CANARY}?${CANARY}=${CANARY}`,
  ])('do not include %s', async (path) => {
    const { call } = setUp();

    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) {
      expectFailure(await call(method, path), 'not_found');
    }
  });

  it.each([
    ['/token', 'GET, HEAD, POST', ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'BREW', 'Patch']],
    ['/token/ID', 'GET, HEAD, PUT, PATCH, DELETE', ['POST', 'OPTIONS', 'QUERY', 'constructor']],
    ['/token/ID/rotate', 'POST', ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', '__proto__']],
    ['/token/ID/usage', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/token/ID/advice', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/token/ID/explain', 'POST', ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/review', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/scopes', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
  ])('at %s allow %s', async (path, allowed, methods) => {
    const { send, issue } = setUp();
    const { id } = await issue();

    for (const method of methods) {
      const answer = await send(toRequest(method, path.replace('ID', id)));
      expectFailure(answer, 'method_not_allowed');
      const allow = answer.headers.get('allow') ?? '';
      expect(allow.split(', ').sort()).toEqual(allowed.split(', ').sort());
    }
  });

  it('answer HEAD like GET, without a body', async () => {
    const { call, issue } = setUp();
    const { id } = await issue();
    await issue();
    const gone = `/token/${UNKNOWN_ID}`;

    for (const path of [`/token/${id}`, '/token?limit=1', '/scopes', gone, '/nowhere']) {
      const get = await call('GET', path);
      const head = await call('HEAD', path);
      expect(head.status).toBe(get.status);
      expect([...head.headers]).toEqual([...get.headers]);
      expect(head.text).toBe('');
      expect(get.text).not.toBe('');
    }
    const without = await call('HEAD', '/token', { as: null });
    expect(without).toMatchObject({ status: 401, text: '' });
    expectHeaders(without);
    const rotation = await call('HEAD', `/token/${id}/rotate`);
    expect(rotation).toMatchObject({ status: 405, text: '' });
    expect(rotation.headers.get('allow')).toBe('POST');
  });

  it.each([
    [8191, 200],
    [8192, 200],
    [8193, 414],
    [100_000, 414],
  ])('answer a URL of %i characters with %i', async (length, status) => {
    const { call } = setUp();
    const path = '/token?x=';

    const answer = await call('GET', path + 'a'.repeat(length - path.length));

    expect(answer.status).toBe(status);
    if (status === 414) expectFailure(answer, 'uri_too_long');
  });
});

describe('the credentials check', () => {
  const encoded = Buffer.from(`ada:${PASSWORD}`).toString('base64');
  const bytes = (...all: number[]) => Buffer.from(all).toString('base64');

  it.each<[string, string]>([
    ['in the usual form', `Basic ${encoded}`],
    ['with the scheme in another case', `bASIC ${encoded}`],
    ['with several spaces', `Basic   ${encoded}`],
  ])('accepts Basic credentials %s', async (_, authorization) => {
    const { call } = setUp();

    expect(await call('GET', '/token', { headers: { authorization } })).toMatchObject({
      status: 200,
    });
  });

  const NONE = 'Basic credentials are required, and none were sent';
  const BEARER = 'a Bearer token does not manage tokens; send Basic credentials';
  const MALFORMED = 'Authorization must be "Basic" and the Base64 of user:password in UTF-8';
  const WRONG = 'the user name or the password is wrong';

  it.each<[string, string | null, message: string]>([
    ['no header', null, NONE],
    ['an empty header', '', MALFORMED],
    ['the scheme alone', 'Basic', MALFORMED],
    ['a scheme without a space', `Basic${encoded}`, MALFORMED],
    ['a tab', `Basic\t${encoded}`, MALFORMED],
    ['no scheme', encoded, MALFORMED],
    ['a Bearer token', `Bearer ${encoded}`, BEARER],
    ['a Bearer token in another case', `bEARER ${encoded}`, BEARER],
    ['Bearer without a token', 'Bearer', BEARER],
    ['a scheme that starts with Bearer', `Bearers ${encoded}`, MALFORMED],
    ['another scheme', `Digest ${encoded}`, MALFORMED],
    ['a scheme that starts with Basic', `Basics ${encoded}`, MALFORMED],
    ['two sets of credentials', `Basic ${encoded}, Basic ${encoded}`, MALFORMED],
    ['two schemes', `Basic ${encoded}, Bearer x`, MALFORMED],
    ['trailing text', `Basic ${encoded} x`, MALFORMED],
    ['invalid Base64', 'Basic !!!', MALFORMED],
    ['base64url', `Basic ${Buffer.from('ada:\u00ff\u00fe~~~').toString('base64url')}-_`, MALFORMED],
    ['no colon', `Basic ${Buffer.from('ada').toString('base64')}`, MALFORMED],
    ['only padding', 'Basic =', MALFORMED],
    ['invalid UTF-8', `Basic ${bytes(0x61, 0x3a, 0xff)}`, MALFORMED],
    ['an overlong colon', `Basic ${bytes(0x61, 0xc0, 0xba, 0x62)}`, MALFORMED],
    ['a control character in the name', basic('ad\u0000a'), MALFORMED],
    ['a control character in the password', basic('ada', `${PASSWORD}\n`), MALFORMED],
    ['a BOM', `Basic ${bytes(0xef, 0xbb, 0xbf, ...Buffer.from(`ada:${PASSWORD}`))}`, WRONG],
    ['a wrong password', basic('ada', `${PASSWORD}x`), WRONG],
    ['an unknown user', basic('eve', PASSWORD), WRONG],
    ['a password in another case', basic('ada', PASSWORD.toUpperCase()), WRONG],
    ['an empty password', basic('ada', ''), WRONG],
    ['more than 4096 characters', basic('ada', 'x'.repeat(4000)), MALFORMED],
    ['a password of a hundred thousand characters', basic('ada', 'x'.repeat(100_000)), MALFORMED],
  ])('varies only the message of its 401 answer: %s', async (_, authorization, message) => {
    const { call } = setUp({
      authenticate: ({ username, password }) =>
        username === 'ada' && password === PASSWORD ? 'ada' : null,
    });
    const headers = authorization === null ? {} : { authorization };
    const usual = await call('GET', '/token', { headers: { authorization: basic('eve', 'x') } });

    const answer = await call('GET', '/token', { as: null, headers });

    expectFailure(answer, 'unauthenticated');
    expect(answer.text).toBe(usual.text.replace(WRONG, JSON.stringify(message).slice(1, -1)));
    expect([...answer.headers]).toEqual([...usual.headers]);
    expect(answer.headers.get('www-authenticate')).toBe(
      'Basic realm="tokenwright", charset="UTF-8"',
    );
  });

  it('passes name and password unchanged, including UTF-8, colons and spaces', async () => {
    const seen: object[] = [];
    const authenticate = (credentials: object) => {
      seen.push({ ...credentials });
      return 'ada';
    };
    const { call } = setUp({ authenticate });

    await call('GET', '/scopes', { headers: { authorization: basic('ädä', ' p:ä: 😀 ') } });
    await call('GET', '/scopes', { headers: { authorization: basic('', '') } });

    expect(seen).toEqual([
      { username: 'ädä', password: ' p:ä: 😀 ' },
      { username: '', password: '' },
    ]);
  });

  it('uses the account that authenticate returns, not the user name', async () => {
    const { call, issue } = setUp({ authenticate: async () => 'acme' });
    const { id } = await issue('acme');

    expect((await call('GET', '/token')).body['data']).toMatchObject([{ id }]);
  });

  it('refuses a token value as Bearer, user name or password', async () => {
    const { call, issue } = setUp();
    const { id, value } = await issue();

    for (const authorization of [`Bearer ${value}`, basic('ada', value), basic(value, '')]) {
      expectFailure(
        await call('GET', `/token/${id}`, { headers: { authorization } }),
        'unauthenticated',
      );
    }
  });
});

describe('the authenticate function', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error(CANARY);
      },
    ],
    [
      'throws null',
      () => {
        throw null;
      },
    ],
    ['rejects', () => Promise.reject(new Error(CANARY))],
    ['rejects with undefined', () => Promise.reject()],
    [
      'throws an error with a code',
      () => {
        throw Object.assign(new Error(CANARY), { code: 'not_found' });
      },
    ],
    ['returns undefined', () => undefined],
    ['returns true', () => true],
    ['returns false', () => false],
    ['returns 0', () => 0],
    ['returns 1', () => 1],
    ['returns an empty text', () => ''],
    ['returns an object', () => ({ account: 'ada' })],
    ['returns an array', () => ['ada']],
    ['returns a String', () => new String('ada')],
    ['returns a symbol', () => Symbol('ada')],
    ['returns a function', () => () => 'ada'],
    ['returns an account with a control character', () => 'a\u0000da'],
    ['returns an account with a lone surrogate', () => 'ada\ud800'],
    ['returns an account of 256 bytes', () => 'a'.repeat(256)],
  ])('causes store_unavailable when it %s', async (_, authenticate) => {
    const { call, tokens } = setUp({ authenticate: authenticate as () => string });

    expectFailure(await call('GET', '/token'), 'store_unavailable');
    expectFailure(
      await call('POST', '/token', { json: { scopes: [ORDERS] } }),
      'store_unavailable',
    );

    expect((await tokens.list({ account: 'ada' })).tokens).toEqual([]);
  });

  it('causes store_unavailable when it does not answer within ten seconds', async () => {
    vi.useFakeTimers();
    const { call } = setUp({ authenticate: () => new Promise(() => {}) });
    let isAnswered = false;
    const pending = call('GET', '/token').finally(() => {
      isAnswered = true;
    });

    await vi.advanceTimersByTimeAsync(9999);
    expect(isAnswered).toBe(false);
    await vi.advanceTimersByTimeAsync(1);

    expectFailure(await pending, 'store_unavailable');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is not called for an unknown path or without credentials', async () => {
    const authenticate = vi.fn(() => 'ada');
    const { call } = setUp({ authenticate });

    await call('GET', '/nowhere');
    await call('GET', '/token', { as: null });
    expect(authenticate).not.toHaveBeenCalled();

    await call('GET', '/token');
    expect(authenticate).toHaveBeenCalledTimes(1);
  });
});

describe('Sec-Fetch-Site', () => {
  it.each([
    ['same-origin', true],
    ['none', true],
    ['same-site', false],
    ['cross-site', false],
    ['', false],
    ['None', false],
    ['same-origin, cross-site', false],
    ['same-origin, same-origin', false],
    [CANARY, false],
  ])('"%s" allows changes: %s', async (site, isAllowed) => {
    const { call, issue } = setUp();
    const headers = { 'sec-fetch-site': site };

    for (const [method, path, json] of CALLS) {
      const { id } = await issue();
      const answer = await call(method, path.replace('ID', id), { json, headers });
      if (isAllowed || method === 'GET') expect(answer.status).toBe(200);
      else expectFailure(answer, 'cross_site');
    }
    expect(await call('HEAD', '/token', { headers })).toMatchObject({ status: 200 });
  });
});

describe('an internal fault', () => {
  it('is answered with internal, without its text, and passed to onError', async () => {
    const onError = vi.fn();
    const { handler, fault } = broken({ onError });

    const response = await handler(toRequest('GET', '/token'));

    const text = await response.text();
    expect(response.status).toBe(CODES.internal[0]);
    expect(JSON.parse(text)).toEqual({
      success: false,
      message: expect.stringMatching(/\S/),
      error: 900,
      code: 'internal',
      data: null,
    });
    expect(text).not.toContain(CANARY);
    expect(onError.mock.calls).toEqual([[fault]]);
  });

  it.each<[string, () => void]>([
    [
      'throws',
      () => {
        throw new Error(CANARY);
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error(CANARY);
      },
    ],
  ])('is still answered when onError %s', async (_, onError) => {
    const { handler } = broken({ onError });

    const response = await handler(toRequest('GET', '/token'));

    expect(response.status).toBe(500);
    // By now an unhandled rejection would be reported and fail the run.
    await new Promise(setImmediate);
  });

  it('is not reported for a caller error, but for a store outage', async () => {
    const onError = vi.fn();
    const store = new RecordingStore();
    const { call } = setUp({ store, onError });

    await call('GET', '/token?limit=0');
    expect(onError).not.toHaveBeenCalled();
    store.break(ALL_METHODS, () => Promise.reject(new Error(CANARY)));
    await call('GET', '/token');

    expect(onError.mock.calls).toEqual([[expect.objectContaining({ code: 'store_unavailable' })]]);
  });

  function broken({ onError }: { onError: (error: unknown) => void }) {
    const { tokens } = setUp();
    const fault = new Error(CANARY);
    tokens.list = () => Promise.reject(fault);
    return { handler: tokenHandler({ tokens, authenticate: () => 'ada', onError }), fault };
  }
});

describe('a service that cannot do its work', () => {
  it('answers catalog_empty when its catalog is empty', async () => {
    const { call, issue } = setUp({ catalog: [] });
    await expect(issue()).rejects.toMatchObject({ code: 'catalog_empty' });

    const answer = await call('POST', '/token', { json: { scopes: [ORDERS] } });

    expectFailure(answer, 'catalog_empty');
    expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expectSuccess(await call('GET', '/scopes'), { data: [] }, PRIVATE);
  });

  it('answers store_corrupt when its store returns an invalid record', async () => {
    const store = withFaults(new MemoryTokenStore(), async ({ method }, run) =>
      method === 'find' ? [{ id: UNKNOWN_ID, note: CANARY }] : run(),
    );
    const { call } = setUp({ store });

    const answer = await call('GET', `/token/${UNKNOWN_ID}`);

    expectFailure(answer, 'store_corrupt');
    expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  });

  it('answers internal when it has to issue with keys that only verify', async () => {
    const seen: unknown[] = [];
    const { tokens } = setUp();
    const { call } = setUp({ keys: tokens.verifierKeys(), onError: (error) => seen.push(error) });

    expectFailure(await call('POST', '/token', { json: { scopes: [ORDERS] } }), 'internal');

    expect(seen.map(isTokenError)).toEqual([true]);
    expect(await call('GET', '/token')).toMatchObject({ status: 200 });
  });
});

describe('tokenHandler', () => {
  const { tokens } = setUp();
  const authenticate = () => 'ada';

  it.each<[string, unknown]>([
    ['no options', undefined],
    ['null', null],
    ['no tokens', { authenticate }],
    ['tokens that are not a TokenService', { tokens: {}, authenticate }],
    ['the class instead of tokens', { tokens: TokenService, authenticate }],
    ['no authenticate', { tokens }],
    ['an authenticate that is not a function', { tokens, authenticate: 'ada' }],
    ['a base path with a trailing slash', { tokens, authenticate, basePath: '/auth/' }],
    ['a base path without a leading slash', { tokens, authenticate, basePath: 'auth' }],
    ['a slash as base path', { tokens, authenticate, basePath: '/' }],
    ['a percent-encoded base path', { tokens, authenticate, basePath: '/a%20b' }],
    ['a base path with an empty segment', { tokens, authenticate, basePath: '/a//b' }],
    ['a base path that is not a text', { tokens, authenticate, basePath: 1 }],
    ['an acceptLegacyBody that is a number', { tokens, authenticate, acceptLegacyBody: 1 }],
    ['a maxBodyBytes of 0', { tokens, authenticate, maxBodyBytes: 0 }],
    ['a fractional maxBodyBytes', { tokens, authenticate, maxBodyBytes: 1.5 }],
    ['an infinite maxBodyBytes', { tokens, authenticate, maxBodyBytes: Number.POSITIVE_INFINITY }],
    ['an onError that is not a function', { tokens, authenticate, onError: {} }],
    ['an unknown option', { tokens, authenticate, acceptLegacyBodies: true }],
  ])('refuses %s', (_, options) => {
    expect(() => tokenHandler(options as never)).toThrow(
      expect.objectContaining({ name: 'TokenError', code: 'invalid_options' }),
    );
  });

  it('exposes its base path', () => {
    expect(tokenHandler({ tokens, authenticate }).basePath).toBe('');
    expect(tokenHandler({ tokens, authenticate, basePath: '/a/b-c' }).basePath).toBe('/a/b-c');
  });
});

describe('any request', () => {
  it('gets an answer in the envelope and never a 5xx', async () => {
    const setup = setUp({ maxBodyBytes: 4096 });
    const { id, value } = await setup.issue();

    await fc.assert(
      fc.asyncProperty(arbitraryRequest([id, value, UNKNOWN_ID]), async (request) => {
        await expectEnvelope(setup, request);
      }),
      runs(1.5),
    );
  });
});

async function expectEnvelope({ send }: Setup, request: Request): Promise<void> {
  const answer = await send(request);
  expect(answer.status).toBeLessThan(500);
  // Only the scopes may be kept.
  expectHeaders(answer, answer.headers.has('vary') ? PRIVATE : undefined);
  if (request.method === 'HEAD') {
    expect(answer.text).toBe('');
    return;
  }
  if (answer.status === 200) {
    expect(answer.body).toMatchObject({ success: true, message: '', error: null });
    return;
  }
  expectFailure(answer, answer.body['code'] as Code);
}

function arbitraryRequest(handles: readonly string[]): fc.Arbitrary<Request> {
  const segment = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...handles, 'token', 'scopes', 'rotate', '') },
    { weight: 1, arbitrary: fc.string({ unit: 'binary' }).map((text) => encode(text)) },
  );
  const path = fc.oneof(
    fc.constantFrom('/token', '/scopes', ...handles.map((handle) => `/token/${handle}`)),
    fc.constantFrom(...handles.map((handle) => `/token/${handle}/rotate`)),
    fc.array(segment, { maxLength: 4 }).map((all) => `/${all.join('/')}`),
  );
  const parameter = fc.tuple(
    fc.oneof(
      fc.constantFrom('scope', 'match', 'limit', 'cursor', 'token', 'owner', '__proto__'),
      fc.string(),
    ),
    fc.oneof(
      fc.constantFrom('1', '100', 'exact', ORDERS, 'GET:*/*'),
      fc.string({ unit: 'binary' }),
    ),
  );
  const query = fc
    .array(parameter, { maxLength: 3 })
    .map(
      (all) =>
        new URLSearchParams(all.map(([name, text]): [string, string] => [well(name), well(text)])),
    );
  const json = fc.oneof(
    fc.json(),
    fc
      .record(
        {
          scopes: fc.oneof(fc.constant([ORDERS]), fc.array(fc.oneof(fc.string(), fc.anything()))),
          ttl: fc.oneof(fc.integer(), fc.double(), fc.jsonValue()),
          expire: fc.oneof(fc.integer(), fc.double(), fc.jsonValue()),
          addScopes: fc.array(fc.constantFrom(...CATALOG, '*:*/*')),
          removeScopes: fc.array(fc.constantFrom(...CATALOG, '*:*/*')),
          name: fc.oneof(fc.string({ unit: 'binary' }), fc.jsonValue()),
          metadata: fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue()),
          graceSeconds: fc.oneof(fc.nat(), fc.jsonValue()),
        },
        { requiredKeys: [] },
      )
      .map(toJson),
  );
  const body = fc.oneof(
    json,
    fc.string({ unit: 'binary' }),
    fc.uint8Array(),
    fc.constant(undefined),
  );
  const headerText = fc.string({
    unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)),
  });
  const header = fc.oneof(
    fc.tuple(
      fc.constantFrom(
        'if-match',
        'sec-fetch-site',
        'content-encoding',
        'authorization',
        'content-type',
        'content-length',
        'cookie',
      ),
      headerText,
    ),
    fc.tuple(fc.constant('if-match'), fc.constantFrom('*', '"1"', 'W/"1"', '"1", "2"')),
  );
  return fc
    .record({
      method: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'BREW'),
      path,
      query,
      body,
      headers: fc.array(header, { maxLength: 2 }),
    })
    .map(({ method, path, query, body, headers }) => {
      const hasBody = method !== 'GET' && method !== 'HEAD' && body !== undefined;
      return toRequest(method, `${path}?${query}`, {
        headers: Object.fromEntries(headers.map(([name, text]) => [name, text.trim()])),
        ...(hasBody && { raw: body as NonNullable<RequestInit['body']> }),
      });
    });
}

function encode(text: string): string {
  return encodeURIComponent(well(text));
}

function well(text: string): string {
  return text.toWellFormed();
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '{}';
  }
}

function streamOf(...chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}
