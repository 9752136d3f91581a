import type { TableKind } from '../shared/schema-mark.ts';
import { type MysqlPool, type MysqlPromisePool, readPool, Session } from './client.ts';
import { checkVersion, MIGRATION_DEADLINE_MS, type Table, tableStateOf } from './schema.ts';

/** A table beside the one of the tokens, and how it is made. */
export interface SideTable extends Table {
  readonly kind: TableKind;
  readonly version: number;
  readonly create: string;
  /** A statement that fills a new table. */
  readonly fill?: string;
  /** A statement that brings a table of any earlier version up to date, once or twice. */
  readonly upgrade?: string;
}

/**
 * Creates a table if it is missing, or brings it up to date.
 *
 * @throws {TokenError} `invalid_options` for a table of something else, or of a later version;
 * `store_unavailable`
 */
export async function migrateSideTable(
  pool: MysqlPool | MysqlPromisePool,
  table: SideTable,
): Promise<void> {
  const { kind, version, create, fill, upgrade } = table;
  const session = new Session(readPool(pool), MIGRATION_DEADLINE_MS, { kind });
  const state = await tableStateOf(session, table, kind);
  if (state === undefined) await session.query(create);
  // Another process may have created it meanwhile, perhaps in another version.
  const current = state ?? (await tableStateOf(session, table, kind));
  checkVersion(current, table, { mark: kind.mark, version });
  if (state === undefined && fill !== undefined) await session.query(fill);
  const isOlder = (current?.mark?.version ?? version) < version;
  if (isOlder && upgrade !== undefined) await session.query(upgrade);
}
