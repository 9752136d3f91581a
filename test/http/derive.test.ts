import { describe, expect, it } from 'vitest';
import { MemoryTokenStore } from '../../src/index.ts';
import { expectFailure, ORDERS, type SetUpOptions, START, setUp } from './support.ts';

/** A service with derivation, a parent token of two scopes, and a call that derives from a value. */
async function setUpDerivation(options: SetUpOptions = {}) {
  const setting = setUp({ derivation: true, ...options });
  const parent = await setting.tokens.issue({
    account: 'ada',
    scopes: [ORDERS, 'POST:shop.example/orders'],
    ttlSeconds: 3600,
  });
  const derive = (value: string, json: unknown = { scopes: [ORDERS] }) =>
    setting.call('POST', '/token/derive', {
      as: null,
      json,
      headers: { authorization: `Bearer ${value}` },
    });
  return { ...setting, parent, derive };
}

describe('POST /token/derive', () => {
  it('answers like POST /token, with the token value and the parent id', async () => {
    const { derive, parent, tokens } = await setUpDerivation();

    const { status, body, headers } = await derive(parent.value, {
      scopes: ['*:shop.example/*'],
      ttl: 60,
      name: 'job',
    });

    expect(status).toBe(200);
    expect(headers.get('etag')).toBe('"1"');
    expect(body).toMatchObject({
      scopes: [ORDERS, 'POST:shop.example/orders'],
      expire: START + 60,
      parent: parent.id,
      name: 'job',
      success: true,
    });
    expect(await tokens.allows(String(body['token']), { scope: ORDERS })).toBe(true);
  });

  it.each([
    [
      'a scope that the parent does not hold',
      { scopes: ['GET:shop.example/items'] },
      'scope_unmatched',
    ],
    ['no scopes', { scopes: [] }, 'scopes_required'],
    ['a number for expire', { scopes: [ORDERS], expire: 5 }, 'invalid_request'],
    ['an unknown member', { scopes: [ORDERS], parent: 'x' }, 'invalid_request'],
  ] as const)('refuses %s', async (_, json, code) => {
    const { derive, parent } = await setUpDerivation();

    expectFailure(await derive(parent.value, json), code);
  });

  it.each([
    [{ ttl: 0 }, 3600, 'invalid_ttl'],
    [{ expire: 600 }, 600, 'invalid_request'],
  ] as const)('reads %j only with acceptLegacyBody', async (members, seconds, code) => {
    const json = { scopes: [ORDERS], ...members };
    const [strict, legacy] = [
      await setUpDerivation(),
      await setUpDerivation({ acceptLegacyBody: true }),
    ];

    expectFailure(await strict.derive(strict.parent.value, json), code);
    const { status, body } = await legacy.derive(legacy.parent.value, json);
    expect(status).toBe(200);
    expect(body['expire']).toBe(START + seconds);
  });

  it('refuses a parent that holds other scopes, or none, for its scopes', async () => {
    for (const scopes of [['POST:shop.example/orders'], ['GET:shop.example/items']]) {
      const { derive, parent, tokens } = await setUpDerivation();
      const middle = await tokens.derive(parent.value, { scopes: [ORDERS] });
      await tokens.patch('ada', parent.id, { scopes });

      expectFailure(await derive(middle.value), 'scope_unmatched');
    }
  });

  it('refuses a call without a Bearer token and asks for one in WWW-Authenticate', async () => {
    const { call } = await setUpDerivation();

    const none = await call('POST', '/token/derive', { as: null, json: { scopes: [ORDERS] } });
    const basic = await call('POST', '/token/derive', { json: { scopes: [ORDERS] } });

    for (const answer of [none, basic]) {
      expectFailure(answer, 'unauthenticated');
      expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="tokenwright"');
    }
  });

  it('gives the same invalid_token answer for malformed, revoked and orphaned values', async () => {
    const { derive, parent, tokens } = await setUpDerivation();
    const child = await tokens.derive(parent.value, { scopes: [ORDERS] });
    const malformed = await derive('acme_nonsense');
    await tokens.revoke('ada', parent.id);
    const revoked = await derive(parent.value);
    const orphan = await derive(child.value);

    expectFailure(malformed, 'invalid_token');
    expect(malformed.headers.get('www-authenticate')).toBe(
      'Bearer realm="tokenwright", error="invalid_token"',
    );
    expect(malformed.body['details']).toBeUndefined();
    expect(revoked.body).toEqual(malformed.body);
    expect(orphan.body).toEqual(malformed.body);
  });

  it('checks the credentials before the method and the body', async () => {
    const { call, parent } = await setUpDerivation();
    const headers = { authorization: `Bearer ${parent.value}` };

    expectFailure(await call('PUT', '/token/derive', { as: null, raw: '{' }), 'unauthenticated');
    expectFailure(await call('PUT', '/token/derive', { as: null, headers }), 'method_not_allowed');
    expectFailure(
      await call('POST', '/token/derive', { as: null, headers, raw: '{' }),
      'invalid_json',
    );
  });

  it('answers 401 when derivation is off', async () => {
    const { derive, parent } = await setUpDerivation({ derivation: false });

    expect((await derive(parent.value)).status).toBe(401);
  });

  it('is described in the OpenAPI document only when derivation is on', async () => {
    for (const derivation of [true, false]) {
      const { call } = await setUpDerivation({ derivation });
      const { body } = await call('GET', '/openapi.json', { as: null });

      expect('/token/derive' in (body['paths'] as object)).toBe(derivation);
      expect('bearer' in (body['components'] as { securitySchemes: object }).securitySchemes).toBe(
        derivation,
      );
    }
  });
});

describe('a derivation from a token with limits', () => {
  it.each([
    ['10.9.9.9', [200, undefined]],
    ['127.0.0.1', [403, 'address_denied']],
  ])('needs its address: %s', async (address, expected) => {
    const { derive, tokens } = await setUpDerivation({ clientAddress: () => address });
    const limits = { addresses: ['10.9.9.9'] };
    const { value } = await tokens.issue({ account: 'ada', scopes: [ORDERS], limits });

    const { status, body } = await derive(value);
    expect([status, body['code']]).toEqual(expected);
  });

  it('spends a use of it', async () => {
    const { derive, tokens } = await setUpDerivation({ limits: true });
    const limits = { uses: 1 };
    const { value } = await tokens.issue({ account: 'ada', scopes: [ORDERS], limits });

    expect((await derive(value)).status).toBe(200);
    expect(await derive(value)).toMatchObject({ status: 429, body: { code: 'limit_exceeded' } });
  });

  it('says when its rate allows the next one', async () => {
    const store = new MemoryTokenStore({ clock: { now: () => new Date(START * 1000) } }).leases;
    const { derive, tokens } = await setUpDerivation({ limits: { store } });
    const limits = { rate: { uses: 1, seconds: 60 } };
    const { value } = await tokens.issue({ account: 'ada', scopes: [ORDERS], limits });

    expect((await derive(value)).status).toBe(200);
    const refused = await derive(value);
    expect(refused).toMatchObject({ status: 429, body: { code: 'limit_exceeded' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});

describe('the OpenAPI description of calls that create or change a token', () => {
  const quotas = { tokensPerAccount: 1, derivedPerRoot: 1, scopesPerToken: 2 };
  const tooMany = { scopes: [ORDERS, 'POST:shop.example/orders', 'GET:shop.example/items'] };

  it.each([
    ['POST', '/token', {}],
    ['POST', '/token/derive', {}],
    ['PUT', '/token/{token}', tooMany],
    ['PATCH', '/token/{token}', tooMany],
  ])('lists quota_exceeded, the code that %s %s answers with', async (method, path, json) => {
    const { call, derive, parent } = await setUpDerivation({ quotas });
    await derive(parent.value);
    const { body } = await call('GET', '/openapi.json', { as: null });
    const document = body as unknown as Described;

    const answer = await call(method, path.replace('{token}', parent.id), {
      json: { scopes: [ORDERS], ...json },
      ...(path === '/token/derive' && {
        as: null,
        headers: { authorization: `Bearer ${parent.value}` },
      }),
    });

    expectFailure(answer, 'quota_exceeded');
    const responses = document.paths[path]?.[method.toLowerCase()]?.responses;
    const { schema } = responses?.['422']?.content['application/json'] ?? {};
    expect(schema?.properties.code.enum).toContain('quota_exceeded');
  });
});

/** The parts of an OpenAPI document that the tests read. */
interface Described {
  readonly paths: Record<
    string,
    Record<
      string,
      {
        readonly responses: Record<
          string,
          {
            readonly content: Record<
              string,
              { readonly schema: { readonly properties: { code: { enum: string[] } } } }
            >;
          }
        >;
      }
    >
  >;
}

describe('GET /token?parent=', () => {
  it('lists derived tokens, keeps the filter in the next link and refuses a malformed id', async () => {
    const { call, derive, parent } = await setUpDerivation();
    const child = await derive(parent.value);
    await derive(parent.value);

    const { body, headers } = await call('GET', `/token?parent=${parent.id}&limit=1`);

    expect(body['data']).toMatchObject([{ parent: parent.id }]);
    expect(headers.get('link')).toContain(`parent=${parent.id}`);
    expect((await call('GET', `/token?parent=${child.body['id']}`)).body['data']).toEqual([]);
    expectFailure(await call('GET', '/token?parent=nonsense'), 'invalid_request');
  });
});
