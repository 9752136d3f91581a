import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearerGuard } from '../../../src/http/index.ts';
import { catalogFromOpenApi } from '../../../src/openapi/index.ts';
import { readRequest, ScopeCatalog, ScopeSet } from '../../../src/scope/index.ts';
import { setUp } from '../support.ts';
import { raw } from '../wire.ts';
import { ROUTERS, routeIn } from './routers.ts';

const DOMAIN = 'shop.example';

/** What every server serves, in an order that shows which of two crossing routes comes first. */
const ROUTES = [
  ...['/', '/orders', '/orders/export', '/orders/:id', '/orders/:id/items'],
  ...['/l/@me', '/l/:id', '/m/key', '/m/:id', "/s/a'b", '/s/:id', '/t/a=~b', '/t/:id'],
  ...['/w/top', '/w/*', '/p/:x/c', '/p/b/:x', '/Users/Search', '/Users/:id', '/:first/:second'],
];

const scopeOf = (route: string, method = 'GET'): string =>
  `${method}:${DOMAIN}/${
    route.endsWith('/*') ? route.slice(1, -2) : `${route.slice(1).replaceAll(/:\w+/g, '{}')}$`
  }`;

/** Paths as people write them, and what each of their segments may become. */
const PATHS = [
  ...ROUTES.map((route) => route.replaceAll(/:\w+|\*/g, 'v7')),
  ...['/p/b/c', '/w/a/b', '/orders/key', '/m/export', '/orders/7/items', '/l/me', '/users/search'],
];

const hex = (unit: string): string =>
  `%${unit.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
const encoded = (text: string, characters: RegExp): string => text.replace(characters, hex);

/** The ways to write one segment that some router reads as another. */
const SPELLINGS: readonly ((segment: string) => string)[] = [
  (text) => text.toUpperCase(),
  (text) => text.toLowerCase(),
  (text) => text.replace(/[a-z]/i, (letter) => swapped(letter)),
  (text) => text.replace(/[a-z](?=[^a-z]*$)/i, (letter) => swapped(letter)),
  (text) => encoded(text, /^./),
  (text) => encoded(text, /.$/),
  (text) => encoded(text, /./g),
  (text) => encoded(text, /[^\w.~-]/g),
  (text) => encoded(text, /[^\w.~-]/),
  (text) => encoded(text.toUpperCase(), /./g),
  (text) => encoded(text, /./g).toLowerCase(),
  (text) => text.replace(/k/i, '%E2%84%AA'),
  (text) => text.replace(/s/i, '%C5%BF'),
  (text) => text.replace(/i/i, '%C4%B1'),
  (text) => `${text}%20`,
  (text) => `${text}%3F`,
  (text) => `${text};a=b`,
  (text) => `${text}.json`,
  (text) => text.replace(/.$/, '%25$&'),
  () => '%2e%2e',
  () => '',
];

function swapped(letter: string): string {
  const upper = letter.toUpperCase();
  return letter === upper ? letter.toLowerCase() : upper;
}

/** Every spelling of each segment and of all, and each with a slash at the end. */
function targetsOf(path: string): string[] {
  const segments = path.slice(1).split('/');
  const spelled = SPELLINGS.flatMap((spell) => [
    segments.map(spell),
    ...segments.map((_, i) => segments.map((one, j) => (i === j ? spell(one) : one))),
  ]);
  return [segments, ...spelled]
    .map((all) => `/${all.join('/')}`)
    .flatMap((one) => (one.endsWith('/') ? [one] : [one, `${one}/`]));
}

const TARGETS = [...new Set(PATHS.flatMap(targetsOf))];

/** One scope of each kind for each route: literal or with `{}` as the route is, and open. */
const SCOPES = [
  ...new Set([
    ...ROUTES.map((route) => scopeOf(route)),
    ...ROUTES.map((route) => scopeOf(route).replace(/\$$/, '')).filter((s) => !s.endsWith('/')),
    ...['orders', 'orders/{}', 'l', 'm/{}$', 'w/{}', 'p/{}', '{}', '{}/{}', 'Users'].map(
      (path) => `GET:${DOMAIN}/${path}`,
    ),
    `GET:${DOMAIN}/*`,
  ]),
];

/**
 * Whether a scope opens a route for a target: it has the literals of the route, and any value or exactly
 * the one that was sent.
 */
function opens(scope: string, route: string, target: string): boolean {
  const [, path = '', mark = ''] = /^[^/]*\/(.*?)(\$?)$/.exec(scope) ?? [];
  const own = path === '' || path === '*' ? [] : path.split('/');
  const segments = route === '/' ? [] : route.slice(1).split('/');
  const isAny = segments.at(-1) === '*';
  if (own.length > segments.length && !isAny) return false;
  if (mark === '$' && own.length < segments.length) return false;
  const sent = target.slice(1).split('/');
  return own.every((one, i) => {
    const literal = segments[i] ?? '*';
    return /^[:*]/.test(literal) ? one === '{}' || one === sent[i] : one === literal;
  });
}

/** Requests over one connection. */
const BATCH = 250;

/** Sends targets as they are, many over one connection; returns the routes that answer with 200. */
async function answersOf(targets: readonly string[], method = 'GET'): Promise<Map<string, string>> {
  const routes = new Map<string, string>();
  for (let start = 0; start < targets.length; start += BATCH) {
    const batch = targets.slice(start, start + BATCH);
    const heads = batch.map((target, i) => {
      const connection = i === batch.length - 1 ? 'connection: close\r\n' : '';
      return `${method} ${target} HTTP/1.1\r\nhost: ${DOMAIN}\r\n${connection}\r\n`;
    });
    const answers = (await raw(port, heads.join(''))).split(/(?=HTTP\/1\.1 \d{3} )/);
    expect(answers).toHaveLength(batch.length);
    for (const [i, target] of batch.entries()) {
      const route = routeIn(answers[i] as string);
      if (route !== undefined) routes.set(target, route);
    }
  }
  return routes;
}

let port = 0;
let listener: RequestListener = () => {};
const server = createServer((request, response) => listener(request, response));

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const CATALOG = ScopeCatalog.from(ROUTES.map((route) => scopeOf(route)));

type Accepted = ReadonlyMap<string, ReadonlySet<string>>;

/** The targets that scopes alone allow when a catalog, or nothing, has read the request. */
function acceptedBy(catalog: ScopeCatalog | undefined, method: string, scopes: readonly string[]) {
  const requests = TARGETS.flatMap((target) => {
    const asked = { method, domain: DOMAIN, target };
    const reading = catalog === undefined ? readRequest(asked) : catalog.readRequest(asked);
    return reading.ok ? [[target, reading.request] as const] : [];
  });
  return new Map(
    scopes.map((scope) => {
      const set = ScopeSet.from([scope]);
      const allowed = requests.filter(([, request]) => set.allows(request).allowed);
      return [scope, new Set(allowed.map(([target]) => target))] as const;
    }),
  );
}

/** Each request that a token may make, and that a router takes to a route which the token does not hold. */
function strayed(accepted: Accepted, routes: ReadonlyMap<string, string>): string[] {
  return [...accepted].flatMap(([scope, targets]) =>
    [...targets].flatMap((target) => {
      const route = routes.get(target);
      const isHeld = route === undefined || opens(scope, route, target);
      return isHeld ? [] : [`${target} with ${scope} reaches ${route}`];
    }),
  );
}

const ACCEPTED = acceptedBy(CATALOG, 'GET', SCOPES);
const EVERY_METHOD = SCOPES.map((scope) => scope.replace('GET', '*'));
const ACCEPTED_HEAD = acceptedBy(CATALOG, 'HEAD', EVERY_METHOD);
/** Without a catalog, by the scopes alone. */
const NAIVE = acceptedBy(undefined, 'GET', SCOPES);

describe('a router that reads paths in its own way', () => {
  it.each(Object.entries(ROUTERS))(
    'never serves a route that the token does not hold: %s',
    async (_, make) => {
      listener = await make(ROUTES);
      const routes = await answersOf(TARGETS);
      const heads = await answersOf(TARGETS.slice(0, 200), 'HEAD');

      expect(new Set(routes.values()).size).toBeGreaterThanOrEqual(ROUTES.length - 1);
      expect(strayed(ACCEPTED, routes)).toEqual([]);
      expect(strayed(ACCEPTED_HEAD, heads)).toEqual([]);
      // The control.
      expect(strayed(NAIVE, routes)).not.toEqual([]);
    },
  );

  it('is guarded by the same rule in verify and in the guard', async () => {
    const { tokens } = setUp({ catalog: null });
    const guard = bearerGuard({ tokens, domain: DOMAIN, catalog: CATALOG });
    for (const scope of SCOPES) {
      const { value } = await tokens.issue({ account: 'ada', scopes: [scope] });
      const headers = { host: DOMAIN, authorization: `Bearer ${value}` };
      for (let i = SCOPES.indexOf(scope); i < TARGETS.length; i += 53) {
        const url = TARGETS[i] as string;
        const { ok } = await guard({ method: 'GET', url, headers });
        expect(ok, `${url} with ${scope}`).toBe(ACCEPTED.get(scope)?.has(url));
      }
    }
  });
});

describe('a plain request', () => {
  it.each(ROUTES)('of a route is open to the token that holds it: %s', (route) => {
    const target = route.replaceAll(/:\w+|\*/g, 'v7');

    expect(ACCEPTED.get(scopeOf(route))).toContain(target);
  });

  it('of a document that writes its paths with a slash is open with it and without', async () => {
    const paths = ['/orders/', '/orders/export/', '/orders/{id}/', '/orders/{id}/items/'];
    const catalog = await catalogFromOpenApi({
      openapi: '3.1.0',
      servers: [{ url: `https://${DOMAIN}` }],
      paths: Object.fromEntries(paths.map((path) => [path, { get: {} }])),
    });
    for (const path of paths) {
      const target = path.replace('{id}', 'v7');
      const scope = scopeOf(path.slice(0, -1).replace('{id}', ':id'));
      for (const sent of [target, target.slice(0, -1)]) {
        const reading = catalog.readRequest({ method: 'GET', domain: DOMAIN, target: sent });
        const isAllowed = reading.ok && ScopeSet.from([scope]).allows(reading.request).allowed;
        expect(isAllowed, sent).toBe(true);
      }
    }
  });
});
