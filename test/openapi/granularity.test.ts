import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { catalogFromOpenApi, type OpenApiOptions, readOpenApi } from '../../src/openapi/index.ts';
import { ScopeCatalog, ScopeError, ScopeSet } from '../../src/scope/index.ts';

/** A document with an operation for each path. */
function shop(paths: readonly string[], url = 'https://shop.example'): object {
  const items = paths.map((path) => [path, { get: {} }]);
  return { openapi: '3.1.0', servers: [{ url }], paths: Object.fromEntries(items) };
}

/** What one path gives. */
async function pathOf(path: string, options?: OpenApiOptions, url?: string): Promise<string> {
  const [entry = '', ...others] = (await catalogFromOpenApi(shop([path], url), options)).toArray();
  expect(others).toEqual([]);
  return entry.replace('GET:shop.example/', '');
}

async function refusal(path: string, options?: OpenApiOptions, url?: string): Promise<string> {
  const error = await pathOf(path, options, url).catch((reason: unknown) => reason);
  if (!(error instanceof ScopeError)) return expect.unreachable(`it gave ${error}`);
  expect(error.code).toBe('catalog_not_concrete');
  return error.message;
}

describe('the default granularity', () => {
  it.each([
    ['a path', '/orders', 'orders$', 'orders'],
    ['a slash at the end', '/orders/', 'orders$', 'orders'],
    ['a template', '/orders/{id}', 'orders/{}$', 'orders'],
    ['a template with a slash at the end', '/orders/{id}/', 'orders/{}$', 'orders'],
    ['what follows a template', '/orders/{id}/items', 'orders/{}/items$', 'orders'],
    ['several templates', '/repos/{owner}/{repo}/issues', 'repos/{}/{}/issues$', 'repos'],
    ['a template with something after it', '/orders/{id}.json', 'orders/{}$', 'orders'],
    ['a template with something before it', '/orders/x-{id}', 'orders/{}$', 'orders'],
    ['two templates in a segment', '/compare/{base}...{head}', 'compare/{}$', 'compare'],
    ['a method of a template', '/orders/{id}:cancel', 'orders/{}$', 'orders'],
    ['a template in parentheses', "/Orders('{id}')/Lines", '{}/Lines$', undefined],
    ['a template that is optional', '/orders/{id?}', 'orders/{}$', 'orders'],
    ['a template with an expression', '/orders/{id:[0-9]+}', 'orders/{}$', 'orders'],
    ['a template with an expression for all', '/orders/{rest:.*}', 'orders/{}$', 'orders'],
    ['a template of several words', '/orders/{order id+}', 'orders/{}$', 'orders'],
    ['a template without a name', '/orders/{}', 'orders/{}$', 'orders'],
    ['a template at the start', '/{id}', '{}$', undefined],
    ['nothing but templates', '/{a}/{b}', '{}/{}$', undefined],
    ['a template for several segments', '/files/{path+}', 'files', 'files'],
    ['one of AWS', '/files/{proxy+}', 'files', 'files'],
    ['one with a star', '/files/{path*}', 'files', 'files'],
    ['one of RFC 6570', '/files/{+path}', 'files', 'files'],
    ['one of ASP.NET', '/files/{**path}', 'files', 'files'],
    ['what follows one', '/files/{path+}/meta', 'files', 'files'],
    ['one in a part of a segment', '/files/x-{path+}', 'files', 'files'],
    ['one with a suffix', '/files/{+path}.json', 'files', 'files'],
    ['one after a template', '/repos/{owner}/contents/{path+}', 'repos/{}/contents', 'repos'],
    ['one after nothing but templates', '/{tenant}/{path+}', '{}', undefined],
    ['a sign at the end', '/reports/$', 'reports/$$', undefined],
    ['a sign at the end of a segment', '/price$', 'price$$', undefined],
    ['two of them', '/price$$', 'price$$$', undefined],
    ['a sign alone', '/$', '$$', undefined],
    ['a sign elsewhere', '/$metadata/a$b', '$metadata/a$b$', '$metadata/a$b'],
    ['a sign before a template', '/price$/{id}', 'price$/{}$', undefined],
    ['an encoded unreserved character', '/%6Frders/{id}/%7Eme', 'orders/{}/~me$', 'orders'],
    ['the root', '/', '$', undefined],
    ['no path', '', '$', undefined],
  ])('keeps %s: %s gives %s, a prefix %s', async (_, path, operation, prefix) => {
    expect(await pathOf(path)).toBe(operation);
    expect(await pathOf(path, { granularity: 'operation' })).toBe(operation);
    if (prefix === undefined) await refusal(path, { granularity: 'prefix' });
    else expect(await pathOf(path, { granularity: 'prefix' })).toBe(prefix);
  });

  it.each([
    ['a template for several segments at the start', '/{proxy+}', 'would be the whole host'],
    ['a part of a segment with one at the start', '/x{proxy+}', 'would be the whole host'],
    ['a template that brings a slash', '/orders{/id}', '"{/id}" is not a part of a segment'],
    ['a template that brings a query', '/orders{?page,size}', '"{?page,size}" is not'],
    ['a template that brings more of one', '/orders/{id}{&page}', '"{&page}" is not'],
    ['a template that brings a fragment', '/orders{#part}', '"{#part}" is not'],
    ['an open path that a sign would close', '/price$/{path+}', 'would close it'],
    ['nine templates', `/a${'/{b}'.repeat(9)}`, 'at most 8 templates'],
    ['33 segments', `${'/a'.repeat(32)}/{b}`, '32 segments'],
    ['512 characters and the end', `/${'a'.repeat(512)}`, '512 characters'],
    [
      'a segment behind a template that no scope can spell',
      '/orders/{id}/a,b',
      'illegal_character',
    ],
    ['a wildcard behind a template', '/orders/{id}/*', 'wildcard_position'],
    ['an encoded brace', '/orders/%7Bid%7D', 'percent_encoding'],
    ['a dot segment behind a template', '/orders/{id}/..', 'path_dot_segment'],
    ['an empty segment behind a template', '/orders/{id}//items', 'empty segment'],
    ['a lone brace', '/orders/{id', 'lone brace'],
    ['a brace in a template', '/orders/{{id}}', 'lone brace'],
    ['a sign of our own', '/orders/{{+}}', 'lone brace'],
  ])('refuses %s: %s', async (_, path, reason) => {
    const message = await refusal(path);
    expect(message).toContain(reason);
    if (!/segment$|brace$/.test(reason)) expect(message).toContain('"x-scope": "');
  });

  it.each([
    ['eight templates', `/a${'/{b}'.repeat(8)}`, `a${'/{}'.repeat(8)}$`],
    ['32 segments', '/a'.repeat(32), `${'a/'.repeat(31)}a$`],
    ['511 characters and the end', `/${'a'.repeat(511)}`, `${'a'.repeat(511)}$`],
  ])('takes %s', async (_, path, expected) => {
    expect(await pathOf(path)).toBe(expected);
  });

  it.each([
    ['https://shop.example/v1', '/', 'v1$'],
    ['https://shop.example/v1/', '', 'v1$'],
    ['https://shop.example/v1/', '/orders/', 'v1/orders$'],
    ['https://shop.example/v1$', '/', 'v1$$'],
    ['https://shop.example/v1', '/{id}', 'v1/{}$'],
    ['https://shop.example/v1', '/{path+}', 'v1'],
    ['https://shop.example/v1', '/x{path+}', 'v1'],
  ])('puts the base path of %s before "%s"', async (url, path, expected) => {
    expect(await pathOf(path, {}, url)).toBe(expected);
  });

  it('takes no base path for more than it is', async () => {
    expect(await refusal('/{path+}', {}, 'https://shop.example/v1$')).toContain('would close it');
    expect(await refusal('/', {}, 'https://shop.example/v1//')).toContain('empty segment');
  });

  it.each([
    ['/', '', 'root$', 'root'],
    ['/', '/v1', 'v1$', 'v1'],
    ['/root', '', 'root$', 'root'],
  ])(
    'with a name for the root, %s of "%s" is %s, a prefix %s',
    async (path, base, closed, open) => {
      const url = `https://shop.example${base}`;
      expect(await pathOf(path, { rootName: 'root' }, url)).toBe(closed);
      expect(await pathOf(path, { rootName: 'root', granularity: 'prefix' }, url)).toBe(open);
    },
  );

  it('is the same for Swagger 2.0', async () => {
    const document = { swagger: '2.0', host: 'shop.example', basePath: '/v1/' };
    const paths = { '/': { get: {} }, '/orders/{id}': { get: {} }, '/files/{path+}': { get: {} } };
    const { catalog } = await readOpenApi({ ...document, paths });
    expect(catalog.toArray()).toEqual([
      'GET:shop.example/v1$',
      'GET:shop.example/v1/files',
      'GET:shop.example/v1/orders/{}$',
    ]);
  });

  it('keeps apart what prefixes hold together', async () => {
    const paths = ['/orders', '/orders/{id}', '/orders/{id}/items', '/orders/export'];
    const operations = await readOpenApi(shop(paths));
    const prefixes = await readOpenApi(shop(paths), { granularity: 'prefix' });

    expect(operations.entries).toHaveLength(4);
    expect(operations.merged).toEqual([]);
    expect(prefixes.catalog.toArray()).toEqual([
      'GET:shop.example/orders',
      'GET:shop.example/orders/export',
    ]);
    expect(prefixes.merged.map(({ operations: all }) => all.length)).toEqual([3]);
  });

  it('tells what falls together', async () => {
    const paths = ['/a/{id}', '/a/{name}.json', '/a/{x}/', '/a/b', '/a/b/', '/c/{id}'];
    const { merged } = await readOpenApi(shop(paths));
    expect(merged.map(({ scope, operations }) => [scope, operations.length])).toEqual([
      ['GET:shop.example/a/b$', 2],
      ['GET:shop.example/a/{}$', 3],
    ]);
  });
});

describe('a token', () => {
  const document = shop(['/orders', '/orders/{id}', '/orders/export', '/files/{path+}']);

  it.each([
    ['orders$', ['/orders', '/orders/', '/orders?x=1'], ['/orders/7', '/orders/export', '/']],
    [
      'orders/{}$',
      ['/orders/7', '/orders/%65xport2'],
      ['/orders', '/orders/export', '/orders/7/a'],
    ],
    ['orders/export$', ['/orders/export', '/orders/%65xport'], ['/orders/7', '/orders']],
    ['files', ['/files', '/files/a/b'], ['/orders', '/']],
  ])('of %s opens its operation and nothing else', async (path, opened, closed) => {
    const catalog = await catalogFromOpenApi(document);
    const { granted } = catalog.expand([`GET:shop.example/${path}`]);
    const opens = (target: string): boolean => {
      const reading = catalog.readRequest({ method: 'GET', domain: 'shop.example', target });
      return reading.ok && ScopeSet.from(granted).allows(reading.request).allowed;
    };

    expect(opened.filter(opens)).toEqual(opened);
    expect(closed.filter(opens)).toEqual([]);
  });

  it('gains nothing by an operation that is added', async () => {
    const before = await catalogFromOpenApi(shop(['/orders', '/orders/{id}']));
    const after = await catalogFromOpenApi(document);
    const held = ScopeSet.from(before.expand(['*:*/*']).granted);
    const allows = (target: string): boolean => {
      const reading = after.readRequest({ method: 'GET', domain: 'shop.example', target });
      return reading.ok && held.allows(reading.request).allowed;
    };

    expect(['/orders', '/orders/7', '/orders/export', '/files/a'].map(allows)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});

const folder = new URL('../../../shared/data/oas/', import.meta.url);
const isHere = existsSync(folder);

describe.skipIf(!isHere)(`real documents (skipped without ${folder.pathname})`, () => {
  const names = isHere ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
  const documents = names.map((name): unknown =>
    JSON.parse(readFileSync(new URL(name, folder), 'utf8')),
  );

  it('have 185 operations, of which each can be granted alone on each of its servers', async () => {
    const { entries, merged } = await readOpenApi(documents);
    const keys = entries.flatMap(({ operations }) =>
      operations.map(({ document, method, path }) => `${document} ${method} ${path}`),
    );

    expect(new Set(keys).size).toBe(185);
    expect(merged).toEqual([]);
    expect(entries.filter(({ operations }) => operations.length !== 1)).toEqual([]);
  });

  it('expand to every entry, which can be sent back', async () => {
    const catalog = await catalogFromOpenApi(documents);
    const { granted } = catalog.expand(['*:*/*']);

    expect(granted).toEqual(catalog.toArray());
    expect(catalog.expand(granted)).toEqual({ granted, narrowed: [] });
  });

  it('open by one entry only requests of its operations', async () => {
    const catalog = await catalogFromOpenApi(documents);
    const requests = catalog.toArray().map((scope) => requestOf(scope));
    const readings = requests.map((request) => catalog.readRequest(request));

    for (const [i, scope] of catalog.toArray().entries()) {
      const held = ScopeSet.from([scope]);
      const opened = readings.flatMap((reading, j) =>
        reading.ok && held.allows(reading.request).allowed ? [j] : [],
      );
      expect(opened).toEqual([i]);
    }
  });

  it('lint without anything but what names a token service or an apex', async () => {
    const codes = (await catalogFromOpenApi(documents)).lint().map(({ code }) => code);
    expect(codes.filter((code) => code === 'nested' || code === 'parameter')).toEqual([]);
  });

  it('read as a catalog again', async () => {
    const texts = (await catalogFromOpenApi(documents)).toArray();
    expect(ScopeCatalog.from(texts).toArray()).toEqual(texts);
  });
});

/** A request for an entry, with a text for each template that no document holds. */
function requestOf(scope: string) {
  const [, method = '', domain = '', path = ''] = /^([^:]*):([^/]*)\/(.*)\$$/.exec(scope) ?? [];
  return { method, domain, target: `/${path.replaceAll('{}', 'zz-7')}` };
}
