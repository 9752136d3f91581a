import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attempts, MAX_HOLD, NEAR_LINEAR, slopeOfCosts } from '../../growth.ts';
import { basic } from '../support.ts';
import { entries } from './entries.ts';
import type { Measurements, Order } from './server.ts';

const CALLS = 5;
/** All above the thousand scopes that the service remembers from earlier calls. */
const SIZES = [1024, 1600, 2560, 4096];
const LIMIT = 4096;
/** Only a token of more than half of the catalog is too broad, and is shown with all of its scopes. */
const BROAD_SIZES = [2100, 2600, 3300, 4096];

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A service in a separate process, so that it does not share its event loop with the client. */
class Service {
  readonly #child: ChildProcess;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  #port = 0;

  constructor(catalogSize: number) {
    const program = new URL('./server.ts', import.meta.url).pathname;
    this.#child = fork(program, [String(catalogSize)], { execArgv: [] });
  }

  async start(): Promise<void> {
    const [{ port }] = await once(this.#child, 'message');
    this.#port = port;
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }

  /** Measurements since the last call; an order itself counts only if it is `hold`. */
  async measurements(order: Order = { measure: 'calls' }): Promise<Measurements> {
    this.#child.send(order);
    const [measurements] = await once(this.#child, 'message');
    return measurements as Measurements;
  }

  call(
    method: string,
    path: string,
    { body, as = 'ada', headers = {} }: { body?: string; as?: string; headers?: object } = {},
  ): Promise<Answer> {
    const isForm = path === '/introspect' || path === '/revoke';
    const type = isForm ? 'application/x-www-form-urlencoded' : 'application/json';
    const sent = {
      authorization: basic(as),
      ...(body !== undefined && {
        'content-type': type,
        'content-length': Buffer.byteLength(body),
      }),
      ...headers,
    };
    return new Promise((resolve, reject) => {
      const outgoing = request(
        { port: this.#port, method, path, headers: sent, agent: this.#agent },
        (incoming) => {
          const chunks: Buffer[] = [];
          incoming.on('data', (chunk) => chunks.push(chunk));
          incoming.on('end', () => {
            const { statusCode: status = 0, headers: received } = incoming;
            resolve({ status, headers: received, text: Buffer.concat(chunks).toString() });
          });
        },
      );
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  }

  async issue(scopes: readonly string[], as = 'ada'): Promise<{ id: string; token: string }> {
    const body = JSON.stringify({ scopes });
    return JSON.parse((await this.call('POST', '/token', { body, as })).text);
  }
}

let service: Service;

beforeAll(async () => {
  service = new Service(LIMIT);
  await service.start();
});

afterAll(() => service.stop());

/** Prepares a call of one size, with its own account so that it sees only its own tokens. */
type Route = (size: number, as: string) => Promise<() => Promise<Answer>>;

const sending =
  (method: string, path: (id: string) => string, make: (size: number) => unknown): Route =>
  async (size, as) => {
    const { id } = await service.issue(entries(size), as);
    const made = make(size);
    const body = typeof made === 'string' ? made : JSON.stringify(made);
    return () => service.call(method, path(id), { body, as });
  };

const reading =
  (path: (id: string) => string, headers: (size: number) => object = () => ({})): Route =>
  async (size, as) => {
    const { id } = await service.issue(entries(size), as);
    return () => service.call('GET', path(id), { as, headers: headers(size) });
  };

const toAll = () => '/token';
const toOne = (id: string) => `/token/${id}`;
const spoilt = (size: number, spoil: (scope: string) => string) => entries(size).map(spoil);
const members = (size: number) => Object.fromEntries(entries(size).map((scope) => [scope, 1]));

const ROUTES: readonly [name: string, route: Route, status: number, sizes?: readonly number[]][] = [
  ['POST of scopes', sending('POST', toAll, (n) => ({ scopes: entries(n) })), 200],
  [
    'POST of wildcards',
    sending('POST', toAll, (n) => ({ scopes: spoilt(n, (s) => s.replace('GET', '*')) })),
    200,
  ],
  [
    'POST of unknown scopes',
    sending('POST', toAll, (n) => ({ scopes: spoilt(n, (s) => s.replace('/r', '/q')) })),
    422,
  ],
  [
    'POST of malformed scopes',
    sending('POST', toAll, (n) => ({ scopes: spoilt(n, (s) => `${s.toLowerCase()}/`) })),
    422,
  ],
  ['POST of unknown members', sending('POST', toAll, members), 400],
  [
    'POST of metadata',
    sending('POST', toAll, (n) => ({ scopes: entries(1), metadata: { a: 'x'.repeat(n - 64) } })),
    200,
  ],
  [
    'POST of deep metadata',
    sending(
      'POST',
      toAll,
      (n) => `{"scopes":["GET:a.b/c"],"metadata":${'{"a":'.repeat(n)}1${'}'.repeat(n)}}`,
    ),
    400,
  ],
  ['POST of deep lists', sending('POST', toAll, (n) => `${'['.repeat(n)}${']'.repeat(n)}`), 400],
  ['POST of invalid JSON', sending('POST', toAll, (n) => '{"a":'.repeat(n)), 400],
  ['GET of one', reading(toOne), 200],
  ['GET of all', reading(toAll), 200],
  ['GET of a list by scope', reading(() => '/token?scope=GET:api9.example.com/zzz'), 200],
  [
    'GET with a query',
    async (n, as) => () => service.call('GET', `/token?${'a=1&'.repeat(n / 4)}`, { as }),
    200,
  ],
  [
    'explanation of a refusal',
    sending(
      'POST',
      (id) => `${toOne(id)}/explain`,
      () => ({ method: 'POST', domain: 'api9.example.com', target: '/zzz' }),
    ),
    200,
  ],
  ['review', reading(() => '/review'), 200, BROAD_SIZES],
  ['GET of the scopes', reading(() => '/scopes'), 200],
  ['GET of the description', reading(() => '/openapi.json'), 200],
  ['PUT', sending('PUT', toOne, (n) => ({ scopes: entries(n) })), 200],
  ['PATCH of scopes', sending('PATCH', toOne, (n) => ({ scopes: entries(n) })), 200],
  ['PATCH that adds', sending('PATCH', toOne, (n) => ({ addScopes: entries(n) })), 200],
  [
    'PATCH that adds and removes',
    sending('PATCH', toOne, (n) => ({ addScopes: entries(n), removeScopes: entries(n) })),
    200,
  ],
  [
    'PATCH that removes scopes that are not held',
    sending('PATCH', toOne, (n) => ({ removeScopes: spoilt(n, (s) => s.replace('/r', '/q')) })),
    422,
  ],
  ['PATCH of a name', sending('PATCH', toOne, () => ({ name: 'x' })), 200],
  [
    'rotation',
    sending(
      'POST',
      (id) => `${toOne(id)}/rotate`,
      () => ({}),
    ),
    200,
  ],
  [
    'DELETE with many tags',
    async (n, as) => {
      const { id } = await service.issue(entries(1), as);
      const tags = Array.from({ length: n }, () => '"7"').join(',');
      return () =>
        service.call('DELETE', toOne(id), { as, headers: { 'if-match': tags.slice(0, 12_000) } });
    },
    412,
  ],
  [
    'introspection',
    async (n, as) => {
      const { token } = await service.issue(entries(n), as);
      return () => service.call('POST', '/introspect', { as, body: `token=${token}` });
    },
    200,
  ],
  [
    'introspection of a long form',
    async (n, as) => () =>
      service.call('POST', '/introspect', { as, body: `token=x&${'b=1&'.repeat((n - 16) / 4)}` }),
    400,
  ],
  [
    'revocation of a malformed value',
    async (n, as) => () =>
      service.call('POST', '/revoke', { as, body: `token=${'x'.repeat(n - 7)}` }),
    200,
  ],
];

/**
 * The longest that a route may hold the event loop, in units of the reference work. It gets more than a
 * verb, because it also parses and serializes thousands of scopes.
 */
const MAX_ROUTE_HOLD = 1.5 * MAX_HOLD;

/** Keeps the lowest measurements, because a busy machine only ever adds time. */
class Least {
  #longestMs = Infinity;
  #referenceMs = Infinity;

  /** The longest that a call holds the event loop, in units of the reference work. */
  get hold(): number {
    return this.#longestMs / this.#referenceMs;
  }

  /** Measures the CPU time of a call. */
  async measure(call: () => Promise<Answer>, status: number): Promise<number> {
    const { referenceMs } = await service.measurements({ measure: 'reference' });
    this.#referenceMs = Math.min(this.#referenceMs, referenceMs);
    let cpuMs = 0;
    for (let i = 0; i < CALLS; i++) {
      expect((await call()).status).toBe(status);
      const { longestMs, cpuMs: ms } = await service.measurements();
      this.#longestMs = Math.min(this.#longestMs, longestMs);
      cpuMs += ms / CALLS;
    }
    return cpuMs;
  }
}

describe('a route', () => {
  it.each(ROUTES)(
    'takes time in proportion to its data: %s',
    async (name, route, status, sizes = SIZES) => {
      const least = new Least();
      const calls = new Map<number, () => Promise<Answer>>();
      for (const size of sizes) calls.set(size, await route(size, `${name} ${size}`));
      const largest = calls.get(LIMIT) as () => Promise<Answer>;

      const slope = await slopeOfCosts(
        (size) => {
          const call = calls.get(size) as () => Promise<Answer>;
          return (size === LIMIT ? least : new Least()).measure(call, status);
        },
        sizes,
        NEAR_LINEAR,
      );
      const goesOn = attempts(MAX_ROUTE_HOLD);
      while (goesOn(least.hold)) await least.measure(largest, status);

      expect(slope).toBeLessThan(NEAR_LINEAR);
      expect(least.hold).toBeLessThan(MAX_ROUTE_HOLD);
    },
  );

  describe('with ten thousand tokens', () => {
    beforeAll(() => service.measurements({ tokens: 10_000 }));

    const holdOf = async (path: string): Promise<number> => {
      const least = new Least();
      const goesOn = attempts(MAX_HOLD);
      while (goesOn(least.hold)) {
        await least.measure(() => service.call('GET', path, { as: 'many' }), 200);
      }
      return least.hold;
    };

    it.each<[string, string]>([
      ['a page', '/token?limit=100'],
      ['a filter by a scope that no token has', '/token?scope=GET:api9.example.com/zzz'],
      ['a whole list', '/token'],
      ['a review', '/review'],
    ])('does not hold up the process: %s', async (_, path) => {
      expect(await holdOf(path)).toBeLessThan(MAX_HOLD);
    });
  });

  it('is detected if it holds up the process (control)', async () => {
    const { referenceMs } = await service.measurements({ measure: 'reference' });
    await service.measurements({ hold: 4 });
    const { longestMs } = await service.measurements();

    expect(longestMs / referenceMs).toBeGreaterThan(MAX_ROUTE_HOLD);
  });

  it('ends a list at a mebibyte even without a limit', async () => {
    for (let i = 0; i < 12; i++) await service.issue(entries(LIMIT), 'large');
    const { text, headers } = await service.call('GET', '/token', { as: 'large' });
    const { data, cursor } = JSON.parse(text);

    expect(text.length).toBeLessThan(1_100_000);
    expect(data.length).toBeGreaterThan(1);
    expect(cursor).toEqual(expect.any(String));
    expect(headers['link']).toContain('rel="next"');
  });
});
