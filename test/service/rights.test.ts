import { describe, expect, it } from 'vitest';
import type { PatchInput } from '../../src/input.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import { codeOf, refusalOf, setUp, YEAR } from '../support.ts';

const KEPT = 'GET:d.example/kept';
const TAKEN = 'GET:d.example/admin';
const NEW = 'GET:d.example/new';

/** A token that holds two scopes, of which the account may have one no longer. */
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

describe('a right that was taken from an account', () => {
  it.each<[string, (of: Shrunk) => Promise<unknown>, boolean]>([
    ['a longer life', ({ patch, at }) => patch({ expiresAt: at(1001) }), false],
    ['the same life', ({ patch, at }) => patch({ expiresAt: at(1000) }), true],
    ['a shorter life', ({ patch, at }) => patch({ expiresAt: at(10) }), true],
    ['more scopes', ({ patch }) => patch({ addScopes: [NEW] }), false],
    ['what it holds once more', ({ patch }) => patch({ addScopes: [KEPT] }), false],
    ['the right itself', ({ patch }) => patch({ addScopes: [TAKEN] }), false],
    ['the right in place of all', ({ patch }) => patch({ scopes: [TAKEN] }), false],
    [
      'the right by modify',
      ({ tokens, token }) => tokens.modify('a', token.id, { scopes: [KEPT, TAKEN] }),
      false,
    ],
    ['a new name', ({ patch }) => patch({ name: 'x' }), true],
    ['other metadata', ({ patch }) => patch({ metadata: { a: 1 } }), true],
    ['fewer scopes', ({ patch }) => patch({ removeScopes: [KEPT] }), true],
    ['a new value', ({ tokens, token }) => tokens.rotate('a', token.id), true],
    [
      'a longer life without it',
      ({ patch, at }) => patch({ removeScopes: [TAKEN], expiresAt: at(YEAR) }),
      true,
    ],
    [
      'other scopes without it',
      ({ patch }) => patch({ removeScopes: [TAKEN], addScopes: [NEW] }),
      true,
    ],
    [
      'other scopes in place of all, and a longer life',
      ({ patch, at }) => patch({ scopes: [KEPT], expiresAt: at(YEAR) }),
      true,
    ],
  ])('stands in the way of %s: %#', async (_, change, isGood) => {
    const setting = await shrunk();
    const before = await setting.tokens.get('a', setting.token.id);
    const changed = change(setting);

    if (isGood) return expect(await changed).toMatchObject({ id: setting.token.id });
    expect(await codeOf(changed)).toBe('scope_unmatched');
    return expect(await setting.tokens.get('a', setting.token.id)).toEqual(before);
  });

  it('is named, with how to go on', async () => {
    const { patch, at } = await shrunk();
    const error = await refusalOf(patch({ expiresAt: at(2000) }));

    expect(error.details).toEqual({ scopes: [TAKEN] });
    expect(error.message).toContain(`the token holds ${TAKEN}`);
    expect(error.message).toContain('removeScopes');
  });

  it('is named with all others, as far as there is room, and not one too few', async () => {
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

  it('opens nothing after the expiry that the token had, whatever its account does', async () => {
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
    ['all', [NEW], [KEPT, TAKEN]],
    ['an entry that became narrower', [KEPT, `${TAKEN}/users`], [TAKEN]],
    ['nothing but one method', [KEPT, TAKEN.replace('GET', 'POST')], [TAKEN]],
  ])('may be %s', async (_, after, lost) => {
    const { patch, at } = await shrunk(after);
    const error = await refusalOf(patch({ expiresAt: at(2000) }));

    expect(error.code).toBe('scope_unmatched');
    expect(error.details?.['scopes']).toEqual([...lost].sort());
  });

  it('is none where a wider entry came in its place', async () => {
    const { patch, at } = await shrunk(['GET:d.example/kept', TAKEN], [KEPT, `${TAKEN}/users`]);
    expect(await patch({ expiresAt: at(2000) })).toMatchObject({ version: 2 });
  });

  it('is everything where the catalog became empty', async () => {
    const { patch, at } = await shrunk([]);
    const error = await refusalOf(patch({ expiresAt: at(2000) }));
    expect(error.details).toEqual({ scopes: [TAKEN, KEPT].sort() });
  });

  it('is a wildcard of the time before there was a catalog', async () => {
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

  it('cannot be told while the catalog cannot be had', async () => {
    let isAway = false;
    const setting = setUp({
      catalog: () => {
        if (isAway) throw new Error('away');
        return ScopeCatalog.from([KEPT]);
      },
    });
    const { id } = await setting.tokens.issue({ account: 'a', scopes: [KEPT], ttlSeconds: 10 });
    isAway = true;
    const expiresAt = new Date(setting.clock.now().getTime() + 20_000);

    expect(await codeOf(setting.tokens.patch('a', id, { expiresAt }))).toBe('store_unavailable');
    expect(await setting.tokens.patch('a', id, { name: 'x' })).toMatchObject({ name: 'x' });
  });

  it('would live on in a service that asks no catalog (the control)', async () => {
    const { store, clock, token } = await shrunk();
    const without = setUp({ store, clock }).tokens;
    const expiresAt = new Date(clock.now().getTime() + 2_000_000);

    await without.patch('a', token.id, { expiresAt });
    clock.advance(1500);

    expect((await without.verify(token.value, { scope: TAKEN })).ok).toBe(true);
  });
});
