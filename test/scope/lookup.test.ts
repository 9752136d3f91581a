import fc from 'fast-check';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ScopeSet } from '../../src/scope/set.ts';
import { runs } from '../laws.ts';
import { heapBytes } from './support.ts';

type Compiling = typeof import('../../src/scope/lookup.ts');
type Matching = typeof import('../../src/scope/set.ts');

/** Copies of the modules in which paths such as `ab`, `ba` and `abcc` have the same hash. */
async function weakCopies(): Promise<Compiling & Matching> {
  vi.resetModules();
  const random = vi.spyOn(Math, 'random').mockReturnValue(0);
  const compiling = await import('../../src/scope/lookup.ts');
  const matching = await import('../../src/scope/set.ts');
  random.mockRestore();
  return { ...compiling, ...matching };
}

describe('scopes whose hashes collide', () => {
  const words = ['a', 'b', 'ab', 'ba', 'aa', 'aba', 'bab', 'abb', 'bba', 'aab', 'aaa'];
  const open = [
    ...['{}', ...words],
    ...words.flatMap((word) => ['{}', ...words].map((end) => `${word}/${end}`)),
    ...['{}', ...words].map((end) => `{}/${end}`),
  ];
  const paths = ['*', '$', ...open, ...open.map((path) => `${path}$`)];
  const all = ['GET', '*'].flatMap((method) =>
    ['d.example', '*.example'].flatMap((domain) =>
      paths.map((path) => `${method}:${domain}/${path}`),
    ),
  );
  let weak: Compiling & Matching;
  beforeAll(async () => {
    weak = await weakCopies();
  });

  it.each([
    ['GET:d.example/ab', 'GET:d.example/ba'],
    ['GET:d.example/ab', 'GET:d.example/abaa'],
    ['GET:d.example/abaa', 'GET:d.example/ab'],
    ['GET:d.example/a', 'GET:d.example/abb'],
    ['GET:d.example/ab/c', 'GET:d.example/ba/c'],
    ['GET:d.example/a$', 'GET:d.example/a'],
    ['GET:d.example/$', 'GET:d.example/*'],
    ['GET:d.example/{}$', 'GET:d.example/{}'],
    ['GET:d.example/aa', 'GET:d.example/{}'],
    ['GET:d.example/{}/aa', 'GET:d.example/aa/{}'],
    ['GET:d.example/{}/a$', 'GET:d.example/a/{}$'],
  ])('%s is not mistaken for %s', (held, asked) => {
    const set = weak.ScopeSet.from([held]);

    expect(set.covers(held)).toBe(true);
    expect(set.covers(asked)).toBe(false);
    expect(weak.ScopeSet.from([held, asked]).toArray()).toEqual([held, asked].sort());
    expect(weak.ScopeSet.from([held, asked]).minimize().toArray()).toEqual(
      ScopeSet.from([held, asked]).minimize().toArray(),
    );
  });

  it.each([
    [['GET:d.example/{}', 'GET:d.example/{}$'], '/b', 'GET:d.example/{}$'],
    [['GET:d.example/{}$', 'GET:d.example/aa'], '/aa', 'GET:d.example/{}$'],
    [['GET:d.example/{}/aa', 'GET:d.example/aa/{}'], '/aa/aa', 'GET:d.example/aa/{}'],
    [['GET:d.example/{}/{}$', 'GET:d.example/{}/aa$'], '/aa/aa', 'GET:d.example/{}/aa$'],
    [['GET:d.example/{}/{}$', 'GET:d.example/{}/aa'], '/aa/aa/b', 'GET:d.example/{}/aa'],
  ])('from %j, the most specific scope allows %s: %s', (held, target, by) => {
    for (const members of [held, [...held].reverse()]) {
      const decision = weak.ScopeSet.from(members).allows({
        method: 'GET',
        domain: 'd.example',
        target,
      });
      expect(decision.allowed && String(decision.by)).toBe(by);
    }
  });

  it('are distinguished by their text', () => {
    const some = fc.subarray(all, { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(some, some, (held, asked) => {
        const set = ScopeSet.from(held);
        const weakSet = weak.ScopeSet.from(held);
        expect(asked.map((scope) => weakSet.coverOf(scope)?.toString())).toEqual(
          asked.map((scope) => set.coverOf(scope)?.toString()),
        );
      }),
      runs(),
    );
  });
});

describe('ScopeSet.covers', () => {
  it('caches only some of the host names it is asked about', () => {
    const set = ScopeSet.from(['GET:d.example/a']);
    const ask = (round: number, count: number): void => {
      for (let i = 0; i < count; i++) set.covers(`GET:r${round}n${i}.${'x'.repeat(60)}.example/a`);
    };
    ask(0, 2000);
    const before = heapBytes();
    ask(1, 50_000);

    // All of them would take about 20 MB.
    expect(heapBytes() - before).toBeLessThan(5_000_000);
  });
});
