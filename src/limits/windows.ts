import { MAX_LIFETIME_SECONDS } from '../bounds.ts';
import type { TokenId, TokenRecord } from '../token/record.ts';

/** The number of the window that contains an instant. Windows are counted from 1970. */
export function windowOf(now: number, seconds: number): number {
  return Math.floor(now / (seconds * 1000));
}

/** When a window begins, in milliseconds since 1970. */
export function windowStart(window: number, seconds: number): number {
  return window * seconds * 1000;
}

/** The key under which a store counts all uses of a token. */
export function totalKey(id: TokenId): string {
  return `${id}/uses`;
}

/** The key under which a store counts the uses of a token in windows of one length. */
export function rateKey(id: TokenId, seconds: number): string {
  return `${id}/rate/${seconds}`;
}

/**
 * When a store may forget how often a token was used in total: the longest lifetime after its expiry,
 * because the expiry may be extended by as much before the next use.
 */
export function endOfTotal({ expiresAt }: Pick<TokenRecord, 'expiresAt'>): number {
  return expiresAt.getTime() + MAX_LIFETIME_SECONDS * 1000;
}
