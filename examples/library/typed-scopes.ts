// Scopes that the compiler knows: a misspelled one does not compile, and neither does a wildcard that meets none.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { type CatalogScope, defineCatalog, scopeIn } from 'tokenwright/scope';

const catalog = defineCatalog([
  'GET:shop.example/orders$',
  'POST:shop.example/orders$',
  'GET:shop.example/orders/{}$',
]);
type ShopScope = CatalogScope<typeof catalog>; // the three, as a union

// Every scope needs its words: one that is forgotten is an error of the compiler.
const words: Record<ShopScope, string> = {
  'GET:shop.example/orders$': 'list orders',
  'POST:shop.example/orders$': 'place orders',
  'GET:shop.example/orders/{}$': 'see an order',
};
const meanings = catalog.toArray().map((scope) => words[scope]);
console.log(meanings.join(', ')); // list orders, see an order, place orders

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  catalog,
});
const { scopes, value } = await tokens.issue({
  account: 'ada',
  scopes: ['GET:shop.example/orders'],
});
console.log(...scopes); // GET:shop.example/orders$ GET:shop.example/orders/{}$
console.log(await tokens.allows(value, { scope: 'GET:shop.example/orders/7$' })); // true

try {
  // @ts-expect-error: there is no `order`
  await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/order'] });
} catch (error) {
  console.log((error as { code: string }).code); // scope_unmatched
}

// A constant is checked where it is written, a text that is known only at run time when it is used.
const placing = scopeIn(catalog, 'POST:shop.example/orders$');
const fromForm: string = 'GET:shop.example/orders$';
console.log((await tokens.issue({ account: 'ada', scopes: [placing, fromForm] })).scopes.length); // 2
