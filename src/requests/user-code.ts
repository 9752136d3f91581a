import { customRandom } from 'nanoid';
import { drawBytes } from '../values/value.ts';

/** No vowels, so no words, and nothing that looks like a digit (RFC 8628 section 6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const LENGTH = 8;

/** Draws a user code: 34 random bits. */
export const drawUserCode: () => string = customRandom(LETTERS, LENGTH, drawBytes);

/** A user code as people read it, such as `WDJB-MJHT`. */
export function shownUserCode(code: string): string {
  return `${code.slice(0, LENGTH / 2)}-${code.slice(LENGTH / 2)}`;
}

/** Reads what somebody typed; `undefined` if it cannot be a code. Case, spaces and hyphens do not count. */
export function readUserCode(typed: unknown): string | undefined {
  if (typeof typed !== 'string' || typed.length > MAX_TYPED) return undefined;
  const code = typed.replace(/[\s\-\u2010-\u2015]/g, '').toUpperCase();
  return code.length === LENGTH && [...code].every((letter) => LETTERS.includes(letter))
    ? code
    : undefined;
}

/** Characters of what somebody types as a code. */
const MAX_TYPED = 64;
