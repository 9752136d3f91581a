import { describe, expect, it } from 'vitest';
import type { Api, ListQuery, ShownToken } from '../../../../src/app/console/page/api.ts';
import { countDescendants } from '../../../../src/app/console/page/revoke-many.ts';

type Family = Readonly<Record<string, readonly string[]>>;

/** A service with these children, in pages of two. A name in parentheses stands for a revoked token. */
function serviceOf(family: Family): { readonly api: Pick<Api, 'list'>; readonly calls: string[] } {
  const calls: string[] = [];
  const list = async ({ parent = '', cursor }: ListQuery) => {
    calls.push(parent);
    const start = Number(cursor ?? 0);
    const all = family[parent] ?? [];
    const tokens = all.slice(start, start + 2).map((id) => {
      return { id, state: id.startsWith('(') ? 'revoked' : 'active' } as ShownToken;
    });
    return { tokens, ...(start + 2 < all.length && { cursor: String(start + 2) }) };
  };
  return { api: { list }, calls };
}

describe('countDescendants', () => {
  it.each<[Family, number]>([
    [{}, 0],
    [{ a: ['b', 'c', 'd'], c: ['e'], e: ['f', 'g', 'h'] }, 7],
    [{ a: ['b', '(c)'], '(c)': ['d'] }, 1],
  ])('counts the descendants of a in %j: %i', async (family, count) => {
    expect(await countDescendants(serviceOf(family).api, 'a')).toEqual({ count, isAll: true });
  });

  it('stops after 100 requests', async () => {
    const many = Array.from({ length: 300 }, (_, index) => `b${index}`);
    const { api, calls } = serviceOf({ a: many });

    expect(await countDescendants(api, 'a')).toMatchObject({ isAll: false });
    expect(calls.length).toBe(100);
  });

  it('stops when the count is no longer wanted', async () => {
    const { api, calls } = serviceOf({ a: ['b'] });

    await countDescendants(api, 'a', () => calls.length === 0);

    expect(calls).toEqual(['a']);
  });
});
