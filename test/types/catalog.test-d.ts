// Lines that must compile, and lines that must not. Each line that must not has a similar one beside it
// that does.

import { MemoryTokenStore, TokenService } from '../../src/index.ts';
import {
  type CatalogPattern,
  type CatalogScope,
  defineCatalog,
  type Method,
  ScopeCatalog,
  scopeIn,
  type TypedCatalog,
} from '../../src/scope/index.ts';
import type { ScopeText } from '../../src/scope/typed.ts';
import { same } from './same.ts';

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
// @ts-expect-error: a plain catalog is not a typed one
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
defineCatalog(['GET:shop.example/orders/{id}', 'GET:shop.example/{}/{}/a$', 'GET:shop.example/$']);
// @ts-expect-error: a template that is a part of a segment
defineCatalog(['GET:shop.example/orders/a{id}']);
// @ts-expect-error: a template with text behind it
defineCatalog(['GET:shop.example/orders/{id}.json$']);
// @ts-expect-error: two templates in one segment
defineCatalog(['GET:shop.example/{a}{b}']);
// @ts-expect-error: a brace in a name
defineCatalog(['GET:shop.example/{a{b}']);
// @ts-expect-error: a brace that is not closed
defineCatalog(['GET:shop.example/orders/{id']);
// @ts-expect-error: a brace that is not opened
defineCatalog(['GET:shop.example/orders/id}/{id}']);
// @ts-expect-error: a slash in a name
defineCatalog(['GET:shop.example/{a/b}']);
// @ts-expect-error: a slash at the end of a closed path
defineCatalog(['GET:shop.example/orders/$']);
// @ts-expect-error: a query
defineCatalog(['GET:shop.example/orders?a']);
// @ts-expect-error: percent-encoding
defineCatalog(['GET:shop.example/a%20b']);
// @ts-expect-error: one bad entry among good ones
defineCatalog(['GET:shop.example/orders', 'GET:shop.example/orders/*']);
// @ts-expect-error: known at run time only
defineCatalog([id]);
ScopeCatalog.from([id]);
defineCatalog(["GET:shop.example/it's/$1:2@3", 'GET:shop.example/a/$$', 'GET:shop.example/$/a']);
defineCatalog(['M-SEARCH:shop.example/orders', 'GET:d/a']);
defineCatalog([]);

// Requested patterns.
catalog.expand(['GET:shop.example/orders', '*:*/*']);
// @ts-expect-error: misspelled
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
// @ts-expect-error: could name something other than a path below
catalog.expand([`GET:shop.example/orders${id}`]);
// @ts-expect-error: any method
catalog.expand([`${id}:shop.example/orders`]);
// @ts-expect-error: any domain
catalog.expand([`GET:*.${id}/orders`]);
// @ts-expect-error: any text
catalog.expand([id]);
// @ts-expect-error: a part of a path is not a domain
catalog.expand(['GET:y/z']);
same<ReturnType<typeof catalog.toArray>, Entry[]>(true);

// Annotated patterns.
const defaults: Pattern[] = ['GET:shop.example/orders', 'GET:shop.example/orders/5', '*:*/*'];
// @ts-expect-error: misspelled
const misspelled: Pattern[] = ['GET:shop.example/orders', 'GET:shop.example/order'];
const entry: Entry = 'GET:shop.example/orders';
// @ts-expect-error: below an entry, and not one
const below: Entry = 'GET:shop.example/orders/5';
catalog.expand(defaults);
catalog.expand([...defaults, entry]);
// @ts-expect-error: misspelled beside good ones
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
// @ts-expect-error: misspelled
scopeIn(catalog, 'GET:shop.example/order');
// @ts-expect-error: any text
scopeIn(catalog, id);

// Templates and closed paths.
const hub = defineCatalog([
  'GET:api.example/repos/{owner}/{repo}/issues$',
  'GET:api.example/repos/{}/{}/git',
  'POST:api.example/orders/{order}$',
  'GET:api.example/$',
]);
same<
  CatalogScope<typeof hub>,
  | 'GET:api.example/repos/{}/{}/issues$'
  | 'GET:api.example/repos/{}/{}/git'
  | 'POST:api.example/orders/{}$'
  | 'GET:api.example/$'
>(true);
scopeIn(hub, 'GET:api.example/repos/acme/site/issues$');
// @ts-expect-error: misspelled
scopeIn(hub, 'GET:api.example/repos/acme/site/isues$');
scopeIn(hub, 'GET:api.example/repos/acme/site/issues');
// @ts-expect-error: below a closed entry
scopeIn(hub, 'GET:api.example/repos/acme/site/issues/7');
scopeIn(hub, 'GET:api.example/repos/acme/site/git/refs$');
// @ts-expect-error: closed above every entry
scopeIn(hub, 'GET:api.example/repos/acme/site$');
scopeIn(hub, 'GET:api.example/repos/acme/site');
// @ts-expect-error: above every entry of this method
scopeIn(hub, 'POST:api.example/repos/acme/site');
scopeIn(hub, 'POST:api.example/orders/{}$');
scopeIn(hub, 'POST:api.example/orders/{id}$');
// @ts-expect-error: a template that is a part of a segment
scopeIn(hub, 'POST:api.example/orders/a{id}$');
scopeIn(hub, 'GET:api.example/{}/{}/{}/{kind}$');
// @ts-expect-error: longer than every closed entry, and another literal than the open one
scopeIn(hub, 'GET:api.example/{}/{}/{}/issues/{}$');
scopeIn(hub, 'GET:api.example/{}/{}/{}/{}/refs');
scopeIn(hub, 'GET:api.example/$');
// @ts-expect-error: there is no such root
scopeIn(hub, 'POST:api.example/$');
scopeIn(hub, 'POST:*.example/{}');
// @ts-expect-error: a wildcard that is not the whole path
scopeIn(hub, 'POST:api.example/orders/*');
// @ts-expect-error: a slash at the end
scopeIn(hub, 'GET:api.example/repos/acme/site/git/');
scopeIn(hub, `GET:api.example/repos/${id}/${id}/issues$`);
// @ts-expect-error: misspelled
scopeIn(hub, `GET:api.example/repos/${id}/${id}/isues$`);
scopeIn(hub, `*:*.example/repos/${id}/${id}/issues$`);
// @ts-expect-error: no entry has a template here
scopeIn(hub, `GET:api.example/${id}/acme/site/issues$`);
hub.expand([`POST:api.example/orders/${id}$`, `POST:api.example/orders/A-${id}$`]);
// @ts-expect-error: a variable part where the entry has a literal
hub.expand([`POST:api.example/ord${id}/7$`]);

type HubPattern = CatalogPattern<typeof hub>;
const ofHub: HubPattern[] = [
  'GET:api.example/repos/{}/{}/issues$',
  'GET:api.example/repos/acme/site/issues$',
  'GET:api.example/repos/acme/site/git/refs/7$',
  '*:*.example/repos/{}/{}/issues',
  '*:*.example/repos/{}',
  `POST:api.example/orders/${id}$`,
  '*:*/$',
];
hub.expand(ofHub);
// @ts-expect-error: misspelled
const offHub: HubPattern[] = [...ofHub, 'GET:api.example/repos/acme/site/isues$'];
// @ts-expect-error: an annotation accepts filled templates only in a whole entry
const partOfHub: HubPattern[] = [...ofHub, 'GET:api.example/repos/acme'];

// Without a catalog.
const methods: Method[] = ['GET', 'PROPFIND'];
// @ts-expect-error: in lower case
const lower: Method[] = ['GET', 'propfind'];
const texts: ScopeText[] = ['GET:shop.example/orders', '*:*/*', 'PROPFIND:*.example/a'];
// @ts-expect-error: no path
const pathless: ScopeText[] = ['GET:shop.example/orders', 'GET:shop.example'];
// @ts-expect-error: in lower case
const lowerText: ScopeText[] = ['GET:shop.example/orders', 'get:shop.example/orders'];

export { below, lower, lowerText, methods, misspelled, offHub, partOfHub, pathless, texts, typed };
