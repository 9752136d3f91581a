import { createServer, type IncomingMessage, type Server, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearerGuard, type GuardOutcome } from '../../src/http/index.ts';
import { setUp as setUpService } from '../support.ts';

const ANYTHING = '*:shop.example/*';
const account = 'ada';

async function setUp(scopes: readonly string[] = [ANYTHING]) {
  const setting = setUpService();
  const guard = bearerGuard({ tokens: setting.tokens, domain: 'shop.example' });
  const { value } = await setting.tokens.issue({ account, scopes });
  return { ...setting, guard, authorization: `Bearer ${value}` };
}

type Guard = Awaited<ReturnType<typeof setUp>>['guard'];
type Sent = {
  readonly method: string;
  readonly target: string;
  readonly headers: [string, string][];
};
type Ask = (guard: Guard, sent: Sent) => Promise<GuardOutcome>;

const askByFetch: Ask = async (guard, { method, target, headers: sent }) => {
  const headers = new Headers();
  for (const [name, value] of sent) headers.append(name, value);
  return guard(new Request(`http://other.example${target}`, { method, headers }));
};

describe('the guard', () => {
  let server: Server;
  let decide: (request: IncomingMessage) => unknown = () => undefined;

  beforeAll(async () => {
    server = createServer(async (request, response) => {
      await decide(request);
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  const askByNode: Ask = (guard, { method, target, headers }) =>
    new Promise((resolve, reject) => {
      decide = async (request) => {
        try {
          resolve(await guard(request));
        } catch (error) {
          reject(error);
        }
      };
      const { port } = server.address() as AddressInfo;
      const all = [['Host', 'other.example'], ['Connection', 'close'], ...headers].flat();
      send({ port, host: '127.0.0.1', method, path: target, headers: all })
        .on('error', reject)
        .on('response', (response) => response.resume())
        .end();
    });

  const KINDS: readonly [string, Ask][] = [
    ['a Fetch request', askByFetch],
    ['a Node request', (guard, sent) => askByNode(guard, sent)],
  ];

  describe.each(KINDS)('refuses %s whose method is overridden', (_, ask) => {
    it.each<[string, [string, string][], boolean]>([
      ['X-HTTP-Method-Override', [['X-HTTP-Method-Override', 'DELETE']], false],
      ['X-HTTP-Method', [['X-HTTP-Method', 'DELETE']], false],
      ['X-Method-Override', [['X-Method-Override', 'DELETE']], false],
      ['a name in lower case', [['x-http-method-override', 'DELETE']], false],
      ['a name in upper case', [['X-HTTP-METHOD', 'DELETE']], false],
      ['underscores for hyphens', [['X_HTTP_Method_Override', 'DELETE']], false],
      ['an underscore for one hyphen', [['X-Method_Override', 'DELETE']], false],
      ['a method in lower case', [['X-HTTP-Method-Override', 'delete']], false],
      ['an unknown method', [['X-HTTP-Method-Override', 'PURGE']], false],
      ['no method', [['X-HTTP-Method-Override', '']], false],
      ['a list', [['X-HTTP-Method-Override', 'POST, DELETE']], false],
      ['a list that begins with another', [['X-HTTP-Method-Override', 'DELETE,POST']], false],
      ['a method and a parameter', [['X-HTTP-Method-Override', 'POST;q=1']], false],
      [
        'a second header',
        [
          ['X-HTTP-Method', 'POST'],
          ['X-HTTP-Method', 'DELETE'],
        ],
        false,
      ],
      [
        'two headers of which one differs',
        [
          ['X-HTTP-Method-Override', 'POST'],
          ['X-Method-Override', 'PUT'],
        ],
        false,
      ],
      ['the same method', [['X-HTTP-Method-Override', 'POST']], true],
      ['the same method in lower case', [['x-http-method', 'post']], true],
      ['the same method between spaces', [['X-Method-Override', '  POST ']], true],
      ['a list of the same method', [['X-HTTP-Method-Override', 'POST, post']], true],
      [
        'the same method twice',
        [
          ['X-Method-Override', 'POST'],
          ['X-Method-Override', 'POST'],
        ],
        true,
      ],
      ['another header', [['X-HTTP-Methods', 'DELETE']], true],
      ['the headers of a gateway', [['X-Forwarded-Method', 'DELETE']], true],
      ['the name as a value', [['X-Other-Header', 'X-HTTP-Method-Override']], true],
    ])('by %s', async (_name, headers, isAccepted) => {
      const { guard, authorization } = await setUp();
      const sent: [string, string][] = [['Authorization', authorization], ...headers];
      const { ok, reason } = await ask(guard, { method: 'POST', target: '/open', headers: sent });

      expect([ok, reason]).toEqual([isAccepted, isAccepted ? undefined : 'ambiguous_request']);
    });

    it.each([
      ['/open?_method=DELETE', false],
      ['/open?_method=delete', false],
      ['/open?_method=', false],
      ['/open?_method', false],
      ['/open?a=1&_method=DELETE', false],
      ['/open?a=1&_method=DELETE&b=2', false],
      ['/open?_method=POST&_method=DELETE', false],
      ['/open?%5Fmethod=DELETE', false],
      ['/open?%5fmethod=DELETE', false],
      ['/open?_%6Dethod=DELETE', false],
      ['/open?_method=%44ELETE', false],
      ['/open?_METHOD=DELETE', false],
      ['/open?_method[]=DELETE', false],
      ['/open?_method%5B%5D=DELETE', false],
      ['/open?.method=DELETE', false],
      ['/open?+_method=DELETE', false],
      ['/open?a=1;_method=DELETE', false],
      ['/open?x-http-method-override=DELETE', false],
      ['/open??_method=DELETE&_method=PUT', false],
      ['/open?_method=POST', true],
      ['/open?_method=post', true],
      ['/open?_method=%50OST', true],
      ['/open?method=DELETE', true],
      ['/open?my_method=DELETE', true],
      ['/open?_methods=DELETE', true],
      ['/open?a=_method=DELETE', true],
      ['/open?a=%26_method=DELETE', true],
      ['/open/_method=DELETE', true],
      ['/open&_method=DELETE', true],
      ['/open?a=%', true],
    ])('by the target %s: accepted %s', async (target, isAccepted) => {
      const { guard, authorization } = await setUp();
      const headers: [string, string][] = [['Authorization', authorization]];
      const { ok, reason } = await ask(guard, { method: 'POST', target, headers });

      expect([ok, reason]).toEqual([isAccepted, isAccepted ? undefined : 'ambiguous_request']);
    });
  });

  it('answers 400 and says that the method is meant, without repeating it', async () => {
    const { guard, authorization } = await setUp();
    const headers: [string, string][] = [
      ['Authorization', authorization],
      ['X-HTTP-Method-Override', 'DELETE'],
    ];
    const { response } = await askByFetch(guard, { method: 'POST', target: '/open', headers });

    expect(response?.status).toBe(400);
    expect(response?.headers.get('www-authenticate')).toBe(
      'Bearer realm="shop.example", error="invalid_request"',
    );
    expect(await response?.json()).toMatchObject({
      code: 'invalid_request',
      message: 'the method can be read in more than one way',
      details: { detail: 'method_overridden' },
    });
  });

  it('refuses also if the route names a scope, or another target', async () => {
    const { guard, authorization } = await setUp();
    const headers = { authorization };
    const overridden = { method: 'POST', url: '/open?_method=PUT', headers };
    const outcomes = [
      await guard(overridden, { scope: 'POST:shop.example/open' }),
      await guard(overridden, { target: '/open' }),
      await guard({ ...overridden, url: '/' }, { target: '/open?_method=PUT' }),
    ];

    expect(outcomes.map(({ reason }) => reason)).toEqual(Array(3).fill('ambiguous_request'));
    expect(await guard({ ...overridden, url: '/' }, { target: '/open' })).toMatchObject({
      ok: true,
    });
  });

  it('looks at the parameters as the client sent them, before a router cut the target', async () => {
    const { guard, authorization } = await setUp();
    const request = { method: 'POST', url: '/', headers: { authorization } };
    const originalUrl = '/open?_method=PUT';

    expect(await guard({ ...request, originalUrl })).toMatchObject({ reason: 'ambiguous_request' });
    expect(await guard({ ...request, originalUrl: '/open' })).toMatchObject({ ok: true });
  });

  it('asks for a token first, and spends no use', async () => {
    const { guard, store, authorization } = await setUp();
    const headers = { 'x-http-method': 'PUT' };
    store.takeCalls();
    const request = { method: 'POST', url: '/open' };

    expect(await guard({ ...request, headers })).toMatchObject({ reason: 'missing' });
    expect(await guard({ ...request, headers: { ...headers, authorization } })).toMatchObject({
      reason: 'ambiguous_request',
    });
    expect(store.takeCalls()).toEqual([]);
  });
});
