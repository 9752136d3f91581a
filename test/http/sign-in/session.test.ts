import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import fastify from 'fastify';
import Koa from 'koa';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { failureLimiter, tokenHandler, toNodeListener } from '../../../src/http/index.ts';
import type { SessionAccount } from '../../../src/http/sign-in/sign-in.ts';
import { generateKey, MemoryTokenStore, TokenService } from '../../../src/index.ts';
import {
  type Answer,
  asForm,
  basic,
  CANARY,
  type CallOptions,
  expectFailure,
  ORDERS,
  PASSWORD,
  type SetUpOptions,
  setUp,
  slowBody,
} from '../support.ts';

const SCRIPT = { 'x-tokenwright': 'console' };
const OWN = { ...SCRIPT, 'sec-fetch-site': 'same-origin' };

/** A session function that reads the account from the cookie. */
const session: SessionAccount = ({ headers }) => headers.get('cookie') || null;

function setUpSession(options: SetUpOptions = {}) {
  const setup = setUp({ authenticate: undefined, session, ...options });
  const call = (
    method: string,
    path: string,
    { as = 'ada', headers, ...rest }: CallOptions = {},
  ): Promise<Answer> =>
    setup.call(method, path, {
      ...rest,
      as: null,
      headers: { ...(as !== null && { cookie: as }), ...headers },
    });
  return { ...setup, call, callWithBasic: setup.call };
}

function isBasic({ headers }: Answer): boolean {
  return /basic/i.test(headers.get('www-authenticate') ?? '');
}

/** All calls that a browser must not make for another site. */
const UNSAFE: [method: string, path: string, json?: object][] = [
  ['POST', '/token', { scopes: [ORDERS] }],
  ['PUT', '/token/ID', { scopes: [ORDERS] }],
  ['PATCH', '/token/ID', { name: 'new' }],
  ['DELETE', '/token/ID'],
  ['POST', '/token/ID/rotate'],
  ['POST', '/token/ID/explain', { scope: ORDERS }],
];

describe('a session', () => {
  it('gives access only to the tokens of its account', async () => {
    const { call, issue } = setUpSession();
    const [mine, others] = [await issue(), await issue('bob')];

    expect((await call('GET', '/token')).body['data']).toMatchObject([{ id: mine.id }]);
    expectFailure(await call('GET', `/token/${others.id}`), 'not_found');
    expect(await call('GET', `/token/${others.id}`, { as: 'bob' })).toMatchObject({ status: 200 });
  });

  it('sends an opaque account mark and refuses a call with the mark of another account', async () => {
    const { call, issue, tokens } = setUpSession();
    const { id } = await issue();
    const markOf = async (as: string) =>
      (await call('GET', '/token', { as })).headers.get('x-tokenwright-account') ?? '';
    const [ada, bob] = [await markOf('ada'), await markOf('bob')];
    expect(ada).toMatch(/^[\w-]{22}$/);
    expect(bob).not.toBe(ada);
    expect(await markOf('ada')).toBe(ada);

    for (const [method, path, json] of [['GET', '/token'], ...UNSAFE] as typeof UNSAFE) {
      const headers = { ...OWN, 'x-tokenwright-account': bob };
      const answer = await call(method, path.replace('ID', id), { headers, ...(json && { json }) });
      expectFailure(answer, 'unauthenticated');
      expect(answer.body['message']).toBe('another account is signed in now');
    }
    expect((await tokens.list({ account: 'ada' })).tokens).toMatchObject([{ id, version: 1 }]);
    const headers = { ...OWN, 'x-tokenwright-account': ada };
    expect(await call('PATCH', `/token/${id}`, { headers, json: { name: 'new' } })).toMatchObject({
      status: 200,
    });
  });

  it('does not send the account mark to a call with credentials', async () => {
    const { callWithBasic } = setUpSession({ authenticate: () => 'ada' });

    const { status, headers } = await callWithBasic('GET', '/token');

    expect([status, headers.has('x-tokenwright-account')]).toEqual([200, false]);
  });

  it('is required if there is no authenticate', async () => {
    const { call, issue } = setUpSession();
    const { id } = await issue();

    for (const path of ['/token', `/token/${id}`, `/token/${id}/usage`, '/review', '/scopes']) {
      const answer = await call('GET', path, { as: null });
      expectFailure(answer, 'unauthenticated');
      expect(answer.body['message']).toBe('nobody is signed in');
      expect(isBasic(answer)).toBe(false);
    }
    for (const [method, path, json] of UNSAFE) {
      const options = { as: null, headers: OWN, ...(json && { json }) };
      expectFailure(await call(method, path.replace('ID', id), options), 'unauthenticated');
    }
  });

  it('is not looked up for public or unknown paths', async () => {
    const asked = vi.fn(session);
    const { call } = setUpSession({ session: asked });

    expect(await call('GET', '/openapi.json')).toMatchObject({ status: 200 });
    expectFailure(await call('GET', '/nowhere'), 'not_found');
    expect(asked).not.toHaveBeenCalled();
    await call('GET', '/token');
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it('does not authenticate a resource server', async () => {
    const authenticate = () => null;
    const { call, issue } = setUpSession({ introspection: { authenticate } });
    const { value } = await issue();
    const form = asForm({ token: value });

    const answer = await call('POST', '/introspect', {
      ...form,
      headers: { ...form.headers, ...OWN },
    });

    expect(answer.status).toBe(401);
    expect(answer.body['error']).toBe('invalid_client');
  });
});

describe('cross-site protection of a session', () => {
  it.each<[string, Record<string, string>]>([
    ['X-Tokenwright', SCRIPT],
    ['any value of X-Tokenwright', { 'x-tokenwright': 'settings' }],
    ['X-Tokenwright and same-origin', OWN],
    ['X-Tokenwright and a Sec-Fetch-Site of none', { ...SCRIPT, 'sec-fetch-site': 'none' }],
  ])('accepts a change with %s', async (_, headers) => {
    for (const [method, path, json] of UNSAFE) {
      const { call, issue } = setUpSession();
      const { id } = await issue();

      const answer = await call(method, path.replace('ID', id), { headers, ...(json && { json }) });

      expect({ method, path, status: answer.status }).toEqual({ method, path, status: 200 });
    }
  });

  it.each<[string, Record<string, string>]>([
    ['without either header', {}],
    ['with only a Sec-Fetch-Site of same-origin', { 'sec-fetch-site': 'same-origin' }],
    ['with only a Sec-Fetch-Site of none', { 'sec-fetch-site': 'none' }],
    ['with an empty X-Tokenwright', { ...OWN, 'x-tokenwright': '' }],
    ['from another site, even with X-Tokenwright', { ...SCRIPT, 'sec-fetch-site': 'cross-site' }],
    ['from a sibling site, even with X-Tokenwright', { ...SCRIPT, 'sec-fetch-site': 'same-site' }],
    ['with an unknown Sec-Fetch-Site', { ...SCRIPT, 'sec-fetch-site': 'same-origin, none' }],
  ])('refuses a change %s', async (_, headers) => {
    const { call, issue, tokens } = setUpSession();
    const { id } = await issue();
    const before = await tokens.get('ada', id);

    for (const [method, path, json] of UNSAFE) {
      const answer = await call(method, path.replace('ID', id), { headers, ...(json && { json }) });
      expectFailure(answer, 'cross_site');
    }
    expect(await tokens.get('ada', id)).toEqual(before);
    expect((await tokens.list({ account: 'ada' })).tokens).toHaveLength(1);
  });

  it('refuses a change before its body is read', async () => {
    const { call } = setUpSession();

    expectFailure(await call('POST', '/token', { raw: '{' }), 'cross_site');
    expectFailure(await call('POST', '/token', { raw: '{', headers: OWN }), 'invalid_json');
  });

  it('requires neither header for a read', async () => {
    const { call, issue } = setUpSession();
    const { id } = await issue();

    for (const path of ['/token', `/token/${id}`, '/scopes', '/review']) {
      expect(await call('GET', path)).toMatchObject({ status: 200 });
      expect(await call('HEAD', path)).toMatchObject({ status: 200 });
    }
  });
});

describe('a session beside passwords', () => {
  const authenticate = ({ username, password }: { username: string; password: string }) =>
    password === PASSWORD ? username : null;
  const both = (options: SetUpOptions = {}) => setUpSession({ authenticate, ...options });

  it('is used only if no credentials are sent', async () => {
    const { call, issue } = both();
    const [ada, bob] = [await issue(), await issue('bob')];
    const idsOf = async (headers: Record<string, string>) => {
      const { body } = await call('GET', '/token', { headers });
      return (body['data'] as { id: string }[]).map(({ id }) => id);
    };

    expect(await idsOf({})).toEqual([ada.id]);
    expect(await idsOf({ authorization: basic('bob') })).toEqual([bob.id]);
  });

  it.each([basic('ada', 'wrong'), 'Bearer x', 'Basic !', ''])(
    'is not used when Authorization is %j',
    async (authorization) => {
      const asked = vi.fn(session);
      const { call } = both({ session: asked });

      expectFailure(await call('GET', '/token', { headers: { authorization } }), 'unauthenticated');
      expect(asked).not.toHaveBeenCalled();
    },
  );

  it('requires X-Tokenwright, which Basic credentials do not', async () => {
    const { call } = both();
    const json = { scopes: [ORDERS] };

    expectFailure(await call('POST', '/token', { json }), 'cross_site');
    const authorization = basic('ada');
    expect(await call('POST', '/token', { json, headers: { authorization } })).toMatchObject({
      status: 200,
    });
    const headers = { authorization, 'sec-fetch-site': 'cross-site' };
    expectFailure(await call('POST', '/token', { json, headers }), 'cross_site');
  });

  it('keeps the Basic challenge, except for a script that sends X-Tokenwright', async () => {
    const { call } = both();
    const { callWithBasic } = setUpSession({ authenticate, session: undefined });
    const wrong = { authorization: basic('ada', 'wrong') };

    for (const headers of [{}, wrong]) {
      expect(isBasic(await call('GET', '/token', { as: null, headers }))).toBe(true);
      expect(isBasic(await callWithBasic('GET', '/token', { as: null, headers }))).toBe(true);
      const asked = { as: null, headers: { ...headers, ...SCRIPT } };
      for (const answer of [
        await call('GET', '/token', asked),
        await callWithBasic('GET', '/token', asked),
      ]) {
        expectFailure(answer, 'unauthenticated');
        expect(isBasic(answer)).toBe(false);
      }
    }
  });

  it('is used without authenticate even if a proxy sends Authorization', async () => {
    const { call, issue } = setUpSession();
    const { id } = await issue();

    for (const authorization of [basic('bob'), 'Bearer x']) {
      const { body } = await call('GET', '/token', { headers: { authorization } });
      expect(body['data']).toMatchObject([{ id }]);
    }
  });
});

describe('the session function', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  const boom = () => {
    throw new Error(CANARY);
  };
  it.each<[string, () => unknown]>([
    ['throws', boom],
    ['rejects', () => Promise.reject(new Error(CANARY))],
    ['returns undefined', () => undefined],
    ['returns false', () => false],
    ['returns a number', () => 7],
    ['returns an object', () => ({ account: 'ada' })],
    ['returns an empty text', () => ''],
    ['returns a promise of undefined', () => Promise.resolve(undefined)],
    ['returns an unreadable object', () => new Proxy({}, { get: boom, has: boom })],
    // biome-ignore lint/suspicious/noThenProperty: the host can return a thenable
    ['returns a thenable that throws', () => ({ then: boom })],
  ])('grants nothing when it %s', async (_, fault) => {
    const onError = vi.fn();
    const authenticate = vi.fn(() => 'ada');
    const faulty = (request: Request, incoming: IncomingMessage | undefined) =>
      request.headers.get('cookie') === 'eve' ? fault() : session(request, incoming);
    const { call, tokens } = setUpSession({ authenticate, session: faulty as never, onError });
    const options = { as: 'eve', headers: OWN, json: { scopes: [ORDERS] } };

    expectFailure(await call('GET', '/token', { as: 'eve' }), 'store_unavailable');
    expectFailure(await call('POST', '/token', options), 'store_unavailable');

    expect(onError).toHaveBeenCalled();
    expect(authenticate).not.toHaveBeenCalled();
    for (const account of ['ada', 'eve']) {
      expect((await tokens.list({ account })).tokens).toEqual([]);
    }
    expect(await call('GET', '/token')).toMatchObject({ status: 200 });
  });

  it('causes a 503 when it does not answer within ten seconds', async () => {
    vi.useFakeTimers();
    const onError = vi.fn();
    const { call } = setUpSession({ session: () => new Promise(() => {}), onError });
    const pending = call('GET', '/token');
    const settled = vi.fn();
    void pending.then(settled);

    await vi.advanceTimersByTimeAsync(9999);
    expect(settled).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);

    expectFailure(await pending, 'store_unavailable');
    expect(onError).toHaveBeenCalledTimes(1);
  });

  it.each([
    [{ session: 'ada' }, 'session must be a function'],
    [{ session, authenticate: 'ada' }, 'authenticate must be a function'],
  ])('is validated at construction: %o', (options, message) => {
    expect(() => setUpSession(options as never)).toThrow(message);
  });

  it('is required by tokenHandler if there is no authenticate', () => {
    const { tokens } = setUp();

    // @ts-expect-error nobody could sign in
    expect(() => tokenHandler({ tokens })).toThrow('or give session');
    expect(() => tokenHandler({ tokens, session })).not.toThrow();
    expect(() => tokenHandler({ tokens, authenticate: () => null })).not.toThrow();
  });
});

describe('the limits for calls with a session', () => {
  it('give an account at most its share of the slots', async () => {
    const { call } = setUpSession({ maxInFlight: 4 });
    const { raw, end } = slowBody();
    const pending = call('POST', '/token', { raw, headers: OWN });
    await new Promise(setImmediate);
    const json = { scopes: [ORDERS] };

    expectFailure(await call('POST', '/token', { json, headers: OWN }), 'overloaded');
    const other = await call('POST', '/token', { json, headers: OWN, as: 'bob' });
    expect(other).toMatchObject({ status: 200 });
    end();
    expect(await pending).toMatchObject({ status: 200 });
    expect(await call('POST', '/token', { json, headers: OWN })).toMatchObject({ status: 200 });
  });

  it('count a session that is still being looked up', async () => {
    let found: (account: string) => void = () => {};
    const slow: SessionAccount = ({ headers }) =>
      headers.get('cookie') === 'slow'
        ? new Promise((resolve) => {
            found = resolve;
          })
        : 'ada';
    const { call } = setUpSession({ session: slow, maxInFlight: 1 });
    const pending = call('GET', '/token', { as: 'slow' });
    await new Promise(setImmediate);

    expectFailure(await call('GET', '/token'), 'overloaded');
    found('eve');
    expect(await pending).toMatchObject({ status: 200 });
    expect(await call('GET', '/token')).toMatchObject({ status: 200 });
  });

  it('answer 503 when the client address is invalid', async () => {
    const { call } = setUpSession({ clientAddress: () => 'nowhere' });

    expectFailure(await call('GET', '/token'), 'store_unavailable');
    expect(await call('GET', '/openapi.json')).toMatchObject({ status: 200 });
  });

  it('involve neither the failure limiter nor onSignIn', async () => {
    const onSignIn = vi.fn();
    const points = new RateLimiterMemory({ points: 1, duration: 900 });
    const limiter = failureLimiter({ userAndAddress: points });
    const { call } = setUpSession({ clientAddress: () => '192.0.2.1', limiter, onSignIn });

    for (let i = 0; i < 3; i++) {
      expectFailure(await call('GET', '/token', { as: null }), 'unauthenticated');
      expect(await call('GET', '/token')).toMatchObject({ status: 200 });
    }
    expect(onSignIn).not.toHaveBeenCalled();
  });
});

describe('the OpenAPI document', () => {
  const schemesOf = async (options: SetUpOptions) => {
    const { call } = setUpSession(options);
    const { security, components } = (await call('GET', '/openapi.json')).body as never as {
      security: object[];
      components: { securitySchemes: object };
    };
    const names = security.flatMap((each) => Object.keys(each));
    expect(Object.keys(components.securitySchemes)).toEqual(names);
    return names;
  };

  it('lists the configured ways to sign in', async () => {
    const authenticate = () => 'ada';

    expect(await schemesOf({})).toEqual(['session']);
    expect(await schemesOf({ authenticate, session: undefined })).toEqual(['account']);
    expect(await schemesOf({ authenticate })).toEqual(['account', 'session']);
  });
});

describe('a session of a Node framework', () => {
  interface SessionRequest extends IncomingMessage {
    readonly account?: string;
  }

  async function serve(handler: RequestListener) {
    return callAt(
      createServer((request, response) => {
        // Attaches the session as a middleware such as express-session does.
        Object.assign(request, { account: request.headers.cookie });
        handler(request, response);
      }),
    );
  }

  async function callAt(server: Server) {
    if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const headers = { cookie: 'ada', connection: 'close', ...SCRIPT };
    const answer = await fetch(`http://127.0.0.1:${port}/auth/token`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ scopes: [ORDERS] }),
    });
    server.close();
    return answer;
  }

  const handlerOf = (asked: (request: Request) => void) => {
    const tokens = new TokenService({
      store: new MemoryTokenStore(),
      keys: [generateKey()],
      prefix: 'acme',
    });
    const handler = tokenHandler({
      tokens,
      basePath: '/auth',
      session: (request, incoming: SessionRequest) => {
        asked(request);
        return incoming.account ?? null;
      },
    });
    return { tokens, handler };
  };

  it('is read from the Node request, and its function gets no body', async () => {
    const asked = vi.fn();
    const { handler, tokens } = handlerOf(asked);

    const answer = await serve(toNodeListener(handler));

    expect(answer.status).toBe(200);
    expect((await tokens.list({ account: 'ada' })).tokens).toHaveLength(1);
    const [[request]] = asked.mock.calls as [[Request]];
    expect(request.headers.get('cookie')).toBe('ada');
    expect(request.body).toBeNull();
  });

  it('is read when a host function wraps the handler', async () => {
    const { handler } = handlerOf(() => {});

    expect((await serve(toNodeListener((request) => handler(request)))).status).toBe(200);
  });

  it('answers 503 without a Node request and 401 without an account', async () => {
    const { handler } = handlerOf(() => {});
    const call = (cookie: string) =>
      handler(new Request('http://localhost/auth/token', { headers: { cookie } }));

    expect((await call('ada')).status).toBe(503);
    const { handler: nobody } = handlerOf(() => {});
    const answer = await serve((request, response) => {
      Object.assign(request, { account: undefined });
      void toNodeListener(nobody)(request, response);
    });
    expect(answer.status).toBe(401);
  });

  it.each<[string, (listener: ReturnType<typeof toNodeListener>) => Promise<Server>]>([
    [
      'Fastify',
      async (listener) => {
        const app = fastify();
        app.removeAllContentTypeParsers();
        app.addContentTypeParser('*', (_request, _body, done) => done(null));
        app.addHook('onRequest', async (request) => {
          Object.assign(request.raw, { account: request.headers.cookie });
        });
        app.all('/auth/*', async (request, reply) => {
          reply.hijack();
          await listener(request.raw, reply.raw);
        });
        await app.listen({ port: 0, host: '127.0.0.1' });
        return app.server;
      },
    ],
    [
      'Koa',
      async (listener) => {
        const app = new Koa();
        app.use(async (ctx) => {
          Object.assign(ctx.req, { account: ctx.headers.cookie });
          ctx.respond = false;
          await listener(ctx.req, ctx.res);
        });
        return app.listen(0, '127.0.0.1');
      },
    ],
    [
      'Express',
      async (listener) => {
        const app = express();
        app.use(express.json());
        app.use((request, _response, next) => {
          Object.assign(request, { account: request.headers.cookie });
          next();
        });
        app.use('/auth', listener);
        return app.listen(0, '127.0.0.1');
      },
    ],
  ])('is read from the request that %s passes on', async (_, start) => {
    const { handler, tokens } = handlerOf(() => {});
    const server = await start(toNodeListener(handler));
    if (!server.listening) await once(server, 'listening');

    expect((await callAt(server)).status).toBe(200);
    expect((await tokens.list({ account: 'ada' })).tokens).toHaveLength(1);
  });
});
