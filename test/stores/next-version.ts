// The schema as a made-up later version has it, two steps on. Child processes import this file.
import { createPool } from 'mysql2';
import pg from 'pg';
import { migrateTables as migrateMysql } from '../../src/stores/mysql/migration.ts';
import * as mysql from '../../src/stores/mysql/schema.ts';
import { migrateTables as migratePostgres } from '../../src/stores/postgres/migration.ts';
import * as postgres from '../../src/stores/postgres/schema.ts';
import { markText } from '../../src/stores/shared/schema-mark.ts';

export interface Upgrade {
  readonly engine: 'PostgreSQL' | 'MariaDB';
  readonly url: string;
  readonly tables: string;
  /** How many steps that version knows. 0: it is this version. */
  readonly steps: number;
  /** Startup options of PostgreSQL. */
  readonly options?: string;
}

/** Brings all tables up to date, as that version. */
export async function upgrade({
  engine,
  url,
  tables,
  steps,
  options = '',
}: Upgrade): Promise<void> {
  if (engine === 'PostgreSQL') {
    const pool = new pg.Pool({ connectionString: url, options });
    const known = Object.values(postgres.readTables({ tables })).filter(
      (table) => typeof table !== 'string',
    );
    const later = known.map((table) => {
      const mark = (version: number) =>
        `COMMENT ON TABLE ${table.name} IS '${markText(table.kind, version)}'`;
      const upgrades = [
        `ALTER TABLE ${table.name} ADD note text; ${mark(2)}`,
        `ALTER TABLE ${table.name} ADD kind text NOT NULL DEFAULT 'plain'; ${mark(3)}`,
      ];
      return { ...table, upgrades: upgrades.slice(0, steps) };
    });
    await migratePostgres(pool, () => later).finally(() => pool.end());
    return;
  }
  const pool = createPool({ uri: url });
  const later = Object.values(mysql.readTables({ tables })).map((table) => {
    const alter = (change: string, version: number) =>
      `ALTER TABLE ${table.quoted} ${change}, COMMENT = '${markText(table.kind, version)}'`;
    const upgrades = [
      alter('ADD note VARBINARY(9)', 2),
      alter("ADD kind VARBINARY(9) NOT NULL DEFAULT 'plain'", 3),
    ];
    return { ...table, upgrades: upgrades.slice(0, steps) };
  });
  await migrateMysql(pool, later).finally(() => pool.promise().end());
}
