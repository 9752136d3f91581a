import { describe, expect, it } from 'vitest';
import { MAX_LIFETIME_SECONDS } from '../../src/bounds.ts';
import { isTokenError } from '../../src/errors.ts';
import { secondsField } from '../../src/inputs/schemas.ts';
import { copyMetadata, readMetadata } from '../../src/token/metadata.ts';
import {
  checkExpiry,
  expiryAfter,
  isAccount,
  isExpired,
  isRecord,
  type TokenId,
  type TokenRecord,
} from '../../src/token/record.ts';
import { YEAR } from '../support.ts';

const NOW = new Date('2100-01-01T00:00:00.000Z');
const LIFETIME = { defaultSeconds: YEAR, maxSeconds: YEAR };
const ID = '0123456789ABCDEFGHIJKL' as TokenId;
const idsUpTo = (count: number) =>
  Array.from({ length: count }, (_, index) => `${index}`.padEnd(22, 'a'));

const later = (ms: number): Date => new Date(NOW.getTime() + ms);

function recordFor(fields: Partial<Record<keyof TokenRecord, unknown>> = {}): unknown {
  return {
    id: ID,
    account: 'acme',
    prefix: 'acme',
    kid: 'k1',
    digest: new Uint8Array(32),
    scopes: ['GET:shop.example/orders'],
    requested: ['GET:shop.example/*'],
    createdAt: NOW,
    expiresAt: later(1000),
    version: 1,
    ...fields,
  };
}

describe('isExpired', () => {
  it.each([
    [-1, true],
    [0, true],
    [1, false],
  ])('for an expiry %d ms from now is %s', (ms, isOver) => {
    expect(isExpired({ expiresAt: later(ms) }, NOW.getTime())).toBe(isOver);
  });
});

describe('expiryAfter', () => {
  it('counts seconds and keeps milliseconds', () => {
    expect(expiryAfter(later(7).getTime(), 60).toISOString()).toBe('2100-01-01T00:01:00.007Z');
  });

  it('counts a year as 365 days, even across a leap day', () => {
    expect(MAX_LIFETIME_SECONDS).toBe(365 * 86_400);
    expect(MAX_LIFETIME_SECONDS).toBe(YEAR);
    const beforeLeapDay = Date.UTC(2096, 0, 1);
    expect(expiryAfter(beforeLeapDay, YEAR).toISOString()).toBe('2096-12-31T00:00:00.000Z');
  });
});

describe('checkExpiry', () => {
  it.each([
    [1, true],
    [YEAR * 1000, true],
    [0, false],
    [-1, false],
    [YEAR * 1000 + 1, false],
    [8.64e15 - NOW.getTime(), false],
    [-NOW.getTime(), false],
  ])('accepts an expiry %d ms from now: %s', (ms, isGood) => {
    if (isGood) expect(checkExpiry(later(ms), NOW.getTime(), LIFETIME)).toEqual(later(ms));
    else {
      expect(() => checkExpiry(later(ms), NOW.getTime(), LIFETIME)).toThrow(
        expect.objectContaining({ code: 'invalid_expire' }),
      );
    }
  });

  it('refuses an invalid date', () => {
    expect(() => checkExpiry(new Date(Number.NaN), NOW.getTime(), LIFETIME)).toThrow(
      expect.objectContaining({ code: 'invalid_expire' }),
    );
  });

  it('mentions milliseconds only if the date looks like milliseconds', () => {
    const message = (date: Date): string => {
      try {
        checkExpiry(date, NOW.getTime(), LIFETIME);
      } catch (error) {
        return isTokenError(error) ? error.message : '';
      }
      return '';
    };

    expect(message(new Date(later(1000).getTime() * 1000))).toMatch(/milliseconds/);
    expect(message(later(2 * YEAR * 1000))).not.toMatch(/milliseconds/);
    expect(message(new Date(NOW.getTime() * 100 + 1))).toMatch(/milliseconds/);
    expect(message(new Date(NOW.getTime() * 100))).not.toMatch(/milliseconds/);
  });

  it('takes the year 9999 for "never", not for milliseconds', () => {
    const now = Date.UTC(2026, 0, 1);
    const check = (text: string) => () => checkExpiry(new Date(text), now, LIFETIME);

    expect(check('9999-12-31T23:59:59.999Z')).toThrow(/; got 9999-12-31T23:59:59/);
    expect(check('+010000-01-01T00:00:00Z')).toThrow(/milliseconds/);
  });

  it('returns a copy', () => {
    const asked = later(1000);
    const checked = checkExpiry(asked, NOW.getTime(), LIFETIME);
    asked.setTime(0);

    expect(checked).toEqual(later(1000));
  });
});

describe('a lifetime', () => {
  it.each<[unknown, boolean]>([
    [1, true],
    [YEAR, true],
    [0, false],
    [-1, false],
    [YEAR + 1, false],
    [1.5, false],
    [0.999, false],
    [Number.NaN, false],
    [Number.POSITIVE_INFINITY, false],
    [Number.MAX_VALUE, false],
    ['60', false],
    ['', false],
    [null, false],
    [true, false],
    [[60], false],
    [60n, false],
    [new Date(60), false],
  ])('of %s seconds is accepted: %s', (ttl, isGood) => {
    expect(secondsField('ttl', 1, LIFETIME.maxSeconds).safeParse(ttl).success).toBe(isGood);
  });
});

describe('isAccount', () => {
  it.each<[string, unknown, boolean]>([
    ['one letter', 'a', true],
    ['an empty text', '', false],
    ['255 bytes', 'a'.repeat(255), true],
    ['256 bytes', 'a'.repeat(256), false],
    ['254 bytes of é', 'é'.repeat(127), true],
    ['256 bytes of é', 'é'.repeat(128), false],
    ['252 bytes of 😀', '😀'.repeat(63), true],
    ['256 bytes of 😀', '😀'.repeat(64), false],
    ['spaces and punctuation', ' a:b/c"\'\\ ', true],
    ['a NUL', 'a\0', false],
    ['a line end', 'a\n', false],
    ['DEL', 'a\u007f', false],
    ['a C1 control', 'a\u0085', false],
    ['a zero-width joiner', 'a\u200d', true],
    ['half a surrogate pair', 'a\ud83d', false],
    ['a name of Object.prototype', '__proto__', true],
    ['a number', 1, false],
    ['a list', ['acme'], false],
    ['undefined', undefined, false],
  ])('accepts %s: $2', (_, text, isAccepted) => {
    expect(isAccount(text)).toBe(isAccepted);
  });
});

describe('readMetadata', () => {
  const ofSize = (bytes: number): object => ({ a: 'x'.repeat(bytes - '{"a":""}'.length) });
  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;

  it.each<[string, unknown, boolean]>([
    ['an empty object', {}, true],
    ['4096 bytes', ofSize(4096), true],
    ['4097 bytes', ofSize(4097), false],
    ['a megabyte', ofSize(1_000_000), false],
    ['all kinds of JSON', { a: [1, 'x', null, true, { b: [] }] }, true],
    ['an own __proto__', JSON.parse('{"__proto__":{"isAdmin":true}}'), true],
    ['no prototype', Object.assign(Object.create(null), { a: 1 }), true],
    ['a list', [], false],
    ['null', null, false],
    ['a text', '{}', false],
    ['undefined inside', { a: undefined }, false],
    ['undefined in a list', { a: [1, undefined] }, false],
    ['a function inside', { a: () => 1 }, false],
    ['a date inside', { a: new Date(0) }, false],
    ['NaN inside', { a: Number.NaN }, false],
    ['a bigint inside', { a: 1n }, false],
    ['a map inside', { a: new Map() }, false],
    ['a toJSON', { toJSON: () => ({}) }, false],
    ['a cycle', cyclic, false],
  ])('accepts %s: $2', (_, value, isAccepted) => {
    expect(typeof readMetadata(value)).toBe(isAccepted ? 'object' : 'string');
  });
});

describe('copyMetadata', () => {
  it('returns a deep copy that is frozen', () => {
    const given = { a: { b: [1] } };
    const copy = copyMetadata(given);
    given.a.b.push(2);

    expect(copy).toEqual({ a: { b: [1] } });
    expect([copy, copy['a'], (copy['a'] as { b: unknown }).b].every(Object.isFrozen)).toBe(true);
  });
});

describe('isRecord', () => {
  const time = new Date('2100-01-01T00:00:00.000Z');
  const bytes = new Uint8Array(32);
  const pending = { prefix: 'acme', kid: 'k1', digest: bytes, graceSeconds: 60 };

  it.each<[keyof TokenRecord, readonly unknown[], readonly unknown[]]>([
    ['id', [ID], ['0123456789ABCDEFGHIJKM', '', undefined, null, 7, [ID]]],
    ['account', ['acme'], [undefined, null, 7, ['acme'], {}]],
    ['prefix', ['acme', 'other'], [undefined, null, 7, {}]],
    ['kid', ['k1', 'zz'], [undefined, null, 7, {}]],
    [
      'digest',
      [bytes, Buffer.alloc(32)],
      [undefined, null, new Uint8Array(31), new Uint8Array(33), 'x'.repeat(32), [...bytes], {}],
    ],
    ['box', [undefined, bytes, new Uint8Array(55)], [null, 'box', 7, [], {}]],
    [
      'scopes',
      [['GET:a.example/a']],
      [undefined, null, 'x', {}, [], [7], [null], ['a', undefined]],
    ],
    ['requested', [['GET:a.example/a']], [undefined, null, 'x', {}, [7], [null]]],
    ['createdAt', [time], [undefined, null, new Date(Number.NaN), 0, '2100-01-01', {}]],
    ['expiresAt', [time], [undefined, null, new Date(Number.NaN), 0, '2100-01-01', {}]],
    ['version', [1, 2, 1e9], [undefined, null, 0, -1, 1.5, Number.NaN, '1', 1n, 2 ** 53]],
    ['name', [undefined, 'x'], [null, 7, ['x'], {}]],
    ['metadata', [undefined, {}, { a: 1 }], [null, 'x', 7, []]],
    ['revokedAt', [undefined, time], [null, new Date(Number.NaN), 0, '2100-01-01', false]],
    ['previousDigest', [undefined, bytes], [null, new Uint8Array(31), 'x'.repeat(32)]],
    ['previousUntil', [undefined, time], [null, new Date(Number.NaN), 0, '2100-01-01']],
    ['suspendedAt', [undefined, time], [null, new Date(Number.NaN), 0, '2100-01-01', false]],
    ['scopesChangedAt', [undefined, time], [null, new Date(Number.NaN), 0, '2100-01-01']],
    ['rotatedAt', [undefined, time], [null, new Date(Number.NaN), 0, '2100-01-01']],
    [
      'limits',
      [
        ...[undefined, {}, { uses: 1 }, { uses: 2 ** 53 - 1 }, { rate: { uses: 1, seconds: 1 } }],
        { addresses: ['192.0.2.1'], uses: 7, rate: { uses: 9, seconds: 86_400 } },
        { addresses: Array(100).fill('192.0.2.1') },
      ],
      [
        ...[null, 'x', 7, [], { addresses: 'x' }, { addresses: [7] }, { uses: null }],
        ...[0, -1, 1.5, '1', Number.NaN, 2 ** 53].map((uses) => ({ uses })),
        ...[0, 1.5, '1', 2 ** 53].map((uses) => ({ rate: { uses, seconds: 1 } })),
        ...[0, 1.5, '1', 86_401].map((seconds) => ({ rate: { uses: 1, seconds } })),
        ...[null, [], {}, { uses: 1 }, { seconds: 1 }].map((rate) => ({ rate })),
        { addresses: Array(101).fill('192.0.2.1') },
        // A limit that only a later version knows must not be ignored.
        { uses: 1, concurrent: 3 },
        { rate: { uses: 1, seconds: 1, burst: 5 } },
      ],
    ],
    [
      'ancestors',
      [undefined, [ID], idsUpTo(7)],
      [null, '', ID, [], [7], [''], ['x'], [ID, undefined], [`${ID}x`], idsUpTo(8), [ID, ID]],
    ],
    [
      'format',
      [undefined, 'sanctum', 'a-1', 'x'.repeat(32)],
      [null, '', 7, 'A', 'a_b', 'a b', 'x'.repeat(33), ['a']],
    ],
    [
      'pending',
      [undefined, pending, { ...pending, box: bytes }, { ...pending, graceSeconds: 0 }],
      [
        ...[null, 'x', true, {}, [pending], { ...pending, prefix: 7 }, { ...pending, kid: null }],
        ...[undefined, null, 'x', new Uint8Array(31)].map((digest) => ({ ...pending, digest })),
        ...[null, 'x', 7].map((box) => ({ ...pending, box })),
        ...[undefined, null, '1', -1, 1.5, Number.NaN].map((graceSeconds) => ({
          ...pending,
          graceSeconds,
        })),
      ],
    ],
  ])('checks the field %s', (field, good, bad) => {
    for (const value of good) expect(isRecord(recordFor({ [field]: value }), ID)).toBe(true);
    for (const [index, value] of bad.entries()) {
      expect([index, isRecord(recordFor({ [field]: value }), ID)]).toEqual([index, false]);
    }
  });

  it('checks a list again, because it can have changed', () => {
    const scopes: unknown[] = ['GET:a.example/a'];
    const record = recordFor({ scopes });

    expect(isRecord(record, ID)).toBe(true);
    scopes.push(7);
    expect(isRecord(record, ID)).toBe(false);
  });

  it.each<[unknown]>([[undefined], [null], [0], ['record'], [[]], [{}], [() => {}]])(
    'refuses a value that is not an object with fields (case %#)',
    (value) => {
      expect(isRecord(value, ID)).toBe(false);
    },
  );
});
