import { corruptRequest, TokenError } from '../../errors.ts';
import {
  isRequestRecord,
  isUserCode,
  type RequestBounds,
  type RequestKey,
  type RequestRecord,
} from '../../ports/request-store.ts';
import { isId } from '../../token/id.ts';

/** A request as databases keep it: what they look for in columns, and the rest as one text. */
export interface RequestRow {
  readonly id: string;
  readonly userCode: string;
  /** The root of the token that is to be elevated; empty if there is none. */
  readonly root: string;
  readonly version: number;
  /** In milliseconds. */
  readonly expiresAt: number;
  /** JSON with its bytes in base64url. */
  readonly body: string;
}

/** What a row is made of, as a database returns it. */
export type RequestCells = Readonly<Record<keyof Omit<RequestRow, 'root'>, unknown>>;

/** @throws {TokenError} `invalid_request`: what could not be read again is not written */
export function requestRow(record: RequestRecord): RequestRow {
  if (!isRequestRecord(record)) {
    throw new TokenError('invalid_request', 'this is not a request as RequestRecord describes it');
  }
  const { id, userCode, version, elevates, expiresAt } = record;
  return {
    id,
    userCode,
    root: elevates?.[0]?.id ?? '',
    version,
    expiresAt: expiresAt.getTime(),
    body: bodyOf(record),
  };
}

/** @throws {TokenError} `store_corrupt` */
export function readRequest(cells: RequestCells): RequestRecord {
  const body = String(cells.body);
  try {
    const { digest, createdAt, until, ...rest } = JSON.parse(body);
    const record: unknown = {
      ...rest,
      id: String(cells.id),
      userCode: String(cells.userCode),
      version: Number(cells.version),
      digest: new Uint8Array(Buffer.from(String(digest), 'base64url')),
      ...(until !== undefined && { until: new Date(until) }),
      createdAt: new Date(createdAt),
      expiresAt: new Date(Number(cells.expiresAt)),
    };
    // A text of another form would lose something when the request is written again.
    if (isRequestRecord(record) && bodyOf(record) === body) return record;
  } catch {
    // It is not JSON.
  }
  throw corruptRequest();
}

/** In one fixed order. */
function bodyOf(record: RequestRecord): string {
  const { digest, state, client, address, scopes, purpose, ttlSeconds, account, by } = record;
  return JSON.stringify({
    digest: Buffer.from(digest).toString('base64url'),
    state,
    client,
    address,
    scopes,
    purpose,
    ttlSeconds,
    until: record.until?.getTime(),
    account,
    by,
    elevates: record.elevates?.map(({ id, version }) => ({ id, version })),
    createdAt: record.createdAt.getTime(),
  });
}

/** The column that a key is looked up in; undefined if no request can have the key. */
export function columnOf(
  key: RequestKey,
): { readonly name: 'id' | 'user_code'; readonly value: string } | undefined {
  if ('id' in key) return isId(key.id) ? { name: 'id', value: key.id } : undefined;
  return isUserCode(key.userCode) ? { name: 'user_code', value: key.userCode } : undefined;
}

/** How many requests there are when another one comes. */
export interface HeldRequests {
  /** With its id or user code. */
  readonly taken: number;
  /** Not expired. */
  readonly live: number;
  /** Not expired, and with the same root, or also without one. */
  readonly alike: number;
}

/** How many requests there may be before another one. */
export function boundsOf({ root }: RequestRow, { maxPending, maxOfRoot }: RequestBounds) {
  const half = { quota: 'maxPending', max: Math.floor(maxPending / 2) } as const;
  return {
    live: { quota: 'maxPending', max: maxPending } as const,
    alike: root === '' ? half : ({ quota: 'maxOfRoot', max: maxOfRoot } as const),
  };
}

/** Why another request is refused; undefined if it is not. */
export function refusalOf(
  { taken, live, alike }: HeldRequests,
  row: RequestRow,
  bounds: RequestBounds,
): TokenError | undefined {
  if (taken > 0) return new TokenError('code_taken', 'this id or user code is taken');
  const most = boundsOf(row, bounds);
  const details = alike >= most.alike.max ? most.alike : most.live;
  if (details === most.live && live < most.live.max) return undefined;
  return new TokenError('quota_exceeded', MESSAGES[details.quota], details);
}

const MESSAGES = {
  maxOfRoot: 'this token has too many open requests: wait until one of them has expired',
  maxPending: 'there are too many open requests: wait until some of them have expired',
} as const;

/** @throws {TokenError} {@link refusalOf} */
export function checkBounds(...held: Parameters<typeof refusalOf>): void {
  const refusal = refusalOf(...held);
  if (refusal !== undefined) throw refusal;
}
