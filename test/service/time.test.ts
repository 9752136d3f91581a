import { afterAll, describe, expect, it } from 'vitest';
import { manualClock } from '../../src/testing/index.ts';
import type { Lifetime } from '../../src/token/record.ts';
import { codeOf, recordOf, refusalOf, SCOPE, setUp, YEAR } from '../support.ts';

const NEED = { scope: SCOPE };
const ISSUE = { account: 'acme', scopes: [SCOPE] };
const machineZone = process.env['TZ'];

afterAll(() => {
  if (machineZone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = machineZone;
});

// Node applies a new value of TZ immediately.
describe.each(['UTC', 'America/New_York', 'Asia/Kolkata'])('time in %s', (zone) => {
  function setUpIn(start?: string, lifetime?: Partial<Lifetime>) {
    process.env['TZ'] = zone;
    return setUp({ clock: manualClock(new Date(start ?? '2100-01-01T00:00:00.000Z')), lifetime });
  }

  it('has the offset of the zone (the control)', () => {
    process.env['TZ'] = zone;
    const offsets = { UTC: 0, 'America/New_York': 300, 'Asia/Kolkata': -330 };
    expect(new Date('2027-01-01T00:00:00Z').getTimezoneOffset()).toBe(
      offsets[zone as keyof typeof offsets],
    );
  });

  // The clocks of New York change on 2027-03-14 at 07:00Z and on 2027-11-07 at 06:00Z. A leap day and
  // the turn of a year must not matter either.
  it.each([
    '2027-03-14T06:59:59.999Z',
    '2027-03-13T12:00:00.000Z',
    '2027-11-07T05:59:59.999Z',
    '2027-11-06T23:30:00.123Z',
    '2028-02-29T00:00:00.000Z',
    '2027-12-31T23:59:59.999Z',
  ])('a lifetime that starts at %s lasts exactly its seconds', async (start) => {
    for (const ttlSeconds of [1, 3600, 86_400, 7 * 86_400, YEAR]) {
      const { tokens } = setUpIn(start);
      const token = await tokens.issue({ ...ISSUE, ttlSeconds });
      expect(token.expiresAt.getTime() - Date.parse(start)).toBe(ttlSeconds * 1000);
      expect(token.createdAt.toISOString()).toBe(start);
    }
    const { tokens } = setUpIn(start);
    const token = await tokens.issue(ISSUE);
    expect(token.expiresAt.getTime()).toBe(Date.parse(start) + 31_536_000_000);
    const modified = await tokens.modify('acme', token.id, { scopes: [SCOPE] });
    expect(modified.expiresAt.getTime()).toBe(Date.parse(start) + 31_536_000_000);
  });

  it.each([
    [3599.999, true],
    [3600, false],
    [3600.001, false],
    [10 * YEAR, false],
  ])('a token with a lifetime of an hour is valid after %d s: %s', async (seconds, isValid) => {
    const { clock, tokens } = setUpIn('2027-03-14T06:30:00.000Z');
    const token = await tokens.issue({ ...ISSUE, ttlSeconds: 3600 });
    clock.advance(seconds);
    const verdict = await tokens.verify(token.value, NEED);
    const shown = await tokens.get('acme', token.id);

    expect(verdict).toMatchObject(isValid ? { ok: true } : { ok: false, reason: 'expired' });
    expect(shown?.state).toBe(isValid ? 'active' : 'expired');
    expect((await tokens.list({ account: 'acme' })).tokens).toHaveLength(isValid ? 1 : 0);
    expect((await tokens.explain('acme', token.id, NEED)).allowed).toBe(isValid);
    for (const change of [
      () => tokens.modify('acme', token.id, { scopes: [SCOPE] }, { dryRun: true }),
      () => tokens.patch('acme', token.id, { name: 'x' }, { dryRun: true }),
      () => tokens.rotate('acme', token.id, { ifVersion: 1 }),
    ]) {
      if (isValid) await expect(change()).resolves.toBeDefined();
      else expect(await codeOf(change())).toBe('token_expired');
    }
  });

  it.each<[unknown, string | undefined]>([
    [1, undefined],
    [YEAR, undefined],
    [undefined, undefined],
    [0, 'invalid_ttl'],
    [-1, 'invalid_ttl'],
    [YEAR + 1, 'invalid_ttl'],
    [1.5, 'invalid_ttl'],
    ['3600', 'invalid_ttl'],
    [Number.NaN, 'invalid_ttl'],
    [Number.POSITIVE_INFINITY, 'invalid_ttl'],
    [null, 'invalid_ttl'],
    [3600n, 'invalid_ttl'],
  ])('the error code of issue with ttlSeconds of %o is %s', async (ttlSeconds, code) => {
    const { clock, store, tokens } = setUpIn();
    const call = tokens.issue({ ...ISSUE, ttlSeconds: ttlSeconds as number });

    if (code === undefined) {
      const seconds = (ttlSeconds as number | undefined) ?? YEAR;
      expect((await call).expiresAt.getTime()).toBe(clock.now().getTime() + seconds * 1000);
    } else {
      expect(await codeOf(call)).toBe(code);
      expect(store.calls).toEqual([]);
    }
  });

  it.each<[number, boolean]>([
    [1, true],
    [YEAR * 1000 - 1, true],
    [YEAR * 1000, true],
    [0, false],
    [-1, false],
    [YEAR * 1000 + 1, false],
    [Number.NaN, false],
    [8.64e15, false],
  ])('an expiry %d ms from now is accepted: %s', async (ms, isGood) => {
    const { clock, store, tokens } = setUpIn('2027-11-07T05:30:00.000Z');
    const { id } = await tokens.issue({ ...ISSUE, ttlSeconds: 3600 });
    const expiresAt = new Date(clock.now().getTime() + ms);
    const calls = [
      () => tokens.modify('acme', id, { scopes: [SCOPE], expiresAt }),
      () => tokens.patch('acme', id, { expiresAt }),
    ];

    for (const call of calls) {
      const before = await recordOf(store, id);
      if (isGood) expect((await call()).expiresAt).toEqual(expiresAt);
      else {
        expect(await codeOf(call())).toBe('invalid_expire');
        expect(await recordOf(store, id)).toEqual(before);
      }
    }
  });

  it('the maximum lifetime counts from each call, so lifetimes do not add up', async () => {
    const { clock, tokens } = setUpIn(undefined, { maxSeconds: 60 });
    const { id } = await tokens.issue(ISSUE);
    clock.advance(30);
    const at = (seconds: number) => new Date(clock.now().getTime() + seconds * 1000);

    expect(await codeOf(tokens.patch('acme', id, { expiresAt: at(60.001) }))).toBe(
      'invalid_expire',
    );
    expect((await tokens.patch('acme', id, { expiresAt: at(60) })).expiresAt).toEqual(at(60));
    expect((await tokens.modify('acme', id, { scopes: [SCOPE] })).expiresAt).toEqual(at(60));
    expect((await tokens.patch('acme', id, { name: 'x' })).expiresAt).toEqual(at(60));
    expect((await tokens.rotate('acme', id)).expiresAt).toEqual(at(60));
  });
});

describe('a lifetime or an expiry in milliseconds', () => {
  it('is refused with a message that says so', async () => {
    const { clock, tokens } = setUp();
    const ttl = await refusalOf(tokens.issue({ ...ISSUE, ttlSeconds: 3600 * 1000 * 1000 }));
    const { id } = await tokens.issue(ISSUE);
    const expiresAt = new Date(clock.now().getTime() * 1000);
    const expiry = await refusalOf(tokens.patch('acme', id, { expiresAt }));

    expect(ttl.message).toMatch(/milliseconds/);
    expect(expiry.message).toMatch(/milliseconds/);
    expect((await refusalOf(tokens.issue({ ...ISSUE, ttlSeconds: YEAR + 1 }))).message).not.toMatch(
      /milli/,
    );
  });
});

describe('lifetime options', () => {
  it.each<[Partial<Lifetime> | undefined, number, number]>([
    [undefined, YEAR, YEAR],
    [{}, YEAR, YEAR],
    [{ defaultSeconds: 60 }, 60, YEAR],
    [{ maxSeconds: 60 }, 60, 60],
    [{ defaultSeconds: 60, maxSeconds: 60 }, 60, 60],
    [{ defaultSeconds: 1, maxSeconds: 3600 }, 1, 3600],
  ])('of %o set a default of %d s and a maximum of %d s', async (lifetime, byDefault, max) => {
    const { clock, tokens } = setUp({ lifetime });
    const lives = async (ttlSeconds?: number) =>
      ((await tokens.issue({ ...ISSUE, ttlSeconds })).expiresAt.getTime() - clock.now().getTime()) /
      1000;

    expect(tokens.lifetime).toEqual({ defaultSeconds: byDefault, maxSeconds: max });
    expect(await lives()).toBe(byDefault);
    expect(await lives(max)).toBe(max);
    expect(await codeOf(tokens.issue({ ...ISSUE, ttlSeconds: max + 1 }))).toBe('invalid_ttl');
  });

  it.each<[unknown]>([
    [{ maxSeconds: 0 }],
    [{ maxSeconds: YEAR + 1 }],
    [{ maxSeconds: 1.5 }],
    [{ maxSeconds: '60' }],
    [{ maxSeconds: Number.POSITIVE_INFINITY }],
    [{ defaultSeconds: 0 }],
    [{ defaultSeconds: -1 }],
    [{ defaultSeconds: 61, maxSeconds: 60 }],
    [{ maxSecond: 60 }],
    [null],
    [60],
  ])('are refused: %o', (lifetime) => {
    expect(() => setUp({ lifetime: lifetime as Lifetime })).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
  });
});

describe('the clock', () => {
  it('is read once by each verb', async () => {
    let asked = 0;
    const manual = manualClock();
    const clock = {
      now() {
        asked += 1;
        return manual.now();
      },
    };
    const { tokens } = setUp({ clock });
    const token = await tokens.issue(ISSUE);
    const counts: Record<string, number> = { issue: asked };
    const calls: Record<string, () => Promise<unknown>> = {
      verify: () => tokens.verify(token.value, NEED),
      get: () => tokens.get('acme', token.value),
      list: () => tokens.list({ account: 'acme', scope: SCOPE }),
      modify: () => tokens.modify('acme', token.id, { scopes: [SCOPE] }),
      patch: () => tokens.patch('acme', token.id, { name: 'x' }),
      rotate: () => tokens.rotate('acme', token.id, { graceSeconds: 1 }),
      explain: () => tokens.explain('acme', token.id, NEED),
      revoke: () => tokens.revoke('acme', token.id),
      revokeAll: () => tokens.revokeAll('acme'),
      purge: () => tokens.purge({ before: manual.now() }),
    };
    for (const [verb, call] of Object.entries(calls)) {
      asked = 0;
      await call();
      counts[verb] = asked;
    }

    expect(Object.entries(counts).filter(([, count]) => count !== 1)).toEqual([]);
  });

  it.each([
    ['a second', 1, 'expired'],
    ['two hours', 7200, 'expired'],
    // A larger step is a correction: the time that was seen before was wrong.
    ['two hours and 1 ms', 7200.001, 'ok'],
  ])(
    'that steps back by %s after an expiry was seen makes verify give $2',
    async (_, back, expected) => {
      const { clock, tokens } = setUp();
      const token = await tokens.issue({ ...ISSUE, ttlSeconds: 3600 });
      clock.advance(3600);
      expect((await tokens.verify(token.value, NEED)).ok).toBe(false);
      clock.advance(-back);
      const verdict = await tokens.verify(token.value, NEED);

      expect(verdict.ok ? 'ok' : verdict.reason).toBe(expected);
    },
  );

  it('that steps back by a second makes new tokens expire as if it had not', async () => {
    const { clock, tokens } = setUp();
    const first = await tokens.issue(ISSUE);
    clock.advance(-1);
    expect((await tokens.issue(ISSUE)).expiresAt).toEqual(first.expiresAt);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('x');
      },
    ],
    ['returns an invalid Date', () => new Date(Number.NaN)],
    ['returns a number', () => 0],
  ])('that %s makes verify and issue fail with invalid_options', async (_, now) => {
    const { store, clock, tokens } = setUp();
    const token = await tokens.issue(ISSUE);
    const broken = setUp({ store, clock: { now } as typeof clock }).tokens;

    expect(await codeOf(broken.verify(token.value, NEED))).toBe('invalid_options');
    expect(await codeOf(broken.issue(ISSUE))).toBe('invalid_options');
  });
});
