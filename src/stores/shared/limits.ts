import { copyLimits, isLimits, type TokenLimits } from '../../token/record.ts';

/** Limits as one text, as stores keep them. */
export function limitsText(limits: TokenLimits | undefined): string | undefined {
  return limits && JSON.stringify(copyLimits(limits));
}

/** Reads the text of limits; undefined if it is malformed. */
export function readLimits(text: string): TokenLimits | undefined {
  try {
    const limits: unknown = JSON.parse(text);
    return isLimits(limits) ? limits : undefined;
  } catch {
    return undefined;
  }
}
