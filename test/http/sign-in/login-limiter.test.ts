import { once } from 'node:events';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type FailureLimiter,
  failureLimiter,
  fixedAccounts,
  remoteAddress,
  tokenHandler,
  toNodeListener,
} from '../../../src/http/index.ts';
import type {
  Attempt,
  FailureLimiterOptions,
  PointsLimiter,
} from '../../../src/http/sign-in/login-limiter.ts';
import { MemoryTokenStore } from '../../../src/index.ts';
import { RecordingStore } from '../../support.ts';
import {
  type Answer,
  asForm,
  basic,
  bytesOf,
  CANARY,
  type CallOptions,
  expectFailure,
  ORDERS,
  PASSWORD,
  type SetUpOptions,
  setUp,
  toRequest,
} from '../support.ts';
import { quickScrypt } from './scrypt.ts';

const WINDOW_SECONDS = 900;
const SECRET = `${CANARY}-password`;
const NETWORK = 'x-network';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** By default three failures in fifteen minutes by user and address; a header holds the address. */
function limited({
  by = { userAndAddress: memory(3) },
  ...options
}: SetUpOptions & { readonly by?: FailureLimiterOptions } = {}) {
  const authenticate = vi.fn(({ username, password }) => {
    return password === PASSWORD && username !== 'nobody' ? username : null;
  });
  const clientAddress = ({ headers }: Request) => headers.get(NETWORK) ?? '192.0.2.1';
  const setup = setUp({ authenticate, clientAddress, limiter: failureLimiter(by), ...options });
  const list = (username: string, password: string, address = '192.0.2.1') =>
    setup.call('GET', '/token', {
      headers: { authorization: basic(username, password), [NETWORK]: address },
    });
  return { ...setup, authenticate, list };
}

function memory(points: number, more: object = {}): RateLimiterMemory {
  return new RateLimiterMemory({ points, duration: WINDOW_SECONDS, ...more });
}

async function fail(
  list: (username: string, password: string, address?: string) => Promise<Answer>,
  count: number,
  username = 'ada',
  address?: string,
): Promise<void> {
  for (let i = 0; i < count; i++) {
    expectFailure(await list(username, `wrong ${i}`, address), 'unauthenticated');
  }
}

describe('too many wrong credentials', () => {
  it('block even the right password until the window is over', async () => {
    const { list, authenticate } = limited();

    await fail(list, 3);
    expectFailure(await list('ada', 'wrong'), 'rate_limited');
    const asked = authenticate.mock.calls.length;
    const answer = await list('ada', PASSWORD);

    expectFailure(answer, 'rate_limited');
    expect(answer.headers.get('retry-after')).toBe(String(WINDOW_SECONDS));
    expect(authenticate).toHaveBeenCalledTimes(asked);
    await vi.advanceTimersByTimeAsync(WINDOW_SECONDS * 1000 - 1);
    expectFailure(await list('ada', PASSWORD), 'rate_limited');
    await vi.advanceTimersByTimeAsync(1);
    expect(await list('ada', PASSWORD)).toMatchObject({ status: 200 });
  });

  it('block nobody one failure before the limit', async () => {
    const { list } = limited();

    await fail(list, 2);

    expect(await list('ada', PASSWORD)).toMatchObject({ status: 200 });
  });

  it('block the very next attempt without checking its password', async () => {
    const { list, authenticate } = limited();
    await fail(list, 3);
    authenticate.mockClear();

    expectFailure(await list('ada', PASSWORD), 'rate_limited');

    expect(authenticate).not.toHaveBeenCalled();
  });

  it('report the remaining time, rounded up', async () => {
    const { list } = limited();
    await fail(list, 3);
    await list('ada', 'wrong');

    await vi.advanceTimersByTimeAsync(1);
    expect((await list('ada', 'wrong')).headers.get('retry-after')).toBe('900');
    await vi.advanceTimersByTimeAsync(898_999);
    expect((await list('ada', 'wrong')).headers.get('retry-after')).toBe('1');
  });

  it('lock out neither the user at another address nor another user', async () => {
    const { list } = limited();
    await fail(list, 3);
    expectFailure(await list('ada', PASSWORD + 1), 'rate_limited');

    expect(await list('ada', PASSWORD, '192.0.2.2')).toMatchObject({ status: 200 });
    expect(await list('bob', PASSWORD)).toMatchObject({ status: 200 });
    expectFailure(await list('ada', PASSWORD), 'rate_limited');
  });

  it('look and count the same for known and unknown users', async () => {
    const { list } = limited();
    const answers = async (username: string) => {
      const all: string[] = [];
      for (let i = 0; i < 6; i++) all.push(bytesOf(await list(username, `wrong ${i}`)));
      return all;
    };

    const known = await answers('ada');

    expect(await answers('nobody')).toEqual(known);
    expect(known.map((bytes) => bytes.slice(0, 3))).toEqual([
      ...['401', '401', '401'],
      ...['429', '429', '429'],
    ]);
  });

  it('still count after a right password in between', async () => {
    const { list } = limited();

    await fail(list, 2);
    expect(await list('ada', PASSWORD)).toMatchObject({ status: 200 });
    await fail(list, 1);

    expectFailure(await list('ada', 'wrong'), 'rate_limited');
  });

  it('reveal nothing when many are tried concurrently', async () => {
    const { list } = limited();
    const guesses = Array.from({ length: 50 }, (_, i) => (i === 40 ? PASSWORD : `wrong ${i}`));

    const answers = await Promise.all(guesses.map((guess) => list('ada', guess)));

    const counts = [401, 429, 200].map((status) => answers.filter((a) => a.status === status));
    expect(counts.map(({ length }) => length)).toEqual([3, 47, 0]);
  });

  it.each<[string, (index: number) => string]>([
    ['identical', () => 'wrong'],
    ['different', (index) => `wrong ${index}`],
  ])('each count when they are %s and concurrent', async (_, guess) => {
    const { list } = limited({ by: { userAndAddress: memory(100) } });

    const calls = Array.from({ length: 105 }, (_, index) => list('ada', guess(index)));
    const statuses = (await Promise.all(calls)).map(({ status }) => status);

    expect(statuses.filter((status) => status === 401)).toHaveLength(100);
    expect(statuses.filter((status) => status === 429)).toHaveLength(5);
  });

  it('do not include calls without Basic credentials or to unknown paths', async () => {
    const { list, call } = limited();

    for (let i = 0; i < 10; i++) {
      expectFailure(await call('GET', '/token', { as: null }), 'unauthenticated');
      expectFailure(await call('GET', '/nowhere'), 'not_found');
      const bearer = { headers: { authorization: 'Bearer x' } };
      expectFailure(await call('GET', '/token', bearer), 'unauthenticated');
    }

    expect(await list('ada', PASSWORD)).toMatchObject({ status: 200 });
  });

  it('do not change the answer for an unknown path', async () => {
    const { list, call } = limited();
    await fail(list, 3);
    expectFailure(await list('ada', 'wrong'), 'rate_limited');

    expectFailure(await call('GET', '/nowhere'), 'not_found');
  });

  it('are limited for introspection, too, with an OAuth error', async () => {
    const authenticate = ({ password }: { password: string }) =>
      password === PASSWORD ? 'shop' : null;
    const { call } = limited({ introspection: { authenticate } });
    const ask = (password: string) =>
      call('POST', '/introspect', {
        ...asForm({ token: 'x' }),
        headers: { ...asForm('').headers, authorization: basic('shop', password) },
      });
    for (let i = 0; i < 3; i++) expect((await ask('wrong')).status).toBe(401);
    await ask('wrong');

    const answer = await ask(PASSWORD);

    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toBe(String(WINDOW_SECONDS));
    expect(answer.body['error']).toEqual(expect.any(String));
  });

  it('cost no password check once they are limited', async () => {
    vi.useRealTimers();
    quickScrypt();
    const fixed = fixedAccounts([{ username: 'ada', password: PASSWORD }]);
    const authenticate = vi.fn(fixed);
    const { list } = limited({ authenticate, by: { userAndAddress: memory(1) } });
    await fail(list, 1);
    expectFailure(await list('ada', 'wrong'), 'rate_limited');
    authenticate.mockClear();

    expectFailure(await list('ada', 'wrong'), 'rate_limited');
    expectFailure(await list('ada', PASSWORD), 'rate_limited');

    expect(authenticate).not.toHaveBeenCalled();
  });
});

describe('a correct password', () => {
  it('gives back only its own point', async () => {
    const { list } = limited({ by: { userAndAddress: memory(2), address: memory(2) } });
    await fail(list, 1);

    for (let i = 0; i < 5; i++) expect(await list('ada', PASSWORD)).toMatchObject({ status: 200 });
    await fail(list, 1);

    expectFailure(await list('ada', PASSWORD), 'rate_limited');
  });

  it.each<[string, boolean]>([
    ['remembered', true],
    ['not yet checked', false],
  ])('that is %s takes one point for two hundred concurrent calls', async (_, isRemembered) => {
    vi.useRealTimers();
    quickScrypt();
    const authenticate = fixedAccounts([{ username: 'ada', password: PASSWORD }]);
    const { list } = limited({ authenticate, by: { userAndAddress: memory(100) } });
    if (isRemembered) await list('ada', PASSWORD);

    const answers = await Promise.all(Array.from({ length: 200 }, () => list('ada', PASSWORD)));

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(200);
    await fail(list, 1);
  });

  it('gives each call its own account if authenticate decides by the request', async () => {
    const authenticate = async (_: unknown, request: Request) => request.headers.get('x-tenant');
    const { call } = limited({ authenticate, by: { userAndAddress: memory(2) } });
    const scopes = (tenant: string) => call('GET', '/token', { headers: { 'x-tenant': tenant } });
    const none = () => call('GET', '/token');

    const answers = await Promise.all([scopes('a'), none(), scopes('b'), none()]);

    expect(answers.map(({ status }) => status)).toEqual([200, 401, 200, 401]);
    expectFailure(await scopes('a'), 'rate_limited');
  });

  it('is refused when no point is left to share', async () => {
    const { list, authenticate } = limited();
    await fail(list, 3);
    authenticate.mockClear();

    const answers = await Promise.all(Array.from({ length: 20 }, () => list('ada', PASSWORD)));

    for (const answer of answers) expectFailure(answer, 'rate_limited');
    expect(authenticate).not.toHaveBeenCalled();
  });
});

describe('a check that fails', () => {
  it.each<[string, () => unknown]>([
    ['throws', () => Promise.reject(new Error('down'))],
    ['returns no account', () => ''],
    ['returns a number', () => 1],
  ])('stays counted when authenticate %s', async (_, act) => {
    const authenticate = vi.fn(act as () => null);
    const { list } = limited({ authenticate });

    for (let i = 0; i < 3; i++) expectFailure(await list('ada', `${i}`), 'store_unavailable');

    expectFailure(await list('ada', PASSWORD), 'rate_limited');
    expect(authenticate).toHaveBeenCalledTimes(3);
  });

  it('stays counted when authenticate never answers', async () => {
    const authenticate = vi.fn(() => new Promise<null>(() => {}));
    const { list } = limited({ authenticate });
    const pending = [0, 1, 2].map((i) => list('ada', `${i}`));
    await vi.advanceTimersByTimeAsync(9999);
    expectFailure(await list('ada', 'a fourth'), 'rate_limited');

    await vi.advanceTimersByTimeAsync(1);

    for (const answer of await Promise.all(pending)) expectFailure(answer, 'store_unavailable');
    expectFailure(await list('ada', PASSWORD), 'rate_limited');
    expect(authenticate).toHaveBeenCalledTimes(3);
  });

  it('is counted for each of several identical calls', async () => {
    const authenticate = vi.fn(() => new Promise<null>(() => {}));
    const { list } = limited({ authenticate });
    const pending = Array.from({ length: 5 }, () => list('ada', 'same'));

    await vi.advanceTimersByTimeAsync(10_000);

    const statuses = (await Promise.all(pending)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([429, 429, 503, 503, 503]);
  });
});

describe('failureLimiter', () => {
  it('counts by address, which stops one password tried on many users', async () => {
    const { list } = limited({ by: { address: memory(3) } });
    for (const name of ['a', 'b', 'c']) {
      expectFailure(await list(name, 'Summer2099'), 'unauthenticated');
    }

    expectFailure(await list('d', 'Summer2099'), 'rate_limited');
    expectFailure(await list('ada', PASSWORD), 'rate_limited');
    expect(await list('ada', PASSWORD, '192.0.2.2')).toMatchObject({ status: 200 });
  });

  it('counts by user if configured, which stops guesses from many addresses', async () => {
    const { list } = limited({ by: { user: memory(3) } });
    for (const host of [1, 2, 3]) await fail(list, 1, 'ada', `192.0.2.${host}`);

    expectFailure(await list('ada', 'wrong', '192.0.2.4'), 'rate_limited');
    expectFailure(await list('ada', PASSWORD, '192.0.2.5'), 'rate_limited');
    expect(await list('bob', PASSWORD, '192.0.2.1')).toMatchObject({ status: 200 });
  });

  it('ignores a limiter that is undefined', async () => {
    const { list } = limited({ by: { user: undefined, address: memory(1) } as never });
    await fail(list, 1);

    expectFailure(await list('ada', 'wrong'), 'rate_limited');
  });

  it('reports the longest wait of several limiters', async () => {
    const short = new RateLimiterMemory({ points: 1, duration: 10 });
    const { list } = limited({ by: { userAndAddress: short, address: memory(1) } });
    await fail(list, 1);

    expect((await list('ada', 'wrong')).headers.get('retry-after')).toBe('900');
  });

  it('blocks for as long as the limiter says', async () => {
    const { list } = limited({ by: { userAndAddress: memory(1, { blockDuration: 5000 }) } });
    await fail(list, 1);

    const answer = await list('ada', 'wrong');

    expectFailure(answer, 'rate_limited');
    expect(answer.headers.get('retry-after')).toBe('5000');
    expect((await list('ada', PASSWORD)).headers.get('retry-after')).toBe('5000');
  });

  it('still sends Retry-After if the limiter never forgets', async () => {
    const { list } = limited({
      by: { userAndAddress: new RateLimiterMemory({ points: 1, duration: 0 }) },
    });
    await fail(list, 1);
    await list('ada', 'wrong');

    const answer = await list('ada', PASSWORD);

    expectFailure(answer, 'rate_limited');
    expect(answer.headers.get('retry-after')).toBe('1');
  });

  it('keeps users and addresses apart in a shared limiter', async () => {
    const shared = memory(2);
    const { list } = limited({ by: { user: shared, address: shared } });
    await fail(list, 2, '192.0.2.9', '192.0.2.1');

    expect(await list('ada', PASSWORD, '192.0.2.9')).toMatchObject({ status: 200 });
  });

  it.each<[one: string, other: string, isSame: boolean]>([
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff', true],
    ['2001:db8:1:2::1', '2001:DB8:0001:2:0:0:0:9', true],
    ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
    ['2001:db8::1', '2001:db8:0:0:5::', true],
    ['2001:db8::1', '2001:db8:0:1::1', false],
    ['::1', '0:0:0:0:9::', true],
    ['fe80::1%eth0', 'fe80::2%eth1', true],
    ['::ffff:192.0.2.1', '192.0.2.1', true],
    ['::ffff:192.0.2.1', '::ffff:192.0.2.2', false],
    ['::ffff:192.0.2.10', '192.0.2.10', true],
    ['1::2:3:4:5:6:7', '1:0:2:3:9::', true],
    ['1::2:3:4:5:6:7', '1::', false],
    ['192.0.2.1', '192.0.2.10', false],
    ['192.0.2.1:1', '192.0.2.1:2', true],
    ['[2001:db8:1:2::1]:1', '2001:db8:1:2::2', true],
    ['[2001:db8:1:2::1]:1', '[2001:db8:1:3::1]:1', false],
    ['', '', true],
    ['', '192.0.2.1', false],
  ])('counts %s and %s as one address: %s', async (one, other, isSame) => {
    const { list } = limited({ by: { address: memory(1) } });
    await fail(list, 1, 'ada', one);
    expectFailure(await list('ada', 'wrong', one), 'rate_limited');

    expect((await list('ada', PASSWORD, other)).status).toBe(isSame ? 429 : 200);
  });

  it('gives its limiters keys of equal length, without passwords or names', async () => {
    const keys: unknown[] = [];
    const limiter: PointsLimiter = {
      points: 1,
      get: async (...args) => {
        keys.push(...args);
        return null;
      },
      consume: async (...args) => void keys.push(...args),
      reward: async (key, points) => {
        expect(points).toBe(1);
        keys.push(key);
      },
    };
    const { list } = limited({ by: { userAndAddress: limiter, user: limiter } });

    await list(CANARY.repeat(400), SECRET);
    await list('ada', SECRET);
    await list('ada', PASSWORD);

    expect(keys).toHaveLength(14);
    for (const key of keys) expect(key).toMatch(/^[\w-]{43}$/);
  });

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['no limiter', {}],
    ['only undefined ones', { user: undefined }],
    ['one that is not a limiter', { user: {} }],
    ['one without points', { user: { get() {}, consume() {}, reward() {} } }],
    ['one without consume', { user: { points: 1, get() {}, reward() {} } }],
    ['one without get', { user: { points: 1, consume() {}, reward() {} } }],
    ['one without reward', { user: { points: 1, get() {}, consume() {} } }],
    ['null as one', { user: null }],
    ['an unknown option', { perUser: memory(1) }],
    ['a valid one with an invalid one', { user: memory(1), address: 1 }],
  ])('refuses %s', (_, options) => {
    expect(() => failureLimiter(options as never)).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
  });
});

describe('a custom limiter', () => {
  const free: FailureLimiter = { waitSeconds: () => 0, failed: () => 0, succeeded: () => {} };
  const asked: Attempt[] = [];

  it('receives user and address, but never the password', async () => {
    const limiter: FailureLimiter = {
      waitSeconds: (...args) => asked.push(...args) * 0,
      failed: (...args) => asked.push(...args) * 0,
      succeeded: (...args) => asked.push(...args),
    };
    const { list } = limited({ limiter });

    expect(await list('ada', PASSWORD)).toMatchObject({ status: 200 });
    expectFailure(await list('nobody', SECRET), 'unauthenticated');

    expect(asked).toEqual([
      { username: 'ada', address: '192.0.2.1' },
      { username: 'ada', address: '192.0.2.1' },
      { username: 'ada', address: '192.0.2.1' },
      { username: 'nobody', address: '192.0.2.1' },
      { username: 'nobody', address: '192.0.2.1' },
    ]);
  });

  it.each([
    [0.2, '1'],
    [1, '1'],
    [59.5, '60'],
    [Number.POSITIVE_INFINITY, '9007199254740991'],
  ])('can ask for a wait of %s seconds, sent as Retry-After: %s', async (seconds, header) => {
    const { list } = limited({ limiter: { ...free, waitSeconds: () => seconds } });

    const answer = await list('ada', PASSWORD);

    expectFailure(answer, 'rate_limited');
    expect(answer.headers.get('retry-after')).toBe(header);
  });

  const BROKEN: [string, () => unknown][] = [
    [
      'throws',
      () => {
        throw new Error(CANARY);
      },
    ],
    ['rejects', () => Promise.reject(new Error(CANARY))],
    ['rejects with undefined', () => Promise.reject()],
    ['returns undefined', () => undefined],
    ['returns null', () => null],
    ['returns true', () => true],
    ['returns a text', () => '0'],
    ['returns NaN', () => Number.NaN],
    ['returns a negative number', () => -1],
    ['returns an object', () => ({ seconds: 0 })],
    [
      'returns a thenable that throws',
      () => Object.defineProperty({}, 'then', { value: () => BROKEN[0]?.[1]() }),
    ],
  ];

  it.each(
    (['waitSeconds', 'failed'] as const).flatMap((method) =>
      BROKEN.map(([how, act]) => [method, how, act] as const),
    ),
  )('whose %s %s causes a 503 until it works again', async (method, _, act) => {
    const working = vi.fn(() => 0);
    const limiter: FailureLimiter = { ...free, [method]: working };
    const onError = vi.fn();
    const { list, tokens } = limited({ limiter, onError });
    working.mockImplementation(act as () => number);

    expectFailure(await list('ada', 'wrong'), 'store_unavailable');
    expectFailure(await list('ada', PASSWORD), 'store_unavailable');
    expect(onError).toHaveBeenCalledTimes(2);

    working.mockImplementation(() => 0);
    expect(await list('ada', PASSWORD)).toMatchObject({ status: 200 });
    expectFailure(await list('ada', 'wrong'), 'unauthenticated');
    expect((await tokens.list({ account: 'ada' })).tokens).toEqual([]);
  });

  it.each(['waitSeconds', 'failed'] as const)(
    'whose %s never settles causes a 503 after two seconds',
    async (method) => {
      const { list } = limited({ limiter: { ...free, [method]: () => new Promise(() => {}) } });
      let isAnswered = false;
      const pending = list('ada', 'wrong').finally(() => {
        isAnswered = true;
      });

      await vi.advanceTimersByTimeAsync(1999);
      expect(isAnswered).toBe(false);
      await vi.advanceTimersByTimeAsync(1);

      expectFailure(await pending, 'store_unavailable');
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  it('that cannot count lets nobody in until it can', async () => {
    let isReadOnly = true;
    const failures: string[] = [];
    const limiter: FailureLimiter = {
      ...free,
      failed: ({ username }) => {
        if (isReadOnly) throw new Error('READONLY You can’t write against a read only replica.');
        failures.push(username);
        return 0;
      },
    };
    const { list, authenticate } = limited({ limiter });

    expectFailure(await list('ada', 'wrong'), 'store_unavailable');
    expectFailure(await list('bob', PASSWORD), 'store_unavailable');
    expect(authenticate).not.toHaveBeenCalled();

    isReadOnly = false;
    expect(await list('bob', PASSWORD)).toMatchObject({ status: 200 });
    expectFailure(await list('bob', 'wrong'), 'unauthenticated');
    expect(failures).toEqual(['bob', 'bob']);
  });

  it('counts each attempt before it is checked', async () => {
    const calls: string[] = [];
    const limiter: FailureLimiter = {
      waitSeconds: () => calls.push('waitSeconds') * 0,
      failed: () => calls.push('failed') * 0,
      succeeded: () => calls.push('succeeded'),
    };
    const authenticate = ({ password }: { password: string }) => {
      calls.push('authenticate');
      return password === PASSWORD ? 'ada' : null;
    };
    const { list } = limited({ limiter, authenticate });

    await list('ada', PASSWORD);
    expect(calls.splice(0)).toEqual(['waitSeconds', 'failed', 'authenticate', 'succeeded']);
    await list('ada', 'wrong');
    expect(calls).toEqual(['waitSeconds', 'failed', 'authenticate']);
  });

  it.each(BROKEN.slice(0, 3))(
    'whose succeeded %s still accepts the right password and calls onError',
    async (_, act) => {
      const onError = vi.fn();
      const { list } = limited({ limiter: { ...free, succeeded: act }, onError });

      expect(await list('ada', PASSWORD)).toMatchObject({ status: 200 });
      expect(onError).toHaveBeenCalledTimes(1);
      expectFailure(await list('ada', 'wrong'), 'unauthenticated');
      expect(onError).toHaveBeenCalledTimes(1);
    },
  );

  it('whose succeeded never settles accepts the right password after two seconds', async () => {
    const succeeded = () => new Promise(() => {});
    const { list } = limited({ limiter: { ...free, succeeded } });
    const pending = list('ada', PASSWORD);

    await vi.advanceTimersByTimeAsync(2000);

    expect(await pending).toMatchObject({ status: 200 });
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('clientAddress', () => {
  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error(CANARY);
      },
    ],
    ['returns undefined', () => undefined],
    ['returns null', () => null],
    ['returns a number', () => 1],
    ['returns a promise', () => Promise.resolve('192.0.2.1')],
  ])('that %s causes a 503 before any password check', async (_, clientAddress) => {
    const { list, authenticate } = limited({ clientAddress: clientAddress as () => string });

    expectFailure(await list('ada', PASSWORD), 'store_unavailable');
    expect(authenticate).not.toHaveBeenCalled();
  });

  it('is required for a limiter', () => {
    const { tokens } = setUp();
    const authenticate = () => null;
    const limiter = failureLimiter({ user: memory(1) });

    expect(() => tokenHandler({ tokens, authenticate, limiter })).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
    expect(tokenHandler({ tokens, authenticate, limiter, clientAddress: () => '' })).toBeTypeOf(
      'function',
    );
  });

  it('that is the same for all callers locks a user out everywhere', async () => {
    const { list } = limited({ clientAddress: () => '' });
    await fail(list, 3, 'ada', '192.0.2.1');

    expectFailure(await list('ada', 'wrong', '192.0.2.2'), 'rate_limited');
    expect(await list('bob', PASSWORD, '192.0.2.1')).toMatchObject({ status: 200 });
  });

  it('can be the address of the connection', async () => {
    vi.useRealTimers();
    const seen: string[] = [];
    const { handler } = limited({
      clientAddress: (request) => {
        seen.push(remoteAddress(request));
        return remoteAddress(request);
      },
    });
    const server = http.createServer(toNodeListener(handler)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;

    const headers = { authorization: basic('ada'), 'x-forwarded-for': '203.0.113.7' };
    const response = await fetch(`http://127.0.0.1:${port}/token`, { headers });

    expect(response.status).toBe(200);
    expect(seen).toEqual(['127.0.0.1']);
    server.close();
    server.closeAllConnections();
  });

  it('cannot be read from a request without a connection', () => {
    expect(() => remoteAddress(toRequest('GET', '/token'))).toThrow(
      expect.objectContaining({ code: 'invalid_request' }),
    );
  });
});

describe('the options of limits', () => {
  const { tokens } = setUp();
  const authenticate = () => 'ada';
  const clientAddress = () => '';

  it.each<[string, object]>([
    ['a maxInFlight of 0', { maxInFlight: 0 }],
    ['a fractional maxInFlight', { maxInFlight: 1.5 }],
    ['an infinite maxInFlight', { maxInFlight: Number.POSITIVE_INFINITY }],
    ['a bodyTimeoutMs of 0', { bodyTimeoutMs: 0 }],
    ['a fractional bodyTimeoutMs', { bodyTimeoutMs: 0.5 }],
    ['a bodyTimeoutMs of more than ten minutes', { bodyTimeoutMs: 600_001 }],
    ['a limiter without methods', { limiter: {}, clientAddress }],
    ['a limiter that is null', { limiter: null, clientAddress }],
    ['a limiter that is a function', { limiter: () => 0, clientAddress }],
    ['a limiter without waitSeconds', { limiter: { failed() {}, succeeded() {} }, clientAddress }],
    ['a limiter without failed', { limiter: { waitSeconds() {}, succeeded() {} }, clientAddress }],
    ['a limiter without succeeded', { limiter: { waitSeconds() {}, failed() {} }, clientAddress }],
    ['a bare limiter of rate-limiter-flexible', { limiter: memory(1), clientAddress }],
    ['a clientAddress that is not a function', { clientAddress: '192.0.2.1' }],
    ['an onSignIn that is not a function', { onSignIn: true }],
  ])('refuse %s', (_, options) => {
    expect(() => tokenHandler({ tokens, authenticate, ...options } as never)).toThrow(
      expect.objectContaining({ name: 'TokenError', code: 'invalid_options' }),
    );
  });

  it.each([{ maxInFlight: 1 }, { bodyTimeoutMs: 1 }, { bodyTimeoutMs: 600_000 }])(
    'accept %o',
    (options) => {
      expect(tokenHandler({ tokens, authenticate, ...options })).toBeTypeOf('function');
    },
  );
});

describe('calls beyond maxInFlight', () => {
  /** A service whose password checks end when the test calls `open`. */
  function gated(options: SetUpOptions = {}) {
    const waiting: ((account: string | null) => void)[] = [];
    const authenticate = vi.fn(
      () => new Promise<string | null>((resolve) => void waiting.push(resolve)),
    );
    const setup = setUp({ authenticate, maxInFlight: 2, ...options });
    const open = (...accounts: (string | null)[]) => {
      for (const [i, resolve] of waiting.splice(0).entries()) {
        resolve(accounts.length === 0 ? 'ada' : (accounts[i % accounts.length] as string | null));
      }
    };
    return { ...setup, authenticate, open };
  }

  it('are refused immediately, before a password is checked', async () => {
    const { call, authenticate, open } = gated();
    const pending = [call('GET', '/token'), call('GET', '/scopes')];

    expectFailure(await call('GET', '/token'), 'overloaded');
    expectFailure(await call('POST', '/token', { json: { scopes: [ORDERS] } }), 'overloaded');
    expect(authenticate).toHaveBeenCalledTimes(2);

    open('ada', 'bob');
    expect((await Promise.all(pending)).map(({ status }) => status)).toEqual([200, 200]);
  });

  it.each<[string, CallOptions, string | null, number]>([
    ['a success', {}, 'ada', 200],
    ['wrong credentials', {}, null, 401],
    ['an outage', {}, '', 503],
  ])('are accepted again after %s', async (_, options, account, status) => {
    const { call, open } = gated({ maxInFlight: 1 });
    for (let round = 0; round < 5; round++) {
      const pending = call('GET', '/token', options);
      expectFailure(await call('GET', '/token'), 'overloaded');
      open(account);
      expect((await pending).status).toBe(status);
    }
  });

  it('still get not_found for an unknown path', async () => {
    const { call, open } = gated({ maxInFlight: 1 });
    const pending = call('GET', '/token');

    expectFailure(await call('GET', '/nowhere'), 'not_found');

    open();
    await pending;
  });

  it('start with the 1001st by default', async () => {
    const { call, open } = gated({ maxInFlight: undefined });
    const pending = Array.from({ length: 1000 }, () => call('GET', '/token'));

    expectFailure(await call('GET', '/token'), 'overloaded');

    open('ada', 'bob', 'eve', 'joe');
    for (const answer of await Promise.all(pending)) expect(answer.status).toBe(200);
  });

  it.each<[number, number]>([
    [1000, 250],
    [8, 2],
    [6, 2],
    [4, 1],
    [1, 1],
  ])('of %i include those of one account beyond %i', async (maxInFlight, share) => {
    const { call, open } = gated({ maxInFlight });
    const pending = Array.from({ length: maxInFlight }, () => call('GET', '/token'));
    open();

    const answers = await Promise.all(pending);
    const good = answers.filter(({ status }) => status === 200);

    expect(good).toHaveLength(share);
    for (const answer of answers) if (!good.includes(answer)) expectFailure(answer, 'overloaded');
    const next = call('GET', '/token');
    open();
    expect((await next).status).toBe(200);
  });

  it('do not reach the store', async () => {
    const store = new RecordingStore(new MemoryTokenStore());
    const { call, open } = gated({ store, maxInFlight: 1 });
    const pending = call('GET', '/token');

    await call('DELETE', '/token/NobodyHasThisId0000000');
    expect(store.takeCalls()).toEqual([]);

    open();
    await pending;
    expect(store.takeCalls()).toEqual(['page']);
  });
});

describe('a slow body', () => {
  const HALF = new TextEncoder().encode('{"scopes":["GET:shop');
  const REST = new TextEncoder().encode('.example/orders"]}');

  /** A body that the test sends in chunks. */
  function slow() {
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    const cancel = vi.fn();
    const raw = new ReadableStream<Uint8Array>({
      start: (started) => {
        controller = started;
      },
      cancel,
    });
    return {
      raw,
      cancel,
      send: (chunk: Uint8Array) => controller?.enqueue(chunk),
      end: () => controller?.close(),
    };
  }

  it('is accepted just before its timeout', async () => {
    const { call } = setUp();
    const { raw, cancel, send, end } = slow();
    const pending = call('POST', '/token', { raw });

    send(HALF);
    await vi.advanceTimersByTimeAsync(9999);
    send(REST);
    end();

    expect(await pending).toMatchObject({ status: 200 });
    expect(cancel).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is canceled and refused at its timeout', async () => {
    const { call, tokens } = setUp();
    const { raw, cancel, send } = slow();
    const pending = call('POST', '/token', { raw });

    send(HALF);
    await vi.advanceTimersByTimeAsync(10_000);

    expectFailure(await pending, 'invalid_json');
    expect(cancel).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
    expect((await tokens.list({ account: 'ada' })).tokens).toEqual([]);
  });

  it('gets no more time by sending a byte now and then', async () => {
    const { call } = setUp({ bodyTimeoutMs: 100 });
    const { raw, cancel, send } = slow();
    const pending = call('POST', '/token', { raw });

    for (let i = 0; i < 10; i++) {
      send(HALF.subarray(i, i + 1));
      await vi.advanceTimersByTimeAsync(10);
    }

    expectFailure(await pending, 'invalid_json');
    expect(cancel).toHaveBeenCalledTimes(1);
  });

  it('of another content type is canceled, too', async () => {
    const { call } = setUp({ bodyTimeoutMs: 100 });
    const { raw, cancel } = slow();
    const pending = call('POST', '/token', { raw, headers: { 'content-type': 'text/csv' } });

    await vi.advanceTimersByTimeAsync(100);

    expectFailure(await pending, 'invalid_json');
    expect(cancel).toHaveBeenCalledTimes(1);
  });

  it('is refused at its timeout even if canceling it hangs or fails', async () => {
    for (const cancel of [() => new Promise<void>(() => {}), () => Promise.reject(new Error())]) {
      const { call } = setUp({ bodyTimeoutMs: 100 });
      const pending = call('POST', '/token', { raw: new ReadableStream({ cancel }) });

      await vi.advanceTimersByTimeAsync(100);

      expectFailure(await pending, 'invalid_json');
    }
  });

  it('does not hold up other calls', async () => {
    const { call } = setUp();
    const { raw } = slow();
    const pending = call('POST', '/token', { raw });

    expect(await call('GET', '/token')).toMatchObject({ status: 200 });

    await vi.advanceTimersByTimeAsync(10_000);
    await pending;
  });

  it('is canceled immediately if it is too large', async () => {
    const { call } = setUp({ maxBodyBytes: 10 });
    const { raw, cancel, send } = slow();
    const pending = call('POST', '/token', { raw });

    send(HALF);

    expectFailure(await pending, 'payload_too_large');
    expect(cancel).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});
