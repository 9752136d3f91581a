import { checkSize, tooManyTokens } from './access/change.ts';
import type { Quotas } from './options.ts';
import type { ServiceParts } from './parts.ts';
import type { NewRecord } from './records/account-records.ts';
import { tokenOf } from './records/token-view.ts';
import type { AccountQuota } from './store.ts';
import type { IssuedToken } from './token.ts';

/**
 * Stores a new token if the quotas of its account allow it, and emits `issued`.
 *
 * @throws {TokenError} `too_many_scopes`, `quota_exceeded`
 */
export async function issueWithinQuota(
  { rules, records, events }: ServiceParts,
  fields: NewRecord,
  now: number,
): Promise<IssuedToken> {
  const { quotas } = rules;
  checkSize(fields, quotas);
  const inserted = await records.insert(fields, accountQuota(quotas, now));
  if (inserted === undefined) throw tooManyTokens(quotas);
  const { record, value } = inserted;
  events.issued(record, now);
  return Object.freeze({ ...tokenOf(record, now), value });
}

/** The most live tokens that an account may have, for a call that inserts one. */
export function accountQuota({ tokensPerAccount }: Quotas, now: number): AccountQuota {
  return { tokens: tokensPerAccount, liveAt: new Date(now) };
}
