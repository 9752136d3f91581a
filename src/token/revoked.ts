import { MAX_REVOKED_REQUESTED_BYTES } from '../bounds.ts';
import type { TokenRecord } from './record.ts';

/** A record as a store keeps it once it is revoked: without what costs space and is not needed any more. */
export function revoked(record: TokenRecord, at: Date): TokenRecord {
  return { ...record, ...revocation(record, at) };
}

/** What revoking changes in a record. */
export function revocation(
  { requested, pending }: Pick<TokenRecord, 'requested' | 'pending'>,
  at: Date,
) {
  return {
    scopes: [],
    requested: firstRequested(requested),
    metadata: undefined,
    box: undefined,
    revokedAt: new Date(at),
    ...(pending !== undefined && { pending: { ...pending, box: undefined } }),
  } satisfies Partial<TokenRecord>;
}

/** The first requested scopes: as many as the JSON of a revoked record may hold. */
export function firstRequested(requested: readonly string[]): readonly string[] {
  // Nearly all lists fit.
  if (bytesOf(requested) <= MAX_REVOKED_REQUESTED_BYTES) return requested;
  let bytes = 1;
  const count = requested.findIndex((scope) => {
    bytes += bytesOf(scope) + 1;
    return bytes > MAX_REVOKED_REQUESTED_BYTES;
  });
  return requested.slice(0, count);
}

function bytesOf(value: string | readonly string[]): number {
  return Buffer.byteLength(JSON.stringify(value));
}
