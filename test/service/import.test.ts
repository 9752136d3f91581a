import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { TokenError } from '../../src/errors.ts';
import type { TokenEvent } from '../../src/events.ts';
import type { ImportInput, RefusedRow } from '../../src/inputs/types.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import { formats } from '../../src/values/foreign.ts';
import {
  allOf,
  codeOf,
  K1,
  OTHER_SCOPE,
  printsOf,
  recordOf,
  refusalOf,
  SCOPE,
  setUp,
} from '../support.ts';

const NEED = { scope: SCOPE };
const EXPIRY = new Date('2100-06-01T00:00:00Z');
const ENTROPY = '0123456789abcdefghijABCDEFGHIJklmnopqrst';
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijkl';

const FOREIGN = [
  formats.sanctum(),
  formats.betterAuth({ prefix: 'old_' }),
  formats.unkey({ prefix: 'unk' }),
  formats.prefixedApiKey({ prefix: 'mycompany' }),
  formats.sha256({ pattern: /key-([0-9a-f]{32})/, name: 'own' }),
];

/** Values, with the hashes that the real systems stored for them. */
const VECTORS: readonly (readonly [format: string, value: string, stored: string])[] = [
  ['sanctum', `12|${ENTROPY}`, '07da98e08cb36de97b721cc4a69f860e0ba17205db2e448052c6460df5b83749'],
  ['sanctum', ENTROPY, '07da98e08cb36de97b721cc4a69f860e0ba17205db2e448052c6460df5b83749'],
  [
    'sanctum',
    `7|${ENTROPY}6d0f5a10`,
    '9abeb30af5bb697ca5fa680a59d62528c26fa22185bf03aea1da7153568c4bc3',
  ],
  ['better-auth', `old_${LETTERS}`, 'uivnWGoNARX6rkdHn7BaTLhOwnYcQJRQHgoRgEcRdZ4'],
  ['unkey', 'unk_3ZHgTRVY5wmFb4LqsWJX7P', 've1GTOWvMhc0ZZ0ZybEJVE+QazeSRVppMpS90/bncns='],
  [
    'prefixed-api-key',
    'mycompany_4bArCCaL_Jrq6csg8VZDYnjeQpMneEsEu',
    '442e185750d6c7db3a31e5241e29bbba6fc83f71ae6bb9fbf26d14fc4ec0c105',
  ],
  ['own', `key-${'5f'.repeat(16)}`, createHash('sha256').update('5f'.repeat(16)).digest('hex')],
];

function importing() {
  return setUp({ foreign: FOREIGN });
}

function rowOf(format: string, digest: string, more: Partial<ImportInput> = {}): ImportInput {
  return { account: 'acme', format, digest, scopes: [SCOPE], expiresAt: EXPIRY, ...more };
}

describe('import', () => {
  it.each(VECTORS)(
    'hides a value of %s in the path of a request that is refused',
    async (_, value) => {
      const { tokens } = importing();
      const own = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
      const request = (segment: string) => ({
        ...{ method: 'GET', domain: 'shop.example' },
        target: `/items/${encodeURIComponent(segment)}`,
      });

      const verdict = await tokens.verify(own.value, request(value));
      const explanation = await tokens.explain('acme', own.id, request(value));
      const other = await tokens.verify(own.value, request('12-and-some-ordinary-words'));

      expect(verdict).toMatchObject({ ok: false, needed: 'GET:shop.example/items/{}$' });
      expect([explanation.needed, explanation]).toMatchObject([
        verdict.needed,
        { smallest: verdict.needed },
      ]);
      expect(other.needed).toBe('GET:shop.example/items/12-and-some-ordinary-words$');
    },
  );

  it('is advised on from the import on, whenever the token was issued', async () => {
    const clock = manualClock();
    const usage = { store: new MemoryTokenStore({ clock }).usage };
    const { tokens } = setUp({ foreign: FOREIGN, usage, clock });
    const [format, , digest] = VECTORS[0] as (typeof VECTORS)[number];
    const createdAt = new Date(clock.now());
    clock.advance(200 * 86_400);
    const expiresAt = new Date(createdAt.getTime() + 400 * 86_400_000);
    const row = rowOf(format, digest, { createdAt, expiresAt });
    const { id } = await tokens.import(row);
    const codes = async () =>
      (await allOf(tokens.review({ account: 'acme' }))).map(({ code }) => code);

    expect(await tokens.advise('acme', id)).toMatchObject({ unused: [], kept: [SCOPE] });
    expect(await codes()).not.toContain('never_used');
    clock.advance(91 * 86_400);
    expect(await tokens.advise('acme', id)).toMatchObject({ unused: [SCOPE], kept: [] });
    expect(await codes()).toContain('never_used');
  });

  it.each(VECTORS)(
    'makes an existing value of format %s verifiable: %s',
    async (format, value, digest) => {
      const { tokens } = importing();
      expect(await tokens.verify(value, NEED)).toMatchObject({ ok: false, reason: 'unknown' });

      const token = await tokens.import(
        rowOf(format, digest, { name: 'ci', metadata: { old: 7 } }),
      );

      expect(token).toMatchObject({ account: 'acme', name: 'ci', metadata: { old: 7 } });
      expect(token.masked).toBe(`${format}:${token.id.slice(0, 6)}…`);
      expect(token.value).toBeUndefined();
      expect(await tokens.verify(value, NEED)).toMatchObject({ ok: true, token: { id: token.id } });
      expect(await tokens.verify(value, { scope: OTHER_SCOPE })).toMatchObject({
        reason: 'insufficient_scope',
      });
    },
  );

  it('derives id and digest from the stored hash as documented', async () => {
    const { tokens, store } = importing();
    const [format, , digest] = VECTORS[0] as (typeof VECTORS)[number];
    const { id } = await tokens.import(rowOf(format, digest));
    const record = await recordOf(store, id);

    // Computed by a program in another language.
    expect(id).toBe('9qtaCvDIEJDqSkCACu01Lo');
    expect(Buffer.from(record.digest).toString('hex')).toBe(
      'ddb2e7581a46ffee628f803b5d6d92796942d1e02c7caab0a6d22f38a6d64b48',
    );
    expect(record.format).toBe('sanctum');
  });

  it('stores neither the value nor the old hash, and no stored hash is accepted as a value', async () => {
    const { tokens, store } = importing();
    for (const [format, value, digest] of VECTORS) {
      const { id } = await tokens.import(rowOf(format, digest));
      const record = await recordOf(store, id);
      const bytes = Buffer.from(digest, /^[0-9a-f]{64}$/.test(digest) ? 'hex' : 'base64');
      const kept = printsOf({ ...record, digest: Buffer.from(record.digest).toString('hex') });

      expect(kept.includes(value)).toBe(false);
      expect(kept.includes(bytes.toString('hex'))).toBe(false);
      // Neither hash is accepted as a value, in any spelling.
      for (const spelling of ['hex', 'base64', 'base64url'] as const) {
        for (const stored of [bytes, Buffer.from(record.digest)]) {
          const text = stored.toString(spelling);
          for (const presented of [text, `1|${text}`, `unk_${text}`, `mycompany_a_${text}`]) {
            expect((await tokens.verify(presented, NEED)).ok).toBe(false);
          }
        }
      }
    }
  });

  it('accepts a digest as bytes, hex, base64 or base64url, and treats them as the same', async () => {
    const { tokens } = importing();
    const bytes = createHash('sha256').update(ENTROPY).digest();
    const ids = new Set<string>();
    for (const digest of [
      new Uint8Array(bytes),
      bytes.toString('hex'),
      bytes.toString('hex').toUpperCase(),
      bytes.toString('base64'),
      bytes.toString('base64url'),
    ]) {
      ids.add((await tokens.import({ ...rowOf('sanctum', ''), digest })).id);
    }

    expect(ids.size).toBe(1);
  });

  it.each([
    ['bcrypt', '$2y$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy'],
    ['argon2', '$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$aGFzaA'],
    ['scrypt', '$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBs'],
    ['PBKDF2', 'pbkdf2_sha256$260000$salt$hash'],
    ['a salted hash', 'f1e2d3c4b5a69788:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c'],
  ])('refuses %s, and says why', async (kind, digest) => {
    const { tokens } = importing();

    const error = await refusalOf(tokens.import(rowOf('sanctum', digest)));

    expect(error).toMatchObject({ code: 'invalid_request', details: { member: 'digest' } });
    expect(error.message).toContain(`looks like ${kind}`);
    expect(error.message).toContain('its owner needs a new token');
    expect(error.message).not.toContain(digest.slice(-10));
  });

  it.each([
    ['a SHA-512', { digest: 'ab'.repeat(64) }, 'invalid_request'],
    ['a digest of another length', { digest: 'ab'.repeat(16) }, 'invalid_request'],
    ['a missing digest', { digest: undefined as never }, 'invalid_request'],
    ['an unknown format', { format: 'keypal' }, 'invalid_request'],
    ['an empty list of scopes', { scopes: [] }, 'scopes_required'],
    ['an expiry in the past', { expiresAt: new Date('2099-01-01') }, 'invalid_expire'],
    [
      'an expiry beyond the longest lifetime',
      { expiresAt: new Date('2199-01-01') },
      'invalid_expire',
    ],
    ['a value', { value: `1|${ENTROPY}` }, 'invalid_request'],
  ])('refuses %s', async (_, more, code) => {
    const { tokens } = importing();
    const [format, , digest] = VECTORS[0] as (typeof VECTORS)[number];

    expect(await codeOf(tokens.import(rowOf(format, digest, more as never)))).toBe(code);
  });

  it('can be repeated: the token stays unchanged, even if it was revoked', async () => {
    const { tokens } = importing();
    const [format, value, digest] = VECTORS[0] as (typeof VECTORS)[number];
    const { id } = await tokens.import(rowOf(format, digest));
    const again = await tokens.import(rowOf(format, digest, { scopes: [OTHER_SCOPE] }));
    await tokens.revoke('acme', id);
    const revoked = await tokens.import(rowOf(format, digest));

    expect(again).toMatchObject({ id, scopes: [SCOPE], version: 1 });
    expect(revoked).toMatchObject({ id, state: 'revoked' });
    expect(await tokens.verify(value, NEED)).toMatchObject({ reason: 'revoked' });
    expect(await codeOf(tokens.import(rowOf(format, digest, { account: 'other' })))).toBe(
      'invalid_request',
    );
  });

  it('brings a suspended token, with its name and metadata', async () => {
    const { tokens } = importing();
    const [format, value, digest] = VECTORS[0] as (typeof VECTORS)[number];
    const facts = { name: 'ci', metadata: { team: 'web' } };
    const token = await tokens.import(rowOf(format, digest, { ...facts, suspended: true }));

    expect(token).toMatchObject({ ...facts, state: 'suspended' });
    expect(await tokens.verify(value, NEED)).toMatchObject({ reason: 'suspended' });
  });

  it('brings no name and no metadata if there are none', async () => {
    const { tokens } = importing();
    const [format, , digest] = VECTORS[0] as (typeof VECTORS)[number];
    const token = await tokens.import(rowOf(format, digest));

    expect(token.state).toBe('active');
    expect(token).not.toHaveProperty('name');
    expect(token).not.toHaveProperty('metadata');
  });

  it.each([
    ['tokens for each account', { tokensPerAccount: 1 }, 'tokensPerAccount'],
    ['scopes for each token', { scopesPerToken: 1 }, 'scopesPerToken'],
  ])('is refused beyond the quota of %s', async (_, quotas, quota) => {
    const { tokens } = setUp({ foreign: FOREIGN, quotas });
    const [first = '', second = ''] = ['a', 'b'].map((text) => text.repeat(64));
    await tokens.import(rowOf('sanctum', first));
    const row = rowOf('sanctum', second, { scopes: [SCOPE, OTHER_SCOPE] });

    expect(await refusalOf(tokens.import(row))).toMatchObject({
      code: 'quota_exceeded',
      details: { quota, max: 1 },
    });
  });

  it('emits issued, with the format', async () => {
    const events: TokenEvent[] = [];
    const { tokens } = setUp({ foreign: FOREIGN, onEvent: (event) => events.push(event) });
    const [format, , digest] = VECTORS[0] as (typeof VECTORS)[number];
    const { id } = await tokens.import(rowOf(format, digest));

    expect(events).toMatchObject([{ type: 'issued', id, account: 'acme', format }]);
  });
});

describe('an imported token', () => {
  const imported = async () => {
    const setting = importing();
    const [format, value, digest] = VECTORS[0] as (typeof VECTORS)[number];
    return { ...setting, value, token: await setting.tokens.import(rowOf(format, digest)) };
  };

  it('can be listed, read by its value, suspended, resumed and revoked', async () => {
    const { tokens, token, value } = await imported();

    expect(await allOf(tokens.listAll({ account: 'acme' }))).toMatchObject([{ id: token.id }]);
    expect(await tokens.get('acme', value)).toMatchObject({ id: token.id });
    await tokens.patch('acme', token.id, { suspended: true });
    expect(await tokens.verify(value, NEED)).toMatchObject({ reason: 'suspended' });
    await tokens.patch('acme', token.id, { suspended: false });
    expect(await tokens.revoke('acme', value)).toBe(true);
    expect(await tokens.verify(value, NEED)).toMatchObject({ reason: 'revoked' });
  });

  it('gets a tokenwright value from rotate, and keeps the old one for the grace period', async () => {
    const { tokens, store, clock, token, value } = await imported();
    const rotated = await tokens.rotate('acme', token.id, { graceSeconds: 60 });

    expect(rotated).toMatchObject({ id: token.id, masked: `acme_1k1${token.id.slice(0, 6)}…` });
    expect((await recordOf(store, token.id)).format).toBeUndefined();
    expect(await tokens.allows(rotated.value, NEED)).toBe(true);
    expect(await tokens.allows(value, NEED)).toBe(true);
    clock.advance(60);
    expect(await tokens.allows(rotated.value, NEED)).toBe(true);
    expect(await tokens.verify(value, NEED)).toMatchObject({ reason: 'unknown' });
  });

  it('keeps its value until the new one is used after a rotation with first-use', async () => {
    const { tokens, store, clock, token, value } = await imported();
    const next = await tokens.rotate('acme', token.id, { activate: 'first-use' });
    expect(await tokens.allows(value, NEED)).toBe(true);
    expect((await recordOf(store, token.id)).format).toBe('sanctum');
    expect(await tokens.allows(next.value, NEED)).toBe(true);
    await tokens.close();

    expect((await recordOf(store, token.id)).format).toBeUndefined();
    const other = setUp({ store, clock, foreign: FOREIGN }).tokens;
    expect(await other.allows(value, NEED)).toBe(false);
    expect(await other.allows(next.value, NEED)).toBe(true);
  });

  it('can be the parent of a derived token', async () => {
    const { tokens, token, value } = await imported();
    const child = await tokens.derive(value, { scopes: [SCOPE] });

    expect(child.parent).toBe(token.id);
    await tokens.revoke('acme', token.id);
    expect(await tokens.verify(child.value, NEED)).toMatchObject({ reason: 'ancestor_revoked' });
  });

  it('is verified synchronously when it is cached', async () => {
    const { tokens } = setUp({ foreign: FOREIGN, cache: { maxStaleMs: 60_000 } });
    const [format, value, digest] = VECTORS[0] as (typeof VECTORS)[number];
    await tokens.import(rowOf(format, digest));
    await tokens.verify(value, NEED);

    expect(tokens.verifySync(value, NEED)).toMatchObject({ ok: true });
  });
});

describe('a value that matches no format', () => {
  it.each([
    ['too short', '1|abc'],
    ['too long', 'a'.repeat(600)],
    ['with a space', `1| ${ENTROPY}`],
    ['with a wrong checksum', `1|${ENTROPY}6d0f5a11`],
    ['with another prefix', 'unx_3ZHgTRVY5wmFb4LqsWJX7P'],
    ['with a character that is not base58', 'unk_3ZHgTRVY5wmFb4LqsWJX70'],
    ['not ASCII', `1|${ENTROPY.slice(1)}é`],
    ['two values in one', `1|${ENTROPY}\n1|${ENTROPY}`],
  ])('is malformed and causes no store call: %s', async (_, value) => {
    const { tokens, store } = importing();

    expect(await tokens.verify(value, NEED)).toMatchObject({ reason: 'malformed' });
    expect(store.takeCalls()).toEqual([]);
  });

  it('is malformed for a service without formats', async () => {
    const { tokens, store } = setUp();

    expect(await tokens.verify(`1|${ENTROPY}`, NEED)).toMatchObject({ reason: 'malformed' });
    expect(store.takeCalls()).toEqual([]);
  });

  it('is not passed to a format if it starts with the prefix of the service', async () => {
    const asked: string[] = [];
    const spy = {
      name: 'spy',
      hashedPart: (value: string) => {
        asked.push(value);
        return undefined;
      },
    };
    const { tokens } = setUp({ foreign: [spy] });
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    await tokens.verify(token.value, NEED);
    await tokens.verify(`${token.value.slice(0, -1)}!`, NEED);
    await tokens.verify(`acme_${ENTROPY}`, NEED);
    expect(asked).toEqual([]);
    await tokens.verify(`other_${ENTROPY}`, NEED);

    expect(asked).toEqual([`other_${ENTROPY}`]);
  });

  it('is malformed if a custom format throws', async () => {
    const broken = {
      name: 'broken',
      hashedPart: () => {
        throw new Error('a secret');
      },
    };
    const { tokens } = setUp({ foreign: [broken] });

    expect(await tokens.verify(`other_${ENTROPY}`, NEED)).toMatchObject({ reason: 'malformed' });
  });
});

describe('the option foreign', () => {
  it.each([
    ['a value that is not a list', 'sanctum'],
    ['an entry that is not a format', [{}]],
    ['an entry with a bad name', [{ name: 'My Format', hashedPart: () => undefined }]],
    ['two formats with the same name', [formats.sanctum(), formats.sanctum()]],
    ['a format with the prefix of the service', [formats.unkey({ prefix: 'acme' })]],
    [
      'a format with a prefix that starts with that of the service',
      [formats.betterAuth({ prefix: 'acme_live_' })],
    ],
  ])('refuses %s', async (_, foreign) => {
    const make = () =>
      new TokenService({
        store: new MemoryTokenStore(),
        keys: [K1],
        prefix: 'acme',
        foreign: foreign as never,
      });

    expect(await codeOf(make)).toBe('invalid_options');
  });

  it('needs formats with a valid prefix, length and pattern', async () => {
    expect(await codeOf(() => formats.unkey({ prefix: '(' }))).toBe('invalid_options');
    expect(await codeOf(() => formats.betterAuth({ length: 1.5 }))).toBe('invalid_options');
    expect(await codeOf(() => formats.sha256({ pattern: 'x' as never }))).toBe('invalid_options');
  });
});

describe('importMany', () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, i) =>
      rowOf('own', createHash('sha256').update(`${i}`).digest('base64url')),
    );

  it('accepts a stream, and reports each refused row with its number and code', async () => {
    const { tokens } = importing();
    const rows = many(250);
    rows[2] = rowOf('own', '$2y$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy');
    rows[240] = { ...(rows[240] as ImportInput), expiresAt: new Date(0) };
    const refused: RefusedRow[] = [];
    const progress: number[] = [];
    async function* stream() {
      yield* rows;
    }

    const report = await tokens.importMany(stream(), {
      onRefused: (row) => refused.push(row),
      onProgress: ({ rows: done }) => progress.push(done),
    });

    expect(report).toEqual({ rows: 250, imported: 248, skipped: 0, refused: 2 });
    expect(refused.map(({ row, code }) => [row, code])).toEqual([
      [3, 'invalid_request'],
      [241, 'invalid_expire'],
    ]);
    expect(progress).toEqual([100, 200, 250]);
    expect(await tokens.importMany(stream())).toMatchObject({ imported: 0, skipped: 248 });
  });

  it('skips a repeated row, and refuses it for another account', async () => {
    const { tokens } = importing();
    const [row] = many(1) as [ImportInput];

    const report = await tokens.importMany([row, row, { ...row, account: 'other' }]);

    expect(report).toEqual({ rows: 3, imported: 1, skipped: 1, refused: 1 });
    expect(await refusalOf(tokens.import({ ...row, account: 'other' }))).toMatchObject({
      code: 'invalid_request',
      details: { member: 'digest' },
    });
  });

  it('does not count a row as skipped if the store calls its id taken and has no such token', async () => {
    const { tokens, store } = importing();
    store.break('insert', () => Promise.reject(new TokenError('id_taken', 'taken')));

    expect(await codeOf(tokens.importMany(many(1)))).toBe('store_corrupt');
  });

  it('writes nothing with dryRun', async () => {
    const { tokens, store } = importing();

    expect(await tokens.importMany(many(3), { dryRun: true })).toMatchObject({ imported: 3 });
    expect(store.takeCalls()).toEqual(['find']);
    expect(await tokens.list({ account: 'acme' })).toEqual({ tokens: [] });
  });

  it('reports with dryRun what it would report without it, also of rows that are far apart', async () => {
    const { tokens } = importing();
    const rows = many(250);
    const [row] = rows as [ImportInput];
    rows.push(row, { ...row, account: 'other' });

    const rehearsed = await tokens.importMany(rows, { dryRun: true });

    expect(rehearsed).toEqual({ rows: 252, imported: 250, skipped: 1, refused: 1 });
    expect(await tokens.importMany(rows)).toEqual(rehearsed);
  });

  it.each([undefined, null, 5, {}])('refuses %j as rows', async (rows) => {
    const { tokens } = importing();

    expect(await refusalOf(tokens.importMany(rows as never))).toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/^rows must be a list or a stream; got /),
    });
  });

  it('refuses a row whose digest cannot be read, and goes on', async () => {
    const { tokens } = importing();
    const [row] = many(1) as [ImportInput];
    class Longer extends Uint8Array {
      override get length() {
        return 32;
      }
    }
    const hidden = new Proxy(
      {},
      {
        getPrototypeOf() {
          throw new Error('canary');
        },
      },
    );
    const digests = [new Longer(3), Object.create(Uint8Array.prototype), hidden];
    const refused: RefusedRow[] = [];

    const report = await tokens.importMany(
      [...digests.map((digest) => ({ ...row, digest })), row],
      { onRefused: (each) => refused.push(each) },
    );

    expect(report).toEqual({ rows: 4, imported: 1, skipped: 0, refused: 3 });
    expect(refused.map(({ code }) => code)).toEqual(Array(3).fill('invalid_request'));
    expect(JSON.stringify(refused)).not.toContain('canary');
  });

  it('counts the tokens of an account a few times, and not for each row', async () => {
    const { tokens, store } = importing();
    expect(await tokens.importMany(many(300))).toMatchObject({ imported: 300 });
    const calls = store.takeCalls();

    expect(calls.filter((method) => method === 'insert')).toHaveLength(300);
    expect(calls.filter((method) => method === 'count').length).toBeLessThanOrEqual(3);
  });

  it('continues after an interruption, and skips the rows already imported', async () => {
    const { tokens, store } = importing();
    let inserts = 0;
    store.break('insert', (record: never) => {
      inserts += 1;
      return inserts > 130 ? Promise.reject(new Error('down')) : store.inner.insert(record);
    });
    expect(await codeOf(tokens.importMany(many(300)))).toBe('store_unavailable');
    store.mend();

    const report = await tokens.importMany(many(300));

    expect(report.imported + report.skipped).toBe(300);
    expect(report.skipped).toBeGreaterThanOrEqual(130);
  });
});
