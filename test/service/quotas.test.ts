import { describe, expect, it, vi } from 'vitest';
import { MAX_RECORD_BYTES } from '../../src/bounds.ts';
import type { TokenEvent } from '../../src/events.ts';
import type { QuotaOptions } from '../../src/inputs/options.ts';
import type { CountQuery } from '../../src/ports/token-store.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { recordBytes } from '../../src/token/record.ts';
import { listBytes } from '../../src/token/size.ts';
import {
  allOf,
  codeOf,
  K1,
  OTHER_SCOPE,
  RecordingStore,
  recordOf,
  refusalOf,
  SCOPE,
  setUp,
} from '../support.ts';

const scopesTo = (count: number) => Array.from({ length: count }, (_, i) => `GET:a.example/${i}`);
const issue = (tokens: TokenService, account = 'acme') =>
  tokens.issue({ account, scopes: [SCOPE] });

describe('tokensPerAccount', () => {
  const quotas = { tokensPerAccount: 2 };

  it('refuses one token more, and stores nothing of it', async () => {
    const { tokens } = setUp({ quotas });
    await issue(tokens);
    await issue(tokens);

    const error = await refusalOf(issue(tokens));

    expect(error.code).toBe('quota_exceeded');
    expect(error.details).toEqual({ quota: 'tokensPerAccount', max: 2 });
    expect(error.message).toContain('2 active or suspended tokens');
    expect((await tokens.list({ account: 'acme' })).tokens).toHaveLength(2);
  });

  it.each<[string, (setting: ReturnType<typeof setUp>, id: string) => Promise<unknown>, boolean]>([
    ['a revoke', ({ tokens }, id) => tokens.revoke('acme', id), true],
    ['revokeAll', ({ tokens }) => tokens.revokeAll('acme'), true],
    ['an expiry', async ({ clock }) => clock.advance(60), true],
    ['a new name', ({ tokens }, id) => tokens.patch('acme', id, { name: 'x' }), false],
    ['a rotation', ({ tokens }, id) => tokens.rotate('acme', id), false],
    ['all but the last second of a lifetime', async ({ clock }) => clock.advance(59), false],
  ])('has room again after %s: $2', async (_, change, hasRoom) => {
    const setting = setUp({ quotas });
    const { id } = await setting.tokens.issue({
      account: 'acme',
      scopes: [SCOPE],
      ttlSeconds: 60,
    });
    await issue(setting.tokens);
    await change(setting, id);

    if (hasRoom) expect(await issue(setting.tokens)).toMatchObject({ account: 'acme' });
    else expect(await codeOf(issue(setting.tokens))).toBe('quota_exceeded');
  });

  it('counts accounts separately, comparing their names byte by byte', async () => {
    const { tokens } = setUp({ quotas });
    await issue(tokens);
    await issue(tokens);

    for (const account of ['Acme', 'acme ', 'other']) {
      expect(await issue(tokens, account)).toMatchObject({ account });
    }
    expect(await codeOf(issue(tokens))).toBe('quota_exceeded');
  });

  it('is 10 000 by default', async () => {
    const { tokens } = setUp();
    for (let i = 0; i < 10_000; i++) await issue(tokens);

    expect((await refusalOf(issue(tokens))).details).toEqual({
      quota: 'tokensPerAccount',
      max: 10_000,
    });
    expect(await issue(tokens, 'other')).toMatchObject({ account: 'other' });
  });

  it('is counted before each token near the bound', async () => {
    const { store, tokens } = setUp({ quotas });
    await issue(tokens);
    await issue(tokens);
    await codeOf(issue(tokens));

    expect(store.takeCalls()).toEqual(['count', 'insert', 'count', 'insert', 'count']);
  });
});

describe('far from the quota', () => {
  const quotas = { tokensPerAccount: 160 };
  const countsOf = ({ store }: ReturnType<typeof setUp>) =>
    store.takeCalls().filter((method) => method === 'count').length;

  it('a count is trusted for a sixteenth of the room that was left', async () => {
    const setting = setUp({ quotas });
    for (let index = 0; index < 11; index += 1) await issue(setting.tokens);
    expect(countsOf(setting)).toBe(1);
    await issue(setting.tokens);
    expect(countsOf(setting)).toBe(1);
    for (let index = 0; index < 148; index += 1) await issue(setting.tokens);

    expect(countsOf(setting)).toBeLessThan(60);
    expect(await codeOf(issue(setting.tokens))).toBe('quota_exceeded');
  });

  it.each([
    [59, 0],
    [60, 1],
    [-59, 0],
    [-10_800, 1],
  ])(
    'a count is trusted for a minute: after %i seconds there are %i more',
    async (seconds, more) => {
      const setting = setUp({ quotas });
      await issue(setting.tokens);
      countsOf(setting);
      setting.clock.advance(seconds);
      await issue(setting.tokens);

      expect(countsOf(setting)).toBe(more);
    },
  );

  it('others may exceed it together with this process by a sixteenth', async () => {
    const one = setUp({ quotas });
    const other = setUp({ store: one.store, clock: one.clock, quotas });
    await issue(one.tokens);
    for (let index = 0; index < 159; index += 1) await issue(other.tokens);
    for (let index = 0; index < 10; index += 1) await issue(one.tokens);

    expect(await codeOf(issue(one.tokens))).toBe('quota_exceeded');
    expect(await codeOf(issue(other.tokens))).toBe('quota_exceeded');
  });

  it.each([1, 15, 16, 17, 100])(
    'one process alone never exceeds %i, whatever it does at once',
    async (max) => {
      const setting = setUp({ quotas: { tokensPerAccount: max } });
      const asked = Array.from({ length: max + 20 }, () => issue(setting.tokens));
      const outcomes = await Promise.allSettled(asked);

      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(max);
      expect(countsOf(setting)).toBeLessThanOrEqual(20);
    },
  );

  it('refuses nobody who has room while others are being inserted', async () => {
    const { store, tokens } = setUp({ quotas: { tokensPerAccount: 10 } });
    for (let round = 0; round < 5; round += 1) await Promise.all([issue(tokens), issue(tokens)]);
    await tokens.revokeAll('acme');
    const inserts: (() => void)[] = [];
    store.break('insert', async (record: never) => {
      await new Promise<void>((resolve) => inserts.push(resolve));
      return store.inner.insert(record);
    });
    const first = Array.from({ length: 5 }, () => issue(tokens));
    await vi.waitFor(() => expect(inserts).toHaveLength(5));
    const rest = Array.from({ length: 5 }, () => issue(tokens));
    const release = () => {
      for (const resolve of inserts.splice(0)) resolve();
    };
    await vi.waitFor(() => {
      release();
      expect(store.calls.filter(({ method }) => method === 'insert')).toHaveLength(20);
    });
    release();

    expect(await Promise.all([...first, ...rest])).toHaveLength(10);
    expect(await codeOf(issue(tokens))).toBe('quota_exceeded');
  });

  it('fails with store_unavailable if the store cannot count, and issues nothing', async () => {
    const { store, tokens } = setUp({ quotas });
    store.break('count', () => Promise.reject(new Error('down')));
    expect(await codeOf(Promise.race([issue(tokens), issue(tokens)]))).toBe('store_unavailable');
    expect(store.takeCalls()).toEqual(['count']);
    store.mend();

    expect(await issue(tokens)).toMatchObject({ account: 'acme' });
  });

  it('an insert that fails takes a place until the next count, and no longer', async () => {
    const { store, tokens } = setUp({ quotas: { tokensPerAccount: 1 } });
    store.break('insert', () => Promise.reject(new Error('down')));
    expect(await codeOf(issue(tokens))).toBe('store_unavailable');
    store.mend();

    expect(await issue(tokens)).toMatchObject({ account: 'acme' });
  });

  it('remembers a bounded number of accounts', async () => {
    const setting = setUp({ quotas });
    await issue(setting.tokens, 'first');
    for (let index = 0; index < 10_000; index += 1) await issue(setting.tokens, `a${index}`);
    countsOf(setting);
    await issue(setting.tokens, 'a9999');
    expect(countsOf(setting)).toBe(0);
    await issue(setting.tokens, 'first');

    expect(countsOf(setting)).toBe(1);
  });
});

describe('endedPerAccount', () => {
  const quotas = { tokensPerAccount: 10, endedPerAccount: 32 };
  const end = async ({ tokens }: ReturnType<typeof setUp>, account = 'acme') => {
    const { id } = await issue(tokens, account);
    await tokens.revoke(account, id);
    return id;
  };
  /** Another service on the same store: the first may be closed. */
  const reader = ({ store, clock }: ReturnType<typeof setUp>) => setUp({ store, clock }).tokens;
  const stored = async (setting: ReturnType<typeof setUp>) =>
    (await allOf(reader(setting).scan())).length;

  it('refuses nothing, and purges the oldest a sixteenth at a time', async () => {
    const events: TokenEvent[] = [];
    const setting = setUp({ quotas, onEvent: (event) => events.push(event) });
    const kept = await issue(setting.tokens);
    const ids: string[] = [];
    for (let index = 0; index < 32; index += 1) {
      setting.clock.advance(1);
      ids.push(await end(setting));
    }
    expect(await stored(setting)).toBe(33);
    events.length = 0;
    ids.push(await end(setting));
    await setting.tokens.close();

    const state = 'revoked' as const;
    const shown = await Promise.all(
      ids.slice(0, 4).map((id) => reader(setting).get('acme', id, { state })),
    );
    expect(shown.map((token) => token !== undefined)).toEqual([false, false, true, true]);
    expect(await reader(setting).get('acme', kept.id)).toBeDefined();
    expect(events.filter(({ type }) => type === 'purged')).toEqual([
      { type: 'purged', count: 2, early: true, at: setting.clock.now() },
    ]);
  });

  it('stays bounded while tokens are issued and revoked, at a constant cost', async () => {
    const setting = setUp({ quotas: { tokensPerAccount: 10, endedPerAccount: 160 } });
    for (let index = 0; index < 400; index += 1) await end(setting);
    setting.store.takeCalls();
    for (let index = 0; index < 400; index += 1) await end(setting);
    await setting.tokens.close();

    expect(await stored(setting)).toBeLessThanOrEqual(160 + 10);
    const counted = setting.store.calls.filter(({ method }) => method === 'count');
    const ofEnded = counted.filter(({ args }) => (args[0] as CountQuery).most.ended > 1);
    expect(ofEnded.length).toBeLessThanOrEqual(3 * (400 / 10));
    expect(
      setting.store.calls.filter(({ method }) => method === 'prune').length,
    ).toBeLessThanOrEqual(2 * (400 / 10));
  });

  it('counts expired tokens as well, and goes down from far above', async () => {
    const many = setUp();
    for (let index = 0; index < 300; index += 1) {
      await many.tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: 1 });
    }
    many.clock.advance(1);
    const setting = setUp({ store: many.store, clock: many.clock, quotas });
    await issue(setting.tokens);
    await setting.tokens.close();

    expect(await stored(setting)).toBeLessThanOrEqual(33);
  });

  it('forgets the usage of what it purges', async () => {
    const store = new MemoryTokenStore().usage;
    const setting = setUp({ quotas: { ...quotas, endedPerAccount: 1 }, usage: { store } });
    const { id, value } = await issue(setting.tokens);
    await setting.tokens.verify(value, { scope: SCOPE });
    await setting.tokens.revoke('acme', id);
    await store.add([{ id, refusals: 1 }]);
    await issue(setting.tokens);
    await vi.waitFor(async () => expect(await store.read([id])).toEqual([undefined]));
    await setting.tokens.close();
  });

  it('keeps what is left if the store cannot prune, and issues all the same', async () => {
    const setting = setUp({ quotas });
    setting.store.break('prune', () => Promise.reject(new Error('down')));
    for (let index = 0; index < 40; index += 1) await end(setting);

    expect(await stored(setting)).toBe(40);
  });

  it('leaves a transaction of the host alone', async () => {
    const store = new MemoryTokenStore();
    const outside = setUp({ store, quotas });
    for (let index = 0; index < 32; index += 1) await end(outside);
    const inTransaction = Object.assign(new RecordingStore(store), { inTransaction: true });
    const inside = new TokenService({
      store: inTransaction,
      keys: [K1],
      prefix: 'acme',
      clock: outside.clock,
      quotas,
    });
    await issue(inside);
    await inside.close();

    expect(await stored(outside)).toBe(33);
  });

  it('of a root is ten times what may be derived, and counts no others', async () => {
    const setting = setUp({ quotas: { ...quotas, derivedPerRoot: 2 } });
    const root = await issue(setting.tokens);
    for (let index = 0; index < 40; index += 1) {
      const { id } = await setting.tokens.derive(root.value, { scopes: [SCOPE] });
      await setting.tokens.revoke('acme', id);
    }
    await setting.tokens.close();

    expect(await stored(setting)).toBeLessThanOrEqual(20 + 2 + 1);
    expect(await reader(setting).get('acme', root.id)).toBeDefined();
  });
});

describe('scopesPerToken', () => {
  const quotas = { scopesPerToken: 3 };
  const catalog = ScopeCatalog.from(scopesTo(4));

  it.each<[string, (tokens: TokenService, id: string) => Promise<unknown>, boolean]>([
    ['issue of 3 scopes', (tokens) => tokens.issue({ account: 'a', scopes: scopesTo(3) }), true],
    ['issue of 4 scopes', (tokens) => tokens.issue({ account: 'a', scopes: scopesTo(4) }), false],
    [
      'issue of a wildcard for 4 scopes',
      (tokens) => tokens.issue({ account: 'a', scopes: ['*:*/*'] }),
      false,
    ],
    [
      'issue of 4 patterns for the same scope',
      (tokens) =>
        tokens.issue({
          account: 'a',
          scopes: ['*:*/0', '*:a.example/0', 'GET:*/0', 'GET:*.example/0'],
        }),
      false,
    ],
    ['modify to 4 scopes', (tokens, id) => tokens.modify('a', id, { scopes: scopesTo(4) }), false],
    ['patch to 3 scopes', (tokens, id) => tokens.patch('a', id, { scopes: scopesTo(3) }), true],
    ['patch to 4 scopes', (tokens, id) => tokens.patch('a', id, { scopes: scopesTo(4) }), false],
    [
      'adding scopes up to 3',
      (tokens, id) => tokens.patch('a', id, { addScopes: scopesTo(3) }),
      true,
    ],
    [
      'adding scopes up to 4',
      (tokens, id) => tokens.patch('a', id, { addScopes: scopesTo(4) }),
      false,
    ],
    ['a new name', (tokens, id) => tokens.patch('a', id, { name: 'x' }), true],
  ])('of 3 allows %s: $2', async (_, change, isGood) => {
    const { tokens } = setUp({ quotas, catalog });
    const { id } = await tokens.issue({ account: 'a', scopes: ['GET:a.example/0'] });
    const before = await tokens.get('a', id);
    const changed = change(tokens, id);

    if (isGood) return expect(await changed).toBeDefined();
    const error = await refusalOf(changed);
    expect(error.code).toBe('quota_exceeded');
    expect(error.details).toEqual({ quota: 'scopesPerToken', max: 3 });
    return expect(await tokens.get('a', id)).toEqual(before);
  });

  it('removes no scopes if it is lowered, and still lets a larger token shrink', async () => {
    const { store, clock, tokens } = setUp({ catalog });
    const { id } = await tokens.issue({ account: 'a', scopes: scopesTo(4) });
    const lower = setUp({ store, clock, quotas: { scopesPerToken: 2 }, catalog }).tokens;

    expect((await lower.get('a', id))?.scopes).toHaveLength(4);
    expect(await lower.patch('a', id, { name: 'x' })).toMatchObject({ name: 'x' });
    const { scopes } = await lower.patch('a', id, { removeScopes: ['GET:a.example/0'] });
    expect(scopes).toHaveLength(3);
    expect(await codeOf(lower.patch('a', id, { addScopes: ['GET:a.example/0'] }))).toBe(
      'quota_exceeded',
    );
  });
});

describe('the bytes of a record', () => {
  const wide = (count: number, length: number) =>
    Array.from({ length: count }, (_, i) => `GET:a.example/${`${i}`.padStart(length, 'x')}`);

  /** Scopes of which both lists, requested and granted, take half of the bound less `spare` bytes. */
  const scopesLeaving = (spare: number): string[] => {
    const scopes = wide(2031, 241);
    const left = MAX_RECORD_BYTES / 2 - spare - listBytes(scopes);
    return [...scopes, 'GET:b.example/'.padEnd(left - 3, 'y')];
  };

  it('are at most a mebibyte', async () => {
    const { store, tokens } = setUp();
    const { id } = await tokens.issue({ account: 'a', scopes: scopesLeaving(0) });

    expect(recordBytes(await recordOf(store, id))).toBe(MAX_RECORD_BYTES);
    expect((await tokens.get('a', id))?.scopes).toHaveLength(2032);
    const error = await refusalOf(tokens.issue({ account: 'a', scopes: scopesLeaving(-1) }));
    expect(error.code).toBe('quota_exceeded');
    expect(error.details).toEqual({ quota: 'recordBytes', max: MAX_RECORD_BYTES });
  });

  it('include metadata', async () => {
    const { tokens } = setUp();
    const { id } = await tokens.issue({ account: 'a', scopes: scopesLeaving(100) });
    const patch = (length: number) =>
      tokens.patch('a', id, { metadata: { a: 'x'.repeat(length) } });

    expect(await patch(200 - '{"a":""}'.length)).toMatchObject({ id });
    expect(await codeOf(patch(201 - '{"a":""}'.length))).toBe('quota_exceeded');
  });

  it('above the bound make a stored record fail with store_corrupt', async () => {
    const { store, tokens } = setUp();
    const { id, value } = await tokens.issue({ account: 'a', scopes: [SCOPE] });
    const record = await recordOf(store, id);
    store.break('find', async () => [{ ...record, requested: wide(4096, 300) }]);

    expect(await codeOf(tokens.get('a', id))).toBe('store_corrupt');
    expect(await codeOf(tokens.verify(value, { scope: SCOPE }))).toBe('store_corrupt');
    expect(await codeOf(tokens.introspect(value))).toBe('store_corrupt');
  });
});

describe('the requested scopes of a token', () => {
  const catalog = ScopeCatalog.from(
    Array.from({ length: 60 }, (_, i) => [`GET:a.example/s/${i}`, `POST:a.example/s/${i}`]).flat(),
  );

  it('do not grow by adding and removing scopes repeatedly', async () => {
    const { store, tokens } = setUp({ catalog });
    const { id } = await tokens.issue({ account: 'a', scopes: ['POST:a.example/s/0'] });
    for (let round = 0; round < 5; round++) {
      const added = Array.from({ length: 10 }, (_, i) => `a.example/s/${round * 10 + i + 1}`);
      await tokens.patch('a', id, { addScopes: added.map((scope) => `*:${scope}`) });
      await tokens.patch('a', id, { removeScopes: added.map((scope) => `GET:${scope}`) });
      await tokens.patch('a', id, { removeScopes: added.map((scope) => `POST:${scope}`) });
    }

    const { scopes, requested } = await recordOf(store, id);
    expect(scopes).toEqual(['POST:a.example/s/0']);
    expect(requested).toEqual(['POST:a.example/s/0']);
  });

  it('keep a wildcard while the token holds a scope from it', async () => {
    const { store, tokens } = setUp({ catalog });
    const { id } = await tokens.issue({ account: 'a', scopes: ['*:a.example/s/1'] });
    await tokens.patch('a', id, { removeScopes: ['GET:a.example/s/1'] });

    const { scopes, requested } = await recordOf(store, id);
    expect(scopes).toEqual(['POST:a.example/s/1']);
    expect(requested).toEqual(['*:a.example/s/1']);
  });

  it('have the same bound as the granted scopes', async () => {
    const { tokens } = setUp();
    const { id } = await tokens.issue({ account: 'a', scopes: scopesTo(4096) });
    expect(await codeOf(tokens.patch('a', id, { addScopes: [OTHER_SCOPE] }))).toBe(
      'too_many_scopes',
    );
  });
});

describe('quotas', () => {
  it.each<[QuotaOptions | Record<string, unknown>]>([
    [{ tokensPerAccount: 0 }],
    [{ tokensPerAccount: 1_000_001 }],
    [{ tokensPerAccount: 1.5 }],
    [{ endedPerAccount: 0 }],
    [{ endedPerAccount: 10_000_001 }],
    [{ derivedPerRoot: 0 }],
    [{ derivedPerRoot: 10_001 }],
    [{ tokensPerAccount: '10' }],
    [{ scopesPerToken: 0 }],
    [{ scopesPerToken: 4097 }],
    [{ tokens: 5 }],
  ])('refuse %o, naming the option', (quotas) => {
    const make = () => setUp({ store: new MemoryTokenStore(), quotas: quotas as QuotaOptions });
    const name = Object.keys(quotas)[0] === 'tokens' ? 'tokensPerAccount' : Object.keys(quotas)[0];
    expect(make).toThrow(expect.objectContaining({ code: 'invalid_options' }));
    expect(make).toThrow(String(name));
  });
});
