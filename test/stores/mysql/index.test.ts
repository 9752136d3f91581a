import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import {
  createPool,
  type Pool,
  type PoolConnection,
  type PoolOptions,
  type RowDataPacket,
} from 'mysql2';
import { createPool as createPromisePool } from 'mysql2/promise';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import type { StoreReason } from '../../../src/errors.ts';
import {
  type CountQuery,
  doctor,
  type PageOrder,
  type PurgeQuery,
  positionOf,
} from '../../../src/ports/token-store.ts';
import type {
  MysqlConnection,
  MysqlPool,
  MysqlPromisePool,
} from '../../../src/stores/mysql/client.ts';
import {
  type MysqlStoreOptions,
  MysqlTokenStore,
  migrate,
} from '../../../src/stores/mysql/index.ts';
import type { MysqlStatement } from '../../../src/stores/mysql/statement.ts';
import { storeContract } from '../../../src/testing/index.ts';
import {
  LISTED_STATES,
  type ListedState,
  type TokenId,
  type TokenRecord,
} from '../../../src/token/record.ts';
import { revoked } from '../../../src/token/revoked.ts';
import { freePort, type Server, startServer } from '../../servers.ts';
import { codeOf, refusalOf } from '../../support.ts';
import { type Child, startChild } from '../child.ts';
import { CONTRARY_OPTIONS } from '../database-hosts.ts';
import { type DatabaseProxy, startDatabaseProxy } from '../database-proxy.ts';
import { purgeByFastClock, TOKENS } from '../fast-clock.ts';
import { CREATED, newRecord } from '../support.ts';

const url = inject('servers').mariadb;
const ENDED = new Date('2102-01-01T00:00:00.000Z');
/** Past for the server, too, which decides what is purged. */
const PAST = new Date('2020-01-01T00:00:00.000Z');

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

type HostOptions = PoolOptions & {
  /** A statement that the host sends over each new connection. */
  readonly first?: string | undefined;
};

/** A pool with a timeout, as a careful host creates it. */
function makePool({ first, ...options }: HostOptions = {}): Pool {
  const pool = createPool({
    uri: url as string,
    connectionLimit: 10,
    connectTimeout: 2000,
    ...options,
  });
  if (first !== undefined) pool.on('connection', (connection) => connection.query(first));
  return pool;
}

const ended = (pool: Pool) => new Promise((resolve) => pool.end(resolve));

function newPool(options: HostOptions = {}): Pool {
  const pool = makePool(options);
  cleanups.push(() => ended(pool));
  return pool;
}

function newName(): string {
  return `test_${randomBytes(8).toString('hex')}`;
}

/** Runs statements one after the other, and returns the rows of the last one. */
async function run(pool: Pool, ...statements: string[]): Promise<Record<string, unknown>[]> {
  let rows: unknown;
  for (const statement of statements) [rows] = await pool.promise().query(statement);
  return rows as Record<string, unknown>[];
}

/** The beginning of the names of tables that are dropped at the end of the test. */
function newTables(pool = newPool()): string {
  const tables = newName();
  cleanups.push(() =>
    run(
      pool,
      `DROP TABLE IF EXISTS ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`,
    ),
  );
  return tables;
}

interface Setting {
  readonly pool: Pool;
  readonly tables: string;
  /** The table of tokens. */
  readonly table: string;
  readonly store: MysqlTokenStore;
  readonly record: TokenRecord;
}

/** A store over a new table, with one record. */
async function setUp(options: HostOptions = {}, own: MysqlStoreOptions = {}): Promise<Setting> {
  const tables = newTables();
  const pool = newPool(options);
  await migrate(pool, { tables });
  const store = new MysqlTokenStore(pool, { tables, ...own });
  const record = newRecord('one');
  await store.insert(record);
  return { pool, tables, table: `${tables}_tokens`, store, record };
}

/** Polls with a long timeout, for tests that do not measure time. */
const soon = (look: () => unknown) => expect.poll(look, { timeout: 5000 });

const VERBS: readonly (readonly [string, (store: MysqlTokenStore) => Promise<unknown>])[] = [
  ['insert', (store) => store.insert(newRecord('two'))],
  ['find', (store) => store.find([newRecord('one').id])],
  ['find of several', (store) => store.find([newRecord('one').id, newRecord('two').id])],
  ['page', (store) => store.page({ account: 'acme', limit: 2, liveAt: CREATED })],
  [
    'page up to a size',
    (store) => store.page({ account: 'acme', limit: 2, liveAt: CREATED, maxBytes: 1000 }),
  ],
  ['replace', (store) => store.replace(newRecord('one', { version: 2 }))],
  ['revoke', (store) => store.revoke(newRecord('one').id, 'acme', CREATED)],
  ['revokeAll', (store) => store.revokeAll('acme', CREATED, 1000)],
  ['purge', (store) => store.purge(purgeOf(10))],
  ['prune', (store) => store.prune({ account: 'old', now: CREATED, limit: 10 })],
  ['count', (store) => store.count(countOf())],
];
const IDS = ['one', 'two', 'three'].map((label) => newRecord(label).id);
const READS = /^(?:find|page|count)/;
const WRITES = VERBS.filter(([verb]) => !READS.test(verb));

function purgeOf(limit: number, now = CREATED): PurgeQuery {
  return { now, minAgeMs: 0, limit };
}

function countOf(most = 100, account = 'acme'): CountQuery {
  return { account, liveAt: CREATED, most: { live: most, ended: most } };
}

/** Unusual options of a driver, and unusual settings of its sessions. */
const CONTRARY: HostOptions = {
  ...CONTRARY_OPTIONS,
  first: `SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE,SIMULTANEOUS_ASSIGNMENT',
    time_zone = '+05:45', group_concat_max_len = 4`,
};

/** The isolation under which MariaDB most often refuses to change rows that others have changed. */
const STRICT = `SET SESSION tx_isolation = 'SERIALIZABLE', SESSION innodb_snapshot_isolation = ON`;

describe.skipIf(url === undefined)('MySQL store', () => {
  const ways: [string, HostOptions][] = [
    ['with default options', {}],
    ['over one connection (further)', { connectionLimit: 1 }],
    ['over a pool with unusual settings (further)', CONTRARY],
    [
      'under read committed (further)',
      { first: 'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED' },
    ],
    ['under serializable, with strict snapshots', { first: STRICT }],
  ];

  describe.each(ways)('%s', (_, options) => {
    const tables = newName();
    let pool: Pool;
    beforeAll(async () => {
      pool = makePool(options);
      await migrate(pool, { tables });
    });
    afterAll(async () => {
      await run(
        pool,
        `DROP TABLE ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`,
      );
      await ended(pool);
    });

    it.each(storeContract)('$name', (promise) =>
      promise.run(async () => {
        await run(pool, `DELETE FROM ${tables}_tokens`);
        return new MysqlTokenStore(pool, { tables });
      }),
    );
  });
});

describe.skipIf(url === undefined)('the pool of a MySQL store', () => {
  it('can be one of mysql2 or of mysql2/promise', async () => {
    const { tables, record, pool } = await setUp();
    const plain: MysqlPool = pool;
    const wrapping = createPromisePool({ uri: url as string });
    cleanups.push(() => wrapping.end());
    const promised: MysqlPromisePool = wrapping;

    for (const given of [plain, promised]) {
      await migrate(given, { tables });
      expect(await new MysqlTokenStore(given, { tables }).find([record.id])).toEqual([record]);
    }
  });

  it.each([undefined, null, 'mysql://127.0.0.1', {}, { pool: {} }, { execute: () => {} }])(
    'is refused if it is %j',
    async (pool) => {
      const refused = expect.objectContaining({ code: 'invalid_options' });

      expect(() => new MysqlTokenStore(pool as never)).toThrow(refused);
      await expect(migrate(pool as never)).rejects.toEqual(refused);
    },
  );

  it('keeps the settings of the host', async () => {
    const pool = newPool({ connectTimeout: 10_000 });
    const settings = () => ({ ...Object(pool.config).connectionConfig });
    const before = settings();
    await migrate(pool, { tables: newTables() });
    new MysqlTokenStore(pool, { deadlineMs: 100 });

    expect(settings()).toEqual(before);
    expect(before.connectTimeout).toBe(10_000);
  });

  it('is never closed by the store, which has no close method', async () => {
    const { store, pool } = await setUp();
    expect('close' in store).toBe(false);

    expect(await run(pool, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });
});

describe.skipIf(url === undefined)('find of a MySQL store', () => {
  it('finds more ids than fit into one statement', async () => {
    const { store, record } = await setUp({}, { deadlineMs: 20_000 });
    const two = newRecord('two');
    await store.insert(two);
    const ids = Array.from({ length: 70_000 }, (_, n) => newRecord(`n${n}`).id);
    const found = await store.find([record.id, ...ids, two.id, record.id]);

    expect(found).toHaveLength(ids.length + 3);
    expect([found[0], found.at(-2), found.at(-1)]).toEqual([record, two, record]);
    expect(found.filter(Boolean)).toHaveLength(3);
  });

  it('prepares few statements, however many ids it is given', async () => {
    const { store, pool } = await setUp({ connectionLimit: 1 });
    const prepared = async () =>
      Number((await run(pool, "SHOW SESSION STATUS LIKE 'Com_stmt_prepare'"))[0]?.['Value']);
    const before = await prepared();
    for (let count = 1; count <= 64; count++) {
      await store.find(Array.from({ length: count }, (_, n) => newRecord(`n${n}`).id));
    }

    expect((await prepared()) - before).toBe(7);
  });
});

/** Records the statements that go over new connections of a pool. */
function spied(pool: Pool): MysqlStatement[] {
  const statements: MysqlStatement[] = [];
  pool.on('connection', (connection) => {
    for (const verb of ['execute', 'query'] as const) {
      const original = connection[verb].bind(connection) as (...args: unknown[]) => never;
      vi.spyOn(connection, verb).mockImplementation((...args: unknown[]) => {
        statements.push(args[0] as MysqlStatement);
        return original(...args);
      });
    }
  });
  return statements;
}

describe.skipIf(url === undefined)('statements of a MySQL store', () => {
  it.each(
    VERBS.map(
      ([verb, call]) => [verb, /^(?:revokeAll|purge|prune)$/.test(verb) ? 2 : 1, call] as const,
    ),
  )('of %s take this many round trips: %i', async (_, trips, call) => {
    const { tables, table, store: writer } = await setUp();
    await writer.insert(newRecord('ended', { account: 'old', expiresAt: PAST }));
    const pool = newPool({ connectionLimit: 1 });
    const statements = spied(pool);
    const store = new MysqlTokenStore(pool, { tables });
    await store.find([newRecord('one').id]);
    statements.length = 0;
    await call(store);

    // Ignores the check, once a second, whether the server still takes writes.
    expect(statements.filter(({ sql }) => sql.includes(table))).toHaveLength(trips);
  });

  it('contain no values, only parameters', async () => {
    const { tables } = await setUp();
    const pool = newPool();
    const statements = spied(pool);
    const store = new MysqlTokenStore(pool, { tables });
    for (const [, call] of VERBS) await call(store);

    expect(statements.map(({ sql }) => sql).join('\n')).not.toMatch(/acme|onexx|4102444800000/);
    expect(statements.length).toBeGreaterThan(VERBS.length);
  });
});

describe.skipIf(url === undefined)('concurrent callers of a MySQL store', () => {
  it.each([
    ['with default settings', undefined],
    ['under serializable, with strict snapshots', STRICT],
  ])('let exactly one of 64 replaces win each version: %s', async (_, first) => {
    const { store, record } = await setUp({ first, connectionLimit: 16 });
    for (let version = 2; version <= 5; version++) {
      const rivals = Array.from({ length: 64 }, (_, n) => ({ ...record, version, name: `${n}` }));
      const outcomes = await Promise.all(rivals.map((rival) => store.replace(rival)));
      const winners = rivals.filter((_, index) => outcomes[index]);

      expect(winners).toHaveLength(1);
      expect(await store.find([record.id])).toEqual(winners);
    }
  });

  it('are retried if the server aborts them to end a deadlock', async () => {
    const { tables, table, pool: other, record } = await setUp();
    const heavy = Array.from({ length: 20 }, (_, n) => newRecord(`a${n}`, { account: 'other' }));
    // Comes first in the primary key, which is the order in which revokeAll locks tokens.
    const first = newRecord('first');
    const pool = newPool();
    const statements = spied(pool);
    const store = new MysqlTokenStore(pool, { tables });
    // Range locks include the next row, which must not be one that the rival holds.
    const between = newRecord('b', { account: 'other' });
    for (const one of [first, between, ...heavy]) await store.insert(one);

    const rival = await other.promise().getConnection();
    await rival.query('BEGIN');
    // To end a deadlock, the server aborts the transaction that changed fewer rows.
    await rival.query(`UPDATE ${table} SET name = 'x' WHERE id LIKE 'a%'`);
    await rival.query(`UPDATE ${table} SET name = 'x' WHERE id = '${record.id}'`);
    const revoked = store.revokeAll('acme', CREATED, 1000);
    await waitingForLock(table);
    await rival.query(`UPDATE ${table} SET name = 'x' WHERE id = '${first.id}'`);
    await rival.query('COMMIT');
    rival.release();

    expect(await revoked).toBe(2);
    expect(statements.filter(({ sql }) => sql.startsWith('UPDATE'))).toHaveLength(2);
  });

  it.each([
    [1213, true],
    [1020, true],
    // TiDB: a conflict of writes, and a change of the schema.
    [9007, true],
    [8028, true],
    [1644, false],
  ])('are retried until the deadline after error %d: %s', async (number, isRepeated) => {
    const { tables, table, pool: other, record } = await setUp();
    await run(
      other,
      `CREATE TRIGGER ${table} BEFORE UPDATE ON ${table} FOR EACH ROW
       SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = ${number}`,
    );
    const pool = newPool();
    const statements = spied(pool);
    const triesIn = () => statements.filter(({ sql }) => sql.startsWith('UPDATE')).length;
    const revokeWithin = (deadlineMs: number) =>
      new MysqlTokenStore(pool, { tables, deadlineMs }).revoke(record.id, 'acme', CREATED);

    expect(await codeOf(revokeWithin(300))).toBe('store_unavailable');
    statements.length = 0;
    const revoked = revokeWithin(FAR_MS);
    if (isRepeated) await vi.waitFor(() => expect(triesIn()).toBeGreaterThan(1), FAR_MS);
    else expect(await codeOf(revoked)).toBe('store_unavailable');
    if (!isRepeated) expect(triesIn()).toBe(1);
    await run(other, `DROP TRIGGER ${table}`);

    // The tries go on until one succeeds.
    expect(await (isRepeated ? revoked : revokeWithin(FAR_MS))).toBe(true);
  });
});

/** Longer than a busy machine takes for two tries. */
const FAR_MS = 20_000;

/** Resolves when a statement waits for a lock on a table. */
async function waitingForLock(table: string): Promise<void> {
  const pool = newPool();
  const waiting = `SELECT 1 FROM information_schema.INNODB_TRX
    WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE '%${table}%'`;
  // The server refreshes this table only if nobody has read it for 100 ms.
  await expect.poll(() => run(pool, waiting), { interval: 150, timeout: 2000 }).toHaveLength(1);
}

describe.skipIf(url === undefined)('query plans in MySQL', () => {
  const COUNT = 2000;

  /** A table with one account of many tokens: half of them revoked, a quarter expired. */
  async function filled(): Promise<Setting & { statements: MysqlStatement[] }> {
    const { tables, table } = await setUp();
    const pool = newPool({ connectionLimit: 1 });
    const statements = spied(pool);
    const store = new MysqlTokenStore(pool, { tables });
    const at = CREATED.getTime();
    await run(
      pool,
      `INSERT INTO ${table} (id, account, prefix, kid, digest, scopes, requested, created_at,
         expires_at, version, revoked_at, changed_at)
       SELECT LEFT(MD5(seq), 22), 'acme', 'acme', 'k1', REPEAT('x', 32), '[]', '[]',
         ${at} + (seq DIV 3), ${at} + IF(seq % 4 = 0, 0, 1000 + seq), 1, IF(seq % 2 = 1, ${at}, NULL),
         IF(seq % 2 = 1, ${at}, NULL)
       FROM seq_1_to_${COUNT}`,
      `ANALYZE TABLE ${table}`,
    );
    statements.length = 0;
    return { pool, tables, table, store, statements, record: newRecord('one') };
  }

  async function planOf(pool: Pool, { sql, values }: MysqlStatement): Promise<string> {
    const rows = await pool.promise().execute(`EXPLAIN ${sql}`, values);
    return JSON.stringify(rows[0]);
  }

  /** How many entries of indexes and tables the work reads. */
  async function readsOf(pool: Pool, work: () => Promise<unknown>): Promise<number> {
    await run(pool, 'FLUSH STATUS');
    await work();
    const rows = await run(pool, "SHOW SESSION STATUS LIKE 'Handler_read%'");
    return rows.reduce((sum, { Value }) => sum + Number(Value), 0);
  }

  const page = { account: 'acme', limit: 50, liveAt: CREATED };
  const after = { at: new Date(CREATED.getTime() + 300), id: newRecord('one').id };

  type Planned = [string, string, RegExp, (store: MysqlTokenStore) => Promise<unknown>];

  function pagesOf(state: ListedState, key: string, order?: PageOrder): Planned[] {
    const query = { ...page, state, order };
    const at = order === 'expire' && state === 'expired' ? PAST : after.at;
    const isFiltered = /Using index condition/;
    return [
      [`the first page of ${state} by ${order}`, key, isFiltered, (store) => store.page(query)],
      [
        `a later page of ${state} by ${order}`,
        key,
        isFiltered,
        (store) => store.page({ ...query, after: { ...after, at } }),
      ],
    ];
  }

  it.each<Planned>([
    ['find', 'PRIMARY', /"const"/, (store) => store.find([newRecord('one').id])],
    ['find of several', 'PRIMARY', /"range"/, (store) => store.find(IDS)],
    ['the first page', 'by_account', /Using index condition/, (store) => store.page(page)],
    [
      'a later page',
      'by_account',
      /"range".*Using index condition/,
      (store) => store.page({ ...page, after }),
    ],
    ...pagesOf('suspended', 'by_creation'),
    ...pagesOf('expired', 'by_account'),
    ...pagesOf('revoked', 'by_creation'),
    ...pagesOf('live', 'by_account'),
    ...(['active', 'live', 'suspended', 'expired'] as const).flatMap((state) =>
      pagesOf(state, 'by_expiry', 'expire'),
    ),
    ['a page of all', 'by_creation', /"ref"/, (store) => store.page({ ...page, state: 'all' })],
    ...LISTED_STATES.map(
      (state): Planned => [
        `a page of children: ${state}`,
        'by_parent',
        /"ref"|"range"/,
        (store) => store.page({ ...page, state, parent: newRecord('one').id }),
      ],
    ),
    ['replace', 'PRIMARY', /"range"/, (store) => store.replace(newRecord('one', { version: 2 }))],
    ['revoke', 'PRIMARY', /"range"/, (store) => store.revoke(IDS[0] as TokenId, 'acme', ENDED)],
    ['revokeAll', 'PRIMARY', /"range"/, (store) => store.revokeAll('acme', ENDED, 1000)],
    ['purge', 'by_end', /"range"/, (store) => store.purge(purgeOf(10))],
    ...LISTED_STATES.map(
      (state): Planned => [
        `a page of descendants: ${state}`,
        'by_root',
        /"ref"|"range"/,
        (store) => store.page({ ...page, state, root: newRecord('one').id }),
      ],
    ),
  ])('use the index: %s', async (_, key, type, call) => {
    const { pool, store, statements } = await filled();
    await call(store);
    const plan = await planOf(pool, statements.at(-1) as MysqlStatement);

    expect(plan).toContain(`"key":"${key}"`);
    expect(plan).toMatch(type);
    expect(plan).not.toMatch(/filesort|temporary/);
  });

  it('let revokeAll read only an index, and continue where the last batch ended', async () => {
    const { pool, store, statements } = await filled();
    // Old row versions stay as long as another transaction may still see them.
    const other = await newPool().promise().getConnection();
    cleanups.push(() => other.destroy());
    await other.query('START TRANSACTION WITH CONSISTENT SNAPSHOT');
    const readsOfBatch = () => readsOf(pool, () => store.revokeAll('acme', ENDED, 100));
    const reads = [];
    for (let batch = 0; batch < 9; batch += 1) reads.push(await readsOfBatch());
    const searches = statements.filter(({ sql }) => sql.includes('by_account'));

    expect(await planOf(pool, searches.at(-1) as MysqlStatement)).toMatch(
      /"range".*"key":"by_account".*"Extra":"Using where; Using index"/,
    );
    expect(searches[0]?.sql).not.toContain('created_at < ?');
    expect(searches.slice(1).every(({ sql }) => sql.includes('created_at < ?'))).toBe(true);
    expect(Math.max(...reads)).toBeLessThan(2 * (reads[0] ?? 0));
  });

  it('do not let revokeAll block inserts while it waits for a lock', async () => {
    const { pool, table, store, record } = await setUp();
    const other = await newPool().promise().getConnection();
    cleanups.push(() => other.destroy());
    await other.query('BEGIN');
    await other.query(`UPDATE ${table} SET name = 'x' WHERE id = '${record.id}'`);
    const revoking = store.revokeAll('acme', CREATED, 1000);
    await waitingForLock(table);
    for (const account of ['acme', 'acma', 'acmf']) {
      await store.insert(newRecord(`new${account}`, { account }));
    }
    await other.query('COMMIT');
    expect(await revoking).toBe(1);
    expect(await run(pool, `SELECT id FROM ${table} WHERE revoked_at IS NULL`)).toHaveLength(3);
  });

  it('count in an index only, and no further than they are asked to', async () => {
    const { pool, store, statements } = await filled();
    // With the record that each table has.
    const [live, ended] = [COUNT / 4 + 1, (COUNT * 3) / 4];
    expect(await store.count(countOf(COUNT))).toEqual({ live, ended });
    const plan = await planOf(pool, statements.at(-1) as MysqlStatement);

    expect(plan.match(/"range","possible_keys":"by_holder"/g)).toHaveLength(3);
    expect(plan.match(/"Extra":"Using where; Using index"/g)).toHaveLength(3);
    // Each count also fills a derived table, which is read.
    expect(await readsOf(pool, () => store.count(countOf(10)))).toBeLessThan(100);
    expect(await readsOf(pool, () => store.count(countOf(1, 'nobody')))).toBeLessThan(20);
  });

  it('let prune read few entries, however many tombstones and live tokens there are', async () => {
    const { pool, table, store, statements } = await filled();
    await run(pool, `UPDATE ${table} SET format = 'sanctum' WHERE revoked_at IS NOT NULL`);
    const gone = [1, 2].map((n) => newRecord(`gone${n}`, { expiresAt: new Date(+PAST + n) }));
    for (const record of gone) await store.insert(record);
    await store.insert(newRecord('early', { revokedAt: PAST }));
    const prune = () => store.prune({ account: 'acme', now: ENDED, limit: 2 });
    const reads = await readsOf(pool, async () => expect((await prune()).count).toBe(2));
    const search = statements.find(({ sql }) => sql.includes('by_holder')) as MysqlStatement;
    const plan = await planOf(pool, search);

    expect(plan.match(/"(?:range|ref)","possible_keys":"by_holder"/g)).toHaveLength(2);
    expect(plan.match(/"Extra":"Using where; Using index"/g)).toHaveLength(2);
    expect(reads).toBeLessThan(50);
    expect(await prune()).toMatchObject({ count: 1, ids: [gone[1]?.id] });
    expect(await prune()).toEqual({ count: 0, ids: [] });
  });

  it('find changes for watch in an index only', async () => {
    const { pool, store, statements } = await filled();
    cleanups.push(await store.watch(() => {}));
    const plan = await planOf(pool, statements.at(-1) as MysqlStatement);

    expect(plan).toMatch(/"range".*"key":"by_change".*"Extra":"Using where; Using index"/);
    expect(plan).not.toMatch(/filesort|temporary/);
  });

  it('read no more rows than a page returns, at any position', async () => {
    const { pool, store } = await filled();
    const { length } = await store.page({ ...page, liveAt: new Date(0), after });
    const reads = (query: object) => readsOf(pool, () => store.page({ ...page, ...query }));

    expect(length).toBe(50);
    for (const query of [{}, { after }, { after, maxBytes: 4_000_000 }]) {
      // Revoked tokens are not read at all.
      expect(await reads({ ...query, liveAt: new Date(0) })).toBeLessThanOrEqual(52);
    }
  });

  it('read no more rows than a page returns, in any state', async () => {
    const { pool, table, store } = await filled();
    await run(
      pool,
      `UPDATE ${table} SET suspended_at = 1 WHERE revoked_at IS NULL AND created_at % 5 = 0`,
    );
    for (const state of LISTED_STATES) {
      const query = { ...page, liveAt: new Date(CREATED.getTime() + 1500), state };
      const found = await store.page({ ...query, limit: 1000 });
      expect(found.length, state).toBeGreaterThan(60);
      const reads = await readsOf(pool, () => store.page(query));
      // Suspended tokens between active ones are read too; there is one for every four.
      expect(reads, state).toBeLessThanOrEqual(state === 'active' ? 80 : 52);
      const byExpiry = await readsOf(pool, () => store.page({ ...query, order: 'expire' }));
      // Pages of several ranges are merged from a page of each, in a table that is read and sorted.
      const most = { active: 80, revoked: 400, all: 500 };
      expect(byExpiry, `${state} by expiry`).toBeLessThanOrEqual(most[state as 'all'] ?? 52);
    }
  });

  it('read far more rows if a page compares row values (the control)', async () => {
    const { pool, store, statements } = await filled();
    await store.page({ ...page, liveAt: new Date(0), after });
    const { sql, values } = statements.at(-1) as MysqlStatement;
    const reads = (other: string, parameters: unknown[]) =>
      readsOf(pool, () => pool.promise().query(other, parameters));
    const rows = sql.replace(/AND \(created_at < \? OR .*?\)\)/s, 'AND (created_at, id) < (?, ?)');
    const [share, , account, liveAt, time, , id] = values;

    expect(rows).not.toBe(sql);
    expect(
      await reads(rows.replace('LIMIT ?', 'LIMIT 50'), [share, share, account, liveAt, time, id]),
    ).toBeGreaterThan(500);
  });
});

describe.skipIf(url === undefined)('page of a MySQL store with maxBytes', () => {
  it('receives little more than it returns', async () => {
    const { pool, store } = await setUp({ connectionLimit: 1 });
    const scopes = Array.from({ length: 4096 }, (_, index) => `GET:shop.example/${index}`);
    const records = Array.from({ length: 6 }, (_, index) =>
      newRecord(`n${index}`, {
        scopes: [...scopes, `GET:shop.example/${'x'.repeat(100_000)}/${index}`],
        createdAt: new Date(CREATED.getTime() + 10 - index),
      }),
    );
    for (const record of records) await store.insert(record);
    const sent = async () =>
      Number((await run(pool, "SHOW SESSION STATUS LIKE 'Bytes_sent'"))[0]?.['Value']);
    const query = { account: 'acme', limit: 100, liveAt: CREATED, maxBytes: 400_000 };

    const before = await sent();
    const page = await store.page(query);
    const after = await sent();
    expect(page).toEqual(records.slice(0, 3));
    // Each record has more than 200 kB.
    expect(after - before).toBeLessThan(4 * 220_000);
    expect(await store.page({ ...query, after: positionOf(page.at(-1) as TokenRecord) })).toEqual(
      records.slice(3),
    );
  });
});

describe.skipIf(url === undefined)('values that MySQL columns cannot hold', () => {
  const LENIENT = { first: "SET sql_mode = ''" };
  const long = (count: number) => 'x'.repeat(count);
  const tooLong: [string, Partial<TokenRecord>][] = [
    ['id', { id: long(23) as TokenId }],
    ['account', { account: `${'\u00e9'.repeat(127)}xx` }],
    ['prefix', { prefix: long(65) }],
    ['kid', { kid: long(17) }],
    ['digest', { digest: new Uint8Array(33) }],
    ['box', { box: new Uint8Array(1025) }],
    ['scopes', { scopes: [long(2 ** 24)] }],
    ['requested', { requested: [long(2 ** 24)] }],
    ['name', { name: '\u{1f600}'.repeat(201) }],
    ['metadata', { metadata: { text: long(65_536) } }],
    ['previous_digest', { previousDigest: new Uint8Array(33) }],
    ['version', { version: 2 ** 53 }],
    ['created_at', { createdAt: new Date(Number.NaN) }],
    ['previous_until', { previousUntil: new Date(Number.NaN) }],
  ];

  it.each(tooLong)('are refused, and nothing is truncated or changed: %s', async (_, fields) => {
    for (const options of [{}, LENIENT]) {
      const { store, pool, table, record } = await setUp(options);
      const other = newRecord('two', fields);

      expect(await codeOf(store.insert(other))).toBe('invalid_request');
      expect(await codeOf(store.replace({ ...record, version: 2, ...fields }))).toBe(
        'invalid_request',
      );
      expect(await run(pool, `SELECT COUNT(*) AS count FROM ${table}`)).toEqual([{ count: 1 }]);
      expect(await store.find([record.id])).toEqual([record]);
    }
  });

  it('are truncated by a server without strict mode (the control)', async () => {
    const { pool, table, store, record } = await setUp(LENIENT);
    await run(pool, `UPDATE ${table} SET account = '${long(256)}'`);

    expect((await store.find([record.id]))[0]?.account).toBe(long(255));
  });

  it.each([
    ['revoke', (store: MysqlTokenStore, at: Date) => store.revoke(IDS[0] as TokenId, 'acme', at)],
    ['revokeAll', (store: MysqlTokenStore, at: Date) => store.revokeAll('acme', at, 1000)],
    ['purge', (store: MysqlTokenStore, at: Date) => store.purge(purgeOf(1, at))],
    [
      'page',
      (store: MysqlTokenStore, liveAt: Date) => store.page({ account: 'acme', limit: 1, liveAt }),
    ],
  ])('include an invalid date in %s', async (_, call) => {
    const { store, record } = await setUp(LENIENT);

    expect(await codeOf(call(store, new Date(Number.NaN)))).toBe('invalid_request');
    expect(await store.find([record.id])).toEqual([record]);
  });

  it.each([
    ['with strict mode', {}],
    ['without strict mode', LENIENT],
  ])('do not include the longest valid value of each field, %s', async (_, options) => {
    const { store } = await setUp(options);
    const scopes = Array.from({ length: 4096 }, (__, n) =>
      `GET:shop.example/${n}/`.padEnd(1024, 'x'),
    );
    const record = newRecord('long', {
      id: '\u00e9'.repeat(11) as TokenId,
      account: '\u{1f600}'.repeat(63),
      prefix: long(64),
      kid: long(16),
      box: new Uint8Array(1024).fill(255),
      scopes,
      requested: scopes.toReversed(),
      name: '\u{1f600}'.repeat(200),
      metadata: { text: long(65_500) },
      createdAt: new Date(8.64e15),
      expiresAt: new Date(8.64e15),
      previousDigest: new Uint8Array(32).fill(255),
      previousUntil: new Date(-8.64e15),
      version: Number.MAX_SAFE_INTEGER - 1,
    });
    await store.insert(record);
    expect(await store.find([record.id])).toEqual([record]);

    const next = { ...record, version: Number.MAX_SAFE_INTEGER, scopes: scopes.slice(1) };
    expect(await store.replace(next)).toBe(true);
    expect(await store.find([record.id])).toEqual([next]);
    expect(await store.page({ account: record.account, limit: 1, liveAt: CREATED })).toEqual([
      next,
    ]);
  });
});

describe.skipIf(url === undefined)('a MySQL connection of the host', () => {
  it.each(VERBS)('without autocommit is refused: %s', async (_, call) => {
    const { tables, record, store } = await setUp();
    const pool = newPool({ first: 'SET autocommit = 0', connectionLimit: 1 });
    const { code, message } = await refusalOf(call(new MysqlTokenStore(pool, { tables })));

    expect(code).toBe('invalid_options');
    expect(message).toContain('autocommit');
    expect(await store.find([record.id, newRecord('two').id])).toEqual([record, undefined]);
    // The host can still use the connection.
    expect(await run(pool, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('without autocommit shows a revoked token as active (the control)', async () => {
    const { tables, store, record } = await setUp();
    const pool = newPool({ connectionLimit: 1 });
    const stale = new MysqlTokenStore(pool, { tables });
    await stale.find([record.id]);
    await run(pool, 'SET autocommit = 0');
    await stale.find([record.id]);
    await store.revoke(record.id, 'acme', CREATED);

    expect(await stale.find([record.id])).toEqual([record]);
  });

  it.each(WRITES)('with an open transaction makes one write reject: %s', async (_, call) => {
    const { store, pool, record } = await setUp({ connectionLimit: 1 });
    const ended = newRecord('ended', { account: 'old', expiresAt: PAST });
    await store.insert(ended);
    await run(pool, 'BEGIN');

    expect(await codeOf(call(store))).toBe('store_unavailable');
    const ids = [record.id, ended.id, newRecord('two').id];
    expect(await store.find(ids)).toEqual([record, ended, undefined]);
    await call(store);
    expect(await store.find(ids)).not.toEqual([record, ended, undefined]);
  });

  it('that is not available in time makes calls reject, and is released when it arrives', async () => {
    const { store, pool, record } = await setUp({ connectionLimit: 1 }, { deadlineMs: 100 });
    const held = await pool.promise().getConnection();
    const codes = VERBS.map(([, call]) => codeOf(call(store)));

    expect(new Set(await Promise.all(codes))).toEqual(new Set(['store_unavailable']));
    held.release();
    expect(await store.find([record.id])).toEqual([record]);
    expect(await run(pool, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });
});

describe.skipIf(url === undefined)('watch of a MySQL store', () => {
  interface Watching extends Setting {
    /** The hints so far. */
    readonly hints: (readonly TokenId[] | 'all')[];
    readonly unsubscribe: () => Promise<void>;
    /** A store over another pool, as in another process. */
    readonly writer: MysqlTokenStore;
    /** The statements that the watching store has sent. */
    readonly statements: readonly MysqlStatement[];
  }

  async function watching(
    options: HostOptions = {},
    own: MysqlStoreOptions = {},
  ): Promise<Watching> {
    const setting = await setUp();
    const { tables } = setting;
    const pool = newPool(options);
    const statements = spied(pool);
    const store = new MysqlTokenStore(pool, { tables, ...own });
    const hints: (readonly TokenId[] | 'all')[] = [];
    const unsubscribe = await store.watch((ids) => hints.push(ids));
    cleanups.push(unsubscribe);
    return { ...setting, pool, store, writer: setting.store, hints, unsubscribe, statements };
  }

  it('reports tokens that another store replaces or revokes, once, and nothing else', async () => {
    const { writer, hints, record } = await watching();
    const two = newRecord('two');
    const three = newRecord('three', { account: 'other' });
    await writer.insert(two);
    await writer.insert(three);
    await writer.insert(newRecord('ended', { account: 'old', expiresAt: PAST }));
    await writer.replace({ ...record, version: 2 });
    await soon(() => hints).toEqual([[record.id]]);
    await writer.revoke(three.id, 'other', CREATED);
    await soon(() => hints).toEqual([[record.id], [three.id]]);

    await writer.replace({ ...two, version: 5 });
    await writer.revoke(two.id, 'nobody', CREATED);
    expect(await writer.purge(purgeOf(1))).toMatchObject({ count: 1 });
    await writer.revokeAll('nobody', CREATED, 1000);
    await writer.revokeAll('acme', CREATED, 1000);
    await soon(() => hints.length).toBe(3);
    expect([...(hints[2] ?? [])].sort()).toEqual([record.id, two.id].sort());
  });

  it('reports changes of its own store, and a second change to the same token', async () => {
    const { store, hints, record } = await watching();
    await store.replace({ ...record, version: 2 });
    await soon(() => hints).toHaveLength(1);
    await store.revoke(record.id, 'acme', CREATED, 2);

    await soon(() => hints).toEqual([[record.id], [record.id]]);
  });

  it('does not report changes in another table', async () => {
    const [mine, other] = [await watching(), await watching()];
    await other.writer.revoke(other.record.id, 'acme', CREATED);

    await soon(() => other.hints).toHaveLength(1);
    expect(mine.hints).toEqual([]);
  });

  it('does not report changes from before it started', async () => {
    const { store, record, tables } = await setUp();
    await store.revoke(record.id, 'acme', CREATED);
    const second = new MysqlTokenStore(newPool(), { tables });
    const hints: unknown[] = [];
    cleanups.push(await second.watch((ids) => hints.push(ids)));
    const two = newRecord('two');
    await store.insert(two);
    await store.revoke(two.id, 'acme', CREATED);

    await soon(() => hints).toEqual([[two.id]]);
  });

  it('reports a change that began before another one and was committed after it', async () => {
    const { writer, pool, table, hints, record } = await watching();
    const two = newRecord('two');
    await writer.insert(two);
    const slow = newPool({ connectionLimit: 1 });
    await run(
      slow,
      'BEGIN',
      `UPDATE ${table} SET changed_at = ${microseconds(0)} WHERE id = '${record.id}'`,
    );
    await writer.revoke(two.id, 'acme', CREATED);
    await soon(() => hints).toEqual([[two.id]]);
    await run(pool, 'SELECT 1');
    await run(slow, 'COMMIT');

    await soon(() => hints).toEqual([[two.id], [record.id]]);
  });

  it.each([
    [4, true],
    [6, false],
  ])(
    'looks back by the deadline and three seconds; reports a change from %d s ago: %s',
    async (seconds, isReported) => {
      const { writer, table, hints, record, pool } = await watching();
      const two = newRecord('two');
      await writer.insert(two);
      const at = microseconds(seconds);
      await run(pool, `UPDATE ${table} SET changed_at = ${at} WHERE id = '${record.id}'`);
      await writer.revoke(two.id, 'acme', CREATED);

      await soon(() => hints.flat()).toContain(two.id);
      expect(hints.flat().includes(record.id)).toBe(isReported);
    },
  );

  it('reports "all" if very many tokens change, and again when it looks back', async () => {
    const { writer, table, hints, record, pool } = await watching({}, { deadlineMs: 500 });
    await run(
      pool,
      `INSERT INTO ${table} (id, account, prefix, kid, digest, scopes, requested, created_at,
         expires_at, version)
       SELECT LEFT(MD5(seq), 22), 'big', 'acme', 'k1', REPEAT('x', 32), '[]', '[]', seq, seq, 1
       FROM seq_1_to_1500`,
    );
    // In one commit; the store itself would change them in several.
    await run(
      pool,
      `UPDATE ${table} SET changed_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
       WHERE account = 'big'`,
    );
    await soon(() => hints).toEqual(['all']);

    await writer.revoke(record.id, 'acme', CREATED);
    await soon(() => hints).toEqual(['all', [record.id]]);
    await expect.poll(() => hints, { timeout: 5000 }).toEqual(['all', [record.id], 'all']);
  });

  it.each([-3600, 3600])(
    'keeps reporting when the clock of the server jumps by %d s',
    async (seconds) => {
      // Both stores use the same server and its time.
      const { tables, store: observer, record } = await setUp();
      const [near, far] = [newPool({ connectionLimit: 1 }), newPool({ connectionLimit: 1 })];
      const writer = new MysqlTokenStore(near, { tables });
      const hints: unknown[] = [];
      const watcher = new MysqlTokenStore(far, { tables });
      cleanups.push(await watcher.watch((ids) => hints.push(ids)));
      // Setting the time of a session freezes it, so the writer needs a later time than the watcher.
      const time = (extra: number) =>
        `SET timestamp = UNIX_TIMESTAMP(SYSDATE(6)) + ${seconds + extra}`;
      await run(near, time(1));
      await run(far, time(0));

      await soon(() => hints[0]).toBe('all');
      await writer.revoke(record.id, 'acme', CREATED);
      await soon(() => hints).toContainEqual([record.id]);
      expect(await observer.find([record.id])).toEqual([revoked(record, CREATED)]);
    },
  );

  it('misses no change when the server kills its connection', async () => {
    const { writer, hints, record, pool } = await watching({ connectionLimit: 1 });
    const [{ id } = {}] = await run(pool, 'SELECT CONNECTION_ID() AS id');
    await run(newPool(), `KILL ${id}`);
    await writer.revoke(record.id, 'acme', CREATED);

    await soon(() => hints).toContainEqual([record.id]);
    expect(await run(pool, 'SELECT CONNECTION_ID() AS id')).not.toEqual([{ id }]);
  });

  it('reports "all" when the server is lost and again when it is back', async () => {
    const proxy = await startProxy();
    const { writer, hints, record } = await watching({ uri: proxy.url });
    await proxy.set('refuse');
    await soon(() => hints).toEqual(['all']);
    await proxy.set('pass');
    await expect.poll(() => hints, { timeout: 2000 }).toEqual(['all', 'all']);

    await writer.revoke(record.id, 'acme', CREATED);
    await soon(() => hints).toEqual(['all', 'all', [record.id]]);
  });

  it('reports changes during an outage only as "all"', async () => {
    const proxy = await startProxy();
    const { writer, hints, record } = await watching({ uri: proxy.url });
    await proxy.set('refuse');
    await soon(() => hints).toEqual(['all']);
    await writer.revoke(record.id, 'acme', CREATED);
    await proxy.set('pass');

    await expect.poll(() => hints, { timeout: 2000 }).toEqual(['all', 'all']);
  });

  it('detects a connection that died silently', async () => {
    const proxy = await startProxy();
    const { writer, hints, record } = await watching({ uri: proxy.url }, { deadlineMs: 300 });
    await proxy.silence();
    await expect.poll(() => hints, { timeout: 2000 }).toEqual(['all', 'all']);

    await writer.revoke(record.id, 'acme', CREATED);
    await soon(() => hints).toContainEqual([record.id]);
  });

  it('polls every pollMs, and stops on unsubscribe, which can be called twice', async () => {
    const { writer, hints, record, unsubscribe, statements } = await watching({}, { pollMs: 1 });
    await soon(() => statements.length).toBeGreaterThan(10);
    await unsubscribe();
    await unsubscribe();
    await writer.revoke(record.id, 'acme', CREATED);
    const { length } = statements;
    const rival = await watching({}, { pollMs: 1 });
    await soon(() => rival.statements.length).toBeGreaterThan(10);

    expect(statements).toHaveLength(length);
    expect(hints).toEqual([]);
  });

  it('reports nothing more if unsubscribed while it waits for an answer', async () => {
    const proxy = await startProxy();
    const { store, hints, unsubscribe, statements } = await watching(
      { uri: proxy.url, connectionLimit: 1 },
      { deadlineMs: 300 },
    );
    await proxy.silence();
    const { length } = statements;
    await soon(() => statements.length).toBeGreaterThan(length);
    await unsubscribe();
    await soon(() => store.find(IDS).catch(() => 'down')).toHaveLength(IDS.length);

    expect(hints).toEqual([]);
  });

  it('does not poll again if unsubscribed while the server is lost', async () => {
    const proxy = await startProxy();
    const { hints, unsubscribe } = await watching({ uri: proxy.url });
    await proxy.set('refuse');
    await soon(() => hints).toEqual(['all']);
    await unsubscribe();
    await proxy.set('pass');
    const rival = await watching({ uri: proxy.url }, { pollMs: 1 });
    await soon(() => rival.statements.length).toBeGreaterThan(10);

    expect(hints).toEqual(['all']);
  });

  it('does not keep the process alive', async () => {
    const { tables } = await setUp();
    const child = inChild(`
      const pool = createPool(${JSON.stringify({ uri: url })});
      const store = new MysqlTokenStore(pool, ${JSON.stringify({ tables })});
      await store.watch(() => {});
      pool.end();
    `);

    expect(await child.ended).toEqual({ code: 0, errors: '' });
  });

  it('rejects if the server is unreachable or the table is missing', async () => {
    const refused = newPool({ host: '127.0.0.1', port: await freePort(), uri: '' });
    for (const store of [
      new MysqlTokenStore(refused),
      new MysqlTokenStore(newPool(), { tables: newName() }),
    ]) {
      expect(await codeOf(store.watch(() => {}))).toBe('store_unavailable');
    }
  });
});

/** SQL for the server time some seconds ago, in the format of `changed_at`. */
function microseconds(secondsAgo: number): string {
  return `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - ${secondsAgo} * 1000000`;
}

/** A proxy between a pool and the server, which is closed at the end of the test. */
async function startProxy(): Promise<DatabaseProxy> {
  const proxy = await startDatabaseProxy(url as string);
  cleanups.push(() => proxy.close());
  return proxy;
}

/** A process that runs a script with the names of tokenwright and mysql2 imported. */
function inChild(script: string): Child {
  const module = new URL('../../../src/stores/mysql/index.ts', import.meta.url).href;
  return startChild(`
    import { createPool } from 'mysql2';
    import { migrate, MysqlTokenStore } from ${JSON.stringify(module)};
    ${script}
  `);
}

describe.skipIf(url === undefined)('doctor of a MySQL store', () => {
  const codesOf = async (store: MysqlTokenStore) => (await doctor(store)).map(({ code }) => code);

  it('finds nothing in a healthy setup', async () => {
    expect(await doctor((await setUp()).store)).toEqual([]);
    expect(await doctor((await setUp(CONTRARY)).store)).toEqual([]);
  });

  it.each([
    ['autocommit_off', 'SET autocommit = 0'],
    ['isolation_read_uncommitted', 'SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED'],
    ['clock_skew', 'SET timestamp = UNIX_TIMESTAMP() + 5'],
    ['clock_skew', 'SET timestamp = UNIX_TIMESTAMP() - 5'],
  ])('reports %s for the connections of the pool: %s', async (code, first) => {
    const { tables } = await setUp();
    const findings = await doctor(new MysqlTokenStore(newPool({ first }), { tables }));

    expect(findings).toEqual([{ code, message: expect.stringMatching(/^[^\n]{40,}$/) }]);
  });

  it.each([
    [0, true],
    [2001, true],
    [2000, false],
    [1000, false],
  ])(
    'reports connect_timeout_too_long for a connectTimeout of %i ms: %s',
    async (connectTimeout, isFound) => {
      const { tables } = await setUp();
      const pool = newPool({ connectTimeout });
      const findings = await doctor(new MysqlTokenStore(pool, { tables, deadlineMs: 2000 }));

      const found = { code: 'connect_timeout_too_long', message: expect.stringContaining('2000') };
      expect(findings).toEqual(isFound ? [found] : []);
    },
  );

  it('reports connect_timeout_too_long for the default of the driver', async () => {
    const { tables } = await setUp();
    const pool = createPool({ uri: url as string });
    cleanups.push(() => ended(pool));

    expect(await codesOf(new MysqlTokenStore(pool, { tables }))).toEqual([
      'connect_timeout_too_long',
    ]);
  });

  it.each([
    ['schema_missing', 'DROP TABLE %', 'migrate'],
    ['schema_differs', 'ALTER TABLE % DROP INDEX by_change', 'by_change'],
    ['schema_differs', 'ALTER TABLE % DROP INDEX by_holder', 'by_holder'],
    ['schema_differs', 'ALTER TABLE % DROP COLUMN changed_at', 'changed_at'],
    ['schema_differs', 'ALTER TABLE % MODIFY name VARBINARY(799)', 'name'],
    ['engine_not_innodb', 'ALTER TABLE % ENGINE=MyISAM', 'MyISAM'],
    [
      'column_not_binary',
      'ALTER TABLE % MODIFY account VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL',
      'account',
    ],
    ['column_not_binary', 'ALTER TABLE % MODIFY scopes LONGTEXT CHARACTER SET utf8mb4', 'scopes'],
  ])('reports %s for the table: %s', async (code, change, hint) => {
    const { store, pool, table } = await setUp();
    await run(pool, change.replace('%', table));
    const findings = await doctor(store);

    expect(findings).toEqual([{ code, message: expect.stringContaining(hint) }]);
  });

  it.each<[string | undefined, Record<string, string>]>([
    ['log_not_flushed_at_commit', { innodb_flush_log_at_trx_commit: '0' }],
    ['log_not_flushed_at_commit', { innodb_flush_log_at_trx_commit: '2' }],
    [undefined, { innodb_flush_log_at_trx_commit: '1' }],
    [undefined, { innodb_flush_log_at_trx_commit: '3' }],
    ['binlog_not_synced', { log_bin: 'ON', sync_binlog: '0' }],
    ['binlog_not_synced', { log_bin: 'ON', sync_binlog: '100' }],
    [undefined, { log_bin: 'ON', sync_binlog: '1' }],
    [undefined, { log_bin: 'OFF', sync_binlog: '0' }],
    ['read_only', { read_only: 'ON' }],
    ['read_only', { super_read_only: 'ON' }],
    ['read_only', { innodb_read_only: 'ON' }],
    [undefined, { read_only: 'OFF', super_read_only: 'OFF', innodb_read_only: 'OFF' }],
    ['isolation_read_uncommitted', { transaction_isolation: 'READ-UNCOMMITTED' }],
    [undefined, { transaction_isolation: 'READ-COMMITTED' }],
    ['packets_too_small', { max_allowed_packet: '16777215' }],
    [undefined, { max_allowed_packet: '16777216' }],
    ['cluster_reads_stale', { wsrep_on: 'ON', wsrep_sync_wait: '0' }],
    ['cluster_reads_stale', { wsrep_on: 'ON', wsrep_sync_wait: '6' }],
    [undefined, { wsrep_on: 'ON', wsrep_sync_wait: '1' }],
    [undefined, { wsrep_on: 'ON', wsrep_sync_wait: '7' }],
    [undefined, { wsrep_on: 'OFF', wsrep_sync_wait: '0' }],
  ])('reports %s for a server with %j', async (code, settings) => {
    const { pool, tables } = await setUp();
    const store = new MysqlTokenStore(withSettings(pool, settings), { tables });

    expect(await codesOf(store)).toEqual(code === undefined ? [] : [code]);
  });

  /** A pool that pretends that the server has other settings, some of which a test cannot set. */
  function withSettings(pool: Pool, settings: Record<string, string>): MysqlPool {
    const own = Object.entries(settings).map(([Variable_name, Value]) => ({
      Variable_name,
      Value,
    }));
    const wrapped = (inner: PoolConnection): MysqlConnection => ({
      execute: (statement, callback) => inner.execute(statement, callback),
      query(statement, callback) {
        const isAsked = statement.sql === 'SHOW VARIABLES';
        inner.query<RowDataPacket[]>(statement, (error, rows) =>
          callback(error, isAsked ? [...rows, ...own] : rows),
        );
      },
      release: () => inner.release(),
      destroy: () => inner.destroy(),
    });
    return {
      getConnection: (callback) =>
        pool.getConnection((error, inner) => callback(error, wrapped(inner))),
    };
  }

  it('rejects if the server is unreachable', async () => {
    const store = new MysqlTokenStore(newPool({ uri: `mysql://127.0.0.1:${await freePort()}/x` }));

    expect(await codeOf(doctor(store))).toBe('store_unavailable');
  });
});

describe.skipIf(url === undefined)('options of a MySQL store', () => {
  const refused = expect.objectContaining({ code: 'invalid_options' });

  it.each([0, -1, 1.5, 60_001, Number.NaN, '5'])('refuse %j as pollMs', (pollMs) => {
    const options = { pollMs } as MysqlStoreOptions;
    expect(() => new MysqlTokenStore(newPool(), options)).toThrow(refused);
  });

  it.each([1, 60_000, undefined, null])('accept %j as pollMs', (pollMs) => {
    const options = { pollMs } as MysqlStoreOptions;
    expect(() => new MysqlTokenStore(newPool(), options)).not.toThrow();
  });
});

describe.skipIf(url === undefined)('migrate in MySQL', () => {
  async function schemaOf(pool: Pool, table: string): Promise<unknown> {
    const [row] = await run(pool, `SHOW CREATE TABLE ${table}`);
    return String(row?.['Create Table']).replace(table, 'table');
  }

  it('creates the same table over a pool with unusual settings', async () => {
    const [plain, contrary] = [await setUp(), await setUp(CONTRARY)];
    const pool = newPool();

    expect(await schemaOf(pool, contrary.table)).toBe(await schemaOf(pool, plain.table));
  });

  it('creates an InnoDB table, whatever the default engine is', async () => {
    const { pool, table } = await setUp({ first: "SET default_storage_engine = 'MyISAM'" });
    const state = `SHOW TABLE STATUS LIKE '${table}'`;

    expect(await run(pool, state)).toMatchObject([{ Engine: 'InnoDB' }]);
  });

  it('leaves a table unchanged if it cannot write', async () => {
    const { pool, tables, table } = await setUp();
    await run(pool, `DROP TABLE ${tables}_usage`);
    const before = await schemaOf(pool, table);
    const reading = newPool({ first: 'SET SESSION TRANSACTION READ ONLY' });

    expect(await codeOf(migrate(reading, { tables }))).toBe('store_unavailable');
    expect(await schemaOf(pool, table)).toBe(before);
  });

  it.each(['', 'tokenwright schema'])('refuses a table with the comment "%s"', async (comment) => {
    const { pool, tables, table } = await setUp();
    await run(pool, `ALTER TABLE ${table} COMMENT = '${comment}'`);
    const before = await schemaOf(pool, table);
    const { code, message } = await refusalOf(migrate(pool, { tables }));

    expect(code).toBe('invalid_options');
    expect(message).toContain('not one of tokenwright');
    expect(await schemaOf(pool, table)).toBe(before);
  });
});

describe.skipIf(url === undefined)('a MySQL database that fails', () => {
  /** The message of the driver itself. */
  async function textOf(pool: Pool, sql: string): Promise<string> {
    const error = await pool
      .promise()
      .query(sql)
      .catch((failure: Error) => failure);
    if (!(error instanceof Error)) throw new Error('did not fail');
    return error.message;
  }

  const states: [string, () => Promise<[Pool, string]>, StoreReason][] = [
    [
      'without an index',
      async () => {
        const { pool, tables, table } = await setUp();
        await run(pool, `ALTER TABLE ${table} RENAME INDEX by_account TO other`);
        await run(pool, `ALTER TABLE ${table} DROP COLUMN prefix, DROP COLUMN ends_at`);
        return [pool, tables];
      },
      'schema_older',
    ],
    [
      'without a database',
      async () => [newPool({ uri: (url as string).replace(/[a-z]+$/, '') }), newName()],
      'no_database',
    ],
    [
      'with an unknown database',
      async () => [newPool({ database: newName() }), newName()],
      'no_database',
    ],
    [
      'with an unknown user',
      async () => [newPool({ user: newName().slice(0, 30), password: 'hidden' }), newName()],
      'credentials',
    ],
    [
      'with a pool that does not wait for connections',
      async () => {
        const { tables } = await setUp();
        const pool = newPool({ connectionLimit: 1, waitForConnections: false });
        const held = await pool.promise().getConnection();
        cleanups.push(() => held.release());
        return [pool, tables];
      },
      'busy',
    ],
  ];

  describe.each(states)('%s', (state, make, reason) => {
    it('makes no verb reject with the text of the driver', async () => {
      const [pool, tables] = await make();
      const store = new MysqlTokenStore(pool, { tables });
      const driverText = await textOf(pool, `SELECT prefix, ends_at FROM ${tables}_tokens`);
      const answered: string[] = [];
      for (const [verb, call] of VERBS) {
        const outcome = await call(store).then(
          () => verb,
          () => undefined,
        );
        if (outcome !== undefined) {
          answered.push(verb);
          continue;
        }
        const { code, message, details } = await refusalOf(call(store));
        expect([verb, code, details]).toEqual([verb, 'store_unavailable', { reason }]);
        expect(message).not.toContain(driverText);
        expect(message).not.toMatch(/ECONN|127\.0|hidden|test_/);
      }
      // It needs no more than the columns that are left.
      expect(answered).toEqual(state === 'without an index' ? ['revoke'] : []);
    });
  });

  it('makes insert reject with id_taken only if the id is taken', async () => {
    const { pool, table, store, record } = await setUp();
    await run(pool, `ALTER TABLE ${table} ADD UNIQUE KEY PRIMARY_name (name)`);
    await store.insert(newRecord('two', { name: 'PRIMARY' }));

    expect(await codeOf(store.insert(newRecord('three', { name: 'PRIMARY' })))).toBe(
      'store_unavailable',
    );
    expect(await codeOf(store.insert(record))).toBe('id_taken');
    expect(await store.find([newRecord('three').id])).toEqual([undefined]);
  });

  it('lets the next call use another connection if one was killed', async () => {
    const { store, pool, record } = await setUp({ connectionLimit: 1 });
    const [{ id } = {}] = await run(pool, 'SELECT CONNECTION_ID() AS id');
    const slow = run(pool, 'SELECT SLEEP(20)').catch((error: Error) => error);
    const waiting = store.find([record.id]);
    await run(newPool(), `KILL ${id}`);

    expect(await slow).toBeInstanceOf(Error);
    expect(await waiting).toEqual([record]);
  });

  it('makes a call reject if its connection is killed', async () => {
    const { store, pool, table, record } = await setUp();
    const rival = await pool.promise().getConnection();
    await rival.query('BEGIN');
    await rival.query(`SELECT 1 FROM ${table} FOR UPDATE`);
    const revoked = codeOf(store.revoke(record.id, 'acme', CREATED));
    await waitingForLock(table);
    const [{ id } = {}] = await run(
      newPool(),
      `SELECT trx_mysql_thread_id AS id FROM information_schema.INNODB_TRX
       WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE '%${table}%'`,
    );
    await run(newPool(), `KILL ${id}`);

    expect(await revoked).toBe('store_unavailable');
    await rival.query('ROLLBACK');
    rival.release();
    expect(await store.find([record.id])).toEqual([record]);
    expect(await store.revoke(record.id, 'acme', CREATED)).toBe(true);
  });

  it('does not exhaust the pool if connecting hangs', async () => {
    const proxy = await startProxy();
    const { store, record, pool } = await setUp(
      { uri: proxy.url, connectionLimit: 2, connectTimeout: 800 },
      { deadlineMs: 800 },
    );
    const plain = newPool({ uri: proxy.url, connectionLimit: 2, connectTimeout: 10_000 });
    await run(plain, 'SELECT 1');
    await proxy.set('halfOpen');
    const endless = vi.fn();
    for (let n = 0; n < 4; n++) run(plain, 'SELECT 1').then(endless, endless);
    for (let round = 0; round < 2; round++) {
      const calls = VERBS.map(([, call]) => codeOf(call(store)));
      expect(new Set(await Promise.all(calls))).toEqual(new Set(['store_unavailable']));
    }
    await proxy.set('pass');

    const find = () => store.find([record.id]).catch(() => 'down');
    await expect.poll(find, { timeout: 2000 }).toEqual([record]);
    expect(await run(pool, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    // The control: a pool with the default of the driver still waits, for ten seconds.
    expect(endless).not.toHaveBeenCalled();
    await proxy.set('refuse');
  });

  it('makes calls reject within the deadline, however long the pool waits to connect', async () => {
    const proxy = await startProxy();
    const { store } = await setUp(
      { uri: proxy.url, connectionLimit: 2, connectTimeout: 10_000 },
      { deadlineMs: 500 },
    );
    await proxy.set('halfOpen');
    const frozenAt = performance.now();

    const calls = VERBS.map(([, call]) => codeOf(call(store)));
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['store_unavailable']));
    expect(performance.now() - frozenAt).toBeLessThan(2000);
    await proxy.set('refuse');
  });
});

describe.skipIf(url === undefined)('a MariaDB server', { timeout: 60_000 }, () => {
  let server: Server;
  beforeAll(async () => {
    server = await startServer('mariadb', {
      settings: { 'log-bin': 'binlog', 'sync-binlog': '1' },
    });
  });
  afterAll(() => server.stop());

  async function setUpOwn(
    options: HostOptions = {},
    own: MysqlStoreOptions = {},
  ): Promise<Setting> {
    const pool = newPool({ uri: server.url, connectionLimit: 2, ...options });
    const tables = newName();
    await migrate(pool, { tables });
    const store = new MysqlTokenStore(pool, { tables, ...own });
    const record = newRecord('one');
    await store.insert(record);
    return { pool, tables, table: `${tables}_tokens`, store, record };
  }

  /** Stops all threads of the server. */
  async function stop(): Promise<void> {
    const threads = `/proc/${server.pid}/task`;
    const states = () =>
      readdirSync(threads).map((id) => readFileSync(`${threads}/${id}/stat`, 'utf8').split(' ')[2]);
    await server.signal('SIGSTOP');
    cleanups.push(() => server.signal('SIGCONT'));
    await soon(() => new Set(states())).toEqual(new Set(['T']));
  }

  it('that is killed loses no acknowledged change', async () => {
    const { tables, store } = await setUpOwn();
    const records = Array.from({ length: 20 }, (_, n) => newRecord(`n${n}`));
    for (const record of records) await store.insert(record);
    await store.replace(newRecord('n0', { version: 2 }));
    await store.revoke(newRecord('n1').id, 'acme', CREATED);
    await server.signal('SIGKILL');
    await server.restart();

    const again = new MysqlTokenStore(newPool({ uri: server.url }), { tables });
    expect(await again.find(records.map(({ id }) => id))).toEqual([
      newRecord('n0', { version: 2 }),
      revoked(newRecord('n1'), CREATED),
      ...records.slice(2),
    ]);
  });

  it('that hangs makes calls reject in time, and is used again when it continues', async () => {
    const { pool, table, store } = await setUpOwn({}, { deadlineMs: 500 });
    const plain = newPool({ uri: server.url });
    await run(plain, 'SELECT 1');
    await stop();
    const stoppedAt = performance.now();
    const endless = vi.fn();
    const control = run(plain, `SELECT id FROM ${table}`).then(endless);

    const calls = VERBS.map(([, call]) => codeOf(call(store)));
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['store_unavailable']));
    expect(performance.now() - stoppedAt).toBeLessThan(2000);
    expect(endless).not.toHaveBeenCalled();
    await server.signal('SIGCONT');

    const find = () => store.find([newRecord('one').id]).catch(() => 'down');
    await expect.poll(find, { timeout: 2000 }).toHaveLength(1);
    for (let n = 0; n < 10; n++) expect(await find()).toHaveLength(1);
    expect(await Promise.all(Array.from({ length: 9 }, () => run(pool, 'SELECT 1')))).toHaveLength(
      9,
    );
    await control;
  });

  it('that is killed and restarted is used again', async () => {
    const { store, record } = await setUpOwn();
    const hints: unknown[] = [];
    cleanups.push(await store.watch((ids) => hints.push(ids)));
    await server.signal('SIGKILL');
    expect(await codeOf(store.find([record.id]))).toBe('store_unavailable');
    await server.restart();

    const find = () => store.find([record.id]).catch(() => 'down');
    await expect.poll(find, { timeout: 2000 }).toEqual([record]);
    await expect.poll(() => hints, { timeout: 2000 }).toEqual(['all', 'all']);
    await store.revoke(record.id, 'acme', CREATED);
    await soon(() => hints).toEqual(['all', 'all', [record.id]]);
  });

  it('is checked by doctor for flushing, binlog and read_only', async () => {
    const { store, pool } = await setUpOwn();
    const codes = async () => (await doctor(store)).map(({ code }) => code);
    expect(await codes()).toEqual([]);

    await run(
      pool,
      'SET GLOBAL innodb_flush_log_at_trx_commit = 2',
      'SET GLOBAL sync_binlog = 0',
      'SET GLOBAL read_only = ON',
    );
    expect(await codes()).toEqual(['log_not_flushed_at_commit', 'binlog_not_synced', 'read_only']);
    await run(
      pool,
      'SET GLOBAL innodb_flush_log_at_trx_commit = 1',
      'SET GLOBAL sync_binlog = 1',
      'SET GLOBAL read_only = OFF',
    );
    expect(await codes()).toEqual([]);
  });
});

describe.skipIf(url === undefined)('the clock of a MySQL server', () => {
  /** A store whose statements believe the clock of the caller alone. */
  function ofBeliever(pool: Pool, tables: string): MysqlTokenStore {
    pool.on('connection', (connection) => {
      const own = connection as unknown as MysqlConnection;
      const execute = own.execute.bind(own);
      own.execute = ({ sql, ...statement }, callback) =>
        execute(
          { ...statement, sql: sql.replaceAll(/LEAST\(\?, [^?]*? DIV 1000\)/g, '?') },
          callback,
        );
    });
    return new MysqlTokenStore(pool, { tables });
  }

  it('keeps live tokens from a process whose clock is a year fast', async () => {
    const { store } = await setUp();
    expect(await purgeByFastClock(store)).toEqual({ removed: 0, left: TOKENS });
  });

  it('would lose them if the clock of the caller decided alone (the control)', async () => {
    const { tables } = await setUp();
    const believer = ofBeliever(newPool(), tables);
    expect(await purgeByFastClock(believer)).toEqual({ removed: TOKENS, left: 0 });
  });

  it('says which instants have come', async () => {
    const { store } = await setUp();
    const now = Date.now();
    for (const [ms, expected] of [
      [-60_000, true],
      [60_000, false],
      [365 * 86_400_000, false],
    ] as const) {
      expect(await store.hasReached(new Date(now + ms))).toBe(expected);
    }
    expect(await store.hasReached(new Date(0))).toBe(true);
  });
});
