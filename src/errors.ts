/** The page about error codes, which ships with the package. */
export const ERROR_PAGE = 'node_modules/tokenwright/docs/errors.md';

/**
 * The codes of {@link TokenError}: stable, public names. Messages may change, codes do not.
 */
export type TokenErrorCode =
  | 'invalid_scope'
  | 'scopes_required'
  | 'scope_unmatched'
  | 'too_many_scopes'
  | 'quota_exceeded'
  | 'catalog_empty'
  | 'invalid_ttl'
  | 'invalid_expire'
  | 'invalid_limits'
  | 'invalid_request'
  | 'invalid_options'
  | 'invalid_token'
  | 'not_found'
  | 'token_expired'
  | 'version_conflict'
  | 'request_decided'
  | 'unauthorized_client'
  | 'rate_limited'
  | 'id_taken'
  | 'code_taken'
  | 'store_unavailable'
  | 'store_corrupt'
  | 'durability_unconfirmed';

/** The HTTP status of each code. */
export const STATUS_OF: Readonly<Record<TokenErrorCode, number>> = {
  invalid_request: 400,
  scopes_required: 422,
  invalid_scope: 422,
  scope_unmatched: 422,
  too_many_scopes: 422,
  quota_exceeded: 422,
  catalog_empty: 503,
  invalid_ttl: 422,
  invalid_expire: 422,
  invalid_limits: 422,
  invalid_options: 500,
  invalid_token: 401,
  not_found: 404,
  token_expired: 409,
  version_conflict: 412,
  request_decided: 409,
  unauthorized_client: 400,
  rate_limited: 429,
  id_taken: 500,
  code_taken: 500,
  store_unavailable: 503,
  store_corrupt: 503,
  durability_unconfirmed: 503,
};

const BRAND = Symbol.for('tokenwright.TokenError');

/**
 * The reason why a call failed.
 *
 * `code` is for programs. `message` is for people: it says what was wrong and what would be right. Neither
 * contains a token value, a secret, a key or a password. There is never a `cause`, because errors of
 * drivers and parsers quote input.
 *
 * @example
 * try {
 *   await tokens.issue({ account: 'acme', scopes: ['get:shop.example/orders'] });
 * } catch (error) {
 *   if (isTokenError(error)) console.log(error.code); // 'invalid_scope'
 * }
 */
export class TokenError extends Error {
  /** The name of these errors, in every copy of this package. */
  override readonly name: 'TokenError';
  /** What happened, for programs. */
  readonly code: TokenErrorCode;
  /** Facts for programs, as plain JSON, such as the refused scopes and similar known ones. */
  declare readonly details?: Readonly<Record<string, unknown>>;

  /** For your own stores, which throw `id_taken`, `code_taken`, `quota_exceeded` and `durability_unconfirmed`. */
  constructor(code: TokenErrorCode, message: string, details?: Readonly<Record<string, unknown>>) {
    super(message);
    // esbuild's CommonJS output names a class with field initializers `_class`.
    this.name = 'TokenError';
    this.code = code;
    if (details !== undefined) this.details = details;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /**
   * The HTTP status that says the same to a client: 4xx if the call is wrong, 503 if a store or a catalog
   * fails, 500 for a mistake in the program. Express and others take it from an error by themselves.
   */
  get status(): number {
    return STATUS_OF[this.code];
  }

  /**
   * What there is to know of this code, as a path from the folder that holds `node_modules`, such as
   * `node_modules/tokenwright/docs/errors.md#not_found`. `npx tokenwright docs not_found` prints it.
   * Not part of the error's JSON, nor printed with it.
   */
  get docsUrl(): string {
    return `${ERROR_PAGE}#${this.code}`;
  }
}

/**
 * Whether a caught value is a {@link TokenError}. Also recognizes errors of another copy of this package
 * (the ESM and the CommonJS build may both be loaded), for which `instanceof` is false.
 *
 * @example
 * isTokenError(new TokenError('not_found', 'no such token')); // true
 * isTokenError(new Error('no such token')); // false
 */
export function isTokenError(value: unknown): value is TokenError {
  return value instanceof Error && BRAND in value;
}

/** The error for an option that cannot be used. */
export function invalidOptions(message: string): TokenError {
  return new TokenError('invalid_options', message);
}

/** The error for an option or an argument of which a getter or a proxy throws when it is read. */
export function unreadableOption(what: string): TokenError {
  return invalidOptions(`${what} could not be read: a getter or a proxy threw`);
}

/** The error for a call that reads all records, of a store that has no `scan`. */
export function noScan(): TokenError {
  return invalidOptions('this store has no scan, which reads all records');
}

/** The errors with which a store can fail. */
export type StoreFailure = TokenError & {
  readonly code: 'store_unavailable' | 'store_corrupt' | 'durability_unconfirmed';
  readonly details?: { readonly reason?: StoreReason; readonly store?: StorePart };
};

/** A call that took too long. */
export class DeadlineError extends Error {}

/** A part of a store beside its tokens: counts of uses, leases, requests for tokens, and what reports changes. */
export type StorePart = 'usage' | 'leases' | 'requests' | 'watch';

/** Why a store cannot be used: `details.reason` of `store_unavailable`. */
export type StoreReason =
  | 'unreachable'
  | 'timeout'
  | 'busy'
  | 'schema_missing'
  | 'schema_older'
  | 'schema_newer'
  | 'forbidden'
  | 'credentials'
  | 'tls'
  | 'no_database'
  | 'pooler'
  | 'prepared_full'
  | 'encoding'
  | 'full'
  | 'standby'
  | 'file_replaced'
  | 'not_opened'
  | 'closed'
  | 'transaction_failed'
  | 'unsupported'
  | 'foreign_request'
  | 'unknown';

/**
 * Why a store cannot be used, each with the one sentence that tells it: a driver's own text may quote
 * input, and never gets into an error. Only for the first three does waiting help.
 */
const STORE_REASONS: Readonly<Record<StoreReason, string>> = {
  unreachable: 'the store cannot be reached; try again later',
  timeout: 'the store did not answer in time; try again later',
  busy: 'the store is too busy; try again later',
  schema_missing:
    'a table of the store does not exist; call migrate(), or run tokenwright store migrate --store URL',
  schema_older:
    'a table of the store is not as this version needs it; call migrate(), or run tokenwright store migrate --store URL',
  schema_newer:
    'a later version of tokenwright has written this, and this version cannot read it; upgrade tokenwright',
  forbidden:
    'the database does not let this user do it; grant SELECT, INSERT, UPDATE and DELETE on the tables of tokenwright; migrate also needs the right to create and alter them, or an administrator runs the SQL that tokenwright store migrate --print shows',
  credentials: 'the database refuses the user name or the password; check both',
  tls: 'the database and its client do not agree on TLS: one of them has none, or the certificate is not trusted; correct the TLS options of the client, or give it the certificate of the authority',
  no_database:
    'the database does not exist, or none is selected; create it, or give the name of another one',
  pooler:
    'a pooler in transaction mode loses prepared statements and notifications, and PgBouncer refuses statement_timeout; set prepare: false (in a URL ?prepare=false) and ignore_startup_parameters = extra_float_digits,statement_timeout, or connect directly',
  prepared_full:
    'the server holds as many prepared statements as it may; set prepare: false, or raise max_prepared_stmt_count',
  encoding: 'the database cannot store all characters; create one with the encoding UTF8',
  full: 'the store has no room left; free its disk, or raise maxmemory if it is Redis',
  standby:
    'the store reached a standby or read-only server, which may not know about revocations; connect to the primary',
  file_replaced:
    'the database file was removed or replaced while it was open; put it back, or restart this process',
  not_opened:
    'the database file cannot be opened; it has to be a file of its own, in a folder that this process may write to',
  closed: 'the store, or its pool, was closed in this process; close it after the service',
  transaction_failed:
    'an earlier call in this transaction has failed; roll it back, and try again from its start',
  unsupported:
    'the database refuses a statement that the store needs; tokenwright store contract --store URL says what works',
  foreign_request:
    'the connection belongs to another request, which Cloudflare Workers do not allow; make a pool for each request',
  unknown:
    'the store failed for an unknown reason; tokenwright store doctor --store URL looks for it',
};

/** Says why a store has failed, by the code and the reason of the failure. */
export function sentenceOf({
  code,
  reason,
}: {
  readonly code: string;
  readonly reason?: StoreReason;
}): string {
  if (reason !== undefined) return STORE_REASONS[reason];
  return code === 'store_corrupt'
    ? 'it returns something that is not a record; other records can still be read and written'
    : STORE_REASONS.unknown;
}

/** The error for a store that cannot be used. */
export function storeUnavailable(reason: StoreReason, store?: StorePart): StoreFailure {
  return failureOf('store_unavailable', STORE_REASONS[reason], withPart({ reason }, store));
}

/**
 * The error for a failure of a store, without the driver's text. Of an error of the store itself, the code and
 * the reason count.
 */
export function storeFailure(error: unknown, store?: StorePart): StoreFailure {
  if (error instanceof DeadlineError) return storeUnavailable('timeout', store);
  if (!isTokenError(error)) return storeUnavailable('unknown', store);
  const { code } = error;
  const reason = String(error.details?.['reason']);
  if (isStoreReason(reason) && (code === 'store_unavailable' || code === 'store_corrupt')) {
    return failureOf(code, STORE_REASONS[reason], withPart({ reason }, store));
  }
  if (code === 'store_corrupt') return corruptStore();
  if (code === 'durability_unconfirmed') {
    return failureOf(
      code,
      'the change was made, but not confirmed by as many replicas as required; look at the token before you try again',
    );
  }
  return storeUnavailable('unknown', store);
}

/** The error for an answer that is not a token record. */
export function corruptStore(): StoreFailure {
  return failureOf('store_corrupt', 'the store answered with something that is not a token record');
}

/** The error for an answer that is not the usage of tokens. */
export function corruptUsage(): StoreFailure {
  return failureOf('store_corrupt', 'the usage store answered with something that is not usage');
}

/** The error for an answer that is not a list of granted uses. */
export function corruptLeases(): StoreFailure {
  return failureOf('store_corrupt', 'the lease store answered with something that is not a lease');
}

/** The error for an answer that is not a request for a token. */
export function corruptRequest(): StoreFailure {
  return failureOf(
    'store_corrupt',
    'the request store answered with something that is not a request for a token',
  );
}

function isStoreReason(reason: string): reason is StoreReason {
  return Object.hasOwn(STORE_REASONS, reason);
}

function withPart<Details extends object>(details: Details, store: StorePart | undefined): Details {
  return store === undefined ? details : { ...details, store };
}

function failureOf(
  code: StoreFailure['code'],
  message: string,
  details?: { readonly reason: StoreReason },
): StoreFailure {
  return new TokenError(code, message, details) as StoreFailure;
}
