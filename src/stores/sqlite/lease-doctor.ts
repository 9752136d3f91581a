import type { StoreFinding } from '../../ports/token-store.ts';
import { MAX_OVERDUE, overdueBefore, partFindings } from '../shared/doctor.ts';
import { cellsOf, type SqliteHandle } from './client.ts';

/** Looks for faults of a database of leases. One of another version does not open. */
export function examineLeases(handle: SqliteHandle, byEnd: string): StoreFinding[] {
  const count = (sql: string) => Number(cellsOf(handle.prepare(sql).get())[0]);
  const index = count(`SELECT count(*) FROM pragma_index_list('leases') WHERE name = '${byEnd}'`);
  return partFindings('leases', {
    isThere: true,
    version: 1,
    mark: undefined,
    missing: index === 1 ? [] : [`the index ${byEnd}`],
    overdue: count(overdueSql()),
  });
}

function overdueSql(): string {
  return `SELECT count(*) FROM (
    SELECT 1 FROM leases WHERE ends_at < ${overdueBefore()} LIMIT ${MAX_OVERDUE})`;
}
