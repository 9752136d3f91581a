import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, inject, it } from 'vitest';
import { readRows } from '../../src/app/cli/import/rows.ts';
import { type OldToken, SYSTEMS, type SystemName } from '../../src/app/cli/import/systems.ts';
import { isTokenError } from '../../src/errors.ts';
import { allOf } from '../support.ts';

const { postgres, mariadb } = inject('servers');

const PROGRAMS = { SQLite: 'sqlite3', PostgreSQL: 'psql', MySQL: 'mysql' } as const;

/** Runs a script with the command-line client of each database, with the flags of the guides. */
const CLIENTS = {
  SQLite: {
    isHere: spawnSync(PROGRAMS.SQLite, ['-version']).status === 0,
    print: (script: string) => execFileSync(PROGRAMS.SQLite, [':memory:'], { input: script }),
  },
  PostgreSQL: {
    isHere: postgres !== undefined,
    print: (script: string) =>
      execFileSync(
        PROGRAMS.PostgreSQL,
        ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-At', postgres ?? ''],
        {
          input: script,
        },
      ),
  },
  MySQL: {
    isHere: mariadb !== undefined,
    print(script: string) {
      const { hostname, port, username, password, pathname } = new URL(mariadb ?? '');
      const server = ['-h', hostname, '-P', port, '-u', decodeURIComponent(username)];
      const flags = ['--batch', '--raw', '--skip-column-names', ...server, pathname.slice(1)];
      const env = { ...process.env, MYSQL_PWD: decodeURIComponent(password) };
      return execFileSync(PROGRAMS.MySQL, flags, { input: script, env });
    },
  },
} as const;
type Database = keyof typeof CLIENTS;

/** The query of a guide for a database; a query without a name is for PostgreSQL. */
function queryOf(guide: string, database: Database): string {
  const page = readFileSync(new URL(`../../docs/guides/${guide}.md`, import.meta.url), 'utf8');
  const blocks = [...page.matchAll(/^```sql\n(.*?)^```$/gms)].map(([, text = '']) => text);
  const query =
    blocks.find((text) => text.startsWith(`-- ${database}\n`)) ??
    blocks.find((text) => text.startsWith('COPY'));
  if (query === undefined) throw new Error(`${guide} has no query for ${database}`);
  return query;
}

const HASH = 'ab'.repeat(32);

interface Case {
  readonly guide: string;
  readonly from: SystemName;
  /** The tables of the old system, with a row, by database. */
  readonly tables: Partial<Record<Database, string>>;
  readonly token: Partial<OldToken>;
}

const SANCTUM = (time: string) => `
  CREATE TEMPORARY TABLE personal_access_tokens (
    id bigint, tokenable_type varchar(255), tokenable_id bigint, name text, token varchar(64),
    abilities text, last_used_at ${time} NULL, expires_at ${time} NULL, created_at ${time} NULL);
  INSERT INTO personal_access_tokens VALUES (
    1, 'App.Models.User', 7, 'ci "é"', '${HASH}', '["orders:read","*"]', NULL,
    '2027-05-01 12:00:00', '2027-04-01 00:00:00');`;

const BETTER_AUTH = (time: string, flag: string, quote: string) => {
  const [reference, created, expires] = ['referenceId', 'createdAt', 'expiresAt'].map(
    (name) => quote + name + quote,
  );
  return `
  CREATE TEMPORARY TABLE apikey (
    id varchar(36), ${quote}key${quote} varchar(255), ${reference} text, name text, permissions text,
    metadata text, enabled ${flag}, ${created} ${time}, ${expires} ${time} NULL);
  INSERT INTO apikey VALUES (
    'k', '${HASH}', '7', 'ci "é"', '{"orders":["read"]}', '{"team":"web"}', ${flag === 'boolean' ? 'true' : '1'},
    '2027-04-01 00:00:00', '2027-05-01 12:00:00');`;
};

const UNKEY = `
  CREATE TEMPORARY TABLE \`keys\` (
    id varchar(36), key_auth_id text, hash text, name text, owner_id text, identity_id varchar(36),
    meta text, enabled boolean, created_at_m bigint, expires datetime(3), deleted_at_m bigint);
  CREATE TEMPORARY TABLE identities (id varchar(36), external_id text);
  CREATE TEMPORARY TABLE permissions (id varchar(36), slug varchar(36));
  CREATE TEMPORARY TABLE keys_permissions (key_id varchar(36), permission_id varchar(36));
  CREATE TEMPORARY TABLE keys_roles (key_id varchar(36), role_id varchar(36));
  CREATE TEMPORARY TABLE roles_permissions (role_id varchar(36), permission_id varchar(36));
  INSERT INTO \`keys\` VALUES (
    'k', 'ks', '${HASH}', 'ci "é"', 'no', 'i', '{"team":"web"}', true, 1806537600000,
    '2027-05-01 12:00:00.000', NULL);
  INSERT INTO identities VALUES ('i', '7');
  INSERT INTO permissions VALUES ('p1', 'orders:read'), ('p2', 'orders:write'), ('p3', 'none');
  INSERT INTO keys_permissions VALUES ('k', 'p1'), ('other', 'p3');
  INSERT INTO keys_roles VALUES ('k', 'r');
  INSERT INTO roles_permissions VALUES ('r', 'p2'), ('r', 'p1');`;

const KEYPAL = `
  CREATE TEMPORARY TABLE apikey (id text, key_hash text, metadata jsonb);
  INSERT INTO apikey VALUES ('k', '${HASH}', '{"ownerId":"7","name":"ci \\"é\\"","scopes":["orders:read"],
    "createdAt":"2027-04-01T00:00:00.000Z","expiresAt":"2027-05-01T12:00:00.000Z"}');`;

const PLAIN = (column: string, type: string, value: string) => `
  SET bytea_output = 'hex';
  CREATE TEMPORARY TABLE api_keys (
    owner text, ${column} ${type}, scopes text, permissions text, expires_at timestamptz, name text);
  INSERT INTO api_keys VALUES (
    '7', ${value}, 'orders:read', 'orders:read', '2027-05-01 14:00:00+02', 'ci "é"');
  ALTER TABLE api_keys RENAME TO ${column === 'sha256' ? 'api_tokens' : 'api_keys_'};`;

const CASES: readonly Case[] = [
  {
    guide: 'from-sanctum',
    from: 'sanctum',
    tables: {
      SQLite: SANCTUM('datetime'),
      PostgreSQL: SANCTUM('timestamp(0)'),
      MySQL: SANCTUM('timestamp'),
    },
    token: { permissions: ['orders:read', '*'] },
  },
  {
    guide: 'from-better-auth',
    from: 'better-auth',
    tables: {
      SQLite: BETTER_AUTH('date', 'integer', '"'),
      PostgreSQL: `SET timezone = 'UTC'; ${BETTER_AUTH('timestamptz', 'boolean', '"')}`,
      MySQL: BETTER_AUTH('timestamp(3)', 'boolean', '`'),
    },
    token: { metadata: { team: 'web' } },
  },
  {
    guide: 'from-unkey',
    from: 'unkey-export',
    tables: { MySQL: UNKEY },
    token: { permissions: ['orders:read', 'orders:write'], metadata: { team: 'web' } },
  },
  { guide: 'from-keypal', from: 'keypal', tables: { PostgreSQL: KEYPAL }, token: {} },
  {
    guide: 'from-prefixed-api-key',
    from: 'csv',
    tables: {
      PostgreSQL: PLAIN('long_token_hash', 'text', `'${HASH}'`).replace(/ALTER .*;/, ''),
    },
    token: { createdAt: undefined },
  },
  {
    guide: 'from-hand-rolled',
    from: 'csv',
    tables: { PostgreSQL: PLAIN('sha256', 'bytea', `decode('${HASH}', 'hex')`) },
    token: { createdAt: undefined },
  },
];

const RUNS = CASES.flatMap(({ tables, ...rest }) =>
  Object.entries(tables).map(([database, script]) => ({
    ...rest,
    database: database as Database,
    script,
  })),
);

describe('the export query', () => {
  it.for(RUNS)(
    'of $guide prints on $database a row that the import reads',
    async (run, { skip }) => {
      const { guide, from, token, database, script } = run;
      const { isHere, print } = CLIENTS[database];
      if (!isHere) return skip();
      const printed = print(`${script}\n${queryOf(guide, database)}`);
      const rows = await allOf(readRows([printed]));
      const [row] = rows;
      if (row === undefined || isTokenError(row.columns)) throw new Error(`no row: ${printed}`);

      expect(rows).toHaveLength(1);
      expect(SYSTEMS[from].reader()(row.columns)).toEqual({
        account: '7',
        digest: HASH,
        permissions: ['orders:read'],
        createdAt: new Date('2027-04-01T00:00:00Z'),
        expiresAt: new Date('2027-05-01T12:00:00Z'),
        isDisabled: false,
        isRevoked: false,
        name: 'ci "é"',
        metadata: undefined,
        ...token,
      });
    },
  );
});
