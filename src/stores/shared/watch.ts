import { isTokenError, type TokenError } from '../../errors.ts';
import type { TokenId } from '../../token/record.ts';

/** What a listener calls: see `watch` of a `TokenStore`. */
export interface Reports {
  readonly onChange: (ids: readonly TokenId[] | 'all') => void;
  readonly onTrouble: (failure: TokenError | undefined) => void;
}

/** Whether a listener could not start because what is sent to it gets lost. */
export function isDeafness(error: unknown): error is TokenError {
  return isTokenError(error) && error.details?.['reason'] === 'pooler';
}
