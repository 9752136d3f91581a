import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { escapeLiteral, Pool, type PoolConfig, types } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { doctor } from '../../../src/ports/token-store.ts';
import type { PostgresPool, PostgresQuery } from '../../../src/stores/postgres/client.ts';
import {
  migrate,
  type PostgresStoreOptions,
  PostgresTokenStore,
} from '../../../src/stores/postgres/index.ts';
import { storeContract } from '../../../src/testing/index.ts';
import { LISTED_STATES, type TokenId, type TokenRecord } from '../../../src/token/record.ts';
import { revoked } from '../../../src/token/revoked.ts';
import { freePort, type Server, startServer } from '../../servers.ts';
import { refusalOf } from '../../support.ts';
import { type DatabaseProxy, startDatabaseProxy } from '../database-proxy.ts';
import { CREATED, newRecord } from '../support.ts';
import { COUNT, ENDED, PRUNE, PURGE, VERBS, WRITES } from '../verbs.ts';

const url = inject('servers').postgres;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

/** A pool with timeouts, as a careful host creates it. */
function newPool(config: PoolConfig = {}): Pool {
  const pool = new Pool({
    connectionString: url,
    connectionTimeoutMillis: 2000,
    statement_timeout: 2000,
    ...config,
  });
  pool.on('error', () => {});
  cleanups.push(() => pool.ended || pool.end());
  return pool;
}

function newName(): string {
  return `test_${randomBytes(8).toString('hex')}`;
}

/** The beginning of the names of tables that are dropped at the end of the test. */
function newTables(pool: Pool): string {
  const tables = newName();
  cleanups.push(() =>
    pool.query(
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
  readonly store: PostgresTokenStore;
  readonly record: TokenRecord;
}

/** A store over a new table, with one record. */
async function setUp(
  config: PoolConfig = {},
  options: PostgresStoreOptions = {},
): Promise<Setting> {
  const pool = newPool(config);
  const tables = newTables(pool);
  await migrate(pool, { tables });
  const store = new PostgresTokenStore(pool, { tables, ...options });
  const record = newRecord('one');
  await store.insert(record);
  return { pool, tables, table: `${tables}_tokens`, store, record };
}

const isolation = (level: string): PoolConfig => ({
  options: `-c default_transaction_isolation=${level.replace(' ', '\\ ')}`,
});

describe.skipIf(url === undefined)('PostgreSQL store', () => {
  const ways: [string, PoolConfig, PostgresStoreOptions][] = [
    ['with default options', {}, {}],
    ['without prepared statements (further)', {}, { prepare: false }],
    ['over one connection (further)', { max: 1 }, {}],
    ['over a driver that reads bigint (further)', { types: { getTypeParser: readingBigInts } }, {}],
    ['under repeatable read (further)', isolation('repeatable read'), {}],
    ['under serializable', isolation('serializable'), {}],
  ];

  /** Some hosts configure the driver like this for all of their queries. */
  function readingBigInts(type: number, format?: 'text' | 'binary'): (value: string) => unknown {
    return type === types.builtins.INT8 ? BigInt : types.getTypeParser(type, format as 'text');
  }

  describe.each(ways)('%s', (_, config, options) => {
    const pool = new Pool({ connectionString: url, ...config });
    const tables = newName();
    beforeAll(() => migrate(pool, { tables }));
    afterAll(async () => {
      await pool.query(
        `DROP TABLE ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`,
      );
      await pool.end();
    });

    it.each(storeContract)('$name', (promise) =>
      promise.run(async () => {
        await pool.query(`TRUNCATE ${tables}_tokens`);
        return new PostgresTokenStore(pool, { tables, ...options });
      }),
    );
  });
});

describe.skipIf(url === undefined)('concurrent callers of a PostgreSQL store', () => {
  it.each(['read committed', 'repeatable read', 'serializable'])(
    'let exactly one of 64 replaces win each version (%s)',
    async (level) => {
      const { pool, store, record } = await setUp(isolation(level));
      const { rows } = await pool.query('SHOW transaction_isolation');
      expect(rows).toEqual([{ transaction_isolation: level }]);

      for (let version = 2; version <= 6; version++) {
        const rivals = Array.from({ length: 64 }, (_, n) => ({
          ...record,
          version,
          name: `rival ${n}`,
        }));
        const outcomes = await Promise.all(rivals.map((rival) => store.replace(rival)));
        const winners = rivals.filter((_, n) => outcomes[n]);
        expect(winners).toHaveLength(1);
        expect(await store.find([record.id])).toEqual(winners);
      }
    },
  );

  it('get serialization failures over a bare pool (the control)', async () => {
    const { pool, table, record } = await setUp(isolation('serializable'));
    const update = { text: `UPDATE ${table} SET version = version + 1 WHERE id = $1` };
    const outcomes = await Promise.allSettled(
      Array.from({ length: 32 }, () => pool.query({ ...update, values: [record.id] })),
    );

    expect(outcomes).toContainEqual(
      expect.objectContaining({ reason: expect.objectContaining({ code: '40001' }) }),
    );
  });

  it.each([
    ['40001', true],
    ['40P01', true],
    ['57014', false],
  ])('are retried after SQLSTATE %s: %s', async (code, isRepeated) => {
    const { pool, tables } = await setUp();
    let losses = 2;
    const { recording, queries } = recorder(pool, (rows) => {
      losses -= 1;
      if (losses >= 0) throw Object.assign(new Error('lost'), { severity: 'ERROR', code });
      return rows;
    });
    const store = new PostgresTokenStore(recording, { tables });
    const revoking = store.revokeAll('nobody', CREATED, 1000);

    if (isRepeated) expect(await revoking).toBe(0);
    else expect(await refusalOf(revoking)).toMatchObject({ code: 'store_unavailable' });
    expect(queries).toHaveLength(isRepeated ? 3 : 1);
  });

  it('are not retried after the deadline', async () => {
    const { pool, tables } = await setUp();
    const { recording } = recorder(pool, () => {
      throw Object.assign(new Error('lost'), { severity: 'ERROR', code: '40001' });
    });
    const store = new PostgresTokenStore(recording, { tables, deadlineMs: 50 });

    expect(await refusalOf(store.purge(PURGE))).toMatchObject({ code: 'store_unavailable' });
  });
});

/** Waits until `count` statements on a table wait for a lock. */
async function waiting(pool: Pool, table: string, count: number): Promise<void> {
  await expect
    .poll(async () => {
      const { rows } = await pool.query(
        `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1`,
        [`%${table}%`],
      );
      return rows.length;
    })
    .toBe(count);
}

describe.skipIf(url === undefined)('statements of a PostgreSQL store', () => {
  it('are prepared under names that no other table uses', async () => {
    const { pool, store } = await setUp({ max: 1 });
    const second = newTables(pool);
    await migrate(pool, { tables: second });
    const other = new PostgresTokenStore(pool, { tables: second });
    for (const [, call] of VERBS) {
      await call(other);
      await call(store);
    }

    const { rows } = await pool.query<{ name: string; statement: string }>(
      'SELECT name, statement FROM pg_prepared_statements',
    );
    // By expiry, live and expired tokens have the same statement; that of hasReached reads no table.
    const statements = VERBS.length - 1;
    expect(rows).toHaveLength(2 * statements - 1);
    const own = rows.filter(({ statement }) => statement.includes(second));
    expect(own).toHaveLength(statements - 1);
    for (const { name } of rows) expect(name.length).toBeLessThan(64);
    expect(await other.find([newRecord('one').id])).toEqual([undefined]);
  });

  it('are not prepared with prepare: false', async () => {
    const { pool, store } = await setUp({ max: 1 }, { prepare: false });
    for (const [, call] of VERBS) await call(store);

    const { rows } = await pool.query('SELECT name FROM pg_prepared_statements');
    expect(rows).toEqual([]);
  });

  it.each(VERBS)('take one round trip: %s', async (_, call) => {
    const { pool, tables } = await setUp();
    const { recording, queries } = recorder(pool);
    await call(new PostgresTokenStore(recording, { tables }));

    expect(queries.filter((query) => !isHint(query))).toHaveLength(1);
  });
});

describe.skipIf(url === undefined)('page of a PostgreSQL store with maxBytes', () => {
  it('reads no more rows than it returns', async () => {
    const { pool, tables, store } = await setUp();
    const scopes = Array.from({ length: 4096 }, (_, index) => `GET:shop.example/${index}`);
    const records = Array.from({ length: 6 }, (_, index) =>
      newRecord(`n${index}`, {
        scopes: [...scopes, `GET:shop.example/${'x'.repeat(100_000)}/${index}`],
        createdAt: new Date(CREATED.getTime() + 10 - index),
      }),
    );
    for (const record of records) await store.insert(record);
    const answers: number[] = [];
    const { recording } = recorder(pool, (rows) => {
      answers.push(rows.length);
      return rows;
    });
    const query = { account: 'acme', limit: 100, liveAt: CREATED, maxBytes: 400_000 };

    const page = await new PostgresTokenStore(recording, { tables }).page(query);
    expect(page).toEqual(records.slice(0, 3));
    expect(answers).toEqual([3]);
  });
});

/** Whether a statement only notifies other processes of changes. */
const isHint = ({ text }: PostgresQuery) => text.includes('pg_notify');

/** A pool that records its queries and can replace the rows of their results. */
function recorder(
  pool: Pool,
  answer: (rows: readonly unknown[]) => readonly unknown[] = (rows) => rows,
): { recording: PostgresPool; queries: PostgresQuery[] } {
  const queries: PostgresQuery[] = [];
  const recording: PostgresPool = {
    async query(query) {
      queries.push(query);
      const { text, values = [] } = query;
      return { rows: answer((await pool.query(text, [...values])).rows) };
    },
    connect: () => pool.connect(),
    on: (event, listener) => pool.on(event, listener),
    listenerCount: (event) => pool.listenerCount(event),
    idleCount: 0,
    ending: false,
    options: pool.options,
  };
  return { recording, queries };
}

describe.skipIf(url === undefined)('query plans in PostgreSQL', () => {
  const tokens = 20_000;

  /** The query plan of each verb, over a table with many tokens. */
  async function plansOf(mode: string): Promise<Map<string, string>> {
    const { pool, tables, table } = await setUp({ max: 1, statement_timeout: false });
    await pool.query(
      `INSERT INTO ${table} (id, account, prefix, kid, digest, scopes, requested, created_at,
         expires_at, version, revoked_at, parent, root)
       SELECT lpad(i::text, 22, '0'), 'account' || i % 20, 'acme', 'k1', sha256(''), '[]', '[]', i,
         i + 1000, 1, CASE WHEN i % 10 = 0 THEN i END, CASE i % 2 WHEN 0 THEN 'parent' || i END,
         CASE i % 2 WHEN 0 THEN 'root' || i % 99 END
       FROM generate_series(1, ${tokens}) AS i`,
    );
    await pool.query(`ANALYZE ${table}`);
    await pool.query(`SET plan_cache_mode = ${mode}`);
    const { recording, queries } = recorder(pool, () => []);
    const plans = new Map<string, string>();
    const store = new PostgresTokenStore(recording, { tables });
    for (const [verb, call] of VERBS) {
      await pool.query('BEGIN');
      await call(store).catch(() => {});
      await pool.query('ROLLBACK');
      plans.set(verb, await planOf(pool, queries.at(-1) as PostgresQuery));
    }
    return plans;
  }

  async function planOf(pool: Pool, { text, values = [] }: PostgresQuery): Promise<string> {
    await pool.query(`PREPARE it AS ${text}`);
    const given = values.length === 0 ? '' : `(${values.map(literalOf).join(', ')})`;
    const { rows } = await pool.query(`EXPLAIN (COSTS OFF) EXECUTE it${given}`);
    await pool.query('DEALLOCATE it');
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  }

  function literalOf(value: unknown): string {
    if (value === null) return 'NULL';
    if (Array.isArray(value)) return `'{${value.join(',')}}'`;
    if (value instanceof Uint8Array) return `'\\x${Buffer.from(value).toString('hex')}'`;
    return escapeLiteral(String(value));
  }

  it.each(['force_custom_plan', 'force_generic_plan'])(
    'use an index for every verb, and read pages without sorting (%s)',
    async (mode) => {
      const plans = await plansOf(mode);

      for (const [verb, plan] of plans) expect(`${verb}: ${plan}`).not.toMatch(/Seq Scan on test_/);
      expect(plans.get('page')).toMatch(
        /^Limit\n(.*\n){3} +One-Time Filter: .*\n *-> +Index Scan using test_\w+_by_account on /,
      );
      expect(plans.get('page')).toContain('ROW(created_at, id) < ROW(');
      expect(plans.get('page')).not.toContain('Sort');
      for (const part of ['ROW(created_at, id) < ROW(', '_by_account on ', 'WindowAgg']) {
        expect(plans.get('page up to a size')).toContain(part);
      }
      expect(plans.get('page up to a size')).not.toContain('Sort');
      for (const [state, index] of [
        ['live', 'by_account'],
        ['suspended', 'suspended'],
        ['expired', 'by_account'],
        ['revoked', 'revoked'],
      ]) {
        expect(plans.get(`page of ${state}`)).toMatch(
          RegExp(`-> +Index Scan using test_\\w+_${index} on .*\n +Index Cond: .*ROW\\(created_at`),
        );
        expect(plans.get(`page of ${state}`)).not.toContain('Sort');
      }
      for (const [state, index] of [
        ['active', 'by_expiry'],
        ['live', 'by_expiry'],
        ['suspended', 'suspended_by_expiry'],
        ['expired', 'by_expiry'],
        ['revoked', 'revoked_by_expiry'],
      ]) {
        const plan = plans.get(`page of by expiry: ${state}`);
        expect(plan).toMatch(
          RegExp(
            `-> +Index Scan using test_\\w+_tokens_${index} on .*\n +Index Cond: .*ROW\\(expires_at.* > .*ROW\\(expires_at.* < `,
          ),
        );
        expect(plan).not.toContain('Sort');
      }
      const allByExpiry = plans.get('page of by expiry: all');
      expect(allByExpiry).toMatch(
        /Merge Append\n(.*\n)*.*_tokens_by_expiry on (.*\n)*.*_revoked_by_expiry on /,
      );
      expect(allByExpiry).not.toMatch(/-> +Sort/);
      for (const state of LISTED_STATES) {
        const plan = plans.get(`page of children: ${state}`);
        expect(plan).toMatch(
          /-> +Index Scan using test_\w+_by_parent on .*\n +Index Cond: .*parent = .*ROW\(created_at/,
        );
        expect(plan).not.toContain('Sort');
        // The planner takes the roots of these rows to be small, so that it may sort one.
        expect(plans.get(`page of descendants: ${state}`)).toMatch(
          /Scan (using|on) test_\w+_by_root.*\n +Index Cond: .*root = .*ROW\(created_at/,
        );
      }
      expect(plans.get('page of all')).toMatch(
        /^ +-> +Merge Append\n(.*\n)*.*Limit\n(.*\n)*.*_by_account on (.*\n)*.*Limit\n(.*\n)*.*_revoked on /m,
      );
      expect(plans.get('page of all')).not.toMatch(/-> +Sort/);
      for (const [verb, root] of [
        ['count', '(root IS NULL)'],
        ['count of a root', '(root = '],
        ['prune', '(root IS NULL)'],
        ['prune of a root', '(root = '],
      ] as const) {
        const scans = plans
          .get(verb)
          ?.match(/Scan (?:using|on) test_\w+_held_\w+.*\n +Index Cond: .*/g);
        const indexes = scans?.map((scan) => /_held_(\w+)/.exec(scan)?.[1]).sort();
        const open = verb.startsWith('count') ? ['open', 'open'] : ['open'];
        expect([verb, indexes]).toEqual([verb, [...open, 'revoked']]);
        for (const scan of scans ?? []) expect(scan).toContain(root);
      }
      expect(plans.get('find')).toMatch(
        /^Result\n(.*\n){3} *-> +Index Scan using test_\w+_pkey on /,
      );
      expect(plans.get('find of several')).toMatch(/Index Scan (using|on) test_\w+_pkey/);
      expect(plans.get('revokeAll')).toMatch(
        /LockRows\n *-> +Index Scan using test_\w+_by_account/,
      );
      expect(plans.get('revokeAll')).toMatch(/Scan (using|on) test_\w+_pkey/);
      expect(plans.get('purge')).toMatch(/LockRows\n *-> +Index Scan using test_\w+_by_end on /);
      expect(plans.get('purge')).toMatch(/Scan (using|on) test_\w+_pkey/);
    },
  );

  /** A table whose statistics are older than nearly all tokens of one account. */
  async function neverAnalyzed(): Promise<Setting> {
    const setting = await setUp({ max: 1, statement_timeout: false });
    const { pool, table } = setting;
    await pool.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
    const fill = (label: string, account: string) =>
      pool.query(
        `INSERT INTO ${table} (id, account, prefix, kid, digest, scopes, requested, created_at,
           expires_at, version)
         SELECT left(md5('${label}' || i), 22), ${account}, 'acme', 'k1', sha256(''), '[]', '[]', i,
           i + 1000, 1
         FROM generate_series(1, ${tokens}) AS i`,
      );
    await fill('early', `'account' || i`);
    await pool.query(`ANALYZE ${table}`);
    await fill('late', `'acme'`);
    return setting;
  }

  it.each(
    ['replace', 'revoke'].flatMap((verb) => [
      [verb, 'force_custom_plan'],
      [verb, 'force_generic_plan'],
    ]),
  )('change one token by the primary key, even before ANALYZE: %s (%s)', async (verb, mode) => {
    const { pool, tables } = await neverAnalyzed();
    await pool.query(`SET plan_cache_mode = ${mode}`);
    const { recording, queries } = recorder(pool, () => []);
    const [, call] = VERBS.find(([name]) => name === verb) ?? [];
    await call?.(new PostgresTokenStore(recording, { tables })).catch(() => {});
    const [query] = queries;
    const plan = await planOf(pool, query as PostgresQuery);

    expect(plan).toMatch(/Update on .*\n *-> +Index Scan using test_\w+_pkey on /);
    const naive = query?.text.replace("account || ''", 'account') as string;
    expect(naive).not.toBe(query?.text);
    const before = await planOf(pool, { ...query, text: naive });
    expect(before).toMatch(/Scan (using|on) test_\w+_(by_account|by_expiry|held_open)/);
  });

  it('show a scan and a sort for a query without an index (the control)', async () => {
    const { pool, table } = await setUp();
    const plan = await planOf(pool, { text: `SELECT * FROM ${table} ORDER BY name` });

    expect(plan).toContain('Sort');
    expect(plan).toMatch(/Seq Scan on test_/);
  });
});

describe.skipIf(url === undefined)('commits of a PostgreSQL store', () => {
  /** Records the value of `synchronous_commit` at each commit that changed the table. */
  async function watchCommits(pool: Pool, table: string): Promise<() => Promise<string[]>> {
    const [log, procedure] = [newName(), newName()];
    await pool.query(`CREATE TABLE ${log} (setting text)`);
    await pool.query(
      `CREATE FUNCTION ${procedure}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         INSERT INTO ${log} VALUES (current_setting('synchronous_commit')); RETURN NULL;
       END $$`,
    );
    cleanups.push(() => pool.query(`DROP FUNCTION ${procedure} CASCADE`));
    await pool.query(
      `CREATE CONSTRAINT TRIGGER commits AFTER INSERT OR UPDATE OR DELETE ON ${table}
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ${procedure}()`,
    );
    return async () => {
      const { rows } = await pool.query<{ setting: string }>(`DELETE FROM ${log} RETURNING *`);
      return rows.map(({ setting }) => setting);
    };
  }

  it.each(WRITES)(
    'wait for the disk even if the host set synchronous_commit = off: %s',
    async (verb, call) => {
      const { pool, table, store } = await setUp({ options: '-c synchronous_commit=off' });
      if (/^(purge|prune)/.test(verb)) {
        const root = verb === 'prune of a root' ? 'id' : 'NULL';
        await pool.query(`UPDATE ${table} SET expires_at = 1000, root = ${root}`);
      }
      const committed = await watchCommits(pool, table);
      await call(store);
      expect(new Set(await committed())).toEqual(new Set(['on']));

      await pool.query(`INSERT INTO ${table} SELECT 'plain', account, prefix, kid, digest, box, scopes,
      requested, 0, 0, 1 FROM (VALUES ('', '', '', ''::bytea, ''::bytea, '', '')) AS
      given (account, prefix, kid, digest, box, scopes, requested)`);
      expect(await committed()).toEqual(['off']);
      expect((await pool.query('SHOW synchronous_commit')).rows).toEqual([
        { synchronous_commit: 'off' },
      ]);
    },
  );

  it('keep a stricter synchronous_commit of the host', async () => {
    const { pool, table, store } = await setUp({ options: '-c synchronous_commit=remote_apply' });
    const committed = await watchCommits(pool, table);
    await store.insert(newRecord('two'));

    expect(await committed()).toEqual(['remote_apply']);
  });
});

/** How many pages of the table and of its indexes a statement reads. */
async function pagesReadBy(pool: Pool, { text, values = [] }: PostgresQuery): Promise<number> {
  const explain = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`;
  const { rows } = await pool.query(explain, [...values]);
  const { Plan } = rows[0]['QUERY PLAN'][0];
  return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'];
}

describe.skipIf(url === undefined)('revokeAll of a PostgreSQL store', () => {
  const fill = (pool: Pool, table: string, count: number) =>
    pool.query(
      `INSERT INTO ${table} (id, account, prefix, kid, digest, scopes, requested, created_at,
         expires_at, version)
       SELECT left(md5(i::text), 22), 'big', 'acme', 'k1', sha256(''), '[]', '[]', i, i + 1000, 1
       FROM generate_series(1, ${count}) AS i`,
    );

  it('does not read rows again that earlier batches revoked', async () => {
    const { pool, tables, table } = await setUp({ statement_timeout: false });
    await pool.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
    await fill(pool, table, 20_000);
    // Old row versions stay as long as another transaction may still see them.
    const other = await newPool().connect();
    cleanups.push(() => other.release(true));
    await other.query(`BEGIN ISOLATION LEVEL REPEATABLE READ`);
    await other.query(`SELECT FROM ${table} LIMIT 1`);
    const { recording, queries } = recorder(pool);
    const store = new PostgresTokenStore(recording, { tables });
    for (let batch = 0; batch < 19; batch += 1) {
      expect(await store.revokeAll('big', CREATED, 1000)).toBe(1000);
    }
    const last = queries.findLast((query) => !isHint(query)) as PostgresQuery;
    const [at, account, , , limit] = last.values ?? [];
    const { rows } = await pool.query(
      `SELECT max(created_at)::text AS created_at FROM ${table}
       WHERE account = 'big' AND revoked_at IS NULL`,
    );
    const nextTo = Number(rows[0].created_at) + 1;

    await pool.query('BEGIN');
    const next = { ...last, values: [at, account, nextTo, '', Number(limit) / 2] };
    const fromFront = {
      ...last,
      values: [at, account, Number.MAX_SAFE_INTEGER, '', Number(limit) / 2],
    };
    const [read, readFromFront] = [
      await pagesReadBy(pool, next),
      await pagesReadBy(pool, fromFront),
    ];
    expect(last.values?.[2]).toBeLessThan(Number.MAX_SAFE_INTEGER);
    expect(readFromFront - read).toBeGreaterThan(500);
  });
});

/** By the clock of this machine, on which the test server runs, too. */
const HOUR_MS = 3_600_000;
const inHours = (hours: number) => new Date(Date.now() + hours * HOUR_MS);

describe.skipIf(url === undefined)('the clock of a PostgreSQL server', () => {
  it('decides what a process removes whose clock is a year fast', async () => {
    const { store } = await setUp();
    const fast = inHours(365 * 24);
    const live = newRecord('live', { expiresAt: inHours(1) });
    const dead = newRecord('dead', { expiresAt: inHours(-1) });
    for (const record of [live, dead]) await store.insert(record);

    const minAgeMs = 2 * HOUR_MS;
    expect(await store.purge({ now: fast, minAgeMs, limit: 10 })).toEqual({ count: 0, ids: [] });
    expect(await store.prune({ account: 'acme', now: fast, limit: 10 })).toEqual({
      count: 1,
      ids: [dead.id],
    });
    await store.insert(dead);
    expect(await store.purge({ now: fast, minAgeMs: 1000, limit: 10 })).toEqual({
      count: 1,
      ids: [dead.id],
    });
    expect(await store.find([live.id])).toEqual([live]);
  });

  it('would not keep it from removing live tokens, if its own clock decided (the control)', async () => {
    const { pool, table, store } = await setUp();
    await store.insert(newRecord('live', { expiresAt: inHours(1) }));
    const removing = `DELETE FROM ${table} WHERE least(expires_at, revoked_at) < $1 RETURNING id`;

    const { rows } = await pool.query(removing, [inHours(365 * 24).getTime()]);
    expect(rows).toHaveLength(1);
  });

  it('does not remove what has not ended by the clock of the process', async () => {
    const { store } = await setUp();
    await store.insert(newRecord('dead', { expiresAt: inHours(-1) }));

    const now = inHours(-2);
    expect(await store.purge({ now, minAgeMs: 0, limit: 10 })).toEqual({ count: 0, ids: [] });
    expect(await store.prune({ account: 'acme', now, limit: 10 })).toEqual({ count: 0, ids: [] });
  });

  it.each([
    ['a minute ago', -1 / 60, true],
    ['an hour from now', 1, false],
    ['a year from now', 365 * 24, false],
  ])('tells whether it has reached an instant %s', async (_, hours, expected) => {
    const { store } = await setUp();

    expect(await store.hasReached(inHours(hours))).toBe(expected);
  });
});

describe.skipIf(url === undefined)('prune of a PostgreSQL store', () => {
  it('reads none of the tombstones of imports, however many there are', async () => {
    const { pool, tables, table, store } = await setUp();
    await pool.query(
      `INSERT INTO ${table} (id, account, prefix, kid, digest, scopes, requested, created_at,
         expires_at, version, revoked_at, format)
       SELECT left(md5(i::text), 22), 'acme', 'acme', 'k1', sha256(''), '[]', '[]', i, i + 1000, 1, i,
         CASE WHEN i > 100 THEN 'sanctum' END
       FROM generate_series(1, 10000) AS i`,
    );
    await pool.query(`VACUUM ANALYZE ${table}`);
    const { recording, queries } = recorder(pool);
    const recorded = new PostgresTokenStore(recording, { tables });
    expect(await recorded.prune({ ...PRUNE, limit: 60 })).toMatchObject({ count: 60 });
    expect(await store.prune({ ...PRUNE, limit: 60 })).toMatchObject({ count: 40 });

    expect(await pagesReadBy(pool, queries[0] as PostgresQuery)).toBeLessThan(60);
    const most = { live: 9, ended: 20_000 };
    expect(await store.count({ ...COUNT, most })).toEqual({ live: 1, ended: 9900 });
  });

  it('keeps a token that was imported and is revoked while it waits', async () => {
    const { pool, table, store } = await setUp();
    await pool.query(`UPDATE ${table} SET expires_at = 1000, format = 'sanctum'`);
    const other = await pool.connect();
    await other.query('BEGIN');
    await other.query(`UPDATE ${table} SET revoked_at = 900`);
    const pruning = store.prune(PRUNE);
    await waiting(pool, table, 1);
    await other.query('COMMIT');
    other.release();

    expect(await pruning).toEqual({ count: 0, ids: [] });
  });
});

describe.skipIf(url === undefined)('purge of a PostgreSQL store', () => {
  it('waits for locked rows instead of skipping them', async () => {
    const { pool, table, store } = await setUp();
    await store.insert(newRecord('two'));
    await pool.query(`UPDATE ${table} SET expires_at = 1000`);
    const other = await pool.connect();
    await other.query('BEGIN');
    await other.query(`SELECT id FROM ${table} WHERE id = $1 FOR UPDATE`, [newRecord('one').id]);
    const purging = store.purge(PURGE);
    await waiting(pool, table, 1);
    await other.query('COMMIT');
    other.release();

    expect(await purging).toMatchObject({ count: 2, ids: { length: 2 } });
  });

  it('keeps a record whose expiry is extended while it waits', async () => {
    const { pool, table, store, record } = await setUp();
    await pool.query(`UPDATE ${table} SET expires_at = 1000`);
    const other = await pool.connect();
    await other.query('BEGIN');
    await other.query(`UPDATE ${table} SET expires_at = $1`, [ENDED.getTime()]);
    const purging = store.purge(PURGE);
    await waiting(pool, table, 1);
    await other.query('COMMIT');
    other.release();

    expect(await purging).toEqual({ count: 0, ids: [] });
    expect(await store.find([record.id])).toEqual([{ ...record, expiresAt: ENDED }]);
  });
});

describe.skipIf(url === undefined)('watch of a PostgreSQL store', () => {
  interface Watching extends Setting {
    /** The hints so far. */
    readonly hints: (readonly TokenId[] | 'all')[];
    readonly unsubscribe: () => Promise<void>;
    /** A store over another pool, as in another process. */
    readonly writer: PostgresTokenStore;
    /** The name of the watching pool on the server. */
    readonly application: string;
  }

  async function watching(
    config: PoolConfig = {},
    options: PostgresStoreOptions = {},
  ): Promise<Watching> {
    const application = newName();
    const setting = await setUp();
    const { tables } = setting;
    const pool = newPool({ application_name: application, ...config });
    const store = new PostgresTokenStore(pool, { tables, ...options });
    const hints: (readonly TokenId[] | 'all')[] = [];
    const unsubscribe = await store.watch((ids) => hints.push(ids));
    cleanups.push(unsubscribe);
    return { ...setting, pool, store, writer: setting.store, hints, unsubscribe, application };
  }

  /** The connections that listen, without those over which a listener sends notes to itself. */
  async function connectionsOf(application: string): Promise<number[]> {
    const pool = newPool();
    const { rows } = await pool.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity
       WHERE application_name = $1 AND query NOT LIKE '%pg_notify%'`,
      [application],
    );
    await pool.end();
    return rows.map(({ pid }) => pid);
  }

  it('reports tokens that another store replaces or revokes, and nothing else', async () => {
    const { writer, hints, record } = await watching();
    const [one, two, last] = [record.id, newRecord('two').id, newRecord('last').id];
    const expectHint = async (id: TokenId) => {
      await expect.poll(() => hints).toEqual([[id]]);
      hints.length = 0;
    };
    await writer.insert(newRecord('two'));
    await writer.replace({ ...record, version: 2 });
    await expectHint(one);
    await writer.replace({ ...record, version: 2 });
    await writer.revoke(one, 'other', CREATED);
    await writer.revoke(one, 'acme', CREATED);
    await expectHint(one);
    await writer.revoke(one, 'acme', CREATED);
    await writer.revokeAll('other', CREATED, 1000);
    await writer.revokeAll('acme', CREATED, 1000);
    await expectHint(two);
    await writer.purge(PURGE);
    await writer.insert(newRecord('last'));
    await writer.revoke(last, 'acme', CREATED);
    await expectHint(last);
  });

  it('reports changes of its own store as well', async () => {
    const { store, hints, record } = await watching();
    await store.revoke(record.id, 'acme', CREATED);

    await expect.poll(() => hints).toEqual([[record.id]]);
  });

  it.each([
    [200, 1, false],
    [201, 2, false],
    [2000, 10, false],
    [2001, 1, true],
  ])(
    'reports %i tokens revoked together in %i messages, as "all": %s',
    async (count, messages, isAll) => {
      const { writer, hints, pool, table } = await watching();
      await pool.query(
        `INSERT INTO ${table} (id, account, prefix, kid, digest, scopes, requested, created_at,
         expires_at, version)
       SELECT lpad(i::text, 22, '0'), 'many', 'acme', 'k1', sha256(''), '[]', '[]', i, i, 1
       FROM generate_series(1, ${count}) AS i`,
      );
      await writer.revokeAll('many', CREATED, count);

      await expect.poll(() => hints).toHaveLength(messages);
      if (isAll) expect(hints).toEqual(['all']);
      else expect(new Set(hints.flat()).size).toBe(count);
    },
  );

  it('reports many concurrent changes in few messages', async () => {
    const { writer, hints, pool, tables } = await watching();
    const ids = Array.from({ length: 100 }, (_, n) => newRecord(`n${n}`).id);
    for (const id of ids) await writer.insert({ ...newRecord('x'), id });
    const { recording, queries } = recorder(pool);
    const store = new PostgresTokenStore(recording, { tables });
    await Promise.all(ids.map((id) => store.revoke(id, 'acme', CREATED)));

    await expect.poll(() => new Set(hints.flat())).toEqual(new Set(ids));
    expect(queries.filter(isHint).length).toBeLessThan(ids.length / 2);
  });

  it('reports changes of a store that is closed right after them', async () => {
    const { hints, record, tables } = await watching();
    const pool = newPool();
    const writer = new PostgresTokenStore(pool, { tables });
    await writer.revoke(record.id, 'acme', CREATED);
    await writer.close();
    await pool.end();

    await expect.poll(() => hints).toEqual([[record.id]]);
  });

  it('reports a write that failed, because it may have been carried out', async () => {
    const { hints, record, tables, pool } = await watching();
    const { recording } = recorder(pool, () => []);
    const writer = new PostgresTokenStore(recording, { tables });
    expect(await refusalOf(writer.revoke(record.id, 'acme', CREATED))).toMatchObject({
      code: 'store_unavailable',
    });

    await expect.poll(() => hints).toEqual([[record.id]]);
  });

  it.each([
    ['hangs', async (): Promise<never> => new Promise(() => {})],
    ['fails', async (): Promise<never> => Promise.reject(new Error('lost'))],
  ])('does not delay or fail a write if sending its hint %s', async (_, send) => {
    const { pool, tables, record } = await setUp();
    const { recording } = recorder(pool);
    const query = recording.query.bind(recording);
    Reflect.set(recording, 'query', (asked: PostgresQuery) =>
      isHint(asked) ? send() : query(asked),
    );
    const store = new PostgresTokenStore(recording, { tables });

    expect(await store.replace({ ...record, version: 2 })).toBe(true);
    expect(await store.revoke(record.id, 'acme', CREATED)).toBe(true);
    expect((await store.find([record.id]))[0]?.revokedAt).toEqual(CREATED);
  });

  it('does not report changes in another table', async () => {
    const { writer, hints, record } = await watching();
    const other = await setUp();
    await other.store.revoke(record.id, 'acme', CREATED);
    await writer.replace({ ...record, version: 2 });

    await expect.poll(() => hints).toEqual([[record.id]]);
    expect(hints).toHaveLength(1);
  });

  it('reports changes whether or not the schema of the table is named', async () => {
    const { hints, tables, writer, record, pool } = await watching();
    await new PostgresTokenStore(pool, { tables: `public.${tables}` }).revoke(
      record.id,
      'acme',
      CREATED,
    );

    await expect.poll(() => hints).toEqual([[record.id]]);
    expect(await writer.revoke(record.id, 'acme', CREATED)).toBe(false);
  });

  it('reports "all" when its connection is lost and again when it is restored', async () => {
    const { writer, hints, record, application, pool } = await watching();
    const [pid] = await connectionsOf(application);
    const killedAt = performance.now();
    await newPool().query('SELECT pg_terminate_backend($1)', [pid]);

    await expect.poll(() => hints[0]).toBe('all');
    expect(performance.now() - killedAt).toBeLessThan(1000);
    await expect.poll(() => hints).toEqual(['all', 'all']);
    await writer.revoke(record.id, 'acme', CREATED);
    await expect.poll(() => hints).toEqual(['all', 'all', [record.id]]);
    expect(await connectionsOf(application)).toHaveLength(1);
    expect(pool.totalCount - pool.idleCount).toBe(1);
  });

  it('retries while the server is unreachable', async () => {
    const proxy = await startProxy();
    const { writer, hints, record } = await watching({ connectionString: proxy.url });
    await proxy.set('refuse');
    await expect.poll(() => hints).toEqual(['all']);
    await delay(300);
    expect(hints).toEqual(['all']);

    await proxy.set('pass');
    await expect.poll(() => hints, { timeout: 2000 }).toEqual(['all', 'all']);
    await writer.revoke(record.id, 'acme', CREATED);
    await expect.poll(() => hints).toEqual(['all', 'all', [record.id]]);
  });

  it('detects a connection that died silently', async () => {
    const proxy = await startProxy();
    const { writer, hints, record } = await watching(
      { connectionString: proxy.url },
      { deadlineMs: 200 },
    );
    await proxy.silence();

    await expect.poll(() => hints, { timeout: 3000 }).toEqual(['all', 'all']);
    await writer.revoke(record.id, 'acme', CREATED);
    await expect.poll(() => hints).toEqual(['all', 'all', [record.id]]);
  });

  it('stops on unsubscribe, which can be called twice', async () => {
    const { writer, hints, record, unsubscribe, application, store } = await watching();
    const witness: unknown[] = [];
    await store.watch((ids) => witness.push(ids));
    await unsubscribe();
    await unsubscribe();
    await writer.revoke(record.id, 'acme', CREATED);

    await expect.poll(() => witness).toEqual([[record.id]]);
    expect(hints).toEqual([]);
    await expect.poll(() => connectionsOf(application)).toHaveLength(1);
    await store.close();
    await expect.poll(() => connectionsOf(application)).toEqual([]);
  });

  it('does not reconnect if unsubscribed while its connection is lost', async () => {
    const proxy = await startProxy();
    const { hints, unsubscribe, application } = await watching({ connectionString: proxy.url });
    await proxy.set('refuse');
    await expect.poll(() => hints).toEqual(['all']);
    await unsubscribe();
    await proxy.set('pass');
    await delay(300);

    expect(hints).toEqual(['all']);
    expect(await connectionsOf(application)).toEqual([]);
  });

  it('ends with the pool, and does not keep it from ending', async () => {
    const { pool, hints } = await watching();
    await pool.end();

    expect(hints).toEqual([]);
  });

  it('refuses a pool with only one connection', async () => {
    const { store, tables } = await setUp({ max: 1 });

    expect(await refusalOf(store.watch(() => {}))).toMatchObject({ code: 'invalid_options' });
    const enough = new PostgresTokenStore(newPool({ max: 2 }), { tables });
    await (await enough.watch(() => {}))();
  });

  it('rejects if no connection is available in time, and releases one that arrives later', async () => {
    const { pool, tables } = await setUp({ max: 2, connectionTimeoutMillis: 0 });
    const held = await Promise.all([pool.connect(), pool.connect()]);
    const store = new PostgresTokenStore(pool, { tables, deadlineMs: 50 });

    expect(await refusalOf(store.watch(() => {}))).toMatchObject({ code: 'store_unavailable' });
    for (const client of held) client.release();
    await expect.poll(() => pool.idleCount).toBe(2);
  });

  it('keeps no connection if the store is closed while it starts', async () => {
    const { tables } = await setUp();
    const pool = newPool();
    const store = new PostgresTokenStore(pool, { tables });
    const beginning = store.watch(() => expect.unreachable());
    await store.close();
    await beginning;

    await expect.poll(() => pool.totalCount).toBe(0);
  });

  it('keeps no connection on which LISTEN gets no answer', async () => {
    const { tables } = await setUp();
    const proxy = await startProxy();
    const pool = newPool({ connectionString: proxy.url });
    await pool.query('SELECT 1');
    await proxy.silence();
    const store = new PostgresTokenStore(pool, { tables, deadlineMs: 200 });

    expect(await refusalOf(store.watch(() => {}))).toMatchObject({ code: 'store_unavailable' });
    await expect.poll(() => pool.totalCount).toBe(0);
  });

  it('ignores notifications for channels of the host', async () => {
    const { writer, hints, record, pool, unsubscribe, store } = await watching();
    await unsubscribe();
    const channel = newName();
    pool.on('connect', (client) => client.query(`LISTEN ${channel}`));
    await store.watch((ids) => hints.push(ids));
    await newPool().query(`NOTIFY ${channel}, 'theirs'`);
    await writer.revoke(record.id, 'acme', CREATED);

    await expect.poll(() => hints).toEqual([[record.id]]);
  });

  it('rejects if the server is unreachable', async () => {
    const pool = newPool({
      connectionString: `postgres://nobody@127.0.0.1:${await freePort()}/no`,
    });

    expect(await refusalOf(new PostgresTokenStore(pool).watch(() => {}))).toMatchObject({
      code: 'store_unavailable',
    });
  });
});

/** A proxy between a pool and the server, which is closed at the end of the test. */
async function startProxy(): Promise<DatabaseProxy> {
  const proxy = await startDatabaseProxy(url as string);
  cleanups.push(() => proxy.close());
  return proxy;
}

describe.skipIf(url === undefined)('doctor of a PostgreSQL store', () => {
  async function codesOf(store: PostgresTokenStore): Promise<string[]> {
    const findings = await doctor(store);
    for (const { message } of findings) expect(message).toMatch(/^[a-z].+: .+[^.]$/);
    return findings.map(({ code }) => code);
  }

  it('finds nothing in a healthy setup', async () => {
    const { store } = await setUp();

    expect(await codesOf(store)).toEqual([]);
  });

  it.each<[string, PoolConfig]>([
    ['synchronous_commit_off', { options: '-c synchronous_commit=off' }],
    ['isolation_not_read_committed', isolation('repeatable read')],
    ['isolation_not_read_committed', isolation('serializable')],
    ['no_statement_timeout', { statement_timeout: false }],
    ['no_connection_timeout', { connectionTimeoutMillis: 0 }],
  ])('reports %s with %j', async (code, config) => {
    const { store } = await setUp(config);

    expect(await codesOf(store)).toEqual([code]);
  });

  it.each<[string, string, (table: string) => string]>([
    ['schema_missing', 'no table', (table) => `DROP TABLE ${table}`],
    [
      'schema_missing',
      'another table',
      (table) => `DROP TABLE ${table}; CREATE TABLE ${table} (theirs text)`,
    ],
    [
      'schema_newer',
      'a breaking version',
      (table) => `COMMENT ON TABLE ${table} IS 'tokenwright schema 7, needs 2'`,
    ],
    [
      'schema_newer',
      'a comment of a later form',
      (table) => `COMMENT ON TABLE ${table} IS 'tokenwright schema 7: later'`,
    ],
    [
      'collation_not_c',
      'lists of scopes',
      (table) => `ALTER TABLE ${table} ALTER scopes TYPE text COLLATE "default"`,
    ],
    [
      'collation_not_c',
      'an id',
      (table) => `ALTER TABLE ${table} ALTER id TYPE text COLLATE "default"`,
    ],
    [
      'collation_not_c',
      'an account',
      (table) => `ALTER TABLE ${table} ALTER account TYPE text COLLATE "ucs_basic"`,
    ],
  ])('reports %s: %s', async (code, _, change) => {
    const { pool, table, store } = await setUp();
    await pool.query(change(table));

    expect(await codesOf(store)).toEqual([code]);
  });

  it.each<[string, (table: string) => string]>([
    ['the primary key id', (table) => `ALTER TABLE ${table} DROP CONSTRAINT ${table}_pkey`],
    ['_by_account', (table) => `DROP INDEX ${table}_by_account`],
    ['_by_end', (table) => `DROP INDEX ${table}_by_end`],
    ['_held_open', (table) => `DROP INDEX ${table}_held_open`],
    [
      '_by_account',
      (table) => `DROP INDEX ${table}_by_account;
        CREATE INDEX ${table}_by_account ON ${table} (account, created_at, id)`,
    ],
    [
      '_held_open',
      (table) => `UPDATE pg_index SET indisvalid = false
        WHERE indexrelid = '${table}_held_open'::regclass`,
    ],
    ['the column name', (table) => `ALTER TABLE ${table} DROP name`],
    ['the type bigint of version', (table) => `ALTER TABLE ${table} ALTER version TYPE integer`],
    ['the type bytea of box', (table) => `ALTER TABLE ${table} ALTER box TYPE text COLLATE "C"`],
    ['NOT NULL of kid', (table) => `ALTER TABLE ${table} ALTER kid DROP NOT NULL`],
    ['NULL in metadata', (table) => `ALTER TABLE ${table} ALTER metadata SET NOT NULL`],
    [
      'a default of theirs',
      (table) => `TRUNCATE ${table}; ALTER TABLE ${table} ADD theirs text NOT NULL`,
    ],
  ])('reports schema_differs and names %s', async (words, change) => {
    const { pool, table, store } = await setUp();
    await pool.query(`UPDATE ${table} SET metadata = '{}'`);
    await pool.query(change(table));

    const [finding, ...others] = await doctor(store);
    expect(finding?.code).toBe('schema_differs');
    expect(finding?.message).toContain(words);
    expect(others).toEqual([]);
  });

  it('ignores additional columns and indexes, and renamed indexes', async () => {
    const { pool, table, store } = await setUp();
    await pool.query(`ALTER TABLE ${table} ADD theirs text, ADD more text NOT NULL DEFAULT ''`);
    await pool.query(`CREATE INDEX ON ${table} (theirs)`);
    await pool.query(`ALTER INDEX ${table}_held_open RENAME TO ${table}_lively`);
    await pool.query(`ALTER INDEX ${table}_by_end SET (fillfactor = 70)`);

    expect(await codesOf(store)).toEqual([]);
  });

  it.each([
    [-2000, ['clock_skew']],
    [-900, []],
    [0, []],
    [900, []],
    [2000, ['clock_skew']],
  ])('reports for a server clock that is %i ms ahead: %j', async (ms, codes) => {
    const { pool, tables } = await setUp();
    const { recording } = recorder(pool, ([row]) => {
      const seen = row as { now: string };
      return [{ ...seen, now: String(Number(seen.now) + ms) }];
    });

    expect(await codesOf(new PostgresTokenStore(recording, { tables }))).toEqual(codes);
  });

  it.each<[string, (pool: Pool) => Promise<unknown>]>([
    ['closed', (pool) => pool.end()],
    ['exhausted', (pool) => pool.connect().then((client) => cleanups.push(() => client.release()))],
  ])('rejects if the pool is %s', async (_, spoil) => {
    const pool = newPool({ max: 1, connectionTimeoutMillis: 0 });
    await spoil(pool);

    expect(
      await refusalOf(new PostgresTokenStore(pool, { deadlineMs: 100 }).doctor()),
    ).toMatchObject({ code: 'store_unavailable' });
  });
});

describe('PostgresTokenStore and migrate', () => {
  const wrapper = { query() {}, connect() {}, on() {} };

  it.each([[undefined], [null], ['postgres://ada@db.internal/acme'], [{}], [wrapper]])(
    'refuse %j as a pool (%#)',
    async (pool) => {
      const refused = expect.objectContaining({ code: 'invalid_options' });

      expect(() => new PostgresTokenStore(pool as never)).toThrow(refused);
      expect(await refusalOf(migrate(pool as never))).toEqual(refused);
    },
  );
});

describe.skipIf(url === undefined)('migrate in PostgreSQL', () => {
  async function shapeOf(pool: Pool, table: string): Promise<unknown> {
    const { rows } = await pool.query(
      `SELECT obj_description(oid, 'pg_class') AS comment, xmin,
         ARRAY(SELECT indexdef FROM pg_indexes WHERE tablename = relname ORDER BY 1) AS indexes
       FROM pg_class WHERE relname = $1`,
      [table],
    );
    return rows;
  }

  describe('of a table without its comment', () => {
    it.each(['NULL', `'theirs'`])('accepts it and changes nothing: %s', async (comment) => {
      const { pool, tables, table, store, record } = await setUp();
      await pool.query(`COMMENT ON TABLE ${table} IS ${comment}`);
      const shape = await shapeOf(pool, table);
      await migrate(pool, { tables });

      expect(await shapeOf(pool, table)).toEqual(shape);
      expect(await store.doctor()).toEqual([]);
      expect(await store.find([record.id])).toEqual([record]);
    });

    it('adds missing indexes and the comment', async () => {
      const { pool, tables, table, store } = await setUp();
      await pool.query(`COMMENT ON TABLE ${table} IS NULL`);
      await pool.query(`DROP INDEX ${table}_held_open, ${table}_by_account`);
      await migrate(pool, { tables });

      expect(await shapeOf(pool, table)).toMatchObject([
        { comment: 'tokenwright schema 1, needs 1', indexes: { length: 12 } },
      ]);
      expect(await store.doctor()).toEqual([]);
    });

    it.each<[string, (table: string) => string]>([
      ['a column is missing', (table) => `ALTER TABLE ${table} DROP digest`],
      ['a column has another type', (table) => `ALTER TABLE ${table} ALTER version TYPE integer`],
      [
        'rows need a value for another column',
        (table) => `TRUNCATE ${table}; ALTER TABLE ${table} ADD theirs text NOT NULL`,
      ],
      [
        'it is a view',
        (table) => `ALTER TABLE ${table} RENAME TO ${table}_;
          CREATE VIEW ${table} AS SELECT * FROM ${table}_`,
      ],
    ])('refuses it if %s', async (_, change) => {
      const { pool, tables, table } = await setUp();
      cleanups.push(async () => {
        await pool.query(`DROP VIEW IF EXISTS ${table}`).catch(() => {});
        await pool.query(`DROP TABLE IF EXISTS ${table}_`);
      });
      await pool.query(`COMMENT ON TABLE ${table} IS NULL; ${change(table)}`);
      const { code, message } = await refusalOf(migrate(pool, { tables }));

      expect(code).toBe('invalid_options');
      expect(message).toContain('other columns');
    });
  });
});

describe.skipIf(url === undefined)('a PostgreSQL database that fails', () => {
  it('makes insert name a missing primary key', async () => {
    const { pool, table, store } = await setUp();
    await pool.query(`ALTER TABLE ${table} DROP CONSTRAINT ${table}_pkey`);
    expect(await store.insert(newRecord('two')).catch((error) => error)).toMatchObject({
      code: 'store_unavailable',
      details: { reason: 'schema_older' },
    });
  });

  it('makes find recommend prepare: false if a pooler lost the prepared statements', async () => {
    const { pool, store, record } = await setUp({ max: 1 });
    await store.find([record.id]);
    await pool.query('DEALLOCATE ALL');

    const { code, message } = await refusalOf(store.find([record.id]));
    expect(code).toBe('store_unavailable');
    expect(message).toContain('prepare: false');
  });

  it.each(WRITES)('makes %s reject if the result is empty', async (_, call) => {
    const { pool, tables } = await setUp();
    const { recording } = recorder(pool, () => []);

    expect(await refusalOf(call(new PostgresTokenStore(recording, { tables })))).toMatchObject({
      code: 'store_unavailable',
    });
  });

  it('does not end the process when an idle connection is lost', async () => {
    const application = newName();
    const pool = new Pool({ connectionString: url, application_name: application });
    cleanups.push(() => pool.end());
    const { tables, record } = await setUp();
    const store = new PostgresTokenStore(pool, { tables });
    await store.find([record.id]);
    expect(pool.idleCount).toBe(1);
    await newPool().query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1',
      [application],
    );
    await expect.poll(() => pool.idleCount).toBe(0);

    expect(await store.find([record.id])).toEqual([record]);
    expect(() => pool.emit('error', new Error('lost'))).not.toThrow();
    expect(() => new Pool().emit('error', new Error('lost'))).toThrow('lost');
  });

  it('gets no error listener on a pool that already has one', async () => {
    const pool = newPool();
    const before = pool.listenerCount('error');
    expect(before).toBe(1);
    expect(new PostgresTokenStore(pool)).toBeDefined();

    expect(pool.listenerCount('error')).toBe(before);
  });

  it('makes calls on locked rows reject at the deadline, and leaves the pool usable', async () => {
    const { pool, tables, table, record } = await setUp({ statement_timeout: false, max: 3 });
    const store = new PostgresTokenStore(pool, { tables, deadlineMs: 200 });
    const other = await pool.connect();
    await other.query('BEGIN');
    await other.query(`SELECT id FROM ${table} FOR UPDATE`);
    const calls = Array.from({ length: 4 }, () => store.revoke(record.id, 'acme', CREATED));

    for (const { code } of await Promise.all(calls.map(refusalOf))) {
      expect(code).toBe('store_unavailable');
    }
    expect(await store.find([record.id])).toEqual([record]);
    expect(pool.waitingCount).toBe(0);
    // As documented, statements that timed out go on in the server.
    await waiting(pool, table, 4);
    await other.query('COMMIT');
    other.release();
    await waiting(pool, table, 0);
    expect((await store.find([record.id]))[0]?.revokedAt).toEqual(CREATED);
  });

  it('ends statements that timed out if there is a statement_timeout', async () => {
    const { pool, tables, table, record } = await setUp({ statement_timeout: 200 });
    const store = new PostgresTokenStore(pool, { tables });
    const other = await pool.connect();
    await other.query('BEGIN');
    await other.query(`SELECT id FROM ${table} FOR UPDATE`);

    expect(await refusalOf(store.revoke(record.id, 'acme', CREATED))).toMatchObject({
      code: 'store_unavailable',
    });
    await waiting(pool, table, 0);
    await other.query('COMMIT');
    other.release();
    expect(await store.find([record.id])).toEqual([record]);
  });
});

describe.skipIf(url === undefined)('a PostgreSQL server', { timeout: 60_000 }, () => {
  let server: Server;
  beforeAll(async () => {
    server = await startServer('postgres', { settings: { autovacuum: 'off' } });
  });
  afterAll(() => server.stop());

  const own = (config: PoolConfig = {}) => newPool({ connectionString: server.url, ...config });

  async function setUpOwn(config: PoolConfig = {}, options: PostgresStoreOptions = {}) {
    const pool = own(config);
    const tables = newName();
    await migrate(pool, { tables });
    const store = new PostgresTokenStore(pool, { tables, ...options });
    await store.insert(newRecord('one'));
    return { pool, tables, table: `${tables}_tokens`, store };
  }

  /** The child processes of the server. */
  function children(): number[] {
    const list = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8');
    return list.trim().split(' ').filter(Boolean).map(Number);
  }

  function signalAll(name: NodeJS.Signals): void {
    for (const pid of [server.pid, ...children()]) process.kill(pid, name);
  }

  /** Kills all processes of the server, similar to a power failure. */
  async function crash(): Promise<void> {
    const all = children();
    await server.signal('SIGSTOP');
    for (const pid of all) process.kill(pid, 'SIGKILL');
    await server.signal('SIGKILL');
  }

  it('that is killed loses no acknowledged change, even with synchronous_commit = off', async () => {
    const { pool, tables, table, store } = await setUpOwn({
      options: '-c synchronous_commit=off',
      max: 2,
    });
    const { rows } = await pool.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'`,
    );
    // Keeps the server from writing commits to disk that did not wait for that.
    process.kill(rows[0]?.pid as number, 'SIGSTOP');
    const records = Array.from({ length: 20 }, (_, n) => newRecord(`n${n}`));
    for (const record of records) await store.insert(record);
    await store.replace(newRecord('n0', { version: 2 }));
    await store.revoke(newRecord('n1').id, 'acme', CREATED);
    await pool.query(`UPDATE ${table} SET name = 'lost' WHERE id = $1`, [newRecord('n2').id]);
    expect((await store.find([newRecord('n2').id]))[0]?.name).toBe('lost');
    await crash();
    await server.restart();

    const found = await new PostgresTokenStore(own(), { tables }).find(records.map(({ id }) => id));
    expect(found).toEqual([
      newRecord('n0', { version: 2 }),
      revoked(newRecord('n1'), CREATED),
      ...records.slice(2),
    ]);
  });

  it('that hangs makes calls reject in time, and is used again when it continues', async () => {
    const options = { max: 2, connectionTimeoutMillis: 500, statement_timeout: false } as const;
    const { pool, table, store } = await setUpOwn(options, { deadlineMs: 500 });
    const plain = own();
    await plain.query('SELECT 1');
    signalAll('SIGSTOP');
    // Resume the server even if this test fails: other tests need it.
    cleanups.push(() => signalAll('SIGCONT'));
    const stoppedAt = performance.now();
    const endless = vi.fn();
    const control = plain.query(`SELECT id FROM ${table}`).then(endless);

    const calls = VERBS.map(([, call]) => refusalOf(call(store)));
    for (const { code } of await Promise.all(calls)) expect(code).toBe('store_unavailable');
    expect(performance.now() - stoppedAt).toBeLessThan(2000);
    expect(endless).not.toHaveBeenCalled();
    // The pool gives up after the same time as the store.
    await expect.poll(() => pool.waitingCount).toBe(0);
    signalAll('SIGCONT');

    const find = () => store.find([newRecord('one').id]);
    await expect.poll(() => find().catch(() => 'down'), { timeout: 2000 }).toHaveLength(1);
    for (let n = 0; n < 10; n++) await find();
    expect(pool.totalCount).toBeLessThanOrEqual(2);
    await control;
  });

  it('that is killed and restarted is used again', async () => {
    const { pool, store } = await setUpOwn({ max: 2 });
    const hints: unknown[] = [];
    cleanups.push(await store.watch((ids) => hints.push(ids)));
    await crash();
    expect(await refusalOf(store.find([newRecord('one').id]))).toMatchObject({
      code: 'store_unavailable',
    });
    await server.restart();

    const find = () => store.find([newRecord('one').id]).catch(() => 'down');
    await expect.poll(find, { timeout: 2000 }).toEqual([newRecord('one')]);
    await expect.poll(() => hints, { timeout: 2000 }).toEqual(['all', 'all']);
    expect(pool.totalCount).toBeLessThanOrEqual(2);
  });

  it('is checked by doctor for fsync, full_page_writes and standby mode', async () => {
    const { pool, tables, store } = await setUpOwn();
    const codes = async () => (await store.doctor()).map(({ code }) => code);
    expect(await codes()).toEqual([]);

    await pool.query('ALTER SYSTEM SET fsync = off');
    await pool.query('ALTER SYSTEM SET full_page_writes = off');
    await pool.query('SELECT pg_reload_conf()');
    await expect.poll(codes).toEqual(['fsync_off', 'full_page_writes_off']);
    await pool.query('ALTER SYSTEM RESET ALL');
    await pool.query('SELECT pg_reload_conf()');
    await expect.poll(codes).toEqual([]);

    const signal = join(server.folder, 'data/standby.signal');
    await pool.query('CHECKPOINT');
    await crash();
    writeFileSync(signal, '');
    await server.restart();
    const replica = new PostgresTokenStore(own(), { tables, standby: 'allow' });
    expect((await replica.doctor()).map(({ code }) => code)).toEqual(['replica']);
    expect(await replica.find([newRecord('one').id])).toEqual([newRecord('one')]);
    expect(await replica.insert(newRecord('two')).catch((error) => error)).toMatchObject({
      code: 'store_unavailable',
      details: { reason: 'standby' },
    });
    await crash();
    rmSync(signal);
    await server.restart();
    await expect.poll(() => codes().catch(() => 'down'), { timeout: 2000 }).toEqual([]);
  });
});
