// Seeing what a token is used for, finding the rights that it never uses, and taking them away.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { manualClock } from 'tokenwright/testing';

const clock = manualClock(); // lets months pass here; leave it out in production
const tokens = new TokenService({
  store: new MemoryTokenStore({ clock }),
  keys: [generateKey()],
  prefix: 'acme',
  clock,
  usage: true,
});
const read = 'GET:shop.example/orders';
const write = 'POST:shop.example/orders';
const scopes = [read, write, 'GET:shop.example/invoices'];
const { id, value, version } = await tokens.issue({ account: 'acme', scopes });

clock.advance(100 * 86_400);
await tokens.verify(value, { scope: read });
await tokens.verify(value, { scope: read });
await tokens.verify(value, { scope: 'GET:shop.example/customers' });

const usage = await tokens.usage('acme', id);
console.log(usage?.uses, usage?.refusals); // 2 1
console.log(usage?.scopes.map(({ scope, uses }) => `${scope} ${uses}`)[1]); // GET:shop.example/orders 2
const token = await tokens.get('acme', id);
console.log(token?.uses, token?.lastUsedAt instanceof Date); // 2 true

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
await tokens.close(); // writes the counts that are still in memory
