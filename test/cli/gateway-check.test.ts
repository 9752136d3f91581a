import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Gateway,
  type GatewayCheckOptions,
  gatewayCheck,
} from '../../src/cli/gateway-check.ts';
import {
  generateKey,
  MemoryLeaseStore,
  MemoryTokenStore,
  type TokenLimits,
  TokenService,
} from '../../src/index.ts';
import { newFolder } from './support.ts';

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
    check,
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

/** Where something listens. */
type Place = { readonly host: string; readonly port: number } | { readonly socketPath: string };

async function placeOf(server: Server) {
  servers.push(server);
  if (!server.listening) await once(server, 'listening');
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

type Headers = Readonly<Record<string, string>>;

/** A call whose target arrives as it is written here. */
async function call(place: Place, method: string, path: string, headers: Headers = {}) {
  const authorization = `Bearer ${value}`;
  const options = { ...place, method, path, headers: { authorization, ...headers }, agent: false };
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
      limits: { store: new MemoryLeaseStore() },
    });
    const token = await limited.issue({ account: 'ada', scopes: [ORDERS], limits });
    const page = pageOf(check, undefined, {
      tokens: limited,
      ...(clientHeader && { clientHeader }),
      ...(trustProxy && { trustProxy }),
    });
    const place = await placeOf(createServer(page.answer).listen(0, '127.0.0.1'));
    const authorization = `Bearer ${token.value}`;
    return () => call(place, 'GET', '/check', { ...asked[check], authorization, ...more.headers });
  }

  it.each([
    ['10.1.2.3', 200],
    ['192.0.2.1', 403],
    ['10.1.2.3, 192.0.2.1', 403],
    [undefined, 403],
  ])('from %s by the header of the gateway is answered with %d', async (address, status) => {
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
  ])('from %s through %j is answered with the status %d', async (address, trustProxy, status) => {
    const headers: Headers = address === undefined ? {} : { 'x-forwarded-for': address };
    const known = await ask('traefik', { addresses: ['10.0.0.0/8'] }, { trustProxy, headers });

    expect((await known()).status).toBe(status);
  });

  it.each([
    ['nginx', 403],
    ['traefik', 429],
  ] as const)('whose uses are spent is answered to %s with %d', async (check, status) => {
    const again = await ask(check, { uses: 1 }, {});

    expect((await again()).status).toBe(200);
    expect(await again()).toMatchObject({
      status,
      body: expect.stringContaining('limit_exceeded'),
    });
  });
});

describe('the check for gateways', () => {
  const told = (method: string, target: string, host?: string): Headers => ({
    'x-original-method': method,
    'x-original-uri': target,
    ...(host !== undefined && { 'x-original-host': host }),
  });
  const forwarded = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/orders' };

  it.each<[string, Headers, number]>([
    ['what a scope covers', told('GET', '/orders/7?full=1'), 200],
    ['another method', told('POST', '/orders'), 403],
    ['another path', told('GET', '/bills'), 403],
    ['a target with two meanings', told('GET', '/orders/..%2Fbills'), 403],
    ['two targets in one', told('GET', '/orders, /bills'), 403],
    ['an empty target', told('GET', ''), 403],
    ['an empty method', told('', '/orders'), 403],
    ['any host, with one domain', told('GET', '/orders', 'other.example'), 200],
    ['no credentials', { ...told('GET', '/orders'), authorization: '' }, 401],
    ['no method', { 'x-original-uri': '/orders' }, 500],
    ['no target', { 'x-original-method': 'GET' }, 500],
    ['what another gateway would say', forwarded, 500],
  ])('answers to %s', async (_, headers, status) => {
    const place = await placeOf(start('nginx'));
    expect((await call(place, 'GET', '/check', headers)).status).toBe(status);
  });

  it.each<[Gateway, string, string, Headers, number]>([
    ['traefik', 'GET', '/check', forwarded, 200],
    ['traefik', 'GET', '/check', { ...forwarded, 'x-forwarded-uri': '/bills' }, 403],
    ['traefik', 'GET', '/check', told('GET', '/orders'), 500],
    ['traefik', 'GET', '/check/orders', {}, 500],
    ['envoy', 'GET', '/check/orders/7?full=1', {}, 200],
    ['envoy', 'POST', '/check/orders', {}, 403],
    ['envoy', 'GET', '/check/orders/..%2Fbills', {}, 403],
    ['envoy', 'GET', '/check', told('GET', '/orders'), 500],
    ['envoy', 'GET', '/check?/orders', {}, 500],
  ])('reads for %s a %s of %s with %j', async (gateway, method, path, headers, status) => {
    const place = await placeOf(start(gateway));
    expect((await call(place, method, path, headers)).status).toBe(status);
  });

  it.each<[string | undefined, number]>([
    ['shop.example', 200],
    ['SHOP.example:8443', 200],
    ['bills.example', 403],
    ['other.example', 403],
    ['shop.example.', 403],
    [undefined, 403],
  ])('takes the host %s, where there are two domains', async (host, status) => {
    const place = await placeOf(start('nginx', ['bills.example', 'shop.example']));
    const answer = await call(place, 'GET', '/check', told('GET', '/orders', host));
    expect(answer.status).toBe(status);
  });

  it('does not choose between two targets', async () => {
    const { port } = await placeOf(start('nginx'));
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

  it('says whose token it is, in letters that a header takes', async () => {
    const place = await placeOf(start('nginx'));
    const { headers } = await call(place, 'GET', '/check', told('GET', '/orders'));
    expect(headers['x-account']).toBe('ada%2F%C3%A9');
  });

  it('lets nothing through while the store fails', async () => {
    const place = await placeOf(start('nginx'));
    vi.spyOn(store, 'find').mockRejectedValueOnce(new Error('away'));
    expect((await call(place, 'GET', '/check', told('GET', '/orders'))).status).toBe(503);
  });

  it.each([
    ['/check', true],
    ['/check/orders', true],
    ['/check?', true],
    ['/checks', false],
    ['/token/check', false],
    ['/Check', false],
  ])('is called at %s: %s', (url, expected) => {
    expect(pageOf('nginx').isAt(url)).toBe(expected);
  });
});

/** The configuration of the guide, between an application and the check. */
describe.runIf(existsSync('/usr/sbin/nginx'))('nginx, by docs/guides/gateway.md', () => {
  const guide = readFileSync(new URL('../../docs/guides/gateway.md', import.meta.url), 'utf8');
  const [, config = ''] = /^```nginx\n(.*?)^```$/ms.exec(guide) ?? [];
  let place: Place;

  beforeEach(async () => {
    const application = createServer(({ method, url, headers }, response) => {
      response.end(`${method} ${url} of ${headers['x-account']}`);
    }).listen(0, '127.0.0.1');
    const folder = newFolder();
    place = { socketPath: `${folder}/socket` };
    const changes = [
      ['listen 80;', `listen unix:${folder}/socket;`],
      ['127.0.0.1:3000', `127.0.0.1:${(await placeOf(application)).port}`],
      ['127.0.0.1:8787', `127.0.0.1:${(await placeOf(start('nginx'))).port}`],
    ] as const;
    const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    writeFileSync(
      `${folder}/nginx.conf`,
      `daemon off; master_process off; pid ${folder}/pid; error_log stderr notice; events {}
      http { access_log off; ${places.map((name) => `${name}_temp_path ${folder};`).join(' ')}
      ${changes.reduce((written, [from, to]) => written.replace(from, to), config)} }`,
    );
    const arguments_ = ['-p', folder, '-c', `${folder}/nginx.conf`, '-e', 'stderr'];
    const child = spawn('/usr/sbin/nginx', arguments_, { stdio: ['ignore', 'ignore', 'pipe'] });
    children.push(child);
    let said = '';
    child.stderr.on('data', (more) => {
      said += more;
    });
    // From then on it listens.
    while (!said.includes('event method')) await once(child.stderr, 'data');
  });

  it('passes on what a scope covers, as it came', async () => {
    const { status, body } = await call(place, 'GET', '/orders/7?a=%20', { 'x-account': 'eve' });
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
    const answer = await call(place, method, path, headers);
    expect(answer.status).toBe(status);
    expect(answer.headers['www-authenticate']).toContain(challenge);
  });

  it('lets nobody call the check, and nothing through while it cannot say', async () => {
    expect((await call(place, 'GET', '/_check')).status).toBe(404);
    vi.spyOn(store, 'find').mockRejectedValueOnce(new Error('away'));
    expect((await call(place, 'GET', '/orders')).status).toBe(500);
  });
});
