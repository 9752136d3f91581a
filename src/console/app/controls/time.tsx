import { LANGUAGE } from '../texts.ts';

const relative = new Intl.RelativeTimeFormat(LANGUAGE, { numeric: 'auto' });
const exact = new Intl.DateTimeFormat(LANGUAGE, { dateStyle: 'medium', timeStyle: 'short' });

/** Units from the largest, with their seconds. A time is told in the largest unit that it fills. */
const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 365 * 86_400],
  ['month', 30 * 86_400],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];

/** A time as a distance from now: `in 3 days`, `yesterday`. */
export function relativeTime(seconds: number, now: number = Date.now() / 1000): string {
  const distance = seconds - now;
  const [unit, length] = UNITS.find(([, size]) => Math.abs(distance) >= size) ?? ['second', 1];
  return relative.format(Math.trunc(distance / length), unit);
}

export function exactTime(seconds: number): string {
  return exact.format(new Date(seconds * 1000));
}

export interface TimeProps {
  /** UNIX seconds. */
  readonly seconds: number;
  /** Shows the exact time as well, not only on hover. */
  readonly isExact?: boolean;
}

/** A time as people tell it, exact on hover. */
export function Time({ seconds, isExact = false }: TimeProps) {
  const text = exactTime(seconds);
  return (
    <time dateTime={new Date(seconds * 1000).toISOString()} title={text}>
      {isExact ? `${text} (${relativeTime(seconds)})` : relativeTime(seconds)}
    </time>
  );
}
