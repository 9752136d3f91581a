// Express: one guard before all routes. Run it, and call it with the command that it prints.
import express from 'express';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, expressGuard } from 'tokenwright/http';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

const app = express();
app.use(expressGuard(guard));
app.get('/orders/:id', (request, response) => response.json({ account: request.token.account }));
app.listen(3000, '127.0.0.1', () => {
  console.log(`curl -H 'Authorization: Bearer ${value}' http://127.0.0.1:3000/orders/7`);
});
