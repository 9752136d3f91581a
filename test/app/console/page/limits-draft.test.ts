import { describe, expect, it } from 'vitest';
import {
  changedLimits,
  draftOf,
  type Limits,
  limitsOf,
  NO_LIMITS,
} from '../../../../src/app/console/page/limits-draft.ts';
import { limitTexts } from '../../../../src/app/console/page/limits-text.ts';

const ALL: Limits = {
  addresses: ['192.0.2.0/24', '2001:db8::1'],
  uses: 1000,
  rate: { uses: 50, seconds: 300 },
};

describe('limitsOf', () => {
  it.each([
    ['all', ALL],
    ['addresses', { addresses: ['192.0.2.7'] }],
    ['a total', { uses: Number.MAX_SAFE_INTEGER }],
    ['a rate', { rate: { uses: 1, seconds: 1 } }],
  ])('reads back what draftOf returns: %s', (_, limits) => {
    expect(limitsOf(draftOf(limits))).toEqual(limits);
  });

  it('returns undefined for an empty form', () => {
    expect(limitsOf(NO_LIMITS)).toBeUndefined();
    expect(draftOf(undefined)).toEqual(NO_LIMITS);
  });

  it.each(['many', '1.5', '-1', '1e3', '9007199254740993'])(
    'passes the invalid number %j on for the service to refuse',
    (uses) => {
      expect(limitsOf({ ...NO_LIMITS, uses })).toEqual({ uses });
    },
  );
});

describe('changedLimits', () => {
  const before = draftOf(ALL);

  it('returns undefined for an unchanged form, even if somebody else changed the limits', () => {
    expect(changedLimits(ALL, before, before)).toBeUndefined();
    expect(changedLimits({ uses: 1 }, before, { ...before, uses: ' 1000 ' })).toBeUndefined();
  });

  it('keeps a change that somebody else made meanwhile', () => {
    const now = { ...ALL, addresses: ['198.51.100.1'] };

    expect(changedLimits(now, before, { ...before, uses: '5' })).toEqual({ ...now, uses: 5 });
  });

  it('removes one limit, and returns null if none is left', () => {
    const { rate: _, ...rest } = ALL;

    expect(changedLimits(ALL, before, { ...before, rateUses: '' })).toEqual(rest);
    expect(changedLimits({ uses: 1 }, draftOf({ uses: 1 }), NO_LIMITS)).toBeNull();
  });
});

describe('limitTexts', () => {
  it('describes each limit, and shows an invalid number as it was entered', () => {
    expect(limitTexts(ALL)).toEqual({
      addresses: 'only from 192.0.2.0/24, 2001:db8::1',
      uses: '1,000 uses in total',
      rate: '50 uses in 300 seconds',
    });
    expect(limitTexts({ uses: 'many' })).toEqual({ uses: 'many' });
    expect(limitTexts({})).toEqual({});
  });
});
