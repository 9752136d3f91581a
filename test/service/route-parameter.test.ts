import { describe, expect, it } from 'vitest';
import { bearerGuard } from '../../src/http/guard/guard.ts';
import {
  expressGuard,
  fastifyGuard,
  honoGuard,
  koaGuard,
  nestGuard,
  nextGuard,
} from '../../src/http/index.ts';
import { defineCatalog, parseScope, ScopeCatalog } from '../../src/scope/index.ts';
import type { TokenService } from '../../src/service.ts';
import { formats } from '../../src/values/foreign.ts';
import { setUp as setUpHttp } from '../http/support.ts';
import { refusalOf, SCOPE, setUp } from '../support.ts';

const WRITTEN = 'GET:shop.example/orders/:id/items/:item$';
const MEANT = 'GET:shop.example/orders/{}/items/{}$';
/** No segment begins with a colon. */
const PLAIN = 'GET:shop.example/orders/a:b';

type Call = (tokens: TokenService, scope: string, given: { id: string; value: string }) => unknown;

const row = (scope: string) => ({
  account: 'a',
  digest: 'a'.repeat(64),
  format: 'sanctum',
  scopes: [scope],
  expiresAt: new Date('2100-06-01'),
});
const CALLS: readonly [string, Call][] = [
  ['issue', (t, scope) => t.issue({ account: 'a', scopes: [scope] })],
  ['modify', (t, scope, { id }) => t.modify('a', id, { scopes: [scope] })],
  ['patch, scopes', (t, scope, { id }) => t.patch('a', id, { scopes: [scope] })],
  ['patch, addScopes', (t, scope, { id }) => t.patch('a', id, { addScopes: [scope] })],
  ['derive', (t, scope, { value }) => t.derive(value, { scopes: [scope] })],
  ['import', (t, scope) => t.import(row(scope))],
  ['list', (t, scope) => t.list({ account: 'a', scope })],
  ['explain', (t, scope, { id }) => t.explain('a', id, { scope })],
];

describe('a scope with the parameter of a route', () => {
  it.each(CALLS)('is refused with the scope that is meant by %s', async (_, call) => {
    const { tokens } = setUp({ foreign: [formats.sanctum()] });
    const token = await tokens.issue({ account: 'a', scopes: [SCOPE] });

    const error = await refusalOf(Promise.resolve().then(() => call(tokens, WRITTEN, token)));
    expect(error.code).toBe('invalid_scope');
    expect(error.message).toContain(`did you mean "${MEANT}"?`);
    const { suggestion = error.details?.['refused'] } = error.details ?? {};
    expect(JSON.stringify(suggestion)).toContain(MEANT);
    await call(tokens, MEANT, token);
  });

  it('is accepted if the colon does not begin a segment (the control)', async () => {
    const { tokens } = setUp();
    const { scopes } = await tokens.issue({ account: 'a', scopes: [PLAIN] });

    expect(scopes).toEqual([PLAIN]);
  });

  it('is refused in a row of an import', async () => {
    const { tokens } = setUp({ foreign: [formats.sanctum()] });
    const refused: unknown[] = [];
    const report = await tokens.importMany([row(WRITTEN)], {
      onRefused: (each) => refused.push(each),
    });

    expect(report).toMatchObject({ imported: 0, refused: 1 });
    expect(refused).toMatchObject([{ row: 1, code: 'invalid_scope' }]);
  });

  it.each([ScopeCatalog.from, defineCatalog])('is refused in a catalog (%#)', (make) => {
    const entry: string = WRITTEN;

    expect(() => make([entry as never])).toThrow(
      expect.objectContaining({
        code: 'catalog_not_concrete',
        refused: [{ scope: WRITTEN, code: 'route_parameter', suggestion: MEANT }],
      }),
    );
    expect(make([MEANT as never]).toArray()).toEqual([MEANT]);
  });

  it.each([expressGuard, fastifyGuard, honoGuard, koaGuard, nestGuard, nextGuard])(
    'is refused when a guard of a route is made (%#)',
    (make) => {
      const guard = bearerGuard({ tokens: setUp().tokens, domain: 'shop.example' });
      const made = (scope: string) =>
        (make as (...args: unknown[]) => unknown)(guard, { scope }, () => {});

      expect(() => made(WRITTEN)).toThrow(
        expect.objectContaining({
          code: 'invalid_options',
          message: expect.stringContaining(`did you mean "${MEANT}"?`),
        }),
      );
      expect(() => made(MEANT)).not.toThrow();
    },
  );

  it.each<[method: string, path: string, json: (scope: string) => unknown]>([
    ['POST', '/token', (scope) => ({ scopes: [scope] })],
    ['PUT', '/token/ID', (scope) => ({ scopes: [scope] })],
    ['PATCH', '/token/ID', (scope) => ({ addScopes: [scope] })],
    ['POST', '/token/ID/explain', (scope) => ({ scope })],
  ])('is refused over HTTP: %s %s', async (method, path, json) => {
    const { call, issue } = setUpHttp({ catalog: null });
    const { id } = await issue();
    const send = (scope: string) => call(method, path.replace('ID', id), { json: json(scope) });

    expect(await send(WRITTEN)).toMatchObject({ status: 422 });
    expect(await send(MEANT)).toMatchObject({ status: 200 });
  });

  it('is text to the parser, and to verify', async () => {
    const { tokens } = setUp();
    const { value } = await tokens.issue({ account: 'a', scopes: [MEANT] });

    expect(parseScope(WRITTEN).toString()).toBe(WRITTEN);
    expect(await tokens.allows(value, { scope: WRITTEN })).toBe(true);
  });
});
