import { describe, expect, it } from 'vitest';
import {
  readAddress,
  rightsLine,
  rightsTree,
  summaryOf,
} from '../../../../src/app/console/page/rights.ts';
import { hrefOf, type Route, readRoute } from '../../../../src/app/console/page/router.ts';

describe('the summary of rights', () => {
  it.each([
    [['GET:api.example/orders'], '1 endpoint of api.example, read-only'],
    [
      ['GET:api.example/orders', 'HEAD:api.example/orders'],
      '2 endpoints of api.example, read-only',
    ],
    [['GET:api.example/orders', 'POST:api.example/orders'], '2 endpoints of api.example'],
    [['GET:api.example/orders', 'GET:b.example/orders'], '2 endpoints of 2 hosts, read-only'],
    [['*:api.example/orders'], '1 endpoint of api.example, every method'],
  ])('of %j is %s', (scopes, expected) => {
    expect(summaryOf(scopes)).toBe(expected);
  });
});

describe('the line of rights', () => {
  const permission = (tag: string, read: readonly string[], more: readonly string[] = []) => ({
    tag,
    read,
    write: [...read, ...more],
  });
  const ORDERS = permission('orders', ['GET:a.example/orders'], ['POST:a.example/orders']);
  const others = ['b', 'c', 'd', 'e'].map((name) => permission(name, [`GET:a.example/${name}`]));

  it.each([
    [['GET:a.example/orders'], [ORDERS], 'Orders: read'],
    [ORDERS.write, [ORDERS], 'Orders: write'],
    [['GET:a.example/orders', 'GET:x.example/y'], [ORDERS], 'Orders: read · 1 single endpoint'],
    [['GET:a.example/orders', '*:x.example/*'], [ORDERS], 'Orders: read · *:x.example/*'],
    [
      [...ORDERS.write, ...others.flatMap(({ read }) => read)],
      [ORDERS, ...others],
      '4 permissions: read · 1 permission: write',
    ],
    [['POST:a.example/orders'], [ORDERS], '1 endpoint of a.example'],
    [['GET:a.example/orders'], [], '1 endpoint of a.example, read-only'],
    [[], [ORDERS], 'Nothing any more'],
  ])('of %j is in words where there are some', (scopes, permissions, expected) => {
    expect(rightsLine(scopes, permissions)).toBe(expected);
  });
});

describe('the tree of rights', () => {
  const scopes = ['POST:b.example/orders', 'GET:b.example/orders', 'GET:a.example/$'];

  it('groups paths by host, and methods by path', () => {
    const tree = rightsTree(scopes, undefined);

    expect(tree.map(({ host, paths }) => [host, paths.map(({ path }) => path)])).toEqual([
      ['a.example', ['/']],
      ['b.example', ['/orders']],
    ]);
    expect(tree[1]?.paths[0]?.leaves.map(({ method }) => method)).toEqual(['POST', 'GET']);
    expect(tree[1]?.uses).toBeUndefined();
  });

  it('distinguishes closed and open scopes at the same path', () => {
    const [host] = rightsTree(
      ['GET:b.example/a$', 'POST:b.example/a', 'GET:b.example/*'],
      undefined,
    );
    const shown = host?.paths.map(({ path, leaves }) => [path, leaves.map(({ isOpen }) => isOpen)]);

    expect(shown).toEqual([
      ['/', [true]],
      ['/a', [false, true]],
    ]);
  });

  it('sums up the uses of a host', () => {
    const used = [{ scope: 'GET:b.example/orders', uses: 3, lastUsed: 1_800_000_000 }];
    const tree = rightsTree(scopes, { scopes: used });

    expect(tree.map(({ uses }) => uses)).toEqual([0, 3]);
  });
});

describe('readAddress', () => {
  it.each([
    ['https://Api.example/orders/7?x=1#top', 'api.example', '/orders/7?x=1'],
    ['api.example:8443/orders/', 'api.example', '/orders/'],
    ['api.example', 'api.example', '/'],
    ['http://api.example?x=1', 'api.example', '/?x=1'],
    // A server may read dots and escapes differently, so they stay.
    ['https://api.example/a/../b%2Fc', 'api.example', '/a/../b%2Fc'],
  ])('splits %s into domain and target', (text, domain, target) => {
    expect(readAddress(text)).toEqual({ domain, target });
  });

  it.each([
    '',
    '/orders',
    'https://',
    'ftp://api.example/',
    'https://ada:secret@api.example/',
    'a b',
  ])('returns undefined for %j', (text) => {
    expect(readAddress(text)).toBeUndefined();
  });
});

describe('a route', () => {
  it.each<Route>([
    { screen: 'list' },
    { screen: 'list', search: 'name=a%26b&sort=name' },
    { screen: 'new' },
    { screen: 'review' },
    { screen: 'token', id: '5sQ0bX8vK2mYt7RjW1cZpA' },
  ])('%j can be read back from its address', (route) => {
    expect(readRoute(hrefOf(route))).toEqual(route);
  });

  it.each(['', '#', '#/token/short', '#/token/5sQ0bX8vK2mYt7RjW1cZpA/x', '#/else', '#/?'])(
    '%j leads to the list',
    (hash) => {
      expect(readRoute(hash)).toEqual({ screen: 'list' });
    },
  );
});
