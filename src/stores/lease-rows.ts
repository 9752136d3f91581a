import { TokenError } from '../errors.ts';
import type { LeaseWant, UnspentLease } from '../lease-store.ts';

/*
 * What the lease stores of databases have in common. A limit has a row for its total, or two for the
 * windows of a rate: the next window takes the row of the one before the last, which must have ended by
 * the clock of the database. So there is never more to keep, and a process whose clock is ahead by more
 * than a window gets nothing.
 */

/** A want as the row that it makes or changes. */
export interface LeaseRow {
  readonly key: string;
  /** Which row of the key. */
  readonly slot: number;
  readonly window: number;
  /** What it grants of a new row. */
  readonly first: number;
  readonly limit: number;
  /** In milliseconds. */
  readonly until: number;
}

/** The bytes of a key. */
export const MAX_LEASE_KEY = 64;
const KEY = /^[!-~ ]{1,64}$/;

const TOTAL_SLOT = 0;

/** @throws {TokenError} `invalid_request` */
export function leaseRow({ key, window, limit, want, until }: LeaseWant): LeaseRow {
  const numbers = [window, limit, want, until.getTime()];
  if (!KEY.test(key)) {
    throw new TokenError('invalid_request', 'the key of a lease must be 1 to 64 bytes of ASCII');
  }
  if (!numbers.every((number) => Number.isSafeInteger(number) && number >= 0)) {
    throw new TokenError(
      'invalid_request',
      'the numbers and times of a lease must be whole numbers, 0 or more',
    );
  }
  const first = Math.min(want, limit);
  return { key, slot: slotOf(window), window, first, limit, until: until.getTime() };
}

/** Neighboring windows have rows of their own. */
export function slotOf(window: number): number {
  return window === 0 ? TOTAL_SLOT : 1 + (window % 2);
}

/** One after the other, lists in which each row is once: a statement must not change a row twice. */
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

/** What is given back, each key and window once. */
export function summedLeases(leases: readonly UnspentLease[]): UnspentLease[] {
  const sums = new Map<string, UnspentLease>();
  for (const { key, window, amount } of leases) {
    const name = `${window} ${key}`;
    const sum = (sums.get(name)?.amount ?? 0) + amount;
    sums.set(name, { key, window, amount: Math.min(sum, Number.MAX_SAFE_INTEGER) });
  }
  return [...sums.values()];
}
