import { RateLimiterMemory } from 'rate-limiter-flexible';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { failureLimiter, remoteAddress, type SignIn } from '../../../src/http/index.ts';
import { basic, CANARY, expectFailure, PASSWORD, type SetUpOptions, setUp } from '../support.ts';

const ADDRESS = 'x-address';
const clientAddress = ({ headers }: Request) => headers.get(ADDRESS) ?? '192.0.2.1';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function signing(options: SetUpOptions = {}) {
  const signIns: SignIn[] = [];
  const setup = setUp({ clientAddress, onSignIn: (signIn) => signIns.push(signIn), ...options });
  const list = (username: string, password: string = PASSWORD, address = '192.0.2.1') =>
    setup.call('GET', '/token', {
      headers: { authorization: basic(username, password), [ADDRESS]: address },
    });
  return { ...setup, signIns, list };
}

describe('onSignIn', () => {
  const limiter = () =>
    failureLimiter({ userAndAddress: new RateLimiterMemory({ points: 1, duration: 900 }) });

  it('receives each outcome', async () => {
    const authenticate = ({ username, password }: { username: string; password: string }) => {
      if (username === 'down') throw new Error('down');
      return password === PASSWORD ? `account of ${username}` : null;
    };
    const { list, signIns } = signing({ limiter: limiter(), authenticate });

    await list('ada');
    await list('bob', `${CANARY}-wrong`);
    await list('bob');
    await list('down');

    const common = { address: '192.0.2.1', at: new Date() };
    expect(signIns).toEqual([
      { outcome: 'accepted', username: 'ada', account: 'account of ada', ...common },
      { outcome: 'refused', username: 'bob', ...common },
      { outcome: 'limited', username: 'bob', ...common },
      { outcome: 'unavailable', username: 'down', ...common },
    ]);
  });

  it.each([
    ['[2001:DB8:1:2::1]:443', '2001:db8:1:2::1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['192.0.2.1:5678', '192.0.2.1'],
  ])('receives the full normalized address of %s', async (given, address) => {
    const { list, signIns } = signing();

    await list('ada', PASSWORD, given);

    expect(signIns).toMatchObject([{ address }]);
  });

  it.each<[string, SetUpOptions]>([
    ['clientAddress is not set', { clientAddress: undefined }],
    ['clientAddress returns an empty text', { clientAddress: () => '' }],
  ])('receives no address if %s', async (_, options) => {
    const { list, signIns } = signing(options);

    await list('ada');

    expect(signIns).toEqual([
      { outcome: 'accepted', username: 'ada', account: 'ada', at: new Date() },
    ]);
  });

  it('receives the outcome unavailable for an invalid address', async () => {
    const { list, signIns } = signing();

    expectFailure(await list('ada', PASSWORD, 'unknown'), 'store_unavailable');

    expect(signIns).toEqual([{ outcome: 'unavailable', username: 'ada', at: new Date() }]);
  });

  it('is called for resource servers, too, but not without credentials', async () => {
    const introspection = { authenticate: () => 'shop' };
    const { call, list, signIns } = signing({ introspection });

    await call('GET', '/token', { as: null });
    await call('GET', '/nowhere');
    expect(signIns).toEqual([]);
    await call('POST', '/introspect', { as: 'shop' });
    await list('ada');

    expect(signIns.map(({ account }) => account)).toEqual(['shop', 'ada']);
  });

  it.each<[string, () => never]>([
    [
      'throws',
      () => {
        throw new Error('full disk');
      },
    ],
    ['rejects', () => Promise.reject(new Error('full disk')) as never],
  ])('does not affect the call when it %s', async (_, onSignIn) => {
    const { list } = signing({ onSignIn });

    expect(await list('ada')).toMatchObject({ status: 200 });
    expectFailure(await list('ada', 'wrong'), 'unauthenticated');
  });
});

describe('an authenticate that fails', () => {
  it('is reported once a minute, without a stack, if it does not answer', async () => {
    const onError = vi.fn();
    const authenticate = () => new Promise<null>(() => {});
    const { list } = signing({ authenticate, onError });
    const round = async () => {
      const calls = Array.from({ length: 20 }, (_, i) => list(`user ${i}`));
      await vi.advanceTimersByTimeAsync(10_000);
      for (const answer of await Promise.all(calls)) expectFailure(answer, 'store_unavailable');
    };

    await round();
    await round();
    expect(onError).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(60_000);
    await round();

    expect(onError).toHaveBeenCalledTimes(2);
    for (const [error] of onError.mock.calls) {
      expect(error).toBeInstanceOf(Error);
      expect(error.stack).toBe(`Error: ${error.message}`);
    }
  });

  it.each<[returned: unknown, got: string]>([
    [true, 'true'],
    [undefined, 'undefined'],
    [7, 'a number'],
    ['', 'an empty text'],
    ['x'.repeat(256), 'a text'],
    [{ id: 7 }, 'an object'],
  ])('is told what to return instead of %s', async (returned, got) => {
    const onError = vi.fn();
    const { list } = signing({ authenticate: () => returned as string, onError });

    for (let i = 0; i < 3; i++) expectFailure(await list('ada'), 'store_unavailable');

    expect(onError.mock.calls.map(([error]) => error.message)).toEqual([
      `authenticate must return the name of the account, 1 to 255 bytes of text, or { account, user } of such texts, or null for wrong credentials; got ${got}`,
    ]);
  });

  it('is not reported if it returns a name, or null for wrong credentials (the control)', async () => {
    const onError = vi.fn();
    const { list } = signing({
      authenticate: ({ username }) => (username === 'ada' ? 'ada' : null),
      onError,
    });

    expect(await list('ada')).toMatchObject({ status: 200 });
    expectFailure(await list('bob'), 'unauthenticated');
    expect(onError).not.toHaveBeenCalled();
  });

  it('is reported each time if it rejects', async () => {
    const onError = vi.fn();
    const authenticate = () => Promise.reject(new Error('down'));
    const { list } = signing({ authenticate, onError });

    for (let i = 0; i < 3; i++) expectFailure(await list('ada'), 'store_unavailable');

    expect(onError).toHaveBeenCalledTimes(3);
  });
});

describe('an invalid client address', () => {
  it.each<[string, (request: Request) => unknown, RegExp]>([
    ['garbage', () => `for="\u001b[2J${'x'.repeat(200)}"`, /^[ -~]{1,120}$/],
    ['a list', () => '192.0.2.1, 192.0.2.2', /IP address; got "192\.0\.2\.1, 192\.0\.2\.2"$/],
    ['undefined', () => undefined, /must return an IP address; got none$/],
    ['that of a disconnected client', remoteAddress, /address of the client is not known/],
  ])('such as %s causes a 503 per call and one report a minute', async (_, address, message) => {
    const onError = vi.fn();
    const authenticate = vi.fn(() => 'ada');
    const options = { clientAddress: address as () => string, authenticate, onError };
    const { list } = signing(options);

    for (let i = 0; i < 5; i++) expectFailure(await list('ada'), 'store_unavailable');
    expect(onError).toHaveBeenCalledTimes(1);
    const [[error]] = onError.mock.calls as [[Error]];
    expect(error.message).toMatch(message);
    expect(error.stack).toBe(`Error: ${error.message}`);

    await vi.advanceTimersByTimeAsync(60_000);
    await list('ada');
    expect(onError).toHaveBeenCalledTimes(2);
    expect(authenticate).not.toHaveBeenCalled();
  });

  it('is reported even after a report about a disconnected client', async () => {
    const onError = vi.fn();
    const address = (request: Request) =>
      request.headers.get(ADDRESS) === 'gone' ? remoteAddress(request) : 'unknown';
    const { list } = signing({ clientAddress: address, onError });

    await list('ada', PASSWORD, 'gone');
    await list('ada', PASSWORD, 'here');

    expect(onError.mock.calls.map(([{ message }]) => message)).toEqual([
      'the address of the client is not known',
      'clientAddress must return an IP address; got "unknown"',
    ]);
  });

  it('does not affect a call with a valid address', async () => {
    const { list } = signing();

    expectFailure(await list('ada', PASSWORD, '192.0.2.1:'), 'store_unavailable');

    expect(await list('ada', PASSWORD, '192.0.2.1:1')).toMatchObject({ status: 200 });
  });
});
