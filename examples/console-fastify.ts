// The console in Fastify: a hook puts who is signed in on Node's request, where the token service sees it.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import fastify from 'fastify';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { tokenConsole } from 'tokenwright/console';
import { tokenHandler, toNodeListener } from 'tokenwright/http';

type Incoming = IncomingMessage & { account?: string | undefined };

/** In production: the sessions of a plugin, such as @fastify/session. */
const sessions = new Map<string, string>();

export async function start(tokens: TokenService): Promise<Server> {
  const service = toNodeListener(
    tokenHandler({
      tokens,
      basePath: '/auth',
      session: (_request, incoming: Incoming) => incoming.account ?? null,
    }),
  );
  const page = toNodeListener(tokenConsole({ basePath: '/settings/tokens', api: '/auth' }));

  const app = fastify();
  app.post('/sign-in', async (_request, reply) => {
    // In production: only after you have checked who this is.
    const id = randomUUID();
    sessions.set(id, 'ada');
    return reply.header('set-cookie', `sid=${id}; HttpOnly; SameSite=Lax; Path=/`).code(204).send();
  });
  app.register(async (part) => {
    // The token service reads bodies itself.
    part.removeAllContentTypeParsers();
    part.addContentTypeParser('*', (_request, _body, done) => done(null));
    part.addHook('onRequest', async ({ raw, headers }) => {
      const [, id = ''] = /(?:^|; )sid=([^;]*)/.exec(headers.cookie ?? '') ?? [];
      (raw as Incoming).account = sessions.get(id);
    });
    for (const [path, listener] of [
      ['/auth/*', service],
      ['/settings/tokens', page],
      ['/settings/tokens/*', page],
    ] as const) {
      part.all(path, async (request, reply) => {
        reply.hijack();
        await listener(request.raw, reply.raw);
      });
    }
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  return app.server;
}

const store = new MemoryTokenStore();
const server = await start(new TokenService({ store, keys: [generateKey()], prefix: 'acme' }));
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const signedIn = await fetch(`${origin}/sign-in`, { method: 'POST' });
const [cookie = ''] = signedIn.headers.get('set-cookie')?.split(';') ?? [];
console.log((await fetch(`${origin}/settings/tokens`)).headers.get('content-type')); // text/html; charset=utf-8
console.log((await fetch(`${origin}/auth/token`)).status); // 401
console.log((await fetch(`${origin}/auth/token`, { headers: { cookie } })).status); // 200
server.close();
