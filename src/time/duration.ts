export const DAY_MS = 86_400_000;

/** The seconds of each unit. */
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** The seconds of a text such as `90d`, `12h`, `30m` or `45s`; `undefined` for any other text. */
export function parseDuration(text: string): number | undefined {
  const [, number, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = UNITS[unit];
  return seconds === undefined ? undefined : Number(number) * seconds;
}
