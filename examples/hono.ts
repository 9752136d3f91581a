// Hono: the token service is a Fetch handler already, and the guard is a middleware of five lines.
import { type HttpBindings, type ServerType, serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createMiddleware } from 'hono/factory';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, fixedAccounts, tokenHandler } from 'tokenwright/http';

interface Env {
  readonly Bindings: Partial<HttpBindings>;
  readonly Variables: { account: string };
}

export function createApp(tokens: TokenService): Hono<Env> {
  const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  const service = tokenHandler({ tokens, authenticate, basePath: '/auth' });
  const guard = bearerGuard({ tokens, domain: 'shop.example' });
  const guarded = createMiddleware<Env>(async (c, next) => {
    // On Node the guard sees the target as it came; c.req.raw holds what a parser made of it.
    const outcome = await guard(c.env?.incoming ?? c.req.raw);
    if (!outcome.ok) return outcome.response;
    c.set('account', outcome.token.account);
    return next();
  });

  return new Hono<Env>()
    .all('/auth/*', (c) => service(c.req.raw))
    .use(guarded)
    .get('/orders/:id', (c) => c.json({ at: c.req.path, account: c.get('account') }));
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
