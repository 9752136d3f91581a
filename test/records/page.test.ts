import { describe, expect, it } from 'vitest';
import { isLast, Page } from '../../src/records/scan.ts';
import { recordBytes, type TokenRecord } from '../../src/token/record.ts';
import { listBytes } from '../../src/token/size.ts';
import { newRecord } from '../stores/support.ts';

const [one, two, three] = ['1', '2', '3'].map((label) => newRecord(label)) as [
  TokenRecord,
  TokenRecord,
  TokenRecord,
];
const BYTES = recordBytes(one);

describe('a page', () => {
  it('takes records up to its limit', () => {
    const page = new Page(2, 1e6);

    expect([one, two, three].map((record) => page.add(record))).toEqual([true, true, false]);
    expect(page.records).toEqual([one, two]);
  });

  it('takes records as long as their bytes fit', () => {
    expect(new Page(9, 2 * BYTES).isFull).toBe(false);
    const exact = new Page(9, 2 * BYTES);
    expect([one, two, three].map((record) => exact.add(record))).toEqual([true, true, false]);
    expect(exact.isFull).toBe(true);
    const less = new Page(9, 2 * BYTES - 1);
    expect([one, two].map((record) => less.add(record))).toEqual([true, false]);

    expect(less.isFull).toBe(false);
    expect(less.records).toEqual([one]);
  });

  it('takes the first record, whatever its size', () => {
    const page = new Page(9, 1);

    expect(page.add(one)).toBe(true);
    expect(page.add(two)).toBe(false);
    expect(page.isFull).toBe(true);
  });
});

describe('an answer of a store', () => {
  const query = { account: 'acme', liveAt: new Date(0) };
  const bytes = listBytes(one.scopes) + listBytes(one.requested);

  it.each([
    ['fewer records than asked for', 3, undefined, true],
    ['as many records as asked for', 2, undefined, false],
    ['fewer records and fewer bytes than asked for', 3, 2 * bytes + 1, true],
    ['fewer records than asked for, but as many bytes', 3, 2 * bytes, false],
  ])('that has %s is the last page: $3', (_, limit, maxBytes, is) => {
    expect(isLast([one, two], { ...query, limit, maxBytes })).toBe(is);
  });
});
