import { TokenError } from '../../errors.ts';
import type { TokenStore } from '../../store.ts';
import type { TokenRecord } from '../../token.ts';

const STEP = 100;

/** Goes through all records of a store, in steps. */
export async function* stepsOf(store: TokenStore): AsyncGenerator<readonly TokenRecord[], void> {
  if (store.scan === undefined) {
    throw new TokenError('invalid_options', 'this store has no scan, which reads all records');
  }
  let after: string | undefined;
  do {
    const { records, next } = await store.scan({ after, limit: STEP });
    yield records;
    after = next;
  } while (after !== undefined);
}
