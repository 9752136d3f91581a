import { once } from 'node:events';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as net from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { type TokenHandler, toNodeListener } from '../../../src/http/index.ts';
import type { NodeRequest } from '../../../src/http/node/listener.ts';
import {
  type Answer,
  basic,
  CANARY,
  expectFailure,
  ORDERS,
  PASSWORD,
  type SetUpOptions,
  setUp,
} from '../support.ts';
import { call as callAt, type Exchange } from '../wire.ts';

const BODY = JSON.stringify({ scopes: [ORDERS] });
const AUTHORIZATION = `Authorization: ${basic('ada')}`;
const JSON_TYPE = 'Content-Type: application/json';

type Listener = (request: NodeRequest, response: http.ServerResponse) => unknown;

const closers: (() => Promise<unknown>)[] = [];
const faults: unknown[] = [];

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
  expect(faults.splice(0)).toEqual([]);
});

/** Serves the handler on a free port; `wrap` puts a layer in front of the listener. */
async function serve(
  options: SetUpOptions = {},
  wrap: (listener: Listener) => Listener = (listener) => listener,
) {
  const setup = setUp(options);
  const { port } = await listen(wrap(toNodeListener(setup.handler)));
  return { ...setup, port };
}

async function listen(listener: Listener): Promise<{ port: number; server: http.Server }> {
  const server = http.createServer((request, response) => {
    // node:http does not await its listener, so an uncaught rejection would end the process.
    Promise.resolve(listener(request, response)).catch((fault) => faults.push(fault));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as net.AddressInfo).port, server };
}

/** Calls as `ada`, with the target unchanged. */
function call(
  port: number,
  path: string,
  { method = 'GET', headers = {}, ...rest }: Exchange & { readonly method?: string } = {},
): Promise<Answer> {
  const all = { authorization: basic('ada'), ...headers };
  return callAt(port, method, path, { ...rest, headers: all });
}

const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: BODY };

/** Sends raw bytes and reads until the other side ends or has answered `count` times. */
async function raw(
  port: number,
  lines: readonly string[],
  body = '',
  count = 1,
): Promise<Answer[]> {
  const socket = net.connect(port, '127.0.0.1');
  socket.on('error', () => {});
  let received = '';
  const answers: Answer[] = [];
  socket.write(lines.length === 0 ? body : `${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1');
  for await (const chunk of socket.setEncoding('utf8')) {
    received += chunk;
    for (;;) {
      const answer = cut(received);
      if (answer === undefined) break;
      received = received.slice(answer.length);
      answers.push(answer);
    }
    if (answers.length === count) break;
  }
  socket.destroy();
  return answers;
}

/** The first complete answer in the received text. */
function cut(received: string): (Answer & { readonly length: number }) | undefined {
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [first = '', ...lines] = received.slice(0, end).split('\r\n');
  const headers = new Headers(lines.map((line) => line.split(/: (.*)/s, 2) as [string, string]));
  const start = end + 4;
  const length = start + Number(headers.get('content-length') ?? 0);
  if (Buffer.byteLength(received) < length) return undefined;
  const text = received.slice(start, length);
  const body = text.startsWith('{') ? JSON.parse(text) : {};
  return { status: Number(first.split(' ')[1]), headers, text, body, length };
}

async function rawOne(port: number, lines: readonly string[], body = ''): Promise<Answer> {
  const [answer] = await raw(port, lines, body);
  return answer ?? expect.unreachable('there was no answer');
}

describe('the listener', () => {
  it('serves every call of the service', async () => {
    const { port } = await serve();
    const headers = { 'content-type': 'application/json' };
    const put = { method: 'PUT', headers, body: BODY };

    const created = await call(port, '/token', post);
    const path = `/token/${created.body['id']}`;

    expect(created.status).toBe(200);
    expect(created.headers.get('etag')).toBe('"1"');
    expect(created.headers.get('cache-control')).toBe('no-store');
    expect(await call(port, '/token?limit=1')).toMatchObject({ status: 200 });
    expect(await call(port, path)).toMatchObject({ status: 200 });
    expect(await call(port, path, put)).toMatchObject({ status: 200 });
    const change = { method: 'PATCH', headers, body: '{"name":"ä"}' };
    expect((await call(port, path, change)).body['data']).toMatchObject([{ name: 'ä' }]);
    expect(await call(port, `${path}/rotate`, { method: 'POST' })).toMatchObject({ status: 200 });
    const head = await call(port, path, { method: 'HEAD' });
    expect(head).toMatchObject({ status: 200, text: '' });
    expect(head.headers.get('etag')).toBe('"4"');
    expect(await call(port, path, { method: 'DELETE' })).toMatchObject({ status: 200 });
    expectFailure(await call(port, path), 'not_found');
    expect(await call(port, '/scopes')).toMatchObject({ status: 200 });
    expectFailure(await call(port, '/token', { method: 'OPTIONS' }), 'method_not_allowed');
  });

  it.each([
    ['/token', 200],
    ['/token?', 200],
    ['/token?limit=1', 200],
    ['/token?x=/../y', 200],
    ['/token?x=//', 200],
    ['/token?x=?', 200],
    ['/token?x="<>', 200],
    ['/token?x=#', 404],
    ['/token#', 404],
    ['/token#x', 404],
    ['/#/token', 404],
    ['//token', 404],
    ['///token', 404],
    ['/./token', 404],
    ['/../token', 404],
    ['/x/../token', 404],
    ['/token/.', 404],
    ['/token/..', 404],
    ['/token/x/..', 404],
    ['/token/../token', 404],
    ['/token/../scopes', 404],
    ['/%2e/token', 404],
    ['/x/%2E%2e/token', 404],
    ['/x/.%2e/token', 404],
    ['/token/%2e', 404],
    ['/token%00', 404],
    ['/%74oken', 404],
    ['/token%2f', 404],
    ['\\token', 404],
    ['/\\token', 404],
    ['/x\\..\\token', 404],
    ['/x/..\\token', 404],
    ['/token\\', 404],
    ['/token;/..', 404],
    ['/tok\u00e4en', 404],
    ['/%', 404],
    ['*', 404],
    ['token', 404],
    ['?limit=1', 404],
    ['http://localhost/token', 200],
    ['HTTP://127.0.0.1/token', 200],
    ['https://evil.example/token', 200],
    ['Https://evil.example/token', 200],
    ['http://localhost:8787/token?limit=1', 200],
    ['http://[::1]:80/token', 200],
    ['http://localhost:/token', 200],
    ['http://localhost', 404],
    ['http://localhost?limit=1', 404],
    ['http://localhost//token', 404],
    ['http://localhost/x/../token', 404],
    ['http://localhost/token#x', 404],
    ['http://localhost\\token', 404],
    ['http://ada:x@localhost/token', 404],
    ['http://@localhost/token', 404],
    ['http:///token', 404],
    ['http://localhost:x/token', 404],
    ['http://local%68ost/token', 404],
    ['ftp://localhost/token', 404],
    ['ws://localhost/token', 404],
    ['http://localhost/http://localhost/token', 404],
    ['http:token', 404],
    ['http:/token', 404],
    ['//evil.example/token', 404],
    ['//localhost/token', 404],
    ['/@evil.example/token', 404],
    ['@/token', 404],
    [':80/token', 404],
    ['.evil.example/token', 404],
  ])('does not normalize the target %s and answers %i', async (target, status) => {
    const { port } = await serve();
    const head = ['Host: localhost', AUTHORIZATION, 'Connection: close'];

    for (const method of ['GET', 'OPTIONS']) {
      const answer = await rawOne(port, [`${method} ${target} HTTP/1.1`, ...head]);
      // Node itself answers 400 to a target that HTTP does not allow.
      if (answer.status === 400) expect(answer.text).toBe('');
      else if (status === 404) expectFailure(answer, 'not_found');
      else expect(answer.status).toBe(method === 'GET' ? 200 : 405);
    }
  });

  it('ignores the Host header', async () => {
    const { port } = await serve();

    for (const host of ['evil.example', 'localhost:1', 'a b', '[', '', '/scopes?', '@']) {
      const lines = ['GET /token HTTP/1.1', `Host: ${host}`, AUTHORIZATION, 'Connection: close'];
      expect((await rawOne(port, lines)).body).toMatchObject({ success: true, data: [] });
    }
    const old = ['GET /token HTTP/1.0', AUTHORIZATION];
    expect(await rawOne(port, old)).toMatchObject({ status: 200 });
  });

  it('refuses a repeated Authorization, Content-Type or Sec-Fetch-Site header', async () => {
    const { port } = await serve();
    const start = ['GET /token HTTP/1.1', 'Host: x', 'Connection: close'];
    const json = ['POST /token HTTP/1.1', 'Host: x', 'Connection: close', AUTHORIZATION];
    const length = `Content-Length: ${BODY.length}`;

    expect(await rawOne(port, [...start, AUTHORIZATION])).toMatchObject({ status: 200 });
    for (const second of [
      AUTHORIZATION,
      AUTHORIZATION.toUpperCase().replace(/:.*/, `: ${basic('ada')}`),
      'Authorization: Bearer x',
      'Authorization: x',
      `Authorization: ${basic('bob')}`,
    ]) {
      expectFailure(await rawOne(port, [...start, AUTHORIZATION, second]), 'unauthenticated');
      expectFailure(await rawOne(port, [...start, second, AUTHORIZATION]), 'unauthenticated');
    }
    const twice = await rawOne(port, [...json, length, JSON_TYPE, JSON_TYPE], BODY);
    expectFailure(twice, 'unsupported_media_type');
    const site = ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site'];
    expectFailure(await rawOne(port, [...json, length, JSON_TYPE, ...site], BODY), 'cross_site');
  });

  it.each(['TRACE', 'OPTIONS', 'QUERY', 'PROPFIND', 'M-SEARCH', 'PURGE'])(
    'answers %s like any method that is not allowed',
    async (method) => {
      const { port } = await serve();
      const lines = (path: string) => [
        `${method} ${path} HTTP/1.1`,
        'Host: x',
        'Connection: close',
      ];

      expectFailure(await rawOne(port, [...lines('/nowhere'), AUTHORIZATION]), 'not_found');
      expectFailure(await rawOne(port, lines('/token')), 'unauthenticated');
      const answer = await rawOne(port, [...lines('/token'), AUTHORIZATION]);
      expectFailure(answer, 'method_not_allowed');
      expect(answer.headers.get('allow')).toBe('GET, HEAD, POST');
    },
  );

  it('closes the connection on CONNECT', async () => {
    const { port } = await serve();

    expect(await raw(port, ['CONNECT x:443 HTTP/1.1', 'Host: x', AUTHORIZATION])).toEqual([]);
    expect(await call(port, '/token')).toMatchObject({ status: 200 });
  });

  it('keeps the connection open after an error', async () => {
    const { port } = await serve();
    const head = ['Host: x', AUTHORIZATION];
    const bodied = [...head, JSON_TYPE, 'Content-Length: 2'];
    const requests = [
      ['GET /nowhere HTTP/1.1', ...head],
      ['GET /token HTTP/1.1', 'Host: x'],
      ['POST /token HTTP/1.1', ...bodied, '', '{}'],
      ['POST /token HTTP/1.1', ...bodied, '', '{x'],
      ['PUT /token HTTP/1.1', ...head],
      ['GET /token HTTP/1.1', ...head],
    ];
    const pipeline = requests.map(
      (lines) => lines.join('\r\n') + (lines.includes('') ? '' : '\r\n\r\n'),
    );

    const answers = await raw(port, [], pipeline.join(''), 6);

    expect(answers.map(({ status }) => status)).toEqual([404, 401, 422, 400, 405, 200]);
  });

  it('answers the request that follows an unread body', async () => {
    const { port } = await serve();
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    closers.push(async () => agent.destroy());

    // The Node client sets Content-Length by itself only for methods that usually have a body.
    const headers = { ...post.headers, 'content-length': BODY.length };
    for (const [method, path, status] of [
      ['POST', '/nowhere', 404],
      ['PUT', '/token', 405],
      ['DELETE', '/token/x', 404],
      ['GET', '/token', 200],
    ] as const) {
      const exchange = { method, body: BODY, agent };
      expect(await call(port, path, { ...exchange, headers })).toMatchObject({ status });
      const anonymous = { ...headers, authorization: '' };
      expect(await call(port, path, { ...exchange, headers: anonymous })).toMatchObject({
        status: path === '/nowhere' ? 404 : 401,
      });
    }
  });

  it('serves many calls over one connection, including failed ones', async () => {
    const { port } = await serve();
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    closers.push(async () => agent.destroy());
    const ports = new Set<unknown>();
    agent.on('free', (socket: net.Socket) => ports.add(socket.localPort));

    for (let round = 0; round < 3; round++) {
      const wrong = { ...post, body: '{}', agent };
      expectFailure(await call(port, '/token', wrong), 'scopes_required');
      expectFailure(await call(port, '/nowhere', { agent }), 'not_found');
      expect(await call(port, '/token', { ...post, agent })).toMatchObject({ status: 200 });
    }

    expect(ports.size).toBe(1);
  });
});

describe('a body on the wire', () => {
  const head = ['Host: x', AUTHORIZATION, JSON_TYPE];
  const chunks = (...all: string[]) =>
    all.map((text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`).join('');

  it('is read when it is chunked', async () => {
    const { port } = await serve();
    const lines = ['POST /token HTTP/1.1', ...head, 'Transfer-Encoding: chunked'];

    const answer = await rawOne(port, lines, chunks(...BODY, ''));

    expect(answer.body).toMatchObject({ success: true, scopes: [ORDERS] });
  });

  it.each([
    ['no headers', [], ''],
    ['a length of 0', ['Content-Length: 0'], ''],
    ['a length of 0 with a type', ['Content-Length: 0', JSON_TYPE], ''],
    ['only the final chunk', ['Transfer-Encoding: chunked'], '0\r\n\r\n'],
    [
      'only the final chunk, with a type',
      ['Transfer-Encoding: chunked', 'Content-Type: x/y'],
      '0\r\n\r\n',
    ],
  ])('can be absent from a rotation, but not from a create call: %s', async (_, lines, body) => {
    const { port, issue } = await serve();
    const { id } = await issue();
    const start = [`POST /token/${id}/rotate HTTP/1.1`, 'Host: x', AUTHORIZATION];

    expect(await rawOne(port, [...start, ...lines], body)).toMatchObject({ status: 200 });
    const create = ['POST /token HTTP/1.1', 'Host: x', AUTHORIZATION, ...lines];
    expectFailure(await rawOne(port, create, body), 'invalid_json');
  });

  it.each([
    ['at the limit', 1000, 200],
    ['one byte over', 1001, 413],
    ['far over', 300_000, 413],
  ])('is measured against the limit: %s, %i bytes', async (_, size, status) => {
    const { port } = await serve({ maxBodyBytes: 1000 });
    const body = BODY.padEnd(size, ' ');
    const length = { 'content-length': size, 'content-type': 'application/json' };

    const declared = await call(port, '/token', { method: 'POST', headers: length, body });
    const counted = await rawOne(
      port,
      ['POST /token HTTP/1.1', ...head, 'Transfer-Encoding: chunked'],
      chunks(body, ''),
    );

    for (const answer of [declared, counted]) {
      if (status === 413) expectFailure(answer, 'payload_too_large');
      else expect(answer.status).toBe(200);
    }
  });

  it.each([
    ['declared', 'Content-Length: 99999999999'],
    ['chunked', 'Transfer-Encoding: chunked'],
  ])('is refused as too large before it ends: %s', async (_, header) => {
    const { port } = await serve({ maxBodyBytes: 1000 });
    const start = header.startsWith('T') ? chunks(' '.repeat(1001)) : '';

    const answer = await rawOne(port, ['POST /token HTTP/1.1', ...head, header], start);

    expectFailure(answer, 'payload_too_large');
    expect(answer.headers.get('connection')).toBe('close');
    expect(await call(port, '/token')).toMatchObject({ status: 200 });
  });

  it('closes the connection when it is incomplete and nobody reads it', async () => {
    const { port } = await serve();

    for (const lines of [
      ['POST /nowhere HTTP/1.1', ...head],
      ['POST /token HTTP/1.1', 'Host: x'],
      ['PUT /token HTTP/1.1', ...head],
      ['POST /token HTTP/1.1', 'Host: x', AUTHORIZATION],
    ]) {
      const answer = await rawOne(port, [...lines, 'Content-Length: 50'], 'x');
      expect(answer.body).toMatchObject({ success: false });
      expect(answer.headers.get('connection')).toBe('close');
    }
  });

  it('is read over HTTP/2 with and without Content-Length', async () => {
    const { handler } = setUp();
    const listener = toNodeListener(handler);
    const server = http2.createServer((request, response) => {
      // The listener works with the compatibility API of node:http2, but its types do not say so.
      listener(request as never, response as never).catch((fault) => faults.push(fault));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const session = http2.connect(`http://127.0.0.1:${(server.address() as net.AddressInfo).port}`);
    closers.push(async () => {
      session.destroy();
      await new Promise((resolve) => server.close(resolve));
    });

    for (const length of [{}, { 'content-length': BODY.length }]) {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/token',
        authorization: basic('ada'),
        'content-type': 'application/json',
        ...length,
      });
      stream.end(BODY);
      const text = Buffer.concat(await stream.toArray()).toString();
      expect(JSON.parse(text)).toMatchObject({ success: true, scopes: [ORDERS] });
    }
    const list = session.request({ ':path': '/token', authorization: basic('ada') });
    expect(JSON.parse(Buffer.concat(await list.toArray()).toString())).toMatchObject({
      data: [{}, {}],
    });
  });
});

describe('the listener behind a body parser', () => {
  /** Acts like a body parser: reads the body to its end and puts the result into `request.body`. */
  const parser =
    (parse: (text: string) => unknown) =>
    (listener: Listener): Listener =>
    async (request, response) => {
      const bytes = Buffer.concat(await request.toArray());
      request.body = parse(bytes.toString());
      return listener(request, response);
    };

  it.each<[string, (text: string) => unknown]>([
    ['an object', (text) => JSON.parse(text)],
    [
      'an object without a prototype',
      (text) => Object.assign(Object.create(null), JSON.parse(text)),
    ],
    ['a text', (text) => text],
    ['a Buffer', (text) => Buffer.from(text)],
    ['bytes', (text) => new TextEncoder().encode(text)],
  ])('accepts the body as %s', async (_, parse) => {
    const { port } = await serve({}, parser(parse));

    const answer = await call(port, '/token', post);

    expect(answer.body).toMatchObject({ success: true, scopes: [ORDERS] });
  });

  it.each<[string, unknown, string]>([
    ['an empty object', {}, 'scopes_required'],
    ['null', null, 'invalid_request'],
    ['a number', 7, 'invalid_request'],
    ['a list', [], 'invalid_request'],
    ['a text that is not JSON', CANARY, 'invalid_json'],
    ['an empty text', '', 'invalid_json'],
    ['undefined', undefined, 'invalid_json'],
    ['a function', () => CANARY, 'invalid_json'],
    ['an unknown member', { scopes: [ORDERS], [CANARY]: 1 }, 'invalid_request'],
    ['a cyclic object', cyclic(), 'invalid_request'],
    ['a BigInt', { scopes: [1n] }, 'invalid_request'],
    [
      'an object whose toJSON throws',
      {
        toJSON() {
          throw new Error(CANARY);
        },
      },
      'invalid_request',
    ],
  ])('refuses %s as the parsed body', async (_, body, code) => {
    const { port } = await serve(
      {},
      parser(() => body),
    );

    expectFailure(await call(port, '/token', post), code as 'invalid_request');
  });

  it('still checks the content type and the size', async () => {
    const { port } = await serve(
      { maxBodyBytes: 1000 },
      parser((text) => JSON.parse(text)),
    );
    const headers = { 'content-type': 'text/csv' };
    const large = JSON.stringify({ scopes: [ORDERS], name: 'x'.repeat(1000) });

    expectFailure(await call(port, '/token', { ...post, headers }), 'unsupported_media_type');
    expectFailure(await call(port, '/token', { ...post, body: large }), 'payload_too_large');
  });

  it('ignores request.body when the body is still unread', async () => {
    for (const body of [undefined, {}, { scopes: ['GET:shop.example/items'] }]) {
      const { port } = await serve({}, (listener) => (request, response) => {
        request.body = body;
        return listener(request, response);
      });
      expect((await call(port, '/token', post)).body).toMatchObject({ scopes: [ORDERS] });
    }
  });

  it('reads and measures a request that yields text', async () => {
    const { port } = await serve({ maxBodyBytes: 1000 }, (listener) => (request, response) => {
      request.setEncoding('utf8');
      return listener(request, response);
    });
    const name = 'ä'.repeat(100);
    const body = JSON.stringify({ scopes: [ORDERS], name });

    expect((await call(port, '/token', { ...post, body })).body).toMatchObject({ name });
    const headers = { ...post.headers, 'transfer-encoding': 'chunked' };
    const large = { method: 'POST', headers, body: BODY.padEnd(100_000, ' ') };
    expectFailure(await call(port, '/token', large), 'payload_too_large');
  });

  it('accepts a rotation without a body', async () => {
    const { port, issue } = await serve(
      {},
      parser(() => ({})),
    );
    const { id } = await issue();

    expect(await call(port, `/token/${id}/rotate`, { method: 'POST' })).toMatchObject({
      status: 200,
    });
  });

  function cyclic(): object {
    const body: Record<string, unknown> = { scopes: [ORDERS] };
    body['metadata'] = body;
    return body;
  }
});

describe('a mounted listener', () => {
  /** Acts like a router: cuts the mount path off the target. */
  const at =
    (mount: string) =>
    (listener: Listener): Listener =>
    (request, response) => {
      const { url = '' } = request;
      if (url !== mount && !url.startsWith(`${mount}/`) && !url.startsWith(`${mount}?`)) {
        response.statusCode = 418;
        return response.end();
      }
      request.originalUrl = url;
      const rest = url.slice(mount.length);
      request.url = rest.startsWith('/') ? rest : `/${rest}`;
      return listener(request, response);
    };

  it.each<[mount: string, basePath: string, target: string, status: number]>([
    ['/auth', '', '/auth/token', 200],
    ['/auth', '', '/auth/token?limit=1', 200],
    ['/auth', '', '/auth/scopes', 200],
    ['/auth', '', '/auth', 404],
    ['/auth', '', '/auth/', 404],
    ['/auth', '', '/auth?x=1', 404],
    ['/auth', '', '/auth/auth/token', 404],
    ['/auth', '', '/auth/../token', 404],
    ['/auth', '/auth', '/auth/token', 200],
    ['/auth', '/auth', '/auth/token?limit=1', 200],
    ['/auth', '/auth', '/auth', 404],
    ['/auth', '/auth', '/auth/', 404],
    ['/auth', '/auth', '/auth/x/../token', 404],
    ['/api', '/auth', '/api/auth/token', 200],
    ['/api', '/auth', '/api/token', 404],
    ['/api', '/auth', '/api/auth', 404],
    ['/api', '/api/auth', '/api/auth/token', 200],
    ['/api', '/api/auth', '/api/token', 404],
    ['', '/auth', '/auth/token', 200],
    ['', '/auth', '/token', 404],
    ['', '/auth', '/authx/token', 404],
    ['', '', '/token', 200],
  ])('at "%s" with base path "%s" answers %s with %i', async (mount, basePath, target, status) => {
    const { port } = await serve({ basePath }, at(mount));

    const answer = await call(port, target);

    if (status === 404) expectFailure(answer, 'not_found');
    else expect(answer.status).toBe(status);
  });

  it('gives a next link that resolves below its mount path', async () => {
    const { port, issue } = await serve({}, at('/api/auth'));
    await issue();
    await issue();

    const first = await call(port, '/api/auth/token?limit=1');
    const [, next = ''] = /^<(.*)>/.exec(first.headers.get('link') ?? '') ?? [];
    const second = new URL(next, 'http://localhost/api/auth/token?limit=1');

    expect(await call(port, second.pathname + second.search)).toMatchObject({ status: 200 });
  });
});

describe('a client that disconnects', () => {
  it('in the middle of its body neither creates a token nor stops the service', async () => {
    const { port, tokens } = await serve();
    const start = ['POST /token HTTP/1.1', 'Host: x', AUTHORIZATION, JSON_TYPE];

    for (const header of ['Content-Length: 1000', 'Transfer-Encoding: chunked']) {
      for (const leave of ['destroy', 'resetAndDestroy', 'end'] as const) {
        const socket = net.connect(port, '127.0.0.1');
        socket.on('error', () => {});
        socket.write(
          `${[...start, header].join('\r\n')}\r\n\r\n${header.startsWith('T') ? 'f0\r\n' : ''}${BODY}`,
        );
        await once(socket, 'connect');
        await call(port, '/token');
        socket[leave]();
        await call(port, '/token');
        socket.destroy();
      }
    }

    await expectQuiet(port);
    expect((await tokens.list({ account: 'ada' })).tokens).toEqual([]);
  });

  it('while it waits aborts the signal of its request and does not stop the service', async () => {
    let asked = () => {};
    const signals: AbortSignal[] = [];
    let answer: (account: string) => void = () => {};
    const { port } = await serve({
      authenticate: ({ username }, request) => {
        if (username === 'ada') return 'ada';
        signals.push(request.signal);
        asked();
        return new Promise((resolve) => {
          answer = resolve;
        });
      },
    });

    for (const method of ['GET', 'POST']) {
      const isAsked = new Promise<void>((resolve) => {
        asked = resolve;
      });
      const socket = net.connect(port, '127.0.0.1');
      const head = ['Host: x', `Authorization: ${basic('slow')}`, JSON_TYPE, 'Content-Length: 9'];
      socket.write(
        `${[`${method} /token HTTP/1.1`, ...head].join('\r\n')}\r\n\r\n${'x'.repeat(9)}`,
      );
      await isAsked;
      const signal = signals.at(-1) as AbortSignal;
      expect(signal.aborted).toBe(false);
      socket.destroy();
      if (!signal.aborted) await once(signal, 'abort');
      answer('slow');
      await expectQuiet(port);
    }
  });

  it('before it has sent a complete head does not stop the service', async () => {
    const { port } = await serve();

    for (const text of ['', 'G', 'GET /token', 'GET /token HTTP/1.1\r\nHost']) {
      const socket = net.connect(port, '127.0.0.1');
      await once(socket, 'connect');
      socket.write(text);
      socket.destroy();
    }

    await expectQuiet(port);
  });

  /** Lets pending work settle and expects the service to answer. */
  async function expectQuiet(port: number): Promise<void> {
    for (let round = 0; round < 3; round++) {
      expect(await call(port, '/scopes')).toMatchObject({ status: 200 });
      await turn();
    }
  }
});

describe('the listener when other code fails or interferes', () => {
  it.each<[string, (response: http.ServerResponse) => void]>([
    ['ended', (response) => response.end('{}')],
    ['started', (response) => response.writeHead(200).write('{')],
    ['destroyed', (response) => response.destroy()],
  ])('keeps serving after other code has %s the response', async (_, interfere) => {
    let release = () => {};
    const { port } = await serve(
      {
        authenticate: ({ password }) => {
          if (password === PASSWORD) return 'ada';
          release();
          return 'ada';
        },
      },
      (listener) => async (request, response) => {
        release = () => interfere(response);
        await listener(request, response);
        if (!response.writableEnded) response.end();
      },
    );

    const socket = net.connect(port, '127.0.0.1');
    const lines = ['GET /token HTTP/1.1', `Authorization: ${basic('ada', 'x')}`, 'Host: x'];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    socket.destroy();

    expect(await call(port, '/token')).toMatchObject({ status: 200 });
  });

  it('answers with internal when the handler rejects', async () => {
    const handler = Object.assign(() => Promise.reject(new Error(CANARY)), { basePath: '' });
    const { port } = await listen(toNodeListener(handler satisfies TokenHandler));

    const answer = await call(port, '/token');

    expectFailure(answer, 'internal');
  });
});

describe('a custom handler', () => {
  it('can be any function from Request to Response, and sees the path that the client sent', async () => {
    const listener = toNodeListener((request) => Response.json(new URL(request.url).pathname));
    const { port } = await listen((request, response) =>
      listener(Object.assign(request, { originalUrl: request.url, url: '/' }), response),
    );

    expect(await call(port, '/settings/tokens')).toMatchObject({ text: '"/settings/tokens"' });
  });

  it('with a base path sees the path that the router left', async () => {
    const seen = Object.assign((request: Request) => Response.json(new URL(request.url).pathname), {
      basePath: '',
    });
    const listener = toNodeListener(seen);
    const { port } = await listen((request, response) =>
      listener(Object.assign(request, { originalUrl: '/auth/token', url: '/token' }), response),
    );

    expect(await call(port, '/auth/token')).toMatchObject({ text: '"/token"' });
  });
});

describe('the Request objects passed to host functions', () => {
  /** V8 keeps whatever an own getter references until the next full garbage collection. */
  const hasOwnGetter = (request: Request) =>
    Object.values(Object.getOwnPropertyDescriptors(request)).some(({ get }) => get !== undefined);

  it('have no own getters, so a minor garbage collection can free them', async () => {
    const requests: Request[] = [];
    const { port } = await serve({
      authenticate: (_, request) => {
        requests.push(request);
        return 'ada';
      },
    });

    for (let i = 0; i < 2; i++) await call(port, '/token');

    const [one, other] = requests as [Request, Request];
    expect(requests.map(hasOwnGetter)).toEqual([false, false]);
    expect(one.signal).toBe(one.signal);
    expect(one.signal).not.toBe(other.signal);
    expect([one.signal.aborted, one instanceof Request]).toEqual([false, true]);
  });

  it('are detected when they have an own getter (control)', () => {
    const request = new Request('http://localhost');
    Object.defineProperty(request, 'signal', { get: () => undefined });

    expect(hasOwnGetter(request)).toBe(true);
  });
});
