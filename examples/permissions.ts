// Reason about permissions without tokens: what is allowed, why not, and what a change gives and takes.
import { defineCatalog, ScopeSet } from 'tokenwright/scope';

const catalog = defineCatalog(['GET:shop.example/orders', 'POST:shop.example/orders']);
console.log(catalog.expand(['*:shop.example/*']).granted.length); // 2

const held = ScopeSet.from(['GET:shop.example/orders']);
const request = { method: 'POST', domain: 'shop.example', target: '/orders/7' };
console.log(held.allows(request).allowed); // false

const why = held.explain(request, catalog);
console.log('nearest' in why && why.nearest?.failed); // method
console.log('smallest' in why && String(why.smallest)); // POST:shop.example/orders/7

const change = held.diff(['GET:shop.example/orders/open', 'POST:shop.example/orders']);
console.log('gives', ...change.added); // gives POST:shop.example/orders
console.log('takes', ...change.removed); // takes GET:shop.example/orders
