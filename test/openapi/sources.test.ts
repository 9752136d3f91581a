import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { isTokenError } from '../../src/errors.ts';
import { catalogFromOpenApi, readOpenApi } from '../../src/openapi/index.ts';
import { entries, refusal } from './support.ts';

const PARSER = '@apidevtools/swagger-parser';
const SHOP = {
  openapi: '3.1.0',
  info: { title: 'Shop' },
  servers: [{ url: 'https://shop.example' }],
};
const YAML = `openapi: 3.1.0
info: { title: Shop }
servers:
  - url: https://{region}.shop.example/v1
    variables: { region: { default: eu, enum: [eu, us] } }
paths:
  /orders/{id}:
    get: {}
`;

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tokenwright-openapi-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => vi.doUnmock(PARSER));

/** Writes files to a new folder, objects as JSON. Returns a function that gives the path of each. */
function write(files: Readonly<Record<string, unknown>>): (name: string) => string {
  const root = mkdtempSync(join(folder, 'case-'));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(root, name, '..'), { recursive: true });
    const isRaw = typeof content === 'string' || content instanceof Uint8Array;
    writeFileSync(join(root, name), isRaw ? content : JSON.stringify(content));
  }
  return (name) => join(root, name);
}

/** Acts as if the package that reads YAML were not installed. */
function withoutParser(): void {
  vi.doMock(PARSER, () => {
    throw new Error(`Cannot find package '${PARSER}'`);
  });
}

describe('a document as a text', () => {
  const json = JSON.stringify({ ...SHOP, paths: { '/orders': { get: {} } } });

  it.each([
    ['JSON', json, ['GET:shop.example/orders']],
    [
      'JSON of several lines',
      JSON.stringify(JSON.parse(json), null, 2),
      ['GET:shop.example/orders'],
    ],
    ['JSON after white space', ` \n\t${json}`, ['GET:shop.example/orders']],
    ['JSON after a byte order mark', `\ufeff${json}`, ['GET:shop.example/orders']],
    ['YAML', YAML, ['GET:eu.shop.example/v1/orders', 'GET:us.shop.example/v1/orders']],
    ['YAML in braces', '{openapi: 3.1.0, paths: {}}', []],
    ['YAML with Windows line ends', 'openapi: 3.1.0\r\npaths: {}\r\n', []],
    ['YAML of 3.2', 'openapi: 3.2.0\npaths: {}\n', []],
    ['YAML of a version that the parser does not know', 'openapi: 3.1.77\npaths: {}\n', []],
    [
      'YAML of Swagger 2.0',
      'swagger: "2.0"\nhost: a.example\npaths: { /b: { get: {} } }\n',
      ['GET:a.example/b'],
    ],
    [
      'YAML with an anchor',
      `${YAML.replace('{}', '&op {}')}    put: *op\n`,
      expect.arrayContaining(['PUT:eu.shop.example/v1/orders']),
    ],
  ])('can be %s', async (_, text, expected) => {
    expect(await entries(text)).toEqual(expected);
    expect(await entries([text])).toEqual(expected);
  });

  it.each([
    ['neither JSON nor YAML', '{"openapi": ', 'documents[0]: is neither JSON nor YAML'],
    ['broken YAML', 'paths: [\n  hunter2: {', 'documents[0]: is neither JSON nor YAML'],
    ['a plain text', 'hunter2\nhunter3', 'documents[0]: is neither JSON nor YAML'],
    ['only line breaks', '\n\n', 'documents[0]: is neither JSON nor YAML'],
    ['YAML with a custom tag', 'paths: !!js/function hunter2\n', 'is neither JSON nor YAML'],
    [
      'YAML with a duplicate path',
      'openapi: 3.1.0\npaths:\n  /a: {}\n  /a: {}\n',
      'neither JSON nor YAML',
    ],
    ['YAML with a number as the version', 'swagger: 2.0\npaths: {}\n', '"swagger": "2.0"'],
    ['JSON that is not a document', '{}', 'is not an OpenAPI document'],
    ['YAML with a merge key', `${YAML}  /a: { <<: { get: {} } }\n`, 'merge keys'],
    [
      'the name of a missing file',
      'openapi: 3.1.0',
      'a text that begins with "{" or has several lines',
    ],
    ['empty', '', 'cannot be read'],
  ])('is refused if it is %s', async (_, text, reason) => {
    const message = await refusal(text);
    expect(message).toContain(reason);
    expect(message).not.toContain('hunter2');
  });

  it('can be combined with objects and files', async () => {
    const at = write({ 'a.yaml': YAML, 'b.json': { ...SHOP, paths: { '/b': { get: {} } } } });
    const object = { ...SHOP, paths: { '/c': { get: {} } } };

    expect(await entries([YAML, object, at('a.yaml'), pathToFileURL(at('b.json'))])).toEqual([
      'GET:eu.shop.example/v1/orders',
      'GET:shop.example/b',
      'GET:shop.example/c',
      'GET:us.shop.example/v1/orders',
    ]);
    expect(await refusal([object, '{', at('a.yaml')])).toMatch(/^[^[]*documents\[1\]:[^[]*$/);
  });

  it('cannot refer to files', async () => {
    const at = write({ 'item.json': { get: {} } });
    const $ref = pathToFileURL(at('item.json')).href;
    const document = { ...SHOP, paths: { '/a': { $ref } } };

    expect(await refusal(document)).toContain('of the same document');
    expect(await refusal(JSON.stringify(document))).toContain('given as a file');
  });
});

describe('a document as a file', () => {
  const document = { ...SHOP, paths: { '/orders': { get: {} } } };

  it.each(['a.json', 'a.yaml', 'a b%20#?.json', 'noending', 'deep/er/a.json'])(
    'is read by path and by URL: %s',
    async (name) => {
      const at = write({ [name]: document });
      const expected = ['GET:shop.example/orders'];

      expect(await entries(at(name))).toEqual(expected);
      expect(await entries(relative(process.cwd(), at(name)))).toEqual(expected);
      expect(await entries(pathToFileURL(at(name)))).toEqual(expected);
      expect(await entries(pathToFileURL(at(name)).href)).toEqual(expected);
    },
  );

  it.each([
    ['is missing', (at: (name: string) => string) => at('missing.json'), 'cannot be read'],
    ['is a folder', (at: (name: string) => string) => at('.'), 'cannot be read'],
    ['is a device that never ends', () => '/dev/zero', 'cannot be read'],
    ['reports that it is empty', () => '/proc/kmsg', 'neither JSON nor YAML'],
    ['is a pipe that nobody writes to', (at: (name: string) => string) => at('pipe'), 'cannot be'],
    ['is too large', (at: (name: string) => string) => at('large.json'), 'of at most 64 MiB'],
    ['has an impossible name', () => 'a\0b', 'cannot be read'],
    [
      'is not UTF-8',
      (at: (name: string) => string) => at('latin.json'),
      'neither JSON nor YAML in UTF-8',
    ],
    ['is empty', (at: (name: string) => string) => at('empty.yaml'), 'neither JSON nor YAML'],
    ['holds a list', (at: (name: string) => string) => at('list.json'), 'not an OpenAPI document'],
    [
      'is a URL of a missing file',
      (at: (name: string) => string) => pathToFileURL(at('x')),
      'cannot be read',
    ],
    ['has an encoded slash', () => new URL('file:///a%2Fb'), 'cannot be read'],
    ['is on another host', () => new URL('file://host.example/a.json'), 'nothing is fetched'],
    ['is a data URL', () => new URL('data:text/plain,hunter2'), 'nothing is fetched'],
    ['is an FTP URL', () => 'ftp://ann:hunter2@shop.example/a.json', 'nothing is fetched'],
  ])('is refused if it %s', async (_, locate, reason) => {
    const at = write({
      'latin.json': Buffer.from(
        '{"openapi":"3.1.0","info":{"title":"\u00e9"},"paths":{}}',
        'latin1',
      ),
      'empty.yaml': '',
      'list.json': [1],
      'large.json': '',
    });
    truncateSync(at('large.json'), 64 * 1024 * 1024 + 1);
    execFileSync('mkfifo', [at('pipe')]);
    const message = await refusal([document, locate(at)]);
    expect(message).toContain('documents[1]');
    expect(message).toContain(reason);
    expect(message).not.toContain('hunter2');
  });

  it('is named by its file name if it has no title', async () => {
    const at = write({ 'shop.json': { openapi: '3.1.0', paths: 7 } });
    expect(await refusal(pathToFileURL(at('shop.json')))).toContain('documents[0] ("shop.json")');
  });
});

describe('a $ref between files', () => {
  const item = { get: {}, put: {} };

  it.each([
    ['a whole file', 'item.json', { 'item.json': item }],
    ['a part of one', 'parts.json#/a~1b/0', { 'parts.json': { 'a/b': [item] } }],
    [
      'a path of another document',
      'other.json#/paths/~1x',
      { 'other.json': { ...SHOP, paths: { '/x': item } } },
    ],
    ['YAML', 'item.yaml', { 'item.yaml': 'get: {}\nput: {}\n' }],
    ['a part of YAML', 'parts.yaml#/it', { 'parts.yaml': 'it:\n  get: {}\n  put: {}\n' }],
    ['a folder below', 'down/item.json', { 'down/item.json': item }],
    ['a name that begins with two dots', '..data/item.json', { '..data/item.json': item }],
    ['a name in need of encoding', 'a%20b.json', { 'a b.json': item }],
    [
      'a chain of files',
      'x/1.json',
      {
        'x/1.json': { $ref: '../y/2.json#/two' },
        'y/2.json': { two: { $ref: '#/three' }, three: item },
      },
    ],
    ['the document itself', 'main.json#/paths/~1b', {}],
  ])('can lead to %s', async (_, $ref, files) => {
    const moved = Object.entries(files).map(([name, content]) => [`docs/${name}`, content]);
    const main = { ...SHOP, paths: { '/a': { $ref }, '/b': item } };
    const at = write({ 'docs/main.json': main, ...Object.fromEntries(moved) });

    expect(await entries(at('docs/main.json'))).toEqual([
      'GET:shop.example/a',
      'GET:shop.example/b',
      'PUT:shop.example/a',
      'PUT:shop.example/b',
    ]);
  });

  it.each([
    ['a missing file', 'missing.json', 'leads to what cannot be read'],
    ['a missing part', 'item.json#/nothing', 'that is in that file'],
    ['a pointer without a slash', 'item.json#get', 'that is in that file'],
    ['another part of a document', 'other.json#/components', 'that is in that file'],
    ['a text', 'text.json#/text', 'must be an object'],
    ['broken YAML', 'broken.yaml', 'is neither JSON nor YAML'],
    ['itself', 'main.json#/paths/~1a', 'leads back to itself'],
    ['itself by another file', 'loop.json', 'leads back to itself'],
    ['itself in another file', 'self.json#/self', 'leads back to itself'],
    ['a URL', 'https://ann:hunter2@shop.example/item.json', 'nothing is fetched'],
    ['a host without a scheme', '//shop.example/item.json', 'nothing is fetched'],
    ['an invalid URL', 'http://[', 'leads to what cannot be read'],
  ])('is refused if it leads to %s', async (_, $ref, reason) => {
    const at = write({
      'main.json': { ...SHOP, paths: { '/a': { $ref } } },
      'item.json': item,
      'other.json': { ...SHOP, components: { get: {} } },
      'text.json': { text: 'hunter2' },
      'broken.yaml': 'hunter2: [',
      'loop.json': { $ref: 'main.json#/paths/~1a' },
      'self.json': { self: { $ref: 'self.json#/self' } },
    });

    const message = await refusal(at('main.json'));

    expect(message).toContain('documents[0] ("Shop"), path "/a"');
    expect(message).toContain(reason);
    expect(message).not.toContain('hunter2');
  });

  it.each([
    [32, true],
    [33, false],
  ])('is followed %i times in a row: %s', async (count, isTaken) => {
    const chain = Array.from({ length: count }, (_, i) => [`p${i}`, { $ref: `#/p${i + 1}` }]);
    const at = write({
      'main.json': { ...SHOP, paths: { '/a': { $ref: 'chain.json#/p1' } } },
      'chain.json': { ...Object.fromEntries(chain), [`p${count}`]: item },
    });

    if (isTaken) expect(await entries(at('main.json'))).toHaveLength(2);
    else expect(await refusal(at('main.json'))).toContain('at most 32');
  });

  describe('to a file outside the folder of the document', () => {
    const main = ($ref: string) => ({ ...SHOP, paths: { '/a': { $ref } } });
    const files = { 'docs/main.json': main('../up.json'), 'up.json': item };

    it('is followed if the root option allows it', async () => {
      const at = write(files);
      const found = ['GET:shop.example/a', 'PUT:shop.example/a'];
      const root = at('.');

      expect(await entries(at('docs/main.json'), { root })).toEqual(found);
      expect(await entries(at('docs/main.json'), { root: pathToFileURL(root) })).toEqual(found);
      expect(await entries(at('docs/main.json'), { root: relative(process.cwd(), root) })).toEqual(
        found,
      );
    });

    it('is refused with the same message whether or not the file exists', async () => {
      const at = write({
        ...files,
        'docs/broken.json': main('../broken.yaml'),
        'docs/missing.json': main('../missing.json'),
        'docs/text.json': main(pathToFileURL('/etc/passwd').href),
        'docs/folder.json': main('..'),
        'docs/beside.json': main('../docs-2/item.json'),
        'docs/round.json': main('down/../../up.json'),
        'docs/down/x.json': {},
        'docs-2/item.json': item,
        'broken.yaml': 'hunter2: [',
      });

      const reasons = new Set<string>();
      for (const name of ['main', 'broken', 'missing', 'text', 'folder', 'beside', 'round']) {
        const message = await refusal(at(`docs/${name}.json`));
        reasons.add(message.replace(/its \$ref "[^"]*"/, 'its $ref'));
      }

      expect([...reasons]).toEqual([
        'no catalog can be made of the OpenAPI documents: documents[0] ("Shop"), path "/a": its $ref leads to what cannot be read; it must be a file in the folder of the document, or in that of the option root; the option skip, as skip: true, leaves such operations out',
      ]);
    });

    it('is not followed through a link, unless the link stays inside', async () => {
      const at = write({ ...files, 'docs/real/item.json': item });
      symlinkSync(at('up.json'), at('docs/link.json'));
      symlinkSync(at('.'), at('docs/folder'));
      symlinkSync(at('docs/real'), at('docs/inside'));
      const main2 = ($ref: string) => {
        writeFileSync(at('docs/main.json'), JSON.stringify(main($ref)));
        return at('docs/main.json');
      };

      expect(await refusal(main2('link.json'))).toContain('leads to what cannot be read');
      expect(await refusal(main2('folder/up.json'))).toContain('leads to what cannot be read');
      expect(await entries(main2('inside/item.json'))).toHaveLength(2);
      expect(await entries(main2('folder/up.json'), { root: at('.') })).toHaveLength(2);
    });

    it('is judged by the folder of the document, not of the file in between', async () => {
      const at = write({
        'docs/main.json': main('down/item.json'),
        'docs/down/item.json': { $ref: '../other.json' },
        'docs/other.json': { $ref: '../up.json' },
        'up.json': item,
      });

      expect(await refusal(at('docs/main.json'))).toContain('"../up.json" leads to what cannot');
      writeFileSync(at('docs/other.json'), JSON.stringify(item));
      expect(await entries(at('docs/main.json'))).toHaveLength(2);
    });

    it.each([
      ['a folder that is missing', 'nowhere'],
      ['a file', 'up.json'],
    ])('requires root to be an existing folder, not %s', async (_, name) => {
      const at = write(files);
      const made = catalogFromOpenApi(at('docs/main.json'), { root: at(name) });

      await expect(made).rejects.toMatchObject({
        code: 'invalid_options',
        message: 'root must be a folder that is there',
      });
    });

    it('requires root to be a path or a URL', async () => {
      const made = catalogFromOpenApi([], { root: 7 as unknown as string });
      await expect(made).rejects.toMatchObject({ code: 'invalid_options' });
    });
  });

  it('can replace paths, operations and servers, relative to its own file', async () => {
    const at = write({
      'main.yaml':
        'openapi: 3.1.0\nservers: { $ref: parts/servers.yaml }\npaths: { $ref: parts/paths.yaml }\n',
      'parts/servers.yaml':
        '- url: https://shop.example\n- $ref: "#/2"\n- url: https://test.example\n',
      'parts/paths.yaml':
        '/a: { get: { $ref: get.yaml } }\n/b: { $ref: ../main.yaml#/paths/~1a }\n',
      'parts/get.yaml': 'x-scope: orders/export\ndeprecated: true\noperationId: exportOrders\n',
    });
    // A reference cannot lead into content that another reference brings in.
    expect(await refusal(at('main.yaml'))).toContain('path "/b"');

    writeFileSync(
      at('parts/paths.yaml'),
      '/a: { get: { $ref: get.yaml } }\n/b: { $ref: "#/~1a" }\n',
    );
    const { entries: found } = await readOpenApi(at('main.yaml'));
    const about = { document: 0, method: 'GET', operationId: 'exportOrders', deprecated: true };
    const operations = [
      { ...about, path: '/a' },
      { ...about, path: '/b' },
    ];
    expect(found).toEqual([
      { scope: 'GET:shop.example/orders/export', operations },
      { scope: 'GET:test.example/orders/export', operations },
    ]);
  });

  it('is refused in an operation if it leads nowhere, since it could hold an x-scope', async () => {
    const paths = { '/a': { get: { $ref: '#/components/x-shared/a' } } };
    const shared = { components: { 'x-shared': { a: { 'x-scope': 'b' } } } };
    expect(await entries({ ...SHOP, ...shared, paths })).toEqual(['GET:shop.example/b']);
    expect(await refusal({ ...SHOP, paths })).toContain('GET "/a": its $ref');
  });

  it('can be circular in schemas, which are not read', async () => {
    const node = { properties: { next: { $ref: '#/components/schemas/node' } } };
    const far = { $ref: 'b.json#/components/schemas/node' };
    const gone = { $ref: 'https://shop.example/schema.json' };
    const schemas = { node, far, gone, missing: { $ref: 'missing.json' } };
    const document = (next: string) => ({
      ...SHOP,
      paths: { '/a': { get: { responses: { 200: { $ref: `${next}#/paths/~1a` } } } } },
      components: { schemas },
    });
    const at = write({ 'a.json': document('b.json'), 'b.json': document('a.json') });

    expect(await entries([at('a.json'), at('b.json')])).toEqual(['GET:shop.example/a']);
  });

  it('has siblings that take precedence in 3.1', async () => {
    const at = write({
      'main.json': {
        ...SHOP,
        paths: { '/a': { $ref: 'item.json', get: { 'x-scope': 'b' }, post: {} } },
      },
      'item.json': item,
    });
    expect(await entries(at('main.json'))).toEqual([
      'GET:shop.example/b',
      'POST:shop.example/a',
      'PUT:shop.example/a',
    ]);
  });
});

describe('the network', () => {
  it('is never used to read a document', async () => {
    let connections = 0;
    const server = createServer((_, response) => response.end('{"get": {}}'));
    server.on('connection', () => {
      connections += 1;
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const at = write({
      'json.json': { ...SHOP, paths: { '/a': { $ref: `${base}/item.json` } } },
      'yaml.yaml': `openapi: 3.1.0\nservers: [{ url: ${base}/ }]\npaths: { /a: { $ref: "${base}/item.yaml" } }\nx: { $id: "${base}/", $ref: "${base}/x" }\n`,
    });

    for (const document of [
      at('json.json'),
      at('yaml.yaml'),
      readFileSync(at('yaml.yaml'), 'utf8'),
      `${base}/openapi.json`,
      new URL(`${base}/openapi.yaml`),
    ]) {
      await refusal(document);
    }
    await new Promise((done) => server.close(done));

    expect(connections).toBe(0);
  });
});

describe('without the package that reads YAML', () => {
  const document = { ...SHOP, paths: { '/a': { $ref: 'item.json' }, '/b': { get: {} } } };

  it('catalogFromOpenApi reads objects, JSON texts and JSON files', async () => {
    withoutParser();
    const at = write({ 'main.json': document, 'item.json': { put: {} } });
    const plain = { ...SHOP, paths: { '/b': { get: {} } } };

    expect(await entries([plain, JSON.stringify(plain)])).toEqual(['GET:shop.example/b']);
    expect(await entries(at('main.json'))).toEqual(['GET:shop.example/b', 'PUT:shop.example/a']);
  });

  it.each([
    ['a YAML text', () => YAML],
    ['a YAML file', () => write({ 'a.yaml': YAML })('a.yaml')],
    ['broken JSON, which could be YAML', () => '{openapi: 3.1.0}'],
    [
      'a $ref to YAML',
      () => {
        const paths = { '/a': { $ref: 'item.yaml' } };
        return write({ 'main.json': { ...SHOP, paths }, 'item.yaml': 'get: {}\n' })('main.json');
      },
    ],
  ])('the error for %s names the package to install', async (_, locate) => {
    const document = locate();
    await catalogFromOpenApi(document).catch(() => undefined);
    withoutParser();

    const made = catalogFromOpenApi(document);

    await expect(made).rejects.toSatisfy(isTokenError);
    await expect(made).rejects.not.toHaveProperty('cause');
    await expect(made).rejects.toMatchObject({
      code: 'invalid_options',
      message: expect.stringContaining(`npm install ${PARSER}`),
    });
  });
});

describe('many servers and many operations', () => {
  const servers = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ url: `https://s${i}.example` }));
  const paths = (count: number, operation: object = {}) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`/p${i}`, { get: operation }]));
  const document = (serverCount: number, pathCount: number) => ({
    ...SHOP,
    servers: servers(serverCount),
    paths: paths(pathCount),
  });

  it('make at most 100 000 entries', async () => {
    expect(await entries(document(100, 1000))).toHaveLength(100_000);
    expect(await refusal(document(100, 1001))).toMatch(
      /"\/p1000": there are more than 100000 pairs of an operation and a server/,
    );
  });

  it('are counted over all documents together', async () => {
    expect(await entries([document(100, 500), document(100, 500)])).toHaveLength(50_000);
    expect(await refusal([document(100, 500), document(100, 501)])).toContain('more than 100000');
  });

  it('are counted even if each operation refers to the same servers', async () => {
    const shared = { servers: { $ref: '#/x-servers' } };
    const made = (count: number) => ({
      openapi: '3.1.0',
      info: { title: 'Shop' },
      'x-servers': servers(100),
      paths: paths(count, shared),
    });

    expect(await entries(made(1000))).toHaveLength(100_000);
    expect(await refusal(made(1001))).toContain('more than 100000');
  });
});

describe('a big document', () => {
  it('is read even if it is YAML whose aliases would expand without end', async () => {
    const bomb = Array.from({ length: 40 }, (_, i) =>
      i === 0 ? 'a0: &a0 [x]' : `a${i}: &a${i} [*a${i - 1}, *a${i - 1}]`,
    );
    expect(await entries(`${bomb.join('\n')}\n${YAML}`)).toHaveLength(2);
  });
});

const data = new URL('../../../shared/data/oas/', import.meta.url);
const names = (() => {
  try {
    return readdirSync(data).filter((name) => name.endsWith('.json'));
  } catch {
    return [];
  }
})();

describe.skipIf(names.length === 0)(`real files (skipped without ${data.pathname})`, () => {
  const rootName = 'root';
  const urls = names.map((name) => new URL(name, data));
  const texts = urls.map((url) => readFileSync(url, 'utf8'));

  it('give the same entries as files, texts and objects', async () => {
    const objects = await entries(
      texts.map((text) => JSON.parse(text)),
      { rootName },
    );

    expect(names).toHaveLength(14);
    expect(objects.length).toBeGreaterThan(100);
    expect(await entries(urls, { rootName })).toEqual(objects);
    expect(await entries(texts, { rootName })).toEqual(objects);
  });

  it('give the same entries as YAML', async () => {
    const yaml = await import('yaml');
    const written = texts.map((text) => yaml.stringify(JSON.parse(text)));
    expect(await entries(written, { rootName })).toEqual(await entries(urls, { rootName }));
  });
});
