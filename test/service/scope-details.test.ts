import { describe, expect, it } from 'vitest';
import { tokenHandler } from '../../src/http/index.ts';
import { generateKey, MemoryTokenStore, type Preset, TokenService } from '../../src/index.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';

const at = (scope: string) => scope.replace(' ', ':shop.example/');

const CATALOG = ScopeCatalog.from([
  { scope: at('GET orders$'), summary: 'List orders', tag: 'orders' },
  { scope: at('POST orders$'), summary: 'Create an order', tag: 'orders' },
  { scope: at('GET stock/{}$'), segments: ['sku'], deprecated: true },
  { scope: at('GET stock/{}$'), summary: 'Count a sku' },
]);

function serviceWith(
  presets?: readonly Preset[],
  catalog: ScopeCatalog | ((account: string) => ScopeCatalog) | undefined = CATALOG,
): TokenService {
  const keys = [generateKey()];
  return new TokenService({
    store: new MemoryTokenStore(),
    keys,
    prefix: 'acme',
    presets,
    catalog,
  });
}

const CI: Preset = {
  name: 'CI',
  scopes: [at('* orders$')],
  ttlSeconds: 3600,
  limits: { addresses: ['203.0.113.0/24'] },
};

describe('the details of the scopes of an account', () => {
  it('hold the words, the permissions and the presets', async () => {
    const details = await serviceWith([CI]).scopeDetails('ada');

    expect(details.scopes).toMatchObject([
      { scope: at('GET orders$'), summary: 'List orders', tag: 'orders' },
      { scope: at('GET stock/{}$'), segments: ['sku'], deprecated: true },
      { scope: at('POST orders$'), summary: 'Create an order' },
    ]);
    expect(details.permissions.map(({ tag, write }) => [tag, write.length])).toEqual([
      ['orders', 2],
      ['stock', 1],
    ]);
    expect(details.presets).toEqual([
      { ...CI, scopes: [at('GET orders$'), at('POST orders$')] },
      { name: 'Read only', scopes: [at('GET orders$'), at('GET stock/{}$')] },
    ]);
  });

  it('are cut to the catalog of the account', async () => {
    const bobs = ScopeCatalog.from([at('POST orders$')], { base: CATALOG });
    const tokens = serviceWith([CI, { name: 'Stock', scopes: [at('GET stock')] }], (account) =>
      account === 'bob' ? bobs : CATALOG,
    );

    const { scopes, permissions, presets } = await tokens.scopeDetails('bob');
    expect(scopes).toMatchObject([{ scope: at('POST orders$'), summary: 'Create an order' }]);
    expect(permissions).toMatchObject([{ tag: 'orders', read: [], write: [at('POST orders$')] }]);
    expect(presets.map(({ name, scopes }) => [name, scopes])).toEqual([
      ['CI', [at('POST orders$')]],
    ]);
    expect((await tokens.scopeDetails('ada')).presets.map(({ name }) => name)).toEqual([
      'CI',
      'Stock',
      'Read only',
    ]);
  });

  it('take the place of Read only, if a preset has its name', async () => {
    const own = { name: 'read ONLY', scopes: [at('GET orders$')] };

    expect((await serviceWith([own]).scopeDetails('ada')).presets).toEqual([own]);
  });

  it('are everything and the presets as they are without a catalog', async () => {
    const store = new MemoryTokenStore();
    const tokens = new TokenService({
      store,
      keys: [generateKey()],
      prefix: 'acme',
      presets: [CI],
    });

    expect(await tokens.scopeDetails('ada')).toEqual({
      scopes: [{ scope: '*:*/*' }],
      permissions: [],
      presets: [CI],
    });
  });

  it('leave out a preset that no token could hold', async () => {
    const many = ScopeCatalog.from(Array.from({ length: 4097 }, (_, i) => at(`GET o/${i}$`)));

    expect((await serviceWith([], many).scopeDetails('ada')).presets).toEqual([]);
  });

  it('have no words from a catalog of a host that knows none', async () => {
    const {
      words: _,
      permissions: __,
      ...methods
    } = Object.fromEntries(
      Object.getOwnPropertyNames(ScopeCatalog.prototype).map((name) => [
        name,
        (...values: unknown[]) => Reflect.get(CATALOG, name).call(CATALOG, ...values),
      ]),
    );
    const details = await serviceWith([], methods as never).scopeDetails('ada');

    expect(details.scopes.map(({ scope }) => scope)).toEqual(CATALOG.toArray());
    expect(details.permissions).toEqual([]);
  });

  it('are unavailable if the catalog of the account is', async () => {
    const tokens = serviceWith([], () => {
      throw new Error('down');
    });

    await expect(tokens.scopeDetails('ada')).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});

describe('presets', () => {
  it.each<[string, unknown, RegExp]>([
    ['no list', {}, /presets must be a list/],
    ['no name', [{ scopes: CI.scopes }], /name/],
    ['no scopes', [{ name: 'CI', scopes: [] }], /scopes of a preset must be a list of scopes/],
    ['a scope that cannot be parsed', [{ name: 'CI', scopes: ['x'] }], /scopes of a preset/],
    ['a lifetime of 0', [{ ...CI, ttlSeconds: 0 }], /ttlSeconds of a preset/],
    ['a lifetime that no token may have', [{ ...CI, ttlSeconds: 7200 }], /lifetime\.maxSeconds/],
    ['limits that are none', [{ ...CI, limits: {} }], /limits/],
    ['two of one name', [CI, { ...CI, name: 'ci' }], /different names/],
    ['an unknown member', [{ ...CI, ttl: 7 }], /ttl/],
  ])('are refused with %s', (_, presets, message) => {
    const options = { store: new MemoryTokenStore(), keys: [generateKey()], prefix: 'acme' };
    const lifetime = { maxSeconds: 3600 };

    expect(() => new TokenService({ ...options, lifetime, presets: presets as never })).toThrow(
      expect.objectContaining({ code: 'invalid_options', message: expect.stringMatching(message) }),
    );
  });

  it('grant what their scopes grant, and change no token that exists', async () => {
    const tokens = serviceWith([CI]);
    const [preset] = (await tokens.scopeDetails('ada')).presets;
    const { scopes = [], ttlSeconds, limits } = preset ?? {};
    const issued = await tokens.issue({ account: 'ada', scopes, ttlSeconds, limits });

    const byHand = await tokens.issue({ account: 'ada', scopes: CI.scopes });
    expect(issued.scopes).toEqual(byHand.scopes);
    expect(issued.limits).toEqual(CI.limits);
  });
});

describe('GET /scopes', () => {
  function handle(presets?: readonly Preset[]) {
    const handler = tokenHandler({
      tokens: serviceWith(presets),
      authenticate: ({ username }) => username,
    });
    return (query = '', headers: Readonly<Record<string, string>> = {}) =>
      handler(
        new Request(`https://tokens.example/scopes${query}`, {
          headers: { authorization: `Basic ${btoa('ada:pw')}`, ...headers },
        }),
      );
  }

  it('lists texts without details', async () => {
    const call = handle();

    expect(await (await call()).json()).toEqual({
      data: CATALOG.toArray(),
      success: true,
      message: '',
      error: null,
    });
    expect(await (await call('?details=false')).json()).not.toHaveProperty('permissions');
    expect((await call('?details=yes')).status).toBe(400);
    expect((await call('?detail=true')).status).toBe(400);
  });

  it('answers with details in the words of the wire', async () => {
    expect(await (await handle([CI])('?details=true')).json()).toEqual({
      data: [
        { scope: at('GET orders$'), summary: 'List orders', tag: 'orders' },
        {
          scope: at('GET stock/{}$'),
          segments: ['sku'],
          deprecated: true,
          operations: [{ segments: ['sku'], deprecated: true }, { summary: 'Count a sku' }],
        },
        { scope: at('POST orders$'), summary: 'Create an order', tag: 'orders' },
      ],
      permissions: [
        {
          tag: 'orders',
          domain: 'shop.example',
          read: [at('GET orders$')],
          write: [at('GET orders$'), at('POST orders$')],
        },
        {
          tag: 'stock',
          domain: 'shop.example',
          read: [at('GET stock/{}$')],
          write: [at('GET stock/{}$')],
        },
      ],
      presets: [
        {
          name: 'CI',
          scopes: [at('GET orders$'), at('POST orders$')],
          ttl: 3600,
          limits: CI.limits,
        },
        { name: 'Read only', scopes: [at('GET orders$'), at('GET stock/{}$')] },
      ],
      success: true,
      message: '',
      error: null,
    });
  });

  it('says what changed since an answer by its tag', async () => {
    const call = handle();
    const [texts, all] = await Promise.all([call(), call('?details=true')]);
    const tag = `${all.headers.get('etag')}`;

    expect(all.headers.get('cache-control')).toBe('private, no-cache');
    expect((await call('?details=true', { 'if-none-match': tag })).status).toBe(304);
    expect((await call('', { 'if-none-match': tag })).status).toBe(200);
    expect((await call('', { 'if-none-match': `${texts.headers.get('etag')}` })).status).toBe(304);
    expect((await handle([CI])('?details=true', { 'if-none-match': tag })).status).toBe(200);
  });

  it('is compressed for callers who ask for it', async () => {
    const presets = [{ ...CI, name: 'x'.repeat(200) }, CI, { ...CI, name: 'y'.repeat(200) }];
    const { headers } = await handle(presets)('?details=true', { 'accept-encoding': 'br' });

    expect(headers.get('vary')).toBe('accept-encoding');
    expect(headers.get('content-encoding')).toBe('br');
  });
});
