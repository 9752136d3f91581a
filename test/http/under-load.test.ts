import * as crypto from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { failureLimiter, fixedAccounts, hashPassword } from '../../src/http/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import { lookAtErrors } from '../canary.ts';
import { watchScrypt } from './sign-in/scrypt.ts';
import { basic, expectFailure, PASSWORD, type SetUpOptions, setUp } from './support.ts';

const ADDRESS = 'x-address';
/** How many checks the password queue holds. */
const SLOTS = 64;
/** With so many slots, one address may fill the queue. By default it may not. */
const MANY_IN_FLIGHT = 4000;
const passwordHash = hashPassword(PASSWORD);
const [salt = '', hash = ''] = passwordHash.split('$').slice(-2);
const HASH_MS = 5;
const REMEMBERED_SECONDS = 60;

/** Hashes as slowly as needed to fill the queue, and no slower. */
beforeEach(() => {
  type Done = (error: Error | null, derived: Buffer) => void;
  watchScrypt().mockImplementation(((
    password: string,
    given: Buffer,
    length: number,
    _: object,
    done: Done,
  ) => {
    const isRight = password === PASSWORD && given.toString('base64url') === salt;
    const derived = isRight ? Buffer.from(hash, 'base64url') : crypto.randomBytes(length);
    setTimeout(() => done(null, derived), HASH_MS);
  }) as unknown as typeof crypto.scrypt);
});

/** A service with the limits of `serve`: 100 failures by user, also with address, 1000 by address. */
function serving(options: SetUpOptions = {}) {
  const limiter = (points: number) => new RateLimiterMemory({ points, duration: 900 });
  const { call } = setUp({
    authenticate: fixedAccounts(
      ['ada', ...Array.from({ length: 99 }, (_, i) => `user ${i}`)].map((username) => ({
        username,
        passwordHash,
      })),
    ),
    clientAddress: ({ headers }) => headers.get(ADDRESS) ?? '',
    limiter: failureLimiter({
      userAndAddress: limiter(100),
      address: limiter(1000),
      user: limiter(100),
    }),
    ...options,
  });
  const signIn = async (username: string, password: string, address: string) => {
    const headers = { authorization: basic(username, password), [ADDRESS]: address };
    return (await call('GET', '/scopes', { headers })).status;
  };
  let guesses = 0;
  const guess = (username: string, address: string, count: number) =>
    Array.from({ length: count }, () => signIn(username, `guess ${guesses++}`, address));
  return { signIn, guess, call };
}

function count(statuses: readonly number[], status: number): number {
  return statuses.filter((each) => each === status).length;
}

describe('many guesses under load', () => {
  it('are limited, and so is the right password after the limit', async () => {
    const { signIn, guess } = serving({ maxInFlight: MANY_IN_FLIGHT });
    expect(await signIn('ada', PASSWORD, '192.0.2.4')).toBe(200);
    const load = guess('bob', '192.0.2.2', 100);

    const wrong = await Promise.all(guess('ada', '192.0.2.1', 300));
    const right = await signIn('ada', PASSWORD, '192.0.2.1');

    expect(count(wrong, 200)).toBe(0);
    expect(count(wrong, 429)).toBe(200);
    expect(count(wrong, 401)).toBeLessThanOrEqual(SLOTS);
    expect(count(wrong, 401) + count(wrong, 503)).toBe(100);
    expect(right).toBe(429);
    // Control: the password is right, and the address known.
    expect(await signIn('ada', PASSWORD, '192.0.2.4')).toBe(200);
    await Promise.all(load);
  });

  it.each([
    // A sixteenth and three sixteenths of the slots, each rounded up.
    { maxInFlight: 1000, most: 63 + 188 },
    { maxInFlight: MANY_IN_FLIGHT, most: SLOTS },
  ])('do not keep a user at another address from signing in: %o', async ({ maxInFlight, most }) => {
    const { signIn, guess } = serving({ maxInFlight });
    const guesses = Array.from({ length: 99 }, (_, i) => guess(`other ${i}`, '192.0.2.1', 10));

    const answer = signIn('ada', PASSWORD, '192.0.2.2');

    expect(await answer).toBe(200);
    const statuses = await Promise.all(guesses.flat());
    expect(count(statuses, 401)).toBeLessThanOrEqual(most);
    expect(count(statuses, 401) + count(statuses, 503)).toBe(990);
  });

  it('do not take the place in the queue of a user who has signed in from there', async () => {
    const { signIn, guess } = serving({ maxInFlight: MANY_IN_FLIGHT });
    expect(await signIn('ada', PASSWORD, '192.0.2.1')).toBe(200);
    const guesses = Array.from({ length: 20 }, (_, i) => guess(`other ${i}`, '192.0.2.1', 10));
    const other = signIn('user 1', PASSWORD, '192.0.2.1');

    const wrongOnes = signIn('ada', 'wrong', '192.0.2.1');

    expect(await wrongOnes).toBe(401);
    expect(await other).toBe(503);
    await Promise.all(guesses.flat());
  });

  it('do not keep a right password out that was right from there before', async () => {
    const clock = manualClock();
    const users = ['ada', 'bob'].map((username) => ({ username, passwordHash }));
    const { signIn, guess } = serving({ authenticate: fixedAccounts(users, { clock }) });
    expect(await signIn('ada', PASSWORD, '192.0.2.1')).toBe(200);
    // It has to be checked again.
    clock.advance(REMEMBERED_SECONDS);
    const guesses = Array.from({ length: 26 }, (_, i) => guess(`other ${i}`, '192.0.2.1', 10));

    const statuses = [
      signIn('ada', PASSWORD, '192.0.2.1'),
      signIn('ada', 'wrong', '192.0.2.1'),
      signIn('bob', PASSWORD, '192.0.2.1'),
    ];

    expect(await Promise.all(statuses)).toEqual([200, 503, 503]);
    const checked = vi.mocked(crypto.scrypt).mock.calls.filter(([text]) => text === PASSWORD);
    expect(checked).toHaveLength(2);
    await Promise.all(guesses.flat());
  });

  it('do not make the heap grow', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const { guess } = serving({ maxInFlight: 2000 });
    const heapAfter = async (rounds: number) => {
      for (let i = 0; i < rounds; i++) await Promise.all(guess('eve', '192.0.2.1', 2000));
      await new Promise((resolve) => setImmediate(resolve));
      lookAtErrors();
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = await heapAfter(1);

    expect((await heapAfter(3)) - before).toBeLessThan(1_000_000);
  });
});

describe('the sign-ins of many users behind one gateway', () => {
  it.each([24, 64, 99])('all succeed after a start: %i of them', async (users) => {
    const { signIn } = serving();

    const statuses = await Promise.all(
      Array.from({ length: users }, (_, i) => signIn(`user ${i}`, PASSWORD, '192.0.2.1')),
    );

    expect(count(statuses, 200)).toBe(users);
  });

  it.each([
    { by: 'places of the queue', maxInFlight: MANY_IN_FLIGHT, held: SLOTS },
    { by: 'slots before credentials', maxInFlight: 64, held: 4 + 12 },
  ])('are refused at once with Retry-After beyond what $by hold', async ({ maxInFlight, held }) => {
    const { signIn, call } = serving({ maxInFlight });
    const all = Array.from({ length: 80 }, (_, i) => signIn(`user ${i}`, PASSWORD, '192.0.2.1'));

    const headers = { authorization: basic('user 90'), [ADDRESS]: '192.0.2.1' };
    const refused = await call('GET', '/scopes', { headers });

    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    const statuses = await Promise.all(all);
    expect([count(statuses, 200), count(statuses, 503)]).toEqual([held, 80 - held]);
  });
});

it('a password whose check takes longer than 30 seconds is refused as overload', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  vi.mocked(crypto.scrypt).mockImplementation(((...args: [...unknown[], () => void]) => {
    setTimeout(args[4] as () => void, 30_001, null, Buffer.from(hash, 'base64url'));
  }) as unknown as typeof crypto.scrypt);
  const onError = vi.fn();
  const { call } = serving({ onError });
  let isAnswered = false;
  const answer = call('GET', '/scopes', { headers: { [ADDRESS]: '192.0.2.1' } }).finally(() => {
    isAnswered = true;
  });

  await vi.advanceTimersByTimeAsync(29_999);
  expect(isAnswered).toBe(false);
  await vi.advanceTimersByTimeAsync(1);

  expectFailure(await answer, 'overloaded');
  expect(onError).not.toHaveBeenCalled();
  // The queue of the process has to be empty for other tests.
  await vi.advanceTimersByTimeAsync(1);
});

describe('the sign-ins of one user from many addresses', () => {
  const networks = Array.from({ length: 150 }, (_, i) => `2001:db8:0:${i.toString(16)}::1`);

  it('all succeed with the right password, also concurrently', async () => {
    const { signIn } = serving();

    const statuses = await Promise.all(networks.map((network) => signIn('ada', PASSWORD, network)));

    expect(count(statuses, 200)).toBe(150);
    expect(await signIn('ada', 'wrong', '192.0.2.9')).toBe(401);
  });

  it('are limited after 100 failures, except from a network where the user signed in', async () => {
    const { signIn } = serving();
    expect(await signIn('ada', PASSWORD, '2001:db8:1:1::1')).toBe(200);

    const statuses = [];
    for (const [i, network] of networks.entries()) {
      statuses.push(await signIn('ada', `wrong ${i}`, network));
    }

    expect(statuses.slice(0, 100)).toEqual(Array(100).fill(401));
    expect(statuses.slice(100)).toEqual(Array(50).fill(429));
    expect(await signIn('ada', PASSWORD, '192.0.2.9')).toBe(429);
    expect(await signIn('ada', PASSWORD, '2001:db8:1:1::2')).toBe(200);
    expect(await signIn('ada', PASSWORD, '2001:db8:1:2::1')).toBe(429);
    expect(await signIn('user 1', PASSWORD, networks[0] ?? '')).toBe(200);
  });

  it('are limited for an unknown user in the same way', async () => {
    const { signIn } = serving();

    const statuses = [];
    for (const network of networks) statuses.push(await signIn('nobody', 'wrong', network));

    expect([count(statuses, 401), count(statuses, 429)]).toEqual([100, 50]);
  });
});
