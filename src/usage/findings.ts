import type { UsageRecord } from '../ports/usage-store.ts';
import { pathTextOf, type Scope } from '../scope/grammar.ts';
import type { ScopeSet } from '../scope/set.ts';
import { DAY_MS } from '../time/duration.ts';
import { isElevation, type Token, type TokenRecord } from '../token/record.ts';
import { adviceOn } from './advice.ts';
import { totalsOf } from './counts.ts';

interface BaseFinding {
  /** The token, without its value. */
  readonly token: Token;
  /** The scopes in question, in canonical order: all that the token holds, unless it is about some. */
  readonly scopes: readonly string[];
  /** What was found and what to do, for people. It may change. */
  readonly message: string;
}

/** Why a token allows much: see `broad` of {@link TokenFinding}. */
export type BroadReason = 'every_method' | 'whole_host' | 'most_of_catalog';

/**
 * Something about a live token that somebody should look at. `review` finds them.
 *
 * - `unused`: it was not used for `unusedForDays`, but before that.
 * - `never_used`: it was issued longer ago than that, and no use of it was ever counted.
 * - `broad`: it may use every method or a whole host, or more than half of the catalog.
 * - `excess`: it is used, but more than half of its scopes are not. `scopes` are those that `advise`
 *   names.
 * - `expiring`: it expires soon, and was used in the last 30 days. An elevation is not found: nothing
 *   prolongs it.
 * - `stale_secret`: its value is old.
 * - `orphaned_scope`: it holds scopes that its account may no longer have, because the catalog changed.
 * - `suspended`: it has been suspended for more than 90 days. Nothing else is found about such a token.
 */
export type TokenFinding = BaseFinding &
  (
    | {
        readonly code: 'unused';
        /** When it was last used. */
        readonly lastUsedAt: Date;
      }
    | {
        readonly code: 'never_used';
        /** Since when its uses are counted: when it was issued, or when counting began. */
        readonly since: Date;
      }
    | {
        readonly code: 'broad';
        /** What makes it broad. */
        readonly reasons: readonly BroadReason[];
        /** How many entries of the catalog it covers; only with a catalog. */
        readonly covered?: number;
        /** How many entries the catalog has; only with a catalog. */
        readonly entries?: number;
      }
    | {
        readonly code: 'excess';
        /** Since when the counts are about its scopes. */
        readonly since: Date;
      }
    | {
        readonly code: 'expiring';
        /** When it was last used. */
        readonly lastUsedAt: Date;
      }
    | {
        readonly code: 'stale_secret';
        /** When the value was made. */
        readonly secretSince: Date;
      }
    | { readonly code: 'orphaned_scope' }
    | {
        readonly code: 'suspended';
        /** When it was suspended. */
        readonly suspendedAt: Date;
      }
  );

/** The ages and times from which something is found, in milliseconds. */
export interface ReviewAges {
  readonly unusedForMs: number;
  readonly expiringWithinMs: number;
  readonly secretOlderThanMs: number;
}

/** A token to review, and the facts about it. */
export interface ReviewedToken {
  readonly record: TokenRecord;
  readonly token: Token;
  readonly held: ScopeSet;
  /** Absent if usage is not recorded. */
  readonly counts: { readonly usage: UsageRecord | undefined; readonly since: number } | undefined;
  /** Absent without a catalog. */
  readonly coverage:
    | {
        readonly lost: readonly string[];
        readonly covered: number;
        readonly entries: number;
        /** What the catalog calls a scope. */
        readonly summaryOf: (scope: string) => string | undefined;
      }
    | undefined;
}

type Found = TokenFinding extends infer Each
  ? Each extends BaseFinding
    ? Omit<Each, 'token' | 'message' | 'scopes'> & { readonly scopes?: readonly string[] }
    : never
  : never;

/** Somebody will miss a token that was used within this time. */
const RECENT_MS = 30 * DAY_MS;
const SUSPENDED_MS = 90 * DAY_MS;

/** Reviews one live token. The findings come in the order of {@link TokenFinding}. */
export function findingsOn(reviewed: ReviewedToken, ages: ReviewAges, now: number): TokenFinding[] {
  const { record, token, coverage } = reviewed;
  const summaryOf = coverage?.summaryOf ?? (() => undefined);
  const found =
    record.suspendedAt === undefined
      ? [
          ...usesOf(reviewed, now - ages.unusedForMs),
          ...breadthOf(reviewed),
          ...excessOf(reviewed, now - ages.unusedForMs),
          ...timesOf(reviewed, ages, now),
          ...orphansOf(reviewed),
        ]
      : suspensionOf(record.suspendedAt, now);
  return found.map((each) =>
    Object.freeze({
      ...each,
      token,
      scopes: Object.freeze(each.scopes ?? token.scopes),
      message: messageOf(each, { token, now, summaryOf }),
    } as TokenFinding),
  );
}

function usesOf({ record, counts }: ReviewedToken, from: number): Found[] {
  if (counts === undefined) return [];
  const since = Math.max(record.createdAt.getTime(), counts.since);
  if (since > from) return [];
  const { lastUsedAt } = totalsOf(counts.usage);
  if (lastUsedAt === undefined) {
    const { format, scopesChangedAt } = record;
    // Uses of an imported token are counted from its import on, which counts as a change of its scopes.
    const imported = format === undefined ? undefined : scopesChangedAt?.getTime();
    const known = Math.max(since, imported ?? since);
    return known > from ? [] : [{ code: 'never_used', since: new Date(known) }];
  }
  return lastUsedAt.getTime() < from ? [{ code: 'unused', lastUsedAt }] : [];
}

function breadthOf({ held, coverage }: ReviewedToken): Found[] {
  const every = [...held].filter(({ method }) => method === '*');
  const whole = [...held].filter(isWholeHost);
  // Nothing narrower than one entry can be asked for.
  const isMost =
    coverage !== undefined && coverage.covered > 1 && 2 * coverage.covered > coverage.entries;
  const reasons: BroadReason[] = [
    ...(every.length > 0 ? (['every_method'] as const) : []),
    ...(whole.length > 0 ? (['whole_host'] as const) : []),
    ...(isMost ? (['most_of_catalog'] as const) : []),
  ];
  if (reasons.length === 0) return [];
  const scopes = [...new Set([...every, ...whole].map(String))].sort();
  return [
    {
      code: 'broad',
      reasons: Object.freeze(reasons),
      ...(!isMost && { scopes }),
      ...(coverage && { covered: coverage.covered, entries: coverage.entries }),
    },
  ];
}

function isWholeHost(scope: Scope): boolean {
  const { start, end, isClosed } = pathTextOf(scope);
  return start === end && !isClosed;
}

function excessOf({ record, held, counts }: ReviewedToken, from: number): Found[] {
  if (counts === undefined) return [];
  const facts = { held, usage: counts.usage, countedSince: counts.since, from };
  const { unused, since } = adviceOn(record, facts);
  const isExcess = 2 * unused.length > held.size && unused.length < held.size;
  return isExcess ? [{ code: 'excess', scopes: unused, since }] : [];
}

function timesOf({ record, counts }: ReviewedToken, ages: ReviewAges, now: number): Found[] {
  const found: Found[] = [];
  const { lastUsedAt } = totalsOf(counts?.usage);
  const isExpiring =
    !isElevation(record) && record.expiresAt.getTime() <= now + ages.expiringWithinMs;
  if (isExpiring && lastUsedAt !== undefined && lastUsedAt.getTime() >= now - RECENT_MS) {
    found.push({ code: 'expiring', lastUsedAt });
  }
  const secretSince = record.rotatedAt ?? record.createdAt;
  if (secretSince.getTime() < now - ages.secretOlderThanMs) {
    found.push({ code: 'stale_secret', secretSince: new Date(secretSince) });
  }
  return found;
}

function orphansOf({ coverage }: ReviewedToken): Found[] {
  if (coverage === undefined || coverage.lost.length === 0) return [];
  return [{ code: 'orphaned_scope', scopes: coverage.lost }];
}

function suspensionOf(suspendedAt: Date, now: number): Found[] {
  if (suspendedAt.getTime() >= now - SUSPENDED_MS) return [];
  return [{ code: 'suspended', suspendedAt: new Date(suspendedAt) }];
}

const REASONS: Readonly<Record<BroadReason, string>> = {
  every_method: 'may use every method',
  whole_host: 'may use a whole host',
  most_of_catalog: 'may use more than half of the catalog',
};

/** The sentence of a finding. */
function messageOf(
  found: Found,
  {
    token: { scopes, expiresAt },
    now,
    summaryOf,
  }: {
    readonly token: Token;
    readonly now: number;
    readonly summaryOf: (scope: string) => string | undefined;
  },
): string {
  switch (found.code) {
    case 'unused':
      return `was last used ${ago(found.lastUsedAt, now)}; revoke it if nobody needs it`;
    case 'never_used':
      return `was not used since ${dayOf(found.since)}, when counting of it began; revoke it if nobody needs it`;
    case 'broad': {
      const share = found.reasons.includes('most_of_catalog')
        ? ` (${found.covered} of ${found.entries} entries)`
        : '';
      const reasons = found.reasons.map((reason) => REASONS[reason]).join(', and ');
      return `${reasons}${share}; replace its scopes by those that it needs`;
    }
    case 'excess':
      return `does not use ${found.scopes?.length} of its ${scopes.length} scopes${named(found.scopes, summaryOf)}; remove them with removeScopes`;
    case 'expiring':
      return `expires on ${dayOf(expiresAt)} and is in use; extend it, or tell its owner`;
    case 'stale_secret':
      return `has had the same value since ${dayOf(found.secretSince)}; rotate it`;
    case 'orphaned_scope':
      return `holds ${found.scopes?.length} of ${scopes.length} scopes that its account may no longer have; remove them with removeScopes`;
    case 'suspended':
      return `has been suspended since ${dayOf(found.suspendedAt)}; resume or revoke it`;
  }
}

/** Scopes that a message names; more are counted. */
const MAX_NAMED = 3;

/** The scopes in words, if the catalog has any. */
function named(
  scopes: readonly string[] = [],
  summaryOf: (scope: string) => string | undefined,
): string {
  const shown = scopes.slice(0, MAX_NAMED);
  if (!shown.some(summaryOf)) return '';
  const more = scopes.length > MAX_NAMED ? ` and ${scopes.length - MAX_NAMED} more` : '';
  return ` (${shown.map((scope) => summaryOf(scope) ?? scope).join(', ')}${more})`;
}

function ago(time: Date, now: number): string {
  const days = Math.floor((now - time.getTime()) / DAY_MS);
  return `${days} ${days === 1 ? 'day' : 'days'} ago`;
}

function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10);
}
