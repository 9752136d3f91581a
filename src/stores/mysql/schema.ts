import { TokenError } from '../../errors.ts';
import type { Column } from '../shared/rows.ts';
import { MARK, readMark, type SchemaMark, type TableKind, TOKENS } from '../shared/schema-mark.ts';
import { type MysqlPool, type MysqlPromisePool, readPool, Session } from './client.ts';

/** Which table holds the tokens. */
export interface MysqlTableOptions {
  /**
   * The table, as `table` or `database.table`: each 1 to 64 of `A-Z a-z 0-9 _ $ -`.
   * @default 'tokenwright_tokens'
   */
  readonly table?: string | undefined;
}

/**
 * Creates the table of tokens, or brings it up to date. You may call it at every start, also from many
 * processes concurrently; if the table is up to date, it only reads. The user of the pool needs
 * `CREATE` and `ALTER` for it. If you own your migrations, use {@link migrationSql}.
 *
 * @throws {TokenError} `invalid_options` when there is another table with this name, or one that is
 * newer than this version knows; `store_unavailable`
 * @example
 * await migrate(pool);
 * await migrate(pool, { table: 'auth.tokens' });
 */
export async function migrate(
  pool: MysqlPool | MysqlPromisePool,
  options: MysqlTableOptions = {},
): Promise<void> {
  const table = readTable(options);
  const session = new Session(readPool(pool), MIGRATION_DEADLINE_MS);
  let state = await tableStateOf(session, table);
  if (state === undefined) {
    await session.query(schemaSql(table));
    // Another process may have created it meanwhile, perhaps in another version.
    state = await tableStateOf(session, table);
  }
  const { version = SCHEMA_VERSION } = state?.mark ?? {};
  const isOlder = version >= 1 && version < SCHEMA_VERSION;
  checkVersion(isOlder ? await upgraded(session, table, version) : state, table);
}

/**
 * The SQL of {@link migrate} for a new table.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * console.log(migrationSql({ table: 'auth.tokens' })); // CREATE TABLE IF NOT EXISTS `auth`.`tokens` …
 */
export function migrationSql(options: MysqlTableOptions = {}): string {
  return schemaSql(readTable(options));
}

export interface Table {
  /** Undefined: the database that the connection has chosen. */
  readonly database: string | undefined;
  readonly name: string;
  readonly quoted: string;
}

const TABLE = /^(?:([A-Za-z0-9_$-]{1,64})\.)?([A-Za-z0-9_$-]{1,64})$/;

/** @throws {TokenError} `invalid_options` */
export function readTable({ table = 'tokenwright_tokens' }: MysqlTableOptions): Table {
  const [, database, name] = (typeof table === 'string' && TABLE.exec(table)) || [];
  if (name === undefined) {
    throw new TokenError(
      'invalid_options',
      'table must be "table" or "database.table", each of 1 to 64 of A-Z, a-z, 0-9, "_", "$" and "-"',
    );
  }
  const quoted = [database, name].filter((part) => part !== undefined).map((part) => `\`${part}\``);
  return { database, name, quoted: quoted.join('.') };
}

export const MIGRATION_DEADLINE_MS = 60_000;
export const SCHEMA_VERSION = 5;

/**
 * The sizes of columns, in bytes. All of them hold bytes, so that they compare byte by byte whatever
 * the charset. The store checks sizes itself: a server that is not strict would truncate values.
 */
export const COLUMN_BYTES = {
  id: 22,
  account: 255,
  prefix: 64,
  kid: 16,
  digest: 32,
  box: 1024,
  scopes: 16_777_215,
  requested: 16_777_215,
  name: 800,
  metadata: 65_535,
  previous_digest: 32,
  pending: 2048,
  limits: 65_535,
  ancestors: 255,
  parent: 22,
  root: 22,
  format: 32,
} as const satisfies { readonly [column in Column]?: number };

/**
 * `by_account` separates revoked tokens from others, and skips expired ones without reading their
 * rows. For that it needs the descending order, in which a page is read.
 */
export const INDEXES = [
  'PRIMARY',
  'by_account',
  'by_end',
  'by_change',
  'by_creation',
  'by_parent',
  'by_root',
  'by_holder',
];

/**
 * Schema version 3 added these columns, and a key for lists of what the default one leaves out. The
 * key ends with what tells the state of a token, so that others are skipped without reading their rows.
 */
const COLUMNS_OF_3 = [
  'suspended_at BIGINT',
  'scopes_changed_at BIGINT',
  'rotated_at BIGINT',
  `pending VARBINARY(${COLUMN_BYTES.pending})`,
];
const CREATION_KEY =
  'KEY by_creation (account, created_at DESC, id DESC, revoked_at, suspended_at, expires_at)';

/** Schema version 4 added these, and a key for the children of a token. */
const COLUMNS_OF_4 = [
  'limits BLOB',
  `ancestors VARBINARY(${COLUMN_BYTES.ancestors})`,
  `parent VARBINARY(${COLUMN_BYTES.parent})`,
  `format VARBINARY(${COLUMN_BYTES.format})`,
];
const PARENT_KEY = 'KEY by_parent (parent, created_at DESC, id DESC)';

/** What the ended tokens of a holder of a quota are: only those up to `revoked` are pruned. */
export const REVOKED_AS = { no: 0, revoked: 1, tombstone: 2 } as const;

/**
 * Schema version 5 added these. The server computes the columns, also for rows of earlier versions, which
 * may still write. `by_holder` counts the tokens of a quota and finds those to prune in the index alone.
 */
const PARTS_OF_5 = [
  // The text of the ancestors begins with `["` and the id of the first one.
  `root VARBINARY(${COLUMN_BYTES.root}) AS (SUBSTRING(ancestors, 3, ${COLUMN_BYTES.root})) STORED`,
  `revoked_as TINYINT AS (IF(revoked_at IS NULL, ${REVOKED_AS.no},
    IF(format IS NULL, ${REVOKED_AS.revoked}, ${REVOKED_AS.tombstone}))) STORED`,
  'KEY by_root (root, created_at DESC, id DESC)',
  'KEY by_holder (account, root, revoked_as, ends_at)',
];
/** Earlier versions counted in this key. */
const KEY_OF_2 = 'by_live';

function schemaSql({ quoted }: Table): string {
  return `CREATE TABLE IF NOT EXISTS ${quoted} (
  id VARBINARY(${COLUMN_BYTES.id}) NOT NULL PRIMARY KEY,
  account VARBINARY(${COLUMN_BYTES.account}) NOT NULL,
  prefix VARBINARY(${COLUMN_BYTES.prefix}) NOT NULL,
  kid VARBINARY(${COLUMN_BYTES.kid}) NOT NULL,
  digest VARBINARY(${COLUMN_BYTES.digest}) NOT NULL,
  box VARBINARY(${COLUMN_BYTES.box}),
  scopes MEDIUMBLOB NOT NULL,
  requested MEDIUMBLOB NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  name VARBINARY(${COLUMN_BYTES.name}),
  metadata BLOB,
  revoked_at BIGINT,
  previous_digest VARBINARY(${COLUMN_BYTES.previous_digest}),
  previous_until BIGINT,
  changed_at BIGINT,
  ends_at BIGINT AS (LEAST(expires_at, COALESCE(revoked_at, expires_at))) STORED,
  ${[...COLUMNS_OF_3, ...COLUMNS_OF_4].join(',\n  ')},
  KEY by_account (account, revoked_at, created_at DESC, id DESC, expires_at),
  KEY by_end (ends_at),
  KEY by_change (changed_at),
  ${CREATION_KEY},
  ${PARENT_KEY},
  ${PARTS_OF_5.join(',\n  ')}
) ENGINE=InnoDB COMMENT='${MARK} ${SCHEMA_VERSION}';
`;
}

/** One statement, which takes effect as a whole or not at all. */
function upgradeSql({ quoted }: Table, version: number): string {
  const missing = [
    ...(version < 3 ? [...COLUMNS_OF_3, CREATION_KEY] : []),
    ...(version < 4 ? [...COLUMNS_OF_4, PARENT_KEY] : []),
    ...PARTS_OF_5,
  ];
  const changes = [
    ...missing.map((part) => `ADD ${part}`),
    ...(version < 2 ? [] : [`DROP KEY ${KEY_OF_2}`]),
  ];
  return `ALTER TABLE ${quoted} ${changes.join(', ')}, COMMENT='${MARK} ${SCHEMA_VERSION}'`;
}

interface TableState {
  readonly engine: string;
  /** Undefined when the table is not ours. */
  readonly mark: SchemaMark | undefined;
}

export async function tableStateOf(
  session: Session,
  table: Table,
  kind: TableKind = TOKENS,
): Promise<TableState | undefined> {
  const [row] = await session.query(
    `SELECT ENGINE AS engine, TABLE_COMMENT AS comment FROM information_schema.TABLES
     WHERE ${isTable(table)}`,
  );
  if (row === undefined) return undefined;
  return { engine: String(row['engine']), mark: readMark(String(row['comment']), kind) };
}

/** The names of the indexes that a table has. */
export async function indexesOf(session: Session, table: Table): Promise<ReadonlySet<string>> {
  const rows = await session.query(
    `SELECT INDEX_NAME AS name FROM information_schema.STATISTICS WHERE ${isTable(table)}`,
  );
  return new Set(rows.map(({ name }) => String(name)));
}

/** A condition on `information_schema`. Names hold no quotes. */
export function isTable({ database, name }: Table): string {
  const schema = database === undefined ? 'DATABASE()' : `'${database}'`;
  return `TABLE_SCHEMA = ${schema} AND TABLE_NAME = '${name}'`;
}

async function upgraded(
  session: Session,
  table: Table,
  version: number,
): Promise<TableState | undefined> {
  const failure = await session.query(upgradeSql(table, version)).then(
    () => undefined,
    (error: unknown) => error,
  );
  const state = await tableStateOf(session, table);
  // If another process was first, the upgrade failed because the columns exist already.
  if (failure !== undefined && state?.mark?.version === version) throw failure;
  return state;
}

/** @throws {TokenError} `invalid_options` for a table of something else, or of a later version */
export function checkVersion(
  state: TableState | undefined,
  { name }: Table,
  { mark: kindMark, version }: { readonly mark: string; readonly version: number } = CURRENT,
): void {
  const mark = state?.mark;
  if (mark !== undefined && mark.needs <= version) return;
  throw new TokenError(
    'invalid_options',
    mark === undefined
      ? `the table ${name} is not one of tokenwright: its comment does not say "${kindMark}"; choose another table`
      : `the table ${name} has a schema that this tokenwright does not know, later than version ${version}: upgrade tokenwright`,
  );
}

const CURRENT = { mark: MARK, version: SCHEMA_VERSION };
