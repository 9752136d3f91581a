import { isTokenError, TokenError } from '../errors.ts';
import type { AccountQuota, PageQuery, Position, TokenStore } from '../store.ts';
import { isListed, LISTED_STATES, type TokenId, type TokenRecord } from '../token.ts';
import { facts, idOf, later, newestFirst, newRecord, purgeOf, range } from './records.ts';

/** The contract in its simplest form, for comparison with a store. */
export class ReferenceStore implements TokenStore {
  readonly #records = new Map<TokenId, TokenRecord>();

  async insert(record: TokenRecord, quota?: AccountQuota): Promise<void> {
    if (quota !== undefined) {
      const live = this.#open(record.account).filter(({ expiresAt }) => expiresAt > quota.liveAt);
      if (live.length >= quota.tokens) throw new TokenError('quota_exceeded', 'no room');
    }
    if (this.#records.has(record.id)) throw new TokenError('id_taken', 'this id is taken');
    this.#records.set(record.id, record);
  }

  async find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    return ids.map((id) => this.#records.get(id));
  }

  async page({ account, after, limit, liveAt, state, parent }: PageQuery): Promise<TokenRecord[]> {
    const listed = [...this.#records.values()].filter(
      (record) =>
        record.account === account &&
        isListed(record, state, liveAt.getTime()) &&
        (parent === undefined || record.ancestors?.at(-1) === parent),
    );
    const isNext = (record: TokenRecord): boolean => after === undefined || isAfter(record, after);
    return newestFirst(listed).filter(isNext).slice(0, limit);
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
    this.#records.set(id, { ...open, revokedAt: at });
    return true;
  }

  async revokeAll(account: string, at: Date, limit: number): Promise<number> {
    const open = this.#open(account).slice(0, limit);
    for (const record of open) this.#records.set(record.id, { ...record, revokedAt: at });
    return open.length;
  }

  async purge(before: Date, limit: number): Promise<number> {
    const ended = [...this.#records.values()].filter(
      ({ expiresAt, revokedAt }) => expiresAt < before || (revokedAt ?? before) < before,
    );
    for (const { id } of ended.slice(0, limit)) this.#records.delete(id);
    return Math.min(limit, ended.length);
  }

  #open(account: string): TokenRecord[] {
    return [...this.#records.values()].filter(
      (record) => record.account === account && record.revokedAt === undefined,
    );
  }
}

/** Whether a record comes after a position in a list that is newest first. */
function isAfter(record: TokenRecord, { createdAt, id }: Position): boolean {
  const gap = record.createdAt.getTime() - createdAt.getTime();
  return gap < 0 || (gap === 0 && record.id < id);
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
  const record = newRecord(label, { account, version, createdAt, expiresAt, scopes, ancestors });
  const suspendedAt = draw(3) === 0 ? at : undefined;
  const next = { ...record, version: version + 1, suspendedAt };
  const position = { createdAt, id: record.id };
  const state = [...LISTED_STATES, undefined][draw(LISTED_STATES.length + 1)];
  const query = { account, limit: 1 + draw(6), liveAt: at, state, parent: asked };
  const quota = { tokens: 1 + draw(12), liveAt: at };
  // A purge never reaches its limit, because a store may choose the records that it removes first.
  const calls: readonly StoreCall[] = [
    (store) => store.insert(record),
    (store) => store.insert({ ...record, version: 1 }),
    (store) => store.insert({ ...record, version: 1 }, quota),
    (store) => store.replace(next),
    (store) => store.replace({ ...next, version: 2 }),
    (store) => store.replace({ ...next, version: 2 }),
    (store) => store.revoke(record.id, account, at, version),
    (store) => store.page(query),
    (store) => store.page({ ...query, after: position }),
    (store) => store.page({ ...query, after: position }),
    (store) => purgeOf(store, before, 1000),
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
