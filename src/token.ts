import { addSeconds } from 'date-fns/addSeconds';
import { isAfter } from 'date-fns/isAfter';
import { isValid } from 'date-fns/isValid';
import { TokenError } from './errors.ts';
import type { RequestReason } from './scope/index.ts';

declare const tokenId: unique symbol;

/**
 * The public handle of a token: 22 characters of `0-9A-Za-z`. It may be logged, shown and put into
 * a path; it opens nothing.
 */
export type TokenId = string & { readonly [tokenId]: true };

/** Any value that survives JSON unchanged. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [member: string]: JsonValue };

/** A JSON object. */
export type JsonObject = { readonly [member: string]: JsonValue };

/**
 * What a store keeps of a token. Nothing in it can be presented as a token, and `digest` cannot be
 * turned back into one.
 */
export interface TokenRecord {
  /** The primary key; compared byte by byte. */
  readonly id: TokenId;
  /** Whom the token belongs to: 1 to 255 bytes of UTF-8; compared byte by byte. */
  readonly account: string;
  /** The prefix of the value. */
  readonly prefix: string;
  /** The key with which the value's tag was made: 2 characters. */
  readonly kid: string;
  /** SHA-256 over the id and the secret: 32 bytes. */
  readonly digest: Uint8Array;
  /** The secret, sealed with a key that the store never sees; only with `reveal: 'always'`. */
  readonly box?: Uint8Array | undefined;
  /** What the token may do: canonical scopes, sorted, 1 to 4096. */
  readonly scopes: readonly string[];
  /** What was asked for, in canonical spelling. */
  readonly requested: readonly string[];
  /** When it was issued, to the millisecond. Changes leave it as it is. */
  readonly createdAt: Date;
  /** The first instant at which the token is no longer valid. */
  readonly expiresAt: Date;
  /** Counts from 1; each change adds one. */
  readonly version: number;
  /** For people: 1 to 200 characters. */
  readonly name?: string | undefined;
  /** The host's own facts: at most 4096 bytes of JSON. */
  readonly metadata?: JsonObject | undefined;
  /** Set once, never unset: the token is refused from here on. */
  readonly revokedAt?: Date | undefined;
  /** The digest before the last rotation, good until `previousUntil`, and known as an old one after. */
  readonly previousDigest?: Uint8Array | undefined;
  /** The first instant at which the value before the last rotation is refused. */
  readonly previousUntil?: Date | undefined;
}

/** A token as its owner sees it. */
export interface Token {
  /** Its public handle: for logs, paths and the verbs that manage tokens. */
  readonly id: TokenId;
  /** Whom it belongs to. */
  readonly account: string;
  /** What it may do: canonical scopes, sorted. */
  readonly scopes: readonly string[];
  /** What was asked for, in canonical spelling. */
  readonly requested: readonly string[];
  /** When it was issued. */
  readonly createdAt: Date;
  /** The first instant at which the token is no longer valid. */
  readonly expiresAt: Date;
  /** Counts from 1; each change adds one. Give it back as `ifVersion` to change just this version. */
  readonly version: number;
  /** At the time of the call: an expired one is still shown until it is purged, a revoked one is not. */
  readonly state: 'active' | 'expired';
  /** The value as people may see it, without a character of the secret. */
  readonly masked: string;
  /** What the bearer presents: when just issued or rotated, and always with `reveal: 'always'`. */
  readonly value?: string;
  /** What its owner calls it. */
  readonly name?: string;
  /** The host's own facts. */
  readonly metadata?: JsonObject;
}

/** A token whose value is known, as it is once after issue and rotate. */
export interface IssuedToken extends Token {
  readonly value: string;
}

/** Why a token is refused, decided in this order. */
export type RefusalReason =
  | 'malformed'
  | 'unknown'
  | 'revoked'
  | 'expired'
  | 'ambiguous_request'
  | 'insufficient_scope';

/** What `verify` found: the token (without its value) and the scope that allows the call, or why not. */
export type Verdict =
  | {
      readonly ok: true;
      /** The token, without its value. */
      readonly token: Token;
      /** The scope of the token that allows it. */
      readonly grantedBy: string;
    }
  | {
      readonly ok: false;
      /** Why not. */
      readonly reason: RefusalReason;
      /** With `ambiguous_request`: what the scope module says of the request. */
      readonly detail?: RequestReason;
      /** With `insufficient_scope`: the scope that would have been enough. */
      readonly needed?: string;
      /** With `insufficient_scope`: why, worked out when it is first read. */
      readonly explanation?: Explanation;
    };

/** Why a token does or does not allow something. */
export interface Explanation {
  /** What `verify` would say of the token's value, this moment. */
  readonly allowed: boolean;
  /** Why not. */
  readonly reason?: RefusalReason | RequestReason;
  /** The held scope that allows it. */
  readonly grantedBy?: string;
  /** The scope in question: the catalog's for this request, else the request's own. Empty for an ambiguous request. */
  readonly needed: string;
  /** The held scope that comes nearest, and the component that fails. */
  readonly nearest?: {
    readonly scope: string;
    readonly failed: 'method' | 'domain' | 'path';
  };
  /** The narrowest scope that would have been enough. */
  readonly smallest?: string;
  /** Whether the catalog knows what was asked; true without a catalog. */
  readonly known: boolean;
  /** The known scopes most like it, where it is not known. */
  readonly suggestions: readonly string[];
}

/** How long tokens live, in seconds. */
export interface Lifetime {
  /** Of a token for which none is named. */
  readonly defaultSeconds: number;
  /** The longest that can be asked for, by whatever verb. */
  readonly maxSeconds: number;
}

/** 365 days. */
export const ONE_YEAR_SECONDS = 31_536_000;

const DIGEST_BYTES = 32;
const MAX_ACCOUNT_BYTES = 255;
const MAX_METADATA_BYTES = 4096;

/** Whether a token is no longer valid: from the very instant of `expiresAt` on. */
export function isExpired(token: Pick<TokenRecord, 'expiresAt'>, now: number): boolean {
  return token.expiresAt.getTime() <= now;
}

/** The instant at which a token issued now with this lifetime expires. */
export function expiryAfter(now: number, seconds: number): Date {
  return addSeconds(now, seconds);
}

/**
 * Checks an expiry that somebody asks for: later than now, and no later than the longest lifetime
 * from now.
 *
 * @throws {TokenError} `invalid_expire`
 */
export function checkExpiry(expiresAt: Date, now: number, { maxSeconds }: Lifetime): Date {
  const latest = addSeconds(now, maxSeconds);
  const isLater = isValid(expiresAt) && isAfter(expiresAt, now);
  if (isLater && !isAfter(expiresAt, latest)) return new Date(expiresAt);
  const rule = `the expiry must be later than now, and at most ${maxSeconds} seconds from now`;
  const looksLikeMilliseconds = expiresAt.getTime() > now * 100;
  throw new TokenError(
    'invalid_expire',
    looksLikeMilliseconds
      ? `${rule}; this one looks like milliseconds where seconds are meant`
      : rule,
  );
}

/** What a lifetime that cannot be had is answered with. */
export function ttlMessage(ttl: unknown, { maxSeconds }: Lifetime): string {
  const rule = `the lifetime must be a whole number of seconds from 1 to ${maxSeconds}`;
  const looksLikeMilliseconds = typeof ttl === 'number' && ttl > maxSeconds && ttl % 1000 === 0;
  return looksLikeMilliseconds ? `${rule}; this one looks like milliseconds` : rule;
}

/** Whether a text can be an account: 1 to 255 bytes of well-formed Unicode, no control characters. */
export function isAccount(text: unknown): text is string {
  if (typeof text !== 'string' || text === '' || text.length > MAX_ACCOUNT_BYTES) return false;
  // A character of a text takes at most three bytes.
  const isShort = text.length * 3 <= MAX_ACCOUNT_BYTES;
  return isPlainText(text) && (isShort || Buffer.byteLength(text) <= MAX_ACCOUNT_BYTES);
}

/** Whether a text is well-formed Unicode without control characters. */
export function isPlainText(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** Whether a value is a JSON object of at most 4096 bytes that comes back from JSON as it is. */
export function isMetadata(value: unknown): value is JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  try {
    const text = JSON.stringify(value);
    return new TextEncoder().encode(text).length <= MAX_METADATA_BYTES && isJson(value);
  } catch {
    return false;
  }
}

/** A copy of metadata that nobody can change; an own `__proto__` stays an own member. */
export function copyMetadata(metadata: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(metadata), (_, value) => Object.freeze(value));
}

/** The list itself where nobody can change it, else a copy that nobody can. */
export function frozenList(list: readonly string[]): readonly string[] {
  return Object.isFrozen(list) ? list : Object.freeze([...list]);
}

/**
 * Whether what a store hands out for an id is a record: what is not must never be judged, since an
 * expiry that is no time would never come.
 */
export function isRecord(record: unknown, id: TokenId): record is TokenRecord {
  if (typeof record !== 'object' || record === null) return false;
  const candidate = record as Partial<Record<keyof TokenRecord, unknown>>;
  return (
    candidate.id === id &&
    typeof candidate.account === 'string' &&
    typeof candidate.prefix === 'string' &&
    typeof candidate.kid === 'string' &&
    isDigest(candidate.digest) &&
    (candidate.box === undefined || candidate.box instanceof Uint8Array) &&
    isTextList(candidate.scopes) &&
    candidate.scopes.length > 0 &&
    isTextList(candidate.requested) &&
    isTime(candidate.createdAt) &&
    isTime(candidate.expiresAt) &&
    Number.isSafeInteger(candidate.version) &&
    (candidate.version as number) >= 1 &&
    (candidate.name === undefined || typeof candidate.name === 'string') &&
    (candidate.metadata === undefined || isObject(candidate.metadata)) &&
    (candidate.revokedAt === undefined || isTime(candidate.revokedAt)) &&
    (candidate.previousDigest === undefined || isDigest(candidate.previousDigest)) &&
    (candidate.previousUntil === undefined || isTime(candidate.previousUntil))
  );
}

/** Frozen lists are looked through once: those of the memory store are shared and may be long. */
const textLists = new WeakSet<readonly unknown[]>();

function isTextList(value: unknown): value is readonly string[] {
  if (!Array.isArray(value)) return false;
  if (textLists.has(value)) return true;
  if (!value.every((item) => typeof item === 'string')) return false;
  if (Object.isFrozen(value)) textLists.add(value);
  return true;
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isDigest(value: unknown): boolean {
  return value instanceof Uint8Array && value.length === DIGEST_BYTES;
}

function isTime(value: unknown): boolean {
  return value instanceof Date && Number.isFinite(value.getTime());
}

function isJson(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object') return false;
  if (Array.isArray(value)) return value.every(isJson);
  const prototype = Object.getPrototypeOf(value);
  return (
    (prototype === Object.prototype || prototype === null) && Object.values(value).every(isJson)
  );
}
