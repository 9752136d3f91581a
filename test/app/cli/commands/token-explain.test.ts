import { describe, expect, it, vi } from 'vitest';
import { ACCOUNT, call, filesOf, newFolder, outcomeOf, serve, serviceOn } from '../support.ts';

const ORDERS = 'GET:shop.example/orders';
const URL_OF_ORDERS = 'https://shop.example/orders/7?x=1';
const file = () =>
  filesOf({ 'catalog.json': [ORDERS, 'POST:shop.example/orders'] })('catalog.json');

describe('token explain', () => {
  async function setUpStore() {
    const data = newFolder();
    const tokens = serviceOn(data);
    const { id, value } = await tokens.issue({ account: 'ada', scopes: [ORDERS] });
    const explain = (...words: string[]) =>
      outcomeOf(['token', 'explain', ...words, '--data', data, '--account', 'ada']);
    return { data, tokens, id, value, explain };
  }

  it.each([[['GET', URL_OF_ORDERS]], [['--scope', `${ORDERS}/7`]]])(
    'names the scope that allows %j',
    async (need) => {
      const { id, explain } = await setUpStore();

      const { text, json, isNegative } = await explain(id, ...need);

      expect(text).toMatch(/^allowed .*orders\/7\nby {7}GET:shop\.example\/orders$/);
      expect(json).toMatchObject({ allowed: true, grantedBy: ORDERS });
      expect(isNegative).toBe(false);
    },
  );

  it('names the part that does not match, and a scope that would be enough', async () => {
    const { id, explain } = await setUpStore();

    const { text, json, isNegative } = await explain(id, 'POST', URL_OF_ORDERS);

    expect(text.split('\n')).toEqual([
      'refused  POST shop.example /orders/7',
      'reason   insufficient_scope: no scope of the token covers it',
      `nearest  ${ORDERS}, but its method does not match`,
      'enough   POST:shop.example/orders/7$',
    ]);
    expect(json).toMatchObject({ allowed: false, nearest: { scope: ORDERS, failed: 'method' } });
    expect(isNegative).toBe(true);
  });

  it('suggests similar scopes of a catalog', async () => {
    const { id, explain } = await setUpStore();

    const { text, json } = await explain(
      id,
      'GET',
      'https://shop.example/ordres',
      '--catalog',
      file(),
    );

    expect([json.known, json.suggestions[0]]).toEqual([false, ORDERS]);
    expect(text).toContain(`catalog  does not know it; did you mean\n           ${ORDERS}`);
  });

  it('reports that a token is suspended, and why a request is ambiguous', async () => {
    const { id, explain, tokens } = await setUpStore();
    const dots = await explain(id, 'GET', 'https://shop.example/a/../orders');
    await tokens.patch('ada', id, { suspended: true });

    expect(dots.text).toContain('reason   path_dot_segment: the path contains a segment of dots');
    expect(dots.text).not.toContain('catalog');
    expect((await explain(id, 'GET', URL_OF_ORDERS)).text).toContain(
      'reason   suspended: the token',
    );
  });

  it('finds no token of another account', async () => {
    const { tokens, explain } = await setUpStore();
    const others = await tokens.issue({ account: 'bob', scopes: [ORDERS] });

    for (const id of [others.id, '0'.repeat(22)]) {
      expect(await explain(id, '--scope', ORDERS)).toMatchObject({ json: null, isNegative: true });
    }
  });

  it.each([[['GET']], [[]], [['GET', URL_OF_ORDERS, '--scope', ORDERS]]])(
    'requires either a request or --scope, not %j',
    async (need) => {
      const { id, explain } = await setUpStore();

      await expect(explain(id, ...need)).rejects.toThrow('either <METHOD> and <URL> or --scope');
    },
  );

  it('gives the same answers for a service', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT, '--catalog', file()]);
    const { body } = await call(service, '/token', { method: 'POST', body: { scopes: [ORDERS] } });
    vi.stubEnv('TOKENWRIGHT_USER', 'ada');
    vi.stubEnv('TOKENWRIGHT_PASSWORD', 'correct-horse');
    const remote = (...words: string[]) =>
      outcomeOf(['token', 'explain', ...words, '--url', service.url]);

    expect((await remote(body.id, 'GET', URL_OF_ORDERS)).text).toContain(`by       ${ORDERS}`);
    const refused = await remote(body.id, 'GET', 'https://shop.example/ordres');
    expect([refused.isNegative, refused.json.suggestions[0]]).toEqual([true, ORDERS]);
    expect(await remote('0'.repeat(22), '--scope', ORDERS)).toMatchObject({ json: null });
    await expect(remote(body.id, '--scope', 'orders')).rejects.toThrow('refuses with 422');
  });
});
