import type { TokenStore } from '../../src/ports/token-store.ts';
import { TokenService } from '../../src/service.ts';
import { manualClock } from '../../src/testing/index.ts';
import { K1, SCOPE } from '../support.ts';

const DAY_SECONDS = 86_400;
const DAY_MS = DAY_SECONDS * 1000;
/** Live tokens, each of which ends by a clock that is a year fast before the age of a purge. */
export const TOKENS = 20;

/**
 * Issues tokens by a service whose clock is right, and lets another one, whose clock is a year fast, purge
 * and prune them. Answers with how many it removed, and how many the first one still accepts.
 */
export async function purgeByFastClock(
  store: TokenStore,
): Promise<{ removed: number; left: number }> {
  const options = { store, keys: [K1], prefix: 'acme' };
  const right = new TokenService(options);
  const fastNow = new Date(Date.now() + 365 * DAY_MS);
  const fast = new TokenService({ ...options, clock: manualClock(fastNow) });
  const issuing = Array.from({ length: TOKENS }, (_, index) =>
    right.issue({ account: 'ada', scopes: [SCOPE], ttlSeconds: (index + 1) * 13 * DAY_SECONDS }),
  );
  const issued = await Promise.all(issuing);
  let removed = await fast.purge({ before: new Date(fastNow.getTime() - 90 * DAY_MS) });
  const pruned = await store.prune({ account: 'ada', now: fastNow, limit: 1000 });
  removed += typeof pruned === 'number' ? pruned : pruned.count;
  const verdicts = await Promise.all(
    issued.map(({ value }) => right.verify(value, { scope: SCOPE })),
  );
  await Promise.all([right.close(), fast.close()]);
  return { removed, left: verdicts.filter(({ ok }) => ok).length };
}
