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

/** How a language writes distances of time. */
export interface RelativeFormats {
  readonly relative: Intl.RelativeTimeFormat;
  /** For days only: `yesterday` is exact, but `next month` would not be. */
  readonly relativeDays: Intl.RelativeTimeFormat;
}

export function relativeFormats(tag: string): RelativeFormats {
  return {
    relative: new Intl.RelativeTimeFormat(tag),
    relativeDays: new Intl.RelativeTimeFormat(tag, { numeric: 'auto' }),
  };
}

/** Writes a distance of seconds from now: `in 3 days`, `yesterday`. */
export function relativeTime(
  distance: number,
  { relative, relativeDays }: RelativeFormats,
): string {
  const fits = ({ from, seconds: length }: Unit) => Math.abs(distance) >= from * length;
  const { unit, seconds: length } = UNITS.find(fits) ?? SECOND;
  return (unit === 'day' ? relativeDays : relative).format(Math.round(distance / length), unit);
}
