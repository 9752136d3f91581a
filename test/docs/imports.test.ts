import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, inject, it } from 'vitest';
import { FORMATS } from '../../src/app/server/settings.ts';
import {
  filesOf,
  hideVariables,
  newFolder,
  outcomeOf,
  run,
  serviceOn,
} from '../app/cli/support.ts';
import { allOf } from '../support.ts';

const { postgres, mariadb } = inject('servers');

const PROGRAMS = { SQLite: 'sqlite3', PostgreSQL: 'psql', MySQL: 'mysql' } as const;

/** Runs a script with the command-line client of each database, with the flags of the page. */
const CLIENTS = {
  SQLite: {
    isHere: spawnSync(PROGRAMS.SQLite, ['-version']).status === 0,
    print: (script: string, csv: boolean) =>
      execFileSync(PROGRAMS.SQLite, [...(csv ? ['-csv', '-header'] : []), ':memory:'], {
        input: script,
      }),
  },
  PostgreSQL: {
    isHere: postgres !== undefined,
    print(script: string, csv: boolean) {
      const flags = ['-X', '-q', '-v', 'ON_ERROR_STOP=1', csv ? '--csv' : '-At', postgres ?? ''];
      const input = script.replace('JSON_OBJECT', 'json_build_object');
      return execFileSync(PROGRAMS.PostgreSQL, flags, { input });
    },
  },
  MySQL: {
    isHere: mariadb !== undefined,
    print(script: string) {
      const { hostname, port, username, password, pathname } = new URL(mariadb ?? '');
      const server = ['-h', hostname, '-P', port, '-u', decodeURIComponent(username)];
      const flags = ['--batch', '--raw', '--skip-column-names', ...server, pathname.slice(1)];
      const env = { ...process.env, MYSQL_PWD: decodeURIComponent(password) };
      const quoted = script.replace(/"(key|\w+(?:Id|At))"/g, '`$1`');
      return execFileSync(PROGRAMS.MySQL, flags, { input: quoted, env });
    },
  },
} as const;
type Database = keyof typeof CLIENTS;

/** The query that the page has for a system: the only one there that selects. */
function queryOf(system: string): string {
  const url = new URL('../../docs/guides/bring-your-tokens.md', import.meta.url);
  const section = readFileSync(url, 'utf8')
    .split(/^###? /m)
    .find((text) => text.startsWith(system));
  const blocks = [...(section ?? '').matchAll(/^```sql\n(.*?)^```$/gms)].map(([, text]) => text);
  const query = blocks.find((text) => text?.startsWith('SELECT'));
  if (query === undefined) throw new Error(`the page has no query for ${system}`);
  return query;
}

const READ = 'GET:shop.example/orders';
const WRITE = 'POST:shop.example/orders';
const MAP = { 'orders:read': [READ], 'orders:write': [WRITE], 'shop:1:write': [WRITE] };

/** The hash of a value that nobody knows. */
const unknown = (digit: string) => digit.repeat(64);
const CREATED = Date.UTC(2026, 0, 31, 12) / 1000;
const EXPIRY = Math.floor(Date.now() / 1000) + 90 * 86_400;
/** Times as databases write them. */
const [created, expires, past] = [CREATED, EXPIRY, CREATED + 60].map((seconds) =>
  new Date(seconds * 1000).toISOString().slice(0, 19).replace('T', ' '),
);

interface System {
  readonly format: string;
  readonly foreign: string;
  readonly value: string;
  /** The tables of the system, as its own source creates them, with rows, by database. */
  readonly tables: Partial<Record<Database, string>>;
  /** How the tokens come, by their names. The value is that of `ci`. */
  readonly tokens: Readonly<Record<string, object>>;
}

const SANCTUM = (time: string) => `
  CREATE TEMPORARY TABLE personal_access_tokens (
    id bigint, tokenable_type varchar(255) NOT NULL, tokenable_id bigint NOT NULL, name varchar(255),
    token varchar(64) NOT NULL UNIQUE, abilities text NULL, last_used_at ${time} NULL,
    expires_at ${time} NULL, created_at ${time} NULL, updated_at ${time} NULL);
  INSERT INTO personal_access_tokens VALUES
    (1, 'App.Models.User', 7, 'ci', '07da98e08cb36de97b721cc4a69f860e0ba17205db2e448052c6460df5b83749',
      '["orders:read","orders:write"]', NULL, '${expires}', '${created}', NULL),
    (2, 'App.Models.User', 7, 'old', '${unknown('a')}', '["orders:read"]', NULL, '${past}', NULL, NULL),
    (3, 'App.Models.User', 7, 'a "é"', '${unknown('b')}', '["orders:read"]', NULL, NULL, NULL, NULL);`;

// On SQLite, test/app/server/migration.test.ts runs the query on a table of better-auth itself.
const BETTER_AUTH = (time: string) => `
  CREATE TEMPORARY TABLE apikey (
    id varchar(36), "configId" varchar(255), name text, start text, "referenceId" varchar(255),
    prefix text, "key" varchar(255), enabled boolean, "expiresAt" ${time} NULL,
    "createdAt" ${time} NULL, permissions text, metadata text);
  INSERT INTO apikey VALUES
    ('1', 'default', 'ci', 'old_ab', '7', 'old_', 'uivnWGoNARX6rkdHn7BaTLhOwnYcQJRQHgoRgEcRdZ4', true,
      '${expires}', '${created}', '{"orders":["read","write"]}', '{"team":"web"}'),
    ('2', 'default', 'old', NULL, '7', NULL, '${unknown('a')}', true,
      '${past}', '${created}', '{"orders":["read"]}', NULL),
    ('3', 'default', 'paused', NULL, '7', NULL, '${unknown('b')}', false,
      NULL, '${created}', '{"orders":["read"]}', NULL);`;

const UNKEY = `
  CREATE TEMPORARY TABLE \`keys\` (
    id varchar(48), key_auth_id varchar(48), hash varchar(256), start varchar(256),
    workspace_id varchar(48), for_workspace_id varchar(48), name varchar(256), identity_id varchar(48),
    meta text, expires datetime(3), created_at_m bigint NOT NULL DEFAULT 0, deleted_at_m bigint,
    enabled boolean NOT NULL DEFAULT true, remaining_requests bigint unsigned,
    pending_migration_id varchar(48));
  CREATE TEMPORARY TABLE identities (id varchar(48), external_id varchar(256));
  CREATE TEMPORARY TABLE permissions (id varchar(48), name varchar(512), slug varchar(128));
  CREATE TEMPORARY TABLE keys_permissions (key_id varchar(48), permission_id varchar(48));
  CREATE TEMPORARY TABLE keys_roles (key_id varchar(48), role_id varchar(48));
  CREATE TEMPORARY TABLE roles_permissions (role_id varchar(48), permission_id varchar(48));
  INSERT INTO \`keys\` (id, hash, for_workspace_id, name, identity_id, meta, expires, created_at_m,
    deleted_at_m, enabled, pending_migration_id) VALUES
    ('k', 've1GTOWvMhc0ZZ0ZybEJVE+QazeSRVppMpS90/bncns=', NULL, 'ci', 'i', '{"team":"web"}',
      '${expires}.000', ${CREATED * 1000}, NULL, true, NULL),
    ('p', '${unknown('a')}', NULL, 'paused', 'i', NULL, NULL, ${CREATED * 1000}, NULL, false, NULL),
    ('d', '${unknown('b')}', NULL, 'deleted', 'i', NULL, NULL, 0, 1, true, NULL),
    ('r', '${unknown('c')}', 'ws', 'root', 'i', NULL, NULL, 0, NULL, true, NULL),
    ('m', '${unknown('d')}', NULL, 'to migrate', 'i', NULL, NULL, 0, NULL, true, 'm');
  INSERT INTO identities VALUES ('i', '7');
  INSERT INTO permissions VALUES ('p1', 'r', 'orders:read'), ('p2', 'w', 'orders:write'), ('p3', 'n', 'none');
  INSERT INTO keys_permissions VALUES ('k', 'p1'), ('p', 'p1'), ('other', 'p3');
  INSERT INTO keys_roles VALUES ('k', 'r');
  INSERT INTO roles_permissions VALUES ('r', 'p2'), ('r', 'p1');`;

const KEYPAL = `
  CREATE TEMPORARY TABLE apikey (id text, key_hash text NOT NULL, metadata jsonb NOT NULL);
  INSERT INTO apikey VALUES
    ('1', 'f14cd1aa13a6b2c21093aea53e60ce0b6e31df6dd515bcaf81bdd36fe51fceeb',
      '{"ownerId":"7","name":"ci","scopes":["orders:read"],"resources":{"shop:1":["write"]},"enabled":true,
        "createdAt":"${created?.replace(' ', 'T')}.000Z","expiresAt":"${expires?.replace(' ', 'T')}.000Z"}'),
    ('2', '${unknown('a')}', '{"ownerId":"7","name":"paused","scopes":["orders:read"],"enabled":false,
      "expiresAt":null,"revokedAt":null}'),
    ('3', '${unknown('b')}', '{"ownerId":"7","name":"revoked","scopes":["orders:read"],
      "revokedAt":"2026-01-31T12:00:00.000Z"}');`;

const OWN = (table: string, column: string, type: string, hash: string) => `
  CREATE TEMPORARY TABLE ${table} (
    owner text, ${column} ${type}, permissions text, expires_at timestamp, name text);
  INSERT INTO ${table} VALUES
    ('7', ${hash}, 'orders:read orders:write', '${expires}', 'ci');`;

const LIVE = { state: 'active', scopes: [READ, WRITE], expiresAt: new Date(EXPIRY * 1000) };
const CI = { ...LIVE, createdAt: new Date(CREATED * 1000) };
const WITH_METADATA = { ...CI, metadata: { team: 'web' } };
const PAUSED = { state: 'suspended', scopes: [READ] };

const SYSTEMS: Readonly<Record<string, System>> = {
  'Laravel Sanctum': {
    format: 'sanctum',
    foreign: 'sanctum',
    value: '12|0123456789abcdefghijABCDEFGHIJklmnopqrst',
    tables: {
      SQLite: SANCTUM('datetime'),
      PostgreSQL: SANCTUM('timestamp(0)'),
      MySQL: SANCTUM('timestamp'),
    },
    tokens: { ci: CI, 'a "é"': { state: 'active', scopes: [READ] } },
  },
  'better-auth': {
    format: 'better-auth',
    foreign: 'better-auth:old_',
    value: 'old_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijkl',
    tables: {
      PostgreSQL: `SET timezone = 'UTC'; ${BETTER_AUTH('timestamptz')}`,
      MySQL: BETTER_AUTH('timestamp(3)'),
    },
    tokens: { ci: WITH_METADATA, paused: PAUSED },
  },
  Unkey: {
    format: 'unkey',
    foreign: 'unkey:unk',
    value: 'unk_3ZHgTRVY5wmFb4LqsWJX7P',
    tables: { MySQL: UNKEY },
    tokens: { ci: WITH_METADATA, paused: PAUSED },
  },
  keypal: {
    format: 'keypal',
    foreign: 'sha256:keypal:sk_[0-9A-Za-z]{32}',
    value: 'sk_AbCdEfGhIjKlMnOpQrStUvWxYz012345',
    tables: { PostgreSQL: KEYPAL },
    tokens: { ci: CI, paused: PAUSED },
  },
  'prefixed-api-key': {
    format: 'prefixed-api-key',
    foreign: 'prefixed-api-key:mycompany',
    value: 'mycompany_4bArCCaL_Jrq6csg8VZDYnjeQpMneEsEu',
    tables: {
      SQLite: OWN(
        'api_keys',
        'long_token_hash',
        'text',
        `'442e185750d6c7db3a31e5241e29bbba6fc83f71ae6bb9fbf26d14fc4ec0c105'`,
      ),
    },
    tokens: { ci: LIVE },
  },
  'Your own table': {
    format: 'own',
    foreign: 'sha256:own:key-[0-9a-f]{16}',
    value: 'key-0123456789abcdef',
    tables: {
      PostgreSQL: OWN('api_tokens', 'sha256', 'bytea', `sha256('key-0123456789abcdef')`),
    },
    tokens: { ci: LIVE },
  },
};

const RUNS = Object.entries(SYSTEMS).flatMap(([name, { tables, ...rest }]) =>
  Object.entries(tables).map(([database, script]) => ({
    ...rest,
    name,
    database: database as Database,
    script,
  })),
);

/** The rows that the query of the page prints. */
function printed({ name, database, script }: (typeof RUNS)[number]): string {
  const query = queryOf(name);
  return String(CLIENTS[database].print(`${script}\n${query}`, !/json_/i.test(query)));
}

describe('the query of the page', () => {
  beforeEach(hideVariables);

  it.for(RUNS)(
    'for $name imports tokens on $database whose values keep working',
    async (system, { skip }) => {
      if (!CLIENTS[system.database].isHere) return skip();
      const folder = newFolder();
      const data = ['--data', folder];
      await outcomeOf(['store', 'migrate', ...data]);
      await outcomeOf(['keys', 'new', ...data]);
      const map = filesOf({ 'map.json': MAP })('map.json');
      const importing = ['token', 'import', '--format', system.format, '--map', map, ...data];

      const { code, stdout } = await run(importing, {}, printed(system));

      expect({ code, stdout }).toMatchObject({ code: 0 });
      const foreign = FORMATS.read([system.foreign], '--foreign');
      const tokens = serviceOn(folder, { foreign });
      const held = await allOf(tokens.listAll({ account: '7', state: 'all' }));
      const byName = Object.fromEntries(held.map((token) => [token.name, token]));
      expect(Object.keys(byName).sort()).toEqual(Object.keys(system.tokens).sort());
      expect(byName).toMatchObject(system.tokens);
      expect(await tokens.allows(system.value, { scope: WRITE })).toBe(true);
      expect(await tokens.allows(`${system.value.slice(0, -1)}x`, { scope: WRITE })).toBe(false);
    },
  );

  it('for Laravel Sanctum prints no accounts if owners of two kinds could be taken for one', ({
    skip,
  }) => {
    const [system] = RUNS;
    if (system === undefined || !CLIENTS.SQLite.isHere) return skip();
    const script = system.script.replace("'App.Models.User'", "'App.Models.Team'");
    const accountsOf = (rows: string) => new Set(rows.match(/"account":[^,]*/g));

    expect(accountsOf(printed({ ...system, script }))).toEqual(new Set(['"account":null']));
    expect(accountsOf(printed(system))).toEqual(new Set(['"account":7']));
  });
});
