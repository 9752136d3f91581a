import { describe, expect, it } from 'vitest';
import type { TokenEvent } from '../../src/events.ts';
import { TokenService } from '../../src/service.ts';
import type { IssuedToken, TokenLimits, Verdict } from '../../src/token/record.ts';
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

/** How many of several uses in a row are accepted. */
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

  it('are stored in canonical form, and shown', async () => {
    const { tokens, store, leases } = setUpLimits();
    const token = await issue({ tokens }, LIMITS);

    expect(token.limits).toEqual(KEPT);
    expect((await tokens.get('ada', token.id))?.limits).toEqual(KEPT);
    expect((await tokens.list({ account: 'ada' })).tokens[0]?.limits).toEqual(KEPT);
    expect((await recordOf(store, token.id)).limits).toEqual(KEPT);
    expect(leases.takes).toEqual([]);
    expect(await tokens.issue({ account: 'ada', scopes: [SCOPE] })).not.toHaveProperty('limits');
  });

  it('are replaced as a whole by patch, left unchanged if omitted, and removed by null', async () => {
    const { tokens } = setUpLimits();
    const { id } = await issue({ tokens }, LIMITS);

    expect((await tokens.patch('ada', id, { name: 'ci' })).limits).toEqual(KEPT);
    expect((await tokens.patch('ada', id, { limits: { uses: 9 } })).limits).toEqual({ uses: 9 });
    expect(await tokens.patch('ada', id, { limits: null })).not.toHaveProperty('limits');
  });

  it('are replaced as a whole by modify, left unchanged if omitted, and removed by null', async () => {
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
    [{ addresses: '::1' }, /limits\.addresses must be a list, as .*; got a text/],
    [{ addresses: ['::1', '10.0.0.1/8'] }, /limits\.addresses\[1\] .*"10\.0\.0\.1\/8" has bits/],
    [{ addresses: ['::1', 'secret-word'] }, /limits\.addresses\[1\] .*; a text is neither/],
  ])('are refused by issue, modify and patch: $0', async (limits, message) => {
    const { tokens } = setUpLimits();
    const scopes = [SCOPE];
    const { id } = await tokens.issue({ account: 'ada', scopes });
    const bad = limits as TokenLimits;
    const refusal = expect.objectContaining({
      code: 'invalid_limits',
      message: expect.stringMatching(message),
      details: expect.objectContaining({ member: expect.stringMatching(/^limits\b/) }),
    });

    await expect(issue({ tokens }, bad)).rejects.toEqual(refusal);
    await expect(tokens.modify('ada', id, { scopes, limits: bad })).rejects.toEqual(refusal);
    await expect(tokens.patch('ada', id, { limits: bad })).rejects.toEqual(refusal);
  });

  it.each<[string, TokenLimits]>([
    ['limits.uses', { uses: 1 }],
    ['limits.rate', { rate: { uses: 1, seconds: 1 } }],
  ])('need a service that counts uses: %s', async (member, limits) => {
    const { tokens } = setUp();
    const { id } = await issue({ tokens }, { addresses: ['::1'] });
    const change = { scopes: [SCOPE], limits };
    const refusal = { code: 'invalid_limits', details: { member } };

    await expect(issue({ tokens }, limits)).rejects.toMatchObject(refusal);
    await expect(tokens.modify('ada', id, change)).rejects.toMatchObject(refusal);
    await expect(tokens.patch('ada', id, { limits })).rejects.toMatchObject(refusal);
  });
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
  ])('used from %s gets the answer %s', async (address, expected) => {
    const { tokens } = setUpLimits();
    const { value } = await issue({ tokens }, limits);

    expect(reasonOf(await tokens.verify(value, NEED, { address }))).toBe(expected);
    expect(reasonOf(tokens.verifySync(value, NEED, { address }))).toBe(expected);
    expect(await tokens.allows(value, NEED, { address })).toBe(expected === 'ok');
  });

  it('is checked in order: state, address, scopes', async () => {
    const { tokens } = setUpLimits();
    const { id, value } = await issue({ tokens }, limits);
    const elsewhere = { address: '192.0.2.1' };

    expect(reasonOf(await tokens.verify(value, OTHER_NEED, elsewhere))).toBe('address_denied');
    expect(reasonOf(await tokens.verify(value, OTHER_NEED, HERE))).toBe('insufficient_scope');
    await tokens.patch('ada', id, { suspended: true });
    expect(reasonOf(await tokens.verify(value, NEED, elsewhere))).toBe('suspended');
  });

  it('spends no use on a refusal of another address', async () => {
    const { tokens, leases } = setUpLimits();
    const { value } = await issue({ tokens }, { ...limits, uses: 1 });

    expect(await tokens.allows(value, NEED, { address: '192.0.2.1' })).toBe(false);
    expect(leases.taken).toBe(0);
    expect(await tokens.allows(value, NEED, HERE)).toBe(true);
  });

  it('accepts the new addresses after a change, and no longer the old ones', async () => {
    const { tokens } = setUpLimits();
    const { id, value } = await issue({ tokens }, limits);
    expect(await tokens.allows(value, NEED, HERE)).toBe(true);

    await tokens.patch('ada', id, { limits: { addresses: ['192.0.2.1'] } });

    expect(await tokens.allows(value, NEED, HERE)).toBe(false);
    expect(await tokens.allows(value, NEED, { address: '192.0.2.1' })).toBe(true);
  });

  it('makes verify fail with store_corrupt if the stored addresses are malformed', async () => {
    const { tokens, store } = setUpLimits({ cache: {} });
    const { id, value } = await issue({ tokens }, limits);
    const record = await recordOf(store, id);
    store.break('find', async () => [{ ...record, limits: { addresses: ['nonsense'] } }]);

    expect(await codeOf(tokens.verify(value, NEED, HERE))).toBe('store_corrupt');
  });

  it('makes verify refuse an address that is not a string', async () => {
    const { tokens } = setUpLimits();
    const { value } = await issue({ tokens }, limits);
    const bad = { address: 7 as unknown as string };

    expect(await codeOf(tokens.verify(value, NEED, bad))).toBe('invalid_request');
    expect(() => tokens.verifySync(value, NEED, bad)).toThrow(/address must be/);
  });

  it('emits refused with the reason', async () => {
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

describe('a token with a limit on uses', () => {
  it.each([1, 2, 16, 100])('is accepted %d times, and not once more', async (uses) => {
    const setting = setUpLimits();
    const { value } = await issue(setting, { uses });

    expect(await acceptedOf(setting, value, uses + 20)).toBe(uses);
    expect(reasonOf(await setting.tokens.verify(value, NEED))).toBe('limit_exceeded');
  });

  it('gives no time to retry after its last use', async () => {
    const setting = setUpLimits();
    const { value } = await issue(setting, { uses: 1 });
    await acceptedOf(setting, value, 1);

    expect(await setting.tokens.verify(value, NEED)).toEqual({
      ok: false,
      reason: 'limit_exceeded',
    });
  });

  it('is accepted 500 times by 1000 concurrent calls', async () => {
    const { tokens } = setUpLimits();
    const { value } = await issue({ tokens }, { uses: 500 });

    const verdicts = await Promise.all(
      Array.from({ length: 1000 }, () => tokens.verify(value, NEED)),
    );

    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(500);
  });

  it('loses no uses to services that are closed', async () => {
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

  it('spends no use on a refusal, explain, a dry run, introspect or verifySync', async () => {
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

  it('is decided by verifySync while a leased use is left, or the limit is known to be reached', async () => {
    const { tokens } = setUpLimits();
    const { value } = await issue({ tokens }, { uses: 1000 });
    expect(tokens.verifySync(value, NEED)).toBeUndefined();
    await acceptedOf({ tokens }, value, 20);

    expect(tokens.verifySync(value, NEED)?.ok).toBe(true);
    await acceptedOf({ tokens }, value, 1000);
    expect(reasonOf(tokens.verifySync(value, NEED))).toBe('limit_exceeded');
  });

  it('gets more uses from a higher limit', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, { uses: 10 });
    expect(await acceptedOf(setting, value, 20)).toBe(10);

    await setting.tokens.patch('ada', id, { limits: { uses: 15 } });

    expect(await acceptedOf(setting, value, 20)).toBe(5);
  });

  it('has no uses left if the limit is lowered to the number spent, not even leased ones', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, { uses: 1000 });
    expect(await acceptedOf(setting, value, 50)).toBe(50);
    expect(setting.leases.taken).toBeGreaterThan(50);

    await setting.tokens.patch('ada', id, { limits: { uses: 50 } });

    expect(await acceptedOf(setting, value, 20)).toBe(0);
    expect(setting.leases.taken).toBe(50);
  });

  it('keeps the uses that a lower limit leaves', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, { uses: 1000 });
    expect(await acceptedOf(setting, value, 50)).toBe(50);

    await setting.tokens.patch('ada', id, { limits: { uses: 60 } });

    expect(await acceptedOf(setting, value, 100)).toBe(10);
  });

  it('is no longer limited when the limit is removed', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, { uses: 1 });
    await acceptedOf(setting, value, 2);

    await setting.tokens.patch('ada', id, { limits: null });

    expect(await acceptedOf(setting, value, 50)).toBe(50);
  });

  it('keeps its count when it is rotated', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, { uses: 10 });
    expect(await acceptedOf(setting, value, 4)).toBe(4);

    const rotated = await setting.tokens.rotate('ada', id, { graceSeconds: 60 });

    expect(await acceptedOf(setting, rotated.value, 4)).toBe(4);
    expect(await acceptedOf(setting, value, 20)).toBe(2);
  });

  it('activates a pending value only with an accepted use', async () => {
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

  it('makes verify fail with store_unavailable while the lease store is down, and works afterwards', async () => {
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

  it('makes verify fail with store_unavailable at the deadline if the lease store hangs', async () => {
    const setting = setUpLimits({ deadlineMs: 20 });
    const { value } = await issue(setting, { uses: 10 });
    setting.leases.fault = () => new Promise(() => {});

    expect(await codeOf(setting.tokens.verify(value, NEED))).toBe('store_unavailable');
  });

  it('goes on with leased uses while the lease store is down', async () => {
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

  it('makes verify fail in a service without limits, with a message that names the option', async () => {
    const events: TokenEvent[] = [];
    const { tokens, store } = setUpLimits();
    const { value } = await issue({ tokens }, { uses: 10 });
    const onEvent = (event: TokenEvent) => events.push(event);
    const other = setUp({ store, onEvent });

    await expect(other.tokens.verify(value, NEED)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('limits: true'),
    });
    expect(events).toMatchObject([
      { type: 'store_trouble', code: 'store_unavailable', store: 'leases' },
    ]);
  });

  it.each([
    ['more than asked for', (want: number) => [want + 1]],
    ['a negative number', () => [-1]],
    ['a fraction', () => [0.5]],
    ['too few numbers', () => []],
    ['a string', () => ['1']],
    ['undefined', () => undefined],
  ])('makes verify fail with store_corrupt if the lease store grants %s', async (_, answer) => {
    const leases = new RecordingLeases();
    leases.take = async ([want]) => answer(want?.want ?? 0) as number[];
    const { tokens } = setUpLimits({}, leases);
    const { value } = await issue({ tokens }, { uses: 10 });

    expect(await codeOf(tokens.verify(value, NEED))).toBe('store_corrupt');
  });

  it('makes verify fail with store_corrupt if only one of two answers is possible', async () => {
    const leases = new RecordingLeases();
    leases.take = async (wants) => wants.map(({ want }, index) => (index === 0 ? want : want + 1));
    const { tokens } = setUpLimits({}, leases);
    const { value } = await issue({ tokens }, { uses: 10, rate: { uses: 10, seconds: 60 } });

    expect(await codeOf(tokens.verify(value, NEED))).toBe('store_corrupt');
  });

  it('spends a use on introspect with countsAsUse, which returns undefined without one', async () => {
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

  it('is accepted up to its rate in each window, and says when the next window begins', async () => {
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

  it('carries no uses from one window over to the next', async () => {
    const setting = setUpLimits();
    const { value } = await issue(setting, { rate: { uses: 100, seconds: 60 } });
    await acceptedOf(setting, value, 50);
    setting.clock.advance(60);

    expect(await acceptedOf(setting, value, 200)).toBe(100);
  });

  it('spends a use of both its limits or of neither', async () => {
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

  it('spends a use of the window in which the lease arrives', async () => {
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

  it('starts a new count when the length of the window changes', async () => {
    const setting = setUpLimits();
    const { id, value } = await issue(setting, limits);
    expect(await acceptedOf(setting, value, 10)).toBe(3);

    await setting.tokens.patch('ada', id, { limits: { rate: { uses: 4, seconds: 3600 } } });

    expect(await acceptedOf(setting, value, 10)).toBe(4);
  });
});

describe('the counts of limits', () => {
  it('are purged by purge, with the same instant', async () => {
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

  it('do not stop the purge of records if they cannot be purged themselves', async () => {
    const { tokens, leases, clock } = setUpLimits();
    await tokens.issue({ account: 'ada', scopes: [SCOPE], ttlSeconds: 1 });
    clock.advance(60);
    leases.fault = () => Promise.reject(new Error('down'));

    expect(await tokens.purge({ before: clock.now() })).toBe(1);
  });

  it('are kept longer when the expiry of a token moves, even if the token is not used', async () => {
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
    leases.fault = () => Promise.reject(new Error('down'));
    const later = new Date(expiresAt.getTime() + 1000);
    expect((await tokens.patch('ada', id, { expiresAt: later })).expiresAt).toEqual(later);
  });

  it('are closed with the service, after unspent leases were given back', async () => {
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
