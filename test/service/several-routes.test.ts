import { describe, expect, it } from 'vitest';
import { bearerGuard } from '../../src/http/index.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { K1 } from '../support.ts';

const LIST = 'GET:shop.example/orders$';
const ONE = 'GET:shop.example/orders/{}$';
const EXPORT = 'GET:shop.example/orders/export$';
const NEED = { method: 'GET', domain: 'shop.example', target: '/orders/EXPORT' };
const SPLIT = { ok: false, reason: 'ambiguous_request', detail: 'path_several_routes' };

function serviceOf(catalog: ScopeCatalog | (() => ScopeCatalog)) {
  const common = { store: new MemoryTokenStore(), keys: [K1], prefix: 'acme' };
  return { tokens: new TokenService({ ...common, catalog }), free: new TokenService(common) };
}

const CATALOG = ScopeCatalog.from([LIST, ONE, EXPORT]);

/** A catalog of the host, which knows only what `attribute` finds. */
function foreign(): ScopeCatalog {
  const asked = ScopeCatalog.from([LIST, ONE, EXPORT]);
  return {
    expand: (scopes: string[]) => asked.expand(scopes),
    attribute: (request: typeof NEED) => asked.attribute(request),
    suggest: (text: string) => asked.suggest(text),
    toArray: () => asked.toArray(),
    knows: (scope: string) => asked.knows(scope),
    readRequest: () => ({ ok: false }),
  } as unknown as ScopeCatalog;
}

describe('a request that several routes may take', () => {
  it.each([
    ['a catalog', CATALOG],
    ['a catalog of the host', foreign()],
  ])('needs a token that covers each of them, by %s', async (_, catalog) => {
    const { tokens } = serviceOf(catalog);
    const issue = (...scopes: string[]) => tokens.issue({ account: 'ada', scopes });
    const answers = async (target: string, ...scopes: string[]) => {
      const { value } = await issue(...scopes);
      const need = { ...NEED, target };
      const verdict = await tokens.verify(value, need);
      expect(tokens.verifySync(value, need) ?? verdict).toMatchObject({ ok: verdict.ok });
      return verdict.ok ? true : (verdict.detail ?? verdict.reason);
    };

    for (const target of ['/orders/EXPORT', '/orders/%65xport']) {
      expect(await answers(target, ONE)).toBe('path_several_routes');
      expect(await answers(target, EXPORT)).toBe('path_several_routes');
      expect(await answers(target, LIST)).toBe('insufficient_scope');
      expect(await answers(target, ONE, EXPORT)).toBe(true);
    }
    expect(await answers('/orders/', LIST)).toBe('path_several_routes');
    expect(await answers('/orders/', LIST, ONE)).toBe(true);
    expect(await answers('/orders', LIST)).toBe(true);
    expect(await answers('/orders/export', ONE)).toBe('insufficient_scope');
  });

  it('needs only what covers its path if each account has a catalog of its own', async () => {
    const { tokens } = serviceOf(() => CATALOG);
    const { value } = await tokens.issue({ account: 'ada', scopes: [ONE] });

    expect(await tokens.verify(value, NEED)).toMatchObject({ ok: true, grantedBy: ONE });
    expect(await tokens.verify(value, { ...NEED, target: '/orders' })).toMatchObject({ ok: false });
  });

  it('needs ancestors that cover each of them, too', async () => {
    const { tokens } = serviceOf(CATALOG);
    const parent = await tokens.issue({ account: 'ada', scopes: [ONE, EXPORT] });
    const child = await tokens.derive(parent.value, { scopes: [ONE, EXPORT] });
    expect(await tokens.verify(child.value, NEED)).toMatchObject({ ok: true });

    await tokens.modify('ada', parent.id, { scopes: [ONE] });

    expect(await tokens.verify(child.value, NEED)).toEqual(SPLIT);
    expect(await tokens.explain('ada', child.id, NEED)).toMatchObject({
      allowed: false,
      reason: 'path_several_routes',
    });
    await tokens.modify('ada', parent.id, { scopes: [LIST] });
    expect(await tokens.verify(child.value, NEED)).toMatchObject({
      reason: 'ancestor_insufficient',
    });
  });

  it('is explained, and read by a guard, like in verify', async () => {
    const { tokens, free } = serviceOf(CATALOG);
    const { id, value } = await tokens.issue({ account: 'ada', scopes: [ONE] });
    const guard = bearerGuard({ tokens: free, domain: 'shop.example', catalog: CATALOG });
    const headers = { host: 'shop.example', authorization: `Bearer ${value}` };

    expect(await tokens.explain('ada', id, NEED)).toMatchObject({
      allowed: false,
      reason: 'path_several_routes',
    });
    expect(await guard({ method: 'GET', url: NEED.target, headers })).toMatchObject({
      ok: false,
      reason: 'ambiguous_request',
      response: { status: 400 },
    });
    expect(await guard({ method: 'GET', url: '/orders/Ex7', headers })).toMatchObject({ ok: true });
  });
});

describe('the Host of a Node request', () => {
  it.each<[host: string | undefined, isPlain: boolean]>([
    [undefined, true],
    ['shop.example', true],
    ['shop.example:8080', true],
    ['127.0.0.1:80', true],
    ['[::1]:80', true],
    ['api', true],
    ['my_service.local.', true],
    ['', false],
    ['shop.example/orders/export?', false],
    ['shop.example?', false],
    ['shop.example#', false],
    ['shop.example\\', false],
    ['ada@shop.example', false],
    ['shop.example:port', false],
    ['shop.example:', false],
    ['[::1', false],
    ['shop%2fexample', false],
    ['shop.example, shop.example', false],
    [' ', false],
  ])('%j is a host and an optional port: %s', async (host, isPlain) => {
    const { tokens } = serviceOf(CATALOG);
    const { value } = await tokens.issue({ account: 'ada', scopes: [ONE] });
    const guard = bearerGuard({ tokens, domain: 'shop.example' });
    const authorization = `Bearer ${value}`;
    const headers = host === undefined ? { authorization } : { host, authorization };

    const outcome = await guard({ method: 'GET', url: '/orders/7', headers });

    expect(outcome.ok).toBe(isPlain);
    if (outcome.ok) return;
    expect(outcome.reason).toBe('ambiguous_request');
    expect(await outcome.response.json()).toMatchObject({ details: { detail: 'host_invalid' } });
  });

  it('must come once', async () => {
    const { tokens } = serviceOf(CATALOG);
    const { value } = await tokens.issue({ account: 'ada', scopes: [ONE] });
    const guard = bearerGuard({ tokens, domain: 'shop.example' });
    const authorization = `Bearer ${value}`;
    const headers = { host: 'shop.example', authorization };
    const rawHeaders = [
      'Host',
      'shop.example',
      'HOST',
      'b.example',
      'Authorization',
      authorization,
    ];

    const outcome = await guard({ method: 'GET', url: '/orders/7', headers, rawHeaders });

    expect(outcome).toMatchObject({ ok: false, reason: 'ambiguous_request' });
  });

  it('is also read from the :authority of HTTP/2', async () => {
    const { tokens } = serviceOf(CATALOG);
    const { value } = await tokens.issue({ account: 'ada', scopes: [ONE] });
    const guard = bearerGuard({ tokens, domain: 'shop.example' });
    const headers = { ':authority': 'shop.example/x', authorization: `Bearer ${value}` };

    const outcome = await guard({ method: 'GET', url: '/orders/7', headers });

    expect(outcome).toMatchObject({ ok: false, reason: 'ambiguous_request' });
  });
});
