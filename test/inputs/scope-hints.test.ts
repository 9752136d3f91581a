import { describe, expect, it } from 'vitest';
import { likeness } from '../../src/inputs/scope-hints.ts';
import { ScopeCatalog, safeParseScope } from '../../src/scope/index.ts';
import { refusalOf, SCOPE, setUp } from '../support.ts';

const FORM = 'a scope here is METHOD:domain/path, such as';

describe('likeness', () => {
  it.each([
    ['https://api.example.com/orders', 'GET:api.example.com/orders'],
    ['http://api.example.com/orders/', 'GET:api.example.com/orders'],
    ['https://API.example.com:8443/orders?page=2#top', 'GET:api.example.com/orders'],
    ['https://api.example.com', 'GET:api.example.com/$'],
    ['https://api.example.com/', 'GET:api.example.com/$'],
    ['https://user:secret@api.example.com/orders', 'GET:api.example.com/orders'],
    ['GET https://api.example.com/orders', 'GET:api.example.com/orders'],
    ['post: https://api.example.com/orders', 'POST:api.example.com/orders'],
    ['DELETE:https://api.example.com/orders/7', 'DELETE:api.example.com/orders/7'],
    ['https://127.0.0.1/orders', 'GET:shop.example/orders'],
    ['https://api.example.com/a%20b', 'GET:shop.example/orders'],
    ['https://api.example.com/orders/*', 'GET:shop.example/orders'],
  ])('recognizes a URL in %s and suggests %s', (text, scope) => {
    expect(likeness(text)).toBe(`; this looks like a URL, and ${FORM} ${scope}`);
    expect(safeParseScope(scope).ok).toBe(true);
    expect(safeParseScope(text).ok).toBe(false);
  });

  it.each(['openid', 'read:orders', 'orders:read', 'user.read', 'admin:org_hook', 'urn:a:b'])(
    'recognizes %s as an OAuth scope',
    (text) => {
      const hint = `; this looks like an OAuth scope, and ${FORM} GET:shop.example/orders`;
      expect(likeness(text)).toBe(hint);
      expect(likeness(`openid ${text} offline_access`)).toBe(hint);
      expect(safeParseScope(text).ok).toBe(false);
    },
  );

  it.each([
    ['GET api.example.com/orders', 'as in GET:api.example.com/orders'],
    ['get  api.example.com/', 'as in GET:api.example.com/$'],
    ['GET /orders/7', 'a scope names the domain, too, such as GET:shop.example/orders/7'],
    ['api.example.com/orders', 'put the method in front, as in GET:api.example.com/orders'],
    ['localhost/orders', 'put the method in front, as in GET:localhost/orders'],
  ])('hints for %s: %s', (text, hint) => {
    expect(likeness(text)).toContain(hint);
  });

  it.each([
    ['an empty text', ''],
    ['a method', 'GET'],
    ['a method in lower case', 'get'],
    ['a scope without a path', 'GET:shop.example'],
    ['a scope in lower case', 'get:shop.example/orders'],
    ['a scope with a port', 'GET:shop.example:80/orders'],
    ['a scope with an encoding', 'GET:shop.example/a%20b'],
    ['a path', '/orders'],
    ['a folder', './orders'],
    ['a comma', 'read:orders,write:orders'],
    ['a number', 7],
    ['null', null],
    ['a list', ['openid']],
    ['an unprintable text', 'read:orders\u0000'],
    ['another script', 'read:öl'],
    ['a long text', 'a'.repeat(201)],
  ])('gives no hint for %s', (_, text) => {
    expect(likeness(text)).toBe('');
  });
});

describe('a refusal of the service', () => {
  const catalog = ScopeCatalog.from([SCOPE, 'GET:shop.example/users$']);

  /** Every call that reads a list of scopes, and the member that holds it. */
  const CALLS = [
    ['issue', 'scopes'],
    ['modify', 'scopes'],
    ['patch', 'scopes'],
    ['patch', 'addScopes'],
    ['patch', 'removeScopes'],
  ] as const;

  async function refused(verb: (typeof CALLS)[number][0], member: string, scopes: string[]) {
    const { tokens } = setUp({ catalog });
    const { id } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const input = { [member]: scopes } as { scopes: string[] };
    if (verb === 'issue') return refusalOf(tokens.issue({ account: 'acme', ...input }));
    return refusalOf(tokens[verb]('acme', id, input));
  }

  it.each(CALLS)('hints what a text looks like: %s, %s', async (verb, member) => {
    const { code, message, details } = await refused(verb, member, ['read:orders', 'openid']);

    expect(code).toBe('invalid_scope');
    expect(message).toMatch(new RegExp(`^${member} cannot be read: .*looks like an OAuth scope`));
    expect(details).toMatchObject({ member, scopes: ['read:orders', 'openid'] });
  });

  it.each(CALLS)('names the member of an unknown scope: %s, %s', async (verb, member) => {
    const { code, details } = await refused(verb, member, ['GET:shop.example/ordres']);

    expect(code).toBe('scope_unmatched');
    expect(details).toMatchObject({ member, scopes: ['GET:shop.example/ordres'] });
  });

  it.each(CALLS.slice(0, 4))('refuses :id, and suggests {}: %s, %s', async (verb, member) => {
    const { code, details, message } = await refused(verb, member, ['GET:shop.example/users/:id']);
    const other = await refused(verb, member, ['GET:shop.example/users/a:b']);

    expect([code, other.code]).toEqual(['invalid_scope', 'scope_unmatched']);
    expect(message).toMatch(/; did you mean "GET:shop\.example\/users\/\{\}"\?$/);
    expect(details).toMatchObject({
      member,
      refused: [{ code: 'route_parameter', suggestion: 'GET:shop.example/users/{}' }],
    });
  });

  it('gives no hint beside a correction', async () => {
    const { message } = await refused('issue', 'scopes', ['get:shop.example/orders']);

    expect(message).toMatch(/did you mean "GET:shop\.example\/orders"\?$/);
  });

  it('hints what a needed scope and a filter look like', async () => {
    const { tokens } = setUp();
    const { value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });

    const verified = await refusalOf(tokens.verify(value, { scope: 'read:orders' }));
    const listed = await refusalOf(
      tokens.list({ account: 'acme', scope: 'https://shop.example/orders' }),
    );

    expect(verified.message).toContain('this looks like an OAuth scope');
    expect(listed.message).toMatch(/^scope: .*such as GET:shop\.example\/orders$/);
  });

  it('names the member of a patch that leaves no scope', async () => {
    const { code, message, details } = await refused('patch', 'removeScopes', [SCOPE]);

    expect(code).toBe('scopes_required');
    expect(message).toMatch(/^removeScopes /);
    expect(details).toEqual({ member: 'removeScopes' });
  });
});
