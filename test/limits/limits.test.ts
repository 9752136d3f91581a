import { describe, expect, it } from 'vitest';
import type { TokenEvent } from '../../src/events.ts';
import { TokenService } from '../../src/service.ts';
import type { IssuedToken, TokenLimits, Verdict } from '../../src/token.ts';
import { codeOf, K1, OTHER_SCOPE, recordOf, SCOPE, setUp } from '../support.ts';
import { type LimitSetting, RecordingLeases, setUpLimits } from './support.ts';

const NEED = { scope: SCOPE };
const OTHER_NEED = { scope: OTHER_SCOPE };

function issue(
  { tokens }: Pick<LimitSetting, 'tokens'>,
  limits: TokenLimits,
): Promise<IssuedToken> {
  return tokens.issue({ account: 'ada', scopes: [SCOPE], limits });
}

/** How often a token is accepted in a row. */
async function acceptedOf(
  { tokens }: Pick<LimitSetting, 'tokens'>,
  value: string,
  tries: number,
): Promise<number> {
  let accepted = 0;
  for (let i = 0; i < tries; i++) accepted += Number((await tokens.verify(value, NEED)).ok);
  return accepted;
}

function reasonOf(verdict: Verdict | undefined): string | undefined {
  return verdict?.ok === true ? 'ok' : verdict?.reason;
}

describe('limits of a token', () => {
  const LIMITS = {
    addresses: ['10.0.0.0/8', '2001:DB8::/32', '::ffff:10.0.0.0/104'],
    uses: 5,
    rate: { uses: 2, seconds: 60 },
  };
  const KEPT = { ...LIMITS, addresses: ['10.0.0.0/8', '2001:db8::/32'] };

  it('are kept in canonical spelling, and shown', async () => {
    const { tokens, store, leases } = setUpLimits();
    const token = await issue({ tokens }, LIMITS);

    expect(token.limits).toEqual(KEPT);
    expect((await tokens.get('ada', token.id))?.limits).toEqual(KEPT);
    expect((await tokens.list({ account: 'ada' })).tokens[0]?.limits).toEqual(KEPT);
    expect((await recordOf(store, token.id)).limits).toEqual(KEPT);
    expect(leases.takes).toEqual([]);
    expect(await tokens.issue({ account: 'ada', scopes: [SCOPE] })).not.toHaveProperty('limits');
  });

  it('are replaced whole by patch, stay without them, and are removed by null', async () => {
    const { tokens } = setUpLimits();
    const { id } = await issue({ tokens }, LIMITS);

    expect((await tokens.patch('ada', id, { name: 'ci' })).limits).toEqual(KEPT);
    expect((await tokens.patch('ada', id, { limits: { uses: 9 } })).limits).toEqual({ uses: 9 });
    expect(await tokens.patch('ada', id, { limits: null })).not.toHaveProperty('limits');
  });

  it('are replaced whole by modify, stay without them, and are removed by null', async () => {
    const { tokens } = setUpLimits();
    const { id } = await issue({ tokens }, LIMITS);
    const scopes = [SCOPE];

    expect((await tokens.modify('ada', id, { scopes })).limits).toEqual(KEPT);
    expect((await tokens.modify('ada', id, { scopes, limits: { uses: 9 } })).limits).toEqual({
      uses: 9,
    });
    expect(await tokens.modify('ada', id, { scopes, limits: null })).not.toHaveProperty('limits');
  });

  it.each<[unknown, RegExp]>([
    [{}, /at least one of addresses, uses and rate/],
    [{ uses: undefined }, /at least one/],
    ['5', /limits must be an object \{ addresses, uses, rate \}/],
    [[], /limits must be an object/],
    [{ use: 5 }, /unknown member "use" of limits; did you mean uses\?/],
    [{ uses: 0 }, /limits\.uses must be a whole number of 1 or more; got 0/],
    [{ uses: 1.5 }, /limits\.uses/],
    [{ uses: 2 ** 53 }, /limits\.uses/],
    [{ uses: '5' }, /limits\.uses/],
    [{ rate: { uses: 5 } }, /limits\.rate\.seconds must be a whole number from 1 to 86400/],
    [{ rate: { uses: 5, seconds: 86_401 } }, /limits\.rate\.seconds/],
    [{ rate: { uses: 0, seconds: 1 } }, /limits\.rate\.uses/],
    [{ rate: 5 }, /limits\.rate must be an object \{ uses, seconds \}/],
    [{ addresses: [] }, /limits\.addresses must hold 1 to 100/],
    [{ addresses: Array(101).fill('::1') }, /limits\.addresses must hold 1 to 100 .*; got 101/],
    [{ addresses: '::1' }, /limits\.addresses must be a list; got a text/],
    [{ addresses: ['::1', '10.0.0.1/8'] }, /limits\.addresses\[1\] .*"10\.0\.0\.1\/8" has bits/],
    [{ addresses: ['::1', 'secret-word'] }, /limits\.addresses\[1\] .*; a text is neither/],
  ])('%j are refused by issue, modify and patch alike', async (limits, message) => {
    const { tokens } = setUpLimits();
    const scopes = [SCOPE];
    const { id } = await tokens.issue({ account: 'ada', scopes });
    const bad = limits as TokenLimits;
    const refusal = expect.objectContaining({
      code: 'invalid_limits',
      message: expect.stringMatching(message),
      details: { member: expect.stringMatching(/^limits\b/) },
    });

    await expect(issue({ tokens }, bad)).rejects.toEqual(refusal);
    await expect(tokens.modify('ada', id, { scopes, limits: bad })).rejects.toEqual(refusal);
    await expect(tokens.patch('ada', id, { limits: bad })).rejects.toEqual(refusal);
  });

  it.each<TokenLimits>([{ uses: 1 }, { rate: { uses: 1, seconds: 1 } }])(
    '%j need a service that counts uses',
    async (limits) => {
      const { tokens } = setUp();
      const { id } = await issue({ tokens }, { addresses: ['::1'] });
      const change = { scopes: [SCOPE], limits };

      expect(await codeOf(issue({ tokens }, limits))).toBe('invalid_limits');
      expect(await codeOf(tokens.modify('ada', id, change))).toBe('invalid_limits');
      expect(await codeOf(tokens.patch('ada', id, { limits }))).toBe('invalid_limits');
    },
  );
});

describe('a token with addresses', () => {
  const HERE = { address: '10.1.2.3' };
  const limits = { addresses: ['10.0.0.0/8'] };

  it.each([
    ['10.1.2.3', 'ok'],
    ['::ffff:10.1.2.3', 'ok'],
    ['11.1.2.3', 'address_denied'],
    ['::10.1.2.3', 'address_denied'],
    ['fe80::1%eth0', 'address_unknown'],
    ['10.1.2.3:80', 'address_unknown'],
    ['nonsense', 'address_unknown'],
    [undefined, 'address_unknown'],
  ])('from %s is decided as %s', async (address, expected) => {
    const { tokens } = setUpLimits();
    const { value } = await issue({ tokens }, limits);

    expect(reasonOf(await tokens.verify(value, NEED, { address }))).toBe(expected);
    expect(reasonOf(tokens.verifySync(value, NEED, { address }))).toBe(expected);
    expect(await tokens.allows(value, NEED, { address })).toBe(expected === 'ok');
  });

  it('says nothing about its scopes to other addresses, and is refused as ended before that', async () => {
    const { tokens } = setUpLimits();
    const { id, value } = await issue({ tokens }, limits);
    const elsewhere = { address: '192.0.2.1' };

    expect(reasonOf(await tokens.verify(value, OTHER_NEED, elsewhere))).toBe('address_denied');
    expect(reasonOf(await tokens.verify(value, OTHER_NEED, HERE))).toBe('insufficient_scope');
    await tokens.patch('ada', id, { suspended: true });
    expect(reasonOf(await tokens.verify(value, NEED, elsewhere))).toBe('suspended');
  });

  it('loses no use to other addresses', async () => {
    const { tokens, leases } = setUpLimits();
    const { value } = await issue({ tokens }, { ...limits, uses: 1 });

    expect(await tokens.allows(value, NEED, { address: '192.0.2.1' })).toBe(false);
    expect(leases.taken).toBe(0);
    expect(await tokens.allows(value, NEED, HERE)).toBe(true);
  });

  it('may be used from elsewhere after a change, and no longer from here', async () => {
    const { tokens } = setUpLimits();
    const { id, value } = await issue({ tokens }, limits);
    expect(await tokens.allows(value, NEED, HERE)).toBe(true);

    await tokens.patch('ada', id, { limits: { addresses: ['192.0.2.1'] } });

    expect(await tokens.allows(value, NEED, HERE)).toBe(false);
    expect(await tokens.allows(value, NEED, { address: '192.0.2.1' })).toBe(true);
  });

  it('that cannot be read is an error, never accepted', async () => {
    const { tokens, store } = setUpLimits({ cache: {} });
    const { id, value } = await issue({ tokens }, limits);
    const record = await recordOf(store, id);
    store.break('find', async () => [{ ...record, limits: { addresses: ['nonsense'] } }]);

    expect(await codeOf(tokens.verify(value, NEED, HERE))).toBe('store_corrupt');
  });

  it('takes the address as a text only', async () => {
    const { tokens } = setUpLimits();
    const { value } = await issue({ tokens }, limits);
    const bad = { address: 7 as unknown as string };

    expect(await codeOf(tokens.verify(value, NEED, bad))).toBe('invalid_request');
    expect(() => tokens.verifySync(value, NEED, bad)).toThrow(/address must be/);
  });

  it('emits its refusals with their reason, and counts them', async () => {
    const events: TokenEvent[] = [];
    const { tokens } = setUpLimits({ onEvent: (event) => events.push(event) });
    const { id, value } = await issue({ tokens }, limits);

    await tokens.verify(value, NEED);
    await tokens.verify(value, NEED, { address: '192.0.2.1' });

    expect(events).toMatchObject([
      { type: 'issued' },
      { type: 'refused', reason: 'address_unknown', id, account: 'ada' },
      { type: 'refused', reason: 'address_denied', id, account: 'ada' },
    ]);
  });
});

describe('a token with a number of uses', () => {
  it.each([1, 2, 16, 100])('is accepted %d times, and not once more', async (uses) => {
    const setting = setUpLimits();
    const { value } = await issue(setting, { uses });

    expect(await acceptedOf(setting, value, uses + 20)).toBe(uses);
    expect(reasonOf(await setting.tokens.verify(value, NEED))).toBe('limit_exceeded');
  });

  it('says nothing of a later try when it has none left', async () => {
    const setting = setUpLimits();
    const { value } = await issue(setting, { uses: 1 });
    await acceptedOf(setting, value, 1);

    expect(await setting.tokens.verify(value, NEED)).toEqual({
      ok: false,
      reason: 'limit_exceeded',
    });
  });

  it('is accepted as often by many callers together', async () => {
    const { tokens } = setUpLimits();
    const { value } = await issue({ tokens }, { uses: 500 });

    const verdicts = await Promise.all(
      Array.from({ length: 1000 }, () => tokens.verify(value, NEED)),
    );

    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(500);
  });

  it('is accepted as often by several services that close in order', async () => {
    const leases = new RecordingLeases();
    const { tokens, store, clock } = setUpLimits({}, leases);
    const { value } = await issue({ tokens }, { uses: 200 });
    const nodes = [1, 2, 3, 4].map(() => {
      const options = { store, keys: [K1], prefix: 'acme', clock, limits: { store: leases } };
      return { tokens: new TokenService(options) };
    });

    let accepted = 0;
    for (const node of nodes) accepted += await acceptedOf(node, value, 30);
    for (const node of nodes) await node.tokens.close();

    expect(accepted).toBe(120);
    expect(leases.taken).toBe(120);
    expect(await acceptedOf({ tokens }, value, 100)).toBe(80);
  });

  it('loses none to a refusal, a dry run, a question or an explanation', async () => {
    const { tokens, leases } = setUpLimits();
    const { id, value } = await issue({ tokens }, { uses: 1 });

    await tokens.verify(value, OTHER_NEED);
    await tokens.explain('ada', id, NEED);
    await tokens.patch('ada', id, { name: 'x' }, { dryRun: true });
    await tokens.introspect(value);
    expect(tokens.verifySync(value, NEED)).toBeUndefined();

    expect(leases.takes).toEqual([]);
    expect(await tokens.allows(value, NEED)).toBe(true);
  });

  it('is decided without waiting while a use is in hand, or known to be missing', async () => {
    const { tokens } = setUpLimits();
    const { value } = await issue({ tokens }, { uses: 1000 });
    expect(tokens.verifySync(value, NEED)).toBeUndefined();
    await acceptedOf({ tokens }, value, 20);

    expect(tokens.verifySync(value, NEED)?.ok).toBe(true);
    await acceptedOf({ tokens }, value, 1000);
    expect(reasonOf(tokens.verifySync(value, NEED))).toBe('limit_exceeded');
  });

  it('gets more uses by a higher limit', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, { uses: 10 });
    expect(await acceptedOf(setting, value, 20)).toBe(10);

    await setting.tokens.patch('ada', id, { limits: { uses: 15 } });

    expect(await acceptedOf(setting, value, 20)).toBe(5);
  });

  it('has none left by a limit below what was spent, also of those in hand', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, { uses: 1000 });
    expect(await acceptedOf(setting, value, 50)).toBe(50);
    expect(setting.leases.taken).toBeGreaterThan(50);

    await setting.tokens.patch('ada', id, { limits: { uses: 50 } });

    expect(await acceptedOf(setting, value, 20)).toBe(0);
    expect(setting.leases.taken).toBe(50);
  });

  it('keeps what is left by a lower limit', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, { uses: 1000 });
    expect(await acceptedOf(setting, value, 50)).toBe(50);

    await setting.tokens.patch('ada', id, { limits: { uses: 60 } });

    expect(await acceptedOf(setting, value, 100)).toBe(10);
  });

  it('is not limited any more when the limit is removed', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, { uses: 1 });
    await acceptedOf(setting, value, 2);

    await setting.tokens.patch('ada', id, { limits: null });

    expect(await acceptedOf(setting, value, 50)).toBe(50);
  });

  it('keeps its count when its value is replaced', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, { uses: 10 });
    expect(await acceptedOf(setting, value, 4)).toBe(4);

    const rotated = await setting.tokens.rotate('ada', id, { graceSeconds: 60 });

    expect(await acceptedOf(setting, rotated.value, 4)).toBe(4);
    expect(await acceptedOf(setting, value, 20)).toBe(2);
  });

  it('activates a waiting value by an accepted use alone', async () => {
    const setting = setUpLimits();
    const { tokens } = setting;
    const { id, value } = await issue(setting, { uses: 1 });
    await acceptedOf(setting, value, 1);
    const next = await tokens.rotate('ada', id, { activate: 'first-use' });

    expect(await tokens.allows(next.value, NEED)).toBe(false);
    expect((await tokens.get('ada', id))?.pending).toBe(true);
    await tokens.patch('ada', id, { limits: { uses: 2 } });
    expect(await tokens.allows(next.value, NEED)).toBe(true);
    await tokens.close();
    expect((await recordOf(setting.store, id)).pending).toBeUndefined();
  });

  it('is refused while its store does not answer, and works when it does', async () => {
    const setting = setUpLimits();
    const { tokens, leases } = setting;
    const { value } = await issue(setting, { uses: 10 });
    leases.fault = () => {
      throw new Error('down');
    };

    expect(await codeOf(tokens.verify(value, NEED))).toBe('store_unavailable');
    leases.fault = () => undefined;
    expect(await acceptedOf(setting, value, 20)).toBe(10);
  });

  it('is refused within the deadline if its store hangs', async () => {
    const setting = setUpLimits({ deadlineMs: 20 });
    const { value } = await issue(setting, { uses: 10 });
    setting.leases.fault = () => new Promise(() => {});

    expect(await codeOf(setting.tokens.verify(value, NEED))).toBe('store_unavailable');
  });

  it('goes on with the uses in hand while its store does not answer', async () => {
    const setting = setUpLimits();
    const { value } = await issue(setting, { uses: 1000 });
    await acceptedOf(setting, value, 100);
    const inHand = setting.leases.taken - 100;
    setting.leases.fault = () => {
      throw new Error('down');
    };

    for (let i = 0; i < inHand; i++) expect(await setting.tokens.allows(value, NEED)).toBe(true);
    expect(await codeOf(setting.tokens.verify(value, NEED))).toBe('store_unavailable');
  });

  it('is refused by a service that does not count uses, which says so', async () => {
    const events: TokenEvent[] = [];
    const { tokens, store } = setUpLimits();
    const { value } = await issue({ tokens }, { uses: 10 });
    const onEvent = (event: TokenEvent) => events.push(event);
    const other = setUp({ store, onEvent });

    await expect(other.tokens.verify(value, NEED)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('limits: { store }'),
    });
    expect(events).toMatchObject([
      { type: 'store_trouble', code: 'store_unavailable', store: 'leases' },
    ]);
  });

  it.each([
    ['more than it wanted', (want: number) => [want + 1]],
    ['less than nothing', () => [-1]],
    ['a part of one', () => [0.5]],
    ['too few', () => []],
    ['a text', () => ['1']],
    ['nothing', () => undefined],
  ])('is refused if its store grants %s', async (_, answer) => {
    const leases = new RecordingLeases();
    leases.take = async ([want]) => answer(want?.want ?? 0) as number[];
    const { tokens } = setUpLimits({}, leases);
    const { value } = await issue({ tokens }, { uses: 10 });

    expect(await codeOf(tokens.verify(value, NEED))).toBe('store_corrupt');
  });

  it('counts an introspection that is a use, and is not active without one', async () => {
    const { tokens } = setUpLimits();
    const { value } = await issue({ tokens }, { uses: 2, addresses: ['::1'] });
    const use = { countsAsUse: true, address: '::1' };

    expect(await tokens.introspect(value, { countsAsUse: true })).toBeUndefined();
    expect(await tokens.introspect(value, { ...use, address: '::2' })).toBeUndefined();
    expect(await tokens.introspect(value, use)).toBeDefined();
    expect(await tokens.introspect(value, use)).toBeDefined();
    expect(await tokens.introspect(value, use)).toBeUndefined();
    expect(await tokens.introspect(value)).toBeDefined();
  });
});

describe('a token with a rate', () => {
  const limits = { rate: { uses: 3, seconds: 60 } };

  it('is accepted as often in each window, and says when the next one begins', async () => {
    const setting = setUpLimits();
    const { value } = await issue(setting, limits);
    setting.clock.advance(50.5);

    expect(await acceptedOf(setting, value, 10)).toBe(3);
    expect(await setting.tokens.verify(value, NEED)).toEqual({
      ok: false,
      reason: 'limit_exceeded',
      rate: limits.rate,
      retryAt: new Date('2100-01-01T00:01:00Z'),
      retryAfterSeconds: 10,
    });
    setting.clock.advance(9.4);
    expect(await acceptedOf(setting, value, 10)).toBe(0);
    setting.clock.advance(0.1);
    expect(await acceptedOf(setting, value, 10)).toBe(3);
  });

  it('takes no use of a window into the next', async () => {
    const setting = setUpLimits();
    const { value } = await issue(setting, { rate: { uses: 100, seconds: 60 } });
    await acceptedOf(setting, value, 50);
    setting.clock.advance(60);

    expect(await acceptedOf(setting, value, 200)).toBe(100);
  });

  it('spends a use of each of its limits or of none', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, { ...limits, uses: 5 });

    expect(await acceptedOf(setting, value, 10)).toBe(3);
    setting.clock.advance(60);
    expect(await acceptedOf(setting, value, 10)).toBe(2);
    expect(await setting.tokens.verify(value, NEED)).toEqual({
      ok: false,
      reason: 'limit_exceeded',
    });
    await setting.tokens.patch('ada', id, { limits });
    expect(await acceptedOf(setting, value, 10)).toBe(1);
  });

  it('waits for a use in the window in which it is granted', async () => {
    const setting = setUpLimits();
    const { value } = await issue(setting, { rate: { uses: 1, seconds: 60 } });
    let isFirst = true;
    setting.leases.fault = () => {
      if (isFirst) setting.clock.advance(60);
      isFirst = false;
    };

    expect(await setting.tokens.allows(value, NEED)).toBe(true);
    expect(await setting.tokens.allows(value, NEED)).toBe(false);
    expect(setting.leases.takes.flat().map(({ window }) => window)).toEqual([
      68_374_080, 68_374_081, 68_374_081,
    ]);
  });

  it('counts anew by windows of another length', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, limits);
    expect(await acceptedOf(setting, value, 10)).toBe(3);

    await setting.tokens.patch('ada', id, { limits: { rate: { uses: 4, seconds: 3600 } } });

    expect(await acceptedOf(setting, value, 10)).toBe(4);
  });
});

describe('the counts of limits', () => {
  it('are purged when they matter no more, by purge and by the upkeep', async () => {
    const setting = setUpLimits();
    const purged: Date[] = [];
    setting.leases.purge = async (before: Date) => {
      purged.push(before);
      return 0;
    };
    const hour = 3_600_000;
    const before = new Date(setting.clock.now().getTime() - hour);

    await setting.tokens.purge({ before });

    expect(purged).toEqual([before]);
  });

  it('that cannot be purged do not keep records from it', async () => {
    const { tokens, leases, clock } = setUpLimits();
    await tokens.issue({ account: 'ada', scopes: [SCOPE], ttlSeconds: 1 });
    clock.advance(60);
    leases.fault = () => Promise.reject(new Error('away'));

    expect(await tokens.purge({ before: clock.now() })).toBe(1);
  });

  it('are kept longer when a token lives longer, also if nobody uses it', async () => {
    const { tokens, leases, clock } = setUpLimits();
    const year = 31_536_000_000;
    const limits = { uses: 5 };
    const { id } = await tokens.issue({ account: 'ada', scopes: [SCOPE], ttlSeconds: 60, limits });
    const expiresAt = new Date(clock.now().getTime() + 3_600_000);
    await tokens.patch('ada', id, { name: 'x' });
    await tokens.patch('ada', id, { expiresAt }, { dryRun: true });
    expect(leases.takes).toEqual([]);

    await tokens.patch('ada', id, { expiresAt });

    const until = new Date(expiresAt.getTime() + year);
    expect(leases.takes).toEqual([[{ key: `${id}/uses`, window: 0, limit: 5, want: 0, until }]]);
    leases.fault = () => Promise.reject(new Error('away'));
    const later = new Date(expiresAt.getTime() + 1000);
    expect((await tokens.patch('ada', id, { expiresAt: later })).expiresAt).toEqual(later);
  });

  it('are closed with the service, after what was leased is given back', async () => {
    const calls: string[] = [];
    const leases = new RecordingLeases();
    leases.fault = (call) => calls.push(call);
    const { tokens } = setUpLimits(
      {},
      Object.assign(leases, {
        close: async () => {
          calls.push('close');
        },
      }),
    );
    const { value } = await issue({ tokens }, { uses: 1000 });
    await acceptedOf({ tokens }, value, 20);
    calls.length = 0;

    await tokens.close();

    expect(calls).toEqual(['giveBack', 'close']);
    expect(leases.taken).toBe(20);
  });
});
