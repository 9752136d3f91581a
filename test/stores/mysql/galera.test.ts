import { promisify } from 'node:util';
import { createPool, type Pool } from 'mysql2';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { MysqlTokenStore, migrate } from '../../../src/stores/mysql/index.ts';
import { type Cluster, isInstalled, startGalera } from '../../servers.ts';
import { testContracts } from '../contracts.ts';
import { CREATED, newRecord } from '../support.ts';

const ROUNDS = 50;
const WAITS = 'SET SESSION wsrep_sync_wait = 1';

describe.skipIf(!isInstalled('galera'))('Galera with three nodes', () => {
  let cluster: Cluster;
  const pools: Pool[] = [];
  beforeAll(async () => {
    cluster = await startGalera();
    await migrate(poolTo(0));
  }, 240_000);
  afterAll(async () => {
    await Promise.all(pools.map((pool) => promisify(pool.end.bind(pool))()));
    await cluster?.stop();
  });

  /** A pool on one node, whose reads wait for what other nodes wrote before, or do not. */
  function poolTo(node: number, reads: 'wait' | 'do not wait' = 'do not wait'): Pool {
    const pool = createPool({ uri: cluster.nodes[node]?.url ?? '' });
    if (reads === 'wait') pool.on('connection', (connection) => void connection.query(WAITS));
    pools.push(pool);
    return pool;
  }
  const run = (pool: Pool, sql: string) => pool.promise().query(sql);

  async function emptied(pool: Pool): Promise<MysqlTokenStore> {
    for (const part of ['tokens', 'usage', 'leases', 'requests'])
      await run(pool, `DELETE FROM tokenwright_${part}`);
    return new MysqlTokenStore(pool);
  }

  describe('used by one node', () => {
    let pool: Pool;
    beforeAll(() => {
      pool = poolTo(0);
    });

    testContracts(() => emptied(pool));
  });

  it('shows each revocation to the next read on another node if reads wait', async () => {
    const store = await emptied(poolTo(0));
    const others = [1, 2].map((node) => new MysqlTokenStore(poolTo(node, 'wait')));
    const stale: string[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const record = newRecord(`round${round}`);
      await store.insert(record);
      await store.revoke(record.id, record.account, CREATED);
      for (const [found] of await Promise.all(others.map((other) => other.find([record.id])))) {
        if (found?.revokedAt === undefined) stale.push(record.id);
      }
    }
    expect(stale).toEqual([]);
  });

  it('shows the past on a node that lags, unless reads wait', async () => {
    const record = newRecord('one');
    const store = await emptied(poolTo(0));
    await store.insert(record);
    const waiting = new MysqlTokenStore(poolTo(1, 'wait'));
    const passing = new MysqlTokenStore(poolTo(1));
    expect(await waiting.find([record.id])).toEqual([record]);
    const admin = await poolTo(1).promise().getConnection();
    onTestFinished(() => admin.destroy());
    // The node goes on answering, and applies nothing that others write.
    await admin.query('FLUSH TABLES WITH READ LOCK');
    await store.revoke(record.id, record.account, CREATED);

    expect(await passing.find([record.id])).toEqual([record]);
    const found = waiting.find([record.id]);
    await admin.query('UNLOCK TABLES');
    expect(await found).toMatchObject([{ revokedAt: CREATED }]);
  });

  it('is named by doctor unless reads wait', async () => {
    const findings = async (pool: Pool) =>
      (await new MysqlTokenStore(pool).doctor()).map(({ code }) => code);
    expect(await findings(poolTo(1))).toContain('cluster_reads_stale');
    expect(await findings(poolTo(1, 'wait'))).not.toContain('cluster_reads_stale');
  });
});
