import { describe, expect, it } from 'vitest';
import {
  activeFilters,
  type ListFilters,
  looksLikeValue,
  NO_FILTERS,
  queryOf,
  readFilters,
  searchOf,
} from '../../../../src/app/console/page/list-filters.ts';

const ALL: ListFilters = {
  name: 'a&b #c',
  state: 'revoked',
  scope: 'GET:shop.example/*',
  domain: 'shop.example',
  createdBy: 'Grace & Söhne',
  unused: true,
  sort: 'expire',
};

describe('the filters of a list', () => {
  it.each<Partial<ListFilters>>([
    {},
    ALL,
    { name: 'שלום' },
    { state: 'all' },
    { unused: true },
    { sort: 'name' },
  ])('%j can be read back from an address', (part) => {
    const filters = { ...NO_FILTERS, ...part };

    expect(readFilters(searchOf(filters))).toEqual(filters);
  });

  it('leave nothing in the address if there are none', () => {
    expect(searchOf(NO_FILTERS)).toBe('');
  });

  it.each(['state=gone', 'sort=id', 'unused=yes', 'else=1', '%'])(
    'ignore what they do not know: %s',
    (search) => {
      expect(readFilters(search)).toEqual(NO_FILTERS);
    },
  );

  it('count as active if they leave something out, unlike an order', () => {
    expect(activeFilters(NO_FILTERS)).toEqual([]);
    expect(activeFilters({ ...NO_FILTERS, sort: 'name' })).toEqual([]);
    expect(activeFilters(ALL)).toEqual(['name', 'state', 'scope', 'domain', 'createdBy', 'unused']);
  });

  it('ask the service for what was chosen, and for nothing empty', () => {
    expect(queryOf(NO_FILTERS)).toEqual({ state: 'live', sort: 'created' });
    expect(queryOf(ALL)).toEqual({ ...ALL, unused: 'never' });
  });
});

describe('a text that looks like a value', () => {
  const body = 'A'.repeat(57);

  it.each([
    [`acme_1${body}`, true],
    [`Bearer acme_1${body}`, true],
    [`acme_1${body.slice(1)}`, false],
    [body, false],
    ['Nightly build', false],
    ['', false],
  ])('%s: %s', (text, expected) => {
    expect(looksLikeValue(text)).toBe(expected);
  });
});
