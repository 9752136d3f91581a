import { isTokenError, TokenError } from '../errors.ts';
import {
  type CountQuery,
  type PageQuery,
  type PruneQuery,
  type PurgeQuery,
  positionOf,
  type QuotaHolder,
  type TokenCounts,
  type TokenStore,
} from '../ports/token-store.ts';
import { isListed, LISTED_STATES, type TokenId, type TokenRecord } from '../token/record.ts';
import { revoked } from '../token/revoked.ts';
import {
  comparedBy,
  countOf,
  facts,
  idOf,
  inOrder,
  later,
  newestFirst,
  newRecord,
  pruneOf,
  purgeOf,
  range,
} from './records.ts';

/** The contract in its simplest form, for comparison with a store. */
export class ReferenceStore implements TokenStore {
  readonly #records = new Map<TokenId, TokenRecord>();

  async insert(record: TokenRecord): Promise<void> {
    if (this.#records.has(record.id)) throw new TokenError('id_taken', 'this id is taken');
    this.#records.set(record.id, record);
  }

  async count({ liveAt, most, ...holder }: CountQuery): Promise<TokenCounts> {
    const records = this.#heldBy(holder);
    const live = records.filter((record) => !hasEnded(record, liveAt)).length;
    const ended = records.length - live;
    return { live: Math.min(live, most.live), ended: Math.min(ended, most.ended) };
  }

  async find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    return ids.map((id) => this.#records.get(id));
  }

  async page({
    account,
    order,
    after,
    limit,
    liveAt,
    state,
    ...of
  }: PageQuery): Promise<TokenRecord[]> {
    const listed = [...this.#records.values()].filter(
      (record) =>
        record.account === account &&
        isListed(record, state, liveAt.getTime()) &&
        (of.parent === undefined || record.ancestors?.at(-1) === of.parent) &&
        (of.root === undefined || record.ancestors?.[0] === of.root),
    );
    const isNext = (record: TokenRecord): boolean =>
      after === undefined || comparedBy(order)(positionOf(record, order), after) > 0;
    return inOrder(listed, order).filter(isNext).slice(0, limit);
  }

  async replace(next: TokenRecord, version = next.version - 1): Promise<boolean> {
    const open = this.#open(next.account).find((record) => record.id === next.id);
    if (open?.version !== version) return false;
    this.#records.set(next.id, next);
    return true;
  }

  async revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    const open = this.#open(account).find((record) => record.id === id);
    if (open === undefined || (version ?? open.version) !== open.version) return false;
    this.#records.set(id, revoked(open, at));
    return true;
  }

  async revokeAll(account: string, at: Date, limit: number): Promise<number> {
    const open = this.#open(account).slice(0, limit);
    for (const record of open) this.#records.set(record.id, revoked(record, at));
    return open.length;
  }

  async purge({ now, minAgeMs, limit }: PurgeQuery): Promise<number> {
    const before = new Date(now.getTime() - minAgeMs);
    const ended = [...this.#records.values()].filter(
      ({ expiresAt, revokedAt }) => expiresAt < before || (revokedAt ?? before) < before,
    );
    return this.#remove(ended.slice(0, limit));
  }

  async prune({ now, limit, ...holder }: PruneQuery): Promise<number> {
    const ended = this.#heldBy(holder).filter(
      (record) => hasEnded(record, now) && !(record.revokedAt && record.format),
    );
    return this.#remove(newestFirst(ended).reverse().slice(0, limit));
  }

  #remove(records: readonly TokenRecord[]): number {
    for (const { id } of records) this.#records.delete(id);
    return records.length;
  }

  #heldBy({ account, root }: QuotaHolder): TokenRecord[] {
    return [...this.#records.values()].filter(
      (record) => record.account === account && record.ancestors?.[0] === root,
    );
  }

  #open(account: string): TokenRecord[] {
    return [...this.#records.values()].filter(
      (record) => record.account === account && record.revokedAt === undefined,
    );
  }
}

function hasEnded({ expiresAt, revokedAt }: TokenRecord, now: Date): boolean {
  return revokedAt !== undefined || expiresAt <= now;
}

export type StoreCall = (store: TokenStore) => Promise<unknown>;
/** A whole number from 0 to below the given one. */
type Draw = (below: number) => number;

/** Draws the same numbers for the same seed (mulberry32), so that a failure can be repeated. */
export function seeded(seed: number): Draw {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

export const RANDOM_LABELS = range(24).map((index) => `${'aAbB'[index % 4]}${index}`);

/** Draws one call of a store, the frequent ones more often. */
export function drawCall(draw: Draw): StoreCall {
  const label = RANDOM_LABELS[draw(RANDOM_LABELS.length)] as string;
  const account = ['acme', 'acme', 'acme', 'Acme'][draw(4)] as string;
  const version = 1 + draw(3);
  const [at, before] = [later(draw(60)), later(draw(30))];
  const [createdAt, expiresAt] = [later(draw(5)), later(20 + draw(80))];
  const scopes = range(1 + draw(3)).map((index) => `GET:shop.example/${index}`);
  const parents = [undefined, undefined, idOf('a0'), idOf('b1')];
  const [parent, asked] = [parents[draw(4)], parents[draw(4)]];
  const ancestors = parent && [idOf('root'), parent];
  const format = draw(8) === 0 ? 'sanctum' : undefined;
  const fields = { account, version, createdAt, expiresAt, scopes, ancestors, format };
  const record = newRecord(label, fields);
  const suspendedAt = draw(3) === 0 ? at : undefined;
  const next = { ...record, version: version + 1, suspendedAt };
  const order = (['created', 'expire'] as const)[draw(2)];
  const position = positionOf(record, order);
  const state = [...LISTED_STATES, undefined][draw(LISTED_STATES.length + 1)];
  const query = { account, limit: 1 + draw(6), liveAt: at, state, parent: asked };
  const holder = { account, root: asked && idOf('root') };
  const most = { live: 1 + draw(12), ended: 1 + draw(12) };
  // Neither purge nor prune reaches its limit, because a store may choose the records that it removes first.
  const calls: readonly StoreCall[] = [
    (store) => store.insert(record),
    (store) => store.insert({ ...record, version: 1 }),
    (store) => store.page({ ...query, parent: undefined, root: holder.root }),
    (store) => countOf(store, { ...holder, liveAt: at, most }),
    (store) => store.replace(next),
    (store) => store.replace({ ...next, version: 2 }),
    (store) => store.replace({ ...next, version: 2 }),
    (store) => store.revoke(record.id, account, at, version),
    (store) => store.page(query),
    (store) => store.page({ ...query, order, parent: undefined }),
    (store) => store.page({ ...query, after: positionOf(record) }),
    (store) => store.page({ ...query, order, parent: undefined, after: position }),
    draw(2) === 0
      ? (store) => purgeOf(store, before, 1000)
      : (store) => pruneOf(store, { ...holder, now: before }),
    draw(4) === 0
      ? (store) => store.revokeAll(account, at, 1000)
      : (store) => store.revoke(record.id, account, at),
  ];
  return calls[draw(calls.length)] as StoreCall;
}

/** The answer of a call, or the code of its error, as plain JSON. */
export async function outcomeOf(call: StoreCall, store: TokenStore): Promise<unknown> {
  try {
    const answer = await call(store);
    return Array.isArray(answer) ? answer.map(facts) : answer;
  } catch (error) {
    if (isTokenError(error)) return error.code;
    throw error;
  }
}
