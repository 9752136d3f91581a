import { addSeconds } from 'date-fns/addSeconds';
import { isAfter } from 'date-fns/isAfter';
import { isValid } from 'date-fns/isValid';
import {
  MAX_ACCOUNT_BYTES,
  MAX_ANCESTORS,
  MAX_LIMIT_ADDRESSES,
  MAX_RATE_SECONDS,
  MAX_RECORD_BYTES,
} from '../bounds.ts';
import { TokenError } from '../errors.ts';
import type { RequestReason, ScopeDiff } from '../scope/index.ts';
import { inWords, secondsMessage, shownDate } from '../text/wording.ts';
import { isCount, isTime } from './answers.ts';
import { isAncestors, isId, type TokenId } from './id.ts';
import { bytesOfLists, listBytes } from './size.ts';

/** Milliseconds by which the clocks of two processes may differ, so that one sees a grace period early. @bound */
export const MAX_EARLY_GRACE_MS = 60_000;

export type { TokenId };

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
 * A token as a store holds it. Nothing in it can be presented as a token, and `digest` cannot be turned
 * back into one.
 */
export interface TokenRecord {
  /** The primary key; compared byte by byte. */
  readonly id: TokenId;
  /** The owner: 1 to 255 bytes of UTF-8; compared byte by byte. */
  readonly account: string;
  /** The prefix of the value. */
  readonly prefix: string;
  /** The id of the key that made the value's checksum: 2 characters. */
  readonly kid: string;
  /** SHA-256 over the id and the secret: 32 bytes. */
  readonly digest: Uint8Array;
  /** The secret, sealed with a key that the store never sees; only with `reveal: 'always'`. */
  readonly box?: Uint8Array | undefined;
  /** The held scopes: canonical, sorted, 1 to 4096; none if it was revoked. */
  readonly scopes: readonly string[];
  /** The requested scopes, in canonical spelling; only the first ones if it was revoked. */
  readonly requested: readonly string[];
  /** When it was issued, to the millisecond. Never changes. */
  readonly createdAt: Date;
  /** The first instant at which the token is no longer valid. */
  readonly expiresAt: Date;
  /** Counts from 1; each change adds one. */
  readonly version: number;
  /** For people: 1 to 200 characters. */
  readonly name?: string | undefined;
  /** The host's own facts: at most 4096 bytes of JSON. */
  readonly metadata?: JsonObject | undefined;
  /** Set once and never unset: the token is refused from this instant on. */
  readonly revokedAt?: Date | undefined;
  /** The digest before the last rotation: valid until `previousUntil`, and recognized after that. */
  readonly previousDigest?: Uint8Array | undefined;
  /** The first instant at which the value before the last rotation is refused. */
  readonly previousUntil?: Date | undefined;
  /** The token is refused while this is set. */
  readonly suspendedAt?: Date | undefined;
  /** When the held scopes last changed; absent if they never did. */
  readonly scopesChangedAt?: Date | undefined;
  /** When the accepted value was last replaced; absent if it never was. */
  readonly rotatedAt?: Date | undefined;
  /** Beyond its scopes and its expiry: from where, how often and how many times it may be used. */
  readonly limits?: TokenLimits | undefined;
  /**
   * The tokens from which it was derived, the root first and its parent last: 1 to 7 ids. Never changes.
   */
  readonly ancestors?: readonly TokenId[] | undefined;
  /** The name of the foreign format of an imported value: 1 to 32 of `a-z`, `0-9` and `-`. */
  readonly format?: string | undefined;
  /** How the token came to be. Never changes. */
  readonly origin?: TokenOrigin | undefined;
  /** A new value that waits for its first use. */
  readonly pending?:
    | {
        /** The prefix of that value. */
        readonly prefix: string;
        /** The id of the key that made its checksum. */
        readonly kid: string;
        /** Its digest, as `digest` of the record. */
        readonly digest: Uint8Array;
        /** Its sealed secret, as `box` of the record. */
        readonly box?: Uint8Array | undefined;
        /** How long the value before it stays valid after its first use. */
        readonly graceSeconds: number;
      }
    | undefined;
}

/** How a token came to be. Nothing in it grants anything. An absent member was not given. */
export interface TokenOrigin {
  /** Who made it, as the host names people: 1 to 255 bytes of UTF-8. */
  readonly createdBy?: string;
  /** What it is for: 1 to 200 characters. */
  readonly purpose?: string;
  /** Who acts with it: the account `sub`, proven by the token with the id `token` (RFC 8693 section 4.1). */
  readonly actor?: { readonly sub: string; readonly token: TokenId };
  /**
   * Of an elevation: the versions that its ancestors have, the root first. It holds more than they do, and ends
   * as soon as one of them has another version.
   */
  readonly elevated?: readonly number[];
}

/** How a token is limited beyond its scopes and its expiry. An absent member does not limit it. */
export interface TokenLimits {
  /** From where it may be used: addresses and CIDR blocks of IPv4 and IPv6, at most 100. */
  readonly addresses?: readonly string[];
  /** How many times it may be used in total: from 1 to 2^53 - 1. */
  readonly uses?: number;
  /**
   * How many times it may be used in each window: `uses` from 1 to 2^53 - 1, `seconds` from 1 to 86 400.
   * Windows begin at multiples of `seconds` since 1970.
   */
  readonly rate?: { readonly uses: number; readonly seconds: number };
}

/**
 * The state of a token. A permanent end comes first: a suspended token that has expired is `expired`,
 * because resuming it would not help. `list` and `get` show a derived token as `ancestor_ended` if it could
 * be used but for an ancestor that was revoked or has expired.
 */
export type TokenState = RecordState | 'ancestor_ended';

/** The state of a token by itself, whatever became of its ancestors. */
export type RecordState = 'active' | 'suspended' | 'expired' | 'revoked';

/**
 * Which tokens a list holds: those in one state; `live`, those that are active or suspended; or `all`. A token
 * whose ancestor has ended is in the list of its own state.
 */
export type ListedState = RecordState | 'live' | 'all';

export const TOKEN_STATES = [
  'active',
  'suspended',
  'expired',
  'revoked',
] as const satisfies readonly RecordState[];

export const LISTED_STATES = [...TOKEN_STATES, 'live', 'all'] as const;

/** A token as its account sees it. */
export interface Token {
  /** The public handle, for logs, paths and the methods that manage tokens. */
  readonly id: TokenId;
  /** The owner. */
  readonly account: string;
  /** The held scopes: canonical, sorted. */
  readonly scopes: readonly string[];
  /** The requested scopes, in canonical spelling. */
  readonly requested: readonly string[];
  /** When it was issued. */
  readonly createdAt: Date;
  /** The first instant at which the token is no longer valid. */
  readonly expiresAt: Date;
  /** Counts from 1; each change adds one. Pass it as `ifVersion` to change only this version. */
  readonly version: number;
  /** At the time of the call. An expired token is shown until it is purged. */
  readonly state: TokenState;
  /** The value for display, without a character of the secret. */
  readonly masked: string;
  /** The text that a bearer presents: after `issue` and `rotate`, or always with `reveal: 'always'`. */
  readonly value?: string;
  /** The token that it was derived from. */
  readonly parent?: TokenId;
  /** Of an elevation: the token that may do more by it. Any change of that one, or of one above, ends it. */
  readonly elevates?: TokenId;
  /** The name that the owner gave it. */
  readonly name?: string;
  /** The host's own facts. */
  readonly metadata?: JsonObject;
  /** From where, how often and how many times it may be used; absent if that is not limited. */
  readonly limits?: TokenLimits;
  /** Who made it, as the host names people. */
  readonly createdBy?: string;
  /** What it is for. */
  readonly purpose?: string;
  /** Who acts with it: an account, and the id of the token that proved it. */
  readonly actor?: { readonly sub: string; readonly token: TokenId };
  /**
   * Who acted with the tokens that it was derived from, newest first. Only in a token that `introspect`
   * returns; absent if there was nobody.
   */
  readonly priorActors?: readonly NonNullable<Token['actor']>[];
  /** Present while a value that `rotate` made with `activate: 'first-use'` has not been used yet. */
  readonly pending?: true;
  /**
   * How often `verify` accepted it. Only in tokens that `get` and `list` return, if the service records
   * usage; absent if it was never used.
   */
  readonly uses?: number;
  /** When `verify` last accepted it; present together with `uses`. */
  readonly lastUsedAt?: Date;
  /** Present if the counts could not be read: that `uses` is absent then says nothing. */
  readonly usesUnknown?: true;
}

/** A token with its value, as `issue` and `rotate` return it. */
export interface IssuedToken extends Token {
  readonly value: string;
}

/** A token with its new value, as `rotate` returns it. */
export interface RotatedToken extends IssuedToken {
  /**
   * How many tokens that were derived from it, at any depth, are still live: 1000 if there are more. They
   * outlive a rotation, except with `endDerived`.
   */
  readonly descendants: number;
}

/** One page of an account's tokens. */
export interface TokenPage {
  /** Newest first. */
  readonly tokens: Token[];
  /** Pass it to get the next page; absent on the last one. */
  readonly cursor?: string;
}

/** A token after a change, or as it would be after it. */
export type ModifiedToken = Token & {
  /** The rights that the change adds and removes; only with `dryRun`. */
  readonly diff?: ScopeDiff;
};

/** Why a token is refused, decided in this order. */
export type RefusalReason =
  | 'malformed'
  | 'unknown'
  | 'revoked'
  | 'expired'
  | 'suspended'
  | 'ancestor_revoked'
  | 'ancestor_expired'
  | 'ancestor_changed'
  | 'ancestor_suspended'
  | 'address_unknown'
  | 'address_denied'
  | 'ambiguous_request'
  | 'insufficient_scope'
  | 'ancestor_insufficient'
  | 'limit_exceeded';

/**
 * Why a text is not a value of the service, for the host: with `malformed`. The bearer never learns it.
 *
 * - `not_a_string`: it is `undefined`, for example, or an object
 * - `empty`: it has no characters
 * - `begins_with_bearer`: it is the whole header; only what follows `Bearer ` is the value
 * - `is_id`: it is the id of a token, which opens nothing
 * - `other_prefix`: it has the form of a value, with another prefix than that of the service
 * - `unknown_key`: the service does not have the key that it was made with
 * - `bad_tag`: it was mistyped or forged, or a key has the name of another one
 * - `other_form`: anything else, such as the value of another system, or a value with a line break at its end
 */
export type ValueFault =
  | 'not_a_string'
  | 'empty'
  | 'begins_with_bearer'
  | 'is_id'
  | 'other_prefix'
  | 'unknown_key'
  | 'bad_tag'
  | 'other_form';

/**
 * The result of `verify`: the token (without its value) and the scope that allows the call, or why not.
 */
export type Verdict =
  | {
      readonly ok: true;
      /** The token, without its value. */
      readonly token: Token;
      /** The held scope that allows it. */
      readonly grantedBy: string;
      /** Only of a refusal. */
      readonly reason?: undefined;
      /** Only of a refusal. */
      readonly detail?: undefined;
      /** Only of a refusal. */
      readonly needed?: undefined;
      /** Only of a refusal. */
      readonly explanation?: undefined;
      /** Only of a refusal. */
      readonly retryAt?: undefined;
      /** Only of a refusal. */
      readonly retryAfterSeconds?: undefined;
      /** Only of a refusal. */
      readonly rate?: undefined;
    }
  | {
      readonly ok: false;
      /** Only of an accepted value. */
      readonly token?: undefined;
      /** Only of an accepted value. */
      readonly grantedBy?: undefined;
      /** Why the value is refused. */
      readonly reason: RefusalReason;
      /**
       * With `ambiguous_request`: what makes the request ambiguous. With `malformed`: why it is not a value
       * of this service, which is for your log and not for the bearer.
       */
      readonly detail?: RequestReason | ValueFault;
      /** With `insufficient_scope` and `ancestor_insufficient`: the scope that would have been enough. */
      readonly needed?: string;
      /**
       * With `insufficient_scope` and `ancestor_insufficient`: the details, computed when they are first
       * read.
       */
      readonly explanation?: Explanation;
      /** With `limit_exceeded`, if it is a rate: when the token can be used again at the earliest. */
      readonly retryAt?: Date;
      /**
       * With `limit_exceeded`, if it is a rate: the whole seconds from this call to `retryAt`, 1 or
       * more.
       */
      readonly retryAfterSeconds?: number;
      /** With `limit_exceeded`: the rate, or nothing if the token has no use left at all. */
      readonly rate?: NonNullable<TokenLimits['rate']>;
    };

/** Why a token does or does not allow something. */
export interface Explanation {
  /** Whether `verify` would accept the token's value now. Does not consider the `limits` of the token. */
  readonly allowed: boolean;
  /** Why it is refused. */
  readonly reason?: RefusalReason | RequestReason;
  /** The held scope that allows it. */
  readonly grantedBy?: string;
  /**
   * The scope in question: the catalog's for this request, else the request's own. Empty for an
   * ambiguous request.
   */
  readonly needed: string;
  /** What the catalog calls it, in one line. Absent if the catalog has no words for it. */
  readonly summary?: string;
  /** The nearest held scope, and the part of it that does not match. */
  readonly nearest?: {
    readonly scope: string;
    readonly failed: 'method' | 'domain' | 'path';
  };
  /** The narrowest scope that would have been enough. */
  readonly smallest?: string;
  /** Whether the catalog knows what was needed; true without a catalog. */
  readonly known: boolean;
  /** If it is not known: the most similar known scopes. */
  readonly suggestions: readonly string[];
}

/** What `reseal` did. */
export interface ResealReport {
  /** Records that it looked at; one may have come twice. */
  readonly records: number;
  /** Records whose secret was sealed with the active key by this call. */
  readonly resealed: number;
  /** Records whose secret none of the keys opens. They stay as they are, and are never shown. */
  readonly unreadable: number;
  /** Records that others kept changing; call it again. */
  readonly missed: number;
}

/** How long tokens live, in seconds. */
export interface Lifetime {
  /** The lifetime of a token that is issued without one. */
  readonly defaultSeconds: number;
  /** The longest lifetime that any method accepts. */
  readonly maxSeconds: number;
}

const DIGEST_BYTES = 32;

/** Whether a token is no longer valid: from the instant of `expiresAt` on. */
export function isExpired(token: Pick<TokenRecord, 'expiresAt'>, now: number): boolean {
  return token.expiresAt.getTime() <= now;
}

/** The state of a token; only an active one is accepted. */
export function stateOf(
  token: Pick<TokenRecord, 'revokedAt' | 'expiresAt' | 'suspendedAt'>,
  now: number,
): RecordState {
  if (token.revokedAt !== undefined) return 'revoked';
  if (isExpired(token, now)) return 'expired';
  return token.suspendedAt === undefined ? 'active' : 'suspended';
}

/**
 * Whether a token is an elevation. Its ancestors' scopes do not bound it, and any change of one of them ends
 * it. It has no descendants.
 */
export function isElevation({ origin }: Pick<TokenRecord, 'origin'>): boolean {
  return origin?.elevated !== undefined;
}

/** Whether a list of a state holds a token. */
export function isListed(
  token: Parameters<typeof stateOf>[0],
  state: ListedState | undefined,
  now: number,
): boolean {
  const own = stateOf(token, now);
  if (state === 'live') return own === 'active' || own === 'suspended';
  return state === 'all' || own === (state ?? 'active');
}

/** How a value belongs to a record: as the current one, the one before it, or one not used yet. */
export type Proof = 'current' | 'pending' | 'previous';

/**
 * Whether a value is accepted for a token: the current one, one that waits for its first use, and the
 * value before the last rotation until its grace period ends. A grace period that has not begun by this
 * clock was made by a clock that is fast: it would end too late.
 */
export function isAccepted(
  { previousUntil, rotatedAt }: Pick<TokenRecord, 'previousUntil' | 'rotatedAt'>,
  proof: Proof | undefined,
  now: number,
): boolean {
  if (proof === 'current' || proof === 'pending') return true;
  if (proof !== 'previous' || previousUntil === undefined) return false;
  const hasBegun = rotatedAt === undefined || rotatedAt.getTime() - now <= MAX_EARLY_GRACE_MS;
  return hasBegun && previousUntil.getTime() > now;
}

/** The instant at which a token issued now with this lifetime expires. */
export function expiryAfter(now: number, seconds: number): Date {
  return addSeconds(now, seconds);
}

/** The ways to say how long a token lives. */
interface AskedExpiry {
  readonly ttlSeconds?: number | undefined;
  readonly expiresIn?: number | undefined;
  readonly expiresAt?: Date | undefined;
}

/**
 * The expiry that a call asks for, in one of three ways; `undefined` if it asks for none.
 *
 * @throws {TokenError} `invalid_request` for two of them, `invalid_ttl`, `invalid_expire`
 */
export function askedExpiry(
  { ttlSeconds, expiresIn, expiresAt }: AskedExpiry,
  now: number,
  lifetime: Lifetime,
): Date | undefined {
  if (ttlSeconds === undefined && expiresIn === undefined && expiresAt === undefined)
    return undefined;
  const asked = Object.entries({ ttlSeconds, expiresAt, expiresIn }).filter(
    ([, value]) => value !== undefined,
  );
  const [[member] = [], second] = asked;
  if (member !== undefined && second !== undefined) {
    throw new TokenError(
      'invalid_request',
      `${member} cannot be given together with another lifetime or expiry; give one of them`,
      { member },
    );
  }
  if (expiresIn !== undefined && expiresIn > lifetime.maxSeconds) {
    const message = secondsMessage('expiresIn', expiresIn, 1, lifetime.maxSeconds);
    throw new TokenError('invalid_ttl', message, {
      member: 'expiresIn',
      min: 1,
      max: lifetime.maxSeconds,
    });
  }
  const seconds = ttlSeconds ?? expiresIn;
  if (seconds !== undefined) return expiryAfter(now, seconds);
  return expiresAt && checkExpiry(expiresAt, now, lifetime);
}

/** People write years up to 9999 to mean "never". Milliseconds that are read as seconds are far later. */
const END_OF_9999 = 253_402_300_799_999;

/**
 * Checks a requested expiry: later than now, and no later than the longest lifetime from now.
 *
 * @throws {TokenError} `invalid_expire`
 */
export function checkExpiry(expiresAt: Date, now: number, { maxSeconds }: Lifetime): Date {
  const latest = addSeconds(now, maxSeconds);
  const isLater = isValid(expiresAt) && isAfter(expiresAt, now);
  if (isLater && !isAfter(expiresAt, latest)) return new Date(expiresAt);
  const rule = `expiresAt must be later than now, and at most ${inWords(maxSeconds)} from now`;
  const looksLikeMilliseconds = expiresAt.getTime() > Math.max(now * 100, END_OF_9999);
  throw new TokenError(
    'invalid_expire',
    looksLikeMilliseconds
      ? `${rule}; this one looks like milliseconds where seconds are meant`
      : `${rule}; got ${shownDate(expiresAt)}`,
    { member: 'expiresAt', max: Math.floor(latest.getTime() / 1000) },
  );
}

/** Whether a text can be an account: 1 to 255 bytes of well-formed Unicode, no control characters. */
export function isAccount(text: unknown): text is string {
  if (typeof text !== 'string' || text === '' || text.length > MAX_ACCOUNT_BYTES) return false;
  // A UTF-16 unit takes at most three bytes in UTF-8.
  const isShort = text.length * 3 <= MAX_ACCOUNT_BYTES;
  return isPlainText(text) && (isShort || Buffer.byteLength(text) <= MAX_ACCOUNT_BYTES);
}

/** Whether a text is well-formed Unicode without control characters. */
export function isPlainText(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** The list itself if it is frozen, else a frozen copy. */
export function frozenList<Item extends string>(list: readonly Item[]): readonly Item[] {
  return Object.isFrozen(list) ? list : Object.freeze([...list]);
}

/** A copy of limits that nobody can change, with its members in one fixed order. */
export function copyLimits({ addresses, uses, rate }: TokenLimits): TokenLimits {
  return Object.freeze({
    ...(addresses !== undefined && { addresses: Object.freeze([...addresses]) }),
    ...(uses !== undefined && { uses }),
    ...(rate !== undefined && {
      rate: Object.freeze({ uses: rate.uses, seconds: rate.seconds }),
    }),
  });
}

/**
 * Whether a store returned a record for an id. No decision may depend on anything else: a token with an
 * expiry that is not a time would never expire.
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
    Array.isArray(candidate.scopes) &&
    Array.isArray(candidate.requested) &&
    // A store empties the lists of a revoked record.
    ((candidate.scopes.length > 0 && candidate.requested.length > 0) ||
      candidate.revokedAt !== undefined) &&
    // NaN, which is never less, if one of them holds anything but texts.
    bytesOfLists(candidate as TokenRecord) <= MAX_RECORD_BYTES &&
    isTime(candidate.createdAt) &&
    isTime(candidate.expiresAt) &&
    Number.isSafeInteger(candidate.version) &&
    (candidate.version as number) >= 1 &&
    (candidate.name === undefined || typeof candidate.name === 'string') &&
    (candidate.metadata === undefined || isObject(candidate.metadata)) &&
    (candidate.revokedAt === undefined || isTime(candidate.revokedAt)) &&
    (candidate.previousDigest === undefined || isDigest(candidate.previousDigest)) &&
    (candidate.previousUntil === undefined || isTime(candidate.previousUntil)) &&
    (candidate.suspendedAt === undefined || isTime(candidate.suspendedAt)) &&
    (candidate.scopesChangedAt === undefined || isTime(candidate.scopesChangedAt)) &&
    (candidate.rotatedAt === undefined || isTime(candidate.rotatedAt)) &&
    (candidate.limits === undefined || isLimits(candidate.limits)) &&
    (candidate.ancestors === undefined || isAncestors(candidate.ancestors)) &&
    (candidate.format === undefined || isFormatName(candidate.format)) &&
    (candidate.origin === undefined || isOrigin(candidate.origin)) &&
    hasAllVersions(candidate as TokenRecord) &&
    (candidate.pending === undefined || isPending(candidate.pending))
  );
}

/** Whether a record that is an elevation has the version of each ancestor. */
function hasAllVersions({ origin, ancestors }: TokenRecord): boolean {
  return origin?.elevated === undefined || origin.elevated.length === (ancestors?.length ?? 0);
}

/**
 * Whether a store returned limits. A member that only later versions know is refused: a limited token
 * must never pass because a part of its limits was ignored.
 */
export function isLimits(value: unknown): value is TokenLimits {
  if (!hasOnly(value, ['addresses', 'uses', 'rate'])) return false;
  const { addresses, uses, rate } = value;
  const areAddresses =
    addresses === undefined || (isTextList(addresses) && addresses.length <= MAX_LIMIT_ADDRESSES);
  return (
    areAddresses && (uses === undefined || isPositive(uses)) && (rate === undefined || isRate(rate))
  );
}

function isRate(value: unknown): boolean {
  if (!hasOnly(value, ['uses', 'seconds'])) return false;
  const { uses, seconds } = value;
  return isPositive(uses) && isPositive(seconds) && seconds <= MAX_RATE_SECONDS;
}

/** Whether a store returned an origin. A member that only later versions know is refused: it may end a token. */
export function isOrigin(value: unknown): value is TokenOrigin {
  if (!hasOnly(value, ['createdBy', 'purpose', 'actor', 'elevated'])) return false;
  const { createdBy, purpose, actor, elevated } = value;
  return (
    (createdBy === undefined || isAccount(createdBy)) &&
    (purpose === undefined || typeof purpose === 'string') &&
    (actor === undefined || isActor(actor)) &&
    (elevated === undefined || isVersions(elevated))
  );
}

function isActor(value: unknown): boolean {
  return hasOnly(value, ['sub', 'token']) && isAccount(value['sub']) && isId(value['token']);
}

function isVersions(value: unknown): boolean {
  return Array.isArray(value) && value.length <= MAX_ANCESTORS && value.every(isPositive);
}

type MaybeOrigin = { readonly [Member in keyof TokenOrigin]?: TokenOrigin[Member] | undefined };

/** The part of a record that says how it came to be; empty if nothing is known. */
export function originPart(known: MaybeOrigin): Pick<TokenRecord, 'origin'> {
  const { createdBy, purpose, actor, elevated } = known;
  const isKnown = (createdBy ?? purpose ?? actor ?? elevated) !== undefined;
  return isKnown ? { origin: copyOrigin(known) } : {};
}

/** A frozen copy of an origin, with its members in one order. */
export function copyOrigin({ createdBy, purpose, actor, elevated }: MaybeOrigin): TokenOrigin {
  return Object.freeze({
    ...(createdBy !== undefined && { createdBy }),
    ...(purpose !== undefined && { purpose }),
    ...(actor !== undefined && { actor: Object.freeze({ sub: actor.sub, token: actor.token }) }),
    ...(elevated !== undefined && { elevated: Object.freeze([...elevated]) }),
  });
}

/** Whether a value can be the name of a foreign format. */
export function isFormatName(value: unknown): value is string {
  return typeof value === 'string' && /^[a-z0-9-]{1,32}$/.test(value);
}

/** Whether a value is a whole number, 1 or more. */
export function isPositive(value: unknown): value is number {
  return isCount(value) && value >= 1;
}

/** Whether a value is an object with no other members than these. */
export function hasOnly(
  value: unknown,
  members: readonly string[],
): value is Readonly<Record<string, unknown>> {
  return isObject(value) && Object.keys(value).every((member) => members.includes(member));
}

/** Whether a store returned a value that waits for its first use. */
export function isPending(value: unknown): value is NonNullable<TokenRecord['pending']> {
  if (!isObject(value)) return false;
  const { prefix, kid, digest, box, graceSeconds } = value as Readonly<Record<string, unknown>>;
  return (
    typeof prefix === 'string' &&
    typeof kid === 'string' &&
    isDigest(digest) &&
    (box === undefined || box instanceof Uint8Array) &&
    Number.isSafeInteger(graceSeconds) &&
    (graceSeconds as number) >= 0
  );
}

/** The bytes of the parts of a record whose size its owner chooses, as JSON. */
export function recordBytes(
  record: Pick<TokenRecord, 'scopes' | 'requested' | 'metadata' | 'limits'>,
): number {
  return bytesOfLists(record) + jsonBytes(record.metadata) + jsonBytes(record.limits);
}

function jsonBytes(part: object | undefined): number {
  return part === undefined ? 0 : JSON.stringify(part).length;
}

/** Whether a value is a list of texts. */
export function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && !Number.isNaN(listBytes(value));
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value is a SHA-256. */
export function isDigest(value: unknown): boolean {
  return value instanceof Uint8Array && value.length === DIGEST_BYTES;
}
