import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { describe, expect, it } from 'vitest';
import { failureLimiter, fixedAccounts, hashPassword } from '../../src/http/index.ts';
import { basic, PASSWORD, type SetUpOptions, setUp } from './support.ts';

const ADDRESS = 'x-address';
/** What one address may have in the queue of passwords. */
const PLACES_OF_ADDRESS = 8;
const passwordHash = hashPassword(PASSWORD);

/** The service as `serve` has it: real hashes, 100 failures of a user and 1000 of an address. */
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
  it('are limited, the right one beyond the limit among them', async () => {
    const { signIn, guess } = serving({ maxInFlight: 4000 });
    const load = guess('bob', '192.0.2.2', 100);

    const wrong = await Promise.all(guess('ada', '192.0.2.1', 300));
    const right = await signIn('ada', PASSWORD, '192.0.2.1');

    expect(count(wrong, 200)).toBe(0);
    expect(count(wrong, 429)).toBe(200);
    expect(count(wrong, 401)).toBeLessThanOrEqual(PLACES_OF_ADDRESS);
    expect(count(wrong, 401) + count(wrong, 503)).toBe(100);
    expect(right).toBe(429);
    // The control: it is the right one.
    expect(await signIn('ada', PASSWORD, '192.0.2.4')).toBe(200);
    await Promise.all(load);
  });

  it('keep no user at another address from signing in', async () => {
    const { signIn, guess } = serving();
    const guesses = Array.from({ length: 99 }, (_, i) => guess(`user ${i}`, '192.0.2.1', 10));

    const answer = signIn('ada', PASSWORD, '192.0.2.2');

    expect(await answer).toBe(200);
    const statuses = await Promise.all(guesses.flat());
    expect(count(statuses, 401)).toBeLessThanOrEqual(PLACES_OF_ADDRESS);
    expect(count(statuses, 401) + count(statuses, 503)).toBe(990);
  });

  it('leave nothing in memory', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const { guess } = serving({ maxInFlight: 2000 });
    const heapAfter = async (rounds: number) => {
      for (let i = 0; i < rounds; i++) await Promise.all(guess('eve', '192.0.2.1', 2000));
      await new Promise((resolve) => setImmediate(resolve));
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = await heapAfter(1);

    expect((await heapAfter(6)) - before).toBeLessThan(1_000_000);
  });
});
