import { describe, expect, it } from 'vitest';
import { expectFailure, ORDERS, PASSWORD, setUp } from './support.ts';

const MADE = { createdBy: 'grace@shop.example', purpose: 'one task' };
const asGrace = { account: 'acme', user: MADE.createdBy };
const token = { scopes: [ORDERS] };

describe('who made a token, over HTTP', () => {
  it.each([
    ['authenticate', { authenticate: () => asGrace }],
    ['authenticate, later', { authenticate: async () => asGrace }],
    ['session', { session: () => asGrace }],
  ])('is who calls, by %s', async (_, ways) => {
    const { call } = setUp(ways);
    const as = 'session' in ways ? null : 'acme';
    const headers = { 'x-tokenwright': 'test', 'sec-fetch-site': 'same-origin' };

    const made = await call('POST', '/token', {
      as,
      headers,
      json: { ...token, purpose: 'one task' },
    });

    expect([made.status, made.body]).toMatchObject([200, MADE]);
    const listed = await call('GET', `/token?createdBy=${encodeURIComponent(MADE.createdBy)}`, {
      as,
      headers,
    });
    expect(listed.body['data']).toEqual([expect.objectContaining(MADE)]);
    const none = await call('GET', '/token?createdBy=grace', { as, headers });
    expect(none.body['data']).toEqual([]);
    const shown = await call('GET', `/token/${made.body['id']}`, { as, headers });
    expect(shown.body['data']).toMatchObject([MADE]);
  });

  it('is nobody if only an account calls', async () => {
    const { call } = setUp();

    const { body } = await call('POST', '/token', { json: token });

    expect(body).not.toHaveProperty('createdBy');
    expect(body).not.toHaveProperty('purpose');
  });

  it.each([
    ['POST', '/token'],
    ['PUT', '/token/ID'],
    ['PATCH', '/token/ID'],
  ])('cannot be said in a body: %s %s', async (method, path) => {
    const { call, tokens } = setUp();
    const { id } = await tokens.issue({ account: 'ada', ...token });

    for (const member of ['createdBy', 'actor', 'origin']) {
      const answer = await call(method, path.replace('ID', id), {
        json: { ...token, [member]: 'eve' },
      });
      expectFailure(answer, 'invalid_request');
      expect(answer.text).toContain(member);
    }
  });

  it.each([
    [{ account: 'acme' }],
    [{ account: 'acme', user: '' }],
    [{ account: '', user: 'grace' }],
    [{ account: 'acme', user: 'x'.repeat(256) }],
    [{ account: 'acme', user: 7 }],
    [['acme', 'grace']],
  ])('must be an account, or one with a user: %j', async (answer) => {
    const errors: unknown[] = [];
    const { call } = setUp({
      authenticate: () => answer as never,
      onError: (error: unknown) => errors.push(error),
    });

    expectFailure(await call('GET', '/token', {}), 'store_unavailable');
    expect(String(errors[0])).toContain('authenticate must return the name of the account');
    expect(String(errors[0])).not.toContain(PASSWORD);
  });

  it('never opens another account than that of the credentials', async () => {
    const { call, tokens } = setUp({ authenticate: () => asGrace });
    const other = await tokens.issue({ account: 'grace@shop.example', ...token });

    expectFailure(await call('GET', `/token/${other.id}`, {}), 'not_found');
  });
});

describe('POST /token/derive with an actor', () => {
  it('names who acts, and refuses a value that is not live', async () => {
    const { call, tokens } = setUp({ derivation: true });
    const parent = await tokens.issue({ account: 'ada', ...token, createdBy: 'ann' });
    const bot = await tokens.issue({ account: 'bot', ...token });
    const derive = (json: object) =>
      call('POST', '/token/derive', {
        as: null,
        json: { ...token, ...json },
        headers: { authorization: `Bearer ${parent.value}` },
      });

    const made = await derive({ actorToken: bot.value, purpose: 'one task' });
    await tokens.revoke('bot', bot.id);
    const refused = await derive({ actorToken: bot.value });

    const actor = { sub: 'bot', token: bot.id };
    expect([made.status, made.body]).toMatchObject([
      200,
      { createdBy: 'ann', purpose: 'one task', actor },
    ]);
    expectFailure(refused, 'invalid_token');
    expect(made.text + refused.text).not.toContain(bot.value);
    expectFailure(await derive({ actorToken: 7 }), 'invalid_request');
    expectFailure(
      await call('POST', '/token', { json: { ...token, actorToken: 'x' } }),
      'invalid_request',
    );
  });
});
