import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { runs } from '../laws.ts';
import {
  faultsOf,
  forgettingAncestors,
  inMemory,
  SCHEDULES,
  type StartProcess,
} from './lineage-schedules.ts';

const CONTROL_RUNS = 100;

/** The distinct faults in a fixed sample of schedules, which ends once it has shown those expected. */
async function faultsIn(start: () => StartProcess, expected: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  for (const schedule of fc.sample(SCHEDULES, { numRuns: CONTROL_RUNS, seed: 7 })) {
    for (const fault of await faultsOf(schedule, start())) found.add(fault);
    if (expected.every((fault) => found.has(fault))) break;
  }
  return [...found];
}

describe('derived tokens', () => {
  it('never outlive or exceed an ancestor, in random schedules', async () => {
    await fc.assert(
      fc.asyncProperty(SCHEDULES, async (schedule) => {
        expect(await faultsOf(schedule, inMemory(new MemoryTokenStore()))).toEqual([]);
      }),
      runs(0.2),
    );
  });

  it('would be caught if verification ignored their ancestors (the control)', async () => {
    const expected = [
      'a token was accepted wrongly',
      'a token outlived or exceeded an ancestor',
      'a token was used more often than an ancestor allows',
      'a token was shown as more than its ancestor is',
      'a token that had ended was derived from',
      'a token that had ended was introspected as active',
      'a token was explained wrongly',
    ];
    const start = () => inMemory(forgettingAncestors(new MemoryTokenStore()));

    expect(await faultsIn(start, expected)).toEqual(expect.arrayContaining(expected));
  });

  it('would be caught if a cache kept ancestors for too long (the control)', async () => {
    const start = (): StartProcess => {
      const startOne = inMemory(new MemoryTokenStore());
      return (index, { maxStaleMs, clock }) =>
        startOne(index, { maxStaleMs: maxStaleMs * 3, clock });
    };

    const expected = ['a token outlived or exceeded an ancestor'];

    expect(await faultsIn(start, expected)).toEqual(expected);
  });
});
