import { MAX_COUNTED_SCOPES } from '../../bounds.ts';
import { TokenError } from '../../errors.ts';
import {
  type CountedTokens,
  OTHER_SCOPES,
  type UsageDelta,
  type UsageRecord,
  type UsageTotals,
  type UsedScope,
} from '../../ports/usage-store.ts';
import type { TokenId } from '../../token/record.ts';

/** A count of a token as a row of a database: of uses by a scope, or of refusals. */
export interface UsageRow {
  readonly id: TokenId;
  /** {@link REFUSALS} if refusals are counted. */
  readonly scope: string;
  readonly uses: number;
  /** In milliseconds. */
  readonly lastUsedAt: number;
}

/** Stands for the scope in a row that counts refusals. No scope is empty. */
export const REFUSALS = '';

/**
 * Sums up a batch, so that each token and scope comes once, in the order of their first appearance. A
 * statement must not change a row twice.
 *
 * @throws {TokenError} `invalid_request` for counts and times that are not whole numbers
 */
export function rowsOf(batch: readonly UsageDelta[]): UsageRow[] {
  return summed(batch.map(rowOf));
}

function rowOf(delta: UsageDelta): UsageRow {
  const { id, scope = REFUSALS } = delta;
  const uses = delta.scope === undefined ? delta.refusals : delta.uses;
  const lastUsedAt = delta.scope === undefined ? 0 : delta.lastUsedAt.getTime();
  if (Number.isSafeInteger(uses) && Number.isSafeInteger(lastUsedAt)) {
    return { id, scope, uses, lastUsedAt };
  }
  throw new TokenError('invalid_request', 'counts and times must be whole numbers');
}

function summed(rows: readonly UsageRow[]): UsageRow[] {
  const sums = new Map<string, UsageRow>();
  for (const row of rows) {
    const { id, scope, uses, lastUsedAt } = row;
    // An id has no space.
    const key = `${id} ${scope}`;
    const sum = sums.get(key);
    sums.set(
      key,
      sum === undefined
        ? row
        : {
            id,
            scope,
            uses: sum.uses + uses,
            lastUsedAt: Math.max(sum.lastUsedAt, lastUsedAt),
          },
    );
  }
  return [...sums.values()];
}

/**
 * Adds to `other` the uses of scopes for which a token has no room. `stored` has the scopes of tokens
 * that may run out of it, as they are in the database.
 */
export function withinBound(
  rows: readonly UsageRow[],
  stored: ReadonlyMap<TokenId, ReadonlySet<string>>,
): UsageRow[] {
  const apart = new Map<TokenId, Set<string>>();
  return summed(
    rows.map((row) => {
      const scopes = apart.get(row.id) ?? new Set(stored.get(row.id));
      apart.set(row.id, scopes);
      if (!isApart(row) || scopes.has(row.scope)) return row;
      if (scopes.size >= MAX_COUNTED_SCOPES) return { ...row, scope: OTHER_SCOPES };
      scopes.add(row.scope);
      return row;
    }),
  );
}

/** Whether a row counts the uses of one scope alone. */
export function isApart({ scope }: Pick<UsageRow, 'scope'>): boolean {
  return scope !== REFUSALS && scope !== OTHER_SCOPES;
}

/** The answer of `read`: one element for each id, which shares nothing with another one. */
export function usagesOf(
  ids: readonly TokenId[],
  rows: readonly UsageRow[],
): (UsageRecord | undefined)[] {
  const byId = new Map<TokenId, UsageRow[]>();
  for (const row of rows) {
    const own = byId.get(row.id);
    if (own === undefined) byId.set(row.id, [row]);
    else own.push(row);
  }
  return ids.map((id) => {
    const own = byId.get(id);
    return own && usageOf(own);
  });
}

/** The sums of one token as a database computes them. */
export interface TotalsRow {
  readonly id: TokenId;
  readonly uses: number;
  readonly refusals: number;
  /** In milliseconds; null without uses. */
  readonly lastUsedAt: number | null;
}

/** The answer of `totals`: one element for each id, which shares nothing with another one. */
export function totalsOf(
  ids: readonly TokenId[],
  rows: readonly TotalsRow[],
): (UsageTotals | undefined)[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => {
    const row = byId.get(id);
    return row && totalsIn(row);
  });
}

export function totalsIn({ uses, refusals, lastUsedAt }: Omit<TotalsRow, 'id'>): UsageTotals {
  if (lastUsedAt === null) return { uses, refusals };
  return { uses, refusals, lastUsedAt: new Date(lastUsedAt) };
}

/**
 * Concurrent writes that each saw room for one more scope may have stored too many. Which of them are
 * counted apart depends on nothing but their names, so that all processes agree.
 */
function usageOf(rows: readonly UsageRow[]): UsageRecord {
  const isTooMuch = rows.filter(isApart).length > MAX_COUNTED_SCOPES;
  const sorted = isTooMuch
    ? [...rows].sort((one, other) => (one.scope < other.scope ? -1 : 1))
    : rows;
  const bounded = isTooMuch ? withinBound(sorted, new Map()) : rows;
  const refusals = bounded.find(({ scope }) => scope === REFUSALS)?.uses ?? 0;
  const scopes = bounded.filter(({ scope }) => scope !== REFUSALS).map(usedScope);
  return { refusals, scopes };
}

function usedScope({ scope, uses, lastUsedAt }: UsageRow): UsedScope {
  return { scope, uses, lastUsedAt: new Date(lastUsedAt) };
}

/** A step of a pass in the order of the ids: it is the last one if it is not full. */
export function stepOf(ids: readonly string[], limit: number): CountedTokens {
  const last = ids.length < limit ? undefined : ids.at(-1);
  return { ids: ids as readonly TokenId[], ...(last !== undefined && { next: last }) };
}
