import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryTokenStore } from '../../src/stores/memory.ts';
import { faultsOf, forgettingAncestors, SCHEDULES, type Schedule } from './lineage-schedules.ts';

/** More with SCHEDULES=…, as `npm run test:nightly` does. */
const RUNS = Number(process.env['SCHEDULES'] ?? 300);

describe('derived tokens', () => {
  it(`never outlive or exceed an ancestor, in ${RUNS} schedules`, {
    timeout: 3_600_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(SCHEDULES, async (schedule) => {
        expect(await faultsOf(new MemoryTokenStore(), schedule)).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  it('would be caught (the control: a verify that knows no ancestors)', async () => {
    const run = (schedule: Schedule) =>
      faultsOf(forgettingAncestors(new MemoryTokenStore()), schedule);
    const law = fc.asyncProperty(SCHEDULES, async (schedule) => {
      expect(await run(schedule)).toEqual([]);
    });

    const { failed, counterexample } = await fc.check(law, { numRuns: RUNS });

    expect(failed).toBe(true);
    expect(await run(counterexample?.[0] ?? [])).toContain('a token was accepted wrongly');
  });
});
