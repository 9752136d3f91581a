import { hasEnded } from '../access/lineage.ts';
import { readAccount, readInput, revokeAllOptions, revokeOptions } from '../inputs/schemas.ts';
import type { RevocationPreview, RevokeAllOptions, RevokeOptions } from '../inputs/types.ts';
import { inBatches } from '../records/batches.ts';
import { tokenOf } from '../records/token-view.ts';
import type { Token, TokenId, TokenRecord } from '../token/record.ts';
import { endDescendants, revokeUntilNone, unended } from './descendants.ts';
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

/** Revokes all tokens of an account, or those that somebody made, and says how many. */
export async function revokeAll(
  parts: ServiceParts,
  account: string,
  options: RevokeAllOptions,
): Promise<number | RevocationPreview> {
  const { records, store, events } = parts;
  const now = parts.now();
  const owner = readAccount(account);
  const read = readInput(revokeAllOptions(), options);
  const { createdBy, dryRun = false, onProgress } = read;
  if (dryRun) return previewOf(parts, owner, createdBy, now);
  if (createdBy !== undefined) return revokeMadeBy(parts, owner, { createdBy, onProgress }, now);
  return inBatches((limit) => records.revokeSome(owner, now, limit), {
    size: REVOKE_BATCH,
    slowMs: store.deadlineMs / 2,
    onProgress,
    onEnd: (count) => events.revokedAll(owner, count, now),
  });
}

/** Tokens that a preview shows. */
const SHOWN_TOKENS = 100;

async function previewOf(
  parts: ServiceParts,
  account: string,
  createdBy: string | undefined,
  now: number,
): Promise<RevocationPreview> {
  const doomed = new Set<TokenId>();
  const tokens: Token[] = [];
  const others: (readonly TokenId[])[] = [];
  for await (const { record, ancestors } of unended(parts, { account }, now)) {
    if (hasEnded(record, ancestors, now)) continue;
    if (isMadeBy(record, createdBy)) {
      doomed.add(record.id);
      if (tokens.length < SHOWN_TOKENS) tokens.push(tokenOf(record, now));
    } else if (record.ancestors !== undefined) {
      others.push(record.ancestors);
    }
  }
  const ending = others.filter((ancestors) => ancestors.some((id) => doomed.has(id))).length;
  return Object.freeze({ count: doomed.size, ending, tokens });
}

function revokeMadeBy(
  parts: ServiceParts,
  account: string,
  { createdBy, onProgress }: Pick<RevokeAllOptions, 'createdBy' | 'onProgress'>,
  now: number,
): Promise<number> {
  const isMade = (record: TokenRecord) => isMadeBy(record, createdBy);
  return revokeUntilNone(parts, () => unended(parts, { account }, now, isMade), now, {
    isWanted: ({ record, ancestors }) => !hasEnded(record, ancestors, now),
    onProgress,
  });
}

function isMadeBy({ origin }: TokenRecord, createdBy: string | undefined): boolean {
  return createdBy === undefined || origin?.createdBy === createdBy;
}
