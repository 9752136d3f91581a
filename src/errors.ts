/** Where the documentation is published. */
export const DOCS_URL = 'https://tokenwright.example';

/**
 * The codes of {@link TokenError}: stable, public names. Messages may change, codes do not.
 */
export type TokenErrorCode =
  | 'invalid_scope'
  | 'scopes_required'
  | 'scope_unmatched'
  | 'too_many_scopes'
  | 'catalog_empty'
  | 'invalid_ttl'
  | 'invalid_expire'
  | 'invalid_request'
  | 'invalid_options'
  | 'not_found'
  | 'token_expired'
  | 'version_conflict'
  | 'id_taken'
  | 'store_unavailable'
  | 'store_corrupt'
  | 'durability_unconfirmed';

const BRAND = Symbol.for('tokenwright.TokenError');

/**
 * Says that a call could not be carried out, and why.
 *
 * `code` is for programs, `message` for people: it names what was wrong and what would be right.
 * Neither holds a token value, a secret, a key or a password, and there is never a `cause`: errors
 * of drivers and parsers carry input, so they end where they are caught.
 *
 * @example
 * try {
 *   await tokens.issue({ account: 'acme', scopes: ['get:shop.example/orders'] });
 * } catch (error) {
 *   if (isTokenError(error)) console.log(error.code); // 'invalid_scope'
 * }
 */
export class TokenError extends Error {
  /** What errors of this kind are called, in every copy of this package. */
  override readonly name: 'TokenError';
  /** What happened, for programs. */
  readonly code: TokenErrorCode;
  /** Facts for programs, as plain JSON: the scopes that were refused, what would be known instead. */
  declare readonly details?: Readonly<Record<string, unknown>>;

  /** For stores of your own, which answer with `id_taken` and `durability_unconfirmed`. */
  constructor(code: TokenErrorCode, message: string, details?: Readonly<Record<string, unknown>>) {
    super(message);
    // A field with a value would cost the class its name in CommonJS: as it is built, `_class`.
    this.name = 'TokenError';
    this.code = code;
    if (details !== undefined) this.details = details;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** The page about this code: what causes it, and what to do. In neither JSON nor a printed error. */
  get docsUrl(): string {
    return `${DOCS_URL}/errors/${this.code}`;
  }
}

/**
 * Whether a caught value is a {@link TokenError}, also one of another copy of this package (the
 * ESM and the CommonJS build may both be loaded), where `instanceof` would say no.
 *
 * @example
 * isTokenError(new TokenError('not_found', 'no such token')); // true
 * isTokenError(new Error('no such token')); // false
 */
export function isTokenError(value: unknown): value is TokenError {
  return value instanceof Error && BRAND in value;
}

/** What a store can fail with. */
export type StoreFailure = TokenError & {
  readonly code: 'store_unavailable' | 'store_corrupt' | 'durability_unconfirmed';
};

/** What a store failed with, in our own words: texts of drivers carry input. */
export function storeFailure(error: unknown): StoreFailure {
  const code = isTokenError(error) ? error.code : 'store_unavailable';
  if (code === 'store_corrupt') return corruptStore();
  if (code === 'durability_unconfirmed') {
    return failure(
      code,
      'the change was made, but not confirmed by as many replicas as was asked for; look before trying again',
    );
  }
  return failure('store_unavailable', 'the store did not answer; try again later');
}

/** A store that hands out what it never got must not be believed in anything. */
export function corruptStore(): StoreFailure {
  return failure('store_corrupt', 'the store answered with what is not a token record');
}

function failure(code: StoreFailure['code'], message: string): StoreFailure {
  return new TokenError(code, message) as StoreFailure;
}
