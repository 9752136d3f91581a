// Reason about permissions without tokens: what is allowed, why not, and what a change gives and takes.
import { ScopeCatalog, ScopeSet } from 'tokenwright/scope';

const catalog = ScopeCatalog.from([
  'GET:shop.example/orders$',
  'GET:shop.example/orders/{}$',
  'GET:shop.example/orders/export$',
]);
console.log(...catalog.expand(['GET:shop.example/orders/7']).granted); // GET:shop.example/orders/7$

const held = ScopeSet.from(['GET:shop.example/orders/{}$']);
const allows = (target: string) => {
  const reading = catalog.readRequest({ method: 'GET', domain: 'shop.example', target });
  return reading.ok && held.allows(reading.request).allowed;
};
console.log(allows('/orders'), allows('/orders/7'), allows('/orders/export')); // false true false

const why = held.explain({ method: 'POST', domain: 'shop.example', target: '/orders/7' });
console.log('nearest' in why && why.nearest?.failed); // method
console.log('smallest' in why && String(why.smallest)); // POST:shop.example/orders/7$

const change = held.diff(['GET:shop.example/orders$', 'GET:shop.example/orders/7$']);
console.log('gives', ...change.added); // gives GET:shop.example/orders$
console.log('takes', ...change.removed); // takes GET:shop.example/orders/{}$
