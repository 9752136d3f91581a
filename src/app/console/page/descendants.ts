import type { Api, TokenPage } from './api.ts';
import { isLive } from './shown-token.ts';

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
