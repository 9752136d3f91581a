import { copyOrigin, isOrigin, type TokenOrigin } from '../../token/record.ts';

/** An origin as one text, as stores keep it. */
export function originText(origin: TokenOrigin | undefined): string | undefined {
  return origin && JSON.stringify(copyOrigin(origin));
}

/** Reads the text of an origin; undefined if it is malformed. */
export function readOrigin(text: string): TokenOrigin | undefined {
  try {
    const origin: unknown = JSON.parse(text);
    return isOrigin(origin) ? origin : undefined;
  } catch {
    return undefined;
  }
}
