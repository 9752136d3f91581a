// A server that keeps no prepared statements.
import { randomBytes } from 'node:crypto';
import { createPool, type Pool, type PoolOptions } from 'mysql2';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { MysqlTokenStore, migrate } from '../../../src/stores/mysql/index.ts';
import { leaseContract, storeContract, usageContract } from '../../../src/testing/index.ts';
import { type Server, startServer } from '../../servers.ts';
import { CONTRARY_OPTIONS, newName, PARTS } from '../database-hosts.ts';
import { CREATED, newRecord } from '../support.ts';

const isMissing = inject('servers').mariadb === undefined;
/** What changes how texts and operators are read. */
const CONTRARY_MODE = `SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE,HIGH_NOT_PRECEDENCE,SIMULTANEOUS_ASSIGNMENT'`;
/** What a text literal could be misread for, in one charset or another. */
const HOSTILE = [
  `\\' OR 1=1 -- "`,
  `'; DROP TABLE tokens; -- \\`,
  '?, ?, :name, @@version, {x}',
  'zero \u0000 line \n return \r sub \u001a',
  '😀 漢字 ¿\u0301 \ufffd \u2028',
  '縗\'" ¥\\',
];

describe.skipIf(isMissing)(
  'a MySQL server without prepared statements',
  { timeout: 60_000 },
  () => {
    let server: Server;
    const pools: Pool[] = [];
    beforeAll(async () => {
      server = await startServer('mariadb', { settings: { 'max-prepared-stmt-count': '0' } });
    });
    afterAll(async () => {
      await Promise.all(pools.map((pool) => pool.promise().end()));
      await server.stop();
    });

    function newPool(options: PoolOptions = {}, first?: string): Pool {
      const pool = createPool({ uri: server.url, ...options });
      if (first !== undefined) pool.on('connection', (connection) => connection.query(first));
      pools.push(pool);
      return pool;
    }

    const ways: readonly (readonly [string, PoolOptions, string | undefined])[] = [
      ['with default options', {}, undefined],
      ['over a pool with unusual settings', CONTRARY_OPTIONS, CONTRARY_MODE],
    ];

    describe.each(ways)('%s', (_, options, first) => {
      const tables = newName();
      let pool: Pool;
      let store: MysqlTokenStore;
      beforeAll(async () => {
        pool = newPool(options, first);
        await migrate(pool, { tables });
        store = new MysqlTokenStore(pool, { tables, prepare: false, deadlineMs: 20_000 });
      });
      const emptied = async () => {
        for (const part of PARTS) await pool.promise().query(`DELETE FROM ${tables}_${part}`);
        return store;
      };

      it.each(storeContract)('keeps tokens: $name', (promise) => promise.run(emptied));
      it.each(usageContract)('counts uses: $name', (promise) =>
        promise.run(async () => (await emptied()).usage),
      );
      it.each(leaseContract)('grants leases: $name', (promise) =>
        promise.run(async () => (await emptied()).leases),
      );

      it.each(HOSTILE)('keeps each byte of %j', async (text) => {
        await emptied();
        const box = new Uint8Array(randomBytes(256));
        const record = newRecord('one', {
          ...{ account: text, name: text, box, metadata: { [text]: text } },
          scopes: [`GET:shop.example/${encodeURIComponent(text)}`],
        });
        await store.insert(record);
        expect(await store.find([record.id])).toEqual([record]);
        expect(await store.page({ account: text, limit: 2, liveAt: CREATED })).toEqual([record]);
        expect(await store.page({ account: `${text}x`, limit: 2, liveAt: CREATED })).toEqual([]);
        expect(await store.revoke(record.id, text, CREATED)).toBe(true);
      });
    });

    it('takes part in a transaction of the host', async () => {
      const tables = newName();
      const pool = newPool();
      await migrate(pool, { tables });
      const store = new MysqlTokenStore(pool, { tables, prepare: false });
      const [kept, gone] = [newRecord('kept'), newRecord('gone')];
      for (const [record, end] of [
        [kept, 'commit'],
        [gone, 'rollback'],
      ] as const) {
        const connection = await pool.promise().getConnection();
        await connection.beginTransaction();
        const inside = store.in(connection);
        await inside.insert(record);
        expect(await inside.find([record.id])).toEqual([record]);
        await connection[end]();
        connection.release();
      }

      expect(await store.find([kept.id, gone.id])).toEqual([kept, undefined]);
    });

    it('is named with its cure if the store prepares statements', async () => {
      const tables = newName();
      const pool = newPool();
      await migrate(pool, { tables });
      const preparing = new MysqlTokenStore(pool, { tables });
      const { usage, leases } = preparing;
      const refused = (part?: 'usage' | 'leases') =>
        expect.objectContaining({
          code: 'store_unavailable',
          message: expect.stringContaining('prepare: false'),
          details: { reason: 'prepared_full', ...(part && { store: part }) },
        });

      await expect(preparing.find([newRecord('one').id])).rejects.toEqual(refused());
      await expect(preparing.insert(newRecord('one'))).rejects.toEqual(refused());
      await expect(usage.read([newRecord('one').id])).rejects.toEqual(refused('usage'));
      await expect(leases.purge(CREATED, 1)).rejects.toEqual(refused('leases'));
    });
  },
);
