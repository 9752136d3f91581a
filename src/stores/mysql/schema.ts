import { TokenError } from '../../errors.ts';
import { USER_CODE_LENGTH } from '../../ports/request-store.ts';
import { ID_LENGTH } from '../../token/id.ts';
import { MAX_LEASE_KEY } from '../shared/lease-rows.ts';
import { COLUMN, type Column } from '../shared/rows.ts';
import {
  LEASES,
  markText,
  REQUESTS,
  type TableKind,
  TOKENS,
  USAGE,
} from '../shared/schema-mark.ts';
import type { MysqlPool, MysqlPromisePool } from './client.ts';
import { type ColumnType, migrateTables, type Table } from './migration.ts';

/** Which tables are used. */
export interface MigrationOptions {
  /**
   * How the names of the tables begin, as `name` or `database.name`: `auth.acme` names `auth.acme_tokens`,
   * `auth.acme_usage`, `auth.acme_leases` and `auth.acme_requests`. The database has 1 to 64 of
   * `A-Z a-z 0-9 _ $ -`, and the name 1 to 55. @default 'tokenwright'
   */
  readonly tables?: string | undefined;
}

/**
 * Creates the tables of a {@link MysqlTokenStore}, or brings them up to date. You may call it at every start, also
 * from many processes concurrently; if the tables are up to date, it only reads. The user of the pool needs
 * `CREATE` and `ALTER` for it. If you own your migrations, use {@link migrationSql}.
 *
 * @throws {TokenError} `invalid_options` when there is another table with one of their names, or one that is
 * newer than this version knows; `store_unavailable`
 * @example
 * await migrate(pool);
 * await migrate(pool, { tables: 'auth.acme' });
 */
export async function migrate(
  pool: MysqlPool | MysqlPromisePool,
  options: MigrationOptions = {},
): Promise<void> {
  await migrateTables(pool, tablesIn(readTables(options)));
}

/**
 * The SQL of {@link migrate} for new tables: five statements, which create them and note since when uses are
 * counted.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * console.log(migrationSql({ tables: 'auth.acme' })); // CREATE TABLE IF NOT EXISTS `auth`.`acme_tokens` …
 */
export function migrationSql(options: MigrationOptions = {}): string {
  const tables = tablesIn(readTables(options));
  const statements = tables.flatMap(({ create, fill }) => [create, ...fill]);
  return statements.map((statement) => `${statement};\n`).join('');
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
}

const TABLES = /^(?:([A-Za-z0-9_$-]{1,64})\.)?([A-Za-z0-9_$-]{1,55})$/;

/** @throws {TokenError} `invalid_options` */
export function readTables({ tables = 'tokenwright' }: MigrationOptions): Tables {
  const [, database, base] = (typeof tables === 'string' && TABLES.exec(tables)) || [];
  if (base === undefined) {
    throw new TokenError(
      'invalid_options',
      'tables must be "name" or "database.name" of A-Z, a-z, 0-9, "_", "$" and "-": at most 55 for the name, and 64 for the database',
    );
  }
  const names = (part: keyof Tables): Names => {
    const name = `${base}_${part}`;
    const quoted = database === undefined ? `\`${name}\`` : `\`${database}\`.\`${name}\``;
    return { database, name, quoted };
  };
  return {
    tokens: tokenTable(names('tokens')),
    usage: usageTable(names('usage')),
    leases: leaseTable(names('leases')),
    requests: requestTable(names('requests')),
  };
}

type Names = Pick<Table, 'database' | 'name' | 'quoted'>;

/**
 * The sizes of columns, in bytes. All of them hold bytes, so that they compare byte by byte whatever
 * the charset. The store checks sizes itself: a server that is not strict would truncate values.
 */
export const COLUMN_BYTES = {
  id: ID_LENGTH,
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
  parent: ID_LENGTH,
  root: ID_LENGTH,
  format: 32,
  origin: 4096,
} as const satisfies { readonly [column in Column]?: number };

/** The bytes of an id: uses of derived tokens are counted under the id of a token and one character more. */
export const MAX_ID_BYTES = ID_LENGTH + 1;

/** The bytes of a scope: the index of the table, which holds the rows, takes them all. */
export const MAX_SCOPE_BYTES = 1024;

/** What the ended tokens of a holder of a quota are: only those up to `revoked` are pruned. */
export const REVOKED_AS = { no: 0, revoked: 1, tombstone: 2 } as const;

const BIGINT: ColumnType = { type: 'BIGINT' };

function bytesColumn(bytes: number): ColumnType {
  const blob = bytes === 65_535 ? 'BLOB' : 'MEDIUMBLOB';
  return { bytes, type: bytes < 65_535 ? `VARBINARY(${bytes})` : blob };
}

/**
 * `by_account` separates revoked tokens from others, and skips expired ones without reading their rows. For
 * that it needs the descending order, in which a page is read. `by_creation` lists what it leaves out, and ends
 * with what tells the state of a token, so that others are skipped without reading their rows. `by_expiry` does
 * the same for the other order, and has revoked tokens in a range of their own. `by_holder`
 * counts the tokens of a quota and finds those to prune in the index alone.
 */
function tokenTable(names: Names): Table {
  const columns = Object.entries(COLUMN).map(([name, { type, ...column }]) => {
    const bytes = COLUMN_BYTES[name as keyof typeof COLUMN_BYTES];
    return [name, { ...column, ...(type === 'integer' ? BIGINT : bytesColumn(bytes)) }];
  });
  return tableOf(TOKENS, names, {
    columns: {
      ...Object.fromEntries(columns),
      // The text of the ancestors begins with `["` and the id of the first one.
      root: {
        ...bytesColumn(COLUMN_BYTES.root),
        as: `SUBSTRING(ancestors, 3, ${COLUMN_BYTES.root})`,
      },
      changed_at: { type: 'BIGINT', isNullable: true },
      ends_at: { type: 'BIGINT', as: 'LEAST(expires_at, COALESCE(revoked_at, expires_at))' },
      revoked_as: {
        type: 'TINYINT',
        as: `IF(revoked_at IS NULL, ${REVOKED_AS.no},
    IF(format IS NULL, ${REVOKED_AS.revoked}, ${REVOKED_AS.tombstone}))`,
      },
    },
    keys: {
      PRIMARY: '(id)',
      by_account: '(account, revoked_at, created_at DESC, id DESC, expires_at)',
      by_end: '(ends_at)',
      by_change: '(changed_at)',
      by_creation: '(account, created_at DESC, id DESC, revoked_at, suspended_at, expires_at)',
      by_expiry: '(account, revoked_as, expires_at, id, suspended_at)',
      by_parent: '(parent, created_at DESC, id DESC)',
      by_root: '(root, created_at DESC, id DESC)',
      by_holder: '(account, root, revoked_as, ends_at)',
    },
  });
}

/**
 * One row for each scope of a token that was used. Rows are in the order of the primary key, and there is
 * no other index: an update that found its row by another one would lock the gap beside it.
 */
function usageTable(names: Names): Table {
  return tableOf(USAGE, names, {
    columns: {
      id: bytesColumn(MAX_ID_BYTES),
      scope: bytesColumn(MAX_SCOPE_BYTES),
      uses: BIGINT,
      last_used_at: BIGINT,
    },
    keys: { PRIMARY: '(id, scope)' },
    form: ' ROW_FORMAT=DYNAMIC',
    fill: [sinceSql(names)],
  });
}

/** One row for each total, and two for each rate. */
function leaseTable(names: Names): Table {
  return tableOf(LEASES, names, {
    columns: {
      lease_key: bytesColumn(MAX_LEASE_KEY),
      slot: { type: 'TINYINT' },
      period: BIGINT,
      granted: BIGINT,
      latest: BIGINT,
      most: BIGINT,
      ends_at: BIGINT,
    },
    keys: { PRIMARY: '(lease_key, slot)', by_end: '(ends_at)' },
  });
}

/** One row for each request, and one that all inserts change: see `lock` of the statements. */
function requestTable(names: Names): Table {
  return tableOf(REQUESTS, names, {
    columns: {
      id: bytesColumn(ID_LENGTH),
      user_code: bytesColumn(USER_CODE_LENGTH),
      root: bytesColumn(ID_LENGTH),
      version: BIGINT,
      expires_at: BIGINT,
      body: bytesColumn(16_777_215),
    },
    keys: {
      PRIMARY: '(id)',
      by_code: '(user_code)',
      by_end: '(expires_at)',
      by_root: '(root, expires_at)',
    },
  });
}

interface TableForm extends Pick<Table, 'columns' | 'keys'> {
  readonly form?: string;
  readonly fill?: readonly string[];
}

function tableOf(
  kind: TableKind,
  names: Names,
  { columns, keys, form = '', fill = [] }: TableForm,
): Table {
  const parts = [
    ...Object.entries(columns).map(([name, { type, isNullable = false, as }]) => {
      if (as !== undefined) return `${name} ${type} AS (${as}) STORED`;
      return `${name} ${type}${isNullable ? '' : ' NOT NULL'}`;
    }),
    ...Object.entries(keys).map(
      ([name, of]) => `${name === 'PRIMARY' ? 'PRIMARY KEY' : `KEY ${name}`} ${of}`,
    ),
  ];
  return {
    ...names,
    kind,
    columns,
    keys,
    create: `CREATE TABLE IF NOT EXISTS ${names.quoted} (
  ${parts.join(',\n  ')}
) ENGINE=InnoDB${form} COMMENT='${markText(kind)}'`,
    fill,
    upgrades: [],
  };
}

/** The server's time when the statement began: microseconds since 1970, in any time zone. */
export const SERVER_TIME = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/** Adds the row of no token that says since when counts are complete, if it is missing. */
export function sinceSql({ quoted }: Pick<Table, 'quoted'>): string {
  return `INSERT INTO ${quoted} (id, scope, uses, last_used_at)
  VALUES ('', '', 0, ${SERVER_TIME} DIV 1000)
  ON DUPLICATE KEY UPDATE uses = uses`;
}
