// Hono: the token service is a Fetch handler already, and the guard is a middleware.
import { type ServerType, serve } from '@hono/node-server';
import { Hono } from 'hono';
import { generateKey, MemoryTokenStore, type Token, TokenService } from 'tokenwright';
import { bearerGuard, fixedAccounts, honoGuard, tokenHandler } from 'tokenwright/http';

interface Env {
  readonly Variables: { token: Token };
}

export function createApp(tokens: TokenService): Hono<Env> {
  const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  const service = tokenHandler({ tokens, authenticate, basePath: '/auth', onError: console.error });
  const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

  return new Hono<Env>()
    .all('/auth/*', (c) => service(c.req.raw))
    .use(honoGuard(guard))
    .get('/orders/:id', (c) => c.json({ at: c.req.path, account: c.get('token').account }));
}

export function start(tokens: TokenService): ServerType {
  return serve({ fetch: createApp(tokens).fetch, port: 0, hostname: '127.0.0.1' });
}

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
const app = createApp(tokens); // runs without a server too, and on every runtime
console.log((await app.request('/orders/7')).status); // 401
const response = await app.request('/orders/7', { headers: { authorization: `Bearer ${value}` } });
console.log(await response.text()); // {"at":"/orders/7","account":"ada"}
