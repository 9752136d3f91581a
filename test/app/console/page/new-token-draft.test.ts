import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import {
  bodyOf,
  curlOf,
  dayAfter,
  EMPTY_DRAFT,
  expiriesWithin,
  fieldOf,
  jsonOf,
  quoted,
} from '../../../../src/app/console/page/new-token-draft.ts';

const scopes = ['GET:shop.example/orders$'];

describe('bodyOf', () => {
  it('contains only what was entered', () => {
    expect(bodyOf({ ...EMPTY_DRAFT, scopes })).toEqual({ expiresIn: '30d', scopes });
    expect(bodyOf({ ...EMPTY_DRAFT, scopes, name: ' nightly ', expiry: '365d' })).toEqual({
      name: 'nightly',
      expiresIn: '365d',
      scopes,
    });
  });

  it('omits the lifetime if the default of the service is chosen', () => {
    expect(bodyOf({ ...EMPTY_DRAFT, scopes, expiry: 'default' })).toEqual({ scopes });
  });

  it('expires in the last second of the chosen day, in local time', () => {
    const { expire = '' } = bodyOf({ ...EMPTY_DRAFT, scopes, expiry: 'date', date: '2027-01-31' });

    expect(expire).toMatch(/Z$/);
    expect(new Date(expire).getTime()).toBe(new Date(2027, 0, 31, 23, 59, 59).getTime());
  });

  it('contains limits once one is entered', () => {
    const draft = { ...EMPTY_DRAFT, scopes, addresses: '10.0.0.0/8,\n ::1', uses: '100' };

    expect(bodyOf(draft).limits).toEqual({ addresses: ['10.0.0.0/8', '::1'], uses: 100 });
    expect(bodyOf({ ...EMPTY_DRAFT, rateUses: '5', rateSeconds: '3600' }).limits).toEqual({
      rate: { uses: 5, seconds: 3600 },
    });
    expect(bodyOf({ ...EMPTY_DRAFT, addresses: ' , ' }).limits).toBeUndefined();
  });

  it('passes invalid numbers on for the service to refuse', () => {
    expect(bodyOf({ ...EMPTY_DRAFT, uses: 'many' }).limits).toEqual({ uses: 'many' });
    expect(bodyOf({ ...EMPTY_DRAFT, uses: '1e3' }).limits).toEqual({ uses: '1e3' });
  });
});

describe('expiriesWithin', () => {
  const DAY = 86_400;

  it.each([
    [undefined, ['7d', '30d', '90d', '365d', 'date'], '30d'],
    [365 * DAY, ['7d', '30d', '90d', '365d', 'date'], '30d'],
    [365 * DAY - 1, ['7d', '30d', '90d', 'date'], '30d'],
    [30 * DAY - 1, ['7d', 'date'], '7d'],
    [7 * DAY - 1, ['default', 'date'], 'default'],
  ])('offers the expiries that fit into %s seconds', (maxSeconds, choices, first) => {
    expect(expiriesWithin(maxSeconds)).toEqual({ choices, first });
  });
});

describe('dayAfter', () => {
  it.each([
    [new Date(2027, 0, 31), 1, '2027-02-01'],
    [new Date(2027, 11, 31, 23, 59), 0, '2027-12-31'],
    [new Date(2028, 1, 1), 28, '2028-02-29'],
  ])('%s plus %i days is %s', (now, days, day) => {
    expect(dayAfter(now, days)).toBe(day);
  });
});

describe('fieldOf', () => {
  it.each([
    ['scopes', '', 'scopes'],
    ['name', '', 'name'],
    ['expire', '', 'expiry'],
    ['expiresIn', '', 'expiry'],
    ['ttl', '', 'expiry'],
    ['limits.uses', '', 'uses'],
    ['limits.addresses[3]', '', 'addresses'],
    ['limits', 'limits.rate must be …', 'rate'],
    ['limits', 'limits must be …', 'addresses'],
    ['metadata', '', undefined],
    [undefined, 'scopes', undefined],
  ])('maps member %s with message %j to the field %s', (member, message, field) => {
    const details = member === undefined ? {} : { member };

    expect(fieldOf({ code: 'invalid_request', message, details })).toBe(field);
  });
});

const HOSTILE = [
  `it's`,
  `'; rm -rf / #`,
  '$(id) `id` $HOME \\ "quotes" !history',
  '@/etc/passwd',
  '\u202Egnp.exe',
  '<img src=x onerror=alert(1)>',
];

describe('quoted', () => {
  it.each(HOSTILE)('quotes %j so that a shell reads it unchanged', (text) => {
    expect(execFileSync('sh', ['-c', `printf %s ${quoted(text)}`], { encoding: 'utf8' })).toBe(
      text,
    );
  });
});

describe('curlOf', () => {
  it.each(HOSTILE)('passes the name %j on unchanged, in ASCII', (name) => {
    const body = bodyOf({ ...EMPTY_DRAFT, name, scopes });
    const command = curlOf('https://auth.example', `ada'$(id)`, body);
    const shown = execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }; ${command}`], {
      encoding: 'utf8',
    }).split('\0');

    expect(command).toMatch(/^[\n -~]*$/);
    expect(shown).toHaveLength(8);
    expect(shown.slice(0, 3)).toEqual(['https://auth.example/token', '--user', `ada'$(id)`]);
    expect(JSON.parse(shown[6] ?? '')).toEqual(body);
  });

  it('never contains a password', () => {
    expect(curlOf('https://auth.example', undefined, bodyOf(EMPTY_DRAFT))).not.toContain(':@');
  });
});

describe('jsonOf', () => {
  it('escapes characters that change how the JSON is displayed', () => {
    const body = { name: 'a\u202Eb\u{1F600}é' };

    expect(jsonOf(body)).toMatch(/^[ -~]*$/);
    expect(JSON.parse(jsonOf(body, 2))).toEqual(body);
  });
});
