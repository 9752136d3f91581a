import { MAX_PATH_LENGTH, MAX_PATH_SEGMENTS, MAX_TARGET_LENGTH } from './bounds.ts';
import { DOT, OPENING_BRACE, QUESTION_MARK, SLASH } from './characters.ts';
import {
  checkPath,
  FIRST_SEGMENT,
  isMethodName,
  isSegment,
  makeScope,
  type PathText,
  readHost,
  type Scope,
} from './grammar.ts';

/** A request to be checked. */
export interface ScopeRequest {
  /** The method in upper case. */
  readonly method: string;
  /** The configured name of the guarded service; never a raw `Host` header. */
  readonly domain: string;
  /** The raw request target in origin form, as it arrived: `/orders/7?x=1` (RFC 9112 section 3.2.1). */
  readonly target: string;
}

/**
 * Why a request is refused before any scope is checked; with `path_several_routes` after that: some
 * servers take it to another entry of the catalog, and the scopes cover only some of these entries.
 */
export type RequestReason =
  | 'method_invalid'
  | 'domain_invalid'
  | 'path_too_long'
  | 'path_not_absolute'
  | 'path_fragment'
  | 'path_backslash'
  | 'path_illegal_character'
  | 'path_bad_encoding'
  | 'path_empty_segment'
  | 'path_encoded_slash'
  | 'path_encoded_control'
  | 'path_parameter'
  | 'path_dot_segment'
  | 'path_double_encoding'
  | 'path_several_routes';

declare const unambiguous: unique symbol;

/** Marks what only {@link readRequest} makes. Has no other members, so that messages do not ask for them. */
export interface Unambiguous {
  readonly [unambiguous]: true;
}

/**
 * A request that has only one meaning. Made only by {@link readRequest} and by `catalog.readRequest`.
 * The latter finds the entries of the catalog that servers may take it to. No `{}` of a scope matches
 * the literal segments of such an entry.
 */
export interface ReadRequest extends Unambiguous {
  /** In upper case. */
  readonly method: string;
  /** In lower case. */
  readonly domain: string;
  /** Segments joined by `/`, in RFC 3986 normal form, without a slash at either end; `''` is the root. */
  readonly path: string;
}

/** The result of {@link readRequest}. */
export type RequestReading =
  | {
      readonly ok: true;
      /** For `allows`, `explain` and `attribute`. */
      readonly request: ReadRequest;
    }
  | {
      readonly ok: false;
      /** Why it is ambiguous or invalid. */
      readonly reason: RequestReason;
    };

/**
 * Reads a request once, to check it against several sets. Refuses, and never normalizes, a target that
 * two servers could interpret differently. Never throws. Takes time linear in the length of the
 * target, of which at most 8192 characters are looked at.
 *
 * @example
 * readRequest({ method: 'GET', domain: 'shop.example', target: '/orders/../admin' });
 * // { ok: false, reason: 'path_dot_segment' }
 */
export function readRequest(request: ScopeRequest): RequestReading {
  return readRoutedRequest(request, undefined);
}

/** The routes of a service, as a catalog knows them. */
export interface Routes {
  /** The most specific entry that covers a request. */
  attribute(request: ReadRequest): Scope | undefined;
  /** Whether a scope that covers a request also covers all candidates. False if that takes more work. */
  isSettled(request: ReadRequest, by: Scope): boolean;
  /** All ways in which servers may read a request. At least one; scopes must cover each of them. */
  candidates(request: ReadRequest): readonly Candidate[];
}

/** A way in which servers may read a request. */
export interface Candidate {
  /** With the literals of its entry as the entry writes them. */
  readonly path: PathText;
  /** The literal segments of its entry, as bits. No `{}` of a scope matches them. */
  readonly named: number;
}

/** The path of a request inside the text that it was read from. */
export interface RequestPath extends PathText {
  /** The path as it was sent, without a slash at either end, if it is not the text. */
  readonly written: string | undefined;
}

/** Like {@link readRequest}, for a service whose routes are known. */
export function readRoutedRequest(
  request: ScopeRequest,
  routes: Routes | undefined,
): RequestReading {
  let method: unknown;
  let domain: unknown;
  let target: unknown;
  try {
    ({ method, domain, target } = request);
  } catch {
    // A hostile getter or proxy; refused below.
  }
  if (typeof method !== 'string' || !isMethodName(method)) return refuse('method_invalid');
  const host = typeof domain === 'string' ? readHost(domain) : undefined;
  if (host === undefined) return refuse('domain_invalid');
  const path = readTarget(target);
  if (!path.ok) return path;
  return { ok: true, request: new UnambiguousRequest(method, host, path, routes) };
}

/** Whether a value was made by {@link readRequest}. */
export function isReadRequest(value: unknown): value is ReadRequest {
  return UnambiguousRequest.is(value);
}

/** Reads a request unless it was read before. */
export function readOnce(request: ScopeRequest | Unambiguous): RequestReading {
  return isReadRequest(request) ? { ok: true, request } : readRequest(request as ScopeRequest);
}

/** The path of a request inside the text that it was read from. */
export function pathTextOfRequest(request: ReadRequest): RequestPath {
  return UnambiguousRequest.pathTextOf(request);
}

/** The routes that a request was read with. */
export function routesOfRequest(request: ReadRequest): Routes | undefined {
  return UnambiguousRequest.routesOf(request);
}

/** Whether the path of a request ends in a slash. That of the root does. */
export function hasTrailingSlash({ text, start, end }: PathText): boolean {
  return start === end || text.charCodeAt(end) === SLASH;
}

/** The ways in which servers may read a request that was read with routes. Computed once. */
export function candidatesOf(request: ReadRequest): readonly Candidate[] {
  return UnambiguousRequest.candidatesOf(request);
}

/** The request with these routes, unless it was read with others. */
export function routed(request: ReadRequest, routes: Routes | undefined): ReadRequest {
  if (routes === undefined || routesOfRequest(request) !== undefined) return request;
  const { method, domain } = request;
  return new UnambiguousRequest(method, domain, pathTextOfRequest(request), routes);
}

/** The segments of a path that are `{}`, or those that are not, as bits. */
export function segmentBits(path: string, areTemplates: boolean): number {
  let bits = 0;
  let position = 0;
  for (let at = 0; ; position++) {
    if ((path.charCodeAt(at) === OPENING_BRACE) === areTemplates)
      bits |= FIRST_SEGMENT >>> position;
    at = path.indexOf('/', at) + 1;
    if (at === 0) return bits;
  }
}

/**
 * The narrowest scope that allows a request: its path, closed. A segment that no scope can contain
 * becomes `{}`. A path that is too long for a scope is cut and left open.
 */
export function scopeOfRequest(request: ReadRequest): Scope {
  const { method, domain, path } = request;
  const written = path === '' ? [] : path.split('/');
  const segments = written
    .slice(0, Math.clz32(pathTextOfRequest(request).severed))
    .map((one) => (isSegment(one) && one.length < MAX_PATH_LENGTH ? one : '{}'));
  for (let end = segments.length === written.length ? '$' : ''; ; end = '') {
    const text = segments.join('/') + end || '*';
    // An open path must not end in a literal `$`, which would close it.
    const isMeant = text.endsWith('$') === (end === '$');
    if (isMeant && checkPath(text) === undefined) return makeScope(method, domain, text);
    segments.pop();
  }
}

/** Immutable, because decisions depend on it. */
class UnambiguousRequest implements ReadRequest {
  declare readonly [unambiguous]: true;
  readonly #method: string;
  readonly #domain: string;
  readonly #path: RequestPath;
  readonly #routes: Routes | undefined;
  #candidates: readonly Candidate[] | undefined;

  constructor(method: string, domain: string, path: RequestPath, routes: Routes | undefined) {
    this.#method = method;
    this.#domain = domain;
    this.#path = path;
    this.#routes = routes;
  }

  static is(value: unknown): value is ReadRequest {
    return typeof value === 'object' && value !== null && #path in value;
  }

  static pathTextOf(request: ReadRequest): RequestPath {
    return (request as UnambiguousRequest).#path;
  }

  static routesOf(request: ReadRequest): Routes | undefined {
    return (request as UnambiguousRequest).#routes;
  }

  static candidatesOf(request: ReadRequest): readonly Candidate[] {
    const read = request as UnambiguousRequest;
    read.#candidates ??= read.#routes?.candidates(read) ?? [{ path: read.#path, named: 0 }];
    return read.#candidates;
  }

  get method(): string {
    return this.#method;
  }

  get domain(): string {
    return this.#domain;
  }

  get path(): string {
    const { text, start, end } = this.#path;
    return text.slice(start, end);
  }
}

type PathReading = ({ readonly ok: true } & RequestPath) | ReturnType<typeof refuse>;

function refuse(reason: RequestReason): {
  readonly ok: false;
  readonly reason: RequestReason;
} {
  return { ok: false, reason };
}

function readTarget(target: unknown): PathReading {
  if (typeof target !== 'string') return refuse('path_not_absolute');
  if (target.length > MAX_TARGET_LENGTH) return refuse('path_too_long');
  if (target.charCodeAt(0) !== SLASH) return refuse('path_not_absolute');
  const end = plainEnd(target);
  if (end === 0 || target.includes('#', end)) return readUnusual(target);
  const isSlashed = target.charCodeAt(end - 1) === SLASH;
  return {
    ok: true,
    text: target,
    start: 1,
    end: isSlashed && end > 1 ? end - 1 : end,
    isClosed: true,
    severed: 0,
    written: undefined,
  };
}

const PLAIN_CHARACTER = 1;

/**
 * The end of the path of a target if it is plain: only characters that need no decoding, no empty
 * segment, none of dots only; else 0. Most paths are plain and cost a single pass without allocation.
 */
function plainEnd(target: string): number {
  let isOnlyDots = true;
  let end = 1;
  for (; end < target.length; end++) {
    const kind = CHARACTER_KINDS[target.charCodeAt(end)];
    if (kind === PLAIN_CHARACTER) {
      isOnlyDots = false;
    } else if (kind === SLASH) {
      if (isOnlyDots) return 0;
      isOnlyDots = true;
    } else if (kind === QUESTION_MARK) {
      break;
    } else if (kind !== DOT) {
      return 0;
    }
  }
  return isOnlyDots && target.charCodeAt(end - 1) !== SLASH ? 0 : end;
}

/**
 * The kind of each character of a path; 0 for unusual ones. Plain is RFC 3986 `pchar` without `%` and
 * `;`, and the four characters that `fetch` does not encode.
 */
const CHARACTER_KINDS = Uint8Array.from({ length: 128 }, (_, unit) => {
  if (unit === SLASH || unit === DOT || unit === QUESTION_MARK) return unit;
  return /[\w\-~!$&'()*+,=:@|[\]^]/.test(String.fromCharCode(unit)) ? PLAIN_CHARACTER : 0;
});

/** Makes the checks one by one, in the documented order of their reasons. */
function readUnusual(target: string): PathReading {
  if (target.includes('#')) return refuse('path_fragment');
  const [path] = target.split('?', 1) as [string];
  if (path.includes('\\')) return refuse('path_backslash');
  if (/[^\w\-.~!$&'()*+,;=:@|[\]^%/]/.test(path)) return refuse('path_illegal_character');
  if (/%(?![\dA-Fa-f]{2})/.test(path)) return refuse('path_bad_encoding');
  if (path.includes('//')) return refuse('path_empty_segment');
  const written = path.replace(/\/$/, '').slice(1);
  const segments = written.split('/');
  let severed = 0;
  for (const [position, segment] of segments.entries()) {
    const reason = checkSegment(segment);
    if (reason !== undefined) return refuse(reason);
    // Cutting off the end of the last segment leaves the same route, unless it leaves nothing.
    const cut = position === segments.length - 1 ? /^%(?:3F|23)/i : /%(?:3F|23)/i;
    if (position < MAX_PATH_SEGMENTS && cut.test(segment)) severed |= FIRST_SEGMENT >>> position;
  }
  const normal = segments.map(normalize).join('/');
  const text = path.endsWith('/') ? `${normal}/` : normal;
  return { ok: true, text, start: 0, end: normal.length, isClosed: true, severed, written };
}

function checkSegment(segment: string): RequestReason | undefined {
  const decoded = decode(segment);
  if (decoded === undefined) return 'path_bad_encoding';
  if (/[/\\]/.test(decoded)) return 'path_encoded_slash';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f-\u009f]/.test(decoded)) return 'path_encoded_control';
  if (decoded.includes(';')) return 'path_parameter';
  // Character by character: ordering combining marks takes more than linear time, and is not needed.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the whole of ASCII
  const compatible = decoded.replace(/[^\u0000-\u007f]/gu, (one) => one.normalize('NFKC'));
  if (/[/\\]/.test(compatible)) return 'path_encoded_slash';
  if (/^\.+$/.test(compatible) || /^[. ]+(?:[?#]|$)/.test(decoded)) return 'path_dot_segment';
  return /%[\dA-Fa-f]{2}/.test(decoded) ? 'path_double_encoding' : undefined;
}

/** `undefined` when the text is not valid percent-encoded UTF-8. */
export function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** RFC 3986 section 6.2.2: decodes unreserved characters, folds other hex digits to upper case. */
function normalize(segment: string): string {
  return segment.replace(/%[\dA-Fa-f]{2}/g, (triplet) => {
    const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
    return /[\w\-.~]/.test(character) ? character : triplet.toUpperCase();
  });
}
