import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KnownScopes } from '../../src/scope/explain.ts';
import * as scope from '../../src/scope/index.ts';
import { runs } from '../laws.ts';
import { hostile, revoked } from './support.ts';

const { ScopeCatalog, ScopeError, ScopeSet } = scope;

type Callable = (...values: unknown[]) => unknown;

const set = ScopeSet.from(['GET:d.example/a', '*:*.example/a/b']);
const catalog = ScopeCatalog.from(['GET:d.example/a', 'POST:a.example/a/b']);
/** Each function, and each method of each class, as a function that takes anything. */
const calls: Readonly<Record<string, Callable>> = {
  ...functionsOf('', scope, Object.keys(scope)),
  ...functionsOf('ScopeSet.', ScopeSet, ['from']),
  ...functionsOf('ScopeSet#', set, methodsOf(ScopeSet.prototype)),
  ...functionsOf('ScopeCatalog.', ScopeCatalog, ['from']),
  ...functionsOf('ScopeCatalog#', catalog, methodsOf(ScopeCatalog.prototype)),
  'explain with the catalog': (known) => set.explain('POST:d.example/z', known as KnownScopes),
  'a request with the method': (method) => scope.readRequest(request({ method })),
  'a request with the domain': (domain) => set.allows(request({ domain })),
  'a request with the target': (target) => catalog.attribute(request({ target })),
  'a list that holds': (member) => ScopeSet.from([member as string, 'GET:d.example/a']),
  'a catalog that holds': (member) => ScopeCatalog.from(['GET:d.example/a', member as string]),
  'a wish that holds': (member) => catalog.expand(['GET:d.example/a', member as string]),
  'a typed catalog that holds': (member) => scope.defineCatalog([member] as never),
  'a typed wish for': (member) => scope.scopeIn(catalog as never, member as never),
};

/** These return an answer and never throw. */
const ANSWERING = [
  'safeParseScope',
  'readRequest',
  'ScopeSet#allows',
  'ScopeCatalog#attribute',
  'ScopeCatalog#suggest',
  'a request with the method',
  'a request with the domain',
  'a request with the target',
];

const fail = (): never => {
  throw new TypeError('looked into');
};

const listLike = (next: () => unknown, rest: object = {}): unknown => ({
  [Symbol.iterator]: () => ({ next, ...rest }),
});

function atMost(count: number, result: unknown): () => unknown {
  let left = count;
  return () => (left-- > 0 ? result : { done: true });
}

const ODD: Readonly<Record<string, () => unknown>> = {
  'a proxy that throws': hostile,
  'a list behind a proxy that throws': () => hostile([]),
  'a list of one scope behind a proxy that throws': () => hostile(['GET:d.example/a']),
  'a function behind a proxy that throws': () => hostile(() => 'GET:d.example/a'),
  'a scope behind a proxy that throws': () => hostile(scope.parseScope('GET:d.example/a')),
  'a scope behind a plain proxy': () => new Proxy(scope.parseScope('GET:d.example/a'), {}),
  'a set behind a plain proxy': () => new Proxy(set, {}),
  'a revoked proxy': () => revoked({}),
  'a revoked list': () => revoked([]),
  'a revoked function': () => revoked(() => 1),
  'getters that throw': () => ({
    get method() {
      return fail();
    },
    get domain() {
      return fail();
    },
    get target() {
      return fail();
    },
  }),
  'a request whose fields are proxies': () => ({
    method: hostile(),
    domain: hostile(),
    target: hostile(),
  }),
  'an element that throws': () => Object.defineProperty(['a', 'b'], 0, { get: fail }),
  'a list with its own methods': () => {
    const methods = ['entries', 'map', 'flatMap', 'slice', 'values', 'constructor', 'at'];
    return Object.assign(['GET:d.example/a'], Object.fromEntries(methods.map((of) => [of, fail])));
  },
  'a list with a species that throws': () => {
    class Odd extends Array {
      static override get [Symbol.species](): ArrayConstructor {
        return fail();
      }
      override entries(): never {
        return fail();
      }
    }
    return Odd.from(['GET:d.example/a']);
  },
  'a list that lies about its length': () =>
    new Proxy(['GET:d.example/a'], {
      get: (list, key) => (key === 'length' ? Number.NaN : Reflect.get(list, key)),
    }),
  'a list with a negative length': () =>
    new Proxy([], { get: (list, key) => (key === 'length' ? -1 : Reflect.get(list, key)) }),
  'a list with a symbol for a length': () =>
    new Proxy([], {
      get: (list, key) => (key === 'length' ? Symbol('1') : Reflect.get(list, key)),
    }),
  'a list of holes': () => new Array(100),
  'a list that contains itself': () => {
    const list: unknown[] = [];
    list.push(list, [list]);
    return list;
  },
  'an iterator method that throws': () => ({ [Symbol.iterator]: fail }),
  'an iterator that is a number': () => ({ [Symbol.iterator]: () => 7 }),
  'an iterator that throws': () => listLike(fail),
  'an iterator that throws on return': () =>
    listLike(atMost(3, { value: Symbol('x') }), { return: fail }),
  'an iterator of numbers instead of results': () => listLike(atMost(3, 7)),
  'an iterator of results that throw': () =>
    listLike(atMost(3, Object.defineProperty({}, 'done', { get: fail }))),
  'an iterator of values that throw': () =>
    listLike(atMost(3, Object.defineProperty({ done: false }, 'value', { get: fail }))),
  'an iterator of proxies': () => listLike(atMost(3, { done: false, value: hostile() })),
  'a generator that throws': () =>
    (function* () {
      yield 'GET:d.example/a';
      fail();
    })(),
  'a foreign scope that throws': () => foreign(fail),
  'a foreign scope whose text is a symbol': () => foreign(() => Symbol('GET:d.example/a') as never),
  'a foreign scope whose text is itself': () =>
    foreign(function (this: object) {
      return this as never;
    }),
  'a foreign scope that recurses without end': () =>
    foreign(function again(): string {
      return again();
    }),
  'a foreign scope with an invalid text': () => foreign(() => '*'),
  'a foreign scope without toString': () => Object.create({ [BRAND]: true, toString: null }),
  'a symbol': () => Symbol.iterator,
  'a bigint': () => 10n,
  'the number NaN': () => Number.NaN,
  'a function': () => fail,
  'a class': () => class Odd {},
  'an instance of a class': () => new (class Odd {})(),
  'a String object': () => new String('GET:d.example/a'),
  'an object without a prototype': () => Object.create(null),
  'a date': () => new Date(Number.NaN),
  bytes: () => new Uint8Array(100),
  'a promise': () => Promise.resolve(1),
  'a Map': () => new Map([['GET:d.example/a', 1]]),
  'a lone surrogate': () => '\ud800',
  'many lone surrogates': () => '\udfff\ud800'.repeat(1 << 19),
  'a megabyte': () => `GET:d.example/${'a'.repeat(1 << 20)}`,
  'a megabyte of slashes': () => '/'.repeat(1 << 20),
  'a megabyte of wildcards': () => '*:*/*'.repeat(1 << 18),
  'a long list of scopes': () => Array.from({ length: 100_000 }, (_, i) => `GET:d.example/a${i}`),
  'a long list of one scope': () => new Array(100_000).fill('GET:d.example/a'),
  'a long list of undefined': () => new Array(20_000).fill(undefined),
  'a long list of wildcards': () => Array.from({ length: 20_000 }, (_, i) => `GET:*/a${i}`),
  'a long list of texts that are not scopes': () =>
    Array.from({ length: 100_000 }, (_, i) => `get:${i}`),
  'the fields of a scope': () => ({ method: '*', domain: '*', path: '*' }),
  ...Object.fromEntries(
    Object.getOwnPropertyNames(Object.prototype).map((name) => [`the name ${name}`, () => name]),
  ),
};

const BIG = /^(?:a megabyte|a long list|many )/;

/** Represents an odd value until it is used. */
class Folded {
  readonly kind: string;
  constructor(kind: string) {
    this.kind = kind;
  }
}

function unfold(value: unknown): unknown {
  if (value instanceof Folded) return ODD[value.kind]?.();
  return Array.isArray(value)
    ? Array.from(value, (one) => (one instanceof Folded ? unfold(one) : one))
    : value;
}

describe('every call of tokenwright/scope', () => {
  it('is tested here, for each exported function', () => {
    const functions = Object.entries(scope).filter(([, value]) => typeof value === 'function');
    const classes = ['ScopeError', 'ScopeSet', 'ScopeCatalog'];

    expect(
      functions
        .map(([name]) => name)
        .filter((name) => !(name in calls))
        .sort(),
    ).toEqual(classes.sort());
  });

  it.each(Object.keys(ODD))('throws nothing but a ScopeError for %s', (kind) => {
    const make = ODD[kind] as () => unknown;
    const big = BIG.test(kind) ? make() : undefined;
    for (const [name, call] of Object.entries(calls)) {
      expect(outcomeOf(name, call, big === undefined ? [make(), make()] : [big]), name).toBe(
        'as promised',
      );
      if (big !== undefined) continue;
      expect(outcomeOf(name, call, ['GET:d.example/a', make()]), name).toBe('as promised');
      expect(outcomeOf(name, call, [[make()], make()]), name).toBe('as promised');
    }
  });

  it('throws nothing but a ScopeError for arbitrary values', () => {
    const anything = fc.oneof(
      fc.anything({
        withBigInt: true,
        withBoxedValues: true,
        withDate: true,
        withMap: true,
        withNullPrototype: true,
        withObjectString: true,
        withSet: true,
        withSparseArray: true,
        withTypedArray: true,
      }),
      // Folded, because fast-check itself inspects values.
      fc
        .constantFrom(...Object.keys(ODD).filter((kind) => !BIG.test(kind)))
        .map((kind) => new Folded(kind)),
      fc.constantFrom('GET:d.example/a', '*:*/*', set, catalog),
    );
    const values = fc.array(fc.oneof(anything, fc.array(anything, { maxLength: 3 })), {
      maxLength: 3,
    });
    fc.assert(
      fc.property(values, (all) => {
        for (const [name, call] of Object.entries(calls)) {
          expect(outcomeOf(name, call, all.map(unfold)), name).toBe('as promised');
        }
      }),
      runs(),
    );
  });
});

describe('a value that changes while it is read', () => {
  /** A foreign scope that returns another text on each read. */
  function shifty(...texts: string[]): scope.Scope {
    let turn = 0;
    return foreign(() => texts[Math.min(turn++, texts.length - 1)] as string) as scope.Scope;
  }

  it('cannot smuggle a wildcard into a catalog', () => {
    const texts = ScopeCatalog.from([shifty('GET:d.example/a', '*:*/*')]).toArray();

    expect(texts).toEqual(['GET:d.example/a']);
  });

  it('is read only once in a list', () => {
    const [first, then] = ['GET:d.example/a', '*:*/*'];

    expect(ScopeSet.from([shifty(first, then)]).toArray()).toEqual([first]);
    expect(catalog.expand([shifty(first, then)]).granted).toEqual([first]);
    expect(ScopeSet.from([first]).covers(shifty(first, then))).toBe(true);
    expect(String(scope.meet(shifty(first, then), shifty('*:*/*', 'x')))).toBe(first);
  });

  it('cannot smuggle in a longer list', () => {
    let asked = 0;
    const list = new Proxy(['GET:d.example/a'], {
      get: (target, key) => {
        if (key !== 'length') return Reflect.get(target, 0);
        asked += 1;
        return asked === 1 ? 1 : 1e9;
      },
    });

    expect(catalog.expand(list).granted).toEqual(['GET:d.example/a']);
  });
});

const BRAND = Symbol.for('tokenwright.Scope');

function foreign(text: () => string): unknown {
  return { [BRAND]: true, toString: text };
}

function request(fields: object): scope.ScopeRequest {
  return { method: 'GET', domain: 'd.example', target: '/a', ...fields };
}

function methodsOf(prototype: object): string[] {
  return Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor');
}

function functionsOf(
  prefix: string,
  owner: object,
  names: readonly string[],
): Record<string, Callable> {
  const own = owner as Record<string, unknown>;
  return Object.fromEntries(
    names
      .filter((name) => typeof own[name] === 'function' && !/^[A-Z]/.test(name))
      .map((name) => [prefix + name, (...values) => (own[name] as Callable)(...values)]),
  );
}

function outcomeOf(name: string, call: Callable, values: readonly unknown[]): string {
  try {
    call(...values);
  } catch (error) {
    if (error instanceof ScopeError && !ANSWERING.includes(name)) return 'as promised';
    return `throws ${error instanceof Error ? error.stack : typeof error}`;
  }
  return 'as promised';
}
