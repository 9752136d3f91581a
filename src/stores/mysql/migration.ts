import { storeUnavailable, TokenError } from '../../errors.ts';
import { partOf, unsupported } from '../shared/reasons.ts';
import { nextUpgrade, readMark, type SchemaMark, type SchemaTable } from '../shared/schema-mark.ts';
import { type MysqlPool, type MysqlPromisePool, readPool, Session } from './client.ts';

/** A table that tokenwright makes. */
export interface Table extends SchemaTable {
  /** Undefined: the database that the connection has chosen. */
  readonly database: string | undefined;
  readonly quoted: string;
  readonly columns: Readonly<Record<string, ColumnType>>;
  readonly keys: Readonly<Record<string, string>>;
  /** Statements that fill a new table. */
  readonly fill: readonly string[];
}

export interface ColumnType {
  readonly type: string;
  /** The size of a column of bytes. */
  readonly bytes?: number;
  readonly isNullable?: boolean;
  /** The server computes it. */
  readonly as?: string;
}

const MIGRATION_DEADLINE_MS = 60_000;
/** How often to look at a table again that another process changes meanwhile. */
const MAX_RACES = 3;

/**
 * Creates tables or brings them up to date, one after the other.
 *
 * @throws {TokenError} `invalid_options` for a table of something else, or of a version that this code cannot
 * use; `store_unavailable`
 */
export async function migrateTables(
  pool: MysqlPool | MysqlPromisePool,
  tables: readonly Table[],
): Promise<void> {
  const session = new Session(readPool(pool), MIGRATION_DEADLINE_MS);
  const [{ database } = { database: undefined }] = tables;
  await refuseShards(session, database);
  for (const table of tables) await migrateTable(session, table);
}

/**
 * A row with the primary key may be in any shard, so that none of them knows whether an id is taken.
 *
 * @throws {TokenError} `store_unavailable` for a keyspace of Vitess with several shards
 */
async function refuseShards(session: Session, database: string | undefined): Promise<void> {
  const [server] = await session.query(
    'SELECT VERSION() AS version, @@version_comment AS comment, DATABASE() AS name',
  );
  if (!/vitess/i.test(`${server?.['version']} ${server?.['comment']}`)) return;
  // The name of a connection may go on with a shard and a kind of tablet, as in commerce:-80@primary.
  const [keyspace = ''] = (database ?? String(server?.['name'])).split(/[:/@]/, 1);
  const shards = (await session.query('SHOW VITESS_SHARDS')).flatMap((row) => Object.values(row));
  if (shards.filter((shard) => String(shard).startsWith(`${keyspace}/`)).length < 2) return;
  throw unsupported('sharded keyspaces of Vitess');
}

async function migrateTable(session: Session, table: Table): Promise<void> {
  const { create, fill, kind } = table;
  let state = await tableStateOf(session, table);
  for (let races = 0; ; ) {
    const step = state === undefined ? create : nextStep(state, table);
    if (step === undefined) return;
    const failure = await session.change(step, kind);
    const before = state;
    state = await tableStateOf(session, table);
    // Another process may have taken this step, so its failure says nothing.
    if (state?.mark?.version === before?.mark?.version) {
      races += 1;
      if (failure?.isRace === false || races === MAX_RACES) {
        throw failure?.error ?? storeUnavailable('busy', partOf(kind));
      }
    } else if (before === undefined && nextStep(state, table) === undefined) {
      for (const statement of fill) await session.query(statement, kind);
    }
  }
}

interface TableState {
  readonly engine: string;
  /** Undefined when the table is not ours. */
  readonly mark: SchemaMark | undefined;
}

export async function tableStateOf(
  session: Session,
  table: Table,
): Promise<TableState | undefined> {
  const [row] = await session.query(
    `SELECT ENGINE AS engine, TABLE_COMMENT AS comment FROM information_schema.TABLES
     WHERE ${isTable(table)}`,
    table.kind,
  );
  if (row === undefined) return undefined;
  return { engine: String(row['engine']), mark: readMark(String(row['comment']), table.kind) };
}

/** A condition on `information_schema`. Names hold no quotes. */
export function isTable({ database, name }: Table): string {
  const schema = database === undefined ? 'DATABASE()' : `'${database}'`;
  return `TABLE_SCHEMA = ${schema} AND TABLE_NAME = '${name}'`;
}

/** @throws {TokenError} `invalid_options` */
function nextStep(state: TableState | undefined, table: Table): string | undefined {
  const { name, kind } = table;
  if (state?.mark !== undefined) return nextUpgrade(state.mark, table);
  throw new TokenError(
    'invalid_options',
    `the table ${name} is not one of tokenwright: its comment does not say "${kind.mark}"; choose another table`,
  );
}
