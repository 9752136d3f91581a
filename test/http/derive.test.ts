import { describe, expect, it } from 'vitest';
import { expectFailure, ORDERS, type SetUpOptions, START, setUp } from './support.ts';

/** A service with derivation, and the bearer of a token of two scopes. */
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
  it('answers as create does, with the value and the parent', async () => {
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
    ['a scope that it does not hold', { scopes: ['GET:shop.example/items'] }, 'scope_unmatched'],
    ['no scopes', { scopes: [] }, 'scopes_required'],
    ['a number for expire', { scopes: [ORDERS], expire: 5 }, 'invalid_request'],
    ['an unknown member', { scopes: [ORDERS], parent: 'x' }, 'invalid_request'],
  ] as const)('refuses %s', async (_, json, code) => {
    const { derive, parent } = await setUpDerivation();

    expectFailure(await derive(parent.value, json), code);
  });

  it('takes a Bearer token, and asks for one', async () => {
    const { call } = await setUpDerivation();

    const none = await call('POST', '/token/derive', { as: null, json: { scopes: [ORDERS] } });
    const basic = await call('POST', '/token/derive', { json: { scopes: [ORDERS] } });

    for (const answer of [none, basic]) {
      expectFailure(answer, 'unauthenticated');
      expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="tokenwright"');
    }
  });

  it('tells the bearer of a value that is refused nothing but that', async () => {
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

  it('is off by default', async () => {
    const { derive, parent } = await setUpDerivation({ derivation: false });

    expect((await derive(parent.value)).status).toBe(401);
  });

  it('is in the document only if it is on', async () => {
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

describe('the description of a call that makes or changes a token', () => {
  const quotas = { tokensPerAccount: 2, scopesPerToken: 2 };
  const tooMany = { scopes: [ORDERS, 'POST:shop.example/orders', 'GET:shop.example/items'] };

  it.each([
    ['POST', '/token', {}],
    ['POST', '/token/derive', {}],
    ['PUT', '/token/{token}', tooMany],
    ['PATCH', '/token/{token}', tooMany],
  ])('has quota_exceeded, with which %s %s answers', async (method, path, json) => {
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

/** What the tests read of a description. */
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
  it('lists the children of a token', async () => {
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
