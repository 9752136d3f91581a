// What benches share: figures of rounds that take turns, and what is said about them. Only ratios within one
// run count, since machines change their speed.
import { printTable, timeText } from './page.ts';

/** One call; what it returns is awaited if it is a promise. */
export type Run = () => unknown;

/** Makes so many calls, and returns what one of them cost. */
export type Loop<Figure> = (count: number) => Promise<Figure>;

export interface Pace {
  /** `ROUNDS` in the environment wins. */
  readonly rounds: number;
  /** How long a candidate works in each round. */
  readonly roundMs: number;
  /** The compiler of the engine takes its time with promises. */
  readonly warmMs: number;
}

/** The median, and what a tenth of the figures stay below and above. */
export interface Range {
  readonly low: number;
  readonly median: number;
  readonly high: number;
}

/** Of one candidate, with a figure for each round. */
export interface Measured<Figure = number> {
  readonly name: string;
  readonly figures: readonly Figure[];
}

/** In microseconds a call. The CPU is that of this process, without that of a server. */
interface Cost {
  readonly wall: number;
  readonly cpu: number;
}

export const roundsOf = (usual: number) => Number(process.env['ROUNDS'] ?? usual);

export function shareOf(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return shareOf(values, 0.5);
}

export function rangeOf(values: readonly number[]): Range {
  return { low: shareOf(values, 0.1), median: median(values), high: shareOf(values, 0.9) };
}

/** Round by round. */
export function ratios(values: readonly number[], to: readonly number[]): number[] {
  return values.map((value, round) => value / (to[round] ?? Number.NaN));
}

/** A figure of each candidate in each round. Every other round has the opposite order. */
export async function takeTurns<Figure>(
  rounds: number,
  candidates: Readonly<Record<string, () => Figure | Promise<Figure>>>,
): Promise<Measured<Figure>[]> {
  const all = Object.entries(candidates).map(([name, take]) => {
    return { name, take, figures: [] as Figure[] };
  });
  for (let round = 0; round < roundsOf(rounds); round++) {
    const order = round % 2 === 0 ? all : all.toReversed();
    for (const { take, figures } of order) figures.push(await take());
  }
  return all.map(({ name, figures }) => ({ name, figures }));
}

/** Warms up all candidates, then measures them in turns. */
export async function measure<Figure>(
  loops: Readonly<Record<string, Loop<Figure>>>,
  pace: Pace,
): Promise<Measured<Figure>[]> {
  const candidates: Record<string, () => Promise<Figure>> = {};
  for (const [name, loop] of Object.entries(loops)) {
    const count = await calibrate(loop, pace);
    candidates[name] = () => loop(count);
  }
  return takeTurns(pace.rounds, candidates);
}

/** How many calls fill a round. */
async function calibrate(loop: Loop<unknown>, { roundMs, warmMs }: Pace): Promise<number> {
  const warm = performance.now() + warmMs;
  for (let count = 1; ; ) {
    const start = performance.now();
    await loop(count);
    const ms = performance.now() - start;
    if (ms < roundMs / 2) count *= 2;
    else if (performance.now() >= warm) return Math.max(1, Math.round((count * roundMs) / ms));
  }
}

/** Microseconds a call. */
export function timed(run: Run): Loop<number> {
  return async (count) => {
    const start = performance.now();
    for (let i = 0; i < count; i++) {
      const answer = run();
      if (answer instanceof Promise) await answer;
    }
    return ((performance.now() - start) * 1000) / count;
  };
}

export function timedAll(runs: Readonly<Record<string, Run>>): Record<string, Loop<number>> {
  return Object.fromEntries(Object.entries(runs).map(([name, run]) => [name, timed(run)]));
}

/** Prints what each costs, and how that is to the first. */
export async function compare(
  title: string,
  loops: Readonly<Record<string, Loop<number>>>,
  pace: Pace,
): Promise<Measured[]> {
  const all = await measure(loops, pace);
  printMeasured(title, 'time', all);
  return all;
}

/** `what` names the figures, which are microseconds. */
export function printMeasured(title: string, what: string, all: readonly Measured[]): void {
  const rows = all.map(({ name, figures }) => {
    const { low, median: middle, high } = rangeOf(figures);
    const range = `${timeText(low)} – ${timeText(high)}`;
    return [name, timeText(middle), range, ratioText(figures, all[0]?.figures)];
  });
  printTable(title, [['', what, '10th to 90th', 'ratio'], ...rows]);
}

export function ratioText(values: readonly number[], to: readonly number[] = []): string {
  return median(ratios(values, to)).toFixed(2);
}

const PACE = { rounds: 41, roundMs: 60, warmMs: 2000 };

/** Prints what calls of a server cost, also in CPU of this process. Returns the times. */
export async function compareCosts(
  title: string,
  runs: Readonly<Record<string, Run>>,
): Promise<Measured[]> {
  const all = await measure(
    Object.fromEntries(Object.entries(runs).map(([name, run]) => [name, costed(run)])),
    PACE,
  );
  const kinds = ['wall', 'cpu'] as const;
  const of = (kind: keyof Cost, figures: readonly Cost[] = []) => figures.map((cost) => cost[kind]);
  const rows = all.map(({ name, figures }) => [
    name,
    ...kinds.flatMap((kind) => {
      const costs = of(kind, figures);
      return [timeText(median(costs)), ratioText(costs, of(kind, all[0]?.figures))];
    }),
  ]);
  printTable(title, [['', 'time', 'ratio', 'CPU', 'ratio'], ...rows]);
  return all.map(({ name, figures }) => ({ name, figures: of('wall', figures) }));
}

function costed(run: Run): Loop<Cost> {
  const time = timed(run);
  return async (count) => {
    const before = process.cpuUsage();
    const wall = await time(count);
    const { user, system } = process.cpuUsage(before);
    return { wall, cpu: (user + system) / count };
  };
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

/** One of the items after the other, in an order that jumps about. */
export function anyOf<Item>(items: readonly Item[]): () => Item {
  const next = jumping(items.length);
  return () => items[next()] as Item;
}

/** The scopes of a whole API such as GitHub's: 1 189 of them, some 56 kB. Each copy has others. */
export function wholeApi(copy = 0): string[] {
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
  return Array.from(
    { length: 1189 },
    (_, i) => `${methods[i % 5]}:api.forge.example/repos/part${i}/${1000 + copy}`,
  );
}
