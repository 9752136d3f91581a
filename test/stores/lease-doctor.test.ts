import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { createPool } from 'mysql2';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { doctor, MemoryLeaseStore } from '../../src/index.ts';
import type { LeaseStore, LeaseWant } from '../../src/ports/lease-store.ts';
import * as mysql from '../../src/stores/mysql/index.ts';
import * as postgres from '../../src/stores/postgres/index.ts';
import { SqliteLeaseStore } from '../../src/stores/sqlite/index.ts';

const urls = inject('servers');
const DAY_MS = 86_400_000;

/** A store for leases, and statements that change its table directly. */
interface LeaseTable {
  readonly store: LeaseStore;
  readonly table: string;
  run(sql: string): Promise<unknown>;
  readonly dropIndex: string;
  readonly setVersion?: (text: string) => string;
}

type Open = (migrates?: boolean) => Promise<LeaseTable>;

function newName(): string {
  return `leases_${randomBytes(8).toString('hex')}`;
}

const OPEN: Readonly<Record<string, Open | undefined>> = {
  async SQLite() {
    const handle = new DatabaseSync(':memory:');
    onTestFinished(() => handle.close());
    return {
      store: SqliteLeaseStore.open(handle),
      table: 'leases',
      run: async (sql) => handle.exec(sql),
      dropIndex: 'DROP INDEX leases_by_end',
    };
  },
  PostgreSQL:
    urls.postgres === undefined
      ? undefined
      : async (migrates = true) => {
          const pool = new pg.Pool({ connectionString: urls.postgres });
          onTestFinished(() => pool.end());
          const table = newName();
          if (migrates) await postgres.migrateLeases(pool, { table });
          return {
            store: new postgres.PostgresLeaseStore(pool, { table, deadlineMs: 20_000 }),
            table,
            run: (sql) => pool.query(sql),
            dropIndex: `DROP INDEX ${table}_by_end`,
            setVersion: (text) => `COMMENT ON TABLE ${table} IS 'tokenwright lease schema ${text}'`,
          };
        },
  MariaDB:
    urls.mariadb === undefined
      ? undefined
      : async (migrates = true) => {
          const pool = createPool({ uri: urls.mariadb as string });
          onTestFinished(() => pool.promise().end());
          const table = newName();
          if (migrates) await mysql.migrateLeases(pool, { table });
          return {
            store: new mysql.MysqlLeaseStore(pool, { table, deadlineMs: 20_000 }),
            table,
            run: (sql) => pool.promise().query(sql),
            dropIndex: `ALTER TABLE ${table} DROP INDEX by_end`,
            setVersion: (text) =>
              `ALTER TABLE ${table} COMMENT = 'tokenwright lease schema ${text}'`,
          };
        },
};

function want(key: string): LeaseWant {
  const until = new Date(Date.now() + DAY_MS);
  return { key, window: 0, limit: 10, want: 1, until };
}

async function codesOf(store: LeaseStore): Promise<string[]> {
  return (await doctor(store)).map(({ code }) => code);
}

/** Takes leases for `count` tokens, and lets them end `agoMs` ago. */
async function takeEnded({ store, table, run }: LeaseTable, count: number, agoMs: number) {
  await store.take(Array.from({ length: count }, (_, i) => want(`token${i}/uses`)));
  await run(`UPDATE ${table} SET ends_at = ${Date.now() - agoMs}`);
}

describe.each(Object.entries(OPEN))('doctor of a lease store in %s', (name, opens) => {
  const open = opens as Open;

  it.skipIf(opens === undefined)(
    'finds nothing in a new table or in one that is used',
    async () => {
      const { store } = await open();

      expect(await doctor(store)).toEqual([]);
      await store.take([want('token/uses')]);
      expect(await doctor(store)).toEqual([]);
    },
  );

  it.skipIf(opens === undefined)('names a missing index', async () => {
    const { store, run, dropIndex } = await open();
    await run(dropIndex);

    const [finding, ...others] = await doctor(store);

    expect(finding?.code).toBe('leases_differ');
    expect(finding?.message).toMatch(/it lacks the index \S*by_end"?;/);
    expect(others).toEqual([]);
  });

  it.skipIf(opens === undefined)(
    'counts rows that should have been purged, until they are',
    async () => {
      const leases = await open();
      await takeEnded(leases, 3, 2 * DAY_MS);

      const [finding, ...others] = await doctor(leases.store);

      expect(finding?.code).toBe('leases_not_purged');
      expect(finding?.message).toContain('3 of its rows ended more than a day ago');
      expect(others).toEqual([]);
      expect(await leases.store.purge(new Date(Date.now() - 3_600_000), 1000)).toBe(3);
      expect(await doctor(leases.store)).toEqual([]);
    },
  );

  it.skipIf(opens === undefined)('ignores rows that ended an hour ago', async () => {
    const leases = await open();
    await takeEnded(leases, 3, DAY_MS / 24);

    expect(await doctor(leases.store)).toEqual([]);
  });

  it.skipIf(opens === undefined)('stops counting after 1000 rows', async () => {
    const leases = await open();
    await takeEnded(leases, 1002, 2 * DAY_MS);

    const [finding] = await doctor(leases.store);

    expect(finding?.message).toContain('more than 1000 of its rows');
  });

  const isFile = name === 'SQLite';

  it.skipIf(opens === undefined || isFile)('reports a missing table', async () => {
    const { store } = await open(false);

    const [finding, ...others] = await doctor(store);

    expect(finding?.code).toBe('leases_missing');
    expect(finding?.message).toMatch(
      /does not exist; run tokenwright migrate, or call migrateLeases/,
    );
    expect(others).toEqual([]);
  });

  it.skipIf(opens === undefined || isFile).each([
    ['0', ['leases_older']],
    ['1', []],
    ['2', []],
    ['2, needs 1', []],
    ['2, needs 2', ['leases_newer']],
    ['of a later form', ['leases_newer']],
  ])('reports for a table of schema version %s: %j', async (version, codes) => {
    const { store, run, setVersion } = await open();
    await run(setVersion?.(version) ?? '');

    expect(await codesOf(store)).toEqual(codes);
  });

  it.skipIf(opens === undefined || isFile)(
    'names missing columns and a missing primary key',
    async () => {
      const { store, run, table } = await open();
      await run(`ALTER TABLE ${table} DROP COLUMN latest`);

      expect((await doctor(store))[0]?.message).toContain('it lacks the column latest');
      await run(`DROP TABLE ${table}`);
      await run(`CREATE TABLE ${table} (ends_at bigint)`);
      expect((await doctor(store))[0]?.message).toMatch(
        /it lacks the column lease_key.*(?:the primary key|the index PRIMARY)/,
      );
    },
  );
});

describe('doctor of a lease store', () => {
  it('finds nothing if the store has no doctor method', async () => {
    expect(await doctor(new MemoryLeaseStore())).toEqual([]);
  });

  it('rejects if the server is down', async () => {
    const pool = new pg.Pool({ connectionString: 'postgres://127.0.0.1:1/acme' });
    onTestFinished(() => pool.end());

    await expect(doctor(new postgres.PostgresLeaseStore(pool))).rejects.toMatchObject({
      code: 'store_unavailable',
    });
  });
});
