import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { TokenId, TokenRecord, ValueFault } from '../../src/token/record.ts';
import { KeyRing } from '../../src/values/keys.ts';
import {
  maskValue,
  mintValue,
  newId,
  type PresentedValue,
  proofOf,
  readId,
  readValue,
  revealValue,
  Values,
} from '../../src/values/value.ts';
import { runs } from '../laws.ts';
import { forge, K1, K2, partsOf, reference, spoiled } from '../support.ts';

const RING = new KeyRing([K1]);
const ID = '0123456789ABCDEFGHIJKL' as TokenId;
const SECRET = 'MNOPQRSTUVWXYZabcdefghijklm';
const DIGEST = '9ead24b2a31532aa53aafd33f1f2c7b683c56545266509276aeb8bf9eea201ed';
const KNOWN = 'acme_1k10123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm27Jxd7';

/** What a value is read as; `undefined` for anything else. */
function presentedIn(...args: Parameters<typeof readValue>): PresentedValue | undefined {
  const read = readValue(...args);
  return typeof read === 'string' ? undefined : read;
}

function mint(prefix = 'acme', ring = RING): string {
  return mintValue(ring, prefix, newId(), undefined).value;
}

function recordFor(fields: Partial<TokenRecord> = {}): TokenRecord {
  return {
    id: ID,
    account: 'acme',
    prefix: 'acme',
    kid: 'k1',
    digest: Buffer.from(DIGEST, 'hex'),
    scopes: [],
    requested: [],
    createdAt: new Date(0),
    expiresAt: new Date(1),
    version: 1,
    ...fields,
  };
}

describe('mintValue', () => {
  it.each(['ab', 'acme', 'acme_live', 'a234567890123456', 'a234567890123456_12345678'])(
    'gives a value with the prefix %s the exact form',
    (prefix) => {
      const value = mint(prefix);

      expect(value).toMatch(new RegExp(`^${prefix}_1[0-9A-Za-z]{57}$`));
      expect(value).toHaveLength(prefix.length + 59);
      const { version, kid, id, secret, tag } = partsOf(value);
      expect([version, kid]).toEqual(['1', 'k1']);
      expect([id.length, secret.length, tag.length]).toEqual([22, 27, 6]);
    },
  );

  it('tags a value as the specification says', () => {
    for (let round = 0; round < 200; round++) {
      const value = mint();
      expect(value.slice(-6)).toBe(reference.tag(String(K1.secret), value.slice(0, -6)));
    }
  });

  it('stores the digest of id and secret, but not the secret', () => {
    const { value, stored } = mintValue(RING, 'acme', ID, undefined);
    const { id, secret } = partsOf(value);

    expect(id).toBe(ID);
    expect(Buffer.from(stored.digest)).toEqual(reference.digest(id, secret));
    expect(Object.keys(stored).sort()).toEqual(['digest', 'kid', 'prefix']);
  });

  it('seals the secret in a box for an owner', () => {
    const { value, stored } = mintValue(RING, 'acme', ID, 'acme');

    expect(stored.box).toHaveLength(12 + 27 + 16);
    expect(revealValue(RING, recordFor(stored))).toBe(value);
    expect(Buffer.from(stored.box ?? []).includes(partsOf(value).secret)).toBe(false);
  });

  it('draws secrets evenly from the whole alphabet, and never one twice', () => {
    const secrets = Array.from({ length: 2000 }, () => partsOf(mint()).secret);
    const counts = new Map<string, number>();
    for (const character of secrets.join('')) {
      counts.set(character, (counts.get(character) ?? 0) + 1);
    }

    expect(new Set(secrets).size).toBe(2000);
    expect([...counts.keys()].sort().join('')).toBe(reference.alphabet);
    // 54 000 draws: 871 expected for each of 62, and 8 standard deviations are 236. A draw by
    // `byte % 62` would give the first eight of them 1055.
    const chi = [...counts.values()].reduce((sum, count) => sum + (count - 871) ** 2 / 871, 0);
    expect(chi).toBeLessThan(150);
  });
});

describe('readValue', () => {
  it.each([
    [KNOWN, 'acme'],
    ['acme_live_1k10123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm2GAiL0', 'acme_live'],
    ['ab_1k10123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm2fqxFX', 'ab'],
    [
      'aaaaaaaaaaaaaaaa_bbbbbbbb_1k10123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm02tiWF',
      'aaaaaaaaaaaaaaaa_bbbbbbbb',
    ],
  ])('reads the known answer %#', (value, prefix) => {
    const presented = presentedIn(RING, prefix, value);

    expect(presented?.id).toBe(ID);
    expect(Buffer.from(presented?.digest ?? []).toString('hex')).toBe(DIGEST);
    expect(Object.keys(presented ?? {}).sort()).toEqual(['digest', 'id']);
  });

  it.each([
    ['158', '00485R'],
    ['98808', '4gf551'],
  ])('pads a small tag with zeros to six characters, and keeps a large one (%s)', (number, tag) => {
    const untagged = `acme_1k1${ID}${number.padStart(27, '0')}`;

    expect(reference.tag(String(K1.secret), untagged)).toBe(tag);
    expect(presentedIn(RING, 'acme', untagged + tag)?.id).toBe(ID);
    const unpadded = tag.replace(/^0+/, '');
    expect(presentedIn(RING, 'acme', untagged + unpadded.padEnd(6, '0'))?.id).toBe(
      unpadded.length === 6 ? ID : undefined,
    );
  });

  it('refuses a value if anything in it is changed, cut or added', () => {
    expect(presentedIn(RING, 'acme', KNOWN)?.id).toBe(ID);
    for (const bad of spoiled(KNOWN)) expect(presentedIn(RING, 'acme', bad)).toBeUndefined();
  });

  it.each([
    ['another version', forge(ID, { version: '2' }), forge(ID, { version: '1' })],
    ['version 0', forge(ID, { version: '0' }), forge(ID)],
    ['an unknown key', forge(ID, { key: K2 }), forge(ID, { key: K1 })],
    ['a tag of another key', forge(ID, { key: { ...K2, kid: 'k1' } }), forge(ID, { key: K1 })],
    ['another prefix', forge(ID, { prefix: 'acmf' }), forge(ID, { prefix: 'acme' })],
    ['a longer prefix', forge(ID, { prefix: 'acme_live' }), forge(ID)],
    ['a prefix in upper case', forge(ID, { prefix: 'ACME' }), forge(ID)],
    ['an id with a dash', forge('0123456789ABCDEFGHIJK-'), forge('0123456789ABCDEFGHIJKL')],
    ['an id with é', forge('0123456789ABCDEFGHIJKé'), forge(ID)],
    ['a full-width digit', forge('0123456789ABCDEFGHIJK１'), forge(ID)],
    ['a secret with a NUL', forge(ID, { secret: `${'z'.repeat(26)}\0` }), forge(ID)],
  ])('refuses %s, even with a valid tag', (_, bad, good) => {
    expect(presentedIn(RING, 'acme', bad)).toBeUndefined();
    expect(presentedIn(RING, 'acme', good)?.id).toBe(ID);
  });

  it.each([
    ['_', ID],
    ['-', undefined],
    ['x', undefined],
  ])('reads a value with %s before the body as %s, even with a valid tag', (separator, id) => {
    const untagged = `acme${separator}1k1${ID}${SECRET}`;
    const value = untagged + reference.tag(String(K1.secret), untagged);

    expect(presentedIn(RING, 'acme', value)?.id).toBe(id);
  });

  it('returns undefined for arbitrary JavaScript values, and never throws', () => {
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
    });
    fc.assert(
      fc.property(anything, (value) => {
        expect(presentedIn(RING, 'acme', value)).toBeUndefined();
      }),
      runs(),
    );
  });

  it.each<[string, unknown]>([
    ['an array that holds a value', [KNOWN]],
    ['a String object', Object(KNOWN)],
    ['an object with toString', { toString: () => KNOWN, length: KNOWN.length }],
    ['a symbol', Symbol(KNOWN)],
    ['a function', () => KNOWN],
    ['bytes', Buffer.from(KNOWN)],
    ['ten million characters', 'a'.repeat(10_000_000)],
    [
      'a proxy that throws',
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('looked');
          },
        },
      ),
    ],
  ])('refuses %s', (_, value) => {
    expect(presentedIn(RING, 'acme', value)).toBeUndefined();
    expect(readId(value)).toBeUndefined();
  });

  it('refuses random texts that come close to the exact form', () => {
    const body = fc.string({
      unit: fc.constantFrom(...reference.alphabet, '_', '-', 'é'),
      minLength: 55,
      maxLength: 60,
    });
    fc.assert(
      fc.property(fc.constantFrom('acme', 'acm', 'acmee', 'Acme'), body, (prefix, rest) => {
        expect(presentedIn(RING, 'acme', `${prefix}_1k1${rest}`)).toBeUndefined();
      }),
      runs(0.5),
    );
  });
});

describe('what is not a value', () => {
  const otherKey = forge(ID, { key: { ...K2, kid: 'k1' } });

  it.each<[fault: ValueFault, text: unknown, near: unknown]>([
    ['not_a_string', undefined, KNOWN],
    ['not_a_string', null, KNOWN],
    ['not_a_string', { value: KNOWN }, KNOWN],
    ['empty', '', KNOWN],
    ['begins_with_bearer', `Bearer ${KNOWN}`, KNOWN],
    ['begins_with_bearer', 'bearer x', KNOWN],
    ['is_id', ID, KNOWN],
    ['other_prefix', forge(ID, { prefix: 'acme_live' }), forge(ID)],
    ['other_prefix', forge(ID, { prefix: 'acmf' }), forge(ID)],
    ['unknown_key', forge(ID, { key: K2 }), forge(ID, { key: K1 })],
    ['bad_tag', otherKey, forge(ID, { key: K1 })],
    ['bad_tag', `${KNOWN.slice(0, -1)}8`, KNOWN],
    ['other_form', `${KNOWN}\n`, KNOWN],
    ['other_form', KNOWN.slice(0, -1), KNOWN],
    ['other_prefix', KNOWN.slice(1), KNOWN],
    ['other_form', `"${KNOWN}"`, KNOWN],
    ['other_form', 'Bearerx', KNOWN],
    ['other_form', `${ID}x`, KNOWN],
    ['other_form', forge(ID, { version: '2' }), forge(ID)],
    ['other_form', forge(ID, { prefix: 'ACME' }), forge(ID)],
    ['other_form', 'a'.repeat(10_000_000), KNOWN],
  ])('is %s (case %#)', (fault, text, near) => {
    const reader = new Values(RING, 'acme', { reveal: 'once' });

    for (const read of [reader.read(text), reader.read(text), readValue(RING, 'acme', text)]) {
      expect(read).toBe(fault);
    }
    expect(reader.idIn(text)).toBeUndefined();
    expect(reader.idIn(near)).toBe(ID);
  });
});

describe('key rotation', () => {
  const both = new KeyRing([K2, { ...K1, status: 'verify' }]);
  const dropped = new KeyRing([K2]);

  it('reads values of each key in the ring, and mints with the active key', () => {
    expect(presentedIn(both, 'acme', KNOWN)?.id).toBe(ID);
    expect(partsOf(mint('acme', both)).kid).toBe('k2');
    expect(presentedIn(both, 'acme', mint('acme', both))).toBeDefined();
  });

  it('refuses values of a key that was removed', () => {
    expect(presentedIn(dropped, 'acme', KNOWN)).toBeUndefined();
    expect(presentedIn(dropped, 'acme', mint('acme', both))).toBeDefined();
  });

  it('opens boxes of each key in the ring', () => {
    const { value, stored } = mintValue(RING, 'acme', ID, 'acme');

    expect(revealValue(both, recordFor(stored))).toBe(value);
    expect(revealValue(dropped, recordFor(stored))).toBeUndefined();
    expect(revealValue(new KeyRing(both.verifierKeys()), recordFor(stored))).toBeUndefined();
  });
});

describe('revealValue', () => {
  const { value, stored } = mintValue(RING, 'acme', ID, 'acme');

  it.each<[string, Partial<TokenRecord>]>([
    ['another account', { account: 'acmf' }],
    ['another id', { id: '0123456789ABCDEFGHIJKM' as TokenId }],
    ['another key', { kid: 'k2' }],
    ['no box', { box: undefined }],
    ['an empty box', { box: new Uint8Array() }],
    ['a box that is too short', { box: new Uint8Array(28) }],
    ['the box of another token', { box: mintValue(RING, 'acme', newId(), 'acme').stored.box }],
  ])('does not open the box for %s', (_, fields) => {
    expect(revealValue(RING, recordFor({ ...stored, ...fields }))).toBeUndefined();
    expect(revealValue(RING, recordFor(stored))).toBe(value);
  });

  it('keeps accounts apart that could join to the same text', () => {
    const odd = 'a","b';
    const sealed = mintValue(RING, 'acme', ID, odd);

    expect(revealValue(RING, recordFor({ ...sealed.stored, account: odd }))).toBe(sealed.value);
    expect(revealValue(RING, recordFor({ ...sealed.stored, account: 'a' }))).toBeUndefined();
  });
});

describe('proofOf', () => {
  const presented = { id: ID, digest: Buffer.from(DIGEST, 'hex') };
  const other = Buffer.from(DIGEST, 'hex');
  other[31] = (other[31] ?? 0) ^ 1;

  it.each([
    ['current', presented.digest, undefined],
    ['current', presented.digest, other],
    ['current', presented.digest, presented.digest],
    ['previous', other, presented.digest],
    [undefined, other, undefined],
    [undefined, other, other],
  ])('is %s by the digests of the record (case %#)', (expected, digest, previousDigest) => {
    expect(proofOf(presented, { ...recordFor({ digest }), previousDigest })).toBe(expected);
  });

  it('recognizes the digest of a value that readValue read', () => {
    const read = presentedIn(RING, 'acme', KNOWN) as PresentedValue;

    expect(proofOf(read, recordFor({ digest: presented.digest }))).toBe('current');
    expect(proofOf(read, recordFor({ digest: other }))).toBeUndefined();
  });
});

describe('ids', () => {
  it('are 22 characters of the alphabet, and unique', () => {
    const ids = Array.from({ length: 1000 }, newId);

    expect(new Set(ids).size).toBe(1000);
    for (const id of ids) expect(id).toMatch(/^[0-9A-Za-z]{22}$/);
  });

  it.each<[string, boolean]>([
    ['0123456789ABCDEFGHIJKL', true],
    ['0123456789ABCDEFGHIJK', false],
    ['0123456789ABCDEFGHIJKLM', false],
    ['0123456789ABCDEFGHIJK_', false],
    ['0123456789ABCDEFGHIJK\n', false],
    ...[...'/:@[`{~\u0080é\u0130'].map((other): [string, boolean] => [
      `0123456789ABCDEFGHIJK${other}`,
      false,
    ]),
    ['', false],
  ])('are recognized by their form: %j: %s', (text, isId) => {
    expect(readId(text)).toBe(isId ? text : undefined);
  });
});

describe('random bytes', () => {
  it('are used once each, and wiped from the pool they came from', async () => {
    let fills = 0;
    let pool: Uint8Array = new Uint8Array();
    const randomFillSync = (bytes: Uint8Array) => {
      fills += 1;
      pool = bytes.fill(7);
    };
    vi.resetModules();
    vi.doMock('node:crypto', async (load) => ({ ...(await load<object>()), randomFillSync }));
    const elsewhere = await import('../../src/values/value.ts');
    vi.doUnmock('node:crypto');

    elsewhere.newId();
    const step = pool.indexOf(7);
    expect(step).toBeGreaterThan(0);
    for (let taken = 2 * step; taken <= pool.length; taken += step) {
      elsewhere.newId();
      expect(pool.findIndex((byte) => byte !== 0)).toBe(taken === pool.length ? -1 : taken);
      expect(pool.lastIndexOf(0)).toBe(taken - 1);
    }
    expect(fills).toBe(1);

    elsewhere.newId();
    expect([fills, pool.indexOf(7), pool.lastIndexOf(0)]).toEqual([2, step, step - 1]);
  });
});

describe('Values', () => {
  const minted: string[] = [];
  const others = (count = 12_000): string[] => {
    while (minted.length < count) minted.push(mint());
    return minted.slice(0, count);
  };

  it('reads what readValue reads, on the first call and later', () => {
    const reader = new Values(RING, 'acme', { reveal: 'once' });
    const foreign = [mint('other'), mint('acme', new KeyRing([{ ...K1, secret: K2.secret }]))];
    const texts = [KNOWN, ...spoiled(KNOWN), ...foreign, '', ID, 7, undefined, [KNOWN]];
    const odd = [KNOWN.replace('0', '\ud800'), KNOWN.replace('0', 'é'), KNOWN.replace('k', 'K')];

    for (const text of [...texts, ...odd, ...texts, ...odd]) {
      expect(reader.read(text)).toEqual(readValue(RING, 'acme', text));
    }
    expect(reader.idIn(KNOWN)).toBe(ID);
  });

  it('reads more values than its cache holds', () => {
    const reader = new Values(RING, 'acme', { reveal: 'once' });

    const isWrong = (value: string): boolean =>
      reader.idIn(value) !== partsOf(value).id ||
      reader.idIn(`${value.slice(0, -1)}!`) !== undefined;

    const values = others();
    expect([...values, ...values.slice(0, 100), ...values.slice(-100)].filter(isWrong)).toEqual([]);
  });

  it.each([
    [0, true],
    [1, true],
    [9999, true],
    [10_010, false],
    [12_000, false],
  ])('still has the first value cached after %i others: %s', (count, isCached) => {
    const reader = new Values(RING, 'acme', { reveal: 'once' });
    const first = reader.read(KNOWN);
    for (const value of others(count)) reader.read(value);

    const again = reader.read(KNOWN);
    expect(again).toEqual(first);
    expect(again === first).toBe(isCached);
  });

  it('keeps a value cached that is in use', () => {
    const reader = new Values(RING, 'acme', { reveal: 'once' });
    const first = reader.read(KNOWN);

    for (const [index, value] of others().entries()) {
      reader.read(value);
      if (index % 4000 === 0) expect(reader.read(KNOWN)).toBe(first);
    }
    expect(reader.read(KNOWN)).toBe(first);
  });

  it('does not evict a value for refused ones', () => {
    const reader = new Values(RING, 'acme', { reveal: 'once' });
    const first = reader.read(KNOWN);
    for (const value of others()) reader.read(`${value.slice(0, -1)}!`);

    expect(reader.read(KNOWN)).toBe(first);
  });
});

describe('maskValue', () => {
  it('shows prefix, version, key and six characters of the id', () => {
    const masked = maskValue({ prefix: 'acme', kid: 'k1', id: ID });

    expect(masked).toBe('acme_1k1012345…');
    expect(KNOWN.startsWith(masked.slice(0, -1))).toBe(true);
    expect(masked).not.toContain(SECRET[0]);
  });
});
