// A catalog made of your OpenAPI document, and what the next version of the document would change.
import { catalogDiff, readOpenApi } from 'tokenwright/openapi';

const version1 = {
  openapi: '3.1.0',
  servers: [{ url: 'https://shop.example/v1' }],
  paths: {
    '/orders': { get: {}, post: {} },
    '/orders/{id}': { get: {}, delete: {} },
    '/orders/{id}.pdf': { get: {} },
  },
};
const { catalog, merged } = await readOpenApi(version1);
const [first, second, ...others] = catalog.toArray();
console.log(first); // DELETE:shop.example/v1/orders/{}$
console.log(second); // GET:shop.example/v1/orders$
console.log(...others); // GET:shop.example/v1/orders/{}$ POST:shop.example/v1/orders$

// A template in a part of a segment is the whole segment: these operations can only be granted together.
const [both] = merged;
console.log(both?.operations.map(({ path }) => path).join(' ')); // /orders/{id} /orders/{id}.pdf

// The path of one order is enough to ask for all that can be done with it.
console.log(catalog.expand(['GET:shop.example/v1/orders/7']).granted); // [ 'GET:shop.example/v1/orders/7$' ]

// The next version has no `DELETE`, and has bills. Does it break a token that is out?
const version2 = {
  ...version1,
  paths: { '/orders': { get: {}, post: {} }, '/orders/{id}': { get: {} }, '/bills': { get: {} } },
};
const next = await readOpenApi(version2);
const token = {
  id: 'a',
  scopes: [...catalog].map(String),
  requested: ['*:shop.example/v1/orders'],
};
const change = catalogDiff(catalog, next.catalog, { tokens: [token] });
console.log('new', ...change.added); // new GET:shop.example/v1/bills$
console.log('gone', ...change.removed); // gone DELETE:shop.example/v1/orders/{}$
console.log(change.isBreaking); // true
