import { TokenError } from '../../errors.ts';
import type { LeaseWant, UnspentLease } from '../../ports/lease-store.ts';

/*
 * The rows in which the lease stores of databases count. A total has one row, and a rate has two, for odd
 * and for even windows. A window replaces an earlier one in its row once that has ended by the clock of
 * the database, so the table does not grow with time. A window gets nothing before it has begun by that
 * clock: a process whose clock is fast would take the row of an earlier window, or spend uses of a window
 * that all others have yet to reach.
 */

/** A want as the row that it inserts or updates. */
export interface LeaseRow {
  readonly key: string;
  /** Which row of the key. */
  readonly slot: number;
  readonly window: number;
  /** How many uses to grant at most. Never more than the limit, so a new row can grant all of them. */
  readonly wanted: number;
  readonly limit: number;
  /** From when on uses of it may be granted, in milliseconds. */
  readonly from: number;
  /** Until when, in milliseconds. */
  readonly until: number;
}

/** The most bytes of a key. */
export const MAX_LEASE_KEY = 64;
const KEY = /^[!-~ ]{1,64}$/;

const TOTAL_SLOT = 0;

/** @throws {TokenError} `invalid_request` */
export function leaseRow(lease: LeaseWant): LeaseRow {
  const { key, window, limit, want } = lease;
  const until = lease.until.getTime();
  const from = lease.start?.getTime() ?? 0;
  const numbers = [window, limit, want, until, from];
  if (!KEY.test(key)) {
    throw new TokenError('invalid_request', 'the key of a lease must be 1 to 64 bytes of ASCII');
  }
  if (!numbers.every((number) => Number.isSafeInteger(number) && number >= 0)) {
    throw new TokenError(
      'invalid_request',
      'the numbers and times of a lease must be whole numbers, 0 or more',
    );
  }
  const wanted = Math.min(want, limit);
  return { key, slot: slotOf(window), window, wanted, limit, from, until };
}

/** Neighboring windows have rows of their own. */
export function slotOf(window: number): number {
  return window === 0 ? TOTAL_SLOT : 1 + (window % 2);
}

/**
 * Splits rows into rounds, to be run one after the other. A round has each row once at most, because a
 * statement must not change a row twice.
 */
export function roundsOf<Row extends Pick<LeaseRow, 'key' | 'slot'>>(
  rows: readonly Row[],
): (readonly (readonly [row: Row, index: number])[])[] {
  const rounds: [Row, number][][] = [];
  const counts = new Map<string, number>();
  for (const [index, row] of rows.entries()) {
    const name = `${row.slot} ${row.key}`;
    const round = counts.get(name) ?? 0;
    counts.set(name, round + 1);
    rounds[round] ??= [];
    rounds[round].push([row, index]);
  }
  return rounds;
}

/** Sums up leases, so that each key and window comes once. */
export function summedLeases(leases: readonly UnspentLease[]): UnspentLease[] {
  const sums = new Map<string, UnspentLease>();
  for (const { key, window, amount } of leases) {
    const name = `${window} ${key}`;
    const sum = (sums.get(name)?.amount ?? 0) + amount;
    sums.set(name, { key, window, amount: Math.min(sum, Number.MAX_SAFE_INTEGER) });
  }
  return [...sums.values()];
}
