import { describe, expect, it } from 'vitest';
import { isTokenError } from '../../src/errors.ts';
import type { TokenEvent } from '../../src/events.ts';
import type { IssuedToken } from '../../src/token/record.ts';
import { allOf, codeOf, OTHER_SCOPE, SCOPE, setUp } from '../support.ts';

const NEED = { scope: SCOPE };
const ASKED = { scopes: [SCOPE] };

/** A root, two children and a grandchild, and another root with a child. */
async function families(options: Parameters<typeof setUp>[0] = {}) {
  const setting = setUp(options);
  const { tokens } = setting;
  const root = await tokens.issue({ account: 'acme', scopes: [SCOPE, OTHER_SCOPE] });
  const child = await tokens.derive(root.value, ASKED);
  const sibling = await tokens.derive(root.value, ASKED);
  const grandchild = await tokens.derive(child.value, ASKED);
  const stranger = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
  const strangers = await tokens.derive(stranger.value, ASKED);
  return { ...setting, root, child, sibling, grandchild, stranger, strangers };
}

async function areAccepted(
  { tokens }: Pick<Awaited<ReturnType<typeof families>>, 'tokens'>,
  ...issued: readonly IssuedToken[]
): Promise<boolean[]> {
  return Promise.all(issued.map(({ value }) => tokens.allows(value, NEED)));
}

describe('rotate', () => {
  it('leaves descendants alone, and says how many are live', async () => {
    const setting = await families();
    const { tokens, root, child, sibling, grandchild } = setting;

    expect((await tokens.rotate('acme', root.id)).descendants).toBe(3);
    expect(await areAccepted(setting, child, sibling, grandchild)).toEqual([true, true, true]);
    expect((await tokens.rotate('acme', child.id)).descendants).toBe(1);
    expect((await tokens.rotate('acme', grandchild.id)).descendants).toBe(0);
  });

  it('counts no descendant whose ancestor has ended', async () => {
    const { tokens, root, child } = await families();
    await tokens.revoke('acme', child.id);

    expect((await tokens.rotate('acme', root.id)).descendants).toBe(1);
  });

  it('counts a suspended descendant, which may be resumed', async () => {
    const { tokens, root, child } = await families();
    await tokens.patch('acme', child.id, { suspended: true });

    expect((await tokens.rotate('acme', root.id)).descendants).toBe(3);
  });

  it('with endDerived revokes all descendants, and those of no other token', async () => {
    const setting = await families();
    const { tokens, root, child, sibling, grandchild, stranger, strangers } = setting;

    const rotated = await tokens.rotate('acme', root.id, { endDerived: true });

    expect(rotated.descendants).toBe(0);
    expect(await areAccepted(setting, rotated, root)).toEqual([true, false]);
    for (const { value } of [child, sibling, grandchild]) {
      expect((await tokens.verify(value, NEED)).reason).toBe('revoked');
    }
    expect(await areAccepted(setting, stranger, strangers)).toEqual([true, true]);
  });

  it('with endDerived reaches only what is below the token', async () => {
    const setting = await families();
    const { tokens, root, child, sibling, grandchild } = setting;

    await tokens.rotate('acme', child.id, { endDerived: true });

    expect(await areAccepted(setting, root, sibling, grandchild)).toEqual([true, true, false]);
  });

  it('with endDerived also ends a suspended descendant', async () => {
    const { tokens, root, child } = await families();
    await tokens.patch('acme', child.id, { suspended: true });

    await tokens.rotate('acme', root.id, { endDerived: true });

    expect((await tokens.get('acme', child.id, { state: 'revoked' }))?.id).toBe(child.id);
  });

  it('with endDerived emits an event for each token that it ends', async () => {
    const events: TokenEvent[] = [];
    const { tokens, root, child, sibling, grandchild } = await families({
      onEvent: (event) => events.push(event),
    });

    await tokens.rotate('acme', root.id, { endDerived: true });

    const revoked = events.filter(({ type }) => type === 'revoked');
    expect(revoked.map((event) => 'id' in event && event.id).sort()).toEqual(
      [child.id, sibling.id, grandchild.id].sort(),
    );
  });

  it('with endDerived can be called again after a failure that left descendants', async () => {
    const setting = await families();
    const { tokens, store, root, child, sibling } = setting;
    store.break('revoke', async () => Promise.reject(new Error('down')));
    expect(await codeOf(tokens.rotate('acme', root.id, { endDerived: true }))).toBe(
      'store_unavailable',
    );
    store.mend();
    expect(await areAccepted(setting, root, child)).toEqual([false, true]);

    await tokens.rotate('acme', root.id, { endDerived: true });

    expect(await areAccepted(setting, child, sibling)).toEqual([false, false]);
  });

  it.each([
    { endDerived: true, graceSeconds: 60 },
    { endDerived: true, activate: 'first-use' },
    { endDerived: true, cancel: true },
  ] as const)('refuses %o, and changes nothing', async (options) => {
    const setting = await families();
    const { tokens, root, child } = setting;

    expect(await codeOf(tokens.rotate('acme', root.id, options as never))).toBe('invalid_request');
    expect(await areAccepted(setting, root, child)).toEqual([true, true]);
  });

  it('leaves nothing of a derivation that a rotation overtakes', async () => {
    const setting = await families();
    const { tokens, store, root } = setting;
    const { inner } = store;
    // The value is rotated away after its token was read and before the new one is stored.
    store.break('insert', async (record: never) => {
      store.mend();
      await tokens.rotate('acme', root.id, { endDerived: true });
      return inner.insert(record);
    });

    expect(await codeOf(tokens.derive(root.value, ASKED))).toBe('invalid_token');
    const active = await allOf(tokens.listAll({ account: 'acme' }));
    expect(active.filter(({ parent }) => parent === root.id)).toEqual([]);
  });
});

describe('revoke', () => {
  it('with descendants ends a subtree, and nothing beside it', async () => {
    const setting = await families();
    const { tokens, root, child, sibling, grandchild } = setting;

    expect(await tokens.revoke('acme', child.id, { descendants: true })).toBe(true);

    expect((await tokens.verify(grandchild.value, NEED)).reason).toBe('revoked');
    expect(await areAccepted(setting, root, sibling)).toEqual([true, true]);
  });

  it('without descendants leaves their records, which are refused', async () => {
    const { tokens, child, grandchild } = await families();

    await tokens.revoke('acme', child.id);

    expect((await tokens.verify(grandchild.value, NEED)).reason).toBe('ancestor_revoked');
  });

  it('with descendants ends those of a token that was revoked before', async () => {
    const { tokens, child, grandchild } = await families();
    await tokens.revoke('acme', child.id);

    expect(await tokens.revoke('acme', child.id, { descendants: true })).toBe(false);

    expect((await tokens.verify(grandchild.value, NEED)).reason).toBe('revoked');
  });

  it('with descendants does nothing for another account', async () => {
    const setting = await families();
    const { tokens, root, child } = setting;

    expect(await tokens.revoke('evil', root.id, { descendants: true })).toBe(false);
    expect(await areAccepted(setting, root, child)).toEqual([true, true]);
  });
});

describe('the quota of derived tokens', () => {
  const quotas = { tokensPerAccount: 2, derivedPerRoot: 3 };

  it('is one for each root, and takes no place from the account', async () => {
    const { tokens } = setUp({ quotas });
    const root = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    for (let i = 0; i < 3; i++) await tokens.derive(root.value, ASKED);

    expect(await quotaOf(tokens.derive(root.value, ASKED))).toBe('derivedPerRoot');
    const other = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    expect((await tokens.derive(other.value, ASKED)).parent).toBe(other.id);
    expect(await quotaOf(tokens.issue({ account: 'acme', scopes: [SCOPE] }))).toBe(
      'tokensPerAccount',
    );
  });

  it('counts grandchildren for the root', async () => {
    const { tokens } = setUp({ quotas });
    const root = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const child = await tokens.derive(root.value, ASKED);
    await tokens.derive(child.value, ASKED);
    await tokens.derive(child.value, ASKED);

    expect(await quotaOf(tokens.derive(child.value, ASKED))).toBe('derivedPerRoot');
  });

  it('gives back the places of those whose ancestor has ended', async () => {
    const { tokens } = setUp({ quotas });
    const root = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const child = await tokens.derive(root.value, ASKED);
    const dead = await tokens.derive(child.value, ASKED);
    await tokens.derive(child.value, ASKED);
    await tokens.revoke('acme', child.id);
    for (let i = 0; i < 3; i++) await tokens.derive(root.value, ASKED);

    expect(await quotaOf(tokens.derive(root.value, ASKED))).toBe('derivedPerRoot');
    expect((await tokens.verify(dead.value, NEED)).reason).toBe('revoked');
  });

  async function quotaOf(call: Promise<unknown>): Promise<unknown> {
    const error = await call.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    return isTokenError(error) && error.code === 'quota_exceeded' && error.details?.['quota'];
  }
});

describe('a list', () => {
  it('shows a token whose ancestor has ended as such, and no other', async () => {
    const { tokens, root, child, sibling, grandchild } = await families();
    await tokens.revoke('acme', child.id);

    const states = new Map(
      (await tokens.list({ account: 'acme' })).tokens.map(({ id, state }) => [id, state]),
    );
    expect(states.get(grandchild.id)).toBe('ancestor_ended');
    expect(states.get(sibling.id)).toBe('active');
    expect(states.get(root.id)).toBe('active');
    expect((await tokens.get('acme', grandchild.id))?.state).toBe('ancestor_ended');
  });

  it('shows a token whose ancestor is suspended by its own state', async () => {
    const { tokens, child, grandchild } = await families();
    await tokens.patch('acme', child.id, { suspended: true });

    expect((await tokens.get('acme', grandchild.id))?.state).toBe('active');
  });
});

describe('derive', () => {
  it.each([
    ['from its address', '10.9.9.9', undefined],
    ['from another address', '127.0.0.1', 'address_denied'],
    ['without an address', undefined, 'address_unknown'],
  ])('of a token that is limited to an address, %s', async (_, address, reason) => {
    const { tokens } = setUp();
    const limits = { addresses: ['10.9.9.9'] };
    const { value } = await tokens.issue({ account: 'acme', scopes: [SCOPE], limits });

    expect(await reasonOf(tokens.derive(value, ASKED, { address }))).toBe(reason);
  });

  it('spends one use of the parent and of each ancestor, and nothing when it is refused', async () => {
    const { tokens } = setUp({ limits: true });
    const limits = { uses: 3 };
    const root = await tokens.issue({ account: 'acme', scopes: [SCOPE], limits });
    expect(await codeOf(tokens.derive(root.value, { scopes: [OTHER_SCOPE] }))).toBe(
      'scope_unmatched',
    );
    const child = await tokens.derive(root.value, ASKED);
    await tokens.derive(child.value, ASKED);
    expect(await tokens.allows(root.value, NEED)).toBe(true);

    expect(await reasonOf(tokens.derive(root.value, ASKED))).toBe('limit_exceeded');
    expect(await tokens.allows(child.value, NEED)).toBe(false);
  });

  it('by a value in its grace period ends with that period', async () => {
    const { tokens, clock } = setUp();
    const root = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const { value } = await tokens.rotate('acme', root.id, { graceSeconds: 60 });

    const late = await tokens.derive(root.value, ASKED);
    const fresh = await tokens.derive(value, ASKED);

    expect(late.expiresAt).toEqual(new Date(clock.now().getTime() + 60_000));
    expect(fresh.expiresAt).toEqual(root.expiresAt);
  });

  async function reasonOf(call: Promise<unknown>): Promise<unknown> {
    const error = await call.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    return isTokenError(error) && error.code === 'invalid_token'
      ? error.details?.['reason']
      : error;
  }
});
