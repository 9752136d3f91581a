import {
  MAX_HOST_LENGTH,
  MAX_LABEL_LENGTH,
  MAX_METHOD_LENGTH,
  MAX_PATH_LENGTH,
  MAX_PATH_SEGMENTS,
  MAX_PATH_TEMPLATES,
  MAX_REMEMBERED_SCOPE_LENGTH,
  MAX_REMEMBERED_SCOPES,
  MAX_SCOPE_LENGTH,
} from './bounds.ts';
import { DASH, DOT } from './characters.ts';
import { PARSE_MESSAGES, type ParseCode, ScopeError, type ScopeErrorCode } from './errors.ts';

declare const parsed: unique symbol;

/**
 * A parsed scope: method × domain × path, each of which may be a pattern. Frozen. Only
 * {@link parseScope} and the functions built on it make one.
 */
export interface Scope {
  /** `*`, or a method name in upper case. */
  readonly method: string;
  /** `*`, a host in lower case, or `*.` and a parent host. */
  readonly domain: string;
  /**
   * `*` for every path, `$` for the root, or segments joined by `/`, without a slash at either end. A
   * segment `{}` matches any one; a `$` at the end (RFC 9309 section 2.2.3) closes the path.
   */
  readonly path: string;
  /** The canonical text: `<method>:<domain>/<path>`. */
  toString(): string;
  /** The canonical text, so that a scope is a string in JSON. */
  toJSON(): string;
  readonly [parsed]: true;
}

/** A path inside a longer text. Slicing it out would allocate, and slices are slower to read. */
export interface PathText {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** Whether nothing below it is included. Paths of requests are closed. */
  readonly isClosed: boolean;
  /**
   * The segments, as bits, in which a server that decodes `%3F` or `%23` too early would cut off the
   * path of a request and serve another one. No `{}` matches them.
   */
  readonly severed: number;
}

/** The result of {@link safeParseScope}. */
export type ScopeReading =
  | {
      readonly ok: true;
      /** The parsed scope. */
      readonly scope: Scope;
    }
  | {
      readonly ok: false;
      /** What is wrong, for programs. */
      readonly error: ScopeErrorCode;
      /** What is wrong and what would be right, for people. */
      readonly message: string;
      /** The text that was probably meant; never wider. */
      readonly suggestion?: string;
    };

/**
 * Parses one scope strictly: nothing is trimmed, decoded or guessed. The domain is folded to lower
 * case, and the name in a segment `{name}` is dropped.
 *
 * @throws {ScopeError} with the code of the first check that fails and, if the scope can be repaired
 * safely, a `suggestion`
 * @example
 * parseScope('GET:Shop.Example/orders').toString(); // 'GET:shop.example/orders'
 * parseScope('GET:shop.example/orders/{id}$').toString(); // 'GET:shop.example/orders/{}$'
 * parseScope('get:shop.example/orders'); // throws method_invalid, suggestion 'GET:shop.example/orders'
 */
export function parseScope(text: string): Scope {
  const reading = safeParseScope(text);
  if (reading.ok) return reading.scope;
  throw new ScopeError(reading.error, reading.message, reading);
}

/**
 * Parses one scope from any value and never throws. Takes time linear in the length of the text, of
 * which at most 1024 characters are looked at.
 *
 * @example
 * safeParseScope('GET:shop.example/'); // { ok: false, error: 'missing_path', … }
 * safeParseScope(42); // { ok: false, error: 'not_a_string', … }
 */
export function safeParseScope(value: unknown): ScopeReading {
  const scope = parse(value);
  if (typeof scope !== 'string') return { ok: true, scope };
  const shown = isPrintable(value) ? `"${value}" is not a scope: ` : '';
  const message = shown + PARSE_MESSAGES[scope];
  const suggestion = repair(value, scope);
  if (suggestion === undefined) return { ok: false, error: scope, message };
  return {
    ok: false,
    error: scope,
    message: `${message}; did you mean "${suggestion}"?`,
    suggestion,
  };
}

/** Recently parsed scopes: hosts and clients send the same few over and over. */
const recent = new Map<string, Scope>();

/** Like {@link safeParseScope}, with a cache for texts that are likely to come again. */
export function recallScope(value: unknown): ScopeReading {
  const known = recent.get(value as string);
  if (known !== undefined) return { ok: true, scope: known };
  const reading = safeParseScope(value);
  if (!reading.ok) return reading;
  // Not by the caller's text: it may be a slice, which would keep the whole string alive.
  const text = reading.scope.toString();
  if (text.length <= MAX_REMEMBERED_SCOPE_LENGTH) {
    if (recent.size >= MAX_REMEMBERED_SCOPES) recent.clear();
    recent.set(text, reading.scope);
  }
  return reading;
}

/**
 * The scope itself, or the one that a text is parsed to. A scope of another copy of this package is
 * parsed again from its text.
 */
export function toScope(value: Scope | string): Scope {
  return ParsedScope.is(value) ? value : parseScope(foreignText(value) as string);
}

/** Like {@link toScope}, for any value and without throwing. */
export function safeToScope(value: unknown, readText: typeof safeParseScope): ScopeReading {
  return ParsedScope.is(value) ? { ok: true, scope: value } : readText(foreignText(value));
}

/** Whether a value is a scope of this copy of the package or of another one. */
export function isScope(value: unknown): value is Scope {
  return ParsedScope.is(value) || !Object.is(foreignText(value), value);
}

/** Makes a scope of components that are known to be valid, such as those of other scopes. */
export function makeScope(method: string, domain: string, path: string): Scope {
  return new ParsedScope(method, domain, path);
}

/** Whether a value may be shown in a message: short, printable ASCII. */
export function isPrintable(value: unknown): value is string {
  return typeof value === 'string' && /^[ -~]{0,200}$/.test(value);
}

/** Whether a text is a method name: 1 to 32 of A-Z and `-`, no `-` at either end. */
export function isMethodName(text: string): boolean {
  if (text.length < 1 || text.length > MAX_METHOD_LENGTH) return false;
  if (text.charCodeAt(0) === DASH || text.charCodeAt(text.length - 1) === DASH) return false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if ((unit < 0x41 || unit > 0x5a) && unit !== DASH) return false;
  }
  return true;
}

/** Parses a plain host name and folds it to lower case; `undefined` when it is not one. */
export function readHost(text: string): string | undefined {
  const start = text.length > MAX_HOST_LENGTH ? -1 : lastLabelOf(text);
  if (start === -1 || isAddress(text, start)) return undefined;
  return text.toLowerCase();
}

/** Whether a text is one literal segment of a scope's path. */
export function isSegment(text: string): boolean {
  return /^(?!\.+$)[\w\-.~!$&'()+=:@]+$/.test(text);
}

/** The bit of the first segment in a set of segments. Each following segment is the next lower bit. */
export const FIRST_SEGMENT = 0x80000000;

const BRAND = Symbol.for('tokenwright.Scope');

class ParsedScope implements Scope {
  declare readonly [parsed]: true;
  declare readonly method: string;
  declare readonly domain: string;
  declare readonly path: string;
  readonly #text: string;

  constructor(method: string, domain: string, path: string) {
    this.method = method;
    this.domain = domain;
    this.path = path;
    this.#text = `${method}:${domain}/${path}`;
    Object.freeze(this);
  }

  /** By the private field, which neither a lookalike nor a proxy has. */
  static is(value: unknown): value is Scope {
    return typeof value === 'object' && value !== null && #text in value;
  }

  get [BRAND](): true {
    return true;
  }

  toString(): string {
    return this.#text;
  }

  toJSON(): string {
    return this.#text;
  }
}

function foreignText(value: unknown): unknown {
  try {
    const isScope = typeof value === 'object' && value !== null && BRAND in value;
    return isScope ? value.toString() : value;
  } catch {
    return undefined;
  }
}

/** The parsed scope, or the code of the first check that fails. */
function parse(value: unknown): Scope | ParseCode {
  if (typeof value !== 'string') return 'not_a_string';
  if (value === '') return 'empty';
  if (value.length > MAX_SCOPE_LENGTH) return 'too_long';
  if (/[\u0080-\uffff]/.test(value)) return 'non_ascii';
  if (/[^!-~]/.test(value)) return 'illegal_character';

  const colon = value.indexOf(':');
  const method = value.slice(0, colon);
  if (colon < 1 || method.includes('/')) return 'missing_method';
  if (method !== '*') {
    if (method.includes('*')) return 'wildcard_position';
    if (!isMethodName(method)) return 'method_invalid';
  }

  const rest = value.slice(colon + 1);
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(rest)) return 'scheme_present';
  const slash = `${rest}/`.indexOf('/');
  const domain = rest.slice(0, slash);
  const path = rest.slice(slash + 1);
  const code = checkDomain(domain) ?? checkPath(path);
  if (code !== undefined) return code;
  return makeScope(method, domain.toLowerCase(), path.replace(/\{[^}]+/g, '{'));
}

function checkDomain(domain: string): ParseCode | undefined {
  if (domain === '*') return undefined;
  if (domain === '') return 'missing_domain';
  const host = domain.replace(/^\*\./, '');
  if (host.includes('*')) return 'wildcard_position';
  if (domain.includes('@')) return 'domain_userinfo';
  if (domain.startsWith('[')) return 'domain_ip';
  if (domain.includes(':')) return 'domain_port';
  // The limit includes the `*.` of a pattern.
  if (domain.length > MAX_HOST_LENGTH) return 'too_long';
  const start = lastLabelOf(host);
  if (start === -1) return 'domain_invalid';
  return isAddress(host, start) ? 'domain_ip' : undefined;
}

/** A segment `{}`, with a name or without. */
const TEMPLATE = /(?<=^|\/)\{[\w.-]{0,64}\}(?=\/|\$?$)/g;

/** The code of the first check that a path fails. */
export function checkPath(path: string): ParseCode | undefined {
  if (path === '*' || path === '$') return undefined;
  if (path === '') return 'missing_path';
  if (/[?#]/.test(path)) return 'query_or_fragment';
  if (path.includes('%')) return 'percent_encoding';
  const literal = path.replace(TEMPLATE, 'x');
  if (/[{}]/.test(literal)) return 'path_template';
  if (path.includes('*')) return 'wildcard_position';
  if (/^\/|\/\/|\/\$?$/.test(path)) return 'path_empty_segment';
  if (/(?:^|\/)\.+(?:\/|\$?$)/.test(path)) return 'path_dot_segment';
  if (/[^\w\-.~!$&'()+=:@/]/.test(literal)) return 'illegal_character';
  const isLong =
    path.length > MAX_PATH_LENGTH ||
    path.split('/').length > MAX_PATH_SEGMENTS ||
    path.split('{').length > MAX_PATH_TEMPLATES + 1;
  return isLong ? 'too_long' : undefined;
}

/** The kind of each character of a host: 1 letter or digit, 2 hyphen, 3 dot, 0 any other. */
const LABEL_KINDS = /* @__PURE__ */ Uint8Array.from({ length: 128 }, (_, unit) => {
  if (unit === DASH) return 2;
  if (unit === DOT) return 3;
  return /[a-z0-9]/i.test(String.fromCharCode(unit)) ? 1 : 0;
});

/** The start of the last label; -1 unless each is 1 to 63 letters, digits and inner hyphens. */
function lastLabelOf(host: string): number {
  let start = 0;
  let last = 3;
  for (let i = 0; i < host.length; i++) {
    const kind = LABEL_KINDS[host.charCodeAt(i)];
    if (kind !== 1) {
      if (!kind || last === 3 || (kind === 3 && last === 2)) return -1;
      if (kind === 3) {
        if (i - start > MAX_LABEL_LENGTH) return -1;
        start = i + 1;
      }
    }
    last = kind;
  }
  return last === 1 && host.length - start <= MAX_LABEL_LENGTH ? start : -1;
}

/** Whether the WHATWG URL standard takes a host for an IPv4 address: its last label is a number. */
function isAddress(host: string, start: number): boolean {
  return host.charCodeAt(start) <= 0x39 && /^(?:\d+|0x[\da-f]*)$/i.test(host.slice(start));
}

/** The path of a scope without its final `*` or `$`. */
export function pathTextOf({ path }: Pick<Scope, 'path'>): PathText {
  const isClosed = path.endsWith('$');
  const end = path.length - (isClosed || path === '*' ? 1 : 0);
  return { text: path, start: 0, end, isClosed, severed: 0 };
}

/** The path of a scope without the `$` that closes it. */
export function withoutMark(path: string): string {
  return path.endsWith('$') ? path.slice(0, -1) : path;
}

/** The first safe repair that parses. Repairs are not combined. */
function repair(value: unknown, code: ParseCode): string | undefined {
  if (typeof value !== 'string') return undefined;
  for (const text of repairsOf(value, code)) {
    const repaired = parse(text);
    if (typeof repaired !== 'string' && repaired.path !== '*') return repaired.toString();
  }
  return undefined;
}

function repairsOf(text: string, code: ParseCode): string[] {
  if (code === 'method_invalid') {
    const colon = text.indexOf(':');
    return [text.slice(0, colon).toUpperCase() + text.slice(colon)];
  }
  // A literal `$` must not come to the end, where it would close the path.
  if (code === 'wildcard_position') {
    return [text.replace(/(?<!\$)\/\*$/, ''), text.replace(/(?<=\/)\*(?=\/|\$?$)/g, '{}')];
  }
  return code === 'path_empty_segment' ? [text.replace(/(?<!\$)\/$|\/(?=\$$)/, '')] : [];
}
