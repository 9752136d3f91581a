import type { TokenId, TokenRecord } from './token.ts';

/** A place in an account's list: after the token with this creation time and id. */
export interface Position {
  /** To the millisecond. */
  readonly createdAt: Date;
  /** Which one, of several of that time. */
  readonly id: TokenId;
}

/** One page of an account's list. */
export interface PageQuery {
  /** Whose records; compared byte by byte. */
  readonly account: string;
  /** Only records that come after this place; from the start when absent. */
  readonly after?: Position | undefined;
  /** At most so many records: 1 or more. */
  readonly limit: number;
  /** Only records whose `expiresAt` is later than this instant. */
  readonly liveAt: Date;
}

/** Ends what was begun; may be called twice. */
export type Unsubscribe = () => Promise<void>;

/** Something that weakens a promise of a store, or that could not be looked at. */
export interface StoreFinding {
  /** A stable name in snake_case, such as `synchronous_commit_off`. */
  readonly code: string;
  /** What is weakened by it, what was found, and what to do, in words. */
  readonly message: string;
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
 *   that is away never answers "no such record". A change that is made but not yet as safe as the
 *   store promises rejects with a `TokenError` `durability_unconfirmed`.
 *
 * `storeContract` of `tokenwright/testing` checks all of this for any store.
 */
export interface TokenStore {
  /**
   * Keeps a new record.
   *
   * @throws {TokenError} `id_taken` when the id exists, revoked or not; `store_unavailable`
   */
  insert(record: TokenRecord): Promise<void>;

  /**
   * Reads records by id in one round trip, revoked ones included. The answer has one place for each
   * id asked, in that order; `undefined` where there is none. An id may be asked twice.
   *
   * @throws {TokenError} `store_unavailable`; `store_corrupt` for what is kept and is no record
   */
  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]>;

  /**
   * Reads a page of an account's records that are not revoked and expire after `liveAt`: newest
   * first by `createdAt`, then by `id` descending (by code unit). By keyset, never by offset: the
   * cost does not depend on how far down the list the page is.
   *
   * @throws {TokenError} `store_unavailable`; `store_corrupt` for what is kept and is no record
   */
  page(query: PageQuery): Promise<TokenRecord[]>;

  /**
   * Puts `next` in the place of the record with its id, only if that one has version
   * `next.version - 1`, the same account, and is not revoked. Resolves to whether it did.
   *
   * @throws {TokenError} `store_unavailable`; `durability_unconfirmed` when it is done, and not yet safe
   */
  replace(next: TokenRecord): Promise<boolean>;

  /**
   * Marks a record as revoked at `at`, only if it belongs to `account`, is not revoked yet, and,
   * where `version` is given, has that version. Resolves to whether it did. The record stays, with
   * its version, until purged.
   *
   * @throws {TokenError} `store_unavailable`; `durability_unconfirmed` when it is done, and not yet safe
   */
  revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean>;

  /**
   * Marks all records of an account that are not revoked. Resolves to how many.
   *
   * @throws {TokenError} `store_unavailable`; `durability_unconfirmed` when it is done, and not yet safe
   */
  revokeAll(account: string, at: Date): Promise<number>;

  /**
   * Removes at most `limit` records that expired or were revoked before `before`. Resolves to how
   * many; fewer than `limit` means that none are left.
   *
   * @throws {TokenError} `store_unavailable`
   */
  purge(before: Date, limit: number): Promise<number>;

  /**
   * Tells of records that change or may have changed, as soon as may be and from whatever process:
   * their ids, or `'all'` when something may have been missed, as after a lost connection, which it
   * restores by itself. Hints only: nothing may depend on them, and they may come twice. Resolves
   * when it listens, to a function that ends it; rejects when it cannot listen yet.
   *
   * @throws {TokenError} `store_unavailable`
   */
  watch?(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe>;

  /**
   * Looks for what weakens its promises in what the host controls, as settings of the server.
   *
   * @throws {TokenError} `store_unavailable`
   */
  doctor?(): Promise<StoreFinding[]>;

  /**
   * Answers without I/O worth waiting for, so that its promises need no deadline and reads are not
   * gathered.
   */
  readonly local?: boolean;

  /**
   * Releases what the store itself opened; a client or handle that the host passed in stays open.
   *
   * @throws {TokenError} `store_unavailable`
   */
  close?(): Promise<void>;
}

/**
 * Looks for what weakens the promises of a store in what the host controls, such as a commit mode
 * or an eviction policy. Nothing found is an empty list, also for a store that looks for nothing.
 *
 * @throws {TokenError} `store_unavailable`
 * @example
 * for (const { message } of await doctor(store)) console.warn(message);
 */
export async function doctor(store: TokenStore): Promise<StoreFinding[]> {
  return (await store.doctor?.()) ?? [];
}
