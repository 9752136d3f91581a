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

/** The part of a limit that one process leases in one step, at most, so that processes share fairly. */
export const LEASE_SHARE = 1 / 16;

/** Uses that one process leases in one step, at most. */
export const MAX_LEASE = 1000;

/** Milliseconds within which a lease that is used up makes the next one larger. */
export const LEASE_QUICK_MS = 1000;

/** Milliseconds after which the next lease begins with one use again. */
export const LEASE_SLOW_MS = 10_000;

/** Milliseconds after which leased uses that nobody needs are given back. */
export const LEASE_IDLE_MS = 10_000;

/** Milliseconds for which a limit that has no use left is not asked about again. */
export const LEASE_RETRY_MS = 1000;

// By the clock of the store, it may not have begun. Each further pause is twice as long.
/** Milliseconds until a window is asked for again of which the store has granted nothing yet. */
export const LEASE_EARLY_MS = 10;

/** Milliseconds after which a window has certainly begun, by the clock of the store too. */
export const MAX_EARLY_MS = 1000;

/** Milliseconds for which counts of limits are kept after the last moment at which they matter. */
export const LEASE_KEPT_MS = 3_600_000;

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

/** The part of the room below a quota that a process fills without counting again; also what is pruned. */
export const QUOTA_SHARE = 1 / 16;

/** Milliseconds for which a count of the tokens of an account is trusted. */
export const QUOTA_TRUST_MS = 60_000;

/** Accounts and roots whose counts a process remembers. */
export const MAX_QUOTA_HOLDERS = 10_000;

/** Ended records of an account that are removed early in one call of the store. */
export const PRUNE_BATCH = 100;

/** Milliseconds for one answer of a store or a `catalog` function, without `deadlineMs`. */
export const DEFAULT_DEADLINE_MS = 2000;

/** The largest `deadlineMs`, in milliseconds. */
export const MAX_DEADLINE_MS = 60_000;

/** Tokens on one page of `list`, unless the caller gives a `limit`. */
export const DEFAULT_PAGE_TOKENS = 100;

/** The largest `limit` of `list`, in tokens. */
export const MAX_PAGE_TOKENS = 1000;

/** Tokens that `list` looks at for one page when it filters by a scope. */
export const MAX_SCANNED_TOKENS = 10_000;

/** Tokens that `list` reads from the store in one call when it filters by a scope. */
export const SCANNED_BATCH = 500;

/** Scopes in the filter of `list`. */
export const MAX_FILTER_SCOPES = 100;

/** Milliseconds of the event loop that one page of `list` takes before it ends early. */
export const SCAN_BUDGET_MS = 50;

/** Characters of a cursor that are read. */
export const MAX_CURSOR_LENGTH = 200;

/** Scopes up to which a change does all its steps in one turn of the event loop. */
export const MAX_SCOPES_A_TURN = 512;

/** Live descendants of a token that `rotate` counts. */
export const MAX_COUNTED_DESCENDANTS = 1000;

/** Descendants of a token that are revoked concurrently. */
export const MAX_REVOKED_TOGETHER = 100;

/** Attempts at one change of a token while other changes win. */
export const MAX_CHANGE_ATTEMPTS = 1000;

/** Records that `purge` removes in one call of the store. */
export const PURGE_BATCH = 1000;

/** Records that `revokeAll` marks in one call of the store. */
export const REVOKE_BATCH = 1000;

/** Records that are read in one step when all of a store are gone through. */
export const SCAN_STEP = 100;

/** Records that `reseal` writes concurrently. */
export const WRITTEN_TOGETHER = 20;

/** How often `reseal` tries to write a record that others keep changing. */
export const MAX_RESEAL_ATTEMPTS = 20;

/** Records that the upkeep removes in one call of the store. */
export const UPKEEP_BATCH = 25;

/** Milliseconds between two of those calls, so that others come first. */
export const UPKEEP_PAUSE_MS = 25;

/** Milliseconds from the start of the upkeep to its first round, at most. */
export const UPKEEP_START_MS = 300_000;

/** Milliseconds after which the upkeep asks again whether the clock of its process can be believed. */
export const UPKEEP_RETRY_MS = 3_600_000;

/** Milliseconds between two looks of the upkeep for usage whose tokens are gone: a week. */
export const USAGE_PASS_MS = 604_800_000;

/** Milliseconds between two rounds of the upkeep, unless the host sets `everyMs`. */
export const DEFAULT_UPKEEP_MS = 21_600_000;

/** The smallest `everyMs` of the upkeep. */
export const MIN_UPKEEP_MS = 1000;

/** The largest `everyMs` of the upkeep. */
export const MAX_UPKEEP_MS = 604_800_000;

/** The most days that advice and reviews look back or ahead. */
export const MAX_REVIEWED_DAYS = 3650;

/** Findings after which a page of a review ends, with the token that it is at. */
export const MAX_PAGE_FINDINGS = 100;

/** Milliseconds after which a page of a review ends, with the tokens that it has read. */
export const REVIEW_BUDGET_MS = 50;

/** The largest `limit` of `purge`, in records. */
export const MAX_PURGED = 1_000_000;

/** Characters of the refused scopes that the details of an error list; the first is always there. */
export const MAX_DETAILS_LENGTH = 131_072;

/** Unknown members of an argument for which an error looks for a similar known one. */
export const MAX_COMPARED_NAMES = 20;

/** The largest `cache.maxStaleMs`, in milliseconds. */
export const MAX_STALE_MS = 60_000;

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

/** Rows that `importMany` looks for together and inserts concurrently. */
export const IMPORT_STEP = 100;

/** Ids that one call of `find` asks a store for. */
export const MAX_FOUND_TOGETHER = 1000;

/** Values in each of the two generations that a service remembers, so as not to check their tag again. */
export const MAX_REMEMBERED_VALUES = 5000;

/** Milliseconds until counts of usage are written, unless the host sets `usage.flushMs`. */
export const DEFAULT_FLUSH_MS = 10_000;

/** The smallest `usage.flushMs`, in milliseconds. */
export const MIN_FLUSH_MS = 100;

/** The largest `usage.flushMs`, in milliseconds. */
export const MAX_FLUSH_MS = 3_600_000;

/** Counts of usage that are written without waiting for `usage.flushMs`. */
export const FLUSHED_ENTRIES = 10_000;

/** Counts of usage that wait for a usage store. */
export const MAX_USAGE_ENTRIES = 100_000;

/** Counts in one call of a usage store. */
export const USAGE_BATCH = 1000;

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

/** Entries of the index of an account that one Redis script reads for a page. */
export const MAX_REDIS_SCAN = 1000;

/** Milliseconds for which writes to Redis are remembered, to repeat those lost in a failover. */
export const RECENT_WRITES_MS = 60_000;

/** Writes to Redis that a process remembers. */
export const MAX_RECENT_WRITES = 40_000;

/** Characters of the writes to Redis that a process remembers. */
export const MAX_RECENT_WRITES_LENGTH = 16_000_000;

// An account that writes much must not evict what the others have written.
/** The part of the remembered writes to Redis that one account may take. */
export const RECENT_WRITES_SHARE = 1 / 4;

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

/** Bytes of a form for `/introspect` and `/revoke`. */
export const MAX_FORM_BYTES = 4096;

/** Milliseconds for a whole form. */
export const FORM_TIMEOUT_MS = 2000;

/** Slots of each kind of work, unless the host sets `maxInFlight`. */
export const DEFAULT_IN_FLIGHT = 1000;

/** The part of the slots that one account, or one address, may hold. */
export const SLOT_SHARE = 1 / 4;

// Callers without credentials are told apart by address alone, which costs less than accounts.
/** The part of the slots for work before credentials that one address may hold. */
export const STRANGER_SHARE = 1 / 16;

/** Callers of each kind whose credentials were right, so that their next calls need no slots of strangers. */
export const MAX_KNOWN_CALLERS = 10_000;

/** Credentials and sessions of one caller that are remembered for that. */
export const MAX_KNOWN_CREDENTIALS = 8;

/** Calls of one connection that wait for the answer to the one before them. */
export const MAX_WAITING_CALLS_OF_CONNECTION = 1000;

// Each takes some kilobytes.
/** Calls of all connections that wait for the answer to the one before them. */
export const MAX_WAITING_CALLS = 10_000;

/** Calls that waited and that start in one turn of the event loop. */
export const STARTED_A_TURN = 16;

/** Bytes of a body or an answer for one slot; a larger one takes more slots. */
export const SLOT_BYTES = 131_072;

/** Characters of one piece of a long answer, and one token more. */
export const ANSWER_PIECE_LENGTH = 65_536;

/** The largest `limit` of `GET /token`, in tokens. */
export const MAX_WIRE_PAGE_TOKENS = 100;

/** Tokens in one answer to `GET /token` without a `limit`. */
export const MAX_LISTED_TOKENS = 10_000;

/** Bytes of the scopes, metadata and limits in one answer to `GET /token`, as a record counts them. */
export const MAX_LISTED_BYTES = 1_048_576;

/** Tokens that `GET /token` without a `limit` asks the library for in one call. */
export const LISTED_BATCH = 500;

/** Milliseconds after which `GET /token` without a `limit` ends with a page that is empty. */
export const LISTING_BUDGET_MS = 50;

/** Milliseconds by which the clocks of two processes may differ, so that one sees a grace period early. */
export const MAX_EARLY_GRACE_MS = 60_000;

/** Milliseconds for `authenticate` of the host, and for `session`. */
export const AUTHENTICATE_DEADLINE_MS = 10_000;

// After a restart nothing is remembered, and all callers behind a gateway sign in at the same time.
/** Milliseconds for a password to be checked, the wait for its turn included. */
export const PASSWORD_DEADLINE_MS = 30_000;

/** Milliseconds for one answer of a `limiter`. */
export const LIMITER_DEADLINE_MS = 2000;

// By default libuv has no more threads.
/** Hashes of passwords that a process computes concurrently. */
export const MAX_HASHES = 4;

// On a slow processor, as many as it does before the deadline.
/** Passwords that a process checks or keeps waiting. */
export const MAX_PASSWORD_CHECKS = 64;

/** Users whose networks of earlier sign-ins a process remembers. */
export const MAX_KNOWN_USERS = 10_000;

// Somebody who signs in from many networks cannot make others forgotten.
/** Networks of one user that a process remembers. */
export const MAX_KNOWN_NETWORKS = 8;

/** Milliseconds for which a correct password is remembered. */
export const PASSWORD_REMEMBERED_MS = 60_000;

/** Milliseconds between two reports to `onError` of a kind that callers can cause at will. */
export const REPORT_PAUSE_MS = 60_000;

/** Milliseconds for a whole request to `tokenwright serve`. */
export const REQUEST_TIMEOUT_MS = 30_000;

/** Milliseconds for the headers of a request to `tokenwright serve`. */
export const HEADERS_TIMEOUT_MS = 15_000;

// Twice the longest address, so more than the headers of any honest client.
/** Bytes of the headers of a request to `tokenwright serve`. */
export const MAX_HEADER_BYTES = 16_384;

// With Node's own half a minute, a slow sender would have three times its time.
/** Milliseconds between two looks for requests that are late. */
export const CONNECTION_CHECK_MS = 5000;

// A connection that sends its headers slowly is not a call yet, so slots do not count it.
/** Open connections to `tokenwright serve`. */
export const MAX_CONNECTIONS = 10_000;

/** Milliseconds for which `tokenwright serve` still takes connections while it stops, at most. */
export const ACCEPT_MS = 1000;

/** Milliseconds between two lines of `tokenwright serve` that count failed calls of its store. */
export const OUTAGE_REPORT_MS = 60_000;

// Otherwise a store that answers every other call would fill the log.
/** Milliseconds without a failure after which an answer of the store ends its outage. */
export const OUTAGE_QUIET_MS = 5000;

// With the other two limits of the end, below the ten seconds after which Docker kills a process.
/** Milliseconds after which `tokenwright serve` cuts off requests in progress when it is told to stop. */
export const SHUTDOWN_MS = 6000;

/** Milliseconds for the store of `tokenwright serve` to close after the last answer. */
export const CLOSE_MS = 2000;

// NIST SP 800-63B section 5.1.1.1.
/** Characters that a password has at least. */
export const MIN_PASSWORD_LENGTH = 8;

// NIST SP 800-63B section 5.2.2 allows 100 for an account, and to spare addresses from which the user has
// signed in before. Fewer would lock out programs that share an address and an old password.
// From one address, and from all addresses together from which the user has not signed in.
/** Wrong passwords for one user within `FAILURES_SECONDS`. */
export const MAX_FAILURES_OF_USER = 100;

/** Wrong passwords from one address, within `FAILURES_SECONDS`. */
export const MAX_FAILURES_OF_ADDRESS = 1000;

/** Seconds for which wrong passwords count. */
export const FAILURES_SECONDS = 900;

// Reads of one tick share a round trip, so few connections carry many calls.
/** Connections of `tokenwright serve` to PostgreSQL or MySQL. */
export const POOL_CONNECTIONS = 10;

/** Calls of `tokenwright serve` that wait for a connection to MySQL. */
export const MAX_POOL_QUEUE = 1000;

// A file that anybody can fill is a disk that anybody can fill.
/** Failed sign-ins, and other events that callers cause, in the audit log in one second. */
export const MAX_AUDITED_FAILURES = 50;

// A program signs in again with each call.
/** Milliseconds for which an account that signs in again from the same address is not written again. */
export const AUDIT_PAUSE_MS = 60_000;

/** Pairs of an account and an address that the audit log remembers. */
export const MAX_AUDITED_SIGN_INS = 10_000;

/** Bytes of lines that wait to be written to the audit log. */
export const MAX_WAITING_LOG_BYTES = 1_048_576;

/** Milliseconds for which the same error is written once. */
export const ERROR_LOG_PAUSE_MS = 60_000;

/** Different errors that are written in that time. */
export const MAX_ERROR_KINDS = 100;

/** Characters of the message of an error in the log. */
export const MAX_ERROR_LENGTH = 200;

/** Bytes of one file of an OpenAPI document. */
export const MAX_DOCUMENT_BYTES = 67_108_864;

/** Milliseconds for reading one file of an OpenAPI document. */
export const DOCUMENT_DEADLINE_MS = 10_000;

// Two small lists, of servers and of operations, make a large catalog.
/** Pairs of an operation and a server, in all OpenAPI documents of a catalog. */
export const MAX_CATALOG_PAIRS = 100_000;

/** URLs that the variables of one OpenAPI server stand for. */
export const MAX_SERVER_URLS = 64;

/** `$ref`s in an OpenAPI document that lead from one to the next. */
export const MAX_REFERENCES = 32;

/** Problems of OpenAPI documents that an error names. */
export const MAX_NAMED_PROBLEMS = 10;

/** Characters of a text of an OpenAPI document that an error quotes. */
export const MAX_QUOTED_LENGTH = 100;
