import { lostScopes } from '../access/rights.ts';
import type { RequestRecord } from '../ports/request-store.ts';
import { tokenOf } from '../records/token-view.ts';
import { expiryAfter, originPart, type TokenRecord } from '../token/record.ts';
import { isCodeOf, readDeviceCode } from '../values/device-code.ts';
import { withFirst } from './decide.ts';
import type { RequestParts } from './parts.ts';
import type { PollResult } from './types.ts';

/** Says what became of a request, and issues its token once. */
export async function poll(
  parts: RequestParts,
  deviceCode: string,
  client: string,
): Promise<PollResult> {
  const { service, pace, store } = parts;
  const now = service.now();
  const presented = readDeviceCode(service.ring, service.values.prefix, deviceCode);
  if (presented === undefined) return { state: 'unknown' };
  if (pace.isEarly(presented.id, now)) return { state: 'slow_down' };
  const record = await store.find({ id: presented.id });
  if (record === undefined || !isCodeOf(presented, record) || record.client !== client) {
    return { state: 'unknown' };
  }
  if (record.state === 'redeemed') return { state: 'unknown' };
  if (record.state === 'denied') return { state: 'denied' };
  if (record.expiresAt.getTime() <= now) return { state: 'expired' };
  pace.note(record.id, record.expiresAt, now);
  if (record.state === 'pending') {
    const isAlive = (await withFirst(parts, record, now)) !== undefined;
    return { state: isAlive ? 'pending' : 'unknown' };
  }
  pace.forget(record.id);
  return redeem(parts, record, now);
}

async function redeem(
  parts: RequestParts,
  request: RequestRecord,
  now: number,
): Promise<PollResult> {
  const { service, store } = parts;
  const account = request.account as string;
  const [found, catalog] = await Promise.all([
    withFirst(parts, request, now),
    service.catalogs.of(account),
  ]);
  if (found === undefined) return { state: 'unknown' };
  if (catalog !== undefined && (await lostScopes(catalog, request.scopes)).length > 0) {
    return { state: 'unknown' };
  }
  if (!(await parts.mayApprove(found, account, request.by))) return { state: 'unknown' };
  const fields = newToken(request, found.first, now);
  const root = request.elevates?.[0]?.id;
  const holder = { account, ...(root !== undefined && { root }) };
  // The compare-and-set comes first: a token without it could be issued twice.
  const inserted = await service.quotas.admit(holder, now, async () => {
    const redeemed = { ...request, version: request.version + 1, state: 'redeemed' } as const;
    return (await store.replace(redeemed)) ? service.records.insert(fields) : undefined;
  });
  if (inserted === undefined) return { state: 'unknown' };
  const { record, value } = inserted;
  service.events.issued(record, now, request.id);
  return { state: 'issued', token: Object.freeze({ ...tokenOf(record, now), value }) };
}

/** The record of the token that was approved. */
function newToken(request: RequestRecord, first: TokenRecord | undefined, now: number) {
  const { scopes, elevates, purpose, by, until } = request;
  const asked = expiryAfter(now, request.ttlSeconds);
  const ends = [asked, first?.expiresAt ?? asked, until ?? asked];
  return {
    account: request.account as string,
    scopes,
    requested: scopes,
    createdAt: new Date(now),
    expiresAt: new Date(Math.min(...ends.map((end) => end.getTime()))),
    version: 1,
    name: request.client,
    ...(elevates !== undefined && { ancestors: elevates.map(({ id }) => id) }),
    ...originPart({
      createdBy: by ?? first?.origin?.createdBy,
      purpose,
      elevated: elevates?.map(({ version }) => version),
    }),
  };
}
