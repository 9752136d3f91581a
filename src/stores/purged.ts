import type { PurgedRecords } from '../store.ts';
import type { TokenId } from '../token.ts';

/**
 * The answer of a purge that looked for records and then removed those which it had found. If it removed
 * fewer, another call has removed some meanwhile, or given them a later end: those that are left are not told.
 *
 * @param find reads what is left of the records
 */
export async function purgedOf(
  found: readonly TokenId[],
  count: number,
  find: (ids: readonly TokenId[]) => Promise<readonly unknown[]>,
): Promise<PurgedRecords> {
  if (count === found.length) return { count, ids: found };
  const left = await find(found);
  return { count, ids: found.filter((_, index) => left[index] === undefined) };
}
