import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryTokenStore } from '../../src/stores/memory.ts';
import { faultsOf, forgettingAncestors, SCHEDULES } from './lineage-schedules.ts';

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
    const law = fc.asyncProperty(SCHEDULES, async (schedule) => {
      const faults = await faultsOf(forgettingAncestors(new MemoryTokenStore()), schedule);
      expect(faults).not.toContain('a token was accepted wrongly');
    });

    expect((await fc.check(law, { numRuns: RUNS })).failed).toBe(true);
  });
});
