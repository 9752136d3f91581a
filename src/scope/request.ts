import {
  isMethodName,
  isSegment,
  MAX_PATH_LENGTH,
  MAX_PATH_SEGMENTS,
  makeScope,
  type PathText,
  readHost,
  type Scope,
} from './grammar.ts';

/** A request as it is asked about. */
export interface ScopeRequest {
  /** The method in upper case. */
  readonly method: string;
  /** The name that the guarded service is configured with; never a raw `Host` header. */
  readonly domain: string;
  /** The raw request target in origin form, as it arrived: `/orders/7?x=1` (RFC 9112 section 3.2.1). */
  readonly target: string;
}

/** Why a request is refused before any scope is looked at. */
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
  | 'path_double_encoding';

declare const unambiguous: unique symbol;

/** A request that was found to mean one thing only. Made by {@link readRequest} alone. */
export interface ReadRequest {
  /** In upper case. */
  readonly method: string;
  /** In lower case. */
  readonly domain: string;
  /** Segments joined by `/`, in RFC 3986 normal form, without a slash at either end; `''` is the root. */
  readonly path: string;
  readonly [unambiguous]: true;
}

/** What {@link readRequest} answers. */
export type RequestReading =
  | {
      readonly ok: true;
      /** For `allows`, `explain` and `attribute`. */
      readonly request: ReadRequest;
    }
  | {
      readonly ok: false;
      /** Why it is ambiguous, or none. */
      readonly reason: RequestReason;
    };

const MAX_TARGET_LENGTH = 8192;

/**
 * Reads a request once, so that several sets can be asked about it. What could mean two things to
 * two servers is refused, never normalized. Never throws; linear in the length of the target, of
 * which at most 8192 characters are looked at.
 *
 * @example
 * readRequest({ method: 'GET', domain: 'shop.example', target: '/orders/../admin' });
 * // { ok: false, reason: 'path_dot_segment' }
 */
export function readRequest(request: ScopeRequest): RequestReading {
  const { method, domain, target } = fieldsOf(request);
  if (typeof method !== 'string' || !isMethodName(method)) return refuse('method_invalid');
  const host = hostOf(domain);
  if (host === undefined) return refuse('domain_invalid');
  const path = readTarget(target);
  if (!path.ok) return path;
  return {
    ok: true,
    request: new UnambiguousRequest(method, host, path) as unknown as ReadRequest,
  };
}

/** Whether a value was made by {@link readRequest}. */
export function isReadRequest(value: unknown): value is ReadRequest {
  return UnambiguousRequest.is(value);
}

/** The path of a request in the text that it was read from. */
export function pathTextOfRequest(request: ReadRequest): PathText {
  return UnambiguousRequest.pathTextOf(request);
}

/**
 * The narrowest scope that allows this very request, as far as one can be written: a path ends
 * before the first segment that no scope can hold; the root takes the path `*`.
 */
export function scopeOfRequest(request: ReadRequest): Scope {
  let path = '';
  let count = 0;
  for (const segment of request.path.split('/')) {
    const next = path === '' ? segment : `${path}/${segment}`;
    count += 1;
    if (!isSegment(segment) || next.length > MAX_PATH_LENGTH || count > MAX_PATH_SEGMENTS) break;
    path = next;
  }
  return makeScope(request.method, request.domain, path === '' ? '*' : path);
}

/** Hosts that were read: a guarded service has one domain, or a few. Bounded, as callers may name any. */
const knownHosts = new Map<string, string>();
const MAX_KNOWN_HOSTS = 256;

function hostOf(domain: unknown): string | undefined {
  if (typeof domain !== 'string') return undefined;
  const known = knownHosts.get(domain);
  if (known !== undefined) return known;
  const host = readHost(domain);
  if (host === undefined) return undefined;
  if (knownHosts.size >= MAX_KNOWN_HOSTS) knownHosts.clear();
  knownHosts.set(domain, host);
  return host;
}

/** Nothing of it can be changed, since it stands for a decision that was made. */
class UnambiguousRequest {
  readonly #method: string;
  readonly #domain: string;
  readonly #path: PathText;

  constructor(method: string, domain: string, path: PathText) {
    this.#method = method;
    this.#domain = domain;
    this.#path = path;
  }

  static is(value: unknown): value is ReadRequest {
    return typeof value === 'object' && value !== null && #path in value;
  }

  static pathTextOf(request: ReadRequest): PathText {
    return (request as unknown as UnambiguousRequest).#path;
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

/** Anything may come in, also what throws when it is looked at. */
function fieldsOf(request: ScopeRequest): { readonly [member in keyof ScopeRequest]?: unknown } {
  try {
    const { method, domain, target } = request;
    return { method, domain, target };
  } catch {
    return {};
  }
}

type PathReading = ({ readonly ok: true } & PathText) | ReturnType<typeof refuse>;

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
  const hasTrailingSlash = target.charCodeAt(end - 1) === SLASH;
  return { ok: true, text: target, start: 1, end: hasTrailingSlash && end > 1 ? end - 1 : end };
}

const SLASH = 0x2f;
const DOT = 0x2e;
const QUESTION_MARK = 0x3f;
const PLAIN = 1;

/**
 * Where the path of a target ends that means itself: only characters that stand for themselves, no
 * empty segment, none of dots only. 0 for others. Most paths do, and then one pass without any
 * allocation is all they cost.
 */
function plainEnd(target: string): number {
  let isOnlyDots = true;
  let end = 1;
  for (; end < target.length; end++) {
    const kind = KINDS[target.charCodeAt(end)];
    if (kind === PLAIN) {
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
 * What each character is to a path; nothing for the unusual. Plain is RFC 3986 `pchar` without `%`
 * and `;`, and the four characters that `fetch` sends as they are.
 */
const KINDS = Uint8Array.from({ length: 0x7f }, (_, unit) => {
  if (unit === SLASH || unit === DOT || unit === QUESTION_MARK) return unit;
  return /[A-Za-z0-9\-_~!$&'()*+,=:@|[\]^]/.test(String.fromCharCode(unit)) ? PLAIN : 0;
});

function withoutTrailingSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

/** The checks one by one, in the order in which their reasons are promised. */
function readUnusual(target: string): PathReading {
  if (target.includes('#')) return refuse('path_fragment');
  const path = target.split('?', 1)[0] as string;
  if (path.includes('\\')) return refuse('path_backslash');
  if (!/^[A-Za-z0-9\-._~!$&'()*+,;=:@|[\]^%/]*$/.test(path))
    return refuse('path_illegal_character');
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return refuse('path_bad_encoding');
  const segments = withoutTrailingSlash(path.slice(1)).split('/');
  if (segments.includes('')) return refuse('path_empty_segment');
  for (const segment of segments) {
    const reason = checkSegment(segment);
    if (reason !== undefined) return refuse(reason);
  }
  const text = segments.map(normalize).join('/');
  return { ok: true, text, start: 0, end: text.length };
}

function checkSegment(segment: string): RequestReason | undefined {
  const decoded = decode(segment);
  if (decoded === undefined) return 'path_bad_encoding';
  if (/[/\\]/.test(decoded)) return 'path_encoded_slash';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f-\u009f]/.test(decoded)) return 'path_encoded_control';
  if (decoded.includes(';')) return 'path_parameter';
  // One by one, as the order of marks does not matter here and costs more than linear time.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the whole of ASCII
  const compatible = decoded.replace(/[^\u0000-\u007f]/gu, (one) => one.normalize('NFKC'));
  if (compatible !== decoded) {
    if (/[/\\]/.test(compatible)) return 'path_encoded_slash';
    if (/^\.+$/.test(compatible)) return 'path_dot_segment';
  }
  if (/^[. ]+(?:[?#]|$)/.test(decoded)) return 'path_dot_segment';
  return /%[0-9A-Fa-f]{2}/.test(decoded) ? 'path_double_encoding' : undefined;
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** RFC 3986 section 6.2.2: unreserved characters decoded, the hex digits of the others in upper case. */
function normalize(segment: string): string {
  return segment.replace(/%[0-9A-Fa-f]{2}/g, (triplet) => {
    const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
    return /[A-Za-z0-9\-._~]/.test(character) ? character : triplet.toUpperCase();
  });
}
