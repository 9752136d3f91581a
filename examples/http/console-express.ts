// The console in Express: people who are signed in manage their own tokens, by their session alone.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import session from 'express-session';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { tokenConsole } from 'tokenwright/console';
import { tokenHandler, toNodeListener } from 'tokenwright/http';
import { ScopeCatalog } from 'tokenwright/scope';

declare module 'express-session' {
  interface SessionData {
    account: string;
  }
}

export function start(tokens: TokenService): Server {
  const service = tokenHandler({
    tokens,
    session: (_request, incoming: express.Request) => incoming.session.account ?? null,
    onError: console.error,
  });
  const page = tokenConsole({ basePath: '/settings/tokens', api: '/auth', brand: 'Acme' });

  const app = express();
  app.use(
    session({
      secret: 'correct horse', // in production: from your environment, with a store of your own
      resave: false,
      saveUninitialized: false,
      cookie: { sameSite: 'lax', secure: 'auto' },
    }),
  );
  app.post('/sign-in', (request, response, next) => {
    // In production: only after you have checked who this is.
    request.session.regenerate((error) => {
      if (error) return next(error);
      request.session.account = 'ada';
      response.redirect(303, '/settings/tokens');
    });
  });
  app.use('/settings/tokens', toNodeListener(page));
  app.use('/auth', toNodeListener(service));
  return app.listen(0, '127.0.0.1');
}

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()], // in production: one that is kept, and the same for all processes
  prefix: 'acme',
  catalog: ScopeCatalog.from(['GET:shop.example/orders', 'POST:shop.example/orders']),
});
const server = start(tokens);
await once(server, 'listening');
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

// What a browser sends, and gets.
const signedIn = await fetch(`${origin}/sign-in`, { method: 'POST', redirect: 'manual' });
const [cookie = ''] = signedIn.headers.get('set-cookie')?.split(';') ?? [];
console.log((await fetch(`${origin}/settings/tokens`)).headers.get('content-type')); // text/html; charset=utf-8
console.log((await fetch(`${origin}/auth/token`)).status); // 401
console.log((await fetch(`${origin}/auth/token`, { headers: { cookie } })).status); // 200

const issue = (headers: Record<string, string>) =>
  fetch(`${origin}/auth/token`, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ scopes: ['GET:shop.example/orders'], name: 'ci' }),
  });
console.log((await issue({})).status); // 403
console.log((await issue({ 'x-tokenwright': 'console', 'sec-fetch-site': 'cross-site' })).status); // 403
console.log((await issue({ 'x-tokenwright': 'console', 'sec-fetch-site': 'same-origin' })).status); // 200
console.log((await tokens.list({ account: 'ada' })).tokens.map(({ name }) => name).join()); // ci
server.close();
