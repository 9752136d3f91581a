import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { covers, overlaps } from '../../src/scope/algebra.ts';
import { FIRST_SEGMENT, parseScope, type Scope } from '../../src/scope/grammar.ts';
import { OverlapIndex, patternsOf } from '../../src/scope/overlap.ts';
import { runs } from '../laws.ts';
import { anyScope, crossingScope } from './support.ts';

const RELATIONS = {
  overlapping: overlaps,
  covering: covers,
  covered: (one: Scope, asked: Scope) => covers(asked, one),
  crossing: (one: Scope, asked: Scope) => overlaps(one, asked) && !covers(asked, one),
} as const;
const relations = fc.constantFrom('overlapping', 'covering', 'covered', 'crossing');

const scope = fc.oneof(anyScope, crossingScope()).map((text) => parseScope(text));
/** Up to 200 scopes, some of them repeated, so that the bit sets of some lists span several words. */
const lists = fc
  .tuple(fc.array(scope, { maxLength: 160 }), fc.array(fc.nat(), { maxLength: 40 }))
  .map(([all, again]) => [
    ...all,
    ...again.flatMap((which) => all[which % Math.max(1, all.length)] ?? []),
  ]);
/** Lists with scopes to look for: members of the list, and others. */
const wishes = fc
  .tuple(lists, fc.array(fc.tuple(fc.nat(), fc.boolean(), scope), { minLength: 1, maxLength: 5 }))
  .map(([all, picks]) => ({
    all,
    asked: picks.map(([which, isMember, other]) =>
      isMember ? (all[which % Math.max(1, all.length)] ?? other) : other,
    ),
  }));

function parseAll(...texts: readonly string[]): Scope[] {
  return texts.map((text) => parseScope(text));
}

function find(texts: readonly string[], relation: keyof typeof RELATIONS, asked: string): string[] {
  const index = new OverlapIndex(parseAll(...texts));
  return index.find(relation, patternsOf(parseScope(asked))).map(String);
}

describe('OverlapIndex.find', () => {
  const HELD = ['GET:d.example/a', 'GET:d.example/a$', 'GET:d.example/{}/b$', '*:*.example/*'];
  const [A, CLOSED, CROSSED, WIDE] = HELD as [string, string, string, string];

  it.each<[string, string[], string[], string[]]>([
    ['GET:d.example/a', [A, CLOSED, CROSSED, WIDE], [A, WIDE], [A, CLOSED]],
    ['GET:d.example/a$', [A, CLOSED, WIDE], [A, CLOSED, WIDE], [CLOSED]],
    ['GET:d.example/{}$', [A, CLOSED, WIDE], [WIDE], [CLOSED]],
    ['GET:d.example/{}', [A, CLOSED, CROSSED, WIDE], [WIDE], [A, CLOSED, CROSSED]],
    ['GET:d.example/a/b$', [A, CROSSED, WIDE], [A, CROSSED, WIDE], []],
    ['GET:d.example/a/b', [A, CROSSED, WIDE], [A, WIDE], []],
    ['GET:d.example/{}/{}$', [A, CROSSED, WIDE], [WIDE], [CROSSED]],
    ['GET:d.example/a/b/c$', [A, WIDE], [A, WIDE], []],
    ['GET:d.example/$', [WIDE], [WIDE], []],
    ['PUT:d.example/a', [WIDE], [WIDE], []],
    ['GET:example/a', [], [], []],
    ['*:*/*', HELD, [], HELD],
  ])('returns the scopes that overlap, cover and are covered by %s', (asked, all, outer, inner) => {
    expect(find(HELD, 'overlapping', asked)).toEqual(all);
    expect(find(HELD, 'covering', asked)).toEqual(outer);
    expect(find(HELD, 'covered', asked)).toEqual(inner);
    expect(find(HELD, 'crossing', asked)).toEqual(all.filter((one) => !inner.includes(one)));
  });

  it('returns the same scopes as comparing one by one, in the given order', () => {
    fc.assert(
      fc.property(wishes, relations, ({ all, asked }, relation) => {
        const index = new OverlapIndex(all);
        for (const one of asked) {
          const expected = all.filter((other) => RELATIONS[relation](other, one));
          expect(index.find(relation, patternsOf(one))).toEqual(expected);
          expect(index.find(relation, patternsOf(one), 1)).toEqual(expected.slice(0, 1));
        }
      }),
      runs(),
    );
  });

  it.each([
    [[0], ['GET:d.example/a/{}', 'GET:d.example/a/b']],
    [[1], ['GET:d.example/a/b', 'GET:d.example/{}/b']],
    [[0, 1], ['GET:d.example/a/b']],
    [[2], ['GET:d.example/a/{}', 'GET:d.example/a/b', 'GET:d.example/{}/b']],
  ])('does not match {} at a position that is named: %j', (positions, expected) => {
    const named = positions.reduce((bits, position) => bits | (FIRST_SEGMENT >>> position), 0);
    const index = new OverlapIndex(
      parseAll('GET:d.example/a/{}', 'GET:d.example/a/b', 'GET:d.example/{}/b'),
    );
    const asked = patternsOf(parseScope('GET:d.example/a/b$'));

    expect(index.find('covering', asked, Infinity, named).map(String)).toEqual(expected);
  });

  it('matches domain wildcards regardless of named segments', () => {
    const wide = ['GET:*/a', 'GET:*.example/a', '*:*.d.example/*'];
    const asked = patternsOf(parseScope('GET:x.d.example/a/b$'));

    expect(new OverlapIndex(parseAll(...wide)).find('covering', asked, 9, ~0).map(String)).toEqual(
      wide,
    );
  });

  it('finds nothing in an empty index', () => {
    for (const relation of ['overlapping', 'covering', 'covered'] as const) {
      expect(find([], relation, '*:*/*')).toEqual([]);
    }
  });

  it.each([1, 31, 32, 33, 63, 64, 65, 200])('finds each of %i scopes and no other', (count) => {
    const texts = Array.from({ length: count }, (_, i) => `GET:d.example/${i}$`);

    for (const text of texts) expect(find(texts, 'covered', text)).toEqual([text]);
    expect(find(texts, 'covered', `GET:d.example/${count}$`)).toEqual([]);
    expect(find(texts, 'covered', '*:*/*')).toEqual(texts);
  });
});

describe('the limit of OverlapIndex.find', () => {
  it('returns only the first matches', () => {
    const index = new OverlapIndex(parseAll(...Array.from({ length: 70 }, (_, i) => `GET:d/${i}`)));
    const every = patternsOf(parseScope('*:*/*'));

    for (const limit of [1, 32, 33, 69, 70, 71]) {
      expect(index.find('overlapping', every, limit)).toEqual(
        index.find('overlapping', every).slice(0, limit),
      );
    }
  });
});
