import type { RequestBounds, RequestRecord } from '../../src/ports/request-store.ts';
import { bytesOf, idOf } from '../../src/testing/records.ts';
import type { TokenId, TokenRecord } from '../../src/token/record.ts';

export const CREATED = new Date('2100-01-01T00:00:00.000Z');

/** A record with a short id, and nothing optional. */
export function newRecord(label: string, fields: Partial<TokenRecord> = {}): TokenRecord {
  return {
    id: label.padEnd(22, 'x') as TokenId,
    account: 'acme',
    prefix: 'acme',
    kid: 'k1',
    digest: new Uint8Array(32).fill(label.length),
    scopes: ['GET:shop.example/orders'],
    requested: ['GET:shop.example/*'],
    createdAt: CREATED,
    expiresAt: new Date('2101-01-01T00:00:00.000Z'),
    version: 1,
    ...fields,
  };
}

export const REQUEST_BOUNDS: RequestBounds = {
  maxPending: 1000,
  maxOfRoot: 1000,
  liveAt: new Date('2040-01-01T00:00:00.000Z'),
};

const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';

/** A request for a token, with a user code of its own for each number up to 400. */
export function newRequest(seed: number, fields: Partial<RequestRecord> = {}): RequestRecord {
  const letter = (place: number) => LETTERS.charAt(Math.floor(seed / place) % LETTERS.length);
  return {
    id: idOf(`request${seed}`),
    userCode: `WDJBMJ${letter(LETTERS.length)}${letter(1)}`,
    digest: bytesOf(seed),
    version: 1,
    state: 'pending',
    client: 'my tool',
    scopes: ['GET:shop.example/orders'],
    ttlSeconds: 3600,
    createdAt: new Date('2040-01-01T00:00:00.000Z'),
    expiresAt: new Date('2040-01-01T00:10:00.000Z'),
    ...fields,
  };
}
