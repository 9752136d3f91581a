import { build } from 'esbuild';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeScopes } from '../../src/scope/describe.ts';
import { ScopeCatalog, ScopeError, type WordedScope } from '../../src/scope/index.ts';
import { runs } from '../laws.ts';

const at = (scope: string) => scope.replace(' ', ':shop.example/');

const WORDED: readonly WordedScope[] = [
  { scope: at('GET orders$'), summary: 'List orders', tag: 'orders' },
  { scope: at('POST orders$'), summary: 'Create an order', tag: 'orders' },
  {
    scope: at('GET orders/{id}$'),
    summary: 'Get an order',
    tag: 'orders',
    segments: ['id'],
    operationId: 'getOrder',
  },
  { scope: at('GET stock/{}$'), tag: 'Stock', segments: ['sku'], deprecated: true },
  { scope: 'GET:bills.example/orders$', summary: 'List orders', tag: 'orders' },
];
const catalog = ScopeCatalog.from([...WORDED, at('HEAD pages/home$'), at('DELETE pages/home$')]);

describe('the words of a catalog', () => {
  it('are those of its entries, in whatever spelling these are asked for', () => {
    const words = {
      summary: 'Get an order',
      tag: 'orders',
      segments: ['id'],
      operationId: 'getOrder',
    };

    expect(catalog.words(at('GET orders/{}$'))).toEqual({ ...words, operations: [words] });
    expect(catalog.words(at('GET orders/{id}$'))).toEqual({ ...words, operations: [words] });
    expect(catalog.words(at('GET stock/{}$'))?.deprecated).toBe(true);
  });

  it.each([
    ['an entry without words', at('HEAD pages/home$')],
    ['a scope below an entry', at('GET orders/7$')],
    ['a wildcard', '*:shop.example/*'],
  ])('are undefined for %s', (_, scope) => {
    expect(catalog.words(scope)).toBeUndefined();
  });

  it('refuse what is not a scope', () => {
    expect(() => catalog.words('orders')).toThrow(ScopeError);
  });

  it('are those of each operation of an entry', () => {
    const scope = at('GET orders$');
    const both = ScopeCatalog.from([
      { scope, summary: 'List orders', tag: 'orders' },
      { scope, summary: 'Search orders', tag: 'search' },
    ]);

    expect(both.size).toBe(1);
    expect(both.words(scope)).toMatchObject({
      summary: 'List orders',
      operations: [{ summary: 'List orders' }, { summary: 'Search orders' }],
    });
    expect(both.permissions().map(({ tag }) => tag)).toEqual(['orders', 'search']);
  });

  it.each([
    ['keeps markup as text', '<img onerror=x>', '<img onerror=x>'],
    ['removes control characters', 'List\u0000\u001b[31m orders', 'List [31m orders'],
    ['removes marks of direction', 'List \u202e\u2066orders\u200f', 'List  orders'],
    ['makes one line', 'List\r\norders\u2028now', 'List orders now'],
    ['cuts long text', 'x'.repeat(10_000), 'x'.repeat(200)],
    ['cuts between characters', `${'x'.repeat(199)}😀`, 'x'.repeat(199)],
    ['keeps other scripts', 'Посмотреть заказы 👩‍🚒', 'Посмотреть заказы 👩‍🚒'],
    ['drops empty text', ' \n ', undefined],
    ['drops what is not text', 7, undefined],
  ])('%s', (_, given, expected) => {
    const entry = { scope: at('GET orders$'), summary: given, tag: given, operationId: given };
    const words = ScopeCatalog.from([entry as WordedScope]).words(at('GET orders$'));

    expect([words?.summary, words?.tag, words?.operationId]).toEqual(Array(3).fill(expected));
  });

  it('stay with a catalog of some of the entries, and of more', () => {
    const some = ScopeCatalog.from([at('GET orders$'), at('GET more$')], { base: catalog });

    expect(some.words(at('GET orders$'))?.summary).toBe('List orders');
    expect(some.words(at('GET more$'))).toBeUndefined();
    expect(some.toArray()).toEqual([at('GET more$'), at('GET orders$')]);
    const other = { scope: at('GET orders$'), summary: 'Other words' };
    expect(ScopeCatalog.from([other], { base: catalog }).words(other.scope)?.summary).toBe(
      'Other words',
    );
  });

  it('decide nothing: grants are the same with and without', () => {
    const entries = WORDED.map(({ scope }) => String(scope));
    const member = fc.constantFrom(...entries, '*:*/*', 'GET:*/*', at('GET orders/7$'), at('* *'));
    const bare = ScopeCatalog.from([...catalog]);
    fc.assert(
      fc.property(fc.array(member, { minLength: 1 }), (asked) => {
        expect(catalog.expand(asked)).toEqual(bare.expand(asked));
      }),
      runs(),
    );
    expect(catalog.toArray()).toEqual(bare.toArray());
  });

  it('weigh nothing in a program that makes no catalog', async () => {
    const contents = (names: string) => `export { ${names} } from './src/scope/index.ts';`;
    const bundled = async (names: string) => {
      const { outputFiles } = await build({
        absWorkingDir: new URL('../..', import.meta.url).pathname,
        stdin: { contents: contents(names), resolveDir: '.', loader: 'ts' },
        bundle: true,
        write: false,
        format: 'esm',
        platform: 'neutral',
      });
      return outputFiles[0]?.text ?? '';
    };

    expect(await bundled('ScopeCatalog')).toContain('operationId');
    const others = 'parseScope, safeParseScope, covers, overlaps, meet, readRequest, ScopeSet';
    expect(await bundled(others)).not.toMatch(/operationId|summary/);
  });
});

describe('the permissions of a catalog', () => {
  const named = (list: ReturnType<ScopeCatalog['permissions']>) =>
    list.map(({ tag, domain, read, write }) => [tag, domain, read.length, write.length]);

  it('are one for each tag of each host, or for the first segment of a path without one', () => {
    expect(named(catalog.permissions())).toEqual([
      ['pages', 'shop.example', 1, 2],
      ['orders', 'bills.example', 1, 1],
      ['orders', 'shop.example', 2, 3],
      ['Stock', 'shop.example', 1, 1],
    ]);
    expect(catalog.permissions()[2]).toEqual({
      tag: 'orders',
      domain: 'shop.example',
      read: [at('GET orders$'), at('GET orders/{}$')],
      write: [at('GET orders$'), at('GET orders/{}$'), at('POST orders$')],
    });
  });

  it.each([
    ['$', '/'],
    ['{}/{}$', '/'],
    ['{}/a$', 'a'],
    ['v1', 'v1'],
  ])('names an entry at %j without a tag %j', (path, tag) => {
    const [permission] = ScopeCatalog.from([`GET:shop.example/${path}`]).permissions();

    expect(permission?.tag).toBe(tag);
  });

  it('tell apart tags that differ in case', () => {
    const entries = ['orders', 'Orders'].map((tag, i) => ({ scope: at(`GET o${i}$`), tag }));

    expect(named(ScopeCatalog.from(entries).permissions())).toHaveLength(2);
  });

  it('are those of the host, if it gives some, with wildcards expanded', () => {
    const permissions = [
      {
        name: 'Orders\n',
        description: 'What was sold',
        levels: { read: [at('GET orders/{}$')], write: [at('* orders$')] },
      },
      { name: 'One order', levels: { write: [at('GET orders/7$')] } },
      { name: 'Nothing here', levels: { read: ['GET:other.example/*'] } },
    ];

    expect(ScopeCatalog.from(WORDED, { permissions }).permissions()).toEqual([
      {
        tag: 'Orders',
        description: 'What was sold',
        read: [at('GET orders/{}$')],
        write: [at('GET orders$'), at('GET orders/{}$'), at('POST orders$')],
      },
      { tag: 'One order', read: [], write: [at('GET orders/7$')] },
    ]);
  });

  it('are cut to the entries of a catalog that takes them over', () => {
    const some = ScopeCatalog.from([at('GET orders$'), at('DELETE pages/home$')], {
      base: catalog,
    });

    expect(named(some.permissions())).toEqual([
      ['pages', 'shop.example', 0, 1],
      ['orders', 'shop.example', 1, 1],
    ]);
  });

  it.each<[string, unknown, string]>([
    [
      'a scope that cannot be parsed',
      [{ name: 'x', levels: { read: ['orders'] } }],
      'missing_method',
    ],
    ['a permission without levels', [{ name: 'x' }], 'scopes_required'],
    ['something that is not a list', 7, 'scopes_required'],
  ])('refuse %s', (_, permissions, code) => {
    expect(() => ScopeCatalog.from(WORDED, { permissions: permissions as never })).toThrow(
      expect.objectContaining({ code }),
    );
  });

  it('may hold more entries than a token, but no wildcard may stand for so many', () => {
    const entries = Array.from({ length: 5000 }, (_, i) => ({
      scope: at(`GET o/${i}$`),
      tag: 'o',
    }));
    const permissions = [{ name: 'all', levels: { read: [at('GET o')] } }];

    expect(named(ScopeCatalog.from(entries).permissions())).toEqual([
      ['o', 'shop.example', 5000, 5000],
    ]);
    expect(() => ScopeCatalog.from(entries, { permissions }).permissions()).toThrow(
      expect.objectContaining({ code: 'too_many_scopes' }),
    );
  });

  it('grant the same strings as their endpoints by hand', () => {
    const all = catalog.permissions();
    const choice = fc.record({
      permission: fc.constantFrom(...all),
      level: fc.constantFrom('read', 'write'),
    });
    fc.assert(
      fc.property(fc.array(choice, { minLength: 1 }), (choices) => {
        const asked = choices.flatMap(({ permission, level }) => permission[level as 'read']);
        fc.pre(asked.length > 0);
        expect(catalog.expand(asked).granted).toEqual([...new Set(asked)].sort());
      }),
      runs(),
    );
  });
});

describe('describeScopes', () => {
  const textOf = (...scopes: string[]) => describeScopes(scopes, catalog).text;

  it.each([
    [[at('GET orders$'), at('GET orders/{}$')], 'Orders (shop.example): read'],
    [['GET:bills.example/orders$'], 'Orders (bills.example): read'],
    [[at('GET stock/{}$')], 'Stock: read'],
    [[at('DELETE pages/home$')], '1 single endpoint'],
    [[at('DELETE pages/home$'), at('HEAD pages/home$')], 'Pages: write'],
    [[at('GET orders$'), at('POST orders$')], '2 single endpoints'],
    [[at('GET stock/{}$'), at('GET orders$')], 'Stock: read · 1 single endpoint'],
    [['GET:unknown.example/*'], 'GET:unknown.example/*'],
    [[], 'nothing'],
  ])('says of %j: %s', (scopes, text) => {
    expect(textOf(...scopes)).toBe(text);
  });

  it('tells a level that wildcards cover', () => {
    expect(describeScopes(['GET:shop.example/orders', at('* pages')], catalog)).toMatchObject({
      permissions: [
        { tag: 'pages', level: 'write' },
        { tag: 'orders', domain: 'shop.example', level: 'read' },
      ],
      single: ['*:shop.example/pages', 'GET:shop.example/orders'],
    });
  });

  it('counts many permissions by level', () => {
    const entries = ['a', 'b', 'c', 'd', 'e'].flatMap((tag) =>
      ['GET', 'POST'].map((method) => ({ scope: `${method}:shop.example/${tag}$`, tag })),
    );
    const many = ScopeCatalog.from(entries);
    const reading = many.toArray().filter((scope) => scope.startsWith('GET'));

    expect(describeScopes(reading, many).text).toBe('5 permissions: read');
    expect(describeScopes([...reading, 'POST:shop.example/a$'], many).text).toBe(
      '4 permissions: read · 1 permission: write',
    );
  });

  it('counts single endpoints without a catalog', () => {
    expect(describeScopes([at('GET orders$')]).text).toBe('1 single endpoint');
    expect(() => describeScopes(['orders'])).toThrow(ScopeError);
  });

  it.each([
    ['pull-requests', 'Pull requests'],
    ['code_scanning', 'Code scanning'],
    ['OIDC', 'OIDC'],
    ['My API', 'My API'],
    ['v1.2-beta', 'V1.2-beta'],
  ])('writes the tag %s as %s', (tag, name) => {
    const entry = { scope: at('GET a$'), tag };

    expect(describeScopes([entry.scope], ScopeCatalog.from([entry])).permissions[0]?.name).toBe(
      name,
    );
  });
});
