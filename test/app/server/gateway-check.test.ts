import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Gateway,
  type GatewayCheckOptions,
  gatewayCheck,
} from '../../../src/app/server/gateway-check.ts';
import {
  generateKey,
  MemoryTokenStore,
  type TokenLimits,
  TokenService,
} from '../../../src/index.ts';
import { newFolder } from '../cli/support.ts';
import { HAS_NGINX, replaceAll, startNginx } from './nginx.ts';

const ORDERS = 'GET:shop.example/orders';
const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const { value } = await tokens.issue({ account: 'ada/é', scopes: [ORDERS] });

const servers: Server[] = [];
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill();
  for (const server of servers.splice(0)) server.close();
});

function pageOf(
  check: Gateway,
  domains: readonly string[] = ['shop.example'],
  more: Partial<GatewayCheckOptions> = {},
) {
  const options = {
    tokens,
    gateway: check,
    domains,
    granularity: 'operation',
    trustProxy: [],
    clientHeader: undefined,
  };
  const page = gatewayCheck({ ...options, ...more } as GatewayCheckOptions);
  if (page === undefined) throw new Error('no check');
  return page;
}

function start(check: Gateway, domains: readonly string[] = ['shop.example']): Server {
  return createServer(pageOf(check, domains).answer).listen(0, '127.0.0.1');
}

type Address = { readonly host: string; readonly port: number } | { readonly socketPath: string };

async function addressOf(server: Server) {
  servers.push(server);
  if (!server.listening) await once(server, 'listening');
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

type Headers = Readonly<Record<string, string>>;

/** Sends a request whose target is not normalized. */
async function call(address: Address, method: string, path: string, headers: Headers = {}) {
  const authorization = `Bearer ${value}`;
  const options = {
    ...address,
    method,
    path,
    headers: { authorization, ...headers },
    agent: false,
  };
  const [response] = (await once(request(options).end(), 'response')) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

describe('the check of a limited token', () => {
  const asked = {
    nginx: { 'x-original-method': 'GET', 'x-original-uri': '/orders' },
    traefik: { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/orders' },
  };

  async function ask(
    check: keyof typeof asked,
    limits: TokenLimits,
    more: {
      readonly clientHeader?: string;
      readonly trustProxy?: readonly string[];
      readonly headers?: Headers;
    },
  ) {
    const { clientHeader, trustProxy } = more;
    const limited = new TokenService({
      store,
      keys: [generateKey()],
      prefix: 'acme',
      limits: true,
    });
    const token = await limited.issue({ account: 'ada', scopes: [ORDERS], limits });
    const page = pageOf(check, undefined, {
      tokens: limited,
      ...(clientHeader && { clientHeader }),
      ...(trustProxy && { trustProxy }),
    });
    const address = await addressOf(createServer(page.answer).listen(0, '127.0.0.1'));
    const authorization = `Bearer ${token.value}`;
    return () =>
      call(address, 'GET', '/check', { ...asked[check], authorization, ...more.headers });
  }

  it.each([
    ['10.1.2.3', 200],
    ['192.0.2.1', 403],
    ['10.1.2.3, 192.0.2.1', 403],
    [undefined, 403],
  ])('answers a client at %s, named by the gateway header, with %d', async (address, status) => {
    const headers: Headers = address === undefined ? {} : { 'x-real-ip': address };
    const limits = { addresses: ['10.0.0.0/8'] };
    const known = await ask('nginx', limits, { clientHeader: 'X-Real-IP', headers });
    const unknown = await ask('nginx', limits, { headers });

    expect((await known()).status).toBe(status);
    expect((await unknown()).status).toBe(403);
  });

  it.each([
    ['10.1.2.3', ['127.0.0.1'], 200],
    ['10.1.2.3, 192.0.2.1', ['127.0.0.1'], 403],
    ['10.1.2.3, 192.0.2.1', ['127.0.0.1', '192.0.2.0/24'], 200],
    ['10.1.2.3', ['192.0.2.1'], 403],
    [undefined, ['127.0.0.1'], 403],
  ])(
    'answers a client at %s behind the proxies %j with %d',
    async (address, trustProxy, status) => {
      const headers: Headers = address === undefined ? {} : { 'x-forwarded-for': address };
      const known = await ask('traefik', { addresses: ['10.0.0.0/8'] }, { trustProxy, headers });

      expect((await known()).status).toBe(status);
    },
  );

  it.each([
    ['nginx', 403],
    ['traefik', 429],
  ] as const)('answers %s with %d once the uses are spent', async (check, status) => {
    const again = await ask(check, { uses: 1 }, {});

    expect((await again()).status).toBe(200);
    expect(await again()).toMatchObject({
      status,
      body: expect.stringContaining('limit_exceeded'),
    });
  });
});

describe('the gateway check', () => {
  const nginxHeaders = (method: string, target: string, host?: string): Headers => ({
    'x-original-method': method,
    'x-original-uri': target,
    ...(host !== undefined && { 'x-original-host': host }),
  });
  const forwarded = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/orders' };

  it.each<[string, Headers, number]>([
    ['a request that a scope covers', nginxHeaders('GET', '/orders/7?full=1'), 200],
    ['another method', nginxHeaders('POST', '/orders'), 403],
    ['another path', nginxHeaders('GET', '/bills'), 403],
    ['an ambiguous target', nginxHeaders('GET', '/orders/..%2Fbills'), 403],
    ['two targets in one header', nginxHeaders('GET', '/orders, /bills'), 403],
    ['an empty target', nginxHeaders('GET', ''), 403],
    [
      'a header that overrides the method',
      { ...nginxHeaders('GET', '/orders'), 'x-http-method-override': 'DELETE' },
      403,
    ],
    [
      'a header that repeats the method',
      { ...nginxHeaders('GET', '/orders'), 'x-http-method-override': 'get' },
      200,
    ],
    ['a parameter that overrides the method', nginxHeaders('GET', '/orders?_method=PUT'), 403],
    ['a parameter that repeats the method', nginxHeaders('GET', '/orders?_method=GET'), 200],
    ['an empty method', nginxHeaders('', '/orders'), 403],
    ['any host, with one domain', nginxHeaders('GET', '/orders', 'other.example'), 200],
    ['no credentials', { ...nginxHeaders('GET', '/orders'), authorization: '' }, 401],
    ['no method', { 'x-original-uri': '/orders' }, 500],
    ['no target', { 'x-original-method': 'GET' }, 500],
    ['the headers of another gateway', forwarded, 500],
  ])('answers with the right status for %s', async (_, headers, status) => {
    const address = await addressOf(start('nginx'));
    expect((await call(address, 'GET', '/check', headers)).status).toBe(status);
  });

  it.each<[Gateway, string, string, Headers, number]>([
    ['traefik', 'GET', '/check', forwarded, 200],
    ['traefik', 'GET', '/check', { ...forwarded, 'x-forwarded-uri': '/bills' }, 403],
    ['traefik', 'GET', '/check', nginxHeaders('GET', '/orders'), 500],
    ['traefik', 'GET', '/check/orders', {}, 500],
    ['envoy', 'GET', '/check/orders/7?full=1', {}, 200],
    ['envoy', 'POST', '/check/orders', {}, 403],
    ['envoy', 'GET', '/check/orders?%5Fmethod=DELETE', {}, 403],
    ['envoy', 'GET', '/check/orders', { 'x-method-override': 'DELETE' }, 403],
    ['traefik', 'GET', '/check', { ...forwarded, 'x-http-method': 'DELETE' }, 403],
    ['traefik', 'GET', '/check', { ...forwarded, 'x-http-method': 'GET' }, 200],
    ['envoy', 'GET', '/check/orders/..%2Fbills', {}, 403],
    ['envoy', 'GET', '/check', nginxHeaders('GET', '/orders'), 500],
    ['envoy', 'GET', '/check?/orders', {}, 500],
  ])(
    'reads the request that %s sends: %s %s with the headers %j',
    async (gateway, method, path, headers, status) => {
      const address = await addressOf(start(gateway));
      expect((await call(address, method, path, headers)).status).toBe(status);
    },
  );

  it.each<[string | undefined, number]>([
    ['shop.example', 200],
    ['SHOP.example:8443', 200],
    ['bills.example', 403],
    ['other.example', 403],
    ['shop.example.', 403],
    [undefined, 403],
  ])('answers the host %s with %d if there are two domains', async (host, status) => {
    const address = await addressOf(start('nginx', ['bills.example', 'shop.example']));
    const answer = await call(address, 'GET', '/check', nginxHeaders('GET', '/orders', host));
    expect(answer.status).toBe(status);
  });

  it('finds one of two domains whose setting is in upper case', async () => {
    const address = await addressOf(start('nginx', ['bills.example', 'SHOP.example']));
    const headers = nginxHeaders('GET', '/orders', 'shop.example');
    expect((await call(address, 'GET', '/check', headers)).status).toBe(200);
  });

  it('refuses a request with two target headers', async () => {
    const { port } = await addressOf(start('nginx'));
    const lines = [
      'GET /check HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${value}`,
      'X-Original-Method: GET',
      'X-Original-URI: /orders',
      'X-Original-URI: /orders',
      'Connection: close',
    ];
    const socket = connect(port, '127.0.0.1');
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 500 /);
  });

  it('returns the account in a header, percent-encoded', async () => {
    const address = await addressOf(start('nginx'));
    const { headers } = await call(address, 'GET', '/check', nginxHeaders('GET', '/orders'));
    expect(headers['x-account']).toBe('ada%2F%C3%A9');
  });

  it('allows nothing while the store is down', async () => {
    const address = await addressOf(start('nginx'));
    vi.spyOn(store, 'find').mockRejectedValueOnce(new Error('away'));
    expect((await call(address, 'GET', '/check', nginxHeaders('GET', '/orders'))).status).toBe(503);
  });

  it.each([
    ['/check', true],
    ['/check/orders', true],
    ['/check?', true],
    ['/checks', false],
    ['/token/check', false],
    ['/Check', false],
  ])('handles the path %s: %s', (url, expected) => {
    expect(pageOf('nginx').isAt(url)).toBe(expected);
  });
});

/** The configuration of the guide, with this application and this check behind it. */
describe.runIf(HAS_NGINX)('nginx with the configuration of docs/guides/gateway.md', () => {
  const guide = readFileSync(new URL('../../../docs/guides/gateway.md', import.meta.url), 'utf8');
  const [, config = ''] = /^```nginx\n(.*?)^```$/ms.exec(guide) ?? [];
  let address: Address;

  beforeEach(async () => {
    const application = createServer(({ method, url, headers }, response) => {
      response.end(`${method} ${url} of ${headers['x-account']}`);
    }).listen(0, '127.0.0.1');
    const folder = newFolder();
    address = { socketPath: `${folder}/socket` };
    const changes = [
      ['listen 80;', `listen unix:${folder}/socket;`],
      ['127.0.0.1:3000', `127.0.0.1:${(await addressOf(application)).port}`],
      ['127.0.0.1:8787', `127.0.0.1:${(await addressOf(start('nginx'))).port}`],
    ] as const;
    children.push(await startNginx(folder, replaceAll(config, changes)));
  });

  it('forwards a covered request unchanged, and replaces the account header of the client', async () => {
    const { status, body } = await call(address, 'GET', '/orders/7?a=%20', {
      'x-account': 'eve',
    });
    expect({ status, body }).toEqual({
      status: 200,
      body: 'GET /orders/7?a=%20 of ada%2F%C3%A9',
    });
  });

  it.each<[string, string, Headers, number, string]>([
    ['GET', '/orders', { authorization: '' }, 401, 'realm="shop.example"'],
    ['GET', '/bills', {}, 403, 'error="insufficient_scope", scope="GET:shop.example/bills$"'],
    ['POST', '/orders', {}, 403, 'error="insufficient_scope", scope="POST:shop.example/orders$"'],
    ['GET', '/bills/../orders', {}, 403, 'error="invalid_request"'],
    ['GET', '/orders/..%2Fbills', {}, 403, 'error="invalid_request"'],
    ['GET', '/bills', { 'x-original-uri': '/orders' }, 403, 'error="insufficient_scope"'],
  ])('refuses %s %s with %j', async (method, path, headers, status, challenge) => {
    const answer = await call(address, method, path, headers);
    expect(answer.status).toBe(status);
    expect(answer.headers['www-authenticate']).toContain(challenge);
  });

  it('does not expose the check, and forwards nothing while the check fails', async () => {
    expect((await call(address, 'GET', '/_check')).status).toBe(404);
    vi.spyOn(store, 'find').mockRejectedValueOnce(new Error('away'));
    expect((await call(address, 'GET', '/orders')).status).toBe(500);
  });
});
