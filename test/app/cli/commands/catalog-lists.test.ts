import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  ALL_COMMANDS,
  filesOf,
  newFolder,
  outcomeOf,
  REAL_DATA,
  run,
  runInShell,
} from '../support.ts';

const GET = 'GET:shop.example/orders';
const POST = 'POST:shop.example/orders';
const CATALOG = [
  'GET:shop.example/bills',
  'GET:shop.example/invoices/{}$',
  'GET:shop.example/invoices/{}/lines$',
  GET,
  POST,
];

describe('catalog explain', () => {
  const catalog = ['GET:shop.example/orders', 'GET:shop.example/bills'];

  it.each([
    [
      'a request that a scope allows',
      [`${GET},*:*.example/orders/7`, 'GET', 'https://shop.example/orders/7?x=1'],
      false,
      ['allowed  GET shop.example /orders/7', 'by       *:*.example/orders/7'],
    ],
    [
      'a method that does not match',
      [GET, 'DELETE', 'https://shop.example/orders/7'],
      true,
      [
        'refused  DELETE shop.example /orders/7',
        'reason   not_covered: no scope of the list covers it',
        'nearest  GET:shop.example/orders, but its method does not match',
        'enough   DELETE:shop.example/orders/7$',
      ],
    ],
    [
      'a path that only starts with the same text',
      [GET, 'GET', 'https://shop.example/orders2'],
      true,
      [
        'refused  GET shop.example /orders2',
        'reason   not_covered: no scope of the list covers it',
        'nearest  GET:shop.example/orders, but its path does not match',
        'enough   GET:shop.example/orders2$',
      ],
    ],
    [
      'a host that a wildcard does not match',
      ['GET:*.shop.example/*', 'GET', 'https://shop.example/orders'],
      true,
      [
        'refused  GET shop.example /orders',
        'reason   not_covered: no scope of the list covers it',
        'nearest  GET:*.shop.example/*, but its domain does not match',
        'enough   GET:shop.example/orders$',
      ],
    ],
    [
      'an ambiguous request',
      ['*:*/*', 'GET', 'https://shop.example/orders/../admin'],
      true,
      [
        'refused  GET shop.example /orders/../admin',
        'reason   path_dot_segment: the path contains a segment of dots, which some servers resolve',
      ],
    ],
    [
      'a method in lower case',
      ['*:*/*', 'get', 'https://shop.example/'],
      true,
      [
        'refused  get shop.example /',
        'reason   method_invalid: a method is a name in upper case, such as GET',
      ],
    ],
  ])('explains %s', async (_, words, isNegative, lines) => {
    const outcome = await outcomeOf(['catalog', 'explain', ...words]);

    expect(outcome.text.split('\n')).toEqual(lines);
    expect(outcome).toMatchObject({ isNegative, isJson: false });
  });

  it.each([
    ['knows', '/orders/7', ['catalog  knows it as GET:shop.example/orders']],
    [
      'does not know',
      '/order',
      [
        'catalog  does not know it; did you mean',
        '           GET:shop.example/orders',
        '           GET:shop.example/bills',
      ],
    ],
  ])('reports that the catalog %s the request', async (_, target, lines) => {
    const file = filesOf({ 'catalog.json': catalog });
    const words = [POST, 'GET', `https://shop.example${target}`, '--catalog', file('catalog.json')];

    const { text } = await outcomeOf(['catalog', 'explain', ...words]);

    expect(text.split('\n').slice(4)).toEqual(lines);
  });

  it.each([
    [
      'a template, which does not match a named segment',
      'GET:shop.example/orders/{}$',
      '/orders/export',
      [
        'refused  GET shop.example /orders/export',
        'reason   not_covered: no scope of the list covers it',
        'nearest  GET:shop.example/orders/{}$, but its {} does not match a segment that the catalog names',
        'enough   GET:shop.example/orders/export$',
        'catalog  knows it as GET:shop.example/orders/export$',
      ],
    ],
    [
      'a template, which matches any other segment',
      'GET:shop.example/orders/{}$',
      '/orders/7',
      [
        'allowed  GET shop.example /orders/7',
        'by       GET:shop.example/orders/{}$',
        'catalog  knows it as GET:shop.example/orders/{}$',
      ],
    ],
    [
      'a closed path, which does not match paths below it',
      'GET:shop.example/orders$',
      '/orders/7',
      [
        'refused  GET shop.example /orders/7',
        'reason   not_covered: no scope of the list covers it',
        'nearest  GET:shop.example/orders$, but its path does not match',
        'enough   GET:shop.example/orders/7$',
        'catalog  knows it as GET:shop.example/orders/{}$',
      ],
    ],
    [
      'an open path, which matches all paths below it',
      'GET:shop.example/orders',
      '/orders/export',
      [
        'allowed  GET shop.example /orders/export',
        'by       GET:shop.example/orders',
        'catalog  knows it as GET:shop.example/orders/export$',
      ],
    ],
    [
      'an ambiguous request',
      '*:*/*',
      '/orders//7',
      [
        'refused  GET shop.example /orders//7',
        'reason   path_empty_segment: the path contains an empty segment, which some servers drop',
      ],
    ],
  ])('applies the routes of a catalog to %s', async (_, list, target, lines) => {
    const routes = ['orders$', 'orders/{}$', 'orders/export$'];
    const file = filesOf({ 'catalog.json': routes.map((path) => `GET:shop.example/${path}`) });
    const request = ['GET', `https://shop.example${target}`, '--catalog', file('catalog.json')];

    const { text } = await outcomeOf(['catalog', 'explain', list, ...request]);

    expect(text.split('\n')).toEqual(lines);
  });

  it('lets a template match a named segment without a catalog', async () => {
    const words = ['GET:shop.example/orders/{}$', 'GET', 'https://shop.example/orders/export'];
    expect((await outcomeOf(['catalog', 'explain', ...words])).text).toMatch(/^allowed/);
  });

  it.each([
    ['operation', 'knows it as GET:shop.example/orders/{}$'],
    ['prefix', 'knows it as GET:shop.example/orders'],
  ])('reads OpenAPI documents with --granularity %s', async (granularity, line) => {
    const file = filesOf({
      'shop.json': {
        openapi: '3.1.0',
        servers: [{ url: 'https://shop.example' }],
        paths: { '/orders/{id}': { get: {} } },
      },
    });
    const request = ['GET', 'https://shop.example/orders/7', '--catalog', file('shop.json')];

    const { text } = await outcomeOf([
      ...['catalog', 'explain', '*:*/*', ...request],
      ...['--granularity', granularity],
    ]);

    expect(text.split('\n').at(-1)).toBe(`catalog  ${line}`);
  });

  it.each([
    ['/', 'allowed  GET shop.example /root'],
    ['/?x=1', 'allowed  GET shop.example /root'],
    ['/x', 'refused  GET shop.example /x'],
  ])('reads the target %s with --root-name, like a guard', async (target, line) => {
    const words = [
      'catalog',
      'explain',
      'GET:shop.example/root',
      'GET',
      `https://shop.example${target}`,
    ];

    const { text } = await outcomeOf([...words, '--root-name', 'root']);

    expect(text.split('\n')[0]).toBe(line);
    expect((await outcomeOf([...words])).text).toMatch(/^refused/);
    await expect(outcomeOf([...words, '--root-name', 'a/b'])).rejects.toThrow('one segment');
  });

  it('accepts several files after --catalog, but only after the operands', async () => {
    const file = filesOf({ 'a.json': ['GET:a.example/x'], 'b.json': ['GET:b.example/x'] });
    const request = ['*:*/*', 'GET', 'https://b.example/x'];
    const catalogs = ['--catalog', file('a.json'), file('b.json')];

    const outcome = await outcomeOf(['catalog', 'explain', ...request, ...catalogs]);

    expect(outcome.text).toContain('knows it as GET:b.example/x');
    await expect(outcomeOf(['catalog', 'explain', ...catalogs, ...request])).rejects.toThrow(
      'unexpected argument',
    );
  });

  it('returns the same members as the library in JSON', async () => {
    const file = filesOf({ 'catalog.json': catalog, 'none.json': [] });
    const request = ['GET', 'https://shop.example/order', '--json'];

    const refused = await outcomeOf([
      ...['catalog', 'explain', POST, ...request],
      ...['--catalog', file('catalog.json')],
    ]);
    const allowed = await outcomeOf(['catalog', 'explain', '*:*/*', ...request]);
    const empty = await outcomeOf(['catalog', 'explain', file('none.json'), ...request]);

    expect(refused).toMatchObject({ isJson: true, isNegative: true });
    expect(refused.json).toEqual({
      allowed: false,
      reason: 'not_covered',
      needed: 'GET:shop.example/order$',
      smallest: 'GET:shop.example/order$',
      nearest: { scope: POST, failed: 'path' },
      known: false,
      suggestions: catalog,
    });
    expect(allowed.json).toEqual({
      allowed: true,
      by: '*:*/*',
      needed: 'GET:shop.example/order$',
      known: true,
    });
    expect(empty.json).not.toHaveProperty('nearest');
    expect(empty.text).toContain('nothing: the list is empty');
  });

  it('prints neither a query string nor control characters', async () => {
    const words = [GET, 'GET', 'https://shop.example/a\u001b[31m?key=canary'];

    const { text } = await outcomeOf(['catalog', 'explain', ...words]);

    expect(text).toContain('/a?[31m');
    expect(text).not.toContain('\u001b');
    expect(text).not.toContain('canary');
  });
});

describe('catalog expand', () => {
  const contents = {
    'catalog.json': CATALOG,
    'empty.json': [],
  };

  it.each([
    ['*:shop.example/orders', [GET, POST], []],
    ['*:*/*', [...CATALOG], []],
    [
      'GET:shop.example/invoices/7',
      ['GET:shop.example/invoices/7$', 'GET:shop.example/invoices/7/lines$'],
      [],
    ],
    [
      'GET:shop.example/invoices/7$',
      ['GET:shop.example/invoices/7$'],
      ['GET:shop.example/invoices/7$'],
    ],
    ['GET:shop.example/invoices/{id}$', ['GET:shop.example/invoices/{}$'], []],
    [
      'GET:shop.example/orders/7,GET:*/bills',
      ['GET:shop.example/bills', 'GET:shop.example/orders/7'],
      ['GET:shop.example/orders/7'],
    ],
  ])('expands %s to concrete scopes', async (list, granted, narrowed) => {
    const file = filesOf(contents);

    const outcome = await outcomeOf(['catalog', 'expand', list, '--catalog', file('catalog.json')]);

    expect(outcome.json).toEqual({ granted, narrowed });
    const lines = outcome.text.split('\n').map((line) => line.split('  # ', 2));
    expect(lines.map(([scope]) => scope)).toEqual(granted);
    expect(lines.flatMap(([scope, mark]) => (mark === undefined ? [] : [scope]))).toEqual(narrowed);
  });

  it.each([
    ['GET:shop.example/order', 'catalog.json', 'known: GET:shop.example/orders'],
    ['GET:shop.example/bills/*', 'catalog.json', 'did you mean "GET:shop.example/bills"?'],
    ['GET:shop.example/orders', 'empty.json', 'the catalog is empty'],
  ])('refuses %s with the catalog %s', async (list, catalog, message) => {
    const file = filesOf(contents);

    const outcome = outcomeOf(['catalog', 'expand', list, '--catalog', file(catalog)]);

    await expect(outcome).rejects.toThrow(message);
  });
});

describe('catalog diff --rights', () => {
  it.each([
    [GET, POST, `+ ${POST}\n- ${GET}`],
    [GET, `${GET},${POST}`, `+ ${POST}`],
    [`${GET},${POST}`, GET, `- ${POST}`],
    [GET, `${GET},GET:shop.example/orders/7`, ''],
  ])('prints the difference between %s and %s', async (before, after, text) => {
    const outcome = await outcomeOf(['catalog', 'diff', before, after, '--rights']);

    expect(outcome).toMatchObject({ text, isNegative: text.includes('- ') });
    expect('notes' in outcome).toBe(text === '');
    expect(outcome.json).toEqual({
      added: text.includes('+') ? [POST] : [],
      removed: text.includes('-') ? [text.slice(text.indexOf('- ') + 2)] : [],
    });
  });
});

describe('catalog minimize', () => {
  it.each([
    [`${POST},${GET},${GET}`, [GET, POST]],
    [`${GET},*:*.example/*`, ['*:*.example/*']],
    [`${GET}$,${GET}/{id},${GET}`, [GET]],
    [`${GET}$,${GET}/{id}$,${GET}/7$`, [`${GET}$`, `${GET}/{}$`]],
    [' GET:Shop.Example/orders , GET:shop.example/orders2', [GET, `${GET}2`]],
  ])('reduces %s to the fewest scopes', async (list, scopes) => {
    const outcome = await outcomeOf(['catalog', 'minimize', list]);

    expect(outcome).toMatchObject({ text: scopes.join('\n'), json: scopes });
  });

  it.each([
    ['get:shop.example/orders', 'LIST: scope 1: ', 'did you mean "GET:shop.example/orders"?'],
    [`${GET},`, 'scope 2: ', 'it is empty'],
    ['a:b/c,a:b/c,a:b/c,a:b/c,a:b/c', '; and 2 more'],
    ['GET:shop.example/a b', 'scope 1: ', 'has a space'],
    ['nowhere.json', 'must be scopes separated by commas', '"nowhere.json" does not exist'],
    ['GET/shop.example', '"GET/shop.example" does not exist'],
    ['./GET:shop.example/orders', 'does not exist'],
  ])('refuses the list %s', async (list, ...messages) => {
    const outcome = outcomeOf(['catalog', 'minimize', list]);

    for (const message of messages) await expect(outcome).rejects.toThrow(message);
    await expect(outcome).rejects.not.toThrow(/\n/);
  });

  it('refuses a very long list without repeating all of it', async () => {
    const outcome = outcomeOf(['catalog', 'minimize', 'x'.repeat(5000)]);

    await expect(outcome).rejects.toThrow(`the file "${'x'.repeat(100)}..." does not exist`);
    await expect(outcome).rejects.not.toThrow(/\n/);
  });

  it.each([
    ['{"scopes":["canary"]}', 'must be a JSON array of scopes'],
    ['"GET:shop.example/orders"', 'must be a JSON array of scopes'],
    ['[{"token":"canary"}]', 'scope 1: a scope must be a string'],
    ['["GET:shop.example/orders"', 'is not JSON'],
    ['GET:shop.example/canary', 'is not JSON'],
    ['', 'is not JSON'],
  ])('refuses a file that contains %s', async (content, message) => {
    const file = filesOf({ 'list.json': content });

    const outcome = outcomeOf(['catalog', 'minimize', file('list.json')]);

    await expect(outcome).rejects.toThrow(message);
    await expect(outcome).rejects.not.toThrow('canary');
  });
});

describe('a LIST from standard input', () => {
  it.each([
    ['a JSON array', `\n ["${POST}", "${GET}"]`, `${GET}\n${POST}\n`],
    ['lines', `${POST}\r\n\n# a comment\n${GET}  # narrowed: below all\n`, `${GET}\n${POST}\n`],
    ['empty', '', ''],
  ])('can be %s', async (_, input, stdout) => {
    expect(await run(['catalog', 'minimize', '-'], {}, input)).toEqual({
      code: 0,
      stdout,
      stderr: '',
    });
  });

  it.each([
    ['{"a":"canary"}', 'tokenwright: standard input must be a JSON array of scopes'],
    ['[canary', 'tokenwright: standard input is not JSON'],
    [`${GET}\nGET:canary example`, 'tokenwright: standard input: scope 2: '],
  ])('is refused with a one-line error if it is %s', async (input, message) => {
    const ended = await run(['catalog', 'minimize', '-'], {}, input);

    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain(message);
    expect(ended.stderr.trim()).not.toContain('\n');
  });

  it('is empty if standard input is closed, and refused if it is a folder', async () => {
    expect(await runInShell('tokenwright catalog minimize - <&-')).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
    expect(await runInShell('tokenwright catalog minimize - < /')).toMatchObject({
      code: 1,
      stderr: 'tokenwright: standard input is a folder\n',
    });
  });
});

describe('the commands', () => {
  it.each([
    [['catalog', 'explain', GET, 'GET', 'https://shop.example/orders'], 0, /^allowed {2}GET/],
    [
      ['catalog', 'explain', GET, 'PUT', 'https://shop.example/orders', '--json'],
      3,
      /^\{\n {2}"allowed": false/,
    ],
    [['catalog', 'diff', GET, `${GET},${POST}`, '--rights'], 0, /^\+ POST/],
    [['catalog', 'diff', GET, POST, '--rights'], 3, /^\+ POST/],
  ])('called with %j exit with code %i', async (words, code, stdout) => {
    const ended = await run(words);

    expect(ended).toMatchObject({ code, stderr: '' });
    expect(ended.stdout).toMatch(stdout);
  });

  it.each([
    [['catalog', 'canary'], 2, 'catalog has no such command'],
    [['catalog', 'canary', '--help'], 2, 'catalog has no such command'],
    [['catalog', 'diff', GET, 'a.json'], 2, 'add --rights'],
    [['catalog', 'diff', GET, POST, '--rights', '--tokens', 'a'], 2, 'leave --tokens'],
    [['catalog', 'minimize', GET, '--canary=canary'], 2, 'has no flag --canary; see'],
    [['catalog', 'expand', GET, '--catalog'], 2, '--catalog'],
    [['catalog', 'minimize', '/nowhere/at-all.json'], 1, 'does not exist'],
    [['catalog', 'minimize', 'scopes.json'], 1, 'the file "scopes.json" does not exist\n'],
    [['catalog', 'minimize', 'openid'], 1, 'this looks like an OAuth scope'],
    [['catalog', 'minimize', 'read:orders'], 1, 'such as GET:shop.example/orders\n'],
    [['catalog', 'minimize', 'https://a.example/b'], 1, 'such as GET:a.example/b\n'],
    [['catalog', 'minimize', 'get:a.example/b'], 1, 'did you mean "GET:a.example/b"?\n'],
    [['catalog', 'expand', GET, '--catalog', '/nowhere\n/at-all.json'], 1, 'does not exist'],
    [['catalog', 'minimize', `tw_1k1${'a'.repeat(55)}`], 1, '"tw_1k1aaaaaa…"'],
  ])('called with %j fail with a one-line error', async (words, code, message) => {
    const ended = await run(words);

    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toMatch(/^tokenwright: .*\n$/);
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toMatch(/=canary|"canary"|at file/);
  });

  it('refuse a segment like :id, but no other colon', async () => {
    const file = filesOf({ 'catalog.json': CATALOG });
    const expand = (list: string) =>
      run(['catalog', 'expand', list, '--catalog', file('catalog.json')]);

    expect((await expand(`${GET}/:id`)).stderr).toContain(`did you mean "${GET}/{}"?`);
    expect((await expand(`${GET}/a:7`)).stderr).not.toContain('did you mean');
  });
  it.each([
    [['catalog', 'explain'], '<LIST> is missing; see tokenwright catalog explain --help'],
    [['catalog', 'explain', GET, 'GET'], '<URL> is missing'],
    [
      ['catalog', 'explain', GET, 'GET', 'https://a.example/', 'canary'],
      'unexpected argument after <URL>',
    ],
    [['catalog', 'expand', GET], '--catalog is required'],
    [['catalog', 'expand', GET, '--catalog', '--json'], '--catalog'],
    [['catalog', 'diff', GET], '<AFTER> is missing'],
    [['catalog', 'diff', '-', '-', '--rights'], 'only one of <BEFORE> and <AFTER>'],
    [['catalog', 'minimize', ''], '<LIST> is empty'],
    [['catalog', 'minimize', GET, '-x'], 'has no flag -x'],
    [['catalog', 'minimize', GET, '--json=canary'], 'does not take an argument'],
    [['catalog', 'minimize', GET, '--exit-code'], 'has no flag --exit-code'],
  ])('refuse the arguments %j', async (words, message) => {
    const outcome = outcomeOf(words.length === 2 ? [...words, '--'] : words);

    await expect(outcome).rejects.toThrow(message);
    await expect(outcome).rejects.not.toThrow(/canary|\n/);
  });

  it('show help for all commands, for a group and for one command', async () => {
    const all = await run(['--help']);
    const group = await run(['keys', '--help']);
    const one = await run(['catalog', 'diff', '--nonsense', '-h']);

    for (const { name } of ALL_COMMANDS) expect(all.stdout).toContain(`\n  ${name} `);
    expect(group.stdout).toContain('\n  keys rotate ');
    expect(group.stdout).not.toContain('\n  store ');
    expect(one.stdout).toContain('--tokens FILE');
    expect((await run(['help', 'catalog', 'diff'])).stdout).toBe(one.stdout);
    for (const { code, stderr } of [all, group, one]) expect([code, stderr]).toEqual([0, '']);
  });

  it.each(ALL_COMMANDS)(
    'document usage, exit codes and an example in the help for $name',
    ({ help, usage, name }) => {
      expect(help.startsWith(`tokenwright ${usage}\n`)).toBe(true);
      expect(help).toContain('--json ');
      expect(help).toMatch(/Exit code\n {2}0 {2}/);
      expect(help).toMatch(new RegExp(`\\$ tokenwright ${name}[ \\n]`));
    },
  );

  it('print help that fits a terminal of 80 columns, except for its examples', async () => {
    const shown = new Set(
      ALL_COMMANDS.flatMap(({ example }) => `$ tokenwright ${example.call}\n${example.output}`)
        .flatMap((text) => text.split('\n'))
        .map((line) => line.trim()),
    );
    const topics = [[], ['serve'], ['token'], ['keys'], ['catalog'], ['store']];
    const printed = await Promise.all(topics.map((words) => run([...words, '--help'])));

    for (const help of [
      ...ALL_COMMANDS.map((each) => each.help),
      ...printed.map(({ stdout }) => stdout),
    ]) {
      // Examples show calls and their output verbatim, at any length.
      const prose = help
        .split('\n')
        .filter((line) => !line.startsWith('  ') || !shown.has(line.trim()));
      expect(prose.filter((line) => line.length > 80)).toEqual([]);
    }
  });

  it('exit quietly if the reader of their output closes the pipe', async () => {
    const list = Array.from({ length: 4000 }, (_, i) => `${GET}/${'long-'.repeat(20)}${i}`);
    const file = filesOf({ 'list.json': list });
    const line = 'tokenwright catalog minimize "$1" | head -1; echo "$PIPESTATUS"';

    const ended = await runInShell(line, file('list.json'));

    expect(ended).toEqual({ code: 0, stdout: `${list[0]}\n0\n`, stderr: '' });
  });

  it.skipIf(!existsSync('/dev/full'))('report an error if the disk is full', async () => {
    const ended = await runInShell('tokenwright catalog minimize "$1" > /dev/full', GET);

    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(/^tokenwright: .*ENOSPC.*\n$/);
  });

  it('report an error if a LIST is a folder', async () => {
    const ended = await run(['catalog', 'minimize', newFolder()]);

    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/^tokenwright: .*EISDIR.*\n$/);
  });
});

describe.skipIf(!existsSync(REAL_DATA))('lists of real scopes', () => {
  const catalog = `${REAL_DATA}catalog-270.json`;

  it('explains, expands, compares and minimizes 270 scopes', async () => {
    const outcome = (...words: string[]) => outcomeOf(['catalog', ...words]);
    const asked = ['GET', 'https://sdi.openapi.it/invoices_legal_storage/7'];

    const explained = await outcome('explain', catalog, ...asked, '--catalog', catalog);
    const expanded = await outcome('expand', '*:sdi.openapi.it/invoices', '--catalog', catalog);
    const minimized = await outcome('minimize', catalog);
    const compared = await outcome('diff', catalog, '*:*/*', '--rights');

    expect(explained.json).toMatchObject({ allowed: false, known: false });
    expect(explained.json.suggestions).toContain('POST:sdi.openapi.it/invoices_legal_storage');
    expect(expanded.json.granted).toEqual([
      'GET:sdi.openapi.it/invoices',
      'POST:sdi.openapi.it/invoices',
    ]);
    expect(minimized.json).toHaveLength(270);
    expect(compared.json).toEqual({ added: ['*:*/*'], removed: [] });
  });
});
