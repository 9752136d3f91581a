/** The value of a JSON text, which may begin with a byte order mark. @throws {SyntaxError} */
export function parseJsonText(text: string): unknown {
  return JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text);
}

/** Nearly all texts hold none of these: sixteen digits, with or without a dot, or an exponent. */
const SUSPECT = /\d(?:\.?\d){15}|\d[eE]/;

/** Two characters of a number or more. */
const NUMBER = /-?\d[\d.eE+-]+/y;

/** An object or a list that the search is in. */
interface Level {
  /** The name of the member, or the index. */
  name: string | number;
  readonly isList: boolean;
}

/**
 * Finds the first number of a valid JSON text that JavaScript would change: a whole number beyond 2^53 - 1
 * that loses digits, one of more than 17 digits, or one that becomes infinite or 0.
 *
 * @returns the names that lead to it; `undefined` if there is none
 */
export function roundedNumberIn(text: string): readonly string[] | undefined {
  if (!SUSPECT.test(text)) return undefined;
  const levels: Level[] = [];
  let latest = '';
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = endOfToken(text, at);
    const sign = text.charAt(at);
    const level = levels.at(-1);
    if (sign === '{' || sign === '[') levels.push({ name: 0, isList: sign === '[' });
    else if (sign === '}' || sign === ']') levels.pop();
    else if (sign === ':' && level) level.name = JSON.parse(latest) as string;
    else if (sign === ',' && level?.isList) level.name = Number(level.name) + 1;
    else if (sign === '"') latest = text.slice(at, end);
    // A shorter number is never rounded, except by its exponent.
    else if (end - at > 2 && isRounded(text.slice(at, end))) {
      return levels.map(({ name }) => String(name));
    }
  }
  return undefined;
}

/** More members than any call has: what is stored of a token has at most some thousand. */
const MAX_MEMBERS = 8192;
const MAX_COUNTED_DEPTH = 64;

/**
 * Whether the objects of a JSON text have so many members that it can only be refused. Looking takes a
 * fiftieth of the time that parsing them takes, and naming those that are unknown.
 */
export function hasTooManyMembers(text: string): boolean {
  let members = 0;
  let depth = 0;
  for (let at = 0, end = 0; at < text.length; at = end) {
    const sign = text[at];
    end = sign === '"' ? endOfToken(text, at) : at + 1;
    if (sign === '{' || sign === '[') depth += 1;
    else if (sign === '}' || sign === ']') depth -= 1;
    // Parsing refuses what is nested without end.
    else if (sign === ':' && depth <= MAX_COUNTED_DEPTH) members += 1;
    if (members > MAX_MEMBERS) return true;
    // A string without an end: parsing says so.
    if (end <= at) return false;
  }
  return false;
}

/** Levels of objects and lists in which names are compared. @bound */
export const MAX_NAMED_DEPTH = 128;

/**
 * Why the objects of a valid JSON text could be read in two ways: a name comes twice in one of them; or one
 * is `__proto__`, which programs that copy members take for something else. Text that is nested too
 * deeply to be compared counts as such.
 */
export function ambiguityIn(text: string): 'duplicate' | 'prototype' | 'depth' | undefined {
  // Of a list, there are no names.
  const levels: (Set<string> | undefined)[] = [];
  let isName = false;
  for (let at = 0, end = 0; at < text.length; at = end) {
    const sign = text[at];
    end = sign === '"' ? endOfToken(text, at) : at + 1;
    if (sign === '{' || sign === '[') {
      if (levels.push(sign === '{' ? new Set() : undefined) > MAX_NAMED_DEPTH) return 'depth';
      isName = sign === '{';
    } else if (sign === '}' || sign === ']') {
      levels.pop();
      isName = false;
    } else if (sign === ',') isName = levels.at(-1) !== undefined;
    else if (sign === '"' && isName) {
      const written = text.slice(at + 1, end - 1);
      const name = written.includes('\\') ? (JSON.parse(`"${written}"`) as string) : written;
      if (name === '__proto__') return 'prototype';
      const names = levels.at(-1) as Set<string>;
      if (names.size === names.add(name).size) return 'duplicate';
      isName = false;
    }
  }
  return undefined;
}

/** The index after a text, a number or one other character of JSON. */
function endOfToken(text: string, start: number): number {
  let end = start + 1;
  if (text[start] !== '"') {
    NUMBER.lastIndex = start;
    return NUMBER.test(text) ? NUMBER.lastIndex : end;
  }
  // Not by a regular expression: V8 needs memory for each character that one repeats over.
  for (;;) {
    end = text.indexOf('"', end);
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes += 1;
    end += 1;
    if (slashes % 2 === 0) return end;
  }
}

function isRounded(literal: string): boolean {
  if (!SUSPECT.test(literal)) return false;
  const [, digits = '', exponent] = partsOf(literal) ?? [];
  const number = Number(literal);
  const kept = Number.isFinite(number) ? partsOf(String(number)) : undefined;
  if (kept === undefined) return true;
  if (kept[1] === digits && kept[2] === exponent) return false;
  // Some programs print a double with 17 digits, where fewer would do.
  return Number.isInteger(number) || digits.length > 17;
}

/** The significant digits of a number, and the power of ten of the last one. */
function partsOf(
  literal: string,
): readonly [sign: string, digits: string, exponent: number] | undefined {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal);
  if (match === null) return undefined;
  const [, sign = '', whole = '', fraction = '', power = '0'] = match;
  const all = whole + fraction;
  const digits = withoutZeros(all);
  if (digits === '') return ['', '', 0];
  const zeros = all.length - (digits.length + leadingZeros(all));
  return [sign, digits, Number(power) - fraction.length + zeros];
}

function leadingZeros(digits: string): number {
  let count = 0;
  while (digits[count] === '0') count += 1;
  return count;
}

/** Not by a regular expression: one for the zeros at the end takes quadratic time. */
function withoutZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(Math.min(leadingZeros(digits), end), end);
}

const PLAIN_NAME = /^[\w$-]{1,32}$/;
const MAX_PLACE_LENGTH = 80;

/** Such as `metadata.a.b`; `undefined` if a name is long, or may be a secret. */
export function placeOf(names: readonly string[]): string | undefined {
  const place = names.join('.');
  const isShown = place.length <= MAX_PLACE_LENGTH && names.every((name) => PLAIN_NAME.test(name));
  return isShown && place !== '' ? place : undefined;
}

/** Says that a number would be rounded, and what would be right. */
export function describeRounded(names: readonly string[]): string {
  const place = placeOf(names);
  return `${place ?? 'a member'} is a number that JSON rounds, with more digits than can be kept: write it as a text, in quotes`;
}
