// What a bench has to reach. A goal is met only if eight of ten rounds, and the tenth above them, lie within it.
import { type Measured, rangeOf, ratios } from './measure.ts';
import { printTable } from './page.ts';

interface Goal {
  readonly text: string;
  readonly limit: number;
  readonly kind: 'at most' | 'at least';
  /** One for each round. */
  readonly values: readonly number[];
}

const goals: Goal[] = [];

/** One of those that took turns, by the beginning of its name. */
export function byName(all: readonly Measured[], name: string): Measured | undefined {
  return all.find((one) => one.name.startsWith(name));
}

/** Holds the ratio of two that took turns to a limit, round by round. */
export function goal(
  text: string,
  limit: number,
  ours: Measured | undefined,
  theirs: Measured | undefined,
): void {
  if (ours === undefined || theirs === undefined) throw new Error(`not measured: ${text}`);
  atMost(text, limit, ratios(ours.figures, theirs.figures));
}

export function atMost(text: string, limit: number, values: readonly number[]): void {
  goals.push({ text, limit, kind: 'at most', values });
}

export function atLeast(text: string, limit: number, values: readonly number[]): void {
  goals.push({ text, limit, kind: 'at least', values });
}

export function printGoals(): void {
  const rows = goals.map(({ text, limit, kind, values }) => {
    const { low, median, high } = rangeOf(values);
    const misses = (value: number) => (kind === 'at most' ? value > limit : value < limit);
    const isUnsure = misses(kind === 'at most' ? high : low);
    const verdict = misses(median) ? 'missed' : isUnsure ? 'not sure' : 'met';
    const [from, middle, to] = [low, median, high].map((value) => value.toPrecision(3));
    return [text, `${kind} ${limit}`, middle ?? '', `${from} – ${to}`, verdict];
  });
  if (rows.length > 0)
    printTable('Goals', [['goal', 'limit', 'median', '10th to 90th', ''], ...rows]);
}
