import { describe, expect, it } from 'vitest';
import { TokenError } from '../../src/errors.ts';
import {
  dateMessage,
  durationMessage,
  expiryMessage,
  inWords,
  kindOf,
  renamed,
  secondsMessage,
  shown,
  shownName,
} from '../../src/text/wording.ts';
import { parseDuration } from '../../src/time/duration.ts';

const DAY = 86_400;
const YEAR = 365 * DAY;

describe('secondsMessage', () => {
  it.each<[asked: number, max: number, message: string]>([
    [YEAR + 1, YEAR, 'ttl may be at most 365 days (31536000 s); you asked for 31536001 s'],
    [400 * DAY, YEAR, 'ttl may be at most 365 days (31536000 s); you asked for 400 days'],
    [1825 * DAY, YEAR, 'ttl may be at most 365 days (31536000 s); you asked for 1825 days'],
    [90 * DAY, 30 * DAY, 'ttl may be at most 30 days (2592000 s); you asked for 90 days'],
    [30 * DAY, 7 * DAY, 'ttl may be at most 7 days (604800 s); you asked for 30 days'],
    [7200, 3600, 'ttl may be at most 1 hour (3600 s); you asked for 2 hours'],
    [61, 59, 'ttl may be at most 59 s; you asked for 61 s'],
    [1e300, YEAR, 'ttl may be at most 365 days (31536000 s); you asked for 1e+300 s'],
  ])('states the limit in words for %d above %d: %s', (asked, max, message) => {
    expect(secondsMessage('ttl', asked, 1, max)).toBe(message);
  });

  it.each<[asked: number, max: number, seconds: number | undefined]>([
    [30 * DAY * 1000, YEAR, 2_592_000],
    [YEAR * 1000, YEAR, YEAR],
    [10 * YEAR, YEAR, 315_360],
    [10 * YEAR - 1, YEAR, undefined],
    [YEAR * 1000 + 1, YEAR, undefined],
    [86_400_000, DAY, DAY],
    [86_399_999, DAY, undefined],
    [3_600_000, 3600, undefined],
    [900 * DAY, YEAR, undefined],
  ])('suggests seconds if %d above %d looks like milliseconds: %s', (asked, max, seconds) => {
    const [, meant] =
      /; if you mean milliseconds, give (\d+)$/.exec(secondsMessage('ttl', asked, 1, max)) ?? [];

    expect(meant).toBe(seconds?.toString());
  });
});

describe('a hint', () => {
  const WRITTEN = [
    '1 day',
    '2w',
    '1y',
    '12 months',
    '366 days',
    '13mo',
    '2 years',
    '999999999w',
    '0d',
  ];

  it.each(WRITTEN)('of %j is accepted, or there is none', (text) => {
    const [, seconds] = /: give (.*)$/.exec(secondsMessage('ttl', text, 1, YEAR)) ?? [];
    const [, duration] = /: write "(.*)"$/.exec(durationMessage('expiresIn', text)) ?? [];
    const [, later] = /\+ (\d+) \* 1000\)$/.exec(expiryMessage('expiresAt', text)) ?? [];

    const meant = [seconds, duration && parseDuration(duration), later].map((one) =>
      one === undefined ? undefined : Number(one),
    );
    expect(new Set(meant).size).toBe(1);
    expect(meant[0] ?? 1).toBeLessThanOrEqual(YEAR);
    expect(meant[0] ?? 1).toBeGreaterThanOrEqual(1);
  });

  it.each(['2 years', '366 days'])('of %j says that every token expires', (text) => {
    const rule = 'every token expires, after 365 days at the latest';
    expect(durationMessage('expiresIn', text)).toContain(rule);
    expect(expiryMessage('expiresAt', text)).toContain(rule);
  });

  it.each([
    ['2027-01-01', true],
    ['2027-13-45', false],
    ['2027-01-01T99:00Z', false],
  ])('of the date %s is there if it is one: %s', (text, isDate) => {
    const message = dateMessage('expiresAt', text);
    expect(message.endsWith(`: give new Date("${text}")`)).toBe(isDate);
  });
});

describe('kindOf', () => {
  class Empty {}
  const { classify, class: method } = { classify() {}, class() {} };

  it.each([
    [Empty, 'a class'],
    [class {}, 'a class'],
    [class extends Empty {}, 'a class'],
    [classify, 'a function'],
    [method, 'a function'],
    [() => {}, 'a function'],
  ])('tells a class from a function (%#)', (value, kind) => {
    expect(kindOf(value)).toBe(kind);
  });
});

describe('inWords', () => {
  it.each([
    [0, '0 s'],
    [59, '59 s'],
    [60, '1 minute'],
    [90, '90 s'],
    [5400, '90 minutes'],
    [3600, '1 hour'],
    [DAY, '1 day'],
    [36 * 3600, '36 hours'],
    [1e6 * DAY, '1000000 days'],
    [(1e6 + 1) * DAY, '86400086400 s'],
  ])('writes %d as %s', (seconds, words) => {
    expect(inWords(seconds)).toBe(words);
  });
});

describe('shown', () => {
  it.each<[value: unknown, text: string]>([
    ['30d', 'the text "30d"'],
    ['-1', 'the text "-1"'],
    ['12 hours', 'the text "12 hours"'],
    ['2030-01-01', 'the text "2030-01-01"'],
    ['2030-01-01T00:00:00+01:00', 'the text "2030-01-01T00:00:00+01:00"'],
    ['', 'an empty text'],
    ['hunter2', 'a text'],
    ['12345678901', 'a text'],
    ['7 samurai', 'a text'],
    ['2030-01-01\n', 'a text'],
    ['1d\n', 'a text'],
    [null, 'null'],
    [undefined, 'undefined'],
    [true, 'true'],
    [-0.5, '-0.5'],
    [7n, 'a bigint'],
    [Symbol('secret'), 'a symbol'],
    [() => 1, 'a function'],
    [[1], 'a list'],
    [{ secret: 1 }, 'an object'],
    [new Date(Number.NaN), 'an invalid Date'],
    [new Date(1500), '1970-01-01T00:00:01.500Z (1 in UNIX seconds)'],
  ])('describes the value of case %# as $1', (value, text) => {
    expect(shown(value)).toBe(text);
  });

  it('describes a revoked proxy as an object', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();

    expect(shown(proxy)).toBe('an object');
  });
});

describe('shownName', () => {
  it.each(['x', 'ttlSeconds', 'max_age', 'x-scope', 'x'.repeat(32)])(
    'quotes the name %s',
    (name) => {
      expect(shownName(name)).toBe(`"${name}"`);
    },
  );

  it.each(['', 'x'.repeat(33), 'hunter7', '_x', 'a b', 'a"b', 'a\n', '\u202ea', 'é', '7'])(
    'hides the name %j',
    (name) => {
      expect(shownName(name)).toBe('(its name is not shown)');
    },
  );
});

describe('renamed', () => {
  const error = new TokenError('invalid_ttl', 'ttlSeconds must be 1', {
    member: 'ttlSeconds',
    max: 1,
  });

  it('replaces the name of the member in message and details', () => {
    expect(renamed(error, { ttlSeconds: '--ttl' })).toMatchObject({
      code: 'invalid_ttl',
      message: '--ttl must be 1',
      details: { member: '--ttl', max: 1 },
    });
  });

  it.each([{}, { ttl: 'x' }])(
    'leaves an error unchanged whose member has no new name: %j',
    (names) => {
      expect(renamed(error, names)).toBe(error);
    },
  );

  it('ignores names of Object.prototype', () => {
    const odd = new TokenError('invalid_request', 'constructor', { member: 'constructor' });

    expect(renamed(odd, {})).toBe(odd);
  });
});
