import { describe, expect, it } from 'vitest';
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
