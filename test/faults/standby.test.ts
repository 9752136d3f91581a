import { createPool, type Pool } from 'mysql2';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { generateKey, TokenService, type TokenStore, type UsageStore } from '../../src/index.ts';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import * as mysql from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';
import { isInstalled, type Server, startServer } from '../servers.ts';
import { CREATED, newRecord } from '../stores/support.ts';
import { codeOf, refusalOf, SCOPE } from '../support.ts';

const need = { scope: SCOPE };
const account = 'acme';
const keys = [generateKey()];
const MOST = { live: 100, ended: 100 };

const VERBS: readonly (readonly [string, (store: TokenStore) => Promise<unknown>])[] = [
  ['insert', (store) => store.insert(newRecord('two'))],
  ['count', (store) => store.count({ account, liveAt: CREATED, most: MOST })],
  ['find', (store) => store.find([newRecord('one').id])],
  ['find of an unknown id', (store) => store.find([newRecord('unknown').id])],
  ['find of several', (store) => store.find([newRecord('one').id, newRecord('two').id])],
  ['page', (store) => store.page({ account, limit: 2, liveAt: CREATED })],
  [
    'page of an unknown account',
    (store) => store.page({ account: 'b', limit: 2, liveAt: CREATED }),
  ],
  ['page up to a size', (store) => store.page({ account, limit: 2, liveAt: CREATED, maxBytes: 9 })],
  ['scan', async (store) => (await store.scan?.({ limit: 2 }))?.records],
  ['replace', (store) => store.replace(newRecord('one', { version: 2 }))],
  ['revoke', (store) => store.revoke(newRecord('one').id, account, CREATED)],
  ['revokeAll', (store) => store.revokeAll(account, CREATED, 10)],
  ['purge', (store) => store.purge({ now: CREATED, minAgeMs: 0, limit: 10 })],
  ['prune', (store) => store.prune({ account, now: CREATED, limit: 10 })],
];
const READS = VERBS.filter(([verb]) => /^(?:count|find|page|scan)/.test(verb));

function serviceOver(store: TokenStore): TokenService {
  return new TokenService({ store, keys, prefix: 'acme' });
}

type Options = { readonly tables: string; readonly standby?: 'allow' };
type DoctoredStore = EngineStore & { doctor(): Promise<readonly { readonly code: string }[]> };

/** How an adapter creates its table and its stores. */
interface Adapter<Pool> {
  readonly migrate: (pool: Pool, options: Options) => Promise<void>;
  readonly Store: new (pool: Pool, options: Options) => DoctoredStore;
}

let places = 0;

/** A store on the primary with one record, and two stores on the server that follows it. */
async function storesOn<Pool>(
  { migrate, Store }: Adapter<Pool>,
  { primary, standby }: { readonly primary: Pool; readonly standby: Pool },
) {
  const tables = `place${++places}`;
  await migrate(primary, { tables });
  const store = new Store(primary, { tables });
  await store.insert(newRecord('one'));
  return {
    table: `${tables}_tokens`,
    store,
    refusing: new Store(standby, { tables }),
    allowing: new Store(standby, { tables, standby: 'allow' }),
  };
}

async function expectRefusals(refusing: DoctoredStore, finding: string) {
  for (const [verb, call] of VERBS) {
    const { code, details } = await refusalOf(call(refusing));
    expect([verb, code, details]).toEqual([verb, 'store_unavailable', { reason: 'standby' }]);
  }
  expect((await refusing.doctor()).map(({ code }) => code)).toContain(finding);
}

/** Revokes a token that the standby has, after the standby stopped following. */
async function expectNoStaleAnswer(
  { store, refusing, allowing }: Record<'store' | 'refusing' | 'allowing', TokenStore>,
  stopFollowing: () => Promise<void>,
) {
  const tokens = serviceOver(store);
  const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });
  await stopFollowing();
  await tokens.revoke(account, id);

  for (const options of [{}, { fresh: true }]) {
    const verifying = serviceOver(refusing).verify(value, need, options);
    expect(await codeOf(verifying)).toBe('store_unavailable');
  }
  // The control: with `standby: 'allow'`, the stale answer is accepted.
  const stale = await serviceOver(allowing).verify(value, need, { fresh: true });
  expect(stale).toMatchObject({ ok: true });
  expect(await tokens.verify(value, need)).toMatchObject({ ok: false, reason: 'revoked' });
}

/** A usage store on the primary, and one on the server that follows it. */
async function expectUsageRefusals(
  primary: UsageStore,
  standby: UsageStore,
  follow: () => Promise<void>,
) {
  const { id } = newRecord('one');
  await primary.add([{ id, refusals: 1 }]);
  await follow();
  const calls = [
    () => standby.add([{ id, refusals: 1 }]),
    () => standby.read([id]),
    () => standby.forget([id]),
  ];
  for (const call of calls) {
    const { code, details } = await refusalOf(call());
    expect(code).toBe('store_unavailable');
    expect(details).toEqual({ reason: 'standby', store: 'usage' });
  }
  expect(await primary.read([id])).toEqual([{ refusals: 1, scopes: [] }]);
}

async function expectReads(allowing: TokenStore) {
  for (const [, call] of READS) await call(allowing);
  expect(await allowing.find([newRecord('one').id])).toEqual([newRecord('one')]);
}

describe.skipIf(!isInstalled('postgres'))(
  'a store on a PostgreSQL standby',
  { timeout: 60_000 },
  () => {
    let primary: Server;
    let standby: Server;
    beforeAll(async () => {
      primary = await startServer('postgres');
      standby = await startServer('postgres', { follows: primary });
    });
    afterAll(() => Promise.all([primary?.stop(), standby?.stop()]));

    function poolTo({ url }: Server): pg.Pool {
      const pool = new pg.Pool({ connectionString: url, max: 3, connectionTimeoutMillis: 2000 });
      pool.on('error', () => {});
      onTestFinished(() => pool.end());
      return pool;
    }

    async function setUp() {
      const pools = { primary: poolTo(primary), standby: poolTo(standby) };
      const { primary: primaryPool, standby: standbyPool } = pools;
      const { migrate, PostgresTokenStore: Store } = postgres;
      return {
        ...(await storesOn({ migrate, Store }, pools)),
        primaryPool,
        standbyPool,
        /** Waits until the standby has all changes of the primary. */
        async follow() {
          const { rows } = await primaryPool.query('SELECT pg_current_wal_lsn() AS lsn');
          const isThere = 'SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn AS there';
          const look = async () => (await standbyPool.query(isThere, [rows[0].lsn])).rows[0].there;
          await expect.poll(look, { timeout: 10_000 }).toBe(true);
        },
      };
    }

    it('rejects every call and names the reason', async () => {
      const { refusing, follow } = await setUp();
      await follow();
      await expectRefusals(refusing, 'replica');
    });

    it('makes verify reject a token that the primary revoked, even if it lags behind', async () => {
      const { standbyPool, follow, ...stores } = await setUp();
      await expectNoStaleAnswer(stores, async () => {
        await follow();
        await standbyPool.query('SELECT pg_wal_replay_pause()');
        onTestFinished(async () => {
          const pool = poolTo(standby);
          await pool.query('SELECT pg_wal_replay_resume()').catch(() => {});
        });
      });
    });

    it('rejects every call to its usage', async () => {
      const { store, refusing, follow } = await setUp();
      await expectUsageRefusals(store.usage, refusing.usage, follow);
    });

    it('reads with standby: "allow", but still rejects writes', async () => {
      const { allowing, follow } = await setUp();
      await follow();
      await expectReads(allowing);
      expect((await refusalOf(allowing.insert(newRecord('two')))).details).toEqual({
        reason: 'standby',
      });
    });

    it('holds no connection of the pool, and works once the standby is promoted', async () => {
      const { refusing, standbyPool, follow } = await setUp();
      await follow();
      await refusalOf(refusing.find([newRecord('one').id]));
      expect(standbyPool.totalCount).toBe(0);

      await standbyPool.query('SELECT pg_promote()');
      expect(await refusing.find([newRecord('one').id])).toEqual([newRecord('one')]);
      await refusing.insert(newRecord('two'));
    });
  },
);

describe.skipIf(!isInstalled('mariadb'))(
  'a store on a MariaDB replica',
  { timeout: 60_000 },
  () => {
    let primary: Server;
    let replica: Server;
    beforeAll(async () => {
      primary = await startServer('mariadb', { settings: { 'log-bin': 'log', 'server-id': '1' } });
      replica = await startServer('mariadb', { settings: { 'server-id': '2', 'read-only': '1' } });
      await run(poolTo(replica), [
        `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = ${primary.port},
         MASTER_USER = 'tokenwright', MASTER_USE_GTID = slave_pos`,
        'START SLAVE',
      ]);
    });
    afterAll(() => Promise.all([primary?.stop(), replica?.stop()]));

    const pools: Pool[] = [];
    afterAll(() => Promise.all(pools.map((pool) => pool.promise().end())));

    function poolTo({ url }: Server): Pool {
      const pool = createPool({ uri: url, connectionLimit: 3, connectTimeout: 2000 });
      pools.push(pool);
      return pool;
    }

    async function run(pool: Pool, statements: readonly string[]): Promise<void> {
      for (const statement of statements) await pool.promise().query(statement);
    }

    async function setUp() {
      const [primaryPool, replicaPool] = [poolTo(primary), poolTo(replica)];
      const pools = { primary: primaryPool, standby: replicaPool };
      const { migrate, MysqlTokenStore: Store } = mysql;
      return {
        ...(await storesOn({ migrate, Store }, pools)),
        primaryPool,
        replicaPool,
        /** Waits until the replica has all changes of the primary. */
        async follow() {
          const [rows] = await primaryPool.promise().query('SELECT @@gtid_binlog_pos AS position');
          const [{ position }] = rows as [{ position: string }];
          await run(replicaPool, [`SELECT MASTER_GTID_WAIT('${position}', 10)`]);
        },
      };
    }

    it('rejects every call and names the reason', async () => {
      const { refusing, follow } = await setUp();
      await follow();
      await expectRefusals(refusing, 'read_only');
    });

    it('makes verify reject a token that the primary revoked, even if it lags behind', async () => {
      const { replicaPool, follow, ...stores } = await setUp();
      await expectNoStaleAnswer(stores, async () => {
        await follow();
        await run(replicaPool, ['STOP SLAVE SQL_THREAD']);
        onTestFinished(() => run(replicaPool, ['START SLAVE SQL_THREAD']));
      });
    });

    it('rejects every call to its usage', async () => {
      const { store, refusing, follow } = await setUp();
      await expectUsageRefusals(store.usage, refusing.usage, follow);
    });

    it('reads with standby: "allow"', async () => {
      const { allowing, follow } = await setUp();
      await follow();
      await expectReads(allowing);
    });

    /** A store whose connections are open and checked, on a server that then becomes read-only. */
    async function demoted() {
      const { store, primaryPool, table } = await setUp();
      await Promise.all(READS.map(([, call]) => call(store)));
      await run(primaryPool, ['SET GLOBAL read_only = 1']);
      onTestFinished(() => run(primaryPool, ['SET GLOBAL read_only = 0']));
      return { store, primaryPool, table };
    }

    it.each(READS)(
      'rejects on open connections after its server became read-only: %s',
      async (_, call) => {
        const { store, primaryPool } = await demoted();
        expect(await refusalOf(call(store))).toMatchObject({ code: 'store_unavailable' });

        await run(primaryPool, ['SET GLOBAL read_only = 0']);
        await call(store);
      },
    );

    it('soon rejects writes even by a user who is exempt from read_only', async () => {
      const { store, primaryPool, table } = await demoted();
      const now = performance.now.bind(performance);
      const later = vi.spyOn(performance, 'now').mockImplementation(() => now() + 2000);
      onTestFinished(() => later.mockRestore());

      expect(await refusalOf(store.insert(newRecord('two')))).toMatchObject({
        code: 'store_unavailable',
      });
      // The control: the server itself lets this user write.
      await run(primaryPool, [`UPDATE ${table} SET name = 'theirs'`]);
    });
  },
);
