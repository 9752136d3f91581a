import { describe, expect, it } from 'vitest';
import type { GuardedNodeRequest } from '../../src/http/guard/guard.ts';
import { type BearerGuardOptions, bearerGuard, type GuardOutcome } from '../../src/http/index.ts';
import { rateLimitHeaders } from '../../src/http/rate-limit-fields.ts';
import type { TokenLimits } from '../../src/token/record.ts';
import { RecordingLeases, setUpLimits } from '../limits/support.ts';
import { asForm, basic, ORDERS, setUp as setUpHandler } from './support.ts';

const HERE = '192.0.2.7';

async function setUp(limits: TokenLimits, options: Partial<BearerGuardOptions> = {}) {
  const setting = setUpLimits();
  const errors: unknown[] = [];
  const guard = bearerGuard({
    tokens: setting.tokens,
    domain: 'shop.example',
    onError: (error) => errors.push(error),
    ...options,
  });
  const { value } = await setting.tokens.issue({ account: 'ada', scopes: [ORDERS], limits });
  const ask = async (target = '/orders', method = 'GET') =>
    guard({ method, url: target, headers: { authorization: `Bearer ${value}` } });
  return { ...setting, guard, ask, errors, value };
}

async function answerOf(outcome: GuardOutcome) {
  if (outcome.ok) return { status: 200 };
  const { status, headers } = outcome.response;
  const body = (await outcome.response.json()) as Record<string, unknown>;
  return { status, headers: Object.fromEntries(headers), body, reason: outcome.reason };
}

/** Parses a list of one item: a string with integer parameters (RFC 9651, 4.2.1 to 4.2.5). */
function itemOf(value = ''): Readonly<Record<string, string | number>> {
  const [, name, parameters] =
    /^"([ !#-[\]-~]+)"((?:;[a-z][a-z0-9]*=(?:0|[1-9]\d{0,14}))*)$/.exec(value) ?? [];
  if (name === undefined || parameters === undefined) throw new Error(`not an item: ${value}`);
  const pairs = parameters.split(';').slice(1);
  const members = pairs.map((pair) => pair.split('=') as [string, string]);
  return { name, ...Object.fromEntries(members.map(([key, number]) => [key, Number(number)])) };
}

describe('bearerGuard with a token whose uses are limited', () => {
  it.each<[string, number, TokenLimits]>([
    ['a number', 2, { uses: 2 }],
    ['a rate, some of which is leased in advance', 100, { rate: { uses: 100, seconds: 60 } }],
  ])('takes one use of %s for a request that several guards see', async (_, uses, limits) => {
    const { guard, value } = await setUp(limits);
    const twice = async () => {
      const headers = { authorization: `Bearer ${value}` };
      const request = { method: 'GET', url: '/orders', headers };
      return [(await guard(request)).ok, (await guard(request)).ok];
    };

    for (let use = 0; use < uses; use++) expect(await twice()).toEqual([true, true]);
    expect(await twice()).toEqual([false, false]);
  });
});

describe('bearerGuard with a token that is limited to addresses', () => {
  const limits = { addresses: ['192.0.2.0/24'] };

  it.each([
    [HERE, 200],
    ['::ffff:192.0.2.7', 200],
    ['198.51.100.7', 403],
  ])('answers a request from %s with %d', async (address, status) => {
    const { ask, errors } = await setUp(limits, { clientAddress: () => address });

    expect((await answerOf(await ask())).status).toBe(status);
    expect(errors).toEqual([]);
  });

  it('names neither a scope nor a challenge when it refuses an address', async () => {
    const { ask } = await setUp(limits, { clientAddress: () => '198.51.100.7' });

    const { status, headers, body, reason } = await answerOf(await ask());

    expect({ status, reason }).toEqual({ status: 403, reason: 'address_denied' });
    expect(body).toMatchObject({ code: 'address_denied', error: 134, success: false });
    expect(headers).not.toHaveProperty('www-authenticate');
    expect(JSON.stringify(body)).not.toContain('orders');
  });

  it.each<[string, Partial<BearerGuardOptions>, RegExp]>([
    ['is not given', {}, /needs the option clientAddress/],
    ['returns nothing', { clientAddress: () => undefined }, /must return an IP address; got none/],
    [
      'returns an address with a port',
      { clientAddress: () => `${HERE}:1` },
      /got "192\.0\.2\.7:1"/,
    ],
    [
      'throws',
      {
        clientAddress: () => {
          throw new Error('a secret');
        },
      },
      /got none/,
    ],
    [
      'returns a promise',
      { clientAddress: (() => Promise.resolve(HERE)) as never },
      /must return an IP address; got none/,
    ],
  ])(
    'refuses requests if clientAddress %s, and calls onError once',
    async (_, options, message) => {
      const { ask, errors } = await setUp(limits, options);

      const answers = [await answerOf(await ask()), await answerOf(await ask())];

      for (const { status, body, reason } of answers) {
        expect({ status, reason }).toEqual({ status: 403, reason: 'address_unknown' });
        expect(body).toMatchObject({ code: 'address_denied' });
      }
      expect(errors).toEqual([
        expect.objectContaining({ message: expect.stringMatching(message) }),
      ]);
    },
  );

  it('calls clientAddress with the request, and only for tokens with addresses', async () => {
    const asked: unknown[] = [];
    const clientAddress = (request: { readonly url?: string | undefined }) => {
      asked.push(request.url);
      return HERE;
    };
    const { ask, guard, tokens } = await setUp(limits, {
      clientAddress: clientAddress as NonNullable<BearerGuardOptions['clientAddress']>,
    });
    const { value } = await tokens.issue({ account: 'ada', scopes: [ORDERS] });
    const request = {
      method: 'GET',
      url: '/orders',
      headers: { authorization: `Bearer ${value}` },
    };

    expect((await guard(request)).ok).toBe(true);
    expect(asked).toEqual([]);
    expect((await ask('/orders/7')).ok).toBe(true);
    expect(asked).toEqual(['/orders/7']);
  });

  it('passes the address to a custom verifier', async () => {
    const { tokens, value } = await setUp(limits);
    const own: BearerGuardOptions['tokens'] = {
      verify: (...call: Parameters<typeof tokens.verify>) => tokens.verify(...call),
      verifySync: () => undefined,
    };
    const from = (address: string) =>
      bearerGuard({ tokens: own, domain: 'shop.example', clientAddress: () => address });
    const request: GuardedNodeRequest = {
      method: 'GET',
      url: '/orders',
      headers: { authorization: `Bearer ${value}` },
    };

    expect((await from(HERE)(request)).ok).toBe(true);
    expect((await from('::1')(request)).ok).toBe(false);
  });

  it.each([
    [{ clientAddress: 'x' }, /clientAddress must be a function/],
    [{ onError: 'x' }, /onError must be a function/],
  ])('refuses the option %j', async (options, message) => {
    await expect(setUp(limits, options as never)).rejects.toThrow(message);
  });
});

describe('bearerGuard with a token that has a rate', () => {
  const limits = { rate: { uses: 2, seconds: 60 } };

  it('answers 429 with Retry-After and the RateLimit fields', async () => {
    const { ask, clock } = await setUp(limits);
    clock.advance(48);
    expect([(await ask()).ok, (await ask()).ok]).toEqual([true, true]);

    const { status, headers, body, reason } = await answerOf(await ask());

    expect({ status, reason }).toEqual({ status: 429, reason: 'limit_exceeded' });
    expect(headers).toMatchObject({
      'retry-after': '12',
      'ratelimit-policy': '"token";q=2;w=60',
      ratelimit: '"token";r=0;t=12',
    });
    expect(headers).not.toHaveProperty('www-authenticate');
    expect(body).toMatchObject({
      code: 'limit_exceeded',
      error: 181,
      message: 'the token may be used 2 times in 1 minute; try again in 12 s',
      details: { retryAfterSeconds: 12 },
    });
    clock.advance(12);
    expect((await ask()).ok).toBe(true);
  });

  it('caps the quota at the largest integer that a structured field can hold', async () => {
    const uses = Number.MAX_SAFE_INTEGER;
    const leases = new RecordingLeases();
    leases.take = async (wants) => wants.map(() => 0);
    const { tokens } = setUpLimits({}, leases);
    const rate = { uses, seconds: 60 };
    const { value } = await tokens.issue({ account: 'ada', scopes: [ORDERS], limits: { rate } });
    const guard = bearerGuard({ tokens, domain: 'shop.example' });
    const headers = { authorization: `Bearer ${value}` };

    const outcome = await guard({ method: 'GET', url: '/orders', headers });

    const fields = outcome.response?.headers.get('ratelimit-policy');
    expect(fields).toBe('"token";q=999999999999999;w=60');
  });

  it.each<NonNullable<TokenLimits['rate']>>([
    { uses: 1, seconds: 1 },
    { uses: 100, seconds: 60 },
    { uses: Number.MAX_SAFE_INTEGER, seconds: 86_400 },
  ])('sends fields in the syntax of draft revision 11 for %j', (rate) => {
    for (const retryAfterSeconds of [1, rate.seconds]) {
      const sent = rateLimitHeaders({ rate, retryAfterSeconds });

      const policy = itemOf(sent['ratelimit-policy']);
      const limit = itemOf(sent['ratelimit']);
      expect(policy).toEqual({ name: 'token', q: expect.any(Number), w: rate.seconds });
      expect(limit).toEqual({ name: policy['name'], r: 0, t: retryAfterSeconds });
      expect(policy['q']).toBe(Math.min(rate.uses, 1e15 - 1));
      expect(Number(sent['retry-after'])).toBe(limit['t']);
    }
  });

  it.each(['token;q=1;w=1', '"token"; q=1;w=1.5', '"token";q=1000000000000000', '"token";q="1"'])(
    'would be caught sending a field in another syntax: %s (control)',
    (value) => {
      expect(() => itemOf(value)).toThrow();
    },
  );

  it('does not count requests that the scopes refuse', async () => {
    const { ask } = await setUp(limits);

    for (let i = 0; i < 5; i++) expect((await ask('/orders', 'POST')).ok).toBe(false);
    expect([(await ask()).ok, (await ask()).ok, (await ask()).ok]).toEqual([true, true, false]);
  });
});

describe('bearerGuard with a token that has no uses left', () => {
  it('answers 429 without Retry-After', async () => {
    const { ask } = await setUp({ uses: 1 });
    await ask();

    const { status, headers, body } = await answerOf(await ask());

    expect(status).toBe(429);
    expect(body).toMatchObject({ code: 'limit_exceeded', error: 181 });
    for (const name of ['retry-after', 'ratelimit', 'ratelimit-policy', 'www-authenticate']) {
      expect(headers).not.toHaveProperty(name);
    }
  });

  it('answers 503 while the lease store is down', async () => {
    const { ask, leases } = await setUp({ uses: 1 });
    leases.fault = () => Promise.reject(new Error('down'));

    expect(await answerOf(await ask())).toMatchObject({ status: 503, reason: 'unavailable' });
    leases.fault = () => undefined;
    expect((await ask()).ok).toBe(true);
  });
});

describe('limits over HTTP', () => {
  const limits = { addresses: ['10.0.0.0/8'], uses: 5, rate: { uses: 2, seconds: 60 } };
  const counting = () => ({ limits: { store: new RecordingLeases() } });

  it('are set by POST and PATCH, kept by PUT, shown by GET and removed by null', async () => {
    const { call } = setUpHandler(counting());
    const scopes = [ORDERS];
    const made = await call('POST', '/token', { json: { scopes, limits } });
    const path = `/token/${made.body['id']}`;
    const shown = async () => {
      const { data } = (await call('GET', path)).body as { readonly data: readonly object[] };
      return data[0];
    };

    expect(made.body).toMatchObject({ limits });
    expect(await shown()).toMatchObject({ limits });
    await call('PUT', path, { json: { scopes } });
    expect(await shown()).toMatchObject({ limits });
    await call('PATCH', path, { json: { limits: { uses: 9 } } });
    expect(await shown()).toHaveProperty('limits', { uses: 9 });
    await call('PUT', path, { json: { scopes, limits: null } });
    expect(await shown()).not.toHaveProperty('limits');
  });

  it.each([
    [{ addresses: ['10.0.0.1/8'] }, 'limits.addresses'],
    [{ uses: -1 }, 'limits.uses'],
    [{ rate: { uses: 1, seconds: 0 } }, 'limits.rate.seconds'],
    [{}, 'limits'],
    ['x', 'limits'],
  ])('of %j are refused with a 422 that names %s', async (bad, member) => {
    const { call } = setUpHandler(counting());

    const answer = await call('POST', '/token', { json: { scopes: [ORDERS], limits: bad } });

    expect(answer.status).toBe(422);
    expect(answer.body).toMatchObject({
      code: 'invalid_limits',
      error: 102,
      message: expect.stringMatching(`^${member}`),
      details: { member },
    });
  });

  it('apply to introspection with the client_address of the resource server', async () => {
    const introspection = { authenticate: () => 'orders' };
    const { call, issue, tokens } = setUpHandler({ introspection, ...counting() });
    const { id, value } = await issue('ada', [ORDERS]);
    await tokens.patch('ada', id, { limits: { addresses: ['10.0.0.0/8'], uses: 2 } });
    const ask = async (more: Record<string, string>) => {
      const form = asForm({ token: value, ...more });
      const headers = { ...form.headers, authorization: basic('orders') };
      const { body } = await call('POST', '/introspect', { ...form, headers });
      return body['active'];
    };
    const here = { client_address: '10.1.2.3' };

    expect(await ask({})).toBe(false);
    expect(await ask({ client_address: '192.0.2.1' })).toBe(false);
    expect([await ask(here), await ask(here), await ask(here)]).toEqual([true, true, false]);
  });
});
