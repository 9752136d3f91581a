import { describe, expect, it, vi } from 'vitest';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { codeOf, NO_ID, OTHER_SCOPE, refusalOf, SCOPE, setUp } from '../support.ts';
import { setUpUsage, verifyTimes } from './support.ts';

const DENIED = 'PUT:shop.example/orders';

describe('usage', () => {
  it('lists all scopes of a token, unused ones with 0', async () => {
    const setting = await setUpUsage();
    const { clock, tokens, token } = setting;
    clock.advance(60);
    await verifyTimes(setting, 2);

    const lastUsedAt = clock.now();
    expect(await tokens.usage('acme', token.id)).toEqual({
      uses: 2,
      refusals: 0,
      lastUsedAt,
      scopes: [
        { scope: SCOPE, uses: 2, lastUsedAt },
        { scope: OTHER_SCOPE, uses: 0 },
      ],
    });
  });

  it('has no lastUsedAt for a token that was never used', async () => {
    const { tokens, token } = await setUpUsage();
    const usage = await tokens.usage('acme', token.id);

    expect(usage).toMatchObject({ uses: 0, refusals: 0 });
    expect(usage).not.toHaveProperty('lastUsedAt');
  });

  it('shows the uses of derived tokens apart from those of the token', async () => {
    const setting = await setUpUsage();
    const { clock, tokens, token } = setting;
    const child = await tokens.derive(token.value, { scopes: [SCOPE] });
    const grandchild = await tokens.derive(child.value, { scopes: [SCOPE] });
    clock.advance(60);
    await verifyTimes(setting, 1);
    const lastUsedAt = clock.now();
    clock.advance(60);
    await tokens.verify(child.value, { scope: SCOPE });
    await tokens.verify(grandchild.value, { scope: SCOPE });
    await tokens.verify(grandchild.value, { scope: DENIED });
    const derivedAt = clock.now();

    expect(await tokens.usage('acme', token.id)).toEqual({
      uses: 1,
      refusals: 0,
      lastUsedAt,
      derived: { uses: 2, lastUsedAt: derivedAt },
      scopes: [
        { scope: SCOPE, uses: 1, lastUsedAt },
        { scope: OTHER_SCOPE, uses: 0 },
      ],
    });
    expect(await tokens.get('acme', token.id)).toMatchObject({ uses: 1, lastUsedAt });
    expect(await tokens.usage('acme', child.id)).toMatchObject({
      uses: 1,
      derived: { uses: 1, lastUsedAt: derivedAt },
    });
    const last = await tokens.usage('acme', grandchild.id);
    expect(last).toMatchObject({ uses: 1, refusals: 1 });
    expect(last).not.toHaveProperty('derived');
  });

  it('advises to keep a scope that only a derived token uses', async () => {
    const setting = await setUpUsage();
    const { clock, tokens, token } = setting;
    const child = await tokens.derive(token.value, { scopes: [OTHER_SCOPE] });
    clock.advance(40 * 86_400);
    await verifyTimes(setting, 1);
    expect((await tokens.advise('acme', token.id))?.unused).toEqual([OTHER_SCOPE]);
    await tokens.verify(child.value, { scope: OTHER_SCOPE });

    expect((await tokens.advise('acme', token.id))?.unused).toEqual([]);
  });

  it('forgets what was derived from a token together with the token', async () => {
    const setting = await setUpUsage();
    const { clock, tokens, token, usage } = setting;
    const child = await tokens.derive(token.value, { scopes: [SCOPE] });
    await tokens.verify(child.value, { scope: SCOPE });
    await tokens.revokeAll('acme');
    clock.advance(60);
    await tokens.purge({ before: clock.now() });
    await tokens.close();

    const counted = await usage.inner.scan();
    expect(counted.ids.filter((id) => id.startsWith(token.id))).toEqual([]);
  });

  it('counts by the scope that granted the use', async () => {
    const setting = await setUpUsage();
    const { tokens, token } = setting;
    await verifyTimes(setting, 1);
    await verifyTimes(setting, 3, OTHER_SCOPE);

    const usage = await tokens.usage('acme', token.id);
    expect(usage?.scopes.map(({ uses }) => uses)).toEqual([1, 3]);
    expect(usage?.uses).toBe(4);
  });

  it('adds stored counts to those still in memory', async () => {
    const setting = await setUpUsage();
    const { tokens, token, usage, clock } = setting;
    const { id } = token;
    await usage.inner.add([
      { id, scope: SCOPE, uses: 10, lastUsedAt: new Date(0) },
      { id, refusals: 5 },
    ]);
    await verifyTimes(setting, 1);
    await tokens.verify(token.value, { scope: DENIED });

    const { uses, refusals, lastUsedAt } = (await tokens.usage('acme', id)) ?? {};
    expect({ uses, refusals, lastUsedAt }).toEqual({
      uses: 11,
      refusals: 6,
      lastUsedAt: clock.now(),
    });
  });

  it('counts uses of a removed scope only in the total', async () => {
    const setting = await setUpUsage();
    const { tokens, token } = setting;
    await verifyTimes(setting, 2, OTHER_SCOPE);
    await tokens.patch('acme', token.id, { removeScopes: [OTHER_SCOPE] });

    const usage = await tokens.usage('acme', token.id);
    expect(usage?.uses).toBe(2);
    expect(usage?.scopes).toEqual([{ scope: SCOPE, uses: 0 }]);
  });

  it('lists uses that the store counts without a scope as other', async () => {
    const { tokens, token, usage } = await setUpUsage();
    const lastUsedAt = new Date(0);
    await usage.inner.add([{ id: token.id, scope: 'other', uses: 3, lastUsedAt }]);

    const { scopes } = (await tokens.usage('acme', token.id)) ?? {};
    expect(scopes?.at(-1)).toEqual({ scope: 'other', uses: 3, lastUsedAt });
    expect(scopes).toHaveLength(3);
  });

  it('also accepts a value', async () => {
    const { tokens, token } = await setUpUsage();

    expect(await tokens.usage('acme', token.value)).toMatchObject({ uses: 0 });
  });

  it('is undefined for a token that the account does not have', async () => {
    const { tokens, token } = await setUpUsage();

    expect(await tokens.usage('other', token.id)).toBeUndefined();
    expect(await tokens.usage('acme', NO_ID)).toBeUndefined();
    await tokens.revoke('acme', token.id);
    expect(await tokens.usage('acme', token.id)).toBeUndefined();
  });

  it('is refused by a service that does not record it', async () => {
    const { tokens } = setUp();
    const { code, message } = await refusalOf(tokens.usage('acme', NO_ID));

    expect(code).toBe('invalid_options');
    expect(message).toContain('usage: true');
  });

  it.each<[string, unknown]>([
    ['too few answers', []],
    ['too many answers', [undefined, undefined, undefined]],
    ['undefined', undefined],
    ['a number', [42, undefined]],
    ['null', [null, undefined]],
    ['a count below 0', [{ refusals: -1, scopes: [] }, undefined]],
    [
      'a getter that throws',
      [
        {
          get refusals() {
            throw new Error('no');
          },
        },
        undefined,
      ],
    ],
    ['a string as a count', [{ refusals: '1', scopes: [] }, undefined]],
    ['no scopes', [{ refusals: 0 }, undefined]],
    ['no time', [{ refusals: 0, scopes: [{ scope: SCOPE, uses: 1 }] }, undefined]],
    [
      'an invalid time',
      [
        { refusals: 0, scopes: [{ scope: SCOPE, uses: 1, lastUsedAt: new Date(Number.NaN) }] },
        undefined,
      ],
    ],
  ])('fails with store_corrupt if the store returns %s', async (_, answer) => {
    const { tokens, token, usage } = await setUpUsage();
    usage.break(async () => answer);

    expect(await codeOf(tokens.usage('acme', token.id))).toBe('store_corrupt');
    usage.break(async () => [{ refusals: 0, scopes: [] }, undefined]);
    expect(await tokens.usage('acme', token.id)).toMatchObject({ uses: 0 });
  });
});

describe('refusals', () => {
  it('of a known token are counted, whatever the reason', async () => {
    const { clock, tokens, token } = await setUpUsage();
    const { value } = token;
    await tokens.verify(value, { scope: DENIED });
    await tokens.verify(value, { method: 'GET', domain: 'shop.example', target: '/a/../b' });
    const rotated = await tokens.rotate('acme', token.id);
    await tokens.verify(value, { scope: SCOPE });
    expect((await tokens.usage('acme', token.id))?.refusals).toBe(3);

    clock.advance(400 * 86_400);
    await tokens.verify(rotated.value, { scope: SCOPE });
    const usage = await tokens.usage('acme', token.id);
    expect(usage).toMatchObject({ refusals: 4, uses: 0 });
  });

  it('of unknown values are not counted', async () => {
    const { tokens, usage, token } = await setUpUsage();
    await tokens.verify('nothing', { scope: SCOPE });
    const foreign = setUp();
    const other = await foreign.tokens.issue({ account: 'acme', scopes: [SCOPE] });
    expect(await tokens.allows(other.value, { scope: SCOPE })).toBe(false);
    await tokens.close();

    expect(usage.count('add')).toBe(0);
    expect(await usage.inner.read([token.id])).toEqual([undefined]);
  });

  it('and uses are counted by introspect only with countsAsUse', async () => {
    const { clock, tokens, token } = await setUpUsage();
    const asUse = { countsAsUse: true };
    await tokens.introspect(token.value);
    await tokens.introspect(token.value, asUse);
    await tokens.introspect(token.value, { countsAsUse: false });
    const lastUsedAt = clock.now();
    const counted = await tokens.usage('acme', token.id);
    expect(counted).toMatchObject({ uses: 1, refusals: 0, lastUsedAt });
    expect(counted?.scopes.at(-1)).toEqual({ scope: 'other', uses: 1, lastUsedAt });

    clock.advance(400 * 86_400);
    expect(await tokens.introspect(token.value, asUse)).toBeUndefined();
    expect(await tokens.usage('acme', token.id)).toMatchObject({ uses: 1, refusals: 1 });
    const refusal = await refusalOf(tokens.introspect(token.value, { countsAsUse: 1 as never }));
    expect(refusal.code).toBe('invalid_request');
  });

  it.each(['explain', 'introspect'] as const)('are not counted by %s', async (method) => {
    const { tokens, token, usage } = await setUpUsage();
    if (method === 'explain') await tokens.explain('acme', token.id, { scope: DENIED });
    else await tokens.introspect(token.value);
    await tokens.close();

    expect(usage.count('add')).toBe(0);
  });
});

describe('tokens', () => {
  it('from get and list have uses and lastUsedAt', async () => {
    const setting = await setUpUsage();
    const { clock, tokens, token } = setting;
    await verifyTimes(setting, 2);
    const use = { uses: 2, lastUsedAt: clock.now() };

    expect(await tokens.get('acme', token.id)).toMatchObject(use);
    expect((await tokens.list({ account: 'acme' })).tokens).toMatchObject([use]);
    for await (const listed of tokens.listAll({ account: 'acme' })) {
      expect(listed).toMatchObject(use);
      expect(Object.isFrozen(listed)).toBe(true);
    }
  });

  it('have neither uses nor lastUsedAt if they were never used', async () => {
    const { tokens, token } = await setUpUsage();
    await tokens.verify(token.value, { scope: DENIED });
    const got = await tokens.get('acme', token.id);

    expect(got).not.toHaveProperty('uses');
    expect(got).not.toHaveProperty('lastUsedAt');
  });

  it('have no uses if usage is not recorded', async () => {
    const { tokens } = setUp();
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    await verifyTimes({ tokens, token }, 1);

    const got = await tokens.get('acme', token.id);
    for (const member of ['uses', 'lastUsedAt', 'usesUnknown']) {
      expect(got).not.toHaveProperty(member);
    }
  });

  it('of one page take one call of the usage store, whatever their number', async () => {
    const { tokens, usage } = await setUpUsage();
    for (let index = 0; index < 20; index += 1) {
      await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    }
    const { tokens: page } = await tokens.list({ account: 'acme' });

    expect(page).toHaveLength(21);
    expect(usage.count('read')).toBe(1);
  });

  it('of an empty page take no call of the usage store', async () => {
    const { tokens, usage } = await setUpUsage();

    expect((await tokens.list({ account: 'nobody' })).tokens).toEqual([]);
    expect(usage.count('read')).toBe(0);
  });

  it('have the totals of a store that adds up itself, plus the counts not written yet', async () => {
    const store = new MemoryTokenStore().usage;
    const read = vi.spyOn(store, 'read');
    const totals = vi.spyOn(store, 'totals');
    const setting = await setUpUsage({ usage: { store } });
    const { clock, tokens, token } = setting;
    const other = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const lastUsedAt = new Date(clock.now().getTime() - 1000);
    await store.add([
      { id: token.id, scope: SCOPE, uses: 3, lastUsedAt },
      { id: token.id, scope: OTHER_SCOPE, uses: 4, lastUsedAt: new Date(0) },
      { id: other.id, scope: SCOPE, uses: 1, lastUsedAt },
    ]);
    await verifyTimes(setting, 2);

    const { tokens: page } = await tokens.list({ account: 'acme' });
    const uses = new Map(page.map((each) => [each.id, [each.uses, each.lastUsedAt]]));
    expect(uses.get(token.id)).toEqual([9, clock.now()]);
    expect(uses.get(other.id)).toEqual([1, lastUsedAt]);
    expect(await tokens.get('acme', token.id)).toMatchObject({ uses: 9, lastUsedAt: clock.now() });
    expect(totals).toHaveBeenCalledTimes(2);
    expect(read).not.toHaveBeenCalled();
  });

  it.each<[string, unknown]>([
    ['too few totals', []],
    ['undefined', undefined],
    ['a number', [42]],
    ['null', [null]],
    ['a count below 0', [{ uses: -1, refusals: 0 }]],
    ['a string as a count', [{ uses: 1, refusals: '1' }]],
    ['an invalid time', [{ uses: 1, refusals: 0, lastUsedAt: new Date(Number.NaN) }]],
  ])('have usesUnknown if the store returns %s', async (_, answer) => {
    const store = new MemoryTokenStore().usage;
    const { tokens, token, events } = await setUpUsage({ usage: { store } });
    const totals = vi.spyOn(store, 'totals').mockResolvedValue(answer as never);

    expect(await tokens.get('acme', token.id)).toMatchObject({ usesUnknown: true });
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'store_trouble', code: 'store_corrupt', store: 'usage' }),
    );
    totals.mockResolvedValue([{ uses: 5, refusals: 0, lastUsedAt: new Date(0) }]);
    expect(await tokens.get('acme', token.id)).toMatchObject({ uses: 5 });
    totals.mockResolvedValue([{ uses: 0, refusals: 3 }]);
    expect(await tokens.get('acme', token.id)).not.toHaveProperty('usesUnknown');
  });

  it('have usesUnknown, and can be revoked, while the usage store is down', async () => {
    const { tokens, token, usage, events } = await setUpUsage({ reveal: 'always' });
    usage.break(() => Promise.reject(new Error('down')));

    const shown = await tokens.get('acme', token.id);
    const { tokens: listed } = await tokens.list({ account: 'acme' });
    expect(shown).toMatchObject({ id: token.id, value: token.value, usesUnknown: true });
    expect(shown).not.toHaveProperty('uses');
    expect(listed).toMatchObject([{ id: token.id, usesUnknown: true }]);
    expect(events.filter(({ type }) => type === 'store_trouble')).toHaveLength(2);
    expect(await tokens.revoke('acme', token.id)).toBe(true);
  });
});

describe('the option usage', () => {
  it.each<[string, unknown, string]>([
    ['a number', 42, 'usage must be an object { store, flushMs }'],
    ['no object', 'on', 'usage must be an object { store, flushMs }'],
    ['another store', { store: { find() {} } }, 'usage.store must be a UsageStore'],
    ['flushMs below 100', { flushMs: 99 }, 'usage.flushMs must be'],
    ['flushMs above an hour', { flushMs: 3_600_001 }, 'usage.flushMs must be'],
    ['a fractional flushMs', { flushMs: 100.5 }, 'usage.flushMs must be'],
    ['an unknown member', { flush: 1000 }, 'flush'],
  ])('is refused with %s', async (_, usage, message) => {
    const { usage: store } = await setUpUsage();
    const isPartial = typeof usage === 'object' && !Object.hasOwn(usage ?? {}, 'store');
    const given = isPartial && message.includes('flush') ? { store, ...(usage as object) } : usage;
    const refusal = await refusalOf(() => setUp({ usage: given as never }));

    expect(refusal.code).toBe('invalid_options');
    expect(refusal.message).toContain(message);
  });

  it.each([100, 3_600_000])('accepts a flushMs of %d', async (flushMs) => {
    const { usage: store } = await setUpUsage();

    expect(setUp({ usage: { store, flushMs } }).tokens).toBeDefined();
  });
});
