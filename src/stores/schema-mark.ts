/** What the comment of a table says of its schema. */
export interface SchemaMark {
  readonly version: number;
  /** The oldest schema version that code must know in order to use the table. */
  readonly needs: number;
}

/** The comment of a table that this version made. The comments of our tables begin with this. */
export const MARK = 'tokenwright schema';

/** What `doctor` says of a table that needs a later version. */
export const SCHEMA_NEWER =
  'tokens may be misread: a later version of tokenwright changed the table in a way that this version does not know; upgrade tokenwright';

/**
 * Reads the comment of a table; undefined if the table is not marked as ours.
 *
 * `tokenwright schema 3` is for all versions: it may only have more columns that can be left out of an
 * insert, and more indexes, so that versions work side by side during an upgrade. A version that
 * changes more than that writes `tokenwright schema 4, needs 4`, and renames a column that older
 * statements name, so that running processes fail instead of misreading it.
 */
export function readMark(comment: string | null): SchemaMark | undefined {
  if (!comment?.startsWith(`${MARK} `)) return undefined;
  const [, version, needs = 1] =
    /^ (\d+)(?:, needs (\d+))?$/.exec(comment.slice(MARK.length)) ?? [];
  // A form that only later versions know.
  if (version === undefined) return { version: Number.NaN, needs: Number.POSITIVE_INFINITY };
  return { version: Number(version), needs: Number(needs) };
}
