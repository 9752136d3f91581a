import { isTokenError } from '../../errors.ts';
import { type ForeignFormat, formats } from '../../values/foreign.ts';
import { usageError } from '../terminal/errors.ts';
import type { Kind } from '../terminal/kinds.ts';

type Maker = (rest: string) => ForeignFormat;

/** By the first word of an entry. `rest` is the text after its colon. */
const MAKERS: Readonly<Record<string, Maker>> = {
  sanctum: (prefix) => formats.sanctum({ prefix }),
  'better-auth': (rest) => formats.betterAuth(prefixAndLength(rest)),
  unkey: (prefix) => formats.unkey({ prefix }),
  'prefixed-api-key': (prefix) => formats.prefixedApiKey({ prefix }),
  keypal: (rest) => formats.keypal(prefixAndLength(rest)),
  sha256(rest) {
    const [, name = '', pattern = ''] = /^([a-z0-9-]{1,32}):(.+)$/.exec(rest) ?? [];
    if (pattern === '')
      throw usageError('sha256 takes a name and a pattern, as sha256:NAME:PATTERN');
    return formats.sha256({ name, pattern: patternOf(pattern) });
  },
};

/** Formats of values of other systems. */
export const FORMATS: Kind<readonly ForeignFormat[]> = {
  flag: { type: 'string', multiple: true },
  values:
    'sanctum[:PREFIX], better-auth[:PREFIX[:LENGTH]], unkey:PREFIX, prefixed-api-key:PREFIX, keypal[:PREFIX[:LENGTH]] or sha256:NAME:PATTERN',
  read(given, name) {
    const texts = Array.isArray(given) ? given.map(String) : entriesOf(String(given));
    const read = texts.map((text) => readFormat(text, name));
    const names = read.map((format) => format.name);
    const repeated = names.find((each, index) => names.indexOf(each) < index);
    if (repeated === undefined) return read;
    throw usageError(`${name}: there are two formats with the name ${repeated}`);
  },
};

/** Splits a variable at its commas, but not at those in a pattern of `sha256`. */
function entriesOf(text: string): readonly string[] {
  const entries: string[] = [];
  for (const part of text.split(',')) {
    const isNew = Object.hasOwn(MAKERS, part.replace(/:.*/s, ''));
    if (isNew || entries.length === 0) entries.push(part);
    else entries.push(`${entries.pop()},${part}`);
  }
  return entries;
}

function readFormat(text: string, flag: string): ForeignFormat {
  const [, name = '', rest = ''] = /^([a-z0-9-]+)(?::(.*))?$/s.exec(text) ?? [];
  const make = Object.hasOwn(MAKERS, name) ? MAKERS[name] : undefined;
  if (make === undefined) throw usageError(`${flag} must be ${FORMATS.values}`);
  try {
    return make(rest);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const message = isTokenError(error)
      ? error.message.replace(/^formats\.\w+/, name)
      : error.message;
    throw usageError(`${flag}: ${message}`);
  }
}

function prefixAndLength(rest: string) {
  const [prefix = '', length, ...more] = rest.split(':');
  if (more.length > 0) throw usageError('a prefix and a length are all that it takes');
  return { prefix, ...(length !== undefined && { length: Number(length) }) };
}

/** Matches a whole value, whether or not the pattern says so. */
function patternOf(source: string): RegExp {
  try {
    return new RegExp(`^(?:${source})$`);
  } catch {
    throw usageError('the pattern is not a regular expression');
  }
}
