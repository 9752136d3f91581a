import type { Cluster, Redis } from 'ioredis';
import type { EngineStore } from '../../../index.ts';
import type { MigrationSqlOptions } from '../../../stores/postgres/index.ts';
import type { Scratch } from '../../../testing/index.ts';
import { optionalPackage } from '../optional-package.ts';
import { IOREDIS_CLOSED } from './connect-errors.ts';
import type { Address, EngineName } from './url.ts';

/** Calls of `tokenwright serve` that wait for a connection to MySQL. @bound */
export const MAX_POOL_QUEUE = 1000;

/** Connections of `tokenwright serve` to PostgreSQL or MySQL. @bound */
export const POOL_CONNECTIONS = 10;

const CONNECT_MS = 2000;
const STATEMENT_MS = 2000;
/** The limit for a whole `connect`: drivers count only a part of it. */
export const MAX_CONNECT_MS = CONNECT_MS + 1000;
const MAX_PAUSE_MS = 500;
/** How long calls may take while promises are checked: what counts is whether the answer is right. */
export const PATIENCE_MS = 20_000;

/** A database that speaks as PostgreSQL does, and needs other SQL for its tables. */
export type SqlDialect = NonNullable<MigrationSqlOptions['dialect']>;

interface Engine {
  /** The SQL of all tables. A dialect is only of PostgreSQL. */
  migrationSql?(tables: string | undefined, dialect: SqlDialect | undefined): Promise<string>;
  /**
   * Loads the driver. Does not connect yet.
   *
   * @param deadlineMs for calls of a scratch
   */
  open(address: Address, tables: string | undefined, deadlineMs?: number): Promise<Client>;
}

interface Client {
  readonly store: EngineStore;
  /** The version of the schema that the store writes. */
  readonly schema: number;
  connect(): Promise<unknown>;
  migrate?(): Promise<void>;
  scratch(): Promise<Scratch>;
  end(): Promise<unknown>;
}

const postgres: Engine = {
  migrationSql: async (tables, dialect) =>
    (await import('../../../stores/postgres/index.ts')).migrationSql({ tables, dialect }),
  async open({ url, prepare }, tables, deadlineMs = STATEMENT_MS) {
    const { default: pg } = await driver('pg', () => import('pg'));
    const engine = await import('../../../stores/postgres/index.ts');
    const pool = new pg.Pool({
      connectionString: url,
      application_name: 'tokenwright',
      max: POOL_CONNECTIONS,
      connectionTimeoutMillis: deadlineMs,
      statement_timeout: deadlineMs,
      keepAlive: true,
    });
    const store = new engine.PostgresTokenStore(pool, { tables, prepare });
    return {
      store,
      schema: schemaIn(engine.migrationSql({ tables })),
      connect: async () => (await pool.connect()).release(),
      migrate: () => engine.migrate(pool, { tables }),
      scratch: () => engine.scratch(pool, { deadlineMs, prepare }),
      end: () => pool.end(),
    };
  },
};

const mysql: Engine = {
  migrationSql: async (tables) =>
    (await import('../../../stores/mysql/index.ts')).migrationSql({ tables }),
  async open({ url, prepare }, tables, deadlineMs) {
    const { createPool } = await driver('mysql2', () => import('mysql2'));
    const engine = await import('../../../stores/mysql/index.ts');
    const pool = createPool({
      uri: url,
      connectionLimit: POOL_CONNECTIONS,
      queueLimit: MAX_POOL_QUEUE,
      connectTimeout: CONNECT_MS,
      enableKeepAlive: true,
    });
    const store = new engine.MysqlTokenStore(pool, { tables, prepare });
    return {
      store,
      schema: schemaIn(engine.migrationSql({ tables })),
      async connect() {
        const connection = await pool.promise().getConnection();
        connection.release();
      },
      migrate: () => engine.migrate(pool, { tables }),
      scratch: () => engine.scratch(pool, { deadlineMs, prepare }),
      end: () => pool.promise().end(),
    };
  },
};

/** With these, commands fail immediately while the server is down. */
const REDIS_OPTIONS = {
  lazyConnect: true,
  connectTimeout: CONNECT_MS,
  // Longer than a write waits for replicas.
  socketTimeout: 600,
  maxRetriesPerRequest: 1,
  keepAlive: 1000,
} as const;

const redis: Engine = {
  async open({ url, database, parameters }, keyPrefix) {
    const { Redis } = await driver('ioredis', () => import('ioredis'));
    const client = new Redis(url, {
      ...REDIS_OPTIONS,
      enableOfflineQueue: false,
      retryStrategy: pauseMs,
    });
    const opened = await openRedis(client, keyPrefix, parameters);
    return {
      ...opened,
      async connect() {
        await opened.connect();
        // ioredis goes on with database 0 if this one does not exist.
        if (database !== '') await client.select(database);
      },
    };
  },
};

const redisCluster: Engine = {
  async open({ hosts, user, password, parameters }, keyPrefix) {
    const { Cluster } = await driver('ioredis', () => import('ioredis'));
    const client = new Cluster(
      hosts.map(({ host, port = 6379 }) => ({ host: host.replace(/^\[|\]$/g, ''), port })),
      {
        lazyConnect: true,
        enableOfflineQueue: false,
        clusterRetryStrategy: pauseMs,
        slotsRefreshTimeout: 500,
        redisOptions: {
          ...REDIS_OPTIONS,
          ...(user !== '' && { username: user }),
          ...(password !== '' && { password }),
        },
      },
    );
    return openRedis(client, keyPrefix, parameters);
  },
};

export const ENGINES: Readonly<Record<EngineName, Engine>> = {
  postgres,
  mysql,
  redis,
  redisCluster,
};

function driver<Module>(name: string, load: () => Promise<Module>): Promise<Module> {
  return optionalPackage(name, 'a store of this kind', load);
}

/** The version of the schema, of which the SQL that makes it marks the table of tokens. */
function schemaIn(sql: string): number {
  return Number(/tokenwright schema (\d+)/.exec(sql)?.[1]);
}

function pauseMs(attempt: number): number {
  return Math.min(50 * attempt, MAX_PAUSE_MS);
}

async function openRedis(
  client: Redis | Cluster,
  keyPrefix: string | undefined,
  parameters: URLSearchParams,
): Promise<Client> {
  const engine = await import('../../../stores/redis/index.ts');
  // The number of replicas depends on the server, and so it belongs to the URL.
  const replicas = parameters.get('replicas');
  const options = {
    // Anything but digits is NaN, which the store refuses.
    replicas: replicas === null ? undefined : Number(/^\d+$/.test(replicas) ? replicas : 'none'),
  };
  const store = new engine.RedisTokenStore(client, { ...options, keyPrefix });
  const { LAYOUT: schema } = await import('../../../stores/redis/layout.ts');
  return {
    store,
    schema,
    connect: () => connected(client),
    scratch: () => engine.scratch(client, options),
    end: async () => client.disconnect(),
  };
}

/** Connects, or rejects with the reason, which ioredis emits, and prints without a listener. */
async function connected(client: Redis | Cluster): Promise<void> {
  let reason: Error | undefined;
  client.on('error', (error: Error & { readonly lastNodeError?: Error }) => {
    const { lastNodeError = error } = error;
    // A cluster reports only this for a node that it never reached.
    reason = lastNodeError.message === IOREDIS_CLOSED ? error : lastNodeError;
  });
  try {
    await client.connect();
  } catch (error) {
    throw reason ?? error;
  }
}
