import { MAX_LEASE_KEY } from '../shared/lease-rows.ts';
import { LEASES } from '../shared/schema-mark.ts';
import type { MysqlPool, MysqlPromisePool } from './client.ts';
import { readTable, type Table } from './schema.ts';
import { migrateSideTable } from './side-table.ts';

/** Which table holds the leases. */
export interface MysqlLeaseTableOptions {
  /**
   * The table, as `table` or `database.table`: each 1 to 64 of `A-Z a-z 0-9 _ $ -`.
   * @default 'tokenwright_leases'
   */
  readonly table?: string | undefined;
}

/**
 * Creates the table of a {@link MysqlLeaseStore}, apart from the table of tokens. You may call it at
 * every start, also from many processes concurrently. The user of the pool needs `CREATE` to create it.
 *
 * @throws {TokenError} `invalid_options` when there is another table with this name, or one that is
 * newer than this version knows; `store_unavailable`
 * @example
 * await migrateLeases(pool);
 * await migrateLeases(pool, { table: 'auth.token_leases' });
 */
export async function migrateLeases(
  pool: MysqlPool | MysqlPromisePool,
  options: MysqlLeaseTableOptions = {},
): Promise<void> {
  const table = readLeaseTable(options);
  const create = tableSql(table);
  await migrateSideTable(pool, { ...table, kind: LEASES, version: LEASE_SCHEMA_VERSION, create });
}

/**
 * The SQL of {@link migrateLeases}.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * console.log(leaseMigrationSql()); // CREATE TABLE IF NOT EXISTS `tokenwright_leases` …
 */
export function leaseMigrationSql(options: MysqlLeaseTableOptions = {}): string {
  return `${tableSql(readLeaseTable(options))};\n`;
}

/** @throws {TokenError} `invalid_options` */
export function readLeaseTable({ table = 'tokenwright_leases' }: MysqlLeaseTableOptions): Table {
  return readTable({ table });
}

export const LEASE_SCHEMA_VERSION = 1;

export const LEASE_COLUMNS = [
  'lease_key',
  'slot',
  'period',
  'granted',
  'latest',
  'most',
  'ends_at',
] as const;
export const LEASE_INDEXES = ['PRIMARY', 'by_end'] as const;

/** One row for each total, and two for each rate. */
function tableSql({ quoted }: Table): string {
  return `CREATE TABLE IF NOT EXISTS ${quoted} (
  lease_key VARBINARY(${MAX_LEASE_KEY}) NOT NULL,
  slot TINYINT NOT NULL,
  period BIGINT NOT NULL,
  granted BIGINT NOT NULL,
  latest BIGINT NOT NULL,
  most BIGINT NOT NULL,
  ends_at BIGINT NOT NULL,
  PRIMARY KEY (lease_key, slot),
  KEY by_end (ends_at)
) ENGINE=InnoDB COMMENT='${LEASES.mark} ${LEASE_SCHEMA_VERSION}'`;
}
