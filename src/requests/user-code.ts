import { customRandom } from 'nanoid';
import { isUserCode, USER_CODE_LENGTH } from '../ports/request-store.ts';
import { drawBytes } from '../values/value.ts';

/** No vowels, so no words, and nothing that looks like a digit (RFC 8628 section 6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';

/** Characters of what somebody types as a code, at most. */
const MAX_TYPED = 64;

/** Draws a user code: 34 random bits. */
export const drawUserCode: () => string = /* @__PURE__ */ customRandom(
  LETTERS,
  USER_CODE_LENGTH,
  drawBytes,
);

/** A user code as people read it, such as `WDJB-MJHT`. */
export function shownUserCode(code: string): string {
  const half = USER_CODE_LENGTH / 2;
  return `${code.slice(0, half)}-${code.slice(half)}`;
}

/** Reads what somebody typed; `undefined` if it cannot be a code. Case, spaces and hyphens do not count. */
export function readUserCode(typed: unknown): string | undefined {
  if (typeof typed !== 'string' || typed.length > MAX_TYPED) return undefined;
  const code = typed.replace(/[\s\-\u2010-\u2015]/g, '').toUpperCase();
  return isUserCode(code) ? code : undefined;
}
