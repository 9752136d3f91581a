import type { ForeignFormat } from './foreign.ts';
import { VALUE_IN_TEXT } from './format.ts';

/**
 * Masks everything that has the form of a token value, with any prefix, anywhere in a text. The
 * prefix, the key id and six characters of the token id stay. For log lines and error messages.
 *
 * Does not check whether the value is real. A value next to other letters or digits is masked too. A
 * truncated value, or one that is encoded, is not found. Takes linear time; returns the empty text
 * for anything but a string.
 *
 * @example
 * redact(`GET /token/${token.value}`); // 'GET /token/acme_1k1V3xQpL…'
 */
export function redact(text: string): string {
  return typeof text === 'string' ? text.replace(VALUE_IN_TEXT, '$1…') : '';
}

/**
 * Makes a {@link redact} that also masks values of other systems, if a text shows which words are values:
 * those of formats with a prefix, and those of Sanctum. For a format of your own, it masks the values that
 * `inText` finds.
 *
 * @throws {TypeError} If an `inText` is not a regular expression
 * @example
 * const mask = redactor([formats.unkey({ prefix: 'acme' })]);
 * mask(`GET /orders Bearer ${value}`); // 'GET /orders Bearer acme_…'
 */
export function redactor(foreign: readonly ForeignFormat[]): (text: string) => string {
  const patterns = foreign.flatMap(({ inText }) => (inText === undefined ? [] : patternOf(inText)));
  return (text) => patterns.reduce((line, each) => line.replace(each, shownPart), redact(text));
}

function patternOf(inText: string): RegExp {
  try {
    return new RegExp(inText, 'g');
  } catch (cause) {
    throw new TypeError('`inText` must be a regular expression, such as `(acme_)[0-9a-f]{32}`', {
      cause,
    });
  }
}

/** The masked value: the group of its pattern stays, or nothing if there is none. */
function shownPart(_value: string, shown: unknown): string {
  return typeof shown === 'string' ? `${shown}…` : '…';
}
