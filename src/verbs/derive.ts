import { checkSize } from '../access/change.ts';
import { type Ancestors, hasEnded } from '../access/lineage.ts';
import { ancestryOf, type Bounds, expandWithin, expiryWithin } from '../access/narrowing.ts';
import { isTokenError, TokenError } from '../errors.ts';
import { readInput, readLongInput, verifySyncOptions } from '../inputs/schemas.ts';
import type { DeriveInput, DeriveOptions } from '../inputs/types.ts';
import { checkLimitsWithin } from '../limits/within.ts';
import { issuedTokenOf } from '../records/token-view.ts';
import { inTurns } from '../time/deadline.ts';
import {
  askedExpiry,
  expiryAfter,
  type IssuedToken,
  isElevation,
  originPart,
  type TokenId,
  type TokenOrigin,
  type TokenRecord,
} from '../token/record.ts';
import { endDeadDescendants } from './descendants.ts';
import { holderOf } from './issue.ts';
import type { ServiceParts } from './parts.ts';

/** Issues a token that may do no more than the token of a value may do now. */
export async function derive(
  parts: ServiceParts,
  value: string,
  input: DeriveInput,
  options: DeriveOptions,
): Promise<IssuedToken> {
  const now = parts.now();
  const { lifetime, deriveInput } = parts.rules;
  const read = await readLongInput(deriveInput(), input);
  const { scopes, name, metadata, limits, createdBy, purpose, actorToken, ...asked } = read;
  const call = { now, address: readInput(verifySyncOptions(), options).address };
  const expiresAt = askedExpiry(asked, now, lifetime) ?? expiryAfter(now, lifetime.defaultSeconds);
  parts.limits.check(limits);
  const acting = actorOf(parts, actorToken, call);
  const live = await parts.decider.requireLive(value, call);
  if (isElevation(live.record)) {
    throw new TokenError(
      'invalid_request',
      'this token is an elevation, which nothing can be derived from; derive from the token that it elevates',
    );
  }
  const actor = await acting;
  const bounds = await boundsBy(parts, live.record, live.ancestors);
  for (const outer of bounds.limits) checkLimitsWithin(limits, outer);
  const fields = {
    account: live.record.account,
    ancestors: ancestryOf(live.record),
    scopes: await expandWithin(bounds, scopes),
    requested: scopes.map(String),
    createdAt: new Date(now),
    expiresAt: expiryWithin(bounds, earlier(expiresAt, live.validUntil)),
    version: 1,
    ...(name !== undefined && { name }),
    ...(metadata !== undefined && { metadata }),
    ...(limits !== undefined && { limits }),
    ...originPart({ createdBy: createdBy ?? live.record.origin?.createdBy, purpose, actor }),
  };
  checkSize(fields, parts.rules.quotas);
  const insert = async () => {
    await live.takeUse();
    return parts.records.insert(fields);
  };
  const inserted = await admitted(parts, fields, now, insert);
  await confirm(parts, value, inserted.record, call);
  parts.events.issued(inserted.record, now);
  return issuedTokenOf(inserted.record, now, inserted.value);
}

/** Who acts, by a value that is live now. Its fault waits until somebody awaits it. */
function actorOf(
  { decider }: ServiceParts,
  value: string | undefined,
  call: DeriveCall,
): Promise<TokenOrigin['actor']> | undefined {
  if (value === undefined) return undefined;
  const actor = decider.requireLive(value, call).then(
    ({ record }) => ({ sub: record.account, token: record.id }),
    (error) => {
      throw isTokenError(error) && error.code === 'invalid_token'
        ? new TokenError(error.code, `actorToken: ${error.message}`, { member: 'actorToken' })
        : error;
    },
  );
  actor.catch(() => {});
  return actor;
}

/** When and from where a token is derived. */
interface DeriveCall {
  readonly now: number;
  readonly address: string | undefined;
}

/** At the quota of the root, removes those from it that can never be used again, and tries once more. */
async function admitted<Inserted>(
  parts: ServiceParts,
  fields: Pick<TokenRecord, 'account'> & { readonly ancestors: readonly TokenId[] },
  now: number,
  insert: () => Promise<Inserted>,
): Promise<Inserted> {
  const holder = holderOf(fields);
  try {
    return await parts.quotas.admit(holder, now, insert);
  } catch (error) {
    if (!isTokenError(error) || error.details?.['quota'] !== 'derivedPerRoot') throw error;
    const root = { id: fields.ancestors[0] as TokenId, account: fields.account };
    if ((await endDeadDescendants(parts, root, now)) === 0) throw error;
    return parts.quotas.admit(holder, now, insert);
  }
}

/**
 * Makes sure that the value was still accepted after the insert: if it was rotated away meanwhile with all
 * that had been derived from it, the new token would live on.
 */
async function confirm(
  parts: ServiceParts,
  value: string,
  child: TokenRecord,
  call: DeriveCall,
): Promise<void> {
  try {
    await parts.decider.requireLive(value, call);
  } catch (error) {
    const { store } = parts;
    await store.revoke(child, new Date(call.now), undefined, store.deadline());
    throw error;
  }
}

function earlier(one: Date, other: Date = one): Date {
  return other < one ? other : one;
}

/**
 * Makes a change of a record within what its parent has now. A token without ancestors has no bounds, and
 * neither has an elevation: what it may become is decided elsewhere.
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

async function boundsOf(
  parts: ServiceParts,
  record: TokenRecord,
  now: number,
): Promise<Bounds | undefined> {
  const { lineages } = parts;
  const ancestors = await lineages.read(record, now);
  const parent = ancestors.at(-1);
  if (parent === undefined || hasEnded(record, ancestors, now)) {
    throw new TokenError(
      'token_expired',
      'a token that this one was derived from has ended, and this one with it; issue a new one',
    );
  }
  if (isElevation(record)) return undefined;
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
