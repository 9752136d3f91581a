import type { TokenLimits } from '../token/record.ts';

/** A rate whose window is used up. */
export interface SpentRate {
  readonly rate: NonNullable<TokenLimits['rate']>;
  /** Until the next window begins. */
  readonly retryAfterSeconds: number;
}

/** The largest integer of a structured field (RFC 9651 section 3.3.1). */
const MAX_INTEGER = 999_999_999_999_999;

/** The name of the policy: a string, since revision 11 allows no token (RFC 9651 section 3.3.4) there. */
const POLICY = '"token"';

/**
 * The headers that say when to come back: `Retry-After` (RFC 9110 section 10.2.3), and the fields of
 * draft-ietf-httpapi-ratelimit-headers, as revision 11 of May 2026 has them. `Retry-After` and `t` are the
 * same instant: section 6 allows no earlier one.
 */
export function rateLimitHeaders({ rate, retryAfterSeconds }: SpentRate): Record<string, string> {
  const quota = Math.min(rate.uses, MAX_INTEGER);
  return {
    'retry-after': String(retryAfterSeconds),
    'ratelimit-policy': `${POLICY};q=${quota};w=${rate.seconds}`,
    ratelimit: `${POLICY};r=0;t=${retryAfterSeconds}`,
  };
}
