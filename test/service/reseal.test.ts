import { describe, expect, it } from 'vitest';
import { TokenService } from '../../src/service.ts';
import type { TokenRecord } from '../../src/token/record.ts';
import type { KeyOptions } from '../../src/values/keys.ts';
import { sealingKid } from '../../src/values/value.ts';
import { fixedSecret, K1, K2, OTHER_SCOPE, recordOf, refusalOf, SCOPE, setUp } from '../support.ts';

const OLD: KeyOptions = { ...K1, status: 'verify' };
const K3: KeyOptions = { kid: 'k3', secret: fixedSecret(128), status: 'active' };

/** Tokens issued with the first key, and a service whose active key is the second one. */
async function rotatedKeys(count = 1) {
  const setting = setUp({ reveal: 'always' });
  const { store, clock } = setting;
  const issued = await Promise.all(
    Array.from({ length: count }, () => setting.tokens.issue({ account: 'acme', scopes: [SCOPE] })),
  );
  const withKeys = (keys: readonly KeyOptions[]) =>
    new TokenService({ store, clock, keys, prefix: 'acme', reveal: 'always' });
  return { ...setting, issued, withKeys, tokens: withKeys([OLD, K2]) };
}

const shownValue = async (tokens: TokenService, id: string) =>
  (await tokens.get('acme', id))?.value;

describe('reseal', () => {
  it('seals every secret with the active key, and leaves the values unchanged', async () => {
    const { tokens, store, issued, withKeys } = await rotatedKeys(3);
    const before = await recordOf(store, issued[0]?.id as never);
    expect(await tokens.reseal()).toEqual({ records: 3, resealed: 3, unreadable: 0, missed: 0 });

    for (const { id, value } of issued) {
      const record = await recordOf(store, id);
      expect(sealingKid(record)).toBe('k2');
      expect(await shownValue(tokens, id)).toBe(value);
      expect(await tokens.allows(value, { scope: SCOPE })).toBe(true);
    }
    const after = await recordOf(store, before.id);
    expect({ ...after, box: before.box }).toEqual(before);
    // Only the verifier key is left of the first key.
    const [verifier] = withKeys([K1]).verifierKeys();
    const without = withKeys([verifier as KeyOptions, K2]);
    expect(await shownValue(without, before.id)).toBe(issued[0]?.value);
  });

  it('is needed to show a value without the older key (the control)', async () => {
    const { issued, withKeys } = await rotatedKeys();
    const [verifier] = withKeys([K1]).verifierKeys();

    expect(
      await shownValue(withKeys([verifier as KeyOptions, K2]), issued[0]?.id ?? ''),
    ).toBeUndefined();
  });

  it('skips secrets that are sealed with the active key, and can be repeated for every new key', async () => {
    const { tokens, issued, withKeys, store } = await rotatedKeys(2);
    await tokens.reseal();
    expect(await tokens.reseal()).toMatchObject({ records: 2, resealed: 0 });
    const third = withKeys([OLD, { ...K2, status: 'verify' }, K3]);
    expect(await third.reseal()).toMatchObject({ resealed: 2 });
    expect(sealingKid(await recordOf(store, issued[0]?.id as never))).toBe('k3');
    const first = withKeys([K1, { ...K3, status: 'verify' }]);
    expect(await first.reseal()).toMatchObject({ resealed: 2 });

    expect(await shownValue(withKeys([K1]), issued[1]?.id ?? '')).toBe(issued[1]?.value);
  });

  it('counts secrets that none of its keys can open, and leaves them unchanged', async () => {
    const { issued, withKeys, store } = await rotatedKeys(2);
    const before = await recordOf(store, issued[0]?.id as never);
    const stranger = withKeys([K3]);

    expect(await stranger.reseal()).toMatchObject({ records: 2, resealed: 0, unreadable: 2 });
    expect(await recordOf(store, before.id)).toEqual(before);
  });

  it('skips records without a sealed secret, and revoked ones', async () => {
    const { tokens, store, issued, clock } = await rotatedKeys(2);
    const once = new TokenService({ store, clock, keys: [K1], prefix: 'acme' });
    await once.issue({ account: 'acme', scopes: [SCOPE] });
    await tokens.revoke('acme', issued[0]?.id ?? '');

    expect(await tokens.reseal()).toEqual({ records: 3, resealed: 1, unreadable: 0, missed: 0 });
  });

  it('also seals a value that waits for its first use', async () => {
    const { tokens, store, issued } = await rotatedKeys();
    const record = await recordOf(store, issued[0]?.id as never);
    const { prefix, kid, digest, box } = record;
    const pending = { prefix, kid, digest, box, graceSeconds: 0 };
    await store.replace({ ...record, pending, version: 2 } satisfies TokenRecord);
    expect(await tokens.reseal()).toMatchObject({ resealed: 1 });
    const { pending: sealed } = await recordOf(store, record.id);

    expect(sealed && sealingKid(sealed)).toBe('k2');
    expect(sealed).toMatchObject({ prefix, kid, graceSeconds: 0 });
  });

  it('counts a record once if only its pending value cannot be opened, and leaves it unchanged', async () => {
    const { withKeys, store, issued } = await rotatedKeys();
    const record = await recordOf(store, issued[0]?.id as never);
    const { prefix, digest, box } = record;
    const pending = { prefix, kid: 'k3', digest, box, graceSeconds: 0 };
    const before = { ...record, pending, version: 2 };
    await store.replace(before satisfies TokenRecord, 1);
    const tokens = withKeys([OLD, K2]);

    expect(await tokens.reseal()).toMatchObject({ records: 1, resealed: 0, unreadable: 1 });
    expect(await recordOf(store, record.id)).toEqual(before);
  });

  it('seals only the pending value if the current one is already sealed', async () => {
    const { tokens, store, issued } = await rotatedKeys();
    const old = await recordOf(store, issued[0]?.id as never);
    await tokens.reseal();
    const done = await recordOf(store, old.id);
    const { prefix, kid, digest, box } = old;
    const pending = { prefix, kid, digest, box, graceSeconds: 0 };
    await store.replace({ ...done, pending, version: 2 } satisfies TokenRecord, 1);
    expect(await tokens.reseal()).toMatchObject({ resealed: 1 });
    const after = await recordOf(store, old.id);

    expect(after.box).toEqual(done.box);
    expect(after.pending && sealingKid(after.pending)).toBe('k2');
    expect(await tokens.reseal()).toMatchObject({ resealed: 0 });
  });

  it('skips a record that is removed concurrently', async () => {
    const { tokens, store, clock } = await rotatedKeys();
    store.break('replace', async () => {
      const now = new Date(clock.now().getTime() + 10 * 31_536_000_000);
      await store.inner.purge({ now, minAgeMs: 0, limit: 10 });
      return false;
    });

    expect(await tokens.reseal()).toEqual({ records: 1, resealed: 0, unreadable: 0, missed: 0 });
  });

  it('keeps a concurrent change', async () => {
    const { tokens, store, issued } = await rotatedKeys();
    const { id } = issued[0] as { id: string };
    let isFirst = true;
    store.break('replace', async (next: TokenRecord, version?: number) => {
      if (isFirst) {
        isFirst = false;
        await tokens.patch('acme', id, { addScopes: [OTHER_SCOPE] });
      }
      return store.inner.replace(next, version);
    });
    expect(await tokens.reseal()).toMatchObject({ resealed: 1 });
    const record = await recordOf(store, id as never);

    expect(record).toMatchObject({ scopes: [SCOPE, OTHER_SCOPE], version: 2 });
    expect(sealingKid(record)).toBe('k2');
    expect(await shownValue(tokens, id)).toBe(issued[0]?.value);
  });

  it('keeps the value of a concurrent rotation', async () => {
    const { tokens, store, issued, withKeys } = await rotatedKeys();
    const { id } = issued[0] as { id: string };
    const other = withKeys([K1]);
    let rotated = '';
    store.break('replace', async (next: TokenRecord, version?: number) => {
      if (rotated === '') {
        rotated = 'now';
        rotated = (await other.rotate('acme', id)).value;
      }
      return store.inner.replace(next, version);
    });
    await tokens.reseal();

    expect(await shownValue(tokens, id)).toBe(rotated);
    expect(sealingKid(await recordOf(store, id as never))).toBe('k2');
  });

  it('gives up on a record if every write conflicts, and counts it as missed', async () => {
    const { tokens, store } = await rotatedKeys(2);
    store.break('replace', async () => false);

    expect(await tokens.reseal()).toEqual({ records: 2, resealed: 0, unreadable: 0, missed: 2 });
    store.mend();
    expect(await tokens.reseal()).toMatchObject({ resealed: 2, missed: 0 });
  });

  it('continues after an outage where it stopped', async () => {
    const { tokens, store } = await rotatedKeys(150);
    let writes = 0;
    store.break('replace', async (next: TokenRecord, version?: number) => {
      writes += 1;
      if (writes > 60) throw new Error('down');
      return store.inner.replace(next, version);
    });
    expect((await refusalOf(tokens.reseal())).code).toBe('store_unavailable');
    store.mend();

    expect(await tokens.reseal()).toMatchObject({ records: 150, resealed: 90 });
  });

  it('reports progress after each batch, and ignores errors of the callback', async () => {
    const { tokens } = await rotatedKeys(150);
    const seen: number[] = [];
    await tokens.reseal({
      onProgress: ({ resealed }) => {
        seen.push(resealed);
        throw new Error('ignored');
      },
    });

    expect(seen).toEqual([100, 150]);
  });

  it('needs an active key, and reads nothing without one', async () => {
    const { withKeys, store } = await rotatedKeys();
    const verifier = withKeys(withKeys([K1]).verifierKeys());
    store.takeCalls();

    expect((await refusalOf(verifier.reseal())).code).toBe('invalid_options');
    expect(store.takeCalls()).toEqual([]);
  });

  it('refuses an onProgress that is not a function', async () => {
    const { tokens } = await rotatedKeys();
    const refusal = await refusalOf(tokens.reseal({ onProgress: 42 as never }));

    expect(refusal.message).toContain('onProgress must be a function');
  });
});
