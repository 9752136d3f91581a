import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import {
  corruptStore,
  ERROR_PAGE,
  isTokenError,
  type StoreReason,
  storeFailure,
  storeUnavailable,
  TokenError,
} from '../src/errors.ts';
import { withDeadline } from '../src/time/deadline.ts';
import { expectNoSecret } from './support.ts';

/** An error of another copy of the package: another class with the same brand. */
function foreignError(code: string): Error {
  const brand = Symbol.for('tokenwright.TokenError');
  return Object.assign(new Error('of another copy'), { code, [brand]: true });
}

describe('a TokenError', () => {
  it('has a name, a code, a message, and no cause', () => {
    const error = new TokenError('not_found', 'there is no such token');

    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe('TokenError');
    expect(error.message).toContain('there is no such token');
    expect(error.code).toBe('not_found');
    expect('cause' in error).toBe(false);
  });

  it('links to the page of its code', () => {
    expect(new TokenError('not_found', 'no').docsUrl).toBe(`${ERROR_PAGE}#not_found`);
  });

  it('has a brand for other copies of the package, which is not enumerable', () => {
    const brand = Symbol.for('tokenwright.TokenError');

    expect(Object.getOwnPropertyDescriptor(new TokenError('not_found', 'no'), brand)).toEqual({
      value: true,
      enumerable: false,
      writable: false,
      configurable: false,
    });
  });

  it('has a member details only if there are some', () => {
    const details = { scopes: ['GET:shop.example/orders'] };

    expect(new TokenError('invalid_scope', 'none', details).details).toBe(details);
    expect('details' in new TokenError('invalid_scope', 'none')).toBe(false);
  });
});

describe('isTokenError', () => {
  it.each<[string, unknown, boolean]>([
    ['a TokenError', new TokenError('not_found', 'no'), true],
    ['a TokenError of another copy', foreignError('not_found'), true],
    ['an error with the same code', Object.assign(new Error('no'), { code: 'not_found' }), false],
    ['an error with the same name', Object.assign(new Error('no'), { name: 'TokenError' }), false],
    ['an object with the brand', { [Symbol.for('tokenwright.TokenError')]: true }, false],
    ['an error of another realm', runInNewContext('new Error("no")'), false],
    ['a text', 'TokenError', false],
    ['undefined', undefined, false],
    ['null', null, false],
  ])('accepts %s: $2', (_, value, expected) => {
    expect(isTokenError(value)).toBe(expected);
  });
});

describe('storeFailure', () => {
  it.each<[string, unknown, string]>([
    ['a corrupt record', corruptStore(), 'store_corrupt'],
    ['a corrupt record of another copy', foreignError('store_corrupt'), 'store_corrupt'],
    ['an outage', new TokenError('store_unavailable', 'x'), 'store_unavailable'],
    ['a missing replica', new TokenError('durability_unconfirmed', 'x'), 'durability_unconfirmed'],
    ['a code that stores do not use', new TokenError('not_found', 'x'), 'store_unavailable'],
    ['an error of a driver', new Error('connect ECONNREFUSED'), 'store_unavailable'],
    ['a driver error with one of our codes', { code: 'store_corrupt' }, 'store_unavailable'],
    ['undefined', undefined, 'store_unavailable'],
  ])('reports %s by its code', (_, error, code) => {
    expect(storeFailure(error)).toMatchObject({ name: 'TokenError', code });
  });

  it.each([
    ['standby', 'store_unavailable'],
    ['schema_newer', 'store_corrupt'],
    ['file_replaced', 'store_corrupt'],
  ] as const)('describes the reason %s of %s in its own words', (reason, code) => {
    const details = { reason, sql: 'insert … hunter7' };
    const failure = storeFailure(new TokenError(code, 'at host hunter7', details));

    expect(failure).toMatchObject({ code, details: { reason } });
    expect(failure.details).toEqual({ reason });
    expect(failure.message).not.toBe(storeFailure(new TokenError(code, 'x')).message);
    expectNoSecret(failure, 'hunter7');
  });

  it.each([
    ['hunter7', 'store_unavailable', { reason: 'unknown' }],
    ['toString', 'store_unavailable', { reason: 'unknown' }],
    ['standby', 'not_found', { reason: 'unknown' }],
    ['__proto__', 'store_corrupt', undefined],
    ['standby', 'durability_unconfirmed', undefined],
  ] as const)('drops the reason %s of %s', (reason, code, details) => {
    expect(storeFailure(new TokenError(code, 'x', { reason })).details).toEqual(details);
  });

  it('names the part of the store that failed', () => {
    const failure = storeFailure(storeUnavailable('schema_missing'), 'leases');
    expect(failure.details).toEqual({ reason: 'schema_missing', store: 'leases' });
  });

  it('calls what took too long a timeout', async () => {
    const late = await withDeadline(new Promise(() => {}), 1).catch((error) => error);
    expect(storeFailure(late).details).toEqual({ reason: 'timeout' });
  });

  it('advises to try again only where waiting helps', () => {
    const reasons = ['unreachable', 'timeout', 'busy', 'schema_missing', 'forbidden', 'unknown'];
    const hopeful = reasons.filter((reason) =>
      storeUnavailable(reason as StoreReason).message.includes('try again later'),
    );
    expect(hopeful).toEqual(['unreachable', 'timeout', 'busy']);
  });

  it.each(['store_corrupt', 'store_unavailable', 'durability_unconfirmed', 'not_found'] as const)(
    'replaces the message and details of %s by its own words',
    (code) => {
      const details = { sql: 'insert … hunter7' };
      const failure = storeFailure(new TokenError(code, 'at host hunter7', details));

      expect(failure.message).not.toBe('');
      expect(failure.details ?? { reason: 'unknown' }).toEqual({ reason: 'unknown' });
      expect('cause' in failure).toBe(false);
      expectNoSecret(failure, 'hunter7');
    },
  );
});
