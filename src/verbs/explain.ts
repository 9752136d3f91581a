import { type Need, readNeed } from '../access/need.ts';
import { readAccount } from '../inputs/schemas.ts';
import { toTokenError } from '../inputs/scope-refusals.ts';
import type { Scope } from '../scope/index.ts';
import { refuseParameters } from '../scope/list.ts';
import type { Explanation } from '../token/record.ts';
import type { ServiceParts } from './parts.ts';

/** Explains why a token of an account does or does not allow something. */
export async function explain(
  { now: clock, records, catalogs, decider }: ServiceParts,
  account: string,
  valueOrId: string,
  need: Need,
): Promise<Explanation> {
  const now = clock();
  const owner = readAccount(account);
  const reading = readNeed(need, catalogs.routes);
  if (reading.ok && 'scope' in need) refuseWritten(reading.need as Scope);
  const record = await records.find(owner, valueOrId, now);
  return decider.explain(record, reading, await catalogs.of(owner), now);
}

/** To `verify`, a scope with `:id` is covered by one with `{}`; here the answer would suggest `:id` for a token. */
function refuseWritten(scope: Scope): void {
  try {
    refuseParameters(scope);
  } catch (error) {
    throw toTokenError(error);
  }
}
