import type * as z from 'zod/mini';
import { DEFAULT_PAGE_TOKENS, MAX_RECORD_BYTES } from '../bounds.ts';
import { listInput, readInput } from '../inputs/schemas.ts';
import type { ListInput, Read } from '../inputs/types.ts';
import { scopesFilter } from '../scope/filter.ts';
import type { Token, TokenPage } from '../token/record.ts';
import type { ServiceParts } from './parts.ts';

/** Lists a page of the tokens of an account. */
export async function list(
  { now: clock, records: all, view }: Pick<ServiceParts, 'now' | 'records' | 'view'>,
  input: ListInput,
): Promise<TokenPage> {
  const now = clock();
  const query = readInput<Read<ListInput>>(listInput() as z.ZodMiniType<Read<ListInput>>, input);
  const { account, scope = [], match = 'overlaps', limit = DEFAULT_PAGE_TOKENS } = query;
  const { maxBytes = MAX_RECORD_BYTES, state = 'active', name, parent, cursor: given } = query;
  // Left out if all have their defaults, so that cursors of earlier versions stay valid.
  const hasMore = state !== 'active' || name !== undefined || parent !== undefined;
  const others = hasMore ? [state, name ?? null, ...(parent === undefined ? [] : [parent])] : [];
  const asked = scope.length > 1 ? scope : (scope[0] ?? null);
  const filter = JSON.stringify([account, asked, match, ...others]);
  const isWanted = scopesFilter(scope, match);
  const wanted = { account, state, parent, isWanted, name };
  const { records, cursor } = await all.page(
    { ...wanted, filter, limit, maxBytes, cursor: given },
    now,
  );
  const tokens = await view.withUses(records, now);
  return cursor === undefined ? { tokens } : { tokens, cursor };
}

/** Iterates over the tokens of all pages. Reads a page when those before it are used up. */
export async function* allOf<Input extends ListInput>(
  pageOf: (input: Input) => Promise<TokenPage>,
  input: Input,
): AsyncGenerator<Token, void, undefined> {
  for (let next: string | undefined; ; ) {
    const page = await pageOf(next === undefined ? input : { ...input, cursor: next });
    yield* page.tokens;
    next = page.cursor;
    if (next === undefined) return;
  }
}
