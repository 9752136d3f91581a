import type { PageQuery } from '../ports/token-store.ts';
import type { TokenRecord } from '../token/record.ts';
import type { KeyRing } from '../values/keys.ts';
import type { CheckedStore } from './checked-store.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { type Scan, scan } from './scan.ts';

/** One page of an account's list. */
export interface Listing
  extends Pick<Scan, 'limit'>,
    Pick<PageQuery, 'account' | 'state' | 'parent'> {
  /** Identifies the list: a cursor is valid only with the same filter. */
  readonly filter: string;
  /** Selects tokens by their scopes. */
  readonly isWanted: ((scopes: readonly string[]) => boolean) | undefined;
  /** Selects tokens whose name has this part, in any case. */
  readonly name: string | undefined;
  readonly maxBytes: number;
  /** The cursor of the page before this one. */
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
  { account, state, parent, filter, limit, maxBytes, cursor, ...wanted }: Listing,
  now: number,
): Promise<ListedRecords> {
  const after = cursor === undefined ? undefined : readCursor(ring, cursor, filter);
  const query = { account, state, parent, after, liveAt: new Date(now), maxBytes };
  const { records, last } = await scan(store, { query, limit, isWanted: selectorOf(wanted) });
  return { records, cursor: last && writeCursor(ring, last, filter) };
}

/** Selects the wanted records; `undefined` if all are wanted. */
function selectorOf({ isWanted, name }: Pick<Listing, 'isWanted' | 'name'>): Scan['isWanted'] {
  const hasScopes = isWanted && oncePerList(isWanted);
  const hasName = name === undefined ? undefined : nameFilter(name);
  if (hasScopes === undefined || hasName === undefined) return hasScopes ?? hasName;
  return (record) => hasName(record) && hasScopes(record);
}

/** Ignores case. Independent of the locale of the machine. */
function nameFilter(part: string): (record: TokenRecord) => boolean {
  const folded = part.toLowerCase();
  return ({ name }) => name?.toLowerCase().includes(folded) === true;
}

/** Many tokens hold the same list: each list is tested once. */
function oncePerList(
  isWanted: (scopes: readonly string[]) => boolean,
): (record: TokenRecord) => boolean {
  const known = new Map<readonly string[], boolean>();
  return ({ scopes }) => {
    const answer = known.get(scopes) ?? isWanted(scopes);
    known.set(scopes, answer);
    return answer;
  };
}
