import { checkSize } from '../access/change.ts';
import { ancestorFault } from '../access/lineage.ts';
import { expandFor } from '../access/rights.ts';
import { isTokenError, TokenError } from '../errors.ts';
import type { RequestRecord } from '../ports/request-store.ts';
import { parseScope, ScopeSet } from '../scope/index.ts';
import { inTurns } from '../time/deadline.ts';
import type { TokenRecord } from '../token/record.ts';
import type { RequestParts } from './parts.ts';
import type { ApproveOptions, DenyOptions, RequestCallOptions, TokenRequest } from './types.ts';
import { readUserCode } from './user-code.ts';

/** How long a program has to poll after an approval, in milliseconds. */
const REDEEM_MS = 60_000;

/** A request that this account may see, and the token that it elevates, narrowed to its ancestors. */
interface Found {
  readonly record: RequestRecord;
  readonly first: TokenRecord | undefined;
}

/** Finds a request by its user code. A wrong code is counted. */
export async function find(
  parts: RequestParts,
  account: string,
  typed: string,
  { address }: RequestCallOptions,
  now: number,
): Promise<Found | undefined> {
  const triers = [
    { what: 'code', who: `account ${account}` },
    ...(address === undefined ? [] : [{ what: 'code', who: `address ${address}` } as const]),
  ] as const;
  const tries = await parts.tries.take(triers, now);
  const userCode = readUserCode(typed);
  const record = userCode && (await parts.store.find({ userCode }));
  if (record === undefined || record === '' || !isOpenTo(record, account, now)) return undefined;
  const found = await withFirst(parts, record, now);
  if (found !== undefined) await tries.giveBack();
  return found;
}

function isOpenTo({ account, expiresAt }: RequestRecord, asking: string, now: number): boolean {
  return expiresAt.getTime() > now && (account === undefined || account === asking);
}

/** Reads the token that a request elevates; `undefined` if any of its line has changed or ended. */
export async function withFirst(
  { service }: RequestParts,
  record: RequestRecord,
  now: number,
): Promise<Found | undefined> {
  const { elevates, account = '' } = record;
  if (elevates === undefined) return { record, first: undefined };
  const line = await service.reader.readAll(elevates.map(({ id }) => id), now);
  const origin = { elevated: elevates.map(({ version }) => version) };
  if (ancestorFault({ account, origin }, line, now) !== undefined) return undefined;
  const first = line.at(-1) as TokenRecord;
  const narrowed = service.lineages.withinInSteps(first, line.slice(0, -1));
  return { record, first: await inTurns(narrowed) };
}

/** What the account may have of the scopes that were asked for. */
async function grantable(
  { service }: RequestParts,
  account: string,
  asked: readonly string[],
): Promise<readonly string[]> {
  const scopes = asked.map((scope) => parseScope(scope));
  try {
    return await expandFor(service.catalogs, account, scopes);
  } catch (error) {
    if (!isTokenError(error) || error.code !== 'scope_unmatched') throw error;
    const refused = new Set(error.details?.['scopes'] as readonly string[] | undefined);
    const rest = scopes.filter((scope) => !refused.has(scope.toString()));
    if (rest.length === 0 || rest.length === scopes.length) return [];
    return grantable({ service } as RequestParts, account, rest.map(String));
  }
}

/** A request as the person sees it who decides. */
export async function viewOf(
  parts: RequestParts,
  { record, first }: Found,
  account: string,
): Promise<TokenRequest> {
  const isPending = record.state === 'pending';
  const scopes = isPending ? await grantable(parts, account, record.scopes) : record.scopes;
  const held = first && ScopeSet.from(first.scopes);
  const beyond = held && (await inTurns(held.missingInSteps(scopes)));
  return Object.freeze({
    id: record.id,
    state: record.state,
    client: record.client,
    scopes,
    ttlSeconds: record.ttlSeconds,
    createdAt: new Date(record.createdAt),
    expiresAt: new Date(record.expiresAt),
    ...(record.address !== undefined && { address: record.address }),
    ...(record.purpose !== undefined && { purpose: record.purpose }),
    ...(first && beyond && { elevates: first.id, beyond }),
  });
}

/** Approves a request, or a part of it. */
export async function approve(
  parts: RequestParts,
  account: string,
  typed: string,
  { scopes, ttlSeconds, by, address }: ApproveOptions,
): Promise<TokenRequest> {
  const { service } = parts;
  const now = service.now();
  const found = await find(parts, account, typed, { address }, now);
  if (found === undefined) throw unknownCode();
  const { record } = found;
  if (record.state !== 'pending') throw decided();
  const granted = await approved(parts, account, record, scopes);
  checkSize({ scopes: granted, requested: granted }, service.rules.quotas);
  if (ttlSeconds !== undefined && !(ttlSeconds >= 1 && ttlSeconds <= record.ttlSeconds)) {
    throw new TokenError(
      'invalid_ttl',
      `ttlSeconds must be from 1 to ${record.ttlSeconds}, which was asked for`,
      { member: 'ttlSeconds', min: 1, max: record.ttlSeconds },
    );
  }
  if (!(await parts.mayApprove(found, account, by))) throw unknownCode();
  const latest = Math.max(record.expiresAt.getTime(), now + REDEEM_MS);
  const next: RequestRecord = {
    ...record,
    version: record.version + 1,
    state: 'approved',
    account,
    scopes: granted,
    ttlSeconds: ttlSeconds ?? record.ttlSeconds,
    expiresAt: new Date(latest),
    ...(by !== undefined && { by }),
  };
  if (!(await parts.store.replace(next))) throw decided();
  parts.emit('approved', next, now);
  return viewOf(parts, { ...found, record: next }, account);
}

/** What is approved: never more than was asked for, nor than the account may have. */
async function approved(
  { service }: RequestParts,
  account: string,
  { scopes: asked }: RequestRecord,
  chosen: readonly string[] | undefined,
): Promise<readonly string[]> {
  if (chosen === undefined) return expandFor(service.catalogs, account, asked.map((s) => parseScope(s)));
  if (chosen.length === 0) throw new TokenError('scopes_required', 'approve at least one scope, or deny the request', { member: 'scopes' });
  const beyond = await inTurns(ScopeSet.from(asked).missingInSteps(chosen));
  if (beyond.length > 0) {
    throw new TokenError('scope_unmatched', `${beyond[0]} was not asked for`, {
      scopes: beyond,
      member: 'scopes',
    });
  }
  return expandFor(service.catalogs, account, chosen.map((scope) => parseScope(scope)));
}

/** Denies a request. Resolves to whether there was one. */
export async function deny(
  parts: RequestParts,
  account: string,
  typed: string,
  { by, address }: DenyOptions,
): Promise<boolean> {
  const now = parts.service.now();
  const found = await find(parts, account, typed, { address }, now);
  if (found === undefined) return false;
  const { record } = found;
  if (record.state !== 'pending') throw decided();
  const next: RequestRecord = {
    ...record,
    version: record.version + 1,
    state: 'denied',
    account,
    ...(by !== undefined && { by }),
  };
  if (!(await parts.store.replace(next))) throw decided();
  parts.emit('denied', next, now);
  return true;
}

function unknownCode(): TokenError {
  return new TokenError('not_found', 'there is no request with this code: it is wrong, or has expired');
}

function decided(): TokenError {
  return new TokenError('request_decided', 'this request was decided before');
}
