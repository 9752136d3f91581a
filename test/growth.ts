/** Makes what is measured for one size; making it is not measured. */
export type Surface = (size: number) => () => unknown;

/** A slope below this is linear; a quadratic one is near 2. */
export const NEAR_LINEAR = 1.2;
/** A slope below this sorts, and fills memory that grows past the caches; a quadratic one is near 2. */
export const SORTED = 1.4;
/** A slope below this does not grow. */
export const FLAT = 0.3;

const ATTEMPTS = 12;
const ROUND_MS = 1;

/**
 * The slope of cost against size, both as logarithms: 1 is linear, 2 quadratic, 0 flat. Costs are
 * the least of all rounds, since a busy machine only ever adds, and a step where a cache overflows
 * is no slope; rounds go on while they might yet
 * bring the slope below the limit.
 */
export function slopeOf(surface: Surface, sizes: readonly number[], limit: number): number {
  const runs = sizes.map((size) => ({ size, run: surface(size), count: 1, least: Infinity }));
  let slope = Infinity;
  for (let attempt = 0; attempt < ATTEMPTS && slope >= limit; attempt++) {
    for (let round = 0; round < 2; round++) {
      for (const one of runs) {
        const elapsed = timeOf(one.run, one.count);
        if (elapsed >= ROUND_MS || round > 0) one.least = Math.min(one.least, elapsed / one.count);
        if (elapsed < ROUND_MS) one.count *= Math.ceil(Math.min(100, (1.5 * ROUND_MS) / elapsed));
      }
    }
    slope = medianSlope(runs.map(({ size, least }) => [Math.log(size), Math.log(least)]));
  }
  return slope;
}

/** Kept, so that nothing measured is left out as useless. */
export let kept: unknown;

function timeOf(run: () => unknown, count: number): number {
  const start = performance.now();
  for (let i = 0; i < count; i++) kept = run();
  return performance.now() - start;
}

/** The median of the slopes between any two points, which a step at one place does not move. */
function medianSlope(points: readonly (readonly [number, number])[]): number {
  const slopes = points.flatMap(([x, y], place) =>
    points.slice(place + 1).map(([laterX, laterY]) => (laterY - y) / (laterX - x)),
  );
  return slopes.sort((a, b) => a - b)[Math.floor((slopes.length - 1) / 2)] as number;
}
