import { Pool, type PoolConfig } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { isTokenError } from '../../../src/errors.ts';
import {
  migrate,
  type PostgresStoreOptions,
  PostgresTokenStore,
} from '../../../src/stores/postgres/index.ts';
import { isInstalled, type Server, startServer } from '../../servers.ts';
import { newName } from '../database-hosts.ts';
import { newRecord } from '../support.ts';

const url = inject('servers').postgres;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

describe.skipIf(url === undefined || !isInstalled('pgbouncer'))('behind PgBouncer', () => {
  const started: Server[] = [];
  const bouncer = async (settings: Readonly<Record<string, string>>): Promise<string> => {
    const behind = [{ port: Number(new URL(url as string).port) }];
    const pooler = await startServer('pgbouncer', { behind, settings });
    started.push(pooler);
    return pooler.url;
  };
  let transaction: string;
  let session: string;
  let strict: string;
  const tables = newName();
  beforeAll(async () => {
    transaction = await bouncer({});
    session = await bouncer({ pool_mode: 'session' });
    strict = await bouncer({ ignore_startup_parameters: '' });
    await migrate(poolOf(url as string), { tables });
    for (const clean of cleanups.splice(0)) await clean();
  });
  afterAll(async () => {
    const admin = poolOf(url as string);
    await admin.query(
      `DROP TABLE ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`,
    );
    for (const clean of cleanups.splice(0)) await clean();
    for (const pooler of started) await pooler.stop();
  });

  function poolOf(connectionString: string, config: PoolConfig = {}): Pool {
    const pool = new Pool({ connectionString, connectionTimeoutMillis: 2000, ...config });
    pool.on('error', () => {});
    cleanups.push(() => pool.end());
    return pool;
  }

  function storeOf(at: string, options: PostgresStoreOptions = {}, config: PoolConfig = {}) {
    const store = new PostgresTokenStore(poolOf(at, config), {
      tables,
      prepare: false,
      ...options,
    });
    cleanups.push(() => store.close());
    return store;
  }

  async function reasonOf(call: Promise<unknown>): Promise<unknown> {
    const error = await call.then(
      () => 'none',
      (failure: unknown) => failure,
    );
    return isTokenError(error) ? error.details?.['reason'] : error;
  }

  const codesOf = async (store: PostgresTokenStore) =>
    (await store.doctor()).map(({ code }) => code);

  it('in transaction mode, rejects watch within 4 seconds, and is named by doctor', async () => {
    const store = storeOf(transaction);
    const startedAt = performance.now();

    expect(await reasonOf(store.watch(() => {}))).toBe('pooler');
    expect(performance.now() - startedAt).toBeLessThan(4000);
    expect(await codesOf(store)).toContain('watch_deaf');
  });

  it.each<[string, () => string]>([
    ['directly', () => url as string],
    ['in session mode', () => session],
  ])('or %s, watch hears and doctor is silent', async (_, at) => {
    const store = storeOf(at());
    const stop = await store.watch(() => {});
    await stop();

    expect(await codesOf(store)).not.toContain('watch_deaf');
  });

  it('in transaction mode, keeps no connection of a watch that failed', async () => {
    const pool = poolOf(transaction);
    const store = new PostgresTokenStore(pool, { tables, prepare: false });
    await reasonOf(store.watch(() => {}));

    await expect.poll(() => pool.totalCount - pool.idleCount).toBe(0);
  });

  it('names statement_timeout if the pooler refuses it', async () => {
    const store = storeOf(strict, {}, { statement_timeout: 2000 });
    const error = await store.find([newRecord('one').id]).catch((failure) => failure);

    expect(error).toMatchObject({ code: 'store_unavailable', details: { reason: 'pooler' } });
    expect(error.message).toContain('ignore_startup_parameters');
    expect(await reasonOf(migrate(poolOf(strict, { statement_timeout: 2000 })))).toBe('pooler');
  });

  it('works with that setting, and without a statement_timeout', async () => {
    for (const store of [storeOf(transaction, {}, { statement_timeout: 2000 }), storeOf(strict)]) {
      expect(await store.find([newRecord('one').id])).toEqual([undefined]);
    }
  });

  it('in transaction mode, reports prepared statements that it loses', async () => {
    const at = await bouncer({ default_pool_size: '3' });
    const store = storeOf(at, { prepare: true });
    const reads = Array.from({ length: 60 }, () => reasonOf(store.find([newRecord('one').id])));
    const reasons = new Set(await Promise.all(reads));

    expect(reasons).toContain('pooler');
    expect([...reasons].filter((reason) => reason !== 'pooler' && reason !== 'none')).toEqual([]);
  });

  it('in transaction mode, keeps migrate safe to call concurrently', async () => {
    const pool = poolOf(transaction);
    const own = newName();
    await Promise.all(Array.from({ length: 4 }, () => migrate(pool, { tables: own })));

    expect(await new PostgresTokenStore(pool, { tables: own, prepare: false }).find([])).toEqual(
      [],
    );
    await pool.query(`DROP TABLE ${own}_tokens, ${own}_usage, ${own}_leases, ${own}_requests`);
  });
});
