// Seeing what a token is used for, and taking away the rights that it never uses.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  usage: true,
});
const read = 'GET:shop.example/orders';
const write = 'POST:shop.example/orders';
const { id, value } = await tokens.issue({ account: 'acme', scopes: [read, write] });

await tokens.verify(value, { scope: read });
await tokens.verify(value, { scope: read });
await tokens.verify(value, { scope: 'GET:shop.example/invoices' });

const usage = await tokens.usage('acme', id);
console.log(usage?.uses, usage?.refusals); // 2 1
console.log(usage?.scopes.map(({ scope, uses }) => `${scope} ${uses}`).join(', ')); // GET:shop.example/orders 2, POST:shop.example/orders 0

const unused = usage?.scopes.filter(({ uses }) => uses === 0).map(({ scope }) => scope) ?? [];
const { scopes } = await tokens.patch('acme', id, { removeScopes: unused });
console.log(scopes.join()); // GET:shop.example/orders

const token = await tokens.get('acme', id);
console.log(token?.uses, token?.lastUsedAt instanceof Date); // 2 true
await tokens.close(); // writes the counts that are still in memory
