import { MAX_RECORD_BYTES, SCAN_STEP } from '../bounds.ts';
import { noScan } from '../errors.ts';
import type { Position, TokenStore } from '../ports/token-store.ts';
import type { TokenRecord } from '../token/record.ts';
import type { CheckedStore } from './checked-store.ts';
import { scan } from './scan.ts';

/**
 * Goes through all records of a store, of all accounts, in steps. The same record may come twice.
 *
 * @throws {TokenError} `invalid_options` if the store has no `scan`; as `scan`
 */
export async function* stepsOf(
  store: Pick<TokenStore, 'scan'>,
): AsyncGenerator<readonly TokenRecord[], void> {
  if (store.scan === undefined) throw noScan();
  let after: string | undefined;
  do {
    const { records, next } = await store.scan({ after, limit: SCAN_STEP });
    yield records;
    after = next;
  } while (after !== undefined);
}

/**
 * Goes through all records of an account in steps, in all states and newest first.
 *
 * @param start the position after which to begin
 */
export async function* accountStepsOf(
  store: CheckedStore,
  account: string,
  now: number,
  start?: Position,
): AsyncGenerator<readonly TokenRecord[], void> {
  let after = start;
  do {
    const liveAt = new Date(now);
    const query = { account, state: 'all' as const, after, liveAt, maxBytes: MAX_RECORD_BYTES };
    const { records, last } = await scan(store, { query, limit: SCAN_STEP, select: undefined });
    yield records;
    after = last;
  } while (after !== undefined);
}
