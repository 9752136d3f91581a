import { USAGE } from '../shared/schema-mark.ts';
import type { PostgresPool } from './client.ts';
import { migrateSideTable } from './migration.ts';
import { readName } from './schema.ts';

/** Which table holds the counts of usage. */
export interface PostgresUsageTableOptions {
  /**
   * Its name, with or without a schema (`auth.token_usage`): letters, digits and underscores, at most
   * 63 for the table. Upper case counts. @default 'tokenwright_usage'
   */
  readonly table?: string | undefined;
}

/**
 * Creates the table of a {@link PostgresUsageStore}, apart from the table of the tokens. You may call it
 * as often as you like, also from many processes concurrently. If the table exists, this needs no right
 * to create one.
 *
 * @throws {TokenError} `store_unavailable`; `invalid_options` when the role may not create it, when
 * another table has its name, or when it was made by a newer version
 * @example
 * await migrateUsage(pool, { table: 'auth.token_usage' });
 */
export async function migrateUsage(
  pool: PostgresPool,
  options: PostgresUsageTableOptions = {},
): Promise<void> {
  const name = readUsageTable(options);
  await migrateSideTable(pool, {
    name,
    kind: USAGE,
    version: SCHEMA_VERSION,
    columns: TYPES,
    create: schemaSql(name),
  });
}

/**
 * The SQL that creates the table of usage, for hosts that own their migrations.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * console.log(usageMigrationSql()); // CREATE TABLE "tokenwright_usage" (…
 */
export function usageMigrationSql(options: PostgresUsageTableOptions = {}): string {
  return schemaSql(readUsageTable(options));
}

/** Its quoted name. @throws {TokenError} `invalid_options` */
export function readUsageTable({ table = 'tokenwright_usage' }: PostgresUsageTableOptions): string {
  return readName(table, MAX_NAME).quoted;
}

const SCHEMA_VERSION = 1;
/** The server truncates longer names. */
const MAX_NAME = 63;

const TYPES = [
  ['id', 'text'],
  ['scope', 'text'],
  ['uses', 'bigint'],
  ['last_used_at', 'bigint'],
] as const;

/**
 * One row for each scope of a token that was used. The free space in each page lets PostgreSQL write the
 * new version of a row beside the old one, without touching the index.
 */
function schemaSql(name: string): string {
  return `CREATE TABLE ${name} (
  id text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  uses bigint NOT NULL,
  last_used_at bigint NOT NULL,
  PRIMARY KEY (id, scope)
) WITH (fillfactor = 70);
${sinceSql(name)}COMMENT ON TABLE ${name} IS '${USAGE.mark} ${SCHEMA_VERSION}';
`;
}

/** Adds the row of no token that says since when counts are complete, if it is missing. */
export function sinceSql(name: string): string {
  return `INSERT INTO ${name} (id, scope, uses, last_used_at)
  VALUES ('', '', 0, floor(extract(epoch FROM clock_timestamp()) * 1000))
  ON CONFLICT (id, scope) DO NOTHING;
`;
}
