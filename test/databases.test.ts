import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { differencesOf, isRefusedTableTrue } from './databases.ts';

const DOCUMENT = `
| another table |
<!-- tested: begin -->
| database | version | driver | what ran | tests |
| --- | --- | --- | --- | --- |
| PostgreSQL | 15.18 | \`pg\` 8.23.1 | contracts | 9 |
| MariaDB | 10.11.19 | \`mysql2\` 3.24.5 | contracts | 9 |
<!-- tested: end -->`;

const ROW = { server: 'sqlite', parts: 1, driver: '', ran: 'contracts', titles: /./ } as const;
const postgres = {
  row: { ...ROW, database: 'PostgreSQL' },
  version: '15.18',
  driver: '`pg` 8.23.1',
  passed: 9,
};
const mariadb = {
  row: { ...ROW, database: 'MariaDB' },
  version: '10.11.19',
  driver: '`mysql2` 3.24.5',
  passed: 9,
};
const LISTED = '- PostgreSQL | 15 | `pg` 8 | contracts';

describe('differencesOf', () => {
  it.each([
    ['ran', {}, []],
    ['ran with another minor version', { version: '15.20' }, []],
    ['ran with another minor version of its driver', { driver: '`pg` 8.24.0' }, []],
    ['passed more tests', { passed: 10 }, []],
    ['did not run', { passed: 0 }, [LISTED]],
    ['ran as 16', { version: '16.1' }, [LISTED, '+ PostgreSQL | 16 | `pg` 8 | contracts']],
    ['ran with pg 9', { driver: '`pg` 9.0.0' }, [LISTED, '+ PostgreSQL | 15 | `pg` 9 | contracts']],
  ])('says whether a database that is listed %s', (_, change, differences) => {
    expect(differencesOf([{ ...postgres, ...change }, mariadb], DOCUMENT)).toEqual(differences);
  });

  it('takes 10.6 for another version of MariaDB than 10.11', () => {
    expect(differencesOf([postgres, { ...mariadb, version: '10.6.1' }], DOCUMENT)).toEqual([
      '- MariaDB | 10.11 | `mysql2` 3 | contracts',
      '+ MariaDB | 10.6 | `mysql2` 3 | contracts',
    ]);
  });

  it('names each database that ran and is not listed', () => {
    expect(differencesOf([postgres], DOCUMENT.replace(/.*PostgreSQL.*\n/, ''))).toEqual([
      '- MariaDB | 10.11 | `mysql2` 3 | contracts',
      '+ PostgreSQL | 15 | `pg` 8 | contracts',
    ]);
  });
});

describe('the table of refused databases', () => {
  const page = readFileSync(new URL('../docs/support.md', import.meta.url), 'utf8');

  it('has the messages of migrate', () => {
    expect(isRefusedTableTrue(page)).toBe(true);
  });

  it('is found wrong if a message differs', () => {
    expect(isRefusedTableTrue(page.replace('use a local table', 'use another table'))).toBe(false);
  });
});
