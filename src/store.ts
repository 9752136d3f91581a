import type { TokenId, TokenRecord } from './token.ts';

/** A place in an account's list: after the token with this creation time and id. */
export interface Position {
  readonly createdAt: Date;
  readonly id: TokenId;
}

/** One page of an account's list. */
export interface PageQuery {
  readonly account: string;
  /** Only records that come after this place; from the start when absent. */
  readonly after?: Position | undefined;
  /** At most so many records: 1 or more. */
  readonly limit: number;
  /** Only records whose `expiresAt` is later than this instant. */
  readonly liveAt: Date;
}

/**
 * Where token records are kept. A few verbs, absolute times, plain data.
 *
 * A store holds no rules: it never judges an expiry, parses a scope or sees a secret. What it owes:
 *
 * - Each method is one step: it happens whole or not at all, also with many callers at once.
 * - Ids and accounts are compared byte by byte: case, trailing space, accent and normal form count.
 * - It keeps copies and hands out copies. Times keep their milliseconds.
 * - A promise that resolves means that the change is kept. What cannot be known rejects; a store
 *   that is away never answers "no such record".
 *
 * `storeContract` of `tokenwright/testing` checks all of this for any store.
 */
export interface TokenStore {
  /** Keeps a new record. Rejects with a `TokenError` `id_taken` when the id exists, revoked or not. */
  insert(record: TokenRecord): Promise<void>;

  /**
   * Reads records by id in one round trip, revoked ones included. The answer has one place for each
   * id asked, in that order; `undefined` where there is none. An id may be asked twice.
   */
  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]>;

  /**
   * Reads a page of an account's records that are not revoked and expire after `liveAt`: newest
   * first by `createdAt`, then by `id` descending (by code unit). By keyset, never by offset: the
   * cost does not depend on how far down the list the page is.
   */
  page(query: PageQuery): Promise<TokenRecord[]>;

  /**
   * Puts `next` in the place of the record with its id, only if that one has version
   * `next.version - 1`, the same account, and is not revoked. Resolves to whether it did.
   */
  replace(next: TokenRecord): Promise<boolean>;

  /**
   * Marks a record as revoked at `at`, only if it belongs to `account`, is not revoked yet, and,
   * where `version` is given, has that version. Resolves to whether it did. The record stays, with
   * its version, until purged.
   */
  revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean>;

  /** Marks all records of an account that are not revoked. Resolves to how many. */
  revokeAll(account: string, at: Date): Promise<number>;

  /**
   * Removes at most `limit` records that expired or were revoked before `before`. Resolves to how
   * many; fewer than `limit` means that none are left.
   */
  purge(before: Date, limit: number): Promise<number>;

  /** Answers without I/O worth waiting for, so that its promises need no deadline. */
  readonly local?: boolean;

  /** Releases what the store itself opened. */
  close?(): Promise<void>;
}
