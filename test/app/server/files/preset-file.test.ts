import { describe, expect, it } from 'vitest';
import { readPresets } from '../../../../src/app/server/files/preset-file.ts';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import { filesOf } from '../../cli/support.ts';

const ORDERS = 'GET:shop.example/orders$';
const catalog = ScopeCatalog.from([ORDERS, 'POST:shop.example/orders$']);
const rules = { maxTtl: 86_400, catalog };

function read(content: unknown, given = rules as Parameters<typeof readPresets>[1]) {
  return readPresets(filesOf({ 'presets.json': content })('presets.json'), given);
}

describe('the presets of a file', () => {
  it('have a name, scopes, a lifetime and limits', () => {
    const limits = { addresses: ['10.0.0.0/8'], uses: 100 };
    const presets = read([
      { name: 'Reader', scopes: [ORDERS], ttl: 3600 },
      { name: 'CI', scopes: ['*:shop.example/*'], ttl: '12h', limits },
      { name: 'All', scopes: ['*:shop.example/*'] },
    ]);

    expect(presets).toEqual([
      { name: 'Reader', scopes: [ORDERS], ttlSeconds: 3600 },
      { name: 'CI', scopes: ['*:shop.example/*'], ttlSeconds: 43_200, limits },
      { name: 'All', scopes: ['*:shop.example/*'] },
    ]);
  });

  it('are none without a file', () => {
    expect(readPresets(undefined, rules)).toEqual([]);
  });

  it('may hold any scopes if there is no catalog', () => {
    const gone = [{ name: 'A', scopes: ['GET:other.example/*'] }];

    expect(read(gone, { ...rules, catalog: undefined })).toHaveLength(1);
    expect(() => read(gone)).toThrow('preset 1 ("A"): the catalog does not know');
  });

  it.each([
    ['{', /presets\.json is not JSON/],
    [{}, /presets\.json must be a JSON array of presets, such as \[\{"name": "CI"/],
    [['CI'], /presets\.json: preset 1 must be an object, such as/],
    [[{ scopes: [ORDERS] }], /preset 1: name must be 1 to 200 characters/],
    [[{ name: 'a\u0000b', scopes: [ORDERS] }], /preset 1 \("a\?b"\): name must be/],
    [[{ name: 'CI' }], /preset 1 \("CI"\): scopes must be a JSON array of scopes/],
    [[{ name: 'CI', scopes: [] }], /preset 1 \("CI"\): scopes must not be empty/],
    [[{ name: 'CI', scopes: ['orders'] }], /preset 1 \("CI"\): scopes: scope 1: /],
    [[{ name: 'CI', scopes: ['GET:shop.example/ordres$'] }], /does not know .*orders\$/],
    [[{ name: 'CI', scopes: [ORDERS], tll: 5 }], /preset 1 \("CI"\): .*"?tll"?.*did you mean ttl/],
    [[{ name: 'CI', scopes: [ORDERS], ttl: '3 days' }], /ttl must be from 1s to 365d/],
    [[{ name: 'CI', scopes: [ORDERS], ttl: 0 }], /ttl must be from 1s to 365d/],
    [[{ name: 'CI', scopes: [ORDERS], ttl: '2d' }], /ttl must not be more than --max-ttl/],
    [[{ name: 'CI', scopes: [ORDERS], limits: { uses: 0 } }], /limits\.uses must be/],
    [
      [
        { name: 'CI', scopes: [ORDERS] },
        { name: 'ci', scopes: [ORDERS] },
      ],
      /preset 2 \("ci"\): preset 1 has the same name/,
    ],
  ])('are refused as %j', (content, message) => {
    expect(() => read(content)).toThrow(message);
  });

  it('can be at most as long as the longest lifetime (the control)', () => {
    expect(read([{ name: 'CI', scopes: [ORDERS], ttl: '1d' }])[0]?.ttlSeconds).toBe(86_400);
  });
});
