import { describe, expect, it } from 'vitest';
import type { TokenEvent } from '../../src/events.ts';
import type { ChangeOptions, ModifyInput, PatchInput } from '../../src/input.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import type { TokenService } from '../../src/service.ts';
import type { IssuedToken, Token, TokenRecord } from '../../src/token.ts';
import {
  codeOf,
  forge,
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

const NEED = { scope: SCOPE };

async function issued(
  options: Parameters<typeof setUp>[0] = {},
): Promise<Setting & { token: IssuedToken }> {
  const setting = setUp(options);
  const token = await setting.tokens.issue({
    account: 'acme',
    scopes: [SCOPE, OTHER_SCOPE],
    name: 'CI',
    metadata: { team: 'ops' },
  });
  setting.store.takeCalls();
  return { ...setting, token };
}

describe('get', () => {
  it('shows a token by id and by value', async () => {
    const { tokens, token } = await issued();
    const { value, ...shown } = token;

    expect(await tokens.get('acme', token.id)).toEqual(shown);
    expect(await tokens.get('acme', value)).toEqual(shown);
  });

  it('shows the value where it is kept, also after changes', async () => {
    const { tokens, token } = await issued({ reveal: 'always' });
    await tokens.patch('acme', token.id, { name: 'other' });

    expect((await tokens.get('acme', token.id))?.value).toBe(token.value);
    expect((await tokens.list({ account: 'acme' })).tokens[0]?.value).toBe(token.value);
    expect((await tokens.modify('acme', token.id, { scopes: [SCOPE] })).value).toBe(token.value);
    expect((await tokens.patch('acme', token.id, { name: null })).value).toBe(token.value);
  });

  it('shows it once where it is not kept', async () => {
    const { tokens, token } = await issued();
    const shown = [
      await tokens.get('acme', token.value),
      (await tokens.list({ account: 'acme' })).tokens[0],
      await tokens.modify('acme', token.id, { scopes: [SCOPE] }),
      await tokens.patch('acme', token.id, { name: null }),
    ];

    for (const one of shown) expect(Object.hasOwn(one ?? {}, 'value')).toBe(false);
  });

  it.each(['once', 'always'] as const)('never shows it in a verdict (%s)', async (reveal) => {
    const { tokens, token } = await issued({ reveal });
    const verdict = await tokens.verify(token.value, NEED);

    expect(verdict.ok).toBe(true);
    expect(JSON.stringify(verdict)).not.toContain(partsOf(token.value).secret);
    expect(verdict.ok && Object.hasOwn(verdict.token, 'value')).toBe(false);
  });

  it('shows no value any more once the service stops revealing', async () => {
    const { store, clock, tokens, token } = await issued({ reveal: 'always' });
    const once = setUp({ store, clock }).tokens;

    expect((await once.get('acme', token.id))?.value).toBeUndefined();
    expect((await tokens.get('acme', token.id))?.value).toBe(token.value);
  });

  it('shows an expired token as expired, from that very instant on', async () => {
    const { clock, tokens, token } = await issued();
    clock.advance(YEAR - 0.001);
    expect((await tokens.get('acme', token.id))?.state).toBe('active');
    clock.advance(0.001);
    expect((await tokens.get('acme', token.id))?.state).toBe('expired');
  });

  it('is given away by nothing that a caller does to the answer', async () => {
    const { tokens, token } = await issued();
    const shown = (await tokens.get('acme', token.id)) as Token;
    shown.expiresAt.setTime(8e15);
    shown.createdAt.setTime(0);

    expect(() => (shown.scopes as string[]).push('*:*/*')).toThrow(TypeError);
    expect(() => Object.assign(shown.metadata ?? {}, { team: 'x' })).toThrow(TypeError);
    const { value: _, ...before } = token;
    expect(await tokens.get('acme', token.id)).toEqual(before);
  });
});

describe('modify', () => {
  it('replaces scopes and expiry, and keeps the rest', async () => {
    const { clock, tokens, token } = await issued();
    clock.advance(60);
    const expiresAt = new Date(clock.now().getTime() + 1);
    const { value: _, ...before } = token;

    const modified = await tokens.modify('acme', token.id, {
      scopes: ['GET:a.example/a'],
      expiresAt,
    });

    expect(modified).toEqual({
      ...before,
      scopes: ['GET:a.example/a'],
      requested: ['GET:a.example/a'],
      expiresAt,
      version: 2,
    });
    expect(await tokens.get('acme', token.value)).toEqual(modified);
  });

  it('is in force the moment it resolves', async () => {
    const { tokens, token } = await issued();
    expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
    await tokens.modify('acme', token.id, { scopes: [OTHER_SCOPE] });

    expect(await tokens.verify(token.value, NEED)).toMatchObject({ reason: 'insufficient_scope' });
  });

  it('expands against the catalog of now', async () => {
    let catalog = ScopeCatalog.from([SCOPE, OTHER_SCOPE]);
    const { tokens, token } = await issued({ catalog: () => catalog });
    catalog = ScopeCatalog.from([SCOPE, 'GET:shop.example/stock']);
    const modified = await tokens.modify('acme', token.id, { scopes: ['*:shop.example/*'] });

    expect(modified.scopes).toEqual(['GET:shop.example/orders', 'GET:shop.example/stock']);
    expect(await codeOf(tokens.modify('acme', token.id, { scopes: [OTHER_SCOPE] }))).toBe(
      'scope_unmatched',
    );
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['no scopes', { scopes: undefined }, 'scopes_required'],
    ['an empty list', { scopes: [] }, 'scopes_required'],
    ['a bad scope', { scopes: ['x'] }, 'invalid_scope'],
    ['an unknown member', { scopes: [SCOPE], name: 'x' }, 'invalid_request'],
    ['a ttl', { scopes: [SCOPE], ttlSeconds: 60 }, 'invalid_request'],
    ['an expiry in seconds', { scopes: [SCOPE], expiresAt: 4_102_444_860 }, 'invalid_expire'],
    ['an expiry in text', { scopes: [SCOPE], expiresAt: '2100-06-01' }, 'invalid_expire'],
    ['an expiry of null', { scopes: [SCOPE], expiresAt: null }, 'invalid_expire'],
  ])('refuses %s without a store call', async (_, change, code) => {
    const { store, tokens, token } = await issued();
    expect(await codeOf(tokens.modify('acme', token.id, change as never))).toBe(code);
    expect(store.calls).toEqual([]);
  });
});

describe('patch', () => {
  it.each<[string, PatchInput, object]>([
    ['name', { name: 'other' }, { name: 'other' }],
    ['no name', { name: null }, { name: undefined }],
    ['metadata, whole', { metadata: { a: 1 } }, { metadata: { a: 1 } }],
    ['no metadata', { metadata: null }, { metadata: undefined }],
    ['scopes', { scopes: [SCOPE] }, { scopes: [SCOPE], requested: [SCOPE] }],
    [
      'one scope more',
      { addScopes: ['GET:a.example/a'] },
      {
        scopes: ['GET:a.example/a', SCOPE, OTHER_SCOPE],
        requested: ['GET:a.example/a', SCOPE, OTHER_SCOPE],
      },
    ],
    ['one scope that is held', { addScopes: [SCOPE] }, {}],
    [
      'one scope less',
      { removeScopes: [SCOPE] },
      { scopes: [OTHER_SCOPE], requested: [OTHER_SCOPE] },
    ],
    [
      'one for all others',
      { addScopes: ['GET:a.example/a'], removeScopes: ['*:shop.example/*'] },
      { scopes: ['GET:a.example/a'], requested: ['GET:a.example/a'] },
    ],
    [
      'an expiry',
      { expiresAt: new Date('2100-06-01T00:00:00.123Z') },
      { expiresAt: new Date('2100-06-01T00:00:00.123Z') },
    ],
  ])('changes %s and nothing else', async (_, change, fields) => {
    const { clock, tokens, token } = await issued();
    clock.advance(60);
    const { value: _value, ...before } = token;
    const patched = await tokens.patch('acme', token.id, change);

    expect(patched).toEqual({ ...before, version: 2, ...fields });
    expect(await tokens.get('acme', token.value)).toEqual(patched);
  });

  it.each<[string, string[], string[], string[] | string]>([
    ['itself', ['GET:a.example/a', 'GET:b.example/b'], ['GET:a.example/a'], ['GET:b.example/b']],
    [
      'one above it',
      ['GET:a.example/a/b', 'GET:b.example/b'],
      ['GET:a.example/a'],
      ['GET:b.example/b'],
    ],
    ['one below it', ['GET:a.example/a'], ['GET:a.example/a/b'], 'scope_unmatched'],
    ['one beside it', ['GET:a.example/a'], ['GET:a.example/ab'], 'scope_unmatched'],
    [
      'one that cuts it',
      ['*:a.example/a', 'GET:b.example/b'],
      ['GET:a.example/a'],
      'scope_unmatched',
    ],
    [
      'one that covers one and cuts another',
      ['GET:a.example/a', '*:a.example/b'],
      ['GET:a.example/*'],
      'scope_unmatched',
    ],
    [
      'one that covers, and one that covers none',
      ['GET:a.example/a', 'GET:b.example/b'],
      ['GET:a.example/a', 'GET:c.example/c'],
      'scope_unmatched',
    ],
    ['all', ['GET:a.example/a'], ['*:*/*'], 'scopes_required'],
  ])('removing by %s', async (_, scopes, removeScopes, expected) => {
    const { store, tokens } = setUp();
    const token = await tokens.issue({ account: 'acme', scopes });
    const before = await recordOf(store, token.id);
    const patched = tokens.patch('acme', token.id, { removeScopes });

    if (typeof expected !== 'string') expect((await patched).scopes).toEqual(expected);
    else {
      expect(await codeOf(patched)).toBe(expected);
      expect(await recordOf(store, token.id)).toEqual(before);
    }
  });

  it('names what could not be removed', async () => {
    const { tokens, token } = await issued();
    const error = await refusalOf(
      tokens.patch('acme', token.id, { removeScopes: [SCOPE, 'GET:c.example/c'] }),
    );
    expect(error.details).toEqual({ scopes: ['GET:c.example/c'], member: 'removeScopes' });
    expect(error.message).toMatch(/^removeScopes: /);
  });

  it.each([
    [4095, true],
    [4096, false],
  ])('holds %d scopes and one more: %s', async (count, isGood) => {
    const { tokens } = setUp();
    const scopes = Array.from({ length: count }, (_, i) => `GET:a.example/${i}`);
    const { id } = await tokens.issue({ account: 'acme', scopes });
    const patched = tokens.patch('acme', id, { addScopes: ['GET:b.example/b'] });

    if (isGood) expect((await patched).scopes).toHaveLength(4096);
    else expect(await codeOf(patched)).toBe('too_many_scopes');
  });

  it('adds only what the catalog has', async () => {
    const { tokens, token } = await issued({ catalog: ScopeCatalog.from([SCOPE, OTHER_SCOPE]) });
    const patched = tokens.patch('acme', token.id, { addScopes: ['GET:a.example/a'] });

    expect(await codeOf(patched)).toBe('scope_unmatched');
    expect((await tokens.patch('acme', token.id, { addScopes: ['*:*/*'] })).scopes).toEqual([
      SCOPE,
      OTHER_SCOPE,
    ]);
  });

  it('may take away what the catalog no longer has', async () => {
    let catalog = ScopeCatalog.from([SCOPE, OTHER_SCOPE]);
    const { tokens, token } = await issued({ catalog: () => catalog });
    catalog = ScopeCatalog.from([SCOPE]);

    expect((await tokens.patch('acme', token.id, { removeScopes: [OTHER_SCOPE] })).scopes).toEqual([
      SCOPE,
    ]);
  });

  it.each<[string, unknown, string]>([
    ['nothing', {}, 'invalid_request'],
    ['only undefined', { name: undefined, scopes: undefined }, 'invalid_request'],
    ['scopes beside addScopes', { scopes: [SCOPE], addScopes: [SCOPE] }, 'invalid_request'],
    ['scopes beside removeScopes', { scopes: [SCOPE], removeScopes: [SCOPE] }, 'invalid_request'],
    ['an empty addScopes', { addScopes: [] }, 'scopes_required'],
    ['an empty removeScopes', { removeScopes: [] }, 'scopes_required'],
    ['a bad scope to remove', { removeScopes: ['x'] }, 'invalid_scope'],
    ['an account', { account: 'b' }, 'invalid_request'],
    ['an id', { id: NO_ID, name: 'x' }, 'invalid_request'],
    ['an own __proto__', JSON.parse('{"__proto__":{"name":"x"}}'), 'invalid_request'],
    ['no expiry', { expiresAt: null }, 'invalid_expire'],
    ['no object', null, 'invalid_request'],
    ['a list', [], 'invalid_request'],
  ])('refuses %s without a store call', async (_, change, code) => {
    const { store, tokens, token } = await issued();
    expect(await codeOf(tokens.patch('acme', token.id, change as PatchInput))).toBe(code);
    expect(store.calls).toEqual([]);
  });
});

describe('dryRun', () => {
  it.each<[string, (tokens: TokenService, id: string) => Promise<unknown>]>([
    [
      'modify',
      (tokens, id) =>
        tokens.modify('acme', id, { scopes: [SCOPE, 'GET:a.example/a'] }, { dryRun: true }),
    ],
    [
      'patch',
      (tokens, id) =>
        tokens.patch(
          'acme',
          id,
          { addScopes: ['GET:a.example/a'], removeScopes: [OTHER_SCOPE] },
          { dryRun: true },
        ),
    ],
  ])('of %s tells the result and the difference, and writes nothing', async (_, change) => {
    const { store, tokens, token } = await issued();
    const before = await recordOf(store, token.id);
    store.takeCalls();
    const result = await change(tokens, token.id);

    expect(result).toMatchObject({
      id: token.id,
      scopes: ['GET:a.example/a', SCOPE],
      diff: { added: ['GET:a.example/a'], removed: [OTHER_SCOPE] },
    });
    expect(store.takeCalls()).toEqual(['find']);
    expect(await recordOf(store, token.id)).toEqual(before);
  });

  it('refuses what the change itself would refuse', async () => {
    const { clock, tokens, token } = await issued();
    const dry = (change: PatchInput, id: string = token.id) =>
      codeOf(tokens.patch('acme', id, change, { dryRun: true }));

    expect(await dry({ removeScopes: ['GET:c.example/c'] })).toBe('scope_unmatched');
    expect(await dry({ name: 'x' }, NO_ID)).toBe('not_found');
    expect(
      await codeOf(tokens.patch('acme', token.id, { name: 'x' }, { dryRun: true, ifVersion: 2 })),
    ).toBe('version_conflict');
    clock.advance(YEAR);
    expect(await dry({ name: 'x' })).toBe('token_expired');
  });

  it.each<[unknown]>([['yes'], [1], [null]])('is true or false, not %s', async (dryRun) => {
    const { tokens, token } = await issued();
    const patched = tokens.patch('acme', token.id, { name: 'x' }, { dryRun } as never);
    expect(await codeOf(patched)).toBe('invalid_request');
  });

  it('gives no difference where it was not asked for', async () => {
    const { tokens, token } = await issued();
    const options = { dryRun: false };
    expect(await tokens.patch('acme', token.id, { name: 'x' }, options)).not.toHaveProperty('diff');
  });
});

describe('ifVersion', () => {
  type Change = (tokens: TokenService, id: string, ifVersion: number) => Promise<unknown>;
  const CHANGES: [string, Change][] = [
    [
      'modify',
      (tokens, id, ifVersion) => tokens.modify('acme', id, { scopes: [SCOPE] }, { ifVersion }),
    ],
    ['patch', (tokens, id, ifVersion) => tokens.patch('acme', id, { name: 'x' }, { ifVersion })],
    ['rotate', (tokens, id, ifVersion) => tokens.rotate('acme', id, { ifVersion })],
    ['revoke', (tokens, id, ifVersion) => tokens.revoke('acme', id, { ifVersion })],
  ];

  it.each(CHANGES)('of %s must be the version of now', async (_, change) => {
    const { tokens, token } = await issued();
    await tokens.patch('acme', token.id, { name: 'second' });

    for (const stale of [1, 3]) {
      const error = await refusalOf(change(tokens, token.id, stale));
      expect(error.code).toBe('version_conflict');
      expect(error.details).toEqual({ version: 2 });
    }
    await expect(change(tokens, token.id, 2)).resolves.toBeDefined();
  });

  it.each<[unknown]>([[0], [-1], [1.5], ['1'], [Number.NaN], [null], [2 ** 53]])(
    'is a whole number of 1 or more, not %s',
    async (ifVersion) => {
      const { store, tokens, token } = await issued();
      for (const [, change] of CHANGES) {
        expect(await codeOf(change(tokens, token.id, ifVersion as number))).toBe('invalid_request');
      }
      expect(store.calls).toEqual([]);
    },
  );
});

describe('a change that others keep winning', () => {
  it.each([
    [999, true],
    [1000, false],
  ])('%d times in a row is made: %s', async (count, isMade) => {
    const { store, tokens, token } = await issued();
    let left = count;
    store.break('replace', async (next: TokenRecord) =>
      left-- > 0 ? false : store.inner.replace(next),
    );
    const changed = tokens.patch('acme', token.id, { name: 'x' });

    if (isMade) expect((await changed).name).toBe('x');
    else expect(await codeOf(changed)).toBe('version_conflict');
    expect((await tokens.get('acme', token.id))?.version).toBe(isMade ? 2 : 1);
  });
});

describe('a change of this process, where records are kept in memory', () => {
  it.each<[string, (tokens: TokenService, id: string) => Promise<unknown>, string]>([
    ['modify', (t, id) => t.modify('acme', id, { scopes: [OTHER_SCOPE] }), 'insufficient_scope'],
    ['patch', (t, id) => t.patch('acme', id, { removeScopes: [SCOPE] }), 'insufficient_scope'],
    ['rotate', (t, id) => t.rotate('acme', id), 'unknown'],
    ['revoke', (t, id) => t.revoke('acme', id), 'revoked'],
    ['revokeAll', (t) => t.revokeAll('acme'), 'revoked'],
  ])('is in force the moment it resolves: %s', async (_, change, reason) => {
    const { store, tokens, token } = await issued({ cache: { maxStaleMs: 60_000 } });
    for (let i = 0; i < 2; i++) expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
    expect(store.takeCalls()).toEqual(['find']);
    await change(tokens, token.id);

    expect(await tokens.verify(token.value, NEED)).toMatchObject({ ok: false, reason });
  });
});

const COUNT = 64;

/** Concurrent patches, each of which adds a scope of its own, by one or several services in turn. */
function patchAll(services: readonly TokenService[], id: string, options: ChangeOptions = {}) {
  return Promise.all(
    Array.from({ length: COUNT }, (_, i) => {
      const tokens = services[i % services.length] as TokenService;
      const change = { addScopes: [`GET:a.example/${i}`] };
      return tokens.patch('acme', id, change, options).then(
        ({ version }) => version,
        (error) => error.code as string,
      );
    }),
  );
}

describe.each([1, 2])('64 changes at once, by %d processes', (processes) => {
  async function together(options: ChangeOptions) {
    const { store, tokens, token } = await issued();
    const services = [tokens, setUp({ store }).tokens].slice(0, processes);
    const outcomes = await patchAll(services, token.id, options);
    return { outcomes, record: await recordOf(store, token.id) };
  }

  it('with ifVersion: exactly one wins, and the rest are told', async () => {
    const { outcomes, record } = await together({ ifVersion: 1 });

    expect(outcomes.filter((outcome) => outcome === 2)).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'version_conflict')).toHaveLength(COUNT - 1);
    expect(record.version).toBe(2);
    expect(record.scopes).toHaveLength(3);
  });

  it('without: they are serial, and none is lost', async () => {
    const { outcomes, record } = await together({});

    expect(outcomes.map(Number).sort((a, b) => a - b)).toEqual(
      Array.from({ length: COUNT }, (_, i) => i + 2),
    );
    expect(record.version).toBe(COUNT + 1);
    expect(record.scopes).toHaveLength(COUNT + 2);
  });
});

describe('64 changes at once', () => {
  it('the control: by two processes over a store that does not compare, updates are lost', async () => {
    const { store, tokens, token } = await issued();
    let kept = await recordOf(store, token.id);
    store.break('find', async () => [kept]);
    store.break('replace', async (next: never) => {
      kept = next;
      return true;
    });
    await patchAll([tokens, setUp({ store }).tokens], token.id);

    expect(kept.version).toBeLessThan(COUNT + 1);
  });

  it('of one process take two reads and two writes', async () => {
    const { store, tokens, token } = await issued();
    store.takeCalls();

    const versions = await patchAll([tokens], token.id);

    expect(versions).toEqual(Array.from({ length: COUNT }, (_, i) => i + 2));
    expect(store.takeCalls()).toEqual(['find', 'replace', 'find', 'replace']);
  });

  it('are all made again over a change of another process', async () => {
    const { store, tokens, token } = await issued();
    const other = setUp({ store: store.inner }).tokens;
    let writes = 0;
    store.break('replace', async (next: TokenRecord, version: number) => {
      writes += 1;
      if (writes === 2) await other.patch('acme', token.id, { addScopes: ['GET:a.example/other'] });
      return store.inner.replace(next, version);
    });

    const versions = await patchAll([tokens], token.id);

    expect(writes).toBe(3);
    expect(versions.sort((a, b) => Number(a) - Number(b)).at(-1)).toBe(COUNT + 2);
    expect((await recordOf(store, token.id)).scopes).toHaveLength(COUNT + 3);
  });

  it('that are refused leave the others as they are', async () => {
    const { store, tokens, token } = await issued();
    const patch = (change: PatchInput, ifVersion?: number) =>
      tokens.patch('acme', token.id, change, { ifVersion }).then(
        ({ version }) => version,
        (error) => error.code,
      );

    const outcomes = await Promise.all([
      patch({ name: 'first' }),
      patch({ removeScopes: [OTHER_SCOPE] }),
      patch({ removeScopes: [OTHER_SCOPE] }),
      patch({ name: 'late' }, 2),
      patch({ name: 'last' }, 3),
    ]);

    expect(outcomes).toEqual([2, 3, 'scope_unmatched', 'version_conflict', 4]);
    const { name, scopes, version } = await recordOf(store, token.id);
    expect({ name, scopes, version }).toEqual({ name: 'last', scopes: [SCOPE], version: 4 });
  });

  it('all fail when their write fails, and the next one is made', async () => {
    const { store, tokens, token } = await issued();
    store.break('replace', () => Promise.reject(new Error('away')));

    const outcomes = await patchAll([tokens], token.id);

    expect(new Set(outcomes)).toEqual(new Set(['store_unavailable']));
    store.mend();
    expect((await tokens.patch('acme', token.id, { name: 'back' })).version).toBe(2);
  });

  it('a modify and a revoke: whichever comes first, the token is dead', async () => {
    for (let round = 0; round < 20; round++) {
      const { tokens, token } = await issued();
      const calls = [
        () => tokens.revoke('acme', token.id),
        () => tokens.modify('acme', token.id, { scopes: [SCOPE] }).catch(() => false),
        () => tokens.rotate('acme', token.id, { graceSeconds: 60 }).catch(() => false),
      ];
      await Promise.all(calls.map((_, i) => calls[(i + round) % 3]?.()));

      expect(await tokens.get('acme', token.id)).toBeUndefined();
      expect((await tokens.verify(token.value, NEED)).ok).toBe(false);
      expect(await codeOf(tokens.patch('acme', token.id, { name: 'x' }))).toBe('not_found');
    }
  });

  it('many revokes: exactly one says that it did it', async () => {
    const { tokens, token } = await issued();
    const outcomes = await Promise.all(
      Array.from({ length: COUNT }, () => tokens.revoke('acme', token.id)),
    );
    expect(outcomes.filter(Boolean)).toHaveLength(1);
  });

  it('many rotations: the last one alone is good, and each was told its own value', async () => {
    const { tokens, token } = await issued();
    const rotated = await Promise.all(
      Array.from({ length: COUNT }, () => tokens.rotate('acme', token.id)),
    );
    const verdicts = await Promise.all(rotated.map(({ value }) => tokens.verify(value, NEED)));

    expect(new Set(rotated.map(({ value }) => value)).size).toBe(COUNT);
    expect(verdicts.map(({ ok }) => ok)).toEqual(
      rotated.map(({ version }) => version === COUNT + 1),
    );
  });
});

describe('a verb with the account forgotten', () => {
  it.each<[string, (tokens: TokenService, id: string) => Promise<unknown>]>([
    ['get', (tokens, id) => tokens.get(id, undefined as never)],
    ['modify', (tokens, id) => tokens.modify(id, undefined as never, { scopes: [SCOPE] })],
    ['revoke', (tokens, id) => tokens.revoke(id, undefined as never)],
    ['rotate', (tokens, id) => tokens.rotate(id, undefined as never)],
  ])('%s says so, and changes nothing', async (_name, call) => {
    const { tokens, token } = await issued();

    expect(await codeOf(call(tokens, token.id))).toBe('invalid_request');
    expect(await tokens.verify(token.value, NEED)).toMatchObject({ ok: true });
  });
});

describe('revoke', () => {
  it.each(['id', 'value'] as const)('by %s works once, at once and for good', async (by) => {
    const { tokens, token } = await issued();

    expect(await tokens.revoke('acme', token[by])).toBe(true);
    expect(await tokens.verify(token.value, NEED)).toEqual({ ok: false, reason: 'revoked' });
    expect(await tokens.get('acme', token[by])).toBeUndefined();
    expect((await tokens.list({ account: 'acme' })).tokens).toEqual([]);
    expect(await tokens.revoke('acme', token[by])).toBe(false);
  });

  it('by id asks the store once, whether there is such a token or not', async () => {
    const { store, tokens, token } = await issued();

    expect(await tokens.revoke('acme', token.id)).toBe(true);
    expect(await tokens.revoke('acme', NO_ID)).toBe(false);
    expect(store.takeCalls()).toEqual(['revoke', 'revoke']);
  });

  it('takes an expired token too', async () => {
    const { clock, tokens, token } = await issued();
    clock.advance(YEAR);
    expect(await tokens.revoke('acme', token.id)).toBe(true);
  });

  it('does not dry-run', async () => {
    const { tokens, token } = await issued();
    expect(await codeOf(tokens.revoke('acme', token.id, { dryRun: true } as never))).toBe(
      'invalid_request',
    );
    expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
  });

  it('all takes those of the account, expired ones included, and no other', async () => {
    const { clock, tokens, token } = await issued();
    const short = await tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: 1 });
    const other = await tokens.issue({ account: 'acmf', scopes: [SCOPE] });
    clock.advance(1);

    expect(await tokens.revokeAll('acme')).toBe(2);
    expect(await tokens.revokeAll('acme')).toBe(0);
    expect(await tokens.verify(token.value, NEED)).toMatchObject({ reason: 'revoked' });
    expect(await tokens.verify(short.value, NEED)).toMatchObject({ reason: 'revoked' });
    expect((await tokens.verify(other.value, NEED)).ok).toBe(true);
    expect(await codeOf(tokens.revokeAll(''))).toBe('invalid_request');
    expect(await codeOf(tokens.revokeAll(undefined as never))).toBe('invalid_request');
    const onProgress = 'each time' as never;
    expect(await codeOf(tokens.revokeAll('acme', { onProgress }))).toBe('invalid_request');
  });

  it('all goes in batches, between which others get a turn, and reports its progress', async () => {
    const { tokens, store } = setUp({ quotas: { tokensPerAccount: 3000 } });
    for (let i = 0; i < 2500; i++) await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    store.takeCalls();
    const progress: number[] = [];
    const seen = new Promise((resolve) => setImmediate(() => resolve([...progress])));

    const count = await tokens.revokeAll('acme', { onProgress: (done) => progress.push(done) });

    expect(await seen).toEqual([1000]);
    expect(count).toBe(2500);
    expect(progress).toEqual([1000, 2000]);
    expect(store.takeCalls()).toEqual(['revokeAll', 'revokeAll', 'revokeAll']);
    expect(store.calls.every(({ args }) => args[2] === 1000)).toBe(true);
    expect((await tokens.list({ account: 'acme' })).tokens).toEqual([]);
  });

  it('all that is cut says how far it came, and goes on where it ended', async () => {
    const events: TokenEvent[] = [];
    const { tokens, store } = setUp({
      quotas: { tokensPerAccount: 3000 },
      onEvent: (event) => events.push(event),
    });
    for (let i = 0; i < 2500; i++) await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    let batches = 0;
    store.break('revokeAll', (account: string, at: Date, limit: number) => {
      batches += 1;
      if (batches === 3) throw new Error('away');
      return store.inner.revokeAll(account, at, limit);
    });

    await expect(tokens.revokeAll('acme')).rejects.toMatchObject({
      code: 'store_unavailable',
      details: { count: 2000 },
    });

    store.mend();
    expect(await tokens.revokeAll('acme')).toBe(500);
    const counts = events.filter(({ type }) => type === 'revoked_all');
    expect(counts).toMatchObject([{ count: 2000 }, { count: 500 }]);
  });
});

describe('rotate', () => {
  it('gives a new value to the same token, and refuses the old one at once', async () => {
    const { tokens, token } = await issued();
    const rotated = await tokens.rotate('acme', token.value);
    const { value: _, ...before } = token;

    expect(rotated).toEqual({ ...before, version: 2, value: expect.any(String) });
    expect(rotated.value).not.toBe(token.value);
    expect(partsOf(rotated.value).id).toBe(token.id);
    expect(await tokens.verify(token.value, NEED)).toEqual({ ok: false, reason: 'unknown' });
    expect((await tokens.verify(rotated.value, NEED)).ok).toBe(true);
    expect(await tokens.get('acme', token.value)).toBeUndefined();
  });

  it.each([
    [59.999, true],
    [60, false],
    [61, false],
  ])('with 60 seconds of grace, after %d s the old value is good: %s', async (seconds, isGood) => {
    const { clock, tokens, token } = await issued();
    const rotated = await tokens.rotate('acme', token.id, { graceSeconds: 60 });
    clock.advance(seconds);

    expect((await tokens.verify(token.value, NEED)).ok).toBe(isGood);
    expect((await tokens.get('acme', token.value)) !== undefined).toBe(isGood);
    expect((await tokens.verify(rotated.value, NEED)).ok).toBe(true);
  });

  it('forgets the value before the last one, whatever grace it had', async () => {
    const { tokens, token } = await issued();
    const second = await tokens.rotate('acme', token.id, { graceSeconds: 60 });
    const third = await tokens.rotate('acme', token.id, { graceSeconds: 60 });

    expect((await tokens.verify(token.value, NEED)).ok).toBe(false);
    expect((await tokens.verify(second.value, NEED)).ok).toBe(true);
    expect((await tokens.verify(third.value, NEED)).ok).toBe(true);
    const last = await tokens.rotate('acme', token.id);
    for (const { value } of [token, second, third]) {
      expect((await tokens.verify(value, NEED)).ok).toBe(false);
    }
    expect((await tokens.verify(last.value, NEED)).ok).toBe(true);
  });

  it('lets no old value outlive the token, and no grace lengthen its life', async () => {
    const { clock, store, tokens } = setUp();
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: 30 });
    const rotated = await tokens.rotate('acme', token.id, { graceSeconds: 3600 });

    expect(rotated.expiresAt).toEqual(token.expiresAt);
    expect((await recordOf(store, token.id)).previousUntil).toEqual(token.expiresAt);
    await tokens.modify('acme', token.id, { scopes: [SCOPE] });
    clock.advance(30);
    expect(await tokens.verify(token.value, NEED)).toEqual({ ok: false, reason: 'unknown' });
    expect((await tokens.verify(rotated.value, NEED)).ok).toBe(true);
  });

  it('refuses both values after a revoke', async () => {
    const { tokens, token } = await issued();
    const rotated = await tokens.rotate('acme', token.id, { graceSeconds: 60 });
    await tokens.revoke('acme', token.id);

    expect(await tokens.verify(token.value, NEED)).toMatchObject({ reason: 'revoked' });
    expect(await tokens.verify(rotated.value, NEED)).toMatchObject({ reason: 'revoked' });
  });

  it('seals the new secret where values are shown, and drops a box where they are not', async () => {
    const { store, clock, tokens, token } = await issued({ reveal: 'always' });
    const rotated = await tokens.rotate('acme', token.id);
    expect((await tokens.get('acme', token.id))?.value).toBe(rotated.value);

    await setUp({ store, clock }).tokens.rotate('acme', token.id);
    expect((await recordOf(store, token.id)).box).toBeUndefined();
    expect((await tokens.get('acme', token.id))?.value).toBeUndefined();
  });

  it.each<[unknown, boolean]>([
    [0, true],
    [31_536_000, true],
    [31_536_001, false],
    [-1, false],
    [0.5, false],
    ['60', false],
    [null, false],
  ])('takes %s seconds of grace: %s', async (graceSeconds, isGood) => {
    const { tokens, token } = await issued();
    const rotated = tokens.rotate('acme', token.id, { graceSeconds } as never);
    if (isGood) expect((await rotated).version).toBe(2);
    else expect(await codeOf(rotated)).toBe('invalid_request');
  });
});

describe('key rotation', () => {
  const BOTH = [K2, { ...K1, status: 'verify' as const }];

  it('changes no token and loses none', async () => {
    const { store, clock, token } = await issued({ reveal: 'always' });
    const { tokens } = setUp({ store, clock, keys: BOTH, reveal: 'always' });
    const fresh = await tokens.issue({ account: 'acme', scopes: [SCOPE] });

    expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
    expect((await tokens.get('acme', token.id))?.value).toBe(token.value);
    expect(partsOf(fresh.value).kid).toBe('k2');
    expect(fresh.masked).toContain('acme_1k2');
    const rotated = await tokens.rotate('acme', token.id);
    expect(partsOf(rotated.value).kid).toBe('k2');
    expect((await tokens.verify(rotated.value, NEED)).ok).toBe(true);
  });

  it('refuses all values of a key that was dropped, without a store call', async () => {
    const { store, clock, token } = await issued();
    const { store: outer, tokens } = setUp({ store, clock, keys: [K2] });

    expect(await tokens.verify(token.value, NEED)).toEqual({ ok: false, reason: 'malformed' });
    expect(outer.calls).toEqual([]);
    expect(await tokens.get('acme', token.id)).toMatchObject({ id: token.id });
  });

  it('a ring of verifier keys verifies and revokes, and can do nothing that needs a whole key', async () => {
    const { store, clock, tokens, token } = await issued({ reveal: 'always' });
    const verifier = setUp({ store, clock, keys: tokens.verifierKeys(), reveal: 'always' });

    expect((await verifier.tokens.verify(token.value, NEED)).ok).toBe(true);
    expect(await verifier.tokens.verify(forge(), NEED)).toEqual({ ok: false, reason: 'unknown' });
    expect((await verifier.tokens.get('acme', token.id))?.value).toBeUndefined();
    expect((await verifier.tokens.list({ account: 'acme' })).tokens[0]?.value).toBeUndefined();
    expect(await codeOf(verifier.tokens.issue({ account: 'acme', scopes: [SCOPE] }))).toBe(
      'invalid_options',
    );
    expect(await codeOf(verifier.tokens.rotate('acme', token.id))).toBe('invalid_options');
    expect(await recordOf(store, token.id)).toMatchObject({ version: 1 });
    expect(
      verifier.store.calls.some(({ method }) => method === 'insert' || method === 'replace'),
    ).toBe(false);
    expect(await verifier.tokens.revoke('acme', token.id)).toBe(true);
  });
});

describe('what a managing account may not know', () => {
  const CHANGE: ModifyInput = { scopes: [SCOPE] };
  const VERBS: [string, (tokens: TokenService, valueOrId: string) => Promise<unknown>][] = [
    ['get', (tokens, it) => tokens.get('acme', it)],
    ['modify', (tokens, it) => tokens.modify('acme', it, CHANGE)],
    ['modify ifVersion', (tokens, it) => tokens.modify('acme', it, CHANGE, { ifVersion: 9 })],
    ['modify dryRun', (tokens, it) => tokens.modify('acme', it, CHANGE, { dryRun: true })],
    ['patch', (tokens, it) => tokens.patch('acme', it, { name: 'x' })],
    [
      'patch removeScopes',
      (tokens, it) => tokens.patch('acme', it, { removeScopes: ['GET:no.example/no'] }),
    ],
    ['revoke', (tokens, it) => tokens.revoke('acme', it)],
    ['revoke ifVersion', (tokens, it) => tokens.revoke('acme', it, { ifVersion: 9 })],
    ['rotate', (tokens, it) => tokens.rotate('acme', it)],
    ['explain', (tokens, it) => tokens.explain('acme', it, NEED)],
  ];

  /** Everything that `acme` could observe of a call. */
  async function outcomeOf(call: Promise<unknown>): Promise<unknown> {
    return call.then(
      (answer) => ({ answer }),
      ({ code, message, details }) => ({ code, message, details }),
    );
  }

  for (const by of ['id', 'value'] as const) {
    it.each(VERBS)(
      `%s by ${by} is the same for another's, an unknown and a revoked one`,
      async (_, verb) => {
        const { clock, store, tokens } = setUp();
        const others = await tokens.issue({ account: 'other', scopes: [SCOPE] });
        const expired = await tokens.issue({ account: 'other', scopes: [SCOPE], ttlSeconds: 1 });
        const revoked = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
        await tokens.revoke('acme', revoked.id);
        clock.advance(1);
        const unknown = by === 'id' ? NO_ID : forge();
        const wrongSecret = by === 'id' ? NO_ID : forge(others.id);
        const before = await Promise.all(
          [others, expired, revoked].map(({ id }) => recordOf(store, id)),
        );
        const outcomes = [];
        for (const it of [others[by], unknown, revoked[by], expired[by], wrongSecret]) {
          store.takeCalls();
          outcomes.push({ outcome: await outcomeOf(verb(tokens, it)), calls: store.takeCalls() });
        }
        const malformed = {
          outcome: await outcomeOf(verb(tokens, 'malformed')),
          calls: store.takeCalls(),
        };

        for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0]);
        expect(outcomes[0]?.calls.length).toBeGreaterThan(0);
        expect(malformed).toEqual({ outcome: outcomes[0]?.outcome, calls: [] });
        const after = await Promise.all(
          [others, expired, revoked].map(({ id }) => recordOf(store, id)),
        );
        expect(after).toEqual(before);
      },
    );
  }

  it('the control: its own token is another matter', async () => {
    const { tokens } = setUp();
    const own = await tokens.issue({ account: 'acme', scopes: [SCOPE] });

    expect(await tokens.get('acme', own.id)).toBeDefined();
    expect(await codeOf(tokens.modify('acme', own.id, CHANGE, { ifVersion: 9 }))).toBe(
      'version_conflict',
    );
    expect(await tokens.revoke('acme', own.id)).toBe(true);
  });

  it('an own wrong secret opens nothing either', async () => {
    const { tokens } = setUp();
    const own = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const forged = forge(own.id);

    expect(await tokens.get('acme', forged)).toBeUndefined();
    expect(await tokens.revoke('acme', forged)).toBe(false);
    expect(await codeOf(tokens.rotate('acme', forged))).toBe('not_found');
    expect(await tokens.verify(forged, NEED)).toEqual({ ok: false, reason: 'unknown' });
    expect((await tokens.verify(own.value, NEED)).ok).toBe(true);
  });
});
