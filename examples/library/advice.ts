// Finding the rights that a token does not use, taking them away, and reviewing all tokens.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { manualClock } from 'tokenwright/testing';

const clock = manualClock(); // lets months pass here; leave it out in production
const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  clock,
  usage: true,
});
const read = 'GET:shop.example/orders';
const scopes = [read, 'POST:shop.example/orders', 'GET:shop.example/invoices'];
const { id, value, version } = await tokens.issue({ account: 'acme', scopes });
clock.advance(100 * 86_400);
await tokens.verify(value, { scope: read });

const advice = await tokens.advise('acme', id, { unusedForDays: 90 });
console.log(advice?.unused.join()); // GET:shop.example/invoices,POST:shop.example/orders
console.log(advice?.kept.join()); // GET:shop.example/orders

for await (const { code, scopes } of tokens.review()) {
  console.log(code, scopes?.length); // excess 2
}

if (advice !== undefined && advice.unused.length > 0 && advice.kept.length > 0) {
  const change = { removeScopes: advice.unused };
  const { diff } = await tokens.patch('acme', id, change, { dryRun: true });
  console.log(diff?.removed.length); // 2
  await tokens.patch('acme', id, change, { ifVersion: version });
}
console.log((await tokens.get('acme', id))?.scopes.join()); // GET:shop.example/orders
await tokens.close();
