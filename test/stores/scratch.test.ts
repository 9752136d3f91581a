import { dirname } from 'node:path';
import { Cluster, Redis } from 'ioredis';
import { createPool } from 'mysql2';
import pg from 'pg';
import { createClient } from 'redis';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { storeUnavailable } from '../../src/errors.ts';
import type { Scratch } from '../../src/ports/engine-store.ts';
import * as mysql from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';
import * as redis from '../../src/stores/redis/index.ts';
import { drawName, dropAll } from '../../src/stores/shared/scratch.ts';
import * as sqlite from '../../src/stores/sqlite/index.ts';
import {
  contractReport,
  leaseContract,
  requestContract,
  storeContract,
  usageContract,
} from '../../src/testing/index.ts';
import { fillStore, OWN_DATABASES, onMariadb, onPostgres } from './contents.ts';
import { nodesOf, type StoreEngine } from './engines.ts';
import { newRecord } from './support.ts';

const servers = inject('servers');
const ALL = [storeContract, usageContract, leaseContract, requestContract].flat().length;
const NAME = /^tokenwright_contract_[0-9a-f]{12}/;
/** Long, for busy machines. */
const deadlineMs = 20_000;

function poolOf(url: string | undefined): pg.Pool {
  const pool = new pg.Pool({ connectionString: url });
  onTestFinished(() => pool.end());
  return pool;
}

function mysqlPoolOf(url: string | undefined) {
  const pool = createPool({ uri: url as string });
  onTestFinished(() => pool.promise().end());
  return pool;
}

function redisOf<Client extends Redis | Cluster>(client: Client): Client {
  client.on('error', () => {});
  onTestFinished(() => client.disconnect());
  return client;
}

const SCRATCHES: Readonly<Record<StoreEngine, (url: string) => Promise<Scratch>>> = {
  postgres: (url) => postgres.scratch(poolOf(url), { deadlineMs }),
  mariadb: (url) => mysql.scratch(mysqlPoolOf(url), { deadlineMs }),
  redis: (url) => redis.scratch(redisOf(new Redis(url))),
  redisCluster: (url) => redis.scratch(redisOf(new Cluster(nodesOf(url)))),
  sqlite: (url) => sqlite.scratch(dirname(url)),
};

const NAMES: Readonly<Record<StoreEngine, readonly [engine: RegExp, driver: RegExp]>> = {
  postgres: [/^PostgreSQL \d+\.\d+$/, /^pg \d+\.\d+\.\d+$/],
  mariadb: [/^MariaDB \d+\.\d+\.\d+$/, /^mysql2 \d+\.\d+\.\d+$/],
  redis: [/^Redis \d+\.\d+\.\d+$/, /^ioredis \d+\.\d+\.\d+$/],
  redisCluster: [/^Redis Cluster \d+\.\d+\.\d+$/, /^ioredis \d+\.\d+\.\d+$/],
  sqlite: [/^SQLite \d+\.\d+\.\d+$/, /^node:sqlite$/],
};

describe.each(OWN_DATABASES)('scratch of $name', ({ engine, isMissing, open, contents }) => {
  it.skipIf(isMissing)('keeps all promises, and changes nothing else', async () => {
    const url = await open();
    await fillStore(engine, url);
    const before = await contents(url);

    const scratch = await SCRATCHES[engine](url);
    const report = await contractReport(scratch);
    const during = await contents(url);
    await scratch.drop();

    expect(report).toMatchObject({ of: ALL, passed: ALL, failed: [] });
    expect(report.engine).toMatch(NAMES[engine][0]);
    expect(report.driver).toMatch(NAMES[engine][1]);
    const added = during.filter((each) => !before.includes(each));
    expect(added.length).toBeGreaterThan(0);
    expect(added.every((each) => /(?:^|\b)tokenwright_contract_/.test(each))).toBe(true);
    expect(during.filter((each) => before.includes(each))).toEqual(before);
    expect(await contents(url)).toEqual(before);
  });

  it.skipIf(isMissing)('opens an empty store each time', async () => {
    const scratch = await SCRATCHES[engine](await open());
    const first = await scratch.open();
    await first.insert(newRecord('one'));
    await first.usage.add([{ id: newRecord('one').id, refusals: 1 }]);
    await first.close?.();
    const second = await scratch.open();

    expect(await second.find([newRecord('one').id])).toEqual([undefined]);
    expect(await second.usage.read([newRecord('one').id])).toEqual([undefined]);
    expect(await second.usage.since?.()).toBeInstanceOf(Date);
    await second.close?.();
    await scratch.drop();
  });
});

describe('a name', () => {
  it('is drawn again while it is taken', async () => {
    const drawn: string[] = [];
    const name = await drawName(async (each) => drawn.push(each) === 3);

    expect(new Set(drawn).size).toBe(3);
    expect(drawn.every((each) => NAME.test(each) && each.length === 33)).toBe(true);
    expect(name).toBe(drawn[2]);
  });

  it('is not drawn for ever', async () => {
    await expect(drawName(async () => false)).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it.skipIf(servers.postgres === undefined)(
    'that a table of PostgreSQL has is left to it',
    async () => {
      const url = await OWN_DATABASES[0]?.open();
      const pool = poolOf(url);
      const query = pool.query.bind(pool) as (text: object) => Promise<unknown>;
      let taken: string | undefined;
      Object.assign(pool, {
        async query(statement: { readonly text: string }) {
          const [, table] = /^CREATE TABLE "(\w+_leases)"/.exec(statement.text) ?? [];
          if (table !== undefined && taken === undefined) {
            taken = table;
            await query({ text: `CREATE TABLE ${table} (id integer)` });
          }
          return query(statement);
        },
      });
      const scratch = await postgres.scratch(pool);
      await scratch.drop();

      expect(await tablesOf(url)).toEqual([taken]);
    },
  );

  it.skipIf(servers.mariadb === undefined)(
    'that a table of MariaDB has is left to it',
    async () => {
      const url = await OWN_DATABASES[1]?.open();
      const pool = mysqlPoolOf(url);
      const connect = pool.getConnection.bind(pool);
      let taken: string | undefined;
      pool.getConnection = (callback) =>
        connect((error, connection) => {
          if (error) return callback(error, connection);
          const send = connection.query.bind(connection) as (...args: unknown[]) => unknown;
          const query = (statement: { readonly sql: string }, done: unknown) => {
            const [, table] = /^CREATE TABLE `(\w+_leases)`/.exec(statement.sql) ?? [];
            if (table === undefined || taken !== undefined) return send(statement, done);
            taken = table;
            return send(`CREATE TABLE ${table} (id integer)`, () => send(statement, done));
          };
          return callback(null, Object.assign(Object.create(connection), { query }));
        });
      const scratch = await mysql.scratch(pool);
      await scratch.drop();

      const tables = await onMariadb(url, async (it) => (await it.query('SHOW TABLES'))[0]);
      expect((tables as object[]).flatMap(Object.values)).toEqual([taken]);
    },
  );
});

async function tablesOf(url: string | undefined): Promise<string[]> {
  const sql = `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`;
  return onPostgres(url, async (it) => (await it.query(sql)).rows.map(({ name }) => name));
}

describe('a scratch that cannot be made', () => {
  it.skipIf(servers.postgres === undefined)('names the missing right in PostgreSQL', async () => {
    const url = (await OWN_DATABASES[0]?.open()) as string;
    const role = `reader_${Date.now()}`;
    await onPostgres(url, (it) => it.query(`CREATE ROLE ${role} LOGIN`));
    onTestFinished(async () => void (await onPostgres(url, (it) => it.query(`DROP ROLE ${role}`))));

    const making = postgres.scratch(poolOf(Object.assign(new URL(url), { username: role }).href));
    await expect(making).rejects.toMatchObject({ details: { reason: 'forbidden' } });
    expect(await tablesOf(url)).toEqual([]);
  });

  it.skipIf(servers.mariadb === undefined)('names the missing right in MariaDB', async () => {
    const url = (await OWN_DATABASES[1]?.open()) as string;
    const user = `reader_${Date.now()}`;
    const name = new URL(url).pathname.slice(1);
    await onMariadb(url, async (it) => {
      await it.query(`CREATE USER ${user}@'127.0.0.1'`);
      await it.query(`GRANT SELECT, DROP ON ${name}.* TO ${user}@'127.0.0.1'`);
    });
    onTestFinished(
      async () => void (await onMariadb(url, (it) => it.query(`DROP USER ${user}@'127.0.0.1'`))),
    );

    const making = mysql.scratch(mysqlPoolOf(Object.assign(new URL(url), { username: user }).href));
    await expect(making).rejects.toMatchObject({ details: { reason: 'forbidden' } });
  });

  it.skipIf(servers.redis === undefined)('names the missing right in Redis', async () => {
    const url = (await OWN_DATABASES[2]?.open()) as string;
    const admin = redisOf(new Redis(url));
    await admin.acl('SETUSER', 'reader', 'on', 'nopass', '~real*', '+@all');

    const making = redis.scratch(redisOf(new Redis(url, { username: 'reader', password: 'any' })));
    await expect(making).rejects.toMatchObject({ details: { reason: 'forbidden' } });
    expect(await admin.keys('*')).toEqual([]);
  });

  it('says that there is no folder', async () => {
    const file = (await OWN_DATABASES.at(-1)?.open()) as string;
    const making = sqlite.scratch(`${dirname(file)}/missing`);
    await expect(making).rejects.toMatchObject({ details: { reason: 'not_opened' } });
  });
});

describe('drop', () => {
  it.skipIf(servers.postgres === undefined)(
    'names the tables that are left, and only those',
    async () => {
      const url = (await OWN_DATABASES[0]?.open()) as string;
      const scratch = await postgres.scratch(poolOf(url));
      const tables = (await tablesOf(url)).sort();
      const [leases] = tables;
      await onPostgres(url, (it) => it.query(`CREATE VIEW seen AS SELECT * FROM ${leases}`));

      const failure = await scratch.drop().catch((error) => error);
      expect(failure).toMatchObject({ code: 'store_unavailable' });
      expect(failure.message).toContain(leases);
      expect(failure.message).not.toContain('_tokens');
      expect((await tablesOf(url)).sort()).toEqual(['seen', leases]);

      await onPostgres(url, (it) => it.query('DROP VIEW seen'));
      await scratch.drop();
      expect(await tablesOf(url)).toEqual([]);
    },
  );

  it('goes on after a failure, and names all that is left', async () => {
    const tried: string[] = [];
    const dropping = dropAll(['one', 'two', 'three'], async (name) => {
      tried.push(name);
      if (name === 'one') throw storeUnavailable('busy');
      if (name === 'three') throw new Error('canary');
    });

    await expect(dropping).rejects.toMatchObject({
      code: 'store_unavailable',
      details: { reason: 'busy' },
      message: expect.stringMatching(/one, three; the store is too busy/),
    });
    expect(tried).toEqual(['one', 'two', 'three']);
    await expect(dropAll(tried, async () => {})).resolves.toBeUndefined();
  });

  it.skipIf(servers.redis === undefined)(
    'removes the keys that node-redis has written',
    async () => {
      const url = (await OWN_DATABASES[2]?.open()) as string;
      const client = createClient({ url });
      onTestFinished(() => client.destroy());
      await client.connect();
      await client.set('tokenwright_contract', 'mine');
      const scratch = await redis.scratch(client);
      const report = await contractReport(scratch, { only: 'usage' });
      await scratch.drop();

      expect(report).toMatchObject({ passed: usageContract.length, failed: [] });
      expect(report.driver).toMatch(/^@redis\/client \d+\.\d+\.\d+$/);
      expect(await client.keys('*')).toEqual(['tokenwright_contract']);
    },
  );
});
