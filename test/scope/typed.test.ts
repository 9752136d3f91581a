import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { catalogTypes } from '../../src/cli/catalog-types.ts';
import { ScopeCatalog } from '../../src/scope/catalog.ts';
import { ScopeError } from '../../src/scope/grammar.ts';
import { defineCatalog, scopeIn } from '../../src/scope/typed.ts';
import { complaintsAbout, completionsAt } from '../types/support.ts';
import { anyScope, concreteScope } from './support.ts';

const shop = defineCatalog(['POST:shop.example/orders', 'GET:shop.example/orders']);

const SHOP = `import { type CatalogPattern, defineCatalog, scopeIn } from './src/scope/index.ts';
const catalog = defineCatalog(['GET:shop.example/orders', 'POST:shop.example/orders/open']);
export type Pattern = CatalogPattern<typeof catalog>;
void scopeIn;
`;

function messageAbout(line: string): string {
  return complaintsAbout({ 'wrong.ts': SHOP + line })
    .map(({ message }) => message)
    .join('\n');
}

describe('defineCatalog', () => {
  it('makes a catalog like any other', () => {
    expect(shop).toBeInstanceOf(ScopeCatalog);
    expect(shop.toArray()).toEqual(['GET:shop.example/orders', 'POST:shop.example/orders']);
    expect(shop.expand(['*:shop.example/*']).granted).toEqual(shop.toArray());
    expect(ScopeCatalog.from(shop)).toBe(shop);
  });

  it('refuses at run time what the compiler cannot see', () => {
    expect(() => defineCatalog(['GET:10.0.0.1/orders'])).toThrow(ScopeError);
    expect(() => defineCatalog(['GET:*/orders'] as unknown as ['GET:d/a'])).toThrow(ScopeError);
  });
});

describe('scopeIn', () => {
  it('gives back what was asked for', () => {
    expect(scopeIn(shop, 'GET:shop.example/orders/5')).toBe('GET:shop.example/orders/5');
    expect(scopeIn(shop, '*:*/*')).toBe('*:*/*');
  });

  it('refuses at run time what the compiler was made to accept', () => {
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
  ])('names the misspelt scope and the entries, or the nearest: %s', (line) => {
    const message = messageAbout(line);

    expect(message).toContain('"GET:shop.example/order"');
    expect(message).toContain('"GET:shop.example/orders"');
    expect(message.split('\n')).toHaveLength(1);
    expect(message.length).toBeLessThan(300);
  });

  it('asks whether the nearest entry was meant', () => {
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
  ])('lets an editor offer the entries: %s', (line) => {
    expect(completionsAt(SHOP + line)).toEqual([
      'GET:shop.example/orders',
      'POST:shop.example/orders/open',
    ]);
  });

  // Three ways to say what may be asked for: the type of one literal, the union, and `expand`.
  it('accepts, in a call and in an annotation, just what expand accepts', () => {
    const seed = 7;
    const entries = fc.sample(concreteScope, { seed, numRuns: 30 });
    const asked = [...new Set(fc.sample(anyScope, { seed, numRuns: 600 })), ...entries];
    const catalog = ScopeCatalog.from(entries);
    const lines = asked.flatMap((text) => [
      `scopeIn(catalog, ${JSON.stringify(text)});`,
      `asked = ${JSON.stringify(text)};`,
    ]);
    const head = `import { type CatalogPattern, defineCatalog, scopeIn } from './src/scope/index.ts';
const catalog = defineCatalog(${JSON.stringify(entries)}); let asked: CatalogPattern<typeof catalog>;
`;
    const refused = new Set(
      complaintsAbout({ 'laws.ts': `${head}${lines.join('\n')}\nexport { asked };` }).map(
        ({ line }) => line - 3,
      ),
    );

    const known = asked.map((text) => catalog.knows(text));
    expect(asked.map((_, place) => !refused.has(2 * place))).toEqual(known);
    expect(asked.map((_, place) => !refused.has(2 * place + 1))).toEqual(known);
    expect(known.filter(Boolean).length).toBeGreaterThan(100);
    expect(known.filter((isKnown) => !isKnown).length).toBeGreaterThan(100);
  });
});

describe('catalogTypes', () => {
  const entries = ["GET:d.example/it's/$1", 'GET:d.example/$x', 'GET:a.example/b'];
  const use = (line: string) =>
    complaintsAbout({
      'catalog.d.ts': catalogTypes(ScopeCatalog.from(entries)),
      'use.ts': `import type { Catalog, Pattern, Scope } from './catalog.d.ts';
declare const catalog: Catalog; void catalog;
export type All = Pattern | Scope;
${line}`,
    });

  it('writes the same text for the same catalog, sorted', () => {
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
  ])('gives types of which %s compiles: %s', (line, compiles) => {
    const complaints = use(line);

    expect(complaints.map(({ file }) => file)).toEqual(compiles ? [] : ['use.ts']);
  });

  it('takes a name for its types, which must be an identifier', () => {
    const text = catalogTypes(shop, 'Shop');

    expect(text.match(/export type \w+/g)).toEqual([
      'export type ShopScope',
      'export type ShopCatalog',
      'export type ShopPattern',
    ]);
    expect(() => catalogTypes(shop, 'my shop')).toThrow('must be an identifier');
  });

  it('declares that nothing exists for an empty catalog', () => {
    const text = catalogTypes(ScopeCatalog.from([]));

    expect(complaintsAbout({ 'catalog.d.ts': text })).toEqual([]);
    expect(text).toContain('export type Scope = never;');
  });
});
