import type { Pool, PoolConfig } from 'pg';
import { afterAll, beforeAll, describe } from 'vitest';
import { migrate, type PostgresStoreOptions } from '../../../src/stores/postgres/index.ts';
import { isInstalled, type Server, startServer } from '../../servers.ts';
import { testContracts } from '../contracts.ts';
import { emptied, poolTo } from './pools.ts';

/** All connections share one session, and with it the names of prepared statements. */
const WAYS: readonly [string, PoolConfig, PostgresStoreOptions][] = [
  ['over one connection', { max: 1 }, {}],
  ['over ten connections, without prepared statements', {}, { prepare: false }],
];

describe.skipIf(!isInstalled('pglite'))('PGlite behind its socket server', () => {
  let server: Server;
  beforeAll(async () => {
    server = await startServer('pglite');
  }, 180_000);
  afterAll(() => server?.stop());

  describe.each(WAYS)('%s', (_, config, options) => {
    let pool: Pool;
    beforeAll(async () => {
      pool = poolTo(server.url, config);
      await migrate(pool);
    });
    afterAll(() => pool?.end());

    testContracts(() => emptied(pool, options));
  });
});
