import type { TokenRecord } from '../token.ts';
import type { KeyRing } from '../values/keys.ts';
import type { CheckedStore } from './checked-store.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { type Scan, scan } from './scan.ts';

/** One page of an account's list. */
export interface Listing extends Pick<Scan, 'limit' | 'isWanted'> {
  readonly account: string;
  /** What is listed, as text: a cursor goes on with nothing else. */
  readonly filter: string;
  readonly maxBytes: number;
  /** That of the page before this one. */
  readonly cursor: string | undefined;
}

/** The records of a page, and the cursor of the next one if there is more. */
export interface ListedRecords {
  readonly records: readonly TokenRecord[];
  readonly cursor: string | undefined;
}

/**
 * Reads a page of an account's list.
 *
 * @throws {TokenError} `invalid_request` for a cursor of another account or filter
 */
export async function readListing(
  store: CheckedStore,
  ring: KeyRing,
  { account, filter, maxBytes, cursor, ...wanted }: Listing,
  now: number,
): Promise<ListedRecords> {
  const after = cursor === undefined ? undefined : readCursor(ring, cursor, filter);
  const query = { account, after, liveAt: new Date(now), maxBytes };
  const { records, last } = await scan(store, { query, ...wanted });
  return { records, cursor: last && writeCursor(ring, last, filter) };
}
