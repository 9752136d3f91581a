import { once } from 'node:events';
import { Redis } from 'ioredis';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import {
  leaseContract,
  requestContract,
  storeContract,
  usageContract,
} from '../../../../src/testing/index.ts';
import { fillStore, OWN_DATABASES, onMariadb, onPostgres } from '../../../stores/contents.ts';
import type { StoreEngine } from '../../../stores/engines.ts';
import { exampleOf, outcomeOf, type Run, run, start } from '../support.ts';

const servers = inject('servers');
const LENGTHS = {
  tokens: storeContract.length,
  usage: usageContract.length,
  leases: leaseContract.length,
  requests: requestContract.length,
};
const ALL = Object.values(LENGTHS).reduce((sum, length) => sum + length);

const [POSTGRES, MARIADB, REDIS, , SQLITE] = OWN_DATABASES;

/** As `--store` takes it. */
function storeOf(engine: StoreEngine, url: string): string {
  return engine === 'sqlite' ? `sqlite:${url}` : url;
}

const prove = (engine: StoreEngine, url: string, ...flags: readonly string[]): Promise<Run> =>
  run(['store', 'contract', '--store', storeOf(engine, url), ...flags]);

describe.each(OWN_DATABASES)('store contract on $name', ({ engine, isMissing, open, contents }) => {
  it.skipIf(isMissing)('runs all cases, and leaves the database as it was', async () => {
    const url = await open();
    await fillStore(engine, url);
    const before = await contents(url);

    const { code, stdout, stderr } = await prove(engine, url, '--json');

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ of: ALL, passed: ALL, failed: [] });
    expect(stdout).not.toContain('127.0.0.1');
    expect(await contents(url)).toEqual(before);
  });

  it.skipIf(isMissing).each(['SIGINT', 'SIGTERM'] as const)(
    'removes what it made on %s in the midst of it',
    async (signal) => {
      const url = await open();
      await fillStore(engine, url);
      const before = await contents(url);

      const { child, ended } = start(['store', 'contract', '--store', storeOf(engine, url)]);
      onTestFinished(() => void child.kill('SIGKILL'));
      await added(() => contents(url), before);
      child.kill(signal);
      const [, endedBy] = await once(child, 'exit');
      const { stdout, stderr } = await ended;

      expect({ endedBy, stdout }).toEqual({ endedBy: signal, stdout: '' });
      expect(stderr).toContain('interrupted: ');
      expect(await contents(url)).toEqual(before);
    },
  );
});

/** Waits until there is something more. */
async function added(contents: () => Promise<readonly string[]>, before: readonly string[]) {
  // Each look is an answer of the database, which leaves the turn to others.
  while ((await contents()).length <= before.length);
}

describe('store contract', () => {
  it.each(['tokens', 'usage', 'leases', 'requests'] as const)('checks %s alone', async (part) => {
    const url = (await SQLITE?.open()) as string;
    const outcome = await outcomeOf([
      'store',
      'contract',
      '--store',
      `sqlite:${url}`,
      '--only',
      part,
    ]);

    expect(outcome.json).toMatchObject({ of: LENGTHS[part], passed: LENGTHS[part] });
    expect(outcome).toMatchObject({ isFailed: false });
    expect(outcome.text).toMatch(
      new RegExp(`^SQLite [\\d.]+ keeps all ${LENGTHS[part]} promises \\(node:sqlite, node `),
    );
  });

  it.skipIf(servers.postgres === undefined)('ends with 1 if a promise is broken', async () => {
    const url = (await POSTGRES?.open()) as string;
    await onPostgres(url, (client) => client.query(LOST_UPDATES));

    const { code, stdout } = await prove('postgres', url, '--only', 'leases', '--json');
    const { of, passed, failed } = JSON.parse(stdout);
    const shown = await prove('postgres', url, '--only', 'leases');

    expect(code).toBe(1);
    expect(passed).toBe(of - failed.length);
    expect(failed.map((each: { case: string }) => each.case)).toContain(
      'leases: take: grants at most the limit to a caller who asks for more',
    );
    expect(shown.code).toBe(1);
    expect(shown.stdout).toContain(` keeps ${passed} of ${of} promises (`);
    expect(shown.stdout).toContain('\nleases: take: grants at most the limit');
    expect(await tablesOf(url)).toEqual([]);
  });

  it('shows how many promises there are in its example', () => {
    expect(exampleOf('store contract').output).toContain(` keeps all ${ALL} promises `);
  });

  it('refuses an unknown part', async () => {
    const { code, stderr } = await run(['store', 'contract', '--only', 'records']);
    expect(code).toBe(2);
    expect(stderr).toBe('tokenwright: --only must be tokens, usage, leases or requests\n');
  });
});

describe('store contract that cannot run', () => {
  it.skipIf(servers.postgres === undefined)('says that no table may be created', async () => {
    const url = (await POSTGRES?.open()) as string;
    const role = `reader_${Date.now()}`;
    await onPostgres(url, (client) => client.query(`CREATE ROLE ${role} LOGIN`));
    onTestFinished(
      async () => void (await onPostgres(url, (client) => client.query(`DROP ROLE ${role}`))),
    );

    const reader = Object.assign(new URL(url), { username: role }).href;
    const { code, stdout, stderr } = await prove('postgres', reader, '--json');

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(
      /^tokenwright: PostgreSQL at .*: this user may not create and drop tables/,
    );
    expect(stderr).toMatch(/\(forbidden\)\n$/);
    expect(await tablesOf(url)).toEqual([]);
  });

  it.skipIf(servers.redis === undefined)('says that no key may be written', async () => {
    const url = (await REDIS?.open()) as string;
    const admin = new Redis(url);
    onTestFinished(() => admin.disconnect());
    await admin.acl('SETUSER', 'reader', 'on', 'nopass', '~real*', '+@all');

    const reader = Object.assign(new URL(url), { username: 'reader', password: 'canary' }).href;
    const { code, stderr } = await prove('redis', reader);

    expect(code).toBe(2);
    expect(stderr).toMatch(/\(forbidden\)\n$/);
    expect(stderr).not.toContain('canary');
  });

  it.each([
    [['--store', 'postgres://ada:canary@127.0.0.1:1/acme'], /nothing listens there/],
    [['--store', 'redis://127.0.0.1:1'], /nothing listens there/],
    [['--data', '/nowhere/at/all'], /\(not_opened\)\n$/],
    [['--store', 'oracle://127.0.0.1/acme'], /must begin with one of/],
  ])('ends with 2 for %j', async (flags, message) => {
    const { code, stdout, stderr } = await run(['store', 'contract', ...flags]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain('canary');
  });

  it.skipIf(servers.mariadb === undefined)('names the tables that it may not drop', async () => {
    const url = (await MARIADB?.open()) as string;
    const user = `maker_${Date.now()}`;
    const database = new URL(url).pathname.slice(1);
    await onMariadb(url, async (connection) => {
      await connection.query(`CREATE USER ${user}@'127.0.0.1'`);
      const rights = 'SELECT, INSERT, UPDATE, DELETE, CREATE';
      await connection.query(`GRANT ${rights} ON ${database}.* TO ${user}@'127.0.0.1'`);
    });
    onTestFinished(
      async () => void (await onMariadb(url, (it) => it.query(`DROP USER ${user}@'127.0.0.1'`))),
    );

    const maker = Object.assign(new URL(url), { username: user }).href;
    const { code, stdout, stderr } = await prove('mariadb', maker, '--only', 'usage', '--json');

    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ passed: LENGTHS.usage });
    expect(stderr).toMatch(
      /remove by hand what is left .*: (?:tokenwright_contract_[0-9a-f]{12}_\w+,? ?){4}; /,
    );
  });
});

/** Makes each new table of leases lose its updates. */
const LOST_UPDATES = `
CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END';
CREATE FUNCTION seed() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE made record;
BEGIN
  FOR made IN SELECT object_identity FROM pg_event_trigger_ddl_commands()
    WHERE command_tag = 'CREATE TABLE' AND object_identity LIKE '%_leases'
  LOOP
    EXECUTE format('CREATE TRIGGER lose BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION lose()',
      made.object_identity);
  END LOOP;
END $$;
CREATE EVENT TRIGGER seed ON ddl_command_end EXECUTE FUNCTION seed()`;

async function tablesOf(url: string): Promise<unknown[]> {
  const sql = `SELECT relname FROM pg_class WHERE relname LIKE 'tokenwright_contract_%'`;
  return onPostgres(url, async (client) => (await client.query(sql)).rows);
}
