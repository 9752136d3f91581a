import pg, { type Pool, type PoolConfig } from 'pg';
import type { EngineStore } from '../../../src/ports/engine-store.ts';
import {
  type PostgresStoreOptions,
  PostgresTokenStore,
} from '../../../src/stores/postgres/index.ts';

/** A pool whose connections may break. */
export function poolTo(url: string, config: PoolConfig = {}): Pool {
  const pool = new pg.Pool({ connectionString: url, ...config });
  pool.on('error', () => {});
  return pool;
}

/** Opens the store of tables that are there, and removes what they hold. */
export async function emptied(
  pool: Pool,
  options: PostgresStoreOptions = {},
): Promise<EngineStore> {
  const { tables = 'tokenwright' } = options;
  await pool.query(
    `TRUNCATE ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`,
  );
  return new PostgresTokenStore(pool, options);
}
