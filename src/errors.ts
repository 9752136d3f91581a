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
  | 'id_taken'
  | 'store_unavailable'
  | 'store_corrupt'
  | 'durability_unconfirmed';

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

  /** For your own stores, which throw `id_taken` and `durability_unconfirmed`. */
  constructor(code: TokenErrorCode, message: string, details?: Readonly<Record<string, unknown>>) {
    super(message);
    // esbuild's CommonJS output names a class with field initializers `_class`.
    this.name = 'TokenError';
    this.code = code;
    if (details !== undefined) this.details = details;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /**
   * What there is to know of this code, as a path from the folder that holds `node_modules`, such as
   * `node_modules/tokenwright/docs/errors.md#not_found`. `npx tokenwright explain not_found` prints it.
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
};

/** The messages for each `details.reason` with which a store may explain a failure. */
const STORE_REASONS = {
  standby:
    'the store reached a standby or read-only server, which may not know about revocations; connect to the primary',
  later_layout:
    'a later version of tokenwright has written this record, and this version cannot read it; upgrade',
  file_replaced:
    'the database file was removed or replaced while it was open; put it back, or restart this process',
};

/**
 * The error for a failure of a store, without the driver's text, which may quote input. A store may give
 * one of {@link STORE_REASONS} in `details.reason`.
 */
export function storeFailure(error: unknown): StoreFailure {
  if (!isTokenError(error)) return storeOutage();
  const { code } = error;
  const reason = String(error.details?.['reason']);
  if (isStoreReason(reason) && (code === 'store_unavailable' || code === 'store_corrupt')) {
    return failureOf(code, STORE_REASONS[reason], { reason });
  }
  if (code === 'store_corrupt') return corruptStore();
  if (code === 'durability_unconfirmed') {
    return failureOf(
      code,
      'the change was made, but not confirmed by as many replicas as required; look at the token before you try again',
    );
  }
  return storeOutage();
}

/** The error for a store that did not answer, or not in time. */
export function storeOutage(): StoreFailure {
  return failureOf('store_unavailable', 'the store did not answer; try again later');
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

function isStoreReason(reason: string): reason is keyof typeof STORE_REASONS {
  return Object.hasOwn(STORE_REASONS, reason);
}

function failureOf(
  code: StoreFailure['code'],
  message: string,
  details?: { readonly reason: string },
): StoreFailure {
  return new TokenError(code, message, details) as StoreFailure;
}
