import { describe, expect, it, vi } from 'vitest';
import { catalogDiff } from '../../src/openapi/index.ts';
import { scopeFilter } from '../../src/scope/filter.ts';
import { isScope } from '../../src/scope/grammar.ts';
import {
  covers,
  meet,
  overlaps,
  parseScope,
  readRequest,
  type Scope,
  ScopeCatalog,
  ScopeError,
  ScopeSet,
  safeParseScope,
} from '../../src/scope/index.ts';
import { editDistance } from '../../src/scope/nearest.ts';
import { removingScopes } from '../../src/scope/removal.ts';
import { atOnce } from '../../src/scope/steps.ts';

const removedNow = (...lists: Parameters<typeof removingScopes>) =>
  atOnce(removingScopes(...lists));

import {
  countingReads,
  FLAT,
  NEAR_LINEAR,
  SORTED,
  type Surface,
  slopeOf,
  slopeThrough,
} from '../growth.ts';

describe('slopeOf', () => {
  it('tells quadratic, linear and flat work apart', () => {
    const spin = (turns: number) => () => {
      let sum = 0;
      for (let i = 0; i < turns; i++) sum = (sum * 31 + i) | 0;
      return sum;
    };

    const sizes = [100, 200, 400, 800];
    expect(slopeOf((size) => spin(size * size), sizes)).toBeGreaterThan(1.7);
    expect(slopeOf((size) => spin(size * 100), sizes, NEAR_LINEAR)).toBeLessThan(NEAR_LINEAR);
    expect(slopeOf((size) => spin(size * 100), sizes)).toBeGreaterThan(0.7);
    expect(slopeOf(() => spin(100_000), sizes, FLAT)).toBeLessThan(FLAT);
  });

  it('detects the quadratic work of comparing all pairs, however cheap', () => {
    const naive: Surface = (size) => {
      const set = ScopeSet.from(listOf((i) => `GET:*/p${i}`, size));
      const other = [...ScopeSet.from(listOf((i) => `*:h${i}.example/q${i}`, size))];
      return () => [...set].flatMap((one) => other.flatMap((two) => meet(one, two) ?? []));
    };

    expect(slopeOf(naive, [125, 250, 500, 1000])).toBeGreaterThan(1.5);
  });
});

describe('the cost of a growing text', () => {
  const UP_TO_LIMIT = [125, 250, 500, 1000];

  it.each<[string, (size: number) => string]>([
    ['a long method', (size) => 'A'.repeat(size)],
    ['a method of hyphens', (size) => `${'-'.repeat(size)}:d.example/a`],
    ['a method of wildcards', (size) => `${'*'.repeat(size)}:d.example/a`],
    ['colons', (size) => `GET${':'.repeat(size)}`],
    ['a scheme', (size) => `GET:${'a'.repeat(size)}://`],
    ['no scheme', (size) => `GET:${'a+'.repeat(size / 2)}:/`],
    ['a long label', (size) => `GET:${'a'.repeat(size)}/a`],
    ['many labels', (size) => `GET:${'a.'.repeat(size / 4)}example/a`],
    ['a domain of dots', (size) => `GET:${'.'.repeat(size)}/a`],
    ['a domain of hyphens', (size) => `GET:a${'-'.repeat(size)}/a`],
    ['a numeric domain', (size) => `GET:${'0'.repeat(size / 5)}x/a`],
    ['a hexadecimal number', (size) => `GET:d.0x${'f'.repeat(size / 5)}g/a`],
    ['wildcard labels', (size) => `GET:${'*.'.repeat(size / 2)}/a`],
    ['a long path', (size) => `GET:d.example/${'a'.repeat(size / 2)}`],
    ['many segments', (size) => `GET:d.example/${'a/'.repeat(size / 2)}a`],
    ['empty segments', (size) => `GET:d.example/a${'/'.repeat(size)}`],
    ['segments of dots', (size) => `GET:d.example/a${'/..'.repeat(size / 3)}`],
    ['dots and one letter', (size) => `GET:d.example/${'.'.repeat(size / 2)}a`],
    ['percent signs', (size) => `GET:d.example/${'%'.repeat(size)}`],
    ['templates', (size) => `GET:d.example/${'{a}'.repeat(size / 3)}`],
    ['a path with an illegal character', (size) => `GET:d.example/${'a'.repeat(size)},`],
    ['wildcards at the end', (size) => `GET:d.example/a${'/*'.repeat(size / 2)}`],
    ['lower case that can be repaired', (size) => `get:d.example/${'a'.repeat(size / 2)}`],
    ['spaces', (size) => ' '.repeat(size)],
    ['control characters', (size) => '\n'.repeat(size)],
    ['letters beyond ASCII', (size) => `${'a'.repeat(size)}\u00e9`],
  ])('is linear when parsing %s', (_, make) => {
    const surface: Surface = (size) => {
      const text = make(size);
      return () => safeParseScope(text);
    };
    const slope = slopeOf(surface, UP_TO_LIMIT, NEAR_LINEAR);

    expect(slope).toBeLessThan(NEAR_LINEAR);
  });

  it.each<[string, (text: string) => unknown]>([
    ['parseScope', parseScope],
    ['covers', (text) => covers(text, text)],
    ['overlaps', (text) => overlaps(text, text)],
    ['meet', (text) => meet(text, text)],
  ])('is linear for %s', (_, run) => {
    const text = (size: number): string =>
      `GET:${'a.'.repeat(size / 8)}b/${'a/a'.repeat(size / 50)}`;

    expect(slopeOf((size) => () => run(text(size)), UP_TO_LIMIT, NEAR_LINEAR)).toBeLessThan(
      NEAR_LINEAR,
    );
  });

  it.each<[string, (text: string) => unknown]>([
    ['safeParseScope', safeParseScope],
    ['parseScope', (text) => codeOf(() => parseScope(text))],
    ['covers', (text) => codeOf(() => covers(text, text))],
    ['a method', (method) => readRequest({ method, domain: 'd.example', target: '/' })],
    ['a domain', (domain) => readRequest({ method: 'GET', domain, target: '/' })],
    ['a target', (target) => readRequest({ method: 'GET', domain: 'd.example', target })],
    ['ScopeSet.covers', (text) => codeOf(() => SMALL.covers(text))],
    ['ScopeSet.explain', (text) => codeOf(() => SMALL.explain(text))],
    ['expand', (text) => codeOf(() => CATALOG.expand([text]))],
    ['ScopeCatalog.from', (text) => codeOf(() => ScopeCatalog.from([text]))],
    ['suggest', (text) => CATALOG.suggest(text)],
  ])('does not grow beyond the length limit: %s', (_, run) => {
    for (const unit of ['A', '/a', '\u00e9', 'GET:d.example/']) {
      const surface: Surface = (size) => {
        const text = unit.repeat(size / unit.length);
        return () => run(text);
      };
      expect(slopeOf(surface, [1 << 14, 1 << 16, 1 << 18, 1 << 20], FLAT), unit).toBeLessThan(FLAT);
    }
  });
});

describe('the cost of a growing request', () => {
  const read = (request: object) => () =>
    readRequest({ method: 'GET', domain: 'd.example', target: '/a', ...request });

  it.each<[string, string, string?]>([
    ['a letter', 'a'],
    ['segments', 'a/'],
    ['slashes', '/', 'a'],
    ['dots', '.'],
    ['dots and then a letter', '.', 'a'],
    ['segments of dots', '../'],
    ['dots between letters', 'a.'],
    ['encoded letters', '%61'],
    ['encoded dots', '%2e'],
    ['encoded dots and then a letter', '%2e', 'a'],
    ['encoded spaces and then a letter', '%20', 'a'],
    ['dots and spaces and then a letter', '.%20', 'a'],
    ['encoded percents', '%25', 'a'],
    ['triplets encoded twice', '%2561'],
    ['percents', '%'],
    ['half triplets', '%2'],
    ['half a triplet at the end', '%61', '%6'],
    ['encoded slashes', '%2f'],
    ['encoded nulls', '%00'],
    ['semicolons', ';'],
    ['parameters', 'a;b=c/'],
    ['encoded semicolons', '%3b'],
    ['backslashes', '\\'],
    ['spaces', ' '],
    ['two-byte characters', '%c3%a9'],
    ['four-byte characters', '%f0%9f%98%80'],
    ['broken bytes', '%c3%a9', '%c3'],
    ['combining marks that must be reordered', '%cc%80%cc%96'],
    ['one letter and combining marks', 'a%cc%80%cc%96', 'a'],
    ['characters with a long compatible form', '%ef%b7%ba'],
    ['characters that stand for dots', '%e2%80%a5', 'a'],
    ['characters that stand for slashes', 'a/%ef%bc%8f'],
    ['letters beyond ASCII', '\u00e9'],
    ['lone surrogates', '\ud800'],
    ['a query', '?'],
    ['a query of arbitrary text', '?a/../%zz;'],
    ['a fragment', 'a', '#'],
    ['brackets', '[a]|'],
  ])('is linear for a target of %s', (_, unit, tail = '') => {
    const surface: Surface = (size) => {
      const units = unit.repeat(Math.floor((size - 10) / unit.length));
      return read({ target: `/x/${units}${tail}` });
    };

    expect(slopeOf(surface, [1024, 2048, 4096, 8192], NEAR_LINEAR)).toBeLessThan(NEAR_LINEAR);
  });

  it.each<[string, (size: number) => object]>([
    ['a host of labels', (size) => ({ domain: `${'a.'.repeat(size / 2 - 1)}-` })],
    ['a host of digits', (size) => ({ domain: '0'.repeat(size) })],
    ['a host of hyphens', (size) => ({ domain: '-'.repeat(size) })],
    ['a method', (size) => ({ method: 'A'.repeat(size) })],
    ['a method of hyphens', (size) => ({ method: `A${'-'.repeat(size)}A` })],
  ])('is linear for %s', (_, make) => {
    const slope = slopeOf((size) => read(make(size)), [32, 64, 128, 252], NEAR_LINEAR);

    expect(slope).toBeLessThan(NEAR_LINEAR);
  });

  it.each([
    ['in upper case', '/A'],
    ['encoded', '/%41'],
    ['of one segment', 'A'],
  ])('is linear for finding the routes of a long path %s', (_, unit) => {
    const catalog = ScopeCatalog.from(['GET:d.example/{}', 'GET:d.example/a/a', 'GET:d.example/a']);
    const surface: Surface = (size) => {
      const target = `/b${unit.repeat((size - 4) / unit.length)}/`;
      return () => {
        const reading = catalog.readRequest({ method: 'GET', domain: 'd.example', target });
        return reading.ok && SMALL.allows(reading.request);
      };
    };

    expect(slopeOf(surface, [1024, 2048, 4096, 8192], NEAR_LINEAR)).toBeLessThan(NEAR_LINEAR);
  });

  it('is linear for explaining a long path', () => {
    const surface: Surface = (size) => {
      const target = '/a'.repeat(size / 2);
      return () => SMALL.explain({ method: 'GET', domain: 'd.example', target });
    };

    expect(slopeOf(surface, [1024, 2048, 4096, 8192], NEAR_LINEAR)).toBeLessThan(NEAR_LINEAR);
  });
});

const name = (i: number): string =>
  [...String(i)].map((digit) => String.fromCharCode(65 + Number(digit))).join('');
const PREFIX = 'x/'.repeat(20);
const LABELS = 'a.'.repeat(20);

/** Lists that each stress one thing. Members are distinct unless the name says otherwise. */
const LISTS: Readonly<Record<string, (i: number) => string>> = {
  paths: (i) => `GET:d.example/a/b${i}`,
  hosts: (i) => `GET:h${i}.example/a`,
  methods: (i) => `${name(i)}:d.example/a`,
  'methods of every path': (i) => `${name(i)}:*/*`,
  'parents and hosts below': (i) => `GET:${i % 2 ? '*' : 'x'}.h${i >> 1}.example/a`,
  'paths below one another': (i) => `GET:d.example/p${i >> 4}${'/x'.repeat(i % 16)}`,
  'hosts below one another': (i) => `GET:${'x.'.repeat(i % 16)}h${i >> 4}.example/a`,
  'parents below one another': (i) => `GET:*.${'x.'.repeat(i % 16)}h${i >> 4}.example/a`,
  'paths that share a long prefix': (i) => `GET:d.example/${PREFIX}${i}`,
  'hosts of many labels': (i) => `GET:*.h${i}.${LABELS}example/a`,
  'wildcards of every kind': (i) =>
    [`*:h${i}.example/a`, `GET:*.h${i}.example/a`, `GET:*/p${i}`, `${name(i)}:d.example/*`][
      i % 4
    ] ?? '',
  'one scope over and over': () => 'GET:d.example/a',
};

const listOf = (make: (i: number) => string, size: number): string[] =>
  Array.from({ length: size }, (_, i) => make(i));

const SMALL = ScopeSet.from(listOf((i) => `GET:d.example/b${i}`, 10));
const CATALOG = ScopeCatalog.from(SMALL);

describe('the cost of a growing set', () => {
  const SIZES = [300, 600, 1200, 2400];

  it.each(Object.entries(LISTS))('grows no faster than sorting for %s', (_, make) => {
    const operations: Readonly<Record<string, Surface>> = {
      // The second set is shifted by half its size, so that each set has members that the other lacks.
      everything: (size) => {
        const texts = listOf(make, size);
        const others = listOf((i) => make(i + size / 2), size);
        let turn = 0;
        return () => {
          // Equal sets share their index, so each call builds a different one.
          turn += 1;
          const set = ScopeSet.from([...texts, `GET:turn${turn}.example/a`]);
          const other = ScopeSet.from(others);
          return [set.minimize(), set.union(other), set.missing(other), set.equals(other)];
        };
      },
      intersection: (size) => {
        const set = ScopeSet.from(listOf(make, size));
        const other = ScopeSet.from(listOf((i) => make(i + size / 2), size));
        return () => set.intersection(other);
      },
    };
    for (const [operation, surface] of Object.entries(operations)) {
      expect(slopeOf(surface, SIZES, SORTED), operation).toBeLessThan(SORTED);
    }
  });

  it.each<[string, (i: number) => string, (i: number) => string]>([
    ['with different methods', (i) => `${name(i)}:*/*`, (i) => `X${name(i)}:h${i}.example/a`],
    ['with different hosts', (i) => `GET:h${i}.example/*`, (i) => `*:x${i}.example/a`],
    ['with different paths', (i) => `GET:*/p${i}`, (i) => `*:h${i}.example/q${i}`],
    ['with different parents', (i) => `GET:*.h${i}.example/a`, (i) => `*:*.x${i}.example/a/b`],
    [
      'with different paths below one prefix',
      (i) => `*:d.example/a/p${i}`,
      (i) => `GET:*.example/a/q${i}`,
    ],
    ['that overlap in part', (i) => `*:h${i}.example/a/b`, (i) => `GET:h${i}.example/a`],
    [
      'with different host patterns',
      (i) => `*:h${i}.example/p${i}`,
      (i) => `GET:*.h${i}.example/p${i}`,
    ],
    [
      'of which one covers the other',
      (i) => `GET:*.h${i}.example/a`,
      (i) => `GET:x.h${i}.example/a/b`,
    ],
    ['of which one is a single scope', () => 'GET:*/*', (i) => `*:h${i}.example/a`],
    [
      'of which one has few distinct scopes',
      (i) => `${name(i % 9)}:*/*`,
      (i) => `*:h${i}.example/a`,
    ],
  ])('grows no faster than sorting for the intersection of two sets %s', (_, left, right) => {
    const surface: Surface = (size) => {
      const set = ScopeSet.from(listOf(left, size));
      const other = ScopeSet.from(listOf(right, size));
      return () => set.intersection(other);
    };

    expect(slopeOf(surface, SIZES, SORTED)).toBeLessThan(SORTED);
  });

  it.each<[string, (set: ScopeSet) => unknown]>([
    ['overlaps', (set) => set.overlaps('POST:none.example/z')],
    ['explain', (set) => set.explain('POST:none.example/z')],
    ['toArray', (set) => set.toArray()],
  ])('grows no faster than sorting for the method %s', (_, run) => {
    const surface: Surface = (size) => {
      const set = ScopeSet.from(listOf(LISTS['paths'] as () => string, size));
      return () => run(set);
    };

    expect(slopeOf(surface, SIZES, SORTED)).toBeLessThan(SORTED);
  });

  it('grows no faster than sorting for many sets that differ only in the end of their last text', () => {
    const surface: Surface = (size) => {
      const first = listOf((i) => `GET:d.example/${'a'.repeat(490)}${i}`, 36);
      const lists = listOf((i) => `GET:d.example/z${10_000 + i}`, size).map((last) => [
        ...first,
        last,
      ]);
      return () => {
        const alive = lists.map((list) => ScopeSet.from(list));
        for (const set of alive) set.covers('GET:d.example/b');
        return alive;
      };
    };

    expect(slopeOf(surface, [50, 100, 200, 400], SORTED)).toBeLessThan(SORTED);
  });

  it.each(Object.entries(LISTS).filter(([kind]) => kind !== 'one scope over and over'))(
    'stays flat for a single query: %s',
    (_, make) => {
      const reading = readRequest({ method: 'GET', domain: 'x.h1.example', target: '/a/b7/c' });
      if (!reading.ok) throw new Error(reading.reason);
      const surface: Surface = (size) => {
        const set = ScopeSet.from(listOf(make, size));
        return () => [
          set.allows({ method: 'GET', domain: 'x.h1.example', target: '/a/b7/c' }),
          set.allows(reading.request),
          set.covers('*:d.example/a/b9/c'),
          set.covers('GET:h7.example/a'),
        ];
      };

      expect(slopeOf(surface, [100, 1000, 10_000], FLAT)).toBeLessThan(FLAT);
    },
  );
});

describe('the cost of a growing catalog', () => {
  const SIZES = [512, 1024, 2048, 4096];
  const concrete = Object.entries(LISTS).filter(
    ([, make]) => !listOf(make, 4).join().includes('*'),
  );

  it.each(concrete)(
    'grows no faster than sorting in from, lint, suggest and expand: %s',
    (_, make) => {
      const operations: Readonly<Record<string, Surface>> = {
        from: (size) => {
          const texts = listOf(make, size);
          return () => ScopeCatalog.from(texts);
        },
        lint: (size) => {
          const catalog = ScopeCatalog.from(listOf(make, size));
          return () => catalog.lint();
        },
        suggest: (size) => {
          const catalog = ScopeCatalog.from(listOf(make, size));
          return () => catalog.suggest('PSOT:h17.exmaple/a/b71');
        },
        expand: (size) => {
          const catalog = ScopeCatalog.from(listOf(make, size));
          return () => catalog.expand(['*:*/*', '*:*.example/*']);
        },
      };
      for (const [operation, surface] of Object.entries(operations)) {
        if (operation === 'expand' && make(0) === make(1)) continue;
        expect(slopeOf(surface, SIZES, SORTED), operation).toBeLessThan(SORTED);
      }
    },
  );

  it.each<[string, (i: number) => string, (i: number) => string]>([
    ['entries themselves', (i) => `GET:h${i}.example/a`, (i) => `GET:h${i}.example/a`],
    ['scopes below entries', (i) => `GET:h${i}.example/a`, (i) => `GET:h${i}.example/a/b`],
    ['scopes below one entry', () => 'GET:d.example/a', (i) => `GET:d.example/a/b${i}`],
    ['every method of a host', (i) => `GET:h${i}.example/a`, (i) => `*:h${i}.example/*`],
    ['hosts below', (i) => `GET:x.h${i}.example/a`, (i) => `GET:*.h${i}.example/a`],
    ['paths on every host', (i) => `GET:h${i}.example/p${i}`, (i) => `GET:*/p${i}`],
    ['paths above', (i) => `GET:h${i % 9}.example/a/p${i}`, (i) => `*:*/a/p${i}`],
    ['paths of every host, one path', (i) => `GET:d.example/p${i}`, (i) => `*:*/p${i}`],
    ['wildcards that meet nothing', (i) => `GET:h${i}.example/a`, (i) => `GET:*/q${i}`],
    ['methods of no entry', (i) => `GET:h${i}.example/a`, (i) => `X${name(i)}:*/*`],
    ['deeper wildcards that meet nothing', (i) => `GET:h${i}.example/a/b`, (i) => `*:*/a/c${i}`],
    ['parents of no host', (i) => `GET:h${i}.example/a`, (i) => `*:*.h${i}.example/a`],
    ['scopes that meet nothing', (i) => `GET:h${i}.example/a`, (i) => `GET:x${i}.example/a`],
    ['long scopes that meet nothing', (i) => `GET:h${i}.example/a`, (i) => `GET:d/${PREFIX}${i}`],
    ['scopes that do not parse', (i) => `GET:h${i}.example/a`, (i) => `get:h${i}.example/a`],
    ['the same wildcard', (i) => `GET:h${i}.example/a`, () => '*:*/*'],
    ['more than can be granted', (i) => `GET:h${i}.example/a`, (i) => `GET:*/a/b${i}`],
    [
      'more than can be granted, crosswise',
      (i) => `GET:h${i}.example/a`,
      (i) => `GET:*.example/a/b${i}`,
    ],
  ])('grows no faster than sorting in expand if the request grows too: %s', (_, entry, member) => {
    const surface: Surface = (size) => {
      const catalog = ScopeCatalog.from(listOf(entry, size));
      const requested = listOf(member, size);
      return () => codeOf(() => catalog.expand(requested));
    };

    expect(slopeOf(surface, SIZES, SORTED)).toBeLessThan(SORTED);
  });

  it('is bounded in expand, which reads at most 4097 members', () => {
    const readsOf = (size: number): number => {
      const { list, reads } = countingReads(listOf((i) => `GET:d.example/a${i}`, size));
      expect(codeOf(() => CATALOG.expand(list))).toBe('too_many_scopes');
      return reads();
    };

    expect([10_000, 40_000, 160_000].map(readsOf)).toEqual([4097, 4097, 4097]);
  });

  it('is linear in suggest if the text grows', () => {
    const catalog = ScopeCatalog.from(listOf((i) => `GET:h${i}.example/${PREFIX}${i}`, 50));
    for (const unit of ['a', 'x/', 'h1.', '*', ':']) {
      const surface: Surface = (size) => {
        const text = `GET:h1.exmaple/${unit.repeat((size - 20) / unit.length)}`;
        return () => catalog.suggest(text);
      };
      expect(slopeOf(surface, [128, 256, 512, 1024], NEAR_LINEAR), unit).toBeLessThan(NEAR_LINEAR);
    }
  });

  it('is flat in attribute, and grows no faster than sorting in knows', () => {
    const attribute: Surface = (size) => {
      const catalog = ScopeCatalog.from(listOf(LISTS['paths'] as () => string, size));
      return () => catalog.attribute({ method: 'GET', domain: 'd.example', target: '/a/b7/c' });
    };
    const knows: Surface = (size) => {
      const catalog = ScopeCatalog.from(listOf(LISTS['paths'] as () => string, size));
      return () => catalog.knows('POST:*/*');
    };

    expect(slopeOf(attribute, [100, 1000, 10_000], FLAT)).toBeLessThan(FLAT);
    expect(slopeOf(knows, SIZES, SORTED)).toBeLessThan(SORTED);
  });
});

/** Deep scopes: each inner one is covered by most of the outer ones. */
const DEEP_HOST = `${'x.'.repeat(120)}x`;
const deepInner = (i: number): string => `GET:${'x.'.repeat(115)}y${i}/${'a/'.repeat(30)}b${i}`;
const deepOuter = (i: number): string =>
  `GET:*.${DEEP_HOST.slice(0, 2 * (i % 120) + 1)}/a${'/a'.repeat((i / 120) % 31)}`;

describe('the cost of removing growing lists of scopes', () => {
  const SIZES = [300, 600, 1200, 2400];

  /** The naive way, which compares all pairs. */
  const removeEach = (
    held: readonly string[],
    removed: readonly Scope[],
  ): { readonly kept: string[]; readonly unmatched: Scope[] } => ({
    kept: held.filter((scope) => !removed.some((other) => covers(other, scope))),
    unmatched: removed.filter((scope) => {
      const touched = held.filter((other) => overlaps(scope, other));
      return touched.length === 0 || !touched.every((other) => covers(scope, other));
    }),
  });

  it('is measured as quadratic if all pairs are compared (the control)', () => {
    const surface: Surface = (size) => {
      const held = listOf((i) => `GET:d.example/a${i}`, size);
      const removed = held.slice(1).map((text) => parseScope(text));
      return () => removeEach(held, removed);
    };

    expect(slopeOf(surface, [32, 64, 128, 256])).toBeGreaterThan(1.5);
  });

  it.each<[string, (i: number) => string, (i: number) => string]>([
    ['all but one', (i) => `GET:d.example/a${i}`, (i) => `GET:d.example/a${i + 1}`],
    ['each by a pattern', (i) => `GET:h${i}.example/a`, (i) => `*:h${i}.example/*`],
    ['all by one', (i) => `GET:h${i}.example/a`, () => '*:*/*'],
    ['nothing', (i) => `GET:h${i}.example/a`, (i) => `GET:x${i}.example/a`],
    ['half of each', (i) => `GET:h${i}.example/a`, (i) => `*:h${i}.example/a/b`],
    [
      'crosswise, with the largest possible number of pairs',
      (i) => `GET:h${i}.example/*`,
      (i) => `GET:*/p${i}`,
    ],
    ['methods', (i) => `${name(i)}:d.example/a`, (i) => `${name(i)}:*/*`],
    ['deep scopes', deepInner, deepOuter],
  ])('grows no faster than sorting when removing %s', (_, make, remove) => {
    const surface: Surface = (size) => {
      const held = listOf(make, size);
      const removed = [...new Set(listOf(remove, size))].map((text) => parseScope(text));
      const requested = listOf((i) => remove(i + size / 2), size);
      return () => removedNow(held, requested, removed);
    };

    expect(slopeOf(surface, SIZES, SORTED)).toBeLessThan(SORTED);
  });

  it.each<[string, (left: ScopeSet, right: ScopeSet) => unknown]>([
    ['minimize', (left, right) => [left.minimize(), right.minimize()]],
    ['missing', (left, right) => [left.missing(right), right.missing(left)]],
    ['diff', (left, right) => left.diff(right)],
    ['intersection', (left, right) => left.intersection(right)],
  ])('grows no faster than sorting in %s of deep scopes', (_, run) => {
    const surface: Surface = (size) => {
      const left = ScopeSet.from(listOf(deepInner, size));
      const right = ScopeSet.from(listOf(deepOuter, size));
      return () => run(left, right);
    };

    expect(slopeOf(surface, SIZES, SORTED)).toBeLessThan(SORTED);
  });
});

describe('the cost of searching growing lists', () => {
  const isOverlapped = scopeFilter(parseScope('GET:api1.shop.example/zzz'), 'overlaps');
  const held = (size: number): string[] =>
    listOf((i) => `GET:api${i % 7}.shop.example/v1/${i}`, size);

  const readsOf = (
    texts: readonly string[],
    look: (list: readonly string[]) => unknown,
  ): number => {
    const { list, reads } = countingReads(texts);
    look(list);
    return reads();
  };

  it.each([1000, 4000, 16_000])('is one read for each of %i texts', (size) => {
    expect(readsOf(held(size), isOverlapped)).toBe(size);
  });

  it.each([1000, 4000, 16_000])(
    'is a single read if the first of more than %i texts matches',
    (size) => {
      const texts = ['GET:api1.shop.example/zzz', ...held(size)];

      expect(readsOf(texts, isOverlapped)).toBe(1);
    },
  );

  it('is a read for each text if the list is parsed first (the control)', () => {
    const texts = ['GET:api1.shop.example/zzz', ...held(1000)];
    const parse = (list: readonly string[]) => ScopeSet.from(list).overlaps(texts[0] as string);

    expect(readsOf(texts, parse)).toBeGreaterThanOrEqual(texts.length);
  });

  it('is linear in the length of the texts', () => {
    const surface: Surface = (size) => {
      const texts = listOf((i) => `GET:api1.shop.example/${'v1/'.repeat(size / 3)}${i}`, 100);
      return () => isOverlapped(texts);
    };

    expect(slopeOf(surface, [60, 120, 240, 480], NEAR_LINEAR)).toBeLessThan(NEAR_LINEAR);
  });
});

/**
 * A catalog that counts how often a property of an entry is read. Timing would not do here: memory
 * that outgrows the caches looks like work that grows.
 */
function countingCatalog(make: (i: number) => string, size: number) {
  let reads = 0;
  const PARTS = Symbol('parts');
  // All scopes share these descriptors; separate ones would make building a catalog take seconds.
  const counting = (part: 'method' | 'domain' | 'path' | 'toString'): PropertyDescriptor => ({
    get(this: { readonly [PARTS]: Pick<Scope, typeof part> }) {
      reads += 1;
      return this[PARTS][part];
    },
  });
  const properties = {
    method: counting('method'),
    domain: counting('domain'),
    path: counting('path'),
    toString: counting('toString'),
  };
  const count = (made: unknown): void => {
    if (!isScope(made)) return;
    Object.defineProperty(made, PARTS, { value: { ...made, toString: made.toString } });
    Object.defineProperties(made, properties);
  };
  // A scope is frozen when it is made, so this is the last moment to replace its properties.
  const freeze = vi.spyOn(Object, 'freeze').mockImplementation((made) => {
    count(made);
    return made as Readonly<unknown>;
  });
  const catalog = ScopeCatalog.from(listOf(make, size));
  freeze.mockRestore();
  const readsOf = (run: (catalog: ScopeCatalog) => unknown): number => {
    reads = 0;
    run(catalog);
    return reads;
  };
  return { readsOf };
}

/** How the reads grow with a catalog: 0 if they do not, 1 if every entry is read. */
function slopeOfReads(
  sizes: readonly number[],
  make: (i: number) => string,
  run: (catalog: ScopeCatalog) => unknown,
): number {
  return slopeThrough(sizes.map((size) => [size, 1 + countingCatalog(make, size).readsOf(run)]));
}

describe('the cost of correcting a request with a growing catalog', () => {
  /** Large enough that the budget ends a search. */
  const SIZES = [40_000, 100_000];
  const long = 'abcdefgh'.repeat(55);
  const entry = (i: number): string => `GET:d.example/v1/${i}/items`;

  it.each<[string, (catalog: ScopeCatalog) => unknown]>([
    ['methods', (catalog) => [...catalog].filter(({ method }) => method === 'PUT')],
    ['domains', (catalog) => [...catalog].filter(({ domain }) => domain === 'x')],
    ['paths', (catalog) => [...catalog].map(({ path }) => editDistance('v1/77', path, 9))],
    ['texts', (catalog) => [...catalog].map(String)],
  ])('is measured as linear if a search reads each entry: %s (the control)', (_, run) => {
    expect(slopeOfReads([250, 1000, 4000], entry, run)).toBeGreaterThan(0.9);
  });

  it.each<[string, (i: number) => string, string]>([
    ['a misspelled segment', entry, 'GET:d.example/v1/77/itmes'],
    ['a misspelled host', (i) => `GET:h${i % 20}.example/v1/${i}`, 'GET:h1.exmaple/v1/77'],
    ['a misspelled host among very many', (i) => `GET:h${i}.example/v1`, 'GET:h1.exmaple/v1'],
    ['another method', (i) => `GET:d.example/v1/${i}`, 'PUT:d.example/v1/77'],
    ['nothing alike', (i) => `GET:d.example/v1/${i}`, `GET:none.test/${'q'.repeat(300)}`],
    ['long paths', (i) => `GET:d.example/${long}${i}`, `GET:d.example/x${long}y`],
    [
      'long paths that differ at the start',
      (i) => `GET:d.example/${i}${long}`,
      `GET:d.example/x${long}`,
    ],
  ])('stays flat for %s', (_, make, asked) => {
    const requested = [1, 2, 3, 4, 5, 6].map((i) => asked + i);
    const slope = slopeOfReads(SIZES, make, (catalog) => {
      expect(codeOf(() => catalog.expand(requested))).toBe('scope_unmatched');
      catalog.suggest(asked);
    });

    expect(slope).toBeLessThan(FLAT);
  });

  it.each<[string, string, string]>([
    ['nothing alike', 'a'.repeat(400), 'b'.repeat(400)],
    ['a long beginning', `${long}a`, `${long}bcd`],
    ['a long end', `a${long}`, `bcd${long}`],
    ['letters that lie apart', 'ab'.repeat(200), 'ba'.repeat(200)],
    ['lengths that lie apart', 'a', 'a'.repeat(400)],
  ])('is charged to the budget for the characters that a comparison reads: %s', (_, one, other) => {
    const [a, b] = [countingUnits(one), countingUnits(other)];
    const budget = { left: 600_000 };

    editDistance(a.text, b.text, 64, budget);

    const spent = 600_000 - budget.left;
    expect(a.reads() + b.reads()).toBeLessThanOrEqual(3 * spent + 4);
  });

  it('stays flat for looking up an exact scope', () => {
    const slope = slopeOfReads([2500, 5000, 10_000], entry, (catalog) => {
      catalog.knows('GET:d.example/v1/77');
      catalog.knows('PUT:d.example/v1/77');
    });

    expect(slope).toBeLessThan(FLAT);
  });
});

describe('the difference of two catalogs', () => {
  /** Leaves room for sorting and for memory that outgrows the caches; quadratic work is near 2. */
  const MAX_SLOPE = 1.6;

  it('costs about twice as much for twice the entries and twice the tokens', () => {
    const surface: Surface = (count) => {
      const list = (from: number) =>
        Array.from({ length: count }, (_, i) => `GET:h${i % 7}.shop.example/v1/p${from + i}`);
      const [before, after] = [list(0), list(count / 10)];
      const at = (i: number) => before[i % count] ?? '';
      const tokens = Array.from({ length: count }, (_, i) => ({
        id: 't',
        scopes: [at(i), at(i * 7 + 1), at(i * 31 + 5)],
        requested: [at(i), `*:*.shop.example/v1/p${i * 3}`],
      }));
      return () => catalogDiff(before, after, { tokens });
    };

    expect(slopeOf(surface, [3000, 12_000], MAX_SLOPE)).toBeLessThan(MAX_SLOPE);
  });
});

/** A text that counts how often one of its characters is read. */
function countingUnits(text: string): { readonly text: string; readonly reads: () => number } {
  const { list, reads } = countingReads([...text]);
  const charCodeAt = (i: number) => (list[i] as string).charCodeAt(0);
  const counting: unknown = new Proxy(list, {
    get: (target, key) => (key === 'charCodeAt' ? charCodeAt : Reflect.get(target, key)),
  });
  return { text: counting as string, reads };
}

function codeOf(action: () => unknown): string {
  try {
    return typeof action();
  } catch (error) {
    if (error instanceof ScopeError) return error.code;
    throw error;
  }
}
