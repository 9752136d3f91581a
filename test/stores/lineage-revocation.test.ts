import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { TokenService } from '../../src/service.ts';
import { manualClock } from '../../src/testing/index.ts';
import { acceptedFromMemory, answersTo, newFamily } from '../service/large-family.ts';
import { withOther } from '../service/lineage-schedules.ts';
import { K1, SCOPE } from '../support.ts';
import { ENGINES, opened } from './engine-places.ts';

/** `DESCENDANTS=10000` tests the documented number. */
const SIZE = Number(process.env['DESCENDANTS'] ?? 1000);
const MAX_STALE_MS = 60_000;
const WITHIN = { timeout: 10_000, interval: 5 };

describe.each(ENGINES)('a revocation over $name', ({ isMissing, newPlace }) => {
  const test = it.skipIf(isMissing);

  test(`ends ${SIZE} descendants on another node when that receives a hint`, {
    timeout: 600_000,
  }, async ({ annotate }) => {
    const { here, there, root, values } = await twoNodes(true);

    const since = performance.now();
    await here.revoke('acme', root.id);
    const revoked = performance.now();
    const [probe] = values as [string];
    await vi.waitFor(
      () => expect(there.verifySync(probe, { scope: SCOPE })?.ok).not.toBe(true),
      WITHIN,
    );
    const hinted = performance.now();
    expect(await answersTo(there, values)).toEqual({ ancestor_revoked: SIZE });
    const took = [revoked - since, hinted - revoked, performance.now() - hinted];
    const [write, hint, refusals] = took.map((ms) => `${ms.toFixed(1)} ms`);
    await annotate(`revoked in ${write}, hint after ${hint}, all refused ${refusals} later`);
  });

  test(`ends ${SIZE} descendants on another node after maxStaleMs without a hint`, {
    timeout: 600_000,
  }, async () => {
    const { here, there, root, values, clock } = await twoNodes(false);
    await here.revoke('acme', root.id);
    expect(acceptedFromMemory(there, values)).toBe(SIZE);

    clock.advance(MAX_STALE_MS / 1000);

    expect(await answersTo(there, values)).toEqual({ ancestor_revoked: SIZE });
  });

  /** One node that issues the tokens, and one with its own store and all of them in its cache. */
  async function twoNodes(hasHints: boolean) {
    const place = await newPlace();
    const clock = manualClock();
    const quotas = { derivedPerRoot: SIZE };
    const common = { keys: [K1], prefix: 'acme', clock, quotas, deadlineMs: 20_000 };
    const here = new TokenService({ ...common, store: opened(place) });
    const store = opened(place);
    const there = new TokenService({
      ...common,
      store: hasHints ? store : withOther(store, { watch: undefined }),
      cache: { maxStaleMs: MAX_STALE_MS, maxEntries: SIZE + 1 },
    });
    onTestFinished(() => there.close());
    const family = await newFamily(here, SIZE);
    expect(await answersTo(there, family.values)).toEqual({ accepted: SIZE });
    // Hints about the new tokens may still arrive and evict them.
    await vi.waitFor(async () => {
      await answersTo(there, family.values);
      expect(acceptedFromMemory(there, family.values)).toBe(SIZE);
    }, WITHIN);
    return { here, there, ...family, clock };
  }
});
