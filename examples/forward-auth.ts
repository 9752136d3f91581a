// A check over HTTP for gateways: nginx, Traefik or Envoy asks it about each request before passing it on.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, sendResponse } from 'tokenwright/http';

/** Where each says which request it means. Of these one is read: a caller can fill in the others. */
const GATEWAYS = {
  nginx: ({ headers: told }: IncomingMessage) => [
    told['x-original-method'],
    told['x-original-uri'],
  ],
  traefik: ({ headers: told }: IncomingMessage) => [
    told['x-forwarded-method'],
    told['x-forwarded-uri'],
  ],
  envoy: ({ method, url }: IncomingMessage) => [method, url],
};

/** Listens where the gateway alone can call it: whoever can, says what was asked. */
export function start(tokens: TokenService, gateway: keyof typeof GATEWAYS, port = 0): Server {
  const guard = bearerGuard({ tokens, domain: 'shop.example' });
  const read = GATEWAYS[gateway];
  return createServer(async (request, response) => {
    const [method, url] = read(request);
    if (typeof method !== 'string' || typeof url !== 'string') {
      return response.writeHead(500).end('the gateway has to say method and target');
    }
    const { headers, rawHeaders } = request;
    const outcome = await guard({ method, url, headers, rawHeaders });
    if (outcome.ok) {
      response.setHeader('x-account', encodeURIComponent(outcome.token.account));
      return response.end();
    }
    const { body, status, headers: answered } = outcome.response;
    // nginx knows two refusals, 401 and 403, and makes 500 of any other.
    const known = { status: status === 400 ? 403 : status, headers: answered };
    return sendResponse(new Response(body, known), response);
  }).listen(port, '127.0.0.1');
}

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });

async function ask(gateway: keyof typeof GATEWAYS, path: string, told: Record<string, string>) {
  const server = start(tokens, gateway);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const headers = { authorization: `Bearer ${value}`, ...told };
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
  server.close();
  return response;
}
const nginx = (method: string, target: string) =>
  ask('nginx', '/', { 'x-original-method': method, 'x-original-uri': target });
const allowed = await nginx('GET', '/orders/7');
console.log(allowed.status, allowed.headers.get('x-account')); // 200 ada
const { status, headers } = await nginx('POST', '/orders');
console.log(status, headers.get('www-authenticate')?.split(', ')[1]); // 403 error="insufficient_scope"
console.log((await nginx('GET', '/orders/..%2Fbills')).status); // 403
console.log((await ask('nginx', '/orders', {})).status); // 500

const told = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/orders/7' };
console.log((await ask('traefik', '/', told)).status, (await ask('nginx', '/', told)).status); // 200 500
console.log((await ask('envoy', '/orders/7', {})).status); // 200
console.log((await ask('envoy', '/orders/7', { authorization: '' })).status); // 401
