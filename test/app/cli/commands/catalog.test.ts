import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { COMMANDS, filesOf, newFolder, outcomeOf, REAL_DATA, run, runInShell } from '../support.ts';

const GET = 'GET:shop.example/orders';
const POST = 'POST:shop.example/orders';
const BILLS = 'GET:shop.example/bills';

const document = {
  openapi: '3.1.0',
  servers: [{ url: 'https://shop.example' }],
  paths: {
    '/': { get: {} },
    '/orders': { get: {}, post: { deprecated: true, operationId: 'order' } },
    '/orders/{id}': { get: {} },
    '/orders/{id}.json': { get: {} },
  },
};
const OPERATIONS = [
  'GET:shop.example/$',
  'GET:shop.example/orders$',
  'GET:shop.example/orders/{}$',
  'POST:shop.example/orders$',
];

describe('catalog from-openapi', () => {
  it('prints a catalog for --catalog, and lists deprecated and merged operations on stderr', async () => {
    const file = filesOf({ 'shop.json': document });
    const printed = await run(['catalog', 'from-openapi', file('shop.json')]);

    expect(printed.code).toBe(0);
    expect(printed.stderr).toBe(`4 scopes of 5 operations in 1 document

deprecated:
  POST:shop.example/orders$

stand for several paths, which can only be granted together:
  GET:shop.example/orders/{}$
    /orders/{id}
    /orders/{id}.json
`);
    const catalog = filesOf({ 'catalog.json': printed.stdout })('catalog.json');
    const expanded = await outcomeOf(['catalog', 'expand', '*:*/*', '--catalog', catalog]);
    expect(expanded.json.granted).toEqual(JSON.parse(printed.stdout));
    expect(expanded.json.granted).toEqual(OPERATIONS);
  });

  it.each([
    ['prefix', [GET, 'GET:shop.example/root', POST]],
    ['operation', OPERATIONS],
  ])(
    'creates scopes with --granularity %s, set by flag or variable',
    async (granularity, scopes) => {
      const file = filesOf({ 'shop.json': document });
      const words = ['catalog', 'from-openapi', file('shop.json')];
      const TOKENWRIGHT_GRANULARITY = granularity;

      const given = await outcomeOf([...words, '--granularity', granularity]);
      const found = await run([...words, '--json'], { TOKENWRIGHT_GRANULARITY });

      expect(given.json.scopes).toEqual(scopes);
      expect(JSON.parse(found.stdout).scopes).toEqual(scopes);
    },
  );

  it('prints the same as JSON, with the file of each operation', async () => {
    const file = filesOf({ 'shop.json': document });

    const { json } = await outcomeOf(['catalog', 'from-openapi', file('shop.json'), '--json']);

    const get = { file: file('shop.json'), method: 'GET', deprecated: false };
    expect(json).toEqual({
      scopes: OPERATIONS,
      deprecated: [`${POST}$`],
      merged: [
        {
          scope: `${GET}/{}$`,
          operations: [
            { ...get, path: '/orders/{id}', segments: ['id'] },
            { ...get, path: '/orders/{id}.json', segments: ['id.json'] },
          ],
        },
      ],
      skipped: [],
    });
  });

  it('leaves out with --skip what cannot become a scope, and lists it', async () => {
    const paths = { ...document.paths, '/a b': { get: {} }, '/c': { gett: {} } };
    const file = filesOf({ 'shop.json': { ...document, paths } });
    const words = ['catalog', 'from-openapi', file('shop.json')];

    const { json, notes } = await outcomeOf([...words, '--skip']);

    expect(json.scopes).toEqual(OPERATIONS);
    expect(json.skipped).toEqual([
      expect.stringContaining('GET "/a b": '),
      expect.stringContaining('path "/c": "gett" is not a method'),
    ]);
    expect(notes).toContain('left out:\n  documents[0] ');
    await expect(outcomeOf(words)).rejects.toThrow('; --skip leaves such operations out');
  });

  it('lists merged paths of several servers together, and omits empty sections', async () => {
    const servers = [{ url: 'https://b.example' }, { url: 'https://a.example' }];
    const file = filesOf({
      'two.json': { ...document, servers },
      'one.json': { ...document, paths: { '/orders': { get: {} } } },
    });

    const two = await outcomeOf(['catalog', 'from-openapi', file('two.json')]);
    const one = await outcomeOf(['catalog', 'from-openapi', file('one.json')]);

    expect(two.notes).toContain(
      '  GET:a.example/orders/{}$\n  GET:b.example/orders/{}$\n    /orders/{id}\n',
    );
    expect(one.notes).toBe('1 scope of 1 operation in 1 document');
  });

  it('accepts --host and --root-name, and requires a host if the document has none', async () => {
    const { servers: _, ...nameless } = document;
    const file = filesOf({ 'shop.json': { ...nameless, paths: { '/': { get: {} } } } });
    const words = ['catalog', 'from-openapi', file('shop.json')];
    const flags = ['--host', 'a.example', '--host', 'B.example', '--root-name', 'home'];

    expect((await outcomeOf([...words, ...flags])).json.scopes).toEqual([
      'GET:a.example/home$',
      'GET:b.example/home$',
    ]);
    await expect(outcomeOf(words)).rejects.toThrow('or give --host shop.example');
    await expect(outcomeOf(['catalog', 'lint', file('shop.json')])).rejects.toThrow(
      'or give catalog from-openapi --host shop.example',
    );
  });

  it('follows references outside the folder of the document only within --root', async () => {
    const file = filesOf({ 'shared.json': { get: {} } });
    mkdirSync(file('docs'));
    const paths = { '/orders': { $ref: '../shared.json' } };
    writeFileSync(file('docs/shop.json'), JSON.stringify({ ...document, paths }));
    const words = ['catalog', 'from-openapi', file('docs/shop.json')];

    expect((await outcomeOf([...words, '--root', file('.')])).json.scopes).toEqual([`${GET}$`]);
    await expect(outcomeOf(words)).rejects.toThrow('leads to what cannot be read');
  });

  it.each([
    [['--host', 'https://canary'], '--host must be a host name'],
    [['--host', '*.canary.example'], '--host must be a host name'],
    [['--root-name', 'canary/x'], '--root-name must be one segment'],
    [['--root-name', '*'], '--root-name must be one segment'],
    [['--root-name', ''], '--root-name must be one segment'],
    [['--root-name', 'canary$'], '--root-name must be one segment'],
    [['--granularity', 'canary'], '--granularity (TOKENWRIGHT_GRANULARITY) must be operation'],
    [['--granularity', ''], '--granularity (TOKENWRIGHT_GRANULARITY) must be operation'],
    [['--root', '/canary'], '--root must be a folder that is there'],
    [['--catalog', 'x'], 'has no flag --catalog'],
  ])('refuses %j', async (flags, message) => {
    const file = filesOf({ 'shop.json': document });

    const outcome = outcomeOf(['catalog', 'from-openapi', file('shop.json'), ...flags]);

    await expect(outcome).rejects.toThrow(message);
    await expect(outcome).rejects.not.toThrow('canary');
  });
});

describe('catalog lint', () => {
  it.each([
    ['nothing in unrelated entries', [GET, `${GET}2`], []],
    ['an entry below an open entry', [GET, `${GET}/old`], ['nested']],
    ['an endpoint of a token service', [GET, 'POST:shop.example/token'], ['token_service']],
    ['a host with a subdomain in the catalog', [GET, 'GET:eu.shop.example/orders'], ['apex']],
    ['nothing below a closed entry', [`${GET}$`, `${GET}/{}$`], []],
    ['a template below an open entry', [GET, `${GET}/{}$`], ['nested']],
  ])('finds %s', async (_, catalog, codes) => {
    const file = filesOf({ 'catalog.json': catalog });

    const outcome = await outcomeOf(['catalog', 'lint', file('catalog.json')]);

    expect(outcome.json.map(({ code }: { code: string }) => code)).toEqual(codes);
    expect(outcome.isNegative).toBe(codes.length > 0);
    expect(outcome.text.split(' ', 1)).toEqual([codes[0] ?? '']);
    expect(outcome.notes).toBe(
      codes.length === 0 ? 'nothing found in 2 scopes' : '1 finding in 2 scopes',
    );
  });

  it('names the entries that a wildcard misses, and reads several files as one catalog', async () => {
    const file = filesOf({ 'a.json': [GET, BILLS], 'b.json': ['GET:eu.shop.example/orders'] });

    const { text } = await outcomeOf(['catalog', 'lint', file('a.json'), file('b.json')]);

    expect(text.split('\n')).toEqual([
      'apex  *.shop.example is every host below shop.example, and not shop.example',
      `        ${BILLS}`,
      `        ${GET}`,
    ]);
  });
});

describe('catalog diff', () => {
  const tokens = [
    { id: 'first', scopes: [GET, POST], requested: ['*:shop.example/*'] },
    { id: 'second', scopes: [POST], requested: [POST] },
  ];
  const contents = {
    'before.json': [GET, POST],
    'after.json': [POST, BILLS],
    'more.json': [GET, POST, BILLS],
    'tokens.json': tokens,
    'answer.json': { data: tokens, success: true, message: '', error: null },
    'second.json': [{ id: 'second', scopes: [POST], token: 'canary' }],
  };

  it.each([
    [['before.json', 'after.json'], true, `+ ${BILLS}\n- ${GET}\n\nbreaking: 1 scope vanishes`],
    [['before.json', 'more.json'], false, `+ ${BILLS}\n\nnot breaking: no scope vanishes`],
    [['more.json', 'more.json'], false, 'not breaking: no scope vanishes'],
    [
      ['before.json', 'after.json', 'tokens.json'],
      true,
      `+ ${BILLS}\n- ${GET}\n
first  + ${BILLS}\n       - ${GET}\n
breaking: 1 of 2 tokens loses something`,
    ],
    [
      ['before.json', 'more.json', 'answer.json'],
      false,
      `+ ${BILLS}\n\nfirst  + ${BILLS}\n\nnot breaking: none of 2 tokens loses anything`,
    ],
    [
      ['before.json', 'after.json', 'second.json'],
      false,
      `+ ${BILLS}\n- ${GET}\n\nnot breaking: none of 1 token loses anything`,
    ],
  ])(
    'prints the changes for the files %j',
    async ([before = '', after = '', held], isNegative, text) => {
      const file = filesOf(contents);
      const flags = held === undefined ? [] : ['--tokens', file(held)];

      const outcome = await outcomeOf(['catalog', 'diff', file(before), file(after), ...flags]);

      expect(outcome).toMatchObject({ isNegative, text });
      expect(outcome.json.isBreaking).toBe(isNegative);
      expect(Object.keys(outcome.json)).toEqual([
        ...['added', 'removed', 'kept', 'tokens', 'isBreaking'],
      ]);
      expect(outcome.notes !== undefined).toBe(held === 'second.json');
    },
  );

  it('reads a response of GET /token from standard input, and exits with 3 for a breaking change', async () => {
    const file = filesOf(contents);
    const words = ['catalog', 'diff', file('before.json'), file('after.json'), '--tokens', '-'];

    const ended = await run([...words, '--json'], {}, JSON.stringify({ data: tokens }));

    expect(ended).toMatchObject({ code: 3, stderr: '' });
    expect(JSON.parse(ended.stdout)).toEqual({
      added: [BILLS],
      removed: [GET],
      kept: [],
      tokens: [{ id: 'first', lost: [GET], kept: [], gained: [BILLS] }],
      isBreaking: true,
    });
  });

  it('marks operation scopes that replace prefix scopes', async () => {
    const file = filesOf({
      'shop.json': document,
      'tokens.json': [{ id: 'first', scopes: [GET], requested: [GET] }],
    });
    const shop = file('shop.json');
    const made = await outcomeOf([...['catalog', 'from-openapi', shop, '--granularity', 'prefix']]);
    const before = filesOf({ 'before.json': made.text })('before.json');
    const words = ['catalog', 'diff', before, shop];

    const all = await outcomeOf(words);
    const held = await outcomeOf([...words, '--tokens', file('tokens.json')]);
    const same = await outcomeOf([...words, '--granularity', 'prefix']);

    const lines = `+ GET:shop.example/$
- GET:shop.example/orders
= GET:shop.example/orders$
= GET:shop.example/orders/{}$
- GET:shop.example/root
- POST:shop.example/orders
= POST:shop.example/orders$`;
    expect(all.text).toBe(`${lines}\n\nbreaking: 3 scopes vanish, 3 are in their place`);
    expect(held.text).toBe(`${lines}\n
first  - GET:shop.example/orders
       = 2 scopes in their place

breaking: 1 of 1 token loses something`);
    expect(held.json.tokens[0].kept).toEqual([`${GET}$`, `${GET}/{}$`]);
    expect(same.text).toBe('not breaking: no scope vanishes');
  });

  it('masks a token value that is given as an id', async () => {
    const value = `tw_1k1${'a'.repeat(55)}`;
    const file = filesOf({ ...contents, 'tokens.json': [{ id: value, scopes: [GET] }] });
    const words = ['catalog', 'diff', file('before.json'), file('after.json')];

    const outcome = await outcomeOf([...words, '--tokens', file('tokens.json')]);

    expect(outcome.text).toContain(`tw_1k1aaaaaa…  - ${GET}`);
    expect(JSON.stringify(outcome)).not.toContain(value);
  });

  it.each([
    ['{"data":null}', 'must be a JSON array of tokens'],
    ['"canary"', 'must be a JSON array of tokens'],
    ['{"data":[],"cursor":"canary"}', 'is one page of several'],
    ['[canary', 'is not JSON'],
    ['["canary"]', 'token 1 must have an id'],
    [`[{"id":7,"scopes":["${GET}"],"token":"canary"}]`, 'token 1 must have an id'],
    ['[{"id":"a","token":"canary"}]', 'token 1: scopes must be a JSON array'],
    ['[{"id":"a","scopes":[]},{"id":"b","scopes":["GET"]}]', 'token 2: scopes: scope 1: "GET"'],
    ['[{"id":"a","scopes":[],"requested":"canary"}]', 'token 1: requested must be a JSON array'],
  ])('refuses the token file %s', async (content, message) => {
    const file = filesOf({ ...contents, 'tokens.json': content });
    const words = ['catalog', 'diff', file('before.json'), file('after.json')];

    const outcome = outcomeOf([...words, '--tokens', file('tokens.json')]);

    await expect(outcome).rejects.toThrow(message);
    await expect(outcome).rejects.not.toThrow(/canary|\n/);
  });
});

describe('catalog types', () => {
  it.each([
    [[], 'export type Scope ='],
    [['--name', 'Shop'], 'export type ShopScope ='],
  ])('prints a declaration file with the flags %j', async (flags, line) => {
    const file = filesOf({ 'catalog.json': [GET] });

    const { text, json } = await outcomeOf(['catalog', 'types', file('catalog.json'), ...flags]);

    expect(text).toContain(`${line}\n  | '${GET}';\n`);
    expect(json).toEqual({ types: `${text}\n` });
  });

  it('refuses a name that is not an identifier', async () => {
    const file = filesOf({ 'catalog.json': [GET] });

    const ended = await run(['catalog', 'types', file('catalog.json'), '--name', 'my shop']);

    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(/^tokenwright: .*must be an identifier.*\n$/);
  });
});

describe('a catalog', () => {
  it.each([
    ['list.json', '["*:shop.example/orders"]', 'an entry of a catalog names one method'],
    ['list.json', '["canary', 'is not JSON'],
    ['list.json', '{"a":"canary"}', 'is not an OpenAPI document'],
    ['list.json', '7', 'no catalog can be made'],
    ['list.yaml', 'a: canary', 'is not an OpenAPI document'],
  ])('is refused with a one-line error if %s contains %s', async (name, content, message) => {
    const file = filesOf({ [name]: content });
    const outcome = outcomeOf(['catalog', 'lint', file(name)]);

    await expect(outcome).rejects.toThrow(message);
    await expect(outcome).rejects.not.toThrow(/canary|\n/);
  });

  it('can be a folder with catalog files, but not an empty folder', async () => {
    const file = filesOf({ 'list.json': [GET], 'shop.json': document, 'notes.txt': 'canary' });

    expect((await outcomeOf(['catalog', 'lint', file('')])).notes).toContain('in 5 scopes');
    await expect(outcomeOf(['catalog', 'lint', newFolder()])).rejects.toThrow(
      'is a folder without a .json, .yaml or .yml file',
    );
  });

  it('cannot be a named pipe, which might never end', async () => {
    const ended = await runInShell(
      'mkfifo "$1/a.json"; tokenwright catalog lint "$1/a.json"',
      newFolder(),
    );

    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/a\.json" must be a file or a folder\n$/);
  });

  it.each([
    [[GET, `${GET}/old`], 3, /^nested {2}/, /^1 finding/],
    [[GET], 0, /^$/, /^nothing found/],
    [['*:*/*'], 1, /^$/, /^tokenwright: .*catalog\.json: an entry of a catalog names .*\n$/],
  ])('of %j makes lint exit with code %i', async (catalog, code, stdout, stderr) => {
    const file = filesOf({ 'catalog.json': catalog });

    const ended = await run(['catalog', 'lint', file('catalog.json')]);

    expect(ended.code).toBe(code);
    expect(ended.stdout).toMatch(stdout);
    expect(ended.stderr).toMatch(stderr);
  });
});

describe('the help examples', () => {
  const paths = { '/orders': { get: {}, post: {} }, '/orders/{id}': { get: {} } };
  const contents = {
    'catalog.json': [
      ...[`${BILLS}$`, 'POST:shop.example/bills$', `${GET}$`],
      ...[`${GET}/{}$`, `${GET}/{}/items$`],
    ],
    'openapi.json': { ...document, paths },
    'everything.json': [GET, 'POST:shop.example/token'],
    'rules.json': [
      {
        preset: 'Read only',
        request: 'GET https://shop.example/orders',
        allowed: true,
      },
      {
        scopes: [`${GET}$`],
        request: 'POST https://shop.example/orders',
        allowed: true,
      },
    ],
    'shop.json': [
      { scope: `${GET}$`, summary: 'List orders', tag: 'orders' },
      { scope: `${POST}$`, summary: 'Create an order', tag: 'orders' },
      { scope: `${BILLS}$`, summary: 'List bills', tag: 'bills' },
    ],
    'before.json': [`${GET}$`, POST],
    'after.json': [POST, `${BILLS}$`],
    'tokens.json': [
      { id: '7f3kQw', scopes: [`${GET}$`] },
      { id: '9aB2xY', scopes: [POST] },
    ],
  };

  it.each(COMMANDS)('$name prints the output that its help shows', async ({ example }) => {
    const file = filesOf(contents);

    const ended = await runInShell(`cd "$1" && tokenwright ${example.call}`, file(''));

    // An example that redirects its output shows stderr, and any other shows stdout.
    const isRedirected = example.call.includes(' > ');
    expect((isRedirected ? ended.stderr : ended.stdout).trimEnd()).toBe(example.output);
    expect([0, example.call.startsWith('catalog test') ? 1 : 3]).toContain(ended.code);
  });
});

describe.skipIf(!existsSync(REAL_DATA))('catalog with real data', () => {
  it('builds one catalog from 14 documents, and compares, lints and types it', async () => {
    const made = await outcomeOf(['catalog', 'from-openapi', `${REAL_DATA}oas`]);
    const file = filesOf({ 'made.json': made.text });
    const diff = (before: string, after: string) => outcomeOf(['catalog', 'diff', before, after]);

    const same = await diff(`${REAL_DATA}oas`, file('made.json'));
    const other = await diff(`${REAL_DATA}catalog-270.json`, `${REAL_DATA}oas`);
    const linted = await run(['catalog', 'lint', `${REAL_DATA}catalog-270.json`, '--json']);
    const types = await outcomeOf(['catalog', 'types', file('made.json'), '--name', 'Real']);

    expect(made.json.scopes.length).toBeGreaterThan(360);
    expect(made.notes).toContain('in 14 documents');
    const nothing = { added: [], removed: [], kept: [], tokens: [], isBreaking: false };
    expect(same.json).toEqual(nothing);
    expect(other).toMatchObject({ isNegative: true, json: { isBreaking: true } });
    expect(JSON.parse(linted.stdout)).toHaveLength(5);
    expect(types.text.match(/^ {2}\| '/gm)).toHaveLength(made.json.scopes.length);
  });

  it('finds the tokens that lose scopes', async () => {
    const scopes = ['DELETE:oauth.openapi.it/token', 'GET:imprese.openapi.it/advance'];
    const file = filesOf({
      'tokens.json': [
        { id: 'a', scopes },
        { id: 'b', scopes: scopes.slice(1) },
      ],
    });
    const catalogs = [`${REAL_DATA}catalog-270.json`, `${REAL_DATA}oas`];

    const words = ['catalog', 'diff', ...catalogs, '--tokens', file('tokens.json')];
    const prefixes = await outcomeOf([...words, '--granularity', 'prefix']);
    const operations = await outcomeOf(words);

    const [gone, advance] = scopes;
    const kept = [`${advance}$`, `${advance}/{}$`];
    expect(prefixes.json.tokens).toEqual([{ id: 'a', lost: [gone], kept: [], gained: [] }]);
    expect(operations.json.tokens).toEqual([
      { id: 'a', lost: scopes, kept, gained: [] },
      { id: 'b', lost: [advance], kept, gained: [] },
    ]);
  });
});
