import { ancestorFault } from '../access/lineage.ts';
import { storeUnavailable } from '../errors.ts';
import type { RequestRecord } from '../ports/request-store.ts';
import { ScopeSet } from '../scope/index.ts';
import { inTurns, withDeadline } from '../time/deadline.ts';
import type { TokenRecord } from '../token/record.ts';
import { grantable } from './grantable.ts';
import type { Approval } from './options.ts';
import type { LiveRequest, RequestParts } from './parts.ts';
import type { TokenRequest } from './types.ts';

/**
 * Reads the token that a request elevates. Returns `undefined` if it has ended, or was changed, or one above it.
 *
 * @throws {TokenError} `store_unavailable`, `store_corrupt`
 */
export async function liveRequest(
  { service }: RequestParts,
  record: RequestRecord,
  now: number,
): Promise<LiveRequest | undefined> {
  const { elevates, account = '' } = record;
  if (elevates === undefined) return { record, first: undefined };
  const ids = elevates.map(({ id }) => id);
  const line = await service.reader.readAll(ids, now);
  const origin = { elevated: elevates.map(({ version }) => version) };
  if (ancestorFault({ account, origin }, line, now) !== undefined) return undefined;
  const first = line.at(-1) as TokenRecord;
  const narrowed = service.lineages.withinInSteps(first, line.slice(0, -1));
  return { record, first: await inTurns(narrowed) };
}

/** A request as the person sees it who decides for this account. */
export async function requestOf(
  parts: RequestParts,
  { record, first }: LiveRequest,
  account: string,
): Promise<TokenRequest> {
  const { id, state, client, address, purpose, ttlSeconds } = record;
  const scopes =
    state === 'pending' ? await grantable(parts.service, account, record.scopes) : record.scopes;
  const held = first && ScopeSet.from(first.scopes);
  return Object.freeze({
    id,
    state,
    client,
    scopes: Object.freeze([...scopes]),
    ttlSeconds,
    createdAt: new Date(record.createdAt),
    expiresAt: new Date(record.expiresAt),
    ...(address !== undefined && { address }),
    ...(purpose !== undefined && { purpose }),
    ...(first &&
      held && { elevates: first.id, beyond: await inTurns(held.missingInSteps(scopes)) }),
  });
}

/**
 * Asks the host whether this person may approve a request.
 *
 * @throws {TokenError} `store_unavailable` if its function throws or takes too long
 */
export async function mayApprove(
  parts: RequestParts,
  request: LiveRequest,
  approval: Approval,
): Promise<boolean> {
  const { mayApprove: ask } = parts.options;
  if (ask === undefined) return true;
  const shown = await requestOf(parts, request, approval.account);
  try {
    const answer = (async () => ask(shown, approval))();
    return (await withDeadline(answer, parts.service.store.deadlineMs)) === true;
  } catch {
    // An error of the host's function may hold anything, so it is dropped.
    throw storeUnavailable('unknown', 'requests');
  }
}
