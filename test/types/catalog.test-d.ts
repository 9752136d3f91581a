// What must and what must not compile. Each line that must not has one beside it that does.
import { MemoryTokenStore, TokenService } from '../../src/index.ts';
import {
  type CatalogPattern,
  type CatalogScope,
  defineCatalog,
  type Method,
  ScopeCatalog,
  type ScopeText,
  scopeIn,
  type TypedCatalog,
} from '../../src/scope/index.ts';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Equal<A, B>): void => {};

declare const id: string;

const catalog = defineCatalog([
  'GET:shop.example/orders',
  'POST:shop.example/orders/open',
  'GET:a.eu.corp.example/x:y/z',
]);
type Entry = CatalogScope<typeof catalog>;
type Pattern = CatalogPattern<typeof catalog>;

// The literal types, with `as const` and without.
const ENTRIES = ['GET:shop.example/orders', 'POST:shop.example/orders/open'] as const;
const shop = defineCatalog(ENTRIES);
same<CatalogScope<typeof shop>, (typeof ENTRIES)[number]>(true);
same<
  Entry,
  'GET:shop.example/orders' | 'POST:shop.example/orders/open' | 'GET:a.eu.corp.example/x:y/z'
>(true);
same<CatalogScope<ScopeCatalog>, string>(true);

// A typed catalog is a catalog.
const plain: ScopeCatalog = catalog;
plain.expand([id]);
ScopeCatalog.from(catalog).expand([id]);
new TokenService({ store: new MemoryTokenStore(), keys: [], prefix: 'tw', catalog });
new TokenService({ store: new MemoryTokenStore(), keys: [], prefix: 'tw', catalog: () => catalog });
// @ts-expect-error: and not the other way round
const typed: TypedCatalog<Entry> = plain;

// Entries.
defineCatalog(['GET:shop.example/orders']);
// @ts-expect-error: the method is in lower case
defineCatalog(['get:shop.example/orders']);
// @ts-expect-error: no method
defineCatalog([':shop.example/orders']);
// @ts-expect-error: no method and no colon before the slash
defineCatalog(['shop.example/orders:all/x']);
// @ts-expect-error: a method that is a wildcard
defineCatalog(['*:shop.example/orders']);
// @ts-expect-error: a domain in upper case
defineCatalog(['GET:Shop.example/orders']);
// @ts-expect-error: a domain that is a wildcard
defineCatalog(['GET:*/orders']);
// @ts-expect-error: a domain that begins with a wildcard
defineCatalog(['GET:*.example/orders']);
// @ts-expect-error: no domain
defineCatalog(['GET:/orders']);
// @ts-expect-error: a port
defineCatalog(['GET:shop.example:80/orders']);
// @ts-expect-error: no path and no slash
defineCatalog(['GET:shop.example']);
// @ts-expect-error: no path
defineCatalog(['GET:shop.example/']);
// @ts-expect-error: a path that is a wildcard
defineCatalog(['GET:shop.example/*']);
// @ts-expect-error: a slash at the end
defineCatalog(['GET:shop.example/orders/']);
// @ts-expect-error: an empty segment
defineCatalog(['GET:shop.example//orders']);
// @ts-expect-error: a template
defineCatalog(['GET:shop.example/orders/{id}']);
// @ts-expect-error: one bad entry among good ones
defineCatalog(['GET:shop.example/orders', 'GET:shop.example/orders/*']);
// @ts-expect-error: known at run time only
defineCatalog([id]);
ScopeCatalog.from([id]);
defineCatalog(["GET:shop.example/it's/$1:2@3"]);
defineCatalog(['M-SEARCH:shop.example/orders', 'GET:d/a']);
defineCatalog([]);

// Patterns asked for.
catalog.expand(['GET:shop.example/orders', '*:*/*']);
// @ts-expect-error: misspelt
catalog.expand(['GET:shop.example/order', '*:*/*']);
catalog.expand(['GET:shop.example/orders/5']);
// @ts-expect-error: not on a segment boundary
catalog.expand(['GET:shop.example/orders5']);
catalog.expand(['POST:shop.example/orders']);
// @ts-expect-error: a shorter prefix, not on a segment boundary
catalog.expand(['POST:shop.example/ord']);
catalog.expand(['*:shop.example/orders']);
// @ts-expect-error: another method
catalog.expand(['PUT:shop.example/orders']);
catalog.expand(['GET:*.example/*']);
// @ts-expect-error: no entry lies below this parent
catalog.expand(['GET:*.shop.example/*']);
catalog.expand(['*:*.corp.example/x:y']);
// @ts-expect-error: the parent does not end at a dot
catalog.expand(['*:*.orp.example/x:y']);
catalog.expand(['POST:*/orders/open/deep']);
// @ts-expect-error: each part meets an entry, but all three meet none
catalog.expand(['POST:*/x:y/z']);
catalog.expand([`GET:shop.example/orders/${id}`]);
// @ts-expect-error: may name something else than what lies below
catalog.expand([`GET:shop.example/orders${id}`]);
// @ts-expect-error: any method
catalog.expand([`${id}:shop.example/orders`]);
// @ts-expect-error: any domain
catalog.expand([`GET:*.${id}/orders`]);
// @ts-expect-error: any text
catalog.expand([id]);
// @ts-expect-error: a path in a path does not pass for a domain
catalog.expand(['GET:y/z']);
same<ReturnType<typeof catalog.toArray>, Entry[]>(true);

// Annotated ones.
const defaults: Pattern[] = ['GET:shop.example/orders', 'GET:shop.example/orders/5', '*:*/*'];
// @ts-expect-error: misspelt
const misspelt: Pattern[] = ['GET:shop.example/orders', 'GET:shop.example/order'];
const entry: Entry = 'GET:shop.example/orders';
// @ts-expect-error: below an entry, and not one
const below: Entry = 'GET:shop.example/orders/5';
catalog.expand(defaults);
catalog.expand([...defaults, entry]);
// @ts-expect-error: misspelt beside good ones
catalog.expand([...defaults, 'GET:shop.example/order']);
// @ts-expect-error: patterns of a larger catalog
shop.expand(defaults);

declare const ofShop: CatalogPattern<typeof shop>[];
shop.expand(ofShop);
// @ts-expect-error: patterns of a larger catalog beside good ones
shop.expand([...ofShop, ...defaults]);

// One scope.
same<ReturnType<typeof one>, 'GET:shop.example/orders'>(true);
function one() {
  return scopeIn(catalog, 'GET:shop.example/orders');
}
scopeIn(catalog, `GET:shop.example/orders/${id}`);
// @ts-expect-error: misspelt
scopeIn(catalog, 'GET:shop.example/order');
// @ts-expect-error: any text
scopeIn(catalog, id);

// Without a catalog.
const methods: Method[] = ['GET', 'PROPFIND'];
// @ts-expect-error: in lower case
const lower: Method[] = ['GET', 'propfind'];
const texts: ScopeText[] = ['GET:shop.example/orders', '*:*/*', 'PROPFIND:*.example/a'];
// @ts-expect-error: no path
const pathless: ScopeText[] = ['GET:shop.example/orders', 'GET:shop.example'];
// @ts-expect-error: in lower case
const lowerText: ScopeText[] = ['GET:shop.example/orders', 'get:shop.example/orders'];

export { below, lower, lowerText, methods, misspelt, pathless, texts, typed };
