import { createCipheriv, createHash, createHmac, hkdfSync, scryptSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { fixedAccounts } from '../src/http/index.ts';
import { TokenService } from '../src/service.ts';
import { MemoryTokenStore } from '../src/stores/memory/index.ts';
import { manualClock } from '../src/testing/index.ts';
import type { TokenId, TokenRecord } from '../src/token/record.ts';
import { type KeyOptions, KeyRing } from '../src/values/keys.ts';
import { maskValue, mintValue, readId, readValue, revealValue } from '../src/values/value.ts';
import answers from './vectors/tokens.json' with { type: 'json' };

const { keys, values, boxes, cursors, passwords } = answers;

/** SHA-256 of the answers, so that no answer changes unnoticed. */
const RECORDED = '90e92872aa58690849fff29846a46ca994f64ce3943edce19ef4308462df7917';

/** A second implementation of the specification, based on Node alone, without code of the library. */
const plain = {
  subkey: (secret: string, info: string): Buffer =>
    Buffer.from(
      hkdfSync(
        'sha256',
        Buffer.from(secret, 'base64url'),
        'tokenwright/v1',
        info,
        32,
      ) as ArrayBuffer,
    ),
  mac: (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest(),
  base62(number: number): string {
    const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    const digits = [5, 4, 3, 2, 1, 0].map((power) => Math.floor(number / 62 ** power) % 62);
    return digits.map((digit) => alphabet[digit]).join('');
  },
  box(key: Buffer, nonce: string, text: string, bound: string): Buffer {
    const cipher = createCipheriv('aes-256-gcm', key, Buffer.from(nonce, 'hex'));
    cipher.setAAD(Buffer.from(bound, 'utf8'));
    const sealed = [cipher.update(text, 'ascii'), cipher.final()];
    return Buffer.concat([Buffer.from(nonce, 'hex'), ...sealed, cipher.getAuthTag()]);
  },
};

function optionsOf(index: number): KeyOptions {
  const { kid, secret } = keys[index] as (typeof keys)[number];
  return { kid, secret, status: 'active' };
}

const ringOf = (index: number): KeyRing => new KeyRing([optionsOf(index)]);

function recordWith(fields: Partial<TokenRecord>): TokenRecord {
  const now = new Date(0);
  const lists = { scopes: [], requested: [] };
  const digest = new Uint8Array(32);
  const rest = { prefix: 'acme', kid: 'k1', account: 'acme', version: 1 };
  return {
    id: '' as TokenId,
    createdAt: now,
    expiresAt: now,
    digest,
    ...lists,
    ...rest,
    ...fields,
  };
}

describe('the known answers', () => {
  it('state that they never change, and match their recorded hash', () => {
    const { note, ...all } = answers;

    expect(note).toContain('never change');
    expect(createHash('sha256').update(JSON.stringify(all)).digest('hex')).toBe(RECORDED);
  });
});

describe.each(keys)('the key $kid', ({ secret, tag, reveal, cursor, verifier, kid }) => {
  const index = keys.findIndex((key) => key.kid === kid);

  it('has the subkeys that the specification derives', () => {
    expect(plain.subkey(secret, 'tag/v1').toString('hex')).toBe(tag);
    expect(plain.subkey(secret, 'reveal/v1').toString('hex')).toBe(reveal);
    expect(plain.subkey(secret, 'cursor/v1').toString('hex')).toBe(cursor);
  });

  it('exports its tag subkey as a verifier key, which is accepted as a key', () => {
    expect(verifier).toBe(`tag.${Buffer.from(tag, 'hex').toString('base64url')}`);
    const given = ringOf(index).verifierKeys();

    expect(given).toEqual([{ kid, secret: verifier, status: 'verify' }]);
    expect(new KeyRing(given).verifierKeys()).toEqual(given);
  });

  it('is the same as bytes and as text', () => {
    const bytes = { kid, secret: Buffer.from(secret, 'base64url'), status: 'active' } as const;

    expect(new KeyRing([bytes]).verifierKeys()).toEqual(ringOf(index).verifierKeys());
  });
});

describe.each(values)('the value $masked', (known) => {
  const { key, prefix, id, secret, number, tag, value, digest, masked } = known;
  const { kid, secret: keySecret, verifier } = keys[key] as (typeof keys)[number];
  const untagged = `${prefix}_1${kid}${id}${secret}`;

  it('has the tag of the specification', () => {
    const mac = plain.mac(plain.subkey(keySecret, 'tag/v1'), `tag\0${untagged}`);
    expect([mac.readUInt32BE(0), plain.base62(number)]).toEqual([number, tag]);
    expect(untagged + tag).toBe(value);

    expect(ringOf(key).active.checksum(untagged)).toBe(number);
  });

  it('is read as its id and the digest of the specification, by the key and by its verifier key', () => {
    const text = `tokenwright/v1/verify\0${id}${secret}`;
    expect(createHash('sha256').update(text).digest('hex')).toBe(digest);
    const verifiers = new KeyRing([{ kid, secret: verifier, status: 'verify' }]);

    for (const ring of [ringOf(key), verifiers]) {
      const read = readValue(ring, prefix, value);
      expect(read).toEqual({ id, digest: new Uint8Array(Buffer.from(digest, 'hex')) });
    }
  });

  it('is refused under another key with the same kid', () => {
    const other = optionsOf((key + 1) % keys.length);
    expect(readValue(new KeyRing([{ ...other, kid }]), prefix, value)).toBe('bad_tag');
  });

  it('is masked to its prefix, version, key and six characters of the id', () => {
    expect(readId(id)).toBe(id);
    expect(maskValue({ prefix, kid, id: id as TokenId })).toBe(masked);
    expect(masked).toBe(`${value.slice(0, prefix.length + 10)}…`);
  });
});

describe.each(boxes)('the box of $account', (known) => {
  const { key, prefix, id, account, secret, nonce, bound, box, value } = known;
  const { kid, reveal } = keys[key] as (typeof keys)[number];
  const revealKey = Buffer.from(reveal, 'hex');

  it('matches the one that the specification seals', () => {
    expect(bound).toBe(JSON.stringify(['1', kid, id, account]));
    expect(plain.box(revealKey, nonce, secret, bound).toString('hex')).toBe(box);
  });

  it('opens, and reveals the value to its account only', () => {
    const sealed = Buffer.from(box, 'hex');
    const record = recordWith({ id: id as TokenId, account, prefix, kid, box: sealed });

    expect(ringOf(key).active.open(sealed, bound)).toBe(secret);
    expect(revealValue(ringOf(key), record)).toBe(value);
    expect(revealValue(ringOf(key), { ...record, account: `${account}.` })).toBeUndefined();
  });

  it('has the same form as a box that mintValue seals', () => {
    const made = mintValue(ringOf(key), prefix, id as TokenId, account);
    const sealed = Buffer.from(made.stored.box ?? []);
    const drawn = made.value.slice(-33, -6);

    expect(sealed).toEqual(
      plain.box(revealKey, sealed.subarray(0, 12).toString('hex'), drawn, bound),
    );
  });
});

describe.each(cursors)('the cursor of $account', (known) => {
  const { key, account, scope, match, createdAt, id, signature, cursor } = known;
  const { kid, cursor: cursorKey } = keys[key] as (typeof keys)[number];
  const position = `${kid}.${createdAt}.${id}`;

  it('has the recorded signature', () => {
    const signed = JSON.stringify([position, JSON.stringify([account, scope, match])]);
    const mac = plain.mac(Buffer.from(cursorKey, 'hex'), signed);

    expect(mac.subarray(0, 16).toString('base64url')).toBe(signature);
    expect(Buffer.from(`${position}.${signature}`).toString('base64url')).toBe(cursor);
    expect(ringOf(key).active.sign(signed)).toBe(signature);
  });

  it('is accepted for its account and filter, and refused for another account', async () => {
    const tokens = new TokenService({
      store: new MemoryTokenStore(),
      keys: [optionsOf(key)],
      prefix: 'acme',
      clock: manualClock(),
    });
    const filter = { match: match as 'overlaps', ...(scope !== null && { scope }) };

    expect(await tokens.list({ account, ...filter, cursor })).toEqual({ tokens: [] });
    await expect(tokens.list({ account: 'nobody', ...filter, cursor })).rejects.toMatchObject({
      code: 'invalid_request',
    });
    await tokens.close();
  });
});

describe.each(passwords)('the password hash $kept', ({ password, salt, hash, kept }) => {
  it('is the scrypt hash of the password, and accepts no other password', async () => {
    const saltBytes = Buffer.from(salt, 'hex');
    expect(scryptSync(password, saltBytes, 32, { N: 16_384, r: 8, p: 1 }).toString('hex')).toBe(
      hash,
    );
    const texts = [saltBytes, Buffer.from(hash, 'hex')].map((bytes) => bytes.toString('base64url'));
    expect(`$scrypt$ln=14,r=8,p=1$${texts.join('$')}`).toBe(kept);

    const authenticate = fixedAccounts([{ username: 'ada', passwordHash: kept }]);
    expect(await authenticate({ username: 'ada', password })).toBe('ada');
    expect(await authenticate({ username: 'ada', password: `${password}.` })).toBeNull();
  });
});
