import { relativeTime as relativeDistance } from '../../../../time/relative.ts';
import { LANGUAGE } from '../texts.ts';

/** A time as a distance from now: `in 3 days`, `yesterday`. */
export function relativeTime(seconds: number): string {
  return relativeDistance(seconds - Date.now() / 1000, LANGUAGE);
}

export function exactTime(seconds: number): string {
  return LANGUAGE.exact.format(new Date(seconds * 1000));
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

/** A length of time, exactly: `1 hour, 30 minutes`. */
export function durationText(seconds: number): string {
  let left = seconds;
  const parts = UNITS.flatMap(([unit, length]) => {
    const count = Math.floor(left / length);
    left -= count * length;
    return count === 0 ? [] : unitText(count, unit);
  });
  return LANGUAGE.lists.format(parts);
}

function unitText(count: number, unit: string): string {
  const style = { style: 'unit', unit, unitDisplay: 'long' } as const;
  return new Intl.NumberFormat(LANGUAGE.tag, style).format(count);
}

export interface TimeProps {
  /** UNIX seconds. */
  readonly seconds: number;
  /** Shows the exact time as well, not only on hover. */
  readonly isExact?: boolean;
}

/** A time as a distance from now, and the exact time on hover. */
export function Time({ seconds, isExact = false }: TimeProps) {
  const text = exactTime(seconds);
  return (
    <time dateTime={new Date(seconds * 1000).toISOString()} title={text}>
      {isExact ? `${text} (${relativeTime(seconds)})` : relativeTime(seconds)}
    </time>
  );
}
