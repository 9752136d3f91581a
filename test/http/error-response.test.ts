import { describe, expect, it } from 'vitest';
import { storeUnavailable, TokenError } from '../../src/errors.ts';
import { errorResponse } from '../../src/http/index.ts';
import { setUp } from '../support.ts';

describe('errorResponse', () => {
  it.each<[string, unknown, number, object]>([
    [
      'a call that is wrong',
      new TokenError('not_found', 'this account has no such token', { id: 'x' }),
      404,
      { code: 'not_found', message: 'this account has no such token', details: { id: 'x' } },
    ],
    [
      'an outage',
      storeUnavailable('timeout'),
      503,
      { code: 'store_unavailable', message: 'the store did not answer; try again later' },
    ],
    [
      'an outage whose error says more',
      new TokenError('store_unavailable', 'at db.internal'),
      503,
      { code: 'store_unavailable', message: 'the store did not answer; try again later' },
    ],
    ['a code of a later version', new TokenError('later' as never, 'x'), 500, { code: 'internal' }],
    ['a mistake of the program', new TokenError('invalid_options', 'x'), 500, { code: 'internal' }],
    ['any other error', new Error('at db.internal'), 500, { code: 'internal' }],
    ['what is no error', undefined, 500, { code: 'internal' }],
  ])('answers %s', async (_, error, status, members) => {
    const response = errorResponse(error);
    expect(response.status).toBe(status);
    expect(response.headers.has('retry-after')).toBe(status === 503);
    expect(await response.json()).toMatchObject({ success: false, data: null, ...members });
  });

  it('answers all reasons of an outage with the same bytes', async () => {
    const [first, ...others] = await Promise.all(
      (['timeout', 'schema_missing', 'credentials', 'unknown'] as const).map((reason) =>
        errorResponse(storeUnavailable(reason, 'leases')).text(),
      ),
    );
    expect(new Set(others)).toEqual(new Set([first]));
  });

  it('has the status that the error has', async () => {
    const { tokens } = setUp();
    const error = await tokens.issue({ account: 'ada', scopes: [] }).catch((refusal) => refusal);
    expect([error.status, errorResponse(error).status]).toEqual([422, 422]);
  });
});
