import { MIN_FOREIGN_LENGTH } from '../bounds.ts';
import { type ForeignFormat, partOf } from './foreign.ts';
import { BODY_IN_TEXT, ENCODED_UNDERSCORE, VALUE_IN_TEXT } from './format.ts';

/**
 * Masks everything that has the form of a token value or of a device code, with any prefix, anywhere in a
 * text. The prefix, the key id and six characters of the id stay. For log lines and error messages.
 *
 * Does not check whether the value is real. A value next to other letters or digits is masked too, and one
 * whose underscore is encoded. A truncated value, or one that is encoded otherwise, is not found. Takes linear time; returns the empty text
 * for anything but a string.
 *
 * @example
 * redact(`GET /token/${token.value}`); // 'GET /token/acme_1k1V3xQpL…'
 */
export function redact(text: string): string {
  if (typeof text !== 'string') return '';
  const masked = text.replace(VALUE_IN_TEXT, '$1…');
  if (!ENCODED_UNDERSCORE.test(masked)) return masked;
  const [first, ...parts] = masked.split(ENCODED_UNDERSCORE);
  return first + parts.map((part) => part.replace(BODY_IN_TEXT, '$1…')).join('');
}

/**
 * Makes a {@link redact} that also masks values of other systems: each word that a format accepts, and what
 * `inText` of a format finds next to other letters. A word ends at spaces, quotes, brackets, the signs of
 * addresses and JSON, and characters that are not ASCII. Formats without a prefix accept any word of the
 * right length, which may be a digest: it is masked, too.
 *
 * @throws {TypeError} If an `inText` is not a regular expression
 * @example
 * const mask = redactor([formats.unkey({ prefix: 'acme' })]);
 * mask(`GET /orders Bearer ${value}`); // 'GET /orders Bearer acme_…'
 */
export function redactor(foreign: readonly ForeignFormat[]): (text: string) => string {
  const patterns = foreign.flatMap(({ inText }) => (inText === undefined ? [] : patternOf(inText)));
  const maskPart = (part: string) => wordMask(foreign, part) ?? part;
  const maskWord = (word: string) => {
    const masked = word.split(BETWEEN).map(maskPart).join('');
    return masked === word ? maskPart(word) : masked;
  };
  return (text) => {
    const line = redact(text);
    // Words first: an expression may find only a part of a value.
    const words = foreign.length === 0 ? line : line.replace(WORD, maskWord);
    return patterns.reduce((rest, each) => rest.replace(each, shownPart), words);
  };
}

/** As long as the shortest value of any format. */
const WORD = /[!-~]{16,}/g;
/** Separates values within a word, and is kept: an escape, or a sign. */
const BETWEEN =
  /(\\+(?:u[0-9A-Fa-f]{4}|.)|%[0-9A-Fa-f]{2}|[\s"'`<>()[\]{},;=&?!:/|#@]|\.(?![0-9A-Za-z]))/;

/** The mask of a word that is a value, or ends in one with a fixed start. */
function wordMask(foreign: readonly ForeignFormat[], word: string): string | undefined {
  if (word.length < MIN_FOREIGN_LENGTH) return undefined;
  for (const format of foreign) {
    const { start = '' } = format;
    // The whole word first: a value may have its start in it once more.
    const last = start === '' ? 0 : word.lastIndexOf(start);
    for (const from of last > 0 ? [0, last] : [0]) {
      if (partOf(format, word.slice(from)) !== undefined) return `${word.slice(0, from)}${start}…`;
    }
  }
  return undefined;
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
