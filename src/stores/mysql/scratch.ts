import {
  drawName,
  driverOf,
  dropAll,
  SCRATCH_DEADLINE_MS,
  type ScratchTables,
} from '../shared/scratch.ts';
import { type MysqlPool, type MysqlPromisePool, readPool, Session } from './client.ts';
import { type Table, tableStateOf } from './migration.ts';
import { readTables, tablesIn } from './schema.ts';

/**
 * Creates tables of a name that nothing has. Not by `migrate`, which also takes over tables that exist.
 *
 * @throws {TokenError} `store_unavailable`
 */
export async function scratchTables(pool: MysqlPool | MysqlPromisePool): Promise<ScratchTables> {
  const driverPool = readPool(pool);
  const session = new Session(driverPool, SCRATCH_DEADLINE_MS);
  const drop = (names: readonly string[]) =>
    dropAll(names, (name) => session.query(`DROP TABLE IF EXISTS \`${name}\``));
  const [row] = await session.query('SELECT VERSION() AS version');
  let tables: readonly Table[] = [];
  const name = await drawName(async (drawn) => {
    tables = tablesIn(readTables({ tables: drawn }));
    const made: string[] = [];
    for (const table of tables) {
      const outcome = await create(session, table);
      if (outcome === 'created') made.push(table.name);
      else await drop(made);
      if (outcome === 'taken') return false;
      if (outcome !== 'created') throw outcome.error;
    }
    return true;
  });
  return {
    name,
    engine: productIn(String(row?.['version'])),
    driver: driverOf(driverPool, 'mysql2'),
    async empty() {
      for (const { quoted, fill } of tables) {
        for (const sql of [`DELETE FROM ${quoted}`, ...fill]) await session.query(sql);
      }
    },
    drop: () => drop(tables.map((table) => table.name)),
  };
}

async function create(
  session: Session,
  table: Table,
): Promise<'created' | 'taken' | { readonly error: unknown }> {
  try {
    await session.query(table.create.replace(' IF NOT EXISTS', ''));
    return 'created';
  } catch (error) {
    const state = await tableStateOf(session, table).catch(() => undefined);
    return state === undefined ? { error } : 'taken';
  }
}

/** `10.11.14-MariaDB-0+deb12u2` and `8.0.11-TiDB-v7.5.0` name their product, and MySQL itself does not. */
function productIn(version: string): string {
  const [, number = '', product = 'MySQL', own = number] =
    /^(\d+(?:\.\d+)*)(?:-([A-Z]\w+)(?:-v?(\d+\.\d+[\d.]*))?)?/.exec(version) ?? [];
  return `${product} ${own}`.trim();
}
