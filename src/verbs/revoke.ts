import { readAccount, readInput, revokeAllOptions, revokeOptions } from '../inputs/schemas.ts';
import type { RevokeAllOptions, RevokeOptions } from '../inputs/types.ts';
import { inBatches } from '../records/batches.ts';
import { endDescendants } from './descendants.ts';
import type { ServiceParts } from './parts.ts';

/** Records that `revokeAll` marks in one call of the store. @bound */
export const REVOKE_BATCH = 1000;

/** Revokes a token of an account, and its descendants if that is wanted. Says whether this call did it. */
export async function revoke(
  parts: ServiceParts,
  account: string,
  valueOrId: string,
  options: RevokeOptions,
): Promise<boolean> {
  const { records, events } = parts;
  const now = parts.now();
  const owner = readAccount(account);
  const { ifVersion, descendants = false } = readInput(revokeOptions(), options);
  const state = descendants ? 'all' : undefined;
  const found = state && (await records.find(owner, valueOrId, now, state));
  const token = await records.revoke(owner, valueOrId, now, ifVersion);
  if (token !== undefined) events.token('revoked', token, now);
  if (found !== undefined) await endDescendants(parts, found, now);
  return token !== undefined;
}

/** Revokes all tokens of an account in batches, and says how many. */
export async function revokeAll(
  { now: clock, records, store, events }: ServiceParts,
  account: string,
  options: RevokeAllOptions,
): Promise<number> {
  const now = clock();
  const owner = readAccount(account);
  const { onProgress } = readInput(revokeAllOptions(), options);
  return inBatches((limit) => records.revokeSome(owner, now, limit), {
    size: REVOKE_BATCH,
    slowMs: store.deadlineMs / 2,
    onProgress,
    onEnd: (count) => events.revokedAll(owner, count, now),
  });
}
