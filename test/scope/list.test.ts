import { describe, expect, it } from 'vitest';
import { ScopeCatalog, safeParseScope } from '../../src/scope/index.ts';
import { parseScopes } from '../../src/scope/list.ts';

describe('parseScopes', () => {
  it('parses a list in the given order, without duplicates', () => {
    const scopes = parseScopes(['POST:d.example/a', 'GET:d.example/a', 'POST:D.example/a']);

    expect(scopes.map(String)).toEqual(['POST:d.example/a', 'GET:d.example/a']);
  });

  it('accepts wildcards', () => {
    expect(parseScopes(['*:*/*', '*:*.example/a']).map(String)).toEqual(['*:*/*', '*:*.example/a']);
  });
});

describe('a segment like the parameter of a route', () => {
  it.each([
    ['GET:d.example/a/:id', 'GET:d.example/a/{}'],
    ['GET:d.example/a/:id$', 'GET:d.example/a/{}$'],
    ['GET:d.example/:id/a', 'GET:d.example/{}/a'],
    ['GET:d.example/:a$/b:c$', 'GET:d.example/{}/b:c$'],
    ['GET:d.example/b/:id/c/:key', 'GET:d.example/b/{}/c/{}'],
  ])('is refused in %s, which meant %s', (scope, meant) => {
    const parse = () => parseScopes([scope]);
    const [refused] = [{ scope, code: 'route_parameter', suggestion: meant }];
    expect(parse).toThrow(expect.objectContaining({ code: 'scope_invalid', refused: [refused] }));
    expect(parse).toThrow(`; did you mean "${meant}"?`);
    expect(() => ScopeCatalog.from([scope])).toThrow(
      expect.objectContaining({ code: 'catalog_not_concrete', refused: [refused] }),
    );
    expect(() => ScopeCatalog.from(['GET:d.example/a']).expand([scope])).toThrow(`"${meant}"`);
    // The parser reads the text as it is.
    expect(safeParseScope(scope).ok).toBe(true);
  });

  it.each([
    'GET:d.example/:$',
    'GET:d.example/:0/a',
    'GET:d.example/:(a)',
    'GET:d.example/a:b',
    'GET:d.example/a/x:id/b',
    'GET:d.example/a/:/b',
  ])('is none in %s', (scope) => {
    expect(parseScopes([scope]).map(String)).toEqual([scope]);
    expect(ScopeCatalog.from([scope]).size).toBe(1);
  });
});
