import fc from 'fast-check';

/** A request in the plainest form: what a scope is said to denote a set of. */
export interface Point {
  readonly method: string;
  readonly host: string;
  readonly segments: readonly string[];
}

/** A value that fails whoever looks into it. */
export function hostile(): object {
  const fail = (): never => {
    throw new Error('looked into');
  };
  const traps = Object.fromEntries(
    Object.getOwnPropertyNames(Reflect).map((name) => [name, fail]),
  ) as ProxyHandler<object>;
  return new Proxy({}, traps);
}

/** Whether a scope's text denotes a request: sections 1.2 to 1.4, word for word. */
export function denotes(scope: string, point: Point): boolean {
  const { method, domain, segments } = partsOf(scope);
  return (
    (method === '*' || method === point.method) &&
    (domain === '*' || domain === point.host || isBelow(point.host, domain)) &&
    segments.every((segment, place) => segment === point.segments[place])
  );
}

function isBelow(host: string, pattern: string): boolean {
  if (!pattern.startsWith('*.')) return false;
  const labels = host.split('.');
  return labels.some((_, place) => place > 0 && `*.${labels.slice(place).join('.')}` === pattern);
}

interface Parts {
  readonly method: string;
  readonly domain: string;
  readonly path: string;
  readonly segments: readonly string[];
}

/** Each text is asked about many times over; to take it apart once keeps the laws fast. */
const known = new Map<string, Parts>();

function partsOf(scope: string): Parts {
  const parts = known.get(scope) ?? takeApart(scope);
  known.set(scope, parts);
  return parts;
}

function takeApart(scope: string): Parts {
  const colon = scope.indexOf(':');
  const slash = scope.indexOf('/', colon);
  const path = scope.slice(slash + 1);
  return {
    method: scope.slice(0, colon),
    domain: scope.slice(colon + 1, slash),
    path,
    segments: path === '*' ? [] : path.split('/'),
  };
}

/** Whether any of the scopes denotes a request. */
export function anyDenotes(scopes: readonly string[], point: Point): boolean {
  return scopes.some((scope) => denotes(scope, point));
}

/**
 * Requests enough to tell apart whatever these scopes can say: all that they name, what is just
 * above and just below it, and a method, labels and segments that none of them mentions.
 */
export function universeOf(scopes: readonly string[]): Point[] {
  const methods = new Set(['FRESH-METHOD']);
  const hosts = new Set(['fresh-host', 'below.fresh-host']);
  const paths = new Set(['', 'fresh-segment']);
  for (const scope of scopes) {
    const { method, domain, path } = partsOf(scope);
    if (method !== '*') methods.add(method);
    const host = domain.replace(/^\*\.?/, '');
    if (host !== '') {
      hosts.add(host).add(`fresh-label.${host}`).add(`deep.fresh-label.${host}`).add(`x${host}`);
    }
    if (path === '*') continue;
    paths.add(path).add(`${path}/fresh-segment`).add(`${path}x`);
    if (path.includes('/')) paths.add(path.slice(0, path.lastIndexOf('/')));
  }
  return [...methods].flatMap((method) =>
    [...hosts].flatMap((host) =>
      [...paths].map((path) => ({ method, host, segments: path === '' ? [] : path.split('/') })),
    ),
  );
}

/** The request as a guard would put it. */
export function asRequest({ method, host, segments }: Point): {
  method: string;
  domain: string;
  target: string;
} {
  return { method, domain: host, target: `/${segments.join('/')}` };
}

/** Mostly from a small alphabet, so that scopes meet; now and then a name that no other one has. */
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
  fc.stringMatching(/^[A-Za-z0-9~!$&'()+=:@-]{1,5}$/),
);
const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((all) => all.join('/'));

/** A scope of any kind, in canonical form. */
export const anyScope: fc.Arbitrary<string> = fc
  .tuple(
    fc.oneof({ weight: 1, arbitrary: fc.constant('*') }, { weight: 2, arbitrary: method }),
    domain,
    fc.oneof({ weight: 1, arbitrary: fc.constant('*') }, { weight: 3, arbitrary: path }),
  )
  .map(([aMethod, aDomain, aPath]) => `${aMethod}:${aDomain}/${aPath}`);

/** A scope with a real method, domain and path. */
export const concreteScope: fc.Arbitrary<string> = fc
  .tuple(method, fc.oneof(fc.constantFrom('d.example', 'a.d.example'), host), path)
  .map(([aMethod, aDomain, aPath]) => `${aMethod}:${aDomain}/${aPath}`);

export const someScopes: fc.Arbitrary<string[]> = fc.array(anyScope, { maxLength: 4 });

export const LAW = { numRuns: 1000 } as const;
