import { Pool } from 'pg';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { isTokenError } from '../../../src/errors.ts';
import type { PostgresPool, PostgresQuery } from '../../../src/stores/postgres/client.ts';
import { migrate, PostgresTokenStore } from '../../../src/stores/postgres/index.ts';
import { newName } from '../database-hosts.ts';
import { CREATED, newRecord } from '../support.ts';

const url = inject('servers').postgres;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

describe.skipIf(url === undefined)('connections that the server has ended', () => {
  const CONNECTIONS = 10;
  const READS = 40;

  /** A store on ten idle connections, and a function that ends them in the server. */
  async function setUp() {
    const application = newName();
    const admin = new Pool({ connectionString: url });
    const pool = new Pool({
      connectionString: url,
      application_name: application,
      max: CONNECTIONS,
      connectionTimeoutMillis: 2000,
    });
    pool.on('error', () => {});
    const tables = newName();
    await migrate(pool, { tables });
    const store = new PostgresTokenStore(pool, { tables });
    const record = newRecord('one');
    await store.insert(record);
    cleanups.push(async () => {
      await pool.end();
      await admin.query(
        `DROP TABLE ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`,
      );
      await admin.end();
    });
    const endAll = async () => {
      const all = Array.from({ length: CONNECTIONS }, () => pool.connect());
      for (const client of await Promise.all(all)) client.release();
      expect(pool.idleCount).toBe(CONNECTIONS);
      await admin.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1',
        [application],
      );
    };
    return { pool, store, record, endAll };
  }

  async function failuresOf(call: () => Promise<unknown>): Promise<number> {
    const calls = await Promise.allSettled(Array.from({ length: READS }, call));
    return calls.filter(({ status }) => status === 'rejected').length;
  }

  it('fail none of 40 reads', async () => {
    const { store, record, endAll } = await setUp();
    for (let round = 0; round < 3; round += 1) {
      await endAll();
      expect(await failuresOf(() => store.find([record.id]))).toBe(0);
    }
  });

  it('fail none of the reads that follow one another', async () => {
    const { store, record, endAll } = await setUp();
    await endAll();
    for (let read = 0; read < READS; read += 1) {
      expect(await store.find([record.id])).toEqual([record]);
    }
  });

  it('fail reads over a bare pool (the control)', async () => {
    const { pool, endAll } = await setUp();
    await endAll();

    expect(await failuresOf(() => pool.query('SELECT 1'))).toBeGreaterThan(0);
  });
});

async function reasonOf(call: Promise<unknown>): Promise<unknown> {
  const error = await call.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  return isTokenError(error) && error.code === 'store_unavailable'
    ? error.details?.['reason']
    : error;
}

describe('a connection that is lost', () => {
  function refusal(code: string, message = ''): Error {
    return Object.assign(new Error(message), { code, severity: 'FATAL' });
  }

  /** A pool whose first query fails, and whose others answer with `then`. */
  function failing(error: Error, then: () => Promise<unknown> = async () => ({ rows: [] })) {
    const sent: PostgresQuery[] = [];
    const pool = {
      query: async (query: PostgresQuery) => {
        sent.push(query);
        if (sent.length === 1) throw error;
        return then();
      },
      connect: async () => expect.unreachable(),
      on: () => {},
      listenerCount: () => 1,
      idleCount: 0,
      ending: false,
      options: { max: 10 },
    };
    return { pool: pool as unknown as PostgresPool, sent };
  }

  const LOST: [string, Error][] = [
    ['57P01', refusal('57P01')],
    ['57P02', refusal('57P02')],
    ['57P03', refusal('57P03')],
    ['57P05', refusal('57P05')],
    ['08006', refusal('08006')],
    ['a pooler that restarts', refusal('08P01', 'pgbouncer is shutting down')],
    ['a reset', Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })],
    ['an end', new Error('Connection terminated unexpectedly')],
  ];

  it.each(LOST)('makes a read go out once more: %s', async (_, error) => {
    const { pool, sent } = failing(error);

    expect(await new PostgresTokenStore(pool).find([newRecord('one').id])).toEqual([undefined]);
    expect(sent.map(({ text }) => text)).toEqual([sent[0]?.text, sent[0]?.text]);
  });

  it.each(LOST)('makes a write fail, which is not repeated: %s', async (_, error) => {
    const { pool, sent } = failing(error);
    const store = new PostgresTokenStore(pool);

    expect(await reasonOf(store.insert(newRecord('one')))).toBe('unreachable');
    expect(sent).toHaveLength(1);
  });

  it.each<[string, string, Error]>([
    ['57014', 'timeout', refusal('57014')],
    ['53300', 'busy', refusal('53300')],
    ['28P01', 'credentials', refusal('28P01')],
    ['42P01', 'schema_missing', refusal('42P01')],
    ['a timeout', 'timeout', new Error('Query read timeout')],
    ['a pool that ended', 'closed', new Error('Cannot use a pool after calling end on the pool')],
    ['a refused setting', 'pooler', refusal('08P01', 'unsupported startup parameter: options')],
    ['a pooler without the database', 'no_database', refusal('08P01', 'no such database: acme')],
    ['a pooler without the user', 'credentials', refusal('08P01', '"md5" authentication failed')],
    ['a full pooler', 'busy', refusal('08P01', 'no more connections allowed (max_client_conn)')],
    ['a pooler without a server', 'busy', refusal('08P01', 'query_wait_timeout')],
  ])('is something else than %s, which is %s', async (_, reason, error) => {
    const { pool, sent } = failing(error);
    const store = new PostgresTokenStore(pool);

    expect(await reasonOf(store.find([newRecord('one').id]))).toBe(reason);
    expect(sent).toHaveLength(1);
  });

  it('makes a read fail with the reason of the second time', async () => {
    const { pool, sent } = failing(refusal('57P01'), () => Promise.reject(refusal('28P01')));

    expect(await reasonOf(new PostgresTokenStore(pool).find([newRecord('one').id]))).toBe(
      'credentials',
    );
    expect(sent).toHaveLength(2);
  });

  it('gives the second time no more than what is left of the deadline', async () => {
    const { pool, sent } = failing(refusal('57P01'), () => new Promise(() => {}));
    const store = new PostgresTokenStore(pool, { deadlineMs: 50 });

    expect(await reasonOf(store.find([newRecord('one').id]))).toBe('timeout');
    expect(sent[1]?.query_timeout).toBeLessThanOrEqual(50);
  });

  it('is not replaced in a transaction', async () => {
    const { pool, sent } = failing(refusal('57P01'));
    const store = new PostgresTokenStore(pool).in({ query: (query) => pool.query(query) });

    expect(await reasonOf(store.find([newRecord('one').id]))).toBe('unreachable');
    expect(sent).toHaveLength(1);
    expect(await reasonOf(store.revoke(newRecord('one').id, 'acme', CREATED))).toBe(
      'transaction_failed',
    );
  });
});
