import { randomBytes } from 'node:crypto';
import mysqlCallback from 'mysql2';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { generateKey, type TokenEvent, TokenService } from '../../src/index.ts';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import type { TokenStore } from '../../src/ports/token-store.ts';
import * as mysqlStore from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';
import { refusalOf } from '../support.ts';
import { newRecord, newRequest, REQUEST_BOUNDS } from './support.ts';

const servers = inject('servers');
const SCOPE = 'GET:shop.example/orders';
const need = { scope: SCOPE };
const options = { keys: [generateKey()], prefix: 'acme' };

/** The operations that the tests need from both engines. */
interface Host {
  readonly store: EngineStore;
  /** Begins a transaction on a connection, with the store in it. */
  begin(): Promise<HostTransaction>;
  /** Another store on the same table. */
  another(): EngineStore;
  /** Counts the rows in a table of the host itself. */
  rows(): Promise<number>;
}

interface HostTransaction {
  readonly store: EngineStore;
  run(sql: string): Promise<unknown>;
  commit(): Promise<unknown>;
  rollback(): Promise<unknown>;
}

const HOSTS: readonly (readonly [string, boolean, () => Promise<Host>])[] = [
  ['PostgreSQL', servers.postgres === undefined, onPostgres],
  ['MariaDB, with callbacks', servers.mariadb === undefined, () => onMysql('callback')],
  ['MariaDB, with promises', servers.mariadb === undefined, () => onMysql('promise')],
];

const newTable = () => `in_${randomBytes(6).toString('hex')}`;

async function onPostgres(): Promise<Host> {
  const pool = new pg.Pool({ connectionString: servers.postgres as string, max: 5 });
  const [tables, own] = [newTable(), newTable()];
  await postgres.migrate(pool, { tables });
  await pool.query(`CREATE TABLE ${own} (id integer)`);
  onTestFinished(async () => {
    await pool.query(
      `DROP TABLE ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests, ${own}`,
    );
    await pool.end();
  });
  const store = new postgres.PostgresTokenStore(pool, { tables });
  return {
    store,
    another: () => new postgres.PostgresTokenStore(pool, { tables }),
    rows: async () => (await pool.query(`SELECT * FROM ${own}`)).rows.length,
    async begin() {
      const client = await pool.connect();
      await client.query('BEGIN');
      const end = async (sql: string) => {
        await client.query(sql);
        client.release();
      };
      return {
        store: store.in(client),
        run: (sql) => client.query(sql.replace('own', own)),
        commit: () => end('COMMIT'),
        rollback: () => end('ROLLBACK'),
      };
    },
  };
}

async function onMysql(kind: 'callback' | 'promise'): Promise<Host> {
  const callbacks = mysqlCallback.createPool(servers.mariadb as string);
  const pool = mysql.createPool(servers.mariadb as string);
  const [tables, own] = [newTable(), newTable()];
  await mysqlStore.migrate(pool, { tables });
  await pool.query(`CREATE TABLE ${own} (id integer) ENGINE=InnoDB`);
  onTestFinished(async () => {
    await pool.query(
      `DROP TABLE ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests, ${own}`,
    );
    await Promise.all([pool.end(), callbacks.promise().end()]);
  });
  const store = new mysqlStore.MysqlTokenStore(pool, { tables, pollMs: 10 });
  return {
    store,
    another: () => new mysqlStore.MysqlTokenStore(pool, { tables, pollMs: 10 }),
    rows: async () => ((await pool.query(`SELECT * FROM ${own}`))[0] as unknown[]).length,
    async begin() {
      const client = await pool.getConnection();
      const raw = await new Promise<mysqlCallback.PoolConnection>((resolve, reject) =>
        callbacks.getConnection((error, one) => (error ? reject(error) : resolve(one))),
      );
      const used = kind === 'promise' ? client : raw.promise();
      await used.beginTransaction();
      const end = async (work: Promise<void>) => {
        await work;
        client.release();
        raw.release();
      };
      return {
        store: store.in(kind === 'promise' ? client : raw),
        run: (sql) => used.query(sql.replace('own', own)),
        commit: () => end(used.commit()),
        rollback: () => end(used.rollback()),
      };
    },
  };
}

describe.each(HOSTS)('a store in a transaction of the host on %s', (name, isMissing, open) => {
  const test = it.skipIf(isMissing);
  const serviceOn = (store: TokenStore, more: object = {}) =>
    new TokenService({ ...options, ...more, store });

  test('does not write the first use of a new value, which could happen after its end', async () => {
    const { store, begin } = await open();
    const tokens = serviceOn(store);
    const { id } = await tokens.issue({ account: 'ada', scopes: [SCOPE] });
    const { value } = await tokens.rotate('ada', id, { activate: 'first-use' });

    const transaction = await begin();
    const inside = serviceOn(transaction.store);
    expect((await inside.verify(value, need)).ok).toBe(true);
    await inside.close();
    await transaction.commit();
    expect((await tokens.get('ada', id))?.pending).toBe(true);
    // The control: outside of the transaction, the first use is written.
    await tokens.verify(value, need);
    await tokens.close();
    const after = serviceOn(store);
    expect((await after.get('ada', id))?.pending).toBeUndefined();
  });

  test('commits issued and revoked tokens together with the rows of the host', async () => {
    const { store, begin, rows } = await open();
    const tokens = serviceOn(store);
    const old = await tokens.issue({ account: 'ada', scopes: [SCOPE] });

    const transaction = await begin();
    const inside = serviceOn(transaction.store);
    await transaction.run('INSERT INTO own VALUES (1)');
    const issued = await inside.issue({ account: 'ada', scopes: [SCOPE] });
    expect(await inside.revoke('ada', old.id)).toBe(true);
    // The changes are visible inside the transaction, but not yet outside.
    expect([
      (await inside.verify(issued.value, need)).ok,
      (await inside.verify(old.value, need)).ok,
    ]).toEqual([true, false]);
    expect([
      (await tokens.verify(issued.value, need)).ok,
      (await tokens.verify(old.value, need)).ok,
    ]).toEqual([false, true]);
    expect(await rows()).toBe(0);
    await transaction.commit();

    expect([
      (await tokens.verify(issued.value, need)).ok,
      (await tokens.verify(old.value, need)).ok,
    ]).toEqual([true, false]);
    expect(await rows()).toBe(1);
  });

  test('rolls back all changes of tokens together with the rows of the host', async () => {
    const { store, begin, rows } = await open();
    const tokens = serviceOn(store);
    const old = await tokens.issue({ account: 'ada', scopes: [SCOPE] });

    const transaction = await begin();
    const inside = serviceOn(transaction.store);
    await transaction.run('INSERT INTO own VALUES (1)');
    const issued = await inside.issue({ account: 'ada', scopes: [SCOPE] });
    await inside.patch('ada', old.id, { name: 'changed' });
    await inside.rotate('ada', old.id);
    expect(await inside.revokeAll('ada')).toBe(2);
    await transaction.rollback();

    expect(await rows()).toBe(0);
    expect(await tokens.get('ada', issued.id)).toBeUndefined();
    expect(await tokens.verify(old.value, need)).toMatchObject({ ok: true, token: { version: 1 } });
  });

  test('keeps uses, leases and requests of a transaction that was rolled back', async () => {
    const { store, begin } = await open();
    const transaction = await begin();
    const { id } = newRecord('one');
    const lease = { key: 'one/uses', window: 0, limit: 10, until: new Date('2100-01-01') };
    await transaction.store.insert(newRecord('one'));
    await transaction.store.usage.add([{ id, refusals: 2 }]);
    expect(await transaction.store.leases.take([{ ...lease, want: 7 }])).toEqual([7]);
    await transaction.store.requests.insert(newRequest(1), REQUEST_BOUNDS);
    await transaction.rollback();

    expect(await store.find([id])).toEqual([undefined]);
    expect(await store.usage.read([id])).toEqual([{ refusals: 2, scopes: [] }]);
    expect(await store.leases.take([{ ...lease, want: 7 }])).toEqual([3]);
    expect(await store.requests.find({ id: newRequest(1).id })).toEqual(newRequest(1));
  });

  test('writes immediately if the store is used outside the transaction (the control)', async () => {
    const { store, begin } = await open();
    const tokens = serviceOn(store);

    const transaction = await begin();
    const outside = await tokens.issue({ account: 'ada', scopes: [SCOPE] });
    await transaction.rollback();

    expect((await tokens.verify(outside.value, need)).ok).toBe(true);
  });

  test('evicts from caches after a commit, but not after a rollback', async () => {
    const { store, begin, another } = await open();
    const other = another();
    const cached = serviceOn(store, { cache: { maxStaleMs: 60_000 } });
    const elsewhere = serviceOn(other, { cache: { maxStaleMs: 60_000 } });
    onTestFinished(async () => {
      await Promise.all([cached.close(), elsewhere.close()]);
    });
    const { id, value } = await cached.issue({ account: 'ada', scopes: [SCOPE] });
    const oks = async () => [
      (await cached.verify(value, need)).ok,
      (await elsewhere.verify(value, need)).ok,
    ];
    const hints: unknown[] = [];
    const stop = await other.watch?.((ids) => hints.push(ids));
    onTestFinished(async () => stop?.());
    expect(await oks()).toEqual([true, true]);

    const first = await begin();
    expect(await serviceOn(first.store).revoke('ada', id)).toBe(true);
    await first.rollback();
    expect(await oks()).toEqual([true, true]);
    const second = await begin();
    expect(await serviceOn(second.store).revoke('ada', id)).toBe(true);
    expect(await oks()).toEqual([true, true]);
    await second.commit();

    await vi.waitFor(async () => expect(await oks()).toEqual([false, false]), { timeout: 5000 });
    await vi.waitFor(() => expect(hints.flat()).toContain(id), { timeout: 5000 });
    if (name === 'PostgreSQL') expect(hints.flat().filter((hint) => hint === id)).toHaveLength(1);
  });

  test('can be used further after an id_taken error', async () => {
    const { store, begin } = await open();
    await store.insert(newRecord('taken'));
    const transaction = await begin();

    expect((await refusalOf(transaction.store.insert(newRecord('taken')))).code).toBe('id_taken');
    await transaction.store.insert(newRecord('free'));
    await transaction.commit();

    expect(await store.find([newRecord('free').id])).toMatchObject([{ version: 1 }]);
  });

  test('rejects every call after one that failed', async () => {
    const { store, begin } = await open();
    await store.insert(newRecord('one'));
    const [first, second] = [await begin(), await begin()];
    await first.store.revoke(newRecord('one').id, 'acme', new Date());
    // The second transaction waits for the first, and times out.
    await second.run(
      name === 'PostgreSQL'
        ? "SET LOCAL lock_timeout = '50ms'"
        : 'SET innodb_lock_wait_timeout = 1',
    );
    const late = second.store.revoke(newRecord('one').id, 'acme', new Date());
    expect((await refusalOf(late)).code).toBe('store_unavailable');

    const after = await refusalOf(second.store.insert(newRecord('two')));
    expect(after.details).toEqual({ reason: 'transaction_failed' });
    await Promise.all([second.rollback(), first.commit()]);
    expect(await store.find([newRecord('two').id])).toEqual([undefined]);
  });

  test('scans, pages and purges, but has no watch and no close', async () => {
    const { begin } = await open();
    const transaction = await begin();
    const { store } = transaction;
    await store.insert(newRecord('one'));
    await store.insert(newRecord('two', { expiresAt: new Date(0) }));

    expect((await store.scan?.({ limit: 10 }))?.records).toHaveLength(2);
    expect(await store.page({ account: 'acme', limit: 9, liveAt: new Date() })).toHaveLength(1);
    expect(await store.purge({ now: new Date(), minAgeMs: 0, limit: 10 })).toMatchObject({
      count: 1,
    });
    expect(store).not.toHaveProperty('watch');
    expect(store).not.toHaveProperty('close');
    await serviceOn(store).close();
    await transaction.rollback();
  });

  test('emits events when the call resolves, so that a host can hold them until the commit', async () => {
    const { begin } = await open();
    const transaction = await begin();
    const held: TokenEvent[] = [];
    const inside = serviceOn(transaction.store, {
      onEvent: (event: TokenEvent) => held.push(event),
    });

    await inside.issue({ account: 'ada', scopes: [SCOPE] });
    expect(held.map(({ type }) => type)).toEqual(['issued']);
    await transaction.rollback();
  });
});

describe('in()', () => {
  let pools: readonly { in(connection: never): unknown }[];
  beforeAll(() => {
    const pool = new pg.Pool();
    const mysqlPool = mysqlCallback.createPool({ host: '127.0.0.1', port: 1 });
    pools = [new postgres.PostgresTokenStore(pool), new mysqlStore.MysqlTokenStore(mysqlPool)];
  });

  it.each([undefined, null, {}, 'BEGIN', { connection: {} }])('refuses %j', (given) => {
    for (const store of pools) {
      expect(() => store.in(given as never)).toThrow(
        expect.objectContaining({ code: 'invalid_options' }),
      );
    }
  });
});

describe('in() on a pool', () => {
  // Nothing connects.
  const place = { host: '127.0.0.1', port: 1 };
  const onPg = new postgres.PostgresTokenStore(new pg.Pool(place));
  const onMysql2 = new mysqlStore.MysqlTokenStore(mysql.createPool(place));
  const callbacks = mysqlCallback.createPool(place);

  it.each<[string, { in(connection: never): unknown }, object, string]>([
    ['pg', onPg, new pg.Pool(place), 'const client = await pool.connect()'],
    [
      'mysql2/promise',
      onMysql2,
      mysql.createPool(place),
      'const connection = await pool.getConnection()',
    ],
    ['mysql2', onMysql2, callbacks, 'const connection = await pool.promise().getConnection()'],
    [
      'mysql2, with promises',
      onMysql2,
      callbacks.promise(),
      'const connection = await pool.getConnection()',
    ],
  ])('of %s is refused, with the line that takes a connection', (_, store, pool, line) => {
    expect(() => store.in(pool as never)).toThrow(
      expect.objectContaining({
        code: 'invalid_options',
        message: expect.stringContaining(line),
      }),
    );
  });

  it('is not mistaken for a client, or for an object with query()', () => {
    expect(() => onPg.in(new pg.Client(place))).not.toThrow();
    expect(() => onPg.in({ query: async () => ({ rows: [] }) })).not.toThrow();
  });
});

describe.skipIf(servers.postgres === undefined)('a store in a transaction of PostgreSQL', () => {
  it('turns on synchronous_commit when it writes, even if the session turned it off', async () => {
    const { store, begin } = await onPostgres();
    await store.insert(newRecord('one'));
    const transaction = await begin();
    await transaction.run('SET synchronous_commit = off');
    const setting = async () => {
      const { rows } = (await transaction.run('SHOW synchronous_commit')) as pg.QueryResult;
      return rows[0].synchronous_commit;
    };

    expect(await setting()).toBe('off');
    await transaction.store.revoke(newRecord('one').id, 'acme', new Date());
    expect(await setting()).toBe('on');
    await transaction.rollback();
  });
});
