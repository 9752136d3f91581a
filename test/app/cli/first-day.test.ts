import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { runSql, sqlEngines } from '../server/databases.ts';
import { ACCOUNT, call, newFolder, type RunningService, run, serve } from './support.ts';

const guide = readFileSync(
  new URL('../../../docs/guides/keep-it-running.md', import.meta.url),
  'utf8',
);
/** The shell blocks of the guide, in order. */
const SHELL_BLOCKS = [...guide.matchAll(/^```bash\n(.*?)^```$/gms)].map(([, text = '']) => text);
const scopes = ['GET:acme.example/status'];
const USES = 3;
/** Each test starts up to ten processes. */
const TIMEOUT = { timeout: 300_000 };

type SqlEngine = 'postgres' | 'mariadb';

interface Database {
  readonly name: string;
  /** With a user who may read and write tables, and may make none. */
  readonly url: string;
  readonly adminUrl: string;
}

interface Dialect {
  readonly create: (name: string) => readonly string[];
  /** Lets the user of a database use the tables that it has. */
  readonly grant: (name: string) => string;
  readonly remove: (name: string) => readonly string[];
  /** The program that makes a backup. */
  readonly program: string;
  /** How the guide names a database, and how its programs name one here. */
  readonly place: readonly [RegExp, (database: Database) => string];
}

const RIGHTS = 'GRANT SELECT, INSERT, UPDATE, DELETE ON';
const DIALECTS: Readonly<Record<SqlEngine, Dialect>> = {
  postgres: {
    create: (name) => [`CREATE ROLE ${name} LOGIN`, `CREATE DATABASE ${name}`],
    grant: (name) => `${RIGHTS} ALL TABLES IN SCHEMA public TO ${name}`,
    remove: (name) => [`DROP DATABASE ${name} WITH (FORCE)`, `DROP ROLE ${name}`],
    program: 'pg_dump',
    place: [/postgres:\/\/\S+/, ({ adminUrl }) => adminUrl],
  },
  mariadb: {
    create: (name) => [`CREATE DATABASE ${name}`, `CREATE USER '${name}'@'127.0.0.1'`],
    grant: (name) => `${RIGHTS} ${name}.* TO '${name}'@'127.0.0.1'`,
    remove: (name) => [`DROP DATABASE ${name}`, `DROP USER '${name}'@'127.0.0.1'`],
    program: 'mariadb-dump',
    place: [
      /--host=\S+ --user=\S+ --password acme/,
      ({ adminUrl, name }) => {
        const { hostname, port, username } = new URL(adminUrl);
        return `--host=${hostname} --port=${port} --user=${username} ${name}`;
      },
    ],
  },
};

const installed = sqlEngines as SqlEngine[];

describe.skipIf(installed.length === 0).each(installed)(
  'the first day on %s',
  TIMEOUT,
  (engine) => {
    it('leads from an empty database to a backup that works elsewhere', async () => {
      const [first, second] = [await newDatabase(engine), await newDatabase(engine)];
      const [data, elsewhere] = [newFolder(), newFolder()];
      const refused = await run(['serve', '--port', '0', ...settingsOf(data, first.url)]);
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toContain(
        'an administrator runs the SQL that tokenwright store migrate --print',
      );
      expect(await run(['store', 'migrate', '--store', first.url])).toEqual(refused);
      expect(await findingsOf(first)).toContain('schema_missing');

      expect(await run(['store', 'migrate', '--store', first.adminUrl])).toMatchObject({ code: 0 });
      await grant(engine, first);
      expect(await findingsOf(first)).not.toContain('schema_missing');
      const service = await serve(settingsOf(data, first.url));
      const value = await issue(service);
      expect(await use(service, value)).toBe(200);
      expect(await service.stop()).toMatchObject({ code: 0 });

      backUpAndRestore(engine, first, second);
      await grant(engine, second);
      copyFileSync(join(data, 'keys.json'), join(elsewhere, 'keys.json'));
      const restored = await serve(settingsOf(elsewhere, second.url));
      expect(await usesLeft(restored, value)).toBe(USES - 1);
      expect(await restored.stop()).toMatchObject({ code: 0 });
    });

    it('shows all uses again if a table is missing in the backup (the control)', async () => {
      const [first, second] = [await newDatabase(engine), await newDatabase(engine)];
      const data = newFolder();
      const service = await serve(settingsOf(data, first.adminUrl));
      const value = await issue(service);
      expect(await use(service, value)).toBe(200);
      await service.stop();

      backUpAndRestore(engine, first, second);
      await runSql(engine, 'DROP TABLE tokenwright_leases', second.adminUrl);

      const restored = await serve(settingsOf(data, second.adminUrl));
      expect(await usesLeft(restored, value)).toBe(USES);
      await restored.stop();
    });
  },
);

describe('the first day on SQLite', TIMEOUT, () => {
  it('leads to a backup that works elsewhere', async () => {
    const [data, elsewhere] = [newFolder(), newFolder()];
    const service = await serve(settingsOf(data));
    const value = await issue(service);
    expect(await use(service, value)).toBe(200);
    expect(await service.stop()).toMatchObject({ code: 0 });

    const backup = join(newFolder(), 'monday');
    expect(await run(['store', 'backup', backup, '--data', data])).toMatchObject({ code: 0 });
    cpSync(backup, elsewhere, { recursive: true });
    copyFileSync(join(data, 'keys.json'), join(elsewhere, 'keys.json'));
    const restored = await serve(settingsOf(elsewhere));
    expect(await usesLeft(restored, value)).toBe(USES - 1);
    await restored.stop();

    rmSync(join(elsewhere, 'leases.db'));
    const incomplete = await serve(settingsOf(elsewhere));
    expect(await usesLeft(incomplete, value)).toBe(USES);
    await incomplete.stop();
  });
});

async function newDatabase(engine: SqlEngine): Promise<Database> {
  const name = `first_day_${randomBytes(6).toString('hex')}`;
  const { create, remove } = DIALECTS[engine];
  for (const sql of create(name)) await runSql(engine, sql);
  onTestFinished(async () => {
    for (const sql of remove(name)) await runSql(engine, sql);
  });
  const url = new URL(inject('servers')[engine] ?? '');
  const { href: adminUrl } = Object.assign(url, { pathname: name });
  const database = { name, adminUrl, url: Object.assign(url, { username: name }).href };
  await grant(engine, database);
  return database;
}

function grant(engine: SqlEngine, { name, adminUrl }: Database): Promise<void> {
  return runSql(engine, DIALECTS[engine].grant(name), adminUrl);
}

async function findingsOf({ url }: Database): Promise<string[]> {
  const { stdout } = await run(['store', 'doctor', '--json', '--store', url]);
  return JSON.parse(stdout).findings.map(({ code }: { code: string }) => code);
}

/** Runs the commands of the guide for an engine: the first one makes a backup, the second restores it. */
function backUpAndRestore(engine: SqlEngine, from: Database, to: Database): void {
  const { program, place } = DIALECTS[engine];
  const [places, named] = place;
  const block = SHELL_BLOCKS.find((text) => text.startsWith(program)) ?? '';
  const databases = [from, to];
  const script = block.replaceAll(new RegExp(places, 'g'), () => {
    const [database] = databases.splice(0, 1);
    if (database === undefined) throw new Error('the guide names more than two databases');
    return named(database);
  });
  expect(databases).toEqual([]);
  execFileSync('bash', ['-euc', script], { cwd: newFolder() });
}

function settingsOf(data: string, store?: string): string[] {
  const gateway = ['--gateway', 'nginx', '--domain', 'acme.example'];
  return [
    '--data',
    data,
    ...ACCOUNT,
    ...gateway,
    ...(store === undefined ? [] : ['--store', store]),
  ];
}

/** Issues a token with a limited number of uses. */
async function issue(service: RunningService): Promise<string> {
  const body = { scopes, limits: { uses: USES } };
  return (await call(service, '/token', { method: 'POST', body })).body.token;
}

/** Uses a value once, and returns the status of the answer. */
async function use(service: RunningService, value: string): Promise<number> {
  const headers = {
    authorization: `Bearer ${value}`,
    'x-original-method': 'GET',
    'x-original-uri': '/status',
    connection: 'close',
  };
  return (await fetch(`${service.url}/check`, { headers })).status;
}

/** Uses a value until it is refused. */
async function usesLeft(service: RunningService, value: string): Promise<number> {
  for (let uses = 0; ; uses++) {
    if ((await use(service, value)) !== 200) return uses;
  }
}
