// Hono: one guard before all routes. Run it, and call it with the command that it prints.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, honoGuard } from 'tokenwright/http';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

const app = new Hono();
app.use(honoGuard(guard));
app.get('/orders/:id', (c) => c.json({ account: c.get('token').account }));
serve({ fetch: app.fetch, port: 3000, hostname: '127.0.0.1' }, () => {
  console.log(`curl -H 'Authorization: Bearer ${value}' http://127.0.0.1:3000/orders/7`);
});
