import { describe, expect, it } from 'vitest';
import { type BearerGuardOptions, bearerGuard, type GuardNeed } from '../../../src/http/index.ts';
import { ScopeCatalog } from '../../../src/scope/index.ts';
import { codeOf, setUp as setUpService } from '../../support.ts';

const METADATA = 'https://shop.example/.well-known/oauth-protected-resource/api';
const SUFFIX = `, resource_metadata="${METADATA}"`;
const ORDERS = 'GET:shop.example/orders';

async function setUp(options: Partial<BearerGuardOptions> = {}) {
  const { tokens } = setUpService({ catalog: options.catalog });
  const given = { tokens, domain: 'shop.example', ...options };
  const { value } = await tokens.issue({ account: 'ada', scopes: [ORDERS] });
  const limits = { addresses: ['192.0.2.1'] };
  const limited = await tokens.issue({ account: 'ada', scopes: [ORDERS], limits });
  const ask = async (path: string, authorization: string, need?: GuardNeed) => {
    const request = new Request(`http://127.0.0.1${path}`, { headers: { authorization } });
    const answer = async (options: Partial<BearerGuardOptions>) => {
      const { response } = await bearerGuard({ ...given, ...options })(request, need);
      return response && textOf(response);
    };
    return [await answer({}), await answer({ resource: 'https://shop.example/api' })] as const;
  };
  return { ask, value, limited: limited.value };
}

interface Answer {
  readonly status: number;
  readonly challenge: string | null;
  readonly text: string;
}

async function textOf(response: Response): Promise<Answer> {
  const challenge = response.headers.get('www-authenticate');
  return { status: response.status, challenge, text: await response.text() };
}

describe('a guard with a resource', () => {
  it.each([
    ['no token', 401, '', ''],
    ['a forged token', 401, 'Bearer acme_forged', ', error="invalid_token"'],
  ])(
    'adds the needed scope and the metadata to the challenge for %s',
    async (_, status, authorization, error) => {
      const { ask } = await setUp();
      const [without, withResource] = await ask('/orders/7', authorization);

      const start = `Bearer realm="shop.example"${error}`;
      expect(without).toMatchObject({ status, challenge: start });
      expect(withResource).toEqual({
        ...without,
        challenge: `${start}, scope="GET:shop.example/orders/7$"${SUFFIX}`,
      });
    },
  );

  it('adds the metadata to the challenge for a token that does not cover the request', async () => {
    const { ask, value } = await setUp();
    const [without, withResource] = await ask('/bills', `Bearer ${value}`);

    expect(without?.status).toBe(403);
    expect(without?.challenge).toContain('scope="GET:shop.example/bills$"');
    expect(withResource).toEqual({ ...without, challenge: without?.challenge + SUFFIX });
  });

  it('names the scope of the route, or of the catalog', async () => {
    const catalog = ScopeCatalog.from([ORDERS, 'GET:shop.example/orders/{}$']);
    const { ask } = await setUp({ catalog });

    const scopeOf = async (need?: GuardNeed) =>
      (await ask('/orders/7', '', need))[1]?.challenge?.match(/scope="([^"]*)"/)?.[1];
    expect(await scopeOf()).toBe('GET:shop.example/orders/{}$');
    expect(await scopeOf({ scope: 'POST:shop.example/refunds' })).toBe('POST:shop.example/refunds');
  });

  it('names no scope for a request that can be read in two ways', async () => {
    const { ask } = await setUp();
    const [, answer] = await ask('/orders/%2e%2e%2fbills', '');

    expect(answer).toMatchObject({
      status: 401,
      challenge: `Bearer realm="shop.example"${SUFFIX}`,
    });
  });

  it('never names the value of a token that is in the path', async () => {
    const { ask, value } = await setUp();
    const [, answer] = await ask(`/tokens/${value}`, '');

    expect(answer?.challenge).toContain('scope="GET:shop.example/tokens/{}$"');
  });

  it.each([
    ['two credentials', '/orders?access_token=x', 400],
    ['another address', '/orders', 403],
  ])('changes nothing of the answer to %s', async (_, path, status) => {
    const { ask, limited } = await setUp({ clientAddress: () => '192.0.2.2' });
    const [without, withResource] = await ask(path, `Bearer ${limited}`);

    expect(without?.status).toBe(status);
    expect(withResource).toEqual(without);
  });

  it('accepts what a guard without one accepts', async () => {
    const { ask, value } = await setUp();

    expect(await ask('/orders', `Bearer ${value}`)).toEqual([undefined, undefined]);
  });

  it.each(['http://shop.example/api', 'https://shop.example/api?x', 'shop.example', 7])(
    'refuses %s as a resource',
    async (resource) => {
      const { tokens } = setUpService();
      const make = () => bearerGuard({ tokens, domain: 'shop.example', resource } as never);

      expect(await codeOf(make)).toBe('invalid_options');
    },
  );
});
