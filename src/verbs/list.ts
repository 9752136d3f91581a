import type * as z from 'zod/mini';
import { DEFAULT_PAGE_TOKENS, MAX_RECORD_BYTES } from '../bounds.ts';
import { listInput, readInput } from '../inputs/schemas.ts';
import type { ListInput, Read } from '../inputs/types.ts';
import { scopesFilter } from '../scope/filter.ts';
import { parseScope } from '../scope/index.ts';
import type { Token, TokenPage } from '../token/record.ts';
import { usageIsOff } from '../usage/recorder.ts';
import type { ServiceParts } from './parts.ts';

/**
 * Lists a page of the tokens of an account.
 *
 * @throws {TokenError} `invalid_options` for a list by use, if usage is not recorded
 */
export async function list(
  { now: clock, records: all, view }: Pick<ServiceParts, 'now' | 'records' | 'view'>,
  input: ListInput,
): Promise<TokenPage> {
  const now = clock();
  const query = readInput<Read<ListInput>>(listInput() as z.ZodMiniType<Read<ListInput>>, input);
  const { account, state, parent, name, createdBy, sort = 'created', cursor: given } = query;
  const { limit = DEFAULT_PAGE_TOKENS, maxBytes = MAX_RECORD_BYTES } = query;
  const isUnused = query.unused !== undefined;
  const { usage } = view;
  if (usage === undefined && (isUnused || sort === 'lastUsed')) throw usageIsOff();
  const wanted = { account, state, parent, name, createdBy, isWanted: scopeTest(query), isUnused };
  const { records, cursor } = await all.page(
    {
      ...wanted,
      sort,
      filter: filterText(query),
      usesOf: async (ids) => usage?.totalsOf(ids) ?? [],
      limit,
      maxBytes,
      cursor: given,
    },
    now,
  );
  const tokens = await view.withUses(records, now);
  return cursor === undefined ? { tokens } : { tokens, cursor };
}

type ListQuery = Read<ListInput>;

/** What identifies a list in its cursors. */
function filterText({ account, scope = [], match = 'overlaps', ...more }: ListQuery): string {
  const { state = 'active', sort = 'created', name, parent, domain, unused, createdBy } = more;
  const asked = scope.length > 1 ? scope : (scope[0] ?? null);
  const others = { state, sort, name, parent, domain: domain?.toLowerCase(), unused, createdBy };
  // A plain list is named by the first three alone.
  const isPlain = JSON.stringify(others) === JSON.stringify({ state: 'active', sort: 'created' });
  return JSON.stringify([account, asked, match, ...(isPlain ? [] : [others])]);
}

/** Selects lists of scopes; `undefined` for all. */
function scopeTest({ scope = [], match = 'overlaps', domain }: ListQuery) {
  const onHost = domain === undefined ? [] : [parseScope(`*:${domain}/*`)];
  const tests = [scopesFilter(scope, match), scopesFilter(onHost, 'overlaps')];
  const given = tests.filter((test) => test !== undefined);
  if (given.length === 0) return undefined;
  return (held: readonly string[]) => given.every((test) => test(held));
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
