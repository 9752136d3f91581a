import { describe, expect, it } from 'vitest';
import { MemoryTokenStore } from '../../src/index.ts';
import {
  asForm,
  CANARY,
  expectFailure,
  expectSuccess,
  ORDERS,
  type SetUpOptions,
  START,
  setUp,
  toRequest,
} from './support.ts';

const ITEMS = 'GET:shop.example/items';
const DENIED = 'POST:shop.example/orders';

/** A service that records usage, and one token of `ada` with two scopes. */
async function setUpUsage(options: SetUpOptions = {}) {
  const usage = new MemoryTokenStore().usage;
  const setup = setUp({ usage: { store: usage }, ...options });
  const token = await setup.issue('ada', [ORDERS, ITEMS]);
  const use = (scope: string) => setup.tokens.verify(token.value, { scope });
  const path = `/token/${token.id}`;
  const tokenAt = async (at: string) => {
    const { data } = (await setup.call('GET', at)).body as { data: Record<string, unknown>[] };
    return data[0] ?? {};
  };
  return { ...setup, usage, token, use, path, tokenAt };
}

describe('the usage of a token', () => {
  it.each(['/token', '/token?limit=1', '/token/ID'])('is shown by GET %s', async (at) => {
    const { clock, token, use, tokenAt } = await setUpUsage();
    clock.advance(60);
    await use(ORDERS);
    await use(ITEMS);

    const shown = await tokenAt(at.replace('ID', token.id));

    expect(shown).toMatchObject({ id: token.id, uses: 2, lastUsed: START + 60 });
  });

  it('shows apart what its derived tokens have used', async () => {
    const { call, clock, token, tokens, path, use } = await setUpUsage();
    const child = await tokens.derive(token.value, { scopes: [ORDERS] });
    await use(ITEMS);
    clock.advance(60);
    await tokens.verify(child.value, { scope: ORDERS });
    const usageAt = async (at: string) => (await call('GET', `${at}/usage`)).body['data'];

    expect(await usageAt(path)).toMatchObject({
      uses: 1,
      lastUsed: START,
      derived: { uses: 1, lastUsed: START + 60 },
    });
    expect(await usageAt(`/token/${child.id}`)).not.toHaveProperty('derived');
  });

  it('is 0 and null if the token was never used', async () => {
    const { path, use, tokenAt } = await setUpUsage();
    await use(DENIED);

    for (const at of ['/token', path]) {
      expect(await tokenAt(at)).toMatchObject({ uses: 0, lastUsed: null });
    }
  });

  it('is left out if the service does not record it', async () => {
    const { path, use, tokenAt } = await setUpUsage({ usage: undefined });
    await use(ORDERS);

    for (const at of ['/token', path]) {
      const members = Object.keys(await tokenAt(at));
      expect(members).toContain('version');
      expect(members).not.toContain('uses');
      expect(members).not.toContain('lastUsed');
    }
  });

  it.each([
    ['POST', '/token', { scopes: [ORDERS] }],
    ['PUT', '/token/ID', { scopes: [ORDERS] }],
    ['PATCH', '/token/ID', { name: 'ci' }],
    ['POST', '/token/ID/rotate', {}],
  ])('is not shown by %s %s', async (method, at, json) => {
    const { token, use, call } = await setUpUsage();
    await use(ORDERS);

    const { status, text } = await call(method, at.replace('ID', token.id), { json });

    expect(status).toBe(200);
    expect(text).not.toContain('lastUsed');
  });
});

describe('the usage counters', () => {
  it('count an introspection as a use of "other", or as a refusal if it fails', async () => {
    const { send, clock, call, token, path } = await setUpUsage({
      introspection: { authenticate: ({ username }) => username },
    });
    const ask = async () => send(toRequest('POST', '/introspect', asForm({ token: token.value })));

    expect((await ask()).body['active']).toBe(true);
    const { data } = (await call('GET', `${path}/usage`)).body as { data: { scopes: unknown[] } };
    expect(data).toMatchObject({ uses: 1, refusals: 0, lastUsed: START });
    expect(data.scopes.at(-1)).toEqual({ scope: 'other', uses: 1, lastUsed: START });

    clock.advance(400 * 86_400);
    expect((await ask()).body['active']).toBe(false);
    expect((await call('GET', `${path}/usage`)).body['data']).toMatchObject({
      uses: 1,
      refusals: 1,
    });
  });

  it('do not count POST /revoke', async () => {
    const { send, usage, token, tokens } = await setUpUsage({ revocation: true });
    const { status } = await send(toRequest('POST', '/revoke', asForm({ token: token.value })));
    await tokens.close();

    expect(status).toBe(200);
    expect(await usage.read([token.id])).toEqual([undefined]);
  });
});

describe('GET /token/{token}/usage', () => {
  it('returns the counts in total and by scope, with 0 for unused scopes', async () => {
    const { clock, use, call, path } = await setUpUsage();
    clock.advance(60);
    await use(ORDERS);
    clock.advance(60);
    await use(ORDERS);
    await use(DENIED);

    expectSuccess(await call('GET', `${path}/usage`), {
      data: {
        uses: 2,
        refusals: 1,
        lastUsed: START + 120,
        scopes: [
          { scope: ITEMS, uses: 0, lastUsed: null },
          { scope: ORDERS, uses: 2, lastUsed: START + 120 },
        ],
      },
    });
  });

  it('includes uses that other processes have written', async () => {
    const { call, path, usage, token } = await setUpUsage();
    const lastUsedAt = new Date((START - 5) * 1000 + 999);
    await usage.add([{ id: token.id, scope: 'other', uses: 7, lastUsedAt }]);

    const { data } = (await call('GET', `${path}/usage`)).body as { data: { scopes: unknown[] } };

    expect(data).toMatchObject({ uses: 7, lastUsed: START - 5 });
    expect(data.scopes.at(-1)).toEqual({ scope: 'other', uses: 7, lastUsed: START - 5 });
  });

  it('accepts a token value unless pathTokens is id-only', async () => {
    const any = await setUpUsage();
    const ids = await setUpUsage({ pathTokens: 'id-only' });

    expect(await any.call('GET', `/token/${any.token.value}/usage`)).toMatchObject({ status: 200 });
    const refused = await ids.call('GET', `/token/${ids.token.value}/usage`);
    expectFailure(refused, 'invalid_request');
    expect(refused.text).not.toContain(ids.token.value.slice(0, 16));
    expect(await ids.call('GET', `${ids.path}/usage`)).toMatchObject({ status: 200 });
  });

  it('gives the same not_found answer for every token that the account does not own', async () => {
    const { call, issue, tokens } = await setUpUsage();
    const [others, revoked] = [await issue('bob'), await issue()];
    await tokens.revoke('ada', revoked.id);
    const handles = ['0'.repeat(22), others.id, others.value, revoked.id, revoked.value, CANARY];
    const answers = [];
    for (const handle of handles) answers.push(await call('GET', `/token/${handle}/usage`));

    for (const answer of answers) expectFailure(answer, 'not_found');
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(await call('GET', `/token/${others.id}/usage`, { as: 'bob' })).toMatchObject({
      status: 200,
    });
  });

  it('includes an expired token and requires credentials', async () => {
    const { call, clock, use, path } = await setUpUsage();
    await use(ORDERS);
    clock.advance(400 * 86_400);

    expect((await call('GET', `${path}/usage`)).body['data']).toMatchObject({ uses: 1 });
    expectFailure(await call('GET', `${path}/usage`, { as: null }), 'unauthenticated');
  });

  it('answers GET and HEAD and no other method', async () => {
    const { call, path } = await setUpUsage();
    const get = await call('GET', `${path}/usage`);
    const head = await call('HEAD', `${path}/usage`);

    expect(head).toMatchObject({ status: 200, text: '' });
    expect([...head.headers]).toEqual([...get.headers]);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const answer = await call(method, `${path}/usage`);
      expectFailure(answer, 'method_not_allowed');
      expect(answer.headers.get('allow')).toBe('GET, HEAD');
    }
  });

  it.each(['/usage/', '/Usage', '/usage/x', '//usage', '/usages'])(
    'is not served at %s',
    async (tail) => {
      const { call, path } = await setUpUsage();

      expectFailure(await call('GET', path + tail), 'not_found');
    },
  );

  it('answers usage_not_recorded for any token if usage is not recorded', async () => {
    const { call, path } = await setUpUsage({ usage: undefined });
    const known = await call('GET', `${path}/usage`);
    const unknown = await call('GET', `/token/${'0'.repeat(22)}/usage`);

    expectFailure(known, 'usage_not_recorded');
    expect(known.body['message']).toContain('does not record');
    expect(unknown.text).toBe(known.text);
    expectFailure(await call('GET', `${path}/usage`, { as: null }), 'unauthenticated');
  });

  it('answers 503 while the usage store is down, and verify keeps working', async () => {
    const { call, path, usage, use, tokenAt } = await setUpUsage();
    const down = () => Promise.reject(new Error(CANARY));
    const [read, totals] = [usage.read.bind(usage), usage.totals?.bind(usage)];
    Object.assign(usage, { read: down, totals: down });

    expectFailure(await call('GET', `${path}/usage`), 'store_unavailable');
    expect(await use(ORDERS)).toMatchObject({ ok: true });
    const shown = await tokenAt(path);
    expect(shown).toHaveProperty('id');
    expect(shown).not.toHaveProperty('uses');
    expect(shown).not.toHaveProperty('lastUsed');
    Object.assign(usage, { read, totals });
    expect(await tokenAt(path)).toMatchObject({ uses: 1 });
    expect((await call('GET', `${path}/usage`)).body['data']).toMatchObject({ uses: 1 });
  });
});

describe('GET /token/{token}/advice', () => {
  const DAY = 86_400;

  it('lists the scopes that were not used for 30 days and changes nothing', async () => {
    const { clock, use, call, path } = await setUpUsage();
    clock.advance(DAY);
    await use(ITEMS);
    clock.advance(20 * DAY);
    await use(ORDERS);
    clock.advance(15 * DAY);

    expectSuccess(await call('GET', `${path}/advice`), {
      data: { unused: [ITEMS], kept: [ORDERS], since: START },
    });
    const { body } = await call('GET', path);
    expect(body['data']).toMatchObject([{ scopes: [ITEMS, ORDERS], version: 1 }]);
  });

  it('reads the number of days from the query', async () => {
    const { clock, use, call, path } = await setUpUsage();
    const unusedFor = async (days: number) => {
      const { body } = await call('GET', `${path}/advice?unusedForDays=${days}`);
      return (body as { data: { unused: unknown } }).data.unused;
    };
    clock.advance(DAY);
    await use(ITEMS);
    clock.advance(20 * DAY);
    await use(ORDERS);

    expect(await unusedFor(20)).toEqual([]);
    expect(await unusedFor(19)).toEqual([ITEMS]);
    expect(await unusedFor(3650)).toEqual([]);
  });

  it('lists no scope of a new token as unused', async () => {
    const { call, path } = await setUpUsage();

    expect((await call('GET', `${path}/advice`)).body['data']).toEqual({
      unused: [],
      kept: [ITEMS, ORDERS],
      since: START,
    });
  });

  it('lists no scope as unused while introspection uses the token', async () => {
    const { clock, use, send, call, token, path } = await setUpUsage({
      introspection: { authenticate: ({ username }) => username },
    });
    await use(ITEMS);
    clock.advance(40 * DAY);
    const advised = async () =>
      ((await call('GET', `${path}/advice`)).body as { data: { unused: unknown } }).data.unused;
    expect(await advised()).toEqual([ITEMS, ORDERS]);

    await send(toRequest('POST', '/introspect', asForm({ token: token.value })));
    expect(await advised()).toEqual([]);
  });

  it.each(['0', '3651', '1.5', '-1', '', '030', 'x', '1e2'])('refuses %j days', async (days) => {
    const { call, path } = await setUpUsage();

    const answer = await call('GET', `${path}/advice?unusedForDays=${days}`);

    expectFailure(answer, 'invalid_request');
    expect(answer.body['message']).toBe(
      'the query parameter unusedForDays must be a whole number from 1 to 3650',
    );
    expect(answer.body['details']).toEqual({ member: 'unusedForDays' });
  });

  it('refuses misspelled, repeated and owner parameters and ignores unknown ones', async () => {
    const { call, path } = await setUpUsage();
    const ask = (query: string) => call('GET', `${path}/advice?${query}`);

    expect((await ask('unusedForDay=3')).body['message']).toContain('did you mean unusedForDays?');
    expectFailure(await ask('unusedForDays=3&unusedForDays=4'), 'invalid_request');
    expectFailure(await ask('account=bob'), 'invalid_request');
    expect(await ask('_=1')).toMatchObject({ status: 200 });
  });

  it('gives the same not_found answer for every token that the account does not own', async () => {
    const { call, issue, tokens } = await setUpUsage();
    const [others, revoked] = [await issue('bob'), await issue()];
    await tokens.revoke('ada', revoked.id);
    const texts = new Set<string>();

    for (const handle of ['0'.repeat(22), others.id, revoked.value, CANARY]) {
      const answer = await call('GET', `/token/${handle}/advice`);
      expectFailure(answer, 'not_found');
      texts.add(answer.text);
    }
    expect(texts.size).toBe(1);
  });

  it('answers usage_not_recorded if usage is not recorded', async () => {
    const { call, path } = await setUpUsage({ usage: undefined });

    expectFailure(await call('GET', `${path}/advice`), 'usage_not_recorded');
    expectFailure(await call('POST', `${path}/advice`), 'method_not_allowed');
    expectFailure(await call('GET', `${path}/advice?unusedForDays=0`), 'invalid_request');
  });
});
