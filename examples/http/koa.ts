// Koa 3: the token service under /auth, and the guard before everything else, by the target as it came.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { generateKey, MemoryTokenStore, type Token, TokenService } from 'tokenwright';
import {
  bearerGuard,
  fixedAccounts,
  koaGuard,
  tokenHandler,
  toNodeListener,
} from 'tokenwright/http';

export function start(tokens: TokenService): Server {
  const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  const handler = tokenHandler({ tokens, authenticate, basePath: '/auth', onError: console.error });
  const service = toNodeListener(handler);
  const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

  const app = new Koa<{ token: Token }>();
  app.use(async (ctx, next) => {
    if (!ctx.path.startsWith('/auth/')) return next();
    ctx.respond = false;
    await service(ctx.req, ctx.res);
  });
  app.use(koaGuard(guard));
  app.use((ctx) => {
    ctx.body = { at: ctx.originalUrl, account: ctx.state.token.account };
  });
  return app.listen(0, '127.0.0.1');
}

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
const server = start(tokens);
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
const orders = `http://127.0.0.1:${port}/orders/7`;
console.log((await fetch(orders)).status); // 401
const response = await fetch(orders, { headers: { authorization: `Bearer ${value}` } });
console.log(await response.text()); // {"at":"/orders/7","account":"ada"}
server.close();
