import { describe, expect, it } from 'vitest';
import { TokenError } from '../../src/errors.ts';
import type { CatalogOption } from '../../src/inputs/options.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import type { TokenRecord } from '../../src/token/record.ts';
import {
  codeOf,
  expectNoSecret,
  K1,
  OTHER_SCOPE,
  partsOf,
  recordOf,
  refusalOf,
  SCOPE,
  setUp,
  YEAR,
} from '../support.ts';

const CATALOG = ScopeCatalog.from([
  'GET:shop.example/orders',
  'POST:shop.example/orders',
  'GET:api.shop.example/stock',
]);

describe('issue', () => {
  it('returns a token that is valid for a year, with its value', async () => {
    const { clock, tokens } = setUp();
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE] });

    expect(token).toStrictEqual({
      id: partsOf(token.value).id,
      account: 'acme',
      scopes: [SCOPE],
      requested: [SCOPE],
      createdAt: clock.now(),
      expiresAt: new Date(clock.now().getTime() + YEAR * 1000),
      version: 1,
      state: 'active',
      masked: `acme_1k1${partsOf(token.value).id.slice(0, 6)}…`,
      value: expect.stringMatching(/^acme_1k1[0-9A-Za-z]{55}$/),
    });
    expect(Object.isFrozen(token)).toBe(true);
  });

  it('stores a copy of name and metadata', async () => {
    const { tokens } = setUp();
    const metadata = { team: { name: 'ops' } };
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE], name: 'CI', metadata });
    metadata.team.name = 'changed';

    expect(token.metadata).toEqual({ team: { name: 'ops' } });
    expect((await tokens.get('acme', token.id))?.metadata).toEqual({ team: { name: 'ops' } });
    expect(token.name).toBe('CI');
  });

  it('calls the store to count and to insert, without any secret', async () => {
    const { store, tokens } = setUp({ reveal: 'always' });
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE] });

    expect(store.calls.map(({ method }) => method)).toEqual(['count', 'insert']);
    expectNoSecret(store.calls, token.value);
  });

  it.each(['once', 'always'] as const)(
    'stores neither a value nor a plain hash of one (reveal: %s)',
    async (reveal) => {
      const { store, tokens } = setUp({ reveal });
      const { value, id } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
      await tokens.rotate('acme', id, { graceSeconds: 60 });
      const { secret } = partsOf(value);
      const record = await recordOf(store, id);
      const { createHash } = await import('node:crypto');
      const forms = [value, secret, value.slice(5), id + secret].flatMap((text) => [
        Buffer.from(text),
        ...['sha256', 'sha1', 'sha512', 'md5'].map((name) =>
          createHash(name).update(text).digest(),
        ),
        Buffer.from(Buffer.from(text).toString('hex')),
        Buffer.from(Buffer.from(text).toString('base64').replace(/=+$/, '')),
      ]);
      const kept = Object.values(record).map((field) =>
        field instanceof Uint8Array ? Buffer.from(field) : Buffer.from(JSON.stringify(field) ?? ''),
      );

      for (const form of forms) expect(kept.some((field) => field.includes(form))).toBe(false);
      expect(record.box === undefined).toBe(reveal === 'once');
      // The control: the search finds the digest that the specification puts there.
      const digest = createHash('sha256').update(`tokenwright/v1/verify\0${id}${secret}`).digest();
      expect(kept.some((field) => field.includes(digest))).toBe(true);
    },
  );

  it.each<[string, Record<string, unknown>, string]>([
    ['a missing account', { account: undefined }, 'invalid_request'],
    ['an empty account', { account: '' }, 'invalid_request'],
    ['an account of 256 bytes', { account: 'a'.repeat(256) }, 'invalid_request'],
    ['missing scopes', { scopes: undefined }, 'scopes_required'],
    ['an empty list of scopes', { scopes: [] }, 'scopes_required'],
    ['scopes as a string', { scopes: SCOPE }, 'scopes_required'],
    ['a bad scope', { scopes: [SCOPE, 'nonsense'] }, 'invalid_scope'],
    ['a list as a scope', { scopes: [[SCOPE]] }, 'invalid_scope'],
    ['4097 scopes', { scopes: Array(4097).fill(SCOPE) }, 'too_many_scopes'],
    ['a ttl of 0', { ttlSeconds: 0 }, 'invalid_ttl'],
    ['an empty name', { name: '' }, 'invalid_request'],
    ['a name of 201 characters', { name: 'n'.repeat(201) }, 'invalid_request'],
    ['a name with a control character', { name: 'a\u0007' }, 'invalid_request'],
    ['a name of null', { name: null }, 'invalid_request'],
    ['metadata as a list', { metadata: [] }, 'invalid_request'],
    ['metadata of 4097 bytes', { metadata: { a: 'x'.repeat(4089) } }, 'invalid_request'],
    ['an unknown member', { scope: SCOPE }, 'invalid_request'],
    ['a past expiry', { expiresAt: new Date('2099-06-01') }, 'invalid_expire'],
    ['two lifetimes', { ttlSeconds: 1, expiresIn: 1 }, 'invalid_request'],
    ['a bad scope and a bad ttl', { scopes: ['x'], ttlSeconds: 0 }, 'invalid_scope'],
    ['a bad name and a bad scope', { scopes: ['x'], name: '' }, 'invalid_request'],
  ])('refuses %s without a store call', async (_, bad, code) => {
    const { store, tokens } = setUp();
    const good = { account: 'acme', scopes: [SCOPE] };

    expect(await codeOf(tokens.issue({ ...good, ...bad } as typeof good))).toBe(code);
    expect(store.calls).toEqual([]);
    expect((await tokens.issue(good)).version).toBe(1);
  });

  it.each<[string, object]>([
    ['an account of 255 bytes', { account: 'a'.repeat(255) }],
    ['a name of 200 characters', { name: 'n'.repeat(200) }],
    ['metadata of 4096 bytes', { metadata: { a: 'x'.repeat(4088) } }],
    ['4096 scopes', { scopes: Array.from({ length: 4096 }, (_, i) => `GET:a.example/${i}`) }],
    ['the same scope 4096 times', { scopes: Array(4096).fill(SCOPE) }],
    ['members that are undefined', { ttlSeconds: undefined, name: undefined, metadata: undefined }],
  ])('accepts %s', async (_, fields) => {
    const { tokens } = setUp();
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE], ...fields });
    expect(await tokens.get(token.account, token.id)).toBeDefined();
  });

  it.each<[unknown]>([[undefined], [null], ['acme'], [[]], [42], [() => {}]])(
    'refuses the input %o',
    async (input) => {
      const { tokens } = setUp();
      expect(await codeOf(tokens.issue(input as never))).toBe('invalid_request');
    },
  );

  it('sorts scopes, removes duplicates and lowercases the domain', async () => {
    const { tokens } = setUp();
    const token = await tokens.issue({
      account: 'acme',
      scopes: [OTHER_SCOPE, 'GET:Shop.Example/orders', SCOPE],
    });

    expect(token.scopes).toEqual([SCOPE, OTHER_SCOPE]);
    expect(token.requested).toEqual([OTHER_SCOPE, SCOPE]);
  });

  it('retries with a new id and a new secret if an id is taken', async () => {
    const { store, tokens } = setUp();
    const drawn: TokenRecord[] = [];
    store.break('insert', async (record: TokenRecord) => {
      drawn.push(record);
      if (drawn.length < 5) throw new TokenError('id_taken', 'this id is taken');
      return store.inner.insert(record);
    });
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE] });

    expect(new Set(drawn.map(({ id }) => id)).size).toBe(5);
    expect(new Set(drawn.map(({ digest }) => Buffer.from(digest).toString('hex'))).size).toBe(5);
    expect(token.id).toBe(drawn[4]?.id);
    expect((await tokens.verify(token.value, { scope: SCOPE })).ok).toBe(true);
  });

  it('gives up with store_corrupt if the store reports every id as taken', async () => {
    const { store, tokens } = setUp();
    store.break('insert', async () => {
      throw new TokenError('id_taken', 'this id is taken');
    });

    expect(await codeOf(tokens.issue({ account: 'acme', scopes: [SCOPE] }))).toBe('store_corrupt');
  });
});

describe('issue with a catalog', () => {
  it('expands wildcards to the scopes that exist, and keeps the requested ones', async () => {
    const { tokens } = setUp({ catalog: CATALOG });
    const token = await tokens.issue({ account: 'acme', scopes: ['*:*.example/*'] });

    expect(token.scopes).toEqual(CATALOG.toArray());
    expect(token.requested).toEqual(['*:*.example/*']);
  });

  it.each<[string, string[], string]>([
    ['unknown to the catalog', [SCOPE, 'GET:shop.example/secrets'], 'scope_unmatched'],
    [
      'for a domain that only has the same ending',
      ['GET:evilshop.example/orders'],
      'scope_unmatched',
    ],
    [
      'a wildcard for subdomains of which only the apex exists',
      ['GET:*.api.shop.example/*'],
      'scope_unmatched',
    ],
  ])('grants nothing if one scope is %s', async (_, scopes, code) => {
    const { store, tokens } = setUp({ catalog: CATALOG });
    expect(await codeOf(tokens.issue({ account: 'acme', scopes }))).toBe(code);
    expect(store.calls).toEqual([]);
  });

  it('fails with catalog_empty if the catalog is empty', async () => {
    const { tokens } = setUp({ catalog: ScopeCatalog.from([]) });
    expect(await codeOf(tokens.issue({ account: 'acme', scopes: [SCOPE] }))).toBe('catalog_empty');
  });

  it('keeps wildcards as patterns if there is no catalog', async () => {
    const { tokens } = setUp();
    const token = await tokens.issue({ account: 'acme', scopes: ['*:*.example/*'] });
    const verdict = await tokens.verify(token.value, { scope: 'PUT:new.example/anything' });

    expect(token.scopes).toEqual(['*:*.example/*']);
    expect(verdict).toMatchObject({ ok: true, grantedBy: '*:*.example/*' });
    expect((await tokens.verify(token.value, { scope: 'PUT:example/x' })).ok).toBe(false);
  });

  it('grants existing tokens no scopes that the catalog gains later', async () => {
    let catalog = CATALOG;
    const { tokens } = setUp({ catalog: () => catalog });
    const before = await tokens.issue({ account: 'acme', scopes: ['*:*/*'] });
    catalog = ScopeCatalog.from([...CATALOG, 'DELETE:shop.example/orders']);
    const after = await tokens.issue({ account: 'acme', scopes: ['*:*/*'] });
    const need = { scope: 'DELETE:shop.example/orders' };

    expect((await tokens.verify(before.value, need)).ok).toBe(false);
    expect((await tokens.verify(after.value, need)).ok).toBe(true);
  });

  it('uses the catalog of the account', async () => {
    const asked: string[] = [];
    const { tokens } = setUp({
      catalog: async (account) => {
        asked.push(account);
        return ScopeCatalog.from([account === 'acme' ? SCOPE : OTHER_SCOPE]);
      },
    });

    expect((await tokens.issue({ account: 'acme', scopes: ['*:*/*'] })).scopes).toEqual([SCOPE]);
    expect((await tokens.issue({ account: 'b', scopes: ['*:*/*'] })).scopes).toEqual([OTHER_SCOPE]);
    expect(await codeOf(tokens.issue({ account: 'b', scopes: [SCOPE] }))).toBe('scope_unmatched');
    expect(asked).toEqual(['acme', 'b', 'b']);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error(String(K1.secret));
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error(String(K1.secret));
      },
    ],
    ['returns undefined', () => undefined],
    ['returns null', () => null],
    ['returns a list', () => [SCOPE]],
    ['returns an object', async () => ({})],
    ['returns a string', async () => SCOPE],
    [
      'returns a thenable that throws',
      () => ({
        // biome-ignore lint/suspicious/noThenProperty: a host can return a thenable
        get then() {
          throw new Error('no');
        },
      }),
    ],
    ['never answers', () => new Promise(() => {})],
  ])(
    'fails with store_unavailable, and so does scopes, if the catalog function %s',
    async (_, catalog) => {
      const { store, tokens } = setUp({ catalog: catalog as CatalogOption, deadlineMs: 5 });
      const error = await refusalOf(tokens.issue({ account: 'acme', scopes: [SCOPE] }));

      expect(error.code).toBe('store_unavailable');
      expect(store.calls).toEqual([]);
      expect(await codeOf(tokens.scopes('acme'))).toBe('store_unavailable');
    },
  );
});

describe('a catalog with an expand method that throws', () => {
  const failing = (error: unknown) =>
    Object.assign(Object.create(CATALOG) as ScopeCatalog, {
      expand() {
        throw error;
      },
    });

  it.each<[string, unknown, string]>([
    ['an error', new Error(String(K1.secret)), 'store_unavailable'],
    ['undefined', undefined, 'store_unavailable'],
    [
      'an object that is not an error',
      { name: 'ScopeError', code: 'catalog_empty' },
      'store_unavailable',
    ],
    [
      'a ScopeError of another copy of the package',
      Object.assign(new Error('empty'), { name: 'ScopeError', code: 'catalog_empty' }),
      'catalog_empty',
    ],
  ])('%s makes issue fail with $2, without a store call', async (_, error, code) => {
    const { store, tokens } = setUp({ catalog: failing(error) });

    expect(await codeOf(tokens.issue({ account: 'acme', scopes: [SCOPE] }))).toBe(code);
    expect(store.calls).toEqual([]);
  });
});

describe('scopes', () => {
  it('are the catalog of the account, or everything if there is no catalog', async () => {
    expect(await setUp({ catalog: CATALOG }).tokens.scopes('acme')).toEqual(CATALOG.toArray());
    expect(await setUp().tokens.scopes('acme')).toEqual(['*:*/*']);
    expect(await codeOf(setUp().tokens.scopes(''))).toBe('invalid_request');
  });
});
