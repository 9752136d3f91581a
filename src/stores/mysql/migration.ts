import { TokenError } from '../../errors.ts';
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
  for (const table of tables) await migrateTable(session, table);
}

async function migrateTable(session: Session, table: Table): Promise<void> {
  const { create, fill, kind } = table;
  let state = await tableStateOf(session, table);
  if (state === undefined) {
    await session.query(create, kind);
    // Another process may have created it meanwhile, perhaps in another version.
    state = await tableStateOf(session, table);
    if (nextStep(state, table) === undefined) {
      for (const statement of fill) await session.query(statement, kind);
    }
  }
  for (let step = nextStep(state, table); step !== undefined; step = nextStep(state, table)) {
    state = await upgraded(session, table, { step, from: state?.mark?.version });
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

async function upgraded(
  session: Session,
  table: Table,
  { step, from }: { readonly step: string; readonly from: number | undefined },
): Promise<TableState | undefined> {
  const failure = await session.query(step, table.kind).then(
    () => undefined,
    (error: unknown) => error,
  );
  const state = await tableStateOf(session, table);
  // If another process was first, this one failed because the columns exist already.
  if (failure !== undefined && state?.mark?.version === from) throw failure;
  return state;
}
