import {
  MAX_LIFETIME_SECONDS,
  MAX_RATE_SECONDS,
  MAX_REVIEWED_DAYS,
  MIN_PASSWORD_LENGTH,
} from '../../bounds.ts';
import type { FixedAccount } from '../../http/index.ts';
import { parseInstant } from '../../inputs/instant.ts';
import { parseAddress } from '../../limits/addresses.ts';
import { parseDuration } from '../../time/duration.ts';
import { type CliError, usageError } from './errors.ts';

/** A kind of value that a flag or a variable holds. */
export interface Kind<Value> {
  /** For `parseArgs`. */
  readonly flag: { readonly type: 'string' | 'boolean'; readonly multiple?: boolean };
  /** The values that are allowed, in words. */
  readonly values?: string;
  /** The values that are allowed, if they can be listed. */
  readonly choices?: readonly string[];
  /** A default as it is written in a flag. @default its text */
  readonly written?: (value: unknown) => string;
  /**
   * Reads a flag as `parseArgs` gives it, or the text of a variable.
   *
   * @param name of the flag or setting, for messages
   * @throws {CliError} naming what the value should be
   */
  read(given: unknown, name: string): Value;
}

/** Makes a kind from the parser of its text. The parser returns `undefined` for a wrong text. */
function kindOf<Value>(
  requirement: string,
  parse: (text: string) => Value | undefined,
): Kind<Value> {
  return {
    flag: { type: 'string' },
    read(given, name) {
      const value = parse(String(given));
      if (value !== undefined) return value;
      throw usageError(`${name} must be ${requirement}`);
    },
  };
}

export const TEXT: Kind<string> = kindOf('a text', (text) => text);

/** Several texts: a repeated flag, or a variable with commas. */
export const LIST: Kind<readonly string[]> = {
  flag: { type: 'string', multiple: true },
  read: (given) => (Array.isArray(given) ? given : textsIn(String(given))),
};

function textsIn(variable: string): string[] {
  return variable
    .split(',')
    .map((text) => text.trim())
    .filter(Boolean);
}

export const SWITCH: Kind<boolean> = {
  ...kindOf('true or false', (text) => {
    if (/^(?:true|1|on|yes)$/.test(text)) return true;
    return /^(?:false|0|off|no)$/.test(text) ? false : undefined;
  }),
  flag: { type: 'boolean' },
};

/** A folder. Refuses a URL, which would make a folder with a password in its name. */
export const FOLDER: Kind<string> = kindOf('a folder; a URL belongs to --store', (text) =>
  text.includes('://') ? undefined : text,
);

export const HEADER: Kind<string> = kindOf('the name of a header, such as X-Real-IP', (text) =>
  /^[A-Za-z0-9-]{1,100}$/.test(text) ? text : undefined,
);

/** Where to listen. */
export interface Place {
  /** Absent if only a port is given. */
  readonly host?: string;
  readonly port: number;
}

/** A port, with or without a host. */
export const PLACE: Kind<Place> = kindOf(
  'a port from 0 to 65535, with or without a host, such as 9464 or 0.0.0.0:9464',
  (text) => {
    const [, host, digits = ''] = /^(?:(\[[^\]]+\]|[^:\s]+):)?(\d{1,5})$/.exec(text) ?? [];
    const port = Number(digits);
    if (digits === '' || port > 65_535) return undefined;
    return host === undefined ? { port } : { host: host.replace(/[[\]]/g, ''), port };
  },
);

/** A duration: seconds, or a number with a unit. */
export const SECONDS: Kind<number> = kindOf('whole seconds, or like 90d, 12h, 30m', parseSeconds);

/** How long a token may live, in seconds: a duration, from a second to a year. */
export const LIFETIME: Kind<number> = {
  ...kindOf('from 1s to 365d, as whole seconds, or like 90d, 12h, 30m', (text) => {
    const seconds = parseSeconds(text) ?? 0;
    return seconds >= 1 && seconds <= MAX_LIFETIME_SECONDS ? seconds : undefined;
  }),
  values: '1s to 365d',
};

function parseSeconds(text: string): number | undefined {
  return /^\d{1,9}$/.test(text) ? Number(text) : parseDuration(text);
}

export const ADDRESS: Kind<string> = kindOf('an IP address, such as 192.0.2.1', (text) =>
  parseAddress(text) === undefined ? undefined : text,
);

/** A rate: a number of uses, and the duration of the window they count in. */
export const RATE: Kind<{ readonly uses: number; readonly seconds: number }> = kindOf(
  'a number and a time, such as 100/60s; the time is from 1s to 24h',
  (text) => {
    const [, digits = '', time = ''] = /^([1-9]\d{0,15})\/(\w+)$/.exec(text) ?? [];
    const seconds = parseSeconds(time) ?? 0;
    const isWindow = seconds >= 1 && seconds <= MAX_RATE_SECONDS;
    return isWindow ? { uses: Number(digits), seconds } : undefined;
  },
);

/**
 * An age: a number with its unit. A bare number would mean seconds, though people think of days.
 */
export const AGE: Kind<number> = {
  ...SECONDS,
  read(given, name) {
    const text = String(given);
    const seconds = parseDuration(text);
    if (seconds !== undefined) return seconds;
    const hint = /^\d{1,9}$/.test(text) ? `: for days write ${text}d` : '';
    throw usageError(`${name} must be a number with its unit, like 90d, 12h or 30m${hint}`);
  },
};

/** How many days old records are kept; `off` keeps them forever. */
export const KEPT_DAYS: Kind<number | 'off'> = {
  ...kindOf(`from 1d to ${MAX_REVIEWED_DAYS}d, in whole days, or off`, (text) => {
    if (text === 'off') return text;
    const days = /^\d{1,4}d$/.test(text) ? Number.parseInt(text, 10) : 0;
    return days >= 1 && days <= MAX_REVIEWED_DAYS ? days : undefined;
  }),
  values: `1d to ${MAX_REVIEWED_DAYS}d, or off`,
  written: (days) => (days === 'off' ? 'off' : `${days}d`),
};

/** An instant: a date (midnight UTC), a time with its zone, or UNIX seconds. */
export const TIME: Kind<Date> = kindOf(
  'like 2027-01-31, 2027-01-31T12:00:00Z or UNIX seconds',
  (text) => {
    if (/^\d{1,12}$/.test(text)) return new Date(Number(text) * 1000);
    const time = /^[\d-]{10}$/.test(text) ? `${text}T00:00:00Z` : text;
    return parseInstant(time.replace(/T\d\d:\d\d(?=Z|[+-])/, '$&:00'));
  },
);

export const ACCOUNTS: Kind<readonly FixedAccount[]> = {
  ...LIST,
  read(given, name) {
    const texts = LIST.read(given, name);
    const isVariable = !Array.isArray(given);
    const accounts = texts.map((text, index) =>
      readUserAndPassword(
        text,
        texts.length === 1 ? name : `entry ${index + 1} of ${name}`,
        isVariable && texts.length > 1 ? afterComma : usageError,
      ),
    );
    refuseRepeated(accounts, name);
    return accounts;
  },
};

/** Makes the error for a text that may be half of a password with a comma. */
function afterComma(message: string): CliError {
  return usageError(
    `${message}; a comma separates accounts in a variable, so no password may hold one: give it in --account-file`,
  );
}

/** @throws {CliError} naming the user that is given twice */
export function refuseRepeated(accounts: readonly FixedAccount[], name: string): void {
  const seen = new Set<string>();
  const isRepeated = (name: string) => seen.size === seen.add(name).size;
  const repeated = accounts.map(({ username }) => username).find(isRepeated);
  if (repeated !== undefined) throw usageError(`${name}: ${repeated} is given twice`);
}

export function choice<const Choices extends readonly string[]>(
  ...choices: Choices
): Kind<Choices[number]> & { readonly choices: Choices } {
  const [only] = choices;
  const values =
    choices.length === 1 ? `${only}` : `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`;
  return { ...kindOf(values, (text) => choices.find((each) => each === text)), values, choices };
}

export function wholeNumber(min: number, max: number): Kind<number> {
  const values = `${min} to ${max}`;
  const parse = (text: string) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return number >= min && number <= max ? number : undefined;
  };
  return { ...kindOf(`a whole number from ${values}`, parse), values };
}

/** Reads a flag that may be absent. */
export function readFlag<Value>(
  kind: Kind<Value>,
  flag: string,
  given: unknown,
): Value | undefined {
  return given === undefined ? undefined : kind.read(given, `--${flag}`);
}

/**
 * Reads `user:password`.
 *
 * @param name of its origin, for messages. They never repeat the text, which holds a password
 */
export function readUserAndPassword(
  text: string,
  name: string,
  toError = usageError,
): { readonly username: string; readonly password: string } {
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) throw toError(`${name} must be user:password`);
  const password = text.slice(colon + 1);
  if ([...password].length >= MIN_PASSWORD_LENGTH) {
    return { username: text.slice(0, colon), password };
  }
  throw toError(`${name} must have a password of at least ${MIN_PASSWORD_LENGTH} characters`);
}
