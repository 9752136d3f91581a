import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { COMMANDS, filesOf, newFolder, outcomeOf, run, runInShell } from './support.ts';

const GET = 'GET:shop.example/orders';
const POST = 'POST:shop.example/orders';
const BILLS = 'GET:shop.example/bills';
const shared = new URL('../../../shared/data/', import.meta.url).pathname;

const document = {
  openapi: '3.1.0',
  servers: [{ url: 'https://shop.example' }],
  paths: {
    '/': { get: {} },
    '/orders': { get: {}, post: { deprecated: true, operationId: 'order' } },
    '/orders/{id}': { get: {} },
  },
};

describe('catalog from-openapi', () => {
  it('prints what --catalog reads, and tells what is deprecated and merged beside it', async () => {
    const file = filesOf({ 'shop.json': document });
    const printed = await run(['catalog', 'from-openapi', file('shop.json')]);

    expect(printed.code).toBe(0);
    expect(printed.stderr).toBe(`3 scopes of 4 operations in 1 document

deprecated:
  POST:shop.example/orders

stand for several paths, which can only be granted together:
  GET:shop.example/orders
    /orders
    /orders/{id}
`);
    const catalog = filesOf({ 'catalog.json': printed.stdout })('catalog.json');
    const expanded = await outcomeOf(['scopes', 'expand', '*:*/*', '--catalog', catalog]);
    expect(expanded.json.granted).toEqual(JSON.parse(printed.stdout));
    expect(expanded.json.granted).toEqual([GET, 'GET:shop.example/root', POST]);
  });

  it('tells programs the same, with the files', async () => {
    const file = filesOf({ 'shop.json': document });

    const { json } = await outcomeOf(['catalog', 'from-openapi', file('shop.json'), '--json']);

    const get = { file: file('shop.json'), method: 'GET', deprecated: false };
    expect(json).toEqual({
      scopes: [GET, 'GET:shop.example/root', POST],
      deprecated: [POST],
      merged: [
        {
          scope: GET,
          operations: [
            { ...get, path: '/orders' },
            { ...get, path: '/orders/{id}' },
          ],
        },
      ],
    });
  });

  it('tells of scopes on several servers once, and of nothing where there is nothing', async () => {
    const servers = [{ url: 'https://b.example' }, { url: 'https://a.example' }];
    const file = filesOf({
      'two.json': { ...document, servers },
      'one.json': { ...document, paths: { '/orders': { get: {} } } },
    });

    const two = await outcomeOf(['catalog', 'from-openapi', file('two.json')]);
    const one = await outcomeOf(['catalog', 'from-openapi', file('one.json')]);

    expect(two.notes).toContain('  GET:a.example/orders\n  GET:b.example/orders\n    /orders\n');
    expect(one.notes).toBe('1 scope of 1 operation in 1 document');
  });

  it('takes hosts and the name of the root', async () => {
    const { servers: _, ...nameless } = document;
    const file = filesOf({ 'shop.json': { ...nameless, paths: { '/': { get: {} } } } });
    const words = ['catalog', 'from-openapi', file('shop.json')];
    const flags = ['--host', 'a.example', '--host', 'B.example', '--root-name', 'home'];

    expect((await outcomeOf([...words, ...flags])).json.scopes).toEqual([
      'GET:a.example/home',
      'GET:b.example/home',
    ]);
    await expect(outcomeOf(words)).rejects.toThrow('hosts');
  });

  it.each([
    [['--host', 'https://canary'], '--host must be a host name'],
    [['--host', '*.canary.example'], '--host must be a host name'],
    [['--root-name', 'canary/x'], '--root-name must be one segment'],
    [['--root-name', '*'], '--root-name must be one segment'],
    [['--root-name', ''], '--root-name must be one segment'],
    [['--catalog', 'x'], "Unknown option '--catalog'"],
  ])('refuses %j', async (flags, message) => {
    const file = filesOf({ 'shop.json': document });

    const outcome = outcomeOf(['catalog', 'from-openapi', file('shop.json'), ...flags]);

    await expect(outcome).rejects.toThrow(message);
    await expect(outcome).rejects.not.toThrow('canary');
  });
});

describe('catalog lint', () => {
  it.each([
    ['nothing', [GET, `${GET}2`], []],
    ['an entry below another', [GET, `${GET}/old`], ['nested']],
    ['a token service', [GET, 'POST:shop.example/token'], ['token_service']],
    ['a host that has others below it', [GET, 'GET:eu.shop.example/orders'], ['apex']],
    ['a parameter of a route', [GET, 'GET:shop.example/bills/:id'], ['parameter']],
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

  it('names the entries that a wildcard misses, and takes several files as one catalog', async () => {
    const file = filesOf({ 'a.json': [GET, BILLS], 'b.json': ['GET:eu.shop.example/orders'] });

    const { text } = await outcomeOf(['catalog', 'lint', file('a.json'), file('b.json')]);

    expect(text.split('\n')).toEqual([
      'apex  shop.example is not below itself: *:*.shop.example/* reaches the hosts',
      '      below it and misses these',
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
  ])('tells what %j changes', async ([before = '', after = '', held], isNegative, text) => {
    const file = filesOf(contents);
    const flags = held === undefined ? [] : ['--tokens', file(held)];

    const outcome = await outcomeOf(['catalog', 'diff', file(before), file(after), ...flags]);

    expect(outcome).toMatchObject({ isNegative, text });
    expect(outcome.json.isBreaking).toBe(isNegative);
    expect(Object.keys(outcome.json)).toEqual(['added', 'removed', 'tokens', 'isBreaking']);
    expect(outcome.notes !== undefined).toBe(held === 'second.json');
  });

  it('reads the answer of GET /token from standard input, and breaks a build', async () => {
    const file = filesOf(contents);
    const words = ['catalog', 'diff', file('before.json'), file('after.json'), '--tokens', '-'];

    const ended = await run([...words, '--json'], {}, JSON.stringify({ data: tokens }));

    expect(ended).toMatchObject({ code: 3, stderr: '' });
    expect(JSON.parse(ended.stdout)).toEqual({
      added: [BILLS],
      removed: [GET],
      tokens: [{ id: 'first', lost: [GET], gained: [BILLS] }],
      isBreaking: true,
    });
  });

  it('masks a value that stands where the id should', async () => {
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
  ])('refuses the tokens %s', async (content, message) => {
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
  ])('prints a declaration file with %j', async (flags, line) => {
    const file = filesOf({ 'catalog.json': [GET] });

    const { text, json } = await outcomeOf(['catalog', 'types', file('catalog.json'), ...flags]);

    expect(text).toContain(`${line}\n  | '${GET}';\n`);
    expect(json).toEqual({ types: `${text}\n` });
  });

  it('refuses a name that is none', async () => {
    const file = filesOf({ 'catalog.json': [GET] });

    const ended = await run(['catalog', 'types', file('catalog.json'), '--name', 'my shop']);

    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(/^tokenwright: .*must be an identifier.*\n$/);
  });
});

describe('a catalog', () => {
  it.each([
    ['list.json', '["*:shop.example/orders"]', 'a catalog holds scopes with a real method'],
    ['list.json', '["canary', 'is not JSON'],
    ['list.json', '{"a":"canary"}', 'is not an OpenAPI document'],
    ['list.json', '7', 'no catalog can be made'],
    ['list.yaml', 'a: canary', 'is not an OpenAPI document'],
  ])('is refused with one line when %s holds %s', async (name, content, message) => {
    const file = filesOf({ [name]: content });
    const outcome = outcomeOf(['catalog', 'lint', file(name)]);

    await expect(outcome).rejects.toThrow(message);
    await expect(outcome).rejects.not.toThrow(/canary|\n/);
  });

  it('may be a folder that holds one, and not one that is empty', async () => {
    const file = filesOf({ 'list.json': [GET], 'shop.json': document, 'notes.txt': 'canary' });

    expect((await outcomeOf(['catalog', 'lint', file('')])).notes).toContain('in 3 scopes');
    await expect(outcomeOf(['catalog', 'lint', newFolder()])).rejects.toThrow(
      'is a folder without a .json, .yaml or .yml file',
    );
  });

  it.each([
    [[GET, `${GET}/old`], 3, /^nested {2}/, /^1 finding/],
    [[GET], 0, /^$/, /^nothing found/],
    [['*:*/*'], 1, /^$/, /^tokenwright: .*catalog\.json: a catalog holds .*\n$/],
  ])('of %j ends lint with code %i', async (catalog, code, stdout, stderr) => {
    const file = filesOf({ 'catalog.json': catalog });

    const ended = await run(['catalog', 'lint', file('catalog.json')]);

    expect(ended.code).toBe(code);
    expect(ended.stdout).toMatch(stdout);
    expect(ended.stderr).toMatch(stderr);
  });
});

describe('the examples in the help', () => {
  const { '/': _, ...paths } = document.paths;
  const contents = {
    'catalog.json': [GET, BILLS, 'POST:shop.example/bills'],
    'openapi.json': { ...document, paths: { ...paths, '/orders': { get: {}, post: {} } } },
    'everything.json': [GET, 'POST:shop.example/token'],
    'before.json': [GET, POST],
    'after.json': [POST, BILLS],
    'tokens.json': [
      { id: '7f3kQw', scopes: [GET] },
      { id: '9aB2xY', scopes: [POST] },
    ],
  };

  it.each(COMMANDS)('$name prints what it says', async ({ example }) => {
    const file = filesOf(contents);

    const ended = await runInShell(`cd "$1" && tokenwright ${example.call}`, file(''));

    // A part that goes into a file is not shown, nor what is told beside the rest.
    const isRedirected = example.call.includes(' > ');
    expect((isRedirected ? ended.stderr : ended.stdout).trimEnd()).toBe(example.output);
    expect([0, 3]).toContain(ended.code);
  });
});

describe.skipIf(!existsSync(shared))('catalog with real input', () => {
  it('makes one catalog of 14 documents, compares, lints and types it', async () => {
    const made = await outcomeOf(['catalog', 'from-openapi', `${shared}oas`]);
    const file = filesOf({ 'made.json': made.text });
    const diff = (before: string, after: string) => outcomeOf(['catalog', 'diff', before, after]);

    const same = await diff(`${shared}oas`, file('made.json'));
    const other = await diff(`${shared}catalog-270.json`, `${shared}oas`);
    const linted = await run(['catalog', 'lint', `${shared}catalog-270.json`, '--json']);
    const types = await outcomeOf(['catalog', 'types', file('made.json'), '--name', 'Real']);

    expect(made.json.scopes.length).toBeGreaterThan(250);
    expect(made.notes).toContain('in 14 documents');
    expect(same.json).toEqual({ added: [], removed: [], tokens: [], isBreaking: false });
    expect(other).toMatchObject({ isNegative: true, json: { isBreaking: true } });
    expect(JSON.parse(linted.stdout)).toHaveLength(5);
    expect(types.text.match(/^ {2}\| '/gm)).toHaveLength(made.json.scopes.length);
  });

  it('finds the tokens that lose by it', async () => {
    const scopes = ['DELETE:oauth.openapi.it/token', 'GET:imprese.openapi.it/advance'];
    const file = filesOf({
      'tokens.json': [
        { id: 'a', scopes },
        { id: 'b', scopes: scopes.slice(1) },
      ],
    });
    const catalogs = [`${shared}catalog-270.json`, `${shared}oas`];

    const { json } = await outcomeOf([
      ...['catalog', 'diff', ...catalogs],
      ...['--tokens', file('tokens.json')],
    ]);

    expect(json.tokens).toEqual([{ id: 'a', lost: scopes.slice(0, 1), gained: [] }]);
  });
});
