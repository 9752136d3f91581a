import type { TokenRecord } from '../../src/token.ts';
import { CREATED, newRecord } from './support.ts';

// Rows as they were before schema version 3, whose columns earlier versions do not know.

/** All columns of schema versions 1 and 2, in their order. */
export const EARLIER_COLUMNS = [
  'id',
  'account',
  'prefix',
  'kid',
  'digest',
  'box',
  'scopes',
  'requested',
  'created_at',
  'expires_at',
  'version',
  'name',
  'metadata',
  'revoked_at',
  'previous_digest',
  'previous_until',
];

/** What those versions wrote, in that order. */
export function earlierValues(record: TokenRecord): (string | number | Uint8Array | null)[] {
  return [
    record.id,
    record.account,
    record.prefix,
    record.kid,
    record.digest,
    record.box ?? null,
    JSON.stringify(record.scopes),
    JSON.stringify(record.requested),
    record.createdAt.getTime(),
    record.expiresAt.getTime(),
    record.version,
    record.name ?? null,
    record.metadata === undefined ? null : JSON.stringify(record.metadata),
    record.revokedAt?.getTime() ?? null,
    record.previousDigest ?? null,
    record.previousUntil?.getTime() ?? null,
  ];
}

type Placeholder = (position: number) => string;

export function earlierInsert(table: string, placeholder: Placeholder = () => '?'): string {
  const values = EARLIER_COLUMNS.map((_, index) => placeholder(index + 1));
  return `INSERT INTO ${table} (${EARLIER_COLUMNS.join(', ')}) VALUES (${values.join(', ')})`;
}

/** Takes {@link replacedValues}. */
export function earlierReplace(table: string, placeholder: Placeholder = () => '?'): string {
  const changed = EARLIER_COLUMNS.slice(2).map(
    (column, index) => `${column} = ${placeholder(index + 1)}`,
  );
  const [id, account, version] = [15, 16, 17].map(placeholder);
  return `UPDATE ${table} SET ${changed.join(', ')}
    WHERE id = ${id} AND account = ${account} AND version = ${version} AND revoked_at IS NULL`;
}

export function replacedValues(next: TokenRecord): (string | number | Uint8Array | null)[] {
  return [...earlierValues(next).slice(2), next.id, next.account, next.version - 1];
}

const bytes = (seed: number) => Uint8Array.from({ length: 32 }, (_, index) => index * 7 + seed);

/** Every field of those versions, in records of each kind. */
export const EARLIER_RECORDS: readonly TokenRecord[] = [
  newRecord('bare'),
  newRecord('boxed', { box: bytes(3), name: 'de\nploy', metadata: { team: ['a'] } }),
  newRecord('rotated', { version: 3, previousDigest: bytes(5), previousUntil: CREATED }),
  newRecord('revoked', { revokedAt: CREATED }),
  newRecord('ended', { expiresAt: new Date(CREATED.getTime() - 1) }),
  newRecord('theirs', { account: 'Acme ' }),
];

/** What only later versions write. */
export const LATER_FIELDS = {
  suspendedAt: new Date(CREATED.getTime() + 1),
  scopesChangedAt: new Date(CREATED.getTime() + 2),
  rotatedAt: new Date(CREATED.getTime() + 3),
  pending: { prefix: 'acme_live', kid: 'k2', digest: bytes(9), box: bytes(11), graceSeconds: 60 },
} satisfies Partial<TokenRecord>;
