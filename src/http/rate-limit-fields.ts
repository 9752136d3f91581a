import type { TokenLimits } from '../token.ts';

/** A rate whose window is used up. */
export interface SpentRate {
  readonly rate: NonNullable<TokenLimits['rate']>;
  /** Until the next window begins. */
  readonly retryAfterSeconds: number;
}

/** The largest integer of a structured field (RFC 9651 section 3.3.1). */
const MAX_INTEGER = 999_999_999_999_999;

/**
 * The headers that say when to come back: `Retry-After` (RFC 9110 section 10.2.3), and the fields of
 * draft-ietf-httpapi-ratelimit-headers, as revision 10 has them.
 */
export function rateLimitHeaders({ rate, retryAfterSeconds }: SpentRate): Record<string, string> {
  const quota = Math.min(rate.uses, MAX_INTEGER);
  return {
    'retry-after': String(retryAfterSeconds),
    'ratelimit-policy': `"token";q=${quota};w=${rate.seconds}`,
    ratelimit: `"token";r=0;t=${retryAfterSeconds}`,
  };
}
