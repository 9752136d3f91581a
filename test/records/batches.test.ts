import { describe, expect, it } from 'vitest';
import { storeUnavailable, TokenError } from '../../src/errors.ts';
import { inBatches } from '../../src/records/batches.ts';
import { refusalOf } from '../support.ts';

/** A store with `total` records that fails for batches of more than `most`, once it has changed some. */
function storeOf(total: number, most: number, error: Error = storeUnavailable('timeout')) {
  const asked: number[] = [];
  let left = total;
  const change = async (limit: number) => {
    asked.push(limit);
    if (limit > most && asked.length > 1) throw error;
    const changed = Math.min(left, limit);
    left -= changed;
    return changed;
  };
  return { asked, change, left: () => left };
}

describe('a batch that fails slowly', () => {
  it('is halved and tried again, and the next ones are as small', async () => {
    const { asked, change, left } = storeOf(300, 30);

    expect(await inBatches(change, { size: 100, slowMs: 0 })).toBe(300);
    expect(left()).toBe(0);
    expect(asked.slice(0, 5)).toEqual([100, 100, 50, 25, 25]);
  });

  it('is tried three times at most', async () => {
    const { asked, change } = storeOf(3000, 1);
    const error = await refusalOf(inBatches(change, { size: 800, slowMs: 0 }));

    expect(error.code).toBe('store_unavailable');
    expect(asked.length).toBe(5);
  });

  it.each<[string, { slowMs?: number }, Error]>([
    ['that fails quickly', { slowMs: 60_000 }, storeUnavailable('timeout')],
    ['without a limit of time', {}, storeUnavailable('timeout')],
    ['with another error', { slowMs: 0 }, new TokenError('store_corrupt', 'no')],
  ])('is not, %s', async (_, options, fault) => {
    const { asked, change } = storeOf(300, 30, fault);
    const error = await refusalOf(inBatches(change, { size: 100, ...options }));

    expect(asked).toEqual([100, 100]);
    expect(error.details).toMatchObject({ count: 100 });
  });

  it('is not, before any batch has succeeded', async () => {
    const asked: number[] = [];
    const change = async (limit: number) => {
      asked.push(limit);
      throw storeUnavailable('timeout');
    };
    await refusalOf(inBatches(change, { size: 100, slowMs: 0 }));

    expect(asked).toEqual([100]);
  });
});
