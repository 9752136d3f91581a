import { isTokenError } from '../../errors.ts';
import {
  drawName,
  driverOf,
  dropAll,
  SCRATCH_DEADLINE_MS,
  type ScratchTables,
} from '../shared/scratch.ts';
import { type PostgresPool, readPool, sqlStateOf, unavailable } from './client.ts';
import { readTables, sinceSql, tablesIn } from './schema.ts';
import { dialectOf, type Table } from './shape.ts';

/**
 * Creates tables of a name that nothing has. Not by `migrate`, which would also take over tables that exist.
 *
 * @throws {TokenError} `store_unavailable`
 */
export async function scratchTables(pool: PostgresPool): Promise<ScratchTables> {
  const send = async (text: string) => {
    const { rows } = await readPool(pool).query({ text, query_timeout: SCRATCH_DEADLINE_MS });
    return rows;
  };
  const run = (text: string) => send(text).catch(throwUnavailable);
  const drop = (names: readonly string[]) =>
    dropAll(names, (name) => run(`DROP TABLE IF EXISTS ${name}`));
  const [row] = (await run('SELECT version() AS version')) as readonly { version?: unknown }[];
  const version = String(row?.version);
  const dialect = dialectOf(version);
  let tables: readonly Table[] = [];
  const name = await drawName(async (drawn) => {
    tables = tablesIn(readTables({ tables: drawn }, dialect));
    const made: string[] = [];
    try {
      for (const table of tables) await create(send, table, made);
      return true;
    } catch (error) {
      await drop(made);
      if (TAKEN.has(sqlStateOf(error))) return false;
      return throwUnavailable(error);
    }
  });
  const names = tables.map((table) => table.name);
  const { usage } = readTables({ tables: name });
  const empty = `${names.map((table) => `DELETE FROM ${table};\n`).join('')}${sinceSql(usage.name)}`;
  return {
    name,
    engine: productIn(version),
    driver: driverOf(pool, 'pg'),
    empty: async () => void (await run(empty)),
    drop: () => drop(names),
  };
}

/** A relation, a type or an index of that name exists. */
const TAKEN = new Set<string | undefined>(['42P07', '42710', '23505']);

/** Notes the table as soon as it exists: not every server of this kind undoes the rest of a failed batch. */
async function create(
  send: (text: string) => Promise<unknown>,
  table: Table,
  made: string[],
): Promise<void> {
  const [first = '', ...rest] = table.create.split(';\n').filter(Boolean);
  await send(first);
  made.push(table.name);
  for (const statement of rest) await send(statement);
}

function throwUnavailable(error: unknown): never {
  throw isTokenError(error) ? error : unavailable(error);
}

/** Of `PostgreSQL 15.18 (Debian 15.18-1) on x86_64-pc-linux-gnu, compiled by …`, the first two words. */
function productIn(version: string): string {
  return version.replace(/ on .*|[,(].*/s, '').trim();
}
