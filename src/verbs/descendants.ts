import { type Ancestors, hasEnded } from '../access/lineage.ts';
import { MAX_COUNTED_DESCENDANTS } from '../bounds.ts';
import { notify } from '../events.ts';
import { type Position, positionOf, type QuotaHolder } from '../ports/token-store.ts';
import { nextTurn } from '../time/deadline.ts';
import type { TokenId, TokenRecord } from '../token/record.ts';
import type { ServiceParts } from './parts.ts';

/** Descendants of a token that are revoked concurrently. @bound */
export const MAX_REVOKED_TOGETHER = 100;

/** A token by which its descendants are found. */
type Ancestor = Pick<TokenRecord, 'id' | 'account' | 'ancestors'>;

/** The records of a page: each may hold a list of some hundred kilobytes. */
const PAGE = 100;
/** In this process, reading a page takes the event loop. */
const LOCAL_PAGE = 8;

/**
 * Counts the descendants of a token that can be used now or once they are resumed, 1000 at most. One whose
 * ancestor has ended counts nowhere. Most tokens have none, which costs one count by index.
 */
export async function countDescendants(
  parts: ServiceParts,
  token: Ancestor,
  now: number,
): Promise<number> {
  const { account } = token;
  const most = { live: 2, ended: 1 };
  const query = { account, root: rootOf(token), liveAt: new Date(now), most };
  const { live } = await parts.store.count(query);
  // A derived token is one of them itself.
  if (live <= (token.ancestors === undefined ? 0 : 1)) return 0;
  let count = 0;
  for await (const { record, ancestors } of below(parts, token, now)) {
    if (!hasEnded(record, ancestors, now)) count += 1;
    if (count === MAX_COUNTED_DESCENDANTS) break;
  }
  return count;
}

/**
 * Revokes all descendants of a token, again and again until a pass finds none: one may be derived
 * meanwhile. Can be repeated after a failure.
 *
 * @returns how many this call revoked
 * @throws {TokenError} `store_unavailable`
 */
export function endDescendants(parts: ServiceParts, token: Ancestor, now: number): Promise<number> {
  return revokeUntilNone(parts, () => below(parts, token, now), now);
}

/**
 * Revokes the descendants of a root that nobody can use any more, because one of their ancestors has ended,
 * so that they take no place from others.
 *
 * @returns how many this call revoked
 * @throws {TokenError} `store_unavailable`
 */
export function endDeadDescendants(
  parts: ServiceParts,
  root: Ancestor,
  now: number,
): Promise<number> {
  const isDead = ({ record, ancestors }: Unended) => hasEnded(record, ancestors, now);
  return revokeUntilNone(parts, () => below(parts, root, now), now, { isWanted: isDead });
}

/** A record that is neither revoked nor expired, and what it was derived from. */
export interface Unended {
  readonly record: TokenRecord;
  readonly ancestors: Ancestors;
}

/** Which of the tokens that were read are revoked, and who is told. */
export interface RevokingOptions {
  /** @default all */
  readonly isWanted?: (found: Unended) => boolean;
  /** Called after each batch with the count so far. */
  readonly onProgress?: ((revoked: number) => void) | undefined;
}

/**
 * Revokes tokens again and again until a pass finds none: more may be made meanwhile. A pass reads all before
 * it revokes one, so that what ends with another one is revoked as well. Can be repeated after a failure.
 *
 * @param pass reads the tokens, each time from the start
 * @returns how many this call revoked
 */
export async function revokeUntilNone(
  parts: ServiceParts,
  pass: () => AsyncIterable<Unended>,
  now: number,
  { isWanted = () => true, onProgress }: RevokingOptions = {},
): Promise<number> {
  let count = 0;
  for (;;) {
    const found: Revocable[] = [];
    for await (const each of pass()) {
      const { id, account } = each.record;
      if (isWanted(each)) found.push({ id, account });
    }
    if (found.length === 0) return count;
    for (let at = 0; at < found.length; at += MAX_REVOKED_TOGETHER) {
      count += await revokeEach(parts, found.slice(at, at + MAX_REVOKED_TOGETHER), now);
      if (onProgress !== undefined) notify(onProgress, count);
    }
  }
}

/** All that is needed of a token to revoke it: a pass may find many. */
type Revocable = Pick<TokenRecord, 'id' | 'account'>;

async function revokeEach(
  { store, events }: ServiceParts,
  found: readonly Revocable[],
  now: number,
): Promise<number> {
  const at = new Date(now);
  const until = store.deadline();
  const revoked = await Promise.all(
    found.map(async (record) => {
      const isDone = await store.revoke(record, at, undefined, until);
      if (isDone) events.token('revoked', record, now);
      return isDone;
    }),
  );
  return revoked.filter(Boolean).length;
}

/** The descendants of a token that are neither revoked nor expired. */
function below(parts: ServiceParts, token: Ancestor, now: number) {
  const isBelow = ({ ancestors }: TokenRecord) => ancestors?.includes(token.id) === true;
  return unended(parts, { account: token.account, root: rootOf(token) }, now, isBelow);
}

/** The tokens of an account, or of a root, that are neither revoked nor expired. */
export async function* unended(
  { store, lineages }: ServiceParts,
  holder: QuotaHolder,
  now: number,
  isWanted: (record: TokenRecord) => boolean = () => true,
): AsyncGenerator<Unended, void> {
  const limit = store.isLocal ? LOCAL_PAGE : PAGE;
  const query = { ...holder, limit, liveAt: new Date(now), state: 'live' as const };
  for (let after: Position | undefined; ; ) {
    if (store.isLocal) await nextTurn();
    const page = await store.page({ ...query, after }, store.deadline());
    const wanted = page.filter(isWanted);
    const lines = await lineages.ofAll(wanted, now);
    for (const [at, record] of wanted.entries()) yield { record, ancestors: lines[at] ?? [] };
    const last = page.at(-1);
    if (last === undefined || page.length < limit) break;
    after = positionOf(last);
  }
}

function rootOf({ id, ancestors }: Ancestor): TokenId {
  return ancestors?.[0] ?? id;
}
