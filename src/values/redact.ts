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
