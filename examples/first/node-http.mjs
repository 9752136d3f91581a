// node:http: a server that answers only to a token. Run it, and call it with the command that it prints.
import { createServer } from 'node:http';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, sendResponse } from 'tokenwright/http';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

const server = createServer(async (request, response) => {
  const outcome = await guard(request);
  if (!outcome.ok) return sendResponse(outcome.response, response);
  response.end(JSON.stringify({ account: outcome.token.account }));
});
server.listen(3000, '127.0.0.1', () => {
  console.log(`curl -H 'Authorization: Bearer ${value}' http://127.0.0.1:3000/orders/7`);
});
