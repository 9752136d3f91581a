// What a host learns from databases that are not as they should be: for each state the reason and its sentence,
// and nothing that a driver said.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Redis, type RedisOptions } from 'ioredis';
import { createPool, type PoolOptions } from 'mysql2';
import pg from 'pg';
import { createClient } from 'redis';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { type StoreReason, sentenceOf } from '../../src/errors.ts';
import type { TokenEvent } from '../../src/events.ts';
import { tokenHandler } from '../../src/http/index.ts';
import { generateKey, TokenService } from '../../src/index.ts';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import * as mysql from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';
import { RedisTokenStore } from '../../src/stores/redis/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import type { Token } from '../../src/token/record.ts';
import { tlsPort } from '../certificate.ts';
import { freePort, isInstalled, startServer } from '../servers.ts';
import { refusalOf } from '../support.ts';
import { newName } from './database-hosts.ts';
import { newFile } from './sqlite/handles.ts';

const urls = inject('servers');

/** What a state breaks: an engine with a token that has limited uses. */
interface Place {
  readonly store: EngineStore;
  /** Another store on the same records. */
  again(settings?: object): EngineStore;
  /** Runs a statement, or a command with its arguments, as an administrator. */
  run(...statement: string[]): Promise<unknown>;
  /** The beginning of the names of its tables or keys, or its folder. */
  readonly name: string;
  readonly url?: string;
}

type Call = (tokens: TokenService, token: Token & { readonly value: string }) => Promise<unknown>;

interface State {
  readonly state: string;
  readonly reason: StoreReason;
  readonly store?: 'usage' | 'leases';
  /** Breaks the place; the store that is broken by it. */
  readonly make: (place: Place) => EngineStore | Promise<EngineStore>;
  readonly call?: Call;
}

const CALLS = {
  get: (tokens, { id }) => tokens.get('acme', id),
  issue: (tokens) => tokens.issue({ account: 'acme', scopes: [SCOPE], name: '日本' }),
  usage: (tokens, { id }) => tokens.usage('acme', id),
  verify: (tokens, { value }) => tokens.verify(value, { scope: SCOPE }),
} satisfies Record<string, Call>;

const SCOPE = 'GET:shop.example/orders';
const keys = [generateKey()];
/** In names of users and databases, and in what the databases say. */
const CANARY = 'canary';

/** Of the answers of all states, which must not differ. */
const wire = new Set<string>();

function serviceOver(store: EngineStore, onEvent?: (event: TokenEvent) => void): TokenService {
  return new TokenService({
    store,
    keys,
    prefix: 'acme',
    usage: true,
    limits: true,
    ...(onEvent && { onEvent }),
  });
}

async function expectReason(place: Place, { reason, store, make, call = CALLS.get }: State) {
  const healthy = serviceOver(place.store);
  const token = await healthy.issue({ account: 'acme', scopes: [SCOPE], limits: { uses: 9 } });
  for (const use of [CALLS.verify, CALLS.usage]) await use(healthy, token);
  const events: TokenEvent[] = [];
  const tokens = serviceOver(await make(place), (event) => events.push(event));

  const { code, message, details: told } = await refusalOf(call(tokens, token));
  const details = { reason, ...(store && { store }) };
  expect(code).toMatch(/^store_(unavailable|corrupt)$/);
  expect(message).toBe(sentenceOf({ code, reason }));
  expect(told).toEqual(details);
  const trouble = events.filter(({ type }) => type === 'store_trouble');
  expect(trouble).toContainEqual(expect.objectContaining({ code, ...details }));
  expect(JSON.stringify(trouble)).not.toMatch(/canary|127\.0\.0\.1|side_/);
  await rememberAnswer(tokens);
}

/** What a client sees, if the state fails its call. */
async function rememberAnswer(tokens: TokenService): Promise<void> {
  const handler = tokenHandler({ tokens, authenticate: () => 'acme' });
  const headers = { authorization: `Basic ${btoa('acme:x')}` };
  const answer = await handler(new Request('http://shop.example/token', { headers }));
  const body = await answer.text();
  if (!body.includes('"code":"store_unavailable"')) return;
  wire.add(JSON.stringify([answer.status, [...answer.headers], body]));
}

function expectReasons(name: string, isMissing: boolean, make: () => Promise<Place>, all: State[]) {
  describe.skipIf(isMissing)(`a broken database of ${name}`, () => {
    it.each(all)('$state: $reason', async (state) => {
      await expectReason(await make(), state);
    });

    it('fails no call if it is not broken (the control)', async () => {
      const place = await make();
      const tokens = serviceOver(place.again());
      const token = await tokens.issue({ account: 'acme', scopes: [SCOPE], limits: { uses: 9 } });
      for (const call of Object.values(CALLS)) expect(await call(tokens, token)).toBeDefined();
    });

    it('is the same for clients over HTTP, whatever the reason', () => {
      expect(all.length).toBeGreaterThanOrEqual(14);
      expect(wire.size).toBe(1);
    });
  });
}

/** The port of a server that takes connections and never answers, or says this. */
async function mutePort(text?: string): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    if (text !== undefined) socket.end(text);
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as { port: number }).port;
}

// PostgreSQL

function postgresPool(config: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({
    connectionString: urls.postgres,
    connectionTimeoutMillis: 2000,
    ...config,
  });
  pool.on('error', () => {});
  onTestFinished(async () => void (pool.ended || (await pool.end())));
  return pool;
}

async function onPostgres(): Promise<Place> {
  const tables = newName();
  const admin = postgresPool();
  await postgres.migrate(admin, { tables });
  onTestFinished(async () => {
    const pool = new pg.Pool({ connectionString: urls.postgres });
    for (const part of PARTS) await pool.query(`DROP TABLE IF EXISTS ${tables}_${part} CASCADE`);
    await pool.end();
  });
  const again = ({ max, ...settings }: pg.PoolConfig & { deadlineMs?: number } = {}) => {
    const { deadlineMs, ...config } = settings;
    const pool = postgresPool({ ...config, ...(max && { max }) });
    return new postgres.PostgresTokenStore(pool, { tables, ...(deadlineMs && { deadlineMs }) });
  };
  return { store: again(), again, run: (sql) => admin.query(sql), name: tables };
}

const PARTS = ['tokens', 'usage', 'leases'];

/** Lets each new row fail as the database says it, with a text that must not get out. */
const raising =
  (state: string): State['make'] =>
  async ({ again, run, name }) => {
    await run(`CREATE FUNCTION ${name}_raise() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE '${CANARY}' USING ERRCODE = '${state}'; END $$`);
    onTestFinished(async () => {
      const pool = new pg.Pool({ connectionString: urls.postgres });
      await pool.query(`DROP FUNCTION ${name}_raise() CASCADE`);
      await pool.end();
    });
    await run(`CREATE TRIGGER raising BEFORE INSERT ON ${name}_tokens
      FOR EACH ROW EXECUTE FUNCTION ${name}_raise()`);
    return again();
  };

const urlOf = (change: (url: URL) => void, url = urls.postgres): string => {
  const changed = new URL(url as string);
  change(changed);
  return changed.href;
};

const dropping =
  (part: string): State['make'] =>
  async ({ again, run, name }) => {
    await run(`DROP TABLE ${name}_${part}`);
    return again();
  };

expectReasons('PostgreSQL', urls.postgres === undefined, onPostgres, [
  { state: 'no table of tokens', reason: 'schema_missing', make: dropping('tokens') },
  {
    state: 'no table of usage',
    reason: 'schema_missing',
    store: 'usage',
    make: dropping('usage'),
    call: CALLS.usage,
  },
  {
    state: 'no table of leases',
    reason: 'schema_missing',
    store: 'leases',
    make: dropping('leases'),
    call: CALLS.verify,
  },
  {
    state: 'a column less',
    reason: 'schema_older',
    async make({ again, run, name }) {
      await run(`ALTER TABLE ${name}_tokens DROP COLUMN prefix`);
      return again();
    },
  },
  {
    state: 'a role without rights',
    reason: 'forbidden',
    async make({ again, run }) {
      const role = `${CANARY}_${newName()}`;
      await run(`CREATE ROLE ${role}`);
      onTestFinished(async () => {
        const pool = new pg.Pool({ connectionString: urls.postgres });
        await pool.query(`DROP ROLE ${role}`);
        await pool.end();
      });
      return again({ options: `-c role=${role}` });
    },
  },
  {
    state: 'a role that does not exist',
    reason: 'credentials',
    make: ({ again }) =>
      again({ connectionString: urlOf((url) => Object.assign(url, { username: CANARY })) }),
  },
  {
    state: 'a database that does not exist',
    reason: 'no_database',
    make: ({ again }) =>
      again({ connectionString: urlOf((url) => Object.assign(url, { pathname: `/${CANARY}` })) }),
  },
  {
    state: 'a role that may not connect again',
    reason: 'busy',
    async make({ again, run }) {
      const role = `${CANARY}_${newName()}`;
      await run(`CREATE ROLE ${role} LOGIN CONNECTION LIMIT 0`);
      onTestFinished(async () => {
        const pool = new pg.Pool({ connectionString: urls.postgres });
        await pool.query(`DROP ROLE ${role}`);
        await pool.end();
      });
      return again({ connectionString: urlOf((url) => Object.assign(url, { username: role })) });
    },
  },
  {
    state: 'a pooler that changes the connection',
    reason: 'pooler',
    async make({ name }) {
      const pool = postgresPool({ max: 1 });
      const store = new postgres.PostgresTokenStore(pool, { tables: name });
      await serviceOver(store).get('acme', 'x'.repeat(22));
      await pool.query('DEALLOCATE ALL');
      return store;
    },
  },
  {
    state: 'a read-only session',
    reason: 'standby',
    make: ({ again }) => again({ options: '-c default_transaction_read_only=on' }),
    call: CALLS.issue,
  },
  { state: 'a server without TLS', reason: 'tls', make: ({ again }) => again({ ssl: true }) },
  {
    state: 'a certificate that nobody trusts',
    reason: 'tls',
    make: async ({ again }) =>
      again({
        connectionString: `postgres://x@127.0.0.1:${await tlsPort(newFile())}/x`,
        ssl: true,
      }),
  },
  {
    state: 'a server that is down',
    reason: 'unreachable',
    async make({ again }) {
      const port = await freePort();
      return again({ connectionString: `postgres://${CANARY}@127.0.0.1:${port}/${CANARY}` });
    },
  },
  {
    state: 'a host without address',
    reason: 'unreachable',
    make: ({ again }) => again({ connectionString: `postgres://x@${CANARY}.invalid/x` }),
  },
  {
    state: 'a server that hangs',
    reason: 'timeout',
    async make({ again }) {
      const port = await mutePort();
      return again({
        connectionString: `postgres://x@127.0.0.1:${port}/x`,
        connectionTimeoutMillis: 200,
      });
    },
  },
  {
    state: 'a table that is locked',
    reason: 'timeout',
    async make({ again, run, name }) {
      await run('SELECT 1');
      const pool = postgresPool();
      const other = await pool.connect();
      await other.query('BEGIN');
      await other.query(`LOCK TABLE ${name}_tokens`);
      onTestFinished(async () => {
        await other.query('ROLLBACK');
        other.release();
      });
      return again({ deadlineMs: 300 });
    },
  },
  {
    state: 'a full disk',
    reason: 'full',
    make: raising('53100'),
    call: CALLS.issue,
  },
  {
    state: 'a feature that it lacks',
    reason: 'unsupported',
    make: raising('0A000'),
    call: CALLS.issue,
  },
  {
    state: 'an error that nobody knows',
    reason: 'unknown',
    make: raising('ZZ001'),
    call: CALLS.issue,
  },
  {
    state: 'an encoding without the characters',
    reason: 'encoding',
    async make({ run }) {
      const database = newName();
      await run(`CREATE DATABASE ${database} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
      onTestFinished(async () => {
        const pool = new pg.Pool({ connectionString: urls.postgres });
        await pool.query(`DROP DATABASE ${database} WITH (FORCE)`);
        await pool.end();
      });
      const connectionString = urlOf((url) => Object.assign(url, { pathname: `/${database}` }));
      const pool = postgresPool({ connectionString });
      await pool.query(postgres.migrationSql());
      return new postgres.PostgresTokenStore(pool);
    },
    call: CALLS.issue,
  },
  {
    state: 'a pool that was ended',
    reason: 'closed',
    async make({ name }) {
      const pool = postgresPool();
      await pool.end();
      return new postgres.PostgresTokenStore(pool, { tables: name });
    },
  },
]);

// MariaDB

function mariadbPool(options: PoolOptions = {}) {
  const pool = createPool({ uri: urls.mariadb as string, connectTimeout: 2000, ...options });
  onTestFinished(() =>
    pool
      .promise()
      .end()
      .catch(() => {}),
  );
  return pool;
}

async function onMariadb(): Promise<Place> {
  const tables = newName();
  const admin = mariadbPool();
  await mysql.migrate(admin, { tables });
  onTestFinished(async () => {
    const pool = createPool({ uri: urls.mariadb as string }).promise();
    for (const part of PARTS) await pool.query(`DROP TABLE IF EXISTS ${tables}_${part}`);
    await pool.end();
  });
  const again = ({ deadlineMs, ...options }: PoolOptions & { deadlineMs?: number } = {}) =>
    new mysql.MysqlTokenStore(mariadbPool(options), { tables, ...(deadlineMs && { deadlineMs }) });
  return { store: again(), again, run: (sql) => admin.promise().query(sql), name: tables };
}

const signaling =
  (number: number): State['make'] =>
  async ({ again, run, name }) => {
    await run(`CREATE TRIGGER ${name}_raise BEFORE INSERT ON ${name}_tokens FOR EACH ROW
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '${CANARY}', MYSQL_ERRNO = ${number}`);
    return again();
  };

/** A user of the server, with these rights. */
async function newUser(run: Place['run'], rights = ''): Promise<string> {
  const user = `${CANARY}_${newName()}`.slice(0, 30);
  await run(`CREATE USER ${user}@'127.0.0.1' IDENTIFIED BY '${CANARY}'`);
  if (rights !== '') await run(`GRANT ${rights} TO ${user}@'127.0.0.1'`);
  onTestFinished(async () => {
    const pool = createPool({ uri: urls.mariadb as string }).promise();
    await pool.query(`DROP USER ${user}@'127.0.0.1'`);
    await pool.end();
  });
  return user;
}

expectReasons('MariaDB', urls.mariadb === undefined, onMariadb, [
  { state: 'no table of tokens', reason: 'schema_missing', make: dropping('tokens') },
  {
    state: 'no table of usage',
    reason: 'schema_missing',
    store: 'usage',
    make: dropping('usage'),
    call: CALLS.usage,
  },
  {
    state: 'no table of leases',
    reason: 'schema_missing',
    store: 'leases',
    make: dropping('leases'),
    call: CALLS.verify,
  },
  {
    state: 'a column less',
    reason: 'schema_older',
    async make({ again, run, name }) {
      await run(`ALTER TABLE ${name}_tokens DROP COLUMN requested`);
      return again();
    },
  },
  {
    state: 'a user without rights on the table',
    reason: 'forbidden',
    async make({ again, run, name }) {
      const user = await newUser(run, `SELECT ON ${name}_usage`);
      return again({ user, password: CANARY });
    },
  },
  {
    state: 'a user without rights on the database',
    reason: 'forbidden',
    make: async ({ again, run }) => again({ user: await newUser(run), password: CANARY }),
  },
  {
    state: 'a wrong password',
    reason: 'credentials',
    make: async ({ again, run }) => again({ user: await newUser(run), password: `not ${CANARY}` }),
  },
  {
    state: 'a database that does not exist',
    reason: 'no_database',
    make: ({ again }) => again({ database: CANARY }),
  },
  {
    state: 'no database',
    reason: 'no_database',
    make: ({ again }) => again({ uri: (urls.mariadb as string).replace(/[a-z]+$/, '') }),
  },
  {
    state: 'a user who may not connect again',
    reason: 'busy',
    async make({ again, run }) {
      const user = await newUser(run);
      await run(`GRANT ALL ON *.* TO ${user}@'127.0.0.1' WITH MAX_USER_CONNECTIONS 1`);
      const held = mariadbPool({ user, password: CANARY });
      await held.promise().query('SELECT 1');
      return again({ user, password: CANARY });
    },
  },
  {
    state: 'a read-only session',
    reason: 'standby',
    make({ name }) {
      const pool = mariadbPool();
      pool.on('connection', (connection) => {
        connection.query('SET SESSION TRANSACTION READ ONLY');
      });
      return new mysql.MysqlTokenStore(pool, { tables: name });
    },
    call: CALLS.issue,
  },
  { state: 'a server without TLS', reason: 'tls', make: ({ again }) => again({ ssl: {} }) },
  {
    state: 'a server that is down',
    reason: 'unreachable',
    make: async ({ again }) => again({ uri: `mysql://${CANARY}@127.0.0.1:${await freePort()}/x` }),
  },
  {
    state: 'a host without address',
    reason: 'unreachable',
    make: ({ again }) => again({ uri: `mysql://x@${CANARY}.invalid/x` }),
  },
  {
    state: 'a server that hangs',
    reason: 'timeout',
    make: async ({ again }) =>
      again({ uri: `mysql://x@127.0.0.1:${await mutePort()}/x`, connectTimeout: 200 }),
  },
  { state: 'a full disk', reason: 'full', make: signaling(1114), call: CALLS.issue },
  {
    state: 'no room for statements',
    reason: 'prepared_full',
    make: signaling(1461),
    call: CALLS.issue,
  },
  {
    state: 'a feature that it lacks',
    reason: 'unsupported',
    make: signaling(1235),
    call: CALLS.issue,
  },
  {
    state: 'a character set without the characters',
    reason: 'encoding',
    make: signaling(1366),
    call: CALLS.issue,
  },
  {
    state: 'an error that nobody knows',
    reason: 'unknown',
    make: signaling(31_999),
    call: CALLS.issue,
  },
  {
    state: 'a pool that was ended',
    reason: 'closed',
    async make({ name }) {
      const pool = mariadbPool();
      await pool.promise().end();
      return new mysql.MysqlTokenStore(pool, { tables: name });
    },
  },
]);

// Redis

type Login = Pick<RedisOptions, 'username' | 'password' | 'lazyConnect'>;

function redisClient(url: string, options: Login = {}): Redis {
  const client = new Redis(url, { maxRetriesPerRequest: 1, ...(options as object) });
  client.on('error', () => {});
  onTestFinished(() => client.disconnect());
  return client;
}

/** A server of its own, since most states are settings of the server. */
async function onRedis(): Promise<Place> {
  const server = await startServer('redis');
  onTestFinished(() => server.stop());
  const admin = redisClient(server.url);
  const again = ({ url, ...login }: Login & { url?: string } = {}) =>
    new RedisTokenStore(redisClient(url ?? server.url, login), { keyPrefix: 'acme' });
  const run = (command = '', ...args: string[]) => admin.call(command, ...args);
  const store = again();
  return { store, again, run, name: server.folder, url: server.url };
}

/** Changes the server, and keeps a store that was connected before. */
const after =
  (...command: string[]): State['make'] =>
  async ({ store, run }) => {
    await run(...command);
    return store;
  };

const as = (rules: string): State['make'] => {
  const user = `${CANARY}_user`;
  return async ({ again, run }) => {
    await run('ACL', 'SETUSER', user, 'on', `>${CANARY}`, ...rules.split(' '));
    return again({ username: user, password: CANARY });
  };
};

const LAYOUT = '2 of a later version';
const WAIT = { timeout: 10_000 };

expectReasons('Redis', !isInstalled('redis'), onRedis, [
  {
    state: 'a wrong password',
    reason: 'credentials',
    async make({ again, run }) {
      await run('CONFIG', 'SET', 'requirepass', CANARY);
      return again({ password: `not-${CANARY}` });
    },
  },
  {
    state: 'no password',
    reason: 'credentials',
    async make({ again, run }) {
      await run('CONFIG', 'SET', 'requirepass', CANARY);
      return again();
    },
  },
  { state: 'a user without scripts', reason: 'forbidden', make: as('~* &* +@all -@scripting') },
  { state: 'a user without keys', reason: 'forbidden', make: as('~other:* &* +@all') },
  {
    state: 'no memory left',
    reason: 'full',
    make: after('CONFIG', 'SET', 'maxmemory', '1'),
    call: CALLS.issue,
  },
  {
    state: 'no memory left for uses',
    reason: 'full',
    store: 'leases',
    make: after('CONFIG', 'SET', 'maxmemory', '1'),
    call: CALLS.verify,
  },
  {
    state: 'fewer replicas than it needs to write',
    reason: 'unreachable',
    make: after('CONFIG', 'SET', 'min-replicas-to-write', '1'),
    call: CALLS.issue,
  },
  {
    state: 'a disk to which it cannot save',
    reason: 'full',
    async make({ store, run, name }) {
      await run('CONFIG', 'SET', 'save', '3600 1');
      rmSync(name, { recursive: true });
      await run('BGSAVE').catch(() => {});
      await expect
        .poll(() => run('INFO', 'persistence'), WAIT)
        .toContain('rdb_last_bgsave_status:err');
      return store;
    },
    call: CALLS.issue,
  },
  {
    state: 'a replica',
    reason: 'standby',
    async make({ store, run }) {
      const other = await startServer('redis');
      onTestFinished(() => other.stop());
      await run('REPLICAOF', '127.0.0.1', String(other.port));
      await expect.poll(() => run('INFO', 'replication'), WAIT).toContain('master_link_status:up');
      return store;
    },
    call: CALLS.issue,
  },
  {
    state: 'a replica without its primary',
    reason: 'standby',
    async make({ store, run }) {
      await run('CONFIG', 'SET', 'replica-serve-stale-data', 'no');
      await run('REPLICAOF', '127.0.0.1', String(await freePort()));
      return store;
    },
  },
  {
    state: 'a server that is down',
    reason: 'unreachable',
    make: async ({ again }) => again({ url: `redis://127.0.0.1:${await freePort()}` }),
  },
  {
    state: 'a host without address',
    reason: 'unreachable',
    make: ({ again }) => again({ url: `redis://${CANARY}.invalid` }),
  },
  {
    state: 'a server that hangs',
    reason: 'timeout',
    make: after('CLIENT', 'PAUSE', '10000', 'ALL'),
  },
  {
    state: 'a server that is no Redis',
    reason: 'unknown',
    make: async ({ again }) =>
      again({ url: `redis://127.0.0.1:${await mutePort('HTTP/1.1 400 Bad Request\r\n\r\n')}` }),
  },
  {
    // ioredis goes on with the first one.
    state: 'a database that does not exist',
    reason: 'no_database',
    make({ url }) {
      const client = createClient({ url: `${url}/99` });
      const store = new RedisTokenStore(client, { keyPrefix: 'acme' });
      client.connect().catch(() => {});
      onTestFinished(() => {
        if (client.isOpen) client.destroy();
      });
      return store;
    },
  },
  {
    state: 'records of a later version',
    reason: 'schema_newer',
    async make({ store, run }) {
      for (const name of (await run('KEYS', 'acme:*')) as string[]) {
        if ((await run('TYPE', name)) !== 'string') continue;
        const [, ...lines] = String(await run('GET', name)).split('\n');
        if (lines.length > 10) await run('SET', name, [LAYOUT, ...lines].join('\n'));
      }
      return store;
    },
  },
  {
    state: 'a client that was closed',
    reason: 'closed',
    make() {
      const client = redisClient('redis://127.0.0.1:1', { lazyConnect: true });
      client.disconnect();
      return new RedisTokenStore(client, { keyPrefix: 'acme' });
    },
  },
]);

// SQLite

async function onSqlite(): Promise<Place> {
  const folder = join(dirname(newFile()), 'store');
  const opened: SqliteTokenStore[] = [];
  const again = () => {
    const store = SqliteTokenStore.open(folder);
    opened.push(store);
    return store;
  };
  onTestFinished(async () => {
    for (const store of opened) await store.close();
  });
  const store = again();
  const run = async (sql: string) => {
    const handle = new DatabaseSync(join(folder, 'tokens.db'));
    handle.exec(sql);
    handle.close();
  };
  return { store, again, run, name: folder };
}

const FILES = ['', '-wal', '-shm'];

const spoiling =
  (file: string, content?: string): State['make'] =>
  ({ store, name }) => {
    for (const ending of FILES) rmSync(join(name, file) + ending, { force: true });
    if (content !== undefined) writeFileSync(join(name, file), content);
    return store;
  };

/** Spoils a part, and opens a new store, which opens the part when it uses it. */
const reopening =
  (file: string, spoil: (path: string) => void): State['make'] =>
  async ({ store, again, name }) => {
    await store.close?.();
    for (const ending of FILES) rmSync(join(name, file) + ending, { force: true });
    spoil(join(name, file));
    return again();
  };

/** Of another application. */
function makeForeign(path: string): void {
  const handle = new DatabaseSync(path);
  handle.exec(`CREATE TABLE ${CANARY} (a)`);
  handle.close();
}

const text = (path: string) => writeFileSync(path, `${CANARY}, and this is no database`);

expectReasons('SQLite', false, onSqlite, [
  { state: 'tokens.db removed while open', reason: 'file_replaced', make: spoiling('tokens.db') },
  {
    state: 'tokens.db replaced while open',
    reason: 'file_replaced',
    make: spoiling('tokens.db', CANARY),
  },
  {
    state: 'usage.db removed while open',
    reason: 'file_replaced',
    store: 'usage',
    make: spoiling('usage.db'),
    call: CALLS.usage,
  },
  {
    state: 'leases.db removed while open',
    reason: 'file_replaced',
    store: 'leases',
    make: spoiling('leases.db'),
    call: CALLS.verify,
  },
  ...(['usage', 'leases'] as const).flatMap((store): State[] => {
    const part = { store, call: store === 'usage' ? CALLS.usage : CALLS.verify };
    const file = `${store}.db`;
    return [
      { ...part, state: `${file} is a text`, reason: 'not_opened', make: reopening(file, text) },
      {
        ...part,
        state: `${file} is a folder`,
        reason: 'not_opened',
        make: reopening(file, mkdirSync),
      },
      {
        ...part,
        state: `${file} belongs to another application`,
        reason: 'not_opened',
        make: reopening(file, makeForeign),
      },
      {
        ...part,
        state: `${file} is of a later version`,
        reason: 'schema_newer',
        async make({ store: open, again, name }) {
          await open.close?.();
          const handle = new DatabaseSync(join(name, file));
          handle.exec(`PRAGMA user_version = ${2 + 2 * 65_536}`);
          handle.close();
          return again();
        },
      },
    ];
  }),
  {
    state: 'no table',
    reason: 'schema_missing',
    async make({ store, run }) {
      await run('DROP TABLE tokens');
      return store;
    },
  },
  {
    state: 'a column less',
    reason: 'schema_older',
    async make({ store, run }) {
      await run('ALTER TABLE tokens DROP COLUMN prefix');
      return store;
    },
  },
  {
    state: 'a lock that another process holds',
    reason: 'busy',
    make({ store, name }) {
      const other = new DatabaseSync(join(name, 'tokens.db'));
      other.exec('BEGIN IMMEDIATE');
      onTestFinished(() => other.close());
      return store;
    },
    call: CALLS.issue,
  },
  {
    state: 'a full disk',
    reason: 'full',
    async make({ store, name }) {
      await store.close?.();
      const handle = new DatabaseSync(join(name, 'tokens.db'));
      handle.exec('PRAGMA max_page_count = 1');
      const [usage, leases] = [new DatabaseSync(':memory:'), new DatabaseSync(':memory:')];
      onTestFinished(() => handle.close());
      return SqliteTokenStore.open({ tokens: handle, usage, leases });
    },
    async call(tokens) {
      const metadata = { note: 'x'.repeat(2000) };
      for (let n = 0; n < 50; n += 1) {
        await tokens.issue({ account: 'acme', scopes: [SCOPE], metadata });
      }
    },
  },
  {
    state: 'a store that was closed',
    reason: 'closed',
    async make({ store }) {
      await store.close?.();
      return store;
    },
  },
]);
