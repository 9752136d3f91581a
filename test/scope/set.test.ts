import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { covers, meet } from '../../src/scope/algebra.ts';
import { ScopeCatalog } from '../../src/scope/catalog.ts';
import { ScopeError } from '../../src/scope/errors.ts';
import type { KnownScopes, NearMiss } from '../../src/scope/explain.ts';
import { parseScope, type Scope } from '../../src/scope/grammar.ts';
import { type ReadRequest, readRequest, type ScopeRequest } from '../../src/scope/request.ts';
import { ScopeSet } from '../../src/scope/set.ts';
import { runs } from '../laws.ts';
import {
  allowAll,
  anyDenotes,
  anyScope,
  asRequest,
  denotes,
  hostile,
  manyScopes,
  oneOf,
  someScopes,
  universeOf,
} from './support.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'];

/** `GET d.example/a` as a request. */
function request(line: string): ScopeRequest {
  const [method = '', rest = ''] = line.split(' ');
  const slash = rest.indexOf('/');
  return { method, domain: rest.slice(0, slash), target: rest.slice(slash) };
}

/** The member that allows a request, or the reason why none does. */
function decide(scopes: Iterable<Scope | string>, line: string | ScopeRequest): string {
  const asked = typeof line === 'string' ? request(line) : line;
  const decision = ScopeSet.from(scopes).allows(asked);
  return decision.allowed ? String(decision.by) : decision.reason;
}

describe('ScopeSet.from', () => {
  it('sorts by code unit and drops duplicates in any spelling', () => {
    const set = ScopeSet.from([
      'POST:d.example/a',
      'GET:d.example/b',
      'GET:D.EXAMPLE/a',
      parseScope('GET:d.example/a'),
      'GET:d.example/B',
      'GET:d.example/_',
      'GET:d-d.example/a',
      '*:*/*',
      'GET:d.example/a/b',
      'GET:d.example/a.b',
    ]);

    expect(set.size).toBe(9);
    expect(set.toArray()).toEqual([
      '*:*/*',
      'GET:d-d.example/a',
      'GET:d.example/B',
      'GET:d.example/_',
      'GET:d.example/a',
      'GET:d.example/a.b',
      'GET:d.example/a/b',
      'GET:d.example/b',
      'POST:d.example/a',
    ]);
    expect([...set].map(String)).toEqual(set.toArray());
  });

  it.each<[string, Iterable<string>]>([
    ['an array', ['GET:d.example/a']],
    ['a Set', new Set(['GET:d.example/a'])],
    ['the keys of a Map', new Map([['GET:d.example/a', 1]]).keys()],
    ['a generator', one('GET:d.example/a')],
    ['a ScopeSet', ScopeSet.from(['GET:d.example/a']) as Iterable<unknown> as Iterable<string>],
  ])('accepts %s', (_, scopes) => {
    expect(ScopeSet.from(scopes).toArray()).toEqual(['GET:d.example/a']);
  });

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a string', 'GET:d.example/a'],
    ['a number', 7],
    ['an object', {}],
    ['a function', () => []],
    ['an object with a broken iterator', { [Symbol.iterator]: true }],
  ])('refuses %s as a list', (_, scopes) => {
    expect(codeOf(() => ScopeSet.from(scopes as string[]))).toBe('scopes_required');
  });

  it.each<[string, unknown, string]>([
    ['an undefined member', undefined, 'not_a_string'],
    ['a nested list', ['GET:d.example/a'], 'not_a_string'],
    ['a member of the wrong case', 'get:d.example/a', 'method_invalid'],
    ['an empty member', '', 'empty'],
  ])('refuses a list with %s', (_, member, code) => {
    expect(codeOf(() => ScopeSet.from(['GET:d.example/a', member as string]))).toBe(code);
  });

  it('accepts scopes and sets from another copy of the module', async () => {
    vi.resetModules();
    const other = await import('../../src/scope/index.ts');
    const foreign = other.ScopeSet.from(['GET:d.example/b', 'GET:d.example/a']);
    const ours = ScopeSet.from(foreign as Iterable<unknown> as Iterable<Scope>);

    expect(foreign).not.toBeInstanceOf(ScopeSet);
    expect(ours.toArray()).toEqual(['GET:d.example/a', 'GET:d.example/b']);
    expect(decide(ours, 'GET d.example/a/x')).toBe('GET:d.example/a');
    expect(ours.covers(other.parseScope('GET:d.example/a/x') as unknown as Scope)).toBe(true);
  });

  it('copies the list it is made from and the array it returns', () => {
    const list = ['GET:d.example/a'];
    const set = ScopeSet.from(list);
    list.push('*:*/*');
    set.toArray().push('*:*/*');

    expect(set.toArray()).toEqual(['GET:d.example/a']);
    expect(set.covers('GET:d.example/b')).toBe(false);
  });

  it('returns a ScopeSet unchanged', () => {
    const set = ScopeSet.from(['GET:d.example/a']);

    expect(ScopeSet.from(set)).toBe(set);
  });
});

describe('ScopeSet.covers', () => {
  it.each<[readonly string[], string, boolean]>([
    [[], 'GET:d.example/a', false],
    [[], '*:*/*', false],
    [['GET:d.example/a'], 'GET:d.example/a/b', true],
    [['GET:d.example/a'], 'GET:d.example/ab', false],
    [['GET:d.example/b', 'GET:d.example/a'], 'GET:d.example/a/x', true],
    [['GET:d.example/a', 'GET:d.example/b'], 'GET:d.example/*', false],
    [['GET:d.example/*', '*:d.example/a'], 'POST:d.example/a/b', true],
    [['GET:d.example/*', '*:d.example/a'], 'POST:d.example/b', false],
    [['GET:a.example/*', 'POST:b.example/*'], 'GET:b.example/x', false],
    [['GET:example/a', 'GET:*.example/a'], 'GET:*/a', false],
    [['GET:*.example/a'], 'GET:*.d.example/a', true],
    [['GET:*.d.example/a'], 'GET:*.example/a', false],
    [['GET:*.example/a'], 'GET:*.example/a/b', true],
    [['*:*/a'], '*:*/a', true],
    [['GET:*/*'], '*:*/*', false],
    [['*:d.example/*'], '*:*/*', false],
    [['*:*/a'], '*:*/*', false],
    [['*:*/*'], '*:*/*', true],
    [['GET:d.example/a$'], 'GET:d.example/a$', true],
    [['GET:d.example/a$'], 'GET:d.example/a', false],
    [['GET:d.example/a$', 'GET:d.example/a/{}'], 'GET:d.example/a', false],
    [['GET:d.example/a$', 'GET:d.example/a/{}'], 'GET:d.example/a/b', true],
    [['GET:d.example/$', 'GET:d.example/{}'], 'GET:d.example/*', false],
    [['GET:d.example/{}/b'], 'GET:d.example/a/b/c$', true],
    [['GET:d.example/{}/b'], 'GET:d.example/a/{}', false],
    [['GET:d.example/a/b', 'GET:d.example/a/c'], 'GET:d.example/a/{}', false],
    [['GET:d.example/{}/{}$'], 'GET:d.example/{}/a$', true],
  ])('%j covers %s: %s', (members, scope, expected) => {
    expect(ScopeSet.from(members).covers(scope)).toBe(expected);
    expect(ScopeSet.from(members).coverOf(scope) !== undefined).toBe(expected);
  });

  it('is true exactly if a single member covers the scope', () => {
    fc.assert(
      fc.property(someScopes, anyScope, (members, scope) => {
        const answer = ScopeSet.from(members).covers(scope);
        expect(answer).toBe(members.some((member) => covers(member, scope)));
      }),
      runs(),
    );
  });

  it('is true only if all requests are allowed, but not for an open p that p$ and p/{} allow', () => {
    let gaps = 0;
    const withGap = fc.tuple(someScopes, anyScope, fc.boolean()).map(([members, scope, isGap]) => {
      const { method, domain, path } = parseScope(scope);
      if (!isGap || path.endsWith('$')) return { members, scope };
      const [itself, below] = path === '*' ? ['$', '{}'] : [`${path}$`, `${path}/{}`];
      const parts = [itself, below].map((one) => `${method}:${domain}/${one}`);
      return { members: [...members, ...parts], scope };
    });
    fc.assert(
      fc.property(withGap, ({ members, scope }) => {
        const isSubset = universeOf([...members, scope]).every(
          (point) => !denotes(scope, point) || anyDenotes(members, point),
        );
        expect(allowAll(members, scope)).toBe(isSubset);
        if (ScopeSet.from(members).covers(scope)) expect(isSubset).toBe(true);
        else if (isSubset) gaps += 1;
      }),
      runs(),
    );
    expect(gaps).toBeGreaterThan(runs(0.02).numRuns);
  });

  it('is explained by coverOf, which returns a member that covers the scope', () => {
    fc.assert(
      fc.property(
        fc.array(anyScope, { minLength: 1, maxLength: 7 }),
        anyScope,
        (members, scope) => {
          const by = ScopeSet.from(members).coverOf(scope);
          if (by === undefined) return;
          expect(members).toContain(String(by));
          expect(covers(by, scope)).toBe(true);
        },
      ),
      runs(),
    );
  });

  it('is false for a wildcard method even if all nine methods are held', () => {
    const nine = ScopeSet.from(METHODS.map((method) => `${method}:*/*`));

    expect(nine.covers('*:d.example/a')).toBe(false);
    expect(nine.covers('PURGE:d.example/a')).toBe(false);
    expect(nine.minimize().size).toBe(9);
    expect(nine.equals(['*:*/*'])).toBe(false);
    expect(nine.missing(['*:*/*'])).toEqual(['*:*/*']);
  });
});

describe('ScopeSet.overlaps', () => {
  it.each<[readonly string[], string, boolean]>([
    [[], '*:*/*', false],
    [['GET:d.example/a', 'GET:e.example/b'], '*:e.example/*', true],
    [['GET:d.example/a', 'GET:e.example/b'], '*:f.example/*', false],
    [['GET:d.example/a/b'], 'GET:d.example/a', true],
    [['GET:d.example/ab'], 'GET:d.example/a', false],
    [['*:d.example/a'], 'GET:*.example/a/b', true],
    [['*:*/*'], 'GET:d.example/a', true],
    [['GET:*.example/a'], 'GET:example/a', false],
  ])('%j overlaps %s: %s', (members, scope, expected) => {
    expect(ScopeSet.from(members).overlaps(scope)).toBe(expected);
  });

  it('is true exactly if a member and the scope both allow some request', () => {
    fc.assert(
      fc.property(someScopes, anyScope, (members, scope) => {
        const isShared = universeOf([...members, scope]).some(
          (point) => denotes(scope, point) && anyDenotes(members, point),
        );
        expect(ScopeSet.from(members).overlaps(scope)).toBe(isShared);
      }),
      runs(),
    );
  });
});

describe('ScopeSet.allows', () => {
  it.each<[readonly string[], string, string]>([
    [[], 'GET d.example/a', 'not_covered'],
    [['GET:d.example/a'], 'GET d.example/a', 'GET:d.example/a'],
    [['GET:d.example/a'], 'GET D.EXAMPLE/a', 'GET:d.example/a'],
    [['GET:d.example/a'], 'GET d.example/A', 'not_covered'],
    [['GET:d.example/a'], 'GET d.example/a/', 'GET:d.example/a'],
    [['GET:d.example/a'], 'GET d.example/a?x=/b', 'GET:d.example/a'],
    [['GET:d.example/a'], 'GET d.example/b?x=/a', 'not_covered'],
    [['GET:d.example/a'], 'GET d.example/a/b/c/d', 'GET:d.example/a'],
    [['GET:d.example/a'], 'GET d.example/ab', 'not_covered'],
    [['GET:d.example/a'], 'GET d.example/a.json', 'not_covered'],
    [['GET:d.example/a'], 'GET d.example/a../b', 'not_covered'],
    [['GET:d.example/a'], 'GET d.example/a%20', 'not_covered'],
    [['GET:d.example/a'], 'GET d.example/a%3Fx', 'not_covered'],
    [['GET:d.example/a'], 'GET d.example/', 'not_covered'],
    [['GET:d.example/a/b'], 'GET d.example/a', 'not_covered'],
    [['GET:d.example/a/b'], 'GET d.example/a/c', 'not_covered'],

    [['GET:d.example/a'], 'HEAD d.example/a', 'not_covered'],
    [['HEAD:d.example/a'], 'HEAD d.example/a', 'HEAD:d.example/a'],
    [['HEAD:d.example/a'], 'GET d.example/a', 'not_covered'],
    [['GET:d.example/a'], 'OPTIONS d.example/a', 'not_covered'],
    [['OPTIONS:d.example/a'], 'OPTIONS d.example/a', 'OPTIONS:d.example/a'],
    [['*:d.example/a'], 'FRESH d.example/a', '*:d.example/a'],

    [['GET:d.example/a'], 'GET x.d.example/a', 'not_covered'],
    [['GET:d.example/a'], 'GET example/a', 'not_covered'],
    [['GET:d.example/a'], 'GET xd.example/a', 'not_covered'],
    [['GET:*.example/a'], 'GET d.example/a', 'GET:*.example/a'],
    [['GET:*.example/a'], 'GET c.b.a.d.example/a', 'GET:*.example/a'],
    [['GET:*.example/a'], 'GET example/a', 'not_covered'],
    [['GET:*.example/a'], 'GET xexample/a', 'not_covered'],
    [['GET:*.d.example/a'], 'GET xd.example/a', 'not_covered'],
    [['GET:*/a'], 'GET localhost/a', 'GET:*/a'],

    [['GET:d.example/a~b'], 'GET d.example/%61%7eb', 'GET:d.example/a~b'],
    [['GET:d.example/a.b'], 'GET d.example/a%2Eb/x', 'GET:d.example/a.b'],
    [['GET:d.example/a:b'], 'GET d.example/a:b', 'GET:d.example/a:b'],
    [['GET:d.example/a:b'], 'GET d.example/a%3Ab', 'not_covered'],
    [['GET:d.example/@a'], 'GET d.example/%40a', 'not_covered'],
    [['GET:d.example/a'], 'GET d.example/a/%c3%a8', 'GET:d.example/a'],
    [['GET:d.example/:id'], 'GET d.example/7', 'not_covered'],
    [['GET:d.example/a'], 'GET d.example/*', 'not_covered'],

    [['GET:d.example/a$'], 'GET d.example/a', 'GET:d.example/a$'],
    [['GET:d.example/a$'], 'GET d.example/a/?x', 'GET:d.example/a$'],
    [['GET:d.example/a$'], 'GET d.example/a/b', 'not_covered'],
    [['GET:d.example/a$'], 'GET d.example/a$', 'not_covered'],
    [['GET:d.example/a$$'], 'GET d.example/a$', 'GET:d.example/a$$'],
    [['GET:d.example/a$$'], 'GET d.example/a%24', 'not_covered'],
    [['GET:d.example/$'], 'GET d.example/', 'GET:d.example/$'],
    [['GET:d.example/$'], 'GET d.example/?x', 'GET:d.example/$'],
    [['GET:d.example/$'], 'GET d.example/a', 'not_covered'],
    [['GET:d.example/$'], 'GET d.example/$', 'not_covered'],
    [['GET:d.example/{}'], 'GET d.example/', 'not_covered'],
    [['GET:d.example/{}'], 'GET d.example/a', 'GET:d.example/{}'],
    [['GET:d.example/{}'], 'GET d.example/a/b', 'GET:d.example/{}'],
    [['GET:d.example/{}$'], 'GET d.example/a/b', 'not_covered'],
    [['GET:d.example/{}$'], 'GET d.example/%7B%7D', 'GET:d.example/{}$'],
    [['GET:d.example/{}$'], 'GET d.example/x%20y', 'GET:d.example/{}$'],
    [['GET:d.example/{}$'], 'GET d.example/*', 'GET:d.example/{}$'],
    [['GET:d.example/{}$'], 'GET d.example/..', 'path_dot_segment'],
    [['GET:d.example/{}/b'], 'GET d.example//b', 'path_empty_segment'],
    [['GET:d.example/{}/b'], 'GET d.example/a%2Fb', 'path_encoded_slash'],
    [['GET:d.example/{}/{}$'], 'GET d.example/a%2Fb', 'path_encoded_slash'],
    [['GET:d.example/{}/b'], 'GET d.example/a/b/c', 'GET:d.example/{}/b'],
    [['GET:d.example/{}/b'], 'GET d.example/a/bc', 'not_covered'],
    [['GET:d.example/{}/b'], 'GET d.example/b', 'not_covered'],
    [['GET:d.example/a/{}/c$'], 'GET d.example/a/b/c', 'GET:d.example/a/{}/c$'],
    [['GET:d.example/a/{}/c$'], 'GET d.example/a/b/b/c', 'not_covered'],

    [['GET:d.example/*'], 'GET d.example/', 'GET:d.example/*'],
    [['GET:d.example/*'], 'GET d.example/?x', 'GET:d.example/*'],
    [['GET:d.example/*'], 'GET d.example/*', 'GET:d.example/*'],
    [['GET:d.example/*'], 'GET d.example/a/b', 'GET:d.example/*'],
    [['*:*/*'], 'DELETE x.example/', '*:*/*'],
    [['*:*/*'], 'GET d.example/../a', 'path_dot_segment'],
    [['*:*/*'], 'GET d.example//', 'path_empty_segment'],
    [['*:*/*'], 'get d.example/a', 'method_invalid'],
    [['*:*/*'], '* d.example/a', 'method_invalid'],
    [['*:*/*'], 'GET */a', 'domain_invalid'],
    [['*:*/*'], 'GET *.example/a', 'domain_invalid'],
    [[], 'GET d.example/../a', 'path_dot_segment'],
    [[], 'get d.example/a', 'method_invalid'],
  ])('answers with %j for %s: %s', (members, line, expected) => {
    expect(decide(members, line)).toBe(expected);
  });

  it.each<[string, readonly string[], string]>([
    ['the longest path', ['*:*/a/b', 'GET:d.a.example/a', 'GET:d.a.example/*'], '*:*/a/b'],
    ['then the exact host', ['*:d.a.example/a', 'GET:*.a.example/a', 'GET:*/a'], '*:d.a.example/a'],
    ['then the longest parent', ['*:*.a.example/a', 'GET:*.example/a'], '*:*.a.example/a'],
    ['then any parent', ['*:*.example/a', 'GET:*/a'], '*:*.example/a'],
    ['then the exact method', ['*:*/a', 'GET:*/a'], 'GET:*/a'],
    ['any path over none', ['*:*/a', 'GET:d.a.example/*'], '*:*/a'],
    [
      'the exact method on the exact host',
      ['*:d.a.example/a', 'GET:d.a.example/a'],
      'GET:d.a.example/a',
    ],
    ['the only one that matches', ['*:*/*', 'GET:d.a.example/b', 'POST:d.a.example/a'], '*:*/*'],
  ])('names the most specific member: %s', (_, members, expected) => {
    expect(decide(members, 'GET d.a.example/a/b/c')).toBe(expected);
    expect(decide([...members].reverse(), 'GET d.a.example/a/b/c')).toBe(expected);
  });

  it('names the member that a plain sort by specificity puts first', () => {
    fc.assert(
      fc.property(someScopes, (members) => {
        const set = ScopeSet.from(members);
        const ranked = members
          .map((member) => ({ member, rank: rank(member) }))
          .sort((a, b) => (a.rank < b.rank ? 1 : -1))
          .map(({ member }) => member);
        for (const point of universeOf(members)) {
          const decision = set.allows(asRequest(point));
          const by = decision.allowed ? String(decision.by) : undefined;
          const best = ranked.find((member) => denotes(member, point));
          if (by !== best) expect({ point, by }).toEqual({ point, by: best });
        }
      }),
      runs(),
    );
  });

  it('decides a request that was already read like the raw one', () => {
    fc.assert(
      fc.property(someScopes, fc.nat(), (members, which) => {
        const set = ScopeSet.from(members);
        const asked = asRequest(oneOf(universeOf(members), which));
        for (const raw of [asked, { ...asked, target: `${asked.target.replace('a', '%61')}?x` }]) {
          const reading = readRequest(raw);
          if (!reading.ok) throw new Error(reading.reason);
          expect(set.allows(reading.request)).toEqual(set.allows(raw));
          expect(set.explain(reading.request)).toEqual(set.explain(raw));
        }
      }),
      runs(),
    );
  });

  it('refuses a look-alike of a read request', () => {
    const fake = { method: 'GET', domain: 'd.example', path: 'a' } as unknown as ReadRequest;

    expect(decide(['*:*/*'], fake as unknown as ScopeRequest)).toBe('path_not_absolute');
  });

  it.each([undefined, null, 7, ['GET'], { toString: () => 'GET' }, hostile()])(
    'refuses a field of another type: case %#',
    (value) => {
      const odd = value as unknown as string;
      const good = request('GET d.example/a');

      expect(decide(['*:*/*'], { ...good, method: odd })).toBe('method_invalid');
      expect(decide(['*:*/*'], { ...good, domain: odd })).toBe('domain_invalid');
      expect(decide(['*:*/*'], { ...good, target: odd })).toBe('path_not_absolute');
    },
  );

  it('is not confused by names of Object.prototype', () => {
    const names = Object.getOwnPropertyNames(Object.prototype);
    const plain = ScopeSet.from(['GET:d.example/a', '*:*.b.example/a/b']);
    for (const name of names) {
      expect(decide(plain, `GET d.example/${name}`)).toBe('not_covered');
      expect(decide(plain, `GET x.b.example/a/${name}`)).toBe('not_covered');
      expect(decide(plain, `GET d.example/a/${name}`)).toBe('GET:d.example/a');
      expect(decide([`GET:d.example/${name}`], `GET d.example/${name}/x`)).toBe(
        `GET:d.example/${name}`,
      );
      if (/_/.test(name)) continue;
      const host = name.toLowerCase();
      expect(decide(plain, `GET ${host}/a`)).toBe('not_covered');
      expect(decide(plain, `${name.toUpperCase()} d.example/a`)).toBe('not_covered');
      expect(decide([`GET:${host}/a`], `GET ${name}/a`)).toBe(`GET:${host}/a`);
      expect(decide([`GET:*.${host}/a`], `GET x.${name}/a`)).toBe(`GET:*.${host}/a`);
      expect(decide([`${name.toUpperCase()}:*/a`], `${name.toUpperCase()} d.example/a`)).toBe(
        `${name.toUpperCase()}:*/a`,
      );
    }
  });

  it('keeps allowing a request when a scope is added', () => {
    fc.assert(
      fc.property(someScopes, anyScope, (members, more) => {
        const before = ScopeSet.from(members);
        const after = ScopeSet.from([...members, more]);
        const lost = universeOf([...members, more])
          .map(asRequest)
          .filter((asked) => before.allows(asked).allowed && !after.allows(asked).allowed);
        expect(lost).toEqual([]);
      }),
      runs(),
    );
  });

  it('compares long paths and long hosts to their end', () => {
    const set = ScopeSet.from([`GET:*/${Array(32).fill('a').join('/')}`, 'POST:*.a.example/*']);

    expect(set.allows(request(`GET d.example${'/a'.repeat(31)}`)).allowed).toBe(false);
    expect(set.allows(request(`GET d.example${'/a'.repeat(32)}`)).allowed).toBe(true);
    expect(set.allows(request(`GET d.example${'/a'.repeat(4000)}`)).allowed).toBe(true);
    expect(set.allows(request(`POST ${'b.'.repeat(122)}a.example/`)).allowed).toBe(true);
    expect(set.allows(request(`POST ${'b.'.repeat(122)}c.example/`)).allowed).toBe(false);
  });
});

describe('a ScopeSet that is queried repeatedly', () => {
  it('gives the same answers after queries for many domains and methods', () => {
    const set = ScopeSet.from(['GET:d.example/a', '*:*.e.example/a', 'POST:*/a/b']);
    const name = (i: number): string => String.fromCharCode(65 + (i % 26), 65 + Math.floor(i / 26));
    const asked = Array.from({ length: 600 }, (_, i) => [
      [`GET h${i}.example/a`, 'not_covered'],
      [`GET h${i}.e.example/a`, '*:*.e.example/a'],
      [`POST h${i}.e.example/a/b`, 'POST:*/a/b'],
      [`${name(i)} d.example/a`, 'not_covered'],
      [`${name(i)} x.e.example/a`, '*:*.e.example/a'],
      ['GET d.example/a', 'GET:d.example/a'],
      ['GET D.example/a', 'GET:d.example/a'],
      ['GET */a', 'domain_invalid'],
      ['GET /a', 'domain_invalid'],
    ]).flat() as [string, string][];

    for (const round of [asked, [...asked].reverse()]) {
      const wrong = round.filter(([line, expected]) => decide(set, line) !== expected);
      expect(wrong).toEqual([]);
    }
  });

  it('answers like a fresh set', () => {
    fc.assert(
      fc.property(someScopes, fc.array(anyScope, { maxLength: 5 }), (members, scopes) => {
        const asked = ScopeSet.from(members);
        asked.minimize();
        const answers = scopes.map((scope) => asked.covers(scope));
        const again = scopes.map((scope) => asked.covers(scope));
        expect(again).toEqual(answers);
        expect(answers).toEqual(scopes.map((scope) => ScopeSet.from(members).covers(scope)));
      }),
      runs(),
    );
  });
});

describe('ScopeSet.explain', () => {
  it('names the scope that allows a request', () => {
    const set = ScopeSet.from(['*:*/*', 'GET:d.example/a']);

    expect(plainly(set.explain(request('GET d.example/a/b')))).toEqual({
      allowed: true,
      by: 'GET:d.example/a',
      needed: 'GET:d.example/a/b$',
      known: true,
    });
  });

  it('explains a scope like a request', () => {
    const set = ScopeSet.from(['GET:d.example/a']);

    for (const need of ['GET:d.example/a/b', parseScope('GET:d.example/a/b')]) {
      expect(plainly(set.explain(need))).toMatchObject({ allowed: true, by: 'GET:d.example/a' });
    }
    expect(plainly(set.explain('*:d.example/a'))).toMatchObject({
      allowed: false,
      nearest: { scope: 'GET:d.example/a', failed: 'method' },
      smallest: '*:d.example/a',
    });
    expect(() => set.explain('get:d.example/a')).toThrow(ScopeError);
  });

  it('reports whether a catalog knows a request, and suggests similar scopes if not', () => {
    const catalog = ScopeCatalog.from(['GET:d.example/orders', 'POST:d.example/orders']);
    const set = ScopeSet.from(['GET:d.example/orders']);

    expect(plainly(set.explain(request('POST d.example/orders/7'), catalog))).toMatchObject({
      needed: 'POST:d.example/orders',
      smallest: 'POST:d.example/orders/7$',
      known: true,
      suggestions: [],
    });
    expect(plainly(set.explain(request('POST d.example/order'), catalog))).toMatchObject({
      needed: 'POST:d.example/order$',
      known: false,
      suggestions: ['POST:d.example/orders', 'GET:d.example/orders'],
    });
  });

  it('checks a scope against the catalog, and treats every scope as known without one', () => {
    const catalog = ScopeCatalog.from(['GET:d.example/orders', 'POST:d.example/orders']);
    const set = ScopeSet.from(['GET:d.example/orders']);

    expect(plainly(set.explain('POST:d.example/orders/7', catalog))).toMatchObject({
      needed: 'POST:d.example/orders/7',
      known: true,
      suggestions: [],
    });
    expect(plainly(set.explain('GET:d.example/order', catalog))).toMatchObject({
      needed: 'GET:d.example/order',
      known: false,
      suggestions: ['GET:d.example/orders', 'POST:d.example/orders'],
    });
    expect(plainly(set.explain('GET:d.example/order'))).toMatchObject({
      needed: 'GET:d.example/order',
      known: true,
      suggestions: [],
    });
  });

  it.each<[string, unknown]>([
    ['an object', {}],
    ['a list', ['GET:d.example/a']],
    ['a proxy that throws', hostile()],
  ])('refuses %s as a catalog', (_, catalog) => {
    const set = ScopeSet.from(['GET:d.example/a']);

    for (const need of [request('GET d.example/a'), 'GET:d.example/a', 'GET:d.example/b']) {
      expect(codeOf(() => set.explain(need, catalog as KnownScopes))).toBe('scopes_required');
    }
  });

  it.each<[readonly string[], string, string, NearMiss['failed'], string]>([
    [['GET:d.example/a'], 'POST d.example/a/b', 'GET:d.example/a', 'method', 'POST:d.example/a/b$'],
    [['GET:d.example/a'], 'GET e.example/a', 'GET:d.example/a', 'domain', 'GET:e.example/a$'],
    [['GET:d.example/a'], 'GET d.example/b', 'GET:d.example/a', 'path', 'GET:d.example/b$'],
    [['GET:d.example/a'], 'GET d.example/', 'GET:d.example/a', 'path', 'GET:d.example/$'],
    [['GET:d.example/a$'], 'GET d.example/a/b', 'GET:d.example/a$', 'path', 'GET:d.example/a/b$'],
    [['GET:d.example/{}/b'], 'GET d.example/a', 'GET:d.example/{}/b', 'path', 'GET:d.example/a$'],
    [
      ['GET:d.example/b', 'GET:e.example/b', 'POST:d.example/a'],
      'GET d.example/a',
      'GET:d.example/b',
      'path',
      'GET:d.example/a$',
    ],
    [
      ['GET:e.example/b', 'POST:d.example/a'],
      'GET d.example/a',
      'POST:d.example/a',
      'method',
      'GET:d.example/a$',
    ],
    [['*:d.example/a'], 'GET d.example/x%20y/a', '*:d.example/a', 'path', 'GET:d.example/{}/a$'],
  ])(
    'names from %j for %s the nearest member %s, whose %s does not match',
    (members, line, nearest, failed, smallest) => {
      expect(plainly(ScopeSet.from(members).explain(request(line)))).toEqual({
        allowed: false,
        reason: 'not_covered',
        nearest: { scope: nearest, failed },
        needed: smallest,
        smallest,
        known: true,
        suggestions: [],
      });
    },
  );

  it('names the member whose {} does not match a segment that a catalog entry names', () => {
    const catalog = ScopeCatalog.from(['GET:d.example/a/{}$', 'GET:d.example/a/b$']);
    const set = ScopeSet.from(['GET:d.example/a/{}$', 'POST:d.example/a/b$']);
    const explained = (target: string): unknown => {
      const reading = catalog.readRequest({ method: 'GET', domain: 'd.example', target });
      return reading.ok && plainly(set.explain(reading.request, catalog));
    };

    expect(explained('/a/b')).toEqual({
      allowed: false,
      reason: 'not_covered',
      nearest: { scope: 'GET:d.example/a/{}$', failed: 'path' },
      needed: 'GET:d.example/a/b$',
      smallest: 'GET:d.example/a/b$',
      known: true,
      suggestions: [],
    });
    expect(explained('/a/c')).toEqual({
      allowed: true,
      by: 'GET:d.example/a/{}$',
      needed: 'GET:d.example/a/{}$',
      known: true,
    });
  });

  it('names no nearest member in an empty set, and only the reason for an ambiguous request', () => {
    expect(plainly(ScopeSet.from([]).explain(request('GET d.example/a')))).toEqual({
      allowed: false,
      reason: 'not_covered',
      needed: 'GET:d.example/a$',
      smallest: 'GET:d.example/a$',
      known: true,
      suggestions: [],
    });
    expect('nearest' in ScopeSet.from([]).explain('GET:d.example/a')).toBe(false);
    expect(ScopeSet.from(['*:*/*']).explain(request('GET d.example/a/..'))).toEqual({
      allowed: false,
      reason: 'path_dot_segment',
    });
  });

  it('decides like allows, and names a smallest scope that would be enough', () => {
    fc.assert(
      fc.property(someScopes, fc.nat(), (members, which) => {
        const set = ScopeSet.from(members);
        const asked = asRequest(oneOf(universeOf(members), which));
        const answer = set.explain(asked);
        expect(answer.allowed).toBe(set.allows(asked).allowed);
        if (answer.allowed || answer.reason !== 'not_covered') return;
        expect(answer.nearest === undefined).toBe(members.length === 0);
        expect(decide([String(answer.smallest)], asked)).toBe(String(answer.smallest));
        expect(String(answer.smallest)).toMatch(/\$$/);
        expect(answer.needed).toEqual(answer.smallest);
      }),
      runs(),
    );
  });
});

describe('ScopeSet.nearestTo', () => {
  it('returns undefined if a member covers the scope or the set is empty', () => {
    const set = ScopeSet.from(['GET:d.example/a', 'GET:d.example/b', 'POST:d.example/a']);

    expect(set.nearestTo('POST:d.example/a/b')).toBeUndefined();
    expect(set.nearestTo('PUT:d.example/b')).toEqual({
      scope: parseScope('GET:d.example/b'),
      failed: 'method',
    });
    expect(ScopeSet.from([]).nearestTo('GET:d.example/a')).toBeUndefined();
    expect(() => set.nearestTo('get:d.example/a')).toThrow(ScopeError);
  });
});

describe('ScopeSet.minimize', () => {
  it.each<[readonly string[], readonly string[]]>([
    [[], []],
    [['GET:d.example/a'], ['GET:d.example/a']],
    [['GET:d.example/a/b', 'GET:d.example/a'], ['GET:d.example/a']],
    [
      ['GET:d.example/ab', 'GET:d.example/a'],
      ['GET:d.example/a', 'GET:d.example/ab'],
    ],
    [['*:*/*', 'GET:d.example/a', 'POST:*/a'], ['*:*/*']],
    [
      ['GET:*.example/a', 'GET:example/a', 'GET:d.example/a'],
      ['GET:*.example/a', 'GET:example/a'],
    ],
    [['*:d.example/a', 'GET:d.example/a', 'HEAD:d.example/a/b'], ['*:d.example/a']],
    [
      ['*:d.example/a', 'GET:*/a'],
      ['*:d.example/a', 'GET:*/a'],
    ],
    [['GET:*.example/*', 'GET:*.d.example/*', 'GET:*.d.example/a'], ['GET:*.example/*']],
    [['GET:d.example/a', 'GET:d.example/a$'], ['GET:d.example/a']],
    [
      ['GET:d.example/a$', 'GET:d.example/a/{}'],
      ['GET:d.example/a$', 'GET:d.example/a/{}'],
    ],
    [['GET:d.example/{}', 'GET:d.example/a', 'GET:d.example/a/{}$'], ['GET:d.example/{}']],
    [
      ['GET:d.example/{}/b', 'GET:d.example/a/{}', 'GET:d.example/a/b'],
      ['GET:d.example/a/{}', 'GET:d.example/{}/b'],
    ],
    [['GET:d.example/*', 'GET:d.example/$', 'GET:d.example/{}'], ['GET:d.example/*']],
  ])('reduces %j to %j', (members, expected) => {
    expect(ScopeSet.from(members).minimize().toArray()).toEqual(expected);
  });

  it('keeps exactly the members that no other covers, allows the same, and is idempotent', () => {
    fc.assert(
      fc.property(someScopes, (members) => {
        const least = ScopeSet.from(members).minimize().toArray();
        expect(ScopeSet.from(least).minimize().toArray()).toEqual(least);
        expect(least).toEqual([...least].sort());
        for (const a of least) {
          expect(least.filter((b) => covers(b, a))).toEqual([a]);
        }
        const unique = [...new Set(members)];
        expect(least).toEqual(
          unique.filter((a) => unique.filter((b) => covers(b, a)).length === 1).sort(),
        );
        const changed = universeOf(members).filter(
          (point) => anyDenotes(least, point) !== anyDenotes(members, point),
        );
        expect(changed).toEqual([]);
      }),
      runs(),
    );
  });

  it('does not depend on order, duplicates or covered scopes', () => {
    const shuffled = someScopes.chain((members) =>
      fc.tuple(
        fc.constant(members),
        fc.shuffledSubarray(members, { minLength: members.length }),
        fc.subarray(members),
      ),
    );
    fc.assert(
      fc.property(shuffled, ([members, mixed, again]) => {
        const below = again.map((member) =>
          /\/\*$|\$$/.test(member) ? member : `${member}/fresh-segment`,
        );
        expect(
          ScopeSet.from([...mixed, ...again, ...below])
            .minimize()
            .toArray(),
        ).toEqual(ScopeSet.from(members).minimize().toArray());
      }),
      runs(),
    );
  });

  it('gives equal results exactly if each set covers all members of the other', () => {
    fc.assert(
      fc.property(someScopes, someScopes, fc.boolean(), (a, b, isPadded) => {
        const other = isPadded ? [...a, ...ScopeSet.from(a).intersection(b)].map(String) : b;
        const isSame =
          a.every((one) => other.some((two) => covers(two, one))) &&
          other.every((one) => a.some((two) => covers(two, one)));
        const left = ScopeSet.from(a);
        const right = ScopeSet.from(other);
        expect(left.equals(right)).toBe(isSame);
        expect(String(left.minimize().toArray()) === String(right.minimize().toArray())).toBe(
          isSame,
        );
      }),
      runs(),
    );
  });

  it('halves a set of 4000 scopes of which half are covered', () => {
    const many = Array.from({ length: 2000 }, (_, i) => `GET:d${i % 100}.example/a/b${i}`);
    const set = ScopeSet.from([...many, ...many.map((text) => `${text}/c`)]);

    expect(set.size).toBe(4000);
    expect(set.minimize().size).toBe(2000);
    expect(set.missing(many)).toEqual([]);
    expect(set.diff(many)).toEqual({ added: [], removed: [] });
  });
});

describe('the union and the intersection of a ScopeSet', () => {
  const set = (scopes: readonly string[]): ScopeSet => ScopeSet.from(scopes);

  it.each<[readonly string[], readonly string[], readonly string[], readonly string[]]>([
    [[], [], [], []],
    [['GET:d.example/a'], [], ['GET:d.example/a'], []],
    [['GET:d.example/a'], ['POST:d.example/a'], ['GET:d.example/a', 'POST:d.example/a'], []],
    [['GET:d.example/a'], ['GET:d.example/a/b'], ['GET:d.example/a'], ['GET:d.example/a/b']],
    [
      ['*:d.example/a'],
      ['GET:*.example/a'],
      ['*:d.example/a', 'GET:*.example/a'],
      ['GET:d.example/a'],
    ],
    [
      ['GET:*/*', 'POST:*/*'],
      ['*:d.example/a'],
      ['*:d.example/a', 'GET:*/*', 'POST:*/*'],
      ['GET:d.example/a', 'POST:d.example/a'],
    ],
    [
      ['GET:d.example/a/{}'],
      ['GET:d.example/{}/b$', 'GET:d.example/c'],
      ['GET:d.example/a/{}', 'GET:d.example/c', 'GET:d.example/{}/b$'],
      ['GET:d.example/a/b$'],
    ],
    [['GET:d.example/a$'], ['GET:d.example/a'], ['GET:d.example/a'], ['GET:d.example/a$']],
  ])('of %j and %j are %j and %j', (a, b, union, intersection) => {
    expect(set(a).union(b).toArray()).toEqual(union);
    expect(set(a).intersection(b).toArray()).toEqual(intersection);
  });

  it('allow the requests that either set allows and that both sets allow', () => {
    fc.assert(
      fc.property(someScopes, someScopes, (a, b) => {
        const union = set(a).union(b).toArray();
        const intersection = set(a).intersection(b).toArray();
        const wrong = universeOf([...a, ...b]).filter((point) => {
          const [inA, inB] = [anyDenotes(a, point), anyDenotes(b, point)];
          return (
            anyDenotes(union, point) !== (inA || inB) ||
            anyDenotes(intersection, point) !== (inA && inB)
          );
        });
        expect(wrong).toEqual([]);
      }),
      runs(),
    );
  });

  it('of many scopes give as the intersection the meets of all pairs', () => {
    fc.assert(
      fc.property(manyScopes, manyScopes, (a, b) => {
        const meets = a.flatMap((one) => b.flatMap((other) => meet(one, other) ?? []));
        expect(set(a).intersection(b).toArray()).toEqual(ScopeSet.from(meets).minimize().toArray());
      }),
      runs(),
    );
  });

  it('form a distributive lattice', () => {
    fc.assert(
      fc.property(someScopes, someScopes, someScopes, (x, y, z) => {
        const [a, b, c] = [set(x), set(y), set(z)];
        const same = (left: ScopeSet, right: ScopeSet): void =>
          expect(left.toArray()).toEqual(right.toArray());
        same(a.union(b), b.union(a));
        same(a.intersection(b), b.intersection(a));
        same(a.union(b).union(c), a.union(b.union(c)));
        same(a.intersection(b).intersection(c), a.intersection(b.intersection(c)));
        same(a.union(a), a.minimize());
        same(a.intersection(a), a.minimize());
        same(a.union(a.intersection(b)), a.minimize());
        same(a.intersection(a.union(b)), a.minimize());
        same(a.intersection(b.union(c)), a.intersection(b).union(a.intersection(c)));
        same(a.union(b.intersection(c)), a.union(b).intersection(a.union(c)));
        same(a.union([]), a.minimize());
        same(a.intersection([]), set([]));
        same(a.union(['*:*/*']), set(['*:*/*']));
        same(a.intersection(['*:*/*']), a.minimize());
      }),
      runs(),
    );
  });
});

describe('ScopeSet.missing and ScopeSet.diff', () => {
  it.each<[readonly string[], readonly string[], readonly string[]]>([
    [[], [], []],
    [[], ['GET:d.example/a'], ['GET:d.example/a']],
    [['GET:d.example/a'], ['GET:d.example/a/b'], []],
    [['GET:d.example/a/b'], ['GET:d.example/a'], ['GET:d.example/a']],
    [
      ['GET:d.example/a'],
      ['POST:d.example/b', 'GET:d.example/a', 'HEAD:d.example/a', 'POST:d.example/b'],
      ['HEAD:d.example/a', 'POST:d.example/b'],
    ],
  ])('with %j granted and %j required report %j as missing', (granted, required, expected) => {
    expect(ScopeSet.from(granted).missing(required)).toEqual(expected);
  });

  it.each<[readonly string[], readonly string[], readonly string[], readonly string[]]>([
    [[], [], [], []],
    [['GET:d.example/a'], ['GET:d.example/a', 'GET:d.example/a/b'], [], []],
    [['GET:d.example/a'], ['GET:d.example/b'], ['GET:d.example/b'], ['GET:d.example/a']],
    [['GET:d.example/a/b'], ['GET:d.example/a'], ['GET:d.example/a'], []],
    [['GET:d.example/a'], ['GET:d.example/a/b'], [], ['GET:d.example/a']],
    [[], ['*:*/*', 'GET:d.example/a'], ['*:*/*'], []],
  ])('from %j to %j adds %j and removes %j', (before, after, added, removed) => {
    expect(ScopeSet.from(before).diff(after)).toEqual({ added, removed });
  });

  it('list as missing exactly the required scopes that the set does not cover', () => {
    fc.assert(
      fc.property(someScopes, someScopes, (granted, required) => {
        const set = ScopeSet.from(granted);
        const missing = set.missing(required);
        expect(missing).toEqual(
          [...new Set(required)].filter((scope) => !set.covers(scope)).sort(),
        );
        const isSubset = universeOf([...granted, ...required]).every(
          (point) => !anyDenotes(required, point) || anyDenotes(granted, point),
        );
        expect(missing.every((scope) => allowAll(granted, scope))).toBe(isSubset);
      }),
      runs(),
    );
  });

  it('list every change as added or removed, and nothing for equal sets', () => {
    fc.assert(
      fc.property(someScopes, someScopes, (before, after) => {
        const { added, removed } = ScopeSet.from(before).diff(after);
        expect(ScopeSet.from(after).diff(before)).toEqual({ added: removed, removed: added });
        expect(ScopeSet.from(before).equals(after)).toBe(added.length + removed.length === 0);
        const unreported = universeOf([...before, ...after]).filter((point) => {
          const [was, is] = [anyDenotes(before, point), anyDenotes(after, point)];
          if (was === is) return false;
          return !anyDenotes(is ? added : removed, point);
        });
        expect(unreported).toEqual([]);
      }),
      runs(),
    );
  });
});

describe('deeply nested scopes', () => {
  /** Many labels and segments, but of few kinds, so that most scopes cover another one. */
  const deepScope = fc
    .tuple(
      fc.constantFrom('*', 'GET', 'PUT'),
      fc.tuple(fc.boolean(), fc.nat(30), fc.constantFrom('', 'b.')),
      fc.tuple(fc.nat(30), fc.constantFrom('', '/b', '/{}', '$')),
    )
    .map(([method, [isParent, labels, first], [segments, last]]) => {
      const domain = `${isParent ? '*.' : ''}${first}${'a.'.repeat(labels)}example`;
      return parseScope(`${method}:${domain}/a${'/a'.repeat(segments)}${last}`);
    });
  const deepScopes = fc.uniqueArray(deepScope, { minLength: 20, maxLength: 60, selector: String });
  /** The scopes that no other scope covers, found by comparing all pairs. */
  const uncovered = (scopes: readonly Scope[], others: readonly Scope[]): string[] =>
    scopes
      .filter((scope) => !others.some((other) => other !== scope && covers(other, scope)))
      .map(String)
      .sort();

  it('minimize like a comparison of all pairs', () => {
    fc.assert(
      fc.property(deepScopes, (members) => {
        expect(ScopeSet.from(members).minimize().toArray()).toEqual(uncovered(members, members));
      }),
      runs(),
    );
  });

  it('miss the scopes that a comparison of all pairs does not find', () => {
    fc.assert(
      fc.property(deepScopes, deepScopes, (granted, required) => {
        expect(ScopeSet.from(granted).missing(required)).toEqual(uncovered(required, granted));
      }),
      runs(),
    );
  });
});

/** A text that sorts by specificity: path, end, literals, host, parent, then method. */
function rank(scope: string): string {
  const { method, domain, path } = parseScope(scope);
  const isClosed = path.endsWith('$');
  const segments = path === '*' || path === '$' ? [] : path.replace(/\$$/, '').split('/');
  const literals = segments.map((segment) => (segment === '{}' ? 0 : 1)).join('');
  const labels = domain === '*' ? 0 : domain.split('.').length;
  return [
    String(segments.length).padStart(2, '0'),
    isClosed ? 1 : 0,
    literals,
    domain.startsWith('*') ? 0 : 1,
    String(labels).padStart(3, '0'),
    method === '*' ? 0 : 1,
  ].join();
}

function plainly(value: object): unknown {
  return JSON.parse(JSON.stringify(value));
}

function* one(text: string): Generator<string> {
  yield text;
}

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof ScopeError) return error.code;
    throw error;
  }
  return 'no error';
}
