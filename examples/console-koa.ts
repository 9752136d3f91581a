// The console in Koa: a middleware puts who is signed in on Node's request, where the token service sees it.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { tokenConsole } from 'tokenwright/console';
import { tokenHandler, toNodeListener } from 'tokenwright/http';

type Incoming = IncomingMessage & { account?: string | undefined };

/** In production: the sessions of a package, such as koa-session. */
const sessions = new Map<string, string>();

export function start(tokens: TokenService): Server {
  const service = toNodeListener(
    tokenHandler({
      tokens,
      basePath: '/auth',
      session: (_request, incoming: Incoming) => incoming.account ?? null,
    }),
  );
  const page = toNodeListener(tokenConsole({ basePath: '/settings/tokens', api: '/auth' }));

  const app = new Koa();
  app.use(async (ctx, next) => {
    if (ctx.method !== 'POST' || ctx.path !== '/sign-in') return next();
    // In production: only after you have checked who this is.
    const id = randomUUID();
    sessions.set(id, 'ada');
    ctx.cookies.set('sid', id, { httpOnly: true, sameSite: 'lax' });
    ctx.status = 204;
  });
  app.use(async (ctx, next) => {
    const isPage = ctx.path === '/settings/tokens' || ctx.path.startsWith('/settings/tokens/');
    if (!isPage && !ctx.path.startsWith('/auth/')) return next();
    (ctx.req as Incoming).account = sessions.get(ctx.cookies.get('sid') ?? '');
    ctx.respond = false;
    await (isPage ? page : service)(ctx.req, ctx.res);
  });
  return app.listen(0, '127.0.0.1');
}

const store = new MemoryTokenStore();
const server = start(new TokenService({ store, keys: [generateKey()], prefix: 'acme' }));
await once(server, 'listening');
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const signedIn = await fetch(`${origin}/sign-in`, { method: 'POST' });
const [cookie = ''] = signedIn.headers.get('set-cookie')?.split(';') ?? [];
console.log((await fetch(`${origin}/settings/tokens`)).headers.get('content-type')); // text/html; charset=utf-8
console.log((await fetch(`${origin}/auth/token`)).status); // 401
console.log((await fetch(`${origin}/auth/token`, { headers: { cookie } })).status); // 200
server.close();
