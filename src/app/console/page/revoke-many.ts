import type { ApiError } from '../../../http/client.ts';
import type { Api, ShownToken, TokenPage } from './api.ts';
import { toApiError } from './loading.ts';
import { isLive } from './shown-token.ts';

/** How many calls run concurrently: a service limits those of one account. */
const CONCURRENCY = 4;

/** Failures that are not about one token: the rest would fail as well. */
const PAUSING = [
  'unreachable',
  'unauthenticated',
  'rate_limited',
  'overloaded',
  'store_unavailable',
  'internal',
];

/** The progress of the work. */
export interface RevokeProgress {
  readonly revoked: number;
  readonly failures: readonly RevokeFailure[];
  /** The tokens that were not tried, or have to be tried again. */
  readonly left: readonly ShownToken[];
  /** Why the work paused. */
  readonly error?: ApiError;
}

export interface RevokeFailure {
  readonly token: ShownToken;
  readonly error: ApiError;
}

export interface RevokeManyOptions {
  readonly revoke: (token: ShownToken) => Promise<void>;
  /** Asked before each token; calls in progress are awaited. */
  readonly isWanted: () => boolean;
  readonly onProgress: (progress: RevokeProgress) => void;
}

/** Revokes tokens, a few at a time, until all are tried, it is stopped, or the service is down. */
export async function revokeMany(
  tokens: readonly ShownToken[],
  { revoke, isWanted, onProgress }: RevokeManyOptions,
): Promise<RevokeProgress> {
  let next = 0;
  let revoked = 0;
  let error: ApiError | undefined;
  const failures: RevokeFailure[] = [];
  const again: ShownToken[] = [];
  const progress = (): RevokeProgress => ({
    revoked,
    failures: [...failures],
    left: [...again, ...tokens.slice(next)],
    ...(error && { error }),
  });
  const work = async (): Promise<void> => {
    while (error === undefined && isWanted()) {
      const token = tokens[next];
      if (token === undefined) return;
      next += 1;
      const failure = await failureOf(() => revoke(token));
      if (failure === undefined) revoked += 1;
      else if (PAUSING.includes(failure.code)) {
        error ??= failure;
        again.push(token);
      } else failures.push({ token, error: failure });
      onProgress(progress());
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return progress();
}

/** A token that is gone already is as good as revoked. */
async function failureOf(call: () => Promise<void>): Promise<ApiError | undefined> {
  try {
    await call();
    return undefined;
  } catch (failure) {
    const error = toApiError(failure);
    return error.code === 'not_found' ? undefined : error;
  }
}

/** Counting stops after this many calls. Every token takes at least one. */
const MAX_CALLS = 100;
const PAGE_SIZE = 100;

export interface Descendants {
  readonly count: number;
  /** Whether that is all of them. */
  readonly isAll: boolean;
}

/** Counts the live tokens that were derived from a token, and from those, and so on. */
export async function countDescendants(
  api: Pick<Api, 'list'>,
  id: string,
  isWanted: () => boolean = () => true,
): Promise<Descendants> {
  const parents = [id];
  let count = 0;
  let calls = 0;
  for (let parent = parents.shift(); parent !== undefined; parent = parents.shift()) {
    let cursor: string | undefined;
    do {
      if (calls === MAX_CALLS || !isWanted()) return { count, isAll: false };
      calls += 1;
      const asked = { parent, state: 'all', limit: PAGE_SIZE, ...(cursor && { cursor }) };
      const page: TokenPage = await api.list(asked);
      const live = page.tokens.filter(isLive);
      count += live.length;
      // Tokens below one that has ended have ended with it.
      parents.push(...live.map((token) => token.id));
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
  return { count, isAll: true };
}
