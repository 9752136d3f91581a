import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { covers, overlaps } from '../../src/scope/algebra.ts';
import { ScopeError } from '../../src/scope/errors.ts';
import { parseScope, type Scope } from '../../src/scope/grammar.ts';
import { removingScopes } from '../../src/scope/removal.ts';
import { atOnce } from '../../src/scope/steps.ts';

const removedNow = (...lists: Parameters<typeof removingScopes>) =>
  atOnce(removingScopes(...lists));

import { runs } from '../laws.ts';
import { anyScope, concreteScope, crossingScope, manyScopes, threeScopes } from './support.ts';

function remove(
  held: readonly string[],
  requested: readonly string[],
  removed: readonly string[],
): { kept: string[]; requested: string[]; unmatched: string[] } {
  const result = removedNow(held, requested, parseAll(removed));
  return { ...result, unmatched: result.unmatched.map(String) };
}

/** The definition, implemented by comparing all pairs. */
function removeEach(
  held: readonly string[],
  requested: readonly string[],
  removed: readonly string[],
): ReturnType<typeof remove> {
  const isKept = (scope: string): boolean => !removed.some((other) => covers(other, scope));
  const kept = held.filter(isKept);
  return {
    kept,
    requested: requested.filter((one) => isKept(one) && kept.some((other) => overlaps(one, other))),
    unmatched: removed.filter((scope) => {
      const isCovering = held.some((other) => covers(scope, other));
      return !isCovering || kept.some((other) => overlaps(scope, other));
    }),
  };
}

function parseAll(texts: readonly string[]): Scope[] {
  return texts.map((text) => parseScope(text));
}

describe('removeScopes', () => {
  const HELD = ['GET:d.example/a', 'GET:d.example/b', 'POST:d.example/a/c'];

  it.each<[readonly string[], readonly string[], readonly string[]]>([
    [[], HELD, []],
    [['GET:d.example/a'], ['GET:d.example/b', 'POST:d.example/a/c'], []],
    [['*:d.example/a'], ['GET:d.example/b'], []],
    [['*:*/*'], [], []],
    [['GET:d.example/a', 'GET:d.example/b'], ['POST:d.example/a/c'], []],
    [['GET:d.example/x'], HELD, ['GET:d.example/x']],
    [['GET:d.example/a/b'], HELD, ['GET:d.example/a/b']],
    [['*:d.example/a/c'], ['GET:d.example/a', 'GET:d.example/b'], ['*:d.example/a/c']],
    [
      ['GET:d.example/a', 'PUT:d.example/*'],
      ['GET:d.example/b', 'POST:d.example/a/c'],
      ['PUT:d.example/*'],
    ],
  ])('removes %j, keeps %j and reports %j as unmatched', (removed, kept, unmatched) => {
    expect(remove(HELD, [], removed)).toEqual({ kept, requested: [], unmatched });
  });

  const CLOSED = ['GET:d.example/a$', 'GET:d.example/a/{}$', 'GET:d.example/a/b$'];

  it.each<[readonly string[], readonly string[], readonly string[]]>([
    [['GET:d.example/a'], [], []],
    [['GET:d.example/a$'], ['GET:d.example/a/{}$', 'GET:d.example/a/b$'], []],
    [['GET:d.example/a/{}$'], ['GET:d.example/a$'], []],
    [['GET:d.example/{}/b$'], ['GET:d.example/a$', 'GET:d.example/a/{}$'], ['GET:d.example/{}/b$']],
    [['GET:d.example/a/b$'], ['GET:d.example/a$', 'GET:d.example/a/{}$'], ['GET:d.example/a/b$']],
    [['GET:d.example/a/c$'], CLOSED, ['GET:d.example/a/c$']],
    [['GET:d.example/a/b'], ['GET:d.example/a$', 'GET:d.example/a/{}$'], ['GET:d.example/a/b']],
    [['GET:d.example/{}/{}/{}'], CLOSED, ['GET:d.example/{}/{}/{}']],
  ])(
    'removes from closed scopes %j, keeps %j and reports %j as unmatched',
    (removed, kept, unmatched) => {
      expect(remove(CLOSED, [], removed)).toEqual({ kept, requested: [], unmatched });
    },
  );

  it.each<[readonly string[], readonly string[], readonly string[]]>([
    [['*:d.example/a'], ['GET:d.example/a'], ['*:d.example/a']],
    [['*:d.example/a'], ['*:d.example/a'], []],
    [['*:d.example/b'], ['GET:d.example/b'], []],
    [['GET:*/*'], ['GET:d.example/a'], ['GET:*/*']],
    [['GET:d.example/a/x', 'GET:d.example/b'], ['GET:d.example/a'], ['GET:d.example/b']],
    [['PUT:d.example/a'], [], []],
  ])('reduces the requested scopes %j, without %j, to %j', (requested, removed, expected) => {
    expect(remove(HELD, requested, removed).requested).toEqual(expected);
  });

  it('keeps the order and the duplicates of its lists', () => {
    const held = ['POST:d.example/a', 'GET:d.example/b', 'GET:d.example/a', 'GET:d.example/b'];

    expect(remove(held, held, ['GET:d.example/a'])).toEqual({
      kept: ['POST:d.example/a', 'GET:d.example/b', 'GET:d.example/b'],
      requested: ['POST:d.example/a', 'GET:d.example/b', 'GET:d.example/b'],
      unmatched: [],
    });
  });

  it('returns the unmatched Scope objects themselves', () => {
    const scope = parseScope('GET:d.example/x');

    expect(removedNow(HELD, [], [scope]).unmatched[0]).toBe(scope);
  });

  it('refuses a held or requested text that is not a scope', () => {
    expect(() => remove(['bad'], [], [])).toThrow(ScopeError);
    expect(() => remove([], ['bad'], [])).toThrow(ScopeError);
  });

  it('agrees with comparing all pairs', () => {
    fc.assert(
      fc.property(manyScopes, manyScopes, manyScopes, (held, requested, removed) => {
        expect(remove(held, requested, removed)).toEqual(removeEach(held, requested, removed));
      }),
      runs(),
    );
  });

  it('agrees with comparing all pairs of scopes that cross', () => {
    const crossing = fc.array(crossingScope(), { maxLength: 12 });
    fc.assert(
      fc.property(crossing, crossing, fc.array(crossingScope(), { maxLength: 4 }), (...all) => {
        expect(remove(...all)).toEqual(removeEach(...all));
      }),
      runs(),
    );
  });

  it('agrees with comparing all pairs of concrete scopes', () => {
    const held = fc.array(concreteScope, { maxLength: 12 });
    fc.assert(
      fc.property(held, manyScopes, fc.array(anyScope, { maxLength: 3 }), (all, asked, removed) => {
        expect(remove(all, asked, removed)).toEqual(removeEach(all, asked, removed));
      }),
      runs(),
    );
  });

  it('agrees with comparing all pairs of scopes that cover one another', () => {
    fc.assert(
      fc.property(threeScopes, threeScopes, ([a, b, c], [x, y, z]) => {
        expect(remove([c, x], [b, y], [a, z])).toEqual(removeEach([c, x], [b, y], [a, z]));
        expect(remove([a, x], [b, z], [c, y])).toEqual(removeEach([a, x], [b, z], [c, y]));
      }),
      runs(),
    );
  });
});
