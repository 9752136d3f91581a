import type { StoreFinding } from '../../ports/token-store.ts';
import { leaseFindings, MAX_OVERDUE, overdueBefore } from '../shared/lease-doctor.ts';
import { LEASES } from '../shared/schema-mark.ts';
import type { Session } from './client.ts';
import { LEASE_COLUMNS, LEASE_INDEXES, LEASE_SCHEMA_VERSION } from './lease-schema.ts';
import { indexesOf, isTable, type Table, tableStateOf } from './schema.ts';

/** Looks for faults of the table of leases. */
export async function examineLeases(session: Session, table: Table): Promise<StoreFinding[]> {
  const state = await tableStateOf(session, table, LEASES);
  const missing = state === undefined ? [] : await missingIn(session, table);
  if (state !== undefined && state.engine !== 'InnoDB') missing.push('the engine InnoDB');
  const isWhole = state !== undefined && missing.length === 0;
  return leaseFindings({
    isThere: state !== undefined,
    version: LEASE_SCHEMA_VERSION,
    mark: state?.mark,
    missing,
    overdue: isWhole ? await overdueIn(session, table) : 0,
  });
}

async function missingIn(session: Session, table: Table): Promise<string[]> {
  const rows = await session.query(
    `SELECT COLUMN_NAME AS name FROM information_schema.COLUMNS WHERE ${isTable(table)}`,
  );
  const columns = new Set(rows.map(({ name }) => String(name)));
  const indexes = await indexesOf(session, table);
  return [
    ...LEASE_COLUMNS.filter((name) => !columns.has(name)).map((name) => `the column ${name}`),
    ...LEASE_INDEXES.filter((name) => !indexes.has(name)).map((name) => `the index ${name}`),
  ];
}

async function overdueIn(session: Session, { quoted }: Table): Promise<number> {
  const [row] = await session.query(
    `SELECT COUNT(*) AS overdue FROM (
       SELECT 1 FROM ${quoted} WHERE ends_at < ${overdueBefore()} LIMIT ${MAX_OVERDUE}
     ) AS counted`,
  );
  return Number(row?.['overdue']);
}
