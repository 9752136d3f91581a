import { checkSize } from '../access/change.ts';
import type { QuotaHolder } from '../ports/token-store.ts';
import type { NewRecord } from '../records/account-records.ts';
import { tokenOf } from '../records/token-view.ts';
import type { IssuedToken, TokenRecord } from '../token/record.ts';
import type { ServiceParts } from './parts.ts';

/**
 * Stores a new token if the quotas of its account allow it, and emits `issued`.
 *
 * @throws {TokenError} `too_many_scopes`, `quota_exceeded`
 */
export async function issueWithinQuota(
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
