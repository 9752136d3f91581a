// How many random cases a law is tried with: few on each push, many in the long lane and every night.
const RUNS = Number(process.env['LAW_RUNS'] ?? 100);

/**
 * The runs of one law, for `fc.assert`: `LAW_RUNS` of them, which is 100 by default, times a weight, which is
 * below 1 where a case takes long and above 1 where few cases are interesting.
 */
export function runs(weight = 1): { readonly numRuns: number } {
  return { numRuns: Math.ceil(RUNS * weight) };
}
