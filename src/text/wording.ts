import { MAX_LIFETIME_SECONDS } from '../bounds.ts';
import { TokenError } from '../errors.ts';
import { DAY_MS, durationText, secondsMeant } from '../time/duration.ts';

/** How one interface, such as HTTP, names members, by their names in the library. */
export type Names = Readonly<Record<string, string>>;

/** Numbers, perhaps with a unit, and dates are shown: no secret looks like one. */
const NUMBER_OR_DURATION =
  /^[-+]?\d{1,10}(?:\.\d{1,6})? ?(?:ms|[smhdwy]|seconds?|minutes?|hours?|days?|weeks?|months?|years?)?$/i;
const DATE = /^\d{4}-\d\d-\d\d(?:T[\d:.]{1,12}(?:Z|[+-]\d\d:?\d\d)?)?$/;

/** Describes a value that was sent: a number, a date, or its kind. Never quotes what may be a secret. */
export function shown(value: unknown): string {
  try {
    if (typeof value === 'string') return shownText(value);
    if (typeof value === 'number') return String(value);
    if (value instanceof Date) return shownDate(value);
  } catch {
    // A proxy of the caller may throw.
  }
  return kindOf(value);
}

/** The kind of a value, such as `a text` or `undefined`. For values that are never shown. */
export function kindOf(value: unknown): string {
  try {
    if (typeof value === 'string') return value === '' ? 'an empty text' : 'a text';
    if (typeof value === 'function') return isClass(value) ? 'a class' : 'a function';
    if (value === undefined || value === null || typeof value === 'boolean') return String(value);
    if (typeof value !== 'object') return `a ${typeof value}`;
    if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
    if (value instanceof Date) return 'a Date';
    if (value instanceof Map || value instanceof Set)
      return value instanceof Map ? 'a Map' : 'a Set';
    if (typeof Reflect.get(value, 'then') === 'function') return 'a promise';
  } catch {
    // A proxy of the caller may throw.
  }
  return 'an object';
}

/** Not a method whose name begins so, such as `classify() {}`. */
function isClass(value: object): boolean {
  return /^class(?:\s+[^\s(]|\s*\{)/.test(Function.prototype.toString.call(value));
}

function shownText(text: string): string {
  if (text === '') return 'an empty text';
  return NUMBER_OR_DURATION.test(text) || DATE.test(text) ? `the text "${text}"` : 'a text';
}

/** A time, also in UNIX seconds, because callers over HTTP send those. */
export function shownDate(date: Date): string {
  const time = date.getTime();
  if (!Number.isFinite(time)) return 'an invalid Date';
  return `${date.toISOString().replace('.000Z', 'Z')} (${Math.floor(time / 1000)} in UNIX seconds)`;
}

/** Names that people choose. Most keys and passwords hold a digit or a punctuation mark. */
const NAME = /^[a-z][a-z_-]{0,31}$/i;

/** Quotes the name of a member that somebody chose, unless it may be a secret. */
export function shownName(name: string): string {
  return NAME.test(name) ? `"${name}"` : '(its name is not shown)';
}

/** Addresses have dots or colons between a few digits. No key and no password looks like that. */
const BLOCK = /^(?=[\da-f]{0,4}[.:])[\da-f.:]{2,45}(?:\/\d{1,5})?$/i;

/** Quotes what somebody gave as a block of addresses, unless it may be a secret. */
export function shownBlock(block: unknown): string {
  return typeof block === 'string' && BLOCK.test(block) ? `"${block}"` : shown(block);
}

const UNITS: readonly (readonly [seconds: number, name: string])[] = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
];

/** A whole number of seconds as people say it, such as `90 days`. */
export function inWords(seconds: number): string {
  const [size, name] = UNITS.find(([size]) => seconds >= size && seconds % size === 0) ?? [];
  if (size === undefined || seconds / size > 1e6) return `${seconds} s`;
  const count = seconds / size;
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

/** Counts things: `1 token`, `2 tokens`. */
export function count(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? '' : 's'}`;
}

/** Says why a value is not a number of seconds in a range. */
export function secondsMessage(name: string, value: unknown, min: number, max: number): string {
  const rule = `${name} must be a whole number of seconds from ${min} to ${max}`;
  if (typeof value === 'string' && /^\d{1,10}$/.test(value)) {
    return `${rule}; got the text "${value}": give the number ${Number(value)} without quotes`;
  }
  const meant = typeof value === 'string' ? secondsMeant(value) : undefined;
  if (meant !== undefined && meant >= min && meant <= max)
    return `${rule}; got ${shown(value)}: give ${meant}`;
  if (!Number.isInteger(value) || (value as number) <= max) return `${rule}; got ${shown(value)}`;
  const seconds = value as number;
  const limit = inWords(max) === `${max} s` ? '' : ` (${max} s)`;
  const asked = `${name} may be at most ${inWords(max)}${limit}; you asked for ${inWords(seconds)}`;
  return areMilliseconds(seconds, max)
    ? `${asked}; if you mean milliseconds, give ${Math.floor(seconds / 1000)}`
    : asked;
}

/** Says why a value is not a duration, as `expiresIn` takes it. */
export function durationMessage(name: string, value: unknown): string {
  const rule = `${name} must be at least 1 second, as a whole number with its unit (s, m, h or d), such as "30d", or as a number of seconds`;
  return `${rule}; got ${shown(value)}${durationHint(value)}`;
}

function durationHint(value: unknown): string {
  if (isNever(value)) return `: ${everExpires()}; leave it out for the default`;
  if (value instanceof Date) return ': an instant is given as expiresAt';
  if (typeof value !== 'string') return '';
  if (/^[1-9]\d{0,8}$/.test(value)) return `: for seconds give "${value}s" or ${value}`;
  const meant = secondsMeant(value);
  if (meant === undefined) return '';
  return meant > MAX_LIFETIME_SECONDS ? `: ${everExpires()}` : `: write "${durationText(meant)}"`;
}

/** Says why a value is not a `Date`. */
export function dateMessage(name: string, value: unknown): string {
  return `${name} must be a valid Date; got ${shown(value)}${dateHint(value)}`;
}

function dateHint(value: unknown): string {
  if (typeof value === 'string') {
    const isDate = DATE.test(value) && !Number.isNaN(Date.parse(value));
    return isDate ? `: give new Date("${value}")` : '';
  }
  if (!Number.isSafeInteger(value) || (value as number) < LEAST_UNIX_SECONDS) return '';
  return (value as number) < LEAST_UNIX_MS
    ? `: give new Date(${value} * 1000)`
    : `: give new Date(${value})`;
}

/** Numbers from here on are UNIX seconds after 2001, and not a lifetime. */
const LEAST_UNIX_SECONDS = 1e9;
/** Numbers from here on are UNIX milliseconds after 1973, and not seconds before the year 5138. */
const LEAST_UNIX_MS = 1e11;

/** Says why a value is not an instant of expiry. */
export function expiryMessage(name: string, value: unknown): string {
  if (isNever(value)) return `${name} must be a valid Date; got ${shown(value)}: ${everExpires()}`;
  const meant = typeof value === 'string' ? secondsMeant(value) : undefined;
  if (meant === undefined) return dateMessage(name, value);
  const isTooLong = meant > MAX_LIFETIME_SECONDS;
  const hint = isTooLong ? everExpires() : `give new Date(Date.now() + ${meant} * 1000)`;
  return `${dateMessage(name, value)}: ${hint}`;
}

function everExpires(): string {
  return `every token expires, after ${inWords(MAX_LIFETIME_SECONDS)} at the latest`;
}

/** Whether a value was meant to say that a token never expires. */
function isNever(value: unknown): boolean {
  if (typeof value !== 'string') return value === null || value === Number.POSITIVE_INFINITY;
  return /^(?:never|none|forever|infinity|infinite|unlimited|permanent)$/i.test(value);
}

/** Whether a number must be milliseconds: far too large for seconds, and in range as milliseconds. */
function areMilliseconds(value: number, max: number): boolean {
  return value / 1000 <= max && value >= DAY_MS && value >= 10 * max;
}

/**
 * The same error, with the name that its member has in another interface. Messages about a member begin
 * with its name.
 */
export function renamed(error: TokenError, names: Names): TokenError {
  const { code, message, details } = error;
  const member = details?.['member'];
  if (typeof member !== 'string' || !Object.hasOwn(names, member)) return error;
  const name = names[member] as string;
  return new TokenError(code, renameIn(message, member, name), { ...details, member: name });
}

/** A message that begins with the name of a member, with another name. */
export function renameIn(message: string, member: string, name: string): string {
  return message.startsWith(member) ? name + message.slice(member.length) : message;
}
