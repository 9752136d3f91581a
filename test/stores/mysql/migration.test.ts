// What `migrate` does on servers that cannot be had here, and when others migrate concurrently.
import { createPool, type Pool } from 'mysql2';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import type { MysqlPool } from '../../../src/stores/mysql/client.ts';
import { MysqlTokenStore, migrate } from '../../../src/stores/mysql/index.ts';
import type { MysqlStatement } from '../../../src/stores/mysql/statement.ts';
import { newName } from '../database-hosts.ts';
import { CREATED, newRecord } from '../support.ts';

const url = inject('servers').mariadb;

type Rows = readonly Readonly<Record<string, unknown>>[];

/** A pool of a server that answers to `migrate` as it is told. */
function fakePool(answer: (sql: string) => Rows | number): { pool: MysqlPool; sent: string[] } {
  const sent: string[] = [];
  const query = ({ sql }: MysqlStatement, callback: (error: unknown, rows: unknown) => void) => {
    sent.push(sql);
    const given = answer(sql);
    if (typeof given === 'number') callback({ errno: given }, undefined);
    else callback(null, given);
  };
  const connection = { query, execute: query, release() {}, destroy() {} };
  return { pool: { getConnection: (callback) => callback(null, connection) }, sent };
}

const MARKS = [
  ['_usage', 'tokenwright usage schema 1, needs 1'],
  ['_leases', 'tokenwright lease schema 1, needs 1'],
  ['_requests', 'tokenwright request schema 1, needs 1'],
  ['_tokens', 'tokenwright schema 1, needs 1'],
] as const;
/** The state of a table that is up to date. */
const upToDate = (sql: string): Rows => {
  const [, comment] = MARKS.find(([name]) => sql.includes(`${name}'`)) ?? [];
  return [{ engine: 'InnoDB', comment }];
};
const isState = (sql: string) => sql.includes('information_schema.TABLES');
const creations = (sent: readonly string[]) => sent.filter((sql) => sql.startsWith('CREATE'));

describe('migrate on Vitess', () => {
  /** A vtgate, with the shards of all its keyspaces. */
  const vtgate = (shards: readonly string[], name = 'acme', version = '8.0.30-Vitess') =>
    fakePool((sql) => {
      if (sql.includes('VERSION()')) return [{ version, comment: 'Version: 19.0.4', name }];
      if (sql === 'SHOW VITESS_SHARDS') return shards.map((Shards) => ({ Shards }));
      return isState(sql) ? upToDate(sql) : [];
    });

  it.each([
    ['an unsharded keyspace', ['acme/0'], {}],
    ['an unsharded keyspace beside a sharded one', ['acme/0', 'shop/-80', 'shop/80-'], {}],
    ['one with a similar name', ['acme/0', 'acme2/-80', 'acme2/80-'], {}],
    [
      'another database than that of the connection',
      ['acme/-80', 'acme/80-', 'auth/-'],
      { tables: 'auth.own' },
    ],
  ])('works in %s', async (_, shards, options) => {
    const { pool } = vtgate(shards);
    await expect(migrate(pool, options)).resolves.toBeUndefined();
  });

  it.each([
    ['a sharded keyspace', ['acme/-80', 'acme/80-', 'shop/0'], 'acme', {}],
    ['one shard of it', ['acme/-80', 'acme/80-'], 'acme:-80@primary', {}],
    [
      'a database that is sharded',
      ['acme/0', 'auth/-80', 'auth/80-'],
      'acme',
      { tables: 'auth.own' },
    ],
  ])('is refused in %s', async (_, shards, name, options) => {
    const { pool, sent } = vtgate(shards, name);
    await expect(migrate(pool, options)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: 'these tables cannot change in one step here; use an unsharded keyspace',
      details: { reason: 'unsupported' },
    });
    expect(creations(sent)).toEqual([]);
  });

  it('asks no other server for shards', async () => {
    const { pool, sent } = vtgate([], 'acme', '8.4.3');
    await migrate(pool);
    expect(sent).not.toContain('SHOW VITESS_SHARDS');
  });
});

describe('migrate in MySQL while another process migrates', () => {
  /** Lets the first statements that create a table of tokens fail. */
  function failing(number: number, times: number, thenIsThere = true) {
    let failed = 0;
    return fakePool((sql) => {
      if (sql.includes('VERSION()')) return [{ version: '8.0.11-TiDB-v7.5.0' }];
      if (sql.startsWith('CREATE') && sql.includes('_tokens')) {
        if (failed === times) return [];
        failed += 1;
        return number;
      }
      if (!isState(sql)) return [];
      const isThere = !sql.includes('_tokens') || (thenIsThere && failed === times);
      return isThere ? upToDate(sql) : [];
    });
  }

  it.each([1050, 1060, 1061, 1205, 1213, 8028, 9007])(
    'looks again after error %d',
    async (number) => {
      const { pool, sent } = failing(number, 2);
      await migrate(pool);
      expect(creations(sent)).toHaveLength(2);
    },
  );

  it('takes what the other one has made, whatever its own failure was', async () => {
    const { pool } = failing(1064, 1);
    await expect(migrate(pool)).resolves.toBeUndefined();
  });

  it('gives up after three times', async () => {
    const { pool, sent } = failing(1213, 9);
    await expect(migrate(pool)).rejects.toMatchObject({ details: { reason: 'busy' } });
    expect(creations(sent)).toHaveLength(3);
  });

  it('does not look again after any other error', async () => {
    const { pool, sent } = failing(1142, 9);
    await expect(migrate(pool)).rejects.toMatchObject({ details: { reason: 'forbidden' } });
    expect(creations(sent)).toHaveLength(1);
  });
});

describe.skipIf(url === undefined)(
  'a MySQL database whose character set holds few characters',
  () => {
    it.each(['ascii', 'latin1'])('keeps all characters: %s', async (charset) => {
      const admin = createPool({ uri: url as string });
      const name = newName();
      await admin.promise().query(`CREATE DATABASE ${name} CHARACTER SET ${charset}`);
      const pool: Pool = createPool({ uri: url as string, database: name });
      onTestFinished(async () => {
        await pool.promise().end();
        await admin.promise().query(`DROP DATABASE ${name}`);
        await admin.promise().end();
      });
      await migrate(pool);
      const store = new MysqlTokenStore(pool);
      const text = '漢字 😀 ¿ İ';
      const record = newRecord('one', { account: text, name: text, metadata: { [text]: text } });
      await store.insert(record);

      expect(await store.find([record.id])).toEqual([record]);
      expect(await store.page({ account: text, limit: 2, liveAt: CREATED })).toEqual([record]);
      const [columns] = await pool.promise().query(
        `SELECT COUNT(*) AS texts FROM information_schema.COLUMNS
         WHERE TABLE_SCHEMA = '${name}' AND CHARACTER_SET_NAME IS NOT NULL`,
      );
      expect(columns).toEqual([{ texts: 0 }]);
    });
  },
);
