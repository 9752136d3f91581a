import type { TokenId } from '../token/record.ts';
import type { ScanQuery } from './token-store.ts';

/** Uses of one token by one of its scopes since the last write. */
export interface UseDelta {
  /** The token, or its id and a `+` for what was derived from it. */
  readonly id: TokenId;
  /** The held scope that allowed them. */
  readonly scope: string;
  /** How many: 1 or more. */
  readonly uses: number;
  /** The time of the latest one. */
  readonly lastUsedAt: Date;
  /** Only of refusals. */
  readonly refusals?: undefined;
}

/** Refusals of one token since the last write. */
export interface RefusalDelta {
  /** The token, or its id and a `+` for what was derived from it. */
  readonly id: TokenId;
  /** How many: 1 or more. */
  readonly refusals: number;
  /** Only of uses. */
  readonly scope?: undefined;
}

/** What is added to the counts of a token. */
export type UsageDelta = UseDelta | RefusalDelta;

/** How often, and when last, a scope of a token allowed something. */
export interface UsedScope {
  /** The scope, or `other` for all that are not counted apart. */
  readonly scope: string;
  /** 1 or more. */
  readonly uses: number;
  /** To the millisecond. */
  readonly lastUsedAt: Date;
}

/** The counts of one token as a store holds them. */
export interface UsageRecord {
  /** How often it was refused. */
  readonly refusals: number;
  /** The scopes that were used, each once, in any order. */
  readonly scopes: readonly UsedScope[];
}

/** The counts of one token, those by scope summed up. */
export interface UsageTotals {
  /** How often it was used, by all scopes together. */
  readonly uses: number;
  /** How often it was refused. */
  readonly refusals: number;
  /** The time of the latest use; absent if it was only refused. */
  readonly lastUsedAt?: Date;
}

/** The tokens of one step of a pass over all counts. */
export interface CountedTokens {
  /** May hold some more than were asked for, or none although there is a `next`. */
  readonly ids: readonly TokenId[];
  /** Where the next step goes on; absent after the last one. Only the store that made it can read it. */
  readonly next?: string | undefined;
}

/**
 * Stores how often tokens are used: counts by token and scope, and nothing about a single request. What
 * it promises:
 *
 * - `add` loses no count, also with many concurrent callers. The counts of one token are one step: all of
 *   them are added or none is. A whole batch is one step only if one server has all of its tokens.
 * - `lastUsedAt` never moves backwards, in whatever order batches arrive.
 * - Ids and scopes are compared byte by byte. An id has 22 characters of `0-9A-Za-z`. The uses of tokens that
 *   were derived from a token are counted under its id and a `+`, as if that were a token of its own.
 * - A token has at most 256 scopes that are counted apart, those that came first. The uses of all others
 *   are added to one entry with the scope `other`, so that the counts still add up.
 *
 * `usageContract` of `tokenwright/testing` checks all of this for any store.
 */
export interface UsageStore {
  /**
   * Adds counts, in one round trip. A batch may name a token or a scope twice. An empty batch changes
   * nothing.
   *
   * @throws {TokenError} `store_unavailable`: all counts, some or none may have been added. If the store
   * knows tokens whose counts were, it lists their ids in `details.added`, and they are not added again.
   */
  add(batch: readonly UsageDelta[]): Promise<void>;

  /**
   * Reads the counts of tokens in one round trip. The answer has one element for each id, in that order,
   * `undefined` if nothing was ever counted. The same id may come twice.
   *
   * @throws {TokenError} `store_unavailable`
   */
  read(ids: readonly TokenId[]): Promise<readonly (UsageRecord | undefined)[]>;

  /**
   * Reads the counts of tokens as `read`, but those by scope summed up, in one round trip.
   *
   * Optional: without it, the service reads all counts of a page and sums them up itself.
   *
   * @throws {TokenError} `store_unavailable`
   */
  totals?(ids: readonly TokenId[]): Promise<readonly (UsageTotals | undefined)[]>;

  /**
   * Removes all counts of these tokens. Unknown ids are ignored.
   *
   * @throws {TokenError} `store_unavailable`
   */
  forget(ids: readonly TokenId[]): Promise<void>;

  /**
   * Goes through all tokens with counts step by step, to find those that are gone. A pass returns each
   * token at least once that has counts from its first step to its last. The order is the store's own.
   *
   * Optional: without it, the counts of tokens that are gone cannot be found.
   *
   * @throws {TokenError} `store_unavailable`
   */
  scan?(query: ScanQuery): Promise<CountedTokens>;

  /**
   * Returns since when the counts of this store are complete: when its tables or keys were made. The
   * service gives no advice about the time before.
   *
   * Optional: without it, the service takes the time of its own start.
   *
   * @throws {TokenError} `store_unavailable`
   */
  since?(): Promise<Date>;

  /**
   * Releases what the store itself opened; a client or handle that the host passed in stays open.
   *
   * @throws {TokenError} `store_unavailable`
   */
  close?(): Promise<void>;
}

/** The entry that has the uses of all scopes which are not counted apart. No scope has this form. */
export const OTHER_SCOPES = 'other';
