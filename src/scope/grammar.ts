/**
 * The codes of {@link ScopeError}: stable, public names.
 *
 * The codes from `not_a_string` to `path_dot_segment` are failures of one scope, in the order of
 * the checks; the rest speak of a list of scopes or of a catalog.
 */
export type ScopeErrorCode =
  | 'not_a_string'
  | 'empty'
  | 'too_long'
  | 'non_ascii'
  | 'illegal_character'
  | 'missing_method'
  | 'wildcard_position'
  | 'method_invalid'
  | 'scheme_present'
  | 'missing_domain'
  | 'domain_userinfo'
  | 'domain_ip'
  | 'domain_port'
  | 'domain_invalid'
  | 'missing_path'
  | 'query_or_fragment'
  | 'percent_encoding'
  | 'path_template'
  | 'path_empty_segment'
  | 'path_dot_segment'
  | 'scopes_required'
  | 'too_many_scopes'
  | 'scope_invalid'
  | 'scope_unmatched'
  | 'catalog_empty'
  | 'catalog_not_concrete';

/** What is known of one refused member of a list. */
export interface RefusedScope {
  /** The member as it was sent, or its place (`scopes[3]`) where it cannot be shown. */
  readonly scope: string;
  /** Why it does not parse; absent where it parses and meets nothing. */
  readonly code?: ScopeErrorCode;
  /** The same scope repaired, where that is safe. */
  readonly suggestion?: string;
  /** The known scopes most like it, the best first. */
  readonly nearest?: readonly string[];
}

/**
 * Says why a scope, a list of scopes or a catalog was refused. The only error that
 * `tokenwright/scope` throws.
 *
 * @example
 * try {
 *   parseScope('get:shop.example/orders');
 * } catch (error) {
 *   if (error instanceof ScopeError) console.log(error.code, error.suggestion);
 *   // 'method_invalid', 'GET:shop.example/orders'
 * }
 */
export class ScopeError extends Error {
  /** What errors of this kind are called, in every copy of this package. */
  override readonly name: 'ScopeError';
  /** What is wrong, for programs. */
  readonly code: ScopeErrorCode;
  /** The same scope repaired, where that is safe; never wider than what was written. */
  declare readonly suggestion?: string;
  /** The refused members of a list. */
  declare readonly scopes?: readonly string[];
  /** The same members with what is known of each. */
  declare readonly refused?: readonly RefusedScope[];

  /** Made by this module; an error of yours is better of a class of yours. */
  constructor(
    code: ScopeErrorCode,
    message: string,
    more: {
      readonly suggestion?: string;
      readonly refused?: readonly RefusedScope[];
    } = {},
  ) {
    super(message);
    // A field with a value would cost the class its name in CommonJS: as it is built, `_class`.
    this.name = 'ScopeError';
    this.code = code;
    if (more.suggestion !== undefined) this.suggestion = more.suggestion;
    if (more.refused !== undefined) {
      this.refused = more.refused;
      this.scopes = more.refused.map((member) => member.scope);
    }
  }
}

declare const parsed: unique symbol;

/**
 * A parsed scope: method × domain × path, each of which may be a wildcard. Made by
 * {@link parseScope} alone, frozen, and the same as its canonical text.
 */
export interface Scope {
  /** `*`, or a method name in upper case. */
  readonly method: string;
  /** `*`, a host in lower case, or `*.` and a parent host. */
  readonly domain: string;
  /** `*`, or segments joined by `/`, without a slash at either end. */
  readonly path: string;
  /** The canonical text: `<method>:<domain>/<path>`. */
  toString(): string;
  /** The canonical text, so that a scope is a string in JSON. */
  toJSON(): string;
  readonly [parsed]: true;
}

/** A path where it stands in another text, since a piece that is cut out is slower to read. */
export interface PathText {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** What {@link safeParseScope} answers. */
export type ScopeReading =
  | {
      readonly ok: true;
      /** What was read. */
      readonly scope: Scope;
    }
  | {
      readonly ok: false;
      /** What is wrong, for programs. */
      readonly error: ScopeErrorCode;
      /** What is wrong and what would be right, for people. */
      readonly message: string;
      /** The text as it was probably meant; never wider. */
      readonly suggestion?: string;
    };

const MAX_SCOPE_LENGTH = 1024;
export const MAX_PATH_LENGTH = 512;
export const MAX_PATH_SEGMENTS = 32;
const MAX_METHOD_LENGTH = 32;
const MAX_HOST_LENGTH = 253;
const MAX_PARENT_LENGTH = 251;
const MAX_LABEL_LENGTH = 63;

/**
 * Reads one scope, strictly: nothing is trimmed, decoded or guessed, and only the ASCII case of the
 * domain is folded.
 *
 * @throws {ScopeError} with the code of the first check that fails and, where the scope can be
 * repaired safely, a `suggestion`
 * @example
 * parseScope('GET:Shop.Example/orders').toString(); // 'GET:shop.example/orders'
 * parseScope('get:shop.example/orders'); // throws method_invalid, suggestion 'GET:shop.example/orders'
 */
export function parseScope(text: string): Scope {
  const reading = safeParseScope(text);
  if (reading.ok) return reading.scope;
  const { error, message, suggestion } = reading;
  throw new ScopeError(error, message, suggestion === undefined ? {} : { suggestion });
}

/**
 * Reads one scope from any value and never throws. Takes time linear in the length of the text, of
 * which at most 1024 characters are looked at.
 *
 * @example
 * safeParseScope('GET:shop.example/'); // { ok: false, error: 'missing_path', … }
 * safeParseScope(42); // { ok: false, error: 'not_a_string', … }
 */
export function safeParseScope(value: unknown): ScopeReading {
  const scope = read(value);
  if (typeof scope !== 'string') return { ok: true, scope };
  const shown = isPrintable(value) ? `"${value}" is not a scope: ` : '';
  const failure = {
    ok: false,
    error: scope,
    message: shown + MESSAGES[scope],
  } as const;
  const suggestion = repair(value, scope);
  if (suggestion === undefined) return failure;
  return {
    ...failure,
    message: `${failure.message}; did you mean "${suggestion}"?`,
    suggestion,
  };
}

/** Scopes that were read of late: hosts and clients name a few again and again. */
const recent = new Map<string, Scope>();
const MAX_RECENT = 1000;
const MAX_RECENT_LENGTH = 256;

/** As {@link safeParseScope}, for texts that are likely to come again. */
export function recallScope(value: unknown): ScopeReading {
  const known = recent.get(value as string);
  if (known !== undefined) return { ok: true, scope: known };
  const reading = safeParseScope(value);
  if (!reading.ok) return reading;
  // By its own text: that of the caller may be a part of a longer one, which would be kept as well.
  const text = reading.scope.toString();
  if (text.length <= MAX_RECENT_LENGTH) {
    if (recent.size >= MAX_RECENT) recent.clear();
    recent.set(text, reading.scope);
  }
  return reading;
}

/**
 * Takes what every function of this module takes: a scope, or a text to be parsed strictly. A scope
 * of another copy of this package is read again from its text.
 */
export function toScope(value: Scope | string): Scope {
  if (ParsedScope.is(value)) return value;
  return parseScope(typeof value === 'string' ? value : (foreignText(value) as string));
}

/** Whether a value is a scope, also one of another copy of this package. */
export function isScope(value: unknown): value is Scope {
  return ParsedScope.is(value) || !Object.is(foreignText(value), value);
}

/** Puts components together that are known to be valid, as those of other scopes are. */
export function makeScope(method: string, domain: string, path: string): Scope {
  return new ParsedScope(method, domain, path) as unknown as Scope;
}

/** Whether a text may stand in a message: short, printable ASCII. */
export function isPrintable(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > 200) return false;
  for (let i = 0; i < value.length; i++) {
    const unit = value.charCodeAt(i);
    if (unit < 0x20 || unit > 0x7e) return false;
  }
  return true;
}

/** Whether a text is a `name` of the grammar: 1 to 32 of A-Z and `-`, no `-` at either end. */
export function isMethodName(text: string): boolean {
  if (text.length < 1 || text.length > MAX_METHOD_LENGTH) return false;
  if (text.charCodeAt(0) === DASH || text.charCodeAt(text.length - 1) === DASH) return false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if ((unit < 0x41 || unit > 0x5a) && unit !== DASH) return false;
  }
  return true;
}

/** Reads a plain host, folded to lower case; `undefined` when it is none. */
export function readHost(text: string): string | undefined {
  if (text.length > MAX_HOST_LENGTH) return undefined;
  return hasValidLabels(text) && !isAddress(text) ? text.toLowerCase() : undefined;
}

/** Whether a text is one segment of a scope's path. */
export function isSegment(text: string): boolean {
  return text !== '' && !isDots(text) && isPathText(text) && !text.includes('/');
}

const BRAND = Symbol.for('tokenwright.Scope');
const DASH = 0x2d;

class ParsedScope {
  readonly method: string;
  readonly domain: string;
  readonly path: string;
  readonly #text: string;

  constructor(method: string, domain: string, path: string) {
    this.method = method;
    this.domain = domain;
    this.path = path;
    this.#text = `${method}:${domain}/${path}`;
    Object.freeze(this);
  }

  /** By the private field, which nothing else can have, nor a proxy show. */
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

type ParseCode = Exclude<
  ScopeErrorCode,
  | 'scopes_required'
  | 'too_many_scopes'
  | 'scope_invalid'
  | 'scope_unmatched'
  | 'catalog_empty'
  | 'catalog_not_concrete'
>;

const MESSAGES: Readonly<Record<ParseCode, string>> = {
  not_a_string: 'a scope must be a string like "GET:shop.example/orders"',
  empty: 'a scope must not be empty; write one like "GET:shop.example/orders"',
  too_long:
    'it is too long: 1024 characters in all, 253 in the domain, 512 and 32 segments in the path',
  non_ascii: 'a scope is ASCII only; write a domain in its xn-- form',
  illegal_character: 'it holds a space, a control character or another that no scope may hold',
  missing_method: 'it must begin with a method and a colon, as in "GET:shop.example/orders"',
  wildcard_position:
    'a "*" may only be the whole method, the whole domain, the "*." before a domain, or the whole path',
  method_invalid: 'the method must be "*" or a name in upper case, like GET or M-SEARCH',
  scheme_present: 'it must hold no scheme: write "GET:shop.example/orders", not "GET:https://…"',
  missing_domain: 'the domain is missing: write "GET:shop.example/orders", or "*" for every domain',
  domain_userinfo: 'the domain must hold no user name and no "@"',
  domain_ip: 'the domain must be a name, not an IP address',
  domain_port: 'the domain must hold no port and no ":"',
  domain_invalid:
    'the domain must be labels of a-z, 0-9 and inner hyphens, 1 to 63 characters each, joined by dots',
  missing_path: 'the path is missing: write "GET:shop.example/orders", or "*" for every path',
  query_or_fragment: 'the path must hold no "?" and no "#"',
  percent_encoding: 'the path must hold no "%"',
  path_template:
    'the path must hold no {template}: end it before the template, what is below counts',
  path_empty_segment: 'the path must hold no empty segment and no slash at its end',
  path_dot_segment: 'the path must hold no segment of dots only',
};

/** The parser: a scope, or the code of the first check that fails. */
function read(value: unknown): Scope | ParseCode {
  if (typeof value !== 'string') return 'not_a_string';
  if (value === '') return 'empty';
  if (value.length > MAX_SCOPE_LENGTH) return 'too_long';
  const illegal = checkCharacters(value);
  if (illegal !== undefined) return illegal;

  const colon = value.indexOf(':');
  const firstSlash = value.indexOf('/');
  if (colon < 1 || (firstSlash !== -1 && firstSlash < colon)) return 'missing_method';
  const method = value.slice(0, colon);
  if (method !== '*') {
    if (method.includes('*')) return 'wildcard_position';
    if (!isMethodName(method)) return 'method_invalid';
  }

  const rest = value.slice(colon + 1);
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(rest)) return 'scheme_present';
  const slash = rest.indexOf('/');
  const domain = readDomain(slash === -1 ? rest : rest.slice(0, slash));
  if (!domain.ok) return domain.error;

  const path = slash === -1 ? '' : rest.slice(slash + 1);
  const bad = path === '*' ? undefined : checkPath(path);
  return bad ?? makeScope(method, domain.text, path);
}

function checkCharacters(text: string): ParseCode | undefined {
  let illegal = false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) return 'non_ascii';
    if (unit <= 0x20 || unit === 0x7f) illegal = true;
  }
  return illegal ? 'illegal_character' : undefined;
}

function readDomain(
  text: string,
):
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly error: ParseCode } {
  if (text === '*') return { ok: true, text };
  const isParent = text.startsWith('*.');
  const host = isParent ? text.slice(2) : text;
  const error = checkHost(text, host, isParent ? MAX_PARENT_LENGTH : MAX_HOST_LENGTH);
  return error === undefined ? { ok: true, text: text.toLowerCase() } : { ok: false, error };
}

function checkHost(domain: string, host: string, maxLength: number): ParseCode | undefined {
  if (domain === '') return 'missing_domain';
  if (host.includes('*')) return 'wildcard_position';
  if (domain.includes('@')) return 'domain_userinfo';
  if (domain.startsWith('[')) return 'domain_ip';
  if (domain.includes(':')) return 'domain_port';
  if (host.length > maxLength) return 'too_long';
  if (!hasValidLabels(host)) return 'domain_invalid';
  return isAddress(host) ? 'domain_ip' : undefined;
}

function hasValidLabels(host: string): boolean {
  let start = 0;
  for (let i = 0; i <= host.length; i++) {
    const unit = i < host.length ? host.charCodeAt(i) : DOT;
    if (unit === DOT) {
      const length = i - start;
      if (length < 1 || length > MAX_LABEL_LENGTH) return false;
      if (host.charCodeAt(start) === DASH || host.charCodeAt(i - 1) === DASH) return false;
      start = i + 1;
    } else if (!isLabelUnit(unit)) {
      return false;
    }
  }
  return true;
}

const DOT = 0x2e;

function isLabelUnit(unit: number): boolean {
  const folded = unit | 0x20;
  return (folded >= 0x61 && folded <= 0x7a) || (unit >= 0x30 && unit <= 0x39) || unit === DASH;
}

/** By its last label: what the WHATWG URL standard reads as an IPv4 address ("ends in a number"). */
function isAddress(host: string): boolean {
  const start = host.lastIndexOf('.') + 1;
  if (host.charCodeAt(start) > 0x39) return false;
  return /^(?:[0-9]+|0x[0-9a-f]*)$/i.test(host.slice(start));
}

function checkPath(path: string): ParseCode | undefined {
  if (path === '') return 'missing_path';
  if (/[?#]/.test(path)) return 'query_or_fragment';
  if (path.includes('%')) return 'percent_encoding';
  if (/[{}]/.test(path)) return 'path_template';
  if (path.includes('*')) return 'wildcard_position';
  const segments = path.split('/');
  if (segments.includes('')) return 'path_empty_segment';
  if (segments.some(isDots)) return 'path_dot_segment';
  if (!isPathText(path)) return 'illegal_character';
  const isLong = path.length > MAX_PATH_LENGTH || segments.length > MAX_PATH_SEGMENTS;
  return isLong ? 'too_long' : undefined;
}

function isDots(segment: string): boolean {
  return /^\.+$/.test(segment);
}

/** The characters `pc` of the grammar, and the slash between segments. */
function isPathText(text: string): boolean {
  return /^[A-Za-z0-9\-._~!$&'()+=:@/]+$/.test(text);
}

/** The three repairs that are safe. They do not combine, and what they give must itself parse. */
function repair(value: unknown, code: ParseCode): string | undefined {
  if (typeof value !== 'string') return undefined;
  const repaired = read(repairText(value, code));
  if (typeof repaired === 'string' || repaired.path === '*') return undefined;
  return repaired.toString();
}

function repairText(text: string, code: ParseCode): string | undefined {
  if (code === 'method_invalid') {
    const colon = text.indexOf(':');
    return text.slice(0, colon).toUpperCase() + text.slice(colon);
  }
  if (code === 'wildcard_position' && text.endsWith('/*')) return text.slice(0, -2);
  if (code === 'path_empty_segment' && text.endsWith('/')) return text.slice(0, -1);
  return undefined;
}
