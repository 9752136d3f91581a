import type { TokenStore } from '../../../index.ts';
import type { UsageStore } from '../../../ports/usage-store.ts';
import type { TokenId } from '../../../token/record.ts';

const BATCH = 1000;

/**
 * Finds the tokens that have counts of usage but no record, in batches: the record was removed
 * while the counts could not be. A token may come twice.
 */
export async function* goneTokens(
  usage: UsageStore,
  store: Pick<TokenStore, 'find'>,
): AsyncGenerator<readonly TokenId[], void> {
  let after: string | undefined;
  do {
    const batch = await usage.scan?.({ after, limit: BATCH });
    if (batch === undefined) return;
    const found = batch.ids.length === 0 ? [] : await store.find(batch.ids);
    yield batch.ids.filter((_, index) => found[index] === undefined);
    after = batch.next;
  } while (after !== undefined);
}
