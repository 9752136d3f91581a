import { describe, expect, it } from 'vitest';
import { ErrorLog } from '../../../../src/app/server/logs/errors.ts';
import { corruptStore, storeUnavailable } from '../../../../src/errors.ts';
import { remoteAddress } from '../../../../src/http/sign-in/login-limiter.ts';
import { TokenError } from '../../../../src/index.ts';
import { withDeadline } from '../../../../src/time/deadline.ts';
import { newLog } from '../../cli/support.ts';

function setUp() {
  const { clock, write, take } = newLog();
  return { errors: new ErrorLog(write), clock, take };
}

async function errorOf(work: () => unknown): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  return expect.unreachable();
}

describe('the log of failed calls', () => {
  it.each([
    [
      'a deadline that has passed',
      () => withDeadline(new Promise(() => {}), 1),
      'there was no answer in time',
    ],
    [
      'a client that has disconnected',
      () => remoteAddress(new Request('http://localhost')),
      'invalid_request: the address of the client is not known',
    ],
    [
      'an error without a position in the code',
      () => {
        throw Object.assign(new Error('the header\nis odd'), {
          stack: 'Error: the header\nis odd',
        });
      },
      'the header?is odd',
    ],
    [
      'a change that the replicas of the store did not confirm',
      () => {
        throw new TokenError('durability_unconfirmed', 'the change was made, but not confirmed');
      },
      'durability_unconfirmed: the change was made, but not confirmed',
    ],
    [
      'a fault of the caller',
      () => {
        throw new TokenError('invalid_request', 'name is too long');
      },
      'invalid_request: name is too long',
    ],
  ])('has one line without a stack for %s', async (_, work, message) => {
    const error = await errorOf(work);
    const { errors, take } = setUp();

    errors.report(error);

    expect(take()).toEqual([`a call failed: ${message}`]);
  });

  it.each([storeUnavailable('unreachable'), corruptStore()])(
    'leaves %s to the log of outages',
    (failure) => {
      const { errors, clock, take } = setUp();

      for (let i = 0; i < 10; i++) errors.report(failure);
      clock.advance(60);

      expect(take()).toEqual([]);
    },
  );

  it('shows the stack of an error once a minute, then how often it recurred', () => {
    const { errors, clock, take } = setUp();
    const fail = (message: string) => errors.report(new TypeError(message));

    for (let i = 0; i < 1000; i++) fail('broken');
    fail('other');
    const [first = '', second = '', ...more] = take();
    expect(first).toMatch(/^a call failed: TypeError: broken\n {4}at /);
    expect(second).toMatch(/^a call failed: TypeError: other\n {4}at /);
    expect(more).toEqual([]);
    clock.advance(59.999);
    fail('broken');
    expect(take()).toEqual([]);
    clock.advance(0.001);
    expect(take()).toEqual(['a call failed: TypeError: broken (1000 more times within a minute)']);
    fail('broken');
    expect(take()).toEqual([expect.stringContaining('TypeError: broken\n')]);
  });

  it('limits the number of lines for errors whose messages all differ', () => {
    const { errors, clock, take } = setUp();
    const flood = () => {
      for (let i = 0; i < 1000; i++) errors.report(new Error(`message ${i}`));
    };

    flood();
    expect(take()).toHaveLength(101);
    clock.advance(60);
    expect(take()).toEqual(['a call failed: other errors (899 more times within a minute)']);
    flood();
    expect(take()).toHaveLength(101);
  });

  it.each(['a text', undefined, null, { a: 1 }])(
    'accepts a thrown value that is not an error: %j',
    (thrown) => {
      const { errors, take } = setUp();

      errors.report(thrown);

      expect(take()).toEqual([expect.stringMatching(/^a call failed: ./)]);
    },
  );
});
