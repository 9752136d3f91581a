import type { PageQuery } from '../../ports/token-store.ts';

const EARLIEST_MS = -8_640_000_000_000_000;
const LATEST_MS = Number.MAX_SAFE_INTEGER;

/** A part of a list by expiry, in milliseconds. */
export interface ExpiryRange {
  /** Only what comes after this time and id. */
  readonly after: { readonly at: number; readonly id: string };
  /** Only what expires then or earlier. */
  readonly until: number;
}

/**
 * The part of a list by expiry that a page reads. What has expired comes before all that has not, so that an
 * index need not know which is which: a page of the one ends, or of the other begins, at the instant of the call.
 */
export function expiryRange({ after, liveAt, state = 'active' }: PageQuery): ExpiryRange {
  const now = liveAt.getTime();
  const from = { at: after?.at.getTime() ?? EARLIEST_MS, id: after?.id ?? '' };
  if (state === 'expired') return { after: from, until: now };
  const isAnyTime = state === 'revoked' || state === 'all' || from.at > now;
  return { after: isAnyTime ? from : { at: now + 1, id: '' }, until: LATEST_MS };
}
