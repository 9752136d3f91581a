import type { TokenStore } from '../../store.ts';
import type { TokenId } from '../../token.ts';
import type { UsageStore } from '../../usage-store.ts';

/** How many tokens are looked at together. */
const STEP = 1000;

/**
 * Goes through the tokens that have counts of usage and no record, in steps: those whose record was removed
 * while the counts could not be. A token may come twice.
 */
export async function* goneTokens(
  usage: UsageStore,
  store: Pick<TokenStore, 'find'>,
): AsyncGenerator<readonly TokenId[], void> {
  let after: string | undefined;
  do {
    const step = await usage.scan?.({ after, limit: STEP });
    if (step === undefined) return;
    const found = step.ids.length === 0 ? [] : await store.find(step.ids);
    yield step.ids.filter((_, index) => found[index] === undefined);
    after = step.next;
  } while (after !== undefined);
}
