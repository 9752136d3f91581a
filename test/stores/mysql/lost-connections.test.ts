// Reads are repeated once when their connection is lost. Writes never are: the server may have made them.
import { createPool, type Pool } from 'mysql2';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import type { MysqlConnection } from '../../../src/stores/mysql/client.ts';
import { MysqlTokenStore, migrate } from '../../../src/stores/mysql/index.ts';
import { newName } from '../database-hosts.ts';
import { CREATED, newRecord } from '../support.ts';

const url = inject('servers').mariadb;
const CONNECTIONS = 10;
const record = newRecord('one');

function newPool(connectionLimit = CONNECTIONS): Pool {
  const pool = createPool({ uri: url as string, connectionLimit });
  onTestFinished(() => pool.promise().end());
  return pool;
}

/** A pool and a store on it, with one record. */
async function setUp(connectionLimit = CONNECTIONS) {
  const tables = newName();
  const admin = newPool(2);
  await migrate(admin, { tables });
  onTestFinished(async () => {
    await admin
      .promise()
      .query(`DROP TABLE ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`);
  });
  await new MysqlTokenStore(admin, { tables }).insert(record);
  const pool = newPool(connectionLimit);
  return { admin, pool, tables, store: new MysqlTokenStore(pool, { tables, deadlineMs: 20_000 }) };
}

/** Lets the server kill the connections of the next statements of a pool, in the place of each statement. */
function killing(pool: Pool) {
  const sent: string[] = [];
  const kills = { left: 0 };
  pool.on('connection', (connection) => {
    const own = connection as unknown as MysqlConnection;
    const execute = own.execute.bind(own);
    own.execute = (statement, callback) => {
      sent.push(statement.sql);
      if (kills.left === 0) return execute(statement, callback);
      kills.left -= 1;
      return own.query({ ...statement, sql: 'KILL CONNECTION_ID()', values: [] }, callback);
    };
  });
  return { sent, kills };
}

type Call = readonly [string, (store: MysqlTokenStore) => Promise<unknown>];

const READS: readonly Call[] = [
  ['find', (store) => store.find([record.id])],
  ['page', (store) => store.page({ account: 'acme', limit: 2, liveAt: CREATED })],
  [
    'count',
    (store) => store.count({ account: 'acme', liveAt: CREATED, most: { live: 9, ended: 9 } }),
  ],
  ['scan', (store) => store.scan({ limit: 2 })],
  ['usage.read', (store) => store.usage.read([record.id])],
  ['usage.scan', async (store) => store.usage.scan?.({ limit: 2 })],
];
const WRITES: readonly Call[] = [
  ['insert', (store) => store.insert(newRecord('two'))],
  ['replace', (store) => store.replace(newRecord('one', { version: 2 }))],
  ['revoke', (store) => store.revoke(record.id, 'acme', CREATED)],
  ['usage.forget', (store) => store.usage.forget([record.id])],
  ['leases.purge', (store) => store.leases.purge(CREATED, 1)],
];

const unreachable = expect.objectContaining({
  code: 'store_unavailable',
  details: expect.objectContaining({ reason: 'unreachable' }),
});

describe.skipIf(url === undefined)('a MySQL connection that is lost', () => {
  it.each(READS)('lets a read be repeated once: %s', async (_, call) => {
    const { pool, store } = await setUp();
    const { sent, kills } = killing(pool);
    const expected = await call(store);
    sent.length = 0;
    kills.left = 1;

    expect(await call(store)).toEqual(expected);
    expect(sent).toHaveLength(2);
    kills.left = 2;
    await expect(call(store)).rejects.toEqual(unreachable);
    expect(sent).toHaveLength(4);
  });

  it.each(WRITES)('lets no write be repeated: %s', async (_, call) => {
    const { pool, store } = await setUp();
    const { sent, kills } = killing(pool);
    kills.left = 1;

    await expect(call(store)).rejects.toEqual(unreachable);
    expect(sent).toHaveLength(1);
    await call(store);
    expect(sent).toHaveLength(2);
  });

  it('does not make reads fail if it was idle, as all others were', async () => {
    const { admin, pool, store } = await setUp();
    const ids = new Set<number>();
    pool.on('connection', ({ threadId }) => ids.add(threadId));
    const reads = (count: number) =>
      Promise.allSettled(Array.from({ length: count }, () => store.find([record.id])));
    await reads(40);
    expect(ids.size).toBe(CONNECTIONS);
    for (const id of ids) await admin.promise().query(`KILL ${id}`);

    const answers = await reads(40);
    expect(answers.filter(({ status }) => status === 'rejected')).toEqual([]);
    expect(ids.size).toBeGreaterThan(CONNECTIONS);
  });

  it('does not lead the second try to another one that was idle', async () => {
    const { pool, store } = await setUp(2);
    const opened: MysqlConnection[] = [];
    pool.on('connection', (connection) => opened.push(connection as unknown as MysqlConnection));
    const both = () => Promise.all([store.find([record.id]), store.find([record.id])]);
    await both();
    // The driver would notice most of the time that they ended, and leave them out.
    for (const connection of opened) {
      connection.execute = (statement, callback) =>
        connection.query({ ...statement, sql: 'KILL CONNECTION_ID()', values: [] }, callback);
    }

    expect(await store.find([record.id])).toEqual([record]);
    expect(opened).toHaveLength(3);
  });
});
