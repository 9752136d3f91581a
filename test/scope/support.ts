import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { covers } from '../../src/scope/algebra.ts';

/** A request in its simplest form. A scope denotes a set of these. */
export interface Point {
  readonly method: string;
  readonly host: string;
  readonly segments: readonly string[];
}

/** A proxy that throws on every access. */
export function hostile(target: object = {}): object {
  const fail = (): never => {
    throw new Error('looked into');
  };
  const traps = Object.fromEntries(
    Object.getOwnPropertyNames(Reflect).map((name) => [name, fail]),
  ) as ProxyHandler<object>;
  return new Proxy(target, traps);
}

export function revoked(target: object = {}): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** The size of the heap right after a garbage collection. */
export function heapBytes(): number {
  gc();
  return process.memoryUsage().heapUsed;
}

/**
 * Whether a scope's text denotes a request, by sections 1.2 to 1.4 of the scope specification.
 *
 * @param named the positions of segments that `{}` does not match
 */
export function denotes(scope: string, point: Point, named: readonly number[] = []): boolean {
  const { method, domain, segments, isClosed } = partsOf(scope);
  return (
    (method === '*' || method === point.method) &&
    (domain === '*' ||
      domain === point.host ||
      remembered(parents, point.host, parentsOf).has(domain)) &&
    (isClosed
      ? segments.length === point.segments.length
      : segments.length <= point.segments.length) &&
    segments.every((segment, index) =>
      segment === '{}' ? !named.includes(index) : segment === point.segments[index],
    )
  );
}

/** The domain patterns that match a host through their wildcard. */
function parentsOf(host: string): ReadonlySet<string> {
  const labels = host.split('.');
  return new Set(labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join('.')}`));
}

interface Parts {
  readonly method: string;
  readonly domain: string;
  readonly path: string;
  readonly segments: readonly string[];
  readonly isClosed: boolean;
}

/** Caches results per text: the laws ask about each text many times. */
function remembered<Value>(
  memory: Map<string, Value>,
  text: string,
  make: (text: string) => Value,
): Value {
  const known = memory.get(text);
  if (known !== undefined) return known;
  const made = make(text);
  if (memory.size > 5000) memory.clear();
  memory.set(text, made);
  return made;
}

const scopes = new Map<string, Parts>();
const parents = new Map<string, ReadonlySet<string>>();

function partsOf(scope: string): Parts {
  return remembered(scopes, scope, takeApart);
}

function takeApart(scope: string): Parts {
  const colon = scope.indexOf(':');
  const slash = scope.indexOf('/', colon);
  const path = scope.slice(slash + 1);
  return {
    method: scope.slice(0, colon),
    domain: scope.slice(colon + 1, slash),
    path,
    segments: path === '*' || path === '$' ? [] : path.replace(/\$$/, '').split('/'),
    isClosed: path.endsWith('$'),
  };
}

/** Whether any of the scopes denotes a request. */
export function anyDenotes(scopes: readonly string[], point: Point): boolean {
  return scopes.some((scope) => denotes(scope, point));
}

/**
 * Enough requests to tell these scopes apart: all that they name alone and in pairs, one level above
 * and below, and requests with a method, labels and segments that none of them mentions.
 */
export function universeOf(all: readonly string[]): Point[] {
  const methods = new Set(['FRESH-METHOD']);
  const hosts = new Set(['fresh-host', 'below.fresh-host']);
  const paths = new Set(['', 'fresh-segment']);
  for (const scope of all) {
    const { method, domain, segments } = partsOf(scope);
    if (method !== '*') methods.add(method);
    const host = domain.replace(/^\*\.?/, '');
    if (host !== '') {
      hosts.add(host).add(`fresh-label.${host}`).add(`deep.fresh-label.${host}`).add(`x${host}`);
    }
    for (const other of all) {
      const path = requestOf(segments, partsOf(other).segments)?.join('/');
      if (path === undefined || path === '') continue;
      paths.add(path).add(`${path}/fresh-segment`);
      if (scope !== other) continue;
      paths.add(`${path}x`);
      if (path.includes('/')) paths.add(path.slice(0, path.lastIndexOf('/')));
    }
  }
  const lists = [...paths].map((path) => (path === '' ? [] : path.split('/')));
  return [...methods].flatMap((method) =>
    [...hosts].flatMap((host) => lists.map((segments) => ({ method, host, segments }))),
  );
}

/** The segments of a request that both patterns match, at the length of the longer one. */
function requestOf(a: readonly string[], b: readonly string[]): string[] | undefined {
  const [longer, shorter] = a.length < b.length ? [b, a] : [a, b];
  const isCrossed = shorter.some(
    (segment, index) => segment !== '{}' && longer[index] !== '{}' && segment !== longer[index],
  );
  if (isCrossed) return undefined;
  return longer.map((segment, index) => {
    const literal = segment === '{}' ? (shorter[index] ?? '{}') : segment;
    return literal === '{}' ? 'fresh-segment' : literal;
  });
}

/** Whether the scopes allow all of a scope: one of them does or, if it is open, several together do. */
export function allowAll(scopes: readonly string[], scope: string): boolean {
  if (scopes.some((one) => covers(one, scope))) return true;
  const { path, isClosed } = partsOf(scope);
  if (isClosed) return false;
  const [itself, below] = path === '*' ? ['$', '{}'] : [`${path}$`, `${path}/{}`];
  const start = scope.slice(0, scope.length - path.length);
  return scopes.some((one) => covers(one, start + itself)) && allowAll(scopes, start + below);
}

/** One request of the universe, for laws that are too slow to check on all of it. */
export function oneOf(universe: readonly Point[], which: number): Point {
  return universe[which % universe.length] as Point;
}

/** The request in the form that a guard passes on. */
export function asRequest({ method, host, segments }: Point): {
  method: string;
  domain: string;
  target: string;
} {
  return { method, domain: host, target: `/${segments.join('/')}` };
}

/** Levenshtein distance by the full matrix. */
export function edits(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= a.length; row++) {
    rows.push([row]);
    for (let column = 1; column <= b.length; column++) {
      const at = (r: number, c: number): number => rows[r]?.[c] ?? Number.NaN;
      const same = a[row - 1] === b[column - 1] ? 0 : 1;
      const least = [
        at(row - 1, column - 1) + same,
        at(row - 1, column) + 1,
        at(row, column - 1) + 1,
      ];
      rows[row]?.push(Math.min(...least));
    }
  }
  return rows[a.length]?.[b.length] ?? Number.NaN;
}

/** Mostly from a small alphabet, so that scopes overlap; sometimes a unique name. */
function mostly<T>(known: readonly T[], fresh: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...known) },
    { weight: 1, arbitrary: fresh },
  );
}

const method = mostly(['GET', 'HEAD', 'POST'], fc.stringMatching(/^[A-Z]{2,9}$/));
const label = mostly(['a', 'b', 'constructor'], fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/));
const host = fc
  .array(label, { maxLength: 3 })
  .map((labels) => [...labels, 'd', 'example'].slice(-3).join('.'));
const domain = fc.oneof(
  { weight: 1, arbitrary: fc.constant('*') },
  { weight: 2, arbitrary: fc.constantFrom('*.example', '*.d.example', '*.a.d.example') },
  { weight: 1, arbitrary: host.map((parent) => `*.${parent}`) },
  { weight: 4, arbitrary: fc.constantFrom('example', 'd.example', 'a.d.example', 'b.a.d.example') },
  { weight: 1, arbitrary: host },
);
const segment = mostly(
  ['a', 'b', 'ab', '__proto__', 'a.b'],
  // Lists refuse segments such as `:id`.
  fc.stringMatching(/^[A-Za-z0-9~!$&'()+=:@-]{1,5}$/).filter((text) => !/^:[A-Za-z]/.test(text)),
);
const pattern = fc.oneof(
  { weight: 3, arbitrary: segment },
  { weight: 1, arbitrary: fc.constant('{}') },
);
/** An open path cannot end in a `$`, which is the closing mark there. */
const path = fc
  .tuple(fc.array(pattern, { minLength: 1, maxLength: 4 }), fc.boolean())
  .map(([all, isClosed]) => {
    const text = all.join('/');
    return isClosed || text.endsWith('$') ? `${text}$` : text;
  });
const anyPath = fc.oneof(
  { weight: 1, arbitrary: fc.constant('$') },
  { weight: 12, arbitrary: path },
);

/** A scope of any kind, in canonical form. */
export const anyScope: fc.Arbitrary<string> = fc
  .tuple(
    fc.oneof({ weight: 1, arbitrary: fc.constant('*') }, { weight: 2, arbitrary: method }),
    domain,
    fc.oneof({ weight: 1, arbitrary: fc.constant('*') }, { weight: 3, arbitrary: anyPath }),
  )
  .map(([aMethod, aDomain, aPath]) => `${aMethod}:${aDomain}/${aPath}`);

/** A scope with a real method, domain and path. */
export const concreteScope: fc.Arbitrary<string> = fc
  .tuple(method, fc.oneof(fc.constantFrom('d.example', 'a.d.example'), host), anyPath)
  .map(([aMethod, aDomain, aPath]) => `${aMethod}:${aDomain}/${aPath}`);

export const someScopes: fc.Arbitrary<string[]> = fc.array(anyScope, { maxLength: 4 });

export const manyScopes: fc.Arbitrary<string[]> = fc.array(anyScope, { maxLength: 16 });

/** A scope that covers another one. */
function wider(scope: string): fc.Arbitrary<string> {
  const parts = partsOf(scope);
  const labels = parts.domain.split('.');
  const domains = labels.map((_, index) => `*.${labels.slice(index + 1).join('.')}`).slice(0, -1);
  const paths = parts.segments
    .map((_, index) => parts.segments.slice(0, index + 1).join('/'))
    .filter((one) => !one.endsWith('$'));
  const isLiteral = fc.infiniteStream(fc.boolean());
  const templated = isLiteral.map((stream) => {
    const all = parts.path === '*' || parts.path === '$' ? [] : parts.path.split('/');
    const segments = all.map((segment, index) => {
      if (stream.next().value) return segment;
      return segment.endsWith('$') && index === all.length - 1 ? '{}$' : '{}';
    });
    return segments.join('/') || parts.path;
  });
  return fc
    .tuple(
      fc.constantFrom(parts.method, '*'),
      fc.constantFrom(parts.domain, ...domains, '*'),
      fc.oneof(fc.constantFrom(parts.path, ...paths, '*'), templated),
    )
    .map(([aMethod, aDomain, aPath]) => `${aMethod}:${aDomain}/${aPath}`);
}

/** Three scopes: unrelated, or two that cover the third, or a chain in which each covers the next. */
export const threeScopes: fc.Arbitrary<readonly [string, string, string]> = fc.oneof(
  fc.tuple(anyScope, anyScope, anyScope),
  anyScope.chain((c) => fc.tuple(wider(c), wider(c), fc.constant(c))),
  anyScope.chain((c) => wider(c).chain((b) => fc.tuple(wider(b), fc.constant(b), fc.constant(c)))),
);

/** Uses so few names that many scopes cross, cover or equal one another. */
function crossingPath(minDepth: number, maxDepth: number): fc.Arbitrary<string> {
  const one = fc.constantFrom('a', 'b', '{}', '{}');
  return fc
    .tuple(fc.array(one, { minLength: minDepth, maxLength: maxDepth }), fc.boolean())
    .filter(([all]) => all.filter((segment) => segment === '{}').length <= 8)
    .map(([all, isClosed]) => all.join('/') + (isClosed ? '$' : '') || '*');
}

/** Scopes with crossing paths. */
export function crossingScope(minDepth = 0, maxDepth = 4): fc.Arbitrary<string> {
  return fc
    .tuple(
      fc.constantFrom('GET', '*'),
      fc.constantFrom('d.example', 'a.d.example', '*.d.example', '*.example', '*'),
      crossingPath(minDepth, maxDepth),
    )
    .map(([aMethod, aDomain, aPath]) => `${aMethod}:${aDomain}/${aPath}`);
}

/** An entry with a crossing path, mostly on the same host. */
export const crossingEntry: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom('d.example', 'd.example', 'd.example', 'a.d.example'),
    fc.oneof(
      { weight: 9, arbitrary: crossingPath(2, 3) },
      { weight: 1, arbitrary: crossingPath(0, 4).filter((one) => one !== '*') },
    ),
  )
  .map(([aDomain, aPath]) => `GET:${aDomain}/${aPath}`);

/** A request that crossing scopes can match. */
export function crossingPoint(maxDepth = 5): fc.Arbitrary<Point> {
  return fc.record({
    method: fc.constantFrom('GET', 'GET', 'GET', 'PUT'),
    host: fc.constantFrom('d.example', 'd.example', 'd.example', 'a.d.example', 'b.example'),
    segments: fc.array(fc.constantFrom('a', 'a', 'b', 'c'), { maxLength: maxDepth }),
  });
}
