import { describe, expect, it } from 'vitest';
import { Rights } from '../../../../../src/app/console/page/picker/rights.ts';
import { ScopeSet } from '../../../../../src/scope/set.ts';

const ANY = 'GET:a.example/users/{}$';
const ME = 'GET:a.example/users/me$';
const OPEN = 'GET:a.example/users';

describe('Rights', () => {
  it.each([
    [OPEN, ME, true],
    [OPEN, ANY, true],
    ['*:*/*', ANY, true],
    [ANY, ANY, true],
    [ANY, ME, false],
    ['GET:a.example/users/{}', ME, false],
    [ANY, 'GET:a.example/users/ada$', false],
    [ME, ANY, false],
    [ANY, OPEN, false],
  ])('%s covers %s: %s', (outer, inner, expected) => {
    expect(new Rights([outer]).missing(new Rights([inner])).length === 0).toBe(expected);
  });

  it('know from a catalog which names are endpoints of their own', () => {
    const any = new Rights([ANY], ScopeSet.from([ANY, ME]));

    expect(any.missing(new Rights(['GET:a.example/users/ada$', ME]))).toEqual([ME]);
  });

  it('are equal if each covers the other', () => {
    expect(new Rights([OPEN, ME]).equals(new Rights([OPEN]))).toBe(true);
    expect(new Rights([ANY, ME]).equals(new Rights([ANY]))).toBe(false);
    expect(new Rights([]).equals(new Rights([]))).toBe(true);
  });

  it('reduce to the scopes that no other scope covers, each of them once', () => {
    expect(new Rights([ME, ANY, ANY]).fewest()).toEqual([ME, ANY]);
    expect(new Rights([ME, ANY, OPEN]).fewest()).toEqual([OPEN]);
  });
});
