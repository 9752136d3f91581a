import type { PurgedRecords } from '../../ports/token-store.ts';
import type { TokenId } from '../../token/record.ts';

/**
 * The answer of a purge that first looked for records and then removed them. If it removed fewer than it
 * found, another call has removed some meanwhile, or given them a later end. `ids` leaves out the records
 * that are still there.
 *
 * @param find reads records, to see which are still there
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
