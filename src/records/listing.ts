import type { ListInput } from '../inputs/types.ts';
import type { PageQuery } from '../ports/token-store.ts';
import type { UsageTotals } from '../ports/usage-store.ts';
import type { TokenId, TokenRecord } from '../token/record.ts';
import type { KeyRing } from '../values/keys.ts';
import type { CheckedStore } from './checked-store.ts';
import { type Place, placeOf, positionAt, readCursor, writeCursor } from './cursor.ts';
import { type Scan, type Select, scan } from './scan.ts';
import { type Sorted, sorted } from './sorting.ts';

/** What a list is ordered by. */
type Sort = NonNullable<ListInput['sort']>;

/** Reads how tokens were used. */
type UsesOf = (ids: readonly TokenId[]) => Promise<readonly (UsageTotals | undefined)[]>;

/** One page of an account's list. */
export interface Listing
  extends Pick<Scan, 'limit'>,
    Pick<PageQuery, 'account' | 'state' | 'parent'> {
  /** Identifies the list: a cursor is valid only with the same filter and order. */
  readonly filter: string;
  readonly sort: Sort;
  /** Selects tokens by their scopes. */
  readonly isWanted: ((scopes: readonly string[]) => boolean) | undefined;
  /** Selects tokens whose name has this part, in any case. */
  readonly name: string | undefined;
  /** Selects tokens that somebody made. */
  readonly createdBy: string | undefined;
  /** Selects tokens without a use. */
  readonly isUnused: boolean;
  readonly usesOf: UsesOf;
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
 * @throws {TokenError} `invalid_request` for a cursor of another account, filter or order, and for too many tokens
 * to sort
 */
export async function readListing(
  store: CheckedStore,
  ring: KeyRing,
  { filter, cursor, ...listing }: Listing,
  now: number,
): Promise<ListedRecords> {
  const after = cursor === undefined ? undefined : readCursor(ring, cursor, filter);
  const { records, last } = await pageAfter(store, listing, after, now);
  return { records, cursor: last && writeCursor(ring, last, filter) };
}

async function pageAfter(
  store: CheckedStore,
  listing: Omit<Listing, 'filter' | 'cursor'>,
  after: Place | undefined,
  now: number,
): Promise<Sorted> {
  const { account, state, parent, sort, limit, maxBytes, usesOf } = listing;
  const query = { account, state, parent, liveAt: new Date(now), maxBytes };
  const select = selectorOf(listing);
  // The tokens that were derived from one are listed by creation only.
  if (sort === 'created' || (sort === 'expire' && parent === undefined)) {
    const ordered = { ...query, order: sort, after: after && positionAt(after) };
    const { records, last } = await scan(store, { query: ordered, limit, select });
    return { records, last: last && placeOf(last) };
  }
  const keysOf = (records: readonly TokenRecord[]) => KEYS[sort](records, usesOf);
  return sorted(store, { query, limit, select, keysOf, after });
}

/** Texts that sort as the records do. */
const KEYS: Readonly<
  Record<
    Exclude<Sort, 'created'>,
    (records: readonly TokenRecord[], usesOf: UsesOf) => Promise<readonly string[]>
  >
> = {
  expire: async (records) => records.map(({ expiresAt }) => sortable(expiresAt.getTime())),
  name: async (records) => records.map(({ name = '' }) => name.toLowerCase()),
  lastUsed: async (records, usesOf) =>
    (await usesOf(records.map(({ id }) => id))).map((uses) =>
      uses?.lastUsedAt === undefined ? '' : sortable(LATEST_MS - uses.lastUsedAt.getTime()),
    ),
};

const LATEST_MS = 8_640_000_000_000_000;

function sortable(ms: number): string {
  return String(ms).padStart(16, '0');
}

/** Selects the wanted records; `undefined` if all are wanted. */
function selectorOf({
  isWanted,
  name,
  createdBy,
  isUnused,
  usesOf,
}: Pick<Listing, 'isWanted' | 'name' | 'createdBy' | 'isUnused' | 'usesOf'>): Select | undefined {
  const tests = [
    ...(name === undefined ? [] : [nameFilter(name)]),
    ...(createdBy === undefined
      ? []
      : [({ origin }: TokenRecord) => origin?.createdBy === createdBy]),
    ...(isWanted === undefined ? [] : [oncePerList(isWanted)]),
  ];
  const isMatch = (record: TokenRecord) => tests.every((test) => test(record));
  if (isUnused) return (records) => unusedOf(records, isMatch, usesOf);
  return tests.length === 0 ? undefined : (records) => records.map(isMatch);
}

/** Asks only about the uses of those that match. */
async function unusedOf(
  records: readonly TokenRecord[],
  isMatch: (record: TokenRecord) => boolean,
  usesOf: UsesOf,
): Promise<readonly boolean[]> {
  const ids = records.filter(isMatch).map(({ id }) => id);
  const uses = await usesOf(ids);
  const unused = new Set(ids.filter((_, at) => uses[at]?.lastUsedAt === undefined));
  return records.map(({ id }) => unused.has(id));
}

/** Ignores case. Independent of the locale of the machine. */
function nameFilter(part: string): (record: TokenRecord) => boolean {
  const folded = part.toLowerCase();
  return ({ name }) => name?.toLowerCase().includes(folded) === true;
}

/** Many tokens hold the same list: each list is tested once, as long as it is in memory. */
function oncePerList(
  isWanted: (scopes: readonly string[]) => boolean,
): (record: TokenRecord) => boolean {
  const known = new WeakMap<readonly string[], boolean>();
  return ({ scopes }) => {
    const answer = known.get(scopes) ?? isWanted(scopes);
    known.set(scopes, answer);
    return answer;
  };
}
