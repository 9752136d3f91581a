import { ancestryOf, type Bounds, expandWithin, expiryWithin } from './access/derivation.ts';
import { type Ancestors, ancestorFault } from './access/lineage.ts';
import { inTurns } from './deadline.ts';
import { TokenError } from './errors.ts';
import type { DeriveInput, Read } from './input.ts';
import { issueWithinQuota } from './issuance.ts';
import { checkLimitsWithin } from './limits/within.ts';
import type { ServiceParts } from './parts.ts';
import { askedExpiry, expiryAfter, type IssuedToken, type TokenRecord } from './token.ts';

/** Issues a token that may do no more than the token of a value may do now. */
export async function derived(
  parts: ServiceParts,
  value: string,
  { scopes, name, metadata, limits, ...asked }: Read<DeriveInput>,
  now: number,
): Promise<IssuedToken> {
  const { lifetime } = parts.rules;
  const expiresAt = askedExpiry(asked, now, lifetime) ?? expiryAfter(now, lifetime.defaultSeconds);
  parts.limits.check(limits);
  const { record: parent, ancestors } = await parts.decider.requireLive(value, now);
  const bounds = await boundsBy(parts, parent, ancestors);
  for (const outer of bounds.limits) checkLimitsWithin(limits, outer);
  const fields = {
    account: parent.account,
    ancestors: ancestryOf(parent),
    scopes: await expandWithin(bounds, scopes),
    requested: scopes.map(String),
    createdAt: new Date(now),
    expiresAt: expiryWithin(bounds, expiresAt),
    version: 1,
    ...(name !== undefined && { name }),
    ...(metadata !== undefined && { metadata }),
    ...(limits !== undefined && { limits }),
  };
  return issueWithinQuota(parts, fields, now);
}

/**
 * Makes a change of a record within what its parent has now. A token without ancestors has no bounds.
 *
 * @throws {TokenError} `token_expired` if one of them has ended, and whatever `change` throws
 */
export async function withinBounds<Change>(
  parts: ServiceParts,
  record: TokenRecord,
  now: number,
  change: (bounds: Bounds | undefined) => Promise<Change>,
): Promise<Change> {
  return change(record.ancestors && (await boundsOf(parts, record, now)));
}

async function boundsOf(parts: ServiceParts, record: TokenRecord, now: number): Promise<Bounds> {
  const { lineages } = parts;
  const ancestors = await lineages.read(record, now);
  const parent = ancestors.at(-1);
  const fault = ancestorFault(record, ancestors, now);
  if (parent === undefined || (fault !== undefined && fault !== 'ancestor_suspended')) {
    throw new TokenError(
      'token_expired',
      'a token that this one was derived from has ended, and this one with it; issue a new one',
    );
  }
  const above = ancestors.slice(0, -1);
  return boundsBy(parts, await inTurns(lineages.withinInSteps(parent, above)), above);
}

/** @param parent narrowed to what its own ancestors allow */
async function boundsBy(
  { compiled }: ServiceParts,
  { scopes, expiresAt, limits }: TokenRecord,
  ancestors: Ancestors,
): Promise<Bounds> {
  return {
    held: await inTurns(compiled.setInSteps(scopes)),
    expiresAt,
    limits: [limits, ...ancestors.map((each) => each?.limits)].flatMap((each) => each ?? []),
  };
}
