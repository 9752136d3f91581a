import { MAX_LIFETIME_SECONDS } from '../bounds.ts';
import type { TokenId, TokenRecord } from '../token.ts';

/** The number of the window of a rate that an instant is in. Windows are counted from 1970. */
export function windowOf(now: number, seconds: number): number {
  return Math.floor(now / (seconds * 1000));
}

/** When a window begins, in milliseconds since 1970. */
export function windowStart(window: number, seconds: number): number {
  return window * seconds * 1000;
}

/** The name by which a store counts all uses of a token. */
export function totalKey(id: TokenId): string {
  return `${id}/uses`;
}

/** The name by which a store counts the uses of a token in windows of one length. */
export function rateKey(id: TokenId, seconds: number): string {
  return `${id}/rate/${seconds}`;
}

/**
 * From when on a store may forget how often a token was used in total: it must not be before the token's
 * end, also if that is put off before the next use.
 */
export function endOfTotal({ expiresAt }: Pick<TokenRecord, 'expiresAt'>): number {
  return expiresAt.getTime() + MAX_LIFETIME_SECONDS * 1000;
}
