import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { covers, meet, overlaps } from '../../src/scope/algebra.ts';
import { ScopeCatalog } from '../../src/scope/catalog.ts';
import { ScopeError } from '../../src/scope/errors.ts';
import { parseScope, type Scope } from '../../src/scope/grammar.ts';
import { readRequest } from '../../src/scope/request.ts';
import { ScopeSet } from '../../src/scope/set.ts';
import { runs } from '../laws.ts';
import {
  anyDenotes,
  anyScope,
  concreteScope,
  crossingEntry,
  crossingScope,
  edits,
  hostile,
  universeOf,
} from './support.ts';

const SHOP = [
  'GET:shop.example/orders',
  'POST:shop.example/orders',
  'POST:shop.example/orders_archive',
  'GET:eu.shop.example/orders/open',
  'POST:mail.example/fields',
  'GET:mail.example/layout',
];

const NESTED = ['GET:d.example/a', 'GET:d.example/a/b', 'POST:d.example/a/b'];

const HUB = [
  'GET:d.example/$',
  'GET:d.example/r$',
  'GET:d.example/r/{}$',
  'GET:d.example/r/{}/i$',
  'POST:d.example/r/{}/i$',
].sort();

function grant(requested: unknown, catalog: readonly string[]): string[] {
  return ScopeCatalog.from(catalog).expand(requested as string[]).granted;
}

function errorOf(action: () => unknown): ScopeError {
  try {
    action();
  } catch (error) {
    if (error instanceof ScopeError) return error;
    throw error;
  }
  throw new Error('there was no error');
}

function refusal(requested: unknown, catalog: readonly string[] = SHOP): ScopeError {
  return errorOf(() => grant(requested, catalog));
}

describe('ScopeCatalog.from', () => {
  it('holds concrete scopes in canonical order, without duplicates', () => {
    const catalog = ScopeCatalog.from([
      'POST:shop.example/b',
      'GET:SHOP.example/a',
      parseScope('GET:shop.example/a'),
    ]);

    expect(catalog.size).toBe(2);
    expect(catalog.toArray()).toEqual(['GET:shop.example/a', 'POST:shop.example/b']);
    expect([...catalog].map(String)).toEqual(catalog.toArray());
    expect(ScopeCatalog.from(catalog)).toBe(catalog);
    expect(ScopeCatalog.from(ScopeSet.from(catalog)).toArray()).toEqual(catalog.toArray());
  });

  it.each([
    ['a wildcard method', '*:d.example/a'],
    ['a wildcard domain', 'GET:*/a'],
    ['a parent pattern', 'GET:*.example/a'],
    ['a wildcard path', 'GET:d.example/*'],
    ['the scope of everything', '*:*/*'],
    ['a text that is not a scope', 'get:d.example/a'],
    ['an empty text', ''],
  ])('refuses to hold %s', (_, entry) => {
    const error = errorOf(() => ScopeCatalog.from(['GET:d.example/a', entry]));

    expect(error.code).toBe('catalog_not_concrete');
    expect(error.scopes).toEqual([entry]);
  });

  it('names every refused entry, and keeps unprintable text out of the message', () => {
    const entries = ['GET:d.example/a', '*:*/*', 'bad\n', 7, 'GET:d.example/*', hostile()];
    const error = errorOf(() => ScopeCatalog.from(entries as string[]));

    expect(error.code).toBe('catalog_not_concrete');
    expect(error.scopes).toEqual([
      '*:*/*',
      'scopes[2]',
      'scopes[3]',
      'GET:d.example/*',
      'scopes[5]',
    ]);
    expect(error.message).toMatch(/^[\x20-\x7e]+$/);
  });

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a string', 'GET:d.example/a'],
    ['a number', 7],
    ['an object', {}],
  ])('refuses %s as a list', (_, entries) => {
    expect(errorOf(() => ScopeCatalog.from(entries as string[])).code).toBe('scopes_required');
  });

  it('copies the list it is made from and the array it returns', () => {
    const entries = ['GET:d.example/a'];
    const catalog = ScopeCatalog.from(entries);
    entries.push('GET:d.example/b');
    catalog.toArray().push('GET:d.example/b');

    expect(catalog.toArray()).toEqual(['GET:d.example/a']);
  });
});

describe('ScopeCatalog.expand', () => {
  it.each<[readonly string[], readonly string[], readonly string[]]>([
    [['*:*/*'], SHOP, [...SHOP].sort()],
    [['GET:shop.example/orders'], SHOP, ['GET:shop.example/orders']],
    [['GET:SHOP.Example/orders'], SHOP, ['GET:shop.example/orders']],
    [['*:shop.example/orders'], SHOP, ['GET:shop.example/orders', 'POST:shop.example/orders']],
    [['*:*.shop.example/*'], SHOP, ['GET:eu.shop.example/orders/open']],
    [['GET:*.example/*'], SHOP, SHOP.filter((entry) => entry.startsWith('GET:')).sort()],
    [
      ['POST:*/orders', 'POST:shop.example/orders', 'POST:shop.example/orders'],
      SHOP,
      ['POST:shop.example/orders'],
    ],
    [
      ['POST:mail.example/fields', 'GET:shop.example/orders'],
      SHOP,
      ['GET:shop.example/orders', 'POST:mail.example/fields'],
    ],

    [['POST:mail.example/fields/country'], SHOP, ['POST:mail.example/fields/country']],
    [['*:mail.example/fields/country'], SHOP, ['POST:mail.example/fields/country']],
    [['POST:*/fields/country'], SHOP, ['POST:mail.example/fields/country']],
    [['GET:d.example/a'], NESTED, ['GET:d.example/a']],
    [['GET:d.example/a/b'], NESTED, ['GET:d.example/a/b']],
    [['GET:d.example/a/b/c'], NESTED, ['GET:d.example/a/b/c']],
    [['GET:d.example/a/c'], NESTED, ['GET:d.example/a/c']],
    [['*:d.example/a/b'], NESTED, ['GET:d.example/a/b', 'POST:d.example/a/b']],
    [['*:d.example/a'], NESTED, NESTED],
    [['GET:d.example/*'], NESTED, ['GET:d.example/a', 'GET:d.example/a/b']],
    [['*:d.example/a/b'], ['GET:d.example/a'], ['GET:d.example/a/b']],
    [
      ['GET:d.example/a'],
      ['GET:d.example/a/b', 'GET:d.example/a/c'],
      ['GET:d.example/a/b', 'GET:d.example/a/c'],
    ],
    [['POST:d.example/a'], NESTED, ['POST:d.example/a/b']],
    [
      ['GET:*.d.example/*'],
      ['GET:a.d.example/a', 'GET:d.example/a', 'GET:xd.example/a'],
      ['GET:a.d.example/a'],
    ],
    [['GET:constructor/tostring'], ['GET:constructor/tostring'], ['GET:constructor/tostring']],

    [['*:*/*'], HUB, HUB],
    [['GET:d.example/*'], HUB, HUB.filter((entry) => entry.startsWith('GET:'))],
    [['GET:d.example/$'], HUB, ['GET:d.example/$']],
    [['GET:d.example/r/{}'], HUB, ['GET:d.example/r/{}$', 'GET:d.example/r/{}/i$']],
    [['GET:d.example/r/{name}$'], HUB, ['GET:d.example/r/{}$']],
    [['GET:d.example/r/s'], HUB, ['GET:d.example/r/s$', 'GET:d.example/r/s/i$']],
    [['GET:d.example/r/s/i/7'], ['GET:d.example/r/{}/i'], ['GET:d.example/r/s/i/7']],
    [['*:d.example/r/s/i'], HUB, ['GET:d.example/r/s/i$', 'POST:d.example/r/s/i$']],
    [
      ['*:d.example/{}/s'],
      HUB,
      ['GET:d.example/r/s$', 'GET:d.example/r/s/i$', 'POST:d.example/r/s/i$'],
    ],
    [['GET:d.example/r/{}/{}$'], HUB, ['GET:d.example/r/{}/i$']],
    [['GET:d.example/r$', 'GET:d.example/r/s$'], HUB, ['GET:d.example/r$', 'GET:d.example/r/s$']],
    [['GET:d.example/a$'], ['GET:d.example/a'], ['GET:d.example/a$']],
    [['GET:d.example/a'], ['GET:d.example/a$'], ['GET:d.example/a$']],
  ])('grants for %j from %j the scopes %j', (requested, catalog, expected) => {
    expect(grant(requested, catalog)).toEqual(expected);
    expect(grant([...requested].reverse(), [...catalog].reverse())).toEqual(expected);
    expect(
      grant(
        requested.map((text) => parseScope(text)),
        catalog,
      ),
    ).toEqual(expected);
  });

  it.each<[readonly string[], readonly string[]]>([
    [['POST:mail.example/fields'], []],
    [['*:*/*'], []],
    [['*:mail.example/fields/country'], []],
    [['POST:mail.example/fields/country'], ['POST:mail.example/fields/country']],
    [
      ['POST:mail.example/fields/b', 'GET:mail.example/layout', 'POST:mail.example/fields/a'],
      ['POST:mail.example/fields/a', 'POST:mail.example/fields/b'],
    ],
  ])('reports for %j as narrowed %j', (requested, narrowed) => {
    expect(ScopeCatalog.from(SHOP).expand(requested).narrowed).toEqual(narrowed);
  });

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['an empty list', []],
    ['a string', 'GET:shop.example/orders'],
    ['a String object', new String('GET:shop.example/orders')],
    ['a Set', new Set(['GET:shop.example/orders'])],
    ['an object like a list', { 0: 'GET:shop.example/orders', length: 1 }],
    ['a number', 1],
    ['a ScopeSet', ScopeSet.from(['GET:shop.example/orders'])],
    ['a list that throws', new Proxy([], { get: () => hostile().toString() })],
  ])('refuses %s as the requested scopes', (_, requested) => {
    expect(refusal(requested).code).toBe('scopes_required');
    expect(refusal(requested, []).code).toBe('scopes_required');
  });

  it('accepts at most 4096 requested scopes, counting duplicates', () => {
    const many = (count: number): string[] =>
      Array.from({ length: count }, (_, i) => `GET:d.example/a${i}`);

    expect(grant(many(4096), many(4096))).toHaveLength(4096);
    expect(refusal(many(4097), many(4097)).code).toBe('too_many_scopes');
    expect(refusal(many(100_000), many(1)).code).toBe('too_many_scopes');
    expect(refusal(Array(4097).fill('GET:d.example/a0'), many(1)).code).toBe('too_many_scopes');
    expect(grant(Array(4096).fill('GET:d.example/a0'), many(1))).toEqual(['GET:d.example/a0']);
    expect(refusal(new Array(1e9), many(1)).code).toBe('too_many_scopes');
  });

  it('grants at most 4096 scopes', () => {
    const many = (count: number): string[] =>
      Array.from({ length: count }, (_, i) => `GET:d${i % 7}.example/a${i}`);

    expect(grant(['*:*/*'], many(4096))).toHaveLength(4096);
    expect(refusal(['*:*/*'], many(4097)).code).toBe('too_many_scopes');
    expect(refusal(['*:*/*'], many(20_000)).code).toBe('too_many_scopes');
    expect(grant(['GET:d0.example/a0'], many(20_000))).toEqual(['GET:d0.example/a0']);
  });

  it('names every member that does not parse, and grants nothing', () => {
    const error = refusal([
      'GET:shop.example/orders',
      'get:shop.example/orders',
      'GET:shop.example/orders/*',
      'GET:shop.example/orders/',
      '*',
      '',
    ]);

    expect(error.code).toBe('scope_invalid');
    expect(error.scopes).toEqual([
      'get:shop.example/orders',
      'GET:shop.example/orders/*',
      'GET:shop.example/orders/',
      '*',
      '',
    ]);
    expect(error.refused).toStrictEqual([
      {
        scope: 'get:shop.example/orders',
        code: 'method_invalid',
        suggestion: 'GET:shop.example/orders',
      },
      {
        scope: 'GET:shop.example/orders/*',
        code: 'wildcard_position',
        suggestion: 'GET:shop.example/orders',
      },
      {
        scope: 'GET:shop.example/orders/',
        code: 'path_empty_segment',
        suggestion: 'GET:shop.example/orders',
      },
      { scope: '*', code: 'missing_method' },
      { scope: '', code: 'empty' },
    ]);
  });

  it('names a member that cannot be shown by its index', () => {
    const odd = [undefined, null, 7, ['*:*/*'], {}, new String('*:*/*'), () => '*:*/*', hostile()];
    const texts = ['a\n', '\ud800', 'x'.repeat(1 << 20)];
    const holes: unknown[] = new Array(1);
    const requested = ['*:*/*', ...odd, ...texts, ...holes];
    const error = refusal(requested);

    expect(error.code).toBe('scope_invalid');
    expect(error.scopes).toEqual(requested.slice(1).map((_, index) => `scopes[${index + 1}]`));
    expect(error.refused?.map(({ code }) => code)).toEqual([
      ...odd.map(() => 'not_a_string'),
      'illegal_character',
      'non_ascii',
      'too_long',
      'not_a_string',
    ]);
    expect(error.message).toMatch(/^[\x20-\x7e]{1,2000}$/);
  });

  it('names every member that matches no entry, with the nearest entries, and grants nothing', () => {
    const requested = [
      'GET:shop.example/order',
      'GET:shop.example/orders',
      'HEAD:shop.example/orders',
      '*:nothing.example/*',
    ];
    const error = refusal(requested);

    expect(error.code).toBe('scope_unmatched');
    expect(error.scopes).toEqual([
      'GET:shop.example/order',
      'HEAD:shop.example/orders',
      '*:nothing.example/*',
    ]);
    for (const { scope, nearest = [], code } of error.refused ?? []) {
      expect(code).toBeUndefined();
      expect(nearest.length, scope).toBeGreaterThan(0);
      expect(SHOP).toEqual(expect.arrayContaining([...nearest]));
    }
    expect(error.refused?.[0]?.nearest?.[0]).toBe('GET:shop.example/orders');
    expect(error.refused?.[1]?.nearest).toContain('GET:shop.example/orders');
  });

  it('describes five refused members with corrections, and counts the rest', () => {
    const bad = ['get:d.example/a', '*', '', 'GET:d.example/a/', 'GET:d.example/a?', 'b', 'c'];
    const five = [
      'get:d.example/a (method_invalid; did you mean GET:d.example/a?)',
      '* (missing_method)',
      ' (empty)',
      'GET:d.example/a/ (path_empty_segment; did you mean GET:d.example/a?)',
      'GET:d.example/a? (query_or_fragment)',
    ].join(', ');

    const one = refusal(bad.slice(0, 1)).message;
    expect(one).toMatch(/^scopes cannot be read: "get:d\.example\/a.*GET:d\.example\/a/);
    expect(refusal(bad.slice(0, 5)).message).toMatch(/^scopes cannot be read: get:d/);
    expect(refusal(bad.slice(0, 5)).message).toContain(five);
    expect(refusal(bad.slice(0, 5)).message).not.toContain(' more');
    expect(refusal(bad).message).toMatch(/^scopes cannot be read: get:d/);
    expect(refusal(bad).message).toContain(`${five} and 2 more`);
  });

  it('names the nearest entries for a member that matches none, if any are similar', () => {
    const catalog = ['GET:d.example/a', 'GET:d.example/b'];
    const far = `GET:d.example/${'x'.repeat(70)}`;

    const { message } = refusal(['PUT:d.example/a', far], catalog);
    expect(message).toMatch(/PUT:d\.example\/a \([a-z ]*: GET:d\.example\/a, GET:d\.example\/b\)/);
    expect(message).toMatch(new RegExp(`, ${far}$`));
    expect(errorOf(() => ScopeCatalog.from(['*:*/*'])).message).toMatch(/unlike \*:\*\/\*$/);
  });

  it.each([10, 1000, 20_000])(
    'suggests from %i entries for the first five members only, but names all members',
    (size) => {
      const catalog = Array.from({ length: size }, (_, i) => `GET:d.example/${i}`);
      const asked = Array.from({ length: 7 }, (_, i) => `PUT:d.example/${i}`);
      const { refused = [] } = refusal(asked, catalog);

      expect(refused.map(({ nearest }) => nearest?.[0])).toEqual([
        ...asked.slice(0, 5).map((scope) => scope.replace('PUT', 'GET')),
        undefined,
        undefined,
      ]);
      expect(refused.map(({ scope }) => scope)).toEqual(asked);
    },
  );

  it.each([
    ['a part of an entry', 'GET:shop.example/order'],
    ['more than an entry', 'GET:shop.example/ordersx'],
    ['another case of the path', 'GET:shop.example/Orders'],
    ['another method', 'PUT:shop.example/orders'],
    ['HEAD for GET', 'HEAD:shop.example/orders'],
    ['the host above', 'GET:example/orders'],
    ['the host below', 'GET:x.shop.example/orders'],
    ['a pattern whose apex is the host', 'GET:*.mail.example/*'],
    ['a pattern that ends like a host', 'GET:*.hop.example/*'],
    ['a method of no entry', 'FRESH:*/*'],
  ])('refuses a member that matches no entry: %s', (_, member) => {
    const error = refusal(['*:*/*', member]);

    expect(error.code).toBe('scope_unmatched');
    expect(error.scopes).toEqual([member]);
  });

  it.each<[string, string, unknown, readonly string[]]>([
    ['scopes_required', 'catalog_empty', [], []],
    ['too_many_scopes', 'scope_invalid', Array(4097).fill('bad'), []],
    ['scope_invalid', 'catalog_empty', ['bad'], []],
    ['scope_invalid', 'scope_unmatched', ['GET:none.example/a', 'bad'], SHOP],
    ['catalog_empty', 'scope_unmatched', ['GET:none.example/a'], []],
  ])('reports %s before %s', (code, _, requested, catalog) => {
    expect(refusal(requested, catalog).code).toBe(code);
  });

  it('accepts scopes from another copy of the module', async () => {
    vi.resetModules();
    const other = await import('../../src/scope/index.ts');
    const foreign = other.parseScope('*:shop.example/orders') as unknown as Scope;

    expect(grant([foreign], SHOP)).toEqual(['GET:shop.example/orders', 'POST:shop.example/orders']);
    expect(() => ScopeCatalog.from([foreign])).toThrow(ScopeError);
  });

  it('grants a snapshot that later entries of the catalog do not extend', () => {
    const before = grant(['*:d.example/*'], ['GET:d.example/a']);

    expect(before).toEqual(['GET:d.example/a']);
    expect(ScopeSet.from(before).covers('GET:d.example/b')).toBe(false);
    expect(grant(before, ['GET:d.example/a', 'GET:d.example/b'])).toEqual(before);
  });

  const catalogs = fc.oneof(
    fc.array(concreteScope, { minLength: 1, maxLength: 7 }),
    fc.array(crossingEntry, { minLength: 1, maxLength: 7 }),
  );
  const wanted = fc
    .tuple(
      catalogs,
      fc.array(fc.tuple(fc.nat(), fc.nat(10), fc.oneof(anyScope, crossingScope())), {
        minLength: 1,
        maxLength: 5,
      }),
    )
    .map(([catalog, picks]) => ({
      catalog,
      requested: picks.map(([which, how, other]) =>
        askFor(catalog[which % catalog.length] as string, how, other),
      ),
    }));

  it('grants exactly the requests that are requested and in the catalog, or nothing', () => {
    let granted = 0;
    fc.assert(
      fc.property(wanted, ({ catalog, requested }) => {
        const isKnown = (scope: string): boolean => catalog.some((entry) => overlaps(entry, scope));
        const strangers = [...new Set(requested.filter((scope) => !isKnown(scope)))];
        if (strangers.length > 0) {
          const error = refusal(requested, catalog);
          expect(error.code).toBe('scope_unmatched');
          expect(error.scopes).toEqual(strangers);
          return;
        }
        const result = grant(requested, catalog);
        granted += 1;
        const wrong = universeOf([...catalog, ...requested]).filter((point) => {
          const isMeant = anyDenotes(requested, point) && anyDenotes(catalog, point);
          return anyDenotes(result, point) !== isMeant;
        });
        expect(wrong).toEqual([]);
      }),
      runs(),
    );
    expect(granted).toBeGreaterThan(runs(0.2).numRuns);
  });

  it('grants sorted scopes without wildcards or duplicates, and is idempotent', () => {
    fc.assert(
      fc.property(wanted, ({ catalog, requested }) => {
        const result = grantOrNothing(requested, catalog);
        expect(result.join('')).not.toContain('*');
        expect(result).toEqual([...new Set(result)].sort());
        if (result.length > 0) expect(grant(result, catalog)).toEqual(result);
        for (const scope of result) {
          expect(catalog.some((entry) => covers(entry, scope))).toBe(true);
          expect(requested.some((asked) => covers(asked, scope))).toBe(true);
        }
      }),
      runs(),
    );
  });

  it('reports as narrowed exactly the requested concrete scopes that are below an entry', () => {
    fc.assert(
      fc.property(wanted, ({ catalog, requested }) => {
        if (grantOrNothing(requested, catalog).length === 0) return;
        const { granted, narrowed } = ScopeCatalog.from(catalog).expand(requested);
        const expected = requested.filter(
          (scope) =>
            !scope.includes('*') &&
            !catalog.includes(scope) &&
            catalog.some((entry) => covers(entry, scope)),
        );
        expect(narrowed).toEqual([...new Set(expected)].sort());
        expect(granted).toEqual(expect.arrayContaining(narrowed));
      }),
      runs(),
    );
  });

  it('never grants less when more is requested or the catalog grows', () => {
    fc.assert(
      fc.property(
        wanted,
        fc.oneof(concreteScope, crossingEntry),
        ({ catalog, requested }, entry) => {
          const [first] = requested as [string];
          const less = ScopeSet.from(grantOrNothing([first], catalog));
          const more = grantOrNothing(requested, catalog);
          if (more.length > 0) expect(ScopeSet.from(more).missing(less)).toEqual([]);
          const later = grantOrNothing([first], [...catalog, entry]);
          expect(ScopeSet.from(later).missing(less)).toEqual([]);
        },
      ),
      runs(),
    );
  });

  it('grants for many patterns exactly their meets with the entries', () => {
    const entries = fc.array(concreteScope, { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(entries, fc.array(anyScope, { minLength: 1, maxLength: 12 }), (catalog, all) => {
        const patterns = all.filter((scope) => catalog.some((entry) => overlaps(scope, entry)));
        const open = patterns.filter((scope) => scope.includes('*'));
        if (open.length === 0) return;
        const meets = open.flatMap((scope) =>
          catalog.flatMap((entry) => meet(scope, entry)?.toString() ?? []),
        );
        expect(grant(open, catalog)).toEqual([...new Set(meets)].sort());
      }),
      runs(),
    );
  });

  it('does not depend on order or duplicates in either list', () => {
    fc.assert(
      fc.property(wanted, ({ catalog, requested }) => {
        const twice = grantOrNothing([...requested].reverse().concat(requested), [
          ...[...catalog].reverse(),
          ...catalog,
        ]);
        expect(twice).toEqual(grantOrNothing(requested, catalog));
      }),
      runs(),
    );
  });
});

describe('ScopeCatalog.attribute', () => {
  const catalog = ScopeCatalog.from([...SHOP, ...NESTED]);
  const nameOf = (method: string, domain: string, target: string): string | undefined =>
    catalog.attribute({ method, domain, target })?.toString();

  it.each([
    ['GET', 'd.example', '/a', 'GET:d.example/a'],
    ['GET', 'd.example', '/a/x', 'GET:d.example/a'],
    ['GET', 'd.example', '/a/b/', 'GET:d.example/a/b'],
    ['GET', 'd.example', '/a/%62/c?x', 'GET:d.example/a/b'],
    ['POST', 'd.example', '/a/b', 'POST:d.example/a/b'],
    ['POST', 'd.example', '/a', undefined],
    ['HEAD', 'd.example', '/a', undefined],
    ['GET', 'x.d.example', '/a', undefined],
    ['GET', 'd.example', '/', undefined],
    ['GET', 'd.example', '/a/../a', undefined],
    ['get', 'd.example', '/a', undefined],
  ])('names the entry of %s %s%s: %s', (method, domain, target, expected) => {
    expect(nameOf(method, domain, target)).toBe(expected);
  });

  it('names the entry of a request that was already read', () => {
    const reading = readRequest({ method: 'GET', domain: 'd.example', target: '/a/b' });

    expect(reading.ok && String(catalog.attribute(reading.request))).toBe('GET:d.example/a/b');
  });
});

describe('ScopeCatalog.knows', () => {
  it.each([
    ['GET:shop.example/orders', true],
    ['GET:shop.example/orders/7', true],
    ['GET:eu.shop.example/orders', true],
    ['*:*/*', true],
    ['*:*.shop.example/orders/open', true],
    ['GET:shop.example/order', false],
    ['PUT:*/*', false],
    ['GET:*.mail.example/*', false],
  ])('answers for %s: %s', (scope, expected) => {
    expect(ScopeCatalog.from(SHOP).knows(scope)).toBe(expected);
  });

  it('is true exactly if some entry has a meet with the scope', () => {
    fc.assert(
      fc.property(fc.array(concreteScope, { maxLength: 5 }), anyScope, (entries, scope) => {
        const isMet = entries.some((entry) => meet(entry, scope) !== null);
        expect(ScopeCatalog.from(entries).knows(scope)).toBe(isMet);
      }),
      runs(),
    );
  });
});

describe('ScopeCatalog.suggest', () => {
  const catalog = ScopeCatalog.from(SHOP);

  it.each([
    ['GET:shop.example/order', 'GET:shop.example/orders'],
    ['get:shop.example/orders', 'GET:shop.example/orders'],
    ['GET:shp.example/orders', 'GET:shop.example/orders'],
    ['POST:mail.example/feilds', 'POST:mail.example/fields'],
    ['*:mail.example/layuot', 'GET:mail.example/layout'],
  ])('lists first for %s the entry %s', (text, best) => {
    expect(catalog.suggest(text)[0]).toBe(best);
    expect(catalog.suggest(text).length).toBeLessThanOrEqual(3);
  });

  it.each([
    ['a text without the form of a scope', 'orders'],
    ['an empty text', ''],
    ['a scope without a path', 'GET:shop.example'],
    ['a text that only ends like a scope', 'x/GET:shop.example/orders'],
    ['1025 characters', `${'X'.repeat(1005)}:shop.example/orders`],
    ['a megabyte', `GET:shop.example/${'a'.repeat(1 << 20)}`],
    ['a number', 7],
    ['an array', ['GET:shop.example/order']],
  ])('returns nothing for %s', (_, text) => {
    expect(catalog.suggest(text as string)).toEqual([]);
  });

  it.each([
    ['1024 characters', SHOP, `${'X'.repeat(1004)}:shop.example/orders`, 'GET:shop.example/orders'],
    ['lower case', ['GET:d.example/ab', 'POST:d.example/a'], 'get:d.example/a', 'GET:d.example/ab'],
    ['upper case', ['GET:d.example/ab', 'GET:D/a'], 'GET:D.EXAMPLE/a', 'GET:d.example/ab'],
    ['63 edits', ['GET:d.example/a'], `GET:d.example/${'x'.repeat(63)}`, 'GET:d.example/a'],
    ['64 edits', ['GET:d.example/a'], `GET:d.example/${'x'.repeat(64)}`, undefined],
    ['61 edits and a method', ['GET:d/a'], `PUT:d/${'x'.repeat(61)}`, 'GET:d/a'],
    ['62 edits and a method', ['GET:d/a'], `PUT:d/${'x'.repeat(62)}`, undefined],
    ['63 edits of the host', ['GET:d/a'], `GET:${'x'.repeat(63)}/a`, 'GET:d/a'],
    ['64 edits of the host', ['GET:d/a'], `GET:${'x'.repeat(64)}/a`, undefined],
    ['a host pattern', ['GET:q.xy/abb', 'GET:xyz/a'], 'GET:*.xy/a', 'GET:xyz/a'],
  ])('finds for %s the nearest entry $3', (_, entries, text, best) => {
    expect(ScopeCatalog.from(entries).suggest(text)[0]).toBe(best);
  });

  it('returns the three entries with the smallest documented distance', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(concreteScope, { maxLength: 8 }),
        fc.oneof(anyScope, concreteScope),
        (entries, text) => {
          const distances = ScopeCatalog.from(entries)
            .suggest(text)
            .map((entry) => distance(text, entry));
          const all = entries.map((entry) => distance(text, entry)).filter((one) => one < 64);
          expect(distances).toEqual(all.sort((a, b) => a - b).slice(0, 3));
        },
      ),
      runs(),
    );
  });

  it('suggests only entries, each once', () => {
    fc.assert(
      fc.property(fc.oneof(anyScope, fc.string()), (text) => {
        const suggested = catalog.suggest(text);
        expect(SHOP).toEqual(expect.arrayContaining(suggested));
        expect(new Set(suggested).size).toBe(suggested.length);
      }),
      runs(),
    );
    expect(ScopeCatalog.from([]).suggest('GET:shop.example/orders')).toEqual([]);
  });
});

/** How far apart two scopes are, component by component, without any shortcut. */
function distance(asked: string, known: string): number {
  const a = parseScope(asked);
  const b = parseScope(known);
  const host = a.domain.startsWith('*.') ? a.domain.slice(2) : a.domain;
  return (
    (covers(`*:${a.domain}/*`, `*:${b.domain}/*`) ? 0 : edits(host, b.domain)) +
    (a.method === '*' || a.method === b.method ? 0 : 2) +
    (covers(`*:*/${a.path}`, `*:*/${b.path}`) ? 0 : edits(a.path, b.path))
  );
}

/** A plausible request from someone who knows an entry: the entry, more, less, or something else. */
function askFor(entry: string, how: number, other: string): string {
  const { method, domain, path } = parseScope(entry);
  const isClosed = path.endsWith('$');
  const segments = path === '$' ? [] : path.replace(/\$$/, '').split('/');
  const text = (all: readonly string[], end: string): string => {
    const joined = all.join('/');
    return joined === '' ? end || '*' : joined.endsWith('$') ? `${joined}$` : joined + end;
  };
  const asked = [
    entry,
    `${method}:${domain}/${text([...segments, 'fresh'], isClosed ? '$' : '')}`,
    `*:${domain}/${path}`,
    `${method}:*/${text([...segments, 'b'], '')}`,
    `*:*.${domain.split('.').slice(1).join('.') || domain}/*`,
    `${method}:${domain}/*`,
    `${method}:${domain}/${text(segments.slice(0, 1), '')}`,
    `${method}:${domain}/${text(segments, '$')}`,
    `${method}:${domain}/${text(
      segments.map((_, index) => (index % 2 === 0 ? '{}' : 'a')),
      isClosed ? '$' : '',
    )}`,
    `${method}:${domain}/${text(
      segments.map((segment) => (segment === '{}' ? 'b' : segment)),
      isClosed ? '$' : '',
    )}`,
  ][how];
  return asked ?? other;
}

function grantOrNothing(requested: readonly string[], catalog: readonly string[]): string[] {
  try {
    return grant(requested, catalog);
  } catch (error) {
    if (error instanceof ScopeError && error.code === 'scope_unmatched') return [];
    throw error;
  }
}
