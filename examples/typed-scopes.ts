// Scopes that the compiler knows: a misspelt one does not compile, and neither does a wildcard that meets none.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { type CatalogScope, defineCatalog, scopeIn } from 'tokenwright/scope';

const catalog = defineCatalog([
  'GET:shop.example/orders',
  'POST:shop.example/orders',
  'GET:shop.example/bills',
]);
type ShopScope = CatalogScope<typeof catalog>; // the three, as a union

// Every scope needs its words: one that is forgotten is an error of the compiler.
const words: Record<ShopScope, string> = {
  'GET:shop.example/orders': 'see orders',
  'POST:shop.example/orders': 'place orders',
  'GET:shop.example/bills': 'see bills',
};
const meanings = catalog.toArray().map((scope) => words[scope]);
console.log(meanings.join(', ')); // see bills, see orders, place orders

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  catalog,
});
const asked = scopeIn(catalog, 'GET:shop.example/*');
const { scopes, value } = await tokens.issue({ account: 'ada', scopes: [asked] });
console.log(scopes.length); // 2
console.log((await tokens.verify(value, { scope: scopeIn(catalog, 'GET:shop.example/bills') })).ok); // true

try {
  // @ts-expect-error: there is no `order`
  scopeIn(catalog, 'GET:shop.example/order');
} catch (error) {
  console.log((error as { code: string }).code); // scope_unmatched
}
