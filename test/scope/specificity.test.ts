import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { covers } from '../../src/scope/algebra.ts';
import { ScopeCatalog } from '../../src/scope/catalog.ts';
import { candidatesFor } from '../../src/scope/filter.ts';
import { parseScope } from '../../src/scope/grammar.ts';
import type { ReadRequest } from '../../src/scope/request.ts';
import { ScopeSet } from '../../src/scope/set.ts';
import { runs } from '../laws.ts';
import {
  asRequest,
  crossingEntry,
  crossingPoint,
  crossingScope,
  denotes,
  type Point,
} from './support.ts';

/** Negative if `a` ranks first, by the definition in section 3 of the scope specification. */
function compare(a: string, b: string): number {
  const [left, right] = [rankedBy(a), rankedBy(b)];
  const yes = (isSo: boolean): number => (isSo ? 0 : 1);
  return (
    // The longest path; then a closed one before an open one;
    right.segments.length - left.segments.length ||
    yes(left.isClosed) - yes(right.isClosed) ||
    // then, segment by segment from the left, a literal before `{}`;
    left.segments
      .map((segment, index) => yes(segment !== '{}') - yes(right.segments[index] !== '{}'))
      .find((one) => one !== 0) ||
    // then exact host; then the longest parent; then exact method.
    yes(!left.domain.startsWith('*')) - yes(!right.domain.startsWith('*')) ||
    right.domain.length - left.domain.length ||
    yes(left.method !== '*') - yes(right.method !== '*')
  );
}

function rankedBy(text: string) {
  const { method, domain, path } = parseScope(text);
  const segments = path === '*' || path === '$' ? [] : path.replace(/\$$/, '').split('/');
  return { method, domain, isClosed: path.endsWith('$'), segments };
}

function first(scopes: readonly string[]): string | undefined {
  return [...scopes].sort(compare)[0];
}

/** The most specific entry that matches a request. */
function entryOf(catalog: readonly string[], point: Point): string | undefined {
  return first(catalog.filter((entry) => denotes(entry, point)));
}

/**
 * The entries to which servers may take a request, the most specific first: all that match it,
 * without those that cover another one of them.
 */
function rivals(catalog: readonly string[], point: Point): string[] {
  const matching = catalog.filter((entry) => denotes(entry, point));
  const isBest = (entry: string) =>
    !matching.some((other) => other !== entry && covers(entry, other));
  return [...new Set(matching.filter(isBest))].sort(compare);
}

/** The positions of the literal segments in an entry. */
function namedIn(entry: string): number[] {
  const { path } = parseScope(entry);
  return path.split('/').flatMap((segment, index) => (segment.startsWith('{}') ? [] : [index]));
}

/** The grant for the most specific entry, if there is one for each entry of the request. */
function grantOf(
  members: readonly string[],
  catalog: readonly string[],
  point: Point,
): string | undefined {
  const own = rivals(catalog, point);
  // A server may read the slash of the root as an empty segment, unless the root is an entry.
  const below = { ...point, segments: [''] };
  const others = point.segments.length === 0 && own.length === 0 ? rivals(catalog, below) : [];
  const grants = [
    ...(own.length === 0 ? [[]] : own.map(namedIn)).map((named) => ({ point, named })),
    ...others.map((entry) => ({ point: below, named: namedIn(entry) })),
  ].map((one) => first(members.filter((member) => denotes(member, one.point, one.named))));
  return grants.includes(undefined) ? undefined : grants[0];
}

function byOf(set: ScopeSet, request: Parameters<ScopeSet['allows']>[0]): string | undefined {
  const decision = set.allows(request);
  return decision.allowed ? String(decision.by) : undefined;
}

function readBy(catalog: ScopeCatalog, point: Point): ReadRequest {
  const reading = catalog.readRequest(asRequest(point));
  if (reading.ok) return reading.request;
  throw new Error(reading.reason);
}

/** All paths of `a` and `{}` up to a length, open and closed: as many shapes as there are paths. */
function allPaths(length: number): string[] {
  const paths: string[] = ['$'];
  let longest = [''];
  for (let depth = 0; depth < length; depth++) {
    longest = longest.flatMap((path) => ['a', '{}'].map((one) => (path ? `${path}/${one}` : one)));
    paths.push(...longest, ...longest.map((path) => `${path}$`));
  }
  return paths;
}

const few = fc.array(crossingScope(), { maxLength: 12 });
const many = fc
  .tuple(fc.subarray(allPaths(8), { minLength: 250 }), fc.infiniteStream(fc.nat(9)), few)
  .map(([paths, stream, more]) => {
    const scopeOf = (path: string): string => {
      const how = stream.next().value;
      return `${how % 2 ? '*' : 'GET'}:${how < 3 ? '*.example' : 'd.example'}/${path}`;
    };
    return [...paths, ...paths.slice(0, 50)].map(scopeOf).concat(more);
  });
/** For cases that build hundreds of scopes each. */
const FEW = 0.1;
/** How many cases have to be interesting; of few cases, none. */
const fiftiethOf = (weight: number): number => Math.floor(runs(weight).numRuns / 50);
const catalogs = fc.array(crossingEntry, { maxLength: 12 });
const points = fc.array(crossingPoint(4), { minLength: 5, maxLength: 5 });
/** With four to nine segments: up to one more than the longest path of `many`. */
const longPoints = fc.array(
  fc.record({
    method: fc.constantFrom('GET', 'GET', 'GET', 'PUT'),
    host: fc.constantFrom('d.example', 'd.example', 'a.d.example'),
    segments: fc.array(fc.constantFrom('a', 'a', 'a', 'a', 'b'), { minLength: 4, maxLength: 9 }),
  }),
  { minLength: 5, maxLength: 5 },
);

describe('the most specific scope', () => {
  it.each<[string, readonly string[]]>([
    ['/a/b', ['GET:d/a/b$', 'GET:d/a/{}$', 'GET:d/{}/b$', 'GET:d/a/b', 'GET:d/{}/{}']],
    ['/a/b', ['GET:d/a/b', 'GET:d/a/{}', 'GET:d/{}/b', 'GET:d/{}/{}', 'GET:d/a', 'GET:d/{}']],
    ['/a/b', ['GET:*/{}/{}$', 'GET:d/a/b', 'GET:d/a']],
    ['/a/b', ['*:*/a/{}', '*:d/{}/b', 'GET:d/{}/{}']],
    ['/a/b', ['*:*/{}/b', 'GET:d/a', 'GET:d/{}', 'GET:d/*']],
    ['/a/b', ['*:d/{}/{}', 'GET:*/{}/{}', '*:*/{}/{}']],
    ['/a', ['GET:d/a$', 'GET:d/{}$', 'GET:d/a', 'GET:d/{}', 'GET:d/*']],
    ['/', ['*:*/$', 'GET:d/*', 'GET:*/*', '*:*/*']],
  ])('for %s is the first remaining scope of the ranking %j', (target, ranked) => {
    for (let start = 0; start < ranked.length; start++) {
      const set = ScopeSet.from(ranked.slice(start));
      expect(byOf(set, { method: 'GET', domain: 'd', target })).toBe(ranked[start]);
    }
    expect([...ranked].reverse().sort(compare)).toEqual(ranked);
  });

  it.each([
    ['of few scopes', few, 1],
    ['of very many shapes', many, FEW],
  ])('%s is the one that sorting all of them puts first', (_, sets, weight) => {
    let allowed = 0;
    fc.assert(
      fc.property(
        sets,
        fc.oneof(points, longPoints),
        crossingScope(0, 8),
        (members, asked, scope) => {
          const set = ScopeSet.from(members);
          for (const point of asked) {
            const expected = grantOf(members, [], point);
            if (expected !== undefined) allowed += 1;
            expect(byOf(set, asRequest(point))).toBe(expected);
          }
          const covering = members.filter((member) => covers(member, scope));
          expect(set.coverOf(scope)?.toString()).toBe(first(covering));
        },
      ),
      runs(weight),
    );
    expect(allowed).toBeGreaterThan(runs(weight).numRuns);
  });

  it.each([
    ['of few entries', catalogs, 1],
    [
      'of very many entries',
      many.map((all) => all.map((text) => text.replace('*:', 'GET:')).filter(isConcrete)),
      FEW,
    ],
  ])('is the entry that attribute returns in a catalog %s', (_, lists, weight) => {
    fc.assert(
      fc.property(lists, fc.oneof(points, longPoints), (entries, asked) => {
        const catalog = ScopeCatalog.from(entries);
        for (const point of asked) {
          expect(catalog.attribute(asRequest(point))?.toString()).toBe(entryOf(entries, point));
        }
      }),
      runs(weight),
    );
  });
});

describe('minimize of very many shapes', () => {
  it('removes exactly the scopes that another scope covers', () => {
    fc.assert(
      fc.property(many, (members) => {
        const scopes = [...new Set(members)].map((text) => parseScope(text));
        const least = scopes.filter(
          (scope) => !scopes.some((other) => other !== scope && covers(other, scope)),
        );
        expect(ScopeSet.from(scopes).minimize().toArray()).toEqual(least.map(String).sort());
      }),
      runs(FEW),
    );
  });

  it.each([8, 7])(
    'reduces all 2^%i paths of a and {} to the one that covers them all',
    (length) => {
      const paths = allPaths(length).filter((path) => path.split('/').length === length);
      const [open, closed] = [false, true].map((isClosed) =>
        paths
          .filter((path) => path.endsWith('$') === isClosed)
          .map((path) => `GET:d.example/${path}`),
      ) as [string[], string[]];

      expect(open).toHaveLength(2 ** length);
      expect(ScopeSet.from(open).minimize().toArray()).toEqual([open.at(-1)]);
      expect(ScopeSet.from(closed).minimize().toArray()).toEqual([closed.at(-1)]);
      expect(
        ScopeSet.from([...open, ...closed])
          .minimize()
          .toArray(),
      ).toEqual([open.at(-1)]);
      const uncovered = open
        .slice(0, -1)
        .filter((path) => path.match(/\{\}/g)?.length === length - 1);
      expect(ScopeSet.from(uncovered).minimize().toArray()).toEqual(uncovered.sort());
    },
  );
});

describe('a request judged with a catalog', () => {
  /** With two or three segments, like most entries. */
  const routed = fc.array(
    crossingPoint(3).filter(({ segments }) => segments.length > 1),
    { minLength: 5, maxLength: 5 },
  );

  /** With four to eight segments, like most paths of `many`. */
  const longEntries = fc.array(
    fc
      .array(fc.constantFrom('a', '{}', '{}', '{}'), { minLength: 4, maxLength: 8 })
      .map((all) => `GET:d.example/${all.join('/')}`),
    { minLength: 1, maxLength: 4 },
  );

  it.each<[readonly string[], readonly string[], string, string | undefined]>([
    [['a/{}$', 'a/b$'], ['a/{}$'], '/a/b', undefined],
    [['a/{}$', 'a/b$'], ['a/{}$'], '/a/c', 'a/{}$'],
    [['a/{}$'], ['a/{}$'], '/a/b', 'a/{}$'],
    [['a/{}$', 'a/b$'], ['a/b$'], '/a/b', 'a/b$'],
    [['a/{}$', 'a/b$'], ['a/{}$', 'a/b'], '/a/b', 'a/b'],
    [['a/{}$', 'a/b$'], ['a/{}$', 'a'], '/a/b', 'a'],
    [['a/{}$', 'a/b$'], ['a/{}$', '*'], '/a/b', '*'],
    [['a/{}$', 'a/b$'], ['{}$', '{}'], '/a/b', undefined],
    [['a/{}$', 'a/b$'], ['{}/b$'], '/a/b', undefined],
    [['{}/{}$', 'c$'], ['{}/b$', '{}/{}'], '/a/b', '{}/b$'],
    [['{}/c$', '{}/{}$'], ['{}/{}$'], '/a/c', undefined],
    [['{}/c$', '{}/{}$'], ['{}/{}$'], '/a/b', '{}/{}$'],
    [['a/{}$', '{}/b$'], ['{}/b$'], '/a/b', undefined],
    [['a/{}$', '{}/b$'], ['a/{}$'], '/a/b', undefined],
    [['a/{}$', '{}/b$'], ['a/{}$', '{}/b$'], '/a/b', 'a/{}$'],
    [['a/{}$', '{}/b$'], ['a/b$'], '/a/b', 'a/b$'],
    [['a/{}$', '{}/b$'], ['a/{}$'], '/a/c', 'a/{}$'],
    [['a/{}$', '{}/b$'], ['{}/b$'], '/c/b', '{}/b$'],
    [['a/{}$', '{}/b$', 'a/b$'], ['a/b$'], '/a/b', 'a/b$'],
    [['a/{}$', '{}/b$', 'a/b$'], ['a/{}$', '{}/b$'], '/a/b', undefined],
    [['a/{}/b', 'a/a'], ['a/{}/b'], '/a/a/b', undefined],
    [['a/{}/b', 'a/a'], ['a/{}/b', 'a/a'], '/a/a/b', 'a/{}/b'],
    [['a/b'], ['a/{}/{}'], '/a/b/c', undefined],
    [['a/b'], ['a/b/{}'], '/a/b/c', 'a/b/{}'],
    [['c$'], ['a/{}$'], '/a/b', 'a/{}$'],
    [[], ['a/{}$'], '/a/b', 'a/{}$'],
    [['$', '{}$'], ['{}$'], '/', undefined],
    [['$', '{}$'], ['{}$', '$'], '/', '$'],
  ])('with the entries %j, the grant of %j for %s is %s', (entries, held, target, by) => {
    const scoped = (path: string): string => `GET:d.example/${path}`;
    const point = { method: 'GET', host: 'd.example', segments: target.split('/').filter(Boolean) };
    const asked = readBy(ScopeCatalog.from(entries.map(scoped)), point);
    const set = ScopeSet.from(held.map(scoped));

    expect(byOf(set, asked)).toBe(by && scoped(by));
    expect(grantOf(held.map(scoped), entries.map(scoped), point)).toBe(by && scoped(by));
    expect(set.explain(asked).allowed).toBe(by !== undefined);
    expect(set.grantOf(asked)?.toString()).toBe(by && scoped(by));
  });

  it.each([
    ['few scopes', fc.array(crossingScope(2, 3), { maxLength: 4 }), catalogs, routed, 1],
    ['very many shapes', many, longEntries, longPoints, FEW],
  ])(
    'is not matched by a {} of %s where its entry names the segment',
    (_, sets, lists, all, weight) => {
      let kept = 0;
      fc.assert(
        fc.property(sets, lists, all, (members, entries, asked) => {
          const set = ScopeSet.from(members);
          const catalog = ScopeCatalog.from(entries);
          for (const point of asked) {
            const expected = grantOf(members, entries, point);
            const request = readBy(catalog, point);
            expect(byOf(set, request)).toBe(expected);
            // candidatesFor may drop only members that cannot change the decision.
            const candidates = ScopeSet.from(candidatesFor(request, [...set].map(String)));
            expect(byOf(candidates, request)).toBe(expected);
            if (expected !== byOf(set, asRequest(point))) kept += 1;
          }
        }),
        runs(weight),
      );
      expect(kept).toBeGreaterThanOrEqual(fiftiethOf(weight));
    },
  );

  it('gets the same answer for each single entry, whatever was asked before', () => {
    let kept = 0;
    fc.assert(
      fc.property(
        catalogs,
        fc.array(crossingPoint(3), { minLength: 20, maxLength: 20 }),
        (entries, asked) => {
          const catalog = ScopeCatalog.from(entries);
          for (const point of [...asked, ...asked]) {
            for (const entry of entries) {
              const expected = grantOf([entry], entries, point);
              expect(byOf(ScopeSet.from([entry]), readBy(catalog, point))).toBe(expected);
              if (expected === undefined && denotes(entry, point)) kept += 1;
            }
          }
        },
      ),
      runs(FEW),
    );
    expect(kept).toBeGreaterThanOrEqual(fiftiethOf(FEW));
  });

  it('is decided as without the catalog if no entry covers it', () => {
    fc.assert(
      fc.property(few, catalogs, routed, (members, entries, asked) => {
        const set = ScopeSet.from(members);
        const catalog = ScopeCatalog.from(entries);
        for (const point of asked) {
          if (catalog.attribute(asRequest(point)) !== undefined) continue;
          expect(byOf(set, readBy(catalog, point))).toBe(byOf(set, asRequest(point)));
        }
      }),
      runs(),
    );
  });

  it('stays allowed when a scope is added', () => {
    fc.assert(
      fc.property(few, crossingScope(), catalogs, routed, (members, more, entries, asked) => {
        const before = ScopeSet.from(members);
        const after = ScopeSet.from([...members, more]);
        const catalog = ScopeCatalog.from(entries);
        for (const request of asked.map((point) => readBy(catalog, point))) {
          if (before.allows(request).allowed) expect(after.allows(request).allowed).toBe(true);
        }
      }),
      runs(),
    );
  });

  const closedEntry = crossingEntry.map((entry) => entry.replace(/\$?$/, '$'));
  const closedEntries = fc.array(closedEntry, { minLength: 1, maxLength: 12 });

  it('is allowed only by the grants of all its own entries if all entries are closed', () => {
    let [opened, crossed] = [0, 0];
    fc.assert(
      fc.property(closedEntries, routed, (entries, asked) => {
        const catalog = ScopeCatalog.from(entries);
        for (const point of asked) {
          const request = readBy(catalog, point);
          const own = rivals(entries, point);
          const opening = entries.filter((one) => byOf(ScopeSet.from([one]), request));
          expect(new Set(opening)).toEqual(new Set(own.length === 1 ? own : []));
          expect(byOf(ScopeSet.from(own), request)).toBe(entryOf(entries, point));
          for (const one of own) {
            const others = entries.filter((entry) => entry !== one);
            expect(byOf(ScopeSet.from(others), request)).toBeUndefined();
          }
          if (own.length === 1) opened += 1;
          if (own.length > 1) crossed += 1;
        }
      }),
      runs(2),
    );
    expect(opened).toBeGreaterThan(fiftiethOf(2));
    expect(crossed).toBeGreaterThan(fiftiethOf(1));
  });

  // Holds for whole entries only: `GET:d/a/b/{}$`, granted below the entry `GET:d/a/{}/{}$`, gains
  // `/a/b/c` from the crossing entry `GET:d/a/{}/c$` once it becomes an entry itself.
  it('is not newly allowed to a token of closed entries when a closed entry is added', () => {
    let allowed = 0;
    fc.assert(
      fc.property(
        closedEntries,
        fc.array(fc.nat(), { minLength: 1, maxLength: 3 }),
        closedEntry,
        routed,
        (entries, picks, later, asked) => {
          const held = picks.map((which) => entries[which % entries.length] as string);
          const before = ScopeCatalog.from(entries);
          const after = ScopeCatalog.from([...entries, later]);
          for (const point of asked) {
            if (byOf(ScopeSet.from(held), readBy(after, point)) === undefined) continue;
            allowed += 1;
            expect(byOf(ScopeSet.from(held), readBy(before, point))).toBeDefined();
          }
        },
      ),
      runs(),
    );
    expect(allowed).toBeGreaterThan(fiftiethOf(1));
  });

  it('is allowed by expanded scopes only if both the requested pattern and an entry match it', () => {
    fc.assert(
      fc.property(closedEntries, crossingScope(), routed, (entries, wish, asked) => {
        const catalog = ScopeCatalog.from(entries);
        if (!catalog.knows(wish)) return;
        const { granted } = catalog.expand([wish]);
        expect(granted.filter((scope) => !scope.endsWith('$'))).toEqual([]);
        const token = ScopeSet.from(granted);
        for (const point of asked) {
          if (byOf(token, asRequest(point)) === undefined) continue;
          expect(denotes(wish, point)).toBe(true);
          expect(entryOf(entries, point)).toBeDefined();
        }
      }),
      runs(),
    );
  });
});

function isConcrete(text: string): boolean {
  return !text.includes('*');
}
