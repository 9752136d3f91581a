// A catalog made of your OpenAPI document, and what the next version of the document would change.
import { catalogDiff, readOpenApi } from 'tokenwright/openapi';

const version1 = {
  openapi: '3.1.0',
  servers: [{ url: 'https://shop.example/v1' }],
  paths: {
    '/orders': { get: {}, post: {} },
    '/orders/{id}': { get: {}, delete: {} },
    '/orders/export': { get: { 'x-scope': 'v1/exports' } }, // a scope of its own
  },
};
const { catalog, merged } = await readOpenApi(version1);
const [first, second, ...others] = catalog.toArray();
console.log(first); // DELETE:shop.example/v1/orders
console.log(second); // GET:shop.example/v1/exports
console.log(...others); // GET:shop.example/v1/orders POST:shop.example/v1/orders

// A scope stands for all that lies below it: these operations can only be granted together.
const [both] = merged;
console.log(both?.operations.map(({ path }) => path).join(' ')); // /orders /orders/{id}

// The next version has no `DELETE`, and has bills. Does it break a token that is out?
const version2 = {
  ...version1,
  paths: { '/orders': { get: {}, post: {} }, '/bills': { get: {} } },
};
const next = await readOpenApi(version2);
const token = {
  id: 'a',
  scopes: [...catalog].map(String),
  requested: ['*:shop.example/v1/orders'],
};
const change = catalogDiff(catalog, next.catalog, { tokens: [token] });
console.log('new', ...change.added); // new GET:shop.example/v1/bills
console.log('gone', ...change.removed); // gone DELETE:shop.example/v1/orders GET:shop.example/v1/exports
console.log(change.isBreaking); // true
