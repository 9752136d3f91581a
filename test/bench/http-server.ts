// A server for the HTTP benchmark, in a process of its own: a framework with one route, guarded or
// not. Arguments: the framework and the guard. It sends its port and what to put into the
// Authorization header, and answers each message with the CPU it has used, in microseconds, and
// its heap, in bytes. As framework `service`, it is the token service itself; with the guard `derive`, it
// sends values to derive from.
import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type HttpBindings, serve } from '@hono/node-server';
import fastify from 'fastify';
import { Hono } from 'hono';
import { jwtVerify, SignJWT } from 'jose';
import {
  type BearerGuard,
  bearerGuard,
  fixedAccounts,
  type GuardOutcome,
  sendResponse,
  tokenHandler,
  toNodeListener,
} from '../../src/http/index.ts';
import { generateKey, MemoryTokenStore, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { betterAuthKeys } from './better-auth.ts';

const COUNT = 1000;
const NAMES = 'abcdefghij';
const SCOPES = Array.from(NAMES, (name) => `GET:shop.example/${name}`);
const NEEDED = SCOPES[4] as string;
const BODY = { ok: true };
const TEXT = JSON.stringify(BODY);

/** Whether a presented value may do what is needed. */
type Check = (value: string) => Promise<boolean>;

interface Guarding {
  /** A middleware that does nothing: what the framework takes for having one at all. */
  readonly isEmpty?: boolean;
  readonly guard?: BearerGuard;
  readonly check?: Check;
  readonly values: readonly string[];
}

async function ours(maxStaleMs: number): Promise<Guarding> {
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'acme',
    cache: { maxStaleMs },
  });
  const values: string[] = [];
  for (let i = 0; i < COUNT; i++) {
    const { value } = await tokens.issue({ account: `account${i}`, scopes: SCOPES });
    values.push(value);
  }
  return { guard: bearerGuard({ tokens, domain: 'shop.example' }), values };
}

/** The least that a check of a stored token can be: a hash, a map, the expiry and a set of scopes. */
async function byHand(): Promise<Guarding> {
  const values = dummies();
  const expiresAt = Date.now() + 3_600_000;
  const records = new Map(
    values.map((value) => [hash('sha256', value), { expiresAt, scopes: new Set(SCOPES) }]),
  );
  const guard = ({ method, url, headers }: IncomingMessage): Partial<GuardOutcome> => {
    const record = records.get(hash('sha256', bearerIn(headers.authorization)));
    const isLive = record !== undefined && record.expiresAt > Date.now();
    if (isLive && record.scopes.has(`${method}:shop.example${url}`)) return { ok: true };
    return { ok: false, response: new Response(null, { status: 401 }) };
  };
  return { guard: guard as unknown as BearerGuard, values };
}

async function jose(): Promise<Guarding> {
  const key = crypto.getRandomValues(new Uint8Array(32));
  const sign = (_: unknown, i: number) =>
    new SignJWT({ scope: SCOPES.join(' ') })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject(`account${i}`)
      .setExpirationTime('1h')
      .sign(key);
  const check: Check = async (value) => {
    const { payload } = await jwtVerify(value, key);
    return String(payload['scope']).split(' ').includes(NEEDED);
  };
  return { check, values: await Promise.all(Array.from({ length: COUNT }, sign)) };
}

/** As long as ours, so that there is as much to parse. */
function dummies(): string[] {
  return Array.from({ length: COUNT }, (_, i) => `${i}`.padEnd(63, 'x'));
}

const GUARDS: Readonly<Record<string, () => Promise<Guarding>>> = {
  none: async () => ({ values: dummies() }),
  'an empty one': async () => ({ isEmpty: true, values: dummies() }),
  cached: () => ours(60_000),
  uncached: () => ours(0),
  'by hand': byHand,
  jose,
  async 'better-auth'() {
    const { verify, values } = await betterAuthKeys([...NAMES], 'e', COUNT);
    return { check: verify, values };
  },
};

const bearerIn = (header = '') => header.slice('Bearer '.length);

function nodeHttp({ guard, check }: Guarding): Promise<number> {
  const server = createServer((request, response) => {
    const answer = () => {
      response.setHeader('content-type', 'application/json');
      response.end(TEXT);
    };
    if (guard !== undefined) {
      const outcome = guard(request);
      if (!(outcome instanceof Promise)) {
        return outcome.ok ? answer() : sendResponse(outcome.response, response);
      }
      return outcome.then((late) => (late.ok ? answer() : sendResponse(late.response, response)));
    }
    if (check === undefined) return answer();
    return check(bearerIn(request.headers.authorization)).then((isAllowed) => {
      if (!isAllowed) response.statusCode = 403;
      answer();
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

function hono({ guard, check, isEmpty }: Guarding): Promise<number> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  if (isEmpty === true) app.use((_, next) => next());
  if (guard !== undefined) {
    app.use(async (context, next) => {
      const outcome = guard(context.env.incoming);
      const settled = outcome instanceof Promise ? await outcome : outcome;
      return settled.ok ? next() : settled.response;
    });
  }
  if (check !== undefined) {
    app.use(async (context, next) => {
      const { authorization } = context.env.incoming.headers;
      const isAllowed = await check(bearerIn(authorization));
      return isAllowed ? next() : context.json(BODY, 403);
    });
  }
  app.get('/e', (context) => context.json(BODY));
  return new Promise((resolve) => {
    serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => resolve(port));
  });
}

async function overFastify({ guard, check, isEmpty }: Guarding): Promise<number> {
  const app = fastify();
  if (isEmpty === true) app.addHook('onRequest', (_request, _reply, done) => done());
  if (guard !== undefined) {
    app.addHook('onRequest', (request, reply, done) => {
      const outcome = guard(request.raw);
      if (!(outcome instanceof Promise)) {
        if (outcome.ok) done();
        else reply.send(outcome.response);
        return;
      }
      outcome.then((late) => (late.ok ? done() : reply.send(late.response)), done);
    });
  }
  if (check !== undefined) {
    app.addHook('onRequest', async (request, reply) => {
      if (!(await check(bearerIn(request.headers.authorization)))) reply.code(403).send(BODY);
    });
  }
  app.get('/e', (_, reply) => {
    reply.send(BODY);
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  return (app.server.address() as AddressInfo).port;
}

/** The token service itself, on SQLite, with some tokens to look at: their ids, or their values to derive from. */
async function service(shown: 'id' | 'value'): Promise<{ port: number; values: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-bench-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const store = SqliteTokenStore.open(folder);
  const quotas = { tokensPerAccount: 1_000_000, derivedPerRoot: 10_000 };
  const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme', quotas });
  const values: string[] = [];
  for (let i = 0; i < COUNT; i++) {
    values.push((await tokens.issue({ account: 'ada', scopes: SCOPES }))[shown]);
  }
  const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  const oauth = { issuer: 'https://auth.example', exchange: true };
  const handler = tokenHandler({ tokens, authenticate, derivation: true, oauth });
  const server = createServer(toNodeListener(handler));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, values };
}

const FRAMEWORKS: Readonly<Record<string, (guarding: Guarding) => Promise<number>>> = {
  'node:http': nodeHttp,
  Hono: hono,
  Fastify: overFastify,
};

const [, , framework = '', guard = ''] = process.argv;
async function started(): Promise<{ port: number | undefined; values: readonly string[] }> {
  if (framework === 'service') return service(guard === 'derive' ? 'value' : 'id');
  const guarding = (await GUARDS[guard]?.()) as Guarding;
  return { port: await FRAMEWORKS[framework]?.(guarding), values: guarding.values };
}

const ready = await started();
process.on('message', () => {
  global.gc?.();
  const { user, system } = process.cpuUsage();
  process.send?.({ cpu: user + system, heap: process.memoryUsage().heapUsed });
});
process.on('disconnect', () => process.exit());
process.send?.(ready);
