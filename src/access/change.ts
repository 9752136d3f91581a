import { MAX_NAMED_SCOPES, MAX_RECORD_BYTES, MAX_SCOPES } from '../bounds.ts';
import { corruptStore, isTokenError, TokenError } from '../errors.ts';
import type { Quotas } from '../inputs/options.ts';
import { ofMember, refuseScopes, toTokenError } from '../inputs/scope-refusals.ts';
import type { PatchInput, Read } from '../inputs/types.ts';
import type { Scope, ScopeCatalog } from '../scope/index.ts';
import { type Removal, removingScopes } from '../scope/removal.ts';
import { inTurns } from '../time/deadline.ts';

import { recordBytes, type TokenRecord } from '../token/record.ts';
import { checkRights } from './rights.ts';

type HeldScopes = Pick<TokenRecord, 'scopes' | 'requested'>;
type ScopePatch = Pick<Read<PatchInput>, 'scopes' | 'addScopes' | 'removeScopes'>;

/**
 * Checks that a patch names a member, and not both `scopes` and `addScopes` or `removeScopes`.
 *
 * @throws {TokenError} `invalid_request`
 */
export function checkPatch(patch: Read<PatchInput>): void {
  const { scopes, addScopes, removeScopes } = patch;
  if (Object.values(patch).every((member) => member === undefined)) {
    throw new TokenError('invalid_request', 'a change must name at least one member');
  }
  if (scopes !== undefined && (addScopes !== undefined || removeScopes !== undefined)) {
    throw new TokenError(
      'invalid_request',
      'scopes replaces all that is held, so it cannot stand beside addScopes or removeScopes',
      { member: 'scopes' },
    );
  }
}

/**
 * The members of a record that a patch sets.
 *
 * @throws {TokenError} as {@link scopesAfter}, `checkRights` and {@link checkSize}
 */
export async function patched(
  record: TokenRecord,
  patch: Read<PatchInput>,
  { granted, expiresAt, catalog, quotas, now }: PatchContext,
): Promise<Partial<TokenRecord>> {
  const held = await scopesAfter(record, patch, granted);
  const isLonger = expiresAt !== undefined && expiresAt > record.expiresAt;
  if (patch.addScopes !== undefined || isLonger)
    await checkRights(catalog, (held ?? record).scopes);
  const next = {
    ...held,
    ...patchedFields(patch),
    ...(expiresAt && { expiresAt }),
    ...(patch.suspended !== undefined && { suspendedAt: suspendedAfter(record, patch, now) }),
    ...limitsAfter(patch),
  };
  if (granted.length > 0 || patch.metadata || patch.limits) {
    checkSize({ ...record, ...next }, quotas);
  }
  return next;
}

interface PatchContext {
  /** The scopes that the account gets for those that the patch sets or adds. */
  readonly granted: readonly string[];
  readonly expiresAt: Date | undefined;
  readonly catalog: ScopeCatalog | undefined;
  readonly quotas: Quotas;
  readonly now: number;
}

/** When the token was suspended. Suspending it again keeps the first time. */
function suspendedAfter(
  { suspendedAt }: TokenRecord,
  { suspended }: Read<PatchInput>,
  now: number,
): Date | undefined {
  return suspended === true ? (suspendedAt ?? new Date(now)) : undefined;
}

/** The limits that a change sets; empty if it does not name them. `null` removes them. */
export function limitsAfter({
  limits,
}: Pick<PatchInput, 'limits'>): Partial<Pick<TokenRecord, 'limits'>> {
  return limits === undefined ? {} : { limits: limits ?? undefined };
}

/** Adds `scopesChangedAt` to a change after which the token holds other scopes. */
export function withScopesTime(
  { scopes: before }: TokenRecord,
  change: Partial<TokenRecord>,
  now: number,
): Partial<TokenRecord> {
  const { scopes: after = before } = change;
  const isSame = after.length === before.length && after.every((scope, i) => scope === before[i]);
  return isSame ? change : { ...change, scopesChangedAt: new Date(now) };
}

/** The name and the metadata that a patch sets; `null` removes one. */
function patchedFields({
  name,
  metadata,
}: Read<PatchInput>): Partial<Pick<TokenRecord, 'name' | 'metadata'>> {
  return {
    ...(name !== undefined && { name: name ?? undefined }),
    ...(metadata !== undefined && { metadata: metadata ?? undefined }),
  };
}

/**
 * The scopes after a patch; `undefined` if it does not change them. Takes nearly linear time.
 *
 * @param granted the scopes that the account gets for those that the patch sets or adds
 * @throws {TokenError} `scope_unmatched` if a scope to be removed covers no held scope, or also overlaps
 * one that stays; `scopes_required` if none would be left; `store_corrupt` if the held scopes cannot be
 * read
 */
async function scopesAfter(
  held: HeldScopes,
  { scopes, addScopes = [], removeScopes = [] }: ScopePatch,
  granted: readonly string[],
): Promise<HeldScopes | undefined> {
  if (scopes !== undefined) return { scopes: granted, requested: scopes.map(String) };
  if (addScopes.length === 0 && removeScopes.length === 0) return undefined;
  const left = removeScopes.length === 0 ? held : await withoutRemoved(held, removeScopes);
  const all = union(left.scopes, granted);
  if (all.length > 0) {
    return { scopes: all, requested: union(left.requested, addScopes.map(String)) };
  }
  throw new TokenError(
    'scopes_required',
    'removeScopes would leave no scope; revoke the token instead',
    {
      member: 'removeScopes',
    },
  );
}

async function withoutRemoved(held: HeldScopes, removed: readonly Scope[]): Promise<HeldScopes> {
  const { kept, requested, unmatched } = await removal(held, removed);
  if (unmatched.length === 0) return { scopes: kept, requested };
  const scopes = unmatched.map(String);
  const refusal = refuseScopes(
    'scope_unmatched',
    `a scope to be removed must cover whole scopes that the token holds; ${scopes.slice(0, MAX_NAMED_SCOPES).join(', ')} does not`,
    scopes,
  );
  throw ofMember(refusal, 'removeScopes');
}

async function removal(
  { scopes, requested }: HeldScopes,
  removed: readonly Scope[],
): Promise<Removal> {
  try {
    return await inTurns(removingScopes(scopes, requested, removed));
  } catch (error) {
    // The patch was parsed before: a scope that does not parse here came from the store.
    throw isTokenError(toTokenError(error)) ? corruptStore() : error;
  }
}

/**
 * Checks that a token does not grow beyond what one token may hold.
 *
 * @throws {TokenError} `too_many_scopes` beyond what any token can hold; `quota_exceeded`
 */
export function checkSize(
  record: HeldScopes & Pick<TokenRecord, 'metadata' | 'limits'>,
  quotas: Quotas,
): void {
  const { scopesPerToken: max } = quotas;
  const count = Math.max(record.scopes.length, record.requested.length);
  if (count > MAX_SCOPES) {
    throw new TokenError('too_many_scopes', `a token holds at most ${MAX_SCOPES} scopes`);
  }
  if (count > max) {
    throw quotaExceeded(
      'scopesPerToken',
      max,
      `a token may hold at most ${max} scopes here; this one would hold ${count}`,
    );
  }
  const bytes = recordBytes(record);
  if (bytes > MAX_RECORD_BYTES) {
    throw quotaExceeded(
      'recordBytes',
      MAX_RECORD_BYTES,
      `the scopes, the metadata and the limits of a token may take at most ${MAX_RECORD_BYTES} bytes together; these would take ${bytes}`,
    );
  }
}

/** The error for a change that would exceed a quota. */
export function quotaExceeded(
  quota: keyof Quotas | 'recordBytes',
  max: number,
  message: string,
): TokenError {
  return new TokenError('quota_exceeded', message, { quota, max });
}

function union(a: readonly string[], b: readonly string[]): readonly string[] {
  return Object.freeze([...new Set([...a, ...b])].sort());
}
