import { TokenError } from '../../errors.ts';

/** The schema version that a database has noted, such as in the comment of a table. */
export interface SchemaMark {
  readonly version: number;
  /** The oldest schema version that code must know to use the table; 0 in a development version. */
  readonly needs: number;
}

/** A kind of table: its mark in the comment, and its names in messages. */
export interface TableKind {
  readonly mark: string;
  readonly holds: string;
}

export const TOKENS: TableKind = { mark: 'tokenwright schema', holds: 'tokens' };
export const USAGE: TableKind = { mark: 'tokenwright usage schema', holds: 'usage' };
export const LEASES: TableKind = { mark: 'tokenwright lease schema', holds: 'leases' };
export const REQUESTS: TableKind = { mark: 'tokenwright request schema', holds: 'requests' };

/** A table of a schema, and the statements that make it. Its newest version is one more than its upgrades. */
export interface SchemaTable {
  readonly kind: TableKind;
  /** As messages name it. */
  readonly name: string;
  /** Makes the newest version, with its mark. */
  readonly create: string;
  /** From each version to the next one, with its mark. Each takes effect as a whole or not at all. */
  readonly upgrades: readonly string[];
}

/** The message of `doctor` about a table that needs a later version. */
export const SCHEMA_NEWER =
  'tokens may be misread: a later version of tokenwright changed the table in a way that this version does not know; upgrade tokenwright';

/** What is wrong with a table of a development version, and what to do about it. */
export const SCHEMA_OF_DEVELOPMENT =
  'a development version of tokenwright created it, and it cannot be upgraded; drop it, or choose other names';

/** The comment of a table, from which {@link readMark} reads its mark. */
export function markText({ mark }: TableKind, version = 1, needs = 1): string {
  return `${mark} ${version}, needs ${needs}`;
}

/**
 * Reads the comment of a table; undefined if the table is not marked as one of this kind.
 *
 * `tokenwright schema 3, needs 1` is for all versions: it may only have more columns that can be left out of
 * an insert, and more indexes, so that versions work side by side during an upgrade. A version that changes
 * more than that writes `tokenwright schema 4, needs 4`, and renames a column that older statements name, so
 * that running processes fail instead of misreading it.
 */
export function readMark(comment: string | null, { mark }: TableKind): SchemaMark | undefined {
  if (!comment?.startsWith(`${mark} `)) return undefined;
  const [, version, needs = 0] =
    /^ (\d+)(?:, needs (\d+))?$/.exec(comment.slice(mark.length)) ?? [];
  // A form that only later versions know.
  if (version === undefined) return { version: Number.NaN, needs: Number.POSITIVE_INFINITY };
  return { version: Number(version), needs: Number(needs) };
}

/** What a mark means to code that knows the schema up to a version. */
export function schemaState(
  { version, needs }: SchemaMark,
  known: number,
): 'development' | 'older' | 'current' | 'newer' {
  if (needs < 1 || version < 1) return 'development';
  if (needs > known) return 'newer';
  return version < known ? 'older' : 'current';
}

/** The newest version of a table that this code knows. */
export function knownVersion({ upgrades }: SchemaTable): number {
  return upgrades.length + 1;
}

/**
 * The statement that takes a table to its next version; undefined if it is up to date.
 *
 * @throws {TokenError} `invalid_options`
 */
export function nextUpgrade(mark: SchemaMark, table: SchemaTable): string | undefined {
  const known = knownVersion(table);
  const state = schemaState(mark, known);
  if (state === 'older') return table.upgrades[mark.version - 1];
  if (state === 'current') return undefined;
  const [reason, fault] =
    state === 'development'
      ? ['schema_older', `is too old: ${SCHEMA_OF_DEVELOPMENT}`]
      : [
          'schema_newer',
          `has a schema that this tokenwright does not know, later than version ${known}: upgrade tokenwright`,
        ];
  throw new TokenError('invalid_options', `the table ${table.name} ${fault}`, { reason });
}
