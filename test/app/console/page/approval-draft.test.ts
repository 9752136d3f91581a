import { describe, expect, it } from 'vitest';
import {
  approvalOf,
  draftOfRequest,
  lifetimesWithin,
  readCode,
  withScopes,
} from '../../../../src/app/console/page/approval-draft.ts';
import type { WireRequest } from '../../../../src/http/wire.ts';
import { readUserCode } from '../../../../src/requests/user-code.ts';

const READ = 'GET:shop.example/orders';
const WRITE = 'POST:shop.example/orders';
const REQUEST: WireRequest = {
  id: '5sQ0bX8vK2mYt7RjW1cZpA',
  state: 'pending',
  client: 'deploy bot',
  scopes: [READ, WRITE],
  ttl: 900,
  createdAt: 1_900_000_000,
  expire: 1_900_000_600,
};

describe('a typed code', () => {
  it.each([
    ['WDJB-MJHT', 'WDJBMJHT'],
    ['wdjbmjht', 'WDJBMJHT'],
    ['  wdjb  mjht ', 'WDJBMJHT'],
    ['w-d-j-b\u2011m\u2013jht', 'WDJBMJHT'],
    ['WDJB-MJH', undefined],
    ['WDJB-MJHTT', undefined],
    ['WDJB-MJHA', undefined],
    ['WDJB-MJH1', undefined],
    ['WDJB/MJHT', undefined],
    ['..', undefined],
    ['', undefined],
  ])('%j is read as %s, as by the service', (typed, code) => {
    expect(readCode(typed)).toBe(code);
    expect(readUserCode(typed)).toBe(code);
  });
});

describe('the lifetimes to choose from', () => {
  it.each([
    [900, [60, 300, 900]],
    [901, [60, 300, 900, 901]],
    [60, [60]],
    [1, [1]],
    [3600, [60, 300, 900, 3600]],
  ])('end with the one that was asked for: %i', (ttl, expected) => {
    expect(lifetimesWithin(ttl)).toEqual(expected);
  });
});

describe('an approval', () => {
  it('holds all that was shown, if nothing was changed', () => {
    expect(approvalOf(REQUEST, draftOfRequest(REQUEST))).toEqual({
      scopes: [READ, WRITE],
      ttl: 900,
    });
  });

  it('leaves out what is not ticked, and takes it in again', () => {
    const less = withScopes(draftOfRequest(REQUEST), [WRITE], false);

    expect(approvalOf(REQUEST, { ...less, ttl: 60 })).toEqual({ scopes: [READ], ttl: 60 });
    expect(approvalOf(REQUEST, withScopes(less, [WRITE], true)).scopes).toEqual([READ, WRITE]);
    expect(approvalOf(REQUEST, withScopes(less, [READ], false)).scopes).toEqual([]);
  });

  it('never holds more than was shown', () => {
    const more = withScopes(draftOfRequest(REQUEST), ['DELETE:shop.example/orders'], true);

    expect(approvalOf(REQUEST, more).scopes).toEqual([READ, WRITE]);
  });
});
