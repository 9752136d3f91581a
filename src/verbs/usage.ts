import { adviseOptions, readAccount, readInput } from '../inputs/schemas.ts';
import type { AdviseOptions } from '../inputs/types.ts';
import { DAY_MS } from '../time/duration.ts';
import type { TokenAdvice } from '../usage/advice.ts';
import type { TokenUsage } from '../usage/counts.ts';
import { usageIsOff } from '../usage/recorder.ts';
import type { ServiceParts } from './parts.ts';

type Parts = Pick<ServiceParts, 'now' | 'records' | 'view'>;

/** Returns how a token of an account is used. */
export async function usageOf(
  { now: clock, records, view }: Parts,
  account: string,
  valueOrId: string,
): Promise<TokenUsage | undefined> {
  const now = clock();
  const owner = readAccount(account);
  const { usage } = view;
  if (usage === undefined) throw usageIsOff();
  const record = await records.find(owner, valueOrId, now);
  return record && usage.usageOf(record);
}

/** Names the scopes that a token of an account has not used for a time. */
export async function advise(
  { now: clock, records, view, decider }: Parts & Pick<ServiceParts, 'decider'>,
  account: string,
  valueOrId: string,
  options: AdviseOptions,
): Promise<TokenAdvice | undefined> {
  const now = clock();
  const owner = readAccount(account);
  const { unusedForDays = 30 } = readInput(adviseOptions(), options);
  const { usage } = view;
  if (usage === undefined) throw usageIsOff();
  const record = await records.find(owner, valueOrId, now);
  const from = now - unusedForDays * DAY_MS;
  return record && usage.adviceOn(record, decider.scopeSetOf(record), from);
}
