// Fastify: the guard as a hook before all routes. Run it, and call it with the command that it prints.
import fastify from 'fastify';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, fastifyGuard } from 'tokenwright/http';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

const app = fastify();
app.decorateRequest('token', null);
app.addHook('onRequest', fastifyGuard(guard));
app.get('/orders/:id', async (request) => ({ account: request.token.account }));
await app.listen({ port: 3000 });
console.log(`curl -H 'Authorization: Bearer ${value}' http://127.0.0.1:3000/orders/7`);
