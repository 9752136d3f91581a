import type { SchemaTable } from '../shared/schema-mark.ts';

interface ColumnType {
  readonly type: string;
  readonly isNullable?: boolean;
}

/** A table that tokenwright makes. Names are quoted, that of the table with its schema if one is given. */
export interface Table extends SchemaTable {
  readonly columns: Readonly<Record<string, ColumnType>>;
  /** The columns of the primary key. */
  readonly key: string;
  /** The parts of each index, as the server prints them. Indexes live in the schema of the table. */
  readonly indexes: Readonly<Record<string, string>>;
  /** Adds what a table without a mark may lack, because a schema tool dropped it. */
  readonly adopt: string;
}

/** Asks what a table is like; `$1` is its name. */
export const SHAPE = `
  SELECT
    version() AS version,
    (SELECT relkind::text FROM pg_class WHERE oid = to_regclass($1)) AS kind,
    obj_description(to_regclass($1), 'pg_class') AS comment,
    (SELECT coalesce(json_agg(json_build_object(
        'name', attname, 'type', format_type(atttypid, atttypmod), 'collation', collname,
        'isRequired', attnotnull, 'isGiven', atthasdef OR attidentity <> '' OR attgenerated <> ''
      ) ORDER BY attnum), '[]')
      FROM pg_attribute LEFT JOIN pg_collation ON pg_collation.oid = attcollation
      WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped) AS columns,
    (SELECT coalesce(json_agg(json_build_object('name', relname, 'isPrimary', indisprimary,
        'isUnique', indisunique, 'definition', pg_get_indexdef(indexrelid))), '[]')
      FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
      WHERE indrelid = to_regclass($1) AND indisvalid) AS indexes`;

interface ColumnShape {
  readonly name: string;
  readonly type: string;
  readonly collation: string | null;
  /** Whether it is NOT NULL. */
  readonly isRequired: boolean;
  /** Whether the database gives it a value when an insert does not. */
  readonly isGiven: boolean;
}

/** Whether a database of this encoding stores every character. SQL_ASCII stores bytes as they come. */
export function isWholeEncoding(encoding: string | null): boolean {
  return encoding === null || encoding === 'UTF8' || encoding === 'SQL_ASCII';
}

interface IndexShape {
  readonly name: string;
  readonly isPrimary: boolean;
  readonly isUnique: boolean;
  readonly definition: string;
}

/** The answer to {@link SHAPE}. */
export interface Shape {
  readonly version: string;
  /** `r` for a table; null if there is nothing of that name. */
  readonly kind: string | null;
  readonly comment: string | null;
  readonly columns: readonly ColumnShape[];
  readonly indexes: readonly IndexShape[];
}

/** A database that speaks as PostgreSQL does, and whose DDL or catalog differs. */
export type Dialect = 'postgres' | 'cockroach' | 'yugabyte' | 'other';

/** By what `version()` says. */
export function dialectOf(version: string): Dialect {
  if (version.startsWith('CockroachDB')) return 'cockroach';
  if (version.includes('-YB-')) return 'yugabyte';
  return version.startsWith('PostgreSQL') ? 'postgres' : 'other';
}

/** Whether it is a table with these columns, and no foreign one that an insert would have to name. */
export function hasColumns({ kind, columns }: Shape, table: Pick<Table, 'columns'>): boolean {
  const isTable = kind === 'r' || kind === 'p';
  const hasAll = Object.entries(table.columns).every(([name, { type }]) =>
    columns.some((column) => column.name === name && column.type === type),
  );
  return isTable && hasAll && !columns.some((column) => isInTheWay(column, table));
}

/** A foreign column that each insert would have to name. */
function isInTheWay(
  { name, isRequired, isGiven }: ColumnShape,
  { columns }: Pick<Table, 'columns'>,
): boolean {
  return isRequired && !isGiven && !Object.hasOwn(columns, name);
}

/** The parts of the schema that a table lacks, in words. Ignores columns and indexes of others. */
export function missingIn({ version, columns, indexes }: Shape, table: Table): string[] {
  const byName = new Map(columns.map((column) => [column.name, column]));
  const wrong = Object.entries(table.columns).flatMap(([name, { type, isNullable = false }]) => {
    const column = byName.get(name);
    if (column === undefined) return [`the column ${name}`];
    if (column.type !== type) return [`the type ${type} of ${name}`];
    if (isNullable && column.isRequired) return [`NULL in ${name}`];
    return isNullable || column.isRequired ? [] : [`NOT NULL of ${name}`];
  });
  const inTheWay = columns
    .filter((column) => isInTheWay(column, table))
    .map(({ name }) => `a default of ${name}`);
  // Others print conditions and expressions in their own way, and cannot be compared.
  const isOther = dialectOf(version) !== 'postgres';
  const hasKey = indexes.some(
    ({ isPrimary, isUnique, definition }) =>
      (isUnique && partsOf(definition) === `(${table.key})`) || (isOther && isPrimary),
  );
  const hasIndex = (quoted: string, parts: string) =>
    indexes.some(
      ({ name, definition }) =>
        partsOf(definition) === parts || (isOther && `"${name}"` === quoted),
    );
  return [
    ...wrong,
    ...inTheWay,
    ...(hasKey ? [] : [`the primary key ${table.key}`]),
    ...Object.entries(table.indexes).flatMap(([name, parts]) =>
      hasIndex(name, parts) ? [] : [`the index ${name}`],
    ),
  ];
}

/** The parts of an index. Its name may differ from the one in the schema. */
function partsOf(definition: string): string {
  const [, parts = ''] = definition.split(/ USING \w+ /);
  const [columns = '', condition] = parts.split(' WHERE ');
  const [ours = ''] = columns.replaceAll(' ASC', '').split(/ (?:WITH|TABLESPACE) /);
  return condition === undefined ? ours : `${ours} WHERE ${condition}`;
}

/** The text columns that are not compared byte by byte. */
export function collatedIn({ version, columns }: Shape, table: Pick<Table, 'columns'>): string[] {
  // It compares byte by byte, whatever it calls that.
  if (dialectOf(version) === 'cockroach') return [];
  return columns
    .filter(({ name }) => Object.hasOwn(table.columns, name))
    .filter(({ collation }) => collation !== null && !['C', 'POSIX'].includes(collation))
    .map(({ name }) => name);
}
