// Koa: one guard before everything. Run it, and call it with the command that it prints.
import Koa from 'koa';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, koaGuard } from 'tokenwright/http';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

const app = new Koa();
app.use(koaGuard(guard));
app.use((ctx) => {
  ctx.body = { account: ctx.state.token.account };
});
app.listen(3000, '127.0.0.1', () => {
  console.log(`curl -H 'Authorization: Bearer ${value}' http://127.0.0.1:3000/orders/7`);
});
