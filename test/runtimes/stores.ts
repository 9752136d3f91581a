// What every runtime with files must do: tokens in SQLite, and the entries of the other databases.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TokenStore } from 'tokenwright';
import { MysqlTokenStore, migrationSql as mysqlSql } from 'tokenwright/mysql';
import { PostgresTokenStore, migrationSql as postgresSql } from 'tokenwright/postgres';
import { RedisTokenStore } from 'tokenwright/redis';
import { SqliteTokenStore } from 'tokenwright/sqlite';
import { codeOf, contract, type Part, verbs } from './program.ts';

const databases: Part = [
  'databases',
  async () => {
    assert.match(postgresSql({ tables: 'acme' }), /CREATE TABLE "acme_tokens"/);
    assert.match(mysqlSql({ tables: 'acme' }), /CREATE TABLE .*`acme_tokens`/);
    const options = { tables: 'not a name' };
    const made: (() => TokenStore)[] = [
      () => new PostgresTokenStore({} as never, options),
      () => new MysqlTokenStore({} as never, options),
      () => new RedisTokenStore({} as never),
    ];
    for (const make of made) {
      assert.equal(await codeOf(Promise.resolve().then(make)), 'invalid_options');
    }
  },
];

export const WITH_SQLITE: readonly Part[] = [
  databases,
  [
    'sqlite',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
      try {
        await verbs(() => SqliteTokenStore.open(folder));
        assert.ok(existsSync(join(folder, 'tokens.db')));
        await contract(() => SqliteTokenStore.open(':memory:'));
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  ],
];

/** Before Node 22.13: it has to say so. */
export const WITHOUT_SQLITE: readonly Part[] = [
  databases,
  [
    'no-sqlite',
    async () => {
      const opened = Promise.resolve().then(() => SqliteTokenStore.open(':memory:'));
      assert.equal(await codeOf(opened), 'invalid_options');
    },
  ],
];
