import { type ForeignFormat, redact, redactor } from '../../index.ts';

let mask: (text: string) => string = redact;

/** Makes {@link masked} mask the values of these formats, too. */
export function maskAlso(foreign: readonly ForeignFormat[]): void {
  if (foreign.length > 0) mask = redactor(foreign);
}

/** Masks the values of tokens in a text for logs and messages. */
export function masked(text: string): string {
  return mask(text);
}
