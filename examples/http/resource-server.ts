// A resource server of its own: it checks tokens with verifier keys, and can neither mint nor reveal one.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, sendResponse } from 'tokenwright/http';

export function start(tokens: TokenService): Server {
  const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });
  return createServer(async (request, response) => {
    const outcome = await guard(request);
    if (!outcome.ok) return sendResponse(outcome.response, response);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ at: request.url, account: outcome.token.account }));
  }).listen(0, '127.0.0.1');
}

// Where tokens are issued, the keys are whole. In production the store is a database that both reach.
const store = new MemoryTokenStore();
const issuer = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const { value } = await issuer.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });

// What is handed to the resource server opens nothing.
const verifier = new TokenService({ store, keys: issuer.verifierKeys(), prefix: 'acme' });
const input = { account: 'ada', scopes: ['GET:shop.example/orders'] };
await verifier.issue(input).catch(({ code }) => console.log(code)); // invalid_options

const server = start(verifier);
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
const orders = `http://127.0.0.1:${port}/orders/7`;
console.log((await fetch(orders)).status); // 401
const response = await fetch(orders, { headers: { authorization: `Bearer ${value}` } });
console.log(await response.text()); // {"at":"/orders/7","account":"ada"}
server.close();
