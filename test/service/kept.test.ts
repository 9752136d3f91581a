import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { K1, partsOf, recordOf, SCOPE, setUp } from '../support.ts';

const HASHES = ['md5', 'sha1', 'sha256', 'sha512'];

/** The bytes that no record may hold: a value, its secret, and plain hashes of both. */
function tracesOf(value: string): Buffer[] {
  const { id, secret, tag, prefix } = partsOf(value);
  const body = value.slice(prefix.length + 1);
  const texts = [value, body, secret, id + secret, secret + id, secret + tag, `${id}:${secret}`];
  const hashes = texts.flatMap((text) =>
    HASHES.map((name) => createHash(name).update(text).digest()),
  );
  const keyed = texts.map((text) => createHash('sha256').update(`${K1.secret}${text}`).digest());
  return [...texts.slice(0, 4).map((text) => Buffer.from(text)), ...hashes, ...keyed];
}

/** All bytes of a record, as they are and decoded from hex and from base64. */
function bytesOf(record: object): Buffer {
  const piecesOf = (member: unknown): Buffer[] => {
    if (typeof member === 'string') return [Buffer.from(member)];
    if (member instanceof Uint8Array) return [Buffer.from(member)];
    const inside = typeof member === 'object' ? Object.values(member ?? {}).flatMap(piecesOf) : [];
    return [Buffer.from(JSON.stringify(member) ?? ''), ...inside];
  };
  const parts = Object.values(record).flatMap(piecesOf);
  const decoded = parts.flatMap((part) => [
    Buffer.from(part.toString('latin1'), 'hex'),
    Buffer.from(part.toString('latin1'), 'base64'),
  ]);
  return Buffer.concat([...parts, ...decoded]);
}

describe('the stored record of a token', () => {
  it.each([
    ['once', 'issue'],
    ['always', 'issue'],
    ['once', 'rotate'],
    ['always', 'rotate'],
    ['once', 'rotate on first use'],
    ['always', 'rotate on first use'],
  ] as const)(
    'with reveal: %s after %s holds neither a value nor a plain hash of one',
    async (reveal, verb) => {
      const { tokens, store } = setUp({ reveal });
      const issued = await tokens.issue({ account: 'acme', scopes: [SCOPE], name: 'deploy' });
      const values = [issued.value];
      if (verb === 'rotate') values.push((await tokens.rotate('acme', issued.id)).value);
      if (verb === 'rotate on first use') {
        values.push((await tokens.rotate('acme', issued.id, { activate: 'first-use' })).value);
      }

      const kept = bytesOf(await recordOf(store.inner, issued.id));

      const found = values.flatMap(tracesOf).filter((trace) => kept.includes(trace));
      expect(found).toEqual([]);
    },
  );

  it('would fail this test with a value or a plain hash in it (the control)', async () => {
    const { tokens, store } = setUp();
    const { id, value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const record = await recordOf(store.inner, id);
    const careless = [
      { ...record, metadata: { value } },
      { ...record, digest: createHash('sha256').update(partsOf(value).secret).digest() },
      { ...record, name: createHash('sha256').update(value).digest('hex') },
    ];

    for (const kept of careless) {
      expect(tracesOf(value).some((trace) => bytesOf(kept).includes(trace))).toBe(true);
    }
  });
});
