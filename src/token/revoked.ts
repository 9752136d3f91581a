import { MAX_REVOKED_REQUESTED_BYTES } from '../bounds.ts';
import type { TokenRecord } from './record.ts';

/** A record as a store keeps it once it is revoked: without what costs space and is not needed any more. */
export function revoked(record: TokenRecord, at: Date): TokenRecord {
  const { scopes: _, metadata: __, box: ___, pending, ...kept } = record;
  return {
    ...kept,
    scopes: [],
    requested: firstRequested(record.requested),
    revokedAt: new Date(at),
    ...(pending !== undefined && { pending: { ...pending, box: undefined } }),
  };
}

/** The first requested scopes: as many as the JSON of a revoked record may hold. */
export function firstRequested(requested: readonly string[]): readonly string[] {
  let bytes = 1;
  const count = requested.findIndex((scope) => {
    bytes += Buffer.byteLength(JSON.stringify(scope)) + 1;
    return bytes > MAX_REVOKED_REQUESTED_BYTES;
  });
  return count === -1 ? requested : requested.slice(0, count);
}
