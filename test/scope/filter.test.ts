import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scopeFilter } from '../../src/scope/filter.ts';
import { parseScope } from '../../src/scope/grammar.ts';
import { ScopeSet } from '../../src/scope/set.ts';
import { runs } from '../laws.ts';
import { anyScope, crossingScope, manyScopes, someScopes, threeScopes } from './support.ts';

const overlaps = (scope: string, held: readonly string[]): boolean =>
  scopeFilter(parseScope(scope), 'overlaps')(held);
const covers = (scope: string, held: readonly string[]): boolean =>
  scopeFilter(parseScope(scope), 'covers')(held);

describe('scopeFilter', () => {
  it.each<[string, string, overlaps: boolean, covers: boolean]>([
    ['GET:d.example/a', 'GET:d.example/a', true, true],
    ['GET:d.example/a', 'GET:d.example/a/b', true, false],
    ['GET:d.example/a/b', 'GET:d.example/a', true, true],
    ['GET:d.example/a', 'GET:d.example/ab', false, false],
    ['GET:d.example/ab', 'GET:d.example/a', false, false],
    ['GET:d.example/a', 'POST:d.example/a', false, false],
    ['GET:d.example/a', '*:d.example/a', true, true],
    ['*:d.example/a', 'GET:d.example/a', true, false],
    ['G:d.example/a', 'GET:d.example/a', false, false],
    ['GET:a.b/x', 'GET:*.b/x', true, true],
    ['GET:a.b/x', 'GET:c.b/x', false, false],
    ['GET:b/x', 'GET:*.b/x', false, false],
    ['GET:*.b/x', 'GET:b/x', false, false],
    ['GET:*.b/x', 'GET:a.b/x', true, false],
    ['GET:*.b/x', 'GET:ab/x', false, false],
    ['GET:*.b/x', 'GET:*.a.b/x', true, false],
    ['GET:*.a.b/x', 'GET:*.b/x', true, true],
    ['GET:*.b/x', 'GET:*/x', true, true],
    ['GET:*/x', 'GET:*.b/x', true, false],
    ['GET:d.example/*', 'GET:d.example/a', true, false],
    ['GET:d.example/a', 'GET:d.example/*', true, true],
    ['GET:d.example/a$', 'GET:d.example/a', true, true],
    ['GET:d.example/a', 'GET:d.example/a$', true, false],
    ['GET:d.example/a/b', 'GET:d.example/a$', false, false],
    ['GET:d.example/a$', 'GET:d.example/a/b$', false, false],
    ['GET:d.example/$', 'GET:d.example/*', true, true],
    ['GET:d.example/$', 'GET:d.example/{}', false, false],
    ['GET:d.example/{}', 'GET:d.example/a', true, false],
    ['GET:d.example/a', 'GET:d.example/{}', true, true],
    ['GET:d.example/a', 'GET:d.example/{}$', true, false],
    ['GET:d.example/{}/b', 'GET:d.example/a/{}', true, false],
    ['GET:d.example/{}/b', 'GET:d.example/a/c', false, false],
    ['GET:d.example/{}/b/c', 'GET:d.example/a/{}$', false, false],
    ['*:*/*', 'GET:d.example/a', true, false],
    ['*:*/*', '*:*/*', true, true],
    ['GET:d.example/a', 'GET:d.example/GET:d.example/a', false, false],
  ])('matches %s against the held scope %s', (scope, held, isOverlapped, isCovered) => {
    expect(overlaps(scope, [held])).toBe(isOverlapped);
    expect(covers(scope, [held])).toBe(isCovered);
    expect(overlaps(scope, ['PUT:none.example/z', held])).toBe(isOverlapped);
  });

  it('matches nothing in an empty list', () => {
    expect(overlaps('*:*/*', [])).toBe(false);
    expect(covers('*:*/*', [])).toBe(false);
    expect(scopeFilter(parseScope('*:*/*'), 'exact')([])).toBe(false);
  });

  it('matches with exact only the same scope, neither a wider nor a narrower one', () => {
    const isHeld = scopeFilter(parseScope('GET:d.example/a'), 'exact');

    expect(isHeld(['GET:d.example/b', 'GET:d.example/a'])).toBe(true);
    expect(isHeld(['GET:d.example/a/b', 'GET:d.example/*', '*:d.example/a'])).toBe(false);
  });

  it('matches with covers only if a single held scope covers all of a scope', () => {
    expect(covers('GET:*/*', ['GET:a.example/*', 'GET:*.example/*', '*:*/a'])).toBe(false);
  });

  it('agrees with ScopeSet for every list', () => {
    fc.assert(
      fc.property(manyScopes, anyScope, (held, scope) => {
        const set = ScopeSet.from(held);
        expect(overlaps(scope, held)).toBe(set.overlaps(scope));
        expect(covers(scope, held)).toBe(set.covers(scope));
      }),
      runs(),
    );
  });

  it('agrees with ScopeSet for scopes that cross', () => {
    const crossing = fc.array(crossingScope(), { maxLength: 8 });
    fc.assert(
      fc.property(crossing, crossingScope(), (held, scope) => {
        const set = ScopeSet.from(held);
        expect(overlaps(scope, held)).toBe(set.overlaps(scope));
        expect(covers(scope, held)).toBe(set.covers(scope));
      }),
      runs(),
    );
  });

  it('agrees with ScopeSet for scopes that cover one another', () => {
    fc.assert(
      fc.property(threeScopes, someScopes, (three, others) => {
        for (const scope of three) {
          for (const held of [...three.map((one) => [one]), others]) {
            expect(overlaps(scope, held)).toBe(ScopeSet.from(held).overlaps(scope));
            expect(covers(scope, held)).toBe(ScopeSet.from(held).covers(scope));
          }
        }
      }),
      runs(),
    );
  });

  it.each([
    ['an empty text', ''],
    ['a colon', ':'],
    ['a slash', '/'],
    ['no domain', 'GET:'],
    ['no path', 'GET:d.example'],
    ['an empty path', 'GET:d.example/'],
    ['a slash before the colon', '/GET:d.example'],
    ['an empty segment', 'GET:d.example/a//b'],
    ['a slash at the end', 'GET:d.example/a/'],
    ['lower case', 'get:d.example/a'],
    ['a wildcard in the path', 'GET:d.example/a/*'],
    ['a brace in a segment', 'GET:d.example/a/{}b'],
    ['a $ after a slash', 'GET:d.example/a/$'],
    ['9 segments {}', `GET:d.example${'/{}'.repeat(9)}`],
    ['a host with an empty label', 'GET:.example/a'],
  ])('does not match a held text that is not a scope: %s', (_, text) => {
    for (const scope of ['*:*/*', 'GET:d.example/a', '*:*.example/*', 'GET:d.example/a/b']) {
      expect(overlaps(scope, [text]), scope).toBe(false);
      expect(covers(scope, [text]), scope).toBe(false);
      expect(overlaps(scope, [text, scope])).toBe(true);
    }
  });

  it('matches no random text, and never throws', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), anyScope, (texts, scope) => {
        expect(overlaps(scope, texts)).toBe(false);
        expect(covers(scope, texts)).toBe(false);
      }),
      runs(),
    );
  });
});
