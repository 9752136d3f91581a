import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isTokenError } from '../../src/errors.ts';
import { catalogDiff, type TokenScopes } from '../../src/openapi/index.ts';
import {
  covers,
  meet,
  type Scope,
  ScopeCatalog,
  ScopeError,
  type ScopeRequest,
  ScopeSet,
} from '../../src/scope/index.ts';
import { slopeOf } from '../growth.ts';

/** Linear work that sorts, in memory that grows past the caches; a quadratic one is near 2. */
const MAX_SLOPE = 1.6;

const A = 'GET:shop.example/a';
const B = 'GET:shop.example/b';
const AB = 'GET:shop.example/a/b';
const LIST = 'GET:shop.example/a$';
const ITEM = 'GET:shop.example/a/{}$';
const EXPORT = 'GET:shop.example/a/export$';
const ITEMS = 'GET:shop.example/a/{}/items$';

const RUNS = Number(process.env['LAW_RUNS'] ?? 1000);
const timeout = 30_000 + 100 * RUNS;

function token(scopes: readonly string[], requested: readonly string[] = scopes): TokenScopes {
  return { id: 't', scopes, requested };
}

describe('catalogDiff', () => {
  it.each([
    ['nothing', [A], [A], [], [], []],
    ['an entry more', [A], [B, A], [B], [], []],
    ['an entry less', [A, B], [B], [], [A], []],
    ['another one', [A], [B], [B], [A], []],
    ['all of them', [], [B, A], [A, B], [], []],
    ['an entry below another', [A], [A, AB], [], [], []],
    ['an entry for the one above it', [AB], [A], [A], [], []],
    ['an entry for one below it', [A], [AB], [], [A], [AB]],
    ['operations for prefixes', [A, B], [LIST, ITEM, B], [], [A], [LIST, ITEM]],
    ['prefixes for operations', [LIST, ITEM, B], [A, B], [A], [], []],
    ['an operation beside a template', [LIST, ITEM], [LIST, ITEM, EXPORT], [EXPORT], [], []],
    ['no operation beside a template', [ITEM, EXPORT], [ITEM], [], [EXPORT], []],
    ['a template beside an operation', [EXPORT], [ITEM, EXPORT], [ITEM], [], []],
    ['no template beside an operation', [ITEM, EXPORT], [EXPORT], [], [ITEM], [EXPORT]],
    ['an operation below another', [ITEM], [ITEM, ITEMS], [ITEMS], [], []],
    ['an operation below what is open', [A], [A, ITEMS, EXPORT], [], [], []],
    ['a closed entry for an open one', [`${LIST.slice(0, -1)}`], [LIST], [], [A], [LIST]],
    [
      'the root',
      ['GET:shop.example/$'],
      ['GET:shop.example/root$'],
      ['GET:shop.example/root$'],
      ['GET:shop.example/$'],
      [],
    ],
  ])('tells what appears and vanishes: %s', (_, before, after, added, removed, kept) => {
    const diff = catalogDiff(before, after);
    expect(diff).toEqual({ added, removed, kept, tokens: [], isBreaking: removed.length > 0 });
    expect(catalogDiff(ScopeCatalog.from(before), ScopeCatalog.from(after))).toEqual(diff);
  });

  it.each([
    ['holds what vanished', token([A]), [A], []],
    [
      'holds something below what vanished',
      token(['GET:shop.example/a/x']),
      ['GET:shop.example/a/x'],
      [],
    ],
    ['holds what no entry ever covered', token(['GET:shop.example/z']), [], []],
    ['holds a pattern over what vanished', token(['*:shop.example/a']), [A], []],
    ['holds a pattern over what is still there', token(['*:*/b']), [], []],
    ['holds a pattern over others', token(['PUT:shop.example/*']), [], []],
    ['holds what is still there', token([B]), [], []],
    ['would get more', token([B], ['GET:shop.example/*']), [], ['GET:shop.example/c']],
    [
      'would get more, in place of what it lost',
      token([A, B], ['*:shop.example/*']),
      [A],
      ['GET:shop.example/c'],
    ],
    ['holds a pattern over what it would get', token(['GET:*/*'], ['GET:shop.example/*']), [A], []],
    ['asked for what meets nothing now', token([A, B], ['GET:shop.example/*', A]), [A], []],
    ['asked for nothing', token([B], []), [], []],
  ])('tells of a token that %s', (_, held, lost, gained) => {
    const { tokens, isBreaking } = catalogDiff([A, B], [B, 'GET:shop.example/c'], {
      tokens: [held],
    });
    const isTold = lost.length > 0 || gained.length > 0;
    expect(tokens).toEqual(isTold ? [{ id: 't', lost, kept: [], gained }] : []);
    expect(isBreaking).toBe(lost.length > 0);
  });

  it.each([
    ['no tokens are given', undefined, true],
    ['there are none', [], false],
    ['one holds what vanished', [token([B]), token([A])], true],
    ['none does', [token([B])], false],
  ])('is breaking when %s: %s', (_, tokens, expected) => {
    expect(catalogDiff([A, B], [B], { tokens }).isBreaking).toBe(expected);
  });

  it('keeps the order of the tokens, and takes any list of them', () => {
    const held = ['3', '1', '2'].map((id) => ({ ...token([id === '1' ? B : A]), id }));
    const { tokens } = catalogDiff([A, B], [B], { tokens: new Set(held) });
    expect(tokens.map(({ id }) => id)).toEqual(['3', '2']);
  });

  it.each([
    [4096, 4096],
    [4097, 0],
  ])('of %i entries a token would get %i', (count, expected) => {
    const after = Array.from({ length: count }, (_, i) => `GET:shop.example/p${i}`);
    const { tokens } = catalogDiff([], after, { tokens: [token([B], ['*:*/*'])] });
    expect(tokens[0]?.gained.length ?? 0).toBe(expected);
  });

  it.each([
    ['its prefix becomes operations', [A], [LIST, ITEM], [A], [A], [A], [LIST, ITEM], []],
    [
      'a part of its prefix does',
      [A],
      [LIST, ITEM],
      ['GET:shop.example/a/7'],
      [],
      ['GET:shop.example/a/7'],
      ['GET:shop.example/a/7$'],
      [],
    ],
    [
      'an operation of its prefix vanishes',
      [LIST, ITEM, EXPORT],
      [LIST, ITEM],
      [A],
      [],
      [EXPORT],
      [],
      [],
    ],
    ['its operations become a prefix', [LIST, ITEM], [A], [LIST, ITEM], ['GET:*/*'], [], [], [A]],
    [
      'its operation vanishes beside a template',
      [ITEM, EXPORT],
      [ITEM],
      [EXPORT],
      [],
      [EXPORT],
      [],
      [],
    ],
    [
      'an operation appears beside its template',
      [ITEM],
      [ITEM, EXPORT],
      [ITEM],
      [ITEM],
      [],
      [],
      [],
    ],
    [
      'one appears, and it asked for all',
      [ITEM],
      [ITEM, EXPORT],
      [ITEM],
      ['GET:*/*'],
      [],
      [],
      [EXPORT],
    ],
    ['one appears below what it holds open', [A], [A, EXPORT], [A], ['GET:*/*'], [], [], []],
    ['one vanishes that it does not open', [ITEM, EXPORT], [ITEM], [ITEM], ['GET:*/*'], [], [], []],
    [
      'one vanishes that its pattern opens',
      [ITEM, EXPORT],
      [ITEM],
      ['GET:*/*'],
      [],
      [EXPORT],
      [],
      [],
    ],
    [
      'its template vanishes',
      [ITEM, EXPORT],
      [EXPORT],
      ['GET:shop.example/a/7$', EXPORT],
      [],
      ['GET:shop.example/a/7$'],
      [],
      [],
    ],
    [
      'an endpoint lies below what it asks for',
      ...[[A], ['GET:shop.example/{}', EXPORT], ['GET:shop.example/{}'], [A]],
      ...[[], [], [A]],
    ],
    [
      'it is bound to one resource',
      [ITEMS],
      [ITEMS, ITEM],
      ['GET:shop.example/a/7/items$'],
      ['GET:shop.example/a/7'],
      [],
      [],
      ['GET:shop.example/a/7$'],
    ],
  ])('tells of a token where %s', (_, before, after, scopes, requested, lost, kept, gained) => {
    const { tokens } = catalogDiff(before, after, { tokens: [token(scopes, requested)] });
    const isTold = lost.length > 0 || gained.length > 0;
    expect(tokens).toEqual(isTold ? [{ id: 't', lost, kept, gained }] : []);
  });

  it('agrees with the definition, which goes the long way', { timeout }, () => {
    fc.assert(
      fc.property(catalogs, catalogs, scopeLists, scopeLists, (before, after, held, requested) => {
        const expected = naiveDiff(before, after, held, requested);
        const { tokens, ...diff } = catalogDiff(before, after, {
          tokens: [token(held, requested)],
        });
        const [told = { lost: [], kept: [], gained: [] }] = tokens;

        expect(diff).toMatchObject(expected.diff);
        expect(told).toMatchObject({ ...expected.token, ...(tokens.length === 0 && { kept: [] }) });
      }),
      { numRuns: RUNS },
    );
  });

  it('tells the truth about requests', { timeout }, () => {
    const [few, fewScopes] = [catalogs.map(inUniverse), scopeLists.map(inUniverse)];
    fc.assert(
      fc.property(few, few, fewScopes, fewScopes, (before, after, held, requested) => {
        const { tokens } = catalogDiff(before, after, { tokens: [token(held, requested)] });
        const [{ lost, kept, gained } = { lost: [], kept: [], gained: [] }] = tokens;
        const known = ScopeCatalog.from(before);
        const next = ScopeCatalog.from(after);
        const [opensBefore, opensAfter] = [opener(held, known), opener(held, next)];
        const opensAgain = opener(expandOrNothing(after, requested), next);
        const opensMore = opener(gained, next);
        const [isLost, isKept] = [allower(lost), allower(kept)];
        const endpoints = ScopeSet.from(known);
        const witnesses = new Set<string>();

        for (const request of UNIVERSE) {
          const entry = known.attribute(request);
          const isThere =
            entry !== undefined &&
            allower(after.filter((one) => !blurs(one, entry)))(request) !== undefined;
          const loser = isLost(request);
          if (entry !== undefined && opensBefore(request) && !isThere) {
            expect(loser).toBeDefined();
            witnesses.add(loser ?? '');
          }
          const owner = loser === undefined ? undefined : endpoints.coverOf(loser);
          if (isThere && String(owner) === String(entry)) expect(isKept(request)).toBeDefined();
          if (!opensAgain(request) || opensAfter(request)) continue;
          expect(opensMore(request)).toBeDefined();
          witnesses.add(opensMore(request) ?? '');
        }
        // Open scopes may be closed again by several others, which nothing here joins.
        const isClosed = [...before, ...after, ...held, ...requested].every((s) => s.endsWith('$'));
        const told = ScopeSet.from([...lost, ...gained])
          .minimize()
          .toArray();
        if (isClosed) expect(told.filter((one) => !witnesses.has(one))).toEqual([]);
      }),
      { numRuns: RUNS / 2 },
    );
  });

  it.each([
    [['*:shop.example/a'], [A], [], 'catalog_not_concrete'],
    [[A], ['GET:shop.example/*'], [], 'catalog_not_concrete'],
    [[A], [A], [token(['a'])], 'missing_method'],
    [[A], [A], [token([A], ['GET:shop.example'])], 'missing_path'],
    [[A], [A], [token([A, 7 as unknown as string])], 'not_a_string'],
  ])('refuses %j, %j, %j', (before, after, tokens, code) => {
    const error = thrownBy(() => catalogDiff(before, after, { tokens }));
    expect(error).toBeInstanceOf(ScopeError);
    expect(error).toMatchObject({ code });
  });

  it.each([
    [null],
    [[]],
    [{ token: [] }],
    [{ tokens: null }],
    [{ tokens: 'token' }],
    [{ tokens: [null] }],
    [{ tokens: [{ id: 't', scopes: [A] }] }],
    [{ tokens: [{ scopes: [A], requested: [A] }] }],
  ])('refuses the options %j', (options) => {
    const error = thrownBy(() => catalogDiff([A], [A], options as never));
    expect(error).toSatisfy(isTokenError);
    expect(error).toMatchObject({ code: 'invalid_options' });
  });

  it('costs about twice as much for twice the entries and twice the tokens', {
    timeout: 60_000,
  }, () => {
    const surface = (count: number) => {
      const list = (from: number) =>
        Array.from({ length: count }, (_, i) => `GET:h${i % 7}.shop.example/v1/p${from + i}`);
      const [before, after] = [list(0), list(count / 10)];
      const at = (i: number) => before[i % count] ?? '';
      const tokens = Array.from({ length: count }, (_, i) =>
        token([at(i), at(i * 7 + 1), at(i * 31 + 5)], [at(i), `*:*.shop.example/v1/p${i * 3}`]),
      );
      return () => catalogDiff(before, after, { tokens });
    };

    expect(slopeOf(surface, [3000, 12_000], MAX_SLOPE)).toBeLessThan(MAX_SLOPE);
  });
});

const part = <Value>(...values: Value[]) => fc.constantFrom(...values);
const segments = fc.array(part('a', 'b', 'a-', '{}', '{}'), { minLength: 1, maxLength: 3 });
const path = fc.oneof(
  { arbitrary: segments.map((all) => `${all.join('/')}$`), weight: 4 },
  { arbitrary: segments.map((all) => all.join('/')), weight: 2 },
  { arbitrary: part('$'), weight: 1 },
);
const host = part('p.example', 'a.p.example', 'b.a.p.example', 'example');
const near = fc.oneof({ arbitrary: part('p.example'), weight: 3 }, { arbitrary: host, weight: 1 });
const entry = fc.tuple(part('GET', 'GET', 'PUT'), near, path).map(([m, d, p]) => `${m}:${d}/${p}`);
const pattern = fc
  .tuple(
    part('GET', 'PUT', '*'),
    fc.oneof(
      host,
      host.map((parent) => `*.${parent}`),
      fc.constant('*'),
    ),
    fc.oneof(path, fc.constant('*')),
  )
  .map(([m, d, p]) => `${m}:${d}/${p}`);
const closedEntry = entry.filter((text) => text.endsWith('$'));
const catalogs = fc.oneof(
  fc.array(entry, { minLength: 1, maxLength: 8 }),
  fc.array(closedEntry, { minLength: 1, maxLength: 8 }),
);
const scopeLists = fc.oneof(
  fc.array(fc.oneof(entry, pattern), { minLength: 1, maxLength: 4 }),
  fc.array(closedEntry, { minLength: 1, maxLength: 4 }),
);

/** Every request up to three segments and a fresh one, with a name that no scope holds. */
const UNIVERSE: readonly ScopeRequest[] = ['GET', 'PUT'].flatMap((method) =>
  ['p.example', 'a.p.example', 'fresh.p.example'].flatMap((domain) =>
    targets(4).map((target) => ({ method, domain, target })),
  ),
);

function targets(depth: number): string[] {
  if (depth === 0) return ['/'];
  const shorter = targets(depth - 1);
  const names = depth === 4 ? ['fresh'] : ['a', 'b', 'fresh'];
  const longest = shorter.filter(
    (target) => target.split('/').filter(Boolean).length === depth - 1,
  );
  return [
    ...shorter,
    ...longest.flatMap((target) => names.map((name) => `${target === '/' ? '' : target}/${name}`)),
  ];
}

/** The same with the names and hosts of the universe alone. */
function inUniverse(scopes: readonly string[]): string[] {
  const rename = (text: string) =>
    text
      .replaceAll('a-', 'b')
      .replace(/:(?:b\.a\.p\.)?example\//, ':a.p.example/')
      .replace(/:\*\.[a-z.]*\//, ':*.p.example/');
  return [...new Set(scopes.map(rename))];
}

function allower(scopes: readonly string[]): (request: ScopeRequest) => string | undefined {
  const set = ScopeSet.from(scopes);
  return (request) => {
    const decision = set.allows(request);
    return decision.allowed ? decision.by.toString() : undefined;
  };
}

/** As {@link allower}, of requests that a catalog reads. */
function opener(
  scopes: readonly string[],
  catalog: ScopeCatalog,
): (request: ScopeRequest) => string | undefined {
  const set = ScopeSet.from(scopes);
  return (request) => {
    const reading = catalog.readRequest(request);
    return reading.ok ? set.grantOf(reading.request)?.toString() : undefined;
  };
}

/** Whether a scope has a `{}` where an entry has a name. */
function blurs(scope: Scope | string, entry: Scope | string): boolean {
  const [ours, names] = [scope, entry].map((one) =>
    String(one)
      .replace(/^[^/]*\/|\$$/g, '')
      .split('/'),
  );
  return names?.some((name, i) => name !== '{}' && ours?.[i] === '{}') === true;
}

function naiveDiff(
  before: readonly string[],
  after: readonly string[],
  held: readonly string[],
  requested: readonly string[],
) {
  const has = (scope: Scope | string, endpoint: Scope | string, entries: readonly string[]) =>
    entries.some((one) => covers(one, scope) && !blurs(one, endpoint));
  const partsOf = (scope: Scope | string, endpoint: Scope | string) =>
    after
      .filter((one) => isNamed(one, scope, endpoint))
      .flatMap((one) => meet(scope, one)?.toString() ?? []);
  const removed = before.filter((one) => !has(one, one, after));
  const known = ScopeSet.from(before);
  const losses = held.map((scope) => {
    const parts = removed.flatMap((one) => {
      const common = meet(scope, one);
      if (common === null || blurs(scope, one)) return [];
      const isOwn = known.coverOf(common)?.toString() === one;
      return isOwn && !has(common, one, after) ? [{ common, endpoint: one }] : [];
    });
    return {
      lost: parts
        .filter(({ common, endpoint }) =>
          parts.every(
            (other) =>
              String(other.common) === String(common) ||
              !has(common, endpoint, [`${other.common}`]),
          ),
        )
        .map(({ common }) => common.toString()),
      kept: parts.flatMap(({ common, endpoint }) => partsOf(common, endpoint)),
    };
  });
  const next = ScopeSet.from(after);
  const gained = expandOrNothing(after, requested).filter((scope) =>
    after.some((one) => {
      const common = meet(scope, one);
      if (common === null || blurs(scope, one)) return false;
      return next.coverOf(common)?.toString() === one && !has(common, one, held);
    }),
  );
  const sorted = (list: readonly string[]) => [...new Set(list)].sort();
  return {
    diff: {
      added: sorted(after.filter((one) => !has(one, one, before))),
      removed: sorted(removed),
      kept: sorted(removed.flatMap((one) => partsOf(one, one))),
      isBreaking: losses.some(({ lost }) => lost.length > 0),
    },
    token: {
      lost: sorted(losses.flatMap(({ lost }) => lost)),
      kept: sorted(losses.flatMap(({ kept }) => kept)),
      gained,
    },
  };
}

/** Whether an entry does not stand for what another one names, as far as a scope names it too. */
function isNamed(entry: string, scope: Scope | string, endpoint: Scope | string): boolean {
  const common = meet(entry, scope);
  return common !== null && !blurs(entry, endpoint);
}

function expandOrNothing(entries: readonly string[], requested: readonly string[]): string[] {
  try {
    return ScopeCatalog.from(entries).expand(requested).granted;
  } catch {
    return [];
  }
}

function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return expect.unreachable('it was taken');
}
