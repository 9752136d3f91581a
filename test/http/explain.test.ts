import { describe, expect, it } from 'vitest';
import {
  CANARY,
  type Code,
  expectFailure,
  expectSuccess,
  ORDERS,
  type SetUpOptions,
  setUp,
} from './support.ts';

const ITEMS = 'GET:shop.example/items';
const DENIED = 'POST:shop.example/orders';
const REQUEST = { method: 'GET', domain: 'shop.example', target: '/orders?x=1' };

async function setUpToken(options: SetUpOptions = {}) {
  const setup = setUp(options);
  const token = await setup.issue('ada', [ORDERS, ITEMS]);
  const path = `/token/${token.id}/explain`;
  const explain = (json: unknown, at = path) => setup.call('POST', at, { json });
  return { ...setup, token, path, explain };
}

describe('POST /token/{token}/explain', () => {
  it.each([{ scope: ORDERS }, REQUEST])('names the scope that allows %j', async (json) => {
    const { explain } = await setUpToken();

    expectSuccess(await explain(json), {
      data: { allowed: true, grantedBy: ORDERS, needed: ORDERS, known: true, suggestions: [] },
    });
  });

  it.each([
    [{ scope: DENIED }, DENIED],
    [{ ...REQUEST, method: 'POST' }, `${DENIED}$`],
  ])('explains why %j is refused and that %s would suffice', async (json, smallest) => {
    const { explain } = await setUpToken();

    expectSuccess(await explain(json), {
      data: {
        allowed: false,
        reason: 'insufficient_scope',
        needed: DENIED,
        nearest: { scope: ORDERS, failed: 'method' },
        smallest,
        known: true,
        suggestions: [],
      },
    });
  });

  it('suggests similar scopes when the catalog does not know the scope', async () => {
    const { explain } = await setUpToken();

    const { body } = await explain({ ...REQUEST, target: '/ordres' });

    const { known, suggestions } = body['data'] as { known: boolean; suggestions: string[] };
    expect([known, suggestions[0]]).toEqual([false, ORDERS]);
  });

  it('reports what makes a request ambiguous', async () => {
    const { explain } = await setUpToken();

    const { body } = await explain({ ...REQUEST, target: '/items/../orders' });

    expect(body['data']).toMatchObject({ allowed: false, reason: 'path_dot_segment', needed: '' });
  });

  it('reports that a token is suspended or expired', async () => {
    const { explain, clock, tokens, token } = await setUpToken();
    await tokens.patch('ada', token.id, { suspended: true });
    const reasonOf = async () =>
      ((await explain({ scope: ORDERS })).body as { data: { reason?: string } }).data.reason;

    expect(await reasonOf()).toBe('suspended');
    await tokens.patch('ada', token.id, { suspended: false });
    expect(await reasonOf()).toBeUndefined();
    clock.advance(400 * 86_400);
    expect(await reasonOf()).toBe('expired');
  });

  it('redacts a token value in the target', async () => {
    const { explain, token } = await setUpToken({ catalog: null });

    const answer = await explain({ ...REQUEST, target: `/reset/${token.value}` });

    expect(answer.body['data']).toMatchObject({ needed: 'GET:shop.example/reset/{}$' });
    expect(answer.text).not.toContain(token.value.slice(-20));
  });

  it('neither changes the token nor counts as a use or a refusal', async () => {
    const { explain, call, token } = await setUpToken({ usage: true });
    const at = `/token/${token.id}`;
    const before = await call('GET', at);

    await explain({ scope: ORDERS });
    await explain({ scope: DENIED });

    expect((await call('GET', at)).text).toBe(before.text);
    expect((await call('GET', `${at}/usage`)).body['data']).toMatchObject({ uses: 0, refusals: 0 });
  });

  it.each<[string, unknown, Code, string]>([
    ['an empty object', {}, 'invalid_request', 'must be { scope } or { method, domain, target }'],
    [
      'a scope together with a request',
      { scope: ORDERS, ...REQUEST },
      'invalid_request',
      '{ scope } or { method',
    ],
    [
      'an incomplete request',
      { method: 'GET', target: '/' },
      'invalid_request',
      '{ scope } or { method',
    ],
    ['a scope with a method', { scope: ORDERS, method: 'GET' }, 'invalid_request', '{ scope } or'],
    ['a malformed scope', { scope: 'orders' }, 'invalid_scope', 'scope'],
    ['a scope that is a number', { scope: 7 }, 'invalid_request', 'scope must be a text'],
    ['a method that is a number', { ...REQUEST, method: 7 }, 'invalid_request', 'method must be'],
    ['an unknown member', { path: '/orders' }, 'invalid_request', 'unknown member "path"'],
    ['a list instead of an object', [ORDERS], 'invalid_request', 'the body must be an object'],
  ])('refuses a body with %s', async (_, json, code, message) => {
    const { explain } = await setUpToken();

    const answer = await explain(json);

    expectFailure(answer, code);
    expect(answer.body['message']).toContain(message);
  });

  it('refuses a body that is missing, malformed or not declared as JSON', async () => {
    const { call, path } = await setUpToken();

    expectFailure(await call('POST', path), 'invalid_json');
    expectFailure(await call('POST', path, { raw: '{' }), 'invalid_json');
    expectFailure(
      await call('POST', path, { raw: '{}', headers: { 'content-type': 'text/csv' } }),
      'unsupported_media_type',
    );
  });

  it("gives the same not_found answer for unknown, revoked and other accounts' tokens", async () => {
    const { call, explain, issue, tokens } = await setUpToken();
    const [others, revoked] = [await issue('bob'), await issue()];
    await tokens.revoke('ada', revoked.id);
    const texts = new Set<string>();

    for (const handle of ['0'.repeat(22), others.id, others.value, revoked.value, CANARY]) {
      const answer = await explain({ scope: ORDERS }, `/token/${handle}/explain`);
      expectFailure(answer, 'not_found');
      texts.add(answer.text);
    }
    expect(texts.size).toBe(1);
    const theirs = { as: 'bob', json: { scope: ORDERS } };
    expect(await call('POST', `/token/${others.id}/explain`, theirs)).toMatchObject({
      status: 200,
    });
  });

  it('requires credentials and refuses a cross-site call', async () => {
    const { call, path } = await setUpToken();
    const json = { scope: ORDERS };

    expectFailure(await call('POST', path, { json, as: null }), 'unauthenticated');
    const headers = { 'sec-fetch-site': 'cross-site' };
    expectFailure(await call('POST', path, { json, headers }), 'cross_site');
  });
});
