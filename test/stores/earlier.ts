import { pendingText } from '../../src/stores/shared/pending.ts';
import type { TokenId, TokenRecord } from '../../src/token/record.ts';
import { CREATED, newRecord } from './support.ts';

// Rows of earlier schema versions, which do not have all columns.

/** The schema versions before this one. */
export type EarlierVersion = 1 | 2 | 3;

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

function columnsOf(version: EarlierVersion): readonly string[] {
  if (version < 3) return EARLIER_COLUMNS;
  return [...EARLIER_COLUMNS, 'suspended_at', 'scopes_changed_at', 'rotated_at', 'pending'];
}

/** The values that those versions wrote, in the order of the columns. */
export function earlierValues(record: TokenRecord, version: EarlierVersion = 2): Values {
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
    ...(version < 3
      ? []
      : [
          record.suspendedAt?.getTime() ?? null,
          record.scopesChangedAt?.getTime() ?? null,
          record.rotatedAt?.getTime() ?? null,
          pendingText(record.pending) ?? null,
        ]),
  ];
}

type Values = (string | number | Uint8Array | null)[];

type Placeholder = (position: number) => string;

const QUESTION_MARK: Placeholder = () => '?';

export function earlierInsert(
  table: string,
  version: EarlierVersion = 2,
  placeholder = QUESTION_MARK,
): string {
  const columns = columnsOf(version);
  const values = columns.map((_, index) => placeholder(index + 1));
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${values.join(', ')})`;
}

/** Takes {@link replacedValues}. */
export function earlierReplace(
  table: string,
  schema: EarlierVersion = 2,
  placeholder = QUESTION_MARK,
): string {
  const columns = columnsOf(schema).slice(2);
  const changed = columns.map((column, index) => `${column} = ${placeholder(index + 1)}`);
  const [id, account, version] = [1, 2, 3].map((index) => placeholder(columns.length + index));
  return `UPDATE ${table} SET ${changed.join(', ')}
    WHERE id = ${id} AND account = ${account} AND version = ${version} AND revoked_at IS NULL`;
}

export function replacedValues(next: TokenRecord, version: EarlierVersion = 2): Values {
  return [...earlierValues(next, version).slice(2), next.id, next.account, next.version - 1];
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

/** Fields that only later versions write. */
export const LATER_FIELDS = {
  suspendedAt: new Date(CREATED.getTime() + 1),
  scopesChangedAt: new Date(CREATED.getTime() + 2),
  rotatedAt: new Date(CREATED.getTime() + 3),
  pending: { prefix: 'acme_live', kid: 'k2', digest: bytes(9), box: bytes(11), graceSeconds: 60 },
  limits: { addresses: ['192.0.2.0/24'], uses: 5, rate: { uses: 2, seconds: 60 } },
  ancestors: ['root'.padEnd(22, 'x') as TokenId],
  format: 'sanctum',
} satisfies Partial<TokenRecord>;
