import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { migrate, PostgresTokenStore } from '../../../src/stores/postgres/index.ts';
import { isInstalled, type Server, type ServerOptions, startServer } from '../../servers.ts';
import { refusalOf } from '../../support.ts';
import { testContracts } from '../contracts.ts';
import { CREATED, newRecord } from '../support.ts';
import { emptied, poolTo } from './pools.ts';

const record = newRecord('one');
const { id, account } = record;

/** What ends with this file, the last one first. */
const ends: (() => Promise<unknown>)[] = [];
let primary: Server;
let standby: Server;

beforeAll(async () => {
  if (!isInstalled('pgbouncer') && !isInstalled('pgpool')) return;
  primary = await started('postgres');
  standby = await started('postgres', { follows: primary });
  await migrate(connected(primary));
});
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

async function started(...given: Parameters<typeof startServer>): Promise<Server> {
  const server = await startServer(...given);
  ends.push(() => server.stop());
  return server;
}

function connected({ url }: Server): Pool {
  const pool = poolTo(url);
  ends.push(() => pool.end());
  return pool;
}

/** Holds back on the standby what the primary changes, until the test ends. */
async function pauseStandby(): Promise<void> {
  const pool = connected(standby);
  await pool.query('SELECT pg_wal_replay_pause()');
  onTestFinished(async () => void (await pool.query('SELECT pg_wal_replay_resume()')));
}

/** Waits until the standby has all changes of the primary. */
async function follow(): Promise<void> {
  const { rows } = await connected(primary).query('SELECT pg_current_wal_lsn() AS lsn');
  const pool = connected(standby);
  const isThere = 'SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn AS there';
  const look = async () => (await pool.query(isThere, [rows[0].lsn])).rows[0].there;
  await expect.poll(look, { timeout: 20_000 }).toBe(true);
}

describe.skipIf(!isInstalled('pgbouncer'))('PgBouncer in transaction mode', () => {
  // Before 1.21 it knows no prepared statements in this mode.
  const options = { prepare: false };
  let pool: Pool;
  beforeAll(async () => {
    pool = connected(await started('pgbouncer', { behind: [primary] }));
  });

  testContracts(() => emptied(pool, options));

  it('does not hide that a server is a standby', async () => {
    await (await emptied(connected(primary))).insert(record);
    await follow();
    const behind = connected(await started('pgbouncer', { behind: [standby] }));
    expect(await refusalOf(new PostgresTokenStore(behind, options).find([id]))).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(/standby/),
    });
    const allowing = new PostgresTokenStore(behind, { ...options, standby: 'allow' });
    expect(await allowing.find([id])).toEqual([record]);
  });
});

describe.skipIf(!isInstalled('pgpool'))('pgpool', () => {
  let pool: Pool;
  beforeAll(async () => {
    // It sends all reads to the standby that it may.
    const settings = { backend_weight0: '0', backend_weight1: '1' };
    const start: ServerOptions = {
      behind: [primary, standby],
      portSettings: ['pcp_port'],
      settings,
    };
    pool = connected(await started('pgpool', start));
  });

  testContracts(() => emptied(pool));

  it('delivers notifications, so watch hears a change', async () => {
    const store = await emptied(connected(primary));
    const heard = Promise.withResolvers<unknown>();
    const end = await new PostgresTokenStore(pool).watch(heard.resolve);
    onTestFinished(end);
    await store.insert(record);
    await store.revoke(id, account, CREATED);
    expect(await heard.promise).toContain(id);
  });

  it('reads from the primary while it balances reads of others to a standby', async () => {
    const store = await emptied(pool);
    await store.insert(record);
    await follow();
    await pauseStandby();
    await store.revoke(id, account, CREATED);

    expect(await store.find([id])).toMatchObject([{ revokedAt: CREATED }]);
    expect(await store.page({ account, liveAt: CREATED, limit: 1 })).toEqual([]);
    // The control: this store takes what any server says.
    const allowing = new PostgresTokenStore(pool, { standby: 'allow' });
    expect(await allowing.find([id])).toEqual([record]);
  });
});
