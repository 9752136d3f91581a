import { LANGUAGE } from '../texts.ts';

interface Unit {
  readonly unit: Intl.RelativeTimeFormatUnit;
  readonly seconds: number;
  /** How many of them a distance must have to be shown in this unit. */
  readonly from: number;
}

const SECOND: Unit = { unit: 'second', seconds: 1, from: 0 };
/** From the largest. `from` prefers the unit that says more: 45 days, not one month. */
const UNITS: readonly Unit[] = [
  { unit: 'year', seconds: 365 * 86_400, from: 2 },
  { unit: 'month', seconds: 30 * 86_400, from: 3 },
  { unit: 'day', seconds: 86_400, from: 1 },
  { unit: 'hour', seconds: 3600, from: 1 },
  { unit: 'minute', seconds: 60, from: 1 },
];

/** A time as a distance from now: `in 3 days`, `yesterday`. */
export function relativeTime(seconds: number, now: number = Date.now() / 1000): string {
  const distance = seconds - now;
  const fits = ({ from, seconds: length }: Unit) => Math.abs(distance) >= from * length;
  const { unit, seconds: length } = UNITS.find(fits) ?? SECOND;
  const format = unit === 'day' ? LANGUAGE.relativeDays : LANGUAGE.relative;
  return format.format(Math.round(distance / length), unit);
}

export function exactTime(seconds: number): string {
  return LANGUAGE.exact.format(new Date(seconds * 1000));
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
