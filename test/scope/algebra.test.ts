import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { covers, meet, overlaps } from '../../src/scope/algebra.ts';
import { ScopeError } from '../../src/scope/errors.ts';
import { parseScope } from '../../src/scope/grammar.ts';
import { runs } from '../laws.ts';
import {
  allowAll,
  anyScope,
  crossingScope,
  denotes,
  type Point,
  threeScopes,
  universeOf,
} from './support.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'];

/** Outer and inner scope, whether outer covers inner, and their meet: null if they are disjoint. */
const pairs: readonly (readonly [string, string, boolean, string | null])[] = [
  ['GET:d.example/a', 'GET:d.example/a', true, 'GET:d.example/a'],
  ['*:*/*', '*:*/*', true, '*:*/*'],
  ['*:*/*', 'GET:d.example/a', true, 'GET:d.example/a'],
  ['GET:d.example/a', '*:*/*', false, 'GET:d.example/a'],

  ['*:d.example/a', 'FRESH:d.example/a', true, 'FRESH:d.example/a'],
  ['GET:d.example/a', '*:d.example/a', false, 'GET:d.example/a'],
  ['GET:d.example/a', 'HEAD:d.example/a', false, null],
  ['HEAD:d.example/a', 'GET:d.example/a', false, null],
  ['GET:d.example/a', 'GETS:d.example/a', false, null],
  ['CONSTRUCTOR:d.example/a', 'GET:d.example/a', false, null],

  ['GET:*/a', 'GET:d.example/a', true, 'GET:d.example/a'],
  ['GET:*/a', 'GET:*.example/a', true, 'GET:*.example/a'],
  ['GET:*.example/a', 'GET:*/a', false, 'GET:*.example/a'],
  ['GET:*.example/a', 'GET:d.example/a', true, 'GET:d.example/a'],
  ['GET:*.example/a', 'GET:b.a.d.example/a', true, 'GET:b.a.d.example/a'],
  ['GET:*.example/a', 'GET:example/a', false, null],
  ['GET:*.d.example/a', 'GET:d.example/a', false, null],
  ['GET:*.d.example/a', 'GET:xd.example/a', false, null],
  ['GET:*.d.example/a', 'GET:x-d.example/a', false, null],
  ['GET:*.d.example/a', 'GET:a.d.example.b/a', false, null],
  ['GET:*.d.example/a', 'GET:*.d.example/a', true, 'GET:*.d.example/a'],
  ['GET:*.example/a', 'GET:*.d.example/a', true, 'GET:*.d.example/a'],
  ['GET:*.d.example/a', 'GET:*.example/a', false, 'GET:*.d.example/a'],
  ['GET:*.d.example/a', 'GET:*.xd.example/a', false, null],
  ['GET:*.a.example/a', 'GET:*.b.example/a', false, null],
  ['GET:d.example/a', 'GET:d.example.b/a', false, null],
  ['GET:d.example/a', 'GET:a.d.example/a', false, null],
  ['GET:D.Example/a', 'GET:d.eXAMPLE/a', true, 'GET:d.example/a'],
  ['GET:constructor/a', 'GET:tostring/a', false, null],

  ['GET:d.example/*', 'GET:d.example/a', true, 'GET:d.example/a'],
  ['GET:d.example/a', 'GET:d.example/*', false, 'GET:d.example/a'],
  ['GET:d.example/a', 'GET:d.example/a/b', true, 'GET:d.example/a/b'],
  ['GET:d.example/a/b', 'GET:d.example/a', false, 'GET:d.example/a/b'],
  ['GET:d.example/a', 'GET:d.example/a/b/c/d', true, 'GET:d.example/a/b/c/d'],
  ['GET:d.example/a', 'GET:d.example/ab', false, null],
  ['GET:d.example/a', 'GET:d.example/a.json', false, null],
  ['GET:d.example/a', 'GET:d.example/a_b', false, null],
  ['GET:d.example/a/b', 'GET:d.example/a/bc', false, null],
  ['GET:d.example/a', 'GET:d.example/b/a', false, null],
  ['GET:d.example/a', 'GET:d.example/A', false, null],
  ['GET:d.example/:id', 'GET:d.example/7', false, null],
  ['GET:d.example/a.b', 'GET:d.example/axb', false, null],
  ['GET:d.example/__proto__', 'GET:d.example/__proto__/a', true, 'GET:d.example/__proto__/a'],

  ['GET:d.example/a', 'GET:d.example/a$', true, 'GET:d.example/a$'],
  ['GET:d.example/a$', 'GET:d.example/a', false, 'GET:d.example/a$'],
  ['GET:d.example/a$', 'GET:d.example/a$', true, 'GET:d.example/a$'],
  ['GET:d.example/a', 'GET:d.example/a/b$', true, 'GET:d.example/a/b$'],
  ['GET:d.example/a$', 'GET:d.example/a/b$', false, null],
  ['GET:d.example/a$', 'GET:d.example/a/b', false, null],
  ['GET:d.example/a/b$', 'GET:d.example/a', false, 'GET:d.example/a/b$'],
  ['GET:d.example/a$', 'GET:d.example/ab$', false, null],
  ['GET:d.example/a$', 'GET:d.example/a$$', false, null],
  ['GET:d.example/a', 'GET:d.example/a$$', false, null],
  ['GET:d.example/a$$', 'GET:d.example/a$/b', false, null],
  ['GET:d.example/a$b', 'GET:d.example/a$b/c', true, 'GET:d.example/a$b/c'],

  ['GET:d.example/*', 'GET:d.example/$', true, 'GET:d.example/$'],
  ['GET:d.example/$', 'GET:d.example/*', false, 'GET:d.example/$'],
  ['GET:d.example/$', 'GET:d.example/$', true, 'GET:d.example/$'],
  ['GET:d.example/$', 'GET:d.example/a', false, null],
  ['GET:d.example/$', 'GET:d.example/a$', false, null],
  ['GET:d.example/{}', 'GET:d.example/$', false, null],
  ['GET:d.example/{}$', 'GET:d.example/$', false, null],
  ['GET:d.example/$', 'GET:d.example/$$', false, null],
  ['GET:d.example/{}$', 'GET:d.example/$$', true, 'GET:d.example/$$'],

  ['GET:d.example/*', 'GET:d.example/{}', true, 'GET:d.example/{}'],
  ['GET:d.example/{}', 'GET:d.example/*', false, 'GET:d.example/{}'],
  ['GET:d.example/{}', 'GET:d.example/a', true, 'GET:d.example/a'],
  ['GET:d.example/a', 'GET:d.example/{}', false, 'GET:d.example/a'],
  ['GET:d.example/{}', 'GET:d.example/a/b', true, 'GET:d.example/a/b'],
  ['GET:d.example/{id}', 'GET:d.example/{}', true, 'GET:d.example/{}'],
  ['GET:d.example/{}$', 'GET:d.example/a$', true, 'GET:d.example/a$'],
  ['GET:d.example/{}$', 'GET:d.example/a', false, 'GET:d.example/a$'],
  ['GET:d.example/{}$', 'GET:d.example/a/b', false, null],
  ['GET:d.example/{}/b', 'GET:d.example/a/b', true, 'GET:d.example/a/b'],
  ['GET:d.example/{}/b', 'GET:d.example/a/c', false, null],
  ['GET:d.example/{}/b', 'GET:d.example/b', false, 'GET:d.example/b/b'],
  ['GET:d.example/{}/b', 'GET:d.example/b$', false, null],
  ['GET:d.example/a/{}', 'GET:d.example/a', false, 'GET:d.example/a/{}'],
  ['GET:d.example/a', 'GET:d.example/a/{}', true, 'GET:d.example/a/{}'],
  ['GET:d.example/a/{}', 'GET:d.example/ab/c', false, null],
  ['GET:d.example/a/{}', 'GET:d.example/{}/b', false, 'GET:d.example/a/b'],
  ['GET:d.example/a/{}$', 'GET:d.example/{}/b', false, 'GET:d.example/a/b$'],
  ['GET:d.example/a/{}$', 'GET:d.example/{}/b/c', false, null],
  ['GET:d.example/a/{}/c$', 'GET:d.example/{}/b', false, 'GET:d.example/a/b/c$'],
  ['GET:d.example/{}/{}/{}', 'GET:d.example/a/b', false, 'GET:d.example/a/b/{}'],
  ['GET:d.example/{}/a$$', 'GET:d.example/b/{}', false, 'GET:d.example/b/a$$'],
  ['GET:d.example/{}/a$/c', 'GET:d.example/b/{}', false, 'GET:d.example/b/a$/c'],
  ['*:d.example/{}/b', 'GET:*.example/a/{}$', false, 'GET:d.example/a/b$'],

  ['*:d.example/a', 'GET:*/*', false, 'GET:d.example/a'],
  ['*:d.example/a/b', 'GET:*.example/a', false, 'GET:d.example/a/b'],
  ['GET:*/a', '*:d.example/*', false, 'GET:d.example/a'],
  ['*:*.d.example/*', 'GET:*.example/a', false, 'GET:*.d.example/a'],
  ['GET:*/a', 'GET:d.example/b', false, null],
  ['GET:*/*', 'POST:*/*', false, null],
];

/** Random scopes, or scopes of which most cross or cover each other. */
const twoScopes = fc.oneof(
  fc.tuple(anyScope, anyScope),
  fc.tuple(crossingScope(), crossingScope()),
);

describe('covers', () => {
  it.each(pairs)('%s covers %s: %s', (outer, inner, expected) => {
    expect(covers(outer, inner)).toBe(expected);
    expect(covers(parseScope(outer), parseScope(inner))).toBe(expected);
  });

  it('refuses a text that is not a scope, on either side', () => {
    expect(() => covers('*:*/*', 'get:d.example/a')).toThrow(ScopeError);
    expect(() => covers('*', 'GET:d.example/a')).toThrow(ScopeError);
    expect(() => covers('*:*/*', '')).toThrow(ScopeError);
  });

  it('is a partial order with *:*/* on top', () => {
    let chains = 0;
    fc.assert(
      fc.property(threeScopes, ([a, b, c]) => {
        expect(covers(a, a)).toBe(true);
        expect(covers('*:*/*', a)).toBe(true);
        expect(covers(a, '*:*/*')).toBe(a === '*:*/*');
        if (covers(a, b) && covers(b, a)) expect(a).toBe(b);
        if (!covers(a, b) || !covers(b, c)) return;
        chains += 1;
        expect(covers(a, c)).toBe(true);
      }),
      runs(),
    );
    expect(chains).toBeGreaterThan(runs(0.1).numRuns);
  });

  it('is true for a meet and each scope it was made from', () => {
    fc.assert(
      fc.property(threeScopes, ([a, b, c]) => {
        const ab = meet(a, b);
        const abc = ab === null ? null : meet(ab, c);
        if (ab === null || abc === null) return;
        expect(covers(ab, abc)).toBe(true);
        expect(covers(a, abc)).toBe(true);
        expect(covers(b, abc)).toBe(true);
        expect(covers(c, abc)).toBe(true);
      }),
      runs(),
    );
  });

  it('is true exactly if the outer scope allows every request of the inner one', () => {
    fc.assert(
      fc.property(twoScopes, ([a, b]) => {
        const universe = universeOf([a, b]);
        const isSubset = universe.every((point) => denotes(a, point) || !denotes(b, point));
        expect(covers(a, b)).toBe(isSubset);
      }),
      runs(),
    );
  });

  it('is false for a wildcard method under any single method', () => {
    for (const method of METHODS) {
      expect(covers(`${method}:*/*`, '*:d.example/a')).toBe(false);
      expect(covers('*:d.example/a', `${method}:d.example/a`)).toBe(true);
    }
  });
});

describe('overlaps', () => {
  it.each(pairs)('%s overlaps %s exactly if they have a meet', (a, b, _, met) => {
    expect(overlaps(a, b)).toBe(met !== null);
    expect(overlaps(b, a)).toBe(met !== null);
  });

  it('is symmetric, follows from covers, and is true exactly if there is a meet', () => {
    fc.assert(
      fc.property(twoScopes, ([a, b]) => {
        expect(overlaps(a, b)).toBe(overlaps(b, a));
        expect(overlaps(a, b)).toBe(meet(a, b) !== null);
        if (covers(a, b)) expect(overlaps(a, b)).toBe(true);
      }),
      runs(),
    );
  });

  it('is true exactly if both scopes allow some request', () => {
    fc.assert(
      fc.property(twoScopes, ([a, b]) => {
        const universe = universeOf([a, b]);
        const isShared = universe.some((point) => denotes(a, point) && denotes(b, point));
        expect(overlaps(a, b)).toBe(isShared);
      }),
      runs(),
    );
  });

  it('refuses a text that is not a scope', () => {
    expect(() => overlaps('GET:d.example/a', 'GET:d.example/')).toThrow(ScopeError);
    expect(() => overlaps('GET:d.example/', 'GET:d.example/a')).toThrow(ScopeError);
  });
});

describe('meet', () => {
  it.each(pairs)('of %s and %s (covered: %s) is %s', (a, b, _, expected) => {
    expect(meet(a, b)?.toString() ?? null).toBe(expected);
    expect(meet(b, a)?.toString() ?? null).toBe(expected);
  });

  it('is commutative, associative and idempotent', () => {
    fc.assert(
      fc.property(threeScopes, ([a, b, c]) => {
        const text = (x: string | null, y: string | null): string | null =>
          x === null || y === null ? null : (meet(x, y)?.toString() ?? null);
        expect(text(a, b)).toBe(text(b, a));
        expect(text(text(a, b), c)).toBe(text(a, text(b, c)));
        expect(text(a, a)).toBe(a);
        expect(text(a, '*:*/*')).toBe(a);
      }),
      runs(),
    );
  });

  it('equals the inner scope exactly if the outer one covers it', () => {
    fc.assert(
      fc.property(twoScopes, ([a, b]) => {
        expect(meet(a, b)?.toString() === b).toBe(covers(a, b));
      }),
      runs(),
    );
  });

  it('allows exactly the requests that both allow, and parses', () => {
    fc.assert(
      fc.property(twoScopes, ([a, b]) => {
        const met = meet(a, b)?.toString();
        if (met !== undefined) expect(parseScope(met).toString()).toBe(met);
        const wrong = universeOf([a, b]).filter((point) => {
          const isShared = denotes(a, point) && denotes(b, point);
          return isShared !== (met !== undefined && denotes(met, point));
        });
        expect(wrong).toEqual([]);
      }),
      runs(),
    );
  });

  it('is the greatest scope below both', () => {
    let below = 0;
    fc.assert(
      fc.property(threeScopes, ([a, b, c]) => {
        if (!covers(a, c) || !covers(b, c)) return;
        below += 1;
        const met = meet(a, b);
        expect(met !== null && covers(met, c)).toBe(true);
      }),
      runs(),
    );
    expect(below).toBeGreaterThan(runs(0.2).numRuns);
  });

  it('leaves its arguments unchanged', () => {
    const a = parseScope('*:d.example/a');
    const b = parseScope('GET:*.example/a/b');

    expect(String(meet(a, b))).toBe('GET:d.example/a/b');
    expect([String(a), String(b)]).toEqual(['*:d.example/a', 'GET:*.example/a/b']);
  });
});

describe('all pairs of scopes in a small universe', () => {
  const paths = ['*', '$'];
  for (const length of [1, 2, 3]) {
    for (let bits = 0; bits < 2 ** length; bits++) {
      const segments = Array.from({ length }, (_, index) => ((bits >> index) & 1 ? '{}' : 'a'));
      paths.push(segments.join('/'), `${segments.join('/')}$`);
    }
  }
  const domains = ['*', '*.p', 'p', 'a.p', '*.a.p'];
  const scopes = ['*', 'GET'].flatMap((method) =>
    domains.flatMap((domain) => paths.map((path) => `${method}:${domain}/${path}`)),
  );
  /** Includes a method, labels and segments that no scope mentions, and paths longer than any scope. */
  const points = ['GET', 'FRESH'].flatMap((method) =>
    ['p', 'a.p', 'fresh.p', 'fresh.a.p', 'fresh'].flatMap((host) =>
      pathsOf(['a', 'fresh'], 4).map((segments): Point => ({ method, host, segments })),
    ),
  );
  const parsed = scopes.map((text) => parseScope(text));
  const requests = new Map(scopes.map((text) => [text, requestsOf(text, points)]));
  const denoted = (text: string): bigint => requests.get(text) ?? requestsOf(text, points);

  it('cover, overlap and meet as the requests they allow do', () => {
    for (const [index, a] of parsed.entries()) {
      const ofA = denoted(scopes[index] as string);
      const wrong = parsed.filter((b, other) => {
        const ofB = denoted(scopes[other] as string);
        const met = meet(a, b);
        return (
          covers(a, b) !== ((ofA & ofB) === ofB) ||
          overlaps(a, b) !== ((ofA & ofB) !== 0n) ||
          (met === null ? 0n : denoted(met.toString())) !== (ofA & ofB)
        );
      });
      expect(wrong.map(String), String(a)).toEqual([]);
    }
  });

  it('allow a scope only if one of them covers it, except that p$ and p/{} together allow p', () => {
    const some = paths.filter((path) => path.split('/').length < 3).map((path) => `GET:p/${path}`);
    let gaps = 0;
    for (const a of some) {
      for (const b of some) {
        const wrong = some.filter((scope) => {
          const isAllowed = (denoted(scope) & ~(denoted(a) | denoted(b))) === 0n;
          const isCovered = covers(a, scope) || covers(b, scope);
          if (isAllowed && !isCovered) gaps += 1;
          return allowAll([a, b], scope) !== isAllowed || (isCovered && !isAllowed);
        });
        expect(wrong, `${a} ${b}`).toEqual([]);
      }
    }
    // In both orders: `$` and `{}` allow `*`; `{}$` and `{}/{}` allow `{}`; each of `a$` and `{}$`
    // with each of `a/{}` and `{}/{}` allows `a`.
    expect(gaps).toBe(2 * (1 + 1 + 4));
  });
});

function pathsOf(segments: readonly string[], maxLength: number): string[][] {
  if (maxLength === 0) return [[]];
  const shorter = pathsOf(segments, maxLength - 1);
  const longest = shorter.filter((path) => path.length === maxLength - 1);
  return [...shorter, ...longest.flatMap((path) => segments.map((one) => [...path, one]))];
}

/** One bit for each request that a scope denotes. */
function requestsOf(scope: string, points: readonly Point[]): bigint {
  const bits = points.map((point) => (denotes(scope, point) ? '1' : '0')).join('');
  return BigInt(`0b${bits}`);
}
