import { createHmac } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { isTokenError, type TokenError } from '../../src/errors.ts';
import { sha256 } from '../../src/values/hmac.ts';
import { generateKey, type KeyOptions, KeyRing } from '../../src/values/keys.ts';
import { expectNoSecret, fixedSecret, K1, K2, printsOf, reference } from '../support.ts';

const HEX = {
  tag: '62df7d4572292e8e6f4067950dd0effad3a46aa407d3b2ad1f126960aa7dcf0d',
  reveal: 'f0d6037476f84f9fa2d78b0281de523ce87ec2b79deb72642a4466fc8a9a6045',
  cursor: '4f78c80184f0a4ef8c1edd9a4320db1db5b06f3c25585487a4110b8d0a316a2b',
};
const BOX =
  '000102030405060708090a0b0e08fc619ca16a6e53d57611eba1a2f5e044c5cae798cdca4fbba4dcca584cb65ee54aa505be00f92075d2';
const BOUND = '["1","k1","0123456789ABCDEFGHIJKL","acme"]';
const SECRET = 'MNOPQRSTUVWXYZabcdefghijklm';

const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => i);

function refusal(keys: unknown): TokenError {
  try {
    new KeyRing(keys as KeyOptions[]);
  } catch (error) {
    if (isTokenError(error)) return error;
  }
  throw new Error('was not refused by a TokenError');
}

describe('known answers for the key 00 01 … 1f', () => {
  // Made with another implementation (Python's hmac, hashlib and cryptography).
  it.each([
    ['tag/v1', HEX.tag],
    ['reveal/v1', HEX.reveal],
    ['cursor/v1', HEX.cursor],
  ])('HKDF-SHA256 gives the subkey %s', (info, hex) => {
    expect(reference.subkey(String(K1.secret), info).toString('hex')).toBe(hex);
  });

  it('the verifier key is the tag subkey', () => {
    const [verifier] = new KeyRing([K1]).verifierKeys();

    expect(verifier).toEqual({
      kid: 'k1',
      secret: `tag.${Buffer.from(HEX.tag, 'hex').toString('base64url')}`,
      status: 'verify',
    });
  });

  it.each([
    ['acme_1k10123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm', 1_940_457_469],
    ['acme_live_1k10123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm', 2_071_240_758],
    ['ab_1k10123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm', 2_450_716_255],
  ])('the checksum of %s is %d', (text, checksum) => {
    expect(new KeyRing([K1]).active.checksum(text)).toBe(checksum);
  });

  it('checksums of texts of up to 252 characters, or of a prefix of one, match node:crypto', () => {
    const key = new KeyRing([K1]).active;
    const lengths = [252, 0, 1, 51, 52, 59, 60, 61, 115, 116, 251, 2, 252, 0];
    const long = 'xyz'.repeat(100);

    for (const length of lengths) {
      const text = long.slice(0, length);
      const mac = createHmac('sha256', Buffer.from(HEX.tag, 'hex')).update(`tag\0${text}`).digest();
      expect(key.checksum(text)).toBe(mac.readUInt32BE(0));
      expect(key.checksum(long, length)).toBe(mac.readUInt32BE(0));
    }
  });

  it('the checksums are the same on a runtime without crypto.hash', async () => {
    vi.resetModules();
    vi.doMock('node:crypto', async (load) => ({ ...(await load<object>()), hash: undefined }));
    const elsewhere = {
      ...(await import('../../src/values/keys.ts')),
      ...(await import('../../src/values/hmac.ts')),
    };
    vi.doUnmock('node:crypto');

    expect(elsewhere.sha256).not.toBe(sha256);
    expect(elsewhere.sha256('abc')).toBe(sha256('abc'));
    expect(new elsewhere.KeyRing([K1]).active.checksum('text')).toBe(
      new KeyRing([K1]).active.checksum('text'),
    );
  });

  it('a box sealed elsewhere opens only with the data it is bound to', () => {
    const key = new KeyRing([K1]).active;
    const box = Buffer.from(BOX, 'hex');

    expect(key.open(box, BOUND)).toBe(SECRET);
    expect(key.open(box, BOUND.replace('acme', 'acmf'))).toBeUndefined();
    expect(key.open(box, BOUND.replace('k1', 'k2'))).toBeUndefined();
    expect(key.open(box, BOUND.replace('0123', '0124'))).toBeUndefined();
    expect(key.open(box, BOUND.replace('"1"', '"2"'))).toBeUndefined();
    expect(new KeyRing([K2]).active.open(box, BOUND)).toBeUndefined();
  });

  it('a box does not open if a bit is changed or a byte is cut or added', () => {
    const key = new KeyRing([K1]).active;
    const box = Buffer.from(BOX, 'hex');

    for (let bit = 0; bit < box.length * 8; bit++) {
      const changed = Uint8Array.from(box);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(key.open(changed, BOUND)).toBeUndefined();
    }
    for (let length = 0; length < box.length; length++) {
      expect(key.open(box.subarray(0, length), BOUND)).toBeUndefined();
    }
    expect(key.open(Buffer.concat([box, Buffer.from([0])]), BOUND)).toBeUndefined();
  });

  it('a box of an empty text does not open, one of a single character does', () => {
    const key = new KeyRing([K1]).active;

    expect(key.open(key.seal('', BOUND), BOUND)).toBeUndefined();
    expect(key.open(key.seal('x', BOUND), BOUND)).toBe('x');
  });

  it('a cursor is signed with 128 bits', () => {
    expect(new KeyRing([K1]).active.sign('cursor text')).toBe('3Id4Ku1ushuvrZnChKpN8Q');
  });

  it('a box is sealed with a fresh nonce of 12 bytes each time', () => {
    const key = new KeyRing([K1]).active;
    const nonces = Array.from({ length: 200 }, () =>
      Buffer.from(key.seal(SECRET, BOUND).subarray(0, 12)).toString('hex'),
    );

    expect(new Set(nonces).size).toBe(200);
    expect(key.seal(SECRET, BOUND)).toHaveLength(12 + 27 + 16);
    expect(key.open(key.seal(SECRET, BOUND), BOUND)).toBe(SECRET);
  });
});

describe('the constructor of KeyRing', () => {
  const verifier = new KeyRing([K2]).verifierKeys()[0] as KeyOptions;
  const good = (secret: unknown): unknown[] => [{ kid: 'k1', secret, status: 'active' }];
  const repeated = Uint8Array.from({ length: 32 }, () => 7);
  const nearlyRepeated = Uint8Array.from({ length: 32 }, (_, i) => (i === 31 ? 8 : 7));

  it.each<[string, unknown, unknown, RegExp]>([
    ['a secret of 31 bytes', good(bytes(31)), good(bytes(32)), /^keys\[0\]\.secret .*32/],
    ['a secret of no bytes', good(bytes(0)), good(bytes(64)), /^keys\[0\]\.secret/],
    [
      'a secret text of 31 bytes',
      good(Buffer.from(bytes(31)).toString('base64url')),
      good(Buffer.from(bytes(32)).toString('base64url')),
      /^keys\[0\]\.secret/,
    ],
    ['a secret of one repeated byte', good(repeated), good(nearlyRepeated), /^keys\[0\]\.secret/],
    [
      'a secret text with a wrong first character',
      good(`*${fixedSecret()}`),
      good(fixedSecret()),
      /\.secret/,
    ],
    [
      'a secret text that is not base64url',
      good(`${fixedSecret()}!`),
      good(fixedSecret()),
      /\.secret/,
    ],
    ['an empty secret text', good(''), good(`${fixedSecret()}=`), /\.secret/],
    [
      'an array of numbers as the secret',
      good([...bytes(32)]),
      good(Buffer.from(bytes(32))),
      /\.secret/,
    ],
    ['a missing secret', good(undefined), good(fixedSecret()), /\.secret/],
    ['a number as the secret', good(42), good(fixedSecret()), /\.secret/],
    [
      'a duplicate kid',
      [K1, { ...K2, kid: 'k1', status: 'verify' }],
      [K1, { ...K2, status: 'verify' }],
      /^keys\[1\]\.kid/,
    ],
    [
      'one secret under two kids',
      [K1, { ...K1, kid: 'k2', status: 'verify' }],
      [K1, { ...K2, status: 'verify' }],
      /^keys\[1\]\.secret/,
    ],
    [
      'one secret under two kids, as text and as bytes',
      [K1, { kid: 'k2', secret: bytes(32), status: 'verify' }],
      [K1, { kid: 'k2', secret: bytes(33), status: 'verify' }],
      /^keys\[1\]\.secret/,
    ],
    [
      'one secret under two kids, whole and as a verifier',
      [{ ...K2, kid: 'k1' }, verifier],
      [K1, verifier],
      /^keys\[1\]\.secret/,
    ],
    ['no active key', [{ ...K1, status: 'verify' }], [K1], /exactly one/],
    ['two active keys', [K1, K2], [K1, { ...K2, status: 'verify' }], /exactly one/],
    ['an unknown option', [{ ...K1, alg: 'x' }], [{ ...K1 }], /^keys\[0\] .*unknown/],
    ['an unknown status', [{ ...K1, status: 'Active' }], [K1], /^keys\[0\]\.status/],
    ['no status', [{ ...K1, status: undefined }], [K1], /^keys\[0\]\.status/],
    ['a kid of one character', [{ ...K1, kid: 'k' }], [{ ...K1, kid: 'zZ' }], /^keys\[0\]\.kid/],
    [
      'a kid of three characters',
      [{ ...K1, kid: 'k12' }],
      [{ ...K1, kid: '00' }],
      /^keys\[0\]\.kid/,
    ],
    ['a kid with _', [{ ...K1, kid: 'k_' }], [{ ...K1, kid: 'A9' }], /^keys\[0\]\.kid/],
    ['a kid with a line end', [{ ...K1, kid: 'k1\n' }], [K1], /^keys\[0\]\.kid/],
    ['a kid that is a number', [{ ...K1, kid: 11 }], [{ ...K1, kid: '11' }], /^keys\[0\]\.kid/],
    ['an active verifier', [{ ...verifier, status: 'active' }], [verifier], /^keys\[0\]\.status/],
    [
      'a short verifier',
      [{ ...verifier, secret: `tag.${'A'.repeat(42)}` }],
      [verifier],
      /\.secret/,
    ],
    [
      'a verifier with an extra byte',
      [{ ...verifier, secret: `${verifier.secret}AA` }],
      [verifier],
      /^keys\[0\]\.secret must be whole/,
    ],
    [
      'a key that does not mint, beside a verifier',
      [{ ...K1, status: 'verify' }, verifier],
      [K1, verifier],
      /exactly one/,
    ],
    ['an empty list', [], [K1], /^keys must/],
    ['a key instead of a list', K1, [K1], /^keys must/],
    ['undefined', undefined, [K1], /^keys must/],
    ['null in the list', [null], [K1], /^keys\[0\] must/],
    ['a text in the list', [fixedSecret()], [K1], /^keys\[0\] must/],
  ])('refuses %s, and names the option', (_, bad, neighbor, message) => {
    const error = refusal(bad);

    expect(error.code).toBe('invalid_options');
    expect(error.message).toMatch(message);
    expectNoSecret(error);
    expect(() => new KeyRing(neighbor as KeyOptions[])).not.toThrow();
  });
});

describe('KeyRing', () => {
  it('shows no secret, however it is printed', () => {
    const ring = new KeyRing([K1, { ...K2, status: 'verify' }]);

    expectNoSecret(ring, ...Object.values(HEX));
    expectNoSecret(ring.active, ...Object.values(HEX));
    expectNoSecret({ deep: [ring, ring.active, new Map([[ring, ring.active]])] });
    expect(JSON.stringify({ ring })).toBe('{"ring":"[redacted]"}');
    expect(JSON.stringify([ring.active])).toBe('["[redacted]"]');
    expect(inspect(ring)).toBe('KeyRing [redacted]');
    expect(inspect(ring.active)).toBe('Key [redacted]');
    expect(`${ring} ${String(ring.active)}`).toBe('[object Object] [object Object]');
    expect(Object.keys(ring)).toEqual([]);
    expect(Object.keys(ring.active).sort()).toEqual(['canMint', 'isActive', 'kid']);
  });

  it('copies the bytes it is given', () => {
    const secret = bytes(32);
    const ring = new KeyRing([{ kid: 'k1', secret, status: 'active' }]);
    const before = ring.active.checksum('text');
    secret.fill(9);

    expect(ring.active.checksum('text')).toBe(before);
    expect(ring.active.sign('cursor text')).toBe('3Id4Ku1ushuvrZnChKpN8Q');
  });

  it.each([K1.secret, bytes(32), Buffer.from(bytes(32)), `${K1.secret}=`])(
    'accepts the same key in every form (case %#)',
    (secret) => {
      const ring = new KeyRing([{ kid: 'k1', secret, status: 'active' }]);
      expect(ring.active.sign('cursor text')).toBe('3Id4Ku1ushuvrZnChKpN8Q');
    },
  );

  it.each(['k1', 'K1', '__', '', 'constructor', '__proto__'])(
    'returns a key for "%s" only if that is its kid',
    (kid) => {
      expect(new KeyRing([K1]).get(kid)?.kid).toBe(kid === 'k1' ? 'k1' : undefined);
    },
  );
});

describe('verifierKeys', () => {
  const ring = new KeyRing([K1, { ...K2, status: 'verify' }]);
  const verifiers = ring.verifierKeys();

  it('hold the tag subkeys and no other key', () => {
    expect(verifiers.map(({ kid, status }) => [kid, status])).toEqual([
      ['k1', 'verify'],
      ['k2', 'verify'],
    ]);
    expectNoSecret(verifiers, HEX.reveal, HEX.cursor);
    const shown = printsOf(verifiers);
    for (const hex of [HEX.reveal, HEX.cursor]) {
      expect(shown).not.toContain(Buffer.from(hex, 'hex').toString('base64url'));
    }
  });

  it('can check tags, but not mint, open, seal or sign', () => {
    const verifier = new KeyRing(verifiers);
    const key = verifier.get('k1');

    expect(key?.checksum('text')).toBe(ring.active.checksum('text'));
    expect(key?.canMint).toBe(false);
    expect(key?.open(Buffer.from(BOX, 'hex'), BOUND)).toBeUndefined();
    for (const work of [
      () => key?.seal(SECRET, BOUND),
      () => key?.sign('text'),
      () => verifier.active,
    ]) {
      expect(work).toThrow(expect.objectContaining({ code: 'invalid_options' }));
    }
  });

  it('of verifier keys are those same keys', () => {
    expect(new KeyRing(verifiers).verifierKeys()).toEqual(verifiers);
  });
});

describe('generateKey', () => {
  it('returns an active key of 32 new random bytes', () => {
    const keys = Array.from({ length: 20 }, () => generateKey());

    expect(new Set(keys.map(({ secret }) => secret)).size).toBe(20);
    expect(keys[0]).toEqual({
      kid: 'k1',
      secret: expect.stringMatching(/^[\w-]{43}$/),
      status: 'active',
    });
    expect(generateKey('b7').kid).toBe('b7');
    expect(() => new KeyRing([generateKey()])).not.toThrow();
  });

  it.each(['', 'k', 'k12', 'k_', 'ké'])('refuses the kid "%s"', (kid) => {
    expect(() => generateKey(kid)).toThrow(
      expect.objectContaining({
        code: 'invalid_options',
        message: expect.stringMatching(/^kid must/),
      }),
    );
  });
});
