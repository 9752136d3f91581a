import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  bearerGuard,
  type GuardedRequest,
  type GuardNeed,
  type GuardOutcome,
} from '../../src/http/index.ts';
import { runs } from '../laws.ts';
import {
  basic,
  CATALOG,
  type Code,
  expectFailure,
  expectHeaders,
  ORDERS,
  readAnswer,
  setUp,
} from './support.ts';

const rejections: unknown[] = [];
const note = (reason: unknown) => rejections.push(reason);

beforeAll(() => {
  process.on('unhandledRejection', note);
});

afterAll(async () => {
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', note);
  expect(rejections).toEqual([]);
});

/** A service with tokens, and the words that make an arbitrary request hit something. */
async function known() {
  const setup = setUp({ maxBodyBytes: 2048 });
  const [mine, bobs] = [await setup.issue(), await setup.issue('bob')];
  const words = [mine.id, mine.value, bobs.id, bobs.value, 'token', 'scopes', 'rotate', '.', '..'];
  return { setup, words, id: mine.id, value: mine.value };
}

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string(),
  fc.constantFrom('', ' ', '\0', '\r\n', '%', '%00', '%2f', '\\', '__proto__', '\ud800', '😀'),
);

/** Any characters that Fetch accepts in a header. */
const headerText = fc
  .string({
    unit: fc.integer({ min: 0x09, max: 0xff }).map((code) => String.fromCharCode(code)),
  })
  .map((value) => value.replace(/[\n\r\0]/g, '').trim());

function credentials(value: string): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(basic('ada'), `Bearer ${value}`) },
    fc.constantFrom('Basic', 'Bearer', 'Bearer ', `bearer  ${value}`, `Bearer ${value},`),
    fc.tuple(text, text).map(([user, password]) => basic(user, password)),
    fc.tuple(fc.constantFrom('Basic', 'Bearer', 'Digest'), headerText).map((all) => all.join(' ')),
    headerText,
  );
}

function headersWith(value: string): fc.Arbitrary<[string, string][]> {
  const name = fc.oneof(
    fc.constantFrom('content-type', 'content-length', 'content-encoding', 'if-match', 'host'),
    fc.constantFrom('sec-fetch-site', 'cookie', 'x-forwarded-for', 'transfer-encoding', 'expect'),
    fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/),
  );
  const header = fc.oneof(
    fc.tuple(fc.constant('content-type'), fc.constant('application/json')),
    fc.tuple(fc.constant('if-match'), fc.constantFrom('*', '"1"', '"1", "2"', 'W/"1"')),
    fc.tuple(name, headerText),
  );
  return fc
    .tuple(
      fc.option(credentials(value), { nil: undefined, freq: 20 }),
      fc.array(header, { maxLength: 4 }),
    )
    .map(([authorization, all]) =>
      authorization === undefined ? all : [['authorization', authorization], ...all],
    );
}

function paths(words: readonly string[]): fc.Arbitrary<string> {
  const segment = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...words) }, text);
  const parameter = fc
    .tuple(fc.oneof(fc.constantFrom('scope', 'match', 'limit', 'cursor', 'owner'), text), text)
    .map((pair) => pair.join('='));
  const path = fc.oneof(
    fc.constantFrom(
      '/token',
      '/scopes',
      '/review',
      `/token/${words[0]}`,
      `/token/${words[0]}/rotate`,
      `/token/${words[0]}/explain`,
    ),
    fc.array(segment, { maxLength: 4 }).map((all) => `/${all.join('/')}`),
  );
  return fc
    .tuple(path, fc.array(parameter, { maxLength: 2 }))
    .map(([target, query]) => (query.length > 0 ? `${target}?${query.join('&')}` : target));
}

const methods = fc.oneof(
  fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'),
  fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/),
);

const scopes = fc.oneof(
  fc.array(fc.oneof(fc.constantFrom(...CATALOG, '*:*/*', 'GET:*/*'), text), { maxLength: 5 }),
  fc.jsonValue(),
);

const bodies: fc.Arbitrary<string | Uint8Array<ArrayBuffer> | undefined> = fc.oneof(
  fc.constant(undefined),
  fc
    .record(
      {
        scopes,
        addScopes: scopes,
        removeScopes: scopes,
        ttl: fc.oneof(fc.integer(), fc.double(), fc.jsonValue()),
        expire: fc.oneof(fc.integer(), fc.maxSafeInteger(), fc.jsonValue()),
        name: fc.oneof(text, fc.jsonValue()),
        metadata: fc.jsonValue(),
        graceSeconds: fc.oneof(fc.nat(), fc.jsonValue()),
      },
      { requiredKeys: [] },
    )
    .map((value) => JSON.stringify(value)),
  fc.json(),
  text,
  fc.uint8Array({ maxLength: 4096 }).map((bytes) => Uint8Array.from(bytes)),
);

/** The body as a whole for 0, else in chunks of `how` bytes; an even `how` ends with an error. */
function sent(
  body: string | Uint8Array<ArrayBuffer>,
  how: number,
): NonNullable<RequestInit['body']> {
  if (how === 0) return body;
  const bytes = Buffer.from(body);
  return new ReadableStream({
    start(controller) {
      for (let i = 0; i < bytes.length; i += how) controller.enqueue(bytes.subarray(i, i + how));
      if (how % 2 === 0) controller.error(new Error('gone'));
      else controller.close();
    },
  });
}

interface Parts {
  readonly method: string;
  readonly path: string;
  readonly headers: [string, string][];
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
  readonly how: number;
}

function parts(words: readonly string[], value: string): fc.Arbitrary<Parts> {
  return fc.record({
    method: methods,
    path: paths(words),
    headers: headersWith(value),
    body: bodies,
    how: fc.constantFrom(0, 0, 1, 7, 8),
  });
}

/** `undefined` if Fetch itself refuses to construct the request. */
function toRequest({ method, path, headers, body, how }: Parts): Request | undefined {
  const hasBody = body !== undefined && method !== 'GET' && method !== 'HEAD';
  try {
    return new Request(`http://localhost${path}`, {
      method,
      headers,
      ...(hasBody && { body: sent(body, how), duplex: 'half' }),
    } as RequestInit);
  } catch {
    return undefined;
  }
}

describe('an arbitrary request', () => {
  it('gets an answer of the service in the envelope and never a 5xx', async () => {
    const { setup, words, value } = await known();
    const statuses = new Set<number>();
    // Random requests of an account are seldom right, and seldom wrong in their body alone.
    const headers: Parts['headers'] = [
      ['authorization', basic('ada')],
      ['content-type', 'application/json'],
    ];
    const right: Parts = { method: 'GET', path: '/scopes', headers, body: undefined, how: 0 };

    await fc.assert(
      fc.asyncProperty(parts(words, value), async (made) => {
        const request = toRequest(made);
        if (request === undefined) return;
        const answer = await readAnswer(await setup.handler(request));
        statuses.add(answer.status);
        expect(answer.status).toBeLessThan(500);
        if (answer.status === 200 || answer.text === '') {
          // Only the scopes may be kept, and say so by `vary`.
          const kept = answer.headers.has('vary') ? 'private, no-cache' : undefined;
          expectHeaders({ ...answer, text: '' }, kept);
          expect(answer.body['success'] ?? true).toBe(true);
        } else expectFailure(answer, answer.body['code'] as Code);
      }),
      {
        ...runs(2),
        examples: [[right], [{ ...right, method: 'POST', path: '/token', body: '{' }]],
      },
    );

    // Control: the requests are not so wild that they all fail in the same way.
    for (const status of [200, 400, 401, 404, 405]) expect(statuses).toContain(status);
  });

  it('gets JSON or an empty body and never a 5xx when every feature is on', async () => {
    const { words, value } = await known();
    const { handler } = setUp({
      introspection: { authenticate: ({ username }) => (username === 'ada' ? 'ada' : null) },
      revocation: true,
      acceptLegacyBody: true,
      pathTokens: 'id-only',
      limiter: { waitSeconds: () => 0, failed: () => 0, succeeded: () => {} },
      clientAddress: () => '192.0.2.1',
    });
    const all = [...words, 'introspect', 'revoke', 'openapi.json', 'docs'];

    await fc.assert(
      fc.asyncProperty(parts(all, value), fc.boolean(), async (made, isForm) => {
        const type: [string, string] = ['content-type', 'application/x-www-form-urlencoded'];
        const request = toRequest(isForm ? { ...made, headers: [type, ...made.headers] } : made);
        if (request === undefined) return;
        const response = await handler(request);
        expect(response.status).toBeLessThan(500);
        const body = await response.text();
        if (body !== '') expect(() => JSON.parse(body)).not.toThrow();
      }),
      runs(2),
    );
  });

  it('is accepted by the guard or refused with 400, 401 or 403 in the envelope', async () => {
    const { setup, id, value } = await known();
    const guard = bearerGuard({ tokens: setup.tokens, domain: 'shop.example' });
    const outcomes = new Set<string>();
    const expectOutcome = async (request: GuardedRequest, need?: GuardNeed) => {
      const outcome: GuardOutcome = await guard(request, need);
      if (outcome.ok) {
        outcomes.add('ok');
        expect(outcome.token).toMatchObject({ account: 'ada', scopes: [ORDERS] });
        return;
      }
      outcomes.add(outcome.reason);
      const { status, headers, body, text: shown } = await readAnswer(outcome.response);
      expect([400, 401, 403]).toContain(status);
      expect(headers.get('www-authenticate')).toMatch(/^Bearer realm="shop\.example"/);
      if (shown !== '') expect(body).toMatchObject({ success: false, data: null });
    };

    await fc.assert(
      fc.asyncProperty(
        parts([id, value, 'orders', '7', '.', '..', '%2e'], value),
        fc.option(text, { nil: undefined }),
        async (made, target) => {
          const request = toRequest(made);
          if (request !== undefined) await expectOutcome(request);
          // As Node passes it: not normalized by Fetch, and with header names in any case.
          await expectOutcome({
            method: made.method,
            url: made.path,
            headers: Object.fromEntries(made.headers),
            rawHeaders: made.headers.flat(),
            ...(target !== undefined && { originalUrl: target }),
          });
          if (target !== undefined) {
            await expectOutcome({ method: 'GET', url: '/', headers: {} }, { target });
          }
        },
      ),
      {
        ...runs(2),
        examples: [
          [
            {
              method: 'GET',
              path: '/orders/7',
              headers: [['authorization', `Bearer ${value}`]],
              body: undefined,
              how: 0,
            },
            undefined,
          ],
        ],
      },
    );

    for (const outcome of ['ok', 'missing', 'malformed', 'insufficient_scope']) {
      expect(outcomes).toContain(outcome);
    }
  });
});
