import { randomBytes } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { inject, onTestFinished } from 'vitest';
import type { Engine } from '../../servers.ts';

const servers = inject('servers');

/** The engines that are running. */
export const engines = Object.keys(servers) as Engine[];
export const sqlEngines = engines.filter((engine) => engine === 'postgres' || engine === 'mariadb');

/** A new store on the server of an engine. Its data is removed when the test ends. */
export interface NewStore {
  readonly url: string;
  readonly tables: string;
  /** The flags with which a command uses it. */
  readonly flags: readonly string[];
}

export function newStore(engine: Engine): NewStore {
  const url = servers[engine] ?? '';
  const tables = `cli_${randomBytes(6).toString('hex')}`;
  onTestFinished(() => REMOVALS[engine](tables));
  return { url, tables, flags: ['--store', url, '--tables', tables] };
}

/** Runs SQL on the server of an engine, or where a URL says. */
export async function runSql(
  engine: Engine,
  sql: string,
  url = servers[engine] ?? '',
): Promise<void> {
  const pool =
    engine === 'postgres'
      ? new Pool({ connectionString: url })
      : createPool({ uri: url, multipleStatements: true });
  await (pool as { query(sql: string): Promise<unknown> }).query(sql);
  await pool.end();
}

const REMOVALS: Readonly<Record<Engine, (tables: string) => Promise<void>>> = {
  postgres: (tables) =>
    runSql(
      'postgres',
      `DROP TABLE IF EXISTS ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`,
    ),
  mariadb: (tables) =>
    runSql(
      'mariadb',
      `DROP TABLE IF EXISTS ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`,
    ),
  async redis(prefix) {
    const client = new Redis(servers.redis ?? '');
    await removeKeys(client, prefix);
    client.disconnect();
  },
  async redisCluster(prefix) {
    const [, nodes = ''] = servers.redisCluster?.split('://') ?? [];
    const cluster = new Cluster(nodes.split(',').map((node) => `redis://${node}`));
    await cluster.ping();
    await Promise.all(cluster.nodes('master').map((node) => removeKeys(node, prefix)));
    cluster.disconnect();
  },
};

async function removeKeys(client: Redis, prefix: string): Promise<void> {
  const keys = await client.keys(`${prefix}:*`);
  await Promise.all(keys.map((key) => client.unlink(key)));
}
