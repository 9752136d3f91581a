import type { TokenError } from '../errors.ts';
import type { ListedState, TokenId, TokenRecord } from '../token/record.ts';

/**
 * The order of an account's list: `created`, newest first, then by `id` descending; or `expire`, soonest first
 * by `expiresAt`, then by `id` ascending. Ids compare by code unit.
 */
export type PageOrder = 'created' | 'expire';

/** A position in an account's list: after the token with this time and id. */
export interface Position {
  /** The time that the list is ordered by, to the millisecond: `createdAt` or `expiresAt`. */
  readonly at: Date;
  /** The token, if several have that time. */
  readonly id: TokenId;
}

/** The position of a record in a list of this order. */
export function positionOf(
  { id, createdAt, expiresAt }: Pick<TokenRecord, 'id' | 'createdAt' | 'expiresAt'>,
  order: PageOrder = 'created',
): Position {
  return { at: order === 'created' ? createdAt : expiresAt, id };
}

/** One page of an account's list. */
export interface PageQuery {
  /** The owner of the records; compared byte by byte. */
  readonly account: string;
  /** The order of the records. Only `created` is asked for together with `parent` or `root`. @default 'created' */
  readonly order?: PageOrder | undefined;
  /** Only records after this position in that order; from the start if absent. */
  readonly after?: Position | undefined;
  /** The most records: 1 or more. */
  readonly limit: number;
  /** The instant of the call: a record whose `expiresAt` is no later has expired. */
  readonly liveAt: Date;
  /**
   * Only records in this state: `revoked` if they have a `revokedAt`; else `expired` if they have expired;
   * else `suspended` if they have a `suspendedAt`; else `active`. With `live`, those that are `active` or
   * `suspended`; with `all`, all of them. @default 'active'
   */
  readonly state?: ListedState | undefined;
  /** Only records that were derived from this token: their last ancestor has this id. */
  readonly parent?: TokenId | undefined;
  /** Only records that were derived from this root, at any depth: their first ancestor has this id. */
  readonly root?: TokenId | undefined;
  /**
   * Lets the store end the page early: at the record with which `scopes` and `requested` of all its
   * records, as JSON, reach this many bytes. A page of fewer than `limit` records is the last one only
   * if it holds fewer bytes than that. A store may ignore this.
   */
  readonly maxBytes?: number | undefined;
}

/**
 * The records that share a quota: those of an account that were not derived, or with a `root`, those that
 * were derived from it at any depth.
 */
export interface QuotaHolder {
  /** The owner of the records; compared byte by byte. */
  readonly account: string;
  /** The first ancestor of the records; they have none if absent. */
  readonly root?: TokenId | undefined;
}

/** Which records are counted, and how far. */
export interface CountQuery extends QuotaHolder {
  /** The instant of the call: a record whose `expiresAt` is no later has ended. */
  readonly liveAt: Date;
  /** The counts end at these numbers, so that a count never costs more than a quota: 1 or more each. */
  readonly most: TokenCounts;
}

/** How many records a holder of a quota has. */
export interface TokenCounts {
  /** Neither revoked nor expired. */
  readonly live: number;
  /** Revoked or expired, and not purged yet. */
  readonly ended: number;
}

/** Which records are purged. A record ends when it expires or is revoked, whichever is first. */
export interface PurgeQuery {
  /**
   * The instant of the call. A store with a clock of its own, such as that of a database server, takes its
   * own time instead if that is earlier: a process whose clock is fast must not remove live tokens.
   */
  readonly now: Date;
  /** Only records that ended more than this long before `now`, in milliseconds: 0 or more. */
  readonly minAgeMs: number;
  /** The most records: 1 or more. */
  readonly limit: number;
}

/** Which ended records of one holder of a quota are purged early. */
export interface PruneQuery extends QuotaHolder {
  /** As of a {@link PurgeQuery}: the earlier of this and the store's own time decides what has ended. */
  readonly now: Date;
  /** The most records: 1 or more. */
  readonly limit: number;
}

/** One step of a pass over all records. */
export interface ScanQuery {
  /** The `next` of the step before; from the start if absent. */
  readonly after?: string | undefined;
  /** The most records: 1 or more. */
  readonly limit: number;
}

/** The records of one step of a pass over all records. */
export interface ScannedRecords {
  /** Can be empty although there is a `next`. */
  readonly records: TokenRecord[];
  /** Where the next step goes on; absent after the last one. Only the store that made it can read it. */
  readonly next?: string | undefined;
}

/** The records that a purge removed. */
export interface PurgedRecords {
  /** How many records this call removed. */
  readonly count: number;
  /** Their ids; also those of records that another call has removed meanwhile, but of no other record. */
  readonly ids: readonly TokenId[];
}

/** Stops listening; may be called twice. */
export type Unsubscribe = () => Promise<void>;

/** Something that weakens a promise of a store, or that could not be checked. */
export interface StoreFinding {
  /** A stable name in snake_case, such as `synchronous_commit_off`. */
  readonly code: string;
  /** What was found, which promise it weakens, and what to do. */
  readonly message: string;
  /** The part of the store that it is about; absent for the tokens. */
  readonly part?: 'usage' | 'leases' | 'requests';
}

/** How thoroughly {@link doctor} looks. */
export interface DoctorOptions {
  /**
   * Also runs slow checks, such as reading a whole SQLite file for damage, and reports the risks of a
   * Redis Cluster that no setting removes. Not for a process that answers calls. @default false
   */
  readonly full?: boolean | undefined;
}

/**
 * Stores token records. A few methods, absolute times, plain data.
 *
 * A store holds no rules: it never judges an expiry, parses a scope or sees a secret. What it promises:
 *
 * - Each method is one step: it happens completely or not at all, also with many concurrent callers.
 * - Ids and accounts are compared byte by byte: case, trailing space, accent and normal form count.
 * - It stores copies and returns copies. Times keep their milliseconds.
 * - A promise that resolves means that the change is stored. If the outcome is unknown, it rejects: a
 *   store that is down never answers "no such record". A change that was made, but is not yet as durable
 *   as the store promises, rejects with a `TokenError` `durability_unconfirmed`.
 *
 * `storeContract` of `tokenwright/testing` checks all of this for any store.
 */
export interface TokenStore {
  /**
   * Stores a new record.
   *
   * @throws {TokenError} `id_taken` if the id exists, revoked or not; `store_unavailable`
   */
  insert(record: TokenRecord): Promise<void>;

  /**
   * Counts the live and the ended records of a holder of a quota, each up to `most`. The service asks
   * rarely: far from a quota it trusts the last count.
   *
   * @throws {TokenError} `store_unavailable`
   */
  count(query: CountQuery): Promise<TokenCounts>;

  /**
   * Reads records by id in one round trip, including revoked ones. The answer has one element for each
   * id, in that order, `undefined` if there is no such record. The same id may come twice.
   *
   * @throws {TokenError} `store_unavailable`; `store_corrupt` if something else than a record is stored
   */
  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]>;

  /**
   * Reads a page of an account's records in one state or in several, in the order that is asked for. By
   * keyset, never by offset: the cost does not depend on how far down the list the page is.
   *
   * @throws {TokenError} `store_unavailable`; `store_corrupt` if something else than a record is stored
   */
  page(query: PageQuery): Promise<TokenRecord[]>;

  /**
   * Replaces the record with the id of `next`, only if it has `version`, by default `next.version - 1`,
   * and the same account, and is not revoked. Resolves to whether it did.
   *
   * @throws {TokenError} `store_unavailable`; `durability_unconfirmed` if it did, but not yet durably
   */
  replace(next: TokenRecord, version?: number): Promise<boolean>;

  /**
   * Marks a record as revoked at `at`, only if it belongs to `account`, is not revoked yet, and has
   * `version` if that is given. Resolves to whether it did. The record stays, with its version, until it
   * is purged, but loses what costs space and is not needed any more, in the same step: `scopes` (which
   * become empty), `metadata`, `box`, the `box` of `pending`, and the members of `requested` with which
   * its JSON would be longer than 1024 bytes. All else stays, so that refusals keep their reasons.
   *
   * @throws {TokenError} `store_unavailable`; `durability_unconfirmed` if it did, but not yet durably
   */
  revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean>;

  /**
   * Marks at most `limit` records of an account that are not revoked. Resolves to how many; fewer than
   * `limit` means that none are left. The next call goes on where this one ended: its cost must not
   * grow with the records that earlier calls have marked. The records lose the same as by `revoke`.
   *
   * @throws {TokenError} `store_unavailable`; `durability_unconfirmed` if it did, but not yet durably
   */
  revokeAll(account: string, at: Date, limit: number): Promise<number>;

  /**
   * Removes at most `limit` records that ended long enough ago, by the clock of the caller and by that of
   * the store if it has one. Resolves to how many; fewer than `limit` means that none are left. A store
   * that also tells their ids has their usage removed by the service.
   *
   * @throws {TokenError} `store_unavailable`
   */
  purge(query: PurgeQuery): Promise<number | PurgedRecords>;

  /**
   * Removes at most `limit` ended records of one holder of a quota, those that ended or were created first,
   * however recent their end is. Keeps a revoked record with a `format`: it is the tombstone that
   * stops a repeated import from reviving the token. Resolves as `purge`.
   *
   * @throws {TokenError} `store_unavailable`
   */
  prune(query: PruneQuery): Promise<number | PurgedRecords>;

  /**
   * Whether it is this instant or later, as far as the store knows. A store with a clock of its own, such
   * as that of a database server, answers by it. Another one looks for a record that was created or rotated
   * at `instant` or later, and before `before` if that is given: later ones prove nothing, because the
   * caller may have written them itself. The service asks before it purges in the background, so that a
   * process whose clock is fast destroys nothing.
   *
   * Optional: without it, the service believes its own clock.
   *
   * @throws {TokenError} `store_unavailable`
   */
  hasReached?(instant: Date, before?: Date): Promise<boolean>;

  /**
   * Reads all records of all accounts step by step, also revoked and expired ones, for upkeep such as
   * copying and counting. A pass returns each record that exists from its first step to its last at least
   * once; one that is added or removed meanwhile may be missing. The order is the store's own.
   *
   * Optional: without it, a store cannot be copied or reviewed as a whole.
   *
   * @throws {TokenError} `store_unavailable`; `store_corrupt` if something else than a record is stored
   */
  scan?(query: ScanQuery): Promise<ScannedRecords>;

  /**
   * Reports records that have or may have changed, by any process, as soon as possible: their ids, or
   * `'all'` if a change may have been missed, for example after a lost connection, which the store
   * restores itself. These are hints: nothing may depend on them, and one may come twice. Resolves when
   * the store knows that reports reach it, to a function that stops it. Rejects if it cannot listen yet, and
   * if reports get lost, with the reason `pooler`: the service asks again every minute then.
   *
   * A store that finds out later that reports get lost calls `onTrouble` with the failure, tries again by
   * itself, and calls it with `undefined` once they arrive again. Errors that these functions throw are ignored.
   *
   * @throws {TokenError} `store_unavailable`
   */
  watch?(
    onChange: (ids: readonly TokenId[] | 'all') => void,
    onTrouble?: (failure: TokenError | undefined) => void,
  ): Promise<Unsubscribe>;

  /**
   * Looks for things under the host's control that weaken its promises, such as settings of the server.
   *
   * @throws {TokenError} `store_unavailable`
   */
  doctor?(options?: DoctorOptions): Promise<StoreFinding[]>;

  /**
   * Answers without waiting for I/O: its calls need no deadline, and its reads are not batched.
   */
  readonly local?: boolean;

  /**
   * Returns the store in a transaction of the host, on its connection: see {@link TokenService.in}. Counts
   * stay outside, so that a rollback gives no use back. It has no `watch`, `doctor` and `close`. Optional.
   *
   * @throws {TokenError} `invalid_options` if it is not a connection that the store can use
   */
  in?(connection: object): TokenStore;

  /**
   * Its calls run in a transaction of the host, which may end any time: the service writes nothing to it
   * in the background.
   */
  readonly inTransaction?: boolean;

  /**
   * Releases what the store itself opened; a client or handle that the host passed in stays open.
   *
   * @throws {TokenError} `store_unavailable`
   */
  close?(): Promise<void>;
}

/**
 * Looks for things under the host's control that weaken the promises of a store of tokens or of leases,
 * such as a commit mode, an eviction policy or a missing index. Returns an empty list if it finds nothing,
 * or if the store has no doctor.
 *
 * @throws {TokenError} `store_unavailable`
 * @example
 * for (const { message } of await doctor(store)) console.warn(message);
 */
export async function doctor(
  store: Pick<TokenStore, 'doctor'> & Readonly<Record<'purge', unknown>>,
  options: DoctorOptions = {},
): Promise<StoreFinding[]> {
  return (await store.doctor?.(options)) ?? [];
}
