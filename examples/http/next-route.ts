// Route handlers as Next.js wants them: the token service as a catch-all, and a route behind the guard.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import {
  type BearerGuard,
  bearerGuard,
  fixedAccounts,
  nextGuard,
  type TokenHandler,
  tokenHandler,
} from 'tokenwright/http';

/** In `app/auth/[...path]/route.ts`: `export const { GET, POST, PUT, PATCH, DELETE } = serviceRoute(tokens)`. */
export function serviceRoute(
  tokens: TokenService,
): Record<'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', TokenHandler> {
  const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  const handler = tokenHandler({ tokens, authenticate, basePath: '/auth', onError: console.error });
  return { GET: handler, POST: handler, PUT: handler, PATCH: handler, DELETE: handler };
}

type Context<Params> = { readonly params: Promise<Params> };

/** In `app/orders/[id]/route.ts`: `export const { GET } = orderRoute(guard)`. */
export function orderRoute(guard: BearerGuard): {
  GET: (request: Request, context: Context<{ id: string }>) => Promise<Response>;
} {
  const guarded = nextGuard(guard);
  return {
    GET: guarded(async (_request, { params, token }) => {
      const { id } = await params;
      return Response.json({ at: `/orders/${id}`, account: token.account });
    }),
  };
}

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
const { GET } = orderRoute(bearerGuard({ tokens, domain: 'shop.example', onError: console.error }));
const context = { params: Promise.resolve({ id: '7' }) };
const get = (headers: Record<string, string>) =>
  GET(new Request('https://shop.example/orders/7', { headers }), context);
console.log((await get({})).status); // 401
console.log(await (await get({ authorization: `Bearer ${value}` })).text()); // {"at":"/orders/7","account":"ada"}
