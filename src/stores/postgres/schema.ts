import { TokenError } from '../../errors.ts';
import { ADDED_COLUMNS } from '../rows.ts';
import { MARK, readMark, TOKENS } from '../schema-mark.ts';
import type { PostgresPool } from './client.ts';
import { foreignTable, laterSchema, migrateTable } from './migration.ts';
import { hasFirstColumns, lacksColumns, missingIn, type Shape, typeOf } from './shape.ts';

/** Which table holds the tokens. */
export interface PostgresTableOptions {
  /**
   * Its name, with or without a schema (`auth.tokens`): letters, digits and underscores, at most 48
   * for the table. Upper case counts. @default 'tokenwright_tokens'
   */
  readonly table?: string | undefined;
}

/**
 * Creates the table, or brings it up to date. You may call it as often as you like, also from many
 * processes concurrently. If the table is up to date, it changes nothing and needs no right to create.
 *
 * @throws {TokenError} `store_unavailable`; `invalid_options` when the role may not create it, when
 * another table has its name, or when it was made by a newer version
 * @example
 * await migrate(pool, { table: 'auth.tokens' });
 */
export async function migrate(
  pool: PostgresPool,
  options: PostgresTableOptions = {},
): Promise<void> {
  const table = readTable(options);
  const { name } = table;
  await migrateTable(pool, { name, kind: TOKENS, nextStep: (shape) => nextStep(shape, table) });
}

/**
 * The SQL that creates the table, for hosts that own their migrations.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * console.log(migrationSql({ table: 'auth.tokens' })); // CREATE TABLE "auth"."tokens" (…
 */
export function migrationSql(options: PostgresTableOptions = {}): string {
  return schemaSql(readTable(options));
}

/** The names that belong to a table. All but `channel` are quoted. */
export interface Table {
  /** With its schema if one is given. */
  readonly name: string;
  /** The indexes live in the schema of the table. */
  readonly byAccount: string;
  readonly byEnd: string;
  readonly live: string;
  readonly revoked: string;
  readonly suspended: string;
  readonly byParent: string;
  readonly channel: string;
}

/** @throws {TokenError} `invalid_options` */
export function readTable({ table = 'tokenwright_tokens' }: PostgresTableOptions): Table {
  const { quoted, name } = readName(table, MAX_NAME);
  return {
    name: quoted,
    byAccount: `"${name}_by_account"`,
    byEnd: `"${name}_by_end"`,
    live: `"${name}_live"`,
    revoked: `"${name}_revoked"`,
    suspended: `"${name}_suspended"`,
    byParent: `"${name}_by_parent"`,
    // Without the schema, so that stores that name it and stores that do not hear each other.
    channel: name,
  };
}

/** The names of indexes are longer. */
const MAX_NAME = 48;

/** Quotes the name of a table. @throws {TokenError} `invalid_options` */
export function readName(
  table: string,
  max: number,
): { readonly quoted: string; readonly name: string } {
  const [, schema, name] =
    (typeof table === 'string' && /^(?:([a-z_]\w{0,62})\.)?([a-z_]\w*)$/i.exec(table)) || [];
  if (name === undefined || name.length > max) {
    throw new TokenError(
      'invalid_options',
      `table must be a name such as "tokens" or "auth.tokens": letters, digits and underscores, at most ${max} of them for the table`,
    );
  }
  return { quoted: schema === undefined ? `"${name}"` : `"${schema}"."${name}"`, name };
}

export const SCHEMA_VERSION = 4;

function schemaSql(table: Table): string {
  const { name, byAccount, byEnd } = table;
  return `CREATE TABLE ${name} (
  id text COLLATE "C" PRIMARY KEY,
  account text COLLATE "C" NOT NULL,
  prefix text COLLATE "C" NOT NULL,
  kid text COLLATE "C" NOT NULL,
  digest bytea NOT NULL,
  box bytea,
  scopes text COLLATE "C" NOT NULL,
  requested text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  version bigint NOT NULL,
  name text COLLATE "C",
  metadata text COLLATE "C",
  revoked_at bigint,
  previous_digest bytea,
  previous_until bigint,
  suspended_at bigint,
  scopes_changed_at bigint,
  rotated_at bigint,
  pending text COLLATE "C",
  limits text COLLATE "C",
  ancestors text COLLATE "C",
  parent text COLLATE "C",
  format text COLLATE "C"
);
CREATE INDEX ${byAccount} ON ${name} (account, created_at DESC, id DESC)
  WHERE revoked_at IS NULL;
CREATE INDEX ${byEnd} ON ${name} (least(expires_at, revoked_at));
${laterIndexesSql(table)}`;
}

/** For a table that has our columns and no comment, because a schema tool dropped the comment. */
function adoptionSql(table: Table): string {
  const indexes = schemaSql(table).split(';\n').slice(1).join(';\n');
  return indexes.replaceAll(/CREATE INDEX (?!IF)/g, 'CREATE INDEX IF NOT EXISTS ');
}

/** The columns of schema versions 3 and 4. */
function laterColumnsSql({ name }: Table): string {
  const added = ADDED_COLUMNS.map((column) => {
    const collation = typeOf(column) === 'text' ? ' COLLATE "C"' : '';
    return `ADD COLUMN IF NOT EXISTS ${column} ${typeOf(column)}${collation}`;
  });
  return `ALTER TABLE ${name} ${added.join(', ')}`;
}

/**
 * Schema version 2 added an index that counts live tokens without reading expired ones. An expiry is
 * never null; the condition keeps the index out of plans for queries that do not compare one. Version 3
 * added two for lists of what the default one leaves out; they hold only such tokens. Version 4 added one
 * for the children of a token, which holds derived tokens only.
 * `IF NOT EXISTS`, because a host with many tokens may have built the indexes before, without a lock.
 */
function laterIndexesSql({ name, live, revoked, suspended, byParent }: Table): string {
  return `CREATE INDEX IF NOT EXISTS ${live} ON ${name} (account, expires_at)
  WHERE revoked_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS ${revoked} ON ${name} (account, created_at DESC, id DESC)
  WHERE revoked_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS ${suspended} ON ${name} (account, created_at DESC, id DESC)
  WHERE suspended_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS ${byParent} ON ${name} (parent, created_at DESC, id DESC)
  WHERE parent IS NOT NULL;
COMMENT ON TABLE ${name} IS '${MARK} ${SCHEMA_VERSION}';
`;
}

/**
 * The next step that brings a table up to date; undefined if it is. Columns are a step of their own: no
 * call can read the table until that one is committed, and an index takes long.
 *
 * @throws {TokenError} `invalid_options`
 */
function nextStep(shape: Shape, table: Table): string | undefined {
  if (shape.kind === null) return schemaSql(table);
  const mark = readMark(shape.comment);
  if (mark === undefined && !hasFirstColumns(shape)) throw foreignTable(table.name, TOKENS);
  if ((mark?.version ?? 0) < SCHEMA_VERSION && lacksColumns(shape)) return laterColumnsSql(table);
  if (mark === undefined)
    return missingIn(shape, table).length > 0 ? adoptionSql(table) : undefined;
  if (mark.needs > SCHEMA_VERSION) throw laterSchema(table.name, SCHEMA_VERSION);
  return mark.version < SCHEMA_VERSION ? laterIndexesSql(table) : undefined;
}
