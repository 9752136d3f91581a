/** The schema version in the comment of a table. */
export interface SchemaMark {
  readonly version: number;
  /** The oldest schema version that code must know in order to use the table. */
  readonly needs: number;
}

/** The comment of a table that this version made. The comments of our tables of tokens begin with this. */
export const MARK = 'tokenwright schema';

/** A kind of table: its mark in the comment, and its names in messages. */
export interface TableKind {
  readonly mark: string;
  readonly holds: string;
  /** The functions that create it. */
  readonly migrate: string;
  readonly migrationSql: string;
  /** Why a standby is refused, and what to do about it. */
  readonly standby: readonly [risk: string, cure: string];
}

export const TOKENS: TableKind = {
  mark: MARK,
  holds: 'tokens',
  migrate: 'migrate',
  migrationSql: 'migrationSql',
  standby: [
    'may still accept revoked tokens',
    'connect the pool to the primary, or set standby: "allow"',
  ],
};

export const USAGE: TableKind = {
  mark: 'tokenwright usage schema',
  holds: 'usage',
  migrate: 'migrateUsage',
  migrationSql: 'usageMigrationSql',
  standby: ['may lack the latest counts', 'connect the pool to the primary'],
};

export const LEASES: TableKind = {
  mark: 'tokenwright lease schema',
  holds: 'leases',
  migrate: 'migrateLeases',
  migrationSql: 'leaseMigrationSql',
  standby: ['may lack the latest leases', 'connect the pool to the primary'],
};

/** The message of `doctor` about a table that needs a later version. */
export const SCHEMA_NEWER =
  'tokens may be misread: a later version of tokenwright changed the table in a way that this version does not know; upgrade tokenwright';

/**
 * Reads the comment of a table; undefined if the table is not marked as one of this kind.
 *
 * `tokenwright schema 3` is for all versions: it may only have more columns that can be left out of an
 * insert, and more indexes, so that versions work side by side during an upgrade. A version that
 * changes more than that writes `tokenwright schema 4, needs 4`, and renames a column that older
 * statements name, so that running processes fail instead of misreading it.
 */
export function readMark(
  comment: string | null,
  { mark }: Pick<TableKind, 'mark'> = TOKENS,
): SchemaMark | undefined {
  if (!comment?.startsWith(`${mark} `)) return undefined;
  const [, version, needs = 1] =
    /^ (\d+)(?:, needs (\d+))?$/.exec(comment.slice(mark.length)) ?? [];
  // A form that only later versions know.
  if (version === undefined) return { version: Number.NaN, needs: Number.POSITIVE_INFINITY };
  return { version: Number(version), needs: Number(needs) };
}
