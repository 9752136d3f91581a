import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { makeFolder } from '../../../../src/app/server/files/private-file.ts';
import { SqliteTokenStore } from '../../../../src/stores/sqlite/index.ts';
import { isInstalled, startServer } from '../../../servers.ts';
import { engines, newStore, runSql, sqlEngines } from '../../server/databases.ts';
import { exampleOf, newFolder, outcomeOf, run, runInShell, serve, serviceOn } from '../support.ts';

const { postgres, redis, redisCluster } = inject('servers');
const redisEngines = engines.filter((engine) => engine.startsWith('redis'));

describe.skipIf(sqlEngines.length === 0)('migrate', () => {
  it.each(sqlEngines)(
    'creates the tables in %s, and reports whether it changed anything',
    async (engine) => {
      const { flags } = newStore(engine);

      const first = await run(['store', 'migrate', ...flags]);
      const second = await run(['store', 'migrate', ...flags]);
      const third = await run(['store', 'migrate', ...flags, '--json']);

      expect(JSON.parse(third.stdout)).toEqual({
        store: expect.stringContaining('at 127.0.0.1:'),
        changed: false,
      });
      expect(first).toMatchObject({ code: 0, stderr: '' });
      expect(first.stdout).toMatch(/at 127.0.0.1:\d+\/\w+: the tables are up to date now\n$/);
      expect(second).toMatchObject({ code: 0, stderr: '' });
      expect(second.stdout).toMatch(/the tables were up to date already\n$/);
      const examined = await run(['store', 'doctor', ...flags, '--json']);
      expect(examined.code).toBe(0);
      expect(JSON.parse(examined.stdout)).toEqual({
        findings: [],
        countedSince: expect.stringMatching(/^20/),
      });
    },
  );

  it.each(sqlEngines)(
    'creates all tables in %s, and doctor names a missing one',
    async (engine) => {
      const { tables, flags } = newStore(engine);
      const off = { TOKENWRIGHT_USAGE: 'off' };
      const readUsage = () => runSql(engine, `SELECT uses FROM ${tables}_usage`);

      expect((await run(['store', 'migrate', ...flags], off)).stdout).toContain(
        'tables are up to date now',
      );
      expect((await run(['store', 'migrate', ...flags], off)).stdout).toContain(
        'were up to date already',
      );
      await readUsage();
      await runSql(engine, `DROP TABLE ${tables}_usage`);
      const missing = await run(['store', 'doctor', ...flags]);
      expect(missing.code).toBe(3);
      expect(missing.stdout).toMatch(/^usage_missing /);
      expect(missing.stdout.replaceAll(/\s+/g, ' ')).toContain('run tokenwright store migrate');
      expect(await run(['store', 'doctor', ...flags], off)).toMatchObject({ code: 0, stdout: '' });
      expect((await run(['store', 'migrate', ...flags])).stdout).toContain('up to date now');
      await readUsage();
    },
  );

  it.each(sqlEngines)('prints the SQL for %s, and changes nothing', async (engine) => {
    const { flags } = newStore(engine);

    const { code, stdout, stderr } = await run(['store', 'migrate', ...flags, '--print']);
    const { stdout: json } = await run(['store', 'migrate', ...flags, '--print', '--json']);
    expect(JSON.parse(json)).toEqual({ sql: stdout.trimEnd() });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(await run(['store', 'doctor', ...flags])).toMatchObject({ code: 3 });

    await runSql(engine, stdout);
    expect(await run(['store', 'doctor', ...flags])).toMatchObject({ code: 0, stdout: '' });
    expect((await run(['store', 'migrate', ...flags])).stdout).toContain('were up to date already');
  });
});

describe.skipIf(redisEngines.length === 0)('migrate', () => {
  it.each(redisEngines)('reports that there is nothing to do in %s', async (engine) => {
    const { flags } = newStore(engine);

    const printed = await run(['store', 'migrate', ...flags]);
    const { stdout: json } = await run(['store', 'migrate', ...flags, '--json']);

    expect(printed).toMatchObject({ code: 0, stderr: '' });
    expect(printed.stdout).toMatch(/^Redis .*at .*: nothing to do, there is no schema\n$/);
    expect(JSON.parse(json)).toEqual({ store: expect.any(String), changed: false });
  });
});

describe('migrate', () => {
  it.each([
    ['postgres://ada:canary@127.0.0.1:1/acme', 'CREATE TABLE "mine_tokens"'],
    ['postgres://ada:canary@127.0.0.1:1/acme', 'CREATE TABLE "mine_usage"'],
    ['mariadb://ada:canary@127.0.0.1:1/acme', 'CREATE TABLE IF NOT EXISTS `mine_tokens`'],
    ['mariadb://ada:canary@127.0.0.1:1/acme', 'CREATE TABLE IF NOT EXISTS `mine_usage`'],
  ])('prints SQL for %s without a server or a driver: %s', async (url, sql) => {
    const flags = ['--store', url, '--tables', 'mine', '--print'];

    const printed = await run(['store', 'migrate', ...flags], withoutDrivers);

    expect(printed).toMatchObject({ code: 0, stderr: '' });
    expect(printed.stdout).toContain(sql);
    expect(printed.stdout).not.toContain('canary');
  });

  it.each([
    ['redis://127.0.0.1:1', 'Redis at 127.0.0.1:1'],
    ['redis+cluster://127.0.0.1:1', 'Redis Cluster at 127.0.0.1:1'],
  ])('prints no SQL for %s, without a server or a driver', async (store, name) => {
    const printed = await run(['store', 'migrate', '--store', store, '--print'], withoutDrivers);

    expect(printed).toMatchObject({ code: 0, stdout: '' });
    expect(printed.stderr).toBe(`${name}: nothing to do, there is no schema\n`);
  });

  it('prints the SQL for CockroachDB and YugabyteDB', async () => {
    const migrate = ['store', 'migrate', '--store', 'postgres://127.0.0.1:1/acme', '--print'];
    const sqlOf = async (...flags: string[]) => (await outcomeOf([...migrate, ...flags])).text;

    expect(await sqlOf('--dialect', 'cockroach')).not.toContain('COLLATE');
    expect(await sqlOf('--dialect', 'yugabyte')).toContain('PRIMARY KEY (id ASC)');
    // The control.
    expect(await sqlOf()).toMatch(/COLLATE.*PRIMARY KEY \(id\)/s);
  });

  it.each([
    [['--store', 'mysql://db.internal/acme', '--print'], 'cockroach', 'give --store postgres://'],
    [['--store', 'redis://db.internal', '--print'], 'cockroach', 'give --store postgres://'],
    [['--print'], 'cockroach', '--print needs --store'],
    [['--store', 'postgres://db.internal/acme'], 'cockroach', '--dialect needs --print'],
    [
      ['--store', 'postgres://db.internal/acme', '--print'],
      'mysql',
      '--dialect must be cockroach or yugabyte',
    ],
  ])('refuses %j with --dialect %s', async (flags, dialect, message) => {
    const refused = await run(['store', 'migrate', ...flags, '--dialect', dialect], withoutDrivers);

    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(message);
  });

  it.skipIf(postgres === undefined)('reads its settings from variables', async () => {
    const { url, tables } = newStore('postgres');
    const environment = { TOKENWRIGHT_STORE: url, TOKENWRIGHT_TABLES: tables };

    expect((await run(['store', 'migrate'], environment)).stdout).toContain('up to date now');
    const again = await run(['store', 'migrate', '--store', url], environment);
    expect(again.stdout).toContain('were up to date already');
  });

  it.skipIf(postgres === undefined)('refuses a table with the wrong columns', async () => {
    const { tables, flags } = newStore('postgres');
    await runSql('postgres', `CREATE TABLE ${tables}_tokens (id text)`);

    const refused = await run(['store', 'migrate', ...flags]);

    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(new RegExp(`^tokenwright: .*${tables}.*\\n$`));
  });
});

describe('migrate of an SQLite file', () => {
  it('creates the file for its owner only, and reports the next time that it is up to date', async () => {
    const data = join(newFolder(), 'data');
    const migrate = ['store', 'migrate', '--data', data];
    const file = join(data, 'tokens.db');

    const absent = await run(['store', 'doctor', '--data', data]);
    const made = await run(migrate);
    const mode = statSync(file).mode & 0o777;
    const again = await outcomeOf(migrate);

    expect(absent.stderr).toContain(
      `${file} does not exist: tokenwright store migrate and serve make it`,
    );
    expect(made.code).toBe(0);
    expect(made.stdout).toMatch(`SQLite in ${file}: the file was created\n`);
    expect([mode, statSync(data).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(again.text).toMatch(`SQLite in ${file}: the file was up to date already\n`);
    expect(again.json).toEqual({ store: `SQLite in ${file}`, changed: false });
    expect((await run(['store', 'doctor', '--data', data])).code).toBe(0);
  });

  it('brings an empty file up to date, and refuses a file that is not an SQLite database', async () => {
    const folder = newFolder();
    const [old, other] = [join(folder, 'old.db'), join(folder, 'other.db')];
    writeFileSync(old, '');
    writeFileSync(other, 'no database '.repeat(1000));

    const { text, json } = await outcomeOf(['store', 'migrate', '--store', `sqlite:${old}`]);

    expect(text).toMatch(`SQLite in ${old}: the file is up to date now\n`);
    expect(json).toEqual({ store: `SQLite in ${old}`, changed: true });
    await expect(outcomeOf(['store', 'migrate', '--store', `sqlite:${other}`])).rejects.toThrow(
      'is not an SQLite database',
    );
    expect(readFileSync(other, 'utf8')).toMatch(/^(?:no database )+$/);
  });

  it('refuses --print, and creates no file', async () => {
    const data = newFolder();

    const refused = await run(['store', 'migrate', '--data', data, '--print']);

    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('--print needs --store (TOKENWRIGHT_STORE), such as postgres');
    expect(existsSync(join(data, 'tokens.db'))).toBe(false);
  });
});

describe('doctor', () => {
  it.each(sqlEngines)('reports a damaged or missing table of requests in %s', async (engine) => {
    const { tables, flags } = newStore(engine);
    await run(['store', 'migrate', ...flags]);
    const table = `${tables}_requests`;
    await runSql(
      engine,
      `DROP INDEX ${engine === 'postgres' ? `${table}_by_end` : `by_end ON ${table}`}`,
    );

    const listed = await run(['store', 'doctor', ...flags, '--json']);
    expect(JSON.parse(listed.stdout).findings).toMatchObject([{ code: 'requests_differ' }]);
    await runSql(engine, `DROP TABLE ${table}`);
    const found = await run(['store', 'doctor', ...flags]);
    expect(found.code).toBe(3);
    expect(found.stdout).toMatch(/^requests_missing {2}requests for tokens can be neither made/);
    await run(['store', 'migrate', ...flags]);
    expect(await run(['store', 'doctor', ...flags])).toMatchObject({ code: 0, stdout: '' });
  });

  it('examines the file of requests if it exists, and creates none', async () => {
    const data = newFolder();
    const file = join(data, 'requests.db');
    await run(['store', 'migrate', '--data', data]);
    expect(await run(['store', 'doctor', '--data', data])).toMatchObject({ code: 0, stdout: '' });
    expect(existsSync(file)).toBe(false);
    writeFileSync(file, 'no database '.repeat(1000));

    const found = await run(['store', 'doctor', '--data', data]);

    expect(found.code).toBe(3);
    expect(found.stdout).toMatch(/^requests_unusable {2}requests for tokens can be neither made/);
  });

  it.each(sqlEngines)('reports a damaged or missing lease table in %s', async (engine) => {
    const { tables, flags } = newStore(engine);
    await run(['store', 'migrate', ...flags]);
    const index = engine === 'postgres' ? `${tables}_leases_by_end` : `by_end ON ${tables}_leases`;
    await runSql(engine, `DROP INDEX ${index}`);

    const listed = await run(['store', 'doctor', ...flags, '--json']);
    expect(JSON.parse(listed.stdout).findings).toMatchObject([{ code: 'leases_differ' }]);
    await runSql(engine, `DROP TABLE ${tables}_leases`);
    const found = await run(['store', 'doctor', ...flags]);
    expect(found.code).toBe(3);
    expect(found.stdout).toMatch(/^leases_missing {2}tokens with limited uses are refused/);
    await run(['store', 'migrate', ...flags]);
    expect(await run(['store', 'doctor', ...flags])).toMatchObject({ code: 0, stdout: '' });
  });

  it('examines the lease file if it exists, and creates none', async () => {
    const data = newFolder();
    const file = join(data, 'leases.db');
    await run(['store', 'migrate', '--data', data]);
    expect(await run(['store', 'doctor', '--data', data])).toMatchObject({ code: 0, stdout: '' });
    expect(existsSync(file)).toBe(false);
    const store = SqliteTokenStore.open(data);
    await store.leases.giveBack([{ key: 'x', window: 0, amount: 1 }]);
    await store.close();
    expect(await run(['store', 'doctor', '--data', data])).toMatchObject({ code: 0, stdout: '' });
    writeFileSync(file, 'no database '.repeat(1000));

    const found = await run(['store', 'doctor', '--data', data]);

    expect(found.code).toBe(3);
    expect(found.stdout).toMatch(/^leases_unusable {2}tokens with limited uses are refused/);
  });

  it.skipIf(postgres === undefined)('prints findings as text, or as JSON with --json', async () => {
    const { flags } = newStore('postgres');

    const found = await run(['store', 'doctor', ...flags]);
    const listed = await run(['store', 'doctor', ...flags, '--json']);

    expect(found.code).toBe(3);
    expect(found.stdout).toMatch(/^schema_missing {2}no token can be read/);
    expect(found.stderr).toMatch(/^1 finding in PostgreSQL at 127\.0\.0\.1:\d+\/postgres\n$/);
    expect(listed).toMatchObject({ code: 3, stderr: '' });
    expect(JSON.parse(listed.stdout)).toEqual({
      findings: [
        {
          code: 'schema_missing',
          message: expect.stringContaining('run tokenwright store migrate with'),
        },
      ],
    });
  });

  it('reads the whole SQLite file with --full, and finds damage', async () => {
    const data = newFolder();
    await run(['store', 'migrate', '--data', data]);
    const file = join(data, 'tokens.db');
    const content = readFileSync(file);
    // Overwrites the type of every page except the first, which a quick check reads.
    for (let page = 4096; page < content.length; page += 4096) content[page] = 0;
    writeFileSync(file, content);

    expect(await run(['store', 'doctor', '--data', data])).toMatchObject({ code: 0, stdout: '' });
    const found = await run(['store', 'doctor', '--data', data, '--full', '--json']);
    expect(found.code).toBe(3);
    const report = JSON.parse(found.stdout);
    expect(report.findings).toMatchObject([{ code: 'database_damaged' }]);
    // It is not known which keys are in use: an empty list would say that none is.
    expect(report).not.toHaveProperty('keys');
  });

  it.skipIf(redis === undefined)('finds nothing in a Redis without weak settings', async () => {
    const found = await run(['store', 'doctor', '--store', `${redis}/3`]);

    expect(found).toMatchObject({ code: 0, stdout: '' });
    expect(found.stderr).toMatch(
      /^nothing found in Redis at .*\/3\nuses of tokens are counted since 20/,
    );
  });

  it.skipIf(!isInstalled('redis'))('reports a Redis without persistence', async () => {
    const server = await startServer('redis', { settings: { appendonly: 'no' } });
    onTestFinished(() => server.stop());

    const found = await run(['store', 'doctor', '--store', server.url, '--json']);

    expect(found.code).toBe(3);
    expect(found.stdout).toMatch(/append-only|AOF|appendonly/i);
  });

  it.skipIf(redis === undefined)(
    'compares a Redis with the number of replicas in its URL',
    async () => {
      const codes = async (url: string) => {
        const { stdout } = await run(['store', 'doctor', '--store', url, '--json']);
        return JSON.parse(stdout).findings.map(({ code }: { code: string }) => code);
      };

      expect(await codes(`${redis}?replicas=0`)).toEqual([]);
      expect(await codes(`${redis}?replicas=1`)).not.toEqual([]);
      expect(await run(['store', 'doctor', '--store', `${redis}?replicas=many`])).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('replicas must be a whole number from 0 to 10'),
      });
    },
  );

  it.skipIf(redisCluster === undefined).each([
    [0, 'replicas_not_awaited', /^each of \S+, \S+, \S+ has replicas that the store does not wait/],
    [2, 'replicas_missing', /^each of \S+, \S+, \S+ has fewer replicas than the store waits for/],
  ])(
    'compares each primary of a Redis cluster with the %d replicas in its URL',
    async (replicas, code, message) => {
      const findingsWith = async (replicas: number) => {
        const url = `${redisCluster}?replicas=${replicas}`;
        const { code, stdout } = await run(['store', 'doctor', '--store', url, '--json']);
        expect(code).toBe(3);
        return JSON.parse(stdout).findings;
      };

      expect(await findingsWith(replicas)).toContainEqual({
        code,
        message: expect.stringMatching(message),
      });
      expect(await findingsWith(1)).not.toContainEqual(expect.objectContaining({ code }));
    },
  );

  it('examines the SQLite file of a service, and fails if it is missing', async () => {
    const data = newFolder();
    const absent = await run(['store', 'doctor', '--data', data]);
    await (await serve(['--data', data, '--account', 'ada:correct-horse'])).stop();
    const found = await run(['store', 'doctor', '--data', data]);

    expect(absent).toMatchObject({ code: 1, stdout: '' });
    expect(absent.stderr).toMatch(/tokens\.db does not exist/);
    expect(found).toMatchObject({ code: 0, stdout: '' });
    expect(found.stderr).toContain(`nothing found in SQLite in ${data}`);
  });
});

describe('doctor --full', () => {
  it('counts the live values and the secrets of each key', async () => {
    const { data, as } = await storeWithTokens(3);
    const [first] = await tokensIn(data);
    await outcomeOf(['token', 'revoke', first ?? '', ...as]);
    const { notes, json } = await outcomeOf(['store', 'doctor', '--data', data, '--full']);

    expect(notes).toMatch(/\nkey k1: made 2 live values, and seals 0 secrets$/);
    expect(json).toEqual({ findings: [], keys: [{ kid: 'k1', values: 2, secrets: 0 }] });
    const short = await outcomeOf(['store', 'doctor', '--data', data]);
    expect(short.notes).not.toContain('key k1');
    expect(short.json).toEqual({ findings: [] });
  });
});

describe('reseal', () => {
  /** A store whose values can be shown again. */
  async function storeWithValues(count: number) {
    const data = newFolder();
    makeFolder(data);
    const service = serviceOn(data, { reveal: 'always' });
    for (let i = 0; i < count; i++) {
      await service.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
    }
    return { data };
  }

  const secretsOf = async (data: string) =>
    (await outcomeOf(['store', 'doctor', '--data', data, '--full'])).json.keys;

  it('encrypts the secrets again with the active key, and only once', async () => {
    const { data } = await storeWithValues(3);
    await outcomeOf(['keys', 'rotate', '--data', data]);
    expect(await secretsOf(data)).toEqual([{ kid: 'k1', values: 3, secrets: 3 }]);
    const { text, json, isNegative } = await outcomeOf(['store', 'reseal', '--data', data]);

    expect(text).toBe(`encrypted 3 of 3 records again in SQLite in ${join(data, 'tokens.db')}`);
    expect(json).toEqual({ records: 3, resealed: 3, unreadable: 0, missed: 0 });
    expect(isNegative).toBeUndefined();
    expect(await secretsOf(data)).toEqual([
      { kid: 'k1', values: 3, secrets: 0 },
      { kid: 'k2', values: 0, secrets: 3 },
    ]);
    expect((await outcomeOf(['store', 'reseal', '--data', data])).json).toMatchObject({
      resealed: 0,
    });
  });

  it('reports how many secrets no key can decrypt, and exits with 3', async () => {
    const { data } = await storeWithValues(2);
    const keys = join(newFolder(), 'keys.json');
    await outcomeOf(['keys', 'new', '--keys', keys, '--kid', 'k7']);
    const { json, notes, isNegative } = await outcomeOf([
      'store',
      'reseal',
      '--data',
      data,
      '--keys',
      keys,
    ]);

    expect(json).toMatchObject({ resealed: 0, unreadable: 2 });
    expect(notes).toContain('no key of the file opens the secrets of 2 records');
    expect(isNegative).toBe(true);
  });

  it('refuses keys that can only verify', async () => {
    const { data } = await storeWithValues(1);
    const verifier = await outcomeOf(['keys', 'verifier', '--data', data]);
    const keys = join(data, 'verifier.json');
    writeFileSync(keys, verifier.text);

    await expect(outcomeOf(['store', 'reseal', '--data', data, '--keys', keys])).rejects.toThrow();
    expect(await secretsOf(data)).toEqual([{ kid: 'k1', values: 1, secrets: 1 }]);
  });
});

async function tokensIn(data: string): Promise<string[]> {
  const { tokens } = await serviceOn(data).list({ account: 'ada' });
  return tokens.map(({ id }) => id);
}

describe('purge', () => {
  it('removes records that ended before the given time, and no active token', async () => {
    const { data, tokens, as } = await storeWithTokens(3);
    const [kept, revoked, expired] = tokens;
    await outcomeOf(['token', 'revoke', revoked?.id ?? '', ...as]);
    await outcomeOf(['token', 'modify', expired?.id ?? '', ...as, '--ttl', '1']);
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    const purge = (...flags: string[]) =>
      outcomeOf(['store', 'purge', '--data', data, '--yes', ...flags]);

    expect((await purge('--older-than', '1h')).json).toMatchObject({ purged: 0 });
    expect((await purge('--before', '2026-01-01')).json).toEqual({
      purged: 0,
      before: '2026-01-01T00:00:00.000Z',
      forgotten: 0,
    });
    await expect(purge('--before', tomorrow)).rejects.toThrow('must not be later than now');
    const purged = await purge('--older-than', '0s', '--limit', '5');

    expect(purged.text).toBe(`removed 1 record from SQLite in ${join(data, 'tokens.db')}`);
    const { json } = await outcomeOf(['token', 'list', ...as]);
    expect(json.tokens.map(({ id }: { id: string }) => id)).toContain(kept?.id);
  });

  it('removes at most --limit records', async () => {
    const { data, as } = await storeWithTokens(3);
    await outcomeOf(['token', 'revoke', '--all', '--yes', ...as]);
    // A record that was revoked in the current millisecond is not older than that.
    for (const revoked = Date.now(); Date.now() === revoked; );
    const purge = ['store', 'purge', '--data', data, '--older-than', '0s', '--yes'];

    expect((await outcomeOf([...purge, '--limit', '2'])).json).toMatchObject({ purged: 2 });
    expect((await outcomeOf(purge)).json).toMatchObject({ purged: 1 });
  });

  it('removes nothing by a clock that is far ahead of the store, but for --trust-clock', async () => {
    const { data, tokens, as } = await storeWithTokens(2);
    await outcomeOf(['token', 'revoke', tokens[0]?.id ?? '', ...as]);
    const real = Date.now();
    const purge = ['store', 'purge', '--data', data, '--older-than', '90d', '--yes'];
    const ahead = (days: number) =>
      vi.useFakeTimers({ toFake: ['Date'], now: real + days * 86_400_000 });
    onTestFinished(() => void vi.useRealTimers());

    ahead(365);
    // Refused before anybody is asked.
    for (const words of [purge, purge.slice(0, -1)]) {
      await expect(outcomeOf(words)).rejects.toThrow('more than a day ahead of all that the store');
    }
    ahead(0);
    expect((await outcomeOf(['token', 'list', ...as])).json.tokens).toHaveLength(1);
    expect((await outcomeOf(purge)).json).toMatchObject({ purged: 0 });
    ahead(365);
    expect((await outcomeOf([...purge, '--trust-clock'])).json).toMatchObject({ purged: 1 });
  });

  it('counts with --dry-run the records that it would remove, and removes nothing', async () => {
    const { data, tokens, as } = await storeWithTokens(5);
    for (const { id } of tokens.slice(0, 3)) await outcomeOf(['token', 'revoke', id, ...as]);
    for (const revoked = Date.now(); Date.now() === revoked; );
    const purge = (...flags: string[]) => outcomeOf(['store', 'purge', '--data', data, ...flags]);

    const young = await purge('--older-than', '1h', '--dry-run');
    const some = await purge('--older-than', '0s', '--limit', '2', '--dry-run');
    const all = await purge('--older-than', '0s', '--dry-run');
    const purged = await purge('--before', all.json.before.replace(/\.\d+/, ''), '--dry-run');

    expect(young.json).toMatchObject({ found: 0, records: 5 });
    expect(some.json).toMatchObject({ found: 2, records: 5 });
    expect(all.json).toEqual({ found: 3, records: 5, before: expect.stringMatching(/Z$/) });
    expect(purged.json.records).toBe(5);
    expect(all.text).toBe(`would remove 3 of 5 records from SQLite in ${join(data, 'tokens.db')}`);
    expect(all.notes).toBe(
      `nothing was removed; asked for tokens that ended before ${all.json.before}`,
    );
    expect((await purge('--older-than', '0s', '--yes')).json).toMatchObject({ purged: 3 });
  });

  it('removes nothing without a terminal unless --yes confirms it', async () => {
    const { data, as } = await storeWithTokens(1);
    await outcomeOf(['token', 'revoke', '--all', '--yes', ...as]);
    for (const revoked = Date.now(); Date.now() === revoked; );
    const purge = ['store', 'purge', '--data', data, '--older-than', '0d'];

    const ended = await run(purge);

    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(
      /^tokenwright: this would remove the records of tokens that ended before \S+Z from SQLite in \S+tokens\.db: add --yes to confirm\n$/,
    );
    expect((await run([...purge, '--yes'])).stdout).toMatch(/^removed 1 record /);
  });

  it.skipIf(engines.length === 0).each(engines)('counts with --dry-run in %s', async (engine) => {
    const { flags } = newStore(engine);
    await run(['store', 'migrate', ...flags]);
    const counted = await run([
      'store',
      'purge',
      ...flags,
      '--older-than',
      '90d',
      '--dry-run',
      '--json',
    ]);
    expect(counted).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(counted.stdout)).toMatchObject({ found: 0, records: 0 });
  });

  it.each([
    [[], 'either --older-than or --before is required'],
    [['--older-than', '1d', '--before', '2026-01-01'], 'either --older-than or --before'],
    [['--older-than', 'old'], '--older-than must be a number with its unit, like 90d'],
    [['--older-than', '90'], 'like 90d, 12h or 30m: for days write 90d'],
    [['--older-than', '90w'], '--older-than must be a number with its unit'],
    [['--before', 'yesterday'], '--before must be like 2027-01-31'],
    [['--older-than', '1d', '--limit', '0'], '--limit must be a whole number from 1 to 1000000'],
    [['--older-than', '1d'], 'does not exist'],
  ])('refuses %j', async (flags, message) => {
    await expect(outcomeOf(['store', 'purge', '--data', newFolder(), ...flags])).rejects.toThrow(
      message,
    );
  });

  it('prints the output that its help shows', async () => {
    const folder = newFolder();
    const { data, as } = await storeWithTokens(1, join(folder, 'data'));
    await outcomeOf(['token', 'revoke', '--all', '--yes', ...as]);
    const example = exampleOf('store purge');
    const call = example.call.replace('90d', '0s');

    const { stdout } = await runInShell(`cd "$1" && tokenwright ${call}`, join(data, '..'));

    expect(stdout.trimEnd()).toBe(example.output);
  });
});

async function storeWithTokens(count: number, data = newFolder()) {
  makeFolder(data);
  const service = serviceOn(data);
  const tokens = [];
  for (let i = 0; i < count; i++) {
    tokens.push(await service.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] }));
  }
  return { data, tokens, as: ['--data', data, '--account', 'ada'] };
}

describe('commands on a store', () => {
  /** Without it, serve waits for a database that is down. */
  const NO_WAIT = ['--store-wait', '0'];
  const url = 'postgres://ada:canary@127.0.0.1:1/acme';

  it.each([
    [
      'serve',
      ['--store', url, ...NO_WAIT],
      1,
      'PostgreSQL at 127.0.0.1:1/acme cannot be used: nothing',
    ],
    ['store doctor', ['--store', url], 1, 'PostgreSQL at 127.0.0.1:1/acme cannot be used: nothing'],
    [
      'store migrate',
      ['--store', url],
      1,
      'PostgreSQL at 127.0.0.1:1/acme cannot be used: nothing',
    ],
    [
      'store migrate',
      ['--store', 'redis://ada:canary@127.0.0.1:1'],
      1,
      'Redis at 127.0.0.1:1 cannot be',
    ],
    ['store migrate', ['--store', 'redis://ada:canary@nowhere.invalid'], 1, 'no host of that name'],
    [
      'store migrate',
      ['--store', 'redis+cluster://127.0.0.1:1'],
      1,
      'Cluster at 127.0.0.1:1 cannot be',
    ],
    ['serve', ['--store', 'mysql://ada:canary@127.0.0.1:1/acme', ...NO_WAIT], 1, 'MySQL at 127'],
    ['serve', ['--store', 'redis://ada:canary@127.0.0.1:1', ...NO_WAIT], 1, 'Redis at 127.0.0.1:1'],
    ['serve', ['--store', 'postgres//ada:canary@db.example'], 2, 'must begin with one of postgres'],
    ['serve', ['--store', 'postgres://ada:canary@db.example'], 2, 'postgres://user:password@host:'],
    ['serve', ['--store', url, '--tables', 'can ary'], 1, 'tables must be a name'],
    ['serve', ['--tables', 'canary'], 2, '--tables (TOKENWRIGHT_TABLES) needs --store'],
    ['serve', ['--data', url], 2, '--data (TOKENWRIGHT_DATA) must be a folder'],
    ['serve', ['--catalog', url], 1, 'does not exist'],
    ['store migrate', [`--stroe=${url}`], 2, 'has no flag --stroe; did you mean --store? See'],
    ['store migrate', [url], 2, 'Unexpected argument; see tokenwright store migrate --help'],
    [
      'store purge',
      ['--store', url, '--older-than', '1d'],
      1,
      'PostgreSQL at 127.0.0.1:1/acme cannot',
    ],
    ['token', ['list', '--store', url, '--account', 'a'], 1, 'keys.json" does not exist'],
    ['store doctor', ['--store'], 2, 'argument missing'],
    ['serve', ['--max-stale-ms', '60001'], 2, 'must be a whole number from 0 to 60000'],
    ['serve', ['--max-stale-ms', '-1'], 2, 'must be a whole number from 0 to 60000'],
  ])(
    'fail for %s %j with a one-line error that shows no password',
    async (words, flags, code, message) => {
      const environment = { TOKENWRIGHT_DATA: newFolder(), PORT: '0' };

      const ended = await run([...words.split(' '), ...flags], environment);

      expect(ended).toMatchObject({ code, stdout: '' });
      expect(ended.stderr).toContain(message);
      expect(ended.stderr).toMatch(/^tokenwright: .*\n$/);
      expect(ended.stderr).not.toMatch(/can.?ary/);
    },
  );

  it.each([
    ['serve', 'postgres://127.0.0.1:1/acme', 'pg'],
    ['store migrate', 'mysql://127.0.0.1:1/acme', 'mysql2'],
    ['store doctor', 'redis://127.0.0.1:1', 'ioredis'],
    ['serve', 'redis+cluster://127.0.0.1:1', 'ioredis'],
  ])('name the missing package for %s with %s', async (words, store, name) => {
    const environment = { TOKENWRIGHT_DATA: newFolder(), PORT: '0', ...withoutDrivers };

    const ended = await run([...words.split(' '), '--store', store], environment);

    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/^tokenwright: .*\n$/);
    expect(ended.stderr).toContain(`npm install ${name}\n`);
  });
});

/** Simulates an installation without drivers: they are looked up in a folder that has none. */
const withoutDrivers = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from 'node:module';
    const drivers = ['pg', 'mysql2', 'ioredis'];
    registerHooks({
      resolve: (name, context, next) =>
        next(name, drivers.includes(name) ? { ...context, parentURL: 'file:///a.js' } : context),
    });`)}`,
};
