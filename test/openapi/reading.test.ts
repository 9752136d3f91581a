import { describe, expect, it } from 'vitest';
import { catalogFromOpenApi, readOpenApi } from '../../src/openapi/index.ts';

const SHOP = { openapi: '3.1.0', servers: [{ url: 'https://shop.example' }] };

describe('readOpenApi', () => {
  it('reports the operations that each entry was made from', async () => {
    const paths = {
      '/orders/{id}': { get: { operationId: 'getOrder', deprecated: true } },
      '/orders/{id}.json': { post: {}, get: { operationId: 7, deprecated: 'yes' } },
    };

    const { catalog, entries } = await readOpenApi({ ...SHOP, paths });

    expect(entries).toEqual([
      {
        scope: 'GET:shop.example/orders/{}$',
        operations: [
          {
            document: 0,
            method: 'GET',
            path: '/orders/{id}',
            operationId: 'getOrder',
            segments: ['id'],
            deprecated: true,
          },
          {
            document: 0,
            method: 'GET',
            path: '/orders/{id}.json',
            segments: ['id.json'],
            deprecated: false,
          },
        ],
      },
      {
        scope: 'POST:shop.example/orders/{}$',
        operations: [
          {
            document: 0,
            method: 'POST',
            path: '/orders/{id}.json',
            segments: ['id.json'],
            deprecated: false,
          },
        ],
      },
    ]);
    expect(catalog.toArray()).toEqual(entries.map(({ scope }) => scope));
  });

  it.each([
    [
      'all of its operations are',
      { '/a': { get: { deprecated: true } }, '/a/': { get: { deprecated: true } } },
      true,
    ],
    ['only one of two is', { '/a': { get: { deprecated: true } }, '/a/': { get: {} } }, false],
    ['another method is', { '/a': { get: {}, put: { deprecated: true } } }, false],
    ['its flag is a text', { '/a': { get: { deprecated: 'true' } } }, false],
  ])('reports a scope as deprecated when %s: $2', async (_, paths, expected) => {
    const { deprecated } = await readOpenApi({ ...SHOP, paths });
    expect(deprecated.includes('GET:shop.example/a$')).toBe(expected);
  });

  it.each([
    ['paths that differ by a template', [{ '/a': { get: {} }, '/a/{id}': { get: {} } }], 0],
    [
      'a template with and without a suffix',
      [{ '/a/{id}': { get: {} }, '/a/{id}.json': { get: {} } }],
      2,
    ],
    ['a path with and without a trailing slash', [{ '/a': { get: {} }, '/a/': { get: {} } }], 2],
    ['paths of two documents', [{ '/a/{id}': { get: {} } }, { '/a/{name}': { get: {} } }], 2],
    ['a path and an equal x-scope', [{ '/a': { get: {} }, '/b': { get: { 'x-scope': 'a$' } } }], 2],
    ['a path and an open x-scope', [{ '/a': { get: {} }, '/b': { get: { 'x-scope': 'a' } } }], 0],
    ['the same path in two documents', [{ '/a': { get: {} } }, { '/a': { get: {} } }], 0],
    ['two methods of a path', [{ '/a': { get: {}, put: {} } }], 0],
    ['a path below another', [{ '/a': { get: {} }, '/a/b': { get: {} } }], 0],
  ])('reports different operations that share an entry: %s', async (_, list, count) => {
    const { merged } = await readOpenApi(list.map((paths) => ({ ...SHOP, paths })));
    expect(merged.flatMap(({ operations }) => operations)).toHaveLength(count);
  });

  it('reports the operations that share a prefix', async () => {
    const paths = {
      '/a': { get: {} },
      '/a/{id}': { get: { deprecated: true } },
      '/b': { get: {} },
    };
    const { merged, deprecated } = await readOpenApi({ ...SHOP, paths }, { granularity: 'prefix' });
    expect(merged.map(({ scope }) => scope)).toEqual(['GET:shop.example/a']);
    expect(deprecated).toEqual([]);
  });

  it('counts an operation once, however many of its servers have the same host', async () => {
    const servers = [{ url: 'http://shop.example' }, { url: 'https://shop.example' }];
    const { entries, merged } = await readOpenApi({
      ...SHOP,
      servers,
      paths: { '/a': { get: {} } },
    });
    expect(entries.map(({ operations }) => operations.length)).toEqual([1]);
    expect(merged).toEqual([]);
  });

  it('keeps documents apart whose paths start with digits', async () => {
    const paths = (path: string) => ({ [path]: { get: { 'x-scope': 'a' } } });
    const list = Array.from({ length: 12 }, (_, i) => ({
      ...SHOP,
      paths: paths(i === 1 ? '1/b' : '/b'),
    }));
    const { entries } = await readOpenApi(list);
    expect(entries.map(({ operations }) => operations.length)).toEqual([12]);
  });

  it('returns an empty catalog for no documents', async () => {
    const reading = await readOpenApi([]);
    expect(reading).toMatchObject({ entries: [], deprecated: [], merged: [] });
    expect(reading.catalog.size).toBe(0);
  });

  it('returns the same catalog as catalogFromOpenApi', async () => {
    const document = { ...SHOP, paths: { '/a': { get: {} }, '/': { get: {} } } };
    const options = { rootName: 'root' };
    const { catalog } = await readOpenApi(document, options);
    expect((await catalogFromOpenApi(document, options)).toArray()).toEqual(catalog.toArray());
  });
});
