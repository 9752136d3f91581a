/** Makes what is measured for one size; making it is not measured. */
export type Surface = (size: number) => () => unknown;

/** A slope below this is linear; a quadratic one is near 2. */
export const NEAR_LINEAR = 1.2;
/**
 * A slope below this sorts (1.13 by itself from 500 to 4 000) and fills memory that grows past the
 * caches: merely to touch 100 000 scopes costs seven times as much a scope as to touch 10 000. A
 * quadratic one is near 2.
 */
export const SORTED = 1.4;
/** A slope below this does not grow. */
export const FLAT = 0.3;

const ATTEMPTS = 8;
const ROUNDS = 2;
const ROUND_MS = 1;
const WARM_UP_MS = 3;

/**
 * The slope of cost against size, both as logarithms: 1 is linear, 2 quadratic, 0 flat. Costs are
 * the least of all rounds, since a busy machine only ever adds; rounds go on while they might yet
 * bring the slope below the limit.
 */
export function slopeOf(surface: Surface, sizes: readonly number[], limit: number): number {
  const runs = sizes.map((size) => {
    const run = surface(size);
    return { size, run, count: countOf(run), least: Infinity };
  });
  let slope = Infinity;
  for (let attempt = 0; attempt < ATTEMPTS && slope >= limit; attempt++) {
    for (let round = 0; round < ROUNDS; round++) {
      for (const one of runs) {
        one.least = Math.min(one.least, timeOf(one.run, one.count) / one.count);
      }
    }
    slope = medianSlope(runs.map(({ size, least }) => [Math.log(size), Math.log(least)]));
  }
  return slope;
}

/** How many calls fill a round, found by calling: code that is still cold would hide a slope. */
function countOf(run: () => unknown): number {
  const start = performance.now();
  let calls = 0;
  do {
    kept = run();
    calls += 1;
  } while (performance.now() - start < WARM_UP_MS);
  return Math.max(1, Math.ceil((calls * ROUND_MS) / (performance.now() - start)));
}

/** What was measured last, kept so that no call is left out as useless. @public */
export let kept: unknown;

function timeOf(run: () => unknown, count: number): number {
  const start = performance.now();
  for (let i = 0; i < count; i++) kept = run();
  return performance.now() - start;
}

/** The median of the slopes between any two points; a step at one place does not move it. */
function medianSlope(points: readonly (readonly [number, number])[]): number {
  const slopes = points.flatMap(([x, y], place) =>
    points.slice(place + 1).map(([laterX, laterY]) => (laterY - y) / (laterX - x)),
  );
  return slopes.sort((a, b) => a - b)[Math.floor((slopes.length - 1) / 2)] as number;
}
