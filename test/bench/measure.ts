// Costs in one run, side by side: medians of rounds that take turns. CPU is that of this process; a
// server's is not in it.
const ROUNDS = 41;
const ROUND_MS = 60;
/** The compiler of the engine takes its time with promises. */
const WARM_MS = 2000;

export type Run = () => Promise<unknown>;

/** In microseconds a call. */
interface Cost {
  readonly wall: number;
  readonly cpu: number;
}

/** Prints what each costs, and how that is to the first. */
export async function compare(
  title: string,
  runs: Readonly<Record<string, Run>>,
): Promise<readonly Cost[]> {
  const costs = await measure(runs);
  const [base] = costs.values();
  console.log(`\n${title}\n\n| | time | ratio | CPU | ratio |\n| --- | --- | --- | --- | --- |`);
  for (const [name, cost] of costs) {
    const cells = (['wall', 'cpu'] as const).flatMap((kind) => [
      `${cost[kind].toFixed(0)} µs`,
      (cost[kind] / (base?.[kind] ?? 1)).toFixed(2),
    ]);
    console.log(`| ${name} | ${cells.join(' | ')} |`);
  }
  return [...costs.values()];
}

/** Prints what one call costs at each size, and the exponent of its growth from the first to the last. */
export async function compareSizes(title: string, runs: ReadonlyMap<number, Run>): Promise<void> {
  const costs = await compare(title, Object.fromEntries(runs));
  const sizes = [...runs.keys()];
  const [smallest = 1, largest = 1] = [sizes[0], sizes.at(-1)];
  const growth = (kind: keyof Cost) => {
    const [first, last] = [costs[0]?.[kind] ?? 1, costs.at(-1)?.[kind] ?? 1];
    return (Math.log(last / first) / Math.log(largest / smallest)).toFixed(3);
  };
  console.log(`| exponent | ${growth('wall')} | | ${growth('cpu')} | |`);
}

async function measure(runs: Readonly<Record<string, Run>>): Promise<Map<string, Cost>> {
  const plans: { name: string; run: Run; count: number; costs: Cost[] }[] = [];
  for (const [name, run] of Object.entries(runs)) {
    plans.push({ name, run, count: await calibrate(run), costs: [] });
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const { run, count, costs } of plans) costs.push(await costOf(run, count));
  }
  return new Map(
    plans.map(({ name, costs }) => [
      name,
      { wall: median(costs.map(({ wall }) => wall)), cpu: median(costs.map(({ cpu }) => cpu)) },
    ]),
  );
}

async function calibrate(run: Run): Promise<number> {
  let count = 0;
  for (const end = performance.now() + WARM_MS; performance.now() < end; count++) await run();
  return Math.max(1, Math.round((count * ROUND_MS) / WARM_MS));
}

async function costOf(run: Run, count: number): Promise<Cost> {
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  for (let i = 0; i < count; i++) await run();
  const { user, system } = process.cpuUsage(cpu);
  return { wall: ((performance.now() - start) * 1000) / count, cpu: (user + system) / count };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

/** Many callers who know nothing of each other, each with one call after the other. */
export function byCallers(callers: number, calls: number, run: Run): Run {
  const call = async () => {
    for (let i = 0; i < calls; i++) await run();
  };
  return () => Promise.all(Array.from({ length: callers }, call));
}

/** Numbers below a bound that jump about, the same in each run. */
export function jumping(bound: number): () => number {
  let step = 0;
  return () => {
    step += 1;
    return (step * 7919) % bound;
  };
}

/** The scopes of a whole API such as GitHub's: 1 189 of them, some 56 kB. Each copy has others. */
export function wholeApi(copy = 0): string[] {
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
  return Array.from(
    { length: 1189 },
    (_, i) => `${methods[i % 5]}:api.forge.example/repos/part${i}/${1000 + copy}`,
  );
}
