import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isTokenError } from '../../src/errors.ts';
import { catalogFromOpenApi, readOpenApi } from '../../src/openapi/index.ts';
import { ScopeSet } from '../../src/scope/index.ts';
import { entries, refusal } from './support.ts';

const SERVERS = [{ url: 'https://shop.example' }];

// The entries here are prefixes; test/openapi/granularity.test.ts covers operations.

/** A document with one server and the given paths; `more` overrides its members. */
function shop(paths: unknown, more: object = {}): object {
  return { openapi: '3.1.0', info: { title: 'Shop' }, servers: SERVERS, paths, ...more };
}

/** A document with one path and the given servers. */
function at(...servers: readonly unknown[]): object {
  return shop({ '/orders': { get: {} } }, { servers });
}

describe('catalogFromOpenApi', () => {
  it.each([
    ['a path', '/orders', 'orders'],
    ['a path without its trailing slash', '/orders/', 'orders'],
    ['only the part before a template', '/orders/{id}', 'orders'],
    ['nothing after a template', '/orders/{id}/items', 'orders'],
    ['no trailing slash after a template', '/orders/{id}/', 'orders'],
    ['nothing of a segment that ends in a template', '/orders/x-{id}', 'orders'],
    ['nothing of a segment that begins with one', '/orders/{id}.json', 'orders'],
    ['nothing of a segment with one inside', '/orders/a{b}c/items', 'orders'],
    ['no slash inside a template', '/orders/{a/b}', 'orders'],
    ['no question mark inside a template', '/orders/{id?}', 'orders'],
    ['all characters that a scope can hold', "/a.b/~c!$&'()+=:@", "a.b/~c!$&'()+=:@"],
    ['an encoded unreserved character as itself', '/%6Frders/%7Eme', 'orders/~me'],
    ['the case of letters', '/Orders', 'Orders'],
    ['names of Object.prototype', '/constructor/toString', 'constructor/toString'],
  ])('keeps %s: %s gives %s', async (_, path, expected) => {
    expect(await entries(shop({ [path]: { get: {} } }))).toEqual([`GET:shop.example/${expected}`]);
  });

  it.each([
    ['an empty segment', '/orders//items', 'empty segment'],
    ['an empty segment at the start', '//orders', 'empty segment'],
    ['an empty segment at the end', '/orders//', 'empty segment'],
    ['nothing but slashes', '//', 'empty segment'],
    ['an empty segment after a template', '/orders/{id}//items', 'empty segment'],
    ['no slash at the start', 'orders', 'begin with "/"'],
    ['a dot segment', '/orders/../admin', 'path_dot_segment'],
    ['an encoded dot segment', '/orders/%2E%2e', 'path_dot_segment'],
    ['an encoded reserved character', '/a%3Ab', 'percent_encoding'],
    ['an encoded slash', '/a%2Fb', 'path_encoded_slash'],
    ['an encoded letter that is not ASCII', '/caf%C3%A9', 'percent_encoding'],
    ['a letter that is not ASCII', '/caf\u00e9', 'path_illegal_character'],
    ['a broken triplet', '/a%2', 'path_bad_encoding'],
    ['a parameter', '/a;v=1', 'path_parameter'],
    ['a comma', '/a,b', 'illegal_character'],
    ['a space', '/a b', 'path_illegal_character'],
    ['a $ at the end', '/orders$', 'would close it'],
    ['a $ before a template', '/orders$/{id}', 'would close it'],
    ['a lone $', '/$', 'would close it'],
    ['a wildcard as the whole path', '/*', 'wildcard_position'],
    ['a wildcard as the last segment', '/orders/*', 'wildcard_position'],
    ['a lone closing brace', '/a}/b', 'lone brace'],
    ['a lone opening brace', '/a/{b', 'lone brace'],
    ['too many segments', '/a'.repeat(33), 'too_long'],
    ['too many characters', `/${'a'.repeat(513)}`, 'too_long'],
    ['far too many characters', `/${'a'.repeat(9000)}`, 'path_too_long'],
  ])('refuses %s: %s', async (_, path, reason) => {
    const message = await refusal(shop({ [path]: { post: {} } }));
    expect(message).toContain('documents[0] ("Shop"), POST "');
    expect(message).toContain(reason);
    expect(message.length).toBeLessThan(600);
  });

  it.each([
    ['in lower case', (method: string) => method],
    ['in upper case', (method: string) => method.toUpperCase()],
    ['in mixed case', (method: string) => `${method[0]?.toUpperCase()}${method.slice(1)}`],
  ])('reads every method of a path item %s, and nothing else', async (_, spell) => {
    const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query'];
    const item = Object.fromEntries(methods.map((method) => [spell(method), {}]));
    const others = { parameters: [], summary: 'get', description: '', 'x-get': {}, tags: ['get'] };

    const found = await entries(
      shop({ '/orders': { ...item, ...others }, 'x-paths': { get: {} } }),
    );

    expect(found).toEqual(methods.map((m) => `${m.toUpperCase()}:shop.example/orders`).sort());
  });

  it.each([
    ['a misspelled method', { gett: {} }, '"gett" is not a method; there are get, put'],
    ['a method of its own', { copy: {} }, '"copy" is not a method'],
    ['responses without an operation', { responses: { 200: {} } }, '"responses" is not a method'],
    ['a method that is there twice', { get: {}, GET: {} }, 'the method "get" is there twice'],
    ['a list of more methods', { additionalOperations: [] }, '"additionalOperations" must be'],
  ])('refuses %s', async (_, item, reason) => {
    expect(await refusal(shop({ '/orders': item }))).toContain(`path "/orders": ${reason}`);
  });

  it('reads any method of Amazon API Gateway as all that the path does not have itself', async () => {
    const any = { 'x-amazon-apigateway-any-method': { operationId: 'any' } };
    const { entries: found } = await readOpenApi(shop({ '/orders': { ...any, get: {} } }));

    expect(found.map(({ scope }) => scope)).toEqual(
      ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'].map(
        (method) => `${method}:shop.example/orders$`,
      ),
    );
    expect(found.filter(({ operations }) => operations[0]?.operationId !== 'any')).toHaveLength(1);
  });

  it('finds a misspelled method among many members', async () => {
    const many = (name: string, value: unknown) =>
      Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [name + i, value]));
    for (const others of [many('x-', {}), many('tags', []), many('note', null)]) {
      expect(await refusal(shop({ '/a': { ...others, gett: {}, get: {} } }))).toContain('"gett"');
      expect(await entries(shop({ '/a': { ...others, GET: {} } }))).toEqual(['GET:shop.example/a']);
    }
  });

  it('reads the paths that Microsoft keeps apart for their query', async () => {
    const more = { 'x-ms-paths': { '/orders?comp=list': { get: {} }, '/bills?a': { put: {} } } };
    expect(await entries(shop({ '/orders': { get: {} } }, more))).toEqual([
      'GET:shop.example/orders',
      'PUT:shop.example/bills',
    ]);
    expect(await refusal(shop({}, { 'x-ms-paths': [] }))).toContain('must be an object');
  });

  it('makes one entry for operations with the same scope', async () => {
    const paths = { '/orders': { get: {} }, '/orders/{id}': { get: {} }, '/orders/': { get: {} } };

    expect(await entries([shop(paths), shop(paths)])).toEqual(['GET:shop.example/orders']);
  });

  it.each(['3.0', '3.0.3', '3.1.0', '3.2.0'])('accepts OpenAPI %s', async (openapi) => {
    const document = shop({ '/orders': { get: {} } }, { openapi });
    expect(await entries(document)).toEqual(['GET:shop.example/orders']);
  });

  it.each([
    ['another version', { openapi: '4.0.0', paths: {} }],
    ['a version that only starts alike', { openapi: '3.10', paths: {} }],
    ['an old Swagger', { swagger: '1.2', paths: {} }],
    ['a number for a version', { swagger: 2, paths: {} }],
    ['no version', { paths: {} }],
    ['a number', 3.1],
    ['bytes', new TextEncoder().encode('{"openapi": "3.1.0"}')],
    ['null', null],
    ['undefined', undefined],
    ['a list in a list', [[shop({})]]],
    ['a version that is inherited', Object.create(shop({}))],
  ])('refuses %s as a document', async (_, document) => {
    expect(await refusal(document)).toMatch(/documents\[0\].*is not an OpenAPI document/);
  });

  it.each([
    ['3.0.0', undefined, false],
    ['3.1.0', undefined, true],
    ['3.1.0', null, false],
    ['3.1.0', [], false],
    ['3.0.0', {}, true],
  ])('accepts version %s with the paths %j: %s', async (openapi, paths, isTaken) => {
    const document = { openapi, paths };
    if (isTaken) expect(await entries(document)).toEqual([]);
    else expect(await refusal(document)).toContain('"paths" must be an object');
  });

  it.each([
    ['null as a path item', { '/orders': null }, 'a path item must be an object'],
    ['null as an operation', { '/orders': { get: null } }, 'an operation must be an object'],
    ['a list as an operation', { '/orders': { get: [] } }, 'an operation must be an object'],
  ])('refuses %s, which must be an object', async (_, paths, reason) => {
    expect(await refusal(shop(paths))).toContain(reason);
  });

  it('reads the methods of OpenAPI 3.2 in every version', async () => {
    const paths = { '/orders': { query: {}, additionalOperations: { COPY: {} } } };

    for (const openapi of ['3.0.0', '3.1.0', '3.2.0']) {
      expect(await entries(shop(paths, { openapi }))).toEqual([
        'COPY:shop.example/orders',
        'QUERY:shop.example/orders',
      ]);
    }
  });

  it('refuses a method that a scope cannot hold', async () => {
    const paths = { '/orders': { additionalOperations: { copy: {} } } };
    expect(await refusal(shop(paths, { openapi: '3.2.0' }))).toContain('the method "copy"');
  });

  it('is not misled by names of Object.prototype', async () => {
    const paths = JSON.parse(
      '{"/__proto__": {"get": {}}, "__proto__": {"get": {}}, "/a": {"__proto__": {"get": {}}}}',
    );

    expect(await refusal(shop(paths))).toContain('GET "__proto__": the path must begin with "/"');
    expect(await entries(shop({ '/__proto__': { get: {} }, '/a': { constructor: 1 } }))).toEqual([
      'GET:shop.example/__proto__',
    ]);
    expect(await refusal(shop({ '/a': { $ref: '#/paths/constructor' } }))).toContain('$ref');
    expect(await refusal(at({ url: 'https://{constructor}.example', variables: {} }))).toContain(
      'the variable "constructor"',
    );
  });

  it('leaves the documents unchanged', async () => {
    const document = Object.freeze(shop(Object.freeze({ '/orders': Object.freeze({ get: {} }) })));
    const before = JSON.stringify(document);

    await entries([document], Object.freeze({ hosts: Object.freeze(['a.example']) }));

    expect(JSON.stringify(document)).toBe(before);
  });

  it('returns an empty catalog for no documents', async () => {
    expect(await entries([])).toEqual([]);
  });
});

describe('catalogFromOpenApi with servers', () => {
  it.each([
    ['https://shop.example', ['GET:shop.example/orders']],
    ['https://shop.example/', ['GET:shop.example/orders']],
    ['https://shop.example/v1', ['GET:shop.example/v1/orders']],
    ['https://shop.example/api/v1/', ['GET:shop.example/api/v1/orders']],
    ['HTTPS://Shop.EXAMPLE/V1', ['GET:shop.example/V1/orders']],
    ['http://shop.example:8080/v1', ['GET:shop.example/v1/orders']],
    ['https://shop.example:443', ['GET:shop.example/orders']],
    ['//shop.example/v1', ['GET:shop.example/v1/orders']],
    ['https://xn--caf-dma.example', ['GET:xn--caf-dma.example/orders']],
  ])('reads the URL %s', async (url, expected) => {
    expect(await entries(at({ url }))).toEqual(expected);
  });

  it.each([
    ['https://192.0.2.1', 'IP address'],
    ['https://192.0.2.1:8080/v1', 'IP address'],
    ['https://0x7f.1', 'IP address'],
    ['https://[2001:db8::1]:8080', 'IP address'],
    ['https://ann:hunter2@shop.example', '"https://...@shop.example": must hold no user info'],
    ['//ann:hunter2@shop.example/v1', '"//...@shop.example/v1"'],
    ['https://ann:hunter2@x@shop.example', '"https://...@shop.example"'],
    ['ann:hunter2@shop.example', '"...@shop.example" must be absolute'],
    ['https://shop.example:http', 'host name'],
    ['https://shop_a.example', 'host name'],
    ['https://shop.example.', 'host name'],
    ['https://*.shop.example', 'host name'],
    ['https://caf\u00e9.example', 'host name'],
    ['https:///v1', 'host name'],
    ['https://shop.example?v=1', 'no query'],
    ['https://shop.example/#v1', 'no fragment'],
    ['https://shop.example\\v1', 'no backslash'],
    ['https://shop.example/{', 'lone brace'],
    ['https://shop.example//v1', 'empty segment'],
    ['https://shop.example/v1//', 'empty segment'],
    ['https://shop.example/v%31%2F', 'path_encoded_slash'],
    ['shop.example/v1', 'must be absolute'],
    ['./v1', 'must be absolute'],
    ['', 'hosts: ["shop.example"]'],
    ['/', 'hosts: ["shop.example"]'],
    ['/v1', 'hosts: ["shop.example"]'],
  ])('refuses the URL "%s": %s', async (url, reason) => {
    const message = await refusal(at({ url }));
    expect(message).toContain(reason);
    expect(message).not.toContain('hunter2');
  });

  it.each([
    ['an object instead of a list', { servers: { url: 'https://shop.example' } }],
    ['a list with a server without url', { servers: [{}] }],
    ['a list with a text', { servers: ['https://shop.example'] }],
    ['null', { servers: null }],
  ])('refuses as servers %s', async (_, more) => {
    expect(await refusal(shop({ '/orders': { get: {} } }, more))).toContain('servers');
  });

  it('makes an entry for each server', async () => {
    const found = await entries(at(...SERVERS, { url: 'https://test.shop.example/v1' }));
    expect(found).toEqual(['GET:shop.example/orders', 'GET:test.shop.example/v1/orders']);
  });

  it('prefers the servers of the operation, then of the path, then of the document', async () => {
    const own = [{ url: 'https://own.example' }];
    const shared = [{ url: 'https://shared.example' }];
    const paths = {
      '/a': { get: { servers: own }, post: { servers: [] }, servers: shared },
      '/b': { get: {}, servers: [] },
    };

    expect(await entries(shop(paths))).toEqual([
      'GET:own.example/a',
      'GET:shop.example/b',
      'POST:shared.example/a',
    ]);
  });

  it('ignores a server that no operation uses', async () => {
    const paths = { '/a': { get: {}, servers: SERVERS } };
    expect(await entries(shop(paths, { servers: [{ url: 'https://192.0.2.1' }] }))).toEqual([
      'GET:shop.example/a',
    ]);
    expect(await entries({ openapi: '3.0.0', paths })).toEqual(['GET:shop.example/a']);
  });

  it.each([
    ['a relative server', at({ url: '/v1/' }), 'v1/orders'],
    ['no server', shop({ '/orders': { get: {} } }, { servers: undefined }), 'orders'],
    ['an empty list of servers', at(), 'orders'],
    ['a Swagger document without host', swagger({ basePath: '/v1' }), 'v1/orders'],
  ])('uses the hosts option for %s', async (_, document, path) => {
    expect(await entries(document, { hosts: ['B.example', 'a.example'] })).toEqual([
      `GET:a.example/${path}`,
      `GET:b.example/${path}`,
    ]);
    expect(await refusal(document)).toContain('hosts: ["shop.example"]');
    expect(await refusal(document, { hosts: [] })).toContain('hosts: ["shop.example"]');
  });

  it('ignores the hosts option for a server with its own host', async () => {
    expect(await entries(at(...SERVERS), { hosts: ['a.example'] })).toEqual([
      'GET:shop.example/orders',
    ]);
  });

  it.each<[what: string, server: { url: string; variables?: object }]>([
    ['a variable without a value', { url: 'https://{tenant}/v1' }],
    ['a variable in a label', { url: 'https://{tenant}.example/v1' }],
    ['a variable with an example', { url: 'https://{t}/v1', variables: { t: { default: 'a.b' } } }],
    [
      'a variable that stands for itself',
      { url: 'https://{t}/v1', variables: { t: { default: '{t}' } } },
    ],
    ['a variable with a port', { url: 'https://{tenant}:{port}/v1' }],
    ['a variable for the scheme, too', { url: '{scheme}://{tenant}/v1' }],
    ['a variable without a scheme', { url: '//{tenant}/v1' }],
    ['nothing but a variable', { url: '{server}/v1' }],
    [
      'a variable that holds all',
      { url: '{all}', variables: { all: { default: 'https://a.b/v1' } } },
    ],
    ['a name in angle brackets', { url: '<your server>/v1' }],
    ['a shell variable', { url: 'https://$HOST/v1' }],
    ['underscores', { url: 'https://__host__/v1' }],
    ['an IP address', { url: 'http://192.0.2.1:8080/v1' }],
  ])('replaces a server that stands for the host of its reader: %s', async (_, server) => {
    const hosts = ['own.example'];
    expect(await entries(at(server), { hosts })).toEqual(['GET:own.example/v1/orders']);
  });

  it.each(['https://{tenant}/v1', '{server}/v1', '<your server>/v1', 'https://__host__'])(
    'refuses such a server without the option hosts: %s',
    async (url) => {
      expect(await refusal(at({ url }))).toContain('hosts: ["shop.example"]');
    },
  );

  it('replaces only servers of that kind', async () => {
    const variables = { region: { default: 'eu', enum: ['eu', 'us'] } };
    const servers = [
      { url: 'https://api.shop.example' },
      { url: 'https://{region}.shop.example', variables },
      { url: 'https://{tenant}.shop.example' },
    ];
    expect(await entries(at(...servers), { hosts: ['own.example'] })).toEqual([
      'GET:api.shop.example/orders',
      'GET:eu.shop.example/orders',
      'GET:own.example/orders',
      'GET:us.shop.example/orders',
    ]);
    expect(await refusal(at({ url: 'https://ann:x@{tenant}' }), { hosts: ['a.b'] })).toContain(
      'no user info',
    );
  });

  it('reads a variable of the base path without a value as any segment', async () => {
    const url = 'https://shop.example/{tenant}/v1';
    const { catalog } = await readOpenApi(at({ url }, { url: `${url}/{a}{b`, variables: {} }), {
      skip: true,
    });
    expect(catalog.toArray()).toEqual(['GET:shop.example/{}/v1/orders$']);
    expect((await readOpenApi(at({ url: '/{tenant}' }), { hosts: ['a.b'] })).entries).toMatchObject(
      [{ scope: 'GET:a.b/{}/orders$' }],
    );
  });

  it('reports a faulty server once, however many operations use it', async () => {
    const paths = { '/a': { get: {}, post: {} }, '/b': { get: {} } };
    const message = await refusal(shop(paths, { servers: [{ url: 'https://192.0.2.1' }] }));
    expect(message.match(/IP address/g)).toHaveLength(1);
    expect(message).toContain('documents[0] ("Shop"), servers[0] "https://192.0.2.1"');
  });
});

describe('the option skip', () => {
  const bad = { '/a b': { get: {} }, '/c': { gett: {}, put: {} }, '/d': { $ref: '#/nowhere' } };
  const document = shop({ '/orders': { get: {} }, ...bad });

  it('leaves out operations that cannot become an entry, and lists them', async () => {
    const { catalog, skipped } = await readOpenApi(document, { skip: true });

    expect(catalog.toArray()).toEqual(['GET:shop.example/orders$', 'PUT:shop.example/c$']);
    expect(skipped.map((text) => text.replace('documents[0] ("Shop"), ', ''))).toEqual([
      expect.stringMatching(/^GET "\/a b": .*path_illegal_character/),
      expect.stringMatching(/^path "\/c": "gett" is not a method/),
      expect.stringMatching(/^path "\/d": its \$ref "#\/nowhere" must point at/),
    ]);
  });

  it('is offered by the error without it', async () => {
    expect(await refusal(document)).toContain('skip: true');
    expect(await refusal(document, { skip: false })).toContain('skip: true');
    expect((await readOpenApi(shop({ '/orders': { get: {} } }))).skipped).toEqual([]);
  });

  it('names the operations of a server that cannot be read', async () => {
    const mixed = shop({
      '/orders': { get: {} },
      '/bills': { get: { servers: [{ url: '/v1' }] } },
    });
    const { catalog, skipped } = await readOpenApi(mixed, { skip: true });

    expect(catalog.toArray()).toEqual(['GET:shop.example/orders$']);
    expect(skipped).toEqual([
      expect.stringContaining('GET "/bills", servers[0] "/v1": names no host'),
      expect.stringContaining('GET "/bills": has no server that is read'),
    ]);
  });

  it.each([
    ['is not one', { paths: {} }],
    ['has no paths', { openapi: '3.0.0' }],
    ['is not JSON', '{'],
  ])('does not leave out a document that %s', async (_, other) => {
    const message = await refusal([document, other], { skip: true });
    expect(message).toContain('documents[1]');
    expect(message).not.toContain('skip');
  });

  it.each(['true', 1, null])('must be true or false: %j', async (skip) => {
    await expect(readOpenApi(document, { skip: skip as never })).rejects.toMatchObject({
      code: 'invalid_options',
    });
  });
});

describe('the variables of a server', () => {
  const url = 'https://{region}.shop.example:{port}/{version}';
  const port = { default: '443' };

  it('take every value of an enum, or the default without one', async () => {
    const region = { default: 'eu', enum: ['eu', 'us', 'eu'] };
    const version = { default: 'v1', enum: [] };

    expect(await entries(at({ url, variables: { region, port, version } }))).toEqual([
      'GET:eu.shop.example/v1/orders',
      'GET:us.shop.example/v1/orders',
    ]);
  });

  it('can be the host, be used twice, and hold replacement patterns such as $&', async () => {
    const variables = { host: { default: 'shop.example' }, tag: { default: '$&' } };
    expect(await entries(at({ url: 'https://{host}/{tag}/{tag}', variables }))).toEqual([
      'GET:shop.example/$&/$&/orders',
    ]);
  });

  it('are ignored if they are not used', async () => {
    const variables = { unused: {}, region: { default: 'eu' } };
    expect(await entries(at({ url: 'https://{region}.example', variables }))).toEqual([
      'GET:eu.example/orders',
    ]);
  });

  it.each([
    ['is missing', undefined],
    ['has neither default nor enum', {}],
    ['has a number for a default', { default: 8443 }],
    ['has a default with braces', { default: '{region}' }],
    ['has an enum with null', { default: 'eu', enum: ['eu', null] }],
  ])('are refused if one %s', async (_, region) => {
    const message = await refusal(at({ url: 'https://{region}.example', variables: { region } }));
    expect(message).toContain('the variable "region"');
  });

  it.each([
    [[8, 8], 64],
    [[5, 13], undefined],
    [[65], undefined],
    [[1000, 1000, 1000, 1000], undefined],
  ])('with %j values give %s servers, if they are not too many', async (counts, expected) => {
    const variables = Object.fromEntries(
      counts.map((count, index) => [
        `v${index}`,
        { default: 'a', enum: Array.from({ length: count }, (_, value) => `a${value}`) },
      ]),
    );
    const name = Object.keys(variables).map((variable) => `{${variable}}`);
    const document = at({ url: `https://${name.join('.')}.example`, variables });

    if (expected === undefined) expect(await refusal(document)).toContain('at most 64');
    else expect(await entries(document)).toHaveLength(expected);
  });
});

/** A Swagger 2.0 document with one path. */
function swagger(more: object): object {
  return { swagger: '2.0', paths: { '/orders': { get: {} } }, ...more };
}

describe('catalogFromOpenApi with Swagger 2.0', () => {
  it.each([
    [{ host: 'shop.example' }, 'GET:shop.example/orders'],
    [{ host: 'Shop.example:8443', basePath: '/' }, 'GET:shop.example/orders'],
    [{ host: 'shop.example', basePath: '/v1/' }, 'GET:shop.example/v1/orders'],
    [
      { host: 'shop.example', schemes: ['wss'], servers: [{ url: '/' }] },
      'GET:shop.example/orders',
    ],
  ])('reads the members %j', async (more, expected) => {
    expect(await entries(swagger(more))).toEqual([expected]);
  });

  it.each([
    [{ host: 'https://shop.example' }, 'host name'],
    [{ host: 'ann:hunter2@shop.example' }, 'user info'],
    [{ host: '192.0.2.1:80' }, 'IP address'],
    [{ host: '{tenant}.example' }, 'the variable "tenant"'],
    [{ host: 7 }, 'host name'],
    [{ host: 'shop.example', basePath: 'v1' }, 'basePath'],
    [{ host: 'shop.example', basePath: '/{v}' }, 'basePath'],
    [{ host: 'shop.example', basePath: '//v1' }, 'empty segment'],
  ])('refuses the members %j', async (more, reason) => {
    const message = await refusal(swagger(more));
    expect(message).toContain(reason);
    expect(message).not.toContain('hunter2');
  });
});

describe('the root path', () => {
  const rootName = 'root';
  const based = { servers: [{ url: 'https://shop.example/v1' }] };

  it.each(['', '/'])('needs a rootName for the path "%s"', async (path) => {
    const document = shop({ [path]: { get: {} } });

    expect(await entries(document, { rootName })).toEqual(['GET:shop.example/root']);
    expect(await refusal(document)).toContain('rootName: "root"');
  });

  it.each(['', '/'])('becomes the base path if there is one: "%s"', async (path) => {
    const document = shop({ [path]: { get: {} } }, based);

    expect(await entries(document)).toEqual(['GET:shop.example/v1']);
    expect(await entries(document, { rootName })).toEqual(['GET:shop.example/v1']);
  });

  it.each(['/{id}', '/{id}/items', '/a{b}', '/{id}.json'])(
    'is not used for the template path %s',
    async (path) => {
      const document = shop({ [path]: { get: {} } });

      expect(await refusal(document)).toContain('starts with a template');
      expect(await refusal(document, { rootName })).toContain('x-scope');
      expect(await entries(shop({ [path]: { get: {} } }, based))).toEqual(['GET:shop.example/v1']);
    },
  );
});

describe('x-scope', () => {
  it('replaces the path, including the base path', async () => {
    const paths = {
      '/{id}': { get: { 'x-scope': 'orders/export' }, servers: [{ url: 'https://a.example/v1' }] },
      '/b,c//d': { get: { 'x-scope': 'b' } },
      '/e': { get: { 'x-scope': undefined }, 'x-scope': 'f' },
    };
    expect(await entries(shop(paths))).toEqual([
      'GET:a.example/orders/export',
      'GET:shop.example/b',
      'GET:shop.example/e',
    ]);
  });

  it.each([
    ['orders/{}/items', 'orders/{}/items'],
    ['orders/{id}/items$', 'orders/{}/items$'],
    ['$', '$'],
    ['a$$', 'a$$'],
  ])('can be %s with any granularity', async (text, path) => {
    const document = shop(
      { '/a': { get: { 'x-scope': text } } },
      { servers: [{ url: 'https://shop.example/v1' }] },
    );
    expect(await entries(document)).toEqual([`GET:shop.example/${path}`]);
    expect(await entries(document, { granularity: 'operation' })).toEqual([
      `GET:shop.example/${path}`,
    ]);
  });

  it.each([
    '',
    '*',
    'orders/*',
    '/orders',
    'orders/',
    'orders//export',
    'orders/{id}.json',
    'orders/$',
    'orders?x',
    'or%64ers',
    'orders/..',
    'caf\u00e9',
    'a'.repeat(513),
    'GET:shop.example/orders',
    '*:shop.example/*',
    null,
    true,
    7,
    ['orders'],
    { path: 'orders' },
  ])('is refused if it is %j', async (text) => {
    const message = await refusal(shop({ '/orders': { get: { 'x-scope': text } } }));
    expect(message).toContain('GET "/orders"');
    expect(message).toContain('the path part of a scope');
  });
});

describe('references within a document', () => {
  const item = { get: {}, servers: [{ url: 'https://a.example' }] };

  it.each([
    ['#/components/pathItems/orders'],
    ['#/components/pathItems/again'],
    ['#/paths/~1orders~1{id}'],
    ['#/paths/%7E1orders~1%7Bid%7D'],
    ['#/paths/~1~01'],
  ])('are followed to %s', async ($ref) => {
    const again = { $ref: '#/components/pathItems/orders' };
    const components = { pathItems: { orders: item, again } };
    const paths = { '/orders/{id}': item, '/~1': item, '/a': { $ref } };

    expect(await entries(shop(paths, { components }))).toContain('GET:a.example/a');
  });

  it('keep their siblings, which take precedence', async () => {
    const beside = { $ref: '#/components/pathItems/orders', post: {}, get: { 'x-scope': 'b' } };
    const components = { pathItems: { orders: { ...item, put: {} } } };

    expect(await entries(shop({ '/a': beside }, { components }))).toEqual([
      'GET:a.example/b',
      'POST:a.example/a',
      'PUT:a.example/a',
    ]);
  });

  it.each([
    ['#/paths/~1a', 'leads back to itself'],
    ['#/paths/~1b', 'leads back to itself'],
    ['#/paths/~1missing', 'same document'],
    ['#/paths/~1text', 'must be an object'],
    ['#/paths/~1orders/get', 'same document'],
    ['#/components/schemas/orders', 'same document'],
    ['#/paths/%zz', 'same document'],
    ['#/paths/toString', 'same document'],
    ['#', 'same document'],
    ['', 'same document'],
    ['other.json#/paths/~1orders', 'same document'],
    ['https://shop.example/openapi.json', 'same document'],
    ['https://ann:hunter2@shop.example/openapi.json', 'same document'],
    [{}, 'same document'],
    [null, 'same document'],
  ])('are refused if they are %j: %s', async ($ref, reason) => {
    const paths = { '/a': { $ref }, '/b': { $ref: '#/paths/~1a' }, '/orders': item, '/text': 'a' };
    const message = await refusal(shop(paths));
    expect(message).toContain(reason);
    expect(message).not.toContain('hunter2');
  });
});

describe('the refusals of catalogFromOpenApi', () => {
  it('name the first ten problems of all documents, and count the rest', async () => {
    const bad = (count: number) =>
      shop(Object.fromEntries(Array.from({ length: count }, (_, i) => [`/a,${i}`, { get: {} }])));

    const ten = await refusal([shop({}), bad(9), {}]);
    expect(ten.match(/documents\[1\] \("Shop"\), GET/g)).toHaveLength(9);
    expect(ten).toContain('documents[2]: is not an OpenAPI document');
    expect(ten).not.toContain('more');
    const eleven = await refusal([bad(10), {}]);
    expect(eleven.match(/documents\[/g)).toHaveLength(10);
    expect(eleven).toContain('; and 1 more');
    expect(await refusal(bad(500))).toContain('; and 490 more');
  });

  it('are short and printable for any content of the documents', async () => {
    const nasty = '/\u001b[31m\r\n\u202e\u{1f600}'.repeat(500);
    const paths = Object.fromEntries(
      Array.from({ length: 20 }, (_, i) => [nasty + i, { get: { 'x-scope': nasty } }]),
    );

    const message = await refusal(shop(paths, { info: { title: nasty } }));

    expect(message.length).toBeLessThan(8000);
  });
});

describe('the options of catalogFromOpenApi', () => {
  it.each([
    [{ host: 'shop.example' }],
    [{ rootname: 'root' }],
    [{ hosts: 'shop.example' }],
    [{ hosts: ['shop.example:443'] }],
    [{ hosts: ['https://shop.example'] }],
    [{ hosts: ['*.shop.example'] }],
    [{ hosts: ['192.0.2.1'] }],
    [{ hosts: ['shop.example', 7] }],
    [{ hosts: null }],
    [{ rootName: '' }],
    [{ rootName: '/' }],
    [{ rootName: 'a/b' }],
    [{ rootName: '*' }],
    [{ rootName: '..' }],
    [{ rootName: '{root}' }],
    [{ rootName: '$' }],
    [{ rootName: 'root$' }],
    [{ rootName: 'a'.repeat(512) }],
    [{ granularity: 'prefix', rootName: 'root$' }],
    [{ granularity: 'prefix', rootName: 'a'.repeat(513) }],
    [{ granularity: 'method' }],
    [{ granularity: '' }],
    [{ granularity: null }],
    [{ rootName: null }],
    [null],
    [[]],
  ])('are refused if they are %j', async (options) => {
    // @ts-expect-error some of them do not compile
    const made: Promise<unknown> = catalogFromOpenApi(at(...SERVERS), options);
    await expect(made).rejects.toSatisfy(isTokenError);
    await expect(made).rejects.toMatchObject({ code: 'invalid_options' });
  });

  it.each([
    [undefined],
    [{}],
    [{ granularity: undefined, hosts: undefined, rootName: undefined }],
    [{ granularity: 'operation', rootName: 'a'.repeat(511) }],
    [{ hosts: ['a.example'], rootName: 'root' }],
  ] as const)('are accepted if they are %j', async (options) => {
    const catalog = await catalogFromOpenApi(at(...SERVERS), options);
    expect(catalog.toArray()).toEqual(['GET:shop.example/orders$']);
  });

  it('can have a rootName of 512 characters for prefixes', async () => {
    const rootName = 'a'.repeat(512);
    const document = shop({ '/': { get: {} } });
    expect(await entries(document, { rootName })).toEqual([`GET:shop.example/${rootName}`]);
  });
});

const data = new URL('../../../shared/data/', import.meta.url);
const isHere = existsSync(new URL('oas/', data));

describe.skipIf(!isHere)(`real documents (skipped without ${data.pathname})`, () => {
  const folder = new URL('oas/', data);
  const names = isHere ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
  const read = (name: string): unknown => JSON.parse(readFileSync(new URL(name, folder), 'utf8'));
  const documents = names.map(read);

  it('all load, one by one and together', async () => {
    const each = await Promise.all(documents.map((one) => entries(one, { rootName: 'root' })));
    const all = await entries(documents, { rootName: 'root' });

    expect(names).toHaveLength(14);
    expect(each.every((found) => found.length > 0)).toBe(true);
    expect(all).toEqual([...new Set(each.flat())].sort());
    expect(all).toContain('GET:imprese.openapi.it/advance');
    expect(all).toContain('GET:exchange.altravia.com/root');
  });

  it('need a rootName for a single path', async () => {
    const message = await refusal(documents);
    expect(message.match(/documents\[/g)).toHaveLength(1);
    expect(message).toContain('rootName: "root"');
  });

  it.each([
    ['/advance', true],
    ['/advance/12485671007', true],
    ['/advancex', false],
    ['/', false],
  ])('allow %s with one entry: %s', async (target, allowed) => {
    const [entry = ''] = (await entries(documents, { rootName: 'root' })).filter(
      (scope) => scope === 'GET:imprese.openapi.it/advance',
    );
    const request = { method: 'GET', domain: 'imprese.openapi.it', target };

    expect(ScopeSet.from([entry]).allows(request).allowed).toBe(allowed);
  });
});
