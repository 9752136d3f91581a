import {
  createServer,
  IncomingMessage,
  type Server,
  ServerResponse,
  request as send,
} from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GuardedNodeRequest } from '../../../src/http/guard/guard.ts';
import {
  type BearerGuard,
  type BearerGuardOptions,
  bearerGuard,
  type GuardNeed,
  type GuardOutcome,
  type GuardRefusal,
} from '../../../src/http/index.ts';
import { MemoryTokenStore, TokenService, type TokenServiceOptions } from '../../../src/index.ts';
import { parseScope, ScopeCatalog } from '../../../src/scope/index.ts';
import {
  codeOf,
  expectNoSecret,
  forge,
  K2,
  NO_ID,
  RecordingStore,
  setUp as setUpService,
} from '../../support.ts';

const DOMAIN = 'shop.example';
const ORDERS = 'GET:shop.example/orders';
const ANYTHING = '*:shop.example/*';
const account = 'ada';

/** A guard of `shop.example`, and by default a token with every right there. */
async function setUp({
  service = {},
  scopes = [ANYTHING],
  ...options
}: Partial<BearerGuardOptions> & {
  readonly service?: Partial<TokenServiceOptions>;
  readonly scopes?: readonly string[];
} = {}) {
  const setting = setUpService(service);
  const refusals: GuardRefusal[] = [];
  const guard = bearerGuard({
    tokens: setting.tokens,
    domain: DOMAIN,
    onRefusal: (refusal) => refusals.push(refusal),
    ...options,
  });
  const { id, value } = await setting.tokens.issue({ account, scopes });
  setting.store.takeCalls();
  return { ...setting, guard, refusals, id, value };
}

interface Sent {
  readonly method?: string;
  readonly target?: string;
  /** Each value is sent as a separate header. */
  readonly authorization?: string | readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly need?: GuardNeed;
}

type Ask = (guard: BearerGuard, sent: Sent) => Promise<GuardOutcome>;

const headersOf = ({ authorization = [], headers = {} }: Sent): [string, string][] => [
  ...[authorization].flat().map((value): [string, string] => ['Authorization', value]),
  ...Object.entries(headers),
];

const askByFetch: Ask = async (guard, sent) => {
  const { method = 'GET', target = '/orders', body = null, need } = sent;
  const headers = new Headers();
  for (const [name, value] of headersOf(sent)) headers.append(name, value);
  return guard(new Request(`http://other.example${target}`, { method, headers, body }), need);
};

describe('bearerGuard', () => {
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

  /** Asks over a real connection, with raw headers and target. */
  const askByNode: Ask = (guard, sent) =>
    new Promise((resolve, reject) => {
      decide = async (request) => {
        try {
          resolve(await guard(request, sent.need));
        } catch (error) {
          reject(error);
        }
      };
      const { port } = server.address() as AddressInfo;
      const { method = 'GET', target = '/orders', body } = sent;
      const headers = [['Host', 'other.example'], ['Connection', 'close'], ...headersOf(sent)];
      if (body !== undefined) headers.push(['Content-Length', `${body.length}`]);
      send({ port, host: '127.0.0.1', method, path: target, headers: headers.flat() })
        .on('error', reject)
        .on('response', (response) => response.resume())
        .end(body);
    });

  const KINDS: readonly [string, Ask][] = [
    ['a Fetch request', askByFetch],
    ['a Node request', (guard, sent) => askByNode(guard, sent)],
  ];

  describe.each(KINDS)('reads the credentials of %s', (_, ask) => {
    it.each<[string, (value: string) => string | readonly string[], string]>([
      ['Bearer', (value) => `Bearer ${value}`, 'ok'],
      ['lower case', (value) => `bearer ${value}`, 'ok'],
      ['upper case', (value) => `BEARER ${value}`, 'ok'],
      ['mixed case', (value) => `bEaReR ${value}`, 'ok'],
      ['several spaces', (value) => `Bearer    ${value}`, 'ok'],
      ['a tab after the space', (value) => `Bearer \t${value}`, 'malformed'],
      ['a no-break space before it', (value) => `Bearer \xa0${value}`, 'malformed'],
      ['a no-break space after it', (value) => `Bearer ${value}\xa0`, 'malformed'],
      ['a next line after it', (value) => `Bearer ${value}\x85`, 'malformed'],
      ['a character of base64 after it', (value) => `Bearer ${value}=`, 'malformed'],
      ['a tab instead of the space', (value) => `Bearer\t${value}`, 'missing'],
      ['spaces at the end', (value) => `Bearer ${value}  `, 'ok'],
      ['spaces at the beginning', (value) => `  Bearer ${value}`, 'ok'],
      ['no space', (value) => `Bearer${value}`, 'missing'],
      ['no header', () => [], 'missing'],
      ['an empty header', () => '', 'missing'],
      ['the scheme alone', () => 'Bearer', 'malformed'],
      ['the scheme and a space', () => 'Bearer ', 'malformed'],
      ['the value alone', (value) => value, 'missing'],
      ['another scheme', (value) => `Token ${value}`, 'missing'],
      ['a longer scheme', (value) => `Bearers ${value}`, 'missing'],
      ['Basic', (value) => `Basic ${btoa(`ada:${value}`)}`, 'missing'],
      ['Bearer within Basic', (value) => `Basic Bearer ${value}`, 'missing'],
      ['Bearer in Base64 within Basic', (value) => `Basic ${btoa(`Bearer ${value}`)}`, 'missing'],
      ['quotes', (value) => `Bearer "${value}"`, 'malformed'],
      ['two values', (value) => `Bearer ${value} ${value}`, 'malformed'],
      ['a parameter', (value) => `Bearer ${value}; realm=a`, 'malformed'],
      ['the scheme twice', (value) => `Bearer Bearer ${value}`, 'malformed'],
      ['an id', () => `Bearer ${NO_ID}`, 'malformed'],
      [
        'two joined by a comma',
        (value) => `Bearer ${value}, Bearer ${value}`,
        'ambiguous_credentials',
      ],
      ['Basic joined before it', (value) => `Basic YQ==, Bearer ${value}`, 'ambiguous_credentials'],
      ['Basic joined after it', (value) => `Bearer ${value},Basic YQ==`, 'ambiguous_credentials'],
      ['a comma after it', (value) => `Bearer ${value},`, 'ambiguous_credentials'],
      ['two other schemes joined', () => 'Basic YQ==, Digest a=b', 'missing'],
      ['two headers', (value) => [`Bearer ${value}`, `Bearer ${value}`], 'ambiguous_credentials'],
      ['Basic before it', (value) => ['Basic YQ==', `Bearer ${value}`], 'ambiguous_credentials'],
      ['Basic after it', (value) => [`Bearer ${value}`, 'Basic YQ=='], 'ambiguous_credentials'],
      ['an empty one before it', (value) => ['', `Bearer ${value}`], 'ambiguous_credentials'],
      ['two headers of another scheme', () => ['Basic YQ==', 'Basic YQ=='], 'missing'],
    ])('with %s', async (_name, write, expected) => {
      const { guard, value, refusals } = await setUp();
      const outcome = await ask(guard, { authorization: write(value) });

      expect(outcome.ok ? 'ok' : outcome.reason).toBe(expected);
      expect(refusals.map(({ reason }) => reason)).toEqual(outcome.ok ? [] : [expected]);
    });

    it('despite other headers that look like a second Authorization', async () => {
      const { guard, value } = await setUp();
      const headers = { 'x-other-thing': 'Bearer x', 'x-authorization': `Bearer ${value}` };
      const outcome = await ask(guard, { authorization: `Bearer ${value}`, headers });

      expect(outcome.ok).toBe(true);
    });

    it.each<[string, (value: string) => Sent]>([
      ['a query parameter', (value) => ({ target: `/orders?access_token=${value}` })],
      ['a parameter of another name', (value) => ({ target: `/orders?token=${value}` })],
      ['a fragment', (value) => ({ target: `/orders#access_token=${value}` })],
      ['the path', (value) => ({ target: `/orders/${value}` })],
      ['a cookie', (value) => ({ headers: { cookie: `access_token=${value}` } })],
      ['X-Access-Token', (value) => ({ headers: { 'x-access-token': value } })],
      ['X-Api-Key', (value) => ({ headers: { 'x-api-key': value } })],
      [
        'Proxy-Authorization',
        (value) => ({ headers: { 'proxy-authorization': `Bearer ${value}` } }),
      ],
      [
        'X-Forwarded-Authorization',
        (value) => ({ headers: { 'x-forwarded-authorization': `Bearer ${value}` } }),
      ],
      [
        'a form',
        (value) => ({
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: `access_token=${value}`,
        }),
      ],
    ])('never from %s', async (_name, send) => {
      const { guard, value, store } = await setUp();
      const outcome = await ask(guard, send(value));

      expect(outcome).toMatchObject({ ok: false, reason: 'missing', response: { status: 401 } });
      expect(store.takeCalls()).toEqual([]);
    });

    it.each<[string, string, string]>([
      ['an access_token', '/orders?access_token=a', 'ambiguous_credentials'],
      [
        'an access_token among other parameters',
        '/orders?a=1&access_token=a&b=2',
        'ambiguous_credentials',
      ],
      ['an empty access_token', '/orders?access_token=', 'ambiguous_credentials'],
      ['an access_token without an equals sign', '/orders?access_token', 'ambiguous_credentials'],
      ['an encoded name', '/orders?access%5Ftoken=a', 'ambiguous_credentials'],
      ['a name encoded in part', '/orders?%61ccess_token=a', 'ambiguous_credentials'],
      ['no parameters', '/orders', 'ok'],
      ['another name', '/orders?token=a', 'ok'],
      ['a longer name', '/orders?my_access_token=a', 'ok'],
      ['upper case', '/orders?ACCESS_TOKEN=a', 'ok'],
      ['the name as a value', '/orders?a=access_token=1', 'ok'],
      ['the name in the path', '/orders/access_token=1', 'ok'],
      ['the name behind an ampersand of the path', '/orders&access_token=1', 'ok'],
      ['other encoded names', '/orders?a%5Fb=%61', 'ok'],
    ])('next to a query with %s (%s): %s', async (_name, target, expected) => {
      const { guard, value } = await setUp();
      const outcome = await ask(guard, { target, authorization: `Bearer ${value}` });

      expect(outcome.ok ? 'ok' : outcome.reason).toBe(expected);
      if (!outcome.ok) expect(outcome.response.status).toBe(400);
    });
  });

  describe.each(KINDS)('decides about %s', (_, ask) => {
    it.each<[string, string, string, string]>([
      [ORDERS, 'GET', '/orders', 'ok'],
      [ORDERS, 'GET', '/orders/7?x=1', 'ok'],
      [ORDERS, 'GET', '/ordersx', 'GET:shop.example/ordersx$'],
      [ORDERS, 'GET', '/', 'GET:shop.example/$'],
      [ORDERS, 'GET', '/?a=1', 'GET:shop.example/$'],
      [ORDERS, 'POST', '/orders', 'POST:shop.example/orders$'],
      [ORDERS, 'HEAD', '/orders', 'HEAD:shop.example/orders$'],
      [ORDERS, 'OPTIONS', '/orders', 'OPTIONS:shop.example/orders$'],
      [ORDERS, 'GET', '/orders%20b', 'GET:shop.example/{}$'],
      ['GET:other.example/orders', 'GET', '/orders', 'GET:shop.example/orders$'],
      ['*:shop.example/*', 'DELETE', '/orders/7', 'ok'],
      ['*:shop.example/*', 'GET', '/', 'ok'],
      ['*:shop.example/*', 'HEAD', '/orders', 'ok'],
    ])('with %s: %s %s is %s', async (scope, method, target, expected) => {
      const { guard, value, id } = await setUp({ scopes: [scope] });
      const outcome = await ask(guard, { method, target, authorization: `Bearer ${value}` });

      if (outcome.ok) {
        expect(expected).toBe('ok');
        expect(outcome).toMatchObject({ token: { id, account }, grantedBy: scope });
        expectNoSecret(outcome, value);
        return;
      }
      const { response } = outcome;
      expect(response.status).toBe(403);
      expect(response.headers.get('www-authenticate')).toBe(
        `Bearer realm="shop.example", error="insufficient_scope", scope="${expected}"`,
      );
      const body = await response.text();
      if (method === 'HEAD') expect(body).toBe('');
      else {
        expect(JSON.parse(body)).toEqual({
          success: false,
          message: `the token does not cover ${expected}`,
          error: 133,
          code: 'insufficient_scope',
          data: null,
          details: { needed: expected },
        });
      }
    });

    it('answers 403 if an ancestor of the token no longer covers the need', async () => {
      const { guard, value, id, tokens } = await setUp();
      const derived = await tokens.derive(value, { scopes: [ORDERS], ttlSeconds: 900 });
      const authorization = `Bearer ${derived.value}`;
      expect((await ask(guard, { authorization })).ok).toBe(true);
      await tokens.patch(account, id, { scopes: ['GET:shop.example/bills'] });

      const { ok, reason, response } = await ask(guard, { authorization });

      expect([ok, reason, response?.status]).toEqual([false, 'ancestor_insufficient', 403]);
      expect(response?.headers.get('www-authenticate')).toBe(
        `Bearer realm="shop.example", error="insufficient_scope", scope="${ORDERS}$"`,
      );
    });

    it.each<[string, Sent, string]>([
      ['a named scope that is held', { need: { scope: ORDERS } }, 'ok'],
      ['a parsed scope that is held', { need: { scope: parseScope(ORDERS) } }, 'ok'],
      ['a scope below a held one', { need: { scope: `${ORDERS}/7` } }, 'ok'],
      [
        'a scope that is not held',
        { need: { scope: 'POST:shop.example/orders' } },
        'insufficient_scope',
      ],
      [
        'a scope of another domain',
        { need: { scope: 'GET:b.example/orders' } },
        'insufficient_scope',
      ],
      ['a scope above a held one', { need: { scope: ANYTHING } }, 'insufficient_scope'],
      [
        'a named scope, whatever the target is',
        { target: '/a//b', method: 'DELETE', need: { scope: ORDERS } },
        'ok',
      ],
      ['another target', { target: '/x', need: { target: '/orders' } }, 'ok'],
      ['another target that is not held', { need: { target: '/x' } }, 'insufficient_scope'],
      ['another target that is ambiguous', { need: { target: '//orders' } }, 'ambiguous_request'],
      [
        'the method with another target',
        { method: 'POST', need: { target: '/orders' } },
        'insufficient_scope',
      ],
      ['the request alone', { need: {} }, 'ok'],
    ])('by %s', async (_name, sent, expected) => {
      const { guard, value } = await setUp({ scopes: [ORDERS] });
      const outcome = await ask(guard, { ...sent, authorization: `Bearer ${value}` });

      expect(outcome.ok ? 'ok' : outcome.reason).toBe(expected);
    });

    it.each<[unknown]>([['nonsense'], ['get:shop.example/orders'], [''], [42], [null], [{}]])(
      'throws invalid_scope when the named scope is %j',
      async (scope) => {
        const { guard, value } = await setUp();
        const sent = { authorization: `Bearer ${value}`, need: { scope: scope as string } };

        expect(await codeOf(ask(guard, sent))).toBe('invalid_scope');
        const good = { ...sent, need: { scope: ORDERS } };
        expect(await ask(guard, good)).toMatchObject({ ok: true });
      },
    );

    it.each<[string, unknown]>([
      ['an undefined scope', { scope: undefined }],
      ['an undefined target', { target: undefined }],
      ['a misspelled member', { scopes: ORDERS }],
      ['an extra member', { scope: ORDERS, fresh: true }],
      ['a bare scope', ORDERS],
      ['null', null],
      ['a list', [ORDERS]],
      ['an empty list', []],
      [
        'the response that a framework passes to a middleware',
        new ServerResponse(new IncomingMessage(new Socket())),
      ],
    ])('throws for %s even though the token covers the request', async (_name, need) => {
      const { guard, value } = await setUp({ scopes: [ORDERS] });
      const sent = { authorization: `Bearer ${value}`, need: need as GuardNeed };

      expect(await codeOf(ask(guard, sent))).toBe('invalid_request');
      expect(await ask(guard, { ...sent, need: { scope: ORDERS } })).toMatchObject({ ok: true });
    });

    it('without taking the domain from the request', async () => {
      const { guard, value } = await setUp({ scopes: ['*:other.example/*'] });
      const headers = { 'x-forwarded-host': 'other.example', forwarded: 'host=other.example' };
      const outcome = await ask(guard, { headers, authorization: `Bearer ${value}` });

      expect(outcome).toMatchObject({ ok: false, reason: 'insufficient_scope' });
    });
  });

  it.each<[string, boolean]>([
    ['/orders', true],
    ['/orders/a%20b', true],
    ['/orders?a=//..%2F', true],
    ['//orders', false],
    ['/orders//7', false],
    ['/orders/../x', false],
    ['/orders/./x', false],
    ['/orders/%2e%2e/x', false],
    ['/orders%2F7', false],
    ['/orders%5C7', false],
    ['/orders\\7', false],
    ['/orders#x', false],
    ['/orders%00', false],
    ['/orders%zz', false],
    ['http://shop.example/orders', false],
    ['*', false],
    ['orders', false],
    ['', false],
  ])('accepts the target %j as unambiguous: %s', async (target, isClear) => {
    const { guard, value } = await setUp();
    const headers = { authorization: `Bearer ${value}` };
    const outcomes = [
      await guard({ method: 'GET', url: target, headers }),
      await guard({ method: 'GET', url: '/orders', originalUrl: target, headers }),
      await guard(new Request('http://a.example/orders', { headers }), { target }),
    ];

    for (const outcome of outcomes) {
      expect(outcome.ok).toBe(isClear);
      if (outcome.ok) continue;
      expect(outcome.reason).toBe('ambiguous_request');
      expect(outcome.response.status).toBe(400);
      expect(outcome.response.headers.get('www-authenticate')).toBe(
        'Bearer realm="shop.example", error="invalid_request"',
      );
      const { details, ...body } = (await outcome.response.json()) as { details: object };
      expect(Object.keys(details)).toEqual(['detail']);
      expect(body).toEqual({
        success: false,
        message: 'the address can be read in more than one way',
        error: 20,
        code: 'invalid_request',
        data: null,
      });
    }
  });

  it.each<[string, Partial<GuardedNodeRequest>, boolean]>([
    ['its URL', { url: '/orders/7' }, true],
    ['the URL from before a router stripped it', { url: '/7', originalUrl: '/orders/7' }, true],
    [
      'the original URL even if the rest would be allowed',
      { url: '/orders', originalUrl: '/x/orders' },
      false,
    ],
    ['its URL if there is no original one', { url: '/7' }, false],
  ])('decides about a Node request by %s', async (_, request, isAllowed) => {
    const { guard, value } = await setUp({ scopes: [ORDERS] });
    const headers = { authorization: `Bearer ${value}` };

    expect(await guard({ method: 'GET', headers, ...request })).toMatchObject({ ok: isAllowed });
  });

  it.each<[string, object]>([
    ['no method', { url: '/orders' }],
    ['no URL', { method: 'GET' }],
    ['a method in lower case', { method: 'get', url: '/orders' }],
    ['an invalid method', { method: 'GET /', url: '/orders' }],
  ])('treats a request with %s as ambiguous', async (_, request) => {
    const { guard, value } = await setUp();
    const headers = { authorization: `Bearer ${value}` };
    const outcome = await guard({ headers, ...request } as GuardedNodeRequest);

    expect(outcome).toMatchObject({ ok: false, reason: 'ambiguous_request' });
    expect(await guard({ headers, method: 'GET', url: '/orders' })).toMatchObject({ ok: true });
  });

  it.each<[string | undefined, string, string, boolean]>([
    ['root', 'GET:shop.example/root', '/', true],
    ['root', 'GET:shop.example/root', '/?a=1', true],
    ['root', 'GET:shop.example/root', '/root', true],
    ['root', 'GET:shop.example/root', '/x', false],
    ['root', 'GET:shop.example/*', '/', true],
    [undefined, 'GET:shop.example/root', '/', false],
    [undefined, 'GET:shop.example/*', '/', true],
    ['home', 'GET:shop.example/root', '/', false],
  ])('maps the root to %s: %s grants GET %s: %s', async (rootName, scope, target, isGranted) => {
    const { guard, value } = await setUp({ rootName, scopes: [scope] });
    const outcome = await askByFetch(guard, { target, authorization: `Bearer ${value}` });

    expect(outcome.ok).toBe(isGranted);
  });

  describe('answers', () => {
    const contents = async (outcome: GuardOutcome) => {
      if (outcome.ok) throw new Error('was accepted');
      const { status, headers } = outcome.response;
      return { status, headers: [...headers], text: await outcome.response.text() };
    };

    it('malformed, unknown, expired and revoked values in the same way', async () => {
      const { guard, tokens, value, clock, refusals } = await setUp();
      const revoked = await tokens.issue({ account, scopes: [ANYTHING] });
      await tokens.revoke(account, revoked.id);
      const expired = await tokens.issue({ account, scopes: [ANYTHING], ttlSeconds: 60 });
      clock.advance(60);
      const rotated = await tokens.issue({ account, scopes: [ANYTHING] });
      await tokens.rotate(account, rotated.id);
      const values = ['', 'x', `${value}x`, forge(), revoked.value, expired.value, rotated.value];
      const answers = [];
      for (const one of values) {
        const outcome = await askByFetch(guard, { authorization: `Bearer ${one}` });
        answers.push(await contents(outcome));
      }

      expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
      expect(answers[0]).toMatchObject({
        status: 401,
        text: JSON.stringify({
          success: false,
          message: 'the token is not, or no longer, valid',
          error: 132,
          code: 'invalid_token',
          data: null,
        }),
      });
      expect(new Headers(answers[0]?.headers).get('www-authenticate')).toBe(
        'Bearer realm="shop.example", error="invalid_token"',
      );
      expect(refusals.map(({ reason }) => reason)).toEqual([
        ...['malformed', 'malformed', 'malformed', 'unknown'],
        ...['revoked', 'expired', 'unknown'],
      ]);
      expect(await askByFetch(guard, { authorization: `Bearer ${value}` })).toMatchObject({
        ok: true,
      });
    });

    it('a request without credentials with a challenge that names no error', async () => {
      const { guard } = await setUp();
      const { status, headers, text } = await contents(await askByFetch(guard, {}));

      expect(status).toBe(401);
      expect(Object.fromEntries(headers)).toEqual({
        'www-authenticate': 'Bearer realm="shop.example"',
        'content-type': 'application/json',
        'cache-control': 'no-store',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
      });
      expect(JSON.parse(text)).toEqual({
        success: false,
        message: 'a Bearer token is required',
        error: 130,
        code: 'unauthenticated',
        data: null,
      });
    });

    it('two credentials with 400', async () => {
      const { guard, value } = await setUp();
      const authorization = [`Bearer ${value}`, `Bearer ${value}`];
      const { status, headers, text } = await contents(await askByFetch(guard, { authorization }));

      expect(status).toBe(400);
      expect(new Headers(headers).get('www-authenticate')).toBe(
        'Bearer realm="shop.example", error="invalid_request"',
      );
      expect(JSON.parse(text)).toMatchObject({ code: 'invalid_request', error: 20 });
    });

    it.each<[string, (...args: never[]) => unknown]>([
      ['rejects', () => Promise.reject(new Error('connection refused'))],
      [
        'throws',
        () => {
          throw new Error('connection refused');
        },
      ],
      ['never settles', () => new Promise(() => {})],
      ['returns an invalid record', async () => [{}]],
      ['returns something other than a list', async () => 'nonsense'],
      ['returns fewer records', async () => []],
    ])('with 503 and no challenge when the store %s', async (_, fault) => {
      const { guard, value, store, refusals } = await setUp({
        service: { deadlineMs: 1, store: new RecordingStore(undefined, { local: false }) },
      });
      store.break('find', fault);
      const broken = await askByFetch(guard, { authorization: `Bearer ${value}` });
      store.mend();

      const { status, headers, text } = await contents(broken);
      expect(status).toBe(503);
      expect(new Headers(headers).get('retry-after')).toBe('1');
      expect(new Headers(headers).has('www-authenticate')).toBe(false);
      expect(JSON.parse(text)).toEqual({
        success: false,
        message: 'the token cannot be checked at the moment',
        error: 920,
        code: 'store_unavailable',
        data: null,
      });
      expect(refusals).toEqual([expect.objectContaining({ reason: 'unavailable' })]);
      expect(await askByFetch(guard, { authorization: `Bearer ${value}` })).toMatchObject({
        ok: true,
      });
    });

    it('with one answer for all malformed values, of which only the host learns why', async () => {
      const { guard, value, refusals } = await setUp();
      const id = value.slice(8, 30);
      const values = [
        forge(id, { key: K2 }),
        forge(id, { prefix: 'other' }),
        `${value.slice(0, -1)}${value.endsWith('0') ? 1 : 0}`,
        id,
        `Bearer ${value}`,
        '',
      ];
      const answers = new Set<string>();

      for (const bad of values) {
        const outcome = await askByFetch(guard, { authorization: `Bearer ${bad}` });
        const { status, headers, text } = await contents(outcome);
        answers.add(JSON.stringify([status, headers, text]));
      }

      expect(answers.size).toBe(1);
      expect([...answers][0]).not.toMatch(/unknown_key|other_prefix|bad_tag|is_id|empty/);
      expect(refusals).toMatchObject(
        ['unknown_key', 'other_prefix', 'bad_tag', 'is_id', 'begins_with_bearer', 'empty'].map(
          (detail) => ({ reason: 'malformed', detail }),
        ),
      );
    });

    it('with 503 when a record holds an invalid scope, even from memory', async () => {
      const { guard, value, store } = await setUp({ service: { cache: { maxStaleMs: 1000 } } });
      store.break('find', async (ids: never) => {
        const [record] = await store.inner.find(ids);
        return [record && { ...record, scopes: ['nonsense'] }];
      });
      const ask = () => askByFetch(guard, { authorization: `Bearer ${value}` });

      expect(await ask()).toMatchObject({ reason: 'unavailable', response: { status: 503 } });
      expect(await ask()).toMatchObject({ reason: 'unavailable', response: { status: 503 } });
    });

    it.each<[string, number, (setting: Awaited<ReturnType<typeof setUp>>) => Sent]>([
      ['no credentials', 401, () => ({})],
      ['a malformed value', 401, () => ({ authorization: 'Bearer x' })],
      ['two credentials', 400, () => ({ authorization: 'Bearer x, Bearer x' })],
      ['too few rights', 403, ({ value }) => ({ target: '/x', authorization: `Bearer ${value}` })],
      [
        'a broken store',
        503,
        ({ value, store }) => {
          store.break('find', () => Promise.reject(new Error('down')));
          return { authorization: `Bearer ${value}` };
        },
      ],
    ])('HEAD with %s like GET, without the body', async (_, status, prepare) => {
      const setting = await setUp({ scopes: [ORDERS, 'HEAD:shop.example/orders'] });
      const sent = prepare(setting);
      const [head, get] = [
        await contents(await askByFetch(setting.guard, { ...sent, method: 'HEAD' })),
        await contents(await askByFetch(setting.guard, { ...sent, method: 'GET' })),
      ];

      expect([head.status, get.status]).toEqual([status, status]);
      expect(head.text).toBe('');
      expect(get.text).not.toBe('');
      const inGet = (text: string) => text.replace('HEAD:', 'GET:');
      expect(head.headers.map(([name, text]) => [name, inGet(text)])).toEqual(get.headers);
    });

    it.each([
      [undefined, 'shop.example'],
      ['the orders of Acme', 'the orders of Acme'],
      ['', ''],
    ])('with the realm %j shown as %j', async (realm, shown) => {
      const { guard } = await setUp({ realm });
      const { headers } = await contents(await askByFetch(guard, {}));

      expect(new Headers(headers).get('www-authenticate')).toBe(`Bearer realm="${shown}"`);
    });

    it('without any part of the target except in the needed scope', async () => {
      const { guard, value } = await setUp({ scopes: [ORDERS] });
      const target = '/CaNaRy?CaNaRy=CaNaRy';
      const refused = await askByFetch(guard, { target, authorization: `Bearer ${value}` });
      const ambiguous = await askByFetch(guard, {
        need: { target: `/${target}` },
        authorization: `Bearer ${value}`,
      });

      const shown = JSON.stringify(await contents(refused));
      expect(shown).toContain('GET:shop.example/CaNaRy');
      expect(shown.replaceAll('GET:shop.example/CaNaRy', '')).not.toContain('CaNaRy');
      expect(JSON.stringify(await contents(ambiguous))).not.toContain('CaNaRy');
    });

    it('without a token value from the path in the needed scope', async () => {
      const events: unknown[] = [];
      const service = { onEvent: (event: unknown) => events.push(event) };
      const { guard, value, refusals } = await setUp({ scopes: [ORDERS], service });
      const target = `/token/${value}`;
      const outcome = await askByFetch(guard, { target, authorization: `Bearer ${value}` });

      expectNoSecret([events, refusals, await contents(outcome)], value);
      expect(refusals).toMatchObject([{ needed: 'GET:shop.example/token/{}$' }]);
    });
  });

  describe('waits', () => {
    const isLater = (outcome: unknown) => outcome instanceof Promise;
    const requestWith = (value: string): GuardedNodeRequest => ({
      method: 'GET',
      url: '/orders',
      headers: { authorization: `Bearer ${value}` },
    });

    it('for the store, but not for a record in memory', async () => {
      const { guard, value, clock, store } = await setUp({
        service: { cache: { maxStaleMs: 1000 } },
      });
      const first = guard(requestWith(value));
      expect(isLater(first)).toBe(true);
      expect(await first).toMatchObject({ ok: true });
      store.takeCalls();

      const second = guard(requestWith(value));
      expect(isLater(second)).toBe(false);
      expect(second).toMatchObject({ ok: true, grantedBy: ANYTHING });
      expect(store.takeCalls()).toEqual([]);

      clock.advance(2);
      expect(isLater(guard(requestWith(value)))).toBe(true);
    });

    it('each time without the cache', async () => {
      const { guard, value } = await setUp();
      await guard(requestWith(value));

      expect(isLater(guard(requestWith(value)))).toBe(true);
    });

    it('not for refusals that are known immediately', async () => {
      const { guard, value } = await setUp({
        scopes: [ORDERS],
        service: { cache: { maxStaleMs: 1000 } },
      });
      await guard(requestWith(value));

      const outcomes = [
        guard({ method: 'GET', url: '/orders', headers: {} }),
        guard(requestWith('x')),
        guard(requestWith('x, Bearer y')),
        guard({ ...requestWith(value), url: '/x' }),
        guard({ ...requestWith(value), url: '//x' }),
      ];
      expect(
        outcomes.map((outcome) => !isLater(outcome) && 'reason' in outcome && outcome.reason),
      ).toEqual([
        'missing',
        'malformed',
        'ambiguous_credentials',
        'insufficient_scope',
        'ambiguous_request',
      ]);
    });

    it('for a catalog function only when a refusal has to name the needed scope', async () => {
      const catalog = () => ScopeCatalog.from([ORDERS]);
      const service = { catalog, cache: { maxStaleMs: 1000 } };
      const { guard, value } = await setUp({ service, scopes: [ORDERS] });
      await guard(requestWith(value));

      const refused = guard({ ...requestWith(value), url: '/x' });
      expect(isLater(refused)).toBe(true);
      expect(await refused).toMatchObject({ ok: false, reason: 'insufficient_scope' });
      expect(guard(requestWith(value))).toMatchObject({ ok: true });
    });
  });

  describe('onRefusal', () => {
    it('receives the reason, the needed and the nearest scope, but no token value', async () => {
      const { guard, value, refusals } = await setUp({ scopes: [ORDERS] });
      await askByFetch(guard, { target: '/invoices', authorization: `Bearer ${value}` });

      expect(refusals).toEqual([
        {
          reason: 'insufficient_scope',
          needed: 'GET:shop.example/invoices$',
          explanation: expect.objectContaining({
            allowed: false,
            needed: 'GET:shop.example/invoices$',
            nearest: { scope: ORDERS, failed: 'path' },
          }),
        },
      ]);
      expectNoSecret(refusals, value);
    });

    it.each<[string, (value: string) => Sent, string, detail?: string]>([
      ['no credentials', () => ({}), 'missing'],
      [
        'a malformed value',
        (value) => ({ authorization: `Bearer ${value}x` }),
        'malformed',
        'other_form',
      ],
      ['an unknown value', () => ({ authorization: `Bearer ${forge()}` }), 'unknown'],
      [
        'two values',
        (value) => ({ authorization: [`Bearer ${value}`, `Bearer ${value}`] }),
        'ambiguous_credentials',
      ],
      [
        'an ambiguous target',
        (value) => ({ authorization: `Bearer ${value}`, need: { target: `//${value}` } }),
        'ambiguous_request',
        'path_empty_segment',
      ],
    ])('receives only the reason for %s', async (_, send, reason, detail) => {
      const { guard, value, refusals } = await setUp();
      await askByFetch(guard, send(value));

      expect(refusals).toEqual([{ reason, detail, needed: undefined, explanation: undefined }]);
      expectNoSecret(refusals, value);
    });

    it.each([false, true])('computes the explanation only if it is read: %s', (isRead) => {
      let count = 0;
      const explanation = { allowed: false, needed: ORDERS, known: true, suggestions: [] };
      const verdict = {
        ok: false,
        reason: 'insufficient_scope',
        needed: ORDERS,
        get explanation() {
          count += 1;
          return explanation;
        },
      } as const;
      const tokens = { verifySync: () => verdict, verify: async () => verdict };
      let read: unknown;
      const onRefusal = (refusal: GuardRefusal) => {
        read = isRead ? refusal.explanation : refusal.reason;
      };

      const outcome = bearerGuard({ tokens, domain: DOMAIN, onRefusal })(
        new Request('http://localhost/orders', { headers: { authorization: 'Bearer x' } }),
      );

      expect(outcome).toMatchObject({ ok: false, reason: 'insufficient_scope' });
      expect(read).toBe(isRead ? explanation : 'insufficient_scope');
      expect(count).toBe(isRead ? 1 : 0);
    });

    it('is not called for an accepted request', async () => {
      const { guard, value, refusals } = await setUp();
      await askByFetch(guard, { authorization: `Bearer ${value}` });

      expect(refusals).toEqual([]);
    });

    it.each<[string, (refusal: GuardRefusal) => void]>([
      [
        'throws',
        () => {
          throw new Error('the log is full');
        },
      ],
      ['rejects', () => Promise.reject(new Error('the log is full'))],
      ['never settles', () => new Promise(() => {})],
      [
        'changes the refusal that it receives',
        (refusal) => {
          Object.assign(refusal, { reason: 'ok', needed: undefined });
        },
      ],
    ])('does not affect the outcome when it %s', async (_, onRefusal) => {
      const { guard, value } = await setUp({ onRefusal, scopes: [ORDERS] });
      const refused = await askByFetch(guard, { target: '/x', authorization: `Bearer ${value}` });
      await new Promise(setImmediate);

      expect(refused).toMatchObject({ reason: 'insufficient_scope', response: { status: 403 } });
      expect(await askByFetch(guard, { authorization: `Bearer ${value}` })).toMatchObject({
        ok: true,
      });
    });

    it('is optional', async () => {
      const { guard } = await setUp({ onRefusal: undefined });

      expect(await askByFetch(guard, {})).toMatchObject({ ok: false, reason: 'missing' });
    });
  });

  it('trusts a header that a middleware has replaced over the raw one', async () => {
    const { guard, value } = await setUp();
    const sent = { method: 'GET', url: '/orders', rawHeaders: ['Authorization', 'Session x'] };
    const authorization = `Bearer ${value}`;

    expect(await guard({ ...sent, headers: { authorization } })).toMatchObject({ ok: true });
    expect(await guard({ ...sent, headers: {} })).toMatchObject({ reason: 'missing' });
  });

  it('works with only verifier keys on the store of the issuing service', async () => {
    const { tokens, store, value, clock } = await setUp();
    const verifier = new TokenService({
      store,
      keys: tokens.verifierKeys(),
      prefix: 'acme',
      clock,
    });
    const guard = bearerGuard({ tokens: verifier, domain: DOMAIN });
    const ask = () => askByFetch(guard, { authorization: `Bearer ${value}` });

    expect(await ask()).toMatchObject({ ok: true, token: { account } });
    await tokens.revokeAll(account);
    expect(await ask()).toMatchObject({ ok: false, reason: 'revoked' });
    expect(await codeOf(verifier.issue({ account, scopes: [ANYTHING] }))).toBe('invalid_options');
  });

  it('needs only verify and verifySync of a service', async () => {
    const { tokens, value } = await setUp();
    const guard = bearerGuard({
      domain: DOMAIN,
      tokens: {
        verify: (...args) => tokens.verify(...args),
        verifySync: () => undefined,
      },
    });

    expect(await askByFetch(guard, { authorization: `Bearer ${value}` })).toMatchObject({
      ok: true,
    });
  });

  it.each<[string, unknown, RegExp]>([
    ['no options', undefined, /./],
    ['no service', { tokens: undefined }, /^tokens must be a TokenService; got undefined$/],
    ['a store instead of a service', { tokens: new MemoryTokenStore() }, /^tokens must/],
    ['no domain', { domain: undefined }, /^domain must be one host/],
    ['an empty domain', { domain: '' }, /^domain must/],
    ['a domain with a port', { domain: 'shop.example:443' }, /^domain must/],
    ['a domain with a path', { domain: 'shop.example/a' }, /^domain must/],
    ['a wildcard as the domain', { domain: '*.example' }, /^domain must/],
    ['a URL as the domain', { domain: 'https://shop.example' }, /^domain must/],
    ['a rootName with a slash', { rootName: 'a/b' }, /^rootName must be one segment/],
    ['an empty rootName', { rootName: '' }, /^rootName must/],
    ['a rootName that is a wildcard', { rootName: '*' }, /^rootName must/],
    ['a realm with a quote', { realm: 'a"b' }, /^realm must be printable ASCII/],
    ['a realm with a backslash', { realm: 'a\\b' }, /^realm must/],
    ['a realm with a line break', { realm: 'a\r\nb' }, /^realm must/],
    ['a realm beyond ASCII', { realm: 'é' }, /^realm must/],
    ['a realm that is not a text', { realm: 7 }, /^realm must be a text$/],
    [
      'an onRefusal that is not a function',
      { onRefusal: 'log' },
      /^onRefusal must be a function; got a text$/,
    ],
    ['an unknown option', { scope: ORDERS }, /unknown/],
  ])('refuses %s', (_, options, message) => {
    const { tokens } = setUpService();
    const good = { tokens, domain: DOMAIN, rootName: 'root', realm: 'a', onRefusal: () => {} };
    const bad = options === undefined ? undefined : { ...good, ...(options as object) };

    expect(() => bearerGuard(good)).not.toThrow();
    expect(() => bearerGuard(bad as BearerGuardOptions)).toThrow(
      expect.objectContaining({
        code: 'invalid_options',
        message: expect.stringMatching(message),
      }),
    );
  });
});
