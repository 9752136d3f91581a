import type { StoreFinding } from '../../ports/token-store.ts';
import { leaseFindings, MAX_OVERDUE, overdueBefore } from '../shared/lease-doctor.ts';
import { LEASES, readMark } from '../shared/schema-mark.ts';
import type { PostgresQuery, Session } from './client.ts';
import { LEASE_COLUMNS, LEASE_SCHEMA_VERSION, type LeaseTable } from './lease-schema.ts';
import { hasIndex, SHAPE, type Shape } from './shape.ts';

/** The statements of the doctor, for a quoted name of a table. */
export function leaseInspection(name: string) {
  return {
    shape: SHAPE,
    overdue: `SELECT count(*)::text AS count FROM (
        SELECT FROM ${name} WHERE ends_at < $1 LIMIT ${MAX_OVERDUE}
      ) AS overdue`,
  };
}

/** Looks for faults of the table of leases. */
export async function examineLeases(
  session: Session,
  { name, byEnd }: LeaseTable,
  statements: Readonly<Record<keyof ReturnType<typeof leaseInspection>, PostgresQuery>>,
): Promise<StoreFinding[]> {
  const shape = (await session.run(statements.shape, [name]))[0] as Shape;
  const isThere = shape.kind !== null;
  const missing = isThere ? missingIn(shape, byEnd) : [];
  const isWhole = isThere && missing.length === 0;
  const [row] = isWhole ? await session.run(statements.overdue, [overdueBefore()]) : [];
  return leaseFindings({
    isThere,
    version: LEASE_SCHEMA_VERSION,
    mark: readMark(shape.comment, LEASES),
    missing,
    overdue: Number((row as { readonly count: string } | undefined)?.count ?? 0),
  });
}

function missingIn(shape: Shape, byEnd: string): string[] {
  const types = new Map(shape.columns.map(({ name, type }) => [name, type]));
  const columns = LEASE_COLUMNS.filter(([name, type]) => types.get(name) !== type);
  return [
    ...columns.map(([name, type]) => `the column ${name} ${type}`),
    ...(hasIndex(shape, '(lease_key, slot)', 'unique') ? [] : ['the primary key']),
    ...(hasIndex(shape, '(ends_at)') ? [] : [`the index ${byEnd}`]),
  ];
}
