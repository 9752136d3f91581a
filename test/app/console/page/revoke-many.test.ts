import { describe, expect, it } from 'vitest';
import type { ShownToken } from '../../../../src/app/console/page/api.ts';
import { type RevokeProgress, revokeMany } from '../../../../src/app/console/page/revoke-many.ts';
import { ApiError } from '../../../../src/http/client.ts';

const tokensOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: `${index}` }) as ShownToken);
const idsOf = (tokens: readonly ShownToken[]) => tokens.map(({ id }) => id);

/** Revokes tokens, but fails for these ids. Records the order and the highest concurrency. */
function serviceOf(codes: Readonly<Record<string, string>> = {}) {
  const asked: string[] = [];
  let running = 0;
  let most = 0;
  const revoke = async ({ id }: ShownToken): Promise<void> => {
    asked.push(id);
    running += 1;
    most = Math.max(most, running);
    await Promise.resolve();
    running -= 1;
    const code = codes[id];
    if (code !== undefined) throw new ApiError(code, 'no');
  };
  return { revoke, asked, most: () => most };
}

const wanted = { isWanted: () => true, onProgress: () => {} };

describe('revokeMany', () => {
  it('revokes each token once, at most four concurrently, and reports its progress', async () => {
    const { revoke, asked, most } = serviceOf();
    const progress: number[] = [];
    const onProgress = ({ revoked }: RevokeProgress) => progress.push(revoked);

    const end = await revokeMany(tokensOf(10), { ...wanted, revoke, onProgress });

    expect(end).toEqual({ revoked: 10, failures: [], left: [] });
    expect(asked.toSorted()).toEqual(idsOf(tokensOf(10)));
    expect(most()).toBe(4);
    expect(progress).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it('continues after one failure, and counts a missing token as revoked', async () => {
    const { revoke } = serviceOf({ 3: 'version_conflict', 5: 'not_found' });

    const { revoked, failures, left } = await revokeMany(tokensOf(10), { ...wanted, revoke });

    expect([revoked, left]).toEqual([9, []]);
    expect(failures.map(({ token, error }) => [token.id, error.code])).toEqual([
      ['3', 'version_conflict'],
    ]);
  });

  it.each(['unreachable', 'overloaded', 'rate_limited', 'unauthenticated', 'store_unavailable'])(
    'pauses at %s, and retries nothing',
    async (code) => {
      const { revoke, asked } = serviceOf({ 5: code });

      const { revoked, failures, left, error } = await revokeMany(tokensOf(100), {
        ...wanted,
        revoke,
      });

      expect([error?.code, failures]).toEqual([code, []]);
      expect(left.length).toBe(100 - revoked);
      expect(idsOf(left)).toContain('5');
      expect(asked.length).toBeLessThan(13);
      expect(new Set(asked).size).toBe(asked.length);
    },
  );

  it('stops when it is no longer wanted, and waits for requests in progress', async () => {
    const { revoke, asked } = serviceOf();

    const isWanted = () => asked.length < 6;
    const { revoked, left } = await revokeMany(tokensOf(100), { ...wanted, revoke, isWanted });

    expect(revoked).toBe(asked.length);
    expect(idsOf(left)).toEqual(idsOf(tokensOf(100)).slice(asked.length));
  });
});
