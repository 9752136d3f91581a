import { Pool } from 'pg';
import { afterEach, describe, expect, inject, it } from 'vitest';
import type { PostgresPool, PostgresQuery } from '../../../src/stores/postgres/client.ts';
import { migrate, migrationSql, PostgresTokenStore } from '../../../src/stores/postgres/index.ts';
import { readTables } from '../../../src/stores/postgres/schema.ts';
import { missingIn, type Shape } from '../../../src/stores/postgres/shape.ts';
import type { TokenRecord } from '../../../src/token/record.ts';
import { refusalOf } from '../../support.ts';
import { newName } from '../database-hosts.ts';
import { newRecord } from '../support.ts';

const url = inject('servers').postgres;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

const VERSIONS = {
  postgres: 'PostgreSQL 18.1 on x86_64-pc-linux-gnu, compiled by gcc, 64-bit',
  cockroach: 'CockroachDB CCL v25.2.0 (x86_64-pc-linux-gnu, built 2025/05/09, go1.23.7)',
  yugabyte: 'PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang, 64-bit',
} as const;

/** Columns of the table of leases, as all of these databases print them. */
const COLUMNS: Shape['columns'] = Object.entries(readTables({}).leases.columns).map(
  ([name, { type }]) => ({
    name,
    type,
    collation: type === 'text' ? 'C' : null,
    isRequired: true,
    isGiven: false,
  }),
);

function leaseShape(version: string, key: string, byEnd: string, name = 'by_end'): Shape {
  const index = { isPrimary: false, isUnique: false };
  return {
    version,
    kind: 'r',
    comment: null,
    columns: COLUMNS,
    indexes: [
      { ...index, name: 'key', isPrimary: true, isUnique: true, definition: key },
      { ...index, name: `tokenwright_leases_${name}`, definition: byEnd },
    ],
  };
}

describe('an index', () => {
  const UNIQUE = 'CREATE UNIQUE INDEX tokenwright_leases_pkey ON';
  const BY_END = 'CREATE INDEX tokenwright_leases_by_end ON';
  const TABLE = 'public.tokenwright_leases';
  const { leases } = readTables({});

  it.each<[string, Shape]>([
    [
      'PostgreSQL',
      leaseShape(
        VERSIONS.postgres,
        `${UNIQUE} ${TABLE} USING btree (lease_key, slot) WITH (fillfactor='70')`,
        `${BY_END} ${TABLE} USING btree (ends_at)`,
      ),
    ],
    [
      'CockroachDB',
      leaseShape(
        VERSIONS.cockroach,
        `${UNIQUE} defaultdb.${TABLE} USING btree (lease_key ASC, slot ASC)`,
        `${BY_END} defaultdb.${TABLE} USING btree (ends_at ASC)`,
      ),
    ],
    [
      'YugabyteDB',
      leaseShape(
        VERSIONS.yugabyte,
        `${UNIQUE} ${TABLE} USING lsm (lease_key ASC, slot ASC)`,
        `${BY_END} ${TABLE} USING lsm (ends_at ASC)`,
      ),
    ],
    [
      'YugabyteDB, from the SQL for PostgreSQL',
      leaseShape(
        VERSIONS.yugabyte,
        `${UNIQUE} ${TABLE} USING lsm (lease_key HASH, slot ASC)`,
        `${BY_END} ${TABLE} USING lsm (ends_at HASH)`,
      ),
    ],
  ])('is recognized as %s prints it', (_, shape) => {
    expect(missingIn(shape, leases)).toEqual([]);
  });

  it.each([
    ['another name', VERSIONS.cockroach, 'other', 'ends_at DESC'],
    ['other parts in PostgreSQL', VERSIONS.postgres, 'by_end', 'ends_at DESC'],
  ])('is missing with %s', (_, version, name, part) => {
    const key = `${UNIQUE} ${TABLE} USING btree (lease_key, slot)`;
    const shape = leaseShape(version, key, `${BY_END} ${TABLE} USING btree (${part})`, name);

    expect(missingIn(shape, leases)).toEqual(['the index "tokenwright_leases_by_end"']);
  });
});

describe('migrationSql', () => {
  it('of CockroachDB names no collation and no fillfactor', () => {
    expect(migrationSql({ dialect: 'cockroach' })).not.toMatch(/COLLATE|fillfactor/);
    expect(migrationSql()).toContain('COLLATE "C"');
    expect(migrationSql()).toContain('fillfactor = 70');
  });

  it('of YugabyteDB orders all keys', () => {
    const sql = migrationSql({ dialect: 'yugabyte' });
    const keys = sql.match(/(?:PRIMARY KEY|ON "\w+") \(.*/g) ?? [];

    expect(keys).toHaveLength(19);
    for (const key of keys) expect(key).toMatch(/\((?:\w+|LEAST\(.*?\)) ASC/);
    expect(sql).not.toContain('fillfactor');
    expect(migrationSql()).not.toContain(' ASC');
  });

  it.each(['postgres', 'oracle', ''])('refuses the dialect %j', (dialect) => {
    expect(() => migrationSql({ dialect: dialect as never })).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
  });
});

type Answer = (query: PostgresQuery) => readonly unknown[];

/** A pool that answers as another database, and what was sent to it. */
function fakePool(answer: Answer) {
  const sent: string[] = [];
  const query = async (asked: PostgresQuery) => {
    sent.push(asked.text);
    return { rows: answer(asked) };
  };
  const client = { query, on: () => {}, release: () => {} };
  const pool = {
    query,
    connect: async () => client,
    on: () => {},
    listenerCount: () => 1,
    idleCount: 0,
    ending: false,
    options: { max: 10 },
  };
  return { pool: pool as unknown as PostgresPool, sent };
}

interface Server {
  readonly version: string;
  readonly encoding?: string;
  readonly isDsql?: boolean;
  readonly isCitus?: boolean;
  /** Tables that Citus has distributed. */
  readonly distributed?: readonly string[];
}

/** A server without the tables. */
function serverOf({ distributed = [], ...server }: Server, onCreate: () => void = () => {}) {
  return fakePool(({ text, values = [] }) => {
    if (text.includes('"isDsql"')) {
      return [{ encoding: 'UTF8', isDsql: false, isCitus: false, ...server }];
    }
    if (text.includes('pg_dist_partition')) {
      return distributed.includes(String(values[0])) ? [{ partmethod: 'h' }] : [];
    }
    if (text.startsWith('CREATE TABLE')) onCreate();
    if (!text.includes('obj_description')) return [];
    const isMade = made.has(String(values[0]));
    made.add(String(values[0]));
    const comment = {
      tokens: 'schema',
      usage: 'usage schema',
      leases: 'lease schema',
      requests: 'request schema',
    };
    const part = String(values[0]).match(
      /(tokens|usage|leases|requests)/,
    )?.[1] as keyof typeof comment;
    return [
      isMade
        ? { kind: 'r', comment: `tokenwright ${comment[part]} 1, needs 1` }
        : { kind: null, comment: null },
    ];
  });
}
const made = new Set<string>();
afterEach(() => made.clear());

async function failureOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe('migrate', () => {
  it.each<[string, Server, string]>([
    [
      'Aurora DSQL',
      { version: 'PostgreSQL 16', isDsql: true },
      'these tables cannot change in one step here; use Aurora PostgreSQL',
    ],
    [
      'a table that Citus has distributed',
      { version: VERSIONS.postgres, isCitus: true, distributed: ['"tokenwright_leases"'] },
      'these tables cannot change in one step here; use a local table',
    ],
  ])('refuses %s', async (_, server, message) => {
    const { pool, sent } = serverOf(server);

    expect(await failureOf(migrate(pool))).toMatchObject({
      code: 'store_unavailable',
      details: { reason: 'unsupported' },
      message,
    });
    expect(sent.join()).not.toContain('"tokenwright_leases" (');
  });

  it.each<[string, Server]>([
    ['Citus with local tables', { version: VERSIONS.postgres, isCitus: true }],
    ['CockroachDB', { version: VERSIONS.cockroach }],
    ['YugabyteDB', { version: VERSIONS.yugabyte }],
    ['SQL_ASCII', { version: VERSIONS.postgres, encoding: 'SQL_ASCII' }],
  ])('takes %s', async (_, server) => {
    const { pool, sent } = serverOf(server);
    await migrate(pool);

    expect(sent.filter((text) => text.startsWith('CREATE TABLE'))).toHaveLength(4);
  });

  it.each([
    ['postgres', true, true, false],
    ['cockroach', false, false, false],
    ['yugabyte', false, true, true],
  ] as const)('finds out about %s by itself', async (name, hasLock, hasCollation, hasOrder) => {
    const { pool, sent } = serverOf({ version: VERSIONS[name] });
    await migrate(pool);
    const all = sent.join('\n');

    expect(all.includes('pg_advisory_xact_lock')).toBe(hasLock);
    expect(all.includes('COLLATE')).toBe(hasCollation);
    expect(all.includes('(id ASC)')).toBe(hasOrder);
  });

  const refusedWith = (code: string) =>
    Object.assign(new Error('lost'), { code, severity: 'ERROR' });

  it.each([
    ['42P07', 3, true],
    ['42701', 3, true],
    ['23505', 3, true],
    ['40001', 3, true],
    ['40001', 4, false],
    ['42601', 1, false],
    ['42501', 1, false],
  ])('looks again after %s, %i times in a row: %s', async (code, times, isDone) => {
    let left = times;
    const { pool, sent } = serverOf({ version: VERSIONS.cockroach }, () => {
      left -= 1;
      if (left < 0) return;
      made.clear();
      throw refusedWith(code);
    });
    const failure = await failureOf(migrate(pool));

    expect(failure === undefined).toBe(isDone);
    const rollbacks = sent.filter((text) => text === 'ROLLBACK').length;
    expect(rollbacks).toBe(isDone ? times : times - 1);
  });
});

describe('a server without digests', () => {
  const LISTS: TokenRecord = {
    ...newRecord('one'),
    scopes: Array.from({ length: 400 }, (_, n) => `GET:shop.example/orders/${n}`),
  };

  /** A pool that refuses the fast path, or another statement. */
  function refusing(pool: Pool, code: string) {
    const sent: string[] = [];
    const isFast = (text: string) => text.includes('sha256(');
    const query = async ({ text, values = [] }: PostgresQuery) => {
      sent.push(isFast(text) ? 'fast' : 'plain');
      if (isFast(text)) throw Object.assign(new Error('no'), { code, severity: 'ERROR' });
      return pool.query(text, [...values]);
    };
    return { pool: Object.assign(Object.create(pool), { query }) as PostgresPool, sent };
  }

  async function setUp() {
    const pool = new Pool({ connectionString: url });
    const tables = newName();
    await migrate(pool, { tables });
    cleanups.push(async () => {
      await pool.query(
        `DROP TABLE ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`,
      );
      await pool.end();
    });
    await new PostgresTokenStore(pool, { tables }).insert(LISTS);
    return { pool, tables };
  }

  it.skipIf(url === undefined).each(['42883', '42804', '0A000'])(
    'is asked once, and for whole lists from then on: %s',
    async (code) => {
      const { pool, tables } = await setUp();
      const refused = refusing(pool, code);
      const store = new PostgresTokenStore(refused.pool, { tables });
      for (let read = 0; read < 3; read += 1) {
        expect(await store.find([LISTS.id])).toEqual([LISTS]);
      }

      expect(refused.sent).toEqual(['plain', 'fast', 'plain', 'plain']);
    },
  );

  it.skipIf(url === undefined)('is told from one that fails otherwise', async () => {
    const { pool, tables } = await setUp();
    const refused = refusing(pool, '53300');
    const store = new PostgresTokenStore(refused.pool, { tables });
    await store.find([LISTS.id]);

    expect(await failureOf(store.find([LISTS.id]))).toMatchObject({ details: { reason: 'busy' } });
    expect(refused.sent).toEqual(['plain', 'fast']);
  });
});

describe.skipIf(url === undefined)('a database', () => {
  /** A new database of an encoding, with the tables if they may be made. */
  async function setUp(encoding: string) {
    const name = newName();
    const admin = new Pool({ connectionString: url });
    await admin.query(
      `CREATE DATABASE ${name} TEMPLATE template0 ENCODING '${encoding}' LC_COLLATE 'C' LC_CTYPE 'C'`,
    );
    const pool = new Pool({
      connectionString: (url as string).replace(/\/[^/]*$/, `/${name}`),
      connectionTimeoutMillis: 2000,
      statement_timeout: 2000,
    });
    cleanups.push(async () => {
      await pool.end();
      await admin.query(`DROP DATABASE ${name}`);
      await admin.end();
    });
    return pool;
  }

  const NAMED: TokenRecord = { ...newRecord('one'), name: '日本' };

  it('in LATIN1 is refused by migrate, and named by doctor and by the call', async () => {
    const pool = await setUp('LATIN1');
    expect(await failureOf(migrate(pool))).toMatchObject({
      code: 'store_unavailable',
      details: { reason: 'encoding' },
    });
    await pool.query(migrationSql());
    const store = new PostgresTokenStore(pool);

    expect((await store.doctor()).map(({ code }) => code)).toEqual(['encoding']);
    expect(await failureOf(store.insert(NAMED))).toMatchObject({ details: { reason: 'encoding' } });
    await store.insert(newRecord('two'));
  });

  it.each(['SQL_ASCII', 'UTF8'])('in %s holds every character', async (encoding) => {
    const pool = await setUp(encoding);
    await migrate(pool);
    const store = new PostgresTokenStore(pool);
    await store.insert(NAMED);

    expect(await store.find([NAMED.id])).toEqual([NAMED]);
    expect(await store.doctor()).toEqual([]);
    expect(await refusalOf(store.insert(NAMED))).toMatchObject({ code: 'id_taken' });
  });
});
