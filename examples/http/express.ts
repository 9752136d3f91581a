// Express 5, and 4: the token service under /auth, and the guard before every route that follows.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import {
  bearerGuard,
  expressGuard,
  fixedAccounts,
  tokenHandler,
  toNodeListener,
} from 'tokenwright/http';

export function start(tokens: TokenService): Server {
  const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

  const app = express();
  const handler = tokenHandler({ tokens, authenticate, onError: console.error });
  app.use('/auth', toNodeListener(handler));
  app.use(expressGuard(guard));
  app.get('/orders/:id', (request, response) => {
    response.json({ at: request.originalUrl, account: request.token?.account });
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
