import { describe, expect, it } from 'vitest';
import { parseScope } from '../../src/scope/index.ts';
import { Search } from '../../src/scope/search.ts';
import type { EndpointWords } from '../../src/scope/words.ts';

function item(text: string, words: EndpointWords = {}) {
  return { scope: parseScope(text), words };
}

describe('Search', () => {
  const plain = new Search([
    item('GET:a.example/orders$'),
    item('POST:a.example/orders$'),
    item('GET:a.example/orders/{}/items$'),
    item('GET:b.example/bills$'),
  ]);

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
    expect(plain.find(query)).toHaveLength(total);
  });

  it('returns results of the same worth in the order of the items', () => {
    expect(plain.find('orders').map(({ scope }) => String(scope))).toEqual([
      'GET:a.example/orders$',
      'POST:a.example/orders$',
      'GET:a.example/orders/{}/items$',
    ]);
  });

  const worded = new Search([
    item('GET:a.example/issues/{}/merge$', { summary: 'Check something', segments: ['number'] }),
    item('POST:a.example/issues/{}/comments$', { summary: 'Create an issue comment' }),
    item('POST:a.example/issues$', { summary: 'Create an issue', tag: 'issues' }),
    item('PUT:a.example/pulls/{}/m$', {
      summary: 'Merge a pull request',
      tag: 'pulls',
      segments: ['pull_number'],
    }),
    item('GET:a.example/list$', { summary: 'List some', deprecated: true }),
    item('GET:a.example/lists$', { summary: 'List all of them, one after the other' }),
  ]);

  it.each([
    ['create an issue', 'POST:a.example/issues$'],
    ['issue create', 'POST:a.example/issues$'],
    ['comment issue', 'POST:a.example/issues/{}/comments$'],
    ['merge', 'PUT:a.example/pulls/{}/m$'],
    ['number', 'GET:a.example/issues/{}/merge$'],
    ['comments', 'POST:a.example/issues/{}/comments$'],
    ['create issues', 'POST:a.example/issues$'],
    ['pull_number', 'PUT:a.example/pulls/{}/m$'],
    ['list', 'GET:a.example/lists$'],
    ['delete an issue', undefined],
  ])('finds what %j means at first place', (query, first) => {
    expect(worded.find(query)[0]?.scope.toString()).toBe(first);
  });
});
