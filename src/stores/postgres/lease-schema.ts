import { LEASES } from '../shared/schema-mark.ts';
import type { PostgresPool } from './client.ts';
import { migrateSideTable } from './migration.ts';
import { readName } from './schema.ts';

/** Which table holds the leases. */
export interface PostgresLeaseTableOptions {
  /**
   * Its name, with or without a schema (`auth.token_leases`): letters, digits and underscores, at most
   * 56 for the table. Upper case counts. @default 'tokenwright_leases'
   */
  readonly table?: string | undefined;
}

/**
 * Creates the table of a {@link PostgresLeaseStore}, apart from the table of the tokens. You may call it
 * as often as you like, also from many processes concurrently. If the table exists, this needs no right
 * to create one.
 *
 * @throws {TokenError} `store_unavailable`; `invalid_options` when the role may not create it, when
 * another table has its name, or when it was made by a newer version
 * @example
 * await migrateLeases(pool, { table: 'auth.token_leases' });
 */
export async function migrateLeases(
  pool: PostgresPool,
  options: PostgresLeaseTableOptions = {},
): Promise<void> {
  const table = readLeaseTable(options);
  await migrateSideTable(pool, {
    name: table.name,
    kind: LEASES,
    version: LEASE_SCHEMA_VERSION,
    columns: LEASE_COLUMNS,
    create: schemaSql(table),
  });
}

/**
 * The SQL that creates the table of leases, for hosts that own their migrations.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * console.log(leaseMigrationSql()); // CREATE TABLE "tokenwright_leases" (…
 */
export function leaseMigrationSql(options: PostgresLeaseTableOptions = {}): string {
  return schemaSql(readLeaseTable(options));
}

/** The quoted names of a table and its index. */
export interface LeaseTable {
  readonly name: string;
  readonly byEnd: string;
}

/** @throws {TokenError} `invalid_options` */
export function readLeaseTable({
  table = 'tokenwright_leases',
}: PostgresLeaseTableOptions): LeaseTable {
  const { quoted, name } = readName(table, MAX_NAME);
  return { name: quoted, byEnd: `"${name}_by_end"` };
}

export const LEASE_SCHEMA_VERSION = 1;
/** The server truncates the name of an index if that of the table is longer. */
const MAX_NAME = 56;

export const LEASE_COLUMNS = [
  ['lease_key', 'text'],
  ['slot', 'smallint'],
  ['period', 'bigint'],
  ['granted', 'bigint'],
  ['latest', 'bigint'],
  ['most', 'bigint'],
  ['ends_at', 'bigint'],
] as const;

/**
 * One row for each total, and two for each rate. The free space in each page lets PostgreSQL write the new
 * version of a row beside the old one.
 */
function schemaSql({ name, byEnd }: LeaseTable): string {
  return `CREATE TABLE ${name} (
  lease_key text COLLATE "C" NOT NULL,
  slot smallint NOT NULL,
  period bigint NOT NULL,
  granted bigint NOT NULL,
  latest bigint NOT NULL,
  most bigint NOT NULL,
  ends_at bigint NOT NULL,
  PRIMARY KEY (lease_key, slot)
) WITH (fillfactor = 70);
CREATE INDEX ${byEnd} ON ${name} (ends_at);
COMMENT ON TABLE ${name} IS '${LEASES.mark} ${LEASE_SCHEMA_VERSION}';
`;
}
