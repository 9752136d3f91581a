import { type StoreFailure, TokenError } from '../errors.ts';
import type { LeaseStore } from '../ports/lease-store.ts';
import type { StoreHealth } from '../ports/store-health.ts';
import type { TokenLimits, TokenRecord } from '../token/record.ts';
import { type AddressFault, CompiledBlocks } from './blocks.ts';
import { CheckedLeaseStore } from './checked-lease-store.ts';
import { Leases, type LimitHit } from './leases.ts';
import { endOfTotal, totalKey } from './windows.ts';

/** Milliseconds for which counts of limits are kept after the last moment at which they matter. @bound */
export const LEASE_KEPT_MS = 3_600_000;

/** What {@link Limits} work with. */
export interface LimitParts {
  /** Absent if this service counts no uses. */
  readonly store: LeaseStore | undefined;
  /** Whether the store is a part of the token store, which closes it. */
  readonly isPart?: boolean | undefined;
  readonly deadlineMs: number;
  /** This instant, in milliseconds since 1970. */
  readonly now: () => number;
  readonly health: StoreHealth;
  /** Makes the error for limits in a record that cannot be read. */
  readonly onCorrupt: () => Error;
}

/** Enforces the limits of tokens: from where they may be used, and how often. */
export class Limits {
  readonly #parts: LimitParts;
  readonly #blocks: CompiledBlocks;
  readonly #store: CheckedLeaseStore | undefined;
  readonly #leases: Leases | undefined;

  constructor(parts: LimitParts) {
    this.#parts = parts;
    this.#blocks = new CompiledBlocks(parts.onCorrupt);
    this.#store = parts.store && new CheckedLeaseStore(parts.store, { ...parts, part: 'leases' });
    this.#leases = this.#store && new Leases({ ...parts, store: this.#store });
  }

  /**
   * Checks the limits of a new token or of a change.
   *
   * @throws {TokenError} `invalid_limits` if they limit uses and this service counts none
   */
  check(limits: TokenLimits | null | undefined): void {
    if (this.#leases !== undefined) return;
    const member = limits?.uses === undefined ? limits?.rate && 'limits.rate' : 'limits.uses';
    if (member === undefined) return;
    throw new TokenError(
      'invalid_limits',
      `${member} needs a service that counts uses: create it with the option limits: true`,
      { member },
    );
  }

  /** Why an address may not use a token that is limited to the `allowed` blocks; `undefined` if it may. */
  refusalOf(allowed: readonly string[], address: string | undefined): AddressFault | undefined {
    return this.#blocks.refusalOf(allowed, address);
  }

  /**
   * Spends one use of each of these tokens, or of none. Returns `undefined` if the store has to be asked
   * first: call {@link spendLater} then.
   *
   * @throws {TokenError} `store_unavailable` if this service counts no uses
   */
  spend(records: readonly TokenRecord[], now: number): true | LimitHit | undefined {
    return this.#requireLeases().spend(records, now);
  }

  /** @throws {TokenError} `store_unavailable`, `store_corrupt` */
  spendLater(records: readonly TokenRecord[]): Promise<true | LimitHit> {
    return this.#requireLeases().spendLater(records);
  }

  /** Removes up to `most` counts that no longer matter, and returns how many. Never rejects. */
  async purgeSome(now: number, most: number): Promise<number> {
    const before = new Date(now - LEASE_KEPT_MS);
    // The failure was emitted as an event, and the next round tries again.
    return (await this.#store?.purge(before, most).catch(() => 0)) ?? 0;
  }

  /**
   * Reports a later expiry of a token to the store, so that it keeps the count of its uses for as long.
   * Never rejects: the store keeps counts a year longer than necessary, and the next use reports the
   * expiry, too.
   */
  async prolong(before: TokenRecord, after: TokenRecord): Promise<void> {
    const isLonger = after.expiresAt > before.expiresAt;
    if (!isLonger || after.limits?.uses === undefined) return;
    const until = new Date(endOfTotal(after));
    const want = { key: totalKey(after.id), window: 0, limit: after.limits.uses, want: 0, until };
    await this.#store?.take([want]).catch(() => {});
  }

  /**
   * Gives back the uses that this process has leased and not spent, and closes a store of its own.
   *
   * @throws {TokenError} `store_unavailable` if the store does not close
   */
  async close(): Promise<void> {
    await this.#leases?.close();
    if (this.#parts.isPart !== true) await this.#store?.close();
  }

  /** A token that another service limited must not be unlimited here. */
  #requireLeases(): Leases {
    if (this.#leases !== undefined) return this.#leases;
    const failure = new TokenError(
      'store_unavailable',
      'this service cannot count the uses of a limited token: create it with the option limits: true',
    ) as StoreFailure;
    this.#parts.health.onFailure(failure);
    throw failure;
  }
}

/** Whether the uses of a token are counted. */
export function isCounted({ limits }: TokenRecord): boolean {
  return limits?.uses !== undefined || limits?.rate !== undefined;
}
