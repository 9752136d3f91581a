import { relativeTime as relativeDistance } from '../../../../time/relative.ts';
import { LANGUAGE } from '../texts.ts';

/** A time as a distance from now: `in 3 days`, `yesterday`. */
export function relativeTime(seconds: number): string {
  return relativeDistance(seconds - Date.now() / 1000, LANGUAGE);
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
