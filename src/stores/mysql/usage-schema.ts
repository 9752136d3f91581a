import { ID_LENGTH } from '../../token/id.ts';
import { USAGE } from '../shared/schema-mark.ts';
import type { MysqlPool, MysqlPromisePool } from './client.ts';
import { readTable, type Table } from './schema.ts';
import { migrateSideTable } from './side-table.ts';
import { SERVER_TIME } from './statements.ts';

/** Which table holds the counts of usage. */
export interface MysqlUsageTableOptions {
  /**
   * The table, as `table` or `database.table`: each 1 to 64 of `A-Z a-z 0-9 _ $ -`.
   * @default 'tokenwright_usage'
   */
  readonly table?: string | undefined;
}

/**
 * Creates the table of a {@link MysqlUsageStore}, apart from the table of tokens, or brings it up to date.
 * You may call it at every start, also from many processes concurrently. The user of the pool needs
 * `CREATE` and `ALTER` for it.
 *
 * @throws {TokenError} `invalid_options` when there is another table with this name, or one that is
 * newer than this version knows; `store_unavailable`
 * @example
 * await migrateUsage(pool);
 * await migrateUsage(pool, { table: 'auth.token_usage' });
 */
export async function migrateUsage(
  pool: MysqlPool | MysqlPromisePool,
  options: MysqlUsageTableOptions = {},
): Promise<void> {
  const table = readUsageTable(options);
  await migrateSideTable(pool, {
    ...table,
    kind: USAGE,
    version: SCHEMA_VERSION,
    create: tableSql(table),
    fill: sinceSql(table),
    upgrade: upgradeSql(table),
  });
}

/**
 * The SQL of {@link migrateUsage}: two statements, which create the table and note the time.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * console.log(usageMigrationSql()); // CREATE TABLE IF NOT EXISTS `tokenwright_usage` …
 */
export function usageMigrationSql(options: MysqlUsageTableOptions = {}): string {
  const table = readUsageTable(options);
  return `${tableSql(table)};\n${sinceSql(table)};\n`;
}

/** @throws {TokenError} `invalid_options` */
export function readUsageTable({ table = 'tokenwright_usage' }: MysqlUsageTableOptions): Table {
  return readTable({ table });
}

const SCHEMA_VERSION = 2;

/** The bytes of an id: uses of derived tokens are counted under the id of a token and one character more. */
export const MAX_ID_BYTES = ID_LENGTH + 1;

/** The bytes of a scope: the index of the table, which holds the rows, takes them all. */
export const MAX_SCOPE_BYTES = 1024;

/**
 * One row for each scope of a token that was used. Rows are in the order of the primary key, and there is
 * no other index: an update that found its row by another one would lock the gap beside it.
 */
function tableSql({ quoted }: Table): string {
  return `CREATE TABLE IF NOT EXISTS ${quoted} (
  id VARBINARY(${MAX_ID_BYTES}) NOT NULL,
  scope VARBINARY(${MAX_SCOPE_BYTES}) NOT NULL,
  uses BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  PRIMARY KEY (id, scope)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='${USAGE.mark} ${SCHEMA_VERSION}'`;
}

/** In version 1, ids had no room for the additional character. */
function upgradeSql({ quoted }: Table): string {
  return `ALTER TABLE ${quoted} MODIFY id VARBINARY(${MAX_ID_BYTES}) NOT NULL,
  COMMENT='${USAGE.mark} ${SCHEMA_VERSION}'`;
}

/** Adds the row of no token that says since when counts are complete, if it is missing. */
export function sinceSql({ quoted }: Table): string {
  return `INSERT INTO ${quoted} (id, scope, uses, last_used_at)
  VALUES ('', '', 0, ${SERVER_TIME} DIV 1000)
  ON DUPLICATE KEY UPDATE uses = uses`;
}
