// Fastify 5: the token service under /auth, which reads bodies itself, and the guard as an onRequest hook.
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import fastify from 'fastify';
import { generateKey, MemoryTokenStore, type Token, TokenService } from 'tokenwright';
import {
  bearerGuard,
  fastifyGuard,
  fixedAccounts,
  tokenHandler,
  toNodeListener,
} from 'tokenwright/http';

export async function start(tokens: TokenService): Promise<Server> {
  const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  const handler = tokenHandler({ tokens, authenticate, basePath: '/auth', onError: console.error });
  const service = toNodeListener(handler);
  const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

  const app = fastify();
  app.register(async (auth) => {
    auth.removeAllContentTypeParsers();
    auth.addContentTypeParser('*', (_request, _body, done) => done(null));
    auth.all('/auth/*', async (request, reply) => {
      reply.hijack();
      await service(request.raw, reply.raw);
    });
  });
  app.register(async (api) => {
    api.decorateRequest('token', null);
    api.addHook('onRequest', fastifyGuard(guard));
    api.get('/orders/:id', async (request) => {
      const { account } = request.getDecorator<Token>('token');
      return { at: request.originalUrl, account };
    });
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  return app.server;
}

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
const server = await start(tokens);
const { port } = server.address() as AddressInfo;
const orders = `http://127.0.0.1:${port}/orders/7`;
console.log((await fetch(orders)).status); // 401
const response = await fetch(orders, { headers: { authorization: `Bearer ${value}` } });
console.log(await response.text()); // {"at":"/orders/7","account":"ada"}
server.close();
