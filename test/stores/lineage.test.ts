import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import type { TokenStore } from '../../src/store.ts';
import * as mysqlStore from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';
import { RedisTokenStore } from '../../src/stores/redis/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { faultsOf, SCHEDULES } from '../service/lineage-schedules.ts';

const servers = inject('servers');
/** A few of those in memory. */
const RUNS = Math.ceil(Number(process.env['SCHEDULES'] ?? 300) / 100);
const name = () => `lineage_${randomBytes(6).toString('hex')}`;

async function onSqlite(): Promise<TokenStore> {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
  const store = await SqliteTokenStore.open(join(folder, 'tokens.db'));
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  return store;
}

async function onPostgres(): Promise<TokenStore> {
  const pool = new pg.Pool({ connectionString: servers.postgres as string, max: 5 });
  const table = name();
  await postgres.migrate(pool, { table });
  onTestFinished(async () => {
    await pool.query(`DROP TABLE ${table}`);
    await pool.end();
  });
  return new postgres.PostgresTokenStore(pool, { table });
}

async function onMariadb(): Promise<TokenStore> {
  const pool = mysql.createPool({ uri: servers.mariadb as string, connectionLimit: 5 });
  const table = name();
  await mysqlStore.migrate(pool, { table });
  onTestFinished(async () => {
    await pool.query(`DROP TABLE ${table}`);
    await pool.end();
  });
  return new mysqlStore.MysqlTokenStore(pool, { table });
}

async function onRedis(): Promise<TokenStore> {
  const client = new Redis(servers.redis as string);
  onTestFinished(() => client.disconnect());
  return new RedisTokenStore(client, { keyPrefix: name() });
}

const ENGINES: readonly (readonly [string, boolean, () => Promise<TokenStore>])[] = [
  ['SQLite', false, onSqlite],
  ['PostgreSQL', servers.postgres === undefined, onPostgres],
  ['MariaDB', servers.mariadb === undefined, onMariadb],
  ['Redis', servers.redis === undefined, onRedis],
];

describe.each(ENGINES)('derived tokens over %s', (_, isMissing, open) => {
  const test = it.skipIf(isMissing);

  test(`never outlive or exceed an ancestor, in ${RUNS} schedules`, {
    timeout: 3_600_000,
  }, async () => {
    const store = await open();

    await fc.assert(
      fc.asyncProperty(SCHEDULES, async (schedule) => {
        expect(await faultsOf(store, schedule)).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });
});
