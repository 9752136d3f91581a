import { describe, expect, it } from 'vitest';
import type { PatchInput } from '../../src/inputs/types.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import { codeOf, refusalOf, setUp, YEAR } from '../support.ts';

const KEPT = 'GET:d.example/kept';
const TAKEN = 'GET:d.example/admin';
const NEW = 'GET:d.example/new';

/** A token that holds two scopes, one of which its account has lost since. */
async function shrunk(after: readonly string[] = [KEPT, NEW], scopes = [KEPT, TAKEN]) {
  let catalog = ScopeCatalog.from([KEPT, TAKEN, NEW]);
  const setting = setUp({ catalog: () => catalog });
  const token = await setting.tokens.issue({ account: 'a', scopes, ttlSeconds: 1000 });
  catalog = ScopeCatalog.from(after);
  const at = (seconds: number) => new Date(setting.clock.now().getTime() + seconds * 1000);
  const patch = (change: PatchInput) => setting.tokens.patch('a', token.id, change);
  return { ...setting, token, at, patch };
}

type Shrunk = Awaited<ReturnType<typeof shrunk>>;

describe('a right that an account has lost', () => {
  it.each<[string, (of: Shrunk) => Promise<unknown>, boolean]>([
    ['a later expiry', ({ patch, at }) => patch({ expiresAt: at(1001) }), false],
    ['the same expiry', ({ patch, at }) => patch({ expiresAt: at(1000) }), true],
    ['an earlier expiry', ({ patch, at }) => patch({ expiresAt: at(10) }), true],
    ['another scope', ({ patch }) => patch({ addScopes: [NEW] }), false],
    ['a scope that it holds', ({ patch }) => patch({ addScopes: [KEPT] }), false],
    ['the lost right', ({ patch }) => patch({ addScopes: [TAKEN] }), false],
    ['only the lost right', ({ patch }) => patch({ scopes: [TAKEN] }), false],
    [
      'the lost right by modify',
      ({ tokens, token }) => tokens.modify('a', token.id, { scopes: [KEPT, TAKEN] }),
      false,
    ],
    ['a new name', ({ patch }) => patch({ name: 'x' }), true],
    ['other metadata', ({ patch }) => patch({ metadata: { a: 1 } }), true],
    ['fewer scopes', ({ patch }) => patch({ removeScopes: [KEPT] }), true],
    ['a new value', ({ tokens, token }) => tokens.rotate('a', token.id), true],
    [
      'a later expiry without the right',
      ({ patch, at }) => patch({ removeScopes: [TAKEN], expiresAt: at(YEAR) }),
      true,
    ],
    [
      'another scope without the right',
      ({ patch }) => patch({ removeScopes: [TAKEN], addScopes: [NEW] }),
      true,
    ],
    [
      'other scopes only, and a later expiry',
      ({ patch, at }) => patch({ scopes: [KEPT], expiresAt: at(YEAR) }),
      true,
    ],
  ])('lets a token still get %s: $2', async (_, change, isGood) => {
    const setting = await shrunk();
    const before = await setting.tokens.get('a', setting.token.id);
    const changed = change(setting);

    if (isGood) return expect(await changed).toMatchObject({ id: setting.token.id });
    expect(await codeOf(changed)).toBe('scope_unmatched');
    return expect(await setting.tokens.get('a', setting.token.id)).toEqual(before);
  });

  it('is named in the error, which suggests removeScopes', async () => {
    const { patch, at } = await shrunk();
    const error = await refusalOf(patch({ expiresAt: at(2000) }));

    expect(error.details).toEqual({ scopes: [TAKEN] });
    expect(error.message).toContain(`the token holds ${TAKEN}`);
    expect(error.message).toContain('removeScopes');
  });

  it('is named with one that would be granted in part only', async () => {
    const { patch, at } = await shrunk([`${TAKEN}/users$`]);
    const error = await refusalOf(patch({ expiresAt: at(2000) }));

    expect(error.details).toEqual({ scopes: [TAKEN, KEPT] });
  });

  it('is named with the other lost rights as far as there is room; the rest are counted', async () => {
    const many = Array.from({ length: 4000 }, (_, i) => `GET:d.example/${'x'.repeat(80)}/${i}`);
    let catalog = ScopeCatalog.from([KEPT, ...many]);
    const { tokens, clock } = setUp({ catalog: () => catalog });
    const { id } = await tokens.issue({ account: 'a', scopes: [KEPT, ...many], ttlSeconds: 10 });
    catalog = ScopeCatalog.from([KEPT]);
    const expiresAt = new Date(clock.now().getTime() + 20_000);

    const { message, details } = await refusalOf(tokens.patch('a', id, { expiresAt }));
    const named = details?.['scopes'] as string[];

    expect(message).toContain('and 3995 more');
    expect(named.join('').length).toBeLessThanOrEqual(131_072);
    expect(named.length + Number(details?.['omitted'])).toBe(4000);
    const removeScopes = ['GET:d.example/'.concat('x'.repeat(80))];
    expect(await tokens.patch('a', id, { removeScopes, expiresAt })).toMatchObject({
      scopes: [KEPT],
    });
  });

  it('opens nothing after the original expiry of the token, whatever the account tries', async () => {
    const { tokens, token, clock, patch, at } = await shrunk();
    const opens = async (value: string) => (await tokens.verify(value, { scope: TAKEN })).ok;
    let { value } = token;
    expect(await opens(value)).toBe(true);

    for (let day = 0; day < 20; day++) {
      clock.advance(100);
      const tries = [
        () => patch({ expiresAt: at(YEAR) }),
        () => patch({ addScopes: [NEW] }),
        () => patch({ addScopes: [NEW], expiresAt: at(YEAR) }),
        () => patch({ addScopes: [TAKEN] }),
        () => tokens.modify('a', token.id, { scopes: [KEPT, TAKEN] }),
        () => tokens.issue({ account: 'a', scopes: [TAKEN] }),
      ];
      for (const attempt of tries) await attempt().catch(() => {});
      const rotated = await tokens.rotate('a', token.id).catch(() => undefined);
      value = rotated?.value ?? value;
      expect(await opens(value)).toBe(clock.now().getTime() < token.expiresAt.getTime());
    }
    expect(await opens(value)).toBe(false);
  });

  it.each<[string, readonly string[], string[]]>([
    ['loses all scopes of the token', [NEW], [KEPT, TAKEN]],
    ['narrows an entry', [KEPT, `${TAKEN}/users`], [TAKEN]],
    ['changes the method of an entry', [KEPT, TAKEN.replace('GET', 'POST')], [TAKEN]],
  ])('is detected if the catalog %s', async (_, after, lost) => {
    const { patch, at } = await shrunk(after);
    const error = await refusalOf(patch({ expiresAt: at(2000) }));

    expect(error.code).toBe('scope_unmatched');
    expect(error.details?.['scopes']).toEqual([...lost].sort());
  });

  it('does not count as lost if a wider entry replaces it', async () => {
    const { patch, at } = await shrunk(['GET:d.example/kept', TAKEN], [KEPT, `${TAKEN}/users`]);
    expect(await patch({ expiresAt: at(2000) })).toMatchObject({ version: 2 });
  });

  it('can be every scope of the token, if the catalog becomes empty', async () => {
    const { patch, at } = await shrunk([]);
    const error = await refusalOf(patch({ expiresAt: at(2000) }));
    expect(error.details).toEqual({ scopes: [TAKEN, KEPT].sort() });
  });

  it('can be a wildcard from before there was a catalog', async () => {
    const { store, clock, tokens } = setUp();
    const { id } = await tokens.issue({ account: 'a', scopes: ['*:*/*'], ttlSeconds: 10 });
    const later = setUp({ store, clock, catalog: ScopeCatalog.from([KEPT]) }).tokens;
    const expiresAt = new Date(clock.now().getTime() + 20_000);

    const error = await refusalOf(later.patch('a', id, { expiresAt }));

    expect(error.code).toBe('scope_unmatched');
    expect(error.details).toEqual({ scopes: ['*:*/*'] });
    expect(await later.patch('a', id, { scopes: ['*:*/*'], expiresAt })).toMatchObject({
      scopes: [KEPT],
    });
  });

  it('is unknown while the catalog is down, so a later expiry fails with store_unavailable', async () => {
    let isDown = false;
    const setting = setUp({
      catalog: () => {
        if (isDown) throw new Error('down');
        return ScopeCatalog.from([KEPT]);
      },
    });
    const { id } = await setting.tokens.issue({ account: 'a', scopes: [KEPT], ttlSeconds: 10 });
    isDown = true;
    const expiresAt = new Date(setting.clock.now().getTime() + 20_000);

    expect(await codeOf(setting.tokens.patch('a', id, { expiresAt }))).toBe('store_unavailable');
    expect(await setting.tokens.patch('a', id, { name: 'x' })).toMatchObject({ name: 'x' });
  });

  it('would survive in a service without a catalog (the control)', async () => {
    const { store, clock, token } = await shrunk();
    const without = setUp({ store, clock }).tokens;
    const expiresAt = new Date(clock.now().getTime() + 2_000_000);

    await without.patch('a', token.id, { expiresAt });
    clock.advance(1500);

    expect((await without.verify(token.value, { scope: TAKEN })).ok).toBe(true);
  });
});
