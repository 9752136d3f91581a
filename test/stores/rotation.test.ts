import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { MAX_LIFETIME_SECONDS } from '../../src/bounds.ts';
import { TokenService } from '../../src/service.ts';
import { manualClock } from '../../src/testing/index.ts';
import { DAY_MS } from '../../src/time/duration.ts';
import { faultsOf, SCHEDULES } from '../service/rotation-schedules.ts';
import { K1, SCOPE } from '../support.ts';
import { ENGINES, opened } from './engine-places.ts';

/** Each schedule makes about a hundred calls to the server. */
const RUNS = Number(process.env['ENGINE_SCHEDULES'] ?? 10);

describe.each(ENGINES)('rotation over $name', ({ isMissing, newPlace }) => {
  const test = it.skipIf(isMissing);

  test(`no schedule of ${RUNS} locks a bearer out or ends a value early`, {
    timeout: 3_600_000,
  }, async () => {
    const store = opened(await newPlace());

    await fc.assert(
      fc.asyncProperty(SCHEDULES, async (schedule) => {
        expect(await faultsOf(store, schedule)).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  test.each([
    ['now', 0, true],
    ['at first use', 0, true],
    ['now', 300, false],
    ['at first use', 300, false],
  ])(
    'that takes effect %s by a clock %d days ahead keeps the old value: %s',
    async (when, days, isKept) => {
      const store = opened(await newPlace());
      const now = Date.now();
      const serviceAt = (instant: number) =>
        new TokenService({
          store,
          keys: [K1],
          prefix: 'acme',
          clock: manualClock(new Date(instant)),
        });
      const right = serviceAt(now);
      const other = serviceAt(now + days * DAY_MS);
      const { id, value } = await right.issue({
        account: 'ada',
        scopes: [SCOPE],
        ttlSeconds: MAX_LIFETIME_SECONDS,
      });
      const isAccepted = (presented: string) => right.allows(presented, { scope: SCOPE });

      const rotated = await other.rotate('ada', id, {
        graceSeconds: 60,
        ...(when === 'now' ? {} : { activate: 'first-use' as const }),
      });
      expect(await other.allows(rotated.value, { scope: SCOPE })).toBe(true);
      // A first use is written in the background.
      await vi.waitFor(async () => expect((await store.find([id]))[0]?.pending).toBeUndefined());

      expect([await isAccepted(value), await isAccepted(rotated.value)]).toEqual([isKept, true]);
    },
  );
});
