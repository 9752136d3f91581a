import { describe, expect, it } from 'vitest';
import { type Answer, expectFailure, expectSuccess, ORDERS, type Setup, setUp } from './support.ts';

const statesOf = ({ body }: Answer) => (body['data'] as { state: string }[]).map((it) => it.state);

const patch = ({ call }: Setup, id: string, json: object) =>
  call('PATCH', `/token/${id}`, { json });

/** One token in each state, named after it. */
async function setUpStates() {
  const setup = setUp({ reveal: 'always' });
  const { clock, tokens } = setup;
  const issue = (name: string, ttlSeconds = 60) =>
    tokens.issue({ account: 'ada', scopes: [ORDERS], name, ttlSeconds });
  const expired = await issue('Expired', 1);
  const [suspended, revoked, active] = [
    await issue('Suspended'),
    await issue('Revoked'),
    await issue('Active'),
  ];
  await tokens.patch('ada', suspended.id, { suspended: true });
  await tokens.revoke('ada', revoked.id);
  clock.advance(1);
  return { ...setup, tokensOf: { active, suspended, expired, revoked } };
}

describe('the PATCH member suspended', () => {
  it('suspends and resumes a token', async () => {
    const setup = setUp();
    const { id, value } = await setup.issue();
    const suspended = await patch(setup, id, { suspended: true });

    expect(suspended).toMatchObject({ status: 200 });
    expect(suspended.body['data']).toMatchObject([{ id, state: 'suspended', version: 2 }]);
    expect(suspended.headers.get('etag')).toBe('"2"');
    expect((await setup.tokens.verify(value, { scope: ORDERS })).ok).toBe(false);
    expect(statesOf(await setup.call('GET', `/token/${id}`))).toEqual(['suspended']);
    expect(statesOf(await patch(setup, id, { suspended: false }))).toEqual(['active']);
    expect((await setup.tokens.verify(value, { scope: ORDERS })).ok).toBe(true);
  });

  it.each([['true'], [1], [null], [[true]]])('cannot be %j', async (suspended) => {
    const setup = setUp();
    const { id } = await setup.issue();
    const answer = await patch(setup, id, { suspended });

    expectFailure(answer, 'invalid_request');
    expect(answer.body['details']).toMatchObject({ member: 'suspended' });
  });

  it('is refused by PUT and POST', async () => {
    const { call, issue } = setUp();
    const { id } = await issue();
    const json = { scopes: [ORDERS], suspended: true };

    expectFailure(await call('PUT', `/token/${id}`, { json }), 'invalid_request');
    expectFailure(await call('POST', '/token', { json }), 'invalid_request');
  });
});

describe('the state and name filters of a list', () => {
  it.each<[string, string[]]>([
    ['', ['active']],
    ['?state=active', ['active']],
    ['?state=suspended', ['suspended']],
    ['?state=expired', ['expired']],
    ['?state=revoked', ['revoked']],
    ['?state=all', ['active', 'expired', 'revoked', 'suspended']],
    ['?state=all&name=eNd', ['suspended']],
    ['?state=all&name=', ['active', 'expired', 'revoked', 'suspended']],
    ['?name=SUSP', []],
    // A revoked token holds no scope any more.
    [`?state=all&name=e&scope=${ORDERS}`, ['active', 'expired', 'suspended']],
  ])('find, for "%s", tokens in the states %j', async (query, expected) => {
    const { call } = await setUpStates();
    const answer = await call('GET', `/token${query}`);

    expect(answer.status).toBe(200);
    expect(statesOf(answer).sort()).toEqual(expected);
  });

  it('are kept in the link to the next page', async () => {
    const { call } = await setUpStates();
    const states: string[] = [];
    let path: string | undefined = '/token?state=all&name=e&limit=1';
    while (path !== undefined) {
      const answer: Answer = await call('GET', path);
      states.push(...statesOf(answer));
      const [, next] = /<(\?[^>]*)>/.exec(answer.headers.get('link') ?? '') ?? [];
      path = next && `/token${next}`;
    }

    expect(states.sort()).toEqual(['active', 'expired', 'revoked', 'suspended']);
  });
});

describe('GET /token/{token} with a state filter', () => {
  it.each<[string, string[]]>([
    ['', ['active', 'suspended', 'expired']],
    ['?state=all', ['active', 'suspended', 'expired', 'revoked']],
    ['?state=revoked', ['revoked']],
    ['?state=suspended', ['suspended']],
    ['?unknown=1', ['active', 'suspended', 'expired']],
  ])('shows, for "%s", tokens in the states %j', async (query, expected) => {
    const { call, tokensOf } = await setUpStates();
    const shown: string[] = [];
    for (const [state, { id }] of Object.entries(tokensOf)) {
      const answer = await call('GET', `/token/${id}${query}`);
      if (answer.status === 200) shown.push(state);
      else expectFailure(answer, 'not_found');
      if (answer.status === 200) expect(statesOf(answer)).toEqual([state]);
      const theirs = await call('GET', `/token/${id}${query}`, { as: 'bob' });
      expectFailure(theirs, 'not_found');
    }

    expect(shown).toEqual(expected);
  });

  it.each(['?state=', '?state=gone', '?state=all&state=all', '?stat=all'])(
    'refuses %s',
    async (query) => {
      const { call, issue } = setUp();
      const { id } = await issue();

      expectFailure(await call('GET', `/token/${id}${query}`), 'invalid_request');
    },
  );

  it('never reveals the value of a revoked token', async () => {
    const { call, tokensOf } = await setUpStates();
    const { id, value } = tokensOf.revoked;
    const answer = await call('GET', `/token/${id}?state=revoked`);

    expect(answer.text).not.toContain(value);
    expect(answer.body['data']).toMatchObject([{ token: id }]);
    expect((await call('GET', `/token/${tokensOf.suspended.id}`)).text).toContain(
      tokensOf.suspended.value,
    );
  });
});

describe('a revoked token over HTTP', () => {
  it.each<[string, string, object | undefined]>([
    ['PUT', '', { scopes: [ORDERS] }],
    ['PATCH', '', { suspended: false }],
    ['DELETE', '', undefined],
    ['POST', '/rotate', {}],
  ])('is not found by %s%s, whatever state the query asks for', async (method, path, json) => {
    const { call, tokensOf } = await setUpStates();
    const { id } = tokensOf.revoked;
    for (const query of ['', '?state=revoked', '?state=all']) {
      const answer = await call(method, `/token/${id}${path}${query}`, json && { json });
      expectFailure(answer, 'not_found');
    }
  });

  it('cannot be revoked again, even if it was suspended before', async () => {
    const { call, tokensOf } = await setUpStates();

    expectSuccess(await call('DELETE', `/token/${tokensOf.suspended.id}`), { data: null });
    expectFailure(await call('DELETE', `/token/${tokensOf.suspended.id}`), 'not_found');
  });
});
