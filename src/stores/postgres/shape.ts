import { ADDED_COLUMNS, COLUMNS, type Column, FIRST_COLUMNS } from '../shared/rows.ts';

/** Asks what a table is like; `$1` is its name. */
export const SHAPE = `
  SELECT
    (SELECT relkind::text FROM pg_class WHERE oid = to_regclass($1)) AS kind,
    obj_description(to_regclass($1), 'pg_class') AS comment,
    (SELECT coalesce(json_agg(json_build_object(
        'name', attname, 'type', format_type(atttypid, atttypmod), 'collation', collname,
        'isRequired', attnotnull, 'isGiven', atthasdef OR attidentity <> '' OR attgenerated <> ''
      ) ORDER BY attnum), '[]')
      FROM pg_attribute LEFT JOIN pg_collation ON pg_collation.oid = attcollation
      WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped) AS columns,
    (SELECT coalesce(json_agg(json_build_object(
        'isUnique', indisunique, 'definition', pg_get_indexdef(indexrelid))), '[]')
      FROM pg_index WHERE indrelid = to_regclass($1) AND indisvalid) AS indexes`;

interface ColumnShape {
  readonly name: string;
  readonly type: string;
  readonly collation: string | null;
  /** Whether it is NOT NULL. */
  readonly isRequired: boolean;
  /** Whether the database gives it a value when an insert does not. */
  readonly isGiven: boolean;
}

/** The answer to {@link SHAPE}. */
export interface Shape {
  /** `r` for a table; null if there is nothing of that name. */
  readonly kind: string | null;
  readonly comment: string | null;
  readonly columns: readonly ColumnShape[];
  readonly indexes: readonly { readonly isUnique: boolean; readonly definition: string }[];
}

interface IndexNames {
  readonly byAccount: string;
  readonly byEnd: string;
  readonly revoked: string;
  readonly suspended: string;
  readonly byParent: string;
  readonly byRoot: string;
  readonly heldOpen: string;
  readonly heldRevoked: string;
}

const BYTEA: readonly Column[] = ['digest', 'box', 'previous_digest'];
const BIGINT: readonly Column[] = [
  'created_at',
  'expires_at',
  'version',
  'revoked_at',
  'previous_until',
  'suspended_at',
  'scopes_changed_at',
  'rotated_at',
];
const NULLABLE: readonly Column[] = [
  'box',
  'name',
  'metadata',
  'revoked_at',
  'previous_digest',
  'previous_until',
  ...ADDED_COLUMNS,
];

export function typeOf(column: Column): string {
  if (BYTEA.includes(column)) return 'bytea';
  return BIGINT.includes(column) ? 'bigint' : 'text';
}

/** Whether this is a table of tokens, of any version and whatever its comment says. */
export function hasFirstColumns(shape: Shape): boolean {
  const isOther = shape.columns.some(
    ({ name, type }) => ADDED_COLUMNS.includes(name as Column) && type !== typeOf(name as Column),
  );
  const types = FIRST_COLUMNS.map((name) => [name, typeOf(name)] as const);
  return !isOther && hasColumns(shape, types, COLUMNS);
}

/** Whether it is a table with these columns, and no foreign one that an insert would have to name. */
export function hasColumns(
  { kind, columns }: Shape,
  types: readonly (readonly [name: string, type: string])[],
  known: readonly string[] = types.map(([name]) => name),
): boolean {
  const isTable = kind === 'r' || kind === 'p';
  const hasAll = types.every(([name, type]) =>
    columns.some((column) => column.name === name && column.type === type),
  );
  return isTable && hasAll && !columns.some((column) => isInTheWay(column, known));
}

/** Whether it lacks columns that a later version has added. */
export function lacksColumns({ columns }: Shape): boolean {
  return !ADDED_COLUMNS.every((added) => columns.some(({ name }) => name === added));
}

/** A foreign column that each insert would have to name. */
function isInTheWay(
  { name, isRequired, isGiven }: ColumnShape,
  known: readonly string[] = COLUMNS,
): boolean {
  return isRequired && !isGiven && !known.includes(name);
}

/** The parts of the schema that a table lacks, in words. Ignores columns and indexes of others. */
export function missingIn({ columns, indexes }: Shape, names: IndexNames): string[] {
  const byName = new Map(columns.map((column) => [column.name, column]));
  const wrong = COLUMNS.flatMap((name) => {
    const column = byName.get(name);
    if (column === undefined) return [`the column ${name}`];
    if (column.type !== typeOf(name)) return [`the type ${typeOf(name)} of ${name}`];
    const isNullable = NULLABLE.includes(name);
    if (isNullable && column.isRequired) return [`NULL in ${name}`];
    return isNullable || column.isRequired ? [] : [`NOT NULL of ${name}`];
  });
  const inTheWay = columns
    .filter((column) => isInTheWay(column))
    .map(({ name }) => `a default of ${name}`);
  const definitions = indexes.map(({ definition }) => partsOf(definition));
  const keys = indexes
    .filter(({ isUnique }) => isUnique)
    .map(({ definition }) => partsOf(definition));
  return [
    ...wrong,
    ...inTheWay,
    ...(keys.includes('(id)') ? [] : ['the primary key id']),
    ...Object.entries(indexesOf(names)).flatMap(([name, parts]) =>
      definitions.includes(parts) ? [] : [`the index ${name}`],
    ),
  ];
}

/** Whether there is an index of exactly these parts, as the server prints them, with any name. */
export function hasIndex({ indexes }: Shape, parts: string, kind?: 'unique'): boolean {
  return indexes.some(
    ({ isUnique, definition }) => (kind === undefined || isUnique) && partsOf(definition) === parts,
  );
}

/** The parts of our indexes, as the server prints them. Their names may differ. */
function indexesOf(names: IndexNames): Readonly<Record<string, string>> {
  const { byAccount, byEnd, revoked, suspended, byParent, byRoot, heldOpen, heldRevoked } = names;
  return {
    [byAccount]: '(account, created_at DESC, id DESC) WHERE (revoked_at IS NULL)',
    [byEnd]: '(LEAST(expires_at, revoked_at))',
    [revoked]: '(account, created_at DESC, id DESC) WHERE (revoked_at IS NOT NULL)',
    [suspended]: '(account, created_at DESC, id DESC) WHERE (suspended_at IS NOT NULL)',
    [byParent]: '(parent, created_at DESC, id DESC) WHERE (parent IS NOT NULL)',
    [byRoot]: '(root, created_at DESC, id DESC) WHERE (root IS NOT NULL)',
    [heldOpen]:
      '(account, root, expires_at) WHERE ((revoked_at IS NULL) AND (expires_at IS NOT NULL))',
    [heldRevoked]: '(account, root, format, revoked_at) WHERE (revoked_at > 0)',
  };
}

function partsOf(definition: string): string {
  const [, parts = ''] = definition.split(' USING btree ');
  const [columns = '', condition] = parts.split(' WHERE ');
  const [ours = ''] = columns.split(/ (?:WITH|TABLESPACE) /);
  return condition === undefined ? ours : `${ours} WHERE ${condition}`;
}

/** The text columns that are not compared byte by byte. */
export function collatedIn({ columns }: Shape): string[] {
  return columns
    .filter(({ name }) => COLUMNS.includes(name as Column))
    .filter(({ collation }) => collation !== null && !['C', 'POSIX'].includes(collation))
    .map(({ name }) => name);
}
