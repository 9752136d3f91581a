// Next.js: a guarded route handler, as in app/orders/[id]/route.js, and two calls of it without a server.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, nextGuard } from 'tokenwright/http';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

export const GET = nextGuard(guard)(async (_request, { params, token }) => {
  return Response.json({ id: (await params).id, account: token.account });
});

const call = (headers) => {
  const request = new Request('https://shop.example/orders/7', { headers });
  return GET(request, { params: Promise.resolve({ id: '7' }) });
};
console.log((await call({})).status); // 401
console.log(await (await call({ authorization: `Bearer ${value}` })).text()); // {"id":"7","account":"ada"}
