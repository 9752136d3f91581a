import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/token/record.ts';
import { type ForeignFormat, formats } from '../../src/values/foreign.ts';
import { KeyRing } from '../../src/values/keys.ts';
import { redact, redactor } from '../../src/values/redact.ts';
import { maskValue, mintValue } from '../../src/values/value.ts';
import { runs } from '../laws.ts';
import { K1 } from '../support.ts';

const RING = new KeyRing([K1]);
const ID = '0123456789ABCDEFGHIJKL' as TokenId;
const DIGEST = '9ead24b2a31532aa53aafd33f1f2c7b683c56545266509276aeb8bf9eea201ed';
const KNOWN = 'acme_1k10123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm27Jxd7';

describe('redact', () => {
  const MASKED = 'acme_1k1012345…';
  const BODY = KNOWN.slice('acme_1'.length);

  it.each<[string, string, string]>([
    ['the value alone', KNOWN, MASKED],
    ['a sentence', `the token ${KNOWN} is refused`, `the token ${MASKED} is refused`],
    ['a header', `Bearer ${KNOWN}`, `Bearer ${MASKED}`],
    ['JSON', JSON.stringify({ token: KNOWN, n: 1 }), JSON.stringify({ token: MASKED, n: 1 })],
    ['JSON within JSON', `{\\"t\\":\\"${KNOWN}\\"}`, `{\\"t\\":\\"${MASKED}\\"}`],
    ['an escaped line', `a\\n${KNOWN}\\nb`, `a\\n${MASKED}\\nb`],
    ['quotes', `'${KNOWN}' \`${KNOWN}\` "${KNOWN}"`, `'${MASKED}' \`${MASKED}\` "${MASKED}"`],
    ['a path', `/auth/token/${KNOWN}/rotate?x=1`, `/auth/token/${MASKED}/rotate?x=1`],
    ['a query', `/a?t=${KNOWN}&b=2#${KNOWN}`, `/a?t=${MASKED}&b=2#${MASKED}`],
    ['URL escapes around it', `%22${KNOWN}%22`, `%22${MASKED}%22`],
    ['several values in a row', `${KNOWN},${KNOWN} ${KNOWN}`, `${MASKED},${MASKED} ${MASKED}`],
    ['several values without anything between', KNOWN.repeat(3), MASKED.repeat(3)],
    ['a word glued before it', `TOKEN${KNOWN}`, `TOKEN${MASKED}`],
    ['an environment variable glued before it', `MY_TOKEN_${KNOWN}`, `MY_TOKEN_${MASKED}`],
    ['letters glued after it', `${KNOWN}abc`, `${MASKED}abc`],
    ['an underscore after it', `${KNOWN}_old`, `${MASKED}_old`],
    ['another prefix', `acme_live_1${BODY}`, 'acme_live_1k1012345…'],
    ['the shortest prefix', `ab_1${BODY}`, 'ab_1k1012345…'],
    [
      'the longest prefix',
      `a234567890123456_12345678_1${BODY}`,
      'a234567890123456_12345678_1k1012345…',
    ],
    ['a prefix that ends in _1', `acme_1_1${BODY}`, 'acme_1_1k1012345…'],
    ['lines', `${KNOWN}\r\n${KNOWN}`, `${MASKED}\r\n${MASKED}`],
    ['other scripts', `é${KNOWN}漢\u{1f600}${KNOWN}`, `é${MASKED}漢\u{1f600}${MASKED}`],
    ['an encoded underscore', `acme%5F1${BODY}`, 'acme%5F1k1012345…'],
    ['an underscore encoded twice', `acme%255f1${BODY}`, 'acme%255f1k1012345…'],
    ['an underscore escaped for JSON', `acme\\u005f1${BODY}`, 'acme\\u005f1k1012345…'],
    ['one escaped twice', `acme\\\\u005F1${BODY}`, 'acme\\\\u005F1k1012345…'],
    ['an underscore escaped for HTML', `acme&#95;1${BODY}`, 'acme&#95;1k1012345…'],
    ['a wide underscore', `acme\uff3f1${BODY}`, 'acme\uff3f1k1012345…'],
    ['a lookalike with a wrong tag', `${KNOWN.slice(0, -1)}0`, MASKED],
  ])('masks values: %s', (_, text, expected) => {
    expect(redact(text)).toBe(expected);
  });

  it.each<[string, string]>([
    ['an empty text', ''],
    ['an id', ID],
    ['a path with an id', `/token/${ID}/rotate`],
    ['a masked value', MASKED],
    ['a value that was masked before', redact(`a ${KNOWN} b`)],
    ['a value without its last character', KNOWN.slice(0, -1)],
    ['a body alone', BODY],
    ['another version', KNOWN.replace('_1', '_2')],
    ['a prefix in upper case', KNOWN.replace('acme', 'ACME')],
    ['a body with a dash', KNOWN.replace('012345', '01-345')],
    ['a value split over two lines', `${KNOWN.slice(0, 30)}\n${KNOWN.slice(30)}`],
    ['a long word', 'a'.repeat(1000)],
    ['a digest', 'sha256_0'.padEnd(72, 'f')],
    ['a digest in hex', DIGEST],
    ['long names in snake case', `${'some_1long_name_'.repeat(20)}end`],
    ['a UUID', '7f3b1c9e-1111-4c2a-9d52-1b1f6b1c9e11'],
    ['a JWT', `eyJhbGciOiJIUzI1NiJ9.${'eyJ'.repeat(30)}.${'x_1'.repeat(14)}`],
  ])('leaves %s unchanged', (_, text) => {
    expect(redact(text)).toBe(text);
  });

  it('masks minted values of any prefix in the way of maskValue', () => {
    for (const prefix of ['ab', 'acme', 'acme_live', 'acme_1', 'a234567890123456_12345678']) {
      for (let i = 0; i < 200; i++) {
        const { value, stored } = mintValue(RING, prefix, ID, undefined);
        expect(redact(`x${value}y`)).toBe(`x${maskValue({ ...stored, id: ID })}y`);
      }
    }
  });

  it('is idempotent, and leaves no value in any text', () => {
    const text = fc.array(
      fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(KNOWN, 'acme_1', '_1', BODY, ID)),
    );
    fc.assert(
      fc.property(text, (parts) => {
        const masked = redact(parts.join(''));
        expect(redact(masked)).toBe(masked);
        expect(/[a-z0-9]_1[0-9A-Za-z]{57}/.test(masked)).toBe(false);
      }),
      runs(),
    );
  });

  it.each<[unknown]>([
    [undefined],
    [null],
    [42],
    [{ toString: () => KNOWN }],
    [[KNOWN]],
    [Symbol()],
  ])('returns an empty text for a value that is not a string (%#)', (thing) => {
    expect(redact(thing as string)).toBe('');
  });

  it('handles megabytes', () => {
    const text = `${'a_1k'.repeat(1_000_000)} ${KNOWN} ${'a'.repeat(4_000_000)}`;

    expect(redact(text)).toBe(text.replace(KNOWN, MASKED));
  });
});

describe('redactor', () => {
  const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijkl';
  const ENTROPY = '0123456789abcdefghijABCDEFGHIJklmnopqrst';
  const mask = redactor([
    formats.sanctum(),
    formats.betterAuth({ prefix: 'old.' }),
    formats.unkey({ prefix: 'unk' }),
    formats.prefixedApiKey({ prefix: 'mycompany' }),
    formats.betterAuth({ prefix: 'sk_', length: 32 }),
    { name: 'own', hashedPart: () => undefined, inText: '(key-)[0-9a-f]{16}' },
  ]);

  it.each([
    [`Bearer 12|${ENTROPY}`, 'Bearer 12|…'],
    [`/token/12%7C${ENTROPY}6d0f5a10/rotate`, '/token/12%7C…/rotate'],
    [`{"key":"old.${LETTERS}"}`, '{"key":"old.…"}'],
    ['a unk_3ZHgTRVY5wmFb4LqsWJX7P b', 'a unk_… b'],
    ['mycompany_4bArCCaL_Jrq6csg8VZDYnjeQpMneEsEu', 'mycompany_…'],
    [`sk_${LETTERS.slice(0, 32)},sk_${LETTERS.slice(0, 32)}`, 'sk_…,sk_…'],
    ['key-0123456789abcdef', 'key-…'],
    [`${KNOWN} key-0123456789abcdef`, 'acme_1k1012345… key-…'],
  ])('masks values that redact does not know (case %#)', (text, expected) => {
    expect(mask(text)).toBe(expected);
    expect(redact(text)).not.toBe(expected);
  });

  it.each([
    `oldx${LETTERS}`,
    `old.${LETTERS.slice(1)}`,
    `12|${ENTROPY.slice(1)}`,
    `${ENTROPY}x`,
    `${ENTROPY}00000000`,
    'unk_short',
    'sk_learn',
  ])('leaves other words unchanged: %s', (text) => {
    expect(mask(text)).toBe(text);
  });

  it('masks words that a format without a prefix accepts, and no others', () => {
    const none = redactor([
      formats.betterAuth(),
      formats.betterAuth({ length: 32 }),
      formats.sha256({ pattern: /^own-(\d{20})$/ }),
    ]);

    expect(none(`a ${LETTERS} b`)).toBe('a … b');
    expect(none(`key=${LETTERS.slice(0, 32)}&a=1`)).toBe('key=…&a=1');
    expect(none('{"key":"own-01234567890123456789"}')).toBe('{"key":"…"}');
    expect(none(LETTERS.slice(1))).toBe(LETTERS.slice(1));
    expect(none('own-0123456789012345678')).toBe('own-0123456789012345678');
    expect(none(KNOWN)).toBe(redact(KNOWN));
    expect(redactor([])(KNOWN)).toBe(redact(KNOWN));
    expect(redactor([])(LETTERS)).toBe(LETTERS);
  });

  const CRC32 = (text: string) => crc32(text).toString(16).padStart(8, '0');
  const letters = (alphabet: string, min: number, max = min) =>
    fc
      .array(fc.constantFrom(...alphabet), { minLength: min, maxLength: max })
      .map((all) => all.join(''));
  const ALNUM = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
  const ALPHA = ALNUM.slice(10);
  const sanctum = (start: string) =>
    fc
      .tuple(fc.constantFrom('', '12|', '7f3b1c9e-1111-4c2a|'), letters(ALNUM, 40), fc.boolean())
      .map(([id, entropy, isLong]) => `${id}${start}${entropy}${isLong ? CRC32(entropy) : ''}`);
  const ACCEPTED: readonly [string, ForeignFormat, fc.Arbitrary<string>][] = [
    ['sanctum', formats.sanctum(), sanctum('')],
    ['sanctum with a prefix', formats.sanctum({ prefix: 'st_' }), sanctum('st_')],
    ['better-auth', formats.betterAuth(), letters(ALPHA, 64)],
    [
      'better-auth with a prefix and a length',
      formats.betterAuth({ prefix: 'ba.', length: 20 }),
      letters(ALPHA, 20).map((rest) => `ba.${rest}`),
    ],
    [
      'unkey',
      formats.unkey({ prefix: 'unk' }),
      letters(BASE58, 12, 360).map((rest) => `unk_${rest}`),
    ],
    [
      'prefixed-api-key',
      formats.prefixedApiKey({ prefix: 'my' }),
      fc
        .tuple(letters(ALNUM, 1, 64), letters(ALNUM, 16, 64))
        .map(([short, long]) => `my_${short}_${long}`),
    ],
    [
      'sha256',
      formats.sha256({ pattern: /^old-[0-9A-Za-z]{30}$/ }),
      letters(ALNUM, 30).map((rest) => `old-${rest}`),
    ],
  ];
  const AROUND: readonly (readonly [string, string])[] = [
    ['', ''],
    ['Bearer ', ''],
    ['the key ', ' is refused'],
    ['the key is ', '.'],
    ['{"key":"', '"}'],
    ['{\\"key\\":\\"', '\\"}'],
    ['a\\n', '\\nb'],
    ['\\u0022', '\\u0022'],
    ['https://a.example/x?key=', '&b=1#c'],
    ['/token/', '/rotate'],
    ['%22', '%22'],
    ["('", "')"],
    ['é', '漢'],
    ['a,', ',b'],
    ['X-Key: ', '\r\n'],
  ];

  it.each(ACCEPTED)('masks each spelling that the format accepts: %s', (_, format, spellings) => {
    const mask = redactor([format]);
    fc.assert(
      fc.property(spellings, fc.constantFrom(...AROUND), (value, [before, after]) => {
        const part = format.hashedPart(value);
        if (part === undefined) throw new Error('the spelling is not accepted');
        const masked = mask(`${before}${value}${after}`);
        expect(masked).not.toContain(value.slice(-16));
        expect(masked.endsWith(`…${after}`)).toBe(true);
        expect(masked.startsWith(before)).toBe(true);
      }),
      runs(0.3),
    );
  });

  it('masks a value that has its start in it once more', () => {
    const mask = redactor([formats.prefixedApiKey({ prefix: 'my' })]);

    expect(mask(`key=my_my_${'0'.repeat(16)}&a`)).toBe('key=my_…&a');
    expect(mask(`my_abmy_${'0'.repeat(16)}`)).toBe('my_…');
    expect(mask(`my_my_${'0'.repeat(15)}`)).toBe(`my_my_${'0'.repeat(15)}`);
  });

  it('masks a whole value if the expression has no group', () => {
    const own = redactor([{ name: 'own', hashedPart: () => undefined, inText: 'key-[0-9]{16}' }]);

    expect(own('a key-0123456789012345 b')).toBe('a … b');
  });

  it('refuses an invalid regular expression', () => {
    const broken = { name: 'own', hashedPart: () => undefined, inText: '(key-' };

    expect(() => redactor([broken])).toThrow(
      new TypeError('`inText` must be a regular expression, such as `(acme_)[0-9a-f]{32}`'),
    );
  });
});
