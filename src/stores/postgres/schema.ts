import { TokenError } from '../../errors.ts';
import { COLUMN } from '../shared/rows.ts';
import {
  LEASES,
  markText,
  REQUESTS,
  type TableKind,
  TOKENS,
  USAGE,
} from '../shared/schema-mark.ts';
import type { PostgresPool } from './client.ts';
import { migrateTables } from './migration.ts';
import type { Dialect, Table } from './shape.ts';

/** Which tables are used. */
export interface MigrationOptions {
  /**
   * How the names of the tables begin, with or without a schema: `auth.acme` names `auth.acme_tokens`,
   * `auth.acme_usage`, `auth.acme_leases` and `auth.acme_requests`. Letters, digits and underscores, at most 40
   * after the schema. Upper case counts. @default 'tokenwright'
   */
  readonly tables?: string | undefined;
}

/** Which SQL is printed. */
export interface MigrationSqlOptions extends MigrationOptions {
  /** For CockroachDB or YugabyteDB. {@link migrate} finds out by itself. @default PostgreSQL */
  readonly dialect?: 'cockroach' | 'yugabyte' | undefined;
}

/**
 * Creates the tables of a {@link PostgresTokenStore}, or brings them up to date. You may call it as often as you
 * like, also from many processes concurrently. If the tables are up to date, it changes nothing and needs no
 * right to create.
 *
 * @throws {TokenError} `store_unavailable`, also in a database that is neither UTF8 nor SQL_ASCII (`encoding`),
 * in Aurora DSQL, and for a table that Citus has distributed (`unsupported`), and when the role may not create
 * them (`forbidden`); `invalid_options` when their schema does not exist, when another table has one of their
 * names, or when they were made by a newer version
 * @example
 * await migrate(pool, { tables: 'auth.acme' });
 */
export async function migrate(pool: PostgresPool, options: MigrationOptions = {}): Promise<void> {
  const tablesFor = (dialect: Dialect) => tablesIn(readTables(options, dialect));
  // Refuses wrong names before it connects.
  tablesFor('postgres');
  await migrateTables(pool, tablesFor);
}

/**
 * The SQL that creates the tables, for hosts that own their migrations.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * console.log(migrationSql({ tables: 'auth.acme' })); // CREATE TABLE "auth"."acme_tokens" (…
 */
export function migrationSql({ dialect, ...options }: MigrationSqlOptions = {}): string {
  if (dialect !== undefined && dialect !== 'cockroach' && dialect !== 'yugabyte') {
    throw new TokenError('invalid_options', 'dialect must be "cockroach" or "yugabyte"');
  }
  return tablesIn(readTables(options, dialect))
    .map(({ create }) => create)
    .join('\n');
}

/** All of them, in the order in which they are made. */
export function tablesIn({ tokens, usage, leases, requests }: Tables): readonly Table[] {
  return [tokens, usage, leases, requests];
}

/** The tables of a store. */
export interface Tables {
  readonly tokens: Table;
  readonly usage: Table;
  readonly leases: Table;
  readonly requests: Table;
  /** On which changes are notified. Without the schema, so that stores that name it and those that do not agree. */
  readonly channel: string;
}

/** @throws {TokenError} `invalid_options` */
export function readTables(
  { tables = 'tokenwright' }: MigrationOptions,
  dialect: Dialect = 'postgres',
): Tables {
  const [, schema, base] =
    (typeof tables === 'string' && /^(?:([a-z_]\w{0,62})\.)?([a-z_]\w*)$/i.exec(tables)) || [];
  if (base === undefined || base.length > MAX_NAME) {
    throw new TokenError(
      'invalid_options',
      `tables must be a name such as "acme" or "auth.acme": letters, digits and underscores, at most ${MAX_NAME} of them after the schema`,
    );
  }
  const names: NamesOf = (name) => {
    const quoted = `"${base}_${name}"`;
    return {
      table: schema === undefined ? quoted : `"${schema}".${quoted}`,
      index: (suffix) => `"${base}_${name}_${suffix}"`,
      dialect,
    };
  };
  return {
    tokens: tokenTable(names('tokens')),
    usage: usageTable(names('usage')),
    leases: leaseTable(names('leases')),
    requests: requestTable(names('requests')),
    channel: `${base}_tokens`,
  };
}

type NamesOf = (name: keyof Tables) => Names;

interface Names {
  readonly table: string;
  readonly index: (suffix: string) => string;
  readonly dialect: Dialect;
}

/** The server truncates names of more than 63 characters, and those of indexes are longer. */
const MAX_NAME = 40;

const BIGINT = { type: 'bigint' };
const TEXT = { type: 'text' };
const TYPES = { text: 'text', bytes: 'bytea', integer: 'bigint' } as const;

/**
 * Most of the indexes hold only some of the tokens, so that the others cost nothing more. An expiry is never null,
 * and no time is negative: these conditions keep the last two, which count the tokens of a quota, out of plans
 * for other queries.
 */
function tokenTable(names: Names): Table {
  const { index } = names;
  return tableOf(TOKENS, names, {
    columns: Object.fromEntries(
      Object.entries(COLUMN).map(([name, { type, ...column }]) => [
        name,
        { ...column, type: TYPES[type] },
      ]),
    ),
    key: 'id',
    indexes: {
      [index('by_account')]: '(account, created_at DESC, id DESC) WHERE (revoked_at IS NULL)',
      [index('by_end')]: '(LEAST(expires_at, revoked_at))',
      [index('revoked')]: '(account, created_at DESC, id DESC) WHERE (revoked_at IS NOT NULL)',
      [index('suspended')]: '(account, created_at DESC, id DESC) WHERE (suspended_at IS NOT NULL)',
      [index('by_expiry')]: '(account, expires_at, id) WHERE (revoked_at IS NULL)',
      [index('revoked_by_expiry')]: '(account, expires_at, id) WHERE (revoked_at IS NOT NULL)',
      [index('suspended_by_expiry')]: '(account, expires_at, id) WHERE (suspended_at IS NOT NULL)',
      [index('by_parent')]: '(parent, created_at DESC, id DESC) WHERE (parent IS NOT NULL)',
      [index('by_root')]: '(root, created_at DESC, id DESC) WHERE (root IS NOT NULL)',
      [index('held_open')]:
        '(account, root, expires_at) WHERE ((revoked_at IS NULL) AND (expires_at IS NOT NULL))',
      [index('held_revoked')]: '(account, root, format, revoked_at) WHERE (revoked_at > 0)',
    },
  });
}

/**
 * One row for each scope of a token that was used. The free space in each page lets PostgreSQL write the
 * new version of a row beside the old one, without touching the index.
 */
function usageTable(names: Names): Table {
  return tableOf(USAGE, names, {
    columns: { id: TEXT, scope: TEXT, uses: BIGINT, last_used_at: BIGINT },
    key: 'id, scope',
    indexes: {},
    hasFreeSpace: true,
    fill: sinceSql(names.table),
  });
}

/** One row for each total, and two for each rate, with free space as in {@link usageTable}. */
function leaseTable(names: Names): Table {
  return tableOf(LEASES, names, {
    columns: {
      lease_key: TEXT,
      slot: { type: 'smallint' },
      period: BIGINT,
      granted: BIGINT,
      latest: BIGINT,
      most: BIGINT,
      ends_at: BIGINT,
    },
    key: 'lease_key, slot',
    indexes: { [names.index('by_end')]: '(ends_at)' },
    hasFreeSpace: true,
  });
}

/** One row for each request, and one that all inserts change: see `lock` of the statements. */
function requestTable(names: Names): Table {
  const { index } = names;
  return tableOf(REQUESTS, names, {
    columns: {
      id: TEXT,
      user_code: TEXT,
      root: TEXT,
      version: BIGINT,
      expires_at: BIGINT,
      body: TEXT,
    },
    key: 'id',
    indexes: {
      [index('by_code')]: '(user_code)',
      [index('by_end')]: '(expires_at)',
      [index('by_root')]: '(root, expires_at)',
    },
  });
}

const FIRST_PART = /^\((?:LEAST\([^)]*\)|\w+)/;

interface TableForm extends Pick<Table, 'columns' | 'key' | 'indexes'> {
  /** Whether its pages keep some room, where there are pages. */
  readonly hasFreeSpace?: boolean;
  /** Statements that fill it. */
  readonly fill?: string;
}

function tableOf(
  kind: TableKind,
  { table: name, dialect }: Names,
  { hasFreeSpace = false, fill = '', ...table }: TableForm,
): Table {
  const hasPages = dialect !== 'cockroach' && dialect !== 'yugabyte';
  const form = hasFreeSpace && hasPages ? ' WITH (fillfactor = 70)' : '';
  // Otherwise its first column is hashed, and a range would read the whole table.
  const ordered = (parts: string) =>
    dialect === 'yugabyte' ? parts.replace(FIRST_PART, '$& ASC') : parts;
  const columns = Object.entries(table.columns).map(([column, { type, isNullable = false }]) => {
    const collation = type === 'text' && dialect !== 'cockroach' ? ' COLLATE "C"' : '';
    return `  ${column} ${type}${collation}${isNullable ? '' : ' NOT NULL'},\n`;
  });
  const indexesSql = (condition: string) =>
    Object.entries(table.indexes)
      .map(([index, parts]) => `CREATE INDEX ${condition}${index} ON ${name} ${ordered(parts)};\n`)
      .join('');
  const end = `${fill}COMMENT ON TABLE ${name} IS '${markText(kind)}';\n`;
  return {
    ...table,
    kind,
    name,
    create: `CREATE TABLE ${name} (\n${columns.join('')}  PRIMARY KEY ${ordered(`(${table.key})`)}\n)${form};\n${indexesSql('')}${end}`,
    adopt: `${indexesSql('IF NOT EXISTS ')}${end}`,
    upgrades: [],
  };
}

/** Adds the row of no token that says since when counts are complete, if it is missing. */
export function sinceSql(name: string): string {
  return `INSERT INTO ${name} (id, scope, uses, last_used_at)
  VALUES ('', '', 0, floor(extract(epoch FROM clock_timestamp()) * 1000))
  ON CONFLICT (id, scope) DO NOTHING;
`;
}
