import { describe, expect, it } from 'vitest';
import { MAX_RECORD_BYTES } from '../../src/bounds.ts';
import { listBytes } from '../../src/list-size.ts';
import type { QuotaOptions } from '../../src/options.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import type { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory.ts';
import { recordBytes } from '../../src/token.ts';
import { codeOf, OTHER_SCOPE, recordOf, refusalOf, SCOPE, setUp } from '../support.ts';

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

  it('takes one store call per token', async () => {
    const { store, tokens } = setUp({ quotas });
    await issue(tokens);
    await issue(tokens);
    await codeOf(issue(tokens));

    expect(store.takeCalls()).toEqual(['insert', 'insert', 'insert']);
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
