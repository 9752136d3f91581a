// A plain node:http server: the token service under /auth, the guard before everything else, a stop that loses no call.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { generateKey, TokenService } from 'tokenwright';
import {
  bearerGuard,
  fixedAccounts,
  gracefulStop,
  sendResponse,
  tokenHandler,
  toNodeListener,
} from 'tokenwright/http';
import { ScopeCatalog } from 'tokenwright/scope';
import { SqliteTokenStore } from 'tokenwright/sqlite';

export function start(tokens: TokenService): Server {
  const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  const handler = tokenHandler({ tokens, authenticate, basePath: '/auth', onError: console.error });
  const service = toNodeListener(handler);
  const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

  return createServer(async (request, response) => {
    if (request.url?.startsWith('/auth/')) return service(request, response);
    const outcome = await guard(request);
    if (!outcome.ok) return sendResponse(outcome.response, response);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ at: request.url, account: outcome.token.account }));
  }).listen(0, '127.0.0.1');
}

const tokens = new TokenService({
  store: SqliteTokenStore.open(process.env['DATABASE'] ?? ':memory:'),
  keys: [generateKey()], // in production: one that is kept, and the same for all processes
  prefix: 'acme',
  catalog: ScopeCatalog.from(['GET:shop.example/orders', 'POST:shop.example/orders']),
});
const server = start(tokens);
const stop = gracefulStop(server, { graceMs: 5000 }); // before the first connection
async function end(): Promise<number> {
  const cut = await stop();
  await tokens.close();
  return cut;
}
process.once('SIGTERM', end);
await once(server, 'listening');
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const issued = await fetch(`${origin}/auth/token`, {
  method: 'POST',
  headers: {
    authorization: `Basic ${btoa('ada:correct horse')}`,
    'content-type': 'application/json',
  },
  body: JSON.stringify({ scopes: ['GET:shop.example/*'], expiresIn: '1h' }),
});
const { scopes, token } = (await issued.json()) as { scopes: string[]; token: string };
console.log(issued.status, ...scopes); // 200 GET:shop.example/orders

const get = (headers: Record<string, string>) => fetch(`${origin}/orders`, { headers });
console.log((await get({})).status); // 401
console.log(await (await get({ authorization: `Bearer ${token}` })).text()); // {"at":"/orders","account":"ada"}

// What SIGTERM does: the call in progress is answered first.
const last = get({ authorization: `Bearer ${token}` });
await once(server, 'request');
console.log(`${await end()} calls were cut off`); // 0 calls were cut off
console.log((await last).status); // 200
