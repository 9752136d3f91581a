// The limits of what callers can cost. docs/security/limits.md lists them (npm run docs:bounds).

export {
  MAX_HOST_LENGTH,
  MAX_LABEL_LENGTH,
  MAX_METHOD_LENGTH,
  MAX_NAMED_SCOPES,
  MAX_PATH_LENGTH,
  MAX_PATH_SEGMENTS,
  MAX_PATH_TEMPLATES,
  MAX_PROBES,
  MAX_REMEMBERED_SCOPE_LENGTH,
  MAX_REMEMBERED_SCOPES,
  MAX_SCOPE_LENGTH,
  MAX_SCOPES,
  MAX_SUGGESTIONS,
  MAX_TARGET_LENGTH,
  MAX_WORDS_LENGTH,
  SUGGESTION_BUDGET,
} from './scope/bounds.ts';

/** Bytes of the name of an account, in UTF-8. */
export const MAX_ACCOUNT_BYTES = 255;

/** Characters of the name of a token. */
export const MAX_NAME_LENGTH = 200;

/** Bytes of the metadata of a token, as JSON. */
export const MAX_METADATA_BYTES = 4096;

/** Nested levels of metadata; each takes two of its bytes. */
export const MAX_METADATA_DEPTH = 2048;

/** Bytes of the scopes, requested scopes, metadata and limits of one token together, as JSON. */
export const MAX_RECORD_BYTES = 1_048_576;

/** Bytes of the requested scopes that a store keeps of a revoked token, as JSON. */
export const MAX_REVOKED_REQUESTED_BYTES = 1024;

/** Addresses and CIDR blocks in the limits of a token. */
export const MAX_LIMIT_ADDRESSES = 100;

/** The longest window of a rate in the limits of a token, in seconds: one day. */
export const MAX_RATE_SECONDS = 86_400;

// By the clock of the store, it may not have begun. Each further pause is twice as long.

/** Tokens from which a token is derived, one from the other: 8 generations with itself. */
export const MAX_ANCESTORS = 7;

/** Seconds from now to the latest expiry of a token: 365 days. Also the longest grace of a rotation. */
export const MAX_LIFETIME_SECONDS = 31_536_000;

/** Active and suspended tokens of one account, unless the host sets `quotas.tokensPerAccount`. */
export const DEFAULT_TOKENS_PER_ACCOUNT = 10_000;

/** The largest `quotas.tokensPerAccount`. */
export const MAX_TOKENS_PER_ACCOUNT = 1_000_000;

// Unless the host sets `quotas.endedPerAccount`.
/** Expired and revoked tokens that are kept of one account or root: as many times what it may have. */
export const ENDED_PER_LIVE = 10;

/** The largest `quotas.endedPerAccount`. */
export const MAX_ENDED_PER_ACCOUNT = 10_000_000;

/** Active and suspended descendants of one root, unless the host sets `quotas.derivedPerRoot`. */
export const DEFAULT_DERIVED_PER_ROOT = 100;

/** The largest `quotas.derivedPerRoot`. */
export const MAX_DERIVED_PER_ROOT = 10_000;

/** Milliseconds for one answer of a store or a `catalog` function, without `deadlineMs`. */
export const DEFAULT_DEADLINE_MS = 2000;

/** The largest `deadlineMs`, in milliseconds. */
export const MAX_DEADLINE_MS = 60_000;

/** Tokens on one page of `list`, unless the caller gives a `limit`. */
export const DEFAULT_PAGE_TOKENS = 100;

/** The largest `limit` of `list`, in tokens. */
export const MAX_PAGE_TOKENS = 1000;

/** Tokens that `list` reads from the store in one call when it filters by a scope. */
export const SCANNED_BATCH = 500;

/** Scopes in the filter of `list`. */
export const MAX_FILTER_SCOPES = 100;

/** Live descendants of a token that `rotate` counts. */
export const MAX_COUNTED_DESCENDANTS = 1000;

/** Records that are read in one step when all of a store are gone through. */
export const SCAN_STEP = 100;

/** Milliseconds between two rounds of the upkeep, unless the host sets `everyMs`. */
export const DEFAULT_UPKEEP_MS = 21_600_000;

/** The smallest `everyMs` of the upkeep. */
export const MIN_UPKEEP_MS = 1000;

/** The largest `everyMs` of the upkeep. */
export const MAX_UPKEEP_MS = 604_800_000;

/** The most days that advice and reviews look back or ahead. */
export const MAX_REVIEWED_DAYS = 3650;

/** The largest `limit` of `purge`, in records. */
export const MAX_PURGED = 1_000_000;

/** The largest `cache.maxStaleMs`, in milliseconds. */
export const MAX_STALE_MS = 60_000;

/** How long to wait before listening for changes again, in milliseconds, if reports of them get lost on the way. */
export const DEAF_RETRY_MS = 60_000;

/** Tokens in the cache, unless the host sets `cache.maxEntries`. */
export const DEFAULT_CACHE_ENTRIES = 10_000;

/** The largest `cache.maxEntries`, in tokens. */
export const MAX_CACHE_ENTRIES = 1_000_000;

/** Bytes of the cache, about, unless the host sets `cache.maxBytes`. */
export const DEFAULT_CACHE_BYTES = 67_108_864;

/** The smallest `cache.maxBytes`, in bytes. */
export const MIN_CACHE_BYTES = 1_048_576;

/** The largest `cache.maxBytes`, in bytes. */
export const MAX_CACHE_BYTES = 17_179_869_184;

/** The shortest value of another system, in characters. */
export const MIN_FOREIGN_LENGTH = 16;

/** The longest value of another system, in characters. */
export const MAX_FOREIGN_LENGTH = 512;

/** Milliseconds until counts of usage are written, unless the host sets `usage.flushMs`. */
export const DEFAULT_FLUSH_MS = 10_000;

/** The smallest `usage.flushMs`, in milliseconds. */
export const MIN_FLUSH_MS = 100;

/** The largest `usage.flushMs`, in milliseconds. */
export const MAX_FLUSH_MS = 3_600_000;

/** Scopes of one token whose uses are counted apart. */
export const MAX_COUNTED_SCOPES = 256;

/** Bytes of parsed lists of scopes that a store remembers, about, unless the host sets `maxListBytes`. */
export const DEFAULT_LIST_BYTES = 33_554_432;

/** The smallest `maxListBytes`, in bytes. */
export const MIN_LIST_BYTES = 1_048_576;

/** The largest `maxListBytes`, in bytes. */
export const MAX_LIST_BYTES = 17_179_869_184;

/** Bytes of a list of scopes from which on a database is asked for it only if it has changed. */
export const LONG_LIST_BYTES = 4096;

/** Milliseconds that a write to SQLite waits for another process. */
export const SQLITE_BUSY_MS = 1500;

/** Milliseconds of the event loop that one attempt to get the lock of an SQLite file takes. */
export const SQLITE_TRY_MS = 2;

/** Records that `revokeAll` and `purge` change in SQLite in one turn of the event loop. */
export const SQLITE_STEP = 100;

// A script takes some milliseconds in which the server does nothing else.
/** Tokens that one Redis script changes. */
export const REDIS_BATCH = 100;

// An account that writes much must not evict what the others have written.

/** Characters of the path and the query of a request to the service. */
export const MAX_ADDRESS_LENGTH = 8192;

/** Bytes of a body, unless the host sets `maxBodyBytes`. */
export const DEFAULT_BODY_BYTES = 1_048_576;

/** Milliseconds for a whole body, unless the host sets `bodyTimeoutMs`. */
export const DEFAULT_BODY_TIMEOUT_MS = 10_000;

/** Milliseconds for a client to read on, unless the host sets `sendTimeoutMs`. */
export const DEFAULT_SEND_TIMEOUT_MS = 10_000;

/** The largest `bodyTimeoutMs` and `sendTimeoutMs`, in milliseconds. */
export const MAX_TIMEOUT_MS = 600_000;

/** Slots of each kind of work, unless the host sets `maxInFlight`. */
export const DEFAULT_IN_FLIGHT = 1000;

/** The part of the slots that one account, or one address, may hold. */
export const SLOT_SHARE = 1 / 4;

// Callers without credentials are told apart by address alone, which costs less than accounts.
/** The part of the slots for work before credentials that one address may hold. */
export const STRANGER_SHARE = 1 / 16;

// Each takes some kilobytes.

/** The largest `limit` of `GET /token`, in tokens. */
export const MAX_WIRE_PAGE_TOKENS = 100;

/** Milliseconds for `authenticate` of the host, and for `session`. */
export const AUTHENTICATE_DEADLINE_MS = 10_000;

// After a restart nothing is remembered, and all callers behind a gateway sign in at the same time.
/** Milliseconds for a password to be checked, the wait for its turn included. */
export const PASSWORD_DEADLINE_MS = 30_000;

// By default libuv has no more threads.

// On a slow processor, as many as it does before the deadline.

// Somebody who signs in from many networks cannot make others forgotten.

/** Milliseconds for a whole request to `tokenwright serve`. */
export const REQUEST_TIMEOUT_MS = 30_000;

/** Milliseconds for the headers of a request to `tokenwright serve`. */
export const HEADERS_TIMEOUT_MS = 15_000;

// Twice the longest address, so more than the headers of any honest client.

// With Node's own half a minute, a slow sender would have three times its time.

// A connection that sends its headers slowly is not a call yet, so slots do not count it.

// Otherwise a store that answers every other call would fill the log.

// With the other two limits of the end, below the ten seconds after which Docker kills a process.
/** Milliseconds after which `tokenwright serve` cuts off requests in progress when it is told to stop. */
export const SHUTDOWN_MS = 6000;

// NIST SP 800-63B section 5.1.1.1.
/** Characters that a password has at least. */
export const MIN_PASSWORD_LENGTH = 8;

// NIST SP 800-63B section 5.2.2 allows 100 for an account, and to spare addresses from which the user has
// signed in before. Fewer would lock out programs that share an address and an old password.
// From one address, and from all addresses together from which the user has not signed in.

/** Seconds for which wrong passwords count. */
export const FAILURES_SECONDS = 900;

// Reads of one tick share a round trip, so few connections carry many calls.

// A file that anybody can fill is a disk that anybody can fill.

// A program signs in again with each call.

// Two small lists, of servers and of operations, make a large catalog.
