import { lostScopes } from '../access/rights.ts';
import { readInput } from '../inputs/schemas.ts';
import type { RequestRecord } from '../ports/request-store.ts';
import type { NewRecord } from '../records/account-records.ts';
import { issuedTokenOf } from '../records/token-view.ts';
import { expiryAfter, originPart, type TokenRecord } from '../token/record.ts';
import { isCodeOf, readDeviceCode } from '../values/device-code.ts';
import { liveRequest, mayApprove } from './live.ts';
import { pollOptions } from './options.ts';
import type { RequestParts } from './parts.ts';
import type { PollOptions, PollResult } from './types.ts';

const UNKNOWN: PollResult = Object.freeze({ state: 'unknown' });

/** Says what became of a request, and issues its token once. */
export async function poll(
  parts: RequestParts,
  deviceCode: string,
  options: PollOptions,
): Promise<PollResult> {
  const { service, pace, store } = parts;
  const now = service.now();
  const { client } = readInput(pollOptions(), options);
  const presented = readDeviceCode(service.ring, service.values.prefix, deviceCode);
  if (presented === undefined) return UNKNOWN;
  if (pace.isEarly(presented.id, now)) return { state: 'slow_down' };
  const record = await store.find({ id: presented.id });
  if (record === undefined || !isCodeOf(presented, record) || record.client !== client) {
    return UNKNOWN;
  }
  const { id, state, expiresAt } = record;
  if (state === 'redeemed') return UNKNOWN;
  if (state === 'denied') return { state: 'denied' };
  if (expiresAt.getTime() <= now) return { state: 'expired' };
  if (state === 'approved') {
    pace.forget(id);
    return redeem(parts, record, now);
  }
  pace.note(id, expiresAt, now);
  return (await liveRequest(parts, record, now)) === undefined ? UNKNOWN : { state: 'pending' };
}

/** Issues the token of an approved request, unless another poll has, or the account may no longer have it. */
async function redeem(
  parts: RequestParts,
  request: RequestRecord,
  now: number,
): Promise<PollResult> {
  const { service, store } = parts;
  const { scopes, elevates, account = '', by } = request;
  const live = await liveRequest(parts, request, now);
  if (live === undefined) return UNKNOWN;
  const catalog = await service.catalogs.of(account);
  if (catalog !== undefined && (await lostScopes(catalog, scopes)).length > 0) return UNKNOWN;
  if (!(await mayApprove(parts, live, { account, by }))) return UNKNOWN;
  const root = elevates?.[0]?.id;
  const holder = { account, ...(root !== undefined && { root }) };
  const fields = newToken(request, live.first, now);
  // First the compare-and-set, then the token: the other way round, two polls would get one each.
  const inserted = await service.quotas.admit(holder, now, async () => {
    const redeemed = { ...request, version: request.version + 1, state: 'redeemed' } as const;
    return (await store.replace(redeemed)) ? service.records.insert(fields) : undefined;
  });
  if (inserted === undefined) return UNKNOWN;
  const { record, value } = inserted;
  service.events.issued(record, now, request.id);
  return { state: 'issued', token: issuedTokenOf(record, now, value) };
}

/** The record of the token that was approved. It ends with the token that it elevates at the latest. */
function newToken(request: RequestRecord, first: TokenRecord | undefined, now: number): NewRecord {
  const { account = '', scopes, elevates, client, purpose, by, until } = request;
  const expiresAt = expiryAfter(now, request.ttlSeconds);
  const ends = [expiresAt, first?.expiresAt ?? expiresAt, until ?? expiresAt];
  return {
    account,
    scopes,
    requested: scopes,
    createdAt: new Date(now),
    expiresAt: new Date(Math.min(...ends.map((end) => end.getTime()))),
    version: 1,
    name: client,
    ...(elevates !== undefined && { ancestors: elevates.map(({ id }) => id) }),
    ...originPart({
      createdBy: by ?? first?.origin?.createdBy,
      purpose,
      elevated: elevates?.map(({ version }) => version),
    }),
  };
}
