import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { faultsOf, SCHEDULES } from '../service/rotation-schedules.ts';
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
});
