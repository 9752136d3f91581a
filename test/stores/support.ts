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
