import { checkPatch, checkSize, limitsAfter, patched, withScopesTime } from '../access/change.ts';
import { isWidening, patchWithin, refuseBeyond } from '../access/narrowing.ts';
import { expandFor, rightsOf } from '../access/rights.ts';
import {
  changeOptions,
  modifyInput,
  patchInput,
  readAccount,
  readInput,
  readLongInput,
} from '../inputs/schemas.ts';
import type { ChangeOptions, ModifyInput, PatchInput } from '../inputs/types.ts';
import {
  askedExpiry,
  expiryAfter,
  isElevation,
  type ModifiedToken,
  type Token,
  type TokenRecord,
} from '../token/record.ts';
import { withinBounds } from './derive.ts';
import type { ServiceParts } from './parts.ts';

/** A call that changes a token of an account. */
interface ChangeCall<Change> {
  readonly account: string;
  readonly valueOrId: string;
  readonly change: Change;
  readonly options: ChangeOptions;
}

/** Replaces the scopes and the expiry of a token, and its limits if they are given. */
export async function modify(
  parts: ServiceParts,
  { account, valueOrId, change, options }: ChangeCall<ModifyInput>,
): Promise<ModifiedToken> {
  const now = parts.now();
  const { lifetime, quotas } = parts.rules;
  const owner = readAccount(account);
  const { scopes, limits, ...times } = await readLongInput(modifyInput(), change);
  parts.limits.check(limits);
  const conditions = readInput(changeOptions(), options);
  const expiry = askedExpiry(times, now, lifetime);
  const granted = await expandFor(parts.catalogs, owner, scopes);
  const expiresAt = expiry ?? expiryAfter(now, lifetime.defaultSeconds);
  const asked = { scopes, limits };
  return changed(parts, { owner, valueOrId, now, conditions }, (record) =>
    withinBounds(parts, record, now, async (bounds) => {
      const known = { granted, expiresAt };
      const allowed = bounds ? await patchWithin(bounds, asked, known) : known;
      const held = { scopes: allowed.granted, requested: scopes.map(String) };
      const next = { ...held, expiresAt: allowed.expiresAt, ...limitsAfter({ limits }) };
      checkSize({ ...record, ...next }, quotas);
      return next;
    }),
  );
}

/** Updates the members of a token that are given. */
export async function patch(
  parts: ServiceParts,
  { account, valueOrId, change, options }: ChangeCall<PatchInput>,
): Promise<ModifiedToken> {
  const now = parts.now();
  const { lifetime, quotas } = parts.rules;
  const owner = readAccount(account);
  const asked = await readLongInput(patchInput(), change);
  const conditions = readInput(changeOptions(), options);
  checkPatch(asked);
  parts.limits.check(asked.limits);
  const expiresAt = askedExpiry(asked, now, lifetime);
  const rights = await rightsOf(parts.catalogs, owner, asked, expiresAt);
  const known = { ...rights, expiresAt, quotas, now };
  return changed(parts, { owner, valueOrId, now, conditions }, (record) =>
    isWidening(asked, known)
      ? withinBounds(parts, record, now, async (bounds) =>
          patched(record, asked, bounds ? await patchWithin(bounds, asked, known) : known),
        )
      : patched(record, asked, known),
  );
}

/** A call that changes a token, as it was read. */
interface ReadCall {
  readonly owner: string;
  readonly valueOrId: string;
  readonly now: number;
  readonly conditions: ChangeOptions;
}

async function changed(
  { records, decider, events, limits, view }: ServiceParts,
  { owner, valueOrId, now, conditions }: ReadCall,
  apply: (record: TokenRecord) => Promise<Partial<TokenRecord>>,
): Promise<ModifiedToken> {
  const timed = async (record: TokenRecord) => {
    const next = await apply(record);
    if (isElevation(record)) await refuseBeyond(record, next);
    return withScopesTime(record, next, now);
  };
  const change = await records.change(owner, valueOrId, now, conditions, timed);
  const diff = conditions.dryRun === true ? await decider.diff(change) : undefined;
  if (diff === undefined) {
    events.changed(change, now);
    await limits.prolong(change.before, change.after);
  }
  const [token] = view.shown([change.after], now) as [Token];
  return diff === undefined ? token : Object.freeze({ ...token, diff });
}
