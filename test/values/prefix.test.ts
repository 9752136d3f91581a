import { describe, expect, it } from 'vitest';
import { isTokenError } from '../../src/errors.ts';
import { checkPrefix } from '../../src/values/prefix.ts';

describe('checkPrefix', () => {
  it.each([
    ['ab', true],
    ['a', false],
    ['a234567890123456', true],
    ['a2345678901234567', false],
    ['a1', true],
    ['1a', false],
    ['acme_live', true],
    ['acme_', false],
    ['acme_1', true],
    ['acme_12345678', true],
    ['acme_123456789', false],
    ['acme_live_2', false],
    ['Acme', false],
    ['acme-live', false],
    ['acmé', false],
    ['acme\n', false],
    ['_acme', false],
    ['', false],
  ])('accepts %j: %s', (prefix, isGood) => {
    if (isGood) expect(checkPrefix(prefix)).toBe(prefix);
    else
      expect(() => checkPrefix(prefix)).toThrow(
        expect.objectContaining({ code: 'invalid_options' }),
      );
  });

  it.each([
    ['ghp', 'ghx'],
    ['gho', 'ghoo'],
    ['github_pat', 'github'],
    ['glpat', 'glpa'],
    ['sk_live', 'skx_live'],
    ['sk_test', 'acme_test'],
    ['pk_live', 'pk_lives'],
    ['rk_live', 'rk'],
    ['whsec', 'whse'],
    ['xoxb', 'xox'],
    ['npm', 'npx'],
    ['pypi', 'pyp'],
    ['hf', 'hfx'],
    ['shpat', 'shp'],
    ['dop_v1', 'dop_v2'],
    ['hvs', 'hv'],
    ['dckr_pat', 'dckr'],
  ])('refuses %s, a prefix of another vendor, and accepts %s', (foreign, free) => {
    const refusal = (() => {
      try {
        return checkPrefix(foreign);
      } catch (error) {
        return error;
      }
    })();

    expect(isTokenError(refusal) && refusal.code).toBe('invalid_options');
    expect(checkPrefix(free)).toBe(free);
  });

  it.each<[unknown]>([[undefined], [null], [42], [['acme']], [{}], [Symbol('acme')]])(
    'refuses a value that is not a string (%#)',
    (prefix) => {
      expect(() => checkPrefix(prefix)).toThrow(
        expect.objectContaining({ code: 'invalid_options' }),
      );
    },
  );
});
