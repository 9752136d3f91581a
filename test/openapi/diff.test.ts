import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isTokenError } from '../../src/errors.ts';
import { catalogDiff, type TokenScopes } from '../../src/openapi.ts';
import { ScopeCatalog, ScopeError, ScopeSet } from '../../src/scope/index.ts';

const A = 'GET:shop.example/a';
const B = 'GET:shop.example/b';
const AB = 'GET:shop.example/a/b';

function token(scopes: readonly string[], requested: readonly string[] = scopes): TokenScopes {
  return { id: 't', scopes, requested };
}

describe('catalogDiff', () => {
  it.each([
    ['nothing', [A], [A], [], []],
    ['an entry more', [A], [B, A], [B], []],
    ['an entry less', [A, B], [B], [], [A]],
    ['another one', [A], [B], [B], [A]],
    ['all of them', [], [B, A], [A, B], []],
    ['an entry below another', [A], [A, AB], [], []],
    ['an entry for the one above it', [AB], [A], [A], []],
    ['an entry for one below it', [A], [AB], [], [A]],
  ])('tells what appears and vanishes: %s', (_, before, after, added, removed) => {
    const diff = catalogDiff(before, after);
    expect(diff).toEqual({ added, removed, tokens: [], isBreaking: removed.length > 0 });
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
    ['holds a pattern, which no entry covers', token(['*:shop.example/a']), [], []],
    ['holds what is still there', token([B]), [], []],
    ['would get more', token([B], ['GET:shop.example/*']), [], ['GET:shop.example/c']],
    [
      'would get more, in place of what it lost',
      token([A, B], ['*:shop.example/*']),
      [A],
      ['GET:shop.example/c'],
    ],
    ['holds a pattern over what it would get', token(['GET:*/*'], ['GET:shop.example/*']), [], []],
    ['asked for what meets nothing now', token([A, B], ['GET:shop.example/*', A]), [A], []],
    ['asked for nothing', token([B], []), [], []],
  ])('tells of a token that %s', (_, held, lost, gained) => {
    const { tokens, isBreaking } = catalogDiff([A, B], [B, 'GET:shop.example/c'], {
      tokens: [held],
    });
    const isTold = lost.length > 0 || gained.length > 0;
    expect(tokens).toEqual(isTold ? [{ id: 't', lost, gained }] : []);
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

  it('agrees with the catalog and the set of scopes, which go the long way', () => {
    const part = <Value>(...values: Value[]) => fc.constantFrom(...values);
    const path = fc
      .array(part('a', 'b', 'a-'), { minLength: 1, maxLength: 3 })
      .map((s) => s.join('/'));
    const host = part('p.example', 'a.p.example', 'b.a.p.example', 'example');
    const entry = fc.tuple(part('GET', 'PUT'), host, path).map(([m, d, p]) => `${m}:${d}/${p}`);
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
    const catalog = fc.array(entry, { minLength: 1, maxLength: 12 });
    const scopes = fc.array(fc.oneof(entry, pattern), { minLength: 1, maxLength: 4 });

    fc.assert(
      fc.property(catalog, catalog, scopes, scopes, (before, after, held, requested) => {
        const [known, next] = [ScopeSet.from(before), ScopeSet.from(after)];
        const granted = expandOrNothing(after, requested);
        const lost = held.filter((scope) => known.covers(scope) && !next.covers(scope));
        const gained = granted.filter((scope) => !ScopeSet.from(held).covers(scope));

        const { tokens } = catalogDiff(before, after, { tokens: [token(held, requested)] });

        const expected = { id: 't', lost: [...new Set(lost)].sort(), gained };
        expect(tokens[0] ?? { id: 't', lost: [], gained: [] }).toEqual(expected);
      }),
      { numRuns: 1000 },
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

  it('costs about twice as much for twice the entries and twice the tokens', () => {
    const cost = (count: number): number => {
      const list = (from: number) =>
        Array.from({ length: count }, (_, i) => `GET:h${i % 7}.shop.example/v1/p${from + i}`);
      const [before, after] = [list(0), list(count / 10)];
      const at = (i: number) => before[i % count] ?? '';
      const tokens = Array.from({ length: count }, (_, i) =>
        token([at(i), at(i * 7 + 1), at(i * 31 + 5)], [at(i), `*:*.shop.example/v1/p${i * 3}`]),
      );
      const start = performance.now();
      catalogDiff(before, after, { tokens });
      return performance.now() - start;
    };
    const least = (count: number) => Math.min(...[0, 1, 2].map(() => cost(count)));
    least(1000);

    expect(Math.log2(least(12_000) / least(3_000)) / 2).toBeLessThan(1.6);
  });
});

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
