import type { ForeignFormat } from '../values/foreign.ts';
import { redact, redactor } from '../values/redact.ts';

let mask: (text: string) => string = redact;

/** From now on, {@link masked} knows the values of these formats as well. */
export function maskAlso(foreign: readonly ForeignFormat[]): void {
  if (foreign.length > 0) mask = redactor(foreign);
}

/** A text without values of tokens, for logs and messages. */
export function masked(text: string): string {
  return mask(text);
}
