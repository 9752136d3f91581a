import { getOptions, readAccount, readInput } from '../inputs/schemas.ts';
import type { GetOptions } from '../inputs/types.ts';
import type { Token } from '../token/record.ts';
import type { ServiceParts } from './parts.ts';

/** Returns one token of an account. */
export async function get(
  { now: clock, records, view }: Pick<ServiceParts, 'now' | 'records' | 'view'>,
  account: string,
  valueOrId: string,
  options: GetOptions,
): Promise<Token | undefined> {
  const now = clock();
  const owner = readAccount(account);
  const { state } = readInput(getOptions(), options);
  const record = await records.find(owner, valueOrId, now, state);
  return record && (await view.withUses([record], now))[0];
}
