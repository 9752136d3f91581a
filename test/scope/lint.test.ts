import { describe, expect, it } from 'vitest';
import { ScopeCatalog, ScopeSet } from '../../src/scope/index.ts';

const found = (scopes: readonly string[]) =>
  ScopeCatalog.from(scopes)
    .lint()
    .map(({ code, scopes: named }) => [code, ...named]);

describe('ScopeCatalog.lint', () => {
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
    [
      ['GET:d.example/a$', 'GET:d.example/a/b', 'GET:d.example/a/{}$'],
      [['crossing', 'GET:d.example/a/b', 'GET:d.example/a/{}$']],
    ],
    [['GET:d.example/a$', 'GET:d.example/a/b$', 'GET:d.example/a/{}$'], []],
    [['GET:d.example/{}', 'POST:d.example/a/b$'], []],
    [
      ['GET:d.example/{}/b', 'GET:d.example/a/b/c$', 'GET:d.example/a/{}/c$'],
      [
        ['nested', 'GET:d.example/{}/b', 'GET:d.example/a/b/c$'],
        ['crossing', 'GET:d.example/a/{}/c$', 'GET:d.example/{}/b'],
      ],
    ],
    [
      ['GET:d.example/a', 'GET:d.example/a$', 'GET:d.example/a/{}$'],
      [
        ['nested', 'GET:d.example/a', 'GET:d.example/a$'],
        ['nested', 'GET:d.example/a', 'GET:d.example/a/{}$'],
      ],
    ],
    [['POST:d.example/token'], [['token_service', 'POST:d.example/token']]],
    [['DELETE:d.example/auth/token'], [['token_service', 'DELETE:d.example/auth/token']]],
    [['POST:d.example/auth/token$'], [['token_service', 'POST:d.example/auth/token$']]],
    [['POST:d.example/token$$', 'POST:d.example/token/{}$'], []],
    [['GET:d.example/tokens', 'GET:d.example/mytoken', 'GET:d.example/token/x'], []],
    [
      ['GET:d.example/a', 'GET:eu.d.example/a', 'POST:d.example/b'],
      [['apex', 'GET:d.example/a', 'POST:d.example/b']],
    ],
    [['GET:d.example/a', 'GET:xd.example/a'], []],
    [['GET:d.example/a/{}$', 'GET:d.example/:$', 'GET:d.example/a/:$'], []],
    [
      ['GET:d.example/ME$', 'GET:d.example/me$', 'POST:d.example/me$', 'GET:d.example/me'],
      [
        ['nested', 'GET:d.example/me', 'GET:d.example/me$'],
        ['case', 'GET:d.example/ME$', 'GET:d.example/me$'],
      ],
    ],
    [
      [
        'GET:d.example/p/b/{}$',
        'GET:d.example/p/{}/c$',
        'POST:d.example/p/{}/c$',
        'GET:d.example/p/{}/{}$',
      ],
      [['crossing', 'GET:d.example/p/b/{}$', 'GET:d.example/p/{}/c$']],
    ],
    [
      ['GET:d.example/a', 'GET:d.example/{}/b$', 'GET:d.example/{}/{}$'],
      [['crossing', 'GET:d.example/a', 'GET:d.example/{}/b$', 'GET:d.example/{}/{}$']],
    ],
    [['GET:d.example/a:id', 'GET:d.example/a/7:cancel', 'GET:d.example/a/id:'], []],
  ])('reports for %j the findings %j', (scopes, findings) => {
    expect(found(scopes)).toEqual(findings);
  });

  it('explains each finding in its message', () => {
    const [nested, apex] = ScopeCatalog.from([
      'GET:d.example/a',
      'GET:d.example/a/b',
      'GET:eu.d.example/a',
    ]).lint();

    expect(nested?.message).toContain('GET:d.example/a opens GET:d.example/a/b');
    expect(nested?.message).toContain('; GET:d.example/a$ does not');
    expect(apex?.message).toContain('*.d.example');
  });

  it('gives the same findings while an equal set in use shares the compiled index', () => {
    const scopes = ['GET:d.example/a', 'POST:d.example/a'];
    const equal = ScopeSet.from(scopes);
    expect(equal.covers('GET:d.example/a/b')).toBe(true);

    expect(found(scopes)).toEqual([]);
    expect(equal.size).toBe(2);
  });
});
