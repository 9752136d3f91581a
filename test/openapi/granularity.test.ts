import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { catalogFromOpenApi, type OpenApiOptions, readOpenApi } from '../../src/openapi/index.ts';
import { ScopeCatalog, ScopeError, ScopeSet } from '../../src/scope/index.ts';

/** A document with an operation for each path. */
function shop(paths: readonly string[], url = 'https://shop.example'): object {
  const items = paths.map((path) => [path, { get: {} }]);
  return { openapi: '3.1.0', servers: [{ url }], paths: Object.fromEntries(items) };
}

/** The path of the entry that is made from one path of a document. */
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
    ['a path after a template', '/orders/{id}/items', 'orders/{}/items$', 'orders'],
    ['several templates', '/repos/{owner}/{repo}/issues', 'repos/{}/{}/issues$', 'repos'],
    ['a template with a suffix', '/orders/{id}.json', 'orders/{}$', 'orders'],
    ['a template with a prefix', '/orders/x-{id}', 'orders/{}$', 'orders'],
    ['two templates in a segment', '/compare/{base}...{head}', 'compare/{}$', 'compare'],
    ['a template with a custom method', '/orders/{id}:cancel', 'orders/{}$', 'orders'],
    ['a template in parentheses', "/Orders('{id}')/Lines", '{}/Lines$', undefined],
    ['a template with an expression', '/orders/{id:[0-9]+}', 'orders/{}$', 'orders'],
    ['a template of several words', '/orders/{order id}', 'orders/{}$', 'orders'],
    ['a query', '/orders?type=a', 'orders$', 'orders'],
    ['a query with a template', '/orders/{id}?type={type}', 'orders/{}$', 'orders'],
    ['a template that expands to a query', '/orders{?page,size}', 'orders$', 'orders'],
    ['a template that continues a query', '/orders/{id}{&page}', 'orders/{}$', 'orders'],
    ['a template that expands to a fragment', '/orders{#part}', 'orders$', 'orders'],
    ['a fragment', '/orders#create', 'orders$', 'orders'],
    ['a fragment after a slash', '/orders/#create', 'orders$', 'orders'],
    ['a template without a name', '/orders/{}', 'orders/{}$', 'orders'],
    ['a template at the start', '/{id}', '{}$', undefined],
    ['only templates', '/{a}/{b}', '{}/{}$', undefined],
    ['a template for several segments', '/files/{path+}', 'files', 'files'],
    ['a template for several segments in the form of AWS', '/files/{proxy+}', 'files', 'files'],
    ['a template for several segments with a star', '/files/{path*}', 'files', 'files'],
    ['a template for several segments in the form of RFC 6570', '/files/{+path}', 'files', 'files'],
    ['a template for several segments in the form of ASP.NET', '/files/{**path}', 'files', 'files'],
    ['a path after a template for several segments', '/files/{path+}/meta', 'files', 'files'],
    ['a template for several segments within a segment', '/files/x-{path+}', 'files', 'files'],
    ['a template for several segments with a suffix', '/files/{+path}.json', 'files', 'files'],
    [
      'a template for several segments after a template',
      '/repos/{owner}/contents/{path+}',
      'repos/{}/contents',
      'repos',
    ],
    ['a template for several segments after only templates', '/{tenant}/{path+}', '{}', undefined],
    ['a $ as the last segment', '/reports/$', 'reports/$$', undefined],
    ['a $ at the end of a segment', '/price$', 'price$$', undefined],
    ['two $ at the end of a segment', '/price$$', 'price$$$', undefined],
    ['a lone $', '/$', '$$', undefined],
    ['a $ elsewhere', '/$metadata/a$b', '$metadata/a$b$', '$metadata/a$b'],
    ['a $ before a template', '/price$/{id}', 'price$/{}$', undefined],
    ['an encoded unreserved character', '/%6Frders/{id}/%7Eme', 'orders/{}/~me$', 'orders'],
    ['the root', '/', '$', undefined],
    ['an empty path', '', '$', undefined],
  ])('maps %s: %s gives %s, as a prefix %s', async (_, path, operation, prefix) => {
    expect(await pathOf(path)).toBe(operation);
    expect(await pathOf(path, { granularity: 'operation' })).toBe(operation);
    if (prefix === undefined) await refusal(path, { granularity: 'prefix' });
    else expect(await pathOf(path, { granularity: 'prefix' })).toBe(prefix);
  });

  it.each([
    ['a template for several segments at the start', '/{proxy+}', 'would be the whole host'],
    [
      'a template for several segments within the first segment',
      '/x{proxy+}',
      'would be the whole host',
    ],
    ['a template that expands to a slash', '/orders{/id}', '"{/id}" is not a part of a segment'],
    [
      'a template that expands to parameters',
      '/orders{;a,b}',
      '"{;a,b}" is not a part of a segment',
    ],
    ['a template with a default', '/orders/{id=5}', 'matches one text only'],
    ['an open path that a $ would close', '/price$/{path+}', 'would close it'],
    ['nine templates', `/a${'/{b}'.repeat(9)}`, 'at most 8 templates'],
    ['33 segments', `${'/a'.repeat(32)}/{b}`, '32 segments'],
    ['512 characters and the closing mark', `/${'a'.repeat(512)}`, '512 characters'],
    [
      'a segment with an illegal character after a template',
      '/orders/{id}/a,b',
      'illegal_character',
    ],
    ['a wildcard after a template', '/orders/{id}/*', 'wildcard_position'],
    ['an encoded brace', '/orders/%7Bid%7D', 'percent_encoding'],
    ['a dot segment after a template', '/orders/{id}/..', 'path_dot_segment'],
    ['an empty segment after a template', '/orders/{id}//items', 'empty segment'],
    ['a lone brace', '/orders/{id', 'lone brace'],
    ['a brace in a template', '/orders/{{id}}', 'lone brace'],
    ['the placeholder that the reader uses internally', '/orders/{{+}}', 'lone brace'],
  ])('refuses %s: %s', async (_, path, reason) => {
    const message = await refusal(path);
    expect(message).toContain(reason);
    if (!/segment$|brace$/.test(reason)) expect(message).toContain('"x-scope": "');
  });

  it.each([
    ['eight templates', `/a${'/{b}'.repeat(8)}`, `a${'/{}'.repeat(8)}$`],
    ['32 segments', '/a'.repeat(32), `${'a/'.repeat(31)}a$`],
    ['511 characters and the closing mark', `/${'a'.repeat(511)}`, `${'a'.repeat(511)}$`],
  ])('accepts %s', async (_, path, expected) => {
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

  it('checks the base path by the same rules', async () => {
    expect(await refusal('/{path+}', {}, 'https://shop.example/v1$')).toContain('would close it');
    expect(await refusal('/', {}, 'https://shop.example/v1//')).toContain('empty segment');
  });

  it.each([
    ['/', '', 'root$', 'root'],
    ['/', '/v1', 'v1$', 'v1'],
    ['/root', '', 'root$', 'root'],
  ])(
    'with a rootName, the path "%s" below "%s" gives %s, as a prefix %s',
    async (path, base, closed, open) => {
      const url = `https://shop.example${base}`;
      expect(await pathOf(path, { rootName: 'root' }, url)).toBe(closed);
      expect(await pathOf(path, { rootName: 'root', granularity: 'prefix' }, url)).toBe(open);
    },
  );

  it('applies to Swagger 2.0 as well', async () => {
    const document = { swagger: '2.0', host: 'shop.example', basePath: '/v1/' };
    const paths = { '/': { get: {} }, '/orders/{id}': { get: {} }, '/files/{path+}': { get: {} } };
    const { catalog } = await readOpenApi({ ...document, paths });
    expect(catalog.toArray()).toEqual([
      'GET:shop.example/v1$',
      'GET:shop.example/v1/files',
      'GET:shop.example/v1/orders/{}$',
    ]);
  });

  it('keeps operations apart that prefixes merge', async () => {
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

  it('reports the operations that share an entry', async () => {
    const paths = ['/a/{id}', '/a/{name}.json', '/a/{x}/', '/a/b', '/a/b/', '/c/{id}'];
    const { merged } = await readOpenApi(shop(paths));
    expect(merged.map(({ scope, operations }) => [scope, operations.length])).toEqual([
      ['GET:shop.example/a/b$', 2],
      ['GET:shop.example/a/{}$', 3],
    ]);
  });
});

describe('a template that routers and APIs write in a way of their own', () => {
  it.each([
    ...[
      '{path:.*}',
      '{path:.+}',
      '{path: .*}',
      '{path:*}',
      '{path:**}',
      '{path:path}',
      '{path...}',
    ],
    ...['{...path}', '{path+}', '{path*}', '{+path}', '{*path}', '{**path}', '{file path+}'],
    ...[
      '{path=**}',
      '{path:[^.]+}',
      '{path:[ -~]+}',
      '{path:[a-z/]+}',
      '{path:\\S+}',
      '{path:\\D*}',
    ],
    ...[
      '{path:(?:[^/]+/)*[^/]+}',
      '{path:a/b|c}',
      '{path:.*\\.json}',
      '{path:\\x2f}',
      '{path:[+-9]}',
    ],
  ])('takes several segments: %s', async (template) => {
    expect(await pathOf(`/files/${template}`)).toBe('files');
    expect(await pathOf(`/{tenant}/files/${template}`)).toBe('{}/files');
    expect(await refusal(`/${template}`)).toContain('would be the whole host');
  });

  it.each([
    ...['{id:[0-9]+}', '{id:\\d+}', '{id:[^/]+}', '{id:[\\w-]+}', '{id:[0-9.]+}', '{id:(a|b)}'],
    ...['{id:int}', '{id:uuid}', '{id:min(1)}', '{id:int:min(1)}', '{id:regex(^.*$)}', '{id=*}'],
    ...['{.format}', '{a,b}', '{ id }', '{id:\\w+\\.json}', '{order.id}', '{id:}'],
  ])('takes one segment: %s', async (template) => {
    expect(await pathOf(`/files/${template}`)).toBe('files/{}$');
    expect(await pathOf(`/files/${template}/meta`)).toBe('files/{}/meta$');
    expect(await pathOf(`/${template}`)).toBe('{}$');
  });

  it.each([
    ['{name=projects/*/secrets/*}', 'v1/projects/{}/secrets/{}$', 'v1/projects'],
    ['{name=projects/*}:undelete', 'v1/projects/{}$', 'v1/projects'],
    ['{parent=projects/*}/secrets', 'v1/projects/{}/secrets$', 'v1/projects'],
    ['{name=projects/**}', 'v1/projects', 'v1/projects'],
    ['{name:projects/[^/]+}', 'v1/projects/{}$', 'v1/projects'],
    ['{name:projects/.*}/x', 'v1/projects', 'v1/projects'],
  ])('names its segments: %s gives %s, as a prefix %s', async (template, closed, open) => {
    expect(await pathOf(`/v1/${template}`)).toBe(closed);
    expect(await pathOf(`/v1/${template}`, { granularity: 'prefix' })).toBe(open);
  });

  it('is optional: the path without it belongs to the operation as well', async () => {
    for (const path of ['/orders/{id?}', '/orders/{id:int?}', '/orders/{id?}/']) {
      const { catalog, merged } = await readOpenApi(shop([path]));
      expect(catalog.toArray()).toEqual([
        'GET:shop.example/orders$',
        'GET:shop.example/orders/{}$',
      ]);
      expect(merged).toEqual([]);
    }
    expect(await pathOf('/orders/{id:[a-z]?}')).toBe('orders/{}$');
    expect(await pathOf('/orders/{id?}/items')).toBe('orders/{}/items$');
  });
});

describe('the pattern of a path parameter', () => {
  const read = async (parameters: unknown, more: object = {}, path = '/v1/{name}/books') => {
    const item = { get: { parameters }, ...more };
    return (await catalogFromOpenApi({ ...shop([]), paths: { [path]: item } })).toArray();
  };
  const inPath = (pattern: unknown, name = 'name') => ({ name, in: 'path', pattern });

  it.each([
    ['publishers/[^/]+', 'v1/publishers/{}/books$'],
    ['^publishers/[^/]+/shelves/[^/]+$', 'v1/publishers/{}/shelves/{}/books$'],
    ['publishers\\/[^/]*', 'v1/publishers/{}/books$'],
    ['[^/]+(/[^/]+)*', 'v1'],
    ['publishers/.*', 'v1/publishers'],
    ['[a-f0-9]{8}', 'v1/{}/books$'],
    ['.*', 'v1/{}/books$'],
    ['^[A-Za-z0-9+/]+$', 'v1/{}/books$'],
    [7, 'v1/{}/books$'],
  ])('%s gives %s', async (pattern, expected) => {
    const entry = [`GET:shop.example/${expected}`];
    expect(await read([inPath(pattern)])).toEqual(entry);
    expect(await read([{ name: 'name', in: 'path', schema: { pattern } }])).toEqual(entry);
    expect(await read([], { parameters: [inPath(pattern)] })).toEqual(entry);
  });

  it('is that of the operation before that of the path, and follows references', async () => {
    const shared = { parameters: [inPath('a/[^/]+')] };
    const $ref = '#/components/parameters/name';
    const document = {
      ...shop([]),
      components: { parameters: { name: inPath('b/[^/]+') } },
      paths: { '/{name}': { ...shared, get: { parameters: [{ $ref }] }, put: {} } },
    };
    expect((await catalogFromOpenApi(document)).toArray()).toEqual([
      'GET:shop.example/b/{}$',
      'PUT:shop.example/a/{}$',
    ]);
  });

  it.each([
    ['of another parameter', [inPath('a/b', 'other')]],
    ['of a query', [{ ...inPath('a/b'), in: 'query' }]],
    ['behind a reference that leads nowhere', [{ $ref: '#/nowhere' }]],
    ['in what is not a list', { name: inPath('a/b') }],
    ['in a list of texts', ['a/b']],
  ])('does nothing if it is %s', async (_, parameters) => {
    expect(await read(parameters)).toEqual(['GET:shop.example/v1/{}/books$']);
  });
});

describe('the slash at the end of a path', () => {
  it.each<[paths: readonly string[], withSlash: readonly string[]]>([
    [['/orders', '/orders/{id}'], []],
    [
      ['/orders/', '/orders/{id}/', '/bills'],
      ['orders$', 'orders/{}$'],
    ],
    [
      ['/orders', '/orders/', '/orders/{id}', '/orders/{key}/'],
      ['orders$', 'orders/{}$'],
    ],
    [['/orders/{id}', '/orders/{id}.pdf/'], []],
    [['/'], ['$']],
    [['/orders/#a', '/orders/?b=1'], ['orders$']],
    [['/orders#a/'], []],
  ])('is remembered of %j: %j', async (paths, withSlash) => {
    const catalog = await catalogFromOpenApi(shop(paths));

    expect(catalog.withSlash).toEqual(withSlash.map((path) => `GET:shop.example/${path}`));
  });

  it('leaves a request with it to the entry alone', async () => {
    const opens = async (paths: readonly string[], target: string) => {
      const catalog = await catalogFromOpenApi(shop(paths));
      const reading = catalog.readRequest({ method: 'GET', domain: 'shop.example', target });
      return reading.ok && ScopeSet.from(['GET:shop.example/orders$']).allows(reading.request);
    };

    expect(await opens(['/orders/', '/orders/{id}/'], '/orders/')).toMatchObject({ allowed: true });
    expect(await opens(['/orders', '/orders/{id}'], '/orders/')).toEqual({
      allowed: false,
      reason: 'path_several_routes',
    });
  });
});

describe('a token with scopes of an OpenAPI catalog', () => {
  const document = shop(['/orders', '/orders/{id}', '/orders/export', '/files/{path+}']);

  it.each([
    ['orders$', ['/orders', '/orders?x=1'], ['/orders/7', '/orders/export', '/', '/orders/']],
    [
      'orders/{}$',
      ['/orders/7', '/orders/%65xport2'],
      ['/orders', '/orders/export', '/orders/7/a'],
    ],
    ['orders/export$', ['/orders/export'], ['/orders/7', '/orders', '/orders/%65xport']],
    ['files', ['/files', '/files/a/b'], ['/orders', '/']],
  ])('with the scope %s opens only its own operation', async (path, opened, closed) => {
    const catalog = await catalogFromOpenApi(document);
    const { granted } = catalog.expand([`GET:shop.example/${path}`]);
    const opens = (target: string): boolean => {
      const reading = catalog.readRequest({ method: 'GET', domain: 'shop.example', target });
      return reading.ok && ScopeSet.from(granted).allows(reading.request).allowed;
    };

    expect(opened.filter(opens)).toEqual(opened);
    expect(closed.filter(opens)).toEqual([]);
  });

  it('gains nothing when an operation is added later', async () => {
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

  it('have 185 operations, and each can be granted alone on each of its servers', async () => {
    const { entries, merged } = await readOpenApi(documents);
    const keys = entries.flatMap(({ operations }) =>
      operations.map(({ document, method, path }) => `${document} ${method} ${path}`),
    );

    expect(new Set(keys).size).toBe(185);
    expect(merged).toEqual([]);
    expect(entries.filter(({ operations }) => operations.length !== 1)).toEqual([]);
  });

  it('expand *:*/* to every entry, and that result to itself', async () => {
    const catalog = await catalogFromOpenApi(documents);
    const { granted } = catalog.expand(['*:*/*']);

    expect(granted).toEqual(catalog.toArray());
    expect(catalog.expand(granted)).toEqual({ granted, narrowed: [] });
  });

  it('open with one entry only the requests of its operations', async () => {
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

  it('lint without findings about nested entries or parameters', async () => {
    const codes = (await catalogFromOpenApi(documents)).lint().map(({ code }) => code);
    expect(codes.filter((code) => code === 'nested')).toEqual([]);
  });

  it('give entries that ScopeCatalog.from accepts unchanged', async () => {
    const texts = (await catalogFromOpenApi(documents)).toArray();
    expect(ScopeCatalog.from(texts).toArray()).toEqual(texts);
  });
});

/** A request for an entry. Each template is filled with a text that no document uses. */
function requestOf(scope: string) {
  const [, method = '', domain = '', path = ''] = /^([^:]*):([^/]*)\/(.*)\$$/.exec(scope) ?? [];
  return { method, domain, target: `/${path.replaceAll('{}', 'zz-7')}` };
}
