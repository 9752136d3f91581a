import { describe, expect, it } from 'vitest';
import type { TokenEvent } from '../../src/events.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import type { IssuedToken, TokenLimits } from '../../src/token/record.ts';
import {
  allOf,
  codeOf,
  K1,
  NO_ID,
  OTHER_SCOPE,
  RecordingStore,
  recordOf,
  refusalOf,
  SCOPE,
  setUp,
  YEAR,
} from '../support.ts';

const NEED = { scope: SCOPE };
const OTHER_NEED = { scope: OTHER_SCOPE };
const BOTH = [SCOPE, OTHER_SCOPE];
const AT_HOME = { address: '10.0.0.1' };

/** A token with both scopes, and one derived from it with only the first. */
async function family(options: Parameters<typeof setUp>[0] = {}) {
  const setting = setUp(options);
  const { tokens } = setting;
  const parent = await tokens.issue({ account: 'acme', scopes: BOTH, ttlSeconds: 3600 });
  const child = await tokens.derive(parent.value, { scopes: [SCOPE] });
  return { ...setting, parent, child };
}

type Family = Awaited<ReturnType<typeof family>>;

/** Tokens, each derived from the one before. */
async function chainOf(tokens: TokenService, length: number): Promise<IssuedToken[]> {
  const chain = [await tokens.issue({ account: 'acme', scopes: BOTH })];
  while (chain.length < length) {
    const { value } = chain.at(-1) as IssuedToken;
    chain.push(await tokens.derive(value, { scopes: BOTH }));
  }
  return chain;
}

describe('derive', () => {
  it('issues a token of the same account that allows only the scopes asked for', async () => {
    const { tokens, parent, child } = await family();

    expect(child).toMatchObject({
      account: 'acme',
      parent: parent.id,
      scopes: [SCOPE],
      version: 1,
    });
    expect(await tokens.verify(child.value, NEED)).toMatchObject({
      ok: true,
      grantedBy: SCOPE,
      token: { id: child.id, parent: parent.id },
    });
    expect(await tokens.verify(child.value, OTHER_NEED)).toMatchObject({
      reason: 'insufficient_scope',
    });
    expect(parent.parent).toBeUndefined();
  });

  it('stores the ids of the ancestors, root first', async () => {
    const { tokens, store } = setUp();
    const [root, middle, leaf] = (await chainOf(tokens, 3)) as [
      IssuedToken,
      IssuedToken,
      IssuedToken,
    ];

    expect((await recordOf(store, leaf.id)).ancestors).toEqual([root.id, middle.id]);
    expect((await recordOf(store, root.id)).ancestors).toBeUndefined();
    expect(leaf.parent).toBe(middle.id);
  });

  it('accepts a name and metadata', async () => {
    const { tokens, parent } = await family();
    const facts = { name: 'job', metadata: { run: 7 } };

    expect(await tokens.derive(parent.value, { scopes: [SCOPE], ...facts })).toMatchObject(facts);
  });

  it.each([
    ['expiresIn', () => ({ expiresIn: '10m' })],
    ['ttlSeconds', () => ({ ttlSeconds: 600 })],
    ['expiresAt', (now: Date) => ({ expiresAt: new Date(now.getTime() + 600_000) })],
  ])('accepts %s', async (_, lifetime) => {
    const { tokens, clock, parent } = await family();
    const input = { scopes: [SCOPE], ...lifetime(clock.now()) };
    const { createdAt, expiresAt } = await tokens.derive(parent.value, input);

    expect(expiresAt.getTime() - createdAt.getTime()).toBe(600_000);
  });

  it.each([
    ['no lifetime', {}],
    ['a longer lifetime', { ttlSeconds: YEAR }],
    ['a later expiry', { expiresAt: new Date('2100-06-01T00:00:00Z') }],
  ])('makes the token expire with its parent if asked for %s', async (_, asked) => {
    const { tokens, parent } = await family();
    const child = await tokens.derive(parent.value, { scopes: [SCOPE], ...asked });

    expect(child.expiresAt).toEqual(parent.expiresAt);
  });

  it('makes the token expire before its parent if asked to', async () => {
    const { tokens, parent, clock } = await family();
    const child = await tokens.derive(parent.value, { scopes: [SCOPE], ttlSeconds: 60 });
    clock.advance(59.999);
    expect(await tokens.allows(child.value, NEED)).toBe(true);
    clock.advance(0.001);

    expect(await tokens.verify(child.value, NEED)).toMatchObject({ reason: 'expired' });
    expect(await tokens.allows(parent.value, NEED)).toBe(true);
  });

  it('expands wildcards against the scopes of the parent', async () => {
    const { tokens, parent } = await family();

    const all = await tokens.derive(parent.value, { scopes: ['*:*/*'] });
    const narrow = await tokens.derive(parent.value, { scopes: [`${SCOPE}/7`] });

    expect(all).toMatchObject({ scopes: BOTH, requested: ['*:*/*'] });
    expect(narrow.scopes).toEqual([`${SCOPE}/7`]);
  });

  it('narrows the wildcards of a parent that was issued without a catalog', async () => {
    const { tokens } = setUp();
    const parent = await tokens.issue({ account: 'acme', scopes: ['*:shop.example/*'] });

    const child = await tokens.derive(parent.value, { scopes: ['GET:*/*', 'POST:shop.example/a'] });

    expect(child.scopes).toEqual(['GET:shop.example/*', 'POST:shop.example/a']);
  });

  it('names the scopes that the parent does not hold', async () => {
    const { tokens, parent } = await family();
    const scopes = [SCOPE, 'GET:shop.example/ordres', 'GET:b.example/a'];

    const error = await refusalOf(tokens.derive(parent.value, { scopes }));

    expect(error).toMatchObject({ code: 'scope_unmatched' });
    expect(error.message).toMatch(/^the parent token does not hold GET:shop\.example\/ordres/);
    expect(error.details).toMatchObject({ scopes: scopes.slice(1), member: 'scopes' });
  });

  it.each([
    ['an empty list of scopes', { scopes: [] }, 'scopes_required'],
    ['a malformed scope', { scopes: ['get:shop.example/orders'] }, 'invalid_scope'],
    ['a lifetime of zero', { scopes: [SCOPE], ttlSeconds: 0 }, 'invalid_ttl'],
    ['an account', { scopes: [SCOPE], account: 'evil' }, 'invalid_request'],
    ['a parent', { scopes: [SCOPE], parent: NO_ID }, 'invalid_request'],
  ])('refuses %s', async (_, input, code) => {
    const { tokens, parent } = await family();

    expect(await codeOf(tokens.derive(parent.value, input as never))).toBe(code);
  });

  it('allows 8 generations and refuses a ninth', async () => {
    const { tokens } = setUp();
    const chain = await chainOf(tokens, 8);
    const eighth = chain.at(-1) as IssuedToken;

    const error = await refusalOf(tokens.derive(eighth.value, { scopes: [SCOPE] }));

    expect(await tokens.allows(eighth.value, NEED)).toBe(true);
    expect(error).toMatchObject({
      code: 'quota_exceeded',
      details: { quota: 'generations', max: 8 },
    });
  });

  it.each([
    ['malformed', async () => 'acme_nonsense'],
    [
      'unknown',
      async ({ tokens, parent }) => {
        await tokens.rotate('acme', parent.id);
        return parent.value;
      },
    ],
    [
      'revoked',
      async ({ tokens, parent }) => {
        await tokens.revoke('acme', parent.id);
        return parent.value;
      },
    ],
    [
      'suspended',
      async ({ tokens, parent }) => {
        await tokens.patch('acme', parent.id, { suspended: true });
        return parent.value;
      },
    ],
    [
      'expired',
      async ({ clock, parent }) => {
        clock.advance(3600);
        return parent.value;
      },
    ],
    [
      'ancestor_revoked',
      async ({ tokens, parent, child }) => {
        await tokens.revoke('acme', parent.id);
        return child.value;
      },
    ],
  ] as [string, (made: Family) => Promise<string>][])(
    'refuses a parent value (%s), and keeps the reason out of the message',
    async (reason, prepare) => {
      const events: TokenEvent[] = [];
      const made = await family({ onEvent: (event) => events.push(event) });
      const value = await prepare(made);

      const error = await refusalOf(made.tokens.derive(value, { scopes: [SCOPE] }));

      expect(error).toMatchObject({ code: 'invalid_token', details: { reason } });
      expect(error.message).toBe('the value is not, or no longer, valid');
      expect(events).toContainEqual(expect.objectContaining({ type: 'refused', reason }));
    },
  );

  it('counts toward the quota of the root, and not toward that of the account', async () => {
    const { tokens } = setUp({ quotas: { tokensPerAccount: 2, derivedPerRoot: 2 } });
    const root = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const child = await tokens.derive(root.value, { scopes: [SCOPE] });
    await tokens.derive(child.value, { scopes: [SCOPE] });

    const refused = await refusalOf(tokens.derive(child.value, { scopes: [SCOPE] }));
    expect(refused.code).toBe('quota_exceeded');
    expect(refused.details).toEqual({ quota: 'derivedPerRoot', max: 2 });
    const other = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    expect(await tokens.derive(other.value, { scopes: [SCOPE] })).toMatchObject({
      parent: other.id,
    });
    expect(await codeOf(tokens.issue({ account: 'acme', scopes: [SCOPE] }))).toBe('quota_exceeded');
  });

  it('emits an issued event with the id of the parent', async () => {
    const events: TokenEvent[] = [];
    const { parent, child } = await family({ onEvent: (event) => events.push(event) });
    const issued = events.filter(({ type }) => type === 'issued');

    expect(issued).toEqual([
      { type: 'issued', id: parent.id, account: 'acme', at: parent.createdAt },
      { type: 'issued', id: child.id, account: 'acme', parent: parent.id, at: child.createdAt },
    ]);
  });

  it('grants only the scopes and the lifetime that all ancestors of the parent still allow', async () => {
    const { tokens } = setUp();
    const [root, middle] = (await chainOf(tokens, 2)) as [IssuedToken, IssuedToken];
    await tokens.patch('acme', root.id, { removeScopes: [OTHER_SCOPE], expiresIn: 60 });

    const child = await tokens.derive(middle.value, { scopes: ['*:*/*'] });

    expect(child.scopes).toEqual([SCOPE]);
    expect(child.expiresAt.getTime()).toBe(child.createdAt.getTime() + 60_000);
    expect(await codeOf(tokens.derive(middle.value, { scopes: [OTHER_SCOPE] }))).toBe(
      'scope_unmatched',
    );
  });

  it('activates a parent value that waits for its first use', async () => {
    const { tokens, store, parent } = await family();
    const { value } = await tokens.rotate('acme', parent.id, { activate: 'first-use' });
    await tokens.derive(value, { scopes: [SCOPE] });
    await tokens.close();

    expect((await recordOf(store, parent.id)).pending).toBeUndefined();
  });
});

describe('a derived token', () => {
  it.each([
    ['revoked', 'ancestor_revoked', ({ tokens, parent }) => tokens.revoke('acme', parent.id)],
    [
      'suspended',
      'ancestor_suspended',
      ({ tokens, parent }) => tokens.patch('acme', parent.id, { suspended: true }),
    ],
    [
      'expired',
      'ancestor_expired',
      async ({ tokens, parent, clock }) => {
        await tokens.patch('acme', parent.id, { expiresIn: 1 });
        clock.advance(1);
      },
    ],
    [
      'narrowed',
      'ancestor_insufficient',
      ({ tokens, parent }) => tokens.patch('acme', parent.id, { removeScopes: [SCOPE] }),
    ],
    [
      'purged',
      'ancestor_revoked',
      async ({ tokens, parent, clock }) => {
        await tokens.revoke('acme', parent.id);
        clock.advance(1);
        expect(await tokens.purge({ before: clock.now() })).toBe(1);
      },
    ],
  ] as [string, string, (made: Family) => Promise<unknown>][])(
    'is refused immediately when its parent is %s, and so are its own children',
    async (_, reason, change) => {
      for (const cache of [undefined, { maxStaleMs: 60_000 }]) {
        const made = await family({ ...(cache && { cache }) });
        const { tokens, child } = made;
        const grandchild = await tokens.derive(child.value, { scopes: [SCOPE] });
        expect(await tokens.allows(child.value, NEED)).toBe(true);
        expect(await tokens.allows(grandchild.value, NEED)).toBe(true);
        await change(made);

        expect(await tokens.verify(child.value, NEED)).toMatchObject({ ok: false, reason });
        expect(await tokens.verify(grandchild.value, NEED)).toMatchObject({ ok: false, reason });
        expect(await tokens.explain('acme', child.id, NEED)).toMatchObject({
          allowed: false,
          reason,
        });
      }
    },
  );

  it('is accepted again after its parent is resumed and gets the scope back', async () => {
    const { tokens, parent, child } = await family();
    await tokens.patch('acme', parent.id, { suspended: true, removeScopes: [SCOPE] });
    await tokens.patch('acme', parent.id, { suspended: false });
    expect(await tokens.verify(child.value, NEED)).toMatchObject({
      reason: 'ancestor_insufficient',
      needed: SCOPE,
      explanation: {
        allowed: false,
        reason: 'ancestor_insufficient',
        nearest: { scope: OTHER_SCOPE },
      },
    });
    await tokens.patch('acme', parent.id, { addScopes: [SCOPE] });

    expect(await tokens.allows(child.value, NEED)).toBe(true);
  });

  it('gets neither new scopes nor a later expiry when its parent does', async () => {
    const { tokens, parent, child } = await family();
    await tokens.patch('acme', parent.id, {
      addScopes: ['DELETE:shop.example/orders'],
      expiresIn: YEAR,
    });

    const shown = await tokens.get('acme', child.id);

    expect(shown).toMatchObject({ scopes: [SCOPE], expiresAt: child.expiresAt });
  });

  it('is checked in order: own state, ancestors, request, own scopes, scopes of the ancestors', async () => {
    const { tokens } = setUp();
    const [root, middle, leaf] = (await chainOf(tokens, 3)) as [
      IssuedToken,
      IssuedToken,
      IssuedToken,
    ];
    const reasonOf = async (need: Parameters<typeof tokens.verify>[1]) =>
      (await tokens.verify(leaf.value, need)).reason;
    const ambiguous = { method: 'GET', domain: 'shop.example', target: '//orders' };
    const resume = (id: string) => tokens.patch('acme', id, { suspended: false });

    await tokens.patch('acme', leaf.id, { suspended: true });
    await tokens.patch('acme', root.id, { suspended: true });
    expect(await reasonOf(ambiguous)).toBe('suspended');
    await resume(leaf.id);
    expect(await reasonOf(ambiguous)).toBe('ancestor_suspended');
    await resume(root.id);
    expect(await reasonOf(ambiguous)).toBe('ambiguous_request');
    await tokens.patch('acme', middle.id, { removeScopes: [OTHER_SCOPE] });
    expect(await reasonOf({ scope: 'PUT:shop.example/orders' })).toBe('insufficient_scope');
    expect(await reasonOf(OTHER_NEED)).toBe('ancestor_insufficient');
    await tokens.patch('acme', middle.id, { suspended: true });
    await tokens.revoke('acme', root.id);
    expect(await reasonOf(NEED)).toBe('ancestor_revoked');
  });

  it('stays valid when its parent is rotated', async () => {
    const { tokens, parent, child } = await family();
    await tokens.rotate('acme', parent.id);

    expect(await tokens.allows(child.value, NEED)).toBe(true);
  });

  it('can be rotated and revoked without an effect on its parent', async () => {
    const { tokens, parent, child } = await family();
    const { value } = await tokens.rotate('acme', child.id);

    expect(await tokens.allows(child.value, NEED)).toBe(false);
    expect(await tokens.verify(value, NEED)).toMatchObject({
      ok: true,
      token: { parent: parent.id },
    });
    expect(await tokens.revoke('acme', child.id)).toBe(true);
    expect(await tokens.allows(value, NEED)).toBe(false);
    expect(await tokens.allows(parent.value, NEED)).toBe(true);
  });

  it('shows a verifier only the scopes and the expiry that its ancestors allow', async () => {
    const { tokens, parent } = await family();
    const child = await tokens.derive(parent.value, { scopes: BOTH });
    await tokens.patch('acme', parent.id, { removeScopes: [OTHER_SCOPE], expiresIn: 60 });
    const { expiresAt } = (await tokens.get('acme', parent.id)) as IssuedToken;

    const verdict = await tokens.verify(child.value, NEED);
    const introspected = await tokens.introspect(child.value);

    expect(verdict.token).toMatchObject({ scopes: [SCOPE], expiresAt });
    expect(introspected).toMatchObject({ id: child.id, scopes: [SCOPE], expiresAt });
    expect(await tokens.get('acme', child.id)).toMatchObject({ scopes: BOTH });
  });

  it('is introspected as inactive if an ancestor is revoked, is suspended or allows none of its scopes', async () => {
    for (const change of ['revoke', 'suspend', 'narrow'] as const) {
      const { tokens, parent, child } = await family();
      expect(await tokens.introspect(child.value)).toMatchObject({ id: child.id });
      if (change === 'revoke') await tokens.revoke('acme', parent.id);
      else if (change === 'suspend') await tokens.patch('acme', parent.id, { suspended: true });
      else await tokens.patch('acme', parent.id, { removeScopes: [SCOPE] });

      const mayBeLiveAgain = await tokens.introspect(child.value, { includeSuspended: true });
      expect(await tokens.introspect(child.value), change).toBeUndefined();
      expect(mayBeLiveAgain?.id, change).toBe(change === 'revoke' ? undefined : child.id);
    }
  });

  it('counts a use for itself, and for its ancestors as derived under the scope that each holds', async () => {
    const { tokens, parent } = await family({ usage: true });
    const child = await tokens.derive(parent.value, { scopes: [`${SCOPE}/7`] });
    await tokens.verify(child.value, { scope: `${SCOPE}/7` });

    expect(await tokens.usage('acme', child.id)).toMatchObject({ uses: 1 });
    expect(await tokens.usage('acme', parent.id)).toMatchObject({ uses: 0, derived: { uses: 1 } });
    expect((await tokens.usage('acme', child.id))?.derived).toBeUndefined();
  });
});

describe('a change of a derived token', () => {
  it.each([
    ['modify', { scopes: ['*:*/*'] }],
    ['patch', { scopes: ['*:*/*'] }],
    ['patch', { addScopes: ['*:*/*'] }],
  ] as const)(
    'expands wildcards against the scopes of the parent: %s with %o',
    async (verb, change) => {
      const { tokens, parent, child } = await family();
      const modified = await tokens[verb]('acme', child.id, change as never);

      expect(modified).toMatchObject({ scopes: BOTH, parent: parent.id });
    },
  );

  it.each([
    ['modify', { scopes: ['PUT:shop.example/orders'] }, 'scopes'],
    ['patch', { scopes: ['PUT:shop.example/orders'] }, 'scopes'],
    ['patch', { addScopes: ['PUT:shop.example/orders'] }, 'addScopes'],
  ] as const)(
    'is refused for a scope that the parent does not hold, naming the member: %s with %o',
    async (verb, change, member) => {
      const { tokens, child } = await family();
      const error = await refusalOf(tokens[verb]('acme', child.id, change as never));

      expect(error).toMatchObject({ code: 'scope_unmatched', details: { member } });
      expect(error.message).toMatch(/the parent token does not hold PUT:shop\.example\/orders/);
    },
  );

  it.each(['modify', 'patch'] as const)(
    'by %s never moves the expiry beyond that of the parent',
    async (verb) => {
      const { tokens, parent, child } = await family();
      const change = { scopes: [SCOPE], expiresIn: YEAR };

      expect(await tokens[verb]('acme', child.id, change)).toMatchObject({
        expiresAt: parent.expiresAt,
      });
      expect((await tokens.modify('acme', child.id, { scopes: [SCOPE] })).expiresAt).toEqual(
        parent.expiresAt,
      );
    },
  );

  it('stays within the catalog of the account as well', async () => {
    const { ScopeCatalog } = await import('../../src/scope/index.ts');
    let catalog = ScopeCatalog.from(BOTH);
    const { tokens, child } = await family({ catalog: () => catalog });
    catalog = ScopeCatalog.from([SCOPE]);

    expect(await tokens.modify('acme', child.id, { scopes: ['*:*/*'] })).toMatchObject({
      scopes: [SCOPE],
    });
    expect(
      await refusalOf(tokens.modify('acme', child.id, { scopes: [OTHER_SCOPE] })),
    ).toMatchObject({
      code: 'scope_unmatched',
      details: { scopes: [OTHER_SCOPE], member: 'scopes' },
    });
  });

  it('grants the entries of a newer catalog for a wildcard that the parent holds', async () => {
    const { ScopeCatalog } = await import('../../src/scope/index.ts');
    const store = new MemoryTokenStore();
    const { tokens } = setUp({ store });
    const wide = { account: 'acme', scopes: ['*:shop.example/*', 'GET:a.example/a'] };
    const { value } = await tokens.issue(wide);
    const child = await tokens.derive(value, { scopes: wide.scopes });
    const catalog = ScopeCatalog.from([SCOPE, OTHER_SCOPE, 'GET:a.example/a', 'GET:a.example/b']);
    const later = setUp({ store, catalog }).tokens;

    const asked = ['*:shop.example/*', 'GET:a.example/*'];
    expect((await later.modify('acme', child.id, { scopes: asked })).scopes).toEqual([
      'GET:a.example/a',
      ...BOTH,
    ]);
  });

  it('can be tried with dryRun, within the same bounds', async () => {
    const { tokens, child } = await family();
    const change = { addScopes: ['*:*/*'] };

    const tried = await tokens.patch('acme', child.id, change, { dryRun: true });

    expect(tried).toMatchObject({ scopes: BOTH, diff: { added: [OTHER_SCOPE], removed: [] } });
    expect(await tokens.get('acme', child.id)).toMatchObject({ scopes: [SCOPE] });
  });

  it('is refused after an ancestor has ended, unless it only renames or suspends the token', async () => {
    const { tokens, parent, child } = await family();
    await tokens.revoke('acme', parent.id);

    expect(await codeOf(tokens.patch('acme', child.id, { expiresIn: 60 }))).toBe('token_expired');
    expect(await codeOf(tokens.modify('acme', child.id, { scopes: [SCOPE] }))).toBe(
      'token_expired',
    );
    expect(await tokens.patch('acme', child.id, { name: 'old', suspended: true })).toMatchObject({
      state: 'suspended',
    });
  });

  it('can suspend and rename the token while its parent cannot be read', async () => {
    const { tokens, store, child, parent } = await family();
    store.break('find', (ids: readonly string[]) =>
      ids.includes(parent.id) ? Promise.reject(new Error('down')) : store.inner.find(ids as never),
    );

    expect(await tokens.patch('acme', child.id, { suspended: true })).toMatchObject({
      state: 'suspended',
    });
    expect(await tokens.patch('acme', child.id, { name: 'old' })).toMatchObject({ name: 'old' });
  });
});

describe('list({ parent })', () => {
  it('finds the children of a token, but not its grandchildren', async () => {
    const { tokens, parent, child } = await family();
    const second = await tokens.derive(parent.value, { scopes: [OTHER_SCOPE] });
    await tokens.derive(child.value, { scopes: [SCOPE] });

    const { tokens: children } = await tokens.list({ account: 'acme', parent: parent.id });

    expect(children.map(({ id }) => id).sort()).toEqual([child.id, second.id].sort());
    expect(await tokens.list({ account: 'other', parent: parent.id })).toEqual({ tokens: [] });
    expect(await tokens.list({ account: 'acme', parent: NO_ID })).toEqual({ tokens: [] });
  });

  it('pages through the children with a cursor that is valid for this parent only', async () => {
    const { tokens, parent, child } = await family();
    for (let i = 0; i < 4; i += 1) await tokens.derive(parent.value, { scopes: [SCOPE] });
    const all = await allOf(tokens.listAll({ account: 'acme', parent: parent.id, limit: 2 }));
    const { cursor } = await tokens.list({ account: 'acme', parent: parent.id, limit: 2 });

    expect(new Set(all.map(({ id }) => id)).size).toBe(5);
    expect(
      await codeOf(tokens.list({ account: 'acme', parent: child.id, cursor: cursor as string })),
    ).toBe('invalid_request');
    expect(await codeOf(tokens.list({ account: 'acme', cursor: cursor as string }))).toBe(
      'invalid_request',
    );
  });

  it('refuses a parent that is not an id', async () => {
    const { tokens, parent } = await family();

    expect(await codeOf(tokens.list({ account: 'acme', parent: parent.value }))).toBe(
      'invalid_request',
    );
  });
});

describe('the store reads for a derived token', () => {
  it.each([true, false])(
    'are one for the token and one for all its ancestors (local: %s)',
    async (local) => {
      const store = new RecordingStore(new MemoryTokenStore(), { local });
      const tokens = new TokenService({ store, keys: [K1], prefix: 'acme' });
      const chain = await chainOf(tokens, 8);
      const leaf = chain.at(-1) as IssuedToken;
      store.takeCalls();

      expect(await tokens.allows(leaf.value, NEED)).toBe(true);

      const asked = store.calls.map(({ args }) => (args[0] as string[]).length);
      expect(asked).toEqual([1, 7]);
    },
  );

  it('are zero when the token and its ancestors are cached, so that verifySync answers', async () => {
    const { tokens, store, child } = await family({ cache: { maxStaleMs: 60_000 } });
    expect(tokens.verifySync(child.value, NEED)).toBeUndefined();
    await tokens.verify(child.value, NEED);
    store.takeCalls();

    expect(tokens.verifySync(child.value, NEED)).toMatchObject({ ok: true });
    expect(store.takeCalls()).toEqual([]);
  });

  it('are one after a change of a cached ancestor', async () => {
    const { tokens, store, parent, child } = await family({ cache: { maxStaleMs: 60_000 } });
    await tokens.verify(child.value, NEED);
    await tokens.patch('acme', parent.id, { name: 'changed' });
    store.takeCalls();

    expect(tokens.verifySync(child.value, NEED)).toBeUndefined();
    expect(await tokens.allows(child.value, NEED)).toBe(true);
    expect(store.takeCalls()).toEqual(['find']);
  });

  it('are repeated when a cached ancestor is too old, even if the token itself is not', async () => {
    const clock = manualClock();
    const store = new MemoryTokenStore();
    const options = { store, keys: [K1], prefix: 'acme', clock };
    const here = new TokenService(options);
    const there = new TokenService({ ...options, cache: { maxStaleMs: 1000 } });
    const [root, leaf] = (await chainOf(here, 2)) as [IssuedToken, IssuedToken];
    // The ancestor is read first, so it becomes too old before the token does.
    await there.verify(root.value, NEED);
    clock.advance(0.9);
    expect(await there.allows(leaf.value, NEED)).toBe(true);
    await here.revoke('acme', root.id);
    clock.advance(0.1);

    expect(await there.verify(leaf.value, NEED)).toMatchObject({ reason: 'ancestor_revoked' });
  });

  it('are made with fresh: true, whatever is cached', async () => {
    const { tokens, store, child } = await family({ cache: { maxStaleMs: 60_000 } });
    await tokens.verify(child.value, NEED);
    store.takeCalls();
    await tokens.verify(child.value, NEED, { fresh: true });

    expect(store.takeCalls()).toEqual(['find', 'find']);
  });

  it.each([
    ['fails', () => Promise.reject(new Error('down')), 'store_unavailable'],
    ['returns a wrong record', () => Promise.resolve([{ id: NO_ID }]), 'store_corrupt'],
  ])(
    'make verify, introspect and explain fail if the store %s for an ancestor',
    async (_, answer, code) => {
      const { tokens, store, parent, child } = await family();
      store.break('find', (ids: readonly string[]) =>
        ids.includes(parent.id) ? answer() : store.inner.find(ids as never),
      );

      expect(await codeOf(tokens.verify(child.value, NEED))).toBe(code);
      expect(await codeOf(tokens.introspect(child.value))).toBe(code);
      expect(await codeOf(tokens.explain('acme', child.id, NEED))).toBe(code);
    },
  );

  it('treat an ancestor of another account as revoked', async () => {
    const { tokens, store, parent, child } = await family();
    store.break('find', async (ids: never) =>
      (await store.inner.find(ids)).map((record) =>
        record?.id === parent.id ? { ...record, account: 'other' } : record,
      ),
    );

    expect(await tokens.verify(child.value, NEED)).toMatchObject({ reason: 'ancestor_revoked' });
  });
});

describe('the limits of a derived token', () => {
  const counting = () => {
    const clock = manualClock();
    return family({ clock, limits: true });
  };

  it('are within those of each ancestor, also of one above a parent without limits', async () => {
    const { tokens } = await counting();
    const limits = { uses: 10, addresses: ['10.0.0.0/8'] };
    const root = await tokens.issue({ account: 'acme', scopes: [SCOPE], limits });
    const middle = await tokens.derive(root.value, { scopes: [SCOPE] }, AT_HOME);
    const derive = (asked: TokenLimits) =>
      tokens.derive(middle.value, { scopes: [SCOPE], limits: asked }, AT_HOME);
    const within = { uses: 10, addresses: ['10.1.0.0/16'] };
    const leaf = await derive(within);

    expect(leaf.limits).toEqual(within);
    for (const wider of [{ uses: 11 }, { addresses: ['1.1.1.1'] }]) {
      expect(await codeOf(derive(wider))).toBe('invalid_limits');
      expect(await codeOf(tokens.patch('acme', leaf.id, { limits: wider }))).toBe('invalid_limits');
    }
  });

  it('can equal or tighten those of its parent, but not loosen them', async () => {
    const { tokens } = await counting();
    const limits = {
      addresses: ['10.0.0.0/8'],
      uses: 10,
      rate: { uses: 6, seconds: 60 },
    };
    const parent = await tokens.issue({ account: 'acme', scopes: BOTH, limits });
    const derive = (within: TokenLimits) =>
      tokens.derive(parent.value, { scopes: [SCOPE], limits: within }, AT_HOME);
    const memberOf = async (within: TokenLimits) => {
      const { code, details } = await refusalOf(derive(within));
      return [code, details?.['member']];
    };

    expect((await derive(limits)).limits).toEqual(limits);
    expect((await derive({ addresses: ['10.1.0.0/16', '10.0.0.1'], uses: 1 })).limits).toEqual({
      addresses: ['10.1.0.0/16', '10.0.0.1'],
      uses: 1,
    });
    expect((await derive({ rate: { uses: 1, seconds: 10 } })).limits).toBeDefined();
    expect(await memberOf({ uses: 11 })).toEqual(['invalid_limits', 'limits.uses']);
    expect(await memberOf({ rate: { uses: 2, seconds: 10 } })).toEqual([
      'invalid_limits',
      'limits.rate',
    ]);
    expect(await memberOf({ addresses: ['10.0.0.1', '11.0.0.1'] })).toEqual([
      'invalid_limits',
      'limits.addresses',
    ]);
    expect(await memberOf({ addresses: ['8.0.0.0/7'] })).toEqual([
      'invalid_limits',
      'limits.addresses',
    ]);
  });

  it('have the same bound when they are changed, and can be removed', async () => {
    const { tokens, parent, child } = await counting();
    await tokens.patch('acme', parent.id, { limits: { uses: 5 } });
    const change = (limits: TokenLimits | null) => tokens.patch('acme', child.id, { limits });

    expect(await codeOf(change({ uses: 6 }))).toBe('invalid_limits');
    expect((await change({ uses: 5 })).limits).toEqual({ uses: 5 });
    expect((await change(null)).limits).toBeUndefined();
  });

  it('count a use on the token and on each ancestor with limits', async () => {
    const { tokens, parent, child } = await counting();
    await tokens.patch('acme', parent.id, { limits: { uses: 3 } });
    await tokens.patch('acme', child.id, { limits: { uses: 2 } });

    expect(await tokens.allows(child.value, NEED)).toBe(true);
    expect(await tokens.allows(child.value, NEED)).toBe(true);
    expect(await tokens.verify(child.value, NEED)).toMatchObject({ reason: 'limit_exceeded' });
    expect(await tokens.allows(parent.value, NEED)).toBe(true);
    expect(await tokens.verify(parent.value, NEED)).toMatchObject({ reason: 'limit_exceeded' });
  });

  it('are reached when those of the parent are, and refused uses do not count', async () => {
    const { tokens, parent, child } = await counting();
    await tokens.patch('acme', parent.id, { limits: { uses: 1 } });
    await tokens.patch('acme', child.id, { limits: { uses: 1 } });
    await tokens.verify(child.value, OTHER_NEED);
    expect(await tokens.allows(parent.value, NEED)).toBe(true);

    expect(await tokens.verify(child.value, NEED)).toMatchObject({ reason: 'limit_exceeded' });
  });

  it('include the addresses of each ancestor', async () => {
    const { tokens, parent, child } = await counting();
    await tokens.patch('acme', parent.id, { limits: { addresses: ['10.0.0.0/8'] } });
    const from = async (address?: string) =>
      (await tokens.verify(child.value, NEED, { address })).reason;

    expect(await from('10.1.2.3')).toBeUndefined();
    expect(await from('11.1.2.3')).toBe('address_denied');
    expect(await from()).toBe('address_unknown');
  });
});
