import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  covers,
  parseScope,
  type Scope,
  ScopeCatalog,
  type ScopeRequest,
  ScopeSet,
} from '../../src/scope/index.ts';
import { runs } from '../laws.ts';

const at = (path: string, method = 'GET'): string => `${method}:shop.example/${path}`;
const request = (target: string, method = 'GET'): ScopeRequest => ({
  method,
  domain: 'shop.example',
  target,
});

/** Whether scopes allow a request that a catalog has read, or why not. */
function answer(
  catalog: ScopeCatalog,
  held: readonly string[],
  asked: ScopeRequest,
): string | true {
  const reading = catalog.readRequest(asked);
  if (!reading.ok) return reading.reason;
  const decision = ScopeSet.from(held).allows(reading.request);
  return decision.allowed || decision.reason;
}

const SPLIT = 'path_several_routes';
const NONE = 'not_covered';

const CATALOG = ScopeCatalog.from([
  ...['orders$', 'orders/{}$', 'orders/export$', 'orders/{}/items$'].map((path) => at(path)),
  ...['l/{}$', 'l/@me$', 'only/@me$', 'm/{}$', 'm/key$', 'w', 'w/top$'].map((path) => at(path)),
  ...['p/b/{}$', 'p/{}/c$', '{}/{}$', 'Teams/{}$', 'c/{}$', 'c/Search$'].map((path) => at(path)),
  ...['r/b/{}$', 'r/{}/c$', 'r/{}/{}$', 'z/a$', 'z/z$', 'z/{}$'].map((path) => at(path)),
]);

describe('a request that several entries may serve', () => {
  it.each<[target: string, held: string, expected: string | true]>([
    ['/orders/EXPORT', 'orders/{}$', SPLIT],
    ['/orders/EXPORT', 'orders/export$', SPLIT],
    ['/orders/EXPORT', 'orders/{}$ orders/export$', true],
    ['/orders/EXPORT', 'orders', true],
    ['/orders/EXPORT', 'l/{}$', NONE],
    ['/orders/%65xport', 'orders/{}$', SPLIT],
    ['/orders/%65xport', 'orders/export$', SPLIT],
    ['/orders/%65xport', 'orders', true],
    ['/orders/%45XPORT', 'orders/{}$', SPLIT],
    ['/orders/export', 'orders/export$', true],
    ['/orders/export', 'orders/{}$', NONE],
    ['/orders/exporT7', 'orders/{}$', true],
    ['/l/%40me', 'l/{}$', SPLIT],
    ['/l/%40me', 'l/@me$', SPLIT],
    ['/l/%40me', 'l/@me$ l/{}$', true],
    ['/l/@me', 'l/@me$', true],
    ['/l/%40you', 'l/{}$', true],
    ['/m/%E2%84%AAey', 'm/{}$', SPLIT],
    ['/m/%E2%84%AAey', 'm/key$', SPLIT],
    ['/m/k%C3%A9y', 'm/{}$', true],
    ['/c/search', 'c/{}$', SPLIT],
    ['/c/Search', 'c/Search$', true],
    ['/c/Search', 'c/{}$', NONE],
    ['/c/other', 'c/{}$', true],
    ['/ORDERS/7', '{}/{}$', SPLIT],
    ['/ORDERS/7', 'orders/{}$', SPLIT],
    ['/ORDERS/7', '*', true],
    ['/teams/7', 'Teams/{}$', SPLIT],
    ['/Teams/7', 'Teams/{}$', true],
    ['/%6frders/7/items', 'orders/{}/items$', true],
    ['/ORDERS/7/items', 'orders/{}/items$', SPLIT],
    ['/ORDERS/7/items', 'orders', SPLIT],
    ['/orders/', 'orders$', SPLIT],
    ['/orders/', 'orders/{}$', SPLIT],
    ['/orders/', 'orders$ orders/{}$', true],
    ['/orders/', 'orders', true],
    ['/orders', 'orders$', true],
    ['/orders/7/', 'orders/{}$', true],
    ['/orders/export/', 'orders/export$', true],
    ['/w/top/', 'w/top$', SPLIT],
    ['/w/top/', 'w', true],
    ['/w/top', 'w/top$', true],
    ['/w/other/', 'w', true],
    ['/p/b/c', 'p/b/{}$', SPLIT],
    ['/p/b/c', 'p/{}/c$', SPLIT],
    ['/p/b/c', 'p/b/{}$ p/{}/c$', true],
    ['/p/b/d', 'p/b/{}$', true],
    ['/p/a/c', 'p/{}/c$', true],
    ['/p/%62/c', 'p/b/{}$', SPLIT],
    ['/P/b/d', 'p/b/{}$', SPLIT],
    ['/r/b/c', 'r/b/{}$', SPLIT],
    ['/r/b/c', 'r/b/{}$ r/{}/c$', true],
    ['/r/b/d', 'r/b/{}$', true],
    ['/r/a/d', 'r/{}/{}$', true],
    ['/z/A', 'z/{}$', SPLIT],
    ['/z/Z', 'z/{}$', SPLIT],
    ['/z/M', 'z/{}$', true],
    ['/x/y/z', '{}/y', true],
    ['/x/y/z', '{}/z', NONE],
  ])('GET %s with %s: %s', (target, held, expected) => {
    const scopes = held.split(' ').map((path) => at(path));

    expect(answer(CATALOG, scopes, request(target))).toBe(expected);
    const reading = CATALOG.readRequest(request(target));
    if (!reading.ok) throw new Error(reading.reason);
    const explained = ScopeSet.from(scopes).explain(reading.request, CATALOG);
    expect(explained.allowed || explained.reason).toBe(expected);
  });

  it.each<[held: string, target: string, expected: string | true]>([
    ['HEAD orders/{}$', '/orders/export', NONE],
    ['HEAD orders/export$', '/orders/export', true],
    ['HEAD orders/{}$', '/orders/7', true],
    ['* orders/{}$', '/orders/export', NONE],
    ['HEAD orders/{}$', '/orders/EXPORT', SPLIT],
    ['GET orders/export$', '/orders/export', NONE],
  ])('reads HEAD with the entries of GET too: %s, %s', (held, target, expected) => {
    const [method, path] = held.split(' ') as [string, string];

    expect(answer(CATALOG, [at(path, method)], request(target, 'HEAD'))).toBe(expected);
  });

  it('reads HEAD with an entry of its own like those of GET', () => {
    const catalog = ScopeCatalog.from([at('orders/{}$', 'HEAD'), at('orders/export$')]);
    const held = [at('orders/{}$', 'HEAD')];

    expect(answer(catalog, held, request('/orders/export', 'HEAD'))).toBe(NONE);
    expect(answer(catalog, held, request('/orders/7', 'HEAD'))).toBe(true);
  });

  it('reads no other method with the entries of GET', () => {
    const catalog = ScopeCatalog.from([at('orders/{}$', 'POST'), at('orders/export$')]);
    const held = [at('orders/{}$', 'POST')];

    expect(answer(catalog, held, request('/orders/EXPORT', 'POST'))).toBe(true);
  });

  it('is served by the only entry, decoded, but not by one in another case', () => {
    const catalog = ScopeCatalog.from([at('only/@me$'), at('only/x$')]);

    expect(answer(catalog, [at('only/@me$')], request('/only/%40me'))).toBe(true);
    expect(answer(catalog, [at('only/@me$')], request('/only/@ME'))).toBe(SPLIT);
  });

  it('demands both if entries differ only in case', () => {
    const catalog = ScopeCatalog.from([at('me$'), at('ME$')]);

    expect(answer(catalog, [at('me$')], request('/me'))).toBe(SPLIT);
    expect(answer(catalog, [at('me$'), at('ME$')], request('/me'))).toBe(true);
  });

  it('refuses all but a whole host if very many entries may serve it', () => {
    const depth = 20;
    const entries = Array.from({ length: depth }, (_, i) => {
      const isTemplate = (j: number) => j === i || j === (i + 1) % depth;
      return at(Array.from({ length: depth }, (_, j) => (isTemplate(j) ? '{}' : 'a')).join('/'));
    });
    const target = `/${'a/'.repeat(depth - 1)}a`;

    const few = entries.slice(0, 10);
    expect(answer(ScopeCatalog.from(few), few, request(target))).toBe(true);
    expect(answer(ScopeCatalog.from(few), few.slice(1), request(target))).toBe(SPLIT);
    expect(answer(ScopeCatalog.from(entries), entries, request(target))).toBe(NONE);
    expect(answer(ScopeCatalog.from(entries), [at('*')], request(target))).toBe(true);
    const loud = request(target.replace('a', 'A'));
    expect(answer(ScopeCatalog.from(entries), [at('*')], loud)).toBe(true);
    expect(answer(ScopeCatalog.from(entries), [at('$')], loud)).toBe(NONE);
  });
});

describe('an entry that the service writes with a slash at the end', () => {
  const entries = [at('orders$'), at('orders/{}$'), at('bills$'), at('bills/{}$')];
  const catalog = ScopeCatalog.from(entries, { withSlash: [at('orders$'), at('orders/{}$')] });

  it.each<[target: string, held: string, expected: string | true]>([
    ['/orders/', 'orders$', true],
    ['/orders', 'orders$', true],
    ['/orders/', 'orders/{}$', NONE],
    ['/orders/7/', 'orders/{}$', true],
    ['/ORDERS/', 'orders$', SPLIT],
    ['/%6frders/', 'orders$', true],
    ['/bills/', 'bills$', SPLIT],
    ['/bills', 'bills$', true],
  ])('GET %s with %s: %s', (target, held, expected) => {
    expect(answer(catalog, [at(held)], request(target))).toBe(expected);
  });

  it('has to be each of those that may serve a request', () => {
    const crossing = [at('p/b/{}$'), at('p/{}/c$')];
    const below = ScopeCatalog.from([...crossing, at('p/b/c/{}$')], { withSlash: [at('p/b/{}$')] });

    expect(answer(below, crossing, request('/p/b/c/'))).toBe(SPLIT);
    expect(answer(below, crossing, request('/p/b/c'))).toBe(true);
  });

  it('is remembered, and can be carried into another catalog', () => {
    expect(catalog.withSlash).toEqual([at('orders$'), at('orders/{}$')]);
    expect(ScopeCatalog.from(catalog)).toBe(catalog);
    const more = ScopeCatalog.from([...catalog, at('more$')], { withSlash: catalog.withSlash });
    expect(answer(more, [at('orders$')], request('/orders/'))).toBe(true);
    expect(answer(ScopeCatalog.from([...catalog]), [at('orders$')], request('/orders/'))).toBe(
      SPLIT,
    );
  });

  it('must be an entry', () => {
    const make = () => ScopeCatalog.from(entries, { withSlash: [at('order$')] });

    expect(make).toThrow(expect.objectContaining({ code: 'scope_unmatched' }));
  });

  it('is not needed for the root', () => {
    const root = ScopeCatalog.from([at('$'), at('{}$')]);

    expect(answer(root, [at('$')], request('/'))).toBe(true);
    expect(answer(root, [at('{}$')], request('/'))).toBe(NONE);
    expect(answer(ScopeCatalog.from([at('{}$')]), [at('$')], request('/'))).toBe(SPLIT);
  });
});

/** How a router reads a path. */
interface Router {
  readonly fold: 'no' | 'ascii' | 'unicode';
  readonly decode: 'no' | 'unreserved' | 'uri' | 'all';
  readonly keepsSlash: boolean;
}

const FOLDS: Readonly<Record<Router['fold'], (text: string) => string>> = {
  no: (text) => text,
  ascii: (text) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase()),
  unicode: (text) => text.toLowerCase(),
};

const DECODES: Readonly<Record<Router['decode'], (text: string) => string>> = {
  no: (text) => text,
  unreserved: (text) =>
    text.replace(/%[2-7][\dA-F]/gi, (triplet) => {
      const character = decodeURIComponent(triplet);
      return /^[\w.~-]$/.test(character) ? character : triplet;
    }),
  uri: decodeURI,
  all: decodeURIComponent,
};

const LITERALS = ['a', 'A', 'b', 'k', '@m', "a'"];
const SENT = ['a', 'A', '%61', '%41', 'b', 'B', '%62', 'k', 'K', '%E2%84%AA', '%6b'].concat([
  '@m',
  '@M',
  '%40m',
  '%40%6D',
  '%40M',
  "a'",
  'a%27',
  'A%27',
  'z',
  'Z',
  '%7A',
]);

const segment = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...LITERALS) },
  { weight: 2, arbitrary: fc.constant('{}') },
);
const pathOf = fc
  .tuple(fc.array(segment, { minLength: 1, maxLength: 3 }), fc.boolean())
  .map(([segments, isClosed]) => segments.join('/') + (isClosed ? '$' : ''));
const entriesOf = fc.uniqueArray(pathOf, { minLength: 1, maxLength: 6 });
const sentOf = fc
  .tuple(fc.array(fc.constantFrom(...SENT), { minLength: 1, maxLength: 3 }), fc.boolean())
  .map(([segments, isSlashed]) => `/${segments.join('/')}${isSlashed ? '/' : ''}`);
const routerOf: fc.Arbitrary<Router> = fc.record({
  fold: fc.constantFrom('no', 'ascii', 'unicode'),
  decode: fc.constantFrom('no', 'unreserved', 'uri', 'all'),
  keepsSlash: fc.boolean(),
});

const segmentsOf = (path: string): string[] => path.replace(/\$$/, '').split('/');

/** Whether a router takes a target to a path. */
function isTaken(path: string, target: string, { fold, decode, keepsSlash }: Router): boolean {
  const sent = target.slice(1).split('/');
  if (sent.at(-1) === '' && !keepsSlash) sent.pop();
  const segments = segmentsOf(path);
  if (path.endsWith('$') ? segments.length !== sent.length : segments.length > sent.length)
    return false;
  const read = (text: string) => FOLDS[fold](DECODES[decode](text));
  return segments.every((one, i) => one === '{}' || FOLDS[fold](one) === read(sent[i] as string));
}

/** The entries that a router may take a target to: whichever was registered first, or is the best. */
function taken(paths: readonly string[], target: string, router: Router): string[] {
  const matching = paths.filter((path) => isTaken(path, target, router));
  const isBeaten = (path: string) =>
    matching.some((other) => other !== path && covers(at(path), at(other)));
  return matching.filter((path) => !isBeaten(path));
}

/** Whether a scope opens an entry for a target: by its own path, by an open end, or by the value. */
function opens(scope: string, path: string, target: string, paths: readonly string[]): boolean {
  const sent = target.slice(1).split('/');
  const own = segmentsOf(scope);
  const segments = segmentsOf(path);
  const isValue = (one: string, i: number) =>
    one === sent[i] || (!paths.includes(scope) && one === DECODES.unreserved(sent[i] ?? ''));
  const isOpened = own.every((one, i) => {
    const literal = segments[i];
    if (literal !== undefined && literal !== '{}') return one === literal;
    return one === '{}' || isValue(one, i);
  });
  if (!isOpened) return false;
  return scope.endsWith('$') ? path.endsWith('$') || own.length >= segments.length : true;
}

const cases = fc.record({
  paths: entriesOf,
  target: sentOf,
  router: routerOf,
  picks: fc.array(fc.tuple(fc.nat(), fc.constantFrom('entry', 'open', 'wide')), {
    minLength: 1,
    maxLength: 3,
  }),
});

type Pick = [number, string];

/** Scopes made of entries: themselves, one cut and left open, one with a `{}` more. */
function scopesOf(paths: readonly string[], picks: readonly Pick[]): string[] {
  return picks.map(([pick, kind]) => {
    const path = paths[pick % paths.length] as string;
    if (kind === 'entry') return path;
    const segments = segmentsOf(path);
    if (kind === 'open') return segments.slice(0, 1 + (pick % segments.length)).join('/');
    const wide = segments.map((one, i) => (i === pick % segments.length ? '{}' : one));
    return wide.join('/') + (path.endsWith('$') ? '$' : '');
  });
}

/** The entries that a token does not open but reaches, by any router. */
function reached(
  decide: (catalog: ScopeCatalog, held: readonly string[], target: string) => boolean,
  { paths, target, router, picks }: typeof cases extends fc.Arbitrary<infer One> ? One : never,
): string[] {
  const held = scopesOf(paths, picks as Pick[]);
  const catalog = ScopeCatalog.from(paths.map((path) => at(path)));
  if (!decide(catalog, held, target)) return [];
  return taken(paths, target, router).filter(
    (path) => !held.some((scope) => opens(scope, path, target, paths)),
  );
}

const byCandidates = (catalog: ScopeCatalog, held: readonly string[], target: string): boolean =>
  answer(
    catalog,
    held.map((path) => at(path)),
    request(target),
  ) === true;

/** The rule without candidates: only the entry that `attribute` finds names segments. */
function byBestEntry(catalog: ScopeCatalog, held: readonly string[], target: string): boolean {
  const entry = catalog.attribute(request(target));
  const named = entry === undefined ? [] : segmentsOf(entry.path);
  const isUsable = (scope: string) =>
    segmentsOf(scope).every((one, i) => one !== '{}' || (named[i] ?? '{}') === '{}');
  const usable: Scope[] = held.filter(isUsable).map((path) => parseScope(at(path)));
  return ScopeSet.from(usable).allows(request(target)).allowed;
}

describe('routers that read paths loosely', () => {
  it('never take a token to an entry that it does not open', () => {
    fc.assert(
      fc.property(cases, (one) => {
        expect(reached(byCandidates, one)).toEqual([]);
      }),
      runs(3),
    );
  });

  it('do so without candidates (the control)', () => {
    const property = fc.property(cases, (one) => reached(byBestEntry, one).length === 0);

    expect(fc.check(property, { numRuns: 3000 }).failed).toBe(true);
  });

  it('leave plain requests of an entry to the token that holds it', () => {
    fc.assert(
      fc.property(entriesOf, fc.nat(), (paths, pick) => {
        const lower = [...new Set(paths.map((path) => path.toLowerCase()))];
        const path = lower[pick % lower.length] as string;
        const catalog = ScopeCatalog.from(lower.map((one) => at(one)));
        const target = `/${segmentsOf(path)
          .map((one) => (one === '{}' ? 'z7' : one))
          .join('/')}`;
        const isOthers = catalog.attribute(request(target))?.toString() !== at(path);
        const isCrossing = lower.some(
          (other) =>
            isTaken(other, target, { fold: 'no', decode: 'no', keepsSlash: false }) &&
            !covers(at(other), at(path)),
        );
        fc.pre(!isOthers && !isCrossing);
        expect(answer(catalog, [at(path)], request(target))).toBe(true);
      }),
      runs(),
    );
  });
});
