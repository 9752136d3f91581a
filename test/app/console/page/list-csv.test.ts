import { describe, expect, it } from 'vitest';
import type { ShownToken } from '../../../../src/app/console/page/api.ts';
import { csvOf } from '../../../../src/app/console/page/list-csv.ts';

const TOKEN: ShownToken = {
  id: '5sQ0bX8vK2mYt7RjW1cZpA',
  masked: 'acme_1k10pmnna…',
  state: 'active',
  scopes: ['GET:shop.example/orders', 'POST:shop.example/orders'],
  createdAt: 1_900_000_000,
  expire: 1_900_086_400,
  version: 1,
  isReadable: false,
};

const cellsOf = (token: Partial<ShownToken>) =>
  csvOf([{ ...TOKEN, ...token }]).split('\r\n')[1] ?? '';

describe('tokens as CSV', () => {
  it('begins with the names of the columns, and ends each line as RFC 4180 says', () => {
    expect(csvOf([TOKEN])).toBe(
      'id,name,masked,state,createdAt,expire,lastUsed,uses,parent,scopes,createdBy\r\n' +
        '5sQ0bX8vK2mYt7RjW1cZpA,,acme_1k10pmnna…,active,2030-03-17T17:46:40.000Z,2030-03-18T17:46:40.000Z,,,,GET:shop.example/orders POST:shop.example/orders,\r\n',
    );
  });

  it('has only its head without tokens', () => {
    expect(csvOf([])).toMatch(/^id,[^\r]*\r\n$/);
  });

  it.each([
    ['plain', 'plain'],
    ['a, b', '"a, b"'],
    ['say "hi"', '"say ""hi"""'],
    ['two\nlines', '"two\nlines"'],
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t=1"],
    ['="a"', `"'=""a"""`],
    ['a=1', 'a=1'],
    ['1-1', '1-1'],
  ])('writes the name %j as %s', (name, cell) => {
    expect(cellsOf({ name })).toContain(`,${cell},acme_`);
  });

  it('writes who made a token, at the end', () => {
    expect(cellsOf({ createdBy: 'grace, of sales' })).toMatch(/orders,"grace, of sales"$/);
    expect(cellsOf({})).toMatch(/orders,$/);
  });

  it('writes uses, and leaves out what was never used', () => {
    expect(cellsOf({ uses: 3, lastUsed: 1_900_000_000 })).toContain(',2030-03-17T17:46:40.000Z,3,');
    expect(cellsOf({ uses: 0, lastUsed: null })).toContain('000Z,,0,');
  });
});
