import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { serve } from '@hono/node-server';
import { type MiddlewareConsumer, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { cloneRawRequest } from 'hono/request';
import Koa from 'koa';
import { type TokenHandler, toNodeListener } from '../../../src/http/index.ts';
import type { NodeRequest } from '../../../src/http/node/listener.ts';

const require = createRequire(import.meta.url);

/** Express 4, which is installed under another name beside Express 5. */
export const express4 = require('express4') as typeof express;

export const VERSIONS = {
  node: process.version.slice(1),
  express: versionOf('express'),
  express4: versionOf('express4'),
  fastify: versionOf('fastify'),
  hono: versionOf('hono'),
  koa: versionOf('koa'),
  nest: versionOf('@nestjs/core'),
};

function versionOf(name: string): string {
  const folder = ['../../node_modules/', '../../../node_modules/']
    .map((modules) => new URL(`${modules}${name}/`, import.meta.url))
    .find((url) => existsSync(url));
  if (folder === undefined) throw new Error(`${name} is not installed`);
  const file = new URL('package.json', folder);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** Serves route handlers as Next.js does, with Fetch requests converted from Node requests. */
export function nextServer(routes: Readonly<Record<string, Readonly<Record<string, unknown>>>>) {
  type Route = (request: Request, context: unknown) => Promise<Response>;
  const fetch = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    const [, folder = '', id = ''] = pathname.split('/');
    const route = routes[folder];
    if (route === undefined || id === '') return new Response(null, { status: 404 });
    const verb = route[request.method === 'HEAD' ? 'GET' : request.method] as Route | undefined;
    if (verb === undefined) return new Response(null, { status: 405 });
    return verb(request, { params: Promise.resolve({ id: decodeURIComponent(id) }) });
  };
  return serve({ fetch, port: 0, hostname: '127.0.0.1' });
}

/** One way to mount the service in a framework. */
export interface Mount {
  readonly framework: string;
  readonly way: string;
  /** The path before `/token` that the client sees. */
  readonly base: string;
  /** The `basePath` option of the handler. */
  readonly basePath: string;
  /** Whether the framework has already read the body. */
  readonly isParsed: boolean;
  start(handler: TokenHandler): unknown;
}

export const MOUNTS: readonly Mount[] = [
  ...[
    { framework: `Express ${VERSIONS.express}`, make: express },
    { framework: `Express ${VERSIONS.express4}`, make: express4 },
  ].flatMap((one) => expressMounts(one)),
  ...fastifyMounts(`Fastify ${VERSIONS.fastify}`),
  ...honoMounts(`Hono ${VERSIONS.hono}`),
  ...koaMounts(`Koa ${VERSIONS.koa}`),
  ...nestMounts(`Nest ${VERSIONS.nest}`),
];

function expressMounts({ framework, make }: { framework: string; make: typeof express }): Mount[] {
  const listen = (app: express.Express) => app.listen(0, '127.0.0.1');
  const plain = { framework, base: '', basePath: '', isParsed: false };
  const behind = (way: string, ...parsers: express.RequestHandler[]): Mount => ({
    ...plain,
    way: `at the root, behind ${way}`,
    isParsed: true,
    start: (handler) => listen(make().use(...parsers, toNodeListener(handler))),
  });
  return [
    {
      ...plain,
      way: 'at the root',
      start: (handler) => listen(make().use(toNodeListener(handler))),
    },
    {
      ...plain,
      way: 'at the root, with a base path',
      base: '/api/auth',
      basePath: '/api/auth',
      start: (handler) => listen(make().use(toNodeListener(handler))),
    },
    {
      ...plain,
      way: 'under routers',
      base: '/api/auth',
      start: (handler) =>
        listen(make().use('/api', make.Router().use('/auth', toNodeListener(handler)))),
    },
    {
      ...plain,
      way: 'under routers, with a base path',
      base: '/api/auth',
      basePath: '/api/auth',
      start: (handler) =>
        listen(make().use('/api', make.Router().use('/auth', toNodeListener(handler)))),
    },
    {
      ...plain,
      way: 'under a router, with a base path below it',
      base: '/api/auth',
      basePath: '/auth',
      start: (handler) => listen(make().use('/api', make.Router().use(toNodeListener(handler)))),
    },
    {
      ...plain,
      way: 'as a route',
      base: '/auth',
      basePath: '/auth',
      start: (handler) => listen(make().all(/^\/auth\//, toNodeListener(handler))),
    },
    {
      ...plain,
      way: 'before a parser',
      base: '/auth',
      start: (handler) =>
        listen(
          make()
            .use('/auth', toNodeListener(handler))
            .use(make.json({ limit: 1 })),
        ),
    },
    {
      ...plain,
      way: 'under a router, behind express.json()',
      base: '/auth',
      isParsed: true,
      start: (handler) => listen(make().use(make.json()).use('/auth', toNodeListener(handler))),
    },
    behind('express.json()', make.json()),
    behind('express.json() that is not strict', make.json({ strict: false, type: () => true })),
    behind('express.text()', make.text({ type: '*/*' })),
    behind('express.raw()', make.raw({ type: '*/*' })),
    behind(
      'all four parsers',
      make.json(),
      make.text(),
      make.raw(),
      make.urlencoded({ extended: true }),
    ),
  ];
}

function fastifyMounts(framework: string): Mount[] {
  const start = async (
    handler: TokenHandler,
    path: string,
    { ownParser, prefix = '' }: { readonly ownParser: boolean; readonly prefix?: string },
  ) => {
    const listener = toNodeListener(handler);
    const app = fastify();
    app.register(
      async (scope) => {
        if (!ownParser) {
          scope.removeAllContentTypeParsers();
          scope.addContentTypeParser('*', (_request, _body, done) => done(null));
        }
        scope.all(path, async (request, reply) => {
          reply.hijack();
          const parsed = ownParser ? { body: request.body } : {};
          await listener(Object.assign(request.raw, parsed), reply.raw);
        });
      },
      { prefix },
    );
    await app.listen({ port: 0, host: '127.0.0.1' });
    return app.server;
  };
  const plain = { framework, base: '', basePath: '', isParsed: false };
  const deep = { base: '/api/auth', basePath: '/api/auth' };
  return [
    {
      ...plain,
      way: 'at the root',
      start: (handler) => start(handler, '/*', { ownParser: false }),
    },
    {
      ...plain,
      ...deep,
      way: 'as a route, with a base path',
      start: (handler) => start(handler, '/api/auth/*', { ownParser: false }),
    },
    {
      ...plain,
      ...deep,
      way: 'under a prefix, with a base path',
      start: (handler) => start(handler, '/auth/*', { ownParser: false, prefix: '/api' }),
    },
    {
      ...plain,
      way: "at the root, behind Fastify's parser",
      isParsed: true,
      start: (handler) => start(handler, '/*', { ownParser: true }),
    },
    {
      ...plain,
      ...deep,
      way: "under a prefix, behind Fastify's parser",
      isParsed: true,
      start: (handler) => start(handler, '/auth/*', { ownParser: true, prefix: '/api' }),
    },
  ];
}

function honoMounts(framework: string): Mount[] {
  const listen = (app: Hono) => serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  const plain = { framework, base: '', basePath: '', isParsed: false };
  return [
    {
      ...plain,
      way: 'at the root',
      start: (handler) => listen(new Hono().all('*', (c) => handler(c.req.raw))),
    },
    {
      ...plain,
      way: 'as a route, with a base path',
      base: '/auth',
      basePath: '/auth',
      start: (handler) => listen(new Hono().all('/auth/*', (c) => handler(c.req.raw))),
    },
    {
      ...plain,
      way: 'by mount',
      base: '/auth',
      start: (handler) => listen(new Hono().mount('/auth', handler)),
    },
    {
      ...plain,
      way: 'by mount below a route, with a base path below it',
      base: '/api/v1/auth',
      basePath: '/auth',
      start: (handler) => listen(new Hono().route('/api', new Hono().mount('/v1', handler))),
    },
    {
      ...plain,
      way: 'behind a middleware that has read the body',
      base: '/auth',
      basePath: '/auth',
      isParsed: true,
      start: (handler) => {
        const app = new Hono();
        app.use(async (c, next) => {
          await c.req.text();
          await next();
        });
        return listen(app.all('/auth/*', async (c) => handler(await cloneRawRequest(c.req))));
      },
    },
  ];
}

/** Does the work of koa-mount and koa-bodyparser, which are not installed here. */
function koaMounts(framework: string): Mount[] {
  const start = (
    handler: TokenHandler,
    {
      prefix = '',
      parse,
    }: { readonly prefix?: string; readonly parse?: (text: string) => unknown },
  ) => {
    const listener = toNodeListener(handler);
    const app = new Koa();
    if (parse !== undefined) {
      app.use(async (ctx, next) => {
        const text = Buffer.concat(await ctx.req.toArray()).toString();
        if (text !== '') Object.assign(ctx.request, { body: parse(text) });
        await next();
      });
    }
    app.use(async (ctx) => {
      if (!ctx.path.startsWith(`${prefix}/`)) return;
      ctx.path = ctx.path.slice(prefix.length);
      ctx.respond = false;
      const { body } = ctx.request as { body?: unknown };
      await listener(Object.assign(ctx.req as NodeRequest, parse && { body }), ctx.res);
    });
    return app.listen(0, '127.0.0.1');
  };
  const plain = { framework, base: '', basePath: '', isParsed: false };
  return [
    { ...plain, way: 'at the root', start: (handler) => start(handler, {}) },
    {
      ...plain,
      way: 'mounted',
      base: '/auth',
      start: (handler) => start(handler, { prefix: '/auth' }),
    },
    {
      ...plain,
      way: 'at the root, with a base path',
      base: '/auth',
      basePath: '/auth',
      start: (handler) => start(handler, {}),
    },
    {
      ...plain,
      way: 'mounted, behind a parser',
      base: '/auth',
      isParsed: true,
      start: (handler) => start(handler, { prefix: '/auth', parse: (text) => JSON.parse(text) }),
    },
    {
      ...plain,
      way: 'at the root, behind a text parser',
      isParsed: true,
      start: (handler) => start(handler, { parse: (text) => text }),
    },
  ];
}

function nestMounts(framework: string): Mount[] {
  const create = async (
    module: new () => object,
    prepare: (app: NestExpressApplication) => void,
  ) => {
    const app = await NestFactory.create<NestExpressApplication>(module, { logger: false });
    prepare(app);
    return app.listen(0, '127.0.0.1');
  };
  const plain = { framework, base: '', basePath: '', isParsed: false };
  /** The middleware of a module runs after Nest's own parsers. */
  const ofModule = (handler: TokenHandler) => {
    const listener = toNodeListener(handler);
    class ServiceModule {
      configure(consumer: MiddlewareConsumer) {
        consumer.apply(listener).forRoutes('auth/*path');
      }
    }
    Module({})(ServiceModule);
    return ServiceModule;
  };
  const module = () => {
    class AppModule {}
    Module({})(AppModule);
    return AppModule;
  };
  return [
    {
      ...plain,
      way: "at the root, before Nest's parser",
      start: (handler) => create(module(), (app) => app.use(toNodeListener(handler))),
    },
    {
      ...plain,
      way: "under a path, before Nest's parser",
      base: '/auth',
      start: (handler) => create(module(), (app) => app.use('/auth', toNodeListener(handler))),
    },
    {
      ...plain,
      way: "as a module's middleware, behind Nest's parser",
      base: '/auth',
      basePath: '/auth',
      isParsed: true,
      start: (handler) => create(ofModule(handler), () => {}),
    },
    {
      ...plain,
      way: "as a module's middleware under a global prefix, behind Nest's parser",
      base: '/api/auth',
      basePath: '/api/auth',
      isParsed: true,
      start: (handler) => create(ofModule(handler), (app) => app.setGlobalPrefix('api')),
    },
  ];
}
