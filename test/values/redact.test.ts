import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/token.ts';
import { formats } from '../../src/values/foreign.ts';
import { KeyRing } from '../../src/values/keys.ts';
import { redact, redactor } from '../../src/values/redact.ts';
import { maskValue, mintValue } from '../../src/values/value.ts';
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
      { numRuns: 1000 },
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
    formats.keypal({ prefix: 'sk_' }),
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
    `${ENTROPY}`,
    'unk_short',
    'sk_learn',
  ])('leaves other words unchanged: %s', (text) => {
    expect(mask(text)).toBe(text);
  });

  it('does not mask values of formats that have no prefix', () => {
    const none = redactor([
      formats.betterAuth(),
      formats.keypal(),
      formats.sha256({ pattern: /x/ }),
    ]);

    expect(none(LETTERS)).toBe(LETTERS);
    expect(none(KNOWN)).toBe(redact(KNOWN));
    expect(redactor([])(KNOWN)).toBe(redact(KNOWN));
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
