import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TokenEvent } from '../../src/events.ts';
import type { RotateOptions } from '../../src/inputs/types.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import type { IssuedToken, RotatedToken, TokenRecord } from '../../src/token/record.ts';
import { runs } from '../laws.ts';
import {
  codeOf,
  K1,
  K2,
  NO_ID,
  OTHER_SCOPE,
  partsOf,
  recordOf,
  refusalOf,
  SCOPE,
  type Setting,
  setUp,
  YEAR,
} from '../support.ts';
import { faultsOf, SCHEDULES } from './rotation-schedules.ts';

const NEED = { scope: SCOPE };
const FIRST_USE = { activate: 'first-use', graceSeconds: 60 } as const;
const AS_USE = { countsAsUse: true };

interface Rotated extends Setting {
  readonly old: IssuedToken;
  readonly next: RotatedToken;
  readonly events: TokenEvent[];
  /** Whether a value is accepted. Resolves after the use was written. */
  accepts(value: string): Promise<boolean>;
}

/** A token whose new value waits for its first use. */
async function rotated(options: Parameters<typeof setUp>[0] = {}): Promise<Rotated> {
  const events: TokenEvent[] = [];
  const setting = setUp({ onEvent: (event) => events.push(event), ...options });
  const old = await setting.tokens.issue({ account: 'acme', scopes: [SCOPE], name: 'CI' });
  const next = await setting.tokens.rotate('acme', old.id, FIRST_USE);
  const accepts = async (value: string) => {
    const { ok } = await setting.tokens.verify(value, NEED);
    await turn();
    return ok;
  };
  return { ...setting, old, next, events, accepts };
}

describe('rotate with activate: first-use', () => {
  it('returns a pending value beside the old one, and changes nothing else', async () => {
    const { tokens, old, next, accepts } = await rotated();
    const { value: _, ...before } = old;

    expect(next).toEqual({
      ...before,
      version: 2,
      pending: true,
      value: expect.any(String),
      descendants: 0,
    });
    expect(next.value).not.toBe(old.value);
    expect(partsOf(next.value).id).toBe(old.id);
    expect(await tokens.get('acme', old.id)).toEqual({ ...before, version: 2, pending: true });
    expect(await accepts(old.value)).toBe(true);
    expect(await tokens.get('acme', next.value)).toMatchObject({ id: old.id, pending: true });
  });

  it('keeps the old value valid until the token expires, while the new one is not used', async () => {
    const { tokens, clock, old, accepts } = await rotated();
    clock.advance(YEAR - 1);

    expect(await accepts(old.value)).toBe(true);
    expect((await tokens.get('acme', old.id))?.pending).toBe(true);
    clock.advance(1);
    expect(await accepts(old.value)).toBe(false);
  });

  it.each([
    [59.999, true],
    [60, false],
  ])(
    'counts the grace period from the first use: the old value is accepted after %d s: %s',
    async (seconds, isGood) => {
      const { clock, old, next, events, accepts } = await rotated();
      clock.advance(1000);
      expect(await accepts(next.value)).toBe(true);
      events.length = 0;
      clock.advance(seconds);

      expect(await accepts(old.value)).toBe(isGood);
      expect(await accepts(next.value)).toBe(true);
      expect(events.some(({ type }) => type === 'reused')).toBe(!isGood);
    },
  );

  it('writes the first use once, even if 20 uses are concurrent', async () => {
    const { tokens, store, clock, old, next, events, accepts } = await rotated();
    clock.advance(5);
    const at = clock.now();
    events.length = 0;
    store.takeCalls();
    await Promise.all(Array.from({ length: 20 }, () => accepts(next.value)));
    await accepts(next.value);

    expect(store.takeCalls().filter((call) => call === 'replace')).toEqual(['replace']);
    expect(events.filter(({ type }) => type === 'activated')).toEqual([
      { type: 'activated', id: old.id, account: 'acme', at },
    ]);
    const { value: _, pending: __, descendants: ___, ...token } = next;
    expect(await tokens.get('acme', old.id)).toEqual({ ...token, version: 3 });
    const record = await recordOf(store, old.id);
    expect(record).toMatchObject({ rotatedAt: at, previousUntil: new Date(at.getTime() + 60_000) });
    expect(record.pending).toBeUndefined();
  });

  it('emits rotated with pending: true', async () => {
    const { events, old, clock } = await rotated();

    expect(events.at(-1)).toEqual({
      type: 'rotated',
      id: old.id,
      account: 'acme',
      pending: true,
      at: clock.now(),
    });
  });

  it.each<[string, (setting: Rotated) => unknown, boolean]>([
    ['verify', ({ tokens, next }) => tokens.verify(next.value, NEED), true],
    [
      'verify with fresh',
      ({ tokens, next }) => tokens.verify(next.value, NEED, { fresh: true }),
      true,
    ],
    ['allows', ({ tokens, next }) => tokens.allows(next.value, NEED), true],
    [
      'introspect with countsAsUse',
      ({ tokens, next }) => tokens.introspect(next.value, AS_USE),
      true,
    ],
    ['introspect', ({ tokens, next }) => tokens.introspect(next.value), false],
    ['a use of the old value', ({ tokens, old }) => tokens.verify(old.value, NEED), false],
    [
      'introspect of the old value',
      ({ tokens, old }) => tokens.introspect(old.value, AS_USE),
      false,
    ],
    [
      'a refused use',
      ({ tokens, next }) => tokens.verify(next.value, { scope: OTHER_SCOPE }),
      false,
    ],
    ['get', ({ tokens, next }) => tokens.get('acme', next.value), false],
    ['explain', ({ tokens, next }) => tokens.explain('acme', next.value, NEED), false],
    ['patch', ({ tokens, next }) => tokens.patch('acme', next.value, { name: 'x' }), false],
  ])('counts %s as the first use: $2', async (_, use, isUse) => {
    const setting = await rotated();
    await use(setting);
    await turn();

    const { pending } = (await setting.tokens.get('acme', setting.old.id)) ?? {};
    expect(pending).toBe(isUse ? undefined : true);
  });

  it('activates the new value if verifySync accepts it from the cache', async () => {
    const { tokens, old, next } = await rotated({ cache: { maxStaleMs: 1000 } });
    await tokens.verify(old.value, NEED);

    expect(tokens.verifySync(next.value, NEED)?.ok).toBe(true);
    await turn();
    expect((await tokens.get('acme', old.id))?.pending).toBeUndefined();
  });

  it('returns a value that a service accepts even if it cached the token before', async () => {
    const { store, clock, tokens, old } = await rotated();
    const other = setUp({ store: store.inner, clock, cache: { maxStaleMs: 1000 } });
    await other.tokens.verify(old.value, NEED);
    const { value } = await tokens.rotate('acme', old.id, FIRST_USE);

    expect((await other.tokens.verify(value, NEED)).ok).toBe(true);
  });

  it.each<[string, (setting: Rotated) => unknown, boolean]>([
    ['the store is down', ({ store }) => store.break('replace', () => Promise.reject()), true],
    [
      'the store returns undefined',
      ({ store }) => store.break('replace', async () => undefined),
      true,
    ],
    ['the answer is lost', ({ store }) => loseAnswers(store), false],
  ])(
    'makes up for a failed write of the first use on the next use if %s',
    async (_, fault, isPending) => {
      const setting = await rotated();
      const { tokens, store, clock, old, next, accepts } = setting;
      fault(setting);
      expect(await accepts(next.value)).toBe(true);
      store.mend();
      expect((await tokens.get('acme', old.id))?.pending).toBe(isPending || undefined);
      clock.advance(1000);
      expect(await accepts(old.value)).toBe(isPending);
      const useAt = clock.now();

      expect(await accepts(next.value)).toBe(true);
      expect((await tokens.get('acme', old.id))?.pending).toBeUndefined();
      if (isPending) expect((await recordOf(store, old.id)).rotatedAt).toEqual(useAt);
    },
  );

  it('stops writing on each use after 10 writes have failed', async () => {
    const { store, next, accepts } = await rotated();
    store.break('replace', () => Promise.reject(new Error('read-only')));
    store.takeCalls();
    for (let i = 0; i < 50; i++) expect(await accepts(next.value)).toBe(true);

    expect(store.takeCalls().filter((call) => call === 'replace')).toHaveLength(10);
  });

  it('writes nothing in the background to a store inside a transaction of the host', async () => {
    const { store, clock, next, old, tokens } = await rotated();
    const inside = Object.assign(new MemoryTokenStore(), { inTransaction: true });
    Object.assign(inside, { find: store.inner.find.bind(store.inner) });
    const service = new TokenService({ store: inside, keys: [K1], prefix: 'acme', clock });

    expect((await service.verify(next.value, NEED)).ok).toBe(true);
    await turn();
    expect((await tokens.get('acme', old.id))?.pending).toBe(true);
  });

  it('writes the first use before close resolves', async () => {
    const { tokens, store, old, next } = await rotated();
    await tokens.verify(next.value, NEED);
    await tokens.close();

    expect((await recordOf(store.inner, old.id)).pending).toBeUndefined();
  });

  it('ends the grace period at the expiry of the token at the latest', async () => {
    const { clock, store, tokens } = setUp();
    const old = await tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: 30 });
    const next = await tokens.rotate('acme', old.id, FIRST_USE);
    expect(next.expiresAt).toEqual(old.expiresAt);
    await tokens.verify(next.value, NEED);
    await turn();

    expect((await recordOf(store, old.id)).previousUntil).toEqual(old.expiresAt);
    await tokens.modify('acme', old.id, { scopes: [SCOPE] });
    clock.advance(30);
    expect((await tokens.verify(old.value, NEED)).ok).toBe(false);
  });

  it('ends both values on a revoke and at the expiry', async () => {
    for (const end of ['revoke', 'expire'] as const) {
      const { tokens, clock, old, next } = await rotated();
      if (end === 'revoke') await tokens.revoke('acme', next.value);
      else clock.advance(YEAR);

      const reason = end === 'revoke' ? 'revoked' : 'expired';
      expect(await tokens.verify(old.value, NEED)).toMatchObject({ reason });
      expect(await tokens.verify(next.value, NEED)).toMatchObject({ reason });
    }
  });

  it('lets get and list show the old value until the new one is used', async () => {
    const { tokens, old, next, accepts } = await rotated({ reveal: 'always' });
    expect((await tokens.get('acme', old.id))?.value).toBe(old.value);
    await tokens.patch('acme', old.id, { name: 'other' });
    expect((await tokens.list({ account: 'acme' })).tokens[0]?.value).toBe(old.value);

    await accepts(next.value);
    expect((await tokens.get('acme', old.id))?.value).toBe(next.value);
  });

  it('returns the masked form of the new value, while get shows the old one until the first use', async () => {
    const { store, clock, old } = await rotated();
    const keys = [K2, { ...K1, status: 'verify' as const }];
    const later = setUp({ store, clock, keys });
    const next = await later.tokens.rotate('acme', old.id, FIRST_USE);

    expect(partsOf(next.value).kid).toBe('k2');
    expect(next.masked).toBe(old.masked.replace('_1k1', '_1k2'));
    expect((await later.tokens.get('acme', old.id))?.masked).toBe(old.masked);
    await later.tokens.verify(next.value, NEED);
    await turn();
    expect((await later.tokens.get('acme', old.id))?.masked).toBe(next.masked);
  });

  it('gives the old value no grace period by default', async () => {
    const { tokens, old, accepts } = await rotated();
    const next = await tokens.rotate('acme', old.id, { activate: 'first-use' });

    expect(await accepts(old.value)).toBe(true);
    expect(await accepts(next.value)).toBe(true);
    expect(await accepts(old.value)).toBe(false);
  });
});

describe('a value that waits for its first use', () => {
  it('is replaced by another rotation, and refused from then on', async () => {
    const { tokens, old, next, events, accepts } = await rotated();
    const last = await tokens.rotate('acme', old.id, FIRST_USE);

    expect(await accepts(next.value)).toBe(false);
    expect(events.some(({ type }) => type === 'reused')).toBe(false);
    expect(await accepts(old.value)).toBe(true);
    expect(await accepts(last.value)).toBe(true);
  });

  it('is dropped by an immediate rotation', async () => {
    const { tokens, old, next, accepts } = await rotated();
    const last = await tokens.rotate('acme', old.id, { graceSeconds: 60 });

    expect(last.pending).toBeUndefined();
    expect(await accepts(next.value)).toBe(false);
    expect(await accepts(old.value)).toBe(true);
    expect(await accepts(last.value)).toBe(true);
  });

  it('is dropped by cancel, which returns the token without a value', async () => {
    const { tokens, old, next, events, accepts } = await rotated({ reveal: 'always' });
    events.length = 0;
    const token = await tokens.rotate('acme', old.id, { cancel: true });

    const { value: _, ...before } = old;
    expect(token).toEqual({ ...before, version: 3 });
    expect(events.map(({ type }) => type)).toEqual(['modified']);
    expect(await accepts(next.value)).toBe(false);
    expect(await accepts(old.value)).toBe(true);
  });

  it('can no longer be canceled after its first use: cancel changes nothing', async () => {
    const { tokens, old, next, events, accepts } = await rotated();
    await accepts(next.value);
    events.length = 0;

    expect(await tokens.rotate('acme', old.id, { cancel: true })).toMatchObject({ version: 3 });
    expect(events).toEqual([]);
    expect(await accepts(next.value)).toBe(true);
    const stale = tokens.rotate('acme', old.id, { cancel: true, ifVersion: next.version });
    expect(await codeOf(stale)).toBe('version_conflict');
  });

  it('survives other changes of the token', async () => {
    const { tokens, old, next, accepts } = await rotated();
    await tokens.patch('acme', old.id, { name: 'other' });
    await tokens.modify('acme', old.id, { scopes: [SCOPE, OTHER_SCOPE] });

    expect((await tokens.get('acme', old.id))?.pending).toBe(true);
    expect(await accepts(old.value)).toBe(true);
    expect(await accepts(next.value)).toBe(true);
  });

  it('stays valid if it is rotated right after its first use', async () => {
    const { tokens, old, next, accepts } = await rotated();
    const use = tokens.verify(next.value, NEED);
    expect((await use).ok).toBe(true);
    const last = await tokens.rotate('acme', old.id, FIRST_USE);

    expect(await accepts(next.value)).toBe(true);
    expect(await accepts(old.value)).toBe(true);
    expect(await accepts(last.value)).toBe(true);
  });

  it('is refused if a character is changed, and is hidden from other accounts', async () => {
    const { tokens, next } = await rotated();
    const last = next.value.at(-40) === 'x' ? 'y' : 'x';
    const forged = next.value.slice(0, -40) + last + next.value.slice(-39);

    expect((await tokens.verify(forged, NEED)).ok).toBe(false);
    expect(await tokens.get('eve', next.value)).toBeUndefined();
    expect(await codeOf(tokens.rotate('eve', next.value, { cancel: true }))).toBe('not_found');
  });
});

describe('rotate', () => {
  it.each<[object, string]>([
    [{ activate: 'now' }, 'activate must be "first-use"; got a text'],
    [{ activate: true }, 'activate must be "first-use"; got true'],
    [{ cancel: false }, 'cancel must be true; got false'],
    [{ cancel: true, graceSeconds: 0 }, 'cancel makes no new value, so it cannot be given'],
    [{ cancel: true, activate: 'first-use' }, 'cancel makes no new value, so it cannot be given'],
  ])('refuses the options %j', async (options, message) => {
    const { tokens, old } = await rotated();
    const refusal = await refusalOf(() => tokens.rotate('acme', old.id, options as RotateOptions));

    expect(refusal.code).toBe('invalid_request');
    expect(refusal.message).toContain(message);
  });

  it('refuses to cancel for a token that is unknown, has expired or has another version', async () => {
    const { tokens, clock, old } = await rotated();
    const cancel = (id: string, ifVersion?: number) =>
      codeOf(tokens.rotate('acme', id, { cancel: true, ifVersion }));

    expect(await cancel(NO_ID)).toBe('not_found');
    expect(await cancel(old.id, 1)).toBe('version_conflict');
    clock.advance(YEAR);
    expect(await cancel(old.id)).toBe('token_expired');
  });
});

describe('no schedule of rotations and uses', () => {
  it('locks a bearer out or ends a value early', async () => {
    await fc.assert(
      fc.asyncProperty(SCHEDULES, async (schedule) => {
        expect(await faultsOf(new MemoryTokenStore(), schedule)).toEqual([]);
      }),
      runs(0.5),
    );
  });

  it('the check finds rotations that replace the value immediately (the control)', async () => {
    const found = await fc.check(
      fc.asyncProperty(SCHEDULES, async (schedule) => {
        const faults = await faultsOf(new MemoryTokenStore(), schedule, 'immediately');
        expect(faults).not.toContain('a bearer has no value that works');
      }),
      { numRuns: 2000, endOnFailure: true },
    );
    expect(found.failed).toBe(true);
  });
});

/** Makes `replace` take effect and then fail, as if its answer were lost. */
function loseAnswers(store: Setting['store']): void {
  store.break('replace', async (next: TokenRecord, version: number) => {
    await store.inner.replace(next, version);
    throw new Error('lost');
  });
}
