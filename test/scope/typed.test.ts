import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { catalogTypes } from '../../src/app/cli/catalog-types.ts';
import { ScopeCatalog } from '../../src/scope/catalog.ts';
import { ScopeError } from '../../src/scope/errors.ts';
import { defineCatalog, scopeIn } from '../../src/scope/typed.ts';
import { completionsAt, diagnosticsOf } from '../types/support.ts';
import { anyScope, concreteScope } from './support.ts';

const shop = defineCatalog(['POST:shop.example/orders', 'GET:shop.example/orders']);

const SHOP = `import { type CatalogPattern, defineCatalog, scopeIn } from './src/scope/index.ts';
const catalog = defineCatalog(['GET:shop.example/orders', 'POST:shop.example/orders/open']);
export type Pattern = CatalogPattern<typeof catalog>;
void scopeIn;
`;

function messageAbout(line: string): string {
  return diagnosticsOf({ 'wrong.ts': SHOP + line })
    .map(({ message }) => message)
    .join('\n');
}

describe('defineCatalog', () => {
  it('returns an ordinary ScopeCatalog', () => {
    expect(shop).toBeInstanceOf(ScopeCatalog);
    expect(shop.toArray()).toEqual(['GET:shop.example/orders', 'POST:shop.example/orders']);
    expect(shop.expand(['*:shop.example/*']).granted).toEqual(shop.toArray());
    expect(ScopeCatalog.from(shop)).toBe(shop);
  });

  it('drops the names of templates from its types, as at run time', () => {
    const catalog = defineCatalog(['GET:d.example/orders/{order}$', 'GET:d.example/$']);
    const entries: ('GET:d.example/orders/{}$' | 'GET:d.example/$')[] = catalog.toArray();

    expect(entries).toEqual(['GET:d.example/$', 'GET:d.example/orders/{}$']);
    expect(scopeIn(catalog, 'GET:d.example/orders/{id}$')).toBe('GET:d.example/orders/{id}$');
  });

  it('refuses at run time an invalid entry that the compiler accepts', () => {
    expect(() => defineCatalog(['GET:10.0.0.1/orders'])).toThrow(ScopeError);
    expect(() => defineCatalog(['GET:*/orders'] as unknown as ['GET:d/a'])).toThrow(ScopeError);
  });
});

describe('scopeIn', () => {
  it('returns the scope it is given', () => {
    expect(scopeIn(shop, 'GET:shop.example/orders/5')).toBe('GET:shop.example/orders/5');
    expect(scopeIn(shop, '*:*/*')).toBe('*:*/*');
  });

  it('refuses at run time an unknown scope that a cast hides from the compiler', () => {
    const asked = 'GET:shop.example/order' as 'GET:shop.example/orders';
    expect(() => scopeIn(shop, asked)).toThrow(
      expect.objectContaining({ code: 'scope_unmatched', scopes: [asked] }),
    );
  });
});

describe('the compiler', () => {
  it.each([
    ["catalog.expand(['GET:shop.example/order']);"],
    ["scopeIn(catalog, 'GET:shop.example/order');"],
    ["export const asked: Pattern = 'GET:shop.example/order';"],
  ])('names the misspelled scope and the nearest entry: %s', (line) => {
    const message = messageAbout(line);

    expect(message).toContain('"GET:shop.example/order"');
    expect(message).toContain('"GET:shop.example/orders"');
    expect(message.split('\n')).toHaveLength(1);
    expect(message.length).toBeLessThan(300);
  });

  it('suggests the nearest entry', () => {
    expect(messageAbout("catalog.expand(['GET:shop.example/order']);")).toContain(
      `Did you mean '"GET:shop.example/orders"'?`,
    );
  });

  it.each([
    ['get:d.example/a', 'the method must be in upper case, \\"GET\\"'],
    ['*:d.example/a', 'the method must not be a wildcard'],
    ['GET:*.example/a', 'the domain must not hold a wildcard'],
    ['GET:D.example/a', 'the domain must be in lower case, \\"d.example\\"'],
    ['GET:d.example/', 'the path is missing'],
    ['GET:d.example/*', 'the path must not hold a wildcard'],
    ['GET:d.example/a/', 'the path must not end in a slash'],
    ['GET:d.example', 'it must have a method, a domain and a path'],
    ['GET:d.example/a/$', 'the path must not end in a slash'],
    ['GET:d.example/a{b}', 'the path must hold braces around whole segments only'],
    ['GET:d.example/a?b', 'the path must hold no query'],
  ])('says what is wrong with the entry %s', (entry, why) => {
    const message = messageAbout(`defineCatalog(['GET:d.example/b', '${entry}']);`);

    expect(message).toContain(`Type '"${entry}"' is not assignable`);
    expect(message).toContain(`not a catalog entry: ${why}`);
    expect(message.split('\n')).toHaveLength(1);
  });

  it.each([
    "catalog.expand(['|']);",
    "catalog.expand(['*:*/*', 'GET|']);",
    "scopeIn(catalog, '|');",
  ])('completes the entries in an editor: %s', (line) => {
    expect(completionsAt(SHOP + line)).toEqual([
      'GET:shop.example/orders',
      'POST:shop.example/orders/open',
    ]);
  });

  it('accepts in a call exactly the scopes that expand accepts', () => {
    const { catalog, asked, known } = sampled(30, 600, 7);

    expect(
      compiling(
        catalog,
        asked.map((text) => `scopeIn(catalog, ${quoted(text)});`),
      ),
    ).toEqual(known);
    expect(known.filter(Boolean).length).toBeGreaterThan(100);
    expect(known.filter((isKnown) => !isKnown).length).toBeGreaterThan(100);
  });

  it.each([8, 9, 10, 11])(
    'accepts the same scopes as expand for a small catalog (seed %i)',
    (seed) => {
      const { catalog, asked, known } = sampled(4, 200, seed);

      expect(
        compiling(
          catalog,
          asked.map((text) => `scopeIn(catalog, ${quoted(text)});`),
        ),
      ).toEqual(known);
    },
  );

  it('accepts in an annotation the same scopes as expand, templates aside', () => {
    const { catalog, asked, known } = sampled(60, 900, 7, (text) => !text.includes('{}'));

    expect(
      compiling(
        catalog,
        asked.map((text) => `asked = ${quoted(text)};`),
      ),
    ).toEqual(known);
    expect(known.filter(Boolean).length).toBeGreaterThan(100);
    expect(known.filter((isKnown) => !isKnown).length).toBeGreaterThan(100);
  });

  it.each([
    'GET:d.example/a//b',
    'GET:d.example/a/',
    'GET:d.example/a/*',
    'GET:d.example/a/b*',
    'GET:d.example/a?b',
    'GET:d.example/a#b',
    'GET:d.example/a%20b',
    'GET:d.example/a/b{}',
    'GET:d.example/a/{}b$',
    'GET:d.example/a/{',
    'GET:d.example/a/$',
    'GET:d.example/',
    'GET:d.example',
  ])('refuses in a call a text that is not a scope: %s', (text) => {
    const catalog = ScopeCatalog.from(['GET:d.example/a', 'GET:d.example/{}/{}']);

    expect(compiling(catalog, [`scopeIn(catalog, ${quoted(text)});`])).toEqual([false]);
    expect(() => catalog.expand([text])).toThrow(ScopeError);
  });

  it.each([
    ['GET:d.example/$', 'GET:d.example/$', true],
    ['GET:d.example/a$/b', 'GET:d.example/a$', false],
    ['GET:d.example/a$', 'GET:d.example/a$/b', false],
    ['GET:d.example/{}', 'GET:d.example/a$/b', true],
    ['GET:d.example/a$$', 'GET:d.example/a$', false],
    ['GET:d.example/a$$', 'GET:d.example/a$$', true],
    ['GET:d.example/a/{}$', 'GET:d.example/{}/b$', true],
    ['GET:d.example/a/{}$', 'GET:d.example/{}/b/c$', false],
    ['GET:d.example/{}/{}/{}/{}/{}/{}/{}/{}$', 'GET:d.example/1/2/3/4/5/6/7/8$', true],
    ['GET:d.example/1/{}/3/4/5/6/7/8/9/10$', 'GET:d.example/1/2/3/4/5/6/7/8/9/10$', true],
    ['GET:d.example/1/{}/3/4/5/6/7/8/9/10$', 'GET:d.example/1/2/3/4/5/6/7/8/9/11$', false],
  ])('agrees with expand that the entry %s matches %s: %s', (entry, text, isKnown) => {
    const catalog = ScopeCatalog.from([entry]);

    expect(catalog.knows(text)).toBe(isKnown);
    expect(compiling(catalog, [`scopeIn(catalog, ${quoted(text)});`])).toEqual([isKnown]);
  });

  it('names the misspelled scope and only some entries of a large catalog', () => {
    const entries = Array.from({ length: 500 }, (_, i) => `GET:d.example/users/{}/things${i}$`);
    const [message = ''] = diagnosticsOf({
      'wrong.ts': `${head(entries)}scopeIn(catalog, 'GET:d.example/users/ada/thing7$'); void asked;`,
    }).map((diagnostic) => diagnostic.message);

    expect(message).toContain('\'"GET:d.example/users/ada/thing7$"\' is not assignable');
    expect(message).toContain('more ...');
    expect(message.length).toBeLessThan(500);
  });
});

function head(entries: readonly string[]): string {
  return `import { type CatalogPattern, defineCatalog, scopeIn } from './src/scope/index.ts'; void scopeIn;
const catalog = defineCatalog(${JSON.stringify(entries)}); let asked: CatalogPattern<typeof catalog>;
`;
}

/** Whether each of the lines about a catalog compiles. */
function compiling(catalog: ScopeCatalog, lines: readonly string[]): boolean[] {
  const text = `${head(catalog.toArray())}${lines.join('\n')}\nexport { asked };`;
  const refused = new Set(diagnosticsOf({ 'laws.ts': text }).map(({ line }) => line - 3));
  return lines.map((_, index) => !refused.has(index));
}

/** A random catalog, scopes to ask it for, and whether it knows each of them. */
function sampled(size: number, count: number, seed: number, isMeant = (_: string) => true) {
  const entries = fc.sample(concreteScope.filter(isMeant), { seed, numRuns: size });
  const catalog = ScopeCatalog.from(entries);
  const some = fc.sample(anyScope.filter(isMeant), { seed: seed + 1, numRuns: count });
  const asked = [...new Set([...some, ...entries])];
  return { catalog, asked, known: asked.map((text) => catalog.knows(text)) };
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

describe('catalogTypes', () => {
  const entries = ["GET:d.example/it's/$1", 'GET:d.example/$x', 'GET:a.example/b'];
  const use = (line: string) =>
    diagnosticsOf({
      'catalog.d.ts': catalogTypes(ScopeCatalog.from(entries)),
      'use.ts': `import type { Catalog, Pattern, Scope } from './catalog.d.ts';
declare const catalog: Catalog; void catalog;
export type All = Pattern | Scope;
${line}`,
    });

  it('writes the entries sorted, so that equal catalogs give equal text', () => {
    const text = catalogTypes(ScopeCatalog.from(entries));

    expect(text).toBe(catalogTypes(ScopeCatalog.from(entries.toReversed())));
    expect(text.match(/^ {2}\| .*?(?=;?$)/gm)).toEqual([
      "  | 'GET:a.example/b'",
      "  | 'GET:d.example/$x'",
      "  | 'GET:d.example/it\\'s/$1'",
    ]);
  });

  it.each([
    [`export const scope: Scope = "GET:d.example/it's/$1";`, true],
    [`export const scope: Scope = "GET:d.example/it's/$2";`, false],
    [`export const pattern: Pattern = "*:*.example/it's";`, true],
    [`export const pattern: Pattern = "*:*.example/its";`, false],
    [`catalog.expand(['GET:d.example/$x/y', 'GET:*/*']);`, true],
    [`catalog.expand(['GET:d.example/$xy', 'GET:*/*']);`, false],
  ])('writes types with which %s compiles: %s', (line, compiles) => {
    const diagnostics = use(line);

    expect(diagnostics.map(({ file }) => file)).toEqual(compiles ? [] : ['use.ts']);
  });

  it('prefixes its types with a name, which must be an identifier', () => {
    const text = catalogTypes(shop, 'Shop');

    expect(text.match(/export type \w+/g)).toEqual([
      'export type ShopScope',
      'export type ShopCatalog',
      'export type ShopPattern',
    ]);
    expect(() => catalogTypes(shop, 'my shop')).toThrow('must be an identifier');
  });

  it('writes the type never for the scopes of an empty catalog', () => {
    const text = catalogTypes(ScopeCatalog.from([]));

    expect(diagnosticsOf({ 'catalog.d.ts': text })).toEqual([]);
    expect(text).toContain('export type Scope = never;');
  });
});
