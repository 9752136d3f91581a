import { describe, expect, it } from 'vitest';
import type { TokenEvent } from '../../src/events.ts';
import type { ChangeOptions, ModifyInput, PatchInput } from '../../src/inputs/types.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import type { TokenService } from '../../src/service.ts';
import type { IssuedToken, Token, TokenRecord } from '../../src/token/record.ts';
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
  it('returns a token by id and by value', async () => {
    const { tokens, token } = await issued();
    const { value, ...shown } = token;

    expect(await tokens.get('acme', token.id)).toEqual(shown);
    expect(await tokens.get('acme', value)).toEqual(shown);
  });

  it('shows the value with reveal: always, even after changes', async () => {
    const { tokens, token } = await issued({ reveal: 'always' });
    await tokens.patch('acme', token.id, { name: 'other' });

    expect((await tokens.get('acme', token.id))?.value).toBe(token.value);
    expect((await tokens.list({ account: 'acme' })).tokens[0]?.value).toBe(token.value);
    expect((await tokens.modify('acme', token.id, { scopes: [SCOPE] })).value).toBe(token.value);
    expect((await tokens.patch('acme', token.id, { name: null })).value).toBe(token.value);
  });

  it('omits the value with reveal: once, and so do list, modify and patch', async () => {
    const { tokens, token } = await issued();
    const shown = [
      await tokens.get('acme', token.value),
      (await tokens.list({ account: 'acme' })).tokens[0],
      await tokens.modify('acme', token.id, { scopes: [SCOPE] }),
      await tokens.patch('acme', token.id, { name: null }),
    ];

    for (const one of shown) {
      expect(one).toMatchObject({ id: token.id });
      expect(one).not.toHaveProperty('value');
    }
  });

  it.each(['once', 'always'] as const)(
    'a verdict of verify never holds the value (reveal: %s)',
    async (reveal) => {
      const { tokens, token } = await issued({ reveal });
      const verdict = await tokens.verify(token.value, NEED);

      expect(verdict.ok).toBe(true);
      expect(JSON.stringify(verdict)).not.toContain(partsOf(token.value).secret);
      expect(verdict.ok && Object.hasOwn(verdict.token, 'value')).toBe(false);
    },
  );

  it('omits a stored value in a service with reveal: once', async () => {
    const { store, clock, tokens, token } = await issued({ reveal: 'always' });
    const once = setUp({ store, clock }).tokens;

    expect((await once.get('acme', token.id))?.value).toBeUndefined();
    expect((await tokens.get('acme', token.id))?.value).toBe(token.value);
  });

  it('reports the state expired from the instant of expiry on', async () => {
    const { clock, tokens, token } = await issued();
    clock.advance(YEAR - 0.001);
    expect((await tokens.get('acme', token.id))?.state).toBe('active');
    clock.advance(0.001);
    expect((await tokens.get('acme', token.id))?.state).toBe('expired');
  });

  it('returns a copy: a caller that changes it does not change the stored token', async () => {
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
  it('replaces scopes and expiry, and leaves the rest unchanged', async () => {
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

  it('is in effect when it resolves', async () => {
    const { tokens, token } = await issued();
    expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
    await tokens.modify('acme', token.id, { scopes: [OTHER_SCOPE] });

    expect(await tokens.verify(token.value, NEED)).toMatchObject({ reason: 'insufficient_scope' });
  });

  it('expands scopes against the current catalog', async () => {
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
    ['missing scopes', { scopes: undefined }, 'scopes_required'],
    ['an empty list', { scopes: [] }, 'scopes_required'],
    ['a bad scope', { scopes: ['x'] }, 'invalid_scope'],
    ['an unknown member', { scopes: [SCOPE], name: 'x' }, 'invalid_request'],
    ['a ttl', { scopes: [SCOPE], ttlSeconds: 60 }, 'invalid_request'],
    [
      'an expiry as a number of seconds',
      { scopes: [SCOPE], expiresAt: 4_102_444_860 },
      'invalid_expire',
    ],
    ['an expiry as a string', { scopes: [SCOPE], expiresAt: '2100-06-01' }, 'invalid_expire'],
    ['an expiry of null', { scopes: [SCOPE], expiresAt: null }, 'invalid_expire'],
  ])('refuses %s without a store call', async (_, change, code) => {
    const { store, tokens, token } = await issued();
    expect(await codeOf(tokens.modify('acme', token.id, change as never))).toBe(code);
    expect(store.calls).toEqual([]);
  });
});

describe('patch', () => {
  it.each<[string, PatchInput, object]>([
    ['sets the name', { name: 'other' }, { name: 'other' }],
    ['removes the name', { name: null }, { name: undefined }],
    ['replaces the metadata as a whole', { metadata: { a: 1 } }, { metadata: { a: 1 } }],
    ['removes the metadata', { metadata: null }, { metadata: undefined }],
    ['replaces the scopes', { scopes: [SCOPE] }, { scopes: [SCOPE], requested: [SCOPE] }],
    [
      'adds a scope',
      { addScopes: ['GET:a.example/a'] },
      {
        scopes: ['GET:a.example/a', SCOPE, OTHER_SCOPE],
        requested: ['GET:a.example/a', SCOPE, OTHER_SCOPE],
      },
    ],
    ['adds no scope that the token already holds', { addScopes: [SCOPE] }, {}],
    [
      'removes a scope',
      { removeScopes: [SCOPE] },
      { scopes: [OTHER_SCOPE], requested: [OTHER_SCOPE] },
    ],
    [
      'adds one scope, removes all others',
      { addScopes: ['GET:a.example/a'], removeScopes: ['*:shop.example/*'] },
      { scopes: ['GET:a.example/a'], requested: ['GET:a.example/a'] },
    ],
    [
      'sets the expiry',
      { expiresAt: new Date('2100-06-01T00:00:00.123Z') },
      { expiresAt: new Date('2100-06-01T00:00:00.123Z') },
    ],
  ])('%s, and changes nothing else', async (_, change, fields) => {
    const { clock, tokens, token } = await issued();
    clock.advance(60);
    const { value: _value, ...before } = token;
    const patched = await tokens.patch('acme', token.id, change);

    expect(patched).toEqual({ ...before, version: 2, ...fields });
    expect(await tokens.get('acme', token.value)).toEqual(patched);
  });

  it.each<[string, string[], string[], string[] | string]>([
    [
      'a held scope',
      ['GET:a.example/a', 'GET:b.example/b'],
      ['GET:a.example/a'],
      ['GET:b.example/b'],
    ],
    [
      'a scope above a held one',
      ['GET:a.example/a/b', 'GET:b.example/b'],
      ['GET:a.example/a'],
      ['GET:b.example/b'],
    ],
    ['a scope below the held one', ['GET:a.example/a'], ['GET:a.example/a/b'], 'scope_unmatched'],
    ['a scope beside the held one', ['GET:a.example/a'], ['GET:a.example/ab'], 'scope_unmatched'],
    [
      'a scope that overlaps a held one in part',
      ['*:a.example/a', 'GET:b.example/b'],
      ['GET:a.example/a'],
      'scope_unmatched',
    ],
    [
      'a scope that covers one held scope and overlaps another',
      ['GET:a.example/a', '*:a.example/b'],
      ['GET:a.example/*'],
      'scope_unmatched',
    ],
    [
      'a covering scope and one that covers nothing',
      ['GET:a.example/a', 'GET:b.example/b'],
      ['GET:a.example/a', 'GET:c.example/c'],
      'scope_unmatched',
    ],
    ['the scope of everything', ['GET:a.example/a'], ['*:*/*'], 'scopes_required'],
  ])('removing %s gives $3', async (_, scopes, removeScopes, expected) => {
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

  it('names the scopes that it cannot remove', async () => {
    const { tokens, token } = await issued();
    const error = await refusalOf(
      tokens.patch('acme', token.id, { removeScopes: [SCOPE, 'GET:c.example/c'] }),
    );
    expect(error.details).toEqual({ scopes: ['GET:c.example/c'], member: 'removeScopes' });
    expect(error.message).toMatch(/^removeScopes: /);
  });

  it('names the member that leaves no scope, or that excludes another one', async () => {
    const { tokens, token } = await issued();
    const patch = (change: PatchInput) => refusalOf(tokens.patch('acme', token.id, change));

    const empty = await patch({ removeScopes: [...token.scopes] });
    expect([empty.code, empty.details]).toEqual(['scopes_required', { member: 'removeScopes' }]);
    const both = await patch({ scopes: [SCOPE], addScopes: [SCOPE] });
    expect([both.code, both.details]).toEqual(['invalid_request', { member: 'scopes' }]);
  });

  it.each([
    [4095, true],
    [4096, false],
  ])('adds a scope to a token that holds %d: %s', async (count, isGood) => {
    const { tokens } = setUp();
    const scopes = Array.from({ length: count }, (_, i) => `GET:a.example/${i}`);
    const { id } = await tokens.issue({ account: 'acme', scopes });
    const patched = tokens.patch('acme', id, { addScopes: ['GET:b.example/b'] });

    if (isGood) expect((await patched).scopes).toHaveLength(4096);
    else expect(await codeOf(patched)).toBe('too_many_scopes');
  });

  it('adds only scopes of the catalog', async () => {
    const { tokens, token } = await issued({ catalog: ScopeCatalog.from([SCOPE, OTHER_SCOPE]) });
    const patched = tokens.patch('acme', token.id, { addScopes: ['GET:a.example/a'] });

    expect(await codeOf(patched)).toBe('scope_unmatched');
    expect((await tokens.patch('acme', token.id, { addScopes: ['*:*/*'] })).scopes).toEqual([
      SCOPE,
      OTHER_SCOPE,
    ]);
  });

  it('can remove a scope that the catalog no longer has', async () => {
    let catalog = ScopeCatalog.from([SCOPE, OTHER_SCOPE]);
    const { tokens, token } = await issued({ catalog: () => catalog });
    catalog = ScopeCatalog.from([SCOPE]);

    expect((await tokens.patch('acme', token.id, { removeScopes: [OTHER_SCOPE] })).scopes).toEqual([
      SCOPE,
    ]);
  });

  it.each<[string, unknown, string]>([
    ['an empty change', {}, 'invalid_request'],
    [
      'a change of only undefined members',
      { name: undefined, scopes: undefined },
      'invalid_request',
    ],
    ['scopes together with addScopes', { scopes: [SCOPE], addScopes: [SCOPE] }, 'invalid_request'],
    [
      'scopes together with removeScopes',
      { scopes: [SCOPE], removeScopes: [SCOPE] },
      'invalid_request',
    ],
    ['an empty addScopes', { addScopes: [] }, 'scopes_required'],
    ['an empty removeScopes', { removeScopes: [] }, 'scopes_required'],
    ['a bad scope to remove', { removeScopes: ['x'] }, 'invalid_scope'],
    ['an account', { account: 'b' }, 'invalid_request'],
    ['an id', { id: NO_ID, name: 'x' }, 'invalid_request'],
    ['an own __proto__', JSON.parse('{"__proto__":{"name":"x"}}'), 'invalid_request'],
    ['an expiry of null', { expiresAt: null }, 'invalid_expire'],
    ['null', null, 'invalid_request'],
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
  ])('of %s returns the result and the diff, and writes nothing', async (_, change) => {
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

  it('refuses a change that would fail without it', async () => {
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

  it.each<[unknown]>([['yes'], [1], [null]])('must be true or false, not %o', async (dryRun) => {
    const { tokens, token } = await issued();
    const patched = tokens.patch('acme', token.id, { name: 'x' }, { dryRun } as never);
    expect(await codeOf(patched)).toBe('invalid_request');
  });

  it('adds no diff to the result if it is false', async () => {
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

  it.each(CHANGES)('of %s must be the current version', async (_, change) => {
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
    'must be a whole number of 1 or more, not %o',
    async (ifVersion) => {
      const { store, tokens, token } = await issued();
      for (const [, change] of CHANGES) {
        expect(await codeOf(change(tokens, token.id, ifVersion as number))).toBe('invalid_request');
      }
      expect(store.calls).toEqual([]);
    },
  );
});

describe('a change that loses to concurrent writes', () => {
  it.each([
    [999, true],
    [1000, false],
  ])('%d times in a row succeeds: %s', async (count, isMade) => {
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

describe('a change of a cached token by the same service', () => {
  it.each<[string, (tokens: TokenService, id: string) => Promise<unknown>, string]>([
    ['modify', (t, id) => t.modify('acme', id, { scopes: [OTHER_SCOPE] }), 'insufficient_scope'],
    ['patch', (t, id) => t.patch('acme', id, { removeScopes: [SCOPE] }), 'insufficient_scope'],
    ['rotate', (t, id) => t.rotate('acme', id), 'unknown'],
    ['revoke', (t, id) => t.revoke('acme', id), 'revoked'],
    ['revokeAll', (t) => t.revokeAll('acme'), 'revoked'],
  ])('is in effect when it resolves: %s', async (_, change, reason) => {
    const { store, tokens, token } = await issued({ cache: { maxStaleMs: 60_000 } });
    for (let i = 0; i < 2; i++) expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
    expect(store.takeCalls()).toEqual(['find']);
    await change(tokens, token.id);

    expect(await tokens.verify(token.value, NEED)).toMatchObject({ ok: false, reason });
  });
});

const COUNT = 64;

/** Makes concurrent patches, each of which adds another scope. The services take turns. */
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

describe.each([1, 2])('64 concurrent changes by %d services', (processes) => {
  async function together(options: ChangeOptions) {
    const { store, tokens, token } = await issued();
    const services = [tokens, setUp({ store }).tokens].slice(0, processes);
    const outcomes = await patchAll(services, token.id, options);
    return { outcomes, record: await recordOf(store, token.id) };
  }

  it('with ifVersion: exactly one succeeds, and the rest fail with version_conflict', async () => {
    const { outcomes, record } = await together({ ifVersion: 1 });

    expect(outcomes.filter((outcome) => outcome === 2)).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'version_conflict')).toHaveLength(COUNT - 1);
    expect(record.version).toBe(2);
    expect(record.scopes).toHaveLength(3);
  });

  it('without ifVersion: all succeed one after the other, and none is lost', async () => {
    const { outcomes, record } = await together({});

    expect(outcomes.map(Number).sort((a, b) => a - b)).toEqual(
      Array.from({ length: COUNT }, (_, i) => i + 2),
    );
    expect(record.version).toBe(COUNT + 1);
    expect(record.scopes).toHaveLength(COUNT + 2);
  });
});

describe('concurrent changes of one token', () => {
  it('lose updates over a store that ignores versions (the control)', async () => {
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

  it('take two reads and two writes for 64 changes by one service', async () => {
    const { store, tokens, token } = await issued();
    store.takeCalls();

    const versions = await patchAll([tokens], token.id);

    expect(versions).toEqual(Array.from({ length: COUNT }, (_, i) => i + 2));
    expect(store.takeCalls()).toEqual(['find', 'replace', 'find', 'replace']);
  });

  it('are all retried together after a change by another service', async () => {
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

  it('succeed even if some of them are refused', async () => {
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

  it('all fail if their write fails, and a later change succeeds', async () => {
    const { store, tokens, token } = await issued();
    store.break('replace', () => Promise.reject(new Error('down')));

    const outcomes = await patchAll([tokens], token.id);

    expect(new Set(outcomes)).toEqual(new Set(['store_unavailable']));
    store.mend();
    expect((await tokens.patch('acme', token.id, { name: 'back' })).version).toBe(2);
  });

  it('that include a revoke leave the token revoked, whatever their order', async () => {
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

  it('of 64 revokes exactly one returns true', async () => {
    const { tokens, token } = await issued();
    const outcomes = await Promise.all(
      Array.from({ length: COUNT }, () => tokens.revoke('acme', token.id)),
    );
    expect(outcomes.filter(Boolean)).toHaveLength(1);
  });

  it('of 64 rotations each returns its own value, and only the last value is accepted', async () => {
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

describe('a call without an account', () => {
  it.each<[string, (tokens: TokenService, id: string) => Promise<unknown>]>([
    ['get', (tokens, id) => tokens.get(id, undefined as never)],
    ['modify', (tokens, id) => tokens.modify(id, undefined as never, { scopes: [SCOPE] })],
    ['revoke', (tokens, id) => tokens.revoke(id, undefined as never)],
    ['rotate', (tokens, id) => tokens.rotate(id, undefined as never)],
  ])('is refused with invalid_request, and changes nothing: %s', async (_name, call) => {
    const { tokens, token } = await issued();

    expect(await codeOf(call(tokens, token.id))).toBe('invalid_request');
    expect(await tokens.verify(token.value, NEED)).toMatchObject({ ok: true });
  });
});

describe('revoke', () => {
  it.each(['id', 'value'] as const)(
    'by %s ends a token immediately and permanently, and returns true only once',
    async (by) => {
      const { tokens, token } = await issued();

      expect(await tokens.revoke('acme', token[by])).toBe(true);
      expect(await tokens.verify(token.value, NEED)).toEqual({ ok: false, reason: 'revoked' });
      expect(await tokens.get('acme', token[by])).toBeUndefined();
      expect((await tokens.list({ account: 'acme' })).tokens).toEqual([]);
      expect(await tokens.revoke('acme', token[by])).toBe(false);
    },
  );

  it('by id takes one store call, whether or not the token exists', async () => {
    const { store, tokens, token } = await issued();

    expect(await tokens.revoke('acme', token.id)).toBe(true);
    expect(await tokens.revoke('acme', NO_ID)).toBe(false);
    expect(store.takeCalls()).toEqual(['revoke', 'revoke']);
  });

  it('accepts an expired token, too', async () => {
    const { clock, tokens, token } = await issued();
    clock.advance(YEAR);
    expect(await tokens.revoke('acme', token.id)).toBe(true);
  });

  it('refuses dryRun, and revokes nothing', async () => {
    const { tokens, token } = await issued();
    expect(await codeOf(tokens.revoke('acme', token.id, { dryRun: true } as never))).toBe(
      'invalid_request',
    );
    expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
  });

  it('revokeAll revokes the tokens of one account only, expired ones included', async () => {
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

  it('revokeAll works in batches, lets other work run between them, and reports progress', async () => {
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

  it('revokeAll reports how many it revoked if it fails, and continues from there when repeated', async () => {
    const events: TokenEvent[] = [];
    const { tokens, store } = setUp({
      quotas: { tokensPerAccount: 3000 },
      onEvent: (event) => events.push(event),
    });
    for (let i = 0; i < 2500; i++) await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    let batches = 0;
    store.break('revokeAll', (account: string, at: Date, limit: number) => {
      batches += 1;
      if (batches === 3) throw new Error('down');
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
  it('gives the same token a new value, and refuses the old one immediately', async () => {
    const { tokens, token } = await issued();
    const rotated = await tokens.rotate('acme', token.value);
    const { value: _, ...before } = token;

    expect(rotated).toEqual({
      ...before,
      version: 2,
      value: expect.any(String),
      descendants: 0,
    });
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
  ])(
    'with a grace period of 60 s, the old value is accepted after %d s: %s',
    async (seconds, isGood) => {
      const { clock, tokens, token } = await issued();
      const rotated = await tokens.rotate('acme', token.id, { graceSeconds: 60 });
      clock.advance(seconds);

      expect((await tokens.verify(token.value, NEED)).ok).toBe(isGood);
      expect((await tokens.get('acme', token.value)) !== undefined).toBe(isGood);
      expect((await tokens.verify(rotated.value, NEED)).ok).toBe(true);
    },
  );

  it('accepts no value older than the previous one, even within its grace period', async () => {
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

  it('ends the grace period at the expiry at the latest, and leaves the expiry unchanged', async () => {
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

  it('stores the sealed new value with reveal: always, and none with reveal: once', async () => {
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
  ])('accepts graceSeconds of %o: %s', async (graceSeconds, isGood) => {
    const { tokens, token } = await issued();
    const rotated = tokens.rotate('acme', token.id, { graceSeconds } as never);
    if (isGood) expect((await rotated).version).toBe(2);
    else expect(await codeOf(rotated)).toBe('invalid_request');
  });
});

describe('key rotation', () => {
  const BOTH = [K2, { ...K1, status: 'verify' as const }];

  it('keeps existing tokens valid and readable, and uses the new key for new values', async () => {
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

  it('refuses values of a removed key without a store call', async () => {
    const { store, clock, token } = await issued();
    const { store: outer, tokens } = setUp({ store, clock, keys: [K2] });

    expect(await tokens.verify(token.value, NEED)).toEqual({
      ok: false,
      reason: 'malformed',
      detail: 'unknown_key',
    });
    expect(outer.calls).toEqual([]);
    expect(await tokens.get('acme', token.id)).toMatchObject({ id: token.id });
  });

  it('a service with verifier keys verifies and revokes, but cannot issue, rotate or show values', async () => {
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

describe('an account that manages tokens', () => {
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

  /** Everything that the account can observe of a call. */
  async function outcomeOf(call: Promise<unknown>): Promise<unknown> {
    return call.then(
      (answer) => ({ answer }),
      ({ code, message, details }) => ({ code, message, details }),
    );
  }

  for (const by of ['id', 'value'] as const) {
    it.each(VERBS)(
      `cannot tell a foreign, an unknown and a revoked token apart: %s by ${by}`,
      async (_, verb) => {
        const { clock, store, tokens } = setUp();
        const foreign = await tokens.issue({ account: 'other', scopes: [SCOPE] });
        const expired = await tokens.issue({ account: 'other', scopes: [SCOPE], ttlSeconds: 1 });
        const revoked = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
        await tokens.revoke('acme', revoked.id);
        clock.advance(1);
        const unknown = by === 'id' ? NO_ID : forge();
        const wrongSecret = by === 'id' ? NO_ID : forge(foreign.id);
        const before = await Promise.all(
          [foreign, expired, revoked].map(({ id }) => recordOf(store, id)),
        );
        const outcomes = [];
        for (const it of [foreign[by], unknown, revoked[by], expired[by], wrongSecret]) {
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
          [foreign, expired, revoked].map(({ id }) => recordOf(store, id)),
        );
        expect(after).toEqual(before);
      },
    );
  }

  it('can tell its own token apart (the control)', async () => {
    const { tokens } = setUp();
    const own = await tokens.issue({ account: 'acme', scopes: [SCOPE] });

    expect(await tokens.get('acme', own.id)).toBeDefined();
    expect(await codeOf(tokens.modify('acme', own.id, CHANGE, { ifVersion: 9 }))).toBe(
      'version_conflict',
    );
    expect(await tokens.revoke('acme', own.id)).toBe(true);
  });

  it('cannot use the id of its own token with a wrong secret', async () => {
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
