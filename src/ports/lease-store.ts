import type { DoctorOptions, StoreFinding } from './token-store.ts';

/** Uses of one limit that a process asks for. */
export interface LeaseWant {
  /** The limit that counts them: 1 to 64 bytes of printable ASCII. Compared byte by byte. */
  readonly key: string;
  /**
   * The number of the window of a rate; 0 for a total. Each window has a count of its own. The numbers of
   * later windows are larger.
   */
  readonly window: number;
  /**
   * How many uses all processes together may have, in this window: from 1 to 2^53 - 1. It may differ from
   * that of earlier calls: the store counts the uses that it has granted, and compares the count with
   * this.
   */
  readonly limit: number;
  /** How many to grant at most: 0 or more. With 0, the call only moves `until`. */
  readonly want: number;
  /**
   * The end of the window, or of the total: from then on nothing is granted, and the count may be
   * forgotten. If calls differ, the latest one applies.
   */
  readonly until: Date;
  /** When the window of a rate begins: before, nothing is granted. Absent for a total. */
  readonly start?: Date | undefined;
}

/** Uses that were granted and not spent. */
export interface UnspentLease {
  /** The key of the {@link LeaseWant}. */
  readonly key: string;
  /** The window of the {@link LeaseWant}. */
  readonly window: number;
  /** How many: 1 or more, and no more than were granted and not yet given back. */
  readonly amount: number;
}

/**
 * Counts how many uses of limited tokens were granted to processes. What it promises:
 *
 * - The uses granted of one key and window, minus those given back, are never more than the `limit` of the
 *   call that granted them, with any number of processes at the same time. Each want of a call is a step
 *   of its own.
 * - Each key and each window has a count of its own.
 * - Its own clock decides whether `start` and `until` have come, such as that of a database server. A process
 *   whose clock is late gets nothing of a window that has ended, and one whose clock is fast gets nothing of a
 *   window that has not begun: it would spend it before all others reach it.
 * - If wants have their `start`, it never refuses the current window because it has granted others.
 * - Granted uses stay granted, even if the server or the process ends. A store that cannot be sure of that
 *   rejects.
 *
 * `leaseContract` of `tokenwright/testing` checks this for any store.
 */
export interface LeaseStore {
  /**
   * Grants uses, in one round trip. The answer has one number for each want, in that order, from 0 to
   * `want`: as many as are left, but never more than was asked for. The same key and window may come
   * twice.
   *
   * @throws {TokenError} `store_unavailable`: none, some or all may have been granted, and are lost
   */
  take(wants: readonly LeaseWant[]): Promise<readonly number[]>;

  /**
   * Makes granted uses available to others again. The store cannot tell one lease from another: giving one
   * back twice would make more available than the limit, so a call whose outcome is unknown must not be
   * repeated. Ignores unknown keys and windows, and uses beyond those that were granted.
   *
   * @throws {TokenError} `store_unavailable`
   */
  giveBack(leases: readonly UnspentLease[]): Promise<void>;

  /**
   * Forgets at most `limit` counts whose `until` is earlier than `before`, which must be at least a minute
   * ago, and has come by the clock of the store: a process whose clock is fast must not make uses available
   * again. Resolves to how many; fewer than `limit` means that none are left. A store that forgets by
   * itself may always resolve to 0.
   *
   * @throws {TokenError} `store_unavailable`
   */
  purge(before: Date, limit: number): Promise<number>;

  /**
   * Looks for faults that an operator can repair: a table that is missing, has another version or lacks an
   * index, and counts that nobody purges. Optional.
   *
   * @throws {TokenError} `store_unavailable`
   */
  doctor?(options?: DoctorOptions): Promise<StoreFinding[]>;

  /**
   * Releases what the store itself opened; a client or handle that the host passed in stays open.
   *
   * @throws {TokenError} `store_unavailable`
   */
  close?(): Promise<void>;
}
