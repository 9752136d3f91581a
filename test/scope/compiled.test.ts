import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type CompiledScopes, patternsOf } from '../../src/scope/compiled.ts';
import { parseScope, type Scope } from '../../src/scope/grammar.ts';
import { ScopeSet } from '../../src/scope/matcher.ts';
import { LAW } from './support.ts';

type Compiling = typeof import('../../src/scope/compiled.ts');
type Matching = typeof import('../../src/scope/matcher.ts');

function scopesOf(...paths: readonly string[]): Scope[] {
  return paths.map((path) => parseScope(`GET:d.example/${path}`));
}

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

function heapBytes(): number {
  gc();
  return process.memoryUsage().heapUsed;
}

/** Copies in which paths of the same letters have the same hash, as `ab`, `ba` and `abcc`. */
async function weakCopies(): Promise<Compiling & Matching> {
  vi.resetModules();
  const random = vi.spyOn(Math, 'random').mockReturnValue(0);
  const compiling = await import('../../src/scope/compiled.ts');
  const matching = await import('../../src/scope/matcher.ts');
  random.mockRestore();
  return { ...compiling, ...matching };
}

describe('scopes whose hashes fall together', () => {
  const words = ['a', 'b', 'ab', 'ba', 'aa', 'aba', 'bab', 'abb', 'bba', 'aab', 'aaa'];
  const paths = ['*', ...words, ...words.flatMap((word) => words.map((end) => `${word}/${end}`))];
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
  ])('%s is not taken for %s', (held, asked) => {
    const set = weak.ScopeSet.from([held]);

    expect(set.covers(held)).toBe(true);
    expect(set.covers(asked)).toBe(false);
    expect(weak.ScopeSet.from([held, asked]).toArray()).toEqual([held, asked].sort());
    expect(weak.ScopeSet.from([held, asked]).minimize().size).toBe(2);
  });

  it('are told apart by their texts, whatever is held and asked', () => {
    const some = fc.subarray(all, { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(some, some, (held, asked) => {
        const set = ScopeSet.from(held);
        const weakSet = weak.ScopeSet.from(held);
        expect(asked.map((scope) => weakSet.coverOf(scope)?.toString())).toEqual(
          asked.map((scope) => set.coverOf(scope)?.toString()),
        );
      }),
      LAW,
    );
  });

  it.each([
    [['ab'], ['ba']],
    [['aa'], ['aa', 'ab', 'ba']],
    [['aa', 'ab', 'ba'], ['aa']],
    [
      ['aa', 'xy'],
      ['aa', 'yx'],
    ],
    [[], ['ab', 'ba']],
  ])('nor is one set taken for another: %j and %j', (first, second) => {
    const a = weak.compile(scopesOf(...first));
    const b = weak.compile(scopesOf(...second));

    expect(b).not.toBe(a);
    expect(b.isOf(scopesOf(...second))).toBe(true);
    expect(b.isOf(scopesOf(...first))).toBe(false);
  });
});

describe('compile', () => {
  it('gives equal sets the same, and no other', async () => {
    const { compile } = await weakCopies();
    const made = compile(scopesOf('a', 'b'));

    expect(compile(scopesOf('a', 'b'))).toBe(made);
    expect(compile(scopesOf('a', 'c'))).not.toBe(made);
    expect(compile(scopesOf('a'))).not.toBe(made);
  });

  it('lets a turn that compiles very many share the first thousand, and the next one more', async () => {
    vi.resetModules();
    const { compile } = await import('../../src/scope/compiled.ts');
    const kept: CompiledScopes[] = [];
    const isShared = (path: string): boolean => {
      const made = compile(scopesOf(path));
      kept.push(made);
      return compile(scopesOf(path)) === made;
    };
    const shared = Array.from({ length: 1003 }, (_, i) => isShared(`a${i}`));

    // The second time counts as well, where it is made anew.
    expect(shared.indexOf(false)).toBe(1000);
    expect(shared.lastIndexOf(true)).toBe(999);
    await Promise.resolve();
    expect(isShared('b')).toBe(true);
    expect(compile(scopesOf('a0'))).toBe(kept[0]);
  });
});

describe('what nobody uses any more', () => {
  /** A copy in which a test decides what is collected, and when the copy is told of it. */
  async function collectedByHand() {
    const collected = new Set<object>();
    const registered: { readonly value: object; readonly key: unknown }[] = [];
    let tell: (key: unknown) => void = () => {};
    class Reference {
      readonly #value: object;
      constructor(value: object) {
        this.#value = value;
      }
      deref(): object | undefined {
        return collected.has(this.#value) ? undefined : this.#value;
      }
    }
    class Registry {
      constructor(onCollected: typeof tell) {
        tell = onCollected;
      }
      register(value: object, key: unknown): void {
        registered.push({ value, key });
      }
    }
    vi.resetModules();
    vi.stubGlobal('WeakRef', Reference);
    vi.stubGlobal('FinalizationRegistry', Registry);
    const { compile } = await import('../../src/scope/compiled.ts');
    const tellOf = (value: object): void =>
      tell(registered.find((entry) => entry.value === value)?.key);
    return { compile, collected, tellOf };
  }
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  it('is made anew, and no late word of it takes away what came in its place', async () => {
    const { compile, collected, tellOf } = await collectedByHand();
    const first = compile(scopesOf('a'));
    collected.add(first);
    const second = compile(scopesOf('a'));
    tellOf(first);

    expect(second).not.toBe(first);
    expect(compile(scopesOf('a'))).toBe(second);
    collected.add(second);
    tellOf(second);
    expect(() => tellOf(second)).not.toThrow();
    expect(compile(scopesOf('a'))).not.toBe(second);
  });
});

describe('find', () => {
  it('keeps in memory only some of the names that it was asked about', () => {
    const set = ScopeSet.from(['GET:d.example/a']);
    const ask = (round: number, count: number): void => {
      for (let i = 0; i < count; i++) set.covers(`GET:r${round}n${i}.${'x'.repeat(60)}.example/a`);
    };
    ask(0, 2000);
    const before = heapBytes();
    ask(1, 50_000);

    // Kept, they would be some 20 MB.
    expect(heapBytes() - before).toBeLessThan(5_000_000);
  });
});

describe('patternsOf', () => {
  it.each([
    ['*', ['*']],
    ['x', ['x', '*']],
    ['d.example', ['d.example', '*.example', '*']],
    ['a.d.example', ['a.d.example', '*.d.example', '*.example', '*']],
    ['*.example', ['*.example', '*']],
    ['*.d.example', ['*.d.example', '*.example', '*']],
  ])('covers %s by %j', (domain, patterns) => {
    expect(patternsOf(domain)).toEqual(patterns);
  });
});
