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

/** No call may keep others waiting for longer than the reference work takes. */
export const MAX_HOLD = 1;

/** So many times at least: code that is still cold hides a slope. */
const ATTEMPTS = 3;
/** How long to go on while a slope or a hold is over its limit: a machine may be busy for seconds. */
const PATIENCE_MS = 20_000;
const ROUNDS = 2;
const ROUND_MS = 1;
const WARM_UP_MS = 3;
const CALLS_MS = 5;

/**
 * Starts to measure time: the milliseconds in which this process worked. The clock counts the time of
 * other processes as well, and the processor counts all threads of this one, so the lesser is taken.
 */
export function stopwatch(): () => number {
  const start = performance.now();
  const { user, system } = process.cpuUsage();
  return () => {
    const used = process.cpuUsage();
    const ms = performance.now() - start;
    return Math.min(ms, (used.user - user + used.system - system) / 1000);
  };
}

const textsOf = (size: number): string[] =>
  Array.from({ length: size }, (_, i) => `GET:api${i % 4}.example.com/items/r${i}`);
const TEXTS = textsOf(4096);
const PASSES = 10;
/** While the work is cold it takes longer, so what is compared with it would seem to take less. */
const WARM_UPS = 80;
let warmUps = 0;

/**
 * How long a fixed piece of work takes here and now, in milliseconds. It is as long as a call may hold
 * the event loop, and it does what such a call does. On the machine on which the limits were chosen it
 * takes 50 ms.
 */
export function referenceMs(): number {
  return timeOf(linearWork(TEXTS), PASSES);
}

/** Takes texts apart, keeps, writes and reads them: as much for each of them, however many there are. */
function linearWork(texts: readonly string[]): () => unknown {
  const run = () => {
    const byPath = new Map<string, string[]>();
    for (const text of texts) byPath.set(text.slice(text.indexOf('/')), text.split(/[:./]/));
    return JSON.parse(JSON.stringify([...byPath]));
  };
  for (; warmUps < WARM_UPS; warmUps++) kept = run();
  return run;
}

/**
 * The slope of cost against size, both as logarithms: 1 is linear, 2 quadratic, 0 flat. Costs are
 * the least of all rounds, since a busy machine only ever adds; rounds go on while they might yet
 * bring the slope below the limit.
 */
export function slopeOf(surface: Surface, sizes: readonly number[], limit?: number): number {
  const runs = sizes.map((size) => {
    const run = surface(size);
    return { size, run, count: countOf(run), least: Infinity };
  });
  let slope = Infinity;
  const goesOn = attempts(limit);
  while (goesOn(slope)) {
    for (let round = 0; round < ROUNDS; round++) {
      for (const one of runs) {
        one.least = Math.min(one.least, timeOf(one.run, one.count) / one.count);
      }
    }
    slope = slopeThrough(runs.map(({ size, least }) => [size, least]));
  }
  return slope;
}

/** Makes what is measured for one size, where that has to be waited for; making it is not measured. */
export type CallSurface = (size: number) => Promise<() => Promise<unknown>>;

/**
 * As {@link slopeOf}, of calls that are waited for. What grows past the caches grows faster than its
 * size: by as much as linear work of the same sizes does, a slope is lowered, but not below the limit
 * of what sorts.
 */
export async function slopeOfCalls(
  surface: CallSurface,
  sizes: readonly number[],
  limit?: number,
): Promise<number> {
  const runs = new Map<number, () => Promise<unknown>>();
  for (const size of sizes) runs.set(size, await surface(size));
  for (const run of runs.values()) await timeOfCalls(run);
  const cost = (size: number) => timeOfCalls(runs.get(size) as () => Promise<unknown>);
  return slopeOfCosts(cost, sizes, limit);
}

/** As {@link slopeOfCalls}, of calls that can be made once: what each one needs is made before it. */
export function slopeOfSingleCalls(
  surface: CallSurface,
  sizes: readonly number[],
  limit?: number,
): Promise<number> {
  const cost = async (size: number): Promise<number> => {
    const run = await surface(size);
    const elapsed = stopwatch();
    kept = await run();
    return elapsed();
  };
  return slopeOfCosts(cost, sizes, limit);
}

/** As {@link slopeOfCalls}, of costs that are measured elsewhere: in another process. */
export async function slopeOfCosts(
  cost: (size: number) => Promise<number>,
  sizes: readonly number[],
  limit = Infinity,
): Promise<number> {
  const points = sizes.map((size) => {
    return { size, linear: linearWork(textsOf(size)), least: Infinity, leastLinear: Infinity };
  });
  let slope = Infinity;
  const goesOn = attempts(limit);
  while (goesOn(slope)) {
    for (const one of points) {
      one.least = Math.min(one.least, await cost(one.size));
      one.leastLinear = Math.min(one.leastLinear, timeOf(one.linear, 1));
    }
    slope = slopeThrough(points.map(({ size, least }) => [size, least]));
    if (limit < 1) continue;
    const linear = slopeThrough(points.map(({ size, leastLinear }) => [size, leastLinear]));
    slope -= Math.min(Math.max(linear - 1, 0), SORTED - NEAR_LINEAR);
  }
  return slope;
}

/** Of one call; so many of them that the clock can tell. */
async function timeOfCalls(run: () => Promise<unknown>): Promise<number> {
  const elapsed = stopwatch();
  let calls = 0;
  do {
    kept = await run();
    calls += 1;
  } while (elapsed() < CALLS_MS);
  return elapsed() / calls;
}

/**
 * For how long a call keeps the event loop from everybody else, in times of the reference work: the
 * longest gap between two turns. Both are the best of several tries in turn, since a busy machine
 * only ever adds.
 */
export async function holdOf(run: () => Promise<unknown>, limit?: number): Promise<number> {
  let gap = Infinity;
  let reference = Infinity;
  let hold = Infinity;
  const goesOn = attempts(limit);
  while (goesOn(hold)) {
    reference = Math.min(reference, referenceMs());
    gap = Math.min(gap, await longestGap(run));
    hold = gap / reference;
  }
  return hold;
}

/** Whether to measure again: as often as it takes to tell, then until below the limit or out of patience. */
export function attempts(limit = Infinity): (measured: number) => boolean {
  const start = performance.now();
  let done = 0;
  return (measured) => {
    done += 1;
    if (done <= ATTEMPTS) return true;
    return measured >= limit && performance.now() - start < PATIENCE_MS;
  };
}

async function longestGap(run: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let isDone = false;
  let elapsed = stopwatch();
  const look = () => {
    longest = Math.max(longest, elapsed());
    elapsed = stopwatch();
    if (!isDone) setImmediate(look);
  };
  setImmediate(look);
  kept = await run();
  await new Promise(setImmediate);
  isDone = true;
  await new Promise(setImmediate);
  return longest;
}

/** How many calls fill a round, found by calling: code that is still cold would hide a slope. */
function countOf(run: () => unknown): number {
  const elapsed = stopwatch();
  let calls = 0;
  do {
    kept = run();
    calls += 1;
  } while (elapsed() < WARM_UP_MS);
  return Math.max(1, Math.ceil((calls * ROUND_MS) / elapsed()));
}

/** What was measured last, kept so that no call is left out as useless. @public */
export let kept: unknown;

function timeOf(run: () => unknown, count: number): number {
  const elapsed = stopwatch();
  for (let i = 0; i < count; i++) kept = run();
  return elapsed();
}

/**
 * The slope through sizes and costs, both as logarithms: the median of those between any two points,
 * which a step at one place does not move.
 */
export function slopeThrough(points: readonly (readonly [size: number, cost: number])[]): number {
  const logs = points.map(([size, cost]) => [Math.log(size), Math.log(cost)] as const);
  const slopes = logs.flatMap(([x, y], place) =>
    logs.slice(place + 1).map(([laterX, laterY]) => (laterY - y) / (laterX - x)),
  );
  return slopes.sort((a, b) => a - b)[Math.floor((slopes.length - 1) / 2)] as number;
}

/** A list that counts how often one of its members is read. */
export function countingReads<Item>(items: readonly Item[]): {
  readonly list: readonly Item[];
  readonly reads: () => number;
} {
  let reads = 0;
  const list = new Proxy(items, {
    get(target, key, receiver) {
      if (typeof key === 'string' && /^\d+$/.test(key)) reads += 1;
      return Reflect.get(target, key, receiver);
    },
  });
  return { list, reads: () => reads };
}
