import 'reflect-metadata';
import { once } from 'node:events';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as net from 'node:net';
import { gzipSync } from 'node:zlib';
import { type HttpBindings, serve } from '@hono/node-server';
import express from 'express';
import fastify, { type FastifyPluginAsync } from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  type BearerGuard,
  bearerGuard,
  type Credentials,
  sendResponse,
  toNodeListener,
} from '../../../src/http/index.ts';
import { RecordingStore } from '../../support.ts';
import { type Answer, basic, CANARY, expectFailure, ORDERS, setUp } from '../support.ts';
import { call, closeAll, portOf, raw } from '../wire.ts';
import { express4, MOUNTS, nextServer, VERSIONS } from './mounts.ts';

// Runs the examples on the source instead of the build.
vi.mock('tokenwright', () => import('../../../src/index.ts'));
vi.mock('tokenwright/http', async () => ({
  ...(await import('../../../src/http/index.ts')),
  // The real one is slow on purpose.
  fixedAccounts:
    ([{ username, password }]: readonly [Credentials]) =>
    (given: Credentials) =>
      given.username === username && given.password === password ? username : null,
}));
// Each example prints its results when it is loaded, and Koa logs clients that disconnect.
vi.spyOn(console, 'log').mockImplementation(() => {});
vi.spyOn(console, 'error').mockImplementation(() => {});

afterEach(closeAll);

const JSON_TYPE = { 'content-type': 'application/json' };
const BASIC = { authorization: basic('ada') };
const BODY = JSON.stringify({ scopes: [ORDERS] });

/** Calls every verb of the service at `base`. */
async function expectEveryVerb(port: number, base: string): Promise<void> {
  const headers = { ...BASIC, ...JSON_TYPE };
  const post = (path: string, body?: string) =>
    call(
      port,
      'POST',
      `${base}${path}`,
      body === undefined ? { headers: BASIC } : { headers, body },
    );

  const created = await post('/token', BODY);
  expect(created).toMatchObject({ status: 200, body: { success: true, scopes: [ORDERS] } });
  expect(created.headers.get('etag')).toBe('"1"');
  expect(created.headers.get('cache-control')).toBe('no-store');
  const path = `${base}/token/${created.body['id']}`;
  const list = await call(port, 'GET', `${base}/token?limit=1`, { headers: BASIC });
  expect(list.body['data']).toHaveLength(1);
  expect(await call(port, 'GET', path, { headers: BASIC })).toMatchObject({ status: 200 });
  const replaced = await call(port, 'PUT', path, { headers, body: BODY });
  expect(replaced.body['data']).toMatchObject([{ version: 2 }]);
  const patched = await call(port, 'PATCH', path, { headers, body: '{"name":"ä"}' });
  expect(patched.body['data']).toMatchObject([{ name: 'ä' }]);
  expect(await post(`/token/${created.body['id']}/rotate`)).toMatchObject({ status: 200 });
  const head = await call(port, 'HEAD', path, { headers: BASIC });
  expect(head).toMatchObject({ status: 200, text: '' });
  expect(head.headers.get('etag')).toBe('"4"');
  expect(await call(port, 'DELETE', path, { headers: BASIC })).toMatchObject({ status: 200 });
  expectFailure(await call(port, 'GET', path, { headers: BASIC }), 'not_found');
}

describe.each(MOUNTS)('the service in $framework, $way', (mount) => {
  const { framework, base, basePath, isParsed, start } = mount;
  const begin = async (options = {}) => {
    const setting = setUp({ basePath, ...options });
    return { ...setting, port: await portOf(await start(setting.handler)) };
  };

  it('serves every verb', async () => {
    const { port } = await begin();

    await expectEveryVerb(port, base);
  });

  it('answers errors in its own envelope', async () => {
    const { port } = await begin({ maxBodyBytes: 1000 });
    const path = `${base}/token`;
    const headers = { ...BASIC, ...JSON_TYPE };
    const large = JSON.stringify({ scopes: [ORDERS], name: 'x'.repeat(1000) });

    const wrong = await call(port, 'POST', path, { headers, body: `{"zzz":"${CANARY}"}` });
    expectFailure(wrong, 'invalid_request');
    expectFailure(await call(port, 'POST', path, { headers: BASIC }), 'invalid_json');
    const oversized = await call(port, 'POST', path, { headers, body: large });
    expectFailure(oversized, 'payload_too_large');
    expectFailure(await call(port, 'GET', path), 'unauthenticated');
    expectFailure(await call(port, 'PUT', path, { headers: BASIC }), 'method_not_allowed');
    expectFailure(await call(port, 'GET', `${path}/`, { headers: BASIC }), 'not_found');
  });

  it('refuses two Authorization headers', async () => {
    const { port } = await begin();

    for (const second of [basic('ada'), basic('bob'), 'Bearer x']) {
      for (const authorization of [
        [basic('ada'), second],
        [second, basic('ada')],
      ]) {
        const headers = { authorization };
        expectFailure(await call(port, 'GET', `${base}/token`, { headers }), 'unauthenticated');
      }
    }
  });

  it.skipIf(!framework.startsWith('Express'))('takes a compressed body only inflated', async () => {
    const { port } = await begin();

    const { status } = await fetch(`http://127.0.0.1:${port}${base}/token`, {
      method: 'POST',
      headers: { ...BASIC, ...JSON_TYPE, 'content-encoding': 'gzip' },
      body: gzipSync(BODY),
    });

    expect(status).toBe(isParsed ? 200 : 415);
  });

  if (isParsed) return;

  it('refuses a body that is not JSON or never ends', async () => {
    const { port } = await begin({ maxBodyBytes: 1000 });
    const head = [`POST ${base}/token HTTP/1.1`, 'Host: x', `Authorization: ${basic('ada')}`];
    const endless = [...head, 'Content-Type: application/json', 'Content-Length: 1000000000000'];

    const headers = { ...BASIC, 'content-type': 'text/csv' };
    const text = await call(port, 'POST', `${base}/token`, { headers, body: BODY });
    const received = await raw(port, `${endless.join('\r\n')}\r\n\r\n{`, (it) => it.includes('{'));

    expectFailure(text, 'unsupported_media_type');
    expect(received).toMatch(/^HTTP\/1.1 413 /);
  });
});

/** The examples use the types of the built package, which differ from those of the source. */
type Program = (tokens: never) => unknown;

interface Example {
  readonly name: string;
  readonly load: () => Promise<Program>;
  /** The status of an ambiguous target that matches no route of the framework. */
  readonly unrouted: number;
  /** Whether the service and the guard see the raw target, not the one of a URL parser. */
  readonly isRaw: { readonly service: boolean; readonly guard: boolean };
  /** Whether the example also mounts the token service. */
  readonly hasService: boolean;
}

const plain = { unrouted: 400, isRaw: { service: true, guard: true }, hasService: true };

const EXAMPLES: readonly Example[] = [
  {
    ...plain,
    name: `node:http of Node ${VERSIONS.node}`,
    load: async () => (await import('../../../examples/http/node-http.ts')).start,
  },
  {
    ...plain,
    name: `Express ${VERSIONS.express}`,
    load: async () => (await import('../../../examples/http/express.ts')).start,
  },
  {
    ...plain,
    name: `Express ${VERSIONS.express4}`,
    load: async () => {
      vi.resetModules();
      vi.doMock('express', () => ({ default: express4 }));
      const { start } = await import('../../../examples/http/express.ts');
      vi.doUnmock('express');
      vi.resetModules();
      return start;
    },
  },
  {
    ...plain,
    name: `Fastify ${VERSIONS.fastify}`,
    // Fastify runs hooks only for matched routes.
    unrouted: 404,
    load: async () => (await import('../../../examples/http/fastify.ts')).start,
  },
  {
    ...plain,
    name: `Hono ${VERSIONS.hono}`,
    isRaw: { service: false, guard: true },
    load: async () => (await import('../../../examples/http/hono.ts')).start,
  },
  {
    ...plain,
    name: `Koa ${VERSIONS.koa}`,
    load: async () => (await import('../../../examples/http/koa.ts')).start,
  },
  {
    ...plain,
    name: `Nest ${VERSIONS.nest}`,
    // Nest runs guards only for matched routes.
    unrouted: 404,
    load: async () => (await import('../../../examples/http/nest.ts')).start,
  },
  {
    name: 'route handlers in the style of Next.js',
    unrouted: 404,
    isRaw: { service: false, guard: false },
    hasService: true,
    load: async () => {
      const { orderRoute, serviceRoute } = await import('../../../examples/http/next-route.ts');
      return (tokens) => {
        const guard = bearerGuard({ tokens, domain: 'shop.example' });
        return nextServer({ auth: serviceRoute(tokens), orders: orderRoute(guard as never) });
      };
    },
  },
  {
    ...plain,
    name: 'a resource server',
    hasService: false,
    load: async () => (await import('../../../examples/http/resource-server.ts')).start,
  },
];

describe.each(EXAMPLES)('the example for $name', ({ load, unrouted, isRaw, hasService }) => {
  let start: Program;
  beforeAll(async () => {
    start = await load();
  });

  const begin = async () => {
    const store = new RecordingStore();
    const setting = setUp({ store, catalog: null });
    const port = await portOf(await start(setting.tokens as never));
    const { id, value } = await setting.issue();
    const get = (path: string, value?: string, method = 'GET') =>
      call(port, method, path, {
        headers: value === undefined ? {} : { authorization: `Bearer ${value}` },
      });
    return { ...setting, store, port, id, value, get };
  };

  it('accepts a covered request and identifies the account', async () => {
    const { value, get } = await begin();

    expect(await get('/orders/7', value)).toMatchObject({
      status: 200,
      body: { at: '/orders/7', account: 'ada' },
    });
    expect(await get('/orders/7?x=1&y=/../', value)).toMatchObject({ status: 200 });
  });

  it('challenges a request without a token', async () => {
    const { get } = await begin();

    expectChallenge(await get('/orders/7'), 401, 'Bearer realm="shop.example"');
  });

  it('gives the same refusal for unknown, malformed, expired and revoked values', async () => {
    const { clock, tokens, issue, id, value, get } = await begin();
    const foreign = await setUp().issue();
    const short = await tokens.issue({ account: 'ada', scopes: [ORDERS], ttlSeconds: 1 });
    const revoked = await issue();
    await tokens.revoke('ada', revoked.id);

    expect(await get('/orders/7', short.value)).toMatchObject({ status: 200 });
    clock.advance(1);

    const refused = [foreign.value, 'x', '', short.value, revoked.value];
    const answers = [];
    for (const one of refused) answers.push(await get('/orders/7', one));
    for (const answer of answers) {
      expectChallenge(answer, 401, 'Bearer realm="shop.example", error="invalid_token"');
      expect(answer.text).toBe(answers[0]?.text);
    }
    expect(await get('/orders/7', value)).toMatchObject({ status: 200 });
    expect(await tokens.get('ada', id)).toBeDefined();
  });

  it('names the scope that would have been enough', async () => {
    const { tokens, get } = await begin();
    const { value } = await tokens.issue({ account: 'ada', scopes: ['POST:shop.example/orders'] });

    expectChallenge(
      await get('/orders/7', value),
      403,
      'Bearer realm="shop.example", error="insufficient_scope", scope="GET:shop.example/orders/7$"',
    );
  });

  it('refuses requests while the store is down', async () => {
    const { store, value, get } = await begin();

    store.break('find', () => Promise.reject(new Error(CANARY)));
    const answer = await get('/orders/7', value);
    store.mend();

    expectFailure(answer, 'store_unavailable');
    expect(await get('/orders/7', value)).toMatchObject({ status: 200 });
  });

  it('refuses two Authorization headers on a guarded route', async () => {
    const { port, value, get } = await begin();

    for (const authorization of [
      [`Bearer ${value}`, `Bearer ${value}`],
      [`Bearer ${value}`, basic('ada')],
      [basic('ada'), `Bearer ${value}`],
    ]) {
      const answer = await call(port, 'GET', '/orders/7', { headers: { authorization } });
      expectChallenge(answer, 400, 'Bearer realm="shop.example", error="invalid_request"');
    }
    expect(await get(`/orders/7?access_token=${value}`, value)).toMatchObject({ status: 400 });
  });

  it.each([
    '/orders/7;x',
    '/orders/7%2f8',
    '/orders/%252e%252e',
    '/orders/7%00',
    '/orders/%2fadmin',
    '/orders/..;',
  ])('refuses %s although its route would match', async (target) => {
    const { value, get } = await begin();

    const answer = await get(target, value);

    expectChallenge(answer, 400, 'Bearer realm="shop.example", error="invalid_request"');
  });

  it.each([
    '/orders/%2e%2e/admin',
    '/orders/../admin',
    '/orders/../orders/7',
    '/x/%2e%2e/orders/7',
    '/./orders/7',
    '//orders/7',
    '/orders//7',
    '//shop.example/orders/7',
    '/orders;x/7',
    '/orders;/..;/admin',
    '/orders\\7',
    '/%6frders/7%',
    'http://shop.example/orders/7',
    'http://shop.example/admin/../orders/7',
  ])('does not let %s reach another route', async (target) => {
    const { tokens, get } = await begin();
    const { value } = await tokens.issue({
      account: 'ada',
      scopes: ['GET:shop.example/orders', 'GET:shop.example/x'],
    });

    const answer = await get(target, value);

    // The framework may refuse it first, and a URL parser may have normalized it to another target.
    if (isRaw.guard) expect([400, unrouted]).toContain(answer.status);
    else expect(answer.body['at']).not.toBe('/admin');
  });

  it('ignores Host and headers that rewrite a request', async () => {
    const { port, value } = await begin();
    const headers = {
      authorization: `Bearer ${value}`,
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      'x-original-url': '/admin',
      'x-rewrite-url': '/admin',
    };

    expect(await call(port, 'GET', '/orders/7', { headers })).toMatchObject({ status: 200 });
  });

  it('requires a scope for HEAD and answers HEAD without a body', async () => {
    const { tokens, value, get } = await begin();
    const head = await tokens.issue({ account: 'ada', scopes: ['HEAD:shop.example/orders'] });

    const refused = await get('/orders/7', value, 'HEAD');
    const granted = await get('/orders/7', head.value, 'HEAD');
    const missing = await get('/orders/7', undefined, 'HEAD');

    expect(refused).toMatchObject({ status: 403, text: '' });
    expect(refused.headers.get('www-authenticate')).toContain(
      'scope="HEAD:shop.example/orders/7$"',
    );
    expect(granted).toMatchObject({ status: 200, text: '' });
    expect(missing).toMatchObject({ status: 401, text: '' });
  });

  it('keeps the connection open after a refusal', async () => {
    const { port, value } = await begin();
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<unknown>();
    agent.on('free', (socket: net.Socket) => ports.add(socket.localPort));
    const headers = { authorization: `Bearer ${value}` };

    for (let round = 0; round < 3; round++) {
      expect(await call(port, 'GET', '/orders/7', { agent })).toMatchObject({ status: 401 });
      const wrong = { authorization: 'Bearer x' };
      const refused = await call(port, 'GET', '/orders/7', { headers: wrong, agent });
      expect(refused).toMatchObject({ status: 401 });
      const granted = await call(port, 'GET', '/orders/7', { headers, agent });
      expect(granted).toMatchObject({ status: 200 });
    }
    agent.destroy();

    expect(ports.size).toBe(1);
  });

  it('does not parse a request from the body of another', async () => {
    const { port, value } = await begin();
    const inner = `GET /orders/7 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${value}\r\n\r\n`;
    const outer = `GET /orders/7 HTTP/1.1\r\nHost: x\r\nContent-Length: ${inner.length}\r\n\r\n`;
    const last = 'GET /orders/8 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

    const received = await raw(port, outer + inner + last);

    expect(received).toMatch(/^HTTP\/1.1 401 /);
    expect(received).not.toContain('HTTP/1.1 200 ');
    expect(await raw(port, inner, (it) => it.includes('}'))).toMatch(/^HTTP\/1.1 200 /);
  });

  it('refuses a request without waiting for its body', async () => {
    const { port } = await begin();
    const lines = ['GET /orders/7 HTTP/1.1', 'Host: x', 'Content-Length: 50'];

    const received = await raw(port, `${lines.join('\r\n')}\r\n\r\nx`, (it) => it.includes('}'));

    expect(received).toMatch(/^HTTP\/1.1 401 /);
    // A framework that sends a Fetch Response decides about the connection itself.
    if (isRaw.service) expect(received).toMatch(/\r\nconnection: close\r\n/i);
  });

  it('keeps serving after clients disconnect while the store is busy', async () => {
    const { port, store, value, get } = await begin();
    const calls = [['/orders/7', `Bearer ${value}`]];
    if (hasService) calls.push([`/auth/token/${'0'.repeat(22)}`, basic('ada')]);

    for (const [path, authorization] of calls) {
      const gate = Promise.withResolvers<undefined[]>();
      const asked = new Promise<void>((resolve) => {
        store.break('find', () => {
          resolve();
          return gate.promise;
        });
      });
      const socket = net.connect(port, '127.0.0.1');
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`);
      await asked;
      socket.resetAndDestroy();
      store.mend();
      expect(await get('/orders/7', value)).toMatchObject({ status: 200 });
      gate.resolve([undefined]);
      expect(await get('/orders/7', value)).toMatchObject({ status: 200 });
    }
  });

  if (!hasService) return;

  it('serves every verb of the service', async () => {
    const { port } = await begin();

    await expectEveryVerb(port, '/auth');
  });

  it('accepts Basic only on the service and Bearer only on guarded routes', async () => {
    const { port, value, get } = await begin();

    expectFailure(await get('/auth/token', value), 'unauthenticated');
    const basicOnly = await call(port, 'GET', '/orders/7', { headers: BASIC });
    expectChallenge(basicOnly, 401, 'Bearer realm="shop.example"');
  });

  it.each([
    ['/auth/%74oken', 404],
    ['/auth/token%2f', 404],
    ['/auth/token/', 404],
    ['/auth/token;x', 404],
    ['/auth/%2e/token', isRaw.service ? 404 : 200],
    ['/auth/x/../token', isRaw.service ? 404 : 200],
    ['/auth/x/%2e%2e/token', isRaw.service ? 404 : 200],
  ])('answers %s on the service with %i', async (target, status) => {
    const { port } = await begin();

    const answer = await call(port, 'GET', target, { headers: BASIC });

    expect(answer.status).toBe(status);
  });

  it('refuses two Authorization headers on the service', async () => {
    const { port } = await begin();
    const headers = { authorization: [basic('ada'), basic('ada')] };

    expectFailure(await call(port, 'GET', '/auth/token', { headers }), 'unauthenticated');
    expect(await call(port, 'GET', '/auth/token', { headers: BASIC })).toMatchObject({
      status: 200,
    });
  });
});

/** Guarded routes at `/api/v1/orders/:id` in frameworks that strip or split the path prefix. */
const PREFIXED: readonly (readonly [string, (guard: BearerGuard) => unknown])[] = [
  ...[express, express4].map((make, index) => {
    const start = (guard: BearerGuard) => {
      const orders = make.Router();
      orders.use(async (request, response, next) => {
        const outcome = await guard(request);
        if (outcome.ok) return next();
        return sendResponse(outcome.response, response);
      });
      orders.get('/:id', (request, response) => response.json({ cut: request.url }));
      const api = make.Router().use('/v1/orders', orders);
      return make().use('/api', make().use(api)).listen(0, '127.0.0.1');
    };
    return [`routers and a sub-app of Express ${index === 0 ? 5 : 4}`, start] as const;
  }),
  [
    'prefixes of Fastify',
    async (guard) => {
      const app = fastify();
      const orders: FastifyPluginAsync = async (scope) => {
        // Fastify can send a Fetch Response.
        scope.addHook('preHandler', async (request, reply) => {
          const outcome = await guard(request.raw);
          if (!outcome.ok) return reply.send(outcome.response);
        });
        scope.get('/:id', async (request) => ({ cut: request.url }));
      };
      app.register(async (api) => api.register(orders, { prefix: '/v1/orders' }), {
        prefix: '/api',
      });
      await app.listen({ port: 0, host: '127.0.0.1' });
      return app.server;
    },
  ],
  [
    'base paths and routes of Hono',
    (guard) => {
      const orders = new Hono<{ Bindings: HttpBindings }>();
      orders.use(async (c, next) => {
        const outcome = await guard(c.env.incoming);
        return outcome.ok ? next() : outcome.response;
      });
      orders.get('/:id', (c) => c.json({ cut: c.req.path }));
      const app = new Hono<{ Bindings: HttpBindings }>()
        .basePath('/api')
        .route('/v1/orders', orders);
      return serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
    },
  ],
  [
    'mounts of Koa',
    (guard) => {
      const app = new Koa();
      app.use(async (ctx, next) => {
        if (!ctx.path.startsWith('/api/v1/orders/')) return;
        ctx.path = ctx.path.slice('/api/v1/orders'.length);
        await next();
      });
      app.use(async (ctx, next) => {
        const outcome = await guard(ctx.req, { target: ctx.originalUrl });
        if (outcome.ok) return next();
        // Koa 3 can send a Fetch Response.
        ctx.body = outcome.response;
      });
      app.use((ctx) => {
        ctx.body = { cut: ctx.url };
      });
      return app.listen(0, '127.0.0.1');
    },
  ],
];

describe.each(PREFIXED)('the guard behind %s', (_, start) => {
  const begin = async (...scopes: string[]) => {
    const { tokens } = setUp({ catalog: null });
    const { value } = await tokens.issue({ account: 'ada', scopes });
    const port = await portOf(await start(bearerGuard({ tokens, domain: 'shop.example' })));
    return (path: string) =>
      call(port, 'GET', path, { headers: { authorization: `Bearer ${value}` } });
  };

  it('checks the whole target', async () => {
    const get = await begin('GET:shop.example/api/v1/orders');

    expect(await get('/api/v1/orders/7?x=1')).toMatchObject({ status: 200 });
    expect((await get('/api/v1/orders/7')).body['cut']).toMatch(/7$/);
  });

  it.each(['/7', '/orders', '/orders/7', '/v1', '/v1/orders', '/'])(
    'refuses a scope for %s, which is only a part of the path',
    async (path) => {
      const get = await begin(`GET:shop.example${path === '/' ? '/x' : path}`);

      expectChallenge(
        await get('/api/v1/orders/7'),
        403,
        'Bearer realm="shop.example", error="insufficient_scope", scope="GET:shop.example/api/v1/orders/7$"',
      );
    },
  );

  it.each([
    '/api/v1/orders/7;x',
    '/api/v1/orders/7%2f',
    '/api/v1/orders/%252e',
    '/api/v1/orders/%00',
  ])('refuses %s', async (target) => {
    const get = await begin('GET:shop.example/*');

    const answer = await get(target);

    expectChallenge(answer, 400, 'Bearer realm="shop.example", error="invalid_request"');
  });

  it.each([
    '/api/./v1/orders/7',
    '/api/v1/../v1/orders/7',
    '/x/../api/v1/orders/7',
    '/api/%2e%2e/api/v1/orders/7',
    '/api//v1/orders/7',
    '/api/v1//orders/7',
    '/api/v1/orders//7',
    '//api/v1/orders/7',
    '/api;x/v1/orders/7',
    '/api/v1;/orders/7',
    '/api%2fv1/orders/7',
  ])('does not grant access through %s', async (target) => {
    const get = await begin('GET:shop.example/*');

    expect([400, 404]).toContain((await get(target)).status);
  });

  it('cannot be bypassed by any spelling of a detour', async () => {
    const elsewhere = await begin('GET:shop.example/x');
    const get = await begin('GET:shop.example/api/v1/orders');
    const steps = [
      '',
      '/',
      '/.',
      '/..',
      '/%2e%2e',
      '/.%2E',
      ';',
      '/..;',
      '%2f..',
      '\\..',
      '/%252e%252e',
    ];
    const detours = steps.flatMap((a) =>
      steps.flatMap((b) => steps.map((c) => `/x${a}${b}/api/v1${c}/orders/7`)),
    );

    const opened: string[] = [];
    for (const target of detours) {
      if ((await elsewhere(target)).body['cut'] !== undefined) opened.push(target);
    }

    expect(opened).toEqual([]);
    expect((await get('/api/v1/orders/7')).body['cut']).toBeDefined();
  });
});

describe('a body parser with its own limit', () => {
  it.each([
    ['smaller than the service', '100b', 413],
    ['larger than the service', '10kb', 413],
    ['large enough', '10kb', 200],
  ])('that is %s (%s) leads to status %i', async (_, limit, status) => {
    const maxBodyBytes = status === 200 ? 5000 : 1000;
    const { handler, tokens } = setUp({ maxBodyBytes });
    const body = JSON.stringify({ scopes: [ORDERS], name: 'ä', metadata: { x: 'x'.repeat(1000) } });

    for (const make of [express, express4]) {
      const app = make().use(make.json({ limit }), toNodeListener(handler));
      const port = await portOf(app.listen(0, '127.0.0.1'));
      const headers = { ...BASIC, ...JSON_TYPE };
      const answer = await call(port, 'POST', '/token', { headers, body });
      expect(answer.status).toBe(status);
      // With the smaller limit, Express answers before the service sees the request.
      expect(answer.body['code']).toBe(
        status === 413 && limit !== '100b' ? 'payload_too_large' : undefined,
      );
    }

    expect((await tokens.list({ account: 'ada' })).tokens).toHaveLength(status === 200 ? 2 : 0);
  });
});

describe('a request that a middleware has answered', () => {
  it('does not change a token', async () => {
    for (const make of [express, express4]) {
      const { handler, tokens, issue } = setUp();
      let isOver = true;
      const app = make();
      app.use((_request, response, next) => {
        // Refuses the request but forgets to stop.
        if (isOver) response.status(429).end();
        next();
      });
      app.use(toNodeListener(handler));
      const port = await portOf(app.listen(0, '127.0.0.1'));
      const { id } = await issue();
      const revoke = () => call(port, 'DELETE', `/token/${id}`, { headers: BASIC });

      expect(await revoke()).toMatchObject({ status: 429, text: '' });
      expect(await tokens.get('ada', id)).toBeDefined();
      isOver = false;
      expect(await revoke()).toMatchObject({ status: 200 });
      expect(await tokens.get('ada', id)).toBeUndefined();
    }
  });

  it('keeps the answer of the middleware', async () => {
    const gate = Promise.withResolvers<string>();
    const { handler } = setUp({ authenticate: () => gate.promise });
    const app = express();
    app.use((_request, response, next) => {
      next();
      response.status(504).end('too late');
      gate.resolve('ada');
    });
    app.use(toNodeListener(handler));
    const port = await portOf(app.listen(0, '127.0.0.1'));

    const answer = await call(port, 'GET', '/token', { headers: BASIC });

    expect(answer).toMatchObject({ status: 504, text: 'too late' });
  });
});

describe('the signal of a request', () => {
  /** A handler that records its requests and answers when the test calls `answer`. */
  const recording = () => {
    const asked: Request[] = [];
    const gate = Promise.withResolvers<Response>();
    const arrival = Promise.withResolvers<Request>();
    const handler = Object.assign(
      (request: Request) => {
        asked.push(request);
        arrival.resolve(request);
        return gate.promise;
      },
      { basePath: '' },
    );
    return { asked, handler, arrival: arrival.promise, answer: gate.resolve };
  };

  it('aborts when the client disconnects, but not after an answer', async () => {
    for (const leaves of [true, false]) {
      const { handler, arrival, answer } = recording();
      const server = http.createServer(toNodeListener(handler)).listen(0, '127.0.0.1');
      const port = await portOf(server);
      const socket = net.connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.0\r\n\r\n'));
      const { signal } = await arrival;
      expect(signal.aborted).toBe(false);
      if (leaves) {
        socket.destroy();
        await once(signal, 'abort');
        answer(new Response());
      } else {
        answer(new Response('x'));
        await once(socket.resume(), 'close');
      }
      expect(signal.aborted).toBe(leaves);
    }
  });

  it('is already aborted if the client disconnected before the handler ran', async () => {
    const { handler, arrival, answer } = recording();
    const listener = toNodeListener(handler);
    const server = http.createServer(async (request, response) => {
      socket.destroy();
      await once(response, 'close');
      await listener(request, response);
    });
    const port = await portOf(server.listen(0, '127.0.0.1'));
    const socket = net.connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.0\r\n\r\n'));

    expect((await arrival).signal.aborted).toBe(true);
    answer(new Response());
  });
});

describe('over HTTP/2', () => {
  const sessions: http2.ClientHttp2Session[] = [];

  afterEach(() => {
    for (const session of sessions.splice(0)) session.destroy();
  });

  const begin = async (
    listener: (request: http2.Http2ServerRequest, response: http2.Http2ServerResponse) => unknown,
  ) => {
    const faults: unknown[] = [];
    const streams: http2.ServerHttp2Stream[] = [];
    const server = http2.createServer((request, response) => {
      streams.push(request.stream);
      Promise.resolve(listener(request, response)).catch((fault) => faults.push(fault));
    });
    const port = await portOf(server.listen(0, '127.0.0.1'));
    // Lets the client send repeated headers, which node:http2 would refuse.
    const options = { strictSingleValueFields: false } as http2.ClientSessionOptions;
    const session = http2.connect(`http://127.0.0.1:${port}`, options);
    sessions.push(session);
    const open = (headers: http2.OutgoingHttpHeaders) => session.request(headers);
    const ask = async (headers: http2.OutgoingHttpHeaders, body?: string) => {
      const stream = open(headers);
      if (body !== undefined) stream.end(body);
      const [answer] = (await once(stream, 'response')) as [Record<string, string>];
      const text = Buffer.concat(await stream.toArray()).toString();
      return { status: answer[':status'], headers: answer, text };
    };
    /** Waits until all streams are closed, even those with an unread body. */
    const closed = async () => {
      for (const stream of streams) if (!stream.closed) await once(stream, 'close');
    };
    return { ask, open, closed, faults };
  };

  it('the guard reads target and credentials', async () => {
    const { tokens, issue } = setUp();
    const { value } = await issue();
    const guard = bearerGuard({ tokens, domain: 'shop.example' });
    const { ask, faults } = await begin(async (request, response) => {
      const outcome = await guard(request);
      if (!outcome.ok) return sendResponse(outcome.response, response);
      response.end(outcome.grantedBy);
    });
    const authorization = `Bearer ${value}`;

    const granted = await ask({ ':path': '/orders/7', authorization });
    expect(granted).toMatchObject({ status: 200, text: ORDERS });
    expect(await ask({ ':path': '/orders/7' })).toMatchObject({ status: 401 });
    expect(await ask({ ':path': '/orders/7', authorization: 'Bearer x' })).toMatchObject({
      status: 401,
    });
    expect(await ask({ ':path': '/items', authorization })).toMatchObject({ status: 403 });
    for (const path of ['/orders/../items', '/orders/%2e%2e/items', '//orders', '/orders;x']) {
      expect(await ask({ ':path': path, authorization })).toMatchObject({ status: 400 });
    }
    const head = await ask({ ':method': 'HEAD', ':path': '/orders/7', authorization });
    expect(head).toMatchObject({ status: 403, text: '' });
    expect(faults).toEqual([]);
  });

  it('two Authorization headers are refused', async () => {
    const { handler, tokens, issue } = setUp();
    const { value } = await issue();
    const guard = bearerGuard({ tokens, domain: 'shop.example' });
    const listener = toNodeListener(handler);
    const { ask } = await begin(async (request, response) => {
      if (request.url === '/token') return listener(request, response);
      const outcome = await guard(request);
      if (!outcome.ok) return sendResponse(outcome.response, response);
      response.end();
    });
    const twice = (header: string) => ({ authorization: [header, header] }) as object;

    expect(await ask({ ':path': '/token', ...BASIC })).toMatchObject({ status: 200 });
    expect(await ask({ ':path': '/token', ...twice(basic('ada')) })).toMatchObject({ status: 401 });
    const authorization = `Bearer ${value}`;
    expect(await ask({ ':path': '/orders', authorization })).toMatchObject({ status: 200 });
    expect(await ask({ ':path': '/orders', ...twice(authorization) })).toMatchObject({
      status: 400,
    });
  });

  it('the service answers without reading the body and keeps serving', async () => {
    const { handler } = setUp({ maxBodyBytes: 1000 });
    const { ask, closed, faults } = await begin(toNodeListener(handler));
    const headers = { ':method': 'POST', ':path': '/token', ...JSON_TYPE };

    const anonymous = await ask(headers, BODY);
    expect(anonymous).toMatchObject({ status: 401 });
    expect(anonymous.headers['connection']).toBeUndefined();
    const large = await ask({ ...headers, ...BASIC }, BODY.padEnd(100_000, ' '));
    expect(large).toMatchObject({ status: 413 });
    await closed();
    expect(await ask({ ...headers, ...BASIC }, BODY)).toMatchObject({ status: 200 });
    expect(faults).toEqual([]);
  });

  it('a client that disconnects aborts its signal and gets no token', async () => {
    const { promise: isAsked, resolve: asked } = Promise.withResolvers<Request>();
    const gate = Promise.withResolvers<string>();
    const { handler, tokens } = setUp({
      authenticate: ({ username }, request) => {
        if (username !== 'slow') return username;
        asked(request);
        return gate.promise;
      },
    });
    const { ask, open, faults } = await begin(toNodeListener(handler));
    const headers = { ':method': 'POST', ':path': '/token', ...JSON_TYPE };

    const slow = open({ ...headers, authorization: basic('slow') });
    slow.on('error', () => {});
    slow.write(BODY);
    const { signal } = await isAsked;
    const left = once(signal, 'abort');
    slow.destroy();
    await left;
    gate.resolve('slow');
    expect(await ask({ ...headers, ...BASIC }, BODY)).toMatchObject({ status: 200 });
    expect((await tokens.list({ account: 'slow' })).tokens).toEqual([]);
    expect(faults).toEqual([]);
  });

  it('a body that was cut off is not treated as an empty one', async () => {
    const { handler, issue, tokens } = setUp();
    const { id } = await issue();
    const listener = toNodeListener(handler);
    const over = Promise.withResolvers<void>();
    const { open } = await begin(async (request, response) => {
      rotation.destroy();
      await once(response, 'close');
      await listener(request, response);
      over.resolve();
    });

    const path = `/token/${id}/rotate`;
    const rotation = open({ ':method': 'POST', ':path': path, ...BASIC, ...JSON_TYPE });
    rotation.on('error', () => {});
    rotation.write('{"graceSeconds":');
    await over.promise;

    expect(await tokens.get('ada', id)).toMatchObject({ version: 1 });
  });
});

describe('a request that no Node server has created', () => {
  it('is read without raw headers, as cloud gateways build it', async () => {
    const { handler } = setUp();
    const socket = new net.Socket();
    const request = Object.assign(new http.IncomingMessage(socket), {
      method: 'POST',
      url: '/token',
      headers: { ...BASIC, ...JSON_TYPE, 'content-length': String(BODY.length) },
      complete: true,
    });
    request.push(BODY);
    request.push(null);
    const response = new http.ServerResponse(request);

    await toNodeListener(handler)(request, response);

    expect(response.statusCode).toBe(200);
  });

  it('is refused if a gateway passes two credentials', async () => {
    const { handler } = setUp();
    const request = Object.assign(new http.IncomingMessage(new net.Socket()), {
      method: 'GET',
      url: '/token',
      headers: { authorization: [BASIC.authorization, BASIC.authorization] as unknown as string },
      complete: true,
    });
    const response = new http.ServerResponse(request);

    await toNodeListener(handler)(request, response);

    expect(response.statusCode).toBe(401);
  });

  it('is read when Fastify injects it', async () => {
    const { handler, issue } = setUp();
    const { id } = await issue();
    const app = fastify();
    const listener = toNodeListener(handler);
    app.all('/*', async (request, reply) => {
      reply.hijack();
      await listener(Object.assign(request.raw, { body: request.body }), reply.raw);
    });

    const payload = { scopes: [ORDERS] };
    const created = await app.inject({ method: 'POST', url: '/token', headers: BASIC, payload });
    const shown = await app.inject({ url: `/token/${id}`, headers: BASIC });
    const anonymous = await app.inject({ url: `/token/${id}` });
    await app.close();

    expect(created.json()).toMatchObject({ success: true, scopes: [ORDERS] });
    expect(shown.statusCode).toBe(200);
    expect(anonymous.statusCode).toBe(401);
  });
});

describe('a form behind a parser', () => {
  /** The form that a handler reads after a parser of Express has consumed it. */
  const readBack = async (make: typeof express, form: string, extended: boolean) => {
    const echo = async (request: Request) => new Response(await request.text());
    const listener = toNodeListener(Object.assign(echo, { basePath: '' }));
    const app = make().use(make.urlencoded({ extended }), listener);
    const port = await portOf(app.listen(0, '127.0.0.1'));
    const headers = { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' };
    return call(port, 'POST', '/', { headers, body: form });
  };

  it.each([
    ['token=abc', 'token=abc'],
    ['token=a&token=b', 'token=a&token=b'],
    ['token=%C3%A4+b%26&token_type_hint=', 'token=%C3%A4+b%26&token_type_hint='],
    ['token', 'token='],
  ])('is serialized back to a form: %s', async (form, expected) => {
    for (const make of [express, express4]) {
      for (const extended of [true, false]) {
        expect((await readBack(make, form, extended)).text).toBe(expected);
      }
    }
  });

  it.each(['token[a]=b', 'token[]=a&token[x]=b'])(
    'is refused if it is nested: %s',
    async (form) => {
      expectFailure(await readBack(express, form, true), 'invalid_request');
    },
  );
});

describe('sendResponse', () => {
  it('keeps the cookies of both sides and overrides other headers', async () => {
    const server = http.createServer((_request, response) => {
      response.setHeader('set-cookie', ['a=1']);
      response.setHeader('cache-control', 'public');
      const headers = new Headers([
        ['set-cookie', 'b=2'],
        ['set-cookie', 'c=3'],
        ['cache-control', 'no-store'],
      ]);
      sendResponse(new Response(null, { headers }), response);
    });
    const port = await portOf(server.listen(0, '127.0.0.1'));

    const { headers } = await fetch(`http://127.0.0.1:${port}/`);

    expect(headers.getSetCookie()).toEqual(['a=1', 'b=2', 'c=3']);
    expect(headers.get('cache-control')).toBe('no-store');
  });
});

/** Expects the guard to refuse with exactly this challenge. */
function expectChallenge(answer: Answer, status: number, challenge: string): void {
  expect(answer.status).toBe(status);
  expect(answer.headers.get('www-authenticate')).toBe(challenge);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(answer.body).toMatchObject({ success: false, data: null });
}
