import 'reflect-metadata';
import { createServer } from 'node:http';
import { serve } from '@hono/node-server';
import { Controller, Get, Module, UseGuards } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import express from 'express';
import fastify from 'fastify';
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
  toNodeListener,
} from '../../../src/http/index.ts';
import { MemoryTokenStore, type TokenLimits } from '../../../src/index.ts';
import { manualClock } from '../../../src/testing/index.ts';
import { SCOPE, setUp as setUpService } from '../../support.ts';
import { call, closeAll, portOf } from '../wire.ts';
import { express4, VERSIONS } from './mounts.ts';

vi.spyOn(console, 'error').mockImplementation(() => {});
afterEach(closeAll);

const ANYTHING = 'GET:shop.example/*';
const account = 'ada';
/** A scope that a route names. */
const NEED = { scope: ANYTHING };

async function setUp(limits: TokenLimits = { uses: 6 }) {
  const clock = manualClock();
  const leases = new MemoryTokenStore({ clock }).leases;
  const { tokens, store } = setUpService({
    clock,
    store: new MemoryTokenStore(),
    limits: { store: leases },
    usage: true,
    cache: { maxStaleMs: 1000 },
  });
  const guard = bearerGuard({ tokens, domain: 'shop.example' });
  const token = await tokens.issue({ account, scopes: [SCOPE, ANYTHING], limits });
  const requestWith = (value = token.value) => ({
    method: 'GET',
    url: '/orders',
    headers: { authorization: `Bearer ${value}` },
  });
  const countsOf = async (id = token.id) => {
    const { uses, refusals, scopes, derived } = (await tokens.usage(account, id)) ?? {};
    return { uses, refusals, scopes, ...(derived && { derived }) };
  };
  return { clock, tokens, store, leases, guard, token, requestWith, countsOf };
}

/** Serves `/orders` behind a guard of the whole app, one of the route, and one that the handler calls. */
const FRAMEWORKS: readonly (readonly [
  string,
  (guard: BearerGuard, other: BearerGuard) => unknown,
])[] = [
  ...[express, express4].map(
    (make, index) =>
      [
        `Express ${index === 0 ? VERSIONS.express : VERSIONS.express4}`,
        (guard: BearerGuard, other: BearerGuard) => {
          const app = make().use(expressGuard(guard));
          const route: express.RequestHandler = async (request, response) => {
            response.sendStatus((await other(request)).ok ? 200 : 500);
          };
          app.use('/orders', make.Router().use(expressGuard(other, NEED), route));
          return app.listen(0, '127.0.0.1');
        },
      ] as const,
  ),
  [
    `Fastify ${VERSIONS.fastify}`,
    async (guard, other) => {
      const app = fastify();
      app.decorateRequest('token', null);
      app.addHook('onRequest', fastifyGuard(guard));
      const preHandler = fastifyGuard(other, NEED);
      app.get('/orders', { preHandler }, async (request, reply) => {
        const outcomes = [await other(request), await guard(request.raw)];
        return reply.code(outcomes.every(({ ok }) => ok) ? 200 : 500).send();
      });
      await app.listen({ port: 0, host: '127.0.0.1' });
      return app.server;
    },
  ],
  [
    `Hono ${VERSIONS.hono} on Node`,
    (guard, other) => {
      const app = new Hono().use(honoGuard(guard)).use('/orders', honoGuard(other, NEED));
      app.get('/orders', async (c) => c.body(null, (await other(c.req.raw)).ok ? 200 : 500));
      return serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
    },
  ],
  [
    'Hono by Fetch, within toNodeListener',
    (guard, other) => {
      const app = new Hono().use(honoGuard(guard)).use('/orders', honoGuard(other, NEED));
      app.get('/orders', (c) => c.body(null, 200));
      const listener = toNodeListener((request) => app.fetch(request) as Promise<Response>);
      return createServer(async (request, response) => {
        const outcome = await guard(request);
        if (outcome.ok) listener(request, response);
        else response.writeHead(outcome.response.status).end();
      }).listen(0, '127.0.0.1');
    },
  ],
  [
    `Koa ${VERSIONS.koa}`,
    (guard, other) => {
      const app = new Koa();
      app.use(koaGuard(guard));
      app.use(async (ctx, next) => {
        // Strips the prefix as koa-mount does.
        ctx.path = ctx.path.slice('/orders'.length);
        await next();
      });
      app.use(koaGuard(other, NEED));
      app.use(async (ctx) => {
        const outcomes = [
          await other(ctx.request, { target: ctx.originalUrl }),
          await other(ctx, { target: ctx.originalUrl }),
        ];
        ctx.status = outcomes.every(({ ok }) => ok) ? 200 : 500;
      });
      return app.listen(0, '127.0.0.1');
    },
  ],
  [
    `Nest ${VERSIONS.nest}`,
    async (guard, other) => {
      class Routes {
        orders() {}
      }
      const method = Object.getOwnPropertyDescriptor(Routes.prototype, 'orders');
      if (method === undefined) throw new Error('there is no such method');
      Get('orders')(Routes.prototype, 'orders', method);
      UseGuards(nestGuard(other, NEED))(Routes.prototype, 'orders', method);
      UseGuards(nestGuard(other))(Routes);
      Controller()(Routes);
      class AppModule {}
      Module({ controllers: [Routes] })(AppModule);
      const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: false });
      app.use(expressGuard(guard));
      app.useGlobalGuards(nestGuard(guard));
      return app.listen(0, '127.0.0.1');
    },
  ],
  [
    'wrappers in the style of Next.js',
    (guard, other) => {
      const inner = nextGuard(other, NEED)<Request, object>(() => new Response());
      const outer = nextGuard(guard)<Request, object>((request) => inner(request, {}));
      const fetch = (request: Request) => outer(request, {});
      return serve({ fetch, port: 0, hostname: '127.0.0.1' });
    },
  ],
];

describe.each(FRAMEWORKS)('on %s', (_, start) => {
  it.each<[string, TokenLimits]>([
    ['uses', { uses: 6 }],
    ['a rate', { rate: { uses: 6, seconds: 60 } }],
  ])('a request is one of %s and one count, however many guards see it', async (_name, limits) => {
    const { tokens, guard, token, countsOf } = await setUp(limits);
    // A second guard of the same service, as another module would make it.
    const other = bearerGuard({ tokens, domain: 'shop.example' });
    const port = await portOf(await start(guard, other));
    const statuses: (number | undefined)[] = [];
    for (let request = 0; request < 8; request += 1) {
      const headers = { authorization: `Bearer ${token.value}` };
      statuses.push((await call(port, 'GET', '/orders', { headers })).status);
    }

    expect(statuses.slice(0, 6)).toEqual(Array(6).fill(200));
    expect(statuses.slice(6)).toEqual([429, 429]);
    expect(await countsOf()).toMatchObject({ uses: 6, refusals: 2 });
  });
});

describe('two guards that get the same request object', () => {
  it('spend one use, and count the scope of the first that accepts', async () => {
    const { guard, requestWith, countsOf, tokens } = await setUp({ uses: 1 });
    const request = requestWith();
    const own = await guard(request, { scope: SCOPE });

    expect(own).toMatchObject({ ok: true });
    expect(await guard(request, NEED)).toMatchObject({ ok: true });
    expect(await bearerGuard({ tokens, domain: 'other.example' })(request, NEED)).toMatchObject({
      ok: true,
    });
    expect(await guard(requestWith())).toMatchObject({ reason: 'limit_exceeded' });
    const { uses, scopes } = await countsOf();
    expect(uses).toBe(1);
    expect(scopes?.map(({ scope, uses }) => [scope, uses])).toContainEqual([own.grantedBy, 1]);
  });

  it('must both accept, and a refusal spends nothing and counts once', async () => {
    const { guard, requestWith, countsOf } = await setUp({ uses: 2 });
    const request = requestWith();
    const denied = { scope: 'POST:shop.example/orders' };

    expect(await guard(request, denied)).toMatchObject({ reason: 'insufficient_scope' });
    expect(await guard(request, denied)).toMatchObject({ reason: 'insufficient_scope' });
    expect(await countsOf()).toMatchObject({ uses: 0, refusals: 1 });
    expect(await guard(request)).toMatchObject({ ok: true });
    expect(await guard(request, denied)).toMatchObject({ reason: 'insufficient_scope' });
    expect(await guard(requestWith())).toMatchObject({ ok: true });
    expect(await guard(requestWith())).toMatchObject({ reason: 'limit_exceeded' });
    expect((await countsOf()).uses).toBe(2);
  });

  it('spend one use also if they decide concurrently, and share a refusal', async () => {
    const { guard, requestWith, leases } = await setUp({ uses: 1 });
    const take = vi.spyOn(leases, 'take');
    const request = requestWith();
    const outcomes = await Promise.all([guard(request), guard(request), guard(request, NEED)]);

    expect(outcomes.map(({ ok }) => ok)).toEqual([true, true, true]);
    expect(take).toHaveBeenCalledTimes(1);
    const next = requestWith();
    const refused = await Promise.all([guard(next), guard(next)]);
    expect(refused.map(({ reason }) => reason)).toEqual(['limit_exceeded', 'limit_exceeded']);
  });

  it('spend a use again after an outage in which none was spent', async () => {
    const { guard, requestWith, leases } = await setUp({ uses: 1 });
    const request = requestWith();
    vi.spyOn(leases, 'take').mockRejectedValueOnce(new Error('away'));

    expect(await guard(request)).toMatchObject({ reason: 'unavailable' });
    expect(await guard(request)).toMatchObject({ ok: true });
    expect(await guard(requestWith())).toMatchObject({ reason: 'limit_exceeded' });
  });

  it('spend and count one use of each ancestor', async () => {
    const { guard, requestWith, token, tokens, countsOf } = await setUp({ uses: 3 });
    // Deriving is a use of the parent as well.
    const input = { scopes: [SCOPE], ttlSeconds: 60, limits: { uses: 2 } };
    const child = await tokens.derive(token.value, input);
    for (let times = 0; times < 2; times += 1) {
      const request = requestWith(child.value);
      expect(await guard(request)).toMatchObject({ ok: true });
      expect(await guard(request, { scope: SCOPE })).toMatchObject({ ok: true });
    }

    expect(await guard(requestWith(child.value))).toMatchObject({ reason: 'limit_exceeded' });
    expect((await countsOf(child.id)).uses).toBe(2);
    expect(await countsOf()).toMatchObject({ uses: 0, derived: { uses: 2 } });
  });

  it('spend a use of each value that the object carries', async () => {
    const { guard, requestWith, tokens } = await setUp({ uses: 1 });
    const limits = { uses: 1 };
    const { value } = await tokens.issue({ account, scopes: [SCOPE], limits });
    const request = requestWith();
    const { headers } = requestWith(value);

    expect(await guard(request)).toMatchObject({ ok: true });
    const own = request.headers;
    request.headers = headers;
    expect(await guard(request)).toMatchObject({ ok: true });
    request.headers = own;
    expect(await guard(request)).toMatchObject({ ok: true });
    expect(await guard(requestWith())).toMatchObject({ reason: 'limit_exceeded' });
    expect(await guard(requestWith(value))).toMatchObject({ reason: 'limit_exceeded' });
  });

  it.each([
    ['target', { url: '/orders/7' }],
    ['method', { method: 'HEAD' }],
  ])('spend another use after the object became a request with another %s', async (_, change) => {
    const { guard, requestWith } = await setUp({ uses: 2 });
    const request = requestWith();
    const need = { scope: SCOPE };
    await guard(request, need);
    Object.assign(request, change);

    expect(await guard(request, need)).toMatchObject({ ok: true });
    expect(await guard(requestWith())).toMatchObject({ reason: 'limit_exceeded' });
  });

  it('spend a use each if they belong to two services', async () => {
    const { guard, requestWith, leases, store, clock } = await setUp({ uses: 1 });
    const options = { store, clock, limits: { store: leases }, cache: { maxStaleMs: 1000 } };
    const second = bearerGuard({ tokens: setUpService(options).tokens, domain: 'shop.example' });
    const request = requestWith();

    expect(await guard(request)).toMatchObject({ ok: true });
    expect(await second(request)).toMatchObject({ reason: 'limit_exceeded' });
  });

  it('spend a use of a limit that was set after the first of them', async () => {
    const { guard, tokens, requestWith } = await setUp();
    const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });
    const request = requestWith(value);
    expect(await guard(request)).toMatchObject({ ok: true });
    await tokens.patch(account, id, { limits: { uses: 1 } });

    expect(await guard(request)).toMatchObject({ ok: true });
    expect(await guard(requestWith(value))).toMatchObject({ reason: 'limit_exceeded' });
  });
});

it('a call of verify by hand is a use each time', async () => {
  const { tokens, token } = await setUp({ uses: 2 });
  const verify = async () => (await tokens.verify(token.value, { scope: SCOPE })).reason;

  expect([await verify(), await verify(), await verify()]).toEqual([
    undefined,
    undefined,
    'limit_exceeded',
  ]);
});
