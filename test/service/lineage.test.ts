import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import {
  faultsOf,
  forgettingAncestors,
  inMemory,
  SCHEDULES,
  type StartProcess,
} from './lineage-schedules.ts';

/** More with SCHEDULES=…, as `npm run test:nightly` does. */
const RUNS = Number(process.env['SCHEDULES'] ?? 200);
const CONTROL_RUNS = 100;

/** The distinct faults in a fixed sample of schedules. */
async function faultsIn(start: () => StartProcess): Promise<string[]> {
  const found = new Set<string>();
  for (const schedule of fc.sample(SCHEDULES, { numRuns: CONTROL_RUNS, seed: 7 })) {
    for (const fault of await faultsOf(schedule, start())) found.add(fault);
  }
  return [...found];
}

describe('derived tokens', () => {
  it(`never outlive or exceed an ancestor, in ${RUNS} random schedules`, {
    timeout: 3_600_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(SCHEDULES, async (schedule) => {
        expect(await faultsOf(schedule, inMemory(new MemoryTokenStore()))).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  it('would be caught if verification ignored their ancestors (the control)', async () => {
    const faults = await faultsIn(() => inMemory(forgettingAncestors(new MemoryTokenStore())));

    expect(faults).toEqual(
      expect.arrayContaining([
        'a token was accepted wrongly',
        'a token outlived or exceeded an ancestor',
        'a token was used more often than an ancestor allows',
        'a token was shown as more than its ancestor is',
        'a token that had ended was derived from',
        'a token that had ended was introspected as active',
        'a token was explained wrongly',
      ]),
    );
  });

  it('would be caught if a cache kept ancestors for too long (the control)', async () => {
    const faults = await faultsIn(() => {
      const start = inMemory(new MemoryTokenStore());
      return (index, { maxStaleMs, clock }) => start(index, { maxStaleMs: maxStaleMs * 3, clock });
    });

    expect(faults).toEqual(['a token outlived or exceeded an ancestor']);
  });
});
