import { describe, expect, it } from 'vitest';
import { Search } from '../../../../../src/app/console/page/picker/search.ts';
import { setUp } from './support.ts';

const { tree } = setUp([
  'GET:a.example/orders$',
  'POST:a.example/orders$',
  'GET:a.example/orders/{}/items$',
  'GET:b.example/bills$',
]);
const search = new Search(tree);

describe('Search', () => {
  it.each([
    ['orders', 3],
    ['ORDERS', 3],
    ['post orders', 1],
    ['orders get', 2],
    ['GET /orders', 2],
    ['b.example', 1],
    ['GET:a.example/orders$', 1],
    ['{}', 1],
    ['nothing', 0],
    ['', 0],
    ['  ', 0],
    ['.*', 0],
  ])('searches for %j: %i results', (query, total) => {
    expect(search.find(query)).toHaveLength(total);
  });

  it('returns results in the order of the tree', () => {
    expect(search.find('orders').map(({ index }) => index)).toEqual([0, 1, 2]);
  });
});
