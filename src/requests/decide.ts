import { checkSize } from '../access/change.ts';
import { expandFor } from '../access/rights.ts';
import { TokenError } from '../errors.ts';
import { readAccount, readInput } from '../inputs/schemas.ts';
import { ofMember, refuseScopes } from '../inputs/scope-refusals.ts';
import { networkOf } from '../limits/addresses.ts';
import type { RequestRecord } from '../ports/request-store.ts';
import { type Scope, ScopeSet } from '../scope/index.ts';
import { inTurns } from '../time/deadline.ts';
import type { ServiceParts } from '../verbs/parts.ts';
import { scopesOf } from './grantable.ts';
import { liveRequest, mayApprove, requestOf } from './live.ts';
import { denyOptions, getRequestOptions, readApproval } from './options.ts';
import type { LiveRequest, RequestParts } from './parts.ts';
import type { ApproveOptions, DenyOptions, RequestCallOptions, TokenRequest } from './types.ts';
import { readUserCode } from './user-code.ts';

/** Milliseconds that a program has to poll after an approval, at least. @bound */
export const REDEEM_MS = 60_000;

/** Returns the request of a user code. */
export async function get(
  parts: RequestParts,
  account: string,
  userCode: string,
  options: RequestCallOptions,
): Promise<TokenRequest | undefined> {
  const now = parts.service.now();
  const owner = readAccount(account);
  const { address } = readInput(getRequestOptions(), options);
  const found = await find(parts, { owner, userCode, address, now });
  return found && requestOf(parts, found, owner);
}

/** Approves a request, or a part of it. */
export async function approve(
  parts: RequestParts,
  account: string,
  userCode: string,
  options: ApproveOptions,
): Promise<TokenRequest> {
  const { service, store } = parts;
  const now = service.now();
  const owner = readAccount(account);
  const { scopes, ttlSeconds, by, address } = await readApproval(options);
  const found = await find(parts, { owner, userCode, address, now });
  const record = pending(found);
  checkLifetime(record, ttlSeconds);
  const granted = await approved(service, owner, record, scopes);
  const live = found as LiveRequest;
  if (!(await mayApprove(parts, live, { account: owner, by }))) throw unknownCode();
  const next: RequestRecord = {
    ...record,
    version: record.version + 1,
    state: 'approved',
    account: owner,
    scopes: granted,
    ttlSeconds: ttlSeconds ?? record.ttlSeconds,
    expiresAt: new Date(Math.max(record.expiresAt.getTime(), now + REDEEM_MS)),
    ...(by !== undefined && { by }),
  };
  if (!(await store.replace(next))) throw decidedBefore();
  parts.emit('approved', next, now);
  return requestOf(parts, { ...live, record: next }, owner);
}

/** Denies a request, and says whether there was one. */
export async function deny(
  parts: RequestParts,
  account: string,
  userCode: string,
  options: DenyOptions,
): Promise<boolean> {
  const now = parts.service.now();
  const owner = readAccount(account);
  const { by, address } = readInput(denyOptions(), options);
  const found = await find(parts, { owner, userCode, address, now });
  if (found === undefined) return false;
  const record = pending(found);
  const next: RequestRecord = {
    ...record,
    version: record.version + 1,
    state: 'denied',
    account: owner,
    ...(by !== undefined && { by }),
  };
  if (!(await parts.store.replace(next))) throw decidedBefore();
  parts.emit('denied', next, now);
  return true;
}

/** A user code that somebody types. */
interface Typed {
  readonly owner: string;
  readonly userCode: string;
  readonly address: string | undefined;
  readonly now: number;
}

/**
 * Finds a request that this account may decide. Each wrong code is a try of the account and of the address.
 *
 * @throws {TokenError} `rate_limited`
 */
async function find(
  parts: RequestParts,
  { owner, userCode, address, now }: Typed,
): Promise<LiveRequest | undefined> {
  const from = address === undefined ? [] : [`address ${networkOf(address)}`];
  const triers = [`account ${owner}`, ...from].map((who) => ({ what: 'code', who }) as const);
  const tries = await parts.tries.take(triers, now);
  const code = readUserCode(userCode);
  const record = code === undefined ? undefined : await parts.store.find({ userCode: code });
  const isOpen = record !== undefined && isOpenTo(record, owner, now);
  const found = isOpen ? await liveRequest(parts, record, now) : undefined;
  if (found !== undefined) await tries.giveBack();
  return found;
}

function isOpenTo({ account, expiresAt }: RequestRecord, owner: string, now: number): boolean {
  return expiresAt.getTime() > now && (account === undefined || account === owner);
}

/** @throws {TokenError} `not_found`, `request_decided` */
function pending(found: LiveRequest | undefined): RequestRecord {
  if (found === undefined) throw unknownCode();
  if (found.record.state !== 'pending') throw decidedBefore();
  return found.record;
}

/** @throws {TokenError} `invalid_ttl` */
function checkLifetime({ ttlSeconds: max }: RequestRecord, asked: number | undefined): void {
  if (asked === undefined || asked <= max) return;
  throw new TokenError(
    'invalid_ttl',
    `ttlSeconds must not be more than ${max}, which the request asks for; got ${asked}`,
    { member: 'ttlSeconds', min: 1, max },
  );
}

/**
 * The scopes that are approved: never more than was asked for, nor than the account may have.
 *
 * @throws {TokenError} `scope_unmatched`, `quota_exceeded`
 */
async function approved(
  { catalogs, rules }: ServiceParts,
  account: string,
  { scopes: asked }: RequestRecord,
  chosen: readonly Scope[] | undefined,
): Promise<readonly string[]> {
  const beyond = chosen && (await inTurns(ScopeSet.from(asked).missingInSteps(chosen)));
  if (beyond?.[0] !== undefined) {
    const message = `${beyond[0]} was not asked for; approve what the request asks for, or less`;
    throw ofMember(refuseScopes('scope_unmatched', message, beyond), 'scopes');
  }
  const granted = await expandFor(catalogs, account, chosen ?? scopesOf(asked));
  checkSize({ scopes: granted, requested: granted }, rules.quotas);
  return granted;
}

function unknownCode(): TokenError {
  return new TokenError(
    'not_found',
    'there is no request with this code: it was mistyped, or has expired',
  );
}

function decidedBefore(): TokenError {
  return new TokenError('request_decided', 'this request was approved or denied before');
}
