// A plain node:http server: the token service under /auth, and the guard before everything else.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import {
  bearerGuard,
  fixedAccounts,
  sendResponse,
  tokenHandler,
  toNodeListener,
} from 'tokenwright/http';

export function start(tokens: TokenService): Server {
  const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  const service = toNodeListener(tokenHandler({ tokens, authenticate, basePath: '/auth' }));
  const guard = bearerGuard({ tokens, domain: 'shop.example' });

  return createServer(async (request, response) => {
    if (request.url?.startsWith('/auth/')) return service(request, response);
    const outcome = await guard(request);
    if (!outcome.ok) return sendResponse(outcome.response, response);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ at: request.url, account: outcome.token.account }));
  }).listen(0, '127.0.0.1');
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
