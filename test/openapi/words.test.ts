import { describe, expect, it } from 'vitest';
import { catalogFromOpenApi } from '../../src/openapi/index.ts';

const at = (scope: string) => scope.replace(' ', ':shop.example/');

function shop(paths: object, more: object = {}) {
  return { openapi: '3.1.0', servers: [{ url: 'https://shop.example' }], paths, ...more };
}

describe('the words of a document', () => {
  it('are those of its operations, and a summary of their path', async () => {
    const catalog = await catalogFromOpenApi(
      shop(
        {
          '/orders/{order_id}': {
            summary: 'An order',
            get: {
              summary: 'Get an\norder',
              tags: ['orders', 'shop'],
              operationId: 'getOrder',
              deprecated: true,
            },
            delete: { tags: [] },
          },
          '/orders': { $ref: '#/components/pathItems/orders' },
        },
        { components: { pathItems: { orders: { get: { summary: 'List orders' } } } } },
      ),
    );

    expect(catalog.words(at('GET orders/{}$'))).toMatchObject({
      summary: 'Get an order',
      tag: 'orders',
      segments: ['order_id'],
      operationId: 'getOrder',
      deprecated: true,
    });
    const others = ['DELETE orders/{}$', 'GET orders$'].map((scope) => catalog.words(at(scope)));
    expect(others.map((words) => [words?.summary, words?.tag, words?.deprecated])).toEqual([
      ['An order', undefined, undefined],
      ['List orders', undefined, undefined],
    ]);
  });

  it.each([
    ['/a/{owner}/{repo}', 'a/{}/{}$', ['owner', 'repo']],
    ['/a/{year}-{month}', 'a/{}$', ['year-month']],
    ['/a/{id}.json', 'a/{}$', ['id.json']],
    ['/a/{id:int}', 'a/{}$', ['id']],
    ['/a/{name=projects/*/keys/*}', 'a/projects/{}/keys/{}$', ['name', 'name']],
    ['/a/{id}/b/{rest+}', 'a/{}/b', ['id']],
    ['/a', 'a$', undefined],
  ])('names the parameters of %s', async (path, scope, segments) => {
    const catalog = await catalogFromOpenApi(shop({ [path]: { get: {} } }));

    expect(catalog.words(at(`GET ${scope}`))?.segments).toEqual(segments);
  });

  it('names the parameters of a server, of an optional segment and of an x-scope', async () => {
    const servers = [{ url: 'https://shop.example/{tenant}' }];
    const paths = {
      '/a/{id?}': { get: {} },
      '/b/{id}': { get: { 'x-scope': 'b/{key}/one$', tags: ['b'] } },
    };
    const catalog = await catalogFromOpenApi(shop(paths, { servers }));

    expect(catalog.toArray().map((scope) => [scope, catalog.words(scope)?.segments])).toEqual([
      [at('GET b/{}/one$'), ['key']],
      [at('GET {}/a$'), ['tenant']],
      [at('GET {}/a/{}$'), ['tenant', 'id']],
    ]);
  });

  it('of operations that share an entry are all kept', async () => {
    const catalog = await catalogFromOpenApi(
      shop({
        '/orders': { get: { summary: 'List orders', tags: ['orders'] } },
        '/orders?status=open': { get: { summary: 'List open orders', tags: ['open'] } },
      }),
    );

    const words = catalog.words(at('GET orders$'));
    expect(words?.operations.map(({ summary }) => summary)).toEqual([
      'List orders',
      'List open orders',
    ]);
    expect(catalog.permissions().map(({ tag, read }) => [tag, read])).toEqual([
      ['orders', [at('GET orders$')]],
      ['open', [at('GET orders$')]],
    ]);
  });

  it.each<[string, unknown, unknown]>([
    ['a summary that is not text', { summary: { text: 'x' } }, undefined],
    ['a summary of 10 000 characters', { summary: 'x'.repeat(10_000) }, 'x'.repeat(200)],
    ['markup and marks of direction', { summary: '<img onerror>\u202e' }, '<img onerror>'],
    ['an empty summary', { summary: '' }, undefined],
    ['tags that are not a list', { tags: 'orders' }, undefined],
    ['a tag that is not text', { tags: [{}], summary: 'Get' }, 'Get'],
  ])('take %s', async (_, operation, summary) => {
    const catalog = await catalogFromOpenApi(shop({ '/orders': { get: operation } }));

    expect(catalog.words(at('GET orders$'))?.summary).toBe(summary);
    expect(catalog.permissions().map(({ tag }) => tag)).toEqual(['orders']);
  });
});

describe('the permissions of documents', () => {
  const operation = (...tags: string[]) => ({ get: { tags }, post: { tags } });

  it('are in the order of their tags, with descriptions, and others after these', async () => {
    const catalog = await catalogFromOpenApi(
      shop(
        {
          '/a': operation('first'),
          '/b': operation('second'),
          '/c': { get: {} },
          '/d': operation('third'),
        },
        {
          tags: [
            { name: 'third', description: 'What comes **last**\nhere' },
            { name: 'unused' },
            { name: 'first' },
            7,
          ],
        },
      ),
    );

    expect(catalog.permissions().map(({ tag, description }) => [tag, description])).toEqual([
      ['third', 'What comes **last** here'],
      ['first', undefined],
      ['second', undefined],
      ['c', undefined],
    ]);
  });

  it('never merge tags of two hosts, and keep the order of the documents', async () => {
    const bills = shop(
      { '/bills': operation('orders'), '/more': operation('more') },
      {
        servers: [{ url: 'https://bills.example' }],
        tags: [{ name: 'orders', description: 'Bills' }],
      },
    );
    const orders = shop(
      { '/orders': operation('orders') },
      { tags: [{ name: 'orders', description: 'Orders' }] },
    );
    const permissions = (await catalogFromOpenApi([orders, bills])).permissions();

    expect(permissions.map(({ tag, domain, description }) => [tag, domain, description])).toEqual([
      ['orders', 'shop.example', 'Orders'],
      ['orders', 'bills.example', 'Bills'],
      ['more', 'bills.example', undefined],
    ]);
  });

  it('are one for each host of a document', async () => {
    const servers = ['a', 'b'].map((name) => ({ url: `https://${name}.example` }));
    const catalog = await catalogFromOpenApi(shop({ '/x': operation('x') }, { servers }));

    expect(catalog.permissions().map(({ domain, write }) => [domain, write.length])).toEqual([
      ['a.example', 2],
      ['b.example', 2],
    ]);
  });
});
