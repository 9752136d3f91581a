// Writes the tables of docs/security/limits.md. The numbers come from src/bounds.ts, and from the files
// whose constants have the tag @bound.
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as shared from '../../src/bounds.ts';

const SRC = join(import.meta.dirname, '../../src');

const PAGE = new URL('../security/limits.md', import.meta.url);

/** One limit. `{NAME}` is a bound with its unit, `{NAME:number}` the bare number. */
export interface Row {
  readonly what: string;
  readonly limit: string;
  readonly beyond: string;
}

const invalidRequest = '[`invalid_request`](../errors.md#invalid_request)';
const invalidOptions = '[`invalid_options`](../errors.md#invalid_options)';
const quotaExceeded = '[`quota_exceeded`](../errors.md#quota_exceeded)';
const unavailable = '[`store_unavailable`](../errors.md#store_unavailable)';
const overloaded = '503 [`overloaded`](../errors.md#overloaded)';
const notConcrete = '[`catalog_not_concrete`](../errors.md#catalog_not_concrete)';
const endsPage = 'the page ends early, with a `cursor`';

/** The tables of the page, by the names of their marks. */
export const TABLES: Readonly<Record<string, readonly Row[]>> = {
  token: [
    {
      what: '`account`',
      limit: '1 to {MAX_ACCOUNT_BYTES} of UTF-8, no control characters',
      beyond: invalidRequest,
    },
    {
      what: 'active or suspended tokens of an account: `quotas.tokensPerAccount`',
      limit: '{DEFAULT_TOKENS_PER_ACCOUNT}; 1 to {MAX_TOKENS_PER_ACCOUNT}',
      beyond: `${quotaExceeded}; processes together may exceed it by a sixteenth of the room that was left`,
    },
    {
      what: 'expired and revoked tokens of an account: `quotas.endedPerAccount`',
      limit: '{ENDED_PER_LIVE:number} times `tokensPerAccount`; 1 to {MAX_ENDED_PER_ACCOUNT}',
      beyond: 'the oldest are purged early',
    },
    {
      what: 'active or suspended tokens that are derived from one, at any depth: `quotas.derivedPerRoot`',
      limit: '{DEFAULT_DERIVED_PER_ROOT:number}; 1 to {MAX_DERIVED_PER_ROOT:number}',
      beyond:
        '`quota_exceeded`; ended ones {ENDED_PER_LIVE:number} times as many, and the oldest are purged early',
    },
    {
      what: 'counts of tokens for quotas, which a process remembers',
      limit:
        '{MAX_QUOTA_HOLDERS} accounts and roots, for {QUOTA_TRUST_MS}; a new count after {QUOTA_SHARE} of the room that was left',
      beyond: 'the store counts again',
    },
    {
      what: 'ended records of an account that are purged early in one call of the store',
      limit: '{PRUNE_BATCH}',
      beyond: 'another call',
    },
    {
      what: '`requested` of a revoked token, as JSON. Its `scopes` and `metadata` are gone',
      limit: '{MAX_REVOKED_REQUESTED_BYTES:number} bytes',
      beyond: 'the rest is dropped',
    },
    {
      what: '`name`',
      limit: '1 to {MAX_NAME_LENGTH} characters, no control characters',
      beyond: '`invalid_request`',
    },
    {
      what: '`metadata`',
      limit:
        'a JSON object of {MAX_METADATA_BYTES:number} bytes, with at most {MAX_METADATA_DEPTH} levels',
      beyond: '`invalid_request`',
    },
    {
      what: '`scopes`, as asked for and as granted. A wildcard counts as the scopes that it expands to',
      limit: '1 to {MAX_SCOPES:number}',
      beyond:
        '[`scopes_required`](../errors.md#scopes_required), [`too_many_scopes`](../errors.md#too_many_scopes)',
    },
    {
      what: '`quotas.scopesPerToken`, for fewer scopes',
      limit: '{MAX_SCOPES:number}; 1 to {MAX_SCOPES:number}',
      beyond: '`quota_exceeded`',
    },
    {
      what: 'scopes, requested scopes, metadata and limits of a token together, as JSON',
      limit: '{MAX_RECORD_BYTES}',
      beyond: '`quota_exceeded`; a larger record in the store is `store_corrupt`',
    },
    {
      what: '`limits.addresses`',
      limit: '{MAX_LIMIT_ADDRESSES:number} addresses and blocks',
      beyond: '`invalid_limits`',
    },
    {
      what: '`limits.rate.seconds`',
      limit: '1 second to {MAX_RATE_SECONDS}',
      beyond: '`invalid_limits`',
    },
    {
      what: 'tokens from which a token is derived, one from the other',
      limit: '{MAX_ANCESTORS:number}',
      beyond: '`quota_exceeded`',
    },
    {
      what: 'one scope',
      limit:
        '{MAX_SCOPE_LENGTH:number} characters: a method of {MAX_METHOD_LENGTH}, a host of {MAX_HOST_LENGTH} with labels of {MAX_LABEL_LENGTH}, a path of {MAX_PATH_LENGTH} with {MAX_PATH_SEGMENTS} segments, {MAX_PATH_TEMPLATES} of them `{}`',
      beyond: '[`invalid_scope`](../errors.md#invalid_scope)',
    },
    {
      what: 'lifetime; `lifetime.maxSeconds` and `--max-ttl` lower it',
      limit: '1 second to {MAX_LIFETIME_SECONDS}',
      beyond:
        '[`invalid_ttl`](../errors.md#invalid_ttl), [`invalid_expire`](../errors.md#invalid_expire)',
    },
    {
      what: '`graceSeconds`',
      limit: '0 to {MAX_LIFETIME_SECONDS}, and never past the expiry of the token',
      beyond:
        '`invalid_request`; a grace past the expiry is cut off, and one that begins more than {MAX_EARLY_GRACE_MS} in the future is not granted',
    },
    {
      what: '`prefix`',
      limit: '2 to 16 of `a-z` and `0-9`, a letter first; then at most one `_` with 1 to 8 more',
      beyond: invalidOptions,
    },
    { what: 'a value', limit: 'its prefix and 59 characters more', beyond: '' },
    {
      what: 'a value of another system, of a format in `foreign`',
      limit: '{MIN_FOREIGN_LENGTH} to {MAX_FOREIGN_LENGTH} characters of visible ASCII',
      beyond: 'a refusal, `malformed`',
    },
    {
      what: 'rows that `importMany` looks for in the store together, and inserts concurrently',
      limit: '{IMPORT_STEP}',
      beyond: 'the next step',
    },
  ],
  call: [
    {
      what: '`deadlineMs`: one answer of a store, or of a `catalog` function',
      limit: '{DEFAULT_DEADLINE_MS:number} ms; 1 to {MAX_DEADLINE_MS:number}',
      beyond: unavailable,
    },
    {
      what: '`limit` of `list`',
      limit: '{DEFAULT_PAGE_TOKENS} tokens; 1 to {MAX_PAGE_TOKENS:number}',
      beyond: invalidRequest,
    },
    {
      what: '`maxBytes` of `list`: scopes, requested scopes, metadata and limits on one page',
      limit: '{MAX_RECORD_BYTES}; 1 byte to {MAX_RECORD_BYTES}',
      beyond: `${endsPage}; it always holds one token`,
    },
    {
      what: 'scopes in the `scope` of `list`',
      limit: '{MAX_FILTER_SCOPES}',
      beyond: '`invalid_request`',
    },
    {
      what: '`list` with `scope`, `name`, `domain` or `unused`: tokens looked at for one page',
      limit: '{MAX_SCANNED_TOKENS}, in batches of {SCANNED_BATCH}',
      beyond: endsPage,
    },
    {
      what: 'the same: time of the event loop for one page',
      limit: '{SCAN_BUDGET_MS}, checked after each batch',
      beyond: endsPage,
    },
    {
      what: '`list` by `name` or `lastUsed`, or by `expire` with a `parent`: tokens that are sorted',
      limit:
        '{MAX_SORTED_TOKENS}, among {MAX_SORTED_FROM:number} that are looked at, with {MAX_SORTED_BYTES}',
      beyond: '`invalid_request`',
    },
    { what: 'a cursor', limit: '{MAX_CURSOR_LENGTH} characters', beyond: '`invalid_request`' },
    {
      what: 'scopes in one turn of the event loop, when a token is issued or changed',
      limit: '{MAX_SCOPES_A_TURN}',
      beyond: 'other calls run between the steps',
    },
    {
      what: 'live descendants that `rotate` counts',
      limit: '{MAX_COUNTED_DESCENDANTS}',
      beyond: 'it says so many',
    },
    {
      what: 'descendants of a token that are revoked concurrently',
      limit: '{MAX_REVOKED_TOGETHER}',
      beyond: 'the others follow',
    },
    {
      what: 'attempts at a change while other changes of the same token win',
      limit: '{MAX_CHANGE_ATTEMPTS:number}',
      beyond: '[`version_conflict`](../errors.md#version_conflict)',
    },
    {
      what: '`limit` of `purge`',
      limit: 'none; 1 to {MAX_PURGED}, in batches of {PURGE_BATCH:number}',
      beyond: '`invalid_request`',
    },
    {
      what: '`purgeAfterDays` of `upkeep`; the days of `advise` and `review`',
      limit: '1 to {MAX_REVIEWED_DAYS:number} days',
      beyond: '`invalid_request`',
    },
    {
      what: '`everyMs` of `upkeep`: from one round to the next; the first round is within {UPKEEP_START_MS}',
      limit: '{DEFAULT_UPKEEP_MS}; {MIN_UPKEEP_MS:number} ms to {MAX_UPKEEP_MS}',
      beyond: '`invalid_request`',
    },
    {
      what: 'records that `upkeep` removes in one call of the store',
      limit: '{UPKEEP_BATCH:number}, with a pause of {UPKEEP_PAUSE_MS:number} ms',
      beyond: 'another call',
    },
    {
      what: 'from one time that `upkeep` looks for usage of tokens that are gone to the next',
      limit: '{USAGE_PASS_MS}',
      beyond: '',
    },
    {
      what: 'while `upkeep` cannot believe the clock of its process: until it asks again',
      limit: '{UPKEEP_RETRY_MS}',
      beyond: 'it removes nothing meanwhile',
    },
    {
      what: 'records that `scan`, `review` and `reseal` read in one call of the store',
      limit: '{SCAN_STEP:number}',
      beyond: 'another call',
    },
    {
      what: 'records that `reseal` writes concurrently; attempts at one that others keep changing',
      limit: '{WRITTEN_TOGETHER:number}; {MAX_RESEAL_ATTEMPTS:number}',
      beyond: 'the next of them; the record is counted as `missed`',
    },
    {
      what: 'tokens that `revokeAll` marks in one call of the store',
      limit: '{REVOKE_BATCH}',
      beyond: 'another batch',
    },
    {
      what: 'a summary, a tag or another word about an entry of a catalog',
      limit: '{MAX_WORDS_LENGTH} characters',
      beyond: 'the rest is dropped',
    },
    {
      what: 'the target of a request',
      limit: '{MAX_TARGET_LENGTH:number} characters',
      beyond: '[`ambiguous_request`](../refusals.md), `path_too_long`',
    },
    {
      what: 'probes of the hash table of a set of scopes, for one decision',
      limit: '{MAX_PROBES}: one for each form of path, times the hosts and methods that fit',
      beyond: 'an index of bit vectors is asked, which takes longer',
    },
  ],
  errors: [
    {
      what: 'refused scopes that a message names',
      limit: '{MAX_NAMED_SCOPES}',
      beyond: 'in `details` alone',
    },
    {
      what: 'scopes that a catalog or the grammar refused, in `details`',
      limit: '{MAX_DETAILS_LENGTH} characters of scopes',
      beyond: 'counted in `details.omitted`',
    },
    {
      what: 'suggestions for a misspelled scope',
      limit: '{MAX_SUGGESTIONS} for each of the first {MAX_NAMED_SCOPES} refused scopes',
      beyond: 'none',
    },
    {
      what: 'work on all suggestions of one call',
      limit: '{SUGGESTION_BUDGET} cells of the edit distance, which take a few milliseconds',
      beyond: 'the nearest scopes found so far',
    },
    {
      what: 'unknown members that are compared with the known ones',
      limit: '{MAX_COMPARED_NAMES}',
      beyond: 'no "did you mean"',
    },
  ],
  memory: [
    {
      what: '`cache.maxStaleMs`',
      limit: '0: nothing is cached; up to {MAX_STALE_MS:number} ms',
      beyond: invalidOptions,
    },
    {
      what: 'pause before a store is asked again to report changes, if its reports get lost on the way',
      limit: '{DEAF_RETRY_MS}',
      beyond: 'caches notice changes after `maxStaleMs`',
    },
    {
      what: '`cache.maxEntries`',
      limit: '{DEFAULT_CACHE_ENTRIES} tokens; 1 to {MAX_CACHE_ENTRIES}',
      beyond: 'the token that was read longest ago is evicted; often `cache.maxBytes` comes first',
    },
    {
      what: '`cache.maxBytes`, with compiled scopes',
      limit: 'about {DEFAULT_CACHE_BYTES}; {MIN_CACHE_BYTES} to {MAX_CACHE_BYTES}',
      beyond: 'the same',
    },
    {
      what: 'values whose tag was checked, as hashes',
      limit:
        'two generations of {MAX_REMEMBERED_VALUES:number} in each service, and as many of other systems',
      beyond: 'the older generation is evicted',
    },
    {
      what: 'parsed scopes',
      limit:
        '{MAX_REMEMBERED_SCOPES:number} in a process, of at most {MAX_REMEMBERED_SCOPE_LENGTH} characters each',
      beyond: 'parsed again',
    },
    {
      what: '`maxListBytes` of a store in a database: parsed lists of scopes, with their compiled form',
      limit: 'about {DEFAULT_LIST_BYTES}; {MIN_LIST_BYTES} to {MAX_LIST_BYTES}',
      beyond:
        'the oldest that is not in use is evicted; a list for which there is no room is parsed for each read',
    },
    {
      what: 'counts of usage that wait to be written: pairs of a token and a scope',
      limit: '{MAX_USAGE_ENTRIES}',
      beyond: 'the oldest are dropped, and the event `usage_dropped` counts them',
    },
    {
      what: 'writes to Redis that are remembered, to repeat them if a failover lost them',
      limit:
        '{RECENT_WRITES_MS}, {MAX_RECENT_WRITES} writes, {MAX_RECENT_WRITES_LENGTH} characters; {RECENT_WRITES_SHARE} of them for one account',
      beyond: 'the oldest are forgotten, and are not repeated',
    },
  ],
  stores: [
    {
      what: 'tokens that one call of `find` asks for, when reads start together',
      limit: '{MAX_FOUND_TOGETHER:number}',
      beyond: 'another call',
    },
    {
      what: 'a list of scopes that SQLite, PostgreSQL and MySQL leave out of an answer while it is the remembered one',
      limit: 'from {LONG_LIST_BYTES} on',
      beyond: '',
    },
    {
      what: 'a write to SQLite, while another process writes to the same file',
      limit: '{SQLITE_BUSY_MS:number} ms',
      beyond: unavailable,
    },
    {
      what: 'the event loop, for one attempt of SQLite to get the lock of the file',
      limit: '{SQLITE_TRY_MS}',
      beyond: 'another attempt, 5 to 15 ms later',
    },
    {
      what: 'records that `revokeAll` and `purge` change in SQLite in one turn of the event loop',
      limit: '{SQLITE_STEP}',
      beyond: 'another turn',
    },
    {
      what: 'tokens that one Redis script changes',
      limit: '{REDIS_BATCH}',
      beyond: 'another script',
    },
    {
      what: 'uses of a limited token that one process leases in one step',
      limit:
        '{LEASE_SHARE} of the limit, and {MAX_LEASE}; twice as many as before if those were used within {LEASE_QUICK_MS}, one if they lasted for {LEASE_SLOW_MS}',
      beyond: 'another lease',
    },
    {
      what: 'leased uses that nobody needs',
      limit: '{LEASE_IDLE_MS} to twice as long',
      beyond: 'they are given back',
    },
    {
      what: 'a limit that has no use left',
      limit: '{LEASE_RETRY_MS}',
      beyond: 'the store is asked again',
    },
    {
      what: 'a window of which the store grants nothing yet, since it has not begun by its clock',
      limit:
        '{LEASE_EARLY_MS}, then twice as long each time, within {MAX_EARLY_MS} and half the window after its start',
      beyond: 'the store is asked again',
    },
    {
      what: 'counts of limits, after the last moment at which they matter',
      limit: '{LEASE_KEPT_MS}, and the lifetime of {MAX_LIFETIME_SECONDS} longer for a total',
      beyond: 'the upkeep removes them',
    },
    {
      what: 'a request for a token: the name of its client; its scopes; these and its purpose together',
      limit:
        '{MAX_CLIENT_LENGTH:number} characters; {MAX_ASKED_SCOPES:number}; {MAX_REQUEST_BYTES}',
      beyond: '`invalid_request`, `too_many_scopes`',
    },
    {
      what: 'requests to elevate tokens of one root, until they expire, also decided ones',
      limit: '{MAX_REQUESTS_OF_ROOT:number}',
      beyond: '`quota_exceeded`',
    },
    {
      what: 'from an approval to the last poll, at least',
      limit: '{REDEEM_MS}',
      beyond: 'the request has expired',
    },
    {
      what: 'in {TRY_WINDOW_MS}: wrong user codes of an account, and from an address; requests from an address; requests to elevate tokens of one root',
      limit:
        '{MAX_WRONG_CODES:number}; {MAX_OPENED_BY_ADDRESS:number}; {MAX_OPENED_BY_ROOT:number}',
      beyond: '[`rate_limited`](../errors.md#rate_limited)',
    },
    {
      what: 'requests for tokens, after their end',
      limit: '{REQUEST_KEPT_MS}',
      beyond: 'the upkeep removes them',
    },
    {
      what: '`usage.flushMs`: until counts of usage are written',
      limit: '{DEFAULT_FLUSH_MS:number} ms; {MIN_FLUSH_MS} to {MAX_FLUSH_MS}',
      beyond: invalidOptions,
    },
    {
      what: 'counts of usage that are written without waiting for `usage.flushMs`',
      limit: '{FLUSHED_ENTRIES:number}',
      beyond: '',
    },
    {
      what: 'counts in one call of a usage store',
      limit: '{USAGE_BATCH:number}',
      beyond: 'another call',
    },
    {
      what: 'scopes of one token that a usage store counts apart',
      limit: '{MAX_COUNTED_SCOPES:number}',
      beyond: 'the rest shares one entry, `other`',
    },
    {
      what: 'entries of one index that one Redis script reads for a page',
      limit: '{MAX_REDIS_SCAN:number}',
      beyond: 'another script',
    },
  ],
  handler: [
    {
      what: 'path and query',
      limit: '{MAX_ADDRESS_LENGTH:number} characters',
      beyond: '414 [`uri_too_long`](../errors.md#uri_too_long)',
    },
    {
      what: '`maxBodyBytes`',
      limit: '{DEFAULT_BODY_BYTES}',
      beyond: '413 [`payload_too_large`](../errors.md#payload_too_large)',
    },
    {
      what: '`bodyTimeoutMs`: a whole body',
      limit: '{DEFAULT_BODY_TIMEOUT_MS:number} ms; 1 to {MAX_TIMEOUT_MS:number}',
      beyond: '400 [`invalid_json`](../errors.md#invalid_json)',
    },
    {
      what: 'a form for `/introspect` or `/revoke`',
      limit: '{MAX_FORM_BYTES}, within {FORM_TIMEOUT_MS}; less if the two options above say less',
      beyond: '413, 400',
    },
    {
      what: 'a form for `/oauth/token`',
      limit:
        '{MAX_GRANT_FORM_BYTES}, within {FORM_TIMEOUT_MS}; less if the two options above say less; {MAX_TARGETS:number} hosts in `resource` and `audience`',
      beyond: '413, 400',
    },
    {
      what: 'a token from `/oauth/token` without a `ttl`',
      limit: '{EXCHANGED_SECONDS:number} s, and no longer than its parent and the longest lifetime',
      beyond: 'it expires',
    },
    {
      what: '`sendTimeoutMs`: for the client to read on',
      limit: '{DEFAULT_SEND_TIMEOUT_MS:number} ms; 1 to {MAX_TIMEOUT_MS:number}',
      beyond: 'its connection is closed',
    },
    {
      what: '`maxInFlight`: slots for calls in progress behind credentials; as many again for each other kind: JSON bodies, forms of `/introspect`, calls and forms of `/revoke`, calls and forms of `/oauth/token`, and calls of each kind of caller whose credentials are being checked',
      limit: '{DEFAULT_IN_FLIGHT:number}',
      beyond: overloaded,
    },
    {
      what: 'slots behind credentials for one account and, with `clientAddress`, one address',
      limit: '{SLOT_SHARE} of each kind, rounded up',
      beyond: '503 `overloaded`',
    },
    {
      what: 'slots before credentials of one address, with `clientAddress`',
      limit: '{STRANGER_SHARE} of each kind, rounded up',
      beyond:
        'as many calls as make it {SLOT_SHARE} wait for their check, up to {AUTHENTICATE_DEADLINE_MS}; 503 `overloaded`',
    },
    {
      what: 'callers whose credentials were right and who need no slot before them, of each kind; credentials of one of them',
      limit: '{MAX_KNOWN_CALLERS:number}; {MAX_KNOWN_CREDENTIALS}',
      beyond: 'the oldest begin like strangers again',
    },
    {
      what: 'calls of one connection of HTTP/1 that are worked on, with `toNodeListener`',
      limit:
        'one, and {MAX_WAITING_CALLS_OF_CONNECTION:number} that wait; {MAX_WAITING_CALLS:number} wait on all connections',
      beyond: 'the connection is closed after those',
    },
    {
      what: 'calls that waited behind others of their connection and start in one turn of the event loop',
      limit: '{STARTED_A_TURN}',
      beyond: 'the next turn',
    },
    {
      what: 'a body, a token or a list of tokens, for one slot',
      limit: '{SLOT_BYTES}',
      beyond: 'more slots, up to the share of one account',
    },
    {
      what: 'a long list, made into JSON piece by piece',
      limit: 'pieces of {ANSWER_PIECE_LENGTH} characters',
      beyond: 'the next piece waits until the client has taken this one',
    },
    {
      what: '`limit` of `GET /token`',
      limit: '1 to {MAX_WIRE_PAGE_TOKENS}',
      beyond: '400 `invalid_request`',
    },
    {
      what: '`GET /token` with a `limit` or a `cursor`: scopes, requested scopes, metadata and limits in one answer',
      limit: '{MAX_RECORD_BYTES}',
      beyond: 'the answer ends early, with a `cursor`',
    },
    {
      what: '`GET /token` without them',
      limit:
        'the same, {MAX_LISTED_BYTES} and perhaps one token more; {MAX_LISTED_TOKENS} tokens, in batches of {LISTED_BATCH}',
      beyond: 'the answer ends early, with a `cursor`',
    },
    {
      what: '`GET /token` without them: time to look for matching tokens, or to sort by name or last use',
      limit: '{LISTING_BUDGET_MS} and one page more',
      beyond: 'the answer ends early, with a `cursor`',
    },
    {
      what: '`GET /review`: findings on one page, and time',
      limit:
        '{MAX_PAGE_FINDINGS}, plus the findings of one token; {REVIEW_BUDGET_MS} and a hundred tokens more',
      beyond: 'the answer ends early, with a `cursor`',
    },
    {
      what: 'your `authenticate` and your `session`',
      limit: '{AUTHENTICATE_DEADLINE_MS}',
      beyond: '503 `store_unavailable`',
    },
    {
      what: 'a password that `fixedAccounts` checks, with the wait for its turn',
      limit: '{PASSWORD_DEADLINE_MS}',
      beyond: '503 `overloaded`',
    },
    {
      what: 'a `limiter`: each of its answers',
      limit: '{LIMITER_DEADLINE_MS}',
      beyond: '503 `store_unavailable`; a right password gets in if only `succeeded` is late',
    },
    {
      what: 'wrong credentials',
      limit: 'none, unless you pass a `limiter`',
      beyond: '429 [`rate_limited`](../errors.md#rate_limited)',
    },
    {
      what: 'passwords that `fixedAccounts` checks or keeps waiting',
      limit: '{MAX_PASSWORD_CHECKS} in a process',
      beyond: '503 `overloaded`',
    },
    {
      what: 'hashes of passwords that run concurrently',
      limit: 'one fewer than processors, 1 to {MAX_HASHES} in a process',
      beyond:
        'they wait; addresses take turns, and users who have signed in from theirs before come first in every second one',
    },
    {
      what: 'networks from which users have signed in, as a process remembers them',
      limit: '{MAX_KNOWN_NETWORKS} of a user, of {MAX_KNOWN_USERS:number} users',
      beyond: 'the oldest are forgotten',
    },
    {
      what: 'a right password is remembered',
      limit: '{PASSWORD_REMEMBERED_MS}',
      beyond: 'it is checked again',
    },
    {
      what: 'reports to `onError` about late answers, or bad addresses',
      limit: 'one of each kind in {REPORT_PAUSE_MS}',
      beyond: 'not reported',
    },
  ],
  mcp: [
    {
      what: 'a message',
      limit: '{MAX_MESSAGE_BYTES}, within {DEFAULT_BODY_TIMEOUT_MS}',
      beyond: '413 `payload_too_large`; 400',
    },
    {
      what: 'a message without a token',
      limit: '{MAX_STRANGER_BYTES}',
      beyond: '401 without the scope of its tool',
    },
    {
      what: 'levels of objects and lists in a message',
      limit: '{MAX_NAMED_DEPTH:number}',
      beyond: '400, error -32600',
    },
    {
      what: 'name of a tool',
      limit:
        '1 to {MAX_TOOL_NAME_LENGTH:number} of `A-Z`, `a-z`, `0-9`, `_`, `.` and `-`, not only dots',
      beyond: 'it needs an entry in `tools`',
    },
    {
      what: 'scopes in a challenge',
      limit: '{MAX_CHALLENGE_LENGTH:number} characters',
      beyond: 'only the one that is needed',
    },
  ],
  serve: [
    {
      what: 'headers',
      limit: '{MAX_HEADER_BYTES}, within {HEADERS_TIMEOUT_MS}',
      beyond: '431, 408',
    },
    {
      what: 'a whole request',
      limit: '{REQUEST_TIMEOUT_MS}; late ones are noticed within {CONNECTION_CHECK_MS}',
      beyond: '408',
    },
    { what: 'connections', limit: '{MAX_CONNECTIONS}', beyond: 'closed immediately' },
    {
      what: 'connections to PostgreSQL or MySQL',
      limit: '{POOL_CONNECTIONS}; {MAX_POOL_QUEUE:number} calls wait for one to MySQL',
      beyond: '503 `store_unavailable`',
    },
    {
      what: '`--max-tokens`: active or suspended tokens of an account',
      limit: '{DEFAULT_TOKENS_PER_ACCOUNT}; 1 to {MAX_TOKENS_PER_ACCOUNT}',
      beyond: `422 ${quotaExceeded}`,
    },
    {
      what: '`--max-ended`: expired or revoked tokens of an account',
      limit: '{ENDED_PER_LIVE:number} times `--max-tokens`; 1 to {MAX_ENDED_PER_ACCOUNT}',
      beyond: 'the oldest are purged early',
    },
    {
      what: '`--max-derived`: active or suspended tokens that are derived from one',
      limit: '{DEFAULT_DERIVED_PER_ROOT:number}; 1 to {MAX_DERIVED_PER_ROOT:number}',
      beyond: '422 `quota_exceeded`',
    },
    {
      what: '`--max-scopes`: scopes of a token',
      limit: '{MAX_SCOPES:number}; 1 to {MAX_SCOPES:number}',
      beyond: '422 `quota_exceeded`',
    },
    {
      what: 'a password',
      limit: 'at least {MIN_PASSWORD_LENGTH} characters',
      beyond: 'it does not start',
    },
    {
      what: 'wrong passwords, in {FAILURES_SECONDS}',
      limit:
        '{MAX_FAILURES_OF_USER} for a user from one address, and from all addresses together from which the user has not signed in; {MAX_FAILURES_OF_ADDRESS:number} from one address',
      beyond: '429 `rate_limited`',
    },
    {
      what: 'a session of the console; its cookie until it is renewed',
      limit: '{SESSION_MS}; {COOKIE_MS}',
      beyond: '401 `unauthenticated`',
    },
    {
      what: 'sessions that were signed out within {COOKIE_MS}',
      limit: '{MAX_ENDED_SESSIONS}',
      beyond: 'the store is asked about the oldest ones',
    },
    {
      what: '`--audit`: failed sign-ins and refused sessions; the events `reused` and `store_trouble`',
      limit: '{MAX_AUDITED_FAILURES} of each in a second',
      beyond: 'counted in one line',
    },
    {
      what: '`--audit`: sign-ins of one account from one address',
      limit:
        'one in {AUDIT_PAUSE_MS}; {MAX_AUDITED_SIGN_INS} pairs of account and address are remembered',
      beyond: 'not written; the oldest pair is forgotten',
    },
    {
      what: '`--audit`, and `--log json`: lines that wait for the disk or the reader, each',
      limit: '{MAX_WAITING_LOG_BYTES}',
      beyond: 'lost, and counted in one line',
    },
    {
      what: 'the same error on standard error',
      limit: 'one in {ERROR_LOG_PAUSE_MS}, its message cut at {MAX_ERROR_LENGTH} characters',
      beyond: 'counted in one line',
    },
    {
      what: 'different errors in that time',
      limit: '{MAX_ERROR_KINDS}',
      beyond: 'counted together as "other errors"',
    },
    {
      what: 'lines on standard error about an outage of the store',
      limit: 'one at its begin, one in {OUTAGE_REPORT_MS}, and one at its end',
      beyond: 'failed calls are counted',
    },
    {
      what: 'an outage of the store: answers between failures',
      limit: '{OUTAGE_QUIET_MS}',
      beyond: 'an answer after so long without a failure ends it',
    },
    {
      what: 'after SIGTERM: new connections',
      limit: '{ACCEPT_MS}; less when none has come for 150 ms',
      beyond: 'refused',
    },
    {
      what: 'after SIGTERM: requests in progress',
      limit: '{SHUTDOWN_MS}',
      beyond: 'their connections are closed, and one line tells how many',
    },
    {
      what: 'after the last answer: the store closes',
      limit: '{CLOSE_MS}',
      beyond: 'the process ends',
    },
  ],
  openapi: [
    {
      what: 'a file',
      limit: '{MAX_DOCUMENT_BYTES}, within {DOCUMENT_DEADLINE_MS}; regular files only',
      beyond: notConcrete,
    },
    {
      what: 'pairs of an operation and a server, in all documents',
      limit: '{MAX_CATALOG_PAIRS}',
      beyond: '`catalog_not_concrete`',
    },
    {
      what: 'URLs that the variables of one server stand for',
      limit: '{MAX_SERVER_URLS}',
      beyond: '`catalog_not_concrete`',
    },
    {
      what: '`$ref` after `$ref`',
      limit: '{MAX_REFERENCES}',
      beyond: '`catalog_not_concrete`',
    },
    {
      what: 'files that a document refers to',
      limit: 'those in its folder, or in that of `root`',
      beyond: '`catalog_not_concrete`',
    },
    {
      what: 'problems that an error names',
      limit: '{MAX_NAMED_PROBLEMS}, quoting {MAX_QUOTED_LENGTH} characters of a text',
      beyond: 'counted',
    },
  ],
};

/** All numbers that a row may name. */
export const BOUNDS: Readonly<Record<string, unknown>> = Object.assign(
  { ...shared },
  ...(await Promise.all(
    globSync('**/*.ts', { cwd: SRC })
      .map((file) => join(SRC, file))
      .filter((file) => readFileSync(file, 'utf8').includes('@bound'))
      .map((file) => import(file) as Promise<object>),
  )),
);

/** The names of the bounds that a row gives. */
export function boundsIn({ what, limit, beyond }: Row): string[] {
  return [...`${what}${limit}${beyond}`.matchAll(PLACEHOLDER)].map(([, name = '']) => name);
}

/** The page with each table as the rows and the bounds have it. */
export function withTables(markdown: string): string {
  return Object.entries(TABLES).reduce((page, [name, rows]) => {
    const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
    const [from, to] = [page.indexOf(begin), page.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`${PAGE.pathname} has no place for ${name}`);
    return `${page.slice(0, from + begin.length)}\n\n${tableOf(rows)}\n\n${page.slice(to)}`;
  }, markdown);
}

function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ what, limit, beyond }) => `| ${what} | ${limit} | ${beyond} |`);
  return withBounds(['| what | limit | beyond it |', '| --- | --- | --- |', ...lines].join('\n'));
}

/** The text with each bound as its number. */
export function withBounds(text: string): string {
  return text.replace(PLACEHOLDER, (_, name: string, isBare?: string) => {
    const value = BOUNDS[name];
    if (typeof value !== 'number') throw new Error(`${name} is no bound`);
    return isBare === undefined ? withUnit(name, value) : grouped(value);
  });
}

const PLACEHOLDER = /\{([A-Z_]+)(:number)?\}/g;

const KIB = 1024;
const SIZES = [
  [KIB ** 3, 'GiB'],
  [KIB ** 2, 'MiB'],
  [KIB, 'KiB'],
  [1, 'bytes'],
] as const;
const SPANS = [
  [86_400_000, 'days'],
  [60_000, 'minutes'],
  [1000, 's'],
  [1, 'ms'],
] as const;

/** Names of bounds end in their unit. */
function withUnit(name: string, value: number): string {
  if (name.endsWith('_BYTES')) return inLargest(SIZES, value);
  if (name.endsWith('_MS')) return inLargest(SPANS.slice(value > 60_000 ? 0 : 2), value);
  if (name.endsWith('_SECONDS')) return inLargest(SPANS, 1000 * value);
  if (name.endsWith('_SHARE')) return `1/${1 / value}`;
  return grouped(value);
}

/** In the largest unit of which it is a whole number. */
function inLargest(units: readonly (readonly [number, string])[], value: number): string {
  const [size, unit] = units.find(([size]) => value % size === 0) ?? [1, ''];
  return `${grouped(value / size)} ${unit}`;
}

/** From five digits on, in groups of three. */
function grouped(value: number): string {
  return value < 10_000 ? `${value}` : `${value}`.replace(/\B(?=(?:\d{3})+$)/g, ' ');
}

if (import.meta.main) {
  const page = readFileSync(PAGE, 'utf8');
  if (withTables(page) !== page) writeFileSync(PAGE, withTables(page));
}
