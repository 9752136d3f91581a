import { TokenError } from '../../errors.ts';
import { ADDED_COLUMNS } from '../shared/rows.ts';
import { MARK, readMark, TOKENS } from '../shared/schema-mark.ts';
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
  readonly revoked: string;
  readonly suspended: string;
  readonly byParent: string;
  readonly byRoot: string;
  readonly heldOpen: string;
  readonly heldRevoked: string;
  /** An index of earlier versions. */
  readonly live: string;
  readonly channel: string;
}

/** @throws {TokenError} `invalid_options` */
export function readTable({ table = 'tokenwright_tokens' }: PostgresTableOptions): Table {
  const { quoted, name } = readName(table, MAX_NAME);
  return {
    name: quoted,
    byAccount: `"${name}_by_account"`,
    byEnd: `"${name}_by_end"`,
    revoked: `"${name}_revoked"`,
    suspended: `"${name}_suspended"`,
    byParent: `"${name}_by_parent"`,
    byRoot: `"${name}_by_root"`,
    heldOpen: `"${name}_held_open"`,
    heldRevoked: `"${name}_held_revoked"`,
    live: `"${name}_live"`,
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

export const SCHEMA_VERSION = 5;

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
  root text COLLATE "C",
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
  const missing = indexes.replaceAll(/CREATE INDEX (?!IF)/g, 'CREATE INDEX IF NOT EXISTS ');
  return `${rootsSql(table)}${missing}${dropSql(table)}`;
}

/** The columns of schema versions 3 to 5. */
function laterColumnsSql({ name }: Table): string {
  const added = ADDED_COLUMNS.map((column) => {
    const collation = typeOf(column) === 'text' ? ' COLLATE "C"' : '';
    return `ADD COLUMN IF NOT EXISTS ${column} ${typeOf(column)}${collation}`;
  });
  return `ALTER TABLE ${name} ${added.join(', ')}`;
}

/**
 * Schema version 3 added two indexes for lists of what the default one leaves out; they hold only such
 * tokens. Version 4 added one for the children of a token, and version 5 one for the descendants of a
 * root; they hold derived tokens only. Version 5 also added two that count the tokens of a quota: those
 * that are not revoked and those that are. An expiry is never null, and no time is negative: these conditions
 * keep them out of plans for other queries. Before, another index counted.
 * `IF NOT EXISTS`, because a host with many tokens may have built the indexes before, without a lock.
 */
function laterIndexesSql(table: Table): string {
  const { name, revoked, suspended, byParent, byRoot, heldOpen, heldRevoked } = table;
  return `CREATE INDEX IF NOT EXISTS ${revoked} ON ${name} (account, created_at DESC, id DESC)
  WHERE revoked_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS ${suspended} ON ${name} (account, created_at DESC, id DESC)
  WHERE suspended_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS ${byParent} ON ${name} (parent, created_at DESC, id DESC)
  WHERE parent IS NOT NULL;
CREATE INDEX IF NOT EXISTS ${byRoot} ON ${name} (root, created_at DESC, id DESC)
  WHERE root IS NOT NULL;
CREATE INDEX IF NOT EXISTS ${heldOpen} ON ${name} (account, root, expires_at)
  WHERE revoked_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS ${heldRevoked} ON ${name} (account, root, format, revoked_at)
  WHERE revoked_at > 0;
COMMENT ON TABLE ${name} IS '${MARK} ${SCHEMA_VERSION}';
`;
}

function upgradeSql(table: Table): string {
  return `${rootsSql(table)}${laterIndexesSql(table)}${dropSql(table)}`;
}

/** An index of earlier versions that nothing needs. Comes last, because reads wait for it. */
function dropSql({ name, live }: Table): string {
  const [schema] = name.includes('.') ? name.split('.') : [];
  return `DROP INDEX IF EXISTS ${schema === undefined ? live : `${schema}.${live}`};\n`;
}

/** Gives the derived tokens of schema version 4 their root. */
function rootsSql({ name }: Table): string {
  return `UPDATE ${name} SET root = substring(ancestors FROM '^[[]"([^"]*)"')
  WHERE parent IS NOT NULL AND root IS NULL;
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
  return mark.version < SCHEMA_VERSION ? upgradeSql(table) : undefined;
}
