import { checkSize } from '../access/change.ts';
import { expandFor } from '../access/rights.ts';
import { readLongInput } from '../inputs/schemas.ts';
import type { IssueInput } from '../inputs/types.ts';
import type { QuotaHolder } from '../ports/token-store.ts';
import type { NewRecord } from '../records/account-records.ts';
import { issuedTokenOf } from '../records/token-view.ts';
import {
  askedExpiry,
  expiryAfter,
  type IssuedToken,
  originPart,
  type TokenRecord,
} from '../token/record.ts';
import type { ServiceParts } from './parts.ts';

/** Issues a token with the scopes of a catalog that it asks for, if the quotas of its account allow it. */
export async function issue(parts: ServiceParts, input: IssueInput): Promise<IssuedToken> {
  const now = parts.now();
  const { lifetime, quotas, issueInput } = parts.rules;
  const reading = readLongInput(issueInput(), input);
  const { account, scopes, name, metadata, limits, createdBy, purpose, ...asked } =
    reading instanceof Promise ? await reading : reading;
  parts.limits.check(limits);
  const expiresAt = askedExpiry(asked, now, lifetime);
  const granted = expandFor(parts.catalogs, account, scopes);
  const fields: NewRecord = {
    account,
    scopes: granted instanceof Promise ? await granted : granted,
    requested: scopes.map((scope) => scope.toString()),
    createdAt: new Date(now),
    expiresAt: expiresAt ?? expiryAfter(now, lifetime.defaultSeconds),
    version: 1,
    ...(name !== undefined && { name }),
    ...(metadata !== undefined && { metadata }),
    ...(limits !== undefined && { limits }),
    ...originPart({ createdBy, purpose }),
  };
  checkSize(fields, quotas);
  const insert = () => parts.records.insert(fields);
  const { record, value } = await parts.quotas.admit({ account }, now, insert);
  parts.events.issued(record, now);
  return issuedTokenOf(record, now, value);
}

/** Whose quota a token takes a place of: that of its root if it was derived, else that of its account. */
export function holderOf({
  account,
  ancestors,
}: Pick<TokenRecord, 'account' | 'ancestors'>): QuotaHolder {
  return ancestors === undefined ? { account } : { account, root: ancestors[0] };
}
