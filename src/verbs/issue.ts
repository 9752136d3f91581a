import { checkSize } from '../access/change.ts';
import { expandFor } from '../access/rights.ts';
import { readLongInput } from '../inputs/schemas.ts';
import type { IssueInput } from '../inputs/types.ts';
import type { QuotaHolder } from '../ports/token-store.ts';
import type { NewRecord } from '../records/account-records.ts';
import { tokenOf } from '../records/token-view.ts';
import { askedExpiry, expiryAfter, type IssuedToken, type TokenRecord } from '../token/record.ts';
import type { ServiceParts } from './parts.ts';

/** Issues a token with the scopes of a catalog that it asks for. */
export async function issue(parts: ServiceParts, input: IssueInput): Promise<IssuedToken> {
  const now = parts.now();
  const { lifetime, issueInput } = parts.rules;
  const { account, scopes, name, metadata, limits, ...asked } = await readLongInput(
    issueInput,
    input,
  );
  parts.limits.check(limits);
  const expiresAt = askedExpiry(asked, now, lifetime);
  const fields = {
    account,
    scopes: await expandFor(parts.catalogs, account, scopes),
    requested: scopes.map(String),
    createdAt: new Date(now),
    expiresAt: expiresAt ?? expiryAfter(now, lifetime.defaultSeconds),
    version: 1,
    ...(name !== undefined && { name }),
    ...(metadata !== undefined && { metadata }),
    ...(limits !== undefined && { limits }),
  };
  return issueWithinQuota(parts, fields, now);
}

/**
 * Stores a new token if the quotas of its account allow it, and emits `issued`.
 *
 * @throws {TokenError} `too_many_scopes`, `quota_exceeded`
 */
async function issueWithinQuota(
  { rules, records, quotas, events }: ServiceParts,
  fields: NewRecord,
  now: number,
): Promise<IssuedToken> {
  checkSize(fields, rules.quotas);
  const insert = () => records.insert(fields);
  const { record, value } = await quotas.admit(holderOf(fields), now, insert);
  events.issued(record, now);
  return Object.freeze({ ...tokenOf(record, now), value });
}

/** Whose quota a token takes a place of: that of its root if it was derived, else that of its account. */
export function holderOf({
  account,
  ancestors,
}: Pick<TokenRecord, 'account' | 'ancestors'>): QuotaHolder {
  return ancestors === undefined ? { account } : { account, root: ancestors[0] };
}
