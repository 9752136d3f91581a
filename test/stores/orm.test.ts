import { randomBytes } from 'node:crypto';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type StoreReason, storeUnavailable } from '../../src/errors.ts';
import { generateKey, TokenService } from '../../src/index.ts';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import * as mysqlStore from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';
import { storeContract } from '../../src/testing/index.ts';
import { refusalOf } from '../support.ts';
import { type Begun, MYSQL_ORMS, type Orm, POSTGRES_ORMS } from './orm-hosts.ts';
import { isPrismaMissing, prismaOn } from './prisma-host.ts';
import { newRecord } from './support.ts';

const servers = inject('servers');

/** What the tests need from both engines. */
interface Host {
  readonly tables: string;
  readonly orm: Orm<unknown>;
  store(options?: object): { in(connection: never): EngineStore } & EngineStore;
  /** Of the host itself, outside of the ORM. */
  run(sql: string): Promise<unknown>;
  end(): Promise<void>;
}

const newTables = () => `in_${randomBytes(6).toString('hex')}`;
const dropped = (tables: string) =>
  `DROP TABLE ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`;

async function onPostgres(
  open: (url: string) => Orm<unknown> | Promise<Orm<unknown>>,
): Promise<Host> {
  const url = servers.postgres as string;
  const pool = new pg.Pool({ connectionString: url });
  const [tables, orm] = [newTables(), await open(url)];
  await postgres.migrate(pool, { tables });
  return {
    tables,
    orm,
    store: (options) => new postgres.PostgresTokenStore(pool, { tables, ...options }),
    run: (sql) => pool.query(sql),
    async end() {
      await orm.end();
      await pool.query(dropped(tables));
      await pool.end();
    },
  };
}

async function onMysql(open: (url: string) => Orm<unknown> | Promise<Orm<unknown>>): Promise<Host> {
  const url = servers.mariadb as string;
  const pool = mysql.createPool(url);
  const [tables, orm] = [newTables(), await open(url)];
  await mysqlStore.migrate(pool, { tables });
  return {
    tables,
    orm,
    store: (options) => new mysqlStore.MysqlTokenStore(pool, { tables, ...options }),
    run: (sql) => pool.query(sql),
    async end() {
      await orm.end();
      await pool.query(dropped(tables));
      await pool.end();
    },
  };
}

/** A way to break a call, by what a connection of the ORM does before it. */
type Breakage = readonly [reason: StoreReason, sql: (host: Host) => string];

const POSTGRES_BREAKAGES: readonly Breakage[] = [
  ['busy', () => "SET LOCAL lock_timeout = '20ms'"],
  ['timeout', () => "SET LOCAL statement_timeout = '20ms'"],
  ['forbidden', () => 'SET LOCAL ROLE pg_monitor'],
  ['schema_missing', ({ tables }) => `ALTER TABLE ${tables}_tokens RENAME TO ${tables}_away`],
  ['schema_older', ({ tables }) => `ALTER TABLE ${tables}_tokens DROP COLUMN box`],
];
const MYSQL_BREAKAGES: readonly Breakage[] = [['busy', () => 'SET innodb_lock_wait_timeout = 1']];

const HOSTS = [
  ...Object.entries(POSTGRES_ORMS).map(
    ([name, open]) =>
      [
        `${name} on PostgreSQL`,
        servers.postgres,
        () => onPostgres(open),
        POSTGRES_BREAKAGES,
      ] as const,
  ),
  [
    'Prisma on PostgreSQL',
    isPrismaMissing ? undefined : servers.postgres,
    () => onPostgres(prismaOn),
    POSTGRES_BREAKAGES,
  ] as const,
  ...Object.entries(MYSQL_ORMS).map(
    ([name, open]) =>
      [`${name} on MariaDB`, servers.mariadb, () => onMysql(open), MYSQL_BREAKAGES] as const,
  ),
];

describe.each(HOSTS)('a store in a transaction of %s (further)', (_, url, open, breakages) => {
  const test = it.skipIf(url === undefined);
  let host: Host;
  beforeAll(async () => {
    if (url !== undefined) host = await open();
  });
  afterAll(() => host?.end());
  const begin = () => host.orm.begin() as Promise<Begun<never>>;

  // What is only in a transaction does not tell that it goes by the clock of the server.
  const cases = storeContract.filter(({ name }) => !name.includes('with a clock of its own'));
  test.each(cases)('keeps the promise $name', async ({ run }) => {
    const { connection, rollback } = await begin();
    // So that a queue of hundreds of calls on one connection is not too late on a busy machine.
    const store = host.store({ deadlineMs: 20_000 });
    try {
      await run(() => store.in(connection));
    } finally {
      await rollback();
    }
  });

  test('works with prepare: false, too', async () => {
    const { connection, rollback } = await begin();
    const store = host.store({ prepare: false }).in(connection);
    await store.insert(newRecord('unprepared'));

    expect(await store.find([newRecord('unprepared').id])).toEqual([newRecord('unprepared')]);
    await rollback();
  });

  test('stores what was committed, and nothing of what was rolled back', async () => {
    const tokens = new TokenService({ store: host.store(), keys: [generateKey()], prefix: 'acme' });
    const input = { account: 'ada', scopes: ['GET:shop.example/orders'] };
    const [kept, lost] = [await begin(), await begin()];
    const { value } = await tokens.in(kept.connection).issue(input);
    const { id } = await tokens.in(lost.connection).issue(input);
    await Promise.all([kept.commit(), lost.rollback()]);

    expect(await tokens.allows(value, { scope: 'GET:shop.example/orders' })).toBe(true);
    expect(await tokens.get('ada', id)).toBeUndefined();
    await tokens.revokeAll('ada');
    await tokens.close();
  });

  test.each(breakages)('says %s if that is why a call failed', async (reason, sql) => {
    const [other, broken] = [await begin(), await begin()];
    const [record, store] = [newRecord(reason), host.store()];
    const changesTable = sql(host).startsWith('ALTER');
    try {
      // The control: the same call succeeds where nothing is broken. The other one has to wait for it.
      if (!changesTable) await store.in(other.connection).insert(record);
      await run(broken, sql(host));
      const refusal = await refusalOf(store.in(broken.connection).insert(record));

      expect(refusal).toMatchObject({ code: 'store_unavailable', details: { reason } });
      expect(refusal.message).toBe(storeUnavailable(reason).message);
    } finally {
      await broken.rollback();
      await other.rollback();
    }
    expect(await store.find([record.id])).toEqual([undefined]);
  });

  test('rejects at the deadline a call that hangs, and every call after it', async () => {
    const [other, late] = [await begin(), await begin()];
    await host.store().in(other.connection).insert(newRecord('held'));
    const store = host.store({ deadlineMs: 50 }).in(late.connection);

    const refusals = [
      await refusalOf(store.insert(newRecord('held'))),
      await refusalOf(store.find([newRecord('held').id])),
    ];
    await other.rollback();
    await late.rollback();

    expect(refusals.map(({ details }) => details)).toEqual([
      { reason: 'timeout' },
      { reason: 'transaction_failed' },
    ]);
  });

  test('is refused on what is no transaction, and without the helper', async () => {
    const { tx, rollback } = await begin();
    const { helper, misuse } = host.orm;

    expect(misuse).toThrow(
      expect.objectContaining({
        code: 'invalid_options',
        message: expect.stringContaining(helper),
      }),
    );
    expect(() => host.store().in(tx as never)).toThrow(
      expect.objectContaining({
        code: 'invalid_options',
        message: expect.stringContaining(`did you mean in(${helper}(tx))?`),
      }),
    );
    await rollback();
  });
});

/** Runs a statement of the host in a transaction of the ORM, by the connection that the helper made. */
async function run({ connection }: Begun<unknown>, sql: string): Promise<void> {
  if ('query' in (connection as object)) {
    await (connection as postgres.PostgresConnection).query({ text: sql });
    return;
  }
  const { execute } = (connection as { connection: { execute: (...args: unknown[]) => void } })
    .connection;
  await new Promise<void>((resolve, reject) =>
    execute({ sql, values: [] }, (error: unknown) => (error ? reject(error) : resolve())),
  );
}
