import type { NestContextLike } from '../../../src/http/guard/nest.ts';
import 'reflect-metadata';
import { serve } from '@hono/node-server';
import { All, Body, Controller, Module, Req, UseGuards } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import express from 'express';
import fastify, { type FastifyInstance } from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  type BearerGuard,
  bearerGuard,
  expressGuard,
  fastifyGuard,
  honoGuard,
  koaGuard,
  nestGuard,
  nextGuard,
} from '../../../src/http/index.ts';
import type { Token } from '../../../src/index.ts';
import { parseScope } from '../../../src/scope/index.ts';
import { RecordingStore } from '../../support.ts';
import { CANARY, expectFailure, setUp } from '../support.ts';
import { call, closeAll, portOf } from '../wire.ts';
import { express4, VERSIONS } from './mounts.ts';

// Koa logs the errors that a middleware throws.
vi.spyOn(console, 'error').mockImplementation(() => {});

afterEach(closeAll);

const NEED = { scope: 'POST:shop.example/refunds' };

/** What the handler of a route saw. */
interface Seen {
  readonly account: string | undefined;
  readonly body: unknown;
}

/**
 * Serves `/api/v1/orders` behind the guard and `/api/v1/refunds` behind the guard with a named scope.
 * The framework strips or splits the path before the guard runs. Every handler calls `reached`.
 */
interface Framework {
  readonly name: string;
  readonly start: (guard: BearerGuard, reached: (seen: Seen) => void) => unknown;
}

function expressApp(make: typeof express): Framework['start'] {
  return (guard, reached) => {
    const handler: express.RequestHandler = (request, response) => {
      const { token } = request;
      reached({ account: token?.account, body: request.body });
      response.json({ account: token?.account });
    };
    const api = make.Router();
    api.use('/orders', expressGuard(guard), make.json(), handler);
    api.use('/refunds', expressGuard(guard, NEED), make.json(), handler);
    const app = make().use('/api', make.Router().use('/v1', api));
    return app.listen(0, '127.0.0.1');
  };
}

const startFastify: Framework['start'] = async (guard, reached) => {
  const app: FastifyInstance = fastify({ exposeHeadRoutes: false });
  app.decorateRequest('token', null);
  const handler = async (request: object) => {
    const { token, body } = request as { token: Token | null; body: unknown };
    reached({ account: token?.account, body });
    return { account: token?.account };
  };
  const routes = (scope: FastifyInstance, need?: typeof NEED) => {
    const onRequest = fastifyGuard(guard, need);
    const path = need === undefined ? '/orders' : '/refunds';
    scope.route({ method: ['GET', 'HEAD', 'OPTIONS', 'POST'], url: path, onRequest, handler });
  };
  app.register(
    async (api) => {
      api.register(
        async (scope) => {
          routes(scope);
          routes(scope, NEED);
        },
        { prefix: '/v1' },
      );
    },
    { prefix: '/api' },
  );
  await app.listen({ port: 0, host: '127.0.0.1' });
  return app.server;
};

const startHono: Framework['start'] = (guard, reached) => {
  const api = new Hono<{ Variables: { token: Token } }>();
  api.use('/orders', honoGuard(guard)).use('/refunds', honoGuard(guard, NEED));
  api.all('*', async (c) => {
    const text = await c.req.text();
    const { account } = c.get('token');
    reached({ account, body: text === '' ? undefined : JSON.parse(text) });
    return c.json({ account });
  });
  const app = new Hono().basePath('/api').route('/v1', api);
  return serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
};

const startKoa: Framework['start'] = (guard, reached) => {
  const app = new Koa<{ token: Token }>();
  app.silent = true;
  app.use(async (ctx, next) => {
    // Strips the prefix as koa-mount does.
    ctx.path = ctx.path.slice('/api/v1'.length);
    await next();
  });
  const [orders, refunds] = [koaGuard(guard), koaGuard(guard, NEED)];
  app.use((ctx, next) => (ctx.path === '/refunds' ? refunds : orders)(ctx, next));
  app.use(async (ctx) => {
    const text = Buffer.concat(await ctx.req.toArray()).toString();
    const { account } = ctx.state.token;
    reached({ account, body: text === '' ? undefined : JSON.parse(text) });
    ctx.body = { account };
  });
  return app.listen(0, '127.0.0.1');
};

const startNest: Framework['start'] = async (guard, reached) => {
  class Routes {
    orders(request: { token?: Token }, body: unknown) {
      reached({ account: request.token?.account, body });
      return { account: request.token?.account };
    }
    refunds(request: { token?: Token }, body: unknown) {
      return this.orders(request, body);
    }
  }
  // Applies the decorators by hand, because Node does not support their syntax.
  for (const name of ['orders', 'refunds'] as const) {
    const method = Object.getOwnPropertyDescriptor(Routes.prototype, name);
    if (method === undefined) throw new Error('there is no such method');
    All(name)(Routes.prototype, name, method);
    UseGuards(nestGuard(guard, name === 'orders' ? undefined : NEED))(
      Routes.prototype,
      name,
      method,
    );
    Req()(Routes.prototype, name, 0);
    Body()(Routes.prototype, name, 1);
  }
  Controller('v1')(Routes);
  class AppModule {}
  Module({ controllers: [Routes] })(AppModule);
  const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: false });
  app.setGlobalPrefix('api');
  return app.listen(0, '127.0.0.1');
};

const startNext: Framework['start'] = (guard, reached) => {
  const context = { params: Promise.resolve({}) };
  const handler = async (request: Request, { token }: { token: Token }) => {
    const text = await request.text();
    reached({ account: token.account, body: text === '' ? undefined : JSON.parse(text) });
    return Response.json({ account: token.account });
  };
  const orders = nextGuard(guard)<Request, typeof context>(handler);
  const refunds = nextGuard(guard, NEED)<Request, typeof context>(handler);
  // A server like that of Next.js, which is not installed here.
  const fetch = async (request: Request) => {
    const isOrders = new URL(request.url).pathname === '/api/v1/orders';
    return (isOrders ? orders : refunds)(request, context);
  };
  return serve({ fetch, port: 0, hostname: '127.0.0.1' });
};

const FRAMEWORKS: readonly Framework[] = [
  { name: `expressGuard on Express ${VERSIONS.express}`, start: expressApp(express) },
  { name: `expressGuard on Express ${VERSIONS.express4}`, start: expressApp(express4) },
  { name: `fastifyGuard on Fastify ${VERSIONS.fastify}`, start: startFastify },
  { name: `honoGuard on Hono ${VERSIONS.hono}`, start: startHono },
  { name: `koaGuard on Koa ${VERSIONS.koa}`, start: startKoa },
  { name: `nestGuard on Nest ${VERSIONS.nest}`, start: startNest },
  { name: 'nextGuard in the style of Next.js', start: startNext },
];

describe.each(FRAMEWORKS)('$name', ({ start }) => {
  const begin = async (...scopes: string[]) => {
    const store = new RecordingStore();
    const { tokens } = setUp({ store, catalog: null });
    const { value } = await tokens.issue({ account: 'ada', scopes });
    const seen: Seen[] = [];
    const guard = vi.fn(bearerGuard({ tokens, domain: 'shop.example' }));
    const port = await portOf(await start(guard, (one) => seen.push(one)));
    const send = (method: string, path: string, authorization?: string | string[], body?: string) =>
      call(port, method, `/api/v1${path}`, {
        headers: {
          ...(authorization !== undefined && { authorization }),
          ...(body !== undefined && {
            'content-type': 'application/json',
            'content-length': body.length,
          }),
        },
        ...(body !== undefined && { body }),
      });
    return { store, guard, value, bearer: `Bearer ${value}`, seen, send };
  };
  const ORDERS = 'GET:shop.example/api/v1/orders';

  it('gives the handler the token without its value', async () => {
    const { bearer, guard, seen, send } = await begin(ORDERS);

    expect(await send('GET', '/orders?x=1', bearer)).toMatchObject({
      status: 200,
      body: { account: 'ada' },
    });
    expect(seen).toMatchObject([{ account: 'ada' }]);
    expect(await guard.mock.results[0]?.value).not.toHaveProperty('token.value');
  });

  it('does not call the handler without a valid token', async () => {
    const { seen, send } = await begin(ORDERS);

    for (const authorization of [undefined, 'Bearer x', 'Basic YTpi']) {
      const answer = await send('GET', '/orders', authorization);
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="shop.example"/);
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
      expect(answer.body).toMatchObject({ success: false });
    }
    expect(seen).toEqual([]);
  });

  it.each(['GET:shop.example/orders', 'GET:shop.example/v1/orders', 'GET:shop.example/api/v1/o'])(
    'does not accept %s for a request below a path prefix',
    async (scope) => {
      const { bearer, seen, send } = await begin(scope);

      const answer = await send('GET', '/orders', bearer);

      expect(answer.status).toBe(403);
      expect(answer.headers.get('www-authenticate')).toContain(`scope="${ORDERS}$"`);
      expect(seen).toEqual([]);
    },
  );

  it.each(['HEAD', 'OPTIONS'])('requires a separate scope for %s', async (method) => {
    const wrong = await begin(ORDERS);
    const right = await begin(`${method}:shop.example/api/v1/orders`);

    expect((await wrong.send(method, '/orders', wrong.bearer)).status).toBe(403);
    expect((await wrong.send(method, '/orders')).status).toBe(401);
    expect(wrong.seen).toEqual([]);
    expect((await right.send(method, '/orders', right.bearer)).status).toBe(200);
    expect(right.seen).toHaveLength(1);
  });

  it('refuses two Authorization headers', async () => {
    const { bearer, seen, send } = await begin(ORDERS);

    for (const second of [bearer, 'Basic YTpi', 'Bearer x']) {
      expect((await send('GET', '/orders', [bearer, second])).status).toBe(400);
      expect((await send('GET', '/orders', [second, bearer])).status).toBe(400);
    }
    expect(seen).toEqual([]);
    expect((await send('GET', '/orders', [bearer])).status).toBe(200);
  });

  it('answers 503 and does not call the handler while the store is down', async () => {
    const { store, bearer, seen, send } = await begin(ORDERS);

    store.break('find', () => Promise.reject(new Error(CANARY)));
    const answer = await send('GET', '/orders', bearer);

    expectFailure(answer, 'store_unavailable');
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(seen).toEqual([]);
    store.mend();
    expect((await send('GET', '/orders', bearer)).status).toBe(200);
  });

  it('requires the scope that a route names', async () => {
    const named = await begin(NEED.scope);
    const other = await begin('POST:shop.example/api/v1');

    expect((await named.send('POST', '/refunds', named.bearer)).status).toBeLessThan(300);
    expect((await other.send('POST', '/refunds', other.bearer)).status).toBe(403);
    expect(other.seen).toEqual([]);
    expect((await other.send('POST', '/orders', other.bearer)).status).toBeLessThan(300);
    expect((await named.send('POST', '/orders', named.bearer)).status).toBe(403);
    expect(named.seen).toHaveLength(1);
  });

  it('leaves the body to the handler', async () => {
    const { bearer, seen, send } = await begin('POST:shop.example/api/v1/orders');

    const answer = await send('POST', '/orders', bearer, '{"amount":7}');

    expect(answer.status).toBeLessThan(300);
    expect(seen).toEqual([{ account: 'ada', body: { amount: 7 } }]);
  });

  it('refuses a call that has a body', async () => {
    const { seen, send } = await begin(ORDERS);

    expect((await send('POST', '/orders', 'Bearer x', '{"amount":7}')).status).toBe(401);
    expect(seen).toEqual([]);
  });

  it('passes on errors of the guard and does not call the handler', async () => {
    const { guard, bearer, seen, send } = await begin(ORDERS);

    guard.mockImplementationOnce(() => {
      throw new Error('thrown');
    });
    expect((await send('GET', '/orders', bearer)).status).toBe(500);
    guard.mockImplementationOnce(() => Promise.reject(new Error('rejected')));
    expect((await send('GET', '/orders', bearer)).status).toBe(500);
    expect(seen).toEqual([]);
    expect((await send('GET', '/orders', bearer)).status).toBe(200);
  });
});

describe.each([
  ['expressGuard', expressGuard],
  ['fastifyGuard', fastifyGuard],
  ['honoGuard', honoGuard],
  ['koaGuard', koaGuard],
  ['nestGuard', nestGuard],
  ['nextGuard', nextGuard],
])('%s', (_, make: (guard: BearerGuard, need?: { scope: string }) => unknown) => {
  const guard: BearerGuard = () => {
    throw new Error('never called');
  };
  const invalid = (message: string) =>
    expect.objectContaining({ code: 'invalid_options', message: expect.stringContaining(message) });

  it('accepts a guard alone or with a scope as text or parsed', () => {
    make(guard);
    make(guard, NEED);
    make(guard, { scope: parseScope(NEED.scope) as never });
  });

  it.each([
    ['a misspelled scope', { scope: 'post:shop.example/refunds' }, 'did you mean "POST:'],
    ['a scope that is undefined', { scope: undefined }, 'scope is not valid'],
    [
      'a bare scope',
      'POST:shop.example/refunds',
      'the need of a route must be an object { scope }',
    ],
    ['an unknown member', { scopes: NEED.scope }, 'did you mean scope?'],
  ])('refuses %s at construction', (_name, need, message) => {
    expect(() => make(guard, need as never)).toThrow(invalid(message));
  });

  it('refuses anything that is not a guard', () => {
    expect(() => make({ tokens: {} } as never)).toThrow(invalid('bearerGuard'));
    expect(() => make(undefined as never)).toThrow(invalid('bearerGuard'));
  });
});

describe('expressGuard', () => {
  it('keeps the headers that a middleware has set before a refusal', async () => {
    const { tokens } = setUp();
    const app = express().use((_, response, next) => {
      response.setHeader('access-control-allow-origin', '*');
      next();
    });
    app.use(expressGuard(bearerGuard({ tokens, domain: 'shop.example' })));

    const answer = await call(await portOf(app.listen(0, '127.0.0.1')), 'GET', '/orders');

    expect(answer.status).toBe(401);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  });
});

describe('fastifyGuard', () => {
  it('keeps the headers that a hook has set before a refusal', async () => {
    const { tokens } = setUp();
    const app = fastify();
    app.addHook('onRequest', async (_, reply) => {
      reply.header('access-control-allow-origin', '*');
    });
    app.addHook('onRequest', fastifyGuard(bearerGuard({ tokens, domain: 'shop.example' })));
    app.get('/orders', () => 'reached');

    const answer = await app.inject('/orders');

    expect(answer.statusCode).toBe(401);
    expect(answer.headers['access-control-allow-origin']).toBe('*');
    await app.close();
  });
});

describe('koaGuard', () => {
  it('checks the whole target inside an Express app', async () => {
    const { tokens } = setUp({ catalog: null });
    const scopes = ['GET:shop.example/api/orders'];
    const { value } = await tokens.issue({ account: 'ada', scopes });
    const koa = new Koa();
    koa.use(koaGuard(bearerGuard({ tokens, domain: 'shop.example' })));
    koa.use((ctx) => {
      ctx.body = 'reached';
    });
    const port = await portOf(express().use('/api', koa.callback()).listen(0, '127.0.0.1'));
    const headers = { authorization: `Bearer ${value}` };

    expect((await call(port, 'GET', '/api/orders', { headers })).text).toBe('reached');
    expect((await call(port, 'GET', '/api/items', { headers })).status).toBe(403);
  });
});

describe('honoGuard', () => {
  it('works without a server and with an unrelated binding named incoming', async () => {
    const { tokens } = setUp({ catalog: null });
    const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
    const app = new Hono().use(honoGuard(bearerGuard({ tokens, domain: 'shop.example' })));
    app.get('/orders', (c) => c.text('reached'));
    const headers = { authorization: `Bearer ${value}` };

    for (const env of [undefined, {}, { incoming: 'queue' }, { incoming: { url: '/orders' } }]) {
      expect(await (await app.request('/orders', { headers }, env)).text()).toBe('reached');
      expect((await app.request('/orders', {}, env)).status).toBe(401);
    }
  });
});

describe('nestGuard', () => {
  it('works with the wrapped request and reply of Fastify', async () => {
    const { tokens } = setUp({ catalog: null });
    const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
    const guard = nestGuard(bearerGuard({ tokens, domain: 'shop.example' }));
    const app = fastify();
    app.get('/orders', async (request, reply) => {
      const context: NestContextLike = {
        getType: () => 'http',
        switchToHttp: () => ({ getRequest: () => request, getResponse: () => reply }),
      };
      if (!(await guard.canActivate(context))) return reply.hijack();
      return Reflect.get(request, 'token')?.account;
    });

    const headers = { authorization: `Bearer ${value}` };
    expect((await app.inject({ url: '/orders', headers })).body).toBe('ada');
    expect((await app.inject('/orders')).headers['www-authenticate']).toContain('Bearer realm');
    await app.close();
  });

  it('refuses calls that are not HTTP', async () => {
    const { tokens } = setUp();
    const context = { getType: () => 'rpc', switchToHttp: () => ({}) as never };

    await expect(
      nestGuard(bearerGuard({ tokens, domain: 'shop.example' })).canActivate(context),
    ).rejects.toMatchObject({ code: 'invalid_request' });
  });
});
