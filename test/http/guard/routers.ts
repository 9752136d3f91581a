import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createRequire } from 'node:module';
import hapi from '@hapi/hapi';
import { getRequestListener } from '@hono/node-server';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Elysia } from 'elysia';
import express from 'express';
import fastify, { type FastifyServerOptions } from 'fastify';
import { H3, toNodeHandler } from 'h3';
import { Hono } from 'hono';
import { Router as IttyRouter } from 'itty-router';
import Koa from 'koa';
import { express4 } from './mounts.ts';

const require = createRequire(import.meta.url);

/** The name of the route that answered. */
const ROUTE = 'x-route';

/** Makes a listener that serves GET of some routes, written as `/orders/:id` and `/w/*`. */
type Make = (routes: readonly string[]) => RequestListener | Promise<RequestListener>;

function answer(response: ServerResponse, route: string): void {
  response.writeHead(200, { [ROUTE]: encodeURIComponent(route) }).end();
}

function fetchAnswer(route: string): Response {
  return new Response(null, { headers: { [ROUTE]: encodeURIComponent(route) } });
}

function onExpress(make: typeof express, isStrict: boolean): Make {
  return (routes) => {
    const app = make();
    app.set('case sensitive routing', isStrict).set('strict routing', isStrict);
    for (const route of routes) {
      const path = make === express ? route.replace('*', '*rest') : route;
      app.get(path, (_, response) => answer(response, route));
    }
    return app as unknown as RequestListener;
  };
}

const onNest: Make = async (routes) => {
  class App {}
  Module({})(App);
  const app = await NestFactory.create<NestExpressApplication>(App, { logger: false });
  const adapter = app.getHttpAdapter();
  for (const route of routes) {
    adapter.get(route.replace('*', '*rest'), (_, response) =>
      answer(response as unknown as ServerResponse, route),
    );
  }
  await app.init();
  return adapter.getInstance() as RequestListener;
};

function onFastify(routerOptions: NonNullable<FastifyServerOptions['routerOptions']>): Make {
  return async (routes) => {
    const app = fastify({ routerOptions });
    for (const route of routes) {
      app.get(route, (_, reply) => reply.header(ROUTE, encodeURIComponent(route)).send());
    }
    await app.ready();
    return (request, response) => app.routing(request, response);
  };
}

function onHono(strict: boolean): Make {
  return (routes) => {
    const app = new Hono({ strict });
    for (const route of routes) app.get(route, () => fetchAnswer(route));
    return getRequestListener(app.fetch);
  };
}

/** Both routers of Koa. */
function onKoa(name: string, options: object): Make {
  return (routes) => {
    const loaded = require(name);
    const Router = (loaded.default ?? loaded.Router ?? loaded) as new (
      options: object,
    ) => {
      get(path: string, handler: (context: Koa.Context) => void): unknown;
      routes(): Koa.Middleware;
    };
    const router = new Router(options);
    for (const route of routes) {
      router.get(route.replace('*', '*rest').replace('**', '*'), (context) => {
        context.set(ROUTE, encodeURIComponent(route));
        context.body = '';
        context.status = 200;
      });
    }
    return new Koa().use(router.routes()).callback();
  };
}

function onFindMyWay(name: string, options: object): Make {
  return (routes) => {
    const router = require(name)({
      ...options,
      defaultRoute: (_: IncomingMessage, response: ServerResponse) => response.writeHead(404).end(),
    });
    for (const route of routes) {
      router.on('GET', route, (_: IncomingMessage, response: ServerResponse) =>
        answer(response, route),
      );
    }
    return (request, response) => router.lookup(request, response);
  };
}

const onH3: Make = (routes) => {
  const app = new H3();
  for (const route of routes) app.get(route.replace('*', '**'), () => fetchAnswer(route));
  return toNodeHandler(app) as RequestListener;
};

const onPolka: Make = (routes) => {
  const app = require('polka')();
  for (const route of routes) {
    app.get(route, (_: IncomingMessage, response: ServerResponse) => answer(response, route));
  }
  return app.handler;
};

const onItty: Make = (routes) => {
  const router = IttyRouter();
  for (const route of routes) router.get(route, () => fetchAnswer(route));
  router.all('*', () => new Response(null, { status: 404 }));
  return getRequestListener((request) => router.fetch(request));
};

const onElysia: Make = (routes) => {
  // Compiled, it fails for a path with a quote.
  const app = new Elysia({ aot: false });
  for (const route of routes) app.get(route, () => fetchAnswer(route));
  return getRequestListener((request) => app.fetch(request));
};

function onHapi(router: hapi.ServerOptions['router']): Make {
  return async (routes) => {
    const listener: Server = createServer();
    const server = hapi.server({ listener, autoListen: false, router });
    for (const route of routes) {
      const path = route.replace(/:(\w+)/g, '{$1}').replace('*', '{rest*}');
      server.route({
        method: 'GET',
        path,
        handler: (_, h) => h.response('x').header(ROUTE, encodeURIComponent(route)),
      });
    }
    await server.start();
    return (request, response) => void listener.emit('request', request, response);
  };
}

/** The routers that are common, each as it comes and with the options that change what it reads. */
export const ROUTERS: Readonly<Record<string, Make>> = {
  'Express 5': onExpress(express, false),
  'Express 5, strict': onExpress(express, true),
  'Express 4': onExpress(express4, false),
  'Express 4, strict': onExpress(express4, true),
  Nest: onNest,
  Fastify: onFastify({}),
  'Fastify, ignoring case': onFastify({ caseSensitive: false }),
  'Fastify, ignoring slashes': onFastify({
    ignoreTrailingSlash: true,
    ignoreDuplicateSlashes: true,
  }),
  Hono: onHono(true),
  'Hono, loose': onHono(false),
  '@koa/router': onKoa('@koa/router', {}),
  '@koa/router, strict': onKoa('@koa/router', { sensitive: true, strict: true }),
  'koa-router': onKoa('koa-router', {}),
  'find-my-way 9': onFindMyWay('find-my-way', {}),
  'find-my-way 9, loose': onFindMyWay('find-my-way', {
    caseSensitive: false,
    ignoreTrailingSlash: true,
    useSemicolonDelimiter: true,
  }),
  'find-my-way 7': onFindMyWay('find-my-way7', { caseSensitive: false }),
  h3: onH3,
  polka: onPolka,
  'itty-router': onItty,
  Elysia: onElysia,
  hapi: onHapi({}),
  'hapi, loose': onHapi({ isCaseSensitive: false, stripTrailingSlash: true }),
};

/** The route that answered with 200, of a raw response. */
export function routeIn(response: string): string | undefined {
  if (!/^HTTP\/1\.1 200/.test(response)) return undefined;
  const [, route] = /^x-route: *(\S+)/im.exec(response) ?? [];
  return route === undefined ? undefined : decodeURIComponent(route);
}
