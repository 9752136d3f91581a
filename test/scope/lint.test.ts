import { describe, expect, it } from 'vitest';
import { ScopeCatalog, ScopeSet } from '../../src/scope/index.ts';

const found = (scopes: readonly string[]) =>
  ScopeCatalog.from(scopes)
    .lint()
    .map(({ code, scopes: named }) => [code, ...named]);

describe('lint', () => {
  it.each<[readonly string[], readonly (readonly string[])[]]>([
    [[], []],
    [['GET:d.example/a', 'GET:d.example/ab', 'POST:d.example/a/b'], []],
    [
      ['GET:d.example/a', 'GET:d.example/a/b', 'GET:d.example/a/b/c'],
      [
        ['nested', 'GET:d.example/a', 'GET:d.example/a/b'],
        ['nested', 'GET:d.example/a', 'GET:d.example/a/b/c'],
      ],
    ],
    [['POST:d.example/token'], [['token_service', 'POST:d.example/token']]],
    [['DELETE:d.example/auth/token'], [['token_service', 'DELETE:d.example/auth/token']]],
    [['GET:d.example/tokens', 'GET:d.example/mytoken', 'GET:d.example/token/x'], []],
    [
      ['GET:d.example/a', 'GET:eu.d.example/a', 'POST:d.example/b'],
      [['apex', 'GET:d.example/a', 'POST:d.example/b']],
    ],
    [['GET:d.example/a', 'GET:xd.example/a'], []],
    [['GET:d.example/a/:id'], [['parameter', 'GET:d.example/a/:id']]],
    [
      ['GET:d.example/:id', 'GET:d.example/a/:id/b'],
      [
        ['parameter', 'GET:d.example/:id'],
        ['parameter', 'GET:d.example/a/:id/b'],
      ],
    ],
    [['GET:d.example/a:id', 'GET:d.example/a/7:cancel', 'GET:d.example/a/id:'], []],
  ])('of %j finds %j', (scopes, findings) => {
    expect(found(scopes)).toEqual(findings);
  });

  it('says in words what each means', () => {
    const [nested, apex] = ScopeCatalog.from([
      'GET:d.example/a',
      'GET:d.example/a/b',
      'GET:eu.d.example/a',
    ]).lint();

    expect(nested?.message).toContain('GET:d.example/a/b lies below GET:d.example/a');
    expect(apex?.message).toContain('*:*.d.example/*');
  });

  it.each([
    ['GET:d.example/a/:id', 'GET:d.example/a covers what is below it'],
    ['GET:d.example/a/b/:id/c/:key', 'GET:d.example/a/b covers what is below it'],
    ['GET:d.example/:id/a', 'begin the path with a name'],
  ])('tells what to write for %s', (scope, cure) => {
    const [parameter] = ScopeCatalog.from([scope]).lint();

    expect(parameter?.message).toContain(scope);
    expect(parameter?.message).toContain(cure);
    // What it says of the entry is so.
    const request = { method: 'GET', domain: 'd.example' };
    const target = scope.slice(scope.indexOf('/'));
    const held = ScopeSet.from([scope]);
    expect(held.allows({ ...request, target }).allowed).toBe(true);
    expect(held.allows({ ...request, target: target.replaceAll(/:\w+/g, '7') }).allowed).toBe(
      false,
    );
  });

  it('is the same while an equal set is in use, with which it shares what is compiled', () => {
    const scopes = ['GET:d.example/a', 'POST:d.example/a'];
    const equal = ScopeSet.from(scopes);
    expect(equal.covers('GET:d.example/a/b')).toBe(true);

    expect(found(scopes)).toEqual([]);
    expect(equal.size).toBe(2);
  });
});
