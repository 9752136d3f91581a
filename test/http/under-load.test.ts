import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { describe, expect, it } from 'vitest';
import { failureLimiter, fixedAccounts, hashPassword } from '../../src/http/index.ts';
import { lookAtErrors } from '../canary.ts';
import { basic, PASSWORD, type SetUpOptions, setUp } from './support.ts';

const ADDRESS = 'x-address';
/** How many checks of one address the password queue holds. */
const SLOTS_PER_ADDRESS = 8;
const passwordHash = hashPassword(PASSWORD);

/** A service with the limits of `serve`: 100 failures by user and address, 1000 by address. */
function serving(options: SetUpOptions = {}) {
  const limiter = (points: number) => new RateLimiterMemory({ points, duration: 900 });
  const { call } = setUp({
    authenticate: fixedAccounts([{ username: 'ada', passwordHash }]),
    clientAddress: ({ headers }) => headers.get(ADDRESS) ?? '',
    limiter: failureLimiter({ userAndAddress: limiter(100), address: limiter(1000) }),
    ...options,
  });
  const signIn = async (username: string, password: string, address: string) => {
    const headers = { authorization: basic(username, password), [ADDRESS]: address };
    return (await call('GET', '/scopes', { headers })).status;
  };
  let guesses = 0;
  const guess = (username: string, address: string, count: number) =>
    Array.from({ length: count }, () => signIn(username, `guess ${guesses++}`, address));
  return { signIn, guess };
}

function count(statuses: readonly number[], status: number): number {
  return statuses.filter((each) => each === status).length;
}

describe('many guesses under load', () => {
  it('are limited, and so is the right password after the limit', async () => {
    const { signIn, guess } = serving({ maxInFlight: 4000 });
    const load = guess('bob', '192.0.2.2', 100);

    const wrong = await Promise.all(guess('ada', '192.0.2.1', 300));
    const right = await signIn('ada', PASSWORD, '192.0.2.1');

    expect(count(wrong, 200)).toBe(0);
    expect(count(wrong, 429)).toBe(200);
    expect(count(wrong, 401)).toBeLessThanOrEqual(SLOTS_PER_ADDRESS);
    expect(count(wrong, 401) + count(wrong, 503)).toBe(100);
    expect(right).toBe(429);
    // Control: the password is right.
    expect(await signIn('ada', PASSWORD, '192.0.2.4')).toBe(200);
    await Promise.all(load);
  });

  it('do not keep a user at another address from signing in', async () => {
    const { signIn, guess } = serving();
    const guesses = Array.from({ length: 99 }, (_, i) => guess(`user ${i}`, '192.0.2.1', 10));

    const answer = signIn('ada', PASSWORD, '192.0.2.2');

    expect(await answer).toBe(200);
    const statuses = await Promise.all(guesses.flat());
    expect(count(statuses, 401)).toBeLessThanOrEqual(SLOTS_PER_ADDRESS);
    expect(count(statuses, 401) + count(statuses, 503)).toBe(990);
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

    expect((await heapAfter(6)) - before).toBeLessThan(1_000_000);
  });
});
