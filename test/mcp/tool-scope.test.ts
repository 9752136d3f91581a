import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toolScope } from '../../src/mcp/index.ts';
import { parseScope } from '../../src/scope/index.ts';
import { runs } from '../laws.ts';
import { codeOf } from '../support.ts';
import { account, answerTo, callOf, message, setUp } from './support.ts';

describe('toolScope', () => {
  it.each([
    ['shop.example', 'refund', 'POST:shop.example/tools/refund$'],
    ['Shop.Example', 'A.b_c-1', 'POST:shop.example/tools/A.b_c-1$'],
    ['shop.example', '__proto__', 'POST:shop.example/tools/__proto__$'],
  ])('of %s and %s is %s', (domain, tool, scope) => {
    expect(toolScope(domain, tool)).toBe(scope);
    expect(String(parseScope(scope))).toBe(scope);
  });

  it.each([
    ['shop.example', ''],
    ['shop.example', '..'],
    ['shop.example', 'a/b'],
    ['shop.example', 'a$'],
    ['shop.example', 'a'.repeat(129)],
    ['shop.example', undefined],
    ['*.example', 'refund'],
    ['shop.example/x', 'refund'],
    ['', 'refund'],
    [undefined, 'refund'],
  ])('refuses %j and %j', async (domain, tool) => {
    expect(await codeOf(() => toolScope(domain as string, tool as string))).toBe('invalid_request');
  });
});

describe('the list of tools', () => {
  const names = ['a', 'b', 'c.d', 'own', 'below', '..', 'x/y', 'own/y'];
  const tools = {
    own: 'GET:shop.example/own',
    below: 'GET:shop.example/own/b',
    'own/y': 'GET:shop.example/y$',
  };
  const scopes = [
    ...['POST:shop.example/tools', 'POST:shop.example/tools/a$', 'POST:shop.example/tools/b'],
    ...['POST:*.example/tools/c.d', 'GET:shop.example/own$', 'GET:shop.example/own', 'GET:*/y'],
    ...[
      '*:shop.example/*',
      'GET:shop.example/own/{}',
      'POST:shop.example/tools/{}$',
      'POST:other.example/tools',
    ],
  ];

  it('holds exactly the tools that may be called, also with ancestors', async () => {
    const { tokens, call, post } = await setUp({ tools });
    const some = fc.uniqueArray(fc.constantFrom(...scopes), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(some, some, async (held, left) => {
        const parent = await tokens.issue({ account, scopes: ['*:*/*'] });
        const child = await tokens.derive(parent.value, { scopes: held });
        await tokens.modify(account, parent.id, { scopes: left });
        for (const value of [child.value, (await tokens.issue({ account, scopes: held })).value]) {
          const { allows } = await post(message('tools/list'), { value });
          for (const name of names) {
            const { ok, allows: later } = await call(name, { value });
            expect(allows?.(name) ?? false, `${name}: ${held} within ${left}`).toBe(ok);
            expect(later?.(name) ?? false).toBe(ok);
          }
        }
      }),
      runs(0.3),
    );
  });

  it('is empty for what is not a name', async () => {
    const { post } = await setUp({ scopes: ['*:*/*'] });
    const { allows } = await post(message('tools/list'));

    for (const name of [undefined, null, 7, {}, '', '*'])
      expect(allows?.(name as string)).toBe(false);
  });

  it('is refused with the same answer as a call for a token of another server', async () => {
    const { post } = await setUp({ scopes: ['POST:other.example/tools'] });

    expect(await answerTo(await post(message('tools/list')))).toEqual(
      await answerTo(await post(callOf('a'))),
    );
  });
});
