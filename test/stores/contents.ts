// Databases of a test's own, and all that is in them, to see that something else in them stays as it is.
import { createHash, randomBytes } from 'node:crypto';
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import { startCluster, startServer } from '../servers.ts';
import { nodesOf, openStore, prepareStore, type StoreEngine, type StorePlace } from './engines.ts';
import { newRecord } from './support.ts';

const servers = inject('servers');

/** What is in a database: the names and a hash of the content of each table, key or file. */
export type Contents = readonly string[];

export interface OwnDatabase {
  readonly name: string;
  readonly engine: StoreEngine;
  readonly isMissing: boolean;
  /** A database that no other test uses; its URL. Removed when the test ends. */
  open(): Promise<string>;
  contents(url: string): Promise<Contents>;
}

export const OWN_DATABASES: readonly OwnDatabase[] = [
  {
    name: 'PostgreSQL',
    engine: 'postgres',
    isMissing: servers.postgres === undefined,
    async open() {
      const name = newName();
      await onPostgres(servers.postgres, (client) => client.query(`CREATE DATABASE ${name}`));
      const drop = `DROP DATABASE ${name} WITH (FORCE)`;
      onTestFinished(async () => void (await onPostgres(servers.postgres, (it) => it.query(drop))));
      return withDatabase(servers.postgres, name);
    },
    contents: (url) => onPostgres(url, contentsOfPostgres),
  },
  {
    name: 'MariaDB',
    engine: 'mariadb',
    isMissing: servers.mariadb === undefined,
    async open() {
      const name = newName();
      await onMariadb(servers.mariadb, (connection) => connection.query(`CREATE DATABASE ${name}`));
      const drop = `DROP DATABASE ${name}`;
      onTestFinished(async () => void (await onMariadb(servers.mariadb, (it) => it.query(drop))));
      return withDatabase(servers.mariadb, name);
    },
    contents: (url) => onMariadb(url, contentsOfMariadb),
  },
  {
    name: 'Redis',
    engine: 'redis',
    isMissing: servers.redis === undefined,
    async open() {
      const server = await startServer('redis');
      onTestFinished(() => server.stop());
      return server.url;
    },
    contents: contentsOfRedis,
  },
  {
    // Only in the long lane: its nodes are started for each test.
    name: 'Redis Cluster (further)',
    engine: 'redisCluster',
    isMissing: servers.redisCluster === undefined,
    async open() {
      const cluster = await startCluster();
      onTestFinished(() => cluster.stop());
      return cluster.url;
    },
    async contents(url) {
      const nodes = nodesOf(url).map(({ host, port }) =>
        contentsOfRedis(`redis://${host}:${port}`),
      );
      return [...new Set((await Promise.all(nodes)).flat())].sort();
    },
  },
  {
    name: 'SQLite',
    engine: 'sqlite',
    isMissing: false,
    async open() {
      const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      return join(folder, 'tokens.db');
    },
    contents: async (file) =>
      globSync('**', { cwd: join(file, '..'), withFileTypes: false })
        .sort()
        .map((name) => `${name} ${hashOfFile(join(file, '..', name))}`),
  },
];

/** Fills the store that a service would use with tokens, uses and leases. */
export async function fillStore(engine: StoreEngine, url: string): Promise<void> {
  const place: StorePlace = { engine, url, name: 'tokenwright' };
  await prepareStore(place);
  const { store, close } = openStore(place);
  const record = newRecord('real');
  const until = new Date(Date.now() + 86_400_000);
  await store.insert(record);
  await store.insert(newRecord('revoked'));
  await store.revoke(newRecord('revoked').id, 'acme', new Date());
  await store.usage.add([
    { id: record.id, scope: 'GET:shop.example/orders', uses: 3, lastUsedAt: new Date() },
  ]);
  await store.leases.take([{ key: `${record.id}/uses`, window: 0, limit: 9, want: 2, until }]);
  await close();
}

function newName(): string {
  return `own_${randomBytes(6).toString('hex')}`;
}

function withDatabase(url = '', name: string): string {
  return Object.assign(new URL(url), { pathname: `/${name}` }).href;
}

export async function onPostgres<Result>(
  url: string | undefined,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

export async function onMariadb<Result>(
  url: string | undefined,
  use: (connection: mysql.Connection) => Promise<Result>,
): Promise<Result> {
  const connection = await mysql.createConnection({ uri: url as string });
  try {
    return await use(connection);
  } finally {
    await connection.end();
  }
}

async function contentsOfPostgres(client: pg.Client): Promise<Contents> {
  const { rows: objects } = await client.query<{ name: string }>(
    `SELECT concat_ws(' ', n.nspname, c.relname, c.relkind, obj_description(c.oid)) AS name
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY 1`,
  );
  const { rows: tables } = await client.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1`,
  );
  const hashes: string[] = [];
  for (const { name } of tables) {
    const { rows } = await client.query(
      `SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) AS hash FROM "${name}" t`,
    );
    hashes.push(`${name} ${rows[0]?.hash}`);
  }
  return [...objects.map(({ name }) => name), ...hashes];
}

async function contentsOfMariadb(connection: mysql.Connection): Promise<Contents> {
  const [tables] = await connection.query<mysql.RowDataPacket[]>(
    `SELECT TABLE_NAME AS name, TABLE_COMMENT AS comment FROM information_schema.TABLES
     WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1`,
  );
  const contents: string[] = [];
  for (const { name, comment } of tables) {
    const [rows] = await connection.query<mysql.RowDataPacket[]>(`CHECKSUM TABLE \`${name}\``);
    contents.push(`${name} ${comment} ${rows[0]?.['Checksum']}`);
  }
  return contents;
}

async function contentsOfRedis(url: string): Promise<Contents> {
  const client = new Redis(url);
  try {
    // A replica refuses `DUMP` of what its primary has, which is looked at as well.
    const keys = (await client.keys('*')).sort();
    const dumps = keys.map((key) => client.dumpBuffer(key).catch(() => undefined));
    const found = await Promise.all(dumps);
    return keys.flatMap((key, index) => {
      const dump = found[index];
      return dump ? [`${key} ${hashOf(dump)}`] : [];
    });
  } finally {
    client.disconnect();
  }
}

function hashOfFile(path: string): string {
  return statSync(path).isDirectory() ? 'a folder' : hashOf(readFileSync(path));
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
