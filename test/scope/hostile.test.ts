import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as scope from '../../src/scope/index.ts';
import { hostile, LAW } from './support.ts';

const { ScopeCatalog, ScopeError, ScopeSet } = scope;

type Callable = (...values: unknown[]) => unknown;

/** Each function, and each method of each class, as one that takes anything. */
const set = ScopeSet.from(['GET:d.example/a', '*:*.example/a/b']);
const catalog = ScopeCatalog.from(['GET:d.example/a', 'POST:a.example/a/b']);
const doors: Readonly<Record<string, Callable>> = {
  ...functionsOf('', scope, Object.keys(scope)),
  ...functionsOf('ScopeSet.', ScopeSet, ['from']),
  ...functionsOf('ScopeSet#', set, methodsOf(ScopeSet.prototype)),
  ...functionsOf('ScopeCatalog.', ScopeCatalog, ['from']),
  ...functionsOf('ScopeCatalog#', catalog, methodsOf(ScopeCatalog.prototype)),
  'explain with the catalog': (known) =>
    set.explain('POST:d.example/z', known as scope.KnownScopes),
  'a request with the method': (method) => scope.readRequest(request({ method })),
  'a request with the domain': (domain) => set.allows(request({ domain })),
  'a request with the target': (target) => catalog.attribute(request({ target })),
  'a list that holds': (member) => ScopeSet.from([member as string, 'GET:d.example/a']),
  'a catalog that holds': (member) => ScopeCatalog.from(['GET:d.example/a', member as string]),
  'a wish that holds': (member) => catalog.expand(['GET:d.example/a', member as string]),
  'a typed catalog that holds': (member) => scope.defineCatalog([member] as never),
  'a typed wish for': (member) => scope.scopeIn(catalog as never, member as never),
};

/** They answer, and throw nothing at all. */
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
  'a list behind such a proxy': () => throwing([]),
  'a list of one scope behind such a proxy': () => throwing(['GET:d.example/a']),
  'a function behind such a proxy': () => throwing(() => 'GET:d.example/a'),
  'a scope behind such a proxy': () => throwing(scope.parseScope('GET:d.example/a')),
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
  'a list of a length below nothing': () =>
    new Proxy([], { get: (list, key) => (key === 'length' ? -1 : Reflect.get(list, key)) }),
  'a list with a symbol for a length': () =>
    new Proxy([], {
      get: (list, key) => (key === 'length' ? Symbol('1') : Reflect.get(list, key)),
    }),
  'a list of holes': () => new Array(100),
  'a list in itself': () => {
    const list: unknown[] = [];
    list.push(list, [list]);
    return list;
  },
  'an iterator that cannot be had': () => ({ [Symbol.iterator]: fail }),
  'an iterator that is none': () => ({ [Symbol.iterator]: () => 7 }),
  'an iterator that throws': () => listLike(fail),
  'an iterator that throws when it is left': () =>
    listLike(atMost(3, { value: Symbol('x') }), { return: fail }),
  'an iterator of no results': () => listLike(atMost(3, 7)),
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
  'a foreign scope of a symbol': () => foreign(() => Symbol('GET:d.example/a') as never),
  'a foreign scope of itself': () =>
    foreign(function (this: object) {
      return this as never;
    }),
  'a foreign scope without end': () =>
    foreign(function again(): string {
      return again();
    }),
  'a foreign scope that is none': () => foreign(() => '*'),
  'a foreign scope of what is none': () => Object.create({ [BRAND]: true, toString: null }),
  'a symbol': () => Symbol.iterator,
  'a bigint': () => 10n,
  'not a number': () => Number.NaN,
  'a function': () => fail,
  'a class': () => class Odd {},
  'an instance of a class': () => new (class Odd {})(),
  'a String object': () => new String('GET:d.example/a'),
  'no prototype': () => Object.create(null),
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
  'a long list of nothing': () => new Array(20_000).fill(undefined),
  'a long list of wildcards': () => Array.from({ length: 20_000 }, (_, i) => `GET:*/a${i}`),
  'a long list of what is no scope': () => Array.from({ length: 100_000 }, (_, i) => `get:${i}`),
  'fields of a scope': () => ({ method: '*', domain: '*', path: '*' }),
  ...Object.fromEntries(
    Object.getOwnPropertyNames(Object.prototype).map((name) => [`the name ${name}`, () => name]),
  ),
};

const BIG = /^(?:a megabyte|a long list|many )/;

/** Stands for an odd value until it is used. */
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

describe('no call throws anything but a ScopeError', () => {
  it('of any function that is exported', () => {
    const functions = Object.entries(scope).filter(([, value]) => typeof value === 'function');
    const classes = ['ScopeError', 'ScopeSet', 'ScopeCatalog'];

    expect(
      functions
        .map(([name]) => name)
        .filter((name) => !(name in doors))
        .sort(),
    ).toEqual(classes.sort());
  });

  it.each(Object.keys(ODD))('for %s', (kind) => {
    const make = ODD[kind] as () => unknown;
    const big = BIG.test(kind) ? make() : undefined;
    for (const [door, call] of Object.entries(doors)) {
      expect(outcomeOf(door, call, big === undefined ? [make(), make()] : [big]), door).toBe(
        'as promised',
      );
      if (big !== undefined) continue;
      expect(outcomeOf(door, call, ['GET:d.example/a', make()]), door).toBe('as promised');
      expect(outcomeOf(door, call, [[make()], make()]), door).toBe('as promised');
    }
  });

  it('whatever the values are', () => {
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
      // Folded, as fast-check itself looks into values.
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
        for (const [door, call] of Object.entries(doors)) {
          expect(outcomeOf(door, call, all.map(unfold)), door).toBe('as promised');
        }
      }),
      LAW,
    );
  });
});

describe('what changes while it is read', () => {
  /** A scope of another copy that says something else each time. */
  function shifty(...texts: string[]): scope.Scope {
    let turn = 0;
    return foreign(() => texts[Math.min(turn++, texts.length - 1)] as string) as scope.Scope;
  }

  it('does not bring a wildcard into a catalog', () => {
    const texts = ScopeCatalog.from([shifty('GET:d.example/a', '*:*/*')]).toArray();

    expect(texts).toEqual(['GET:d.example/a']);
  });

  it('is read once in a list', () => {
    const [first, then] = ['GET:d.example/a', '*:*/*'];

    expect(ScopeSet.from([shifty(first, then)]).toArray()).toEqual([first]);
    expect(catalog.expand([shifty(first, then)]).granted).toEqual([first]);
    expect(ScopeSet.from([first]).covers(shifty(first, then))).toBe(true);
    expect(String(scope.meet(shifty(first, then), shifty('*:*/*', 'x')))).toBe(first);
  });

  it('does not get a longer list through', () => {
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

function throwing(target: object): object {
  const traps = Object.fromEntries(Object.getOwnPropertyNames(Reflect).map((name) => [name, fail]));
  return new Proxy(target, traps as ProxyHandler<object>);
}

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
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

function outcomeOf(door: string, call: Callable, values: readonly unknown[]): string {
  try {
    call(...values);
  } catch (error) {
    if (error instanceof ScopeError && !ANSWERING.includes(door)) return 'as promised';
    return `throws ${error instanceof Error ? error.stack : typeof error}`;
  }
  return 'as promised';
}
