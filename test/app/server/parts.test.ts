import { describe, expect, it } from 'vitest';
import { newLimiter } from '../../../src/app/server/parts.ts';

const username = 'ada';
const networks = Array.from({ length: 100 }, (_, i) => `2001:db8:0:${i.toString(16)}::/64`);

/** The limiter of `serve` after a sign-in at one network, and a wrong password at each of a hundred others. */
async function limited() {
  const limiter = newLimiter();
  const signedIn = { username, address: '192.0.2.1' };
  await limiter.failed(signedIn);
  await limiter.succeeded(signedIn);
  for (const address of networks) expect(await limiter.failed({ username, address })).toBe(0);
  return limiter;
}

describe('the limiter of serve', () => {
  it.each([
    ['a user at a new network', { username, address: '192.0.2.2' }, true],
    ['a user where somebody has guessed', { username, address: networks[0] ?? '' }, true],
    ['a user where they have signed in', { username, address: '192.0.2.1' }, false],
    ['another user', { username: 'bob', address: networks[0] ?? '' }, false],
  ])('after a hundred failures from as many networks lets wait: %s', async (_, attempt, waits) => {
    const limiter = await limited();

    expect((await limiter.failed(attempt)) > 0).toBe(waits);
  });
});
