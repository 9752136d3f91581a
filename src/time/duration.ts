export const DAY_MS = 86_400_000;

/** The seconds of each unit. */
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** The seconds of a text such as `90d`, `12h`, `30m` or `45s`; `undefined` for any other text. */
export function parseDuration(text: string): number | undefined {
  const [, number, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = UNITS[unit];
  return seconds === undefined ? undefined : Number(number) * seconds;
}

/** The seconds of units as people write them. A month has 30 days, and a year 365. */
const OTHER_UNITS: readonly (readonly [name: RegExp, seconds: number])[] = [
  [/^(?:s|secs?|seconds?)$/i, 1],
  // An `M` may be a minute or a month.
  [/^(?:m|mins?|minutes?)$/, 60],
  [/^(?:h|hrs?|hours?)$/i, 3600],
  [/^(?:d|days?)$/i, 86_400],
  [/^(?:w|wks?|weeks?)$/i, 7 * 86_400],
  [/^(?:mo|mos|months?)$/i, 30 * 86_400],
  [/^(?:y|yrs?|years?)$/i, 365 * 86_400],
];

/** Longer texts are not durations. */
const MAX_MEANT_LENGTH = 40;

/**
 * The seconds that somebody meant by a duration in another form, such as `30 days`, `1y`, `1h30m` or `P30D`;
 * `undefined` if they are not whole, or the text is something else. For hints.
 */
export function secondsMeant(text: string): number | undefined {
  if (text.length > MAX_MEANT_LENGTH) return undefined;
  // Of ISO 8601, only what has no M: that is a month before the T, and a minute after it.
  const plain = /^P[^M]*$/i.test(text) ? text.slice(1).replace(/T/i, '') : text;
  let seconds = 0;
  const rest = plain.replace(/(\d{1,9}(?:\.\d{1,3})?) ?([a-z]{1,7})/gi, (_, number, unit) => {
    const found = OTHER_UNITS.find(([name]) => name.test(unit));
    seconds += found === undefined ? Number.NaN : Number(number) * found[1];
    return '';
  });
  const isDuration = rest.trim() === '' && Number.isSafeInteger(seconds) && seconds > 0;
  return isDuration ? seconds : undefined;
}

/** A duration as {@link parseDuration} reads it, in the largest unit that fits. */
export function durationText(seconds: number): string {
  const [unit, size] =
    Object.entries(UNITS)
      .reverse()
      .find(([, size]) => seconds % size === 0) ?? [];
  return `${seconds / (size as number)}${unit}`;
}
